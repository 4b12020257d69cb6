/* SPDX-License-Identifier: MIT */
/*
 * Images of the vDSO, which no file holds (vdso(7)).
 */
#pragma once

#include "pm/proc.h"

struct pm_chain_vdso {
	void *image; /* NULL: none */
	size_t len;
};

/* Our own, which the kernel maps into every process of our kind; for as long as we live. */
void pm_chain_vdso_own(struct pm_chain_vdso *ret);
/* That of another kind, "[vdso32]", copied from a process that has it while that lives.
 * 0; negative errno when nobody who has it can be looked at. */
int pm_chain_vdso_copy(const struct pm_module *module, struct pm_chain_vdso *ret);
/* Of a copied one. */
void pm_chain_vdso_release(struct pm_chain_vdso *vdso);

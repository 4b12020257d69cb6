/* SPDX-License-Identifier: MIT */
/*
 * Images of the vDSO, which is not in any file (vdso(7)).
 */
#pragma once

#include "pm/proc.h"

struct pm_chain_vdso {
	void *image; /* NULL: none */
	size_t len;
};

/* Returns our own image, which the kernel maps into every process of our kind. It is
 * valid as long as this process runs. */
void pm_chain_vdso_own(struct pm_chain_vdso *out);
/* Copies the image of another kind, "[vdso32]", from a running process that has it.
 * Returns 0, or negative errno if no process that has it can be read. */
int pm_chain_vdso_copy(const struct pm_module *module, struct pm_chain_vdso *out);
/* Releases a copied image. */
void pm_chain_vdso_release(struct pm_chain_vdso *vdso);

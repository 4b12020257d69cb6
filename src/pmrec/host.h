/* SPDX-License-Identifier: MIT */
/*
 * The machine that the recording is made on, for the header of the file.
 */
#pragma once

#include "pm/file.h"
#include "pm/proc.h"

#include <sys/utsname.h>

struct pm_rec_host {
	struct utsname names;
	char cpu_model[128]; /* "": unknown */
	char virt[32]; /* "": none, or unknown */
	uint32_t cpus;
	struct pm_kernel_identity running;
};

void pm_rec_host_read(struct pm_rec_host *host);

/* SPDX-License-Identifier: MIT */
/*
 * Probes: from places in files as people name them (a function of a library, a line of a
 * source, a marker that was compiled in) to the offsets that the kernel's uprobe PMU takes.
 * Nothing is written anywhere: such an event lives and ends with its file descriptor.
 */
#pragma once

#include "pm/perf.h"

/* Where the words of a place are looked up. All zero is legal: then in the system's library
 * folders and in PATH only. */
struct pm_probe_context {
	/* What is going to be run, as typed, looked up in PATH; NULL: nothing. `FILE` may then
	 * be this program or a library that it needs, searched as ld.so(8) would. */
	const char *command;
	/* Running processes: `FILE` may be what one of them has mapped, and an absolute path
	 * is one in its root. */
	const pid_t *pids;
	size_t pids_len;
	const char *debug_dir; /* for separate debug files, NULL: /usr/lib/debug */
	const char *devices; /* NULL: /sys/bus/event_source/devices */
};

/*
 * What resolved places stand on. Zero-initialised is empty; to be kept until the events are
 * open (and are opened no more: CPUs come back).
 */
struct pm_probes {
	/* The specs' paths lead to these, /proc/self/fd/N: the file that was looked into and
	 * the one that gets the probe are the same, whatever happens to its name. */
	PM_VEC(int) files;
	PM_VEC(char *) notes; /* one line each, for the user */
};
void pm_probes_release(struct pm_probes *probes);

enum {
	PM_PROBE_PLACES_MAX = 4096, /* of one spec */
};

/*
 * Puts, for each spec with place.wanted, one spec for each place that it means into the list,
 * in its position: uprobes with type and config of the PMU, the file's path and the offset in
 * it (config2); kprobes; breakpoints with their address (config1). Leaders are kept: of a
 * leader that means several places the first one leads.
 *
 * A name may mean several functions (overloads, static functions of several sources, copies
 * that the compiler made): each is a place. Functions that share an address are one place.
 * Parts of functions (`.cold`, `.part.0`) are places only when they are named as such.
 *
 * 0; negative with the list unchanged: -ENOENT (no such file or name; near names are told),
 * -EINVAL (a place that cannot hold a probe, or several files), -E2BIG (more than
 * PM_PROBE_PLACES_MAX places), -ENOEXEC (no ELF file), -ENODATA (no symbols or lines in it),
 * -EOPNOTSUPP (this kernel lacks the PMU), -ENOMEM.
 */
int pm_probes_resolve(struct pm_probes *probes, struct pm_event_specs *specs,
		      const struct pm_probe_context *context, struct pm_error *err);

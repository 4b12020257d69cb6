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

/* Whether some kernels take a probe on the instruction at @bytes, and the program then
 * fails. pm_hits_ask() says what the kernel takes. */
bool pm_probe_harms(uint16_t machine, const uint8_t *bytes, size_t len);
/* Whether code of this machine (EM_*) is of the mode in which this program runs: the
 * kernel answers for no other. */
bool pm_probe_is_ours(uint16_t machine);

/* ---- functions and where they lie ----------------------------------------------------- */

/* A file with code. */
struct pm_probe_binary {
	int fd; /* owned */
	char *label; /* as people call it: libc.so.6 */
	char *path; /* where it is, as whoever has it sees it */
	pid_t pid; /* in whose root, 0: ours */
};
struct pm_probe_binaries {
	PM_VEC(struct pm_probe_binary) list;
};
void pm_probe_binaries_release(struct pm_probe_binaries *binaries);

/* Appends the program of @context, of a script its interpreter; of several processes each
 * program once. 0, -ENOENT, -EINVAL (the context names none), -EACCES, … */
int pm_probe_find_program(struct pm_probe_binaries *ret,
			  const struct pm_probe_context *context, struct pm_error *err);
/* Appends what that program needs, or what those processes have mapped. 0 or negative. */
int pm_probe_find_needed(struct pm_probe_binaries *ret,
			 const struct pm_probe_context *context, struct pm_error *err);
/* Appends what @word means as FILE of an event does. 0, -ENOENT (near names are told), … */
int pm_probe_find_binary(struct pm_probe_binaries *ret,
			 const struct pm_probe_context *context, const char *word,
			 struct pm_error *err);

struct pm_probe_piece {
	uint64_t low, high; /* svma [low, high) */
};

struct pm_probe_function {
	char *symbol; /* as the linker knows it; NULL: it has no name */
	char *name; /* for people, with parameters; of one without a name its address */
	uint64_t low, high; /* svma [low, high) */
	/* Code of symbols that are called as it is with `.cold` and the like behind: parts of
	 * it, or of another function of that name. */
	PM_VEC(struct pm_probe_piece) parts;
};
struct pm_probe_functions {
	PM_VEC(struct pm_probe_function) list; /* by address, each address once */
	PM_VEC(char *) notes; /* one line each, for the user */
};
void pm_probe_functions_release(struct pm_probe_functions *functions);

/*
 * Appends the functions that @name means in one file, as pm_probes_resolve() finds them. Of
 * symbols without a size the end is that of the unwinding information, else the next symbol.
 * 0; -ENOENT (none, or data: what is missing is told), -ENODATA (no symbols at
 * all), -EINVAL (an IFUNC), -E2BIG, -ENOEXEC, -ENOMEM.
 */
int pm_probe_find_functions(struct pm_probe_functions *ret,
			    const struct pm_probe_binary *binary,
			    const struct pm_probe_context *context, const char *name,
			    struct pm_error *err);
/* Appends the functions that hold one of the @len svma at @addresses, each once. 0, also for
 * addresses that nothing holds; negative otherwise. */
int pm_probe_find_holders(struct pm_probe_functions *ret,
			  const struct pm_probe_binary *binary,
			  const struct pm_probe_context *context,
			  const uint64_t *addresses, size_t len, struct pm_error *err);
/* So for those that hold code of one of the @len pieces, in any order. -E2BIG: there are more than
 * @most. */
int pm_probe_find_within(struct pm_probe_functions *ret,
			 const struct pm_probe_binary *binary,
			 const struct pm_probe_context *context,
			 const struct pm_probe_piece *pieces, size_t len, size_t most,
			 struct pm_error *err);

/* One place where a function was inlined. */
struct pm_probe_inlined {
	char *name; /* for people */
	char *file; /* where it would have been called; NULL: unknown */
	uint32_t line; /* 0: unknown */
	PM_VEC(struct pm_probe_piece) pieces; /* none: nothing of it is left */
};
struct pm_probe_inlined_list {
	PM_VEC(struct pm_probe_inlined) list;
};
void pm_probe_inlined_release(struct pm_probe_inlined_list *inlined);
enum {
	PM_PROBE_INLINED_MAX = 4096,
};
/* Appends the places where functions that @name means were inlined. 0, also without any and
 * without debug information; -E2BIG, -ENOEXEC, -ENOMEM. */
int pm_probe_find_inlined(struct pm_probe_inlined_list *ret,
			  const struct pm_probe_binary *binary,
			  const struct pm_probe_context *context, const char *name,
			  struct pm_error *err);

/*
 * What was meant by @name, which no function of @binaries is called: *ret (to free) is the full
 * name of the only one, there as a function or inlined, whose last part it is, as `f` of `ns::f`.
 * 0; -ENOENT: there is none, or several, and near names are put behind the text of @err; -ENOMEM.
 */
int pm_probe_find_meant(char **ret, const struct pm_probe_binaries *binaries,
			const struct pm_probe_context *context, const char *name,
			struct pm_error *err);

/* ---- bytes of code --------------------------------------------------------------------- */

/* A file's program headers, for reading what is at an address. */
struct pm_probe_image;
/* Borrows @fd. 0, -ENOEXEC, -ENOMEM or the errno of reading. */
int pm_probe_image_open(struct pm_probe_image **ret, int fd);
void pm_probe_image_close(struct pm_probe_image *image);
uint16_t pm_probe_image_machine(const struct pm_probe_image *image); /* EM_* */
bool pm_probe_image_is_64(const struct pm_probe_image *image);
/* The offset in the file of code at @address; false when no code is there. */
bool pm_probe_image_code(const struct pm_probe_image *image, uint64_t address,
			 uint64_t *offset);
/* Copies @len bytes at @address; false when the file does not have them all. */
bool pm_probe_image_read(const struct pm_probe_image *image, uint64_t address, void *ret,
			 size_t len);
/* The code around @address that one entry of the unwinding information is about: a function,
 * or a part of one that lies elsewhere. */
bool pm_probe_image_frame(const struct pm_probe_image *image, uint64_t address,
			  struct pm_probe_piece *ret);
/* Whether that code may catch exceptions, or clean up for them; true also when nothing is known. */
bool pm_probe_image_catches(const struct pm_probe_image *image, uint64_t address);

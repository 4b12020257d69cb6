/* SPDX-License-Identifier: MIT */
/*
 * Probes: from places in files as users name them (a function of a library, a source
 * line, a marker that was compiled in) to the file offsets that the kernel's uprobe PMU
 * needs. Nothing is written to tracefs: such an event exists only as long as its file
 * descriptor.
 */
#pragma once

#include "pm/perf.h"

/* Where the words of a place are looked up. All zero is valid: only in the system's
 * library folders and in PATH. */
struct pm_probe_context {
	/* The command that will be run, as typed, looked up in PATH; NULL: none. `FILE`
	 * may then be this program, or a library that it needs, searched for as ld.so(8)
	 * would. */
	const char *command;
	/* Running processes: `FILE` may be a file that one of them has mapped, and an
	 * absolute path is relative to its root. */
	const pid_t *pids;
	size_t pids_len;
	const char *debug_dir; /* for separate debug files, NULL: /usr/lib/debug */
	const char *devices; /* NULL: /sys/bus/event_source/devices */
};

/*
 * Resources of resolved places. Empty if zero-initialised. Must be kept as long as the
 * events are open or may be opened again, which happens when a CPU comes back online.
 */
struct pm_probes {
	/* The paths of the specs, /proc/self/fd/N, refer to these: the file that was
	 * examined and the one that gets the probe are the same, even if its name
	 * changes. */
	PM_VEC(int) files;
	PM_VEC(char *) notes; /* one line each, for the user */
};
void pm_probes_release(struct pm_probes *probes);

enum {
	PM_PROBE_PLACES_MAX = 4096, /* of one spec */
};

/*
 * Replaces each spec with place.wanted, in its position, by one spec for each place that
 * it means: uprobes with type and config of the PMU, the file's path and the offset in it
 * (config2); kprobes; breakpoints with their address (config1). Leaders are kept: if a
 * leader means several places, the first one leads.
 *
 * A name may mean several functions (overloads, static functions of several sources,
 * copies that the compiler made): each is a place. Functions that share an address are
 * one place. Parts of functions (`.cold`, `.part.0`) are places only if they are named
 * explicitly.
 *
 * Returns 0, or a negative error with the list unchanged: -ENOENT (no such file or name;
 * the message lists similar names), -EINVAL (a place that cannot hold a probe, or several
 * files), -E2BIG (more than PM_PROBE_PLACES_MAX places), -ENOEXEC (not an ELF file),
 * -ENODATA (it has no symbols or lines), -EOPNOTSUPP (this kernel lacks the PMU),
 * -ENOMEM.
 */
int pm_probes_resolve(struct pm_probes *probes, struct pm_event_specs *specs,
		      const struct pm_probe_context *context, struct pm_error *err);

/* Whether a probe on the instruction at @bytes makes the program fail although some
 * kernels accept it. pm_hits_ask() reports what the kernel accepts. */
bool pm_probe_harms(uint16_t machine, const uint8_t *bytes, size_t len);
/* Whether code of @machine (EM_*) has the mode that this program runs in; the kernel
 * cannot be asked about other code. */
bool pm_probe_is_ours(uint16_t machine);

/* ---- functions and their places ------------------------------------------------------- */

/* A file with code. */
struct pm_probe_binary {
	int fd; /* owned */
	char *label; /* the usual short name: libc.so.6 */
	char *path; /* its path, as its owner sees it */
	pid_t pid; /* the path is in this process's root; 0: ours */
};
struct pm_probe_binaries {
	PM_VEC(struct pm_probe_binary) list;
};
void pm_probe_binaries_release(struct pm_probe_binaries *binaries);

/* Appends the program of @context, or a script's interpreter; for several processes, each
 * program once. Returns 0, -ENOENT, -EINVAL (the context names no program), -EACCES, … */
int pm_probe_find_program(struct pm_probe_binaries *out,
			  const struct pm_probe_context *context, struct pm_error *err);
/* Appends the libraries that this program needs, or the files that these processes have
 * mapped. Returns 0 or a negative errno. */
int pm_probe_find_needed(struct pm_probe_binaries *out,
			 const struct pm_probe_context *context, struct pm_error *err);
/* Appends the files that @word means as the FILE of an event. Returns 0, -ENOENT (the
 * message lists similar names), … */
int pm_probe_find_binary(struct pm_probe_binaries *out,
			 const struct pm_probe_context *context, const char *word,
			 struct pm_error *err);

struct pm_probe_piece {
	uint64_t low, high; /* svma [low, high) */
};

struct pm_probe_function {
	char *symbol; /* the linker's name; NULL: it has no name */
	char *name; /* for display, with parameters; its address if it has no name */
	uint64_t low, high; /* svma [low, high) */
	/* Code of symbols that have its name and a suffix such as `.cold`: parts of this
	 * function, or of another function with the same name. */
	PM_VEC(struct pm_probe_piece) parts;
};
struct pm_probe_functions {
	PM_VEC(struct pm_probe_function) list; /* by address, without duplicates */
	PM_VEC(char *) notes; /* one line each, for the user */
};
void pm_probe_functions_release(struct pm_probe_functions *functions);

/*
 * Appends the functions that @name means in one file, as pm_probes_resolve() finds them.
 * A symbol without a size ends where the unwind information says, or else at the next
 * symbol. Returns 0; -ENOENT (none, or data; the message says what is missing), -ENODATA
 * (no symbols at all), -EINVAL (an IFUNC), -E2BIG, -ENOEXEC, -ENOMEM.
 */
int pm_probe_find_functions(struct pm_probe_functions *out,
			    const struct pm_probe_binary *binary,
			    const struct pm_probe_context *context, const char *name,
			    struct pm_error *err);
/* Appends the functions that contain one of the @len svma at @addresses, without
 * duplicates. Returns 0, also if some addresses are in no function, or a negative
 * errno. */
int pm_probe_find_holders(struct pm_probe_functions *out,
			  const struct pm_probe_binary *binary,
			  const struct pm_probe_context *context,
			  const uint64_t *addresses, size_t len, struct pm_error *err);
/* The same for functions with code in one of the @len pieces, which may be in any order.
 * Returns -E2BIG if there are more than @most. */
int pm_probe_find_within(struct pm_probe_functions *out,
			 const struct pm_probe_binary *binary,
			 const struct pm_probe_context *context,
			 const struct pm_probe_piece *pieces, size_t len, size_t most,
			 struct pm_error *err);

/* One place where a function was inlined. */
struct pm_probe_inlined {
	char *name; /* for display */
	char *file; /* of the inlined call; NULL: unknown */
	uint32_t line; /* 0: unknown */
	PM_VEC(struct pm_probe_piece) pieces; /* none: none of its code is left */
};
struct pm_probe_inlined_list {
	PM_VEC(struct pm_probe_inlined) list;
};
void pm_probe_inlined_release(struct pm_probe_inlined_list *inlined);
enum {
	PM_PROBE_INLINED_MAX = 4096,
};
/* Appends the places where functions that @name means were inlined. Returns 0, also if
 * there are none, or no debug information; -E2BIG, -ENOEXEC, -ENOMEM. */
int pm_probe_find_inlined(struct pm_probe_inlined_list *out,
			  const struct pm_probe_binary *binary,
			  const struct pm_probe_context *context, const char *name,
			  struct pm_error *err);

/*
 * Finds the function that was meant by @name, which is not the name of any function in
 * @binaries. Sets *out (to be freed) to the full name of the only function, inlined or
 * not, whose last part is @name: `ns::f` for `f`. Returns 0; -ENOENT if there is none, or
 * several, with similar names appended to the text of @err; or -ENOMEM.
 */
int pm_probe_find_meant(char **out, const struct pm_probe_binaries *binaries,
			const struct pm_probe_context *context, const char *name,
			struct pm_error *err);

/* ---- bytes of code --------------------------------------------------------------------- */

/* A file's program headers, for reading bytes by address. */
struct pm_probe_image;
/* Borrows @fd. Returns 0, -ENOEXEC, -ENOMEM or an error of reading. */
int pm_probe_image_open(struct pm_probe_image **out, int fd);
void pm_probe_image_close(struct pm_probe_image *image);
uint16_t pm_probe_image_machine(const struct pm_probe_image *image); /* EM_* */
bool pm_probe_image_is_64(const struct pm_probe_image *image);
/* Finds the file offset of the code at @address. Returns false if there is none. */
bool pm_probe_image_code(const struct pm_probe_image *image, uint64_t address,
			 uint64_t *offset);
/* Copies @len bytes at @address. Returns false if the file does not have all of them. */
bool pm_probe_image_read(const struct pm_probe_image *image, uint64_t address, void *out,
			 size_t len);
/* Finds the code around @address that one entry of the unwind information covers: a
 * function, or a separate part of one. */
bool pm_probe_image_frame(const struct pm_probe_image *image, uint64_t address,
			  struct pm_probe_piece *out);
/* Whether that code may catch exceptions, or clean up for them; true also if unknown. */
bool pm_probe_image_catches(const struct pm_probe_image *image, uint64_t address);

/* SPDX-License-Identifier: MIT */
/*
 * Processes, threads, what is mapped where; modules (files by identity); launching a
 * command; kernel symbols. All text of /proc is foreign input.
 */
#pragma once

#include "pm/base.h"

#include <sys/wait.h>

/* ---- modules ------------------------------------------------------------------------- */

enum pm_module_kind {
	PM_MODULE_FILE,
	PM_MODULE_KERNEL, /* "[kernel]": addresses are the kernel's own */
	PM_MODULE_VDSO,
	PM_MODULE_ANON, /* executable memory without a file: JIT code, trampolines */
};

enum {
	PM_MODULE_BUILD_ID_MAX = 20,
	PM_MODULE_NONE = -1,
};

/* What a mapping shows of its file. Two mappings are of one module when path and identity
 * (build-id if known, else device and inode) agree. */
struct pm_module_identity {
	enum pm_module_kind kind;
	const char *path; /* as the target saw it; without " (deleted)" */
	uint32_t major, minor;
	uint64_t inode; /* 0 with a build-id from the kernel */
	uint8_t build_id[PM_MODULE_BUILD_ID_MAX];
	uint8_t build_id_len; /* 0: unknown */
};

struct pm_module {
	struct pm_module_identity identity; /* path owned by the table */
	/* One place where it was seen mapped, for files that can be reached only through the
	 * process: /proc/PID/root/…, /proc/PID/map_files/START-END. */
	pid_t seen_pid;
	uint64_t seen_start, seen_end;
	/* CLOCK_REALTIME when it was first seen, 0 if unknown: what was written later than
	 * that is not what was mapped. */
	int64_t seen_ns;
};

struct pm_mapping {
	uint64_t start, end; /* [start, end) avma */
	uint64_t pgoff; /* bytes into the file */
	uint32_t module; /* id */
};

/*
 * Opens the file behind a module read-only, O_NONBLOCK|O_NOCTTY|O_CLOEXEC, and returns the
 * fd only if it is a regular file and is the mapped one: tried in order are
 * /proc/PID/map_files/…, /proc/PID/root/PATH, PATH, each checked by build-id or inode.
 * -ENOENT gone; -ESTALE something else stands there now; -ENOTSUP not a file (vdso, anon).
 */
int pm_module_open(const struct pm_module *module, struct pm_error *err);

/* The NT_GNU_BUILD_ID of an ELF file. 0, or -ENODATA without one, -ENOEXEC when no ELF. */
int pm_elf_build_id(int fd, uint8_t ret[PM_MODULE_BUILD_ID_MAX], uint8_t *ret_len);

/* ---- separate debug files ------------------------------------------------------------ */

/* Where to look. All zero is legal. */
struct pm_debug_search {
	const char *dir; /* absolute; NULL: /usr/lib/debug */
	/* A process whose root is looked at before ours, and the file's path there; 0 and
	 * NULL: none, unknown. */
	pid_t pid;
	const char *path;
	/* How many bytes may still be read for checksums, which only files without a
	 * build-id need; counted down. NULL: 1 GiB for each file. */
	uint64_t *crc_bytes_left;
};

/*
 * The separate debug file of the ELF file behind @fd (borrowed), opened as by
 * pm_module_open(): DIR/.build-id/xx/….debug, or what .gnu_debuglink names beside the file,
 * in .debug/ beside it, and in DIR/its folder. Its build-id agrees with the file's, or its
 * checksum with the link's where the file has no build-id. -ENOENT when there is none.
 */
int pm_debug_find(int fd, const struct pm_debug_search *search);
/* By build-id alone, of at most 64 bytes. */
int pm_debug_find_by_id(const void *id, size_t id_len,
			const struct pm_debug_search *search);

/* ---- address spaces, processes, threads ---------------------------------------------- */

/* Executable mappings only, sorted, without overlap. */
struct pm_space {
	PM_VEC(struct pm_mapping) maps;
	uint64_t epoch; /* changes with every change; unique in the whole table */
};

const struct pm_mapping *pm_space_find(const struct pm_space *space, uint64_t address);

struct pm_process {
	pid_t pid;
	uint32_t generation; /* of this pid: counts exec and reuse */
	struct pm_space space;
	/* The caller's; given to the callback of pm_procs_new() when the process is dropped
	 * or its pid is used again. An exec keeps it. */
	void *user;
};

struct pm_thread {
	pid_t pid, tid;
	char comm[16]; /* NUL-terminated */
};

struct pm_procs;

/* @free_user may be NULL; called with process->user when a process is dropped. */
struct pm_procs *pm_procs_new(void (*free_user)(void *user));
void pm_procs_free(struct pm_procs *procs);

const struct pm_module *pm_procs_module(const struct pm_procs *procs, uint32_t id);
size_t pm_procs_modules_len(const struct pm_procs *procs);
/* The id of an equal module, or a new one. Negative errno. */
int64_t pm_procs_intern_module(struct pm_procs *procs,
			       const struct pm_module_identity *identity);

/* The process, made (empty) if it was not known; NULL only without memory. The pointer
 * stays valid until that process is dropped: by pm_procs_free(), or by pm_procs_exit() of
 * others once a thousand exited after it. */
struct pm_process *pm_procs_get(struct pm_procs *procs, pid_t pid);
/* The thread, made if not known with the process's comm. NULL only without memory. */
struct pm_thread *pm_procs_thread(struct pm_procs *procs, pid_t pid, pid_t tid);

/*
 * Changes by records, in time order. An overlapped part of an older mapping goes away. Calls
 * with a non-executable @prot only cut. 0 or -ENOMEM; a range that ends before it begins is
 * -EINVAL and changes nothing.
 */
int pm_procs_map(struct pm_procs *procs, pid_t pid, uint64_t start, uint64_t len,
		 uint64_t pgoff, uint32_t prot,
		 const struct pm_module_identity *identity);
/* A new process copies its parent's mappings and comm; a new thread (pid == parent_pid)
 * only the comm. */
int pm_procs_fork(struct pm_procs *procs, pid_t pid, pid_t tid, pid_t parent_pid,
		  pid_t parent_tid);
/* @exec: all mappings go away and the generation rises. */
int pm_procs_comm(struct pm_procs *procs, pid_t pid, pid_t tid, const char *comm,
		  bool exec);
/* The thread is gone. It and its process stay for late samples, until the pid is used again
 * or a thousand others have exited, too. */
void pm_procs_exit(struct pm_procs *procs, pid_t pid, pid_t tid);

/* What kind of module a mapping of this path is; strips " (deleted)" by returning the length
 * of the path that counts. */
enum pm_module_kind pm_module_kind_of(const char *path, size_t *path_len);

/* One line of /proc/PID/maps (without newline). @path borrowed from @line, "" if none.
 * -EBADMSG when it has another form. */
struct pm_maps_line {
	uint64_t start, end, pgoff, inode;
	uint32_t prot, major, minor;
	const char *path;
	size_t path_len;
};
int pm_maps_line_parse(const char *line, size_t len, struct pm_maps_line *ret);

/* Reads /proc/PID/maps and the comm of each task into the table (attach; also self tests). */
int pm_procs_read(struct pm_procs *procs, pid_t pid, struct pm_error *err);

/* ---- launching ----------------------------------------------------------------------- */

/* A command, forked and stopped before its exec, so that events can be attached first. */
struct pm_launch {
	pid_t pid;
	int pidfd; /* readable when it has ended; -1 on kernels before 5.3 */
	int go_fd, error_fd; /* private */
	struct pm_launch_plan *plan; /* private */
};

/*
 * @argv NULL-terminated, argv[0] looked up in PATH; kept until pm_launch_release(). The child
 * gets the signal mask of this moment, and default actions where there are handlers now; so
 * call this before signals are blocked or ignored for one's own needs.
 */
int pm_launch_prepare(struct pm_launch *launch, char *const argv[], struct pm_error *err);
/*
 * Lets it exec. Negative errno when exec failed (the child is reaped then): the program's
 * exit status should be 127 for -ENOENT, else 126; @err says so in words.
 */
int pm_launch_go(struct pm_launch *launch, struct pm_error *err);
/* Kills a child that was never let go, closes fds. A running child is left alone. */
void pm_launch_release(struct pm_launch *launch);
/* Exit status as a shell counts it: code, or 128 + signal. @status of waitpid(2). */
int pm_exit_status(int status);

/* ---- kernel symbols ------------------------------------------------------------------ */

struct pm_kallsyms;

/*
 * Text symbols of /proc/kallsyms (@path NULL) sorted by address. -EACCES when all addresses
 * are zero (kptr_restrict): @err names the value and the fix.
 */
int pm_kallsyms_load(struct pm_kallsyms **ret, const char *path, struct pm_error *err);
void pm_kallsyms_free(struct pm_kallsyms *kallsyms);
/* The symbol that covers @address, or NULL; @module is "" for the kernel proper. Borrowed. */
const char *pm_kallsyms_find(const struct pm_kallsyms *kallsyms, uint64_t address,
			     const char **module);

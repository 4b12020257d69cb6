/* SPDX-License-Identifier: MIT */
/*
 * Processes, threads and their mappings; modules (files by identity); launching a
 * command; tracing; kernel symbols. All text from /proc is untrusted input.
 */
#pragma once

#include "pm/base.h"

#include <signal.h>
#include <sys/wait.h>

/* ---- modules ------------------------------------------------------------------------- */

enum pm_module_kind {
	PM_MODULE_FILE,
	PM_MODULE_KERNEL, /* "[kernel]": addresses are those of the kernel */
	PM_MODULE_VDSO,
	PM_MODULE_ANON, /* executable memory without a file: JIT code, trampolines */
};

enum {
	PM_MODULE_BUILD_ID_MAX = 20,
	PM_MODULE_NONE = -1,
};

/* The kernel uses the name "[vdso]" for every process. The vDSO of a 32-bit task, below 4
 * GiB, is not the module of our 64-bit one; this name distinguishes it. */
#define PM_VDSO32_PATH "[vdso32]"

/* The kernel's name for its page for probes in a process. */
#define PM_UPROBES_PATH "[uprobes]"

/* What a mapping shows about its file. Two mappings belong to one module if their paths
 * and identities agree (build-id if known, else device and inode). */
struct pm_module_identity {
	enum pm_module_kind kind;
	const char *path; /* as the target saw it; without " (deleted)" */
	uint32_t major, minor;
	uint64_t inode; /* 0: unknown */
	/* The generation of the inode. If the file system reuses the number of
	 * a deleted file, the new file gets another generation. Records
	 * contain it, /proc does not. */
	uint64_t generation;
	bool generation_known;
	uint8_t build_id[PM_MODULE_BUILD_ID_MAX];
	uint8_t build_id_len; /* 0: unknown */
};

struct pm_module {
	struct pm_module_identity identity; /* path owned by the table */
	/* One place where the module was seen mapped, for files that can only be reached
	 * through the process: /proc/PID/root/…, /proc/PID/map_files/START-END. If the
	 * leader of the process has ended, this is the number of another thread. */
	pid_t seen_pid;
	uint64_t seen_start, seen_end;
	/* CLOCK_REALTIME when the module was first seen, 0 if unknown: a file written
	 * later than that is not the mapped one. */
	int64_t seen_ns;
};

struct pm_mapping {
	uint64_t start, end; /* [start, end) avma */
	uint64_t pgoff; /* bytes into the file */
	uint32_t module; /* id */
};

/*
 * Opens the file of a module read-only, O_NONBLOCK|O_NOCTTY|O_CLOEXEC, and returns the fd
 * only if it is a regular file and is the mapped one. Tries in order
 * /proc/PID/map_files/…, /proc/PID/root/PATH and PATH, and checks each by build-id or
 * inode. If only a build-id is known, tries PATH first. -ENOENT: gone; -ESTALE: another
 * file is there now; -ENOTSUP: not a file (vdso, anon).
 */
int pm_module_open(const struct pm_module *module, struct pm_error *err);

/* The NT_GNU_BUILD_ID of an ELF file. 0; -ENODATA: it has none;
 * -ENOEXEC: not an ELF file. */
int pm_elf_build_id(int fd, uint8_t out[PM_MODULE_BUILD_ID_MAX], uint8_t *ret_len);

/*
 * Opens the regular file at @path in the same way. @pid 0: as this process sees it; else
 * @path is absolute and resolved in the root of that process, which symbolic links cannot
 * leave. -ENOTSUP: not a regular file.
 */
int pm_file_open(pid_t pid, const char *path);

/*
 * The same with only the rights of @user, if this process is root: the groups of @user,
 * access control lists, and each directory of the path are checked, too. -EPERM if the
 * process cannot take on these rights.
 */
struct pm_user;
int pm_file_open_as(const struct pm_user *user, const char *path);

/* ---- separate debug files ------------------------------------------------------------ */

/* Where to search. All zero is valid. */
struct pm_debug_search {
	const char *dir; /* absolute; NULL: /usr/lib/debug */
	/* A process whose root is searched after ours, and the file's path there; 0 and
	 * NULL: none, unknown. That root is not searched if the file is the one at that
	 * path in our own root: other processes use the file, too, and this process must
	 * not provide debug information for them. */
	pid_t pid;
	const char *path;
	/* How many bytes may still be read for checksums, which only files without a
	 * build-id need; decremented. NULL: 1 GiB for each file. */
	uint64_t *crc_bytes_left;
};

/*
 * The separate debug file of the ELF file at @fd (borrowed), opened as by
 * pm_module_open(). Candidates are DIR/.build-id/xx/….debug, and the name in
 * .gnu_debuglink beside the file, in .debug/ beside it, and below DIR in the file's
 * directory. Its build-id agrees with that of the file; if the file has no build-id, its
 * checksum agrees with that of the link. -ENOENT: there is none.
 */
int pm_debug_find(int fd, const struct pm_debug_search *search);
/* Searches by build-id only, of at most 64 bytes. */
int pm_debug_find_by_id(const void *id, size_t id_len,
			const struct pm_debug_search *search);
/* The file to which dwz moved parts of the debug information in @fd (borrowed): the one
 * whose build-id is in .gnu_debugaltlink. -ENOENT: there is none. */
int pm_debug_find_alt(int fd, const struct pm_debug_search *search);

/* ---- address spaces, processes, threads ---------------------------------------------- */

/* Executable mappings only, sorted, without overlap. */
struct pm_space {
	PM_VEC(struct pm_mapping) maps;
	uint64_t epoch; /* changes with every change; unique in the whole table */
};

const struct pm_mapping *pm_space_find(const struct pm_space *space, uint64_t address);

struct pm_process {
	pid_t pid;
	uint32_t generation; /* of this pid: incremented by exec and reuse */
	bool executed; /* it runs another program than at its start */
	struct pm_space space;
	/* Belongs to the caller; passed to the callback of pm_procs_new() when the
	 * process is dropped or its pid is reused. An exec keeps it. */
	void *user;
};

struct pm_thread {
	pid_t pid, tid;
	char comm[16]; /* NUL-terminated */
	uint64_t since_ns; /* caller's: since when it has this name; 0: unknown */
};

struct pm_procs;

/* @free_user may be NULL; it is called with process->user when a process is dropped. */
struct pm_procs *pm_procs_new(void (*free_user)(void *user));
void pm_procs_free(struct pm_procs *procs);

const struct pm_module *pm_procs_module(const struct pm_procs *procs, uint32_t id);
size_t pm_procs_modules_len(const struct pm_procs *procs);
/* The id of an equal module, or of a new one. Or negative errno. */
int64_t pm_procs_intern_module(struct pm_procs *procs,
			       const struct pm_module_identity *identity);
/* The same, but does not add a module; PM_MODULE_NONE: it is not known. */
int64_t pm_procs_find_module(const struct pm_procs *procs,
			     const struct pm_module_identity *identity);
/* The file of module @id has been written since it was first seen: later mappings
 * belong to another module. */
void pm_procs_retire_module(struct pm_procs *procs, uint32_t id);

/* The process, created (empty) if it was unknown; NULL only without memory. The pointer
 * is valid until that process is dropped: by pm_procs_free(), by pm_procs_exit() of
 * other processes after a thousand of them have exited, or, if there are very many
 * mappings, by any record. */
struct pm_process *pm_procs_get(struct pm_procs *procs, pid_t pid);
/* The thread, created with the comm of its process if it was unknown.
 * NULL only without memory. */
struct pm_thread *pm_procs_thread(struct pm_procs *procs, pid_t pid, pid_t tid);
/* The same, but does not create a thread: NULL if it is unknown. */
struct pm_thread *pm_procs_find_thread(const struct pm_procs *procs, pid_t pid,
				       pid_t tid);

/*
 * Changes by records, in order of time. The overlapped part of an older mapping is
 * removed; a call with a non-executable @prot does nothing else. 0 or -ENOMEM; -EINVAL,
 * without any change, if the range ends before it starts.
 */
int pm_procs_map(struct pm_procs *procs, pid_t pid, uint64_t start, uint64_t len,
		 uint64_t pgoff, uint32_t prot,
		 const struct pm_module_identity *identity);
/* A new process copies its parent's mappings and comm; a new thread (pid == parent_pid)
 * copies only the comm. */
int pm_procs_fork(struct pm_procs *procs, pid_t pid, pid_t tid, pid_t parent_pid,
		  pid_t parent_tid);
/* @exec: removes all mappings and increments the generation. */
int pm_procs_comm(struct pm_procs *procs, pid_t pid, pid_t tid, const char *comm,
		  bool exec);
/* The thread has ended. It and its process are kept for late samples until the pid is
 * reused or a thousand others have exited, too. */
void pm_procs_exit(struct pm_procs *procs, pid_t pid, pid_t tid);

/* ---- limits for endless recordings ----------------------------------------------------- */

enum {
	/* Rows of the table of modules. All further modules share one row,
	 * PM_MODULES_REFUSED_PATH. */
	PM_MODULES_MAX = 1 << 16,
};
#define PM_MODULES_REFUSED_PATH "[too many files]"

/* Whether this machine has no task with this number. */
bool pm_task_is_gone(pid_t id);
/* Calls pm_procs_exit() for all tasks that have ended without a record; the kernel may
 * have lost it. Makes a system call for each known task. */
void pm_procs_sweep(struct pm_procs *procs);
/* Passes the user data of all processes to the callback of pm_procs_new(). */
void pm_procs_release_users(struct pm_procs *procs);
/* Drops all modules that no process has mapped. @on_drop is called for each of them
 * before. Their ids are reused. 0 or -ENOMEM. */
int pm_procs_drop_modules(struct pm_procs *procs,
			  void (*on_drop)(void *user, uint32_t id), void *user);

struct pm_procs_stats {
	size_t processes, threads, modules, maps;
	size_t bytes; /* of all of these */
	uint64_t maps_forgotten; /* how often mappings of a process were dropped */
	uint64_t modules_refused; /* mappings of files beyond PM_MODULES_MAX */
};
void pm_procs_stats(const struct pm_procs *procs, struct pm_procs_stats *out);

/* The kind of module that a mapping of this path belongs to. Strips " (deleted)" by
 * returning the length of the path without it. */
enum pm_module_kind pm_module_kind_of(const char *path, size_t *path_len);

/* One line of /proc/PID/maps (without newline). @path is borrowed from @line, "" if none.
 * -EBADMSG: the line has another form. */
struct pm_maps_line {
	uint64_t start, end, pgoff, inode;
	uint32_t prot, major, minor;
	const char *path;
	size_t path_len;
};
int pm_maps_line_parse(const char *line, size_t len, struct pm_maps_line *out);

/* Reads /proc/PID/maps and the comm of each task into the table (for attaching, and for
 * self tests). If the leader has ended before its other threads, the mappings are read
 * from one of those; if no thread has any, the known mappings are kept. */
int pm_procs_read(struct pm_procs *procs, pid_t pid, struct pm_error *err);

/* ---- launching ----------------------------------------------------------------------- */

/* The user and groups that a command runs with. */
struct pm_user {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* owned */
	size_t groups_len;
};

/* @text: USER or USER:GROUP, names or numbers; without a group, the groups of the
 * user. -ENOENT, -EINVAL. */
int pm_user_find(const char *text, struct pm_user *out, struct pm_error *err);
/* The user @uid with its groups; a user unknown to this system has none. */
void pm_user_of_uid(uid_t uid, struct pm_user *out);
void pm_user_release(struct pm_user *user);

/* Signal state that a command inherits instead of the current one. */
struct pm_launch_signals {
	sigset_t mask;
	sigset_t defaults; /* ignored by us, but not by the command */
};

/* A command that is forked and stopped before its exec, so that events
 * can be attached first. */
struct pm_launch {
	pid_t pid;
	int pidfd; /* readable when the command has ended; -1 on kernels before 5.3 */
	int go_fd, error_fd; /* private */
	bool begun; /* private */
	/* How it ended, if the caller's tracer has waited for it meanwhile. */
	bool ended;
	int status;
	struct pm_launch_plan *plan; /* private */
};

/*
 * @argv is NULL-terminated; argv[0] is looked up in PATH. It must be valid until
 * pm_launch_release(). The child gets the current signal mask, and default actions where
 * there are handlers now; therefore call this before you block or ignore signals.
 */
int pm_launch_prepare(struct pm_launch *launch, char *const argv[], struct pm_error *err);
/* The same; right before its exec the child becomes @user, a text for
 * pm_user_find(). Only root may do this, else -EPERM. Its environment stays. NULL:
 * the user stays the same. With @signals, which may be NULL, it may be called after
 * signals are blocked or ignored. */
int pm_launch_prepare_as(struct pm_launch *launch, char *const argv[], const char *user,
			 const struct pm_launch_signals *signals, struct pm_error *err);
/*
 * Only sends the start signal to the child and does not wait, for callers that have to
 * handle the child (tracers) or other events meanwhile: the exec may wait for a file
 * system. Once error_fd is readable, pm_launch_go() returns the result. A child that
 * cannot be reached is killed.
 */
int pm_launch_begin(struct pm_launch *launch, struct pm_error *err);
/*
 * Lets the child exec. Negative errno if the exec failed (the child has then been
 * reaped): the program's exit status should be 127 for -ENOENT, else 126; @err contains a
 * message.
 */
int pm_launch_go(struct pm_launch *launch, struct pm_error *err);
/* Gives up a child that was started and has not reached its exec: kills it without
 * waiting for it. -ECANCELED. */
int pm_launch_abandon(struct pm_launch *launch, struct pm_error *err);
/* Kills a child that was never started, and closes the fds. A running
 * command is left alone. */
void pm_launch_release(struct pm_launch *launch);
/* Exit status in the convention of shells: code, or 128 + signal. @status
 * is that of waitpid(2). */
int pm_exit_status(int status);

/* ---- tracing: ptrace(2) -------------------------------------------------------------- */

/*
 * Traces processes: their threads can be stopped, examined, and resumed. This gives
 * samples where perf_event_open(2) is denied, and the stacks of all threads at one
 * moment. All functions must be called by the same thread, and nothing else may wait for
 * these processes meanwhile. There may only be one struct pm_trace at a time.
 */
struct pm_trace;

enum {
	PM_TRACE_REGS_MAX = 33, /* aarch64: x0…x30, sp, pc */
	PM_TRACE_STACK_MAX = 1024 * 4096, /* IOV_MAX pages */
	PM_TRACE_BELOW = 128,
};

/* Indexed by the DWARF register numbers of the task's ABI (psABI x86-64 fig. 3.36, i386
 * table 2.14, AADWARF64). */
struct pm_trace_regs {
	uint64_t value[PM_TRACE_REGS_MAX];
	uint64_t known; /* bit n: value[n] is known */
	uint64_t pc, sp;
	bool is_32; /* a 32-bit task on a 64-bit machine */
};

/* The fields of /proc/PID/task/TID/stat that we use (proc(5)). */
struct pm_stat_line {
	char comm[16];
	char state; /* R, S, D, T, t, Z, X, I, … */
	uint64_t ticks; /* user and system time, sysconf(_SC_CLK_TCK) */
	uint64_t virtual_bytes; /* of the address space; changes with every mapping */
	uint32_t cpu; /* where it last ran */
};
/* -EBADMSG if the text has another form; @out is unchanged then. */
int pm_stat_line_parse(const char *text, size_t len, struct pm_stat_line *out);

enum pm_trace_what {
	PM_TRACE_NEW, /* a thread or process created by a traced one; held */
	PM_TRACE_EXEC, /* @pid runs a new program, its other threads are gone; held */
	/* Stopped by pm_trace_tick() or _interrupt(), or, if watched,
	 * before a signal; held. */
	PM_TRACE_STOPPED,
	PM_TRACE_EXIT, /* gone */
};

struct pm_trace_event {
	enum pm_trace_what what;
	pid_t pid, tid;
	/* For PM_TRACE_NEW: the process that created it, even if that has ended since;
	 * for a thread, pid itself; 0: unknown. The thread that created it stays at that
	 * place until the new one is resumed, unless it was killed. */
	pid_t parent_pid;
	pid_t parent_tid; /* … and its thread that did so; 0: unknown */
	pid_t former_tid; /* for PM_TRACE_EXEC: former tid of the thread @tid; else 0 */
	int status; /* for PM_TRACE_EXIT, as by wait(2) */
	/* For PM_TRACE_STOPPED after a tick: it was on a CPU at the tick, and was not
	 * only waiting for one; true if the kernel does not report that. */
	bool had_cpu;
	uint64_t signals; /* how many signals have stopped the thread so far */
	int signal; /* for PM_TRACE_STOPPED: about to be delivered; 0: none */
	/* For PM_TRACE_NEW: a process that shares its parent's memory until
	 * it executes a program. */
	bool by_vfork;
};

struct pm_trace *pm_trace_new(void); /* NULL without memory */
/* Makes signals on their way to a thread events. Call this before
 * any process is traced. */
void pm_trace_watch_signals(struct pm_trace *trace);
/* Call this before any process is traced. Traced processes do not
 * outlive this process. */
void pm_trace_kill_with_us(struct pm_trace *trace);
/* Records the total resource usage of @pid, a child of ours, at its
 * PM_TRACE_EXIT, as by wait4(2). */
void pm_trace_watch_usage(struct pm_trace *trace, pid_t pid);
const struct rusage *pm_trace_usage(const struct pm_trace *trace);
/* Closes all fds. Threads that are still traced are detached when this process ends. */
void pm_trace_free(struct pm_trace *trace);

/*
 * Traces all threads of @pid by PTRACE_SEIZE: none of them stops or gets a signal. With
 * @children also traces the threads and processes that they create later (which may be
 * stopped for some microseconds at each fork, clone and exec).
 *
 * A failure is explained: -EPERM, -EACCES (another user, Yama, a container, already
 * traced), -ESRCH (also for a zombie). A leader that has ended before its other threads
 * cannot be traced, and is skipped. Set-user-ID programs that a traced process executes
 * get no privileges, see ptrace(2). Returns 1 if threads are created faster than they can
 * be found: some may be missing.
 */
int pm_trace_seize(struct pm_trace *trace, pid_t pid, bool children,
		   struct pm_error *err);
/* Traces only this thread of @pid, and not its children. */
int pm_trace_seize_thread(struct pm_trace *trace, pid_t pid, pid_t tid,
			  struct pm_error *err);
/* The smallest tid above @tid among the traced threads, or 0. */
pid_t pm_trace_next_tid(const struct pm_trace *trace, pid_t tid);
/* Whether a thread could be neither resumed nor detached: it continues
 * when this process ends. */
bool pm_trace_is_stuck(const struct pm_trace *trace);
/* The number of traced threads, including those that are still to be reported. */
size_t pm_trace_len(const struct pm_trace *trace);
/* How often a tick could not examine a thread (too many open
 * files), and left it alone. */
uint64_t pm_trace_unseen(const struct pm_trace *trace);

/*
 * Stops every thread that is on a CPU or waits for one at this moment, asynchronously.
 * @due_ns: when the tick should have been, CLOCK_MONOTONIC. Threads that sleep in a
 * system call are left alone, and cost a fraction of a microsecond. Returns how many
 * threads will stop.
 */
size_t pm_trace_tick(struct pm_trace *trace, uint64_t due_ns);
/* Stops every thread, asynchronously. The kernel restarts system calls in which they
 * sleep as after SIGSTOP and SIGCONT: see signal(7) for the few that return EINTR. */
void pm_trace_interrupt(struct pm_trace *trace);

/*
 * The next event. Does not wait: SIGCHLD indicates that a call is worthwhile. Returns 1,
 * 0 if there is nothing, or a negative error. The thread of the event is held until the
 * next call. That call resumes it with the signal that it was about to get, if any, or
 * leaves it in the group stop that it is in. One call handles at most some hundred stops
 * that do not concern the caller (signals on their way); if it then returns 0,
 * pm_trace_more() is true, and the caller should call again without waiting for SIGCHLD.
 */
int pm_trace_next(struct pm_trace *trace, struct pm_trace_event *out,
		  struct pm_error *err);
bool pm_trace_more(const struct pm_trace *trace);
/* The same, but waits; 0 if a signal handler of ours ran, or nothing is traced. */
int pm_trace_wait(struct pm_trace *trace, struct pm_trace_event *out,
		  struct pm_error *err);
/* Sets the signal that the thread of the last event gets when it is resumed; 0: none. */
void pm_trace_set_signal(struct pm_trace *trace, int signal);
/* Resumes the thread of the last event now, not only at the next call. */
void pm_trace_go_on(struct pm_trace *trace);
/* Detaches the thread of the last event. */
void pm_trace_let_go(struct pm_trace *trace);
/* Keeps the thread of the last event stopped until pm_trace_detach(). */
void pm_trace_keep(struct pm_trace *trace);

/* For a held or kept thread. -ESRCH: it was killed meanwhile. */
int pm_trace_regs(pid_t tid, struct pm_trace_regs *out);
/* CPU time used so far, in ns. Exact for a held thread if the kernel has
 * /proc/PID/schedstat, else in clock ticks. */
int pm_trace_cpu_ns(struct pm_trace *trace, pid_t tid, uint64_t *out);
/* As read by the last pm_trace_tick() or _interrupt(). NULL: not traced. */
const struct pm_stat_line *pm_trace_seen(const struct pm_trace *trace, pid_t tid);
/* Copies memory from @address upward, in one system call, until @len (at most
 * PM_TRACE_STACK_MAX) or the first unreadable page. Returns the number of bytes. */
size_t pm_trace_read(pid_t pid, uint64_t address, void *out, size_t len);
/* The same for a stack, with PM_TRACE_BELOW bytes below @sp (the red zone, psABI §3.2.2)
 * if they are readable. @below returns their number. */
size_t pm_trace_read_stack(pid_t pid, uint64_t sp, void *out, size_t len, size_t *below);

/*
 * Detaches all threads, each as soon as possible; calls of pm_trace_next() do the rest
 * and return only PM_TRACE_EXIT from then on. A thread in an uninterruptible sleep comes
 * last. When all are detached, pm_trace_len() is 0.
 */
void pm_trace_detach(struct pm_trace *trace);

/* ---- files about generated code -------------------------------------------------------- */

/* A process whose perf map and jitdumps are searched for, in its own
 * view of the file system. */
struct pm_jit_files {
	pid_t pid;
	pid_t ns_pid; /* its pid in its own pid namespace */
	uid_t euid;
	bool alive; /* it existed when this structure was initialized */
	int64_t since_ns; /* CLOCK_REALTIME; older files belong to another process */
	int tmp_fd; /* its /tmp, valid even after it has ended; -1: none */
};

/*
 * Remembers how to reach the files of @pid. If the process has ended, nothing about it is
 * known: then its files are searched for in our own view of the file system, with
 * @since_ns and our own user.
 */
void pm_jit_files_init(struct pm_jit_files *files, pid_t pid, int64_t since_ns);
void pm_jit_files_release(struct pm_jit_files *files);
/*
 * Opens /tmp/perf-PID.map for reading: a regular file owned by the process's user or by
 * root, not older than the process, not a symbolic link. -ENOENT: there is none; -ELOOP,
 * -ENOTSUP, -EPERM, -ESTALE: it may not be used; @err names the file and the reason.
 */
int pm_jit_files_perf_map(const struct pm_jit_files *files, struct pm_error *err);
/* False if another file has that name now. */
bool pm_jit_files_perf_map_is(const struct pm_jit_files *files, int fd);
/* The same for a jitdump that the process has mapped, by @mapped's path, device and
 * inode; if the inode is 0, only the path is known. */
int pm_jit_files_jitdump(const struct pm_jit_files *files,
			 const struct pm_module_identity *mapped, struct pm_error *err);
/* Whether this is the name of a jitdump: …/jit-NUMBER.dump. */
bool pm_is_jitdump_path(const char *path);

/* ---- kernel symbols ------------------------------------------------------------------ */

struct pm_kallsyms;

/*
 * Text symbols of /proc/kallsyms (@path NULL), sorted by address. -EACCES if all
 * addresses are zero (kptr_restrict): @err contains the value and the fix.
 */
int pm_kallsyms_load(struct pm_kallsyms **out, const char *path, struct pm_error *err);
void pm_kallsyms_free(struct pm_kallsyms *kallsyms);
/* A fingerprint of the loaded modules. It changes when a module is loaded, unloaded
 * or moved, which invalidates a table that was read before. 0: the kernel has no
 * modules, or hides them. */
uint64_t pm_kernel_modules_fingerprint(void);
/* The symbol that covers @address, or NULL; @module is "" for the
 * kernel itself. Borrowed. */
const char *pm_kallsyms_find(const struct pm_kallsyms *kallsyms, uint64_t address,
			     const char **module);
/* Whether that symbol stays valid until modules are loaded or unloaded. False if there is
 * none, and for code that the kernel generates at run time: BPF programs, trampolines. */
bool pm_kallsyms_is_lasting(const struct pm_kallsyms *kallsyms, uint64_t address);

/* Where a table is stored for later calls. */
struct pm_kallsyms_keep {
	const char *folder; /* NULL: "pmrec" in the effective user's cache directory */
	const char *path; /* of the kernel's text; NULL: /proc/kallsyms */
	const char *boot_id; /* struct pm_kernel_identity; "": the table is not stored */
	uint64_t modules; /* pm_kernel_modules_fingerprint(); must not have changed */
};
/*
 * pm_kallsyms_load(), but takes only a few milliseconds if an earlier call has stored the
 * table of the same boot with the same modules. Otherwise it reads the kernel's text and
 * stores the table. Symbols of a stored table that are not lasting may be wrong. It uses
 * no file that another user could have written. Failure to store a table is not an error.
 */
int pm_kallsyms_load_kept(struct pm_kallsyms **out, const struct pm_kallsyms_keep *keep,
			  struct pm_error *err);

/*
 * The running kernel and its boot. Its addresses change with each boot (KASLR), so names
 * from another time are valid only for the same boot.
 */
struct pm_kernel_identity {
	uint8_t build_id[PM_MODULE_BUILD_ID_MAX];
	uint8_t build_id_len; /* 0: unknown */
	char boot_id[37]; /* "": unknown */
};

/* Reads /sys/kernel/notes and /proc/sys/kernel/random/boot_id, unless
 * other paths are given. */
void pm_kernel_identity_read(struct pm_kernel_identity *out, const char *notes_path,
			     const char *boot_path);

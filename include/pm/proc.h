/* SPDX-License-Identifier: MIT */
/*
 * Processes, threads, what is mapped where; modules (files by identity); launching a
 * command; kernel symbols. All text of /proc is foreign input.
 */
#pragma once

#include "pm/base.h"

#include <signal.h>
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

/* The kernel says "[vdso]" of every process; that of a 32-bit task, below 4 GiB, is another
 * module than ours of 64 bits, and is told apart by this name. */
#define PM_VDSO32_PATH "[vdso32]"

/* What the kernel calls its page for probes in a process. */
#define PM_UPROBES_PATH "[uprobes]"

/* What a mapping shows of its file. Two mappings are of one module when path and identity
 * (build-id if known, else device and inode) agree. */
struct pm_module_identity {
	enum pm_module_kind kind;
	const char *path; /* as the target saw it; without " (deleted)" */
	uint32_t major, minor;
	uint64_t inode; /* 0: unknown */
	/* The generation of the inode. If the file system reuses the number of a deleted
	 * file, the new file gets another generation. Records have it, /proc does not. */
	uint64_t generation;
	bool generation_known;
	uint8_t build_id[PM_MODULE_BUILD_ID_MAX];
	uint8_t build_id_len; /* 0: unknown */
};

struct pm_module {
	struct pm_module_identity identity; /* path owned by the table */
	/* One place where it was seen mapped, for files that can be reached only through the
	 * process: /proc/PID/root/…, /proc/PID/map_files/START-END. Of a process whose leader
	 * has ended, the number of another thread. */
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
 * /proc/PID/map_files/…, /proc/PID/root/PATH, PATH, each checked by build-id or inode; PATH
 * comes first where a build-id is all that is known.
 * -ENOENT gone; -ESTALE something else stands there now; -ENOTSUP not a file (vdso, anon).
 */
int pm_module_open(const struct pm_module *module, struct pm_error *err);

/* The NT_GNU_BUILD_ID of an ELF file. 0, or -ENODATA without one, -ENOEXEC when no ELF. */
int pm_elf_build_id(int fd, uint8_t ret[PM_MODULE_BUILD_ID_MAX], uint8_t *ret_len);

/*
 * The regular file at @path, opened in the same way. @pid 0: as this process sees it; else
 * absolute, in the root of that process, which symbolic links do not leave. -ENOTSUP when it
 * is no regular file.
 */
int pm_file_open(pid_t pid, const char *path);

/*
 * The same with the rights of @user alone, if this process is root: the groups of @user,
 * access control lists, and each folder of the path count, too. -EPERM if the process
 * cannot take these rights.
 */
struct pm_user;
int pm_file_open_as(const struct pm_user *user, const char *path);

/* ---- separate debug files ------------------------------------------------------------ */

/* Where to look. All zero is legal. */
struct pm_debug_search {
	const char *dir; /* absolute; NULL: /usr/lib/debug */
	/* A process whose root is looked at after ours, and the file's path there; 0 and
	 * NULL: none, unknown. Not looked at when the file is what stands at that path where
	 * we are: others have it, too, for whom that process cannot speak. */
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
/* What dwz moved out of the debug information in @fd (borrowed): the file whose build-id
 * stands in .gnu_debugaltlink. -ENOENT when there is none. */
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
	uint32_t generation; /* of this pid: counts exec and reuse */
	bool executed; /* another program than the one that it began with */
	struct pm_space space;
	/* The caller's; given to the callback of pm_procs_new() when the process is dropped
	 * or its pid is used again. An exec keeps it. */
	void *user;
};

struct pm_thread {
	pid_t pid, tid;
	char comm[16]; /* NUL-terminated */
	uint64_t since_ns; /* the caller's: since when it is called that; 0: unknown */
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
/* The same of one that is known; PM_MODULE_NONE: it is not. */
int64_t pm_procs_find_module(const struct pm_procs *procs,
			     const struct pm_module_identity *identity);
/* The file of module @id was written since it was first seen: mappings from now on are of
 * another module. */
void pm_procs_retire_module(struct pm_procs *procs, uint32_t id);

/* The process, made (empty) if it was not known; NULL only without memory. The pointer
 * stays valid until that process is dropped: by pm_procs_free(), by pm_procs_exit() of
 * others once a thousand exited after it, or, with very many mappings, by any record. */
struct pm_process *pm_procs_get(struct pm_procs *procs, pid_t pid);
/* The thread, made if not known with the process's comm. NULL only without memory. */
struct pm_thread *pm_procs_thread(struct pm_procs *procs, pid_t pid, pid_t tid);
/* The same of one that is known, else NULL. */
struct pm_thread *pm_procs_find_thread(const struct pm_procs *procs, pid_t pid,
				       pid_t tid);

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

/* ---- what an endless recording must not keep ------------------------------------------- */

enum {
	/* Rows of the table of modules. All further modules are in one common row,
	 * PM_MODULES_REFUSED_PATH. */
	PM_MODULES_MAX = 1 << 16,
};
#define PM_MODULES_REFUSED_PATH "[too many files]"

/* Whether this machine has no task with this number. */
bool pm_task_is_gone(pid_t id);
/* Calls pm_procs_exit() for all tasks that have ended without a record, which the kernel
 * may have lost. Makes a system call for each known task. */
void pm_procs_sweep(struct pm_procs *procs);
/* Gives the user part of all processes to the callback of pm_procs_new(). */
void pm_procs_release_users(struct pm_procs *procs);
/* Drops all modules that no process has mapped; @on_drop gets each before. Their ids are used
 * again. 0 or -ENOMEM. */
int pm_procs_drop_modules(struct pm_procs *procs,
			  void (*on_drop)(void *user, uint32_t id), void *user);

struct pm_procs_stats {
	size_t processes, threads, modules, maps;
	size_t bytes; /* of these */
	uint64_t
		maps_forgotten; /* how often a process's mappings were too many to keep */
	uint64_t modules_refused; /* mappings of files that were too many */
};
void pm_procs_stats(const struct pm_procs *procs, struct pm_procs_stats *ret);

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

/* Reads /proc/PID/maps and the comm of each task into the table (attach; also self tests).
 * Where the leader has ended before its other threads, one of those shows the mappings; where
 * none does, what was known stands. */
int pm_procs_read(struct pm_procs *procs, pid_t pid, struct pm_error *err);

/* ---- launching ----------------------------------------------------------------------- */

/* As whom a command runs. */
struct pm_user {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* owned */
	size_t groups_len;
};

/* @text: USER or USER:GROUP, names or numbers; without a group those that the user is in.
 * -ENOENT, -EINVAL. */
int pm_user_find(const char *text, struct pm_user *ret, struct pm_error *err);
/* The user @uid with its groups; a user that this system does not know has none. */
void pm_user_of_uid(uid_t uid, struct pm_user *ret);
void pm_user_release(struct pm_user *user);

/* What a command inherits of our signals, where that is not what they are at the moment. */
struct pm_launch_signals {
	sigset_t mask;
	sigset_t defaults; /* ignored by us, but not by the command */
};

/* A command, forked and stopped before its exec, so that events can be attached first. */
struct pm_launch {
	pid_t pid;
	int pidfd; /* readable when it has ended; -1 on kernels before 5.3 */
	int go_fd, error_fd; /* private */
	bool begun; /* private */
	/* How it ended, where the caller's tracer has waited for it meanwhile. */
	bool ended;
	int status;
	struct pm_launch_plan *plan; /* private */
};

/*
 * @argv NULL-terminated, argv[0] looked up in PATH; kept until pm_launch_release(). The child
 * gets the signal mask of this moment, and default actions where there are handlers now; so
 * call this before signals are blocked or ignored for one's own needs.
 */
int pm_launch_prepare(struct pm_launch *launch, char *const argv[], struct pm_error *err);
/* The same; right before its exec the child becomes @user, a text for pm_user_find(), which is
 * for root only, else -EPERM. Its environment stays. NULL: it stays who we are. With @signals,
 * which may be NULL, it may also be called once signals are blocked or ignored. */
int pm_launch_prepare_as(struct pm_launch *launch, char *const argv[], const char *user,
			 const struct pm_launch_signals *signals, struct pm_error *err);
/*
 * Only says so to the child, for a caller that has to see to the child meanwhile, as a tracer
 * does, or to something else: the exec may wait for a file system. pm_launch_go(), once error_fd
 * is readable, then tells what came of it. A child that cannot be reached is killed.
 */
int pm_launch_begin(struct pm_launch *launch, struct pm_error *err);
/*
 * Lets it exec. Negative errno when exec failed (the child is reaped then): the program's
 * exit status should be 127 for -ENOENT, else 126; @err says so in words.
 */
int pm_launch_go(struct pm_launch *launch, struct pm_error *err);
/* Gives up a child that was let go and has not come to its exec: it is killed, not waited for.
 * -ECANCELED. */
int pm_launch_abandon(struct pm_launch *launch, struct pm_error *err);
/* Kills a child that was never let go, closes fds. A running child is left alone. */
void pm_launch_release(struct pm_launch *launch);
/* Exit status as a shell counts it: code, or 128 + signal. @status of waitpid(2). */
int pm_exit_status(int status);

/* ---- tracing: ptrace(2) -------------------------------------------------------------- */

/*
 * Processes whose threads can be stopped, looked at, and let go on: the way to samples where
 * perf_event_open(2) is denied, and to everybody's stack at one moment. All of it belongs to
 * one thread of ours, and nothing else may wait for these processes meanwhile. Only one
 * struct pm_trace at a time.
 */
struct pm_trace;

enum {
	PM_TRACE_REGS_MAX = 33, /* aarch64: x0…x30, sp, pc */
	PM_TRACE_STACK_MAX = 1024 * 4096, /* IOV_MAX pages */
	PM_TRACE_BELOW = 128,
};

/* By DWARF number of the task's ABI (psABI x86-64 fig. 3.36, i386 table 2.14, AADWARF64). */
struct pm_trace_regs {
	uint64_t value[PM_TRACE_REGS_MAX];
	uint64_t known; /* bit n: value[n] is known */
	uint64_t pc, sp;
	bool is_32; /* a 32-bit task of a 64-bit machine */
};

/* What is of use in /proc/PID/task/TID/stat (proc(5)). */
struct pm_stat_line {
	char comm[16];
	char state; /* R, S, D, T, t, Z, X, I, … */
	uint64_t ticks; /* user and system time, sysconf(_SC_CLK_TCK) */
	uint64_t virtual_bytes; /* of the address space; changes with every mapping */
	uint32_t cpu; /* where it ran last */
};
/* -EBADMSG when it has another form; @ret is unchanged then. */
int pm_stat_line_parse(const char *text, size_t len, struct pm_stat_line *ret);

enum pm_trace_what {
	PM_TRACE_NEW, /* a thread or process that the followed ones made; held */
	PM_TRACE_EXEC, /* a new program in @pid, whose other threads are gone; held */
	/* One that pm_trace_tick() or _interrupt() asked to; or, watched, before a signal; held. */
	PM_TRACE_STOPPED,
	PM_TRACE_EXIT, /* gone */
};

struct pm_trace_event {
	enum pm_trace_what what;
	pid_t pid, tid;
	/* Of PM_TRACE_NEW: the process that made it, though it may have ended since; pid itself
	 * for a thread; 0: unknown. The thread that made it is where it did so until this one
	 * goes on, unless it was killed. */
	pid_t parent_pid;
	pid_t parent_tid; /* … and which of its threads; 0: unknown */
	pid_t former_tid; /* of PM_TRACE_EXEC: of the thread that now is @tid; 0 otherwise */
	int status; /* of PM_TRACE_EXIT, as of wait(2) */
	/* Of PM_TRACE_STOPPED after a tick: it was on a CPU then, and did not only wait for
	 * one; true where the kernel does not tell. */
	bool had_cpu;
	uint64_t signals; /* for which the thread has stopped so far */
	int signal; /* of PM_TRACE_STOPPED: that it is about to get; 0: none */
	/* Of PM_TRACE_NEW: a process with its maker's memory, as long as it executes nothing. */
	bool by_vfork;
};

struct pm_trace *pm_trace_new(void); /* NULL without memory */
/* To be called before anybody is followed: signals on their way to a thread are events. */
void pm_trace_watch_signals(struct pm_trace *trace);
/* The same: who is followed does not outlive this process. */
void pm_trace_kill_with_us(struct pm_trace *trace);
/* What @pid, a child of ours, has used in all is known with its PM_TRACE_EXIT, as of wait4(2). */
void pm_trace_watch_usage(struct pm_trace *trace, pid_t pid);
const struct rusage *pm_trace_usage(const struct pm_trace *trace);
/* Closes what it has opened. Who is followed still is let go when this process ends. */
void pm_trace_free(struct pm_trace *trace);

/*
 * Follows all threads of @pid, by PTRACE_SEIZE: none of them stops or sees a signal. With
 * @children also the threads and processes that they will make (which may be stopped for
 * some microseconds at each fork, clone and exec). A refusal is explained: -EPERM, -EACCES
 * (another user, Yama, a container, a tracer it has already), -ESRCH (also a zombie). A leader
 * that has ended before its other threads cannot be followed, and is left out. Set-user-ID
 * programs that a followed process executes get no privileges, see ptrace(2). Returns 1 when
 * threads are made faster than they can be found: some may be missing.
 */
int pm_trace_seize(struct pm_trace *trace, pid_t pid, bool children,
		   struct pm_error *err);
/* Only this thread of @pid, and not its children. */
int pm_trace_seize_thread(struct pm_trace *trace, pid_t pid, pid_t tid,
			  struct pm_error *err);
/* The next above @tid of those that are followed, or 0. */
pid_t pm_trace_next_tid(const struct pm_trace *trace, pid_t tid);
/* Whether there is a thread that can be neither let go on nor let go: it goes on when this process
 * ends. */
bool pm_trace_is_stuck(const struct pm_trace *trace);
/* Threads that are followed now, with those that are still to be told of. */
size_t pm_trace_len(const struct pm_trace *trace);
/* How often a tick could not look at a thread (too many open files), and so left it alone. */
uint64_t pm_trace_unseen(const struct pm_trace *trace);

/*
 * Asks every thread to stop that is on a CPU or waits for one at this moment. @due_ns: when
 * the tick should have been, CLOCK_MONOTONIC. Threads that sleep in a system call are left
 * alone, and cost a fraction of a microsecond. Returns how many were asked.
 */
size_t pm_trace_tick(struct pm_trace *trace, uint64_t due_ns);
/* Asks every thread. System calls in which they sleep are restarted by the kernel as after
 * SIGSTOP and SIGCONT: see signal(7) for the few that return EINTR. */
void pm_trace_interrupt(struct pm_trace *trace);

/*
 * What has happened; does not wait: SIGCHLD tells when it is worth asking. 1, 0 when there is
 * nothing, or a negative error. The thread of the event is held until the next call, which
 * lets it go on with the signal that it was about to get, if any, or leaves it in the group
 * stop that it is in. One call takes some hundred stops at most that are none of the caller's
 * business (signals on their way): with 0, pm_trace_more() then tells to ask again without
 * waiting for a SIGCHLD.
 */
int pm_trace_next(struct pm_trace *trace, struct pm_trace_event *ret,
		  struct pm_error *err);
bool pm_trace_more(const struct pm_trace *trace);
/* The same, and waits; 0 when a handler of a signal to us ran, or nobody is followed. */
int pm_trace_wait(struct pm_trace *trace, struct pm_trace_event *ret,
		  struct pm_error *err);
/* Which signal the thread of the last event gets when it goes on; 0: none. */
void pm_trace_set_signal(struct pm_trace *trace, int signal);
/* Lets the thread of the last event go on now, and not only with the next call. */
void pm_trace_go_on(struct pm_trace *trace);
/* Lets the thread of the last event go for good. */
void pm_trace_let_go(struct pm_trace *trace);
/* Keeps the thread of the last event stopped until pm_trace_detach(). */
void pm_trace_keep(struct pm_trace *trace);

/* Of a held or kept thread. -ESRCH: it was killed meanwhile. */
int pm_trace_regs(pid_t tid, struct pm_trace_regs *ret);
/* CPU time that it has used so far, in ns; exact for a held thread where the kernel has
 * /proc/PID/schedstat, else in clock ticks. */
int pm_trace_cpu_ns(struct pm_trace *trace, pid_t tid, uint64_t *ret);
/* As the last pm_trace_tick() or _interrupt() saw it. NULL: not followed. */
const struct pm_stat_line *pm_trace_seen(const struct pm_trace *trace, pid_t tid);
/* Copies from @address upward, in one system call, until @len (at most PM_TRACE_STACK_MAX)
 * or the first page that cannot be read. Returns how many bytes. */
size_t pm_trace_read(pid_t pid, uint64_t address, void *ret, size_t len);
/* The same of a stack, with PM_TRACE_BELOW bytes below @sp (the red zone, psABI §3.2.2) where
 * they can be read: @below tells how many. */
size_t pm_trace_read_stack(pid_t pid, uint64_t sp, void *ret, size_t len, size_t *below);

/*
 * Lets everybody go, each as soon as it can be; pm_trace_next() does the rest and gives only
 * PM_TRACE_EXIT from then on. A thread in an uninterruptible sleep comes last: pm_trace_len()
 * tells when all are gone.
 */
void pm_trace_detach(struct pm_trace *trace);

/* ---- files about generated code -------------------------------------------------------- */

/* A process whose perf map and jitdumps are looked for, as it sees its files. */
struct pm_jit_files {
	pid_t pid;
	pid_t ns_pid; /* its number in its own namespace of pids */
	uid_t euid;
	bool alive; /* it was, when this was made */
	int64_t since_ns; /* CLOCK_REALTIME: what was written before is another process's */
	int tmp_fd; /* its /tmp, also after it has ended; -1: none */
};

/*
 * Keeps what leads to the files of @pid. Of a process that has ended nothing is known: then
 * its files are looked for where this process sees them, as @since_ns and our own user say.
 */
void pm_jit_files_init(struct pm_jit_files *files, pid_t pid, int64_t since_ns);
void pm_jit_files_release(struct pm_jit_files *files);
/*
 * Opens /tmp/perf-PID.map for reading: a regular file of the process's user or of root, not
 * older than the process, no symbolic link. -ENOENT when there is none; -ELOOP, -ENOTSUP,
 * -EPERM, -ESTALE when it may not be used; @err names it and says why.
 */
int pm_jit_files_perf_map(const struct pm_jit_files *files, struct pm_error *err);
/* False when another file stands under that name now. */
bool pm_jit_files_perf_map_is(const struct pm_jit_files *files, int fd);
/* The same for a jitdump that the process has mapped: @mapped's path, device and inode; of
 * inode 0 nothing but the path is known. */
int pm_jit_files_jitdump(const struct pm_jit_files *files,
			 const struct pm_module_identity *mapped, struct pm_error *err);
/* Whether it is a name of a jitdump: …/jit-NUMBER.dump. */
bool pm_is_jitdump_path(const char *path);

/* ---- kernel symbols ------------------------------------------------------------------ */

struct pm_kallsyms;

/*
 * Text symbols of /proc/kallsyms (@path NULL) sorted by address. -EACCES when all addresses
 * are zero (kptr_restrict): @err names the value and the fix.
 */
int pm_kallsyms_load(struct pm_kallsyms **ret, const char *path, struct pm_error *err);
void pm_kallsyms_free(struct pm_kallsyms *kallsyms);
/* A fingerprint of the loaded modules. It changes when a module is loaded, unloaded or
 * moved, which makes a table that was read before wrong. 0: the kernel has no modules,
 * or hides them. */
uint64_t pm_kernel_modules_fingerprint(void);
/* The symbol that covers @address, or NULL; @module is "" for the kernel proper. Borrowed. */
const char *pm_kallsyms_find(const struct pm_kallsyms *kallsyms, uint64_t address,
			     const char **module);
/* Whether that symbol remains the right one until modules are loaded or unloaded. Not so if
 * there is none, and for code that the kernel makes at run time: BPF programs, trampolines. */
bool pm_kallsyms_is_lasting(const struct pm_kallsyms *kallsyms, uint64_t address);

/* Where a table is kept for the next call. */
struct pm_kallsyms_keep {
	const char *folder; /* NULL: "pmrec" in the cache folder of the effective user */
	const char *path; /* of the kernel's text; NULL: /proc/kallsyms */
	const char *boot_id; /* struct pm_kernel_identity; "": nothing is kept */
	uint64_t
		modules; /* pm_kernel_modules_fingerprint(); the table is kept if it still is that */
};
/*
 * pm_kallsyms_load(), which takes a few milliseconds if an earlier call has kept the table of
 * the same boot with the same modules. Otherwise it reads the kernel's text and keeps the
 * table. Of symbols that are not lasting, a kept table may be wrong. It uses no file that
 * another user could have written. If a table cannot be kept, that is no error.
 */
int pm_kallsyms_load_kept(struct pm_kallsyms **ret, const struct pm_kallsyms_keep *keep,
			  struct pm_error *err);

/*
 * Which kernel runs here, and since when. Its addresses change with each boot (KASLR): names
 * of another time are true only with the same boot.
 */
struct pm_kernel_identity {
	uint8_t build_id[PM_MODULE_BUILD_ID_MAX];
	uint8_t build_id_len; /* 0: unknown */
	char boot_id[37]; /* "": unknown */
};

/* From /sys/kernel/notes and /proc/sys/kernel/random/boot_id, unless other paths are given. */
void pm_kernel_identity_read(struct pm_kernel_identity *ret, const char *notes_path,
			     const char *boot_path);

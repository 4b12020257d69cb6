/* SPDX-License-Identifier: MIT */
/*
 * Functions for programs of the suite that run or watch others: starting and ending a
 * command, our signals, targets that are not commands, the machine, and command line
 * words that all of these programs have in common.
 */
#pragma once

#include "pm/options.h"
#include "pm/perf.h"
#include "pm/probe.h"
#include "pm/proc.h"

#include <getopt.h>
#include <sys/resource.h>
#include <sys/utsname.h>

enum {
	PM_STATUS_FAILED = 125, /* this program failed, not the command */
	PM_STATUS_CANNOT_RUN = 126,
	PM_STATUS_NOT_FOUND = 127,
};

/* ---- the command and our signals ----------------------------------------------------- */

/* The command, and requests of the user who runs us. To be initialised with
 * PM_CHILD_INIT. */
struct pm_child {
	struct pm_launch launch;
	struct pm_launch_signals signals; /* for the command: as we inherited them */
	struct rlimit files; /* RLIMIT_NOFILE for the command, likewise */
	int signal_fd; /* -1: none yet */
	bool running; /* started, and not reaped yet */
	int launch_error; /* why it could not be started, negative; 0: it was */
	int status; /* of wait4(2) */
	bool status_known;
	int wait_error; /* the error of wait4(2), negative, if the status is unknown */
	bool ending; /* the caller asked it to end; not counted in `interrupts` */
	/* Private: a thread in an uninterruptible sleep, and how often it has slept. */
	pid_t stuck_tid;
	uint64_t stuck_sleeps, stuck_since_ns;
	struct rusage usage;
	unsigned int interrupts; /* how often we were asked to stop */
	unsigned int snapshots; /* number of SIGUSR2 since the last snapshot */
};
#define PM_CHILD_INIT                                                                    \
	{                                                                                \
		.launch = { .pidfd = -1, .go_fd = -1, .error_fd = -1 }, .signal_fd = -1, \
	}

/* Forks the command, stopped, to run as @user (NULL: the current one). With
 * @data_on_stdout its output goes to stderr, so that stdout has only our data. It may be
 * called again (-r) once the previous command has ended: everything except the caught
 * signals is reset. */
int pm_child_prepare(struct pm_child *child, char **command, const char *user,
		     bool data_on_stdout, struct pm_error *err);
/* From this call on, pm_child_signals() reads the signals, including SIGUSR2 with
 * @snapshots. The command does not inherit this, whether it was prepared before or is
 * prepared later. Further calls do nothing. */
int pm_child_catch_signals(struct pm_child *child, bool snapshots, struct pm_error *err);
void pm_child_release(struct pm_child *child);
/* pm_launch_go(); updates `running` and `launch_error`. */
int pm_child_go(struct pm_child *child, struct pm_error *err);
/* Whether there is something to exec: a first check that searches as execvp(3) does. */
bool pm_child_is_runnable(const char *name);
/* Handles pending signals. The first request to stop is forwarded to the command, unless
 * the terminal has already sent it to the command; the second kills it. */
void pm_child_signals(struct pm_child *child);
/* Gets the command's exit status and usage if it has ended. */
void pm_child_reap(struct pm_child *child);
/* Whether the command was asked to end, but has waited uninterruptibly for a second. If
 * so, reports that as @program, and the command does not count as running any more, so
 * that nothing waits for its end. To be called about every tenth of a second. */
bool pm_child_give_up_stuck(struct pm_child *child, const char *program);
/* This program's exit status if the command could not be started. */
static inline int pm_child_launch_status(int error)
{
	return error == -ENOENT ? PM_STATUS_NOT_FOUND : PM_STATUS_CANNOT_RUN;
}

uint64_t pm_now_ns(void); /* CLOCK_MONOTONIC */

/* ---- targets ------------------------------------------------------------------------- */

struct pm_task_list {
	PM_VEC(pid_t) list;
};

/* The targets as typed. All zero if there are none, that is, for a command. */
struct pm_targets_request {
	struct pm_task_list pids, tids; /* -p, -t */
	bool all_cpus; /* -a; also set by -C */
	const char *cpus; /* -C; NULL: all */
	const char *cgroup; /* -G; NULL: any */
	const char *uid; /* -u: a name or number; NULL: any */
	bool no_inherit; /* -i; here it only changes the text */
	bool only_pid; /* --only-pid; likewise */
	bool with_children; /* with -p: also all descendants of the process */
};
void pm_targets_request_release(struct pm_targets_request *request);
/* Whether there is any target, so that no command is needed. */
bool pm_targets_request_any(const struct pm_targets_request *request);

/* A process (tid 0) or a thread that existed at the start. */
struct pm_root {
	pid_t pid, tid;
	/* starttime of proc(5); distinguishes it from a later one with the same id */
	uint64_t began;
	int pidfd; /* -1: not permitted by the kernel or a limit */
	bool ended;
	bool child; /* of a named process; its end does not end the recording */
	uint64_t cpu_ns; /* CPU time used before the start */
	bool cpu_known;
};

struct pm_targets {
	enum pm_perf_target kind;
	PM_VEC(struct pm_root) roots; /* PM_PERF_TASKS */
	PM_VEC(pid_t) tids; /* all threads of the roots, sorted */
	PM_VEC(pid_t) late; /* threads that were created while events were being opened */
	const char *cpus;
	int cgroup_fd,
		ends_fd; /* -1: none; ends_fd is readable if a root may have ended */
	size_t living;
	bool with_children;
	size_t forbidden; /* children that we are not permitted to record */
	size_t children_left_out; /* by --only-pid */
	char *text; /* for people: "-p 123" */
};

void pm_targets_init(struct pm_targets *targets);
void pm_targets_release(struct pm_targets *targets);
/* Finds the targets. If one does not exist, @err says so in one clear line. An empty
 * request means a command. */
int pm_targets_find(struct pm_targets *targets, const struct pm_targets_request *request,
		    struct pm_error *err);
/* Fills in the options that pm_perf_open() needs. */
void pm_targets_fill(const struct pm_targets *targets, struct pm_perf_options *perf);
/* To be called after events have been opened: finds `late`, and reads the roots' CPU
 * time. */
int pm_targets_begin(struct pm_targets *targets, struct pm_error *err);
/* To be called after the late processes are followed: finds the processes that these had
 * started before, and adds them to `late`. Returns 1 if there are any, 0, or -ENOMEM. */
int pm_targets_again(struct pm_targets *targets, struct pm_error *err);
/* Returns the first root that runs as another user if we have no privileges, otherwise
 * 0. */
pid_t pm_targets_foreign(const struct pm_targets *targets);
/* Sets *out to the user that all roots run as. Returns false if they run as several
 * users, or if a user is unknown. */
bool pm_targets_user(const struct pm_targets *targets, uid_t *out);
/* Checks which roots have ended. Returns true if all have. */
bool pm_targets_ended(struct pm_targets *targets);
/* Sets *out to the CPU time of the roots since pm_targets_begin(). Returns false if it is
 * unknown. */
bool pm_targets_cpu_ns(const struct pm_targets *targets, uint64_t *out);

/* ---- named places -------------------------------------------------------------------- */

/* Determines where places are looked up: in the targets, or, if there are none, in the
 * command. @ids holds data of @out, and is released by the caller. Returns 0 or
 * -ENOMEM. */
int pm_places_context(struct pm_probe_context *out, struct pm_task_list *ids,
		      const struct pm_targets_request *request, char *const *command);
/* pm_probes_resolve() with that context. */
int pm_places_resolve(struct pm_probes *probes, struct pm_event_specs *specs,
		      const struct pm_targets_request *request, char *const *command,
		      struct pm_error *err);

/* ---- the machine --------------------------------------------------------------------- */

struct pm_host {
	struct utsname names;
	char cpu_model[128]; /* "": unknown */
	char virt[32]; /* "": none, or unknown */
	uint32_t cpus;
	struct pm_kernel_identity running;
};

void pm_host_read(struct pm_host *host);

/*
 * Sets *out to the CPU time, in ns, that a hypervisor gave to others while a task here
 * was runnable (proc_stat(5), "steal"), since boot, on @cpus ("0,2-4") or on all CPUs
 * (NULL). It grows by whole clock ticks. perf's clocks include this time; the CPU time of
 * getrusage(2) excludes it with CONFIG_PARAVIRT_TIME_ACCOUNTING. Returns false if it is
 * unknown.
 */
bool pm_stolen_ns(const char *cpus, uint64_t *out);
/* The same for one line of /proc/stat. Also returns false if the line's CPU is not in
 * @cpus. */
bool pm_stolen_parse(const char *line, const char *cpus, long ticks_per_s, uint64_t *out);
/* Writes a sentence for a warning that @stolen_ns were stolen while the event @clock
 * counted @clock_ns. Returns false, and writes nothing, if that is too little to warn
 * about. */
bool pm_stolen_text(char *text, size_t size, const char *clock, uint64_t clock_ns,
		    uint64_t stolen_ns);

/* ---- command line words -------------------------------------------------------------- */

/*
 * Strings are borrowed. Messages about wrong words refer to `@program --help`. Unless
 * stated otherwise, all functions return 0, or -EINVAL with one clear line.
 */

/* Always returns -EINVAL. */
int pm_usage(struct pm_error *err, const char *program, const char *format, ...)
	PM_PRINTF(3, 4);
/* Reports a word that getopt_long() rejected: @result is its '?' or ':', @word the word
 * in question. Always returns -EINVAL, and suggests the nearest of @options. */
int pm_usage_option(struct pm_error *err, const char *program,
		    const struct option *options, int result, const char *word);
/* Parses the number before the next comma or the end of *text, and advances *text to
 * there. */
bool pm_parse_u64_part(const char **text, uint64_t *out);
/* "1.5s", "500ms", "2m", "1h"; a bare number is in seconds. */
int pm_parse_duration(uint64_t *ret_ns, const char *option, const char *text,
		      const char *program, struct pm_error *err);
/* "100M", "1.5G"; a bare number is in bytes. */
int pm_parse_size(uint64_t *ret_bytes, const char *option, const char *text,
		  const char *program, struct pm_error *err);
/* Any text except an empty one; @what: the thing that it names. */
int pm_parse_name(const char *option, const char *what, const char *text,
		  const char *program, struct pm_error *err);
/* A separator of fields; `\t` is a tab. */
int pm_parse_separator(const char **out, const char *text, const char *program,
		       struct pm_error *err);

enum pm_color_wish {
	PM_COLOR_AUTO,
	PM_COLOR_ALWAYS,
	PM_COLOR_NEVER,
};
/* For --color: sets an enum pm_color_wish. */
int pm_color_set(void *to, const struct pm_option_use *use, struct pm_error *err);
/* AUTO: on a terminal, unless NO_COLOR or TERM forbid it. */
bool pm_color_is_wanted(enum pm_color_wish wish, int fd);

/* For -p and -t: adds to a struct pm_task_list. Also returns -ENOMEM. */
int pm_task_list_set(void *to, const struct pm_option_use *use, struct pm_error *err);
/* For -C: sets a struct pm_targets_request. */
int pm_targets_set_cpus(void *to, const struct pm_option_use *use, struct pm_error *err);
/* To be called after all options: only one kind of target is allowed. */
int pm_targets_check(struct pm_targets_request *request, const char *program,
		     struct pm_error *err);

/* ---- results ------------------------------------------------------------------------- */

/* To be called first in main(): a file that is opened later must not get the descriptor
 * of a standard stream that was closed, or warnings would be written to the file. The
 * command still finds that stream closed. */
void pm_streams_hold(void);

/*
 * Standard output, or a file that appears under its name only when it is complete. Until then
 * it has no name, or a temporary one in the same directory if the file system cannot do that.
 * Devices and pipes are written to directly.
 */
struct pm_sink {
	FILE *file;
	const char *path; /* NULL: standard output */
	char *temporary; /* NULL: it has none */
	/* the final name, with symbolic links resolved; NULL: written to directly */
	char *target;
};

/* @path NULL or "-": standard output. A new file gets @mode, subject to the umask. */
int pm_sink_open(struct pm_sink *out, const char *path, mode_t mode,
		 struct pm_error *err);
/* Flushes, closes, and gives the file its name. Reports the first write error. */
int pm_sink_close(struct pm_sink *sink, struct pm_error *err);
/* If the sink was not closed: removes the file. */
void pm_sink_release(struct pm_sink *sink);
/* Returns the columns for text: those of the terminal, otherwise the number in the environment
 * variable COLUMNS, but at least 60. 0: no limit, because @fd is a file or a pipe. */
unsigned pm_sink_width(int fd);
/* Whether the user's locale has only ASCII characters; does not set the locale. */
bool pm_sink_is_ascii(void);

/* SPDX-License-Identifier: MIT */
/*
 * What every program of the suite that runs or watches others needs: a command's life and our
 * signals, whom to watch when it is no command, the machine, and the words of the command line
 * that all of them know.
 */
#pragma once

#include "pm/perf.h"
#include "pm/probe.h"
#include "pm/proc.h"

#include <getopt.h>
#include <sys/resource.h>
#include <sys/utsname.h>

enum {
	PM_STATUS_FAILED = 125, /* the program itself, not the command */
	PM_STATUS_CANNOT_RUN = 126,
	PM_STATUS_NOT_FOUND = 127,
};

/* ---- the command and our signals ----------------------------------------------------- */

/* The command, and the wishes of whoever runs us. To be begun with PM_CHILD_INIT. */
struct pm_child {
	struct pm_launch launch;
	struct pm_launch_signals signals; /* for the command: as they were with us */
	struct rlimit files; /* RLIMIT_NOFILE for the command, in the same way */
	int signal_fd; /* -1: none yet */
	bool running; /* let go, not yet reaped */
	int launch_error; /* why it could not be let go, negative; 0: it could */
	int status; /* of wait4(2) */
	bool status_known;
	int wait_error; /* why it is not, negative, where wait4(2) failed */
	bool ending; /* the caller asked it to end, beside `interrupts` */
	uint64_t stuck_since_ns; /* private */
	struct rusage usage;
	unsigned int interrupts; /* how often we were asked to stop */
	unsigned int snapshots; /* SIGUSR2 since the last one */
};
#define PM_CHILD_INIT                                                                    \
	{                                                                                \
		.launch = { .pidfd = -1, .go_fd = -1, .error_fd = -1 }, .signal_fd = -1, \
	}

/* Forks the command, stopped, to run as @user (NULL: as we do). With @data_on_stdout its output
 * goes to stderr, so that our data has stdout to itself. Once the command of before has ended,
 * it may be called again (-r): all but the caught signals begins anew. */
int pm_child_prepare(struct pm_child *child, char **command, const char *user,
		     bool data_on_stdout, struct pm_error *err);
/* From here on signals are read by pm_child_signals(). With @snapshots SIGUSR2 is one of them.
 * The command inherits none of that, whether it was prepared before or is after. Called again,
 * it does nothing. */
int pm_child_catch_signals(struct pm_child *child, bool snapshots, struct pm_error *err);
void pm_child_release(struct pm_child *child);
/* pm_launch_go(), and what follows for `running` and `launch_error`. */
int pm_child_go(struct pm_child *child, struct pm_error *err);
/* Whether exec has something to try: a first look, as execvp(3) searches. */
bool pm_child_is_runnable(const char *name);
/* Takes what signals there are. The first wish to stop is handed on to a command that did not
 * get it from the terminal; the second kills it. */
void pm_child_signals(struct pm_child *child);
/* Takes the command's exit status and usage when it has ended. */
void pm_child_reap(struct pm_child *child);
/* Whether the command, which was asked to end, has waited for a second for what no signal
 * interrupts. Then this says so for @program, and the command does not count as running any more:
 * nobody waits for its end. To be called every tenth of a second or so. */
bool pm_child_give_up_stuck(struct pm_child *child, const char *program);
/* This program's exit status for a command that could not be let go. */
static inline int pm_child_launch_status(int error)
{
	return error == -ENOENT ? PM_STATUS_NOT_FOUND : PM_STATUS_CANNOT_RUN;
}

uint64_t pm_now_ns(void); /* CLOCK_MONOTONIC */

/* ---- whom to watch ------------------------------------------------------------------- */

struct pm_task_list {
	PM_VEC(pid_t) list;
};

/* As typed. All zero: nobody, a command. */
struct pm_targets_request {
	struct pm_task_list pids, tids; /* -p, -t */
	bool all_cpus; /* -a, and with -C */
	const char *cpus; /* -C, NULL: all */
	const char *cgroup; /* -G, NULL: any */
	const char *uid; /* -u, name or number; NULL: any */
	bool no_inherit; /* -i: here only for the text */
	bool only_pid; /* --only-pid: the same */
	bool with_children; /* of -p: also the processes that it has started, and theirs */
};
void pm_targets_request_release(struct pm_targets_request *request);
/* Whether it means anybody, so that there need be no command. */
bool pm_targets_request_any(const struct pm_targets_request *request);

/* A process (tid 0) or a thread that was there at the beginning. */
struct pm_root {
	pid_t pid, tid;
	uint64_t
		began; /* starttime of proc(5): tells it from a later one of this number */
	int pidfd; /* -1: kernel or limits do not allow it */
	bool ended;
	bool child; /* of one that was named; its end is not the end of the recording */
	uint64_t cpu_ns; /* used before */
	bool cpu_known;
};

struct pm_targets {
	enum pm_perf_target kind;
	PM_VEC(struct pm_root) roots; /* PM_PERF_TASKS */
	PM_VEC(pid_t) tids; /* all threads of the roots, sorted */
	PM_VEC(pid_t) late; /* threads that began while events were being opened */
	const char *cpus;
	int cgroup_fd,
		ends_fd; /* -1: none; the second is readable when a root may have ended */
	size_t living;
	bool with_children;
	size_t forbidden; /* children that we may not record */
	size_t children_left_out; /* by --only-pid */
	char *text; /* for people: "-p 123" */
};

void pm_targets_init(struct pm_targets *targets);
void pm_targets_release(struct pm_targets *targets);
/* Finds them; one clear line where one is not there. A request of nobody means a command. */
int pm_targets_find(struct pm_targets *targets, const struct pm_targets_request *request,
		    struct pm_error *err);
/* What pm_perf_open() has to know of them. */
void pm_targets_fill(const struct pm_targets *targets, struct pm_perf_options *perf);
/* Once events are open: finds `late`, and takes the roots' CPU time. */
int pm_targets_begin(struct pm_targets *targets, struct pm_error *err);
/* After the late processes are followed: finds the processes that these started
 * earlier, and makes them `late`. Returns 1 if there are any, 0, or -ENOMEM. */
int pm_targets_again(struct pm_targets *targets, struct pm_error *err);
/* The first root that acts as another user than we, who has no privileges. 0: nobody. */
pid_t pm_targets_foreign(const struct pm_targets *targets);
/* The user that all roots run as; false if they run as several users, or that is
 * unknown. */
bool pm_targets_user(const struct pm_targets *targets, uid_t *ret);
/* Looks who has ended. True when that are all of them. */
bool pm_targets_ended(struct pm_targets *targets);
/* CPU time of the roots since _begin(), if that is known. */
bool pm_targets_cpu_ns(const struct pm_targets *targets, uint64_t *ret);

/* ---- places that are named ----------------------------------------------------------- */

/* Where to look for them: in the targets, else in the command. @ids, which the caller releases,
 * is what @ret stands on. 0 or -ENOMEM. */
int pm_places_context(struct pm_probe_context *ret, struct pm_task_list *ids,
		      const struct pm_targets_request *request, char *const *command);
/* pm_probes_resolve() there. */
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
 * CPU time that a hypervisor gave to others while somebody here wanted to run (proc_stat(5),
 * "steal"): of @cpus, as 0,2-4, or of all (NULL), since the machine began, by clock ticks. The
 * clocks of perf go on in it; CPU time of getrusage(2) leaves it out with
 * CONFIG_PARAVIRT_TIME_ACCOUNTING. False: unknown.
 */
bool pm_stolen_ns(const char *cpus, uint64_t *ret);
/* The same of one line of /proc/stat; false also where that is not of @cpus. */
bool pm_stolen_parse(const char *line, const char *cpus, long ticks_per_s, uint64_t *ret);
/* A sentence for a warning that @stolen_ns were taken while the event @clock came to @clock_ns.
 * False, and no text: that is too little to be worth one. */
bool pm_stolen_text(char *text, size_t size, const char *clock, uint64_t clock_ns,
		    uint64_t stolen_ns);

/* ---- words of command lines ---------------------------------------------------------- */

/*
 * Texts are borrowed. @program is the name in front of `--help`, which a message about a wrong
 * word points to. All of these return 0 or -EINVAL with one clear line unless they say more.
 */

/* Always -EINVAL. */
int pm_usage(struct pm_error *err, const char *program, const char *format, ...)
	PM_PRINTF(3, 4);
/* What getopt_long() did not take: @result is its '?' or ':', @word the word that it looked
 * at. Always -EINVAL, with the nearest of @options. */
int pm_usage_option(struct pm_error *err, const char *program,
		    const struct option *options, int result, const char *word);
/* The number in front of a comma or the end, where *text then is. */
bool pm_parse_u64_part(const char **text, uint64_t *ret);
int pm_parse_count(uint64_t *ret, const char *option, const char *text,
		   const char *program, struct pm_error *err);
/* "1.5s", "500ms", "2m", "1h"; a bare number counts seconds. */
int pm_parse_duration(uint64_t *ret_ns, const char *option, const char *text,
		      const char *program, struct pm_error *err);
/* "100M", "1.5G"; a bare number counts bytes. */
int pm_parse_size(uint64_t *ret_bytes, const char *option, const char *text,
		  const char *program, struct pm_error *err);
/* Any text but none; @what it names. */
int pm_parse_name(const char *option, const char *what, const char *text,
		  const char *program, struct pm_error *err);
/* Of fields in a line; `\t` is a tab. */
int pm_parse_separator(const char **ret, const char *text, const char *program,
		       struct pm_error *err);

enum pm_color_wish {
	PM_COLOR_AUTO,
	PM_COLOR_ALWAYS,
	PM_COLOR_NEVER,
};
int pm_parse_color(enum pm_color_wish *ret, const char *text, const char *program,
		   struct pm_error *err);
/* auto: on a terminal, unless NO_COLOR or TERM say otherwise. */
bool pm_color_is_wanted(enum pm_color_wish wish, int fd);

/* Takes -a, -C, -G, -i, -p, -t or -u; 1: it is none of them. Also -ENOMEM. */
int pm_targets_option(struct pm_targets_request *request, int option, const char *text,
		      const char *program, struct pm_error *err);
/* Once all options are taken: one kind of target at a time. */
int pm_targets_check(struct pm_targets_request *request, const char *program,
		     struct pm_error *err);

/* ---- where results go ---------------------------------------------------------------- */

/* The first thing that main() does: what is opened later shall not get the number of a standard
 * stream that was closed, or warnings would go into it. Commands find it closed as it was. */
void pm_streams_hold(void);

/*
 * Standard output, or a file that appears under its name only when it is complete: until
 * then it is a temporary one beside it. Devices and pipes are written to as they are.
 */
struct pm_sink {
	FILE *file;
	const char *path; /* NULL: standard output */
	char *temporary; /* NULL: written to directly */
	char *target; /* with `temporary`: the name to be, behind symbolic links */
};

/* @path NULL or "-": standard output. A new file has @mode, without what the umask takes. */
int pm_sink_open(struct pm_sink *ret, const char *path, mode_t mode,
		 struct pm_error *err);
/* Writes out, closes and gives it its name. The error is the first that any write had. */
int pm_sink_close(struct pm_sink *sink, struct pm_error *err);
/* Without closing first: removes what was written. */
void pm_sink_release(struct pm_sink *sink);
/* Columns of text there: those of a terminal, but at least 60; of anything else 80. */
unsigned pm_sink_width(int fd);
/* Whether the user's locale has no other characters than ASCII's; without setting it. */
bool pm_sink_is_ascii(void);

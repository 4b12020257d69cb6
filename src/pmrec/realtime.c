/* SPDX-License-Identifier: MIT */
#include "realtime.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "progress.h"

enum {
	NICE_BEST = -20,
	/* limit of CPU time; also for the work before and after the recording */
	ROUND_MS_MAX = 500,
	DEFAULT_PRIORITY = 1,
	/* The priority is restored when rounds are shorter than this ... */
	SHORT_ROUND_MS = 50,
	/* ... for this long. The time doubles each time the priority is restored. */
	AGAIN_MS_FIRST = 1000,
	AGAIN_MS_MAX = 64000,
};

/* sigevent(7): glibc defines this name only since 2.38. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct pm_rec_realtime {
	int priority; /* of SCHED_FIFO while the rings are read; 0: not set by us */
	int nice_before, nice; /* equal: not changed by us */
	int policy_before;
	struct sched_param param_before;
	int refused; /* errno of SCHED_FIFO, 0: granted */
	timer_t watchdog;
	bool watched;
	bool policy_is_ours; /* the policy is the default one, so we may change it */
	bool hurried, hurried_by_fifo;
	unsigned int times_given_up;
	bool is_given_up; /* the priority is given up at present, and that is counted */
	uint64_t again_ms; /* see AGAIN_MS_FIRST */
	uint64_t calm_since_ns; /* start of the short rounds; 0: the last was not short */
	uint64_t round_ns; /* CPU time of the thread when the last round started */
};

/* Set by the signal handler. A process makes only one recording at a time. */
static volatile sig_atomic_t given_up;
static volatile sig_atomic_t nice_given_up_to;

/* Signal handler of the watchdog: gives up the priority. Runs in the thread that took too
 * long. An unprivileged process cannot clear SCHED_RESET_ON_FORK, so the flag is kept.
 * sched_setscheduler(2) is a plain system call and therefore safe here. */
static void give_up(int sig)
{
	static const struct sched_param none;
	int saved = errno;

	(void)sig;
	sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
	setpriority(PRIO_PROCESS, 0, nice_given_up_to);
	given_up = 1;
	errno = saved;
}

static int watchdog_signal(void)
{
	return SIGRTMIN + 3;
}

/* Creates the timer that limits the CPU time. Without it, SCHED_FIFO is not used. */
static bool make_watchdog(struct pm_rec_realtime *realtime)
{
	struct sigaction action = { .sa_handler = give_up, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = watchdog_signal() };
	sigset_t set;

	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	sigemptyset(&set);
	sigaddset(&set, watchdog_signal());
	given_up = 0;
	if (sigaction(watchdog_signal(), &action, NULL) < 0 ||
	    pthread_sigmask(SIG_UNBLOCK, &set, NULL) != 0)
		return false;
	realtime->watched =
		timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &realtime->watchdog) == 0;
	return realtime->watched;
}

static void set_watchdog(const struct pm_rec_realtime *realtime, int ms)
{
	const struct itimerspec limit = {
		.it_value = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }
	};

	if (realtime->watched)
		timer_settime(realtime->watchdog, 0, &limit, NULL);
}

static void drop_watchdog(struct pm_rec_realtime *realtime)
{
	if (realtime->watched)
		timer_delete(realtime->watchdog);
	realtime->watched = false;
}

static void raise_nice(struct pm_rec_realtime *realtime)
{
	for (int nice = NICE_BEST; nice < realtime->nice_before; nice++)
		if (setpriority(PRIO_PROCESS, 0, nice) == 0) {
			realtime->nice = nice;
			return;
		}
}

static int explain_no_realtime(const struct pm_rec_realtime *realtime, int priority,
			       struct pm_error *err)
{
	struct rlimit limit;

	if (realtime->refused != EPERM)
		return pm_error_set(err, -realtime->refused, "-r %d: SCHED_FIFO: %s",
				    priority, strerror(realtime->refused));
	if (getrlimit(RLIMIT_RTPRIO, &limit) < 0)
		limit.rlim_cur = 0;
	pm_error_set(
		err, -EPERM,
		"-r %d: real-time priority is not allowed here (RLIMIT_RTPRIO is %llu, "
		"and CAP_SYS_NICE is missing)",
		priority, (unsigned long long)limit.rlim_cur);
	pm_error_fix(err, "sudo, or without -r");
	return -EPERM;
}

static void restore_policy(const struct pm_rec_realtime *realtime)
{
	sched_setscheduler(0, realtime->policy_before | SCHED_RESET_ON_FORK,
			   &realtime->param_before);
}

static void restore_nice(struct pm_rec_realtime *realtime)
{
	if (realtime->nice != realtime->nice_before)
		setpriority(PRIO_PROCESS, 0, realtime->nice_before);
	realtime->nice = realtime->nice_before;
}

int pm_rec_realtime_hurry(struct pm_rec_session *session, struct pm_error *err)
{
	const struct sched_param param = { .sched_priority = DEFAULT_PRIORITY };
	struct pm_rec_realtime *realtime;

	if (session->options->realtime < 0)
		return 0;
	session->realtime = realtime = calloc(1, sizeof(*realtime));
	if (!realtime)
		return pm_error_set(err, -ENOMEM, "out of memory");
	realtime->policy_before = sched_getscheduler(0);
	sched_getparam(0, &realtime->param_before);
	errno = 0;
	realtime->nice_before = realtime->nice = getpriority(PRIO_PROCESS, 0);
	nice_given_up_to = realtime->nice_before;
	realtime->policy_is_ours = realtime->policy_before == SCHED_OTHER && errno == 0;
	/* A nice value above 0 was set on purpose; keep it. */
	realtime->hurried = realtime->policy_is_ours && realtime->nice_before <= 0 &&
			    make_watchdog(realtime);
	if (!realtime->hurried)
		return 0;
	raise_nice(realtime);
	/* Without SCHED_RESET_ON_FORK: the threads that write the file are created during
	 * this work and inherit the priority, because the end of a recording waits for
	 * them. */
	realtime->hurried_by_fifo = sched_setscheduler(0, SCHED_FIFO, &param) == 0;
	set_watchdog(realtime, ROUND_MS_MAX);
	return 0;
}

int pm_rec_realtime_begin(struct pm_rec_session *session, struct pm_error *err)
{
	int wanted = session->options->realtime;
	struct sched_param param = { .sched_priority =
					     wanted > 0 ? wanted : DEFAULT_PRIORITY };
	struct pm_rec_realtime *realtime = session->realtime;

	if (!realtime)
		return 0;
	set_watchdog(realtime, 0);
	given_up = 0;
	if (!session->perf) {
		if (realtime->hurried)
			restore_policy(realtime);
		restore_nice(realtime);
		realtime->hurried = false;
		return 0;
	}
	/* Keep a policy that was set on purpose. */
	if (wanted == 0 && !realtime->policy_is_ours)
		return 0;
	if ((realtime->watched || make_watchdog(realtime)) &&
	    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) == 0) {
		realtime->priority = param.sched_priority;
		realtime->again_ms = AGAIN_MS_FIRST;
		return 0;
	}
	realtime->refused = errno;
	if (wanted > 0)
		return explain_no_realtime(realtime, wanted, err);
	raise_nice(realtime);
	return 0;
}

static uint64_t thread_cpu_time_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Restores the priority after it was given up, once this thread has emptied the rings
 * quickly for a while. A round ends when the rings are empty; then the next round starts.
 */
static void try_again(struct pm_rec_realtime *realtime)
{
	const struct sched_param param = { .sched_priority = realtime->priority };
	uint64_t cpu_ns = thread_cpu_time_ns(), now_ns = pm_now_ns();
	bool was_short = cpu_ns - realtime->round_ns < SHORT_ROUND_MS * 1000000ull;

	realtime->round_ns = cpu_ns;
	if (!was_short || realtime->calm_since_ns == 0)
		realtime->calm_since_ns = was_short ? now_ns : 0;
	if (realtime->calm_since_ns == 0 ||
	    now_ns - realtime->calm_since_ns < realtime->again_ms * 1000000ull)
		return;
	realtime->calm_since_ns = 0;
	given_up = 0;
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) < 0) {
		given_up = 1;
		return;
	}
	if (realtime->again_ms < AGAIN_MS_MAX)
		realtime->again_ms *= 2;
}

void pm_rec_realtime_round(struct pm_rec_session *session)
{
	struct pm_rec_realtime *realtime = session->realtime;

	if (!realtime || realtime->priority == 0)
		return;
	if (given_up) {
		realtime->times_given_up += !realtime->is_given_up;
		realtime->is_given_up = true;
		try_again(realtime);
	}
	if (!given_up) {
		realtime->is_given_up = false;
		set_watchdog(realtime, ROUND_MS_MAX);
	}
}

static void warn_given_up(struct pm_rec_session *session)
{
	unsigned int times = session->realtime->times_given_up;
	char text[192];

	snprintf(text, sizeof(text),
		 "real-time priority was given up %u time%s, %s: reading what a file or "
		 "process says took more than 0.5 s at once",
		 times, pm_plural_s(times),
		 given_up ? "at last for good" : "for a while");
	pm_rec_warn(session, text);
}

void pm_rec_realtime_end(struct pm_rec_session *session)
{
	struct pm_rec_realtime *realtime = session->realtime;

	if (!realtime)
		return;
	set_watchdog(realtime, 0);
	if (realtime->priority > 0) {
		realtime->times_given_up += given_up && !realtime->is_given_up;
		if (realtime->times_given_up > 0)
			warn_given_up(session);
	}
	if (given_up || !realtime->hurried) {
		if (realtime->priority > 0)
			restore_policy(realtime);
		restore_nice(realtime);
	} else {
		set_watchdog(realtime, ROUND_MS_MAX);
	}
	realtime->priority = 0;
}

bool pm_rec_realtime_hurry_nice(const struct pm_rec_session *session, int *out)
{
	const struct pm_rec_realtime *realtime = session->realtime;

	if (!realtime || !realtime->hurried || realtime->nice >= 0)
		return false;
	*out = realtime->nice;
	return true;
}

bool pm_rec_realtime_is_refused(const struct pm_rec_session *session)
{
	return session->realtime && session->realtime->refused != 0;
}

bool pm_rec_realtime_hurries(const struct pm_rec_session *session)
{
	const struct pm_rec_realtime *realtime = session->realtime;

	return realtime && realtime->hurried && realtime->hurried_by_fifo && !given_up;
}

void pm_rec_realtime_print(const struct pm_rec_session *session)
{
	const struct pm_rec_realtime *realtime = session->realtime;

	if (realtime && realtime->priority > 0)
		fprintf(stderr, "pmrec: reads the buffers with SCHED_FIFO %d\n",
			realtime->priority);
	else if (realtime && realtime->refused)
		fprintf(stderr, "pmrec: reads the buffers at nice %d (SCHED_FIFO: %s)\n",
			realtime->nice, strerror(realtime->refused));
	else if (realtime || session->perf)
		fprintf(stderr,
			"pmrec: reads the buffers at the priority it was given\n");
}

void pm_rec_realtime_free(struct pm_rec_realtime *realtime)
{
	if (realtime)
		drop_watchdog(realtime);
	free(realtime);
}

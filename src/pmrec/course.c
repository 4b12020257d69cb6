/* SPDX-License-Identifier: MIT */
#include "course.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "clock-evidence.h"
#include "drain.h"
#include "early-names.h"
#include "follow.h"
#include "generation.h"
#include "hold.h"
#include "kernel-names.h"
#include "off-cpu.h"
#include "output.h"
#include "progress.h"
#include "snapshot.h"
#include "titles.h"

enum {
	POLL_MS = 100, /* a ring that fills slowly does not wake us */
	ROUND_HURRY_MS = 2, /* between rounds until pm_rec_session.hurry_until_ns */
	ROUND_ALERT_MS = 10, /* ... and until alert_until_ns */
	ROUND_US_MIN = 50,
	OTHER_BYTES_PER_US = 10, /* rate of records other than samples, as at an exec */
	WAITING_MS = 1000, /* until a stopped recording reports what it waits for */
	WAITING_TICK_MS = 100,
};
#define US_NS     1000ull
#define MS_NS     1000000ull
#define SECOND_NS 1000000000ull
#define NEVER     UINT64_MAX

struct course {
	struct pm_rec_session *session;
	PM_VEC(struct pollfd) fds; /* the rings start at `rings_at` */
	size_t rings_at;
	uint64_t enable_at, end_at; /* CLOCK_MONOTONIC */
	uint64_t round_ns; /* the longest wait between two rounds */
	bool by_time; /* the rings are read by a timer, at random intervals */
	bool rings_wake;
	uint64_t random; /* generator state, see wait_of_round() */
	uint64_t second_at; /* when each_second() is due again */
	bool begun; /* events have been enabled once */
	bool enabled; /* events are enabled now */
	bool more; /* there is more to read from /proc */
};

/* Indices of the fixed file descriptors. */
enum {
	FD_SIGNALS,
	FD_COMMAND,
	FD_CONTROL,
	FD_ENDS,
	FDS_FIXED,
};

static int poll_init(struct course *course)
{
	struct pm_rec_session *session = course->session;
	size_t len;
	const int *rings = pm_perf_poll_fds(session->perf, &len);
	const int fixed[FDS_FIXED] = {
		[FD_SIGNALS] = session->child.signal_fd,
		[FD_COMMAND] = session->child.launch.pidfd,
		[FD_CONTROL] = session->control.fd,
		[FD_ENDS] = session->targets.ends_fd,
	};

	if (pm_vec_reserve(&course->fds, FDS_FIXED + len) < 0)
		return -ENOMEM;
	course->fds.len = FDS_FIXED + len;
	for (size_t i = 0; i < course->fds.len; i++) {
		int fd = -1;

		if (i < FDS_FIXED)
			fd = fixed[i];
		else if (course->rings_wake)
			fd = rings[i - FDS_FIXED];
		course->fds.data[i] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	return 0;
}

/* Stops polling rings whose tasks have all ended: they would report POLLHUP forever
 * (perf_poll()). */
static void poll_drop_ended(struct course *course)
{
	for (size_t i = FDS_FIXED; i < course->fds.len; i++)
		if (course->fds.data[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			course->fds.data[i].fd = -1;
}

/*
 * Decides how the rings are read: on a timer or when they fill up, and how often.
 *
 * The clock of a CPU samples the task that runs when it ticks. If ticks wake the reader,
 * it runs right after ticks and never at one, so the clock counts the reader's time for
 * the target. Also, a target that is interrupted by a reader may have to let another task
 * run first. Its turn on the CPU then ends with a tick, rather than at any time, and its
 * samples represent more time than it had (a third more beside one busy task).
 *
 * The rings of such events are therefore read on a timer, at times that are not in step
 * with any clock, and often enough that samples at the requested rate fill at most a
 * quarter of a ring. The clock of a task stops while the reader runs, so its rings may
 * wake the reader.
 */
static void plan_rounds(struct course *course)
{
	struct pm_rec_session *session = course->session;
	uint64_t quarter = pm_perf_quarter_ns(session->perf);
	uint64_t bytes =
		pm_perf_ring_pages(session->perf) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t others = bytes / 2 / OTHER_BYTES_PER_US * US_NS;

	course->round_ns = POLL_MS * MS_NS;
	course->rings_wake = true;
	course->random = pm_now_ns();
	if (!session->evidence || session->options->overwrite || quarter == 0)
		return;
	course->by_time = true;
	/* Switches are more frequent than samples: they may fill a ring early. */
	course->rings_wake = !pm_perf_is_paced(session->perf) || session->off_cpu;
	if (course->round_ns > quarter)
		course->round_ns = quarter;
	if (course->round_ns > others)
		course->round_ns = others;
	if (course->round_ns < ROUND_US_MIN * US_NS)
		course->round_ns = ROUND_US_MIN * US_NS;
}

/* Returns how long to wait for the next round. With by_time, this is a random time
 * between half of round_ns and round_ns (xorshift64, Marsaglia 2003). */
static uint64_t wait_of_round(struct course *course, uint64_t now)
{
	uint64_t round = course->round_ns, half;

	if (now < course->session->alert_until_ns && round > ROUND_ALERT_MS * MS_NS)
		round = ROUND_ALERT_MS * MS_NS;
	if (now < course->session->hurry_until_ns && round > ROUND_HURRY_MS * MS_NS)
		round = ROUND_HURRY_MS * MS_NS;
	if (!course->by_time)
		return round;
	half = round / 2;
	course->random ^= course->random << 13;
	course->random ^= course->random >> 7;
	course->random ^= course->random << 17;
	return half + course->random % (half + 1);
}

static struct timespec timeout_of_round(struct course *course, uint64_t now)
{
	uint64_t next = PM_MIN(course->enable_at, course->end_at);
	uint64_t wait = wait_of_round(course, now);

	if (course->more || next <= now)
		return (struct timespec){ 0 };
	if (wait > next - now)
		wait = next - now;
	return (struct timespec){ .tv_sec = (time_t)(wait / SECOND_NS),
				  .tv_nsec = (long)(wait % SECOND_NS) };
}

void pm_rec_course_wait(struct pm_rec_session *session, bool failed)
{
	struct pm_child *child = &session->child;
	uint64_t begin = pm_now_ns();
	bool said = false;

	while (child->running) {
		struct pollfd fds[] = { { .fd = child->signal_fd, .events = POLLIN },
					{ .fd = child->launch.pidfd, .events = POLLIN } };

		poll(fds, PM_ARRAY_LEN(fds), WAITING_TICK_MS);
		pm_child_signals(child);
		pm_child_reap(child);
		if (pm_child_give_up_stuck(child, "pmrec"))
			return;
		if (child->running && !said && pm_now_ns() - begin > WAITING_MS * MS_NS) {
			pm_rec_say_waiting(session, failed);
			said = true;
		}
	}
}

/* ---- the recording loop ------------------------------------------------------------------- */

/* Enables the events. No records report what happened while they were disabled, so the
 * state of processes is read again. */
static int enable_events(struct course *course, uint64_t now)
{
	struct pm_rec_session *session = course->session;
	int ret;

	course->enable_at = NEVER;
	if (course->enabled)
		return 0;
	course->enabled = true;
	ret = pm_perf_enable(session->perf);
	if (ret == 0)
		ret = pm_rec_follow_again(session);
	pm_rec_off_cpu_resume(session, pm_now_ns());
	if (course->begun)
		return ret;
	course->begun = true;
	session->begin_ns = now;
	if (session->options->duration_ns > 0)
		course->end_at = now + session->options->duration_ns;
	return ret;
}

/* Disables the events. Blocked time ends here, because no records report when tasks
 * return to a CPU from now on. */
static int disable_events(struct course *course, struct pm_error *err)
{
	struct pm_rec_session *session = course->session;
	int ret;

	course->enable_at = NEVER;
	if (!course->enabled)
		return 0;
	course->enabled = false;
	pm_rec_off_cpu_until(session, pm_now_ns());
	ret = pm_perf_disable(session->perf);
	if (ret == 0 && session->off_cpu)
		ret = pm_rec_drain(session, false, err);
	if (ret < 0)
		return ret;
	return pm_rec_off_cpu_pause(session);
}

static int obey_command(struct course *course, enum pm_rec_command command, uint64_t now,
			struct pm_error *err)
{
	struct pm_rec_session *session = course->session;
	struct pm_str text = { 0 };
	int ret = 0;

	switch (command) {
	case PM_REC_CONTROL_ENABLE:
		ret = enable_events(course, now);
		break;
	case PM_REC_CONTROL_DISABLE:
		ret = disable_events(course, err);
		break;
	case PM_REC_CONTROL_SNAPSHOT:
		if (session->options->overwrite)
			ret = pm_rec_snapshot(session, err);
		else
			pm_rec_warn(session, "--control: snapshot needs --overwrite");
		break;
	case PM_REC_CONTROL_STOP:
		if (session->end == PM_REC_END_NONE)
			session->end = PM_REC_END_CONTROL;
		break;
	case PM_REC_CONTROL_UNKNOWN:
		pm_str_printf(&text, "--control: unknown command \"%s\"",
			      session->control.line);
		if (!text.failed)
			pm_rec_warn(session, text.data);
		pm_str_release(&text);
		return 0;
	case PM_REC_CONTROL_NONE:
	case PM_REC_CONTROL_PING:
		break;
	}
	pm_rec_control_ack(&session->control);
	return ret;
}

static int read_control_commands(struct course *course, uint64_t now,
				 struct pm_error *err)
{
	struct pm_rec_control *from = &course->session->control;
	enum pm_rec_command command;

	if (from->fd < 0 || course->fds.data[FD_CONTROL].revents == 0)
		return 0;
	pm_rec_control_read(from);
	course->fds.data[FD_CONTROL].fd = from->fd;
	while ((command = pm_rec_control_next(from)) != PM_REC_CONTROL_NONE) {
		int ret = obey_command(course, command, now, err);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static void find_end(struct course *course, uint64_t now)
{
	struct pm_rec_session *session = course->session;
	const struct pm_child *child = &session->child;
	bool look = course->fds.data[FD_ENDS].revents != 0 || now >= course->second_at;

	if (session->end != PM_REC_END_NONE)
		return;
	if (child->interrupts > 0)
		session->end = PM_REC_END_SIGNAL;
	else if (child->launch.pid > 0 && !child->running)
		session->end = PM_REC_END_COMMAND;
	else if (look && pm_targets_ended(&session->targets))
		session->end = PM_REC_END_TARGETS;
	else if (now >= course->end_at)
		session->end = PM_REC_END_TIME;
}

/* The work of each second: writes what must be in the file even if the recording is
 * killed, and opens events on CPUs that have come online. */
static int each_second(struct course *course, uint64_t now, struct pm_error *err)
{
	struct pm_rec_session *session = course->session;
	int ret;

	if (now < course->second_at)
		return 0;
	course->second_at = now + SECOND_NS;
	ret = pm_rec_hold_release(session, pm_rec_hold_until(now));
	if (ret == 0)
		ret = pm_file_writer_flush(session->writer);
	if (ret < 0)
		return ret;
	pm_rec_generation_sweep(session);
	pm_rec_output_let_go(session, false);
	pm_rec_early_names_reap(session);
	pm_rec_progress(session, now);
	ret = pm_perf_check_cpus(session->perf, err);
	if (ret == 0)
		return 0;
	/* A failure on one CPU does not end the recording of the others. */
	if (ret < 0)
		pm_rec_warn(session, err->text);
	*err = (struct pm_error){ 0 };
	ret = pm_rec_follow_cpus(session);
	if (ret < 0)
		return ret;
	return poll_init(course);
}

static int run_round(struct course *course, struct pm_error *err)
{
	struct pm_rec_session *session = course->session;
	struct pm_child *child = &session->child;
	struct timespec wait = timeout_of_round(course, pm_now_ns());
	uint64_t now;
	int ret = 0;

	if (session->evidence)
		pm_rec_clock_evidence_pause(session->evidence);
	ppoll(course->fds.data, course->fds.len, &wait, NULL);
	/* SIGCHLD also arrives on FD_SIGNALS. */
	if (course->fds.data[FD_SIGNALS].revents ||
	    course->fds.data[FD_COMMAND].revents) {
		pm_child_signals(child);
		pm_child_reap(child);
	}
	now = pm_now_ns();
	poll_drop_ended(course);
	if (now >= course->enable_at)
		ret = enable_events(course, now);
	if (ret == 0)
		ret = read_control_commands(course, now, err);
	if (ret == 0 && child->snapshots > 0) {
		child->snapshots = 0;
		ret = pm_rec_snapshot(session, err);
	}
	if (ret < 0)
		return ret;
	find_end(course, now);
	ret = pm_rec_follow_read(session);
	course->more = ret > 0;
	session->end_ns = now;
	if (session->end != PM_REC_END_NONE) {
		/* The rings still report switches: the last drain may read some that came
		 * later. */
		pm_rec_off_cpu_until(session, now);
		pm_perf_disable(session->perf);
		if (session->options->overwrite)
			pm_perf_snapshot(session->perf, true);
	}
	if (ret >= 0)
		ret = pm_rec_drain(session, session->end != PM_REC_END_NONE, err);
	pm_rec_early_names_look(session);
	pm_rec_kernel_names_begin(session);
	if (ret >= 0)
		ret = pm_rec_titles_collect(session);
	if (ret >= 0)
		ret = pm_rec_generation_collect(session);
	/* The samples may have reached a limit that ends the recording. */
	if (session->end != PM_REC_END_NONE)
		pm_perf_disable(session->perf);
	if (ret < 0)
		return ret;
	return each_second(course, now, err);
}

static bool is_of_cpus(const struct pm_rec_session *session)
{
	return pm_perf_per_cpu(session->perf) || session->targets.kind == PM_PERF_CPUS ||
	       session->targets.kind == PM_PERF_CGROUP;
}

static int begin_evidence(struct pm_rec_session *session)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t len;

	if (!is_of_cpus(session))
		return 0;
	pm_perf_events(session->perf, &len);
	session->evidence = pm_rec_clock_evidence_new(cpus > 0 ? (size_t)cpus : 1, len);
	if (!session->evidence)
		return -ENOMEM;
	return 0;
}

static int begin_course(struct course *course, struct pm_error *err)
{
	const struct pm_rec_options *options = course->session->options;
	uint64_t now = pm_now_ns();
	int ret;

	course->second_at = now + SECOND_NS;
	course->session->hurry_until_ns = now + POLL_MS * MS_NS;
	course->begun = options->delay_ms == 0 && !options->wait_for_control;
	course->enabled = course->begun;
	if (course->begun || options->wait_for_control)
		course->enable_at = NEVER;
	else
		course->enable_at = now + options->delay_ms * MS_NS;
	if (course->begun && options->duration_ns > 0)
		course->end_at = now + options->duration_ns;
	else
		course->end_at = NEVER;
	if (begin_evidence(course->session) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	plan_rounds(course);
	if (poll_init(course) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	if (!course->begun || !options->attach)
		return 0;
	course->session->begin_ns = now;
	ret = pm_perf_enable(course->session->perf);
	if (ret == 0)
		return 0;
	return pm_error_set(err, ret, "an event cannot be enabled: %s", strerror(-ret));
}

int pm_rec_course_run(struct pm_rec_session *session, struct pm_error *err)
{
	struct course course = { .session = session };
	struct pm_child *child = &session->child;
	int ret = begin_course(&course, err);

	while (ret == 0 && session->end == PM_REC_END_NONE)
		ret = run_round(&course, err);
	pm_vec_release(&course.fds);
	pm_rec_progress_end(session);
	session->cpu_known = session->options->attach && !pm_rec_follow_forked(session) &&
			     !session->options->control && course.begun &&
			     session->options->delay_ms == 0 &&
			     pm_targets_cpu_ns(&session->targets, &session->cpu_ns);
	if (ret < 0) {
		pm_perf_disable(session->perf);
		if (child->running && !session->options->attach)
			pm_rec_say_stopped(err, ret);
	}
	if (!session->options->attach && (ret < 0 || session->end == PM_REC_END_SIGNAL))
		pm_rec_course_wait(session, ret < 0);
	return ret;
}

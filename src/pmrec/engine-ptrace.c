/* SPDX-License-Identifier: MIT */
#include "engine-ptrace.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#include "hold.h"
#include "progress.h"
#include "record.h"
#include "tracees.h"
#include "verify.h"

enum {
	WAITING_MS = 1000, /* until a stopped recording reports what it waits for */
	WAITING_TICK_MS = 100,
	DETACH_MS = 10, /* between two checks of threads that are to be detached */
	QUEUE_MAX = 256, /* samples that wait to be unwound */
	QUEUE_BYTES = 8 << 20, /* … and the size of their stacks */
	STACK_BYTES_MIN = 64 << 10,
	STORM_SIGNALS = 100, /* signals since the last sample … */
	STORM_TICKS = 4, /* … during which it used this much CPU time */
};
#define FLUSH_NS 1000000000ull
#define SERVICE_NS \
	2000000ull /* of handling stops until signals and ticks are looked at */
#define SLICE_NS      100000u /* the minimum that the kernel accepts */
#define MAPS_NS       1000000000ull /* mappings are checked at least this often */
#define DETACH_MAX_NS 1000000000ull /* for threads left when the command has exited */

const char pm_rec_ptrace_note[] =
	"sampled by stopping threads (ptrace): a sample stands for the CPU time of its "
	"thread since the sample before; time in the kernel counts for the function that "
	"called it";

/* A copy of a thread's state. Its stack is in the arena. */
struct queued {
	struct pm_trace_regs regs;
	uint64_t time, period;
	pid_t pid, tid;
	uint32_t cpu;
	size_t stack_at, stack_len, stack_asked, stack_below;
};

struct pm_rec_ptrace {
	struct pm_trace *trace;
	struct pm_rec_tracees tracees;
	int timer_fd;
	uint64_t hz, tick_ns; /* when the last tick was due */
	uint32_t stack_bytes; /* copied at first */
	bool stack_grows; /* a thread's next copy is larger if this was too little */
	uint64_t waiting; /* threads that a tick met while they waited for a CPU */
	struct rusage usage_before; /* of children other than the command */
	bool more; /* more stops are waiting, and SIGCHLD may not report them */
	size_t queue_len, arena_len;
	struct queued queue[QUEUE_MAX];
	uint8_t *arena;
	struct pm_rec_verify *verify; /* NULL: not requested */
};

/* ---- samples ---------------------------------------------------------------------------- */

static int feed_queued_sample(struct pm_rec_session *session, const struct queued *queued)
{
	struct pm_rec_ptrace *ptrace = session->ptrace;
	const struct pm_trace_regs *regs = &queued->regs;
	struct pm_record record = {
		.type = PERF_RECORD_SAMPLE,
		.misc = PERF_RECORD_MISC_USER,
		.time = queued->time,
		.pid = (uint32_t)queued->pid,
		.tid = (uint32_t)queued->tid,
		.cpu = queued->cpu,
		.sample = { .ip = regs->pc,
			    .period = queued->period,
			    .regs = { .abi = regs->is_32 ? PM_REGS_32 : PM_REGS_64,
				      .known = regs->known },
			    .stack = ptrace->arena + queued->stack_at,
			    .stack_len = queued->stack_len,
			    .stack_asked = queued->stack_asked,
			    .stack_below = queued->stack_below },
	};
	uint64_t truncated = session->counts.stops[PM_UNW_STOP_TRUNCATED];
	struct pm_rec_tracee *tracee;
	int ret;

	memcpy(record.sample.regs.value, regs->value,
	       PM_MIN(sizeof(regs->value), sizeof(record.sample.regs.value)));
	ret = pm_rec_record(session, &record);
	if (ret < 0 || !ptrace->stack_grows ||
	    session->counts.stops[PM_UNW_STOP_TRUNCATED] == truncated ||
	    queued->stack_len < queued->stack_asked)
		return ret;
	/* The stack was longer than the copy: make the next copy larger. */
	tracee = pm_rec_tracees_get(&ptrace->tracees, queued->pid, queued->tid);
	if (!tracee)
		return -ENOMEM;
	if (queued->stack_asked < PM_TRACE_STACK_MAX)
		tracee->stack_bytes = (uint32_t)queued->stack_asked * 2;
	return 0;
}

/* Unwinds and writes the queued samples. */
static int feed_all(struct pm_rec_session *session)
{
	struct pm_rec_ptrace *ptrace = session->ptrace;
	int ret = 0;

	for (size_t i = 0; i < ptrace->queue_len && ret == 0; i++)
		ret = feed_queued_sample(session, &ptrace->queue[i]);
	ptrace->queue_len = ptrace->arena_len = 0;
	return ret;
}

/*
 * Reads the mappings again if they may have changed. This engine gets no mmap records. It
 * therefore compares mappings while the thread is stopped: if the size of its process's
 * memory has changed since the last check, if the pc is in no known mapping, and every
 * second.
 */
static int refresh_maps(struct pm_rec_session *session,
			const struct pm_trace_event *event, uint64_t pc,
			const struct pm_stat_line *seen, uint64_t now)
{
	pid_t pid = event->pid;
	struct pm_rec_ptrace *ptrace = session->ptrace;
	struct pm_rec_tracee *leader = pm_rec_tracees_get(&ptrace->tracees, pid, pid);
	const struct pm_process *process = pm_procs_get(session->procs, pid);
	uint64_t hash;
	int ret;

	if (!leader || !process)
		return -ENOMEM;
	if (leader->maps_known && leader->virtual_bytes == seen->virtual_bytes &&
	    now - leader->maps_read_ns < MAPS_NS && pm_space_find(&process->space, pc))
		return 0;
	/* Use the stopped thread's id: the leader may have ended. */
	if (pm_rec_maps_hash(event->tid, &hash) < 0)
		return 0; /* it is ending: the known mappings stay */
	leader->virtual_bytes = seen->virtual_bytes;
	leader->maps_read_ns = now;
	if (leader->maps_known && leader->maps_hash == hash)
		return 0;
	leader->maps_known = true;
	leader->maps_hash = hash;
	/* Earlier samples belong to the earlier mappings. */
	ret = feed_all(session);
	if (ret < 0)
		return ret;
	ret = pm_procs_read(session->procs, pid, NULL);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

static int name_tracee(struct pm_rec_session *session, struct pm_rec_tracee *tracee,
		       const char *comm, bool exec, uint64_t time)
{
	struct pm_record record = { .type = PERF_RECORD_COMM,
				    .time = time,
				    .pid = (uint32_t)tracee->pid,
				    .tid = (uint32_t)tracee->tid,
				    .cpu = PM_FILE_NONE,
				    .comm = { .name = comm, .exec = exec } };

	if (!exec && strcmp(tracee->comm, comm) == 0)
		return 0;
	snprintf(tracee->comm, sizeof(tracee->comm), "%s", comm);
	return pm_rec_record(session, &record);
}

/* Copies the data of a sample from the stopped thread. The queue and the arena must have
 * room. */
static int copy_sample(struct pm_rec_session *session, struct pm_rec_tracee *tracee,
		       const struct pm_trace_regs *regs, uint64_t now, uint64_t cpu_ns)
{
	struct pm_rec_ptrace *ptrace = session->ptrace;
	struct queued *queued = &ptrace->queue[ptrace->queue_len++];

	*queued = (struct queued){ .regs = *regs,
				   .time = now,
				   .period = cpu_ns - tracee->sampled_ns,
				   .pid = tracee->pid,
				   .tid = tracee->tid,
				   .cpu = pm_trace_seen(ptrace->trace, tracee->tid)->cpu,
				   .stack_at = ptrace->arena_len,
				   .stack_asked = tracee->stack_bytes };
	tracee->sampled_ns = cpu_ns;
	/* Do not use the pid: a leader that has ended has no memory. */
	queued->stack_len = pm_trace_read_stack(
		tracee->tid, regs->sp, ptrace->arena + ptrace->arena_len,
		queued->stack_asked, &queued->stack_below);
	ptrace->arena_len += (queued->stack_len + 15) & ~(size_t)15;
	if (!ptrace->verify)
		return 0;
	return pm_rec_verify_add(
		ptrace->verify, session, tracee->pid, tracee->tid, regs,
		&(struct pm_unw_stack){ .start = regs->sp - queued->stack_below,
					.data = ptrace->arena + queued->stack_at,
					.len = queued->stack_len });
}

/*
 * Whether a thread that has waited for a CPU is sampled anyway. Where a thread waits says
 * nothing about where it runs, so its time is counted at a later tick. This does not hold
 * for a thread that is stopped by signals all the time: pmrec itself makes it wait at
 * almost every tick, and any place is better than none.
 */
static bool is_stormy(const struct pm_rec_ptrace *ptrace,
		      const struct pm_rec_tracee *tracee,
		      const struct pm_trace_event *event, uint64_t cpu_ns)
{
	return event->signals - tracee->sampled_signals >= STORM_SIGNALS &&
	       cpu_ns - tracee->sampled_ns >= STORM_TICKS * 1000000000u / ptrace->hz;
}

static int take_sample(struct pm_rec_session *session, const struct pm_trace_event *event)
{
	struct pm_rec_ptrace *ptrace = session->ptrace;
	const struct pm_stat_line *seen = pm_trace_seen(ptrace->trace, event->tid);
	struct pm_rec_tracee *tracee;
	struct pm_trace_regs regs;
	uint64_t now = pm_now_ns(), cpu_ns;
	int ret = 0;

	if (!seen || pm_trace_regs(event->tid, &regs) < 0 ||
	    pm_trace_cpu_ns(ptrace->trace, event->tid, &cpu_ns) < 0)
		return 0; /* it is being killed */
	ret = refresh_maps(session, event, regs.pc, seen, now);
	if (ret < 0)
		return ret;
	tracee = pm_rec_tracees_get(&ptrace->tracees, event->pid, event->tid);
	if (!tracee)
		return -ENOMEM;
	if (cpu_ns <= tracee->sampled_ns)
		return 0;
	if (!event->had_cpu && !is_stormy(ptrace, tracee, event, cpu_ns)) {
		ptrace->waiting++;
		return 0;
	}
	if (tracee->stack_bytes == 0)
		tracee->stack_bytes = ptrace->stack_bytes;
	if (ptrace->queue_len == QUEUE_MAX ||
	    QUEUE_BYTES - ptrace->arena_len < tracee->stack_bytes)
		ret = feed_all(session);
	if (ret == 0)
		ret = name_tracee(session, tracee, seen->comm, false, now);
	tracee->sampled_signals = event->signals;
	if (ret < 0)
		return ret;
	return copy_sample(session, tracee, &regs, now, cpu_ns);
}

/* ---- events ----------------------------------------------------------------------------- */

static int on_new(struct pm_rec_session *session, const struct pm_trace_event *event)
{
	struct pm_record record = {
		.type = PERF_RECORD_FORK,
		.time = pm_now_ns(),
		.pid = (uint32_t)event->pid,
		.tid = (uint32_t)event->tid,
		.cpu = PM_FILE_NONE,
		.fork = { .parent_pid = (uint32_t)event->parent_pid,
			  .parent_tid = (uint32_t)event->parent_pid },
	};

	if (!pm_rec_tracees_get(&session->ptrace->tracees, event->pid, event->tid))
		return -ENOMEM;
	return pm_rec_record(session, &record);
}

static int on_exec(struct pm_rec_session *session, const struct pm_trace_event *event)
{
	struct pm_rec_ptrace *ptrace = session->ptrace;
	struct pm_rec_tracee *tracee;
	char path[64], comm[16] = "";
	PM_AUTO_FCLOSE FILE *file = NULL;
	int ret = feed_all(session);

	if (ret < 0)
		return ret;
	pm_rec_tracees_exec(&ptrace->tracees, event->pid, event->former_tid);
	tracee = pm_rec_tracees_get(&ptrace->tracees, event->pid, event->tid);
	if (!tracee)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)event->pid);
	file = fopen(path, "re");
	if (file && fgets(comm, sizeof(comm), file))
		comm[strcspn(comm, "\n")] = '\0';
	return name_tracee(session, tracee, comm, true, pm_now_ns());
}

static int on_exit_of(struct pm_rec_session *session, const struct pm_trace_event *event)
{
	struct pm_child *child = &session->child;
	struct pm_record record = { .type = PERF_RECORD_EXIT,
				    .time = pm_now_ns(),
				    .pid = (uint32_t)event->pid,
				    .tid = (uint32_t)event->tid,
				    .cpu = PM_FILE_NONE };
	int ret = feed_all(session);

	pm_rec_tracees_drop(&session->ptrace->tracees, event->tid);
	if (ret == 0)
		ret = pm_rec_record(session, &record);
	if (event->tid != child->launch.pid)
		return ret;
	child->running = false;
	child->status = event->status;
	child->status_known = true;
	getrusage(RUSAGE_CHILDREN, &child->usage);
	timersub(&child->usage.ru_utime, &session->ptrace->usage_before.ru_utime,
		 &child->usage.ru_utime);
	timersub(&child->usage.ru_stime, &session->ptrace->usage_before.ru_stime,
		 &child->usage.ru_stime);
	return ret;
}

static int on_trace_event(struct pm_rec_session *session,
			  const struct pm_trace_event *event)
{
	switch (event->what) {
	case PM_TRACE_NEW:
		return on_new(session, event);
	case PM_TRACE_EXEC:
		return on_exec(session, event);
	case PM_TRACE_STOPPED:
		return take_sample(session, event);
	case PM_TRACE_EXIT:
		return on_exit_of(session, event);
	}
	return 0;
}

enum phase {
	PHASE_RECORDING,
	PHASE_ENDING, /* only exits matter */
};

/*
 * Handles the pending stops, for a limited time: in a storm of signals there are always
 * more. A thread that is stopped for a sample does not wait for unwinding, which is done
 * when no stops are left. Only an exit, an exec, new mappings and a full queue cause
 * queued samples to be unwound at once.
 */
static int service_trace(struct pm_rec_session *session, enum phase phase,
			 struct pm_error *err)
{
	bool recording = phase == PHASE_RECORDING;
	struct pm_rec_ptrace *ptrace = session->ptrace;
	uint64_t begin = pm_now_ns();
	struct pm_trace_event event;
	int ret, failed = 0;

	do {
		ret = pm_trace_next(ptrace->trace, &event, err);
		if (ret <= 0)
			break;
		/* Once the recording is over, only exits matter. No thread may be left
		 * stopped, whatever happened to the file. */
		if (event.what == PM_TRACE_EXIT || (recording && failed == 0)) {
			int error = on_trace_event(session, &event);

			if (error < 0 && recording)
				failed = error;
		}
	} while (pm_now_ns() - begin < SERVICE_NS);
	ptrace->more = ret > 0 || pm_trace_more(ptrace->trace);
	if (ret >= 0 && failed == 0 && recording && !ptrace->more)
		failed = feed_all(session);
	if (failed == -ENOMEM)
		pm_error_set(err, failed, "out of memory");
	if (ret < 0)
		return ret;
	return failed;
}

/* ---- the recording ---------------------------------------------------------------------- */

void pm_rec_ptrace_event(const struct pm_rec_session *session, struct pm_file_event *out)
{
	*out = (struct pm_file_event){
		.name = "ptrace",
		.requested = session->options->event_given
				     ? session->options->specs.list.data[0].requested
				     : "ptrace",
		.actual = "ptrace",
		.modifiers = "",
		.unit = "ns",
		.by_frequency = true,
		.rate = session->ptrace->hz,
	};
}

uint32_t pm_rec_ptrace_stack_bytes(const struct pm_rec_session *session)
{
	return session->ptrace->stack_bytes;
}

static int start_timer(struct pm_rec_ptrace *ptrace, struct pm_error *err)
{
	uint64_t period = 1000000000u / ptrace->hz, first = pm_now_ns() + period;
	struct itimerspec timer = {
		.it_interval = { .tv_sec = (time_t)(period / 1000000000u),
				 .tv_nsec = (long)(period % 1000000000u) },
		.it_value = { .tv_sec = (time_t)(first / 1000000000u),
			      .tv_nsec = (long)(first % 1000000000u) },
	};

	ptrace->tick_ns = first - period;
	ptrace->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (ptrace->timer_fd < 0 ||
	    timerfd_settime(ptrace->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL) < 0)
		return pm_error_set(err, -errno, "timerfd: %s", strerror(errno));
	return 0;
}

/* sched_setattr(2), in its first version; <linux/sched/types.h> and <sched.h> conflict
 * with each other on some systems. */
struct sched_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/*
 * Asks the scheduler for short slices. From Linux 6.12 on, a task with a shorter slice
 * may preempt the running task (PREEMPT_SHORT in kernel/sched/features.h). Otherwise,
 * when all CPUs are busy, a tick would wait for the end of another task's slice. It would
 * then find threads where the scheduler checks the clock, and not at arbitrary places.
 */
static void ask_to_be_prompt(void)
{
	struct sched_attributes attributes = { 0 };

	if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0 ||
	    attributes.policy != SCHED_OTHER)
		return;
	attributes.size = sizeof(attributes);
	attributes.runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static int open_trace(struct pm_rec_session *session, struct pm_error *err)
{
	const struct pm_rec_options *options = session->options;
	struct pm_rec_ptrace *ptrace = session->ptrace;
	int ret;

	ptrace->arena = malloc(QUEUE_BYTES);
	ptrace->trace = pm_trace_new();
	session->counts.events_len = 1;
	session->counts.events = calloc(1, sizeof(*session->counts.events));
	if (options->verify)
		ptrace->verify = pm_rec_verify_new();
	if (!ptrace->arena || !ptrace->trace || !session->counts.events ||
	    (options->verify && !ptrace->verify))
		return pm_error_set(err, -ENOMEM, "out of memory");
	ask_to_be_prompt();
	getrusage(RUSAGE_CHILDREN, &ptrace->usage_before);
	ret = pm_trace_seize(ptrace->trace, session->child.launch.pid, true, err);
	return PM_MIN(ret, 0);
}

int pm_rec_ptrace_open(struct pm_rec_session *session, struct pm_error *err)
{
	const struct pm_rec_options *options = session->options;
	struct pm_rec_ptrace *ptrace = calloc(1, sizeof(*ptrace));

	if (!ptrace)
		return pm_error_set(err, -ENOMEM, "out of memory");
	session->ptrace = ptrace;
	ptrace->timer_fd = -1;
	if (options->rate_given)
		ptrace->hz = options->rate;
	else
		ptrace->hz = PM_REC_PTRACE_HZ;
	if (ptrace->hz > PM_REC_PTRACE_HZ_MAX)
		ptrace->hz = PM_REC_PTRACE_HZ_MAX;
	ptrace->stack_grows = !options->stack_bytes_given;
	if (ptrace->stack_grows && options->stack_bytes < STACK_BYTES_MIN)
		ptrace->stack_bytes = STACK_BYTES_MIN;
	else
		ptrace->stack_bytes = options->stack_bytes;
	if (options->call_graph == PM_CALL_GRAPH_NONE)
		ptrace->stack_bytes = 16;
	return open_trace(session, err);
}

uint64_t pm_rec_ptrace_waiting(const struct pm_rec_ptrace *ptrace)
{
	return ptrace->waiting;
}

uint64_t pm_rec_ptrace_unseen(const struct pm_rec_ptrace *ptrace)
{
	return pm_trace_unseen(ptrace->trace);
}

void pm_rec_ptrace_free(struct pm_rec_ptrace *ptrace)
{
	if (!ptrace)
		return;
	pm_rec_verify_free(ptrace->verify);
	pm_trace_free(ptrace->trace);
	pm_rec_tracees_release(&ptrace->tracees);
	pm_cleanup_close(&ptrace->timer_fd);
	free(ptrace->arena);
	free(ptrace);
}

int pm_rec_ptrace_go(struct pm_rec_session *session, struct pm_error *err)
{
	struct pm_launch *launch = &session->child.launch;
	struct pollfd fds[] = { { .fd = session->child.signal_fd, .events = POLLIN },
				{ .fd = launch->error_fd, .events = POLLIN } };
	int ret = pm_launch_begin(launch, err);

	/* A signal that reaches the command before its exec stops it, and pmrec has to
	 * handle the stop. */
	while (ret == 0 && fds[1].revents == 0) {
		poll(fds, PM_ARRAY_LEN(fds), session->ptrace->more ? 0 : WAITING_TICK_MS);
		pm_child_signals(&session->child);
		ret = service_trace(session, PHASE_RECORDING, err);
		/* The program's file may be on a file system that does not respond. */
		if (ret == 0 && pm_child_give_up_stuck(&session->child, "pmrec"))
			return pm_launch_abandon(launch, err);
	}
	launch->ended = session->child.status_known;
	launch->status = session->child.status;
	if (ret < 0)
		return ret;
	return pm_launch_go(launch, err);
}

/* Detaches all threads. Threads in an uninterruptible sleep are detached when they wake
 * up. */
static void stop_recording(struct pm_rec_session *session)
{
	struct pm_rec_ptrace *ptrace = session->ptrace;

	pm_cleanup_close(&ptrace->timer_fd);
	ptrace->timer_fd = -1;
	pm_trace_detach(ptrace->trace);
}

/* Makes one round of a recording in progress. Returns 0 or a negative errno. */
static int run_ptrace_round(struct pm_rec_session *session, bool tick,
			    struct pm_error *err)
{
	struct pm_rec_ptrace *ptrace = session->ptrace;
	uint64_t ticks, period = 1000000000u / ptrace->hz;
	int ret = service_trace(session, PHASE_RECORDING, err);

	if (ret == 0 && tick && session->child.running &&
	    read(ptrace->timer_fd, &ticks, sizeof(ticks)) > 0) {
		ptrace->tick_ns += ticks * period;
		pm_trace_tick(ptrace->trace, ptrace->tick_ns);
		ret = service_trace(session, PHASE_RECORDING, err);
	}
	return ret;
}

/* Waits for the end of the command, and for threads that are still traced. */
static void wait_for_end(struct pm_rec_session *session, bool failed)
{
	const struct pm_trace *trace = session->ptrace->trace;
	struct pollfd fd = { .fd = session->child.signal_fd, .events = POLLIN };
	struct pm_error err = { 0 };
	uint64_t begin = pm_now_ns();
	bool said = false;
	int ret = 0;

	for (;;) {
		uint64_t now = pm_now_ns();
		bool letting_go = pm_trace_len(trace) > 0;
		int wait_ms;

		if (!session->child.running &&
		    (!letting_go || now - begin > DETACH_MAX_NS))
			return;
		/* If we cannot detach a thread, the kernel detaches it when pmrec
		 * exits. */
		if (ret < 0 || pm_trace_is_stuck(trace)) {
			fprintf(stderr, "pmrec: not waiting for the command: %s\n",
				ret < 0 ? err.text : "it cannot be let go on (ptrace)");
			session->child.running = false;
			return;
		}
		if (pm_child_give_up_stuck(&session->child, "pmrec"))
			return;
		if (!said && session->child.running && now - begin > FLUSH_NS) {
			pm_rec_say_waiting(session, failed);
			said = true;
		}
		if (session->ptrace->more)
			wait_ms = 0;
		else if (letting_go)
			wait_ms = DETACH_MS;
		else
			wait_ms = WAITING_TICK_MS;
		poll(&fd, 1, wait_ms);
		pm_child_signals(&session->child);
		ret = service_trace(session, PHASE_ENDING, &err);
	}
}

int pm_rec_ptrace_record(struct pm_rec_session *session, struct pm_error *err)
{
	struct pm_child *child = &session->child;
	uint64_t flushed_ns = session->begin_ns;
	int ret = start_timer(session->ptrace, err);
	struct pollfd fds[] = { { .fd = child->signal_fd, .events = POLLIN },
				{ .fd = session->ptrace->timer_fd, .events = POLLIN } };

	while (ret == 0 && child->running && child->interrupts == 0) {
		uint64_t now;

		poll(fds, PM_ARRAY_LEN(fds), session->ptrace->more ? 0 : -1);
		pm_child_signals(child);
		ret = run_ptrace_round(session, fds[1].revents != 0, err);
		now = pm_now_ns();
		if (ret == 0 && now - flushed_ns >= FLUSH_NS) {
			ret = pm_rec_hold_release(session, pm_rec_hold_until(now));
			if (ret == 0)
				ret = pm_file_writer_flush(session->writer);
			flushed_ns = now;
		}
		session->end_ns = now;
	}
	stop_recording(session);
	if (ret == 0)
		ret = feed_all(session);
	if (ret < 0 && child->running)
		pm_rec_say_stopped(err, ret);
	wait_for_end(session, ret < 0);
	if (session->ptrace->verify)
		pm_rec_verify_print(session->ptrace->verify, session);
	return ret;
}

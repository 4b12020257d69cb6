/* SPDX-License-Identifier: MIT */
#include "stacks.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "pm/chain-spaces.h"
#include "stacks-internal.h"
#include "tracees.h"
#include "verify.h"

enum {
	ROUNDS_MAX = 100, /* rounds of searching for new threads */
	WAIT_MS = 5,
};
#define STOP_MAX_NS   1000000000ull /* limit for threads in uninterruptible sleep */
#define DETACH_MAX_NS 1000000000ull

struct work {
	const struct pm_rec_options *options;
	struct pm_rec_session session; /* used by other parts of the recorder */
	struct pm_trace *trace;
	struct pm_rec_verify *verify;
	struct pm_rec_stacks stacks;
	uint8_t *buffer; /* PM_TRACE_STACK_MAX bytes */
	uint64_t first_stop_ns;
};

/* ---- while the threads are stopped ------------------------------------------------------ */

static int ask_libunwind(struct pm_rec_stack_thread *thread)
{
	thread->theirs = reallocarray(NULL, PM_UNW_FRAMES_MAX, sizeof(*thread->theirs));
	if (!thread->theirs)
		return -ENOMEM;
	thread->theirs_len =
		pm_unw_ptrace_chain(thread->tid, thread->theirs, PM_UNW_FRAMES_MAX, NULL);
	return 0;
}

static int copy_thread(struct work *work, const struct pm_trace_event *event)
{
	const struct pm_stat_line *seen = pm_trace_seen(work->trace, event->tid);
	struct pm_rec_stack_thread thread = { .tid = event->tid, .stopped = true };
	int ret;

	if (work->first_stop_ns == 0)
		work->first_stop_ns = pm_now_ns();
	pm_trace_keep(work->trace);
	if (!seen || pm_trace_regs(event->tid, &thread.regs) < 0)
		return 0; /* it has been killed */
	thread.seen = *seen;
	thread.bytes_len = pm_trace_read_stack(event->tid, thread.regs.sp, work->buffer,
					       PM_TRACE_STACK_MAX, &thread.bytes_below);
	thread.bytes = malloc(thread.bytes_len + 1);
	if (!thread.bytes)
		return -ENOMEM;
	memcpy(thread.bytes, work->buffer, thread.bytes_len);
	if (work->options->libunwind)
		ret = ask_libunwind(&thread);
	else
		ret = 0;
	if (ret == 0)
		ret = pm_vec_push(&work->stacks.threads, thread);
	if (ret < 0) {
		free(thread.bytes);
		free(thread.theirs);
	}
	return ret;
}

static void wait_a_little(void)
{
	struct timespec time = { .tv_nsec = WAIT_MS * 1000000 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigtimedwait(&set, NULL, &time);
}

/* Waits until all traced threads are stopped, or the time limit is reached. */
static int stop_all(struct work *work, struct pm_error *err)
{
	uint64_t begin = pm_now_ns();
	int ret;

	pm_trace_interrupt(work->trace);
	for (;;) {
		struct pm_trace_event event;

		while ((ret = pm_trace_next(work->trace, &event, err)) > 0) {
			if (event.what != PM_TRACE_STOPPED)
				continue;
			ret = copy_thread(work, &event);
			if (ret < 0)
				return ret;
		}
		if (ret < 0 || pm_trace_len(work->trace) <= work->stacks.threads.len ||
		    pm_now_ns() - begin > STOP_MAX_NS)
			return ret;
		if (!pm_trace_more(work->trace))
			wait_a_little();
	}
}

static int seize_target(struct work *work, struct pm_error *err)
{
	const struct pm_rec_options *options = work->options;

	if (options->tid)
		return pm_trace_seize_thread(work->trace, options->pid, options->tid,
					     err);
	return pm_trace_seize(work->trace, options->pid, false, err);
}

/* Stops all threads and copies their stacks. Running threads can create others until the
 * last of them is stopped. */
static int copy_all(struct work *work, struct pm_error *err)
{
	size_t before = SIZE_MAX;

	for (int i = 0; i < ROUNDS_MAX; i++) {
		int ret = seize_target(work, err);

		if (ret < 0)
			return ret;
		if (ret == 0 && pm_trace_len(work->trace) == before)
			return 0;
		before = pm_trace_len(work->trace);
		ret = stop_all(work, err);
		if (ret < 0)
			return ret;
	}
	work->stacks.incomplete = true;
	return 0;
}

static void let_go(struct work *work)
{
	uint64_t begin = pm_now_ns();
	struct pm_trace_event event;

	pm_trace_detach(work->trace);
	if (work->first_stop_ns)
		work->stacks.still_ns = pm_now_ns() - work->first_stop_ns;
	while (pm_trace_len(work->trace) > 0 && pm_now_ns() - begin < DETACH_MAX_NS) {
		if (pm_trace_next(work->trace, &event, NULL) == 0 &&
		    !pm_trace_more(work->trace))
			wait_a_little();
	}
}

static struct pm_unw_stack stack_of(const struct pm_rec_stack_thread *thread)
{
	return (struct pm_unw_stack){ .start = thread->regs.sp - thread->bytes_below,
				      .data = thread->bytes,
				      .len = thread->bytes_len };
}

static int verify_all(struct work *work)
{
	int ret = 0;

	for (size_t i = 0; i < work->stacks.threads.len && ret == 0; i++) {
		const struct pm_rec_stack_thread *thread = &work->stacks.threads.data[i];

		struct pm_unw_stack stack = stack_of(thread);

		ret = pm_rec_verify_add(work->verify, &work->session, work->options->pid,
					thread->tid, &thread->regs, &stack);
	}
	return ret;
}

/* Blocks the signals that stop a process: if Ctrl-Z stopped us now, the traced threads
 * would stay stopped, too. */
static void block_stops(sigset_t *former)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGTTOU);
	sigaddset(&set, SIGTTIN);
	sigprocmask(SIG_BLOCK, &set, former);
}

/* Does everything that requires the threads to be stopped. */
static int look_at_stopped_threads(struct work *work, struct pm_error *err)
{
	pid_t pid = work->options->pid, tid;
	uint64_t before = 0, after = 0;
	sigset_t former;
	bool known;
	int ret;

	block_stops(&former);
	ret = copy_all(work, err);
	/* A leader that has ended is not traced, and its maps are empty. */
	tid = pm_trace_next_tid(work->trace, 0);
	known = ret == 0 && pm_rec_maps_hash(tid, &before) == 0;
	if (ret == 0 && work->verify) {
		ret = pm_procs_read(work->session.procs, pid, err);
		if (ret == 0)
			ret = verify_all(work);
	}
	let_go(work);
	sigprocmask(SIG_SETMASK, &former, NULL);
	/* This opens and reads files, which takes longer than everything above. */
	if (ret == 0)
		ret = pm_procs_read(work->session.procs, pid, err);
	work->stacks.changed =
		!known || pm_rec_maps_hash(tid, &after) < 0 || before != after;
	return ret;
}

/* ---- afterwards ------------------------------------------------------------------------- */

static int add_stack_frame(struct work *work, struct pm_rec_stack_thread *thread,
			   uint64_t pc, uint64_t lookup, const struct pm_unw_map *map)
{
	struct pm_rec_stack_frame frame = { .pc = pc,
					    .address = map ? lookup - map->bias : lookup,
					    .module = map ? map->tag : PM_FILE_NONE };
	int ret = pm_vec_push(&thread->frames, frame);

	if (ret == 0 && map)
		ret = pm_rec_names_add(&work->stacks.names, frame.module, frame.address);
	return ret;
}

static int add_theirs(struct work *work, struct pm_rec_stack_thread *thread,
		      const struct pm_unw_space *space)
{
	int ret = 0;

	if (thread->theirs_len < 0)
		thread->stop = "libunwind failed";
	for (ssize_t i = 0; i < thread->theirs_len && ret == 0; i++) {
		uint64_t pc = thread->theirs[i], lookup = i == 0 ? pc : pc - 1;

		ret = add_stack_frame(work, thread, pc, lookup,
				      pm_unw_space_find(space, lookup));
	}
	return ret;
}

static int add_ours(struct work *work, struct pm_rec_stack_thread *thread,
		    struct pm_unwinder *unwinder, const struct pm_unw_space *space,
		    struct pm_unw_frame *frames)
{
	struct pm_unw_stack stack = stack_of(thread);
	struct pm_unw_regs regs;
	enum pm_unw_stop stop;
	size_t len;
	int ret = 0;

	pm_rec_unwind_regs(&thread->regs, &regs);
	len = pm_unwind(unwinder, space, &regs, &stack, frames, &stop);
	if (stop != PM_UNW_STOP_ROOT)
		thread->stop = pm_unw_stop_name(stop);
	for (size_t i = 0; i < len && ret == 0; i++)
		ret = add_stack_frame(work, thread, frames[i].pc, frames[i].lookup,
				      frames[i].map);
	return ret;
}

static int unwind_all(struct work *work)
{
	struct pm_process *process =
		pm_procs_get(work->session.procs, work->options->pid);
	struct pm_unwinder *unwinder = pm_unwinder_new();
	PM_AUTO_FREE struct pm_unw_frame *frames =
		reallocarray(NULL, PM_UNW_FRAMES_MAX, sizeof(*frames));
	struct pm_unw_space space;
	int ret = process && unwinder && frames
			  ? pm_chain_space_get(process, &work->session.modules,
					       work->session.procs, &space)
			  : -ENOMEM;

	for (size_t i = 0; i < work->stacks.threads.len && ret == 0; i++) {
		struct pm_rec_stack_thread *thread = &work->stacks.threads.data[i];

		if (work->options->libunwind)
			ret = add_theirs(work, thread, &space);
		else
			ret = add_ours(work, thread, unwinder, &space, frames);
	}
	pm_unwinder_free(unwinder);
	if (ret == 0 && work->options->symbols)
		ret = pm_rec_names_resolve(&work->stacks.names, &work->session.modules,
					   work->session.procs);
	return ret;
}

static int compare_tids(const void *left, const void *right)
{
	const struct pm_rec_stack_thread *a = left, *b = right;

	if (a->tid < b->tid)
		return -1;
	return a->tid > b->tid;
}

/* Adds the threads that could not be stopped. */
static int add_missing(struct work *work)
{
	size_t len = work->stacks.threads.len;
	pid_t tid = 0;
	int ret = 0;

	while (ret == 0 && (tid = pm_trace_next_tid(work->trace, tid)) != 0) {
		struct pm_rec_stack_thread thread = { .tid = tid };
		const struct pm_stat_line *seen = pm_trace_seen(work->trace, tid);
		bool known = false;

		for (size_t i = 0; i < len && !known; i++)
			known = work->stacks.threads.data[i].tid == tid;
		if (known)
			continue;
		if (seen)
			thread.seen = *seen;
		ret = pm_vec_push(&work->stacks.threads, thread);
	}
	return ret;
}

static int run_stacks(struct work *work, struct pm_error *err)
{
	int ret;

	work->session.options = work->options;
	work->session.procs = pm_procs_new(pm_chain_space_free);
	work->trace = pm_trace_new();
	work->buffer = malloc(PM_TRACE_STACK_MAX);
	if (work->options->verify)
		work->verify = pm_rec_verify_new();
	else
		work->verify = NULL;
	work->stacks.pid = work->options->pid;
	work->stacks.verbose = work->options->verbose;
	pm_chain_modules_init(&work->session.modules);
	pm_chain_modules_raise_limit(&work->session.modules);
	/* No limit is needed for the files of one process, which are open for a short
	 * time. */
	work->session.modules.fds_max = SIZE_MAX;
	if (!work->session.procs || !work->trace || !work->buffer ||
	    (work->options->verify && !work->verify))
		return -ENOMEM;
	ret = look_at_stopped_threads(work, err);
	if (ret == 0)
		ret = unwind_all(work);
	if (ret == 0)
		ret = add_missing(work);
	if (ret < 0)
		return ret;
	if (work->stacks.threads.len > 0)
		qsort(work->stacks.threads.data, work->stacks.threads.len,
		      sizeof(*work->stacks.threads.data), compare_tids);
	ret = pm_rec_stacks_print(&work->stacks, work->session.procs);
	if (ret == 0 && work->verify)
		pm_rec_verify_print(work->verify, &work->session);
	return ret;
}

static void release_stacks_work(struct work *work)
{
	for (size_t i = 0; i < work->stacks.threads.len; i++) {
		struct pm_rec_stack_thread *thread = &work->stacks.threads.data[i];

		free(thread->bytes);
		free(thread->theirs);
		pm_vec_release(&thread->frames);
	}
	pm_vec_release(&work->stacks.threads);
	pm_rec_names_release(&work->stacks.names);
	pm_rec_verify_free(work->verify);
	pm_trace_free(work->trace);
	pm_chain_modules_release(&work->session.modules);
	pm_procs_free(work->session.procs);
	free(work->buffer);
}

int pm_rec_stacks_run(const struct pm_rec_options *options)
{
	struct work work = { .options = options };
	struct pm_error err = { 0 };
	sigset_t set;
	int ret;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ret = run_stacks(&work, &err);
	release_stacks_work(&work);
	if (ret == 0)
		return 0;
	if (err.code == 0)
		pm_error_set(&err, ret, "%s", strerror(-ret));
	pm_error_print(&err, "pmrec", stderr);
	return PM_STATUS_FAILED;
}

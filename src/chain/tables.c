/* SPDX-License-Identifier: MIT */
#include "tables.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

enum {
	/* The most that is read of one file without the thread: some 60,000 functions, in
	 * a few milliseconds. */
	NOW_BYTES_MAX = 2 << 20,
	NOW_BYTES_A_SECOND = 2 << 20, /* of all files; twice that at the start */
	TASKS_MAX = 1024, /* tasks that wait */
	END_MS = 500,
};
#define SECOND_NS 1000000000ull

/* The state that the two threads share; the last of them frees it. */
struct exchange {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	PM_VEC(struct pm_unw_task *) tasks; /* in the order in which they were added */
	struct pm_unw_task *running; /* the thread has a reference; NULL: none */
	bool ending;
	bool ended; /* the thread has finished */
	unsigned int users;
};

struct pm_chain_tables {
	struct pm_unw_helper helper;
	struct exchange *exchange;
	bool begun; /* the thread has been created */
	int error; /* why it could not be created: a negative errno; 0: no failure */
	uint64_t retry_ns; /* time when creating it may be tried again */
	uint64_t now_bytes, filled_ns; /* see NOW_BYTES_A_SECOND */
};

static uint64_t tables_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- the thread -------------------------------------------------------------------------- */

static void unref_exchange(struct exchange *exchange)
{
	bool last;

	pthread_mutex_lock(&exchange->lock);
	last = --exchange->users == 0;
	pthread_mutex_unlock(&exchange->lock);
	if (!last)
		return;
	pthread_cond_destroy(&exchange->changed);
	pthread_mutex_destroy(&exchange->lock);
	pm_vec_release(&exchange->tasks);
	free(exchange);
}

/* Waits for the next task and returns it, or NULL if there will be no more. */
static struct pm_unw_task *await_task(struct exchange *exchange)
{
	struct pm_unw_task *task = NULL;

	pthread_mutex_lock(&exchange->lock);
	while (exchange->tasks.len == 0 && !exchange->ending)
		pthread_cond_wait(&exchange->changed, &exchange->lock);
	if (!exchange->ending) {
		task = exchange->tasks.data[0];
		exchange->tasks.len--;
		for (size_t i = 0; i < exchange->tasks.len; i++)
			exchange->tasks.data[i] = exchange->tasks.data[i + 1];
	}
	exchange->running = task;
	pthread_mutex_unlock(&exchange->lock);
	return task;
}

static void *make_tables_in_thread(void *user)
{
	id_t tid = (id_t)syscall(SYS_gettid);
	struct exchange *exchange = user;
	struct pm_unw_task *task;

	/* The thread gets the priority of any other program. */
	if (getpriority(PRIO_PROCESS, tid) < 0)
		setpriority(PRIO_PROCESS, tid, 0);
	while ((task = await_task(exchange))) {
		pm_unw_task_run(task);
		pthread_mutex_lock(&exchange->lock);
		exchange->running = NULL;
		pthread_mutex_unlock(&exchange->lock);
		pm_unw_task_unref(task);
	}
	pthread_mutex_lock(&exchange->lock);
	exchange->ended = true;
	pthread_cond_broadcast(&exchange->changed);
	pthread_mutex_unlock(&exchange->lock);
	unref_exchange(exchange);
	return NULL;
}

/* Creates the thread, which receives no signals. SCHED_RESET_ON_FORK keeps it from
 * inheriting the priority of this thread. */
static bool begin_thread(struct pm_chain_tables *tables)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	if (tables->begun)
		return true;
	if (tables_clock_ns(CLOCK_MONOTONIC) < tables->retry_ns ||
	    pthread_attr_init(&attr) != 0)
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	tables->exchange->users++;
	error = pthread_create(&thread, &attr, make_tables_in_thread, tables->exchange);
	tables->exchange->users -= error != 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	tables->begun = error == 0;
	tables->error = -error;
	/* Without this, each sample in such a file would try again. */
	tables->retry_ns = tables_clock_ns(CLOCK_MONOTONIC) + SECOND_NS;
	return tables->begun;
}

/* ---- the thread that drains the rings ---------------------------------------------------- */

static bool may_now(void *user, size_t bytes)
{
	struct pm_chain_tables *tables = user;
	uint64_t now_ns = tables_clock_ns(CLOCK_MONOTONIC),
		 passed = now_ns - tables->filled_ns;

	if (passed > 2 * SECOND_NS)
		passed = 2 * SECOND_NS;
	tables->filled_ns = now_ns;
	tables->now_bytes += NOW_BYTES_A_SECOND * passed / SECOND_NS;
	if (tables->now_bytes > 2 * NOW_BYTES_A_SECOND)
		tables->now_bytes = 2 * NOW_BYTES_A_SECOND;
	if (bytes > NOW_BYTES_MAX || bytes > tables->now_bytes)
		return false;
	tables->now_bytes -= bytes;
	return true;
}

static bool take_task(void *user, struct pm_unw_task *task)
{
	struct pm_chain_tables *tables = user;
	struct exchange *exchange = tables->exchange;
	bool taken;

	if (!begin_thread(tables))
		return false;
	pthread_mutex_lock(&exchange->lock);
	taken = exchange->tasks.len < TASKS_MAX &&
		pm_vec_push(&exchange->tasks, task) == 0;
	if (taken)
		pthread_cond_broadcast(&exchange->changed);
	pthread_mutex_unlock(&exchange->lock);
	return taken;
}

/* ---- public ------------------------------------------------------------------------------ */

struct pm_chain_tables *pm_chain_tables_new(void)
{
	struct pm_chain_tables *tables = calloc(1, sizeof(*tables));
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	pthread_condattr_t by_clock;
	pthread_mutexattr_t inherits;

	if (!tables || !exchange) {
		free(tables);
		free(exchange);
		return NULL;
	}
	pthread_condattr_init(&by_clock);
	pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
	pthread_cond_init(&exchange->changed, &by_clock);
	pthread_condattr_destroy(&by_clock);
	/* The other thread holds the lock for a few instructions only, but may lose its
	 * CPU while it holds the lock; it then inherits the priority of this thread. */
	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&exchange->lock, &inherits);
	pthread_mutexattr_destroy(&inherits);
	exchange->users = 1;
	tables->exchange = exchange;
	tables->helper = (struct pm_unw_helper){ may_now, take_task, tables };
	return tables;
}

const struct pm_unw_helper *pm_chain_tables_helper(struct pm_chain_tables *tables)
{
	return &tables->helper;
}

int pm_chain_tables_error(const struct pm_chain_tables *tables)
{
	return tables->error;
}

void pm_chain_tables_free(struct pm_chain_tables *tables)
{
	uint64_t until_ns = tables_clock_ns(CLOCK_MONOTONIC) + END_MS * 1000000ull;
	const struct timespec until = { .tv_sec = (time_t)(until_ns / SECOND_NS),
					.tv_nsec = (long)(until_ns % SECOND_NS) };
	struct exchange *exchange;

	if (!tables)
		return;
	exchange = tables->exchange;
	pthread_mutex_lock(&exchange->lock);
	exchange->ending = true;
	if (exchange->running)
		pm_unw_task_cancel(exchange->running);
	for (size_t i = 0; i < exchange->tasks.len; i++)
		pm_unw_task_unref(exchange->tasks.data[i]);
	exchange->tasks.len = 0;
	pthread_cond_broadcast(&exchange->changed);
	while (tables->begun && !exchange->ended &&
	       pthread_cond_timedwait(&exchange->changed, &exchange->lock, &until) == 0)
		;
	pthread_mutex_unlock(&exchange->lock);
	unref_exchange(exchange);
	free(tables);
}

/* SPDX-License-Identifier: MIT */
#include "timer-threads.h"

#include <dirent.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "clock.h"
#include "engine.h"

#ifndef sigev_notify_thread_id /* glibc before 2.38 */
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
	/* The CPU time that a new thread usually uses, at most, before it is found. */
	LOOK_CPU_NS = 10000000,
	LOOK_SHARE = 50, /* searches use at most 1/N of the process's CPU time */
	/* After this many searches that found no change, only every tenth one lists the
	 * threads. */
	LOOK_TRUST = 10,
	BLOCKED_TICKS = 10, /* ticks without a sample before the cause is checked */
};

/* ---- a timer -------------------------------------------------------------------------------- */

/*
 * Returns the clock id that pthread_getcpuclockid(3) would return, which needs a
 * pthread_t. It is the complement of the thread id, above three bits, of which 4 means
 * "of a thread" and 2 the scheduler's time. The kernel keeps this encoding for existing
 * programs (include/linux/posix-timers.h).
 */
clockid_t pm_self_thread_clock(pid_t tid)
{
	return (clockid_t)(~(unsigned int)tid << 3 | 4 | 2);
}

/* This does not use libc's wrapper, whose timer ids differ from those in the signal. */
int pm_self_timer_new(clockid_t clock, pid_t to, int number, void *value)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = number,
				  .sigev_value.sival_ptr = value };
	int timer;

	event.sigev_notify_thread_id = to;
	if (syscall(SYS_timer_create, clock, &event, &timer) < 0)
		return -errno;
	return timer;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
}

int pm_self_timer_run(int timer, uint64_t first_ns, uint64_t interval_ns)
{
	const struct itimerspec times = { .it_value = timespec_of(first_ns),
					  .it_interval = timespec_of(interval_ns) };

	if (syscall(SYS_timer_settime, timer, 0, &times, NULL) < 0)
		return -errno;
	return 0;
}

void pm_self_timer_delete(int timer)
{
	if (timer != PM_SELF_NO_TIMER)
		syscall(SYS_timer_delete, timer);
}

/* ---- slots ---------------------------------------------------------------------------------- */

static struct pm_self_slot *timers_find_slot(pid_t tid)
{
	for (size_t i = 0; i < PM_SELF_SLOTS_MAX && pm_self_slots[i].entries; i++)
		if (pm_self_slots[i].tid == tid && !pm_self_slots[i].gone)
			return &pm_self_slots[i];
	return NULL;
}

/* Returns NULL and sets errno on failure. */
static struct pm_self_slot *free_slot(void)
{
	for (size_t i = 0; i < PM_SELF_SLOTS_MAX; i++) {
		struct pm_self_slot *slot = &pm_self_slots[i];
		void *entries;

		if (slot->entries && (slot->tid != 0 || atomic_load(&slot->busy)))
			continue;
		if (slot->entries)
			return slot;
		/* Entries are never freed, see timer-signal.h. */
		entries =
			mmap(NULL, PM_SELF_ENTRIES * sizeof(*slot->entries),
			     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (entries == MAP_FAILED)
			return NULL;
		atomic_store(&slot->timer, PM_SELF_NO_TIMER);
		slot->entries = entries;
		return slot;
	}
	errno = EAGAIN;
	return NULL;
}

static void slot_reset(struct pm_self_slot *slot, const struct pm_self_timers *timers,
		       pid_t tid)
{
	atomic_store(&slot->head, 0);
	atomic_store(&slot->tail, 0);
	slot->ticks = slot->samples = slot->lost = slot->unread = 0;
	slot->stacks = timers->stacks;
	slot->tid = tid;
	slot->round = timers->round;
	slot->gone = slot->named = slot->blocked = false;
	slot->lost_told = 0;
}

/*
 * Returns the time of the first tick, a random part of the interval, so that threads that
 * run for less than one interval are sampled in proportion to their time.
 */
static uint64_t first_ns(const struct pm_self_timers *timers, pid_t tid)
{
	uint64_t random = (pm_self_clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)tid << 32) *
			  0x9e3779b97f4a7c15u;

	return 1 + (random >> 32) % timers->interval_ns;
}

static void slot_end_timer(struct pm_self_slot *slot)
{
	pm_self_timer_delete(atomic_exchange(&slot->timer, PM_SELF_NO_TIMER));
	slot->gone = true;
}

static int timers_add_thread(struct pm_self_timers *timers, pid_t tid)
{
	struct pm_self_slot *slot = free_slot();
	int timer, ret;

	if (!slot)
		return -errno;
	slot_reset(slot, timers, tid);
	timer = pm_self_timer_new(pm_self_thread_clock(tid), tid, SIGPROF, slot);
	if (timer < 0) {
		slot->tid = 0;
		return timer;
	}
	atomic_store(&slot->timer, timer);
	ret = pm_self_timer_run(timer, first_ns(timers, tid), timers->interval_ns);
	if (ret < 0) {
		slot_end_timer(slot);
		slot->tid = 0;
		return ret;
	}
	timers->unchanged = 0;
	return 0;
}

void pm_self_timers_release(struct pm_self_timers *timers, struct pm_self_slot *slot)
{
	timers->ticks += slot->ticks;
	timers->unread += slot->unread;
	timers->blocked += slot->blocked;
	slot->tid = 0;
}

/* ---- looking -------------------------------------------------------------------------------- */

/* Whether the thread blocks SIGPROF, according to /proc/TID/status: a mask of 64 signals
 * in hexadecimal. */
static bool blocks_signal(pid_t tid)
{
	char path[64], line[256];
	unsigned long long mask = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	if (file)
		fclose(file);
	return mask >> (SIGPROF - 1) & 1;
}

static bool thread_exists(pid_t tid)
{
	return syscall(SYS_tgkill, getpid(), tid, 0) == 0;
}

static void timers_update_thread(struct pm_self_timers *timers, pid_t tid)
{
	struct pm_self_slot *slot = timers_find_slot(tid);
	int ret;

	if (!slot) {
		ret = timers_add_thread(timers, tid);
		/* A thread that has ended in the meantime needs no timer. */
		if (ret < 0 && thread_exists(tid)) {
			timers->without_now++;
			timers->without_errno = -ret;
		}
		return;
	}
	slot->round = timers->round;
	if (slot->samples == 0 && !slot->blocked &&
	    pm_self_clock_ns(pm_self_thread_clock(tid)) >
		    BLOCKED_TICKS * timers->interval_ns)
		slot->blocked = blocks_signal(tid);
}

/* Ends the timers of threads that the current round did not find. */
static void timers_end_missing(struct pm_self_timers *timers)
{
	size_t threads = 0;

	for (size_t i = 0; i < PM_SELF_SLOTS_MAX && pm_self_slots[i].entries; i++) {
		struct pm_self_slot *slot = &pm_self_slots[i];

		if (!slot->tid || slot->gone)
			continue;
		/* A thread may be missing in a list that is read while other threads
		 * end. */
		if (slot->round == timers->round || thread_exists(slot->tid)) {
			threads++;
			continue;
		}
		slot_end_timer(slot);
		timers->unchanged = 0;
	}
	if (timers->threads < threads)
		timers->threads = threads;
}

int pm_self_timers_look(struct pm_self_timers *timers)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	uint64_t tid;

	if (!dir)
		return -errno;
	timers->round++;
	timers->unchanged++;
	timers->without_now = 0;
	while ((entry = readdir(dir))) {
		if (!pm_parse_u64(entry->d_name, &tid) || tid > INT32_MAX ||
		    pm_self_is_own_thread((pid_t)tid) ||
		    (timers->only && (pid_t)tid != timers->only))
			continue;
		timers_update_thread(timers, (pid_t)tid);
	}
	closedir(dir);
	if (timers->without < timers->without_now)
		timers->without = timers->without_now;
	timers_end_missing(timers);
	return 0;
}

bool pm_self_timers_stable(const struct pm_self_timers *timers)
{
	return timers->unchanged >= LOOK_TRUST;
}

static bool all_threads_exist(void)
{
	for (size_t i = 0; i < PM_SELF_SLOTS_MAX && pm_self_slots[i].entries; i++)
		if (pm_self_slots[i].tid && !pm_self_slots[i].gone &&
		    !thread_exists(pm_self_slots[i].tid))
			return false;
	return true;
}

/* Whether the threads are probably still the same. This is a cheap check, for a program
 * whose threads have not changed for long. */
static bool seems_unchanged(struct pm_self_timers *timers)
{
	struct stat folder;
	uint64_t before = timers->links;

	if (stat("/proc/self/task", &folder) < 0)
		return false;
	timers->links = folder.st_nlink;
	if (!pm_self_timers_stable(timers) || timers->links != before ||
	    timers->unchanged % LOOK_TRUST == 0 || !all_threads_exist())
		return false;
	timers->unchanged++;
	return true;
}

int pm_self_timers_look_again(struct pm_self_timers *timers)
{
	uint64_t before, cost;
	int ret;

	if (pm_self_clock_ns(CLOCK_PROCESS_CPUTIME_ID) < timers->look_cpu_ns ||
	    seems_unchanged(timers))
		return 0;
	before = pm_self_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	ret = pm_self_timers_look(timers);
	cost = LOOK_SHARE * (pm_self_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before);
	timers->look_cpu_ns =
		pm_self_clock_ns(CLOCK_PROCESS_CPUTIME_ID) + PM_MAX(cost, LOOK_CPU_NS);
	return ret;
}

void pm_self_timers_stop(void)
{
	for (size_t i = 0; i < PM_SELF_SLOTS_MAX && pm_self_slots[i].entries; i++)
		if (pm_self_slots[i].tid && !pm_self_slots[i].gone)
			slot_end_timer(&pm_self_slots[i]);
}

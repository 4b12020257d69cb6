/* SPDX-License-Identifier: MIT */
/*
 * Counts between two points of a thread. Each thread has its own stack of open scopes and
 * its own sums. Its lock is uncontended except while another thread reads the sums.
 */
#include "scope.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pmself.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "clock.h"
#include "options.h"
#include "print.h"
#include "rdpmc.h"
#include "scope-sums.h"

#define PUBLIC __attribute__((visibility("default")))

enum {
	DEPTH_MAX = 64,
};

struct frame {
	uint32_t sum; /* index in the thread's sums */
	uint64_t elapsed_ns, cpu_ns;
	struct pm_self_reading reading;
};

struct thread {
	struct thread *next, **link; /* in the list of all threads */
	pthread_mutex_t lock; /* protects the members below */
	struct frame frames[DEPTH_MAX];
	size_t depth, too_deep; /* number of open scopes, and of those beyond the maximum
	                         * depth */
	struct pm_self_sums sums;
	struct pm_self_counters counters;
};

static struct {
	/* Protects the members below. It is taken before a thread's lock. */
	pthread_mutex_t lock;
	struct thread *threads;
	struct pm_self_sums ended; /* of threads that have ended */
	/* Counts in the last table that was printed. */
	uint64_t shown_calls, shown_unfinished, shown_lost;
	struct thread *abandoned; /* in a forked child: the parent's threads */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its destructor ends a thread's scopes */
static enum pm_self_scopes scopes; /* set once */
static _Atomic uint64_t lost; /* scopes that were not counted for lack of room */
static atomic_bool no_counters; /* counters cannot be opened here */
static volatile uint32_t *mark; /* points to 0 in a child; NULL: it cannot be known */
static __thread struct thread *own __attribute__((tls_model("initial-exec")));
/* This thread is in one of these functions. The program's malloc() or a signal handler
 * may use scopes as well, and must neither wait for this thread's lock nor enter
 * again. */
static __thread volatile bool inside __attribute__((tls_model("initial-exec")));

/* ---- threads ------------------------------------------------------------------------------- */

static void thread_open_counters(struct thread *thread)
{
	thread->counters = (struct pm_self_counters){ .fds = { -1, -1 } };
	if (scopes == PM_SELF_SCOPES_ALL && !atomic_load(&no_counters) &&
	    pm_self_counters_open_default(&thread->counters) < 0)
		atomic_store(&no_counters, true);
}

static void link_thread(struct thread *thread)
{
	thread->next = all.threads;
	thread->link = &all.threads;
	if (all.threads)
		all.threads->link = &thread->next;
	all.threads = thread;
}

/* Scopes that are still open count as unfinished. */
static int sums_merge_thread(struct pm_self_sums *sums, const struct thread *thread)
{
	int ret = pm_self_sums_merge(sums, thread->sums.list.data, thread->sums.list.len);

	for (size_t i = 0; ret == 0 && i < thread->depth; i++)
		ret = pm_self_sums_merge(
			sums,
			&(struct pm_self_sum){
				.name = thread->sums.list.data[thread->frames[i].sum]
						.name,
				.unfinished = 1 },
			1);
	return ret;
}

/* The destructor of the key, called at the end of the thread. */
static void scopes_end_thread(void *user)
{
	struct thread *thread = user;

	inside = true;
	pthread_mutex_lock(&all.lock);
	if (sums_merge_thread(&all.ended, thread) < 0)
		lost += thread->sums.list.len;
	*thread->link = thread->next;
	if (thread->next)
		thread->next->link = thread->link;
	pthread_mutex_unlock(&all.lock);
	own = NULL;
	pm_self_counters_close(&thread->counters);
	pm_self_sums_release(&thread->sums);
	pthread_mutex_destroy(&thread->lock);
	free(thread);
	inside = false;
}

static void read_begin(const struct thread *thread, struct frame *frame)
{
	if (scopes == PM_SELF_SCOPES_TIME)
		frame->cpu_ns = 0;
	else
		frame->cpu_ns = pm_self_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	pm_self_counters_begin(&thread->counters, &frame->reading);
	frame->elapsed_ns = pm_self_clock_ns(CLOCK_MONOTONIC);
}

static void scopes_before_fork(void)
{
	pthread_mutex_lock(&all.lock);
}

static void scopes_in_parent(void)
{
	pthread_mutex_unlock(&all.lock);
}

/*
 * Called in a forked child, which has only this thread, and counts from now on. The sums
 * of the other threads may be in any state and are not touched.
 */
static void scopes_in_child(void)
{
	const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	struct thread **last = &all.abandoned;

	if (mark)
		*mark = 1;
	all.lock = fresh;
	for (struct thread *thread = all.threads; thread; thread = thread->next) {
		/* A child does not inherit these mappings. */
		memset(thread->counters.pages, 0, sizeof(thread->counters.pages));
		pm_self_counters_close(&thread->counters);
	}
	while (*last)
		last = &(*last)->next;
	*last = all.threads;
	all.threads = NULL;
	pm_self_sums_clear(&all.ended);
	lost = all.shown_calls = all.shown_unfinished = all.shown_lost = 0;
	if (!own)
		return;
	for (last = &all.abandoned; *last && *last != own; last = &(*last)->next)
		;
	if (*last)
		*last = own->next;
	own->lock = fresh;
	pm_self_sums_clear(&own->sums);
	link_thread(own);
	thread_open_counters(own);
	for (size_t i = 0; i < own->depth; i++)
		read_begin(own, &own->frames[i]);
}

/* libc runs no fork handlers for clone(2), but the kernel zeroes this page in the
 * child. */
static void mark_process(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	if (madvise(page, bytes, MADV_WIPEONFORK) < 0) {
		munmap(page, bytes);
		return;
	}
	mark = page;
	*mark = 1;
}

static void scopes_check_process(void)
{
	if (mark && !*mark)
		scopes_in_child();
}

static void begin_all(void)
{
	struct pm_error err = { 0 };

	if (pm_self_read_scopes(&scopes, &err) < 0)
		pm_self_print_error(&err);
	if (scopes != PM_SELF_SCOPES_OFF)
		mark_process();
	if (scopes != PM_SELF_SCOPES_OFF &&
	    (pthread_key_create(&key, scopes_end_thread) != 0 ||
	     pthread_atfork(scopes_before_fork, scopes_in_parent, scopes_in_child) != 0))
		scopes = PM_SELF_SCOPES_OFF;
}

static struct thread *scopes_begin_thread(void)
{
	struct thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	pthread_mutex_init(&thread->lock, NULL);
	if (pthread_setspecific(key, thread) != 0) {
		free(thread);
		return NULL;
	}
	thread_open_counters(thread);
	pthread_mutex_lock(&all.lock);
	link_thread(thread);
	pthread_mutex_unlock(&all.lock);
	own = thread;
	return thread;
}

/* ---- begin and end ------------------------------------------------------------------------- */

static int thread_begin_scope(struct thread *thread, const char *name)
{
	struct frame *frame = &thread->frames[thread->depth];
	int ret;

	if (thread->depth == DEPTH_MAX) {
		thread->too_deep++;
		lost++;
		return -ENOSPC;
	}
	ret = pm_self_sums_at(&thread->sums, name, &frame->sum);
	if (ret < 0)
		return ret;
	read_begin(thread, frame);
	thread->depth++;
	return 0;
}

static int scope_begin(const char *name)
{
	struct thread *thread = own;
	int ret;

	if (!thread) {
		pthread_once(&once, begin_all);
		if (scopes == PM_SELF_SCOPES_OFF)
			return 0;
		thread = scopes_begin_thread();
		if (!thread)
			return -ENOMEM;
	}
	scopes_check_process();
	pthread_mutex_lock(&thread->lock);
	ret = thread_begin_scope(thread, name);
	pthread_mutex_unlock(&thread->lock);
	return ret;
}

PUBLIC int pmself_scope_begin(const char *name)
{
	int saved = errno, ret;

	if (!name)
		return -EINVAL;
	if (inside) {
		lost++;
		return -EBUSY;
	}
	inside = true;
	ret = scope_begin(name);
	inside = false;
	errno = saved;
	return ret;
}

static int thread_end_scope(struct thread *thread, const char *name)
{
	uint64_t now = pm_self_clock_ns(CLOCK_MONOTONIC), counted[PM_SELF_COUNTERS];
	const struct frame *frame = &thread->frames[thread->depth - 1];
	struct pm_self_sum sum = { .calls = 1,
				   .cpu_ns = PM_SELF_UNKNOWN,
				   .cycles = PM_SELF_UNKNOWN,
				   .instructions = PM_SELF_UNKNOWN };

	if (strcmp(thread->sums.list.data[frame->sum].name, name) != 0)
		return -EINVAL;
	if (pm_self_counters_end(&thread->counters, &frame->reading, counted)) {
		sum.cycles = counted[0];
		sum.instructions = counted[1];
	}
	sum.elapsed_ns = now - frame->elapsed_ns;
	if (scopes != PM_SELF_SCOPES_TIME)
		sum.cpu_ns = pm_self_clock_ns(CLOCK_THREAD_CPUTIME_ID) - frame->cpu_ns;
	/* The CPU clock is read before and after the other values, which takes time
	 * itself. */
	if (sum.cpu_ns != PM_SELF_UNKNOWN && sum.cpu_ns > sum.elapsed_ns)
		sum.cpu_ns = sum.elapsed_ns;
	pm_self_sum_add(&thread->sums.list.data[frame->sum], &sum);
	thread->depth--;
	return 0;
}

static int scope_end(const char *name)
{
	struct thread *thread = own;
	int ret = -EINVAL;

	if (!thread) {
		pthread_once(&once, begin_all);
		if (scopes != PM_SELF_SCOPES_OFF)
			return -EINVAL;
		return 0;
	}
	scopes_check_process();
	pthread_mutex_lock(&thread->lock);
	if (thread->too_deep > 0) {
		thread->too_deep--;
		ret = -ENOSPC;
	} else if (thread->depth > 0) {
		ret = thread_end_scope(thread, name);
	}
	pthread_mutex_unlock(&thread->lock);
	return ret;
}

PUBLIC int pmself_scope_end(const char *name)
{
	int saved = errno, ret;

	if (!name)
		return -EINVAL;
	if (inside)
		return -EBUSY;
	inside = true;
	ret = scope_end(name);
	inside = false;
	errno = saved;
	return ret;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Adds up the sums of all threads, one row for each name. */
static int scopes_collect(struct pm_self_sums *out)
{
	bool before = inside;
	int ret;

	inside = true;
	scopes_check_process();
	pthread_mutex_lock(&all.lock);
	ret = pm_self_sums_merge(out, all.ended.list.data, all.ended.list.len);
	for (struct thread *thread = all.threads; ret == 0 && thread;
	     thread = thread->next) {
		pthread_mutex_lock(&thread->lock);
		ret = sums_merge_thread(out, thread);
		pthread_mutex_unlock(&thread->lock);
	}
	pthread_mutex_unlock(&all.lock);
	inside = before;
	return ret;
}

static int scope_read(const char *name, struct pmself_counts *counts)
{
	struct pm_self_sums sums = { 0 };
	int ret = scopes_collect(&sums);

	if (ret == 0)
		ret = -ENOENT;
	for (size_t i = 0; ret == -ENOENT && i < sums.list.len; i++) {
		const struct pm_self_sum *sum = &sums.list.data[i];

		if (strcmp(sum->name, name) != 0)
			continue;
		counts->calls = sum->calls;
		counts->unfinished = sum->unfinished;
		counts->elapsed_ns = sum->elapsed_ns;
		counts->cpu_ns = sum->cpu_ns;
		counts->cycles = sum->cycles;
		counts->instructions = sum->instructions;
		ret = 0;
	}
	pm_self_sums_release(&sums);
	return ret;
}

/* This is reported once, because a program that forgets the initializer does so in a
 * loop. */
static void print_size_is_missing(void)
{
	static atomic_bool told;
	struct pm_error err = { .offset = -1 };

	if (atomic_exchange(&told, true))
		return;
	pm_error_set(
		&err, -EINVAL,
		"pmself_scope_read: the size of the counts is not set; begin them with "
		"PMSELF_COUNTS_INIT");
	pm_self_print_error(&err);
}

PUBLIC int pmself_scope_read(const char *name, struct pmself_counts *out)
{
	struct pmself_counts counts = { 0 };
	int saved = errno, ret;

	if (name && out && out->size < sizeof(out->size))
		print_size_is_missing();
	if (!name || !out || out->size < sizeof(out->size))
		return -EINVAL;
	if (inside)
		return -EBUSY;
	counts.size = out->size;
	ret = scope_read(name, &counts);
	if (ret == 0)
		memcpy(out, &counts, PM_MIN(out->size, sizeof(counts)));
	errno = saved;
	return ret;
}

/* ---- the table ----------------------------------------------------------------------------- */

static int by_elapsed(const void *left, const void *right)
{
	const struct pm_self_sum *a = left, *b = right;

	if (a->elapsed_ns != b->elapsed_ns)
		return PM_COMPARE(b->elapsed_ns, a->elapsed_ns);
	return strcmp(a->name, b->name);
}

static void put_seconds(struct pm_str *str, uint64_t ns)
{
	if (ns == PM_SELF_UNKNOWN)
		pm_str_printf(str, " %12s", "-");
	else
		pm_str_printf(str, " %12.6f", (double)ns / 1e9);
}

static void put_count_column(struct pm_str *str, uint64_t count)
{
	if (count == PM_SELF_UNKNOWN)
		pm_str_printf(str, " %14s", "-");
	else
		pm_str_printf(str, " %14" PRIu64, count);
}

/* The counts of a scope that has not ended yet are unknown. */
static void put_scope_row(struct pm_str *str, const struct pm_self_sum *sum)
{
	struct pm_self_sum shown = { .elapsed_ns = PM_SELF_UNKNOWN,
				     .cpu_ns = PM_SELF_UNKNOWN,
				     .cycles = PM_SELF_UNKNOWN,
				     .instructions = PM_SELF_UNKNOWN };

	if (sum->calls > 0)
		shown = *sum;
	pm_str_printf(str, "%10" PRIu64, sum->calls);
	put_seconds(str, shown.elapsed_ns);
	put_seconds(str, shown.cpu_ns);
	put_count_column(str, shown.cycles);
	put_count_column(str, shown.instructions);
	pm_str_puts(str, "  ");
	pm_str_printable(str, sum->name, strlen(sum->name));
	if (sum->unfinished > 0)
		pm_str_printf(str, " (%" PRIu64 " not ended)", sum->unfinished);
	pm_str_putc(str, '\n');
}

static void put_scope_table(struct pm_str *str, const struct pm_self_sums *sums)
{
	pm_str_puts(str,
		    "pmself: scopes\n     calls    elapsed s        CPU s         cycles "
		    "  instructions  scope\n");
	for (size_t i = 0; i < sums->list.len; i++)
		put_scope_row(str, &sums->list.data[i]);
	if (lost > 0)
		pm_str_printf(str,
			      "pmself: scopes that were not counted, more than %d "
			      "deep, without memory or inside of our own work: %" PRIu64
			      "\n",
			      DEPTH_MAX, (uint64_t)lost);
}

static int append_text(const char *path, const char *text, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = open(
		path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		0666);
	size_t len = strlen(text);
	ssize_t n = -1;
	int ret = 0;

	if (fd >= 0)
		n = write(fd, text, len);
	if (n < 0)
		ret = -errno;
	else if ((size_t)n < len)
		ret = -EIO;
	if (ret < 0) {
		pm_error_set(err, ret, "the table of scopes cannot be written: %s",
			     strerror(-ret));
		pm_error_where(err, path, -1);
	}
	return ret;
}

/* Whether anything was counted since the last table. */
static bool sums_have_changed(const struct pm_self_sums *sums)
{
	uint64_t calls = 0, unfinished = 0;
	bool news;

	for (size_t i = 0; i < sums->list.len; i++) {
		calls += sums->list.data[i].calls;
		unfinished += sums->list.data[i].unfinished;
	}
	pthread_mutex_lock(&all.lock);
	news = calls != all.shown_calls || unfinished > all.shown_unfinished ||
	       lost != all.shown_lost;
	all.shown_calls = calls;
	all.shown_unfinished = unfinished;
	all.shown_lost = lost;
	pthread_mutex_unlock(&all.lock);
	return news;
}

bool pm_self_scopes_used(void)
{
	bool used;

	scopes_check_process();
	pthread_mutex_lock(&all.lock);
	used = all.threads || all.ended.list.len > 0;
	pthread_mutex_unlock(&all.lock);
	return used;
}

int pm_self_scopes_show(const char *table, struct pm_error *err)
{
	struct pm_self_sums sums = { 0 };
	struct pm_str text = { 0 };
	int ret = scopes_collect(&sums);

	if (ret == 0 && sums_have_changed(&sums) && !(table && !table[0])) {
		qsort(sums.list.data, sums.list.len, sizeof(sums.list.data[0]),
		      by_elapsed);
		put_scope_table(&text, &sums);
		if (text.failed)
			ret = -ENOMEM;
		else if (table)
			ret = append_text(table, text.data, err);
		else
			pm_self_print(text.data);
	}
	if (ret == -ENOMEM)
		pm_error_set(err, ret, "out of memory");
	pm_str_release(&text);
	pm_self_sums_release(&sums);
	return ret;
}

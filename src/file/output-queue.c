/* SPDX-License-Identifier: MIT */
/*
 * Bytes for a file, which a separate thread writes. write(2) and rename(2) may block: on
 * a disk whose journal is full, on a network file system, on a pipe without a reader. The
 * thread that drains the rings only copies bytes into this queue.
 */
#include "file-internal.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	QUEUE_BYTES = 8 << 20, /* enough for half a minute at 999 Hz on two CPUs */
	WRITE_BYTES_MAX = 1 << 20, /* per call; each call makes room when it returns */
	WAIT_MS = 100, /* between two checks of whether the caller wants to end */
	STACK_BYTES = 64 << 10, /* of the thread */
	/* After this long without progress, a caller that wants to end no longer waits.
	 * Disks may be slow, but a pipe without a reader does not recover. */
	STUCK_MS = 1500,
	STUCK_FILE_MS = 30000,
};

enum queue_name {
	QUEUE_NAME_KEPT, /* publishing was not requested */
	QUEUE_NAME_WANTED, /* publish when `publish_at` bytes are written */
	QUEUE_NAME_SETTLED, /* the result is in `published` */
};

struct pm_file_queue {
	pthread_t thread;
	pthread_mutex_t lock; /* protects all members below */
	pthread_cond_t to_do, progress;
	int fd;
	uint64_t stuck_ms;
	const char *path,
		*partial; /* for publishing, borrowed; partial is NULL if that is not
		           * needed */
	char *ring;
	size_t head, len; /* the queued bytes */
	uint64_t queued, written; /* bytes since the start */
	enum queue_name name;
	struct pm_file_published published;
	uint64_t publish_at;
	int failed; /* negative errno, sticky; after an error, bytes are dropped */
	bool end; /* end when there is nothing left to do */
	bool abandoned; /* the thread hangs in a system call */
	pm_file_wants_end_fn wants_end;
	void *user;
};

int pm_file_write_fully(int fd, const char *data, size_t len, uint64_t *written)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n > 0) {
			data += n;
			len -= (size_t)n;
			*written += (uint64_t)n;
		} else if (n == 0) {
			return -EIO;
		} else if (errno == EAGAIN) {
			/* Another process has made our stdout non-blocking. */
			struct pollfd ready = { .fd = fd, .events = POLLOUT };

			if (poll(&ready, 1, -1) < 0 && errno != EINTR)
				return -errno;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/* ---- the thread; the lock is held, except during system calls ------------------------ */

static void queue_write_chunk(struct pm_file_queue *queue)
{
	size_t len = queue->len;
	const char *data = queue->ring + queue->head;
	uint64_t written = 0;
	int failed;

	if (len > QUEUE_BYTES - queue->head)
		len = QUEUE_BYTES - queue->head;
	if (len > WRITE_BYTES_MAX)
		len = WRITE_BYTES_MAX;
	pthread_mutex_unlock(&queue->lock);
	failed = pm_file_write_fully(queue->fd, data, len, &written);
	pthread_mutex_lock(&queue->lock);
	queue->written += written;
	queue->head = (queue->head + len) % QUEUE_BYTES;
	queue->len -= len;
	if (failed < 0) {
		queue->failed = failed;
		queue->len = 0;
	}
	/* If the queue is usually short, this keeps it within the first pages of its
	 * ring. */
	if (queue->len == 0)
		queue->head = 0;
}

/* The file also gets its name after a failed write: the lines before the failure may be
 * of use. */
static bool queue_publish_is_due(const struct pm_file_queue *queue)
{
	return queue->name == QUEUE_NAME_WANTED &&
	       (queue->written >= queue->publish_at || queue->failed < 0);
}

static void queue_publish(struct pm_file_queue *queue)
{
	struct pm_file_published published;

	pthread_mutex_unlock(&queue->lock);
	pm_file_partial_publish(queue->path, queue->partial, &published);
	pthread_mutex_lock(&queue->lock);
	queue->name = QUEUE_NAME_SETTLED;
	queue->published = published;
}

static void *queue_run_thread(void *user)
{
	struct pm_file_queue *queue = user;

	pthread_mutex_lock(&queue->lock);
	for (;;) {
		if (queue_publish_is_due(queue))
			queue_publish(queue);
		else if (queue->len > 0)
			queue_write_chunk(queue);
		else if (queue->end)
			break;
		else
			pthread_cond_wait(&queue->to_do, &queue->lock);
		pthread_cond_broadcast(&queue->progress);
	}
	pthread_mutex_unlock(&queue->lock);
	return NULL;
}

/* ---- the caller ---------------------------------------------------------------------- */

static int queue_init(struct pm_file_queue *queue)
{
	pthread_mutexattr_t inherits;
	pthread_condattr_t attr;
	int ret;

	queue->ring = malloc(QUEUE_BYTES);
	if (!queue->ring)
		return -ENOMEM;
	/* The thread holds the lock for a few instructions only, but may lose its CPU
	 * while it holds the lock; it then inherits the priority of the caller. */
	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&queue->lock, &inherits);
	pthread_mutexattr_destroy(&inherits);
	pthread_cond_init(&queue->to_do, NULL);
	ret = pthread_condattr_init(&attr);
	if (ret == 0) {
		pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
		ret = pthread_cond_init(&queue->progress, &attr);
		pthread_condattr_destroy(&attr);
	}
	return -ret;
}

static void queue_free(struct pm_file_queue *queue)
{
	free(queue->ring);
	free(queue);
}

/* The thread receives no signals: the first thread reads them from a descriptor. */
static int queue_start_thread(struct pm_file_queue *queue)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	ret = pthread_attr_init(&attr);
	if (ret != 0)
		return -ret;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&queue->thread, &attr, queue_run_thread, queue);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -ret;
}

int pm_file_queue_new(struct pm_file_queue **out, int fd, const char *path,
		      const char *partial, pm_file_wants_end_fn wants_end, void *user)
{
	struct pm_file_queue *queue = calloc(1, sizeof(*queue));
	struct stat st;
	int ret;

	if (!queue)
		return -ENOMEM;
	queue->fd = fd;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		queue->stuck_ms = STUCK_FILE_MS;
	else
		queue->stuck_ms = STUCK_MS;
	queue->path = path;
	queue->partial = partial;
	queue->wants_end = wants_end;
	queue->user = user;
	ret = queue_init(queue);
	if (ret == 0)
		ret = queue_start_thread(queue);
	if (ret < 0)
		queue_free(queue);
	else
		*out = queue;
	return ret;
}

static uint64_t monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void queue_wait_for_progress(struct pm_file_queue *queue)
{
	uint64_t until = monotonic_ms() + WAIT_MS;
	struct timespec time = { .tv_sec = (time_t)(until / 1000),
				 .tv_nsec = (long)(until % 1000) * 1000000 };

	pthread_cond_timedwait(&queue->progress, &queue->lock, &time);
}

static bool queue_is_behind(const struct pm_file_queue *queue, size_t left)
{
	if (queue->abandoned)
		return false;
	if (left == 0 && queue->name == QUEUE_NAME_WANTED)
		return true;
	return queue->failed == 0 && queue->len > left;
}

/*
 * Waits until at most @left bytes are queued and, if @left is 0, the file has the wanted
 * name. A caller that wants to end gives up if no bytes have been written for a while.
 */
static void queue_wait(struct pm_file_queue *queue, size_t left)
{
	uint64_t moved_ms = monotonic_ms(), written = queue->written;

	while (queue_is_behind(queue, left)) {
		queue_wait_for_progress(queue);
		if (queue->written != written) {
			written = queue->written;
			moved_ms = monotonic_ms();
		}
		if (queue->wants_end(queue->user) &&
		    monotonic_ms() - moved_ms >= queue->stuck_ms &&
		    queue_is_behind(queue, left)) {
			queue->abandoned = true;
			queue->failed = -ETIMEDOUT;
		}
	}
}

int pm_file_queue_write(struct pm_file_queue *queue, const char *data, size_t len)
{
	int failed;

	pthread_mutex_lock(&queue->lock);
	while (len > 0 && queue->failed == 0) {
		size_t tail = (queue->head + queue->len) % QUEUE_BYTES;
		size_t part = QUEUE_BYTES - queue->len;

		if (part == 0) {
			queue_wait(queue, QUEUE_BYTES - 1);
			continue;
		}
		if (part > len)
			part = len;
		if (part > QUEUE_BYTES - tail)
			part = QUEUE_BYTES - tail;
		memcpy(queue->ring + tail, data, part);
		queue->len += part;
		queue->queued += part;
		data += part;
		len -= part;
		pthread_cond_signal(&queue->to_do);
	}
	failed = queue->failed;
	pthread_mutex_unlock(&queue->lock);
	return failed;
}

int pm_file_queue_failed(struct pm_file_queue *queue)
{
	int failed;

	pthread_mutex_lock(&queue->lock);
	failed = queue->failed;
	pthread_mutex_unlock(&queue->lock);
	return failed;
}

void pm_file_queue_publish(struct pm_file_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	if (queue->partial && queue->name == QUEUE_NAME_KEPT) {
		queue->name = QUEUE_NAME_WANTED;
		queue->publish_at = queue->queued;
		pthread_cond_signal(&queue->to_do);
	}
	pthread_mutex_unlock(&queue->lock);
}

int pm_file_queue_settle(struct pm_file_queue *queue, struct pm_file_published *out)
{
	int failed;

	pthread_mutex_lock(&queue->lock);
	queue_wait(queue, 0);
	*out = queue->published;
	failed = queue->failed;
	pthread_mutex_unlock(&queue->lock);
	return failed;
}

bool pm_file_queue_free(struct pm_file_queue *queue, uint64_t *written)
{
	bool abandoned;

	pthread_mutex_lock(&queue->lock);
	queue_wait(queue, 0);
	queue->end = true;
	*written = queue->written;
	abandoned = queue->abandoned;
	pthread_cond_signal(&queue->to_do);
	pthread_mutex_unlock(&queue->lock);
	if (abandoned) {
		/* The thread still uses the queue, which is therefore not freed. The
		 * thread ends with the process. */
		pthread_detach(queue->thread);
		return false;
	}
	pthread_join(queue->thread, NULL);
	queue_free(queue);
	return true;
}

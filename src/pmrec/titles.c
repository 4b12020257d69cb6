/* SPDX-License-Identifier: MIT */
#include "titles.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MS_NS 1000000ull

enum {
	SLOTS = 256, /* requests and answers in progress */
	CMDLINE_MAX = 4096, /* bytes read of a command line */
	COMM_MAX = 15, /* TASK_COMM_LEN - 1 of linux/sched.h */
	FINISH_MS = 100,
	/* Servers set titles right after fork(2), so the first reads of a process follow
	 * each other more quickly. */
	WAIT_MS_MIN = 20,
	WAIT_MS_MAX = 1000,
	/* a search for ended processes starts at this many */
	PROCESSES_SWEEP = 4096,
};

/* A request, which the reading thread turns into an answer. */
struct slot {
	uint32_t pid;
	uint64_t time_ns; /* there was a title */
	bool titled; /* there was a title */
	char title[PM_REC_TITLE_MAX + 1];
};

/*
 * Shared by the two threads. Slots up to `asked` belong to the reading thread until it
 * has counted them in `answered`. Neither thread takes a lock: the one that drains the
 * rings may have a real-time priority, and the other may not get a CPU for a long time.
 */
struct exchange {
	struct slot slots[SLOTS];
	uint64_t asked, answered; /* counts, each written by one thread */
	bool ended; /* the recorder sends no more requests */
	unsigned int users; /* threads; the last one frees the structure */
	int wake_fd, done_fd; /* eventfds */
};

struct process {
	uint32_t pid;
	uint32_t wait_ms; /* from one read to the next */
	uint32_t recorded; /* number of titles written */
	bool asked;
	uint64_t due_ns;
	uint64_t since_ns; /* answers from before belong to another program */
	char *title; /* current title in the file, NULL: none */
};

struct pm_rec_titles {
	struct exchange *exchange; /* NULL until there is a thread */
	bool failed; /* the thread could not be started */
	bool wake; /* the thread has not been notified of all requests */
	uint64_t collected; /* answers processed */
	PM_VEC(struct process) processes;
	struct pm_index index;
	size_t sweep_at; /* the number of processes that triggers the next sweep */
	/* Bitmap, by pid: processes that have a title in the file but no row any more. */
	PM_VEC(uint8_t) titled;
};

/* ---- recognizing titles ----------------------------------------------------------------- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash)
		return slash + 1;
	return path;
}

/* Whether @text is a usual argv[0]: the program's path or name, "-bash", a link to it. */
static bool is_call(const char *text, const char *comm, const char *exe)
{
	const char *name = last_part(text[0] == '-' ? text + 1 : text);

	if (strcmp(text, comm) == 0)
		return true;
	if (exe && (strcmp(text, exe) == 0 || strcmp(name, last_part(exe)) == 0))
		return true;
	return !strchr(text, ' ') && comm[0] != '\0' &&
	       strncmp(name, comm, COMM_MAX) == 0;
}

bool pm_rec_title_of(const char *cmdline, size_t len, const char *comm, const char *exe,
		     char out[PM_REC_TITLE_MAX + 1])
{
	PM_AUTO_FREE char *text = NULL;

	while (len > 0 && (cmdline[len - 1] == '\0' || cmdline[len - 1] == ' '))
		len--;
	if (len == 0 || memchr(cmdline, '\0', len))
		return false;
	text = strndup(cmdline, len);
	if (!text || is_call(text, comm, exe))
		return false;
	if (len > PM_REC_TITLE_MAX) {
		len = PM_REC_TITLE_MAX;
		/* Do not cut within a character (UTF-8, RFC 3629 section 3). */
		while (len > PM_REC_TITLE_MAX - 3 &&
		       ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	memcpy(out, text, len);
	out[len] = '\0';
	return true;
}

/* ---- the thread that reads --------------------------------------------------------------- */

/* Returns the number of bytes; 0 if there are none or the process has ended. */
static size_t read_proc(uint32_t pid, const char *name, char *out, size_t size)
{
	char path[sizeof("/proc/4294967295/cmdline")];
	PM_AUTO_CLOSE int fd = -1;
	size_t len = 0;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && len < size) {
		ssize_t n = read(fd, out + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	return len;
}

static void read_title(struct slot *slot)
{
	char cmdline[CMDLINE_MAX], comm[COMM_MAX + 2], path[32], exe[PATH_MAX];
	size_t len, comm_len;
	ssize_t exe_len;

	slot->time_ns = pm_now_ns();
	slot->titled = false;
	len = read_proc(slot->pid, "cmdline", cmdline, sizeof(cmdline));
	/* Most processes have arguments, and are rejected here without further reads. */
	if (!pm_rec_title_of(cmdline, len, "", NULL, slot->title))
		return;
	comm_len = read_proc(slot->pid, "comm", comm, sizeof(comm) - 1);
	if (comm_len > 0 && comm[comm_len - 1] == '\n')
		comm_len--;
	comm[comm_len] = '\0';
	snprintf(path, sizeof(path), "/proc/%u/exe", slot->pid);
	exe_len = readlink(path, exe, sizeof(exe) - 1);
	exe[exe_len > 0 ? exe_len : 0] = '\0';
	slot->titled = pm_rec_title_of(cmdline, len, comm, exe_len > 0 ? exe : NULL,
				       slot->title);
}

static void exchange_release(struct exchange *exchange)
{
	if (__atomic_sub_fetch(&exchange->users, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	pm_cleanup_close(&exchange->wake_fd);
	pm_cleanup_close(&exchange->done_fd);
	free(exchange);
}

static void *read_titles_in_thread(void *user)
{
	struct exchange *exchange = user;
	uint64_t answered = 0, count;

	while (!__atomic_load_n(&exchange->ended, __ATOMIC_ACQUIRE)) {
		if (answered == __atomic_load_n(&exchange->asked, __ATOMIC_ACQUIRE)) {
			if (eventfd_write(exchange->done_fd, 1) < 0 ||
			    eventfd_read(exchange->wake_fd, &count) < 0)
				break;
			continue;
		}
		read_title(&exchange->slots[answered % SLOTS]);
		__atomic_store_n(&exchange->answered, ++answered, __ATOMIC_RELEASE);
	}
	exchange_release(exchange);
	return NULL;
}

/* Signals are blocked: the first thread reads them from a descriptor. */
static int start_titles_thread(struct exchange *exchange)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int ret;

	if (pthread_attr_init(&attr) != 0)
		return -ENOMEM;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&thread, &attr, read_titles_in_thread, exchange);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -ret;
}

static struct exchange *exchange_new(void)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	if (!exchange)
		return NULL;
	exchange->wake_fd = eventfd(0, EFD_CLOEXEC);
	exchange->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	exchange->users = 2;
	if (exchange->wake_fd >= 0 && exchange->done_fd >= 0 &&
	    start_titles_thread(exchange) == 0)
		return exchange;
	exchange->users = 1;
	exchange_release(exchange);
	return NULL;
}

/* ---- processes ----------------------------------------------------------------------------- */

static bool process_equal(const void *table, uint32_t id, const void *key)
{
	return ((const struct pm_rec_titles *)table)->processes.data[id].pid ==
	       *(const uint32_t *)key;
}

static struct process *find_titled_process(const struct pm_rec_titles *titles,
					   uint32_t pid)
{
	uint32_t id = pm_index_find(&titles->index, pm_hash_mix(pid, 0), process_equal,
				    titles, &pid);

	if (id == PM_INDEX_NONE)
		return NULL;
	return &titles->processes.data[id];
}

static int add_titled_process(struct pm_rec_titles *titles, uint32_t pid,
			      struct process **out)
{
	int ret = pm_vec_push(&titles->processes,
			      (struct process){ .pid = pid, .wait_ms = WAIT_MS_MIN });

	if (ret < 0)
		return ret;
	ret = pm_index_add(&titles->index, pm_hash_mix(pid, 0),
			   (uint32_t)titles->processes.len - 1);
	if (ret < 0)
		titles->processes.len--;
	else
		*out = &titles->processes.data[titles->processes.len - 1];
	return ret;
}

/* If the queue is full, does nothing; the next sample retries. */
static void ask_for_title(struct pm_rec_titles *titles, struct process *process)
{
	struct exchange *exchange;
	uint64_t asked;

	if (!titles->exchange && !titles->failed) {
		titles->exchange = exchange_new();
		titles->failed = !titles->exchange;
	}
	exchange = titles->exchange;
	if (!exchange || process->asked)
		return;
	asked = exchange->asked;
	if (asked - titles->collected >= SLOTS)
		return;
	exchange->slots[asked % SLOTS].pid = process->pid;
	__atomic_store_n(&exchange->asked, asked + 1, __ATOMIC_RELEASE);
	process->asked = true;
	titles->wake = true;
}

/* Once after several requests: waking the thread costs more than a request. */
static void wake_titles_thread(struct pm_rec_titles *titles)
{
	/* A write fails only if 2^64 - 2 wakeups are pending. */
	if (titles->wake)
		(void)eventfd_write(titles->exchange->wake_fd, 1);
	titles->wake = false;
}

int pm_rec_titles_sampled(struct pm_rec_titles *titles, uint32_t pid, uint64_t time_ns)
{
	struct process *process;

	if (pid == 0 || pid > INT32_MAX)
		return 0;
	process = find_titled_process(titles, pid);
	if (!process) {
		int ret = add_titled_process(titles, pid, &process);

		if (ret < 0)
			return ret;
	}
	if (!process->asked && time_ns >= process->due_ns &&
	    process->recorded < PM_REC_TITLES_MAX)
		ask_for_title(titles, process);
	return 0;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* A title must follow the line of its process in the file. The first sample of the
 * process, which would write that line, may still wait (hold.h). */
static int name_process(struct pm_rec_session *session, uint32_t pid, uint64_t time_ns)
{
	const struct pm_thread *thread =
		pm_procs_find_thread(session->procs, (pid_t)pid, (pid_t)pid);
	struct pm_chain_names names = { .known = true };

	if (!thread)
		return 0;
	memcpy(names.thread.comm, thread->comm, sizeof(names.thread.comm));
	names.thread.since_ns = thread->since_ns;
	return pm_chain_threads_name(&session->threads, session->writer, pid, pid, &names,
				     time_ns);
}

static int write_title(struct pm_rec_session *session, struct process *process,
		       const char *title, uint64_t time_ns)
{
	struct pm_file_title line = { .pid = process->pid,
				      .text = title,
				      .time = time_ns <= INT64_MAX ? time_ns
								   : INT64_MAX };
	char *copy = NULL;
	int ret;

	if (title && process->title && strcmp(title, process->title) == 0)
		return 0;
	if (!title && !process->title)
		return 0;
	if (title) {
		ret = name_process(session, process->pid, line.time);
		if (ret < 0)
			return ret;
		copy = strdup(title);
		if (!copy)
			return -ENOMEM;
		process->recorded++;
	}
	free(process->title);
	process->title = copy;
	return pm_file_write_title(session->writer, &line);
}

/* @pid belongs to another process or program now, and its row is gone. */
static int end_swept_title(struct pm_rec_session *session, uint32_t pid, uint64_t time_ns)
{
	struct pm_rec_titles *titles = session->titles;
	struct pm_file_title line = { .pid = pid,
				      .time = time_ns <= INT64_MAX ? time_ns
								   : INT64_MAX };
	uint8_t bit = (uint8_t)(1u << pid % 8);

	if (pid / 8 >= titles->titled.len || !(titles->titled.data[pid / 8] & bit))
		return 0;
	titles->titled.data[pid / 8] &= (uint8_t)~bit;
	return pm_file_write_title(session->writer, &line);
}

/* False without memory. */
static bool keep_titled(struct pm_rec_titles *titles, uint32_t pid)
{
	size_t want = pid / 8 + 1;

	if (pm_vec_reserve(&titles->titled, want) < 0)
		return false;
	while (titles->titled.len < want)
		titles->titled.data[titles->titled.len++] = 0;
	titles->titled.data[pid / 8] |= (uint8_t)(1u << pid % 8);
	return true;
}

void pm_rec_titles_sweep(struct pm_rec_titles *titles)
{
	size_t len = titles ? titles->processes.len : 0, kept = 0;

	if (len < PROCESSES_SWEEP || len < titles->sweep_at)
		return;
	pm_index_release(&titles->index);
	for (size_t i = 0; i < len; i++) {
		struct process row = titles->processes.data[i];

		if ((pm_task_is_gone((pid_t)row.pid) &&
		     (!row.title || keep_titled(titles, row.pid))) ||
		    pm_index_add(&titles->index, pm_hash_mix(row.pid, 0),
				 (uint32_t)kept) < 0)
			free(row.title);
		else
			titles->processes.data[kept++] = row;
	}
	titles->processes.len = kept;
	titles->sweep_at = 2 * kept + PROCESSES_SWEEP;
}

int pm_rec_titles_reset(struct pm_rec_session *session, uint32_t pid, uint64_t time_ns,
			bool process)
{
	struct process *row =
		session->titles ? find_titled_process(session->titles, pid) : NULL;

	int ret = session->titles ? end_swept_title(session, pid, time_ns) : 0;

	if (!row || ret < 0)
		return ret;
	row->since_ns = time_ns;
	row->due_ns = 0;
	row->wait_ms = WAIT_MS_MIN;
	if (process)
		row->recorded = 0;
	return write_title(session, row, NULL, time_ns);
}

static int collect_title(struct pm_rec_session *session, const struct slot *slot,
			 uint32_t max)
{
	struct process *process = find_titled_process(session->titles, slot->pid);

	if (!process)
		return 0;
	process->asked = false;
	if (slot->time_ns < process->since_ns)
		return 0;
	process->due_ns = slot->time_ns + process->wait_ms * MS_NS;
	if (process->wait_ms < WAIT_MS_MAX / 2)
		process->wait_ms *= 2;
	else
		process->wait_ms = WAIT_MS_MAX;
	/* A text that is not a title may be a title that is being written, or come from a
	 * process that is about to end. Only another program ends a title. */
	if (!slot->titled || process->recorded >= max)
		return 0;
	return write_title(session, process, slot->title, slot->time_ns);
}

static int collect_all_titles(struct pm_rec_session *session, uint32_t max)
{
	struct pm_rec_titles *titles = session->titles;
	uint64_t answered;
	int ret = 0;

	if (!titles || !titles->exchange)
		return 0;
	answered = __atomic_load_n(&titles->exchange->answered, __ATOMIC_ACQUIRE);
	while (ret == 0 && titles->collected < answered)
		ret = collect_title(session,
				    &titles->exchange->slots[titles->collected++ % SLOTS],
				    max);
	return ret;
}

int pm_rec_titles_collect(struct pm_rec_session *session)
{
	if (session->titles)
		wake_titles_thread(session->titles);
	return collect_all_titles(session, PM_REC_TITLES_MAX);
}

/* Waits until all requests are answered, or until @end_ns. */
static void wait_for_answers(const struct pm_rec_titles *titles, uint64_t end_ns)
{
	const struct exchange *exchange = titles->exchange;
	uint64_t now = pm_now_ns(), count;

	while (now < end_ns &&
	       __atomic_load_n(&exchange->answered, __ATOMIC_ACQUIRE) < exchange->asked) {
		struct pollfd done = { .fd = exchange->done_fd, .events = POLLIN };

		poll(&done, 1, (int)((end_ns - now + MS_NS - 1) / MS_NS));
		if (done.revents)
			(void)eventfd_read(exchange->done_fd, &count);
		now = pm_now_ns();
	}
}

int pm_rec_titles_finish(struct pm_rec_session *session)
{
	struct pm_rec_titles *titles = session->titles;
	uint64_t end_ns = pm_now_ns() + FINISH_MS * MS_NS;
	size_t next = 0;
	int ret = 0;

	if (!titles || !titles->exchange)
		return 0;
	do {
		/* At most as many at once as there are slots. */
		for (size_t room = SLOTS; room > 0 && next < titles->processes.len;
		     next++) {
			struct process *process = &titles->processes.data[next];

			if (kill((pid_t)process->pid, 0) < 0 && errno == ESRCH)
				continue;
			ask_for_title(titles, process);
			room--;
		}
		wake_titles_thread(titles);
		wait_for_answers(titles, end_ns);
		ret = collect_all_titles(session, PM_REC_TITLES_MAX + 1);
	} while (ret == 0 && next < titles->processes.len && pm_now_ns() < end_ns);
	return ret;
}

/* ---- creation and release ------------------------------------------------------------------ */

struct pm_rec_titles *pm_rec_titles_new(void)
{
	return calloc(1, sizeof(struct pm_rec_titles));
}

void pm_rec_titles_free(struct pm_rec_titles *titles)
{
	if (!titles)
		return;
	if (titles->exchange) {
		__atomic_store_n(&titles->exchange->ended, true, __ATOMIC_RELEASE);
		(void)eventfd_write(titles->exchange->wake_fd, 1);
		exchange_release(titles->exchange);
	}
	for (size_t i = 0; i < titles->processes.len; i++)
		free(titles->processes.data[i].title);
	pm_vec_release(&titles->processes);
	pm_vec_release(&titles->titled);
	pm_index_release(&titles->index);
	free(titles);
}

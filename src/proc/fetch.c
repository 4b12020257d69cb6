/* SPDX-License-Identifier: MIT */
/*
 * The side that asks. Each helper has one request at a time. The one that is late keeps it, and
 * another helper serves whoever asks next.
 */
#include "fetch-internal.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum {
	HELPERS_MAX = 8, /* with those that were killed and have not gone */
	LATE_PER_OWNER_MAX = 2, /* helpers that wait for what one user's processes have */
	MUTE_PROCESSES = 64, /* whose memory was late */
	ANSWER_BYTES_MAX = 32 << 20, /* 2^17 mappings with names of some length */
};
#define MS_NS 1000000ull
/* The caller may have rings to read. It waits for a helper that is blocked: for one answer, and in
 * one second. It waits longer for one that is at work, or has no CPU. */
#define LOOK_NS             (2 * MS_NS)
#define BLOCKED_NS_MAX      (10 * MS_NS)
#define BLOCKED_A_SECOND_NS (30 * MS_NS)
#define WAIT_NS_MAX         (30 * MS_NS)
#define WAIT_A_SECOND_NS    (100 * MS_NS)
/* Without a priority of its own: the caller would wait for a CPU itself. */
#define WAIT_PLAIN_NS_MAX      (500 * MS_NS)
#define WAIT_PLAIN_A_SECOND_NS (900 * MS_NS)
#define RUNNING_DEADLINE_NS    (20000 * MS_NS)
#define FILE_DEADLINE_NS       (2000 * MS_NS)
#define MEMORY_DEADLINE_NS     (200 * MS_NS)

enum state {
	NONE,
	IDLE,
	BUSY,
	ANSWERED, /* and nobody has taken the answer */
	KILLED, /* but not gone */
};

struct helper {
	enum state state;
	int fd, pidfd;
	pid_t pid; /* 0: it has not said hello */
	bool dropped; /* nobody waits for its answer */
	uint64_t ticket;
	uint64_t asked_ns, deadline_ns;
	uid_t owner; /* of the process that it was asked about */
	struct pm_fetch_reply reply;
	int reply_fd;
	struct pm_str data;
};

struct pm_fetch {
	pid_t forker;
	int forker_fd;
	int priority; /* of SCHED_FIFO, of the helpers; 0: none */
	struct pm_mounts *mounts;
	uint64_t tickets;
	uint64_t second;
	uint64_t waited_ns, blocked_ns; /* in this second */
	struct helper helpers[HELPERS_MAX];
	pid_t mute[MUTE_PROCESSES];
	size_t mute_len;
	struct pm_fetch_request request;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- life ------------------------------------------------------------------------------ */

/* Whoever waits for a pipe of ours to end shall not wait for a helper that hangs. */
static int keep_only(int fd)
{
	enum {
		KEPT = STDERR_FILENO + 1,
		FDS_WITHOUT_RANGE = 1024
	};
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i <= STDERR_FILENO && nowhere >= 0; i++)
		dup2(nowhere, i);
	if (fd != KEPT && dup2(fd, KEPT) < 0)
		return fd;
	fcntl(KEPT, F_SETFD, FD_CLOEXEC);
	if (syscall(SYS_close_range, KEPT + 1, ~0u, 0) != 0)
		for (int i = KEPT + 1; i < FDS_WITHOUT_RANGE; i++)
			close(i);
	return KEPT;
}

struct pm_fetch *pm_fetch_new(void)
{
	struct pm_fetch *fetch = calloc(1, sizeof(*fetch));
	sigset_t all, before;
	pid_t parent = getpid();
	int ends[2];

	if (!fetch)
		return NULL;
	fetch->mounts = pm_mounts_new();
	if (!fetch->mounts ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		pm_mounts_free(fetch->mounts);
		free(fetch);
		return NULL;
	}
	/* Signals to the group of processes are for us alone. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	fetch->forker = fork();
	if (fetch->forker == 0) {
		close(ends[0]);
		pm_fetch_fork_helpers(keep_only(ends[1]), parent);
		_exit(0);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	fetch->forker_fd = ends[0];
	if (fetch->forker < 0) {
		close(ends[0]);
		pm_mounts_free(fetch->mounts);
		free(fetch);
		return NULL;
	}
	return fetch;
}

static void helper_release(struct helper *helper)
{
	if (helper->state != NONE) {
		if (helper->state != KILLED)
			close(helper->fd);
		pm_cleanup_close(&helper->pidfd);
		pm_cleanup_close(&helper->reply_fd);
	}
	pm_str_release(&helper->data);
	*helper = (struct helper){ .state = NONE };
}

static void helper_signal(const struct helper *helper, int sig)
{
	if (helper->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, helper->pidfd, sig, NULL, 0);
	else if (helper->pid > 0)
		kill(helper->pid, sig);
}

void pm_fetch_free(struct pm_fetch *fetch)
{
	if (!fetch)
		return;
	for (size_t i = 0; i < HELPERS_MAX; i++) {
		if (fetch->helpers[i].state != NONE)
			helper_signal(&fetch->helpers[i], SIGKILL);
		helper_release(&fetch->helpers[i]);
	}
	/* The helpers die with it, or once they can. It waits for nothing itself. */
	kill(fetch->forker, SIGKILL);
	close(fetch->forker_fd);
	while (waitpid(fetch->forker, NULL, 0) < 0 && errno == EINTR)
		;
	pm_mounts_free(fetch->mounts);
	free(fetch);
}

struct pm_mounts *pm_fetch_mounts(struct pm_fetch *fetch)
{
	return fetch ? fetch->mounts : NULL;
}

int pm_fetch_start(struct pm_fetch *fetch, void (*run)(const int *fds), const int *fds,
		   size_t len)
{
	struct pm_fetch_start start = { .run = run };

	return pm_fetch_send(fetch->forker_fd, &start, sizeof(start), NULL, 0, fds, len);
}

/* ---- helpers --------------------------------------------------------------------------- */

static bool helper_start(struct pm_fetch *fetch, struct helper *helper)
{
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	rc = pm_fetch_start(fetch, pm_fetch_serve, &ends[1], 1);
	close(ends[1]);
	if (rc < 0) {
		close(ends[0]);
		return false;
	}
	*helper = (struct helper){
		.state = IDLE, .fd = ends[0], .pidfd = -1, .reply_fd = -1
	};
	return true;
}

void pm_fetch_begin(struct pm_fetch *fetch, int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	if (!fetch)
		return;
	/* A helper inherits it: it could not give itself a priority before it has a CPU. */
	if (priority > 0 && sched_setscheduler(fetch->forker, SCHED_FIFO, &param) == 0)
		fetch->priority = priority;
	if (fetch->helpers[0].state == NONE)
		helper_start(fetch, &fetch->helpers[0]);
}

/* It is not waited for: a thread in an uninterruptible sleep dies when that is over. */
static void helper_kill(struct helper *helper)
{
	helper_signal(helper, SIGKILL);
	close(helper->fd);
	helper->fd = -1;
	helper->state = KILLED;
}

/* Whether one that was killed is still there. */
static bool helper_lingers(const struct helper *helper)
{
	struct pollfd ended = { .fd = helper->pidfd, .events = POLLIN };

	if (helper->pidfd >= 0)
		return poll(&ended, 1, 0) == 0;
	return helper->pid > 0 && kill(helper->pid, 0) == 0;
}

/* Takes what has come. False: the helper has ended. */
static bool helper_receive(struct helper *helper)
{
	char piece[PM_FETCH_PIECE_BYTES];

	while (helper->state == BUSY) {
		struct pm_fetch_hello hello;
		struct pm_fetch_reply *reply = &helper->reply;
		ssize_t n;
		int fd;

		if (helper->pid == 0) {
			n = pm_fetch_receive(helper->fd, &hello, sizeof(hello), NULL, 0,
					     &helper->pidfd, 1, MSG_DONTWAIT);
			if (n == sizeof(hello)) {
				helper->pid = hello.pid;
				continue;
			}
			return n == -EAGAIN;
		}
		n = pm_fetch_receive(helper->fd, reply, sizeof(*reply), piece,
				     sizeof(piece), &fd, 1, MSG_DONTWAIT);
		if (n == -EAGAIN)
			return true;
		if (n < (ssize_t)sizeof(*reply)) {
			pm_cleanup_close(&fd);
			return false;
		}
		pm_str_append(&helper->data, piece, (size_t)n - sizeof(*reply));
		if (fd >= 0) {
			pm_cleanup_close(&helper->reply_fd);
			helper->reply_fd = fd;
		}
		if (helper->data.failed || helper->data.len > ANSWER_BYTES_MAX)
			return false;
		if (!reply->more)
			helper->state = ANSWERED;
	}
	return true;
}

static void helper_make_idle(struct helper *helper)
{
	pm_cleanup_close(&helper->reply_fd);
	helper->reply_fd = -1;
	helper->state = IDLE;
	helper->ticket = 0;
	helper->dropped = false;
	pm_str_clear(&helper->data);
}

/* One that has not said hello is being forked. */
static bool helper_is_running(const struct helper *helper)
{
	return helper->pid == 0 || pm_is_running(helper->pid);
}

/* What has become of all of them, without waiting. */
static void look_at_helpers(struct pm_fetch *fetch, uint64_t now)
{
	for (size_t i = 0; i < HELPERS_MAX; i++) {
		struct helper *helper = &fetch->helpers[i];

		if (helper->state == BUSY && !helper_receive(helper)) {
			helper_kill(helper);
			continue;
		}
		if (helper->state == ANSWERED && helper->dropped)
			helper_make_idle(helper);
		/* A busy machine is no reason to give one up. */
		if (helper->state == BUSY && now >= helper->deadline_ns &&
		    (!helper_is_running(helper) ||
		     now >= helper->asked_ns + RUNNING_DEADLINE_NS))
			helper_kill(helper);
		if (helper->state == KILLED && !helper_lingers(helper))
			helper_release(helper);
	}
}

/* Who is to be asked. NULL: nobody. */
static struct helper *choose_helper(struct pm_fetch *fetch, uid_t owner)
{
	struct helper *free_slot = NULL;
	size_t late = 0;

	for (size_t i = 0; i < HELPERS_MAX; i++) {
		struct helper *helper = &fetch->helpers[i];

		late += (helper->state == BUSY || helper->state == KILLED) &&
			helper->owner == owner;
		if (helper->state == NONE && !free_slot)
			free_slot = helper;
	}
	if (late >= LATE_PER_OWNER_MAX)
		return NULL;
	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (fetch->helpers[i].state == IDLE)
			return &fetch->helpers[i];
	return free_slot && helper_start(fetch, free_slot) ? free_slot : NULL;
}

/* ---- asking ---------------------------------------------------------------------------- */

static uid_t owner_of(pid_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return pid > 0 && stat(path, &st) == 0 ? st.st_uid : (uid_t)-1;
}

/* An empty request to be filled in. */
static struct pm_fetch_request *request_begin(struct pm_fetch *fetch,
					      enum pm_fetch_kind kind, pid_t pid)
{
	struct pm_fetch_request *request = &fetch->request;

	memset(request, 0, offsetof(struct pm_fetch_request, path));
	request->kind = kind;
	request->pid = pid;
	request->path[0] = '\0';
	return request;
}

static int request_put_path(struct pm_fetch_request *request, const char *path)
{
	size_t len = path ? strlen(path) : 0;

	if (len >= sizeof(request->path))
		return -ENAMETOOLONG;
	if (path)
		memcpy(request->path, path, len + 1);
	return 0;
}

/* The helper that has the request now, or negative. */
static int ask(struct pm_fetch *fetch, int fd, uint64_t deadline_ns, struct helper **ret)
{
	const struct pm_fetch_request *request = &fetch->request;
	uint64_t now = now_ns();
	uid_t owner = owner_of(request->pid);
	struct helper *helper;
	int rc;

	look_at_helpers(fetch, now);
	helper = choose_helper(fetch, owner);
	if (!helper)
		return -EBUSY;
	rc = pm_fetch_send(helper->fd, request, offsetof(struct pm_fetch_request, path),
			   request->path, strlen(request->path) + 1, &fd, fd >= 0);
	if (rc < 0) {
		helper_kill(helper);
		return -EBUSY;
	}
	helper->state = BUSY;
	helper->ticket = ++fetch->tickets;
	helper->asked_ns = now;
	helper->deadline_ns = now + deadline_ns;
	helper->owner = owner;
	*ret = helper;
	return 0;
}

/* A while at most. 0: the answer is there; -EINPROGRESS; -EIO: it has ended. */
static int await(struct pm_fetch *fetch, struct helper *helper)
{
	uint64_t begin = now_ns(), now = begin, blocked = 0;
	uint64_t wait_max = fetch->priority > 0 ? WAIT_NS_MAX : WAIT_PLAIN_NS_MAX;
	uint64_t second_max =
		fetch->priority > 0 ? WAIT_A_SECOND_NS : WAIT_PLAIN_A_SECOND_NS;
	bool lives = helper_receive(helper);

	if (fetch->second != begin / 1000000000u) {
		fetch->second = begin / 1000000000u;
		fetch->waited_ns = fetch->blocked_ns = 0;
	}
	while (lives && helper->state == BUSY && now - begin < wait_max &&
	       blocked < BLOCKED_NS_MAX && fetch->waited_ns + now - begin < second_max &&
	       fetch->blocked_ns + blocked < BLOCKED_A_SECOND_NS) {
		struct pollfd fd = { .fd = helper->fd, .events = POLLIN };
		const struct timespec wait = { .tv_nsec = LOOK_NS };
		uint64_t before = now;

		ppoll(&fd, 1, &wait, NULL);
		lives = helper_receive(helper);
		now = now_ns();
		if (helper->state == BUSY && !helper_is_running(helper))
			blocked += now - before;
	}
	fetch->blocked_ns += blocked;
	if (now - begin > LOOK_NS)
		fetch->waited_ns += now - begin;
	if (!lives) {
		helper_kill(helper);
		return -EIO;
	}
	return helper->state == ANSWERED ? 0 : -EINPROGRESS;
}

static struct helper *find_ticket(struct pm_fetch *fetch, uint64_t ticket)
{
	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (fetch->helpers[i].ticket == ticket && fetch->helpers[i].state != NONE)
			return &fetch->helpers[i];
	return NULL;
}

void pm_fetch_drop(struct pm_fetch *fetch, uint64_t *ticket)
{
	struct helper *helper = *ticket != 0 ? find_ticket(fetch, *ticket) : NULL;

	if (helper)
		helper->dropped = true;
	*ticket = 0;
}

/* Of calls with a ticket: asks or looks. 0: @ret has the answer, until the next call. */
static int ask_or_look(struct pm_fetch *fetch, uint64_t *ticket, int fd,
		       struct helper **ret)
{
	struct helper *helper;
	int rc;

	if (*ticket == 0) {
		rc = ask(fetch, fd, FILE_DEADLINE_NS, &helper);
		if (rc < 0)
			return rc;
		rc = await(fetch, helper);
		if (rc == -EINPROGRESS)
			*ticket = helper->ticket;
		*ret = helper;
		return rc;
	}
	look_at_helpers(fetch, now_ns());
	helper = find_ticket(fetch, *ticket);
	if (helper && helper->state == BUSY)
		return -EINPROGRESS;
	*ticket = 0;
	*ret = helper;
	return helper && helper->state == ANSWERED ? 0 : -ETIMEDOUT;
}

/* Of calls without: what is late is dropped. -EAGAIN: the helper has had no CPU. */
static int ask_once(struct pm_fetch *fetch, int fd, uint64_t deadline_ns,
		    struct helper **ret)
{
	struct helper *helper;
	int rc = ask(fetch, fd, deadline_ns, &helper);

	if (rc == 0)
		rc = await(fetch, helper);
	if (rc == -EINPROGRESS) {
		helper->dropped = true;
		rc = helper_is_running(helper) ? -EAGAIN : -ETIMEDOUT;
	}
	*ret = helper;
	return rc;
}

/* ---- answers --------------------------------------------------------------------------- */

static int explain(int rc, const char *path, struct pm_error *err)
{
	if (rc == -ETIMEDOUT)
		pm_error_set(err, rc, "its file system does not answer");
	else
		pm_error_set(err, rc, "%s", strerror(-rc));
	pm_error_where(err, path, -1);
	return rc;
}

/* Takes the answer's file, or its error. */
static int take_file(struct helper *helper, struct pm_fetch_file *ret,
		     struct pm_error *err)
{
	const struct pm_fetch_reply *reply = &helper->reply;
	int rc = reply->code;

	if (rc == 0 && helper->reply_fd < 0)
		rc = pm_error_set(err, -EMFILE, "too many open files");
	else if (rc < 0 && err)
		*err = reply->err;
	if (rc == 0)
		*ret = (struct pm_fetch_file){ .fd = pm_take_fd(&helper->reply_fd),
					       .copied = reply->copied,
					       .partial = reply->partial,
					       .copied_bytes = reply->copied_bytes };
	helper_make_idle(helper);
	return rc;
}

int pm_fetch_module(struct pm_fetch *fetch, uint64_t *ticket,
		    const struct pm_module *module, uint64_t copy_bytes_max,
		    struct pm_fetch_file *ret, struct pm_error *err)
{
	struct helper *helper = NULL;
	int rc = 0;

	if (*ticket == 0) {
		struct pm_fetch_request *request =
			request_begin(fetch, PM_FETCH_MODULE, module->seen_pid);
		int fd = pm_module_open_local(fetch->mounts, module);

		if (fd >= 0) {
			*ret = (struct pm_fetch_file){ .fd = fd };
			return 0;
		}
		request->module = *module;
		request->copy_bytes_max = copy_bytes_max;
		rc = request_put_path(request, module->identity.path);
	}
	if (rc == 0)
		rc = ask_or_look(fetch, ticket, -1, &helper);
	if (rc == 0)
		return take_file(helper, ret, err);
	return explain(rc, module->identity.path, err);
}

int pm_fetch_open_local(struct pm_fetch *fetch, pid_t pid, const char *path)
{
	PM_AUTO_CLOSE int handle = open(path, O_PATH | O_CLOEXEC);

	if (handle < 0)
		return -errno;
	return pm_mounts_locality(fetch->mounts, handle, pid) == PM_LOCAL
		       ? pm_open_regular(handle)
		       : -EREMOTE;
}

int pm_fetch_debug(struct pm_fetch *fetch, uint64_t *ticket, int fd,
		   const struct pm_module *module, uint64_t *crc_bytes_left,
		   uint64_t copy_bytes_max, struct pm_fetch_file *ret)
{
	struct helper *helper = NULL;
	int rc = 0;

	if (*ticket == 0) {
		struct pm_fetch_request *request =
			request_begin(fetch, PM_FETCH_DEBUG, module->seen_pid);

		request->module = *module;
		request->copy_bytes_max = copy_bytes_max;
		request->crc_bytes_left = *crc_bytes_left;
		rc = pm_debug_find(
			fd, &(struct pm_debug_search){ .pid = module->seen_pid,
						       .path = module->identity.path,
						       .crc_bytes_left = crc_bytes_left,
						       .mounts = fetch->mounts });
		if (rc >= 0)
			*ret = (struct pm_fetch_file){ .fd = rc };
		if (rc != -EREMOTE)
			return rc < 0 ? rc : 0;
		rc = request_put_path(request, module->identity.path);
	}
	if (rc == 0)
		rc = ask_or_look(fetch, ticket, fd, &helper);
	if (rc < 0)
		return rc;
	if (helper->reply.crc_bytes_left < *crc_bytes_left)
		*crc_bytes_left = helper->reply.crc_bytes_left;
	return take_file(helper, ret, NULL);
}

static int fetch_mappings(struct pm_fetch *fetch, enum pm_fetch_kind kind,
			  uint64_t *ticket, struct pm_procs *procs, pid_t pid,
			  struct pm_error *err)
{
	struct helper *helper = NULL;
	int rc;

	if (*ticket == 0)
		request_begin(fetch, kind, pid);
	rc = ask_or_look(fetch, ticket, -1, &helper);
	if (rc == 0) {
		rc = helper->reply.code;
		if (rc < 0 && err)
			*err = helper->reply.err;
		if (rc == 0)
			rc = pm_procs_take(procs, pid, helper->reply.tid,
					   helper->data.data, helper->data.len);
		helper_make_idle(helper);
	}
	pm_procs_set_unread(procs, pid,
			    rc == -EINPROGRESS || rc == -EBUSY || rc == -ETIMEDOUT);
	return rc;
}

int pm_fetch_process(struct pm_fetch *fetch, uint64_t *ticket, struct pm_procs *procs,
		     pid_t pid, struct pm_error *err)
{
	return fetch_mappings(fetch, PM_FETCH_PROCESS, ticket, procs, pid, err);
}

int pm_fetch_maps_only(struct pm_fetch *fetch, uint64_t *ticket, struct pm_procs *procs,
		       pid_t pid, struct pm_error *err)
{
	return fetch_mappings(fetch, PM_FETCH_MAPS_ONLY, ticket, procs, pid, err);
}

size_t pm_fetch_memory(struct pm_fetch *fetch, pid_t pid, uint64_t address, void *ret,
		       size_t len)
{
	struct pm_fetch_request *request;
	struct helper *helper;
	size_t got = 0;
	int rc;

	/* Other users' processes are out of reach then. */
	if (geteuid() != 0)
		return pm_trace_read(pid, address, ret, len);
	for (size_t i = 0; i < MUTE_PROCESSES && i < fetch->mute_len; i++)
		if (fetch->mute[i] == pid)
			return 0;
	request = request_begin(fetch, PM_FETCH_MEMORY, pid);
	request->address = address;
	request->len = len < PM_FETCH_PIECE_BYTES ? len : PM_FETCH_PIECE_BYTES;
	rc = ask_once(fetch, -1, MEMORY_DEADLINE_NS, &helper);
	if (rc == -ETIMEDOUT)
		fetch->mute[fetch->mute_len++ % MUTE_PROCESSES] = pid;
	if (rc < 0)
		return 0;
	/* Yama lets an ancestor read what it does not let a helper read. */
	if (helper->reply.code == -EPERM) {
		got = pm_trace_read(pid, address, ret, len);
	} else if (helper->reply.code == 0 && helper->data.len <= len) {
		got = helper->data.len;
		if (got > 0)
			memcpy(ret, helper->data.data, got);
	}
	helper_make_idle(helper);
	return got;
}

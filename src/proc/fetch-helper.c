/* SPDX-License-Identifier: MIT */
/* The side of the helpers: one request at a time, in the order in which they come. */
#include "fetch-internal.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "pm/base.h"

enum {
	REALTIME_US_MAX = 50000, /* of CPU time without a pause */
};

struct helper {
	int socket;
	struct pm_mounts *mounts;
	int policy; /* that it began with */
	struct sched_param param;
	struct pm_fetch_request request;
	int request_fd; /* that came with it, -1: none */
	struct pm_str data; /* of the answer */
	uint8_t piece[PM_FETCH_PIECE_BYTES];
};

/* ---- files ----------------------------------------------------------------------------- */

/* @fd itself, or a copy in memory of what it leads to. Takes @fd. */
static int keep_or_copy(const struct helper *helper, int fd_, pid_t pid,
			struct pm_fetch_reply *reply)
{
	PM_AUTO_CLOSE int fd = fd_;
	int copy;

	if (pm_file_is_local(helper->mounts, fd, pid))
		return pm_take_fd(&fd);
	copy = pm_file_copy(fd, helper->request.copy_bytes_max, &reply->partial,
			    &reply->copied_bytes);
	reply->copied = copy >= 0;
	if (copy == -EFBIG)
		pm_error_set(&reply->err, copy,
			     "it is on a file system that may stop answering, and too "
			     "large to be copied first");
	else if (copy < 0)
		pm_error_set(&reply->err, copy, "cannot be read: %s", strerror(-copy));
	return copy;
}

static int serve_module(struct helper *helper, struct pm_fetch_reply *reply)
{
	int fd = pm_module_open(&helper->request.module, &reply->err);

	if (fd < 0)
		return fd;
	fd = keep_or_copy(helper, fd, helper->request.module.seen_pid, reply);
	if (fd < 0)
		pm_error_where(&reply->err, helper->request.path, -1);
	return fd;
}

static int serve_debug(struct helper *helper, struct pm_fetch_reply *reply)
{
	const struct pm_module *module = &helper->request.module;
	int fd;

	reply->crc_bytes_left = helper->request.crc_bytes_left;
	fd = pm_debug_find(
		helper->request_fd,
		&(struct pm_debug_search){ .pid = module->seen_pid,
					   .path = module->identity.path,
					   .crc_bytes_left = &reply->crc_bytes_left });
	return fd < 0 ? fd : keep_or_copy(helper, fd, module->seen_pid, reply);
}

/* ---- processes ------------------------------------------------------------------------- */

static void put(struct helper *helper, const void *bytes, size_t len)
{
	pm_str_append(&helper->data, bytes, len);
}

static void put_mappings(struct helper *helper, const struct pm_procs *procs,
			 const struct pm_process *process, struct pm_fetch_reply *reply)
{
	struct pm_fetch_mapping row = { 0 };

	for (size_t i = 0; i < process->space.maps.len; i++) {
		const struct pm_mapping *mapping = &process->space.maps.data[i];
		const struct pm_module *module = pm_procs_module(procs, mapping->module);

		row = (struct pm_fetch_mapping){
			.start = mapping->start,
			.end = mapping->end,
			.pgoff = mapping->pgoff,
			.identity = module->identity,
			.path_len = (uint32_t)strlen(module->identity.path),
		};
		reply->tid = module->seen_pid;
		put(helper, &row, sizeof(row));
		put(helper, module->identity.path, row.path_len + 1);
	}
	row = (struct pm_fetch_mapping){ 0 };
	put(helper, &row, sizeof(row));
}

static void put_tasks(struct helper *helper, struct pm_procs *procs, pid_t pid)
{
	const struct dirent *entry;
	char name[64];
	DIR *folder;

	snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
	folder = opendir(name);
	while (folder && (entry = readdir(folder))) {
		struct pm_fetch_task row = { 0 };
		const struct pm_thread *thread;
		uint64_t tid;

		if (!pm_parse_u64(entry->d_name, &tid) || tid > INT32_MAX)
			continue;
		thread = pm_procs_thread(procs, pid, (pid_t)tid);
		if (!thread || thread->comm[0] == '\0')
			continue;
		row.tid = (pid_t)tid;
		memcpy(row.comm, thread->comm, sizeof(row.comm));
		put(helper, &row, sizeof(row));
	}
	if (folder)
		closedir(folder);
}

static int serve_process(struct helper *helper, struct pm_fetch_reply *reply)
{
	struct pm_procs *procs = pm_procs_new(NULL);
	pid_t pid = helper->request.pid;
	bool files = helper->request.kind == PM_FETCH_PROCESS;
	const struct pm_process *process;
	int rc = -ENOMEM;

	if (procs && files)
		rc = pm_procs_read(procs, pid, &reply->err);
	else if (procs)
		rc = pm_procs_read_maps_only(procs, pid, &reply->err);
	process = rc == 0 ? pm_procs_get(procs, pid) : NULL;

	reply->tid = pid;
	if (process) {
		put_mappings(helper, procs, process, reply);
		put_tasks(helper, procs, pid);
	} else if (rc == 0) {
		rc = -ENOMEM;
	}
	pm_procs_free(procs);
	return helper->data.failed ? -ENOMEM : rc;
}

static int serve_memory(struct helper *helper)
{
	size_t len = helper->request.len < sizeof(helper->piece) ? helper->request.len
								 : sizeof(helper->piece);
	size_t got;

	errno = 0;
	got = pm_trace_read(helper->request.pid, helper->request.address, helper->piece,
			    len);
	if (got == 0 && errno == EPERM)
		return -EPERM;
	put(helper, helper->piece, got);
	return 0;
}

/* ---- the loop -------------------------------------------------------------------------- */

static volatile sig_atomic_t demoted;

/* SIGXCPU: one request takes so much CPU time that others would have to wait. */
static void demote(int sig)
{
	static const struct sched_param none;
	int saved = errno;

	(void)sig;
	demoted = 1;
	sched_setscheduler(0, SCHED_OTHER, &none);
	errno = saved;
}

static void limit_realtime(void)
{
	const struct sigaction action = { .sa_handler = demote, .sa_flags = SA_RESTART };
	struct rlimit limit;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXCPU);
	if (getrlimit(RLIMIT_RTTIME, &limit) < 0 || sigaction(SIGXCPU, &action, NULL) < 0)
		return;
	limit.rlim_cur =
		limit.rlim_max < REALTIME_US_MAX ? limit.rlim_max : REALTIME_US_MAX;
	setrlimit(RLIMIT_RTTIME, &limit);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Whoever waits for the answer has the same priority, and rings to read. */
static void restore_priority(const struct helper *helper)
{
	if (!demoted)
		return;
	demoted = 0;
	sched_setscheduler(0, helper->policy, &helper->param);
}

/* The fd of the answer, 0 where it has none, or negative. */
static int serve_request(struct helper *helper, struct pm_fetch_reply *reply)
{
	switch (helper->request.kind) {
	case PM_FETCH_MODULE:
		return serve_module(helper, reply);
	case PM_FETCH_DEBUG:
		return serve_debug(helper, reply);
	case PM_FETCH_PROCESS:
	case PM_FETCH_MAPS_ONLY:
		return serve_process(helper, reply);
	case PM_FETCH_MEMORY:
		return serve_memory(helper);
	}
	return -EINVAL;
}

static int answer(struct helper *helper, struct pm_fetch_reply *reply, int fd)
{
	size_t at = 0;
	int rc;

	reply->code = fd < 0 ? fd : 0;
	do {
		size_t left = helper->data.len - at;
		size_t len = left < PM_FETCH_PIECE_BYTES ? left : PM_FETCH_PIECE_BYTES;

		reply->more = len < left;
		rc = pm_fetch_send(helper->socket, reply, sizeof(*reply),
				   helper->data.data + at, len, &fd,
				   fd > 0 && !reply->more);
		at += len;
	} while (rc == 0 && reply->more);
	if (fd > 0)
		close(fd);
	return rc;
}

static int say_hello(int socket)
{
	struct pm_fetch_hello hello = { .pid = getpid() };
	int fd = (int)syscall(SYS_pidfd_open, hello.pid, 0);
	int rc = pm_fetch_send(socket, &hello, sizeof(hello), NULL, 0, &fd, fd >= 0);

	if (fd >= 0)
		close(fd);
	return rc;
}

void pm_fetch_serve(const int *fds)
{
	struct helper *helper = calloc(1, sizeof(*helper));
	size_t head_len = offsetof(struct pm_fetch_request, path);
	int rc;

	if (!helper)
		return;
	helper->mounts = pm_mounts_new();
	helper->policy = sched_getscheduler(0);
	if (!helper->mounts || sched_getparam(0, &helper->param) < 0)
		return;
	helper->socket = fds[0];
	limit_realtime();
	rc = say_hello(helper->socket);
	while (rc == 0) {
		struct pm_fetch_request *request = &helper->request;
		struct pm_fetch_reply reply = { .code = 0 };
		ssize_t n = pm_fetch_receive(helper->socket, request, head_len,
					     request->path, sizeof(request->path),
					     &helper->request_fd, 1, 0);

		if (n < (ssize_t)head_len)
			break;
		request->path[(size_t)n - head_len < sizeof(request->path)
				      ? (size_t)n - head_len
				      : sizeof(request->path) - 1] = '\0';
		request->module.identity.path = request->path;
		pm_str_clear(&helper->data);
		restore_priority(helper);
		rc = answer(helper, &reply, serve_request(helper, &reply));
		pm_cleanup_close(&helper->request_fd);
	}
	pm_mounts_free(helper->mounts);
	pm_str_release(&helper->data);
	free(helper);
}

/* ---- the process that forks helpers ------------------------------------------------------ */

static _Noreturn void become_helper(const struct pm_fetch_start *start, const int *fds,
				    pid_t parent)
{
	static const struct sched_param none;

	prctl(PR_SET_NAME, "pm-fetch-helper");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Nobody waits for the others. */
	if (start->run != pm_fetch_serve)
		sched_setscheduler(0, SCHED_OTHER, &none);
	if (getppid() == parent)
		start->run(fds);
	_exit(0);
}

void pm_fetch_fork_helpers(int socket, pid_t parent)
{
	pid_t self = getpid();
	struct pm_fetch_start start;
	int fds[PM_FETCH_FDS_MAX];

	prctl(PR_SET_NAME, "pm-fetch");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A helper that has ended is nobody's business: its socket has ended, too. */
	signal(SIGCHLD, SIG_IGN);
	if (getppid() != parent)
		return;
	while (pm_fetch_receive(socket, &start, sizeof(start), NULL, 0, fds,
				PM_FETCH_FDS_MAX, 0) == sizeof(start)) {
		if (fork() == 0) {
			close(socket);
			signal(SIGCHLD, SIG_DFL);
			become_helper(&start, fds, self);
		}
		for (size_t i = 0; i < PM_FETCH_FDS_MAX; i++)
			pm_cleanup_close(&fds[i]);
	}
}

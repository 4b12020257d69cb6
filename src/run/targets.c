/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <pwd.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#include "pm/run.h"

enum {
	/* a user may have many processes; those without a pidfd are polled */
	PIDFDS_MAX = 512,
	SCANS_MAX = 10, /* a process may create threads all the time */
	STAT_MAX = 1024,
	THREAD_PIDFD = O_EXCL, /* PIDFD_THREAD of Linux 6.9 */
};

/* ---- /proc -------------------------------------------------------------------------------- */

/* Reads the whole file, and terminates it by a NUL. Returns its length or a negative
 * errno. */
static ssize_t read_proc_file(const char *name, char *out, size_t size)
{
	PM_AUTO_CLOSE int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, out, size - 1);
	if (len < 0)
		return -errno;
	out[len] = '\0';
	return len;
}

/* Reads the state and the starttime, fields 3 and 22 of proc(5). The name before them may
 * contain parentheses and spaces. */
static int read_stat_of_thread(pid_t pid, pid_t tid, char *state, uint64_t *began)
{
	char name[64], text[STAT_MAX], number[24];
	const char *rest;
	ssize_t len;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	len = read_proc_file(name, text, sizeof(text));
	if (len < 0)
		return (int)len;
	rest = strrchr(text, ')');
	if (!rest || rest[1] != ' ' || rest[2] == '\0')
		return -EBADMSG;
	*state = rest[2];
	for (int field = 3; rest && field <= 22; field++)
		rest = strchr(rest + 1, ' ');
	if (!rest)
		return -EBADMSG;
	snprintf(number, sizeof(number), "%.*s", (int)strcspn(rest + 1, " "), rest + 1);
	if (!pm_parse_u64(number, began))
		return -EBADMSG;
	return 0;
}

/* Reads a thread's process and its effective user. Returns 0 or -ESRCH. */
static int read_owner_of_thread(pid_t tid, pid_t *tgid, uid_t *euid)
{
	char name[64], text[4096];
	const char *at;
	unsigned int real, effective;
	int group;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)tid);
	if (read_proc_file(name, text, sizeof(text)) <= 0)
		return -ESRCH;
	at = strstr(text, "\nTgid:");
	if (!at || sscanf(at, "\nTgid: %d", &group) != 1)
		return -ESRCH;
	*tgid = group;
	at = strstr(text, "\nUid:");
	if (!at || sscanf(at, "\nUid: %u %u", &real, &effective) != 2)
		return -ESRCH;
	*euid = effective;
	return 0;
}

static int compare_target_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return PM_COMPARE(x, y);
}

/* Appends the names in a directory that are numbers. A process that has ended has
 * none. */
static int list_numbers_in_folder(const char *folder, struct pm_task_list *out)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	uint64_t number;
	int ret = 0;

	if (!dir) {
		if (errno == ENOENT || errno == ESRCH)
			return 0;
		return -errno;
	}
	while (ret == 0 && (entry = readdir(dir)))
		if (pm_parse_u64(entry->d_name, &number) && number > 0 &&
		    number <= INT32_MAX)
			ret = pm_vec_push(&out->list, (pid_t)number);
	closedir(dir);
	return ret;
}

/* Collects all threads of the roots, sorted. */
static int scan_root_threads(const struct pm_targets *targets, struct pm_task_list *out)
{
	char folder[64];
	int ret = 0;

	pm_vec_clear(&out->list);
	for (size_t i = 0; i < targets->roots.len && ret == 0; i++) {
		const struct pm_root *root = &targets->roots.data[i];

		snprintf(folder, sizeof(folder), "/proc/%d/task", (int)root->pid);
		if (root->tid > 0)
			ret = pm_vec_push(&out->list, root->tid);
		else
			ret = list_numbers_in_folder(folder, out);
	}
	if (out->list.len > 0)
		qsort(out->list.data, out->list.len, sizeof(pid_t), compare_target_tids);
	return ret;
}

static pid_t parent_of_process(pid_t pid)
{
	char name[64], text[STAT_MAX];
	const char *rest;
	int parent;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	if (read_proc_file(name, text, sizeof(text)) < 0)
		return 0;
	rest = strrchr(text, ')');
	if (rest && sscanf(rest + 1, " %*c %d", &parent) == 1)
		return parent;
	return 0;
}

/* Scans the roots' threads until no thread is created or ends during a scan, but at most
 * SCANS_MAX times. */
static int scan_threads_until_stable(struct pm_targets *targets)
{
	struct pm_task_list now = { 0 };
	int ret = scan_root_threads(targets, &now);

	for (int i = 0; ret == 0 && i < SCANS_MAX; i++) {
		bool equal = now.list.len > 0 && now.list.len == targets->tids.len &&
			     memcmp(now.list.data, targets->tids.data,
				    now.list.len * sizeof(pid_t)) == 0;

		if (equal)
			break;
		ret = pm_vec_reserve(&targets->tids, now.list.len);
		if (ret < 0)
			break;
		if (now.list.len > 0)
			memcpy(targets->tids.data, now.list.data,
			       now.list.len * sizeof(pid_t));
		targets->tids.len = now.list.len;
		ret = scan_root_threads(targets, &now);
	}
	pm_vec_release(&now.list);
	return ret;
}

/* ---- roots -------------------------------------------------------------------------------- */

/* Returns the thread that a root stands for: of a process, its main thread. */
static pid_t main_tid_of_root(const struct pm_root *root)
{
	if (root->tid > 0)
		return root->tid;
	return root->pid;
}

static int open_pidfd(const struct pm_root *root)
{
	if (root->tid > 0)
		return (int)syscall(SYS_pidfd_open, root->tid, THREAD_PIDFD);
	return (int)syscall(SYS_pidfd_open, root->pid, 0);
}

enum root_origin {
	ROOT_REQUESTED,
	ROOT_CHILD, /* of a requested process */
};

/* Adds a root. The start time is read after opening the pidfd, which refers to the
 * current owner of the id. */
static int targets_add_root(struct pm_targets *targets, pid_t pid, pid_t tid,
			    enum root_origin origin, char *state)
{
	struct pm_root root = {
		.pid = pid, .tid = tid, .pidfd = -1, .child = origin == ROOT_CHILD
	};
	struct epoll_event event = { .events = EPOLLIN };
	int ret;

	for (size_t i = 0; i < targets->roots.len && tid >= 0; i++)
		if (targets->roots.data[i].pid == pid &&
		    targets->roots.data[i].tid == tid)
			return 0; /* typed twice */
	if (targets->roots.len < PIDFDS_MAX && !root.child)
		root.pidfd = open_pidfd(&root);
	ret = read_stat_of_thread(pid, tid > 0 ? tid : pid, state, &root.began);
	if (ret == 0)
		ret = pm_vec_push(&targets->roots, root);
	if (ret < 0) {
		pm_cleanup_close(&root.pidfd);
		return ret;
	}
	if (root.pidfd >= 0)
		epoll_ctl(targets->ends_fd, EPOLL_CTL_ADD, root.pidfd, &event);
	return 0;
}

/* ---- children ----------------------------------------------------------------------------- */

/* CAP_SYS_ADMIN and CAP_PERFMON of capabilities(7): with either of them,
 * perf_event_open(2) accepts any process. */
#define CAPS_ANY_PROCESS (1ull << 21 | 1ull << 38)

static bool may_record_any(void)
{
	unsigned long long caps = 0;
	char text[4096];
	const char *at;

	if (read_proc_file("/proc/self/status", text, sizeof(text)) <= 0)
		return false;
	at = strstr(text, "\nCapEff:");
	return at && sscanf(at, "\nCapEff: %llx", &caps) == 1 &&
	       (caps & CAPS_ANY_PROCESS) != 0;
}

/* perf_event_open(2) requires PTRACE_MODE_READ_REALCREDS, as reading the link does
 * (proc(5)). */
static bool may_record_process(pid_t pid)
{
	char name[64], target[4];

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	return readlink(name, target, sizeof(target)) >= 0 ||
	       (errno != EACCES && errno != EPERM);
}

struct kin {
	pid_t pid, parent;
	bool root, ours;
};

struct kin_list {
	PM_VEC(struct kin) list; /* by pid */
};

static int compare_kin_by_pid(const void *a, const void *b)
{
	return compare_target_tids(&((const struct kin *)a)->pid,
				   &((const struct kin *)b)->pid);
}

static struct kin *find_kin(const struct kin_list *kin, pid_t pid)
{
	struct kin key = { .pid = pid };

	if (kin->list.len == 0)
		return NULL;
	return bsearch(&key, kin->list.data, kin->list.len, sizeof(key),
		       compare_kin_by_pid);
}

/* Reads all processes, except ourselves: recording our own work would cause more work. */
static int read_kin(struct kin_list *out)
{
	struct pm_task_list pids = { 0 };
	int ret = list_numbers_in_folder("/proc", &pids);

	for (size_t i = 0; i < pids.list.len && ret == 0; i++) {
		struct kin kin = { .pid = pids.list.data[i] };

		if (kin.pid == getpid())
			kin.parent = 0;
		else
			kin.parent = parent_of_process(kin.pid);
		if (kin.parent > 0)
			ret = pm_vec_push(&out->list, kin);
	}
	pm_vec_release(&pids.list);
	if (out->list.len > 0)
		qsort(out->list.data, out->list.len, sizeof(struct kin),
		      compare_kin_by_pid);
	return ret;
}

/* Marks descendants of roots. Each pass except the last marks at least one more. */
static void mark_descendants(const struct pm_targets *targets, struct kin_list *kin)
{
	bool more = true;

	for (size_t i = 0; i < targets->roots.len; i++) {
		struct kin *one = find_kin(kin, targets->roots.data[i].pid);

		if (one)
			one->root = one->ours = true;
	}
	while (more) {
		more = false;
		for (size_t i = 0; i < kin->list.len; i++) {
			struct kin *one = &kin->list.data[i];
			const struct kin *parent = NULL;

			if (!one->ours)
				parent = find_kin(kin, one->parent);
			if (parent && parent->ours)
				one->ours = more = true;
		}
	}
}

/* Adds the current descendants of the roots as roots. Returns the number of new roots, or
 * -ENOMEM. */
static int targets_add_children(struct pm_targets *targets,
				const struct pm_targets_request *how)
{
	struct kin_list kin = { 0 };
	bool any = may_record_any();
	size_t forbidden = 0, left_out = 0;
	int ret = read_kin(&kin), added = 0;

	mark_descendants(targets, &kin);
	for (size_t i = 0; i < kin.list.len && ret == 0; i++) {
		const struct kin *one = &kin.list.data[i];
		char state;

		if (one->root || !one->ours)
			continue;
		if (how && how->only_pid) {
			left_out++;
		} else if (!any && !may_record_process(one->pid)) {
			forbidden++;
		} else {
			ret = targets_add_root(targets, one->pid, 0, ROOT_CHILD, &state);
			added += ret == 0;
			ret = ret == -ENOMEM ? ret : 0; /* it has ended in the meantime */
		}
	}
	targets->forbidden = forbidden;
	targets->children_left_out = left_out;
	pm_vec_release(&kin.list);
	if (ret < 0)
		return ret;
	return added;
}

/* Adds all descendants: repeats until a whole pass over /proc finds no new process. Then
 * every process that was forked during a pass is known. */
static int targets_find_children(struct pm_targets *targets,
				 const struct pm_targets_request *request)
{
	int added = 0;

	targets->with_children = request->with_children && !request->only_pid;
	if (!request->with_children)
		return 0;
	for (int i = 0; i < SCANS_MAX; i++) {
		added = targets_add_children(targets, request);
		if (added <= 0)
			break;
	}
	if (added < 0)
		return added;
	return 0;
}

static int set_not_there_error(struct pm_error *err, const char *what, pid_t id,
			       const char *fix)
{
	pm_error_set(err, -ESRCH, "no %s has the number %d", what, (int)id);
	pm_error_fix(err, "%s", fix);
	return -ESRCH;
}

static int set_target_ended_error(struct pm_error *err, const char *what, pid_t id)
{
	return pm_error_set(err, -ESRCH,
			    "%s %d has ended, and only waits for its parent to take "
			    "notice (a zombie)",
			    what, (int)id);
}

static int targets_add_process(struct pm_targets *targets, pid_t pid,
			       struct pm_error *err)
{
	char state = '?';
	pid_t tgid;
	uid_t euid;
	int ret;

	if (read_owner_of_thread(pid, &tgid, &euid) < 0)
		return set_not_there_error(err, "process", pid, "ps -e");
	if (tgid != pid) {
		pm_error_set(err, -ESRCH, "%d is a thread of process %d", (int)pid,
			     (int)tgid);
		pm_error_fix(err, "-p %d for the process, -t %d for the thread",
			     (int)tgid, (int)pid);
		return -ESRCH;
	}
	ret = targets_add_root(targets, pid, 0, ROOT_REQUESTED, &state);
	if (ret == -ENOMEM)
		return pm_error_set(err, ret, "out of memory");
	if (ret < 0)
		return set_not_there_error(err, "process", pid, "ps -e");
	/* The main thread may end before the other threads. */
	if (state == 'Z' || state == 'X') {
		struct pm_task_list tids = { 0 };
		char folder[64];
		size_t len;

		snprintf(folder, sizeof(folder), "/proc/%d/task", (int)pid);
		ret = list_numbers_in_folder(folder, &tids);
		len = tids.list.len;
		pm_vec_release(&tids.list);
		if (ret == 0 && len <= 1)
			return set_target_ended_error(err, "process", pid);
	}
	return 0;
}

static int targets_add_thread(struct pm_targets *targets, pid_t tid, struct pm_error *err)
{
	char state = '?';
	pid_t tgid;
	uid_t euid;
	int ret;

	if (read_owner_of_thread(tid, &tgid, &euid) < 0)
		return set_not_there_error(err, "thread", tid, "ps -eL");
	ret = targets_add_root(targets, tgid, tid, ROOT_REQUESTED, &state);
	if (ret == -ENOMEM)
		return pm_error_set(err, ret, "out of memory");
	if (ret < 0)
		return set_not_there_error(err, "thread", tid, "ps -eL");
	if (state == 'Z' || state == 'X')
		return set_target_ended_error(err, "thread", tid);
	return 0;
}

static int targets_add_user(struct pm_targets *targets, const char *name,
			    struct pm_error *err)
{
	const struct passwd *user = getpwnam(name);
	struct pm_task_list pids = { 0 };
	uint64_t number = 0;
	uid_t uid;
	int ret;

	if (!user && (!pm_parse_u64(name, &number) || number >= UINT32_MAX)) {
		pm_error_set(err, -ENOENT, "there is no user %s", name);
		pm_error_fix(err, "getent passwd");
		return -ENOENT;
	}
	if (user)
		uid = user->pw_uid;
	else
		uid = (uid_t)number;
	ret = list_numbers_in_folder("/proc", &pids);
	for (size_t i = 0; i < pids.list.len && ret == 0; i++) {
		pid_t pid = pids.list.data[i], tgid;
		char state;
		uid_t euid;

		/* Recording our own work would cause more work. */
		if (pid == getpid() || read_owner_of_thread(pid, &tgid, &euid) < 0 ||
		    euid != uid)
			continue;
		ret = targets_add_root(targets, pid, 0, ROOT_REQUESTED, &state);
		if (ret == -ENOMEM)
			pm_error_set(err, ret, "out of memory");
		else if (ret == 0 && (state == 'Z' || state == 'X'))
			targets->roots.data[targets->roots.len - 1].ended = true;
		else
			ret = 0; /* it has ended in the meantime */
	}
	pm_vec_release(&pids.list);
	if (ret < 0 || targets->roots.len > 0)
		return ret;
	pm_error_set(err, -ESRCH, "user %s has no processes now", name);
	/* --user needs a name from the user database. */
	if (user)
		pm_error_fix(err, "--user %s, to run COMMAND as this user", name);
	else
		pm_error_fix(err, "ps -e -o user, for those who have some");
	return -ESRCH;
}

/* Opens the directory @name itself, or @name below the mount points of control groups, of
 * version 2 and of version 1, where events need the hierarchy `perf_event`. */
static int open_cgroup_folder(const char *name, struct pm_error *err)
{
	static const char *const places[] = { "", "/sys/fs/cgroup/",
					      "/sys/fs/cgroup/unified/",
					      "/sys/fs/cgroup/perf_event/" };
	bool found = false;

	for (size_t i = 0; i < PM_ARRAY_LEN(places); i++) {
		char path[PATH_MAX];
		struct statfs fs;
		PM_AUTO_CLOSE int fd = -1;

		if ((size_t)snprintf(path, sizeof(path), "%s%s", places[i], name) >=
		    sizeof(path))
			continue;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || fstatfs(fd, &fs) < 0)
			continue;
		found = true;
		if (fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC)
			return pm_take_fd(&fd);
	}
	pm_error_set(err, -ENOENT,
		     found ? "-G %s: this folder is no control group"
			   : "-G %s: there is no such control group",
		     name);
	pm_error_fix(err, "the group of a process: cat /proc/PID/cgroup");
	return -ENOENT;
}

/* ---- public ------------------------------------------------------------------------------- */

void pm_targets_request_release(struct pm_targets_request *request)
{
	pm_vec_release(&request->pids.list);
	pm_vec_release(&request->tids.list);
}

bool pm_targets_request_any(const struct pm_targets_request *request)
{
	return request->pids.list.len > 0 || request->tids.list.len > 0 ||
	       request->all_cpus || request->cgroup || request->uid;
}

void pm_targets_init(struct pm_targets *targets)
{
	*targets = (struct pm_targets){ .cgroup_fd = -1, .ends_fd = -1 };
}

void pm_targets_release(struct pm_targets *targets)
{
	for (size_t i = 0; i < targets->roots.len; i++)
		pm_cleanup_close(&targets->roots.data[i].pidfd);
	pm_vec_release(&targets->roots);
	pm_vec_release(&targets->tids);
	pm_vec_release(&targets->late);
	pm_cleanup_close(&targets->cgroup_fd);
	pm_cleanup_close(&targets->ends_fd);
	free(targets->text);
	targets->text = NULL;
}

static void put_task_list(struct pm_str *str, const char *option,
			  const struct pm_task_list *tasks)
{
	for (size_t i = 0; i < tasks->list.len; i++)
		pm_str_printf(str, "%s%d", i == 0 ? option : ",",
			      (int)tasks->list.data[i]);
}

static int targets_describe(struct pm_targets *targets,
			    const struct pm_targets_request *request)
{
	struct pm_str str = { 0 };

	put_task_list(&str, "-p ", &request->pids);
	put_task_list(&str, "-t ", &request->tids);
	if (request->uid)
		pm_str_printf(&str, "-u %s", request->uid);
	if (request->all_cpus)
		pm_str_puts(&str, "-a");
	if (request->cpus)
		pm_str_printf(&str, " -C %s", request->cpus);
	if (request->cgroup)
		pm_str_printf(&str, " -G %s", request->cgroup);
	if (request->no_inherit)
		pm_str_puts(&str, " -i");
	if (request->only_pid)
		pm_str_puts(&str, " --only-pid");
	if (str.failed || !str.data)
		targets->text = NULL;
	else
		targets->text = strdup(str.data);
	pm_str_release(&str);
	if (!targets->text)
		return -ENOMEM;
	return 0;
}

static int targets_find_tasks(struct pm_targets *targets,
			      const struct pm_targets_request *request,
			      struct pm_error *err)
{
	int ret = 0;

	targets->ends_fd = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < request->pids.list.len && ret == 0; i++)
		ret = targets_add_process(targets, request->pids.list.data[i], err);
	for (size_t i = 0; i < request->tids.list.len && ret == 0; i++)
		ret = targets_add_thread(targets, request->tids.list.data[i], err);
	if (ret == 0 && request->uid)
		ret = targets_add_user(targets, request->uid, err);
	if (ret < 0)
		return ret;
	targets->living = targets->roots.len;
	if (targets_find_children(targets, request) < 0 ||
	    scan_threads_until_stable(targets) < 0)
		return pm_error_no_memory(err);
	if (targets->tids.len > 0)
		return 0;
	return pm_error_set(err, -ESRCH, "whom to watch has just ended");
}

int pm_targets_find(struct pm_targets *targets, const struct pm_targets_request *request,
		    struct pm_error *err)
{
	int ret;

	targets->kind = PM_PERF_COMMAND;
	if (!pm_targets_request_any(request))
		return 0;
	if (targets_describe(targets, request) < 0)
		return pm_error_no_memory(err);
	if (request->cgroup)
		targets->kind = PM_PERF_CGROUP;
	else if (request->all_cpus)
		targets->kind = PM_PERF_CPUS;
	else
		targets->kind = PM_PERF_TASKS;
	targets->cpus = request->cpus;
	if (targets->kind == PM_PERF_TASKS)
		return targets_find_tasks(targets, request, err);
	if (!request->cgroup)
		return 0;
	targets->cgroup_fd = open_cgroup_folder(request->cgroup, err);
	if (targets->cgroup_fd < 0)
		return targets->cgroup_fd;
	ret = pm_perf_check_cgroup(targets->cgroup_fd, err);
	if (ret < 0)
		pm_error_where(err, request->cgroup, -1);
	return ret;
}

void pm_targets_fill(const struct pm_targets *targets, struct pm_perf_options *perf)
{
	perf->target = targets->kind;
	perf->tids = targets->tids.data;
	perf->tids_len = targets->tids.len;
	perf->cgroup_fd = targets->cgroup_fd;
	perf->cpus = targets->cpus;
}

/* Reads the CPU time used so far. For a process, it includes threads that have ended. */
static bool read_cpu_ns_of_thread(const struct pm_root *root, uint64_t *out)
{
	struct timespec used;
	char name[64], text[128], number[24];
	clockid_t clock;

	if (root->tid == 0) {
		if (clock_getcpuclockid(root->pid, &clock) != 0 ||
		    clock_gettime(clock, &used) < 0)
			return false;
		*out = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
		return true;
	}
	snprintf(name, sizeof(name), "/proc/%d/task/%d/schedstat", (int)root->pid,
		 (int)root->tid);
	if (read_proc_file(name, text, sizeof(text)) <= 0)
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)strcspn(text, " \n"), text);
	return pm_parse_u64(number, out);
}

static bool is_thread_late(const struct pm_targets *targets, pid_t tid)
{
	for (size_t i = 0; i < targets->late.len; i++)
		if (targets->late.data[i] == tid)
			return true;
	return false;
}

int pm_targets_again(struct pm_targets *targets, struct pm_error *err)
{
	struct pm_task_list now = { 0 };
	size_t before = targets->late.len;
	int ret = 0;

	if (targets->with_children)
		ret = targets_add_children(targets, NULL);
	if (ret >= 0)
		ret = scan_root_threads(targets, &now);
	for (size_t i = 0; i < now.list.len && ret == 0; i++)
		if (!bsearch(&now.list.data[i], targets->tids.data, targets->tids.len,
			     sizeof(pid_t), compare_target_tids) &&
		    !is_thread_late(targets, now.list.data[i]))
			ret = pm_vec_push(&targets->late, now.list.data[i]);
	pm_vec_release(&now.list);
	if (ret < 0)
		return pm_error_no_memory(err);
	return targets->late.len > before;
}

int pm_targets_begin(struct pm_targets *targets, struct pm_error *err)
{
	int ret;

	if (targets->kind != PM_PERF_TASKS)
		return 0;
	ret = pm_targets_again(targets, err);
	for (size_t i = 0; i < targets->roots.len; i++) {
		struct pm_root *root = &targets->roots.data[i];

		root->cpu_known = read_cpu_ns_of_thread(root, &root->cpu_ns);
	}
	if (ret < 0)
		return ret;
	return 0;
}

/* Whether the id still belongs to the original process or thread. */
static bool is_root_same_process(const struct pm_root *root)
{
	uint64_t began;
	char state;

	return read_stat_of_thread(root->pid, main_tid_of_root(root), &state, &began) ==
		       0 &&
	       began == root->began;
}

/* Whether the root has ended, is a zombie without other threads, or its id has been
 * reused. */
static bool has_root_ended(const struct pm_root *root)
{
	uint64_t began;
	char state;

	if (root->pidfd >= 0) {
		struct pollfd fd = { .fd = root->pidfd, .events = POLLIN };

		return poll(&fd, 1, 0) > 0;
	}
	return read_stat_of_thread(root->pid, main_tid_of_root(root), &state, &began) <
		       0 ||
	       began != root->began || state == 'Z' || state == 'X';
}

bool pm_targets_ended(struct pm_targets *targets)
{
	if (targets->kind != PM_PERF_TASKS)
		return false;
	for (size_t i = 0; i < targets->roots.len; i++) {
		struct pm_root *root = &targets->roots.data[i];

		if (root->ended || root->child || !has_root_ended(root))
			continue;
		root->ended = true;
		/* Otherwise the pidfd would stay readable forever. It is not closed,
		 * because it still identifies a zombie. */
		if (root->pidfd >= 0)
			epoll_ctl(targets->ends_fd, EPOLL_CTL_DEL, root->pidfd, NULL);
	}
	targets->living = 0;
	for (size_t i = 0; i < targets->roots.len; i++)
		targets->living +=
			!targets->roots.data[i].ended && !targets->roots.data[i].child;
	return targets->living == 0;
}

bool pm_targets_cpu_ns(const struct pm_targets *targets, uint64_t *out)
{
	uint64_t sum = 0, now;

	if (targets->kind != PM_PERF_TASKS || targets->roots.len == 0)
		return false;
	for (size_t i = 0; i < targets->roots.len; i++) {
		const struct pm_root *root = &targets->roots.data[i];

		if (!root->cpu_known || !read_cpu_ns_of_thread(root, &now) ||
		    now < root->cpu_ns || !is_root_same_process(root))
			return false;
		sum += now - root->cpu_ns;
	}
	*out = sum;
	return true;
}

bool pm_targets_user(const struct pm_targets *targets, uid_t *out)
{
	uid_t first = 0, euid;
	pid_t tgid;

	if (targets->kind != PM_PERF_TASKS || targets->roots.len == 0)
		return false;
	for (size_t i = 0; i < targets->roots.len; i++) {
		if (read_owner_of_thread(targets->roots.data[i].pid, &tgid, &euid) < 0)
			return false;
		if (i == 0)
			first = euid;
		if (euid != first)
			return false;
	}
	*out = first;
	return true;
}

pid_t pm_targets_foreign(const struct pm_targets *targets)
{
	uid_t own = geteuid(), euid;
	pid_t pid;

	for (size_t i = 0; i < targets->roots.len && own != 0; i++)
		if (read_owner_of_thread(targets->roots.data[i].pid, &pid, &euid) == 0 &&
		    euid != own)
			return pid;
	return 0;
}

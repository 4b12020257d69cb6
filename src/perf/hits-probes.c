/* SPDX-License-Identifier: MIT */
/*
 * Events of tracefs for places in files (Documentation/trace/uprobetracer.rst). The
 * uprobe PMU would not need them. But when a task forks, the kernel reads the path of
 * such a PMU event from the memory of that task, which does not contain it
 * (perf_uprobe_init()). Besides, an event of tracefs may have many places
 * (trace_probe_append(), Linux 5.5), an event of the PMU only one.
 *
 * The events have names that are visible to all: pmstat_NAMESPACE_PID/pN. They are
 * removed when this process ends. The next run removes those that a killed process has
 * left. A place costs nothing while no event is open on it.
 */
#include "hits-state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "tracefs-mount.h"

#define PROBE_FILE   "uprobe_events"
#define SYSTEM_START "pmstat_"

enum {
	LINE_MAX_BYTES = 512,
	LIST_MAX = 4 << 20,
	/* The kernel releases an event some time after its last descriptor is closed. */
	REMOVE_TRIES = 100,
	REMOVE_PAUSE_NS = 1000000,
	HANDLER_NS = 10000000, /* far longer than a handler runs */
};

static ino_t read_pid_namespace(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) == 0)
		return st.st_ino;
	return 0;
}

void pm_hits_probes_init(struct pm_hits_probes *probes)
{
	*probes = (struct pm_hits_probes){ .tracefs = -1 };
}

/* Returns 0 or -errno. One write(2) is one command. */
static int write_probe_command(int tracefs, const char *text)
{
	int fd PM_AUTO_CLOSE =
		openat(tracefs, PROBE_FILE, O_WRONLY | O_APPEND | O_CLOEXEC);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0)
		return -errno;
	if ((size_t)n != len)
		return -EIO;
	return 0;
}

/* ---- left-over events ---------------------------------------------------------------- */

static int read_probe_list(int tracefs, struct pm_str *out)
{
	int fd PM_AUTO_CLOSE = openat(tracefs, PROBE_FILE, O_RDONLY | O_CLOEXEC);
	char chunk[4096];
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0 && out->len < LIST_MAX) {
		n = read(fd, chunk, sizeof(chunk));
		if (n > 0)
			pm_str_append(out, chunk, (size_t)n);
	}
	if (n < 0 || out->failed)
		return -1;
	return 0;
}

/*
 * Whether the event was made in this PID namespace by a process that no longer exists.
 * @first: this process has made none yet, so an event with its pid is from a former
 * process. (Containers reuse the ids of processes and namespaces all the time.) @line:
 * "p:SYSTEM/EVENT PATH:OFFSET".
 */
static bool is_probe_left_over(const char *line, ino_t namespace, bool first, char *name,
			       size_t name_size)
{
	uint64_t inode;
	int pid, len = 0;
	bool is_ours;

	if (sscanf(line, "p:" SYSTEM_START "%" SCNu64 "_%d/%n", &inode, &pid, &len) !=
		    2 ||
	    len == 0 || inode != (uint64_t) namespace || pid <= 0)
		return false;
	is_ours = pid == getpid();
	if (is_ours && !first)
		return false;
	if (!is_ours && (kill(pid, 0) == 0 || errno != ESRCH))
		return false;
	len = (int)strcspn(line + 2, " \t\n");
	return (size_t)snprintf(name, name_size, "-:%.*s\n", len, line + 2) < name_size;
}

static void remove_left_over_probes(int tracefs, bool first)
{
	struct pm_str list PM_CLEANUP(pm_str_release) = { 0 };
	ino_t namespace = read_pid_namespace();
	char name[LINE_MAX_BYTES];

	if (read_probe_list(tracefs, &list) < 0 || !list.data)
		return;
	for (const char *line = list.data; *line;) {
		const char *end = strchr(line, '\n');

		/* An event with two places has two lines. For the second one this fails,
		 * since the event has been removed. */
		if (is_probe_left_over(line, namespace, first, name, sizeof(name)))
			write_probe_command(tracefs, name);
		if (!end)
			break;
		line = end + 1;
	}
}

/* ---- our own events ------------------------------------------------------------------ */

static int explain_probe_refusal(int code, struct pm_error *err)
{
	/* Where tracefs is not mounted, only root can mount it. */
	if (code == -ENOENT && geteuid() != 0)
		code = -EACCES;
	if (code == -ENOENT)
		pm_error_set(err, code,
			     "probes in programs need uprobe_events of tracefs, which is "
			     "not there");
	else if (code == -EACCES || code == -EPERM || code == -EROFS)
		pm_error_set(err, code,
			     "user %u may not place probes in programs (%s): that is for "
			     "root",
			     (unsigned int)geteuid(), strerror(-code));
	else
		pm_error_set(err, code, "a probe cannot be placed: %s", strerror(-code));
	return code;
}

int pm_hits_probes_check(struct pm_error *err)
{
	int tracefs PM_AUTO_CLOSE = pm_tracefs_open_writable();
	int fd PM_AUTO_CLOSE = -1;

	if (tracefs < 0)
		return explain_probe_refusal(tracefs, err);
	fd = openat(tracefs, PROBE_FILE, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return explain_probe_refusal(-errno, err);
	return 0;
}

static int hits_probes_begin(struct pm_hits_probes *probes, struct pm_error *err)
{
	static unsigned int serial;
	static pid_t maker; /* the process that already made events */
	int fd;

	if (probes->tracefs >= 0)
		return 0;
	fd = pm_tracefs_open_writable();
	if (fd < 0)
		return explain_probe_refusal(fd, err);
	probes->tracefs = fd;
	/* The kernel limits names to 64 bytes of letters, digits and underscores. */
	snprintf(probes->system, sizeof(probes->system), SYSTEM_START "%ju_%d",
		 (uintmax_t)read_pid_namespace(), (int)getpid());
	probes->first = serial;
	serial += PM_HITS_EVENTS_MAX;
	remove_left_over_probes(fd, maker != getpid());
	maker = getpid();
	return 0;
}

static int read_probe_event_id(const struct pm_hits_probes *probes, size_t number,
			       uint64_t *out)
{
	char path[LINE_MAX_BYTES], text[32];
	int fd PM_AUTO_CLOSE = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "events/%s/p%zu/id", probes->system,
		 probes->first + number);
	fd = openat(probes->tracefs, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		n = -1;
	else
		n = read(fd, text, sizeof(text) - 1);
	if (n <= 0) {
		if (fd >= 0)
			return -EIO;
		return -errno;
	}
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (!pm_parse_u64(text, out))
		return -EBADMSG;
	return 0;
}

/* Returns 0 or -errno. */
static int remove_probe_event(const struct pm_hits_probes *probes, size_t number)
{
	char text[LINE_MAX_BYTES];
	int ret = -EBUSY;

	snprintf(text, sizeof(text), "-:%s/p%zu\n", probes->system,
		 probes->first + number);
	for (int i = 0; i < REMOVE_TRIES && ret == -EBUSY; i++) {
		ret = write_probe_command(probes->tracefs, text);
		if (ret == -EBUSY)
			nanosleep(&(struct timespec){ .tv_nsec = REMOVE_PAUSE_NS }, NULL);
	}
	return ret;
}

int pm_hits_probes_add(struct pm_hits_probes *probes, const char *path,
		       const uint64_t *offsets, size_t len, uint64_t *config,
		       struct pm_error *err)
{
	char text[LINE_MAX_BYTES];
	int ret = hits_probes_begin(probes, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < len; i++) {
		snprintf(text, sizeof(text), "p:%s/p%zu %s:0x%" PRIx64 "\n",
			 probes->system, probes->first + probes->len, path, offsets[i]);
		ret = write_probe_command(probes->tracefs, text);
		if (ret < 0)
			break;
	}
	if (ret == 0)
		ret = read_probe_event_id(probes, probes->len, config);
	if (ret < 0) {
		remove_probe_event(probes, probes->len);
		return explain_probe_refusal(ret, err);
	}
	probes->len++;
	return 0;
}

/*
 * A CPU may still be in the handler of a probe whose last descriptor has been closed.
 * This call waits until each CPU has left it (synchronize_rcu()). If the call is not
 * available, the code waits for a fixed time instead.
 */
static void wait_for_probe_handlers(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
		nanosleep(&(struct timespec){ .tv_nsec = HANDLER_NS }, NULL);
}

void pm_hits_probes_release(struct pm_hits_probes *probes)
{
	if (probes->len > 0)
		wait_for_probe_handlers();
	while (probes->len > 0)
		remove_probe_event(probes, --probes->len);
	if (probes->tracefs >= 0)
		close(pm_take_fd(&probes->tracefs));
}

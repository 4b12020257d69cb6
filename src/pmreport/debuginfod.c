/* SPDX-License-Identifier: MIT */
/* The interface of the library is from debuginfod_find_debuginfo(3), elfutils 0.178 and
 * later. */
#include "debuginfod.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define LIBRARY "libdebuginfod.so.1"

enum {
	PROGRESS_EVERY_MS = 200,
	FAILED = 1,
};

/* A message from the child. Each is one write of less than PIPE_BUF bytes, which arrives
 * whole. */
struct message {
	enum {
		AT,
		FOUND,
		MISSING
	} kind;
	long done, of; /* AT: bytes, or units defined by the library */
	int code; /* MISSING: negative errno */
	char path[PIPE_BUF - 64]; /* FOUND */
};

typedef void client_t;
typedef int progress_fn(client_t *client, long done, long of);

struct library {
	client_t *(*begin)(void);
	void (*on_progress)(client_t *client, progress_fn *call);
	int (*find_debuginfo)(client_t *client, const unsigned char *build_id,
			      int build_id_len, char **path);
	int (*find_executable)(client_t *client, const unsigned char *build_id,
			       int build_id_len, char **path);
};

/* Converts the result of dlsym(3) to a function pointer, as POSIX requires. */
static bool find_library_function(void *handle, const char *name, void *out)
{
	void *symbol = dlsym(handle, name);

	memcpy(out, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static bool load_debuginfod_library(struct library *out)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	return handle && find_library_function(handle, "debuginfod_begin", &out->begin) &&
	       find_library_function(handle, "debuginfod_set_progressfn",
				     &out->on_progress) &&
	       find_library_function(handle, "debuginfod_find_debuginfo",
				     &out->find_debuginfo) &&
	       find_library_function(handle, "debuginfod_find_executable",
				     &out->find_executable);
}

/* ---- in the child ---------------------------------------------------------------------- */

static int told; /* descriptor for progress; the library passes no context */

static void send_fetch_message(int to, const struct message *message)
{
	if (write(to, message, sizeof(*message)) != (ssize_t)sizeof(*message))
		_exit(FAILED);
}

static int send_fetch_progress(client_t *client, long done, long of)
{
	send_fetch_message(told, &(struct message){ .kind = AT, .done = done, .of = of });
	return 0;
}

static _Noreturn void fetch_in_child(const char *build_id, enum pm_debuginfod_kind kind,
				     int to)
{
	struct message message = { .kind = MISSING, .code = -ENOSYS };
	struct library library;
	client_t *client = NULL;
	char *path = NULL;

	prctl(PR_SET_NAME, "pmreport-fetch");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	told = to;
	if (load_debuginfod_library(&library))
		client = library.begin();
	if (client) {
		const unsigned char *id = (const unsigned char *)build_id;
		int fd;

		library.on_progress(client, send_fetch_progress);
		if (kind == PM_DEBUGINFOD_EXECUTABLE)
			fd = library.find_executable(client, id, 0, &path);
		else
			fd = library.find_debuginfo(client, id, 0, &path);
		message.code = fd < 0 ? fd : -ENAMETOOLONG;
		if (fd >= 0 && path && strlen(path) < sizeof(message.path)) {
			message.kind = FOUND;
			snprintf(message.path, sizeof(message.path), "%s", path);
		}
	}
	send_fetch_message(to, &message);
	/* The buffers and exit handlers belong to the parent. */
	_exit(0);
}

/* ---- in the parent --------------------------------------------------------------------- */

static uint64_t fetch_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static void show_fetch_progress(const char *name, const struct message *message)
{
	struct pm_str line = { 0 };

	pm_str_puts(&line, "\r\033[Kpmreport: debuginfod: ");
	pm_str_printable(&line, name, strlen(name));
	if (message && message->done > 0)
		pm_str_printf(&line, ": %.1f MB", (double)message->done / 1e6);
	if (message && message->of > message->done)
		pm_str_printf(&line, " of %.1f", (double)message->of / 1e6);
	if (!line.failed)
		fputs(line.data, stderr);
	pm_str_release(&line);
}

/* Reads messages until the child reports the end or closes the pipe, or the time is up.
 * Returns 0 or a negative errno. */
static int receive_fetch_messages(int fd, const struct pm_debuginfod *from, uint64_t ms,
				  const char *name, struct message *out)
{
	uint64_t end = fetch_clock_ms() + ms, shown = 0;

	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		uint64_t now = fetch_clock_ms();
		ssize_t n;

		if (now >= end)
			return -ETIMEDOUT;
		if (poll(&ready, 1, (int)(end - now)) <= 0)
			continue;
		n = read(fd, out, sizeof(*out));
		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof(*out))
			return -EPIPE;
		if (out->kind != AT)
			return 0;
		if (from->progress && now - shown >= PROGRESS_EVERY_MS) {
			show_fetch_progress(name, out);
			shown = now;
		}
	}
}

static int fetch_with_progress(const struct pm_debuginfod *from, const char *build_id,
			       enum pm_debuginfod_kind kind, const char *name,
			       uint64_t ms, struct message *out)
{
	int ends[2], ret;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		fetch_in_child(build_id, kind, ends[1]);
	}
	ret = pid < 0 ? -errno : 0;
	close(ends[1]);
	if (pid > 0) {
		ret = receive_fetch_messages(ends[0], from, ms, name, out);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	return ret;
}

static char *set_fetch_error(const struct message *message, int code, uint64_t ms,
			     struct pm_error *err)
{
	if (code == 0 && message->kind == MISSING)
		code = message->code;
	if (code == -ENOENT)
		pm_error_set(err, code, "no server has it");
	else if (code == -ETIMEDOUT || code == -ETIME)
		pm_error_set(err, -ETIMEDOUT, "no answer within %g s", (double)ms / 1e3);
	else if (code == -EPIPE)
		pm_error_set(err, code, "asking for it failed");
	else
		pm_error_set(err, code, "asking for it failed: %s", strerror(-code));
	return NULL;
}

char *pm_debuginfod_find(struct pm_debuginfod *from, const char *build_id,
			 enum pm_debuginfod_kind kind, const char *name,
			 struct pm_error *err)
{
	struct message message = { .kind = MISSING };
	uint64_t begin = fetch_clock_ms(), ms = from->file_seconds * UINT64_C(1000), used;
	int ret;

	if (ms > from->ms_left)
		ms = from->ms_left;
	if (ms == 0) {
		pm_error_set(err, -ETIMEDOUT, "the time for all files was over before");
		return NULL;
	}
	if (from->progress)
		show_fetch_progress(name, NULL);
	ret = fetch_with_progress(from, build_id, kind, name, ms, &message);
	if (from->progress)
		fputs("\r\033[K", stderr);
	used = fetch_clock_ms() - begin;
	from->ms_left -= PM_MIN(used, from->ms_left);
	if (ret < 0 || message.kind != FOUND)
		return set_fetch_error(&message, ret, ms, err);
	message.path[sizeof(message.path) - 1] = '\0';
	return strdup(message.path);
}

int pm_debuginfod_check(struct pm_error *err)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct library library;

	if (!urls || urls[strspn(urls, " \t")] == '\0') {
		pm_error_set(err, -ENOENT,
			     "--debuginfod: DEBUGINFOD_URLS names no server to ask");
		pm_error_fix(err, "DEBUGINFOD_URLS=https://debuginfod.elfutils.org");
		return -ENOENT;
	}
	if (!load_debuginfod_library(&library)) {
		pm_error_set(err, -ENOENT, "--debuginfod: %s cannot be loaded", LIBRARY);
		pm_error_fix(err, "apt install libdebuginfod1");
		return -ENOENT;
	}
	return 0;
}

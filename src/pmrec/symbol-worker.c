/* SPDX-License-Identifier: MIT */
/*
 * Forked, not executed: all tables are there already. What needs rights is done first, by code
 * of ours that reads a few bytes here and there: opening the modules' files and finding their
 * debug files. Then the process gives up all rights, and libraries may read.
 */
#include "symbol-worker.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "pm/symbol.h"
#include "sandbox.h"
#include "symbol-wire.h"

enum {
	FDS_OF_JOB = 3,
	SEND_BYTES = 1 << 16,
	CRC_BYTES_MAX = 1 << 28, /* for all of one process, about half a second */
	PIPE_BYTES = 1 << 20,
	FAILED = 1,
};
/* A file with holes is as large as it likes; only its mapping is that large. */
#define MAPPED_BYTES_MAX (UINT64_C(4) << 30)

struct job {
	const struct pm_rec_symbol_job *of;
	int fd; /* -1: none */
	struct pm_symbol_files files;
	uint64_t bytes; /* on disk */
	bool limited, damaged;
};

struct worker {
	const struct pm_rec_session *session;
	struct job *jobs;
	size_t len;
	int out;
	struct pm_str text; /* to be sent */
	uint64_t mapped_bytes, bytes; /* of all files: as they say, on disk */
};

static void count_file(struct worker *worker, struct job *job, int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < 0)
		return;
	job->bytes += (uint64_t)st.st_blocks * 512;
	worker->bytes += (uint64_t)st.st_blocks * 512;
	worker->mapped_bytes += (uint64_t)st.st_size < MAPPED_BYTES_MAX
					? (uint64_t)st.st_size
					: MAPPED_BYTES_MAX;
}

static struct pm_symbol_options options_of(const struct worker *worker, struct job *job)
{
	const struct pm_module *module =
		pm_procs_module(worker->session->procs, job->of->module);

	return (struct pm_symbol_options){ .inlines = true,
					   .lines = true,
					   .pid = module->seen_pid,
					   .path = module->identity.path,
					   .files = &job->files,
					   .limited = &job->limited,
					   .damaged = &job->damaged };
}

static void open_files(struct worker *worker)
{
	const struct pm_rec_session *session = worker->session;
	uint64_t crc_bytes_left = CRC_BYTES_MAX;

	for (size_t i = 0; i < worker->len; i++) {
		struct job *job = &worker->jobs[i];
		uint32_t id = job->of->module;
		const struct pm_symbol_options options = options_of(worker, job);

		if (pm_procs_module(session->procs, id)->identity.kind != PM_MODULE_FILE)
			continue;
		job->fd = pm_rec_modules_open_file(&session->modules, session->procs, id);
		if (job->fd < 0)
			continue;
		pm_symbol_files_find(job->fd, &options, &crc_bytes_left, &job->files);
		count_file(worker, job, job->fd);
		count_file(worker, job, job->files.debug);
		count_file(worker, job, job->files.alt);
	}
}

static void send_text(struct worker *worker)
{
	size_t sent = 0;

	if (worker->text.failed)
		_exit(FAILED);
	while (sent < worker->text.len) {
		ssize_t n = write(worker->out, worker->text.data + sent,
				  worker->text.len - sent);

		if (n < 0 && errno != EINTR)
			_exit(FAILED);
		sent += n > 0 ? (size_t)n : 0;
	}
	pm_str_clear(&worker->text);
}

/* pm_symbol_emit_fn */
static int emit(void *user, size_t index, const struct pm_symbol_function *functions,
		size_t len)
{
	struct worker *worker = user;
	struct pm_file_function texts[PM_REC_WIRE_FUNCTIONS_MAX];

	if (len == 0)
		return 0;
	/* Of a longer chain the function itself is what matters most. */
	if (len > PM_REC_WIRE_FUNCTIONS_MAX) {
		functions += len - PM_REC_WIRE_FUNCTIONS_MAX;
		len = PM_REC_WIRE_FUNCTIONS_MAX;
	}
	for (size_t i = 0; i < len; i++)
		texts[i] = (struct pm_file_function){ .name = functions[i].name,
						      .file = functions[i].file,
						      .line = functions[i].line };
	pm_rec_wire_put_symbol(&worker->text, (uint32_t)index, texts, len);
	if (worker->text.len >= SEND_BYTES || worker->text.failed)
		send_text(worker);
	return 0;
}

static int resolve(struct worker *worker, struct job *job)
{
	const struct pm_rec_session *session = worker->session;
	const struct pm_module *module = pm_procs_module(session->procs, job->of->module);
	const struct pm_rec_vdso *vdso = pm_rec_modules_vdso(&session->modules, module);
	const struct pm_symbol_options options = options_of(worker, job);

	if (module->identity.kind == PM_MODULE_VDSO && vdso->image)
		return pm_symbols_resolve_memory(
			vdso->image, vdso->len, job->of->addresses,
			job->of->addresses_len, &options, emit, worker, NULL);
	/* That it could not be opened is told elsewhere. */
	if (job->fd < 0)
		return 0;
	return pm_symbols_resolve(job->fd, job->of->addresses, job->of->addresses_len,
				  &options, emit, worker, NULL);
}

static void keep_files(const struct worker *worker)
{
	PM_AUTO_FREE int *fds =
		reallocarray(NULL, FDS_OF_JOB * worker->len + 1, sizeof(*fds));
	size_t len = 0;

	if (!fds)
		_exit(FAILED);
	fds[len++] = worker->out;
	for (size_t i = 0; i < worker->len; i++) {
		fds[len++] = worker->jobs[i].fd;
		fds[len++] = worker->jobs[i].files.debug;
		fds[len++] = worker->jobs[i].files.alt;
	}
	pm_rec_sandbox_keep_files(fds, len);
}

static void run(struct worker *worker, pid_t parent)
{
	struct pm_rec_sandbox sandbox = { .parent = parent };

	prctl(PR_SET_NAME, "pmrec-names");
	pm_rec_sandbox_cpu_time(PM_REC_SYMBOL_SECONDS);
	open_files(worker);
	keep_files(worker);
	sandbox.memory_bytes = PM_REC_SYMBOL_MEMORY_BYTES + worker->mapped_bytes +
			       PM_REC_SYMBOL_MEMORY_RATIO * worker->bytes;
	if (pm_rec_sandbox_enter(&sandbox) < 0)
		_exit(FAILED);
	for (size_t i = 0; i < worker->len; i++) {
		struct job *job = &worker->jobs[i];
		int code;

		pm_rec_sandbox_cpu_time(PM_REC_SYMBOL_SECONDS +
					job->bytes / PM_REC_SYMBOL_BYTES_A_SECOND);
		code = resolve(worker, job);
		if (code == 0 && job->limited)
			code = PM_REC_WIRE_LIMITED;
		else if (code == 0 && job->damaged)
			code = PM_REC_WIRE_DAMAGED;
		pm_rec_wire_put_done(&worker->text, code);
		send_text(worker);
	}
}

static _Noreturn void child(const struct pm_rec_session *session,
			    const struct pm_rec_symbol_job *jobs, size_t len, int out,
			    pid_t parent)
{
	struct worker worker = { .session = session, .len = len, .out = out };

	worker.jobs = calloc(len, sizeof(*worker.jobs));
	if (!worker.jobs)
		_exit(FAILED);
	for (size_t i = 0; i < len; i++)
		worker.jobs[i] =
			(struct job){ .of = &jobs[i], .fd = -1, .files = { -1, -1 } };
	run(&worker, parent);
	/* What the recorder has in its buffers and handlers is for the recorder. */
	_exit(0);
}

int pm_rec_symbol_worker_start(const struct pm_rec_session *session,
			       const struct pm_rec_symbol_job *jobs, size_t len,
			       struct pm_rec_symbol_process *ret)
{
	pid_t parent = getpid(), pid;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* So that it works on while we are busy. */
	fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	pid = fork();
	if (pid == 0)
		child(session, jobs, len, ends[1], parent);
	if (pid < 0) {
		int code = -errno;

		close(ends[0]);
		close(ends[1]);
		return code;
	}
	close(ends[1]);
	*ret = (struct pm_rec_symbol_process){ .pid = pid, .fd = ends[0] };
	return 0;
}

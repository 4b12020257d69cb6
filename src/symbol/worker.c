/* SPDX-License-Identifier: MIT */
/*
 * The helper process is forked, but does not execute another program, because it needs
 * the tables that are already in memory. First, our own code does the work that needs
 * rights, with small reads: it opens the modules' files and finds their debug files. The
 * process then gives up all rights; after that, libraries may read the files.
 */
#include "worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pm/proc.h"
#include "sandbox.h"
#include "wire.h"

enum {
	FDS_OF_JOB = 3,
	SEND_BYTES = 1 << 16,
	CRC_BYTES_MAX = 1 << 28, /* read for CRCs by one process, about half a second */
	PIPE_BYTES = 1 << 20,
	/* Smaller files are read within a millisecond; starting a process earlier for
	 * that does not pay. */
	EARLY_BYTES_MIN = 1 << 18,
	EARLY_WAIT_S = 30,
};
/* A sparse file can claim any size, and is mapped with it; only the address space is that
 * large. */
#define MAPPED_BYTES_MAX (UINT64_C(4) << 30)

struct job {
	const struct pm_symbol_job *of;
	struct pm_symbol_input input;
	struct pm_symbol_files files;
	struct pm_symbols *symbols; /* opened before the request arrived; NULL: not
	                             * opened */
	uint64_t bytes; /* on disk */
	bool limited, damaged;
	bool hung; /* an earlier attempt to open it never finished */
};

struct worker {
	const struct pm_symbol_crew_calls *calls;
	struct job *jobs;
	size_t first, len; /* first: index in the crew's jobs */
	int out;
	const bool *hung; /* by index in the crew's jobs; NULL: none has hung */
	int ask; /* pipe through which the addresses arrive later; -1: they are known */
	bool yields; /* use only idle CPU time until the addresses arrive */
	struct pm_str text; /* bytes to be sent */
	uint64_t mapped_bytes, bytes; /* of all files: nominal size, size on disk */
};

static void worker_check_file_size(struct worker *worker, struct job *job, int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < 0)
		return;
	job->bytes += (uint64_t)st.st_blocks * 512;
	worker->bytes += (uint64_t)st.st_blocks * 512;
	if ((uint64_t)st.st_size < MAPPED_BYTES_MAX)
		worker->mapped_bytes += (uint64_t)st.st_size;
	else
		worker->mapped_bytes += MAPPED_BYTES_MAX;
}

static struct pm_symbol_options make_job_options(struct job *job)
{
	return (struct pm_symbol_options){ .inlines = true,
					   .lines = true,
					   .starts = true,
					   .debug_dir = job->input.debug_dir,
					   .pid = job->input.pid,
					   .path = job->input.path,
					   .files = &job->files,
					   .limited = &job->limited,
					   .damaged = &job->damaged };
}

static void worker_find_job_files(struct job *job, uint64_t *crc_bytes_left)
{
	const struct pm_symbol_options options = make_job_options(job);
	const struct pm_debug_search search = { .dir = job->input.debug_dir };

	if (job->input.debug < 0 && !job->input.no_search) {
		pm_symbol_files_find(job->input.fd, &options, crc_bytes_left,
				     &job->files);
		return;
	}
	job->files.debug = job->input.debug;
	if (job->input.debug >= 0)
		job->files.alt = pm_debug_find_alt(job->input.debug, &search);
	if (job->files.alt < 0)
		job->files.alt = pm_debug_find_alt(job->input.fd, &search);
}

static void worker_send_text(struct worker *worker)
{
	size_t sent = 0;

	if (worker->text.failed)
		_exit(PM_SYMBOL_WORKER_FAILED);
	while (sent < worker->text.len) {
		ssize_t n = write(worker->out, worker->text.data + sent,
				  worker->text.len - sent);

		if (n < 0 && errno != EINTR)
			_exit(PM_SYMBOL_WORKER_FAILED);
		if (n > 0)
			sent += (size_t)n;
	}
	pm_str_clear(&worker->text);
}

static void worker_open_files(struct worker *worker)
{
	uint64_t crc_bytes_left = CRC_BYTES_MAX;

	for (size_t i = 0; i < worker->len; i++) {
		struct job *job = &worker->jobs[i];

		if (job->hung)
			continue;
		pm_symbol_wire_put_opening(&worker->text, (uint32_t)i);
		worker_send_text(worker);
		worker->calls->open(worker->calls->user, worker->first + i, &job->input);
		if (job->input.fd < 0)
			continue;
		worker_find_job_files(job, &crc_bytes_left);
		worker_check_file_size(worker, job, job->input.fd);
		worker_check_file_size(worker, job, job->files.debug);
		worker_check_file_size(worker, job, job->files.alt);
	}
	pm_symbol_wire_put_opening(&worker->text, (uint32_t)worker->len);
	worker_send_text(worker);
}

/* A pm_symbol_emit_fn: sends the functions to the parent. */
static int worker_emit_symbol(void *user, size_t index,
			      const struct pm_symbol_function *functions, size_t len)
{
	struct worker *worker = user;

	if (len == 0)
		return 0;
	/* If the chain is too long, the inner functions are left out, because the outer
	 * ones matter most. */
	if (len > PM_SYMBOL_WIRE_FUNCTIONS_MAX) {
		functions += len - PM_SYMBOL_WIRE_FUNCTIONS_MAX;
		len = PM_SYMBOL_WIRE_FUNCTIONS_MAX;
	}
	pm_symbol_wire_put_symbol(&worker->text, (uint32_t)index, functions, len);
	if (worker->text.len >= SEND_BYTES || worker->text.failed)
		worker_send_text(worker);
	return 0;
}

static int worker_resolve_job(struct worker *worker, struct job *job)
{
	const struct pm_symbol_options options = make_job_options(job);

	if (job->hung)
		return -ETIMEDOUT;
	if (job->input.image)
		return pm_symbols_resolve_memory(job->input.image, job->input.image_len,
						 job->of->addresses,
						 job->of->addresses_len, &options,
						 worker_emit_symbol, worker, NULL);
	/* Another part of the program reports files that could not be opened. */
	if (job->input.fd < 0)
		return 0;
	if (job->symbols)
		return pm_symbols_answer(job->symbols, job->of->addresses,
					 job->of->addresses_len, worker_emit_symbol,
					 worker, NULL);
	return pm_symbols_resolve(job->input.fd, job->of->addresses,
				  job->of->addresses_len, &options, worker_emit_symbol,
				  worker, NULL);
}

static void worker_keep_files_open(const struct worker *worker)
{
	PM_AUTO_FREE int *fds =
		reallocarray(NULL, FDS_OF_JOB * worker->len + 2, sizeof(*fds));
	size_t len = 0;

	if (!fds)
		_exit(PM_SYMBOL_WORKER_FAILED);
	fds[len++] = worker->out;
	fds[len++] = worker->ask;
	for (size_t i = 0; i < worker->len; i++) {
		fds[len++] = worker->jobs[i].input.fd;
		fds[len++] = worker->jobs[i].files.debug;
		fds[len++] = worker->jobs[i].files.alt;
	}
	pm_sandbox_keep_files(fds, len);
}

static uint64_t job_cpu_seconds(const struct job *job)
{
	return PM_SYMBOL_SECONDS + job->bytes / PM_SYMBOL_BYTES_A_SECOND;
}

static void read_request_or_exit(int fd, void *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = read(fd, bytes, len);

		/* At the end of the pipe, there is no process left that could send a
		 * request. */
		if (n == 0 || (n < 0 && errno != EINTR))
			_exit(0);
		if (n > 0) {
			bytes = (char *)bytes + n;
			len -= (size_t)n;
		}
	}
}

/* Called when the files are open. The alarm must be set before all rights are given up,
 * because it cannot be set later. */
static void worker_prepare_to_wait(const struct worker *worker)
{
	struct pollfd ask = { .fd = worker->ask, .events = POLLIN };
	const struct sched_param none = { 0 };

	signal(SIGALRM, SIG_DFL);
	alarm(EARLY_WAIT_S);
	if (!worker->yields)
		return;
	sched_setscheduler(0, SCHED_IDLE, &none);
	/* The parent lets the process compete for the CPU again when it sends the
	 * request, which may have happened before the call above. */
	if (poll(&ask, 1, 0) > 0)
		sched_setscheduler(0, SCHED_OTHER, &none);
}

static void worker_wait_for_request(const struct worker *worker, struct job *job)
{
	const struct pm_symbol_options options = make_job_options(job);
	struct pm_symbol_job *asked = calloc(1, sizeof(*asked));
	uint64_t *addresses, len;

	if (!asked)
		_exit(PM_SYMBOL_WORKER_FAILED);
	pm_sandbox_cpu_time(job_cpu_seconds(job));
	/* If this fails, it fails again after the request, and is reported then. */
	if (job->input.fd >= 0)
		(void)pm_symbols_open(job->input.fd, &options, &job->symbols, NULL);
	read_request_or_exit(worker->ask, &len, sizeof(len));
	signal(SIGALRM, SIG_IGN);
	addresses = reallocarray(NULL, len + 1, sizeof(*addresses));
	if (!addresses)
		_exit(PM_SYMBOL_WORKER_FAILED);
	read_request_or_exit(worker->ask, addresses, len * sizeof(*addresses));
	*asked = (struct pm_symbol_job){ .addresses = addresses, .addresses_len = len };
	job->of = asked;
}

static void worker_run(struct worker *worker, pid_t parent)
{
	struct pm_sandbox sandbox = { .parent = parent,
				      /* The parent may have given an early helper a
				       * better nice value since it was started. */
				      .hurried = worker->ask >= 0 ||
						 worker->calls->hurry_ns > 0 };
	uint64_t seconds = 0;
	int entered;

	prctl(PR_SET_NAME, worker->calls->process_name);
	pm_sandbox_cpu_time(PM_SYMBOL_SECONDS);
	worker_open_files(worker);
	if (worker->ask >= 0 && worker->bytes < EARLY_BYTES_MIN)
		_exit(0);
	worker_keep_files_open(worker);
	if (worker->ask >= 0)
		worker_prepare_to_wait(worker);
	sandbox.memory_bytes = PM_SYMBOL_MEMORY_BYTES + worker->mapped_bytes +
			       PM_SYMBOL_MEMORY_RATIO * worker->bytes;
	for (size_t i = 0; i < worker->len; i++)
		seconds += job_cpu_seconds(&worker->jobs[i]) + 1; /* each job's limit is
		                                                   * rounded up */
	pm_sandbox_cpu_time_of_all(seconds);
	entered = pm_sandbox_enter(&sandbox);
	if (entered < 0)
		_exit(entered == -ENOSYS ? PM_SYMBOL_WORKER_UNFILTERED
					 : PM_SYMBOL_WORKER_FAILED);
	if (worker->ask >= 0)
		worker_wait_for_request(worker, worker->jobs);
	for (size_t i = 0; i < worker->len; i++) {
		struct job *job = &worker->jobs[i];
		int ret;

		pm_sandbox_cpu_time(job_cpu_seconds(job));
		ret = worker_resolve_job(worker, job);
		if (ret == 0 && job->limited)
			ret = PM_SYMBOL_WIRE_LIMITED;
		else if (ret == 0 && job->damaged)
			ret = PM_SYMBOL_WIRE_DAMAGED;
		pm_symbol_wire_put_done(&worker->text, ret);
		worker_send_text(worker);
	}
}

static _Noreturn void worker_child_main(struct worker *worker,
					const struct pm_symbol_job *jobs, pid_t parent)
{
	worker->jobs = calloc(worker->len, sizeof(*worker->jobs));
	if (!worker->jobs)
		_exit(PM_SYMBOL_WORKER_FAILED);
	for (size_t i = 0; i < worker->len; i++) {
		worker->jobs[i] = (struct job){ .input = { .fd = -1, .debug = -1 },
						.files = { -1, -1 } };
		if (jobs)
			worker->jobs[i].of = &jobs[worker->first + i];
		if (worker->hung)
			worker->jobs[i].hung = worker->hung[worker->first + i];
	}
	worker_run(worker, parent);
	/* Buffers and exit handlers belong to the parent. */
	_exit(0);
}

/* If @jobs is NULL, the only job arrives through worker->ask. */
static int worker_start_process(struct worker *worker, const struct pm_symbol_job *jobs,
				struct pm_symbol_process *out)
{
	pid_t parent = getpid(), pid;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* With a large pipe the helper can continue while we are busy. */
	fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	worker->out = ends[1];
	pid = fork();
	if (pid == 0)
		worker_child_main(worker, jobs, parent);
	if (pid < 0) {
		int ret = -errno;

		close(ends[0]);
		close(ends[1]);
		return ret;
	}
	close(ends[1]);
	*out = (struct pm_symbol_process){ .pid = pid, .fd = ends[0] };
	return 0;
}

int pm_symbol_worker_start(const struct pm_symbol_job *jobs, size_t first, size_t end,
			   const bool *hung, const struct pm_symbol_crew_calls *calls,
			   struct pm_symbol_process *out)
{
	struct worker worker = { .calls = calls,
				 .first = first,
				 .len = end - first,
				 .hung = hung,
				 .ask = -1 };

	return worker_start_process(&worker, jobs, out);
}

int pm_symbol_worker_start_early(const struct pm_symbol_crew_calls *calls, size_t key,
				 bool yields, struct pm_symbol_process *out, int *ask)
{
	struct worker worker = {
		.calls = calls, .first = key, .len = 1, .yields = yields
	};
	int ends[2], ret;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* All addresses must fit into the pipe, because writing must not block; see
	 * early.c. */
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	worker.ask = ends[0];
	ret = worker_start_process(&worker, NULL, out);
	close(ends[0]);
	if (ret < 0)
		close(ends[1]);
	else
		*ask = ends[1];
	return ret;
}

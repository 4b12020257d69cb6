/* SPDX-License-Identifier: MIT */
#include "pm/symbol-crew.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "wire.h"
#include "worker.h"

enum {
	WORKERS_MAX = 8, /* also limits the memory of all processes together */
	JOBS_MAX = 32, /* of one process; each needs up to three open files */
	TICK_MS = 100,
	READ_BYTES = 1 << 18,
	REAP_TRIES = 100,
	REAP_QUICK_TRIES = 20,
	REAP_QUICK_US = 100,
	REAP_US = 2000,
	DIE_TRIES = 1000,
	WHY_MAX = 160,
	HUNG_BEFORE_HURRY = 2,
};
/* Small modules share a process: a fork costs about as much as reading this many
 * addresses. */
#define ADDRESSES_TOGETHER ((size_t)2000)
/* Longest time without an answer from a helper that waits for something other than a CPU.
 * (A helper limits its CPU time itself; a busy machine must not cost names.) */
#define WAIT_NS_MAX 15000000000ull
/* A helper that has used less CPU time since its last message has not run: even one that
 * reads from the slowest disk uses more. */
#define LIFE_NS_MIN 1000000ull
/* Used after the second file that could not be opened: the other files are probably on
 * the same file system. */
#define WAIT_AGAIN_NS_MAX 1000000000ull
/* The limit for one job, even if its helper makes progress, and the total time by which
 * all jobs together may exceed it, for the largest files and the slowest disks. */
#define JOB_NS_MAX   60000000000ull
#define SPARE_NS_MAX 900000000000ull
/* For a helper that has done all its jobs and only has to exit. */
#define END_NS_MAX 10000000000ull
/* Limit of a helper's messages. Names have a few kilobytes at most, and many are
 * equal. */
#define BYTES_MAX (UINT64_C(1) << 30)

struct worker {
	struct pm_symbol_process process; /* pid 0: none */
	size_t job, end; /* [job, end): jobs that are not done; job is the current one */
	size_t opening; /* index of the job that it is opening, plus 1; 0: all are open */
	bool early; /* it had opened its module before the request was sent */
	uint32_t next_index; /* of the current job: a lower index is invalid */
	struct pm_str text; /* received bytes of an incomplete message */
	uint64_t heard_ns;
	uint64_t begun_ns; /* start of the current job */
	uint64_t cpu_ns; /* CPU time used at heard_ns */
	uint64_t cpu_before_ns; /* CPU time used before its first job */
	uint64_t bytes; /* of all its messages */
};

struct crew {
	const struct pm_symbol_job *jobs;
	size_t len, next; /* next: the first job that has not been assigned */
	const struct pm_symbol_crew_calls *calls;
	struct pm_symbol_crew_cost *cost;
	struct worker workers[WORKERS_MAX];
	size_t workers_max;
	bool hurries;
	uint64_t hurried_ns; /* CPU time of helpers that have exited */
	bool *hung; /* by job: an attempt to open it never finished */
	size_t hung_len;
	uint64_t spare_ns; /* time by which jobs may still exceed JOB_NS_MAX, all
	                    * together */
	struct pm_symbol_wire_message message;
};

static uint64_t crew_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static size_t count_usable_cpus(void)
{
	cpu_set_t set;

	/* The set has no room for more than 1024 CPUs, but WORKERS_MAX is far below
	 * that. */
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return WORKERS_MAX;
	return (size_t)CPU_COUNT(&set);
}

/* As many as there are CPUs. Early helpers exist already, and have done most of their
 * work: none of them waits until another one has ended, and one more opens the rest. */
static size_t count_workers(const struct pm_symbol_job *jobs, size_t len)
{
	size_t early = 0, cpus = count_usable_cpus();

	for (size_t i = 0; i < len; i++)
		early += jobs[i].early != NULL;
	return PM_MIN(PM_MAX(cpus, early + 1), WORKERS_MAX);
}

/* Returns 0 if the time is unknown. */
static uint64_t process_cpu_ns(pid_t pid)
{
	clockid_t clock;
	struct timespec cpu;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &cpu) < 0)
		return 0;
	return (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
}

static void worker_note_progress(struct worker *worker, uint64_t now)
{
	worker->heard_ns = now;
	worker->cpu_ns = process_cpu_ns(worker->process.pid);
}

/* Returns the number of jobs that one process gets, starting with crew->next. */
static size_t crew_count_next_jobs(const struct crew *crew)
{
	size_t addresses = 0, len = 0;

	while (crew->next + len < crew->len && len < JOBS_MAX) {
		const struct pm_symbol_job *job = &crew->jobs[crew->next + len];

		addresses += job->addresses_len;
		if (len > 0 && (addresses > ADDRESSES_TOGETHER || job->early))
			break;
		len++;
		if (job->early)
			break;
	}
	return len;
}

/* SCHED_RR and not SCHED_FIFO, because this thread, which limits the helper, may have to
 * share a CPU with it. */
static void crew_hurry_worker(const struct crew *crew, pid_t pid)
{
	const struct sched_param lowest = { .sched_priority = 1 };

	setpriority(PRIO_PROCESS, (id_t)pid, crew->calls->hurry_nice);
	if (crew->calls->hurry_realtime)
		sched_setscheduler(pid, SCHED_RR, &lowest);
}

static int crew_start_worker(struct crew *crew, struct worker *worker)
{
	const struct pm_symbol_job *job = &crew->jobs[worker->job];
	int ret = -ENOENT;

	if (job->early)
		ret = pm_symbol_early_ask(job->early, job, &worker->process);

	worker->early = ret == 0;
	if (ret < 0)
		ret = pm_symbol_worker_start(crew->jobs, worker->job, worker->end,
					     crew->hung, crew->calls, &worker->process);
	if (ret < 0)
		return ret;
	pm_str_clear(&worker->text);
	worker->next_index = 0;
	worker->opening = 0;
	worker->bytes = 0;
	worker->begun_ns = crew_clock_ns();
	worker_note_progress(worker, worker->begun_ns);
	worker->cpu_before_ns = worker->cpu_ns;
	if (crew->hurries)
		crew_hurry_worker(crew, worker->process.pid);
	crew->cost->processes++;
	return 0;
}

static int crew_finish_job(struct crew *crew, struct worker *worker, const char *what,
			   const char *why)
{
	size_t job = worker->job++;
	uint64_t now = crew_clock_ns(), took = now - worker->begun_ns;

	if (took > JOB_NS_MAX)
		crew->spare_ns -= PM_MIN(took - JOB_NS_MAX, crew->spare_ns);
	worker->begun_ns = now;

	worker->next_index = 0;
	return crew->calls->done(crew->calls->user, job, what, why);
}

static int crew_skip_job(struct crew *crew, struct worker *worker, const char *why)
{
	return crew_finish_job(crew, worker, "names", why);
}

/* Ends all remaining jobs without names, because no helper can be started. */
static int crew_skip_all_jobs(struct crew *crew, struct worker *worker, int error)
{
	char why[WHY_MAX];
	int ret = 0;

	snprintf(why, sizeof(why), "no helper process can be started: %s",
		 strerror(-error));
	while (ret == 0 && worker->job < worker->end)
		ret = crew_skip_job(crew, worker, why);
	return ret;
}

static int crew_start_workers(struct crew *crew)
{
	int ret = 0;

	for (size_t i = 0; i < crew->workers_max && ret == 0; i++) {
		struct worker *worker = &crew->workers[i];
		int started;

		if (worker->process.pid > 0)
			continue;
		if (worker->job == worker->end) {
			worker->job = crew->next;
			crew->next += crew_count_next_jobs(crew);
			worker->end = crew->next;
		}
		if (worker->job == worker->end)
			continue;
		started = crew_start_worker(crew, worker);
		if (started < 0)
			ret = crew_skip_all_jobs(crew, worker, started);
	}
	return ret;
}

static uint64_t timeval_to_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

static uint64_t ns_elapsed_since(uint64_t now, uint64_t before)
{
	if (now > before)
		return now - before;
	return 0;
}

/* Returns the exit status of a helper that has closed its end of the pipe. */
static int crew_reap_worker(struct crew *crew, struct worker *worker)
{
	struct rusage usage;
	int status = 0;
	pid_t pid = 0;

	for (int i = 0; i < REAP_TRIES && pid == 0; i++) {
		pid = wait4(worker->process.pid, &status, WNOHANG, &usage);
		if (pid == 0)
			usleep(i < REAP_QUICK_TRIES ? REAP_QUICK_US : REAP_US);
	}
	/* A helper that closes its end but does not exit is misbehaving. If it waits for
	 * a file server that does not answer, it cannot even be killed; after our exit,
	 * its new parent reaps it. */
	if (pid == 0)
		kill(worker->process.pid, SIGKILL);
	for (int i = 0; i < DIE_TRIES && pid == 0; i++) {
		usleep(REAP_US);
		pid = wait4(worker->process.pid, &status, WNOHANG, &usage);
	}
	if (pid <= 0)
		status = SIGKILL;
	if (pid > 0) {
		uint64_t cpu_ns =
			timeval_to_ns(&usage.ru_utime) + timeval_to_ns(&usage.ru_stime);

		crew->hurried_ns += ns_elapsed_since(cpu_ns, worker->cpu_before_ns);
		timeradd(&crew->cost->user, &usage.ru_utime, &crew->cost->user);
		timeradd(&crew->cost->system, &usage.ru_stime, &crew->cost->system);
		if (usage.ru_maxrss > crew->cost->memory_kb)
			crew->cost->memory_kb = usage.ru_maxrss;
	}
	close(worker->process.fd);
	worker->process = (struct pm_symbol_process){ .pid = 0, .fd = -1 };
	return status;
}

static void crew_kill_worker(struct crew *crew, struct worker *worker)
{
	kill(worker->process.pid, SIGKILL);
	crew_reap_worker(crew, worker);
}

static void describe_worker_exit(int status, char why[WHY_MAX])
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		snprintf(why, WHY_MAX,
			 "reading them took more than its share of CPU time");
	else if (WIFSIGNALED(status))
		snprintf(why, WHY_MAX, "reading them ended with signal %d",
			 WTERMSIG(status));
	else if (WIFEXITED(status) && WEXITSTATUS(status) == PM_SYMBOL_WORKER_UNFILTERED)
		snprintf(why, WHY_MAX,
			 "this kernel, or what runs around pmrec, allows no seccomp "
			 "filter, without which no file of others is read");
	else
		snprintf(why, WHY_MAX,
			 "reading them took more than its share of memory, or failed");
}

/* Ends a helper that has not finished its work; another one gets its remaining jobs. */
static int crew_end_worker(struct crew *crew, struct worker *worker, const char *why)
{
	char words[WHY_MAX];

	if (why) {
		crew_kill_worker(crew, worker);
	} else {
		describe_worker_exit(crew_reap_worker(crew, worker), words);
		why = words;
	}
	return crew_skip_job(crew, worker, why);
}

static const char *wire_code_to_text(int code)
{
	switch (code) {
	case 0:
		return NULL;
	case -ENOEXEC:
		return "it is not an ELF file, or broken";
	case -ENOMEM:
		return "reading them took more than its share of memory";
	case -ETIMEDOUT:
		return "the file system that it is on does not answer";
	default:
		return strerror(-code);
	}
}

/* Whether the message is valid at this point. */
static bool is_message_expected(const struct crew *crew, const struct worker *worker)
{
	const struct pm_symbol_wire_message *message = &crew->message;

	if (worker->job == worker->end)
		return false;
	if (message->kind == PM_SYMBOL_WIRE_OPENING)
		return worker->next_index == 0 &&
		       message->index <= worker->end - worker->job;
	return message->kind == PM_SYMBOL_WIRE_DONE ||
	       (message->index >= worker->next_index &&
		message->index < crew->jobs[worker->job].addresses_len);
}

static int crew_apply_message(struct crew *crew, struct worker *worker)
{
	const struct pm_symbol_wire_message *message = &crew->message;

	worker->opening = 0;
	if (message->kind == PM_SYMBOL_WIRE_OPENING) {
		if (message->index < worker->end - worker->job)
			worker->opening = worker->job + message->index + 1;
		worker_note_progress(worker, crew_clock_ns());
		return 0;
	}
	if (message->kind == PM_SYMBOL_WIRE_DONE) {
		worker_note_progress(worker, crew_clock_ns());
		if (message->code == PM_SYMBOL_WIRE_LIMITED)
			return crew_finish_job(
				crew, worker, "lines and inlined functions",
				"its debug information inflates beyond reason, or "
				"takes too long to read");
		if (message->code == PM_SYMBOL_WIRE_DAMAGED)
			return crew_finish_job(
				crew, worker, "names",
				"its symbol table or its separate debug file is "
				"broken, or too large to map");
		return crew_skip_job(crew, worker, wire_code_to_text(message->code));
	}
	worker->next_index = message->index + 1;
	return crew->calls->symbol(crew->calls->user, worker->job, message->index,
				   message->functions, message->functions_len);
}

/* Returns 1; 0 if the helper can no longer be trusted; or a negative result of a
 * callback. */
static int crew_apply_messages(struct crew *crew, struct worker *worker)
{
	size_t at = 0, taken;
	int ret = 0, next;

	for (;;) {
		next = pm_symbol_wire_next(worker->text.data + at, worker->text.len - at,
					   &crew->message, &taken);
		if (next <= 0)
			break;
		if (!is_message_expected(crew, worker))
			return 0;
		ret = crew_apply_message(crew, worker);
		if (ret < 0)
			return ret;
		at += taken;
	}
	memmove(worker->text.data, worker->text.data + at, worker->text.len - at);
	worker->text.len -= at;
	return next == 0;
}

static int crew_receive_bytes(struct crew *crew, struct worker *worker)
{
	static const char nonsense[] = "the helper process answered nonsense";
	PM_AUTO_FREE char *bytes = malloc(READ_BYTES);
	ssize_t n;
	int ret;

	if (!bytes)
		return -ENOMEM;
	n = read(worker->process.fd, bytes, READ_BYTES);
	if (n < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return 0;
		return crew_end_worker(crew, worker, nonsense);
	}
	if (n == 0) {
		/* The helper may time out while it waits, before it reads the request. */
		if (worker->job < worker->end &&
		    !(worker->early && worker->next_index == 0))
			return crew_end_worker(crew, worker, NULL);
		crew_reap_worker(crew, worker);
		return 0;
	}
	worker->bytes += (uint64_t)n;
	pm_str_append(&worker->text, bytes, (size_t)n);
	if (worker->text.failed)
		return -ENOMEM;
	if (worker->bytes > BYTES_MAX)
		ret = 0;
	else
		ret = crew_apply_messages(crew, worker);
	if (ret == 0 && worker->job < worker->end)
		return crew_end_worker(crew, worker, nonsense);
	if (ret == 0)
		crew_kill_worker(crew, worker);
	if (ret < 0)
		return ret;
	return 0;
}

/* Whether the process runs or waits for a CPU. True if that is unknown. */
static bool is_process_runnable(pid_t pid)
{
	char path[32], text[512];
	const char *state;
	ssize_t n;
	PM_AUTO_CLOSE int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		n = -1;
	else
		n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return true;
	text[n] = '\0';
	/* The state follows the name in parentheses (proc(5)). */
	state = strrchr(text, ')');
	return !state || state[1] != ' ' || state[2] == 'R';
}

static uint64_t wait_ns_max(const struct crew *crew)
{
	uint64_t limit = crew->calls->wait_ns > 0 ? crew->calls->wait_ns : WAIT_NS_MAX;

	if (crew->hung_len >= HUNG_BEFORE_HURRY && limit > WAIT_AGAIN_NS_MAX)
		return WAIT_AGAIN_NS_MAX;
	return limit;
}

/* Whether the current job has taken too long, or its helper has neither answered nor
 * run. */
static bool is_worker_stuck(const struct crew *crew, struct worker *worker, uint64_t now)
{
	uint64_t cpu_ns;

	if (worker->job == worker->end)
		return false;
	if (now - worker->begun_ns > JOB_NS_MAX + crew->spare_ns)
		return true;
	if (now - worker->heard_ns <= wait_ns_max(crew))
		return false;
	cpu_ns = process_cpu_ns(worker->process.pid);
	if (cpu_ns - worker->cpu_ns < LIFE_NS_MIN &&
	    !is_process_runnable(worker->process.pid))
		return true;
	worker_note_progress(worker, now);
	return false;
}

/* Gives up the file that the helper is opening, which need not be that of its current
 * job, because a helper opens all files first. */
static int crew_give_up_stuck_worker(struct crew *crew, struct worker *worker)
{
	size_t opening = worker->opening;

	if (opening == 0)
		return crew_end_worker(crew, worker, "reading them took too long");
	crew->hung[opening - 1] = true;
	crew->hung_len++;
	crew_kill_worker(crew, worker);
	return 0;
}

/* Whether the helpers have used the CPU time for which they may be hurried. Among many
 * busy threads, even the best nice value gives only a part of a CPU; without hurrying,
 * the remaining work would take a hundred times as long. */
static bool has_hurried_enough(const struct crew *crew)
{
	uint64_t ns = crew->hurried_ns;

	for (size_t i = 0; i < crew->workers_max; i++)
		if (crew->workers[i].process.pid > 0)
			ns += ns_elapsed_since(
				process_cpu_ns(crew->workers[i].process.pid),
				crew->workers[i].cpu_before_ns);
	return ns > crew->calls->hurry_ns;
}

static void crew_end_hurry(struct crew *crew)
{
	const struct sched_param none = { 0 };

	crew->hurries = false;
	for (size_t i = 0; i < crew->workers_max; i++) {
		pid_t pid = crew->workers[i].process.pid;

		if (pid <= 0)
			continue;
		if (crew->calls->hurry_realtime)
			sched_setscheduler(pid, SCHED_OTHER, &none);
		setpriority(PRIO_PROCESS, (id_t)pid, 0);
	}
}

static int crew_poll_workers(struct crew *crew)
{
	struct pollfd fds[WORKERS_MAX + 1];
	uint64_t now;
	int ret = 0;

	for (size_t i = 0; i < crew->workers_max; i++) {
		fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
		if (crew->workers[i].process.pid > 0)
			fds[i].fd = crew->workers[i].process.fd;
	}
	fds[crew->workers_max] =
		(struct pollfd){ .fd = crew->calls->wake_fd, .events = POLLIN };
	poll(fds, crew->workers_max + 1, TICK_MS);
	now = crew_clock_ns();
	if (crew->hurries && has_hurried_enough(crew))
		crew_end_hurry(crew);
	for (size_t i = 0; i < crew->workers_max && ret == 0; i++) {
		struct worker *worker = &crew->workers[i];

		if (worker->process.pid <= 0)
			continue;
		if (fds[i].revents)
			ret = crew_receive_bytes(crew, worker);
		else if (worker->job == worker->end &&
			 now - worker->heard_ns > END_NS_MAX)
			crew_kill_worker(crew, worker);
		else if (is_worker_stuck(crew, worker, now))
			ret = crew_give_up_stuck_worker(crew, worker);
	}
	if (ret < 0)
		return ret;
	return crew->calls->tick(crew->calls->user);
}

static bool crew_is_busy(const struct crew *crew)
{
	for (size_t i = 0; i < crew->workers_max; i++)
		if (crew->workers[i].process.pid > 0 ||
		    crew->workers[i].job < crew->workers[i].end)
			return true;
	return crew->next < crew->len;
}

int pm_symbol_crew_run(const struct pm_symbol_job *jobs, size_t len,
		       const struct pm_symbol_crew_calls *calls,
		       struct pm_symbol_crew_cost *cost)
{
	PM_AUTO_FREE struct crew *crew = calloc(1, sizeof(*crew));
	int ret = 0;

	if (!crew)
		return -ENOMEM;
	*crew = (struct crew){ .jobs = jobs,
			       .len = len,
			       .calls = calls,
			       .cost = cost,
			       .workers_max = count_workers(jobs, len),
			       .hung = calloc(len + 1, sizeof(bool)),
			       .spare_ns = SPARE_NS_MAX,
			       .hurries = calls->hurry_ns > 0 };
	if (!crew->hung)
		return -ENOMEM;
	while (ret == 0 && crew_is_busy(crew)) {
		ret = crew_start_workers(crew);
		if (ret == 0)
			ret = crew_poll_workers(crew);
	}
	for (size_t i = 0; i < crew->workers_max; i++) {
		if (crew->workers[i].process.pid > 0)
			crew_kill_worker(crew, &crew->workers[i]);
		pm_str_release(&crew->workers[i].text);
	}
	free(crew->hung);
	return ret;
}

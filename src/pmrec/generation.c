/* SPDX-License-Identifier: MIT */
#include "generation.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "follow.h"
#include "hold.h"
#include "off-cpu.h"
#include "output.h"
#include "pm/chain-jit.h"
#include "progress.h"
#include "summary.h"
#include "symbols.h"
#include "titles.h"

enum {
	/* A new generation of modules starts when the number of modules exceeds twice the
	 * number that was mapped when the last one started, plus MODULES_MORE. An open
	 * module takes some 20 KB. */
	MODULES_MORE = 4096,
	/* It also starts when the table is nearly full. If most modules are mapped, that
	 * does not help; therefore it starts at most once a minute. */
	MODULES_FULL = PM_MODULES_MAX / 4 * 3,
	MODULES_EVERY_S = 60,
	/* If this many tasks are known, those that have ended without a record are
	 * searched for and discarded. */
	TASKS_SWEEP = 4096,
	READ_BYTES = 256 << 10, /* of the copy's lines, read per call */
	WAIT_MS = 100,
};
#define SECOND_NS 1000000000ull

/* The forked copy of this process that finds the names of a generation. */
struct pm_rec_naming {
	pid_t pid;
	int fd; /* read end of the pipe with its lines */
	struct pm_str rest; /* the start of a line that is not complete yet */
	uint64_t frames;
	bool ended; /* `status` is valid */
	int status;
};

/* ---- the copy --------------------------------------------------------------------------- */

static int compare_fds(const void *left, const void *right)
{
	const int *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Closes all descriptors except those needed for names; events must not stay open. */
static int close_other_fds(const struct pm_rec_session *session, int lines)
{
	const struct pm_chain_modules *modules = &session->modules;
	PM_AUTO_FREE int *keep = calloc(modules->list.len + 5, sizeof(*keep));
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned int first = 0;
	size_t len = 0;

	if (!keep || nothing < 0)
		return -ENOMEM;
	/* Keep these open: otherwise new descriptors would get these numbers, which
	 * helpers redirect to /dev/null. But they must not be those of the recorder,
	 * because a reader of its output waits until all copies are closed. */
	if (dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0)
		return -errno;
	keep[len++] = STDIN_FILENO;
	keep[len++] = STDOUT_FILENO;
	for (size_t i = 0; i < modules->list.len; i++)
		if (modules->list.data[i].fd >= 0)
			keep[len++] = modules->list.data[i].fd;
	keep[len++] = STDERR_FILENO;
	keep[len++] = session->child.signal_fd;
	keep[len++] = lines;
	qsort(keep, len, sizeof(*keep), compare_fds);
	for (size_t i = 0; i < len; i++) {
		unsigned int fd = (unsigned int)keep[i];

		if (keep[i] < 0)
			continue;
		if (fd > first && syscall(SYS_close_range, first, fd - 1, 0u) < 0)
			return -errno;
		first = fd + 1;
	}
	if (syscall(SYS_close_range, first, UINT32_MAX, 0u) < 0)
		return -errno;
	return 0;
}

static _Noreturn void find_names_in_copy(struct pm_rec_session *session, pid_t recorder,
					 int lines)
{
	prctl(PR_SET_NAME, "pmrec-names");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != recorder || close_other_fds(session, lines) < 0)
		_exit(1);
	/* These belong to threads that do not exist in the copy, or to the recorder. */
	session->kernel_names = NULL;
	session->realtime = NULL;
	session->early_names = NULL;
	/* The copy is not notified of the end of the command, whose pid may be reused. */
	session->child.running = false;
	session->told = true;
	session->progress = false;
	pm_file_writer_redirect(session->writer, lines);
	if (pm_rec_symbols_write(session) < 0 ||
	    pm_file_writer_flush(session->writer) < 0)
		_exit(1);
	_exit(0);
}

static void warn_nameless(struct pm_rec_session *session, uint64_t frames,
			  const char *why)
{
	char text[160];

	snprintf(text, sizeof(text),
		 "names of up to %" PRIu64 " places were left out: %s", frames, why);
	pm_rec_warn(session, text);
}

/* Starts to find the names of all frames of this generation. */
static void begin_names(struct pm_rec_session *session)
{
	struct pm_rec_naming *naming;
	int ends[2] = { -1, -1 };
	pid_t recorder = getpid();
	size_t frames;

	pm_file_writer_frames(session->writer, &frames);
	if (frames == 0 || !session->options->symbols)
		return;
	naming = calloc(1, sizeof(*naming));
	if (naming && pipe2(ends, O_CLOEXEC) == 0) {
		naming->frames = frames;
		naming->pid = fork();
		if (naming->pid == 0)
			find_names_in_copy(session, recorder, ends[1]);
		close(ends[1]);
		if (naming->pid > 0) {
			naming->fd = ends[0];
			fcntl(naming->fd, F_SETFL, O_NONBLOCK);
			session->naming = naming;
			return;
		}
		close(ends[0]);
	}
	warn_nameless(session, frames, strerror(errno));
	free(naming);
}

/* Whether the copy has ended. End of file on its pipe is not reliable: a helper that
 * hangs in a file system also has the pipe open. */
static bool names_ended(struct pm_rec_naming *naming, int options)
{
	pid_t pid = 0;

	while (!naming->ended &&
	       (pid = waitpid(naming->pid, &naming->status, options)) < 0 &&
	       errno == EINTR)
		continue;
	naming->ended |= pid != 0;
	return naming->ended;
}

static void kill_names(const struct pm_rec_naming *naming)
{
	if (!naming->ended)
		kill(naming->pid, SIGKILL);
}

static int end_names(struct pm_rec_session *session)
{
	struct pm_rec_naming *naming = PM_TAKE_PTR(session->naming);

	names_ended(naming, 0);
	if (naming->status != 0)
		warn_nameless(session, naming->frames,
			      "the process that was to find them did not complete it");
	pm_cleanup_close(&naming->fd);
	pm_str_release(&naming->rest);
	free(naming);
	return 0;
}

/* Writes whole lines to the file and keeps the rest. */
static int take_lines(struct pm_rec_session *session, const char *bytes, size_t len)
{
	struct pm_str *rest = &session->naming->rest;
	const char *last;
	size_t whole;
	int ret;

	pm_str_append(rest, bytes, len);
	if (rest->failed)
		return -ENOMEM;
	last = memrchr(rest->data, '\n', rest->len);
	if (!last)
		return 0;
	whole = (size_t)(last - rest->data) + 1;
	ret = pm_file_writer_append(session->writer, rest->data, whole);
	memmove(rest->data, rest->data + whole, rest->len - whole);
	rest->len -= whole;
	return ret;
}

int pm_rec_generation_collect(struct pm_rec_session *session)
{
	struct pm_rec_naming *naming = session->naming;
	char bytes[16 << 10];
	int ret = 0;

	for (size_t done = 0; naming && ret == 0 && done < READ_BYTES;) {
		ssize_t n = read(naming->fd, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		/* When the copy has ended, everything that it wrote is in the pipe. */
		if (n < 0 && errno == EAGAIN && !naming->ended) {
			if (!names_ended(naming, WNOHANG))
				return 0;
			continue;
		}
		if (n <= 0)
			return end_names(session);
		ret = take_lines(session, bytes, (size_t)n);
		done += (size_t)n;
	}
	return ret;
}

int pm_rec_generation_finish(struct pm_rec_session *session)
{
	int ret = 0;

	while (session->naming && ret == 0) {
		struct pollfd fds[] = { { .fd = session->naming->fd, .events = POLLIN },
					{ .fd = session->child.signal_fd,
					  .events = POLLIN } };

		poll(fds, PM_ARRAY_LEN(fds), WAIT_MS);
		pm_child_signals(&session->child);
		/* A second signal ends the wait at once. */
		if (session->child.interrupts > 1)
			kill_names(session->naming);
		ret = pm_rec_generation_collect(session);
	}
	return ret;
}

void pm_rec_generation_release(struct pm_rec_session *session)
{
	if (!session->naming)
		return;
	kill_names(session->naming);
	session->told = true;
	end_names(session);
}

/* ---- generations ------------------------------------------------------------------------ */

/* void (*on_drop)() of pm_procs_drop_modules() */
static void close_module(void *user, uint32_t id)
{
	pm_chain_modules_drop(user, id);
}

/* pm_chain_jit_source.warn */
static void warn_of_generated_code(void *user, const char *text)
{
	pm_rec_warn(user, text);
}

int pm_rec_generation_chains(struct pm_rec_session *session)
{
	struct pm_chain_source source = { .procs = session->procs,
					  .modules = &session->modules,
					  .writer = session->writer,
					  .raw = session->raw,
					  .call_graph = session->options->call_graph,
					  .lbr = session->options->lbr,
					  .stitch = session->options->stitch,
					  .look = session->options->stitch,
					  .limited = true,
					  .rate = session->options->by_frequency
							  ? session->options->rate
							  : 0 };

	session->jit = source.jit = pm_chain_jit_new(
		&(struct pm_chain_jit_source){ .procs = session->procs,
					       .modules = &session->modules,
					       .writer = session->writer,
					       .symbols = session->options->symbols,
					       .warn = warn_of_generated_code,
					       .user = session });
	if (session->jit)
		session->chains = pm_chains_new(&source);
	else
		session->chains = NULL;
	if (!session->chains)
		return -ENOMEM;
	return 0;
}

/* Discards all references to frames and modules, and the modules that no process has
 * mapped. */
static int renew_tables(struct pm_rec_session *session)
{
	int ret = pm_file_writer_new_frames(session->writer);
	struct pm_procs_stats left;
	struct pm_unw_stats *all = &session->tables.unwound, stats;
	struct pm_chains *old = session->chains;

	pm_chains_stats(session->chains, &stats);
	all->frames += stats.frames;
	all->cache_hits += stats.cache_hits;
	all->cache_misses += stats.cache_misses;
	all->expressions += stats.expressions;
	session->chains = NULL;
	pm_chain_jit_free(PM_TAKE_PTR(session->jit));
	pm_procs_release_users(session->procs);
	pm_chain_modules_new_generation(&session->modules);
	if (ret == 0)
		ret = pm_procs_drop_modules(session->procs, close_module,
					    &session->modules);
	pm_procs_stats(session->procs, &left);
	session->tables.modules = left.modules;
	if (ret == 0)
		ret = pm_rec_generation_chains(session);
	if (ret == 0)
		pm_chains_inherit(session->chains, old);
	pm_chains_free(old);
	return ret;
}

static bool modules_are_full(struct pm_rec_session *session)
{
	struct pm_procs_stats stats;
	uint64_t now = session->newest_ns;

	pm_procs_stats(session->procs, &stats);
	if (stats.modules < MODULES_FULL)
		return stats.modules >= 2 * session->tables.modules + MODULES_MORE;
	return now >= session->tables.renewed_ns + MODULES_EVERY_S * SECOND_NS;
}

static int renew_generation(struct pm_rec_session *session)
{
	int ret = pm_rec_hold_release(session, UINT64_MAX);

	if (ret == 0 && session->options->symbols)
		ret = pm_chain_jit_finish(session->jit, PM_CHAIN_JIT_DROP_NS);
	if (ret == 0)
		ret = pm_file_writer_flush(session->writer);
	if (ret < 0)
		return ret;
	pm_rec_summary_warn_unreachable(session);
	begin_names(session);
	session->tables.frames++;
	session->tables.renewed_ns = session->newest_ns;
	return renew_tables(session);
}

int pm_rec_generation_check(struct pm_rec_session *session)
{
	bool full = pm_file_writer_frames_full(session->writer);
	int ret;

	/* --raw refers to modules by id, and no recording with it is endless. The engine
	 * ptrace waits for all children of this process, so it cannot have a copy. */
	if (!session->raw && !session->ptrace && (full || modules_are_full(session))) {
		if (session->naming && full)
			kill_names(session->naming);
		if (session->naming)
			return pm_rec_generation_collect(session);
		return renew_generation(session);
	}
	if (!pm_file_writer_stacks_full(session->writer))
		return 0;
	ret = pm_rec_hold_release(session, UINT64_MAX);
	if (ret < 0)
		return ret;
	return pm_rec_hold_new_stacks(session);
}

void pm_rec_generation_sweep(struct pm_rec_session *session)
{
	struct pm_procs_stats stats;

	pm_rec_follow_sweep(session->follow);
	pm_rec_titles_sweep(session->titles);
	pm_procs_stats(session->procs, &stats);
	if (stats.processes + stats.threads < session->tables.sweep_at)
		return;
	pm_procs_sweep(session->procs);
	pm_rec_off_cpu_sweep(session->off_cpu);
	pm_procs_stats(session->procs, &stats);
	session->tables.sweep_at = 2 * (stats.processes + stats.threads) + TASKS_SWEEP;
}

/* ---- messages --------------------------------------------------------------------------- */

void pm_rec_generation_warn(struct pm_rec_session *session)
{
	struct pm_procs_stats stats;
	char text[192];

	if (session->threads.misnamed > 0) {
		snprintf(text, sizeof(text),
			 "%" PRIu64
			 " samples of threads that change their names more than "
			 "%d times a second are under an earlier name",
			 session->threads.misnamed, PM_CHAIN_RENAMES_MAX);
		pm_rec_warn(session, text);
	}
	pm_procs_stats(session->procs, &stats);
	if (stats.maps_forgotten > 0) {
		snprintf(text, sizeof(text),
			 "%" PRIu64
			 " times the mappings of a process were forgotten, for "
			 "all together were too many: addresses in them have no names",
			 stats.maps_forgotten);
		pm_rec_warn(session, text);
	}
	if (stats.modules_refused > 0) {
		snprintf(text, sizeof(text),
			 "%" PRIu64 " mappings of files are in " PM_MODULES_REFUSED_PATH
			 ": more than %d files were mapped at a time",
			 stats.modules_refused, PM_MODULES_MAX);
		pm_rec_warn(session, text);
	}
}

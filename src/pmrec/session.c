/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "child.h"
#include "coverage.h"
#include "engine-ptrace.h"
#include "engine.h"
#include "fields.h"
#include "host.h"
#include "jit.h"
#include "record.h"
#include "spaces.h"
#include "summary.h"
#include "symbols.h"

#ifndef PMREC_VERSION
#error "the build passes PMREC_VERSION"
#endif

enum {
	POLL_MS = 100, /* rings that fill slowly wake nobody */
	WAITING_MS = 1000, /* until a stopped recording says what it waits for */
	FIXED_FDS = 2, /* in front of the rings': signals, the command */
};
#define FLUSH_NS 1000000000ull

uint64_t pm_rec_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pm_rec_warn(struct pm_rec_session *session, const char *text)
{
	struct pm_str safe = { 0 };

	pm_str_printable(&safe, text, strlen(text));
	if (!session->options->quiet && !safe.failed)
		fprintf(stderr, "pmrec: warning: %s\n", safe.data ? safe.data : "");
	pm_str_release(&safe);
	if (session->writer)
		pm_file_write_note(session->writer,
				   &(struct pm_file_note){ .text = text });
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Whether exec has something to try: a first look, as execvp(3) searches. */
static bool is_runnable(const char *name)
{
	const char *rest = getenv("PATH");

	if (strchr(name, '/'))
		return is_program(name);
	for (rest = rest ? rest : "/bin:/usr/bin";; rest++) {
		size_t len = strcspn(rest, ":");
		PM_AUTO_FREE char *path = NULL;

		if (asprintf(&path, "%.*s%s%s", (int)len, rest, len > 0 ? "/" : "",
			     name) < 0) {
			path = NULL;
			return true;
		}
		if (is_program(path))
			return true;
		rest += len;
		if (*rest == '\0')
			return false;
	}
}

static void spec_text(const struct pm_event_spec *spec, char *ret, size_t size)
{
	snprintf(ret, size, "%s%s%s", spec->name, spec->modifiers[0] ? ":" : "",
		 spec->modifiers);
}

static bool counts_ns(const struct pm_event_spec *spec)
{
	return strcmp(spec->name, "cpu-clock") == 0 ||
	       strcmp(spec->name, "task-clock") == 0;
}

static int write_header(struct pm_rec_session *session)
{
	static const char *const call_graphs[] = { [PM_CALL_GRAPH_NONE] = "none",
						   [PM_CALL_GRAPH_FP] = "fp",
						   [PM_CALL_GRAPH_DWARF] = "dwarf" };
	const struct pm_rec_options *options = session->options;
	size_t len = 0;
	const struct pm_perf_event *events =
		session->perf ? pm_perf_events(session->perf, &len) : NULL;
	PM_AUTO_FREE struct pm_file_event *lines = calloc(len + 1, sizeof(*lines));
	PM_AUTO_FREE char(*actual)[PM_EVENT_NAME_MAX + 32] =
		calloc(len + 1, sizeof(*actual));
	struct pm_file_header header = { .version = PM_FILE_VERSION,
					 .pmrec = PMREC_VERSION,
					 .clock = "monotonic" };
	struct pm_rec_host host;
	time_t now = time(NULL);
	struct tm utc;
	char created[32];

	if (!lines || !actual)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		spec_text(&events[i].actual, actual[i], sizeof(actual[i]));
		lines[i] = (struct pm_file_event){
			.id = (uint32_t)i,
			.name = events[i].actual.name,
			.requested = events[i].requested.requested,
			.actual = actual[i],
			.modifiers = events[i].actual.modifiers,
			.unit = counts_ns(&events[i].actual) ? "ns" : "events",
			.by_frequency = events[i].by_frequency,
			.rate = events[i].rate,
			.filter = events[i].actual.filter,
			.leader = pm_rec_fields_leader(events, i),
		};
	}
	pm_rec_host_read(&host);
	strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	header.created = created;
	header.host.hostname = host.names.nodename;
	header.host.kernel = host.names.release;
	header.host.arch = host.names.machine;
	header.host.cpu_model = host.cpu_model[0] ? host.cpu_model : NULL;
	header.host.virt = host.virt[0] ? host.virt : NULL;
	header.host.cpus = host.cpus;
	header.command = (const char *const *)options->command;
	while (options->command[header.command_len])
		header.command_len++;
	if (session->ptrace)
		pm_rec_ptrace_event(session, &lines[0]);
	header.events = lines;
	header.events_len = session->ptrace ? 1 : len;
	header.options.call_graph = call_graphs[options->call_graph];
	if (options->call_graph == PM_CALL_GRAPH_DWARF)
		header.options.stack_bytes = session->ptrace
						     ? pm_rec_ptrace_stack_bytes(session)
						     : options->stack_bytes;
	if (session->perf)
		header.options.ring_bytes = (uint64_t)pm_perf_ring_pages(session->perf) *
					    (uint64_t)sysconf(_SC_PAGESIZE);
	return pm_file_write_header(session->writer, &header);
}

static int open_output(struct pm_rec_session *session, struct pm_error *err)
{
	struct pm_rec_chain_source source = { .procs = session->procs,
					      .modules = &session->modules,
					      .call_graph = session->options->call_graph,
					      .stitch = session->options->stitch,
					      .look = session->options->stitch };
	int ret = pm_file_writer_open(&session->writer, session->options->output, err);

	if (ret < 0)
		return ret;
	source.writer = session->writer;
	if (session->options->raw) {
		ret = pm_rec_raw_open(&session->raw, session->options->raw,
				      session->options->stack_bytes, session->procs,
				      &session->modules, err);
		if (ret < 0)
			return ret;
	}
	source.raw = session->raw;
	session->jit = source.jit = pm_rec_jit_new(session);
	session->chains = session->jit ? pm_rec_chains_new(&source) : NULL;
	if (!session->chains)
		return pm_error_set(err, -ENOMEM, "out of memory");
	ret = write_header(session);
	if (ret == 0)
		ret = pm_file_writer_flush(session->writer);
	if (ret < 0) {
		/* What it was is known to the writer. */
		ret = pm_file_writer_close(PM_TAKE_PTR(session->writer), err);
		return ret < 0 ? ret : pm_error_set(err, -EIO, "the header is not valid");
	}
	pm_rec_engine_tell(session);
	session->fields = pm_rec_fields_new(session);
	if (!session->fields)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static void remove_file(const char *path)
{
	struct stat st;

	if (path && strcmp(path, "-") != 0 && lstat(path, &st) == 0 &&
	    S_ISREG(st.st_mode))
		unlink(path);
}

static void remove_output(struct pm_rec_session *session)
{
	pm_file_writer_close(PM_TAKE_PTR(session->writer), NULL);
	remove_file(session->options->output);
	pm_rec_raw_close(PM_TAKE_PTR(session->raw), false, NULL);
	remove_file(session->options->raw);
}

/* What a ring cannot give is told, and what the others have is still worth having. */
static void warn_unreadable(struct pm_rec_session *session, const struct pm_error *err)
{
	struct pm_str text = { 0 };

	pm_str_printf(&text, "%s%s%s", err->source, err->source[0] ? ": " : "",
		      err->text);
	if (!text.failed)
		pm_rec_warn(session, text.data);
	pm_str_release(&text);
}

/* Consecutive samples, whose stacks are unwound side by side. */
struct held {
	struct pm_record records[PM_REC_AHEAD_MAX];
	size_t len, bytes;
};

static int release_held(struct pm_rec_session *session, struct held *held)
{
	int ret = 0;

	size_t samples = held->len;

	/* One that is no sample has not waited for others: it is the last. */
	if (samples > 0 && held->records[samples - 1].type != PERF_RECORD_SAMPLE)
		samples--;
	pm_rec_chains_ahead(session->chains, held->records, samples);
	for (size_t i = 0; i < held->len && ret == 0; i++)
		ret = pm_rec_record(session, &held->records[i]);
	/* Other records will stand in their place. */
	pm_rec_chains_ahead(session->chains, NULL, 0);
	held->len = held->bytes = 0;
	pm_perf_hold(session->perf, false);
	return ret;
}

/* Whether the last of them may wait for the one after it. */
static bool may_wait(const struct pm_rec_session *session, struct held *held)
{
	const struct pm_record *last = &held->records[held->len - 1];
	size_t ring_bytes = pm_perf_ring_pages(session->perf) * (size_t)getpagesize();

	if (last->type != PERF_RECORD_SAMPLE || held->len == PM_REC_AHEAD_MAX)
		return false;
	/* A small ring needs its room back sooner. */
	held->bytes += last->sample.stack_asked;
	return held->bytes <= ring_bytes / 4;
}

/* One round. @err is set for what is not the file's fault. */
static int drain(struct pm_rec_session *session, bool final, struct pm_error *err)
{
	struct held held = { .len = 0 };
	int ret, next;

	pm_perf_begin(session->perf, final);
	do {
		next = pm_perf_next(session->perf, &held.records[held.len], err);
		ret = 0;
		if (next == 1) {
			held.len++;
			pm_perf_hold(session->perf, true);
		}
		if (next != 1 || !may_wait(session, &held))
			ret = release_held(session, &held);
		if (next == -EBADMSG && ret == 0) {
			warn_unreadable(session, err);
			*err = (struct pm_error){ 0 }; /* is told */
		} else if (next < 0 && ret == 0) {
			ret = next;
		}
		if (ret < 0) {
			if (ret == -ENOMEM)
				pm_error_set(err, ret, "out of memory");
			return ret;
		}
	} while (next != 0);
	return 0;
}

static void poll_init(struct pm_rec_session *session, struct pollfd *fds,
		      size_t rings_len)
{
	size_t len;
	const int *rings = pm_perf_poll_fds(session->perf, &len);

	fds[0] = (struct pollfd){ .fd = session->child.signal_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = session->child.launch.pidfd, .events = POLLIN };
	for (size_t i = 0; i < rings_len; i++)
		fds[FIXED_FDS + i] = (struct pollfd){ .fd = rings[i], .events = POLLIN };
}

/* A ring whose tasks have all ended reports POLLHUP for ever (perf_poll()). */
static void poll_drop_ended(struct pollfd *fds, size_t len)
{
	for (size_t i = FIXED_FDS; i < len; i++)
		if (fds[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			fds[i].fd = -1;
}

/* At once: the command may run for days yet. What exactly is wrong is said at the end. */
void pm_rec_say_stopped(const struct pm_error *err, int error)
{
	fprintf(stderr,
		"pmrec: recording has stopped (%s); the command runs on to its end\n",
		err->code != 0 ? err->text : strerror(-error));
}

void pm_rec_say_waiting(const struct pm_rec_session *session, bool failed)
{
	if (!session->options->quiet && !failed)
		fprintf(stderr, "pmrec: stopped; waiting for the command to end "
				"(the next signal kills it)\n");
}

/* Records until the command ends or the user stops it, then waits for the command. */
static int record(struct pm_rec_session *session, struct pm_error *err)
{
	struct pm_rec_child *child = &session->child;
	size_t rings_len;
	size_t fds_len =
		(pm_perf_poll_fds(session->perf, &rings_len), rings_len) + FIXED_FDS;
	PM_AUTO_FREE struct pollfd *fds = calloc(fds_len, sizeof(*fds));
	uint64_t flushed_ns = session->begin_ns;
	bool recording = true, said = false;
	int error = 0;

	if (!fds) {
		recording = false;
		error = pm_error_set(err, -ENOMEM, "out of memory");
	} else {
		poll_init(session, fds, rings_len);
	}
	while (child->running) {
		int ready = poll(fds,
				 recording ? fds_len
				 : fds     ? FIXED_FDS
					   : 0,
				 recording ? POLL_MS : WAITING_MS);

		pm_rec_child_signals(child);
		pm_rec_child_reap(child);
		if (recording) {
			bool last = !child->running || child->interrupts > 0;
			uint64_t now = pm_rec_now_ns();

			poll_drop_ended(fds, fds_len);
			if (last)
				pm_perf_disable(session->perf);
			error = drain(session, last, err);
			if (error == 0 && now - flushed_ns >= FLUSH_NS) {
				error = pm_file_writer_flush(session->writer);
				flushed_ns = now;
			}
			if (error < 0) {
				pm_perf_disable(session->perf);
				if (child->running)
					pm_rec_say_stopped(err, error);
			}
			recording = error == 0 && !last;
			session->end_ns = now;
		} else if (ready == 0 && !said) {
			pm_rec_say_waiting(session, error < 0);
			said = true;
		}
	}
	return error;
}

/* Who reads the report shall not look for debug symbols. */
static void note_nameless(struct pm_rec_session *session, const char *why)
{
	char text[64];

	snprintf(text, sizeof(text), "names were left out (%s)", why);
	pm_file_write_note(session->writer, &(struct pm_file_note){ .text = text });
}

/* Completes the file. */
static int finish(struct pm_rec_session *session, struct pm_error *err)
{
	int ret = 0;

	pm_rec_summary_count_lost(session);
	if (!session->options->symbols)
		note_nameless(session, "--no-symbols");
	else if (session->child.interrupts < 2)
		ret = pm_rec_jit_finish(session->jit);
	if (ret == 0 && session->options->symbols && session->child.interrupts < 2)
		ret = pm_rec_symbols_write(session);
	if (session->options->symbols && session->child.interrupts > 1)
		note_nameless(session, "stopped twice");
	pm_rec_summary_warn(session);
	pm_rec_fields_tell(session->fields, session);
	if (ret == 0)
		ret = pm_rec_summary_footer(session);
	if (ret == 0)
		ret = pm_file_writer_flush(session->writer);
	session->bytes = pm_file_writer_bytes(session->writer);
	if (ret == -ENOMEM)
		return pm_error_set(err, ret, "out of memory");
	return ret;
}

/* What was wrong with the file is known to the writer; anything else is in @err already. */
static int close_output(struct pm_rec_session *session, int error, struct pm_error *err)
{
	struct pm_error file_err = { 0 }, raw_err = { 0 };
	int ret = pm_file_writer_close(PM_TAKE_PTR(session->writer), &file_err);
	int raw_ret = pm_rec_raw_close(PM_TAKE_PTR(session->raw), error == 0, &raw_err);

	if (ret < 0 || raw_ret < 0) {
		*err = ret < 0 ? file_err : raw_err;
		return ret < 0 ? ret : raw_ret;
	}
	if (error < 0 && err->code == 0)
		pm_error_set(err, error, "%s", strerror(-error));
	return error;
}

static int fail(const struct pm_error *err, int status)
{
	pm_error_print(err, "pmrec", stderr);
	return status;
}

/* The command could not be executed, or, in a race, only now. No file stays behind. */
static int launch_failed(struct pm_rec_session *session, int error, struct pm_error *err)
{
	if (session->writer)
		remove_output(session);
	if (error == 0) {
		kill(session->child.launch.pid, SIGKILL);
		error = pm_error_set(err, -EAGAIN, "%s appeared just now",
				     session->options->command[0]);
	}
	return fail(err, error == -ENOENT ? PM_REC_STATUS_NOT_FOUND
					  : PM_REC_STATUS_CANNOT_RUN);
}

static int run(struct pm_rec_session *session)
{
	const struct pm_rec_options *options = session->options;
	struct pm_rec_child *child = &session->child;
	struct pm_error err = { 0 };
	bool runnable = is_runnable(options->command[0]);
	int ret = pm_rec_child_prepare(
		child, options->command,
		strcmp(options->output, "-") == 0 ||
			(options->raw && strcmp(options->raw, "-") == 0),
		&err);

	if (ret == 0)
		ret = pm_rec_child_catch_signals(child, &err);
	pm_rec_modules_raise_limit(&session->modules);
	/* A mistyped command shall not cost the user the file of the run before. */
	if (ret == 0 && !runnable)
		return launch_failed(session, pm_launch_go(&child->launch, &err), &err);
	if (ret == 0)
		ret = pm_rec_engine_open(session, &err);
	if (ret == 0)
		ret = open_output(session, &err);
	if (ret < 0)
		return fail(&err, PM_REC_STATUS_FAILED);
	if (options->verbose && !options->quiet)
		pm_rec_engine_print(session);
	pm_rec_coverage_begin(session);
	session->begin_ns = session->end_ns = pm_rec_now_ns();
	child->running = true;
	ret = session->ptrace ? pm_rec_ptrace_go(session, &err)
			      : pm_launch_go(&child->launch, &err);
	if (ret < 0)
		return launch_failed(session, ret, &err);
	ret = session->ptrace ? pm_rec_ptrace_record(session, &err)
			      : record(session, &err);
	if (ret == 0)
		ret = finish(session, &err);
	ret = close_output(session, ret, &err);
	if (ret < 0)
		return fail(&err, PM_REC_STATUS_FAILED);
	pm_rec_summary_print(session);
	return child->status_known ? pm_exit_status(child->status) : PM_REC_STATUS_FAILED;
}

int pm_rec_session_run(const struct pm_rec_options *options)
{
	struct pm_rec_session session = {
		.options = options,
		.child = { .launch = { .pidfd = -1, .go_fd = -1, .error_fd = -1 },
			   .signal_fd = -1 },
		.procs = pm_procs_new(pm_rec_space_free),
	};
	int status = PM_REC_STATUS_FAILED;

	pm_rec_modules_init(&session.modules);
	if (session.procs) {
		status = run(&session);
	} else {
		struct pm_error err = { 0 };

		pm_error_set(&err, -ENOMEM, "out of memory");
		pm_error_print(&err, "pmrec", stderr);
	}
	pm_rec_chains_free(session.chains);
	pm_rec_jit_free(session.jit);
	pm_rec_fields_free(session.fields);
	pm_file_writer_close(session.writer, NULL);
	pm_rec_raw_close(session.raw, false, NULL);
	pm_perf_free(session.perf);
	pm_rec_ptrace_free(session.ptrace);
	pm_rec_child_release(&session.child);
	pm_rec_threads_release(&session.threads);
	pm_rec_modules_release(&session.modules);
	pm_procs_free(session.procs);
	free(session.counts.events);
	return status;
}

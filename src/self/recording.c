/* SPDX-License-Identifier: MIT */
#include "recording.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>
#include <time.h>

#include "pm/chain-spaces.h"
#include "pm/run.h"
#include "clock.h"
#include "recording-internal.h"
#include "table.h"

enum {
	TABLE_ROWS = 30, /* of the table on stderr; in a file, the table has all rows */
};

static void recording_add_note(void *user, const char *text)
{
	pm_self_note(user, text);
}

/* ---- opening ------------------------------------------------------------------------------ */

/* Whether another engine may be tried. Perf events need a descriptor for each thread and
 * CPU, timers none. */
static bool is_refusal(int code)
{
	return code == -EPERM || code == -EACCES || code == -ENOSYS || code == -EMFILE ||
	       code == -ENFILE;
}

static int open_engine(struct pm_self_recording *recording, struct pm_error *err)
{
	enum pmself_engine engine = recording->settings->engine;
	struct pm_error timer_err = { 0 };
	int ret;

	if (engine == PMSELF_ENGINE_TIMER)
		return pm_self_engine_timer.open(&recording->engine, recording->settings,
						 gettid(), err);
	ret = pm_self_engine_perf.open(&recording->engine, recording->settings, gettid(),
				       err);
	if (engine == PMSELF_ENGINE_PERF || !is_refusal(ret) ||
	    pm_self_engine_timer.open(&recording->engine, recording->settings, gettid(),
				      &timer_err) < 0)
		return ret;
	recording->refused = *err;
	*err = (struct pm_error){ 0 };
	return 0;
}

/* If sampling fell back to timers, which miss more samples, adds a note that says so. */
static void note_refusal(struct pm_self_recording *recording)
{
	char text[PM_ERROR_TEXT_MAX + 64];

	if (recording->refused.code == 0)
		return;
	snprintf(text, sizeof(text), "sampled by timers, not by the kernel: %s",
		 recording->refused.text);
	pm_self_note(recording, text);
}

/* pm_file_tee_fn */
static int on_written(void *user, const struct pm_file_record *record)
{
	struct pm_self_recording *recording = user;

	return pm_profile_stream_add(recording->profile, record, NULL);
}

static int open_writer(struct pm_self_recording *recording, struct pm_error *err)
{
	int ret = pm_profile_stream_new(&recording->profile, NULL, err);

	if (ret == 0)
		ret = pm_file_check_replaceable(recording->settings->output, err);
	if (ret == 0)
		ret = pm_file_writer_open(&recording->writer, recording->settings->output,
					  err);
	if (ret == 0)
		pm_file_writer_tee(recording->writer, on_written, recording);
	return ret;
}

static int open_chains(struct pm_self_recording *recording)
{
	struct pm_chain_source source = {
		.procs = recording->procs,
		.modules = &recording->modules,
		.writer = recording->writer,
		.call_graph = recording->settings->call_graph == PMSELF_CALL_GRAPH_NONE
				      ? PM_CALL_GRAPH_NONE
				      : PM_CALL_GRAPH_DWARF,
		.stitch = true,
		.look = true,
	};

	recording->jit = pm_chain_jit_new(
		&(struct pm_chain_jit_source){ .procs = recording->procs,
					       .modules = &recording->modules,
					       .writer = recording->writer,
					       .symbols = true,
					       .warn = recording_add_note,
					       .user = recording });
	source.jit = recording->jit;
	if (recording->jit)
		recording->chains = pm_chains_new(&source);
	else
		recording->chains = NULL;
	if (!recording->chains)
		return -ENOMEM;
	return 0;
}

static struct pm_chain_tasks chain_tasks_of(struct pm_self_recording *recording)
{
	return (struct pm_chain_tasks){ .procs = recording->procs,
					.chains = recording->chains,
					.jit = recording->jit,
					.modules = &recording->modules };
}

static int begin_file(struct pm_self_recording *recording, struct pm_error *err)
{
	int ret = pm_self_write_header(recording);

	if (ret == 0)
		ret = pm_file_writer_flush(recording->writer);
	if (ret == 0)
		return 0;
	/* The writer's error is the original one. */
	ret = pm_file_writer_close(PM_TAKE_PTR(recording->writer), err);
	if (ret < 0)
		return ret;
	return pm_error_set(err, -ENOMEM, "out of memory");
}

int pm_self_recording_open(struct pm_self_recording **out,
			   const struct pm_self_settings *settings, struct pm_error *err)
{
	struct pm_self_recording *recording = calloc(1, sizeof(*recording));
	int ret = 0;

	if (!recording)
		return pm_error_set(err, -ENOMEM, "out of memory");
	recording->settings = settings;
	recording->pid = getpid();
	recording->procs = pm_procs_new(pm_chain_space_free);
	pm_chain_modules_init(&recording->modules);
	recording->modules.fds_max = PM_SELF_FILES_MAX;
	if (!recording->procs)
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	if (ret == 0)
		ret = open_engine(recording, err);
	if (ret == 0)
		ret = open_writer(recording, err);
	if (ret == 0 && open_chains(recording) < 0)
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	if (ret == 0)
		ret = begin_file(recording, err);
	if (ret < 0) {
		pm_self_recording_free(recording);
		return ret;
	}
	*out = recording;
	return 0;
}

void pm_self_recording_free(struct pm_self_recording *recording)
{
	if (!recording)
		return;
	pm_chains_free(recording->chains);
	pm_chain_jit_free(recording->jit);
	pm_file_writer_close(recording->writer, NULL);
	pm_profile_stream_free(recording->profile);
	if (recording->engine)
		recording->engine->type->free(recording->engine);
	pm_chain_threads_release(&recording->threads);
	pm_chain_modules_release(&recording->modules);
	pm_self_changes_release(&recording->changes);
	pm_procs_free(recording->procs);
	free(recording);
}

const struct pm_self_engine *pm_self_recording_engine(
	const struct pm_self_recording *recording)
{
	return recording->engine;
}

static int read_mappings(struct pm_self_recording *recording, struct pm_error *err)
{
	int ret = pm_self_changes_begin(&recording->changes, recording->procs,
					recording->pid);

	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	return 0;
}

int pm_self_recording_begin(struct pm_self_recording *recording, struct pm_error *err)
{
	bool told = recording->engine->type->tells_mappings;
	int ret = 0;

	recording->begin_ns = pm_now_ns();
	recording->begin_cpu_ns = pm_self_cpu_ns();
	/* Read the mappings before the first sample, so that changes are noticed. But if
	 * records report mappings, read them after the events are enabled, so that none
	 * is missed in between. */
	if (!told)
		ret = read_mappings(recording, err);
	if (ret == 0)
		ret = recording->engine->type->begin(recording->engine, err);
	if (ret == 0 && told)
		return read_mappings(recording, err);
	return ret;
}

/* ---- what is sampled ---------------------------------------------------------------------- */

static int recording_add_sample(struct pm_self_recording *recording,
				const struct pm_record *record)
{
	struct pm_chain_tasks tasks = chain_tasks_of(recording);
	uint64_t period = PM_MIN(record->sample.period, INT64_MAX);
	struct pm_chain_names names;
	struct pm_chain chain;
	int ret = pm_self_changes_at(&recording->changes, record->time);

	if (ret == 0)
		ret = pm_chains_add(recording->chains, record, &chain);
	if (ret == 0)
		ret = pm_chain_tasks_names(&tasks, record, &names);
	if (ret == 0)
		ret = pm_chain_threads_name(&recording->threads, recording->writer,
					    record->pid, record->tid, &names,
					    record->time);
	if (ret < 0)
		return ret;
	recording->samples++;
	recording->stops[chain.stop]++;
	recording->truncated += chain.stop == PM_UNW_STOP_TRUNCATED || chain.stitched;
	recording->stitched += chain.stitched;
	if (period > INT64_MAX - recording->period)
		recording->period = INT64_MAX;
	else
		recording->period += period;
	return pm_file_write_sample(
		recording->writer,
		&(struct pm_file_sample){
			.time = record->time,
			.pid = record->pid,
			.tid = record->tid,
			.cpu = record->cpu,
			.period = period,
			.stack = chain.stack,
			.stop = chain.stop == PM_UNW_STOP_ROOT
					? NULL
					: pm_chain_stop_name(chain.stop) });
}

/* pm_self_take.record */
static int on_record(void *user, const struct pm_record *record)
{
	struct pm_self_recording *recording = user;
	struct pm_chain_tasks tasks = chain_tasks_of(recording);

	switch (record->type) {
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		recording->lost += record->lost;
		return pm_file_write_lost(
			recording->writer,
			&(struct pm_file_lost){ .time = record->time,
						.cpu = record->cpu,
						.count = record->lost });
	case PERF_RECORD_THROTTLE:
		recording->throttled++;
		return 0;
	default:
		break;
	}
	/* Ignore records of forked children. */
	if (record->pid != (uint32_t)recording->pid)
		return 0;
	/* Ignore threads that were created by the only sampled thread. */
	if (record->type == PERF_RECORD_FORK && recording->settings->tid)
		return 0;
	if (record->type == PERF_RECORD_SAMPLE)
		return recording_add_sample(recording, record);
	return pm_chain_tasks_record(&tasks, record);
}

/* pm_self_take.mappings */
static int on_mappings(void *user, bool whole, uint64_t *until)
{
	struct pm_self_recording *recording = user;

	return pm_self_changes_look(&recording->changes, whole, until);
}

static int recording_drain(struct pm_self_recording *recording, bool final,
			   struct pm_error *err)
{
	const struct pm_self_take take = { .record = on_record,
					   .mappings = on_mappings,
					   .user = recording };
	int ret = recording->engine->type->drain(recording->engine, final, &take, err);

	if (ret == 0)
		ret = pm_file_writer_flush(recording->writer);
	return ret;
}

/* An error is reported at the end. Until then, the program continues, and the stopped
 * rings cost it nothing. */
int pm_self_recording_drain(struct pm_self_recording *recording, struct pm_error *err)
{
	int ret = recording_drain(recording, false, err);

	if (ret < 0) {
		recording->engine->type->end(recording->engine);
		if (err->code == 0)
			pm_error_set(err, ret, "%s", strerror(-ret));
		recording->failed = *err;
	}
	return ret;
}

/* ---- the end ------------------------------------------------------------------------------ */

/* Notes libraries that were loaded and unloaded between two checks: their code may have
 * been at addresses where other code is now, and gets the names of that code. */
static void note_hidden(struct pm_self_recording *recording)
{
	char text[160];

	if (recording->changes.hidden == 0)
		return;
	snprintf(text, sizeof(text),
		 "libraries that were loaded and unloaded too fast to be seen: %" PRIu64
		 "; their ticks may have other names",
		 recording->changes.hidden);
	pm_self_note(recording, text);
}

static int recording_complete(struct pm_self_recording *recording, uint64_t end_ns,
			      struct pm_error *err)
{
	const struct pm_self_tell tell = { .note = recording_add_note,
					   .user = recording };
	int ret = recording_drain(recording, true, err);

	if (ret == 0)
		ret = pm_chain_jit_finish(recording->jit, PM_CHAIN_JIT_END_NS);
	if (ret == 0)
		ret = pm_self_write_names(recording);
	note_refusal(recording);
	note_hidden(recording);
	recording->engine->type->tell(recording->engine, &tell);
	if (ret == 0)
		ret = pm_self_write_footer(recording, end_ns);
	return ret;
}

static int save_text(const char *path, const char *text, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = open(
		path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		0666);
	size_t len = strlen(text);
	int ret = 0;

	if (fd < 0)
		ret = errno;
	while (ret == 0 && len > 0) {
		ssize_t n = write(fd, text, len);

		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			if (n == 0)
				ret = EIO;
			else
				ret = errno;
		}
	}
	if (ret == 0)
		return 0;
	pm_error_set(err, -ret, "the table cannot be written: %s", strerror(ret));
	pm_error_where(err, path, -1);
	return -ret;
}

/* Returns the table as a string, or writes it to the requested file. */
static int show_table(struct pm_self_recording *recording, bool whole, char **table,
		      struct pm_error *err)
{
	const char *path = recording->settings->table;
	struct pm_self_table_options options = { .whole = whole };
	PM_AUTO_FREE char *text = NULL;
	int ret;

	/* A table in a file is for later use, and has all rows without truncation. */
	if (!path) {
		options.rows = TABLE_ROWS;
		options.width = pm_sink_width(STDERR_FILENO);
	}
	/* Most programs that a shell starts end before their first tick. */
	if ((path && !path[0]) ||
	    (!path && recording->settings->automatic && recording->samples == 0))
		return 0;
	ret = pm_self_table(recording->profile, recording->engine, &options, &text, err);
	if (ret < 0)
		return ret;
	if (!path) {
		*table = PM_TAKE_PTR(text);
		return 0;
	}
	return save_text(path, text, err);
}

int pm_self_recording_finish(struct pm_self_recording *recording, char **table,
			     struct pm_error *err)
{
	struct pm_error file_err = { 0 }, table_err = { 0 };
	uint64_t end_ns = pm_now_ns();
	int ret, file, shown;

	recording->engine->type->end(recording->engine);
	ret = recording->failed.code;
	if (ret < 0)
		*err = recording->failed;
	else
		ret = recording_complete(recording, end_ns, err);
	if (ret < 0 && err->code == 0)
		pm_error_set(err, ret, "%s", strerror(-ret));
	shown = show_table(recording, ret == 0, table, &table_err);
	/* The writer's message has the most detail about why writing failed. */
	file = pm_file_writer_close(PM_TAKE_PTR(recording->writer), &file_err);
	if (file < 0)
		*err = file_err;
	else if (ret == 0 && shown < 0)
		*err = table_err;
	if (file < 0)
		return file;
	if (ret < 0)
		return ret;
	return shown;
}

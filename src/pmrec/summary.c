/* SPDX-License-Identifier: MIT */
#include "summary.h"

#include <inttypes.h>
#include <string.h>

#include "coverage.h"
#include "engine-ptrace.h"
#include "generation.h"
#include "off-cpu.h"
#include "progress.h"

enum {
	/* If a smaller share of the accounted CPU time was sampled, some was missed. */
	ACCOUNTED_PERCENT = 80,
	STACK_BYTES_SMALL = 4096, /* a tenth of the default */
};
#define MUCH_LOST_PERCENT 10.0
#define ACCOUNTED_FROM_NS 200000000ull /* shorter runs prove nothing */
#define IDLE_NS           20000000ull /* with less CPU time, no samples are expected */

static uint64_t summary_timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

static uint64_t cpu_ns(const struct rusage *usage)
{
	return summary_timeval_ns(&usage->ru_utime) +
	       summary_timeval_ns(&usage->ru_stime);
}

/* Reads the kernel's count of the event. For blocked time the kernel counts switches, and
 * rings that are overwritten keep only the last samples, so neither can be compared. */
static void take_counted(struct pm_rec_session *session, size_t index)
{
	struct pm_rec_event_counts *event = &session->counts.events[index];

	event->counted_known = session->perf && !session->options->overwrite &&
			       !pm_rec_off_cpu_is(session, index) &&
			       pm_perf_counted(session->perf, index, &event->counted,
					       &event->others) == 0 &&
			       event->counted <= INT64_MAX && event->others <= INT64_MAX;
}

void pm_rec_summary_count_lost(struct pm_rec_session *session)
{
	struct pm_rec_counts *counts = &session->counts;
	uint64_t sum = 0;

	for (size_t i = 0; i < counts->events_len; i++) {
		struct pm_rec_event_counts *event = &counts->events[i];

		/* ptrace loses nothing: if a thread is missed, its next period is
		 * longer. */
		event->lost_known = session->ptrace ||
				    (pm_perf_lost(session->perf, i, &event->lost) == 0 &&
				     event->lost <= INT64_MAX);
		sum += event->lost_known ? event->lost : 0;
		take_counted(session, i);
	}
	/* The kernel's count of lost samples is exact if it exists, but the number of
	 * lost records may be higher: it includes others. */
	if (sum > counts->lost)
		counts->lost = sum;
}

/* Returns the number of lost samples. Lost records may also be names and mappings. If the
 * kernel does not report how many were samples, all are counted as samples. */
static uint64_t count_lost_samples(const struct pm_rec_counts *counts)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < counts->events_len; i++) {
		if (!counts->events[i].lost_known)
			return counts->lost;
		sum += counts->events[i].lost;
	}
	if (counts->events_len > 0)
		return sum;
	return counts->lost;
}

static void warn_lost(struct pm_rec_session *session)
{
	const struct pm_rec_counts *counts = &session->counts;
	const struct pm_rec_options *options = session->options;
	uint64_t lost = count_lost_samples(counts);
	double percent =
		lost > 0 ? 100.0 * (double)lost / (double)(lost + counts->samples) : 0;
	char text[320], remedy[64], others[96] = "";

	/* Overwritten buffers are always full; they lose records only while read. */
	if (options->overwrite) {
		snprintf(text, sizeof(text),
			 "%" PRIu64
			 " %s came while a snapshot was written, and are in no file",
			 lost > 0 ? lost : counts->lost,
			 lost > 0 ? "samples" : "records of names, mappings and ends");
		pm_rec_warn(session, text);
		return;
	}
	if (counts->lost > lost)
		snprintf(others, sizeof(others),
			 ", and %" PRIu64 " records of names, mappings and ends",
			 counts->lost - lost);
	/* A buffer of twice the size does not help if samples come much too fast. */
	if (percent < MUCH_LOST_PERCENT)
		snprintf(remedy, sizeof(remedy), "-m %zu%s",
			 2 * pm_perf_ring_pages(session->perf),
			 options->call_graph == PM_CALL_GRAPH_DWARF
				 ? ", or a smaller --stack-bytes"
				 : "");
	else if (options->call_graph == PM_CALL_GRAPH_DWARF &&
		 options->stack_bytes > STACK_BYTES_SMALL)
		snprintf(remedy, sizeof(remedy), "--stack-bytes %d, or a %s",
			 STACK_BYTES_SMALL,
			 options->by_frequency ? "smaller -F, such as -F 999"
					       : "larger -c");
	else
		snprintf(remedy, sizeof(remedy), "a %s",
			 options->by_frequency ? "smaller -F" : "larger -c");
	snprintf(text, sizeof(text),
		 "%" PRIu64
		 " samples were lost (%.1f%%)%s: the buffers were full; try: %s",
		 lost, percent, others, remedy);
	pm_rec_warn(session, text);
}

static void warn_unseen(struct pm_rec_session *session)
{
	uint64_t unseen = session->ptrace ? pm_rec_ptrace_unseen(session->ptrace) : 0;
	char text[160];

	if (unseen == 0)
		return;
	snprintf(text, sizeof(text),
		 "%" PRIu64
		 " times a running thread could not be looked at, for too many "
		 "files are open; try: ulimit -n 4096",
		 unseen);
	pm_rec_warn(session, text);
}

/* Whether every period was given as a number of events: then CPU time does not predict
 * the number of samples. */
static bool is_counted(const struct pm_rec_session *session)
{
	size_t len = 0;
	const struct pm_perf_event *events =
		session->perf ? pm_perf_events(session->perf, &len) : NULL;

	for (size_t i = 0; i < len; i++)
		if (events[i].by_frequency)
			return false;
	return len > 0;
}

/* Explains why there are no samples of counted events. An event may have happened even if
 * the kernel did not count it: on Linux 6.1 the exit of a task does not count for its
 * events. Periods apply to one CPU or one thread, so the sum over all of them cannot be
 * compared with a period. */
static void tell_counted(const struct pm_rec_session *session, char *text, size_t size)
{
	size_t len = 0;
	const struct pm_perf_event *events = pm_perf_events(session->perf, &len);

	for (size_t i = 0; i < len && i < session->counts.events_len; i++) {
		const struct pm_rec_event_counts *counts = &session->counts.events[i];

		if (!counts->counted_known || counts->counted == 0)
			continue;
		snprintf(text, size,
			 "no samples: %.200s was counted %" PRIu64
			 " times, too few for a sample; try: a smaller -c",
			 events[i].actual.name, counts->counted);
		return;
	}
	snprintf(text, size,
		 "no samples: the kernel counted nothing of what was asked for");
}

static void warn_none(struct pm_rec_session *session)
{
	uint64_t cpu = cpu_ns(&session->child.usage);
	char text[320];

	if (is_counted(session))
		tell_counted(session, text, sizeof(text));
	else if (cpu < IDLE_NS)
		snprintf(
			text, sizeof(text),
			"no samples: the command used only %.1f ms of CPU time; try: -F max",
			(double)cpu / 1e6);
	else
		snprintf(
			text, sizeof(text),
			"no samples, though the command used %.2f s of CPU time: the event "
			"did not occur, or the command gained privileges (set-user-ID) and "
			"may be recorded by root only",
			(double)cpu / 1e9);
	pm_rec_warn(session, text);
}

static void warn_none_attached(struct pm_rec_session *session)
{
	const struct pm_targets *targets = &session->targets;
	struct pm_str text = { 0 };

	if (!session->cpu_known)
		pm_str_puts(&text, "no samples: the event did not occur, or what was "
				   "recorded hardly ran");
	else if (session->cpu_ns < IDLE_NS)
		pm_str_printf(
			&text,
			"no samples: what was recorded used only %.1f ms of CPU time",
			(double)session->cpu_ns / 1e6);
	else
		pm_str_printf(&text,
			      "no samples, though what was recorded used %.2f s of CPU "
			      "time: the event did not occur",
			      (double)session->cpu_ns / 1e9);
	if (targets->children_left_out > 0)
		pm_str_printf(&text,
			      "; --only-pid has left out the %zu processes that -p has "
			      "started",
			      targets->children_left_out);
	else if (session->cpu_known && session->cpu_ns < IDLE_NS)
		pm_str_puts(&text, "; try: -F max, or --off-cpu for where it waits");
	if (!text.failed)
		pm_rec_warn(session, text.data);
	pm_str_release(&text);
}

/* Warns of CPU time without samples: the ptrace engine sees threads only at its
 * ticks. */
static void warn_unmet(struct pm_rec_session *session)
{
	uint64_t cpu = cpu_ns(&session->child.usage);
	uint64_t period = session->counts.events[0].period;
	uint64_t waiting = pm_rec_ptrace_waiting(session->ptrace);
	char text[384];

	if (cpu < ACCOUNTED_FROM_NS || period >= cpu / 100 * ACCOUNTED_PERCENT)
		return;
	snprintf(
		text, sizeof(text),
		"the samples stand for %.2f s of %.2f s CPU time: what a thread uses after "
		"its last sample is missed, all of it where the thread ends between two "
		"ticks; and %" PRIu64
		" stops gave no sample, since the thread waited for "
		"a CPU, or may have; try: -F 999",
		(double)period / 1e9, (double)cpu / 1e9, waiting);
	pm_rec_warn(session, text);
}

static const char *unreachable_reason(int error)
{
	bool is_root = geteuid() == 0;

	switch (error) {
	case -EMFILE:
	case -ENFILE:
		return "too many files are open: ulimit -Hn";
	case -ESTALE:
		if (is_root)
			return "replaced since it was mapped";
		return "replaced since it was mapped; root can still read it "
		       "while the process runs";
	case -ENOENT:
		if (is_root)
			return "deleted since it was mapped";
		return "deleted since it was mapped; root can still read it "
		       "while the process runs";
	case -EACCES:
		return "not permitted";
	case -ENXIO:
		return "/proc is not mounted";
	default:
		return strerror(-error);
	}
}

/* Returns why the file of module @id is missing, as a negative errno, or 0 if it is not
 * missing. */
static int missing_reason(const struct pm_chain_modules *modules, uint32_t id)
{
	if (id == PM_FILE_NONE)
		return 0;
	return modules->list.data[id].error;
}

static void warn_missing(struct pm_rec_session *session, int reason)
{
	const struct pm_chain_modules *modules = &session->modules;
	const char *first = NULL;
	struct pm_str text = { 0 };
	size_t files = 0;

	for (size_t i = 0; i < modules->by_file_id.len; i++) {
		uint32_t id = modules->by_file_id.data[i];

		if (missing_reason(modules, id) == reason && files++ == 0)
			first = pm_procs_module(session->procs, id)->identity.path;
	}
	pm_str_puts(&text, first);
	if (files > 1)
		pm_str_printf(&text, " and %zu other files", files - 1);
	pm_str_printf(
		&text,
		" could not be read while recording (%s): no names, and stacks that end "
		"there",
		unreachable_reason(reason));
	if (!text.failed)
		pm_rec_warn(session, text.data);
	pm_str_release(&text);
}

/* Warns of files that could not be read: stacks and names of their functions are missing,
 * and their addresses are offsets. There is one warning for each reason. */
void pm_rec_summary_warn_unreachable(struct pm_rec_session *session)
{
	enum {
		REASONS_MAX = 16, /* more than there are */
	};
	const struct pm_chain_modules *modules = &session->modules;
	int noted[REASONS_MAX];
	size_t len = 0;

	for (size_t i = 0; i < modules->by_file_id.len && len < REASONS_MAX; i++) {
		int reason = missing_reason(modules, modules->by_file_id.data[i]);
		bool is_noted = reason == 0;

		for (size_t j = 0; j < len; j++)
			is_noted |= noted[j] == reason;
		if (is_noted)
			continue;
		noted[len++] = reason;
		warn_missing(session, reason);
	}
}

/* Warns of processes whose stacks take too much work to unwind. */
static void warn_cut(struct pm_rec_session *session)
{
	uint64_t samples = session->counts.stops[PM_UNW_STOP_WORK_LIMIT];
	struct pm_chain_cut cut = { 0 };
	struct pm_str text = { 0 };

	if (session->chains)
		pm_chains_cut(session->chains, &cut);
	if (samples == 0)
		return;
	pm_str_printf(
		&text,
		"%" PRIu64
		" stacks were not unwound to their end, for that takes more work than "
		"one process may ask for",
		samples);
	if (cut.pauses > 0)
		pm_str_printf(&text, "; most are of process %" PRIu32 " (%s)%s",
			      cut.first_pid, cut.first_comm,
			      cut.others ? " and of others" : "");
	if (!text.failed)
		pm_rec_warn(session, text.data);
	pm_str_release(&text);
}

/* Warns of files whose table of call frame information was ready late, or never. */
static void warn_tables(struct pm_rec_session *session)
{
	const struct pm_chain_modules *modules = &session->modules;
	const char *pending = NULL, *too_large = NULL;
	char text[512];

	for (uint32_t id = 0; id < modules->list.len; id++) {
		const struct pm_chain_module *module = &modules->list.data[id];
		struct pm_unw_module_tables tables;
		const char *path;

		if (!module->unwind)
			continue;
		path = pm_procs_module(session->procs, id)->identity.path;
		tables = pm_unw_module_tables(module->unwind);
		if (tables.pending && !pending)
			pending = path;
		if (tables.too_large && !too_large)
			too_large = path;
	}
	if (pending && session->counts.stops[PM_UNW_STOP_TABLE_PENDING] > 0) {
		int error = pm_chain_modules_tables_error(modules);

		snprintf(text, sizeof(text),
			 "%" PRIu64
			 " stacks end in a file whose table for unwinding %s%s%s, such "
			 "as %.256s",
			 session->counts.stops[PM_UNW_STOP_TABLE_PENDING],
			 error ? "was not made, since pmrec could make no thread ("
			       : "was still being made",
			 pm_text_if(error != 0, strerror(-error)),
			 pm_text_if(error != 0, ")"), pending);
		pm_rec_warn(session, text);
	}
	if (too_large && session->counts.stops[PM_UNW_STOP_TABLE_TOO_LARGE] > 0) {
		snprintf(
			text, sizeof(text),
			"%" PRIu64
			" stacks end in a file without an .eh_frame_hdr, for which a table "
			"would take more memory than it may: %.256s",
			session->counts.stops[PM_UNW_STOP_TABLE_TOO_LARGE], too_large);
		pm_rec_warn(session, text);
	}
}

static void warn_clamped(struct pm_rec_session *session)
{
	uint64_t clamped = session->counts.clamped + session->threads.clamped;
	char text[160];

	if (clamped == 0)
		return;
	snprintf(text, sizeof(text),
		 "%" PRIu64
		 " times or periods from the kernel make no sense (above 2^63) "
		 "and were cut to 2^63 - 1",
		 clamped);
	pm_rec_warn(session, text);
}

/* Notes that frames are larger than a stack copy can be. Without this note, the report
 * would recommend larger copies. */
static void note_too_large(struct pm_rec_session *session)
{
	const struct pm_rec_counts *counts = &session->counts;
	uint64_t truncated = counts->stops[PM_UNW_STOP_TRUNCATED];
	char text[192];

	if (counts->too_large * 2 <= truncated || counts->too_large == 0)
		return;
	snprintf(text, sizeof(text),
		 "%" PRIu64 " of %" PRIu64
		 " truncated stacks have a frame beyond what the "
		 "kernel copies: a larger --stack-bytes does not help",
		 counts->too_large, truncated);
	pm_file_write_note(session->writer, &(struct pm_file_note){ .text = text });
}

void pm_rec_summary_warn(struct pm_rec_session *session)
{
	const struct pm_child *child = &session->child;
	bool warned;

	warn_clamped(session);
	warn_cut(session);
	warn_tables(session);
	pm_rec_summary_warn_unreachable(session);
	warn_unseen(session);
	note_too_large(session);
	pm_rec_coverage_warn_slowed(session);
	pm_rec_coverage_warn_stolen(session);
	if (session->counts.lost > 0)
		warn_lost(session);
	warned = pm_rec_coverage_warn_counted(session);
	if (!warned && session->options->attach && session->counts.samples == 0 &&
	    session->counts.lost == 0)
		warn_none_attached(session);
	if (!child->status_known || child->interrupts > 0 || session->options->attach)
		return;
	if (pm_rec_coverage_warn(session) || warned)
		return;
	if (session->counts.samples == 0 && session->counts.lost == 0)
		warn_none(session);
	else if (session->ptrace)
		warn_unmet(session);
}

int pm_rec_summary_footer(struct pm_rec_session *session)
{
	const struct pm_rec_counts *counts = &session->counts;
	const struct pm_child *child = &session->child;
	PM_AUTO_FREE struct pm_file_footer_event *events =
		calloc(counts->events_len + 1, sizeof(*events));
	struct pm_file_count stops[PM_CHAIN_STOP_COUNT];
	pm_rec_clock_cpus clock = { 0 };
	bool attach = session->options->attach;
	struct pm_file_footer footer = {
		.samples = counts->samples,
		.lost = counts->lost,
		.throttled = counts->throttled,
		.truncated = counts->truncated,
		.stitched = counts->stitched,
		.stops = stops,
		.duration_ns = session->end_ns - session->begin_ns,
		.cpu_ns = attach ? session->cpu_ns : cpu_ns(&child->usage),
		/* With --overwrite, the remaining samples may cover only the end of a
		 * long recording. */
		.cpu_known = !session->options->overwrite &&
			     (attach ? session->cpu_known : child->status_known),
		.exited = !attach && child->status_known && WIFEXITED(child->status),
		.signalled = !attach && child->status_known && WIFSIGNALED(child->status),
		.events = events,
		.events_len = counts->events_len,
	};
	int ret;

	if (!events)
		return -ENOMEM;
	for (uint32_t i = 0; i < PM_CHAIN_STOP_COUNT; i++)
		if (counts->stops[i] > 0)
			stops[footer.stops_len++] =
				(struct pm_file_count){ .name = pm_chain_stop_name(i),
							.count = counts->stops[i] };
	for (size_t i = 0; i < counts->events_len; i++)
		events[i] = (struct pm_file_footer_event){
			.samples = counts->events[i].samples,
			.period = counts->events[i].period,
			.lost = counts->events[i].lost,
			.lost_known = counts->events[i].lost_known,
			.counted_known = counts->events[i].counted_known,
			.counted = counts->events[i].counted,
			.others = counts->events[i].others,
		};
	if (footer.exited)
		footer.exit = (uint32_t)WEXITSTATUS(child->status);
	else if (footer.signalled)
		footer.exit = (uint32_t)WTERMSIG(child->status);
	ret = pm_rec_coverage_footer(session, &clock, &footer);
	if (ret == 0)
		ret = pm_file_write_footer(session->writer, &footer);
	pm_vec_release(&clock);
	return ret;
}

/* Appends the number with grouped digits: 3981 → 3,981. */
static void put_grouped(struct pm_str *str, uint64_t value)
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value);

	for (size_t i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			pm_str_putc(str, ',');
		pm_str_putc(str, digits[i]);
	}
}

static void put_bytes(struct pm_str *str, uint64_t bytes)
{
	static const char *const units[] = { "KB", "MB", "GB", "TB" };
	double value = (double)bytes / 1000;
	size_t unit = 0;

	for (; value >= 999.5 && unit + 1 < PM_ARRAY_LEN(units); unit++)
		value /= 1000;
	if (bytes < 1000)
		pm_str_printf(str, "%" PRIu64 " bytes", bytes);
	else
		pm_str_printf(str, value < 9.95 ? "%.1f %s" : "%.0f %s", value,
			      units[unit]);
}

/* Appends "98.9% rooted (6.2% stitched)": the share of stacks that reach the root, and
 * the share that do so because of stitching. Samples in execve(2) may have no stack and
 * do not count. */
static void put_rooted(struct pm_str *str, const struct pm_rec_counts *counts)
{
	double all = (double)(counts->samples - counts->stops[PM_CHAIN_STOP_EXEC]);
	uint64_t stitched = counts->truncated - counts->stops[PM_UNW_STOP_TRUNCATED];

	if (all == 0)
		return;
	pm_str_printf(str, "%.1f%% rooted",
		      100.0 * (double)counts->stops[PM_UNW_STOP_ROOT] / all);
	if (stitched > 0)
		pm_str_printf(str, " (%.1f%% stitched)", 100.0 * (double)stitched / all);
	pm_str_puts(str, ", ");
}

static void print_cost(const struct pm_rec_session *session)
{
	struct pm_unw_stats stats;
	struct rusage own;

	pm_chains_stats(session->chains, &stats);
	stats.frames += session->tables.unwound.frames;
	stats.cache_hits += session->tables.unwound.cache_hits;
	stats.cache_misses += session->tables.unwound.cache_misses;
	stats.expressions += session->tables.unwound.expressions;
	getrusage(RUSAGE_SELF, &own);
	fprintf(stderr,
		"pmrec: own CPU time %.3f s user, %.3f s system; peak memory %ld KB\n"
		"pmrec: unwound %" PRIu64 " frames, %.1f%% of the rules cached, %" PRIu64
		" expressions, tables %zu KB\n",
		(double)summary_timeval_ns(&own.ru_utime) / 1e9,
		(double)summary_timeval_ns(&own.ru_stime) / 1e9, own.ru_maxrss,
		stats.frames,
		stats.cache_hits ? 100.0 * (double)stats.cache_hits /
					   (double)(stats.cache_hits + stats.cache_misses)
				 : 0.0,
		stats.expressions, stats.table_bytes / 1024);
	if (pm_chains_stitch_bytes(session->chains) > 0)
		fprintf(stderr,
			"pmrec: stitched %" PRIu64 " stacks of %" PRIu64
			" that were cut off, from %zu KB\n",
			session->counts.stitched, session->counts.truncated,
			pm_chains_stitch_bytes(session->chains) / 1024);
	for (uint32_t i = 0; i < PM_CHAIN_STOP_COUNT; i++)
		if (session->counts.stops[i] > 0)
			fprintf(stderr, "pmrec: stacks that end with %s: %" PRIu64 "\n",
				pm_chain_stop_name(i), session->counts.stops[i]);
}

/* Estimates how much time sampling cost the program: the number of timer interrupts
 * multiplied by the cost of one on this machine. The cost of events other than clocks is
 * unknown. */
static void print_sampling_cost(const struct pm_rec_session *session)
{
	const struct pm_rec_counts *counts = &session->counts;
	double samples = (double)(counts->samples + counts->lost), cost, cpu;
	bool attach = session->options->attach;
	const struct pm_perf_event *events;
	struct pm_perf_cost one;
	size_t len = 0;

	if (!session->perf || !pm_perf_is_paced(session->perf) || samples == 0 ||
	    session->options->overwrite ||
	    !(attach ? session->cpu_known : session->child.status_known))
		return;
	events = pm_perf_events(session->perf, &len);
	if (len == 0 ||
	    pm_perf_measure_cost(events[0].actual.kernel && !events[0].kernel_dropped,
				 &one) < 0)
		return;
	/* This assumes that lost samples copied as many bytes as the others. */
	cost = samples * one.sample_ns + (double)counts->copied_bytes /
						 (double)(counts->samples + 1) * samples *
						 one.byte_ns;
	cpu = (double)(attach ? session->cpu_ns : cpu_ns(&session->child.usage));
	if (cost >= cpu)
		return;
	fprintf(stderr,
		"pmrec: sampling cost the program %.3f s (%.1f%% of what it had without; "
		"estimated: %.0f samples at %.1f us, %.1f MB of stacks at %.2f ns a byte, "
		"as measured here just now)\n",
		cost / 1e9, 100 * cost / (cpu - cost), samples, one.sample_ns / 1e3,
		(double)counts->copied_bytes / 1e6, one.byte_ns);
}

static void print_tables(const struct pm_rec_session *session)
{
	struct pm_procs_stats stats;

	pm_procs_stats(session->procs, &stats);
	fprintf(stderr,
		"pmrec: tables: frames and stacks %zu KB (%" PRIu64 " and %" PRIu64
		" new generations), threads %zu KB; %zu processes, %zu threads, %zu modules, "
		"%zu mappings, %zu KB\n",
		session->tables.bytes / 1024, session->tables.frames,
		session->tables.stacks, pm_chain_threads_bytes(&session->threads) / 1024,
		stats.processes, stats.threads, stats.modules, stats.maps,
		stats.bytes / 1024);
}

void pm_rec_summary_print(const struct pm_rec_session *session)
{
	const struct pm_rec_options *options = session->options;
	const struct pm_rec_counts *counts = &session->counts;
	bool to_stdout = strcmp(options->output, "-") == 0;
	struct pm_str line = { 0 };

	if (options->quiet)
		return;
	if (options->verbose) {
		print_cost(session);
		print_tables(session);
		print_sampling_cost(session);
		pm_rec_coverage_print(session);
	}
	pm_str_puts(&line, "pmrec: ");
	put_grouped(&line, counts->samples);
	pm_str_puts(&line, counts->samples == 1 ? " sample, " : " samples, ");
	put_grouped(&line, count_lost_samples(counts));
	pm_str_puts(&line, " lost, ");
	if (options->call_graph == PM_CALL_GRAPH_DWARF && counts->samples > 0)
		put_rooted(&line, counts);
	put_bytes(&line, session->bytes);
	if (to_stdout) {
		pm_str_puts(&line, " to standard output");
	} else {
		const char *place = session->place ? session->place : options->output;

		pm_str_puts(&line, " in ");
		pm_str_printable(&line, place, strlen(place));
		if (strcmp(place, options->output) != 0) {
			pm_str_puts(&line, ", for it does not replace the recording in ");
			pm_str_printable(&line, options->output, strlen(options->output));
		}
		if (session->kept_old) {
			pm_str_puts(&line, " (the one before is kept as ");
			pm_str_printable(&line, place, strlen(place));
			pm_str_puts(&line, ".old)");
		}
		pm_str_puts(&line, "; next: pmreport ");
		pm_str_printable(&line, place, strlen(place));
	}
	if (!line.failed)
		fprintf(stderr, "%s\n", line.data);
	pm_str_release(&line);
}

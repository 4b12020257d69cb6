/* SPDX-License-Identifier: MIT */
/* Reservations that the reader should know before trusting a number: the lines that begin
 * with `!`. */
#include "notes.h"

#include <stdarg.h>
#include <string.h>

#include "pm/base-text.h"

enum {
	FEW_SAMPLES = 100,
	NOTES_MAX = 12,
	CULPRITS = 3, /* limit of modules named as the reason for unknown functions */
};
/* The recorder's note if it wrote no names. */
#define NAMELESS_NOTE "names were left out"
#define MUCH_PERCENT  5.0
#define MOST_PERCENT  50.0

void pm_notes_add(struct pm_notes *notes, enum pm_note_level level, const char *format,
		  ...)
{
	char words[1024];
	struct pm_note one = { .level = level };
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	pm_str_printable(&one.words, words, strlen(words));
	if (one.words.failed || pm_vec_push(&notes->notes, one) < 0) {
		pm_str_release(&one.words);
		notes->failed = true;
	}
}

void pm_notes_release(struct pm_notes *notes)
{
	for (size_t i = 0; i < notes->notes.len; i++)
		pm_str_release(&notes->notes.data[i].words);
	pm_vec_release(&notes->notes);
}

static bool profile_has_note(const struct pm_profile *profile, const char *a,
			     const char *b)
{
	for (size_t i = 0; i < profile->notes.len; i++)
		if (strstr(profile->notes.data[i], a) &&
		    strstr(profile->notes.data[i], b))
			return true;
	return false;
}

/* ---- the file ---------------------------------------------------------------------------- */

/* Whether the requested name was resolved, not substituted, such as uprobe:libc:malloc or
 * sched:*. */
static bool is_found(const struct pm_profile_event *event)
{
	const char *colon = strchr(event->requested, ':');

	return colon && strncmp(event->requested, event->actual,
				(size_t)(colon - event->requested) + 1) == 0;
}

static void warn_substituted(struct pm_notes *notes)
{
	const struct pm_profile *profile = notes->report->profile;

	for (size_t i = 0; i < profile->events.len; i++) {
		const struct pm_profile_event *event = &profile->events.data[i];

		if (strcmp(event->requested, event->actual) == 0 ||
		    profile_has_note(profile, event->requested, event->name) ||
		    is_found(event))
			continue;
		/* The heading already shows an alias, or the same event without the
		 * kernel. */
		if (strncmp(event->requested, event->name, strlen(event->name)) == 0)
			continue;
		pm_notes_add(notes, PM_NOTE_WARN,
			     "event %s was not available: %s was used instead",
			     event->requested, event->actual);
	}
}

static enum pm_note_level level_of_share(double percent, double limit)
{
	if (percent > limit)
		return PM_NOTE_BAD;
	return PM_NOTE_WARN;
}

static void add_note_lost(struct pm_notes *notes)
{
	const struct pm_profile_info *info = &notes->report->profile->info;
	double percent;

	/* The recorder's own notes are better: buffers that are overwritten are always
	 * full. */
	if (info->lost == 0 || profile_has_note(notes->report->profile, "lost", "") ||
	    profile_has_note(notes->report->profile, "while a snapshot was written", ""))
		return;
	percent = 100.0 * (double)info->lost /
		  ((double)info->lost + (double)info->read_samples);
	pm_notes_add(
		notes, level_of_share(percent, MUCH_PERCENT),
		"%llu samples were lost (%.1f%%), because the buffers were full; record with "
		"more of them (pmrec -m PAGES), or less often (pmrec -F HZ)",
		(unsigned long long)info->lost, percent);
}

static void warn_signal(struct pm_notes *notes)
{
	const struct pm_profile_info *info = &notes->report->profile->info;
	const char *name = NULL;

	if (!info->signalled)
		return;
	if (info->exit < 128)
		name = sigabbrev_np((int)info->exit);
	if (name)
		pm_notes_add(notes, PM_NOTE_WARN,
			     "the program was ended by signal %u, SIG%s", info->exit,
			     name);
	else
		pm_notes_add(notes, PM_NOTE_WARN, "the program was ended by signal %u",
			     info->exit);
}

void pm_notes_add_file(struct pm_notes *notes)
{
	const struct pm_profile *profile = notes->report->profile;
	const struct pm_profile_info *info = &profile->info;

	warn_substituted(notes);
	for (size_t i = 0; i < profile->notes.len && i < NOTES_MAX; i++) {
		const char *looked_up = "";

		if (info->found > 0 && strstr(profile->notes.data[i], NAMELESS_NOTE))
			looked_up = ", and looked up for this report";
		pm_notes_add(notes, PM_NOTE_WARN, "%s%s", profile->notes.data[i],
			     looked_up);
	}
	if (profile->notes.len > NOTES_MAX)
		pm_notes_add(notes, PM_NOTE_WARN, "%llu more notes are in the file",
			     (unsigned long long)(profile->notes.len - NOTES_MAX +
						  info->notes_left_out));
	if (info->stacks_cut > 0)
		pm_notes_add(notes, PM_NOTE_BAD,
			     "%llu stacks are deeper than %d frames, and no recorder of "
			     "pmrec makes such: of each the frames between the %dth "
			     "and its own are left out",
			     (unsigned long long)info->stacks_cut, PM_PROFILE_DEPTH_MAX,
			     PM_PROFILE_DEPTH_MAX - 1);
	if (info->cut)
		pm_notes_add(
			notes, PM_NOTE_BAD,
			"the file is cut short: the recorder was stopped before it could "
			"finish, or records still. Everything up to there is counted%s",
			info->symbols + info->found == 0
				? "; names of functions, written at the end, are missing"
				: "");
	else if (!info->grows && info->footer_samples != info->read_samples)
		pm_notes_add(notes, PM_NOTE_BAD,
			     "the recorder wrote %llu samples, but the file has %llu",
			     (unsigned long long)info->footer_samples,
			     (unsigned long long)info->read_samples);
	warn_signal(notes);
	add_note_lost(notes);
	/* The recorder's own note is better. */
	if (info->throttled > 0 && !profile_has_note(profile, "paused sampling", ""))
		pm_notes_add(
			notes, PM_NOTE_WARN,
			"the kernel throttled the sampling %llu times: the rate was too high "
			"for this machine; record less often (pmrec -F HZ)",
			(unsigned long long)info->throttled);
}

/* ---- an event ---------------------------------------------------------------------------- */

static void add_note_no_samples(struct pm_notes *notes, const struct pm_section *section)
{
	const struct pm_profile *profile = notes->report->profile;
	const struct pm_profile_info *info = &profile->info;
	const struct pm_profile_event *event =
		&profile->events.data[section->view->event];
	struct pm_str ran = { 0 };

	if (section->view->all.samples > 0) {
		pm_notes_add(notes, PM_NOTE_BAD,
			     "none of the %llu samples passes the filters",
			     (unsigned long long)section->view->all.samples);
		return;
	}
	if (notes->report->time && info->read_samples > 0) {
		pm_notes_add(notes, PM_NOTE_BAD, "no sample of this event in that time");
		return;
	}
	/* The recorder's own note is better, or samples are still to come. */
	if (profile_has_note(profile, "no samples", "") || info->grows)
		return;
	if (info->cpu_known)
		pm_put_duration(&ran, info->cpu_ns);
	else
		pm_put_duration(&ran, info->duration_ns);
	if (event->lost_known && event->lost > 0)
		pm_notes_add(notes, PM_NOTE_BAD, "no samples: all of them were lost");
	else if (event->counted)
		pm_notes_add(notes, PM_NOTE_BAD,
			     "%s did not happen before any sample of its group",
			     event->actual);
	else if (event->by_frequency)
		pm_notes_add(
			notes, PM_NOTE_BAD,
			"no samples: the program ran for %s%s, and %llu samples a second were "
			"asked for; record more often (pmrec -F max), or for longer",
			pm_str_complete_or(&ran, "?"),
			info->cpu_known ? " of CPU time" : "",
			(unsigned long long)event->rate);
	else
		pm_notes_add(
			notes, PM_NOTE_BAD,
			"no samples: %s happened less than %llu times in %s; ask for a smaller "
			"period (pmrec -c N)",
			event->actual, (unsigned long long)event->rate,
			pm_str_complete_or(&ran, "?"));
	pm_str_release(&ran);
}

static const char *stop_in_words(const char *stop)
{
	static const struct {
		const char *stop, *words;
	} known[] = {
		{ "no_module", "the code is in no mapping that is known" },
		{ "no_page",
		  "the kernel could not read their stack: a page was not present" },
		{ "no_cfi", "the code has no unwind information" },
		{ "bad_cfi", "the unwind information is not valid" },
		{ "no_register", "a register that unwinding needs was lost" },
		{ "bad_memory", "unwinding led outside of the stack" },
		{ "no_progress", "unwinding went round in a circle" },
		{ "limit",
		  "the stack has more than 4096 frames, the most that can be recorded" },
		{ "uprobe", "a return probe hides where the function returns to" },
		{ "other_stack",
		  "they are on another stack, which was not copied (Go's runtime, C that "
		  "Go calls, signal handlers and Haskell may have a stack of their own)" },
		{ "work_limit",
		  "to unwind them takes more work than one process may ask for, while the "
		  "samples of others wait" },
		{ "table_pending",
		  "a table for unwinding was still being made of their file" },
		{ "table_too_large",
		  "the table for unwinding would take more memory than one file may ask for" },
		{ "no_regs", "there were no registers to begin with" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(known); i++)
		if (strcmp(known[i].stop, stop) == 0)
			return known[i].words;
	return stop;
}

/* Warns of blocked time without stacks. */
static void warn_stackless(struct pm_notes *notes, double percent)
{
	const char *reason = "it was lost, or the wait began before the recording: "
			     "--threads tells who waited";

	if (profile_has_note(notes->report->profile, "blocked time is told by thread",
			     ""))
		reason = "the kernel may not be sampled: --threads tells who waited; "
			 "for stacks record with sudo pmrec --off-cpu, or after sudo "
			 "sysctl kernel.perf_event_paranoid=1";

	pm_notes_add(notes, level_of_share(percent, MOST_PERCENT),
		     "%.1f%% of the blocked time has no stack, for %s", percent, reason);
}

static void warn_incomplete(struct pm_notes *notes, const struct pm_section *section)
{
	const struct pm_profile *profile = notes->report->profile;
	const struct pm_view *view = section->view;
	enum {
		STACK_MAX = 65528 /* perf_event_open(2): largest copy */
	};

	for (size_t i = 1; i < profile->stops.len; i++) {
		const char *stop = profile->stops.data[i];
		double percent = pm_weight_percent(&view->stops[i], &view->total);

		if (percent <= MUCH_PERCENT || !pm_stop_is_incomplete(stop))
			continue;
		if (strcmp(stop, "not_sampled") == 0)
			warn_stackless(notes, percent);
		else if (strcmp(stop, "truncated") != 0)
			pm_notes_add(notes, level_of_share(percent, MOST_PERCENT),
				     "%.1f%% of the stacks lack callers: %s", percent,
				     stop_in_words(stop));
		else if (profile_has_note(profile, "a larger --stack-bytes does not help",
					  ""))
			pm_notes_add(
				notes, level_of_share(percent, MOST_PERCENT),
				"%.1f%% of the stacks are cut off at frames that are too large for "
				"any copy (at most %d bytes): their outer callers are missing",
				percent, STACK_MAX);
		else if (profile->info.stack_bytes < STACK_MAX)
			pm_notes_add(
				notes, level_of_share(percent, MOST_PERCENT),
				"%.1f%% of the stacks are cut off after %u bytes; record with "
				"pmrec --stack-bytes %d",
				percent, profile->info.stack_bytes, STACK_MAX);
		else
			pm_notes_add(
				notes, level_of_share(percent, MOST_PERCENT),
				"%.1f%% of the stacks are deeper than the %u bytes that %s: "
				"their outer callers are missing",
				percent, profile->info.stack_bytes,
				profile_has_note(profile, "(ptrace)", "")
					? "were copied first, before copies grew"
					: "the kernel copies");
	}
}

/* Returns a command line that makes a program report the code that it generates. */
static const char *jit_command(const struct pm_profile *profile)
{
	static const struct {
		const char *program, *command;
	} known[] = {
		{ "node", "node --perf-basic-prof" },
		{ "java", "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions "
			  "-XX:+DumpPerfMapAtExit" },
		{ "python", "python3 -X perf (from 3.12 on)" },
	};
	const char *command = profile->command.len > 0 ? profile->command.data[0] : "";
	const char *base = strrchr(command, '/');

	if (base)
		base++;
	else
		base = command;
	for (size_t i = 0; i < PM_ARRAY_LEN(known); i++)
		if (strncmp(base, known[i].program, strlen(known[i].program)) == 0)
			return known[i].command;
	return "node --perf-basic-prof, java -XX:+UnlockDiagnosticVMOptions "
	       "-XX:+DumpPerfMapAtExit, python3 -X perf, or what writes "
	       "/tmp/perf-PID.map";
}

static void put_culprit(struct pm_str *str, const struct pm_profile *profile,
			const struct pm_row *row, const struct pm_weight *whole)
{
	uint32_t id = profile->functions.data[row->id].module;
	const struct pm_profile_module *module;

	pm_str_separate(str, "; ");
	pm_str_printf(str, "%.1f%% ", pm_weight_percent(&row->self, whole));
	if (id == PM_PROFILE_NONE) {
		if (strcmp(profile->functions.data[row->id].name, PM_NO_STACK) == 0)
			pm_str_puts(str, "without a stack");
		else
			pm_str_puts(str, "in memory of no file");
		return;
	}
	module = &profile->modules.data[id];
	pm_str_printf(str, "in %s ", module->name);
	if (profile_has_note(profile, NAMELESS_NOTE, ""))
		pm_str_printf(str,
			      "(not found where this report was made; build-id %.16s)",
			      pm_text_or(module->build_id, "unknown"));
	else if (module->kernel)
		pm_str_puts(str, "(kernel addresses are hidden: sysctl "
				 "kernel.kptr_restrict=0 and record as root)");
	else if (strcmp(module->kind, "jit") == 0 || strcmp(module->kind, "anon") == 0)
		pm_str_printf(str,
			      "(code made while running, and not told of by who made it; "
			      "record %s)",
			      jit_command(profile));
	else {
		/* The file was searched for when the report was made, unless that was
		 * disabled. */
		if (profile->info.cut)
			pm_str_puts(str, "(the recording was cut before its names, and "
					 "none were found here; ");
		else
			pm_str_puts(str, "(stripped; ");
		pm_str_printf(str, "build-id %.16s)",
			      pm_text_or(module->build_id, "unknown"));
	}
}

/* Returns a way to get the names of functions in @module; NULL if there is none, or if
 * put_culprit() has added it. */
static const char *name_remedy(const struct pm_profile *profile, uint32_t id)
{
	const struct pm_profile_module *module;

	if (id == PM_PROFILE_NONE)
		return NULL;
	module = &profile->modules.data[id];
	if (module->kernel || strcmp(module->kind, "jit") == 0 ||
	    strcmp(module->kind, "anon") == 0)
		return NULL;
	if (profile->info.cut || profile_has_note(profile, NAMELESS_NOTE, ""))
		return "try: --symfs DIR, with its files below, or --debuginfod";
	return "try: its -dbgsym package, an unstripped copy of it (--symfs DIR), "
	       "--debuginfod, or --by address";
}

/* Whether the stop reason is that of blocked time without stacks, which is among the
 * reasons for missing callers. */
static bool stop_gives_reason(const struct pm_profile *profile, uint32_t event,
			      uint32_t id)
{
	return pm_profile_is_blocked_time(&profile->events.data[event]) &&
	       strcmp(profile->functions.data[id].name, PM_NO_STACK) == 0;
}

static int compare_row_weights(const void *left, const void *right)
{
	const struct pm_row *a = left, *b = right;

	if (a->self.period != b->self.period)
		return PM_COMPARE(b->self.period, a->self.period);
	return PM_COMPARE(a->id, b->id);
}

/* Sums functions without a name by module; functions without a module follow, one row
 * each. The result is sorted, heaviest first. NULL without memory. */
static struct pm_row *sum_nameless(const struct pm_view *view,
				   const struct pm_table *table, size_t *len)
{
	const struct pm_profile *profile = view->profile;
	size_t modules = profile->modules.len, room = modules + table->rows.len + 1;
	struct pm_row *sums = calloc(room, sizeof(*sums));

	*len = modules;
	for (size_t i = 0; sums && i < table->rows.len; i++) {
		const struct pm_row *row = &table->rows.data[i];
		const struct pm_profile_function *function =
			&profile->functions.data[row->id];
		struct pm_row *sum;

		if (!function->unknown ||
		    stop_gives_reason(profile, view->event, row->id))
			continue;
		sum = &sums[function->module == PM_PROFILE_NONE ? (*len)++
								: function->module];
		sum->id = row->id;
		pm_weight_add(&sum->self, &row->self);
	}
	if (sums)
		qsort(sums, *len, sizeof(*sums), compare_row_weights);
	return sums;
}

static void warn_unknown(struct pm_notes *notes, struct pm_section *section)
{
	const struct pm_profile *profile = notes->report->profile;
	const struct pm_view *view = section->view;
	double percent = pm_weight_percent(&view->unknown, &view->total);
	PM_AUTO_FREE struct pm_row *sums = NULL;
	const struct pm_table *table;
	struct pm_str culprits = { 0 };
	const char *help = NULL;
	size_t len = 0;

	if (percent <= MUCH_PERCENT)
		return;
	/* The reason why there are no names at all was already given. */
	if (profile->info.symbols + profile->info.found == 0 &&
	    (profile->info.cut || profile_has_note(profile, NAMELESS_NOTE, "")))
		return;
	/* The recorder writes names at the end. */
	if (profile->info.grows && profile->info.symbols == 0)
		return;
	table = pm_section_functions(section);
	if (!table)
		return;
	sums = sum_nameless(view, table, &len);
	for (size_t i = 0; sums && i < len && i < CULPRITS; i++) {
		if (sums[i].self.samples == 0 ||
		    (i > 0 && pm_weight_percent(&sums[i].self, &view->total) < 1.0))
			break;
		put_culprit(&culprits, profile, &sums[i], &view->total);
		if (!help)
			help = name_remedy(profile,
					   profile->functions.data[sums[i].id].module);
	}
	if (help && culprits.len > 0)
		pm_str_printf(&culprits, "; %s", help);
	notes->failed |= !sums;
	if (!culprits.failed && culprits.len > 0)
		pm_notes_add(notes, level_of_share(percent, MOST_PERCENT),
			     "%.1f%% in functions without a name: %s", percent,
			     culprits.data);
	pm_str_release(&culprits);
}

/* Warns if idle time dominates, as it often does in a recording of a whole machine. */
static void warn_idle(struct pm_notes *notes, const struct pm_section *section)
{
	const struct pm_view *view = section->view;
	const struct pm_profile *profile = view->profile;
	struct pm_weight idle = { 0 };
	const char *name = NULL;
	double percent;

	for (size_t i = 0; i < view->cells.len; i++) {
		const struct pm_profile_cell *cell =
			&profile->cells.data[view->cells.data[i]];
		const struct pm_profile_thread *thread =
			&profile->threads.data[cell->thread];

		if (thread->pid != 0)
			continue;
		name = thread->comm;
		pm_weight_add(&idle, &cell->weight);
	}
	percent = pm_weight_percent(&idle, &view->total);
	if (name && percent > MUCH_PERCENT)
		pm_notes_add(notes, PM_NOTE_WARN,
			     "%.1f%% is the idle task: --comm '!%s' leaves it out",
			     percent, name);
}

/* Returns half the width of a 95 % interval at a share of one half, the worst case: 1.96
 * / (2 √n). */
static double points_of_doubt(uint64_t samples)
{
	double n = (double)samples, root = n;

	for (int i = 0; i < 20; i++)
		root = (root + n / root) / 2;
	if (root > 2)
		return 98.0 / root;
	return 50;
}

void pm_notes_add_event(struct pm_notes *notes, struct pm_section *section)
{
	const struct pm_view *view = section->view;
	const struct pm_profile_event *event =
		&notes->report->profile->events.data[view->event];

	if (view->total.samples == 0) {
		add_note_no_samples(notes, section);
		return;
	}
	/* If every event was recorded, there is no sampling error; the same holds if the
	 * weight is another quantity, such as blocked time. */
	if (view->total.samples < FEW_SAMPLES &&
	    (event->by_frequency || event->rate != 1) &&
	    view->total.period != view->total.samples)
		pm_notes_add(
			notes, PM_NOTE_WARN,
			"only %llu sample%s: percentages are good to about %s%.0f points; record "
			"for longer or more often (pmrec -F HZ)",
			(unsigned long long)view->total.samples,
			pm_plural_s(view->total.samples),
			notes->report->ascii ? "+-" : "±",
			points_of_doubt(view->total.samples));
	if (view->profile->latency && !event->divided)
		pm_notes_add(
			notes, PM_NOTE_WARN,
			"%s is not sampled by time: no shares of wall-clock time, but of all "
			"that was counted",
			event->actual);
	warn_idle(notes, section);
	warn_incomplete(notes, section);
	warn_unknown(notes, section);
}

/* ---- lines of text ------------------------------------------------------------------------- */

static void print_notes(const struct pm_text *text, struct pm_notes *notes)
{
	for (size_t i = 0; i < notes->notes.len; i++)
		if (notes->notes.data[i].words.len > 0)
			pm_text_wrap(text, PM_COLOR_WARNING, "! ", 2, 1,
				     notes->notes.data[i].words.data);
	pm_notes_release(notes);
}

void pm_text_file_warnings(const struct pm_text *text)
{
	struct pm_notes notes = { .report = text->report };

	pm_notes_add_file(&notes);
	print_notes(text, &notes);
}

void pm_text_event_warnings(const struct pm_text *text, struct pm_section *section)
{
	struct pm_notes notes = { .report = text->report };

	pm_notes_add_event(&notes, section);
	print_notes(text, &notes);
}

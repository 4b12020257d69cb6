/* SPDX-License-Identifier: MIT */
/* The report for people: heading, warnings, data, and hints for the next command. */
#include "notes.h"
#include "sheet.h"

#include <string.h>

enum {
	HINT_ROWS = 10,
	HINT_NAME_MAX = 40, /* longer names are not useful on a command line */
};
#define HINT_PERCENT 0.5 /* smaller functions are not worth a hint */

/* ---- the heading ------------------------------------------------------------------------ */

static void put_shell_command(struct pm_str *str, const struct pm_profile *profile)
{
	for (size_t i = 0; i < profile->command.len; i++) {
		if (i > 0)
			pm_str_putc(str, ' ');
		pm_put_shell(str, profile->command.data[i]);
	}
	if (profile->command.len > 0)
		return;
	if (profile->target) {
		pm_str_puts(str, "pmrec ");
		pm_str_printable(str, profile->target, strlen(profile->target));
	} else {
		pm_str_puts(str, "(no command)");
	}
}

static void put_counted_noun(struct pm_str *str, uint64_t count, const char *one,
			     const char *many)
{
	pm_put_count(str, count);
	pm_str_printf(str, " %s", pm_plural(count, one, many));
}

static void put_run_times(struct pm_str *str, const struct pm_profile_info *info)
{
	pm_put_duration(str, info->duration_ns);
	pm_str_puts(str, info->cut ? " until the last sample  " : " wall  ");
	if (info->cpu_known) {
		pm_put_duration(str, info->cpu_ns);
		pm_str_puts(str, " CPU");
		if (info->duration_ns > 0)
			pm_str_printf(str, " (%.2f cores)",
				      (double)info->cpu_ns / (double)info->duration_ns);
	} else {
		pm_str_puts(str, "CPU time unknown");
	}
	pm_str_puts(str, "  ");
	if (info->processes > 1) {
		put_counted_noun(str, info->processes, "process", "processes");
		pm_str_puts(str, "  ");
	}
	put_counted_noun(str, info->threads, "thread", "threads");
	if (info->exited && info->exit != 0)
		pm_str_printf(str, "  exit %u", info->exit);
}

void pm_text_heading(const struct pm_text *text)
{
	const struct pm_report *report = text->report;
	const struct pm_profile_info *info = &report->profile->info;
	struct pm_str command = { 0 }, run = { 0 }, shown = { 0 };
	size_t width = report->width;

	put_shell_command(&command, report->profile);
	put_run_times(&run, info);
	if (!command.failed && !run.failed) {
		struct pm_str pid = { 0 };

		if (info->pid > 0 && !report->profile->target)
			pm_str_printf(&pid, " (pid %u)", info->pid);
		/* On one line if it fits; otherwise the command has a line of its own. */
		pm_put_cut(&shown, command.data,
			   width > pid.len ? width - pid.len : width, false,
			   report->ascii);
		pm_text_put(text, PM_COLOR_HEAD, pm_str_text(&shown));
		fputs(pm_str_text(&pid), text->to);
		if (shown.data &&
		    (width == 0 ||
		     pm_columns(shown.data) + pid.len + 2 + run.len <= width))
			fputs("  ", text->to);
		else
			fputs("\n", text->to);
		fprintf(text->to, "%s\n", run.data);
		pm_str_release(&pid);
	}
	pm_str_release(&command);
	pm_str_release(&run);
	pm_str_release(&shown);
}

static void put_section_event(struct pm_str *str, const struct pm_section *section)
{
	const struct pm_profile_event *event =
		&section->report->profile->events.data[section->view->event];
	struct pm_str name = { 0 };

	pm_put_event(&name, section->report->profile, section->view->event);
	if (event->counted)
		pm_put_count(str, section->view->all.period);
	else
		put_counted_noun(str, section->view->all.samples, "sample of ",
				 "samples of ");
	if (event->counted)
		pm_str_putc(str, ' ');
	if (name.data && !name.failed)
		pm_str_printable(str, name.data, name.len);
	pm_str_release(&name);
	if (event->counted) {
		pm_str_puts(str, " counted at ");
		put_counted_noun(str, section->view->all.samples, "sample", "samples");
	} else if (event->by_frequency) {
		pm_str_puts(str, " @ ");
		pm_put_count(str, event->rate);
		pm_str_puts(str, " Hz");
	} else if (event->rate != 1) {
		pm_str_puts(str, ", one every ");
		pm_put_count(str, event->rate);
	} else if (pm_event_is_time(event)) {
		pm_str_puts(str, ", ");
		pm_put_duration(str, section->view->all.period);
		pm_str_puts(str, " in all");
	}
	if (event->filter) {
		pm_str_puts(str, "   where ");
		pm_str_printable(str, event->filter, strlen(event->filter));
	}
	if (event->leader != section->view->event &&
	    event->leader < section->report->profile->events.len) {
		pm_str_puts(str, event->counted ? " of " : "   grouped with ");
		pm_put_event(str, section->report->profile, event->leader);
	}
	if (event->divided)
		pm_str_puts(str, "   by wall-clock time");
}

static void put_lost_count(struct pm_str *str, const struct pm_section *section)
{
	const struct pm_profile *profile = section->report->profile;
	const struct pm_profile_event *event =
		&profile->events.data[section->view->event];

	pm_str_puts(str, "   lost ");
	if (event->lost_known)
		pm_put_count(str, event->lost);
	else if (profile->events.len == 1)
		pm_put_count(str, profile->info.lost);
	else
		pm_str_puts(str, "unknown");
	if (profile->info.cut)
		pm_str_puts(str, " or more");
}

static struct pm_weight weight_of_stop(const struct pm_section *section, const char *name)
{
	const struct pm_profile *profile = section->report->profile;
	struct pm_weight sum = { 0 };

	for (size_t i = 1; i < profile->stops.len; i++) {
		const char *stop = profile->stops.data[i];

		/* NULL: every reason except truncation. */
		if (name ? strcmp(stop, name) == 0
			 : pm_stop_is_incomplete(stop) && strcmp(stop, "truncated") != 0)
			pm_weight_add(&sum, &section->view->stops[i]);
	}
	return sum;
}

static void put_filter(struct pm_str *str, const struct pm_section *section)
{
	const struct pm_report *report = section->report;
	const struct pm_view *view = section->view;
	const struct pm_filter *filter = report->filter;
	const struct {
		const char *option, *value;
	} parts[] = {
		{ "comm", filter ? filter->comm : NULL },
		{ "pid", filter ? filter->pid : NULL },
		{ "tid", filter ? filter->tid : NULL },
		{ "module", filter ? filter->module : NULL },
		{ "symbol", filter ? filter->symbol : NULL },
	};
	bool filtered = false;

	if (report->time) {
		pm_str_puts(str, "--time ");
		pm_put_cut(str, report->time, 0, false, report->ascii);
		pm_str_puts(str, " (the file has ");
		pm_put_count(str, report->profile->info.read_samples);
		pm_str_puts(str, " samples in all)");
	}
	for (size_t i = 0; i < PM_ARRAY_LEN(parts); i++) {
		if (!parts[i].value)
			continue;
		pm_str_separate(str, "  ");
		pm_str_printf(str, "--%s ", parts[i].option);
		pm_put_cut(str, parts[i].value, 0, false, report->ascii);
		filtered = true;
	}
	if (!filtered)
		return;
	pm_str_puts(str, ": ");
	pm_put_count(str, view->total.samples);
	pm_str_printf(str, " samples, %.1f%% of all",
		      pm_weight_percent(&view->total, &view->all));
}

void pm_put_event_line(struct pm_str *str, const struct pm_section *section)
{
	const struct pm_view *view = section->view;
	struct pm_weight truncated = weight_of_stop(section, "truncated");
	struct pm_weight incomplete = weight_of_stop(section, NULL);
	struct pm_weight exec = weight_of_stop(section, "exec");

	put_section_event(str, section);
	put_lost_count(str, section);
	if (view->total.samples > 0) {
		pm_str_printf(str, "   truncated %.1f%%",
			      pm_weight_percent(&truncated, &view->total));
		if (view->stitched.samples > 0)
			pm_str_printf(str, "   stitched %.1f%%",
				      pm_weight_percent(&view->stitched, &view->total));
		if (incomplete.samples > 0)
			pm_str_printf(str, "   incomplete %.1f%%",
				      pm_weight_percent(&incomplete, &view->total));
		if (exec.samples > 0)
			pm_str_printf(str, "   in execve %.1f%%",
				      pm_weight_percent(&exec, &view->total));
		pm_str_printf(str, "   unknown %.1f%%",
			      pm_weight_percent(&view->unknown, &view->total));
	}
}

void pm_text_event_heading(const struct pm_text *text, const struct pm_section *section)
{
	struct pm_str line = { 0 }, filter = { 0 };

	pm_put_event_line(&line, section);
	if (!line.failed)
		pm_text_wrap(text, PM_COLOR_PLAIN, "", 2, 3, line.data);
	put_filter(&filter, section);
	if (!filter.failed && filter.len > 0)
		pm_text_wrap(text, PM_COLOR_PLAIN, "", 2, 1, filter.data);
	pm_str_release(&line);
	pm_str_release(&filter);
}

/* ---- hints -------------------------------------------------------------------------------- */

/* Adds a command, unless the line is full. */
static void put_hint(struct pm_str *str, const struct pm_report *report,
		     const char *options, const char *function)
{
	struct pm_str hint = { 0 };

	if (str->len == 0) {
		pm_str_puts(&hint, "next: pmreport ");
		if (report->file) {
			pm_put_shell(&hint, report->file);
			pm_str_putc(&hint, ' ');
		}
	} else {
		pm_str_puts(&hint, " | ");
	}
	pm_str_puts(&hint, options);
	if (function)
		pm_put_shell(&hint, function);
	if (hint.failed)
		str->failed = true;
	else if (str->len == 0 || report->width == 0 ||
		 pm_columns(str->data) + pm_columns(hint.data) <= report->width)
		pm_str_printable(str, hint.data, hint.len);
	pm_str_release(&hint);
}

/* Appends the name of the heaviest function that can be identified, as it can be typed;
 * nothing if all are light. Returns false if neither its lines nor its instructions can
 * be shown. */
static bool put_name_to_ask_for(struct pm_str *str, struct pm_section *section)
{
	const struct pm_profile *profile = section->report->profile;
	const struct pm_table *table = pm_section_functions(section);

	for (size_t i = 0; table && i < table->rows.len && i < HINT_ROWS; i++) {
		const struct pm_row *row = &table->rows.data[i];
		const struct pm_profile_function *function =
			&profile->functions.data[row->id];

		if (pm_weight_percent(&row->self, &section->view->total) < HINT_PERCENT)
			break;
		if (function->unknown && function->start == 0)
			continue;
		pm_put_name(str, function->name, HINT_NAME_MAX, section->report->ascii);
		return function->module != PM_PROFILE_NONE &&
		       !profile->modules.data[function->module].kernel;
	}
	return false;
}

/* Whether the heaviest function has no name: then lines are not useful, but addresses
 * are. */
static bool heaviest_is_unknown(struct pm_section *section)
{
	const struct pm_profile *profile = section->report->profile;
	const struct pm_table *table = pm_section_functions(section);

	return table && table->rows.len > 0 &&
	       profile->functions.data[table->rows.data[0].id].unknown;
}

/* Appends the function that waited longest, if it can be identified. */
static void put_waiter(struct pm_str *str, const struct pm_section *section)
{
	const struct pm_profile *profile = section->report->profile;
	PM_CLEANUP(pm_waits_release) struct pm_waits waits = { 0 };

	if (pm_waits_init(&waits, section->view, false) < 0) {
		str->failed = true;
		return;
	}
	for (size_t i = 0; i < waits.rows.len && i < HINT_ROWS; i++) {
		const struct pm_profile_function *function =
			&profile->functions.data[waits.rows.data[i].function];

		if (pm_weight_percent(&waits.rows.data[i].weight, &section->view->total) <
		    HINT_PERCENT)
			return;
		if (function->unknown && function->start == 0)
			continue;
		pm_put_name(str, function->name, HINT_NAME_MAX, section->report->ascii);
		return;
	}
}

/* Appends the hints for blocked time: those about instructions and kernel functions would
 * be useless. Without stacks, only those about threads are useful. */
static void put_waits_hints(struct pm_str *hints, const struct pm_section *section)
{
	const struct pm_report *report = section->report;
	PM_CLEANUP(pm_str_release) struct pm_str waiter = { 0 };

	if (pm_section_is_stackless(section)) {
		if (report->show != PM_SHOW_THREADS)
			put_hint(hints, report, "--threads", NULL);
		put_hint(hints, report, "--by thread", NULL);
		return;
	}
	put_waiter(&waiter, section);
	if (report->show != PM_SHOW_TREE)
		put_hint(hints, report, "--tree", NULL);
	if (!waiter.failed && waiter.len > 0)
		put_hint(hints, report,
			 report->show == PM_SHOW_CALLERS ? "--callees " : "--callers ",
			 waiter.data);
	if (report->show != PM_SHOW_TABLE || report->key == PM_KEY_FUNCTION)
		put_hint(hints, report, "--by line", NULL);
	if (report->show != PM_SHOW_THREADS)
		put_hint(hints, report, "--threads", NULL);
}

static void put_hints(struct pm_str *hints, struct pm_section *section)
{
	const struct pm_report *report = section->report;
	PM_CLEANUP(pm_str_release) struct pm_str asked = { 0 };
	bool annotate =
		put_name_to_ask_for(&asked, section) && report->show != PM_SHOW_ANNOTATE;
	const char *name = NULL;

	if (!asked.failed)
		name = asked.data;
	/* Hints that make the current table easier to read come first. */
	if (section->much_inlined)
		put_hint(hints, report, "--no-inline", NULL);
	else if (section->much_cut)
		put_hint(hints, report, "--width 0", NULL);
	if (report->show != PM_SHOW_TREE)
		put_hint(hints, report, "--tree", NULL);
	else
		put_hint(hints, report, "--bottom-up", NULL);
	if (name && report->show != PM_SHOW_CALLERS)
		put_hint(hints, report, "--callers ", name);
	else if (name)
		put_hint(hints, report, "--callees ", name);
	if (name && annotate)
		put_hint(hints, report, "--annotate ", name);
	else if (report->show != PM_SHOW_TABLE || report->key == PM_KEY_FUNCTION)
		put_hint(hints, report,
			 heaviest_is_unknown(section) ? "--by address" : "--by line",
			 NULL);
	else
		put_hint(hints, report, "--by function", NULL);
}

static void print_hints(const struct pm_text *text, struct pm_section *section)
{
	const struct pm_report *report = text->report;
	struct pm_str hints = { 0 };

	/* A report from a pipe cannot be repeated. */
	if (report->file && strcmp(report->file, "-") == 0)
		return;
	if (pm_profile_is_blocked_time(
		    &report->profile->events.data[section->view->event]))
		put_waits_hints(&hints, section);
	else
		put_hints(&hints, section);
	if (!hints.failed) {
		fputc('\n', text->to);
		pm_text_put(text, PM_COLOR_DIM, hints.data);
		fputc('\n', text->to);
	}
	pm_str_release(&hints);
}

/* ---- the whole report ------------------------------------------------------------------ */

static int print_list(struct pm_text *text, const struct pm_sheet *sheet)
{
	if (pm_sheet_rows(sheet) > 0)
		return pm_sheet_print(sheet, text);
	if (!text->report->quiet)
		fprintf(text->to, "(there are no %s)\n", sheet->name);
	return 0;
}

static int print_waits(struct pm_text *text, const struct pm_section *section)
{
	PM_CLEANUP(pm_sheet_release) struct pm_sheet sheet = { 0 };
	int ret = pm_sheet_waits(&sheet, section);

	if (ret == 0)
		ret = pm_sheet_print(&sheet, text);
	if (ret == 0 && !text->report->quiet && text->report->key == PM_KEY_FUNCTION &&
	    !pm_section_is_stackless(section))
		ret = pm_text_hottest(text, section);
	return ret;
}

static int section_body(struct pm_text *text, struct pm_section *section,
			const struct pm_sheet *sheet)
{
	const struct pm_report *report = text->report;
	int ret;

	if (section->view->total.samples == 0)
		return 0;
	if (!report->quiet)
		fputc('\n', text->to);
	if (report->show == PM_SHOW_ANNOTATE)
		return pm_text_annotate(text, section);
	if (pm_report_is_sheet(report))
		return print_list(text, sheet);
	if (report->show != PM_SHOW_TABLE)
		return pm_text_tree(text, section);
	if (pm_section_is_waits(section))
		return print_waits(text, section);
	ret = pm_text_table(text, section);
	if (ret == 0 && !report->quiet && report->key == PM_KEY_FUNCTION &&
	    report->more_keys_len == 0)
		ret = pm_text_hottest(text, section);
	return ret;
}

static int print_section_title(struct pm_text *text, struct pm_section *section,
			       const struct pm_sheet *sheet)
{
	if (!text->report->quiet) {
		pm_text_event_heading(text, section);
		pm_text_event_warnings(text, section);
	}
	return section_body(text, section, sheet);
}

int pm_output_text(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	struct pm_text text = { .report = report, .to = to };
	uint32_t first, end;

	pm_report_events(report, &first, &end);
	for (uint32_t event = first; event < end; event++) {
		PM_CLEANUP(pm_section_release) struct pm_section section = { 0 };
		PM_CLEANUP(pm_sheet_release) struct pm_sheet sheet = { 0 };
		int ret = pm_section_init(&section, report, event, err);

		section.people = true;
		/* Errors are reported before anything is printed. */
		if (ret == 0 && pm_report_is_sheet(report))
			ret = pm_sheet_make(&sheet, &section, err);
		if (ret < 0)
			return ret;
		if (event == first && !report->quiet) {
			pm_text_heading(&text);
			pm_text_file_warnings(&text);
		}
		if (event > first)
			fputc('\n', to);
		ret = print_section_title(&text, &section, &sheet);
		if (ret < 0)
			return pm_section_failed(ret, err);
		if (event + 1 == end && !report->quiet && section.view->total.samples > 0)
			print_hints(&text, &section);
	}
	return 0;
}

int pm_output_heading(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	struct pm_text text = { .report = report, .to = to };
	uint32_t first, end;

	pm_report_events(report, &first, &end);
	for (uint32_t event = first; event < end; event++) {
		PM_CLEANUP(pm_section_release) struct pm_section section = { 0 };
		int ret = pm_section_init(&section, report, event, err);

		if (ret < 0)
			return ret;
		if (event == first) {
			pm_text_heading(&text);
			pm_text_file_warnings(&text);
		}
		pm_text_event_heading(&text, &section);
		pm_text_event_warnings(&text, &section);
	}
	return 0;
}

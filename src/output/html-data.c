/* SPDX-License-Identifier: MIT */
/*
 * The page's data as JSON. The parts that grow with the recording are numbers, encoded as
 * LEB128 in base64, a fifth of the size of decimal digits. data.js reads them.
 */
#include "html-internal.h"

#include <string.h>

enum {
	BUFFER_BYTES = 3 * 1024,
	VARINT_MAX = 10,
	UNIT_NS = 1000, /* unit of the samples' times */
};

struct data {
	struct pm_page *page;
	struct pm_str *out;
	FILE *to;
	uint8_t bytes[BUFFER_BYTES];
	size_t len;
};

/* ---- numbers ----------------------------------------------------------------------------- */

static void data_put_base64(struct data *data, size_t len)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[BUFFER_BYTES / 3 * 4];
	size_t at = 0;

	for (size_t i = 0; i < len; i += 3) {
		uint32_t word = (uint32_t)data->bytes[i] << 16;
		char third = '=', fourth = '=';

		if (i + 1 < len) {
			word |= (uint32_t)data->bytes[i + 1] << 8;
			if (i + 2 < len)
				word |= data->bytes[i + 2];
			third = letters[word >> 6 & 63];
		}
		if (i + 2 < len)
			fourth = letters[word & 63];
		text[at++] = letters[word >> 18];
		text[at++] = letters[word >> 12 & 63];
		text[at++] = third;
		text[at++] = fourth;
	}
	pm_str_append(data->out, text, at);
	pm_flush_some(data->out, data->to);
}

static void data_put_varint(struct data *data, uint64_t value)
{
	if (data->len + VARINT_MAX > BUFFER_BYTES) {
		size_t whole = data->len / 3 * 3;

		data_put_base64(data, whole);
		memmove(data->bytes, data->bytes + whole, data->len - whole);
		data->len -= whole;
	}
	for (; value > 127; value >>= 7)
		data->bytes[data->len++] = (uint8_t)(value | 128);
	data->bytes[data->len++] = (uint8_t)value;
}

/* Starts a list with @key; end_varints() ends it. */
static void begin_varints(struct data *data, const char *key)
{
	pm_str_puts(data->out, key);
	pm_str_putc(data->out, '"');
}

static void end_varints(struct data *data)
{
	data_put_base64(data, data->len);
	data->len = 0;
	pm_str_putc(data->out, '"');
}

/* ---- texts ------------------------------------------------------------------------------- */

static void data_put(struct data *data, const char *text)
{
	pm_str_puts(data->out, text);
}

/* Writes @text as JSON that cannot end a script element, and that is also valid in older
 * JavaScript. */
static void data_put_text(struct data *data, const char *key, const char *text)
{
	struct pm_str json = { 0 };
	size_t from = 0;

	data_put(data, key);
	pm_str_json(&json, text);
	data->out->failed |= json.failed;
	for (size_t i = 0; i < json.len; i++) {
		const char *c = json.data + i;
		const char *escape = *c == '<' ? "\\u003c" : NULL;
		size_t len = 1;

		/* U+2028 and U+2029 */
		if (strncmp(c, "\xe2\x80\xa8", 3) == 0 ||
		    strncmp(c, "\xe2\x80\xa9", 3) == 0) {
			if (c[2] == '\xa8')
				escape = "\\u2028";
			else
				escape = "\\u2029";
			len = 3;
		}
		if (!escape)
			continue;
		pm_str_append(data->out, json.data + from, i - from);
		data_put(data, escape);
		i += len - 1;
		from = i + 1;
	}
	if (json.data)
		pm_str_append(data->out, json.data + from, json.len - from);
	pm_str_release(&json);
	pm_flush_some(data->out, data->to);
}

static void data_put_number(struct data *data, const char *key, uint64_t number)
{
	data_put(data, key);
	pm_str_u64(data->out, number);
}

static void data_put_number_if(struct data *data, const char *key, bool known,
			       uint64_t number)
{
	data_put(data, key);
	if (known)
		pm_str_u64(data->out, number);
	else
		data_put(data, "null");
}

/* ---- the run ----------------------------------------------------------------------------- */

/* Writes one row of the summary, unless the value is unknown. */
static void data_put_summary_row(struct data *data, bool *first, const char *label,
				 const char *value)
{
	if (!value || value[0] == '\0')
		return;
	if (!*first)
		data_put(data, ",");
	data_put_text(data, "[", label);
	data_put_text(data, ",", value);
	data_put(data, "]");
	*first = false;
}

/* The same with a composed string, which is released. */
static void data_put_made(struct data *data, bool *first, const char *label,
			  struct pm_str *value)
{
	data->out->failed |= value->failed;
	data_put_summary_row(data, first, label, value->failed ? NULL : value->data);
	pm_str_release(value);
	*value = (struct pm_str){ 0 };
}

static void data_put_times(struct data *data, bool *first,
			   const struct pm_profile_info *info)
{
	struct pm_str value = { 0 };

	pm_put_duration(&value, info->duration_ns);
	if (info->cut)
		pm_str_puts(&value, " until the last sample");
	data_put_made(data, first, "Wall time", &value);
	if (info->cpu_known) {
		pm_put_duration(&value, info->cpu_ns);
		if (info->duration_ns > 0)
			pm_str_printf(&value, " (%.2f cores)",
				      (double)info->cpu_ns / (double)info->duration_ns);
	} else {
		pm_str_puts(&value, "unknown");
	}
	data_put_made(data, first, "CPU time", &value);
	pm_put_count(&value, info->processes);
	data_put_made(data, first, "Processes", &value);
	pm_put_count(&value, info->threads);
	data_put_made(data, first, "Threads", &value);
	if (info->exited || info->signalled) {
		pm_str_printf(&value, "%s %u", info->signalled ? "signal" : "code",
			      info->exit);
		data_put_made(data, first, "Ended with", &value);
	}
}

static void data_put_machine(struct data *data, bool *first,
			     const struct pm_profile_info *info)
{
	struct pm_str value = { 0 };

	data_put_summary_row(data, first, "Recorded", info->created);
	data_put_summary_row(data, first, "Host", info->hostname);
	data_put_summary_row(data, first, "Kernel", info->kernel);
	if (info->cpu_model || info->arch) {
		pm_str_puts(&value, pm_text_or(info->cpu_model, info->arch));
		if (info->cpus > 0)
			pm_str_printf(&value, ", %u CPUs", info->cpus);
		data_put_made(data, first, "Processor", &value);
	}
	data_put_summary_row(data, first, "Virtual machine", info->virt);
	if (info->call_graph) {
		pm_str_puts(&value, info->call_graph);
		if (strcmp(info->call_graph, "dwarf") == 0 && info->stack_bytes > 0)
			pm_str_printf(&value, ", %u bytes of each stack",
				      info->stack_bytes);
		data_put_made(data, first, "Call graph", &value);
	}
	data_put_summary_row(data, first, "pmrec", info->pmrec);
}

static void data_put_filters(struct data *data, bool *first,
			     const struct pm_report *report)
{
	const struct pm_filter *filter = report->filter;

	data_put_summary_row(data, first, "Only --time", report->time);
	if (!filter)
		return;
	data_put_summary_row(data, first, "Only --comm", filter->comm);
	data_put_summary_row(data, first, "Only --pid", filter->pid);
	data_put_summary_row(data, first, "Only --tid", filter->tid);
	data_put_summary_row(data, first, "Only --module", filter->module);
	data_put_summary_row(data, first, "Only --symbol", filter->symbol);
}

static void data_put_summary(struct data *data, const struct pm_report *report)
{
	const struct pm_profile *profile = report->profile;
	struct pm_str title = { 0 };
	bool first = true;

	pm_put_title(&title, profile);
	data->out->failed |= title.failed;
	data_put_text(data, "\"title\":", pm_str_text(&title));
	data_put(data, ",\n\"summary\":[");
	data_put_summary_row(data, &first, "Command", title.data);
	data_put_times(data, &first, &profile->info);
	data_put_machine(data, &first, &profile->info);
	data_put_filters(data, &first, report);
	data_put(data, "]");
	pm_str_release(&title);
}

static void data_put_quality(struct data *data, const struct pm_notes *notes)
{
	static const char *const levels[] = {
		[PM_NOTE_GOOD] = "good",
		[PM_NOTE_WARN] = "warn",
		[PM_NOTE_BAD] = "bad",
	};

	data_put(data, ",\n\"quality\":[");
	for (size_t i = 0; i < notes->notes.len; i++) {
		const struct pm_note *note = &notes->notes.data[i];

		if (i > 0)
			data_put(data, ",\n");
		data_put_text(data, "{\"level\":", levels[note->level]);
		data_put_text(data, ",\"text\":", pm_str_text(&note->words));
		data_put(data, "}");
	}
	data_put(data, "]");
}

/* ---- tables ------------------------------------------------------------------------------ */

static void data_put_events(struct data *data)
{
	const struct pm_profile *profile = data->page->report->profile;

	data_put(data, ",\n\"events\":[");
	for (size_t i = 0; i < data->page->events.len; i++) {
		const struct pm_page_event *row = &data->page->events.data[i];
		const struct pm_profile_event *event = &profile->events.data[row->event];
		bool alone = profile->events.len == 1;
		struct pm_str name = { 0 };

		pm_put_event(&name, profile, row->event);
		data->out->failed |= name.failed;
		if (i > 0)
			data_put(data, ",\n");
		data_put_text(data, "{\"name\":", pm_str_text(&name));
		data_put_text(data, ",\"requested\":", event->requested);
		data_put_text(data, ",\"unit\":", event->unit);
		data_put(data,
			 event->blocked ? ",\"blocked\":true" : ",\"blocked\":false");
		data_put_number(data, ",\"samples\":", row->total.samples);
		data_put_number(data, ",\"period\":", row->total.period);
		data_put_number_if(data, ",\"lost\":", event->lost_known || alone,
				   event->lost_known ? event->lost : profile->info.lost);
		data_put(data, "}");
		pm_str_release(&name);
	}
	data_put(data, "]");
}

static void data_put_threads(struct data *data)
{
	const struct pm_merged *merged = &data->page->merged;
	const char *before = ",\n\"threads\":[";

	for (size_t i = 0; i < merged->threads.len; i++) {
		const struct pm_profile_thread *thread = &merged->threads.data[i];

		if (data->page->threads.ids[i] == PM_PROFILE_NONE)
			continue;
		data_put(data, before);
		data_put_number_if(data, "{\"pid\":", thread->pid != PM_FILE_NONE,
				   thread->pid);
		data_put_number_if(data, ",\"tid\":", thread->tid != PM_FILE_NONE,
				   thread->tid);
		data_put_text(data, ",\"comm\":", thread->comm);
		data_put(data, "}");
		before = ",\n";
	}
	data_put(data, before[2] == '\0' ? "]" : ",\n\"threads\":[]");
}

static void data_put_modules(struct data *data)
{
	const struct pm_merged *merged = &data->page->merged;

	data_put(data, ",\n\"modules\":[");
	for (size_t i = 0; i < merged->modules.len; i++) {
		const struct pm_profile_module *module = &merged->modules.data[i];

		if (i > 0)
			data_put(data, ",\n");
		data_put_text(data, "{\"name\":", module->name);
		data_put_text(data, ",\"path\":", module->path);
		data_put_text(data, ",\"build_id\":", module->build_id);
		data_put_text(data, ",\"kind\":", module->kind);
		data_put(data, "}");
	}
	data_put(data, "],\n\"stops\":[null");
	for (size_t i = 1; i < merged->stops.len; i++)
		data_put_text(data, ",", merged->stops.data[i]);
	data_put(data, "]");
}

static void data_put_functions(struct data *data)
{
	const struct pm_merged *merged = &data->page->merged;
	const uint32_t *ids = data->page->functions.ids;
	bool first = true;

	data_put(data, ",\n\"functions\":{\"names\":[");
	for (size_t i = 0; i < merged->functions.len; i++) {
		if (ids[i] == PM_PROFILE_NONE)
			continue;
		if (!first)
			data_put(data, ",\n");
		data_put_text(data, "", merged->functions.data[i].name);
		first = false;
	}
	begin_varints(data, "],\n\"module\":");
	for (size_t i = 0; i < merged->functions.len; i++) {
		uint32_t module = merged->functions.data[i].module;

		if (ids[i] != PM_PROFILE_NONE)
			data_put_varint(data, module == PM_PROFILE_NONE
						      ? 0
						      : (uint64_t)module + 1);
	}
	end_varints(data);
	begin_varints(data, ",\n\"kind\":");
	for (size_t i = 0; i < merged->functions.len; i++)
		if (ids[i] != PM_PROFILE_NONE)
			data_put_varint(data, merged->functions.data[i].kind);
	end_varints(data);
	data_put(data, "}");
}

static void data_put_paths(struct data *data)
{
	const struct pm_page *page = data->page;

	data_put_number(data, ",\n\"paths\":{\"count\":", page->paths.count);
	begin_varints(data, ",\"data\":");
	for (size_t i = 0; i < page->merged.paths.len; i++) {
		const struct pm_path *path = &page->merged.paths.data[i];
		uint32_t id = page->paths.ids[i];

		if (id == PM_PROFILE_NONE)
			continue;
		data_put_varint(data, path->parent == PM_PROFILE_NONE
					      ? 0
					      : id - page->paths.ids[path->parent]);
		data_put_varint(data, page->functions.ids[path->function]);
		data_put_varint(data, path->inlined);
	}
	end_varints(data);
	data_put(data, "}");
}

static void data_put_cells(struct data *data, const struct pm_page_cells *cells)
{
	const struct pm_page *page = data->page;

	data_put_number(data, ",\n\"cells\":{\"count\":", cells->rows.len);
	begin_varints(data, ",\"data\":");
	for (size_t i = 0; i < cells->rows.len; i++) {
		const struct pm_page_cell *cell = &cells->rows.data[i];

		data_put_varint(data, cell->event);
		data_put_varint(data, page->threads.ids[cell->thread]);
		data_put_varint(data, page->paths.ids[cell->path]);
		data_put_varint(data, cell->stop);
		data_put_varint(data, cell->weight.samples);
		data_put_varint(data, cell->weight.period);
	}
	end_varints(data);
	data_put(data, "}");
}

static void data_put_base(struct data *data)
{
	const struct pm_page *page = data->page;

	if (!page->report->base) {
		data_put(data, ",\n\"base\":null");
		return;
	}
	data_put(data, ",\n\"base\":{");
	data_put_summary(data, &page->base_report);
	data_put_quality(data, &page->notes[1]);
	data_put(data, page->report->absolute ? ",\n\"absolute\":true"
					      : ",\n\"absolute\":false");
	data_put(data, ",\n\"events\":[");
	for (size_t i = 0; i < page->events.len; i++) {
		if (i > 0)
			data_put(data, ",");
		data_put_number(data,
				"{\"samples\":", page->events.data[i].base_total.samples);
		data_put_number(data,
				",\"period\":", page->events.data[i].base_total.period);
		data_put(data, "}");
	}
	data_put(data, "]");
	data_put_cells(data, &page->cells[1]);
	data_put(data, "}");
}

/* ---- samples ----------------------------------------------------------------------------- */

/* Whether the period of each sample equals the mean of its cell, and need not be
 * written. */
static bool periods_are_means(const struct pm_page *page)
{
	const struct pm_profile *profile = page->report->profile;

	for (size_t i = 0; i < profile->samples.len; i++) {
		uint32_t id = page->cells[0].of[profile->samples.data[i].cell];
		const struct pm_weight *weight;

		if (id == PM_PROFILE_NONE)
			continue;
		weight = &page->cells[0].rows.data[id].weight;
		if ((__uint128_t)profile->samples.data[i].period * weight->samples !=
		    weight->period)
			return false;
	}
	return true;
}

static void data_put_samples(struct data *data)
{
	const struct pm_page *page = data->page;
	const struct pm_profile *profile = page->report->profile;
	const uint32_t *cell_of = page->cells[0].of;
	uint64_t end_ns = profile->info.duration_ns, units = 0;
	size_t count = 0;

	for (size_t i = 0; i < profile->samples.len; i++)
		count += cell_of[profile->samples.data[i].cell] != PM_PROFILE_NONE;
	data_put_number(data, ",\n\"samples\":{\"count\":", count);
	data_put_number(data, ",\"unit_ns\":", UNIT_NS);
	begin_varints(data, ",\"data\":");
	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];
		uint64_t at = sample->time_ns / UNIT_NS;

		if (cell_of[sample->cell] == PM_PROFILE_NONE)
			continue;
		data_put_varint(data, PM_SUB_OR_0(at, units));
		data_put_varint(data, cell_of[sample->cell]);
		units = PM_MAX(at, units);
		if (sample->time_ns > end_ns)
			end_ns = sample->time_ns;
	}
	end_varints(data);
	data_put(data, ",\"periods\":");
	if (periods_are_means(page)) {
		data_put(data, "null");
	} else {
		begin_varints(data, "");
		for (size_t i = 0; i < profile->samples.len; i++)
			if (cell_of[profile->samples.data[i].cell] != PM_PROFILE_NONE)
				data_put_varint(data, profile->samples.data[i].period);
		end_varints(data);
	}
	data_put_number(data, "},\n\"duration_ns\":", end_ns);
}

/* ---- sources ----------------------------------------------------------------------------- */

static void data_put_source(struct data *data, const struct pm_page_source *source)
{
	uint32_t function = data->page->merged.map[0].functions[source->function];

	data_put_number(data, "{\"function\":", data->page->functions.ids[function]);
	data_put_text(data, ",\"file\":", source->path);
	data_put_number(data, ",\"first\":", source->first);
	data_put(data, ",\"lines\":[");
	for (uint32_t i = 0; i <= source->last - source->first; i++) {
		if (i > 0)
			data_put(data, ",\n");
		data_put_text(data, "", source->lines[i]);
	}
	data_put_text(data, "],\"note\":", source->newer ? "changed since" : NULL);
	data_put(data, ",\"weights\":[");
	for (size_t i = 0; i < source->weights.len; i++) {
		const struct pm_page_line *weight = &source->weights.data[i];

		if (i > 0)
			data_put(data, ",");
		data_put_number(data, "[", weight->event);
		data_put_number(data, ",", weight->line);
		data_put_number(data, ",", weight->self.samples);
		data_put_number(data, ",", weight->self.period);
		data_put_number(data, ",", weight->total.samples);
		data_put_number(data, ",", weight->total.period);
		data_put(data, "]");
	}
	data_put(data, "]}");
}

static void data_put_sources(struct data *data)
{
	const char *before = "";

	data_put(data, ",\n\"sources\":[");
	for (size_t i = 0; i < data->page->sources.len; i++) {
		if (!data->page->sources.data[i].path)
			continue;
		data_put(data, before);
		data_put_source(data, &data->page->sources.data[i]);
		before = ",\n";
	}
	data_put(data, "]}");
}

/* ---- the whole document ------------------------------------------------------------------ */

void pm_page_put_data(struct pm_page *page, struct pm_str *out, FILE *to)
{
	struct data *data = calloc(1, sizeof(*data));

	if (!data) {
		out->failed = true;
		return;
	}
	*data = (struct data){ .page = page, .out = out, .to = to };
	data_put(data, "{\"format\":\"pmrec-page\",\"version\":1,\n");
	data_put_summary(data, page->report);
	data_put_quality(data, &page->notes[0]);
	data_put_events(data);
	data_put_threads(data);
	data_put_modules(data);
	data_put_functions(data);
	data_put_paths(data);
	data_put_cells(data, &page->cells[0]);
	data_put_base(data);
	data_put_samples(data);
	data_put_sources(data);
	free(data);
}

/* SPDX-License-Identifier: MIT */
#include "export.h"

#include <string.h>
#include <time.h>

/* ---- texts by id ---------------------------------------------------------------------- */

struct text_key {
	const char *text;
	size_t len;
};

static bool text_equal(const void *table, uint32_t id, const void *key)
{
	const char *have = pm_strings_get(table, id);
	const struct text_key *wanted = key;

	return strlen(have) == wanted->len &&
	       memcmp(have, wanted->text, wanted->len) == 0;
}

int pm_strings_add(struct pm_strings *strings, const char *text, size_t len,
		   uint32_t *out)
{
	struct text_key key = { .text = pm_text_or_empty(text), .len = text ? len : 0 };
	uint64_t hash = pm_hash_bytes(key.text, key.len);
	uint32_t id = pm_index_find(&strings->index, hash, text_equal, strings, &key);
	int ret;

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)strings->starts.len;
		ret = pm_vec_push(&strings->starts, strings->bytes.len);
		pm_str_append(&strings->bytes, key.text, key.len);
		pm_str_putc(&strings->bytes, '\0');
		if (ret < 0 || strings->bytes.failed)
			return -ENOMEM;
		ret = pm_index_add(&strings->index, hash, id);
		if (ret < 0)
			return ret;
	}
	*out = id;
	return 0;
}

const char *pm_strings_get(const struct pm_strings *strings, uint32_t id)
{
	return strings->bytes.data + strings->starts.data[id];
}

void pm_strings_release(struct pm_strings *strings)
{
	pm_str_release(&strings->bytes);
	pm_vec_release(&strings->starts);
	pm_index_release(&strings->index);
}

/* ---- notes ---------------------------------------------------------------------------- */

/* Adds the warnings of the text report: one note for each line that begins with `! `. */
static int export_add_notes(struct pm_export *export, const char *text, const char *event)
{
	while (*text != '\0') {
		const char *end = strchrnul(text, '\n');
		const char *words = strncmp(text, "! ", 2) == 0 ? text + 2 : text;
		struct pm_str note = { 0 };
		uint32_t id;
		int ret;

		if (event)
			pm_str_printf(&note, "%s: ", event);
		pm_str_append(&note, words, (size_t)(end - words));
		if (note.failed)
			ret = -ENOMEM;
		else
			ret = pm_strings_add(&export->notes, note.data, note.len, &id);
		pm_str_release(&note);
		if (ret < 0)
			return ret;
		if (*end == '\n')
			text = end + 1;
		else
			text = end;
	}
	return 0;
}

/* Adds warnings. @section NULL: those about the whole file. */
static int add_warnings(struct pm_export *export, struct pm_section *section,
			const char *event)
{
	struct pm_report plain = *export->report;
	struct pm_text text = { .report = &plain };
	PM_AUTO_FREE char *words = NULL;
	size_t len = 0;

	plain.width = 0;
	plain.color = false;
	plain.ascii = false;
	text.to = open_memstream(&words, &len);
	if (!text.to)
		return -ENOMEM;
	if (section)
		pm_text_event_warnings(&text, section);
	else
		pm_text_file_warnings(&text);
	if (fclose(text.to) != 0 || text.failed)
		return -ENOMEM;
	return export_add_notes(export, words, event);
}

static int add_filter_note(struct pm_export *export)
{
	const struct pm_filter *filter = export->report->filter;
	const struct {
		const char *option, *value;
	} parts[] = {
		{ "time", export->report->time },
		{ "comm", filter ? filter->comm : NULL },
		{ "pid", filter ? filter->pid : NULL },
		{ "tid", filter ? filter->tid : NULL },
		{ "module", filter ? filter->module : NULL },
		{ "symbol", filter ? filter->symbol : NULL },
	};
	struct pm_str note = { 0 };
	uint32_t id;
	int ret = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(parts); i++) {
		if (!parts[i].value)
			continue;
		if (note.len == 0)
			pm_str_puts(&note, "a part of the recording:");
		pm_str_printf(&note, " --%s ", parts[i].option);
		pm_str_printable(&note, parts[i].value, strlen(parts[i].value));
	}
	if (note.len > 0 || note.failed) {
		if (note.failed)
			ret = -ENOMEM;
		else
			ret = pm_strings_add(&export->notes, note.data, note.len, &id);
	}
	pm_str_release(&note);
	return ret;
}

/* ---- contents of an export ------------------------------------------------------------ */

/* Adds the name of an event. If another event has the same name, a number is appended. */
static int name_event(struct pm_export *export, uint32_t event)
{
	PM_CLEANUP(pm_str_release) struct pm_str raw = { 0 };
	PM_CLEANUP(pm_str_release) struct pm_str name = { 0 };
	uint32_t id, wanted = event - export->first;
	size_t len;
	int ret;

	pm_put_event(&raw, export->profile, event);
	if (raw.failed)
		return -ENOMEM;
	pm_str_printable(&name, pm_str_text(&raw), raw.len);
	len = name.len;
	if (name.failed)
		ret = -ENOMEM;
	else
		ret = pm_strings_add(&export->events, name.data, len, &id);
	if (ret == 0 && id != wanted) {
		pm_str_printf(&name, " #%u", event);
		if (name.failed)
			ret = -ENOMEM;
		else
			ret = pm_strings_add(&export->events, name.data, name.len, &id);
	}
	/* Another event's name may already end with this number. Only hostile files have
	 * such names, and these need not be pretty. */
	while (ret == 0 && id != wanted) {
		pm_str_putc(&name, '#');
		if (name.failed)
			ret = -ENOMEM;
		else
			ret = pm_strings_add(&export->events, name.data, name.len, &id);
	}
	return ret;
}

static int export_add_event(struct pm_export *export, uint32_t event,
			    struct pm_error *err)
{
	PM_CLEANUP(pm_section_release) struct pm_section section = { 0 };
	struct pm_report report = *export->report;
	bool one = export->end - export->first == 1;
	int ret;

	report.show = PM_SHOW_TABLE; /* whole stacks need no other view */
	ret = pm_section_init(&section, &report, event, err);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < section.view->cells.len; i++) {
		uint32_t cell = section.view->cells.data[i];

		export->cells[cell] = true;
		export->stacks[export->profile->cells.data[cell].stack] = true;
	}
	ret = name_event(export, event);
	if (ret == 0)
		ret = add_warnings(export, &section,
				   one ? NULL : pm_export_event(export, event));
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	return 0;
}

int pm_export_init(struct pm_export *out, const struct pm_report *report,
		   struct pm_error *err)
{
	PM_CLEANUP(pm_export_release)
	struct pm_export export = { .report = report, .profile = report->profile };
	const struct pm_profile *profile = report->profile;
	int ret = 0;

	pm_report_events(report, &export.first, &export.end);
	export.cells = calloc(profile->cells.len + 1, sizeof(bool));
	export.stacks = calloc(profile->stacks.len + 1, sizeof(bool));
	if (!export.cells || !export.stacks || add_warnings(&export, NULL, NULL) < 0 ||
	    add_filter_note(&export) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (uint32_t event = export.first; ret == 0 && event < export.end; event++)
		ret = export_add_event(&export, event, err);
	if (ret < 0)
		return ret;
	for (size_t i = profile->stacks.len; i-- > 0;) {
		uint32_t parent = profile->stacks.data[i].parent;

		if (export.stacks[i] && parent != PM_PROFILE_NONE)
			export.stacks[parent] = true;
	}
	*out = export;
	export = (struct pm_export){ 0 };
	return 0;
}

void pm_export_release(struct pm_export *export)
{
	free(export->cells);
	free(export->stacks);
	export->cells = export->stacks = NULL;
	pm_strings_release(&export->notes);
	pm_strings_release(&export->events);
}

/* ---- samples by event and thread -------------------------------------------------------- */

static int sample_order(const void *a, const void *b, void *context)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct pm_profile_cell *left = pm_export_cell(context, i);
	const struct pm_profile_cell *right = pm_export_cell(context, j);

	if (left->event != right->event)
		return PM_COMPARE(left->event, right->event);
	if (left->thread != right->thread)
		return PM_COMPARE(left->thread, right->thread);
	return PM_COMPARE(i, j); /* samples are in order of time */
}

static int find_runs(struct pm_export_order *order, const struct pm_export *export)
{
	struct pm_export_run *run = NULL;

	for (size_t i = 0; i < order->order.len; i++) {
		uint32_t sample = order->order.data[i];
		const struct pm_profile_cell *cell = pm_export_cell(export, sample);
		uint64_t period = export->profile->samples.data[sample].period;

		if (!run || run->event != cell->event || run->thread != cell->thread) {
			if (pm_vec_push(&order->runs, (struct pm_export_run){
							      .event = cell->event,
							      .thread = cell->thread,
							      .first = i,
						      }) < 0)
				return -ENOMEM;
			run = &order->runs.data[order->runs.len - 1];
		}
		run->len++;
		if (__builtin_add_overflow(run->period, period, &run->period))
			run->period = UINT64_MAX;
	}
	return 0;
}

int pm_export_order_init(struct pm_export_order *out, const struct pm_export *export)
{
	PM_CLEANUP(pm_export_order_release) struct pm_export_order order = { 0 };
	const struct pm_profile *profile = export->profile;
	/* For qsort_r(), whose context is not const. */
	struct pm_export context = *export;

	for (size_t i = 0; i < profile->samples.len; i++)
		if (export->cells[profile->samples.data[i].cell] &&
		    pm_vec_push(&order.order, (uint32_t)i) < 0)
			return -ENOMEM;
	if (order.order.len > 0)
		qsort_r(order.order.data, order.order.len, sizeof(uint32_t), sample_order,
			&context);
	if (find_runs(&order, export) < 0)
		return -ENOMEM;
	*out = order;
	order = (struct pm_export_order){ 0 };
	return 0;
}

void pm_export_order_release(struct pm_export_order *order)
{
	pm_vec_release(&order->order);
	pm_vec_release(&order->runs);
}

/* ---- source files ----------------------------------------------------------------------- */

static bool is_same_file_name(const char *a, const char *b)
{
	return a == b || strcmp(pm_basename(a), pm_basename(b)) == 0;
}

const char **pm_export_files(const struct pm_profile *profile)
{
	const char **files = calloc(profile->functions.len + 1, sizeof(*files));

	for (size_t i = 0; files && i < profile->places.len; i++) {
		const struct pm_profile_place *place = &profile->places.data[i];
		const char **home = &files[place->function];

		if (!place->file)
			continue;
		if (!*home || (**home != '/' && *place->file == '/' &&
			       is_same_file_name(*home, place->file)))
			*home = place->file;
	}
	return files;
}

bool pm_export_at_home(const char *const *files, const struct pm_profile_place *place)
{
	return place->file && is_same_file_name(files[place->function], place->file);
}

/* ---- words ---------------------------------------------------------------------------- */

void pm_put_export_function(struct pm_str *str, const struct pm_profile *profile,
			    uint32_t function)
{
	const struct pm_profile_function *it = &profile->functions.data[function];

	if (it->start > 0) {
		pm_put_function(str, profile, function, 0, false);
	} else if (it->unknown && it->module != PM_PROFILE_NONE) {
		const char *name = profile->modules.data[it->module].name;
		bool bracketed = name[0] == '[';

		if (!bracketed)
			pm_str_puts(str, "[");
		pm_str_printable(str, name, strlen(name));
		if (!bracketed)
			pm_str_puts(str, "]");
	} else {
		pm_str_printable(str, it->name, strlen(it->name));
	}
}

void pm_put_export_comm(struct pm_str *str, const struct pm_profile_thread *thread)
{
	if (thread->comm[0] != '\0')
		pm_str_printable(str, thread->comm, strlen(thread->comm));
	else if (thread->tid == PM_FILE_NONE)
		pm_str_puts(str, "[unknown]");
	else
		pm_str_printf(str, ":%u", thread->tid);
}

void pm_put_export_module(struct pm_str *str, const struct pm_profile *profile,
			  uint32_t module)
{
	const char *path = "";

	if (module != PM_PROFILE_NONE)
		path = profile->modules.data[module].path;
	if (path[0] == '\0')
		path = pm_profile_module_name(profile, module);
	pm_str_printable(str, path, strlen(path));
}

void pm_put_export_command(struct pm_str *str, const struct pm_profile *profile)
{
	for (size_t i = 0; i < profile->command.len; i++) {
		const char *word = profile->command.data[i];

		if (i > 0)
			pm_str_puts(str, " ");
		pm_str_printable(str, word, strlen(word));
	}
	if (profile->command.len == 0 && profile->target)
		pm_str_printable(str, profile->target, strlen(profile->target));
}

void pm_put_export_json(struct pm_str *str, struct pm_str *from)
{
	if (from->failed)
		str->failed = true;
	else
		pm_str_json(str, pm_str_text(from));
	pm_str_clear(from);
}

void pm_put_decimal(struct pm_str *str, uint64_t ns, uint64_t unit_ns)
{
	uint64_t rest = ns % unit_ns;

	pm_str_u64(str, ns / unit_ns);
	if (rest == 0)
		return;
	pm_str_putc(str, '.');
	while (rest > 0) {
		unit_ns /= 10;
		pm_str_putc(str, (char)('0' + rest / unit_ns));
		rest %= unit_ns;
	}
}

int64_t pm_export_created(const struct pm_profile *profile)
{
	struct tm tm = { 0 };
	const char *end = profile->info.created ? strptime(profile->info.created,
							   "%Y-%m-%dT%H:%M:%S", &tm)
						: NULL;
	time_t seconds = 0;

	if (end && *end == 'Z')
		seconds = timegm(&tm);
	if (seconds > 0)
		return seconds;
	return 0;
}

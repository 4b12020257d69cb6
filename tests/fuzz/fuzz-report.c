/* SPDX-License-Identifier: MIT */
/* Any file through the profile into every kind of report. The first byte chooses; the rest is
 * the file. What is written must be whole lines, tables and trees must add up. */
#include <stdint.h>
#include <string.h>

#include <zlib.h>

#include "pm/flame.h"
#include "pm/output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sums(const struct pm_view *view)
{
	struct pm_table table;
	struct pm_weight sum = { 0 };

	if (pm_table_init(&table, view, PM_KEY_FUNCTION, false) < 0)
		return;
	for (size_t i = 0; i < table.rows.len; i++) {
		pm_weight_add(&sum, &table.rows.data[i].self);
		if (table.rows.data[i].total.samples < table.rows.data[i].self.samples ||
		    table.rows.data[i].total.samples > view->total.samples)
			abort();
	}
	if (sum.samples != view->total.samples || sum.period != view->total.period)
		abort();
	pm_table_release(&table);
}

static void check_waits(const struct pm_view *view)
{
	struct pm_waits waits;
	struct pm_weight sum = { 0 };

	if (pm_waits_init(&waits, view, true) < 0)
		return;
	for (size_t i = 0; i < waits.rows.len; i++) {
		pm_weight_add(&sum, &waits.rows.data[i].weight);
		if (waits.rows.data[i].longest > waits.rows.data[i].weight.period)
			abort();
	}
	if (sum.samples != view->total.samples || sum.period != view->total.period)
		abort();
	pm_waits_release(&waits);
}

static void write_report(const struct pm_report *report, unsigned format, bool periods)
{
	struct pm_error err = { 0 };
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	int r;

	if (!to)
		return;
	if (format == 0)
		r = pm_output_text(report, to, &err);
	else if (format == 1)
		r = pm_output_csv(report, ",", to, &err);
	else if (format == 2)
		r = pm_output_json(report, to, &err);
	else
		r = pm_output_folded(report, periods, to, &err);
	fclose(to);
	if ((r < 0 && (len > 0 || err.text[0] == '\0')) ||
	    (len > 0 && text[len - 1] != '\n'))
		abort();
	free(text);
}

typedef int (*write_fn)(const struct pm_report *report, FILE *to, struct pm_error *err);

/* Whole lines of printable UTF-8: no name can end a line or a paragraph. */
static void check_text(const char *text, size_t len)
{
	if (len > 0 && text[len - 1] != '\n')
		abort();
	for (size_t i = 0; i < len;) {
		size_t bytes = pm_utf8_char(text + i, len - i);

		if (bytes == 0 || text[i] == 0x7f ||
		    ((unsigned char)text[i] < 0x20 && text[i] != '\n' && text[i] != '\t'))
			abort();
		i += bytes;
	}
}

/* One whole gzip stream. */
static void check_gzip(const char *text, size_t len)
{
	static unsigned char piece[65536];
	z_stream zip = { .next_in = (unsigned char *)(uintptr_t)text,
			 .avail_in = (unsigned)len };
	int r = Z_OK;

	if (inflateInit2(&zip, 15 + 16) != Z_OK)
		return;
	while (r == Z_OK) {
		zip.next_out = piece;
		zip.avail_out = sizeof(piece);
		r = inflate(&zip, Z_NO_FLUSH);
	}
	inflateEnd(&zip);
	if (r != Z_STREAM_END || zip.avail_in != 0)
		abort();
}

static void export_all(const struct pm_report *report)
{
	static const write_fn writers[] = { pm_output_pprof, pm_output_firefox,
					    pm_output_speedscope, pm_output_callgrind,
					    pm_output_perf_script };

	for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++) {
		struct pm_error err = { 0 };
		char *text = NULL;
		size_t len = 0;
		FILE *to = open_memstream(&text, &len);
		int r;

		if (!to)
			return;
		r = writers[i](report, to, &err);
		fclose(to);
		if (r < 0 ? len > 0 || err.text[0] == '\0' : len == 0)
			abort();
		if (r == 0 && writers[i] == pm_output_pprof)
			check_gzip(text, len);
		else
			check_text(text, len);
		free(text);
	}
}

/* ---- what is opened in a browser ------------------------------------------------------- */

static size_t count_of(const char *text, const char *what)
{
	size_t count = 0;

	for (const char *at = text; (at = strcasestr(at, what)); at++)
		count++;
	return count;
}

/* One JSON value in which nothing begins a tag, between the tags of its script. */
static void check_data(const char *text)
{
	const char *at = strstr(text, "id=\"pm-data\">");
	long depth = 0;
	bool inside = false;

	if (!at)
		abort();
	for (at += strlen("id=\"pm-data\">"); *at != '<'; at++) {
		if (*at == '\0')
			abort();
		if (inside) {
			inside = *at != '"';
			at += *at == '\\';
		} else if (*at == '"') {
			inside = true;
		} else {
			depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
		}
	}
	if (depth != 0 || inside || strncmp(at, "</script>", strlen("</script>")) != 0)
		abort();
}

static void check_html(const char *text, size_t len)
{
	static size_t scripts;

	if (strlen(text) != len || strcmp(text + len - 8, "</html>\n") != 0)
		abort();
	check_data(text);
	/* As many as with any other names. */
	if (scripts == 0)
		scripts = count_of(text, "<script");
	if (scripts != count_of(text, "<script"))
		abort();
}

static void check_svg(const char *text, size_t len)
{
	if (strlen(text) != len || strcmp(text + len - 7, "</svg>\n") != 0 ||
	    count_of(text, "<svg") != count_of(text, "</svg>") ||
	    count_of(text, "<script") != 1 || count_of(text, "]]>") != 1)
		abort();
	for (const char *at = text; (at = strstr(at, "<title>")); at++)
		if (strncmp(strchr(at + 1, '<'), "</title>", strlen("</title>")) != 0)
			abort();
}

static void check_flame(const struct pm_view *view, bool inverted)
{
	struct pm_flame_options options = { .inverted = inverted };
	struct pm_merged merged;
	struct pm_flame flame;

	if (pm_merged_init(&merged, view->profile, view->profile, NULL) < 0)
		return;
	if (pm_flame_init(&flame, &merged, view, view, &options) == 0) {
		struct pm_weight self = { 0 };

		for (size_t i = 0; i < flame.nodes.len; i++) {
			const struct pm_flame_node *node = &flame.nodes.data[i];

			pm_weight_add(&self, &node->self);
			/* The same beside itself. */
			if (node->total.samples != node->base_total.samples ||
			    node->total.period != node->base_total.period ||
			    (i > 0 && node->parent >= i))
				abort();
		}
		if (self.samples != view->total.samples ||
		    flame.nodes.data[0].total.samples != view->total.samples ||
		    flame.nodes.data[0].total.period != view->total.period)
			abort();
		pm_flame_release(&flame);
	}
	pm_merged_release(&merged);
}

static void draw_all(const struct pm_report *asked, uint8_t choice)
{
	struct pm_report report = *asked;

	report.show = choice & 1 ? PM_SHOW_BOTTOM_UP : PM_SHOW_TABLE;
	report.base = choice & 2 ? report.profile : NULL;
	for (unsigned html = 0; html < 2; html++) {
		struct pm_error err = { 0 };
		char *text = NULL;
		size_t len = 0;
		FILE *to = open_memstream(&text, &len);
		int r;

		if (!to)
			return;
		r = html ? pm_output_html(&report, to, &err)
			 : pm_output_flamegraph(&report, to, &err);
		fclose(to);
		if (r < 0 ? len > 0 || err.text[0] == '\0' : len == 0)
			abort();
		if (r == 0 && html)
			check_html(text, len);
		else if (r == 0)
			check_svg(text, len);
		free(text);
	}
}

/* What the contract promises of kept samples: in order, whole, and of nothing unknown. */
static void check_samples(const struct pm_profile *profile,
			  const struct pm_profile_options *options)
{
	uint64_t samples = 0, before = 0;

	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];

		if (sample->time_ns < before || sample->cell >= profile->cells.len ||
		    (sample->period == 0 && !profile->latency) ||
		    sample->fields > profile->fields.len ||
		    sample->first_field > profile->fields.len - sample->fields)
			abort();
		before = sample->time_ns;
	}
	for (size_t i = 0; i < profile->events.len; i++)
		samples += profile->events.data[i].total.samples;
	if (profile->samples.len != (options->keep_samples ? samples : 0) ||
	    (profile->parallelism.len > 0 &&
	     profile->parallelism.len != profile->samples.len))
		abort();
}

/* A function's lines in each form that there is. */
static void annotate(const struct pm_report *asked)
{
	struct pm_report report = *asked;

	report.show = PM_SHOW_ANNOTATE;
	report.annotate = (enum pm_annotate_show)(asked->width ? PM_ANNOTATE_SOURCE
							       : PM_ANNOTATE_BOTH);
	for (unsigned format = 0; format < 3; format++)
		write_report(&report, format, false);
}

/* Tables by several keys must add up, too. */
static void check_keys(const struct pm_view *view, const struct pm_keys *keys)
{
	struct pm_table table;
	uint64_t samples = 0;
	bool lost = false; /* only single samples know their CPU */

	if (pm_table_init_keys(&table, view, keys, true) < 0)
		return;
	for (uint32_t i = 0; i < keys->len; i++)
		lost |= (keys->key[i] == PM_KEY_CPU ||
			 keys->key[i] == PM_KEY_PARALLELISM) &&
			view->profile->samples.len == 0;
	for (size_t i = 0; i < table.rows.len; i++) {
		samples += table.rows.data[i].self.samples;
		if (table.rows.data[i].total.samples < table.rows.data[i].self.samples)
			abort();
	}
	if (samples != (lost ? 0 : view->total.samples))
		abort();
	pm_table_release(&table);
}

/* Lists, and tables by two or three keys. */
static void choose_more(struct pm_report *report, uint8_t choice)
{
	static const char *const fields[] = { "period", "n", "who", "" };

	report->field = fields[choice >> 6];
	report->percentiles[0] = choice & 7 ? 50 : 0;
	report->percentiles[1] = 99.9;
	report->percentiles_len = 2;
	report->by_key = choice & 2;
	report->show = choice & 1
			       ? PM_SHOW_TABLE
			       : (enum pm_report_show)(PM_SHOW_THREADS + choice / 4 % 4);
	report->key = (enum pm_key)(choice / 2 % 9);
	report->more_keys[0] = (enum pm_key)((choice / 2 + 1 + choice / 64) % 9);
	report->more_keys[1] = (enum pm_key)((choice / 2 + 5 + choice / 64) % 9);
	report->more_keys_len = choice & 0x20 ? 1 : 2;
}

static void report_all(const struct pm_profile *profile, uint8_t choice, bool more)
{
	static const char *const functions[] = { "main", ".", "f", "" };
	struct pm_filter filter = {
		.symbol = choice & 0x80 ? "main" : NULL,
	};
	struct pm_report report = {
		.profile = profile,
		.filter = &filter,
		.event = PM_PROFILE_NONE,
		.show = (enum pm_report_show)(choice % 5),
		.key = (enum pm_key)(choice / 5 % 6),
		.function = functions[choice & 3],
		.limit = choice & 0x40 ? 0 : PM_LIMIT_DEFAULT,
		.width = choice & 0x20 ? 80 : 0,
		.ascii = choice & 0x10,
		.color = choice & 0x08,
	};

	struct pm_keys keys = { .len = 3 };

	if (more)
		choose_more(&report, choice);
	keys.key[0] = report.key;
	memcpy(keys.key + 1, report.more_keys, sizeof(report.more_keys));
	for (unsigned format = 0; format < 4; format++)
		write_report(&report, format, choice & 1);
	annotate(&report);
	/* A few bytes can describe many samples that are all deep. */
	if (profile->samples.len * profile->stacks.len < 1 << 16)
		export_all(&report);
	draw_all(&report, choice);
	for (uint32_t event = 0; event < profile->events.len && event < 4; event++) {
		struct pm_view *view;

		if (pm_view_new(&view, profile, event, NULL, NULL) < 0)
			continue;
		check_sums(view);
		check_waits(view);
		check_flame(view, choice & 1);
		if (more)
			check_keys(view, &keys);
		pm_view_free(view);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pm_profile_options options = { 0 };
	struct pm_file_reader *reader;
	struct pm_profile *profile;

	if (size < 2)
		return 0;
	options.no_inlines = data[1] & 1;
	options.time_set = data[1] & 2;
	options.time_percent = data[1] & 4;
	options.time_to = 50;
	options.keep_samples = data[1] & 8;
	options.keep_fields = data[1] & 16;
	options.keep_branches = data[1] & 32;
	options.latency = data[1] & 64;
	options.parallelism = data[1] & 128;
	if (pm_file_reader_open_memory(&reader, data + 2, size - 2, NULL) < 0)
		return 0;
	if (pm_profile_load(&profile, reader, &options, NULL) == 0) {
		check_samples(profile, &options);
		/* A few bytes can describe stacks whose trees fill the memory. */
		if (profile->stacks.len < 4096 && profile->levels.len < 4096 &&
		    profile->events.len < 64)
			report_all(profile, data[0], data[1] & 32);
		pm_profile_free(profile);
	}
	pm_file_reader_free(reader);
	return 0;
}

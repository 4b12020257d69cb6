/* SPDX-License-Identifier: MIT */
#include "sheet.h"

#include <string.h>

#include "pm/base-text.h"

enum {
	GAP = 2,
	LEAST = 12, /* columns that a name keeps on a narrow screen */
};

/* ---- construction ------------------------------------------------------------------------ */

void pm_sheet_release(struct pm_sheet *sheet)
{
	for (size_t i = 0; i < sheet->texts.len; i++)
		free(sheet->texts.data[i]);
	pm_vec_release(&sheet->texts);
	pm_vec_release(&sheet->cells);
}

void pm_sheet_column(struct pm_sheet *sheet, const char *name, const char *title,
		     enum pm_sheet_kind kind, size_t max)
{
	if (sheet->columns_len < PM_SHEET_COLUMNS)
		sheet->columns[sheet->columns_len++] =
			(struct pm_sheet_column){ name, title, kind, max };
}

static const struct {
	const char *title; /* NULL: not for people */
	enum pm_sheet_kind kind;
	size_t max;
} key_columns[PM_FIELDS] = {
	[PM_FIELD_FUNCTION] = { "function", PM_SHEET_NAME, 0 },
	[PM_FIELD_MODULE] = { "module", PM_SHEET_TEXT, 22 },
	[PM_FIELD_FILE] = { NULL, PM_SHEET_TEXT, 0 },
	[PM_FIELD_LINE] = { NULL, PM_SHEET_ID, 0 },
	[PM_FIELD_INLINED] = { NULL, PM_SHEET_BOOL, 0 },
	[PM_FIELD_PATH] = { NULL, PM_SHEET_TEXT, 0 },
	[PM_FIELD_BUILD_ID] = { NULL, PM_SHEET_TEXT, 0 },
	[PM_FIELD_PID] = { "pid", PM_SHEET_ID, 0 },
	[PM_FIELD_TID] = { "tid", PM_SHEET_ID, 0 },
	[PM_FIELD_COMM] = { "name", PM_SHEET_TEXT, 16 },
	[PM_FIELD_TITLE] = { NULL, PM_SHEET_TEXT, 0 },
	[PM_FIELD_ADDRESS] = { "address", PM_SHEET_ADDRESS, 0 },
	[PM_FIELD_CPU] = { "cpu", PM_SHEET_ID, 0 },
	[PM_FIELD_PARALLELISM] = { "parallelism", PM_SHEET_ID, 0 },
};

void pm_sheet_key_columns(struct pm_sheet *sheet, const struct pm_keys *keys)
{
	struct pm_row_column columns[PM_FIELDS];
	size_t len = pm_row_fields(keys, columns);
	bool lines = false;

	for (uint32_t i = 0; i < keys->len; i++)
		lines |= keys->key[i] == PM_KEY_LINE;
	for (size_t i = 0; i < len; i++) {
		enum pm_row_field field = columns[i].field;
		const char *title = key_columns[field].title;

		if (lines && (field == PM_FIELD_FILE || field == PM_FIELD_LINE))
			title = columns[i].name;
		pm_sheet_column(sheet, columns[i].name, title, key_columns[field].kind,
				key_columns[field].max);
	}
}

int pm_sheet_key_cells(struct pm_sheet *sheet, const struct pm_profile *profile,
		       const struct pm_keys *keys, const struct pm_row *row)
{
	struct pm_row_column columns[PM_FIELDS];
	size_t len = pm_row_fields(keys, columns);
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < len; i++) {
		struct pm_row_value value;

		pm_row_get(profile, &columns[i], row, &value);
		if (value.kind == PM_VALUE_TEXT)
			ret = pm_vec_push(&sheet->cells,
					  (struct pm_sheet_cell){ .known = value.known,
								  .text = value.text,
								  .start = value.start });
		else
			ret = pm_sheet_number(sheet, value.known, value.number);
	}
	return ret;
}

int pm_sheet_text(struct pm_sheet *sheet, const char *text)
{
	return pm_vec_push(&sheet->cells,
			   (struct pm_sheet_cell){ .known = text != NULL, .text = text });
}

int pm_sheet_number(struct pm_sheet *sheet, bool known, uint64_t number)
{
	return pm_vec_push(&sheet->cells,
			   (struct pm_sheet_cell){ .known = known, .number = number });
}

int pm_sheet_wide(struct pm_sheet *sheet, bool known, pm_wide number)
{
	return pm_vec_push(&sheet->cells,
			   (struct pm_sheet_cell){ .known = known, .wide = number });
}

int pm_sheet_percent(struct pm_sheet *sheet, double percent)
{
	return pm_vec_push(&sheet->cells,
			   (struct pm_sheet_cell){ .known = true, .percent = percent });
}

int pm_sheet_series(struct pm_sheet *sheet, const uint64_t *series)
{
	return pm_vec_push(&sheet->cells,
			   (struct pm_sheet_cell){ .known = true, .series = series });
}

const char *pm_sheet_keep(struct pm_sheet *sheet, const char *text)
{
	char *copy = strdup(text);

	if (copy && pm_vec_push(&sheet->texts, copy) < 0) {
		free(copy);
		copy = NULL;
	}
	return copy;
}

size_t pm_sheet_rows(const struct pm_sheet *sheet)
{
	if (sheet->columns_len > 0)
		return sheet->cells.len / sheet->columns_len;
	return 0;
}

/* ---- numbers ----------------------------------------------------------------------------- */

void pm_put_wide(struct pm_str *str, pm_wide number, bool commas)
{
	char digits[64];
	size_t at = sizeof(digits), len = 0;
	bool negative = number < 0;

	do {
		int digit = (int)(number % 10);

		if (commas && len > 0 && len % 3 == 0)
			digits[--at] = ',';
		digits[--at] = (char)('0' + (digit < 0 ? -digit : digit));
		number /= 10;
		len++;
	} while (number != 0);
	if (negative)
		digits[--at] = '-';
	pm_str_append(str, digits + at, sizeof(digits) - at);
}

/* ---- buckets ---------------------------------------------------------------------------- */

/* The number of values between powers of two. */
enum {
	BAR_COLUMNS = 40,
};

/* From *from to *to, *to excluded; the last *to exceeds 64 bits. */
static void bucket_bounds(size_t bucket, pm_wide *from, pm_wide *to)
{
	*from = 0;
	*to = 1;
	if (bucket >= 2) {
		*from = (pm_wide)1 << (bucket - 2);
		*to = (pm_wide)1 << (bucket - 1);
	}
}

static void print_bucket(const struct pm_text *text, size_t bucket, uint64_t count,
			 uint64_t most, bool ns)
{
	PM_CLEANUP(pm_str_release) struct pm_str from = { 0 }, number = { 0 };
	size_t bars = (size_t)((double)count / (double)most * BAR_COLUMNS + 0.5);
	pm_wide low, high;

	bucket_bounds(bucket, &low, &high);
	if (bucket == 0)
		pm_str_puts(&from, "below 0");
	else if (ns)
		pm_put_duration(&from, (uint64_t)low);
	else
		pm_put_wide(&from, low, true);
	pm_put_count(&number, count);
	fprintf(text->to, " %12s  %9s  ", pm_text_or(from.data, "?"),
		pm_text_or(number.data, "?"));
	for (size_t i = 0; i < bars; i++)
		fputs(text->report->ascii ? "#" : "█", text->to);
	fputc('\n', text->to);
}

/* Prints all buckets between the first and the last one with values, including empty
 * ones. */
static void sheet_print_buckets(const struct pm_sheet *sheet, const struct pm_text *text)
{
	size_t first = PM_SHEET_BUCKETS, last = 0;
	uint64_t most = 0;

	for (size_t i = 0; i < PM_SHEET_BUCKETS; i++) {
		if (sheet->buckets[i] == 0)
			continue;
		if (first == PM_SHEET_BUCKETS)
			first = i;
		last = i;
		most = PM_MAX(sheet->buckets[i], most);
	}
	if (most == 0)
		return;
	fputc('\n', text->to);
	pm_text_put(text, PM_COLOR_HEAD, "      from on      count");
	fputc('\n', text->to);
	for (size_t i = first; i <= last; i++)
		print_bucket(text, i, sheet->buckets[i], most, sheet->buckets_ns);
}

/* ,"histogram":[…] */
static void sheet_json_buckets(const struct pm_sheet *sheet, struct pm_str *out)
{
	bool first = true;

	pm_str_puts(out, ",\n\"histogram\":[");
	for (size_t i = 0; i < PM_SHEET_BUCKETS; i++) {
		pm_wide from, to;

		if (sheet->buckets[i] == 0)
			continue;
		bucket_bounds(i, &from, &to);
		if (!first)
			pm_str_puts(out, ",");
		pm_str_puts(out, "{\"from\":");
		first = false;
		if (i == 0)
			pm_str_puts(out, "null");
		else
			pm_put_wide(out, from, false);
		pm_str_puts(out, ",\"below\":");
		pm_put_wide(out, i == 0 ? 0 : to, false);
		pm_str_puts(out, ",\"count\":");
		pm_str_u64(out, sheet->buckets[i]);
		pm_str_putc(out, '}');
	}
	pm_str_putc(out, ']');
}

/* ---- for people -------------------------------------------------------------------------- */

static bool is_text_column(enum pm_sheet_kind kind)
{
	return kind == PM_SHEET_TEXT || kind == PM_SHEET_NAME || kind == PM_SHEET_TAIL;
}

static bool is_right(enum pm_sheet_kind kind)
{
	return !is_text_column(kind) && kind != PM_SHEET_ADDRESS &&
	       kind != PM_SHEET_SERIES;
}

static void sheet_put_series(struct pm_str *str, const uint64_t *series, uint64_t most,
			     bool ascii)
{
	static const char *const bars[2][9] = {
		{ " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" },
		{ " ", ".", ":", "-", "=", "+", "*", "%", "#" },
	};

	for (size_t i = 0; i < PM_SHEET_SERIES_LEN; i++) {
		unsigned level = 0;

		/* A value above 0 is always visible. */
		if (series[i] > 0)
			level = 1 + (unsigned)((double)series[i] / (double)most * 8);
		pm_str_puts(str, bars[ascii][PM_MIN(level, 8)]);
	}
}

static void put_shown(const struct pm_sheet *sheet, const struct pm_sheet_column *column,
		      const struct pm_sheet_cell *cell, size_t width, bool ascii,
		      struct pm_str *str)
{
	if (!cell->known && !is_text_column(column->kind)) {
		pm_str_putc(str, column->kind == PM_SHEET_ID ? '?' : '-');
		return;
	}
	switch (column->kind) {
	case PM_SHEET_TEXT:
	case PM_SHEET_TAIL:
		pm_put_cut(str, pm_text_or(cell->text, "-"), width,
			   column->kind == PM_SHEET_TAIL, ascii);
		break;
	case PM_SHEET_NAME:
		pm_put_name(str, pm_text_or(cell->text, "-"), width, ascii);
		break;
	case PM_SHEET_ID:
	case PM_SHEET_BOOL:
		pm_str_u64(str, cell->number);
		break;
	case PM_SHEET_COUNT:
		pm_put_count(str, cell->number);
		break;
	case PM_SHEET_NUMBER:
		pm_put_wide(str, cell->wide, true);
		break;
	case PM_SHEET_WIDE_NS:
		pm_put_duration(str, cell->wide > (pm_wide)UINT64_MAX
					     ? UINT64_MAX
					     : (uint64_t)cell->wide);
		break;
	case PM_SHEET_NS:
		pm_put_duration(str, cell->number);
		break;
	case PM_SHEET_TIME_NS:
		pm_str_printf(str, "%.3f", (double)cell->number / 1e9);
		break;
	case PM_SHEET_PERCENT:
		pm_str_printf(str, "%.1f%%", cell->percent);
		break;
	case PM_SHEET_ADDRESS:
		pm_str_hex(str, cell->number);
		break;
	case PM_SHEET_SERIES:
		sheet_put_series(str, cell->series, sheet->series_max, ascii);
		break;
	}
}

struct print {
	const struct pm_sheet *sheet;
	const struct pm_text *text;
	size_t rows;
	size_t width[PM_SHEET_COLUMNS];
};

static void sheet_measure_columns(struct print *print)
{
	const struct pm_sheet *sheet = print->sheet;
	struct pm_str cell = { 0 };

	for (size_t c = 0; c < sheet->columns_len; c++) {
		const struct pm_sheet_column *column = &sheet->columns[c];
		size_t *width = &print->width[c];

		if (!column->title)
			continue;
		*width = pm_columns(column->title);
		if (column->kind == PM_SHEET_PERCENT && *width < 6)
			*width = 6;
		for (size_t i = 0; i < print->rows; i++) {
			size_t columns;

			pm_str_clear(&cell);
			put_shown(sheet, column,
				  &sheet->cells.data[i * sheet->columns_len + c], 0,
				  print->text->report->ascii, &cell);
			columns = pm_str_columns(&cell);
			if (columns > *width)
				*width = columns;
		}
		if (column->max > 0 && *width > column->max)
			*width = column->max;
		if (print->text->report->width == 0 && is_text_column(column->kind))
			*width = PM_MIN(*width, PM_TEXT_UNLIMITED_COLUMNS);
	}
	pm_str_release(&cell);
}

/* Shortens texts to fit the screen, the longest first. */
static void sheet_squeeze_columns(struct print *print)
{
	const struct pm_sheet *sheet = print->sheet;
	size_t screen = print->text->report->width, sum = 1;

	for (size_t c = 0; c < sheet->columns_len; c++) {
		if (sheet->columns[c].title)
			sum += print->width[c] + GAP;
	}
	if (sum > GAP)
		sum -= GAP;
	while (screen > 0 && sum > screen) {
		size_t longest = PM_SHEET_COLUMNS;

		for (size_t c = 0; c < sheet->columns_len; c++) {
			if (sheet->columns[c].title &&
			    is_text_column(sheet->columns[c].kind) &&
			    print->width[c] > LEAST &&
			    (longest == PM_SHEET_COLUMNS ||
			     print->width[c] > print->width[longest]))
				longest = c;
		}
		if (longest == PM_SHEET_COLUMNS)
			return;
		print->width[longest]--;
		sum--;
	}
}

/* @row: 0 for the titles, otherwise the row's number plus 1. */
static bool sheet_print_row(const struct print *print, size_t row)
{
	const struct pm_sheet *sheet = print->sheet;
	const struct pm_text *text = print->text;
	PM_CLEANUP(pm_str_release) struct pm_str cell = { 0 };
	bool is_bounded = text->report->width > 0;
	size_t owed = 1;

	for (size_t c = 0; c < sheet->columns_len; c++) {
		const struct pm_sheet_column *column = &sheet->columns[c];
		size_t columns, blanks;

		if (!column->title)
			continue;
		pm_str_clear(&cell);
		if (row == 0)
			pm_str_puts(&cell, column->title);
		else
			put_shown(sheet, column,
				  &sheet->cells.data[(row - 1) * sheet->columns_len + c],
				  is_bounded ? print->width[c] : 0, text->report->ascii,
				  &cell);
		columns = pm_str_columns(&cell);
		blanks = PM_SUB_OR_0(print->width[c], columns);
		if (is_right(column->kind))
			owed += blanks;
		if (columns > 0 && strspn(cell.data, " ") < cell.len) {
			fprintf(text->to, "%*s", (int)owed, "");
			pm_text_put(text, row == 0 ? PM_COLOR_HEAD : PM_COLOR_PLAIN,
				    cell.data);
			owed = 0;
		} else {
			owed += columns;
		}
		if (!is_right(column->kind))
			owed += blanks;
		owed += GAP;
	}
	fputc('\n', text->to);
	return !cell.failed;
}

int pm_sheet_print(const struct pm_sheet *sheet, const struct pm_text *text)
{
	struct print print = { .sheet = sheet, .text = text };
	size_t all = pm_sheet_rows(sheet);
	bool fine = true;

	print.rows = all;
	if (text->report->limit < 0 && sheet->people > 0 && print.rows > sheet->people)
		print.rows = sheet->people;
	sheet_measure_columns(&print);
	sheet_squeeze_columns(&print);
	for (size_t row = 0; fine && row <= print.rows; row++)
		fine = sheet_print_row(&print, row);
	if (fine && print.rows < all && !text->report->quiet)
		fprintf(text->to, "  %s %zu more (--limit 0 shows all)\n",
			pm_text_ellipsis(text), all - print.rows);
	if (fine && sheet->has_buckets && !text->report->quiet)
		sheet_print_buckets(sheet, text);
	if (!fine)
		return -ENOMEM;
	return 0;
}

/* ---- for programs ------------------------------------------------------------------------ */

static void put_plain(const struct pm_sheet_column *column,
		      const struct pm_sheet_cell *cell, struct pm_str *out,
		      const char *between)
{
	switch (column->kind) {
	case PM_SHEET_TEXT:
	case PM_SHEET_NAME:
	case PM_SHEET_TAIL:
		break; /* quoted by the format */
	case PM_SHEET_PERCENT:
		pm_str_printf(out, "%.4f", cell->percent);
		break;
	case PM_SHEET_NUMBER:
	case PM_SHEET_WIDE_NS:
		pm_put_wide(out, cell->wide, false);
		break;
	case PM_SHEET_ADDRESS:
		pm_str_hex(out, cell->number);
		break;
	case PM_SHEET_SERIES:
		for (size_t i = 0; i < PM_SHEET_SERIES_LEN; i++) {
			pm_str_puts(out, i > 0 ? between : "");
			pm_str_u64(out, cell->series[i]);
		}
		break;
	case PM_SHEET_ID:
	case PM_SHEET_BOOL:
	case PM_SHEET_COUNT:
	case PM_SHEET_NS:
	case PM_SHEET_TIME_NS:
		pm_str_u64(out, cell->number);
		break;
	}
}

void pm_sheet_csv(const struct pm_sheet *sheet, const char *event, const char *separator,
		  bool titles, struct pm_str *out)
{
	if (titles) {
		pm_str_puts(out, "event");
		for (size_t c = 0; c < sheet->columns_len; c++)
			if (sheet->columns[c].name)
				pm_str_printf(out, "%s%s", separator,
					      sheet->columns[c].name);
		pm_str_putc(out, '\n');
	}
	for (size_t i = 0; i < pm_sheet_rows(sheet); i++) {
		pm_put_field(out, event, separator);
		for (size_t c = 0; c < sheet->columns_len; c++) {
			const struct pm_sheet_cell *cell =
				&sheet->cells.data[i * sheet->columns_len + c];

			if (!sheet->columns[c].name)
				continue;
			pm_str_puts(out, separator);
			if (is_text_column(sheet->columns[c].kind))
				pm_put_field(out, pm_text_or_empty(cell->text),
					     separator);
			else if (cell->known)
				put_plain(&sheet->columns[c], cell, out,
					  strchr(separator, ' ') ? ";" : " ");
		}
		pm_str_putc(out, '\n');
	}
}

static void sheet_put_json(const struct pm_sheet_column *column,
			   const struct pm_sheet_cell *cell, struct pm_str *out)
{
	const char *open = "", *close = "";

	if (column->kind == PM_SHEET_SERIES) {
		open = "[";
		close = "]";
	} else if (column->kind == PM_SHEET_ADDRESS) {
		open = close = "\"";
	}
	if (!cell->known) {
		pm_str_puts(out, "null");
	} else if (is_text_column(column->kind)) {
		pm_str_json(out, cell->text);
	} else if (column->kind == PM_SHEET_BOOL) {
		pm_str_puts(out, cell->number ? "true" : "false");
	} else {
		pm_str_puts(out, open);
		put_plain(column, cell, out, ",");
		pm_str_puts(out, close);
	}
	if (cell->start > 0) {
		pm_str_puts(out, ",\"start\":\"");
		pm_str_hex(out, cell->start);
		pm_str_putc(out, '"');
	}
}

void pm_sheet_json_rows(const struct pm_sheet *sheet, struct pm_str *out)
{
	pm_str_putc(out, '[');
	for (size_t i = 0; i < pm_sheet_rows(sheet); i++) {
		bool first = true;

		if (i > 0)
			pm_str_puts(out, ",");
		pm_str_puts(out, "\n{");
		for (size_t c = 0; c < sheet->columns_len; c++) {
			if (!sheet->columns[c].name)
				continue;
			if (!first)
				pm_str_puts(out, ",");
			pm_str_printf(out, "\"%s\":", sheet->columns[c].name);
			sheet_put_json(&sheet->columns[c],
				       &sheet->cells.data[i * sheet->columns_len + c],
				       out);
			first = false;
		}
		pm_str_putc(out, '}');
	}
	pm_str_putc(out, ']');
}

void pm_sheet_json(const struct pm_sheet *sheet, struct pm_str *out)
{
	pm_str_printf(out, ",\n\"list\":\"%s\",\"rows\":", sheet->name);
	pm_sheet_json_rows(sheet, out);
	if (sheet->has_buckets)
		sheet_json_buckets(sheet, out);
}

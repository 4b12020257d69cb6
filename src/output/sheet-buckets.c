/* SPDX-License-Identifier: MIT */
/* The number of values between powers of two. */
#include "sheet.h"

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
void pm_sheet_print_buckets(const struct pm_sheet *sheet, const struct pm_text *text)
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

void pm_sheet_json_buckets(const struct pm_sheet *sheet, struct pm_str *out)
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

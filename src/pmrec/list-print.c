/* SPDX-License-Identifier: MIT */
#include "list-internal.h"

#include <string.h>

enum {
	COLUMNS = 80,
	NAME_COLUMNS = 30, /* aliases start after this column */
};

static const char marks[] = { [PM_PERF_AVAILABLE] = '+',
			      [PM_PERF_USER_ONLY] = 'u',
			      [PM_PERF_COUNTS_ONLY] = 'c',
			      [PM_PERF_NOT_AVAILABLE] = '-' };
static const char *const states[] = { [PM_PERF_AVAILABLE] = "yes",
				      [PM_PERF_USER_ONLY] = "user",
				      [PM_PERF_COUNTS_ONLY] = "count",
				      [PM_PERF_NOT_AVAILABLE] = "no" };

/* ---- text ------------------------------------------------------------------------------- */

/* Appends the words of @text, indented by @indent and wrapped at COLUMNS. */
static void put_list_wrapped(struct pm_str *out, const char *text, size_t indent,
			     size_t column)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		if (column > indent && column + 1 + len > COLUMNS) {
			pm_str_printf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			pm_str_putc(out, ' ');
			column++;
		}
		pm_str_printable(out, text, len);
		column += len;
		text += len + strspn(text + len, " ");
	}
	pm_str_putc(out, '\n');
}

static void put_list_row(struct pm_str *out, const struct pm_rec_list_row *row)
{
	pm_str_printf(out, "  %c ", marks[row->available]);
	pm_str_printable(out, row->name, strlen(row->name));
	if (row->aliases) {
		size_t column = 4 + strlen(row->name);

		if (column < NAME_COLUMNS) {
			pm_str_printf(out, "%*s", (int)(NAME_COLUMNS - column), "");
			column = NAME_COLUMNS;
		}
		pm_str_puts(out, "  ");
		put_list_wrapped(out, row->aliases, NAME_COLUMNS + 2, NAME_COLUMNS + 2);
	} else {
		pm_str_putc(out, '\n');
	}
}

/* Finds the rows of a kind, which are adjacent: [*first, *end). */
static void find_rows(const struct pm_rec_list *list, enum pm_rec_list_kind kind,
		      size_t *first, size_t *end)
{
	for (*first = 0; *first < list->rows.len; ++*first)
		if (list->rows.data[*first].kind == kind)
			break;
	for (*end = *first; *end < list->rows.len; ++*end)
		if (list->rows.data[*end].kind != kind)
			break;
}

static void put_list_heading(struct pm_str *out, const char *kind, size_t works,
			     size_t all, bool color)
{
	pm_str_printf(out, "%s%s%s%s", pm_text_if(out->len, "\n"),
		      pm_text_if(color, "\033[1m"), kind, pm_text_if(color, "\033[0m"));
	if (works == all && all > 1)
		pm_str_printf(out, " (all %zu work here)\n", all);
	else if (works == all)
		pm_str_puts(out, all ? " (works here)\n" : " (none)\n");
	else
		pm_str_printf(out, " (%zu of %zu work here)\n", works, all);
}

/* Prints each reason once, below the rows. */
static void put_reasons(const struct pm_rec_list *list, size_t first, size_t end,
			struct pm_str *out)
{
	static const enum pm_perf_available kinds[] = { PM_PERF_USER_ONLY,
							PM_PERF_COUNTS_ONLY,
							PM_PERF_NOT_AVAILABLE };

	for (size_t k = 0; k < PM_ARRAY_LEN(kinds); k++) {
		const char *last = NULL;

		for (size_t i = first; i < end; i++) {
			const struct pm_rec_list_row *row = &list->rows.data[i];

			if (row->available != kinds[k] || !row->reason ||
			    row->reason == last)
				continue;
			last = row->reason;
			pm_str_printf(out, "  %c = ", marks[kinds[k]]);
			put_list_wrapped(out, row->reason, 6, 6);
			if (row->fix) {
				pm_str_puts(out, "      try: ");
				pm_str_printable(out, row->fix, strlen(row->fix));
				pm_str_putc(out, '\n');
			}
		}
	}
}

/* Appends "sched(24) signal(2) ...": the number of tracepoints of each system. */
static void put_systems(const struct pm_rec_list *list, size_t first, size_t end,
			struct pm_str *out)
{
	struct pm_str systems = { 0 };

	for (size_t i = first; i < end;) {
		const char *name = list->rows.data[i].name;
		size_t len = strcspn(name, ":"), same = i;

		while (same < end &&
		       strncmp(list->rows.data[same].name, name, len) == 0 &&
		       list->rows.data[same].name[len] == ':')
			same++;
		pm_str_printf(&systems, "%s%.*s(%zu)", systems.len ? " " : "", (int)len,
			      name, same - i);
		i = same > i ? same : i + 1;
	}
	pm_str_puts(out, "    ");
	put_list_wrapped(out, pm_str_text(&systems), 4, 4);
	pm_str_puts(out, "    pmrec --list tracepoint ['SYSTEM:*'] lists them.\n");
	if (systems.failed)
		out->failed = true;
	pm_str_release(&systems);
}

/* Appends the terms that each PMU accepts; they are in no row. */
static void put_pmus(const struct pm_rec_list *list, struct pm_str *out)
{
	for (size_t i = 0; i < list->pmus.list.len; i++) {
		const struct pm_pmu_about *pmu = &list->pmus.list.data[i];
		struct pm_str text = { 0 };

		if (pmu->terms.list.len == 0)
			continue;
		pm_str_printf(&text, "%s/", pmu->name);
		for (size_t j = 0; j < pmu->terms.list.len; j++)
			pm_str_printf(&text, "%s%s=N", j ? ", " : "",
				      pmu->terms.list.data[j]);
		pm_str_printf(&text, "/%s%s", pm_text_if(pmu->cpus, " on CPU "),
			      pm_text_or_empty(pmu->cpus));
		pm_str_puts(out, "    ");
		put_list_wrapped(out, pm_str_text(&text), 6, 4);
		pm_str_release(&text);
	}
}

void pm_rec_list_print_text(const struct pm_rec_list *list, bool color,
			    struct pm_str *out)
{
	for (int i = 0; i < PM_REC_LIST_KINDS; i++) {
		enum pm_rec_list_kind kind = (enum pm_rec_list_kind)i;
		size_t first, end, works = 0;

		if (!list->wanted[kind])
			continue;
		find_rows(list, kind, &first, &end);
		if (first == end && list->glob)
			continue;
		for (size_t at = first; at < end; at++)
			works += list->rows.data[at].available <= PM_PERF_USER_ONLY;
		put_list_heading(out, pm_rec_list_kind_names[kind], works, end - first,
				 color);
		if (kind == PM_REC_LIST_TRACEPOINT && list->no_tracepoints) {
			pm_str_puts(out, "  - = ");
			put_list_wrapped(out, list->no_tracepoints, 6, 6);
			if (list->no_tracepoints_fix)
				pm_str_printf(out, "      try: %s\n",
					      list->no_tracepoints_fix);
		} else if (kind == PM_REC_LIST_TRACEPOINT && list->sum_up_tracepoints &&
			   end > first) {
			put_systems(list, first, end, out);
		} else {
			for (size_t at = first; at < end; at++)
				put_list_row(out, &list->rows.data[at]);
		}
		if (kind == PM_REC_LIST_PMU && !list->glob)
			put_pmus(list, out);
		put_reasons(list, first, end, out);
	}
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void put_words(struct pm_str *out, const char *key, char *const *words, size_t len)
{
	pm_str_printf(out, ",\"%s\":[", key);
	for (size_t i = 0; i < len; i++) {
		if (i > 0)
			pm_str_putc(out, ',');
		pm_str_json(out, words[i]);
	}
	pm_str_putc(out, ']');
}

/* Writes the words of "a b" as an array. */
static void put_aliases(struct pm_str *out, const char *text)
{
	pm_str_puts(out, ",\"aliases\":[");
	for (size_t len; text && *text; text += len + strspn(text + len, " ")) {
		char word[PM_EVENT_NAME_MAX];

		len = strcspn(text, " ");
		snprintf(word, sizeof(word), "%.*s", (int)len, text);
		pm_str_json(out, word);
		if (text[len])
			pm_str_putc(out, ',');
	}
	pm_str_putc(out, ']');
}

static void json_row(struct pm_str *out, const struct pm_rec_list_row *row)
{
	pm_str_printf(out,
		      "{\"kind\":\"%s\",\"name\":", pm_rec_list_kind_names[row->kind]);
	pm_str_json(out, row->name);
	put_aliases(out, row->aliases);
	pm_str_printf(out, ",\"available\":\"%s\",\"reason\":", states[row->available]);
	pm_str_json(out, row->reason);
	pm_str_puts(out, ",\"fix\":");
	pm_str_json(out, row->fix);
	pm_str_putc(out, '}');
}

static void json_pmu(struct pm_str *out, const struct pm_pmu_about *pmu)
{
	pm_str_puts(out, "{\"name\":");
	pm_str_json(out, pmu->name);
	pm_str_printf(out, ",\"type\":%u,\"cpus\":", pmu->type);
	pm_str_json(out, pmu->cpus);
	put_words(out, "events", pmu->events.list.data, pmu->events.list.len);
	put_words(out, "terms", pmu->terms.list.data, pmu->terms.list.len);
	pm_str_putc(out, '}');
}

void pm_rec_list_print_json(const struct pm_rec_list *list, struct pm_str *out)
{
	pm_str_puts(out, "{\"format\":\"pmrec-events\",\"version\":1,\"events\":[");
	for (size_t i = 0; i < list->rows.len; i++) {
		pm_str_puts(out, i ? ",\n" : "\n");
		json_row(out, &list->rows.data[i]);
	}
	pm_str_puts(out, "],\n\"pmus\":[");
	for (size_t i = 0; i < list->pmus.list.len; i++) {
		pm_str_puts(out, i ? ",\n" : "\n");
		json_pmu(out, &list->pmus.list.data[i]);
	}
	pm_str_puts(out, "]");
	if (list->no_tracepoints) {
		pm_str_puts(out, ",\n\"no_tracepoints\":");
		pm_str_json(out, list->no_tracepoints);
	}
	pm_str_puts(out, "}\n");
}

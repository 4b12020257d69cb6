/* SPDX-License-Identifier: MIT */
/* Comparisons made by hand: for tests of what shows them. */
#pragma once

#include "pm/compare.h"

#include <math.h>
#include <string.h>

#define COMPARE_CHECK(condition)  \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static inline char *compare_text(const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	COMPARE_CHECK(copy || !text);
	return copy;
}

static inline void compare_begin(struct pm_comparison *comparison,
				 enum pm_verdict verdict)
{
	*comparison = (struct pm_comparison){
		.base = { .name = compare_text("v1.2"),
			  .commit = compare_text(
				  "3f2a1bc0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a4"),
			  .subject = compare_text("Tidy up the parser"),
			  .created = compare_text("2024-05-06T07:08:09Z"),
			  .command = compare_text("./bench 100"),
			  .documents = 1,
			  .runs = 20 },
		.new = { .name = compare_text("HEAD"),
			 .commit =
				 compare_text("9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e0d"),
			 .subject = compare_text("Know escapes"),
			 .created = compare_text("2024-05-06T07:08:10Z"),
			 .command = compare_text("./bench 100"),
			 .documents = 1,
			 .runs = 20 },
		.engine = compare_text("callgrind"),
		.cpu_model = compare_text("A CPU of 3 GHz"),
		.verdict = verdict,
	};
}

/* The smallest, the middle and the largest of @len numbers are found here. */
static inline void compare_side(struct pm_compare_side *side, const double *values,
				size_t len)
{
	*side = (struct pm_compare_side){
		.known = true,
		.len = len,
		.min = INFINITY,
		.max = -INFINITY,
		.median = values[len / 2],
		.share = NAN,
	};
	side->values = malloc(len * sizeof(*values));
	COMPARE_CHECK(side->values);
	memcpy(side->values, values, len * sizeof(*values));
	for (size_t i = 0; i < len; i++) {
		side->min = fmin(side->min, values[i]);
		side->max = fmax(side->max, values[i]);
	}
}

/* One value a side; NaN: not known. The change follows. */
static inline struct pm_compare_row *compare_row(struct pm_comparison *comparison,
						 const char *scope, const char *event,
						 const char *unit, double base,
						 double new, enum pm_verdict verdict)
{
	struct pm_compare_row row = {
		.subject = scope ? PM_COMPARE_SCOPE : PM_COMPARE_PROGRAM,
		.scope = compare_text(scope),
		.event = compare_text(event),
		.unit = compare_text(unit),
		.class = PM_STAT_EXACT,
		.method = "exact",
		.better = -1,
		.base = { .median = NAN, .min = NAN, .max = NAN, .share = NAN },
		.new = { .median = NAN, .min = NAN, .max = NAN, .share = NAN },
		.p = NAN,
		.p_holm = NAN,
		.gate = NAN,
		.at_most = NAN,
		.verdict = verdict,
	};

	if (!isnan(base))
		compare_side(&row.base, &base, 1);
	if (!isnan(new))
		compare_side(&row.new, &new, 1);
	row.change = base == 0 && new == 0 ? 0 : new / base - 1;
	row.low = row.high = row.change;
	COMPARE_CHECK(pm_vec_push(&comparison->rows, row) == 0);
	return &comparison->rows.data[comparison->rows.len - 1];
}

static inline void compare_gate(struct pm_compare_row *row, double gate,
				const char *source)
{
	row->gated = true;
	row->gate = gate;
	row->gate_source = source;
}

static inline void compare_place(struct pm_compare_row *row, const char *module,
				 const char *file, uint32_t line)
{
	free(row->module);
	free(row->file);
	row->module = compare_text(module);
	row->file = compare_text(file);
	row->line = line;
}

static inline void compare_why(struct pm_compare_row *row, const char *why)
{
	free(row->why);
	row->why = compare_text(why);
}

static inline void compare_warning(struct pm_comparison *comparison, const char *text)
{
	COMPARE_CHECK(pm_vec_push(&comparison->warnings, compare_text(text)) == 0);
}

/* A number that varies, twenty times a side. */
static inline struct pm_compare_row *compare_noisy(struct pm_comparison *comparison,
						   const char *event, double base,
						   double new, enum pm_verdict verdict)
{
	struct pm_compare_row *row =
		compare_row(comparison, NULL, event, "ns", NAN, NAN, verdict);
	double values[2][20];

	for (size_t i = 0; i < 20; i++) {
		double part = 1 + 0.002 * ((double)i - 10);

		values[0][i] = base * part;
		values[1][i] = new *part;
	}
	compare_side(&row->base, values[0], 20);
	compare_side(&row->new, values[1], 20);
	row->class = PM_STAT_NOISY;
	row->method = "Hodges-Lehmann";
	row->change = new / base - 1;
	row->low = row->change - 0.012;
	row->high = row->change + 0.011;
	row->p = 0.0001;
	row->p_holm = 0.0004;
	return row;
}

/* One of each kind that there is, with texts that need care. */
static inline void compare_whole(struct pm_comparison *comparison)
{
	struct pm_compare_row *row;

	compare_begin(comparison, PM_VERDICT_WORSE);
	row = compare_row(comparison, "ns::parse(int, char)", "sim.Ir", "", 1234567,
			  1271604, PM_VERDICT_WORSE);
	compare_place(row, "bench", "/tmp/tree/src/pa rse.cc", 12);
	compare_gate(row, 0.005, "--gate");
	row = compare_noisy(comparison, "wall-time", 12.3e6, 13.01e6, PM_VERDICT_WORSE);
	compare_gate(row, 0.03, "default");
	row = compare_noisy(comparison, "task-clock", 12.3e6, 12.6e6,
			    PM_VERDICT_INCONCLUSIVE);
	compare_gate(row, 0.03, "pmdiff.json");
	compare_why(row, "The interval contains the gate: more runs would tell.");
	row = compare_row(comparison, NULL, "cycles", "", NAN, NAN, PM_VERDICT_UNKNOWN);
	compare_gate(row, 0.01, "--gate");
	compare_why(row, "This machine has no PMU.");
	row = compare_row(comparison, NULL, "instructions", "", NAN, NAN,
			  PM_VERDICT_UNKNOWN);
	compare_why(row, "This machine has no PMU.");
	row = compare_row(comparison, "grow", "calls", "", 0, 7, PM_VERDICT_WORSE);
	compare_place(row, "bench", "src/grow.c", 0);
	row->low = row->high = NAN;
	compare_row(comparison, NULL, "page-faults", "", 100, 130, PM_VERDICT_CHANGED)
		->better = 0;
	row = compare_row(comparison, "lookup", "sim.Ir", "", 4000, 3000,
			  PM_VERDICT_BETTER);
	compare_place(row, "libtable.so", "src/table.c", 99);
	row->inlined_new = true;
	row = compare_row(comparison, "added", "calls", "", NAN, 4, PM_VERDICT_NEW);
	row = compare_row(comparison, "removed", "calls", "", 4, NAN, PM_VERDICT_GONE);
	row = compare_row(comparison, NULL, "max-rss", "bytes", 4096000, 4096000,
			  PM_VERDICT_SAME);
	compare_gate(row, 0.1, "default");
	compare_row(comparison, "operator|<a>", "calls", "", 5, 5, PM_VERDICT_SAME);
	compare_row(comparison, NULL, "context-switches", "", 3, 3,
		    PM_VERDICT_INCONCLUSIVE);
	compare_warning(comparison, "1 run of base did not end well: it is left out.");
}

/* ---- cases ----------------------------------------------------------------------------- */

static inline void compare_hot_row(struct pm_hot_rows *rows, const char *function,
				   const char *file, uint32_t line, double base,
				   double new)
{
	struct pm_hot_row row = { .function = compare_text(function),
				  .module = compare_text("bench"),
				  .file = compare_text(file),
				  .line = line,
				  .base = base,
				  .new = new };

	COMPARE_CHECK(pm_vec_push(&rows->list, row) == 0);
}

static inline struct pm_hot *compare_hot(void)
{
	struct pm_hot *hot = calloc(1, sizeof(*hot));

	COMPARE_CHECK(hot);
	hot->exact = true;
	hot->event = compare_text("sim.Ir");
	hot->unit = "";
	hot->all[0] = 1000000;
	hot->all[1] = 1037037;
	hot->page = compare_text("/tmp/out/pmdiff-flame-a_b.html");
	hot->self.more = 3;
	compare_hot_row(&hot->self, "ns::parse(int, char)", "src/pa rse.cc", 12, 1000,
			38037);
	compare_hot_row(&hot->self, NULL, NULL, 0, 0, 12);
	compare_hot_row(&hot->total, "main|<b>", "src/main.cc", 1, 2000, 39037);
	compare_hot_row(&hot->lines, "ns::parse(int, char)", "src/pa rse.cc", 13, 0,
			37037);
	return hot;
}

static inline struct pm_compare_case *compare_case(struct pm_comparison *comparison,
						   const char *name,
						   enum pm_verdict verdict,
						   const char *why, size_t first,
						   size_t len)
{
	struct pm_compare_case one = { .name = compare_text(name),
				       .engine = compare_text("callgrind"),
				       .verdict = verdict,
				       .why = compare_text(why),
				       .first = first,
				       .len = len };
	size_t at = comparison->cases.len;

	COMPARE_CHECK(pm_vec_push(&comparison->cases, one) == 0);
	for (size_t i = first; i < first + len; i++) {
		comparison->rows.data[i].case_at = at;
		comparison->rows.data[i].case_name = comparison->cases.data[at].name;
	}
	return &comparison->cases.data[at];
}

/* The same rows, of four cases; one has failed, and one is new. */
static inline void compare_cases(struct pm_comparison *comparison)
{
	compare_whole(comparison);
	compare_case(comparison, "BM_<a|b>/64", PM_VERDICT_WORSE, NULL, 0, 6)->hot =
		compare_hot();
	compare_case(comparison, "`x` @everybody \xc2\xb5s", PM_VERDICT_SAME, NULL, 6,
		     comparison->rows.len - 7);
	compare_case(comparison, "broken", PM_VERDICT_UNKNOWN,
		     "./bench was ended by signal 6", 0, 0)
		->failed_new = true;
	compare_case(comparison, "fresh", PM_VERDICT_NEW, NULL, comparison->rows.len - 1,
		     1);
}

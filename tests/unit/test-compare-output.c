/* SPDX-License-Identifier: MIT */
/* Comparisons as people, services and programs read them: of documents made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/compare-output.h"
#include "tests/compare-documents.h"

typedef int output_fn(const struct pm_compare_report *report, FILE *to,
		      struct pm_error *err);

static output_fn *const formats[] = {
	pm_output_compare_text,  pm_output_compare_markdown, pm_output_compare_json,
	pm_output_compare_junit, pm_output_compare_sarif,    pm_output_compare_html,
};

static char *stream_text; /* of the last one */
static size_t stream_len;

static const char *written(output_fn *output, const struct pm_compare_report *report)
{
	FILE *to;

	free(stream_text);
	stream_text = NULL;
	to = open_memstream(&stream_text, &stream_len);
	assert_non_null(to);
	assert_int_equal(output(report, to, NULL), 0);
	fclose(to);
	return stream_text;
}

static const char *text_of(const struct pm_comparison *comparison)
{
	struct pm_compare_report report = { .comparison = comparison, .width = 80 };

	return written(pm_output_compare_text, &report);
}

static const char *plain(output_fn *output, const struct pm_comparison *comparison)
{
	struct pm_compare_report report = { .comparison = comparison };

	return written(output, &report);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("not there: %s\n\tin:\n%.3000s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("there: %s\n\tin:\n%.3000s", part, text);
}

static void assert_fits(const char *text, size_t columns)
{
	size_t at = 0;

	for (const char *c = text; *c; c++) {
		at = *c == '\n' ? 0 : at + (((unsigned char)*c & 0xc0) != 0x80);
		if (at > columns)
			fail_msg("wider than %zu:\n%s", columns, text);
	}
}

/* ---- text ------------------------------------------------------------------------------ */

static void test_text(void **state)
{
	struct pm_comparison comparison;

	compare_whole(&comparison);
	assert_string_equal(
		text_of(&comparison),
		"worse, 2 of 5 gated numbers beyond the gate: fn:ns::parse(int, char):sim.Ir\n"
		"  +3.00 %\n"
		"\n"
		"base  v1.2  3f2a1bc0  Tidy up the parser  20 runs\n"
		"new   HEAD  9e8d7c6b  Know escapes  20 runs\n"
		"engine callgrind  CPU A CPU of 3 GHz\n"
		"warning: 1 run of base did not end well: it is left out.\n"
		"\n"
		"beyond the gate\n"
		"  ns::parse(int, char)  pa rse.cc:12  bench\n"
		"    sim.Ir            1,234,567  1,271,604   +3.00 %\n"
		"      gate 0.5 % (--gate); exact, 1 run a side\n"
		"  the program\n"
		"    wall-time          12.30 ms   13.01 ms   +5.77 %  +4.57 … +6.87 %\n"
		"      gate 3 % (default); Hodges-Lehmann, 20 runs a side, p 4e-04\n"
		"\n"
		"gated, and not decided\n"
		"  the program\n"
		"    task-clock         12.30 ms   12.60 ms   +2.44 %  +1.24 … +3.54 %\n"
		"      gate 3 % (pmdiff.json); Hodges-Lehmann, 20 runs a side, p 4e-04\n"
		"      The interval contains the gate: more runs would tell.\n"
		"    cycles                    -          -         -\n"
		"      gate 1 % (--gate); exact\n"
		"      This machine has no PMU.\n"
		"\n"
		"worse, without a gate\n"
		"  grow  grow.c  bench\n"
		"    calls                     0          7    from 0\n"
		"      exact, 1 run a side\n"
		"\n"
		"changed\n"
		"  the program\n"
		"    page-faults             100        130  +30.00 %\n"
		"      exact, 1 run a side\n"
		"\n"
		"better\n"
		"  lookup  table.c:99  libtable.so  (inlined now)\n"
		"    sim.Ir                4,000      3,000  -25.00 %\n"
		"      exact, 1 run a side\n"
		"\n"
		"new\n"
		"  added\n"
		"    calls                     -          4         -\n"
		"\n"
		"gone\n"
		"  removed\n"
		"    calls                     4          -         -\n"
		"\n"
		"inconclusive, without a gate\n"
		"  the program\n"
		"    context-switches          3          3       0 %\n"
		"      exact, 1 run a side\n"
		"\n"
		"unknown: instructions – This machine has no PMU.\n"
		"unchanged: 2 numbers (--all shows them)\n");
	pm_comparison_release(&comparison);
}

static void test_text_options(void **state)
{
	struct pm_comparison comparison;
	struct pm_compare_report report = { .comparison = &comparison, .all = true };
	const char *text;

	compare_whole(&comparison);
	text = written(pm_output_compare_text, &report);
	assert_has(text, "\nunchanged\n  the program\n    max-rss ");
	assert_has(text, "operator|<a>");
	assert_has(text, "\nunknown\n  the program\n    instructions ");
	assert_lacks(text, "--all");
	report = (struct pm_compare_report){ .comparison = &comparison, .quiet = true };
	text = written(pm_output_compare_text, &report);
	assert_lacks(text, "base  v1.2");
	assert_lacks(text, "warning");
	assert_lacks(text, "\n\n");
	assert_has(text, "sim.Ir");
	report = (struct pm_compare_report){ .comparison = &comparison, .ascii = true };
	text = written(pm_output_compare_text, &report);
	for (const char *c = text; *c; c++)
		assert_true((unsigned char)*c < 0x80);
	assert_lacks(text, "\033");
	report = (struct pm_compare_report){ .comparison = &comparison, .color = true };
	assert_has(written(pm_output_compare_text, &report), "\033[1;31mworse, 2 of 5");
	pm_comparison_release(&comparison);
}

static void test_text_narrow(void **state)
{
	struct pm_comparison comparison;
	struct pm_compare_report report = { .comparison = &comparison, .width = 64 };
	struct pm_compare_row *row;
	const char *text;

	compare_begin(&comparison, PM_VERDICT_WORSE);
	row = compare_row(
		&comparison,
		"std::vector<std::pair<int, long>>::_M_realloc_insert<int>(int&&, long)",
		"L1-dcache-load-misses:u", "", 12345678, 22345678, PM_VERDICT_WORSE);
	compare_place(row, "a-module-with-a-name", "some/where/vector.tcc", 426);
	compare_gate(row, 0.005, "--gate");
	text = written(pm_output_compare_text, &report);
	assert_fits(text, 64);
	assert_has(text, "_M_realloc_insert");
	assert_has(text, "vector.tcc:426");
	assert_has(text, "+81.00 %");
	/* Too small for a double, but not 0. */
	row->p_holm = 0;
	assert_has(written(pm_output_compare_text, &report), "p < 1e-12\n");
	pm_comparison_release(&comparison);
}

static void test_verdicts(void **state)
{
	static const struct {
		enum pm_verdict all, row;
		bool gated;
		const char *first;
	} cases[] = {
		{ PM_VERDICT_SAME, PM_VERDICT_SAME, true,
		  "nothing beyond the gate, 1 of 1 gated numbers changed within it: calls "
		  "+25.00 %\n" },
		{ PM_VERDICT_SAME, PM_VERDICT_SAME, false, "no change\n" },
		{ PM_VERDICT_BETTER, PM_VERDICT_BETTER, true,
		  "better, 1 number is better: calls +25.00 %\n" },
		{ PM_VERDICT_CHANGED, PM_VERDICT_CHANGED, false,
		  "changed, 1 number is not as before: calls +25.00 %\n" },
		{ PM_VERDICT_WORSE, PM_VERDICT_WORSE, true,
		  "worse, 1 of 1 gated numbers beyond the gate: calls +25.00 %\n" },
		{ PM_VERDICT_SAME, PM_VERDICT_WORSE, false,
		  "nothing beyond the gate, 1 number is not as before: calls +25.00 %\n" },
		{ PM_VERDICT_INCONCLUSIVE, PM_VERDICT_INCONCLUSIVE, true,
		  "inconclusive, 1 of 1 gated numbers not decided: calls\n" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_comparison comparison;
		struct pm_compare_row *row;
		const char *text;

		compare_begin(&comparison, cases[i].all);
		row = compare_row(&comparison, NULL, "calls", "", 4, 5, cases[i].row);
		row->gated = cases[i].gated;
		text = text_of(&comparison);
		if (strncmp(text, cases[i].first, strlen(cases[i].first)) != 0)
			fail_msg("case %zu: %s", i, text);
		pm_comparison_release(&comparison);
	}
}

/* "worse: calls -10 %" would contradict itself. */
static void test_hard_limit(void **state)
{
	struct pm_comparison comparison;
	struct pm_compare_report report = { .comparison = &comparison };
	struct pm_compare_row *row;
	const char *text;

	compare_begin(&comparison, PM_VERDICT_WORSE);
	row = compare_row(&comparison, NULL, "calls", "", 100, 90, PM_VERDICT_WORSE);
	compare_gate(row, INFINITY, "--gate");
	row->at_most = 80;
	text = written(pm_output_compare_text, &report);
	assert_has(text, "worse, 1 of 1 gated numbers beyond the gate: calls\n");
	assert_has(text, "gate at most 80 (--gate)");
	pm_comparison_release(&comparison);
}

/* What is gated and changed is no worse than its gate, but not unchanged either. */
static void test_within(void **state)
{
	static const char first[] =
		"nothing beyond the gate, 1 number without a gate is not "
		"as before: fn:f:sim.Ir +5.00 %";
	struct pm_comparison comparison;
	struct pm_compare_row *row;
	const char *text;

	compare_begin(&comparison, PM_VERDICT_SAME);
	row = compare_row(&comparison, NULL, "sim.Ir", "", 10000, 10098, PM_VERDICT_SAME);
	compare_gate(row, 0.01, "--gate");
	row = compare_row(&comparison, "f", "sim.Ir", "", 100, 105, PM_VERDICT_WORSE);
	/* What chance explains is no change. */
	row = compare_row(&comparison, NULL, "task-clock", "ns", 500, 501,
			  PM_VERDICT_SAME);
	compare_gate(row, 0.03, "default");
	row->low = -0.01;
	text = plain(pm_output_compare_text, &comparison);
	assert_int_equal(strncmp(text, first, strlen(first)), 0);
	assert_has(
		text,
		"\nwithin the gate\n  the program\n    sim.Ir  10,000  10,098  +0.98 %\n"
		"      gate 1 % (--gate); exact");
	assert_has(text, "unchanged: 1 number (");
	text = plain(pm_output_compare_markdown, &comparison);
	assert_has(text,
		   "nothing beyond the gate, 1 number without a gate is not as before: ");
	assert_has(text, "<summary>1 within the gate</summary>");
	assert_has(text, "| +0.98 % | within the gate | 1 % (--gate) |");
	assert_has(text, "<summary>1 unchanged</summary>");
	assert_has(plain(pm_output_compare_junit, &comparison), first);
	pm_comparison_release(&comparison);
}

/* ---- numbers --------------------------------------------------------------------------- */

static void test_numbers(void **state)
{
	static const struct {
		const char *unit;
		double base, new;
		const char *shown;
	} cases[] = {
		{ "", 1000000, 1000001, "1,000,000  1,000,001  +0.0001 %\n" },
		{ "", 1e9, 1001000000, "1,000 M  1,001 M  +0.10 %\n" },
		{ "", 1, 12, "1  12  12 times\n" },
		{ "", 0, 3, "0  3  from 0\n" },
		{ "", 0, 0, "0  0  0 %\n" },
		{ "", 3, 0, "3  0  -100 %\n" },
		{ "", 1e300, 2e300, "1e+288 T  2e+288 T  +100 %\n" },
		{ "ns", 1500, 1e9, "1.500 µs  1.000 s  6.667e+05 times\n" },
		{ "bytes", 4096, 8192, "4.000 KiB  8.000 KiB  +100 %\n" },
		{ "J", 0.5, 0.25, "0.500 J  0.250 J  -50.00 %\n" },
		{ "", NAN, 4, "-  4  -\n" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_comparison comparison;
		const char *line;

		compare_begin(&comparison, PM_VERDICT_CHANGED);
		compare_row(&comparison, NULL, "x", cases[i].unit, cases[i].base,
			    cases[i].new, PM_VERDICT_CHANGED);
		line = strstr(text_of(&comparison), "    x  ");
		assert_non_null(line);
		if (strncmp(line + 7, cases[i].shown, strlen(cases[i].shown)) != 0)
			fail_msg("case %zu: %.70s", i, line);
		pm_comparison_release(&comparison);
	}
}

/* A share is compared in points, and stands on samples. */
static void test_shares(void **state)
{
	struct pm_comparison comparison;
	struct pm_compare_row *row;
	const char *text;

	compare_begin(&comparison, PM_VERDICT_CHANGED);
	comparison.recordings = true;
	row = compare_row(&comparison, "work", "cycles self", "%", 20, 31.5,
			  PM_VERDICT_WORSE);
	row->subject = PM_COMPARE_FUNCTION;
	row->change = 0.115;
	row->low = 0.1;
	row->high = 0.13;
	row->method = "two shares";
	row->base.samples = 2000;
	row->new.samples = 3150;
	text = text_of(&comparison);
	assert_has(text, "20.00 %  31.50 %  +11.50 points  +10.00 … +13.00\n");
	assert_has(text, "two shares, 2,000 and 3,150 samples\n");
	text = plain(pm_output_compare_html, &comparison);
	assert_lacks(text, "<svg");
	assert_has(plain(pm_output_compare_json, &comparison),
		   "\"samples\":3150,\"share\":null}");
	row = compare_row(&comparison, "other", "cpu-clock self", "ns", 2e9, 3e9,
			  PM_VERDICT_WORSE);
	row->subject = PM_COMPARE_FUNCTION;
	row->base.samples = 2000;
	row->new.samples = 3000;
	row->base.share = 20;
	row->new.share = 31.5;
	text = text_of(&comparison);
	assert_has(text, "2.000 s  3.000 s       +50.00 %\n");
	assert_has(text, "2,000 and 3,000 samples, 20.00 % and 31.50 % of all\n");
	pm_comparison_release(&comparison);
}

/* ---- hostile text ---------------------------------------------------------------------- */

static void make_hostile(struct pm_comparison *comparison)
{
	static const char name[] =
		"a|b`c``d\\|@user #12 <script>alert(1)</script>\033[31m\n"
		"\xe2\x80\xae evil \xff ]]> & \"q\" 'x' https://x.y ![z](u)";
	struct pm_compare_row *row;

	compare_begin(comparison, PM_VERDICT_WORSE);
	free(comparison->base.name);
	comparison->base.name = compare_text(name);
	free(comparison->base.subject);
	comparison->base.subject = compare_text(name);
	free(comparison->cpu_model);
	comparison->cpu_model = compare_text(name);
	compare_warning(comparison, name);
	row = compare_row(comparison, name, name, name, 1, 2, PM_VERDICT_WORSE);
	compare_place(row, name, name, 3);
	compare_why(row, name);
	compare_gate(row, 0, name);
}

static void test_hostile(void **state)
{
	struct pm_comparison comparison;

	make_hostile(&comparison);
	for (size_t i = 0; i < PM_ARRAY_LEN(formats); i++) {
		const char *text = plain(formats[i], &comparison);

		assert_lacks(text, "\033");
		assert_lacks(text, "\xff");
		if (formats[i] != pm_output_compare_json &&
		    formats[i] != pm_output_compare_sarif &&
		    formats[i] != pm_output_compare_text)
			assert_lacks(text, "\xe2\x80\xae");
	}
	assert_lacks(plain(pm_output_compare_html, &comparison), "<script");
	assert_lacks(plain(pm_output_compare_junit, &comparison), "<script");
	assert_lacks(plain(pm_output_compare_junit, &comparison), "]]>");
	pm_comparison_release(&comparison);
}

/* How many pipes of a line end cells. */
static size_t cells_of(const char *line)
{
	size_t pipes = 0;

	for (const char *c = line; *c && *c != '\n'; c++) {
		if (*c == '\\' && c[1])
			c++;
		else
			pipes += *c == '|';
	}
	return pipes;
}

static void test_markdown_hostile(void **state)
{
	struct pm_comparison comparison;
	const char *text, *row;

	make_hostile(&comparison);
	text = plain(pm_output_compare_markdown, &comparison);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		assert_true(line[0] != '|' || cells_of(line) == 8);
	}
	/* Outside of tables a backslash in code is one. */
	assert_has(text, "Engine and CPU: ``` callgrind, a|b`c``d");
	/* In sentences nothing is a mention, a link or markup. */
	row = strstr(text, "- Warning: ");
	assert_non_null(row);
	assert_has(row, "- Warning: a\\|b\\`c\\`\\`d");
	assert_has(row, "\\@\xe2\x80\x8buser \\#\xe2\x80\x8b");
	assert_has(row, "\\<script\\>");
	assert_has(row, "https\\://x\\.y \\!\\[z\\](u)");
	/* Names are code, fenced by more backticks than they have. */
	assert_has(text, "``` fn:a\\|b`c``d");
	pm_comparison_release(&comparison);
}

/* ---- sizes ----------------------------------------------------------------------------- */

enum {
	MANY = 10000,
};

static void make_many(struct pm_comparison *comparison, enum pm_verdict verdict)
{
	compare_begin(comparison, PM_VERDICT_WORSE);
	for (unsigned i = 0; i < MANY; i++) {
		char name[64];
		struct pm_compare_row *row;

		snprintf(name, sizeof(name), "function_%u", i);
		row = compare_row(comparison, name, "sim.Ir", "", 1000 + i, 2000 + i,
				  verdict);
		compare_gate(row, 0.01, "default");
		compare_place(row, "bench", "src/bench.c", i + 1);
	}
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (; (text = strstr(text, part)) != NULL; text++)
		count++;
	return count;
}

static void test_markdown_limit(void **state)
{
	static const size_t limits[] = { 0, 20000, 3000, 1 };
	static const enum pm_verdict verdicts[] = { PM_VERDICT_WORSE, PM_VERDICT_SAME };

	for (size_t v = 0; v < PM_ARRAY_LEN(verdicts); v++) {
		struct pm_comparison comparison;

		make_many(&comparison, verdicts[v]);
		for (size_t i = 0; i < PM_ARRAY_LEN(limits); i++) {
			struct pm_compare_report report = { .comparison = &comparison,
							    .limit_bytes = limits[i] };
			const char *text = written(pm_output_compare_markdown, &report);
			size_t rows = count_of(text, "| `fn:function_");
			char told[64];

			/* The heading is not left out. */
			if (limits[i] != 1)
				assert_true(stream_len <=
					    (limits[i] > 0 ? limits[i] : 65000));
			assert_int_equal(count_of(text, "<details"),
					 count_of(text, "</details>"));
			snprintf(told, sizeof(told), "\n%zu more numbers are left out",
				 MANY - rows);
			assert_has(text, told);
			assert_true(limits[i] == 1 ? rows == 0 : rows > 0);
		}
		pm_comparison_release(&comparison);
	}
}

static void test_many(void **state)
{
	struct pm_comparison comparison;

	make_many(&comparison, PM_VERDICT_WORSE);
	for (size_t i = 0; i < PM_ARRAY_LEN(formats); i++)
		assert_has(plain(formats[i], &comparison), "function_0");
	assert_has(text_of(&comparison), "… and 9950 more (--all)\n");
	pm_comparison_release(&comparison);
}

/* A name may be as long as it likes. */
static void test_long_names(void **state)
{
	struct pm_comparison comparison;
	struct pm_compare_row *row;
	char *name = malloc(100001);

	assert_non_null(name);
	memset(name, '_', 100000);
	name[100000] = '\0';
	compare_begin(&comparison, PM_VERDICT_WORSE);
	row = compare_row(&comparison, name, "calls", "", 1, 2, PM_VERDICT_WORSE);
	compare_place(row, name, name, 1);
	compare_why(row, name);
	compare_gate(row, 0, name);
	for (int i = 0; i < 100; i++)
		compare_warning(&comparison, name);
	free(comparison.base.name);
	comparison.base.name = name;
	plain(pm_output_compare_markdown, &comparison);
	assert_true(stream_len < 65000);
	assert_has(stream_text, "| worse |");
	assert_has(stream_text, "and 80 more");
	for (size_t i = 0; i < PM_ARRAY_LEN(formats); i++)
		plain(formats[i], &comparison);
	pm_comparison_release(&comparison);
}

/* ---- documents for machines ------------------------------------------------------------ */

/* tests/oracle/diff-schema.py holds them against schemas; here is what those do not know. */
static void test_json(void **state)
{
	struct pm_comparison comparison;
	const char *text;

	compare_whole(&comparison);
	text = plain(pm_output_compare_json, &comparison);
	assert_has(text, "\"verdict\":\"worse\",\n\"counts\":{\"rows\":13,\"gated\":5,"
			 "\"same\":2,\"better\":1,\"changed\":1,\"worse\":3,");
	assert_has(text, "\"base\":{\"median\":1234567,\"min\":1234567,\"max\":1234567,"
			 "\"values\":[1234567]}");
	assert_has(text, "\"change\":null,\"from_zero\":true");
	assert_has(text, "\"base\":null,\"new\":null,\"change\":null");
	assert_lacks(text, "nan");
	assert_lacks(text, ":inf");
	pm_comparison_release(&comparison);
}

static void test_junit(void **state)
{
	struct pm_comparison comparison;
	const char *text;

	compare_whole(&comparison);
	text = plain(pm_output_compare_junit, &comparison);
	assert_has(text, "tests=\"5\" failures=\"2\" errors=\"0\" skipped=\"2\"");
	assert_int_equal(count_of(text, "<testcase "), 5);
	assert_int_equal(count_of(text, "<failure "), 2);
	assert_int_equal(count_of(text, "<skipped "), 2);
	assert_has(text, "<skipped message=\"unknown: This machine has no PMU.\"/>");
	pm_comparison_release(&comparison);
}

static void test_sarif(void **state)
{
	struct pm_comparison comparison;
	struct pm_compare_report report = { .comparison = &comparison,
					    .root = "/tmp/tree/" };
	const char *text;

	compare_whole(&comparison);
	text = written(pm_output_compare_sarif, &report);
	assert_int_equal(count_of(text, "\"ruleId\":"), 2);
	assert_has(text, "\"uri\":\"src/pa%20rse.cc\",\"uriBaseId\":\"%SRCROOT%\"}");
	assert_has(text, "\"region\":{\"startLine\":12}");
	/* What has no place is told nevertheless. */
	assert_has(text,
		   "{\"level\":\"error\",\"message\":{\"text\":\"wall-time: +5.77 %");
	report.root = "/tmp/tree/sr";
	text = written(pm_output_compare_sarif, &report);
	assert_has(text, "\"uri\":\"file:///tmp/tree/src/pa%20rse.cc\"}");
	pm_comparison_release(&comparison);
}

/* Services show documents, not standard error: why there is no comparison stands in each. */
/* Each form has a heading for each case, and foreign names are harmless in it. */
static void test_cases(void **state)
{
	static int (*const forms[])(const struct pm_compare_report *report, FILE *to,
				    struct pm_error *err) = {
		pm_output_compare_text,  pm_output_compare_markdown,
		pm_output_compare_json,  pm_output_compare_junit,
		pm_output_compare_sarif, pm_output_compare_html,
	};
	static const char *const expected[][4] = {
		{ "BM_<a|b>/64: worse", "broken: failed: ./bench was ended by signal 6",
		  "fresh: new", "+37,037 in ns::parse" },
		{ "| ❌ | `BM_<a\\|b>/64` |", "| ❔ | `broken` |", "#### ❌ `BM_<a|b>/64`",
		  "| `main\\|<b>` |" },
		{ "{\"name\":\"BM_<a|b>/64\",\"verdict\":\"worse\"",
		  "\"failed_new\":true",
		  "{\"case\":\"BM_<a|b>/64\",\"subject\":\"scope\"", "\"added\":37037" },
		{ "name=\"BM_&lt;a|b&gt;/64\" tests=\"", "name=\"broken\" tests=\"1\"",
		  "name=\"BM_&lt;a|b&gt;/64//fn:ns::parse", "type=\"failed\"" },
		{ "BM_<a|b>/64//fn:ns::parse", "broken: failed: ./bench", "error",
		  "worse" },
		{ "BM_&lt;a|b&gt;/64</h1>", "broken</h1>",
		  "href=\"pmdiff-flame-a_b.html\"", "main|&lt;b&gt;" },
	};
	struct pm_comparison comparison;
	struct pm_compare_report report = { .comparison = &comparison, .width = 120 };

	compare_cases(&comparison);
	for (size_t i = 0; i < PM_ARRAY_LEN(forms); i++) {
		PM_AUTO_FREE char *text = NULL;
		size_t len = 0;
		FILE *to = open_memstream(&text, &len);

		assert_non_null(to);
		assert_int_equal(forms[i](&report, to, NULL), 0);
		assert_int_equal(fclose(to), 0);
		for (size_t j = 0; j < PM_ARRAY_LEN(expected[i]); j++)
			if (!strstr(text, expected[i][j]))
				fail_msg("%zu: no %s in\n%s", i, expected[i][j], text);
	}
	pm_comparison_release(&comparison);
}

static void test_nothing_compared(void **state)
{
	struct pm_comparison comparison = { .base.name = (char[]){ "v1" } };
	char difference[] = "cpu: <One>\n on the base";
	struct pm_compare_report report = { .comparison = &comparison,
					    .failure = "HEAD: <make>\033 failed" };
	const char *text;

	assert_int_equal(pm_vec_push(&comparison.differences, difference), 0);
	for (size_t i = 0; i < PM_ARRAY_LEN(formats); i++) {
		text = written(formats[i], &report);
		assert_has(text, "failed");
		assert_has(text, "v1");
		assert_lacks(text, "no change");
		assert_lacks(text, "\033");
	}
	text = written(pm_output_compare_markdown, &report);
	assert_int_equal(strncmp(text, "### ❔ pmdiff: nothing was compared: HEAD: ", 44),
			 0);
	assert_has(text, "- Not the same: cpu: ");
	text = written(pm_output_compare_junit, &report);
	assert_has(text, "tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\"");
	assert_has(text, "<error message=\"HEAD: &lt;make&gt;");
	text = written(pm_output_compare_sarif, &report);
	assert_has(text, "\"executionSuccessful\":false");
	assert_has(text, "\"level\":\"error\"");
	assert_has(written(pm_output_compare_json, &report), "\"verdict\":\"unknown\"");
	pm_vec_release(&comparison.differences);
}

static void test_html(void **state)
{
	struct pm_comparison comparison;
	const char *text;

	compare_whole(&comparison);
	text = plain(pm_output_compare_html, &comparison);
	assert_has(text, "default-src 'none'");
	assert_has(text, "style-src 'sha256-");
	assert_lacks(text, "<script");
	assert_lacks(text, "style=");
	assert_lacks(text, "http:");
	assert_lacks(text, "https:");
	assert_has(text, "<h1 class=\"worse\">worse, 2 of 5");
	/* Twenty runs a side of two numbers, one a side of eight, one of one side of two. */
	assert_int_equal(count_of(text, "<circle "), 2 * 40 + 8 * 2 - 2 + 2);
	assert_lacks(text, "nan");
	pm_comparison_release(&comparison);
}

/* A side may have numbers that are none, and hundreds of runs. */
static void test_html_plots(void **state)
{
	struct pm_comparison comparison;
	struct pm_compare_row *row;
	double values[300];
	const char *text;

	for (size_t i = 0; i < PM_ARRAY_LEN(values); i++)
		values[i] = i == 7 ? NAN : i == 8 ? INFINITY : 1e300 * (double)i;
	compare_begin(&comparison, PM_VERDICT_SAME);
	row = compare_row(&comparison, NULL, "x", "", NAN, NAN, PM_VERDICT_SAME);
	compare_side(&row->base, values, PM_ARRAY_LEN(values));
	compare_side(&row->new, values, 1);
	text = plain(pm_output_compare_html, &comparison);
	assert_int_equal(count_of(text, "<circle "), 198 + 1);
	assert_has(text, "(the first 200 runs are shown)");
	assert_lacks(text, "cx=\"nan");
	assert_lacks(text, "cx=\"inf");
	assert_lacks(text, "cx=\"-");
	pm_comparison_release(&comparison);
}

static void test_full_stream(void **state)
{
	struct pm_comparison comparison;

	compare_whole(&comparison);
	for (size_t i = 0; i < PM_ARRAY_LEN(formats); i++) {
		struct pm_compare_report report = { .comparison = &comparison };
		FILE *to = fopen("/dev/full", "w");

		assert_non_null(to);
		assert_int_equal(formats[i](&report, to, NULL), 0);
		assert_true(fflush(to) != 0 || ferror(to));
		fclose(to);
	}
	pm_comparison_release(&comparison);
}

static int release_text(void **state)
{
	free(stream_text);
	return 0;
}

/* Which number decides by default, and that others do not; a gate says it itself. */
static void test_deciding(void **state)
{
	static const char words[] =
		"task-clock decides. The other numbers are secondary: ";
	struct pm_comparison comparison;
	struct pm_compare_row *row;

	compare_begin(&comparison, PM_VERDICT_SAME);
	comparison.deciding = compare_text("task-clock");
	row = compare_row(&comparison, NULL, "task-clock", "ns", 4, 4, PM_VERDICT_SAME);
	compare_gate(row, 0.005, "default");
	compare_row(&comparison, NULL, "user-time", "ns", 4, 4, PM_VERDICT_SAME);
	if (!strstr(text_of(&comparison), words))
		fail_msg("not there: %s", words);
	row = &comparison.rows.data[0];
	row->gate_source = "--gate";
	if (strstr(text_of(&comparison), "decides"))
		fail_msg("a gate decides, and not by default");
	pm_comparison_release(&comparison);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_options),
		cmocka_unit_test(test_text_narrow),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_deciding),
		cmocka_unit_test(test_hard_limit),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_markdown_hostile),
		cmocka_unit_test(test_markdown_limit),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_junit),
		cmocka_unit_test(test_sarif),
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_nothing_compared),
		cmocka_unit_test(test_html),
		cmocka_unit_test(test_html_plots),
		cmocka_unit_test(test_full_stream),
	};

	return cmocka_run_group_tests(tests, NULL, release_text);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pm/profile.h"

static const char header[] =
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0.1.0\","
	"\"created\":\"2024-05-06T07:08:09Z\",\"clock\":\"monotonic\","
	"\"host\":{\"hostname\":\"h\",\"kernel\":\"k\",\"arch\":\"x86_64\",\"cpus\":2,"
	"\"cpu_model\":null,\"virt\":null},\"command\":[\"prog\"],\"events\":["
	"{\"id\":0,\"name\":\"cycles\",\"requested\":\"cycles:u\",\"actual\":\"cycles:u\","
	"\"modifiers\":\"u\",\"unit\":\"events\",\"freq\":999},"
	"{\"id\":1,\"name\":\"faults\",\"requested\":\"faults\",\"actual\":\"faults\","
	"\"modifiers\":\"\",\"unit\":\"events\",\"period\":1}],"
	"\"options\":{\"call_graph\":\"dwarf\",\"stack_bytes\":8,\"ring_bytes\":8}}\n";

static struct pm_profile *load_with(const struct pm_str *file,
				    const struct pm_profile_options *options)
{
	struct pm_file_reader *reader;
	struct pm_profile *profile = NULL;
	struct pm_error err = { 0 };

	assert_false(file->failed);
	if (pm_file_reader_open_memory(&reader, file->data, file->len, &err) < 0 ||
	    pm_profile_load(&profile, reader, options, &err) < 0)
		fail_msg("%s:%lld: %s", err.source, (long long)err.offset, err.text);
	pm_file_reader_free(reader);
	return profile;
}

static struct pm_profile *load(const struct pm_str *file)
{
	return load_with(file, NULL);
}

static struct pm_view *view_of(const struct pm_profile *profile, uint32_t event,
			       const struct pm_filter *filter)
{
	struct pm_view *view = NULL;
	struct pm_error err = { 0 };

	if (pm_view_new(&view, profile, event, filter, &err) < 0)
		fail_msg("%s", err.text);
	return view;
}

static void put_frame(struct pm_str *file, unsigned id, unsigned module, const char *name)
{
	pm_str_printf(file,
		      "{\"type\":\"frame\",\"id\":%u,\"module\":%u,\"address\":\"0x%x\","
		      "\"how\":\"cfi\"}\n",
		      id, module, 0x1000 * (id + 1));
	if (name)
		pm_str_printf(file,
			      "{\"type\":\"symbol\",\"frame\":%u,\"functions\":[%s]}\n",
			      id, name);
}

static void put_stack(struct pm_str *file, unsigned id, int parent, unsigned frame)
{
	char text[16] = "null";

	if (parent >= 0)
		snprintf(text, sizeof(text), "%d", parent);
	pm_str_printf(file,
		      "{\"type\":\"stack\",\"id\":%u,\"parent\":%s,\"frames\":[%u]}\n",
		      id, text, frame);
}

static void put_samples(struct pm_str *file, unsigned count, const char *stack,
			unsigned tid, unsigned event, unsigned period, uint64_t time)
{
	for (unsigned i = 0; i < count; i++)
		pm_str_printf(file,
			      "{\"type\":\"sample\",\"time\":%llu,\"pid\":10,\"tid\":%u,"
			      "\"cpu\":0,\"event\":%u,\"period\":%u,\"stack\":%s}\n",
			      (unsigned long long)time, tid, event, period, stack);
}

/*
 * main ─ sixty 60, thirty 30 (in a second thread), ten ─ (inlined) deep 10; fib calls itself
 * twice below main, but only with the second event; read is in the kernel, frame 6 has no
 * symbol.
 */
static struct pm_str truth(void)
{
	struct pm_str file = { 0 };

	pm_str_puts(&file, header);
	pm_str_puts(
		&file,
		"{\"type\":\"thread\",\"pid\":10,\"tid\":10,\"comm\":\"prog\",\"time\":100}\n"
		"{\"type\":\"thread\",\"pid\":10,\"tid\":11,\"comm\":\"work\",\"time\":100}\n"
		"{\"type\":\"module\",\"id\":0,\"path\":\"/bin/prog\",\"build_id\":null,"
		"\"kind\":\"file\"}\n"
		"{\"type\":\"module\",\"id\":1,\"path\":\"[kernel.kallsyms]\","
		"\"build_id\":null,\"kind\":\"kernel\"}\n");
	put_frame(&file, 0, 0, "{\"name\":\"main\",\"file\":\"/s/p.c\",\"line\":9}");
	put_frame(&file, 1, 0, "{\"name\":\"sixty\",\"file\":\"/s/p.c\",\"line\":1}");
	put_frame(&file, 2, 0, "{\"name\":\"thirty\"}");
	put_frame(
		&file, 3, 0,
		"{\"name\":\"deep\",\"file\":\"/s/p.h\",\"line\":4},{\"name\":\"ten\"}");
	put_frame(&file, 4, 0, "{\"name\":\"fib\"}");
	put_frame(&file, 5, 1, "{\"name\":\"read\"}");
	put_frame(&file, 6, 0, NULL);
	put_stack(&file, 0, -1, 0);
	put_stack(&file, 1, 0, 1);
	put_stack(&file, 2, 0, 2);
	put_stack(&file, 3, 0, 3);
	put_stack(&file, 4, 0, 4);
	put_stack(&file, 5, 4, 4);
	put_stack(&file, 6, 5, 5);
	put_stack(&file, 7, 0, 6);
	put_samples(&file, 60, "1", 10, 0, 7, 200);
	put_samples(&file, 30, "2", 11, 0, 7, 300);
	put_samples(&file, 10, "3", 10, 0, 7, 400);
	put_samples(&file, 4, "5", 10, 1, 1, 500);
	put_samples(&file, 5, "6", 10, 1, 1, 500);
	put_samples(&file, 2, "7", 10, 1, 1, 500);
	put_samples(&file, 1, "null", 10, 1, 1, 600);
	pm_str_puts(&file,
		    "{\"type\":\"footer\",\"samples\":112,\"lost\":0,\"throttled\":0,"
		    "\"truncated\":0,\"stops\":{},\"duration_ns\":1000,\"cpu_ns\":900,"
		    "\"exit\":{\"code\":0},\"events\":[{\"id\":0,\"samples\":100,"
		    "\"period\":700,\"lost\":0},{\"id\":1,\"samples\":12,\"period\":12,"
		    "\"lost\":null}]}\n");
	return file;
}

/* Samples of a thread that is ending, which the kernel can no longer name. */
static void nobody_is_no_thread(void **state)
{
	struct pm_str file = { 0 };
	struct pm_profile *profile;

	(void)state;
	pm_str_puts(&file, header);
	put_samples(&file, 3, "null", 10, 0, 1, 50);
	put_samples(&file, 1, "null", 11, 0, 1, 60);
	pm_str_puts(&file, "{\"type\":\"thread\",\"pid\":null,\"tid\":null,"
			   "\"comm\":\"?\",\"time\":70}\n"
			   "{\"type\":\"sample\",\"time\":70,\"pid\":null,\"tid\":null,"
			   "\"cpu\":0,\"event\":0,\"period\":1,\"stack\":null}\n");
	profile = load(&file);
	assert_int_equal(profile->info.threads, 2);
	assert_int_equal(profile->info.processes, 1);
	assert_int_equal(profile->events.data[0].total.samples, 5);
	pm_profile_free(profile);
	pm_str_release(&file);
}

static const struct pm_row *row_named(const struct pm_profile *profile,
				      const struct pm_table *table, const char *name)
{
	for (size_t i = 0; i < table->rows.len; i++)
		if (strcmp(profile->functions.data[table->rows.data[i].id].name, name) ==
		    0)
			return &table->rows.data[i];
	fail_msg("no row for %s", name);
	return NULL;
}

static void assert_row(const struct pm_profile *profile, const struct pm_table *table,
		       const char *name, uint64_t self, uint64_t total)
{
	const struct pm_row *row = row_named(profile, table, name);

	if (row->self.period != self || row->total.period != total)
		fail_msg("%s: self %llu, total %llu", name,
			 (unsigned long long)row->self.period,
			 (unsigned long long)row->total.period);
}

static void test_info(void **state)
{
	struct pm_str file = truth();
	struct pm_profile *profile = load(&file);

	assert_int_equal(profile->events.len, 2);
	assert_int_equal(profile->events.data[0].total.samples, 100);
	assert_int_equal(profile->events.data[0].total.period, 700);
	assert_true(profile->events.data[0].lost_known);
	assert_false(profile->events.data[1].lost_known);
	assert_string_equal(profile->command.data[0], "prog");
	assert_false(profile->info.cut);
	assert_int_equal(profile->info.read_samples, 112);
	assert_int_equal(profile->info.threads, 2);
	assert_int_equal(profile->info.processes, 1);
	assert_int_equal(profile->info.start_ns, 100);
	assert_int_equal(profile->info.end_ns, 1100);
	assert_string_equal(profile->modules.data[0].name, "prog");
	assert_string_equal(profile->modules.data[1].name, "[kernel]");
	pm_profile_free(profile);
	pm_str_release(&file);
}

static void test_functions(void **state)
{
	struct pm_str file = truth();
	struct pm_profile *profile = load(&file);
	struct pm_view *view = view_of(profile, 0, NULL);
	struct pm_table table;
	const struct pm_row *deep;

	assert_int_equal(pm_table_init(&table, view, PM_KEY_FUNCTION, false), 0);
	assert_int_equal(table.rows.len, 5);
	assert_row(profile, &table, "sixty", 420, 420);
	assert_row(profile, &table, "thirty", 210, 210);
	assert_row(profile, &table, "deep", 70, 70);
	assert_row(profile, &table, "ten", 0, 70);
	assert_row(profile, &table, "main", 0, 700);
	/* Heaviest first; by total, main is. */
	assert_string_equal(profile->functions.data[table.rows.data[0].id].name, "sixty");
	deep = row_named(profile, &table, "deep");
	assert_true(deep->inlined);
	assert_int_equal(profile->places.data[deep->place].line, 4);
	assert_false(row_named(profile, &table, "ten")->inlined);
	pm_table_release(&table);
	assert_int_equal(pm_table_init(&table, view, PM_KEY_FUNCTION, true), 0);
	assert_string_equal(profile->functions.data[table.rows.data[0].id].name, "main");
	pm_table_release(&table);
	pm_view_free(view);
	pm_profile_free(profile);
	pm_str_release(&file);
}

static void test_recursion_unknown_and_stackless(void **state)
{
	struct pm_str file = truth();
	struct pm_profile *profile = load(&file);
	struct pm_view *view = view_of(profile, 1, NULL);
	struct pm_table table;

	assert_int_equal(pm_table_init(&table, view, PM_KEY_FUNCTION, false), 0);
	assert_row(profile, &table, "fib", 4, 9);
	assert_row(profile, &table, "read", 5, 5);
	assert_row(profile, &table, "main", 0, 11);
	assert_row(profile, &table, "[unknown]", 2, 2);
	assert_row(profile, &table, "[no stack]", 1, 1);
	assert_int_equal(view->unknown.samples, 3);
	assert_int_equal(view->total.samples, 12);
	pm_table_release(&table);
	pm_view_free(view);
	pm_profile_free(profile);
	pm_str_release(&file);
}

static void test_other_keys(void **state)
{
	struct pm_str file = truth();
	struct pm_profile *profile = load(&file);
	struct pm_view *faults = view_of(profile, 1, NULL);
	struct pm_view *cycles = view_of(profile, 0, NULL);
	struct pm_table table;

	assert_int_equal(pm_table_init(&table, faults, PM_KEY_MODULE, false), 0);
	assert_int_equal(table.rows.len, 3);
	assert_int_equal(table.rows.data[0].id, 0);
	assert_int_equal(table.rows.data[0].self.period, 6);
	assert_int_equal(table.rows.data[0].total.period, 11);
	assert_int_equal(table.rows.data[1].id, 1);
	assert_int_equal(table.rows.data[1].self.period, 5);
	assert_int_equal(table.rows.data[2].id, PM_PROFILE_NONE);
	pm_table_release(&table);
	assert_int_equal(pm_table_init(&table, cycles, PM_KEY_THREAD, false), 0);
	assert_int_equal(table.rows.len, 2);
	assert_string_equal(profile->threads.data[table.rows.data[0].id].comm, "prog");
	assert_int_equal(table.rows.data[0].self.samples, 70);
	assert_int_equal(table.rows.data[1].self.samples, 30);
	pm_table_release(&table);
	assert_int_equal(pm_table_init(&table, cycles, PM_KEY_PROCESS, false), 0);
	assert_int_equal(table.rows.len, 1);
	assert_int_equal(table.rows.data[0].self.samples, 100);
	pm_table_release(&table);
	assert_int_equal(pm_table_init(&table, faults, PM_KEY_ADDRESS, false), 0);
	assert_int_equal(profile->frames.data[table.rows.data[0].id].address, 0x6000);
	/* The recursive frame is one address, counted once. */
	assert_int_equal(table.rows.data[1].total.period, 9);
	pm_table_release(&table);
	pm_view_free(faults);
	pm_view_free(cycles);
	pm_profile_free(profile);
	pm_str_release(&file);
}

static void test_filters(void **state)
{
	static const struct {
		struct pm_filter filter;
		uint32_t event;
		uint64_t samples;
	} cases[] = {
		{ { .comm = "work" }, 0, 30 },
		{ { .comm = "work,prog" }, 0, 100 },
		{ { .tid = "10" }, 0, 70 },
		{ { .pid = "10", .tid = "11" }, 0, 30 },
		{ { .symbol = "main" }, 1, 11 },
		{ { .symbol = "^fi" }, 1, 9 },
		{ { .symbol = "deep", .tid = "11" }, 0, 0 },
		{ { .module = "[kernel]" }, 1, 5 },
		{ { .module = "prog" }, 1, 6 },
		{ { .module = "/bin/prog,[kernel]" }, 1, 11 },
		{ { .module = "[no module]" }, 1, 1 },
	};
	static const struct {
		struct pm_filter filter;
		int code;
	} wrong[] = {
		{ { .comm = "nobody" }, -ENOENT },    { { .pid = "x" }, -EINVAL },
		{ { .tid = "12" }, -ENOENT },         { { .symbol = "foo" }, -ENOENT },
		{ { .symbol = "(" }, -EINVAL },       { { .module = "libz" }, -ENOENT },
		{ { .pid = "10,99" }, -ENOENT },      { { .pid = "-1" }, -EINVAL },
		{ { .pid = "4294967306" }, -ENOENT },
	};
	struct pm_str file = truth();
	struct pm_profile *profile = load(&file);

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_view *view = view_of(profile, cases[i].event, &cases[i].filter);

		if (view->total.samples != cases[i].samples)
			fail_msg("filter %zu: %llu samples", i,
				 (unsigned long long)view->total.samples);
		pm_view_free(view);
	}
	for (size_t i = 0; i < PM_ARRAY_LEN(wrong); i++) {
		struct pm_view *view = NULL;
		struct pm_error err = { 0 };

		if (pm_view_new(&view, profile, 0, &wrong[i].filter, &err) !=
			    wrong[i].code ||
		    view || err.text[0] == '\0')
			fail_msg("wrong filter %zu: %d %s", i, err.code, err.text);
	}
	pm_profile_free(profile);
	pm_str_release(&file);
}

static void test_time(void **state)
{
	static const struct {
		bool percent;
		double from, to;
		uint64_t samples;
	} cases[] = {
		/* The recording begins at 100 ns and lasts 1000. */
		{ false, 0, 1e12, 112 },  { false, 0, 100e-9, 60 },
		{ false, 101e-9, 1, 52 }, { true, 0, 10, 60 },
		{ true, 15, 25, 30 },     { true, 10, 20, 90 },
		{ true, 51, 100, 0 },
	};
	struct pm_str file = truth();

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_profile_options options = {
			.time_set = true,
			.time_percent = cases[i].percent,
			.time_from = cases[i].from,
			.time_to = cases[i].to,
		};
		struct pm_profile *profile = load_with(&file, &options);
		uint64_t samples = profile->events.data[0].total.samples +
				   profile->events.data[1].total.samples;

		if (samples != cases[i].samples)
			fail_msg("range %zu: %llu samples", i,
				 (unsigned long long)samples);
		assert_int_equal(profile->info.read_samples, 112);
		pm_profile_free(profile);
	}
	pm_str_release(&file);
}

static void test_no_inlines(void **state)
{
	struct pm_profile_options options = { .no_inlines = true };
	struct pm_str file = truth();
	struct pm_profile *profile = load_with(&file, &options);
	struct pm_view *view = view_of(profile, 0, NULL);
	struct pm_table table;

	assert_int_equal(pm_table_init(&table, view, PM_KEY_FUNCTION, false), 0);
	assert_int_equal(table.rows.len, 4);
	assert_row(profile, &table, "ten", 70, 70);
	pm_table_release(&table);
	pm_view_free(view);
	pm_profile_free(profile);
	pm_str_release(&file);
}

/* "main(fib(read))": names by depth, first children first. */
static void tree_text(struct pm_tree *tree, uint32_t node, struct pm_str *text)
{
	const struct pm_profile *profile = tree->view->profile;

	assert_int_equal(pm_tree_expand(tree, node), 0);
	if (node != 0)
		pm_str_printf(
			text, "%s:%llu",
			profile->functions.data[tree->nodes.data[node].function].name,
			(unsigned long long)tree->nodes.data[node].total.samples);
	if (tree->nodes.data[node].children == 0)
		return;
	pm_str_putc(text, '(');
	for (uint32_t i = 0; i < tree->nodes.data[node].children; i++) {
		if (i > 0)
			pm_str_putc(text, ' ');
		tree_text(tree, tree->nodes.data[node].first_child + i, text);
	}
	pm_str_putc(text, ')');
}

static void assert_tree(const struct pm_view *view, enum pm_tree_kind kind,
			const char *only, bool fold, const char *expected)
{
	struct pm_function_set set = { 0 };
	struct pm_tree *tree;
	struct pm_str text = { 0 };

	if (only)
		assert_int_equal(pm_function_set_init(&set, view->profile, only, NULL),
				 0);
	assert_int_equal(pm_tree_new(&tree, view, kind, only ? &set : NULL, fold), 0);
	tree_text(tree, 0, &text);
	assert_string_equal(text.data, expected);
	pm_str_release(&text);
	pm_tree_free(tree);
	pm_function_set_release(&set);
}

static void test_trees(void **state)
{
	struct pm_str file = truth();
	struct pm_profile *profile = load(&file);
	struct pm_view *cycles = view_of(profile, 0, NULL);
	struct pm_view *faults = view_of(profile, 1, NULL);

	assert_tree(cycles, PM_TREE_TOP_DOWN, NULL, true,
		    "(main:100(sixty:60 thirty:30 ten:10(deep:10)))");
	assert_tree(cycles, PM_TREE_BOTTOM_UP, NULL, true,
		    "(sixty:60(main:60) thirty:30(main:30) deep:10(ten:10(main:10)))");
	assert_tree(faults, PM_TREE_TOP_DOWN, NULL, false,
		    "(main:11(fib:9(fib:9(read:5)) [unknown]:2) [no stack]:1)");
	assert_tree(faults, PM_TREE_TOP_DOWN, NULL, true,
		    "(main:11(fib:9(read:5) [unknown]:2) [no stack]:1)");
	assert_tree(faults, PM_TREE_BOTTOM_UP, NULL, true,
		    "(read:5(fib:5(main:5)) fib:4(main:4) [unknown]:2(main:2) "
		    "[no stack]:1)");
	assert_tree(faults, PM_TREE_BOTTOM_UP, "fib", true, "(fib:9(main:9))");
	assert_tree(faults, PM_TREE_TOP_DOWN, "fib", true, "(fib:9(read:5))");
	assert_tree(cycles, PM_TREE_BOTTOM_UP, "deep", true,
		    "(deep:10(ten:10(main:10)))");
	assert_tree(cycles, PM_TREE_TOP_DOWN, "ten", true, "(ten:10(deep:10))");
	pm_view_free(cycles);
	pm_view_free(faults);
	pm_profile_free(profile);
	pm_str_release(&file);
}

static void test_tree_marks(void **state)
{
	struct pm_str file = truth();
	struct pm_profile *profile = load(&file);
	struct pm_view *view = view_of(profile, 1, NULL);
	struct pm_tree *tree;
	const struct pm_tree_node *fib;

	assert_int_equal(pm_tree_new(&tree, view, PM_TREE_TOP_DOWN, NULL, true), 0);
	assert_int_equal(pm_tree_expand(tree, tree->nodes.data[0].first_child), 0);
	fib = &tree->nodes.data[tree->nodes.data[1].first_child];
	assert_true(fib->recursive);
	assert_false(fib->inlined);
	assert_int_equal(fib->self.samples, 4); /* of both calls */
	pm_tree_free(tree);
	pm_view_free(view);
	view = view_of(profile, 0, NULL);
	assert_int_equal(pm_tree_new(&tree, view, PM_TREE_BOTTOM_UP, NULL, true), 0);
	assert_true(tree->nodes.data[3].inlined);
	pm_tree_free(tree);
	pm_view_free(view);
	pm_profile_free(profile);
	pm_str_release(&file);
}

static void test_function_names(void **state)
{
	static const struct {
		const char *pattern;
		size_t len, names;
	} cases[] = {
		{ "ns::f(int)", 1, 1 },
		{ "ns::f", 2, 2 },
		{ "f", 1, 1 },
		{ "operator()", 2, 2 },
		{ "g", 2, 1 },
		{ "^ns::", 3, 3 },
		{ "f(int)", 1, 1 },
		{ "method", 1, 1 },
		{ "ns::f(…)", 2, 1 },
		{ "ns::…(…)", 3, 1 },
		{ "...::method", 1, 1 },
		{ "T<...>::m...d", 1, 1 },
		/* As reports show a lambda where there is no room for its operator(). */
		{ "{lambda a.cc:8:11}", 1, 1 },
		{ "…ambda a.cc:8:11}", 1, 1 },
	};
	static const char *const names[] = {
		"ns::f(int)",
		"ns::f(char const*)",
		"f",
		"ns::A::operator()(int) const",
		"g",
		"T<int (*)(char)>::method(int (*)(int))",
		"main::{lambda a.cc:8:11}::operator()",
	};
	struct pm_str file = { 0 };
	struct pm_profile *profile;
	struct pm_error err = { 0 };
	struct pm_function_set set = { 0 };

	pm_str_puts(&file, header);
	pm_str_puts(&file,
		    "{\"type\":\"module\",\"id\":0,\"path\":\"a\",\"kind\":\"file\"}\n"
		    "{\"type\":\"module\",\"id\":1,\"path\":\"b\",\"kind\":\"file\"}\n");
	for (unsigned i = 0; i < PM_ARRAY_LEN(names); i++) {
		char functions[128];

		snprintf(functions, sizeof(functions), "{\"name\":\"%s\"}", names[i]);
		put_frame(&file, i, 0, functions);
	}
	put_frame(&file, PM_ARRAY_LEN(names), 1, "{\"name\":\"g\"}");
	profile = load(&file);
	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		assert_int_equal(
			pm_function_set_init(&set, profile, cases[i].pattern, &err), 0);
		if (set.len != cases[i].len || set.names != cases[i].names)
			fail_msg("%s: %zu functions, %zu names", cases[i].pattern,
				 set.len, set.names);
		pm_function_set_release(&set);
	}
	assert_int_equal(pm_function_set_init(&set, profile, "methdo", &err), -ENOENT);
	assert_int_equal(pm_function_set_init(&set, profile, "", &err), -EINVAL);
	/* A place in the middle of a function is not an expression for any name with an x. */
	assert_int_equal(pm_function_set_init(&set, profile, "[0x1ab]", &err), -ENOENT);
	/* Nor is what a report says where there is no place. */
	assert_int_equal(pm_function_set_init(&set, profile, "[unknown]", &err), -ENOENT);
	assert_int_equal(pm_function_set_init(&set, profile, "[no stack]", &err),
			 -ENOENT);
	/* Not beyond the end, not twice the same piece. */
	assert_int_equal(pm_function_set_init(&set, profile, "ns::f(…", &err), 0);
	pm_function_set_release(&set);
	assert_int_equal(pm_function_set_init(&set, profile, "method…d", &err), -ENOENT);
	assert_int_equal(pm_profile_find_event(profile, "cycles", &err), 0);
	assert_int_equal(pm_profile_find_event(profile, "cycles:u", &err), 0);
	assert_int_equal(pm_profile_find_event(profile, "faults", &err), 1);
	assert_int_equal(pm_profile_find_event(profile, "fault", &err), PM_PROFILE_NONE);
	assert_non_null(strstr(err.fix, "cycles:u, faults"));
	pm_profile_free(profile);
	pm_str_release(&file);
}

static void test_cut_and_renamed(void **state)
{
	struct pm_str file = { 0 };
	struct pm_profile *profile;
	struct pm_view *view;
	struct pm_filter filter = { .comm = "after" };

	pm_str_puts(&file, header);
	pm_str_puts(&file, "{\"type\":\"thread\",\"pid\":10,\"tid\":10,"
			   "\"comm\":\"before\",\"time\":1}\n");
	put_samples(&file, 3, "null", 10, 0, 0, 50);
	pm_str_puts(&file, "{\"type\":\"thread\",\"pid\":10,\"tid\":10,"
			   "\"comm\":\"after\",\"time\":60}\n");
	put_samples(&file, 2, "null", 10, 0, 0, 70);
	put_samples(&file, 1, "null", 12, 0, 0, 80);
	pm_str_puts(&file, "{\"type\":\"lost\",\"time\":90,\"cpu\":0,\"count\":7}\n"
			   "{\"type\":\"sam");
	profile = load(&file);
	assert_true(profile->info.cut);
	assert_int_equal(profile->info.lost, 7);
	assert_int_equal(profile->info.duration_ns, 79);
	assert_int_equal(profile->info.threads, 2);
	assert_string_equal(profile->processes.data[0].comm, "after");
	/* A period of 0 says nothing, but the sample was taken. */
	assert_int_equal(profile->events.data[0].total.period, 6);
	view = view_of(profile, 0, &filter);
	assert_int_equal(view->total.samples, 2);
	pm_view_free(view);
	pm_profile_free(profile);
	pm_str_release(&file);
}

/* ---- against counting sample by sample ------------------------------------------------ */

enum {
	FRAMES = 60,
	STACKS = 3000,
	SAMPLES = 4000,
	FUNCTIONS = 25,
};

static uint64_t random_below(uint64_t *seed, uint64_t n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (*seed >> 33) % n;
}

static struct pm_str random_file(uint64_t seed)
{
	struct pm_str file = { 0 };

	pm_str_puts(&file, header);
	pm_str_puts(&file,
		    "{\"type\":\"module\",\"id\":0,\"path\":\"a\",\"kind\":\"file\"}\n");
	for (unsigned i = 0; i < FRAMES; i++) {
		struct pm_str functions = { 0 };
		uint64_t levels = random_below(&seed, 4);

		for (uint64_t l = 0; l < levels; l++)
			pm_str_printf(&functions, "%s{\"name\":\"f%u\"}",
				      l > 0 ? "," : "",
				      (unsigned)random_below(&seed, FUNCTIONS));
		put_frame(&file, i, 0, levels > 0 ? functions.data : NULL);
		pm_str_release(&functions);
	}
	for (unsigned i = 0; i < STACKS; i++) {
		uint64_t near = i < 50 ? i : 50;
		int parent = i == 0 || random_below(&seed, 20) == 0
				     ? -1
				     : (int)(i - 1 - random_below(&seed, near));

		put_stack(&file, i, parent, (unsigned)random_below(&seed, FRAMES));
	}
	for (unsigned i = 0; i < SAMPLES; i++) {
		char stack[16];

		snprintf(stack, sizeof(stack), "%u",
			 (unsigned)random_below(&seed, STACKS));
		put_samples(&file, 1, stack, 10 + i % 3, 0,
			    1 + (unsigned)random_below(&seed, 9), i);
	}
	return file;
}

static void count_one(const struct pm_profile *profile,
		      const struct pm_profile_cell *cell, struct pm_weight *self,
		      struct pm_weight *total)
{
	bool seen[FUNCTIONS + 8] = { 0 };

	assert_true(profile->functions.len <= PM_ARRAY_LEN(seen));
	pm_weight_add(&self[pm_profile_level_function(profile, cell->stack, 0)],
		      &cell->weight);
	for (uint32_t s = cell->stack; s != PM_PROFILE_NONE;
	     s = profile->stacks.data[s].parent) {
		for (uint32_t l = 0; l < pm_profile_levels(profile, s); l++) {
			uint32_t f = pm_profile_level_function(profile, s, l);

			if (!seen[f])
				pm_weight_add(&total[f], &cell->weight);
			seen[f] = true;
		}
	}
}

/* Sum of what ends in each node, all of the tree expanded; without recursion. */
static uint64_t sum_of_tree(struct pm_tree *tree)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tree->nodes.len; i++) {
		assert_int_equal(pm_tree_expand(tree, i), 0);
		sum += tree->nodes.data[i].self.period;
	}
	return sum;
}

static void check_callers(const struct pm_view *view, const struct pm_weight *total)
{
	const struct pm_profile *profile = view->profile;

	for (uint32_t f = 0; f < profile->functions.len; f++) {
		bool set[FUNCTIONS + 8] = { 0 };
		struct pm_function_set only = { .set = set, .len = 1, .names = 1 };
		struct pm_tree *tree;

		set[f] = true;
		for (int kind = PM_TREE_TOP_DOWN; kind <= PM_TREE_BOTTOM_UP; kind++) {
			assert_int_equal(pm_tree_new(&tree, view, (enum pm_tree_kind)kind,
						     &only, true),
					 0);
			assert_int_equal(tree->nodes.data[0].total.period,
					 total[f].period);
			if (kind == PM_TREE_TOP_DOWN)
				assert_int_equal(sum_of_tree(tree), total[f].period);
			pm_tree_free(tree);
		}
	}
}

static void test_against_counting(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct pm_str file = random_file(seed);
		struct pm_profile *profile = load(&file);
		struct pm_view *view = view_of(profile, 0, NULL);
		struct pm_weight self[FUNCTIONS + 8] = { 0 };
		struct pm_weight total[FUNCTIONS + 8] = { 0 };
		uint64_t sum = 0;
		struct pm_table table;
		struct pm_tree *tree;

		for (size_t i = 0; i < profile->cells.len; i++)
			count_one(profile, &profile->cells.data[i], self, total);
		assert_int_equal(pm_table_init(&table, view, PM_KEY_FUNCTION, false), 0);
		for (size_t i = 0; i < table.rows.len; i++) {
			const struct pm_row *row = &table.rows.data[i];

			assert_int_equal(row->self.period, self[row->id].period);
			assert_int_equal(row->self.samples, self[row->id].samples);
			assert_int_equal(row->total.period, total[row->id].period);
			assert_int_equal(row->total.samples, total[row->id].samples);
			sum += row->self.period;
		}
		assert_int_equal(sum, view->total.period);
		pm_table_release(&table);
		for (int fold = 0; fold < 2; fold++) {
			assert_int_equal(
				pm_tree_new(&tree, view, PM_TREE_TOP_DOWN, NULL, fold),
				0);
			assert_int_equal(sum_of_tree(tree), view->total.period);
			pm_tree_free(tree);
		}
		check_callers(view, total);
		pm_view_free(view);
		pm_profile_free(profile);
		pm_str_release(&file);
	}
}

/* Deeper than anything real: no part may use a stack of its own for it, or go up it for every
 * sample. What is kept ends in both functions. */
static void test_depth(void **state)
{
	enum {
		DEPTH = 200000,
		KEPT = PM_PROFILE_DEPTH_MAX + 1,
	};
	struct pm_str file = { 0 };
	struct pm_profile *profile;
	struct pm_view *view;
	struct pm_table table;
	struct pm_paths paths;
	struct pm_tree *tree;

	pm_str_puts(&file, header);
	pm_str_puts(&file,
		    "{\"type\":\"module\",\"id\":0,\"path\":\"a\",\"kind\":\"file\"}\n");
	put_frame(&file, 0, 0, "{\"name\":\"even\"}");
	put_frame(&file, 1, 0, "{\"name\":\"odd\"}");
	for (unsigned i = 0; i < DEPTH; i++) {
		char stack[16];

		put_stack(&file, i, (int)i - 1, i % 2);
		snprintf(stack, sizeof(stack), "%u", i);
		put_samples(&file, 1, stack, 10, 0, 1, i);
	}
	profile = load(&file);
	assert_int_equal(profile->info.stacks_cut, DEPTH - PM_PROFILE_DEPTH_MAX);
	view = view_of(profile, 0, NULL);
	assert_int_equal(pm_table_init(&table, view, PM_KEY_FUNCTION, false), 0);
	assert_row(profile, &table, "even", DEPTH / 2, DEPTH);
	assert_row(profile, &table, "odd", DEPTH / 2, DEPTH - 1);
	pm_table_release(&table);
	assert_int_equal(pm_tree_new(&tree, view, PM_TREE_TOP_DOWN, NULL, true), 0);
	assert_int_equal(sum_of_tree(tree), DEPTH);
	/* With the root, and `even` that calls itself folded. */
	assert_int_equal(tree->nodes.len, KEPT);
	pm_tree_free(tree);
	assert_int_equal(pm_paths_init(&paths, profile, NULL), 0);
	assert_int_equal(paths.paths.len, KEPT);
	pm_paths_release(&paths);
	pm_view_free(view);
	pm_profile_free(profile);
	pm_str_release(&file);
}

static void test_huge_periods(void **state)
{
	struct pm_str file = { 0 };
	struct pm_profile *profile;

	pm_str_puts(&file, header);
	for (int i = 0; i < 5; i++)
		pm_str_puts(
			&file,
			"{\"type\":\"sample\",\"time\":1,\"pid\":1,\"tid\":1,\"cpu\":0,"
			"\"event\":0,\"period\":9223372036854775807,\"stack\":null}\n");
	profile = load(&file);
	assert_true(profile->events.data[0].total.period == UINT64_MAX);
	assert_int_equal(profile->events.data[0].total.samples, 5);
	pm_profile_free(profile);
	pm_str_release(&file);
}

/*
 * One file, once with and once without its build-id, and once built anew: a function is in one
 * row; the address table and the module table know the builds apart.
 */
static void test_twin_modules(void **state)
{
	static const char *const builds[] = { "null", "\"aa\"", "null", "\"bb\"",
					      "\"aa\"" };
	struct pm_str file = { 0 };
	struct pm_profile *profile;
	struct pm_view *view;
	struct pm_table table;
	char stack[16];

	pm_str_puts(&file, header);
	for (unsigned i = 0; i < PM_ARRAY_LEN(builds); i++)
		pm_str_printf(&file,
			      "{\"type\":\"module\",\"id\":%u,\"path\":\"/bin/prog\","
			      "\"build_id\":%s,\"kind\":\"file\"}\n",
			      i, builds[i]);
	for (unsigned i = 0; i < PM_ARRAY_LEN(builds); i++) {
		pm_str_printf(&file,
			      "{\"type\":\"frame\",\"id\":%u,\"module\":%u,"
			      "\"address\":\"0x10\",\"how\":\"cfi\"}\n"
			      "{\"type\":\"symbol\",\"frame\":%u,"
			      "\"functions\":[{\"name\":\"main\"}]}\n",
			      i, i, i);
		put_stack(&file, i, -1, i);
		snprintf(stack, sizeof(stack), "%u", i);
		put_samples(&file, 1, stack, 10, 0, 1, i);
	}
	profile = load(&file);
	view = view_of(profile, 0, NULL);
	assert_int_equal(pm_table_init(&table, view, PM_KEY_FUNCTION, false), 0);
	assert_int_equal(table.rows.len, 1);
	assert_row(profile, &table, "main", 5, 5);
	pm_table_release(&table);
	assert_int_equal(pm_table_init(&table, view, PM_KEY_MODULE, false), 0);
	assert_int_equal(table.rows.len, 2);
	assert_string_equal(profile->modules.data[table.rows.data[0].id].build_id, "aa");
	assert_int_equal(table.rows.data[0].self.samples, 4);
	assert_string_equal(profile->modules.data[table.rows.data[1].id].build_id, "bb");
	pm_table_release(&table);
	assert_int_equal(pm_table_init(&table, view, PM_KEY_ADDRESS, false), 0);
	assert_int_equal(table.rows.len, 2);
	pm_table_release(&table);
	pm_view_free(view);
	pm_profile_free(profile);
	pm_str_release(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_info),
		cmocka_unit_test(nobody_is_no_thread),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_recursion_unknown_and_stackless),
		cmocka_unit_test(test_other_keys),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_no_inlines),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_tree_marks),
		cmocka_unit_test(test_function_names),
		cmocka_unit_test(test_cut_and_renamed),
		cmocka_unit_test(test_against_counting),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_huge_periods),
		cmocka_unit_test(test_twin_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

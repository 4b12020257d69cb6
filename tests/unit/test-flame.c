/* SPDX-License-Identifier: MIT */
/* Flame graphs, and two recordings under one set of ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pm/flame.h"

/* ---- recordings ---------------------------------------------------------------------------- */

static const char start[] =
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0.1.0\","
	"\"created\":\"2024-05-06T07:08:09Z\",\"clock\":\"monotonic\","
	"\"host\":{\"hostname\":\"h\",\"kernel\":\"k\",\"arch\":\"x86_64\",\"cpus\":2,"
	"\"cpu_model\":null,\"virt\":null},\"command\":[\"./%s\"],\"events\":["
	"{\"id\":0,\"name\":\"cycles\",\"requested\":\"cycles\",\"actual\":\"cycles\","
	"\"modifiers\":\"\",\"unit\":\"events\",\"freq\":999}],"
	"\"options\":{\"call_graph\":\"dwarf\",\"stack_bytes\":8,\"ring_bytes\":8}}\n"
	"{\"type\":\"module\",\"id\":0,\"path\":\"/%s/%s\",\"build_id\":null,"
	"\"kind\":\"file\"}\n"
	"{\"type\":\"module\",\"id\":1,\"path\":\"/%s/lib.so\",\"build_id\":null,"
	"\"kind\":\"file\"}\n";

static void begin(struct pm_str *file, const char *program)
{
	pm_str_printf(file, start, program, program, program, program);
}

static void put_frame(struct pm_str *file, unsigned id, unsigned module,
		      const char *functions)
{
	pm_str_printf(file,
		      "{\"type\":\"frame\",\"id\":%u,\"module\":%u,\"address\":\"0x%x\","
		      "\"how\":\"cfi\"}\n"
		      "{\"type\":\"symbol\",\"frame\":%u,\"functions\":[%s]}\n",
		      id, module, 0x1000 * (id + 1), id, functions);
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

static void put_sample(struct pm_str *file, unsigned period, unsigned stack)
{
	pm_str_printf(file,
		      "{\"type\":\"sample\",\"time\":5,\"pid\":1,\"tid\":1,\"cpu\":0,"
		      "\"event\":0,\"period\":%u,\"stack\":%u}\n",
		      period, stack);
}

static struct pm_profile *load(struct pm_str *file)
{
	struct pm_file_reader *reader;
	struct pm_profile *profile = NULL;
	struct pm_error err = { 0 };

	assert_false(file->failed);
	if (pm_file_reader_open_memory(&reader, file->data, file->len, &err) < 0 ||
	    pm_profile_load(&profile, reader, NULL, &err) < 0)
		fail_msg("%s:%lld: %s", err.source, (long long)err.offset, err.text);
	pm_file_reader_free(reader);
	pm_str_release(file);
	return profile;
}

#define F(name) "{\"name\":\"" name "\"}"

/*
 * main calls b (self 10), which has c inlined (5), and a of lib.so (15), which calls b (15) and
 * itself (2). The second recording, of a program of another name and place, has main, b with
 * less (4), and d (6), which the first does not know.
 */
static struct pm_profile *first(void)
{
	struct pm_str file = { 0 };

	begin(&file, "old");
	put_frame(&file, 0, 0, F("main"));
	put_frame(&file, 1, 0, F("b"));
	put_frame(&file, 2, 0, F("c") "," F("b"));
	put_frame(&file, 3, 1, F("a"));
	for (unsigned i = 0; i < 4; i++)
		put_stack(&file, i, i == 0 ? -1 : 0, i);
	put_stack(&file, 4, 3, 1);
	put_stack(&file, 5, 3, 3);
	put_sample(&file, 10, 1);
	put_sample(&file, 5, 2);
	put_sample(&file, 15, 3);
	put_sample(&file, 15, 4);
	put_sample(&file, 2, 5);
	return load(&file);
}

static struct pm_profile *second(void)
{
	struct pm_str file = { 0 };

	begin(&file, "new");
	put_frame(&file, 0, 0, F("d"));
	put_frame(&file, 1, 0, F("b"));
	put_frame(&file, 2, 0, F("main"));
	put_stack(&file, 0, -1, 2);
	put_stack(&file, 1, 0, 0);
	put_stack(&file, 2, 0, 1);
	put_sample(&file, 6, 1);
	put_sample(&file, 4, 2);
	return load(&file);
}

struct world {
	struct pm_profile *profile[2];
	struct pm_view *view[2];
	struct pm_merged merged;
};

static struct world make_world(bool both)
{
	struct world world = { .profile = { first(), both ? second() : NULL } };

	for (size_t i = 0; i < 2; i++)
		if (world.profile[i])
			assert_int_equal(pm_view_new(&world.view[i], world.profile[i], 0,
						     NULL, NULL),
					 0);
	assert_int_equal(
		pm_merged_init(&world.merged, world.profile[0], world.profile[1], NULL),
		0);
	return world;
}

static void end_world(struct world *world)
{
	pm_merged_release(&world->merged);
	for (size_t i = 0; i < 2; i++) {
		pm_view_free(world->view[i]);
		pm_profile_free(world->profile[i]);
	}
}

/* Nodes as "DEPTH NAME TOTAL/SELF[-BASE/SELF]", inlined ones with a star, in their order. */
static void expect_graph(const struct world *world,
			 const struct pm_flame_options *options, const char *expected)
{
	struct pm_flame flame = { 0 };
	struct pm_str text = { 0 };

	assert_int_equal(pm_flame_init(&flame, &world->merged, world->view[0],
				       world->view[1], options),
			 0);
	for (size_t i = 0; i < flame.nodes.len; i++) {
		const struct pm_flame_node *node = &flame.nodes.data[i];
		const char *name =
			i == 0 ? "all"
			       : world->merged.functions.data[node->function].name;

		assert_true(i == 0 ? node->parent == 0 : node->parent < i);
		assert_int_equal(node->depth,
				 i == 0 ? 0 : flame.nodes.data[node->parent].depth + 1);
		pm_str_printf(&text, "%u %s%s %llu/%llu", node->depth, name,
			      node->inlined ? "*" : "",
			      (unsigned long long)node->total.period,
			      (unsigned long long)node->self.period);
		if (world->view[1])
			pm_str_printf(&text, "-%llu/%llu",
				      (unsigned long long)node->base_total.period,
				      (unsigned long long)node->base_self.period);
		pm_str_puts(&text, "\n");
	}
	pm_str_printf(&text, "left out: %zu\n", flame.left_out);
	assert_string_equal(text.data, expected);
	assert_false(flame.cut);
	pm_str_release(&text);
	pm_flame_release(&flame);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void adds_up_from_the_root(void **state)
{
	struct world world = make_world(false);

	expect_graph(&world, &(struct pm_flame_options){ 0 },
		     "0 all 47/0\n"
		     "1 main 47/0\n"
		     "2 a 32/15\n"
		     "3 b 15/15\n"
		     "3 a 2/2\n"
		     "2 b 15/10\n"
		     "3 c* 5/5\n"
		     "left out: 0\n");
	end_world(&world);
}

static void adds_up_from_the_samples(void **state)
{
	struct world world = make_world(false);

	expect_graph(&world, &(struct pm_flame_options){ .inverted = true },
		     "0 all 47/0\n"
		     "1 b 25/0\n"
		     "2 a 15/0\n"
		     "3 main 15/15\n"
		     "2 main 10/10\n"
		     "1 a 17/0\n"
		     "2 main 15/15\n"
		     "2 a 2/0\n"
		     "3 main 2/2\n"
		     "1 c* 5/0\n"
		     "2 b 5/0\n"
		     "3 main 5/5\n"
		     "left out: 0\n");
	end_world(&world);
}

static void leaves_out_what_is_too_light(void **state)
{
	struct world world = make_world(false);

	expect_graph(&world, &(struct pm_flame_options){ .least = 20 },
		     "0 all 47/0\n"
		     "1 main 47/0\n"
		     "2 a 32/15\n"
		     "3 b 15/15\n"
		     "2 b 15/10\n"
		     "left out: 2\n");
	/* Their callers are not asked for. */
	expect_graph(&world, &(struct pm_flame_options){ .inverted = true, .least = 20 },
		     "0 all 47/0\n"
		     "1 b 25/0\n"
		     "2 a 15/0\n"
		     "3 main 15/15\n"
		     "2 main 10/10\n"
		     "1 a 17/0\n"
		     "2 main 15/15\n"
		     "left out: 2\n");
	end_world(&world);
}

static void compares_by_name(void **state)
{
	struct world world = make_world(true);

	expect_graph(&world, &(struct pm_flame_options){ 0 },
		     "0 all 47/0-10/0\n"
		     "1 main 47/0-10/0\n"
		     "2 a 32/15-0/0\n"
		     "3 b 15/15-0/0\n"
		     "3 a 2/2-0/0\n"
		     "2 b 15/10-4/4\n"
		     "3 c* 5/5-0/0\n"
		     "left out: 1\n");
	/* old and new are what was run: one module; so is lib.so, wherever it is. */
	assert_int_equal(world.merged.modules.len, 2);
	assert_int_equal(world.merged.map[1].modules[0], world.merged.map[0].modules[0]);
	assert_int_equal(world.merged.functions.len, world.profile[0]->functions.len + 1);
	assert_int_equal(world.merged.threads.len, 1);
	for (size_t i = 0; i < world.profile[0]->functions.len; i++)
		assert_int_equal(world.merged.map[0].functions[i], i);
	end_world(&world);
}

/* Some 300 KB that would become a GB. */
static void refuses_more_inlined_calls_than_there_are(void **state)
{
	enum {
		STACKS = 4300,
		FUNCTIONS = 1024
	};
	struct pm_str file = { 0 }, functions = { 0 };
	struct pm_error err = { 0 };
	struct pm_merged merged;
	struct pm_paths paths;
	struct pm_profile *profile;

	for (unsigned i = 0; i < FUNCTIONS; i++)
		pm_str_puts(&functions, i == 0 ? F("f") : "," F("f"));
	begin(&file, "old");
	put_frame(&file, 0, 0, functions.data);
	for (unsigned i = 0; i < STACKS; i++)
		put_stack(&file, i, (int)i - 1, 0);
	put_sample(&file, 1, STACKS - 1);
	profile = load(&file);
	assert_int_equal(pm_paths_init(&paths, profile, &err), -E2BIG);
	assert_non_null(strstr(err.text, "too many inlined calls"));
	assert_string_equal(err.fix, "--no-inlines");
	assert_int_equal(pm_merged_init(&merged, profile, NULL, NULL), -E2BIG);
	pm_profile_free(profile);
	pm_str_release(&functions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds_up_from_the_root),
		cmocka_unit_test(adds_up_from_the_samples),
		cmocka_unit_test(leaves_out_what_is_too_light),
		cmocka_unit_test(compares_by_name),
		cmocka_unit_test(refuses_more_inlined_calls_than_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

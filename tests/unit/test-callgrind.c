/* SPDX-License-Identifier: MIT */
/* Files of callgrind made by hand, whose sums are known; and valgrind itself over a program that
 * knows how often its functions are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>

#include "src/count/callgrind.h"

static int memory_file(const char *text, size_t len)
{
	int fd = memfd_create("callgrind", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* ---- rows ------------------------------------------------------------------------------- */

struct rows {
	struct pm_callgrind_table table;
	struct pm_error err;
	int code;
	struct pm_str text; /* a line for each row */
	struct pm_callgrind_header header;
};

static void put_who(struct rows *rows, const struct pm_callgrind_who *who)
{
	const struct pm_callgrind_table *table = &rows->table;

	pm_str_printf(&rows->text, "%s:%s:%s:%u",
		      who->object == PM_CALLGRIND_NONE ? "-"
						       : table->objects.data[who->object],
		      who->file == PM_CALLGRIND_NONE ? "-" : table->files.data[who->file],
		      who->function == PM_CALLGRIND_NONE
			      ? "-"
			      : table->functions.data[who->function].name,
		      who->level);
}

static void put_row(struct rows *rows, const struct pm_callgrind_row *row, size_t columns)
{
	put_who(rows, &row->who);
	pm_str_printf(&rows->text, " %lx %lu", row->address, row->line);
	if (row->kind == PM_CALLGRIND_CALL) {
		pm_str_printf(&rows->text, " %lu calls of ", row->times);
		put_who(rows, &row->callee);
		pm_str_printf(&rows->text, " at %lx", row->target);
	}
	if (row->kind == PM_CALLGRIND_JUMP)
		pm_str_printf(&rows->text, " %lu jumps to %lx", row->times, row->target);
	for (size_t i = 0; row->counts && i < columns; i++)
		pm_str_printf(&rows->text, " %lu", row->counts[i]);
	pm_str_putc(&rows->text, '\n');
}

static void read_rows(struct rows *rows, const char *text)
{
	struct pm_callgrind *reader;
	struct pm_callgrind_row row;

	*rows = (struct rows){ 0 };
	assert_int_equal(pm_callgrind_open(&reader, &rows->table,
					   memory_file(text, strlen(text)), "here",
					   &rows->err),
			 0);
	while ((rows->code = pm_callgrind_next(reader, &row, &rows->err)) > 0)
		put_row(rows, &row, pm_callgrind_header(reader)->columns_len);
	rows->header = *pm_callgrind_header(reader);
	pm_callgrind_close(reader);
}

static void rows_release(struct rows *rows)
{
	pm_callgrind_table_release(&rows->table);
	pm_str_release(&rows->text);
}

#define HEAD                                                       \
	"# callgrind format\nversion: 1\ncreator: callgrind-3\n"   \
	"pid: 77\ncmd:  ./a b\npart: 1\nthread: 2\n\ndesc: I1 c\n" \
	"positions: instr line\nevents: Ir Dr\nsummary: 5 6\n\n"

static void test_names_and_positions(void **state)
{
	static const char shortened[] = HEAD "ob=(1) /bin/a\nfl=(1) a.c\nfn=(1) f\n"
					     "0x10 5 1 2\n+2 +1 3\n* -1 4 4\n"
					     "cob=(2) /lib/b\ncfi=(2) b.c\ncfn=(2) g'3\n"
					     "calls=7 +0x10 +2\n* * 9 9\n"
					     "cfn=(1)\ncalls=1 0x10 5\n-2 * 8\n"
					     "jcnd=3/4 +4 *\n* *\njump=2 0x10 5\n* *\n"
					     "ob=(2)\nfl=(2)\nfn=(2)\n"
					     "fi=(1)\n0x20 9 1\nrcalls=9\ntotals: 9 6\n";
	static const char whole[] =
		HEAD "ob=/bin/a\nfl=a.c\nfn=f\n0x10 5 1 2\n0x12 6 3\n0x12 5 4 4\n"
		     "cob=/lib/b\ncfi=b.c\ncfn=g'3\ncalls=7 0x22 7\n0x12 5 9 9\n"
		     "cfn=f\ncalls=1 0x10 5\n0x10 5 8\n"
		     "jcnd=3/4 0x14 5\n0x10 5\njump=2 0x10 5\n0x10 5\n"
		     "ob=/lib/b\nfl=b.c\nfn=g'3\nfi=a.c\n0x20 9 1\ntotals: 9 6\n";
	static const char expected[] = "/bin/a:a.c:f:1 10 5 1 2\n"
				       "/bin/a:a.c:f:1 12 6 3 0\n"
				       "/bin/a:a.c:f:1 12 5 4 4\n"
				       "/bin/a:a.c:f:1 12 5 7 calls of "
				       "/lib/b:b.c:g:3 at 22 9 9\n"
				       "/bin/a:a.c:f:1 10 5 1 calls of "
				       "/bin/a:a.c:f:1 at 10 8 0\n"
				       "/bin/a:a.c:f:1 10 5 3 jumps to 14\n"
				       "/bin/a:a.c:f:1 10 5 2 jumps to 10\n"
				       "/lib/b:a.c:g:3 20 9 1 0\n";
	const char *texts[] = { shortened, whole };

	for (size_t i = 0; i < PM_ARRAY_LEN(texts); i++) {
		struct rows rows;

		read_rows(&rows, texts[i]);
		assert_int_equal(rows.code, 0);
		assert_string_equal(rows.text.data, expected);
		assert_int_equal(rows.header.pid, 77);
		assert_int_equal(rows.header.thread, 2);
		assert_string_equal(rows.header.creator, "callgrind-3");
		assert_true(rows.header.ended);
		assert_int_equal(rows.header.totals[0], 9);
		rows_release(&rows);
	}
}

static void test_damage(void **state)
{
	static const struct {
		const char *text;
		int64_t line;
	} damaged[] = {
		{ "events: Ir\nfn=f\n5 1 2\n", 3 },
		{ "events: Ir\nfn=f\n-1 1\n", 3 },
		{ "events: Ir\nfn=f\n18446744073709551615 1\n+1 1\n", 4 },
		{ "events: Ir\nfn=f\n1 18446744073709551616\n", 3 },
		{ "events: Ir\nfn=f\n1 x\n", 3 },
		{ "events: Ir\nfn=(1)\n", 2 },
		{ "events: Ir\ncalls=1 5\n", 2 },
		{ "events: Ir\nfn=f\ncfn=g\ncalls=1\n5 1\n", 4 },
		{ "events: Ir\nfn=f\ncfn=g\ncalls=1 5\n", 4 },
		{ "events: Ir\nfn=f\njcnd=3/2 5\n5\n", 3 },
		{ "positions: moon\n", 1 },
		{ "pid: 4294967296\n", 1 },
		{ "\x7f"
		  "ELF\n",
		  1 },
		{ "events: a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g\n",
		  1 },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(damaged); i++) {
		struct rows rows;

		read_rows(&rows, damaged[i].text);
		assert_int_equal(rows.code, -EBADMSG);
		assert_int_equal(rows.err.code, -EBADMSG);
		assert_string_equal(rows.err.source, "here");
		assert_int_equal(rows.err.offset, damaged[i].line);
		rows_release(&rows);
	}
}

/* ---- sums of regions ---------------------------------------------------------------------- */

static char module_name[] = "/nowhere/prog";
static char name_f[] = "f", name_g[] = "g", name_range[] = "range";

struct world {
	struct pm_regions regions;
	struct pm_engine_options options;
	struct pm_callgrind_sums *sums;
	struct pm_stat stat;
	struct pm_error err;
};

static void add_region(struct world *world, enum pm_stat_scope_kind kind, char *name,
		       uint64_t low, uint64_t high)
{
	struct pm_region region = {
		.kind = kind, .name = name, .module = module_name, .fd = -1, .sum = -1
	};
	struct pm_region_piece piece = { low, high };

	assert_int_equal(pm_vec_push(&region.pieces, piece), 0);
	assert_int_equal(pm_vec_push(&world->regions.list, region), 0);
}

/* A return (c3) or a jump (eb) that leaves the region. */
static void add_exit(struct world *world, uint32_t region, uint64_t address, uint8_t byte)
{
	struct pm_place place = { .region = region,
				  .kind = PM_PLACE_EXIT,
				  .address = address,
				  .bytes = { byte },
				  .len = 1 };

	assert_int_equal(pm_vec_push(&world->regions.places, place), 0);
}

static void world_open(struct world *world)
{
	struct pm_stat_run run = { 0 };

	world->options.regions = &world->regions;
	assert_int_equal(pm_callgrind_sums_new(&world->sums, &world->options), 0);
	assert_int_equal(pm_sim_event_describe(&world->stat, "sim.Ir", false, NULL), 0);
	assert_int_equal(pm_vec_push(&world->stat.runs, run), 0);
}

static int add_text(struct world *world, const char *text)
{
	return pm_callgrind_sums_add(world->sums, memory_file(text, strlen(text)), "here",
				     &world->err);
}

static void finish(struct world *world)
{
	assert_int_equal(pm_callgrind_sums_finish(world->sums, &world->stat, 0), 0);
}

static void world_release(struct world *world)
{
	pm_callgrind_sums_free(world->sums);
	pm_stat_release(&world->stat);
	for (size_t i = 0; i < world->regions.list.len; i++)
		pm_vec_release(&world->regions.list.data[i].pieces);
	pm_vec_release(&world->regions.list);
	pm_vec_release(&world->regions.places);
}

#define PROGRAM                                                                        \
	"creator: callgrind-3\npid: 5\nthread: 1\npositions: instr line\nevents: Ir\n" \
	"ob=/nowhere/prog\nfl=a.c\n"

/* main calls f twice; f calls itself, 5 calls in all, and g from the inner ones. */
#define RECURSION                                                             \
	PROGRAM "fn=main\n0x1000 1 2\ncfn=f\ncalls=2 0x2000 5\n0x1004 2 60\n" \
		"fn=f\n0x2000 5 2\n0x2004 6 2\n"                              \
		"cfn=f'2\ncalls=2 0x2000 5\n0x2004 6 46\n0x2010 7 10\n"       \
		"fn=f'2\n0x2000 5 3\n0x2004 6 1\ncfn=f'2\ncalls=1 0x2000 5\n" \
		"0x2004 6 12\ncfn=g\ncalls=3 0x3000 9\n0x2008 6 9\n"          \
		"0x2010 7 30\nfn=g\n0x3000 9 3\n0x3004 9 6\ntotals: 59\n"

static void test_recursion(void **state)
{
	struct world world = { 0 };
	const struct pm_stat_scope *f;

	add_region(&world, PM_STAT_FUNCTION, name_f, 0x2000, 0x2020);
	add_region(&world, PM_STAT_FUNCTION, name_g, 0x3000, 0x3020);
	world.options.calls_from = 1;
	world.options.by_thread = true;
	world_open(&world);
	assert_int_equal(add_text(&world, RECURSION), 0);
	finish(&world);
	assert_int_equal(world.stat.runs.data[0].values[0].value, 59);
	assert_int_equal(world.stat.scopes.len, 2);
	f = &world.stat.scopes.data[0];
	assert_int_equal(f->calls, 5);
	assert_int_equal(f->nested, 3);
	assert_int_equal(f->max_depth, 2);
	/* The outermost calls alone: what main paid for them. */
	assert_int_equal(f->values[0].value, 60);
	assert_false(f->per_call[0].known);
	assert_true(f->calls_exact);
	assert_int_equal(f->callers.len, 2);
	assert_string_equal(f->callers.data[0].frames.data[0].function, "main");
	assert_int_equal(f->callers.data[0].frames.data[0].line, 2);
	assert_int_equal(f->callers.data[0].frames.data[0].address, 0x1004);
	assert_int_equal(f->callers.data[0].calls, 2);
	assert_int_equal(f->callers.data[0].values[0].value, 60);
	assert_string_equal(f->callers.data[1].frames.data[0].function, "f");
	assert_int_equal(f->callers.data[1].calls, 3);
	/* These are in the outer ones. */
	assert_int_equal(f->callers.data[1].values[0].value, 0);
	assert_int_equal(f->threads.len, 1);
	assert_int_equal(f->threads.data[0].tid, 5);
	assert_int_equal(f->threads.data[0].values[0].value, 60);
	assert_int_equal(world.stat.scopes.data[1].calls, 3);
	assert_int_equal(world.stat.scopes.data[1].values[0].value, 9);
	world_release(&world);
}

/* Ten calls: four return, three end with a jump to g, three do not end. A signal handler has no
 * caller, and a jump back to the first instruction is no call. */
static void test_ends_of_calls(void **state)
{
	struct world world = { 0 };
	const struct pm_stat_scope *f;

	add_region(&world, PM_STAT_FUNCTION, name_f, 0x2000, 0x2020);
	add_exit(&world, 0, 0x2010, 0xc3);
	add_exit(&world, 0, 0x2018, 0xeb);
	world_open(&world);
	assert_int_equal(add_text(&world, PROGRAM
				  "fn=f\n0x2000 5 30\njump=20 0x2000 5\n0x2008 6\n"
				  "0x2010 7 4\n0x2018 8 3\ncfn=g\ncalls=3 0x3000 9\n"
				  "0x2018 8 300\ntotals: 37\n"),
			 0);
	finish(&world);
	f = &world.stat.scopes.data[0];
	assert_int_equal(f->calls, 10);
	assert_int_equal(f->unfinished, 3);
	assert_int_equal(f->nested, 0);
	/* Not the 300 of g, which was not called but took over. */
	assert_int_equal(f->values[0].value, 37);
	world_release(&world);
}

/* Entered from above 4 times, by a jump into its middle twice; its loop is no entry. */
static void test_range(void **state)
{
	struct world world = { 0 };
	const struct pm_stat_scope *range;

	add_region(&world, PM_STAT_RANGE, name_range, 0x2008, 0x2018);
	world_open(&world);
	assert_int_equal(add_text(&world, PROGRAM
				  "fn=f\n0x2000 5 6\njcnd=2/6 0x2010 5\n0x2004 6\n"
				  "0x2008 7 44\njump=40 0x2008 5\n0x2010 7\n"
				  "0x2010 7 46\ncfn=g\ncalls=46 0x3000 9\n0x2010 7 92\n"
				  "0x2018 9 6\nfn=g\n0x3000 9 92\ntotals: 194\n"),
			 0);
	finish(&world);
	range = &world.stat.scopes.data[0];
	assert_int_equal(range->calls, 6);
	assert_int_equal(range->values[0].value, 44 + 46 + 92);
	assert_int_equal(range->unfinished, 0);
	world_release(&world);
}

/* Processes and threads add up; of one whose file ends early it is told that there is more. */
static void test_files(void **state)
{
	struct world world = { 0 };
	const struct pm_stat_scope *f;

	add_region(&world, PM_STAT_FUNCTION, name_f, 0x2000, 0x2020);
	world.options.by_thread = true;
	world_open(&world);
	assert_int_equal(add_text(&world, PROGRAM "fn=f\n0x2000 5 3\ntotals: 3\n"), 0);
	assert_int_equal(add_text(&world,
				  "pid: 6\nthread: 2\npositions: instr line\nevents: Ir\n"
				  "ob=/nowhere/prog\nfl=a.c\nfn=f\n0x2000 5 4\n"),
			 -EBADMSG);
	assert_int_equal(add_text(&world, "pid: 6\nevents: Ir Dr\nfn=f\n1 1 1\n"
					  "totals: 1 1\n"),
			 -EBADMSG);
	finish(&world);
	f = &world.stat.scopes.data[0];
	assert_int_equal(f->calls, 7);
	assert_false(f->calls_exact);
	assert_int_equal(f->threads.len, 2);
	assert_int_equal(f->threads.data[1].pid, 6);
	assert_int_equal(f->threads.data[1].tid, 0);
	assert_int_equal(f->threads.data[1].calls, 4);
	assert_int_equal(world.stat.runs.data[0].rows.len, 2);
	world_release(&world);
}

/* Without any file nothing is known: it is not 0. */
static void test_no_file(void **state)
{
	struct world world = { 0 };

	add_region(&world, PM_STAT_FUNCTION, name_f, 0x2000, 0x2020);
	world_open(&world);
	finish(&world);
	assert_int_equal(world.stat.runs.data[0].values[0].state, PM_STAT_NOT_COUNTED);
	assert_int_equal(world.stat.scopes.data[0].values[0].state, PM_STAT_NOT_COUNTED);
	world_release(&world);
}

static void test_events(void **state)
{
	struct pm_stat stat = { 0 };
	struct pm_error err;

	assert_true(pm_sim_event_is("sim.nothing"));
	assert_false(pm_sim_event_is("simple"));
	assert_int_equal(pm_sim_event_describe(&stat, "sim.D1mx", false, &err), -ENOENT);
	assert_non_null(strstr(err.fix, "sim.D1m"));
	assert_int_equal(pm_sim_event_describe(&stat, "sim.ir", true, &err), 0);
	assert_int_equal(stat.events.len, 1);
	assert_string_equal(stat.events.data[0].name, "sim.Ir");
	assert_int_equal(stat.events.data[0].class, PM_STAT_EXACT);
	assert_true(stat.events.data[0].default_set);
	assert_null(pm_sim_event_name(17));
	pm_stat_release(&stat);
}

/* ---- valgrind ---------------------------------------------------------------------------- */

static const struct pm_stat_scope *scope_of(const struct pm_stat *stat, const char *name)
{
	for (size_t i = 0; i < stat->scopes.len; i++)
		if (strcmp(stat->scopes.data[i].name, name) == 0)
			return &stat->scopes.data[i];
	fail_msg("no scope %s", name);
	return NULL;
}

static void test_program(void **state)
{
	static const struct pm_region_spec specs[] = { { .text = "sum" } };
	PM_AUTO_FREE char *path = NULL;
	char ints[] = "1000";
	struct pm_stat stat = { 0 };
	struct pm_regions regions = { 0 };
	struct pm_child child = PM_CHILD_INIT;
	struct pm_engine_options options = { .regions = &regions };
	struct pm_error err = { 0 };
	const struct pm_stat_scope *sum;

	if (pm_engine_callgrind_check(&err) < 0) {
		print_message("%s\n", err.text);
		skip();
	}
	assert_true(asprintf(&path, "%s/sumbench", getenv("PROGRAMS")) > 0);
	options.command = (char *[]){ path, ints, NULL };
	options.data_on_stdout = true;
	assert_int_equal(pm_regions_find(&regions, specs, 1,
					 &(struct pm_probe_context){ .command = path },
					 &err),
			 0);
	assert_int_equal(pm_sim_event_describe(&stat, "sim.Ir", false, &err), 0);
	assert_int_equal(pm_engine_callgrind_run(&stat, &options, &child, &err), 0);
	sum = scope_of(&stat, "sum");
	assert_int_equal(sum->calls, 1);
	assert_int_equal(sum->unfinished, 0);
	/* A whole number of instructions for each of the ints, and a few around them. */
	assert_in_range(sum->values[0].value, 1000, 20000);
	assert_in_range(sum->values[0].value % 1000, 1, 30);
	assert_true(stat.runs.data[0].exited);
	assert_int_equal(stat.runs.data[0].exit_code, 0);
	pm_child_release(&child);
	pm_regions_release(&regions);
	pm_stat_release(&stat);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_positions),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_ends_of_calls),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

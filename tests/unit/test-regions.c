/* SPDX-License-Identifier: MIT */
/* What words mean, in programs whose functions and lines are known (tests/programs/regions.c,
 * probes-cpp.cc). */
#include "pm/count.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char *program, *source;

struct world {
	struct pm_regions regions;
	struct pm_error err;
	int code;
};

static void find_in(struct world *world, const struct pm_probe_context *context,
		    bool range, const char *text)
{
	struct pm_region_spec spec = { range, text };

	*world = (struct world){ 0 };
	world->code = pm_regions_find(&world->regions, &spec, 1, context, &world->err);
}

static void find(struct world *world, bool range, const char *text)
{
	struct pm_probe_context context = { .command = program };

	find_in(world, &context, range, text);
}

/* The number of the line of regions.c with this comment. */
static unsigned int line_of(const char *comment)
{
	char text[256];
	FILE *from = fopen(source, "r");
	unsigned int line = 0, found = 0;

	assert_non_null(from);
	while (fgets(text, sizeof(text), from)) {
		line++;
		if (strstr(text, comment))
			found = line;
	}
	fclose(from);
	assert_true(found > 0);
	return found;
}

static size_t count_places(const struct pm_regions *regions, uint32_t region,
			   enum pm_place_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < regions->places.len; i++)
		count += regions->places.data[i].region == region &&
			 regions->places.data[i].kind == kind;
	return count;
}

/* What has to be true of all places, whatever was asked for. */
static void check_places(const struct pm_regions *regions)
{
	for (size_t i = 0; i < regions->places.len; i++) {
		const struct pm_place *place = &regions->places.data[i];
		const struct pm_region *region;
		uint8_t bytes[16];

		assert_true(place->region < regions->list.len);
		region = &regions->list.data[place->region];
		assert_true(place->len > 0 && place->len <= 15);
		assert_int_equal(
			pread(region->fd, bytes, place->len, (off_t)place->offset),
			place->len);
		assert_memory_equal(bytes, place->bytes, place->len);
		assert_true(i == 0 ||
			    regions->places.data[i - 1].region <= place->region);
		if (place->kind == PM_PLACE_ENTRY)
			assert_true(place->sp_known);
	}
}

static void assert_one(const char *text, const char *name, const char *comment)
{
	struct world world;
	const struct pm_region *region;

	find(&world, false, text);
	assert_int_equal(world.code, 0);
	assert_int_equal(world.regions.list.len, 1);
	region = world.regions.list.data;
	assert_int_equal(region->kind, PM_STAT_FUNCTION);
	assert_string_equal(region->name, name);
	assert_non_null(strstr(region->file, "regions.c"));
	assert_int_equal(region->line, line_of(comment));
	assert_int_equal(count_places(&world.regions, 0, PM_PLACE_ENTRY), 1);
	assert_true(count_places(&world.regions, 0, PM_PLACE_EXIT) >= 1);
	check_places(&world.regions);
	pm_regions_release(&world.regions);
}

static void names_are_found(void **state)
{
	char text[64];

	assert_one("loop", "loop", "/* loop */");
	assert_one("hand_o*", "hand_over", "/* hand over */");
	assert_one("twice@regions", "twice", "/* twice */");
	/* One function with two names. */
	assert_one("doubled", "doubled", "/* twice */");
	snprintf(text, sizeof(text), "regions.c:%u", line_of("/* loop */"));
	assert_one(text, "loop", "/* loop */");
}

static void two_names_are_one_region(void **state)
{
	struct pm_region_spec specs[] = { { false, "twice" }, { false, "doubled" } };
	struct pm_probe_context context = { .command = program };
	struct pm_regions regions = { 0 };

	assert_int_equal(pm_regions_find(&regions, specs, 2, &context, NULL), 0);
	assert_int_equal(regions.list.len, 1);
	pm_regions_release(&regions);
}

static void libraries_are_searched(void **state)
{
	struct world world;

	find(&world, false, "puts");
	assert_int_equal(world.code, 0);
	assert_int_equal(world.regions.list.len, 1);
	assert_non_null(strstr(world.regions.list.data[0].module, "libc"));
	pm_regions_release(&world.regions);
	find(&world, false, "qsort@libc");
	assert_int_equal(world.code, 0);
	check_places(&world.regions);
	pm_regions_release(&world.regions);
	find(&world, false, "qsort@libnothing");
	assert_int_equal(world.code, -ENOENT);
}

static void what_is_not_there_is_told(void **state)
{
	struct world world;
	char text[64];

	find(&world, false, "twise");
	assert_int_equal(world.code, -ENOENT);
	assert_non_null(strstr(world.err.text, "twice"));
	/* In the middle of a function. */
	snprintf(text, sizeof(text), "regions.c:%u", line_of("/* body */"));
	find(&world, false, text);
	assert_int_equal(world.code, -ENOENT);
	assert_non_null(strstr(world.err.fix, "loop"));
	find(&world, false, "region.c:12");
	assert_int_equal(world.code, -ENOENT);
	assert_non_null(strstr(world.err.text, "regions.c"));
	find(&world, true, "regions.c:1-2");
	assert_int_equal(world.code, -ENOENT);
	/* Data of libm: not what was meant, and so not why it is not found. */
	find(&world, false, "stdout");
	assert_int_equal(world.code, -ENOENT);
	find(&world, false, "@libc");
	assert_int_equal(world.code, -EINVAL);
}

static bool has_note(const struct world *world, const char *text)
{
	for (size_t i = 0; i < world->regions.notes.len; i++)
		if (strstr(world->regions.notes.data[i], text))
			return true;
	return false;
}

static void inlined_places_add_up(void **state)
{
	struct world world;
	size_t parted = 0;

	find(&world, false, "clamp");
	assert_int_equal(world.code, 0);
	/* In choose() and in loop(), and what that was copied to. */
	assert_true(world.regions.list.len >= 3);
	assert_int_equal(world.regions.list.data[0].sum, -1);
	assert_int_equal(count_places(&world.regions, 0, PM_PLACE_IN), 0);
	for (uint32_t i = 1; i < world.regions.list.len; i++) {
		const struct pm_region *region = &world.regions.list.data[i];

		assert_int_equal(region->kind, PM_STAT_INLINED);
		assert_string_equal(region->name, "clamp");
		assert_int_equal(region->sum, 0);
		assert_int_equal(region->places_total, world.regions.list.len - 1);
		assert_true(region->line > 0 && region->pieces.len > 0);
		assert_true(count_places(&world.regions, i, PM_PLACE_IN) > 0);
		assert_true(count_places(&world.regions, i, PM_PLACE_OUT) > 0);
		parted += count_places(&world.regions, i, PM_PLACE_IN) > 1;
	}
	assert_int_equal(has_note(&world, "mixed with other code"), parted > 0);
	check_places(&world.regions);
	pm_regions_release(&world.regions);
}

static void ranges_of_lines(void **state)
{
	struct world world;
	char text[64];
	const struct pm_region *region;

	snprintf(text, sizeof(text), "regions.c:%u-%u", line_of("/* body */"),
		 line_of("/* end of body */"));
	find(&world, true, text);
	assert_int_equal(world.code, 0);
	assert_int_equal(world.regions.list.len, 1);
	region = world.regions.list.data;
	assert_int_equal(region->kind, PM_STAT_RANGE);
	assert_string_equal(region->name, text);
	assert_int_equal(region->line, line_of("/* body */"));
	assert_int_equal(region->line_end, line_of("/* end of body */"));
	assert_true(count_places(&world.regions, 0, PM_PLACE_IN) > 0);
	assert_true(count_places(&world.regions, 0, PM_PLACE_OUT) > 0);
	check_places(&world.regions);
	pm_regions_release(&world.regions);
}

/* All of loop() but its first instruction, by the addresses that it has. */
static void ranges_of_addresses(void **state)
{
	struct world world;
	uint64_t low, high;
	char text[64];

	find(&world, false, "loop");
	assert_int_equal(world.code, 0);
	low = world.regions.list.data[0].pieces.data[0].low;
	high = world.regions.list.data[0].pieces.data[0].high;
	pm_regions_release(&world.regions);
	snprintf(text, sizeof(text), "0x%llx-0x%llx", (unsigned long long)low,
		 (unsigned long long)high);
	find(&world, true, text);
	assert_int_equal(world.code, 0);
	/* It comes in at the beginning alone, and goes by all returns. */
	assert_int_equal(count_places(&world.regions, 0, PM_PLACE_IN), 1);
	assert_int_equal(world.regions.places.data[0].address, low);
	check_places(&world.regions);
	pm_regions_release(&world.regions);
	for (uint64_t at = low + 1; at < low + 15; at++) {
		snprintf(text, sizeof(text), "0x%llx-0x%llx", (unsigned long long)at,
			 (unsigned long long)high);
		find(&world, true, text);
		if (world.code == -EINVAL)
			break;
		assert_int_equal(world.code, 0);
		pm_regions_release(&world.regions);
	}
	assert_non_null(strstr(world.err.text, "no instruction begins"));
}

static void bad_ranges_are_refused(void **state)
{
	static const char *const bad[] = {
		"main",       "regions.c:",     "regions.c:20-10",
		"0x20-0x10",  "0x1-",           "regions.c:0-3",
		":3-4",       "regions.c:3-4x", "0x10-0x18",
		"regions.c:-"
	};
	struct world world;

	for (size_t i = 0; i < PM_ARRAY_LEN(bad); i++) {
		find(&world, true, bad[i]);
		assert_int_equal(world.code, -EINVAL);
		assert_true(world.err.text[0] != '\0');
	}
}

/* A copy of the program that objcopy(1) has changed. To be unlinked. */
static void copy_with(const char *options, char path[static 32])
{
	char command[512];
	int fd;

	snprintf(path, 32, "/tmp/pm-regions-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0700), 0);
	close(fd);
	snprintf(command, sizeof(command), "objcopy %s '%s' %s", options, program, path);
	assert_int_equal(system(command), 0);
}

static void need_objcopy(void)
{
	if (system("command -v objcopy >/dev/null") != 0) {
		print_message("# objcopy is not installed\n");
		skip();
	}
}

static void stripped_files_say_what_is_missing(void **state)
{
	char path[32];
	struct pm_probe_context context = { .command = path };
	struct world world;

	need_objcopy();
	copy_with("-S", path);
	find_in(&world, &context, false, "loop");
	assert_true(world.code == -ENOENT || world.code == -ENODATA);
	assert_non_null(strstr(world.err.text, "stripped"));
	find_in(&world, &context, true, "regions.c:10-20");
	assert_int_equal(world.code, -ENODATA);
	assert_non_null(strstr(world.err.fix, "-g"));
	unlink(path);
}

/* The places of the same code in two files. */
static void assert_same_places(const struct world *one, const struct world *other)
{
	assert_int_equal(one->code, 0);
	assert_int_equal(other->code, 0);
	assert_int_equal(one->regions.places.len, other->regions.places.len);
	for (size_t i = 0; i < one->regions.places.len; i++) {
		assert_int_equal(one->regions.places.data[i].address,
				 other->regions.places.data[i].address);
		assert_int_equal(one->regions.places.data[i].kind,
				 other->regions.places.data[i].kind);
	}
}

/* The address of .text, as readelf(1) tells it. */
static unsigned long long begin_of_text(void)
{
	char command[512];
	unsigned long long begin = 0;
	FILE *from;

	snprintf(
		command, sizeof(command),
		"readelf -WS '%s' | sed -n 's/.* \\.text  *PROGBITS  *\\([0-9a-f]*\\).*/\\1/p'",
		program);
	from = popen(command, "r");
	assert_non_null(from);
	assert_int_equal(fscanf(from, "%llx", &begin), 1);
	assert_int_equal(pclose(from), 0);
	return begin;
}

/* Where functions begin and end is in the unwinding information, too. */
static void functions_have_ends_without_symbols(void **state)
{
	char path[32], text[64], options[128];
	struct pm_probe_context context = { .command = path };
	struct world whole, range, without;
	const struct pm_region_piece *piece;

	need_objcopy();
	find(&whole, false, "loop");
	assert_int_equal(whole.code, 0);
	piece = &whole.regions.list.data[0].pieces.data[0];
	copy_with("-S", path);
	for (uint64_t from = piece->low; from < piece->low + 12; from++) {
		snprintf(text, sizeof(text), "0x%llx-0x%llx", (unsigned long long)from,
			 (unsigned long long)piece->high);
		find(&range, true, text);
		find_in(&without, &context, true, text);
		assert_int_equal(range.code, without.code);
		if (range.code == 0)
			assert_same_places(&range, &without);
		pm_regions_release(&range.regions);
		pm_regions_release(&without.regions);
	}
	unlink(path);
	/* What objcopy adds has no size. */
	snprintf(options, sizeof(options),
		 "--strip-symbol=loop --add-symbol loop=.text:0x%llx,function",
		 (unsigned long long)(piece->low - begin_of_text()));
	copy_with(options, path);
	find_in(&without, &context, false, "loop");
	assert_same_places(&whole, &without);
	assert_int_equal(without.regions.list.data[0].pieces.data[0].high, piece->high);
	pm_regions_release(&without.regions);
	pm_regions_release(&whole.regions);
	unlink(path);
}

/* Static functions without symbols, and _init before them, which has no size. */
static void functions_without_symbols_are_in_ranges(void **state)
{
	char path[32], text[64];
	struct pm_probe_context context = { .command = path };
	struct world whole, without;

	need_objcopy();
	copy_with("-N loop -N hand_over", path);
	snprintf(text, sizeof(text), "regions.c:%u-%u", line_of("/* loop */"),
		 line_of("/* hand over */") + 2);
	find(&whole, true, text);
	find_in(&without, &context, true, text);
	assert_same_places(&whole, &without);
	pm_regions_release(&without.regions);
	pm_regions_release(&whole.regions);
	unlink(path);
}

static void ifuncs_are_no_functions(void **state)
{
#ifdef __GLIBC__
	struct world world;

	find(&world, false, "memcpy");
	assert_int_equal(world.code, -EINVAL);
	assert_non_null(strstr(world.err.text, "IFUNC"));
#else
	skip();
#endif
}

static void overloads_are_all_meant(void **state)
{
	PM_AUTO_FREE char *path = NULL;
	struct pm_probe_context context = { 0 };
	struct world world;

	assert_true(asprintf(&path, "%s/probes-cpp", getenv("PROGRAMS")) > 0);
	if (access(path, X_OK) < 0)
		skip();
	context.command = path;
	find_in(&world, &context, false, "shapes::area");
	assert_int_equal(world.code, 0);
	assert_int_equal(world.regions.list.len, 2);
	assert_int_equal(world.regions.notes.len, 1);
	pm_regions_release(&world.regions);
	find_in(&world, &context, false, "shapes::area(int)");
	assert_int_equal(world.code, 0);
	assert_int_equal(world.regions.list.len, 1);
	assert_string_equal(world.regions.list.data[0].name, "shapes::area(int)");
	check_places(&world.regions);
	pm_regions_release(&world.regions);
	/* Without its namespace it is the only one of that name, with all its overloads. */
	find_in(&world, &context, false, "area");
	assert_int_equal(world.code, 0);
	assert_int_equal(world.regions.list.len, 2);
	assert_non_null(strstr(world.regions.list.data[0].name, "shapes::area("));
	pm_regions_release(&world.regions);
	find_in(&world, &context, false, "aera");
	assert_int_equal(world.code, -ENOENT);
	assert_non_null(strstr(world.err.text, "near names: shapes::area"));
	/* Also what is there only inlined. */
	find_in(&world, &context, false, "outline");
	assert_int_equal(world.code, 0);
	assert_int_equal(world.regions.list.data[0].kind, PM_STAT_INLINED);
	assert_non_null(strstr(world.regions.list.data[0].name, "shapes::outline"));
	pm_regions_release(&world.regions);
	find_in(&world, &context, false, "outlien");
	assert_int_equal(world.code, -ENOENT);
	assert_non_null(strstr(world.err.text, "near names: shapes::outline"));
	/* Of several none is taken. */
	find_in(&world, &context, false, "grow");
	assert_int_equal(world.code, -ENOENT);
	assert_non_null(strstr(world.err.text, "shapes::grow<"));
	find_in(&world, &context, false, "shapes::grow<*>");
	assert_int_equal(world.code, 0);
	assert_int_equal(world.regions.list.len, 2);
	pm_regions_release(&world.regions);
}

__attribute__((noinline, used)) static int only_here(int value)
{
	return value * 3;
}

static void running_programs_are_looked_into(void **state)
{
	pid_t pid = getpid();
	struct pm_probe_context context = { .pids = &pid, .pids_len = 1 };
	struct world world;

	assert_int_equal(only_here(2), 6);
	find_in(&world, &context, false, "only_here");
	assert_int_equal(world.code, 0);
	assert_int_equal(world.regions.list.len, 1);
	check_places(&world.regions);
	pm_regions_release(&world.regions);
	find_in(&world, &context, false, "qsort");
	assert_int_equal(world.code, 0);
	pm_regions_release(&world.regions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found),
		cmocka_unit_test(two_names_are_one_region),
		cmocka_unit_test(libraries_are_searched),
		cmocka_unit_test(what_is_not_there_is_told),
		cmocka_unit_test(inlined_places_add_up),
		cmocka_unit_test(ranges_of_lines),
		cmocka_unit_test(ranges_of_addresses),
		cmocka_unit_test(bad_ranges_are_refused),
		cmocka_unit_test(stripped_files_say_what_is_missing),
		cmocka_unit_test(functions_have_ends_without_symbols),
		cmocka_unit_test(functions_without_symbols_are_in_ranges),
		cmocka_unit_test(ifuncs_are_no_functions),
		cmocka_unit_test(overloads_are_all_meant),
		cmocka_unit_test(running_programs_are_looked_into),
	};

	if (asprintf(&program, "%s/regions", getenv("PROGRAMS")) < 0 ||
	    asprintf(&source, "%s/tests/programs/regions.c", getenv("PM_SOURCE")) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

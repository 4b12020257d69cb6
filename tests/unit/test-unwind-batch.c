/* SPDX-License-Identifier: MIT */
/*
 * Chains found one by one and side by side are those of the plain loop, frame for frame: on
 * recorded samples, and on the same after words and registers were changed.
 */
#include "pm/corpus.h"
#include "tests/unit/unwind-ways.h"

enum {
	MODULES_MAX = 64,
	MAPS_MAX = 256,
	SAMPLES_MAX = 64,
	ROUNDS = 250, /* of a batch of changed samples each */
};

struct world {
	struct pm_unw_module *modules[MODULES_MAX];
	size_t modules_len;
	struct pm_unw_map maps[MAPS_MAX];
	struct pm_unw_space space;
	struct sample samples[SAMPLES_MAX];
	uint8_t *copies[SAMPLES_MAX]; /* their stacks */
	size_t samples_len;
	struct pm_unwinder *unwinder, *plain; /* one for each way: caches of their own */
};

/* ---- the recorded samples --------------------------------------------------------------- */

static struct pm_unw_part part_of(const struct pm_corpus_part *part)
{
	return (struct pm_unw_part){ part->svma, part->data, part->len };
}

static void add_module(struct world *world, const struct pm_corpus_module *from)
{
	struct pm_unw_part_load loads[16];
	struct pm_unw_parts parts = { .arch = PM_UNW_X86_64,
				      .entry = from->entry,
				      .loads = loads,
				      .loads_len = from->loads_len,
				      .eh_frame_hdr = part_of(&from->eh_frame_hdr),
				      .eh_frame = part_of(&from->eh_frame),
				      .debug_frame = part_of(&from->debug_frame) };

	assert_true(from->loads_len <= PM_ARRAY_LEN(loads));
	assert_true(world->modules_len < MODULES_MAX);
	for (size_t i = 0; i < from->loads_len; i++)
		loads[i] = (struct pm_unw_part_load){ .vaddr = from->loads[i].vaddr,
						      .offset = from->loads[i].offset,
						      .filesz = from->loads[i].filesz,
						      .executable =
							      from->loads[i].flags & 1 };
	assert_int_equal(pm_unw_module_from_parts(&world->modules[world->modules_len++],
						  &parts, NULL),
			 0);
}

/* The fixture has one process. */
static void add_space(struct world *world, const struct pm_corpus_space *from)
{
	assert_true(from->maps_len <= MAPS_MAX);
	for (size_t i = 0; i < from->maps_len; i++) {
		const struct pm_corpus_map *map = &from->maps[i];

		world->maps[i] =
			(struct pm_unw_map){ .start = map->start, .end = map->end };
		if (map->module < world->modules_len &&
		    pm_unw_module_bias(world->modules[map->module], map->start,
				       map->pgoff, &world->maps[i].bias) == 0)
			world->maps[i].module = world->modules[map->module];
	}
	world->space =
		(struct pm_unw_space){ .maps = world->maps, .len = from->maps_len };
}

static void add_sample(struct world *world, const struct pm_corpus_sample *from)
{
	struct sample *sample = &world->samples[world->samples_len];
	uint8_t *copy = malloc(from->stack_len + 1);

	if (world->samples_len == SAMPLES_MAX) {
		free(copy);
		return;
	}
	assert_non_null(copy);
	memcpy(copy, from->stack, from->stack_len);
	sample->regs = (struct pm_unw_regs){ .known = from->known };
	memcpy(sample->regs.value, from->regs, sizeof(from->regs));
	sample->stack = (struct pm_unw_stack){ from->stack_start, copy, from->stack_len };
	world->copies[world->samples_len++] = copy;
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	const char *path = getenv("PM_TEST_CORPUS");
	struct pm_corpus_record record;
	struct pm_corpus *corpus;
	struct pm_error err = { 0 };

	assert_non_null(world);
	assert_non_null(path);
	assert_int_equal(pm_corpus_open(&corpus, path, &err), 0);
	while (pm_corpus_next(corpus, &record, &err) == 1) {
		if (record.type == PM_CORPUS_MODULE)
			add_module(world, &record.module);
		else if (record.type == PM_CORPUS_SPACE)
			add_space(world, &record.space);
		else if (record.type == PM_CORPUS_SAMPLE)
			add_sample(world, &record.sample);
	}
	pm_corpus_free(corpus);
	assert_true(world->samples_len > 10);
	world->unwinder = pm_unwinder_new();
	world->plain = pm_unwinder_new();
	assert_non_null(world->unwinder);
	assert_non_null(world->plain);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	if (!world)
		return 0;
	for (size_t i = 0; i < world->modules_len; i++)
		pm_unw_module_free(world->modules[i]);
	for (size_t i = 0; i < world->samples_len; i++)
		free(world->copies[i]);
	pm_unwinder_free(world->unwinder);
	pm_unwinder_free(world->plain);
	free(world);
	return 0;
}

static void test_recorded(void **state)
{
	struct world *world = *state;

	for (size_t batch = 1; batch <= PM_UNW_BATCH_MAX; batch++) {
		size_t frames = 0, len;

		for (size_t i = 0; i < world->samples_len; i += len) {
			len = world->samples_len - i;
			len = len < batch ? len : batch;
			frames += check(world->unwinder, world->plain, &world->space,
					&world->samples[i], len);
		}
		assert_true(frames > 5 * world->samples_len);
	}
}

/* ---- changed samples -------------------------------------------------------------------- */

/* Some value that may lead a walk astray. */
static uint64_t odd_value(const struct world *world, const struct sample *sample,
			  uint64_t *seed)
{
	const struct pm_unw_map *map =
		&world->space.maps[next_random(seed) % world->space.len];
	uint64_t value;
	size_t words = sample->stack.len / 8;

	switch (next_random(seed) % 8) {
	case 0:
		return 0;
	case 1:
		return next_random(seed) << 24;
	case 2:
		return map->start + next_random(seed) % (map->end - map->start);
	case 3:
		return map->end;
	case 4:
		return sample->stack.start + next_random(seed) % sample->stack.len;
	case 5:
		return sample->stack.start + sample->stack.len - next_random(seed) % 32;
	case 6:
		return UINT64_MAX - next_random(seed) % 16;
	default:
		memcpy(&value,
		       sample->stack.data + next_random(seed) % (words ? words : 1) * 8,
		       8);
		return value;
	}
}

static struct sample change(const struct world *world, uint8_t *copy, uint64_t *seed)
{
	struct sample ret = world->samples[next_random(seed) % world->samples_len];
	size_t changes = next_random(seed) % 6;

	if (ret.stack.len > STACK_MAX)
		ret.stack.len = STACK_MAX;
	memcpy(copy, ret.stack.data, ret.stack.len);
	ret.stack.data = copy;
	for (size_t i = 0; i < changes; i++) {
		/* Most of a stack is near its end, and most frames are near its beginning. */
		size_t span = ret.stack.len >> next_random(seed) % 6;
		size_t at = next_random(seed) % (span > 16 ? span - 8 : 8) & ~(size_t)7;
		uint64_t value = odd_value(world, &ret, seed);
		size_t reg = next_random(seed) % PM_UNW_X86_64_REGS;

		switch (next_random(seed) % 8) {
		case 0:
			ret.regs.value[reg] = value;
			break;
		case 1:
			ret.regs.known &= ~((uint64_t)1 << reg);
			break;
		case 2:
			ret.stack.len = next_random(seed) % (ret.stack.len + 1);
			if (ret.stack.len < 64)
				return ret;
			break;
		default:
			memcpy(copy + at, &value, 8);
		}
	}
	return ret;
}

static void test_changed(void **state)
{
	struct sample changed[PM_UNW_BATCH_MAX];
	struct world *world = *state;
	uint64_t seed = 20261121;
	size_t frames = 0;

	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < PM_UNW_BATCH_MAX; i++)
			changed[i] = change(world, stacks[i], &seed);
		frames += check(world->unwinder, world->plain, &world->space, changed,
				PM_UNW_BATCH_MAX);
	}
	assert_true(frames > ROUNDS * (size_t)PM_UNW_BATCH_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_changed),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

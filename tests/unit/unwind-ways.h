/* SPDX-License-Identifier: MIT */
/* For tests that unwind in all ways and compare: by the plain loop, singly, in a batch. */
#pragma once

#include "unwind/unwind-parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
	STACK_MAX = 1 << 16,
};

struct sample {
	struct pm_unw_regs regs;
	struct pm_unw_stack stack;
};

static struct pm_unw_frame found[PM_UNW_BATCH_MAX][PM_UNW_FRAMES_MAX];
static struct pm_unw_frame single[PM_UNW_FRAMES_MAX], expected[PM_UNW_FRAMES_MAX];
static uint8_t stacks[PM_UNW_BATCH_MAX][STACK_MAX]; /* for samples that are made */

/* Numerical Recipes' ranqd1, widened: the same in each run. */
static inline uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 24;
}

static inline void check_chain(const struct pm_unw_frame *frames, size_t len,
			       enum pm_unw_stop stop, size_t expected_len,
			       enum pm_unw_stop expected_stop)
{
	assert_int_equal(stop, expected_stop);
	assert_int_equal(len, expected_len);
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(frames[i].pc, expected[i].pc);
		assert_int_equal(frames[i].lookup, expected[i].lookup);
		assert_int_equal(frames[i].sp, expected[i].sp);
		assert_ptr_equal(frames[i].map, expected[i].map);
		assert_int_equal(frames[i].how, expected[i].how);
	}
}

/* All three ways for @len samples. Returns how many frames they have. */
static inline size_t check(struct pm_unwinder *unwinder, struct pm_unwinder *plain,
			   const struct pm_unw_space *space, const struct sample *samples,
			   size_t len)
{
	struct pm_unw_job jobs[PM_UNW_BATCH_MAX];
	size_t total = 0;

	for (size_t i = 0; i < len; i++)
		jobs[i] = (struct pm_unw_job){ .space = space,
					       .regs = &samples[i].regs,
					       .stack = samples[i].stack,
					       .frames = found[i] };
	pm_unwind_batch(unwinder, jobs, len);
	for (size_t i = 0; i < len; i++) {
		enum pm_unw_stop expected_stop, stop;
		size_t expected_len =
			pm_unw_walk(plain, space, &samples[i].regs, &samples[i].stack,
				    expected, &expected_stop);
		size_t single_len = pm_unwind(unwinder, space, &samples[i].regs,
					      &samples[i].stack, single, &stop);

		check_chain(single, single_len, stop, expected_len, expected_stop);
		check_chain(found[i], jobs[i].len, jobs[i].stop, expected_len,
			    expected_stop);
		total += expected_len;
	}
	return total;
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "src/chain/stitch.h"

/*
 * Stacks with a known truth. A call takes FRAME_BYTES: six words for the registers that the
 * callee saves and the return address above them; then come its own words.
 */
enum {
	FRAME_BYTES = 96,
	DEPTH_MAX = 600,
	LIMIT = 4096,
};
#define TOP 0x7fff00000000ull

struct call {
	uint64_t address; /* the frame's place in the code */
	uint64_t saved; /* what its callee's pushes hold */
	size_t others; /* so many of its callee's pushes hold something else */
};

struct stack {
	struct call calls[DEPTH_MAX]; /* outermost first */
	size_t depth;
};

static uint64_t sample_time;
static size_t sample_max = LIMIT; /* frames */

static uint64_t sp_of(size_t index)
{
	return TOP - (index + 1) * FRAME_BYTES;
}

static void call(struct stack *stack, uint64_t address, uint64_t saved)
{
	assert_true(stack->depth < DEPTH_MAX);
	stack->calls[stack->depth++] =
		(struct call){ .address = address, .saved = saved };
}

static struct pm_chain_stitch_frame frame_of(const struct stack *stack, size_t index,
					     uint32_t module)
{
	const struct call *of = &stack->calls[index];
	struct pm_chain_stitch_frame frame = { .sp = sp_of(index),
					       .address = of->address,
					       .module = module };

	for (size_t word = 1; word <= PM_CHAIN_EVIDENCE_WORDS; word++)
		frame.saved[PM_CHAIN_EVIDENCE_WORDS - word] =
			pm_chain_stitch_hash(of->saved + (word <= of->others));
	return frame;
}

/* The thread's memory when it is looked at. NULL: it cannot be read. */
static const struct stack *memory;

static bool in_place(void *user, const struct pm_chain_stitch_frame *frames, size_t len)
{
	(void)user;
	if (!memory)
		return false;
	for (size_t i = 0; i < len; i++) {
		size_t index = (TOP - frames[i].sp) / FRAME_BYTES - 1;

		if (index >= memory->depth ||
		    memory->calls[index].address != frames[i].address)
			return false;
	}
	return true;
}

/* What a copy of the leaf-most @frames frames gives; 0: of the whole stack. */
static int sample_as(struct pm_chain_stitches *stitches, uint32_t tid,
		     struct stack *stack, size_t frames, uint32_t module,
		     struct pm_chain_stitched *ret)
{
	static struct pm_chain_stitch_frame found[DEPTH_MAX];
	size_t len = frames == 0 || frames > stack->depth ? stack->depth : frames;
	struct pm_chain_stitch_sample sample = {
		.pid = 1,
		.tid = tid,
		.frames = found,
		.len = len,
		.end = len == stack->depth ? PM_CHAIN_STITCH_ROOTED
					   : PM_CHAIN_STITCH_TRUNCATED,
		.time = sample_time,
		.caller_sp = len < stack->depth ? sp_of(stack->depth - 1 - len) : 0,
		.in_place = in_place,
	};

	for (size_t i = 0; i < len; i++)
		found[i] = frame_of(stack, stack->depth - 1 - i, module);
	return pm_chain_stitches_add(stitches, &sample, sample_max, ret);
}

/* How many outer frames are known; all of them are compared with the truth. */
static size_t sample(struct pm_chain_stitches *stitches, struct stack *stack,
		     size_t frames)
{
	struct pm_chain_stitched stitched;

	assert_int_equal(sample_as(stitches, 1, stack, frames, 0, &stitched), 0);
	for (size_t i = 0; i < stitched.len; i++) {
		size_t index = stack->depth - 1 - frames - i;

		assert_true(index < stack->depth);
		assert_int_equal(stitched.frames[i].sp, sp_of(index));
		assert_int_equal(stitched.frames[i].address, stack->calls[index].address);
	}
	if (stitched.len > 0)
		assert_int_equal(stitched.rooted, frames + stitched.len == stack->depth);
	return stitched.len;
}

static struct stack *stack_of(size_t depth)
{
	struct stack *stack = calloc(1, sizeof(*stack));

	assert_non_null(stack);
	while (stack->depth < depth)
		call(stack, 0x1000 + stack->depth, 1);
	return stack;
}

static void test_outer_part_is_taken(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(10);

	(void)state;
	assert_int_equal(sample(stitches, stack, 0), 0); /* nothing is missing */
	call(stack, 0x2000, 2);
	call(stack, 0x2001, 2);
	assert_int_equal(sample(stitches, stack, 4), 8);
	/* And what was taken serves the next one. */
	call(stack, 0x2002, 2);
	assert_int_equal(sample(stitches, stack, 4), 9);
	assert_int_equal(sample(stitches, stack, 1), 12);
	pm_chain_stitches_free(stitches);
}

static void test_nothing_is_known_at_first(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(10);

	(void)state;
	assert_int_equal(sample(stitches, stack, 4), 0);
	assert_int_equal(sample(stitches, stack, 4), 0);
	/* A deeper copy tells the rest, and then they all have it. */
	assert_int_equal(sample(stitches, stack, 7), 0);
	assert_int_equal(sample(stitches, stack, 0), 0);
	assert_int_equal(sample(stitches, stack, 4), 6);
	pm_chain_stitches_free(stitches);
}

/* Known up to a frame whose callers are not: it is given, and not called complete. */
static void test_partial(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(10);

	(void)state;
	assert_int_equal(sample(stitches, stack, 6), 0);
	call(stack, 0x2000, 2);
	assert_int_equal(sample(stitches, stack, 4), 3);
	pm_chain_stitches_free(stitches);
}

/* Two parts that were never seen together. */
static void test_parts_are_put_together(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	size_t kept;

	(void)state;
	assert_int_equal(sample(stitches, stack, 0), 0);
	for (uint64_t i = 0; i < 5; i++)
		call(stack, 0x2000 + i, 2);
	/* Its outermost frame was gone in between, so only the saved registers tell. */
	kept = stack->depth;
	stack->depth = 2;
	call(stack, 0x5000, 3);
	assert_int_equal(sample(stitches, stack, 0), 0);
	stack->depth = 2;
	for (size_t i = 2; i < 10; i++)
		call(stack, 0x1000 + i, 1);
	for (uint64_t i = 0; i < 5; i++)
		call(stack, 0x2000 + i, 2);
	assert_int_equal(stack->depth, kept);
	assert_int_equal(sample(stitches, stack, 8), 7);
	pm_chain_stitches_free(stitches);
}

/* Makes frame 5 of 10 known, then gone; @from_0 when its caller is gone, too. */
static void come_and_go(struct pm_chain_stitches *stitches, struct stack *stack,
			bool with_caller)
{
	assert_int_equal(sample(stitches, stack, 0), 0);
	stack->depth = with_caller ? 4 : 5;
	call(stack, 0x9000, 9);
	assert_int_equal(sample(stitches, stack, 0), 0);
	stack->depth = with_caller ? 4 : 5;
}

static void test_returned_frame_needs_evidence(void **state)
{
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();

	(void)state;
	/* The same place and stack pointer, but other callers and other registers. */
	come_and_go(stitches, stack, true);
	stack->calls[3].address = 0x7000;
	call(stack, 0x7001, 7);
	call(stack, 0x1005, 7);
	call(stack, 0x8000, 8);
	assert_int_equal(sample(stitches, stack, 2), 0);
	pm_chain_stitches_free(stitches);
}

static void test_returned_frame_with_its_registers(void **state)
{
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();

	(void)state;
	come_and_go(stitches, stack, true);
	call(stack, 0x1004, 1);
	call(stack, 0x1005, 1);
	call(stack, 0x8000, 8);
	assert_int_equal(sample(stitches, stack, 2), 5);
	pm_chain_stitches_free(stitches);
}

/* One register may have changed: it may be what counts the rounds of a loop. */
static void test_most_registers_are_the_same(void **state)
{
	(void)state;
	for (size_t others = 0; others <= 6; others++) {
		PM_AUTO_FREE struct stack *stack = stack_of(10);
		struct pm_chain_stitches *stitches = pm_chain_stitches_new();

		come_and_go(stitches, stack, true);
		call(stack, 0x1004, 1);
		call(stack, 0x1005, 1);
		stack->calls[stack->depth - 1].others = others;
		call(stack, 0x8000, 8);
		assert_int_equal(sample(stitches, stack, 2), others <= 1 ? 5 : 0);
		pm_chain_stitches_free(stitches);
	}
}

static void test_returned_frame_with_its_caller(void **state)
{
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();

	(void)state;
	/* Other registers, but the caller stood at this very call in the last sample. */
	come_and_go(stitches, stack, false);
	call(stack, 0x1005, 7);
	call(stack, 0x8000, 8);
	assert_int_equal(sample(stitches, stack, 2), 5);
	pm_chain_stitches_free(stitches);
}

static void test_threads_are_apart(void **state)
{
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	struct pm_chain_stitched stitched;

	(void)state;
	assert_int_equal(sample(stitches, stack, 0), 0);
	assert_int_equal(sample_as(stitches, 2, stack, 4, 0, &stitched), 0);
	assert_int_equal(stitched.len, 0);
	assert_int_equal(sample(stitches, stack, 4), 6);
	/* The number is another thread's now. */
	pm_chain_stitches_forget_thread(stitches, 1, 1);
	assert_int_equal(sample(stitches, stack, 4), 0);
	assert_int_equal(sample(stitches, stack, 0), 0);
	pm_chain_stitches_forget_process(stitches, 2);
	assert_int_equal(sample(stitches, stack, 4), 6);
	pm_chain_stitches_forget_process(stitches, 1);
	assert_int_equal(sample(stitches, stack, 4), 0);
	pm_chain_stitches_forget_thread(stitches, 77, 77); /* never heard of */
	pm_chain_stitches_free(stitches);
}

static void test_other_file_at_the_address(void **state)
{
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	struct pm_chain_stitched stitched;

	(void)state;
	assert_int_equal(sample(stitches, stack, 0), 0);
	assert_int_equal(sample_as(stitches, 1, stack, 4, 5, &stitched), 0);
	assert_int_equal(stitched.len, 0);
	pm_chain_stitches_free(stitches);
}

static int add(struct pm_chain_stitches *stitches,
	       const struct pm_chain_stitch_frame *frames, size_t len,
	       enum pm_chain_stitch_end end, size_t max, struct pm_chain_stitched *ret)
{
	struct pm_chain_stitch_sample sample = {
		.pid = 1, .tid = 1, .frames = frames, .len = len, .end = end
	};

	return pm_chain_stitches_add(stitches, &sample, max, ret);
}

/* A frame that a signal interrupted is the same only with the same registers. */
static void test_left_for_another_stack(void **state)
{
	static const struct pm_chain_stitch_frame whole[] = {
		{ .sp = 0x7000, .address = 1 }, { .sp = 0x7100, .address = 2 }
	};
	const struct pm_chain_stitch_frame handled[] = { { .sp = 0x1000, .address = 9 },
							 whole[0] };
	struct pm_chain_stitch_sample sample = { .pid = 1,
						 .tid = 1,
						 .frames = handled,
						 .len = 2,
						 .end = PM_CHAIN_STITCH_TRUNCATED,
						 .left_with = 3 };
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	struct pm_chain_stitched stitched;

	(void)state;
	/* By the sample right before, which had the frame as its leaf. */
	assert_int_equal(
		add(stitches, whole, 2, PM_CHAIN_STITCH_ROOTED, LIMIT, &stitched), 0);
	assert_int_equal(pm_chain_stitches_add(stitches, &sample, LIMIT, &stitched), 0);
	assert_int_equal(stitched.len, 1);
	assert_true(stitched.rooted);
	/* The same interruption, and then another one. */
	assert_int_equal(pm_chain_stitches_add(stitches, &sample, LIMIT, &stitched), 0);
	assert_int_equal(stitched.len, 1);
	sample.left_with = 4;
	assert_int_equal(pm_chain_stitches_add(stitches, &sample, LIMIT, &stitched), 0);
	assert_int_equal(stitched.len, 0);
	assert_true(stitched.promise != 0);
	pm_chain_stitches_free(stitches);
}

static void test_limit(void **state)
{
	static struct pm_chain_stitch_frame frames[100];
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	struct pm_chain_stitched stitched;

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(frames); i++)
		frames[i] =
			(struct pm_chain_stitch_frame){ .sp = 16 + i * 16, .address = i };
	assert_int_equal(
		add(stitches, frames, 100, PM_CHAIN_STITCH_ROOTED, 100, &stitched), 0);
	assert_int_equal(
		add(stitches, frames, 10, PM_CHAIN_STITCH_TRUNCATED, 100, &stitched), 0);
	assert_int_equal(stitched.len, 90);
	assert_true(stitched.rooted);
	/* One too many: the outermost one is missing. */
	assert_int_equal(
		add(stitches, frames, 10, PM_CHAIN_STITCH_TRUNCATED, 99, &stitched), 0);
	assert_int_equal(stitched.len, 89);
	assert_true(stitched.limited && !stitched.rooted);
	assert_int_equal(
		add(stitches, frames, 0, PM_CHAIN_STITCH_TRUNCATED, 99, &stitched), 0);
	assert_int_equal(stitched.len, 0);
	pm_chain_stitches_free(stitches);
}

/* Frames of which nothing is known but the place are not recognised. */
static void test_unknown_stack_pointer(void **state)
{
	const struct pm_chain_stitch_frame frames[] = { { .address = 1 },
							{ .address = 2 } };
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	struct pm_chain_stitched stitched;

	(void)state;
	assert_int_equal(
		add(stitches, frames, 2, PM_CHAIN_STITCH_ROOTED, LIMIT, &stitched), 0);
	assert_int_equal(
		add(stitches, frames, 1, PM_CHAIN_STITCH_TRUNCATED, LIMIT, &stitched), 0);
	assert_int_equal(stitched.len, 0);
	pm_chain_stitches_free(stitches);
}

static bool perhaps_in_place(void *user, const struct pm_chain_stitch_frame *frames,
			     size_t len)
{
	const uint64_t *random = user;

	(void)frames;
	return len > 0 && (*random >> 21 & 1);
}

/* A stack pointer may go anywhere; what comes of it must end, and stay in its bounds. */
static void test_nonsense(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	uint64_t random = 88172645463325252ull;
	size_t stitches_made = 0;

	(void)state;
	for (size_t round = 0; round < 40000; round++) {
		struct pm_chain_stitch_frame frames[24];
		struct pm_chain_stitched stitched;
		struct pm_chain_stitch_sample sample = { .pid = 1,
							 .frames = frames,
							 .in_place = perhaps_in_place,
							 .in_place_user = &random };

		for (size_t i = 0; i < PM_ARRAY_LEN(frames); i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			frames[i] = (struct pm_chain_stitch_frame){
				.sp = random % 5 * 8, .address = random / 5 % 5
			};
			if (random >> 44 & 1)
				memset(frames[i].saved, 1, sizeof(frames[i].saved));
		}
		sample.tid = (uint32_t)(random >> 20 & 3);
		sample.time = round;
		sample.len = random >> 30 & 15;
		sample.end = (enum pm_chain_stitch_end)(random >> 40) % 3;
		sample.caller_sp = (random >> 46 & 3) * 4096;
		assert_int_equal(pm_chain_stitches_add(stitches, &sample, 64, &stitched),
				 0);
		assert_true(sample.len + stitched.len <= 64);
		stitches_made += stitched.len > 0;
		if (stitched.unseen && (random >> 14 & 1))
			pm_chain_stitches_seen(stitches, 1, sample.tid, random >> 15 & 15,
					       sample.time + (random >> 19 & 1));
		if (stitched.wanting && (random >> 12 & 1))
			assert_int_equal(pm_chain_stitches_offer(
						 stitches, 1, sample.tid, frames, 20,
						 random >> 13 & 1, sample.time),
					 0);
		if (random >> 50 == 1)
			pm_chain_stitches_forget_thread(stitches, 1, sample.tid);
	}
	assert_true(stitches_made > 1000);
	pm_chain_stitches_free(stitches);
}

/* What a look at the memory finds above all that is known, at time 10. */
static void offer(struct pm_chain_stitches *stitches, const struct stack *stack,
		  size_t known, uint64_t time)
{
	struct pm_chain_stitch_frame frames[DEPTH_MAX];
	size_t len = stack->depth - known;

	for (size_t i = 0; i < len; i++)
		frames[i] = frame_of(stack, len - 1 - i, 0);
	assert_int_equal(pm_chain_stitches_offer(stitches, 1, 1, frames, len, true, time),
			 0);
}

static struct pm_chain_stitched sample_at(struct pm_chain_stitches *stitches,
					  struct stack *stack, size_t frames,
					  uint64_t time)
{
	struct pm_chain_stitched stitched;

	sample_time = time;
	assert_int_equal(sample_as(stitches, 1, stack, frames, 0, &stitched), 0);
	sample_time = 0;
	return stitched;
}

static void test_look_at_memory(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	struct pm_chain_stitched stitched;

	(void)state;
	stitched = sample_at(stitches, stack, 6, 1);
	assert_true(stitched.wanting && stitched.len == 0);
	offer(stitches, stack, 6, 10);
	/* From before the look: it proves nothing. And no second one is needed. */
	stitched = sample_at(stitches, stack, 6, 9);
	assert_true(!stitched.wanting && stitched.len == 0);
	call(stack, 0x2000, 2);
	stitched = sample_at(stitches, stack, 5, 11);
	assert_true(!stitched.wanting && stitched.rooted);
	assert_int_equal(stitched.len, 6);
	assert_int_equal(sample(stitches, stack, 5), 6);
	pm_chain_stitches_free(stitches);
}

/* The frame below what was seen was gone before or after the look. */
static void test_look_in_vain(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(10);

	(void)state;
	assert_true(sample_at(stitches, stack, 6, 1).wanting);
	offer(stitches, stack, 6, 10);
	stack->depth = 4;
	call(stack, 0x3000, 3);
	call(stack, 0x3001, 3);
	assert_true(sample_at(stitches, stack, 2, 5).wanting);
	stack->depth = 4;
	for (uint64_t i = 4; i < 10; i++)
		call(stack, 0x1000 + i, 1);
	assert_int_equal(sample_at(stitches, stack, 6, 11).len, 0);
	assert_int_equal(sample_at(stitches, stack, 6, 12).len, 0);
	/* A thread that nobody has heard of. */
	pm_chain_stitches_forget_thread(stitches, 1, 1);
	offer(stitches, stack, 6, 20);
	assert_int_equal(sample_at(stitches, stack, 6, 21).len, 0);
	pm_chain_stitches_free(stitches);
}

/* What is known above a truncated stack by now: all is compared with the truth. */
static size_t settle(struct pm_chain_stitches *stitches, uint64_t promise, uint64_t time,
		     const struct stack *stack, size_t frames, size_t before)
{
	struct pm_chain_stitched stitched;

	if (!pm_chain_stitches_settle(stitches, promise, time, LIMIT, &stitched))
		return before;
	for (size_t i = 0; i < stitched.len; i++) {
		size_t index = stack->depth - 1 - frames - i;

		assert_true(index < stack->depth);
		assert_int_equal(stitched.frames[i].sp, sp_of(index));
		assert_int_equal(stitched.frames[i].address, stack->calls[index].address);
	}
	assert_int_equal(stitched.rooted, frames + stitched.len == stack->depth);
	return stitched.len;
}

/*
 * A look whose first frame has not stayed serves a later sample that ends further out, with
 * the same words saved below its last frame, if the callers are still in place. It serves
 * none from before the look.
 */
static void test_look_serves_later_frames(void **state)
{
	static const struct {
		uint64_t time; /* of the sample; the look is at 10 */
		size_t others; /* words that are different below its last frame */
		bool exchanged; /* its outer callers, before the sample */
		bool found;
	} cases[] = {
		{ 11, 1, false, true },
		{ 11, 2, false, false },
		{ 11, 0, true, false },
		{ 9, 0, false, false },
	};

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_chain_stitches *stitches = pm_chain_stitches_new();
		PM_AUTO_FREE struct stack *stack = stack_of(100);
		struct pm_chain_stitched stitched;
		uint64_t promise;

		assert_true(sample_at(stitches, stack, 5, 1).wanting);
		offer(stitches, stack, 5, 10);
		stack->depth = 40;
		call(stack, 0x3000, 3);
		stack->calls[36].others = cases[i].others;
		if (cases[i].exchanged)
			stack->calls[7].address = 0x4000;
		memory = stack;
		stitched = sample_at(stitches, stack, 5, cases[i].time);
		promise = stitched.promise;
		assert_int_equal(stitched.len, cases[i].found ? 36 : 0);
		assert_int_equal(stitched.rooted, cases[i].found);
		assert_int_equal(stitched.wanting, !cases[i].found);
		/* Nothing in addition for the sample, but for the next one. */
		assert_false(pm_chain_stitches_settle(stitches, promise, cases[i].time,
						      LIMIT, &stitched));
		if (cases[i].found)
			assert_int_equal(sample(stitches, stack, 5), 36);
		memory = NULL;
		pm_chain_stitches_free(stitches);
	}
}

/* The samples of a thread that goes down end further in each time. The look that is
 * confirmed shows the frames of those before it, too. */
static void test_look_serves_hidden_frames(void **state)
{
	(void)state;
	for (size_t others = 1; others <= 2; others++) {
		struct pm_chain_stitches *stitches = pm_chain_stitches_new();
		PM_AUTO_FREE struct stack *stack = stack_of(100);
		uint64_t first, second;

		stack->depth = 50;
		first = sample_at(stitches, stack, 5, 1).promise;
		stack->depth = 100;
		stack->calls[45].others = others;
		second = sample_at(stitches, stack, 5, 2).promise;
		offer(stitches, stack, 5, 10);
		assert_int_equal(sample_at(stitches, stack, 5, 11).len, 95);
		stack->depth = 50;
		assert_int_equal(settle(stitches, first, 1, stack, 5, 0),
				 others == 1 ? 45 : 0);
		stack->depth = 100;
		assert_int_equal(settle(stitches, second, 2, stack, 5, 0), 95);
		pm_chain_stitches_free(stitches);
	}
}

/* A stack of more frames than one sample may have gets the innermost of them. */
static void test_limit_of_frames(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(60);
	struct pm_chain_stitched stitched;
	uint64_t promise;

	(void)state;
	sample_max = 50;
	promise = sample_at(stitches, stack, 20, 1).promise;
	offer(stitches, stack, 20, 10);
	for (size_t depth = 60; depth > 40; depth -= 5) {
		stack->depth = depth;
		stitched = sample_at(stitches, stack, 20, 11);
		assert_int_equal(stitched.len, PM_MIN(depth - 20, 30));
		assert_int_equal(stitched.limited, depth > 50);
		assert_int_equal(stitched.rooted, depth <= 50);
		assert_false(stitched.wanting);
	}
	assert_true(pm_chain_stitches_settle(stitches, promise, 1, 50, &stitched));
	assert_true(stitched.limited && !stitched.rooted);
	assert_int_equal(stitched.len, 30);
	sample_max = LIMIT;
	pm_chain_stitches_free(stitches);
}

/* A look serves the samples before it, as far as the frame below it has been in all. */
static void test_look_serves_earlier_samples(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	PM_AUTO_FREE struct stack *other = stack_of(4);
	uint64_t gone, first, second;

	(void)state;
	call(other, 0x3000, 3);
	call(other, 0x3001, 3);
	gone = sample_at(stitches, other, 2, 1).promise;
	first = sample_at(stitches, stack, 6, 2).promise;
	second = sample_at(stitches, stack, 6, 3).promise;
	assert_true(gone != 0 && first != 0 && second != 0);
	offer(stitches, stack, 6, 10);
	assert_int_equal(settle(stitches, first, 2, stack, 6, 0), 0);
	assert_true(sample_at(stitches, stack, 6, 11).rooted);
	assert_int_equal(settle(stitches, gone, 1, other, 2, 0), 0);
	assert_int_equal(settle(stitches, first, 2, stack, 6, 0), 4);
	assert_int_equal(settle(stitches, second, 3, stack, 6, 0), 4);
	assert_false(pm_chain_stitches_settle(stitches, 0, 3, LIMIT,
					      &(struct pm_chain_stitched){ 0 }));
	pm_chain_stitches_free(stitches);
}

/* A later sample that shows the frame under its callers does, too; one with other registers
 * saved below it is another call. */
static void test_later_sample_serves_earlier_ones(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	uint64_t promise, other;

	(void)state;
	promise = sample_at(stitches, stack, 4, 1).promise;
	assert_int_equal(sample_at(stitches, stack, 0, 2).len, 0);
	assert_int_equal(settle(stitches, promise, 1, stack, 4, 0), 6);
	pm_chain_stitches_free(stitches);

	stitches = pm_chain_stitches_new();
	other = sample_at(stitches, stack, 4, 1).promise;
	stack->calls[6].saved = 77;
	assert_int_equal(sample_at(stitches, stack, 0, 2).len, 0);
	assert_int_equal(settle(stitches, other, 1, stack, 4, 0), 0);
	pm_chain_stitches_free(stitches);
}

/* Callers that turn out to be exchanged are given to no sample from after the last look that
 * found them. */
static void test_doubted_callers_are_taken_back(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	uint64_t before, after;

	(void)state;
	assert_int_equal(sample_at(stitches, stack, 0, 1).len, 0);
	before = sample_at(stitches, stack, 6, 2).promise;
	pm_chain_stitches_seen(stitches, 1, 1, 4, 3);
	after = sample_at(stitches, stack, 6, 5).promise;
	pm_chain_stitches_seen(stitches, 1, 1, 2, 10);
	assert_int_equal(sample_at(stitches, stack, 6, 11).len, 2);
	assert_int_equal(settle(stitches, before, 2, stack, 6, 4), 4);
	assert_int_equal(settle(stitches, after, 5, stack, 6, 4), 2);
	/* What takes their place is not theirs either. */
	offer(stitches, stack, 8, 20);
	assert_true(sample_at(stitches, stack, 6, 21).rooted);
	assert_int_equal(settle(stitches, after, 5, stack, 6, 4), 2);
	pm_chain_stitches_free(stitches);
}

/* A large frame is one call, wherever in its function samples fall; a small one may be two. */
static void test_large_frame_goes_on(void **state)
{
	static const size_t sizes[] = { 100000, 64 };
	const struct pm_chain_stitch_frame outer[] = { { .sp = 200000, .address = 7 } };

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(sizes); i++) {
		struct pm_chain_stitches *stitches = pm_chain_stitches_new();
		struct pm_chain_stitched stitched;
		uint64_t promise = 0;

		for (uint64_t time = 1; time <= 3; time++) {
			struct pm_chain_stitch_frame frames[] = {
				{ .sp = 16, .address = 1 },
				{ .sp = 32, .address = 50 + time }
			};
			struct pm_chain_stitch_sample sample = {
				.pid = 1,
				.tid = 1,
				.frames = frames,
				.len = 2,
				.end = PM_CHAIN_STITCH_TRUNCATED,
				.time = time * 10,
				.caller_sp = 32 + sizes[i],
			};

			assert_int_equal(pm_chain_stitches_add(stitches, &sample, LIMIT,
							       &stitched),
					 0);
			if (time == 1)
				promise = stitched.promise;
			if (time == 2)
				assert_int_equal(pm_chain_stitches_offer(stitches, 1, 1,
									 outer, 1, true,
									 25),
						 0);
		}
		assert_int_equal(stitched.len, sizes[i] > 4096);
		assert_int_equal(
			pm_chain_stitches_settle(stitches, promise, 10, LIMIT, &stitched),
			sizes[i] > 4096);
		pm_chain_stitches_free(stitches);
	}
}

/* What becomes of the callers of a large frame while samples end in one further in. */
static void test_large_frame_is_hidden(void **state)
{
	static const struct {
		uint64_t gone_time; /* of a sample without the large frame; 0: none */
		uint64_t large_sp, caller_sp,
			time; /* when the large frame is seen again */
		bool found;
	} cases[] = {
		{ 0, 200000, 300000, 30, true },
		{ 25, 200000, 300000, 30, false }, /* it may be another call */
		{ 0, 200000, 300064, 30, false }, /* another size */
		{ 0, 200064, 300000, 30, false },
		{ 0, 200000, 300000, 1000000000, false }, /* too long ago */
	};

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_chain_stitches *stitches = pm_chain_stitches_new();
		const struct pm_chain_stitch_frame
			first[] = { { .sp = 150000, .address = 1 },
				    { .sp = 200000, .address = 50 } },
			deeper[] = { { .sp = 16, .address = 1 },
				     { .sp = 32, .address = 60 } },
			other[] = { { .sp = 400000, .address = 8 } },
			all[] = { { .sp = 16, .address = 1 },
				  { .sp = 32, .address = 61 },
				  { .sp = 100032, .address = 70 },
				  { .sp = cases[i].large_sp, .address = 51 },
				  { .sp = cases[i].caller_sp, .address = 7 } };
		struct pm_chain_stitch_sample samples[] = {
			{ .frames = first,
			  .len = 2,
			  .end = PM_CHAIN_STITCH_TRUNCATED,
			  .time = 10,
			  .caller_sp = 300000 },
			{ .frames = deeper,
			  .len = 2,
			  .end = PM_CHAIN_STITCH_TRUNCATED,
			  .time = 20,
			  .caller_sp = 100032 },
			{ .frames = other,
			  .len = 1,
			  .end = PM_CHAIN_STITCH_ROOTED,
			  .time = cases[i].gone_time },
			{ .frames = all,
			  .len = 5,
			  .end = PM_CHAIN_STITCH_ROOTED,
			  .time = cases[i].time },
		};
		uint64_t promises[PM_ARRAY_LEN(samples)] = { 0 };
		struct pm_chain_stitched stitched;

		for (size_t j = 0; j < PM_ARRAY_LEN(samples); j++) {
			samples[j].pid = samples[j].tid = 1;
			if (samples[j].time == 0)
				continue;
			assert_int_equal(pm_chain_stitches_add(stitches, &samples[j],
							       LIMIT, &stitched),
					 0);
			promises[j] = stitched.promise;
		}
		assert_int_equal(pm_chain_stitches_settle(stitches, promises[0], 10,
							  LIMIT, &stitched),
				 cases[i].found);
		if (cases[i].found) {
			assert_true(stitched.rooted);
			assert_int_equal(stitched.len, 1);
			assert_int_equal(stitched.frames[0].address, 7);
		}
		pm_chain_stitches_free(stitches);
	}
}

/* Outer frames are exchanged for others between two samples, and nothing below them tells. */
static void test_exchanged_callers(void **state)
{
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	struct pm_chain_stitched stitched;

	(void)state;
	assert_int_equal(sample_at(stitches, stack, 0, 1).len, 0);
	stitched = sample_at(stitches, stack, 6, 2);
	assert_true(stitched.unseen && stitched.rooted);
	/* Two of the four are in place, so the other two are not of any sample after this. */
	pm_chain_stitches_seen(stitches, 1, 1, 2, 10);
	stitched = sample_at(stitches, stack, 6, 9);
	assert_true(!stitched.unseen && stitched.rooted);
	assert_int_equal(stitched.len, 4);
	stitched = sample_at(stitches, stack, 6, 11);
	assert_false(stitched.rooted);
	assert_int_equal(stitched.len, 2);
	assert_true(stitched.wanting);
	/* Nor do they come back from what is remembered. */
	assert_int_equal(sample_at(stitches, stack, 6, 12).len, 2);
	/* And not one is in place. */
	pm_chain_stitches_seen(stitches, 1, 1, 0, 20);
	stitched = sample_at(stitches, stack, 6, 21);
	assert_int_equal(stitched.len, 0);
	assert_true(stitched.wanting);
	pm_chain_stitches_seen(stitches, 77, 77, 0, 20); /* never heard of */
	pm_chain_stitches_free(stitches);
}

/* A look is due for the first, then after 16 samples or 50 ms, and by a frame that returned. */
static void test_when_to_look(void **state)
{
	enum {
		MS = 1000 * 1000
	};
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	PM_AUTO_FREE struct stack *stack = stack_of(10);
	struct pm_chain_stitched stitched;

	(void)state;
	assert_false(sample_at(stitches, stack, 0, 1).unseen);
	assert_true(sample_at(stitches, stack, 6, 2).unseen);
	pm_chain_stitches_seen(stitches, 1, 1, 4, 10);
	for (uint64_t i = 1; i < 16; i++)
		assert_false(sample_at(stitches, stack, 6, 10 + i).unseen);
	assert_true(sample_at(stitches, stack, 6, 30).unseen);
	pm_chain_stitches_seen(stitches, 1, 1, 4, 30);
	assert_false(sample_at(stitches, stack, 6, 30 + 49 * MS).unseen);
	stitched = sample_at(stitches, stack, 6, 30 + 50 * MS);
	assert_true(stitched.unseen && stitched.rooted);
	pm_chain_stitches_seen(stitches, 1, 1, 4, 51 * MS);
	stack->depth = 2;
	assert_false(sample_at(stitches, stack, 0, 52 * MS).unseen);
	while (stack->depth < 10)
		call(stack, 0x1000 + stack->depth, 1);
	stitched = sample_at(stitches, stack, 6, 53 * MS);
	assert_true(stitched.unseen && stitched.rooted);
	pm_chain_stitches_free(stitches);
}

/* A stack that is complete wants nothing, and one that ends otherwise would not get it. */
static void test_nothing_is_wanting(void **state)
{
	const struct pm_chain_stitch_frame frames[] = { { .sp = 16, .address = 1 },
							{ .sp = 32, .address = 2 } };
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	struct pm_chain_stitched stitched;

	(void)state;
	assert_int_equal(
		add(stitches, frames, 2, PM_CHAIN_STITCH_OTHER, LIMIT, &stitched), 0);
	assert_false(stitched.wanting);
	assert_int_equal(
		add(stitches, frames, 2, PM_CHAIN_STITCH_ROOTED, LIMIT, &stitched), 0);
	assert_false(stitched.wanting);
	pm_chain_stitches_free(stitches);
}

static void test_memory_is_bounded(void **state)
{
	PM_AUTO_FREE struct stack *stack = stack_of(100);
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	size_t known = 0;

	(void)state;
	assert_int_equal(sample(stitches, stack, 0), 0);
	/* Two million frames, none twice, on top of ten that stay. */
	for (uint64_t round = 0; round < 20000; round++) {
		stack->depth = 10;
		for (uint64_t i = 0; i < 100; i++)
			call(stack, 0x100000 + round * 100 + i, round & 0xff);
		known += sample(stitches, stack, 101) == 9;
	}
	assert_int_equal(known, 20000);
	assert_true(pm_chain_stitches_bytes(stitches) <
		    (size_t)PM_CHAIN_STITCH_NODES_MAX * 2 * 40 + 100000);
	pm_chain_stitches_free(stitches);
}

/* Threads that come and go leave nothing behind. */
static void test_threads_are_released(void **state)
{
	PM_AUTO_FREE struct stack *stack = stack_of(100);
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	struct pm_chain_stitched stitched;
	size_t bytes = 0;

	(void)state;
	for (uint32_t tid = 1; tid <= 20000; tid++) {
		assert_int_equal(sample_as(stitches, tid, stack, 0, 0, &stitched), 0);
		assert_int_equal(sample_as(stitches, tid, stack, 10, 0, &stitched), 0);
		assert_int_equal(stitched.len, 90);
		pm_chain_stitches_forget_thread(stitches, 1, tid);
		if (tid == 5000)
			bytes = pm_chain_stitches_bytes(stitches);
	}
	assert_int_equal(pm_chain_stitches_bytes(stitches), bytes);
	pm_chain_stitches_free(stitches);
}

/* How many outer frames are known, and whether they are what is there. */
static size_t judge(struct pm_chain_stitches *stitches, struct stack *stack,
		    size_t frames, bool *right)
{
	struct pm_chain_stitched stitched;

	assert_int_equal(sample_as(stitches, 1, stack, frames, 0, &stitched), 0);
	if (frames > stack->depth)
		frames = stack->depth;
	*right = frames + stitched.len <= stack->depth;
	for (size_t i = 0; *right && i < stitched.len; i++) {
		size_t index = stack->depth - 1 - frames - i;

		*right = stitched.frames[i].sp == sp_of(index) &&
			 stitched.frames[i].address == stack->calls[index].address;
	}
	return stitched.len;
}

/*
 * A program of FUNCTIONS functions, each of which calls four others, so that a place and a
 * stack pointer leave it open who the caller is. Each run has registers of its own.
 */
static void test_random_calls(void **state)
{
	enum {
		FUNCTIONS = 61,
		CALLS = 4,
	};
	PM_AUTO_FREE struct stack *stack = stack_of(1);
	struct pm_chain_stitches *stitches = pm_chain_stitches_new();
	uint64_t random = 88172645463325252ull;
	size_t truncated = 0, stitched = 0, wrong = 0;

	(void)state;
	stack->calls[0].address = 0;
	for (size_t round = 0; round < 20000; round++) {
		bool right;

		for (size_t moves = 0; moves < 100; moves++) {
			uint64_t *leaf = &stack->calls[stack->depth - 1].address;
			uint64_t function = *leaf / CALLS;

			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			if (stack->depth < 60 && random % 100 < 52) {
				uint64_t which = random / 1024 % CALLS;

				*leaf = function * CALLS + which;
				call(stack,
				     (function * 7 + which * 13 + 1) % FUNCTIONS * CALLS,
				     random >> 20);
			} else if (stack->depth > 1) {
				stack->depth--;
			}
		}
		truncated += stack->depth > 12;
		stitched += judge(stitches, stack, 12, &right) > 0;
		wrong += !right;
	}
	assert_true(truncated > 1000);
	assert_true(stitched > truncated / 2);
	/* One of 200, as is promised for real programs. */
	assert_true(wrong < stitched / 200);
	pm_chain_stitches_free(stitches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outer_part_is_taken),
		cmocka_unit_test(test_nothing_is_known_at_first),
		cmocka_unit_test(test_partial),
		cmocka_unit_test(test_parts_are_put_together),
		cmocka_unit_test(test_returned_frame_needs_evidence),
		cmocka_unit_test(test_returned_frame_with_its_registers),
		cmocka_unit_test(test_most_registers_are_the_same),
		cmocka_unit_test(test_returned_frame_with_its_caller),
		cmocka_unit_test(test_threads_are_apart),
		cmocka_unit_test(test_other_file_at_the_address),
		cmocka_unit_test(test_left_for_another_stack),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_unknown_stack_pointer),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_look_at_memory),
		cmocka_unit_test(test_look_in_vain),
		cmocka_unit_test(test_look_serves_earlier_samples),
		cmocka_unit_test(test_look_serves_later_frames),
		cmocka_unit_test(test_look_serves_hidden_frames),
		cmocka_unit_test(test_limit_of_frames),
		cmocka_unit_test(test_later_sample_serves_earlier_ones),
		cmocka_unit_test(test_doubted_callers_are_taken_back),
		cmocka_unit_test(test_large_frame_goes_on),
		cmocka_unit_test(test_large_frame_is_hidden),
		cmocka_unit_test(test_exchanged_callers),
		cmocka_unit_test(test_when_to_look),
		cmocka_unit_test(test_nothing_is_wanting),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_threads_are_released),
		cmocka_unit_test(test_random_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

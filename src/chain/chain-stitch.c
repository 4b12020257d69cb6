/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <time.h>

#include "chain-internal.h"

enum {
	/* What is read of a running thread's stack above the bytes copied. */
	LOOK_BYTES_MIN = 64 * 1024,
	LOOK_BYTES_MAX = 16 * LOOK_BYTES_MIN,
	/* Return addresses are read together when they lie in so many bytes. */
	LOOK_TOGETHER_BYTES = 4096,
};

static void push(struct pm_chains *chains, const struct pm_chain_stitch_frame *frame)
{
	if (chains->frames_len < PM_CHAIN_FRAMES_MAX)
		chains->frames[chains->frames_len++] =
			(struct pm_chain_frame){ .address = frame->address,
						 .module = frame->module,
						 .how = PM_UNW_HOW_STITCHED };
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Where a call of x86 leaves the return address, and the address if it is there. Others have
 * no such place that is known from sp. */
static uint64_t return_address(const struct pm_unw_regs *regs,
			       const struct pm_unw_stack *stack,
			       const struct pm_unw_frame *frame)
{
	size_t len = regs->arch == PM_UNW_I386 ? 4 : 8;
	uint64_t offset = frame->sp - len - stack->start, word = 0;

	if (frame->sp == 0 || stack->len < len || offset > stack->len - len)
		return 0;
	memcpy(&word, stack->data + offset, len);
	return word == frame->lookup + 1 ? word : 0;
}

/*
 * Whether the return addresses of stitched frames are where they are said to be. The first
 * that is not tells of all above it: what is there now was called in another way. Memory that
 * cannot be read tells nothing.
 */
static void check(struct pm_chains *chains, const struct pm_record *record,
		  size_t word_len, const struct pm_chain_stitched *stitched)
{
	const struct pm_chain_stitch_frame *frames = stitched->frames;
	uint8_t bytes[LOOK_TOGETHER_BYTES];
	uint64_t start = 0;
	size_t got = 0, i;

	for (i = 0; i < stitched->len; i++) {
		uint64_t at = frames[i].sp - word_len, word = 0;

		if (frames[i].return_address == 0)
			continue;
		if (got < word_len || at - start > got - word_len) {
			size_t len = word_len;

			for (size_t j = i + 1; j < stitched->len; j++)
				if (frames[j].sp - at <= sizeof(bytes) &&
				    frames[j].sp - at > len)
					len = frames[j].sp - at;
				else
					break;
			start = at;
			got = pm_trace_read((pid_t)record->tid, at, bytes, len);
			if (got < word_len)
				break;
		}
		memcpy(&word, bytes + (at - start), word_len);
		if (word != frames[i].return_address)
			break;
	}
	if (got < word_len)
		i = stitched->len;
	pm_chain_stitches_seen(chains->stitches, record->pid, record->tid, i, now_ns());
}

/* Goes on above a truncated stack with what earlier ones had there. */
static int stitch(struct pm_chains *chains, const struct pm_record *record,
		  const struct pm_unw_regs *regs, const struct pm_unw_stack *stack,
		  size_t len, uint32_t *stop)
{
	const struct pm_chain_frame *frames = chains->frames + chains->frames_len - len;
	struct pm_chain_stitch_sample sample = {
		.pid = record->pid,
		.tid = record->tid,
		.frames = chains->known,
		.len = len,
		.end = *stop == PM_UNW_STOP_ROOT        ? PM_CHAIN_STITCH_ROOTED
		       : *stop == PM_UNW_STOP_TRUNCATED ? PM_CHAIN_STITCH_TRUNCATED
							: PM_CHAIN_STITCH_OTHER,
		.time = record->time,
		.stack = stack->data,
		.stack_start = stack->start,
		.stack_len = stack->len,
	};
	struct pm_chain_stitched stitched;
	int error;

	/* A thread that has ended has no number, and all such would look like one. */
	if (record->tid == PM_FILE_NONE)
		return 0;
	for (size_t i = 0; i < len; i++)
		chains->known[i] = (struct pm_chain_stitch_frame){
			.sp = chains->found[i].sp,
			.address = frames[i].address,
			.module = frames[i].module,
			.return_address = return_address(regs, stack, &chains->found[i])
		};
	error = pm_chain_stitches_add(chains->stitches, &sample, PM_UNW_FRAMES_MAX,
				      &stitched);
	if (error < 0)
		return error;
	if (stitched.len > 0)
		chains->outermost_sp = stitched.frames[stitched.len - 1].sp;
	for (size_t i = 0; i < stitched.len; i++)
		push(chains, &stitched.frames[i]);
	chains->stitched = stitched.len > 0;
	chains->wanting = stitched.wanting;
	if (stitched.rooted)
		*stop = PM_UNW_STOP_ROOT;
	if (stitched.unseen && chains->from.look)
		check(chains, record, regs->arch == PM_UNW_I386 ? 4 : 8, &stitched);
	return 0;
}

/* Reads on above the bytes copied, @more bytes. False: there is nothing. */
static bool read_above(struct pm_chains *chains, uint32_t tid, size_t more,
		       struct pm_unw_stack *stack)
{
	size_t got;

	if (stack->len > PM_STACK_BYTES_MAX)
		return false;
	if (!chains->memory)
		chains->memory = malloc(PM_STACK_BYTES_MAX + LOOK_BYTES_MAX);
	if (!chains->memory)
		return false;
	got = pm_trace_read((pid_t)tid, stack->start + stack->len,
			    chains->memory + stack->len, more);
	memcpy(chains->memory, stack->data, stack->len);
	stack->data = chains->memory;
	stack->len += got;
	return got > 0;
}

/*
 * Where not even earlier samples tell what is above, the thread's memory may: it runs, but its
 * outer frames stay. Whether they did is seen by the samples after this look, which are those
 * that gain by it. @len frames were found, and @outer known above them.
 */
static int look(struct pm_chains *chains, const struct pm_record *record,
		const struct pm_unw_space *space, const struct pm_unw_regs *regs,
		const struct pm_unw_stack *copy, size_t len, size_t outer)
{
	size_t frames_len = chains->frames_len, found = 0, known = 0;
	enum pm_unw_stop reason = PM_UNW_STOP_TRUNCATED;
	struct pm_unw_stack memory = *copy;
	uint64_t time = 0;
	int error = 0;

	/* rustc was seen with a frame of 527 KiB; most want a few KiB. */
	for (size_t more = LOOK_BYTES_MIN;
	     more <= LOOK_BYTES_MAX && reason == PM_UNW_STOP_TRUNCATED; more *= 16) {
		struct pm_unw_stack stack = *copy;

		if (!read_above(chains, record->tid, more, &stack))
			return 0;
		time = now_ns();
		found = pm_unwind(chains->unwinder, space, regs, &stack, chains->found,
				  &reason);
		memory = stack;
	}
	/* What is read above may not fit to what is known. */
	if (found <= len + outer ||
	    (outer > 0 && chains->outermost_sp != chains->found[len + outer - 1].sp))
		return 0;
	for (size_t i = len + outer; error == 0 && i < found; i++) {
		const struct pm_unw_frame *frame = &chains->found[i];

		if (chains->frames_len == PM_CHAIN_FRAMES_MAX)
			break;
		/* For its module and address; it is no frame of this sample. */
		error = pm_chains_push(chains, frame->lookup, frame->map, frame->how);
		if (error < 0)
			break;
		chains->known[known++] = (struct pm_chain_stitch_frame){
			.sp = frame->sp,
			.address = chains->frames[chains->frames_len - 1].address,
			.module = chains->frames[chains->frames_len - 1].module,
			.return_address = return_address(regs, &memory, frame)
		};
	}
	chains->frames_len = frames_len;
	if (error == 0)
		error = pm_chain_stitches_offer(
			chains->stitches, record->pid, record->tid, chains->known, known,
			reason == PM_UNW_STOP_ROOT && len + outer + known == found, time);
	return error;
}

int pm_chains_stitch(struct pm_chains *chains, const struct pm_record *record,
		     const struct pm_unw_space *space, const struct pm_unw_regs *regs,
		     const struct pm_unw_stack *stack, size_t len, uint32_t *stop)
{
	size_t frames_len = chains->frames_len;
	int error;

	if (!chains->stitches)
		return 0;
	error = stitch(chains, record, regs, stack, len, stop);
	if (error == 0 && chains->wanting && chains->from.look)
		error = look(chains, record, space, regs, stack, len,
			     chains->frames_len - frames_len);
	return error;
}

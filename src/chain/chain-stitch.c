/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <time.h>

#include "chain-internal.h"

enum {
	/* The bytes that a look reads at once of a running thread's stack. A piece starts
	 * a little below the next return address, for the registers that were saved with
	 * it. rustc has a frame of 527 KiB, none of which has to be read. */
	LOOK_PIECE_BYTES = 32 * 1024,
	LOOK_BELOW_BYTES = 512,
	LOOK_PAGE_BYTES = 4096,
	LOOK_PIECES_MAX = 16,
	/* The most bytes that looks read within one second: of one process, and of
	 * all. */
	LOOK_PROCESS_BYTES_MAX = 16 << 20,
	LOOK_BYTES_MAX = 64 << 20,
	/* Return addresses are read together if they lie within this many bytes. */
	LOOK_TOGETHER_BYTES = 4096,
};

static void push_stitched_frame(struct pm_chains *chains,
				const struct pm_chain_stitch_frame *frame)
{
	if (chains->frames_len < PM_CHAIN_FRAMES_MAX)
		chains->frames[chains->frames_len++] =
			(struct pm_chain_frame){ .address = frame->address,
						 .module = frame->module,
						 .how = PM_UNW_HOW_STITCHED };
}

static uint64_t look_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns the return address if it is where a call of x86 leaves it; else 0. On other
 * architectures, its place does not follow from sp. */
static uint64_t return_address(const struct pm_unw_regs *regs,
			       const struct pm_unw_stack *stack,
			       const struct pm_unw_frame *frame)
{
	size_t len = regs->arch == PM_UNW_I386 ? 4 : 8;
	uint64_t word = 0;

	if (frame->sp == 0)
		return 0;
	for (; stack; stack = stack->above) {
		uint64_t offset = frame->sp - len - stack->start;

		if (stack->len < len || offset > stack->len - len)
			continue;
		memcpy(&word, stack->data + offset, len);
		break;
	}
	if (word == frame->lookup + 1)
		return word;
	return 0;
}

/*
 * Checks whether the return addresses of stitched frames are in place. If one is not,
 * none of the frames above it is known to have stayed, because the code that runs now was
 * called in another way. Memory that cannot be read shows nothing.
 */
static void check_stitched_returns(struct pm_chains *chains,
				   const struct pm_record *record, size_t word_len,
				   const struct pm_chain_stitched *stitched)
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
			pm_chains_spend(chains, PM_CHAIN_COST_PAGE);
			got = pm_trace_read((pid_t)record->tid, at, bytes, len);
			if (got < word_len)
				break;
		}
		memcpy(&word, bytes + (at - start), word_len);
		if (word != frames[i].return_address)
			break;
	}
	if (got < word_len)
		i = SIZE_MAX;
	pm_chain_stitches_seen(chains->stitches, record->pid, record->tid, i,
			       look_clock_ns());
}

/*
 * Whether CFI of the last frame puts its caller into memory that is far from the copied
 * stack, as the CFI of __morestack does (libgcc, split stacks): the first stack is far from
 * the mapped ones.
 */
static bool is_elsewhere(const struct pm_chains *chains, const struct pm_unw_regs *regs,
			 uint32_t stop)
{
	/* On aarch64, the place of a return address does not show the caller's stack
	 * pointer. */
	return stop == PM_UNW_STOP_BAD_MEMORY && chains->missed != 0 &&
	       regs->arch != PM_UNW_AARCH64;
}

/*
 * Whether a stack that ended with @stop continues in memory that was not copied. If it
 * continues on another stack, this is known only if the place is known (@elsewhere), or
 * if a signal interrupted the last frame: @left_with then distinguishes one run of the
 * handler from another.
 */
static bool goes_on(uint32_t stop, uint64_t left_with, bool elsewhere)
{
	return stop == PM_UNW_STOP_TRUNCATED || stop == PM_CHAIN_STOP_NO_PAGE ||
	       elsewhere || (stop == PM_UNW_STOP_OTHER_STACK && left_with != 0);
}

/*
 * A hash of the registers of the last of @len frames, if a signal interrupted it: they
 * are at the start of the signal frame, where the stack pointer of the frame below is. 0:
 * no signal interrupted it, or the registers were not copied.
 */
static uint64_t hash_left_with(const struct pm_chains *chains,
			       const struct pm_unw_stack *stack, size_t len)
{
	enum {
		/* siginfo_t and ucontext_t of aarch64 up to the registers and all of those */
		BYTES = 640,
	};
	const struct pm_unw_frame *last;
	uint64_t offset, hash = 0;

	if (len < 2)
		return 0;
	last = &chains->found[len - 1];
	offset = last[-1].sp - stack->start;
	if (last->lookup != last->pc || stack->len < BYTES || offset > stack->len - BYTES)
		return 0;
	for (size_t i = 0; i < BYTES; i += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, stack->data + offset + i, sizeof(word));
		hash = pm_hash_mix(hash, word);
	}
	return hash | 1;
}

/* Adds to a truncated stack the callers that earlier stacks had there. */
static int stitch_truncated_stack(struct pm_chains *chains,
				  const struct pm_record *record,
				  const struct pm_unw_regs *regs,
				  const struct pm_unw_stack *stack, size_t len,
				  uint32_t *stop)
{
	const struct pm_chain_frame *frames = chains->frames + chains->frames_len - len;
	uint64_t left_with = hash_left_with(chains, stack, len);
	bool elsewhere = is_elsewhere(chains, regs, *stop);
	struct pm_chain_stitch_sample sample = {
		.pid = record->pid,
		.tid = record->tid,
		.frames = chains->known,
		.len = len,
		.end = PM_CHAIN_STITCH_OTHER,
		.time = record->time,
		.stack = stack->data,
		.stack_start = stack->start,
		.stack_len = stack->len,
		.caller_sp =
			chains->missed != 0
				? chains->missed + (regs->arch == PM_UNW_I386 ? 4 : 8)
				: 0,
		.left_with = left_with,
		.elsewhere = elsewhere,
	};
	struct pm_chain_stitched stitched;
	int ret;

	if (*stop == PM_UNW_STOP_ROOT)
		sample.end = PM_CHAIN_STITCH_ROOTED;
	else if (goes_on(*stop, left_with, elsewhere))
		sample.end = PM_CHAIN_STITCH_TRUNCATED;
	/* The kernel gives no id for a thread that has ended; all of them would look like
	 * one thread. */
	if (record->tid == PM_FILE_NONE)
		return 0;
	for (size_t i = 0; i < len; i++)
		chains->known[i] = (struct pm_chain_stitch_frame){
			.sp = chains->found[i].sp,
			.address = frames[i].address,
			.module = frames[i].module,
			.return_address = return_address(regs, stack, &chains->found[i])
		};
	ret = pm_chain_stitches_add(chains->stitches, &sample, PM_UNW_FRAMES_MAX,
				    &stitched);
	if (ret < 0)
		return ret;
	chains->own_len = chains->frames_len;
	if (sample.caller_sp > stack->start)
		chains->wanted_bytes = sample.caller_sp - stack->start;
	else
		chains->wanted_bytes = 0;
	if (stitched.len > 0)
		chains->outermost_sp = stitched.frames[stitched.len - 1].sp;
	for (size_t i = 0; i < stitched.len; i++)
		push_stitched_frame(chains, &stitched.frames[i]);
	chains->stitched = stitched.len > 0;
	chains->wanting = stitched.wanting;
	chains->promise = stitched.promise;
	if (stitched.rooted)
		*stop = PM_UNW_STOP_ROOT;
	if (stitched.unseen && chains->from.look)
		check_stitched_returns(chains, record, regs->arch == PM_UNW_I386 ? 4 : 8,
				       &stitched);
	return 0;
}

/* Whether the budget allows another look at process @pid; if it does, counts the look. */
static bool may_look(struct pm_chains *chains, uint32_t pid)
{
	uint64_t second = look_clock_ns() / 1000000000u;
	struct pm_chain_looks *all = &chains->looks;
	struct pm_chain_looks *of =
		&chains->process_looks[pm_hash_mix(pid, 0) % PM_CHAIN_LOOK_PROCESSES];

	if (all->second != second)
		*all = (struct pm_chain_looks){ .second = second };
	/* Two processes that share a row evict each other; `all` still counts both. */
	if (of->second != second || of->pid != pid)
		*of = (struct pm_chain_looks){ .second = second, .pid = pid };
	if (all->bytes >= LOOK_BYTES_MAX || of->bytes >= LOOK_PROCESS_BYTES_MAX)
		return false;
	all->bytes += LOOK_PIECE_BYTES;
	of->bytes += LOOK_PIECE_BYTES;
	return true;
}

/* Reads the piece of the stack around @wanted, the address of a return address, into
 * @piece of chains->memory. Returns false if it is not mapped, or if the budget is
 * used up. */
static bool read_piece(struct pm_chains *chains, const struct pm_record *record,
		       const struct pm_unw_stack *copy, uint64_t wanted,
		       struct pm_unw_stack *piece, size_t index)
{
	uint64_t start = wanted - LOOK_BELOW_BYTES;
	uint8_t *memory;

	/* Only above the copied part of this stack: the thread has continued and changed
	 * the rest. */
	if (chains->own_stop != PM_UNW_STOP_OTHER_STACK &&
	    chains->own_stop != PM_UNW_STOP_BAD_MEMORY &&
	    wanted < copy->start + copy->len)
		return false;
	if (start - copy->start < copy->len)
		start = copy->start + copy->len;
	if (!chains->memory)
		chains->memory = malloc((size_t)LOOK_PIECES_MAX * LOOK_PIECE_BYTES);
	if (!chains->memory || !may_look(chains, record->pid))
		return false;
	memory = chains->memory + index * LOOK_PIECE_BYTES;
	*piece = (struct pm_unw_stack){ .start = start, .data = memory };
	piece->len = pm_trace_read((pid_t)record->tid, start, memory, LOOK_PIECE_BYTES);
	/* The guard page that the stack grew into may be below the page of a return
	 * address. */
	if (piece->len == 0 && start < wanted - wanted % LOOK_PAGE_BYTES) {
		start = wanted - wanted % LOOK_PAGE_BYTES;
		piece->start = start;
		piece->len = pm_trace_read((pid_t)record->tid, start, memory,
					   LOOK_PIECE_BYTES);
	}
	return piece->len > wanted - start;
}

/* Whether a missing piece of memory can be the cause of @reason. */
static bool may_go_on(enum pm_unw_stop reason)
{
	return reason == PM_UNW_STOP_TRUNCATED || reason == PM_UNW_STOP_BAD_MEMORY ||
	       reason == PM_UNW_STOP_OTHER_STACK;
}

/*
 * If no sample shows the outer callers, the thread's memory may. The thread runs
 * meanwhile, but its outer frames usually stay; the samples after this look show whether
 * they did. @len frames were found, and @outer frames above them are known.
 */
static int look_for_outer_frames(struct pm_chains *chains, const struct pm_record *record,
				 const struct pm_unw_space *space,
				 const struct pm_unw_regs *regs,
				 const struct pm_unw_stack *copy, size_t len,
				 size_t outer)
{
	size_t frames_len = chains->frames_len, found = 0, known = 0, pieces = 0;
	size_t reopened = 0;
	enum pm_unw_stop reason = PM_UNW_STOP_TRUNCATED;
	struct pm_unw_stack memory = *copy, piece[LOOK_PIECES_MAX];
	uint64_t time, missed = 0;
	int ret = 0;

	memory.missed = &missed;
	for (;;) {
		missed = 0;
		found = pm_unwind(chains->unwinder, space, regs, &memory, chains->found,
				  &reason);
		if (reopened < PM_CHAIN_REOPENED_MAX &&
		    pm_chains_reopen_closed(chains, found)) {
			reopened++;
			continue;
		}
		if (!may_go_on(reason) || missed == 0 || pieces == LOOK_PIECES_MAX ||
		    !read_piece(chains, record, copy, missed, &piece[pieces], pieces))
			break;
		piece[pieces].above = memory.above;
		memory.above = &piece[pieces++];
	}
	time = look_clock_ns();
	/* The memory may not match the known frames. A place that is far away may be
	 * nonsense, from which no chain leads to a root. */
	if (found <= len + outer ||
	    (is_elsewhere(chains, regs, chains->own_stop) &&
	     reason != PM_UNW_STOP_ROOT) ||
	    (outer > 0 && chains->outermost_sp != chains->found[len + outer - 1].sp))
		found = 0;
	for (size_t i = len + outer; ret == 0 && i < found; i++) {
		const struct pm_unw_frame *frame = &chains->found[i];

		if (chains->frames_len == PM_CHAIN_FRAMES_MAX)
			break;
		/* Only to get its module and address; it is not a frame of this
		 * sample. */
		ret = pm_chains_push(chains, frame->lookup, frame->map, frame->how);
		if (ret < 0)
			break;
		chains->known[known++] = (struct pm_chain_stitch_frame){
			.sp = frame->sp,
			.address = chains->frames[chains->frames_len - 1].address,
			.module = chains->frames[chains->frames_len - 1].module,
			.return_address = return_address(regs, &memory, frame)
		};
	}
	chains->frames_len = frames_len;
	if (ret == 0)
		ret = pm_chain_stitches_offer(
			chains->stitches, record->pid, record->tid, chains->known, known,
			reason == PM_UNW_STOP_ROOT && len + outer + known == found, time);
	return ret;
}

int pm_chains_stitch(struct pm_chains *chains, const struct pm_record *record,
		     const struct pm_unw_space *space, const struct pm_unw_regs *regs,
		     const struct pm_unw_stack *stack, size_t len, uint32_t *stop)
{
	size_t frames_len = chains->frames_len;
	int ret;

	/* A stack that the work limit ended has no callers to stitch or to remember. */
	if (!chains->stitches || *stop == PM_UNW_STOP_WORK_LIMIT)
		return 0;
	ret = stitch_truncated_stack(chains, record, regs, stack, len, stop);
	if (ret == 0 && chains->wanting && chains->from.look)
		ret = look_for_outer_frames(chains, record, space, regs, stack, len,
					    chains->frames_len - frames_len);
	return ret;
}

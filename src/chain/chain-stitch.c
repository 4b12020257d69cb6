/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "chain-internal.h"

enum {
	/* A look reads a running thread's stack in pieces. A piece starts a little below
	 * the next return address, for the registers that were saved with it. rustc has a
	 * frame of 527 KiB, none of which has to be read. */
	LOOK_PIECE_BYTES = 32 * 1024,
	LOOK_BELOW_BYTES = 512,
	LOOK_PAGE_BYTES = 4096,
	LOOK_PIECES_MAX = 128,
	/* Where small frames follow one another, a piece is as large as all before it
	 * together: many frames need few pieces that way. Behind a large frame, it is
	 * this share of them, because more large frames may follow. */
	LOOK_FURTHER_DIV = 32,
	/* A piece that would begin at most this far behind the last one lengthens it. */
	LOOK_GAP_BYTES = 4096,
	LOOK_READ_BYTES_MAX = 4 << 20, /* at once */
	/* One look reads at most this much, and begins no further piece after this
	 * time. */
	LOOK_BYTES_MAX = 16 << 20,
	LOOK_NS_MAX = 16 * 1000 * 1000,
	/* A buffer larger than this is not kept. */
	LOOK_KEPT_BYTES = 1 << 20,
	/* The most that looks read, and the longest that they take, within one second: of
	 * one process, and of all. */
	LOOKS_PROCESS_BYTES_MAX = 64 << 20,
	LOOKS_BYTES_MAX = 128 << 20,
	LOOKS_PROCESS_NS_MAX = 40 * 1000 * 1000,
	LOOKS_NS_MAX = 80 * 1000 * 1000,
	/* Return addresses that are at most this far apart are read together, up to so
	 * many bytes. */
	RETURNS_APART_BYTES = 4096,
	RETURNS_TOGETHER_BYTES = 256 * 1024,
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

/* ---- budget ----------------------------------------------------------------------------- */

/* Returns the row of @pid. Two processes that share one evict each other; chains->looks
 * still counts both. */
static struct pm_chain_looks *looks_of_process(struct pm_chains *chains, uint32_t pid)
{
	return &chains->process_looks[pm_hash_mix(pid, 0) % PM_CHAIN_LOOK_PROCESSES];
}

/* Whether the budget allows a look at process @pid that begins at @now_ns. */
static bool may_look(struct pm_chains *chains, uint32_t pid, uint64_t now_ns)
{
	uint64_t second = now_ns / 1000000000u;
	struct pm_chain_looks *all = &chains->looks, *of = looks_of_process(chains, pid);

	if (all->second != second)
		*all = (struct pm_chain_looks){ .second = second };
	if (of->second != second || of->pid != pid)
		*of = (struct pm_chain_looks){ .second = second, .pid = pid };
	return all->bytes < LOOKS_BYTES_MAX && of->bytes < LOOKS_PROCESS_BYTES_MAX &&
	       all->ns < LOOKS_NS_MAX && of->ns < LOOKS_PROCESS_NS_MAX;
}

/* Counts a look that read @bytes and lasted from @begun_ns until now. */
static void count_look(struct pm_chains *chains, uint32_t pid, size_t bytes,
		       uint64_t begun_ns)
{
	uint64_t ns = look_clock_ns() - begun_ns;
	struct pm_chain_looks *of = looks_of_process(chains, pid);

	chains->looks.bytes += (uint32_t)bytes;
	chains->looks.ns += ns;
	of->bytes += (uint32_t)bytes;
	of->ns += ns;
}

/* Returns chains->memory with room for LOOK_BYTES_MAX. Only pages that have been used take
 * memory, which malloc(3) does not promise. NULL: out of memory. */
static uint8_t *look_memory(struct pm_chains *chains)
{
	void *memory;

	if (chains->memory)
		return chains->memory;
	memory = mmap(NULL, LOOK_BYTES_MAX, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory != MAP_FAILED)
		chains->memory = memory;
	return chains->memory;
}

void pm_chains_release_look_memory(struct pm_chains *chains)
{
	if (chains->memory)
		munmap(chains->memory, LOOK_BYTES_MAX);
	chains->memory = NULL;
}

/* ---- frames for stitching --------------------------------------------------------------- */

/* Finds what the callee of @frame left below its stack pointer. */
static void note_callee(const struct pm_unw_regs *regs, const struct pm_unw_stack *stack,
			const struct pm_unw_frame *frame,
			struct pm_chain_stitch_frame *out)
{
	enum {
		RETURN_BYTES = 8,
		SAVED_BYTES = PM_CHAIN_EVIDENCE_WORDS * 8,
	};
	size_t len = regs->arch == PM_UNW_I386 ? 4 : 8;
	uint64_t word = 0, offset;

	if (frame->sp == 0)
		return;
	while (stack && frame->sp - len - stack->start >= stack->len)
		stack = stack->above;
	if (!stack || stack->len < len ||
	    frame->sp - len - stack->start > stack->len - len)
		return;
	/* Only x86 leaves it there. On other architectures, its place does not follow
	 * from sp. */
	memcpy(&word, stack->data + (frame->sp - len - stack->start), len);
	if (word == frame->lookup + 1)
		out->return_address = word;
	offset = frame->sp - RETURN_BYTES - SAVED_BYTES - stack->start;
	if (stack->len < SAVED_BYTES || offset > stack->len - SAVED_BYTES)
		return;
	for (size_t i = 0; i < PM_CHAIN_EVIDENCE_WORDS; i++) {
		memcpy(&word, stack->data + offset + i * 8, sizeof(word));
		out->saved[i] = pm_chain_stitch_hash(word);
	}
}

/*
 * Returns how many of the return addresses of @frames, which a thread of the current
 * record's process had, are in its memory, up to the first that is not. SIZE_MAX: the
 * memory cannot be read, or the budget does not allow it.
 */
static size_t count_in_place(struct pm_chains *chains,
			     const struct pm_chain_stitch_frame *frames, size_t len)
{
	const struct pm_record *record = chains->record;
	size_t word_len = chains->is_i386 ? 4 : 8, got = 0, read = 0, i;
	uint64_t start = 0, begun_ns = look_clock_ns();
	uint8_t *bytes = look_memory(chains);

	if (!bytes || !may_look(chains, record->pid, begun_ns))
		return SIZE_MAX;
	for (i = 0; i < len; i++) {
		uint64_t at = frames[i].sp - word_len, word = 0;

		if (frames[i].return_address == 0)
			continue;
		if (got < word_len || at - start > got - word_len) {
			size_t want = word_len;

			for (size_t j = i + 1; j < len; j++)
				if (frames[j].sp - at <= RETURNS_TOGETHER_BYTES &&
				    frames[j].sp - at > want &&
				    frames[j].sp - at - want <= RETURNS_APART_BYTES)
					want = frames[j].sp - at;
				else if (frames[j].return_address != 0)
					break;
			start = at;
			got = pm_trace_read((pid_t)record->tid, at, bytes, want);
			read += got;
			if (got < word_len)
				break;
		}
		memcpy(&word, bytes + (at - start), word_len);
		if (word != frames[i].return_address)
			break;
	}
	if (got < word_len)
		i = SIZE_MAX;
	pm_chains_spend(chains, (1 + read / LOOK_PAGE_BYTES) * PM_CHAIN_COST_PAGE);
	count_look(chains, record->pid, 0, begun_ns);
	return i;
}

static bool are_in_place(void *user, const struct pm_chain_stitch_frame *frames,
			 size_t len)
{
	return count_in_place(user, frames, len) == len;
}

/*
 * Checks whether the return addresses of stitched frames are in place. If one is not,
 * none of the frames above it is known to have stayed, because the code that runs now was
 * called in another way. Memory that cannot be read shows nothing.
 */
static void check_stitched_returns(struct pm_chains *chains,
				   const struct pm_record *record,
				   const struct pm_chain_stitched *stitched)
{
	size_t present;

	/* Without budget, the next sample checks again. */
	if (!may_look(chains, record->pid, look_clock_ns()))
		return;
	present = count_in_place(chains, stitched->frames, stitched->len);
	pm_chain_stitches_seen(chains->stitches, record->pid, record->tid, present,
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
		.caller_sp =
			chains->missed != 0
				? chains->missed + (regs->arch == PM_UNW_I386 ? 4 : 8)
				: 0,
		.left_with = left_with,
		.elsewhere = elsewhere,
		.in_place = chains->from.look ? are_in_place : NULL,
		.in_place_user = chains,
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
	chains->is_i386 = regs->arch == PM_UNW_I386;
	for (size_t i = 0; i < len; i++) {
		chains->known[i] =
			(struct pm_chain_stitch_frame){ .sp = chains->found[i].sp,
							.address = frames[i].address,
							.module = frames[i].module };
		note_callee(regs, stack, &chains->found[i], &chains->known[i]);
	}
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
	else if (stitched.limited)
		*stop = PM_UNW_STOP_LIMIT;
	if (stitched.unseen && chains->from.look)
		check_stitched_returns(chains, record, &stitched);
	return 0;
}

/* Pieces of the stack above the copy, which a look has read. */
struct look {
	struct pm_unw_stack piece[LOOK_PIECES_MAX];
	size_t len, bytes;
	uint64_t begun_ns;
};

/* Reads @len bytes at @start behind those that the look has read. Returns how many could
 * be read. */
static size_t look_read(struct pm_chains *chains, const struct pm_record *record,
			struct look *look, uint64_t start, size_t len)
{
	size_t got = 0;

	len = PM_MIN(len, LOOK_BYTES_MAX - look->bytes);
	len = PM_MIN(len, LOOK_READ_BYTES_MAX);
	if (len > 0)
		got = pm_trace_read((pid_t)record->tid, start,
				    chains->memory + look->bytes, len);
	look->bytes += got;
	return got;
}

/*
 * Reads the piece of the stack around @wanted, the address of a return address, or
 * lengthens the last piece. Returns false if it is not mapped, or if a limit is reached.
 */
static bool read_piece(struct pm_chains *chains, const struct pm_record *record,
		       const struct pm_unw_stack *copy, uint64_t wanted,
		       struct look *look)
{
	uint64_t start = wanted - LOOK_BELOW_BYTES;
	struct pm_unw_stack *piece = &look->piece[look->len];
	uint8_t *memory;
	size_t len;

	/* Only above the copied part of this stack: the thread has continued and changed
	 * the rest. */
	if (chains->own_stop != PM_UNW_STOP_OTHER_STACK &&
	    chains->own_stop != PM_UNW_STOP_BAD_MEMORY &&
	    wanted < copy->start + copy->len)
		return false;
	if (look_clock_ns() - look->begun_ns > LOOK_NS_MAX)
		return false;
	if (start - copy->start < copy->len)
		start = copy->start + copy->len;
	if (look->len > 0 && wanted - piece[-1].start >= LOOK_BELOW_BYTES &&
	    start - piece[-1].start <= piece[-1].len + LOOK_GAP_BYTES) {
		piece--;
		start = piece->start + piece->len;
		len = PM_MAX(LOOK_PIECE_BYTES, look->bytes);
		piece->len += look_read(chains, record, look, start, len);
		return piece->len > wanted - piece->start;
	}
	if (look->len == LOOK_PIECES_MAX)
		return false;
	len = PM_MAX(LOOK_PIECE_BYTES, look->bytes / LOOK_FURTHER_DIV);
	memory = chains->memory + look->bytes;
	*piece = (struct pm_unw_stack){ .start = start, .data = memory };
	piece->len = look_read(chains, record, look, start, len);
	/* The guard page that the stack grew into may be below the page of a return
	 * address. */
	if (piece->len == 0 && start < wanted - wanted % LOOK_PAGE_BYTES) {
		piece->start = wanted - wanted % LOOK_PAGE_BYTES;
		piece->len = look_read(chains, record, look, piece->start, len);
	}
	look->len += piece->len > 0;
	return piece->len > wanted - piece->start;
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
	size_t frames_len = chains->frames_len, found = 0, known = 0, reopened = 0,
	       pieces;
	enum pm_unw_stop reason = PM_UNW_STOP_TRUNCATED;
	struct pm_unw_stack memory = *copy;
	struct look look = { .begun_ns = look_clock_ns() };
	uint64_t time, missed = 0;
	int ret = 0;

	if (!look_memory(chains) || !may_look(chains, record->pid, look.begun_ns))
		return 0;
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
		pieces = look.len;
		if (!may_go_on(reason) || missed == 0 ||
		    !read_piece(chains, record, copy, missed, &look))
			break;
		if (look.len > pieces) {
			look.piece[pieces].above = memory.above;
			memory.above = &look.piece[pieces];
		}
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
		chains->known[known] = (struct pm_chain_stitch_frame){
			.sp = frame->sp,
			.address = chains->frames[chains->frames_len - 1].address,
			.module = chains->frames[chains->frames_len - 1].module,
		};
		note_callee(regs, &memory, frame, &chains->known[known++]);
	}
	chains->frames_len = frames_len;
	count_look(chains, record->pid, look.bytes, look.begun_ns);
	if (look.bytes > LOOK_KEPT_BYTES)
		pm_chains_release_look_memory(chains);
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

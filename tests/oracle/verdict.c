/* SPDX-License-Identifier: MIT */
#include "tests/oracle/verdict.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

enum {
	/* From the first instruction whose CFI is about the target to the last one. */
	TRANSIT_STEPS = 80,
};

static const char *const names[CLASS_COUNT] = {
	[CLASS_TRUE] = "true",
	[CLASS_TARGET] = "target",
	[CLASS_OTHER_STACK] = "other-stack",
	[CLASS_NO_CFI] = "no-cfi",
	[CLASS_KNOWN] = "known",
	[CLASS_WRONG] = "wrong",
};

const char *class_name(enum class class)
{
	return names[class];
}

/* Hand-written code whose CFI is not what it does. */
static const struct known {
	const char *function; /* as fnmatch(3) has it */
	const char *why;
} known[] = {
	{ NULL, NULL },
};

void judge_init(struct judge *judge, struct tracer *tracer, unsigned int printed_max,
		bool verbose)
{
	*judge = (struct judge){ .tracer = tracer,
				 .printed_max = printed_max,
				 .verbose = verbose };
}

static struct dwfl_space *dwfl_of(struct judge *judge)
{
	struct tracer *tracer = judge->tracer;

	if (judge->dwfl && judge->dwfl_epoch == tracer->maps_epoch)
		return judge->dwfl;
	dwfl_space_free(judge->dwfl);
	judge->dwfl = dwfl_space_new(&tracer->maps, &tracer->modules);
	judge->dwfl_epoch = tracer->maps_epoch;
	return judge->dwfl;
}

/* ---- printing --------------------------------------------------------------------------- */

static void print_address(struct judge *judge, uint64_t pc)
{
	const struct spaces_maps *maps = &judge->tracer->maps;
	const char *path, *slash;
	uint64_t offset;
	const char *function = dwfl_space_function(dwfl_of(judge), pc, &offset);

	for (size_t i = 0; i < maps->maps.len; i++) {
		const struct pm_unw_map *map = &maps->maps.data[i];

		if (pc < map->start || pc >= map->end)
			continue;
		path = pm_procs_module(judge->tracer->procs, map->tag)->identity.path;
		slash = strrchr(path, '/');
		printf("%s+%#" PRIx64, slash ? slash + 1 : path, pc - map->bias);
		if (function)
			printf("(%s+%#" PRIx64 ")", function, offset);
		return;
	}
	printf("%#" PRIx64, pc);
}

static void print_doubt(struct judge *judge, const struct doubt *doubt, enum class class)
{
	const struct chain *chain = &doubt->chain;

	printf("# %s (we stop: %s%s)\n", class_name(class), pm_unw_stop_name(chain->stop),
	       doubt->in_transit ? ", in transit" : "");
	for (size_t i = 0; i < chain->len || i <= doubt->truth_len; i++) {
		const struct shadow_entry *entry =
			i > 0 && i <= doubt->truth_len ? &doubt->truth[i - 1] : NULL;
		const struct pm_unw_frame *frame =
			i < chain->len ? &chain->frames[i] : NULL;

		printf("# %3zu ", i);
		if (frame) {
			printf("%-4s %#" PRIx64 " ", pm_unw_how_name(frame->how),
			       frame->sp);
			print_address(judge, frame->pc);
		}
		if (entry &&
		    (!frame || frame->pc != entry->pc || frame->sp != entry->sp)) {
			printf(" | true: %#" PRIx64 " ", entry->sp);
			print_address(judge, entry->pc);
		} else if (i > 0 && !entry) {
			printf(" | true: nothing");
		}
		puts("");
	}
}

/* ---- doubts ----------------------------------------------------------------------------- */

static void doubt_release(struct doubt *doubt)
{
	free(doubt->chain.frames);
	free(doubt->truth);
}

static void decide(struct judge *judge, size_t index, enum class class)
{
	struct doubt *doubt = &judge->doubts.data[index];

	judge->counts[class]++;
	if ((judge->verbose || class == CLASS_WRONG) &&
	    judge->printed++ < judge->printed_max)
		print_doubt(judge, doubt, class);
	doubt_release(doubt);
	*doubt = judge->doubts.data[--judge->doubts.len];
}

static void *copy_of(const void *data, size_t bytes)
{
	void *ret = malloc(bytes + 1);

	if (!ret)
		abort();
	return bytes > 0 ? memcpy(ret, data, bytes) : ret;
}

static void add_doubt(struct judge *judge, const struct chain *chain)
{
	struct doubt doubt = {
		.chain = *chain,
		.truth_len = judge->truth.len,
		.in_transit = tracer_tracee(judge->tracer)->shadow.in_transit,
		.step = judge->tracer->steps,
	};

	doubt.chain.frames =
		copy_of(chain->frames, chain->len * sizeof(chain->frames[0]));
	doubt.truth = copy_of(judge->truth.data,
			      judge->truth.len * sizeof(judge->truth.data[0]));
	if (pm_vec_push(&judge->doubts, doubt) < 0)
		abort();
}

/* ---- comparing -------------------------------------------------------------------------- */

static void read_truth(struct judge *judge)
{
	const struct shadow *shadow = &tracer_tracee(judge->tracer)->shadow.now;

	pm_vec_clear(&judge->truth);
	for (size_t i = shadow->entries.len; i > 0; i--) {
		struct shadow_entry entry = shadow->entries.data[i - 1];

		/* The handler may have changed where it returns to. */
		if (entry.interrupted)
			tracer_peek(judge->tracer, entry.slot, &entry.pc);
		if (pm_vec_push(&judge->truth, entry) < 0)
			abort();
	}
}

/* How many frames after the leaf are true. */
static size_t true_frames(const struct judge *judge, const struct chain *chain)
{
	size_t i = 0;

	for (; i + 1 < chain->len && i < judge->truth.len; i++) {
		const struct pm_unw_frame *frame = &chain->frames[i + 1];
		const struct shadow_entry *entry = &judge->truth.data[i];

		if (frame->pc != entry->pc || frame->sp != entry->sp ||
		    frame->lookup != frame->pc - !entry->interrupted)
			break;
	}
	return i;
}

static bool lacks_bytes(enum pm_unw_stop stop)
{
	return stop == PM_UNW_STOP_TRUNCATED || stop == PM_UNW_STOP_BAD_MEMORY;
}

/* The frame that is missing, or the first of those, stands where no bytes were copied. */
static bool is_other_stack(const struct judge *judge, const struct chain *chain,
			   size_t len)
{
	if (chain->len != len + 1 || !lacks_bytes(chain->stop))
		return false;
	for (size_t i = 0; i < len; i++)
		if (judge->truth.data[i].interrupted &&
		    judge->truth.data[i].sp - chain->stack.start >= chain->stack.len)
			return true;
	return false;
}

/* We say that the frame after the last true one is a guess, or that there is none; libdw
 * does not know either. */
static bool is_no_cfi(struct judge *judge, const struct chain *chain, size_t len)
{
	bool ended = chain->len == len + 1;

	if (ended ? chain->stop != PM_UNW_STOP_NO_CFI &&
			    chain->stop != PM_UNW_STOP_TRUNCATED
		  : chain->frames[len + 1].how == PM_UNW_HOW_CFI)
		return false;
	/* Also where a guess before was right in its pc, but lost registers. */
	for (size_t i = 0; i <= len; i++)
		if (dwfl_space_rule(dwfl_of(judge), chain->frames[i].lookup) ==
		    DWFL_RULE_NONE)
			return true;
	return false;
}

static bool is_known(struct judge *judge, const struct chain *chain, size_t len)
{
	uint64_t offset;
	const char *function =
		dwfl_space_function(dwfl_of(judge), chain->frames[len].lookup, &offset);

	for (const struct known *at = known; function && at->function; at++)
		if (fnmatch(at->function, function, 0) == 0)
			return true;
	return false;
}

void judge_look(struct judge *judge, const struct chain *chain)
{
	size_t len;

	read_truth(judge);
	judge->places++;
	judge->frames += (unsigned int)chain->len;
	len = true_frames(judge, chain);
	if (len == judge->truth.len && chain->len == len + 1 &&
	    chain->stop == PM_UNW_STOP_ROOT) {
		judge->counts[CLASS_TRUE]++;
		return;
	}
	add_doubt(judge, chain);
	if (is_other_stack(judge, chain, len))
		decide(judge, judge->doubts.len - 1, CLASS_OTHER_STACK);
	else if (is_no_cfi(judge, chain, len))
		decide(judge, judge->doubts.len - 1, CLASS_NO_CFI);
	else if (is_known(judge, chain, len))
		decide(judge, judge->doubts.len - 1, CLASS_KNOWN);
}

/* @chain without its leaf is the chain of where we are now. */
static bool is_target(const struct judge *judge, const struct chain *chain)
{
	const struct tracee *tracee = tracer_tracee(judge->tracer);
	struct chain rest = { chain->frames + 1, chain->len - 1, chain->stop, { 0 } };

	return chain->len >= 2 && chain->stop == PM_UNW_STOP_ROOT &&
	       rest.frames[0].pc == tracee->regs.value[PM_UNW_X86_64_RIP] &&
	       rest.frames[0].sp == tracee->regs.value[PM_UNW_X86_64_RSP] &&
	       rest.len == judge->truth.len + 1 &&
	       true_frames(judge, &rest) == judge->truth.len;
}

void judge_moved(struct judge *judge, enum tracer_result result)
{
	if (judge->doubts.len == 0)
		return;
	if (result == TRACER_ARRIVED)
		read_truth(judge);
	for (size_t i = judge->doubts.len; i > 0; i--) {
		const struct doubt *doubt = &judge->doubts.data[i - 1];

		if (result == TRACER_ARRIVED && is_target(judge, &doubt->chain))
			decide(judge, i - 1, CLASS_TARGET);
		else if (result == TRACER_ARRIVED ||
			 judge->tracer->steps - doubt->step > TRANSIT_STEPS)
			decide(judge, i - 1, CLASS_WRONG);
	}
}

void judge_settle(struct judge *judge)
{
	while (judge->doubts.len > 0)
		decide(judge, judge->doubts.len - 1, CLASS_WRONG);
}

void judge_release(struct judge *judge)
{
	while (judge->doubts.len > 0)
		doubt_release(&judge->doubts.data[--judge->doubts.len]);
	pm_vec_release(&judge->doubts);
	pm_vec_release(&judge->truth);
	dwfl_space_free(judge->dwfl);
}

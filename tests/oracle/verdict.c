/* SPDX-License-Identifier: MIT */
#include "tests/oracle/verdict.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

enum {
	/* From the first instruction whose CFI describes the target to the last one, with
	 * the instructions of a handler at each. */
	TRANSIT_STEPS = 2000,
};

static const char *const names[CLASS_COUNT] = {
	[CLASS_TRUE] = "true",
	[CLASS_TARGET] = "target",
	[CLASS_OTHER_STACK] = "other-stack",
	[CLASS_NO_CFI] = "no-cfi",
	[CLASS_OVERWRITTEN] = "overwritten",
	[CLASS_RED_ZONE] = "red-zone",
	[CLASS_CALLER_SAVED] = "caller-saved",
	[CLASS_KNOWN] = "known",
	[CLASS_WRONG] = "wrong",
};

const char *class_name(enum class class)
{
	return names[class];
}

/* Code whose CFI is known to be wrong. */
static const struct known {
	const char *module, *function; /* patterns of fnmatch(3) */
	bool in_transit; /* only from the change of rsp to the jump */
	const char *why;
} known[] = {
	/* glibc 2.36, sysdeps/unix/sysv/linux/x86_64: mov 0xa0(%rdx),%rsp; …; push %rcx; …;
	 * ret, with one row, CFA = rsp + 8, for all of the function. */
	{ "libc.so.6", "swapcontext", true, "loads rsp and pushes where to go" },
	{ "libc.so.6", "setcontext", true, "loads rsp and pushes where to go" },
	/* gcc: mov (%rdi),%rbp; mov 8(%rdi),%rax; mov 16(%rdi),%rsp; jmp *%rax with the rows
	 * of the frame that called it. */
	{ "jump*", "jumps_by_builtin", true, "__builtin_longjmp loads rbp and rsp" },
	/* gcc 12: call 1f; …; 1: lea 8(%rsp),%rsp; ret, and the same with mov %reg,(%rsp);
	 * the last row is CFA = rsp + 16, one too much at the ret. */
	{ "*-retpoline", "__x86_return_thunk", true, "no row after lea 8(%rsp),%rsp" },
	/* clang 14: the row after sub $168,%rsp starts only after the ten movaps of xmm6
	 * to xmm15 that follow it. */
	{ "*-clang*", "microsoft", false, "the row of sub comes ten instructions late" },
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

static const struct pm_unw_map *map_of(const struct judge *judge, uint64_t pc)
{
	const struct spaces_maps *maps = &judge->tracer->maps;

	return pm_unw_space_find(
		&(struct pm_unw_space){ maps->maps.data, maps->maps.len }, pc);
}

/* Without its folder. */
static const char *module_name(const struct judge *judge, uint64_t pc)
{
	const struct pm_unw_map *map = map_of(judge, pc);
	const char *path, *slash;

	if (!map)
		return "";
	path = pm_procs_module(judge->tracer->procs, map->tag)->identity.path;
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void print_address(struct judge *judge, uint64_t pc)
{
	const struct pm_unw_map *map = map_of(judge, pc);
	uint64_t offset;
	const char *function = dwfl_space_function(dwfl_of(judge), pc, &offset);

	printf("%s+%#" PRIx64, module_name(judge, pc), pc - (map ? map->bias : 0));
	if (function)
		printf("(%s+%#" PRIx64 ")", function, offset);
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

static struct doubt *add_doubt(struct judge *judge, const struct chain *chain)
{
	struct doubt doubt = {
		.chain = *chain,
		.truth_len = judge->truth.len,
		.in_transit = tracer_tracee(judge->tracer)->shadow.in_transit,
		.step = judge->tracer->steps,
	};

	for (size_t i = 0; i < judge->truth.len; i++) {
		if (!judge->truth.data[i].interrupted)
			continue;
		doubt.base = i + 1;
		doubt.in_transit = judge->truth.data[i].in_transit;
		break;
	}

	doubt.chain.frames =
		copy_of(chain->frames, chain->len * sizeof(chain->frames[0]));
	doubt.truth = copy_of(judge->truth.data,
			      judge->truth.len * sizeof(judge->truth.data[0]));
	if (pm_vec_push(&judge->doubts, doubt) < 0)
		abort();
	return &judge->doubts.data[judge->doubts.len - 1];
}

/* ---- comparing -------------------------------------------------------------------------- */

static void read_truth(struct judge *judge)
{
	const struct shadow *shadow = &tracer_tracee(judge->tracer)->shadow.now;

	pm_vec_clear(&judge->truth);
	for (size_t i = shadow->entries.len; i > 0; i--) {
		struct shadow_entry entry = shadow->entries.data[i - 1];

		/* The handler may have changed its return address. */
		if (entry.interrupted)
			tracer_peek(judge->tracer, entry.slot, &entry.pc);
		if (pm_vec_push(&judge->truth, entry) < 0)
			abort();
	}
}

/* Returns how many frames after the leaf are true. */
static size_t true_frames(const struct judge *judge, const struct chain *chain)
{
	size_t i = 0;

	for (; i + 1 < chain->len && i < judge->truth.len; i++) {
		const struct pm_unw_frame *frame = &chain->frames[i + 1];
		const struct shadow_entry *entry = &judge->truth.data[i];

		if (frame->pc != entry->pc || frame->sp != entry->sp ||
		    frame->lookup != frame->pc - !(entry->interrupted || entry->uncalled))
			break;
	}
	return i;
}

static bool lacks_bytes(enum pm_unw_stop stop)
{
	return stop == PM_UNW_STOP_TRUNCATED || stop == PM_UNW_STOP_BAD_MEMORY;
}

/* The first missing frame is on a stack of which no bytes were copied. */
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

/* The frame after the last true one is marked as a guess, or there is none; libdw does
 * not have CFI either. */
static bool is_no_cfi(struct judge *judge, const struct chain *chain, size_t len)
{
	bool ended = chain->len == len + 1;

	if (ended ? chain->stop != PM_UNW_STOP_NO_CFI &&
			    chain->stop != PM_UNW_STOP_TRUNCATED
		  : chain->frames[len + 1].how == PM_UNW_HOW_CFI)
		return false;
	/* Also if the pc of an earlier guess was right, but registers were lost. */
	for (size_t i = 0; i <= len; i++)
		if (dwfl_space_rule(dwfl_of(judge), chain->frames[i].lookup) ==
		    DWFL_RULE_NONE)
			return true;
	return false;
}

static bool is_overwritten(const struct judge *judge, size_t len)
{
	uint64_t pc;

	if (len == judge->truth.len || judge->truth.data[len].interrupted)
		return false;
	return tracer_peek(judge->tracer, judge->truth.data[len].slot, &pc) &&
	       pc != judge->truth.data[len].pc;
}

static bool is_known(struct judge *judge, const struct doubt *doubt, size_t len)
{
	const struct chain *chain = &doubt->chain;
	uint64_t pc = chain->frames[doubt->base].pc;
	const char *function;
	uint64_t offset;
	bool in_transit;

	if (len < doubt->base)
		return false;
	/* setcontext(3) has CFI for the registers it loads, from memory that is not a
	 * stack. */
	in_transit = doubt->in_transit ||
		     (chain->len == len + 1 && chain->stop == PM_UNW_STOP_BAD_MEMORY);
	function = dwfl_space_function(dwfl_of(judge), pc, &offset);
	for (size_t i = 0; function && i < PM_ARRAY_LEN(known); i++)
		if (fnmatch(known[i].function, function, 0) == 0 &&
		    fnmatch(known[i].module, module_name(judge, pc), 0) == 0 &&
		    (in_transit || !known[i].in_transit))
			return true;
	return false;
}

static bool is_caller_saved(struct judge *judge, const struct chain *chain, size_t len)
{
	static const uint32_t callee_saved =
		1 << 3 | 1 << 6 | 0xf << 12; /* rbx, rbp, … */
	int reg = dwfl_space_cfa_reg(dwfl_of(judge), chain->frames[len].lookup);

	return len > 0 && chain->len == len + 1 &&
	       chain->stop == PM_UNW_STOP_NO_REGISTER && reg >= 0 &&
	       reg != PM_UNW_X86_64_RSP && !(callee_saved >> reg & 1);
}

static enum class classify(struct judge *judge, const struct doubt *doubt, size_t len) {
	if (is_other_stack(judge, &doubt->chain, len)) return CLASS_OTHER_STACK;
		if (is_no_cfi(judge, &doubt->chain, len)) return CLASS_NO_CFI;
		if (is_overwritten(judge, len)) return CLASS_OVERWRITTEN;
		if (doubt->chain.true_with_red_zone) return CLASS_RED_ZONE;
		if (is_caller_saved(judge, &doubt->chain, len)) return CLASS_CALLER_SAVED;
		return is_known(judge, doubt, len) ? CLASS_KNOWN : CLASS_WRONG;
}

bool judge_is_true(struct judge *judge, const struct chain *chain)
{
	read_truth(judge);
	return chain->len == judge->truth.len + 1 && chain->stop == PM_UNW_STOP_ROOT &&
	       true_frames(judge, chain) == judge->truth.len;
}

void judge_look(struct judge *judge, const struct chain *chain)
{
	bool is_true = judge_is_true(judge, chain);
	size_t len = true_frames(judge, chain);
	enum class class;

	judge->places++;
	judge->frames += (unsigned int)chain->len;
	if (is_true) {
		judge->counts[CLASS_TRUE]++;
		return;
	}
	class = classify(judge, add_doubt(judge, chain), len);
	/* The rest may still be the chain of the target: this is known on arrival. */
	if (class != CLASS_WRONG)
		decide(judge, judge->doubts.len - 1, class);
}

/* Whether the chain, without its first frames up to @base, is the chain of the present
 * place. */
static bool is_target_of(const struct judge *judge, const struct doubt *doubt,
			 size_t base)
{
	const struct tracee *tracee = tracer_tracee(judge->tracer);
	const struct chain *chain = &doubt->chain;
	struct chain rest = { .frames = chain->frames + base + 1,
			      .len = chain->len - base - 1 };

	if (chain->len < base + 2 || chain->stop != PM_UNW_STOP_ROOT)
		return false;
	for (size_t i = 1; i <= base; i++)
		if (chain->frames[i].pc != doubt->truth[i - 1].pc ||
		    chain->frames[i].sp != doubt->truth[i - 1].sp)
			return false;
	return rest.frames[0].pc == tracee->regs.value[PM_UNW_X86_64_RIP] &&
	       rest.frames[0].sp == tracee->regs.value[PM_UNW_X86_64_RSP] &&
	       rest.len == judge->truth.len + 1 &&
	       true_frames(judge, &rest) == judge->truth.len;
}

/* The jump is made by the leaf, or by the frame that the leaf's handler interrupted. */
static bool is_target(const struct judge *judge, const struct doubt *doubt)
{
	return is_target_of(judge, doubt, 0) ||
	       (doubt->base > 0 && is_target_of(judge, doubt, doubt->base));
}

void judge_moved(struct judge *judge, enum tracer_result result)
{
	if (judge->doubts.len == 0)
		return;
	if (result == TRACER_ARRIVED)
		read_truth(judge);
	for (size_t i = judge->doubts.len; i > 0; i--) {
		const struct doubt *doubt = &judge->doubts.data[i - 1];

		if (result == TRACER_ARRIVED && is_target(judge, doubt))
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

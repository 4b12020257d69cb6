/* SPDX-License-Identifier: MIT */
/*
 * Runs programs in single steps, and unwinds at each instruction from the registers and a
 * copy of the stack: a sample can fall anywhere in a prologue or epilogue, and here all
 * of these places are tested. The truth is the shadow stack of shadow.h, which is
 * complete from the program's entry point: each frame's pc, stack pointer and lookup
 * address must be the true one, up to the root.
 *
 * oracle-step [--verbose] [OPTION... NAME PROGRAM [ARG...] --]...
 *   --signals     a signal handler interrupts at each place, and is compared, too
 *   --loader      starts in the dynamic loader
 *   --steps N     at most N instructions
 *   --env KEY=VALUE
 *   --missing WHY a program that could not be built: skipped
 *
 * Each instruction is compared once for each of its callers.
 *
 * Prints TAP. Exit status 1 if a chain was wrong.
 */
#include "tests/oracle/live.h"
#include "tests/oracle/verdict.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>

enum {
	STEPS_MAX = 100000,
	PRINTED_MAX = 3,
	RED_ZONE_BYTES = 128, /* psABI §3.2.2 */
	STATUS_SKIP = 77, /* the program lacks what it tests */
	ARGS_MAX = 16,
	SEEN_SLOTS = 1 << 18, /* never full: larger than STEPS_MAX */
	/* Has no effect without a handler. */
	INJECTED = SIGURG,
};

struct options {
	bool verbose;
	/* For the next program. */
	bool signals, loader;
	uint64_t steps;
	char *env;
	const char *missing;
};

struct stepper {
	const struct options *options;
	struct tracer tracer;
	struct pm_unwinder *unwinder;
	struct judge judge;
	uint64_t seen[SEEN_SLOTS];
	size_t seen_len;
	uint8_t stack[LIVE_STACK_BYTES];
	struct pm_unw_frame ours[PM_UNW_FRAMES_MAX];
	unsigned int injected;
};

/* Whether this place has not been compared yet; in a handler, for each place that it
 * interrupted. */
static bool is_new(struct stepper *stepper, const struct tracee *tracee)
{
	const struct shadow *shadow = &tracee->shadow.now;
	uint64_t key = tracee->regs.value[PM_UNW_X86_64_RIP];
	size_t at;

	for (size_t len = shadow->entries.len; len > 0; len--) {
		const struct shadow_entry *entry = &shadow->entries.data[len - 1];

		if (entry->interrupted || len == shadow->entries.len)
			key = pm_hash_mix(key, entry->pc);
	}
	at = key % SEEN_SLOTS;
	while (stepper->seen[at] && stepper->seen[at] != key)
		at = (at + 1) % SEEN_SLOTS;
	if (stepper->seen[at] == key || stepper->seen_len == SEEN_SLOTS / 2)
		return false;
	stepper->seen[at] = key;
	stepper->seen_len++;
	return true;
}

static bool is_interrupted(const struct tracee *tracee)
{
	for (size_t i = 0; i < tracee->shadow.now.entries.len; i++)
		if (tracee->shadow.now.entries.data[i].interrupted)
			return true;
	return false;
}

static bool read_generated(void *user, uint64_t address, void *ret, size_t len)
{
	const struct tracee *tracee = user;

	return pm_trace_read(tracee->tid, address, ret, len) == len;
}

/* Unwinds as from a copy of the stack that starts @below bytes below the stack
 * pointer. */
static struct chain unwind_here(struct stepper *stepper, size_t below)
{
	struct tracer *tracer = &stepper->tracer;
	struct tracee *tracee = tracer_tracee(tracer);
	struct pm_unw_space space = { .maps = tracer->maps.maps.data,
				      .len = tracer->maps.maps.len,
				      .read_code = read_generated,
				      .read_code_user = tracee };
	struct chain chain = { .frames = stepper->ours };

	chain.stack = (struct pm_unw_stack){
		.start = tracee->regs.value[PM_UNW_X86_64_RSP] - below,
		.data = stepper->stack,
	};
	chain.stack.len =
		tracer_stack(tracer, below, stepper->stack, sizeof(stepper->stack));
	chain.len = pm_unwind(stepper->unwinder, &space, &tracee->regs, &chain.stack,
			      stepper->ours, &chain.stop);
	return chain;
}

static void look(struct stepper *stepper)
{
	struct chain chain;
	bool with_red_zone = false;

	tracer_refresh(&stepper->tracer);
	chain = unwind_here(stepper, 0);
	/* perf_event_open(2) copies upward from the stack pointer. */
	if (chain.stop == PM_UNW_STOP_BAD_MEMORY) {
		chain = unwind_here(stepper, RED_ZONE_BYTES);
		with_red_zone = judge_is_true(&stepper->judge, &chain);
		chain = unwind_here(stepper, 0);
		chain.true_with_red_zone = with_red_zone;
	}
	judge_look(&stepper->judge, &chain);
}

static void step_through(struct stepper *stepper)
{
	struct tracer *tracer = &stepper->tracer;
	enum tracer_result result = TRACER_STEPPED;
	unsigned int epoch = 0;
	bool catches = false;

	while (result != TRACER_ENDED && !tracer->failed &&
	       tracer->steps < stepper->options->steps) {
		struct tracee *tracee = tracer_tracee(tracer);
		bool interrupt = false;

		/* A thread that waits must not be compared. */
		if (!tracee->stepping && is_new(stepper, tracee)) {
			look(stepper);
			if (stepper->options->signals && !is_interrupted(tracee) &&
			    epoch != tracer->signals_epoch) {
				epoch = tracer->signals_epoch;
				catches = tracer_catches(tracer, INJECTED);
			}
			interrupt = catches && !is_interrupted(tracee);
			stepper->injected += interrupt;
		}
		result = tracer_step(tracer, interrupt ? INJECTED : 0);
		if (result != TRACER_ENDED)
			judge_moved(&stepper->judge, result);
	}
}

/* ---- programs --------------------------------------------------------------------------- */

static bool report(struct stepper *stepper, const char *name, int number)
{
	const struct judge *judge = &stepper->judge;
	bool skip = stepper->tracer.exit_status == STATUS_SKIP;
	bool ok = judge->counts[CLASS_WRONG] == 0 && judge->places > 0 &&
		  !stepper->tracer.failed;

	printf("%s %d - %s: %u places, %u wrong%s\n", ok ? "ok" : "not ok", number, name,
	       judge->places, judge->counts[CLASS_WRONG],
	       skip ? " # SKIP there is no such library" : "");
	printf("# %s: %" PRIu64 " instructions, %u frames; true %u", name,
	       stepper->tracer.steps, judge->frames, judge->counts[CLASS_TRUE]);
	for (int i = CLASS_TRUE + 1; i < CLASS_WRONG; i++)
		if (judge->counts[i] > 0)
			printf(", %s %u", class_name((enum class)i), judge->counts[i]);
	if (stepper->injected > 0)
		printf("; interrupted at %u", stepper->injected);
	puts(stepper->tracer.failed ? "; lost the program" : "");
	fflush(stdout);
	return ok;
}

static bool test_program(const struct options *options, int number, const char *name,
			 char *const argv[])
{
	struct stepper *stepper = calloc(1, sizeof(*stepper));
	bool ok;
	int rc;

	if (!stepper)
		abort();
	stepper->options = options;
	stepper->unwinder = pm_unwinder_new();
	if (!stepper->unwinder)
		abort();
	judge_init(&stepper->judge, &stepper->tracer,
		   options->verbose ? UINT_MAX : PRINTED_MAX, options->verbose);
	rc = tracer_start(&stepper->tracer, argv, options->env, options->loader);
	if (rc == 0)
		step_through(stepper);
	judge_settle(&stepper->judge);
	ok = report(stepper, name, number);
	judge_release(&stepper->judge);
	tracer_release(&stepper->tracer);
	pm_unwinder_free(stepper->unwinder);
	free(stepper);
	return ok;
}

/* Parses the options of the program at argv[*at]; advances to its name. */
static bool parse(struct options *options, char **argv, int argc, int *at)
{
	*options = (struct options){ .verbose = options->verbose, .steps = STEPS_MAX };
	for (; *at < argc && strncmp(argv[*at], "--", 2) == 0; ++*at) {
		const char *option = argv[*at];

		if (strcmp(option, "--verbose") == 0)
			options->verbose = true;
		else if (strcmp(option, "--signals") == 0)
			options->signals = true;
		else if (strcmp(option, "--loader") == 0)
			options->loader = true;
		else if (++*at == argc)
			return false;
		else if (strcmp(option, "--env") == 0)
			options->env = argv[*at];
		else if (strcmp(option, "--missing") == 0)
			options->missing = argv[*at];
		else if (strcmp(option, "--steps") != 0 ||
			 !pm_parse_u64(argv[*at], &options->steps))
			return false;
	}
	return *at < argc;
}

int main(int argc, char **argv)
{
	struct options options = { 0 };
	cpu_set_t cpu;
	int number = 0;
	int failed = 0;
	int at = 1;

	/* Each step switches twice between us and the program: this is cheap on one
	 * CPU. */
	CPU_ZERO(&cpu);
	CPU_SET((size_t)sched_getcpu(), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	while (at < argc) {
		char *program[ARGS_MAX + 1] = { NULL };
		const char *name;
		size_t len = 0;

		if (!parse(&options, argv, argc, &at))
			return 2;
		name = argv[at++];
		for (; at < argc && strcmp(argv[at], "--") != 0; at++)
			if (len < ARGS_MAX)
				program[len++] = argv[at];
		at++;
		number++;
		if (options.missing)
			printf("ok %d - %s # SKIP %s\n", number, name, options.missing);
		else
			failed += !test_program(&options, number, name, program);
	}
	printf("1..%d\n", number);
	return failed > 0;
}

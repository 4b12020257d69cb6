/* SPDX-License-Identifier: MIT */
/*
 * Steps programs instruction by instruction and unwinds at each, from registers and a copy
 * of the stack: a sample can fall anywhere in a prologue or epilogue, and here all of those
 * places are seen. The truth is a shadow stack, kept by watching call and ret go by. It
 * begins from a chain that pm_unwind() and libunwind-ptrace agree on; where it cannot be
 * kept (signals, another stack), libunwind-ptrace on the thread itself is the truth.
 *
 * oracle-step PROGRAM...
 *
 * Prints TAP. Exit status 1 when a chain was wrong.
 */
#include "tests/oracle/live.h"
#include "tests/oracle/spaces.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	/* An instruction has to be met with more than one caller. */
	VISITS_MAX = 3,
	STEPS_MAX = 25000,
	PLACES_MAX = 800,
	PRINTED_MAX = 3,
	WARM_UP_US = 30000, /* past ld.so and into what the program is made for */
	SHADOW_MAX = 4096,
	/* No frame of the programs is so big: the stack pointer is on another stack. */
	FRAME_BYTES_MAX = 20000,
};

/* How often an instruction was met; open addressing, never full. */
enum {
	SEEN_SLOTS = 1 << 14,
};

/* A return address and where it stands. */
struct shadow_frame {
	uint64_t slot;
	uint64_t pc;
};

struct stepper {
	pid_t pid;
	struct pm_procs *procs;
	struct pm_unwinder *unwinder;
	struct spaces_modules modules;
	struct spaces_maps maps;
	struct {
		uint64_t pc;
		unsigned int visits;
	} seen[SEEN_SLOTS];
	uint8_t stack[LIVE_STACK_BYTES];
	struct pm_unw_frame ours[PM_UNW_FRAMES_MAX];
	uint64_t theirs[PM_UNW_FRAMES_MAX];
	/* Outermost first; empty while it cannot be kept. */
	struct shadow_frame shadow[SHADOW_MAX];
	size_t shadow_len;
	unsigned int places, shadowed, wrong, libunwind_wrong, cut;
};

/* Whether @pc is worth a look once more. */
static bool is_new(struct stepper *stepper, uint64_t pc)
{
	size_t at = pm_hash_mix(pc, 0) % SEEN_SLOTS;

	while (stepper->seen[at].pc && stepper->seen[at].pc != pc)
		at = (at + 1) % SEEN_SLOTS;
	stepper->seen[at].pc = pc;
	return stepper->seen[at].visits++ < VISITS_MAX;
}

static void print_address(const struct stepper *stepper, uint64_t pc)
{
	for (size_t i = 0; i < stepper->maps.maps.len; i++) {
		const struct pm_unw_map *map = &stepper->maps.maps.data[i];

		if (pc < map->start || pc >= map->end)
			continue;
		printf("%s+%#" PRIx64,
		       pm_procs_module(stepper->procs, map->tag)->identity.path,
		       pc - map->bias);
		return;
	}
	printf("%#" PRIx64, pc);
}

static void print_frame(const struct stepper *stepper, const char *whose, bool there,
			uint64_t pc)
{
	printf(" %s ", whose);
	if (there)
		print_address(stepper, pc);
	else
		putchar('-');
}

static void print_chains(const struct stepper *stepper, size_t ours, size_t theirs,
			 enum pm_unw_stop stop)
{
	size_t shadow = stepper->shadow_len;

	printf("# wrong (we stop: %s)\n", pm_unw_stop_name(stop));
	for (size_t i = 0; i < ours || i < theirs || i <= shadow; i++) {
		printf("# %3zu", i);
		print_frame(stepper, "ours", i < ours, stepper->ours[i].pc);
		print_frame(stepper, "| libunwind", i < theirs, stepper->theirs[i]);
		print_frame(stepper, "| true", i > 0 && i <= shadow,
			    i > 0 && i <= shadow ? stepper->shadow[shadow - i].pc : 0);
		putchar('\n');
	}
}

/* ---- the truth -------------------------------------------------------------------------- */

static bool is_shadow(const struct stepper *stepper, size_t len,
		      uint64_t (*pc)(const void *, size_t), const void *chain)
{
	if (len != stepper->shadow_len + 1)
		return false;
	for (size_t i = 1; i < len; i++)
		if (pc(chain, i) != stepper->shadow[stepper->shadow_len - i].pc)
			return false;
	return true;
}

static uint64_t our_pc(const void *chain, size_t i)
{
	return ((const struct pm_unw_frame *)chain)[i].pc;
}

static uint64_t their_pc(const void *chain, size_t i)
{
	return ((const uint64_t *)chain)[i];
}

/* From a chain that two unwinders agree on. A return address stands below the CFA, which is
 * the stack pointer of the caller (psABI, figure 3.3). */
static void shadow_begin(struct stepper *stepper, size_t len)
{
	if (len > SHADOW_MAX)
		return;
	for (size_t i = 1; i < len; i++) {
		const struct pm_unw_frame *frame = &stepper->ours[i];

		if (frame->lookup == frame->pc)
			return; /* interrupted by a signal: not by a call */
		stepper->shadow[len - 1 - i] =
			(struct shadow_frame){ frame->sp - 8, frame->pc };
	}
	stepper->shadow_len = len - 1;
}

static bool is_call(const uint8_t *code)
{
	/* Prefixes: REX, or the address size and segment ones that linkers pad with. */
	while ((*code & 0xf0) == 0x40 || *code == 0x67 || *code == 0x2e || *code == 0x3e)
		code++;
	return *code == 0xe8 || (*code == 0xff && (code[1] >> 3 & 7) == 2);
}

static bool is_return(const uint8_t *code)
{
	if (*code == 0xf2 || *code == 0xf3) /* bnd, or a rep that only pads */
		code++;
	return *code == 0xc3 || *code == 0xc2;
}

/* After the instruction @code at @before was executed. */
static void shadow_follow(struct stepper *stepper, const struct pm_unw_regs *before,
			  const struct pm_unw_regs *after, const uint8_t *code)
{
	uint64_t old_sp = before->value[PM_UNW_X86_64_RSP];
	uint64_t sp = after->value[PM_UNW_X86_64_RSP];
	uint64_t pc;

	if (stepper->shadow_len == 0)
		return;
	if (sp - old_sp + FRAME_BYTES_MAX > 2 * FRAME_BYTES_MAX ||
	    stepper->shadow_len == SHADOW_MAX) {
		stepper->shadow_len = 0;
		return;
	}
	if (sp == old_sp - 8 && is_call(code) &&
	    live_stack(stepper->pid, sp, stepper->stack) >= sizeof(pc)) {
		memcpy(&pc, stepper->stack, sizeof(pc));
		stepper->shadow[stepper->shadow_len++] = (struct shadow_frame){ sp, pc };
		return;
	}
	/* By ret; or all at once by longjmp(3). Not by popping the return address into a
	 * register, as vfork(2) does for its child not to overwrite it. */
	while (stepper->shadow_len > 0) {
		uint64_t slot = stepper->shadow[stepper->shadow_len - 1].slot;

		if (slot >= sp || (slot == sp - 8 && !is_return(code)))
			break;
		stepper->shadow_len--;
	}
}

/* ---- a place ---------------------------------------------------------------------------- */

/* libunwind reads files, and the vDSO is none: it guesses there. */
static bool in_vdso(const struct stepper *stepper, uint64_t pc)
{
	for (size_t i = 0; i < stepper->maps.maps.len; i++) {
		const struct pm_unw_map *map = &stepper->maps.maps.data[i];

		if (pc >= map->start && pc < map->end)
			return pm_procs_module(stepper->procs, map->tag)->identity.kind ==
			       PM_MODULE_VDSO;
	}
	return false;
}

static bool chains_equal(const struct stepper *stepper, size_t ours, ssize_t theirs)
{
	if (theirs != (ssize_t)ours)
		return false;
	for (size_t i = 0; i < ours; i++)
		if (stepper->ours[i].pc != stepper->theirs[i])
			return false;
	return true;
}

static bool is_mapped(const struct stepper *stepper, uint64_t pc)
{
	for (size_t i = 0; i < stepper->maps.maps.len; i++)
		if (pc >= stepper->maps.maps.data[i].start &&
		    pc < stepper->maps.maps.data[i].end)
			return true;
	return false;
}

/*
 * Ours ends before libunwind's chain for a reason that we give truly: the interrupted frame
 * is on another stack than the signal handler, of which there is no copy; or the next return
 * address is in no code (half-way through swapcontext(3), where CFI cannot follow).
 */
static bool is_cut(const struct stepper *stepper, size_t ours, ssize_t theirs,
		   enum pm_unw_stop stop)
{
	if (theirs <= (ssize_t)ours || !chains_equal(stepper, ours, (ssize_t)ours))
		return false;
	return stop == PM_UNW_STOP_BAD_MEMORY || stop == PM_UNW_STOP_TRUNCATED ||
	       (stop == PM_UNW_STOP_NO_MODULE && theirs == (ssize_t)ours + 1 &&
		!is_mapped(stepper, stepper->theirs[ours]));
}

static void compare_here(struct stepper *stepper, const struct pm_unw_regs *regs)
{
	struct pm_unw_space space = { stepper->maps.maps.data, stepper->maps.maps.len };
	struct pm_unw_stack stack = { .start = regs->value[PM_UNW_X86_64_RSP],
				      .data = stepper->stack };
	enum pm_unw_stop stop;
	ssize_t theirs = pm_unw_ptrace_chain(stepper->pid, stepper->theirs,
					     PM_UNW_FRAMES_MAX, NULL);
	bool right;
	size_t ours;

	stack.len = live_stack(stepper->pid, stack.start, stepper->stack);
	ours = pm_unwind(stepper->unwinder, &space, regs, &stack, stepper->ours, &stop);
	if (stepper->shadow_len > 0) {
		right = stop == PM_UNW_STOP_ROOT &&
			is_shadow(stepper, ours, our_pc, stepper->ours);
		stepper->shadowed++;
		stepper->libunwind_wrong +=
			!in_vdso(stepper, regs->value[PM_UNW_X86_64_RIP]) &&
			(theirs < 0 ||
			 !is_shadow(stepper, (size_t)theirs, their_pc, stepper->theirs));
	} else if (in_vdso(stepper, regs->value[PM_UNW_X86_64_RIP])) {
		return;
	} else {
		right = chains_equal(stepper, ours, theirs);
		if (right && stop == PM_UNW_STOP_ROOT) {
			shadow_begin(stepper, ours);
		} else if (!right && is_cut(stepper, ours, theirs, stop)) {
			stepper->cut++;
			right = true;
		}
	}
	stepper->places++;
	if (!right && stepper->wrong++ < PRINTED_MAX)
		print_chains(stepper, ours, theirs > 0 ? (size_t)theirs : 0, stop);
}

/* One instruction; signals are delivered. False: the program has ended. */
static bool step(struct stepper *stepper)
{
	int signo = 0;
	int status;

	for (;;) {
		if (ptrace(PTRACE_SINGLESTEP, stepper->pid, NULL, signo) != 0 ||
		    waitpid(stepper->pid, &status, __WALL) != stepper->pid ||
		    !WIFSTOPPED(status))
			return false;
		if (WSTOPSIG(status) == SIGTRAP)
			return true;
		signo = WSTOPSIG(status);
		stepper->shadow_len = 0;
	}
}

static bool start(struct stepper *stepper, char *program)
{
	char *argv[] = { program, (char[]){ "60000" }, (char[]){ "3" }, NULL };

	fflush(stdout);
	stepper->pid = fork();
	if (stepper->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(program, argv);
		_exit(127);
	}
	if (stepper->pid < 0)
		return false;
	usleep(WARM_UP_US);
	return ptrace(PTRACE_SEIZE, stepper->pid, NULL, NULL) == 0 &&
	       ptrace(PTRACE_INTERRUPT, stepper->pid, NULL, NULL) == 0 &&
	       waitpid(stepper->pid, NULL, __WALL) == stepper->pid;
}

static void step_through(struct stepper *stepper)
{
	struct pm_unw_regs regs;

	if (pm_procs_read(stepper->procs, stepper->pid, NULL) != 0)
		return;
	spaces_fill(&stepper->maps, &stepper->modules, stepper->procs,
		    &pm_procs_get(stepper->procs, stepper->pid)->space);
	if (!live_regs(stepper->pid, &regs))
		return;
	for (int i = 0; i < STEPS_MAX && stepper->places < PLACES_MAX; i++) {
		struct pm_unw_regs before = regs;
		uint8_t code[16] = { 0 };

		if (is_new(stepper, regs.value[PM_UNW_X86_64_RIP]))
			compare_here(stepper, &regs);
		live_code(stepper->pid, regs.value[PM_UNW_X86_64_RIP], code,
			  sizeof(code));
		if (!step(stepper) || !live_regs(stepper->pid, &regs))
			return;
		shadow_follow(stepper, &before, &regs, code);
	}
}

/* The number of places with a wrong chain, or -1 when there was nothing to look at. */
static int test_program(char *program, int number)
{
	struct stepper *stepper = calloc(1, sizeof(*stepper));
	const char *name;
	int wrong;

	if (!stepper)
		abort();
	stepper->procs = pm_procs_new(NULL);
	stepper->unwinder = pm_unwinder_new();
	if (!stepper->procs || !stepper->unwinder)
		abort();
	if (start(stepper, program))
		step_through(stepper);
	if (stepper->pid > 0) {
		kill(stepper->pid, SIGKILL);
		waitpid(stepper->pid, NULL, __WALL);
	}
	wrong = stepper->places > 0 ? (int)stepper->wrong : -1;
	name = strrchr(program, '/');
	printf("%s %d - %s: %u places, %u against the true chain, %u wrong\n",
	       wrong == 0 ? "ok" : "not ok", number, name ? name + 1 : program,
	       stepper->places, stepper->shadowed, stepper->wrong);
	printf("# chain cut at %u; libunwind-ptrace wrong at %u outside of the vDSO\n",
	       stepper->cut, stepper->libunwind_wrong);
	spaces_modules_release(&stepper->modules);
	pm_vec_release(&stepper->maps.maps);
	pm_unwinder_free(stepper->unwinder);
	pm_procs_free(stepper->procs);
	free(stepper);
	return wrong;
}

int main(int argc, char **argv)
{
	int failed = 0;

	printf("1..%d\n", argc - 1);
	for (int i = 1; i < argc; i++)
		failed += test_program(argv[i], i) != 0;
	return failed > 0;
}

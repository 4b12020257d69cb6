/* SPDX-License-Identifier: MIT */
/*
 * The unwinder on this very process: registers and stack are copied in the deepest frame, and
 * the compiler's own unwinder (_Unwind_Backtrace of libgcc) is the second opinion.
 */
#include "pm/unwind.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unwind.h>

#include <cmocka.h>

enum {
	MAPS_MAX = 256,
	CHAIN_MAX = 256,
	STACK_COPY = 1 << 18, /* holds a few arrays of PM_UNW_FRAMES_MAX frames */
#if defined(__x86_64__)
	STACK_POINTER = PM_UNW_X86_64_RSP,
	CALL_BYTES = 8, /* that a call takes of the stack */
#elif defined(__aarch64__)
	/* AADWARF64 §4.1. */
	LINK = 30,
	STACK_POINTER = 31,
	PROGRAM_COUNTER = 32,
	CALL_BYTES = 0,
#endif
};

struct world {
	struct pm_unw_map maps[MAPS_MAX];
	struct pm_unw_space space;
	struct pm_unwinder *unwinder;
};

/* What a thread looked like in its deepest frame. */
struct shot {
	struct pm_unw_regs regs;
	struct pm_unw_stack stack;
	uint8_t copy[STACK_COPY];
	uint64_t truth[CHAIN_MAX];
	size_t truth_len;
};

static struct shot shot;

static struct pm_unw_module *open_module(const char *path)
{
	struct pm_unw_module *module = NULL;
	PM_AUTO_CLOSE int fd = -1;

	if (strcmp(path, "[vdso]") == 0) {
		const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);

		pm_unw_module_from_memory(&module, image, 2 * 4096, NULL);
		return module;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		pm_unw_module_open(&module, fd, NULL);
	return module;
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	PM_AUTO_FCLOSE FILE *maps = fopen("/proc/self/maps", "re");
	char line[4200], path[4097];

	assert_non_null(world);
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end, pgoff;
		char prot[5];
		struct pm_unw_map *map = &world->maps[world->space.len];

		path[0] = '\0';
		if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %4096[^\n]", &start, &end, prot,
			   &pgoff, path) < 4 ||
		    prot[2] != 'x' || world->space.len == MAPS_MAX)
			continue;
		*map = (struct pm_unw_map){ .start = start, .end = end };
		map->module = open_module(path);
		if (map->module)
			assert_int_equal(
				pm_unw_module_bias(map->module, start, pgoff, &map->bias),
				0);
		world->space.len++;
	}
	world->space.maps = world->maps;
	world->unwinder = pm_unwinder_new();
	assert_non_null(world->unwinder);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	for (size_t i = 0; i < world->space.len; i++)
		pm_unw_module_free(world->maps[i].module);
	pm_unwinder_free(world->unwinder);
	free(world);
	return 0;
}

/* ---- taking a shot -------------------------------------------------------------------- */

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *user)
{
	(void)user;
	if (shot.truth_len < CHAIN_MAX)
		shot.truth[shot.truth_len++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

__attribute__((no_sanitize_address)) static void copy_stack(uint64_t sp)
{
	extern void *__libc_stack_end __attribute__((weak));
	uint64_t end = (uint64_t)(uintptr_t)__libc_stack_end + 64;
	size_t len = end - sp < STACK_COPY ? end - sp : STACK_COPY;

	/* Byte by byte: memcpy would be checked by the sanitizer's red zones. */
	for (size_t i = 0; i < len; i++)
		shot.copy[i] = ((volatile const uint8_t *)(uintptr_t)sp)[i];
	shot.stack = (struct pm_unw_stack){ .start = sp, .data = shot.copy, .len = len };
}

static void regs_from(const mcontext_t *from)
{
#if defined(__x86_64__)
	static const int by_dwarf[PM_UNW_X86_64_REGS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
		REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
		REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP
	};

	for (size_t i = 0; i < PM_UNW_X86_64_REGS; i++)
		shot.regs.value[i] = (uint64_t)from->gregs[by_dwarf[i]];
	shot.regs.known = (1u << PM_UNW_X86_64_REGS) - 1;
#elif defined(__aarch64__)
	for (size_t i = 0; i < STACK_POINTER; i++)
		shot.regs.value[i] = from->regs[i];
	shot.regs.value[STACK_POINTER] = from->sp;
	shot.regs.value[STACK_POINTER + 1] = from->pc;
	shot.regs.arch = PM_UNW_AARCH64;
	shot.regs.known = (UINT64_C(1) << PM_UNW_REGS_MAX) - 1;
#endif
}

static __attribute__((noinline)) void take_shot(void)
{
	ucontext_t context;

	shot.truth_len = 0;
	getcontext(&context);
	regs_from(&context.uc_mcontext);
	copy_stack(shot.regs.value[STACK_POINTER]);
	_Unwind_Backtrace(note_frame, NULL);
	/* Where the outermost frame has no return address, libgcc gives a last 0. */
	while (shot.truth_len > 0 && shot.truth[shot.truth_len - 1] == 0)
		shot.truth_len--;
}

/* The vDSO of aarch64 has no CFI of signal frames since Linux 5.8. */
static void check_how(const struct pm_unw_frame *frame)
{
#if defined(__aarch64__)
	if (frame->how == PM_UNW_HOW_TRAMPOLINE) {
		assert_int_equal(frame->lookup, frame->pc);
		return;
	}
#endif
	assert_int_equal(frame->how, PM_UNW_HOW_CFI);
}

/* The truth begins somewhere in take_shot(), too, but at its second call: skip frame 0. */
static void check_shot(struct world *world)
{
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	enum pm_unw_stop stop;
	size_t len = pm_unwind(world->unwinder, &world->space, &shot.regs, &shot.stack,
			       frames, &stop);

	assert_int_equal(stop, PM_UNW_STOP_ROOT);
	assert_int_equal(len, shot.truth_len);
	assert_int_equal(frames[0].how, PM_UNW_HOW_IP);
	for (size_t i = 1; i < len; i++) {
		assert_int_equal(frames[i].pc, shot.truth[i]);
		check_how(&frames[i]);
		assert_true(frames[i].lookup == frames[i].pc ||
			    frames[i].lookup == frames[i].pc - 1);
	}
}

/* ---- shapes of stacks ------------------------------------------------------------------ */

static void test_plain(void **state)
{
	take_shot();
	check_shot(*state);
}

static __attribute__((noinline)) void recurse(int depth)
{
	if (depth == 0)
		take_shot();
	else
		recurse(depth - 1);
	__asm__ volatile("");
}

static void test_recursion(void **state)
{
	recurse(100);
	check_shot(*state);
	assert_true(shot.truth_len > 100);
}

static __attribute__((noinline)) void with_alloca(size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes);

	room[0] = 1;
	take_shot();
	room[bytes - 1] = room[0];
}

static void test_alloca(void **state)
{
	with_alloca((size_t)getpid() % 512 + 512);
	check_shot(*state);
}

static int compare(const void *a, const void *b)
{
	take_shot();
	return *(const int *)a - *(const int *)b;
}

static void test_callback_through_libc(void **state)
{
	int values[2] = { 2, 1 };

	qsort(values, 2, sizeof(values[0]), compare);
	check_shot(*state);
}

static void on_signal(int number)
{
	(void)number;
	take_shot();
}

static void test_signal_frame(void **state)
{
	struct sigaction action = { .sa_handler = on_signal }, old;
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	struct world *world = *state;
	enum pm_unw_stop stop;
	size_t len, exact = 0;

	sigaction(SIGUSR1, &action, &old);
	raise(SIGUSR1);
	sigaction(SIGUSR1, &old, NULL);
	check_shot(world);
	/* Of all frames but the first, just the interrupted one is looked up as it is. */
	len = pm_unwind(world->unwinder, &world->space, &shot.regs, &shot.stack, frames,
			&stop);
	for (size_t i = 1; i < len; i++)
		exact += frames[i].lookup == frames[i].pc;
	assert_int_equal(exact, 1);
}

/* ---- ends ------------------------------------------------------------------------------ */

static void test_truncated(void **state)
{
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	struct world *world = *state;
	enum pm_unw_stop stop;
	size_t full, cut;

	recurse(50);
	full = pm_unwind(world->unwinder, &world->space, &shot.regs, &shot.stack, frames,
			 &stop);
	for (size_t keep = 0; keep < shot.stack.len; keep += 8) {
		struct pm_unw_stack part = shot.stack;

		part.len = keep;
		cut = pm_unwind(world->unwinder, &world->space, &shot.regs, &part, frames,
				&stop);
		assert_true(cut >= 1 && cut <= full);
		if (cut < full)
			assert_int_equal(stop, PM_UNW_STOP_TRUNCATED);
		for (size_t i = 1; i < cut; i++)
			assert_int_equal(frames[i].pc, shot.truth[i]);
	}
}

static void test_outside_of_every_mapping(void **state)
{
	struct pm_unw_regs regs = { .known = 1u << PM_UNW_X86_64_RIP };
	struct pm_unw_stack stack = { 0 };
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	struct world *world = *state;
	enum pm_unw_stop stop;

	regs.value[PM_UNW_X86_64_RIP] = 0x10;
	assert_int_equal(
		pm_unwind(world->unwinder, &world->space, &regs, &stack, frames, &stop),
		1);
	assert_int_equal(stop, PM_UNW_STOP_NO_MODULE);
	assert_null(frames[0].map);
	regs.known = 0;
	assert_int_equal(
		pm_unwind(world->unwinder, &world->space, &regs, &stack, frames, &stop),
		0);
	assert_int_equal(stop, PM_UNW_STOP_NO_REGS);
}

/* As right after a call of address 0 from where take_shot() made one. */
static void call_nothing(struct shot *shot_of)
{
#if defined(__x86_64__)
	shot_of->regs.value[PM_UNW_X86_64_RSP] -= CALL_BYTES;
	shot_of->regs.value[PM_UNW_X86_64_RIP] = 0;
	memcpy(shot_of->copy, &shot.truth[0], sizeof(shot.truth[0]));
#elif defined(__aarch64__)
	shot_of->regs.value[LINK] = shot.truth[0];
	shot_of->regs.value[PROGRAM_COUNTER] = 0;
#endif
}

/* A call through a null pointer: the caller is on top of the stack, or in x30. */
static void test_call_of_nothing(void **state)
{
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	struct world *world = *state;
	struct pm_unw_stack stack;
	enum pm_unw_stop stop;
	struct shot *called;
	size_t len;

	take_shot();
	called = malloc(sizeof(*called));
	assert_non_null(called);
	memcpy(called, &shot, sizeof(*called));
	memcpy(called->copy + CALL_BYTES, shot.copy, sizeof(shot.copy) - CALL_BYTES);
	call_nothing(called);
	stack = (struct pm_unw_stack){ .start = shot.stack.start - CALL_BYTES,
				       .data = called->copy,
				       .len = shot.stack.len };
	len = pm_unwind(world->unwinder, &world->space, &called->regs, &stack, frames,
			&stop);
	free(called);
	assert_int_equal(stop, PM_UNW_STOP_ROOT);
	assert_int_equal(len, shot.truth_len + 1);
	assert_int_equal(frames[1].how, PM_UNW_HOW_LEAF);
	for (size_t i = 1; i < len; i++)
		assert_int_equal(frames[i].pc, shot.truth[i - 1]);
}

/* Frame pointers through memory without a file, as generated code has them. */
static void test_frame_pointers(void **state)
{
	enum {
		CODE = 0x10000,
		STACK = 0x700000,
	};
	struct pm_unw_map map = { .start = CODE, .end = CODE + 0x1000 };
	struct pm_unw_space space = { .maps = &map, .len = 1 };
	uint64_t words[] = {
		7, STACK + 32, CODE + 0x20, 7, STACK + 48, CODE + 0x30, 0, 0
	};
	struct pm_unw_stack stack = { STACK, (const uint8_t *)words, sizeof(words) };
	struct pm_unw_regs regs = { .known = 1u << PM_UNW_X86_64_RIP |
					     1u << PM_UNW_X86_64_RBP |
					     1u << PM_UNW_X86_64_RSP };
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	struct world *world = *state;
	enum pm_unw_stop stop;

	regs.value[PM_UNW_X86_64_RIP] = CODE + 0x10;
	regs.value[PM_UNW_X86_64_RBP] = STACK + 8;
	regs.value[PM_UNW_X86_64_RSP] = STACK;
	assert_int_equal(pm_unwind(world->unwinder, &space, &regs, &stack, frames, &stop),
			 3);
	assert_int_equal(stop, PM_UNW_STOP_ROOT);
	assert_int_equal(frames[1].how, PM_UNW_HOW_FP);
	assert_int_equal(frames[1].lookup, CODE + 0x1f);
	assert_int_equal(frames[2].pc, CODE + 0x30);
	/* A chain that leads back must end. */
	words[4] = STACK + 8;
	assert_int_equal(pm_unwind(world->unwinder, &space, &regs, &stack, frames, &stop),
			 3);
	assert_int_equal(stop, PM_UNW_STOP_NO_CFI);
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < PM_UNW_HOW_COUNT; i++)
		assert_non_null(pm_unw_how_name((enum pm_unw_how)i));
	for (int i = 0; i < PM_UNW_STOP_COUNT; i++)
		assert_non_null(pm_unw_stop_name((enum pm_unw_stop)i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_alloca),
		cmocka_unit_test(test_callback_through_libc),
		cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_outside_of_every_mapping),
		cmocka_unit_test(test_call_of_nothing),
		cmocka_unit_test(test_frame_pointers),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: MIT */
/*
 * jit-leaf [MS [ROUNDS]]: run() calls generated functions that keep a frame pointer. Each
 * of them calls one function that spends all the time: calls_c_leaf() → c_leaf(), and so
 * on. The leaves are frameless. The framed ones keep a frame pointer, and the top of
 * their stack is a word that looks like a return address: one of this program, or one in
 * calls_g_leaf(). None has call frame information; those with `g` in the name are
 * generated. Writes a perf map, which it removes at the end. For x86-64.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
enum {
	FUNCTION_BYTES = 64,
	AFTER_CALL = 16, /* in calls_…: where the callee returns to */
};

typedef void function(uint64_t rounds, uintptr_t decoy);

/* Without .cfi directives. decoy_return follows a call. */
__asm__(".text\n"
	".globl c_leaf, c_framed, decoy_return\n"
	".type c_leaf, @function\n"
	"c_leaf:\n"
	"	mov %rdi, %rax\n"
	"1:	dec %rax\n"
	"	jnz 1b\n"
	"	ret\n"
	"	.size c_leaf, . - c_leaf\n"
	".type c_framed, @function\n"
	"c_framed:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $64, %rsp\n"
	"	mov %rsi, (%rsp)\n"
	"	mov %rdi, %rax\n"
	"1:	dec %rax\n"
	"	jnz 1b\n"
	"	leave\n"
	"	ret\n"
	"	.size c_framed, . - c_framed\n"
	".type decoy, @function\n"
	"decoy:\n"
	"	call c_leaf\n"
	"decoy_return:\n"
	"	ret\n"
	"	.size decoy, . - decoy\n");
extern function c_leaf, c_framed;
extern const char decoy_return[];

/* The same as c_leaf and c_framed. */
static const uint8_t leaf_code[] = {
	0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3
};
static const uint8_t framed_code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x40,
				       0x48, 0x89, 0x34, 0x24, 0x48, 0x89, 0xf8, 0x48,
				       0xff, 0xc8, 0x75, 0xfb, 0xc9, 0xc3 };
/* push %rbp; mov %rsp, %rbp; movabs $callee, %rax; call *%rax; pop %rbp; ret */
static const uint8_t caller_code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8,
				       0,    0,    0,    0,    0,    0,
				       0,    0,    0xff, 0xd0, 0x5d, 0xc3 };

static uint8_t *code;
static size_t functions;
static FILE *map;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static function *make(const uint8_t *bytes, size_t len, const char *name)
{
	uint8_t *at = code + FUNCTION_BYTES * functions++;

	memcpy(at, bytes, len);
	fprintf(map, "%lx %zx %s\n", (unsigned long)(uintptr_t)at, len, name);
	return (function *)(uintptr_t)at;
}

static function *make_caller(function *callee, const char *name)
{
	uint8_t bytes[sizeof(caller_code)];
	uintptr_t address = (uintptr_t)callee;

	memcpy(bytes, caller_code, sizeof(bytes));
	memcpy(bytes + 6, &address, sizeof(address));
	return make(bytes, sizeof(bytes), name);
}

static void __attribute__((noinline))
run(function *const *calls, size_t len, long ms, uint64_t rounds)
{
	clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);
	uintptr_t decoys[] = { (uintptr_t)decoy_return,
			       (uintptr_t)calls[1] + AFTER_CALL };

	do {
		for (size_t i = 0; i < 20 * len; i++)
			calls[i % len](rounds, decoys[i / len % 2]);
	} while (clock() < end);
}

int main(int argc, char **argv)
{
	long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 200;
	long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 20000;
	function *calls[4];
	char path[64];

	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		fail("mmap");
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	map = fopen(path, "we");
	if (!map)
		fail(path);
	calls[0] = make_caller(c_leaf, "calls_c_leaf");
	calls[1] =
		make_caller(make(leaf_code, sizeof(leaf_code), "g_leaf"), "calls_g_leaf");
	calls[2] = make_caller(c_framed, "calls_c_framed");
	calls[3] = make_caller(make(framed_code, sizeof(framed_code), "g_framed"),
			       "calls_g_framed");
	fclose(map);
	run(calls, sizeof(calls) / sizeof(*calls), ms, (uint64_t)rounds);
	/* The recorder reads generated code while the process exists. */
	usleep(400000);
	unlink(path);
	return 0;
}
#else
int main(void)
{
	fprintf(stderr, "jit-leaf: its code is for x86-64\n");
	return 1;
}
#endif

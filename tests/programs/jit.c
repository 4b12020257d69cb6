/* SPDX-License-Identifier: MIT */
/*
 * jit HOW [MS]: generates functions at run time and announces them as HOW says. main()
 * calls the generated `outer`, which calls the generated `inner`, where all the time is
 * spent; neither keeps a frame pointer. For x86-64.
 *
 *   silent    announces nothing
 *   map       a perf map, written before the code runs and removed at the end
 *   late      the same, written only at the end
 *   reuse     `inner` is replaced by `second` half way, in the same place
 *   symlink   the map is a symbolic link to one
 *   foreign   the map belongs to user 65534
 *   old       the map is of last year
 *   dump      a jitdump
 *   cfi       the same, with the functions' .eh_frame
 *   late-cfi  the same, but all of it is written at the end
 *   reuse-dump  reuse with a jitdump that is written at the end
 *   tsc       a jitdump with the processor's timestamps
 *   fork      a map, and the code runs in a child without a map of its own
 *   forks     the same, but in the last of 5000 children, each a child of the one before
 *   garbage   a map with other lines in it
 *   fifo      the map is a FIFO
 *   million   a map that names a million other functions first
 *   both      a jitdump; half way an existing map is written anew
 *   dumps     ten jitdumps, and a map
 *   frames    a jitdump, where `inner` is replaced often, each time with a large .eh_frame
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	INNER_AT = 0,
	OUTER_AT = 64,
	ROUNDS = 20000,
	FORKS = 5000,
	DUMPS = 10,
	FRAMES = 60,
	FRAME_BYTES = 800000,
	OTHERS = 1000000,
};

/* mov %rdi,%rax; 1: dec %rax; jnz 1b; ret */
static const uint8_t inner_code[] = {
	0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3
};
/* sub $0x28,%rsp; call inner; add $0x28,%rsp; ret: the distance is filled in below. */
static uint8_t outer_code[] = { 0x48, 0x83, 0xec, 0x28, 0xe8, 0,    0,
				0,    0,    0x48, 0x83, 0xc4, 0x28, 0xc3 };

static uint8_t *code;
static char path[64];
static FILE *out;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void make_code(void)
{
	int32_t distance = INNER_AT - (OUTER_AT + 9);

	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		fail("mmap");
	memcpy(outer_code + 5, &distance, sizeof(distance));
	memcpy(code + INNER_AT, inner_code, sizeof(inner_code));
	memcpy(code + OUTER_AT, outer_code, sizeof(outer_code));
}

/* Uses @ms of CPU time. */
static void run(long ms)
{
	void (*outer)(uint64_t) = (void (*)(uint64_t))(uintptr_t)(code + OUTER_AT);
	clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);

	while (clock() < end)
		for (int i = 0; i < 50; i++)
			outer(ROUNDS);
}

/* ---- perf map ------------------------------------------------------------------------ */

static void map_line(size_t at, size_t len, const char *name)
{
	fprintf(out, "%lx %zx %s\n", (unsigned long)(uintptr_t)(code + at), len, name);
	fflush(out);
}

static void open_map(const char *how)
{
	char target[96];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	snprintf(target, sizeof(target), "%s.target", path);
	if (strcmp(how, "symlink") == 0 && symlink(target, path) < 0)
		fail(path);
	out = fopen(path, "we");
	if (!out ||
	    (strcmp(how, "foreign") == 0 && fchown(fileno(out), 65534, 65534) < 0))
		fail(path);
}

static void close_map(const char *how)
{
	char target[96];

	fclose(out);
	snprintf(target, sizeof(target), "%s.target", path);
	unlink(target);
	/* A map written at the end has yet to be read. */
	if (strcmp(how, "late") != 0)
		unlink(path);
	else
		printf("%s\n", path);
}

/* Waits for the last one: all of them share the write end of a pipe. */
static void in_last_child(long ms)
{
	int ends[2];
	pid_t child;
	char byte;

	if (pipe(ends) < 0)
		fail("pipe");
	child = fork();
	if (child == 0) {
		for (int i = 0; i < FORKS; i++) {
			child = fork();
			if (child != 0)
				_exit(child < 0);
		}
		run(ms);
		_exit(0);
	}
	close(ends[1]);
	if (child < 0 || read(ends[0], &byte, 1) != 0)
		fail("children");
	wait(NULL);
}

static void with_fifo(long ms)
{
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	if (mkfifo(path, 0600) < 0)
		fail(path);
	run(ms);
	unlink(path);
}

static void with_map(const char *how, long ms)
{
	struct timespec year[2] = { { 0 }, { 0 } };

	open_map(how);
	if (strcmp(how, "late") == 0)
		run(ms);
	if (strcmp(how, "garbage") == 0)
		fprintf(out, "what is this\n\nand\tthat\n");
	/* At other addresses, each with a name of its own. */
	for (unsigned int i = 0; strcmp(how, "million") == 0 && i < OTHERS; i++)
		fprintf(out, "%x 10 name_%u_of_a_function\n", 0x10000 + 16 * i, i);
	map_line(INNER_AT, sizeof(inner_code), "inner");
	map_line(OUTER_AT, sizeof(outer_code), "outer");
	year[0].tv_sec = year[1].tv_sec = time(NULL) - 365 * 86400;
	if (strcmp(how, "old") == 0 && futimens(fileno(out), year) < 0)
		fail(path);
	if (strcmp(how, "reuse") == 0) {
		run(ms / 2);
		/* Longer than the recorder needs to process the samples so far. */
		usleep(1000000);
		map_line(INNER_AT, sizeof(inner_code), "second");
		run(ms / 2);
	} else if (strcmp(how, "fork") == 0) {
		/* The recorder must know that it generates code, and thus that its child
		 * has that code. */
		run(ms / 10);
		usleep(1000000);
		if (fork() == 0) {
			run(ms);
			_exit(0);
		}
		wait(NULL);
	} else if (strcmp(how, "forks") == 0) {
		run(ms / 10);
		usleep(1000000);
		in_last_child(ms);
	} else if (strcmp(how, "late") != 0) {
		run(ms);
	}
	close_map(how);
}

/* ---- jitdump ------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void put(const void *bytes, size_t len)
{
	if (fwrite(bytes, len, 1, out) != 1)
		fail(path);
}

static void put_u32(uint32_t value)
{
	put(&value, sizeof(value));
}

static void put_u64(uint64_t value)
{
	put(&value, sizeof(value));
}

static void put_prefix(uint32_t id, size_t len, uint64_t time)
{
	put_u32(id);
	put_u32((uint32_t)(16 + len));
	put_u64(time);
}

static void open_dump(uint64_t flags)
{
	snprintf(path, sizeof(path), "jit-%d.dump", (int)getpid());
	out = fopen(path, "w+e");
	if (!out)
		fail(path);
	put_u32(0x4a695444);
	put_u32(1);
	put_u32(40);
	put_u32(62); /* EM_X86_64 */
	put_u32(0);
	put_u32((uint32_t)getpid());
	put_u64(now_ns());
	put_u64(flags);
	fflush(out);
	/* This is how profilers find it. */
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(out), 0) ==
	    MAP_FAILED)
		fail(path);
}

/* The map first names one place unrelated to the dump, then another. */
static void run_beside_map(long ms)
{
	FILE *dump = out;
	char name[64];

	fflush(dump);
	memcpy(name, path, sizeof(name));
	open_map("both");
	map_line(2048, 16, "elsewhere");
	run(ms / 2);
	if (ftruncate(fileno(out), 0) < 0)
		fail(path);
	rewind(out);
	map_line(3072, 16, "somewhere");
	run(ms / 2);
	close_map("both");
	memcpy(path, name, sizeof(path));
	out = dump;
}

static void map_dumps(void)
{
	for (int i = 0; i < DUMPS; i++) {
		snprintf(path, sizeof(path), "jit-%d.dump", i);
		out = fopen(path, "w+e");
		if (!out || ftruncate(fileno(out), 4096) < 0 ||
		    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(out),
			 0) == MAP_FAILED)
			fail(path);
		fclose(out);
	}
}

/* A CIE and an FDE, laid out as if they followed the code, and an .eh_frame_hdr. */
static void put_unwinding(size_t len, const uint8_t *rules, size_t rules_len,
			  uint64_t time)
{
	/* version 1, "zR", code 1, data -8, column 16, pcrel sdata4; rsp + 8, rip at -8 */
	static const uint8_t cie[] = { 20,   0,    0,   0, 0,    0,    0,  0,
				       1,    'z',  'R', 0, 1,    0x78, 16, 1,
				       0x1b, 0x0c, 7,   8, 0x90, 1,    0,  0 };
	uint8_t fde[32] = { 28, 0, 0, 0, 28 };
	uint8_t header[20] = { 1, 0x1b, 3, 0x3b };
	size_t size = sizeof(cie) + sizeof(fde) + 4 + sizeof(header);
	size_t padded = (len + 7) & ~(size_t)7;
	int32_t start = -(int32_t)(padded + sizeof(cie) + 8), range = (int32_t)len;

	memcpy(fde + 8, &start, 4);
	memcpy(fde + 12, &range, 4);
	memcpy(fde + 17, rules, rules_len);
	put_prefix(4, 24 + size, time);
	put_u64(size);
	put_u64(sizeof(header));
	put_u64(size);
	put(cie, sizeof(cie));
	put(fde, sizeof(fde));
	put_u32(0);
	put(header, sizeof(header));
}

static void put_lines(size_t at, uint64_t time)
{
	put_prefix(2, 16 + 16 + sizeof("made.up"), time);
	put_u64((uintptr_t)(code + at));
	put_u64(1);
	put_u64((uintptr_t)(code + at));
	put_u32(42);
	put_u32(0);
	put("made.up", sizeof("made.up"));
}

static void put_load(size_t at, size_t len, const char *name, uint64_t time)
{
	put_prefix(0, 40 + strlen(name) + 1 + len, time);
	put_u32((uint32_t)getpid());
	put_u32((uint32_t)getpid());
	put_u64((uintptr_t)(code + at));
	put_u64((uintptr_t)(code + at));
	put_u64(len);
	put_u64(at);
	put(name, strlen(name) + 1);
	put(code + at, len);
}

static void put_functions(const char *how, const char *inner, uint64_t time)
{
	/* advance 4, CFA + 48; advance 9, CFA + 8 */
	static const uint8_t outer_rules[] = { 0x44, 0x0e, 48, 0x49, 0x0e, 8 };

	if (strstr(how, "cfi"))
		put_unwinding(sizeof(inner_code), NULL, 0, time);
	put_lines(INNER_AT, time);
	put_load(INNER_AT, sizeof(inner_code), inner, time);
	if (strstr(how, "cfi"))
		put_unwinding(sizeof(outer_code), outer_rules, sizeof(outer_rules), time);
	put_load(OUTER_AT, sizeof(outer_code), "outer", time);
}

static void replace_often(long ms)
{
	uint8_t *zeros = calloc(1, FRAME_BYTES);

	if (!zeros)
		fail("calloc");
	for (int i = 0; i < FRAMES; i++) {
		char name[16];
		uint64_t time = now_ns();

		put_prefix(4, 24 + FRAME_BYTES, time);
		put_u64(FRAME_BYTES);
		put_u64(20);
		put_u64(FRAME_BYTES);
		/* Each one differs: an empty CIE, and a terminator. */
		zeros[0] = 13;
		zeros[8] = 1;
		zeros[12] = (uint8_t)i;
		put(zeros, FRAME_BYTES);
		snprintf(name, sizeof(name), "inner%d", i);
		put_load(INNER_AT, sizeof(inner_code), name, time);
		fflush(out);
		run(ms / FRAMES);
	}
	free(zeros);
}

static void with_dump(const char *how, long ms)
{
	uint64_t made_ns, second_ns;

	open_dump(strcmp(how, "tsc") == 0);
	made_ns = now_ns();
	if (strcmp(how, "reuse-dump") == 0) {
		run(ms / 2);
		second_ns = now_ns();
		/* The same bytes at the same place are now another function. */
		run(ms / 2);
		put_functions(how, "inner", made_ns);
		put_functions(how, "second", second_ns);
	} else if (strcmp(how, "frames") == 0) {
		replace_often(ms);
	} else if (strcmp(how, "both") == 0) {
		put_functions(how, "inner", made_ns);
		run_beside_map(ms);
	} else if (strcmp(how, "late-cfi") == 0) {
		run(ms);
		put_functions(how, "inner", made_ns);
	} else {
		put_functions(how, "inner", made_ns);
		fflush(out);
		run(ms);
	}
	fclose(out);
}

int main(int argc, char **argv)
{
	static const char *const dumps[] = { "dump", "cfi",  "late-cfi", "reuse-dump",
					     "tsc",  "both", "frames" };
	long ms = argc > 2 ? strtol(argv[2], NULL, 10) : 200;
	const char *how = argc > 1 ? argv[1] : "silent";

#if !defined(__x86_64__)
	fprintf(stderr, "jit: its code is for x86-64\n");
	return 1;
#endif
	make_code();
	for (size_t i = 0; i < sizeof(dumps) / sizeof(*dumps); i++) {
		if (strcmp(how, dumps[i]) == 0) {
			with_dump(how, ms);
			return 0;
		}
	}
	if (strcmp(how, "dumps") == 0)
		map_dumps();
	if (strcmp(how, "silent") == 0)
		run(ms);
	else if (strcmp(how, "fifo") == 0)
		with_fifo(ms);
	else
		with_map(how, ms);
	return 0;
}

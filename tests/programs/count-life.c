/* SPDX-License-Identifier: MIT */
/*
 * count-life MODE [LIBRARY]: functions that are called a known number of times, in
 * processes with all kinds of lives. Prints its findings on stdout;
 * tests/unit/test-count-ptrace.c knows the numbers.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__clang__)
#define KEPT static __attribute__((noinline, used))
#else
#define KEPT static __attribute__((noinline, noclone, used))
#endif

enum {
	THREADS = 4,
	PAGE = 4096,
};

static volatile int sink;
static const char *self;

KEPT int leaf(int x)
{
	/* Prevents the compiler from merging calls. */
	__asm__ volatile("" ::: "memory");
	return x + 1;
}

KEPT int pushes(int x)
{
	int sum = leaf(x);

	sink = sum;
	return sum + leaf(x);
}

KEPT int recurse(int depth)
{
	int below = depth > 0 ? recurse(depth - 1) : 0;

	sink = below;
	return below + 1;
}

/* Its first instruction reads memory. */
KEPT int touch(const volatile int *at)
{
	return *at;
}

/* Its first instruction is a call, or sometimes becomes one, and there are branches of
 * all kinds. */
__asm__(".text\n"
	".globl odd\n"
	".type odd, %function\n"
	"odd:\n"
#if defined(__x86_64__)
	"	call leaf\n"
	"	test $1, %edi\n"
	"	je 1f\n"
	"	add $2, %eax\n"
	"1:	mov %edi, %ecx\n"
	"	jrcxz 2f\n"
	"	add sink(%rip), %eax\n"
	"2:	ret\n"
#else
	"	cbz w0, leaf\n"
	"	stp x30, x0, [sp, -16]!\n"
	"	bl leaf\n"
	"	ldp x30, x1, [sp], 16\n"
	"	tbz w1, 0, 1f\n"
	"	add w0, w0, 2\n"
	"1:	adrp x2, sink\n"
	"	ldr w2, [x2, :lo12:sink]\n"
	"	add w0, w0, w2\n"
	"	ret\n"
#endif
	".size odd, .-odd\n");
int odd(int x);

/* More than fit at the end of a page. */
#define MANY(a, b, c)                              \
	KEPT int many_##a##b##c(int x)             \
	{                                          \
		__asm__ volatile("" ::: "memory"); \
		return x + 1;                      \
	}
#define CALL(a, b, c) sink = many_##a##b##c(sink);
#define BY_8(what, a, b)                                                      \
	what(a, b, 0) what(a, b, 1) what(a, b, 2) what(a, b, 3) what(a, b, 4) \
		what(a, b, 5) what(a, b, 6) what(a, b, 7)
#define BY_64(what, a)   \
	BY_8(what, a, 0) \
	BY_8(what, a, 1) \
	BY_8(what, a, 2) \
	BY_8(what, a, 3) \
	BY_8(what, a, 4) BY_8(what, a, 5) BY_8(what, a, 6) BY_8(what, a, 7)
BY_64(MANY, 0)
BY_64(MANY, 1)

static int run_all(void)
{
	sink = 0;
	BY_64(CALL, 0)
	BY_64(CALL, 1)
	return sink == 128 ? 4 : 99;
}

static void call_leaf(int times)
{
	for (int i = 0; i < times; i++)
		sink = leaf(i);
}

static void *thread(void *unused)
{
	call_leaf(500);
	return unused;
}

static int run_threads(void)
{
	pthread_t threads[THREADS];

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, thread, NULL);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	return 0;
}

static int run_fork(void)
{
	int status;
	pid_t pid;

	call_leaf(100);
	pid = fork();
	if (pid == 0) {
		call_leaf(50);
		_exit(3);
	}
	call_leaf(100);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int run_vfork(void)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0) {
		sink = leaf(1);
		execl(self, self, "plain", NULL);
		_exit(99);
	}
	call_leaf(7);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void *exec_thread(void *unused)
{
	call_leaf(5);
	execl(self, self, "plain", NULL);
	return unused;
}

static int run_exec_thread(void)
{
	pthread_t other;

	call_leaf(5);
	pthread_create(&other, NULL, exec_thread, NULL);
	pthread_join(other, NULL);
	return 99;
}

static int run_dlopen(const char *path)
{
	for (int round = 0; round < 3; round++) {
		void *library = dlopen(path, RTLD_NOW);
		int (*function)(int) = (int (*)(int))(
			intptr_t)(library ? dlsym(library, "from_library") : NULL);

		if (!function)
			return 98;
		for (int i = 0; i < 10 + round; i++)
			sink = function(i);
		dlclose(library);
	}
	return 0;
}

static volatile sig_atomic_t handled;

static void count_signal(int number)
{
	handled++;
	sink = leaf(number);
}

/* The program's own breakpoint. If the stop is at the instruction and not behind it, skip
 * it. */
static void count_trap(int number, siginfo_t *info, void *context)
{
	handled++;
#if defined(__aarch64__)
	if (info->si_code == TRAP_BRKPT)
		((ucontext_t *)context)->uc_mcontext.pc += 4;
#endif
}

/* Runs until so many signals have arrived in the middle. */
static int run_signals(void)
{
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	int turns = 0;

	signal(SIGALRM, count_signal);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (; handled < 50; turns++) {
		sink = pushes(turns);
		sink = odd(turns);
	}
	timer = (struct itimerval){ 0 };
	setitimer(ITIMER_REAL, &timer, NULL);
	printf("%d %d\n", turns, (int)handled);
	return 0;
}

static int run_trap(void)
{
	struct sigaction action = { .sa_sigaction = count_trap, .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &action, NULL);
	for (int i = 0; i < 20; i++) {
		sink = pushes(i);
		raise(SIGTRAP);
#if defined(__x86_64__)
		__asm__ volatile("int3");
#else
		__asm__ volatile("brk 1");
#endif
	}
	printf("%d\n", (int)handled);
	return 0;
}

/* Blocks all signals, as threads do that leave them to another thread; they stay
 * blocked. */
static int run_blocks(void)
{
	sigset_t all, now;
	int blocked = 0;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (int i = 0; i < 20; i++) {
		sink = pushes(i);
		sigprocmask(SIG_BLOCK, NULL, &now);
		blocked += sigismember(&now, SIGTRAP);
	}
	printf("%d\n", blocked);
	return 0;
}

static void *page;
static sigjmp_buf jump;

static void allow(int number, siginfo_t *info, void *context)
{
#if defined(__x86_64__)
	uintptr_t ip = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#else
	uintptr_t ip = ((ucontext_t *)context)->uc_mcontext.pc;
#endif

	handled++;
	/* The ip must be the same as without an observer. */
	if (ip != (uintptr_t)touch || info->si_addr != page)
		_exit(97);
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static void leave(int number)
{
	handled++;
	siglongjmp(jump, 1);
}

static int run_fault(void)
{
	struct sigaction action = { .sa_sigaction = allow, .sa_flags = SA_SIGINFO };

	page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 10; i++) {
		mprotect(page, PAGE, PROT_NONE);
		sink = touch(page);
	}
	signal(SIGSEGV, leave);
	mprotect(page, PAGE, PROT_NONE);
	for (volatile int i = 0; i < 10; i++)
		if (sigsetjmp(jump, 1) == 0)
			sink = touch((const int *)page + i);
	printf("%d\n", (int)handled);
	return 0;
}

static int run_odd(void)
{
	int sum = 0;

	sink = 3;
	for (int i = 0; i < 10; i++)
		sum += odd(i);
	printf("%d\n", sum);
	return 0;
}

/* To be attached to: one turn each millisecond, for a while. */
static int run_long(void)
{
	printf("%d\n", (int)getpid());
	fflush(stdout);
	for (int i = 0; i < 100000; i++) {
		sink = pushes(i);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return 9;
}

/* To be attached to while it waits. */
static int run_sleeps(void)
{
	printf("%d\n", (int)getpid());
	fflush(stdout);
	nanosleep(&(struct timespec){ .tv_sec = 60 }, NULL);
	return 5;
}

static char state_of(pid_t pid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (file)
		fclose(file);
	return state;
}

/* Stops; its child sees that, and continues it. A traced process is also stopped briefly
 * for other reasons, so the child repeats the signal until the process continues. */
static int run_stops(void)
{
	enum {
		RUNS,
		STOPS,
		GOES_ON
	};
	volatile int *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t self_pid = getpid();

	call_leaf(5);
	if (fork() == 0) {
		for (int still = 0; *at != GOES_ON && getppid() == self_pid;) {
			char state = state_of(self_pid);

			still = *at == STOPS && (state == 'T' || state == 't') ? still + 1
									       : 0;
			if (still > 0 && still % 10 == 0)
				kill(self_pid, SIGCONT);
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		}
		_exit(0);
	}
	*at = STOPS;
	raise(SIGSTOP);
	*at = GOES_ON;
	call_leaf(10);
	return 6;
}

/* Makes its parent believe that it was asked to end. */
static int run_asks(void)
{
	for (int i = 0; i < 10; i++)
		sink = pushes(i);
	kill(getppid(), SIGINT);
	for (int i = 0; i < 1000; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	return 98;
}

static int run_crash(void)
{
	call_leaf(3);
	return touch(NULL);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "plain";
	static const struct {
		const char *name;
		int (*run)(void);
	} modes[] = {
		{ "threads", run_threads }, { "fork", run_fork },
		{ "vfork", run_vfork },     { "exec-thread", run_exec_thread },
		{ "signals", run_signals }, { "trap", run_trap },
		{ "fault", run_fault },     { "odd", run_odd },
		{ "crash", run_crash },     { "all", run_all },
		{ "stops", run_stops },     { "asks", run_asks },
		{ "long", run_long },       { "blocks", run_blocks },
		{ "sleeps", run_sleeps },
	};

	self = argv[0];
	if (strcmp(mode, "plain") == 0) {
		call_leaf(20);
		return 7;
	}
	if (strcmp(mode, "many") == 0)
		for (int i = 0; i < 100000; i++)
			sink = pushes(i);
	if (strcmp(mode, "recursion") == 0)
		return recurse(100) - 100;
	if (strcmp(mode, "exec") == 0) {
		call_leaf(10);
		execl(self, self, "plain", NULL);
		return 99;
	}
	if (strcmp(mode, "dlopen") == 0)
		return argc > 2 ? run_dlopen(argv[2]) : 99;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(mode, modes[i].name) == 0)
			return modes[i].run();
	return 0;
}

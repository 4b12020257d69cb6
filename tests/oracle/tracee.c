/* SPDX-License-Identifier: MIT */
#include "tests/oracle/tracee.h"
#include "tests/oracle/live.h"

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

enum {
	BREAK_OPCODE = 0xcc,
	/* Red zone, return address, and the part of ucontext_t before the registers. */
	SIGFRAME_BYTES_MIN = 128 + 8 + 40,
	/* How long to wait for one system call before others may continue. */
	WAIT_TICKS = 3,
	TICK_US = 10000,
	OPTIONS = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
		  PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC,
};

struct tracee *tracer_tracee(const struct tracer *tracer)
{
	return tracer->tracees[tracer->current];
}

bool tracer_peek(const struct tracer *tracer, uint64_t address, uint64_t *ret)
{
	errno = 0;
	*ret = (uint64_t)ptrace(PTRACE_PEEKDATA, tracer_tracee(tracer)->tid, address,
				NULL);
	return errno == 0;
}

static bool poke(pid_t tid, uint64_t address, uint64_t value)
{
	return ptrace(PTRACE_POKEDATA, tid, address, value) == 0;
}

static bool read_regs(struct tracee *tracee)
{
	return live_regs(tracee->tid, &tracee->regs);
}

static struct shadow_regs shadow_regs(const struct tracee *tracee)
{
	return (struct shadow_regs){
		.pc = tracee->regs.value[PM_UNW_X86_64_RIP],
		.sp = tracee->regs.value[PM_UNW_X86_64_RSP],
		.rax = tracee->regs.value[0],
	};
}

/* ---- mappings --------------------------------------------------------------------------- */

static void read_ranges(struct tracer *tracer)
{
	char path[64];
	char line[4400];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)tracer_tracee(tracer)->pid);
	file = fopen(path, "re");
	pm_vec_clear(&tracer->ranges);
	tracer->range = 0;
	while (file && fgets(line, sizeof(line), file)) {
		uint64_t start, end;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2)
			continue;
		if (pm_vec_reserve(&tracer->ranges, tracer->ranges.len + 1) < 0)
			abort();
		tracer->ranges.data[tracer->ranges.len].start = start;
		tracer->ranges.data[tracer->ranges.len].end = end;
		tracer->ranges.data[tracer->ranges.len++].main =
			strstr(line, "[stack]") != NULL;
	}
	if (file)
		fclose(file);
}

void tracer_refresh(struct tracer *tracer)
{
	pid_t pid = tracer_tracee(tracer)->pid;

	if (!tracer->maps_stale)
		return;
	tracer->maps_stale = false;
	tracer->maps_epoch++;
	memset(tracer->ops, 0, sizeof(tracer->ops));
	read_ranges(tracer);
	if (pm_procs_read(tracer->procs, pid, NULL) != 0) {
		tracer->failed = true;
		return;
	}
	spaces_fill(&tracer->maps, &tracer->modules, tracer->procs,
		    &pm_procs_get(tracer->procs, pid)->space);
}

static uint64_t stack_of(void *arg, uint64_t sp)
{
	struct tracer *tracer = arg;

	if (tracer->maps_stale)
		tracer_refresh(tracer);
	for (size_t i = 0; i < tracer->ranges.len; i++) {
		size_t at = (tracer->range + i) % tracer->ranges.len;

		if (sp < tracer->ranges.data[at].start ||
		    sp >= tracer->ranges.data[at].end)
			continue;
		tracer->range = at;
		return tracer->ranges.data[at].main ? tracer->ranges.data[at].end
						    : tracer->ranges.data[at].start;
	}
	return 0;
}

static bool read_word(void *arg, uint64_t address, uint64_t *ret)
{
	return tracer_peek(arg, address, ret);
}

size_t tracer_stack(struct tracer *tracer, size_t below, uint8_t *ret, size_t len)
{
	const struct tracee *tracee = tracer_tracee(tracer);
	uint64_t sp = tracee->regs.value[PM_UNW_X86_64_RSP] - below;
	struct iovec local = { ret, len };
	struct iovec remote = { (void *)sp, len };
	ssize_t got;

	if (stack_of(tracer, sp) == 0)
		return 0;
	if (len > tracer->ranges.data[tracer->range].end - sp)
		remote.iov_len = tracer->ranges.data[tracer->range].end - sp;
	got = process_vm_readv(tracee->pid, &local, 1, &remote, 1, 0);
	return got > 0 ? (size_t)got : 0;
}

/* ---- waiting ---------------------------------------------------------------------------- */

static bool wait_long(pid_t tid, int *status)
{
	pid_t rc;

	do
		rc = waitpid(tid, status, __WALL);
	while (rc < 0 && errno == EINTR);
	return rc == tid;
}

static bool resume(struct tracer *tracer, int request, int signo, int *status)
{
	pid_t tid = tracer_tracee(tracer)->tid;

	return ptrace(request, tid, NULL, signo) == 0 && wait_long(tid, status);
}

/* ---- threads and children --------------------------------------------------------------- */

static void make_current(struct tracer *tracer, size_t index)
{
	tracer->current = index;
	tracer->maps_stale = true;
	tracer->signals_epoch++;
}

static struct tracee *add(struct tracer *tracer, pid_t pid, pid_t tid)
{
	struct tracee *tracee = calloc(1, sizeof(*tracee));

	if (!tracee || tracer->tracees_len == TRACEES_MAX)
		abort();
	tracee->pid = pid;
	tracee->tid = tid;
	tracee->shadow.stack_of = stack_of;
	tracee->shadow.read = read_word;
	tracee->shadow.arg = tracer;
	tracer->tracees[tracer->tracees_len] = tracee;
	make_current(tracer, tracer->tracees_len++);
	return tracee;
}

/* The current tracee has ended. */
static enum tracer_result drop(struct tracer *tracer)
{
	struct tracee *tracee = tracer_tracee(tracer);

	shadow_release(&tracee->shadow);
	free(tracee);
	tracer->tracees_len--;
	memmove(&tracer->tracees[tracer->current], &tracer->tracees[tracer->current + 1],
		(tracer->tracees_len - tracer->current) * sizeof(tracer->tracees[0]));
	if (tracer->tracees_len == 0)
		return TRACER_ENDED;
	make_current(tracer, tracer->tracees_len - 1);
	return TRACER_SWITCHED;
}

static enum tracer_result on_new(struct tracer *tracer)
{
	struct tracee *parent = tracer_tracee(tracer);
	struct tracee *child;
	unsigned long tid;
	char path[64];
	int status;

	if (ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &tid) != 0)
		return drop(tracer);
	if (!wait_long((pid_t)tid, &status) || !WIFSTOPPED(status))
		return drop(tracer);
	snprintf(path, sizeof(path), "/proc/%d/task/%lu", (int)parent->pid, tid);
	child = add(tracer, access(path, F_OK) == 0 ? parent->pid : (pid_t)tid,
		    (pid_t)tid);
	if (!read_regs(child))
		return drop(tracer);
	/* A thread starts on its own empty stack. The same holds for the child of musl's
	 * posix_spawn(), whose stack is an array in a frame of its parent. */
	if (child->regs.value[PM_UNW_X86_64_RSP] == parent->regs.value[PM_UNW_X86_64_RSP])
		shadow_copy(&child->shadow, &parent->shadow);
	return TRACER_SWITCHED;
}

/* ---- stepping --------------------------------------------------------------------------- */

static enum shadow_op op_at(struct tracer *tracer, uint64_t pc)
{
	size_t at = (size_t)(pm_hash_mix(pc, 0) % OPS_SLOTS);
	uint8_t code[CODE_BYTES] = { 0 };

	if (tracer->ops[at].pc != pc) {
		live_code(tracer_tracee(tracer)->pid, pc, code, sizeof(code));
		tracer->ops[at].pc = pc;
		tracer->ops[at].op = shadow_op_of(code);
	}
	return tracer->ops[at].op;
}

/* Releases a new thread or child that starts while nothing is stepped. */
static void let_go(const struct tracee *parent)
{
	unsigned long tid;
	int status;

	if (ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &tid) == 0 &&
	    wait_long((pid_t)tid, &status))
		ptrace(PTRACE_DETACH, (pid_t)tid, NULL, NULL);
}

/* Runs from one int3 to the next at full speed, for work that need not be stepped. */
static enum tracer_result skip(struct tracer *tracer)
{
	struct tracee *tracee = tracer_tracee(tracer);
	uint64_t sp = tracee->regs.value[PM_UNW_X86_64_RSP];
	int signo = 0;
	int status;

	/* The present int3 still has to be executed, and then the next one. */
	for (int left = 2; left > 0; left -= signo == 0 && status >> 16 == 0) {
		if (!resume(tracer, PTRACE_CONT, signo, &status) || !WIFSTOPPED(status))
			return drop(tracer);
		signo = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (status >> 16)
			let_go(tracee);
	}
	tracer->maps_stale = true;
	tracer->signals_epoch++;
	/* It must be the same frame, or everything known is invalid. */
	if (!read_regs(tracee) || tracee->regs.value[PM_UNW_X86_64_RSP] != sp) {
		tracer->failed = true;
		return drop(tracer);
	}
	return TRACER_STEPPED;
}

static bool changes_maps(uint64_t number)
{
	return number == SYS_mmap || number == SYS_munmap || number == SYS_mremap ||
	       number == SYS_brk || number == SYS_mprotect || number == SYS_execve;
}

static void on_syscall(struct tracer *tracer, uint64_t number)
{
	if (changes_maps(number))
		tracer->maps_stale = true;
	if (number == SYS_rt_sigaction || number == SYS_rt_sigprocmask)
		tracer->signals_epoch++;
}

/*
 * A signal without a handler has no effect. A handler has its signal as the argument, and
 * a return address below an aligned frame (psABI §3.2.2), on any stack.
 */
static bool is_handler(const struct tracee *tracee, const struct shadow_regs *after)
{
	enum {
		RDI = 5
	};
	uint64_t distance = after->sp - tracee->before.sp;

	return tracee->regs.value[RDI] == (uint64_t)tracee->deliver &&
	       after->sp % 16 == 8 &&
	       distance + SIGFRAME_BYTES_MIN > 2 * SIGFRAME_BYTES_MIN;
}

/* The step is done: the registers are those after it. */
static enum tracer_result follow(struct tracer *tracer)
{
	struct tracee *tracee = tracer_tracee(tracer);
	const struct shadow_regs *before = &tracee->before;
	struct shadow_regs after;

	if (!read_regs(tracee))
		return drop(tracer);
	after = shadow_regs(tracee);
	if (tracee->deliver && is_handler(tracee, &after)) {
		shadow_signal(&tracee->shadow, before, &after);
		return TRACER_STEPPED;
	}
	if (tracee->op == SHADOW_OP_SYSCALL)
		on_syscall(tracer, before->rax);
	if (shadow_follow(&tracee->shadow, tracee->op, before, &after) == SHADOW_ARRIVED)
		return TRACER_ARRIVED;
	return TRACER_STEPPED;
}

/* The current tracee stopped with an event instead of one more instruction. */
static enum tracer_result on_event(struct tracer *tracer, int event)
{
	struct tracee *tracee = tracer_tracee(tracer);

	if (event == PTRACE_EVENT_EXEC) {
		ptrace(PTRACE_DETACH, tracee->tid, NULL, NULL);
		return drop(tracer);
	}
	return on_new(tracer);
}

/* The registers are those before the step. */
static bool begin(struct tracer *tracer, int deliver)
{
	struct tracee *tracee = tracer_tracee(tracer);

	tracee->before = shadow_regs(tracee);
	tracee->op = op_at(tracer, tracee->before.pc);
	tracee->deliver = deliver;
	tracee->stepping = ptrace(PTRACE_SINGLESTEP, tracee->tid, NULL, deliver) == 0;
	return tracee->stepping;
}

/* The tracee stopped for a signal, which is delivered with the next step. */
static bool on_signal(struct tracer *tracer, int signo)
{
	struct tracee *tracee = tracer_tracee(tracer);

	/* A fault stops before its instruction, but a system call is complete. */
	if (tracee->op == SHADOW_OP_SYSCALL)
		on_syscall(tracer, tracee->before.rax);
	return read_regs(tracee) && begin(tracer, signo == SIGSTOP ? 0 : signo);
}

/* Whether the current tracee has stopped or ended. False: it waits for others. */
static bool wait_for(struct tracer *tracer, int *status)
{
	pid_t tid = tracer_tracee(tracer)->tid;

	for (int ticks = 0; ticks < WAIT_TICKS; ticks++)
		if (waitpid(tid, status, __WALL) == tid)
			return true;
	return false;
}

/* Leaves the current tracee in its system call. */
static void go_to_another(struct tracer *tracer)
{
	for (size_t i = 1; i < tracer->tracees_len; i++) {
		size_t at =
			(tracer->current + tracer->tracees_len - i) % tracer->tracees_len;

		make_current(tracer, at);
		if (!tracer->tracees[at]->stepping)
			return;
	}
}

enum tracer_result tracer_step(struct tracer *tracer, int signo)
{
	struct tracee *tracee = tracer_tracee(tracer);
	int status;

	if (!tracee->stepping) {
		if (op_at(tracer, tracee->regs.value[PM_UNW_X86_64_RIP]) ==
		    SHADOW_OP_BREAK)
			return skip(tracer);
		if (signo)
			syscall(SYS_tgkill, tracee->pid, tracee->tid, signo);
		tracer->steps++;
		if (!begin(tracer, 0))
			return drop(tracer);
	}
	for (;;) {
		if (!wait_for(tracer, &status)) {
			go_to_another(tracer);
			return TRACER_SWITCHED;
		}
		tracee->stepping = false;
		if (WIFEXITED(status) && tracer->tracees_len == 1)
			tracer->exit_status = WEXITSTATUS(status);
		if (!WIFSTOPPED(status))
			return drop(tracer);
		if (status >> 16)
			return on_event(tracer, status >> 16);
		if (WSTOPSIG(status) == SIGTRAP)
			return follow(tracer);
		if (!on_signal(tracer, WSTOPSIG(status)))
			return drop(tracer);
	}
}

bool tracer_catches(const struct tracer *tracer, int signo)
{
	const struct tracee *tracee = tracer_tracee(tracer);
	uint64_t caught = 0, blocked = 0;
	char path[64];
	char line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)tracee->pid,
		 (int)tracee->tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "SigCgt: %" SCNx64, &caught);
		sscanf(line, "SigBlk: %" SCNx64, &blocked);
	}
	if (file)
		fclose(file);
	return (caught & ~blocked) >> (signo - 1) & 1;
}

/* ---- the start -------------------------------------------------------------------------- */

static uint64_t entry_point(pid_t pid)
{
	char path[64];
	ElfW(auxv_t) aux;
	uint64_t entry = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	file = fopen(path, "re");
	while (file && fread(&aux, sizeof(aux), 1, file) == 1)
		if (aux.a_type == AT_ENTRY)
			entry = aux.a_un.a_val;
	if (file)
		fclose(file);
	return entry;
}

static bool run_to(struct tracer *tracer, uint64_t entry)
{
	struct tracee *tracee = tracer_tracee(tracer);
	struct user_regs_struct user;
	struct iovec iov = { &user, sizeof(user) };
	uint64_t code;
	int status;

	if (!tracer_peek(tracer, entry, &code) ||
	    !poke(tracee->tid, entry, (code & ~(uint64_t)0xff) | BREAK_OPCODE) ||
	    !resume(tracer, PTRACE_CONT, 0, &status) || !WIFSTOPPED(status) ||
	    WSTOPSIG(status) != SIGTRAP || !poke(tracee->tid, entry, code) ||
	    ptrace(PTRACE_GETREGSET, tracee->tid, NT_PRSTATUS, &iov) != 0)
		return false;
	user.rip = entry;
	return ptrace(PTRACE_SETREGSET, tracee->tid, NT_PRSTATUS, &iov) == 0;
}

static void exec_child(char *const argv[], char *env)
{
	char *environment[] = { env, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	personality(ADDR_NO_RANDOMIZE);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
		execve(argv[0], argv, environment);
	_exit(127);
}

static void on_tick(int signo)
{
}

/* Makes waitpid(2) return from time to time. */
static void start_ticks(void)
{
	struct sigaction action = { .sa_handler = on_tick };
	struct itimerval every = { { 0, TICK_US }, { 0, TICK_US } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

int tracer_start(struct tracer *tracer, char *const argv[], char *env, bool from_loader)
{
	struct tracee *tracee;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		exec_child(argv, env);
	if (pid < 0)
		return -errno;
	tracer->procs = pm_procs_new(NULL);
	if (!tracer->procs)
		abort();
	tracer->exit_status = -1;
	tracee = add(tracer, pid, pid);
	if (!wait_long(pid, &status) || !WIFSTOPPED(status)) {
		drop(tracer);
		return -ENOENT;
	}
	start_ticks();
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL, OPTIONS) != 0 ||
	    (!from_loader && !run_to(tracer, entry_point(pid))) || !read_regs(tracee))
		return -EIO;
	tracer->maps_stale = true;
	return 0;
}

void tracer_release(struct tracer *tracer)
{
	int status;

	while (tracer->tracees_len > 0) {
		pid_t tid = tracer_tracee(tracer)->tid;

		kill(tid, SIGKILL);
		wait_long(tid, &status);
		drop(tracer);
	}
	spaces_modules_release(&tracer->modules);
	pm_vec_release(&tracer->maps.maps);
	pm_vec_release(&tracer->ranges);
	pm_procs_free(tracer->procs);
}

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

enum {
	BREAK_OPCODE = 0xcc,
	OPTIONS = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
		  PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC,
};

struct tracee *tracer_tracee(const struct tracer *tracer)
{
	return tracer->tracees[tracer->tracees_len - 1];
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

size_t tracer_stack(struct tracer *tracer, uint8_t *ret, size_t len)
{
	const struct tracee *tracee = tracer_tracee(tracer);
	uint64_t sp = tracee->regs.value[PM_UNW_X86_64_RSP];
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

/* ---- threads and children --------------------------------------------------------------- */

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
	tracer->tracees[tracer->tracees_len++] = tracee;
	tracer->maps_stale = true;
	return tracee;
}

static enum tracer_result drop(struct tracer *tracer)
{
	struct tracee *tracee = tracer->tracees[--tracer->tracees_len];

	shadow_release(&tracee->shadow);
	free(tracee);
	tracer->maps_stale = true;
	return tracer->tracees_len > 0 ? TRACER_SWITCHED : TRACER_ENDED;
}

static enum tracer_result on_new(struct tracer *tracer)
{
	struct tracee *parent = tracer_tracee(tracer);
	struct tracee *child;
	unsigned long tid;
	char path[64];
	uint64_t stack;
	int status;

	if (ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &tid) != 0 ||
	    waitpid((pid_t)tid, &status, __WALL) != (pid_t)tid || !WIFSTOPPED(status))
		return drop(tracer);
	stack = stack_of(tracer, parent->regs.value[PM_UNW_X86_64_RSP]);
	snprintf(path, sizeof(path), "/proc/%d/task/%lu", (int)parent->pid, tid);
	child = add(tracer, access(path, F_OK) == 0 ? parent->pid : (pid_t)tid,
		    (pid_t)tid);
	if (!read_regs(child))
		return drop(tracer);
	/* A thread begins a stack of its own, where there is nothing yet. */
	if (stack_of(tracer, child->regs.value[PM_UNW_X86_64_RSP]) == stack)
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

static bool resume(struct tracer *tracer, int request, int signo, int *status)
{
	pid_t tid = tracer_tracee(tracer)->tid;

	return ptrace(request, tid, NULL, signo) == 0 &&
	       waitpid(tid, status, __WALL) == tid;
}

/* From an int3 to the next one at full speed, for work that is not worth each step. */
static enum tracer_result skip(struct tracer *tracer)
{
	struct tracee *tracee = tracer_tracee(tracer);
	uint64_t sp = tracee->regs.value[PM_UNW_X86_64_RSP];
	int signo = 0;
	int status;

	do {
		if (!resume(tracer, PTRACE_CONT, signo, &status) || !WIFSTOPPED(status))
			return drop(tracer);
		signo = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	} while (signo || status >> 16);
	tracer->maps_stale = true;
	/* The same frame, or all that is known is void. */
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

static enum tracer_result follow(struct tracer *tracer, enum shadow_op op,
				 const struct shadow_regs *before, bool signaled)
{
	struct tracee *tracee = tracer_tracee(tracer);
	struct shadow_regs after;

	if (!read_regs(tracee))
		return drop(tracer);
	after = shadow_regs(tracee);
	if (op == SHADOW_OP_SYSCALL && !signaled && changes_maps(before->rax))
		tracer->maps_stale = true;
	/* An ignored signal changes nothing. */
	if (signaled && after.sp < before->sp - 256 - 8 - 40) {
		shadow_signal(&tracee->shadow, before, &after);
		return TRACER_STEPPED;
	}
	if (shadow_follow(&tracee->shadow, op, before, &after) == SHADOW_ARRIVED)
		return TRACER_ARRIVED;
	return TRACER_STEPPED;
}

/* What the newest has come to instead of one more instruction. */
static enum tracer_result on_event(struct tracer *tracer, int event)
{
	struct tracee *tracee = tracer_tracee(tracer);

	if (event == PTRACE_EVENT_EXEC) {
		ptrace(PTRACE_DETACH, tracee->tid, NULL, NULL);
		return drop(tracer);
	}
	return on_new(tracer);
}

enum tracer_result tracer_step(struct tracer *tracer, int signo)
{
	struct tracee *tracee = tracer_tracee(tracer);
	struct shadow_regs before = shadow_regs(tracee);
	enum shadow_op op = op_at(tracer, before.pc);
	int deliver = 0;
	int status;

	if (op == SHADOW_OP_BREAK)
		return skip(tracer);
	if (signo)
		syscall(SYS_tgkill, tracee->pid, tracee->tid, signo);
	tracer->steps++;
	for (;;) {
		if (!resume(tracer, PTRACE_SINGLESTEP, deliver, &status) ||
		    !WIFSTOPPED(status))
			return drop(tracer);
		if (status >> 16)
			return on_event(tracer, status >> 16);
		if (WSTOPSIG(status) == SIGTRAP)
			return follow(tracer, op, &before, deliver != 0);
		deliver = WSTOPSIG(status);
		/* The start of a child; and a fault's registers are those before it, but a
		 * system call's are those after. */
		if (deliver == SIGSTOP)
			deliver = 0;
		if (op == SHADOW_OP_SYSCALL && changes_maps(before.rax))
			tracer->maps_stale = true;
		if (!read_regs(tracee))
			return drop(tracer);
		before = shadow_regs(tracee);
		op = op_at(tracer, before.pc);
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

static void exec_child(char *const argv[])
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	personality(ADDR_NO_RANDOMIZE);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
		execv(argv[0], argv);
	_exit(127);
}

int tracer_start(struct tracer *tracer, char *const argv[], bool from_loader)
{
	struct tracee *tracee;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		exec_child(argv);
	if (pid < 0)
		return -errno;
	tracer->procs = pm_procs_new(NULL);
	if (!tracer->procs)
		abort();
	tracee = add(tracer, pid, pid);
	if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status)) {
		drop(tracer);
		return -ENOENT;
	}
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL, OPTIONS) != 0 ||
	    (!from_loader && !run_to(tracer, entry_point(pid))) || !read_regs(tracee))
		return -EIO;
	tracer->maps_stale = true;
	return 0;
}

void tracer_release(struct tracer *tracer)
{
	while (tracer->tracees_len > 0) {
		kill(tracer_tracee(tracer)->tid, SIGKILL);
		waitpid(tracer_tracee(tracer)->tid, NULL, __WALL);
		drop(tracer);
	}
	spaces_modules_release(&tracer->modules);
	pm_vec_release(&tracer->maps.maps);
	pm_vec_release(&tracer->ranges);
	pm_procs_free(tracer->procs);
}

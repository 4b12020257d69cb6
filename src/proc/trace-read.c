/* SPDX-License-Identifier: MIT */
/*
 * Reads the state of a traced thread: its files in /proc, its registers, its memory.
 * Sources: proc(5), do_task_stat() and proc_pid_schedstat() in the kernel's fs/proc.
 */
#include "trace-internal.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>

enum {
	/* Fields of /proc/PID/stat after the name, counted from the state as 0. */
	FIELD_UTIME = 11,
	FIELD_STIME = 12,
	FIELD_VSIZE = 20,
	FIELD_CPU = 36,
	FIELDS = 37,
};

/* ---- text ---------------------------------------------------------------------------- */

/* Reads the next number of the line. Negative numbers, which are not used here, become
 * 0. */
static bool take_field(const char **at, const char *end, uint64_t *out)
{
	bool negative;
	const char *first;

	while (*at < end && **at == ' ')
		(*at)++;
	negative = *at < end && **at == '-';
	*at += negative;
	first = *at;
	*out = 0;
	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++)
		if (__builtin_mul_overflow(*out, (uint64_t)10, out) ||
		    __builtin_add_overflow(*out, (uint64_t)(**at - '0'), out))
			return false;
	if (negative)
		*out = 0;
	return *at > first && (*at == end || **at == ' ' || **at == '\n');
}

int pm_stat_line_parse(const char *text, size_t len, struct pm_stat_line *out)
{
	const char *end = text + len;
	const char *open = memchr(text, '(', len), *at = memrchr(text, ')', len);
	struct pm_stat_line line = { 0 };
	uint64_t field[FIELDS] = { 0 };
	size_t comm_len;

	/* A name may contain anything, including parentheses; only numbers follow it. */
	if (!open || !at || at < open || end - at < 3 || at[1] != ' ')
		return -EBADMSG;
	comm_len = (size_t)(at - open - 1);
	if (comm_len >= sizeof(line.comm))
		comm_len = sizeof(line.comm) - 1; /* names of kernel threads are longer */
	memcpy(line.comm, open + 1, comm_len);
	line.state = at[2];
	at += 3;
	for (size_t i = 1; i < FIELDS; i++)
		if (!take_field(&at, end, &field[i]))
			return -EBADMSG;
	if (field[FIELD_CPU] > UINT32_MAX ||
	    __builtin_add_overflow(field[FIELD_UTIME], field[FIELD_STIME], &line.ticks))
		return -EBADMSG;
	line.virtual_bytes = field[FIELD_VSIZE];
	line.cpu = (uint32_t)field[FIELD_CPU];
	*out = line;
	return 0;
}

/* ---- /proc --------------------------------------------------------------------------- */

static ssize_t read_once(int fd, char *out, size_t size)
{
	ssize_t len;

	do
		len = pread(fd, out, size, 0);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	return len;
}

/* Reads a file of the thread through *@fd, which is opened if necessary, and kept open
 * unless there are too many. /proc/TID/… cannot be used, because it shows sums for the
 * whole process. */
static ssize_t read_thread_file(struct pm_trace *trace,
				const struct pm_trace_thread *thread, int *fd,
				const char *name, char *out, size_t size)
{
	PM_AUTO_CLOSE int opened = -1;
	char path[64];

	if (*fd >= 0)
		return read_once(*fd, out, size);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s",
		 (int)trace->processes.data[thread->process].pid, (int)thread->tid, name);
	opened = open(path, O_RDONLY | O_CLOEXEC);
	if (opened < 0)
		return -errno;
	if (trace->fds < trace->fds_max) {
		*fd = pm_take_fd(&opened);
		trace->fds++;
		return read_once(*fd, out, size);
	}
	return read_once(opened, out, size);
}

void pm_trace_close(struct pm_trace *trace, struct pm_trace_thread *thread)
{
	trace->fds -= (thread->schedstat_fd >= 0) + (thread->stat_fd >= 0);
	pm_cleanup_close(&thread->schedstat_fd);
	pm_cleanup_close(&thread->stat_fd);
	thread->schedstat_fd = thread->stat_fd = -1;
}

int pm_trace_read_stat(struct pm_trace *trace, struct pm_trace_thread *thread)
{
	char text[PM_STAT_BYTES];
	ssize_t len = read_thread_file(trace, thread, &thread->stat_fd, "stat", text,
				       sizeof(text));

	if (len < 0)
		return (int)len;
	return pm_stat_line_parse(text, (size_t)len, &thread->seen);
}

static bool parse_schedstat(const char *text, ssize_t len, struct pm_schedstat *out)
{
	const char *at = text, *end = text + len;

	return len > 0 && take_field(&at, end, &out->ran_ns) &&
	       take_field(&at, end, &out->waited_ns) && take_field(&at, end, &out->turns);
}

bool pm_trace_read_schedstat(struct pm_trace *trace, struct pm_trace_thread *thread,
			     struct pm_schedstat *out)
{
	char text[PM_SCHEDSTAT_MAX];

	return trace->schedstat &&
	       parse_schedstat(text,
			       read_thread_file(trace, thread, &thread->schedstat_fd,
						"schedstat", text, sizeof(text)),
			       out);
}

bool pm_trace_was_scheduled(struct pm_trace *trace, struct pm_trace_thread *thread)
{
	struct pm_schedstat now;
	bool same;

	if (!pm_trace_read_schedstat(trace, thread, &now))
		return true;
	same = now.ran_ns == thread->at_tick.ran_ns && now.turns == thread->at_tick.turns;
	thread->at_tick = now;
	return !same;
}

bool pm_trace_has_schedstat(void)
{
	PM_AUTO_CLOSE int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	char text[PM_SCHEDSTAT_MAX];
	struct pm_schedstat own;

	/* The file is "0 0 0" if the kernel does not keep the values. A process that has
	 * just started may have no time yet, but it has been on a CPU:
	 * proc_pid_schedstat() in fs/proc/base.c. */
	return fd >= 0 &&
	       parse_schedstat(text, read_once(fd, text, sizeof(text)), &own) &&
	       own.turns > 0;
}

int pm_trace_thread_cpu_ns(struct pm_trace *trace, struct pm_trace_thread *thread,
			   uint64_t *out)
{
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	struct pm_schedstat now;
	int ret;

	if (pm_trace_read_schedstat(trace, thread, &now)) {
		*out = now.ran_ns;
		return 0;
	}
	ret = pm_trace_read_stat(trace, thread);
	if (ret == 0 && __builtin_mul_overflow(thread->seen.ticks, tick_ns, out))
		ret = -EBADMSG;
	return ret;
}

int pm_trace_process_cpu_ns(pid_t pid, uint64_t *out)
{
	struct timespec now;
	clockid_t clock;
	int ret = clock_getcpuclockid(pid, &clock);

	if (ret != 0)
		return -ret;
	if (clock_gettime(clock, &now) < 0)
		return -errno;
	*out = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return 0;
}

int pm_trace_read_parents(pid_t tid, pid_t *tgid, pid_t *ppid)
{
	PM_AUTO_FCLOSE FILE *file = NULL;
	char line[256];
	int group = 0, parent = 0;

	snprintf(line, sizeof(line), "/proc/%d/status", (int)tid);
	file = fopen(line, "re");
	if (!file)
		return -errno;
	/* The first line, Name, has its newlines escaped. */
	while (fgets(line, sizeof(line), file) && (group == 0 || parent == 0)) {
		sscanf(line, "Tgid: %d", &group);
		sscanf(line, "PPid: %d", &parent);
	}
	if (group <= 0)
		return -ESRCH;
	*tgid = group;
	*ppid = parent;
	return 0;
}

/* ---- registers and memory ------------------------------------------------------------ */

#if defined(__x86_64__)
/* struct user_regs_struct of a 32-bit task: arch/x86/include/asm/user_32.h. */
struct user_regs_32 {
	uint32_t ebx, ecx, edx, esi, edi, ebp, eax, ds, es, fs, gs, orig_eax, eip, cs,
		eflags, esp, ss;
};

static void convert_32(const struct user_regs_32 *user, struct pm_trace_regs *out)
{
	*out = (struct pm_trace_regs){
		.value = { user->eax, user->ecx, user->edx, user->ebx, user->esp,
			   user->ebp, user->esi, user->edi, user->eip },
		.known = (1u << 9) - 1,
		.pc = user->eip,
		.sp = user->esp,
		.is_32 = true,
	};
}

static void convert_64(const struct user_regs_struct *user, struct pm_trace_regs *out)
{
	*out = (struct pm_trace_regs){
		.value = { user->rax, user->rdx, user->rcx, user->rbx, user->rsi,
			   user->rdi, user->rbp, user->rsp, user->r8, user->r9, user->r10,
			   user->r11, user->r12, user->r13, user->r14, user->r15,
			   user->rip },
		.known = (1u << 17) - 1,
		.pc = user->rip,
		.sp = user->rsp,
	};
}

int pm_trace_regs(pid_t tid, struct pm_trace_regs *out)
{
	union {
		struct user_regs_struct regs_64;
		struct user_regs_32 regs_32;
	} user;
	struct iovec iov = { &user, sizeof(user) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) != 0)
		return -errno;
	/* The size returned by the kernel shows the kind of the task. */
	if (iov.iov_len == sizeof(user.regs_32))
		convert_32(&user.regs_32, out);
	else if (iov.iov_len == sizeof(user.regs_64))
		convert_64(&user.regs_64, out);
	else
		return -EIO;
	return 0;
}
#elif defined(__aarch64__)
int pm_trace_regs(pid_t tid, struct pm_trace_regs *out)
{
	struct user_regs_struct user;
	struct iovec iov = { &user, sizeof(user) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) != 0)
		return -errno;
	if (iov.iov_len != sizeof(user)) {
		/* A 32-bit task, which we cannot interpret. */
		*out = (struct pm_trace_regs){ .is_32 = true };
		return 0;
	}
	*out = (struct pm_trace_regs){ .pc = user.pc, .sp = user.sp };
	for (size_t i = 0; i < 31; i++)
		out->value[i] = user.regs[i];
	out->value[31] = user.sp;
	out->value[32] = user.pc;
	out->known = (UINT64_C(1) << 33) - 1;
	return 0;
}
#else
int pm_trace_regs(pid_t tid, struct pm_trace_regs *out)
{
	return -ENOSYS;
}
#endif

size_t pm_trace_read(pid_t pid, uint64_t address, void *out, size_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = address;
	struct iovec remote[1024]; /* IOV_MAX */
	struct iovec local = { out, len };
	size_t parts = 0, left = len;
	ssize_t got;

	/* Use one part per page: process_vm_readv(2) stops before the first part that is
	 * not completely readable. */
	while (left > 0 && parts < PM_ARRAY_LEN(remote)) {
		uint64_t room = page - at % page;

		if (room > left)
			room = left;
		if (at + room < at)
			break;
		remote[parts++] = (struct iovec){ (void *)(uintptr_t)at, room };
		at += room;
		left -= room;
	}
	got = process_vm_readv(pid, &local, 1, remote, parts, 0);
	if (got > 0)
		return (size_t)got;
	return 0;
}

size_t pm_trace_read_stack(pid_t pid, uint64_t sp, void *out, size_t len, size_t *below)
{
	size_t got = 0;

	*below = 0;
	if (sp > PM_TRACE_BELOW && len > PM_TRACE_BELOW)
		got = pm_trace_read(pid, sp - PM_TRACE_BELOW, out, len);
	if (got > PM_TRACE_BELOW) {
		*below = PM_TRACE_BELOW;
		return got;
	}
	return pm_trace_read(pid, sp, out, len);
}

/* ---- wait(2) ------------------------------------------------------------------------- */

/* wait4(2) sums the usage of all threads, also when a process merely stops, so it is used
 * only for the requested process. */
pid_t pm_trace_wait_any(struct pm_trace *trace, int *status, int options)
{
	siginfo_t next = { 0 };

	if (trace->usage_of == 0)
		return waitpid(-1, status, __WALL | options);
	if (waitid(P_ALL, 0, &next, WEXITED | WNOWAIT | __WALL | options) < 0)
		return -1;
	if (next.si_pid == 0)
		return 0;
	/* Between the two calls only a kill can change the state, and then the thread
	 * ends. */
	return wait4(next.si_pid, status, __WALL | WNOHANG,
		     next.si_pid == trace->usage_of ? &trace->usage : NULL);
}

void pm_trace_watch_usage(struct pm_trace *trace, pid_t pid)
{
	trace->usage_of = pid;
}

const struct rusage *pm_trace_usage(const struct pm_trace *trace)
{
	return &trace->usage;
}

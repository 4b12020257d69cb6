/* SPDX-License-Identifier: MIT */
#include "sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Sanitizers map terabytes, and report through files and other system calls. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#define OWN_ARCH 0 /* there is no filter for this architecture */
#endif

enum {
	NOBODY = 65534,
	SLOWER = SANITIZED ? 8 : 1,
};

static int compare_ints(const void *left, const void *right)
{
	int a = *(const int *)left, b = *(const int *)right;

	return PM_COMPARE(a, b);
}

/* Closes the descriptors [first, last]. */
static void close_range_of(unsigned int first, unsigned int last)
{
	struct rlimit files;

	if (first > last || syscall(SYS_close_range, first, last, 0) == 0 ||
	    getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	for (unsigned int fd = first; fd <= last && fd < files.rlim_cur; fd++)
		close((int)fd);
}

void pm_sandbox_keep_files(int *fds, size_t len)
{
	unsigned int from = STDERR_FILENO + 1;
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	qsort(fds, len, sizeof(*fds), compare_ints);
	for (int fd = 0; fd <= STDERR_FILENO && nowhere >= 0; fd++)
		if (!(SANITIZED && fd == STDERR_FILENO) && dup2(nowhere, fd) < 0)
			close(fd);
	for (size_t i = 0; i < len; i++) {
		if (fds[i] < (int)from)
			continue;
		close_range_of(from, (unsigned int)fds[i] - 1);
		from = (unsigned int)fds[i] + 1;
	}
	close_range_of(from, ~0u);
}

static void sandbox_set_limit(int what, uint64_t value)
{
	struct rlimit now, want = { value, value };

	/* Keep the existing hard limit if it is lower. */
	if (getrlimit(what, &now) == 0 && now.rlim_max < want.rlim_max)
		return;
	setrlimit(what, &want);
}

static uint64_t mapped_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (file) {
		if (fscanf(file, "%llu", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version =
							   _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capset, &header, none) == 0)
		return 0;
	return -errno;
}

/*
 * Allows the system calls needed for reading mapped files, memory and a pipe. Any other
 * call fails with EPERM and does not kill the process: libraries try new calls (libdw
 * openat2) before they fall back to old ones. Two of the calls have a process as
 * argument. They are allowed for this process only, because an ordinary user's helper
 * could signal, or limit, the user's other processes.
 */
static int filter_system_calls(void)
{
	static const unsigned short allowed[] = {
		SYS_read,         SYS_pread64,       SYS_write,        SYS_close,
		SYS_lseek,        SYS_fstat,         SYS_newfstatat,   SYS_mmap,
		SYS_munmap,       SYS_mprotect,      SYS_mremap,       SYS_madvise,
		SYS_brk,          SYS_futex,         SYS_rt_sigaction, SYS_rt_sigprocmask,
		SYS_rt_sigreturn, SYS_clock_gettime, SYS_getrusage,    SYS_getrlimit,
		SYS_setrlimit,    SYS_getpid,        SYS_gettid,       SYS_getrandom,
		SYS_exit,         SYS_exit_group,
	};
	enum {
		CALLS = PM_ARRAY_LEN(allowed),
		HEAD = 4,
		/* Load the first argument; compare it with this process and 0; reload the
		 * number. */
		SELF = 6,
		ALLOW = HEAD + SELF + CALLS + 1,
		REFUSE = ALLOW - 1,
	};
	const uint32_t self = (uint32_t)getpid();
	struct sock_filter filter[ALLOW + 1] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, SELF - 2),
		/* Load the low half, because the kernel takes an int. Both architectures
		 * are little-endian. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[0])),
		/* For prlimit64(2), 0 is this process; for tgkill(2), it is no valid
		 * thread group. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, self, ALLOW - HEAD - 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, ALLOW - HEAD - 5, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = { .len = ALLOW + 1, .filter = filter };

	for (unsigned char i = 0; i < CALLS; i++)
		filter[HEAD + SELF + i] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, allowed[i], (unsigned char)(CALLS - i),
			0);
	filter[REFUSE] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	filter[ALLOW] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (OWN_ARCH == 0 || SANITIZED)
		return 0;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return -ENOSYS;
	return 0;
}

int pm_sandbox_enter(const struct pm_sandbox *sandbox)
{
	uint64_t mapped = mapped_bytes();
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, ret;

	/* Drop a raised priority, which the parent has for itself. A lowered one stays,
	 * because the user has set it. A hurried helper keeps the priority that was set
	 * for it. */
	if (!sandbox->hurried && (policy == SCHED_FIFO || policy == SCHED_RR))
		sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
	if (!sandbox->hurried && getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	if (geteuid() == 0) {
		/* In a user namespace without the user nobody, the calls below must
		 * suffice. */
		if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
		    setresuid(NOBODY, NOBODY, NOBODY) < 0)
			errno = 0;
	}
	ret = drop_capabilities();
	if (ret < 0)
		return ret;
	/* Other processes of the user nobody must not inspect its memory, and it must not
	 * dump core. */
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != sandbox->parent)
		return -ESRCH;
	sandbox_set_limit(RLIMIT_CORE, 0);
	sandbox_set_limit(RLIMIT_NPROC, 0);
	if (!SANITIZED) {
		sandbox_set_limit(RLIMIT_FSIZE, 0);
		sandbox_set_limit(RLIMIT_NOFILE, 0);
		if (mapped > 0)
			sandbox_set_limit(RLIMIT_AS, mapped + sandbox->memory_bytes);
	}
	return filter_system_calls();
}

static void limit_cpu_time(uint64_t seconds, bool all)
{
	struct rlimit limit_now;
	struct rusage used;
	uint64_t want;

	getrusage(RUSAGE_SELF, &used);
	want = (uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec + 1 +
	       seconds * SLOWER;
	if (getrlimit(RLIMIT_CPU, &limit_now) < 0)
		return;
	if (all && want < limit_now.rlim_max)
		limit_now.rlim_max = want;
	limit_now.rlim_cur = PM_MIN(want, limit_now.rlim_max);
	setrlimit(RLIMIT_CPU, &limit_now);
}

void pm_sandbox_cpu_time(uint64_t seconds)
{
	limit_cpu_time(seconds, false);
}

void pm_sandbox_cpu_time_of_all(uint64_t seconds)
{
	limit_cpu_time(seconds, true);
}

/* SPDX-License-Identifier: MIT */
/*
 * Explains why a process may not be traced. Sources: ptrace(2) "Ptrace access mode
 * checking", Documentation/admin-guide/LSM/Yama.rst.
 */
#include "trace-internal.h"

#include <string.h>

/* Returns the number in a one-line file, or -1. */
static long read_one_number(const char *path)
{
	PM_AUTO_FCLOSE FILE *file = fopen(path, "re");
	long value;

	if (file && fscanf(file, "%ld", &value) == 1)
		return value;
	return -1;
}

/* Reads a field of /proc/PID/status. Returns false if it is missing. */
static bool read_trace_status(pid_t pid, const char *format, long *out)
{
	PM_AUTO_FCLOSE FILE *file = NULL;
	char line[256];

	snprintf(line, sizeof(line), "/proc/%d/status", (int)pid);
	file = fopen(line, "re");
	while (file && fgets(line, sizeof(line), file)) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		if (sscanf(line, format, out) == 1)
			return true;
#pragma GCC diagnostic pop
	}
	return false;
}

bool pm_trace_is_ours(pid_t tid)
{
	long tracer;

	return read_trace_status(tid, "TracerPid: %ld", &tracer) &&
	       tracer == (long)gettid();
}

static int by_yama(long scope, int code, struct pm_error *err)
{
	const char *may = "a process may trace only what it has started";

	if (scope >= 3)
		may = "nobody may trace anything, until the next boot";
	else if (scope == 2)
		may = "only programs with CAP_SYS_PTRACE may trace";
	pm_error_set(err, -code, "kernel.yama.ptrace_scope is %ld: %s", scope, may);
	if (scope == 2)
		pm_error_fix(err, "sudo sysctl kernel.yama.ptrace_scope=1, or sudo");
	else if (scope == 1)
		pm_error_fix(err, "start the command by this program, or sudo sysctl "
				  "kernel.yama.ptrace_scope=0, or sudo");
	return -code;
}

int pm_trace_explain(pid_t tid, int code, struct pm_error *err)
{
	char source[32];
	long tracer = 0, uid = -1, seccomp = 0;
	long scope = read_one_number("/proc/sys/kernel/yama/ptrace_scope");

	snprintf(source, sizeof(source), "process %d", (int)tid);
	if (code == ESRCH) {
		pm_error_set(err, -ESRCH, "no process %d", (int)tid);
		return -ESRCH;
	}
	if (code != EPERM && code != EACCES) {
		pm_error_set(err, -code, "cannot be traced: %s", strerror(code));
	} else if (read_trace_status(tid, "TracerPid: %ld", &tracer) && tracer != 0) {
		pm_error_set(err, -code, "process %ld traces it already (a debugger?)",
			     tracer);
	} else if (read_trace_status(tid, "Uid: %*d %ld", &uid) &&
		   uid != (long)geteuid() && geteuid() != 0) {
		pm_error_set(err, -code, "not permitted to trace a process of user %ld",
			     uid);
		pm_error_fix(err, "run as root or as the user of that process");
	} else if (scope > 0 && geteuid() != 0) {
		by_yama(scope, code, err);
	} else if (read_trace_status(getpid(), "Seccomp: %ld", &seccomp) &&
		   seccomp == 2) {
		pm_error_set(err, -code,
			     "a seccomp filter, as containers have, forbids ptrace");
		pm_error_fix(err, "docker run --cap-add SYS_PTRACE ...");
	} else {
		pm_error_set(
			err, -code,
			"not permitted to trace it: it runs a set-user-ID program or "
			"one that cannot be read, is a kernel thread, or a security "
			"module (Yama, SELinux, AppArmor) forbids it");
		pm_error_fix(err,
			     "run as root, in a container with --cap-add SYS_PTRACE");
	}
	pm_error_where(err, source, -1);
	return -code;
}

/* SPDX-License-Identifier: MIT */
/*
 * Turns an errno into an explanation for the user. All facts are parameters and nothing
 * is read here, so that every case can be tested on any machine. Sources:
 * perf_event_open(2) "ERRORS", Documentation/admin-guide/perf-security.rst, Debian's
 * patch "security,perf: Allow further restriction of perf_event_open" (levels above 2).
 */
#include "perf-internal.h"

#include <string.h>

enum {
	/* include/linux/errno.h: the instruction cannot take a probe
	 * (prepare_uprobe()). */
	ENOTSUPP_OF_KERNEL = 524,
	PARANOID_NO_KERNEL = 2, /* from this level on: no kernel samples */
	/* From this level on: nothing, if the distribution has the patch. */
	PARANOID_NOTHING = 3,
};

#define FIX_CONTAINER                                                                      \
	"docker run --cap-add PERFMON ... (or, with older Docker, --security-opt seccomp=" \
	"unconfined)"

static const char *name_of_refusal(int code)
{
	switch (code) {
	case ENOSYS:
		return "ENOSYS";
	case EPERM:
		return "EPERM";
	default:
		return "EACCES";
	}
}

static int explain_by_seccomp(const struct pm_perf_refusal *why, struct pm_error *err)
{
	pm_error_set(err, -why->code,
		     "a seccomp filter, as containers have, forbids perf_event_open (%s)",
		     name_of_refusal(why->code));
	pm_error_where(err, why->event, -1);
	pm_error_fix(err, FIX_CONTAINER);
	return -why->code;
}

static int explain_by_paranoid(const struct pm_perf_refusal *why, struct pm_error *err)
{
	int level = why->env->paranoid;

	if (level >= PARANOID_NOTHING) {
		pm_error_set(
			err, -why->code,
			"kernel.perf_event_paranoid is %d, which forbids all events to "
			"users without privileges",
			level);
		pm_error_fix(err, "sudo sysctl kernel.perf_event_paranoid=%d",
			     why->kernel ? 1 : PARANOID_NO_KERNEL);
	} else {
		pm_error_set(
			err, -why->code,
			why->in_kernel_only
				? "this event happens inside the kernel, which "
				  "kernel.perf_event_paranoid=%d hides from users without "
				  "privileges"
				: "kernel.perf_event_paranoid is %d, which forbids kernel "
				  "samples to users without privileges",
			level);
		pm_error_fix(err, "sudo sysctl kernel.perf_event_paranoid=1");
	}
	pm_error_where(err, why->event, -1);
	return -why->code;
}

/* Explains the refusal of a probe, which no level of perf_event_paranoid allows
 * (kernel/events/core.c). A uprobe in the middle of an instruction changes what a program
 * does. Since Linux 6.16, and in older versions with the backport, CAP_PERFMON is
 * therefore not enough ("perf: Revert to requiring CAP_SYS_ADMIN for uprobes"). */
static int explain_by_capability(const struct pm_perf_refusal *why, struct pm_error *err)
{
	const char *where = "the kernel", *capability = "CAP_PERFMON";

	if (why->kind == PM_EVENT_UPROBE) {
		where = "programs";
		capability = "CAP_SYS_ADMIN (on older kernels CAP_PERFMON)";
	}
	pm_error_set(err, -why->code,
		     "probes in %s are for root and for programs with %s, whatever "
		     "kernel.perf_event_paranoid is",
		     where, capability);
	pm_error_where(err, why->event, -1);
	pm_error_fix(err, "sudo");
	return -why->code;
}

/* Explains a refusal by perf_allow_cpu() or perf_allow_tracepoint() of
 * linux/perf_event.h. */
static int explain_by_lower_paranoid(const struct pm_perf_refusal *why, int limit,
				     const char *what, struct pm_error *err)
{
	pm_error_set(err, -why->code,
		     "kernel.perf_event_paranoid is %d, and above %d only root, or who "
		     "has CAP_PERFMON, may record %s",
		     why->env->paranoid, limit, what);
	pm_error_where(err, why->event, -1);
	pm_error_fix(err, "sudo sysctl kernel.perf_event_paranoid=%d, or sudo", limit);
	return -why->code;
}

/* Distributions that have a level for "nothing at all" (Debian) exempt only CAP_SYS_ADMIN
 * from it. */
static int explain_by_highest_paranoid(const struct pm_perf_refusal *why,
				       struct pm_error *err)
{
	pm_error_set(err, -why->code,
		     "kernel.perf_event_paranoid is %d, where this kernel wants "
		     "CAP_SYS_ADMIN: CAP_PERFMON is not enough",
		     why->env->paranoid);
	pm_error_where(err, why->event, -1);
	pm_error_fix(err, "sudo sysctl kernel.perf_event_paranoid=2, or sudo");
	return -why->code;
}

static int explain_by_lockdown(const struct pm_perf_refusal *why, struct pm_error *err)
{
	pm_error_set(err, -why->code,
		     "the kernel is locked down (%s), which forbids this even to root",
		     why->env->lockdown == PM_LOCKDOWN_INTEGRITY ? "integrity"
								 : "confidentiality");
	pm_error_where(err, why->event, -1);
	pm_error_fix(err, "boot without lockdown= or secure boot");
	return -why->code;
}

/* Explains what users without privileges may not do. Returns 0 if no reason is known. */
static int explain_by_privilege(const struct pm_perf_refusal *why, struct pm_error *err)
{
	const struct pm_perf_env *env = why->env;
	int limit = PARANOID_NOTHING;

	if (why->kind == PM_EVENT_UPROBE || why->kind == PM_EVENT_KPROBE)
		return explain_by_capability(why, err);
	if (!env->paranoid_known)
		return 0;
	if (why->kind == PM_EVENT_TRACEPOINT && env->paranoid > -1)
		return explain_by_lower_paranoid(why, -1, "tracepoints", err);
	if (why->wide && env->paranoid > 0)
		return explain_by_lower_paranoid(why, 0, "whole CPUs", err);
	if (why->kernel || why->in_kernel_only)
		limit = PARANOID_NO_KERNEL;
	if (env->paranoid >= limit)
		return explain_by_paranoid(why, err);
	return 0;
}

static int explain_refused_event(const struct pm_perf_refusal *why, struct pm_error *err)
{
	const struct pm_perf_env *env = why->env;
	const char *name = name_of_refusal(why->code);
	int ret;

	if (why->kind == PM_EVENT_UPROBE && why->code == EACCES &&
	    pm_perf_env_perfmon(env) && !pm_perf_env_admin(env))
		return explain_by_capability(why, err);
	if (why->code == EACCES && env->paranoid_known && !why->others &&
	    env->paranoid >= PARANOID_NOTHING && pm_perf_env_perfmon(env) &&
	    !pm_perf_env_admin(env))
		return explain_by_highest_paranoid(why, err);
	/* The kernel fails with EACCES because of paranoid, seccomp filters with EPERM.
	 * If both are possible, the errno decides. */
	if (!pm_perf_env_perfmon(env) &&
	    !(why->code == EPERM && env->seccomp == PM_SECCOMP_FILTER)) {
		ret = explain_by_privilege(why, err);
		if (ret < 0)
			return ret;
	}
	if (env->seccomp == PM_SECCOMP_FILTER)
		return explain_by_seccomp(why, err);
	if (env->lockdown != PM_LOCKDOWN_OFF && pm_perf_env_perfmon(env))
		return explain_by_lockdown(why, err);
	if (!env->paranoid_known)
		pm_error_set(err, -why->code,
			     "the kernel refused the event (%s), and "
			     "kernel.perf_event_paranoid cannot be read",
			     name);
	else if (why->others)
		pm_error_set(err, -why->code,
			     "the process belongs to another user, or has more rights "
			     "than this one (%s)",
			     name);
	else
		pm_error_set(err, -why->code,
			     "the kernel refused the event (%s), although "
			     "kernel.perf_event_paranoid=%d would allow it: the process "
			     "belongs to another user or runs a setuid program, or a "
			     "security module (SELinux, lockdown) forbids it",
			     name, env->paranoid);
	pm_error_where(err, why->event, -1);
	if (env->paranoid_known && why->others)
		pm_error_fix(err, "sudo");
	return -why->code;
}

static int explain_no_descriptors(const struct pm_perf_refusal *why, struct pm_error *err)
{
	unsigned long long want = why->fds + 64; /* reserve for the rest of the program */

	pm_error_set(
		err, -why->code,
		"%zu file descriptors are needed, one for each event and CPU, and the "
		"%s limit is %llu",
		why->fds, why->code == ENFILE ? "system's" : "hard",
		(unsigned long long)why->env->nofile_hard);
	if (why->code == ENFILE)
		pm_error_set(
			err, -why->code,
			"%zu file descriptors are needed, one for each event and CPU, and "
			"the whole system has reached fs.file-max",
			why->fds);
	pm_error_where(err, why->event, -1);
	if (why->code == ENFILE)
		pm_error_fix(err, "sudo sysctl fs.file-max=9223372036854775807");
	else
		pm_error_fix(err, "sudo prlimit --pid $$ --nofile=%llu:%llu", want, want);
	return -why->code;
}

static int explain_missing_event(const struct pm_perf_refusal *why, struct pm_error *err)
{
	pm_error_set(err, -why->code, "this machine does not have the event (%s)",
		     strerror(why->code));
	pm_error_where(err, why->event, -1);
	return -why->code;
}

int pm_perf_explain_open(const struct pm_perf_refusal *why, struct pm_error *err)
{
	switch (why->code) {
	case EACCES:
	case EPERM:
		return explain_refused_event(why, err);
	case ENOSYS:
		if (why->env->seccomp == PM_SECCOMP_FILTER)
			return explain_by_seccomp(why, err);
		return pm_error_set(err, -ENOSYS,
				    "this kernel has no perf_event_open (built without "
				    "CONFIG_PERF_EVENTS, or a sandbox such as gVisor)");
	case EMFILE:
	case ENFILE:
		return explain_no_descriptors(why, err);
	case ENOENT:
	case ENXIO:
	case ENODEV:
	case EOPNOTSUPP:
		return explain_missing_event(why, err);
	case ESRCH:
		return pm_error_set(err, -ESRCH, "the process is gone");
	case EBUSY:
		pm_error_set(err, -EBUSY, "another program has the counters for itself");
		break;
	case EINVAL:
		pm_error_set(err, -EINVAL,
			     "the kernel does not take the event with these options");
		break;
	case ENOTSUPP_OF_KERNEL:
		pm_error_set(
			err, -EOPNOTSUPP,
			"the kernel takes no probe on the instruction that is there");
		pm_error_where(err, why->event, -1);
		return -EOPNOTSUPP;
	default:
		pm_error_set(err, -why->code, "perf_event_open failed: %s",
			     strerror(why->code));
	}
	pm_error_where(err, why->event, -1);
	return -why->code;
}

uint64_t pm_perf_mlock_kb_for(size_t ring_bytes)
{
	/* Per CPU: the ring and its control page. */
	return (ring_bytes + (size_t)sysconf(_SC_PAGESIZE)) / 1024;
}

int pm_perf_explain_map(int code, const struct pm_perf_env *env, size_t ring_bytes,
			size_t rings, struct pm_error *err)
{
	char memlock[32] = "unlimited";

	if (code != EPERM)
		return pm_error_set(err, -code, "cannot map %zu rings of %zu KiB: %s",
				    rings, ring_bytes / 1024, strerror(code));
	if (env->memlock_bytes != UINT64_MAX)
		snprintf(memlock, sizeof(memlock), "%llu KiB",
			 (unsigned long long)env->memlock_bytes / 1024);
	pm_error_set(
		err, -code,
		"%zu rings of %zu KiB are more locked memory than "
		"kernel.perf_event_mlock_kb=%llu (for each CPU) and RLIMIT_MEMLOCK (%s) "
		"allow",
		rings, ring_bytes / 1024, (unsigned long long)env->mlock_kb, memlock);
	pm_error_fix(err, "sudo sysctl kernel.perf_event_mlock_kb=%llu",
		     (unsigned long long)pm_perf_mlock_kb_for(ring_bytes));
	return -code;
}

/* SPDX-License-Identifier: MIT */
#include "perf-state.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>

enum {
	TRY_PERIOD = 1000000, /* arbitrary: the event is never enabled */
};

static void fill_attr_to_try(const struct pm_event_spec *spec, bool samples, bool kernel,
			     struct perf_event_attr *out)
{
	*out = (struct perf_event_attr){ .size = sizeof(*out),
					 .type = spec->type,
					 .config = spec->config,
					 .config1 = spec->config1,
					 .config2 = spec->config2,
					 .bp_type = spec->bp_type,
					 .sample_period = samples ? TRY_PERIOD : 0,
					 .disabled = 1,
					 .exclude_user = !spec->user,
					 .exclude_kernel = !kernel,
					 .exclude_hv = 1 };
	if (spec->path)
		out->config1 = (uint64_t)(uintptr_t)spec->path;
	/* The samples of a tracepoint contain its fields. */
	if (samples && spec->kind == PM_EVENT_TRACEPOINT)
		out->sample_type = PERF_SAMPLE_RAW;
}

/* Tries to open the event on this process, or on a CPU if the PMU cannot count processes.
 * Returns 0 or the errno. */
static int try_open_event(const struct pm_event_spec *spec, bool samples, bool kernel)
{
	int pid = 0, cpu = -1;
	struct perf_event_attr attr;
	int fd PM_AUTO_CLOSE = -1;

	if (spec->cpus) {
		pid = -1;
		cpu = (int)strtoul(spec->cpus, NULL, 10);
	}
	fill_attr_to_try(spec, samples, kernel, &attr);
	/* PMUs outside of the cores do not distinguish levels:
	 * PERF_PMU_CAP_NO_EXCLUDE. */
	if (spec->kind == PM_EVENT_PMU && spec->user && kernel)
		attr.exclude_hv = 0;
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	/* A core PMU may cover only some CPUs and still be able to count processes. */
	if (fd < 0 && spec->cpus && (errno == EACCES || errno == EPERM))
		fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
				  PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno;
	return 0;
}

static void explain_event_tried(const struct pm_event_spec *spec, int code,
				struct pm_error *err)
{
	struct pm_perf_env env;

	if (!err)
		return;
	pm_perf_env_read(&env);
	pm_perf_explain_open(
		&(struct pm_perf_refusal){ .code = code,
					   .event = pm_event_shown_name(spec),
					   .kernel = spec->kernel,
					   .kind = spec->kind,
					   .in_kernel_only =
						   spec->kind == PM_EVENT_TRACEPOINT ||
						   spec->kind == PM_EVENT_KPROBE ||
						   pm_perf_in_kernel_only(spec),
					   .fds = 1,
					   .env = &env },
		err);
}

enum pm_perf_available pm_perf_try(const struct pm_event_spec *spec, struct pm_error *err)
{
	int ret = try_open_event(spec, true, spec->kernel);

	if (ret == 0)
		return PM_PERF_AVAILABLE;
	if (spec->kernel && pm_perf_can_drop_kernel(spec) &&
	    (ret == EACCES || ret == EPERM) && try_open_event(spec, true, false) == 0) {
		explain_event_tried(spec, ret, err);
		return PM_PERF_USER_ONLY;
	}
	/* The event may be a counter without an interrupt (PERF_PMU_CAP_NO_INTERRUPT,
	 * kernel/events/core.c), or its PMU may refuse a period. */
	if ((ret == EINVAL || ret == EOPNOTSUPP) &&
	    try_open_event(spec, false, spec->kernel) == 0) {
		pm_error_set(err, -ret, "it can be counted, but gives no samples");
		return PM_PERF_COUNTS_ONLY;
	}
	explain_event_tried(spec, ret, err);
	return PM_PERF_NOT_AVAILABLE;
}

/* The kernel counts in a control group with its perf_event controller, which does not
 * have to be enabled. But the kernel only sets that controller up when controllers are
 * enabled for the first time (kernel/cgroup/cgroup.c, cgrp_dfl_implicit_ss_mask), as
 * systemd does during boot. */
int pm_perf_check_cgroup(int fd, struct pm_error *err)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY,
					.disabled = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1 };
	int event PM_AUTO_CLOSE =
		(int)syscall(SYS_perf_event_open, &attr, fd, 0, -1,
			     PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP);

	if (event >= 0 || errno != ENOENT)
		return 0;
	pm_error_set(err, -ENOENT,
		     "the kernel counts nothing in this control group, for no controller "
		     "was ever switched on for the groups beside it");
	pm_error_fix(err, "echo +pids | sudo tee /sys/fs/cgroup/cgroup.subtree_control");
	return -ENOENT;
}

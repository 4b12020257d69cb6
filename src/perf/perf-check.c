/* SPDX-License-Identifier: MIT */
/*
 * Finds out what works here by trying it: opens each event as a recording would, and
 * closes it at once.
 */
#include "perf-state.h"

#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <sched.h>
#include <string.h>

#include "tracefs-mount.h"

enum {
	STACK_BYTES_SMALL = 8192,
	NUMBER_BYTES = 32,
};

struct check {
	pm_perf_checks *to;
	struct pm_perf_env env;
	int error; /* -ENOMEM, or 0 */
};

static struct perf_event_attr check_clock_attr(void)
{
	return (struct perf_event_attr){ .size = sizeof(struct perf_event_attr),
					 .type = PERF_TYPE_SOFTWARE,
					 .config = PERF_COUNT_SW_CPU_CLOCK,
					 .sample_period = 1000000,
					 .sample_type = PERF_SAMPLE_IP,
					 .disabled = 1,
					 .exclude_kernel = 1,
					 .exclude_hv = 1 };
}

/* Returns 0 or an errno. */
static int check_try_open(const struct perf_event_attr *attr, bool wide)
{
	int pid = 0, cpu = -1;
	int fd PM_AUTO_CLOSE = -1;

	if (wide) {
		pid = -1;
		cpu = 0;
	}
	fd = pm_sys_perf_event_open(attr, pid, cpu, -1, 0);
	if (fd < 0)
		return errno;
	return 0;
}

static void checks_put_row(struct check *check, struct pm_perf_check *row)
{
	if (pm_vec_push(check->to, *row) < 0)
		check->error = -ENOMEM;
}

/* @code: 0 or an errno of perf_event_open(2). */
static void checks_put_open_row(struct check *check, struct pm_perf_check *row, int code,
				const struct pm_perf_refusal *why)
{
	struct pm_perf_refusal own = *why;

	row->works = code == 0;
	own.code = code;
	own.event = "";
	own.env = &check->env;
	own.fds = 1;
	if (code == EINVAL || code == EOPNOTSUPP)
		pm_error_set(&row->why, -code, "this kernel or CPU does not have it");
	else if (code == ENOENT || code == ENODEV || code == ENXIO)
		pm_error_set(&row->why, -code,
			     "this machine has no hardware counters, as is usual in "
			     "virtual machines");
	else if (code != 0)
		pm_perf_explain_open(&own, &row->why);
	checks_put_row(check, row);
}

/* ---- samples -------------------------------------------------------------------------- */

static void check_perf_samples(struct check *check)
{
	struct perf_event_attr attr = check_clock_attr();
	struct pm_perf_check user = { .name = "own programs",
				      .use = "samples of user space",
				      .needed = true };
	struct pm_perf_check kernel = { .name = "kernel samples",
					.use = "time inside the kernel, :k" };
	struct pm_perf_check wide = { .name = "whole CPUs", .use = "-a, -C, -G" };

	snprintf(user.found, sizeof(user.found), "kernel.perf_event_paranoid=");
	if (check->env.paranoid_known)
		snprintf(user.found + strlen(user.found),
			 sizeof(user.found) - strlen(user.found), "%d",
			 check->env.paranoid);
	else
		user.found[0] = '\0';
	checks_put_open_row(check, &user, check_try_open(&attr, false),
			    &(struct pm_perf_refusal){ 0 });
	checks_put_open_row(check, &wide, check_try_open(&attr, true),
			    &(struct pm_perf_refusal){ .wide = true });
	attr.exclude_kernel = 0;
	checks_put_open_row(check, &kernel, check_try_open(&attr, false),
			    &(struct pm_perf_refusal){ .kernel = true });
}

static void check_stack_copies(struct check *check)
{
	static const uint32_t sizes[] = { PM_STACK_BYTES_MAX & ~7u, STACK_BYTES_SMALL };
	struct perf_event_attr attr = check_clock_attr();
	struct pm_perf_check row = { .name = "stack copies",
				     .use = "--call-graph dwarf",
				     .needed = true };
	int ret = ENOSYS;

	attr.sample_type |= PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_USER;
	if (pm_regs_native())
		attr.sample_regs_user = pm_regs_native()->mask;
	else
		attr.sample_regs_user = 0;
	for (size_t i = 0; i < PM_ARRAY_LEN(sizes) && ret != 0; i++) {
		attr.sample_stack_user = sizes[i];
		ret = check_try_open(&attr, false);
		if (ret == 0)
			snprintf(row.found, sizeof(row.found), "up to %u bytes",
				 sizes[i]);
	}
	checks_put_open_row(check, &row, ret, &(struct pm_perf_refusal){ 0 });
}

static void check_hardware_events(struct check *check)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_HARDWARE,
					.config = PERF_COUNT_HW_CPU_CYCLES,
					.disabled = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1 };
	struct pm_perf_check count = { .name = "hardware counters",
				       .use = "cycles, instructions, cache misses" };
	struct pm_perf_check sample = { .name = "hardware samples",
					.use = "-e cycles; else cpu-clock serves" };
	struct pm_perf_check branch = { .name = "branch records",
					.use = "-b, -j, --call-graph lbr" };

	checks_put_open_row(check, &count, check_try_open(&attr, false),
			    &(struct pm_perf_refusal){ 0 });
	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_IP;
	checks_put_open_row(check, &sample, check_try_open(&attr, false),
			    &(struct pm_perf_refusal){ 0 });
	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
	checks_put_open_row(check, &branch, check_try_open(&attr, false),
			    &(struct pm_perf_refusal){ 0 });
}

static void check_software_events(struct check *check)
{
	static const uint64_t ids[] = { PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK,
					PERF_COUNT_SW_PAGE_FAULTS };
	struct perf_event_attr attr = check_clock_attr();
	struct pm_perf_check row = { .name = "software events",
				     .use = "cpu-clock, task-clock, page-faults" };
	int ret = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(ids) && ret == 0; i++) {
		attr.config = ids[i];
		ret = check_try_open(&attr, false);
	}
	checks_put_open_row(check, &row, ret, &(struct pm_perf_refusal){ 0 });
}

/* ---- events at places ----------------------------------------------------------------- */

/* Reads the number in a file below folder @at; returns false if there is none. */
static bool read_number_file_at(int at, const char *path, uint64_t *out)
{
	int fd PM_AUTO_CLOSE = openat(at, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char text[NUMBER_BYTES];
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (len <= 0)
		return false;
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return pm_parse_u64(text, out);
}

static void check_tracepoints(struct check *check)
{
	int tracefs PM_AUTO_CLOSE = pm_tracefs_open();
	struct perf_event_attr attr = check_clock_attr();
	struct pm_perf_check row = { .name = "tracepoints",
				     .use = "-e sched:sched_switch and others" };
	struct pm_perf_refusal why = { .kind = PM_EVENT_TRACEPOINT,
				       .in_kernel_only = true };
	uint64_t id;

	attr.type = PERF_TYPE_TRACEPOINT;
	attr.sample_type |= PERF_SAMPLE_RAW;
	attr.sample_period = 1;
	attr.exclude_kernel = 0;
	if (tracefs < 0 ||
	    !read_number_file_at(tracefs, "events/sched/sched_switch/id", &id)) {
		bool denied = tracefs == -EACCES ||
			      (tracefs >= 0 && (errno == EACCES || errno == EPERM));

		if (denied)
			pm_error_set(&row.why, -EACCES,
				     "this user may not read /sys/kernel/tracing");
		else
			pm_error_set(
				&row.why, -ENOENT,
				"/sys/kernel/tracing is not mounted, or has no events");
		/* Root mounts tracefs privately if needed, and only root may use
		 * tracepoints anyway. */
		pm_error_fix(&row.why, "sudo");
		checks_put_row(check, &row);
		return;
	}
	attr.config = id;
	checks_put_open_row(check, &row, check_try_open(&attr, false), &why);
}

/* Tries a probe on a file that does not exist: the kernel checks permissions before it
 * looks for the file. */
static void check_probe_type(struct check *check, const char *name, const char *use,
			     const char *type_file, enum pm_event_kind kind)
{
	static const char nowhere[] = "/proc/self/no-such-file";
	struct perf_event_attr attr = { .size = sizeof(attr), .disabled = 1 };
	struct pm_perf_check row = { .name = name, .use = use };
	uint64_t type;
	int ret = ENOENT;

	if (!read_number_file_at(AT_FDCWD, type_file, &type)) {
		pm_error_set(&row.why, -ENOENT, "this kernel was built without it");
		checks_put_row(check, &row);
		return;
	}
	attr.type = (uint32_t)type;
	attr.config1 = (uint64_t)(uintptr_t)nowhere; /* uprobe_path, kprobe_func */
	ret = check_try_open(&attr, false);
	if (ret != EACCES && ret != EPERM)
		ret = 0;
	checks_put_open_row(check, &row, ret, &(struct pm_perf_refusal){ .kind = kind });
}

static void check_breakpoints(struct check *check)
{
	static uint64_t watched;
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_BREAKPOINT,
					.bp_type = HW_BREAKPOINT_W,
					.bp_addr = (uint64_t)(uintptr_t)&watched,
					.bp_len = HW_BREAKPOINT_LEN_4,
					.sample_period = 1,
					.disabled = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1 };
	struct pm_perf_check row = { .name = "breakpoints", .use = "-e mem:ADDRESS" };

	checks_put_open_row(check, &row, check_try_open(&attr, false),
			    &(struct pm_perf_refusal){ 0 });
}

/* ---- limits --------------------------------------------------------------------------- */

static void check_tree_filter(struct check *check)
{
	struct pm_perf_check row = { .name = "short threads",
				     .use = "events of CPUs, filtered by a BPF program" };
	struct pm_tree_filter *filter;

	row.works = pm_tree_filter_new(&filter, true, &row.why) == 0;
	if (row.works)
		pm_tree_filter_free(filter);
	else if (row.why.fix[0] == '\0')
		pm_error_fix(&row.why, "sudo");
	checks_put_row(check, &row);
}

static void check_realtime_priority(struct check *check)
{
	struct pm_perf_check row = { .name = "real-time reader",
				     .use = "no losses at high rates, -r" };
	struct sched_param before, want = { .sched_priority = 1 };
	int policy = sched_getscheduler(0);

	if (policy >= 0 && sched_getparam(0, &before) == 0 &&
	    sched_setscheduler(0, SCHED_FIFO, &want) == 0) {
		sched_setscheduler(0, policy, &before);
		row.works = true;
	} else {
		pm_error_set(&row.why, -errno, "SCHED_FIFO is not permitted: %s",
			     strerror(errno));
		pm_error_fix(&row.why, "sudo, or ulimit -r 1 in limits.conf");
	}
	checks_put_row(check, &row);
}

static void check_perf_limits(struct check *check)
{
	const struct pm_perf_env *env = &check->env;
	struct pm_perf_check rings = { .name = "large buffers",
				       .use = "no losses at high rates, -m",
				       .works = true };
	struct pm_perf_check rate = { .name = "sampling rate",
				      .use = "-F",
				      .works = true };
	pm_cpu_list cpus = { 0 };

	if (pm_cpu_list_online(&cpus) < 0)
		cpus.len = 0;
	if (pm_perf_env_unlimited_rings(env) || env->memlock_bytes == UINT64_MAX) {
		snprintf(rings.found, sizeof(rings.found), "of any size");
	} else {
		uint64_t kb = env->mlock_kb +
			      (cpus.len ? env->memlock_bytes / 1024 / cpus.len : 0);

		snprintf(rings.found, sizeof(rings.found), "%llu KiB for each CPU",
			 (unsigned long long)kb);
		rings.works = kb > 4096;
		if (!rings.works) {
			pm_error_set(&rings.why, -EPERM,
				     "locked memory is limited: "
				     "kernel.perf_event_mlock_kb=%llu",
				     (unsigned long long)env->mlock_kb);
			pm_error_fix(&rings.why,
				     "sudo sysctl kernel.perf_event_mlock_kb=%llu",
				     (unsigned long long)pm_perf_mlock_kb_for(4 << 20));
		}
	}
	pm_vec_release(&cpus);
	checks_put_row(check, &rings);
	if (env->max_hz > 0)
		snprintf(rate.found, sizeof(rate.found), "up to %llu Hz",
			 (unsigned long long)env->max_hz);
	else
		snprintf(rate.found, sizeof(rate.found), "unknown");
	checks_put_row(check, &rate);
}

static void check_kernel_version(struct check *check)
{
	struct perf_event_attr attr = check_clock_attr();
	struct pm_perf_check lost = { .name = "exact losses",
				      .use = "the kernel's own count, Linux 6.0" };
	struct pm_perf_check watchdog = { .name = "all counters free",
					  .use = "the NMI watchdog takes none",
					  .works = true };
	uint64_t on;

	attr.read_format = 1u << 4; /* PERF_FORMAT_LOST */
	checks_put_open_row(check, &lost, check_try_open(&attr, false),
			    &(struct pm_perf_refusal){ 0 });
	if (read_number_file_at(AT_FDCWD, "/proc/sys/kernel/nmi_watchdog", &on) &&
	    on > 0) {
		watchdog.works = false;
		pm_error_set(&watchdog.why, -EBUSY,
			     "kernel.nmi_watchdog=1 takes one hardware counter");
		pm_error_fix(&watchdog.why, "sudo sysctl kernel.nmi_watchdog=0");
	}
	checks_put_row(check, &watchdog);
}

int pm_perf_checks_run(pm_perf_checks *out)
{
	pm_perf_checks list = { 0 };
	struct check check = { .to = &list };

	pm_perf_env_read(&check.env);
	check_perf_samples(&check);
	check_stack_copies(&check);
	check_software_events(&check);
	check_hardware_events(&check);
	check_tracepoints(&check);
	check_probe_type(&check, "probes in programs", "-e uprobe:FILE:SYMBOL, usdt:",
			 "/sys/bus/event_source/devices/uprobe/type", PM_EVENT_UPROBE);
	check_probe_type(&check, "probes in the kernel", "-e kprobe:SYMBOL",
			 "/sys/bus/event_source/devices/kprobe/type", PM_EVENT_KPROBE);
	check_breakpoints(&check);
	check_tree_filter(&check);
	check_realtime_priority(&check);
	check_perf_limits(&check);
	check_kernel_version(&check);
	if (check.error < 0)
		pm_vec_release(&list);
	else
		*out = list;
	return check.error;
}

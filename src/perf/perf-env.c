/* SPDX-License-Identifier: MIT */
#include "perf-internal.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>

enum {
	CAP_IPC_LOCK_BIT = 14, /* linux/capability.h */
	CAP_SYS_ADMIN_BIT = 21,
	CAP_PERFMON_BIT = 38,
	SMALL_FILE_MAX = 4096,
	CPUS_MAX = 65536, /* far above NR_CPUS of any kernel */
};

/* Reads the start of a small file. Returns false if it cannot be read. */
static bool read_small_file_text(const char *path, char text[SMALL_FILE_MAX])
{
	int fd PM_AUTO_CLOSE = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return false;
	do {
		n = read(fd, text, SMALL_FILE_MAX - 1);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return false;
	text[n] = '\0';
	return true;
}

static uint64_t read_number_file(const char *path)
{
	char text[SMALL_FILE_MAX];
	uint64_t value;

	if (!read_small_file_text(path, text))
		return 0;
	text[strcspn(text, "\n")] = '\0';
	if (pm_parse_u64(text, &value))
		return value;
	return 0;
}

static void env_read_status(struct pm_perf_env *out)
{
	char text[SMALL_FILE_MAX];
	const char *at;

	out->seccomp = PM_SECCOMP_UNKNOWN;
	if (!read_small_file_text("/proc/self/status", text))
		return;
	at = strstr(text, "\nSeccomp:");
	if (at)
		out->seccomp = atoi(at + strlen("\nSeccomp:"));
	at = strstr(text, "\nCapEff:");
	if (at) {
		out->caps = strtoull(at + strlen("\nCapEff:"), NULL, 16);
		out->caps_known = true;
	}
}

uint64_t pm_perf_env_max_hz(void)
{
	return read_number_file("/proc/sys/kernel/perf_event_max_sample_rate");
}

void pm_perf_env_read(struct pm_perf_env *out)
{
	struct pm_perf_env env = { 0 };
	char text[SMALL_FILE_MAX];
	struct rlimit limit;

	if (read_small_file_text("/proc/sys/kernel/perf_event_paranoid", text)) {
		env.paranoid = atoi(text);
		env.paranoid_known = true;
	}
	env_read_status(&env);
	env.mlock_kb = read_number_file("/proc/sys/kernel/perf_event_mlock_kb");
	env.max_hz = pm_perf_env_max_hz();
	/* "none [integrity] confidentiality" */
	if (read_small_file_text("/sys/kernel/security/lockdown", text)) {
		if (strstr(text, "[confidentiality]"))
			env.lockdown = PM_LOCKDOWN_CONFIDENTIALITY;
		else if (strstr(text, "[integrity]"))
			env.lockdown = PM_LOCKDOWN_INTEGRITY;
		else
			env.lockdown = PM_LOCKDOWN_OFF;
	}
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
		if (limit.rlim_cur == RLIM_INFINITY)
			env.memlock_bytes = UINT64_MAX;
		else
			env.memlock_bytes = limit.rlim_cur;
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		env.nofile_hard = limit.rlim_max;
	*out = env;
}

static bool env_has_capability(const struct pm_perf_env *env, int bit)
{
	return env->caps_known && (env->caps >> bit & 1);
}

bool pm_perf_env_admin(const struct pm_perf_env *env)
{
	return env_has_capability(env, CAP_SYS_ADMIN_BIT);
}

bool pm_perf_env_perfmon(const struct pm_perf_env *env)
{
	return env_has_capability(env, CAP_PERFMON_BIT) || pm_perf_env_admin(env);
}

bool pm_perf_env_unlimited_rings(const struct pm_perf_env *env)
{
	return env_has_capability(env, CAP_IPC_LOCK_BIT) ||
	       (env->paranoid_known && env->paranoid < 0);
}

/* Reads a decimal number at *at. Returns false if there is none or if it cannot be a
 * CPU. */
static bool take_cpu_number(const char **at, uint32_t *out)
{
	uint32_t value = 0;

	if (**at < '0' || **at > '9')
		return false;
	while (**at >= '0' && **at <= '9') {
		value = value * 10 + (uint32_t)(*(*at)++ - '0');
		if (value >= CPUS_MAX)
			return false;
	}
	*out = value;
	return true;
}

void pm_cpu_list_release(pm_cpu_list *list)
{
	pm_vec_release(list);
}

int pm_cpu_list_parse(const char *text, pm_cpu_list *out)
{
	pm_cpu_list list PM_CLEANUP(pm_cpu_list_release) = { 0 };
	const char *at = text;

	for (;;) {
		uint32_t first, last;

		if (!take_cpu_number(&at, &first))
			return -EINVAL;
		last = first;
		if (*at == '-' && (at++, !take_cpu_number(&at, &last)))
			return -EINVAL;
		/* CPUs must be in ascending order, which bounds the length of the
		 * list. */
		if (last < first || (list.len > 0 && first <= list.data[list.len - 1]))
			return -EINVAL;
		for (uint32_t cpu = first; cpu <= last; cpu++) {
			if (pm_vec_push(&list, cpu) < 0)
				return -ENOMEM;
		}
		if (*at == '\0' || *at == '\n')
			break;
		if (*at++ != ',')
			return -EINVAL;
	}
	*out = list;
	list = (pm_cpu_list){ 0 };
	return 0;
}

int pm_cpu_list_online(pm_cpu_list *out)
{
	char text[SMALL_FILE_MAX];
	pm_cpu_list list = { 0 };
	long cpus;

	if (read_small_file_text("/sys/devices/system/cpu/online", text) &&
	    pm_cpu_list_parse(text, out) == 0)
		return 0;
	/* If a container hides /sys, CPUs are most likely numbered without gaps. */
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	for (long cpu = 0; cpu < cpus && cpu < CPUS_MAX; cpu++) {
		if (pm_vec_push(&list, (uint32_t)cpu) < 0) {
			pm_vec_release(&list);
			return -ENOMEM;
		}
	}
	*out = list;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* A recording while it is being opened: shared by the files that open, degrade and size. */
#pragma once

#include "perf-internal.h"

#include <sys/syscall.h>

struct pm_perf {
	PM_VEC(struct pm_perf_event) events;
	pm_cpu_list cpus;
	int *fds; /* [cpu * events.len + event], -1: none */
	PM_VEC(int) poll_fds;
	struct pm_event_ids ids;
	struct pm_merge merge;
	struct pm_perf_notes notes;
	struct pm_perf_features features;
	struct pm_attr_shape shape;
	struct pm_perf_env env;
	size_t ring_bytes;
	bool nofile_raised, rate_noted;
};

/* Adds a sentence to the notes. */
void pm_perf_note(struct pm_perf *perf, const char *format, ...) PM_PRINTF(2, 3);

static inline int pm_sys_perf_event_open(const struct perf_event_attr *attr, pid_t pid,
					 int cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

/* An event that no code in user space causes directly: with :u there are no samples. */
bool pm_perf_in_kernel_only(const struct pm_event_spec *spec);
/* Lowers the rate of @event to @max_hz (0: unknown). True when that changed it. */
bool pm_perf_clamp_rate(struct pm_perf *perf, struct pm_perf_event *event,
			uint64_t max_hz);
/* After errno @code of perf_event_open(2): changes one thing that may help. True when
 * another try is worth it. @first_cpu: the event was not open anywhere yet. */
bool pm_perf_degrade(struct pm_perf *perf, struct pm_perf_event *event, int code,
		     bool first_cpu);
/* When nothing helps. Returns -code. */
int pm_perf_refused(struct pm_perf *perf, const struct pm_perf_event *event, int code,
		    struct pm_error *err);

/* Sets ring_bytes. @explicit_bytes: what the user asked for, 0: nothing. */
int pm_perf_plan_rings(struct pm_perf *perf, const struct pm_perf_options *options,
		       size_t *explicit_bytes, struct pm_error *err);
/* Half of the size, when two records still fit. */
bool pm_perf_shrink_rings(struct pm_perf *perf, const struct pm_perf_options *options);
/* Tells when the rings became smaller than is good. */
void pm_perf_note_rings(struct pm_perf *perf, const struct pm_perf_options *options,
			size_t explicit_bytes);

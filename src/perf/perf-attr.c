/* SPDX-License-Identifier: MIT */
#include "perf-internal.h"

#include <string.h>
#include <time.h>

struct pm_record_layout pm_attr_layout(enum pm_call_graph call_graph)
{
	struct pm_record_layout layout = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_IDENTIFIER,
	};

	if (call_graph != PM_CALL_GRAPH_NONE)
		layout.sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (call_graph == PM_CALL_GRAPH_DWARF && pm_regs_native()) {
		layout.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		layout.regs_user = pm_regs_native()->mask;
	}
	return layout;
}

/* Which privilege levels count, and which of them have a callchain. */
static void fill_levels(const struct pm_attr_request *request,
			struct perf_event_attr *attr)
{
	const struct pm_event_spec *spec = &request->event->actual;
	bool kernel = spec->kernel && !request->event->kernel_dropped;

	attr->exclude_user = !spec->user;
	attr->exclude_kernel = !kernel;
	attr->exclude_hv = 1; /* nobody could name what runs there */
	/* Guests' addresses mean nothing here. Software events have no guests, and PMUs that
	 * cannot exclude refuse the bit. */
	attr->exclude_guest =
		spec->type != PERF_TYPE_SOFTWARE && request->features->exclude_guest;
	attr->exclude_callchain_kernel = !kernel;
	/* With DWARF user frames come from the copied stack; the kernel's own walk over
	 * frame pointers would only add time and wrong frames. */
	attr->exclude_callchain_user = request->call_graph == PM_CALL_GRAPH_DWARF;
}

void pm_attr_fill(const struct pm_attr_request *request, struct perf_event_attr *ret)
{
	const struct pm_perf_event *event = request->event;
	struct pm_record_layout layout = pm_attr_layout(request->call_graph);
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.type = event->actual.type;
	attr.size = sizeof(attr);
	attr.config = event->actual.config;
	attr.freq = event->by_frequency;
	if (event->by_frequency)
		attr.sample_freq = event->rate;
	else
		attr.sample_period = event->rate;
	attr.sample_type = layout.sample_type;
	attr.sample_regs_user = layout.regs_user;
	if (layout.sample_type & PERF_SAMPLE_STACK_USER)
		attr.sample_stack_user = request->stack_bytes;
	attr.read_format = PERF_FORMAT_ID;
	if (request->features->format_lost)
		attr.read_format |= PERF_FORMAT_LOST;
	attr.disabled = 1;
	attr.enable_on_exec = 1;
	attr.inherit = 1;
	attr.sample_id_all = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.watermark = 1;
	attr.wakeup_watermark = (uint32_t)(request->ring_bytes / 4);
	fill_levels(request, &attr);
	if (request->first) {
		attr.mmap = 1;
		attr.mmap2 = 1;
		attr.build_id = request->features->build_id;
		attr.comm = 1;
		attr.comm_exec = 1;
		attr.task = 1;
	}
	*ret = attr;
}

/* SPDX-License-Identifier: MIT */
#include "perf-internal.h"

#include <string.h>
#include <time.h>

void pm_attr_shape_of(const struct pm_event_spec *specs, size_t len,
		      enum pm_call_graph call_graph, uint64_t branches,
		      struct pm_attr_shape *out)
{
	struct pm_attr_shape shape = { .call_graph = call_graph, .branches = branches };

	for (size_t i = 0; i < len; i++) {
		const struct pm_event_spec *spec = &specs[i];

		shape.raw |= spec->kind == PM_EVENT_TRACEPOINT ||
			     spec->kind == PM_EVENT_UPROBE ||
			     spec->kind == PM_EVENT_KPROBE;
		shape.address |= spec->kind == PM_EVENT_BREAKPOINT ||
				 (spec->precise > 0 && strstr(spec->name, "mem-"));
		shape.read |= spec->read_group;
	}
	*out = shape;
}

static struct pm_record_layout attr_hits_layout(bool with_stack)
{
	const struct pm_regs_arch *arch = pm_regs_native();
	struct pm_record_layout layout = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER |
			       PERF_SAMPLE_READ,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
			       PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	if (!arch)
		return layout;
	layout.sample_type |= PERF_SAMPLE_REGS_USER;
	if (with_stack)
		layout.regs_user = arch->mask;
	else
		layout.regs_user = (uint64_t)1 << arch->sp;
	if (arch->flags != PM_NO_REG)
		layout.regs_user |= (uint64_t)1 << arch->flags;
	if (with_stack)
		layout.sample_type |= PERF_SAMPLE_STACK_USER;
	return layout;
}

static struct pm_record_layout attr_sample_layout(const struct pm_attr_shape *shape)
{
	struct pm_record_layout layout = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_IDENTIFIER,
		.read_format = PERF_FORMAT_ID,
	};

	if (shape->call_graph != PM_CALL_GRAPH_NONE)
		layout.sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (shape->call_graph == PM_CALL_GRAPH_DWARF && pm_regs_native()) {
		layout.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		layout.regs_user = pm_regs_native()->mask;
	}
	if (shape->branches)
		layout.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	if (shape->raw)
		layout.sample_type |= PERF_SAMPLE_RAW;
	if (shape->address)
		layout.sample_type |= PERF_SAMPLE_ADDR;
	if (shape->read) {
		layout.sample_type |= PERF_SAMPLE_READ;
		layout.read_format |= PERF_FORMAT_GROUP;
	}
	return layout;
}

struct pm_record_layout pm_attr_layout(const struct pm_attr_shape *shape)
{
	if (shape->hits)
		return attr_hits_layout(shape->call_graph == PM_CALL_GRAPH_DWARF);
	return attr_sample_layout(shape);
}

/* The kernel's software events do not distinguish guests. */
static bool does_event_know_guests(const struct pm_event_spec *spec)
{
	if (spec->type == PERF_TYPE_SOFTWARE || spec->type == PERF_TYPE_TRACEPOINT)
		return false;
	return spec->kind == PM_EVENT_HARDWARE || spec->kind == PM_EVENT_CACHE ||
	       spec->kind == PM_EVENT_RAW || spec->kind == PM_EVENT_PMU;
}

/* Sets which privilege levels count, and which of them have a callchain. */
static void attr_fill_levels(const struct pm_attr_request *request,
			     struct perf_event_attr *attr)
{
	const struct pm_event_spec *spec = &request->event->actual;
	bool kernel = spec->kernel && !request->event->kernel_dropped;

	attr->exclude_user = !spec->user;
	attr->exclude_kernel = !kernel;
	/* A user who may not see the kernel may not see the hypervisor either. */
	attr->exclude_hv = !spec->hypervisor || request->event->kernel_dropped;
	attr->exclude_idle = spec->no_idle;
	/* Guest addresses cannot be resolved here. Software events do not distinguish
	 * guests, and PMUs without support for exclusion refuse the bit. */
	if (spec->host_only || spec->guest_only) {
		attr->exclude_host = !spec->host_only;
		attr->exclude_guest = !spec->guest_only;
	} else {
		attr->exclude_guest =
			does_event_know_guests(spec) && request->features->exclude_guest;
	}
	attr->exclude_callchain_kernel = !kernel;
	/* With DWARF, user frames come from the copied stack, and the kernel's own walk
	 * along frame pointers would only cost time. But with `returns` it is needed for
	 * callers on the part of the stack that is not copied. */
	attr->exclude_callchain_user = request->shape.call_graph == PM_CALL_GRAPH_DWARF &&
				       !request->shape.returns;
}

/* Sets what the event counts: a counter, or a place in memory or code. */
static void attr_fill_event(const struct pm_event_spec *spec,
			    struct perf_event_attr *attr)
{
	attr->type = spec->type;
	attr->config = spec->config;
	attr->precise_ip = spec->precise & 3u;
	if (spec->kind == PM_EVENT_BREAKPOINT) {
		attr->bp_type = spec->bp_type;
		attr->bp_addr = spec->config1;
		attr->bp_len = spec->config2;
		return;
	}
	attr->config1 = spec->config1;
	attr->config2 = spec->config2;
	if (spec->kind == PM_EVENT_UPROBE || spec->kind == PM_EVENT_KPROBE)
		attr->config1 = (uintptr_t)spec->path;
}

static void attr_fill_rate(const struct pm_attr_request *request,
			   struct perf_event_attr *attr)
{
	const struct pm_perf_event *event = request->event;

	if (request->counted)
		return;
	attr->freq = event->by_frequency;
	if (event->by_frequency)
		attr->sample_freq = event->rate;
	else
		attr->sample_period = event->rate;
}

uint64_t pm_attr_unsaid_period(const struct pm_perf_event *event)
{
	const struct pm_event_spec *spec = &event->actual;
	bool clock = spec->type == PERF_TYPE_SOFTWARE &&
		     (spec->config == PERF_COUNT_SW_CPU_CLOCK ||
		      spec->config == PERF_COUNT_SW_TASK_CLOCK);
	bool of_kernel = spec->type == PERF_TYPE_SOFTWARE ||
			 spec->type == PERF_TYPE_TRACEPOINT ||
			 spec->kind == PM_EVENT_BREAKPOINT ||
			 spec->kind == PM_EVENT_UPROBE || spec->kind == PM_EVENT_KPROBE;

	if (of_kernel && !clock && !event->by_frequency && event->rate > 1)
		return event->rate;
	return 0;
}

/* Sets when the event counts and whether it is inherited, for samples and counts
 * alike. */
static void attr_fill_life(const struct pm_attr_request *request,
			   struct perf_event_attr *attr)
{
	const struct pm_event_spec *spec = &request->event->actual;

	/* A member counts while its leader does, and shares the leader's reservation of
	 * the PMU. */
	attr->disabled = !request->member;
	attr->enable_on_exec = !request->member && !request->no_enable_on_exec;
	attr->pinned = spec->pinned && !request->member;
	attr->exclusive = spec->exclusive && !request->member;
	attr->inherit = !request->no_inherit;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
}

void pm_attr_fill(const struct pm_attr_request *request, struct perf_event_attr *out)
{
	struct pm_record_layout layout = pm_attr_layout(&request->shape);
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr_fill_event(&request->event->actual, &attr);
	attr_fill_rate(request, &attr);
	attr.sample_type = layout.sample_type;
	if (pm_attr_unsaid_period(request->event))
		attr.sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
	attr.sample_regs_user = layout.regs_user;
	if (layout.sample_type & PERF_SAMPLE_STACK_USER)
		attr.sample_stack_user = request->stack_bytes;
	attr.branch_sample_type = request->shape.branches;
	attr.read_format = layout.read_format;
	if (request->features->format_lost)
		attr.read_format |= PERF_FORMAT_LOST;
	attr_fill_life(request, &attr);
	/* On older kernels, perf_output_read() does not support inherited events. */
	if (request->shape.read && !request->features->inherit_read)
		attr.inherit = 0;
	attr.inherit_thread = attr.inherit && request->features->inherit_thread;
	attr.watermark = 1;
	attr.wakeup_watermark = (uint32_t)(request->ring_bytes / 4);
	attr.write_backward = request->overwrite;
	attr_fill_levels(request, &attr);
	if (request->first) {
		attr.mmap = 1;
		attr.mmap2 = 1;
		attr.comm = 1;
		attr.comm_exec = 1;
		attr.task = 1;
		attr.context_switch = request->switches;
	}
	*out = attr;
}

struct pm_record_layout pm_attr_counter_layout(bool read_group)
{
	return (struct pm_record_layout){
		.sample_type =
			PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID |
			       (read_group ? PERF_FORMAT_GROUP : 0),
	};
}

void pm_attr_fill_counter(const struct pm_attr_request *request,
			  struct perf_event_attr *out)
{
	struct pm_record_layout layout = pm_attr_counter_layout(request->read_group);
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr_fill_event(&request->event->actual, &attr);
	/* Only samples can be precise, and only sampling events accept the bits. */
	attr.precise_ip = 0;
	attr.sample_type = layout.sample_type;
	attr.read_format = layout.read_format;
	attr_fill_life(request, &attr);
	attr.inherit_stat = request->tell_ended;
	attr_fill_levels(request, &attr);
	attr.exclude_callchain_kernel = 0;
	*out = attr;
}

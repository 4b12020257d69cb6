/* SPDX-License-Identifier: MIT */
/*
 * Prints the perf_event_attr of each event of a specification, for a comparison with
 * perf's. Usage: print-attr [--devices FOLDER] SPECIFICATION
 *
 * Prints one event per line, as NAME=VALUE with spaces between; a refusal goes to stderr,
 * with exit status 1.
 */
#include <stdio.h>
#include <string.h>

#include "src/perf/perf-internal.h"

/* The default of `perf record` without -F and -c. */
enum {
	DEFAULT_HZ = 4000,
};

static void print(const struct pm_event_specs *specs, size_t index)
{
	const struct pm_event_spec *spec = &specs->list.data[index];
	bool each = spec->kind == PM_EVENT_TRACEPOINT ||
		    spec->kind == PM_EVENT_BREAKPOINT || spec->kind == PM_EVENT_UPROBE ||
		    spec->kind == PM_EVENT_KPROBE;
	struct pm_perf_event event = {
		.requested = *spec,
		.actual = *spec,
		.by_frequency = spec->rate_given ? spec->by_frequency : !each,
		.rate = spec->rate_given ? spec->rate
			: each           ? 1
					 : DEFAULT_HZ,
	};
	struct pm_perf_features features = { true, true, true };
	struct pm_attr_request request = {
		.event = &event,
		.features = &features,
		.first = index == 0,
		.member = spec->leader != index,
	};
	struct perf_event_attr attr;

	request.counted = request.member && specs->list.data[spec->leader].read_group;
	pm_attr_shape_of(specs->list.data, specs->list.len, PM_CALL_GRAPH_NONE, 0,
			 &request.shape);
	pm_attr_fill(&request, &attr);
	printf("place=%s type=%u config=0x%llx config1=0x%llx config2=0x%llx",
	       spec->place.wanted ? "words" : "known", attr.type,
	       (unsigned long long)attr.config,
	       attr.type == PERF_TYPE_BREAKPOINT ? 0 : (unsigned long long)attr.config1,
	       attr.type == PERF_TYPE_BREAKPOINT ? 0 : (unsigned long long)attr.config2);
	printf(" freq=%u rate=%llu exclude_user=%u exclude_kernel=%u exclude_hv=%u "
	       "exclude_idle=%u exclude_host=%u exclude_guest=%u precise_ip=%u pinned=%u "
	       "exclusive=%u disabled=%u read=%d group=%d",
	       attr.freq, (unsigned long long)attr.sample_period, attr.exclude_user,
	       attr.exclude_kernel, attr.exclude_hv, attr.exclude_idle, attr.exclude_host,
	       attr.exclude_guest, attr.precise_ip, attr.pinned, attr.exclusive,
	       attr.disabled, (attr.sample_type & PERF_SAMPLE_READ) != 0,
	       (attr.read_format & PERF_FORMAT_GROUP) != 0);
	if (attr.type == PERF_TYPE_BREAKPOINT)
		printf(" bp_type=%u bp_addr=0x%llx bp_len=0x%llx", attr.bp_type,
		       (unsigned long long)attr.bp_addr, (unsigned long long)attr.bp_len);
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct pm_event_sources sources = { .devices = "/sys/bus/event_source/devices",
					    .tracefs = true,
					    .libpfm = true };
	struct pm_event_specs specs PM_CLEANUP(pm_event_specs_release) = { 0 };
	struct pm_error err;

	if (argc == 4 && strcmp(argv[1], "--devices") == 0) {
		sources =
			(struct pm_event_sources){ .devices = argv[2], .tracefs = true };
		argv += 2;
		argc -= 2;
	}
	if (argc != 2)
		return 2;
	if (pm_event_specs_parse_from(&sources, argv[1], &specs, &err) < 0) {
		pm_error_print(&err, "print-attr", stderr);
		return 1;
	}
	for (size_t i = 0; i < specs.list.len; i++)
		print(&specs, i);
	return 0;
}

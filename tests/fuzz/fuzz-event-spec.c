/* SPDX-License-Identifier: MIT */
/* The input is the text of -e; the same text is also tried as a list of CPUs. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "src/perf/perf-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever was understood must be understood again by its canonical name. */
static void check_spec(const struct pm_event_spec *spec)
{
	struct pm_event_specs again = { 0 };

	assert(spec->user || spec->kernel);
	assert(!spec->explicit_kernel || spec->kernel);
	if (pm_event_specs_parse(spec->name, &again, NULL) < 0)
		abort();
	assert(again.list.len == 1);
	assert(again.list.data[0].type == spec->type);
	assert(again.list.data[0].config == spec->config);
	assert(strcmp(again.list.data[0].name, spec->name) == 0);
	pm_event_specs_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pm_event_specs specs = { 0 };
	pm_cpu_list cpus = { 0 };
	struct pm_error err = { 0 };
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (pm_event_specs_parse(text, &specs, &err) == 0) {
		assert(specs.list.len > 0);
		for (size_t i = 0; i < specs.list.len; i++)
			check_spec(&specs.list.data[i]);
	} else {
		assert(err.code < 0 && err.text[0] != '\0');
		assert(specs.list.len == 0);
	}
	if (pm_cpu_list_parse(text, &cpus) == 0) {
		for (size_t i = 1; i < cpus.len; i++)
			assert(cpus.data[i] > cpus.data[i - 1]);
	}
	pm_cpu_list_release(&cpus);
	pm_event_specs_release(&specs);
	free(text);
	return 0;
}

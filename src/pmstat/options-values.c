/* SPDX-License-Identifier: MIT */
/* Values of options, and messages about wrong ones. */
#include "options-parts.h"

#include <string.h>

enum {
	WARMUPS_MAX = 1000000,
	CALLERS_MAX = 127, /* frames of a stack; more are of no use */
};

/* The length of the first event in a list. Groups and PMUs contain commas, too. */
static size_t first_event_len(const char *text)
{
	bool slashes = false;
	size_t len = 0, depth = 0;

	for (; text[len] != '\0'; len++) {
		if (text[len] == '/')
			slashes = !slashes;
		else if (text[len] == '{')
			depth++;
		else if (text[len] == '}' && depth > 0)
			depth--;
		else if (text[len] == ',' && depth == 0 && !slashes)
			break;
	}
	return len;
}

static int add_simulated(struct pmstat_options *options, const char *text, size_t len,
			 struct pm_error *err)
{
	static const char all[] = "sim.costs";
	char *name;
	int ret = 0;

	if (len == strlen(all) && strncasecmp(text, all, len) == 0) {
		for (size_t i = 0; ret == 0 && pm_sim_cost_name(i); i++)
			ret = add_simulated(options, pm_sim_cost_name(i),
					    strlen(pm_sim_cost_name(i)), err);
		return ret;
	}
	name = strndup(text, len);
	if (name && pm_vec_push(&options->simulated, name) == 0)
		return 0;
	free(name);
	return pm_error_set(err, -ENOMEM, "out of memory");
}

/* Separates the simulated events from the kernel's. */
int pmstat_parse_events(struct pmstat_options *options, const char *text,
			struct pm_error *err)
{
	struct pm_str others = { 0 };
	int ret = 0;

	if (!strstr(text, "sim."))
		return pm_event_specs_parse(text, &options->specs, err);
	for (const char *rest = text; ret == 0;) {
		size_t len = first_event_len(rest);

		if (pm_sim_event_is(rest))
			ret = add_simulated(options, rest, len, err);
		else {
			pm_str_separate(&others, ",");
			pm_str_printf(&others, "%.*s", (int)len, rest);
		}
		rest += len;
		if (*rest++ == '\0')
			break;
	}
	if (ret == 0 && others.failed)
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	if (ret == 0 && others.data)
		ret = pm_event_specs_parse(others.data, &options->specs, err);
	pm_str_release(&others);
	return ret;
}

int pmstat_parse_engine(enum pm_count_engine *out, const char *text, struct pm_error *err)
{
	static const char *const names[] = {
		[PM_COUNT_ENGINE_AUTO] = "auto",
		[PM_COUNT_ENGINE_UPROBE] = "uprobe",
		[PM_COUNT_ENGINE_PTRACE] = "ptrace",
		[PM_COUNT_ENGINE_CALLGRIND] = "callgrind",
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*out = (enum pm_count_engine)i;
		return 0;
	}
	return pmstat_usage(
		err, "--engine %s: expected auto, uprobe, ptrace or callgrind", text);
}

int pmstat_parse_calls_from(uint32_t *out, const char *text, struct pm_error *err)
{
	uint64_t callers = 1;

	if (text &&
	    (!pm_parse_u64(text, &callers) || callers == 0 || callers > CALLERS_MAX))
		return pmstat_usage(err,
				    "--calls-from=%s: expected a number of callers, 1 to "
				    "%d",
				    text, CALLERS_MAX);
	*out = (uint32_t)callers;
	return 0;
}

int pmstat_parse_per(enum pm_counters_by *out, const char *text, struct pm_error *err)
{
	if (strcmp(text, "thread") == 0)
		*out = PM_COUNTERS_BY_THREAD;
	else if (strcmp(text, "cpu") == 0)
		*out = PM_COUNTERS_BY_CPU;
	else
		return pmstat_usage(err, "--per %s: expected thread or cpu", text);
	return 0;
}

int pmstat_parse_warmups(uint64_t *out, const char *text, struct pm_error *err)
{
	uint64_t value;

	if (!pm_parse_u64(text, &value) || value > WARMUPS_MAX)
		return pmstat_usage(err, "-w %s: expected a number of runs", text);
	*out = value;
	return 0;
}

int pmstat_parse_ms(uint64_t *out, char option, const char *text, struct pm_error *err)
{
	uint64_t ms;

	if (!pm_parse_u64(text, &ms) || ms == 0 || ms > INT32_MAX)
		return pmstat_usage(err,
				    "-%c %s: expected a number of milliseconds, at least "
				    "1",
				    option, text);
	*out = ms;
	return 0;
}

int pmstat_parse_timeout(uint64_t *ret_ns, const char *text, struct pm_error *err)
{
	uint64_t ms;

	if (!pm_parse_u64(text, &ms))
		return pm_parse_duration(ret_ns, "--timeout", text, "pmstat", err);
	if (ms == 0 || ms > INT32_MAX)
		return pmstat_usage(err,
				    "--timeout %s: expected a time, as 10s or 500ms; a "
				    "bare number counts milliseconds",
				    text);
	*ret_ns = ms * 1000000;
	return 0;
}

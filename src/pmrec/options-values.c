/* SPDX-License-Identifier: MIT */
#include "options-parts.h"

#include <linux/perf_event.h>
#include <string.h>

enum {
	REALTIME_MAX = 99, /* sched(7) */
};

int pm_rec_parse_delay(struct pm_rec_options *options, const char *text,
		       struct pm_error *err)
{
	uint64_t ms;

	options->wait_for_control = strcmp(text, "-1") == 0;
	if (options->wait_for_control)
		return 0;
	if (!pm_parse_u64(text, &ms) || ms > INT32_MAX)
		return pm_rec_usage(
			err,
			"-D %s: expected a number of milliseconds, or -1 to begin "
			"when --control says enable",
			text);
	options->delay_ms = ms;
	return 0;
}

int pm_rec_parse_control(const char *text, struct pm_error *err)
{
	const char *names = text + strcspn(text, ":");
	size_t first;
	uint64_t fd;

	if (strncmp(text, "fifo:", 5) == 0) {
		first = strcspn(++names, ",");
		if (first > 0 && (names[first] == '\0' || names[first + 1] != '\0'))
			return 0;
	} else if (strncmp(text, "fd:", 3) == 0) {
		names++;
		if (pm_parse_u64_part(&names, &fd) && fd <= INT32_MAX &&
		    (*names == '\0' ||
		     (names++, pm_parse_u64_part(&names, &fd) && fd <= INT32_MAX &&
				       *names == '\0')))
			return 0;
	}
	return pm_rec_usage(
		err, "--control %s: expected fifo:PATH[,ACK-PATH] or fd:NUMBER[,ACK]",
		text);
}

int pm_rec_parse_realtime(int *out, const char *text, struct pm_error *err)
{
	uint64_t priority;

	if (!pm_parse_u64(text, &priority) || priority > REALTIME_MAX)
		return pm_rec_usage(err,
				    "-r %s: expected a priority, 1 to %d, or 0 for "
				    "none",
				    text, REALTIME_MAX);
	if (priority > 0)
		*out = (int)priority;
	else
		*out = -1;
	return 0;
}

/* The names of perf-record(1). */
static const struct {
	const char *name;
	uint64_t bit;
} branch_names[] = {
	{ "any", PERF_SAMPLE_BRANCH_ANY },
	{ "any_call", PERF_SAMPLE_BRANCH_ANY_CALL },
	{ "any_ret", PERF_SAMPLE_BRANCH_ANY_RETURN },
	{ "ind_call", PERF_SAMPLE_BRANCH_IND_CALL },
	{ "ind_jmp", PERF_SAMPLE_BRANCH_IND_JUMP },
	{ "call", PERF_SAMPLE_BRANCH_CALL },
	{ "stack", PERF_SAMPLE_BRANCH_CALL_STACK },
	{ "cond", PERF_SAMPLE_BRANCH_COND },
	{ "in_tx", PERF_SAMPLE_BRANCH_IN_TX },
	{ "no_tx", PERF_SAMPLE_BRANCH_NO_TX },
	{ "abort_tx", PERF_SAMPLE_BRANCH_ABORT_TX },
	{ "save_type", PERF_SAMPLE_BRANCH_TYPE_SAVE },
	{ "u", PERF_SAMPLE_BRANCH_USER },
	{ "k", PERF_SAMPLE_BRANCH_KERNEL },
	{ "hv", PERF_SAMPLE_BRANCH_HV },
};

int pm_rec_parse_branches(uint64_t *out, const char *text, struct pm_error *err)
{
	const uint64_t levels = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL |
				PERF_SAMPLE_BRANCH_HV;
	uint64_t branches = 0;

	for (const char *rest = text;; rest++) {
		size_t len = strcspn(rest, ",");
		uint64_t bit = 0;

		for (size_t i = 0; i < PM_ARRAY_LEN(branch_names); i++)
			if (strlen(branch_names[i].name) == len &&
			    memcmp(branch_names[i].name, rest, len) == 0)
				bit = branch_names[i].bit;
		if (bit == 0) {
			return pm_rec_usage(
				err,
				"-j: unknown kind of branch \"%.*s\"; known are "
				"any, any_call, any_ret, ind_call, ind_jmp, call, "
				"stack, cond, in_tx, no_tx, abort_tx, save_type, u, k, "
				"hv",
				(int)PM_MIN(len, 40), rest);
		}
		branches |= bit;
		rest += len;
		if (*rest == '\0')
			break;
	}
	/* perf_event_open(2): without a kind, nothing is recorded. */
	if ((branches & ~levels & ~(uint64_t)PERF_SAMPLE_BRANCH_TYPE_SAVE) == 0)
		branches |= PERF_SAMPLE_BRANCH_ANY;
	*out = branches;
	return 0;
}

int pm_rec_parse_filter(struct pm_rec_options *options, size_t first, const char *text,
			struct pm_error *err)
{
	struct pm_event_specs *specs = &options->specs;
	const char *kept;

	if (first == specs->list.len || text[0] == '\0')
		return pm_rec_usage(
			err, text[0] ? "--filter belongs behind the -e that it filters"
				     : "--filter: it needs a text, as 'pid == 123'");
	kept = pm_event_specs_keep(specs, text, strlen(text));
	if (!kept)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = first; i < specs->list.len; i++) {
		struct pm_event_spec *spec = &specs->list.data[i];

		if (spec->kind < PM_EVENT_TRACEPOINT)
			return pm_rec_usage(
				err, "--filter: %s is no tracepoint and has no fields",
				spec->requested);
		spec->filter = kept;
	}
	return 0;
}

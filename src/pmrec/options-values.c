/* SPDX-License-Identifier: MIT */
#include "options-internal.h"

#include <linux/perf_event.h>
#include <string.h>

enum {
	TASKS_MAX = 100000, /* more than a list that somebody means to type */
	REALTIME_MAX = 99, /* sched(7) */
};

int pm_rec_usage(struct pm_error *err)
{
	pm_error_fix(err, "pmrec --help");
	return -EINVAL;
}

/* The number in front of a comma or the end. */
static bool parse_part(const char **text, uint64_t *ret)
{
	size_t len = strcspn(*text, ",");
	char part[24];

	if (len >= sizeof(part))
		return false;
	memcpy(part, *text, len);
	part[len] = '\0';
	*text += len;
	return pm_parse_u64(part, ret);
}

int pm_rec_parse_tasks(struct pm_task_list *ret, char option, const char *text,
		       struct pm_error *err)
{
	const char *rest = text;
	uint64_t number;

	for (;; rest++) {
		if (!parse_part(&rest, &number) || number == 0 || number > INT32_MAX ||
		    ret->list.len == TASKS_MAX) {
			pm_error_set(err, -EINVAL, "-%c %s: expected the number of a %s",
				     option, text, option == 'p' ? "process" : "thread");
			return pm_rec_usage(err);
		}
		if (pm_vec_push(&ret->list, (pid_t)number) < 0)
			return pm_error_set(err, -ENOMEM, "out of memory");
		if (*rest == '\0')
			return 0;
	}
}

int pm_rec_parse_cpus(const char *text, struct pm_error *err)
{
	const char *rest = text;
	bool valid = true;

	/* Whether these CPUs are there, only the kernel can tell. */
	while (valid) {
		size_t len = strspn(rest, "0123456789");

		valid = len > 0 && len < 6;
		rest += len;
		if (valid && *rest == '-') {
			len = strspn(++rest, "0123456789");
			valid = len > 0 && len < 6;
			rest += len;
		}
		if (*rest != ',')
			break;
		rest++;
	}
	if (valid && *rest == '\0')
		return 0;
	pm_error_set(err, -EINVAL, "-C %s: expected numbers of CPUs, as 0,2-4", text);
	return pm_rec_usage(err);
}

int pm_rec_parse_name(const char *option, const char *what, const char *text,
		      struct pm_error *err)
{
	if (text[0] != '\0')
		return 0;
	pm_error_set(err, -EINVAL, "%s: expected the name of %s", option, what);
	return pm_rec_usage(err);
}

int pm_rec_parse_delay(struct pm_rec_options *options, const char *text,
		       struct pm_error *err)
{
	uint64_t ms;

	options->wait_for_control = strcmp(text, "-1") == 0;
	if (options->wait_for_control)
		return 0;
	if (!pm_parse_u64(text, &ms) || ms > INT32_MAX) {
		pm_error_set(err, -EINVAL,
			     "-D %s: expected a number of milliseconds, or -1 to begin "
			     "when --control says enable",
			     text);
		return pm_rec_usage(err);
	}
	options->delay_ms = ms;
	return 0;
}

/* A number with a point perhaps, without sign or exponent. @rest is what stands behind. */
static bool parse_decimal(const char *text, double *ret, const char **rest)
{
	size_t whole = strspn(text, "0123456789");
	size_t len = whole;
	double scale = 1, value = 0;

	if (text[len] == '.')
		len += 1 + strspn(text + len + 1, "0123456789");
	if (whole == 0 || len > 24)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (i == whole)
			continue;
		if (i > whole)
			scale /= 10;
		if (i > whole)
			value += scale * (text[i] - '0');
		else
			value = value * 10 + (text[i] - '0');
	}
	*ret = value;
	*rest = text + len;
	return true;
}

int pm_rec_parse_duration(uint64_t *ret_ns, const char *text, struct pm_error *err)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "", 1e9 },   { "s", 1e9 },    { "ms", 1e6 },  { "us", 1e3 },
		      { "m", 60e9 }, { "min", 60e9 }, { "h", 3600e9 } };
	const char *unit;
	double value;

	if (parse_decimal(text, &value, &unit)) {
		for (size_t i = 0; i < PM_ARRAY_LEN(units); i++) {
			double ns = value * units[i].ns;

			if (strcmp(unit, units[i].name) != 0 || !(ns >= 1 && ns < 9e18))
				continue;
			*ret_ns = (uint64_t)(ns + 0.5);
			return 0;
		}
	}
	pm_error_set(err, -EINVAL, "--duration %s: expected a time, as 10s, 500ms or 2m",
		     text);
	return pm_rec_usage(err);
}

int pm_rec_parse_size(uint64_t *ret_bytes, const char *text, struct pm_error *err)
{
	static const char units[] = "BKMGT";
	const char *unit;
	double value;

	if (parse_decimal(text, &value, &unit)) {
		const char *known = *unit ? strchr(units, *unit & ~0x20) : units;
		double bytes = known ? value * (double)(1ull << 10 * (known - units)) : 0;

		if (known && (*unit == '\0' || unit[1] == '\0') && bytes >= 1 &&
		    bytes < 9e18) {
			*ret_bytes = (uint64_t)bytes;
			return 0;
		}
	}
	pm_error_set(err, -EINVAL, "--max-size %s: expected a number of bytes, as 100M",
		     text);
	return pm_rec_usage(err);
}

int pm_rec_parse_count(uint64_t *ret, const char *option, const char *text,
		       struct pm_error *err)
{
	uint64_t value;

	if (!pm_parse_u64(text, &value) || value == 0 || value > INT64_MAX) {
		pm_error_set(err, -EINVAL, "%s %s: expected a number, at least 1", option,
			     text);
		return pm_rec_usage(err);
	}
	*ret = value;
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
		if (parse_part(&names, &fd) && fd <= INT32_MAX &&
		    (*names == '\0' ||
		     (names++,
		      parse_part(&names, &fd) && fd <= INT32_MAX && *names == '\0')))
			return 0;
	}
	pm_error_set(err, -EINVAL,
		     "--control %s: expected fifo:PATH[,ACK-PATH] or fd:NUMBER[,ACK]",
		     text);
	return pm_rec_usage(err);
}

int pm_rec_parse_realtime(int *ret, const char *text, struct pm_error *err)
{
	uint64_t priority;

	if (!pm_parse_u64(text, &priority) || priority > REALTIME_MAX) {
		pm_error_set(err, -EINVAL,
			     "-r %s: expected a priority, 1 to %d, or 0 for "
			     "none",
			     text, REALTIME_MAX);
		return pm_rec_usage(err);
	}
	*ret = priority > 0 ? (int)priority : -1;
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

int pm_rec_parse_branches(uint64_t *ret, const char *text, struct pm_error *err)
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
			pm_error_set(
				err, -EINVAL,
				"-j: unknown kind of branch \"%.*s\"; known are "
				"any, any_call, any_ret, ind_call, ind_jmp, call, "
				"stack, cond, in_tx, no_tx, abort_tx, save_type, u, k, "
				"hv",
				(int)(len < 40 ? len : 40), rest);
			return pm_rec_usage(err);
		}
		branches |= bit;
		rest += len;
		if (*rest == '\0')
			break;
	}
	/* perf_event_open(2): without a kind there is nothing to record. */
	if ((branches & ~levels & ~(uint64_t)PERF_SAMPLE_BRANCH_TYPE_SAVE) == 0)
		branches |= PERF_SAMPLE_BRANCH_ANY;
	*ret = branches;
	return 0;
}

int pm_rec_parse_filter(struct pm_rec_options *options, size_t first, const char *text,
			struct pm_error *err)
{
	struct pm_event_specs *specs = &options->specs;
	const char *kept;

	if (first == specs->list.len || text[0] == '\0') {
		pm_error_set(err, -EINVAL,
			     text[0] ? "--filter belongs behind the -e that it filters"
				     : "--filter: it needs a text, as 'pid == 123'");
		return pm_rec_usage(err);
	}
	kept = pm_event_specs_keep(specs, text, strlen(text));
	if (!kept)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = first; i < specs->list.len; i++) {
		struct pm_event_spec *spec = &specs->list.data[i];

		if (spec->kind < PM_EVENT_TRACEPOINT) {
			pm_error_set(err, -EINVAL,
				     "--filter: %s is no tracepoint and has no fields",
				     spec->requested);
			return pm_rec_usage(err);
		}
		spec->filter = kept;
	}
	return 0;
}

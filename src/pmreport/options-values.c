/* SPDX-License-Identifier: MIT */
/* Parses the values of options and reports invalid ones. */
#include "options-parts.h"

#include <string.h>

enum {
	WIDTH_MIN = 40,
	WIDTH_MAX = 100000,
	/* For one file: the debug information of a browser takes that long. */
	DEBUGINFOD_SECONDS = 60,
	DEBUGINFOD_SECONDS_MAX = 24 * 3600,
};

/* ---- values ------------------------------------------------------------------------------- */

static bool parse_key(const char *word, size_t len, enum pm_key *out)
{
	static const struct {
		const char *name;
		enum pm_key key;
	} keys[] = {
		{ "function", PM_KEY_FUNCTION },
		{ "module", PM_KEY_MODULE },
		{ "thread", PM_KEY_THREAD },
		{ "process", PM_KEY_PROCESS },
		{ "line", PM_KEY_LINE },
		{ "address", PM_KEY_ADDRESS },
		{ "comm", PM_KEY_COMM },
		{ "cpu", PM_KEY_CPU },
		{ "parallelism", PM_KEY_PARALLELISM },
		/* perf's names */
		{ "symbol", PM_KEY_FUNCTION },
		{ "sym", PM_KEY_FUNCTION },
		{ "dso", PM_KEY_MODULE },
		{ "tid", PM_KEY_THREAD },
		{ "pid", PM_KEY_PROCESS },
		{ "srcline", PM_KEY_LINE },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(keys); i++) {
		if (strlen(keys[i].name) == len && memcmp(keys[i].name, word, len) == 0) {
			*out = keys[i].key;
			return true;
		}
	}
	return false;
}

int pm_report_parse_keys(const char *text, struct pm_keys *out, struct pm_error *err)
{
	struct pm_keys keys = { .len = 0 };

	for (const char *word = text;; word++) {
		size_t len = strcspn(word, ",");
		enum pm_key key;

		if (!parse_key(word, len, &key))
			return pm_report_usage(
				err,
				"cannot make a table by '%.*s': it is function, module, "
				"thread, process, line, address, comm, cpu or "
				"parallelism",
				(int)len, word);
		for (uint32_t i = 0; i < keys.len; i++)
			if (keys.key[i] == key)
				return pm_report_usage(err, "--by has '%.*s' twice",
						       (int)len, word);
		if (keys.len == PM_KEYS_MAX)
			return pm_report_usage(err, "--by takes up to %d words",
					       PM_KEYS_MAX);
		keys.key[keys.len++] = key;
		word += len;
		if (*word == '\0')
			break;
	}
	*out = keys;
	return 0;
}

/* Parses a number from 0 to @max at *at and moves *at after it. strtod() would also
 * accept "inf" and hex. */
static bool parse_bounded_number(const char **at, double max, double *out)
{
	size_t len = strspn(*at, "0123456789.");
	char digits[32], *end;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, *at, len);
	digits[len] = '\0';
	*out = strtod(digits, &end);
	*at += len;
	return *end == '\0' && *out <= max;
}

int pm_report_parse_percentile(const char *text, struct pm_report_options *out,
			       struct pm_error *err)
{
	static const double usual[] = { 50, 90, 99 };
	size_t len = strcspn(text, ":");
	const char *at = text + len;
	struct pm_report *report = &out->report;

	if (len == 0 || len >= sizeof(out->field))
		return pm_report_usage(err, "--percentile has no name of a field: '%s'",
				       text);
	memcpy(out->field, text, len);
	out->field[len] = '\0';
	report->percentiles_len = 0;
	for (size_t i = 0; *at == '\0' && i < PM_ARRAY_LEN(usual); i++)
		report->percentiles[report->percentiles_len++] = usual[i];
	while (*at != '\0') {
		double percent;

		at++; /* the colon, or a comma */
		if (report->percentiles_len == PM_PERCENTILES_MAX)
			return pm_report_usage(err, "up to %d percentiles at a time",
					       PM_PERCENTILES_MAX);
		if (!parse_bounded_number(&at, 100, &percent) ||
		    (*at != ',' && *at != '\0'))
			return pm_report_usage(
				err, "'%s' is no list of percentiles from 0 to 100",
				text + len + 1);
		report->percentiles[report->percentiles_len++] = percent;
	}
	return 0;
}

int pm_report_parse_time(const char *text, struct pm_profile_options *out,
			 struct pm_error *err)
{
	const char *at = text;
	double from = 0, to = 1e12;
	bool from_percent = false, to_percent = false;

	if (*at != '-') {
		if (!parse_bounded_number(&at, 1e12, &from))
			goto bad;
		from_percent = *at == '%';
		at += from_percent;
	}
	if (*at++ != '-')
		goto bad;
	if (*at != '\0') {
		if (!parse_bounded_number(&at, 1e12, &to))
			goto bad;
		to_percent = *at == '%';
		at += to_percent;
		if (from_percent != to_percent && text[0] != '-')
			goto bad;
	} else if (at == text + 1) {
		goto bad;
	}
	if (*at != '\0' || from > to)
		goto bad;
	out->time_set = true;
	out->time_percent = from_percent || to_percent;
	out->time_from = from;
	out->time_to = to;
	return 0;
bad:
	return pm_report_usage(
		err,
		"'%s' is no range of time: it looks like 1.5-2 (seconds) or 10%%-20%%",
		text);
}

int pm_report_parse_limit(const char *text, double *out, struct pm_error *err)
{
	const char *at = text;
	double limit;

	if (!parse_bounded_number(&at, 100, &limit) ||
	    (*at != '\0' && strcmp(at, "%") != 0))
		return pm_report_usage(err, "'%s' is no percentage from 0 to 100", text);
	*out = limit;
	return 0;
}

int pm_report_parse_debuginfod(const char *text, unsigned *out, struct pm_error *err)
{
	uint64_t seconds = DEBUGINFOD_SECONDS;

	if (text && (!pm_parse_u64(text, &seconds) || seconds == 0 ||
		     seconds > DEBUGINFOD_SECONDS_MAX))
		return pm_report_usage(err,
				       "--debuginfod takes the seconds for a file, 1 to "
				       "%d, not '%s'",
				       DEBUGINFOD_SECONDS_MAX, text);
	*out = (unsigned)seconds;
	return 0;
}

int pm_report_parse_interval(const char *text, double *out, struct pm_error *err)
{
	const char *at = text;
	double seconds;

	if (!parse_bounded_number(&at, 3600, &seconds) || *at != '\0' || seconds < 0.1)
		return pm_report_usage(
			err, "'%s' is no interval: it is 0.1 to 3600 seconds", text);
	*out = seconds;
	return 0;
}

int pm_report_parse_width(const char *text, struct pm_report_options *out,
			  struct pm_error *err)
{
	uint64_t width;

	if (!pm_parse_u64(text, &width) || width > WIDTH_MAX ||
	    (width > 0 && width < WIDTH_MIN))
		return pm_report_usage(err, "'%s' is no width: it is 0 or from %d up",
				       text, WIDTH_MIN);
	out->report.width = (unsigned)width;
	out->width_set = true;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Counts for people: in units that need few digits. */
#include "stat-show.h"

#include <string.h>

enum {
	DIGITS = 4, /* significant digits */
	DECIMALS_MAX = 6,
	EXACT_BELOW = 10000000, /* larger plain counts get a suffix in tables */
};

struct step {
	double from; /* smallest number that it is used for */
	double factor;
	const char *suffix, *ascii;
};

static const struct step times[] = {
	{ 1e9, 1e-9, "s", "s" },
	{ 1e6, 1e-6, "ms", "ms" },
	{ 1e3, 1e-3, "µs", "us" },
	{ 0, 1, "ns", "ns" },
};
static const struct step sizes[] = {
	{ 0x1p40, 0x1p-40, "TiB", "TiB" },
	{ 0x1p30, 0x1p-30, "GiB", "GiB" },
	{ 0x1p20, 0x1p-20, "MiB", "MiB" },
	{ 0x1p10, 0x1p-10, "KiB", "KiB" },
	{ 0, 1, "B", "B" },
};
static const struct step counts[] = {
	{ 1e13, 1e-12, "T", "T" },
	{ 1e10, 1e-9, "G", "G" },
	{ EXACT_BELOW, 1e-6, "M", "M" },
	{ 0, 1, "", "" },
};

bool pm_stat_is_time(const struct pm_stat_event *event)
{
	return strcmp(event->unit, "ns") == 0;
}

bool pm_stat_is_tools(const struct pm_stat_event *event)
{
	return event && strcmp(event->source, "tool") == 0;
}

static const struct step *step_of(const struct step *steps, double magnitude)
{
	while (magnitude < steps->from)
		steps++;
	return steps;
}

/* Returns the number of decimals needed to show DIGITS digits; 0 for a plain count that
 * is whole. */
static int decimals_of(double number, bool whole)
{
	int before = 1, decimals;

	if (whole && number == floor(number))
		return 0;
	for (double limit = 10; number >= limit && before < DIGITS; limit *= 10)
		before++;
	decimals = DIGITS - before;
	for (double limit = 0.1; number > 0 && number < limit && decimals < DECIMALS_MAX;
	     limit /= 10)
		decimals++;
	return decimals;
}

struct pm_stat_unit pm_stat_unit_of(const struct pm_stat_event *event, double magnitude,
				    bool ascii)
{
	const char *name = "";
	const struct step *step;
	struct pm_stat_unit unit;

	if (event)
		name = event->unit;
	if (isfinite(magnitude))
		magnitude = fabs(magnitude);
	else
		magnitude = 0;
	if (strcmp(name, "ns") == 0)
		step = step_of(times, magnitude);
	else if (strcmp(name, "bytes") == 0)
		step = step_of(sizes, magnitude);
	else if (name[0] == '\0')
		step = step_of(counts, magnitude);
	else
		return (struct pm_stat_unit){ 1, decimals_of(magnitude, false), name };
	unit = (struct pm_stat_unit){ step->factor, 0,
				      ascii ? step->ascii : step->suffix };
	unit.decimals = decimals_of(magnitude * step->factor, step->factor == 1);
	return unit;
}

/* Inserts commas between thousands; @text is a number printed by printf(3). */
static void put_grouped_digits(struct pm_str *str, const char *text)
{
	size_t digits;

	if (*text == '-')
		pm_str_putc(str, *text++);
	digits = strspn(text, "0123456789");
	for (size_t i = 0; i < digits; i++) {
		if (i > 0 && (digits - i) % 3 == 0)
			pm_str_putc(str, ',');
		pm_str_putc(str, text[i]);
	}
	pm_str_puts(str, text + digits);
}

void pm_put_stat_number(struct pm_str *str, const struct pm_stat_unit *unit,
			double number)
{
	char text[512]; /* the largest double has 309 digits */

	if (!isfinite(number)) {
		pm_str_putc(str, '-');
		return;
	}
	snprintf(text, sizeof(text), "%.*f", unit->decimals, number * unit->factor);
	put_grouped_digits(str, text);
}

static void put_suffix(struct pm_str *str, const struct pm_stat_unit *unit)
{
	if (unit->suffix[0] == '\0')
		return;
	pm_str_putc(str, ' ');
	pm_str_printable(str, unit->suffix, strlen(unit->suffix));
}

void pm_put_stat_value(struct pm_str *str, const struct pm_stat_event *event,
		       double number, bool ascii)
{
	struct pm_stat_unit unit = pm_stat_unit_of(event, number, ascii);

	pm_put_stat_number(str, &unit, number);
	put_suffix(str, &unit);
}

const char *pm_stat_state_words(enum pm_stat_state state)
{
	switch (state) {
	case PM_STAT_OK:
		return "counted";
	case PM_STAT_MULTIPLEXED:
		return "counted a part of the time";
	case PM_STAT_NOT_COUNTED:
		return "not counted";
	case PM_STAT_NOT_SUPPORTED:
		return "not supported";
	case PM_STAT_NOT_PERMITTED:
		return "not permitted";
	case PM_STAT_NOT_KNOWN:
		return "not known";
	}
	return "";
}

void pm_put_stat_count(struct pm_str *str, const struct pm_stat_event *event,
		       const struct pm_stat_value *value, bool ascii)
{
	if (!pm_stat_has_value(value))
		pm_str_puts(str, pm_stat_state_words(value->state));
	else if (event->unit[0] == '\0' && event->scale == 1)
		pm_put_count(str, value->value);
	else
		pm_put_stat_value(str, event, (double)value->value * event->scale, ascii);
}

const char *pm_stat_event_shown(const struct pm_stat_event *event)
{
	if (event->default_set)
		return event->name;
	return event->requested;
}

double pm_stat_share(const struct pm_stat_value *value)
{
	if (value->state != PM_STAT_MULTIPLEXED || value->enabled_ns == 0)
		return NAN;
	return 100.0 * (double)value->running_ns / (double)value->enabled_ns;
}

void pm_put_stat_metrics(struct pm_str *str, const struct pm_stat *stat, uint32_t event,
			 uint32_t variant, int32_t scope)
{
	bool first = true;

	for (size_t i = 0; i < stat->metrics.len; i++) {
		const struct pm_stat_metric *metric = &stat->metrics.data[i];
		struct pm_stat_unit unit = { 1, 2, metric->unit };

		if (!metric->known || metric->variant != variant ||
		    metric->scope != scope ||
		    (event != PM_STAT_ANY_EVENT && metric->event != event))
			continue;
		if (fabs(metric->value) >= 100)
			unit.decimals = decimals_of(fabs(metric->value), false);
		if (!first)
			pm_str_puts(str, ", ");
		pm_put_stat_number(str, &unit, metric->value);
		put_suffix(str, &unit);
		pm_str_putc(str, ' ');
		pm_str_printable(str, metric->name, strlen(metric->name));
		first = false;
	}
}

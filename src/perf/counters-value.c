/* SPDX-License-Identifier: MIT */
/* Turns what read(2) returns into numbers that may be shown. */
#include "counters-state.h"

int pm_count_delta(const struct pm_count_read *before, const struct pm_count_read *after,
		   struct pm_count_read *out)
{
	if (after->value < before->value || after->enabled_ns < before->enabled_ns ||
	    after->running_ns < before->running_ns)
		return -ERANGE;
	*out = (struct pm_count_read){ after->value - before->value,
				       after->enabled_ns - before->enabled_ns,
				       after->running_ns - before->running_ns };
	return 0;
}

/* value * enabled / running, rounded, at most UINT64_MAX. */
static uint64_t scale_count_value(const struct pm_count_read *delta)
{
	__uint128_t product = (__uint128_t)delta->value * delta->enabled_ns;
	__uint128_t ret = (product + delta->running_ns / 2) / delta->running_ns;

	if (ret > UINT64_MAX)
		return UINT64_MAX;
	return (uint64_t)ret;
}

struct pm_count pm_count_scale(const struct pm_count_read *delta)
{
	struct pm_count ret = { .state = PM_STAT_OK,
				.raw = delta->value,
				.enabled_ns = delta->enabled_ns,
				.running_ns = delta->running_ns,
				.value = delta->value };

	/* The two clocks are read one after the other, so running may be slightly
	 * ahead. */
	if (delta->running_ns >= delta->enabled_ns)
		return ret;
	if (delta->running_ns == 0) {
		ret.state = PM_STAT_NOT_COUNTED;
		ret.value = 0;
		return ret;
	}
	ret.state = PM_STAT_MULTIPLEXED;
	ret.value = scale_count_value(delta);
	return ret;
}

/* ---- sums ------------------------------------------------------------------------------ */

uint64_t pm_count_add(uint64_t a, uint64_t b)
{
	if (a > UINT64_MAX - b)
		return UINT64_MAX;
	return a + b;
}

void pm_count_read_add(struct pm_count_read *sum, const struct pm_count_read *more)
{
	sum->value = pm_count_add(sum->value, more->value);
	sum->enabled_ns = pm_count_add(sum->enabled_ns, more->enabled_ns);
	sum->running_ns = pm_count_add(sum->running_ns, more->running_ns);
}

struct sum {
	struct pm_count_read read;
	uint64_t whole, scaled;
};

/* @before NULL: since the start. */
static struct pm_count count_between_sums(const struct pm_counters *counters,
					  size_t event, const struct sum *before,
					  const struct sum *after)
{
	static const struct sum nothing;
	struct pm_count ret = { .state = counters->events.data[event].state };
	struct pm_count_read delta;

	if (ret.state != PM_STAT_OK)
		return ret;
	if (pm_count_delta(before ? &before->read : &nothing.read, &after->read, &delta) <
	    0) {
		ret.state = PM_STAT_NOT_COUNTED;
		return ret;
	}
	ret = pm_count_scale(&delta);
	if (ret.state != PM_STAT_MULTIPLEXED)
		return ret;
	if (!before)
		ret.value = after->whole;
	else if (!counters->tell_ended) /* otherwise rows take counts from each other */
		ret.value = after->scaled - before->scaled;
	return ret;
}

static struct sum counters_sum_of_row(const struct pm_counters *counters,
				      const struct pm_counters_values *values, size_t row,
				      size_t event)
{
	size_t at = row * counters->events.len + event;

	if (!values || row >= values->rows.len)
		return (struct sum){ 0 };
	return (struct sum){ values->reads.data[at], values->whole.data[at],
			     values->scaled.data[at] };
}

struct pm_count pm_counters_row_count(const struct pm_counters *counters,
				      const struct pm_counters_values *before,
				      const struct pm_counters_values *after, size_t row,
				      size_t event)
{
	struct sum from = counters_sum_of_row(counters, before, row, event);
	struct sum to = counters_sum_of_row(counters, after, row, event);

	return count_between_sums(counters, event, before ? &from : NULL, &to);
}

static struct sum counters_total_of(const struct pm_counters *counters,
				    const struct pm_counters_values *values, size_t event)
{
	struct sum total = { 0 };

	for (size_t row = 0; values && row < values->rows.len; row++) {
		struct sum one = counters_sum_of_row(counters, values, row, event);

		pm_count_read_add(&total.read, &one.read);
		total.whole = pm_count_add(total.whole, one.whole);
		total.scaled = pm_count_add(total.scaled, one.scaled);
	}
	return total;
}

struct pm_count pm_counters_total(const struct pm_counters *counters,
				  const struct pm_counters_values *before,
				  const struct pm_counters_values *after, size_t event)
{
	struct sum from = counters_total_of(counters, before, event);
	struct sum to = counters_total_of(counters, after, event);

	return count_between_sums(counters, event, before ? &from : NULL, &to);
}

void pm_counters_values_release(struct pm_counters_values *values)
{
	pm_vec_release(&values->rows);
	pm_vec_release(&values->reads);
	pm_vec_release(&values->whole);
	pm_vec_release(&values->scaled);
}

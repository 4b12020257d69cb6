/* SPDX-License-Identifier: MIT */
/* The kernel's own counts of sampling events. */
#include "perf-state.h"

/* Reads PERF_FORMAT_ID, optionally with _LOST and _GROUP (perf_event_open(2), "Reading
 * results"). */
static int read_sums_of_fd(const struct pm_perf *perf, const struct pm_perf_fd *entry,
			   struct pm_perf_sums *out)
{
	bool lost = perf->features.format_lost;
	size_t row = lost ? 3 : 2; /* { value; id; lost; } */
	size_t len = 1 + row * (perf->shape.read ? perf->events.len : 1);
	PM_AUTO_FREE uint64_t *values = calloc(len, sizeof(*values));
	const uint64_t *at = values;
	size_t rows = 1;
	ssize_t n;

	if (!values)
		return -ENOMEM;
	n = read(entry->fd, values, len * sizeof(*values));
	if (n < (ssize_t)(row * sizeof(*values)))
		return -EIO;
	if (perf->shape.read) {
		rows = PM_MIN(values[0], (len - 1) / row);
		at = values + 1;
	}
	for (size_t i = 0; i < rows; i++, at += row) {
		if (at[1] != entry->id)
			continue;
		*out = (struct pm_perf_sums){ at[0], lost ? at[2] : 0 };
		return 0;
	}
	return -EIO;
}

static void add_perf_sums(struct pm_perf_sums *to, const struct pm_perf_sums *more)
{
	if (__builtin_add_overflow(to->counted, more->counted, &to->counted))
		to->counted = UINT64_MAX;
	to->lost += more->lost;
}

void pm_perf_sums_keep(struct pm_perf *perf, const struct pm_perf_fd *entry)
{
	struct pm_perf_sums sums;

	if (entry->event >= 0 && read_sums_of_fd(perf, entry, &sums) == 0)
		add_perf_sums(&perf->before.data[entry->event], &sums);
}

static int perf_sums_of_event(const struct pm_perf *perf, size_t index,
			      struct pm_perf_sums *out)
{
	struct pm_perf_sums sum;

	if (index >= perf->events.len)
		return -EINVAL;
	sum = perf->before.data[index];
	for (size_t i = 0; i < perf->fds.len; i++) {
		const struct pm_perf_fd *entry = &perf->fds.data[i];
		struct pm_perf_sums one;
		int ret;

		if (entry->event != (int)index)
			continue;
		ret = read_sums_of_fd(perf, entry, &one);
		if (ret < 0)
			return ret;
		add_perf_sums(&sum, &one);
	}
	*out = sum;
	return 0;
}

int pm_perf_lost(const struct pm_perf *perf, size_t index, uint64_t *out)
{
	struct pm_perf_sums sums;
	int ret;

	if (!perf->features.format_lost)
		return -ENOTSUP;
	ret = perf_sums_of_event(perf, index, &sums);
	if (ret == 0)
		*out = sums.lost;
	return ret;
}

/* Whether the event is a clock that counts more time than it samples
 * (perf_swevent_hrtimer()). */
static bool is_clock_of_a_part(const struct pm_perf *perf, uint32_t index)
{
	const struct pm_perf_event *event = &perf->events.data[index];
	const struct pm_event_spec *spec = &event->actual;

	return pm_perf_is_clock(spec) &&
	       (!spec->user || !spec->kernel || event->kernel_dropped || spec->no_idle ||
		pm_perf_filtered(perf, index));
}

int pm_perf_counted(const struct pm_perf *perf, size_t index, uint64_t *counted,
		    uint64_t *others)
{
	struct pm_perf_sums sums;
	uint64_t left_out = 0;
	int ret;

	if (index >= perf->events.len)
		return -EINVAL;
	if (is_clock_of_a_part(perf, (uint32_t)index))
		return -ENOTSUP;
	if (pm_perf_filtered(perf, (uint32_t)index)) {
		ret = pm_tree_filter_left_out(perf->filter, (uint32_t)index, &left_out);
		if (ret < 0)
			return ret;
	}
	ret = perf_sums_of_event(perf, index, &sums);
	if (ret < 0)
		return ret;
	*counted = sums.counted;
	*others = left_out;
	return 0;
}

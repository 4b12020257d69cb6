/* SPDX-License-Identifier: MIT */
#include "counters-state.h"

#include <string.h>

enum {
	GROUP_HEAD = 3, /* nr, time_enabled, time_running */
	GROUP_ROW = 2, /* value, id */
	SINGLE_WORDS = 4, /* value, time_enabled, time_running, id */
};

/* ---- descriptors ----------------------------------------------------------------------- */

static uint64_t ns_since(uint64_t begin_ns)
{
	uint64_t now_ns = pm_perf_now_ns();

	return PM_SUB_OR_0(now_ns, begin_ns);
}

static const struct pm_counter_fd *find_reference_of_fd(
	const struct pm_counters *counters, const struct pm_counter_fd *entry)
{
	int reference = counters->places.data[entry->place].reference;

	if (reference < 0)
		return NULL;
	return &counters->fds.data[reference];
}

static void counter_fd_take_read(struct pm_counters *counters,
				 struct pm_counter_fd *entry, struct pm_count_read now)
{
	const struct pm_counter_fd *reference = find_reference_of_fd(counters, entry);
	struct pm_count_read delta;

	if (reference && reference != entry)
		now.enabled_ns = PM_MAX(reference->last.running_ns, now.running_ns);
	/* A value that went back is ignored: the previous reading was correct. */
	if (pm_count_delta(&entry->last, &now, &delta) < 0)
		return;
	entry->scaled = pm_count_add(entry->scaled, pm_count_scale(&delta).value);
	entry->last = now;
}

/* Handles a read(2) that returned 0 bytes: a pinned event that found no counter is in an
 * error state. It counts as enabled, but not as running. */
static void counter_fd_take_nothing(struct pm_counters *counters,
				    struct pm_counter_fd *entry)
{
	struct pm_count_read now = entry->last;

	now.enabled_ns = ns_since(entry->opened_ns);
	counter_fd_take_read(counters, entry, now);
}

/* @n: the result of read(2), which returned too little or failed. */
static int set_counter_read_error(struct pm_error *err, ssize_t n)
{
	int ret = -EIO;

	if (n < 0)
		ret = -errno;
	return pm_error_set(err, ret, "a counter cannot be read: %s", strerror(-ret));
}

static int read_counter_group(struct pm_counters *counters, size_t leader,
			      uint64_t *words, struct pm_error *err)
{
	struct pm_counter_fd *entries = &counters->fds.data[leader];
	size_t len = entries->members + 1;
	ssize_t n =
		read(entries->fd, words, (GROUP_HEAD + GROUP_ROW * len) * sizeof(*words));

	if (n == 0) {
		for (size_t i = 0; i < len; i++)
			counter_fd_take_nothing(counters, &entries[i]);
		return 0;
	}
	if (n < (ssize_t)(GROUP_HEAD * sizeof(*words)))
		return set_counter_read_error(err, n);
	if (words[0] < len)
		len = words[0];
	for (size_t row = 0; row < len; row++) {
		const uint64_t *at = words + GROUP_HEAD + GROUP_ROW * row;

		for (size_t i = 0; i < entries->members + 1u; i++)
			if (entries[i].id == at[1])
				counter_fd_take_read(counters, &entries[i],
						     (struct pm_count_read){
							     at[0], words[1], words[2] });
	}
	return 0;
}

static int read_single_counter(struct pm_counters *counters, struct pm_counter_fd *entry,
			       struct pm_error *err)
{
	uint64_t words[SINGLE_WORDS];
	ssize_t n = read(entry->fd, words, sizeof(words));

	if (n == 0) {
		counter_fd_take_nothing(counters, entry);
		return 0;
	}
	if (n != (ssize_t)sizeof(words))
		return set_counter_read_error(err, n);
	counter_fd_take_read(counters, entry,
			     (struct pm_count_read){ words[0], words[1], words[2] });
	return 0;
}

static int counters_read_fds(struct pm_counters *counters, struct pm_error *err)
{
	PM_AUTO_FREE uint64_t *words = calloc(
		GROUP_HEAD + GROUP_ROW * (counters->events.len + 1), sizeof(*words));
	bool groups = pm_counters_read_groups(counters);
	int ret = 0;

	if (!words)
		return pm_error_set(err, -ENOMEM, "no memory for the values");
	for (size_t i = 0; i < counters->fds.len && ret == 0; i++) {
		struct pm_counter_fd *entry = &counters->fds.data[i];

		if (entry->event == PM_GUARD || !entry->leads)
			continue;
		if (groups)
			ret = read_counter_group(counters, i, words, err);
		else
			ret = read_single_counter(counters, entry, err);
	}
	return ret;
}

/* ---- rows ------------------------------------------------------------------------------ */

static void subtract_down_to_0(uint64_t *from, uint64_t what)
{
	*from = PM_SUB_OR_0(*from, what);
}

static void counters_values_add_fds(const struct pm_counters *counters,
				    struct pm_counters_values *out)
{
	for (size_t i = 0; i < counters->fds.len; i++) {
		const struct pm_counter_fd *entry = &counters->fds.data[i];
		size_t row = counters->places.data[entry->place].row, at;

		if (entry->event < 0)
			continue;
		at = row * counters->events.len + (size_t)entry->event;
		pm_count_read_add(&out->reads.data[at], &entry->last);
		out->scaled.data[at] = pm_count_add(out->scaled.data[at], entry->scaled);
		out->whole.data[at] = pm_count_add(out->whole.data[at],
						   pm_count_scale(&entry->last).value);
	}
}

static void fill_row_of_ended_thread(const struct pm_counters *counters, size_t index,
				     struct pm_counters_values *out)
{
	const struct pm_counter_ended *ended = &counters->ended.data[index];
	size_t events = counters->events.len;

	for (size_t k = 0; k < events; k++) {
		size_t at = (counters->own_rows + index) * events + k;
		struct pm_count_read *top = &out->reads.data[ended->top * events + k];
		struct pm_count_read read = counters->ended_reads.data[ended->reads + k];

		if (counters->events.data[k].state == PM_STAT_OK)
			read.enabled_ns = PM_MAX(ended->on_ns, read.running_ns);
		out->reads.data[at] = read;
		out->whole.data[at] = pm_count_scale(&read).value;
		subtract_down_to_0(&top->value, read.value);
		subtract_down_to_0(&top->enabled_ns, read.enabled_ns);
		subtract_down_to_0(&top->running_ns, read.running_ns);
	}
}

/* Moves the counts of ended threads out of the row of the thread that they descend
 * from. */
static void move_counts_of_ended_threads(const struct pm_counters *counters,
					 struct pm_counters_values *out)
{
	if (!counters->tell_ended)
		return;
	for (size_t i = 0; i < counters->ended.len; i++)
		fill_row_of_ended_thread(counters, i, out);
	for (size_t i = 0; i < counters->own_rows * counters->events.len; i++)
		out->whole.data[i] = pm_count_scale(&out->reads.data[i]).value;
}

static int counters_values_make_room(const struct pm_counters *counters,
				     struct pm_counters_values *out)
{
	size_t rows = counters->rows.len, values = rows * counters->events.len;

	if (pm_vec_reserve(&out->rows, rows) < 0 ||
	    pm_vec_reserve(&out->reads, values) < 0 ||
	    pm_vec_reserve(&out->whole, values) < 0 ||
	    pm_vec_reserve(&out->scaled, values) < 0)
		return -ENOMEM;
	out->rows.len = rows;
	out->reads.len = out->whole.len = out->scaled.len = values;
	if (rows > 0)
		memcpy(out->rows.data, counters->rows.data,
		       rows * sizeof(*out->rows.data));
	if (values > 0) {
		memset(out->reads.data, 0, values * sizeof(*out->reads.data));
		memset(out->whole.data, 0, values * sizeof(*out->whole.data));
		memset(out->scaled.data, 0, values * sizeof(*out->scaled.data));
	}
	return 0;
}

int pm_counters_read(struct pm_counters *counters, struct pm_counters_values *out,
		     struct pm_error *err)
{
	int ret;

	/* Collect ended threads first. A thread that ends between the two steps stays in
	 * the row of the thread that it descends from until the next reading, so nothing
	 * is counted in two rows. */
	pm_counters_drain(counters);
	ret = counters_read_fds(counters, err);
	if (ret < 0)
		return ret;
	if (counters->options.by == PM_COUNTERS_BY_THREAD)
		pm_counters_refresh_names(counters);
	if (counters_values_make_room(counters, out) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the values");
	counters_values_add_fds(counters, out);
	move_counts_of_ended_threads(counters, out);
	return 0;
}

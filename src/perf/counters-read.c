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

	return reference >= 0 ? &counters->fds.data[reference] : NULL;
}

static void counter_fd_take_read(struct pm_counters *counters,
				 struct pm_counter_fd *entry, struct pm_count_read now)
{
	const struct pm_counter_fd *reference = find_reference_of_fd(counters, entry);
	struct pm_count_read delta;

	if (reference && reference != entry)
		now.enabled_ns = reference->last.running_ns > now.running_ns
					 ? reference->last.running_ns
					 : now.running_ns;
	/* A value that went back is ignored: the previous reading was correct. */
	if (pm_count_delta(&entry->last, &now, &delta) < 0)
		return;
	entry->scaled = pm_count_add(entry->scaled, pm_count_scale(&delta).value);
	entry->last = now;
}

/* A pinned event that found no counter is in an error state, and read(2) returns 0
 * bytes. */
static void counter_fd_take_nothing(struct pm_counters *counters,
				    struct pm_counter_fd *entry)
{
	struct pm_count_read now = entry->last;

	now.enabled_ns = ns_since(entry->opened_ns);
	counter_fd_take_read(counters, entry, now);
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
		return pm_error_set(err, n < 0 ? -errno : -EIO,
				    "a counter cannot be read: %s",
				    strerror(n < 0 ? errno : EIO));
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
		return pm_error_set(err, n < 0 ? -errno : -EIO,
				    "a counter cannot be read: %s",
				    strerror(n < 0 ? errno : EIO));
	counter_fd_take_read(counters, entry,
			     (struct pm_count_read){ words[0], words[1], words[2] });
	return 0;
}

static int counters_read_fds(struct pm_counters *counters, struct pm_error *err)
{
	PM_AUTO_FREE uint64_t *words = calloc(
		GROUP_HEAD + GROUP_ROW * (counters->events.len + 1), sizeof(*words));
	bool groups = pm_counters_read_groups(counters);
	int r = 0;

	if (!words)
		return pm_error_set(err, -ENOMEM, "no memory for the values");
	for (size_t i = 0; i < counters->fds.len && r == 0; i++) {
		struct pm_counter_fd *entry = &counters->fds.data[i];

		if (entry->event == PM_GUARD || !entry->leads)
			continue;
		r = groups ? read_counter_group(counters, i, words, err)
			   : read_single_counter(counters, entry, err);
	}
	return r;
}

/* ---- rows ------------------------------------------------------------------------------ */

static void subtract_down_to_0(uint64_t *from, uint64_t what)
{
	*from -= what < *from ? what : *from;
}

static void counters_values_add_fds(const struct pm_counters *counters,
				    struct pm_counters_values *ret)
{
	for (size_t i = 0; i < counters->fds.len; i++) {
		const struct pm_counter_fd *entry = &counters->fds.data[i];
		size_t row = counters->places.data[entry->place].row, at;

		if (entry->event < 0)
			continue;
		at = row * counters->events.len + (size_t)entry->event;
		pm_count_read_add(&ret->reads.data[at], &entry->last);
		ret->scaled.data[at] = pm_count_add(ret->scaled.data[at], entry->scaled);
		ret->whole.data[at] = pm_count_add(ret->whole.data[at],
						   pm_count_scale(&entry->last).value);
	}
}

static void fill_row_of_ended_thread(const struct pm_counters *counters, size_t index,
				     struct pm_counters_values *ret)
{
	const struct pm_counter_ended *ended = &counters->ended.data[index];
	size_t events = counters->events.len;

	for (size_t k = 0; k < events; k++) {
		size_t at = (counters->own_rows + index) * events + k;
		struct pm_count_read *top = &ret->reads.data[ended->top * events + k];
		struct pm_count_read read = counters->ended_reads.data[ended->reads + k];

		if (counters->events.data[k].state == PM_STAT_OK)
			read.enabled_ns = ended->on_ns > read.running_ns
						  ? ended->on_ns
						  : read.running_ns;
		ret->reads.data[at] = read;
		ret->whole.data[at] = pm_count_scale(&read).value;
		subtract_down_to_0(&top->value, read.value);
		subtract_down_to_0(&top->enabled_ns, read.enabled_ns);
		subtract_down_to_0(&top->running_ns, read.running_ns);
	}
}

/* Moves the counts of ended threads out of the row of the thread that they descend
 * from. */
static void move_counts_of_ended_threads(const struct pm_counters *counters,
					 struct pm_counters_values *ret)
{
	if (!counters->tell_ended)
		return;
	for (size_t i = 0; i < counters->ended.len; i++)
		fill_row_of_ended_thread(counters, i, ret);
	for (size_t i = 0; i < counters->own_rows * counters->events.len; i++)
		ret->whole.data[i] = pm_count_scale(&ret->reads.data[i]).value;
}

static int counters_values_make_room(const struct pm_counters *counters,
				     struct pm_counters_values *ret)
{
	size_t rows = counters->rows.len, values = rows * counters->events.len;

	if (pm_vec_reserve(&ret->rows, rows) < 0 ||
	    pm_vec_reserve(&ret->reads, values) < 0 ||
	    pm_vec_reserve(&ret->whole, values) < 0 ||
	    pm_vec_reserve(&ret->scaled, values) < 0)
		return -ENOMEM;
	ret->rows.len = rows;
	ret->reads.len = ret->whole.len = ret->scaled.len = values;
	if (rows > 0)
		memcpy(ret->rows.data, counters->rows.data,
		       rows * sizeof(*ret->rows.data));
	if (values > 0) {
		memset(ret->reads.data, 0, values * sizeof(*ret->reads.data));
		memset(ret->whole.data, 0, values * sizeof(*ret->whole.data));
		memset(ret->scaled.data, 0, values * sizeof(*ret->scaled.data));
	}
	return 0;
}

int pm_counters_read(struct pm_counters *counters, struct pm_counters_values *ret,
		     struct pm_error *err)
{
	int r;

	/* Collect ended threads first. A thread that ends between the two steps stays in
	 * the row of the thread that it descends from until the next reading, so nothing
	 * is counted in two rows. */
	pm_counters_drain(counters);
	r = counters_read_fds(counters, err);
	if (r < 0)
		return r;
	if (counters->options.by == PM_COUNTERS_BY_THREAD)
		pm_counters_refresh_names(counters);
	if (counters_values_make_room(counters, ret) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the values");
	counters_values_add_fds(counters, ret);
	move_counts_of_ended_threads(counters, ret);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * callgrind's format (valgrind.org/docs/manual/cl-format.html) for KCachegrind and
 * callgrind_annotate: for each function, its cost by line, and the cost of its calls
 * including everything that they called. Events are columns; threads are added up.
 *
 * Some readers compute a function's inclusive cost as its own cost plus that of its
 * calls, others as the cost of the calls to it. Both must equal its total, even with
 * recursion and with stacks that start anywhere. Therefore a stack is written as the
 * chain of its functions in the order of their last calls, each once, below one function
 * for the whole recording. A call that goes through a recursion appears as a call of the
 * function that it finally reaches.
 */
#include "export.h"

#include <ctype.h>
#include <string.h>

enum {
	COLUMNS = 64, /* minimum columns of a row, if there are as many events */
};

/* The cost of a place, or of a call that is made there. */
struct cost {
	uint32_t place; /* has function, file and line; PM_PROFILE_NONE: the root */
	uint32_t callee; /* function; PM_PROFILE_NONE: the place's own cost */
	uint32_t event;
	struct pm_weight weight;
};

struct callgrind {
	struct pm_export export;
	const struct pm_profile *profile;
	PM_VEC(struct cost) costs;
	struct pm_index index;
	uint32_t *seen; /* by function: the stack on which it was last seen, plus 1 */
	const char **files; /* by function: its source file */
	/* Ids of the names that have been written, from 1. */
	struct pm_strings names, file_names, objects;
	struct pm_strings columns; /* names of the events, starting with export.first */
	PM_VEC(uint64_t) row; /* by event */
	struct pm_str out, text;
	FILE *to;
	bool failed;
};

static void callgrind_release(struct callgrind *it)
{
	pm_export_release(&it->export);
	pm_vec_release(&it->costs);
	pm_index_release(&it->index);
	free(it->seen);
	free(it->files);
	pm_strings_release(&it->names);
	pm_strings_release(&it->file_names);
	pm_strings_release(&it->objects);
	pm_strings_release(&it->columns);
	pm_vec_release(&it->row);
	pm_str_release(&it->out);
	pm_str_release(&it->text);
}

/* ---- sums -------------------------------------------------------------------------------- */

static bool callgrind_cost_equal(const void *table, uint32_t id, const void *key)
{
	const struct cost *have = &((const struct callgrind *)table)->costs.data[id];
	const struct cost *wanted = key;

	return have->place == wanted->place && have->callee == wanted->callee &&
	       have->event == wanted->event;
}

static int add_cost(struct callgrind *it, const struct cost *cost)
{
	uint64_t hash =
		pm_hash_mix((uint64_t)cost->place << 32 | cost->callee, cost->event);
	uint32_t id = pm_index_find(&it->index, hash, callgrind_cost_equal, it, cost);

	if (id != PM_INDEX_NONE) {
		pm_weight_add(&it->costs.data[id].weight, &cost->weight);
		return 0;
	}
	id = (uint32_t)it->costs.len;
	if (pm_vec_push(&it->costs, *cost) < 0)
		return -ENOMEM;
	return pm_index_add(&it->index, hash, id);
}

/* Adds a stack from the leaf to the root: the first occurrence of a function is its last
 * call. */
static int callgrind_add_stack(struct callgrind *it, uint32_t stack, uint32_t stamp,
			       uint32_t event, const struct pm_weight *weight)
{
	const struct pm_profile *profile = it->profile;
	uint32_t callee = PM_PROFILE_NONE;

	for (uint32_t at = stack; at != PM_PROFILE_NONE;
	     at = profile->stacks.data[at].parent) {
		for (uint32_t l = 0; l < pm_profile_levels(profile, at); l++) {
			struct cost cost = {
				.place = pm_profile_level_place(profile, at, l),
				.callee = callee,
				.event = event,
				.weight = *weight,
			};
			uint32_t function = profile->places.data[cost.place].function;

			if (it->seen[function] == stamp)
				continue;
			it->seen[function] = stamp;
			if (add_cost(it, &cost) < 0)
				return -ENOMEM;
			callee = function;
		}
	}
	return add_cost(it, &(struct cost){ .place = PM_PROFILE_NONE,
					    .callee = callee,
					    .event = event,
					    .weight = *weight });
}

/* Adds an event. Cells also differ by thread, but each stack is walked only once per
 * event. */
static int callgrind_add_event(struct callgrind *it, uint32_t event, uint32_t *stamp)
{
	const struct pm_profile *profile = it->profile;
	PM_AUTO_FREE struct pm_weight *self =
		calloc(profile->stacks.len + 1, sizeof(*self));

	if (!self)
		return -ENOMEM;
	for (size_t i = 0; i < profile->cells.len; i++) {
		const struct pm_profile_cell *cell = &profile->cells.data[i];

		if (cell->event == event && it->export.cells[i])
			pm_weight_add(&self[cell->stack], &cell->weight);
	}
	for (uint32_t i = 0; i < profile->stacks.len; i++) {
		if (self[i].samples == 0)
			continue;
		/* The stamp can repeat only after 2^32 stacks of all events. */
		if (++*stamp == 0) {
			memset(it->seen, 0, profile->functions.len * sizeof(*it->seen));
			*stamp = 1;
		}
		if (callgrind_add_stack(it, i, *stamp, event, &self[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- names ------------------------------------------------------------------------------ */

/* Writes `KEY=(id) name` the first time, `KEY=(id)` afterwards. */
static void callgrind_put_name(struct callgrind *it, const char *key,
			       struct pm_strings *names)
{
	size_t known = names->starts.len;
	uint32_t id = 0;

	if (it->text.failed ||
	    pm_strings_add(names, it->text.data, it->text.len, &id) < 0) {
		it->failed = true;
		return;
	}
	pm_str_puts(&it->out, key);
	pm_str_puts(&it->out, "=(");
	pm_str_u64(&it->out, (uint64_t)id + 1);
	pm_str_putc(&it->out, ')');
	if (id >= known) {
		pm_str_putc(&it->out, ' ');
		pm_str_append(&it->out, pm_str_text(&it->text), it->text.len);
	}
	pm_str_putc(&it->out, '\n');
	pm_str_clear(&it->text);
}

static void callgrind_put_file(struct callgrind *it, const char *key, const char *file)
{
	if (file && file[0] != '\0')
		pm_str_printable(&it->text, file, strlen(file));
	else
		pm_str_puts(&it->text, "???");
	callgrind_put_name(it, key, &it->file_names);
}

/* @prefix is "" for the caller and "c" for the callee. */
static void callgrind_put_function(struct callgrind *it, const char *prefix,
				   uint32_t function)
{
	bool called = prefix[0] == 'c', all = function == PM_PROFILE_NONE;
	uint32_t module = PM_PROFILE_NONE;
	const char *file = NULL;

	if (!all) {
		module = it->profile->functions.data[function].module;
		file = it->files[function];
	}
	pm_put_export_module(&it->text, it->profile, module);
	callgrind_put_name(it, called ? "cob" : "ob", &it->objects);
	callgrind_put_file(it, called ? "cfi" : "fl", file);
	if (all)

		pm_str_puts(&it->text, "[recording]");
	else
		pm_put_export_function(&it->text, it->profile, function);
	callgrind_put_name(it, called ? "cfn" : "fn", &it->names);
}

/* Appends the name in a form that every reader accepts: a letter, then letters, digits
 * and `_`. */
static void put_event_name(struct pm_str *str, const char *name)
{
	if (!isalpha((unsigned char)name[0]))
		pm_str_puts(str, "event_");
	for (; *name; name++)
		pm_str_putc(str, isalnum((unsigned char)*name) ? *name : '_');
}

/* Gives the columns unique names: readers would merge two columns with the same name. */
static int name_columns(struct callgrind *it)
{
	uint32_t id;
	int ret = 0;

	for (uint32_t i = it->export.first; ret == 0 && i < it->export.end; i++) {
		put_event_name(&it->text, pm_export_event(&it->export, i));
		do {
			if (it->text.failed)
				ret = -ENOMEM;
			else
				ret = pm_strings_add(&it->columns, it->text.data,
						     it->text.len, &id);
			pm_str_printf(&it->text, "_%u", i);
		} while (ret == 0 && id != i - it->export.first);
		pm_str_clear(&it->text);
	}
	return ret;
}

/* ---- lines ------------------------------------------------------------------------------ */

static uint32_t cost_function(const struct callgrind *it, const struct cost *cost)
{
	if (cost->place == PM_PROFILE_NONE)
		return PM_PROFILE_NONE;
	return it->profile->places.data[cost->place].function;
}

static int cost_order(const void *a, const void *b, void *context)
{
	const struct cost *left = a, *right = b;
	uint32_t l = cost_function(context, left), r = cost_function(context, right);

	if (l != r)
		return PM_COMPARE(l, r);
	/* Own cost comes before calls: PM_PROFILE_NONE plus 1 is 0. */
	if (left->callee != right->callee)
		return PM_COMPARE(left->callee + 1, right->callee + 1);
	if (left->place != right->place)
		return PM_COMPARE(left->place, right->place);
	return PM_COMPARE(left->event, right->event);
}

static void callgrind_put_row(struct callgrind *it, uint32_t line)
{
	size_t len = it->row.len;

	/* Missing values at the end mean 0, but speedscope reads them as NaN. Rows of
	 * thousands of events, however, would fill the disk. */
	while (len > COLUMNS && it->row.data[len - 1] == 0)
		len--;
	pm_str_u64(&it->out, line);
	for (size_t i = 0; i < len; i++) {
		pm_str_putc(&it->out, ' ');
		pm_str_u64(&it->out, it->row.data[i]);
	}
	pm_str_putc(&it->out, '\n');
}

/* Writes the costs from @first on that differ only by event; returns the index of the
 * next one. */
static size_t callgrind_put_costs(struct callgrind *it, size_t first)
{
	const struct cost *cost = &it->costs.data[first];
	const struct pm_profile_place *place = NULL;
	uint64_t samples = 0;
	size_t i = first;

	if (cost->place != PM_PROFILE_NONE)
		place = &it->profile->places.data[cost->place];
	memset(it->row.data, 0, it->row.len * sizeof(uint64_t));
	for (; i < it->costs.len; i++) {
		const struct cost *more = &it->costs.data[i];

		if (more->place != cost->place || more->callee != cost->callee)
			break;
		it->row.data[more->event - it->export.first] = more->weight.period;
		samples += more->weight.samples;
	}
	if (cost->callee != PM_PROFILE_NONE) {
		callgrind_put_function(it, "c", cost->callee);
		pm_str_puts(&it->out, "calls=");
		pm_str_u64(&it->out, samples);
		pm_str_puts(&it->out, " 0\n");
	}
	/* `fi` could name another file, but callgrind_annotate then splits the function
	 * in two, each with a part of the cost. */
	callgrind_put_row(it,
			  place && pm_export_at_home(it->files, place) ? place->line : 0);
	return i;
}

static void put_body(struct callgrind *it)
{
	uint32_t function = 0;

	for (size_t i = 0; i < it->costs.len && !it->failed && !it->out.failed;) {
		uint32_t next = cost_function(it, &it->costs.data[i]);

		if (i == 0 || next != function) {
			pm_str_putc(&it->out, '\n');
			callgrind_put_function(it, "", next);
			function = next;
		}
		i = callgrind_put_costs(it, i);
		pm_flush_some(&it->out, it->to);
	}
}

static void put_description(struct callgrind *it, const char *key, const char *text)
{
	pm_str_puts(&it->out, "desc: ");
	pm_str_puts(&it->out, key);
	pm_str_puts(&it->out, ": ");
	pm_str_printable(&it->out, text, strlen(text));
	pm_str_putc(&it->out, '\n');
}

static void callgrind_put_head(struct callgrind *it)
{
	const struct pm_profile *profile = it->profile;
	const struct pm_export *export = &it->export;
	struct pm_str *out = &it->out;

	pm_str_puts(out,
		    "# callgrind format\nversion: 1\ncreator: pmreport-" PM_VERSION "\n");
	if (profile->info.pid > 0)
		pm_str_printf(out, "pid: %u\n", profile->info.pid);
	pm_str_puts(out, "cmd: ");
	pm_put_export_command(out, profile);
	pm_str_puts(out, "\npart: 1\n\n");
	if (profile->info.created)
		put_description(it, "Recorded", profile->info.created);
	put_description(it, "Calls", "numbers of samples, as calls were not counted");
	for (uint32_t i = 0; i < export->notes.starts.len; i++)
		put_description(it, "Note", pm_strings_get(&export->notes, i));
	pm_str_puts(out, "\npositions: line\n");
	for (uint32_t i = export->first; i < export->end; i++) {
		pm_str_puts(out, "event: ");
		pm_str_printf(out, "%s : %s",
			      pm_strings_get(&it->columns, i - export->first),
			      pm_export_event(export, i));
		pm_str_puts(out,
			    pm_event_in_ns(&profile->events.data[i]) ? " (ns)\n" : "\n");
	}
	pm_str_puts(out, "events:");
	for (uint32_t i = export->first; i < export->end; i++) {
		pm_str_putc(out, ' ');
		pm_str_puts(out, pm_strings_get(&it->columns, i - export->first));
	}
	pm_str_putc(out, '\n');
}

static void put_totals(struct callgrind *it)
{
	memset(it->row.data, 0, it->row.len * sizeof(uint64_t));
	for (size_t i = 0; i < it->costs.len; i++) {
		const struct cost *cost = &it->costs.data[i];
		uint64_t *sum = &it->row.data[cost->event - it->export.first];

		if (cost->callee == PM_PROFILE_NONE &&
		    __builtin_add_overflow(*sum, cost->weight.period, sum))
			*sum = UINT64_MAX;
	}
	pm_str_puts(&it->out, "\ntotals:");
	for (size_t i = 0; i < it->row.len; i++) {
		pm_str_putc(&it->out, ' ');
		pm_str_u64(&it->out, it->row.data[i]);
	}
	pm_str_putc(&it->out, '\n');
}

static int callgrind_sum_costs(struct callgrind *it)
{
	const struct pm_profile *profile = it->profile;
	size_t events = it->export.end - it->export.first;
	uint32_t stamp = 0;

	it->seen = calloc(profile->functions.len + 1, sizeof(*it->seen));
	it->files = pm_export_files(profile);
	if (!it->seen || !it->files || pm_vec_reserve(&it->row, events + 1) < 0)
		return -ENOMEM;
	it->row.len = events;
	for (uint32_t event = it->export.first; event < it->export.end; event++)
		if (callgrind_add_event(it, event, &stamp) < 0)
			return -ENOMEM;
	if (it->costs.len > 0)
		qsort_r(it->costs.data, it->costs.len, sizeof(struct cost), cost_order,
			it);
	return 0;
}

int pm_output_callgrind(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	PM_CLEANUP(callgrind_release)
	struct callgrind it = { .profile = report->profile, .to = to };
	int ret = pm_export_init(&it.export, report, err);

	if (ret < 0)
		return ret;
	if (name_columns(&it) < 0 || callgrind_sum_costs(&it) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	callgrind_put_head(&it);
	put_body(&it);
	put_totals(&it);
	if (it.failed)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return pm_flush_all(&it.out, to, err);
}

/* SPDX-License-Identifier: MIT */
#include "profile-internal.h"

#include <string.h>

double pm_weight_percent(const struct pm_weight *part, const struct pm_weight *whole)
{
	if (whole->period == 0)
		return 0;
	return 100.0 * (double)part->period / (double)whole->period;
}

const char *pm_profile_module_name(const struct pm_profile *profile, uint32_t module)
{
	if (module == PM_PROFILE_NONE)
		return "[no module]";
	return profile->modules.data[module].name;
}

void pm_loader_release(struct pm_loader *loader)
{
	pm_index_release(&loader->threads_by_name);
	pm_index_release(&loader->threads_by_tid);
	pm_index_release(&loader->processes);
	pm_index_release(&loader->functions);
	pm_index_release(&loader->places);
	pm_index_release(&loader->cells);
	pm_index_release(&loader->field_names);
	pm_index_release(&loader->branches);
	pm_index_release(&loader->count_rows);
	pm_index_release(&loader->modules_by_path);
	pm_index_release(&loader->modules_by_build);
	pm_vec_release(&loader->modules);
	pm_vec_release(&loader->same_path);
	pm_vec_release(&loader->tids);
	pm_vec_release(&loader->counts);
	pm_vec_release(&loader->named);
	pm_vec_release(&loader->depths);
	pm_profile_free(loader->profile);
}

/* ---- what is only known at the end ------------------------------------------------------- */

static void finish_sample_times(struct pm_loader *loader)
{
	struct pm_profile_info *info = &loader->profile->info;

	/* The program gets its name before its first sample: that is when it started. */
	if (loader->thread_seen && loader->first_thread_ns > 0 &&
	    (!loader->sample_seen || loader->first_thread_ns <= info->start_ns))
		info->start_ns = loader->first_thread_ns;
	if (info->end_ns < info->start_ns)
		info->end_ns = info->start_ns;
	if (info->cut)
		info->duration_ns = info->end_ns - info->start_ns;
	else if (info->duration_ns > info->end_ns - info->start_ns &&
		 info->duration_ns <= UINT64_MAX - info->start_ns)
		info->end_ns = info->start_ns + info->duration_ns;
}

static int compare_samples_by_time(const void *a, const void *b)
{
	const struct pm_profile_sample *left = a, *right = b;

	if (left->time_ns != right->time_ns)
		return PM_COMPARE(left->time_ns, right->time_ns);
	if (left->cell != right->cell)
		return PM_COMPARE(left->cell, right->cell);
	return PM_COMPARE(left->cpu, right->cpu);
}

/* The requested time range, in nanoseconds since info.start_ns. */
struct range {
	bool set;
	double from, to;
};

static uint64_t round_to_whole_ns(double ns)
{
	if (ns <= 0)
		return 0;
	if (ns >= (double)INT64_MAX)
		return INT64_MAX;
	return (uint64_t)(ns + 0.5);
}

/* Reduces the sample, which stands for an interval that ends at its time, to the part
 * that overlaps the range. Returns false if there is none. */
static bool clip_interval(struct pm_profile_sample *sample, const struct range *range)
{
	uint64_t from = round_to_whole_ns(range->from), to = round_to_whole_ns(range->to);
	uint64_t begin = PM_SUB_OR_0(sample->time_ns, sample->period);
	uint64_t end = PM_MIN(sample->time_ns, to);

	if (begin < from)
		begin = from;
	if (end <= begin)
		return false;
	sample->time_ns = end;
	sample->period = end - begin;
	return true;
}

/* Whether the sample, or a part of its blocked time, is in the range. Removes the other
 * part. */
static bool clip_sample(struct pm_profile_sample *sample, const struct range *range,
			bool blocked)
{
	if (blocked)
		return clip_interval(sample, range);
	return (double)sample->time_ns >= range->from &&
	       (double)sample->time_ns <= range->to;
}

/* Finishes the kept samples: relative times, order, and the weight of those in the
 * range. */
static void finish_samples(struct pm_loader *loader)
{
	const struct pm_profile_options *options = loader->options;
	struct pm_profile *profile = loader->profile;
	const struct pm_profile_info *info = &profile->info;
	double unit = 1e9;
	struct range range = { .set = options && options->time_set };
	bool sorted = true;
	size_t left = 0;

	if (options && options->time_percent)
		unit = (double)(info->end_ns - info->start_ns) / 100.0;
	if (range.set) {
		range.from = options->time_from * unit;
		range.to = options->time_to * unit;
	}
	for (size_t i = 0; i < profile->samples.len; i++) {
		struct pm_profile_sample sample = profile->samples.data[i];
		uint32_t event = profile->cells.data[sample.cell].event;
		bool early = sample.time_ns < info->start_ns;

		sample.time_ns = PM_SUB_OR_0(sample.time_ns, info->start_ns);
		if (range.set && early)
			continue;
		if (range.set &&
		    !clip_sample(&sample, &range, profile->events.data[event].blocked))
			continue;
		pm_load_add(&profile->cells.data[sample.cell], sample.period);
		sorted = sorted &&
			 (left == 0 ||
			  sample.time_ns >= profile->samples.data[left - 1].time_ns);
		profile->samples.data[left++] = sample;
	}
	profile->samples.len = left;
	if (!options || !options->keep_samples)
		pm_vec_release(&profile->samples);
	else if (!sorted)
		qsort(profile->samples.data, profile->samples.len,
		      sizeof(*profile->samples.data), compare_samples_by_time);
}

/* Gives samples without any frame a stack, so that sums are complete. */
static int finish_stackless(struct pm_loader *loader)
{
	static const struct pm_file_function no_stack = { .name = PM_NO_STACK };
	struct pm_profile *profile = loader->profile;
	struct pm_profile_frame frame = { .module = PM_PROFILE_NONE, .levels = 1 };
	struct pm_profile_stack stack = { .parent = PM_PROFILE_NONE };
	uint32_t function, place, id = PM_PROFILE_NONE;
	int ret;

	for (size_t i = 0; i < profile->cells.len; i++) {
		struct pm_profile_cell *cell = &profile->cells.data[i];

		if (cell->stack != PM_FILE_NONE)
			continue;
		if (id == PM_PROFILE_NONE) {
			ret = pm_load_function(loader, &no_stack, PM_PROFILE_NONE,
					       &function);
			if (ret == 0)
				ret = pm_load_place(loader, function, NULL, 0, &place);
			frame.first_level = (uint32_t)profile->levels.len;
			if (ret == 0)
				ret = pm_vec_push(&profile->levels, place);
			stack.frame = (uint32_t)profile->frames.len;
			if (ret == 0)
				ret = pm_vec_push(&profile->frames, frame);
			id = (uint32_t)profile->stacks.len;
			if (ret == 0)
				ret = pm_vec_push(&profile->stacks, stack);
			if (ret < 0)
				return ret;
			profile->functions.data[function].unknown = true;
		}
		cell->stack = id;
	}
	return 0;
}

/* Gives frames without a symbol a level; those of one module share it. */
static int finish_nameless(struct pm_loader *loader)
{
	static const struct pm_file_function nameless;
	struct pm_profile *profile = loader->profile;
	size_t modules = profile->modules.len;
	PM_AUTO_FREE uint32_t *level_of = calloc(modules + 1, sizeof(*level_of));

	if (!level_of)
		return -ENOMEM;
	for (size_t i = 0; i < profile->frames.len; i++) {
		struct pm_profile_frame *frame = &profile->frames.data[i];
		uint32_t *level = &level_of[modules];

		if (frame->levels > 0)
			continue;
		if (frame->module != PM_PROFILE_NONE)
			level = &level_of[frame->module];
		if (*level == 0) {
			uint32_t function, place;
			int ret = pm_load_function(loader, &nameless, frame->module,
						   &function);

			if (ret == 0)
				ret = pm_load_place(loader, function, NULL, 0, &place);
			if (ret == 0)
				ret = pm_vec_push(&profile->levels, place);
			if (ret < 0)
				return ret;
			*level = (uint32_t)profile->levels.len; /* row plus 1 */
		}
		frame->first_level = *level - 1;
		frame->levels = 1;
	}
	return 0;
}

static void finish_stack_children(struct pm_profile *profile)
{
	profile->first_root = PM_PROFILE_NONE;
	for (size_t i = profile->stacks.len; i-- > 0;) {
		struct pm_profile_stack *stack = &profile->stacks.data[i];
		uint32_t *list = &profile->first_root;

		if (stack->parent != PM_PROFILE_NONE)
			list = &profile->stacks.data[stack->parent].first_child;

		stack->next = *list;
		*list = (uint32_t)i;
	}
}

int pm_load_failed(int code, struct pm_error *err)
{
	if (code == -ENOMEM)
		return pm_error_set(err, code, "out of memory");
	return pm_error_set(err, code, "finding names failed: %s", strerror(-code));
}

/* Counts processes and threads. The kernel no longer regards an exiting task as a thread,
 * so its last samples have no pid and tid. */
static void count_tasks(struct pm_loader *loader)
{
	struct pm_profile *profile = loader->profile;

	for (size_t i = 0; i < profile->processes.len; i++)
		profile->info.processes += profile->processes.data[i].pid != PM_FILE_NONE;
	for (size_t i = 0; i < loader->tids.len; i++)
		profile->info.threads += loader->tids.data[i].tid != PM_FILE_NONE;
}

int pm_load_finish(struct pm_loader *loader)
{
	struct pm_profile *profile = loader->profile;
	int ret;

	if (profile->info.cut)
		profile->info.lost = loader->lost_records;
	count_tasks(loader);
	finish_sample_times(loader);
	finish_samples(loader);
	ret = pm_load_parallelism(loader);
	if (ret == 0)
		ret = pm_load_resymbolize(loader);
	if (ret == 0)
		ret = finish_stackless(loader);
	if (ret == 0)
		ret = finish_nameless(loader);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < profile->stacks.len; i++)
		profile->stacks.data[i].first_child = PM_PROFILE_NONE;
	finish_stack_children(profile);
	for (size_t i = 0; i < profile->events.len; i++)
		profile->events.data[i].total = (struct pm_weight){ 0 };
	for (size_t i = 0; i < profile->cells.len; i++) {
		const struct pm_profile_cell *cell = &profile->cells.data[i];

		pm_weight_add(&profile->events.data[cell->event].total, &cell->weight);
	}
	return 0;
}

/* ---- loading --------------------------------------------------------------------------- */

int pm_load_record(struct pm_loader *loader, const struct pm_file_record *record)
{
	switch (record->type) {
	case PM_FILE_HEADER:
		return pm_load_header(loader, &record->header);
	case PM_FILE_MODULE:
		return pm_load_module(loader, &record->module);
	case PM_FILE_THREAD:
		return pm_load_thread(loader, &record->thread);
	case PM_FILE_FRAME:
		return pm_load_frame(loader, &record->frame);
	case PM_FILE_STACK:
		return pm_load_stack(loader, &record->stack);
	case PM_FILE_SAMPLE:
		return pm_load_sample(loader, &record->sample);
	case PM_FILE_SYMBOL:
		return pm_load_symbol(loader, &record->symbol);
	case PM_FILE_LOST:
		if (__builtin_add_overflow(loader->lost_records, record->lost.count,
					   &loader->lost_records))
			loader->lost_records = UINT64_MAX;
		return 0;
	case PM_FILE_NOTE:
		return pm_load_note(loader, &record->note);
	case PM_FILE_TITLE:
		return pm_load_title(loader, &record->title);
	case PM_FILE_FOOTER:
		return pm_load_footer(loader, &record->footer);
	}
	return 0;
}

static struct pm_profile *profile_new(void)
{
	struct pm_profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	profile->texts = pm_text_pool_new();
	if (!profile->texts || pm_vec_push(&profile->stops, NULL) < 0) {
		pm_profile_free(profile);
		return NULL;
	}
	return profile;
}

int pm_loader_init(struct pm_loader *loader, const struct pm_profile_options *options)
{
	*loader = (struct pm_loader){ .options = options, .profile = profile_new() };
	if (!loader->profile)
		return -ENOMEM;
	return 0;
}

int pm_profile_load(struct pm_profile **out, struct pm_file_reader *reader,
		    const struct pm_profile_options *options, struct pm_error *err)
{
	PM_CLEANUP(pm_loader_release) struct pm_loader loader;
	struct pm_file_record record;
	int ret;

	if (pm_loader_init(&loader, options) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	while ((ret = pm_file_reader_next(reader, &record, err)) > 0) {
		ret = pm_load_record(&loader, &record);
		if (ret < 0)
			return pm_error_set(err, ret, "out of memory at line %llu",
					    (unsigned long long)record.line);
	}
	if (ret < 0)
		return ret;
	loader.profile->info.cut = pm_file_reader_cut(reader);
	ret = pm_load_finish(&loader);
	if (ret < 0)
		return pm_load_failed(ret, err);
	*out = PM_TAKE_PTR(loader.profile);
	return 0;
}

void pm_profile_free(struct pm_profile *profile)
{
	if (!profile)
		return;
	pm_vec_release(&profile->command);
	pm_vec_release(&profile->notes);
	pm_vec_release(&profile->stops);
	pm_vec_release(&profile->events);
	pm_vec_release(&profile->modules);
	pm_vec_release(&profile->threads);
	pm_vec_release(&profile->processes);
	pm_vec_release(&profile->functions);
	pm_vec_release(&profile->places);
	pm_vec_release(&profile->levels);
	pm_vec_release(&profile->frames);
	pm_vec_release(&profile->stacks);
	pm_vec_release(&profile->cells);
	pm_vec_release(&profile->samples);
	pm_vec_release(&profile->fields);
	pm_vec_release(&profile->field_names);
	pm_vec_release(&profile->parallelism);
	pm_vec_release(&profile->branches);
	pm_text_pool_free(profile->texts);
	free(profile);
}

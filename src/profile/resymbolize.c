/* SPDX-License-Identifier: MIT */
/* Passes the frames without names in the file to a symbolizer, module by module. */
#include "profile-internal.h"

/* A frame, sorted by module, then address. */
struct item {
	uint64_t address;
	uint32_t module, frame;
};

struct work {
	struct pm_loader *loader;
	struct item *items;
	size_t len;
	uint64_t *addresses; /* addresses of all items, each once per module */
	struct pm_weight *self; /* by row of modules */
	bool *lines; /* by row of modules: the module has lines */
	PM_VEC(struct pm_profile_nameless) modules;
	PM_VEC(const struct item *) begins; /* by row of modules: the first item */
};

static bool frame_has_file(const struct pm_profile *profile,
			   const struct pm_profile_frame *frame)
{
	for (uint32_t i = 0; i < frame->levels; i++)
		if (profile->places.data[profile->levels.data[frame->first_level + i]]
			    .file)
			return true;
	return false;
}

static bool is_frame_nameless(const struct pm_profile *profile,
			      const struct pm_profile_frame *frame)
{
	const struct pm_profile_place *place;

	if (frame->levels != 1)
		return frame->levels == 0;
	place = &profile->places.data[profile->levels.data[frame->first_level]];
	return profile->functions.data[place->function].unknown;
}

static bool is_frame_wanted(const struct work *work, uint32_t id)
{
	const struct pm_profile *profile = work->loader->profile;
	const struct pm_profile_frame *frame = &profile->frames.data[id];

	return id >= work->loader->asked && frame->module != PM_PROFILE_NONE &&
	       (is_frame_nameless(profile, frame) ||
		(work->loader->options->symbolizer->lines &&
		 !frame_has_file(profile, frame)));
}

/* Whether the start of the unnamed function is already known: a symbolizer cannot add
 * more. */
static bool frame_has_start(const struct pm_profile *profile,
			    const struct pm_profile_frame *frame)
{
	const struct pm_profile_place *place;

	if (frame->levels == 0)
		return false;
	place = &profile->places.data[profile->levels.data[frame->first_level]];
	return profile->functions.data[place->function].start > 0;
}

static int compare_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	if (a->module != b->module)
		return PM_COMPARE(a->module, b->module);
	if (a->address != b->address)
		return PM_COMPARE(a->address, b->address);
	return PM_COMPARE(a->frame, b->frame);
}

static int collect_nameless_items(struct work *work)
{
	const struct pm_profile *profile = work->loader->profile;
	size_t len = profile->frames.len - work->loader->asked;

	work->items = reallocarray(NULL, len + 1, sizeof(*work->items));
	work->addresses = reallocarray(NULL, len + 1, sizeof(*work->addresses));
	work->self = calloc(profile->modules.len + 1, sizeof(*work->self));
	work->lines = calloc(profile->modules.len + 1, sizeof(*work->lines));
	if (!work->items || !work->addresses || !work->self || !work->lines)
		return -ENOMEM;
	for (size_t i = 0; i < profile->frames.len; i++) {
		const struct pm_profile_frame *frame = &profile->frames.data[i];

		if (frame->module != PM_PROFILE_NONE && !work->lines[frame->module])
			work->lines[frame->module] = frame_has_file(profile, frame);
	}
	for (uint32_t id = work->loader->asked; id < profile->frames.len; id++) {
		const struct pm_profile_frame *frame = &profile->frames.data[id];

		if (is_frame_wanted(work, id))
			work->items[work->len++] =
				(struct item){ .address = frame->address,
					       .module = frame->module,
					       .frame = id };
	}
	qsort(work->items, work->len, sizeof(*work->items), compare_items);
	for (size_t i = 0; work->len > 0 && i < profile->cells.len; i++) {
		const struct pm_profile_cell *cell = &profile->cells.data[i];
		uint32_t id;

		if (cell->stack == PM_FILE_NONE)
			continue;
		id = profile->stacks.data[cell->stack].frame;
		if (is_frame_wanted(work, id))
			pm_weight_add(&work->self[profile->frames.data[id].module],
				      &cell->weight);
	}
	return 0;
}

static int compare_nameless_by_weight(const void *left, const void *right)
{
	const struct pm_profile_nameless *a = left, *b = right;

	if (a->self.samples != b->self.samples)
		return PM_COMPARE(b->self.samples, a->self.samples);
	if (a->addresses_len != b->addresses_len)
		return PM_COMPARE(b->addresses_len, a->addresses_len);
	return PM_COMPARE(a->addresses, b->addresses);
}

static int plan_modules(struct work *work)
{
	const struct pm_profile *profile = work->loader->profile;
	uint64_t *to = work->addresses;

	if (pm_vec_reserve(&work->begins, profile->modules.len) < 0)
		return -ENOMEM;
	for (size_t begin = 0, end; begin < work->len; begin = end) {
		uint32_t module = work->items[begin].module;
		struct pm_profile_nameless nameless = {
			.module = &profile->modules.data[module],
			.addresses = to,
			.self = work->self[module],
			/* If the recording has no footer, its names are incomplete. */
			.named = work->loader->named.data[module] && !profile->info.cut,
			.lines = work->lines[module],
		};

		work->begins.data[module] = &work->items[begin];
		for (end = begin; end < work->len && work->items[end].module == module;
		     end++)
			if (end == begin ||
			    work->items[end].address != work->items[end - 1].address)
				*to++ = work->items[end].address;
		nameless.addresses_len = (size_t)(to - nameless.addresses);
		if (pm_vec_push(&work->modules, nameless) < 0)
			return -ENOMEM;
	}
	if (work->modules.len > 0)
		qsort(work->modules.data, work->modules.len, sizeof(*work->modules.data),
		      compare_nameless_by_weight);
	return 0;
}

/* Returns the first item of @module at @address. */
static const struct item *find_first_item_at(const struct work *work, uint32_t module,
					     uint64_t address)
{
	const struct item *items = work->begins.data[module];
	size_t low = 0, high = (size_t)(work->items + work->len - items);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (items[middle].module == module && items[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return items + low;
}

/* pm_profile_name_fn. Adds a name to each frame at the address: unwinding may have found
 * equal addresses in different ways. */
static int name_frames_at_address(void *to, size_t module, size_t address,
				  const struct pm_file_function *functions, size_t len)
{
	struct work *work = to;
	struct pm_profile *profile = work->loader->profile;
	const struct pm_profile_nameless *of = &work->modules.data[module];
	uint32_t row = (uint32_t)(of->module - profile->modules.data);
	const struct item *item = find_first_item_at(work, row, of->addresses[address]);
	bool file = false, start = pm_load_is_start(functions, len);
	int ret = 0;

	for (size_t i = 0; i < len; i++)
		file = file || functions[i].file;
	for (; ret == 0 && item < work->items + work->len && item->module == row &&
	       item->address == of->addresses[address];
	     item++) {
		const struct pm_profile_frame *frame = &profile->frames.data[item->frame];

		/* Keep the name in the file unless the new one is better. */
		if (file || (is_frame_nameless(profile, frame) &&
			     !(start && frame_has_start(profile, frame)))) {
			ret = pm_load_names(work->loader, &(struct pm_file_symbol){
								  .frame = item->frame,
								  .functions = functions,
								  .functions_len = len });
			profile->info.found += ret == 0 && !start;
		}
	}
	return ret;
}

int pm_load_resymbolize(struct pm_loader *loader)
{
	const struct pm_profile_symbolizer *symbolizer =
		loader->options ? loader->options->symbolizer : NULL;
	struct work work = { .loader = loader };
	int ret;

	if (!symbolizer)
		return 0;
	ret = collect_nameless_items(&work);
	if (ret == 0)
		ret = plan_modules(&work);
	if (ret == 0 && work.modules.len > 0)
		ret = symbolizer->symbolize(symbolizer->context, &loader->profile->info,
					    work.modules.data, work.modules.len,
					    name_frames_at_address, &work);
	if (ret == 0)
		loader->asked = (uint32_t)loader->profile->frames.len;
	free(work.items);
	free(work.addresses);
	free(work.self);
	free(work.lines);
	pm_vec_release(&work.modules);
	pm_vec_release(&work.begins);
	if (ret < 0)
		return ret;
	return 0;
}

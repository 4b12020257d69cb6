/* SPDX-License-Identifier: MIT */
/* Converts the records of a file to the tables of a profile. */
#include "profile-internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int pm_load_text(struct pm_loader *loader, const char *text, const char **out)
{
	const char *copy;

	if (!text) {
		*out = NULL;
		return 0;
	}
	copy = pm_text_pool_add(loader->profile->texts, text, strlen(text));
	if (!copy)
		return -ENOMEM;
	*out = copy;
	return 0;
}

/* ---- functions and places ----------------------------------------------------------- */

static bool profile_function_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_profile *profile = table;
	const struct pm_profile_function *have = &profile->functions.data[id];
	const struct pm_profile_function *wanted = key;

	/* Names are pooled: equal texts have the same pointer. */
	return have->name == wanted->name && have->module == wanted->module &&
	       have->unknown == wanted->unknown;
}

static int load_name(struct pm_loader *loader, const char *name, uint64_t start,
		     const char **out)
{
	char text[sizeof("[0x0123456789abcdef]")];

	if (!name && start > 0) {
		snprintf(text, sizeof(text), "[%#" PRIx64 "]", start);
		name = text;
	}
	return pm_load_text(loader, pm_text_or(name, "[unknown]"), out);
}

int pm_load_function(struct pm_loader *loader, const struct pm_file_function *named,
		     uint32_t module, uint32_t *out)
{
	struct pm_profile *profile = loader->profile;
	struct pm_profile_function function = { .module = module,
						.unknown = !named->name };
	uint64_t hash;
	uint32_t id;
	int ret;

	/* Readers expect a file that was rebuilt during the recording to have the same
	 * functions. */
	if (module != PM_PROFILE_NONE)
		function.module = loader->same_path.data[module];

	/* A function without a name is identified by its start, which differs between
	 * builds. */
	if (!named->name && module != PM_PROFILE_NONE &&
	    !(loader->options && loader->options->no_starts)) {
		function.start = named->start;
		if (named->start > 0)
			function.module = module;
	}
	ret = load_name(loader, named->name, function.start, &function.name);
	if (ret < 0)
		return ret;
	hash = pm_hash_mix((uintptr_t)function.name, function.module);
	id = pm_index_find(&loader->functions, hash, profile_function_equal, profile,
			   &function);
	if (id == PM_INDEX_NONE) {
		id = (uint32_t)profile->functions.len;
		ret = pm_vec_push(&profile->functions, function);
		if (ret == 0)
			ret = pm_index_add(&loader->functions, hash, id);
		if (ret < 0)
			return ret;
	}
	*out = id;
	return 0;
}

static bool profile_place_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_profile *profile = table;
	const struct pm_profile_place *have = &profile->places.data[id];
	const struct pm_profile_place *wanted = key;

	return have->function == wanted->function && have->line == wanted->line &&
	       have->file == wanted->file;
}

int pm_load_place(struct pm_loader *loader, uint32_t function, const char *file,
		  uint32_t line, uint32_t *out)
{
	struct pm_profile *profile = loader->profile;
	struct pm_profile_place place = { .function = function, .line = file ? line : 0 };
	uint64_t hash;
	uint32_t id;
	int ret = pm_load_text(loader, file, &place.file);

	if (ret < 0)
		return ret;
	hash = pm_hash_mix(pm_hash_mix((uintptr_t)place.file, function), place.line);
	id = pm_index_find(&loader->places, hash, profile_place_equal, profile, &place);
	if (id == PM_INDEX_NONE) {
		id = (uint32_t)profile->places.len;
		ret = pm_vec_push(&profile->places, place);
		if (ret == 0)
			ret = pm_index_add(&loader->places, hash, id);
		if (ret < 0)
			return ret;
	}
	*out = id;
	return 0;
}

int pm_load_names(struct pm_loader *loader, const struct pm_file_symbol *symbol)
{
	struct pm_profile *profile = loader->profile;
	struct pm_profile_frame *frame = &profile->frames.data[symbol->frame];
	const struct pm_file_function *functions = symbol->functions;
	size_t len = symbol->functions_len;

	if (loader->options && loader->options->no_inlines) {
		functions += len - 1;
		len = 1;
	}
	if (len > UINT32_MAX - profile->levels.len)
		return -ENOMEM;
	frame->first_level = (uint32_t)profile->levels.len;
	frame->levels = 0; /* until all levels are added */
	for (size_t i = 0; i < len; i++) {
		uint32_t function, place;
		int ret =
			pm_load_function(loader, &functions[i], frame->module, &function);

		if (ret == 0)
			ret = pm_load_place(loader, function, functions[i].file,
					    functions[i].line, &place);
		if (ret == 0)
			ret = pm_vec_push(&profile->levels, place);
		if (ret < 0)
			return ret;
	}
	frame->levels = (uint32_t)len;
	return 0;
}

bool pm_load_is_start(const struct pm_file_function *functions, size_t len)
{
	return len == 1 && !functions[0].name && !functions[0].file;
}

int pm_load_symbol(struct pm_loader *loader, const struct pm_file_symbol *symbol)
{
	struct pm_profile *profile = loader->profile;
	uint32_t module = profile->frames.data[symbol->frame].module;
	int ret;

	if (symbol->functions_len == 0)
		return 0;
	ret = pm_load_names(loader, symbol);
	if (ret < 0 || pm_load_is_start(symbol->functions, symbol->functions_len))
		return ret;
	profile->info.symbols++;
	if (module != PM_PROFILE_NONE)
		loader->named.data[module] = true;
	return 0;
}

/* ---- header, modules, footer ------------------------------------------------------------- */

static int load_event(struct pm_loader *loader, const struct pm_file_event *event)
{
	struct pm_profile_event copy = {
		.by_frequency = event->by_frequency,
		.rate = event->rate,
		.leader = event->leader,
		.counted = event->leader != loader->profile->events.len &&
			   event->modifiers && strchr(event->modifiers, 'S'),
	};
	const char *name = pm_text_or(event->name, "event");
	int ret = pm_load_text(loader, name, &copy.name);

	if (ret == 0)
		ret = pm_load_text(loader, pm_text_or(event->actual, name), &copy.actual);
	if (ret == 0)
		ret = pm_load_text(loader, pm_text_or(event->requested, copy.actual),
				   &copy.requested);
	if (ret == 0)
		ret = pm_load_text(loader, pm_text_or(event->unit, "events"), &copy.unit);
	if (ret == 0)
		ret = pm_load_text(loader, event->filter, &copy.filter);
	copy.blocked = strcmp(name, "off-cpu") == 0;
	if (ret < 0)
		return ret;
	return pm_vec_push(&loader->profile->events, copy);
}

int pm_load_header(struct pm_loader *loader, const struct pm_file_header *header)
{
	struct pm_profile *profile = loader->profile;
	struct pm_profile_info *info = &profile->info;
	const struct {
		const char *from, **to;
	} texts[] = {
		{ header->pmrec, &info->pmrec },
		{ header->created, &info->created },
		{ header->host.hostname, &info->hostname },
		{ header->host.kernel, &info->kernel },
		{ header->host.arch, &info->arch },
		{ header->host.cpu_model, &info->cpu_model },
		{ header->host.virt, &info->virt },
		{ header->host.boot_id, &info->boot_id },
		{ header->options.call_graph, &info->call_graph },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(texts); i++)
		if (pm_load_text(loader, texts[i].from, texts[i].to) < 0)
			return -ENOMEM;
	if (pm_load_text(loader, header->target, &profile->target) < 0)
		return -ENOMEM;
	info->cpus = header->host.cpus;
	info->uid = header->uid_known ? header->uid : PM_FILE_NONE;
	info->owner = header->owner;
	info->stack_bytes = header->options.stack_bytes;
	info->ring_bytes = header->options.ring_bytes;
	for (size_t i = 0; i < header->command_len; i++) {
		const char *word;

		if (pm_load_text(loader, header->command[i], &word) < 0 ||
		    pm_vec_push(&profile->command, word) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < header->events_len; i++) {
		int ret = load_event(loader, &header->events[i]);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static const char *short_module_name(const struct pm_file_module *module)
{
	const char *path = pm_text_or_empty(module->path);
	const char *slash = strrchr(path, '/');
	const char *kind = pm_text_or_empty(module->kind);

	if (strcmp(kind, "kernel") == 0) {
		/* A loadable module of the kernel keeps its name: [ext4]. */
		bool own = path[0] == '[' && strncmp(path, "[kernel", 7) != 0;

		if (own)
			return path;
		return "[kernel]";
	}
	if (strcmp(kind, "vdso") == 0)
		return "[vdso]";
	if (strcmp(kind, "anon") == 0)
		return "[anon]";
	if (slash && slash[1] != '\0')
		return slash + 1;
	if (path[0] != '\0')
		return path;
	if (strcmp(kind, "jit") == 0)
		return "[jit]";
	return "[no name]";
}

static bool module_path_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_profile_module *have =
		&((const struct pm_profile *)table)->modules.data[id];
	const struct pm_profile_module *wanted = key;

	return have->path == wanted->path && have->kind == wanted->kind;
}

static bool module_build_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_profile_module *have =
		&((const struct pm_profile *)table)->modules.data[id];
	const struct pm_profile_module *wanted = key;

	return module_path_equal(table, id, key) && have->build_id == wanted->build_id;
}

static int loader_add_module(struct pm_loader *loader,
			     const struct pm_profile_module *module, uint64_t path_hash,
			     uint64_t build_hash, uint32_t *first, uint32_t *out)
{
	struct pm_profile *profile = loader->profile;
	uint32_t row = (uint32_t)profile->modules.len;
	int ret = pm_vec_push(&profile->modules, *module);

	if (ret == 0)
		ret = pm_index_add(&loader->modules_by_build, build_hash, row);
	if (ret == 0 && *first == PM_INDEX_NONE) {
		ret = pm_index_add(&loader->modules_by_path, path_hash, row);
		*first = row;
	}
	if (ret == 0)
		ret = pm_vec_push(&loader->same_path, *first);
	if (ret == 0)
		ret = pm_vec_push(&loader->named, false);
	*out = row;
	return ret;
}

/*
 * Finds or adds a module. The kernel reads a build-id when it maps a file, but not if
 * that page is not in memory. One file may therefore appear with and without a build-id,
 * and is still one module.
 */
static int loader_find_or_add_module(struct pm_loader *loader,
				     const struct pm_profile_module *module,
				     uint32_t *out)
{
	struct pm_profile *profile = loader->profile;
	uint64_t path_hash =
		pm_hash_mix((uintptr_t)module->path, (uintptr_t)module->kind);
	uint64_t build_hash = pm_hash_mix(path_hash, (uintptr_t)module->build_id);
	uint32_t first = pm_index_find(&loader->modules_by_path, path_hash,
				       module_path_equal, profile, module);
	uint32_t row = pm_index_find(&loader->modules_by_build, build_hash,
				     module_build_equal, profile, module);

	if (row == PM_INDEX_NONE && first != PM_INDEX_NONE) {
		struct pm_profile_module *twin = &profile->modules.data[first];

		if (!module->build_id) {
			row = first;
		} else if (!twin->build_id) {
			row = first;
			twin->build_id = module->build_id;
			if (pm_index_add(&loader->modules_by_build, build_hash, row) < 0)
				return -ENOMEM;
		}
	}
	if (row == PM_INDEX_NONE)
		return loader_add_module(loader, module, path_hash, build_hash, &first,
					 out);
	*out = row;
	return 0;
}

int pm_load_module(struct pm_loader *loader, const struct pm_file_module *module)
{
	struct pm_profile_module copy = {
		.kernel = module->kind && strcmp(module->kind, "kernel") == 0,
	};
	uint32_t row;
	int ret = pm_load_text(loader, pm_text_or_empty(module->path), &copy.path);

	if (ret == 0)
		ret = pm_load_text(loader, short_module_name(module), &copy.name);
	if (ret == 0)
		ret = pm_load_text(loader, module->build_id, &copy.build_id);
	if (ret == 0)
		ret = pm_load_text(loader, pm_text_or(module->kind, "file"), &copy.kind);
	if (ret == 0)
		ret = loader_find_or_add_module(loader, &copy, &row);
	if (ret < 0)
		return ret;
	return pm_vec_push(&loader->modules, row);
}

int pm_load_frame(struct pm_loader *loader, const struct pm_file_frame *frame)
{
	uint32_t module = frame->module;

	if (module != PM_FILE_NONE)
		module = loader->modules.data[module];
	return pm_vec_push(
		&loader->profile->frames,
		(struct pm_profile_frame){
			.module = module,
			.address = frame->address,
			.stitched = frame->how && strcmp(frame->how, "stitched") == 0,
		});
}

/*
 * Adds a stack. If it is too deep, the innermost frame and the frames next to the root
 * are kept, and the frames in between are dropped. The self time of functions is still
 * correct.
 */
int pm_load_stack(struct pm_loader *loader, const struct pm_file_stack *stack)
{
	struct pm_profile *profile = loader->profile;
	struct pm_profile_stack copy = { .parent = stack->parent, .frame = stack->frame };
	uint16_t depth = 1;
	int ret;

	if (copy.parent != PM_PROFILE_NONE) {
		depth = loader->depths.data[copy.parent];
		if (depth == PM_PROFILE_DEPTH_MAX) {
			copy.parent = profile->stacks.data[copy.parent].parent;
			profile->info.stacks_cut++;
		} else {
			depth++;
		}
	}
	ret = pm_vec_push(&loader->depths, depth);
	if (ret < 0)
		return ret;
	return pm_vec_push(&profile->stacks, copy);
}

int pm_load_note(struct pm_loader *loader, const struct pm_file_note *note)
{
	struct pm_profile *profile = loader->profile;
	const char *text;

	if (!note->text)
		return 0;
	if (profile->notes.len == PM_PROFILE_NOTES_MAX) {
		profile->info.notes_left_out++;
		return 0;
	}
	if (pm_load_text(loader, note->text, &text) < 0)
		return -ENOMEM;
	return pm_vec_push(&profile->notes, text);
}

int pm_load_footer(struct pm_loader *loader, const struct pm_file_footer *footer)
{
	struct pm_profile *profile = loader->profile;
	struct pm_profile_info *info = &profile->info;

	info->footer_samples = footer->samples;
	info->lost = footer->lost;
	info->throttled = footer->throttled;
	info->duration_ns = footer->duration_ns;
	info->cpu_known = footer->cpu_known;
	info->cpu_ns = footer->cpu_ns;
	info->exited = footer->exited;
	info->signalled = footer->signalled;
	info->exit = footer->exit;
	for (size_t i = 0; i < footer->events_len && i < profile->events.len; i++) {
		profile->events.data[i].lost = footer->events[i].lost;
		profile->events.data[i].lost_known = footer->events[i].lost_known;
	}
	return 0;
}

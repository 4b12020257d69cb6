/* SPDX-License-Identifier: MIT */
/*
 * The tables that the threads of a Firefox profile refer to: version 61 of the processed
 * format, as described in docs-developer/CHANGELOG-formats.md of
 * github.com/firefox-devtools/profiler.
 */
#include "firefox.h"

#include <ctype.h>
#include <string.h>

enum {
	CATEGORY_OTHER,
	CATEGORY_USER,
	CATEGORY_KERNEL,
	CATEGORY_JIT,
	RESOURCE_LIBRARY = 1,
	/* JavaScript's numbers are doubles, which cannot represent all integers with more
	 * bits. */
	EXACT_BITS = 53,
	BREAKPAD_DIGITS = 32,
};

uint32_t pm_firefox_string(struct pm_firefox *it)
{
	uint32_t id = 0;

	if (it->text.failed ||
	    pm_strings_add(&it->strings, it->text.data, it->text.len, &id) < 0)
		it->failed = true;
	pm_str_clear(&it->text);
	return id;
}

/* ---- indexes ---------------------------------------------------------------------------- */

static int number_function(struct pm_firefox *it, uint32_t function)
{
	uint32_t module = it->profile->functions.data[function].module;

	if (it->functions[function] != 0)
		return 0;
	if (pm_vec_push(&it->function_list, function) < 0)
		return -ENOMEM;
	it->functions[function] = (uint32_t)it->function_list.len;
	if (module == PM_PROFILE_NONE || it->libs[module] != 0)
		return 0;
	if (pm_vec_push(&it->libs_list, module) < 0)
		return -ENOMEM;
	it->libs[module] = (uint32_t)it->libs_list.len;
	return 0;
}

int pm_firefox_number(struct pm_firefox *it)
{
	const struct pm_profile *profile = it->profile;
	uint64_t frames = 0, stacks = 0;

	for (size_t i = 0; i < profile->stacks.len; i++) {
		uint32_t id = profile->stacks.data[i].frame;
		const struct pm_profile_frame *frame = &profile->frames.data[id];

		if (!it->export.stacks[i])
			continue;
		stacks += frame->levels;
		if (stacks >= UINT32_MAX)
			return -ENOMEM;
		it->stacks[i] = (uint32_t)stacks;
		if (it->frames[id] != 0)
			continue;
		it->frames[id] = (uint32_t)frames + 1;
		frames += frame->levels;
		if (pm_vec_push(&it->frame_list, id) < 0)
			return -ENOMEM;
		for (uint32_t l = 0; l < frame->levels; l++)
			if (number_function(it, pm_profile_level_function(
							profile, (uint32_t)i, l)) < 0)
				return -ENOMEM;
	}
	return 0;
}

/* ---- libraries -------------------------------------------------------------------------- */

/* Appends Breakpad's id: the first 16 bytes of a build-id as a GUID, and an age of 0. */
static void put_breakpad_id(struct pm_str *str, const char *build_id)
{
	static const unsigned char order[BREAKPAD_DIGITS] = {
		6,  7,  4,  5,  2,  3,  0,  1,  10, 11, 8,  9,  14, 15, 12, 13,
		16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
	};
	size_t len = 0;

	if (build_id)
		len = strlen(build_id);
	for (size_t i = 0; i < BREAKPAD_DIGITS; i++) {
		char digit = order[i] < len ? build_id[order[i]] : '0';

		pm_str_putc(str, isxdigit((unsigned char)digit)
					 ? (char)toupper((unsigned char)digit)
					 : '0');
	}
	pm_str_putc(str, '0');
}

void pm_firefox_put_libs(struct pm_firefox *it)
{
	const struct pm_profile *profile = it->profile;
	struct pm_str *out = &it->out;

	pm_str_puts(out, "\"libs\":[");
	for (size_t i = 0; i < it->libs_list.len; i++) {
		uint32_t id = it->libs_list.data[i];
		const struct pm_profile_module *module = &profile->modules.data[id];

		if (i > 0)
			pm_str_puts(out, ",");
		pm_str_puts(out, "\n{\"arch\":");
		pm_str_json(out, pm_text_or_empty(profile->info.arch));
		for (int debug = 0; debug < 2; debug++) {
			pm_str_printable(&it->text, module->name, strlen(module->name));
			pm_str_puts(out, debug ? ",\"debugName\":" : ",\"name\":");
			pm_put_export_json(out, &it->text);
			pm_put_export_module(&it->text, profile, id);
			pm_str_puts(out, debug ? ",\"debugPath\":" : ",\"path\":");
			pm_put_export_json(out, &it->text);
		}
		pm_str_puts(out, ",\"breakpadId\":\"");
		put_breakpad_id(out, module->build_id);
		pm_str_puts(out, "\",\"codeId\":");
		pm_str_json(out, module->build_id);
		pm_str_putc(out, '}');
		pm_flush_some(out, it->to);
	}
	pm_str_puts(out, "]");
}

/* ---- tables ------------------------------------------------------------------------------ */

/* Called for each element of a column. */
typedef void (*put_fn)(struct pm_firefox *it, uint32_t index);

static void put_table_column(struct pm_firefox *it, const char *key, size_t len,
			     put_fn put)
{
	pm_str_puts(&it->out, "\"");
	pm_str_puts(&it->out, key);
	pm_str_puts(&it->out, "\":[");
	for (size_t i = 0; i < len; i++) {
		if (i > 0)
			pm_str_putc(&it->out, ',');
		put(it, (uint32_t)i);
		pm_flush_some(&it->out, it->to);
	}
	pm_str_puts(&it->out, "],\n");
}

static void put_length(struct pm_firefox *it, size_t len)
{
	pm_str_puts(&it->out, "\"length\":");
	pm_str_u64(&it->out, len);
	pm_str_puts(&it->out, "}");
}

static void put_resource_one(struct pm_firefox *it, uint32_t index)
{
	pm_str_putc(&it->out, '1');
}

static void put_resource_type(struct pm_firefox *it, uint32_t index)
{
	pm_str_u64(&it->out, RESOURCE_LIBRARY);
}

static void put_resource_null(struct pm_firefox *it, uint32_t index)
{
	pm_str_puts(&it->out, "null");
}

static void put_false(struct pm_firefox *it, uint32_t index)
{
	pm_str_puts(&it->out, "false");
}

static void put_index(struct pm_firefox *it, uint32_t index)
{
	pm_str_u64(&it->out, index);
}

/* Writes one row of a column of frames: @level 0 is the innermost. */
typedef void (*put_level_fn)(struct pm_firefox *it, const struct pm_profile_frame *frame,
			     uint32_t level);

/* Writes a column of frames. Levels are written outermost first, in the order of
 * inlineDepth. */
static void put_frame_column(struct pm_firefox *it, const char *key, put_level_fn put)
{
	const char *comma = "";

	pm_str_printf(&it->out, "\"%s\":[", key);
	for (size_t i = 0; i < it->frame_list.len; i++) {
		const struct pm_profile_frame *frame =
			&it->profile->frames.data[it->frame_list.data[i]];

		for (uint32_t l = frame->levels; l-- > 0; comma = ",") {
			pm_str_puts(&it->out, comma);
			put(it, frame, l);
		}
		pm_flush_some(&it->out, it->to);
	}
	pm_str_puts(&it->out, "],\n");
}

static void put_frame_address(struct pm_firefox *it, const struct pm_profile_frame *frame,
			      uint32_t level)
{
	if (frame->module == PM_PROFILE_NONE || frame->address >> EXACT_BITS != 0)
		pm_str_puts(&it->out, "-1");
	else
		pm_str_u64(&it->out, frame->address);
}

static void put_inline_depth(struct pm_firefox *it, const struct pm_profile_frame *frame,
			     uint32_t level)
{
	pm_str_u64(&it->out, frame->levels - 1 - level);
}

static void put_category(struct pm_firefox *it, const struct pm_profile_frame *frame,
			 uint32_t level)
{
	const struct pm_profile_module *module = NULL;
	unsigned category = CATEGORY_OTHER;

	if (frame->module != PM_PROFILE_NONE)
		module = &it->profile->modules.data[frame->module];
	if (module && module->kernel)
		category = CATEGORY_KERNEL;
	else if (module && strcmp(module->kind, "jit") == 0)
		category = CATEGORY_JIT;
	else if (module)
		category = CATEGORY_USER;
	pm_str_u64(&it->out, category);
}

static void put_frame_zero(struct pm_firefox *it, const struct pm_profile_frame *frame,
			   uint32_t level)
{
	pm_str_putc(&it->out, '0');
}

static void put_frame_null(struct pm_firefox *it, const struct pm_profile_frame *frame,
			   uint32_t level)
{
	pm_str_puts(&it->out, "null");
}

static const struct pm_profile_place *place_of_level(const struct pm_firefox *it,
						     const struct pm_profile_frame *frame,
						     uint32_t level)
{
	return &it->profile->places
			.data[it->profile->levels.data[frame->first_level + level]];
}

static void put_frame_function(struct pm_firefox *it,
			       const struct pm_profile_frame *frame, uint32_t level)
{
	pm_str_u64(&it->out,
		   it->functions[place_of_level(it, frame, level)->function] - 1);
}

static void put_frame_line(struct pm_firefox *it, const struct pm_profile_frame *frame,
			   uint32_t level)
{
	const struct pm_profile_place *place = place_of_level(it, frame, level);

	/* The line refers to the function's file. */
	if (place->line > 0 && pm_export_at_home(it->files, place))
		pm_str_u64(&it->out, place->line);
	else
		pm_str_puts(&it->out, "null");
}

static void put_frame_table(struct pm_firefox *it)
{
	size_t len = 0;

	for (size_t i = 0; i < it->frame_list.len; i++)
		len += it->profile->frames.data[it->frame_list.data[i]].levels;
	pm_str_puts(&it->out, "\"frameTable\":{");
	put_frame_column(it, "address", put_frame_address);
	put_frame_column(it, "inlineDepth", put_inline_depth);
	put_frame_column(it, "category", put_category);
	put_frame_column(it, "subcategory", put_frame_zero);
	put_frame_column(it, "func", put_frame_function);
	put_frame_column(it, "nativeSymbol", put_frame_null);
	put_frame_column(it, "innerWindowID", put_frame_zero);
	put_frame_column(it, "line", put_frame_line);
	put_frame_column(it, "column", put_frame_null);
	put_length(it, len);
}

/* Each of our stacks becomes one stack per level, outermost first. */
static void put_stack_table(struct pm_firefox *it)
{
	const struct pm_profile *profile = it->profile;
	size_t len = 0;

	pm_str_puts(&it->out, "\"stackTable\":{");
	for (int prefix = 0; prefix < 2; prefix++) {
		const char *comma = "";

		len = 0;
		pm_str_puts(&it->out, prefix ? "\"prefix\":[" : "\"frame\":[");
		for (size_t i = 0; i < profile->stacks.len; i++) {
			const struct pm_profile_stack *stack = &profile->stacks.data[i];
			uint32_t levels = profile->frames.data[stack->frame].levels;

			for (uint32_t l = 0; it->export.stacks[i] && l < levels; l++) {
				pm_str_puts(&it->out, comma);
				if (!prefix)
					pm_str_u64(&it->out,
						   it->frames[stack->frame] - 1 + l);
				else if (l > 0)
					pm_str_u64(&it->out, len - 1);
				else if (stack->parent != PM_PROFILE_NONE)
					pm_str_u64(&it->out,
						   it->stacks[stack->parent] - 1);
				else
					pm_str_puts(&it->out, "null");
				comma = ",";
				len++;
			}
			pm_flush_some(&it->out, it->to);
		}
		pm_str_puts(&it->out, "],\n");
	}
	put_length(it, len);
}

static void put_function_name(struct pm_firefox *it, uint32_t index)
{
	pm_put_export_function(&it->text, it->profile, it->function_list.data[index]);
	pm_str_u64(&it->out, pm_firefox_string(it));
}

static void put_resource(struct pm_firefox *it, uint32_t index)
{
	uint32_t function = it->function_list.data[index];
	uint32_t module = it->profile->functions.data[function].module;

	if (module == PM_PROFILE_NONE)
		pm_str_puts(&it->out, "-1");
	else
		pm_str_u64(&it->out, it->libs[module] - 1);
}

static void put_function_source(struct pm_firefox *it, uint32_t index)
{
	const char *file = it->files[it->function_list.data[index]];
	uint32_t id;

	if (!file) {
		pm_str_puts(&it->out, "null");
		return;
	}
	pm_str_printable(&it->text, file, strlen(file));
	if (it->text.failed ||
	    pm_strings_add(&it->sources, it->text.data, it->text.len, &id) < 0)
		it->failed = true;
	else
		pm_str_u64(&it->out, id);
	pm_str_clear(&it->text);
}

static void put_function_table(struct pm_firefox *it)
{
	size_t len = it->function_list.len;

	pm_str_puts(&it->out, "\"funcTable\":{");
	put_table_column(it, "name", len, put_function_name);
	put_table_column(it, "isJS", len, put_false);
	put_table_column(it, "relevantForJS", len, put_false);
	put_table_column(it, "resource", len, put_resource);
	put_table_column(it, "source", len, put_function_source);
	put_table_column(it, "lineNumber", len, put_resource_null);
	put_table_column(it, "columnNumber", len, put_resource_null);
	put_length(it, len);
}

static void put_resource_name(struct pm_firefox *it, uint32_t index)
{
	const char *name = it->profile->modules.data[it->libs_list.data[index]].name;

	pm_str_printable(&it->text, name, strlen(name));
	pm_str_u64(&it->out, pm_firefox_string(it));
}

static void put_source_name(struct pm_firefox *it, uint32_t index)
{
	const char *file = pm_strings_get(&it->sources, index);

	pm_str_puts(&it->text, file);
	pm_str_u64(&it->out, pm_firefox_string(it));
}

static void put_string(struct pm_firefox *it, uint32_t index)
{
	pm_str_json(&it->out, pm_strings_get(&it->strings, index));
}

void pm_firefox_put_shared(struct pm_firefox *it)
{
	size_t libs = it->libs_list.len;

	pm_str_puts(&it->out, "\"shared\":{");
	put_stack_table(it);
	pm_str_puts(&it->out, ",\n");
	put_frame_table(it);
	pm_str_puts(&it->out, ",\n");
	put_function_table(it);
	pm_str_puts(&it->out, ",\n\"resourceTable\":{");
	put_table_column(it, "name", libs, put_resource_name);
	put_table_column(it, "host", libs, put_resource_null);
	put_table_column(it, "type", libs, put_resource_type);
	put_table_column(it, "lib", libs, put_index);
	put_length(it, libs);
	pm_str_puts(&it->out, ",\n\"sources\":{");
	put_table_column(it, "id", it->sources.starts.len, put_resource_null);
	put_table_column(it, "filename", it->sources.starts.len, put_source_name);
	put_table_column(it, "startLine", it->sources.starts.len, put_resource_one);
	put_table_column(it, "startColumn", it->sources.starts.len, put_resource_one);
	put_table_column(it, "sourceMapURL", it->sources.starts.len, put_resource_null);
	put_length(it, it->sources.starts.len);
	pm_str_puts(&it->out, ",\n");
	put_table_column(it, "stringArray", it->strings.starts.len, put_string);
	pm_str_puts(&it->out, "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],"
			      "\"name\":[],\"functionSize\":[],\"length\":0}}");
}

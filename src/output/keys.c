/* SPDX-License-Identifier: MIT */
/* The keys of table rows, for programs: names of fields, and their values. */
#include "output-internal.h"

#include <string.h>

void pm_report_keys(const struct pm_report *report, struct pm_keys *out)
{
	*out = (struct pm_keys){ .key[0] = report->key, .len = 1 };
	for (uint32_t i = 0;
	     i < report->more_keys_len && i < PM_ARRAY_LEN(report->more_keys); i++)
		out->key[out->len++] = report->more_keys[i];
}

const char *pm_key_name(enum pm_key key)
{
	switch (key) {
	case PM_KEY_FUNCTION:
		return "function";
	case PM_KEY_MODULE:
		return "module";
	case PM_KEY_THREAD:
		return "thread";
	case PM_KEY_PROCESS:
		return "process";
	case PM_KEY_LINE:
		return "line";
	case PM_KEY_ADDRESS:
		return "address";
	case PM_KEY_COMM:
		return "comm";
	case PM_KEY_CPU:
		return "cpu";
	case PM_KEY_PARALLELISM:
		return "parallelism";
	}
	return "";
}

static const char *const names[] = {
	[PM_FIELD_FUNCTION] = "function", [PM_FIELD_MODULE] = "module",
	[PM_FIELD_FILE] = "file",         [PM_FIELD_LINE] = "line",
	[PM_FIELD_INLINED] = "inlined",   [PM_FIELD_PATH] = "path",
	[PM_FIELD_BUILD_ID] = "build_id", [PM_FIELD_PID] = "pid",
	[PM_FIELD_TID] = "tid",           [PM_FIELD_COMM] = "comm",
	[PM_FIELD_TITLE] = "title",       [PM_FIELD_ADDRESS] = "address",
	[PM_FIELD_CPU] = "cpu",           [PM_FIELD_PARALLELISM] = "parallelism",
};

/* Each list ends with PM_FIELDS. The order is part of the output format. */
static const enum pm_row_field fields_of[][6] = {
	[PM_KEY_FUNCTION] = { PM_FIELD_FUNCTION, PM_FIELD_MODULE, PM_FIELD_FILE,
			      PM_FIELD_LINE, PM_FIELD_INLINED, PM_FIELDS },
	[PM_KEY_MODULE] = { PM_FIELD_MODULE, PM_FIELD_PATH, PM_FIELD_BUILD_ID,
			    PM_FIELDS },
	[PM_KEY_THREAD] = { PM_FIELD_PID, PM_FIELD_TID, PM_FIELD_COMM, PM_FIELDS },
	[PM_KEY_PROCESS] = { PM_FIELD_PID, PM_FIELD_COMM, PM_FIELD_TITLE, PM_FIELDS },
	[PM_KEY_LINE] = { PM_FIELD_FILE, PM_FIELD_LINE, PM_FIELD_FUNCTION,
			  PM_FIELD_MODULE, PM_FIELDS },
	[PM_KEY_ADDRESS] = { PM_FIELD_ADDRESS, PM_FIELD_FUNCTION, PM_FIELD_MODULE,
			     PM_FIELD_FILE, PM_FIELD_LINE, PM_FIELDS },
	[PM_KEY_COMM] = { PM_FIELD_COMM, PM_FIELDS },
	[PM_KEY_CPU] = { PM_FIELD_CPU, PM_FIELDS },
	[PM_KEY_PARALLELISM] = { PM_FIELD_PARALLELISM, PM_FIELDS },
};

static bool has_key(const struct pm_keys *keys, enum pm_key key)
{
	for (uint32_t i = 0; i < keys->len; i++)
		if (keys->key[i] == key)
			return true;
	return false;
}

/* Whether another key has a better value for a field of @key: the name of the thread
 * instead of the process's, or the row's line instead of the function's heaviest line. */
static bool key_is_in_columns(const struct pm_keys *keys, enum pm_key key,
			      enum pm_row_field field)
{
	bool finer = has_key(keys, PM_KEY_LINE) || has_key(keys, PM_KEY_ADDRESS);

	if (key == PM_KEY_PROCESS && field == PM_FIELD_COMM)
		return has_key(keys, PM_KEY_THREAD) || has_key(keys, PM_KEY_COMM);
	if (key == PM_KEY_FUNCTION && (field == PM_FIELD_FILE || field == PM_FIELD_LINE))
		return keys->len > 1;
	if (key == PM_KEY_ADDRESS && (field == PM_FIELD_FILE || field == PM_FIELD_LINE))
		return has_key(keys, PM_KEY_LINE);
	return key == PM_KEY_FUNCTION && field == PM_FIELD_INLINED && finer;
}

size_t pm_row_fields(const struct pm_keys *keys, struct pm_row_column *out)
{
	bool have[PM_FIELDS] = { false };
	size_t len = 0;

	for (uint32_t i = 0; i < keys->len; i++) {
		const enum pm_row_field *field = fields_of[keys->key[i]];

		for (; *field != PM_FIELDS; field++) {
			if (have[*field] || key_is_in_columns(keys, keys->key[i], *field))
				continue;
			have[*field] = true;
			out[len++] = (struct pm_row_column){ .name = names[*field],
							     .field = *field,
							     .key = keys->key[i],
							     .at = i };
		}
	}
	return len;
}

/* ---- values ------------------------------------------------------------------------------ */

uint32_t pm_row_place(const struct pm_profile *profile, enum pm_key key, uint32_t at,
		      const struct pm_row *row)
{
	uint32_t id = pm_row_id(row, at);

	if (key == PM_KEY_LINE)
		return id;
	if (key == PM_KEY_ADDRESS)
		return profile->levels.data[profile->frames.data[id].first_level];
	return row->place;
}

uint32_t pm_row_function(const struct pm_profile *profile, enum pm_key key, uint32_t at,
			 const struct pm_row *row)
{
	if (key == PM_KEY_FUNCTION)
		return pm_row_id(row, at);
	return profile->places.data[pm_row_place(profile, key, at, row)].function;
}

uint32_t pm_row_module(const struct pm_profile *profile, enum pm_key key, uint32_t at,
		       const struct pm_row *row)
{
	if (key == PM_KEY_MODULE)
		return pm_row_id(row, at);
	return profile->functions.data[pm_row_function(profile, key, at, row)].module;
}

static void value_set_text(struct pm_row_value *out, const char *text,
			   const char *otherwise)
{
	out->kind = PM_VALUE_TEXT;
	out->known = text != NULL;
	out->text = pm_text_or(text, otherwise);
}

static void value_set_number(struct pm_row_value *out, bool known, uint64_t number)
{
	out->kind = PM_VALUE_NUMBER;
	out->known = known;
	out->number = number;
}

static void value_from_code(const struct pm_profile *profile,
			    const struct pm_row_column *column, const struct pm_row *row,
			    struct pm_row_value *out)
{
	const struct pm_profile_function *function;
	const struct pm_profile_place *place = NULL;
	const char *file = NULL;
	uint32_t id, line = 0;

	if (column->field == PM_FIELD_FUNCTION) {
		id = pm_row_function(profile, column->key, column->at, row);
		function = &profile->functions.data[id];
		value_set_text(out, pm_function_known_name(function), function->name);
		out->start = function->start;
		return;
	}
	id = pm_row_place(profile, column->key, column->at, row);
	if (id != PM_PROFILE_NONE)
		place = &profile->places.data[id];
	if (place) {
		file = place->file;
		line = place->line;
	}
	if (column->field == PM_FIELD_FILE)
		value_set_text(out, file, "");
	else
		value_set_number(out, line > 0, line);
}

static void value_from_module(const struct pm_profile *profile,
			      const struct pm_row_column *column,
			      const struct pm_row *row, struct pm_row_value *out)
{
	uint32_t id = pm_row_module(profile, column->key, column->at, row);
	struct pm_profile_module unknown = { 0 };
	const struct pm_profile_module *module = &unknown;

	if (id != PM_PROFILE_NONE)
		module = &profile->modules.data[id];
	if (column->field == PM_FIELD_MODULE)
		value_set_text(out, module->name, pm_profile_module_name(profile, id));
	else if (column->field == PM_FIELD_PATH)
		value_set_text(out, module->path, "");
	else
		value_set_text(out, module->build_id, "");
}

const char *pm_thread_comm(const struct pm_profile_thread *thread)
{
	bool known = thread->comm[0] != '\0' || thread->tid != PM_FILE_NONE;

	if (known)
		return thread->comm;
	return NULL;
}

static void value_from_thread(const struct pm_profile *profile,
			      const struct pm_row_column *column,
			      const struct pm_row *row, struct pm_row_value *out)
{
	uint32_t id = pm_row_id(row, column->at), number;

	if (column->key == PM_KEY_PROCESS) {
		const struct pm_profile_process *process = &profile->processes.data[id];
		bool known = process->pid != PM_FILE_NONE;

		if (column->field == PM_FIELD_COMM)
			value_set_text(out,
				       known || process->comm[0] ? process->comm : NULL,
				       "");
		else if (column->field == PM_FIELD_TITLE)
			value_set_text(out, process->title, "");
		else
			value_set_number(out, known, process->pid);
	} else if (column->field == PM_FIELD_COMM) {
		value_set_text(out, pm_thread_comm(&profile->threads.data[id]), "");
	} else {
		if (column->field == PM_FIELD_PID)
			number = profile->threads.data[id].pid;
		else
			number = profile->threads.data[id].tid;
		value_set_number(out, number != PM_FILE_NONE, number);
	}
}

void pm_row_get(const struct pm_profile *profile, const struct pm_row_column *column,
		const struct pm_row *row, struct pm_row_value *out)
{
	uint32_t id = pm_row_id(row, column->at);

	*out = (struct pm_row_value){ .kind = PM_VALUE_TEXT };
	switch (column->field) {
	case PM_FIELD_FUNCTION:
	case PM_FIELD_FILE:
	case PM_FIELD_LINE:
		value_from_code(profile, column, row, out);
		break;
	case PM_FIELD_MODULE:
	case PM_FIELD_PATH:
	case PM_FIELD_BUILD_ID:
		value_from_module(profile, column, row, out);
		break;
	case PM_FIELD_PID:
	case PM_FIELD_TID:
	case PM_FIELD_COMM:
	case PM_FIELD_TITLE:
		value_from_thread(profile, column, row, out);
		break;
	case PM_FIELD_INLINED:
		value_set_number(out, true, row->inlined);
		out->kind = PM_VALUE_BOOL;
		break;
	case PM_FIELD_ADDRESS:
		value_set_number(out, true, profile->frames.data[id].address);
		out->kind = PM_VALUE_ADDRESS;
		break;
	case PM_FIELD_CPU:
		value_set_number(out, id != PM_FILE_NONE, id);
		break;
	case PM_FIELD_PARALLELISM:
		value_set_number(out, id != 0, id);
		break;
	case PM_FIELDS:
		break;
	}
}

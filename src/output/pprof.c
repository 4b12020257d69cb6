/* SPDX-License-Identifier: MIT */
/*
 * pprof's format: one message Profile of profile.proto (github.com/google/pprof),
 * compressed with gzip; the field numbers are below. Each event adds two values to a
 * sample: the number of samples and the sum of their periods. Samples at different times
 * are merged, because the format has no time within a file.
 */
#include "export.h"
#include "protobuf.h"

#include <string.h>
#include <zlib.h>

enum {
	PAGE = 4096,
	GZIP_WINDOW = 15 + 16, /* zlib.h: adding 16 selects a gzip header */
	GZIP_MEMORY = 8,
};
/* Limit of the bytes of all samples before compression, which takes time. */
#define SAMPLES_BYTES_MAX (UINT64_C(1) << 30)

/* The fields of messages, numbered as in profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT = 2,
	SAMPLE_LOCATION_ID = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STR = 2,
	LABEL_NUM = 3,
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9,
	MAPPING_HAS_INLINE_FRAMES = 10,
	LOCATION_ID = 1,
	LOCATION_MAPPING_ID = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LINE_FUNCTION_ID = 1,
	LINE_LINE = 2,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2, /* no system_name: pprof would shorten names equal to it */
	FUNCTION_FILENAME = 4,
};

/* A function in one source file: its code may come from several. */
struct place_function {
	uint32_t function;
	const char *file; /* pooled */
};

struct range {
	uint64_t start, limit;
	bool used;
};

struct pprof {
	struct pm_export export;
	const struct pm_profile *profile;
	struct pm_strings strings;
	struct pm_str out, message, part, text;
	PM_VEC(struct place_function) functions;
	struct pm_index by_place;
	const char **files; /* by function */
	uint32_t *mapping_ids; /* by module; 0: unused */
	struct range *ranges; /* by module */
	uint32_t *functions_of; /* by place: id; 0: unused */
	bool *frames; /* by frame: used */
	PM_VEC(uint32_t) cells;
	PM_VEC(uint64_t) values;
	FILE *to;
	z_stream zip;
	bool zip_open, failed;
};

static void pprof_release(struct pprof *pprof)
{
	pm_export_release(&pprof->export);
	pm_strings_release(&pprof->strings);
	pm_str_release(&pprof->out);
	pm_str_release(&pprof->message);
	pm_str_release(&pprof->part);
	pm_str_release(&pprof->text);
	pm_vec_release(&pprof->functions);
	pm_index_release(&pprof->by_place);
	free(pprof->files);
	free(pprof->mapping_ids);
	free(pprof->ranges);
	free(pprof->functions_of);
	free(pprof->frames);
	pm_vec_release(&pprof->cells);
	pm_vec_release(&pprof->values);
	if (pprof->zip_open)
		deflateEnd(&pprof->zip);
}

/* ---- messages and gzip ------------------------------------------------------------------ */

static void deflate_out(struct pprof *pprof, int flush)
{
	unsigned char piece[16384];
	int ret;

	pprof->zip.next_in = (unsigned char *)pprof->out.data;
	pprof->zip.avail_in = (unsigned)pprof->out.len;
	do {
		pprof->zip.next_out = piece;
		pprof->zip.avail_out = sizeof(piece);
		ret = deflate(&pprof->zip, flush);
		if (ret == Z_STREAM_ERROR)
			pprof->failed = true;
		else
			fwrite(piece, 1, sizeof(piece) - pprof->zip.avail_out, pprof->to);
	} while (!pprof->failed && pprof->zip.avail_out == 0);
	pm_str_clear(&pprof->out);
}

/* Ends a message of the profile itself: appends and clears @from. */
static void pprof_put_message(struct pprof *pprof, unsigned field, struct pm_str *from)
{
	enum {
		PIECE = 1 << 16
	};

	if (from->failed) {
		pprof->failed = true;
		pm_str_clear(from);
		return;
	}
	pm_wire_bytes(&pprof->out, field, pm_str_text(from), from->len);
	pm_str_clear(from);
	if (pprof->out.failed) {
		pprof->failed = true;
		pm_str_clear(&pprof->out);
	} else if (pprof->out.len >= PIECE) {
		deflate_out(pprof, Z_NO_FLUSH);
	}
}

/* Appends pprof->part to pprof->message, and clears it. */
static void pprof_put_part(struct pprof *pprof, unsigned field)
{
	if (pprof->part.failed)
		pprof->failed = true;
	else
		pm_wire_bytes(&pprof->message, field, pm_str_text(&pprof->part),
			      pprof->part.len);
	pm_str_clear(&pprof->part);
}

static uint32_t add_string(struct pprof *pprof, const char *text, size_t len)
{
	uint32_t id = 0;

	if (pm_strings_add(&pprof->strings, text, len, &id) < 0)
		pprof->failed = true;
	return id;
}

/* Adds the string in pprof->text, clears it, and returns the id. */
static uint32_t add_text(struct pprof *pprof)
{
	uint32_t id = 0;

	if (pprof->text.failed)
		pprof->failed = true;
	else
		id = add_string(pprof, pprof->text.data, pprof->text.len);
	pm_str_clear(&pprof->text);
	return id;
}

static uint32_t add_foreign(struct pprof *pprof, const char *text)
{
	pm_str_printable(&pprof->text, text, strlen(text));
	return add_text(pprof);
}

static uint32_t pprof_add_word(struct pprof *pprof, const char *word)
{
	return add_string(pprof, word, strlen(word));
}

/* ---- samples ---------------------------------------------------------------------------- */

static int cell_order(const void *a, const void *b, void *context)
{
	const struct pm_profile_cell *cells = context;
	const struct pm_profile_cell *left = &cells[*(const uint32_t *)a];
	const struct pm_profile_cell *right = &cells[*(const uint32_t *)b];

	if (left->stack != right->stack)
		return PM_COMPARE(left->stack, right->stack);
	if (left->thread != right->thread)
		return PM_COMPARE(left->thread, right->thread);
	if (left->stop != right->stop)
		return PM_COMPARE(left->stop, right->stop);
	return PM_COMPARE(left->event, right->event);
}

static bool same_sample(const struct pm_profile_cell *a, const struct pm_profile_cell *b)
{
	return a->stack == b->stack && a->thread == b->thread && a->stop == b->stop;
}

static void pprof_put_label(struct pprof *pprof, const char *key, unsigned field,
			    uint64_t value)
{
	pm_wire_number(&pprof->part, LABEL_KEY, pprof_add_word(pprof, key));
	pm_wire_key(&pprof->part, field, PM_WIRE_VARINT);
	pm_wire_varint(&pprof->part, value);
	pprof_put_part(pprof, SAMPLE_LABEL);
}

static void pprof_put_labels(struct pprof *pprof, const struct pm_profile_cell *cell)
{
	const struct pm_profile *profile = pprof->profile;
	const struct pm_profile_thread *thread = &profile->threads.data[cell->thread];
	const char *process = profile->processes.data[thread->process].comm;
	const char *stop = profile->stops.data[cell->stop];

	pm_put_export_comm(&pprof->text, thread);
	pprof_put_label(pprof, "thread", LABEL_STR, add_text(pprof));
	if (process[0] != '\0')
		pprof_put_label(pprof, "comm", LABEL_STR, add_foreign(pprof, process));
	/* As strings, because pprof would give numbers a unit and group them into
	 * ranges. */
	if (thread->pid != PM_FILE_NONE) {
		pm_str_u64(&pprof->text, thread->pid);
		pprof_put_label(pprof, "pid", LABEL_STR, add_text(pprof));
	}
	if (thread->tid != PM_FILE_NONE) {
		pm_str_u64(&pprof->text, thread->tid);
		pprof_put_label(pprof, "tid", LABEL_STR, add_text(pprof));
	}
	if (stop && pm_stop_is_incomplete(stop))
		pprof_put_label(pprof, "incomplete", LABEL_STR, add_foreign(pprof, stop));
}

static void pprof_put_stack(struct pprof *pprof, uint32_t stack)
{
	const struct pm_profile *profile = pprof->profile;

	for (uint32_t at = stack; at != PM_PROFILE_NONE;
	     at = profile->stacks.data[at].parent)
		pm_wire_varint(&pprof->part,
			       (uint64_t)profile->stacks.data[at].frame + 1);
	pprof_put_part(pprof, SAMPLE_LOCATION_ID);
}

/* Limits @value to the signed values of pprof. */
static uint64_t to_int64(uint64_t value)
{
	return PM_MIN(value, INT64_MAX);
}

static void pprof_put_values(struct pprof *pprof)
{
	for (size_t i = 0; i < pprof->values.len; i++)
		pm_wire_varint(&pprof->part, to_int64(pprof->values.data[i]));
	pprof_put_part(pprof, SAMPLE_VALUE);
}

static int pprof_check_size(const struct pprof *pprof, struct pm_error *err)
{
	const struct pm_profile *profile = pprof->profile;
	PM_AUTO_FREE uint32_t *frames = calloc(profile->frames.len + 1, sizeof(*frames));
	PM_AUTO_FREE uint64_t *lengths = NULL;
	uint64_t bytes = 0;

	for (size_t i = 0; frames && i < profile->frames.len; i++)
		for (size_t id = i + 1; id > 0; id >>= 7)
			frames[i]++;
	if (frames)
		lengths = pm_stack_lengths(profile, frames);
	if (!lengths)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < profile->cells.len; i++)
		if (pprof->export.cells[i])
			bytes +=
				lengths[profile->cells.data[i].stack] + pprof->values.len;
	return pm_check_document_bytes(bytes, SAMPLES_BYTES_MAX, err);
}

static int pprof_put_samples(struct pprof *pprof)
{
	const struct pm_profile *profile = pprof->profile;
	const struct pm_profile_cell *cells = profile->cells.data;
	const struct pm_export *export = &pprof->export;

	for (size_t i = 0; i < profile->cells.len; i++)
		if (export->cells[i] && pm_vec_push(&pprof->cells, (uint32_t)i) < 0)
			return -ENOMEM;
	if (pprof->cells.len > 0)
		qsort_r(pprof->cells.data, pprof->cells.len, sizeof(uint32_t), cell_order,
			profile->cells.data);
	for (size_t i = 0; i < pprof->cells.len && !pprof->failed;) {
		const struct pm_profile_cell *cell = &cells[pprof->cells.data[i]];

		memset(pprof->values.data, 0, pprof->values.len * sizeof(uint64_t));
		for (; i < pprof->cells.len &&
		       same_sample(cell, &cells[pprof->cells.data[i]]);
		     i++) {
			const struct pm_profile_cell *at = &cells[pprof->cells.data[i]];
			size_t value = 2 * (size_t)(at->event - export->first);

			pprof->values.data[value] = at->weight.samples;
			pprof->values.data[value + 1] = at->weight.period;
		}
		pprof_put_stack(pprof, cell->stack);
		pprof_put_values(pprof);
		pprof_put_labels(pprof, cell);
		pprof_put_message(pprof, PROFILE_SAMPLE, &pprof->message);
	}
	if (pprof->failed)
		return -ENOMEM;
	return 0;
}

/* ---- locations, functions, mappings -------------------------------------------------------- */

static bool place_function_equal(const void *table, uint32_t id, const void *key)
{
	const struct place_function *have =
		&((const struct pprof *)table)->functions.data[id];
	const struct place_function *wanted = key;

	return have->function == wanted->function && have->file == wanted->file;
}

/* Returns the id of a place's function, from 1 on. Writes the function if it is new.
 * Returns 0 without memory. */
static uint32_t pprof_function_id(struct pprof *pprof, uint32_t id)
{
	const struct pm_profile_place *place = &pprof->profile->places.data[id];
	struct place_function key = {
		.function = place->function,
		.file = pm_export_at_home(pprof->files, place)
				? pprof->files[place->function]
				: place->file,
	};
	uint64_t hash = pm_hash_mix((uintptr_t)key.file, key.function);
	uint32_t found, name;

	if (pprof->functions_of[id] != 0)
		return pprof->functions_of[id];
	found = pm_index_find(&pprof->by_place, hash, place_function_equal, pprof, &key);
	if (found == PM_INDEX_NONE) {
		found = (uint32_t)pprof->functions.len;
		if (pm_vec_push(&pprof->functions, key) < 0 ||
		    pm_index_add(&pprof->by_place, hash, found) < 0) {
			pprof->failed = true;
			return 0;
		}
		pm_put_export_function(&pprof->text, pprof->profile, key.function);
		name = add_text(pprof);
		pm_wire_number(&pprof->message, FUNCTION_ID, (uint64_t)found + 1);
		pm_wire_number(&pprof->message, FUNCTION_NAME, name);
		if (key.file)
			pm_wire_number(&pprof->message, FUNCTION_FILENAME,
				       add_foreign(pprof, key.file));
		pprof_put_message(pprof, PROFILE_FUNCTION, &pprof->message);
	}
	pprof->functions_of[id] = found + 1;
	return found + 1;
}

static void pprof_put_location(struct pprof *pprof, uint32_t id)
{
	const struct pm_profile *profile = pprof->profile;
	const struct pm_profile_frame *frame = &profile->frames.data[id];

	/* Functions are written first, because they are separate messages. */
	for (uint32_t i = 0; i < frame->levels; i++)
		pprof_function_id(pprof, profile->levels.data[frame->first_level + i]);
	pm_wire_number(&pprof->message, LOCATION_ID, (uint64_t)id + 1);
	if (frame->module != PM_PROFILE_NONE)
		pm_wire_number(&pprof->message, LOCATION_MAPPING_ID,
			       pprof->mapping_ids[frame->module]);
	pm_wire_number(&pprof->message, LOCATION_ADDRESS, frame->address);
	for (uint32_t i = 0; i < frame->levels; i++) {
		uint32_t place = profile->levels.data[frame->first_level + i];

		pm_wire_number(&pprof->part, LINE_FUNCTION_ID,
			       pprof->functions_of[place]);
		pm_wire_number(&pprof->part, LINE_LINE, profile->places.data[place].line);
		pprof_put_part(pprof, LOCATION_LINE);
	}
	pprof_put_message(pprof, PROFILE_LOCATION, &pprof->message);
}

/* Finds the frames that are used, and the ranges of their modules' code in whole
 * pages. */
static void find_ranges(struct pprof *pprof)
{
	const struct pm_profile *profile = pprof->profile;

	for (size_t i = 0; i < profile->stacks.len; i++) {
		uint32_t frame = profile->stacks.data[i].frame;
		uint32_t module = profile->frames.data[frame].module;
		uint64_t start = profile->frames.data[frame].address / PAGE * PAGE;
		uint64_t limit = UINT64_MAX;
		struct range *range;

		if (start <= UINT64_MAX - PAGE)
			limit = start + PAGE;
		if (!pprof->export.stacks[i])
			continue;
		pprof->frames[frame] = true;
		if (module == PM_PROFILE_NONE)
			continue;
		range = &pprof->ranges[module];
		/* Addresses are those in the file, as if the whole file were mapped at
		 * 0. */
		if (strcmp(profile->modules.data[module].kind, "file") == 0)
			start = 0;
		if (!range->used || start < range->start)
			range->start = start;
		if (!range->used || limit > range->limit)
			range->limit = limit;
		range->used = true;
	}
}

/* Returns the module of the program: pprof assumes that it is the first mapping.
 * PM_PROFILE_NONE: unknown. */
static uint32_t pprof_find_main_module(const struct pprof *pprof)
{
	const struct pm_profile *profile = pprof->profile;
	const char *program = "";

	if (profile->command.len > 0)
		program = pm_basename(profile->command.data[0]);
	for (uint32_t i = 0; i < profile->modules.len; i++)
		if (pprof->ranges[i].used &&
		    strcmp(profile->modules.data[i].name, program) == 0)
			return i;
	for (uint32_t i = 0; i < profile->modules.len; i++)
		if (pprof->ranges[i].used &&
		    strcmp(profile->modules.data[i].kind, "file") == 0)
			return i;
	return PM_PROFILE_NONE;
}

static void pprof_put_mapping(struct pprof *pprof, uint32_t module, uint32_t id)
{
	const struct pm_profile_module *it = &pprof->profile->modules.data[module];
	struct pm_str *message = &pprof->message;

	pprof->mapping_ids[module] = id;
	pm_wire_number(message, MAPPING_ID, id);
	pm_wire_number(message, MAPPING_START, pprof->ranges[module].start);
	pm_wire_number(message, MAPPING_LIMIT, pprof->ranges[module].limit);
	pm_put_export_module(&pprof->text, pprof->profile, module);
	pm_wire_number(message, MAPPING_FILENAME, add_text(pprof));
	if (it->build_id)
		pm_wire_number(message, MAPPING_BUILD_ID,
			       add_foreign(pprof, it->build_id));
	/* All symbols are included: nothing should be looked up on another machine. */
	pm_wire_number(message, MAPPING_HAS_FUNCTIONS, 1);
	pm_wire_number(message, MAPPING_HAS_FILENAMES, 1);
	pm_wire_number(message, MAPPING_HAS_LINE_NUMBERS, 1);
	pm_wire_number(message, MAPPING_HAS_INLINE_FRAMES, 1);
	pprof_put_message(pprof, PROFILE_MAPPING, message);
}

static void pprof_put_mappings(struct pprof *pprof)
{
	uint32_t first = pprof_find_main_module(pprof), id = 1;

	if (first != PM_PROFILE_NONE)
		pprof_put_mapping(pprof, first, id++);
	for (uint32_t i = 0; i < pprof->profile->modules.len; i++)
		if (pprof->ranges[i].used && i != first)
			pprof_put_mapping(pprof, i, id++);
}

/* ---- the head --------------------------------------------------------------------------- */

static void pprof_put_type(struct pprof *pprof, unsigned field, uint32_t type,
			   const char *unit)
{
	pm_wire_number(&pprof->message, VALUE_TYPE_TYPE, type);
	pm_wire_number(&pprof->message, VALUE_TYPE_UNIT, pprof_add_word(pprof, unit));
	pprof_put_message(pprof, field, &pprof->message);
}

static uint32_t add_event_name(struct pprof *pprof, uint32_t event, const char *suffix)
{
	pm_str_puts(&pprof->text, pm_export_event(&pprof->export, event));
	pm_str_puts(&pprof->text, suffix);
	return add_text(pprof);
}

static void pprof_put_types(struct pprof *pprof)
{
	const struct pm_export *export = &pprof->export;
	bool one = export->end - export->first == 1;

	for (uint32_t event = export->first; event < export->end; event++) {
		bool time = pm_event_in_ns(&pprof->profile->events.data[event]);
		uint32_t name;

		if (one)
			name = pprof_add_word(pprof, "samples");
		else
			name = add_event_name(pprof, event, "-samples");
		pprof_put_type(pprof, PROFILE_SAMPLE_TYPE, name, "count");
		pprof_put_type(pprof, PROFILE_SAMPLE_TYPE,
			       add_event_name(pprof, event, ""),
			       time ? "nanoseconds" : "count");
	}
}

static void pprof_put_head(struct pprof *pprof)
{
	const struct pm_export *export = &pprof->export;
	const struct pm_profile *profile = pprof->profile;

	pm_wire_number(&pprof->out, PROFILE_TIME_NANOS,
		       to_int64((uint64_t)pm_export_created(profile) * 1000000000));
	pm_wire_number(&pprof->out, PROFILE_DURATION_NANOS,
		       to_int64(profile->info.duration_ns));
	if (export->first < export->end) {
		const struct pm_profile_event *event =
			&profile->events.data[export->first];
		bool time = pm_event_in_ns(event);
		uint64_t period = event->rate;

		if (event->by_frequency) { /* otherwise unknown in advance */
			period = 0;
			if (time && event->rate > 0)
				period = 1000000000 / event->rate;
		}
		pprof_put_type(pprof, PROFILE_PERIOD_TYPE,
			       add_event_name(pprof, export->first, ""),
			       time ? "nanoseconds" : "count");
		pm_wire_number(&pprof->out, PROFILE_PERIOD, to_int64(period));
		pm_wire_number(&pprof->out, PROFILE_DEFAULT_SAMPLE_TYPE,
			       add_event_name(pprof, export->first, ""));
	}
	pm_put_export_command(&pprof->text, profile);
	if (pprof->text.len > 0)
		pm_wire_number(&pprof->out, PROFILE_COMMENT, add_text(pprof));
	for (uint32_t i = 0; i < export->notes.starts.len; i++)
		pm_wire_number(&pprof->out, PROFILE_COMMENT,
			       pprof_add_word(pprof, pm_strings_get(&export->notes, i)));
}

static int pprof_init(struct pprof *pprof)
{
	const struct pm_profile *profile = pprof->profile;
	size_t values = 2 * (size_t)(pprof->export.end - pprof->export.first);

	pprof->files = pm_export_files(profile);
	pprof->mapping_ids = calloc(profile->modules.len + 1, sizeof(uint32_t));
	pprof->ranges = calloc(profile->modules.len + 1, sizeof(struct range));
	pprof->functions_of = calloc(profile->places.len + 1, sizeof(uint32_t));
	pprof->frames = calloc(profile->frames.len + 1, sizeof(bool));
	if (!pprof->files || !pprof->mapping_ids || !pprof->ranges ||
	    !pprof->functions_of || !pprof->frames ||
	    pm_vec_reserve(&pprof->values, values + 1) < 0)
		return -ENOMEM;
	pprof->values.len = values;
	pprof_add_word(pprof, ""); /* [0] must be "" */
	if (deflateInit2(&pprof->zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
			 GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	pprof->zip_open = true;
	return 0;
}

int pm_output_pprof(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	PM_CLEANUP(pprof_release)
	struct pprof pprof = { .profile = report->profile, .to = to };
	int ret = pm_export_init(&pprof.export, report, err);

	if (ret < 0)
		return ret;
	ret = pprof_init(&pprof);
	if (ret == 0)
		ret = pprof_check_size(&pprof, err);
	if (ret == -EFBIG)
		return ret;
	if (ret == 0) {
		pprof_put_types(&pprof);
		find_ranges(&pprof);
		pprof_put_mappings(&pprof);
		for (uint32_t i = 0; i < report->profile->frames.len; i++)
			if (pprof.frames[i])
				pprof_put_location(&pprof, i);
		pprof_put_head(&pprof);
		ret = pprof_put_samples(&pprof);
	}
	for (uint32_t i = 0; ret == 0 && i < pprof.strings.starts.len; i++) {
		const char *text = pm_strings_get(&pprof.strings, i);

		pm_str_puts(&pprof.message, text);
		pprof_put_message(&pprof, PROFILE_STRING_TABLE, &pprof.message);
	}
	if (ret == 0 && !pprof.failed && !pprof.out.failed)
		deflate_out(&pprof, Z_FINISH);
	if (ret < 0 || pprof.failed)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

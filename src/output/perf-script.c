/* SPDX-License-Identifier: MIT */
/*
 * The output of `perf script -F comm,pid,tid,cpu,time,period,event,ip,sym,dso`: a
 * paragraph for each sample, leaf first. Its readers parse lines with regular
 * expressions, and the format has no escapes. Characters that would confuse them are
 * replaced, see script_put_comm() and below.
 */
#include "export.h"

#include <ctype.h>
#include <string.h>

#define NS_PER_S 1000000000

/* Strings that are written repeatedly, converted for the format once. */
struct texts {
	struct pm_str bytes;
	PM_VEC(size_t) starts; /* one more: the end of the last string */
};

/* The lines of a frame. Most frames are in many samples. */
struct lines {
	size_t start, len; /* in frame_bytes; len 0: not kept */
};

enum {
	LINES_BYTES_MAX = 512, /* kept of a frame: one name may be in very many */
};

struct script {
	struct pm_export export;
	const struct pm_profile *profile;
	struct texts functions, modules, comms, events;
	struct lines *frames; /* by frame */
	struct pm_str frame_bytes;
	struct pm_str out;
};

static void texts_release(struct texts *texts)
{
	pm_str_release(&texts->bytes);
	pm_vec_release(&texts->starts);
}

static void script_release(struct script *script)
{
	pm_export_release(&script->export);
	texts_release(&script->functions);
	texts_release(&script->modules);
	texts_release(&script->comms);
	texts_release(&script->events);
	free(script->frames);
	pm_str_release(&script->frame_bytes);
	pm_str_release(&script->out);
}

/* To be called before each string, and once after the last. */
static int mark_text(struct texts *texts)
{
	return pm_vec_push(&texts->starts, texts->bytes.len);
}

static void script_put_text(struct pm_str *str, const struct texts *texts, uint32_t id)
{
	size_t start = texts->starts.data[id];

	pm_str_append(str, texts->bytes.data + start, texts->starts.data[id + 1] - start);
}

/* ---- names that readers can parse ---------------------------------------------------------- */

/* Appends the symbol without `->`, which separates inlined functions in
 * stackcollapse-perf.pl and speedscope. */
static void put_symbol(struct pm_str *str, const struct pm_profile_function *function)
{
	PM_CLEANUP(pm_str_release) struct pm_str name = { 0 };
	const char *at, *arrow;

	pm_str_printable(&name, function->name, strlen(function->name));
	if (name.failed)
		str->failed = true;
	if (name.failed || name.len == 0) {
		pm_str_puts(str, "[unknown]");
		return;
	}
	for (at = name.data; (arrow = strstr(at, "->")) != NULL; at = arrow + 1) {
		pm_str_append(str, at, (size_t)(arrow + 1 - at));
		pm_str_putc(str, ' ');
	}
	pm_str_puts(str, at);
}

/* Appends the module. Its readers look for the last ` (` of a line. */
static void script_put_module(struct pm_str *str, const struct pm_profile_module *module)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(module->path), tail = sizeof(deleted) - 1, from = str->len;

	if (module->kernel && strcmp(module->path, "[kernel]") == 0) {
		pm_str_puts(str, "[kernel.kallsyms]"); /* perf's name */
		return;
	}
	if (len == 0) {
		pm_str_puts(str, module->name[0] != '\0' ? module->name : "[unknown]");
		return;
	}
	if (len > tail && strcmp(module->path + len - tail, deleted) == 0)
		len -= tail;
	pm_str_printable(str, module->path, len);
	if (str->failed)
		return;
	for (size_t i = from; i + 1 < str->len; i++)
		if (str->data[i] == ' ' && str->data[i + 1] == '(')
			str->data[i] = '_';
}

/* Appends the name of a thread. Readers end it before the first blank that is followed by
 * a digit. It has at least two characters, and must not look like a comment or start with
 * a blank. */
static void script_put_comm(struct pm_str *str, const struct pm_profile_thread *thread)
{
	enum {
		WIDTH = 16 /* perf's own padding */
	};
	size_t from = str->len;

	pm_put_export_comm(str, thread);
	if (str->failed)
		return;
	if (str->data[from] == ' ' || str->data[from] == '#')
		str->data[from] = '_';
	for (size_t i = from; i + 1 < str->len; i++)
		if (str->data[i] == ' ' && isdigit((unsigned char)str->data[i + 1]))
			str->data[i] = '_';
	while (str->len > from && str->data[str->len - 1] == ' ')
		str->data[--str->len] = '\0';
	while (str->len - from < WIDTH)
		pm_str_putc(str, ' ');
}

/* Appends the event as one word, because a blank or the line's colon ends it. */
static void script_put_event(struct pm_str *str, const char *name)
{
	size_t from = str->len;

	pm_str_puts(str, name[0] != '\0' ? name : "event");
	if (str->failed)
		return;
	for (size_t i = from; i < str->len; i++)
		if (str->data[i] == ' ')
			str->data[i] = '_';
}

static int make_texts(struct script *script)
{
	const struct pm_profile *profile = script->profile;
	const struct pm_export *export = &script->export;
	struct texts *all[] = { &script->functions, &script->modules, &script->comms,
				&script->events };
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < profile->functions.len; i++) {
		ret = mark_text(&script->functions);
		put_symbol(&script->functions.bytes, &profile->functions.data[i]);
	}
	for (size_t i = 0; ret == 0 && i < profile->modules.len; i++) {
		ret = mark_text(&script->modules);
		script_put_module(&script->modules.bytes, &profile->modules.data[i]);
	}
	for (size_t i = 0; ret == 0 && i < profile->threads.len; i++) {
		ret = mark_text(&script->comms);
		script_put_comm(&script->comms.bytes, &profile->threads.data[i]);
	}
	for (uint32_t i = export->first; ret == 0 && i < export->end; i++) {
		ret = mark_text(&script->events);
		script_put_event(&script->events.bytes, pm_export_event(export, i));
	}
	for (size_t i = 0; i < PM_ARRAY_LEN(all); i++) {
		if (ret == 0)
			ret = mark_text(all[i]);
		if (all[i]->bytes.failed)
			ret = -ENOMEM;
	}
	return ret;
}

/* ---- lines ------------------------------------------------------------------------------ */

static void put_comment(struct pm_str *str, const char *key, const char *text)
{
	if (!text)
		return;
	pm_str_printf(str, "# %s : ", key);
	pm_str_printable(str, text, strlen(text));
	pm_str_putc(str, '\n');
}

/* Writes a note if ids are unknown. They are written as PM_FILE_NONE, because readers
 * expect digits: they would skip a sample with the -1 that perf writes. */
static void put_unknown_ids(struct script *script)
{
	const struct pm_profile *profile = script->profile;
	char words[64];

	snprintf(words, sizeof(words), "pid or tid %u is an unknown one", PM_FILE_NONE);
	for (size_t i = 0; i < profile->threads.len; i++) {
		const struct pm_profile_thread *thread = &profile->threads.data[i];

		if (thread->pid != PM_FILE_NONE && thread->tid != PM_FILE_NONE)
			continue;
		put_comment(&script->out, "note", words);
		return;
	}
}

static void script_put_head(struct script *script)
{
	const struct pm_profile_info *info = &script->profile->info;
	const struct pm_export *export = &script->export;
	struct pm_str *out = &script->out;

	pm_str_puts(out, "# ========\n");
	put_comment(out, "captured on   ", info->created);
	put_comment(out, "hostname", info->hostname);
	put_comment(out, "os release", info->kernel);
	put_comment(out, "pmrec version", info->pmrec);
	put_comment(out, "arch", info->arch);
	if (info->cpus > 0)
		pm_str_printf(out, "# nrcpus online : %u\n", info->cpus);
	put_comment(out, "cpudesc", info->cpu_model);
	pm_str_puts(out, "# cmdline : ");
	pm_put_export_command(out, script->profile);
	pm_str_putc(out, '\n');
	for (uint32_t i = export->first; i < export->end; i++)
		put_comment(out, "event", pm_export_event(export, i));
	for (uint32_t i = 0; i < export->notes.starts.len; i++)
		put_comment(out, "note", pm_strings_get(&export->notes, i));
	put_unknown_ids(script);
	pm_str_puts(out, "# ========\n#\n");
}

/* Appends the address, right-aligned in 16 columns, as perf does. */
static void script_put_address(struct pm_str *str, uint64_t address)
{
	static const char digits[] = "0123456789abcdef";
	char text[16];
	size_t at = sizeof(text);

	memset(text, ' ', sizeof(text));
	do {
		text[--at] = digits[address & 15];
		address >>= 4;
	} while (address > 0);
	pm_str_append(str, text, sizeof(text));
}

static void script_put_levels(struct script *script, const struct pm_profile_frame *frame)
{
	const struct pm_profile *profile = script->profile;
	struct pm_str *out = &script->out;

	for (uint32_t i = 0; i < frame->levels; i++) {
		uint32_t place = profile->levels.data[frame->first_level + i];

		pm_str_putc(out, '\t');
		script_put_address(out, frame->address);
		pm_str_putc(out, ' ');
		script_put_text(out, &script->functions,
				profile->places.data[place].function);
		if (i + 1 < frame->levels) {
			pm_str_puts(out, " (inlined)\n");
			continue;
		}
		pm_str_puts(out, " (");
		if (frame->module == PM_PROFILE_NONE)
			pm_str_puts(out, "[unknown]");
		else
			script_put_text(out, &script->modules, frame->module);
		pm_str_puts(out, ")\n");
	}
}

static void script_put_frame(struct script *script, uint32_t id)
{
	struct lines *lines = &script->frames[id];
	struct pm_str *out = &script->out;
	size_t from = out->len;

	if (lines->len > 0) {
		pm_str_append(out, script->frame_bytes.data + lines->start, lines->len);
		return;
	}
	script_put_levels(script, &script->profile->frames.data[id]);
	if (out->failed || out->len - from > LINES_BYTES_MAX)
		return;
	lines->start = script->frame_bytes.len;
	pm_str_append(&script->frame_bytes, out->data + from, out->len - from);
	if (script->frame_bytes.failed)
		out->failed = true;
	else
		lines->len = out->len - from;
}

/* Appends a padded number. printf() would take as long as everything else in a sample. */
static void script_put_padded(struct pm_str *str, uint64_t value, unsigned width,
			      char fill)
{
	uint64_t limit = 1;

	for (unsigned i = 1; i < width; i++) {
		limit *= 10;
		if (value < limit)
			pm_str_putc(str, fill);
	}
	pm_str_u64(str, value);
}

static void put_sample(struct script *script, const struct pm_profile_sample *sample)
{
	const struct pm_profile *profile = script->profile;
	const struct pm_profile_cell *cell = &profile->cells.data[sample->cell];
	const struct pm_profile_thread *thread = &profile->threads.data[cell->thread];
	uint64_t time = profile->info.start_ns + sample->time_ns;
	struct pm_str *out = &script->out;

	script_put_text(out, &script->comms, cell->thread);
	pm_str_putc(out, ' ');
	pm_str_u64(out, thread->pid);
	pm_str_putc(out, '/');
	pm_str_u64(out, thread->tid);
	if (sample->cpu != PM_FILE_NONE) {
		pm_str_puts(out, " [");
		script_put_padded(out, sample->cpu, 3, '0');
		pm_str_putc(out, ']');
	}
	pm_str_putc(out, ' ');
	script_put_padded(out, time / NS_PER_S, 5, ' ');
	pm_str_putc(out, '.');
	script_put_padded(out, time % NS_PER_S, 9, '0');
	pm_str_puts(out, ": ");
	pm_str_u64(out, sample->period);
	pm_str_putc(out, ' ');
	script_put_text(out, &script->events, cell->event - script->export.first);
	pm_str_puts(out, ": \n");
	for (uint32_t at = cell->stack; at != PM_PROFILE_NONE;
	     at = profile->stacks.data[at].parent)
		script_put_frame(script, profile->stacks.data[at].frame);
	pm_str_putc(out, '\n');
}

static uint32_t levels_bytes(const struct script *script,
			     const struct pm_profile_frame *frame)
{
	const size_t *starts = script->functions.starts.data;
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < frame->levels; i++) {
		uint32_t place = script->profile->levels.data[frame->first_level + i];
		uint32_t function = script->profile->places.data[place].function;

		/* tab, address, and separators between names */
		bytes += 24 + (uint32_t)(starts[function + 1] - starts[function]);
	}
	if (frame->module != PM_PROFILE_NONE)
		bytes += (uint32_t)(script->modules.starts.data[frame->module + 1] -
				    script->modules.starts.data[frame->module]);
	return bytes;
}

static int script_check_size(const struct script *script, struct pm_error *err)
{
	const struct pm_profile *profile = script->profile;
	PM_AUTO_FREE uint32_t *frames = calloc(profile->frames.len + 1, sizeof(*frames));
	PM_AUTO_FREE uint64_t *lengths = NULL;
	uint64_t bytes = 0;

	for (size_t i = 0; frames && i < profile->frames.len; i++)
		frames[i] = levels_bytes(script, &profile->frames.data[i]);
	if (frames)
		lengths = pm_stack_lengths(profile, frames);
	if (!lengths)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < profile->samples.len; i++) {
		uint32_t cell = profile->samples.data[i].cell;

		if (script->export.cells[cell])
			bytes += lengths[profile->cells.data[cell].stack];
	}
	return pm_check_document_bytes(bytes, PM_DOCUMENT_BYTES_MAX, err);
}

int pm_output_perf_script(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	PM_CLEANUP(script_release) struct script script = { .profile = report->profile };
	const struct pm_profile *profile = report->profile;
	int ret = pm_export_init(&script.export, report, err);

	if (ret < 0)
		return ret;
	script.frames = calloc(profile->frames.len + 1, sizeof(*script.frames));
	if (!script.frames || make_texts(&script) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	ret = script_check_size(&script, err);
	if (ret < 0)
		return ret;
	script_put_head(&script);
	for (size_t i = 0; i < profile->samples.len && !script.out.failed; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];

		if (!script.export.cells[sample->cell])
			continue;
		put_sample(&script, sample);
		pm_flush_some(&script.out, to);
	}
	return pm_flush_all(&script.out, to, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * speedscope's own format (src/lib/file-format-spec.ts of speedscope): one sampled
 * profile for each event and thread, with samples in order of time, weighted by their
 * periods. A frame is a function, because the viewer sums by frame. Frames without a
 * source file have their module in its place.
 */
#include "export.h"

#include <string.h>

struct speedscope {
	struct pm_export export;
	struct pm_export_order order;
	const struct pm_profile *profile;
	const char **files; /* by function */
	uint32_t *frames; /* by function: index plus 1; 0: not written */
	uint32_t frames_len;
	PM_VEC(uint32_t) chain;
	struct pm_str out, text;
	FILE *to;
};

static void speedscope_release(struct speedscope *it)
{
	pm_export_release(&it->export);
	pm_export_order_release(&it->order);
	free(it->frames);
	free(it->files);
	pm_vec_release(&it->chain);
	pm_str_release(&it->out);
	pm_str_release(&it->text);
}

static void speedscope_put_frame(struct speedscope *it, uint32_t place)
{
	const struct pm_profile *profile = it->profile;
	const struct pm_profile_place *at = &profile->places.data[place];
	const char *file = it->files[at->function];

	if (it->frames[at->function] != 0)
		return;
	if (it->frames_len > 0)
		pm_str_puts(&it->out, ",");
	pm_str_puts(&it->out, "\n");
	it->frames[at->function] = ++it->frames_len;
	pm_put_export_function(&it->text, profile, at->function);
	pm_str_puts(&it->out, "{\"name\":");
	pm_put_export_json(&it->out, &it->text);
	if (file)
		pm_str_printable(&it->text, file, strlen(file));
	else
		pm_put_export_module(&it->text, profile,
				     profile->functions.data[at->function].module);
	pm_str_puts(&it->out, ",\"file\":");
	pm_put_export_json(&it->out, &it->text);
	pm_str_putc(&it->out, '}');
	pm_flush_some(&it->out, it->to);
}

static void put_frames(struct speedscope *it)
{
	const struct pm_profile *profile = it->profile;

	for (size_t i = 0; i < profile->stacks.len; i++) {
		const struct pm_profile_frame *frame =
			&profile->frames.data[profile->stacks.data[i].frame];

		for (uint32_t l = 0; it->export.stacks[i] && l < frame->levels; l++)
			speedscope_put_frame(
				it, profile->levels.data[frame->first_level + l]);
	}
}

static int speedscope_put_stack(struct speedscope *it, uint32_t stack)
{
	const struct pm_profile *profile = it->profile;

	pm_vec_clear(&it->chain);
	for (uint32_t at = stack; at != PM_PROFILE_NONE;
	     at = profile->stacks.data[at].parent)
		for (uint32_t l = 0; l < pm_profile_levels(profile, at); l++)
			if (pm_vec_push(&it->chain, it->frames[pm_profile_level_function(
							    profile, at, l)] -
							    1) < 0)
				return -ENOMEM;
	pm_str_putc(&it->out, '[');
	for (size_t i = it->chain.len; i-- > 0;) {
		pm_str_u64(&it->out, it->chain.data[i]);
		if (i > 0)
			pm_str_putc(&it->out, ',');
	}
	pm_str_putc(&it->out, ']');
	return 0;
}

static void put_profile_head(struct speedscope *it, const struct pm_export_run *run)
{
	const struct pm_profile *profile = it->profile;
	const struct pm_profile_thread *thread = &profile->threads.data[run->thread];

	pm_put_export_comm(&it->text, thread);
	if (thread->tid != PM_FILE_NONE)
		pm_str_printf(&it->text, " (tid %u)", thread->tid);
	if (it->export.end - it->export.first > 1)
		pm_str_printf(&it->text, " %s", pm_export_event(&it->export, run->event));
	pm_str_puts(&it->out, "{\"type\":\"sampled\",\"name\":");
	pm_put_export_json(&it->out, &it->text);
	pm_str_puts(&it->out, ",\"unit\":");
	pm_str_puts(&it->out, pm_event_in_ns(&profile->events.data[run->event])
				      ? "\"nanoseconds\""
				      : "\"none\"");
	pm_str_puts(&it->out, ",\"startValue\":0,\"endValue\":");
	pm_str_u64(&it->out, run->period);
}

/* Gets the next stack. Consecutive equal stacks are written once, with the sum of their
 * weights. */
static bool next_weight(const struct speedscope *it, const struct pm_export_run *run,
			size_t *at, uint32_t *stack, uint64_t *weight)
{
	struct pm_weight sum = { 0 };

	if (*at == run->len)
		return false;
	*stack = pm_export_cell(&it->export, it->order.order.data[run->first + *at])
			 ->stack;
	for (; *at < run->len; (*at)++) {
		uint32_t sample = it->order.order.data[run->first + *at];
		struct pm_weight one = {
			.period = it->profile->samples.data[sample].period,
		};

		if (pm_export_cell(&it->export, sample)->stack != *stack)
			break;
		pm_weight_add(&sum, &one);
	}
	*weight = sum.period;
	return true;
}

static int put_profile(struct speedscope *it, const struct pm_export_run *run)
{
	uint64_t weight;
	uint32_t stack;
	const char *comma = "";

	put_profile_head(it, run);
	pm_str_puts(&it->out, ",\n\"samples\":[");
	for (size_t at = 0; next_weight(it, run, &at, &stack, &weight); comma = ",\n") {
		pm_str_puts(&it->out, comma);
		if (speedscope_put_stack(it, stack) < 0)
			return -ENOMEM;
		pm_flush_some(&it->out, it->to);
	}
	comma = "";
	pm_str_puts(&it->out, "],\n\"weights\":[");
	for (size_t at = 0; next_weight(it, run, &at, &stack, &weight); comma = ",") {
		pm_str_puts(&it->out, comma);
		pm_str_u64(&it->out, weight);
		pm_flush_some(&it->out, it->to);
	}
	pm_str_puts(&it->out, "]}");
	return 0;
}

static size_t heaviest_run(const struct speedscope *it)
{
	const struct pm_export_run *runs = it->order.runs.data;
	size_t best = 0;

	for (size_t i = 1; i < it->order.runs.len && runs[i].event == runs[0].event; i++)
		if (runs[i].period > runs[best].period)
			best = i;
	return best;
}

static int speedscope_put_document(struct speedscope *it)
{
	struct pm_str *out = &it->out;

	pm_str_puts(out, "{\"$schema\":\"https://www.speedscope.app/"
			 "file-format-schema.json\",\n\"exporter\":\"pmreport@" PM_VERSION
			 "\",\n\"name\":");
	pm_put_export_command(&it->text, it->profile);
	if (it->text.len == 0)
		pm_str_puts(&it->text, "pmrec");
	pm_put_export_json(out, &it->text);
	pm_str_printf(out, ",\n\"activeProfileIndex\":%zu", heaviest_run(it));
	/* Not part of the format, which has no place for notes; readers ignore them. */
	pm_str_puts(out, ",\n\"notes\":[");
	for (uint32_t i = 0; i < it->export.notes.starts.len; i++) {
		if (i > 0)
			pm_str_puts(out, ",");
		pm_str_puts(out, "\n");
		pm_str_json(out, pm_strings_get(&it->export.notes, i));
	}
	pm_str_puts(out, "],\n\"shared\":{\"frames\":[");
	put_frames(it);
	pm_str_puts(out, "]},\n\"profiles\":[");
	for (size_t i = 0; i < it->order.runs.len; i++) {
		if (i > 0)
			pm_str_puts(out, ",");
		pm_str_puts(out, "\n");
		if (put_profile(it, &it->order.runs.data[i]) < 0)
			return -ENOMEM;
	}
	pm_str_puts(out, "]}\n");
	return 0;
}

/* Checks the size, with consecutive equal stacks counted once, as they are written. */
static int speedscope_check_size(const struct speedscope *it, struct pm_error *err)
{
	const struct pm_profile *profile = it->profile;
	PM_AUTO_FREE uint32_t *frames = calloc(profile->frames.len + 1, sizeof(*frames));
	PM_AUTO_FREE uint64_t *lengths = NULL;
	uint32_t digits = 2; /* includes the comma */
	uint64_t bytes = 0;

	for (size_t most = profile->functions.len; most > 9; most /= 10)
		digits++;
	for (size_t i = 0; frames && i < profile->frames.len; i++)
		frames[i] = digits * profile->frames.data[i].levels;
	if (frames)
		lengths = pm_stack_lengths(profile, frames);
	if (!lengths)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < it->order.runs.len; i++) {
		const struct pm_export_run *run = &it->order.runs.data[i];
		uint64_t weight;
		uint32_t stack;

		for (size_t at = 0; next_weight(it, run, &at, &stack, &weight);)
			bytes += lengths[stack];
	}
	return pm_check_document_bytes(bytes, PM_DOCUMENT_BYTES_MAX, err);
}

int pm_output_speedscope(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	PM_CLEANUP(speedscope_release)
	struct speedscope it = { .profile = report->profile, .to = to };
	int ret = pm_export_init(&it.export, report, err);

	if (ret < 0)
		return ret;
	it.frames = calloc(report->profile->functions.len + 1, sizeof(*it.frames));
	it.files = pm_export_files(report->profile);
	if (!it.frames || !it.files || pm_export_order_init(&it.order, &it.export) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	ret = speedscope_check_size(&it, err);
	if (ret < 0)
		return ret;
	if (speedscope_put_document(&it) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return pm_flush_all(&it.out, to, err);
}

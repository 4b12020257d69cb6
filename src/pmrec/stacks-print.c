/* SPDX-License-Identifier: MIT */
#include "stacks-internal.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "pm/run.h"

enum {
	FUNCTION_COLUMNS_MIN = 24, /* minimum left by the other columns */
	FUNCTION_COLUMNS = 56, /* with -v; longer names shift the rest */
	MODULE_COLUMNS = 24,
	SOURCE_COLUMNS = 24,
	INDEX_COLUMNS = 6,
	GAP = 2,
	RUN_MIN = 4, /* this many equal frames in a row are shown as one */
};

/* One line of a stack: a frame, or a function that was inlined into it. */
struct line {
	struct pm_str function, module, source;
};

/* Widths of columns, or their limits; 0: no limit. */
struct widths {
	size_t function, module, source;
	bool is_unlimited; /* the columns are aligned, and no text is cut */
};

static void line_release(struct line *line)
{
	pm_str_release(&line->function);
	pm_str_release(&line->module);
	pm_str_release(&line->source);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash && slash[1])
		return slash + 1;
	return path;
}

static void put_printable(struct pm_str *to, const char *text)
{
	pm_str_printable(to, text, strlen(text));
}

static const char *state_word(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
	case 'I':
		return "sleeping";
	case 'D':
		return "in an uninterruptible sleep";
	case 'T':
	case 't':
		return "stopped";
	case 'Z':
	case 'X':
		return "ended";
	default:
		return "";
	}
}

/* ---- lines ------------------------------------------------------------------------------ */

static void put_file(struct line *line, const char *path, uint32_t number, size_t width,
		     bool ascii)
{
	struct pm_str source = { 0 };

	put_printable(&source, path);
	if (number > 0)
		pm_str_printf(&source, ":%" PRIu32, number);
	pm_put_cut(&line->source, pm_str_text(&source), width, true, ascii);
	line->source.failed |= source.failed;
	pm_str_release(&source);
}

/* Describes line @level of @frame. The last level is the function itself. */
static void describe_frame_line(const struct pm_rec_stacks *stacks,
				const struct pm_procs *procs,
				const struct pm_rec_stack_frame *frame, size_t level,
				const struct widths *widths, struct line *line)
{
	static const char inlined[] = " (inlined)";
	bool ascii = pm_sink_is_ascii();
	const struct pm_module *module = frame->module == PM_FILE_NONE
						 ? NULL
						 : pm_procs_module(procs, frame->module);
	const struct pm_rec_name *name =
		module ? pm_rec_names_find(&stacks->names, frame->module, frame->address)
		       : NULL;
	const struct pm_rec_function *function =
		name && level < name->functions_len ? &name->functions[level] : NULL;

	bool is_inlined = function && level + 1 < name->functions_len;
	size_t room = widths->function;

	if (room > 0 && is_inlined)
		room -= strlen(inlined);
	if (function && function->name)
		pm_put_name(&line->function, function->name, room, ascii);
	else
		pm_str_printf(&line->function, "%#" PRIx64, frame->address);
	if (is_inlined)
		pm_str_puts(&line->function, inlined);
	if (module && module->identity.path[0])
		pm_put_cut(&line->module,
			   stacks->verbose ? module->identity.path
					   : base_name(module->identity.path),
			   widths->module, false, ascii);
	else
		pm_str_puts(&line->module, module ? "[anonymous]" : "[unknown]");
	if (function && function->file)
		put_file(line,
			 stacks->verbose ? function->file : base_name(function->file),
			 function->line, widths->source, ascii);
}

static size_t count_frame_levels(const struct pm_rec_stacks *stacks,
				 const struct pm_rec_stack_frame *frame)
{
	const struct pm_rec_name *name =
		frame->module == PM_FILE_NONE
			? NULL
			: pm_rec_names_find(&stacks->names, frame->module,
					    frame->address);

	if (name && name->functions_len > 0)
		return name->functions_len;
	return 1;
}

static size_t count_text_columns(const struct pm_str *text)
{
	if (text->data)
		return pm_columns(text->data);
	return 0;
}

static void put_padded_text(struct pm_str *to, const struct pm_str *text, size_t width)
{
	size_t len = count_text_columns(text);

	pm_str_append(to, pm_text_or_empty(text->data), text->len);
	pm_str_printf(to, "%*s", (int)(width > len ? width - len : 0) + GAP, "");
}

/* Whether two frames show the same text, as in recursion, which is shown once. */
static bool same_words(const struct pm_rec_stacks *stacks, const struct pm_procs *procs,
		       const struct pm_rec_stack_frame *a,
		       const struct pm_rec_stack_frame *b)
{
	static const struct widths whole;
	size_t all = count_frame_levels(stacks, a);
	bool same = all == count_frame_levels(stacks, b) && a->module == b->module;

	for (size_t level = 0; same && level < all; level++) {
		struct line one PM_CLEANUP(line_release) = { 0 };
		struct line other PM_CLEANUP(line_release) = { 0 };

		describe_frame_line(stacks, procs, a, level, &whole, &one);
		describe_frame_line(stacks, procs, b, level, &whole, &other);
		same = one.function.len == other.function.len &&
		       one.source.len == other.source.len &&
		       memcmp(one.function.data, other.function.data, one.function.len) ==
			       0 &&
		       (one.source.len == 0 ||
			memcmp(one.source.data, other.source.data, one.source.len) == 0);
	}
	return same;
}

/* The number of frames from @first on to be shown as one. */
static size_t run_of_same_frames(const struct pm_rec_stacks *stacks,
				 const struct pm_procs *procs,
				 const struct pm_rec_stack_thread *thread, size_t first)
{
	size_t end = first + 1;

	if (stacks->verbose)
		return 1;
	while (end < thread->frames.len &&
	       same_words(stacks, procs, &thread->frames.data[first],
			  &thread->frames.data[end]))
		end++;
	if (end - first >= RUN_MIN)
		return end - first;
	return 1;
}

static void put_line(const struct pm_rec_stacks *stacks, const struct line *line,
		     const struct widths *widths, uint64_t pc, struct pm_str *out)
{
	if (stacks->verbose)
		pm_str_printf(out, "%016" PRIx64 "  ", pc);
	put_padded_text(out, &line->function, widths->function);
	put_padded_text(out, &line->module, widths->module);
	pm_str_append(out, pm_str_text(&line->source), line->source.len);
	out->failed |=
		line->function.failed || line->module.failed || line->source.failed;
	while (out->len > 0 && out->data[out->len - 1] == ' ')
		out->len--;
	pm_str_putc(out, '\n');
}

static void widen_to_text(size_t *width, const struct pm_str *text)
{
	size_t len = count_text_columns(text);

	if (len > *width)
		*width = len;
}

static void keep_below(size_t *width, size_t max)
{
	if (*width > max)
		*width = max;
}

/* Limits the widths. Functions get the space that the other columns leave. */
static void limit_widths(const struct pm_rec_stacks *stacks, struct widths *widths)
{
	size_t screen = pm_sink_width(STDOUT_FILENO), taken;

	widths->is_unlimited = stacks->verbose || screen == 0;
	keep_below(&widths->module, MODULE_COLUMNS);
	keep_below(&widths->source, SOURCE_COLUMNS);
	taken = INDEX_COLUMNS + GAP + widths->module + GAP + widths->source;
	if (widths->is_unlimited)
		keep_below(&widths->function, FUNCTION_COLUMNS);
	else if (taken + FUNCTION_COLUMNS_MIN > screen)
		keep_below(&widths->function, FUNCTION_COLUMNS_MIN);
	else
		keep_below(&widths->function, screen - taken);
}

/* Measures the columns if @out is NULL; prints otherwise. */
static void each_line(const struct pm_rec_stacks *stacks, const struct pm_procs *procs,
		      const struct pm_rec_stack_thread *thread, struct widths *widths,
		      struct pm_str *out)
{
	static const struct widths whole;

	for (size_t i = 0, run; i < thread->frames.len; i += run) {
		const struct pm_rec_stack_frame *frame = &thread->frames.data[i];
		size_t all = count_frame_levels(stacks, frame);

		run = run_of_same_frames(stacks, procs, thread, i);
		for (size_t level = 0; level < all; level++) {
			struct line line PM_CLEANUP(line_release) = { 0 };

			describe_frame_line(
				stacks, procs, frame, level,
				out && !widths->is_unlimited ? widths : &whole, &line);
			if (!out) {
				widen_to_text(&widths->function, &line.function);
				widen_to_text(&widths->module, &line.module);
				widen_to_text(&widths->source, &line.source);
				continue;
			}
			if (level == 0)
				pm_str_printf(out, "%*zu  ", INDEX_COLUMNS - 2, i);
			else
				pm_str_printf(out, "%*s", INDEX_COLUMNS, "");
			put_line(stacks, &line, widths, frame->pc, out);
		}
		if (out && run > 1)
			pm_str_printf(out,
				      "%*s  the same, to frame %zu (%zu times in all)\n",
				      INDEX_COLUMNS - 2, "...", i + run - 1, run);
	}
}

/* ---- threads ---------------------------------------------------------------------------- */

static bool same_stack(const struct pm_rec_stack_thread *a,
		       const struct pm_rec_stack_thread *b)
{
	if (!a->stopped || !b->stopped || a->frames.len != b->frames.len ||
	    a->seen.state != b->seen.state || a->stop != b->stop)
		return false;
	for (size_t i = 0; i < a->frames.len; i++)
		if (a->frames.data[i].pc != b->frames.data[i].pc)
			return false;
	return true;
}

/* thread 12 "name", running   or   3 threads 12 "a", 13 "b", 14 "b", sleeping */
static void put_threads_heading(struct pm_str *out, const struct pm_rec_stacks *stacks,
				const bool *members, size_t first)
{
	size_t len = 0;

	for (size_t i = first; i < stacks->threads.len; i++)
		len += members[i];
	if (len > 1)
		pm_str_printf(out, "%zu threads", len);
	else
		pm_str_puts(out, "thread");
	for (size_t i = first; i < stacks->threads.len; i++) {
		const struct pm_rec_stack_thread *thread = &stacks->threads.data[i];

		if (!members[i])
			continue;
		pm_str_printf(out, " %d \"", (int)thread->tid);
		put_printable(out, thread->seen.comm);
		pm_str_puts(out, "\",");
	}
	pm_str_printf(out, " %s\n", state_word(stacks->threads.data[first].seen.state));
}

static void put_thread(struct pm_str *out, const struct pm_rec_stacks *stacks,
		       const struct pm_procs *procs,
		       const struct pm_rec_stack_thread *thread)
{
	struct widths widths = { 0 };

	if (!thread->stopped) {
		pm_str_printf(out,
			      "%*s(could not be stopped within a second: no stack)\n",
			      INDEX_COLUMNS, "");
		return;
	}
	each_line(stacks, procs, thread, &widths, NULL);
	limit_widths(stacks, &widths);
	each_line(stacks, procs, thread, &widths, out);
	if (thread->stop)
		pm_str_printf(out, "%*s(ends here: %s)\n", INDEX_COLUMNS, "",
			      thread->stop);
}

int pm_rec_stacks_print(const struct pm_rec_stacks *stacks, const struct pm_procs *procs)
{
	size_t len = stacks->threads.len;
	PM_AUTO_FREE bool *done = calloc(len + 1, sizeof(*done));
	PM_AUTO_FREE bool *members = calloc(len + 1, sizeof(*members));
	struct pm_str out PM_CLEANUP(pm_str_release) = { 0 };

	if (!done || !members)
		return -ENOMEM;
	pm_str_printf(&out, "process %d: %zu thread%s, stood still for %.2f ms\n",
		      (int)stacks->pid, len, pm_plural_s(len),
		      (double)stacks->still_ns / 1e6);
	if (stacks->incomplete)
		pm_str_puts(
			&out,
			"! threads were made faster than they could be stopped: some are "
			"missing\n");
	if (stacks->changed)
		pm_str_puts(&out,
			    "! files were mapped or unmapped meanwhile: names may be "
			    "wrong\n");
	for (size_t i = 0; i < len; i++) {
		if (done[i])
			continue;
		for (size_t k = i; k < len; k++) {
			members[k] = !done[k] &&
				     (k == i || same_stack(&stacks->threads.data[i],
							   &stacks->threads.data[k]));
			done[k] |= members[k];
		}
		pm_str_putc(&out, '\n');
		put_threads_heading(&out, stacks, members, i);
		put_thread(&out, stacks, procs, &stacks->threads.data[i]);
	}
	if (out.failed)
		return -ENOMEM;
	if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		return -errno;
	return 0;
}

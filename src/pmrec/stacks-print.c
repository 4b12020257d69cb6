/* SPDX-License-Identifier: MIT */
#include "stacks-internal.h"

#include <inttypes.h>
#include <string.h>

enum {
	FUNCTION_COLUMNS = 56, /* longer names push what is behind them to the right */
	MODULE_COLUMNS = 24,
	INDEX_COLUMNS = 6,
	RUN_MIN = 4, /* equal frames in a row that are shown as one */
};

/* One line of a stack: a frame, or a function that was inlined into it. */
struct line {
	struct pm_str function, module, source;
};

static void line_release(struct line *line)
{
	pm_str_release(&line->function);
	pm_str_release(&line->module);
	pm_str_release(&line->source);
}

/* Characters, as far as a terminal shows one column for each. */
static size_t columns(const struct pm_str *text)
{
	size_t len = 0;

	for (size_t i = 0; i < text->len; i++)
		len += ((unsigned char)text->data[i] & 0xc0) != 0x80;
	return len;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void put(struct pm_str *to, const char *text)
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

/* What line @level of @frame says; its last level is the function itself. */
static void describe(const struct pm_rec_stacks *stacks, const struct pm_procs *procs,
		     const struct pm_rec_stack_frame *frame, size_t level,
		     struct line *line)
{
	const struct pm_module *module = frame->module == PM_FILE_NONE
						 ? NULL
						 : pm_procs_module(procs, frame->module);
	const struct pm_rec_name *name =
		module ? pm_rec_names_find(&stacks->names, frame->module, frame->address)
		       : NULL;
	const struct pm_rec_function *function =
		name && level < name->functions_len ? &name->functions[level] : NULL;

	if (function && function->name)
		put(&line->function, function->name);
	else
		pm_str_printf(&line->function, "%#" PRIx64, frame->address);
	if (function && level + 1 < name->functions_len)
		pm_str_puts(&line->function, " (inlined)");
	if (module && module->identity.path[0])
		put(&line->module, stacks->verbose ? module->identity.path
						   : base_name(module->identity.path));
	else
		pm_str_puts(&line->module, module ? "[anonymous]" : "[unknown]");
	if (function && function->file) {
		put(&line->source,
		    stacks->verbose ? function->file : base_name(function->file));
		if (function->line > 0)
			pm_str_printf(&line->source, ":%" PRIu32, function->line);
	}
}

static size_t levels(const struct pm_rec_stacks *stacks,
		     const struct pm_rec_stack_frame *frame)
{
	const struct pm_rec_name *name =
		frame->module == PM_FILE_NONE
			? NULL
			: pm_rec_names_find(&stacks->names, frame->module,
					    frame->address);

	return name && name->functions_len > 0 ? name->functions_len : 1;
}

struct widths {
	size_t function, module;
};

static void pad(struct pm_str *to, const struct pm_str *text, size_t width)
{
	size_t len = columns(text);

	pm_str_append(to, text->data ? text->data : "", text->len);
	do
		pm_str_putc(to, ' ');
	while (len++ <= width);
}

/* Whether two frames say the same: recursion, which nobody reads a hundred times. */
static bool same_words(const struct pm_rec_stacks *stacks, const struct pm_procs *procs,
		       const struct pm_rec_stack_frame *a,
		       const struct pm_rec_stack_frame *b)
{
	size_t all = levels(stacks, a);
	bool same = all == levels(stacks, b) && a->module == b->module;

	for (size_t level = 0; same && level < all; level++) {
		struct line one PM_CLEANUP(line_release) = { 0 };
		struct line other PM_CLEANUP(line_release) = { 0 };

		describe(stacks, procs, a, level, &one);
		describe(stacks, procs, b, level, &other);
		same = one.function.len == other.function.len &&
		       one.source.len == other.source.len &&
		       memcmp(one.function.data, other.function.data, one.function.len) ==
			       0 &&
		       (one.source.len == 0 ||
			memcmp(one.source.data, other.source.data, one.source.len) == 0);
	}
	return same;
}

/* How many frames from @first on are to be shown as one. */
static size_t run_of(const struct pm_rec_stacks *stacks, const struct pm_procs *procs,
		     const struct pm_rec_stack_thread *thread, size_t first)
{
	size_t end = first + 1;

	if (stacks->verbose)
		return 1;
	while (end < thread->frames.len &&
	       same_words(stacks, procs, &thread->frames.data[first],
			  &thread->frames.data[end]))
		end++;
	return end - first >= RUN_MIN ? end - first : 1;
}

static void put_line(const struct pm_rec_stacks *stacks, const struct line *line,
		     const struct widths *widths, uint64_t pc, struct pm_str *out)
{
	if (stacks->verbose)
		pm_str_printf(out, "%016" PRIx64 "  ", pc);
	pad(out, &line->function, widths->function);
	pad(out, &line->module, widths->module);
	pm_str_append(out, line->source.data ? line->source.data : "", line->source.len);
	out->failed |=
		line->function.failed || line->module.failed || line->source.failed;
	while (out->len > 0 && out->data[out->len - 1] == ' ')
		out->len--;
	pm_str_putc(out, '\n');
}

static void widen(size_t *width, const struct pm_str *text, size_t max)
{
	size_t len = columns(text);

	if (len <= max && len > *width)
		*width = len;
}

/* Measures the columns where @out is NULL, else prints. */
static void each_line(const struct pm_rec_stacks *stacks, const struct pm_procs *procs,
		      const struct pm_rec_stack_thread *thread, struct widths *widths,
		      struct pm_str *out)
{
	for (size_t i = 0, run; i < thread->frames.len; i += run) {
		const struct pm_rec_stack_frame *frame = &thread->frames.data[i];
		size_t all = levels(stacks, frame);

		run = run_of(stacks, procs, thread, i);
		for (size_t level = 0; level < all; level++) {
			struct line line PM_CLEANUP(line_release) = { 0 };

			describe(stacks, procs, frame, level, &line);
			if (!out) {
				widen(&widths->function, &line.function,
				      FUNCTION_COLUMNS);
				widen(&widths->module, &line.module, MODULE_COLUMNS);
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
static void put_heading(struct pm_str *out, const struct pm_rec_stacks *stacks,
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
		put(out, thread->seen.comm);
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
		      (int)stacks->pid, len, len == 1 ? "" : "s",
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
		put_heading(&out, stacks, members, i);
		put_thread(&out, stacks, procs, &stacks->threads.data[i]);
	}
	if (out.failed)
		return -ENOMEM;
	if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		return -errno;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "pm/run.h"

enum {
	GAP = 2,
	NAME_COLUMN = 37 + GAP, /* start of the names, after the numbers */
	NAMES_MIN = 39, /* columns for a name and its module together */
	/* Columns that the module gets at least, even if the name is long. */
	MODULE_MIN = 15,
};

/* ---- how it was measured and what is missing ---------------------------------------------- */

static void put_counted(struct pm_str *str, uint64_t count, const char *one)
{
	pm_str_printf(str, "%" PRIu64 " %s%s", count, one, pm_plural_s(count));
}

static void put_table_heading(struct pm_str *str, const struct pm_profile *profile,
			      const struct pm_self_engine *engine)
{
	const struct pm_profile_info *info = &profile->info;
	const struct pm_profile_event *event = &profile->events.data[0];

	pm_str_puts(str, "pmself: ");
	pm_str_printable(str, program_invocation_short_name,
			 strlen(program_invocation_short_name));
	pm_str_printf(str, " (pid %d): ", (int)getpid());
	put_counted(str, event->total.samples, "tick");
	pm_str_printf(str, " of %s at %" PRIu64 " Hz (%s) in ", event->actual,
		      event->rate, engine->type->name);
	put_counted(str, info->threads, "thread");
	pm_str_printf(str, ", %.3f s", (double)info->duration_ns / 1e9);
	if (info->cpu_known)
		pm_str_printf(str, ", %.3f s of CPU time", (double)info->cpu_ns / 1e9);
	pm_str_putc(str, '\n');
}

/* Returns the number of samples whose stop reason means that callers are missing. */
static uint64_t count_incomplete_samples(const struct pm_view *view)
{
	const struct pm_profile *profile = view->profile;
	uint64_t sum = 0;

	for (size_t i = 1; i < profile->stops.len; i++)
		if (strcmp(profile->stops.data[i], "not_asked") != 0)
			sum += view->stops[i].samples;
	return sum;
}

static void put_missing_note(struct pm_str *str, const struct pm_view *view)
{
	const struct pm_profile *profile = view->profile;
	const struct pm_profile_info *info = &profile->info;
	uint64_t cut = count_incomplete_samples(view);

	if (info->cut)
		pm_str_puts(str, "pmself: the profile ended before its end\n");
	if (info->lost > 0) {
		pm_str_puts(str, "pmself: ");
		put_counted(str, info->lost, "tick");
		pm_str_puts(str, " lost: the buffers were full\n");
	}
	if (info->throttled > 0) {
		pm_str_puts(str, "pmself: sampling was paused by the kernel ");
		put_counted(str, info->throttled, "time");
		pm_str_putc(str, '\n');
	}
	if (cut > 0) {
		pm_str_puts(str, "pmself: ");
		put_counted(str, cut, "tick");
		pm_str_puts(str, " without all of their callers\n");
	}
	for (size_t i = 0; i < profile->notes.len; i++) {
		const char *text = profile->notes.data[i];

		pm_str_puts(str, "pmself: ");
		pm_str_printable(str, text, strlen(text));
		pm_str_putc(str, '\n');
	}
}

/* ---- the functions ------------------------------------------------------------------------ */

/* Prints what follows the numbers. The module gets the room that the name leaves, but at
 * least MODULE_MIN columns. */
static void put_name_columns(struct pm_str *str,
			     const struct pm_profile_function *function,
			     const char *module, bool inlined, unsigned width)
{
	const char *mark = inlined ? " (inlined)" : "";
	bool ascii = pm_sink_is_ascii();
	size_t both = 0, name = pm_columns(function->name) + strlen(mark), left;
	struct pm_str shown = { 0 };

	if (width > 0) {
		if (width > NAME_COLUMN + GAP + NAMES_MIN)
			both = width - NAME_COLUMN - GAP;
		else
			both = NAMES_MIN;
	}
	if (both > name + MODULE_MIN)
		left = both - name;
	else
		left = MODULE_MIN;
	pm_put_cut(&shown, module, both > 0 ? left : 0, false, ascii);
	if (both > 0 && shown.data)
		left = both - pm_columns(shown.data) - strlen(mark);
	else
		left = 0;
	pm_put_name(str, function->name, left, ascii);
	pm_str_printf(str, "%s%*s", mark, GAP, "");
	pm_str_append(str, pm_str_text(&shown), shown.len);
	str->failed |= shown.failed;
	pm_str_release(&shown);
}

static void put_table_row(struct pm_str *str, const struct pm_view *view,
			  const struct pm_row *row, unsigned width)
{
	const struct pm_profile *profile = view->profile;
	const struct pm_profile_function *function = &profile->functions.data[row->id];

	pm_str_printf(str, "%10" PRIu64 " %6.2f%% %10" PRIu64 " %6.2f%%%*s",
		      row->self.samples, pm_weight_percent(&row->self, &view->total),
		      row->total.samples, pm_weight_percent(&row->total, &view->total),
		      GAP, "");
	put_name_columns(str, function, pm_profile_module_name(profile, function->module),
			 row->inlined, width);
	pm_str_putc(str, '\n');
}

static int put_table_rows(struct pm_str *str, const struct pm_view *view,
			  const struct pm_self_table_options *options)
{
	struct pm_table table;
	size_t len, rows = options->rows;
	int ret = pm_table_init(&table, view, PM_KEY_FUNCTION, false);

	if (ret < 0)
		return ret;
	if (rows > 0 && table.rows.len > rows)
		len = rows;
	else
		len = table.rows.len;
	if (len > 0)
		pm_str_puts(str, "      self       %      total       %  function\n");
	for (size_t i = 0; i < len; i++)
		put_table_row(str, view, &table.rows.data[i], options->width);
	if (len < table.rows.len)
		pm_str_printf(str, "%31zu more functions\n", table.rows.len - len);
	pm_table_release(&table);
	return 0;
}

int pm_self_table(struct pm_profile_stream *stream, const struct pm_self_engine *engine,
		  const struct pm_self_table_options *options, char **out,
		  struct pm_error *err)
{
	const struct pm_profile *profile;
	struct pm_view *view = NULL;
	struct pm_str text = { 0 };
	int ret = pm_profile_stream_look(
		stream, options->whole ? PM_PROFILE_WHOLE : PM_PROFILE_CUT, &profile,
		err);

	if (ret == 0 && profile->events.len == 0)
		ret = pm_error_set(err, -ENODATA, "nothing was recorded");
	if (ret == 0)
		ret = pm_view_new(&view, profile, 0, NULL, err);
	if (ret < 0)
		return ret;
	put_table_heading(&text, profile, engine);
	put_missing_note(&text, view);
	ret = put_table_rows(&text, view, options);
	if (ret == 0 && text.failed)
		ret = -ENOMEM;
	if (ret < 0)
		pm_error_set(err, ret, "out of memory");
	else
		*out = PM_TAKE_PTR(text.data);
	pm_str_release(&text);
	pm_view_free(view);
	return ret;
}

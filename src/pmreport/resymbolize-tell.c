/* SPDX-License-Identifier: MIT */
/* Reports once which modules have no names, why, and what would help. */
#include "resymbolize-internal.h"

#include <string.h>

enum {
	TOLD_MAX = 5, /* modules listed; further ones are only counted */
};
#define TOLD_PERCENT 0.5 /* reports hide smaller shares, too */

struct row {
	uint64_t samples;
	uint32_t module; /* PM_PROFILE_NONE: no module */
};

static int compare_rows_by_samples(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->samples != b->samples)
		return PM_COMPARE(b->samples, a->samples);
	return PM_COMPARE(a->module, b->module);
}

/* Returns one row for each module, with the number of samples in functions without a
 * name, sorted by that number. @all: the number of all samples. */
static struct row *count_nameless_samples(const struct pm_profile *profile, uint64_t *all)
{
	struct row *rows = calloc(profile->modules.len + 1, sizeof(*rows));

	*all = 0;
	for (uint32_t i = 0; rows && i < profile->modules.len; i++)
		rows[i].module = i;
	for (size_t i = 0; rows && i < profile->cells.len; i++) {
		const struct pm_profile_cell *cell = &profile->cells.data[i];
		uint32_t function = pm_profile_level_function(profile, cell->stack, 0);
		uint32_t frame = profile->stacks.data[cell->stack].frame;
		uint32_t module = profile->frames.data[frame].module;

		*all += cell->weight.samples;
		if (module != PM_PROFILE_NONE &&
		    profile->functions.data[function].unknown)
			rows[module].samples += cell->weight.samples;
	}
	if (rows)
		qsort(rows, profile->modules.len, sizeof(*rows), compare_rows_by_samples);
	return rows;
}

static const char *module_nameless_reason(const struct pm_resymbolize_module *module)
{
	if (!module)
		return "made while it ran, or by the system";
	if (module->why[0])
		return module->why;
	switch (module->state) {
	case PM_RESYMBOLIZE_UNTRIED:
		return "made while it ran, or by the system";
	case PM_RESYMBOLIZE_NO_ID:
		return "no build-id: link it with -Wl,--build-id and record again";
	case PM_RESYMBOLIZE_NOT_HERE:
		return "not on this machine";
	case PM_RESYMBOLIZE_OTHER_BUILD:
		return "another build stands at its path";
	case PM_RESYMBOLIZE_FOUND:
		return "the file has no names for it";
	case PM_RESYMBOLIZE_OTHER_KERNEL:
		return "names of a kernel are known only while it runs";
	}
	return "";
}

static bool is_module_lacking(const struct pm_resymbolize_module *module)
{
	return module && (module->state == PM_RESYMBOLIZE_NOT_HERE ||
			  module->state == PM_RESYMBOLIZE_OTHER_BUILD ||
			  /* stripped */
			  (module->state == PM_RESYMBOLIZE_FOUND && !module->lines));
}

static void append_nameless_module(struct pm_str *text,
				   const struct pm_profile_module *module,
				   const struct pm_resymbolize_module *state,
				   double percent)
{
	const char *why = module_nameless_reason(state);

	pm_str_printf(text, "  %5.1f%%  ", percent);
	pm_str_printable(text, module->path, strlen(module->path));
	if (module->build_id) {
		pm_str_puts(text, "  build-id ");
		pm_str_printable(text, module->build_id, strlen(module->build_id));
	}
	pm_str_puts(text, "  (");
	pm_str_printable(text, why, strlen(why));
	pm_str_puts(text, ")\n");
}

static void append_symbols_help(struct pm_str *text,
				const struct pm_resymbolize *resymbolize,
				const char *file)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (resymbolize->options.debuginfod_seconds > 0)
		pm_str_puts(text, "  try: pmreport --symfs DIR");
	else if (urls && urls[0])
		pm_str_puts(text, "  try: pmreport --debuginfod");
	else
		pm_str_puts(text, "  try: DEBUGINFOD_URLS=SERVER pmreport --debuginfod");
	if (file) {
		pm_str_putc(text, ' ');
		pm_str_printable(text, file, strlen(file));
	}
	if (resymbolize->options.debuginfod_seconds > 0)
		pm_str_puts(text, ", with copies of the files below DIR");
	pm_str_putc(text, '\n');
}

void pm_resymbolize_tell(const struct pm_resymbolize *resymbolize,
			 const struct pm_profile *profile, const char *file)
{
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	PM_AUTO_FREE struct row *rows = NULL;
	uint64_t all, nameless = 0;
	size_t told = 0, more = 0;
	double percent;
	bool help = false;

	if (resymbolize->options.off || resymbolize->options.quiet ||
	    (profile->info.symbols > 0 && !pm_resymbolize_explicit(resymbolize)))
		return;
	rows = count_nameless_samples(profile, &all);
	for (size_t i = 0; rows && i < profile->modules.len && rows[i].samples > 0; i++) {
		const struct pm_profile_module *module =
			&profile->modules.data[rows[i].module];
		const struct pm_resymbolize_module *state =
			pm_resymbolize_find(resymbolize, module);

		percent = 100.0 * (double)rows[i].samples / (double)all;
		nameless += rows[i].samples;
		if (told == TOLD_MAX ||
		    (percent < TOLD_PERCENT && !(state && state->why[0]))) {
			more++;
			continue;
		}
		told++;
		help = help || is_module_lacking(state);
		append_nameless_module(&text, module, state, percent);
	}
	if (all > 0)
		percent = 100.0 * (double)nameless / (double)all;
	else
		percent = 0;
	if ((told == 0 && percent < TOLD_PERCENT) || text.failed)
		return;
	fprintf(stderr, "pmreport: no names for %.1f%% of the samples:\n%s", percent,
		told > 0 ? text.data : "");
	if (more > 0 && told > 0)
		fprintf(stderr, "  and less in %zu module%s more\n", more,
			pm_plural_s(more));
	else if (more > 0)
		fprintf(stderr, "  less than %.1f%% in each of %zu modules\n",
			TOLD_PERCENT, more);
	pm_str_clear(&text);
	if (help)
		append_symbols_help(&text, resymbolize, file);
	if (text.len > 0 && !text.failed)
		fputs(text.data, stderr);
}

/* SPDX-License-Identifier: MIT */
/* Finds source lines with the line tables, as the symbol room reads them. */
#include "probe-internal.h"

#include <string.h>

#include "pm/symbol.h"

struct take {
	const struct pm_probe_search *search;
	struct pm_probe_places *places;
	uint32_t line;
};

static int take_line_place(void *user, const struct pm_symbol_line *at)
{
	struct take *take = user;
	const struct pm_event_place *asked = &take->search->spec->place;
	struct pm_probe_place place = { .address = at->address };
	struct pm_str name = { 0 };

	/* Debug information for code that is not in the file. */
	if (!pm_probe_elf_code(take->search->elf, at->address, &place.offset))
		return 0;
	if (take->places->list.len >= PM_PROBE_PLACES_MAX)
		return -E2BIG;
	take->line = at->line;
	pm_str_printf(&name, "%s:%u", asked->source, at->line);
	if (name.failed)
		pm_str_release(&name);
	place.name = name.data;
	return pm_probe_places_add(take->places, place);
}

int pm_probe_find_lines(const struct pm_probe_search *search,
			struct pm_probe_places *places, struct pm_error *err)
{
	const struct pm_event_place *asked = &search->spec->place;
	struct pm_symbol_options options = { .debug_dir = search->context->debug_dir,
					     .pid = search->file->pid,
					     .path = search->file->path };
	struct take taking = { .search = search, .places = places };
	int ret = pm_symbols_find_line(search->elf->fd, &options, asked->source,
				       asked->line, take_line_place, &taking, err);

	if (ret == -E2BIG && places->list.len >= PM_PROBE_PLACES_MAX)
		return pm_error_set(err, -E2BIG, "%s:%u means more than %d places",
				    asked->source, asked->line, PM_PROBE_PLACES_MAX);
	if (ret == -ENOMEM)
		return pm_error_set(err, ret, "no memory left for the places");
	if (ret == -ENODATA)
		pm_error_fix(err, "build it with -g, or install its debug symbols");
	if (ret < 0)
		return ret;
	if (places->list.len == 0)
		return pm_error_set(err, -ENOENT, "%s:%u has no code", asked->source,
				    asked->line);
	if (taking.line != asked->line)
		pm_str_printf(search->note,
			      "%s: line %u has no code, the probe is on line %u",
			      search->spec->requested, asked->line, taking.line);
	else if (places->list.len > 1)
		pm_str_printf(search->note,
			      "%s is at %zu places in the code, which are events of "
			      "their own",
			      search->spec->requested, places->list.len);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Finds inlined functions by the names that users type. */
#include "probe-internal.h"

#include <string.h>

#include "pm/symbol.h"

struct take {
	struct pm_probe_inlined_list *out;
	struct pm_probe_pattern pattern;
};

static void inlined_release(struct pm_probe_inlined *inlined)
{
	free(inlined->name);
	free(inlined->file);
	pm_vec_release(&inlined->pieces);
}

void pm_probe_inlined_release(struct pm_probe_inlined_list *inlined)
{
	for (size_t i = 0; i < inlined->list.len; i++)
		inlined_release(&inlined->list.data[i]);
	pm_vec_release(&inlined->list);
}

static bool is_inlined_name_wanted(void *user, const char *linkage, const char *name)
{
	struct take *take = user;
	const char *of = linkage ? linkage : name;

	return pm_probe_pattern_matches(&take->pattern, of, PM_PROBE_EQUAL) ||
	       (take->pattern.is_glob &&
		pm_probe_pattern_matches(&take->pattern, of, PM_PROBE_GLOB));
}

static int inlined_set_place(struct pm_probe_inlined *inlined,
			     const struct pm_symbol_inlined *place)
{
	if (place->linkage)
		inlined->name = pm_probe_pretty(place->linkage);
	else
		inlined->name = strdup(place->name);
	if (place->call_file)
		inlined->file = strdup(place->call_file);
	else
		inlined->file = NULL;
	inlined->line = place->call_line;
	if (!inlined->name || (place->call_file && !inlined->file))
		return -ENOMEM;
	for (size_t i = 0; i < place->len; i++) {
		struct pm_probe_piece piece = { place->ranges[i].low,
						place->ranges[i].high };

		if (pm_vec_push(&inlined->pieces, piece) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int take_inlined_place(void *user, const struct pm_symbol_inlined *place)
{
	struct take *take = user;
	struct pm_probe_inlined inlined = { 0 };
	int ret;

	if (take->out->list.len >= PM_PROBE_INLINED_MAX)
		return -E2BIG;
	ret = inlined_set_place(&inlined, place);
	if (ret == 0)
		ret = pm_vec_push(&take->out->list, inlined);
	if (ret < 0)
		inlined_release(&inlined);
	return ret;
}

int pm_probe_find_inlined(struct pm_probe_inlined_list *out,
			  const struct pm_probe_binary *binary,
			  const struct pm_probe_context *context, const char *name,
			  struct pm_error *err)
{
	struct pm_symbol_options options = { .debug_dir = context->debug_dir,
					     .pid = binary->pid,
					     .path = binary->path };
	struct take take = { .out = out };
	size_t first = out->list.len;
	int ret = pm_probe_pattern_init(&take.pattern, name);

	if (ret == 0)
		ret = pm_symbols_find_inlined(binary->fd, &options, take.pattern.needle,
					      is_inlined_name_wanted, take_inlined_place,
					      &take, err);
	if (ret == -ENODATA)
		ret = 0;
	if (ret == -E2BIG)
		pm_error_set(err, ret, "\"%s\" was inlined at more than %d places", name,
			     PM_PROBE_INLINED_MAX);
	else if (ret == -ENOMEM)
		pm_error_set(err, ret, "no memory left for the functions");
	if (ret < 0)
		while (out->list.len > first)
			inlined_release(&out->list.data[--out->list.len]);
	pm_probe_pattern_release(&take.pattern);
	return ret;
}

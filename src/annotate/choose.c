/* SPDX-License-Identifier: MIT */
#include "annotate-internal.h"

#include <string.h>

enum {
	CANDIDATES = 4, /* for an ambiguous name, in a message */
	CANDIDATE_BYTES = 60,
};

static int compare_choices_by_weight(const void *a, const void *b)
{
	const struct pm_annotate_choice *x = a, *y = b;
	int order = pm_annotate_heavier(&x->self, &y->self);

	if (order == 0)
		order = pm_annotate_heavier(&x->total, &y->total);
	if (order != 0)
		return order;
	return PM_COMPARE(x->function, y->function);
}

/* Collects the functions of @set that are in the view, with their weights. */
static int weigh_choices(struct pm_annotate_choices *out, const struct pm_view *view,
			 const struct pm_function_set *set)
{
	PM_AUTO_FREE uint32_t *ids = calloc(set->len + 1, sizeof(*ids));
	PM_AUTO_FREE struct pm_annotate_lines *lines =
		calloc(set->len + 1, sizeof(*lines));
	size_t len = 0;
	int ret = 0;

	if (!ids || !lines)
		return -ENOMEM;
	for (size_t i = 0; i < view->profile->functions.len; i++)
		if (set->set[i])
			ids[len++] = (uint32_t)i;
	ret = pm_annotate_lines_init(lines, view, ids, len);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < len; i++) {
		struct pm_annotate_choice choice = { .function = ids[i],
						     .self = lines[i].self,
						     .total = lines[i].total };

		pm_weight_add(&choice.self, &lines[i].inlined);
		if (ret == 0 && choice.total.samples > 0)
			ret = pm_vec_push(&out->rows, choice);
		pm_annotate_lines_release(&lines[i]);
	}
	if (out->rows.len > 1)
		qsort(out->rows.data, out->rows.len, sizeof(*out->rows.data),
		      compare_choices_by_weight);
	return ret;
}

/* Returns 0 if all functions have the same name; otherwise reports the heaviest ones. */
static int check_choice_names(const struct pm_annotate_choices *choices,
			      const struct pm_profile *profile, const char *name,
			      struct pm_error *err)
{
	struct pm_str names = { 0 };
	const char *last = NULL;
	size_t found = 0;

	for (size_t i = 0; i < choices->rows.len; i++) {
		const char *its =
			profile->functions.data[choices->rows.data[i].function].name;

		/* Equal strings have the same address, and functions with equal names are
		 * mostly adjacent. */
		if (its == last)
			continue;
		last = its;
		if (found++ < CANDIDATES) {
			pm_str_separate(&names, ", ");
			pm_str_printf(&names, "%.*s", CANDIDATE_BYTES, its);
		}
	}
	if (found > 1) {
		pm_error_set(err, -ENOTUNIQ, "'%s' fits several functions", name);
		if (!names.failed)
			pm_error_fix(err, "one of: %s%s", names.data,
				     found > CANDIDATES ? ", ..." : "");
	}
	pm_str_release(&names);
	if (found > 1)
		return -ENOTUNIQ;
	return 0;
}

int pm_annotate_choose(struct pm_annotate_choices *out, const struct pm_view *view,
		       const char *name, struct pm_error *err)
{
	PM_CLEANUP(pm_function_set_release) struct pm_function_set set = { 0 };
	struct pm_annotate_choices choices = { 0 };
	int ret = pm_function_set_init(&set, view->profile, name, err);

	if (ret < 0)
		return ret;
	ret = weigh_choices(&choices, view, &set);
	if (ret == 0 && choices.rows.len == 0)
		ret = pm_error_set(err, -ENOENT, "no sample here has '%s' on its stack",
				   name);
	else if (ret == 0)
		ret = check_choice_names(&choices, view->profile, name, err);
	else
		pm_error_set(err, ret, "out of memory");
	if (ret < 0 && ret != -ENOTUNIQ)
		pm_annotate_choices_release(&choices);
	else
		*out = choices;
	return ret;
}

void pm_annotate_choices_release(struct pm_annotate_choices *choices)
{
	pm_vec_release(&choices->rows);
}

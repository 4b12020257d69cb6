/* SPDX-License-Identifier: MIT */
/* Finds pairs of runs, one of each side, that are adjacent in time: a disturbance of one
 * also affects the other. */
#include "compare-internal.h"

struct begun {
	uint64_t at_ns;
	uint32_t value; /* index on its side */
	bool new;
};

/* Runs of the base sort before runs of the new side that started at the same time, so
 * that these do not count as turns. */
static int compare_begun(const void *first, const void *second)
{
	const struct begun *a = first, *b = second;

	if (a->at_ns != b->at_ns)
		return PM_COMPARE(a->at_ns, b->at_ns);
	if (a->new != b->new)
		return a->new ? 1 : -1;
	return PM_COMPARE(a->value, b->value);
}

static void fill_begun(struct begun *to, const struct pm_compare_side *side, bool new)
{
	for (size_t i = 0; i < side->len; i++)
		to[i] = (struct begun){ side->begins[i], (uint32_t)i, new };
}

/* A run stays alone if its neighbours belong to its own side or were left out. */
int pm_compare_pairs_find(struct pm_compare_row *row)
{
	size_t len = row->base.len + row->new.len, single = len;
	PM_AUTO_FREE struct begun *begun = calloc(len + 1, sizeof(*begun));

	if (!begun)
		return -ENOMEM;
	fill_begun(begun, &row->base, false);
	fill_begun(begun + row->base.len, &row->new, true);
	qsort(begun, len, sizeof(*begun), compare_begun);
	for (size_t i = 0; i < len; i++) {
		const struct begun *before = single < len ? &begun[single] : NULL;
		struct pm_compare_pair pair;

		if (!before || before->new == begun[i].new) {
			single = i;
			continue;
		}
		pair.base = before->new ? begun[i].value : before->value;
		pair.new = before->new ? before->value : begun[i].value;
		if (pm_vec_push(&row->pairs, pair) < 0)
			return -ENOMEM;
		single = len;
	}
	return 0;
}

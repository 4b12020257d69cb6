/* SPDX-License-Identifier: MIT */
/* The two parsers of a line, side by side: what the fast one takes, both must see alike. */
#pragma once

#include "src/file/file-internal.h"

#include <string.h>

static inline bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static inline bool same_fields(const struct pm_file_sample *a,
			       const struct pm_file_sample *b)
{
	if (a->fields_len != b->fields_len)
		return false;
	for (size_t i = 0; i < a->fields_len; i++) {
		const struct pm_file_field *x = &a->fields[i], *y = &b->fields[i];

		if (x->kind != y->kind || !same_text(x->name, y->name) ||
		    (x->kind == PM_FILE_FIELD_TEXT ? !same_text(x->text, y->text)
						   : x->number != y->number))
			return false;
	}
	return true;
}

static inline bool same_counts(const struct pm_file_sample *a,
			       const struct pm_file_sample *b)
{
	if (a->counts_len != b->counts_len || a->branches_len != b->branches_len)
		return false;
	for (size_t i = 0; i < a->counts_len; i++)
		if (a->counts[i].event != b->counts[i].event ||
		    a->counts[i].count != b->counts[i].count)
			return false;
	for (size_t i = 0; i < a->branches_len; i++) {
		const struct pm_file_branch *x = &a->branches[i], *y = &b->branches[i];

		if (x->from != y->from || x->to != y->to || x->flags != y->flags ||
		    x->cycles != y->cycles)
			return false;
	}
	return true;
}

static inline bool same_symbol(const struct pm_file_symbol *a,
			       const struct pm_file_symbol *b)
{
	if (a->frame != b->frame || a->functions_len != b->functions_len)
		return false;
	for (size_t i = 0; i < a->functions_len; i++)
		if (!same_text(a->functions[i].name, b->functions[i].name) ||
		    !same_text(a->functions[i].file, b->functions[i].file) ||
		    a->functions[i].line != b->functions[i].line ||
		    a->functions[i].start != b->functions[i].start)
			return false;
	return true;
}

static inline bool same_record(const struct pm_file_parsed *a,
			       const struct pm_file_parsed *b)
{
	if (a->record.type != b->record.type)
		return false;
	if (a->record.type == PM_FILE_SAMPLE) {
		const struct pm_file_sample *x = &a->record.sample,
					    *y = &b->record.sample;

		return x->time == y->time && x->pid == y->pid && x->tid == y->tid &&
		       x->cpu == y->cpu && x->event == y->event &&
		       x->period == y->period && x->stack == y->stack &&
		       same_text(x->stop, y->stop) && same_fields(x, y) &&
		       same_counts(x, y);
	}
	if (a->record.type == PM_FILE_FRAME) {
		const struct pm_file_frame *x = &a->record.frame, *y = &b->record.frame;

		return x->id == y->id && x->module == y->module &&
		       x->address == y->address && same_text(x->how, y->how);
	}
	if (a->record.type == PM_FILE_STACK) {
		const struct pm_file_stack *x = &a->record.stack, *y = &b->record.stack;

		return x->id == y->id && x->parent == y->parent && x->frame == y->frame &&
		       a->run.len == b->run.len &&
		       memcmp(a->run.data, b->run.data,
			      a->run.len * sizeof(*a->run.data)) == 0;
	}
	if (a->record.type == PM_FILE_SYMBOL)
		return same_symbol(&a->record.symbol, &b->record.symbol);
	return false; /* no other type is for the fast one */
}

/* False when the fast parser takes @line and jansson sees something else. @fast, which may
 * be NULL, tells whether it took it. */
static inline bool parsers_agree(const char *line, size_t len, bool *fast)
{
	struct pm_file_parsed quick = { 0 }, slow = { 0 };
	/* Exactly as long, for a sanitizer to see a step beyond. */
	PM_AUTO_FREE char *copy = malloc(len > 0 ? len : 1);
	bool taken, agree = true, syntax;

	if (!copy)
		abort();
	if (len > 0)
		memcpy(copy, line, len);
	taken = pm_file_parse_fast(&quick, copy, len);
	if (taken)
		agree = pm_file_parse_json(&slow, line, len, &syntax, NULL) == 1 &&
			same_record(&quick, &slow);
	else if (len > 0 && memcmp(copy, line, len) != 0)
		agree = false; /* refused, but changed the line */
	if (fast)
		*fast = taken;
	pm_file_parsed_release(&quick);
	pm_file_parsed_release(&slow);
	return agree;
}

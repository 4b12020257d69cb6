/* SPDX-License-Identifier: MIT */
/* Maps instructions to source lines, and finds the targets of jumps and calls. */
#include "annotate-internal.h"

#include "pm/symbol.h"

#include <string.h>

struct placing {
	struct pm_annotate_code *code;
	const char *name;
	uint32_t part; /* part of the next instruction */
};

uint32_t pm_annotate_find_insn(const struct pm_annotate_code *code, uint64_t address)
{
	size_t low = 0, high = code->insns.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct pm_annotate_insn *insn = &code->insns.data[mid];

		if (address < insn->address)
			high = mid;
		else if (address - insn->address >= insn->size)
			low = mid + 1;
		else
			return (uint32_t)mid;
	}
	return PM_PROFILE_NONE;
}

/* ---- lines ------------------------------------------------------------------------------- */

static int keep_place_text(struct pm_annotate_code *code, const char *text,
			   const char **out)
{
	if (!text)
		return 0;
	*out = pm_annotate_texts_add(code->texts, text);
	if (!*out)
		return -ENOMEM;
	return 0;
}

/* Returns the level of the requested function in the chain, or @len if it is not
 * there. */
static size_t find_placed_level(const struct placing *placing,
				const struct pm_symbol_function *functions, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (functions[i].name && strcmp(functions[i].name, placing->name) == 0)
			return i;
	return len;
}

static int place_insn(void *user, size_t index,
		      const struct pm_symbol_function *functions, size_t len)
{
	struct placing *placing = user;
	struct pm_annotate_code *code = placing->code;
	struct pm_annotate_insn *insn = &code->insns.data[index];
	size_t level = find_placed_level(placing, functions, len);
	int ret;

	while (index >= code->parts.data[placing->part].first +
				code->parts.data[placing->part].len)
		placing->part++;
	if (level == len) {
		insn->foreign = code->parts.data[placing->part].is_container;
		/* A part of the function under another name, such as f.cold. */
		level = 0;
		if (!insn->foreign && len > 0)
			level = len - 1;
	}
	if (len == 0)
		return 0;
	ret = keep_place_text(code, functions[level].file, &insn->file);
	insn->line = insn->file ? functions[level].line : 0;
	code->has_lines |= insn->line > 0;
	if (ret < 0 || level == 0)
		return ret;
	ret = keep_place_text(code, functions[0].name ? functions[0].name : "[unknown]",
			      &insn->inlined);
	if (ret == 0)
		ret = keep_place_text(code, functions[0].file, &insn->inlined_file);
	if (insn->inlined_file)
		insn->inlined_line = functions[0].line;
	else
		insn->inlined_line = 0;
	return ret;
}

static int place_all_insns(struct pm_annotate_code *code, int fd, const char *name,
			   const struct pm_symbol_options *options)
{
	struct placing placing = { .code = code, .name = name };
	PM_AUTO_FREE uint64_t *addresses =
		calloc(code->insns.len + 1, sizeof(*addresses));

	if (!addresses)
		return -ENOMEM;
	for (size_t i = 0; i < code->insns.len; i++)
		addresses[i] = code->insns.data[i].address;
	return pm_symbols_resolve(fd, addresses, code->insns.len, options, place_insn,
				  &placing, NULL);
}

/* ---- targets of jumps and calls ------------------------------------------------------------ */

static void link_inner_jumps(struct pm_annotate_code *code)
{
	for (size_t i = 0; i < code->parts.len; i++) {
		const struct pm_annotate_part *part = &code->parts.data[i];

		for (uint32_t k = part->first; k < part->first + part->len; k++) {
			struct pm_annotate_insn *insn = &code->insns.data[k];
			uint32_t to = PM_PROFILE_NONE;

			if (insn->has_target)
				to = pm_annotate_find_insn(code, insn->target);
			/* A target in the middle of an instruction cannot be shown. */
			if (to != PM_PROFILE_NONE && to >= part->first &&
			    to < part->first + part->len &&
			    code->insns.data[to].address == insn->target)
				insn->to = to;
		}
	}
}

struct target {
	uint64_t address;
	const char *name;
};

struct naming {
	struct pm_annotate_code *code;
	struct target *targets;
};

static int compare_jump_targets(const void *a, const void *b)
{
	const struct target *x = a, *y = b;

	return PM_COMPARE(x->address, y->address);
}

static int name_jump_target(void *user, size_t index,
			    const struct pm_symbol_function *functions, size_t len)
{
	struct naming *naming = user;

	if (len == 0)
		return 0;
	return keep_place_text(naming->code, functions[len - 1].name,
			       &naming->targets[index].name);
}

static bool insn_leads_out(const struct pm_annotate_insn *insn)
{
	return insn->has_target && insn->to == PM_PROFILE_NONE;
}

static int name_jump_targets(struct pm_annotate_code *code, int fd,
			     const struct pm_symbol_options *options)
{
	size_t all = code->insns.len, len = 0, kept = 0;
	PM_AUTO_FREE struct target *targets = calloc(all + 1, sizeof(*targets));
	PM_AUTO_FREE uint64_t *addresses = calloc(all + 1, sizeof(*addresses));
	struct naming naming = { .code = code, .targets = targets };
	int ret;

	if (!targets || !addresses)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++)
		if (insn_leads_out(&code->insns.data[i]))
			targets[len++].address = code->insns.data[i].target;
	qsort(targets, len, sizeof(*targets), compare_jump_targets);
	for (size_t i = 0; i < len; i++)
		if (kept == 0 || targets[kept - 1].address != targets[i].address)
			targets[kept++] = targets[i];
	for (size_t i = 0; i < kept; i++)
		addresses[i] = targets[i].address;
	ret = pm_symbols_resolve(fd, addresses, kept, options, name_jump_target, &naming,
				 NULL);
	for (size_t i = 0; ret == 0 && i < all; i++) {
		struct target key = { .address = code->insns.data[i].target };
		const struct target *found = NULL;

		if (insn_leads_out(&code->insns.data[i]))
			found = bsearch(&key, targets, kept, sizeof(key),
					compare_jump_targets);
		if (found)
			code->insns.data[i].target_name = found->name;
	}
	return ret;
}

int pm_annotate_place_insns(struct pm_annotate_code *code,
			    const struct pm_annotate_binary *binary, const char *name)
{
	struct pm_symbol_options options = { .inlines = true,
					     .lines = true,
					     .debug_dir = binary->debug_dir };
	int ret = place_all_insns(code, binary->fd, name, &options);

	link_inner_jumps(code);
	options.inlines = options.lines = false;
	if (ret == 0)
		ret = name_jump_targets(code, binary->fd, &options);
	return ret;
}

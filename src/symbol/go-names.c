/* SPDX-License-Identifier: MIT */
/*
 * Finds names, lines and inlined calls in the table that each Go program has for its own
 * tracebacks (pm/go.h). It supplies names if symbols and debug information were stripped,
 * as in most Go programs that are shipped.
 */
#include "symbol-parts.h"

#include <string.h>

#include "pm/go.h"

enum {
	STEPS_PER_ADDRESS =
		1 << 12, /* total for all addresses; a few hundred are usual */
	STEPS_FREE = 1 << 22,
};

static const uint8_t *image_bytes(void *user, uint64_t offset, size_t len)
{
	const struct pm_elf_image *image = user;

	if (offset <= image->file_len && len <= image->file_len - offset)
		return (const uint8_t *)image->map + offset;
	return NULL;
}

/* Whether @symbol's name is @name followed by the linker's suffix for a calling
 * convention. */
static bool has_abi_mark(const char *symbol, const char *name)
{
	size_t len = strlen(name);

	return strncmp(symbol, name, len) == 0 && strcmp(symbol + len, ".abi0") == 0;
}

/*
 * Whether the table's name is to be used although there is a symbol. A symbol without a
 * size covers all code up to the next symbol; the table has the real bounds. Also, a
 * stripped program should show the same names as an unstripped one.
 */
static bool is_go_name_better(const struct pm_elf_symbol *symbol,
			      const struct pm_go_function *function, const char *name)
{
	return name &&
	       (!symbol->name ||
		(symbol->end <= symbol->start && symbol->start != function->entry) ||
		has_abi_mark(symbol->name, name));
}

static int resolve_go_address(const struct pm_go_table *table,
			      const struct pm_go_function *function, uint64_t address,
			      uint32_t *steps_left, struct pm_texts *texts,
			      struct pm_dwarf_answers *answers,
			      struct pm_dwarf_answer *answer)
{
	struct pm_go_frame frames[PM_GO_INLINE_MAX];
	size_t len = pm_go_frames(table, function, address, steps_left, frames);

	answer->first = answers->functions.len;
	answer->entry = function->entry;
	for (size_t i = 0; i < len; i++) {
		const struct pm_go_frame *frame = &frames[i];
		struct pm_symbol_function at = { .line = frame->file ? frame->line : 0 };

		if (frame->name)
			at.name = pm_texts_add(texts, frame->name,
					       strnlen(frame->name, PM_SYMBOL_TEXT_MAX));
		if (frame->file)
			at.file = pm_texts_add(texts, frame->file,
					       strnlen(frame->file, PM_SYMBOL_TEXT_MAX));
		if (pm_vec_push(&answers->functions, at) < 0)
			return -ENOMEM;
		answer->len++;
	}
	return 0;
}

int pm_go_resolve(const struct pm_elf_image *image, const struct pm_wanted *wanted,
		  struct pm_elf_symbol *symbols, struct pm_texts *texts,
		  struct pm_dwarf_answers *answers)
{
	const struct pm_go_file file = { image_bytes, (void *)(uintptr_t)image };
	uint64_t steps = STEPS_FREE + STEPS_PER_ADDRESS * (uint64_t)wanted->len;
	uint32_t steps_left = (uint32_t)PM_MIN(steps, UINT32_MAX);
	struct pm_go_table table;

	if (pm_go_open(&table, &file) < 0)
		return 0;
	for (size_t i = pm_wanted_from(wanted, table.low);
	     i < wanted->len && wanted->addresses[i] < table.high; i++) {
		struct pm_go_function function;
		const char *name;

		if (pm_go_find(&table, wanted->addresses[i], &function) < 0)
			continue;
		name = pm_go_name(&table, &function);
		if (is_go_name_better(&symbols[i], &function, name))
			symbols[i] = (struct pm_elf_symbol){
				.name = name,
				.start = function.entry,
				.end = function.end,
			};
		if (answers && answers->of[i].len == 0 &&
		    resolve_go_address(&table, &function, wanted->addresses[i],
				       &steps_left, texts, answers, &answers->of[i]) < 0)
			return -ENOMEM;
	}
	if (answers)
		answers->limited |= steps_left == 0;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * What --annotate reads. The first byte chooses: bytes as code of three kinds of machines, as
 * an ELF file whose functions are asked for, or as a recording whose lines are summed up.
 */
#include "pm/annotate.h"
#include "pm/symbol.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ADDRESSES = 512,
	STEP = 13,
	FUNCTIONS_MAX = 64,
	BASE = 0x1000,
};

/* ---- code --------------------------------------------------------------------------------- */

/* Every byte is in exactly one instruction. */
static void disassemble(uint16_t machine, const uint8_t *data, size_t size)
{
	const struct pm_annotate_machine what = { machine, machine != EM_386 };
	struct pm_annotate_code code = { 0 };
	size_t at = 0;

	if (size > 1 << 16)
		size = 1 << 16;
	if (pm_annotate_disassemble(&code, &what, data, size, BASE) < 0)
		abort();
	for (size_t i = 0; i < code.insns.len; i++) {
		const struct pm_annotate_insn *insn = &code.insns.data[i];

		if (insn->address != BASE + at || insn->size == 0 ||
		    insn->size > sizeof(insn->bytes) || insn->size > size - at ||
		    memcmp(insn->bytes, data + at, insn->size) != 0 ||
		    insn->mnemonic[0] == '\0' || strlen(insn->operands) > 4096)
			abort();
		at += insn->size;
	}
	if (at != size)
		abort();
	pm_annotate_code_release(&code);
}

/* ---- files -------------------------------------------------------------------------------- */

struct seen {
	uint64_t start;
	size_t functions;
	unsigned sum; /* of all bytes, which must be there to be read */
};

static int take(void *user, const struct pm_symbol_code *code)
{
	struct seen *seen = user;

	if (code->end <= code->start || code->len == 0 ||
	    code->len > code->end - code->start ||
	    (seen->functions > 0 && code->start < seen->start))
		abort();
	for (size_t i = 0; i < code->len; i++)
		seen->sum += code->bytes[i];
	if (code->name)
		seen->sum += (unsigned)strlen(code->name);
	seen->start = code->start;
	seen->functions++;
	return 0;
}

static void read_elf(const uint8_t *data, size_t size)
{
	const struct pm_symbol_options options = { .debug_dir = "/nonexistent" };
	PM_AUTO_CLOSE int fd = memfd_create("fuzz", MFD_CLOEXEC);
	uint64_t addresses[ADDRESSES + 1];
	struct seen seen = { 0 };

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return;
	for (size_t i = 0; i < ADDRESSES; i++)
		addresses[i] = i * STEP;
	addresses[ADDRESSES] = UINT64_MAX;
	pm_symbols_code(fd, addresses, ADDRESSES + 1, &options, take, &seen, NULL);
}

/* ---- recordings --------------------------------------------------------------------------- */

static void check_lines(const struct pm_annotate_lines *lines, const struct pm_view *view)
{
	struct pm_weight self = { 0 }, inlined = { 0 };

	for (size_t i = 0; i < lines->lines.len; i++) {
		const struct pm_annotate_line *line = &lines->lines.data[i];
		uint64_t parts = 0;

		pm_weight_add(&self, &line->self);
		pm_weight_add(&inlined, &line->inlined);
		for (uint32_t k = 0; k < line->inlineds; k++)
			parts += lines->inlineds.data[line->first_inlined + k]
					 .self.samples;
		if (parts != line->inlined.samples ||
		    line->total.samples < line->self.samples + line->inlined.samples ||
		    line->total.samples > lines->total.samples ||
		    (line->line == 0) != (line->file == PM_PROFILE_NONE) ||
		    (line->file != PM_PROFILE_NONE && line->file >= lines->files.len))
			abort();
	}
	if (self.samples != lines->self.samples ||
	    inlined.samples != lines->inlined.samples ||
	    lines->total.samples > view->total.samples)
		abort();
	for (uint32_t i = 0; i < lines->files.len; i++) {
		struct pm_annotate_regions regions;
		uint32_t last = 0;

		if (pm_annotate_regions_init(&regions, lines, i, 0.5, 3) < 0)
			continue;
		for (size_t k = 0; k < regions.regions.len; k++) {
			const struct pm_annotate_region *region =
				&regions.regions.data[k];

			if (region->first > region->last || region->first <= last)
				abort();
			last = region->last;
		}
		pm_annotate_regions_release(&regions);
	}
}

static void sum_up(const struct pm_profile *profile, uint32_t event)
{
	uint32_t functions[FUNCTIONS_MAX];
	struct pm_annotate_lines lines[FUNCTIONS_MAX];
	struct pm_view *view;
	size_t len = profile->functions.len;

	if (pm_view_new(&view, profile, event, NULL, NULL) < 0)
		return;
	if (len > FUNCTIONS_MAX)
		len = FUNCTIONS_MAX;
	for (size_t i = 0; i < len; i++)
		functions[i] = (uint32_t)i;
	if (pm_annotate_lines_init(lines, view, functions, len) == 0)
		for (size_t i = 0; i < len; i++) {
			check_lines(&lines[i], view);
			pm_annotate_lines_release(&lines[i]);
		}
	pm_view_free(view);
}

static void read_recording(const uint8_t *data, size_t size)
{
	struct pm_file_reader *reader;
	struct pm_profile *profile;

	if (pm_file_reader_open_memory(&reader, data, size, NULL) < 0)
		return;
	if (pm_profile_load(&profile, reader, NULL, NULL) == 0) {
		pm_annotate_recorded_at(profile);
		for (uint32_t i = 0; i < profile->events.len && i < 4; i++)
			sum_up(profile, i);
		pm_profile_free(profile);
	}
	pm_file_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = { EM_X86_64, EM_386, EM_AARCH64 };

	if (size < 2)
		return 0;
	switch (data[0] % 5) {
	case 3:
		read_elf(data + 1, size - 1);
		break;
	case 4:
		read_recording(data + 1, size - 1);
		break;
	default:
		disassemble(machines[data[0] % 5], data + 1, size - 1);
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Go's function table: every layout, what it says, and what it may not do to its reader. */
#include "pm/go.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "go-image.h"
#include "pm/symbol.h"
#include "pm/unwind.h"

static const struct go_image_options layouts[] = {
	{ .version = GO_IMAGE_1_15 },
	{ .version = GO_IMAGE_1_17 },
	{ .version = GO_IMAGE_1_19 },
	{ .version = GO_IMAGE_1_25 },
	{ .version = GO_IMAGE_1_26 },
	{ .version = GO_IMAGE_1_15, .is_32 = true },
	{ .version = GO_IMAGE_1_17, .is_32 = true },
	{ .version = GO_IMAGE_1_19, .is_32 = true },
	{ .version = GO_IMAGE_1_26, .is_32 = true },
	{ .version = GO_IMAGE_1_19, .is_pie = true },
	{ .version = GO_IMAGE_1_25, .is_pie = true },
	{ .version = GO_IMAGE_1_26, .is_pie = true },
	{ .version = GO_IMAGE_1_17, .is_a64 = true },
	{ .version = GO_IMAGE_1_25, .is_a64 = true },
	{ .version = GO_IMAGE_1_26, .is_a64 = true, .is_pie = true },
};

static const uint8_t *image_bytes(void *user, uint64_t offset, size_t len)
{
	struct go_image *image = user;

	return offset <= sizeof(image->bytes) && len <= sizeof(image->bytes) - offset
		       ? image->bytes + offset
		       : NULL;
}

static int open_table(struct go_image *image, struct pm_go_table *table)
{
	const struct pm_go_file file = { image_bytes, image };

	return pm_go_open(table, &file);
}

static void finds_functions_of_every_layout(void **state)
{
	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(layouts); i++) {
		static struct go_image image;
		struct pm_go_function function;
		struct pm_go_table table;
		int32_t bytes = 0;

		go_image_make(&image, &layouts[i]);
		assert_int_equal(open_table(&image, &table), 0);
		assert_int_equal(table.low, GO_IMAGE_CODE);
		assert_int_equal(table.high, GO_IMAGE_CODE + 0x80);
		assert_int_equal(pm_go_find(&table, GO_IMAGE_CODE - 1, &function),
				 -ENOENT);
		assert_int_equal(pm_go_find(&table, table.high, &function), -ENOENT);
		assert_int_equal(pm_go_find(&table, GO_IMAGE_CODE + 0x3f, &function), 0);
		assert_string_equal(pm_go_name(&table, &function), "main.outer");
		assert_int_equal(function.entry, GO_IMAGE_CODE);
		assert_int_equal(function.end, GO_IMAGE_CODE + 0x40);
		assert_int_equal(pm_go_stack_bytes(&table, &function, GO_IMAGE_CODE + 3,
						   NULL, &bytes),
				 0);
		assert_int_equal(bytes, 0);
		assert_int_equal(pm_go_stack_bytes(&table, &function, GO_IMAGE_CODE + 4,
						   NULL, &bytes),
				 0);
		assert_int_equal(bytes, 24);
		assert_int_equal(pm_go_find(&table, GO_IMAGE_CODE + 0x7f, &function), 0);
		assert_string_equal(pm_go_name(&table, &function), "runtime.goexit");
		assert_int_equal(function.flags, layouts[i].version == GO_IMAGE_1_15
							 ? 0
							 : PM_GO_FLAG_TOP_FRAME);
	}
}

/* A frame that the runtime has made up returns to the first byte of systemstack_switch. */
static void finds_the_made_up_caller(void **state)
{
	static struct go_image image;
	struct pm_go_function function;
	struct pm_go_table table;

	(void)state;
	go_image_make(&image, &layouts[3]);
	assert_int_equal(open_table(&image, &table), 0);
	assert_int_equal(pm_go_find(&table, GO_IMAGE_CODE + 0x5f, &function), 0);
	assert_string_equal(pm_go_name(&table, &function), "runtime.systemstack_switch");
	assert_int_equal(pm_go_find(&table, GO_IMAGE_CODE + 0x5e, &function), 0);
	assert_string_equal(pm_go_name(&table, &function), "runtime.systemstack");
}

/* ---- symbols ------------------------------------------------------------------------------ */

struct answer {
	struct pm_symbol_function functions[4];
	size_t len;
};

static int keep(void *user, size_t index, const struct pm_symbol_function *functions,
		size_t len)
{
	struct answer *answers = user;

	assert_true(len <= PM_ARRAY_LEN(answers->functions));
	for (size_t i = 0; i < len; i++) {
		answers[index].functions[i] = functions[i];
		answers[index].functions[i].name = strdup(functions[i].name);
		answers[index].functions[i].file = strdup(functions[i].file);
	}
	answers[index].len = len;
	return 0;
}

static void assert_function(const struct pm_symbol_function *function, const char *name,
			    const char *file, uint32_t line)
{
	assert_string_equal(function->name, name);
	assert_string_equal(function->file, file);
	assert_int_equal(function->line, line);
	free((void *)(uintptr_t)function->name);
	free((void *)(uintptr_t)function->file);
}

static void names_lines_and_inlined_calls(void **state)
{
	const uint64_t addresses[] = { GO_IMAGE_CODE + 8, GO_IMAGE_CODE + 0x10,
				       GO_IMAGE_CODE + 0x20, GO_IMAGE_CODE + 0x71 };
	const struct pm_symbol_options options = { .inlines = true,
						   .lines = true,
						   .debug_dir = "/nonexistent" };

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(layouts); i++) {
		bool is_old = layouts[i].version == GO_IMAGE_1_15;
		static struct go_image image;
		struct answer answers[4] = { 0 };

		go_image_make(&image, &layouts[i]);
		assert_int_equal(pm_symbols_resolve_memory(image.bytes,
							   sizeof(image.bytes), addresses,
							   PM_ARRAY_LEN(addresses),
							   &options, keep, answers, NULL),
				 0);
		assert_int_equal(answers[0].len, 1);
		assert_function(&answers[0].functions[0], "main.outer", "/src/main.go",
				10);
		assert_int_equal(answers[1].len, is_old ? 1 : 2);
		assert_function(&answers[1].functions[0],
				is_old ? "main.outer" : "main.inlined", "/src/library.go",
				100);
		if (!is_old)
			assert_function(&answers[1].functions[1], "main.outer",
					"/src/main.go", 10);
		assert_function(&answers[2].functions[0], "main.outer", "/src/main.go",
				12);
		assert_function(&answers[3].functions[0], "runtime.goexit",
				"/src/main.go", 7);
	}
}

/* ---- unwinding ---------------------------------------------------------------------------- */

struct walk {
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	size_t len;
	enum pm_unw_stop stop;
};

/* From @pc of @image, with @stack of words as its whole stack. */
static void walk_from(struct walk *walk, const struct go_image *image, uint64_t pc,
		      const uint64_t *words, size_t len)
{
	enum {
		STACK = 0x7f000000
	};
	bool is_32 = image->options.is_32;
	enum pm_unw_arch arch = is_32                   ? PM_UNW_I386
				: image->options.is_a64 ? PM_UNW_AARCH64
							: PM_UNW_X86_64;
	static const uint8_t sps[PM_UNW_ARCH_COUNT] = { PM_UNW_X86_64_RSP, 4, 31 };
	static const uint8_t pcs[PM_UNW_ARCH_COUNT] = { PM_UNW_X86_64_RIP, 8, 32 };
	struct pm_unwinder *unwinder = pm_unwinder_new();
	struct pm_unw_module *module = NULL;
	struct pm_unw_map map = { .start = GO_IMAGE_CODE, .end = GO_IMAGE_TABLE };
	struct pm_unw_space space = { .maps = &map, .len = 1 };
	struct pm_unw_regs regs = { .arch = arch };
	uint8_t bytes[256] = { 0 };
	struct pm_unw_stack stack = { STACK, bytes, sizeof(bytes) };

	assert_non_null(unwinder);
	assert_int_equal(pm_unw_module_from_memory(&module, image->bytes,
						   sizeof(image->bytes), NULL),
			 0);
	map.module = module;
	for (size_t i = 0; i < len; i++)
		memcpy(bytes + i * (is_32 ? 4 : 8), &words[i], is_32 ? 4 : 8);
	regs.value[sps[arch]] = STACK;
	regs.value[pcs[arch]] = pc;
	regs.known = (uint64_t)1 << sps[arch] | (uint64_t)1 << pcs[arch];
	/* The link register is worth something before a function has saved it. */
	regs.value[30] = GO_IMAGE_CODE + (arch == PM_UNW_AARCH64 ? 0x74 : 0x71);
	if (arch == PM_UNW_AARCH64)
		regs.known |= (uint64_t)1 << 30;
	walk->len = pm_unwind(unwinder, &space, &regs, &stack, walk->frames, &walk->stop);
	pm_unw_module_free(module);
	pm_unwinder_free(unwinder);
}

static void unwinds_by_frame_sizes(void **state)
{
	/* outer's 24 bytes, its return into itself, the same, its return to goexit; aarch64 has
	 * the return addresses at the bottom of the frames. */
	const uint64_t x86_64[] = { 0, 0, 0, GO_IMAGE_CODE + 0x20,
				    0, 0, 0, GO_IMAGE_CODE + 0x71 };
	const uint64_t i386[] = { 0, 0, 0, 0, 0, 0, GO_IMAGE_CODE + 0x20,
				  0, 0, 0, 0, 0, 0, GO_IMAGE_CODE + 0x71 };
	const uint64_t a64[] = { GO_IMAGE_CODE + 0x20, 0, 0, GO_IMAGE_CODE + 0x74, 0, 0 };
	static struct walk walk;

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(layouts); i++) {
		static struct go_image image;

		go_image_make(&image, &layouts[i]);
		if (layouts[i].is_32)
			walk_from(&walk, &image, GO_IMAGE_CODE + 4, i386,
				  PM_ARRAY_LEN(i386));
		else if (layouts[i].is_a64)
			walk_from(&walk, &image, GO_IMAGE_CODE + 4, a64,
				  PM_ARRAY_LEN(a64));
		else
			walk_from(&walk, &image, GO_IMAGE_CODE + 4, x86_64,
				  PM_ARRAY_LEN(x86_64));
		assert_int_equal(walk.stop, PM_UNW_STOP_ROOT);
		assert_int_equal(walk.len, 3);
		assert_int_equal(walk.frames[1].pc, GO_IMAGE_CODE + 0x20);
		assert_int_equal(walk.frames[1].how, PM_UNW_HOW_GO);
		assert_int_equal(walk.frames[2].pc,
				 GO_IMAGE_CODE + (layouts[i].is_a64 ? 0x74 : 0x71));
		assert_int_equal(walk.frames[2].how, PM_UNW_HOW_GO);
	}
}

/* At the function's entry nothing was pushed but, by a call of x86, the return address. */
static void unwinds_in_prologues(void **state)
{
	static struct walk walk;

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(layouts); i++) {
		const uint64_t words[] = { GO_IMAGE_CODE +
					   (layouts[i].is_a64 ? 0x74 : 0x71) };
		static struct go_image image;

		go_image_make(&image, &layouts[i]);
		walk_from(&walk, &image, GO_IMAGE_CODE, words, PM_ARRAY_LEN(words));
		assert_int_equal(walk.stop, PM_UNW_STOP_ROOT);
		assert_int_equal(walk.len, 2);
		assert_int_equal(walk.frames[1].pc, words[0]);
	}
}

/* What is on the system's stack says nothing of the goroutine that has called. */
static void ends_where_stacks_are_switched(void **state)
{
	const uint64_t x86_64[] = { 0, 0, 0, GO_IMAGE_CODE + 0x45, GO_IMAGE_CODE + 0x71 };
	const uint64_t a64[] = { GO_IMAGE_CODE + 0x48, 0, 0, GO_IMAGE_CODE + 0x74 };
	static struct go_image image;
	static struct walk walk;

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(layouts); i++) {
		bool is_a64 = layouts[i].is_a64;

		if (layouts[i].is_32)
			continue;
		go_image_make(&image, &layouts[i]);
		walk_from(&walk, &image, GO_IMAGE_CODE + 4, is_a64 ? a64 : x86_64,
			  is_a64 ? PM_ARRAY_LEN(a64) : PM_ARRAY_LEN(x86_64));
		assert_int_equal(walk.stop, PM_UNW_STOP_OTHER_STACK);
		assert_int_equal(walk.len, 2);
		/* Before the switch it is a function like others. */
		walk_from(&walk, &image, GO_IMAGE_CODE + 0x40,
			  is_a64 ? a64 + 3 : x86_64 + 4, 1);
		assert_int_equal(walk.stop, PM_UNW_STOP_ROOT);
		assert_int_equal(walk.len, 2);
	}
}

/* ---- hostile tables ----------------------------------------------------------------------- */

/* Each byte of headers and tables wrong once: everything ends, nothing leaves the bytes. */
enum {
	RELOCS = 1 << 18,
	RELOCS_AT = 0x1000,
	HEADER_AT = 0x800,
	CANDIDATES = 16,
	READS_MAX = (1 << 21) + 100000,
};

struct counted {
	uint8_t *bytes;
	size_t len;
	uint64_t reads;
};

static const uint8_t *counted_bytes(void *user, uint64_t offset, size_t len)
{
	struct counted *file = user;

	file->reads++;
	return offset <= file->len && len <= file->len - offset ? file->bytes + offset
								: NULL;
}

/* Many relocations point at the table, and none belongs to module data. */
static void reads_relocations_a_few_times(void **state)
{
	const Elf64_Ehdr ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
					       ELFCLASS64, ELFDATA2LSB },
				  .e_machine = EM_X86_64,
				  .e_phoff = sizeof(ehdr),
				  .e_phentsize = sizeof(Elf64_Phdr),
				  .e_phnum = 2 };
	const uint64_t words[] = { 4, 1, 0, 0x100, 0x200, 0x300, 0x400, 0x500 };
	const uint32_t magic = 0xfffffff1;
	const Elf64_Dyn dynamic[] = {
		{ .d_tag = DT_RELA, .d_un.d_ptr = RELOCS_AT },
		{ .d_tag = DT_RELASZ, .d_un.d_val = RELOCS * sizeof(Elf64_Rela) },
	};
	struct counted image = { .len = RELOCS_AT + RELOCS * sizeof(Elf64_Rela) };
	const Elf64_Phdr phdrs[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = image.len },
		{ .p_type = PT_DYNAMIC, .p_offset = 0x400, .p_filesz = sizeof(dynamic) },
	};
	const struct pm_go_file file = { counted_bytes, &image };
	struct pm_go_table table;

	(void)state;
	image.bytes = calloc(1, image.len);
	assert_non_null(image.bytes);
	memcpy(image.bytes, &ehdr, sizeof(ehdr));
	memcpy(image.bytes + sizeof(ehdr), phdrs, sizeof(phdrs));
	memcpy(image.bytes + 0x400, dynamic, sizeof(dynamic));
	memcpy(image.bytes + HEADER_AT, &magic, sizeof(magic));
	image.bytes[HEADER_AT + 6] = 1;
	image.bytes[HEADER_AT + 7] = 8;
	memcpy(image.bytes + HEADER_AT + 8, words, sizeof(words));
	for (size_t i = 0; i < RELOCS; i++) {
		const Elf64_Rela rela = { .r_offset = 0x10000000 + i * 8,
					  .r_info = R_X86_64_RELATIVE,
					  .r_addend = i < CANDIDATES ? HEADER_AT : 1 };

		memcpy(image.bytes + RELOCS_AT + i * sizeof(rela), &rela, sizeof(rela));
	}
	assert_int_equal(pm_go_open(&table, &file), -ENOENT);
	assert_true(image.reads > RELOCS);
	assert_true(image.reads < READS_MAX);
	free(image.bytes);
}

static void survives_any_wrong_byte(void **state)
{
	static struct go_image image;
	struct pm_go_frame frames[PM_GO_INLINE_MAX];
	size_t opened = 0;

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(layouts); i++) {
		go_image_make(&image, &layouts[i]);
		for (uint64_t at = GO_IMAGE_TABLE; at < GO_IMAGE_TABLE + 0x900; at++) {
			uint8_t *byte = &image.bytes[at - GO_IMAGE_BASE];
			struct pm_go_function function;
			struct pm_go_table table;
			uint32_t work = 100000;

			*byte ^= 0xff;
			if (open_table(&image, &table) == 0) {
				opened++;
				for (uint64_t pc = GO_IMAGE_CODE;
				     pc < GO_IMAGE_CODE + 0x90; pc += 5)
					if (pm_go_find(&table, pc, &function) == 0)
						assert_in_range(
							pm_go_frames(&table, &function,
								     pc, &work, frames),
							1, PM_GO_INLINE_MAX);
			}
			*byte ^= 0xff;
		}
	}
	assert_true(opened > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_functions_of_every_layout),
		cmocka_unit_test(finds_the_made_up_caller),
		cmocka_unit_test(names_lines_and_inlined_calls),
		cmocka_unit_test(unwinds_by_frame_sizes),
		cmocka_unit_test(unwinds_in_prologues),
		cmocka_unit_test(ends_where_stacks_are_switched),
		cmocka_unit_test(reads_relocations_a_few_times),
		cmocka_unit_test(survives_any_wrong_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

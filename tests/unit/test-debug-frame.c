/* SPDX-License-Identifier: MIT */
/* .debug_frame that is looked for only when it is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unwind/unwind-parts.h"

#include <dwarf.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>

enum {
	CODE = 0x1000, /* svma of the code, which has CFI from here … */
	CODE_LEN = 0x100, /* … for so many bytes */
	LOAD_LEN = 0x1000,
};

/* DWARF 5 §6.4.1 with addresses of 8 bytes: a CIE, and an FDE of it. */
static const struct __attribute__((packed)) frame {
	uint32_t cie_length, cie_id;
	uint8_t cie[12];
	uint32_t fde_length, fde_cie;
	uint64_t start, len;
} frame = {
	.cie_length = 16,
	.cie_id = UINT32_MAX,
	/* version, augmentation, alignments, return address; CFA = rsp + 8, rip at -8 */
	.cie = { 3, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1 },
	.fde_length = 20,
	.start = CODE,
	.len = CODE_LEN,
};

static const struct pm_unw_part_load load = { 0, 0, CODE + LOAD_LEN, true };

static struct pm_unw_module *bare_module(void)
{
	const struct pm_unw_parts parts = { .loads = &load, .loads_len = 1 };
	struct pm_unw_module *module;

	assert_int_equal(pm_unw_module_from_parts(&module, &parts, NULL), 0);
	return module;
}

/* A debug file with that section, called @name. */
static int debug_file(uint16_t machine, const char *name)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Shdr sections[3];
		char names[16];
		uint8_t frame[sizeof(frame)];
	} elf = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					 EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = machine,
			    .e_version = EV_CURRENT,
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_shoff = sizeof(Elf64_Ehdr),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3,
			    .e_shstrndx = 1 },
	};
	int fd = memfd_create("debug", MFD_CLOEXEC);

	elf.sections[1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					.sh_offset = offsetof(__typeof__(elf), names),
					.sh_size = sizeof(elf.names) };
	elf.sections[2] = (Elf64_Shdr){ .sh_name = 1,
					.sh_type = SHT_PROGBITS,
					.sh_offset = offsetof(__typeof__(elf), frame),
					.sh_size = sizeof(frame) };
	strncpy(elf.names + 1, name, sizeof(elf.names) - 2);
	memcpy(elf.frame, &frame, sizeof(frame));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &elf, sizeof(elf)), sizeof(elf));
	return fd;
}

static int asked; /* how often */

/* pm_unw_open_debug_fn; @user is a section's name, or NULL for no file. */
static int open_debug(void *user)
{
	asked++;
	return user ? debug_file(EM_X86_64, user) : -ENOENT;
}

static void asked_for_once_at_the_first_gap(void **state)
{
	static char name[] = ".debug_frame";
	struct pm_unw_module *module = bare_module();
	struct pm_unw_fde fde;

	(void)state;
	asked = 0;
	pm_unw_module_on_gap(module, open_debug, name);
	assert_int_equal(asked, 0);
	assert_int_equal(pm_unw_fde_find(module, CODE + 8, &fde), 0);
	assert_int_equal(fde.start, CODE);
	assert_int_equal(fde.end, CODE + CODE_LEN);
	assert_int_equal(pm_unw_fde_find(module, CODE + CODE_LEN, &fde), -ENOENT);
	assert_int_equal(asked, 1);
	pm_unw_module_free(module);

	/* Where there is none, nobody is bothered again. */
	module = bare_module();
	pm_unw_module_on_gap(module, open_debug, NULL);
	assert_int_equal(pm_unw_fde_find(module, CODE, &fde), -ENOENT);
	assert_int_equal(pm_unw_fde_find(module, CODE, &fde), -ENOENT);
	assert_int_equal(asked, 2);
	pm_unw_module_free(module);
}

static void not_asked_for_what_is_there(void **state)
{
	const struct pm_unw_parts parts = { .loads = &load,
					    .loads_len = 1,
					    .debug_frame = { 0, &frame, sizeof(frame) } };
	struct pm_unw_module *module;
	struct pm_unw_fde fde;

	(void)state;
	asked = 0;
	assert_int_equal(pm_unw_module_from_parts(&module, &parts, NULL), 0);
	pm_unw_module_on_gap(module, open_debug, NULL);
	assert_int_equal(pm_unw_fde_find(module, CODE + CODE_LEN, &fde), -ENOENT);
	assert_int_equal(pm_unw_fde_find(module, CODE, &fde), 0);
	assert_int_equal(asked, 0);
	pm_unw_module_free(module);
}

static void the_first_chain_has_it(void **state)
{
	static char name[] = ".debug_frame";
	struct pm_unw_module *module = bare_module();
	struct pm_unwinder *unwinder = pm_unwinder_new();
	struct pm_unw_map map = { .start = 0, .end = CODE + LOAD_LEN, .module = module };
	struct pm_unw_space space = { .maps = &map, .len = 1 };
	uint64_t words[] = { CODE + 0x20, 0 };
	struct pm_unw_stack stack = { 0x7000, (const uint8_t *)words, sizeof(words) };
	struct pm_unw_regs regs = { .known = 1u << PM_UNW_X86_64_RSP |
					     1u << PM_UNW_X86_64_RIP };
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	enum pm_unw_stop stop;

	(void)state;
	assert_non_null(unwinder);
	pm_unw_module_on_gap(module, open_debug, name);
	regs.value[PM_UNW_X86_64_RSP] = stack.start;
	regs.value[PM_UNW_X86_64_RIP] = CODE + 0x10;
	assert_int_equal(pm_unwind(unwinder, &space, &regs, &stack, frames, &stop), 2);
	assert_int_equal(stop, PM_UNW_STOP_ROOT);
	assert_int_equal(frames[1].pc, CODE + 0x20);
	assert_int_equal(frames[1].how, PM_UNW_HOW_CFI);
	pm_unwinder_free(unwinder);
	pm_unw_module_free(module);
}

static void only_what_fits_is_added(void **state)
{
	struct pm_unw_module *module = bare_module();
	PM_AUTO_CLOSE int other = debug_file(EM_AARCH64, ".debug_frame");
	PM_AUTO_CLOSE int without = debug_file(EM_X86_64, ".debug_info");
	PM_AUTO_CLOSE int right = debug_file(EM_X86_64, ".debug_frame");
	PM_AUTO_CLOSE int text = memfd_create("text", MFD_CLOEXEC);
	struct pm_error err;
	struct pm_unw_fde fde;

	(void)state;
	assert_int_equal(pm_unw_module_add_debug(module, text, &err), -ENOEXEC);
	assert_int_equal(pm_unw_module_add_debug(module, other, &err), -ENOEXEC);
	assert_int_equal(pm_unw_module_add_debug(module, without, &err), -ENODATA);
	assert_int_equal(pm_unw_fde_find(module, CODE, &fde), -ENOENT);
	assert_int_equal(pm_unw_module_add_debug(module, right, &err), 0);
	assert_int_equal(pm_unw_fde_find(module, CODE, &fde), 0);
	assert_int_equal(pm_unw_module_add_debug(module, right, &err), -EEXIST);
	pm_unw_module_free(module);
}

/* Linkers let what they have dropped begin at 0. */
static void dropped_functions_hide_nothing(void **state)
{
	static const struct pm_unw_part_load code = { CODE, 0, LOAD_LEN, true };
	struct {
		struct frame first, dropped, elsewhere;
	} frames = { frame, frame, frame };
	const struct pm_unw_parts parts = { .loads = &code,
					    .loads_len = 1,
					    .debug_frame = { 0, &frames,
							     sizeof(frames) } };
	struct pm_unw_module *module;
	struct pm_unw_fde fde;

	(void)state;
	frames.dropped.start = 0;
	frames.dropped.len = CODE + 2 * CODE_LEN;
	frames.elsewhere.start = CODE - 8;
	frames.elsewhere.len = 4 * CODE_LEN;
	frames.first.start = CODE + 2 * CODE_LEN;
	assert_int_equal(pm_unw_module_from_parts(&module, &parts, NULL), 0);
	assert_int_equal(pm_unw_fde_find(module, CODE, &fde), -ENOENT);
	assert_int_equal(pm_unw_fde_find(module, CODE + 2 * CODE_LEN, &fde), 0);
	assert_int_equal(module->debug_scanned.places.len, 1);
	pm_unw_module_free(module);
}

static void its_own_comes_first(void **state)
{
	PM_AUTO_CLOSE int packed = debug_file(EM_X86_64, ".zdebug_frame");
	PM_AUTO_CLOSE int other = debug_file(EM_X86_64, ".debug_frame");
	struct pm_unw_module *module;
	struct pm_unw_fde fde;

	(void)state;
	assert_int_equal(pm_unw_module_open(&module, packed, NULL), 0);
	assert_int_equal(pm_vec_push(&module->loads,
				     (struct pm_unw_load){ .filesz = CODE + LOAD_LEN,
							   .executable = true }),
			 0);
	assert_int_equal(pm_unw_module_add_debug(module, other, NULL), -EEXIST);
	/* It is packed in no known way, which turns out when it is needed. */
	assert_int_equal(pm_unw_fde_find(module, CODE, &fde), -ENOENT);
	assert_int_equal(pm_unw_module_add_debug(module, other, NULL), 0);
	assert_int_equal(pm_unw_fde_find(module, CODE, &fde), 0);
	pm_unw_module_free(module);
}

static void added_late(void **state)
{
	PM_AUTO_CLOSE int fd = debug_file(EM_X86_64, ".debug_frame");
	struct pm_unwinder *unwinder = pm_unwinder_new();
	struct pm_unw_module *module = bare_module();

	(void)state;
	assert_non_null(unwinder);
	assert_int_equal(pm_unw_rule_find(unwinder, module, CODE).found,
			 PM_UNW_FOUND_NO_CFI);
	assert_int_equal(pm_unw_module_add_debug(module, fd, NULL), 0);
	assert_int_equal(pm_unw_rule_find(unwinder, module, CODE).found,
			 PM_UNW_FOUND_RULE);
	pm_unw_module_free(module);
	pm_unwinder_free(unwinder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asked_for_once_at_the_first_gap),
		cmocka_unit_test(not_asked_for_what_is_there),
		cmocka_unit_test(the_first_chain_has_it),
		cmocka_unit_test(only_what_fits_is_added),
		cmocka_unit_test(dropped_functions_hide_nothing),
		cmocka_unit_test(its_own_comes_first),
		cmocka_unit_test(added_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

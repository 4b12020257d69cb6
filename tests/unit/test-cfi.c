/* SPDX-License-Identifier: MIT */
/*
 * CFI rows: programs written by hand against DWARF 5 §6.4.2, and every FDE of the C library
 * against libdw's own interpreter.
 */
#include "unwind/unwind-parts.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* What libdw's tables of defaults say of this machine: psABI x86-64, AAPCS64. */
enum {
#if defined(__aarch64__)
	RETURN_REG = 30,
	STACK_REG = 31,
	REGS = 32,
#else
	RETURN_REG = 16,
	STACK_REG = 7,
	REGS = PM_UNW_X86_64_REGS,
#endif
};

static bool is_kept(int reg)
{
#if defined(__aarch64__)
	return reg >= 19 && reg <= 30;
#else
	return reg == 6 || (reg >= 12 && reg <= 16);
#endif
}

/* That of x86-64 says 0 where it means rbx, which is 3: up to 0.188 at least libdw takes rbx
 * for lost and rax for kept. */
static bool is_mistaken(int reg)
{
#if defined(__aarch64__)
	return false;
#else
	return reg == 3 || reg == 0;
#endif
}

/* ---- programs by hand ------------------------------------------------------------------ */

/* The usual CIE of x86-64: CFA = rsp + 8, return address at CFA - 8. */
static const uint8_t usual_cie[] = { DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1 };

static int row_of(const uint8_t *program, size_t len, uint64_t svma,
		  struct pm_unw_row *ret)
{
	struct pm_unw_fde fde = { .arch = &pm_unw_arch_infos[PM_UNW_X86_64],
				  .start = 0x1000,
				  .end = 0x2000,
				  .program = program,
				  .program_end = program + len,
				  .initial = usual_cie,
				  .initial_end = usual_cie + sizeof(usual_cie),
				  .region_data = program,
				  .code_align = 1,
				  .data_align = -8,
				  .ra_reg = 16 };

	return pm_unw_cfi_row(&fde, svma, ret);
}

#define ROW(svma, ...)                                                                 \
	({                                                                             \
		static const uint8_t program_[] = { __VA_ARGS__ };                     \
		assert_int_equal(                                                      \
			row_of(program_, sizeof(program_), 0x1000 + (svma), &row), 0); \
	})
#define BAD_ROW(...)                                                               \
	({                                                                         \
		static const uint8_t program_[] = { __VA_ARGS__ };                 \
		assert_int_equal(row_of(program_, sizeof(program_), 0x1fff, &row), \
				 -EBADMSG);                                        \
	})

static void test_prologue(void **state)
{
#define PUSH_RBP_FRAME                                                                   \
	DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2,         \
		DW_CFA_advance_loc | 3, DW_CFA_def_cfa_register, 6, DW_CFA_advance_loc1, \
		0x40, DW_CFA_def_cfa, 7, 8
	struct pm_unw_row row;

	(void)state;
	ROW(0, PUSH_RBP_FRAME);
	assert_int_equal(row.cfa_reg, 7);
	assert_int_equal(row.cfa_offset, 8);
	assert_int_equal(row.regs[16].kind, PM_UNW_RULE_OFFSET);
	assert_int_equal(row.regs[16].value, -8);
	assert_int_equal(row.regs[6].kind, PM_UNW_RULE_UNSPECIFIED);
	ROW(1, PUSH_RBP_FRAME);
	assert_int_equal(row.cfa_offset, 16);
	assert_int_equal(row.regs[6].value, -16);
	ROW(4, PUSH_RBP_FRAME);
	assert_int_equal(row.cfa_reg, 6);
	assert_int_equal(row.cfa_offset, 16);
	ROW(0x43, PUSH_RBP_FRAME);
	assert_int_equal(row.cfa_reg, 6);
	ROW(0x44, PUSH_RBP_FRAME);
	assert_int_equal(row.cfa_reg, 7);
	assert_int_equal(row.cfa_offset, 8);
}

/* After a pop the row still names the slot, which is below the stack pointer then. */
static void test_popped_registers_are_kept(void **state)
{
	struct pm_unw_row row;

	(void)state;
	ROW(0x43, PUSH_RBP_FRAME);
	pm_unw_row_keep_popped(&pm_unw_arch_infos[PM_UNW_X86_64], &row);
	assert_int_equal(row.regs[6].kind, PM_UNW_RULE_OFFSET);
	ROW(0x44, PUSH_RBP_FRAME);
	assert_int_equal(row.regs[6].kind, PM_UNW_RULE_OFFSET);
	pm_unw_row_keep_popped(&pm_unw_arch_infos[PM_UNW_X86_64], &row);
	assert_int_equal(row.regs[6].kind, PM_UNW_RULE_SAME);
	assert_int_equal(row.regs[16].kind, PM_UNW_RULE_OFFSET);
	/* Saved in the red zone by mov: what the register holds now is not known. */
	ROW(8, DW_CFA_advance_loc | 5, DW_CFA_offset | 6, 2);
	pm_unw_row_keep_popped(&pm_unw_arch_infos[PM_UNW_X86_64], &row);
	assert_int_equal(row.regs[6].kind, PM_UNW_RULE_OFFSET);
	assert_int_equal(row.regs[6].value, -16);
}

static void test_remember_and_restore(void **state)
{
	struct pm_unw_row row;

	(void)state;
	ROW(2, DW_CFA_remember_state, DW_CFA_def_cfa_offset, 48, DW_CFA_offset | 3, 3,
	    DW_CFA_remember_state, DW_CFA_undefined, 3, DW_CFA_restore_state);
	assert_int_equal(row.cfa_offset, 48);
	assert_int_equal(row.regs[3].kind, PM_UNW_RULE_OFFSET);
	ROW(2, DW_CFA_remember_state, DW_CFA_def_cfa_offset, 48, DW_CFA_offset | 3, 3,
	    DW_CFA_restore_state);
	assert_int_equal(row.cfa_offset, 8);
	assert_int_equal(row.regs[3].kind, PM_UNW_RULE_UNSPECIFIED);
	ROW(2, DW_CFA_undefined, 16, DW_CFA_restore | 16);
	assert_int_equal(row.regs[16].kind, PM_UNW_RULE_OFFSET);
	ROW(2, DW_CFA_same_value, 12, DW_CFA_restore_extended, 12);
	assert_int_equal(row.regs[12].kind, PM_UNW_RULE_UNSPECIFIED);
	BAD_ROW(DW_CFA_restore_state);
}

static void test_every_rule(void **state)
{
	struct pm_unw_row row;

	(void)state;
	ROW(0, DW_CFA_offset_extended, 12, 3, DW_CFA_offset_extended_sf, 13, 0x7f,
	    DW_CFA_val_offset, 7, 2, DW_CFA_val_offset_sf, 14, 0x7e, DW_CFA_register, 16,
	    5, DW_CFA_GNU_negative_offset_extended, 15, 2, DW_CFA_GNU_args_size, 16,
	    DW_CFA_expression, 3, 2, 0x77, 8, DW_CFA_val_expression, 6, 1, 0x31);
	assert_int_equal(row.regs[12].value, -24);
	assert_int_equal(row.regs[13].value, 8);
	assert_int_equal(row.regs[7].kind, PM_UNW_RULE_VAL_OFFSET);
	assert_int_equal(row.regs[7].value, -16);
	assert_int_equal(row.regs[14].value, 16);
	assert_int_equal(row.regs[16].kind, PM_UNW_RULE_REGISTER);
	assert_int_equal(row.regs[16].value, 5);
	assert_int_equal(row.regs[15].value, 16);
	assert_int_equal(row.regs[3].kind, PM_UNW_RULE_EXPRESSION);
	assert_int_equal(row.regs[3].expr_len, 2);
	assert_int_equal(row.regs[3].expr[0], 0x77);
	assert_int_equal(row.regs[6].kind, PM_UNW_RULE_VAL_EXPRESSION);
	ROW(0, DW_CFA_def_cfa_sf, 10, 0x7e);
	assert_int_equal(row.cfa_reg, 10);
	assert_int_equal(row.cfa_offset, 16);
	ROW(0, DW_CFA_def_cfa_expression, 3, 0x76, 0x58, 0x06);
	assert_int_equal(row.cfa_is_expr, 1);
	assert_int_equal(row.cfa_expr_len, 3);
	/* As in libgcrypt: the offset is the one from before the expression. */
	ROW(0, DW_CFA_def_cfa, 7, 56, DW_CFA_def_cfa_expression, 3, 0x76, 0x58, 0x06,
	    DW_CFA_def_cfa_register, 6);
	assert_int_equal(row.cfa_is_expr, 0);
	assert_int_equal(row.cfa_reg, 6);
	assert_int_equal(row.cfa_offset, 56);
	/* Vector registers are described and not needed. */
	ROW(0, DW_CFA_offset_extended, 17, 4, DW_CFA_def_cfa_offset, 24);
	assert_int_equal(row.cfa_offset, 24);
	/* Absolute, as the encoding of these FDEs is. */
	ROW(0x7f, DW_CFA_set_loc, 0x80, 0x10, 0, 0, 0, 0, 0, 0, DW_CFA_def_cfa_offset,
	    32);
	assert_int_equal(row.cfa_offset, 8);
	ROW(0x80, DW_CFA_set_loc, 0x80, 0x10, 0, 0, 0, 0, 0, 0, DW_CFA_def_cfa_offset,
	    32);
	assert_int_equal(row.cfa_offset, 32);
	ROW(0, DW_CFA_undefined, 3, DW_CFA_same_value, 6, DW_CFA_def_cfa_offset_sf, 0x7e);
	assert_int_equal(row.regs[3].kind, PM_UNW_RULE_UNDEFINED);
	assert_int_equal(row.regs[6].kind, PM_UNW_RULE_SAME);
	assert_int_equal(row.cfa_offset, 16);
}

static void test_bad_programs(void **state)
{
	uint8_t deep[200];
	struct pm_unw_row row;

	(void)state;
	BAD_ROW(0x3f);
	BAD_ROW(DW_CFA_def_cfa, 7);
	BAD_ROW(DW_CFA_def_cfa, 99, 8);
	BAD_ROW(DW_CFA_advance_loc4, 1, 2);
	BAD_ROW(DW_CFA_expression, 3, 9, 0x77);
	BAD_ROW(DW_CFA_def_cfa_expression, 0xff, 0xff, 0xff, 0xff, 0x0f);
	BAD_ROW(DW_CFA_def_cfa_expression, 1, 0x30, DW_CFA_def_cfa_offset, 8);
	memset(deep, DW_CFA_remember_state, sizeof(deep));
	assert_int_equal(row_of(deep, sizeof(deep), 0x1000, &row), -EBADMSG);
}

/* ---- every FDE of libc against libdw --------------------------------------------------- */

static void check_cfa(Dwarf_Frame *frame, const struct pm_unw_row *row)
{
	Dwarf_Op *ops;
	size_t len;

	assert_int_equal(dwarf_frame_cfa(frame, &ops, &len), 0);
	if (row->cfa_is_expr) {
		assert_true(len > 1);
		return;
	}
	assert_int_equal(len, 1);
	assert_int_equal(ops[0].atom, DW_OP_bregx);
	assert_int_equal(ops[0].number, row->cfa_reg);
	assert_int_equal((int64_t)ops[0].number2, row->cfa_offset);
}

static void check_reg(Dwarf_Frame *frame, const struct pm_unw_row *row, int reg)
{
	const struct pm_unw_reg_rule *rule = &row->regs[reg];
	Dwarf_Op memory[3], *ops;
	bool value;
	size_t len;

	assert_int_equal(dwarf_frame_register(frame, reg, memory, &ops, &len), 0);
	value = len > 0 && ops[len - 1].atom == DW_OP_stack_value;
	switch ((enum pm_unw_rule_kind)rule->kind) {
	case PM_UNW_RULE_UNSPECIFIED:
		if (reg == STACK_REG) /* by default it is the CFA itself */
			assert_true(value && len == 2);
		else if (is_kept(reg))
			assert_true(!ops && len == 0);
		else if (!is_mistaken(reg))
			assert_true(ops == memory && len == 0);
		break;
	case PM_UNW_RULE_UNDEFINED:
		assert_true(ops == memory && len == 0);
		break;
	case PM_UNW_RULE_SAME:
		assert_true(!ops && len == 0);
		break;
	case PM_UNW_RULE_OFFSET:
	case PM_UNW_RULE_VAL_OFFSET:
		assert_int_equal(value, rule->kind == PM_UNW_RULE_VAL_OFFSET);
		assert_int_equal(ops[0].atom, DW_OP_call_frame_cfa);
		if (rule->value == 0)
			assert_int_equal(len - value, 1);
		else
			assert_int_equal((int64_t)ops[1].number, rule->value);
		break;
	case PM_UNW_RULE_REGISTER:
		assert_int_equal(ops[0].atom, DW_OP_regx);
		assert_int_equal(ops[0].number, rule->value);
		break;
	case PM_UNW_RULE_EXPRESSION:
	case PM_UNW_RULE_VAL_EXPRESSION:
		assert_int_equal(value, rule->kind == PM_UNW_RULE_VAL_EXPRESSION);
		assert_int_equal(ops[0].atom, DW_OP_call_frame_cfa);
		assert_true(len >= 2);
		break;
	}
}

static void check_place(Dwarf_CFI *cfi, const struct pm_unw_fde *fde, uint64_t svma)
{
	struct pm_unw_row row;
	Dwarf_Frame *frame;
	bool signal;

	assert_int_equal(dwarf_cfi_addrframe(cfi, svma, &frame), 0);
	assert_int_equal(pm_unw_cfi_row(fde, svma, &row), 0);
	assert_int_equal(dwarf_frame_info(frame, NULL, NULL, &signal), RETURN_REG);
	assert_int_equal(row.ra_reg, RETURN_REG);
	assert_int_equal(row.signal, signal);
	check_cfa(frame, &row);
	for (int reg = 0; reg < REGS; reg++)
		check_reg(frame, &row, reg);
	free(frame);
}

static void test_libc_against_libdw(void **state)
{
	struct pm_unw_module *module;
	struct link_map *map;
	PM_AUTO_CLOSE int fd = -1;
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	size_t places = 0;
	Dwarf_CFI *cfi;
	Elf *elf;

	(void)state;
	assert_non_null(libc);
	assert_int_equal(dlinfo(libc, RTLD_DI_LINKMAP, &map), 0);
	fd = open(map->l_name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pm_unw_module_open(&module, fd, NULL), 0);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	cfi = dwarf_getcfi_elf(elf);
	assert_non_null(cfi);
	assert_true(module->hdr_count > 1000);
	for (size_t i = 0; i < module->hdr_count; i++) {
		const uint8_t *pair = pm_unw_region_need(&module->eh_frame_hdr,
							 module->hdr_table + i * 8, 8);
		struct pm_unw_fde fde;
		int32_t relative;
		uint64_t start;

		assert_non_null(pair);
		memcpy(&relative, pair, 4);
		start = module->eh_frame_hdr.svma + (uint64_t)(int64_t)relative;
		assert_int_equal(pm_unw_fde_find(module, start, &fde), 0);
		assert_int_equal(fde.start, start);
		for (uint64_t at = start; at < fde.end;
		     at += 1 + (fde.end - start) / 16) {
			check_place(cfi, &fde, at);
			places++;
		}
		check_place(cfi, &fde, fde.end - 1);
	}
	assert_true(places > 10000);
	assert_int_equal(dwarf_cfi_end(cfi), 0);
	elf_end(elf);
	pm_unw_module_free(module);
	dlclose(libc);
}

/* The scan of .eh_frame, for files without a header, finds what the header finds. */
static void test_scan_equals_header(void **state)
{
	struct pm_unw_module *module;
	PM_AUTO_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	size_t table;

	(void)state;
	assert_int_equal(pm_unw_module_open(&module, fd, NULL), 0);
	table = module->hdr_table;
	assert_true(table > 0);
	for (size_t i = 0; i < module->hdr_count; i++) {
		const uint8_t *pair =
			pm_unw_region_need(&module->eh_frame_hdr, table + i * 8, 8);
		struct pm_unw_fde by_header, by_scan;
		int32_t relative;
		uint64_t start;

		memcpy(&relative, pair, 4);
		start = module->eh_frame_hdr.svma + (uint64_t)(int64_t)relative;
		module->hdr_table = table;
		assert_int_equal(pm_unw_fde_find(module, start, &by_header), 0);
		module->hdr_table = 0;
		assert_int_equal(pm_unw_fde_find(module, start, &by_scan), 0);
		assert_int_equal(by_header.end, by_scan.end);
		assert_ptr_equal(by_header.program, by_scan.program);
	}
	module->hdr_table = 0;
	assert_int_equal(pm_unw_fde_find(module, 1, &(struct pm_unw_fde){ 0 }), -ENOENT);
	pm_unw_module_free(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prologue),
		cmocka_unit_test(test_popped_registers_are_kept),
		cmocka_unit_test(test_remember_and_restore),
		cmocka_unit_test(test_every_rule),
		cmocka_unit_test(test_bad_programs),
		cmocka_unit_test(test_libc_against_libdw),
		cmocka_unit_test(test_scan_equals_header),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

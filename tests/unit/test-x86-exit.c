/* SPDX-License-Identifier: MIT */
/*
 * Where code has its return address, as following the code finds it, against what CFI says of
 * the same place: at every instruction of the libraries that this program has loaded.
 */
#include "unwind/unwind-parts.h"
#include "tests/unit/sanitized.h"

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include <capstone/capstone.h>

struct counts {
	uint64_t places, by_sp, by_fp, unknown, wrong;
};

enum {
	SHOWN_MAX = 20,
	FUNCTION_MAX = 1 << 16,
	/* Of one library; compilers repeat themselves. */
	FDES_MAX = PM_SANITIZED ? 200 : 1500,
};

static struct pm_unw_map map;
static const struct pm_unw_space space = { .maps = &map, .len = 1 };

static bool is_saved_at(const struct pm_unw_reg_rule *rule, int64_t offset)
{
	return rule->kind == PM_UNW_RULE_OFFSET && rule->value == offset;
}

/* Whether a register is where CFI says, or at least said to be lost. */
static bool agrees_on(const struct pm_unw_reg_rule *found,
		      const struct pm_unw_reg_rule *cfi)
{
	if (found->kind == PM_UNW_RULE_UNDEFINED)
		return true;
	/* Whoever does not return may forget all that CFI still knows, or not have saved it. */
	if (cfi->kind == PM_UNW_RULE_OFFSET)
		return is_saved_at(found, cfi->value);
	return found->kind == PM_UNW_RULE_UNSPECIFIED;
}

/* NULL: they agree as far as they speak of the same. */
static const char *compare_exit_with_cfi(enum pm_unw_exit exit,
					 const struct pm_unw_row *found,
					 const struct pm_unw_row *cfi)
{
	static const uint8_t saved[] = { 3, 6, 12, 13, 14, 15 };

	if (exit == PM_UNW_EXIT_BY_FP)
		return cfi->cfa_reg == PM_UNW_X86_64_RBP && cfi->cfa_offset == 16 &&
				       is_saved_at(&cfi->regs[6], -16)
			       ? NULL
			       : "not by frame pointer";
	if (exit != PM_UNW_EXIT_BY_ROW || cfi->cfa_reg != found->cfa_reg)
		return NULL;
	if (found->cfa_offset != cfi->cfa_offset ||
	    !is_saved_at(&found->regs[PM_UNW_X86_64_RIP],
			 cfi->regs[PM_UNW_X86_64_RIP].value))
		return "another return address";
	for (size_t i = 0; i < PM_ARRAY_LEN(saved); i++)
		if (!agrees_on(&found->regs[saved[i]], &cfi->regs[saved[i]]))
			return "another register";
	return NULL;
}

static void check_place(struct pm_unw_fde *fde, uint64_t svma, const char *name,
			const cs_insn *insn, struct counts *counts)
{
	const struct pm_unw_arch_info *arch = &pm_unw_arch_infos[PM_UNW_X86_64];
	struct pm_unw_row cfi, found = { 0 };
	enum pm_unw_exit exit;
	const char *why;

	if (pm_unw_cfi_row(fde, svma, &cfi) < 0 || cfi.cfa_is_expr || cfi.signal ||
	    cfi.regs[PM_UNW_X86_64_RIP].kind != PM_UNW_RULE_OFFSET)
		return;
	pm_unw_row_keep_popped(arch, &cfi);
	exit = pm_unw_x86_find_exit(&space, svma, NULL, &found);
	counts->places++;
	counts->by_sp += exit == PM_UNW_EXIT_BY_ROW;
	counts->by_fp += exit == PM_UNW_EXIT_BY_FP;
	counts->unknown += exit == PM_UNW_EXIT_UNKNOWN;
	why = compare_exit_with_cfi(exit, &found, &cfi);
	if (why && counts->wrong++ < SHOWN_MAX)
		print_message("%s+%#" PRIx64 " %s %s: %s (%s%+" PRId64 ", CFI %s%+" PRId64
			      ")\n",
			      name, svma, insn->mnemonic, insn->op_str, why,
			      exit == PM_UNW_EXIT_BY_FP ? "rbp" : "rsp", found.cfa_offset,
			      cfi.cfa_reg == 7 ? "rsp" : "rbp", cfi.cfa_offset);
}

/* Assembly that pushes and says nothing of it, as glibc's __mpn_mul_1 does. */
static bool is_mute(csh capstone, const struct pm_unw_fde *fde, const uint8_t *code,
		    size_t len, cs_insn *insn)
{
	uint64_t svma = fde->start;

	for (const uint8_t *at = fde->program; at < fde->program_end; at++)
		if (*at != 0) /* DW_CFA_nop */
			return false;
	while (cs_disasm_iter(capstone, &code, &len, &svma, insn))
		if (insn->id == X86_INS_PUSH)
			return true;
	return false;
}

static void check_function(csh capstone, struct pm_unw_module *module,
			   const struct pm_unw_fde_place *place, const char *name,
			   struct counts *counts)
{
	size_t left = place->len;
	PM_AUTO_FREE uint8_t *code = malloc(left);
	const uint8_t *at = code;
	uint64_t svma = place->start;
	cs_insn *insn = cs_malloc(capstone);
	struct pm_unw_fde fde;

	assert_non_null(code);
	if (pm_unw_module_read(module, svma, code, left) &&
	    pm_unw_fde_find(module, svma, &fde) == 0 &&
	    !is_mute(capstone, &fde, code, left, insn))
		while (cs_disasm_iter(capstone, &at, &left, &svma, insn))
			/* Most stand behind a jump, where nobody gets to. */
			if (insn->id != X86_INS_NOP)
				check_place(&fde, insn->address, name, insn, counts);
	cs_free(insn, 1);
}

static int check_library(struct dl_phdr_info *info, size_t size, void *user)
{
	struct counts *all = user, counts = { 0 };
	const struct pm_unw_fde_table *fdes;
	struct pm_unw_module *module;
	csh capstone;
	size_t step;
	int fd;

	(void)size;
	fd = info->dlpi_name[0] ? open(info->dlpi_name, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 0; /* this program, and the vDSO */
	assert_int_equal(pm_unw_module_open(&module, fd, NULL), 0);
	close(fd);
	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &capstone), CS_ERR_OK);
	map = (struct pm_unw_map){ .start = 0, .end = UINT64_MAX, .module = module };
	fdes = pm_unw_fde_scan(module);
	step = fdes->places.len / FDES_MAX + 1;
	for (size_t i = 0; i < fdes->places.len; i += step)
		if (fdes->places.data[i].len < FUNCTION_MAX)
			check_function(capstone, module, &fdes->places.data[i],
				       info->dlpi_name, &counts);
	print_message("%s: %" PRIu64 " places, %" PRIu64 " by rsp, %" PRIu64
		      " by rbp, %" PRIu64 " unknown, %" PRIu64 " wrong\n",
		      info->dlpi_name, counts.places, counts.by_sp, counts.by_fp,
		      counts.unknown, counts.wrong);
	all->places += counts.places;
	all->by_sp += counts.by_sp;
	all->wrong += counts.wrong;
	cs_close(&capstone);
	pm_unw_module_free(module);
	return 0;
}

static void test_against_cfi(void **state)
{
	struct counts counts = { 0 };

	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	dl_iterate_phdr(check_library, &counts);
	assert_int_equal(counts.wrong, 0);
	assert_true(counts.by_sp > counts.places / 2);
}

/* ---- ends of functions ------------------------------------------------------------------- */

#define CODE 0x401000

static const uint8_t *code;
static size_t code_len;

/* Behind the code there is padding. */
static bool read_bytes(void *user, uint64_t address, void *ret, size_t len)
{
	(void)user;
	if (address < CODE)
		return false;
	memset(ret, 0xcc, len);
	if (address - CODE < code_len)
		memcpy(ret, code + (address - CODE),
		       len < code_len - (address - CODE) ? len
							 : code_len - (address - CODE));
	return true;
}

static enum pm_unw_exit exit_of(const uint8_t *bytes, size_t len, struct pm_unw_row *ret)
{
	const struct pm_unw_map anonymous = { .start = CODE, .end = CODE + 4096 };
	const struct pm_unw_space in_memory = { .maps = &anonymous,
						.len = 1,
						.read_code = read_bytes };

	code = bytes;
	code_len = len;
	*ret = (struct pm_unw_row){ 0 };
	return pm_unw_x86_find_exit(&in_memory, CODE, NULL, ret);
}

#define EXIT_OF(row, ...)                         \
	exit_of((const uint8_t[]){ __VA_ARGS__ }, \
		sizeof((const uint8_t[]){ __VA_ARGS__ }), row)

static void expect_row(const struct pm_unw_row *row, uint32_t reg, int64_t cfa_offset)
{
	assert_int_equal(row->cfa_reg, reg);
	assert_int_equal(row->cfa_offset, cfa_offset);
	assert_true(is_saved_at(&row->regs[PM_UNW_X86_64_RIP], -8));
}

static void test_frames_below_saved_registers(void **state)
{
	struct pm_unw_row row;

	/* mov %rbp,%rsp; pop %rbx; pop %r14; pop %r15; pop %rbp; ret */
	assert_int_equal(
		EXIT_OF(&row, 0x48, 0x89, 0xec, 0x5b, 0x41, 0x5e, 0x41, 0x5f, 0x5d, 0xc3),
		PM_UNW_EXIT_BY_ROW);
	expect_row(&row, PM_UNW_X86_64_RBP, 40);
	assert_true(is_saved_at(&row.regs[PM_UNW_X86_64_RBX], -40));
	assert_true(is_saved_at(&row.regs[14], -32));
	assert_true(is_saved_at(&row.regs[15], -24));
	assert_true(is_saved_at(&row.regs[PM_UNW_X86_64_RBP], -16));
	assert_int_equal(row.regs[12].kind, PM_UNW_RULE_UNSPECIFIED);
	/* The same, restored before: nobody knows where from. mov (%rsp),%rbx; … */
	assert_int_equal(EXIT_OF(&row, 0x48, 0x8b, 0x1c, 0x24, 0x48, 0x89, 0xec, 0x41,
				 0x5e, 0x5d, 0xc3),
			 PM_UNW_EXIT_BY_ROW);
	expect_row(&row, PM_UNW_X86_64_RBP, 24);
	assert_int_equal(row.regs[PM_UNW_X86_64_RBX].kind, PM_UNW_RULE_UNDEFINED);
	/* leave; ret */
	assert_int_equal(EXIT_OF(&row, 0xc9, 0xc3), PM_UNW_EXIT_BY_FP);
	/* lea -8(%rbp),%rsp; pop %rbx; pop %rbp; ret */
	assert_int_equal(EXIT_OF(&row, 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3),
			 PM_UNW_EXIT_BY_FP);
	/* leave; jmp *%rax */
	assert_int_equal(EXIT_OF(&row, 0xc9, 0xff, 0xe0), PM_UNW_EXIT_BY_FP);
}

static void test_rounded_stack_pointers(void **state)
{
	struct pm_unw_row row;

	/* mov %rsp,%rbp; sub $680,%rsp; and $-64,%rsp; mov %rax,8(%rsp); mov %rbp,%rsp;
	 * pop %rbx; ret */
	assert_int_equal(EXIT_OF(&row, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0xa8, 0x02,
				 0x00, 0x00, 0x48, 0x83, 0xe4, 0xc0, 0x48, 0x89, 0x44,
				 0x24, 0x08, 0x48, 0x89, 0xec, 0x5b, 0xc3),
			 PM_UNW_EXIT_BY_ROW);
	expect_row(&row, PM_UNW_X86_64_RSP, 16);
	assert_true(is_saved_at(&row.regs[PM_UNW_X86_64_RBX], -16));
	/* and $-64,%rsp; ret */
	assert_int_equal(EXIT_OF(&row, 0x48, 0x83, 0xe4, 0xc0, 0xc3),
			 PM_UNW_EXIT_UNKNOWN);
	/* and $-64,%rsp; pop %rbx; ret */
	assert_int_equal(EXIT_OF(&row, 0x48, 0x83, 0xe4, 0xc0, 0x5b, 0xc3),
			 PM_UNW_EXIT_UNKNOWN);
}

/* What GHC makes of Haskell. */
static void test_jumps_to_another_stack(void **state)
{
	struct pm_unw_row row;

	/* add $16,%rbp; jmp *(%rbp) */
	assert_int_equal(EXIT_OF(&row, 0x48, 0x83, 0xc5, 0x10, 0xff, 0x65, 0x00),
			 PM_UNW_EXIT_ELSEWHERE);
	/* jmp *(%rbx) */
	assert_int_equal(EXIT_OF(&row, 0xff, 0x23), PM_UNW_EXIT_ELSEWHERE);
	/* jmp *8(%rbp); jmp *(%rbx,%rcx,8); jmp *(%rax); jmp *%rbx */
	assert_int_equal(EXIT_OF(&row, 0xff, 0x65, 0x08), PM_UNW_EXIT_UNKNOWN);
	assert_int_equal(EXIT_OF(&row, 0xff, 0x24, 0xcb), PM_UNW_EXIT_UNKNOWN);
	assert_int_equal(EXIT_OF(&row, 0xff, 0x20), PM_UNW_EXIT_UNKNOWN);
	assert_int_equal(EXIT_OF(&row, 0xff, 0xe3), PM_UNW_EXIT_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_cfi),
		cmocka_unit_test(test_frames_below_saved_registers),
		cmocka_unit_test(test_rounded_stack_pointers),
		cmocka_unit_test(test_jumps_to_another_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

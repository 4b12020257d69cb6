/* SPDX-License-Identifier: MIT */
/*
 * A second opinion: elfutils' libdwfl, which finds scopes and lines in its own way, asked
 * for addresses all over this program and the C library.
 */
#include "pm/symbol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <string.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <cmocka.h>

#ifdef __aarch64__
#define LIBC_FOLDER "aarch64-linux-gnu"
#else
#define LIBC_FOLDER "x86_64-linux-gnu"
#endif

enum {
	ADDRESSES = 500,
	LEVELS_MAX = 64,
	FOUND_MIN = ADDRESSES / 2,
};

struct oracle {
	Dwfl *dwfl;
	Dwfl_Module *module;
	Dwarf_Addr bias;
};

static const Dwfl_Callbacks callbacks = {
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static bool oracle_open(struct oracle *oracle, const char *path)
{
	oracle->dwfl = dwfl_begin(&callbacks);
	assert_non_null(oracle->dwfl);
	oracle->module = dwfl_report_offline(oracle->dwfl, "", path, -1);
	dwfl_report_end(oracle->dwfl, NULL, NULL);
	return oracle->module && dwfl_module_getdwarf(oracle->module, &oracle->bias);
}

/* Addresses spread evenly over .text; the steps are odd, so that they hit any instruction. */
static size_t spread(const char *path, uint64_t *addresses)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf;
	Elf_Scn *section = NULL;
	size_t names, len = 0;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr shdr;

		assert_non_null(gelf_getshdr(section, &shdr));
		if (strcmp(elf_strptr(elf, names, shdr.sh_name), ".text") != 0)
			continue;
		uint64_t step = shdr.sh_size / ADDRESSES | 1;

		for (; len < ADDRESSES && len * step < shdr.sh_size; len++)
			addresses[len] = shdr.sh_addr + len * step;
	}
	elf_end(elf);
	return len;
}

struct comparison {
	struct oracle oracle;
	const uint64_t *addresses;
	size_t found, levels;
};

static bool is_function(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

/* The functions around an address, innermost first. */
static size_t oracle_chain(struct oracle *oracle, Dwarf_Die *unit, uint64_t address,
			   Dwarf_Die *chain)
{
	Dwarf_Die *scopes = NULL, *lexical = NULL;
	int count = dwarf_getscopes(unit, address, &scopes);
	size_t len = 0;

	/* The lexical parents of the innermost, not of its abstract origin. */
	for (int i = 0; i < count; i++) {
		if (!is_function(&scopes[i]))
			continue;
		count = dwarf_getscopes_die(&scopes[i], &lexical);
		for (int n = 0; n < count && len < LEVELS_MAX; n++)
			if (is_function(&lexical[n]))
				chain[len++] = lexical[n];
		break;
	}
	free(scopes);
	free(lexical);
	return len;
}

static uint32_t call_line(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word line;

	if (!dwarf_attr(die, DW_AT_call_line, &attr) ||
	    dwarf_formudata(&attr, &line) != 0)
		return 0;
	return (uint32_t)line;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void compare_line(Dwarf_Die *unit, uint64_t address,
			 const struct pm_symbol_function *innermost)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);
	const char *file;
	int number = 0;

	/* A line of 0 is filled in by us, not by it. */
	if (!line || dwarf_lineno(line, &number) != 0 || number == 0 ||
	    !(file = dwarf_linesrc(line, NULL, NULL)))
		return;
	assert_non_null(innermost->file);
	assert_int_equal(innermost->line, number);
	assert_string_equal(base_name(innermost->file), base_name(file));
}

/* dwfl_module_addrdie() goes by .debug_aranges, which clang does not write. */
static Dwarf_Die *unit_at(struct oracle *oracle, uint64_t address, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(oracle->module, address, bias);

	if (unit)
		return unit;
	while ((unit = dwfl_module_nextcu(oracle->module, unit, bias)))
		if (dwarf_haspc(unit, address - *bias) == 1)
			return unit;
	return NULL;
}

static int compare(void *user, size_t index, const struct pm_symbol_function *functions,
		   size_t len)
{
	struct comparison *comparison = user;
	struct oracle *oracle = &comparison->oracle;
	uint64_t address = comparison->addresses[index] + oracle->bias;
	Dwarf_Addr bias;
	Dwarf_Die *unit = unit_at(oracle, address, &bias);
	Dwarf_Die chain[LEVELS_MAX];
	size_t expected = unit ? oracle_chain(oracle, unit, address - bias, chain) : 0;

	if (expected == 0)
		return 0; /* then at most the symbol table knows */
	comparison->found++;
	comparison->levels += expected;
	assert_int_equal(len, expected);
	compare_line(unit, address - bias, &functions[0]);
	for (size_t i = 0; i + 1 < len; i++) {
		/* The outermost has its symbol's name; inlined C functions have one name. */
		assert_string_equal(functions[i].name, dwarf_diename(&chain[i]));
		assert_int_equal(functions[i + 1].line, call_line(&chain[i]));
	}
	return 0;
}

static void compare_file(const char *path, size_t found_min)
{
	const struct pm_symbol_options options = { .inlines = true, .lines = true };
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t addresses[ADDRESSES];
	struct comparison comparison = { .addresses = addresses };
	size_t len = spread(path, addresses);

	if (!oracle_open(&comparison.oracle, path)) {
		dwfl_end(comparison.oracle.dwfl);
		print_message("# no debug information for %s\n", path);
		skip();
	}
	assert_int_equal(pm_symbols_resolve(fd, addresses, len, &options, compare,
					    &comparison, NULL),
			 0);
	dwfl_end(comparison.oracle.dwfl);
	assert_true(comparison.found >= found_min);
}

static void this_program(void **state)
{
	compare_file("/proc/self/exe", 100);
}

static void libc(void **state)
{
	compare_file("/lib/" LIBC_FOLDER "/libc.so.6", FOUND_MIN);
}

static void truth(void **state)
{
	static const char *const names[] = { "libtruth-dwarf5.so", "libtruth-dwarf4.so",
					     "libtruth-sections.so", "libtruth-gz.so" };

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++) {
		PM_AUTO_FREE char *path = NULL;

		assert_non_null(getenv("PM_TRUTH_BUILT"));
		assert_true(asprintf(&path, "%s/%s", getenv("PM_TRUTH_BUILT"), names[i]) >
			    0);
		compare_file(path, 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truth),
		cmocka_unit_test(this_program),
		cmocka_unit_test(libc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

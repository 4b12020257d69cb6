/* SPDX-License-Identifier: MIT */
/* The flow of control in functions of libraries and programs of this machine: against what
 * objdump(1) reads, and against what their CFI says of the stack. Functions of a few bytes:
 * test-flow-bytes.c, test-flow-aarch64.c. */
#include "src/count/flow.h"
#include "unwind/unwind-parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include <cmocka.h>

/* Whose words are read below. */
#ifdef __x86_64__
static const bool has_objdump = true;
#else
static const bool has_objdump = false;
#endif

/* ---- objdump ------------------------------------------------------------------------------ */

struct line {
	uint64_t address, target;
	bool returns, jumps, has_target, conditional;
};

struct listing {
	PM_VEC(struct line) lines;
};

static bool is_jump(const char *mnemonic)
{
	return mnemonic[0] == 'j' || strncmp(mnemonic, "loop", 4) == 0;
}

/* "  12ab:\tbnd jmp 1040 <f@plt>" */
static void read_line(struct listing *listing, char *text)
{
	struct line line = { 0 };
	char *end, *word;

	line.address = strtoull(text, &end, 16);
	if (end == text || end[0] != ':')
		return;
	for (word = strtok(end + 1, " \t\n"); word; word = strtok(NULL, " \t\n")) {
		if (strcmp(word, "bnd") != 0 && strcmp(word, "notrack") != 0 &&
		    strncmp(word, "rep", 3) != 0 && strcmp(word, "cs") != 0)
			break;
	}
	if (!word)
		return;
	line.returns = strncmp(word, "ret", 3) == 0;
	line.jumps = is_jump(word);
	line.conditional = line.jumps && strncmp(word, "jmp", 3) != 0;
	word = strtok(NULL, " \t\n");
	if (line.jumps && word) {
		line.target = strtoull(word, &end, 16);
		line.has_target = end > word && *end != '(';
	}
	assert_int_equal(pm_vec_push(&listing->lines, line), 0);
}

static void list(struct listing *listing, const char *path, uint64_t low, uint64_t high)
{
	char command[512], text[4096];
	FILE *from;

	snprintf(command, sizeof(command),
		 "objdump -d -w --no-show-raw-insn --start-address=%#llx "
		 "--stop-address=%#llx '%s'",
		 (unsigned long long)low, (unsigned long long)high, path);
	from = popen(command, "r");
	assert_non_null(from);
	while (fgets(text, sizeof(text), from))
		read_line(listing, text);
	assert_int_equal(pclose(from), 0);
}

/* ---- one file ------------------------------------------------------------------------------- */

struct opened {
	struct pm_probe_binary binary;
	struct pm_probe_image *image;
	struct pm_unw_module *module;
	struct pm_flow_source source;
	struct pm_probe_functions functions;
};

static bool read_image(void *user, uint64_t address, void *ret, size_t len)
{
	return pm_probe_image_read(user, address, ret, len);
}

static bool part_of_image(void *user, uint64_t address, struct pm_probe_piece *ret)
{
	return pm_probe_image_frame(user, address, ret);
}

static void open_file(struct opened *opened, const char *path, const char *glob)
{
	struct pm_probe_context context = { 0 };

	*opened = (struct opened){ .binary = { .fd = open(path, O_RDONLY | O_CLOEXEC),
					       .label = strdup(path),
					       .path = strdup(path) } };
	assert_true(opened->binary.fd >= 0);
	assert_int_equal(pm_probe_image_open(&opened->image, opened->binary.fd), 0);
	assert_int_equal(pm_unw_module_open(&opened->module, opened->binary.fd, NULL), 0);
	opened->source =
		(struct pm_flow_source){ .machine = pm_probe_image_machine(opened->image),
					 .is_64 = true,
					 .read = read_image,
					 .part = part_of_image,
					 .user = opened->image };
	assert_int_equal(pm_probe_find_functions(&opened->functions, &opened->binary,
						 &context, glob, NULL),
			 0);
}

static void close_file(struct opened *opened)
{
	pm_probe_functions_release(&opened->functions);
	pm_probe_image_close(opened->image);
	pm_unw_module_free(opened->module);
	close(opened->binary.fd);
	free(opened->binary.label);
	free(opened->binary.path);
}

static int open_flow(struct pm_flow *flow, const struct opened *opened,
		     const struct pm_probe_function *function)
{
	struct pm_probe_piece whole = { function->low, function->high };

	return pm_flow_open(flow, &opened->source, &whole, function->parts.data,
			    function->parts.len, true);
}

/* ---- the comparison -------------------------------------------------------------------------- */

struct tally {
	size_t functions, insns, exits, depths, indirect, unsure, bad_bytes, faults;
};

static bool has_exit(const pm_places *places, uint64_t address)
{
	for (size_t i = 0; i < places->len; i++)
		if (places->data[i].kind == PM_PLACE_EXIT &&
		    places->data[i].address == address)
			return true;
	return false;
}

static void fault(struct tally *tally, const struct pm_probe_function *function,
		  uint64_t address, const char *what)
{
	if (tally->faults < 8)
		print_message("# %s: %#llx: %s\n", function->name,
			      (unsigned long long)address, what);
	tally->faults++;
}

static void compare_line(struct tally *tally, const struct pm_flow *flow,
			 const pm_places *places,
			 const struct pm_probe_function *function,
			 const struct line *line)
{
	bool out = line->jumps && line->has_target && !pm_flow_holds(flow, line->target);

	tally->insns++;
	if (pm_flow_find(flow, line->address) == SIZE_MAX) {
		fault(tally, function, line->address, "no instruction begins here");
		return;
	}
	if (line->returns || out) {
		tally->exits++;
		if (!has_exit(places, line->address))
			fault(tally, function, line->address, "not seen as an exit");
	}
	if (line->jumps && line->has_target && !out &&
	    pm_flow_find_target(flow, line->target) == SIZE_MAX)
		fault(tally, function, line->target, "jumped to, but no instruction");
}

/* The stack's depth, wherever CFI tells it by the stack pointer. */
static void compare_depths(struct tally *tally, const struct pm_flow *flow,
			   struct pm_unw_module *module, uint16_t machine,
			   const struct pm_probe_function *function)
{
	bool is_x86 = machine == EM_X86_64;

	/* Of sanitizers, by hand, with CFI that does not say what they push. */
	if (strncmp(function->name, "__asan_", 7) == 0)
		return;
	for (size_t i = 0; i < flow->insns.len; i++) {
		const struct pm_flow_insn *insn = &flow->insns.data[i];
		struct pm_unw_fde fde;
		struct pm_unw_row row;

		if (!insn->reached || !insn->sp_known ||
		    pm_unw_fde_find(module, insn->address, &fde) < 0 ||
		    pm_unw_cfi_row(&fde, insn->address, &row) < 0 || row.cfa_is_expr ||
		    /* A root: nobody goes on from there. */
		    row.regs[row.ra_reg].kind == PM_UNW_RULE_UNDEFINED ||
		    row.cfa_reg != (is_x86 ? 7 : 31))
			continue;
		tally->depths++;
		/* A call of x86-64 has put its return address there. */
		if (row.cfa_offset != insn->sp + (is_x86 ? 8 : 0))
			fault(tally, function, insn->address, "a stack of another depth");
	}
}

static void compare(struct tally *tally, const struct opened *opened,
		    const struct listing *listing,
		    const struct pm_probe_function *function)
{
	struct pm_flow_doubts doubts = { 0 };
	pm_places places = { 0 };
	struct pm_flow flow;

	assert_int_equal(open_flow(&flow, opened, function), 0);
	assert_int_equal(pm_flow_function_places(&flow, &places, &doubts), 0);
	tally->functions++;
	tally->indirect += flow.indirect.len;
	tally->unsure += doubts.indirect > 0;
	tally->bad_bytes += flow.bad_bytes;
	for (size_t i = 0; i < listing->lines.len && flow.bad_bytes == 0; i++)
		if (pm_flow_holds(&flow, listing->lines.data[i].address))
			compare_line(tally, &flow, &places, function,
				     &listing->lines.data[i]);
	compare_depths(tally, &flow, opened->module, opened->source.machine, function);
	pm_vec_release(&places);
	pm_flow_close(&flow);
}

static struct tally compare_all(const char *path, const char *glob, size_t first,
				size_t max)
{
	struct tally tally = { 0 };
	struct listing listing = { 0 };
	struct opened opened;
	size_t end;

	open_file(&opened, path, glob);
	first = first < opened.functions.list.len ? first : 0;
	end = opened.functions.list.len - first < max ? opened.functions.list.len
						      : first + max;
	if (has_objdump)
		list(&listing, path, opened.functions.list.data[first].low,
		     opened.functions.list.data[end - 1].high);
	for (size_t i = first; i < end; i++)
		compare(&tally, &opened, &listing, &opened.functions.list.data[i]);
	pm_vec_release(&listing.lines);
	close_file(&opened);
	return tally;
}

/* Different functions each time would be a test that fails now and then: these are spread over
 * the file. */
static void check_file(const char *path, const char *glob, size_t first, size_t max)
{
	struct tally tally = compare_all(path, glob, first, max);

	print_message("# %s: %zu functions, %zu instructions, %zu exits, %zu depths, %zu "
		      "indirect jumps, %zu unsure\n",
		      path, tally.functions, tally.insns, tally.exits, tally.depths,
		      tally.indirect, tally.unsure);
	assert_true(tally.functions > 0 && tally.depths > 0);
	assert_true(!has_objdump || (tally.insns > 100 && tally.exits > 0));
	assert_int_equal(tally.faults, 0);
	assert_int_equal(tally.bad_bytes, 0);
}

static char *library_of(const void *symbol)
{
	Dl_info info;

	assert_true(dladdr(symbol, &info) != 0);
	return realpath(info.dli_fname, NULL);
}

static void libc_like_others(void **state)
{
	PM_AUTO_FREE char *path = library_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));

	assert_non_null(path);
	for (size_t first = 0; first < 1600; first += 400)
		check_file(path, "*", first, 60);
}

static void own_program_like_others(void **state)
{
	PM_AUTO_FREE char *path = realpath("/proc/self/exe", NULL);

	if (!has_objdump) {
		print_message("# clang's CFI for aarch64 is that of calls alone\n");
		skip();
	}
	assert_non_null(path);
	check_file(path, "*", 0, 80);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libc_like_others),
		cmocka_unit_test(own_program_like_others),
	};

	/* By hand: all functions of a file. */
	if (argc > 2) {
		check_file(argv[1], argv[2], 0, SIZE_MAX);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

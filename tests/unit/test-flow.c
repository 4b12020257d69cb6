/* SPDX-License-Identifier: MIT */
/* The flow of control in functions: against what objdump(1) reads in libraries and programs of
 * this machine, against functions whose ends are known, and with bytes that are nothing. */
#include "src/count/flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include <cmocka.h>

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
	size_t functions, insns, exits, indirect, unsure, bad_bytes, faults;
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

	print_message("# %s: %zu functions, %zu instructions, %zu exits, %zu indirect "
		      "jumps, %zu unsure\n",
		      path, tally.functions, tally.insns, tally.exits, tally.indirect,
		      tally.unsure);
	assert_true(tally.functions > 0 && tally.insns > 100 && tally.exits > 0);
	assert_int_equal(tally.faults, 0);
	assert_int_equal(tally.bad_bytes, 0);
}

static char *library_of(const void *symbol)
{
	Dl_info info;

	assert_true(dladdr(symbol, &info) != 0);
	return realpath(info.dli_fname, NULL);
}

#ifdef __x86_64__
static void libc_like_objdump(void **state)
{
	PM_AUTO_FREE char *path = library_of(dlsym(RTLD_DEFAULT, "qsort"));

	assert_non_null(path);
	for (size_t first = 0; first < 1600; first += 400)
		check_file(path, "*", first, 60);
}

static void own_program_like_objdump(void **state)
{
	PM_AUTO_FREE char *path = realpath("/proc/self/exe", NULL);

	assert_non_null(path);
	check_file(path, "*", 0, 80);
}
#endif

/* ---- bytes ----------------------------------------------------------------------------------- */

#define BASE 0x1000
#define FAR  0x11223344

struct memory {
	const uint8_t *code;
	size_t len;
	uint64_t table[4]; /* at 0x8000 */
};

static bool read_memory(void *user, uint64_t address, void *ret, size_t len)
{
	const struct memory *memory = user;
	const uint8_t *from = memory->code;
	uint64_t base = BASE;
	size_t have = memory->len;

	if (address >= 0x8000) {
		from = (const uint8_t *)memory->table;
		base = 0x8000;
		have = sizeof(memory->table);
	}
	if (address < base || address - base > have || len > have - (address - base))
		return false;
	memcpy(ret, from + (address - base), len);
	return true;
}

struct read {
	struct memory memory;
	struct pm_flow flow;
	pm_places places;
	struct pm_flow_doubts doubts;
};

static void read_bytes(struct read *read, const uint8_t *code, size_t len)
{
	struct pm_flow_source source = { .machine = EM_X86_64,
					 .is_64 = true,
					 .read = read_memory,
					 .user = &read->memory };
	struct pm_probe_piece whole = { BASE, BASE + len };

	read->memory.code = code;
	read->memory.len = len;
	assert_int_equal(pm_flow_open(&read->flow, &source, &whole, NULL, 0, true), 0);
	assert_int_equal(
		pm_flow_function_places(&read->flow, &read->places, &read->doubts), 0);
}

static void read_release(struct read *read)
{
	pm_vec_release(&read->places);
	pm_flow_close(&read->flow);
}

/* One line for each place: "entry 4 sp 0 cheap again if 5". */
static void assert_places(const uint8_t *code, size_t len, const char *expected)
{
	static const char *const kinds[] = { "entry", "exit", "in", "out" };
	struct read read = { 0 };
	struct pm_str str = { 0 };

	read_bytes(&read, code, len);
	for (size_t i = 0; i < read.places.len; i++) {
		const struct pm_place *place = &read.places.data[i];

		pm_str_printf(&str, "%s%s %u sp ", i > 0 ? ", " : "", kinds[place->kind],
			      (unsigned int)(place->address - BASE));
		if (place->sp_known)
			pm_str_printf(&str, "%u", place->sp_offset);
		else
			pm_str_puts(&str, "?");
		pm_str_puts(&str, place->cheap ? " cheap" : "");
		pm_str_puts(&str, place->again ? " again" : "");
		if (place->condition)
			pm_str_printf(&str, " if %u", place->condition);
	}
	if (read.doubts.indirect > 0)
		pm_str_puts(&str, ", unsure");
	assert_string_equal(str.data, expected);
	pm_str_release(&str);
	read_release(&read);
}

#define PLACES(expected, ...)                                   \
	do {                                                    \
		static const uint8_t code_[] = { __VA_ARGS__ }; \
		assert_places(code_, sizeof(code_), expected);  \
	} while (0)

static void entries_are_moved(void **state)
{
	/* endbr64; push %rbx; pop %rbx; ret */
	PLACES("entry 4 sp 0 cheap, exit 6 sp 0", 0xf3, 0x0f, 0x1e, 0xfa, 0x53, 0x5b,
	       0xc3);
	/* sub $24, %rsp; call; add $24, %rsp; ret */
	PLACES("entry 4 sp 24 cheap, exit 13 sp 0", 0x48, 0x83, 0xec, 0x18, 0xe8, 0x44,
	       0x33, 0x22, 0x11, 0x48, 0x83, 0xc4, 0x18, 0xc3);
	/* mov %rdi, (%rsi), which may fault; push %rbx; pop %rbx; ret */
	PLACES("entry 0 sp 0, exit 5 sp 0", 0x48, 0x89, 0x3e, 0x53, 0x5b, 0xc3);
	/* xor %eax, %eax; push %rbx, which is jumped to; pop %rbx; jmp to the push */
	PLACES("entry 0 sp 0", 0x31, 0xc0, 0x53, 0x5b, 0xeb, 0xfc);
	/* sub $1, %edi; jne to it; ret */
	PLACES("entry 3 sp 0 cheap again, exit 5 sp 0", 0x83, 0xef, 0x01, 0x75, 0xfb,
	       0xc3);
	/* A jump is all there is. */
	PLACES("entry 0 sp 0 cheap, exit 0 sp 0 cheap", 0xe9, 0x44, 0x33, 0x22, 0x11);
}

static void jumps_out_are_exits(void **state)
{
	/* test %edi, %edi; je far away; ret */
	PLACES("entry 0 sp 0, exit 2 sp 0 cheap if 5, exit 8 sp 0", 0x85, 0xff, 0x0f,
	       0x84, 0x44, 0x33, 0x22, 0x11, 0xc3);
	/* mov (%rdi), %rax; jmp *0x10(%rax) */
	PLACES("entry 0 sp 0, exit 3 sp 0", 0x48, 0x8b, 0x07, 0xff, 0x60, 0x10);
	/* push %rbx; jmp *%rax: to somewhere inside, for the stack is not given back */
	PLACES("entry 0 sp 0 cheap", 0x53, 0xff, 0xe0);
	/* jmp *0x9000(, %rdi, 8): a table that cannot be read */
	PLACES("entry 0 sp 0, exit 0 sp 0, unsure", 0xff, 0x24, 0xfd, 0x00, 0x90, 0x00,
	       0x00);
	/* push %rbp; mov %rsp, %rbp; and $-32, %rsp; leave; jmp far away */
	PLACES("entry 0 sp 0 cheap, exit 9 sp 0 cheap", 0x55, 0x48, 0x89, 0xe5, 0x48,
	       0x83, 0xe4, 0xe0, 0xc9, 0xe9, 0x44, 0x33, 0x22, 0x11);
	/* xor %eax, %eax; and on into what lies behind */
	PLACES("entry 0 sp 0, exit 2 sp 0", 0x31, 0xc0);
	/* xor %eax, %eax; ud2 */
	PLACES("entry 0 sp 0", 0x31, 0xc0, 0x0f, 0x0b);
	/* ret $8 */
	PLACES("entry 0 sp 0, exit 0 sp 0", 0xc2, 0x08, 0x00);
}

static void tables_are_read(void **state)
{
	/* jmp *0x8000(, %rdi, 8); ret; xor %eax, %eax; ret; ret */
	static const uint8_t code[] = { 0xff, 0x24, 0xfd, 0x00, 0x80, 0x00,
					0x00, 0xc3, 0x31, 0xc0, 0xc3, 0xc3 };
	struct read read = { .memory.table = { BASE + 7, BASE + 8, BASE + 11,
					       BASE + 900 } };

	read_bytes(&read, code, sizeof(code));
	assert_int_equal(read.flow.indirect.len, 1);
	assert_int_equal(read.flow.indirect.data[0].kind, PM_FLOW_TABLE);
	assert_int_equal(read.flow.indirect.data[0].targets.len, 3);
	assert_int_equal(read.doubts.indirect, 0);
	assert_int_equal(read.places.len, 4);
	read_release(&read);
}

static void ranges_have_all_edges(void **state)
{
	/* 0: xor %eax, %eax; 2: add %edi, %eax; 4: jne 9; 6: dec %edi; 8: nop; 9: test %edi,
	 * %edi; b: jne 2; d: ret */
	static const uint8_t code[] = { 0x31, 0xc0, 0x01, 0xf8, 0x75, 0x03, 0xff,
					0xcf, 0x90, 0x85, 0xff, 0x75, 0xf5, 0xc3 };
	struct pm_probe_piece ranges[] = { { BASE + 2, BASE + 8 } };
	struct read read = { 0 };

	read_bytes(&read, code, sizeof(code));
	pm_vec_clear(&read.places);
	assert_int_equal(
		pm_flow_range_places(&read.flow, ranges, 1, &read.places, &read.doubts),
		0);
	assert_int_equal(read.places.len, 3);
	assert_int_equal(read.places.data[0].address, BASE + 2);
	assert_int_equal(read.places.data[0].kind, PM_PLACE_IN);
	assert_int_equal(read.places.data[1].address, BASE + 8);
	assert_int_equal(read.places.data[1].kind, PM_PLACE_OUT);
	assert_int_equal(read.places.data[2].address, BASE + 9);
	assert_int_equal(read.places.data[2].kind, PM_PLACE_OUT);
	pm_vec_clear(&read.places);
	/* The end of it, from the middle of the loop on. */
	ranges[0] = (struct pm_probe_piece){ BASE + 9, BASE + 14 };
	assert_int_equal(
		pm_flow_range_places(&read.flow, ranges, 1, &read.places, &read.doubts),
		0);
	assert_int_equal(read.places.len, 3);
	assert_int_equal(read.places.data[0].address, BASE + 2);
	assert_int_equal(read.places.data[0].kind, PM_PLACE_OUT);
	assert_int_equal(read.places.data[1].address, BASE + 9);
	assert_int_equal(read.places.data[1].kind, PM_PLACE_IN);
	assert_int_equal(read.places.data[2].address, BASE + 13);
	assert_int_equal(read.places.data[2].kind, PM_PLACE_OUT);
	read_release(&read);
}

/* 0: xor %eax, %eax; 2: je 6; 4: dec %edi; 6: inc %edi; 8: jne 4; a: call *%rax; c: ret */
static const uint8_t ways[] = { 0x31, 0xc0, 0x74, 0x02, 0xff, 0xcf, 0xff,
				0xc7, 0x75, 0xfa, 0xff, 0xd0, 0xc3 };

/* What comes in from outside alone begins anew; not so what may come from inside, or where an
 * exception may be caught. */
static void ranges_begin_anew(void **state)
{
	static const struct {
		uint64_t from, to, in;
		bool fresh;
	} rows[] = {
		{ 0, 2, 0, true },
		{ 4, 6, 4, true }, /* by a jump from behind, too */
		{ 4, 10, 4, false },
		{ 12, 13, 12, false },
	};
	struct read read = { 0 };

	read_bytes(&read, ways, sizeof(ways));
	for (size_t i = 0; i < PM_ARRAY_LEN(rows); i++) {
		struct pm_probe_piece range = { BASE + rows[i].from, BASE + rows[i].to };
		bool found = false;

		pm_vec_clear(&read.places);
		assert_int_equal(pm_flow_range_places(&read.flow, &range, 1, &read.places,
						      &read.doubts),
				 0);
		for (size_t n = 0; n < read.places.len; n++) {
			const struct pm_place *place = &read.places.data[n];

			if (place->kind != PM_PLACE_IN ||
			    place->address != BASE + rows[i].in)
				continue;
			found = true;
			assert_int_equal(place->fresh, rows[i].fresh);
		}
		assert_true(found);
	}
	read_release(&read);
}

static void assert_straight(uint64_t low, uint64_t high, uint64_t lent_to, uint64_t end)
{
	struct pm_probe_piece range = { BASE + low, BASE + high };
	struct pm_probe_piece lent = { BASE + high, BASE + lent_to };
	pm_pieces pieces = { 0 };
	struct read read = { 0 };

	read_bytes(&read, ways, sizeof(ways));
	assert_int_equal(pm_vec_push(&pieces, range), 0);
	assert_int_equal(pm_flow_add_straight(&read.flow, &pieces, &lent, 1), 0);
	assert_int_equal(pieces.data[pieces.len - 1].high, BASE + end);
	pm_vec_release(&pieces);
	read_release(&read);
}

/* Code of other lines belongs to the one before it up to where others come to it. */
static void lent_code_is_straight(void **state)
{
	/* The dec at 4 is jumped to from 8: outside, or inside. */
	assert_straight(0, 2, 8, 4);
	assert_straight(0, 2, 10, 10);
	assert_straight(8, 10, 13, 13);
	/* The inc at 6 is jumped to from 2. */
	assert_straight(4, 6, 8, 6);
}

static void conditions_are_flags(void **state)
{
	static const struct {
		uint8_t condition;
		uint64_t yes, no;
	} rows[] = {
		{ 0, 0, UINT64_MAX }, /* always */
		{ 1 + 0, 0x800, 0 }, /* o */
		{ 1 + 1, 0, 0x800 }, /* no */
		{ 1 + 2, 1, 0x840 }, /* b */
		{ 1 + 4, 0x40, 1 }, /* e */
		{ 1 + 5, 1, 0x40 }, /* ne */
		{ 1 + 6, 1, 0x880 }, /* be */
		{ 1 + 7, 0, 0x41 }, /* a */
		{ 1 + 8, 0x80, 0x800 }, /* s */
		{ 1 + 10, 4, 0x80 }, /* p */
		{ 1 + 12, 0x80, 0x880 }, /* l */
		{ 1 + 13, 0x880, 0x800 }, /* ge */
		{ 1 + 14, 0x40, 0x880 }, /* le */
		{ 1 + 15, 0x880, 0x40 }, /* g */
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(rows); i++) {
		struct pm_place place = { .condition = rows[i].condition };

		assert_true(pm_place_leaves(&place, rows[i].yes));
		if (rows[i].condition > 0)
			assert_false(pm_place_leaves(&place, rows[i].no));
	}
}

static void any_bytes_are_read(void **state)
{
	uint8_t code[200];
	uint64_t seed = 88172645463325252;

	for (int round = 0; round < 300; round++) {
		struct read read = { 0 };
		uint64_t end = BASE;

		for (size_t i = 0; i < sizeof(code); i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			code[i] = (uint8_t)seed;
		}
		read_bytes(&read, code, sizeof(code));
		for (size_t i = 0; i < read.flow.insns.len; i++) {
			assert_int_equal(read.flow.insns.data[i].address, end);
			assert_true(read.flow.insns.data[i].len > 0);
			end += read.flow.insns.data[i].len;
		}
		assert_int_equal(end, BASE + sizeof(code));
		read_release(&read);
	}
}

static void other_machines_are_refused(void **state)
{
	struct memory memory = { .code = (const uint8_t *)"\xc0\x03\x5f\xd6", .len = 4 };
	struct pm_flow_source source = {
		.machine = EM_AARCH64, .is_64 = true, .read = read_memory, .user = &memory
	};
	struct pm_probe_piece whole = { BASE, BASE + 4 };
	struct pm_flow flow;

	assert_int_equal(pm_flow_open(&flow, &source, &whole, NULL, 0, true),
			 -EOPNOTSUPP);
	source.machine = EM_X86_64;
	whole.high += 1;
	assert_int_equal(pm_flow_open(&flow, &source, &whole, NULL, 0, true), -ENODATA);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(libc_like_objdump),
		cmocka_unit_test(own_program_like_objdump),
#endif
		cmocka_unit_test(entries_are_moved),
		cmocka_unit_test(jumps_out_are_exits),
		cmocka_unit_test(tables_are_read),
		cmocka_unit_test(ranges_have_all_edges),
		cmocka_unit_test(ranges_begin_anew),
		cmocka_unit_test(lent_code_is_straight),
		cmocka_unit_test(conditions_are_flags),
		cmocka_unit_test(any_bytes_are_read),
		cmocka_unit_test(other_machines_are_refused),
	};

	/* By hand: all functions of a file. */
	if (argc > 2) {
		check_file(argv[1], argv[2], 0, SIZE_MAX);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The flow of control in functions of a few bytes, whose ends are known; and in bytes that are
 * nothing. Those of real files: test-flow.c. */
#include "src/count/flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <string.h>

#include <cmocka.h>

#define BASE 0x1000
#define FAR  0x11223344

struct memory {
	const uint8_t *code;
	size_t len;
	uint64_t table[4]; /* at 0x8000 */
	struct pm_probe_piece part;
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

static bool part_of_memory(void *user, uint64_t address, struct pm_probe_piece *ret)
{
	const struct memory *memory = user;

	*ret = memory->part;
	return address >= memory->part.low && address < memory->part.high;
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
	/* ret; and what nobody leads to does not go on behind */
	PLACES("entry 0 sp 0, exit 0 sp 0", 0xc3, 0x5b);
	/* xor %eax, %eax; ud2 */
	PLACES("entry 0 sp 0", 0x31, 0xc0, 0x0f, 0x0b);
	/* ret $8 */
	PLACES("entry 0 sp 0, exit 0 sp 0", 0xc2, 0x08, 0x00);
}

static void stacks_are_followed(void **state)
{
	/* test %edi, %edi; je behind the push; push %rbx; jmp far away: from both */
	PLACES("entry 2 sp 0 cheap, exit 5 sp ? cheap", 0x85, 0xff, 0x74, 0x01, 0x53,
	       0xe9, 0x44, 0x33, 0x22, 0x11);
	/* push %rbx; call; push %rbx; call; pop %rbx twice; ret; and what catches: pop %rbx
	 * twice; jmp far away */
	PLACES("entry 0 sp 0 cheap, exit 14 sp 0, exit 17 sp 0 cheap", 0x53, 0xe8, 0x44,
	       0x33, 0x22, 0x11, 0x53, 0xe8, 0x44, 0x33, 0x22, 0x11, 0x5b, 0x5b, 0xc3,
	       0x5b, 0x5b, 0xe9, 0x44, 0x33, 0x22, 0x11);
	/* pushfq; popfq; jmp far away */
	PLACES("entry 0 sp 0, exit 2 sp 0 cheap", 0x9c, 0x9d, 0xe9, 0x44, 0x33, 0x22,
	       0x11);
	/* push %rbp; mov %rsp, %rbp; pop %rbp; leave, of whatever it was; jmp far away */
	PLACES("entry 0 sp 0 cheap, exit 6 sp ? cheap", 0x55, 0x48, 0x89, 0xe5, 0x5d,
	       0xc9, 0xe9, 0x44, 0x33, 0x22, 0x11);
}

/* In code that the disassembler is too old for, too. */
static void lengths_are_known(void **state)
{
	/* vaddph %zmm1, %zmm0, %zmm0; ret */
	PLACES("entry 0 sp 0, exit 6 sp 0", 0x62, 0xf5, 0x7c, 0x48, 0x58, 0xc1, 0xc3);
	/* endbr64; push %r12; pop %r12; ret */
	PLACES("entry 4 sp 0 cheap, exit 8 sp 0", 0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x54,
	       0x41, 0x5c, 0xc3);
}

/* lea 0x8000(%rip), %rdx; mov %rdx, %rcx; movslq (%rcx, %rdi, 4), %rax; add %rcx, %rax; mov
 * %rax, %rsi; jmp *%rsi; ret; xor %eax, %eax; ret */
static void tables_of_distances_are_read(void **state)
{
	static const uint8_t code[] = { 0x48, 0x8d, 0x15, 0xf9, 0x6f, 0x00, 0x00,
					0x48, 0x89, 0xd1, 0x48, 0x63, 0x04, 0xb9,
					0x48, 0x01, 0xc8, 0x48, 0x89, 0xc6, 0xff,
					0xe6, 0xc3, 0x31, 0xc0, 0xc3 };
	struct read read = { .memory.table = { (uint32_t)(BASE + 22 - 0x8000) |
					       (uint64_t)(uint32_t)(BASE + 23 - 0x8000)
						       << 32 } };

	read_bytes(&read, code, sizeof(code));
	assert_int_equal(read.flow.indirect.len, 1);
	assert_int_equal(read.flow.indirect.data[0].kind, PM_FLOW_TABLE);
	assert_int_equal(read.flow.indirect.data[0].targets.len, 2);
	assert_int_equal(read.flow.indirect.data[0].targets.data[1], BASE + 23);
	assert_int_equal(read.places.len, 3);
	read_release(&read);
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

/* The function is what is before @at, the rest a part with its name or (@named false) without. */
static size_t pieces_with_part(const uint8_t *code, size_t len, size_t at, bool named,
			       bool own_name)
{
	struct memory memory = { .code = code, .len = len };
	struct pm_flow_source source = { .machine = EM_X86_64,
					 .is_64 = true,
					 .read = read_memory,
					 .part = named ? NULL : part_of_memory,
					 .user = &memory };
	struct pm_probe_piece whole = { BASE, BASE + at };
	struct pm_probe_piece part = { BASE + at, BASE + len };
	struct pm_flow flow;
	size_t pieces;

	memory.part = part;
	assert_int_equal(pm_flow_open(&flow, &source, &whole, &part, named, own_name), 0);
	pieces = flow.pieces.len;
	pm_flow_close(&flow);
	return pieces;
}

static void parts_are_joined(void **state)
{
	/* ret, and elsewhere what only an exception leads to: pop %rbx; ret */
	static const uint8_t caught[] = { 0xc3, 0x5b, 0xc3 };
	/* call of the part; ret; and it: ret */
	static const uint8_t called[] = { 0xe8, 0x01, 0x00, 0x00, 0x00, 0xc3, 0xc3 };
	/* jmp to the part; ret; and it: ret, or jmp to the ret before */
	static const uint8_t jumped[] = { 0xeb, 0x01, 0xc3, 0xc3 };
	static const uint8_t back[] = { 0xeb, 0x01, 0xc3, 0xeb, 0xfd };
	/* push %rbx; jmp to the part; and it: pop %rbx; ret */
	static const uint8_t deep[] = { 0x53, 0xeb, 0x00, 0x5b, 0xc3 };

	assert_int_equal(pieces_with_part(caught, 3, 1, true, true), 2);
	assert_int_equal(pieces_with_part(caught, 3, 1, true, false), 1);
	assert_int_equal(pieces_with_part(called, 7, 6, true, true), 1);
	assert_int_equal(pieces_with_part(jumped, 4, 3, true, false), 2);
	/* Without a name it could be another function, but for what it does. */
	assert_int_equal(pieces_with_part(jumped, 4, 3, false, false), 1);
	assert_int_equal(pieces_with_part(back, 5, 3, false, false), 2);
	assert_int_equal(pieces_with_part(deep, 5, 3, false, false), 2);
}

static void unseen_exits_are_told(void **state)
{
	/* jrcxz far away; ret */
	static const uint8_t counted[] = { 0xe3, 0x70, 0xc3 };
	/* lea 5(%rip), %rdx: the rets; add %rdi, %rdx; jmp *%rdx, which may lead to any of them */
	static const uint8_t unrolled[] = { 0x48, 0x8d, 0x15, 0x05, 0x00, 0x00, 0x00,
					    0x48, 0x01, 0xfa, 0xff, 0xe2, 0xc3, 0xc3 };
	struct read read = { 0 };

	read_bytes(&read, counted, sizeof(counted));
	assert_int_equal(read.doubts.conditions, 1);
	assert_int_equal(read.places.len, 2);
	read_release(&read);
	read = (struct read){ 0 };
	read_bytes(&read, unrolled, sizeof(unrolled));
	assert_int_equal(read.flow.indirect.data[0].kind, PM_FLOW_TABLE);
	assert_int_equal(read.places.len, 3);
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

static void assert_in(const uint8_t *code, size_t len, uint64_t from, uint64_t to,
		      enum pm_place_kind kind, uint64_t at, bool fresh)
{
	struct pm_probe_piece range = { BASE + from, BASE + to };
	struct read read = { 0 };
	size_t found = 0;

	read_bytes(&read, code, len);
	pm_vec_clear(&read.places);
	assert_int_equal(
		pm_flow_range_places(&read.flow, &range, 1, &read.places, &read.doubts),
		0);
	for (size_t i = 0; i < read.places.len; i++) {
		const struct pm_place *place = &read.places.data[i];

		if (place->kind != kind || place->address != BASE + at)
			continue;
		found++;
		assert_int_equal(place->fresh, fresh);
	}
	assert_int_equal(found, 1);
	read_release(&read);
}

static bool catches_nothing(void *user, uint64_t address)
{
	return false;
}

/* Where no exception is caught, what is behind a call comes from that. */
static void calls_come_back(void **state)
{
	struct memory memory = { .code = ways, .len = sizeof(ways) };
	struct pm_flow_source source = { .machine = EM_X86_64,
					 .is_64 = true,
					 .read = read_memory,
					 .catches = catches_nothing,
					 .user = &memory };
	struct pm_probe_piece whole = { BASE, BASE + sizeof(ways) };
	struct pm_probe_piece range = { BASE + 12, BASE + 13 };
	struct pm_flow_doubts doubts = { 0 };
	pm_places places = { 0 };
	struct pm_flow flow;

	assert_int_equal(pm_flow_open(&flow, &source, &whole, NULL, 0, true), 0);
	assert_int_equal(pm_flow_range_places(&flow, &range, 1, &places, &doubts), 0);
	assert_true(places.len > 0 && places.data[0].fresh);
	pm_vec_release(&places);
	pm_flow_close(&flow);
}

/* What nobody is known to lead to may be come to from anywhere. */
static void ranges_have_hidden_ways(void **state)
{
	/* call; ret; and what catches: pop %rbx; ret */
	static const uint8_t caught[] = {
		0xe8, 0x44, 0x33, 0x22, 0x11, 0xc3, 0x5b, 0xc3
	};
	/* push %rbx; je 5; 3: jmp *%rax, to somewhere inside; 5: pop %rbx; ret */
	static const uint8_t pointed[] = { 0x53, 0x74, 0x02, 0xff, 0xe0, 0x5b, 0xc3 };
	/* jmp over the prefix of lock incq (%rdi); ret */
	static const uint8_t prefix[] = { 0xeb, 0x01, 0xf0, 0x48, 0xff, 0x07, 0xc3 };

	assert_in(caught, sizeof(caught), 0, 6, PM_PLACE_OUT, 6, false);
	assert_in(caught, sizeof(caught), 6, 8, PM_PLACE_IN, 6, false);
	assert_in(pointed, sizeof(pointed), 3, 7, PM_PLACE_IN, 3, false);
	assert_in(pointed, sizeof(pointed), 5, 7, PM_PLACE_IN, 5, true);
	assert_in(prefix, sizeof(prefix), 2, 6, PM_PLACE_IN, 2, true);
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
		.machine = EM_RISCV, .is_64 = true, .read = read_memory, .user = &memory
	};
	struct pm_probe_piece whole = { BASE, BASE + 4 };
	struct pm_flow flow;

	assert_int_equal(pm_flow_open(&flow, &source, &whole, NULL, 0, true),
			 -EOPNOTSUPP);
	source.machine = EM_X86_64;
	whole.high += 1;
	assert_int_equal(pm_flow_open(&flow, &source, &whole, NULL, 0, true), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_moved),
		cmocka_unit_test(jumps_out_are_exits),
		cmocka_unit_test(stacks_are_followed),
		cmocka_unit_test(lengths_are_known),
		cmocka_unit_test(tables_are_read),
		cmocka_unit_test(tables_of_distances_are_read),
		cmocka_unit_test(parts_are_joined),
		cmocka_unit_test(unseen_exits_are_told),
		cmocka_unit_test(ranges_have_all_edges),
		cmocka_unit_test(ranges_begin_anew),
		cmocka_unit_test(ranges_have_hidden_ways),
		cmocka_unit_test(calls_come_back),
		cmocka_unit_test(lent_code_is_straight),
		cmocka_unit_test(conditions_are_flags),
		cmocka_unit_test(any_bytes_are_read),
		cmocka_unit_test(other_machines_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What every room stands on: errors, ownership, vectors, index, texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* ---- errors -------------------------------------------------------------------------- */

static char *printed(const struct pm_error *err)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	assert_non_null(to);
	pm_error_print(err, "prog", to);
	fclose(to);
	return text;
}

static void expect_printed(const struct pm_error *err, const char *expected)
{
	PM_AUTO_FREE char *text = printed(err);

	assert_string_equal(text, expected);
}

static void errors_say_what_where_and_the_remedy(void **state)
{
	struct pm_error err;

	memset(&err, 'x', sizeof(err));
	assert_int_equal(pm_error_set(&err, -EINVAL, "bad %s", "thing"), -EINVAL);
	assert_int_equal(err.code, -EINVAL);
	assert_int_equal(err.offset, -1);
	expect_printed(&err, "prog: bad thing\n");
	pm_error_where(&err, "file", -1);
	expect_printed(&err, "prog: file: bad thing\n");
	pm_error_where(&err, "file", 0);
	expect_printed(&err, "prog: file:0: bad thing\n");
	pm_error_fix(&err, "use %d", 7);
	expect_printed(&err, "prog: file:0: bad thing\nprog: try: use 7\n");
	/* A new failure has nothing of the old one's. */
	pm_error_set(&err, -EIO, "other");
	expect_printed(&err, "prog: other\n");
	assert_string_equal(err.fix, "");
}

static void errors_may_be_left_out(void **state)
{
	assert_int_equal(pm_error_set(NULL, -EIO, "x"), -EIO);
	pm_error_where(NULL, "x", 1);
	pm_error_fix(NULL, "x");
}

static void errors_may_wrap_themselves(void **state)
{
	struct pm_error err;

	pm_error_set(&err, -EIO, "inner");
	pm_error_where(&err, "source", -1);
	pm_error_fix(&err, "fix");
	pm_error_set(&err, -EIO, "outer: %s of %s (%s)", err.text, err.source, err.fix);
	assert_string_equal(err.text, "outer: inner of source (fix)");
	pm_error_where(&err, err.text + 7, -1);
	assert_string_equal(err.source, "inner of source (fix)");
	pm_error_where(&err, err.source + 6, -1);
	assert_string_equal(err.source, "of source (fix)");
	pm_error_fix(&err, "once");
	pm_error_fix(&err, "%s and again", err.fix);
	assert_string_equal(err.fix, "once and again");
}

static void errors_are_cut_and_made_safe(void **state)
{
	char big[PM_ERROR_TEXT_MAX * 2];
	struct pm_error err;

	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	pm_error_set(&err, -EIO, "%s", big);
	pm_error_where(&err, big, -1);
	pm_error_fix(&err, "%s", big);
	assert_int_equal(strlen(err.text), PM_ERROR_TEXT_MAX - 1);
	assert_int_equal(strlen(err.source), PM_ERROR_SOURCE_MAX - 1);
	assert_int_equal(strlen(err.fix), PM_ERROR_FIX_MAX - 1);
	pm_error_set(&err, -EIO, "a\nb");
	pm_error_where(&err, "\x1b[2J", -1);
	pm_error_fix(&err, "\xff");
	expect_printed(&err, "prog: \\x1b[2J: a\\x0ab\nprog: try: \xef\xbf\xbd\n");
}

/* ---- ownership ----------------------------------------------------------------------- */

static void cleanups_keep_errno_and_take_hands_over(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), taken;
	char *pointer = malloc(1), *mine;

	{
		PM_AUTO_CLOSE int owned = fd;
		PM_AUTO_FREE char *text = pointer;

		taken = pm_take_fd(&owned);
		mine = PM_TAKE_PTR(text);
		assert_int_equal(owned, -1);
		assert_null(text);
	}
	assert_int_equal(taken, fd);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_ptr_equal(mine, pointer);
	free(mine);
	errno = 77;
	{
		PM_AUTO_CLOSE int owned = taken;
		PM_AUTO_CLOSE int none = -1;
		PM_AUTO_FCLOSE FILE *no_file = NULL;

		(void)owned;
		(void)none;
		(void)no_file;
	}
	assert_int_equal(errno, 77);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* ---- vectors ------------------------------------------------------------------------- */

static void vectors_grow_and_keep_what_they_hold(void **state)
{
	PM_VEC(uint64_t) vec = { 0 };
	uint64_t next = 0;

	for (int i = 0; i < 100000; i++)
		assert_int_equal(pm_vec_push(&vec, next++), 0);
	assert_int_equal(next, 100000); /* evaluated once each */
	assert_int_equal(vec.len, 100000);
	assert_true(vec.cap >= vec.len && vec.cap < 4 * vec.len);
	for (uint64_t i = 0; i < vec.len; i++)
		assert_int_equal(vec.data[i], i);
	uint64_t *before = vec.data;

	pm_vec_clear(&vec);
	assert_int_equal(pm_vec_reserve(&vec, 100000), 0);
	assert_ptr_equal(vec.data, before);
	pm_vec_release(&vec);
	assert_null(vec.data);
	assert_int_equal(vec.cap, 0);
	pm_vec_release(&vec);
}

static void vectors_of_nothing_have_a_place(void **state)
{
	PM_VEC(int) vec = { 0 };

	assert_int_equal(pm_vec_reserve(&vec, 0), 0);
	assert_non_null(vec.data);
	pm_vec_release(&vec);
}

static void vectors_that_cannot_be_stay_as_they_are(void **state)
{
	PM_VEC(uint64_t) vec = { 0 };
	size_t cap;

	assert_int_equal(pm_vec_reserve(&vec, SIZE_MAX), -ENOMEM);
	assert_int_equal(pm_vec_reserve(&vec, SIZE_MAX / 2 + 2), -ENOMEM);
	/* Fits a size_t in elements, but not in bytes. */
	assert_int_equal(pm_vec_reserve(&vec, SIZE_MAX / 8), -ENOMEM);
	assert_null(vec.data);
	assert_int_equal(vec.cap, 0);
	assert_int_equal(pm_vec_push(&vec, 7), 0);
	cap = vec.cap;
	assert_int_equal(pm_vec_reserve(&vec, SIZE_MAX / 4), -ENOMEM);
	assert_int_equal(vec.cap, cap);
	assert_int_equal(vec.data[0], 7);
	pm_vec_release(&vec);
}

/* ---- index --------------------------------------------------------------------------- */

static bool equal_number(const void *table, uint32_t id, const void *key)
{
	return ((const uint64_t *)table)[id] == *(const uint64_t *)key;
}

enum {
	NUMBERS = 20000,
};

/* @hash of the number i: good, or as bad as can be. */
static void check_index(uint64_t (*hash)(uint64_t), uint32_t count)
{
	PM_AUTO_FREE uint64_t *table = calloc(NUMBERS, sizeof(*table));
	struct pm_index index = { 0 };
	uint64_t key;

	assert_non_null(table);
	for (uint32_t i = 0; i < count; i++) {
		table[i] = i * 3;
		assert_int_equal(pm_index_find(&index, hash(table[i]), equal_number,
					       table, &table[i]),
				 PM_INDEX_NONE);
		assert_int_equal(pm_index_add(&index, hash(table[i]), i), 0);
	}
	assert_int_equal(index.len, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(pm_index_find(&index, hash(table[i]), equal_number,
					       table, &table[i]),
				 i);
	key = 1; /* between the others */
	assert_int_equal(pm_index_find(&index, hash(key), equal_number, table, &key),
			 PM_INDEX_NONE);
	/* Take out two of three: those are gone, the others all found. */
	for (uint32_t i = 0; i < count; i++)
		if (i % 3 != 0)
			assert_true(pm_index_remove(&index, hash(table[i]), i));
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(pm_index_find(&index, hash(table[i]), equal_number,
					       table, &table[i]),
				 i % 3 != 0 ? PM_INDEX_NONE : i);
		if (i % 3 != 0)
			assert_false(pm_index_remove(&index, hash(table[i]), i));
	}
	assert_int_equal(index.len, (count + 2) / 3);
	pm_index_release(&index);
	assert_int_equal(index.cap, 0);
}

static uint64_t good_hash(uint64_t value)
{
	return pm_hash_mix(value, 0);
}

static uint64_t same_hash(uint64_t value)
{
	return 63; /* the last slot: everything wraps */
}

static uint64_t high_hash(uint64_t value)
{
	return value << 32; /* the low half decides */
}

static uint64_t few_hashes(uint64_t value)
{
	return 60 + value % 5;
}

static void index_finds_what_was_added(void **state)
{
	check_index(good_hash, NUMBERS);
}

static void index_bears_collisions(void **state)
{
	check_index(same_hash, 500);
	check_index(high_hash, 500);
	check_index(few_hashes, 500);
}

static void index_of_nothing(void **state)
{
	struct pm_index index = { 0 };
	uint64_t key = 0;

	assert_int_equal(pm_index_find(&index, 0, equal_number, NULL, &key),
			 PM_INDEX_NONE);
	assert_false(pm_index_remove(&index, 0, 0));
	assert_int_equal(pm_index_add(&index, 0, PM_INDEX_NONE), -ENOMEM);
	assert_int_equal(pm_index_add(&index, 0, 0), 0);
	assert_false(pm_index_remove(&index, 0, PM_INDEX_NONE));
	assert_true(pm_index_remove(&index, 0, 0));
	pm_index_release(&index);
	pm_index_release(&index);
}

/* Adds and removes without end must not fill the table up. */
static void index_churns_in_place(void **state)
{
	struct pm_index index = { 0 };
	uint64_t table[30] = { 0 };

	for (uint64_t i = 0; i < 100000; i++) {
		uint32_t id = (uint32_t)(i % PM_ARRAY_LEN(table));

		if (i >= PM_ARRAY_LEN(table))
			assert_true(pm_index_remove(&index, good_hash(table[id]), id));
		table[id] = i;
		assert_int_equal(pm_index_add(&index, good_hash(i), id), 0);
	}
	for (uint32_t id = 0; id < PM_ARRAY_LEN(table); id++)
		assert_int_equal(pm_index_find(&index, good_hash(table[id]), equal_number,
					       table, &table[id]),
				 id);
	assert_int_equal(index.cap, 64);
	pm_index_release(&index);
}

static void hashes_see_every_byte(void **state)
{
	uint8_t bytes[40] = { 0 };

	for (size_t len = 0; len <= sizeof(bytes); len++) {
		uint64_t hash = pm_hash_bytes(bytes, len);

		assert_int_not_equal(hash, pm_hash_bytes(bytes, len + 1 > sizeof(bytes)
									? len - 1
									: len + 1));
		for (size_t i = 0; i < len; i++) {
			bytes[i] = 1;
			assert_int_not_equal(pm_hash_bytes(bytes, len), hash);
			bytes[i] = 0;
		}
	}
}

/* ---- texts --------------------------------------------------------------------------- */

static void texts_are_put_together(void **state)
{
	struct pm_str str PM_CLEANUP(pm_str_release) = { 0 };

	pm_str_append(&str, "", 0);
	assert_string_equal(str.data, "");
	pm_str_puts(&str, "a");
	pm_str_putc(&str, 'b');
	pm_str_append(&str, "cXX", 1);
	pm_str_printf(&str, "-%d-%s-", -5, "x");
	pm_str_u64(&str, 0);
	pm_str_putc(&str, ' ');
	pm_str_u64(&str, UINT64_MAX);
	pm_str_putc(&str, ' ');
	pm_str_hex(&str, 0);
	pm_str_putc(&str, ' ');
	pm_str_hex(&str, UINT64_MAX);
	pm_str_hex(&str, 0x1f);
	assert_false(str.failed);
	assert_string_equal(str.data, "abc--5-x-0 18446744073709551615 0x0 "
				      "0xffffffffffffffff0x1f");
	assert_int_equal(str.len, strlen(str.data));
	pm_str_clear(&str);
	assert_string_equal(str.data, "");
	assert_int_equal(str.len, 0);
}

static void texts_grow_by_every_step(void **state)
{
	struct pm_str str PM_CLEANUP(pm_str_release) = { 0 };

	for (int i = 0; i < 3000; i++) {
		pm_str_printf(&str, "%.*s", i % 20, "xxxxxxxxxxxxxxxxxxxx");
		pm_str_putc(&str, 'y');
		assert_int_equal(strlen(str.data), str.len);
		assert_true(str.len < str.cap);
	}
	assert_false(str.failed);
}

static void texts_that_failed_stay_so(void **state)
{
	struct pm_str str = { 0 };

	pm_str_puts(&str, "kept");
	pm_str_append(&str, "", SIZE_MAX - 2);
	assert_true(str.failed);
	pm_str_puts(&str, "more");
	pm_str_printf(&str, "%d", 1);
	pm_str_json(&str, "x");
	assert_true(str.failed);
	assert_string_equal(str.data, "kept");
	pm_str_clear(&str);
	assert_false(str.failed);
	pm_str_puts(&str, "again");
	assert_string_equal(str.data, "again");
	pm_str_release(&str);
}

/* An independent statement of RFC 3629 §4: decode, then ask for range and shortest form. */
static size_t well_formed(const unsigned char *at, size_t len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t need = at[0] < 0x80             ? 1
		      : (at[0] & 0xe0) == 0xc0 ? 2
		      : (at[0] & 0xf0) == 0xe0 ? 3
		      : (at[0] & 0xf8) == 0xf0 ? 4
					       : 0;
	uint32_t code;

	if (need <= 1)
		return need;
	if (need > len)
		return 0;
	code = at[0] & (0x7f >> need);
	for (size_t i = 1; i < need; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	if (code < least[need] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return need;
}

static void utf8_agrees_with_the_definition(void **state)
{
	static const unsigned char thirds[] = { 0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff };
	unsigned char at[4];

	for (unsigned int first = 0; first < 256; first++)
		for (unsigned int second = 0; second < 256; second++)
			for (size_t i = 0; i < 36; i++)
				for (size_t len = 1; len <= 4; len++) {
					at[0] = (unsigned char)first;
					at[1] = (unsigned char)second;
					at[2] = thirds[i / 6];
					at[3] = thirds[i % 6];
					if (pm_utf8_char((const char *)at, len) !=
					    well_formed(at, len))
						fail_msg("%02x %02x %02x %02x, %zu bytes",
							 at[0], at[1], at[2], at[3], len);
				}
}

static void expect_printable(const char *bytes, size_t len, const char *expected)
{
	struct pm_str str PM_CLEANUP(pm_str_release) = { 0 };

	pm_str_printable(&str, bytes, len);
	assert_string_equal(str.data ? str.data : "", expected);
}

static void expect_json(const char *text, const char *expected)
{
	struct pm_str str PM_CLEANUP(pm_str_release) = { 0 };

	pm_str_json(&str, text);
	assert_string_equal(str.data, expected);
}

static void every_single_byte_is_made_safe(void **state)
{
	for (unsigned int byte = 0; byte < 256; byte++) {
		char text[2] = { (char)byte, '\0' };
		char safe[16], json[16];

		if (byte >= 0x80) {
			strcpy(safe, "\xef\xbf\xbd");
			strcpy(json, "\"\xef\xbf\xbd\"");
		} else if (byte < 0x20 || byte == 0x7f) {
			snprintf(safe, sizeof(safe), "\\x%02x", byte);
			snprintf(json, sizeof(json), "\"\\u%04x\"", byte);
		} else {
			snprintf(safe, sizeof(safe), "%c", byte);
			snprintf(json, sizeof(json), "\"%s%c\"",
				 byte == '"' || byte == '\\' ? "\\" : "", byte);
		}
		expect_printable(text, 1, safe);
		if (byte > 0)
			expect_json(text, json);
	}
}

static void foreign_texts_are_made_safe(void **state)
{
	expect_printable("", 0, "");
	expect_printable("a\0b", 3, "a\\x00b");
	expect_printable("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9,
			 "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
	/* C1: as good as ESC [ for some terminals. */
	expect_printable("\xc2\x9b"
			 "2J\xc2\x80\xc2\x9f\xc2\xa0",
			 10, "\\x9b2J\\x80\\x9f\xc2\xa0");
	/* U+202E and the like turn what follows around. */
	expect_printable("a\xe2\x80\xae"
			 "b\xd8\x9c\xe2\x81\xa6\xe2\x80\xa8",
			 13,
			 "a\xef\xbf\xbd"
			 "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	expect_printable("\xe2\x80\x9c\xd8\x9b", 5, "\xe2\x80\x9c\xd8\x9b");
	/* Cut off, overlong, surrogate: each bad byte is one mark. */
	expect_printable("\xe2\x82", 2, "\xef\xbf\xbd\xef\xbf\xbd");
	expect_printable("\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd");
	expect_json(NULL, "null");
	expect_json("", "\"\"");
	expect_json("a\"b\\c\nd", "\"a\\\"b\\\\c\\u000ad\"");
	expect_json("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		    "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
	expect_json("x\xc2\x9by\xc2\x80\xc2\xa0", "\"x\\u009by\\u0080\xc2\xa0\"");
	expect_json("\xed\xa0\x80!", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd!\"");
	expect_json("a\xff\"\xe2\x82", "\"a\xef\xbf\xbd\\\"\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void numbers_are_taken_whole_or_not(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{ "0", 0 },   { "007", 7 },    { "18446744073709551615", UINT64_MAX },
		{ "0x0", 0 }, { "0XfF", 255 }, { "0xffffffffffffffff", UINT64_MAX },
	};
	static const char *const bad[] = {
		"",
		" 1",
		"1 ",
		"+1",
		"-1",
		"0x",
		"0xg",
		"0x-1",
		"0x 1",
		"0x0x1",
		"1k",
		"ff",
		"1.0",
		"18446744073709551616",
		"0x10000000000000000",
		"1\n",
		"x",
	};
	uint64_t value;

	for (size_t i = 0; i < PM_ARRAY_LEN(good); i++) {
		assert_true(pm_parse_u64(good[i].text, &value));
		assert_int_equal(value, good[i].value);
	}
	for (size_t i = 0; i < PM_ARRAY_LEN(bad); i++) {
		value = 77;
		if (pm_parse_u64(bad[i], &value))
			fail_msg("taken: \"%s\"", bad[i]);
		assert_int_equal(value, 77);
	}
}

static void distances_of_names(void **state)
{
	static const struct {
		const char *a, *b;
		size_t distance;
	} cases[] = {
		{ "", "", 0 },
		{ "", "abc", 3 },
		{ "abc", "", 3 },
		{ "cycles", "cycles", 0 },
		{ "CYCLES", "cycles", 0 },
		{ "cycels", "cycles", 2 },
		{ "cycle", "cycles", 1 },
		{ "xcycles", "cycles", 1 },
		{ "kitten", "sitting", 3 },
		{ "abc", "xyz", 3 },
	};
	char sixty_four[65], sixty_five[66];

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		assert_int_equal(pm_name_distance(cases[i].a, cases[i].b),
				 cases[i].distance);
		assert_int_equal(pm_name_distance(cases[i].b, cases[i].a),
				 cases[i].distance);
	}
	memset(sixty_four, 'a', 64);
	memset(sixty_five, 'a', 65);
	sixty_four[64] = sixty_five[65] = '\0';
	assert_int_equal(pm_name_distance(sixty_four, sixty_four), 0);
	assert_int_equal(pm_name_distance(sixty_four, ""), 64);
	assert_int_equal(pm_name_distance(sixty_five, "a"), SIZE_MAX);
	assert_int_equal(pm_name_distance("a", sixty_five), SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_say_what_where_and_the_remedy),
		cmocka_unit_test(errors_may_be_left_out),
		cmocka_unit_test(errors_may_wrap_themselves),
		cmocka_unit_test(errors_are_cut_and_made_safe),
		cmocka_unit_test(cleanups_keep_errno_and_take_hands_over),
		cmocka_unit_test(vectors_grow_and_keep_what_they_hold),
		cmocka_unit_test(vectors_of_nothing_have_a_place),
		cmocka_unit_test(vectors_that_cannot_be_stay_as_they_are),
		cmocka_unit_test(index_finds_what_was_added),
		cmocka_unit_test(index_bears_collisions),
		cmocka_unit_test(index_of_nothing),
		cmocka_unit_test(index_churns_in_place),
		cmocka_unit_test(hashes_see_every_byte),
		cmocka_unit_test(texts_are_put_together),
		cmocka_unit_test(texts_grow_by_every_step),
		cmocka_unit_test(texts_that_failed_stay_so),
		cmocka_unit_test(utf8_agrees_with_the_definition),
		cmocka_unit_test(every_single_byte_is_made_safe),
		cmocka_unit_test(foreign_texts_are_made_safe),
		cmocka_unit_test(numbers_are_taken_whole_or_not),
		cmocka_unit_test(distances_of_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

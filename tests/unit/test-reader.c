/* SPDX-License-Identifier: MIT */
/* Reading foreign bytes without ever leaving them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/base.h"

#include <string.h>

/* An exact copy on the heap, so that a sanitizer sees one byte too many. */
static uint8_t *exact(const void *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	if (len > 0)
		memcpy(copy, bytes, len);
	return copy;
}

static void reader_reads_in_order(void **state)
{
	static const uint8_t bytes[] = { 1,  2,  3,  4,  5,  6,  7,   8, 9,
					 10, 11, 12, 13, 14, 15, 'a', 0, 99 };
	PM_AUTO_FREE uint8_t *copy = exact(bytes, sizeof(bytes));
	struct pm_reader reader;

	pm_reader_init(&reader, copy, sizeof(bytes));
	assert_int_equal(pm_reader_u8(&reader), 1);
	assert_int_equal(pm_reader_u16(&reader), 0x0302);
	assert_int_equal(pm_reader_u32(&reader), 0x07060504);
	assert_int_equal(pm_reader_u64(&reader), 0x0f0e0d0c0b0a0908);
	assert_string_equal(pm_reader_cstr(&reader), "a");
	assert_int_equal(pm_reader_left(&reader), 1);
	assert_int_equal(pm_reader_u8(&reader), 99);
	assert_non_null(pm_reader_bytes(&reader, 0));
	assert_false(reader.failed);
	assert_int_equal(pm_reader_left(&reader), 0);
	assert_int_equal(pm_reader_u8(&reader), 0);
	assert_true(reader.failed);
}

static void reader_never_leaves_its_bytes(void **state)
{
	PM_AUTO_FREE uint8_t *copy = exact("\1\2\3\4\5\6\7", 7);
	struct pm_reader reader;

	pm_reader_init(&reader, copy, 7);
	assert_int_equal(pm_reader_u64(&reader), 0);
	assert_true(reader.failed);
	/* It sticks, though a byte would be there. */
	assert_int_equal(pm_reader_u8(&reader), 0);
	assert_int_equal(pm_reader_left(&reader), 0);
	pm_reader_init(&reader, copy, 7);
	assert_null(pm_reader_bytes(&reader, SIZE_MAX));
	pm_reader_init(&reader, copy, 7);
	assert_null(pm_reader_cstr(&reader)); /* no NUL before the end */
	assert_true(reader.failed);
	/* A position that someone set beyond the end. */
	pm_reader_init(&reader, copy, 7);
	reader.pos = 100;
	assert_int_equal(pm_reader_left(&reader), 0);
	assert_null(pm_reader_bytes(&reader, 1));
	assert_true(reader.failed);
	pm_reader_init(&reader, NULL, 0);
	assert_int_equal(pm_reader_left(&reader), 0);
	pm_reader_bytes(&reader, 0);
	assert_false(reader.failed);
	assert_null(pm_reader_cstr(&reader));
	assert_true(reader.failed);
}

struct leb {
	const char *bytes;
	size_t len;
	bool fails;
	uint64_t value;
};
#define LEB(bytes, ...)                                 \
	{                                               \
		bytes, sizeof(bytes) - 1, ##__VA_ARGS__ \
	}

static void check_leb(const struct leb *cases, size_t len, bool is_signed)
{
	for (size_t i = 0; i < len; i++) {
		PM_AUTO_FREE uint8_t *copy = exact(cases[i].bytes, cases[i].len);
		struct pm_reader reader;
		uint64_t value;

		pm_reader_init(&reader, copy, cases[i].len);
		value = is_signed ? (uint64_t)pm_reader_sleb(&reader)
				  : pm_reader_uleb(&reader);
		if (reader.failed != cases[i].fails ||
		    value != (cases[i].fails ? 0 : cases[i].value))
			fail_msg("case %zu: %s, %llx", i,
				 reader.failed ? "failed" : "read",
				 (unsigned long long)value);
		if (!reader.failed)
			assert_int_equal(reader.pos, cases[i].len);
	}
}

/* The examples of DWARF 5, figures 7.21 and 7.22 (tables of §7.6), then the edges. */
static void uleb_numbers(void **state)
{
	static const struct leb cases[] = {
		LEB("\x02", false, 2),
		LEB("\x7f", false, 127),
		LEB("\x80\x01", false, 128),
		LEB("\x81\x01", false, 129),
		LEB("\xb9\x64", false, 12857),
		LEB("\x00", false, 0),
		LEB("\x80\x00", false, 0),
		LEB("\x80\x80\x80\x00", false, 0),
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\x7f", false, UINT64_MAX >> 1),
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", false, UINT64_MAX),
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", false, UINT64_MAX),
		LEB("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", false, 1ULL << 63),
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", true),
		LEB("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", true),
		LEB("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", true),
		/* 20 bytes are padding enough */
		LEB("\x85\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
		    "\x80\x80\x00",
		    false, 5),
		LEB("\x85\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
		    "\x80\x80\x80\x00",
		    true),
		LEB("", true),
		LEB("\x80", true),
		LEB("\xff\xff\xff", true),
	};

	check_leb(cases, PM_ARRAY_LEN(cases), false);
}

static void sleb_numbers(void **state)
{
	static const struct leb cases[] = {
		LEB("\x02", false, 2),
		LEB("\x7e", false, (uint64_t)-2),
		LEB("\xff\x00", false, 127),
		LEB("\x81\x7f", false, (uint64_t)-127),
		LEB("\x80\x01", false, 128),
		LEB("\x80\x7f", false, (uint64_t)-128),
		LEB("\x81\x01", false, 129),
		LEB("\xff\x7e", false, (uint64_t)-129),
		LEB("\x3f", false, 63),
		LEB("\x40", false, (uint64_t)-64),
		LEB("\xff\xff\x7f", false, (uint64_t)-1),
		LEB("\x80\x80\x00", false, 0),
		/* nine bytes hold bits 0 to 62: the sign is bit 62 */
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\x3f", false, UINT64_MAX >> 2),
		LEB("\x80\x80\x80\x80\x80\x80\x80\x80\x40", false,
		    (uint64_t)(INT64_MIN / 2)),
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", false, INT64_MAX),
		LEB("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", false,
		    (uint64_t)INT64_MIN),
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", false, (uint64_t)-1),
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", false, (uint64_t)-1),
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80\x00", false, INT64_MAX),
		/* 2^63 and below -2^63 have no place; padding has to be of the sign */
		LEB("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", true),
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7e", true),
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x3f", true),
		LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", true),
		LEB("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", true),
		LEB("", true),
		LEB("\xff", true),
	};

	check_leb(cases, PM_ARRAY_LEN(cases), true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_reads_in_order),
		cmocka_unit_test(reader_never_leaves_its_bytes),
		cmocka_unit_test(uleb_numbers),
		cmocka_unit_test(sleb_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

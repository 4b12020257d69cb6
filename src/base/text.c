/* SPDX-License-Identifier: MIT */
#include "pm/base.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

static bool str_make_room(struct pm_str *str, size_t more)
{
	char *grown;
	size_t want;

	if (str->failed)
		return false;
	if (__builtin_add_overflow(str->len, more, &want) ||
	    __builtin_add_overflow(want, (size_t)1, &want)) {
		str->failed = true;
		return false;
	}
	grown = pm_vec_grow(str->data, &str->cap, 1, want);
	if (!grown) {
		str->failed = true;
		return false;
	}
	str->data = grown;
	return true;
}

const char *pm_path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash)
		return slash + 1;
	return path;
}

void pm_str_separate(struct pm_str *str, const char *separator)
{
	if (str->len > 0)
		pm_str_puts(str, separator);
}

void pm_str_append(struct pm_str *str, const char *bytes, size_t len)
{
	if (!str_make_room(str, len))
		return;
	if (len > 0)
		memcpy(str->data + str->len, bytes, len);
	str->len += len;
	str->data[str->len] = '\0';
}

void pm_str_puts(struct pm_str *str, const char *text)
{
	pm_str_append(str, text, strlen(text));
}

void pm_str_putc(struct pm_str *str, char c)
{
	pm_str_append(str, &c, 1);
}

void pm_str_u64(struct pm_str *str, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	pm_str_append(str, digits + at, sizeof(digits) - at);
}

void pm_str_hex(struct pm_str *str, uint64_t value)
{
	char digits[18];
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value > 0);
	digits[--at] = 'x';
	digits[--at] = '0';
	pm_str_append(str, digits + at, sizeof(digits) - at);
}

void pm_str_printf(struct pm_str *str, const char *format, ...)
{
	va_list args, again;
	int len;

	va_start(args, format);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0)
		str->failed = true;
	else if (str_make_room(str, (size_t)len)) {
		vsnprintf(str->data + str->len, (size_t)len + 1, format, again);
		str->len += (size_t)len;
	}
	va_end(again);
}

size_t pm_utf8_char(const char *bytes, size_t len)
{
	const unsigned char *at = (const unsigned char *)bytes;
	unsigned char low = 0x80, high = 0xbf;
	size_t need;

	if (at[0] < 0x80)
		return 1;
	if (at[0] >= 0xc2 && at[0] <= 0xdf) {
		need = 2;
	} else if (at[0] >= 0xe0 && at[0] <= 0xef) {
		need = 3;
		if (at[0] == 0xe0)
			low = 0xa0;
		if (at[0] == 0xed)
			high = 0x9f;
	} else if (at[0] >= 0xf0 && at[0] <= 0xf4) {
		need = 4;
		if (at[0] == 0xf0)
			low = 0x90;
		if (at[0] == 0xf4)
			high = 0x8f;
	} else {
		return 0;
	}
	if (len < need || at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < need; i++)
		if (at[i] < 0x80 || at[i] > 0xbf)
			return 0;
	return need;
}

#define REPLACEMENT "\xef\xbf\xbd"

/* U+0080 to U+009F, which are also control characters for a terminal. */
static bool is_c1_control(const char *bytes, size_t n)
{
	return n == 2 && (unsigned char)bytes[0] == 0xc2 &&
	       (unsigned char)bytes[1] < 0xa0;
}

/*
 * Characters that change the direction of the following text (U+202A to 202E, 2066 to
 * 2069, 200E, 200F, 061C) would affect more than the name, and so would U+2028 and
 * U+2029, which end lines. Returns whether the character of @n bytes at @bytes is one of
 * these.
 */
static bool reaches_beyond(const char *bytes, size_t n)
{
	const unsigned char *c = (const unsigned char *)bytes;

	if (n == 2)
		return c[0] == 0xd8 && c[1] == 0x9c;
	if (n != 3 || c[0] != 0xe2)
		return false;
	if (c[1] == 0x80)
		return c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae);
	return c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9;
}

/* Number of printable ASCII characters at the start of @bytes. */
static size_t plain_bytes(const char *bytes, size_t len)
{
	size_t n = 0;

	while (n < len && bytes[n] >= 0x20 && bytes[n] < 0x7f)
		n++;
	return n;
}

void pm_str_printable(struct pm_str *str, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = plain_bytes(bytes + i, len - i);
		unsigned char first;

		pm_str_append(str, bytes + i, n);
		i += n;
		if (i == len)
			return;
		n = pm_utf8_char(bytes + i, len - i);
		first = (unsigned char)bytes[i];
		if (n == 0) {
			pm_str_puts(str, REPLACEMENT);
			n = 1;
		} else if (reaches_beyond(bytes + i, n)) {
			pm_str_puts(str, REPLACEMENT);
		} else if (n == 1 && (first < 0x20 || first == 0x7f)) {
			pm_str_printf(str, "\\x%02x", first);
		} else if (is_c1_control(bytes + i, n)) {
			pm_str_printf(str, "\\x%02x", (unsigned char)bytes[i + 1]);
		} else {
			pm_str_append(str, bytes + i, n);
		}
		i += n;
	}
}

void pm_str_json(struct pm_str *str, const char *text)
{
	size_t len, start = 0;

	if (!text) {
		pm_str_puts(str, "null");
		return;
	}
	len = strlen(text);
	pm_str_putc(str, '"');
	for (size_t i = 0; i < len;) {
		unsigned char c = (unsigned char)text[i];
		size_t n = c >= 0x20 && c < 0x7f ? 1 : pm_utf8_char(text + i, len - i);

		if (n > 0 && c >= 0x20 && c != '"' && c != '\\' && c != 0x7f &&
		    !is_c1_control(text + i, n)) {
			i += n;
			continue;
		}
		pm_str_append(str, text + start, i - start);
		if (n == 0)
			pm_str_puts(str, REPLACEMENT);
		else if (c == '"' || c == '\\')
			pm_str_printf(str, "\\%c", c);
		else
			pm_str_printf(str, "\\u%04x",
				      n == 2 ? (unsigned char)text[i + 1] : c);
		start = i += n ? n : 1;
	}
	pm_str_append(str, text + start, len - start);
	pm_str_putc(str, '"');
}

void pm_str_clear(struct pm_str *str)
{
	str->len = 0;
	str->failed = false;
	if (str->data)
		str->data[0] = '\0';
}

void pm_str_release(struct pm_str *str)
{
	free(str->data);
	*str = (struct pm_str){ 0 };
}

bool pm_parse_u64(const char *text, uint64_t *out)
{
	unsigned long long value;
	char *end;
	int base = 10;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		if (!isxdigit((unsigned char)text[2]))
			return false;
	} else if (!isdigit((unsigned char)text[0])) {
		return false; /* strtoull would accept blanks and signs */
	}
	errno = 0;
	value = strtoull(text, &end, base);
	if (errno != 0 || *end != '\0')
		return false;
	*out = value;
	return true;
}

size_t pm_name_distance(const char *a, const char *b)
{
	enum {
		NAME_MAX_BYTES = 64
	};
	size_t la = strlen(a), lb = strlen(b);
	size_t row[NAME_MAX_BYTES + 1];

	if (la > NAME_MAX_BYTES || lb > NAME_MAX_BYTES)
		return SIZE_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t above = row[j];
			size_t best = diagonal + (tolower((unsigned char)a[i - 1]) !=
						  tolower((unsigned char)b[j - 1]));

			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
			diagonal = above;
		}
	}
	return row[lb];
}

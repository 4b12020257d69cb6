/* SPDX-License-Identifier: MIT */
#include "jit-internal.h"

#include <string.h>
#include <sys/stat.h>

enum {
	LINE_BYTES_MAX = 1 << 14,
	CHUNK_BYTES = 1 << 16, /* at least several lines */
};

static bool is_space_or_tab(char c)
{
	return c == ' ' || c == '\t';
}

static int hex_digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Parses a hexadecimal number, with or without 0x, and the blanks after it. */
static bool parse_hex_number(const char **at, const char *end, uint64_t *out)
{
	const char *text = *at;
	uint64_t value = 0;
	size_t digits = 0;

	if (end - text > 2 && text[0] == '0' && (text[1] | 0x20) == 'x')
		text += 2;
	for (; text < end && hex_digit_value(*text) >= 0; text++, digits++) {
		if (value >> 60 != 0)
			return false;
		value = value << 4 | (uint64_t)hex_digit_value(*text);
	}
	if (digits == 0 || text == end || !is_space_or_tab(*text))
		return false;
	while (text < end && is_space_or_tab(*text))
		text++;
	*at = text;
	*out = value;
	return true;
}

/* Adds the function of one line. Returns 0, also if the line has another form, or
 * -ENOMEM. */
static int perf_map_parse_line(struct pm_perf_map *map, struct pm_jit_table *table,
			       const char *line, size_t len)
{
	const char *end = line + len;
	struct pm_jit_function function = { .source = PM_JIT_OF_MAP };
	int ret;

	while (end > line && (is_space_or_tab(end[-1]) || end[-1] == '\r'))
		end--;
	if (line == end)
		return 0;
	if (!parse_hex_number(&line, end, &function.start) ||
	    !parse_hex_number(&line, end, &function.len)) {
		map->bad_lines++;
		return 0;
	}
	/* Entries of length 0 mark places and contain no address. */
	if (function.len == 0)
		return 0;
	ret = pm_jit_table_add(table, &function, line, (size_t)(end - line));
	if (ret == -EINVAL)
		map->bad_lines++;
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

/* Adds the functions of the complete lines in @bytes. Returns the length of these lines
 * in bytes, or -ENOMEM. */
static ssize_t perf_map_parse_lines(struct pm_perf_map *map, struct pm_jit_table *table,
				    const char *bytes, size_t len)
{
	size_t taken = 0;

	while (taken < len) {
		const char *line = bytes + taken;
		const char *newline = memchr(line, '\n', len - taken);
		size_t line_len = newline ? (size_t)(newline - line) : len - taken;
		int ret = 0;

		if (line_len > LINE_BYTES_MAX && !map->skipping) {
			map->skipping = true;
			map->bad_lines++;
		}
		if (!newline) {
			if (map->skipping)
				taken = len;
			break;
		}
		if (!map->skipping)
			ret = perf_map_parse_line(map, table, line, line_len);
		if (ret < 0)
			return ret;
		map->skipping = false;
		taken += line_len + 1;
	}
	return (ssize_t)taken;
}

/* Whether the last bytes that were read are still in the same place, so that the file has
 * only grown. */
static bool is_perf_map_continued(const struct pm_perf_map *map, int fd, uint64_t size)
{
	uint8_t tail[sizeof(map->tail)];

	if (size < map->offset)
		return false;
	return map->tail_len == 0 ||
	       (pread(fd, tail, map->tail_len, (off_t)(map->offset - map->tail_len)) ==
			(ssize_t)map->tail_len &&
		memcmp(tail, map->tail, map->tail_len) == 0);
}

static void perf_map_keep_tail(struct pm_perf_map *map, const char *bytes, size_t len)
{
	if (len == 0)
		return;
	map->tail_len = PM_MIN(len, sizeof(map->tail));
	memcpy(map->tail, bytes + len - map->tail_len, map->tail_len);
}

int pm_perf_map_read(struct pm_perf_map *map, int fd, struct pm_jit_table *table,
		     size_t max_bytes)
{
	PM_AUTO_FREE char *chunk = NULL;
	size_t total = 0;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!is_perf_map_continued(map, fd, (uint64_t)st.st_size)) {
		pm_jit_table_clear_source(table, PM_JIT_OF_MAP);
		map->offset = 0;
		map->tail_len = 0;
		map->skipping = false;
		map->restarts++;
	}
	if ((uint64_t)st.st_size == map->offset)
		return 0;
	chunk = malloc(CHUNK_BYTES);
	if (!chunk)
		return -ENOMEM;
	while (total < max_bytes) {
		ssize_t len = pread(fd, chunk, CHUNK_BYTES, (off_t)map->offset);
		ssize_t taken;

		if (len < 0)
			return -errno;
		taken = perf_map_parse_lines(map, table, chunk, (size_t)len);
		if (taken < 0)
			return (int)taken;
		perf_map_keep_tail(map, chunk, (size_t)taken);
		map->offset += (uint64_t)taken;
		total += (size_t)taken;
		if (taken == 0 || len < CHUNK_BYTES)
			return 0;
	}
	return 1;
}

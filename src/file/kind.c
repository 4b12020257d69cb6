/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "file-internal.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Whether the line has `"format": "pmrec"`, with any spacing. Inside of a string, the
 * quotes would be escaped. */
static bool says_recording(const char *line, size_t len)
{
	static const char key[] = "\"format\"", value[] = "\"pmrec\"";
	const char *end = line + len, *at = memmem(line, len, key, sizeof(key) - 1);

	if (!at)
		return false;
	at += sizeof(key) - 1;
	while (at < end && (is_blank(*at) || *at == ':'))
		at++;
	return (size_t)(end - at) >= sizeof(value) - 1 &&
	       memcmp(at, value, sizeof(value) - 1) == 0;
}

static enum pm_file_kind kind_of(const char *head, size_t len)
{
	const char *newline;

	while (len > 0 && is_blank(*head)) {
		head++;
		len--;
	}
	if (len == 0 || *head != '{')
		return PM_FILE_FOREIGN;
	newline = memchr(head, '\n', len);
	if (says_recording(head, newline ? (size_t)(newline - head) : len))
		return PM_FILE_RECORDING;
	return PM_FILE_COUNTS;
}

enum pm_file_kind pm_file_kind(const void *head, size_t len)
{
	PM_CLEANUP(pm_file_source_release) struct pm_file_source source = { .fd = -1 };
	char plain[16 << 10];
	size_t plain_len = 0;

	if (!pm_file_is_zstd(head, len))
		return kind_of(head, len);
	if (pm_file_source_open_memory(&source, head, len, NULL) < 0 ||
	    pm_file_source_read(&source, plain, sizeof(plain), &plain_len, NULL) < 0)
		return PM_FILE_FOREIGN;
	return kind_of(plain, plain_len);
}

/* SPDX-License-Identifier: MIT */
#include "linemap.h"

#include <string.h>

#include "git.h"

/* Lines [base, base + base_len) have become [head, head + head_len). If a length is 0,
 * the start is that of the preceding line, as in git's output. */
struct hunk {
	uint32_t base, base_len, head, head_len;
};

struct file {
	char *name; /* on the side of the base */
	PM_VEC(struct hunk) hunks;
};

struct pmdiff_linemap {
	PM_VEC(struct file) files;
};

void pmdiff_linemap_free(struct pmdiff_linemap *map)
{
	if (!map)
		return;
	for (size_t i = 0; i < map->files.len; i++) {
		free(map->files.data[i].name);
		pm_vec_release(&map->files.data[i].hunks);
	}
	pm_vec_release(&map->files);
	free(map);
}

/* ---- git's output ---------------------------------------------------------------------- */

/* Parses "12" or "12,3"; a missing length is 1. */
static bool parse_hunk_range(const char **at, uint32_t *from, uint32_t *len)
{
	char *end;
	unsigned long value = strtoul(*at, &end, 10);

	if (end == *at || value > UINT32_MAX / 2)
		return false;
	*from = (uint32_t)value;
	*len = 1;
	*at = end;
	if (**at != ',')
		return true;
	value = strtoul(*at + 1, &end, 10);
	if (end == *at + 1 || value > UINT32_MAX / 2)
		return false;
	*len = (uint32_t)value;
	*at = end;
	return true;
}

/* Parses "@@ -12,3 +12 @@". */
static bool parse_hunk_header(const char *line, struct hunk *out)
{
	const char *at = line + strlen("@@ -");

	if (!parse_hunk_range(&at, &out->base, &out->base_len) ||
	    strncmp(at, " +", 2) != 0)
		return false;
	at += 2;
	return parse_hunk_range(&at, &out->head, &out->head_len);
}

static int linemap_add_file(struct pmdiff_linemap *map, const char *name)
{
	struct file file = { .name = strdup(name) };

	if (file.name && pm_vec_push(&map->files, file) == 0)
		return 0;
	free(file.name);
	return -ENOMEM;
}

/* Parses the name after "--- a/". git appends a tab to a name that contains a blank. */
static int linemap_take_file_name(struct pmdiff_linemap *map, char *name)
{
	size_t len = strlen(name);

	if (len > 0 && name[len - 1] == '\t')
		name[len - 1] = '\0';
	return linemap_add_file(map, name);
}

/* Parses a diff. Lines of the text itself also start with "+" or "-", but they follow the
 * header of a hunk, which has their number. The hunks of a new file, or of a file whose
 * name git has quoted, must not count for the previous file: such a file gets a name that
 * no file has. */
static int linemap_parse_diff(struct pmdiff_linemap *map, char *text)
{
	uint64_t skip = 0;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		struct hunk hunk;
		int ret = 0;

		if (skip > 0 && (line[0] == '+' || line[0] == '-')) {
			skip--;
			continue;
		}
		if (strncmp(line, "--- a/", 6) == 0)
			ret = linemap_take_file_name(map, line + 6);
		else if (strncmp(line, "--- ", 4) == 0)
			ret = linemap_add_file(map, "");
		else if (strncmp(line, "@@ -", 4) == 0 && map->files.len > 0 &&
			 parse_hunk_header(line, &hunk)) {
			struct file *file = &map->files.data[map->files.len - 1];

			skip = (uint64_t)hunk.base_len + hunk.head_len;
			ret = pm_vec_push(&file->hunks, hunk);
		}
		if (ret < 0)
			return ret;
	}
	return 0;
}

int pmdiff_linemap_parse(struct pmdiff_linemap **out, char *text)
{
	struct pmdiff_linemap *map = calloc(1, sizeof(*map));
	int ret = -ENOMEM;

	if (map)
		ret = linemap_parse_diff(map, text);

	if (ret < 0)
		pmdiff_linemap_free(map);
	else
		*out = map;
	return ret;
}

int pmdiff_linemap_new(struct pmdiff_linemap **out, const char *base, const char *head,
		       struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str patch = { 0 };
	int ret = pmdiff_git(NULL, &patch, err, "-c", "core.quotePath=false", "diff",
			     "--no-color", "--no-ext-diff", "--no-textconv",
			     "--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "-U0",
			     "--inter-hunk-context=0", base, head);

	if (ret < 0)
		return ret;
	pm_str_puts(&patch, "");
	if (patch.failed ||
	    pmdiff_linemap_parse(out, patch.data ? patch.data : (char[]){ "" }) < 0)
		return pm_error_no_memory(err);
	return 0;
}

/* ---- lines ----------------------------------------------------------------------------- */

static uint32_t map_line_in_file(const struct file *file, uint32_t line)
{
	int64_t shift = 0;

	for (size_t i = 0; i < file->hunks.len; i++) {
		const struct hunk *hunk = &file->hunks.data[i];
		/* If the length is 0, git's start is the line before the added lines. */
		uint32_t begin = hunk->base + (hunk->base_len == 0);

		if (line < begin)
			break;
		if (line < begin + hunk->base_len) {
			uint32_t at = line - begin;

			if (hunk->head_len == 0)
				return 0;
			return hunk->head + PM_MIN(at, hunk->head_len - 1);
		}
		shift += (int64_t)hunk->head_len - hunk->base_len;
	}
	if (line + shift > 0)
		return (uint32_t)(line + shift);
	return 0;
}

uint32_t pmdiff_linemap_of(void *of, const char *file, uint32_t line)
{
	const struct pmdiff_linemap *map = of;

	for (size_t i = 0; i < map->files.len; i++)
		if (strcmp(map->files.data[i].name, file) == 0)
			return map_line_in_file(&map->files.data[i], line);
	return line;
}

/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <string.h>

enum {
	LINE_BYTES_MAX = 4000, /* longer lines are truncated */
};

static size_t count_log_lines(FILE *file)
{
	size_t lines = 0;
	int c, last = '\n';

	while ((c = getc_unlocked(file)) != EOF) {
		lines += c == '\n';
		last = c;
	}
	return lines + (last != '\n');
}

void pmdiff_log_show(const char *path, size_t lines)
{
	PM_AUTO_FCLOSE FILE *file = fopen(path, "re");
	PM_AUTO_FREE char *line = NULL;
	size_t cap = 0, all, skipped = 0;
	ssize_t len;

	if (!file)
		return;
	all = count_log_lines(file);
	rewind(file);
	if (all > lines)
		fprintf(stderr, "  … %zu lines before\n", all - lines);
	while ((len = getline(&line, &cap, file)) > 0) {
		PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };

		if (all > lines && skipped < all - lines) {
			skipped++;
			continue;
		}
		if (line[len - 1] == '\n')
			len--;
		for (char *tab = line;
		     (tab = memchr(tab, '\t', (size_t)(line + len - tab)));)
			*tab = ' ';
		pm_str_puts(&text, "  ");
		pm_str_printable(&text, line, PM_MIN((size_t)len, LINE_BYTES_MAX));
		if (!text.failed)
			fprintf(stderr, "%s\n", text.data);
	}
}

char *pmdiff_log_find(const char *path, const char *with)
{
	PM_AUTO_FCLOSE FILE *file = fopen(path, "re");
	PM_AUTO_FREE char *line = NULL;
	char *found = NULL;
	size_t cap = 0;
	ssize_t len;

	while (file && !found && (len = getline(&line, &cap, file)) > 0) {
		if (strncmp(line, with, strlen(with)) != 0)
			continue;
		if (line[len - 1] == '\n')
			len--;
		found = strndup(line + strlen(with), (size_t)len - strlen(with));
	}
	return found;
}

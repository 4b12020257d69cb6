/* SPDX-License-Identifier: MIT */
#include "mappings.h"

#include <fcntl.h>

enum {
	BUFFER_BYTES = 16384,
	EXECUTABLE = 2, /* where the x of rwxp is */
};

/* Where in its line a reading of the map is (proc(5)). */
struct line {
	uint64_t hash; /* FNV-1a of the line so far */
	size_t words, in_word;
	bool executable;
};

static uint64_t add(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x100000001b3u;
}

/* Heaps and stacks grow all the time: of lines of code only. */
static void take(struct line *line, uint64_t *sum, char c)
{
	if (c == '\n') {
		if (line->executable)
			*sum = add(*sum, line->hash);
		*line = (struct line){ 0 };
		return;
	}
	line->hash = add(line->hash, (uint8_t)c);
	if (line->words == 1 && line->in_word == EXECUTABLE)
		line->executable = c == 'x';
	line->in_word++;
	if (c == ' ') {
		line->words++;
		line->in_word = 0;
	}
}

bool pm_self_mappings_changed(uint64_t *known)
{
	PM_AUTO_CLOSE int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char buffer[BUFFER_BYTES];
	struct line line = { 0 };
	uint64_t sum = 1;
	ssize_t len;

	if (fd < 0)
		return true;
	while ((len = read(fd, buffer, sizeof(buffer))) > 0)
		for (ssize_t i = 0; i < len; i++)
			take(&line, &sum, buffer[i]);
	if (len == 0 && sum == *known)
		return false;
	*known = len == 0 ? sum : 0;
	return true;
}

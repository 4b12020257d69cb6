/* SPDX-License-Identifier: MIT */
/*
 * The reader of counting runs over any bytes. What it takes, our writer writes, and what that
 * wrote is read and written again as the same bytes. Then it is shown.
 */
#include "pm/stat-output.h"

#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static int file_of(const void *data, size_t size)
{
	int fd = memfd_create("stat", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

/* As the writer writes it, from the beginning. */
static int written(const struct pm_stat *stat)
{
	int fd = file_of("", 0);

	CHECK(pm_stat_write(stat, fd, NULL) == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void check_same(int a, int b)
{
	off_t len = lseek(a, 0, SEEK_END);
	PM_AUTO_FREE char *of_a = malloc((size_t)len + 1);
	PM_AUTO_FREE char *of_b = malloc((size_t)len + 1);

	CHECK(of_a && of_b && lseek(b, 0, SEEK_END) == len);
	CHECK(pread(a, of_a, (size_t)len, 0) == len);
	CHECK(pread(b, of_b, (size_t)len, 0) == len);
	CHECK(memcmp(of_a, of_b, (size_t)len) == 0);
}

/* Nothing of it may move a cursor. */
static void show(const struct pm_stat *stat)
{
	struct pm_stat_report report = { .stat = stat, .width = 80 };
	PM_AUTO_FREE char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	CHECK(to);
	CHECK(pm_output_stat_text(&report, to, NULL) == 0);
	CHECK(pm_output_stat_csv(&report, ",", to, NULL) == 0);
	CHECK(fclose(to) == 0);
	CHECK(!memchr(text, '\033', len) && !memchr(text, '\a', len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 }, again = { 0 };
	PM_AUTO_CLOSE int fd = file_of(data, size);
	PM_AUTO_CLOSE int first = -1, second = -1;
	struct pm_error err = { 0 };
	int r = pm_stat_read(&stat, fd, "input", &err);

	CHECK(r == 0 || (r == err.code && err.text[0]));
	if (r < 0) {
		CHECK(!stat.version && stat.events.len == 0);
		return 0;
	}
	first = written(&stat);
	CHECK(pm_stat_read(&again, first, "again", NULL) == 0);
	second = written(&again);
	check_same(first, second);
	show(&stat);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The reader of suites over any bytes. What it takes, our writer writes, and what that wrote is
 * read and written again as the same bytes. */
#include "pm/suite.h"

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
	int fd = memfd_create("suite", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static char *written(const struct pm_suite *suite, size_t *len)
{
	PM_AUTO_CLOSE int fd = file_of("", 0);
	char *data;

	CHECK(pm_suite_write(suite, fd, NULL) == 0);
	*len = (size_t)lseek(fd, 0, SEEK_END);
	data = malloc(*len + 1);
	CHECK(data && pread(fd, data, *len, 0) == (ssize_t)*len);
	return data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 }, again = { 0 };
	PM_AUTO_FREE char *first = NULL, *second = NULL;
	PM_AUTO_CLOSE int fd = file_of(data, size);
	PM_AUTO_CLOSE int copy = -1;
	struct pm_error err = { 0 };
	size_t len, len_again;
	int r = pm_suite_read(&suite, fd, "input", &err);

	CHECK(r == 0 || (r == err.code && err.text[0]));
	CHECK((r == 0) == (suite.cases.len > 0));
	if (r < 0)
		return 0;
	for (size_t i = 0; i < suite.cases.len; i++)
		CHECK(pm_suite_find(&suite, suite.cases.data[i].name) ==
		      &suite.cases.data[i]);
	first = written(&suite, &len);
	copy = file_of(first, len);
	CHECK(pm_suite_read(&again, copy, "again", NULL) == 0);
	second = written(&again, &len_again);
	CHECK(len == len_again && memcmp(first, second, len) == 0);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Results of other tools over any bytes: what is taken, our writer writes and our reader reads; of
 * what is refused the message is one line and has the file. */
#include "pm/import.h"

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
	int fd = memfd_create("result", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 }, again = { 0 };
	PM_AUTO_CLOSE int fd = file_of(data, size);
	PM_AUTO_CLOSE int copy = file_of("", 0);
	struct pm_error err = { 0 };
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = pm_import_read(&suite, path, PM_IMPORT_AUTO, &err);
	CHECK(r == 0 || (r == err.code && err.text[0] && strcmp(err.source, path) == 0));
	CHECK((r == 0) == (suite.cases.len > 0));
	if (r < 0)
		return 0;
	CHECK(pm_suite_write(&suite, copy, NULL) == 0);
	CHECK(lseek(copy, 0, SEEK_SET) == 0);
	CHECK(pm_suite_read(&again, copy, "again", NULL) == 0);
	CHECK(again.cases.len == suite.cases.len);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Accepted regressions over any bytes: what is taken is written and read again as the same text;
 * and results of pmdiff, of which each row has a name. */
#include "pm/acks.h"

#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

/* @path: for the reader. */
static int file_of(const void *data, size_t size, char path[64])
{
	int fd = memfd_create("acks", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static void check_again(const struct pm_acks *acks)
{
	PM_CLEANUP(pm_str_release) struct pm_str first = { 0 }, second = { 0 };
	PM_CLEANUP(pm_acks_release) struct pm_acks again = { 0 };
	PM_AUTO_CLOSE int fd = -1;
	char path[64];

	pm_acks_put(&first, acks);
	CHECK(!first.failed);
	fd = file_of(first.data, first.len, path);
	CHECK(fd >= 0);
	CHECK(pm_acks_read(&again, path, NULL) == 0);
	pm_acks_put(&second, &again);
	CHECK(!second.failed && strcmp(first.data, second.data) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	PM_CLEANUP(pm_acks_release) struct pm_acks acks = { 0 };
	PM_CLEANUP(pm_diff_result_release) struct pm_diff_result result = { 0 };
	struct pm_error err = { 0 };
	char path[64];
	PM_AUTO_CLOSE int fd = file_of(data, size, path);
	int r;

	CHECK(fd >= 0);
	r = pm_acks_read(&acks, path, &err);
	CHECK(r == 0 || (r == err.code && err.text[0] && strcmp(err.source, path) == 0));
	for (size_t i = 0; i < acks.list.len; i++)
		CHECK(pm_acks_find(&acks, acks.list.data[i].row) == &acks.list.data[i]);
	if (r == 0)
		check_again(&acks);
	r = pm_diff_result_read(&result, path, &err);
	CHECK(r == 0 || result.rows.len == 0);
	for (size_t i = 0; i < result.rows.len; i++)
		CHECK(result.rows.data[i].row != NULL);
	return 0;
}

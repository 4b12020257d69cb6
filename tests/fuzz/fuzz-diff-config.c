/* SPDX-License-Identifier: MIT */
/* pmdiff.json over any bytes: what it takes has no empty text, and of what it refuses the line is
 * in the file. */
#include "pm/diff-config.h"

#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

#define CHECK_TEXTS(vec)                                   \
	({                                                 \
		for (size_t i_ = 0; i_ < (vec)->len; i_++) \
			CHECK((vec)->data[i_][0]);         \
	})

static int64_t lines_of(const uint8_t *data, size_t size)
{
	int64_t lines = 1;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	return lines;
}

static void check_measure(const struct pm_diff_measure *measure, int64_t lines)
{
	for (size_t i = 0; i < measure->gates.len; i++) {
		const struct pm_diff_gate *gate = &measure->gates.data[i];

		CHECK(gate->row[0] && gate->limit[0]);
		CHECK(gate->line == -1 || (gate->line >= 1 && gate->line <= lines));
	}
	CHECK_TEXTS(&measure->command);
	CHECK_TEXTS(&measure->events);
	CHECK_TEXTS(&measure->functions);
	CHECK_TEXTS(&measure->ranges);
	CHECK(!measure->engine || measure->engine[0]);
	CHECK(!measure->setup || measure->setup[0]);
	CHECK(!measure->timeout || measure->timeout[0]);
	CHECK(measure->harness <= PM_DIFF_HARNESS_CRITERION);
	CHECK(measure->measured <= PM_DIFF_PART_MARKED);
	CHECK(measure->warmups_set || measure->warmups == 0);
}

static void check_config(const struct pm_diff_config *config, int64_t lines)
{
	check_measure(&config->all, lines);
	for (size_t i = 0; i < config->cases.len; i++) {
		const struct pm_diff_case *one = &config->cases.data[i];

		CHECK(one->name[0] && one->line <= lines);
		check_measure(&one->measure, lines);
	}
	CHECK(!config->build || config->build[0]);
	CHECK(!config->history || config->history[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pm_diff_config config = { 0 };
	PM_AUTO_CLOSE int fd = memfd_create("pmdiff.json", MFD_CLOEXEC);
	struct pm_error err = { 0 };
	int64_t lines = lines_of(data, size);
	char path[64];
	int r;

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = pm_diff_config_read(&config, path, &err);
	CHECK(r == 0 || (r == err.code && err.text[0] && strcmp(err.source, path) == 0));
	CHECK(r == 0 ||
	      (err.offset <= lines && !config.path && config.all.gates.len == 0));
	if (r == 0)
		check_config(&config, lines);
	pm_diff_config_release(&config);
	return 0;
}

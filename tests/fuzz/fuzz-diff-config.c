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

static void check_config(const struct pm_diff_config *config, int64_t lines)
{
	for (size_t i = 0; i < config->gates.len; i++) {
		const struct pm_diff_gate *gate = &config->gates.data[i];

		CHECK(gate->row[0] && gate->limit[0]);
		CHECK(gate->line == -1 || (gate->line >= 1 && gate->line <= lines));
	}
	CHECK_TEXTS(&config->command);
	CHECK_TEXTS(&config->events);
	CHECK_TEXTS(&config->functions);
	CHECK_TEXTS(&config->ranges);
	CHECK(!config->build || config->build[0]);
	CHECK(!config->engine || config->engine[0]);
	CHECK(!config->history || config->history[0]);
	CHECK(config->warmups_set || config->warmups == 0);
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
	CHECK(r == 0 || (err.offset <= lines && !config.path && config.gates.len == 0));
	if (r == 0)
		check_config(&config, lines);
	pm_diff_config_release(&config);
	return 0;
}

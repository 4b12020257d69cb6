/* SPDX-License-Identifier: MIT */
/*
 * Results of other benchmark tools as counting documents, a case each (pm/suite.h). What a tool's
 * file does not say stays unknown: no processor, no begin of runs, no date. The engine is the tool,
 * for numbers of two tools do not compare.
 */
#pragma once

#include "pm/suite.h"

enum pm_import_format {
	PM_IMPORT_AUTO, /* as the content says */
	PM_IMPORT_GOOGLE_BENCHMARK, /* --benchmark_format=json */
	PM_IMPORT_CRITERION, /* sample.json, estimates.json, or a folder with them below it */
	PM_IMPORT_HYPERFINE, /* --export-json */
	PM_IMPORT_PYTEST_BENCHMARK, /* --benchmark-json */
	PM_IMPORT_PERF_STAT, /* perf stat -j, or -x */
	PM_IMPORT_IAI_CALLGRIND, /* summary.json, callgrind.*.out; Gungraun's, too */
	PM_IMPORT_FORMATS,
};
/* "auto", "google-benchmark", …; NULL from the end on. */
const char *pm_import_format_name(enum pm_import_format format);

/*
 * Reads @path, compressed by zstd or not; "-" is standard input. The case of a file that has no
 * name for its one benchmark has none, as that of a plain document of pmstat. @ret is unchanged by
 * a failure: -EBADMSG with the place in the file, -EFBIG where it holds more than is taken,
 * -ENOMEM, or what system calls say.
 */
int pm_import_read(struct pm_suite *ret, const char *path, enum pm_import_format format,
		   struct pm_error *err);

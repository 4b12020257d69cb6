/* SPDX-License-Identifier: MIT */
/*
 * Results of other benchmark tools as counting documents, one for each case (pm/suite.h).
 * Facts that a tool's file lacks stay unknown: the processor, the start of runs, the
 * date. The engine is the name of the tool, because the numbers of two tools cannot be
 * compared.
 */
#pragma once

#include "pm/suite.h"

enum pm_import_format {
	PM_IMPORT_AUTO, /* determined by the content */
	PM_IMPORT_GOOGLE_BENCHMARK, /* --benchmark_format=json */
	/* sample.json, estimates.json, or a folder that contains them. */
	PM_IMPORT_CRITERION,
	PM_IMPORT_HYPERFINE, /* --export-json */
	PM_IMPORT_PYTEST_BENCHMARK, /* --benchmark-json */
	PM_IMPORT_PERF_STAT, /* perf stat -j, or -x */
	PM_IMPORT_IAI_CALLGRIND, /* summary.json, callgrind.*.out; also Gungraun's */
	PM_IMPORT_FORMATS,
};
/* "auto", "google-benchmark", …; NULL beyond the last one. */
const char *pm_import_format_name(enum pm_import_format format);

/*
 * Reads @path, compressed by zstd or not; "-" is standard input. If a file has one
 * benchmark without a name, its case has no name, as with a plain document of pmstat.
 * Returns -EBADMSG with the place in the file, -EFBIG if a limit is exceeded, -ENOMEM, or
 * the error of a system call; @out is then unchanged.
 */
int pm_import_read(struct pm_suite *out, const char *path, enum pm_import_format format,
		   struct pm_error *err);

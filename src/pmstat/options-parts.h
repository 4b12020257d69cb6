/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files that parse the command line.
 */
#pragma once

#include "options.h"

#define pmstat_usage(err, ...) pm_usage(err, "pmstat", __VA_ARGS__)

/* Parse values of options. 0, or -EINVAL with one clear line. */
int pmstat_parse_events(struct pmstat_options *options, const char *text,
			struct pm_error *err);
int pmstat_parse_engine(enum pm_count_engine *out, const char *text,
			struct pm_error *err);
/* @text NULL: only the place of the call. */
int pmstat_parse_calls_from(uint32_t *out, const char *text, struct pm_error *err);
int pmstat_parse_per(enum pm_counters_by *out, const char *text, struct pm_error *err);
int pmstat_parse_warmups(uint64_t *out, const char *text, struct pm_error *err);
int pmstat_parse_ms(uint64_t *out, char option, const char *text, struct pm_error *err);
/* A time with a unit; a bare number is in milliseconds, as in perf. */
int pmstat_parse_timeout(uint64_t *ret_ns, const char *text, struct pm_error *err);

/* Checks combinations, and fills in what follows from them. @rest: the words after the
 * options. */
int pmstat_check(struct pmstat_options *options, char **rest, struct pm_error *err);

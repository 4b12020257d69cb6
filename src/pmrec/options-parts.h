/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files that parse the command line.
 */
#pragma once

#include "options.h"

/* Sets @err to the message, followed by a hint to --help. Always -EINVAL. */
#define pm_rec_usage(err, ...) pm_usage(err, "pmrec", __VA_ARGS__)

/* Parsers of option values: 0, or -EINVAL with one clear line. */
int pm_rec_parse_delay(struct pm_rec_options *options, const char *text,
		       struct pm_error *err);
int pm_rec_parse_control(const char *text, struct pm_error *err);
int pm_rec_parse_realtime(int *out, const char *text, struct pm_error *err);
int pm_rec_parse_branches(uint64_t *out, const char *text, struct pm_error *err);
/* Applies to the events of the last -e, the first of which has the index @first. */
int pm_rec_parse_filter(struct pm_rec_options *options, size_t first, const char *text,
			struct pm_error *err);

/* Checks combinations of options. @rest are the words after the options. */
int pm_rec_check(struct pm_rec_options *options, char **rest, struct pm_error *err);

/* SPDX-License-Identifier: MIT */
/*
 * Between the files that read the command line.
 */
#pragma once

#include "options.h"

/* The way to --help, behind what is wrong. Always -EINVAL. */
#define pm_rec_usage(err, ...) pm_usage(err, "pmrec", __VA_ARGS__)

/* Values of options: 0, or -EINVAL with one clear line. */
int pm_rec_parse_delay(struct pm_rec_options *options, const char *text,
		       struct pm_error *err);
int pm_rec_parse_control(const char *text, struct pm_error *err);
int pm_rec_parse_realtime(int *ret, const char *text, struct pm_error *err);
int pm_rec_parse_branches(uint64_t *ret, const char *text, struct pm_error *err);
/* For the events of the last -e, of which the first is number @first. */
int pm_rec_parse_filter(struct pm_rec_options *options, size_t first, const char *text,
			struct pm_error *err);

/* What goes together. @rest are the words behind the options. */
int pm_rec_check(struct pm_rec_options *options, char **rest, struct pm_error *err);

/* SPDX-License-Identifier: MIT */
/*
 * Between the files that read the command line.
 */
#pragma once

#include "options.h"

/* The way to --help, behind what is wrong. Always -EINVAL. */
int pm_rec_usage(struct pm_error *err);

/* Values of options: 0, or -EINVAL with one clear line. */
int pm_rec_parse_tasks(struct pm_task_list *ret, char option, const char *text,
		       struct pm_error *err);
int pm_rec_parse_cpus(const char *text, struct pm_error *err);
/* Any text but none; @what it names. */
int pm_rec_parse_name(const char *option, const char *what, const char *text,
		      struct pm_error *err);
int pm_rec_parse_delay(struct pm_rec_options *options, const char *text,
		       struct pm_error *err);
/* "1.5s", "500ms", "2m", "1h"; a bare number counts seconds. */
int pm_rec_parse_duration(uint64_t *ret_ns, const char *text, struct pm_error *err);
/* "100M", "1.5G"; a bare number counts bytes. */
int pm_rec_parse_size(uint64_t *ret_bytes, const char *text, struct pm_error *err);
int pm_rec_parse_count(uint64_t *ret, const char *option, const char *text,
		       struct pm_error *err);
int pm_rec_parse_control(const char *text, struct pm_error *err);
int pm_rec_parse_realtime(int *ret, const char *text, struct pm_error *err);
int pm_rec_parse_branches(uint64_t *ret, const char *text, struct pm_error *err);
/* For the events of the last -e, of which the first is number @first. */
int pm_rec_parse_filter(struct pm_rec_options *options, size_t first, const char *text,
			struct pm_error *err);

/* What goes together. @rest are the words behind the options. */
int pm_rec_check(struct pm_rec_options *options, char **rest, struct pm_error *err);

/* SPDX-License-Identifier: MIT */
/*
 * --control: a recording that obeys lines of a FIFO, with perf-record(1)'s words.
 */
#pragma once

#include "pm/base.h"

enum pm_rec_command {
	PM_REC_CONTROL_NONE, /* no whole line yet */
	PM_REC_CONTROL_ENABLE,
	PM_REC_CONTROL_DISABLE,
	PM_REC_CONTROL_PING,
	PM_REC_CONTROL_SNAPSHOT,
	PM_REC_CONTROL_STOP,
	PM_REC_CONTROL_UNKNOWN, /* `line` has it */
};

struct pm_rec_control {
	int fd, ack_fd; /* -1: none */
	char line[64]; /* the last one, NUL-terminated, cut off where it is longer */
	char rest[256]; /* what has been read behind it */
	size_t line_len, rest_len, rest_at;
};

void pm_rec_control_init(struct pm_rec_control *control);
/* @text as pm_rec_parse_control() took it. */
int pm_rec_control_open(struct pm_rec_control *control, const char *text,
			struct pm_error *err);
void pm_rec_control_release(struct pm_rec_control *control);

/* Reads once what is there. To be called when poll(2) finds `fd` ready. */
void pm_rec_control_read(struct pm_rec_control *control);
/* The next line of it. */
enum pm_rec_command pm_rec_control_next(struct pm_rec_control *control);
/* "ack\n" to whoever waits for it. */
void pm_rec_control_ack(const struct pm_rec_control *control);

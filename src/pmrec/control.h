/* SPDX-License-Identifier: MIT */
/*
 * --control: commands of perf-record(1), read as lines from a FIFO or a descriptor,
 * control the recording.
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
	PM_REC_CONTROL_UNKNOWN, /* its text is in `line` */
};

struct pm_rec_control {
	int fd, ack_fd; /* -1: none */
	char line[64]; /* the last line, NUL-terminated, truncated if it is longer */
	char rest[256]; /* bytes read after that line */
	size_t line_len, rest_len, rest_at;
};

void pm_rec_control_init(struct pm_rec_control *control);
/* @text must have been accepted by rec_set_control(). */
int pm_rec_control_open(struct pm_rec_control *control, const char *text,
			struct pm_error *err);
void pm_rec_control_release(struct pm_rec_control *control);

/* Makes one read of the available bytes. Call this when poll(2) reports `fd` as ready. */
void pm_rec_control_read(struct pm_rec_control *control);
/* Returns the command of the next line that has been read. */
enum pm_rec_command pm_rec_control_next(struct pm_rec_control *control);
/* Writes "ack\n" to the ACK file, if there is one. */
void pm_rec_control_ack(const struct pm_rec_control *control);

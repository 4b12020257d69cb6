/* SPDX-License-Identifier: MIT */
/*
 * Priority of the thread that empties the rings. A target that keeps all CPUs busy keeps the
 * recorder from running, too, and then the rings overflow: so that thread runs with
 * SCHED_FIFO, or where that is refused with the best nice value that is allowed. For as long
 * as it records only; who is forked meanwhile does not inherit it, and the command was
 * forked before.
 *
 * The work before and after the recording, opening events and naming functions, mostly
 * takes a tenth of a second of CPU time. Beside a hundred busy threads it would take ten
 * seconds or more at the usual priority. It therefore has the best nice value that is
 * allowed, for half a second of CPU time each.
 */
#pragma once

#include "session.h"

struct pm_rec_realtime;

/* Before the events are opened, after the command was forked: the best nice value, for half a
 * second of CPU time. Fails without memory only. */
int pm_rec_realtime_hurry(struct pm_rec_session *session, struct pm_error *err);
/* The nice value for what has to be ready soon; false: no other than the usual one. */
bool pm_rec_realtime_hurry_nice(const struct pm_rec_session *session, int *ret);
/* Raises the priority of the calling thread. Fails only when -r asked for what is refused;
 * @err tells the remedy. */
int pm_rec_realtime_begin(struct pm_rec_session *session, struct pm_error *err);
/*
 * Before each round: what follows may keep a CPU for a while. A file of the target that costs
 * more than half a second of CPU time in one round (its tables are read then) would keep
 * everybody else from that CPU: the priority is given up, in the middle of it.
 */
void pm_rec_realtime_round(struct pm_rec_session *session);
/* Ends the real-time priority, and reports if it had to be given up. A better nice
 * value stays for another half a second of CPU time. */
void pm_rec_realtime_end(struct pm_rec_session *session);
/* One line for --verbose. */
void pm_rec_realtime_print(const struct pm_rec_session *session);
void pm_rec_realtime_free(struct pm_rec_realtime *realtime);

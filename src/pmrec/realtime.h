/* SPDX-License-Identifier: MIT */
/*
 * Priority of the thread that empties the rings. A target that keeps all CPUs busy also
 * keeps the recorder from running, and then the rings overflow. That thread therefore
 * runs with SCHED_FIFO or, if that is denied, with the best nice value allowed. Processes
 * forked during the recording do not inherit the priority, and the command is forked
 * before.
 *
 * The work before and after the recording, opening events and naming functions, usually
 * takes a tenth of a second of CPU time. Beside a hundred busy threads it would take ten
 * seconds or more at the usual priority. A nice value is not enough, because it only
 * matters among the tasks of the same cgroup or session (sched(7), autogroup). Therefore
 * this work also runs with SCHED_FIFO, for up to half a second of CPU time before the
 * recording and after it.
 */
#pragma once

#include "session.h"

struct pm_rec_realtime;

/* Raises the priority for half a second of CPU time. Call this before the events are
 * opened and after the command was forked. Threads that are created before
 * pm_rec_realtime_begin() inherit the priority permanently. Fails only without memory. */
int pm_rec_realtime_hurry(struct pm_rec_session *session, struct pm_error *err);
/* Gets the nice value for work that has to be finished soon. Returns false if that is the
 * usual one. */
bool pm_rec_realtime_hurry_nice(const struct pm_rec_session *session, int *out);
/* Whether that work also has real-time priority. */
bool pm_rec_realtime_hurries(const struct pm_rec_session *session);
/* Raises the priority of the calling thread. Fails only if -r asks for a priority that is
 * denied; @err then gives the remedy. */
int pm_rec_realtime_begin(struct pm_rec_session *session, struct pm_error *err);
/*
 * Call this before each round, because the round may keep a CPU for a while. A target's
 * file whose tables take more than half a second of CPU time to read in one round would
 * keep all other tasks from that CPU. In that case the priority is given up in the middle
 * of the round.
 */
void pm_rec_realtime_round(struct pm_rec_session *session);
/* Call this when the rings are not read any more: reports if the priority had to be given
 * up. It is kept for another half second of CPU time. */
void pm_rec_realtime_end(struct pm_rec_session *session);
/* Whether real-time priority was denied. */
bool pm_rec_realtime_is_refused(const struct pm_rec_session *session);
/* Prints the line for --verbose. */
void pm_rec_realtime_print(const struct pm_rec_session *session);
void pm_rec_realtime_free(struct pm_rec_realtime *realtime);

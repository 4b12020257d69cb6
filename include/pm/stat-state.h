/* SPDX-License-Identifier: MIT */
/* The state of a counted value, from the counter to the counting document. */
#pragma once

/* How reliable a count is. Only the first two states have a value; a missing value is
 * never 0. */
enum pm_stat_state {
	PM_STAT_OK,
	PM_STAT_MULTIPLEXED, /* counted for part of the time, and scaled */
	PM_STAT_NOT_COUNTED, /* the event never got a counter */
	PM_STAT_NOT_SUPPORTED, /* this machine does not have the event */
	PM_STAT_NOT_PERMITTED, /* this user may not use the event */
	/* Functions: too little of the count belongs to them rather than to the
	 * measurement. */
	PM_STAT_NOT_KNOWN,
};

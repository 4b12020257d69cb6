/* SPDX-License-Identifier: MIT */
/*
 * The helper processes of symbol-worker.h: as many at once as there are CPUs, a new one where
 * one died or took too long, without the module that it died of.
 */
#pragma once

#include <sys/resource.h>

#include "symbol-wire.h"
#include "symbol-worker.h"

struct pm_rec_crew_calls {
	void *user;
	/* The chain of jobs[@job].addresses[message->index], which rises with each call for a
	 * job. 0, or a negative errno to end it all. */
	int (*symbol)(void *user, size_t job, const struct pm_rec_wire_message *message);
	/* The job is over; @why NULL or, in words, why @what was left out. */
	int (*done)(void *user, size_t job, const char *what, const char *why);
	/* Now and then; negative to end it all. */
	int (*tick)(void *user);
};

struct pm_rec_crew_cost {
	unsigned int processes;
	struct timeval user, system; /* of all of them */
	long memory_kb; /* of the largest, with what it shares with us */
};

/* Each job goes to one process, in the order of @jobs; the largest should come first. */
int pm_rec_crew_run(const struct pm_rec_session *session,
		    const struct pm_rec_symbol_job *jobs, size_t len,
		    const struct pm_rec_crew_calls *calls, struct pm_rec_crew_cost *cost);

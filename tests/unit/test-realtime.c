/* SPDX-License-Identifier: MIT */
/* The priority of who empties the rings: given up in a long round, and taken again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <time.h>

#include "src/pmrec/realtime.h"

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static uint64_t cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void test_priority_comes_back(void **state)
{
	enum {
		ROUND_MS = 10,
		ROUNDS_MAX = 2000,
	};
	static const struct pm_rec_options options = { .quiet = true, .realtime = 0 };
	struct pm_rec_session session = { .options = &options };
	uint64_t until;
	int rounds = 0;

	(void)state;
	/* Nothing is asked of it here but to be there. */
	session.perf = (struct pm_perf *)&session;
	assert_int_equal(pm_rec_realtime_hurry(&session, NULL), 0);
	assert_int_equal(pm_rec_realtime_begin(&session, NULL), 0);
	if (policy() != SCHED_FIFO) {
		pm_rec_realtime_end(&session);
		pm_rec_realtime_free(session.realtime);
		print_message("# SKIP real-time priority is not allowed here\n");
		skip();
	}
	pm_rec_realtime_round(&session);
	until = cpu_ms() + 700;
	while (cpu_ms() < until && policy() == SCHED_FIFO)
		;
	assert_int_equal(policy(), SCHED_OTHER);
	/* Not in the next round, which may be a long one, too. */
	pm_rec_realtime_round(&session);
	assert_int_equal(policy(), SCHED_OTHER);
	for (; policy() != SCHED_FIFO && rounds < ROUNDS_MAX; rounds++) {
		const struct timespec wait = { .tv_nsec = ROUND_MS * 1000000 };

		nanosleep(&wait, NULL);
		pm_rec_realtime_round(&session);
	}
	assert_int_equal(policy(), SCHED_FIFO);
	assert_true(rounds > 5);
	/* The work after the recording keeps it for half a second of CPU time. */
	pm_rec_realtime_end(&session);
	assert_int_equal(policy(), SCHED_FIFO);
	until = cpu_ms() + 700;
	while (cpu_ms() < until && policy() == SCHED_FIFO)
		;
	assert_int_equal(policy(), SCHED_OTHER);
	pm_rec_realtime_free(session.realtime);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_priority_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

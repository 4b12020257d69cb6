/* SPDX-License-Identifier: MIT */
#include "course.h"

#include <poll.h>
#include <string.h>

#include "child.h"
#include "drain.h"

enum {
	POLL_MS = 100, /* rings that fill slowly wake nobody */
	WAITING_MS = 1000, /* until a stopped recording says what it waits for */
	FIXED_FDS = 2, /* in front of the rings': signals, the command */
};
#define FLUSH_NS 1000000000ull

static void poll_init(struct pm_rec_session *session, struct pollfd *fds,
		      size_t rings_len)
{
	size_t len;
	const int *rings = pm_perf_poll_fds(session->perf, &len);

	fds[0] = (struct pollfd){ .fd = session->child.signal_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = session->child.launch.pidfd, .events = POLLIN };
	for (size_t i = 0; i < rings_len; i++)
		fds[FIXED_FDS + i] = (struct pollfd){ .fd = rings[i], .events = POLLIN };
}

/* A ring whose tasks have all ended reports POLLHUP for ever (perf_poll()). */
static void poll_drop_ended(struct pollfd *fds, size_t len)
{
	for (size_t i = FIXED_FDS; i < len; i++)
		if (fds[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			fds[i].fd = -1;
}

/* At once: the command may run for days yet. What exactly is wrong is said at the end. */
void pm_rec_say_stopped(const struct pm_error *err, int error)
{
	fprintf(stderr,
		"pmrec: recording has stopped (%s); the command runs on to its end\n",
		err->code != 0 ? err->text : strerror(-error));
}

void pm_rec_say_waiting(const struct pm_rec_session *session, bool failed)
{
	if (!session->options->quiet && !failed)
		fprintf(stderr, "pmrec: stopped; waiting for the command to end "
				"(the next signal kills it)\n");
}

int pm_rec_course_run(struct pm_rec_session *session, struct pm_error *err)
{
	struct pm_rec_child *child = &session->child;
	size_t rings_len;
	size_t fds_len =
		(pm_perf_poll_fds(session->perf, &rings_len), rings_len) + FIXED_FDS;
	PM_AUTO_FREE struct pollfd *fds = calloc(fds_len, sizeof(*fds));
	uint64_t flushed_ns = session->begin_ns;
	bool recording = true, said = false;
	int error = 0;

	if (!fds) {
		recording = false;
		error = pm_error_set(err, -ENOMEM, "out of memory");
	} else {
		poll_init(session, fds, rings_len);
	}
	while (child->running) {
		int ready = poll(fds,
				 recording ? fds_len
				 : fds     ? FIXED_FDS
					   : 0,
				 recording ? POLL_MS : WAITING_MS);

		pm_rec_child_signals(child);
		pm_rec_child_reap(child);
		if (recording) {
			bool last = !child->running || child->interrupts > 0;
			uint64_t now = pm_rec_now_ns();

			poll_drop_ended(fds, fds_len);
			if (last)
				pm_perf_disable(session->perf);
			error = pm_rec_drain(session, last, err);
			if (error == 0 && now - flushed_ns >= FLUSH_NS) {
				error = pm_file_writer_flush(session->writer);
				flushed_ns = now;
			}
			if (error < 0) {
				pm_perf_disable(session->perf);
				if (child->running)
					pm_rec_say_stopped(err, error);
			}
			recording = error == 0 && !last;
			session->end_ns = now;
		} else if (ready == 0 && !said) {
			pm_rec_say_waiting(session, error < 0);
			said = true;
		}
	}
	return error;
}

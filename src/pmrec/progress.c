/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <inttypes.h>

/* ECMA-48: erase from here to the end of the line. */
#define ERASE_LINE "\033[K"

static bool is_progress_wanted(const struct pm_rec_session *session)
{
	return session->options->verbose && !session->options->quiet &&
	       isatty(STDERR_FILENO);
}

void pm_rec_progress(struct pm_rec_session *session, uint64_t now_ns)
{
	if (!is_progress_wanted(session))
		return;
	fprintf(stderr,
		"\rpmrec: %" PRIu64 " samples, %" PRIu64 " lost, %.1f MB, %" PRIu64
		" s" ERASE_LINE,
		session->counts.samples, session->counts.lost,
		(double)pm_file_writer_bytes(session->writer) / 1e6,
		(now_ns - session->begin_ns) / 1000000000u);
	session->progress = true;
}

void pm_rec_progress_end(struct pm_rec_session *session)
{
	if (session->progress)
		fputs("\r" ERASE_LINE, stderr);
	session->progress = false;
}

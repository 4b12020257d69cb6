/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <inttypes.h>
#include <string.h>

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

void pm_rec_warn(struct pm_rec_session *session, const char *text)
{
	struct pm_str safe = { 0 };

	pm_str_printable(&safe, text, strlen(text));
	if (!session->options->quiet && !session->told && !safe.failed) {
		pm_rec_progress_end(session);
		fprintf(stderr, "pmrec: warning: %s\n", pm_str_text(&safe));
	}
	pm_str_release(&safe);
	if (session->writer)
		pm_file_write_note(session->writer,
				   &(struct pm_file_note){ .text = text });
}

/* This is printed at once, because the command may run for days. The details of the error
 * are printed at the end. */
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

void pm_rec_say_end(struct pm_rec_session *session)
{
	static const char *const texts[] = {
		[PM_REC_END_TIME] = "the recording ended when its --duration was over",
		[PM_REC_END_SAMPLES] =
			"the recording ended with as many samples as --max-samples "
			"allows",
		[PM_REC_END_SIZE] = "the recording ended when the file had the size that "
				    "--max-size allows",
		[PM_REC_END_CONTROL] = "the recording ended when --control said stop",
	};
	const char *text =
		session->end < PM_ARRAY_LEN(texts) ? texts[session->end] : NULL;

	if (!text)
		return;
	if (!session->options->quiet)
		fprintf(stderr, "pmrec: %s\n", text);
	pm_file_write_note(session->writer, &(struct pm_file_note){ .text = text });
}

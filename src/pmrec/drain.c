/* SPDX-License-Identifier: MIT */
#include "drain.h"

#include <linux/perf_event.h>

#include "clock-evidence.h"
#include "course.h"
#include "coverage.h"
#include "follow.h"
#include "generation.h"
#include "hold.h"
#include "progress.h"
#include "realtime.h"
#include "record.h"

/* Warns of a ring that cannot be read. The other rings are still useful. */
static void warn_unreadable(struct pm_rec_session *session, const struct pm_error *err)
{
	struct pm_str text = { 0 };

	pm_str_printf(&text, "%s%s%s", err->source, err->source[0] ? ": " : "",
		      err->text);
	if (!text.failed)
		pm_rec_warn(session, text.data);
	pm_str_release(&text);
}

/* Consecutive samples, whose stacks are unwound together. */
struct held {
	struct pm_record records[PM_CHAIN_AHEAD_MAX];
	size_t len, bytes;
};

/* Whether the file has reached its limit. */
static bool is_full(const struct pm_rec_session *session)
{
	return session->end == PM_REC_END_SAMPLES || session->end == PM_REC_END_SIZE;
}

static void keep_evidence(struct pm_rec_session *session, const struct pm_record *record)
{
	const struct pm_perf_event *events;
	size_t len;

	if (!session->evidence || record->type != PERF_RECORD_SAMPLE)
		return;
	events = pm_perf_events(session->perf, &len);
	if (record->event < len && pm_rec_is_clock(&events[record->event]))
		pm_rec_clock_evidence_sample(session->evidence, record->event,
					     record->cpu, record->time,
					     record->sample.period);
}

/* Ends the recording if the previous sample was the last one that --max-samples or
 * --max-size allows. */
static void end_at_limit(struct pm_rec_session *session)
{
	const struct pm_rec_options *options = session->options;

	if (session->end != PM_REC_END_NONE)
		return;
	if (options->max_samples > 0 && session->counts.samples >= options->max_samples)
		session->end = PM_REC_END_SAMPLES;
	else if (options->max_bytes > 0 &&
		 pm_file_writer_bytes(session->writer) >= options->max_bytes)
		session->end = PM_REC_END_SIZE;
}

static int release_held(struct pm_rec_session *session, struct held *held)
{
	int ret = 0;

	size_t samples = held->len;

	/* Only the last record can be something else than a sample: such a record is not
	 * held for later ones. */
	if (samples > 0 && held->records[samples - 1].type != PERF_RECORD_SAMPLE)
		samples--;
	pm_chains_ahead(session->chains, held->records, samples);
	for (size_t i = 0; i < held->len && ret == 0 && !is_full(session); i++) {
		keep_evidence(session, &held->records[i]);
		ret = pm_rec_record(session, &held->records[i]);
		end_at_limit(session);
	}
	/* The records are about to be overwritten. */
	pm_chains_ahead(session->chains, NULL, 0);
	held->len = held->bytes = 0;
	pm_perf_hold(session->perf, false);
	if (ret == 0)
		ret = pm_rec_hold_release(session, pm_rec_hold_until(session->newest_ns));
	if (ret < 0)
		return ret;
	return pm_rec_generation_check(session);
}

/* Whether the last record may wait for the next one. */
static bool may_wait(const struct pm_rec_session *session, struct held *held)
{
	const struct pm_record *last = &held->records[held->len - 1];
	size_t ring_bytes = pm_perf_ring_pages(session->perf) * (size_t)getpagesize();
	uint64_t max = session->options->max_samples;

	if (last->type != PERF_RECORD_SAMPLE || held->len == PM_CHAIN_AHEAD_MAX)
		return false;
	if (max > 0 && held->len >= max - session->counts.samples)
		return false;
	/* A small ring needs the space of held records back earlier. */
	held->bytes += last->sample.stack_asked;
	return held->bytes <= ring_bytes / 4;
}

int pm_rec_drain(struct pm_rec_session *session, bool final, struct pm_error *err)
{
	struct held held = { .len = 0 };
	int ret, next;

	pm_rec_realtime_round(session);
	pm_perf_begin(session->perf, final);
	do {
		next = pm_perf_next(session->perf, &held.records[held.len], err);
		if (next == 1)
			ret = pm_rec_follow_admit(session, &held.records[held.len]);
		else
			ret = 1;
		if (ret == 0)
			continue;
		ret = PM_MIN(ret, 0);
		if (next == 1) {
			held.len++;
			pm_perf_hold(session->perf, true);
		}
		if (ret == 0 && (next != 1 || !may_wait(session, &held)))
			ret = release_held(session, &held);
		if (next == -EBADMSG && ret == 0) {
			warn_unreadable(session, err);
			*err = (struct pm_error){ 0 }; /* has been reported */
		} else if (next < 0 && ret == 0) {
			ret = next;
		}
		if (ret < 0) {
			if (ret == -ENOMEM)
				pm_error_set(err, ret, "out of memory");
			return ret;
		}
	} while (next != 0 && !is_full(session));
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "hold.h"

#include <string.h>

#include "generation.h"

enum {
	/* Limits of the samples that wait: their number, the bytes of their copies, and
	 * the time. */
	HELD_MAX = 1 << 14,
	HELD_BYTES_MAX = 8 << 20,
	HELD_NS = 500 * 1000 * 1000,
	LINE_BYTES =
		256, /* upper bound for a sample's line in the file, without its stack */
};

struct held {
	struct pm_file_sample sample;
	struct pm_chain chain;
	struct pm_chain_names names; /* names of the task at the time of the sample */
	void *copy; /* copy of the data that the sample points to; NULL: none */
	size_t copy_bytes;
};

struct pm_rec_hold {
	struct held *ring; /* HELD_MAX entries; NULL until a sample has to wait */
	size_t first, len;
	size_t copy_bytes;
};

struct pm_rec_hold *pm_rec_hold_new(void)
{
	return calloc(1, sizeof(struct pm_rec_hold));
}

void pm_rec_hold_free(struct pm_rec_hold *hold)
{
	if (!hold)
		return;
	for (size_t i = 0; i < hold->len; i++)
		free(hold->ring[(hold->first + i) % HELD_MAX].copy);
	free(hold->ring);
	free(hold);
}

/* ---- copies ----------------------------------------------------------------------------- */

static void *append_copy(uint8_t **at, const void *from, size_t bytes)
{
	uint8_t *start = *at;

	if (bytes > 0)
		memcpy(start, from, bytes);
	*at = start + bytes;
	return start;
}

/* Copies the data that the sample points to. The names of fields need no copy: they are
 * valid as long as session->fields. */
static int copy_pointed(struct held *held)
{
	struct pm_file_sample *sample = &held->sample;
	size_t fields = sample->fields_len * sizeof(*sample->fields);
	size_t counts = sample->counts_len * sizeof(*sample->counts);
	size_t branches = sample->branches_len * sizeof(*sample->branches);
	struct pm_file_field *copied;
	uint8_t *at;

	held->copy_bytes = fields + counts + branches;
	for (size_t i = 0; i < sample->fields_len; i++)
		if (sample->fields[i].kind == PM_FILE_FIELD_TEXT)
			held->copy_bytes += strlen(sample->fields[i].text) + 1;
	if (held->copy_bytes == 0)
		return 0;
	held->copy = at = malloc(held->copy_bytes);
	if (!at)
		return -ENOMEM;
	sample->fields = copied = append_copy(&at, sample->fields, fields);
	sample->counts = append_copy(&at, sample->counts, counts);
	sample->branches = append_copy(&at, sample->branches, branches);
	for (size_t i = 0; i < sample->fields_len; i++)
		if (copied[i].kind == PM_FILE_FIELD_TEXT)
			copied[i].text = append_copy(&at, copied[i].text,
						     strlen(copied[i].text) + 1);
	return 0;
}

/* ---- the queue -------------------------------------------------------------------------- */

void pm_rec_hold_count(struct pm_rec_counts *counts, const struct pm_chain *chain,
		       bool counted)
{
	bool too_large = chain->stop == PM_UNW_STOP_TRUNCATED &&
			 chain->wanted_bytes > PM_STACK_BYTES_MAX;
	uint64_t by = counted ? 1 : UINT64_MAX; /* UINT64_MAX wraps around: one less */

	counts->stops[chain->stop] += by;
	if (chain->stop == PM_UNW_STOP_TRUNCATED || chain->stitched)
		counts->truncated += by;
	if (chain->stitched)
		counts->stitched += by;
	if (too_large)
		counts->too_large += by;
}

static int write_sample(struct pm_rec_session *session,
			const struct pm_file_sample *sample,
			const struct pm_chain_names *names)
{
	int ret = pm_chain_threads_name(&session->threads, session->writer, sample->pid,
					sample->tid, names, sample->time);

	if (ret < 0)
		return ret;
	return pm_file_write_sample(session->writer, sample);
}

int pm_rec_hold_new_stacks(struct pm_rec_session *session)
{
	int ret;

	if (!pm_file_writer_stacks_full(session->writer))
		return 0;
	ret = pm_file_writer_new_stacks(session->writer);
	pm_chains_forget_stacks(session->chains);
	session->tables.stacks++;
	return ret;
}

static int release_first(struct pm_rec_session *session)
{
	struct pm_rec_hold *hold = session->hold;
	struct held *held = &hold->ring[hold->first];
	struct pm_chain before = held->chain;
	int ret = pm_rec_hold_new_stacks(session);

	if (ret == 0)
		ret = pm_chains_settle(session->chains, &held->chain);

	pm_rec_hold_count(&session->counts, &before, false);
	pm_rec_hold_count(&session->counts, &held->chain, true);
	held->sample.stack = held->chain.stack;
	if (held->chain.stop == PM_UNW_STOP_ROOT)
		held->sample.stop = NULL;
	else
		held->sample.stop = pm_chain_stop_name(held->chain.stop);
	if (ret == 0)
		ret = write_sample(session, &held->sample, &held->names);
	hold->copy_bytes -= held->copy_bytes;
	free(held->copy);
	hold->first = (hold->first + 1) % HELD_MAX;
	hold->len--;
	return ret;
}

int pm_rec_hold_add(struct pm_rec_session *session, const struct pm_file_sample *sample,
		    const struct pm_chain *chain, const struct pm_chain_names *names)
{
	struct pm_rec_hold *hold = session->hold;
	struct held held = { .sample = *sample, .chain = *chain, .names = *names };
	int ret = 0;

	if (hold->len == 0 && chain->promise == 0)
		return write_sample(session, sample, names);
	/* Close to --max-size no sample waits, because samples that wait are not included
	 * in the file's size. */
	if (session->options->max_bytes > 0 &&
	    pm_file_writer_bytes(session->writer) + (hold->len + 1) * LINE_BYTES >=
		    session->options->max_bytes) {
		ret = pm_rec_hold_release(session, UINT64_MAX);
		if (ret < 0)
			return ret;
		return write_sample(session, sample, names);
	}
	if (!hold->ring)
		hold->ring = calloc(HELD_MAX, sizeof(*hold->ring));
	if (!hold->ring || copy_pointed(&held) < 0)
		return -ENOMEM;
	while (ret == 0 && hold->len > 0 &&
	       (hold->len == HELD_MAX ||
		hold->copy_bytes + held.copy_bytes > HELD_BYTES_MAX))
		ret = release_first(session);
	hold->ring[(hold->first + hold->len++) % HELD_MAX] = held;
	hold->copy_bytes += held.copy_bytes;
	return ret;
}

int pm_rec_hold_release(struct pm_rec_session *session, uint64_t time_ns)
{
	struct pm_rec_hold *hold = session->hold;
	int ret = 0;

	while (ret == 0 && hold->len > 0) {
		const struct held *first = &hold->ring[hold->first];

		if (first->chain.promise != 0 && first->sample.time >= time_ns)
			break;
		ret = release_first(session);
	}
	return ret;
}

uint64_t pm_rec_hold_until(uint64_t now_ns)
{
	if (now_ns > HELD_NS)
		return now_ns - HELD_NS;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "perf-internal.h"

#include <string.h>
#include <sys/mman.h>

/* Layouts: linux/perf_event.h, enum perf_event_type. */

/* Sample fields of 8 bytes each that precede the variable ones, in this order. */
#define FIXED_FIELDS                                                                    \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |  \
	 PERF_SAMPLE_PERIOD)
/* PERF_SAMPLE_BRANCH_COUNTERS, Linux 6.8 */
#define BRANCH_COUNTERS (1u << 19)
/* The sample_id at the end of every other record, in the order of struct sample_id. */
#define TRAILER_FIELDS                                                                 \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* ---- ids ------------------------------------------------------------------------------ */

static bool is_event_id_equal(const void *table, uint32_t row, const void *key)
{
	const struct pm_event_ids *ids = table;
	const uint64_t *id = key;

	return ids->list.data[row].id == *id;
}

int pm_event_ids_add(struct pm_event_ids *ids, uint64_t id, uint32_t event)
{
	uint32_t row = (uint32_t)ids->list.len;
	int ret = pm_vec_push(&ids->list, (struct pm_event_id){ id, event, 0 });

	if (ret < 0)
		return ret;
	ret = pm_index_add(&ids->index, pm_hash_mix(id, 0), row);
	if (ret < 0)
		ids->list.len--;
	return ret;
}

void pm_event_ids_period(struct pm_event_ids *ids, uint64_t period)
{
	if (ids->list.len > 0)
		ids->list.data[ids->list.len - 1].period = period;
}

/* Returns the period of the samples of @id if they do not contain it, else 0. */
static uint64_t period_without_field(const struct pm_event_ids *ids, uint64_t id)
{
	uint32_t row = pm_index_find(&ids->index, pm_hash_mix(id, 0), is_event_id_equal,
				     ids, &id);

	if (row == PM_INDEX_NONE)
		return 0;
	return ids->list.data[row].period;
}

uint32_t pm_event_ids_find(const struct pm_event_ids *ids, uint64_t id)
{
	uint32_t row = pm_index_find(&ids->index, pm_hash_mix(id, 0), is_event_id_equal,
				     ids, &id);

	if (row == PM_INDEX_NONE)
		return PM_INDEX_NONE;
	return ids->list.data[row].event;
}

void pm_event_ids_release(struct pm_event_ids *ids)
{
	pm_index_release(&ids->index);
	pm_vec_release(&ids->list);
}

/* ---- cursor --------------------------------------------------------------------------- */

/* Inline, unlike pm_reader: a sample has thirty words, and 100,000 samples may arrive
 * each second. */
struct cursor {
	const uint8_t *at, *end;
};

static inline size_t cursor_bytes_left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/* Unchecked: the caller has verified that the bytes are there. */
static inline uint64_t take_word_unchecked(struct cursor *cursor)
{
	uint64_t value;

	memcpy(&value, cursor->at, sizeof(value));
	cursor->at += sizeof(value);
	return value;
}

static inline void take_two_halves(struct cursor *cursor, uint32_t *first,
				   uint32_t *second)
{
	memcpy(first, cursor->at, sizeof(*first));
	memcpy(second, cursor->at + sizeof(*first), sizeof(*second));
	cursor->at += sizeof(uint64_t);
}

/* 8 bytes for each set bit. Counted by hand, because without -mpopcnt the builtin calls
 * libgcc. */
static inline size_t bytes_of_words(uint64_t fields)
{
	fields -= fields >> 1 & 0x5555555555555555;
	fields = (fields & 0x3333333333333333) + (fields >> 2 & 0x3333333333333333);
	fields = (fields + (fields >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (size_t)(fields * 0x0101010101010101 >> 56) * sizeof(uint64_t);
}

static int set_malformed_record_error(const struct perf_event_header *header,
				      const char *what, struct pm_error *err)
{
	return pm_error_set(err, -EBADMSG,
			    "%s outside of a record of type %u and %u bytes", what,
			    header->type, header->size);
}

/* ---- samples -------------------------------------------------------------------------- */

struct sample_fixed {
	uint64_t identifier, ip, time, address, id, period;
	uint32_t pid, tid, cpu;
};

static void sample_read_fixed(struct cursor *in, uint64_t type, struct sample_fixed *out)
{
	uint32_t reserved;

	*out = (struct sample_fixed){ 0 };
	if (type & PERF_SAMPLE_IDENTIFIER)
		out->identifier = take_word_unchecked(in);
	if (type & PERF_SAMPLE_IP)
		out->ip = take_word_unchecked(in);
	if (type & PERF_SAMPLE_TID)
		take_two_halves(in, &out->pid, &out->tid);
	if (type & PERF_SAMPLE_TIME)
		out->time = take_word_unchecked(in);
	if (type & PERF_SAMPLE_ADDR)
		out->address = take_word_unchecked(in);
	if (type & PERF_SAMPLE_ID)
		out->id = take_word_unchecked(in);
	if (type & PERF_SAMPLE_STREAM_ID)
		in->at += sizeof(uint64_t);
	if (type & PERF_SAMPLE_CPU)
		take_two_halves(in, &out->cpu, &reserved);
	if (type & PERF_SAMPLE_PERIOD)
		out->period = take_word_unchecked(in);
}

/* { u64 nr; u64 ips[nr]; } */
static bool sample_read_callchain(struct cursor *in, const uint64_t **chain, size_t *len)
{
	uint64_t nr;

	if (cursor_bytes_left(in) < sizeof(nr))
		return false;
	nr = take_word_unchecked(in);
	if (nr > cursor_bytes_left(in) / sizeof(uint64_t))
		return false;
	/* Aligned, since the record is and all preceding fields are multiples of 8. */
	if (nr > 0)
		*chain = (const void *)in->at;
	else
		*chain = NULL;
	*len = (size_t)nr;
	in->at += (size_t)nr * sizeof(uint64_t);
	return true;
}

/*
 * struct read_format, of one event or of a group:
 * { u64 value, [time_enabled], [time_running], [id], [lost]; }
 * { u64 nr, [time_enabled], [time_running]; { u64 value, [id], [lost]; } [nr]; }
 */
static bool sample_read_counts(struct cursor *in, uint64_t format, struct pm_sample *out)
{
	size_t times = bytes_of_words(format & (PERF_FORMAT_TOTAL_TIME_ENABLED |
						PERF_FORMAT_TOTAL_TIME_RUNNING));
	size_t row = sizeof(uint64_t) +
		     bytes_of_words(format & (PERF_FORMAT_ID | PERF_FORMAT_LOST));
	const uint8_t *start = in->at;
	uint64_t rows = 1;

	if (format & PERF_FORMAT_GROUP) {
		if (cursor_bytes_left(in) < sizeof(rows))
			return false;
		rows = take_word_unchecked(in);
	}
	if (cursor_bytes_left(in) < times || rows > (cursor_bytes_left(in) - times) / row)
		return false;
	in->at += times + (size_t)rows * row;
	out->counts = (const void *)start;
	out->counts_len = (size_t)(in->at - start) / sizeof(uint64_t);
	return true;
}

/* { u32 size; char data[size]; }, padded by the kernel so that both are a multiple of 8 */
static bool sample_read_raw(struct cursor *in, struct pm_sample *out)
{
	uint32_t size;

	if (cursor_bytes_left(in) < sizeof(size))
		return false;
	memcpy(&size, in->at, sizeof(size));
	in->at += sizeof(size);
	if (size > cursor_bytes_left(in) || (size + sizeof(size)) % 8 != 0)
		return false;
	out->raw = in->at;
	out->raw_len = size;
	in->at += size;
	return true;
}

/* { u64 nr; [u64 hw_idx;] struct perf_branch_entry entries[nr]; [u64 counters[nr];] } */
static bool sample_read_branches(struct cursor *in, uint64_t format,
				 struct pm_sample *out)
{
	size_t entry = sizeof(struct perf_branch_entry);
	uint64_t nr;

	_Static_assert(sizeof(struct perf_branch_entry) == 24, "of the ABI");
	if (cursor_bytes_left(in) < sizeof(nr))
		return false;
	nr = take_word_unchecked(in);
	if (format & PERF_SAMPLE_BRANCH_HW_INDEX) {
		if (cursor_bytes_left(in) < sizeof(uint64_t))
			return false;
		/* The position of the newest entry in the registers is not needed. */
		in->at += sizeof(uint64_t);
	}
	if (format & BRANCH_COUNTERS)
		entry += sizeof(uint64_t);
	if (nr > cursor_bytes_left(in) / entry)
		return false;
	if (nr > 0)
		out->branches = (const void *)in->at;
	else
		out->branches = NULL;
	out->branches_len = (size_t)nr;
	in->at += (size_t)nr * entry;
	return true;
}

/* { u64 abi; u64 regs[weight(mask)]; }, without the registers if abi is NONE */
static bool sample_read_regs(struct cursor *in, uint64_t mask, uint64_t *abi,
			     const uint64_t **values)
{
	if (cursor_bytes_left(in) < sizeof(*abi))
		return false;
	*abi = take_word_unchecked(in);
	*values = (const void *)in->at;
	if (*abi == PERF_SAMPLE_REGS_ABI_NONE)
		return true;
	if (*abi > PERF_SAMPLE_REGS_ABI_64 ||
	    cursor_bytes_left(in) < bytes_of_words(mask))
		return false;
	in->at += bytes_of_words(mask);
	return true;
}

/* { u64 size; char data[size]; u64 dyn_size; }, only the size if it is 0 */
static bool sample_read_stack(struct cursor *in, struct pm_sample *out)
{
	uint64_t size, used;

	if (cursor_bytes_left(in) < sizeof(size))
		return false;
	size = take_word_unchecked(in);
	if (size == 0)
		return true;
	if (cursor_bytes_left(in) < sizeof(used) ||
	    size > cursor_bytes_left(in) - sizeof(used))
		return false;
	out->stack = in->at;
	out->stack_asked = (size_t)size;
	in->at += size;
	used = take_word_unchecked(in);
	out->stack_len = (size_t)used;
	return used <= size;
}

static int record_decode_sample(const struct perf_event_header *header,
				const struct pm_record_layout *layout,
				struct pm_record *out, struct pm_error *err)
{
	const uint8_t *start = (const uint8_t *)header;
	struct cursor in = { start + sizeof(*header), start + header->size };
	const struct pm_regs_arch *arch = pm_regs_native();
	uint64_t type = layout->sample_type, abi = PERF_SAMPLE_REGS_ABI_NONE;
	const uint64_t *chain = NULL, *regs = NULL;
	/* The variable fields are collected here, since @out must not change on
	 * failure. */
	struct pm_sample found = { 0 };
	struct sample_fixed fixed;
	size_t chain_len = 0;
	uint64_t period = 0;
	uint32_t event = 0;

	if (layout->ids && (type & PERF_SAMPLE_IDENTIFIER) &&
	    cursor_bytes_left(&in) >= sizeof(uint64_t))
		period = period_without_field(
			layout->ids,
			take_word_unchecked(&(struct cursor){ in.at, in.end }));
	if (period)
		type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
	if (cursor_bytes_left(&in) < bytes_of_words(type & FIXED_FIELDS))
		return set_malformed_record_error(header, "fixed fields", err);
	sample_read_fixed(&in, type, &fixed);
	if ((type & PERF_SAMPLE_READ) &&
	    !sample_read_counts(&in, layout->read_format, &found))
		return set_malformed_record_error(header, "counts", err);
	if ((type & PERF_SAMPLE_CALLCHAIN) &&
	    !sample_read_callchain(&in, &chain, &chain_len))
		return set_malformed_record_error(header, "callchain", err);
	if ((type & PERF_SAMPLE_RAW) && !sample_read_raw(&in, &found))
		return set_malformed_record_error(header, "raw data", err);
	if ((type & PERF_SAMPLE_BRANCH_STACK) &&
	    !sample_read_branches(&in, layout->branch_sample_type, &found))
		return set_malformed_record_error(header, "branches", err);
	if ((type & PERF_SAMPLE_REGS_USER) &&
	    !sample_read_regs(&in, layout->regs_user, &abi, &regs))
		return set_malformed_record_error(header, "user registers", err);
	if ((type & PERF_SAMPLE_STACK_USER) && !sample_read_stack(&in, &found))
		return set_malformed_record_error(header, "user stack", err);
	if (layout->ids) {
		event = pm_event_ids_find(layout->ids, type & PERF_SAMPLE_IDENTIFIER
							       ? fixed.identifier
							       : fixed.id);
		if (event == PM_INDEX_NONE)
			return pm_error_set(err, -EBADMSG,
					    "a sample of an unknown event");
	}

	out->type = header->type;
	out->misc = header->misc;
	out->time = fixed.time;
	out->pid = fixed.pid;
	out->tid = fixed.tid;
	out->cpu = fixed.cpu;
	out->event = event;
	out->sample.ip = fixed.ip;
	out->sample.period = period ? period : fixed.period;
	out->sample.callchain = chain;
	out->sample.callchain_len = chain_len;
	out->sample.address = fixed.address;
	out->sample.counts = found.counts;
	out->sample.counts_len = found.counts_len;
	out->sample.raw = found.raw;
	out->sample.raw_len = found.raw_len;
	out->sample.branches = found.branches;
	out->sample.branches_len = found.branches_len;
	out->sample.stack = found.stack;
	out->sample.stack_len = found.stack_len;
	out->sample.stack_asked = found.stack_asked;
	out->sample.stack_below = 0;
	if (arch) {
		pm_regs_convert(arch, (enum pm_regs_abi)abi, layout->regs_user, regs,
				&out->sample.regs);
	} else {
		out->sample.regs.abi = PM_REGS_NONE;
		out->sample.regs.known = 0;
	}
	return 0;
}

/* ---- other records -------------------------------------------------------------------- */

/* struct sample_id, which is located from the end of the record. */
static void record_read_trailer(const uint8_t *end, const struct pm_record_layout *layout,
				struct pm_record *out)
{
	uint64_t type = layout->sample_type, id = 0;
	struct cursor in = { end - bytes_of_words(type & TRAILER_FIELDS), end };
	uint32_t reserved;

	if (type & PERF_SAMPLE_TID)
		take_two_halves(&in, &out->pid, &out->tid);
	if (type & PERF_SAMPLE_TIME)
		out->time = take_word_unchecked(&in);
	if (type & PERF_SAMPLE_ID)
		id = take_word_unchecked(&in);
	if (type & PERF_SAMPLE_STREAM_ID)
		in.at += sizeof(uint64_t);
	if (type & PERF_SAMPLE_CPU)
		take_two_halves(&in, &out->cpu, &reserved);
	if (type & PERF_SAMPLE_IDENTIFIER)
		id = take_word_unchecked(&in);
	if (layout->ids) {
		uint32_t event = pm_event_ids_find(layout->ids, id);

		out->event = event == PM_INDEX_NONE ? 0 : event;
	}
}

/* Returns the NUL-terminated string at the cursor, or NULL. */
static const char *find_text_at_cursor(const struct cursor *in)
{
	if (!memchr(in->at, '\0', cursor_bytes_left(in)))
		return NULL;
	return (const char *)in->at;
}

/* { u32 pid, tid; u64 addr, len, pgoff; char filename[]; } */
static bool record_read_mmap(struct cursor *in, struct pm_record *out)
{
	struct pm_mmap_record *mmap = &out->mmap;

	if (cursor_bytes_left(in) < 4 * sizeof(uint64_t))
		return false;
	take_two_halves(in, &out->pid, &out->tid);
	mmap->start = take_word_unchecked(in);
	mmap->len = take_word_unchecked(in);
	mmap->pgoff = take_word_unchecked(in);
	/* This record has no `prot` field, but the kernel sets MMAP_DATA if the mapping
	 * is not executable. */
	if (out->misc & PERF_RECORD_MISC_MMAP_DATA)
		mmap->prot = PROT_READ;
	else
		mmap->prot = PROT_READ | PROT_EXEC;
	mmap->path = find_text_at_cursor(in);
	return mmap->path != NULL;
}

/*
 * { u32 pid, tid; u64 addr, len, pgoff; u32 maj, min; u64 ino, ino_generation;
 *   u32 prot, flags; char filename[]; }
 *
 * Our events do not request build-ids, so PERF_RECORD_MISC_MMAP_BUILD_ID is ignored.
 * Linux sets this bit in the one header that all events share and does not clear it
 * (kernel/events/core.c, perf_event_mmap_output()): it may come from an event of another
 * program. Likewise, if our events requested build-ids, other programs would read a
 * device as a build-id. perf 6.1 aborts then.
 */
static bool record_read_mmap2(struct cursor *in, struct pm_record *out)
{
	struct pm_mmap_record *mmap = &out->mmap;
	uint32_t flags;

	if (cursor_bytes_left(in) < 8 * sizeof(uint64_t))
		return false;
	take_two_halves(in, &out->pid, &out->tid);
	mmap->start = take_word_unchecked(in);
	mmap->len = take_word_unchecked(in);
	mmap->pgoff = take_word_unchecked(in);
	take_two_halves(in, &mmap->major, &mmap->minor);
	mmap->inode = take_word_unchecked(in);
	mmap->inode_generation = take_word_unchecked(in);
	mmap->identified = true;
	take_two_halves(in, &mmap->prot, &flags);
	mmap->path = find_text_at_cursor(in);
	return mmap->path != NULL;
}

/* { u32 pid, tid; char comm[]; } */
static bool record_read_comm(struct cursor *in, struct pm_record *out)
{
	if (cursor_bytes_left(in) < sizeof(uint64_t))
		return false;
	take_two_halves(in, &out->pid, &out->tid);
	out->comm.exec = out->misc & PERF_RECORD_MISC_COMM_EXEC;
	out->comm.name = find_text_at_cursor(in);
	return out->comm.name != NULL;
}

/* { u32 pid, ppid; u32 tid, ptid; u64 time; } */
static bool record_read_task(struct cursor *in, struct pm_record *out)
{
	if (cursor_bytes_left(in) < 3 * sizeof(uint64_t))
		return false;
	take_two_halves(in, &out->pid, &out->fork.parent_pid);
	take_two_halves(in, &out->tid, &out->fork.parent_tid);
	return true;
}

/* LOST: { u64 id, lost; }, LOST_SAMPLES: { u64 lost; } */
static bool record_read_lost(struct cursor *in, struct pm_record *out)
{
	if (out->type == PERF_RECORD_LOST) {
		if (cursor_bytes_left(in) < 2 * sizeof(uint64_t))
			return false;
		in->at += sizeof(uint64_t);
	}
	if (cursor_bytes_left(in) < sizeof(uint64_t))
		return false;
	out->lost = take_word_unchecked(in);
	return true;
}

/* { u32 pid, tid; struct read_format values; }, of one event with both times. */
static bool record_read_ended(struct cursor *in, const struct pm_record_layout *layout,
			      struct pm_record *out)
{
	uint64_t times = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

	if ((layout->read_format & (times | PERF_FORMAT_GROUP)) != times)
		return true;
	if (cursor_bytes_left(in) < 4 * sizeof(uint64_t))
		return false;
	take_two_halves(in, &out->pid, &out->tid);
	out->read.value = take_word_unchecked(in);
	out->read.enabled_ns = take_word_unchecked(in);
	out->read.running_ns = take_word_unchecked(in);
	return true;
}

/*
 * The header contains everything but the task, which the trailer contains: at both
 * moments the task itself is current. This also holds for the CPU_WIDE form, whose body {
 * u32 next_prev_pid, next_prev_tid; } is about the other task.
 */
static void record_read_switch(struct pm_record *out)
{
	out->switched.out = out->misc & PERF_RECORD_MISC_SWITCH_OUT;
	out->switched.preempted =
		out->switched.out && (out->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
}

static bool record_read_body(struct cursor *in, const struct pm_record_layout *layout,
			     struct pm_record *out)
{
	switch (out->type) {
	case PERF_RECORD_MMAP:
		return record_read_mmap(in, out);
	case PERF_RECORD_MMAP2:
		return record_read_mmap2(in, out);
	case PERF_RECORD_COMM:
		return record_read_comm(in, out);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return record_read_task(in, out);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return record_read_lost(in, out);
	case PERF_RECORD_READ:
		return record_read_ended(in, layout, out);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		record_read_switch(out);
		return true;
	default: /* THROTTLE and similar: header and trailer are complete */
		return true;
	}
}

int pm_record_decode(const struct perf_event_header *header,
		     const struct pm_record_layout *layout, struct pm_record *out,
		     struct pm_error *err)
{
	const uint8_t *start = (const uint8_t *)header;
	size_t trailer = bytes_of_words(layout->sample_type & TRAILER_FIELDS);
	struct pm_record record;
	struct cursor in;

	if (header->size < sizeof(*header))
		return set_malformed_record_error(header, "header", err);
	if (header->type == PERF_RECORD_SAMPLE)
		return record_decode_sample(header, layout, out, err);
	if (header->size < sizeof(*header) + trailer)
		return set_malformed_record_error(header, "sample id", err);
	memset(&record, 0, sizeof(record));
	record.type = header->type;
	record.misc = header->misc;
	/* The trailer first: its pid is the running task. The body then sets the task
	 * that the record is about. */
	record_read_trailer(start + header->size, layout, &record);
	in = (struct cursor){ start + sizeof(*header), start + header->size - trailer };
	if (!record_read_body(&in, layout, &record))
		return set_malformed_record_error(header, "body", err);
	*out = record;
	return 0;
}

bool pm_record_time(const struct perf_event_header *header,
		    const struct pm_record_layout *layout, uint64_t *out)
{
	uint64_t type = layout->sample_type;
	size_t offset;

	if (!(type & PERF_SAMPLE_TIME))
		return false;
	if (header->type == PERF_RECORD_SAMPLE) {
		offset = sizeof(*header) +
			 bytes_of_words(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
						PERF_SAMPLE_TID));
	} else {
		size_t from_end =
			bytes_of_words(type & TRAILER_FIELDS & ~PERF_SAMPLE_TID);

		if (header->size < sizeof(*header) + from_end)
			return false;
		offset = header->size - from_end;
	}
	if (offset + sizeof(*out) > header->size)
		return false;
	memcpy(out, (const uint8_t *)header + offset, sizeof(*out));
	return true;
}

int pm_sample_count(const struct pm_sample *sample, const struct pm_record_layout *layout,
		    uint32_t event, uint64_t *out)
{
	uint64_t format = layout->read_format;
	size_t row = 2 + !!(format & PERF_FORMAT_LOST), skip = 0;

	/* For a single event, the times stand between value and id. */
	if (!(format & PERF_FORMAT_GROUP) || !(format & PERF_FORMAT_ID))
		return -ENOTSUP;
	skip += 1 + !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
		!!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	for (size_t at = skip; at + row <= sample->counts_len; at += row) {
		if (pm_event_ids_find(layout->ids, sample->counts[at + 1]) != event)
			continue;
		*out = sample->counts[at];
		return 0;
	}
	return -ENOENT;
}

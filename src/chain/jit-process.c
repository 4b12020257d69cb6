/* SPDX-License-Identifier: MIT */
#include "jit-internal.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	MISSES_OFTEN = 1024, /* if there are more misses, they are checked once a
	                      * second */
};
#define SECOND_NS 1000000000ull
#define MS_NS     1000000ull
/* The limits for each process and for all: for a single read, and per second. Reading a
 * map of a million names takes a second in total. */
#define PROCESS_TIME_NS (100 * MS_NS)
#define ALL_TIME_NS     (200 * MS_NS)

/* ---- time ---------------------------------------------------------------------------- */

uint64_t pm_chain_jit_now_ns(void)
{
	struct timespec clock;

	clock_gettime(CLOCK_MONOTONIC, &clock);
	return (uint64_t)clock.tv_sec * SECOND_NS + (uint64_t)clock.tv_nsec;
}

static void fill_time(struct pm_chain_jit_time *time, uint64_t now, uint64_t max_ns)
{
	uint64_t passed = now - time->filled_ns;

	time->filled_ns = now;
	if (passed < SECOND_NS)
		time->left_ns += passed * max_ns / SECOND_NS;
	else
		time->left_ns += max_ns;
	if (time->left_ns > max_ns)
		time->left_ns = max_ns;
}

static void take_time(struct pm_chain_jit_time *time, uint64_t ns)
{
	time->left_ns -= PM_MIN(ns, time->left_ns);
}

bool pm_chain_jit_begin_reading(struct pm_chain_jit *jit,
				struct pm_chain_jit_process *process, uint64_t *begun_ns)
{
	*begun_ns = pm_chain_jit_now_ns();
	fill_time(&jit->time, *begun_ns, ALL_TIME_NS);
	fill_time(&process->time, *begun_ns, PROCESS_TIME_NS);
	if (process->time.left_ns > 0 && jit->time.left_ns > 0)
		return true;
	jit->reads_put_off++;
	return false;
}

void pm_chain_jit_end_reading(struct pm_chain_jit *jit,
			      struct pm_chain_jit_process *process, uint64_t begun_ns)
{
	uint64_t took_ns = pm_chain_jit_now_ns() - begun_ns;

	take_time(&jit->time, took_ns);
	take_time(&process->time, took_ns);
}

uint64_t pm_chain_jit_begin_dropping(struct pm_chain_jit *jit, uint64_t *begun_ns)
{
	*begun_ns = pm_chain_jit_now_ns();
	fill_time(&jit->time, *begun_ns, ALL_TIME_NS);
	return *begun_ns + PM_MIN(jit->time.left_ns, PM_CHAIN_JIT_DROP_NS);
}

void pm_chain_jit_end_dropping(struct pm_chain_jit *jit, uint64_t begun_ns)
{
	take_time(&jit->time, pm_chain_jit_now_ns() - begun_ns);
}

static void jit_process_init_files(struct pm_chain_jit *jit,
				   struct pm_chain_jit_process *process)
{
	if (!process->looked)
		pm_jit_files_init(&process->files, process->pid, jit->since_ns);
	process->looked = true;
}

static void count_unusable(struct pm_chain_jit *jit, const struct pm_error *why)
{
	if (jit->unusable_count++ == 0)
		jit->unusable = *why;
}

/* ---- names --------------------------------------------------------------------------- */

bool pm_chain_jit_is_named(const struct pm_chain_jit *jit, uint32_t frame)
{
	frame -= jit->first_frame;
	return frame / 8 < jit->named.len &&
	       (jit->named.data[frame / 8] >> frame % 8 & 1);
}

static int set_named(struct pm_chain_jit *jit, uint32_t frame)
{
	size_t want;

	frame -= jit->first_frame;
	want = (size_t)frame / 8 + 1;
	if (want > jit->named.len) {
		if (pm_vec_reserve(&jit->named, want) < 0)
			return -ENOMEM;
		memset(jit->named.data + jit->named.len, 0, want - jit->named.len);
		jit->named.len = want;
	}
	jit->named.data[frame / 8] |= (uint8_t)(1u << frame % 8);
	return 0;
}

static int write_symbol(struct pm_chain_jit *jit, uint32_t frame,
			struct pm_file_function *function)
{
	int ret = set_named(jit, frame);

	if (ret < 0)
		return ret;
	return pm_file_write_symbol(jit->from.writer,
				    &(struct pm_file_symbol){ .frame = frame,
							      .functions = function,
							      .functions_len = 1 });
}

static void describe_jit_function(const struct pm_jit_function *function,
				  uint64_t address, struct pm_file_function *out)
{
	out->name = function->name;
	pm_jit_function_place(function, address, &out->file, &out->line);
}

int pm_chain_jit_name(struct pm_chain_jit *jit, uint32_t frame,
		      const struct pm_jit_function *function, uint64_t address)
{
	struct pm_file_function text;

	if (!function->name)
		return 0;
	describe_jit_function(function, address, &text);
	return write_symbol(jit, frame, &text);
}

/* ---- places without a name ------------------------------------------------------------ */

static bool equal_miss(const void *table, uint32_t id, const void *key)
{
	const struct pm_chain_jit_process *process = table;
	const struct pm_chain_jit_place *a = &process->misses.data[id].place, *b = key;

	return a->address == b->address && a->generation == b->generation &&
	       a->how == b->how;
}

int pm_chain_jit_miss(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
		      struct pm_chain_jit_place place, uint64_t time_ns, uint32_t frame)
{
	uint64_t hash =
		pm_hash_mix(place.address, (uint64_t)place.generation << 8 | place.how);
	uint32_t id =
		pm_index_find(&process->misses_index, hash, equal_miss, process, &place);
	struct pm_chain_jit_miss *miss;

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)process->misses.len;
		if (process->over)
			return 0;
		if (id >= PM_CHAIN_JIT_MISSES_MAX) {
			jit->misses_left += frame != PM_FILE_NONE;
			return 0;
		}
		if (pm_vec_reserve(&process->misses, (size_t)id + 1) < 0 ||
		    pm_index_add(&process->misses_index, hash, id) < 0)
			return -ENOMEM;
		process->misses.data[process->misses.len++] = (struct pm_chain_jit_miss){
			.place = place, .frame = PM_FILE_NONE, .first_ns = time_ns
		};
	}
	miss = &process->misses.data[id];
	if (frame != PM_FILE_NONE)
		miss->frame = frame;
	if (time_ns > miss->last_ns)
		miss->last_ns = time_ns;
	if (time_ns > process->last_miss_ns)
		process->last_miss_ns = time_ns;
	return 0;
}

/* Returns the function that contains a missed place according to names read since then,
 * or NULL. */
static const struct pm_jit_function *found_late(struct pm_chain_jit_process *process,
						const struct pm_chain_jit_miss *miss)
{
	const struct pm_jit_function *function =
		pm_jit_table_find(process->table, miss->place.address);

	/* A function of a later generation is also correct if it is the only one that was
	 * ever named here. */
	if (!function || function->generation < miss->place.generation || !function->name)
		return NULL;
	return pm_jit_table_use(process->table, miss->place.address);
}

/* Called after functions were added to the table. Names missed places by the functions
 * that now cover them, on the assumption that these were already there before. */
static int name_missed(struct pm_chain_jit *jit, struct pm_chain_jit_process *process)
{
	int ret = 0;

	for (size_t i = 0; i < process->misses.len && ret == 0; i++) {
		struct pm_chain_jit_miss *miss = &process->misses.data[i];
		const struct pm_jit_function *function;

		if (miss->done || miss->frame == PM_FILE_NONE)
			continue;
		function = found_late(process, miss);
		if (!function)
			continue;
		miss->done = true;
		ret = pm_chain_jit_name(jit, miss->frame, function, miss->place.address);
	}
	return ret;
}

/* ---- jitdumps ------------------------------------------------------------------------ */

static bool is_dump(const struct pm_chain_jit_dump *dump,
		    const struct pm_module_identity *mapped)
{
	return dump->inode == mapped->inode && dump->major == mapped->major &&
	       dump->minor == mapped->minor && strcmp(dump->path, mapped->path) == 0;
}

static bool has_dump(const struct pm_chain_jit_process *process,
		     const struct pm_module_identity *mapped)
{
	/* A child still maps its parent's dump, but its own code is not in that dump. */
	for (; process; process = process->parent)
		for (size_t i = 0; i < process->dumps.len; i++)
			if (is_dump(&process->dumps.data[i], mapped))
				return true;
	return false;
}

int pm_chain_jit_open_dump(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
			   const struct pm_module_identity *mapped)
{
	struct pm_chain_jit_dump dump = { .major = mapped->major,
					  .minor = mapped->minor,
					  .inode = mapped->inode };
	struct pm_error err = { 0 };

	if (has_dump(process, mapped))
		return 0;
	if (process->dumps.len >= PM_CHAIN_JIT_DUMPS_MAX) {
		jit->dumps_left += !process->more_dumps;
		process->more_dumps = true;
		return 0;
	}
	jit_process_init_files(jit, process);
	dump.fd = pm_jit_files_jitdump(&process->files, mapped, &err);
	dump.unusable = dump.fd < 0;
	if (dump.unusable)
		count_unusable(jit, &err);
	else
		dump.reader = pm_jitdump_new();
	dump.path = strdup(mapped->path);
	if (!dump.path || (!dump.unusable && !dump.reader) ||
	    pm_vec_push(&process->dumps, dump) < 0) {
		pm_cleanup_close(&dump.fd);
		free(dump.path);
		pm_jitdump_free(dump.reader);
		return -ENOMEM;
	}
	return 0;
}

static void jit_dump_peek(struct pm_chain_jit_dump *dump)
{
	if (dump->unusable || !pm_jitdump_peek(dump->reader, dump->fd, &dump->waits_ns))
		dump->waits_ns = UINT64_MAX;
}

/* Returns the time of the earliest record that waits in any dump. */
static uint64_t peek_all(struct pm_chain_jit_process *process)
{
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = 0; i < process->dumps.len; i++) {
		struct pm_chain_jit_dump *dump = &process->dumps.data[i];

		jit_dump_peek(dump);
		if (dump->waits_ns < next_ns)
			next_ns = dump->waits_ns;
	}
	return next_ns;
}

/* How much may still be read. */
struct reads {
	size_t left; /* full pieces of PM_CHAIN_JIT_READ_BYTES; becomes 0 when time is up */
	uint64_t until_ns; /* as pm_chain_jit_now_ns(); 0: no time limit */
};

static int read_dump(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
		     struct pm_chain_jit_dump *dump, uint64_t until_ns,
		     struct reads *reads)
{
	struct pm_error err = { 0 };
	int ret = 1;

	if (dump->unusable)
		return 0;
	while (ret == 1 && reads->left > 0) {
		ret = pm_jitdump_read(dump->reader, dump->fd, process->table, until_ns,
				      PM_CHAIN_JIT_READ_BYTES, &err);
		reads->left -= ret == 1;
		if (reads->until_ns != 0 && pm_chain_jit_now_ns() >= reads->until_ns)
			reads->left = 0;
	}
	if (ret == -ENOMEM)
		return ret;
	if (ret < 0) {
		dump->unusable = true;
		pm_error_where(&err, dump->path, -1);
		count_unusable(jit, &err);
	}
	jit_dump_peek(dump);
	return 0;
}

static int read_dumps(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
		      uint64_t until_ns, struct reads *reads)
{
	int ret = 0;

	for (size_t i = 0; i < process->dumps.len && ret == 0; i++)
		ret = read_dump(jit, process, &process->dumps.data[i], until_ns, reads);
	return ret;
}

/* The first or the last time of a missed place. */
struct event {
	uint64_t time_ns;
	uint32_t miss;
	uint32_t candidate;
	bool last;
};

static int compare_events(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return PM_COMPARE(a->time_ns, b->time_ns);
	if (a->miss != b->miss)
		return PM_COMPARE(a->miss, b->miss);
	return a->last - b->last;
}

/* The function that was at a missed place when it was first sampled. */
struct candidate {
	char *name, *file; /* NULL: none */
	uint32_t line;
};

static int keep_candidate(struct candidate *to, const struct pm_jit_function *function,
			  uint64_t address)
{
	struct pm_file_function text;

	describe_jit_function(function, address, &text);
	to->name = strdup(text.name);
	if (text.file)
		to->file = strdup(text.file);
	else
		to->file = NULL;
	to->line = text.line;
	if (to->name && (to->file || !text.file))
		return 0;
	return -ENOMEM;
}

/* Called for the last time of @miss: names it if the same function was there at its first
 * time. */
static int decide_miss(struct pm_chain_jit *jit, struct pm_chain_jit_miss *miss,
		       const struct candidate *first, const struct pm_jit_function *last)
{
	struct pm_file_function text = { .name = first->name,
					 .file = first->file,
					 .line = first->line };

	if (!first->name && !last)
		return 0;
	miss->done = true;
	if (!first->name)
		return pm_chain_jit_name(jit, miss->frame, last, miss->place.address);
	if (!last || strcmp(first->name, last->name) != 0) {
		jit->ambiguous++;
		return 0;
	}
	return write_symbol(jit, miss->frame, &text);
}

/* The missed places that are named by the functions that were there at their times. */
struct missed {
	PM_VEC(struct event) events;
	PM_VEC(struct candidate) candidates; /* one for each miss */
};

static void missed_release(struct missed *missed)
{
	for (size_t i = 0; i < missed->candidates.len; i++) {
		free(missed->candidates.data[i].name);
		free(missed->candidates.data[i].file);
	}
	pm_vec_release(&missed->candidates);
	pm_vec_release(&missed->events);
}

/* Collects the misses whose names can still depend on records from @from_ns on. For the
 * others, no more information will come. */
static int collect_misses(const struct pm_chain_jit_process *process, uint64_t from_ns,
			  struct missed *out)
{
	for (uint32_t i = 0; i < process->misses.len; i++) {
		const struct pm_chain_jit_miss *miss = &process->misses.data[i];
		struct event event = { .miss = i,
				       .candidate = (uint32_t)out->candidates.len };

		if (miss->done || miss->frame == PM_FILE_NONE || miss->last_ns < from_ns)
			continue;
		if (pm_vec_push(&out->candidates, (struct candidate){ 0 }) < 0 ||
		    pm_vec_reserve(&out->events, out->events.len + 2) < 0)
			return -ENOMEM;
		event.time_ns = miss->first_ns;
		if (miss->first_ns >= from_ns)
			out->events.data[out->events.len++] = event;
		event.time_ns = miss->last_ns;
		event.last = true;
		out->events.data[out->events.len++] = event;
	}
	if (out->events.len > 0)
		qsort(out->events.data, out->events.len, sizeof(*out->events.data),
		      compare_events);
	return 0;
}

static int on_miss_event(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
			 const struct event *event, struct candidate *candidate)
{
	struct pm_chain_jit_miss *miss = &process->misses.data[event->miss];
	const struct pm_jit_function *function =
		pm_jit_table_find(process->table, miss->place.address);

	if (!event->last) {
		function = found_late(process, miss);
		if (function)
			return keep_candidate(candidate, function, miss->place.address);
		return 0;
	}
	/* The function found now may belong to a later generation; then it is a different
	 * function. */
	return decide_miss(jit, miss, candidate,
			   function && function->name ? function : NULL);
}

/* Reads the dumps that have a record up to @until_ns, and only these: there may be many
 * events. */
static int read_waiting(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
			uint64_t until_ns, struct reads *reads)
{
	int ret = 0;

	for (size_t i = 0; i < process->dumps.len && ret == 0; i++) {
		struct pm_chain_jit_dump *dump = &process->dumps.data[i];

		if (dump->waits_ns <= until_ns)
			ret = read_dump(jit, process, dump, until_ns, reads);
	}
	return ret;
}

/*
 * Applies the dumps' records from @from_ns, the time of the next record, up to @until_ns.
 * A place that was sampled before its record was written is named by the function that
 * was there at the time. When @reads is used up, the remaining records name nothing.
 */
static int catch_up(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
		    uint64_t from_ns, uint64_t until_ns, struct reads *reads)
{
	PM_CLEANUP(missed_release) struct missed missed = { 0 };
	int ret = collect_misses(process, from_ns, &missed);

	for (size_t i = 0; i < missed.events.len && ret == 0; i++) {
		const struct event *event = &missed.events.data[i];

		if (event->time_ns > until_ns)
			break;
		ret = read_waiting(jit, process, event->time_ns, reads);
		if (ret == 0 && reads->left == 0)
			break;
		if (ret == 0)
			ret = on_miss_event(jit, process, event,
					    &missed.candidates.data[event->candidate]);
	}
	return ret;
}

static int refresh_dumps(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
			 uint64_t time_ns)
{
	struct reads once = { .left = 1 }, all = { .left = PM_CHAIN_JIT_READS_AT_ONCE };
	uint64_t next_ns;
	int ret = 0;

	if (process->dumps.len == 0 || time_ns <= process->dumps_ns)
		return 0;
	process->dumps_ns = time_ns;
	next_ns = peek_all(process);
	/* Usually code is reported before it is sampled, and this is not needed. */
	if (next_ns <= process->last_miss_ns)
		ret = catch_up(jit, process, next_ns, time_ns, &all);
	if (ret < 0)
		return ret;
	return read_dumps(jit, process, time_ns, &once);
}

/* Reads the remaining records, within a limit, because the process may still be
 * writing. */
static int finish_dumps(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
			uint64_t until_ns)
{
	struct reads reads = { .left = SIZE_MAX, .until_ns = until_ns };
	int ret = catch_up(jit, process, peek_all(process), UINT64_MAX, &reads);

	if (ret == 0)
		ret = read_dumps(jit, process, UINT64_MAX, &reads);
	for (size_t i = 0; i < process->dumps.len && reads.left == 0; i++)
		jit->files_unread += process->dumps.data[i].waits_ns != UINT64_MAX;
	return ret;
}

/* ---- perf maps ----------------------------------------------------------------------- */

static void open_map(struct pm_chain_jit *jit, struct pm_chain_jit_process *process)
{
	struct pm_error err = { 0 };
	int fd;

	jit_process_init_files(jit, process);
	/* A map that was written under another name and then renamed to this one replaces
	 * the previous map. */
	if (process->map_fd >= 0 &&
	    pm_jit_files_perf_map_is(&process->files, process->map_fd))
		return;
	fd = pm_jit_files_perf_map(&process->files, &err);
	if (fd < 0) {
		/* The map may be gone when the recording ends; the warning still says
		 * that it existed. */
		if (fd != -ENOENT)
			process->map_why = err;
		return; /* the open map is still valid */
	}
	if (process->map_fd >= 0) {
		close(process->map_fd);
		pm_jit_table_clear_source(process->table, PM_JIT_OF_MAP);
		process->map.restarts++;
	}
	process->map = (struct pm_perf_map){ .bad_lines = process->map.bad_lines,
					     .restarts = process->map.restarts };
	process->map_fd = fd;
}

static int read_map(struct pm_chain_jit_process *process)
{
	int ret;

	if (process->map_fd < 0)
		return 0;
	ret = pm_perf_map_read(&process->map, process->map_fd, process->table,
			       PM_CHAIN_JIT_READ_BYTES);
	process->map_rest = ret == 1;
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

static int refresh_map(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
		       uint64_t time_ns)
{
	struct pm_jit_table_stats before, after;
	uint64_t now;
	int ret;

	/* A map that was read after the sample was taken is recent enough. */
	if (time_ns <= process->map_read_ns)
		return 0;
	now = pm_chain_jit_now_ns();
	process->map_read_ns = now;
	open_map(jit, process);
	pm_jit_table_stats(process->table, &before);
	ret = read_map(process);
	pm_jit_table_stats(process->table, &after);
	if (ret < 0 || after.changes == before.changes ||
	    (process->misses.len > MISSES_OFTEN && now - process->missed_ns < SECOND_NS))
		return ret;
	process->missed_ns = now;
	return name_missed(jit, process);
}

/* Whether there may be unread names that were written up to @time_ns. */
static bool has_unread(const struct pm_chain_jit *jit,
		       const struct pm_chain_jit_process *process, uint64_t time_ns)
{
	return (jit->from.symbols && time_ns > process->map_read_ns) ||
	       (process->dumps.len > 0 && time_ns > process->dumps_ns);
}

int pm_chain_jit_refresh(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
			 uint64_t time_ns)
{
	uint64_t begun_ns;
	int ret;

	/* If time is short, the names are read for a later sample instead. */
	if (!has_unread(jit, process, time_ns) ||
	    !pm_chain_jit_begin_reading(jit, process, &begun_ns))
		return 0;
	ret = refresh_dumps(jit, process, time_ns);
	if (ret == 0 && jit->from.symbols)
		ret = refresh_map(jit, process, time_ns);
	pm_chain_jit_end_reading(jit, process, begun_ns);
	return ret;
}

/* ---- the end ------------------------------------------------------------------------- */

/* Whether the map may have changed since it was read. */
static bool map_has_changed(const struct pm_chain_jit_process *process)
{
	struct stat st;

	return process->map_fd >= 0 && fstat(process->map_fd, &st) == 0 &&
	       (uint64_t)st.st_size != process->map.offset;
}

static int finish_names(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
			uint64_t until_ns)
{
	int ret = 0;

	if (process->dumps.len > 0)
		ret = finish_dumps(jit, process, until_ns);
	open_map(jit, process);
	/* Read again even if the size is unchanged, which a rewritten map may have,
	 * too. */
	process->map_rest = process->map_fd >= 0;
	while (ret == 0 && process->map_rest && pm_chain_jit_now_ns() < until_ns)
		ret = read_map(process);
	jit->files_unread += process->map_rest && map_has_changed(process);
	if (ret == 0)
		ret = name_missed(jit, process);
	for (size_t i = 0; i < process->misses.len && process->map.restarts > 0; i++)
		jit->rewritten += !process->misses.data[i].done &&
				  process->misses.data[i].frame != PM_FILE_NONE;
	return ret;
}

int pm_chain_jit_finish_process(struct pm_chain_jit *jit,
				struct pm_chain_jit_process *process, uint64_t until_ns)
{
	struct pm_jit_table_stats stats;
	int ret = 0;

	if (!jit->from.symbols)
		return 0;
	if (process->misses.len > 0)
		ret = finish_names(jit, process, until_ns);
	pm_jit_table_stats(process->table, &stats);
	jit->left_out += stats.left_out;
	jit->bad_lines += process->map.bad_lines;
	if (process->misses.len > 0 && process->map_fd < 0 && process->map_why.code != 0)
		count_unusable(jit, &process->map_why);
	return ret;
}

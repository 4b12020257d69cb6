/* SPDX-License-Identifier: MIT */
/*
 * Turns the rows of callgrind into costs of regions. For each instruction, callgrind
 * reports what it cost and how often it ran, where its calls and jumps went, and what
 * these calls cost including all that they called. Regions are found by file and address,
 * never by name, as one function may have several names and one name several functions.
 *
 * The number of entries is how often the first instruction ran, minus jumps back to it.
 * callgrind's calls are not used for that: some are no calls (a jump between `f` and
 * `f.cold`), and others are missing (a signal handler). The inclusive cost is the cost of
 * the first level of recursion and of its calls, which include the deeper levels.
 */
#include "callgrind-sums.h"

#include <string.h>

static void add_costs(const struct pm_callgrind_sums *sums, uint64_t *to,
		      const uint64_t *costs)
{
	for (size_t i = 0; i < sums->columns_len; i++)
		pm_callgrind_add(&to[i], costs[i]);
}

/* ---- tallies ---------------------------------------------------------------------------- */

static bool tally_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_callgrind_tally *have =
		&((const struct pm_callgrind_sums *)table)->tallies.data[id];
	const struct pm_callgrind_tally *wanted = key;

	return have->region == wanted->region && have->function == wanted->function &&
	       have->pid == wanted->pid && have->thread == wanted->thread;
}

static uint64_t tally_hash(const struct pm_callgrind_tally *key)
{
	return pm_hash_mix((uint64_t)key->region << 32 | key->function,
			   (uint64_t)(uint32_t)key->pid << 32 | (uint32_t)key->thread);
}

const struct pm_callgrind_tally *pm_callgrind_find_tally(
	const struct pm_callgrind_sums *sums, const struct pm_callgrind_tally *key)
{
	uint32_t id = pm_index_find(&sums->tally_index, tally_hash(key), tally_equal,
				    sums, key);

	if (id == PM_INDEX_NONE)
		return NULL;
	return &sums->tallies.data[id];
}

/* Returns the tally, which is created if it does not exist; NULL if out of memory. */
static struct pm_callgrind_tally *sums_get_tally(struct pm_callgrind_sums *sums,
						 struct pm_callgrind_tally key)
{
	uint64_t hash = tally_hash(&key);
	uint32_t id = pm_index_find(&sums->tally_index, hash, tally_equal, sums, &key);

	if (id != PM_INDEX_NONE)
		return &sums->tallies.data[id];
	key.first = calloc(3 * sums->columns_len, sizeof(*key.first));
	if (!key.first)
		return NULL;
	key.deeper = key.first + sums->columns_len;
	key.tail = key.deeper + sums->columns_len;
	if (pm_vec_push(&sums->tallies, key) < 0) {
		free(key.first);
		return NULL;
	}
	id = (uint32_t)(sums->tallies.len - 1);
	if (pm_index_add(&sums->tally_index, hash, id) < 0)
		return NULL;
	return &sums->tallies.data[id];
}

/* Returns the costs to add to: a recursive call has costs of its own. */
static uint64_t *costs_of_level(struct pm_callgrind_tally *tally, uint32_t level)
{
	if (level == 1)
		return tally->first;
	return tally->deeper;
}

static void tally_self(const struct pm_callgrind_sums *sums,
		       struct pm_callgrind_tally *tally, const struct pm_region *region,
		       const struct pm_callgrind_row *row)
{
	uint64_t times = row->counts[sums->instructions];
	const struct pm_callgrind_exit *way_out =
		pm_callgrind_find_exit(sums, tally->region, row->address);

	add_costs(sums, costs_of_level(tally, row->who.level), row->counts);
	if (way_out && way_out->returns)
		pm_callgrind_add(&tally->left, times);
	if (region->kind != PM_STAT_FUNCTION) {
		for (size_t i = 0; i < region->pieces.len; i++)
			if (region->pieces.data[i].low == row->address)
				pm_callgrind_add(&tally->entered, times);
		return;
	}
	if (region->pieces.data[0].low != row->address)
		return;
	tally->at_entry = true;
	pm_callgrind_add(&tally->entered, times);
	if (row->who.level > 1)
		pm_callgrind_add(&tally->nested, times);
	if (row->who.level > tally->max_level)
		tally->max_level = row->who.level;
}

static void tally_call(const struct pm_callgrind_sums *sums,
		       struct pm_callgrind_tally *tally, const struct pm_region *region,
		       const struct pm_callgrind_row *row)
{
	const struct pm_callgrind_exit *way_out =
		pm_callgrind_find_exit(sums, tally->region, row->address);
	bool same_function = row->callee.function == row->who.function;
	bool inside = row->callee.object == row->who.object &&
		      pm_callgrind_is_inside(region, row->target);

	if (way_out && !way_out->returns && !inside) {
		pm_callgrind_add(&tally->left, row->times);
		if (row->who.level == 1)
			add_costs(sums, tally->tail, row->counts);
	}
	if (same_function)
		tally->recursive = true;
	/* If a range has several functions, the callee is counted by itself. */
	if (region->kind == PM_STAT_FUNCTION || same_function || !inside)
		add_costs(sums, costs_of_level(tally, row->who.level), row->counts);
}

/* Whether the call is a jump to a part of the function: callgrind reports a jump from `f`
 * to `f.cold` as a call. */
static bool is_to_part(const struct pm_callgrind_sums *sums,
		       const struct pm_callgrind_row *row)
{
	const struct pm_callgrind_table *table = &sums->table;
	const char *from, *to;
	size_t len;

	if (row->who.function == PM_CALLGRIND_NONE ||
	    row->callee.function == PM_CALLGRIND_NONE)
		return false;
	from = table->functions.data[row->who.function].name;
	to = table->functions.data[row->callee.function].name;
	len = strlen(from);
	return strncmp(to, from, len) == 0 && (strncmp(to + len, ".cold", 5) == 0 ||
					       strncmp(to + len, ".unlikely", 9) == 0);
}

/* Counts a jump from inside to the start of a piece, which is not an entry. */
static void tally_jump(struct pm_callgrind_tally *tally, const struct pm_region *region,
		       const struct pm_callgrind_row *row)
{
	for (size_t i = 0; i < region->pieces.len; i++)
		if (region->pieces.data[i].low == row->target &&
		    (i == 0 || region->kind != PM_STAT_FUNCTION))
			pm_callgrind_add(&tally->back, row->times);
}

/* Gets the tallies of all threads and, if requested, of the current one. Returns their
 * number, or -ENOMEM. */
static int present_tallies(struct pm_callgrind_sums *sums, uint32_t region,
			   uint32_t function, uint32_t out[2])
{
	struct pm_callgrind_tally key = { .region = region, .function = function };
	const struct pm_callgrind_tally *tally = sums_get_tally(sums, key);

	if (!tally)
		return -ENOMEM;
	out[0] = (uint32_t)(tally - sums->tallies.data);
	if (!sums->options->by_thread)
		return 1;
	key.pid = sums->pid;
	key.thread = sums->thread;
	tally = sums_get_tally(sums, key);
	if (!tally)
		return -ENOMEM;
	out[1] = (uint32_t)(tally - sums->tallies.data);
	return 2;
}

static int tally_row(struct pm_callgrind_sums *sums, uint32_t index,
		     const struct pm_callgrind_row *row)
{
	const struct pm_region *region = &sums->regions->list.data[index];
	uint32_t ids[2];
	int len = present_tallies(sums, index, row->who.function, ids);

	for (int i = 0; i < len; i++) {
		struct pm_callgrind_tally *tally = &sums->tallies.data[ids[i]];

		if (row->kind == PM_CALLGRIND_SELF)
			tally_self(sums, tally, region, row);
		else if (row->kind == PM_CALLGRIND_CALL)
			tally_call(sums, tally, region, row);
		if (row->kind == PM_CALLGRIND_JUMP ||
		    (row->kind == PM_CALLGRIND_CALL && region->kind == PM_STAT_RANGE &&
		     is_to_part(sums, row)))
			tally_jump(tally, region, row);
	}
	if (len < 0)
		return len;
	return 0;
}

/* Counts a jump from outside into the middle of a range, which is an entry, too. */
static int jump_into(struct pm_callgrind_sums *sums, uint32_t module,
		     const struct pm_callgrind_row *row)
{
	size_t at = pm_callgrind_pieces_end(sums, module, row->target);

	while (pm_callgrind_piece_before(sums, &at, module, row->target)) {
		const struct pm_callgrind_piece *piece = &sums->pieces.data[at];
		const struct pm_region *region = &sums->regions->list.data[piece->region];
		uint32_t ids[2];
		int len;

		if (region->kind == PM_STAT_FUNCTION || piece->low == row->target ||
		    pm_callgrind_is_inside(region, row->address))
			continue;
		len = present_tallies(sums, piece->region, row->who.function, ids);
		if (len < 0)
			return len;
		for (int i = 0; i < len; i++)
			pm_callgrind_add(&sums->tallies.data[ids[i]].entered, row->times);
	}
	return 0;
}

/* ---- callers ---------------------------------------------------------------------------- */

static bool callgrind_site_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_callgrind_site *have =
		&((const struct pm_callgrind_sums *)table)->sites.data[id];
	const struct pm_callgrind_site *wanted = key;

	return have->region == wanted->region && have->function == wanted->function &&
	       have->address == wanted->address;
}

static int add_site(struct pm_callgrind_sums *sums, uint32_t region,
		    const struct pm_callgrind_row *row)
{
	struct pm_callgrind_site key = { .region = region,
					 .function = row->who.function,
					 .address = row->address,
					 .file = row->who.file,
					 .line = row->line };
	uint64_t hash = pm_hash_mix((uint64_t)region << 32 | key.function, key.address);
	uint32_t id =
		pm_index_find(&sums->site_index, hash, callgrind_site_equal, sums, &key);

	if (id == PM_INDEX_NONE) {
		key.costs = calloc(sums->columns_len, sizeof(*key.costs));
		if (!key.costs || pm_vec_push(&sums->sites, key) < 0) {
			free(key.costs);
			return -ENOMEM;
		}
		id = (uint32_t)(sums->sites.len - 1);
		if (pm_index_add(&sums->site_index, hash, id) < 0)
			return -ENOMEM;
	}
	pm_callgrind_add(&sums->sites.data[id].calls, row->times);
	if (row->callee.level == 1)
		add_costs(sums, sums->sites.data[id].costs, row->counts);
	return 0;
}

static int add_sites_of_callee(struct pm_callgrind_sums *sums,
			       const struct pm_callgrind_row *row)
{
	uint32_t module;
	size_t at;

	if (pm_callgrind_module_of(sums, row->callee.object, &module) < 0)
		return -ENOMEM;
	if (module == PM_CALLGRIND_NONE)
		at = 0;
	else
		at = pm_callgrind_pieces_end(sums, module, row->target);
	while (pm_callgrind_piece_before(sums, &at, module, row->target)) {
		uint32_t region = sums->pieces.data[at].region;
		const struct pm_region *it = &sums->regions->list.data[region];

		if (it->kind == PM_STAT_FUNCTION &&
		    it->pieces.data[0].low == row->target &&
		    add_site(sums, region, row) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- files ------------------------------------------------------------------------------ */

static int sums_add_row(struct pm_callgrind_sums *sums,
			struct pm_callgrind_thread *thread,
			const struct pm_callgrind_row *row)
{
	uint32_t module;
	size_t at;

	if (row->kind == PM_CALLGRIND_SELF) {
		add_costs(sums, sums->total, row->counts);
		add_costs(sums, thread->costs, row->counts);
		if (sums->stacks &&
		    pm_callgrind_stacks_add(sums->stacks, row,
					    row->counts[sums->instructions]) < 0)
			return -ENOMEM;
	}
	if (row->kind == PM_CALLGRIND_CALL && sums->options->calls_from > 0 &&
	    add_sites_of_callee(sums, row) < 0)
		return -ENOMEM;
	if (pm_callgrind_module_of(sums, row->who.object, &module) < 0)
		return -ENOMEM;
	if (module == PM_CALLGRIND_NONE)
		return 0;
	at = pm_callgrind_pieces_end(sums, module, row->address);
	while (pm_callgrind_piece_before(sums, &at, module, row->address))
		if (tally_row(sums, sums->pieces.data[at].region, row) < 0)
			return -ENOMEM;
	if (row->kind == PM_CALLGRIND_JUMP)
		return jump_into(sums, module, row);
	return 0;
}

/* The first file defines the columns. */
static int adopt_columns(struct pm_callgrind_sums *sums,
			 const struct pm_callgrind_header *header, const char *name,
			 struct pm_error *err)
{
	size_t i;

	if (!sums->total)
		sums->total = calloc(PM_CALLGRIND_COLUMNS_MAX, sizeof(*sums->total));
	if (!sums->total)
		return -ENOMEM;
	if (sums->columns_len == 0) {
		for (i = 0; i < header->columns_len; i++) {
			sums->columns[i] = strdup(header->columns[i]);
			if (!sums->columns[i])
				return -ENOMEM;
			sums->columns_len++;
			if (strcmp(sums->columns[i], "Ir") == 0)
				sums->instructions = i;
		}
	}
	for (i = 0; i < sums->columns_len && i < header->columns_len; i++)
		if (strcmp(sums->columns[i], header->columns[i]) != 0)
			break;
	if (i < sums->columns_len || i < header->columns_len || i == 0 ||
	    strcmp(sums->columns[sums->instructions], "Ir") != 0) {
		pm_error_set(err, -EBADMSG, "counts other events than were asked for");
		pm_error_where(err, name, -1);
		return -EBADMSG;
	}
	return 0;
}

static struct pm_callgrind_thread *sums_get_thread(
	struct pm_callgrind_sums *sums, const struct pm_callgrind_header *header)
{
	struct pm_callgrind_thread thread = { .pid = header->pid,
					      .thread = header->thread };

	sums->pid = thread.pid;
	sums->thread = thread.thread;
	for (size_t i = 0; i < sums->threads.len; i++)
		if (sums->threads.data[i].pid == thread.pid &&
		    sums->threads.data[i].thread == thread.thread)
			return &sums->threads.data[i];
	thread.costs = calloc(sums->columns_len, sizeof(*thread.costs));
	if (!thread.costs || pm_vec_push(&sums->threads, thread) < 0) {
		free(thread.costs);
		return NULL;
	}
	return &sums->threads.data[sums->threads.len - 1];
}

enum {
	WHOLE = -1, /* it has executed a program since; all threads are its own */
};

static struct pm_callgrind_copy *find_copy(struct pm_callgrind_sums *sums, int32_t pid)
{
	for (size_t i = 0; i < sums->copies.len; i++)
		if (sums->copies.data[i].pid == pid)
			return &sums->copies.data[i];
	return NULL;
}

/*
 * The first part of a copy shows which thread the copy has. A process made by
 * posix_spawn(3) runs only code of the C library until its exec(3); it is left out. Any
 * other copy was made without the C library.
 */
static int begin_copy(struct pm_callgrind_sums *sums,
		      const struct pm_callgrind_header *header)
{
	struct pm_callgrind_copy copy = { .pid = header->pid,
					  .last_block = header->last_block };

	if (header->trigger == PM_CALLGRIND_AFTER_FORK ||
	    header->trigger == PM_CALLGRIND_AFTER_HANDLERS)
		copy.thread = header->thread;
	else if (sums->last_trigger != PM_CALLGRIND_BEFORE_SPAWN)
		sums->copies_left_out++;
	sums->copies_with_handlers += header->trigger == PM_CALLGRIND_AFTER_HANDLERS;
	return pm_vec_push(&sums->copies, copy);
}

/* Whether the file with this header has costs of its process itself, or -ENOMEM. *copy is
 * NULL if the process is not a copy of another one. */
static int has_own_costs(struct pm_callgrind_sums *sums,
			 const struct pm_callgrind_header *header,
			 struct pm_callgrind_copy **copy)
{
	bool first = header->part == 1;
	int ret = 0;

	*copy = find_copy(sums, header->pid);
	/* A dump has one file per thread. If a process has a second first dump, it has
	 * executed another program, and is no longer a copy. */
	if (!*copy && sums->root != 0 && header->pid != sums->root)
		ret = begin_copy(sums, header);
	else if (*copy && first && header->last_block != (*copy)->last_block)
		(*copy)->thread = WHOLE;
	*copy = find_copy(sums, header->pid);
	sums->last_trigger = header->trigger;
	if (ret < 0)
		return ret;
	if (*copy && (*copy)->thread == WHOLE)
		*copy = NULL;
	return !*copy || ((*copy)->thread == header->thread && !first);
}

/* pthread_create@@GLIBC_2.34 */
static bool makes_thread(const struct pm_callgrind_sums *sums,
			 const struct pm_callgrind_row *row)
{
	return row->kind == PM_CALLGRIND_CALL &&
	       row->callee.function != PM_CALLGRIND_NONE &&
	       strstr(sums->table.functions.data[row->callee.function].name,
		      "pthread_create");
}

static void note_row_of_copy(struct pm_callgrind_sums *sums,
			     struct pm_callgrind_copy *copy,
			     const struct pm_callgrind_row *row)
{
	if (copy->made_threads || !makes_thread(sums, row))
		return;
	copy->made_threads = true;
	sums->copies_with_threads++;
}

/* Whether the dump belongs to a marked part. A part ends with the dump before the
 * function that ends it. The dump at the end of the program belongs to no part. */
static bool part_is_marked(const struct pm_callgrind_sums *sums,
			   const struct pm_callgrind_header *header)
{
	const char *to = NULL;

	if (sums->options->marked)
		to = sums->options->marked_to;
	/* C++ names are often longer than the part that is kept of them. */
	return !to ||
	       strncmp(to, header->dumped_before, sizeof(header->dumped_before) - 1) == 0;
}

static int read_rows(struct pm_callgrind_sums *sums, struct pm_callgrind *reader,
		     const char *name, struct pm_error *err)
{
	const struct pm_callgrind_header *header = pm_callgrind_header(reader);
	struct pm_callgrind_thread *thread = NULL;
	struct pm_callgrind_copy *copy = NULL;
	struct pm_callgrind_row row;
	bool begun = false;
	int ret, own = 0;

	while ((ret = pm_callgrind_next(reader, &row, err)) > 0) {
		if (!begun) {
			ret = adopt_columns(sums, header, name, err);
			if (ret < 0)
				return ret;
			own = has_own_costs(sums, header, &copy);
			if (own > 0 && !part_is_marked(sums, header))
				own = 0;
			begun = true;
		}
		if (own == 0)
			continue;
		if (own < 0)
			return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
		if (copy)
			note_row_of_copy(sums, copy, &row);
		if (!thread)
			thread = sums_get_thread(sums, header);
		if (!thread || sums_add_row(sums, thread, &row) < 0)
			return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	}
	if (ret == 0 && begun && !header->ended) {
		pm_error_set(err, -EBADMSG, "ends before its totals");
		pm_error_where(err, name, -1);
		return -EBADMSG;
	}
	return ret;
}

int pm_callgrind_sums_add(struct pm_callgrind_sums *sums, int fd, const char *name,
			  struct pm_error *err)
{
	struct pm_callgrind *reader;
	int ret = pm_callgrind_open(&reader, &sums->table, fd, name, err);

	if (ret < 0)
		return ret;
	ret = read_rows(sums, reader, name, err);
	memcpy(sums->creator, pm_callgrind_header(reader)->creator,
	       sizeof(sums->creator));
	pm_callgrind_close(reader);
	if (ret < 0)
		sums->damaged = true;
	return ret;
}

/* ---- start and end ---------------------------------------------------------------------- */

int pm_callgrind_sums_new(struct pm_callgrind_sums **out,
			  const struct pm_engine_options *options)
{
	static const struct pm_regions none;
	struct pm_callgrind_sums *sums = calloc(1, sizeof(*sums));

	if (!sums)
		return -ENOMEM;
	sums->options = options;
	if (options->regions)
		sums->regions = options->regions;
	else
		sums->regions = &none;
	if (pm_callgrind_places_add(sums) < 0 ||
	    (options->stacks && pm_callgrind_stacks_new(&sums->stacks) < 0)) {
		pm_callgrind_sums_free(sums);
		return -ENOMEM;
	}
	*out = sums;
	return 0;
}

void pm_callgrind_sums_free(struct pm_callgrind_sums *sums)
{
	if (!sums)
		return;
	pm_callgrind_table_release(&sums->table);
	pm_callgrind_stacks_free(sums->stacks);
	for (size_t i = 0; i < sums->tallies.len; i++)
		free(sums->tallies.data[i].first);
	for (size_t i = 0; i < sums->sites.len; i++)
		free(sums->sites.data[i].costs);
	for (size_t i = 0; i < sums->threads.len; i++)
		free(sums->threads.data[i].costs);
	for (size_t i = 0; i < sums->columns_len; i++)
		free(sums->columns[i]);
	free(sums->total);
	pm_vec_release(&sums->modules);
	pm_vec_release(&sums->pieces);
	pm_vec_release(&sums->exits);
	pm_vec_release(&sums->module_of);
	pm_vec_release(&sums->tallies);
	pm_vec_release(&sums->sites);
	pm_vec_release(&sums->threads);
	pm_vec_release(&sums->copies);
	pm_index_release(&sums->tally_index);
	pm_index_release(&sums->site_index);
	free(sums);
}

void pm_callgrind_sums_root(struct pm_callgrind_sums *sums, pid_t pid)
{
	sums->root = pid;
}

void pm_callgrind_sums_cut(struct pm_callgrind_sums *sums)
{
	sums->damaged = true;
}

int pm_callgrind_sums_write_stacks(const struct pm_callgrind_sums *sums,
				   const struct pm_stat *stat, struct pm_error *err)
{
	return pm_callgrind_stacks_write(sums->stacks, &sums->table, stat,
					 sums->options->command, sums->options->stacks,
					 err);
}

bool pm_callgrind_sums_are_empty(const struct pm_callgrind_sums *sums)
{
	for (size_t i = 0; sums->total && i < sums->columns_len; i++)
		if (sums->total[i] > 0)
			return false;
	return true;
}

const char *pm_callgrind_sums_creator(const struct pm_callgrind_sums *sums)
{
	return sums->creator;
}

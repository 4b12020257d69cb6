/* SPDX-License-Identifier: MIT */
/*
 * A table of functions by address; any function may replace others at any time. Ranges
 * that do not overlap are kept in sorted blocks. Adding a range moves at most the entries
 * of one block, which keeps it cheap with a million functions and in any order.
 */
#include "jit-internal.h"

#include <string.h>

enum {
	BLOCK_RANGES = 256,
};

/* Allocated together with its strings, which follow it. A moved function uses the strings
 * of the node that it was moved from. */
struct node {
	struct pm_jit_function function;
	struct node *texts; /* the node that has its strings, with a reference; NULL:
	                     * itself */
	size_t bytes;
	uint32_t refs; /* the table's reference, and those of nodes that use its
	                * strings */
	uint32_t ranges; /* number of ranges that refer to it; an overlap may leave
	                  * several */
	bool used;
};

struct range {
	uint64_t start, end; /* [start, end) avma */
	struct node *node;
};

struct block {
	size_t len; /* > 0 */
	struct range ranges[BLOCK_RANGES];
};

struct place {
	size_t block, at;
};

struct pm_jit_table {
	PM_VEC(struct block *) blocks;
	struct pm_jit_budget *budget; /* may be NULL */
	struct pm_jit_table_stats stats;
	uint64_t serial;
	uint32_t base_generation, top_generation;
	/* A used function has lost an address since the base generation started. */
	bool lost;
};

static void table_add_bytes(struct pm_jit_table *table, size_t bytes)
{
	table->stats.bytes += bytes;
	if (table->budget)
		table->budget->bytes += bytes;
}

static void table_subtract_bytes(struct pm_jit_table *table, size_t bytes)
{
	table->stats.bytes -= bytes;
	if (table->budget)
		table->budget->bytes -= bytes;
}

struct pm_jit_table *pm_jit_table_new(struct pm_jit_budget *budget)
{
	struct pm_jit_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->budget = budget;
	table_add_bytes(table, sizeof(*table));
	return table;
}

/* Drops a reference. A node that uses the strings of another one refers to a node with
 * strings of its own: the loop runs at most twice. */
static void node_unref(struct pm_jit_table *table, struct node *node)
{
	while (node && --node->refs == 0) {
		struct node *texts = node->texts;

		table_subtract_bytes(table, node->bytes);
		free(node);
		node = texts;
	}
}

static void range_unref(struct pm_jit_table *table, struct node *node)
{
	if (--node->ranges > 0)
		return;
	table->stats.functions--;
	table->stats.with_eh_frame -= node->function.eh_frame != NULL;
	node_unref(table, node);
}

static bool is_node_from_source(const struct node *node, const enum pm_jit_source *source)
{
	return !source || node->function.source == *source;
}

/* Removes the ranges of @source, or all if it is NULL. */
static void jit_block_clear_source(struct pm_jit_table *table, struct block *block,
				   const enum pm_jit_source *source)
{
	size_t kept = 0;

	for (size_t i = 0; i < block->len; i++) {
		struct node *node = block->ranges[i].node;

		if (!is_node_from_source(node, source)) {
			block->ranges[kept++] = block->ranges[i];
			continue;
		}
		table->lost |= node->used;
		range_unref(table, node);
	}
	block->len = kept;
}

static void jit_table_clear_source(struct pm_jit_table *table,
				   const enum pm_jit_source *source)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->blocks.len; i++) {
		struct block *block = table->blocks.data[i];

		jit_block_clear_source(table, block, source);
		if (block->len > 0) {
			table->blocks.data[kept++] = block;
			continue;
		}
		free(block);
		table_subtract_bytes(table, sizeof(*block));
	}
	table->blocks.len = kept;
	table->stats.changes++;
	/* If no lost function was used, no new generation is needed; the number of
	 * generations is limited. */
	if (table->lost)
		table->base_generation = table->top_generation + 1;
	table->lost = false;
}

void pm_jit_table_clear(struct pm_jit_table *table)
{
	jit_table_clear_source(table, NULL);
}

void pm_jit_table_clear_source(struct pm_jit_table *table, enum pm_jit_source source)
{
	jit_table_clear_source(table, &source);
}

void pm_jit_table_free(struct pm_jit_table *table)
{
	if (!table)
		return;
	pm_jit_table_clear(table);
	table_subtract_bytes(table, sizeof(*table));
	pm_vec_release(&table->blocks);
	free(table);
}

void pm_jit_table_stats(const struct pm_jit_table *table, struct pm_jit_table_stats *out)
{
	*out = table->stats;
	out->generation = table->base_generation;
}

/* ---- ranges -------------------------------------------------------------------------- */

/* Returns the first range that ends above @address; block == blocks.len if there is
 * none. */
static struct place find_first_range_ending_above(const struct pm_jit_table *table,
						  uint64_t address)
{
	struct place place;
	size_t low = 0, high = table->blocks.len;
	const struct block *block;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		block = table->blocks.data[middle];
		if (block->ranges[block->len - 1].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	place.block = low;
	place.at = 0;
	if (low == table->blocks.len)
		return place;
	block = table->blocks.data[low];
	low = 0;
	high = block->len;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (block->ranges[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	place.at = low;
	return place;
}

static struct range *range_at(const struct pm_jit_table *table, struct place place)
{
	if (place.block >= table->blocks.len)
		return NULL;
	return &table->blocks.data[place.block]->ranges[place.at];
}

static void remove_range(struct pm_jit_table *table, struct place place)
{
	struct block *block = table->blocks.data[place.block];

	range_unref(table, block->ranges[place.at].node);
	block->len--;
	memmove(block->ranges + place.at, block->ranges + place.at + 1,
		(block->len - place.at) * sizeof(*block->ranges));
	if (block->len > 0)
		return;
	free(block);
	table_subtract_bytes(table, sizeof(*block));
	table->blocks.len--;
	memmove(table->blocks.data + place.block, table->blocks.data + place.block + 1,
		(table->blocks.len - place.block) * sizeof(*table->blocks.data));
}

/* Inserts an empty block at @index. Returns NULL if memory runs out. */
static struct block *insert_block(struct pm_jit_table *table, size_t index)
{
	struct block *block;

	if (pm_vec_reserve(&table->blocks, table->blocks.len + 1) < 0)
		return NULL;
	block = malloc(sizeof(*block));
	if (!block)
		return NULL;
	block->len = 0;
	memmove(table->blocks.data + index + 1, table->blocks.data + index,
		(table->blocks.len - index) * sizeof(*table->blocks.data));
	table->blocks.data[index] = block;
	table->blocks.len++;
	table_add_bytes(table, sizeof(*block));
	return block;
}

/* Inserts a range. A full block is split, and the new block gets its upper half. At the
 * very end, where most functions are added, the new block starts empty, so that the
 * blocks before it stay full. */
static int insert_range(struct pm_jit_table *table, const struct range *range)
{
	struct place place = find_first_range_ending_above(table, range->start);
	struct block *block = NULL;

	if (place.block == table->blocks.len && place.block > 0) {
		place.block--;
		place.at = table->blocks.data[place.block]->len;
	}
	if (place.block < table->blocks.len)
		block = table->blocks.data[place.block];
	if (!block || block->len == BLOCK_RANGES) {
		bool at_end = block && place.block + 1 == table->blocks.len &&
			      place.at == block->len;
		struct block *next =
			insert_block(table, block ? place.block + 1 : place.block);
		size_t keep = at_end ? BLOCK_RANGES : BLOCK_RANGES / 2;

		if (!next)
			return -ENOMEM;
		if (block) {
			next->len = BLOCK_RANGES - keep;
			memcpy(next->ranges, block->ranges + keep,
			       next->len * sizeof(*next->ranges));
			block->len = keep;
		}
		if (!block || at_end || place.at > keep) {
			if (block)
				place.at -= keep;
			block = next;
		}
	}
	memmove(block->ranges + place.at + 1, block->ranges + place.at,
		(block->len - place.at) * sizeof(*block->ranges));
	block->ranges[place.at] = *range;
	block->len++;
	range->node->ranges++;
	return 0;
}

/* Removes all ranges from [start, end). Returns 0, or -ENOMEM after a part was
 * removed. */
static int jit_table_cut_range(struct pm_jit_table *table, uint64_t start, uint64_t end)
{
	for (;;) {
		struct place place = find_first_range_ending_above(table, start);
		struct range *range = range_at(table, place);

		if (!range || range->start >= end)
			return 0;
		table->lost |= range->node->used;
		if (range->start < start && range->end > end) {
			struct range rest = { .start = end,
					      .end = range->end,
					      .node = range->node };

			range->end = start;
			return insert_range(table, &rest);
		}
		if (range->start < start) {
			range->end = start;
		} else if (range->end > end) {
			range->start = end;
			return 0;
		} else {
			remove_range(table, place);
		}
	}
}

/* ---- functions ----------------------------------------------------------------------- */

/* Whether @node adds no information about a range that @old already describes. */
static bool adds_nothing_to_node(const struct node *node, const struct node *old)
{
	const struct pm_jit_function *a = &old->function, *b = &node->function;

	/* The source with the lower number may withdraw its functions. */
	if (a->start != b->start || a->len != b->len || a->source < b->source)
		return false;
	/* Move records cost the program that writes them nothing; comparing strings for
	 * each would be too expensive. */
	if (node->texts)
		return node->texts == (old->texts ? old->texts : old);
	return pm_jit_function_holds(a, b);
}

/*
 * Returns the generation of a function that will occupy [start, end). Sets @known if an
 * equal or more detailed function is already there.
 */
static uint32_t next_generation(const struct pm_jit_table *table, const struct node *node,
				bool *known)
{
	uint64_t start = node->function.start, end = start + node->function.len;
	uint32_t generation = table->base_generation;

	*known = false;
	for (struct place place = find_first_range_ending_above(table, start);
	     place.block < table->blocks.len;) {
		const struct range *range = range_at(table, place);
		const struct pm_jit_function *old = &range->node->function;
		bool same = old->name && (old->name == node->function.name ||
					  strcmp(old->name, node->function.name) == 0);
		uint32_t least = old->generation + (range->node->used && !same);

		if (range->start >= end)
			break;
		if (same && range->start == start && range->end == end &&
		    adds_nothing_to_node(node, range->node))
			*known = true;
		if (least > generation)
			generation = least;
		if (++place.at == table->blocks.data[place.block]->len) {
			place.at = 0;
			place.block++;
		}
	}
	return generation;
}

/* Takes ownership of @node, and counts its bytes from here on. */
static int jit_table_add_node(struct pm_jit_table *table, struct node *node)
{
	struct range range = { .start = node->function.start,
			       .end = node->function.start + node->function.len,
			       .node = node };
	bool known;
	int ret;

	table_add_bytes(table, node->bytes);
	node->function.generation = next_generation(table, node, &known);
	if (known) {
		node_unref(table, node);
		return 0;
	}
	if (node->function.generation >= PM_JIT_GENERATIONS_MAX) {
		table->stats.left_out++;
		node->function.generation = PM_JIT_GENERATIONS_MAX;
		node->function.name = node->function.file = NULL;
		node->function.lines_len = 0;
	}
	if (node->function.generation > table->top_generation)
		table->top_generation = node->function.generation;
	table->stats.changes++;
	ret = jit_table_cut_range(table, range.start, range.end);
	if (ret == 0)
		ret = insert_range(table, &range);
	if (ret < 0) {
		node_unref(table, node);
		return ret;
	}
	node->function.serial = ++table->serial;
	table->stats.functions++;
	table->stats.with_eh_frame += node->function.eh_frame != NULL;
	return 0;
}

/* ---- one allocation for a function --------------------------------------------------- */

static char *node_copy_text(char **at, const char *text, size_t len)
{
	char *to = *at;

	memcpy(to, text, len);
	to[len] = '\0';
	*at += len + 1;
	return to;
}

static uint8_t *node_copy_bytes(char **at, const uint8_t *bytes, size_t len)
{
	uint8_t *to = (uint8_t *)*at;

	memcpy(to, bytes, len);
	*at += len;
	return to;
}

/* Returns the bytes needed for file names. The lines of a function are from few files,
 * usually one: a string equal to the previous one is not repeated. */
static size_t line_file_names_bytes(const struct pm_jit_function *function)
{
	size_t bytes = 0;

	for (size_t i = 0; i < function->lines_len; i++)
		if (i == 0 ||
		    strcmp(function->lines[i].file, function->lines[i - 1].file) != 0)
			bytes += strlen(function->lines[i].file) + 1;
	return bytes;
}

static void node_copy_lines(struct node *node, const struct pm_jit_function *from,
			    char **at)
{
	struct pm_jit_line *lines = (struct pm_jit_line *)(node + 1);

	for (size_t i = 0; i < from->lines_len; i++) {
		lines[i] = from->lines[i];
		if (i > 0 && strcmp(from->lines[i].file, from->lines[i - 1].file) == 0)
			lines[i].file = lines[i - 1].file;
		else
			lines[i].file = node_copy_text(at, from->lines[i].file,
						       strlen(from->lines[i].file));
	}
	node->function.lines = lines;
	node->function.lines_len = from->lines_len;
}

static struct node *node_new(const struct pm_jit_function *from, const char *name)
{
	struct pm_jit_split split;
	size_t lines_bytes = from->lines_len * sizeof(*from->lines);
	size_t name_len = strlen(name);
	size_t code_len = from->eh_frame && from->code ? from->len : 0;
	size_t eh_frame_len = from->eh_frame ? from->eh_frame_len : 0;
	size_t bytes = sizeof(struct node) + lines_bytes + line_file_names_bytes(from) +
		       name_len + 1 + eh_frame_len + code_len;
	struct node *node;
	char *at;

	pm_jit_name_split(name, name_len, &split);
	if (split.file)
		bytes += split.file_len + 1;
	node = calloc(1, bytes);
	if (!node)
		return NULL;
	node->bytes = bytes;
	node->refs = 1;
	node->function.source = from->source;
	node->function.start = from->start;
	node->function.len = from->len;
	at = (char *)(node + 1) + lines_bytes;
	if (from->lines_len > 0)
		node_copy_lines(node, from, &at);
	node->function.name = node_copy_text(&at, name, name_len);
	if (split.file) {
		node->function.file = node_copy_text(&at, split.file, split.file_len);
		node->function.line = split.line;
	}
	if (eh_frame_len > 0) {
		node->function.eh_frame =
			node_copy_bytes(&at, from->eh_frame, eh_frame_len);
		node->function.eh_frame_len = eh_frame_len;
		node->function.eh_frame_at = from->eh_frame_at;
	}
	if (code_len > 0)
		node->function.code = node_copy_bytes(&at, from->code, code_len);
	return node;
}

static void append_name(struct pm_str *str, const char *name, size_t len)
{
	size_t shown = PM_MIN(len, PM_JIT_NAME_MAX);

	/* Do not cut within a UTF-8 character. */
	while (shown < len && shown > 0 && ((uint8_t)name[shown] & 0xc0) == 0x80)
		shown--;
	pm_str_printable(str, name, shown);
	if (shown < len)
		pm_str_puts(str, "…");
}

static bool jit_table_has_room(const struct pm_jit_table *table, size_t bytes)
{
	const struct pm_jit_budget *budget = table->budget;

	if (budget &&
	    (budget->bytes > budget->max || bytes > budget->max - budget->bytes))
		return false;
	return table->stats.functions < PM_JIT_FUNCTIONS_MAX &&
	       table->stats.bytes <= PM_JIT_TABLE_BYTES_MAX &&
	       bytes <= PM_JIT_TABLE_BYTES_MAX - table->stats.bytes;
}

int pm_jit_table_add(struct pm_jit_table *table, const struct pm_jit_function *function,
		     const char *name, size_t name_len)
{
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	struct node *node;
	uint64_t end;

	if (function->len == 0 || name_len == 0 ||
	    __builtin_add_overflow(function->start, function->len, &end))
		return -EINVAL;
	append_name(&text, name, name_len);
	if (text.failed)
		return -ENOMEM;
	node = node_new(function, text.data);
	if (!node)
		return -ENOMEM;
	if (!jit_table_has_room(table, node->bytes)) {
		free(node);
		table->stats.left_out++;
		return -ENOSPC;
	}
	return jit_table_add_node(table, node);
}

static struct node *jit_table_find_node(const struct pm_jit_table *table,
					uint64_t address)
{
	const struct range *range =
		range_at(table, find_first_range_ending_above(table, address));

	if (range && range->start <= address)
		return range->node;
	return NULL;
}

int pm_jit_table_move(struct pm_jit_table *table, uint64_t from, uint64_t to)
{
	struct node *old = jit_table_find_node(table, from), *node;
	uint64_t end;

	if (!old || old->function.start != from || !old->function.name)
		return -ENOENT;
	if (__builtin_add_overflow(to, old->function.len, &end))
		return -EINVAL;
	if (!jit_table_has_room(table, sizeof(*node))) {
		table->stats.left_out++;
		return -ENOSPC;
	}
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->function = old->function;
	node->function.start = to;
	node->function.eh_frame_at += to - from;
	node->bytes = sizeof(*node);
	node->refs = 1;
	node->texts = old->texts ? old->texts : old;
	node->texts->refs++;
	return jit_table_add_node(table, node);
}

const struct pm_jit_function *pm_jit_table_find(const struct pm_jit_table *table,
						uint64_t address)
{
	const struct node *node = jit_table_find_node(table, address);

	if (!node)
		return NULL;
	return &node->function;
}

const struct pm_jit_function *pm_jit_table_use(struct pm_jit_table *table,
					       uint64_t address)
{
	struct node *node = jit_table_find_node(table, address);

	if (!node)
		return NULL;
	node->used = true;
	return &node->function;
}

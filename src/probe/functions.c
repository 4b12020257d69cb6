/* SPDX-License-Identifier: MIT */
/*
 * Functions with their bounds. Names are looked up as for events (symbols.c). A second
 * pass over the symbol tables finds `.cold` parts, and the starts of the next functions,
 * which end symbols without a size.
 */
#include "probe-internal.h"

#include <elf.h>
#include <string.h>

#include "pm/proc.h"

enum {
	PARTS_MAX = 64, /* of one function */
	OPEN_BYTES_MAX = 1 << 20, /* for a symbol without a size */
};

/* A function's symbol in the index by address. */
struct indexed {
	struct pm_probe_symbol row;
	size_t order; /* its number in the tables */
	size_t file; /* counts file symbols: index of the one before this symbol */
	uint64_t reach; /* the highest end of this symbol and all before it */
};

struct reader {
	const struct pm_probe_binary *binary;
	struct pm_probe_elf elf, debug;
	bool has_debug;
	int debug_fd;
	struct pm_probe_tables tables;
	PM_VEC(struct indexed) index; /* for finding functions by address */
	struct pm_probe_functions *out;
	size_t first; /* index of the first new one in *out */
};

typedef PM_VEC(uint64_t) address_list;

static void probe_function_release(struct pm_probe_function *function)
{
	free(function->symbol);
	free(function->name);
	pm_vec_release(&function->parts);
}

void pm_probe_functions_release(struct pm_probe_functions *functions)
{
	for (size_t i = 0; i < functions->list.len; i++)
		probe_function_release(&functions->list.data[i]);
	pm_vec_release(&functions->list);
	for (size_t i = 0; i < functions->notes.len; i++)
		free(functions->notes.data[i]);
	pm_vec_release(&functions->notes);
}

static void reader_close(struct reader *reader)
{
	pm_vec_release(&reader->index);
	pm_probe_tables_close(&reader->tables);
	if (reader->has_debug)
		pm_probe_elf_close(&reader->debug);
	pm_probe_elf_close(&reader->elf);
	pm_cleanup_close(&reader->debug_fd);
}

static int reader_open(struct reader *reader, const struct pm_probe_context *context,
		       struct pm_error *err)
{
	struct pm_debug_search search = { .dir = context->debug_dir,
					  .pid = reader->binary->pid,
					  .path = reader->binary->path };
	int ret = pm_probe_elf_open(&reader->elf, reader->binary->fd);

	reader->debug_fd = -1;
	if (ret < 0) {
		pm_error_set(err, ret, "%s", pm_error_elf_text(ret));
		pm_error_where(err, reader->binary->path, -1);
		return ret;
	}
	reader->debug_fd = pm_debug_find(reader->binary->fd, &search);
	reader->has_debug = reader->debug_fd >= 0 &&
			    pm_probe_elf_open(&reader->debug, reader->debug_fd) == 0;
	ret = pm_probe_tables_open(&reader->tables, &reader->elf,
				   reader->has_debug ? &reader->debug : NULL);
	if (ret < 0) {
		pm_error_set(err, ret, "cannot read its symbols: %s", strerror(-ret));
		pm_error_where(err, reader->binary->path, -1);
		reader_close(reader);
	}
	return ret;
}

static int set_functions_memory_error(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "no memory left for the functions");
}

/* ---- extents ------------------------------------------------------------------------------- */

/* Returns the end of the section around @address: no function continues beyond it. */
static uint64_t code_section_end(const struct pm_probe_elf *elf, uint64_t address)
{
	const struct pm_probe_segment *segment = pm_probe_elf_segment(elf, address);

	for (size_t i = 0; i < elf->sections.len; i++) {
		const struct pm_probe_section *section = &elf->sections.data[i];

		if (section->flags & SHF_EXECINSTR && address >= section->address &&
		    address - section->address < section->size)
			return section->address + section->size;
	}
	if (segment)
		return segment->end;
	return address;
}

/* Whether @name, such as f.cold or f.cold.0, could be that of a part of @symbol. */
static bool is_part_of_symbol(const char *name, const char *symbol)
{
	static const char *const words[] = { "cold", "unlikely", "__part", NULL };
	size_t len = strlen(symbol);

	if (strncmp(name, symbol, len) != 0 || name[len] != '.')
		return false;
	name += len + 1;
	for (const char *const *word = words; *word; word++) {
		size_t n = strlen(*word);

		if (strncmp(name, *word, n) == 0 &&
		    strspn(name + n, ".0123456789") == strlen(name + n))
			return true;
	}
	return false;
}

static int function_add_part(struct pm_probe_function *function, uint64_t low,
			     uint64_t high)
{
	struct pm_probe_piece piece = { low, high };

	for (size_t i = 0; i < function->parts.len; i++)
		if (function->parts.data[i].low == low)
			return 0;
	if (function->parts.len < PARTS_MAX)
		return pm_vec_push(&function->parts, piece);
	return 0;
}

/* Applies one symbol to @function. */
static int function_apply_symbol(struct reader *reader,
				 struct pm_probe_function *function, bool open,
				 bool is_part, const struct pm_probe_symbol *row)
{
	uint64_t high, offset;

	if (open && row->address > function->low && row->address < function->high)
		function->high = row->address;
	if (!is_part || row->size == 0 || !function->symbol ||
	    !is_part_of_symbol(row->name, function->symbol) ||
	    !pm_probe_elf_code(&reader->elf, row->address, &offset) ||
	    __builtin_add_overflow(row->address, row->size, &high))
		return 0;
	return function_add_part(function, row->address, high);
}

static int compare_functions_by_start(const void *a, const void *b)
{
	const struct pm_probe_function *x = a, *y = b;

	return PM_COMPARE(x->low, y->low);
}

/* Determines the ends and the parts of the new functions. */
static int complete_new_functions(struct reader *reader)
{
	size_t len = reader->out->list.len - reader->first;
	struct pm_probe_function *list =
		len > 0 ? reader->out->list.data + reader->first : NULL;
	PM_AUTO_FREE bool *open = calloc(len + 1, sizeof(*open));
	int ret = open ? 0 : -ENOMEM;
	bool any_open = false;

	if (len == 0)
		return ret;
	for (size_t i = 0; i < len && ret == 0; i++) {
		uint64_t end = code_section_end(&reader->elf, list[i].low);

		struct pm_probe_piece frame;

		open[i] = list[i].high <= list[i].low;
		if (open[i] && pm_probe_frame_at(&reader->elf, list[i].low, &frame)) {
			list[i].high = frame.high;
			open[i] = false;
		}
		if (open[i] || list[i].high > end)
			list[i].high = end;
		if (open[i] && end - list[i].low > OPEN_BYTES_MAX)
			list[i].high = list[i].low + OPEN_BYTES_MAX;
		any_open |= open[i];
	}
	for (size_t t = 0; t < reader->tables.len && ret == 0; t++) {
		struct pm_probe_table table = reader->tables.table[t];
		struct pm_probe_symbol row;

		for (size_t i = 1; i < table.len && ret == 0; i++) {
			if (!pm_probe_table_row(&table, i, &row) || !row.defined ||
			    (row.type != STT_FUNC && row.type != STT_GNU_IFUNC))
				continue;
			bool is_part = strchr(row.name, '.') != NULL;

			for (size_t n = 0; (any_open || is_part) && n < len && ret == 0;
			     n++)
				ret = function_apply_symbol(reader, &list[n], open[n],
							    is_part, &row);
		}
	}
	qsort(list, len, sizeof(*list), compare_functions_by_start);
	return ret;
}

/* ---- by name --------------------------------------------------------------------------------- */

static int functions_add_places(struct reader *reader, struct pm_probe_places *places)
{
	for (size_t i = 0; i < places->list.len; i++) {
		struct pm_probe_place *place = &places->list.data[i];
		struct pm_probe_function function = { .low = place->address };

		if (__builtin_add_overflow(place->address, place->size, &function.high))
			function.high = place->address;
		if (pm_vec_push(&reader->out->list, function) < 0)
			return -ENOMEM;
		reader->out->list.data[reader->out->list.len - 1].symbol =
			PM_TAKE_PTR(place->symbol);
		reader->out->list.data[reader->out->list.len - 1].name =
			PM_TAKE_PTR(place->name);
	}
	return complete_new_functions(reader);
}

static int functions_add_note(struct pm_probe_functions *out, struct pm_str *text)
{
	char *copy;
	int ret = 0;

	if (text->failed) {
		ret = -ENOMEM;
	} else if (text->len > 0) {
		copy = strdup(text->data);
		ret = -ENOMEM;
		if (copy)
			ret = pm_vec_push(&out->notes, copy);
		if (ret < 0)
			free(copy);
	}
	pm_str_release(text);
	return ret;
}

/* Removes everything that was appended. */
static void undo_new_functions(struct reader *reader)
{
	while (reader->out->list.len > reader->first)
		probe_function_release(&reader->out->list.data[--reader->out->list.len]);
}

int pm_probe_find_functions(struct pm_probe_functions *out,
			    const struct pm_probe_binary *binary,
			    const struct pm_probe_context *context, const char *name,
			    struct pm_error *err)
{
	struct reader reader = { .binary = binary, .out = out, .first = out->list.len };
	struct pm_event_spec spec = { .place = { .symbol = name } };
	struct pm_probe_file file = { .fd = binary->fd,
				      .label = binary->label,
				      .path = binary->path,
				      .pid = binary->pid };
	struct pm_str text = { 0 };
	struct pm_probe_search search = { .spec = &spec,
					  .context = context,
					  .file = &file,
					  .note = &text,
					  .is_region = true };
	struct pm_probe_places places = { 0 };
	int ret = reader_open(&reader, context, err);

	if (ret < 0)
		return ret;
	snprintf(spec.requested, sizeof(spec.requested), "%s", name);
	search.elf = &reader.elf;
	search.debug_fd = reader.debug_fd;
	ret = pm_probe_find_symbols(&search, &places, err);
	pm_error_where(err, binary->path, -1);
	if (ret == 0 && (functions_add_places(&reader, &places) < 0 ||
			 functions_add_note(out, &text) < 0))
		ret = set_functions_memory_error(err);
	if (ret < 0)
		undo_new_functions(&reader);
	pm_str_release(&text);
	pm_probe_places_release(&places);
	reader_close(&reader);
	return ret;
}

/* ---- by address -------------------------------------------------------------------------------- */

static bool is_address_held(const struct reader *reader, uint64_t address)
{
	for (size_t i = reader->first; i < reader->out->list.len; i++) {
		const struct pm_probe_function *function = &reader->out->list.data[i];

		if (address >= function->low && address < function->high)
			return true;
	}
	return false;
}

/* In a stripped file, the unwind information still has the bounds. */
static int add_nameless_function(struct reader *reader, uint64_t address)
{
	struct pm_probe_function function = { 0 };
	struct pm_probe_piece frame;

	if (!pm_probe_frame_at(&reader->elf, address, &frame))
		return 0;
	function.low = frame.low;
	function.high = frame.high;
	if (asprintf(&function.name, "0x%llx", (unsigned long long)frame.low) < 0)
		return -ENOMEM;
	if (pm_vec_push(&reader->out->list, function) == 0)
		return 0;
	free(function.name);
	return -ENOMEM;
}

static int compare_indexed_by_address(const void *a, const void *b)
{
	const struct indexed *x = a, *y = b;

	if (x->row.address != y->row.address)
		return PM_COMPARE(x->row.address, y->row.address);
	return PM_COMPARE(x->order, y->order);
}

/* Indexes the functions of all tables by address. */
static int index_code_symbols(struct reader *reader)
{
	uint64_t reach = 0, end;
	size_t files = 0;

	for (size_t t = 0; t < reader->tables.len; t++) {
		struct pm_probe_table table = reader->tables.table[t];
		struct indexed one = { 0 };

		for (size_t i = 1; i < table.len; i++) {
			if (!pm_probe_table_row(&table, i, &one.row) || !one.row.defined)
				continue;
			/* A file symbol precedes the local symbols of its file (gABI). */
			if (one.row.type == STT_FILE)
				one.file = ++files;
			if (one.row.type != STT_FUNC && one.row.type != STT_GNU_IFUNC)
				continue;
			one.order = reader->index.len;
			if (pm_vec_push(&reader->index, one) < 0)
				return -ENOMEM;
		}
	}
	if (reader->index.len > 0)
		qsort(reader->index.data, reader->index.len, sizeof(*reader->index.data),
		      compare_indexed_by_address);
	for (size_t i = 0; i < reader->index.len; i++) {
		const struct pm_probe_symbol *row = &reader->index.data[i].row;

		if (row->size == 0 ||
		    __builtin_add_overflow(row->address, row->size, &end))
			end = UINT64_MAX;
		reach = PM_MAX(end, reach);
		reader->index.data[i].reach = reach;
	}
	return 0;
}

/* Counts the symbols that start at or before @address. */
static size_t count_symbols_up_to(const struct reader *reader, uint64_t address)
{
	size_t from = 0, to = reader->index.len;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (reader->index.data[mid].row.address <= address)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* Returns the last symbol that starts at or before @address and, if it has a size,
 * contains it; NULL if there is none. */
static const struct indexed *find_holding_symbol(const struct reader *reader,
						 uint64_t address)
{
	const struct indexed *ret = NULL;
	size_t i = count_symbols_up_to(reader, address);

	/* If several symbols share the address, the first in the tables wins. */
	for (; i > 0 && reader->index.data[i - 1].reach > address; i--) {
		const struct indexed *one = &reader->index.data[i - 1];
		const struct pm_probe_symbol *row = &one->row;

		if (ret && row->address < ret->row.address)
			break;
		if (row->size == 0 || address - row->address < row->size)
			ret = one;
	}
	return ret;
}

/* Finds the function that f.cold is a part of: the one named f. If there are several, the
 * one from the same source file is preferred. */
static const struct pm_probe_symbol *find_whole_of_part(const struct reader *reader,
							const struct indexed *part)
{
	enum pm_probe_copy copy;
	size_t len = pm_probe_base_len(part->row.name, &copy);
	const struct pm_probe_symbol *ret = &part->row;
	int best = 0;

	for (size_t i = 0; i < reader->index.len && copy == PM_PROBE_PART; i++) {
		const struct indexed *one = &reader->index.data[i];
		const struct pm_probe_symbol *row = &one->row;
		int rank;

		if (row->type != STT_FUNC ||
		    strncmp(row->name, part->row.name, len) != 0 ||
		    row->name[len] != '\0' ||
		    !is_part_of_symbol(part->row.name, row->name))
			continue;
		if (row->bind != STB_LOCAL)
			rank = 2;
		else if (one->file == part->file)
			rank = 3;
		else
			rank = 1;
		if (rank <= best)
			continue;
		best = rank;
		ret = row;
	}
	return ret;
}

/* Whether another function starts between a symbol without a size and @address. */
static bool symbol_ends_before(const struct reader *reader,
			       const struct pm_probe_symbol *symbol, uint64_t address)
{
	struct pm_probe_piece frame;

	return symbol->size == 0 && pm_probe_frame_at(&reader->elf, address, &frame) &&
	       frame.low > symbol->address;
}

static int add_holding_function(struct reader *reader, uint64_t address)
{
	struct pm_probe_function function = { 0 };
	const struct indexed *held = find_holding_symbol(reader, address);
	const struct pm_probe_symbol *symbol;

	if (!held || symbol_ends_before(reader, &held->row, address))
		return add_nameless_function(reader, address);
	symbol = find_whole_of_part(reader, held);
	function.low = symbol->address;
	if (__builtin_add_overflow(symbol->address, symbol->size, &function.high))
		function.high = symbol->address;
	function.symbol = strdup(symbol->name);
	function.name = pm_probe_pretty(symbol->name);
	if (function.symbol && function.name &&
	    pm_vec_push(&reader->out->list, function) == 0)
		return 0;
	free(function.symbol);
	free(function.name);
	return -ENOMEM;
}

/* Drops duplicates: several addresses may have been in parts of the same function. */
static void drop_duplicate_functions(struct reader *reader)
{
	struct pm_probe_function *list = reader->out->list.data;
	size_t to = reader->first;

	for (size_t i = reader->first; i < reader->out->list.len; i++) {
		if (to == reader->first || list[to - 1].low != list[i].low)
			list[to++] = list[i];
		else
			probe_function_release(&list[i]);
	}
	reader->out->list.len = to;
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Collects the starts of the pieces, and of the functions within them: these may be
 * preceded by padding that belongs to no function. */
static int find_piece_starts(struct reader *reader, const struct pm_probe_piece *pieces,
			     size_t len, address_list *out)
{
	int ret = 0;

	for (size_t i = 0; i < len && ret == 0; i++) {
		uint64_t at = pieces[i].low;

		ret = pm_vec_push(out, at);
		while (ret == 0 && pm_probe_frame_next(&reader->elf, at + 1, &at) &&
		       at < pieces[i].high)
			ret = pm_vec_push(out, at);
		for (size_t n = count_symbols_up_to(reader, pieces[i].low);
		     n < reader->index.len &&
		     reader->index.data[n].row.address < pieces[i].high && ret == 0;
		     n++)
			ret = pm_vec_push(out, reader->index.data[n].row.address);
	}
	/* Sorted, because addresses within a function that was found are then skipped. */
	if (ret == 0 && out->len > 0)
		qsort(out->data, out->len, sizeof(*out->data), compare_addresses);
	return ret;
}

static int add_holding_functions(struct reader *reader, const uint64_t *addresses,
				 size_t len, size_t most)
{
	int ret = 0;

	for (size_t i = 0; i < len && ret == 0; i++) {
		if (is_address_held(reader, addresses[i]))
			continue;
		if (reader->out->list.len - reader->first < most)
			ret = add_holding_function(reader, addresses[i]);
		else
			ret = -E2BIG;
	}
	if (ret == 0)
		ret = complete_new_functions(reader);
	if (ret == 0)
		drop_duplicate_functions(reader);
	return ret;
}

int pm_probe_find_holders(struct pm_probe_functions *out,
			  const struct pm_probe_binary *binary,
			  const struct pm_probe_context *context,
			  const uint64_t *addresses, size_t len, struct pm_error *err)
{
	struct reader reader = { .binary = binary, .out = out, .first = out->list.len };
	int ret = reader_open(&reader, context, err);

	if (ret < 0)
		return ret;
	ret = index_code_symbols(&reader);
	if (ret == 0)
		ret = add_holding_functions(&reader, addresses, len, SIZE_MAX);
	if (ret < 0) {
		undo_new_functions(&reader);
		set_functions_memory_error(err);
	}
	reader_close(&reader);
	return ret;
}

int pm_probe_find_within(struct pm_probe_functions *out,
			 const struct pm_probe_binary *binary,
			 const struct pm_probe_context *context,
			 const struct pm_probe_piece *pieces, size_t len, size_t most,
			 struct pm_error *err)
{
	struct reader reader = { .binary = binary, .out = out, .first = out->list.len };
	address_list addresses = { 0 };
	int ret = reader_open(&reader, context, err);

	if (ret < 0)
		return ret;
	ret = index_code_symbols(&reader);
	if (ret == 0)
		ret = find_piece_starts(&reader, pieces, len, &addresses);
	if (ret == 0)
		ret = add_holding_functions(&reader, addresses.data, addresses.len, most);
	if (ret < 0)
		undo_new_functions(&reader);
	if (ret == -E2BIG)
		pm_error_set(err, ret, "more than %zu functions", most);
	else if (ret < 0)
		set_functions_memory_error(err);
	pm_vec_release(&addresses);
	reader_close(&reader);
	return ret;
}

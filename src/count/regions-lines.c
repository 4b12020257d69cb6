/* SPDX-License-Identifier: MIT */
/* Lines and addresses: of a function's definition, and of ranges. */
#include "regions-internal.h"

#include <string.h>

#include "pm/symbol.h"

/* ---- specifications ----------------------------------------------------------------------- */

static int no_range(struct pm_finder *finder)
{
	pm_error_set(finder->err, -EINVAL, "\"%s\" is no range of code",
		     finder->spec->text);
	pm_error_fix(finder->err, "FILE:FROM-TO, as in main.c:10-20, or 0xFROM-0xTO");
	return -EINVAL;
}

static bool parse_line_number(const char *text, size_t len, uint32_t *out)
{
	char copy[16];
	uint64_t line;

	if (len == 0 || len >= sizeof(copy) || strspn(text, "0123456789") < len)
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (!pm_parse_u64(copy, &line) || line == 0 || line > UINT32_MAX)
		return false;
	*out = (uint32_t)line;
	return true;
}

/* 0xA-0xB */
static int parse_addresses(struct pm_finder *finder)
{
	char *minus = strchr(finder->name, '-');

	if (!minus)
		return no_range(finder);
	*minus = '\0';
	if (!pm_parse_u64(finder->name, &finder->low) ||
	    !pm_parse_u64(minus + 1, &finder->high))
		return no_range(finder);
	finder->words = PM_FINDER_ADDRESSES;
	if (finder->low < finder->high)
		return 0;
	return pm_error_set(finder->err, -EINVAL, "\"%s\" ends before it begins",
			    finder->spec->text);
}

static int parse_range(struct pm_finder *finder)
{
	char *colon = strrchr(finder->name, ':'), *minus;

	if (strncmp(finder->name, "0x", 2) == 0)
		return parse_addresses(finder);
	if (!colon || colon == finder->name)
		return no_range(finder);
	minus = strchr(colon, '-');
	if (!parse_line_number(colon + 1,
			       minus ? (size_t)(minus - colon) - 1 : strlen(colon + 1),
			       &finder->line) ||
	    (minus &&
	     !parse_line_number(minus + 1, strlen(minus + 1), &finder->line_end)))
		return no_range(finder);
	if (!minus)
		finder->line_end = finder->line;
	*colon = '\0';
	finder->words = PM_FINDER_LINES;
	if (finder->line <= finder->line_end)
		return 0;
	return pm_error_set(finder->err, -EINVAL, "\"%s\" ends before it begins",
			    finder->spec->text);
}

int pm_finder_parse(struct pm_finder *finder, const char **library)
{
	const char *text = finder->spec->text, *at = strrchr(text, '@');
	char *colon;

	/* A directory's name can contain @, too. */
	if (at && strchr(at, ':'))
		at = NULL;
	if (at)
		*library = at + 1;
	else
		*library = NULL;
	if (at)
		finder->name = strndup(text, (size_t)(at - text));
	else
		finder->name = strdup(text);
	if (!finder->name)
		return pm_finder_no_memory(finder);
	if (finder->name[0] == '\0' || (at && at[1] == '\0'))
		return pm_error_set(finder->err, -EINVAL, "\"%s\" is no name of a %s",
				    text, finder->spec->range ? "range" : "function");
	if (finder->spec->range)
		return parse_range(finder);
	finder->words = PM_FINDER_NAME;
	colon = strrchr(finder->name, ':');
	/* A second colon belongs to a C++ name. */
	if (colon && colon > finder->name && colon[-1] != ':' &&
	    parse_line_number(colon + 1, strlen(colon + 1), &finder->line)) {
		*colon = '\0';
		finder->words = PM_FINDER_LINE;
	}
	return 0;
}

/* ---- definitions --------------------------------------------------------------------------- */

static struct pm_symbol_options symbol_options_of(const struct pm_finder *finder,
						  const struct pm_finder_file *file)
{
	return (struct pm_symbol_options){ .debug_dir = finder->context->debug_dir,
					   .pid = file->binary->pid,
					   .path = file->binary->path };
}

struct addresses {
	PM_VEC(uint64_t) list;
	uint32_t line;
};

static int collect_address(void *user, const struct pm_symbol_line *place)
{
	struct addresses *addresses = user;

	addresses->line = place->line;
	return pm_vec_push(&addresses->list, place->address);
}

static bool has_address(const struct addresses *addresses, uint64_t address)
{
	for (size_t i = 0; i < addresses->list.len; i++)
		if (addresses->list.data[i] == address)
			return true;
	return false;
}

static int refuse_without_debug(struct pm_finder *finder, int code)
{
	if (code == -ENODATA)
		pm_error_fix(finder->err,
			     "build it with -g, or install its debug symbols (-dbgsym)");
	else if (code == -ENOMEM)
		pm_finder_no_memory(finder);
	return code;
}

int pm_finder_find_line(struct pm_finder *finder, const struct pm_finder_file *file)
{
	struct pm_symbol_options options = symbol_options_of(finder, file);
	struct pm_probe_functions functions = { 0 };
	struct addresses addresses = { 0 };
	bool any = false;
	int ret = pm_symbols_find_line(file->binary->fd, &options, finder->name,
				       finder->line, collect_address, &addresses,
				       finder->err);

	ret = refuse_without_debug(finder, ret);
	if (ret == 0)
		ret = pm_probe_find_holders(&functions, file->binary, finder->context,
					    addresses.list.data, addresses.list.len,
					    finder->err);
	for (size_t i = 0; i < functions.list.len && ret == 0; i++) {
		if (!has_address(&addresses, functions.list.data[i].low))
			continue;
		ret = pm_finder_add_function(finder, file, &functions.list.data[i],
					     false);
		any = true;
	}
	if (ret == 0 && !any) {
		ret = pm_error_set(finder->err, -ENOENT, "no function begins at %s:%u",
				   finder->name, finder->line);
		if (functions.list.len > 0)
			pm_error_fix(finder->err, "%s, which this line is in",
				     functions.list.data[0].name);
	}
	pm_vec_release(&addresses.list);
	pm_probe_functions_release(&functions);
	return ret;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

struct lines {
	pm_pieces pieces, moved, lent;
	char *path;
};

static int collect_span(void *user, const struct pm_symbol_span *span)
{
	struct lines *lines = user;
	struct pm_probe_piece piece = { span->low, span->high };

	if (!lines->path && !(lines->path = strdup(span->file)))
		return -ENOMEM;
	if (span->moved)
		return pm_vec_push(&lines->moved, piece);
	if (span->lent)
		return pm_vec_push(&lines->lent, piece);
	return pm_vec_push(&lines->pieces, piece);
}

/* Adds code that was moved away from the lines, but not far: a single instruction in the
 * middle of other code is not a visit to the lines. */
static int add_moved(struct lines *lines)
{
	for (size_t i = 0; i < lines->moved.len; i++) {
		struct pm_probe_piece moved = lines->moved.data[i];
		bool touches = false;

		for (size_t n = 0; n < lines->pieces.len && !touches; n++)
			touches = lines->pieces.data[n].high == moved.low ||
				  lines->pieces.data[n].low == moved.high;
		if (touches && pm_vec_push(&lines->pieces, moved) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* If no code of the lines is in its place, in any function, all of the moved code is
 * used. */
static int use_moved_pieces(struct lines *lines)
{
	int ret = 0;

	if (lines->pieces.len > 0)
		return 0;
	for (size_t i = 0; i < lines->moved.len && ret == 0; i++)
		ret = pm_vec_push(&lines->pieces, lines->moved.data[i]);
	pm_vec_clear(&lines->moved);
	return ret;
}

/* Code that was inlined at one of the lines is a part of them, as a call would be. */
struct chains {
	const struct pm_finder *finder;
	const pm_pieces *code; /* instructions, ascending */
	struct lines *lines;
};

static int collect_chain(void *user, size_t index,
			 const struct pm_symbol_function *functions, size_t len)
{
	struct chains *chains = user;

	for (size_t i = 1; i < len; i++)
		if (functions[i].file && functions[i].line >= chains->finder->line &&
		    functions[i].line <= chains->finder->line_end &&
		    strcmp(functions[i].file, chains->lines->path) == 0)
			return pm_vec_push(&chains->lines->pieces,
					   chains->code->data[index]);
	return 0;
}

static int compare_line_pieces(const void *a, const void *b)
{
	const struct pm_probe_piece *x = a, *y = b;

	return PM_COMPARE(x->low, y->low);
}

/* Adds the chains of all functions at once: reading a unit's entries takes as long for
 * one as for all. */
static int add_chains(struct pm_finder *finder, const struct pm_finder_file *file,
		      pm_pieces *code, struct lines *lines)
{
	struct pm_symbol_options options = symbol_options_of(finder, file);
	struct chains chains = { finder, code, lines };
	PM_AUTO_FREE uint64_t *addresses = calloc(code->len + 1, sizeof(uint64_t));
	size_t to = 0;

	if (!addresses)
		return -ENOMEM;
	if (code->len > 0)
		qsort(code->data, code->len, sizeof(*code->data), compare_line_pieces);
	for (size_t i = 0; i < code->len; i++)
		if (to == 0 || code->data[to - 1].low != code->data[i].low)
			code->data[to++] = code->data[i];
	code->len = to;
	for (size_t i = 0; i < to; i++)
		addresses[i] = code->data[i].low;
	options.inlines = options.lines = true;
	return pm_symbols_resolve(file->binary->fd, addresses, to, &options,
				  collect_chain, &chains, NULL);
}

static int open_flow(const struct pm_finder_file *file,
		     const struct pm_probe_function *function, struct pm_flow *out)
{
	struct pm_probe_piece whole = { function->low, function->high };

	return pm_flow_open(out, &file->source, &whole, function->parts.data,
			    function->parts.len, false);
}

static int collect_insn_pieces(const struct pm_finder_file *file,
			       const struct pm_probe_function *function, pm_pieces *out)
{
	struct pm_flow flow;
	int ret = open_flow(file, function, &flow);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < flow.insns.len && ret == 0; i++) {
		const struct pm_flow_insn *insn = &flow.insns.data[i];
		struct pm_probe_piece piece = { insn->address,
						insn->address + insn->len };

		ret = pm_vec_push(out, piece);
	}
	pm_flow_close(&flow);
	return ret;
}

static int add_lent(const struct pm_finder_file *file,
		    const struct pm_probe_function *function, struct lines *lines)
{
	struct pm_flow flow;
	int ret = open_flow(file, function, &flow);

	if (ret < 0)
		return ret;
	ret = pm_flow_add_straight(&flow, &lines->pieces, lines->lent.data,
				   lines->lent.len);
	pm_flow_close(&flow);
	return ret;
}

static int lines_add_inlined(struct pm_finder *finder, const struct pm_finder_file *file,
			     struct lines *lines)
{
	struct pm_probe_functions functions = { 0 };
	pm_pieces insns = { 0 };
	int ret = pm_probe_find_within(&functions, file->binary, finder->context,
				       lines->pieces.data, lines->pieces.len,
				       PM_REGION_PLACES_MAX, NULL);

	if (ret == -E2BIG)
		return pm_finder_too_many(finder);
	for (size_t i = 0; i < functions.list.len && ret == 0; i++)
		ret = collect_insn_pieces(file, &functions.list.data[i], &insns);
	if (ret == 0)
		ret = add_chains(finder, file, &insns, lines);
	for (size_t i = 0; i < functions.list.len && lines->lent.len > 0 && ret == 0; i++)
		ret = add_lent(file, &functions.list.data[i], lines);
	if (ret < 0)
		pm_error_set(finder->err, ret, "cannot read the code of %s: %s",
			     finder->spec->text, strerror(-ret));
	pm_vec_release(&insns);
	pm_probe_functions_release(&functions);
	return ret;
}

static int add_lines_region(struct pm_finder *finder, const struct pm_finder_file *file)
{
	struct pm_symbol_options options = symbol_options_of(finder, file);
	struct lines lines = { 0 };
	struct pm_region *region;
	int ret = pm_symbols_find_lines(file->binary->fd, &options, finder->name,
					finder->line, finder->line_end, collect_span,
					&lines, finder->err);

	ret = refuse_without_debug(finder, ret);
	if (ret == 0 && use_moved_pieces(&lines) < 0)
		ret = pm_finder_no_memory(finder);
	if (ret == 0)
		ret = lines_add_inlined(finder, file, &lines);
	if (ret == 0 && add_moved(&lines) < 0)
		ret = pm_finder_no_memory(finder);
	if (ret == 0) {
		region = pm_finder_add(finder, file, PM_STAT_RANGE, finder->spec->text);
		if (region)
			ret = 0;
		else
			ret = finder->err->code;
	}
	if (ret == 0) {
		region->file = PM_TAKE_PTR(lines.path);
		region->line = finder->line;
		region->line_end = finder->line_end;
		ret = pm_finder_give_pieces(finder, file, &lines.pieces);
	}
	pm_vec_release(&lines.pieces);
	pm_vec_release(&lines.moved);
	pm_vec_release(&lines.lent);
	free(lines.path);
	return ret;
}

static int find_addresses(struct pm_finder *finder, const struct pm_finder_file *file)
{
	struct pm_probe_piece piece = { finder->low, finder->high };
	pm_pieces pieces = { 0 };
	uint64_t offset;
	int ret;

	if (!pm_probe_image_code(file->image, finder->low, &offset) ||
	    !pm_probe_image_code(file->image, finder->high - 1, &offset)) {
		ret = pm_error_set(finder->err, -EINVAL, "not all of %s is code",
				   finder->spec->text);
		pm_error_where(finder->err, file->binary->path, -1);
		return ret;
	}
	if (pm_vec_push(&pieces, piece) < 0)
		return pm_finder_no_memory(finder);
	if (pm_finder_add(finder, file, PM_STAT_RANGE, finder->spec->text))
		ret = pm_finder_give_pieces(finder, file, &pieces);
	else
		ret = finder->err->code;
	pm_vec_release(&pieces);
	return ret;
}

int pm_finder_find_range(struct pm_finder *finder, const struct pm_finder_file *file)
{
	if (finder->words == PM_FINDER_LINES)
		return add_lines_region(finder, file);
	return find_addresses(finder, file);
}

/* ---- definitions of functions ------------------------------------------------------------------ */

struct defining {
	struct pm_regions *regions;
	const uint64_t *addresses;
	int fd;
};

/* Whether there are regions for the places where it was inlined. */
static bool has_inlined(const struct pm_regions *regions, const char *name)
{
	for (size_t i = 0; i < regions->list.len; i++)
		if (regions->list.data[i].kind == PM_STAT_INLINED &&
		    strcmp(regions->list.data[i].name, name) == 0)
			return true;
	return false;
}

static int region_set_definition(void *user, size_t index, const char *file,
				 uint32_t line, bool inlined)
{
	struct defining *defining = user;

	for (size_t i = 0; i < defining->regions->list.len; i++) {
		struct pm_region *region = &defining->regions->list.data[i];

		if (region->kind != PM_STAT_FUNCTION || region->fd != defining->fd ||
		    region->pieces.data[0].low != defining->addresses[index] ||
		    region->file)
			continue;
		region->file = strdup(file);
		if (!region->file)
			return -ENOMEM;
		region->line = line;
		region->inlined_away =
			inlined && !has_inlined(defining->regions, region->name);
	}
	return 0;
}

static int compare_line_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return PM_COMPARE(*x, *y);
}

int pm_finder_define(struct pm_finder *finder)
{
	struct pm_symbol_options options = { .debug_dir = finder->context->debug_dir };
	struct pm_regions *regions = finder->ret;
	PM_AUTO_FREE uint64_t *addresses =
		calloc(regions->list.len + 1, sizeof(*addresses));
	int ret = 0;

	if (!addresses)
		ret = -ENOMEM;
	for (size_t f = 0; f < regions->files.len && ret == 0; f++) {
		struct defining defining = { regions, addresses, regions->files.data[f] };
		size_t len = 0, distinct = 0;

		for (size_t i = 0; i < regions->list.len; i++) {
			const struct pm_region *region = &regions->list.data[i];

			if (region->kind == PM_STAT_FUNCTION && region->fd == defining.fd)
				addresses[len++] = region->pieces.data[0].low;
		}
		qsort(addresses, len, sizeof(*addresses), compare_line_addresses);
		for (size_t i = 0; i < len; i++)
			if (i == 0 || addresses[i] != addresses[i - 1])
				addresses[distinct++] = addresses[i];
		/* If there is no debug information, the names are enough. */
		ret = pm_symbols_find_declared(defining.fd, &options, addresses, distinct,
					       region_set_definition, &defining, NULL);
		if (ret != -ENOMEM)
			ret = 0;
	}
	if (ret == -ENOMEM)
		return pm_finder_no_memory(finder);
	return 0;
}

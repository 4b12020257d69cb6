/* SPDX-License-Identifier: MIT */
/*
 * From specifications to places in code: the files and functions that are meant
 * (pm/probe.h), lines and ranges (regions-lines.c), inlined functions
 * (regions-inlined.c), the instructions where control enters and leaves (flow-places.c),
 * and their offsets in the file.
 */
#include "regions-internal.h"

#include <string.h>

#include "pm/symbol.h"

/* Whether a call begins at the same instruction that ends it. */
static bool is_whole_call(const struct pm_regions *regions, const struct pm_place *end)
{
	for (size_t i = 0; i < regions->places.len; i++) {
		const struct pm_place *place = &regions->places.data[i];

		if (place->region == end->region && place->address == end->address &&
		    pm_place_is_way_in(place))
			return true;
	}
	return false;
}

int pm_place_turn(const struct pm_regions *regions, uint32_t index)
{
	const struct pm_place *place = &regions->places.data[index];

	switch (place->kind) {
	case PM_PLACE_ENTRY:
		return 1;
	case PM_PLACE_IN:
		return 2; /* a part of the function */
	case PM_PLACE_OUT:
		if (is_whole_call(regions, place))
			return 3;
		return 0;
	case PM_PLACE_EXIT:
		if (is_whole_call(regions, place))
			return 4;
		return 0;
	}
	return 0;
}

/* Intel SDM 1, B.1: each condition is followed by its opposite. */
static bool holds_of_eflags(uint8_t code, uint64_t flags)
{
	enum {
		CARRY = 1,
		PARITY = 4,
		ZERO = 0x40,
		SIGN = 0x80,
		OVERFLOW = 0x800
	};
	bool carry = flags & CARRY, zero = flags & ZERO;
	bool less = !(flags & SIGN) != !(flags & OVERFLOW);

	switch (code >> 1) {
	case 0:
		return flags & OVERFLOW;
	case 1:
		return carry;
	case 2:
		return zero;
	case 3:
		return carry || zero;
	case 4:
		return flags & SIGN;
	case 5:
		return flags & PARITY;
	case 6:
		return less;
	default:
		return less || zero;
	}
}

/* Arm ARM C1.2.4: in the same order. */
static bool holds_of_nzcv(uint8_t code, uint64_t flags)
{
	bool negative = flags >> 31 & 1, zero = flags >> 30 & 1;
	bool carry = flags >> 29 & 1, overflow = flags >> 28 & 1;

	switch (code >> 1) {
	case 0:
		return zero;
	case 1:
		return carry;
	case 2:
		return negative;
	case 3:
		return overflow;
	case 4:
		return carry && !zero;
	case 5:
		return negative == overflow;
	default:
		return negative == overflow && !zero;
	}
}

bool pm_place_leaves(const struct pm_place *place, uint64_t value)
{
	uint8_t code;

	if (place->condition == 0)
		return true;
	if (pm_place_asks_register(place))
		return !(value & place->condition_bits) ==
		       (place->condition == PM_PLACE_IF_NO_BITS);
	if (place->condition >= PM_PLACE_IF_NZCV) {
		code = place->condition - PM_PLACE_IF_NZCV;
		return holds_of_nzcv(code, value) != (code & 1);
	}
	code = place->condition - PM_PLACE_IF_EFLAGS;
	return holds_of_eflags(code, value) != (code & 1);
}

/* ---- names ------------------------------------------------------------------------------- */

static bool function_is_only_one(const struct pm_probe_functions *functions, size_t index)
{
	const char *symbol = functions->list.data[index].symbol;

	for (size_t i = 0; i < functions->list.len && symbol; i++)
		if (i != index && functions->list.data[i].symbol &&
		    strcmp(functions->list.data[i].symbol, symbol) == 0)
			return false;
	return true;
}

static int move_notes(struct pm_finder *finder, struct pm_probe_functions *functions)
{
	for (size_t i = 0; i < functions->notes.len; i++) {
		if (pm_vec_push(&finder->ret->notes, functions->notes.data[i]) < 0)
			return pm_finder_no_memory(finder);
		functions->notes.data[i] = NULL;
	}
	return 0;
}

static int add_matching_functions(struct pm_finder *finder,
				  const struct pm_finder_file *file)
{
	struct pm_probe_functions functions = { 0 };
	int ret = pm_probe_find_functions(&functions, file->binary, finder->context,
					  finder->name, finder->err);

	for (size_t i = 0; i < functions.list.len && ret == 0; i++)
		ret = pm_finder_add_function(finder, file, &functions.list.data[i],
					     function_is_only_one(&functions, i));
	if (ret == 0)
		ret = move_notes(finder, &functions);
	pm_probe_functions_release(&functions);
	return ret;
}

static int find_name(struct pm_finder *finder, const struct pm_finder_file *file)
{
	struct pm_error *err = finder->err, other = { 0 };
	size_t before = finder->ret->list.len;
	int ret = add_matching_functions(finder, file), inlined;

	if ((ret < 0 && ret != -ENOENT && ret != -ENODATA) ||
	    (ret == 0 && strpbrk(finder->name, "*?[")))
		return ret;
	finder->err = &other;
	inlined = pm_finder_find_inlined(finder, file);
	finder->err = err;
	if (inlined < 0 && err)
		*err = other;
	if (inlined < 0)
		return inlined;
	if (inlined > 0 && finder->ret->list.len == before)
		return pm_error_set(
			err, -ENOENT,
			"%s was inlined everywhere, and nothing is left of it",
			finder->name);
	if (inlined > 0 && ret == 0)
		return pm_finder_note(finder,
				      "is there as a function, and was inlined at %d "
				      "place%s",
				      inlined, pm_plural_s(inlined));
	if (inlined > 0)
		return 0;
	return ret;
}

static int find_region_in_binary(struct pm_finder *finder,
				 const struct pm_probe_binary *binary)
{
	struct pm_finder_file file = { 0 };
	int ret = pm_finder_file_open(finder, &file, binary);

	if (ret < 0)
		return ret;
	switch (finder->words) {
	case PM_FINDER_NAME:
		ret = find_name(finder, &file);
		break;
	case PM_FINDER_LINE:
		ret = pm_finder_find_line(finder, &file);
		break;
	case PM_FINDER_LINES:
	case PM_FINDER_ADDRESSES:
		ret = pm_finder_find_range(finder, &file);
		break;
	}
	if (ret < 0 && finder->err && !finder->err->source[0])
		pm_error_where(finder->err, binary->path, -1);
	pm_finder_file_close(&file);
	return ret;
}

/* Searches all @binaries if @all is true, or else until one has the function. The first
 * error is kept. */
static int find_in_each(struct pm_finder *finder,
			const struct pm_probe_binaries *binaries, bool all)
{
	struct pm_error *err = finder->err, other;
	int first = -ENOENT;
	bool any = false;

	for (size_t i = 0; i < binaries->list.len && (all || !any); i++) {
		int ret;

		if (i == 0)
			finder->err = err;
		else
			finder->err = &other;
		ret = find_region_in_binary(finder, &binaries->list.data[i]);
		any |= ret == 0;
		if (i == 0)
			first = ret;
		if (ret < 0 && ret != -ENOENT && ret != -ENODATA && ret != -ENOEXEC) {
			if (err && i > 0)
				*err = other;
			first = ret;
			any = false;
			break;
		}
	}
	finder->err = err;
	if (any)
		return 0;
	return first;
}

/* Notes that the program may have a function of this name that was meant, although a
 * library's was found. */
static int note_own_function(struct pm_finder *finder)
{
	PM_AUTO_FREE char *own = NULL;
	struct pm_error none = { 0 };
	int ret;

	if (finder->words != PM_FINDER_NAME || strpbrk(finder->name, "*?["))
		return 0;
	ret = pm_probe_find_meant(&own, &finder->programs, finder->context, finder->name,
				  &none);
	if (ret == -ENOMEM)
		return pm_finder_no_memory(finder);
	if (ret < 0)
		return 0;
	return pm_finder_note(finder,
			      "a library's function is counted; the program "
			      "has %s, too",
			      own);
}

static int find_anywhere(struct pm_finder *finder)
{
	struct pm_error *err = finder->err, other = { 0 };
	int ret = find_in_each(finder, &finder->programs, true), second;

	if ((ret != -ENOENT && ret != -ENODATA) || finder->words == PM_FINDER_ADDRESSES)
		return ret;
	if (!finder->has_needed) {
		second = pm_probe_find_needed(&finder->needed, finder->context, &other);
		if (second < 0)
			return ret;
		finder->has_needed = true;
	}
	finder->err = &other;
	second = find_in_each(finder, &finder->needed, false);
	finder->err = err;
	if (second == 0)
		return note_own_function(finder);
	/* Normally the program's error is reported. But if a library has the function and
	 * it cannot be counted, that is the function that was meant. */
	if (second != -ENOENT && second != -ENODATA && second != -ENOEXEC) {
		if (err)
			*err = other;
		return second;
	}
	return ret;
}

/* ---- all specifications ----------------------------------------------------------------------- */

/* If there is no function of that name, a unique one whose last part is that name is
 * meant. */
static int find_meant_function(struct pm_finder *finder,
			       const struct pm_probe_binaries *binaries)
{
	char *name;
	int ret;

	if (finder->words != PM_FINDER_NAME || strpbrk(finder->name, "*?["))
		return -ENOENT;
	ret = pm_probe_find_meant(&name, binaries, finder->context, finder->name,
				  finder->err);
	if (ret < 0)
		return ret;
	free(finder->name);
	finder->name = name;
	return find_in_each(finder, binaries, true);
}

static int find_with_library(struct pm_finder *finder, const char *library)
{
	struct pm_probe_binaries binaries = { 0 };
	int ret = pm_probe_find_binary(&binaries, finder->context, library, finder->err);

	if (ret == 0)
		ret = find_in_each(finder, &binaries, true);
	if (ret == -ENOENT)
		ret = find_meant_function(finder, &binaries);
	pm_probe_binaries_release(&binaries);
	return ret;
}

static int find_region_of_name(struct pm_finder *finder)
{
	const char *library;
	int ret = pm_finder_parse(finder, &library);

	if (ret < 0)
		return ret;
	if (library)
		return find_with_library(finder, library);
	if (finder->programs.list.len == 0)
		ret = pm_probe_find_program(&finder->programs, finder->context,
					    finder->err);
	if (ret == 0)
		ret = find_anywhere(finder);
	if (ret == -ENOENT)
		return find_meant_function(finder, &finder->programs);
	return ret;
}

static bool is_of_go(int fd)
{
	uint64_t low, high;

	return pm_symbols_section(fd, ".note.go.buildid", &low, &high) == 0;
}

/* A Go function that finds its stack too small has the stack moved, and starts again by a
 * jump to its first instruction. On another stack this looks like a recursive call. */
static int note_go(struct pm_finder *finder)
{
	struct pm_regions *regions = finder->ret;

	for (size_t i = 0; i < regions->places.len; i++) {
		const struct pm_place *place = &regions->places.data[i];
		const struct pm_region *region = &regions->list.data[place->region];

		if (place->kind != PM_PLACE_ENTRY || !place->again ||
		    !is_of_go(region->fd))
			continue;
		return pm_finder_note(
			finder, "in Go, a call whose stack has to grow begins anew, and "
				"is counted once more: numbers of calls may be a "
				"little too large");
	}
	return 0;
}

/* ---- equal names ------------------------------------------------------------------------- */

/* Returns the hash that Rust's older mangling appends, "17h", 16 digits and "E", without
 * the length in front; NULL: there is none. It depends on everything that distinguishes
 * instances of a function. */
static const char *find_rust_hash(const char *symbol)
{
	enum {
		DIGITS = 16
	};
	const char *at = NULL;

	if (symbol)
		at = strstr(symbol, "17h");
	for (; at; at = strstr(at + 1, "17h"))
		if (strspn(at + 3, "0123456789abcdef") == DIGITS && at[3 + DIGITS] == 'E')
			return at + 2;
	return NULL;
}

static bool has_equal(const struct pm_regions *regions, size_t index)
{
	const struct pm_region *region = &regions->list.data[index];

	for (size_t i = 0; i < regions->list.len; i++)
		if (i != index && regions->list.data[i].kind == region->kind &&
		    strcmp(regions->list.data[i].name, region->name) == 0)
			return true;
	return false;
}

/* Makes names unique: instances of a generic function of Rust have the same name, without
 * the part that distinguishes them. */
static int distinguish_instances(struct pm_regions *regions)
{
	enum {
		HASH_LEN = 17
	};
	PM_AUTO_FREE bool *equal = calloc(regions->list.len + 1, sizeof(*equal));

	if (!equal)
		return -ENOMEM;
	for (size_t i = 0; i < regions->list.len; i++)
		equal[i] = has_equal(regions, i);
	for (size_t i = 0; i < regions->list.len; i++) {
		struct pm_region *region = &regions->list.data[i];
		const char *hash = NULL;
		char *name;

		if (equal[i])
			hash = find_rust_hash(region->symbol);
		if (!hash)
			continue;
		if (asprintf(&name, "%s::%.*s", region->name, HASH_LEN, hash) < 0)
			return -ENOMEM;
		free(region->name);
		region->name = name;
	}
	return 0;
}

int pm_regions_find(struct pm_regions *regions, const struct pm_region_spec *specs,
		    size_t len, const struct pm_probe_context *context,
		    struct pm_error *err)
{
	struct pm_regions found = { 0 };
	struct pm_error own = { 0 };
	struct pm_finder finder = { .ret = &found,
				    .context = context,
				    .err = err ? err : &own };
	int ret = 0;

	for (size_t i = 0; i < len && ret == 0; i++) {
		finder.spec = &specs[i];
		ret = find_region_of_name(&finder);
		free(PM_TAKE_PTR(finder.name));
	}
	if (ret == 0)
		ret = pm_finder_define(&finder);
	if (ret == 0)
		ret = note_go(&finder);
	if (ret == 0 && distinguish_instances(&found) < 0)
		ret = pm_finder_no_memory(&finder);
	pm_probe_binaries_release(&finder.programs);
	pm_probe_binaries_release(&finder.needed);
	if (ret == 0) {
		pm_regions_choose(&found);
		pm_regions_release(regions);
		*regions = found;
	} else {
		pm_regions_release(&found);
	}
	return ret;
}

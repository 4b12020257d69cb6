/* SPDX-License-Identifier: MIT */
/*
 * Finds functions by name. The name is first compared literally: with the linker's name,
 * and with the demangled one with or without parameters. C++ names contain `*`, `?` and
 * `[`. Therefore these characters are treated as a glob only if no name matches.
 */
#include "probe-internal.h"

#include <elf.h>
#include <string.h>

#include "pm/proc.h"

enum {
	/* Limits the results of a glob before those at one address are merged. */
	FOUND_MAX = 16 * PM_PROBE_PLACES_MAX,
	IFUNC_NAMES_MAX = 6,
	FEW_IFUNCS = 1024, /* glibc has 120 */
};

struct found {
	uint64_t address, size;
	const char *name; /* borrowed from a table */
	bool is_exact; /* equal to the name typed */
	bool is_global;
};

struct scan {
	const struct pm_probe_search *search;
	struct pm_probe_tables tables;
	struct pm_probe_pattern pattern;
	PM_VEC(struct found) found, labels; /* labels: of no type, as in assembler code */
	PM_VEC(uint64_t) ifuncs; /* their addresses */
	size_t parts, data, undefined;
	enum pm_probe_comparison comparison;
	bool too_many;
};

static void symbol_scan_release(struct scan *scan)
{
	pm_probe_tables_close(&scan->tables);
	pm_probe_pattern_release(&scan->pattern);
	pm_vec_release(&scan->found);
	pm_vec_release(&scan->labels);
	pm_vec_release(&scan->ifuncs);
}

static int scan_take_symbol(struct scan *scan, const struct pm_probe_symbol *symbol)
{
	struct found found = { .address = symbol->address,
			       .size = symbol->size,
			       .name = symbol->name,
			       .is_exact = strcmp(symbol->name,
						  scan->search->spec->place.symbol) == 0,
			       .is_global = symbol->bind != STB_LOCAL };
	enum pm_probe_copy copy;
	uint64_t offset;

	if (!symbol->defined) {
		scan->undefined++;
		return 0;
	}
	if (symbol->type == STT_GNU_IFUNC) {
		for (size_t i = 0; i < scan->ifuncs.len && i < FEW_IFUNCS; i++)
			if (scan->ifuncs.data[i] == symbol->address)
				return 0;
		return pm_vec_push(&scan->ifuncs, symbol->address);
	}
	if (!pm_probe_elf_code(scan->search->elf, symbol->address, &offset) ||
	    (symbol->type != STT_FUNC && symbol->type != STT_NOTYPE)) {
		scan->data += symbol->type == STT_OBJECT;
		return 0;
	}
	pm_probe_base_len(symbol->name, &copy);
	if (copy == PM_PROBE_PART && !found.is_exact && !scan->pattern.names_copy) {
		scan->parts++;
		return 0;
	}
	if (scan->found.len + scan->labels.len >= FOUND_MAX) {
		scan->too_many = true;
		return -E2BIG;
	}
	if (symbol->type == STT_FUNC)
		return pm_vec_push(&scan->found, found);
	return pm_vec_push(&scan->labels, found);
}

static int scan_symbol_names(struct scan *scan, enum pm_probe_comparison comparison)
{
	scan->comparison = comparison;
	pm_vec_clear(&scan->ifuncs);
	scan->parts = scan->data = scan->undefined = 0;
	for (size_t t = 0; t < scan->tables.len; t++) {
		struct pm_probe_table table = scan->tables.table[t];

		for (size_t i = 1; i < table.len; i++) {
			struct pm_probe_symbol symbol;
			int ret;

			if (!pm_probe_table_row(&table, i, &symbol) ||
			    !pm_probe_pattern_matches(&scan->pattern, symbol.name,
						      comparison))
				continue;
			ret = scan_take_symbol(scan, &symbol);
			if (ret < 0 && ret != -E2BIG)
				return ret;
			if (scan->too_many)
				return 0;
		}
	}
	return 0;
}

/* ---- results ----------------------------------------------------------------------------- */

static size_t count_leading_underscores(const char *name)
{
	return strspn(name, "_");
}

/* Sorts by address. If several names have the same address, the best comes first. */
static int compare_found_symbols(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	size_t left, right;

	if (x->address != y->address)
		return PM_COMPARE(x->address, y->address);
	if (x->is_exact != y->is_exact)
		return PM_COMPARE(y->is_exact, x->is_exact);
	if (x->is_global != y->is_global)
		return PM_COMPARE(y->is_global, x->is_global);
	left = count_leading_underscores(x->name);
	right = count_leading_underscores(y->name);
	if (left != right)
		return PM_COMPARE(left, right);
	return strcmp(x->name, y->name);
}

static int check_symbol_offset(const struct scan *scan, const struct found *found,
			       struct pm_error *err)
{
	uint64_t offset = scan->search->spec->place.offset;

	if (offset == 0 || offset < found->size)
		return 0;
	if (found->size == 0)
		return pm_error_set(err, -EINVAL,
				    "the size of %s is not known: +0x%llx could be "
				    "anywhere",
				    found->name, (unsigned long long)offset);
	return pm_error_set(err, -EINVAL,
			    "%s has only 0x%llx bytes: +0x%llx is not in it", found->name,
			    (unsigned long long)found->size, (unsigned long long)offset);
}

static int add_symbol_place(struct scan *scan, const struct found *found,
			    struct pm_probe_places *places, struct pm_error *err)
{
	uint64_t plus = scan->search->spec->place.offset;
	struct pm_probe_place place = { 0 };
	struct pm_str name = { 0 };
	char *pretty;
	int ret = check_symbol_offset(scan, found, err);

	if (ret < 0)
		return ret;
	if (__builtin_add_overflow(found->address, plus, &place.address) ||
	    !pm_probe_elf_code(scan->search->elf, place.address, &place.offset))
		return pm_error_set(err, -EINVAL, "%s+0x%llx is no code", found->name,
				    (unsigned long long)plus);
	/* All instructions have the same length here. */
	if (scan->search->elf->machine == EM_AARCH64 && place.address % 4 != 0)
		return pm_error_set(err, -EINVAL, "no instruction begins at %s+0x%llx",
				    found->name, (unsigned long long)plus);
	pretty = pm_probe_pretty(found->name);
	if (pretty)
		pm_str_puts(&name, pretty);
	free(pretty);
	if (plus > 0)
		pm_str_printf(&name, "+0x%llx", (unsigned long long)plus);
	if (!pretty || name.failed)
		pm_str_release(&name);
	place.name = name.data;
	place.size = found->size;
	place.symbol = strdup(found->name);
	if (pm_probe_places_add(places, place) < 0)
		return pm_error_set(err, -ENOMEM, "no memory left for the places");
	return 0;
}

static int set_too_many_symbols_error(const struct scan *scan, struct pm_error *err)
{
	pm_error_set(err, -E2BIG, "\"%s\" means more than %d functions",
		     scan->search->spec->place.symbol, PM_PROBE_PLACES_MAX);
	pm_error_fix(err, "a narrower glob");
	return -E2BIG;
}

static int add_found_places(struct scan *scan, struct pm_probe_places *places,
			    struct pm_error *err)
{
	struct found *list = scan->found.data;
	size_t len = scan->found.len;
	int ret = 0;

	if (len == 0) {
		list = scan->labels.data;
		len = scan->labels.len;
	}

	qsort(list, len, sizeof(*list), compare_found_symbols);
	for (size_t i = 0; i < len && ret == 0; i++) {
		if (i > 0 && list[i].address == list[i - 1].address)
			continue;
		if (places->list.len >= PM_PROBE_PLACES_MAX)
			return set_too_many_symbols_error(scan, err);
		ret = add_symbol_place(scan, &list[i], places, err);
	}
	return ret;
}

/* ---- reasons for no result ------------------------------------------------------------------ */

/* Whether @name is a variant of @of. glibc names these __NAME_avx2, GCC's target_clones
 * NAME.avx2.0. */
static bool is_compiler_variant(const char *name, const char *of)
{
	size_t len = strlen(of);
	const char *at = name + strspn(name, "_");

	if (strncmp(at, of, len) != 0)
		return false;
	return (at > name && at[len] == '_' && !strstr(at + len, "_ifunc")) ||
	       (at[len] == '.' && strcmp(at + len, ".resolver") != 0);
}

static int set_ifunc_error(struct scan *scan, struct pm_error *err)
{
	const char *symbol = scan->search->spec->place.symbol;
	const char *more = "";
	struct pm_str names = { 0 };
	size_t count = 0;

	for (size_t t = 0; t < scan->tables.len; t++) {
		struct pm_probe_table table = scan->tables.table[t];

		for (size_t i = 1; i < table.len && count <= IFUNC_NAMES_MAX; i++) {
			struct pm_probe_symbol row;

			if (!pm_probe_table_row(&table, i, &row) || !row.defined ||
			    row.type != STT_FUNC ||
			    !is_compiler_variant(row.name, symbol) ||
			    (names.data && strstr(names.data, row.name)))
				continue;
			pm_str_separate(&names, ", ");
			if (count++ < IFUNC_NAMES_MAX)
				pm_str_puts(&names, row.name);
			else
				pm_str_puts(&names, "…");
		}
	}
	if (names.len > 0) {
		more = ", not ";
		if (names.failed)
			pm_str_clear(&names);
	} else if (!scan->tables.has_symtab) {
		more = "; the functions to choose from are not in .dynsym, and .symtab was "
		       "stripped";
	}
	pm_error_set(err, -EINVAL,
		     "%s is chosen by the processor when the program starts (IFUNC): at "
		     "its own address there is only the choice%s%s",
		     symbol, more, pm_str_text(&names));
	if (count > 0)
		pm_error_fix(err, "one of these, or a glob: *%s_*", symbol);
	pm_str_release(&names);
	return -EINVAL;
}

static int set_symbol_not_found_error(struct scan *scan, struct pm_error *err)
{
	const struct pm_probe_search *search = scan->search;
	const char *symbol = search->spec->place.symbol;

	if (scan->ifuncs.len > 0)
		return set_ifunc_error(scan, err);
	/* A function of that name may be in another file. */
	if (scan->data > 0 && search->is_region)
		return pm_error_set(err, -ENOENT, "%s is data, and no code", symbol);
	if (scan->data > 0) {
		pm_error_set(err, -EINVAL, "%s is data, and no code", symbol);
		pm_error_fix(err, "-e mem:%s", symbol);
		return -EINVAL;
	}
	if (scan->parts > 0)
		return pm_error_set(err, -ENOENT,
				    "of %s there are only parts, for it was inlined "
				    "everywhere: %s.part.0 or %s.cold have to be named",
				    symbol, symbol, symbol);
	if (scan->tables.len == 0) {
		pm_error_set(err, -ENODATA,
			     "it has no symbols: stripped, and no separate debug file");
		pm_error_fix(err, "install its debug symbols, or build it without -s");
		return -ENODATA;
	}
	if (scan->undefined > 0) {
		pm_error_set(err, -ENOENT, "%s is not defined here, but in a library",
			     symbol);
		if (search->is_region)
			pm_error_fix(err, "the library's name, as in %s@libc", symbol);
		else
			pm_error_fix(err, "the library's name, as in uprobe:libc:%s",
				     symbol);
		return -ENOENT;
	}
	if (!scan->tables.has_symtab)
		return pm_error_set(err, -ENOENT,
				    "no function \"%s\"; it is stripped: only exported "
				    "functions have names",
				    symbol);
	return pm_error_set(err, -ENOENT, "no function \"%s\"", symbol);
}

static void note_unchecked_places(const struct scan *scan, size_t places)
{
	const struct pm_event_place *asked = &scan->search->spec->place;

	if (asked->offset > 0 && scan->search->elf->machine != EM_AARCH64) {
		pm_str_printf(scan->search->note,
			      "%s: nobody checks that an instruction begins at +0x%llx; "
			      "inside of one, the probe breaks the program",
			      scan->search->spec->requested,
			      (unsigned long long)asked->offset);
		return;
	}
	if (scan->comparison == PM_PROBE_GLOB && scan->ifuncs.len > 0)
		pm_str_printf(scan->search->note,
			      "%s: %zu names are chosen when the program starts (IFUNC) "
			      "and were left out",
			      scan->search->spec->requested, scan->ifuncs.len);
	else if (scan->comparison == PM_PROBE_EQUAL && places > 1)
		pm_str_printf(scan->search->note, "%s means %zu functions",
			      scan->search->spec->requested, places);
}

/* Searches again for the only function whose last part was typed, as if its full name had
 * been typed. For regions, this happens only if libraries have no such function either
 * (meant.c). */
static int find_meant_symbol(struct scan *scan, struct pm_error *err)
{
	PM_CLEANUP(pm_probe_meant_release)
	struct pm_probe_meant meant = {
		.near = { .wanted = scan->search->spec->place.symbol }
	};
	int ret = set_symbol_not_found_error(scan, err);

	if (ret != -ENOENT)
		return ret;
	pm_probe_meant_symbols(&meant, &scan->tables);
	if (!pm_probe_meant_only(&meant)) {
		pm_near_names_tell(&meant.near, err);
		return ret;
	}
	pm_probe_pattern_release(&scan->pattern);
	ret = pm_probe_pattern_init(&scan->pattern, pm_probe_meant_only(&meant));
	if (ret == 0)
		ret = scan_symbol_names(scan, PM_PROBE_EQUAL);
	if (ret < 0)
		return pm_error_set(err, ret, "no memory left for its symbols");
	if (scan->found.len + scan->labels.len > 0)
		return 0;
	return set_symbol_not_found_error(scan, err);
}

static int find_symbol_places(struct scan *scan, struct pm_probe_places *places,
			      struct pm_error *err)
{
	int ret = scan_symbol_names(scan, PM_PROBE_EQUAL);

	if (ret == 0 && scan->found.len + scan->labels.len == 0 &&
	    scan->pattern.is_glob && !scan->too_many)
		ret = scan_symbol_names(scan, PM_PROBE_GLOB);
	if (ret < 0)
		return pm_error_set(err, ret, "no memory left for its symbols");
	if (scan->too_many)
		return set_too_many_symbols_error(scan, err);
	if (scan->pattern.exhausted)
		return pm_error_set(err, -E2BIG,
				    "it has too many C++ or Rust names to compare: "
				    "the mangled one is needed");
	/* If there are other functions, they are versions for old programs, such as
	 * glibc's memcpy. */
	if (scan->comparison == PM_PROBE_EQUAL && scan->ifuncs.len > 0)
		return set_ifunc_error(scan, err);
	if (scan->found.len + scan->labels.len == 0 &&
	    (scan->search->is_region || scan->pattern.is_glob))
		return set_symbol_not_found_error(scan, err);
	if (scan->found.len + scan->labels.len == 0)
		ret = find_meant_symbol(scan, err);
	if (ret < 0)
		return ret;
	ret = add_found_places(scan, places, err);
	if (ret == 0)
		note_unchecked_places(scan, places->list.len);
	return ret;
}

int pm_probe_find_symbols(const struct pm_probe_search *search,
			  struct pm_probe_places *places, struct pm_error *err)
{
	struct scan scan = { .search = search };
	struct pm_probe_elf debug = { .fd = -1 };
	bool has_debug =
		search->debug_fd >= 0 && pm_probe_elf_open(&debug, search->debug_fd) == 0;
	int ret = pm_probe_tables_open(&scan.tables, search->elf,
				       has_debug ? &debug : NULL);

	if (ret < 0)
		ret = pm_error_set(err, ret, "cannot read its symbols: %s",
				   strerror(-ret));
	else if (pm_probe_pattern_init(&scan.pattern, search->spec->place.symbol) < 0)
		ret = pm_error_set(err, -ENOMEM, "no memory left");
	else
		ret = find_symbol_places(&scan, places, err);
	symbol_scan_release(&scan);
	if (has_debug)
		pm_probe_elf_close(&debug);
	return ret;
}

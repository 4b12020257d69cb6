/* SPDX-License-Identifier: MIT */
/*
 * Reads debug information for all wanted addresses at once. Every unit's ranges are read
 * from the unit itself, because the files of clang and rustc have no .debug_aranges.
 * Units that contain a wanted address are read once, others are not read.
 */
#include "dwarf-parts.h"

#include <time.h>

enum {
	/* An address is in a few dozen nested functions at most; twice that number for
	 * each unit that claims the address is generous. */
	CLAIMS_PER_ADDRESS = 1024,
	CLAIMS_FREE = 1 << 20,
	/*
	 * CPU time for one module: the last resort against files that are made to keep
	 * libdw busy (entries with a million attributes, each looked up in turn). A
	 * second is enough for 200 MB of debug information in which every unit is read.
	 */
	MS_FREE = 2000,
	BYTES_PER_MS = 16 << 10,
};

struct resolver {
	struct pm_dwarf *dwarf;
	const struct pm_wanted *wanted;
	const struct pm_symbol_options *options;
	struct pm_texts *texts;
	struct pm_dwarf_answers *answers;
	struct pm_hit *hits;
	uint64_t claims_budget;
	uint32_t units; /* number of units that have been read */
	size_t found; /* number of wanted addresses for which a unit was found */
	struct pm_owned owned; /* addresses of the current unit */
	struct pm_walk *walk;
	uint64_t deadline_ms; /* of this thread's CPU time */
	PM_VEC(Dwarf_Die) rangeless; /* units that do not state their code ranges */
};

static uint64_t used_cpu_ms(void)
{
	struct timespec used = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

static bool is_overdue(const struct resolver *resolver)
{
	return used_cpu_ms() > resolver->deadline_ms;
}

/* ---- units ---------------------------------------------------------------------------- */

/* Reads the same attributes as pm_entries_scan(), from the unit's own entry. */
static bool read_unit_pcs(const struct pm_unit *unit, struct pm_pcs *pcs)
{
	Dwarf_Die die = unit->die;
	Dwarf_Attribute attr;
	Dwarf_Addr low, high;

	*pcs = (struct pm_pcs){ 0 };
	if (dwarf_attr(&die, DW_AT_ranges, &attr)) {
		Dwarf_Word value;

		pcs->ranges_form = (uint16_t)dwarf_whatform(&attr);
		if (pcs->ranges_form == DW_FORM_rnglistx) {
			struct pm_reader reader;
			const uint8_t *end = unit->dies.data + unit->dies.len;

			pm_reader_init(&reader, attr.valp, (size_t)(end - attr.valp));
			pcs->ranges = pm_reader_uleb(&reader);
			return !reader.failed;
		}
		if (dwarf_formudata(&attr, &value) != 0)
			return false;
		pcs->ranges = value;
		return true;
	}
	if (dwarf_lowpc(&die, &low) != 0 || dwarf_highpc(&die, &high) != 0)
		return false;
	pcs->low_form = pcs->high_form = DW_FORM_addr;
	pcs->low = low;
	pcs->high = high;
	return true;
}

struct covering {
	struct resolver *resolver;
	uint32_t number;
	bool any;
};

/* Marks the wanted addresses in a range of a unit as belonging to it, unless another unit
 * came first. */
static int cover_unit_range(void *user, uint64_t start, uint64_t end)
{
	struct covering *covering = user;
	struct resolver *resolver = covering->resolver;
	const struct pm_wanted *wanted = resolver->wanted;

	for (size_t i = pm_wanted_from(wanted, start);
	     i < wanted->len && wanted->addresses[i] < end; i++) {
		if (resolver->claims_budget == 0)
			return -EBADMSG;
		resolver->claims_budget--;
		if (resolver->hits[i].unit == 0) {
			if (pm_vec_push(&resolver->owned.of, i) < 0)
				return -ENOMEM;
			resolver->hits[i].unit = covering->number;
		}
		covering->any = true;
	}
	return 0;
}

/* ---- answers -------------------------------------------------------------------------- */

static void name_node(struct resolver *resolver, struct pm_entries *entries,
		      struct pm_lines *lines, struct pm_node *node)
{
	Dwarf_Die die;

	if (node->is_named || is_overdue(resolver))
		return;
	node->is_named = true;
	node->name = pm_node_name(entries, node, resolver->texts);
	if (node->parent == PM_NODE_NONE || !lines ||
	    !dwarf_offdie(resolver->dwarf->dwarf, node->offset, &die))
		return;
	node->call_file = pm_lines_path(
		lines, pm_form_attribute(&die, DW_AT_call_file, 0), resolver->texts);
	uint64_t line = pm_form_attribute(&die, DW_AT_call_line, 0);

	if (line <= UINT32_MAX)
		node->call_line = (uint32_t)line;
	else
		node->call_line = 0;
}

static int resolve_one_address(struct resolver *resolver, struct pm_entries *entries,
			       struct pm_lines *lines, size_t index)
{
	const struct pm_hit *hit = &resolver->hits[index];
	struct pm_dwarf_answer *answer = &resolver->answers->of[index];
	bool has_node = hit->has_node && hit->unit == entries->number;

	if (lines && hit->has_line) {
		/* If the row starts before the innermost function does, its line belongs
		 * to another function. */
		bool is_strange = hit->is_borrowed && has_node && hit->row < hit->low;

		answer->file = pm_lines_path(lines, hit->file, resolver->texts);
		answer->line = answer->file && !is_strange ? hit->line : 0;
	}
	if (!has_node)
		return 0;
	struct pm_symbol_function at = { .file = answer->file, .line = answer->line };
	uint32_t id = hit->node;

	answer->first = resolver->answers->functions.len;
	while (id != PM_NODE_NONE) {
		struct pm_node *node = &entries->nodes.data[id];

		name_node(resolver, entries, lines, node);
		at.name = node->name;
		if (pm_vec_push(&resolver->answers->functions, at) < 0)
			return -ENOMEM;
		answer->len++;
		answer->entry = node->entry;
		at.file = node->call_file;
		at.line = node->call_file ? node->call_line : 0;
		id = node->parent;
	}
	return 0;
}

/* Reads a unit whose wanted addresses have been marked with its number. */
static int resolve_unit_addresses(struct resolver *resolver, const struct pm_unit *unit,
				  uint32_t number)
{
	struct pm_entries entries = {
		.dwarf = resolver->dwarf,
		.walk = resolver->walk,
		.unit = unit,
		.wanted = resolver->wanted,
		.hits = resolver->hits,
		.number = number,
		.owned = &resolver->owned,
		.claims_budget = &resolver->claims_budget,
	};
	struct pm_lines lines;
	bool has_lines;
	int ret = pm_entries_scan(&entries);

	has_lines = ret == 0 && resolver->owned.of.len > 0 &&
		    pm_lines_open(&lines, resolver->dwarf, unit) == 0;
	if (has_lines)
		entries.lines = &lines;
	if (has_lines && resolver->options->lines)
		pm_lines_run(&lines, resolver->wanted, resolver->hits, number);
	for (size_t i = 0;
	     ret == 0 && i < resolver->owned.of.len && !is_overdue(resolver); i++) {
		struct pm_hit *hit = &resolver->hits[resolver->owned.of.data[i]];

		resolver->found += !hit->is_counted;
		hit->is_counted = true;
		ret = resolve_one_address(resolver, &entries,
					  resolver->options->lines ? entries.lines : NULL,
					  resolver->owned.of.data[i]);
	}
	if (has_lines)
		pm_lines_release(&lines);
	pm_entries_release(&entries);
	pm_vec_clear(&resolver->owned.of);
	return ret;
}

static int resolve_unit_if_covered(struct resolver *resolver, Dwarf_Die *die,
				   unsigned int version)
{
	struct covering covering = { resolver, resolver->units + 1, false };
	struct pm_unit unit;
	struct pm_pcs pcs;
	int ranges = 0;

	if (pm_unit_init(&unit, resolver->dwarf, die, version) < 0)
		return 0;
	if (read_unit_pcs(&unit, &pcs))
		ranges = pm_pcs_each(resolver->dwarf, &unit, &pcs, cover_unit_range,
				     &covering);
	if (ranges == -ENOMEM)
		return ranges;
	if (ranges == 0)
		return pm_vec_push(&resolver->rangeless, *die);
	if (!covering.any)
		return 0;
	resolver->units++;
	return resolve_unit_addresses(resolver, &unit, covering.number);
}

/* Reads the units without ranges, which contain only data and types, or whose compiler
 * has omitted the ranges. */
static int resolve_rangeless_units(struct resolver *resolver)
{
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < resolver->rangeless.len; i++) {
		Dwarf_Half version = 0;
		struct pm_unit unit;

		if (resolver->found >= resolver->wanted->len || is_overdue(resolver))
			break;
		if (dwarf_cu_info(resolver->rangeless.data[i].cu, &version, NULL, NULL,
				  NULL, NULL, NULL, NULL) != 0 ||
		    pm_unit_init(&unit, resolver->dwarf, &resolver->rangeless.data[i],
				 version) < 0)
			continue;
		ret = resolve_unit_addresses(resolver, &unit, ++resolver->units);
	}
	return ret;
}

static int resolve_all_units(struct resolver *resolver)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die;
	int ret = 0;

	/* Split units are not requested, because libdw would open the paths that the file
	 * names. */
	while (ret == 0 && !is_overdue(resolver) &&
	       dwarf_get_units(resolver->dwarf->dwarf, cu, &cu, &version, &type, &die,
			       NULL) == 0) {
		int tag = dwarf_tag(&die);

		if ((type == DW_UT_compile && tag == DW_TAG_compile_unit) ||
		    type == DW_UT_skeleton)
			ret = resolve_unit_if_covered(resolver, &die, version);
	}
	if (ret != 0)
		return ret;
	return resolve_rangeless_units(resolver);
}

int pm_dwarf_load(const struct pm_elf_image *image, const struct pm_elf_image *debug,
		  const struct pm_symbol_options *options, struct pm_dwarf **out)
{
	struct pm_dwarf *dwarf = malloc(sizeof(*dwarf));
	int ret = -ENOMEM;

	if (dwarf)
		ret = pm_dwarf_open(dwarf, image, debug, options);

	if (ret < 0 && ret != -ENOENT) {
		free(dwarf);
		return ret;
	}
	*out = dwarf;
	return 0;
}

/* libdw caches everything that it has read from a unit, including its abbreviations. */
void pm_dwarf_read_ahead(struct pm_dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die;

	while (dwarf->dwarf &&
	       dwarf_get_units(dwarf->dwarf, cu, &cu, &version, &type, &die, NULL) == 0) {
		struct pm_unit unit;
		struct pm_pcs pcs;

		if (pm_unit_init(&unit, dwarf, &die, version) == 0)
			(void)read_unit_pcs(&unit, &pcs);
	}
}

void pm_dwarf_free(struct pm_dwarf *dwarf)
{
	if (dwarf)
		pm_dwarf_close(dwarf);
	free(dwarf);
}

int pm_dwarf_resolve(struct pm_dwarf *dwarf, const struct pm_wanted *wanted,
		     const struct pm_symbol_options *options, struct pm_texts *texts,
		     struct pm_dwarf_answers *answers)
{
	PM_AUTO_FREE struct pm_hit *hits = NULL;
	struct resolver resolver = {
		.dwarf = dwarf,
		.wanted = wanted,
		.options = options,
		.texts = texts,
		.answers = answers,
		.claims_budget = CLAIMS_FREE + CLAIMS_PER_ADDRESS * (uint64_t)wanted->len,
	};
	int ret;

	answers->limited = dwarf->limited;
	if (!dwarf->dwarf)
		return 0;
	resolver.hits = hits = calloc(wanted->len + 1, sizeof(*hits));
	if (!hits)
		return -ENOMEM;
	resolver.deadline_ms = used_cpu_ms() + MS_FREE +
			       (dwarf->info.len + dwarf->line.len) / BYTES_PER_MS;
	resolver.walk = pm_walk_new();
	if (resolver.walk)
		ret = resolve_all_units(&resolver);
	else
		ret = -ENOMEM;
	answers->limited |= is_overdue(&resolver);
	pm_walk_free(resolver.walk);
	pm_vec_release(&resolver.rangeless);
	pm_vec_release(&resolver.owned.of);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

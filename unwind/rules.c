/* SPDX-License-Identifier: MIT */
/* Turns rows into interned rules, and caches them by address. */
#include "unwind-parts.h"

#include <string.h>

enum {
	/* Only crafted CFI has more: 64 MB of real CFI need a few thousand rules, and
	 * barely a hundred rows that are not rules. */
	RULES_MAX = 1 << 18,
	ROWS_MAX = 1 << 14,
};

static bool find_plain_slot(const struct pm_unw_arch_info *arch,
			    const struct pm_unw_reg_rule *rule, int16_t *out)
{
	int64_t slot = rule->value / arch->word_bytes;

	if (rule->kind != PM_UNW_RULE_OFFSET || rule->value % arch->word_bytes != 0 ||
	    slot < INT16_MIN || slot > INT16_MAX)
		return false;
	*out = (int16_t)slot;
	return true;
}

/* Whether @row can be expressed as a rule; @out is then that rule. */
static bool reduce_row_to_rule(const struct pm_unw_arch_info *arch,
			       const struct pm_unw_row *row, struct pm_unw_rule *out)
{
	struct pm_unw_rule rule;
	uint64_t handled = 0;

	memset(&rule, 0, sizeof(rule));
	if (row->cfa_is_expr || row->ra_reg != arch->ra || row->cfa_offset < INT32_MIN ||
	    row->cfa_offset > INT32_MAX)
		return false;
	rule.cfa_reg = (uint8_t)row->cfa_reg;
	rule.cfa_offset = (int32_t)row->cfa_offset;
	rule.signal = row->signal != 0;
	rule.saved = row->ra_signed ? PM_UNW_RULE_RA_SIGNED : 0;
	for (size_t i = 0; i < arch->saved_len; i++) {
		const struct pm_unw_reg_rule *reg = &row->regs[arch->saved[i]];

		handled |= (uint64_t)1 << arch->saved[i];
		if (find_plain_slot(arch, reg, &rule.slot[i]))
			rule.saved |= (uint16_t)(1u << i);
		else if ((reg->kind != PM_UNW_RULE_UNSPECIFIED &&
			  reg->kind != PM_UNW_RULE_SAME) ||
			 (arch->saved[i] == arch->ra && !arch->ra_is_link))
			return false;
	}
	for (uint32_t i = 0; i < arch->regs; i++)
		if (!(handled >> i & 1) && row->regs[i].kind != PM_UNW_RULE_UNSPECIFIED &&
		    (row->regs[i].kind != PM_UNW_RULE_UNDEFINED || i == arch->sp))
			return false;
	*out = rule;
	return true;
}

static bool is_rule_equal(const void *table, uint32_t id, const void *key)
{
	return memcmp((const struct pm_unw_rule *)table + id, key,
		      sizeof(struct pm_unw_rule)) == 0;
}

static bool is_row_equal(const void *table, uint32_t id, const void *key)
{
	return memcmp((const struct pm_unw_row *)table + id, key,
		      sizeof(struct pm_unw_row)) == 0;
}

/* Finds the entry of @table that equals @key. Sets @out to its index, or to @len if the
 * caller has to append @key. */
static bool intern_entry(struct pm_index *index, pm_index_equal_fn equal,
			 const void *table, size_t len, const void *key, size_t key_bytes,
			 uint32_t *out)
{
	uint64_t hash = pm_hash_bytes(key, key_bytes);

	*out = pm_index_find(index, hash, equal, table, key);
	if (*out != PM_INDEX_NONE)
		return true;
	*out = (uint32_t)len;
	return pm_index_add(index, hash, *out) == 0;
}

static bool intern_rule(struct pm_unwinder *unwinder, const struct pm_unw_rule *rule,
			uint32_t *out)
{
	size_t len = unwinder->rules.len;

	if (pm_vec_reserve(&unwinder->rules, len + 1) != 0 ||
	    !intern_entry(&unwinder->rules_index, is_rule_equal, unwinder->rules.data,
			  len, rule, sizeof(*rule), out))
		return false;
	if (*out == len)
		memcpy(&unwinder->rules.data[unwinder->rules.len++], rule, sizeof(*rule));
	return true;
}

static bool intern_row(struct pm_unwinder *unwinder, const struct pm_unw_row *row,
		       uint32_t *out)
{
	size_t len = unwinder->rows.len;

	if (pm_vec_reserve(&unwinder->rows, len + 1) != 0 ||
	    !intern_entry(&unwinder->rows_index, is_row_equal, unwinder->rows.data, len,
			  row, sizeof(*row), out))
		return false;
	if (*out == len)
		memcpy(&unwinder->rows.data[unwinder->rows.len++], row, sizeof(*row));
	return true;
}

/* Clears all tables if the target's CFI would exhaust memory. */
static void limit_rule_tables(struct pm_unwinder *unwinder)
{
	if (unwinder->rules.len < RULES_MAX && unwinder->rows.len < ROWS_MAX)
		return;
	pm_vec_clear(&unwinder->rules);
	pm_vec_clear(&unwinder->rows);
	pm_index_release(&unwinder->rules_index);
	pm_index_release(&unwinder->rows_index);
	memset(unwinder->cache, 0, PM_UNW_CACHE_SETS * sizeof(*unwinder->cache));
}

/* Returns the x86-64 @rule in one word, or 0 if it does not fit. */
static uint32_t make_quick_rule(const struct pm_unw_rule *rule)
{
	enum {
		FP_SLOT = 1, /* index in the architecture's order */
		RA_SLOT = 6
	};
	int32_t words = rule->cfa_offset / 8;
	uint32_t slot = 1, quick = PM_UNW_QUICK_VALID;

	if (rule->signal || rule->slot[RA_SLOT] != -1 || rule->cfa_offset % 8 != 0 ||
	    words > PM_UNW_QUICK_CFA_MAX || words < -PM_UNW_QUICK_CFA_MAX)
		return 0;
	if (rule->saved >> FP_SLOT & 1) {
		if (rule->slot[FP_SLOT] > -2 ||
		    rule->slot[FP_SLOT] < -PM_UNW_QUICK_SLOT_MAX)
			return 0;
		slot = (uint32_t)-rule->slot[FP_SLOT];
	}
	if (rule->saved & PM_UNW_RULE_GO)
		quick |= 1u << PM_UNW_QUICK_GO_SHIFT;
	/* If Go's table counts from rbp, that may point to another stack;
	 * step_by_lookup() checks this. */
	if (rule->cfa_reg == PM_UNW_X86_64_RBP && !(rule->saved & PM_UNW_RULE_GO))
		quick |= PM_UNW_QUICK_BY_FP;
	else if (rule->cfa_reg != PM_UNW_X86_64_RSP)
		return 0;
	return quick | slot << PM_UNW_QUICK_SLOT_SHIFT |
	       (uint32_t)words << PM_UNW_QUICK_CFA_SHIFT;
}

static bool keep_rule_in_slot(struct pm_unwinder *unwinder,
			      const struct pm_unw_module *module,
			      const struct pm_unw_rule *rule, struct pm_unw_lookup *out)
{
	if (!intern_rule(unwinder, rule, &out->index))
		return false;
	out->found = PM_UNW_FOUND_RULE;
	if (module->arch == PM_UNW_X86_64 && !out->is_last)
		out->quick = make_quick_rule(rule);
	return true;
}

static void set_no_cfi_reason(struct pm_unw_module *module, uint64_t svma,
			      struct pm_unw_lookup *out)
{
	out->found = PM_UNW_FOUND_NO_CFI;
	if (pm_unw_is_near_trampoline(module, svma))
		out->index = 0;
	else
		out->index = PM_UNW_OFF_TRAMPOLINE;
}

/* Decodes a row of Go's table. Returns 0; -ENOENT: the table has no row for @svma; other
 * errors: unknown for now. */
static int decode_go_row(struct pm_unwinder *unwinder, struct pm_unw_module *module,
			 uint64_t svma, struct pm_unw_lookup *out)
{
	struct pm_unw_rule rule;
	int ret = pm_unw_go_decode(module, svma, unwinder->work_left, &out->found, &rule);

	if (ret == 0 && out->found == PM_UNW_FOUND_RULE &&
	    !keep_rule_in_slot(unwinder, module, &rule, out))
		return -ENOMEM;
	if (ret == 0 && out->found == PM_UNW_FOUND_NO_CFI)
		set_no_cfi_reason(module, svma, out);
	return ret;
}

/* Decodes the rule of @svma. Returns false if it is unknown for now, because memory or
 * the chain's work has run out. */
static bool decode_lookup(struct pm_unwinder *unwinder, struct pm_unw_module *module,
			  uint64_t svma, struct pm_unw_lookup *out)
{
	const struct pm_unw_arch_info *arch = &pm_unw_arch_infos[module->arch];
	struct pm_unw_fde fde;
	struct pm_unw_row row;
	struct pm_unw_rule rule;
	int ret;

	*out = (struct pm_unw_lookup){ .found = PM_UNW_FOUND_BAD_CFI };
	pm_unw_take_work(unwinder->work_left, PM_UNW_COST_LOOKUP);
	ret = decode_go_row(unwinder, module, svma, out);
	if (ret == -EINPROGRESS)
		out->found = PM_UNW_FOUND_PENDING;
	if (ret != -ENOENT)
		return ret == 0 || ret == -EINPROGRESS;
	ret = pm_unw_fde_find(module, svma, &fde);
	if (ret == -EINPROGRESS || ret == -EFBIG) {
		if (ret == -EFBIG)
			out->found = PM_UNW_FOUND_TOO_LARGE;
		else
			out->found = PM_UNW_FOUND_PENDING;
		return true;
	}
	/* The search for an FDE may have found Go's table. */
	if (ret == -ENOENT && module->go) {
		ret = decode_go_row(unwinder, module, svma, out);
		if (ret != -ENOENT)
			return ret == 0;
	}
	if (ret == -ENOENT) {
		set_no_cfi_reason(module, svma, out);
		return true;
	}
	if (ret == 0)
		ret = pm_unw_cfi_row_within(&fde, svma, unwinder->work_left, &row);
	if (ret == 0)
		ret = pm_unw_row_count_pair(module, &fde, svma, unwinder->work_left,
					    &row);
	if (ret != 0)
		return ret == -EBADMSG;
	pm_unw_row_keep_popped(arch, &row);
	out->is_last = fde.end == svma + 1 && !pm_unw_ends_with_call(module, svma);
	if (row.regs[row.ra_reg].kind == PM_UNW_RULE_UNDEFINED) {
		out->found = PM_UNW_FOUND_ROOT;
		return true;
	}
	if (reduce_row_to_rule(arch, &row, &rule))
		return keep_rule_in_slot(unwinder, module, &rule, out);
	if (!intern_row(unwinder, &row, &out->index))
		return false;
	out->found = PM_UNW_FOUND_ROW;
	return true;
}

struct pm_unw_cache_slot *pm_unw_rule_slot(const struct pm_unwinder *unwinder,
					   const struct pm_unw_module *module,
					   uint64_t svma, bool make)
{
	struct pm_unw_cache_slot *set;
	uint64_t key;

	if (!pm_unw_has_keys(module, svma, 1))
		return NULL;
	key = pm_unw_key_base(module) + svma;
	set = pm_unw_cache_set(unwinder, key);
	if (set[0].key == key)
		return &set[0];
	if (set[1].key == key)
		return &set[1];
	if (!make)
		return NULL;
	set[1] = set[0];
	set[0] = (struct pm_unw_cache_slot){ .key = key, .found = PM_UNW_FOUND_NOT_YET };
	return &set[0];
}

/* Returns the slot only if its rule has been looked up. */
static const struct pm_unw_cache_slot *find_filled_slot(
	const struct pm_unwinder *unwinder, const struct pm_unw_module *module,
	uint64_t svma)
{
	const struct pm_unw_cache_slot *slot =
		pm_unw_rule_slot(unwinder, module, svma, false);

	if (slot && slot->found != PM_UNW_FOUND_NOT_YET)
		return slot;
	return NULL;
}

static struct pm_unw_lookup make_lookup_from_slot(const struct pm_unw_cache_slot *slot)
{
	return (struct pm_unw_lookup){ .found = (enum pm_unw_found)slot->found,
				       .index = slot->index,
				       .is_last = slot->is_last,
				       .quick = slot->quick };
}

static struct pm_unw_lookup decode_and_keep_lookup(struct pm_unwinder *unwinder,
						   struct pm_unw_module *module,
						   uint64_t svma)
{
	struct pm_unw_cache_slot *slot;
	struct pm_unw_lookup lookup;

	if (!decode_lookup(unwinder, module, svma, &lookup)) {
		lookup.found = PM_UNW_FOUND_BAD_CFI;
		return lookup;
	}
	if (lookup.found == PM_UNW_FOUND_PENDING)
		return lookup;
	/* Look up the slot only now: the module may have received a new id. */
	slot = pm_unw_rule_slot(unwinder, module, svma, true);
	if (slot) {
		slot->found = lookup.found & 7;
		slot->index = lookup.index & 0x1ffffff;
		slot->is_last = lookup.is_last;
		slot->quick = lookup.quick;
	}
	return lookup;
}

struct pm_unw_lookup pm_unw_rule_find(struct pm_unwinder *unwinder,
				      struct pm_unw_module *module, uint64_t svma)
{
	const struct pm_unw_cache_slot *slot = find_filled_slot(unwinder, module, svma);

	if (slot) {
		unwinder->stats.cache_hits++;
		return make_lookup_from_slot(slot);
	}
	unwinder->stats.cache_misses++;
	limit_rule_tables(unwinder);
	return decode_and_keep_lookup(unwinder, module, svma);
}

struct pm_unw_lookup pm_unw_rule_again(struct pm_unwinder *unwinder,
				       struct pm_unw_module *module, uint64_t svma)
{
	const struct pm_unw_cache_slot *slot = find_filled_slot(unwinder, module, svma);

	if (slot)
		return make_lookup_from_slot(slot);
	return decode_and_keep_lookup(unwinder, module, svma);
}

enum pm_unw_exit pm_unw_exit_find(const struct pm_unw_state *state,
				  struct pm_unw_row *out)
{
	struct pm_unwinder *unwinder = state->unwinder;
	const struct pm_unw_map *map = state->map;
	/* The slot keeps 1 + the kind; for a row, 1 + PM_UNW_EXIT_BY_ROW + its index. */
	struct pm_unw_cache_slot *slot = NULL;
	enum pm_unw_exit exit;
	uint32_t kept = 0;

	if (map->module)
		slot = pm_unw_rule_slot(unwinder, map->module, state->lookup - map->bias,
					false);
	if (slot && slot->found == PM_UNW_FOUND_NO_CFI)
		kept = slot->index >> PM_UNW_EXIT_SHIFT;
	else
		slot = NULL;
	if (kept > PM_UNW_EXIT_BY_ROW) {
		*out = unwinder->rows.data[kept - 1 - PM_UNW_EXIT_BY_ROW];
		return PM_UNW_EXIT_BY_ROW;
	}
	if (kept > 0)
		return (enum pm_unw_exit)(kept - 1);
	exit = pm_unw_x86_find_exit(state->space, state->regs.value[state->arch->pc],
				    state->work_left, out);
	kept = 0;
	if (slot && (exit != PM_UNW_EXIT_BY_ROW || intern_row(unwinder, out, &kept)))
		slot->index |= (1 + exit + kept) << PM_UNW_EXIT_SHIFT & 0x1ffffff;
	return exit;
}

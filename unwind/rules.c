/* SPDX-License-Identifier: MIT */
/* From rows to interned rules, and the cache that finds them again. */
#include "unwind-internal.h"

#include <string.h>

enum {
	/* Beyond that somebody makes them up: 64 MB of CFI hold some thousand rules, and
	 * rows that are no rules hardly a hundred. */
	RULES_MAX = 1 << 18,
	ROWS_MAX = 1 << 14,
};

static bool plain_slot(const struct pm_unw_arch_info *arch,
		       const struct pm_unw_reg_rule *rule, int16_t *ret)
{
	int64_t slot = rule->value / arch->word_bytes;

	if (rule->kind != PM_UNW_RULE_OFFSET || rule->value % arch->word_bytes != 0 ||
	    slot < INT16_MIN || slot > INT16_MAX)
		return false;
	*ret = (int16_t)slot;
	return true;
}

/* Whether @row says no more than a rule can hold; then @ret is that rule. */
static bool reduce(const struct pm_unw_arch_info *arch, const struct pm_unw_row *row,
		   struct pm_unw_rule *ret)
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
		if (plain_slot(arch, reg, &rule.slot[i]))
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
	*ret = rule;
	return true;
}

static bool equal_rule(const void *table, uint32_t id, const void *key)
{
	return memcmp((const struct pm_unw_rule *)table + id, key,
		      sizeof(struct pm_unw_rule)) == 0;
}

static bool equal_row(const void *table, uint32_t id, const void *key)
{
	return memcmp((const struct pm_unw_row *)table + id, key,
		      sizeof(struct pm_unw_row)) == 0;
}

static bool intern_rule(struct pm_unwinder *unwinder, const struct pm_unw_rule *rule,
			uint32_t *ret)
{
	uint64_t hash = pm_hash_bytes(rule, sizeof(*rule));
	uint32_t id = pm_index_find(&unwinder->rules_index, hash, equal_rule,
				    unwinder->rules.data, rule);

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)unwinder->rules.len;
		if (pm_vec_reserve(&unwinder->rules, unwinder->rules.len + 1) != 0 ||
		    pm_index_add(&unwinder->rules_index, hash, id) != 0)
			return false;
		memcpy(&unwinder->rules.data[unwinder->rules.len++], rule, sizeof(*rule));
	}
	*ret = id;
	return true;
}

static bool intern_row(struct pm_unwinder *unwinder, const struct pm_unw_row *row,
		       uint32_t *ret)
{
	uint64_t hash = pm_hash_bytes(row, sizeof(*row));
	uint32_t id = pm_index_find(&unwinder->rows_index, hash, equal_row,
				    unwinder->rows.data, row);

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)unwinder->rows.len;
		if (pm_vec_reserve(&unwinder->rows, unwinder->rows.len + 1) != 0 ||
		    pm_index_add(&unwinder->rows_index, hash, id) != 0)
			return false;
		memcpy(&unwinder->rows.data[unwinder->rows.len++], row, sizeof(*row));
	}
	*ret = id;
	return true;
}

/* Starts over, when a target's CFI is made to use up our memory. */
static void limit_tables(struct pm_unwinder *unwinder)
{
	if (unwinder->rules.len < RULES_MAX && unwinder->rows.len < ROWS_MAX)
		return;
	pm_vec_clear(&unwinder->rules);
	pm_vec_clear(&unwinder->rows);
	pm_index_release(&unwinder->rules_index);
	pm_index_release(&unwinder->rows_index);
	memset(unwinder->cache, 0, PM_UNW_CACHE_SETS * sizeof(*unwinder->cache));
}

static struct pm_unw_lookup decode(struct pm_unwinder *unwinder,
				   struct pm_unw_module *module, uint64_t svma)
{
	struct pm_unw_lookup bad = { .found = PM_UNW_FOUND_BAD_CFI };
	struct pm_unw_lookup lookup = { .found = PM_UNW_FOUND_RULE };
	const struct pm_unw_arch_info *arch = &pm_unw_arch_infos[module->arch];
	struct pm_unw_fde fde;
	struct pm_unw_row row;
	struct pm_unw_rule rule;
	int rc = pm_unw_fde_find(module, svma, &fde);

	if (rc == -ENOENT)
		return (struct pm_unw_lookup){ .found = PM_UNW_FOUND_NO_CFI };
	if (rc != 0 || pm_unw_cfi_row(&fde, svma, &row) != 0)
		return bad;
	pm_unw_row_keep_popped(arch, &row);
	if (row.regs[row.ra_reg].kind == PM_UNW_RULE_UNDEFINED)
		return (struct pm_unw_lookup){ .found = PM_UNW_FOUND_ROOT };
	if (reduce(arch, &row, &rule))
		return intern_rule(unwinder, &rule, &lookup.index) ? lookup : bad;
	lookup.found = PM_UNW_FOUND_ROW;
	return intern_row(unwinder, &row, &lookup.index) ? lookup : bad;
}

/* @rule of x86-64 in one word, or 0. */
static uint32_t to_quick(const struct pm_unw_rule *rule)
{
	enum {
		FP_SLOT = 1, /* of the architecture's order */
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
	if (rule->cfa_reg == PM_UNW_X86_64_RBP)
		quick |= PM_UNW_QUICK_BY_FP;
	else if (rule->cfa_reg != PM_UNW_X86_64_RSP)
		return 0;
	return quick | slot << PM_UNW_QUICK_SLOT_SHIFT |
	       (uint32_t)words << PM_UNW_QUICK_CFA_SHIFT;
}

struct pm_unw_lookup pm_unw_rule_find(struct pm_unwinder *unwinder,
				      struct pm_unw_module *module, uint64_t svma)
{
	uint64_t base = pm_unw_key_base(module), key = base | svma;
	bool cached = base != 0 && svma >> PM_UNW_KEY_SVMA_BITS == 0;
	struct pm_unw_cache_slot *set = pm_unw_cache_set(unwinder, key);
	struct pm_unw_lookup lookup;

	for (size_t i = 0; cached && i < 2; i++)
		if (set[i].key == key) {
			unwinder->stats.cache_hits++;
			return (struct pm_unw_lookup){ set[i].lookup & 7,
						       set[i].lookup >> 3, set[i].quick };
		}
	unwinder->stats.cache_misses++;
	limit_tables(unwinder);
	lookup = decode(unwinder, module, svma);
	if (lookup.found == PM_UNW_FOUND_RULE && module->arch == PM_UNW_X86_64)
		lookup.quick = to_quick(&unwinder->rules.data[lookup.index]);
	if (!cached)
		return lookup;
	set[1] = set[0];
	set[0] = (struct pm_unw_cache_slot){ .key = key,
					     .lookup = lookup.index << 3 | lookup.found,
					     .quick = lookup.quick };
	return lookup;
}

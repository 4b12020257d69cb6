/* SPDX-License-Identifier: MIT */
/* Finds which functions and ranges of many documents are the same. */
#include "compare-internal.h"

#include <string.h>

void pm_scope_groups_release(struct pm_scope_groups *groups)
{
	for (size_t i = 0; i < groups->list.len; i++)
		pm_vec_release(&groups->list.data[i].members);
	pm_vec_release(&groups->list);
}

bool pm_side_counts(const struct pm_side *side, const struct pm_stat_run *run)
{
	return run->variant == side->variant &&
	       (!side->ended || pm_stat_run_ended_well(run));
}

/* ---- keys --------------------------------------------------------------------------- */

/* Identifies a scope. */
struct key {
	const struct pm_stat_scope *scope;
	const char *
		module; /* "" for the program that was run, whatever its file is called */
	size_t module_len;
	size_t name_len;
	bool any_kind; /* do not distinguish functions and inlined functions */
	bool details; /* also distinguish by symbol and file, because several have the
	               * same name */
};

static struct key scope_key_of_member(const struct pm_side *side,
				      const struct pm_scope_member *member)
{
	const struct pm_stat *doc = side->docs[member->doc];
	const struct pm_stat_scope *scope = &doc->scopes.data[member->scope];
	struct key key = { .scope = scope, .name_len = strlen(scope->name) };

	key.module = pm_module_name(scope->module, &key.module_len);
	if (side->variant < doc->subjects.len &&
	    doc->subjects.data[side->variant].argv.len > 0) {
		size_t len;
		const char *program = pm_module_name(
			doc->subjects.data[side->variant].argv.data[0], &len);

		if (len == key.module_len && memcmp(program, key.module, len) == 0)
			key.module_len = 0;
	}
	return key;
}

static bool is_same_scope_text(const char *a, const char *b)
{
	if (a && b)
		return strcmp(a, b) == 0;
	return a == b;
}

static bool same_file(const char *a, const char *b)
{
	size_t a_len, b_len;

	if (!a || !b)
		return a == b;
	a = pm_module_name(a, &a_len);
	b = pm_module_name(b, &b_len);
	return a_len == b_len && memcmp(a, b, a_len) == 0;
}

static bool same_key(const struct key *a, const struct key *b)
{
	return (a->any_kind || a->scope->kind == b->scope->kind) &&
	       a->name_len == b->name_len && a->module_len == b->module_len &&
	       memcmp(a->scope->name, b->scope->name, a->name_len) == 0 &&
	       memcmp(a->module, b->module, a->module_len) == 0 &&
	       (!a->details || (is_same_scope_text(a->scope->symbol, b->scope->symbol) &&
				same_file(a->scope->file, b->scope->file)));
}

static uint64_t hash_of(const struct key *key)
{
	const char *symbol = key->details ? key->scope->symbol : NULL;

	return pm_hash_mix(pm_hash_bytes(key->scope->name, key->name_len),
			   symbol ? pm_hash_bytes(symbol, strlen(symbol)) : 0);
}

/* ---- groups ------------------------------------------------------------------------- */

struct finder {
	const struct pm_side *sides;
	struct pm_scope_groups *groups;
	struct pm_index index;
	bool details;
};

static bool is_group_of(const void *table, uint32_t id, const void *wanted)
{
	const struct finder *finder = table;
	const struct pm_scope_member *first =
		&finder->groups->list.data[id].members.data[0];
	struct key key = scope_key_of_member(&finder->sides[first->side], first);

	key.details = finder->details;
	return same_key(&key, wanted);
}

static int add_member_to_group(struct finder *finder,
			       const struct pm_scope_member *member)
{
	struct key key = scope_key_of_member(&finder->sides[member->side], member);
	struct pm_scope_group *group;
	uint64_t hash;
	uint32_t id;

	key.details = finder->details;
	hash = hash_of(&key);
	id = pm_index_find(&finder->index, hash, is_group_of, finder, &key);
	if (id == PM_INDEX_NONE) {
		id = (uint32_t)finder->groups->list.len;
		if (pm_vec_push(&finder->groups->list, (struct pm_scope_group){ 0 }) <
			    0 ||
		    pm_index_add(&finder->index, hash, id) < 0)
			return -ENOMEM;
	}
	group = &finder->groups->list.data[id];
	if (!group->of[member->side])
		group->of[member->side] = key.scope;
	return pm_vec_push(&group->members, *member);
}

/* Whether this is one of many places where a function was inlined. The document also has
 * their sum, and the other side would not have a place with this name. */
static bool is_part(const struct pm_stat_scope *scope)
{
	return scope->kind == PM_STAT_INLINED && scope->places > 1 &&
	       scope->high > scope->low;
}

static int add_all(struct finder *finder)
{
	for (uint32_t side = 0; side < PM_SIDES; side++) {
		const struct pm_side *of = &finder->sides[side];

		for (uint32_t doc = 0; doc < of->len; doc++) {
			const struct pm_stat *stat = of->docs[doc];

			for (uint32_t i = 0; i < stat->scopes.len; i++) {
				const struct pm_stat_scope *scope = &stat->scopes.data[i];
				struct pm_scope_member member = { side, doc, i };

				if (!is_part(scope) &&
				    pm_side_counts(of, &stat->runs.data[scope->run]) &&
				    add_member_to_group(finder, &member) < 0)
					return -ENOMEM;
			}
		}
	}
	return 0;
}

static uint32_t run_of_member(const struct finder *finder,
			      const struct pm_scope_member *member)
{
	return finder->sides[member->side]
		.docs[member->doc]
		->scopes.data[member->scope]
		.run;
}

static bool in_one_run(const struct finder *finder, const struct pm_scope_member *a,
		       const struct pm_scope_member *b)
{
	return a->side == b->side && a->doc == b->doc &&
	       run_of_member(finder, a) == run_of_member(finder, b);
}

/* Marks groups with several scopes of one run. Documents list scopes run by run: two of
 * the same run are adjacent. */
static void mark_repeated(const struct finder *finder, size_t from)
{
	for (size_t i = from; i < finder->groups->list.len; i++) {
		struct pm_scope_group *group = &finder->groups->list.data[i];

		for (size_t j = 1; j < group->members.len && !group->repeated; j++)
			group->repeated = in_one_run(finder, &group->members.data[j - 1],
						     &group->members.data[j]);
	}
}

/* Divides groups that have several scopes in one run: symbol and file may distinguish
 * them. */
static int divide_groups(struct finder *finder)
{
	size_t len = finder->groups->list.len, kept = 0;

	if (len == 0)
		return 0;
	finder->details = true;
	pm_index_release(&finder->index);
	for (size_t i = 0; i < len; i++) {
		struct pm_scope_group group = finder->groups->list.data[i];

		if (!group.repeated) {
			finder->groups->list.data[i].members.data = NULL;
			finder->groups->list.data[i] = (struct pm_scope_group){ 0 };
			finder->groups->list.data[kept++] = group;
			continue;
		}
		for (size_t j = 0; j < group.members.len; j++)
			if (add_member_to_group(
				    finder,
				    &finder->groups->list.data[i].members.data[j]) < 0)
				return -ENOMEM;
		pm_vec_release(&finder->groups->list.data[i].members);
	}
	mark_repeated(finder, len);
	memmove(&finder->groups->list.data[kept], finder->groups->list.data + len,
		(finder->groups->list.len - len) * sizeof(*finder->groups->list.data));
	finder->groups->list.len -= len - kept;
	return 0;
}

/* ---- scopes of one side only -------------------------------------------------------- */

/* Groups that are on only one side, by their names without suffixes and kinds. */
struct lonely {
	struct finder *finder;
	PM_VEC(struct lonely_row {
		uint32_t group[PM_SIDES];
		uint32_t count[PM_SIDES];
	})
	rows;
	struct pm_index index;
};

static struct key loose_key(const struct finder *finder, uint32_t group)
{
	const struct pm_scope_member *first =
		&finder->groups->list.data[group].members.data[0];
	struct key key = scope_key_of_member(&finder->sides[first->side], first);

	if (key.scope->kind != PM_STAT_RANGE)
		key.name_len = pm_base_name_len(key.scope->name);
	key.any_kind = true;
	return key;
}

static bool is_lonely_of(const void *table, uint32_t id, const void *wanted)
{
	const struct lonely *lonely = table;
	const struct lonely_row *row = &lonely->rows.data[id];
	struct key key = loose_key(
		lonely->finder, row->group[row->count[PM_BASE] > 0 ? PM_BASE : PM_NEW]);

	return same_key(&key, wanted);
}

static int add_lonely(struct lonely *lonely, uint32_t group, unsigned int side)
{
	struct key key = loose_key(lonely->finder, group);
	uint64_t hash = hash_of(&key);
	uint32_t id = pm_index_find(&lonely->index, hash, is_lonely_of, lonely, &key);

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)lonely->rows.len;
		if (pm_vec_push(&lonely->rows, (struct lonely_row){ 0 }) < 0)
			return -ENOMEM;
		lonely->rows.data[id].group[side] = group;
		lonely->rows.data[id].count[side] = 1;
		return pm_index_add(&lonely->index, hash, id);
	}
	lonely->rows.data[id].group[side] = group;
	lonely->rows.data[id].count[side]++;
	return 0;
}

/* Joins two groups. Afterwards the group of the new side is empty. */
static int join_lonely_groups(struct pm_scope_groups *groups,
			      const struct lonely_row *row)
{
	struct pm_scope_group *base = &groups->list.data[row->group[PM_BASE]];
	struct pm_scope_group *other = &groups->list.data[row->group[PM_NEW]];

	for (size_t i = 0; i < other->members.len; i++)
		if (pm_vec_push(&base->members, other->members.data[i]) < 0)
			return -ENOMEM;
	base->of[PM_NEW] = other->of[PM_NEW];
	base->repeated = base->repeated || other->repeated;
	pm_vec_release(&other->members);
	return 0;
}

static void drop_empty(struct pm_scope_groups *groups)
{
	size_t kept = 0;

	for (size_t i = 0; i < groups->list.len; i++)
		if (groups->list.data[i].members.len > 0)
			groups->list.data[kept++] = groups->list.data[i];
	groups->list.len = kept;
}

/* Pairs groups: a function that was inlined or split into parts on only one side is still
 * the same function, if no other one has its name. */
static int pair_lonely(struct finder *finder)
{
	struct lonely lonely = { .finder = finder };
	struct pm_scope_groups *groups = finder->groups;
	int ret = 0;

	for (uint32_t i = 0; i < groups->list.len && ret == 0; i++) {
		const struct pm_scope_group *group = &groups->list.data[i];

		if (!group->of[PM_BASE] != !group->of[PM_NEW])
			ret = add_lonely(&lonely, i,
					 group->of[PM_BASE] ? PM_BASE : PM_NEW);
	}
	for (size_t i = 0; i < lonely.rows.len && ret == 0; i++)
		if (lonely.rows.data[i].count[PM_BASE] == 1 &&
		    lonely.rows.data[i].count[PM_NEW] == 1)
			ret = join_lonely_groups(groups, &lonely.rows.data[i]);
	if (ret == 0)
		drop_empty(groups);
	pm_vec_release(&lonely.rows);
	pm_index_release(&lonely.index);
	return ret;
}

int pm_scope_groups_find(struct pm_scope_groups *groups, const struct pm_side *sides)
{
	struct finder finder = { .sides = sides, .groups = groups };
	int ret = add_all(&finder);

	if (ret == 0) {
		mark_repeated(&finder, 0);
		ret = divide_groups(&finder);
	}
	if (ret == 0)
		ret = pair_lonely(&finder);
	pm_index_release(&finder.index);
	return ret;
}

/* SPDX-License-Identifier: MIT */
/* Sums, while a file is read, the branches that the CPU recorded. */
#include "profile-internal.h"

static bool profile_branch_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_profile_branch *have =
		&((const struct pm_profile *)table)->branches.data[id];
	const struct pm_profile_branch *wanted = key;

	return have->cell == wanted->cell && have->from == wanted->from &&
	       have->to == wanted->to;
}

static int loader_add_branch(struct pm_loader *loader,
			     const struct pm_file_branch *branch, uint32_t cell)
{
	struct pm_profile *profile = loader->profile;
	struct pm_profile_branch key = {
		.cell = cell,
		.from = branch->from,
		.to = branch->to,
	};
	struct pm_profile_branch *sum;
	uint64_t hash = pm_hash_mix((uint64_t)key.from << 32 | key.to, cell);
	uint32_t id = pm_index_find(&loader->branches, hash, profile_branch_equal,
				    profile, &key);

	if (id == PM_INDEX_NONE) {
		int ret = pm_vec_push(&profile->branches, key);

		id = (uint32_t)profile->branches.len - 1;
		if (ret == 0)
			ret = pm_index_add(&loader->branches, hash, id);
		if (ret < 0)
			return ret;
	}
	sum = &profile->branches.data[id];
	sum->count++;
	sum->mispredicted += (branch->flags & PM_FILE_BRANCH_MISPREDICTED) != 0;
	sum->predicted += (branch->flags & PM_FILE_BRANCH_PREDICTED) != 0;
	if (branch->cycles != PM_FILE_NONE) {
		sum->cycles += branch->cycles; /* 32 bits each: no overflow */
		sum->cycles_of++;
	}
	return 0;
}

int pm_load_branches(struct pm_loader *loader, const struct pm_file_sample *sample,
		     uint32_t cell)
{
	for (size_t i = 0; i < sample->branches_len; i++) {
		int ret = loader_add_branch(loader, &sample->branches[i], cell);

		if (ret < 0)
			return ret;
	}
	return 0;
}

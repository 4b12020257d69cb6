/* SPDX-License-Identifier: MIT */
/* Branches that the CPU recorded: as separate frames, or as the user part of a stack. */
#include "chain-internal.h"

#include <linux/perf_event.h>

#include "pm/chain-spaces.h"

/* Whether @address is in the upper half, where x86-64 and aarch64 have the kernel. */
static bool in_kernel(uint64_t address)
{
	return address >> 63 != 0;
}

static int push_branch_end(struct pm_chains *chains, const struct pm_unw_space *space,
			   uint64_t address, uint32_t how)
{
	if (in_kernel(address))
		return pm_chains_push_kernel(chains, address, how);
	return pm_chains_push(chains, address, pm_unw_space_find(space, address), how);
}

/*
 * The entries are ordered from newest to oldest. Each is a call that has not returned yet
 * (PERF_SAMPLE_BRANCH_CALL_STACK), and `from` is the call instruction itself, in the
 * caller of the previous entry.
 */
int pm_chains_push_lbr(struct pm_chains *chains, const struct pm_sample *sample,
		       const struct pm_unw_space *space)
{
	int ret = 0;

	for (size_t i = 0; i < sample->branches_len && ret == 0; i++) {
		uint64_t from = sample->branches[i].from;

		if (from != 0 && !in_kernel(from))
			ret = push_branch_end(chains, space, from, PM_CHAIN_HOW_LBR);
	}
	return ret;
}

/* Finds the frame in the file for one end of a branch. */
static int frame_of(struct pm_chains *chains, const struct pm_unw_space *space,
		    uint64_t address, uint32_t *out)
{
	int ret;

	chains->frames_len = 0;
	ret = push_branch_end(chains, space, address, PM_CHAIN_HOW_BRANCH);
	if (ret < 0)
		return ret;
	return pm_chains_frame(chains, &chains->frames[0], out);
}

static uint32_t flags_of(const struct perf_branch_entry *entry)
{
	uint32_t flags = (uint32_t)entry->type << PM_FILE_BRANCH_TYPE_SHIFT;

	if (entry->mispred)
		flags |= PM_FILE_BRANCH_MISPREDICTED;
	if (entry->predicted)
		flags |= PM_FILE_BRANCH_PREDICTED;
	if (entry->in_tx)
		flags |= PM_FILE_BRANCH_IN_TX;
	if (entry->abort)
		flags |= PM_FILE_BRANCH_ABORT;
	return flags;
}

int pm_chains_branches(struct pm_chains *chains, const struct pm_record *record,
		       const struct pm_file_branch **out, size_t *len)
{
	const struct pm_sample *sample = &record->sample;
	bool wanted = sample->branches_len > 0 && !chains->from.lbr;
	struct pm_process *process;
	struct pm_unw_space space;
	int ret;

	*out = NULL;
	*len = 0;
	if (!wanted)
		return 0;
	process = pm_procs_get(chains->from.procs, (pid_t)record->pid);
	if (!process)
		return -ENOMEM;
	ret = pm_chain_space_get(process, chains->from.modules, chains->from.procs,
				 &space);
	if (ret == 0)
		ret = pm_vec_reserve(&chains->branches, sample->branches_len);
	if (ret < 0)
		return ret;
	pm_vec_clear(&chains->branches);
	chains->record = record;
	for (size_t i = 0; i < sample->branches_len; i++) {
		const struct perf_branch_entry *entry = &sample->branches[i];
		struct pm_file_branch branch = { .flags = flags_of(entry),
						 .cycles = entry->cycles ? entry->cycles
									 : PM_FILE_NONE };

		ret = frame_of(chains, &space, entry->from, &branch.from);
		if (ret == 0)
			ret = frame_of(chains, &space, entry->to, &branch.to);
		if (ret < 0)
			return ret;
		chains->branches.data[chains->branches.len++] = branch;
	}
	*out = chains->branches.data;
	*len = chains->branches.len;
	return 0;
}

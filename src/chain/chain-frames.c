/* SPDX-License-Identifier: MIT */
/* The frames of a sample; all parts of chains add frames here. */
#include "chain-internal.h"
#include "pm/chain-jit.h"

void pm_chains_spend(struct pm_chains *chains, uint64_t ns)
{
	if (chains->budget)
		pm_chain_budget_spend(chains->budget, chains->record->pid, ns);
}

static void push_chain_frame(struct pm_chains *chains, uint64_t address, uint32_t module,
			     uint32_t how)
{
	if (chains->frames_len < PM_CHAIN_FRAMES_MAX)
		chains->frames[chains->frames_len++] = (struct pm_chain_frame){
			.address = address, .module = module, .how = how
		};
}

int pm_chains_push(struct pm_chains *chains, uint64_t lookup,
		   const struct pm_unw_map *map, uint32_t how)
{
	const struct pm_chain_module *of =
		map ? &chains->from.modules->list.data[map->tag] : NULL;
	uint32_t module = PM_FILE_NONE;

	if (map)
		pm_chain_modules_use(chains->from.modules, map->tag);
	if (of && of->generated && chains->from.jit) {
		const struct pm_record *record = chains->record;
		int ret =
			pm_chain_jit_module(chains->from.jit, (pid_t)record->pid, lookup,
					    (enum pm_unw_how)how, record->time, &module);
		if (ret < 0)
			return ret;
		push_chain_frame(chains, lookup, module, how);
		return 0;
	}
	if (map) {
		/* The id is usually known; it is requested for the first frame in a
		 * module. */
		module = chains->from.modules->list.data[map->tag].file_id;
		if (module == PM_FILE_NONE) {
			int ret = pm_chain_modules_file_id(
				chains->from.modules, chains->from.procs,
				chains->from.writer, map->tag, &module);
			if (ret < 0)
				return ret;
		}
	}
	push_chain_frame(chains, map ? lookup - map->bias : lookup, module, how);
	return 0;
}

int pm_chains_push_kernel(struct pm_chains *chains, uint64_t lookup, uint32_t how)
{
	uint32_t module;
	int ret = pm_chain_modules_kernel_id(chains->from.modules, chains->from.writer,
					     &module);
	if (ret < 0)
		return ret;
	push_chain_frame(chains, lookup, module, how);
	return 0;
}

bool pm_chains_reopen_closed(struct pm_chains *chains, size_t len)
{
	struct pm_chain_modules *modules = chains->from.modules;

	if (modules->closed_len == 0)
		return false;
	for (size_t i = 0; i < len; i++)
		if (chains->found[i].map)
			pm_chain_modules_use(modules, chains->found[i].map->tag);
	for (size_t i = 0; i < len; i++)
		if (chains->found[i].map &&
		    pm_chain_modules_reopen(modules, chains->from.procs,
					    chains->found[i].map->tag))
			return true;
	return false;
}

static const char *how_name(uint32_t how)
{
	switch (how) {
	case PM_CHAIN_HOW_LBR:
		return "lbr";
	case PM_CHAIN_HOW_BRANCH:
		return "branch";
	default:
		return pm_unw_how_name((enum pm_unw_how)how);
	}
}

int pm_chains_frame_at(struct pm_chains *chains, const struct pm_chain_frame *frame,
		       uint64_t time, uint32_t *out)
{
	int ret = pm_file_intern_frame(chains->from.writer, frame->module, frame->address,
				       how_name(frame->how), out);

	if (ret == 0 && chains->from.jit)
		ret = pm_chain_jit_frame(chains->from.jit, frame->module, frame->address,
					 (enum pm_unw_how)frame->how, time, *out);
	return ret;
}

int pm_chains_frame(struct pm_chains *chains, const struct pm_chain_frame *frame,
		    uint32_t *out)
{
	return pm_chains_frame_at(chains, frame, chains->record->time, out);
}

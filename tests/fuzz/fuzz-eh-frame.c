/* SPDX-License-Identifier: MIT */
/*
 * Bytes are an ELF image of any architecture whose last 512 bytes double as a stack. It is
 * mapped at its own addresses and unwound from places in its segments and at its FDEs, and
 * once as what a task of another architecture has mapped.
 */
#include "unwind/unwind-parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	STACK = 0x7ff00000, /* where a 32-bit task could have it, too */
	STACK_LEN = 512,
	PLACES = 24,
	SPACE = 1 << 28,
};

/* Chains that wait to be found side by side. */
struct batch {
	struct pm_unwinder *unwinder,
		*plain; /* two, so that each way has tables of its own */
	const struct pm_unw_space *space;
	const struct pm_unw_stack *stack;
	struct pm_unw_regs regs[PM_UNW_BATCH_MAX];
	size_t len;
};

static bool renew(struct batch *batch)
{
	pm_unwinder_free(batch->unwinder);
	pm_unwinder_free(batch->plain);
	batch->unwinder = pm_unwinder_new();
	batch->plain = pm_unwinder_new();
	return batch->unwinder && batch->plain;
}

static bool is_same(const struct pm_unw_job *job, const struct batch *batch,
		    const struct pm_unw_regs *regs)
{
	static struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	enum pm_unw_stop stop;
	size_t len = pm_unw_walk(batch->plain, batch->space, regs, batch->stack, frames,
				 &stop);

	if (job->len != len || job->stop != stop)
		return false;
	for (size_t i = 0; i < len; i++)
		if (job->frames[i].pc != frames[i].pc ||
		    job->frames[i].lookup != frames[i].lookup ||
		    job->frames[i].sp != frames[i].sp ||
		    job->frames[i].map != frames[i].map ||
		    job->frames[i].how != frames[i].how)
			return false;
	return true;
}

/* How many chains were given up for their work: how much is left depends on what is cached. */
static uint64_t overworked(const struct batch *batch)
{
	return batch->unwinder->overworked + batch->plain->overworked;
}

static void flush(struct batch *batch)
{
	static struct pm_unw_frame frames[PM_UNW_BATCH_MAX][PM_UNW_FRAMES_MAX];
	const struct pm_unw_module *module = batch->space->maps->module;
	size_t table = module->hdr_table, len = batch->len;
	struct pm_unw_job jobs[PM_UNW_BATCH_MAX];
	uint64_t before;

	batch->len = 0;
	if (!batch->unwinder || !batch->plain)
		return;
	before = overworked(batch);
	for (size_t i = 0; i < len; i++)
		jobs[i] = (struct pm_unw_job){ .space = batch->space,
					       .regs = &batch->regs[i],
					       .stack = *batch->stack,
					       .frames = frames[i] };
	pm_unwind_batch(batch->unwinder, jobs, len);
	/* Once the header's table is found to be bad, addresses have what a scan finds. */
	for (size_t i = 0; i < len; i++)
		if (!is_same(&jobs[i], batch, &batch->regs[i]) &&
		    module->hdr_table == table && overworked(batch) == before)
			abort();
	if (module->hdr_table != table)
		renew(batch);
}

static void unwind_as(struct batch *batch, enum pm_unw_arch arch, uint64_t pc)
{
	const struct pm_unw_arch_info *info = &pm_unw_arch_infos[arch];
	struct pm_unw_regs regs = { .known = ((uint64_t)1 << info->regs) - 1,
				    .arch = arch };

	for (size_t i = 0; i < info->regs; i++)
		regs.value[i] = batch->stack->start + i * 16;
	if (info->ra_is_link)
		regs.value[info->ra] = pc + 32;
	regs.value[info->sp] = batch->stack->start;
	regs.value[info->pc] = pc;
	batch->regs[batch->len++] = regs;
	if (batch->len == PM_UNW_BATCH_MAX)
		flush(batch);
}

static void unwind_at(struct batch *batch, uint64_t pc)
{
	unwind_as(batch, batch->space->maps->module->arch, pc);
}

/* At FDEs, as the header's table or a scan finds them. */
static void unwind_all(struct batch *batch, struct pm_unw_module *module, bool scan)
{
	struct pm_unw_fde fde;

	if (!renew(batch))
		return;
	if (!scan) {
		for (unsigned int i = 0; i < PM_UNW_ARCH_COUNT; i++)
			unwind_as(batch, (enum pm_unw_arch)i, module->entry);
		for (uint64_t i = 0; i < PLACES; i++)
			unwind_at(batch, module->entry + i * 4);
		for (size_t i = 0; i < module->loads.len && i < PLACES; i++)
			unwind_at(batch, module->loads.data[i].vaddr + 16);
	} else {
		module->hdr_table = 0;
		pm_unw_fde_find(module, 0, &fde);
		for (size_t i = 0; i < module->eh_scanned.places.len && i < PLACES; i++)
			unwind_at(batch, module->eh_scanned.places.data[i].start + i);
		for (size_t i = 0; i < module->debug_scanned.places.len && i < PLACES;
		     i++)
			unwind_at(batch, module->debug_scanned.places.data[i].start);
	}
	if (batch->len > 0)
		flush(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pm_unw_module *module;
	struct pm_unw_stack stack = { .start = STACK, .len = STACK_LEN };
	struct pm_unw_map map = { .start = 0, .end = SPACE };
	struct pm_unw_space space = { .maps = &map, .len = 1 };
	struct batch batch = { .stack = &stack, .space = &space };

	if (size < STACK_LEN || pm_unw_module_from_memory(&module, data, size, NULL) != 0)
		return 0;
	stack.data = data + size - STACK_LEN;
	map.module = module;
	/* What an address is found to have must not depend on who meets the first gap. */
	pm_unw_module_fill_gap(module);
	unwind_all(&batch, module, false);
	/* The scan, too, where a header would keep it away. */
	unwind_all(&batch, module, true);
	pm_unwinder_free(batch.unwinder);
	pm_unwinder_free(batch.plain);
	pm_unw_module_free(module);
	return 0;
}

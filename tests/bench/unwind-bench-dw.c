/* SPDX-License-Identifier: MIT */
/*
 * The plainest unwinder that libdw allows: a row from dwarf_cfi_addrframe() for every frame,
 * nothing kept but libdw's own index of the CFI, and of the registers those that later frames
 * can need. x86-64.
 */
#include "tests/bench/unwind-bench.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

enum {
	SP = PM_UNW_X86_64_RSP,
	IP = PM_UNW_X86_64_RIP,
	VALUES_MAX = 16,
};

struct bench_dw {
	struct bench_corpus *corpus; /* borrowed */
	PM_VEC(struct file {
		Elf *elf;
		Dwarf_CFI *cfi;
	})
	files;
};

/* What a signal frame restores is never needed elsewhere. */
static const uint8_t wanted[] = {
	PM_UNW_X86_64_RBX, PM_UNW_X86_64_RBP, 12, 13, 14, 15, SP, IP
};

struct bench_dw *bench_dw_new(struct bench_corpus *corpus)
{
	struct bench_dw *dw = calloc(1, sizeof(*dw));

	if (!dw)
		abort();
	dw->corpus = corpus;
	bench_files_open(corpus);
	elf_version(EV_CURRENT);
	for (size_t i = 0; i < corpus->files.list.len; i++) {
		int fd = corpus->files.list.data[i].fd;
		struct file file = { 0 };

		if (fd >= 0)
			file.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
		if (file.elf)
			file.cfi = dwarf_getcfi_elf(file.elf);
		if (pm_vec_push(&dw->files, file) < 0)
			abort();
	}
	return dw;
}

void bench_dw_free(struct bench_dw *dw)
{
	if (!dw)
		return;
	for (size_t i = 0; i < dw->files.len; i++) {
		if (dw->files.data[i].cfi)
			dwarf_cfi_end(dw->files.data[i].cfi);
		elf_end(dw->files.data[i].elf);
	}
	pm_vec_release(&dw->files);
	free(dw);
}

static bool read_stack(const struct pm_unw_stack *stack, uint64_t address, uint64_t *ret)
{
	uint64_t at = address - stack->start;

	if (stack->len < sizeof(*ret) || at > stack->len - sizeof(*ret))
		return false;
	memcpy(ret, stack->data + at, sizeof(*ret));
	return true;
}

struct values {
	uint64_t data[VALUES_MAX];
	size_t len;
};

static bool operate(const Dwarf_Op *op, struct values *values)
{
	uint64_t b = values->data[values->len - 1];
	uint64_t a = values->data[values->len - 2];

	switch (op->atom) {
	case DW_OP_plus:
		a += b;
		break;
	case DW_OP_and:
		a &= b;
		break;
	case DW_OP_ge:
		a = (int64_t)a >= (int64_t)b;
		break;
	case DW_OP_shl:
		a = b < 64 ? a << b : 0;
		break;
	default:
		return false;
	}
	values->data[--values->len - 1] = a;
	return true;
}

/* What compilers and glibc use; anything else ends the chain. */
static bool evaluate(const Dwarf_Op *ops, size_t len, const uint64_t *regs, uint64_t cfa,
		     const struct pm_unw_stack *stack, uint64_t *ret)
{
	struct values values = { .len = 0 };

	for (size_t i = 0; i < len; i++) {
		const Dwarf_Op *op = &ops[i];
		uint64_t reg = op->atom == DW_OP_bregx ? op->number
						       : (uint64_t)op->atom - DW_OP_breg0;
		uint64_t offset = op->atom == DW_OP_bregx ? op->number2 : op->number;

		if (values.len == VALUES_MAX)
			return false;
		if (op->atom == DW_OP_bregx ||
		    (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)) {
			if (reg > IP)
				return false;
			values.data[values.len++] = regs[reg] + offset;
		} else if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
			values.data[values.len++] = op->atom - DW_OP_lit0;
		} else if (op->atom == DW_OP_call_frame_cfa) {
			values.data[values.len++] = cfa;
		} else if (op->atom == DW_OP_plus_uconst && values.len > 0) {
			values.data[values.len - 1] += op->number;
		} else if (op->atom == DW_OP_deref && values.len > 0) {
			if (!read_stack(stack, values.data[values.len - 1],
					&values.data[values.len - 1]))
				return false;
		} else if (values.len < 2 || !operate(op, &values)) {
			return false;
		}
	}
	if (values.len == 0)
		return false;
	*ret = values.data[values.len - 1];
	return true;
}

static bool next_reg(Dwarf_Frame *frame, int reg, const uint64_t *regs, uint64_t cfa,
		     const struct pm_unw_stack *stack, uint64_t *ret)
{
	Dwarf_Op memory[3];
	Dwarf_Op *ops;
	size_t len;
	bool value;

	if (dwarf_frame_register(frame, reg, memory, &ops, &len) != 0)
		return false;
	if (len == 0) {
		*ret = reg == SP ? cfa : regs[reg];
		return ops != memory; /* else it is undefined */
	}
	if (len == 1 && (ops[0].atom == DW_OP_regx ||
			 (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31))) {
		uint64_t from = ops[0].atom == DW_OP_regx
					? ops[0].number
					: (uint64_t)ops[0].atom - DW_OP_reg0;

		*ret = from <= IP ? regs[from] : 0;
		return from <= IP;
	}
	value = ops[len - 1].atom == DW_OP_stack_value;
	if (!evaluate(ops, len - value, regs, cfa, stack, ret))
		return false;
	return value || read_stack(stack, *ret, ret);
}

/* Moves @regs to the caller. False: there is none, or it is beyond this unwinder. */
static bool step(Dwarf_CFI *cfi, uint64_t svma, uint64_t *regs,
		 const struct pm_unw_stack *stack, bool *signal)
{
	PM_AUTO_FREE Dwarf_Frame *frame = NULL;
	uint64_t next[PM_UNW_X86_64_REGS], cfa;
	Dwarf_Op *ops;
	size_t len;

	if (dwarf_cfi_addrframe(cfi, svma, &frame) != 0) {
		frame = NULL;
		return false;
	}
	dwarf_frame_info(frame, NULL, NULL, signal);
	if (dwarf_frame_cfa(frame, &ops, &len) != 0 ||
	    !evaluate(ops, len, regs, 0, stack, &cfa))
		return false;
	memcpy(next, regs, sizeof(next));
	for (size_t i = 0; i < PM_ARRAY_LEN(wanted); i++)
		if (!next_reg(frame, wanted[i], regs, cfa, stack, &next[wanted[i]]) &&
		    wanted[i] == IP)
			return false;
	memcpy(regs, next, sizeof(next));
	return true;
}

size_t bench_dw_unwind(struct bench_dw *dw, const struct bench_sample *sample,
		       uint64_t *pcs, size_t max)
{
	struct pm_unw_space space = bench_space_of(dw->corpus, sample);
	uint64_t regs[PM_UNW_X86_64_REGS];
	bool signal = true; /* the first: interrupted, too */
	size_t len = 0;

	memcpy(regs, sample->regs.value, sizeof(regs));
	while (len < max) {
		uint64_t lookup = regs[IP] - !signal;
		const struct pm_unw_map *map = pm_unw_space_find(&space, lookup);
		Dwarf_CFI *cfi;

		if (!map && len > 0)
			break;
		pcs[len++] = regs[IP];
		cfi = map && map->module ? dw->files.data[map->tag].cfi : NULL;
		if (!cfi || !step(cfi, lookup - map->bias, regs, &sample->stack, &signal))
			break;
	}
	return len;
}

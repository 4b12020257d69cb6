/* SPDX-License-Identifier: MIT */
#include "tests/oracle/dwfl-chain.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>

enum {
	TID = 1, /* a copied stack has one thread */
	RED_ZONE_BYTES = 128, /* psABI §3.2.2 */
	PAIR_BYTES = 16, /* x16 and x30, as pushed by the PLT of aarch64 */
#if defined(__aarch64__)
	/* AADWARF64 §4.1. libdwfl does not treat the pc as one of the registers. */
	REGS = 32,
	PC = 32,
	SP = 31,
	RETURN_ADDRESS = 30,
#else
	REGS = PM_UNW_X86_64_REGS,
	PC = PM_UNW_X86_64_RIP,
	SP = PM_UNW_X86_64_RSP,
	RETURN_ADDRESS = PM_UNW_X86_64_RIP,
#endif
};

struct dwfl_space {
	Dwfl *dwfl;
	const struct spaces_maps *maps; /* borrowed */
	const struct spaces_modules *modules; /* borrowed */
	/* Of the current call. */
	const struct pm_unw_regs *regs;
	const struct pm_unw_stack *stack;
	struct dwfl_frame *frames;
	size_t len, max;
	size_t taken; /* calls of take_frame(); 1: the first frame is being unwound */
	struct {
		uint64_t slot, value;
	} popped[PM_UNW_X86_64_REGS];
	size_t popped_len;
	size_t kept_at; /* the frame whose registers are kept; 0: none */
	struct pm_unw_regs kept;
};

/* ---- callbacks of libdwfl --------------------------------------------------------------- */

/* All files are reported with an fd; separate debug files would be more than our unwinder
 * has. */
static int find_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	return -1;
}

static int find_debuginfo(Dwfl_Module *module, void **user, const char *name,
			  Dwarf_Addr base, const char *file_name, const char *debuglink,
			  GElf_Word crc, char **debuginfo)
{
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static bool read_module(struct dwfl_space *space, uint64_t address, Dwarf_Word *result)
{
	Dwfl_Module *module = dwfl_addrmodule(space->dwfl, address);
	GElf_Addr bias;
	Elf *elf = module ? dwfl_module_getelf(module, &bias) : NULL;
	const char *bytes;
	size_t len;
	size_t phdrs;

	if (!elf || elf_getphdrnum(elf, &phdrs) != 0)
		return false;
	bytes = elf_rawfile(elf, &len);
	for (size_t i = 0; bytes && i < phdrs; i++) {
		GElf_Phdr phdr;
		uint64_t at;

		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
		    (phdr.p_flags & PF_W))
			continue;
		at = address - bias - phdr.p_vaddr;
		if (phdr.p_filesz < sizeof(*result) ||
		    at > phdr.p_filesz - sizeof(*result) || phdr.p_offset > len ||
		    len - phdr.p_offset < phdr.p_filesz)
			continue;
		memcpy(result, bytes + phdr.p_offset + at, sizeof(*result));
		return true;
	}
	return false;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *arg)
{
	struct dwfl_space *space = arg;
	const struct pm_unw_stack *stack = space->stack;
	uint64_t at = address - stack->start;

	/* Only for the first frame: for its callers the slots have their real
	 * contents. */
	for (size_t i = 0; space->taken <= 1 && i < space->popped_len; i++) {
		if (space->popped[i].slot == address) {
			*result = space->popped[i].value;
			return true;
		}
	}
	if (stack->len >= sizeof(*result) && at <= stack->len - sizeof(*result)) {
		memcpy(result, stack->data + at, sizeof(*result));
		return true;
	}
	return read_module(space, address, result);
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return TID;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	*thread_arg = arg;
	return tid == TID;
}

static bool set_initial_registers(Dwfl_Thread *thread, void *arg)
{
	struct dwfl_space *space = arg;
	bool ok = true;

	for (int reg = 0; reg < REGS; reg++) {
		Dwarf_Word value = space->regs->value[reg];

		if (space->regs->known >> reg & 1)
			ok = ok && dwfl_thread_state_registers(thread, reg, 1, &value);
	}
	if (PC == REGS)
		dwfl_thread_state_register_pc(thread, space->regs->value[PC]);
	return ok;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = memory_read,
	.set_initial_registers = set_initial_registers,
};

static void keep_registers(Dwfl_Frame *state, uint64_t pc, struct pm_unw_regs *ret)
{
	*ret = (struct pm_unw_regs){ 0 };
	for (unsigned int reg = 0; reg < REGS; reg++) {
		Dwarf_Word value;

		if (dwfl_frame_reg(state, reg, &value) != 0)
			continue;
		ret->value[reg] = value;
		ret->known |= (uint64_t)1 << reg;
	}
	ret->value[PC] = pc;
	ret->known |= (uint64_t)1 << PC;
}

static int take_frame(Dwfl_Frame *state, void *arg)
{
	struct dwfl_space *space = arg;
	struct dwfl_frame *frame = &space->frames[space->len];
	Dwarf_Addr pc;

	/* dwfl_frame_pc() already unwinds every frame except the first. */
	space->taken++;
	/* libdwfl does not guard against CFI that leads in circles. */
	if (space->len >= space->max || !dwfl_frame_pc(state, &pc, &frame->activation))
		return DWARF_CB_ABORT;
	frame->pc = pc;
	if (space->kept_at > 0 && space->len == space->kept_at)
		keep_registers(state, pc, &space->kept);
	space->len++;
	return DWARF_CB_OK;
}

/* ---- an address space ------------------------------------------------------------------- */

static bool reported_before(const struct spaces_maps *maps, size_t index)
{
	const struct pm_unw_map *map = &maps->maps.data[index];

	for (size_t i = 0; i < index; i++)
		if (maps->maps.data[i].tag == map->tag &&
		    maps->maps.data[i].bias == map->bias && maps->maps.data[i].module)
			return true;
	return false;
}

static void report(Dwfl *dwfl, const struct pm_unw_map *map, int fd)
{
	char name[64];
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	/* libdwfl takes modules with the same name for one module. */
	snprintf(name, sizeof(name), "%u@%#llx", map->tag, (unsigned long long)map->bias);
	if (!dwfl_report_elf(dwfl, name, name, own, map->bias, true))
		close(own);
}

struct dwfl_space *dwfl_space_new(const struct spaces_maps *maps,
				  const struct spaces_modules *modules)
{
	struct dwfl_space *space = calloc(1, sizeof(*space));

	if (!space)
		abort();
	space->maps = maps;
	space->modules = modules;
	space->dwfl = dwfl_begin(&callbacks);
	if (!space->dwfl)
		abort();
	dwfl_report_begin(space->dwfl);
	for (size_t i = 0; i < maps->maps.len; i++) {
		const struct pm_unw_map *map = &maps->maps.data[i];

		if (map->module && !reported_before(maps, i))
			report(space->dwfl, map, modules->list.data[map->tag].fd);
	}
	dwfl_report_end(space->dwfl, NULL, NULL);
	/* Fails without a module; every unwinding then returns only the first frame. */
	dwfl_attach_state(space->dwfl, NULL, TID, &thread_callbacks, space);
	return space;
}

void dwfl_space_free(struct dwfl_space *space)
{
	if (space)
		dwfl_end(space->dwfl);
	free(space);
}

size_t dwfl_space_unwind(struct dwfl_space *space, const struct pm_unw_regs *regs,
			 const struct pm_unw_stack *stack, struct dwfl_frame *frames,
			 size_t max, bool *failed)
{
	space->regs = regs;
	space->stack = stack;
	space->frames = frames;
	space->len = 0;
	space->taken = 0;
	space->max = max;
	*failed = dwfl_getthread_frames(space->dwfl, TID, take_frame, space) != 0;
	if (space->len == 0 && max > 0)
		frames[space->len++] = (struct dwfl_frame){
			.pc = regs->value[PC],
			.activation = true,
		};
	return space->len;
}

/* In libdwfl's order: .eh_frame, then .debug_frame. */
static Dwarf_Frame *frame_at(struct dwfl_space *space, uint64_t lookup)
{
	Dwfl_Module *module = dwfl_addrmodule(space->dwfl, lookup);
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi;

	if (!module)
		return NULL;
	cfi = dwfl_module_eh_cfi(module, &bias);
	if (cfi && dwarf_cfi_addrframe(cfi, lookup - bias, &frame) == 0)
		return frame;
	cfi = dwfl_module_dwarf_cfi(module, &bias);
	if (cfi && dwarf_cfi_addrframe(cfi, lookup - bias, &frame) == 0)
		return frame;
	return NULL;
}

bool dwfl_space_begins_fde(struct dwfl_space *space, uint64_t address)
{
	PM_AUTO_FREE Dwarf_Frame *at = frame_at(space, address);
	PM_AUTO_FREE Dwarf_Frame *before = frame_at(space, address - 1);
	Dwarf_Addr start, before_start, end, bias;
	bool signal;

	dwfl_module_getelf(dwfl_addrmodule(space->dwfl, address), &bias);
	if (!at || dwarf_frame_info(at, &start, &end, &signal) < 0 ||
	    start != address - bias)
		return false;
	/* Rows of one FDE are adjacent; their CFA changes by the effect of one
	 * instruction. */
	if (!before || dwarf_frame_info(before, &before_start, &end, &signal) < 0 ||
	    end != start)
		return true;
	return dwfl_space_function(space, address, &(uint64_t){ 0 }) !=
	       dwfl_space_function(space, address - 1, &(uint64_t){ 0 });
}

enum dwfl_rule dwfl_space_rule(struct dwfl_space *space, uint64_t lookup)
{
	PM_AUTO_FREE Dwarf_Frame *frame = frame_at(space, lookup);
	Dwarf_Op memory[3];
	Dwarf_Op *ops;
	size_t ops_len;

	if (!frame)
		return DWFL_RULE_NONE;
	if (dwarf_frame_register(frame, RETURN_ADDRESS, memory, &ops, &ops_len) == 0 &&
	    ops_len == 0 && ops == memory)
		return DWFL_RULE_ROOT;
	return DWFL_RULE_RETURNS;
}

bool dwfl_space_is_signal(struct dwfl_space *space, uint64_t lookup)
{
	PM_AUTO_FREE Dwarf_Frame *frame = frame_at(space, lookup);
	bool is_signal = false;

	if (frame)
		dwarf_frame_info(frame, NULL, NULL, &is_signal);
	return is_signal;
}

/* Reads the value of a lone DW_OP_bregN or DW_OP_bregx. */
static bool read_breg(const Dwarf_Op *op, const struct pm_unw_regs *regs, uint64_t *ret)
{
	unsigned int reg = op->atom == DW_OP_bregx ? (unsigned int)op->number
						   : op->atom - (unsigned int)DW_OP_breg0;

	if (reg >= REGS)
		return false;
	*ret = regs->value[reg] + (op->atom == DW_OP_bregx ? op->number2 : op->number);
	return true;
}

static bool cfa_of(Dwarf_Frame *frame, const struct pm_unw_regs *regs, uint64_t *ret)
{
	Dwarf_Op *ops;
	size_t len;

	return dwarf_frame_cfa(frame, &ops, &len) == 0 && len == 1 &&
	       read_breg(ops, regs, ret);
}

/*
 * Finds where a register is saved, if that slot was popped: "CFA + offset" below the
 * stack pointer, or "rbp + offset" outside of the frame, as in gcc's realigned frames.
 */
static bool popped_slot(Dwarf_Frame *frame, int reg, const struct pm_unw_regs *regs,
			uint64_t cfa, uint64_t *ret)
{
	uint64_t sp = regs->value[PM_UNW_X86_64_RSP];
	Dwarf_Op memory[3];
	Dwarf_Op *ops;
	size_t len;

	if (dwarf_frame_register(frame, reg, memory, &ops, &len) != 0 || len != 2 ||
	    ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (ops[1].atom == DW_OP_plus_uconst) {
		*ret = cfa + ops[1].number;
		return sp - *ret - 1 < RED_ZONE_BYTES;
	}
	return read_breg(&ops[1], regs, ret) && cfa > sp && *ret - sp >= cfa - sp;
}

size_t dwfl_space_serve_popped(struct dwfl_space *space, const struct pm_unw_regs *regs)
{
	static const int callee_saved[] = {
		PM_UNW_X86_64_RBX, PM_UNW_X86_64_RBP, 12, 13, 14, 15
	};
	PM_AUTO_FREE Dwarf_Frame *frame = NULL;
	uint64_t cfa;

	space->popped_len = 0;
	/* Not observed on other machines: compilers for aarch64 restore in CFI what they
	 * pop. */
	if (regs && regs->arch == PM_UNW_X86_64)
		frame = frame_at(space, regs->value[PC]);
	if (!frame)
		return 0;
	/* The CFA is given by an expression: assume that it is above; popped slots are
	 * below the stack pointer. */
	if (!cfa_of(frame, regs, &cfa))
		cfa = regs->value[PM_UNW_X86_64_RSP] + PM_UNW_FRAMES_MAX * RED_ZONE_BYTES;
	for (size_t i = 0; i < PM_ARRAY_LEN(callee_saved); i++) {
		int reg = callee_saved[i];
		uint64_t slot;

		if (!popped_slot(frame, reg, regs, cfa, &slot))
			continue;
		space->popped[space->popped_len].slot = slot;
		space->popped[space->popped_len++].value = regs->value[reg];
	}
	return space->popped_len;
}

const char *dwfl_space_function(struct dwfl_space *space, uint64_t address,
				uint64_t *offset)
{
	Dwfl_Module *module = dwfl_addrmodule(space->dwfl, address);
	GElf_Sym symbol;

	if (!module)
		return NULL;
	return dwfl_module_addrinfo(module, address, offset, &symbol, NULL, NULL, NULL);
}

int dwfl_space_cfa_reg(struct dwfl_space *space, uint64_t lookup)
{
	PM_AUTO_FREE Dwarf_Frame *frame = frame_at(space, lookup);
	struct pm_unw_regs zeros = { 0 };
	uint64_t distance;
	Dwarf_Op *ops;
	size_t len;

	if (!frame || dwarf_frame_cfa(frame, &ops, &len) != 0)
		return DWFL_CFA_EXPRESSION;
	if (len == 0)
		return DWFL_CFA_NONE;
	if (len != 1 || !read_breg(ops, &zeros, &distance))
		return DWFL_CFA_EXPRESSION;
	return ops[0].atom == DW_OP_bregx ? (int)ops[0].number
					  : ops[0].atom - DW_OP_breg0;
}

int dwfl_space_return_reg(struct dwfl_space *space, uint64_t lookup)
{
	PM_AUTO_FREE Dwarf_Frame *frame = frame_at(space, lookup);
	Dwarf_Op memory[3];
	Dwarf_Op *ops;
	size_t len;

	if (!frame ||
	    dwarf_frame_register(frame, RETURN_ADDRESS, memory, &ops, &len) != 0 ||
	    len != 1)
		return DWFL_RETURN_ELSEWHERE;
	if (ops[0].atom == DW_OP_regx)
		return (int)ops[0].number;
	return ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31
		       ? ops[0].atom - DW_OP_reg0
		       : DWFL_RETURN_ELSEWHERE;
}

bool dwfl_space_loses(struct dwfl_space *space, uint64_t lookup, int reg)
{
	PM_AUTO_FREE Dwarf_Frame *frame = frame_at(space, lookup);
	Dwarf_Op memory[3];
	Dwarf_Op *ops;
	size_t len;

	return frame && dwarf_frame_register(frame, reg, memory, &ops, &len) == 0 &&
	       len == 0 && ops == memory;
}

static bool lacks_pair(struct dwfl_space *space, uint64_t lookup)
{
	PM_AUTO_FREE Dwarf_Frame *frame = frame_at(space, lookup);
	Dwarf_Op memory[3];
	Dwarf_Op *ops;
	size_t len;

	return frame && dwfl_space_cfa_reg(space, lookup) == SP &&
	       dwarf_frame_register(frame, RETURN_ADDRESS, memory, &ops, &len) == 0 &&
	       len == 2 && ops[0].atom == DW_OP_call_frame_cfa &&
	       ops[1].atom == DW_OP_plus_uconst && ops[1].number == PAIR_BYTES / 2;
}

bool dwfl_space_lacks_pair(struct dwfl_space *space, uint64_t lookup)
{
	return RETURN_ADDRESS != PC &&
	       (lacks_pair(space, lookup) || lacks_pair(space, lookup + 4));
}

size_t dwfl_space_unwind_with_pair(struct dwfl_space *space,
				   const struct pm_unw_regs *regs,
				   const struct pm_unw_stack *stack, size_t at,
				   struct dwfl_frame *frames, size_t max, bool *failed)
{
	struct pm_unw_regs caller;

	if (max < at + 2)
		return dwfl_space_unwind(space, regs, stack, frames, max, failed);
	/* At the resolver's last instruction, the pair is popped and the register has the
	 * return address. */
	space->popped[0].slot = regs->value[SP] - PAIR_BYTES / 2;
	space->popped[0].value = regs->value[RETURN_ADDRESS];
	space->popped_len = at == 0;
	space->kept_at = at + 1;
	dwfl_space_unwind(space, regs, stack, frames, at + 2, failed);
	space->kept_at = 0;
	space->popped_len = 0;
	if (space->len < at + 2)
		return space->len;
	caller = space->kept;
	caller.value[SP] += PAIR_BYTES;
	/* libdwfl does not treat the first frame as a caller, and would look up the code
	 * after the call. */
	caller.value[PC]--;
	dwfl_space_unwind(space, &caller, stack, frames + at + 1, max - at - 1, failed);
	frames[at + 1].pc++;
	frames[at + 1].activation = false;
	return at + 1 + space->len;
}

/* SPDX-License-Identifier: MIT */
/*
 * Unwinds Go's code by the table that Go programs have for their own tracebacks
 * (pm/go.h). The table gives the distance from the stack pointer up to the return address
 * for each instruction, and marks the outermost functions. Stripping keeps the table. It
 * is more accurate than the .debug_frame of an unstripped program, which shows neither
 * where stacks start nor where they are switched.
 */
#include "unwind-parts.h"

#include <string.h>

/* ---- functions ------------------------------------------------------------------------- */

/* Whether @name is @wanted, possibly with the suffix by which the linker distinguishes
 * two calling conventions of one function. */
static bool is_go_name(const char *name, const char *wanted)
{
	size_t len = strlen(wanted);

	return strncmp(name, wanted, len) == 0 &&
	       (name[len] == '\0' || strcmp(name + len, ".abi0") == 0);
}

static bool is_any_go_name(const char *name, const char *const *names, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (is_go_name(name, names[i]))
			return true;
	return false;
}

/* Whether a signal handler returns to this function. Its code is recognized by its bytes;
 * see trampoline.c. */
static bool is_go_signal_return(const char *name)
{
	return strncmp(name, "runtime.sigreturn", strlen("runtime.sigreturn")) == 0;
}

/*
 * Whether Go marks the function as outermost (abi.FuncFlagTopFrame); before 1.17 its name
 * decides. Go also marks signal handlers, but their caller is the interrupted function.
 * mcall leaves its goroutine for good: the function that it calls never returns.
 */
static bool is_go_outermost(const char *name, uint8_t flags)
{
	static const char *const handlers[] = { "runtime.sigtramp",
						"runtime.cgoSigtramp" };
	static const char *const known[] = { "runtime.goexit", "runtime.mstart",
					     "runtime.rt0_go" };

	if (is_any_go_name(name, handlers, PM_ARRAY_LEN(handlers)))
		return false;
	return (flags & PM_GO_FLAG_TOP_FRAME) ||
	       is_any_go_name(name, known, PM_ARRAY_LEN(known)) ||
	       strncmp(name, "_rt0_", strlen("_rt0_")) == 0;
}

/* Whether the runtime makes calls of this function look as if the interrupted instruction
 * had made them. */
static bool is_go_injected_call(const char *name)
{
	static const char *const known[] = { "runtime.asyncPreempt", "runtime.sigpanic" };

	return is_any_go_name(name, known, PM_ARRAY_LEN(known));
}

/*
 * Whether the function writes the stack pointer in a way that the table does not describe
 * (abi.FuncFlagSPWrite); before 1.17 its name decides. cgocallback makes frames of equal
 * size on both of its stacks, and its table is right (runtime/traceback.go).
 */
static bool may_go_function_write_sp(const char *name, uint8_t flags)
{
	static const char *const known[] = { "runtime.systemstack", "runtime.mcall",
					     "runtime.morestack",   "runtime.asmcgocall",
					     "runtime.gogo",        "runtime.nanotime1",
					     "runtime.walltime1" };

	if (is_go_name(name, "runtime.cgocallback"))
		return false;
	return (flags & PM_GO_FLAG_SP_WRITE) ||
	       is_any_go_name(name, known, PM_ARRAY_LEN(known));
}

/* ---- code ------------------------------------------------------------------------------- */

/* How the instructions before an address change the stack pointer. */
struct sp_writes {
	bool is_switched; /* it may point to another stack */
	bool has_fp; /* before that, the frame pointer was set to the current frame */
};

/*
 * Whether the code is a mov to rsp from a register or from memory, or an `and` on rsp.
 * These bytes can be part of another instruction; in that case, a chain ends earlier than
 * necessary.
 */
static bool does_x86_code_write_sp(const uint8_t *code, bool is_64)
{
	if (is_64 && (code[0] & 0xfc) == 0x48 &&
	    ((code[1] == 0x8b && (code[2] & 0x38) == 0x20) ||
	     (code[1] == 0x83 && code[2] == 0xe4)))
		return true;
	if (is_64)
		return (code[0] & 0xf9) == 0x48 && code[1] == 0x89 &&
		       (code[2] & 0xc7) == 0xc4;
	return (code[0] == 0x8b && (code[1] & 0x38) == 0x20) ||
	       (code[0] == 0x89 && (code[1] & 0xc7) == 0xc4) ||
	       (code[0] == 0x83 && code[1] == 0xe4);
}

/* lea n(%rsp),%rbp; mov %rsp,%rbp */
static bool does_x86_code_set_fp(const uint8_t *code)
{
	return (code[0] == 0x48 && code[1] == 0x8d && (code[2] | 0xc0) == 0xec &&
		code[3] == 0x24) ||
	       (code[0] == 0x48 && code[1] == 0x89 && code[2] == 0xe5);
}

/* mov sp, xN (Arm ARM C6.2: ADD immediate, of 0) */
static bool does_a64_code_write_sp(const uint8_t *code)
{
	uint32_t instruction;

	memcpy(&instruction, code, sizeof(instruction));
	return (instruction & 0xfffffc1f) == 0x9100001f;
}

/* Examines the code in [@from, @to). Returns false if it cannot be read. */
static bool find_sp_writes(struct pm_unw_module *module, uint64_t from, uint64_t to,
			   struct sp_writes *out)
{
	enum {
		CODE_BYTES_MAX = 2048, /* all functions that switch are short assembly */
		LOOK_BYTES = 4,
	};
	uint8_t code[CODE_BYTES_MAX + LOOK_BYTES] = { 0 };
	bool is_a64 = module->arch == PM_UNW_AARCH64;
	size_t len = to - from;

	if (to < from || to - from > CODE_BYTES_MAX ||
	    !pm_unw_module_read(module, from, code, len))
		return false;
	*out = (struct sp_writes){ 0 };
	for (size_t i = 0; i < len && !out->is_switched; i += is_a64 ? 4 : 1) {
		if (is_a64)
			out->is_switched = does_a64_code_write_sp(code + i);
		else
			out->is_switched = does_x86_code_write_sp(
				code + i, module->arch == PM_UNW_X86_64);
		out->has_fp |=
			module->arch == PM_UNW_X86_64 && does_x86_code_set_fp(code + i);
	}
	return true;
}

/* ---- rules ------------------------------------------------------------------------------ */

static void set_saved_slot(const struct pm_unw_arch_info *arch, struct pm_unw_rule *rule,
			   uint8_t reg, int64_t slot)
{
	for (unsigned int i = 0; i < arch->saved_len; i++)
		if (arch->saved[i] == reg && slot >= INT16_MIN) {
			rule->slot[i] = (int16_t)slot;
			rule->saved |= (uint16_t)(1u << i);
		}
}

/*
 * Makes the rule for a stack pointer that is @bytes below its value at the function's
 * entry. x86: a call has pushed the return address; a frame, if there is one, has the
 * caller's frame pointer on top. aarch64: a frame has the return address at its bottom
 * and the caller's frame pointer right below that (cmd/internal/obj/arm64/obj7.go);
 * without a frame the return address is in its register.
 */
static bool make_rule_of_frame_bytes(const struct pm_unw_arch_info *arch, int32_t bytes,
				     struct pm_unw_rule *out)
{
	int64_t words = bytes / arch->word_bytes;

	if (bytes < 0 || bytes % arch->word_bytes != 0 ||
	    bytes > INT32_MAX - arch->word_bytes)
		return false;
	out->cfa_reg = arch->sp;
	if (arch->ra_is_link) {
		out->cfa_offset = bytes;
		if (words == 0)
			return true;
		if (words >= INT16_MAX)
			return false;
		set_saved_slot(arch, out, arch->ra, -words);
		set_saved_slot(arch, out, arch->fp, -words - 1);
		return true;
	}
	out->cfa_offset = bytes + arch->word_bytes;
	set_saved_slot(arch, out, arch->ra, -1);
	if (words > 0 && arch->word_bytes == 8)
		set_saved_slot(arch, out, arch->fp, -2);
	return true;
}

/* Makes the rule after a switch of stacks. It uses the frame pointer, which still points
 * to the first stack. */
static void make_rule_of_fp(const struct pm_unw_arch_info *arch, struct pm_unw_rule *out)
{
	out->cfa_reg = arch->fp;
	out->cfa_offset = 2 * arch->word_bytes;
	set_saved_slot(arch, out, arch->ra, -1);
	set_saved_slot(arch, out, arch->fp, -2);
}

/* Decodes the row of @svma, which is in @function. */
static int decode_go_function(struct pm_unw_module *module, uint64_t svma,
			      const struct pm_go_function *function, uint32_t *work_left,
			      enum pm_unw_found *found, struct pm_unw_rule *rule)
{
	const struct pm_unw_arch_info *arch = &pm_unw_arch_infos[module->arch];
	const char *name = pm_go_name(&module->go->table, function);
	struct sp_writes writes = { 0 };
	uint32_t steps = work_left ? *work_left / PM_UNW_COST_OPERATION : 0;
	int32_t bytes;
	int ret;

	/* Code of another language, which Go's linker has placed between Go functions. */
	if (!name || function->sp == 0)
		return -ENOENT;
	*found = PM_UNW_FOUND_NO_CFI;
	if (is_go_signal_return(name))
		return 0;
	if (is_go_outermost(name, function->flags)) {
		*found = PM_UNW_FOUND_ROOT;
		return 0;
	}
	if (may_go_function_write_sp(name, function->flags) &&
	    !find_sp_writes(module, function->entry, svma, &writes))
		writes.is_switched = true;
	if (writes.is_switched) {
		if (is_go_name(name, "runtime.mcall"))
			*found = PM_UNW_FOUND_ROOT;
		else if (writes.has_fp)
			*found = PM_UNW_FOUND_RULE;
		else
			*found = PM_UNW_FOUND_OTHER_STACK;
		make_rule_of_fp(arch, rule);
		return 0;
	}
	ret = pm_go_stack_bytes(&module->go->table, function, svma,
				work_left ? &steps : NULL, &bytes);
	if (work_left)
		pm_unw_take_work(work_left, *work_left - steps * PM_UNW_COST_OPERATION);
	if (ret == -EDQUOT)
		return ret;
	/* For calls injected on aarch64, the return address of the interrupted function
	 * is below this one. */
	if (ret < 0 || (is_go_injected_call(name) && arch->ra_is_link) ||
	    !make_rule_of_frame_bytes(arch, bytes, rule))
		return 0;
	rule->signal = is_go_injected_call(name);
	*found = PM_UNW_FOUND_RULE;
	return 0;
}

int pm_unw_go_decode(struct pm_unw_module *module, uint64_t svma, uint32_t *work_left,
		     enum pm_unw_found *found, struct pm_unw_rule *rule)
{
	struct pm_go_function function;

	pm_unw_task_settle(module);
	if (module->go_named && !module->go_tried) {
		if (module->task || !pm_unw_may_now(module, pm_unw_go_cost(module))) {
			module->was_pending = true;
			return pm_unw_do_later(module, PM_UNW_WANTED_GO, -1);
		}
		module->go_tried = true;
		pm_unw_go_open(module);
	}
	if (!module->go || pm_go_find(&module->go->table, svma, &function) < 0)
		return -ENOENT;
	memset(rule, 0, sizeof(*rule));
	rule->saved = PM_UNW_RULE_GO;
	return decode_go_function(module, svma, &function, work_left, found, rule);
}

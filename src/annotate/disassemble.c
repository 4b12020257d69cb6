/* SPDX-License-Identifier: MIT */
/* Disassembles bytes with capstone. The bytes may be anything, but every step makes
 * progress. */
#include "annotate-internal.h"

#include <capstone.h>
#include <elf.h>
#include <string.h>

enum {
	/* Distance to the next possible instruction after an invalid one. */
	STEP_X86 = 1,
	STEP_AARCH64 = 4,
};

struct engine {
	csh handle;
	bool open;
	cs_insn *insn;
	uint8_t step;
	uint16_t machine;
};

static void close_capstone_engine(struct engine *engine)
{
	if (engine->insn)
		cs_free(engine->insn, 1);
	if (engine->open)
		cs_close(&engine->handle);
}

/* Maps the architecture to capstone's. */
static int open_capstone_engine(struct engine *engine,
				const struct pm_annotate_machine *machine)
{
	cs_arch arch = CS_ARCH_X86;
	cs_mode mode = CS_MODE_LITTLE_ENDIAN;

	*engine = (struct engine){ .step = STEP_X86, .machine = machine->machine };
	switch (machine->machine) {
	case EM_X86_64:
		/* x32 also runs 64-bit code. */
		mode |= CS_MODE_64;
		break;
	case EM_386:
		mode |= CS_MODE_32;
		break;
	case EM_AARCH64:
		arch = CS_ARCH_ARM64;
		engine->step = STEP_AARCH64;
		break;
	default:
		return -ENOTSUP;
	}
	if (cs_open(arch, mode, &engine->handle) != CS_ERR_OK)
		return -ENOTSUP; /* capstone was built without it */
	engine->open = true;
	cs_option(engine->handle, CS_OPT_DETAIL, CS_OPT_ON);
	/* Use the syntax of objdump and perf. */
	if (arch == CS_ARCH_X86)
		cs_option(engine->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	engine->insn = cs_malloc(engine->handle);
	if (!engine->insn)
		return -ENOMEM;
	return 0;
}

/* ---- one instruction ------------------------------------------------------------------- */

static void classify_x86_insn(const cs_insn *from, struct pm_annotate_insn *out)
{
	const cs_x86 *x86 = &from->detail->x86;

	if (out->kind == PM_INSN_BRANCH &&
	    (from->id == X86_INS_JMP || from->id == X86_INS_LJMP))
		out->kind = PM_INSN_JUMP;
	if (out->kind != PM_INSN_RETURN && x86->op_count == 1 &&
	    x86->operands[0].type == X86_OP_IMM) {
		out->has_target = true;
		out->target = (uint64_t)x86->operands[0].imm;
	}
}

static void classify_aarch64_insn(const cs_insn *from, struct pm_annotate_insn *out)
{
	const cs_arm64 *arm = &from->detail->arm64;
	const cs_arm64_op *last = NULL;

	if (arm->op_count > 0 && arm->op_count <= 8)
		last = &arm->operands[arm->op_count - 1];

	if (out->kind == PM_INSN_BRANCH &&
	    (from->id == ARM64_INS_B || from->id == ARM64_INS_BR) &&
	    (arm->cc == ARM64_CC_INVALID || arm->cc == ARM64_CC_AL))
		out->kind = PM_INSN_JUMP;
	if (out->kind != PM_INSN_RETURN && last && last->type == ARM64_OP_IMM) {
		out->has_target = true;
		out->target = (uint64_t)last->imm;
	}
}

static void classify_insn_flow(const struct engine *engine, const cs_insn *from,
			       struct pm_annotate_insn *out)
{
	/* If the instruction is in several groups, the later test is the more specific
	 * one: a call is also a jump. */
	if (cs_insn_group(engine->handle, from, CS_GRP_JUMP))
		out->kind = PM_INSN_BRANCH;
	if (cs_insn_group(engine->handle, from, CS_GRP_CALL))
		out->kind = PM_INSN_CALL;
	if (cs_insn_group(engine->handle, from, CS_GRP_RET) ||
	    cs_insn_group(engine->handle, from, CS_GRP_IRET))
		out->kind = PM_INSN_RETURN;
	if (engine->machine == EM_AARCH64 &&
	    (from->id == ARM64_INS_BL || from->id == ARM64_INS_BLR))
		out->kind = PM_INSN_CALL;
	if (out->kind == PM_INSN_PLAIN)
		return;
	if (engine->machine == EM_AARCH64)
		classify_aarch64_insn(from, out);
	else
		classify_x86_insn(from, out);
	if (engine->machine == EM_386)
		out->target &= UINT32_MAX;
}

static int append_insn(struct pm_annotate_code *code, const char *mnemonic,
		       const char *operands, struct pm_annotate_insn *insn)
{
	insn->to = PM_PROFILE_NONE;
	insn->mnemonic = pm_annotate_texts_add(code->texts, mnemonic);
	insn->operands = pm_annotate_texts_add(code->texts, operands);
	if (!insn->mnemonic || !insn->operands)
		return -ENOMEM;
	return pm_vec_push(&code->insns, *insn);
}

static int append_invalid_bytes(struct pm_annotate_code *code, const uint8_t *bytes,
				uint8_t len, uint64_t address)
{
	struct pm_annotate_insn insn = { .address = address,
					 .size = len,
					 .kind = PM_INSN_BAD };
	char operands[64];
	size_t at = 0;

	memcpy(insn.bytes, bytes, len);
	for (size_t i = 0; i < len; i++)
		at += (size_t)snprintf(operands + at, sizeof(operands) - at, "%s0x%02x",
				       i == 0 ? "" : ", ", bytes[i]);
	return append_insn(code, ".byte", operands, &insn);
}

int pm_annotate_disassemble(struct pm_annotate_code *code,
			    const struct pm_annotate_machine *machine,
			    const uint8_t *bytes, size_t len, uint64_t address)
{
	PM_CLEANUP(close_capstone_engine) struct engine engine;
	size_t left = len;
	int ret = open_capstone_engine(&engine, machine);

	if (!code->texts && !(code->texts = pm_annotate_texts_new()))
		return -ENOMEM;
	while (ret == 0 && left > 0) {
		const uint8_t *at = bytes + (len - left);
		size_t rest = left;
		uint64_t here = address + (len - left), next = here;
		struct pm_annotate_insn insn = { .address = here };

		if (!cs_disasm_iter(engine.handle, &at, &rest, &next, engine.insn) ||
		    engine.insn->size == 0 || engine.insn->size > left ||
		    engine.insn->size > sizeof(insn.bytes)) {
			uint8_t step = (uint8_t)PM_MIN(left, engine.step);

			ret = append_invalid_bytes(code, bytes + (len - left), step,
						   here);
			left -= step;
			continue;
		}
		insn.size = (uint8_t)engine.insn->size;
		memcpy(insn.bytes, bytes + (len - left), insn.size);
		classify_insn_flow(&engine, engine.insn, &insn);
		ret = append_insn(code, engine.insn->mnemonic, engine.insn->op_str,
				  &insn);
		left -= insn.size;
	}
	return ret;
}

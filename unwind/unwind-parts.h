/* SPDX-License-Identifier: MIT */
/*
 * The inside of the unwinder. Each file does one step:
 *   module.c  ELF file → program headers and CFI regions
 *   region.c  lazily read bytes of a module
 *   eh-frame-search.c  .eh_frame that no header points to
 *   debug-frame.c  .debug_frame that is compressed or in another file
 *   parts.c   code of modules that are made from parts
 *   copy.c    modules taken apart
 *   encoded.c  encoded pointers
 *   fde-table.c  the memory of tables of FDEs
 *   fde.c     svma → the FDE of a section that covers it
 *   fde-find.c  the same, in all sections of a module
 *   task.c    work that takes too long while a sample waits, done by another thread
 *   cfi.c     FDE, svma → the CFI row (DWARF 5 §6.4.1: a row of the table)
 *   go-table.c  finds Go's own table of frame sizes
 *   go.c      that table → rules
 *   go-callers.c  the callers of Go's runtime on a goroutine's stack
 *   rules.c   row → interned rule, found again by (module, svma)
 *   expr.c    DWARF expressions in rows
 *   code.c    the calls in code
 *   trampoline.c  signal trampolines, by their bytes
 *   step.c    rule, or no rule, registers → the caller's registers
 *   x86-exit.c  code without a rule → the place of its return address
 *   start.c   outermost frames that no rule marks
 *   arch.c    the differences between architectures
 *   unwind.c  the loop over frames and its guards
 *   lanes.c   the same for x86-64, faster, and for several chains at once
 */
#pragma once

#include "pm/go.h"
#include "pm/unwind.h"

#include <stdatomic.h>

/* ---- work ---------------------------------------------------------------------------- */

/* The costs of work, in approximate nanoseconds of a slow machine. */
enum {
	PM_UNW_COST_OPERATION = 16, /* of an expression, or one step through Go's
	                             * tables */
	PM_UNW_COST_INSTRUCTION = 12, /* of CFI */
	PM_UNW_COST_REMEMBER = 40, /* extra, for an instruction that copies a row */
	PM_UNW_COST_LOOKUP = 700, /* of an address that is in no cache */
	PM_UNW_COST_ROW = 100, /* a step by the general form */
	PM_UNW_COST_STEP = 50, /* a step with all registers, or by the ladder below CFI */
	PM_UNW_COST_READ = 100, /* of code that is not cached */
	PM_UNW_COST_CODE = 100, /* an instruction of code that the search follows */
};

/* Subtracts @cost from @left, down to 0 at most. If @left is NULL, there is no limit. */
static inline void pm_unw_take_work(uint32_t *left, uint32_t cost)
{
	if (left)
		*left -= cost < *left ? cost : *left;
}

/* Returns the work that a chain in @space may use. */
static inline uint32_t pm_unw_work_of(const struct pm_unw_space *space)
{
	return space->work_left && *space->work_left < PM_UNW_WORK_MAX ? *space->work_left
								       : PM_UNW_WORK_MAX;
}

/* ---- arch.c -------------------------------------------------------------------------- */

enum {
	PM_UNW_SAVED_MAX = 12, /* registers that a rule can describe, with the pc */
	PM_UNW_RULE_RA_SIGNED = 1 << 15, /* in pm_unw_rule.saved */
	PM_UNW_RULE_GO = 1 << 14, /* also in `saved`: the rule is from Go's table */
};

/* DWARF numbers, and the ABI's defaults for registers without a CFI rule. */
struct pm_unw_arch_info {
	uint8_t regs; /* number of tracked registers: 0 to regs - 1 */
	uint8_t sp, pc, fp;
	uint8_t ra; /* the column of the return address in CFI */
	uint8_t word_bytes; /* of an address and of a stack slot: 4 or 8 */
	/* `ra` is a link register, which calls overwrite, and not a pseudo-register for
	 * the pc. After the pc has been read from it, its value in the caller is
	 * unknown. */
	bool ra_is_link;
	uint8_t saved_len;
	uint8_t saved[PM_UNW_SAVED_MAX]; /* a rule's slots in order; the last is `ra` */
	uint64_t callee_saved; /* bit n: a called function preserves register n */
	uint64_t address_mask; /* the significant bits of an address; arithmetic wraps at
	                        * them */
	uint16_t elf_machine; /* EM_* */
	uint8_t elf_class; /* ELFCLASS* */
};
extern const struct pm_unw_arch_info pm_unw_arch_infos[PM_UNW_ARCH_COUNT];

/* aarch64: returns @address without its authentication code, as XPACLRI does for user
 * space. */
uint64_t pm_unw_strip_pac(const struct pm_unw_space *space, uint64_t address);

/* ---- region.c ------------------------------------------------------------------------ */

/*
 * A range of bytes of a module. If the module is a file, its bytes are read on demand in
 * pieces of 64 KiB, into a reserved range of memory. Unlike a mapping of the file, that
 * memory cannot raise SIGBUS when the owner truncates the file. Pieces that are never
 * needed cost nothing.
 */
struct pm_unw_region {
	uint64_t svma;
	size_t len; /* 0: the region is empty */
	uint8_t *data;
	uint64_t *pieces; /* bitmap of the pieces that were read; NULL: all bytes are
	                   * present */
	uint64_t *missing; /* bitmap of the pieces that cannot be read; allocated with
	                    * `pieces` */
	int fd; /* borrowed from the module */
	uint64_t file_offset;
	bool mapped; /* data is a mapping of our own, which munmap() releases */
	bool owned; /* data is from malloc */
	bool open_ended; /* `len` is a guess; a terminator marks the end */
	size_t budget; /* bytes that this region has reserved in the limit of all
	                * regions */
};

/* Reserves @len bytes within the common limit of all regions and tables. Returns false,
 * without reserving any, if the limit would be exceeded. */
bool pm_unw_budget_take(size_t len);
void pm_unw_budget_give(size_t len);
/* Whether that limit may be the only reason why a piece of a file was not read. */
bool pm_unw_budget_is_short(void);
/* Returns a pointer to the bytes [offset, offset + len) of the region, or NULL if they
 * cannot be read. */
const uint8_t *pm_unw_region_need(struct pm_unw_region *region, size_t offset,
				  size_t len);
/* Opens a region over [offset, offset + len) of the module's file or image. On failure
 * the region stays empty. */
void pm_unw_region_open(struct pm_unw_module *module, struct pm_unw_region *region,
			uint64_t svma, uint64_t offset, uint64_t len);
/* Turns the region into a copy of @bytes. Returns false, without any change, if memory is
 * out. */
bool pm_unw_region_copy(struct pm_unw_region *region, uint64_t svma, const void *bytes,
			size_t len);
void pm_unw_region_release(struct pm_unw_region *region);
/* Discards the bytes that were read. No pointer into them may be in use. */
void pm_unw_region_forget(struct pm_unw_region *region);
/* Reads all @len bytes, or returns false. */
bool pm_unw_read_fully(int fd, void *to, size_t len, uint64_t offset);

/* ---- module.c ------------------------------------------------------------------------ */

struct pm_unw_load {
	uint64_t vaddr, offset, filesz;
	bool executable;
	bool writable; /* of an ELF file's segment: PF_W */
	bool opened; /* whether opening `region` was tried */
	struct pm_unw_region region; /* the segment's code, read if there is no CFI */
};

/* The start of an FDE's range, and the FDE's offset. A scan collects these if no header
 * has a sorted table of the FDEs. */
struct pm_unw_fde_place {
	uint64_t start; /* svma */
	uint32_t offset; /* in the region */
	uint32_t len; /* of the range; UINT32_MAX: at least this long */
};

struct pm_unw_fde_table {
	PM_VEC(struct pm_unw_fde_place) places; /* sorted by start */
	bool scanned;
	bool too_large; /* `places` is empty, because it would be too large */
};

struct pm_unw_module {
	uint32_t id; /* unique in the process and never reused; caches use it as their
	              * key */
	enum pm_unw_arch arch;
	int fd; /* -1 for an image in memory */
	uint8_t *image;
	size_t image_len;
	PM_VEC(struct pm_unw_load) loads;
	uint64_t entry; /* svma of the entry point, 0: none */
	uint64_t page_bytes; /* page size of the machine that maps the module */
	uint64_t svma_low; /* cache keys are relative to this; no segment starts below
	                    * it */
	struct pm_unw_region eh_frame_hdr, eh_frame, debug_frame;
	/* Offset of the header's sorted table (LSB 10.6.2); 0: there is none, or it
	 * cannot be used. */
	size_t hdr_table;
	size_t hdr_count;
	struct pm_unw_fde_table eh_scanned, debug_scanned;
	/* Code without a file: pieces sorted by svma, which do not touch. The module owns
	 * their data. */
	PM_VEC(struct pm_unw_part) code;
	bool hdr_sound; /* some rows of the header's table were checked and found
	                 * correct */
	bool no_sections; /* the file has no section headers */
	/* An address without CFI was looked up, and the sources below were tried. */
	bool gap_seen;
	bool debug_packed; /* there is a compressed .debug_frame */
	uint64_t debug_packed_bytes;
	bool go_named; /* a section has one of the names that Go uses */
	bool go_tried; /* Go's table was searched for */
	struct pm_unw_go *go; /* Go's table; NULL: none, or not searched for */
	pm_unw_open_debug_fn open_debug; /* NULL: none */
	void *open_debug_user;
	bool gap_searched; /* the file itself was searched for CFI that .eh_frame lacks */
	bool was_pending; /* see struct pm_unw_module_tables */
	uint64_t dynamic_offset, dynamic_bytes; /* in the file; 0 bytes: there is none */
	const struct pm_unw_helper *helper; /* borrowed; NULL: none */
	struct pm_unw_task *task; /* running, or done but not settled; NULL: none */
	const atomic_bool
		*cancelled; /* of the task that this module belongs to; NULL: none */
};

/* Whether libelf may read the file: libelf allocates as much memory as the header asks
 * for. */
bool pm_unw_elf_is_modest(int fd);

/* Whether a section of this name holds .debug_frame, plain or compressed. */
bool pm_unw_is_debug_frame(const char *section);

/* Gives the module a new id, which invalidates all cached rules of its code. */
void pm_unw_module_renew(struct pm_unw_module *module);

/* From the start of the first code segment to the end of the last: svma [start, end). A
 * hostile file has more segments than can be searched for each FDE. */
struct pm_unw_code_span {
	uint64_t start, end;
};
struct pm_unw_code_span pm_unw_module_code_span(const struct pm_unw_module *module);

/* ---- encoded.c ----------------------------------------------------------------------- */

/*
 * Reads a pointer of @encoding (LSB 10.5.1) at @reader->pos; @svma is the address of
 * reader->data. Only absolute and pc-relative pointers are supported; for others, the
 * reader fails.
 */
uint64_t pm_unw_read_encoded(const struct pm_unw_arch_info *arch,
			     struct pm_reader *reader, uint8_t encoding, uint64_t svma);

/* Reads a word of the architecture's size. */
uint64_t pm_unw_read_word(const struct pm_unw_arch_info *arch, struct pm_reader *reader);

/* ---- fde-table.c --------------------------------------------------------------------- */

struct pm_unw_fde;
/* Appends an FDE. Returns false if the table would exceed the memory limit. */
bool pm_unw_fde_table_push(struct pm_unw_fde_table *table, const struct pm_unw_fde *fde,
			   size_t offset);
/* Grows the table to @cap places. Returns false, without any change, if it would exceed
 * the memory limit. */
bool pm_unw_fde_table_resize(struct pm_unw_fde_table *table, size_t cap);
void pm_unw_fde_table_release(struct pm_unw_fde_table *table);

/* ---- debug-frame.c ------------------------------------------------------------------- */

/*
 * Searches the remaining sources for CFI, unless that was done before. Returns 0, 1 if an
 * .eh_frame may have been found, or -EINPROGRESS.
 */
int pm_unw_module_fill_gap(struct pm_unw_module *module);
/* Decompresses the file's own .debug_frame. */
void pm_unw_unpack_own(struct pm_unw_module *module);

/* ---- eh-frame-search.c --------------------------------------------------------------- */

/* Finds the .eh_frame of a module whose headers do not say where it is. Returns false if
 * there is none. */
bool pm_unw_eh_frame_search(struct pm_unw_module *module);
/* Returns the approximate number of bytes that the search reads. */
uint64_t pm_unw_eh_frame_search_cost(const struct pm_unw_module *module);

/* ---- parts.c ------------------------------------------------------------------------- */

/* Adds copies of the parts. Returns 0 or -ENOMEM. */
int pm_unw_code_add(struct pm_unw_module *module, const struct pm_unw_part *parts,
		    size_t len);
bool pm_unw_code_read(const struct pm_unw_module *module, uint64_t svma, void *out,
		      size_t len);
void pm_unw_code_release(struct pm_unw_module *module);

/* ---- fde.c, fde-find.c ------------------------------------------------------------------ */

/* An FDE and its CIE, decoded as far as needed to run them. Strings and programs stay in
 * place in the region. */
struct pm_unw_fde {
	const struct pm_unw_arch_info *arch;
	uint64_t start, end; /* svma [start, end) */
	const uint8_t *program, *program_end;
	const uint8_t *initial, *initial_end; /* the CIE's initial instructions */
	uint64_t code_align;
	int64_t data_align;
	uint32_t ra_reg;
	bool signal; /* augmentation 'S': a signal frame, whose caller was interrupted and
	              * made no call */
	/* For DW_CFA_set_loc. */
	uint8_t encoding;
	uint64_t region_svma;
	const uint8_t *region_data;
};

/* Returns all FDEs of the current .eh_frame, sorted by address. */
const struct pm_unw_fde_table *pm_unw_fde_scan(struct pm_unw_module *module);
/* Scans .debug_frame in the same way. */
void pm_unw_fde_scan_debug(struct pm_unw_module *module);

/* Returns the length of .eh_frame. If `len` is a guess, returns the length up to the
 * terminator. */
size_t pm_unw_eh_frame_len(struct pm_unw_module *module);

/* Finds the FDE that covers @svma. Returns 0; -ENOENT: none does; -EBADMSG: the entry is
 * not valid; -ENOBUFS: unknown for now, because the regions use too much memory;
 * -EINPROGRESS: unknown until a table has been made; -EFBIG: the table would be too
 * large, and is not made. */
int pm_unw_fde_find(struct pm_unw_module *module, uint64_t svma, struct pm_unw_fde *out);
/* The same for .eh_frame only. */
int pm_unw_fde_in_eh_frame(struct pm_unw_module *module, uint64_t svma,
			   struct pm_unw_fde *out);
int pm_unw_fde_in_debug_frame(struct pm_unw_module *module, uint64_t svma,
			      struct pm_unw_fde *out);

/* ---- cfi.c --------------------------------------------------------------------------- */

enum pm_unw_rule_kind {
	PM_UNW_RULE_UNSPECIFIED, /* the ABI's default: callee-saved registers are
	                          * unchanged, others are lost */
	PM_UNW_RULE_UNDEFINED,
	PM_UNW_RULE_SAME,
	PM_UNW_RULE_OFFSET, /* *(CFA + value) */
	PM_UNW_RULE_VAL_OFFSET, /* CFA + value */
	PM_UNW_RULE_REGISTER, /* the register with number `value` */
	PM_UNW_RULE_EXPRESSION, /* *(expression) */
	PM_UNW_RULE_VAL_EXPRESSION, /* expression */
};

struct pm_unw_reg_rule {
	uint32_t kind;
	uint32_t expr_len;
	int64_t value; /* offset or register number; unused for expressions */
	const uint8_t *expr; /* in place in the module's region */
};

/* Compared and hashed as bytes: always start from a zeroed row. */
struct pm_unw_row {
	uint64_t cfa_is_expr; /* 0 or 1; this wide to avoid padding */
	/* If the CFA is an expression, these two have the values from before it. */
	uint64_t cfa_reg;
	int64_t cfa_offset;
	const uint8_t *cfa_expr;
	uint64_t cfa_expr_len;
	struct pm_unw_reg_rule regs[PM_UNW_REGS_MAX];
	uint32_t ra_reg;
	uint16_t signal;
	uint16_t ra_signed; /* aarch64: RA_SIGN_STATE, the return address has a PAC */
	/* Bit n: register n was saved in a slot that was above the stack pointer when it
	 * was saved. */
	uint64_t pushed;
};

/*
 * Runs the FDE's program up to @svma, which the FDE covers. Subtracts the work done from
 * @work_left (NULL: no limit). Returns 0, -EBADMSG, -ENOMEM, or -EDQUOT if @work_left
 * does not suffice.
 */
int pm_unw_cfi_row_within(const struct pm_unw_fde *fde, uint64_t svma,
			  uint32_t *work_left, struct pm_unw_row *out);
int pm_unw_cfi_row(const struct pm_unw_fde *fde, uint64_t svma, struct pm_unw_row *out);

/*
 * Compilers do not say when an epilogue pops a register. Afterwards, CFI still names a
 * slot below the stack pointer, which a live unwinder may read, but which a copied stack
 * does not have. After the pop the register itself holds the value, and the rule becomes
 * PM_UNW_RULE_SAME. A leaf function that saved the register in the red zone, never above
 * the stack pointer, keeps its rule: there the register may hold anything.
 */
void pm_unw_row_keep_popped(const struct pm_unw_arch_info *arch, struct pm_unw_row *row);

enum {
	PM_UNW_PAIR_BYTES = 16, /* x16 and x30, which the first entry of a PLT pushes */
};

/*
 * glibc's resolver for aarch64 (_dl_runtime_resolve) is entered from the PLT, which has
 * pushed a pair: x16 and, above it, the return address. The resolver's CFI knows that
 * slot, but its CFA is below the pair. By definition, the CFA is the caller's stack
 * pointer, and everything pushed is below it (DWARF 5 §6.4). This function recognizes
 * such a @row, of @fde at @svma, by the place of its return address. It moves the CFA
 * above the pair, and all slots stay where they are. At the first instruction the row
 * does not show this yet. That instruction does nothing, and the next row is valid there,
 * too. For @work_left, see pm_unw_cfi_row_within(). Returns 0 or -EDQUOT.
 */
int pm_unw_row_count_pair(struct pm_unw_module *module, const struct pm_unw_fde *fde,
			  uint64_t svma, uint32_t *work_left, struct pm_unw_row *row);

/* ---- expr.c -------------------------------------------------------------------------- */

enum {
	PM_UNW_EXPR_STEPS_MAX = 4096,
	PM_UNW_EXPR_STACK_MAX = 64,
};

struct pm_unw_expr_input {
	const uint8_t *expr;
	size_t len;
	const struct pm_unw_regs *regs;
	const struct pm_unw_stack *stack;
	/* The initial stack entry for register rules; NULL when the CFA itself is
	 * computed. */
	const uint64_t *cfa;
	uint64_t bias; /* added to DW_OP_addr */
	uint32_t *work_left; /* the work done is subtracted; NULL: no limit */
};

/* Evaluates the expression. Returns false and sets @stop if that fails. */
bool pm_unw_expr_eval(const struct pm_unw_expr_input *input, uint64_t *out,
		      enum pm_unw_stop *stop);

/* ---- memory -------------------------------------------------------------------------- */

enum {
	/* An address within this distance above the copied bytes is assumed to be on the
	 * same stack. */
	PM_UNW_STACK_SPAN_MAX = 1 << 28,
};

/* Returns the @len bytes at @address, or NULL if no piece has them; @stop is then
 * TRUNCATED or BAD_MEMORY. */
static inline const uint8_t *pm_unw_stack_find(const struct pm_unw_stack *stack,
					       uint64_t address, size_t len,
					       enum pm_unw_stop *stop)
{
	for (const struct pm_unw_stack *piece = stack; piece; piece = piece->above) {
		uint64_t offset = address - piece->start;

		if (offset < piece->len && len <= piece->len - offset)
			return piece->data + offset;
	}
	*stop = address - stack->start < PM_UNW_STACK_SPAN_MAX ? PM_UNW_STOP_TRUNCATED
							       : PM_UNW_STOP_BAD_MEMORY;
	if (stack->missed)
		*stack->missed = address;
	return NULL;
}

/* Reads 8 bytes of the stack. Returns false if they are missing; @stop is then TRUNCATED
 * or BAD_MEMORY. */
static inline bool pm_unw_stack_u64(const struct pm_unw_stack *stack, uint64_t address,
				    uint64_t *out, enum pm_unw_stop *stop)
{
	const uint8_t *bytes = pm_unw_stack_find(stack, address, 8, stop);

	if (!bytes)
		return false;
	__builtin_memcpy(out, bytes, 8);
	return true;
}

/* The same for a word of the architecture; @address wraps at the architecture's address
 * size. */
static inline bool pm_unw_stack_word(const struct pm_unw_arch_info *arch,
				     const struct pm_unw_stack *stack, uint64_t address,
				     uint64_t *out, enum pm_unw_stop *stop)
{
	const uint8_t *bytes;
	uint32_t half;

	if (arch->word_bytes == 8)
		return pm_unw_stack_u64(stack, address, out, stop);
	bytes = pm_unw_stack_find(stack, address & arch->address_mask, 4, stop);
	if (!bytes)
		return false;
	__builtin_memcpy(&half, bytes, 4);
	*out = half;
	return true;
}

/* ---- x86-exit.c ---------------------------------------------------------------------- */

/* Where interrupted code has its return address. */
enum pm_unw_exit {
	PM_UNW_EXIT_UNKNOWN,
	PM_UNW_EXIT_BY_FP, /* above the word that the frame pointer points at */
	/* On a separate stack, which rsp does not point at: code that GHC has
	 * compiled. */
	PM_UNW_EXIT_ELSEWHERE,
	/* At the place that a row gives, relative to the stack pointer or the frame
	 * pointer, as it does for the caller's registers. This must be the last constant:
	 * see pm_unw_exit_find(). */
	PM_UNW_EXIT_BY_ROW,
};

/* Finds the return address of x86-64 code that was interrupted at avma @pc; sets @out
 * only for _BY_ROW. Subtracts the work done from @work_left (NULL: no limit). */
enum pm_unw_exit pm_unw_x86_find_exit(const struct pm_unw_space *space, uint64_t pc,
				      uint32_t *work_left, struct pm_unw_row *out);

/* ---- rules.c ------------------------------------------------------------------------- */

/*
 * The form that nearly all rows can be reduced to: CFA = register + offset; the return
 * address and some callee-saved registers are in stack slots, at whole words from the
 * CFA. Compared as bytes.
 */
struct pm_unw_rule {
	int32_t cfa_offset;
	uint8_t cfa_reg;
	uint8_t signal;
	/* Bit i: slot[i] is the place of register i in the architecture's order. If the
	 * bit of the last register, the return address, is clear, it is still in its
	 * register (aarch64 only). Bit 15: it has a PAC. Bit 14: the rule is from Go's
	 * table. */
	uint16_t saved;
	int16_t slot[PM_UNW_SAVED_MAX]; /* in words, relative to the CFA */
};

/* The result of a look-up. */
enum pm_unw_found {
	PM_UNW_FOUND_RULE, /* rules.data[index] */
	PM_UNW_FOUND_ROW, /* rows.data[index]: the general form */
	PM_UNW_FOUND_ROOT, /* the return address is undefined: the outermost frame */
	PM_UNW_FOUND_NO_CFI,
	PM_UNW_FOUND_BAD_CFI,
	PM_UNW_FOUND_OTHER_STACK, /* the caller is on another stack; no rule says where */
	PM_UNW_FOUND_TOO_LARGE, /* the table of FDEs would be too large, and was not
	                         * made */
	/* The table is being made. Never stored in cache slots. */
	PM_UNW_FOUND_PENDING,
};

enum {
	/* Only in cache slots: the rule has not been looked up yet. */
	PM_UNW_FOUND_NOT_YET = PM_UNW_FOUND_PENDING,
};

/*
 * The one-word form of nearly all x86-64 rules: CFA = rsp or rbp + words, the return
 * address right below it, rbp saved or not. It does not say which other registers are
 * saved. 0: the rule does not have this form.
 */
enum {
	PM_UNW_QUICK_VALID = 1,
	PM_UNW_QUICK_BY_FP = 2, /* the CFA is relative to rbp; otherwise to rsp */
	PM_UNW_QUICK_SLOT_SHIFT = 2, /* words from the CFA down to the saved rbp; 1: not
	                              * saved */
	PM_UNW_QUICK_SLOT_MAX = 255,
	PM_UNW_QUICK_GO_SHIFT = 10, /* 1: from Go's table */
	PM_UNW_QUICK_CFA_SHIFT = 11, /* words from the register to the CFA, signed */
	PM_UNW_QUICK_CFA_MAX = (1 << 20) - 1,
};

/* Whether the address after a lookup address is a return address (pm_unw_is_return()). */
enum pm_unw_returns {
	PM_UNW_RETURNS_UNKNOWN,
	PM_UNW_RETURNS_NO,
	PM_UNW_RETURNS_YES,
};

enum {
	PM_UNW_OFF_TRAMPOLINE = 1,
	PM_UNW_EXIT_SHIFT = 1,
};

struct pm_unw_lookup {
	enum pm_unw_found found;
	/* For PM_UNW_FOUND_NO_CFI: bit 0 is PM_UNW_OFF_TRAMPOLINE if
	 * pm_unw_is_near_trampoline() is false; the bits above it are the result of
	 * pm_unw_exit_find(). */
	uint32_t index;
	uint32_t quick;
	/* The address is the last one of its FDE, and no call ends there. The rule is
	 * valid for the code, but not for a frame that returns to the next address. */
	bool is_last;
};

/*
 * A key consists of the module's id and, in the low 40 bits, the svma relative to the
 * module's svma_low. Addresses without a key are decoded each time: code more than 1 TiB
 * above svma_low, and modules with an id beyond sixteen million.
 */
struct pm_unw_cache_slot {
	uint64_t key; /* 0: free; ids start at 1 */
	uint32_t found : 3; /* enum pm_unw_found, or PM_UNW_FOUND_NOT_YET */
	uint32_t returns : 2; /* enum pm_unw_returns */
	uint32_t is_last : 1;
	uint32_t no_start : 1; /* neither this frame nor its caller is the outermost */
	uint32_t index : 25;
	uint32_t quick;
};

enum {
	PM_UNW_CACHE_BITS = 15,
	PM_UNW_CACHE_SETS = 1 << PM_UNW_CACHE_BITS, /* each with two slots of 16 bytes: 1
	                                             * MiB */
	PM_UNW_KEY_SVMA_BITS = 40,
	PM_UNW_MAP_HINTS = 1 << 10,
};

struct pm_unwinder {
	struct pm_unw_cache_slot (*cache)[2];
	PM_VEC(struct pm_unw_rule) rules;
	PM_VEC(struct pm_unw_row) rows;
	struct pm_index rules_index, rows_index;
	struct pm_unw_stats stats;
	uint32_t *
		/* Work left for the current chain; NULL between chains: no limit. */
		work_left;
	uint64_t overworked; /* chains that have used up their work limit */
	/* Indexed by a hash of the address: the map of a space to try first. Any value is
	 * valid. */
	uint16_t map_hints[PM_UNW_MAP_HINTS];
};

/* Whether @len bytes of @module from @svma all have keys. */
static inline bool pm_unw_has_keys(const struct pm_unw_module *module, uint64_t svma,
				   uint64_t len)
{
	uint64_t max = (uint64_t)1 << PM_UNW_KEY_SVMA_BITS,
		 from = svma - module->svma_low;

	return module->id >> (64 - PM_UNW_KEY_SVMA_BITS) == 0 && from < max &&
	       len <= max - from;
}

/* Returns the difference between the key of an svma and the svma. */
static inline uint64_t pm_unw_key_base(const struct pm_unw_module *module)
{
	return ((uint64_t)module->id << PM_UNW_KEY_SVMA_BITS) - module->svma_low;
}

static inline struct pm_unw_cache_slot *pm_unw_cache_set(
	const struct pm_unwinder *unwinder, uint64_t key)
{
	return unwinder->cache[key * 0x9e3779b97f4a7c15 >> (64 - PM_UNW_CACHE_BITS)];
}

struct pm_unw_lookup pm_unw_rule_find(struct pm_unwinder *unwinder,
				      struct pm_unw_module *module, uint64_t svma);
/* Returns the cache slot of @svma, or NULL if it has none. With @make, a missing slot is
 * created; NULL then means that @svma has no key. The pointer is valid until the next
 * look-up. */
struct pm_unw_cache_slot *pm_unw_rule_slot(const struct pm_unwinder *unwinder,
					   const struct pm_unw_module *module,
					   uint64_t svma, bool make);
/* pm_unw_rule_find() for an address that was looked up before. Does not count in the
 * statistics, and never clears the tables. */
struct pm_unw_lookup pm_unw_rule_again(struct pm_unwinder *unwinder,
				       struct pm_unw_module *module, uint64_t svma);

/* ---- tasks of module.c, run by task.c --------------------------------------------------- */

/* The parts of a file that a task reads; bits. */
enum pm_unw_wanted {
	PM_UNW_WANTED_EH_TABLE = 1, /* the table of .eh_frame */
	PM_UNW_WANTED_DEBUG_TABLE = 2, /* the table of .debug_frame */
	PM_UNW_WANTED_EH_SEARCH = 4, /* an .eh_frame that no header points to */
	PM_UNW_WANTED_GO = 8, /* Go's table */
	PM_UNW_WANTED_UNPACKED = 16, /* the file's own compressed .debug_frame */
	PM_UNW_WANTED_DEBUG_FILE = 32, /* the .debug_frame of a separate debug file */
};

struct pm_unw_task {
	atomic_uint refs; /* one of the module, one of the thread that runs the task */
	atomic_bool done, cancelled;
	unsigned int wanted; /* of enum pm_unw_wanted */
	int fd, debug_fd; /* -1: none */
	struct pm_unw_module *found; /* the task's own module, with what it has read;
	                              * NULL: nothing */
};

/* Whether the caller may read @bytes bytes of the file immediately. */
bool pm_unw_may_now(const struct pm_unw_module *module, uint64_t bytes);
/* Starts a task for the work @wanted (enum pm_unw_wanted), unless one is running. Takes
 * ownership of @debug_fd, -1 for none. Returns -EINPROGRESS. */
int pm_unw_do_later(struct pm_unw_module *module, unsigned int wanted, int debug_fd);
/* Takes over the results of the module's task, if it is done. */
void pm_unw_task_settle(struct pm_unw_module *module);
/* Releases the module's task. */
void pm_unw_task_drop(struct pm_unw_module *module);
/* Whether the task that works on @module is cancelled. */
static inline bool pm_unw_is_cancelled(const struct pm_unw_module *module)
{
	return module->cancelled &&
	       atomic_load_explicit(module->cancelled, memory_order_relaxed);
}

/* ---- go-table.c, go.c ------------------------------------------------------------------ */

enum {
	PM_UNW_GO_SWITCHES = 64, /* calls to systemstack that are cached */
	PM_UNW_GO_SEARCHES_MAX = 64, /* searches by name, each through all functions */
};

/* The call in the function at @caller (0: the first function of a goroutine) that makes
 * @to run @run. All addresses are svma. */
struct pm_unw_go_switch {
	uint64_t caller, run, to;
	uint64_t call; /* its return address; 0: the code does not show one */
};

struct pm_unw_go {
	struct pm_unw_region file;
	struct pm_go_table table;
	struct pm_unw_go_switch switches[PM_UNW_GO_SWITCHES];
	uint32_t searches;
};

/* Searches for Go's table in a module that may have one. */
bool pm_unw_go_open(struct pm_unw_module *module);
/* Returns the approximate number of bytes that the search reads. */
uint64_t pm_unw_go_cost(const struct pm_unw_module *module);
/* Sets the file from which the table is read from now on. */
void pm_unw_go_set_fd(struct pm_unw_go *go, int fd);
void pm_unw_go_free(struct pm_unw_go *go);
/*
 * Looks up @svma in Go's table. Fills @rule if @found is PM_UNW_FOUND_RULE. Returns 0;
 * -ENOENT: the module has no table, or the table no row for @svma; -EDQUOT: see
 * pm_unw_cfi_row_within(); -EINPROGRESS: the search for the table is running.
 */
int pm_unw_go_decode(struct pm_unw_module *module, uint64_t svma, uint32_t *work_left,
		     enum pm_unw_found *found, struct pm_unw_rule *rule);

/* ---- step.c -------------------------------------------------------------------------- */

/* The state of a walk: the registers of the current frame, from which the next step
 * starts. */
struct pm_unw_state {
	struct pm_unwinder *unwinder; /* its cache keeps the results of examining code */
	const struct pm_unw_arch_info *arch; /* of regs.arch */
	struct pm_unw_regs regs;
	const struct pm_unw_space *space;
	const struct pm_unw_stack *stack;
	uint32_t *work_left; /* see struct pm_unw_expr_input */
	const struct pm_unw_map *map; /* of `lookup`; NULL: none */
	uint64_t lookup; /* avma */
	enum pm_unw_how how; /* how the frame was found; not set for the first */
	bool first; /* the innermost frame, which was interrupted and has not made a
	             * call */
	/* This frame has not made a call, either: it stands for the code at its pc, which
	 * will run when the inner frame returns. */
	bool uncalled;
	bool interrupted; /* after a signal frame: pc is not a return address */
};

/*
 * Moves @state->regs to the caller. Returns true if there is one; @how then says how it
 * was found, and @state->interrupted is set for it. Otherwise, @stop says why there is no
 * caller.
 */
bool pm_unw_step(struct pm_unwinder *unwinder, struct pm_unw_state *state,
		 enum pm_unw_how *how, enum pm_unw_stop *stop);
/* The same with @found, the look-up result of state->lookup. */
bool pm_unw_step_by(struct pm_unwinder *unwinder, struct pm_unw_lookup found,
		    struct pm_unw_state *state, enum pm_unw_how *how,
		    enum pm_unw_stop *stop);

/* Whether the mapping's module has CFI for this architecture; the map may be NULL. */
static inline bool pm_unw_map_has_cfi(const struct pm_unw_map *map, enum pm_unw_arch arch)
{
	/* A process may map code of other architectures, as emulators do. */
	return map && map->module && map->module->arch == arch;
}

/*
 * Calls pm_unw_x86_find_exit() for the current frame, whose lookup address has been
 * looked up and has no CFI. The result is cached in the slot of that address. No address
 * is both the last byte of a call and the start of an instruction; therefore, each has
 * only one result.
 */
enum pm_unw_exit pm_unw_exit_find(const struct pm_unw_state *state,
				  struct pm_unw_row *out);
/* Whether the search has already run for the address of @found, and the frame pointer is
 * to be used. */
static inline bool pm_unw_exit_leads_to_fp(struct pm_unw_lookup found)
{
	uint32_t kept = found.index >> PM_UNW_EXIT_SHIFT;

	return kept > 0 && kept <= 1 + PM_UNW_EXIT_BY_FP;
}

/* Tries the steps that do not need CFI, in order. Returns as pm_unw_step() does. */
bool pm_unw_step_without_cfi(struct pm_unw_state *state, enum pm_unw_how *how,
			     enum pm_unw_stop *stop);

/*
 * Whether a step has made progress: @state is the caller's, the other arguments belong to
 * the previous frame. A stack grows from caller to callee, so leaving a frame raises the
 * stack pointer. There are two exceptions: a signal frame may be on another stack, and
 * code that was interrupted while its return address was in a register (vfork) has pushed
 * nothing.
 */
static inline bool pm_unw_progressed(const struct pm_unw_state *state, uint64_t old_sp,
				     uint64_t old_pc, bool was_interrupted)
{
	uint64_t sp = state->regs.value[state->arch->sp];

	if (state->interrupted || sp > old_sp)
		return true;
	return sp == old_sp && was_interrupted &&
	       state->regs.value[state->arch->pc] != old_pc;
}

/* ---- unwind.c ------------------------------------------------------------------------ */

/* pm_unwind() as a plain loop, for any architecture. The lanes must return the same
 * results. */
size_t pm_unw_walk(struct pm_unwinder *unwinder, const struct pm_unw_space *space,
		   const struct pm_unw_regs *regs, const struct pm_unw_stack *stack,
		   struct pm_unw_frame *frames, enum pm_unw_stop *stop);

/* ---- lanes.c ------------------------------------------------------------------------- */

/* Unwinds up to PM_UNW_BATCH_MAX x86-64 chains side by side. */
void pm_unw_lanes_run(struct pm_unwinder *unwinder, struct pm_unw_job *jobs, size_t len);

/* ---- start.c ------------------------------------------------------------------------- */

/*
 * Whether @address follows a call, or is the address to which a signal handler returns.
 * @map is the mapping of @address - 1. In memory that belongs to no file, any address is
 * assumed to follow a call.
 */
bool pm_unw_is_return(struct pm_unwinder *unwinder, enum pm_unw_arch arch,
		      const struct pm_unw_space *space, const struct pm_unw_map *map,
		      uint64_t address);
/* Whether @svma is in the code at the entry point, which no function calls. */
bool pm_unw_module_is_entry(struct pm_unw_module *module, uint64_t svma);
/* Whether @pc is a value that marks the end of a stack, and not a return address. */
bool pm_unw_is_end_mark(uint64_t pc);
/*
 * Whether CFI has led to a return address that no call has pushed: makecontext(3) and
 * similar functions write the first one of a stack, which is the address of a function
 * that runs later. Only valid if there is no CFI for the byte before it, or if that byte
 * is the last of its FDE.
 */
bool pm_unw_is_uncalled(const struct pm_unw_state *state);
/* Returns the reason why a chain ends at @frame, whose CFI has led to @pc outside of all
 * mappings. */
enum pm_unw_stop pm_unw_stop_outside(const struct pm_unw_frame *frame, uint64_t pc);
/*
 * Tries to reach the outermost frame from a frame without CFI, after all other steps have
 * failed. Returns true if @state->regs are now those of the outermost frame. Otherwise,
 * @stop is set if the current frame is already the outermost.
 */
bool pm_unw_step_to_start(struct pm_unw_state *state, enum pm_unw_stop *stop);

/* ---- code.c -------------------------------------------------------------------------- */

enum {
	PM_UNW_X86_CALL_BYTES_MAX = 7,
};

/* Reads bytes of the code at avma @address. Returns false if no file has them. */
bool pm_unw_map_read_code(const struct pm_unw_map *map, uint64_t address, void *out,
			  size_t len);
/* Reads all @len bytes of code at avma @address, from a module or through the space's
 * owner. Returns false if some cannot be read. */
bool pm_unw_read_code(const struct pm_unw_space *space, uint64_t address, void *out,
		      size_t len);
/*
 * Whether @code ends with `call rel32`, or with an indirect call (opcode FF /2) of any
 * length. 32-bit code has the same encodings. Only the last @have bytes of @code are
 * valid.
 */
bool pm_unw_x86_ends_with_call(const uint8_t code[PM_UNW_X86_CALL_BYTES_MAX],
			       size_t have);
/* Whether @code is one of bl, blr, blraaz, blrabz, blraa and blrab (Arm ARM C6.2). */
bool pm_unw_a64_is_call(uint32_t code);
/* Whether a call instruction ends right before avma @address. @map is the mapping of
 * @address - 1. */
bool pm_unw_call_precedes(enum pm_unw_arch arch, const struct pm_unw_map *map,
			  uint64_t address);
/* Whether the instruction that ends with the byte at @svma is a call. */
bool pm_unw_ends_with_call(struct pm_unw_module *module, uint64_t svma);
/* Whether a call instruction ends right before avma @address. Also true if there is code,
 * but no file to read it from. */
bool pm_unw_follows_call(const struct pm_unw_state *state, uint64_t address);

/* ---- trampoline.c -------------------------------------------------------------------- */

/* Whether a signal handler returns to the code at @address. */
bool pm_unw_is_trampoline(enum pm_unw_arch arch, const struct pm_unw_map *map,
			  uint64_t address);
/* Whether a frame with this lookup address may be in a signal trampoline. */
bool pm_unw_is_near_trampoline(struct pm_unw_module *module, uint64_t svma);
/* Steps from a signal trampoline to the interrupted code. Returns as pm_unw_step()
 * does. */
bool pm_unw_step_trampoline(struct pm_unw_state *state);

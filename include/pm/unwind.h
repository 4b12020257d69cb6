/* SPDX-License-Identifier: MIT */
/*
 * Finds the frames of a thread from its registers and a copy of its stack. Knows
 * registers, bytes and modules, but nothing about perf, processes or symbols.
 *
 * Terms. avma: an address in the running process. svma: the same place as the file
 * numbers it; bias = avma - svma. CFA: DWARF 5 §6.4. lookup address: the address at which
 * a frame is looked up. For a return address that is pc - 1, which puts a call that never
 * returns in its caller.
 *
 * Threads: an unwinder and the modules it has touched belong to one thread.
 */
#pragma once

#include "pm/base.h"

/* Selects the registers and the CFI. A process has one architecture: a 32-bit task on an
 * x86-64 machine is I386. */
enum pm_unw_arch {
	PM_UNW_X86_64,
	PM_UNW_I386,
	PM_UNW_AARCH64,
};
#define PM_UNW_ARCH_COUNT (PM_UNW_AARCH64 + 1)

enum {
	/* Some DWARF register numbers of x86-64 (psABI fig. 3.36). */
	PM_UNW_X86_64_RAX = 0,
	PM_UNW_X86_64_RCX = 2,
	PM_UNW_X86_64_RBX = 3,
	PM_UNW_X86_64_RBP = 6,
	PM_UNW_X86_64_RSP = 7,
	PM_UNW_X86_64_RIP = 16,
	PM_UNW_X86_64_REGS = 17,
	/* aarch64 has the most: x0…x30, sp, pc (AADWARF64 §4.1). */
	PM_UNW_REGS_MAX = 33,
	/* The most frames that pm_unwind() returns: as many as the largest stack dump can
	 * hold. g++ was seen with recursions of more than 1024 frames in 64 KiB. */
	PM_UNW_FRAMES_MAX = 4096,
};

/* Indexed by the architecture's DWARF numbers; 32-bit registers are zero-extended. */
struct pm_unw_regs {
	uint64_t value[PM_UNW_REGS_MAX];
	uint64_t known; /* bit n: value[n] is known */
	enum pm_unw_arch arch;
};

/* Returns the stack pointer, or 0 if it is not known. */
uint64_t pm_unw_regs_sp(const struct pm_unw_regs *regs);

/* How a frame was found. */
enum pm_unw_how {
	PM_UNW_HOW_IP, /* the interrupted place itself */
	PM_UNW_HOW_CFI, /* call frame information */
	PM_UNW_HOW_GO, /* the frame sizes in the table of a Go program */
	PM_UNW_HOW_FP, /* frame pointer; the return address follows a call instruction */
	/* No CFI at the interrupted place: return address on top of the stack or in x30. */
	PM_UNW_HOW_LEAF,
	PM_UNW_HOW_TRAMPOLINE, /* a signal frame known by its bytes */
	/* No CFI: the code up to its `ret` shows where the return address is. Or Go's
	 * code shows that this call left the goroutine's stack. */
	PM_UNW_HOW_CODE,
	/* No CFI: the first return address on the stack, which only the outermost frame
	 * can have. */
	PM_UNW_HOW_START,
	PM_UNW_HOW_KERNEL, /* the kernel's own chain; set by callers */
	/* Taken from an earlier chain of the thread; set by callers. */
	PM_UNW_HOW_STITCHED,
};
#define PM_UNW_HOW_COUNT (PM_UNW_HOW_STITCHED + 1)
const char *pm_unw_how_name(enum pm_unw_how how); /* "ip", "cfi", … as in the file */

/* Why a chain ends. */
enum pm_unw_stop {
	PM_UNW_STOP_ROOT, /* the outermost frame: complete */
	PM_UNW_STOP_TRUNCATED, /* the frame lies beyond the copied bytes */
	PM_UNW_STOP_NO_MODULE, /* the pc is in no executable mapping */
	PM_UNW_STOP_NO_CFI, /* nothing describes this code and no fallback applies */
	PM_UNW_STOP_BAD_CFI, /* invalid CFI */
	PM_UNW_STOP_NO_REGISTER, /* the rule needs a register that is no longer known */
	PM_UNW_STOP_BAD_MEMORY, /* the rule reads outside of stack and modules */
	PM_UNW_STOP_NO_PROGRESS, /* neither pc nor CFA would change, or the CFA would fall */
	PM_UNW_STOP_LIMIT, /* PM_UNW_FRAMES_MAX */
	PM_UNW_STOP_NO_REGS, /* the program counter was not known */
	PM_UNW_STOP_OTHER_STACK, /* the callers are on another stack, which was not copied */
	PM_UNW_STOP_WORK_LIMIT, /* finding the caller would exceed the chain's work */
	PM_UNW_STOP_TABLE_PENDING, /* the module's table is still being made */
	PM_UNW_STOP_TABLE_TOO_LARGE, /* the table would need more memory than allowed */
};
#define PM_UNW_STOP_COUNT (PM_UNW_STOP_TABLE_TOO_LARGE + 1)
const char *pm_unw_stop_name(enum pm_unw_stop stop); /* "truncated", … as in the file */

/* ---- modules ------------------------------------------------------------------------- */

/* The unwind information of one file, shared by all processes that map it. */
struct pm_unw_module;

/*
 * Opens the ELF file behind @fd (borrowed; later reads use a duplicate) or, for the vDSO,
 * an image in memory (copied). Never runs or trusts anything in it. A module without any
 * unwind information is also created; the unwinder then uses the methods that need no
 * CFI. Returns -ENOEXEC if it is not an ELF file of a known architecture; @err says why.
 */
int pm_unw_module_open(struct pm_unw_module **out, int fd, struct pm_error *err);
int pm_unw_module_from_memory(struct pm_unw_module **out, const void *image, size_t len,
			      struct pm_error *err);

/* Unwind information that is not in an ELF file: from a corpus, or for generated code. */
struct pm_unw_parts {
	enum pm_unw_arch arch;
	uint64_t entry; /* svma of the entry point; 0: none */
	/* The page size to which segments were rounded when they were mapped, a power of
	 * two; 0: 4096. */
	uint64_t page_bytes;
	const struct pm_unw_part_load {
		uint64_t vaddr, offset, filesz; /* as in the program header */
		bool executable;
	} * loads;
	size_t loads_len;
	struct pm_unw_part {
		uint64_t svma;
		const void *data; /* copied */
		size_t len; /* 0: there is none */
	} eh_frame_hdr, eh_frame, debug_frame;
	/* Pieces of code, for the methods that need no CFI; copied, in any order. */
	const struct pm_unw_part *code;
	size_t code_len;
};
/* Returns 0 or -ENOMEM, also if this exceeds the limit for all modules together. */
int pm_unw_module_from_parts(struct pm_unw_module **out, const struct pm_unw_parts *parts,
			     struct pm_error *err);
/*
 * The reverse: returns everything except code, which pm_unw_module_read() returns. The
 * bytes are borrowed from @module; the caller frees ret->loads. Reads all CFI of the file
 * into memory. A part whose bytes cannot be read has length 0. Returns 0 or -ENOMEM.
 */
int pm_unw_module_parts(struct pm_unw_module *module, struct pm_unw_parts *out);
/* Copies @len bytes of the file as they are mapped at @svma. Returns false if the file
 * does not have them. */
bool pm_unw_module_read(struct pm_unw_module *module, uint64_t svma, void *out,
			size_t len);
void pm_unw_module_free(struct pm_unw_module *module);
/* Closes the file and releases everything read from it; not during unwinding. The
 * segments stay known to pm_unw_module_bias(). Nothing else is found in the module until
 * it is reopened. */
void pm_unw_module_close(struct pm_unw_module *module);
/* Makes the module use @fd again, which must be the same file. Returns like
 * pm_unw_module_open(). */
int pm_unw_module_reopen(struct pm_unw_module *module, int fd, struct pm_error *err);
/* Returns the file, which the module keeps open until it is closed; borrowed, -1 for
 * memory. */
int pm_unw_module_fd(const struct pm_unw_module *module);
/* Whether pm_unw_go_callers() can find callers: the sections are those of a Go program. */
bool pm_unw_module_has_go_callers(const struct pm_unw_module *module);

/*
 * Adds the .debug_frame of a separate debug file (@fd borrowed, read during the call),
 * which the caller knows to belong to the module. It is used for addresses that .eh_frame
 * does not cover, also for those that were looked up before. Returns -ENODATA if the file
 * has none, -ENOEXEC, or -EEXIST if the module has its own; nothing has changed then.
 */
int pm_unw_module_add_debug(struct pm_unw_module *module, int fd, struct pm_error *err);

/*
 * Opens that file: called once, when unwinding reaches the first address without CFI.
 * Returns an fd, which the unwinder closes, or negative errno for none.
 */
typedef int (*pm_unw_open_debug_fn)(void *user);
void pm_unw_module_on_gap(struct pm_unw_module *module, pm_unw_open_debug_fn open_debug,
			  void *user);

/*
 * Some files have no table that sorts their CFI. The unwinder must make one from all of
 * the CFI before it can look up the first address. That may take seconds, and the samples
 * of other processes would have to wait. A helper decides how much the unwinder does at
 * once, and has another thread do the rest. Without a helper, the unwinder does
 * everything at once.
 */
struct pm_unw_task;
struct pm_unw_helper {
	/* Whether the caller may read @bytes now. */
	bool (*may_now)(void *user, size_t bytes);
	/* Takes @task. The helper calls pm_unw_task_run() and then pm_unw_task_unref()
	 * for it. Returns false if it cannot; the module asks again later. */
	bool (*take)(void *user, struct pm_unw_task *task);
	void *user;
};
/* @helper is borrowed. A module without a file needs none. */
void pm_unw_module_set_helper(struct pm_unw_module *module,
			      const struct pm_unw_helper *helper);
/* Runs @task, in any thread. Does not access modules that another thread uses. */
void pm_unw_task_run(struct pm_unw_task *task);
/* Makes pm_unw_task_run() return soon, with nothing found. From any thread. */
void pm_unw_task_cancel(struct pm_unw_task *task);
void pm_unw_task_unref(struct pm_unw_task *task);

/* Problems with the tables of a module. */
struct pm_unw_module_tables {
	bool pending; /* a frame needed a table that was being made */
	bool too_large; /* a table would have been larger than allowed */
};
struct pm_unw_module_tables pm_unw_module_tables(const struct pm_unw_module *module);

/*
 * Computes the bias of a mapping of @module that starts at avma @start and shows the file
 * from @pgoff: start - pgoff + (p_offset - p_vaddr) of the PT_LOAD that contains pgoff.
 * Returns 0, or -ENOENT if no PT_LOAD does.
 */
int pm_unw_module_bias(const struct pm_unw_module *module, uint64_t start, uint64_t pgoff,
		       uint64_t *out);

/* ---- address spaces ------------------------------------------------------------------ */

/* One executable mapping. */
struct pm_unw_map {
	uint64_t start, end; /* [start, end) avma */
	uint64_t bias; /* wraps; 0 without a module */
	struct pm_unw_module *module; /* borrowed; NULL: memory without a readable file */
	uint32_t tag; /* the caller's */
};

/*
 * Copies @len bytes of a mapping without a module, as the process has them now. Returns
 * false unless all of them can be read. The unwinder calls it for code that the thread
 * has just executed.
 */
typedef bool (*pm_unw_read_code_fn)(void *user, uint64_t address, void *out, size_t len);

/* Sorted by start, without overlap. Owned by the caller. */
struct pm_unw_space {
	const struct pm_unw_map *maps;
	size_t len;
	pm_unw_read_code_fn read_code; /* NULL: such memory cannot be read */
	void *read_code_user;
	/* The remaining work for chains in this space, in estimated nanoseconds. Each
	 * chain subtracts what it has used. With 0, a chain has only the interrupted
	 * place. NULL: each chain may use PM_UNW_WORK_MAX, the maximum for any chain. */
	uint32_t *work_left;
	/* aarch64: the bits of a return address that authenticate it and are not part of
	 * the address (NT_ARM_PAC_MASK's insn_mask). 0: unknown; all bits above the
	 * highest mapping then count as such. */
	uint64_t pac_mask;
};

/* Returns the mapping that contains @address, or NULL. */
const struct pm_unw_map *pm_unw_space_find(const struct pm_unw_space *space,
					   uint64_t address);

/* The bytes [start, start + len) of the thread's stack. */
struct pm_unw_stack {
	uint64_t start;
	const uint8_t *data;
	size_t len;
	/* Further pieces at higher addresses; the bytes between them are missing. NULL:
	 * none. Of each piece, only the three fields above and `above` are used. */
	const struct pm_unw_stack *above;
	/* If not NULL, receives the last address that the unwinder needed but did not
	 * find in any piece. This is where the copy ended for a chain that stops as
	 * TRUNCATED. */
	uint64_t *missed;
};

/* ---- unwinding ----------------------------------------------------------------------- */

/* The maximum work for one chain, in approximate nanoseconds. Chains whose rules are
 * cached need a few hundred; one of PM_UNW_FRAMES_MAX new places needs nearly all of
 * this. */
#define PM_UNW_WORK_MAX ((uint32_t)1 << 22)

struct pm_unw_frame {
	uint64_t pc; /* avma, as found */
	/* avma; pc - 1 for a return address, but pc if no call has left it */
	uint64_t lookup;
	uint64_t sp; /* the stack pointer in this frame; 0 if unknown */
	const struct pm_unw_map *map; /* the mapping of `lookup`; NULL: none */
	enum pm_unw_how how;
};

/* Counted since the unwinder was created. */
struct pm_unw_stats {
	uint64_t frames;
	uint64_t cache_hits, cache_misses; /* of the rule cache */
	uint64_t expressions; /* frames on the slow path */
	size_t table_bytes; /* rows, rules and cache, all modules seen */
};

struct pm_unwinder;

struct pm_unwinder *pm_unwinder_new(void); /* NULL: out of memory */
void pm_unwinder_free(struct pm_unwinder *unwinder);
void pm_unwinder_stats(const struct pm_unwinder *unwinder, struct pm_unw_stats *out);

/*
 * Fills @frames (room for PM_UNW_FRAMES_MAX), leaf first, and returns their number; @stop
 * says why there are no more. The first frame is the interrupted place whenever the pc is
 * known, even outside of every mapping. Never fails, never reads outside of @stack and
 * the modules, and always ends: a chain that takes too long ends with
 * PM_UNW_STOP_WORK_LIMIT.
 */
size_t pm_unwind(struct pm_unwinder *unwinder, const struct pm_unw_space *space,
		 const struct pm_unw_regs *regs, const struct pm_unw_stack *stack,
		 struct pm_unw_frame *frames, enum pm_unw_stop *stop);

/*
 * Finds the callers of a chain of @len frames that ended where Go's runtime had switched
 * stacks (PM_UNW_STOP_OTHER_STACK). @returns are the return addresses that the kernel
 * found along frame pointers for the same sample, leaf first, without the interrupted
 * place. Fills @out, leaf first, and returns the number of callers, or 0 if the addresses
 * are inconsistent or the code is not Go's. The stack pointers of the callers are
 * unknown. Only for x86-64.
 */
size_t pm_unw_go_callers(const struct pm_unw_frame *frames, size_t len,
			 const uint64_t *returns, size_t returns_len,
			 struct pm_unw_frame *out, size_t max, bool *rooted);

/* One chain to be found. The pointers are borrowed; the results are those of
 * pm_unwind(). */
struct pm_unw_job {
	const struct pm_unw_space *space;
	const struct pm_unw_regs *regs;
	struct pm_unw_stack stack;
	struct pm_unw_frame *frames; /* room for PM_UNW_FRAMES_MAX */
	size_t len;
	enum pm_unw_stop stop;
};

enum {
	PM_UNW_BATCH_MAX = 16, /* larger batches gain nothing */
};

/*
 * pm_unwind() for several chains at once: while one waits for memory, the others
 * continue. The results are the same. More than PM_UNW_BATCH_MAX jobs are done in groups
 * of that size.
 */
void pm_unwind_batch(struct pm_unwinder *unwinder, struct pm_unw_job *jobs, size_t len);

/* ---- second opinion: libunwind-ptrace ------------------------------------------------- */

/*
 * Finds the program counters of thread @tid, leaf first, with libunwind-ptrace. @tid must
 * be ptrace-stopped by the calling thread. Returns their number, or a negative errno.
 */
ssize_t pm_unw_ptrace_chain(pid_t tid, uint64_t *pcs, size_t max, struct pm_error *err);

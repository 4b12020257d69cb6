/* SPDX-License-Identifier: MIT */
#include "pm/chain.h"

#include <linux/perf_event.h>
#include <string.h>
#include <time.h>

#include "chain-internal.h"
#include "live-code.h"
#include "pm/chain-jit.h"
#include "pm/chain-spaces.h"

enum {
	/* The default of sysctl kernel.perf_event_max_stack: the maximum number of frames
	 * from the kernel, without markers. A chain of that length was truncated. */
	KERNEL_CHAIN_DEFAULT = 127,
};

const char *pm_chain_stop_name(uint32_t stop)
{
	switch (stop) {
	case PM_CHAIN_STOP_FP_END:
		return "fp_end";
	case PM_CHAIN_STOP_NOT_ASKED:
		return "not_asked";
	case PM_CHAIN_STOP_NOT_SAMPLED:
		return "not_sampled";
	case PM_CHAIN_STOP_UPROBE:
		return "uprobe";
	case PM_CHAIN_STOP_LBR_END:
		return "lbr_end";
	case PM_CHAIN_STOP_EXEC:
		return "exec";
	case PM_CHAIN_STOP_NO_PAGE:
		return "no_page";
	default:
		return pm_unw_stop_name((enum pm_unw_stop)stop);
	}
}

struct pm_chains *pm_chains_new(const struct pm_chain_source *source)
{
	struct pm_chains *chains = calloc(1, sizeof(*chains));

	if (!chains)
		return NULL;
	chains->from = *source;
	chains->unwinder = pm_unwinder_new();
	if (source->stitch && source->call_graph == PM_CALL_GRAPH_DWARF)
		chains->stitches = pm_chain_stitches_new();
	if (source->limited)
		chains->budget = pm_chain_budget_new(source->rate);
	if (!chains->unwinder || (source->limited && !chains->budget) ||
	    (source->stitch && !chains->stitches &&
	     source->call_graph == PM_CALL_GRAPH_DWARF)) {
		pm_chains_free(chains);
		return NULL;
	}
	return chains;
}

void pm_chains_free(struct pm_chains *chains)
{
	if (!chains)
		return;
	for (size_t i = 0; i < PM_CHAIN_SLOTS; i++) {
		free(chains->slots[i].frames);
		free(chains->slots[i].stacks);
	}
	pm_unwinder_free(chains->unwinder);
	pm_chain_stitches_free(chains->stitches);
	pm_chain_budget_free(chains->budget);
	pm_vec_release(&chains->branches);
	pm_chains_release_look_memory(chains);
	free(chains);
}

void pm_chains_inherit(struct pm_chains *chains, struct pm_chains *from)
{
	struct pm_chain_budget *budget = chains->budget;

	chains->budget = from->budget;
	from->budget = budget;
	memcpy(chains->cut_comm, from->cut_comm, sizeof(chains->cut_comm));
	chains->looks = from->looks;
	memcpy(chains->process_looks, from->process_looks, sizeof(chains->process_looks));
}

void pm_chains_forget_thread(struct pm_chains *chains, uint32_t pid, uint32_t tid)
{
	if (chains->stitches)
		pm_chain_stitches_forget_thread(chains->stitches, pid, tid);
}

void pm_chains_forget_process(struct pm_chains *chains, uint32_t pid)
{
	if (chains->stitches)
		pm_chain_stitches_forget_process(chains->stitches, pid);
}

size_t pm_chains_stitch_bytes(const struct pm_chains *chains)
{
	if (chains->stitches)
		return pm_chain_stitches_bytes(chains->stitches);
	return 0;
}

void pm_chains_stats(const struct pm_chains *chains, struct pm_unw_stats *out)
{
	pm_unwinder_stats(chains->unwinder, out);
}

void pm_chains_cut(const struct pm_chains *chains, struct pm_chain_cut *out)
{
	if (chains->budget)
		*out = *pm_chain_budget_cut(chains->budget);
	else
		*out = (struct pm_chain_cut){ 0 };
	memcpy(out->first_comm, chains->cut_comm, sizeof(out->first_comm));
}

/* Sets @out to the address space of @process, with the work that a sample at @time_ns may
 * cause in it. */
static int get_space(struct pm_chains *chains, struct pm_process *process,
		     uint64_t time_ns, struct pm_unw_space *out)
{
	int ret = pm_chain_space_get(process, chains->from.modules, chains->from.procs,
				     out);
	const struct pm_chain_cut *cut;

	if (ret < 0 || !chains->budget)
		return ret;
	out->work_left =
		pm_chain_budget_begin(chains->budget, (uint32_t)process->pid, time_ns);
	cut = pm_chain_budget_cut(chains->budget);
	if (cut->pauses > 0 && chains->cut_comm[0] == '\0') {
		const struct pm_thread *thread = pm_procs_thread(
			chains->from.procs, (pid_t)cut->first_pid, (pid_t)cut->first_pid);

		if (thread)
			memcpy(chains->cut_comm, thread->comm, sizeof(chains->cut_comm));
	}
	return 0;
}

static int push_kernel(struct pm_chains *chains, uint64_t address, bool first)
{
	return pm_chains_push_kernel(chains, first ? address : address - 1,
				     PM_UNW_HOW_KERNEL);
}

/*
 * Adds both parts of the kernel's callchain; the marker before an address says which part
 * it belongs to (perf_event_open(2), PERF_CONTEXT_*). Adds only the first @user_max
 * entries of the user part.
 */
static int push_callchain(struct pm_chains *chains, const struct pm_sample *sample,
			  const struct pm_unw_space *space, size_t user_max,
			  size_t *user_frames)
{
	uint64_t context = 0;
	size_t in_context = 0;
	size_t len = PM_MIN(sample->callchain_len, PM_CHAIN_CALLCHAIN_MAX);

	*user_frames = 0;
	for (size_t i = 0; i < len; i++) {
		uint64_t address = sample->callchain[i];
		int ret = 0;

		if (address >= (uint64_t)PERF_CONTEXT_MAX) {
			context = address;
			in_context = 0;
			continue;
		}
		if (address == 0)
			continue;
		if (context == (uint64_t)PERF_CONTEXT_KERNEL) {
			ret = push_kernel(chains, address, in_context == 0);
		} else if (context == (uint64_t)PERF_CONTEXT_USER &&
			   *user_frames < user_max) {
			uint64_t lookup = in_context == 0 ? address : address - 1;

			ret = pm_chains_push(
				chains, lookup, pm_unw_space_find(space, lookup),
				in_context == 0 ? PM_UNW_HOW_IP : PM_UNW_HOW_FP);
			(*user_frames)++;
		}
		if (ret < 0)
			return ret;
		in_context++;
	}
	return 0;
}

/* Finds the architecture of a sample's registers. Returns false if the unwinder does not
 * support it. */
static bool arch_of(enum pm_regs_abi abi, enum pm_unw_arch *out)
{
#if defined(__x86_64__)
	*out = abi == PM_REGS_32 ? PM_UNW_I386 : PM_UNW_X86_64;
	return abi != PM_REGS_NONE;
#elif defined(__aarch64__)
	*out = PM_UNW_AARCH64;
	return abi == PM_REGS_64;
#else
	*out = PM_UNW_X86_64;
	return false;
#endif
}

/*
 * Removes registers whose value is -1. Older kernels, such as 5.10, report that for the
 * callee-saved registers of a task that an NMI interrupts in a system call, because most
 * system calls save none (perf_get_regs_user() in their arch/x86/kernel/perf_regs.c).
 */
static void forget_unsaved(struct pm_unw_regs *regs)
{
	static const uint8_t callee_saved[] = {
		PM_UNW_X86_64_RBX, PM_UNW_X86_64_RBP, 12, 13, 14, 15
	};

	if (regs->arch != PM_UNW_X86_64)
		return;
	for (size_t i = 0; i < PM_ARRAY_LEN(callee_saved); i++)
		if (regs->value[callee_saved[i]] != UINT64_MAX)
			return;
	for (size_t i = 0; i < PM_ARRAY_LEN(callee_saved); i++)
		regs->known &= ~(1u << callee_saved[i]);
}

static int keep_raw(struct pm_chains *chains, const struct pm_record *record,
		    const struct pm_unw_space *space, const struct pm_unw_regs *regs,
		    const struct pm_unw_stack *stack, size_t len)
{
	if (!chains->from.raw)
		return 0;
	return pm_chain_raw_add(chains->from.raw,
				&(struct pm_chain_raw_sample){ .index = chains->samples,
							       .record = record,
							       .space = space,
							       .regs = regs,
							       .stack = stack,
							       .frames = chains->found,
							       .frames_len = len });
}

/* Sets the registers and all pieces of the stack. Returns false if the sample has no
 * registers. */
static bool inputs_of(const struct pm_sample *sample, struct pm_unw_regs *regs,
		      struct pm_unw_stack *stack)
{
	*regs = (struct pm_unw_regs){ .known = sample->regs.known };
	if (!arch_of(sample->regs.abi, &regs->arch))
		return false;
	memcpy(regs->value, sample->regs.value, sizeof(regs->value));
	forget_unsaved(regs);
	*stack = (struct pm_unw_stack){ .start = pm_unw_regs_sp(regs) -
						 sample->stack_below,
					.data = sample->stack,
					.len = sample->stack_len };
	return true;
}

/* Copies the result of pm_chains_ahead() for the current record to chains->found. */
static bool take_ahead(struct pm_chains *chains, const struct pm_process *process,
		       enum pm_unw_stop *reason, size_t *len)
{
	for (size_t i = 0; i < chains->ahead_len; i++) {
		const struct pm_chain_ahead *ahead = &chains->ahead[i];

		/* Since then, a closed file in which the stack ended may have been
		 * reopened, so that the stack leads further. */
		if (ahead->record != chains->record || ahead->process != process ||
		    ahead->version != pm_chain_space_version(process) ||
		    ahead->reopened != chains->from.modules->reopened)
			continue;
		memcpy(chains->found, ahead->frames, ahead->len * sizeof(*ahead->frames));
		*len = ahead->len;
		*reason = ahead->stop;
		chains->missed = ahead->missed;
		return true;
	}
	return false;
}

/* Unwinds into chains->found. This may read information about generated code and thereby
 * change the space. */
static int unwind_sample(struct pm_chains *chains, struct pm_unw_space *space,
			 const struct pm_unw_regs *regs, const struct pm_unw_stack *stack,
			 enum pm_unw_stop *reason, size_t *len)
{
	enum {
		TRIES = 8 /* each goes further than the previous one */
	};
	size_t reopened = 0;
	const struct pm_record *record = chains->record;
	struct pm_process *process = pm_procs_get(chains->from.procs, (pid_t)record->pid);

	pm_chain_live_begin(chains->from.modules, record->time, 1);
	chains->from.modules->stamp++;
	for (int i = 0; i < TRIES;) {
		int ret;

		if (i > 0 || reopened > 0 || !take_ahead(chains, process, reason, len)) {
			chains->missed = 0;
			*len = pm_unwind(chains->unwinder, space, regs, stack,
					 chains->found, reason);
		}
		if (!process)
			break;
		if (reopened < PM_CHAIN_REOPENED_MAX &&
		    pm_chains_reopen_closed(chains, *len))
			reopened++;
		else if (chains->from.jit &&
			 pm_chain_jit_cover(chains->from.jit, process, chains->found,
					    *len, record->time))
			i++;
		else
			break;
		ret = get_space(chains, process, record->time, space);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Whether @frame is in the page that the kernel maps for probes (kernel/events/uprobes.c,
 * xol_area). Only the kernel knows where the function returns to. */
static bool is_uprobes(const struct pm_chains *chains, const struct pm_unw_frame *frame)
{
	const struct pm_module *module =
		frame->map ? pm_procs_module(chains->from.procs, frame->map->tag) : NULL;

	return module && strcmp(module->identity.path, PM_UPROBES_PATH) == 0;
}

/*
 * Whether the task has no user space: a kernel thread, the idle task, or a task that has
 * released its memory while exiting. Only for these does the kernel leave out the
 * registers (kernel/events/core.c, perf_sample_regs_user()), so its own frames are the
 * whole chain.
 */
static bool is_kernel_only(const struct pm_chains *chains, const struct pm_sample *sample)
{
	return sample->regs.abi == PM_REGS_NONE && chains->frames_len > 0 &&
	       chains->frames_len < KERNEL_CHAIN_DEFAULT;
}

/*
 * Whether the last instruction before @frame is execve(2) or execveat(2) and the call has
 * not returned. During the call, on x86-64, the saved rax is -ENOSYS and the saved rcx
 * the caller's rip (arch/x86/entry/entry_64.S); the number of the call is in the code. On
 * aarch64 x8 keeps the number.
 */
static bool calls_exec(const struct pm_unw_regs *regs, const struct pm_unw_frame *frame)
{
	enum {
		X86_64_EXECVE = 59, /* arch/x86/entry/syscalls/syscall_64.tbl */
		X86_64_EXECVEAT = 322,
		AARCH64_EXECVE = 221, /* asm-generic/unistd.h */
		AARCH64_EXECVEAT = 281,
		MOV_IMM32_EAX = 0xb8,
		CALL_BYTES = 7, /* mov $NUMBER,%eax; syscall */
	};
	static const uint8_t syscall_x86_64[] = { 0x0f, 0x05 };
	static const uint8_t svc_aarch64[] = { 0x01, 0x00, 0x00, 0xd4 };
	uint8_t code[CALL_BYTES];
	size_t len = regs->arch == PM_UNW_AARCH64 ? sizeof(svc_aarch64) : sizeof(code);
	uint32_t number;

	if (!frame->map->module ||
	    !pm_unw_module_read(frame->map->module, frame->pc - frame->map->bias - len,
				code, len))
		return false;
	if (regs->arch == PM_UNW_AARCH64)
		return memcmp(code, svc_aarch64, len) == 0 &&
		       (regs->value[8] == AARCH64_EXECVE ||
			regs->value[8] == AARCH64_EXECVEAT);
	if (regs->arch != PM_UNW_X86_64 ||
	    regs->value[PM_UNW_X86_64_RAX] != (uint64_t)-ENOSYS ||
	    regs->value[PM_UNW_X86_64_RCX] != frame->pc || code[0] != MOV_IMM32_EAX ||
	    memcmp(code + 5, syscall_x86_64, sizeof(syscall_x86_64)) != 0)
		return false;
	memcpy(&number, code + 1, sizeof(number));
	return number == X86_64_EXECVE || number == X86_64_EXECVEAT;
}

/*
 * Whether the sample was taken during an exec. Until execve(2) returns, a thread has the
 * registers of its old program. In the middle of the call, that program's memory is
 * released, with the stack and the code that made the call. The kernel reports the exec a
 * little later (kernel: fs/exec.c, begin_new_exec(): exec_mmap() comes before
 * __set_task_comm()). Between the two, the code still seems to be mapped, and the stack
 * is not.
 */
static bool is_in_exec(const struct pm_chains *chains, const struct pm_record *record,
		       const struct pm_unw_regs *regs, size_t kernel_len, size_t user_len)
{
	const struct pm_process *process =
		pm_procs_get(chains->from.procs, (pid_t)record->pid);

	if (kernel_len == 0 || user_len != 1)
		return false;
	if (!chains->found[0].map)
		return process && process->executed;
	return record->sample.stack_len == 0 && calls_exec(regs, &chains->found[0]);
}

/*
 * Whether @frame, the last one, was interrupted on another stack than the copied one. The
 * kernel puts a signal frame right below the stack that it interrupts. If both are on the
 * same stack, the interrupted frame is therefore above the copied bytes by at most the
 * rest of a signal frame (11 KiB with AMX, Documentation/arch/x86/xstate.rst).
 */
static bool is_on_other_stack(const struct pm_unw_frame *frame,
			      const struct pm_unw_stack *stack)
{
	enum {
		SIGNAL_FRAME_BYTES_MAX = 64 * 1024
	};

	return frame->sp != 0 && frame->lookup == frame->pc &&
	       frame->sp - stack->start > stack->len + SIGNAL_FRAME_BYTES_MAX;
}

/* Returns the return addresses that the kernel found along frame pointers. The first
 * entry of the user part is the interrupted address and is skipped. */
static const uint64_t *find_returns(const struct pm_sample *sample, size_t *len)
{
	const uint64_t *chain = sample->callchain;
	size_t at = 0, end;

	while (at < sample->callchain_len && chain[at] != (uint64_t)PERF_CONTEXT_USER)
		at++;
	at += 2;
	for (end = at; end < sample->callchain_len &&
		       chain[end] < (uint64_t)PERF_CONTEXT_MAX && chain[end] != 0;)
		end++;
	*len = at < end ? end - at : 0;
	if (*len == 0)
		return NULL;
	return chain + at;
}

static uint64_t unwinding_cpu_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Adds the callers of Go's runtime, which are on the goroutine's stack, to the @len
 * frames found. The file determines how long the search takes; therefore the time is
 * measured and subtracted from the budget. */
static int push_go_callers(struct pm_chains *chains, const struct pm_sample *sample,
			   size_t len, uint32_t *stop)
{
	size_t returns_len, count;
	const uint64_t *returns = find_returns(sample, &returns_len);
	uint64_t begun_ns;
	bool rooted;
	int ret = 0;

	if (returns_len == 0 || len == 0)
		return 0;
	begun_ns = unwinding_cpu_ns();
	count = pm_unw_go_callers(chains->found, len, returns, returns_len,
				  chains->found + len, PM_UNW_FRAMES_MAX - len, &rooted);
	pm_chains_spend(chains, unwinding_cpu_ns() - begun_ns);
	for (size_t i = 0; ret == 0 && i < count; i++) {
		const struct pm_unw_frame *frame = &chains->found[len + i];

		ret = pm_chains_push(chains, frame->lookup, frame->map, frame->how);
	}
	if (rooted)
		*stop = PM_UNW_STOP_ROOT;
	return ret;
}

static int push_unwound(struct pm_chains *chains, const struct pm_record *record,
			struct pm_unw_space *space, uint32_t *stop)
{
	const struct pm_sample *sample = &record->sample;
	struct pm_unw_regs regs;
	struct pm_unw_stack stack, whole;
	enum pm_unw_stop reason;
	size_t kernel_len = chains->frames_len, len;
	int ret;

	if (!inputs_of(sample, &regs, &whole)) {
		if (is_kernel_only(chains, sample))
			*stop = PM_UNW_STOP_ROOT;
		else
			*stop = PM_UNW_STOP_NO_REGS;
		return 0;
	}
	stack = (struct pm_unw_stack){
		.start = whole.start + sample->stack_below,
		.data = sample->stack ? sample->stack + sample->stack_below : NULL,
		.len = sample->stack_len - sample->stack_below
	};
	whole.missed = &chains->missed;
	ret = unwind_sample(chains, space, &regs, &whole, &reason, &len);
	if (ret < 0)
		return ret;
	ret = keep_raw(chains, record, space, &regs, &whole, len);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < len; i++) {
		const struct pm_unw_frame *frame = &chains->found[i];

		ret = pm_chains_push(chains, frame->lookup, frame->map, frame->how);
		if (ret < 0)
			return ret;
	}
	*stop = reason;
	if (len > 0 && is_uprobes(chains, &chains->found[len - 1]))
		*stop = PM_CHAIN_STOP_UPROBE;
	else if (is_in_exec(chains, record, &regs, kernel_len, len))
		*stop = PM_CHAIN_STOP_EXEC;
	if ((*stop == PM_UNW_STOP_TRUNCATED || *stop == PM_UNW_STOP_BAD_MEMORY) &&
	    len > 1 && is_on_other_stack(&chains->found[len - 1], &whole))
		*stop = PM_UNW_STOP_OTHER_STACK;
	else if (*stop == PM_UNW_STOP_TRUNCATED &&
		 sample->stack_len < sample->stack_asked)
		*stop = PM_CHAIN_STOP_NO_PAGE;
	chains->own_stop = *stop;
	ret = pm_chains_stitch(chains, record, space, &regs, &stack, len, stop);
	if (ret == 0 && *stop == PM_UNW_STOP_OTHER_STACK && chains->promise == 0)
		ret = push_go_callers(chains, sample, len, stop);
	return ret;
}

/* Adds only the interrupted address, for a record that has nothing else. */
static int push_ip(struct pm_chains *chains, const struct pm_record *record,
		   const struct pm_unw_space *space)
{
	uint64_t ip = record->sample.ip;

	if ((record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
		return push_kernel(chains, ip, true);
	return pm_chains_push(chains, ip, pm_unw_space_find(space, ip), PM_UNW_HOW_IP);
}

/* Adds the calls that the CPU recorded or, if there are none, the chain that the kernel
 * found along frame pointers. */
static int push_by_kernel(struct pm_chains *chains, const struct pm_sample *sample,
			  const struct pm_unw_space *space, uint32_t *stop)
{
	bool lbr = chains->from.lbr && sample->branches_len > 0;
	size_t user_frames;
	bool paused = space->work_left && *space->work_left == 0;
	int ret = push_callchain(chains, sample, space, lbr || paused ? 1 : SIZE_MAX,
				 &user_frames);

	if (paused) {
		*stop = PM_UNW_STOP_WORK_LIMIT;
		return ret;
	}

	if (lbr) {
		*stop = PM_CHAIN_STOP_LBR_END;
		if (ret < 0)
			return ret;
		return pm_chains_push_lbr(chains, sample, space);
	}
	if (user_frames == 0)
		*stop = PM_UNW_STOP_NO_REGS;
	else if (chains->frames_len >= KERNEL_CHAIN_DEFAULT)
		*stop = PM_UNW_STOP_LIMIT;
	else
		*stop = PM_CHAIN_STOP_FP_END;
	return ret;
}

static int collect_sample_frames(struct pm_chains *chains, const struct pm_record *record,
				 uint32_t *stop)
{
	const struct pm_sample *sample = &record->sample;
	struct pm_process *process = pm_procs_get(chains->from.procs, (pid_t)record->pid);
	struct pm_unw_space space;
	size_t user_frames;
	int ret;

	if (!process)
		return -ENOMEM;
	ret = get_space(chains, process, record->time, &space);
	if (ret < 0)
		return ret;
	switch (chains->from.call_graph) {
	case PM_CALL_GRAPH_NONE:
		*stop = PM_CHAIN_STOP_NOT_ASKED;
		break;
	case PM_CALL_GRAPH_FP:
		ret = push_by_kernel(chains, sample, &space, stop);
		break;
	case PM_CALL_GRAPH_DWARF:
		ret = push_callchain(chains, sample, &space, 0, &user_frames);
		if (ret == 0)
			ret = push_unwound(chains, record, &space, stop);
		break;
	}
	if (ret == 0 && chains->frames_len == 0)
		ret = push_ip(chains, record, &space);
	return ret;
}

static int slot_reserve(struct pm_chain_slot *slot, size_t want)
{
	size_t cap = slot->cap;
	struct pm_chain_frame *frames;
	uint32_t *stacks;

	if (want <= slot->cap)
		return 0;
	frames = pm_vec_grow(slot->frames, &cap, sizeof(*frames), want);
	if (!frames)
		return -ENOMEM;
	slot->frames = frames;
	stacks = reallocarray(slot->stacks, cap, sizeof(*stacks));
	if (!stacks)
		return -ENOMEM;
	slot->stacks = stacks;
	slot->cap = cap;
	return 0;
}

static bool same_frame(const struct pm_chain_frame *a, const struct pm_chain_frame *b)
{
	return a->address == b->address && a->module == b->module && a->how == b->how;
}

static int intern_sample_chain(struct pm_chains *chains, const struct pm_record *record,
			       uint32_t *out)
{
	struct pm_chain_slot *slot =
		&chains->slots[pm_hash_mix(record->pid, record->tid) &
			       (PM_CHAIN_SLOTS - 1)];
	size_t len = chains->frames_len;
	uint32_t stack = PM_FILE_NONE;
	size_t same = 0, new_stacks = 0;
	int ret = slot_reserve(slot, len);
	uint64_t cost;

	if (ret < 0)
		return ret;
	if (slot->pid != record->pid || slot->tid != record->tid)
		slot->len = 0;
	slot->pid = record->pid;
	slot->tid = record->tid;
	while (same < len && same < slot->len &&
	       same_frame(&slot->frames[same], &chains->frames[len - 1 - same]))
		same++;
	if (same > 0)
		stack = slot->stacks[same - 1];
	slot->len = same;
	cost = (len - same) * PM_CHAIN_COST_FRAME;
	for (; same < len; same++) {
		const struct pm_chain_frame *frame = &chains->frames[len - 1 - same];
		uint32_t id;

		ret = pm_chains_frame(chains, frame, &id);
		if (ret == 0)
			ret = pm_file_intern_stack(chains->from.writer, stack, id,
						   &stack);
		if (ret < 0)
			return ret;
		/* Ids are assigned in order: a larger id than any before is a new
		 * stack. */
		if (stack >= chains->stacks_seen) {
			chains->stacks_seen = (uint64_t)stack + 1;
			new_stacks++;
		}
		slot->frames[same] = *frame;
		slot->stacks[same] = stack;
		slot->len = same + 1;
	}
	pm_chains_spend(chains, cost + new_stacks * PM_CHAIN_COST_NEW_STACK);
	*out = stack;
	return 0;
}

void pm_chains_forget_stacks(struct pm_chains *chains)
{
	for (size_t i = 0; i < PM_CHAIN_SLOTS; i++)
		chains->slots[i].len = 0;
}

void pm_chains_ahead(struct pm_chains *chains, const struct pm_record *records,
		     size_t len)
{
	struct pm_unw_job jobs[PM_CHAIN_AHEAD_MAX];
	struct pm_unw_stack stack;

	chains->ahead_len = 0;
	if (chains->from.call_graph != PM_CALL_GRAPH_DWARF || len < 2 ||
	    len > PM_CHAIN_AHEAD_MAX)
		return;
	for (size_t i = 0; i < len; i++) {
		struct pm_chain_ahead *ahead = &chains->ahead[chains->ahead_len];
		struct pm_process *process =
			pm_procs_get(chains->from.procs, (pid_t)records[i].pid);

		/* Errors are reported when this record is processed. */
		if (!process || !inputs_of(&records[i].sample, &ahead->regs, &stack) ||
		    get_space(chains, process, records[i].time, &ahead->space) < 0)
			continue;
		ahead->record = &records[i];
		ahead->process = process;
		ahead->version = pm_chain_space_version(process);
		ahead->reopened = chains->from.modules->reopened;
		ahead->missed = 0;
		stack.missed = &ahead->missed;
		jobs[chains->ahead_len++] =
			(struct pm_unw_job){ .space = &ahead->space,
					     .regs = &ahead->regs,
					     .stack = stack,
					     .frames = ahead->frames };
	}
	/* The records are in order of time: a page that is recent enough for the last
	 * record is recent enough for all. */
	pm_chain_live_begin(chains->from.modules, records[len - 1].time, len);
	pm_unwind_batch(chains->unwinder, jobs, chains->ahead_len);
	if (chains->budget)
		pm_chain_budget_settle(chains->budget);
	for (size_t i = 0; i < chains->ahead_len; i++) {
		chains->ahead[i].len = jobs[i].len;
		chains->ahead[i].stop = jobs[i].stop;
	}
}

int pm_chains_add(struct pm_chains *chains, const struct pm_record *record,
		  struct pm_chain *out)
{
	struct pm_chain chain;
	int ret;

	chains->frames_len = 0;
	chains->record = record;
	chains->stitched = false;
	chains->wanting = false;
	chains->promise = 0;
	ret = collect_sample_frames(chains, record, &chain.stop);
	if (chains->budget)
		pm_chain_budget_settle(chains->budget);
	if (ret == 0)
		ret = intern_sample_chain(chains, record, &chain.stack);
	if (chains->promise != 0)
		chain.own_stop = chains->own_stop;
	else
		chain.own_stop = chain.stop;
	chain.stitched = chains->stitched;
	chain.promise = chains->promise;
	chain.time = record->time;
	chain.own_len = (uint32_t)chains->own_len;
	if (chains->promise != 0)
		chain.wanted_bytes = chains->wanted_bytes;
	else
		chain.wanted_bytes = 0;
	if (ret == 0)
		*out = chain;
	chains->samples++;
	return ret;
}

int pm_chains_settle(struct pm_chains *chains, struct pm_chain *chain)
{
	struct pm_chain_stitched stitched;
	uint32_t stack = PM_FILE_NONE, frame, at = chain->stack;
	int ret = 0;

	if (chain->promise == 0 ||
	    !pm_file_writer_has_stack(chains->from.writer, chain->stack) ||
	    !pm_chain_stitches_settle(chains->stitches, chain->promise, chain->time,
				      PM_UNW_FRAMES_MAX, &stitched))
		return 0;
	for (size_t i = stitched.len; i-- > 0 && ret == 0;) {
		const struct pm_chain_stitch_frame *outer = &stitched.frames[i];

		ret = pm_chains_frame_at(
			chains,
			&(struct pm_chain_frame){ .address = outer->address,
						  .module = outer->module,
						  .how = PM_UNW_HOW_STITCHED },
			chain->time, &frame);
		if (ret == 0)
			ret = pm_file_intern_stack(chains->from.writer, stack, frame,
						   &stack);
	}
	/* The sample's own frames are the innermost ones of the stack that it has so
	 * far. */
	for (uint32_t i = 0; i < chain->own_len && at != PM_FILE_NONE; i++)
		chains->own[i] = pm_file_writer_stack(chains->from.writer, at, &at);
	for (uint32_t i = chain->own_len; i-- > 0 && ret == 0;)
		ret = pm_file_intern_stack(chains->from.writer, stack, chains->own[i],
					   &stack);
	if (ret < 0)
		return ret;
	chain->stack = stack;
	chain->stitched = stitched.len > 0;
	if (stitched.rooted)
		chain->stop = PM_UNW_STOP_ROOT;
	else if (stitched.limited)
		chain->stop = PM_UNW_STOP_LIMIT;
	else
		chain->stop = chain->own_stop;
	chain->promise = 0;
	return 0;
}

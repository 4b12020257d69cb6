/* SPDX-License-Identifier: MIT */
#include "tree-filter.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "tracefs-mount.h"

enum {
	TASKS_MAX = 4 * 1024 * 1024, /* PID_MAX_LIMIT, linux/threads.h, 64-bit */
	/* One map element holds the marks of 2^CHUNK_SHIFT tasks. */
	CHUNK_SHIFT = 12,
	CHUNK_BYTES = 1 << CHUNK_SHIFT,
	CHUNKS = TASKS_MAX / CHUNK_BYTES,
	FORMAT_BYTES_MAX = 8192,
	LOG_BYTES = 4096,
	EVENTS_MAX = 64, /* events whose dropped periods are summed */
};

/* linux/proc_ns.h: PROC_PID_INIT_INO */
#define INITIAL_PID_NAMESPACE 0xeffffffcu

enum {
	FOLLOW_FORK,
	FOLLOW_EXEC,
	FOLLOW_FREE,
	FOLLOWERS,
};
_Static_assert((int)FOLLOWERS == (int)PM_TREE_FOLLOWERS, "the same followers");

struct pm_tree_filter {
	uint8_t *marks; /* TASKS_MAX, shared with the kernel */
	uint64_t *left_out; /* sums of periods, by event; shared as well */
	int map, left_out_map;
	/* Programs by event, the last one for all further events. -1: none. */
	int sampling[EVENTS_MAX + 1];
	int probing; /* the same program for probes; -1: the kernel refuses it */
	int followers
		[FOLLOWERS]; /* events at the tracepoints, which hold their programs */
};

/* ---- system calls --------------------------------------------------------------------- */

static int sys_bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	int ret = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	if (ret < 0)
		return -errno;
	return ret;
}

/*
 * Up to Linux 5.10, maps and programs count as locked memory of their user, whose limit
 * is usually 64 KiB, even for root (bpf_charge_memlock()). The limit is only checked when
 * one is created, so it is restored before this returns.
 */
static int sys_bpf_make(enum bpf_cmd command, union bpf_attr *attr)
{
	static const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit before, most;
	int ret = sys_bpf(command, attr);

	if (ret != -EPERM || getrlimit(RLIMIT_MEMLOCK, &before) < 0)
		return ret;
	/* Without CAP_SYS_RESOURCE, the limit can only be raised to the hard limit. */
	most = (struct rlimit){ before.rlim_max, before.rlim_max };
	if (setrlimit(RLIMIT_MEMLOCK, &none) < 0 && setrlimit(RLIMIT_MEMLOCK, &most) < 0)
		return ret;
	ret = sys_bpf(command, attr);
	(void)setrlimit(RLIMIT_MEMLOCK, &before);
	return ret;
}

static int make_bpf_map(const char *name, uint32_t value_bytes, uint32_t len)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = value_bytes;
	attr.max_entries = len;
	attr.map_flags = BPF_F_MMAPABLE;
	snprintf(attr.map_name, sizeof(attr.map_name), "pmrec_%s", name);
	return sys_bpf_make(BPF_MAP_CREATE, &attr);
}

static int load_bpf_program(enum bpf_prog_type type, const char *name,
			    const struct bpf_insn *code, size_t len, struct pm_error *err)
{
	char log[LOG_BYTES] = "";
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = (uint32_t)len;
	attr.license = (uintptr_t) "MIT";
	snprintf(attr.prog_name, sizeof(attr.prog_name), "pmrec_%s", name);
	fd = sys_bpf_make(BPF_PROG_LOAD, &attr);
	if (fd != -EINVAL && fd != -EACCES) {
		if (fd >= 0)
			return fd;
		return pm_error_set(err, fd, "BPF is not allowed: %s", strerror(-fd));
	}
	/* Load it again to get the verifier's message. */
	attr.log_buf = (uintptr_t)log;
	attr.log_size = sizeof(log);
	attr.log_level = 1;
	fd = sys_bpf(BPF_PROG_LOAD, &attr);
	log[strcspn(log, "\n")] = '\0';
	if (fd >= 0)
		return fd;
	return pm_error_set(err, fd, "the kernel refuses a BPF program: %s: %s",
			    strerror(-fd), log);
}

/* ---- programs ------------------------------------------------------------------------- */

/* Opcodes: linux/bpf.h; semantics: Documentation/bpf/standardization/instruction-set.rst.
 * r0 is the result of a call, r1-r5 are its arguments and are clobbered, r6-r9 are
 * preserved, r10 is the end of the stack. */
#define INSN(op, to, from, at, value)          \
	((struct bpf_insn){ .code = (op),      \
			    .dst_reg = (to),   \
			    .src_reg = (from), \
			    .off = (at),       \
			    .imm = (value) })
#define MOVE(to, from)         INSN(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define MOVE_32(to, from)      INSN(BPF_ALU | BPF_MOV | BPF_X, to, from, 0, 0)
#define SET(to, value)         INSN(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value)
#define ADD(to, from)          INSN(BPF_ALU64 | BPF_ADD | BPF_X, to, from, 0, 0)
#define ADD_VALUE(to, value)   INSN(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value)
#define AND_VALUE(to, value)   INSN(BPF_ALU64 | BPF_AND | BPF_K, to, 0, 0, value)
#define SHIFT_RIGHT(to, value) INSN(BPF_ALU64 | BPF_RSH | BPF_K, to, 0, 0, value)
#define LOAD_8(to, from, at)   INSN(BPF_LDX | BPF_MEM | BPF_B, to, from, at, 0)
#define LOAD_32(to, from, at)  INSN(BPF_LDX | BPF_MEM | BPF_W, to, from, at, 0)
#define LOAD_64(to, from, at)  INSN(BPF_LDX | BPF_MEM | BPF_DW, to, from, at, 0)
/* An atomic addition; BPF_ATOMIC has the number that BPF_XADD had. */
#define ADD_TO_64(to, from)        INSN(BPF_STX | BPF_XADD | BPF_DW, to, from, 0, BPF_ADD)
#define STORE_8(to, from, at)      INSN(BPF_STX | BPF_MEM | BPF_B, to, from, at, 0)
#define STORE_32(to, from, at)     INSN(BPF_STX | BPF_MEM | BPF_W, to, from, at, 0)
#define SKIP_IF(reg, value, n)     INSN(BPF_JMP | BPF_JEQ | BPF_K, reg, 0, n, value)
#define SKIP_UNLESS(reg, value, n) INSN(BPF_JMP | BPF_JNE | BPF_K, reg, 0, n, value)
#define CALL(function)             INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define EXIT()                     INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

enum {
	R0,
	R1,
	R2,
	R3,
	R6 = 6,
	R7,
	R8,
	R9,
	R10,
	CODE_MAX = 64,
	KEY_AT = -8, /* on the stack */
};

struct code {
	struct bpf_insn insns[CODE_MAX];
	size_t len;
};

static void code_emit_insns(struct code *code, const struct bpf_insn *insns, size_t len)
{
	memcpy(&code->insns[code->len], insns, len * sizeof(*insns));
	code->len += len;
}
#define EMIT(code, ...)                                                    \
	code_emit_insns(code, (const struct bpf_insn[]){ __VA_ARGS__ },    \
			sizeof((const struct bpf_insn[]){ __VA_ARGS__ }) / \
				sizeof(struct bpf_insn))

/* The result of a program at a tracepoint. After 0 no other user of the tracepoint,
 * neither perf nor another pmrec, would get a record (perf_trace_run_bpf_submit()). */
#define GO_ON 1

/* Emits r0 := address of the mark of the task in register @task. If there is none, the
 * program ends with @without. Clobbers r1 to r5 and r9. @task must be a register that
 * calls preserve. */
static void code_emit_find_mark(struct code *code, int map, uint8_t task, int without)
{
	EMIT(code, MOVE(R2, task), /* which chunk: the key is passed */
	     SHIFT_RIGHT(R2, CHUNK_SHIFT), /* */
	     STORE_32(R10, R2, KEY_AT), /* in memory, as the call expects it */
	     MOVE(R2, R10), /* */
	     ADD_VALUE(R2, KEY_AT), /* second argument: address of the key */
	     INSN(BPF_LD | BPF_IMM | BPF_DW, R1, BPF_PSEUDO_MAP_FD, 0,
		  map), /* first: map */
	     INSN(0, 0, 0, 0, 0), /* its upper half */
	     CALL(BPF_FUNC_map_lookup_elem), /* */
	     SKIP_UNLESS(R0, 0, 2), /* no such chunk: */
	     SET(R0, without), /* no mark */
	     EXIT(), /* */
	     MOVE(R9, task), /* which byte of the chunk; the mask shows */
	     AND_VALUE(R9, CHUNK_BYTES - 1), /* the verifier that it lies inside */
	     ADD(R0, R9)); /* */
}

/* Runs at a sample: checks whether the running task is marked. The result 0 drops the
 * record; its period is then added to the sum for event @slot, unless @slot is
 * EVENTS_MAX. */
static int load_sampling_program(const struct pm_tree_filter *filter, uint32_t slot,
				 enum bpf_prog_type type, struct pm_error *err)
{
	struct code code = { .len = 0 };

	EMIT(&code, MOVE(R8, R1), /* context of the sample */
	     CALL(BPF_FUNC_get_current_pid_tgid), /* process << 32 | thread */
	     MOVE_32(R6, R0)); /* the thread; the upper half becomes 0 */
	code_emit_find_mark(&code, filter->map, R6, 0);
	EMIT(&code, LOAD_8(R1, R0, 0), /* its mark */
	     SET(R0, 1), /* recorded, */
	     SKIP_UNLESS(R1, PM_TREE_YES, 1), /* */
	     EXIT());
	if (slot < EVENTS_MAX)
		EMIT(&code,
		     LOAD_64(R2, R8, offsetof(struct bpf_perf_event_data, sample_period)),
		     INSN(BPF_LD | BPF_IMM | BPF_DW, R1, BPF_PSEUDO_MAP_VALUE, 0,
			  filter->left_out_map), /* the map's only element, */
		     INSN(0, 0, 0, 0, (int32_t)(slot * sizeof(uint64_t))), /* at this */
		     ADD_TO_64(R1, R2));
	EMIT(&code, SET(R0, 0), /* or dropped */
	     EXIT());
	return load_bpf_program(type, "sample", code.insns, code.len, err);
}

/* sched_wakeup_new: the running task has created another one, which has not run yet.
 * Unlike sched_process_fork, it also reports the kernel's io_uring threads. */
static int load_fork_program(int map, int child_at, struct pm_error *err)
{
	struct code code = { .len = 0 };

	EMIT(&code,
	     LOAD_32(R7, R1, (int16_t)child_at), /* the new task, from the record */
	     CALL(BPF_FUNC_get_current_pid_tgid), /* */
	     MOVE_32(R6, R0)); /* the creator */
	code_emit_find_mark(&code, map, R6, GO_ON);
	EMIT(&code, LOAD_8(R8, R0, 0), /* the creator's mark */
	     SKIP_UNLESS(R8, PM_TREE_NO, 2), /* none: */
	     SET(R0, GO_ON), /* nothing to inherit */
	     EXIT());
	code_emit_find_mark(&code, map, R7, GO_ON);
	EMIT(&code, STORE_8(R0, R8, 0), /* the new task's mark := its creator's */
	     SET(R0, GO_ON), /* */
	     EXIT());
	return load_bpf_program(BPF_PROG_TYPE_TRACEPOINT, "fork", code.insns, code.len,
				err);
}

/* sched_process_exec: a program starts. In a process with several threads, the calling
 * thread takes over the id of the first thread. */
static int load_exec_program(int map, int pid_at, int old_at, struct pm_error *err)
{
	struct code code = { .len = 0 };

	EMIT(&code, LOAD_32(R6, R1, (int16_t)old_at), /* the id before */
	     LOAD_32(R7, R1, (int16_t)pid_at)); /* the id now */
	code_emit_find_mark(&code, map, R6, GO_ON);
	EMIT(&code, LOAD_8(R8, R0, 0), /* its mark */
	     SKIP_UNLESS(R8, PM_TREE_NO, 2), /* none: */
	     SET(R0, GO_ON), /* */
	     EXIT(), /* */
	     SET(R1, PM_TREE_NO), /* */
	     STORE_8(R0, R1, 0)); /* the old id is free */
	code_emit_find_mark(&code, map, R7, GO_ON);
	EMIT(&code, SET(R1, PM_TREE_YES), /* the new id is recorded from now on, */
	     STORE_8(R0, R1, 0), /* even if it was waiting for its exec */
	     SET(R0, GO_ON), /* */
	     EXIT());
	return load_bpf_program(BPF_PROG_TYPE_TRACEPOINT, "exec", code.insns, code.len,
				err);
}

/* sched_process_free: a task is gone and its id may be reused. The mark is not cleared at
 * the exit of the task, since the task still frees its memory after that: this time
 * belongs to it. */
static int load_free_program(int map, int pid_at, struct pm_error *err)
{
	struct code code = { .len = 0 };

	EMIT(&code, LOAD_32(R6, R1, (int16_t)pid_at)); /* the task */
	code_emit_find_mark(&code, map, R6, GO_ON);
	EMIT(&code, SET(R1, PM_TREE_NO), /* */
	     STORE_8(R0, R1, 0), /* no mark */
	     SET(R0, GO_ON), /* */
	     EXIT());
	return load_bpf_program(BPF_PROG_TYPE_TRACEPOINT, "free", code.insns, code.len,
				err);
}

/* ---- tracepoints ---------------------------------------------------------------------- */

static int read_tracefs_event_file(int tracefs, const char *event, const char *name,
				   char text[FORMAT_BYTES_MAX])
{
	char path[128];
	int fd PM_AUTO_CLOSE = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "events/sched/%s/%s", event, name);
	fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, FORMAT_BYTES_MAX - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

/* Returns the offset of the field `pid_t @name` in the record, or -EBADMSG:
 * "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;" */
static int offset_of_format_field(const char *format, const char *name)
{
	char field[64];
	const char *at;
	unsigned int offset, size;

	snprintf(field, sizeof(field), "field:pid_t %s;", name);
	at = strstr(format, field);
	if (!at ||
	    sscanf(at + strlen(field), " offset:%u; size:%u;", &offset, &size) != 2)
		return -EBADMSG;
	if (size == sizeof(uint32_t) && offset < 1024)
		return (int)offset;
	return -EBADMSG;
}

struct follower {
	const char *event;
	const char *fields[2]; /* NULL: there is only one */
};

static const struct follower followers[FOLLOWERS] = {
	[FOLLOW_FORK] = { "sched_wakeup_new", { "pid", NULL } },
	[FOLLOW_EXEC] = { "sched_process_exec", { "pid", "old_pid" } },
	[FOLLOW_FREE] = { "sched_process_free", { "pid", NULL } },
};

static int load_follower_program(const struct pm_tree_filter *filter, int which,
				 const int offsets[2], struct pm_error *err)
{
	switch (which) {
	case FOLLOW_FORK:
		return load_fork_program(filter->map, offsets[0], err);
	case FOLLOW_EXEC:
		return load_exec_program(filter->map, offsets[0], offsets[1], err);
	default:
		return load_free_program(filter->map, offsets[0], err);
	}
}

/* The program at a tracepoint runs on every CPU, whatever CPU the event that holds it
 * belongs to. */
static int open_follower_tracepoint(uint64_t id)
{
	struct perf_event_attr attr;
	int fd = -1;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = id;
	attr.disabled = 1; /* only its program is needed, which runs nevertheless */
	attr.sample_period = 1;
	for (int cpu = 0; cpu < 64 && fd < 0; cpu++) {
		fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1,
				  PERF_FLAG_FD_CLOEXEC);
		if (fd < 0 && errno != ENODEV)
			break;
	}
	if (fd < 0)
		return -errno;
	return fd;
}

static int follow_tracepoint(struct pm_tree_filter *filter, int tracefs, int which,
			     struct pm_error *err)
{
	const struct follower *it = &followers[which];
	int program PM_AUTO_CLOSE = -1;
	char text[FORMAT_BYTES_MAX] = "";
	int offsets[2] = { 0, 0 };
	uint64_t id;
	int ret = read_tracefs_event_file(tracefs, it->event, "format", text);

	for (size_t i = 0; i < 2 && ret >= 0 && it->fields[i]; i++)
		ret = offsets[i] = offset_of_format_field(text, it->fields[i]);
	if (ret >= 0)
		ret = read_tracefs_event_file(tracefs, it->event, "id", text);
	text[strcspn(text, "\n")] = '\0';
	if (ret >= 0 && !pm_parse_u64(text, &id))
		ret = -EBADMSG;
	if (ret < 0)
		return pm_error_set(err, ret, "the tracepoint sched:%s cannot be read",
				    it->event);
	program = load_follower_program(filter, which, offsets, err);
	if (program < 0)
		return program;
	filter->followers[which] = open_follower_tracepoint(id);
	if (filter->followers[which] < 0)
		return pm_error_set(err, filter->followers[which],
				    "the tracepoint sched:%s cannot be opened: %s",
				    it->event, strerror(-filter->followers[which]));
	if (ioctl(filter->followers[which], PERF_EVENT_IOC_SET_BPF, program) < 0)
		return pm_error_set(err, -errno, "no BPF at sched:%s: %s", it->event,
				    strerror(errno));
	return 0;
}

/* ---- public --------------------------------------------------------------------------- */

/* The programs see ids of the initial PID namespace. */
static bool numbers_are_the_kernels(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == INITIAL_PID_NAMESPACE;
}

/* Before 5.8, the task replaced by an exec kept its id (exchange_tids()), so its end
 * would clear the mark of its successor. */
static bool kernel_is_new_enough(void)
{
	struct utsname names;
	int major = 0, minor = 0;

	return uname(&names) == 0 &&
	       sscanf(names.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 8));
}

/* Maps the sums of dropped periods. The filter works without them, too. */
static void map_left_out_counts(struct pm_tree_filter *filter)
{
	void *at;

	filter->left_out_map =
		make_bpf_map("left_out", EVENTS_MAX * sizeof(*filter->left_out), 1);
	if (filter->left_out_map < 0)
		return;
	at = mmap(NULL, EVENTS_MAX * sizeof(*filter->left_out), PROT_READ, MAP_SHARED,
		  filter->left_out_map, 0);
	if (at != MAP_FAILED)
		filter->left_out = at;
}

static int build_tree_filter(struct pm_tree_filter *filter, bool inherit,
			     struct pm_error *err)
{
	int tracefs PM_AUTO_CLOSE = -1;
	void *marks;
	int ret = 0;

	if (!numbers_are_the_kernels())
		return pm_error_set(err, -ENOTSUP, "in a PID namespace");
	if (!kernel_is_new_enough())
		return pm_error_set(err, -ENOTSUP, "the kernel is older than 5.8");
	filter->map = make_bpf_map("tasks", CHUNK_BYTES, CHUNKS);
	if (filter->map < 0)
		return pm_error_set(err, filter->map, "BPF is not allowed: %s",
				    strerror(-filter->map));
	marks = mmap(NULL, TASKS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, filter->map, 0);
	if (marks == MAP_FAILED)
		return pm_error_set(err, -errno, "the marks cannot be mapped: %s",
				    strerror(errno));
	filter->marks = marks;
	map_left_out_counts(filter);
	filter->sampling[EVENTS_MAX] =
		load_sampling_program(filter, EVENTS_MAX, BPF_PROG_TYPE_PERF_EVENT, err);
	if (filter->sampling[EVENTS_MAX] < 0)
		return filter->sampling[EVENTS_MAX];
	filter->probing =
		load_sampling_program(filter, EVENTS_MAX, BPF_PROG_TYPE_KPROBE, NULL);
	tracefs = pm_tracefs_open();
	if (tracefs < 0)
		return pm_error_set(err, tracefs, "tracefs cannot be read: %s",
				    strerror(-tracefs));
	for (int i = 0; i < FOLLOWERS && ret == 0; i++)
		if (inherit || i != FOLLOW_FORK)
			ret = follow_tracepoint(filter, tracefs, i, err);
	return ret;
}

int pm_tree_filter_new(struct pm_tree_filter **out, bool inherit, struct pm_error *err)
{
	struct pm_tree_filter *filter = malloc(sizeof(*filter));
	int ret;

	if (!filter)
		return pm_error_set(err, -ENOMEM, "no memory");
	*filter = (struct pm_tree_filter){
		.map = -1, .left_out_map = -1, .probing = -1, .followers = { -1, -1, -1 }
	};
	for (int i = 0; i <= EVENTS_MAX; i++)
		filter->sampling[i] = -1;
	ret = build_tree_filter(filter, inherit, err);
	if (ret < 0)
		pm_tree_filter_free(filter);
	else
		*out = filter;
	return ret;
}

void pm_tree_filter_free(struct pm_tree_filter *filter)
{
	if (!filter)
		return;
	for (int i = 0; i < FOLLOWERS; i++)
		if (filter->followers[i] >= 0)
			close(filter->followers[i]);
	for (int i = 0; i <= EVENTS_MAX; i++)
		if (filter->sampling[i] >= 0)
			close(filter->sampling[i]);
	if (filter->left_out)
		munmap(filter->left_out, EVENTS_MAX * sizeof(*filter->left_out));
	if (filter->left_out_map >= 0)
		close(filter->left_out_map);
	if (filter->probing >= 0)
		close(filter->probing);
	if (filter->marks)
		munmap(filter->marks, TASKS_MAX);
	if (filter->map >= 0)
		close(filter->map);
	free(filter);
}

size_t pm_tree_filter_followers(const struct pm_tree_filter *filter,
				int out[PM_TREE_FOLLOWERS])
{
	size_t len = 0;

	for (int i = 0; i < FOLLOWERS; i++)
		if (filter->followers[i] >= 0)
			out[len++] = filter->followers[i];
	return len;
}

/* Returns the program of event @index, which is created on first use, or the one for all
 * other events if that fails. */
static int program_of_event(struct pm_tree_filter *filter, uint32_t index)
{
	if (index >= EVENTS_MAX || !filter->left_out)
		return filter->sampling[EVENTS_MAX];
	if (filter->sampling[index] < 0)
		filter->sampling[index] = load_sampling_program(
			filter, index, BPF_PROG_TYPE_PERF_EVENT, NULL);
	return filter->sampling[filter->sampling[index] < 0 ? EVENTS_MAX : index];
}

int pm_tree_filter_attach(struct pm_tree_filter *filter, int fd, uint32_t index,
			  bool probe)
{
	int program = filter->probing;

	if (!probe)
		program = program_of_event(filter, index);

	if (program < 0)
		return -EINVAL;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) < 0)
		return -errno;
	return 0;
}

int pm_tree_filter_left_out(const struct pm_tree_filter *filter, uint32_t index,
			    uint64_t *out)
{
	if (index >= EVENTS_MAX || filter->sampling[index] < 0)
		return -ENOTSUP;
	*out = __atomic_load_n(&filter->left_out[index], __ATOMIC_RELAXED);
	return 0;
}

void pm_tree_filter_mark(struct pm_tree_filter *filter, pid_t tid, enum pm_tree_mark mark)
{
	if (tid > 0 && tid < TASKS_MAX)
		__atomic_store_n(&filter->marks[tid], (uint8_t)mark, __ATOMIC_RELAXED);
}

enum pm_tree_mark pm_tree_filter_marked(const struct pm_tree_filter *filter, pid_t tid)
{
	if (tid <= 0 || tid >= TASKS_MAX)
		return PM_TREE_NO;
	return (enum pm_tree_mark)__atomic_load_n(&filter->marks[tid], __ATOMIC_RELAXED);
}

/* SPDX-License-Identifier: MIT */
/* Shared by the files of this room, their tests and their fuzz targets. */
#pragma once

#include "pm/perf.h"

#include <linux/perf_event.h>
#include <time.h>

/* Reads CLOCK_MONOTONIC, the clock of the times in records. */
static inline uint64_t pm_perf_now_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns the string, or @otherwise if there was not enough memory for it. */
static inline const char *pm_str_text_or(const struct pm_str *str, const char *otherwise)
{
	if (str->failed || !str->data)
		return otherwise;
	return str->data;
}

/* Returns the name of an event for messages: as typed, if it was typed. */
static inline const char *pm_event_shown_name(const struct pm_event_spec *spec)
{
	if (spec->requested[0])
		return spec->requested;
	return spec->name;
}

/* Returns the ioctl(2) request that enables or disables an event. */
static inline unsigned long pm_perf_switch_request(bool on)
{
	if (on)
		return PERF_EVENT_IOC_ENABLE;
	return PERF_EVENT_IOC_DISABLE;
}

/* ---- event names ---------------------------------------------------------------------- */

/*
 * Appends up to @max (at most 3) names similar to @word, the most similar first: "a, b,
 * c". If @wanted is given, it decides whether a candidate may be used.
 */
void pm_event_names_near(const char *word, bool (*wanted)(const char *name), size_t max,
			 struct pm_str *out);

/* ---- ids of events -------------------------------------------------------------------- */

struct pm_event_ids {
	struct pm_index index;
	PM_VEC(struct pm_event_id {
		uint64_t id;
		uint32_t event;
		/* The period of each sample; 0: the samples contain it. */
		uint64_t period;
	})
	list;
};

int pm_event_ids_add(struct pm_event_ids *ids, uint64_t id, uint32_t event);
/* Sets the period of the samples of @id, the id added last, which have no
 * PERF_SAMPLE_PERIOD. Requires PERF_SAMPLE_IDENTIFIER, which puts the id before all other
 * fields. */
void pm_event_ids_period(struct pm_event_ids *ids, uint64_t period);
/* Returns the event's index, or PM_INDEX_NONE. */
uint32_t pm_event_ids_find(const struct pm_event_ids *ids, uint64_t id);
void pm_event_ids_release(struct pm_event_ids *ids);

/* Gets the count of @event from the PERF_SAMPLE_READ of a group. Returns 0, or -ENOENT
 * or -ENOTSUP like pm_perf_count(). */
int pm_sample_count(const struct pm_sample *sample, const struct pm_record_layout *layout,
		    uint32_t event, uint64_t *out);

/* ---- registers ------------------------------------------------------------------------ */

enum {
	PM_NO_REG = 0xff, /* a perf register that has no DWARF number */
};

/* Maps perf's register numbers (asm/perf_regs.h) to DWARF's, by ABI of the sampled
 * task. */
struct pm_regs_arch {
	uint64_t mask; /* the registers an unwinder needs, in perf's numbers */
	uint8_t sp, flags; /* perf's numbers; PM_NO_REG: perf does not have them */
	uint8_t dwarf_64[64], dwarf_32[64]; /* PM_NO_REG: not in this ABI */
};
extern const struct pm_regs_arch pm_regs_x86, pm_regs_aarch64;
/* The table of the target architecture; NULL if it has none. */
const struct pm_regs_arch *pm_regs_native(void);

/* @values: one value for each bit of @mask, lowest bit first. */
void pm_regs_convert(const struct pm_regs_arch *arch, enum pm_regs_abi abi, uint64_t mask,
		     const uint64_t *values, struct pm_user_regs *out);

/* ---- merge ---------------------------------------------------------------------------- */

/* Reads the time of a record without decoding the record. Returns false if the field
 * lies outside. */
bool pm_record_time(const struct perf_event_header *header,
		    const struct pm_record_layout *layout, uint64_t *out);

struct pm_merge_ring {
	struct pm_ring ring;
	uint32_t cpu;
	bool dead; /* its sizes are invalid, nothing more can be read from it */
	uint64_t published; /* the tail as published to the kernel */
	uint64_t order; /* the highest time seen: sort keys of a ring never decrease */
	const struct perf_event_header *next; /* peeked; NULL when peeking failed */
	int next_error;
};

/* The rings of all CPUs, merged by time. Empty if zero-initialised. */
struct pm_merge {
	PM_VEC(struct pm_merge_ring) rings;
	struct pm_record_layout layout; /* its ids are borrowed */
	struct pm_merge_entry {
		uint64_t time;
		uint32_t ring;
	} * heap; /* smallest time first; only rings that have a record in this round */
	size_t heap_len;
	uint64_t limit; /* later records wait for the next round */
	bool given; /* the caller has the record of heap[0] */
	bool held; /* it also has earlier ones: no space is returned to the kernel */
};

/* Takes over @ring (which is then empty) on success. Returns 0 or -ENOMEM. */
int pm_merge_add(struct pm_merge *merge, struct pm_ring *ring, uint32_t cpu);
/* Releases the ring of @cpu with its unread records. Not allowed in the middle of a
 * round. */
void pm_merge_remove(struct pm_merge *merge, uint32_t cpu);
void pm_merge_release(struct pm_merge *merge);
/* @limit must have been read from the clock before this call. */
void pm_merge_begin(struct pm_merge *merge, uint64_t limit);
/* The same with the current time as the limit; @final: without a limit. */
void pm_merge_begin_now(struct pm_merge *merge, bool final);
int pm_merge_next(struct pm_merge *merge, struct pm_record *out, struct pm_error *err);
void pm_merge_hold(struct pm_merge *merge, bool hold);
/* Calls pm_ring_stop() for each backward ring. Other rings can be read at any time. */
int pm_merge_stop_backward(struct pm_merge *merge, bool stop, struct pm_error *err);

/* ---- what this machine and user may do -------------------------------------------------- */

enum {
	PM_SECCOMP_UNKNOWN = -1,
	PM_SECCOMP_OFF = 0,
	PM_SECCOMP_FILTER = 2,
};

struct pm_perf_env {
	bool paranoid_known;
	int paranoid; /* /proc/sys/kernel/perf_event_paranoid */
	int seccomp; /* `Seccomp:` of /proc/self/status */
	bool caps_known;
	uint64_t caps; /* `CapEff:` */
	uint64_t mlock_kb; /* /proc/sys/kernel/perf_event_mlock_kb, 0: unknown */
	uint64_t max_hz; /* /proc/sys/kernel/perf_event_max_sample_rate, 0: unknown */
	uint64_t memlock_bytes; /* RLIMIT_MEMLOCK, UINT64_MAX: no limit */
	uint64_t nofile_hard; /* RLIMIT_NOFILE */
	enum pm_lockdown {
		PM_LOCKDOWN_OFF, /* or unknown */
		PM_LOCKDOWN_INTEGRITY,
		PM_LOCKDOWN_CONFIDENTIALITY,
	} lockdown; /* /sys/kernel/security/lockdown */
};

void pm_perf_env_read(struct pm_perf_env *out);
/* Reads perf_event_max_sample_rate again: the kernel lowers it when samples take too
 * long. */
uint64_t pm_perf_env_max_hz(void);
bool pm_perf_env_admin(const struct pm_perf_env *env); /* CAP_SYS_ADMIN */
bool pm_perf_env_perfmon(const struct pm_perf_env *env); /* CAP_PERFMON or _SYS_ADMIN */
/* Whether rings may have any size: CAP_IPC_LOCK or paranoid -1 (kernel/events/core.c,
 * perf_mmap()). */
bool pm_perf_env_unlimited_rings(const struct pm_perf_env *env);

typedef PM_VEC(uint32_t) pm_cpu_list;
/* Parses a list such as "0-3,8" (Documentation/admin-guide/cputopology.rst). Returns 0
 * or -EINVAL. */
int pm_cpu_list_parse(const char *text, pm_cpu_list *out);
int pm_cpu_list_online(pm_cpu_list *out);
void pm_cpu_list_release(pm_cpu_list *list);

/* ---- why the kernel refused -------------------------------------------------------------- */

struct pm_perf_refusal {
	int code; /* errno of perf_event_open(2) */
	const char *event; /* as typed */
	bool kernel; /* kernel samples were requested */
	bool in_kernel_only; /* the event only occurs in the kernel */
	enum pm_event_kind kind;
	bool wide; /* all tasks, or a control group */
	bool others; /* processes that are already running */
	size_t fds; /* needed by the whole recording */
	const struct pm_perf_env *env;
};

/* Fills @err with the reason, the value found and the one command that fixes it. Pure.
 * Returns -code. */
int pm_perf_explain_open(const struct pm_perf_refusal *why, struct pm_error *err);
/* The same for mmap(2) of rings of @ring_bytes each. */
int pm_perf_explain_map(int code, const struct pm_perf_env *env, size_t ring_bytes,
			size_t rings, struct pm_error *err);
/* The perf_event_mlock_kb that would allow such rings. */
uint64_t pm_perf_mlock_kb_for(size_t ring_bytes);

/* ---- attr ---------------------------------------------------------------------------------- */

/* Features of newer kernels. Each is switched off for good when a kernel refuses it. */
struct pm_perf_features {
	bool format_lost; /* Linux 6.0 */
	bool exclude_guest; /* some PMUs do not support exclusion */
	bool inherit_read; /* Linux 6.12: inherited events may have PERF_SAMPLE_READ */
	bool inherit_thread; /* Linux 5.13; only if requested */
};

/* Properties shared by all events of a recording, so that one layout fits every
 * record. */
struct pm_attr_shape {
	enum pm_call_graph call_graph;
	bool returns; /* as in struct pm_perf_options */
	uint64_t branches; /* PERF_SAMPLE_BRANCH_*, 0: none */
	bool raw; /* there is a tracepoint or probe: PERF_SAMPLE_RAW */
	bool address; /* there is a breakpoint or a memory event: PERF_SAMPLE_ADDR */
	bool read; /* there is a group with `S`: PERF_SAMPLE_READ, PERF_FORMAT_GROUP */
	/* The events are places whose samples contain the counts of a group, with its
	 * times, and the stack pointer. Of the fields above only `call_graph` matters
	 * then. */
	bool hits;
};

void pm_attr_shape_of(const struct pm_event_spec *specs, size_t len,
		      enum pm_call_graph call_graph, uint64_t branches,
		      struct pm_attr_shape *out);

struct pm_attr_request {
	const struct pm_perf_event *event;
	const struct pm_perf_features *features;
	struct pm_attr_shape shape;
	uint32_t stack_bytes;
	size_t ring_bytes;
	bool first; /* records about processes and mappings come from this event */
	bool member; /* of another event's group: enabled with its leader */
	bool counted; /* the leader has `S`: its samples contain this one's count */
	bool no_inherit, no_enable_on_exec;
	bool switches; /* context_switch, set on the first event */
	bool overwrite; /* write_backward */
	/* Only for counters, which give no samples: */
	bool read_group; /* the leader's read(2) returns the whole group */
	bool tell_ended; /* PERF_RECORD_READ for each thread that ends */
};

void pm_attr_fill(const struct pm_attr_request *request, struct perf_event_attr *out);
/* The attr of an event that counts and gives no samples. */
void pm_attr_fill_counter(const struct pm_attr_request *request,
			  struct perf_event_attr *out);
/* The layout of such an event's records, which are not samples, and of its read(2). */
struct pm_record_layout pm_attr_counter_layout(bool read_group);
/*
 * Returns the period of each sample of @event if its attr leaves out PERF_SAMPLE_PERIOD,
 * else 0. If that field is requested, the kernel's software events ignore a fixed period
 * and write a sample for each hit (perf_swevent_event(), kernel/events/core.c).
 */
uint64_t pm_attr_unsaid_period(const struct pm_perf_event *event);
/* Returns the sample_type, read_format and registers that pm_attr_fill() requests.
 * PERF_FORMAT_LOST is not included, since it depends on the kernel's features. */
struct pm_record_layout pm_attr_layout(const struct pm_attr_shape *shape);

/* ---- tracepoints --------------------------------------------------------------------------- */

/*
 * For each tracepoint that matches the globs @system and @name, appends to @out a copy
 * of @like with the name, type, config and kind of that tracepoint. `leader` keeps the
 * value of @like. Returns -EINVAL if none matches (@err then has similar names, and
 * where to look), or -EACCES or -ENOENT if tracefs cannot be read. On failure @out is
 * unchanged.
 */
int pm_tracepoints_expand(const char *system, const char *name,
			  const struct pm_event_spec *like, struct pm_event_specs *out,
			  struct pm_error *err);

/* ---- event specifications ------------------------------------------------------------------ */

/* Where the parser looks up names. Tests use folders of their own. */
struct pm_event_sources {
	const char *devices; /* PMUs: /sys/bus/event_source/devices */
	bool tracefs; /* look for tracepoints of this machine */
	bool libpfm; /* ask libpfm4 for names that are not found elsewhere */
};

void pm_event_spec_unit_from(const struct pm_event_sources *sources,
			     const struct pm_event_spec *spec,
			     char unit[PM_EVENT_UNIT_MAX], double *scale);
/* pm_event_specs_parse() with a different set of sources. */
int pm_event_specs_parse_from(const struct pm_event_sources *sources, const char *text,
			      struct pm_event_specs *specs, struct pm_error *err);

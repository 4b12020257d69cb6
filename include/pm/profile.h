/* SPDX-License-Identifier: MIT */
/*
 * A recording in memory, and the queries on it: tables, call trees, callers and callees.
 *
 * Terms. cell: all samples of one event in one thread with one stack and one stop reason.
 * level: one function at a frame; inlined functions give a frame several. place:
 * function, file and line. weight: the sum of periods; percentages are computed from it.
 * self: weight of the samples taken in a function. total: weight of the samples that have
 * the function anywhere on the stack; each sample counts once, however deep the
 * recursion.
 *
 * A profile does not change once it is loaded; any number of views may read it.
 */
#pragma once

#include "pm/base.h"
#include "pm/file.h"

#define PM_PROFILE_NONE UINT32_MAX

/* Limits that our recorders never exceed. Anything beyond them is counted and dropped. */
enum {
	PM_PROFILE_NOTES_MAX = 1000,
	/* Frames of a stack; four times what pmrec unwinds. */
	PM_PROFILE_DEPTH_MAX = 16384,
};

struct pm_weight {
	uint64_t period, samples;
};

/* Sums saturate: a hostile period must not make a share wrap around. */
static inline void pm_weight_add(struct pm_weight *to, const struct pm_weight *more)
{
	if (__builtin_add_overflow(to->period, more->period, &to->period))
		to->period = UINT64_MAX;
	to->samples += more->samples;
}

/* Returns @part of @whole in percent, or 0 if @whole is 0. */
double pm_weight_percent(const struct pm_weight *part, const struct pm_weight *whole);

/* ---- what was recorded --------------------------------------------------------------- */

/* All strings are valid as long as the profile. */
/* The function of samples that have no frame. */
#define PM_NO_STACK "[no stack]"

struct pm_profile_event {
	const char *name, *requested, *actual, *unit;
	bool by_frequency;
	uint64_t rate; /* Hz, or the period */
	uint64_t lost;
	bool lost_known;
	/* The condition, in the kernel's syntax, for an occurrence to be recorded; NULL:
	 * none. */
	const char *filter;
	/* Leader of its group; its own id if it is the leader or in no group. */
	uint32_t leader;
	/* A counted member of a group (`:S`). Its weights are what it counted between two
	 * samples of the leader in the same thread on the same CPU. */
	bool counted;
	bool blocked; /* blocked time: a sample is the interval that ends at its time */
	bool divided; /* periods were divided by the parallelism, see `latency` */
	struct pm_weight total;
};

struct pm_profile_info {
	const char *pmrec, *created; /* NULL: unknown */
	const char *hostname, *kernel, *arch, *cpu_model, *virt; /* NULL: unknown */
	const char *boot_id; /* NULL: unknown */
	/* The user of everything recorded; PM_FILE_NONE: unknown, or several users. */
	uint32_t uid;
	uint32_t owner; /* of the file; PM_FILE_NONE: it was not a regular file */
	uint32_t cpus;
	const char *call_graph; /* dwarf, fp, none; NULL: unknown */
	uint32_t stack_bytes;
	uint64_t ring_bytes;
	bool cut; /* there is no footer: the recorder was killed */
	bool grows; /* there is no footer yet; `cut` is false then */
	uint64_t start_ns, end_ns; /* of the recording, as far as the file shows */
	uint64_t duration_ns; /* of the recording; if it was cut, until the last sample */
	uint64_t cpu_ns;
	bool cpu_known, exited, signalled;
	uint32_t exit; /* code or signal */
	uint64_t lost, throttled;
	uint64_t footer_samples; /* according to the recorder; unknown if cut */
	uint64_t read_samples; /* in the file, before any filter */
	size_t symbols; /* frames named in the file; 0: nothing was symbolised */
	size_t found; /* frames named later by pm_profile_symbolizer */
	uint32_t pid; /* of the first thread, 0: unknown */
	uint32_t processes, threads; /* distinct pids, and (pid, tid) pairs */
	uint64_t notes_left_out; /* number above PM_PROFILE_NOTES_MAX */
	uint64_t stacks_cut; /* stacks deeper than PM_PROFILE_DEPTH_MAX */
};

struct pm_profile_module {
	const char *path;
	const char *name; /* short: libc.so.6, [kernel], [vdso] */
	const char *build_id; /* NULL: unknown */
	const char *kind;
	bool kernel;
};

/* One row for each name that a thread had. */
struct pm_profile_thread {
	uint32_t pid, tid; /* PM_FILE_NONE: unknown */
	const char *comm; /* "" if unknown */
	uint32_t process;
	/* In the row of the thread's first name, the time since which the thread is
	 * known; 0: unknown, or a later name. */
	uint64_t begin_ns;
};

struct pm_profile_process {
	uint32_t pid;
	const char *comm; /* the last name of its first thread */
	const char *title; /* the last one; NULL: none */
};

struct pm_profile_function {
	/* Without a symbol: "[0x1160]" if the start of the function is known, otherwise
	 * "[unknown]", one function for the whole module. */
	const char *name;
	uint32_t module; /* PM_PROFILE_NONE: no module */
	bool unknown; /* `name` is not a real name */
	uint64_t start; /* of an unknown function, svma; 0: also unknown */
};

struct pm_profile_place {
	uint32_t function;
	uint32_t line; /* 0: unknown */
	const char *file; /* NULL: unknown */
};

struct pm_profile_frame {
	uint64_t address;
	uint32_t module;
	/* places[levels[first_level]] is the innermost; the last one is not inlined. */
	uint32_t first_level, levels;
	bool stitched; /* taken from another sample of the thread, see docs/format.md */
};

/* Parents come before their children. */
struct pm_profile_stack {
	uint32_t parent, frame;
	/* PM_PROFILE_NONE: none; `next` also links the roots. */
	uint32_t first_child, next;
};

struct pm_profile_cell {
	uint32_t event, thread, stack, stop;
	struct pm_weight weight;
	uint64_t longest; /* largest period of one sample */
};

/* A field of a tracepoint or probe in one sample. */
struct pm_profile_field {
	uint32_t name; /* in field_names */
	enum pm_file_field_kind kind;
	union {
		uint64_t number;
		int64_t negative_too;
		const char *text;
	};
};

/* One sample of the file; only kept if pm_profile_options requests it. */
struct pm_profile_sample {
	uint64_t time_ns; /* since info.start_ns; 0 for earlier times */
	uint64_t period; /* at least 1; maybe less with pm_profile_options.latency */
	uint32_t cell;
	uint32_t cpu; /* PM_FILE_NONE: unknown */
	uint32_t first_field, fields; /* in profile->fields */
};

/* Branches from one frame to another, summed over the samples of one cell. */
struct pm_profile_branch {
	uint32_t cell, from, to; /* frames */
	uint64_t count, mispredicted, predicted; /* unknown for the other branches */
	/* Cycles since the previous branch: the sum, and the number of branches in it. */
	uint64_t cycles, cycles_of;
};

struct pm_profile {
	struct pm_profile_info info;
	PM_VEC(const char *) command;
	const char *target; /* what was recorded instead of a command; NULL: unknown */
	PM_VEC(const char *) notes;
	PM_VEC(const char *) stops; /* [0] is NULL: complete to the root */
	PM_VEC(struct pm_profile_event) events;
	PM_VEC(struct pm_profile_module) modules;
	PM_VEC(struct pm_profile_thread) threads;
	PM_VEC(struct pm_profile_process) processes;
	PM_VEC(struct pm_profile_function) functions;
	PM_VEC(struct pm_profile_place) places;
	PM_VEC(uint32_t) levels; /* ids of places */
	PM_VEC(struct pm_profile_frame) frames;
	PM_VEC(struct pm_profile_stack) stacks;
	uint32_t first_root;
	PM_VEC(struct pm_profile_cell) cells;
	PM_VEC(struct pm_profile_sample) samples; /* in time order; empty unless kept */
	PM_VEC(struct pm_profile_field) fields; /* of samples; empty unless kept */
	PM_VEC(const char *) field_names;
	PM_VEC(struct pm_profile_branch) branches; /* empty unless kept */
	/* By sample, see pm_profile_options.parallelism; empty unless requested. */
	PM_VEC(uint32_t) parallelism;
	/* The event that parallelism is computed from; PM_PROFILE_NONE: there is none. */
	uint32_t clock_event;
	bool latency; /* periods of events that have `divided` were divided */
	struct pm_text_pool *texts; /* private */
};

/* Addresses in one module that the file has no names for. */
struct pm_profile_nameless {
	const struct pm_profile_module *module;
	const uint64_t *addresses; /* ascending, distinct */
	size_t addresses_len;
	struct pm_weight self; /* of the samples taken at these addresses */
	bool named; /* the recorder named other addresses of it and was not killed */
	bool lines; /* other addresses of it have lines */
};

/* Names modules[module].addresses[address]. @functions has at least one entry, innermost
 * first, and is copied. Returns 0 or a negative errno. */
typedef int (*pm_profile_name_fn)(void *to, size_t module, size_t address,
				  const struct pm_file_function *functions, size_t len);

/*
 * Finds names for frames that have none in the file. @symbolize is called, if there are
 * such frames, when everything has been read; for a growing stream, at each
 * pm_profile_stream_look(), with the new frames. The module with the heaviest weight
 * comes first. Frames that it does not name stay unknown. It returns 0; 1: not now, a
 * stream asks again, for the same and for new frames; a negative errno aborts loading.
 */
struct pm_profile_symbolizer {
	void *context;
	bool lines; /* also ask for frames that have a name but no line */
	int (*symbolize)(void *context, const struct pm_profile_info *info,
			 const struct pm_profile_nameless *modules, size_t len,
			 pm_profile_name_fn name, void *to);
};

struct pm_profile_options {
	/* Treat all functions of a module that have no name as one, wherever they start;
	 * for comparison with another build. */
	bool no_starts;
	bool no_inlines; /* drop inlined functions and give their time to the caller */
	/* Only load samples in [from, to], in seconds from the start or in percent of the
	 * duration. An interval of blocked time counts with the part that overlaps. */
	bool time_set, time_percent;
	double time_from, time_to;
	const struct pm_profile_symbolizer *symbolizer; /* NULL: only the file's names */
	bool keep_samples; /* fill profile->samples, 32 bytes each */
	bool keep_fields; /* also keep their fields; only with keep_samples */
	/* Fill profile->branches, with all samples even if there is a time range. */
	bool keep_branches;
	/*
	 * Fill profile->parallelism: the number of CPUs that ran what was recorded at the
	 * time of a sample; 0 if it is unknown or nothing ran. Only with keep_samples. It
	 * is computed from one event that is sampled at a rate of time (clock_event).
	 * Each of its samples means that its CPU ran for one interval of that rate before
	 * it; if two samples on one CPU are less than two intervals apart, the CPU ran
	 * for all of the time between them. The idle task does not count as running.
	 */
	bool parallelism;
	/*
	 * Also divide the period of each sample of events sampled by time by the
	 * parallelism, which gives shares of wall-clock time. Blocked time, and events
	 * that are sampled one by one, stay as they are; idle time becomes 0.
	 */
	bool latency;
};

/*
 * Reads all records of @reader. Memory is proportional to the distinct stacks, frames and
 * symbols; a time range or kept samples need 32 bytes more for each sample. @options may
 * be NULL. Returns 0, -ENOMEM, or -EBADMSG and other errors of the reader.
 */
int pm_profile_load(struct pm_profile **out, struct pm_file_reader *reader,
		    const struct pm_profile_options *options, struct pm_error *err);
void pm_profile_free(struct pm_profile *profile);

/*
 * The same for a recording that still grows, record by record. Memory is proportional to
 * the distinct stacks, frames and symbols. Options that keep samples or select a time
 * range are refused with -ENOTSUP. @options are borrowed until the stream is freed.
 */
struct pm_profile_stream;

int pm_profile_stream_new(struct pm_profile_stream **out,
			  const struct pm_profile_options *options, struct pm_error *err);
void pm_profile_stream_free(struct pm_profile_stream *stream);
/* After a failure only pm_profile_stream_free() may be called. */
int pm_profile_stream_add(struct pm_profile_stream *stream,
			  const struct pm_file_record *record, struct pm_error *err);
enum pm_profile_end {
	PM_PROFILE_GROWS, /* more records may follow */
	PM_PROFILE_CUT, /* nothing will follow, and there was no footer */
	PM_PROFILE_WHOLE,
};

/* Returns the profile of everything added so far, valid until the next call. Returns 0 or
 * a negative errno. */
int pm_profile_stream_look(struct pm_profile_stream *stream, enum pm_profile_end end,
			   const struct pm_profile **out, struct pm_error *err);

static inline uint32_t pm_profile_level_place(const struct pm_profile *profile,
					      uint32_t stack, uint32_t level)
{
	const struct pm_profile_frame *frame =
		&profile->frames.data[profile->stacks.data[stack].frame];

	return profile->levels.data[frame->first_level + level];
}
static inline uint32_t pm_profile_level_function(const struct pm_profile *profile,
						 uint32_t stack, uint32_t level)
{
	return profile->places.data[pm_profile_level_place(profile, stack, level)]
		.function;
}
static inline uint32_t pm_profile_levels(const struct pm_profile *profile, uint32_t stack)
{
	return profile->frames.data[profile->stacks.data[stack].frame].levels;
}
/* Returns the short name of a module, "[no module]" for PM_PROFILE_NONE. */
const char *pm_profile_module_name(const struct pm_profile *profile, uint32_t module);

/* ---- names --------------------------------------------------------------------------- */

/*
 * The functions that @pattern selects: those of exactly that name; if there are none,
 * those whose name equals it without parameters and, if needed, without the enclosing
 * scope; if there are none, those that it matches as a POSIX extended regular expression.
 * `set` has one bool for each function.
 */
struct pm_function_set {
	bool *set;
	size_t len; /* number of functions in it */
	size_t names; /* different names among them */
};

/* Returns 0, -ENOENT with similar names in @err, -EINVAL for an invalid expression, or
 * -ENOMEM. */
int pm_function_set_init(struct pm_function_set *out, const struct pm_profile *profile,
			 const char *pattern, struct pm_error *err);
void pm_function_set_release(struct pm_function_set *set);

/* Returns the id of the event called @name (canonical, requested or actual), or
 * PM_PROFILE_NONE with the existing names in @err. */
uint32_t pm_profile_find_event(const struct pm_profile *profile, const char *name,
			       struct pm_error *err);

/* ---- views --------------------------------------------------------------------------- */

/*
 * NULL: no condition. Lists are separated by commas; all conditions must hold. Items that
 * start with `!` are excluded; a list of only such items selects everything else.
 */
struct pm_filter {
	const char *comm; /* list of thread names */
	const char *pid, *tid; /* lists */
	/* List; name or path of the innermost module, or an expression. */
	const char *module;
	const char *
		symbol; /* a function anywhere on the stack, see pm_function_set; `!` too */
};

/* The samples of one event that pass a filter, summed over the stack tree. */
struct pm_view {
	const struct pm_profile *profile;
	uint32_t event;
	struct pm_weight all; /* of the event, unfiltered */
	struct pm_weight total; /* of the samples that passed */
	struct pm_weight unknown; /* of samples taken in a function without a name */
	/* The samples whose outer callers come from other samples. */
	struct pm_weight stitched;
	struct pm_weight *stops; /* by stop reason */
	/* By stack: the weight of the samples that end there; of those that end there or
	 * below. */
	struct pm_weight *self, *sum;
	PM_VEC(uint32_t) cells; /* the cells that passed */
};

/* @filter may be NULL. Returns -ENOENT if no sample of the file has a name in it, -EINVAL
 * if an item is neither a number nor an expression; @err says what exists. */
int pm_view_new(struct pm_view **out, const struct pm_profile *profile, uint32_t event,
		const struct pm_filter *filter, struct pm_error *err);
void pm_view_free(struct pm_view *view);

/* ---- tables -------------------------------------------------------------------------- */

enum pm_key {
	PM_KEY_FUNCTION,
	PM_KEY_MODULE, /* id PM_PROFILE_NONE: no module */
	PM_KEY_THREAD,
	PM_KEY_PROCESS,
	PM_KEY_LINE, /* ids of places */
	PM_KEY_ADDRESS, /* ids of frames, one for each address of a module */
	PM_KEY_COMM, /* id of the first thread with the name */
	PM_KEY_CPU, /* CPU number, PM_FILE_NONE: unknown; only with kept samples */
	PM_KEY_PARALLELISM, /* 0: unknown; only if it was requested */
};

enum {
	PM_KEYS_MAX = 3, /* of one table */
};

/* A table by several keys has a row for each combination that occurs. */
struct pm_keys {
	enum pm_key key[PM_KEYS_MAX];
	uint32_t len; /* at least 1; all different */
};

struct pm_row {
	uint32_t id; /* of the first key */
	uint32_t more[PM_KEYS_MAX - 1]; /* of the other keys */
	struct pm_weight self, total;
	uint32_t place; /* only PM_KEY_FUNCTION alone: its heaviest line, else NONE */
	bool inlined; /* PM_KEY_FUNCTION: all instances were inlined */
};

struct pm_table {
	PM_VEC(struct pm_row) rows; /* heaviest first; only combinations that occur */
};

enum {
	/* More rows would need gigabytes, and would not be read. */
	PM_TABLE_ROWS_MAX = 4 << 20,
};

/* Sorted by self or by total. Returns 0 or -ENOMEM. */
int pm_table_init(struct pm_table *out, const struct pm_view *view, enum pm_key key,
		  bool by_total);
/* The same for several keys. -E2BIG: more combinations than PM_TABLE_ROWS_MAX. */
int pm_table_init_keys(struct pm_table *out, const struct pm_view *view,
		       const struct pm_keys *keys, bool by_total);
static inline uint32_t pm_row_id(const struct pm_row *row, uint32_t key)
{
	return key == 0 ? row->id : row->more[key - 1];
}
void pm_table_release(struct pm_table *table);

/* These return the ids of PM_KEY_ADDRESS by frame, and of PM_KEY_COMM by thread. The
 * caller frees them. NULL if out of memory. */
uint32_t *pm_profile_addresses(const struct pm_profile *profile);
uint32_t *pm_profile_comms(const struct pm_profile *profile);

/* ---- waits --------------------------------------------------------------------------- */

/* Whether the event's periods are the time that threads were blocked (`pmrec
 * --off-cpu`). */
bool pm_profile_is_blocked_time(const struct pm_profile_event *event);

/* Blocked time of one function in one kind of wait. */
struct pm_wait {
	/* The function that waits: the innermost on the stack that belongs neither to the
	 * kernel nor to the C or C++ library. */
	uint32_t function;
	uint32_t place; /* its place; PM_PROFILE_NONE: any */
	/* The library function that it called; PM_PROFILE_NONE: not known. */
	uint32_t call;
	/* The system call, or otherwise the kernel function; NULL: unknown. */
	const char *kernel;
	struct pm_weight weight;
	uint64_t longest;
};

struct pm_waits {
	PM_VEC(struct pm_wait) rows; /* longest total time first */
	struct pm_text_pool *names; /* private */
};

/* @lines: one row for each waiting line, not for each function. Returns 0 or -ENOMEM. */
int pm_waits_init(struct pm_waits *out, const struct pm_view *view, bool lines);
void pm_waits_release(struct pm_waits *waits);
/* Returns the waiting place of each stack that has samples in the view, otherwise
 * PM_PROFILE_NONE. The caller frees it. NULL if out of memory. */
uint32_t *pm_view_waiters(const struct pm_view *view);

/* ---- trees --------------------------------------------------------------------------- */

enum pm_tree_kind {
	PM_TREE_TOP_DOWN, /* from the roots to their callees */
	PM_TREE_BOTTOM_UP, /* from the sampled functions to their callers */
};

struct pm_tree_node {
	uint32_t function; /* PM_PROFILE_NONE for node 0, the parent of all */
	uint32_t parent;
	uint32_t depth; /* 0 for node 0 */
	struct pm_weight total;
	struct pm_weight self; /* top-down: of the function itself, on this path */
	bool inlined; /* every instance in this node is inlined */
	bool recursive; /* its direct recursion is folded into it */
	bool expanded;
	uint32_t first_child, children; /* heaviest first; valid once expanded */
	uint32_t head, tail; /* private */
};

/* A tree that grows on demand: a node's children exist once it has been expanded. */
struct pm_tree {
	const struct pm_view *view;
	enum pm_tree_kind kind;
	PM_VEC(struct pm_tree_node) nodes;
	struct pm_tree_work *work; /* private */
};

/*
 * With @only, the trees start at the outermost of those functions on each stack: top-down
 * shows their callees, bottom-up their callers. @fold folds direct recursion. Node 0 is
 * expanded. Returns 0 or -ENOMEM.
 */
int pm_tree_new(struct pm_tree **out, const struct pm_view *view, enum pm_tree_kind kind,
		const struct pm_function_set *only, bool fold);
void pm_tree_free(struct pm_tree *tree);
/* Adds the children of @node. This moves all nodes: keep ids, not pointers. Returns 0 or
 * -ENOMEM. */
int pm_tree_expand(struct pm_tree *tree, uint32_t node);

/* ---- paths --------------------------------------------------------------------------- */

/* Stacks as lists of functions, for formats that list stacks; equal lists are merged. */
struct pm_path {
	uint32_t parent; /* PM_PROFILE_NONE at the root */
	uint32_t function;
	bool inlined;
};

struct pm_paths {
	PM_VEC(struct pm_path) paths; /* parents first */
	uint32_t *of_stack; /* by stack: the path that ends with its innermost function */
};

/*
 * Returns 0, -ENOMEM, or -E2BIG with @err: a few bytes of a file can claim many inlined
 * calls at every frame, which gives more paths than the stacks of any real program.
 */
int pm_paths_init(struct pm_paths *out, const struct pm_profile *profile,
		  struct pm_error *err);
void pm_paths_release(struct pm_paths *paths);

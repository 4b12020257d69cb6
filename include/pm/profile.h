/* SPDX-License-Identifier: MIT */
/*
 * A recording in memory, and what can be asked of it: tables, call trees, who calls whom.
 *
 * Terms. cell: all samples of one event in one thread with one stack and one stop reason.
 * level: one function at a frame; inlined functions give a frame several. place: function,
 * file and line. weight: what percentages are made of, the sum of periods. self: weight of
 * the samples that were taken in it; total: of those that have it anywhere on the stack,
 * each counted once however deep the recursion.
 *
 * A profile does not change once it is loaded; any number of views may read it.
 */
#pragma once

#include "pm/base.h"
#include "pm/file.h"

#define PM_PROFILE_NONE UINT32_MAX

/* Limits that no recorder of ours exceeds. What a file has beyond them is counted and
 * left out. */
enum {
	PM_PROFILE_NOTES_MAX = 1000,
	/* Frames of a stack, four times what pmrec unwinds. */
	PM_PROFILE_DEPTH_MAX = 16384,
};

struct pm_weight {
	uint64_t period, samples;
};

/* Sums stay at the maximum: a hostile period must not make a share wrap. */
static inline void pm_weight_add(struct pm_weight *to, const struct pm_weight *more)
{
	if (__builtin_add_overflow(to->period, more->period, &to->period))
		to->period = UINT64_MAX;
	to->samples += more->samples;
}

/* @part of @whole in percent; 0 of nothing is 0. */
double pm_weight_percent(const struct pm_weight *part, const struct pm_weight *whole);

/* ---- what was recorded --------------------------------------------------------------- */

/* All texts live as long as the profile. */
/* The function that samples without any frame are in. */
#define PM_NO_STACK "[no stack]"

struct pm_profile_event {
	const char *name, *requested, *actual, *unit;
	bool by_frequency;
	uint64_t rate; /* Hz, or the period */
	uint64_t lost;
	bool lost_known;
	const char
		*filter; /* only where this was true, in the kernel's words; NULL: all */
	uint32_t leader; /* of its group; its own id: in none, or the leader */
	/* Only counted (`:S`): its weights are what it counted from one sample of the leader to
	 * the next in the same thread on the same CPU. */
	bool counted;
	bool blocked; /* blocked time: a sample stands for the interval that ends at its time */
	bool divided; /* periods were divided by the parallelism, see `latency` */
	struct pm_weight total;
};

struct pm_profile_info {
	const char *pmrec, *created; /* NULL: unknown */
	const char *hostname, *kernel, *arch, *cpu_model, *virt; /* NULL: unknown */
	const char *boot_id; /* NULL: unknown */
	uint32_t uid; /* of all that was recorded; PM_FILE_NONE: unknown, or of several */
	uint32_t owner; /* of the file; PM_FILE_NONE: it was no regular one */
	uint32_t cpus;
	const char *call_graph; /* dwarf, fp, none; NULL: unknown */
	uint32_t stack_bytes;
	uint64_t ring_bytes;
	bool cut; /* no footer: the recorder was killed */
	bool grows; /* nor is it the end; then it is not `cut` */
	uint64_t start_ns, end_ns; /* of the recording, as far as the file tells */
	uint64_t duration_ns; /* of the recording; when cut, until the last sample */
	uint64_t cpu_ns;
	bool cpu_known, exited, signalled;
	uint32_t exit; /* code or signal */
	uint64_t lost, throttled;
	uint64_t footer_samples; /* what the recorder says it wrote; unknown when cut */
	uint64_t read_samples; /* in the file, before any filter */
	size_t symbols; /* frames that the file names; 0: nothing was symbolised */
	size_t found; /* and those that pm_profile_symbolizer named later */
	uint32_t pid; /* of the first thread, 0: unknown */
	uint32_t processes, threads; /* distinct pids, and (pid, tid) pairs */
	uint64_t notes_left_out; /* beyond PM_PROFILE_NOTES_MAX */
	uint64_t stacks_cut; /* that were deeper than PM_PROFILE_DEPTH_MAX */
};

struct pm_profile_module {
	const char *path;
	const char *name; /* short: libc.so.6, [kernel], [vdso] */
	const char *build_id; /* NULL: unknown */
	const char *kind;
	bool kernel;
};

/* One for each name that a thread had. */
struct pm_profile_thread {
	uint32_t pid, tid; /* PM_FILE_NONE: unknown */
	const char *comm; /* "" if unknown */
	uint32_t process;
	uint64_t
		begin_ns; /* since when it is known; 0: not, or it had another name then */
};

struct pm_profile_process {
	uint32_t pid;
	const char *comm; /* the last name of its first thread */
	const char *title; /* the last one, NULL: it has none */
};

struct pm_profile_function {
	/* Without a symbol: "[0x1160]" where it is known where the function begins, else
	 * "[unknown]", all of a module in one. */
	const char *name;
	uint32_t module; /* PM_PROFILE_NONE: in no module */
	bool unknown; /* that is no name */
	uint64_t start; /* of an unknown one, svma; 0: unknown as well */
};

struct pm_profile_place {
	uint32_t function;
	uint32_t line; /* 0: unknown */
	const char *file; /* NULL: unknown */
};

struct pm_profile_frame {
	uint64_t address;
	uint32_t module;
	/* places[levels[first_level]] is the innermost; the last is the function proper. */
	uint32_t first_level, levels;
	bool stitched; /* taken from another sample of the thread, see docs/format.md */
};

/* Parents come before their children. */
struct pm_profile_stack {
	uint32_t parent, frame;
	uint32_t first_child, next; /* children; roots hang together by `next`, too */
};

struct pm_profile_cell {
	uint32_t event, thread, stack, stop;
	struct pm_weight weight;
	uint64_t longest; /* period of one sample */
};

/* A field of a tracepoint or probe as a sample has it. */
struct pm_profile_field {
	uint32_t name; /* in field_names */
	enum pm_file_field_kind kind;
	union {
		uint64_t number;
		int64_t negative_too;
		const char *text;
	};
};

/* One line of the file; kept only where pm_profile_options asks for it. */
struct pm_profile_sample {
	uint64_t time_ns; /* since info.start_ns; 0 for a time before it */
	uint64_t period; /* at least 1; with pm_profile_options.latency maybe less */
	uint32_t cell;
	uint32_t cpu; /* PM_FILE_NONE: unknown */
	uint32_t first_field, fields; /* in profile->fields */
};

/* Branches from one frame to another in the samples of one cell. */
struct pm_profile_branch {
	uint32_t cell, from, to; /* frames */
	uint64_t count, mispredicted, predicted; /* the rest: not known */
	uint64_t cycles, cycles_of; /* since the one before: their sum, and of how many */
};

struct pm_profile {
	struct pm_profile_info info;
	PM_VEC(const char *) command;
	const char *target; /* what was recorded instead of a command, NULL: unknown */
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
	PM_VEC(struct pm_profile_sample) samples; /* by time; empty unless kept */
	PM_VEC(struct pm_profile_field) fields; /* of samples; empty unless kept */
	PM_VEC(const char *) field_names;
	PM_VEC(struct pm_profile_branch) branches; /* empty unless kept */
	/* By sample, see pm_profile_options.parallelism; empty unless asked for. */
	PM_VEC(uint32_t) parallelism;
	uint32_t
		clock_event; /* the event that tells it, PM_PROFILE_NONE: there is none */
	bool latency; /* events with `divided` have been so */
	struct pm_text_pool *texts; /* private */
};

/* What the file has no names for, of one module. */
struct pm_profile_nameless {
	const struct pm_profile_module *module;
	const uint64_t *addresses; /* ascending, distinct */
	size_t addresses_len;
	struct pm_weight self; /* of the samples that were taken there */
	bool named; /* the recorder had names for other addresses of it, and could end */
	bool lines; /* there are lines for other addresses of it */
};

/* Names modules[module].addresses[address]: @functions innermost first, at least one, copied.
 * 0 or negative errno. */
typedef int (*pm_profile_name_fn)(void *to, size_t module, size_t address,
				  const struct pm_file_function *functions, size_t len);

/*
 * Gives frames names that the file has none for. Called when everything was read (and each
 * time that a growing stream is looked at, with what is new), if there is such a frame;
 * heaviest module first. What it does not name stays unknown. 0; 1: not now, a stream asks
 * again for the same and what is new; a negative errno ends the loading.
 */
struct pm_profile_symbolizer {
	void *context;
	bool lines; /* ask also for those that have a name, but no line */
	int (*symbolize)(void *context, const struct pm_profile_info *info,
			 const struct pm_profile_nameless *modules, size_t len,
			 pm_profile_name_fn name, void *to);
};

struct pm_profile_options {
	/* All functions without a name of a module are one, wherever they begin: what is to be
	 * compared with another build. */
	bool no_starts;
	bool no_inlines; /* leave inlined functions out: their time is their caller's */
	/* Only samples in [from, to]: seconds from the start, or percent of the
	 * duration. An interval of blocked time counts with the part that overlaps. */
	bool time_set, time_percent;
	double time_from, time_to;
	const struct pm_profile_symbolizer *symbolizer; /* NULL: only the file's names */
	bool keep_samples; /* fill profile->samples: 32 bytes each */
	bool keep_fields; /* and their fields; only with keep_samples */
	bool keep_branches; /* sum up profile->branches, of all samples in any time range */
	/*
	 * Fill profile->parallelism: how many CPUs ran what was recorded when a sample was
	 * taken, 0 where that cannot be told or nothing ran. Only with keep_samples. One
	 * event, sampled at a rate of time, tells it (clock_event): each of its samples
	 * stands for one interval of that rate before it on its CPU, and two on one CPU less
	 * than two intervals apart for all that is between them. The idle task does not run.
	 */
	bool parallelism;
	/*
	 * And divide by it the period of each sample of an event that is sampled by time:
	 * what is left are shares of wall-clock time. Blocked time, and events that are
	 * taken one by one, stay as they are; idling becomes 0.
	 */
	bool latency;
};

/*
 * Reads everything behind @reader. Memory is that of distinct stacks, frames and symbols,
 * and with a time range or kept samples 32 bytes more for each. @options may be NULL. -EBADMSG and
 * what else the reader gives, -ENOMEM.
 */
int pm_profile_load(struct pm_profile **ret, struct pm_file_reader *reader,
		    const struct pm_profile_options *options, struct pm_error *err);
void pm_profile_free(struct pm_profile *profile);

/*
 * The same of a recording that still grows, record by record. Memory is that of distinct
 * stacks, frames and symbols: options that keep samples, or a part of the time, are -ENOTSUP.
 * @options are borrowed for its life.
 */
struct pm_profile_stream;

int pm_profile_stream_new(struct pm_profile_stream **ret,
			  const struct pm_profile_options *options, struct pm_error *err);
void pm_profile_stream_free(struct pm_profile_stream *stream);
/* After a failure only pm_profile_stream_free() is legal. */
int pm_profile_stream_add(struct pm_profile_stream *stream,
			  const struct pm_file_record *record, struct pm_error *err);
enum pm_profile_end {
	PM_PROFILE_GROWS, /* more may come */
	PM_PROFILE_CUT, /* nothing will, and there was no footer */
	PM_PROFILE_WHOLE,
};

/* What was added so far. Valid until the next call. 0 or negative errno. */
int pm_profile_stream_look(struct pm_profile_stream *stream, enum pm_profile_end end,
			   const struct pm_profile **ret, struct pm_error *err);

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
/* The short name of the module of a function, "[no module]" if it has none. */
const char *pm_profile_module_name(const struct pm_profile *profile, uint32_t module);

/* ---- names --------------------------------------------------------------------------- */

/*
 * Which functions @pattern means: those of exactly that name; else those whose name is it
 * without parameters and, if need be, without the scope before it; else those that it
 * matches as a POSIX extended regular expression. `set` has one bool for each function.
 */
struct pm_function_set {
	bool *set;
	size_t len; /* functions in it */
	size_t names; /* different names among them */
};

/* -ENOENT with near names in @err, -EINVAL for a bad expression. */
int pm_function_set_init(struct pm_function_set *ret, const struct pm_profile *profile,
			 const char *pattern, struct pm_error *err);
void pm_function_set_release(struct pm_function_set *set);

/* Id of the event called @name (canonical, requested or actual), or PM_PROFILE_NONE and the
 * names there are in @err. */
uint32_t pm_profile_find_event(const struct pm_profile *profile, const char *name,
			       struct pm_error *err);

/* ---- views --------------------------------------------------------------------------- */

/*
 * NULL: no such condition. Lists are separated by commas; all conditions must hold. What
 * begins with `!` is left out; a list of only such means everything else.
 */
struct pm_filter {
	const char *comm; /* list: names of threads */
	const char *pid, *tid; /* lists */
	const char *module; /* list: short name or path of what ran, or an expression */
	const char *
		symbol; /* a function anywhere on the stack, see pm_function_set; `!` too */
};

/* The samples of one event that pass a filter, summed up over the stack tree. */
struct pm_view {
	const struct pm_profile *profile;
	uint32_t event;
	struct pm_weight all; /* of the event, before the filter */
	struct pm_weight total; /* after it */
	struct pm_weight unknown; /* taken in a function without a name */
	struct pm_weight stitched; /* the outer callers are from other samples */
	struct pm_weight *stops; /* by stop reason */
	struct pm_weight *self, *sum; /* by stack: ending there; there or below */
	PM_VEC(uint32_t) cells; /* those that passed */
};

/* @filter may be NULL. -ENOENT when a name in it is in no sample of the file, -EINVAL when
 * it is no number or expression; @err says what there is. */
int pm_view_new(struct pm_view **ret, const struct pm_profile *profile, uint32_t event,
		const struct pm_filter *filter, struct pm_error *err);
void pm_view_free(struct pm_view *view);

/* ---- tables -------------------------------------------------------------------------- */

enum pm_key {
	PM_KEY_FUNCTION,
	PM_KEY_MODULE, /* id PM_PROFILE_NONE: in no module */
	PM_KEY_THREAD,
	PM_KEY_PROCESS,
	PM_KEY_LINE, /* ids of places */
	PM_KEY_ADDRESS, /* ids of frames, one for each address of a module */
	PM_KEY_COMM, /* ids of the first thread of that name */
	PM_KEY_CPU, /* numbers of CPUs, PM_FILE_NONE: unknown; only with kept samples */
	PM_KEY_PARALLELISM, /* 0: unknown; only where it was asked for */
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
	uint32_t id; /* by the first key */
	uint32_t more[PM_KEYS_MAX - 1]; /* by the others */
	struct pm_weight self, total;
	uint32_t place; /* PM_KEY_FUNCTION alone: where most of it happens, else NONE */
	bool inlined; /* PM_KEY_FUNCTION: every instance seen was inlined */
};

struct pm_table {
	PM_VEC(struct pm_row) rows; /* heaviest first; only what occurs */
};

enum {
	PM_TABLE_ROWS_MAX = 4 << 20, /* more would be gigabytes, and read by nobody */
};

/* Sorted by self, or by total. 0 or -ENOMEM. */
int pm_table_init(struct pm_table *ret, const struct pm_view *view, enum pm_key key,
		  bool by_total);
/* The same; -E2BIG: more combinations than PM_TABLE_ROWS_MAX. */
int pm_table_init_keys(struct pm_table *ret, const struct pm_view *view,
		       const struct pm_keys *keys, bool by_total);
static inline uint32_t pm_row_id(const struct pm_row *row, uint32_t key)
{
	return key == 0 ? row->id : row->more[key - 1];
}
void pm_table_release(struct pm_table *table);

/* The ids of PM_KEY_ADDRESS by frame, and of PM_KEY_COMM by thread: the caller's to free.
 * NULL without memory. */
uint32_t *pm_profile_addresses(const struct pm_profile *profile);
uint32_t *pm_profile_comms(const struct pm_profile *profile);

/* ---- waits --------------------------------------------------------------------------- */

/* Whether its periods are the time that threads were blocked (`pmrec --off-cpu`). */
bool pm_profile_is_blocked_time(const struct pm_profile_event *event);

/* Blocked time of one function in one kind of wait. */
struct pm_wait {
	/* That waits: the innermost on the stack that is neither of the kernel nor of the C or
	 * C++ library. */
	uint32_t function;
	uint32_t place; /* where in it; PM_PROFILE_NONE: anywhere */
	/* The function of the library that it called; PM_PROFILE_NONE: none is known. */
	uint32_t call;
	/* The system call, or else the function of the kernel; NULL: unknown. */
	const char *kernel;
	struct pm_weight weight;
	uint64_t longest;
};

struct pm_waits {
	PM_VEC(struct pm_wait) rows; /* longest in all first */
	struct pm_text_pool *names; /* private */
};

/* @lines: a row for each line that waits, not for each function. 0 or -ENOMEM. */
int pm_waits_init(struct pm_waits *ret, const struct pm_view *view, bool lines);
void pm_waits_release(struct pm_waits *waits);
/* The places that wait, by stack that the view has samples of, else PM_PROFILE_NONE: the
 * caller's to free. NULL without memory. */
uint32_t *pm_view_waiters(const struct pm_view *view);

/* ---- trees --------------------------------------------------------------------------- */

enum pm_tree_kind {
	PM_TREE_TOP_DOWN, /* from the roots to what they call */
	PM_TREE_BOTTOM_UP, /* from where samples were taken to the callers */
};

struct pm_tree_node {
	uint32_t function; /* PM_PROFILE_NONE in node 0, which stands above all */
	uint32_t parent;
	uint32_t depth; /* 0 for node 0 */
	struct pm_weight total;
	struct pm_weight self; /* top-down: in the function itself, on this path */
	bool inlined; /* every instance here is */
	bool recursive; /* calls of itself are folded into it */
	bool expanded;
	uint32_t first_child, children; /* heaviest first; once expanded */
	uint32_t head, tail; /* private */
};

/* Grows as it is asked: a node's children exist once it was expanded. */
struct pm_tree {
	const struct pm_view *view;
	enum pm_tree_kind kind;
	PM_VEC(struct pm_tree_node) nodes;
	struct pm_tree_work *work; /* private */
};

/*
 * With @only, trees begin at the outermost of those functions on each stack: top-down shows
 * what they call, bottom-up who calls them. Direct recursion is folded if @fold. Node 0 is
 * expanded. 0 or -ENOMEM.
 */
int pm_tree_new(struct pm_tree **ret, const struct pm_view *view, enum pm_tree_kind kind,
		const struct pm_function_set *only, bool fold);
void pm_tree_free(struct pm_tree *tree);
/* Moves the nodes: hold ids. 0 or -ENOMEM. */
int pm_tree_expand(struct pm_tree *tree, uint32_t node);

/* ---- paths --------------------------------------------------------------------------- */

/* Stacks as functions, equal ones in one, for formats that list stacks. */
struct pm_path {
	uint32_t parent; /* PM_PROFILE_NONE at the root */
	uint32_t function;
	bool inlined;
};

struct pm_paths {
	PM_VEC(struct pm_path) paths; /* parents first */
	uint32_t *of_stack; /* the path of a stack, its innermost function */
};

/*
 * 0, -ENOMEM, or -E2BIG with @err: a few bytes can say that many inlined calls are at every
 * frame, and there are more paths than any program's stacks make.
 */
int pm_paths_init(struct pm_paths *ret, const struct pm_profile *profile,
		  struct pm_error *err);
void pm_paths_release(struct pm_paths *paths);

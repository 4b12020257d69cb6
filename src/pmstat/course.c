/* SPDX-License-Identifier: MIT */
#include "course.h"

#include <inttypes.h>
#include <langinfo.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>

#include "document.h"
#include "pm/compare.h"
#include "pm/stat-output.h"
#include "print.h"

enum {
	PADDING_MAX = 4096, /* a page: a stack may start anywhere in one */
};
#define MS_NS 1000000ull

static const char padding_name[] = "PMSTAT_PADDING";

struct course {
	const struct pmstat_options *options;
	struct pm_stat *stat;
	struct pmstat_print *print;
	struct pm_child child;
	struct pm_targets targets;
	struct pm_regions regions[PMSTAT_VARIANTS];
	enum pm_count_engine engine;
	uint64_t seed; /* state of the generator for the padding */
	uint64_t random;
	uint64_t stolen_ns; /* pm_stolen_ns() at the start of the first run */
	bool stolen_known;
	bool warned; /* a warning was printed during a run */
	int status; /* of the first run that failed; otherwise 0 */
};

/* ---- preparation -------------------------------------------------------------------------- */

/* Chooses the first engine that works here, and says why the previous ones do not. */
static int choose_auto(struct course *course, struct pm_error *err)
{
	struct pm_error uprobe = { 0 }, ptrace = { 0 };

	if (pm_engine_uprobe_check(&uprobe) == 0) {
		course->engine = PM_COUNT_ENGINE_UPROBE;
		return 0;
	}
	if (pm_engine_ptrace_check(&ptrace) == 0) {
		course->engine = PM_COUNT_ENGINE_PTRACE;
		pmstat_say(course->options,
			   "--engine ptrace, as uprobes cannot be had: %s", uprobe.text);
		return 0;
	}
	pm_error_set(err, -EPERM,
		     "no engine works here: uprobe (%.200s); ptrace (%.200s)",
		     uprobe.text, ptrace.text);
	pm_error_fix(err, "--engine callgrind, which simulates");
	return -EPERM;
}

static int try_engine(struct course *course, struct pm_error *err)
{
	course->engine = course->options->engine;
	switch (course->engine) {
	case PM_COUNT_ENGINE_AUTO:
		if (pmstat_needs_engine(course->options))
			return choose_auto(course, err);
		return 0;
	case PM_COUNT_ENGINE_UPROBE:
		return pm_engine_uprobe_check(err);
	case PM_COUNT_ENGINE_PTRACE:
		return pm_engine_ptrace_check(err);
	case PM_COUNT_ENGINE_CALLGRIND:
		return pm_engine_callgrind_check(err);
	}
	return -EINVAL;
}

static int print_region_notes(struct course *course, char *const *notes, size_t len,
			      struct pm_error *err)
{
	for (size_t i = 0; i < len; i++)
		if (pmstat_document_warn(course->stat, notes[i]) < 0)
			return pm_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int find_regions(struct course *course, uint32_t variant, struct pm_error *err)
{
	const struct pmstat_options *options = course->options;
	struct pm_regions *regions = &course->regions[variant];
	struct pm_probe_context context = { 0 };
	struct pm_task_list pids = { 0 };
	int ret = 0;

	if (!options->attach)
		context.command = options->commands[variant][0];
	/* /proc has a thread's mappings under its tid, too. */
	for (size_t i = 0; i < course->targets.roots.len && ret == 0; i++) {
		const struct pm_root *root = &course->targets.roots.data[i];

		ret = pm_vec_push(&pids.list, root->tid > 0 ? root->tid : root->pid);
	}
	context.pids = pids.list.data;
	context.pids_len = pids.list.len;
	if (ret < 0)
		pm_error_set(err, ret, "out of memory");
	else
		ret = pm_regions_find(regions, options->regions.data,
				      options->regions.len, &context, err);
	pm_vec_release(&pids.list);
	if (ret == 0)
		return print_region_notes(course, regions->notes.data, regions->notes.len,
					  err);
	return ret;
}

/* Notes that all counts are lower bounds if the kernel cannot be asked where it accepts
 * probes: a function on which it accepts none would appear never to be called. */
static int check_kernel_probes(struct course *course, uint32_t variant,
			       struct pm_error *err)
{
	struct pm_error why = { 0 };
	char text[PM_ERROR_TEXT_MAX + 64], *note = text;
	int ret = pm_regions_ask_kernel(&course->regions[variant], &why);

	if (ret == 0)
		return 0;
	if (ret == -ENOMEM) {
		*err = why;
		return ret;
	}
	snprintf(text, sizeof(text), "%s: calls are \"at least\".", why.text);
	return print_region_notes(course, &note, 1, err);
}

/* Whether probes can see none of the functions. Breakpoints can still see calls of
 * them. */
static bool is_all_deaf(const struct course *course)
{
	for (uint32_t i = 0; i <= course->options->ab; i++) {
		const struct pm_regions *regions = &course->regions[i];

		for (uint32_t k = 0; k < regions->list.len; k++)
			if (regions->list.data[k].sum < 0 &&
			    !pm_regions_is_deaf(regions, k))
				return false;
	}
	return true;
}

/* Chooses another engine if necessary: --engine auto also depends on which functions
 * uprobes can see. */
static int fit_engine(struct course *course, struct pm_error *err)
{
	const struct pmstat_options *options = course->options;
	int ret = 0;

	if (course->engine != PM_COUNT_ENGINE_UPROBE || options->regions.len == 0)
		return 0;
	for (uint32_t i = 0; ret == 0 && i <= options->ab; i++)
		ret = check_kernel_probes(course, i, err);
	if (ret < 0 || options->engine != PM_COUNT_ENGINE_AUTO || !is_all_deaf(course) ||
	    pm_engine_ptrace_check(NULL) < 0)
		return ret;
	course->engine = PM_COUNT_ENGINE_PTRACE;
	pmstat_say(options, "--engine ptrace, as the kernel puts no probe on the "
			    "instructions that the functions begin with");
	return 0;
}

static int choose_engine(struct course *course, struct pm_error *err)
{
	static const char *const names[] = {
		[PM_COUNT_ENGINE_AUTO] = "count",
		[PM_COUNT_ENGINE_UPROBE] = "uprobe",
		[PM_COUNT_ENGINE_PTRACE] = "ptrace",
		[PM_COUNT_ENGINE_CALLGRIND] = "callgrind",
	};
	int ret = try_engine(course, err);

	if (ret == 0)
		ret = fit_engine(course, err);
	if (ret == 0 && pm_stat_text(&course->stat->engine, names[course->engine]) < 0)
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	return ret;
}

static int find_all(struct course *course, struct pm_error *err)
{
	const struct pmstat_options *options = course->options;
	int ret = pm_targets_find(&course->targets, &options->targets, err);

	if (ret == 0 && options->attach &&
	    pm_stat_text(&course->stat->target, course->targets.text) < 0)
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	if (ret == 0)
		ret = print_region_notes(course, options->probes.notes.data,
					 options->probes.notes.len, err);
	for (uint32_t i = 0; ret == 0 && options->regions.len > 0 && i <= options->ab;
	     i++)
		ret = find_regions(course, i, err);
	if (ret < 0)
		return ret;
	return choose_engine(course, err);
}

/* Reports a mistyped command before the other one has run for hours. */
static int check_commands(struct course *course, struct pm_error *err)
{
	const struct pmstat_options *options = course->options;
	struct pm_child *child = &course->child;

	for (size_t i = 0; i < PMSTAT_VARIANTS && options->commands[i]; i++) {
		int ret;

		if (pm_child_is_runnable(options->commands[i][0]))
			continue;
		ret = pm_child_prepare(child, options->commands[i], options->user, false,
				       err);
		if (ret == 0)
			ret = pm_child_go(child, err);
		if (ret == 0) {
			kill(child->launch.pid, SIGKILL);
			ret = pm_error_set(err, -EAGAIN, "%s appeared just now",
					   options->commands[i][0]);
		}
		return ret;
	}
	return 0;
}

/* ---- one run ------------------------------------------------------------------------------ */

/* splitmix64 */
static uint64_t padding_next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Whether the environment is padded. Simulated runs are not: their counts are exact to
 * the last instruction, and processing the padding takes some instructions. */
static bool is_padded(const struct pmstat_options *options)
{
	return options->ab && options->engine != PM_COUNT_ENGINE_CALLGRIND;
}

/* Pads the environment at random. The start of the stack depends on the size of the
 * environment, and speed may depend on that. A comparison must not have one position for
 * A and another one for B. */
static int pad_environment(struct course *course, struct pm_error *err)
{
	char text[PADDING_MAX];
	size_t len = (size_t)(padding_next_random(&course->random) % PADDING_MAX);

	memset(text, 'x', len);
	text[len] = '\0';
	if (setenv(padding_name, text, 1) < 0)
		return pm_error_set(err, -errno, "environment: %s", strerror(errno));
	return 0;
}

/* Prints a line among the command's own output. */
static void print_live(void *user, const char *line)
{
	fprintf(stderr, "%s\n", line);
}

static void put_live_value(struct pm_str *line, const struct pm_stat_event *event,
			   uint64_t value)
{
	pm_put_stat_value(line, event, (double)value,
			  strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
}

/* Prints warnings of the first run only, because the other runs are alike. */
static void print_warning(void *user, const char *text)
{
	struct course *course = user;

	if (!course->warned)
		pmstat_say(course->options, "warning: %s", text);
	course->warned = true;
}

static int run_engine(struct course *course, struct pm_stat *stat, uint32_t variant,
		      struct pm_error *err)
{
	const struct pmstat_options *options = course->options;
	struct pm_engine_options engine = {
		.specs = options->specs.list.data,
		.specs_len = options->specs.list.len,
		.regions = &course->regions[variant],
		.targets = options->attach ? &course->targets : NULL,
		.command = options->commands[variant],
		.user = options->user,
		.data_on_stdout = options->output && strcmp(options->output, "-") == 0,
		.no_inherit = options->targets.no_inherit,
		.by_thread = options->by == PM_COUNTERS_BY_THREAD,
		.live = options->live,
		.live_line = print_live,
		.live_value = put_live_value,
		.warn = print_warning,
		.warn_user = course,
		.calls_from = options->calls_from,
		.marked = options->marked,
		.marked_from = options->marked_from,
		.marked_to = options->marked_to,
		.stacks = options->stacks,
		.timeout_ns = options->timeout_ns,
	};

	switch (course->engine) {
	case PM_COUNT_ENGINE_UPROBE:
		return pm_engine_uprobe_run(stat, &engine, &course->child, err);
	case PM_COUNT_ENGINE_PTRACE:
		return pm_engine_ptrace_run(stat, &engine, &course->child, err);
	case PM_COUNT_ENGINE_CALLGRIND:
		return pm_engine_callgrind_run(stat, &engine, &course->child, err);
	case PM_COUNT_ENGINE_AUTO:
		break;
	}
	return -EINVAL;
}

static int run_whole(struct course *course, struct pm_stat *stat, uint32_t variant,
		     struct pm_error *err)
{
	const struct pmstat_options *options = course->options;
	struct pm_count_options count = {
		.specs = &options->specs,
		.command = options->commands[variant],
		.user = options->user,
		.data_on_stdout = options->output && strcmp(options->output, "-") == 0,
		.no_inherit = options->targets.no_inherit,
		.by = options->by,
		.interval_ns = options->interval_ms * MS_NS,
		.delay_ms = options->delay_ms,
		.timeout_ns = options->timeout_ns,
		.marked = options->marked,
		.variant = variant,
		.user_data = course->print,
	};

	if (options->attach)
		count.targets = &course->targets;
	if (options->interval_ms > 0 && stat == course->stat)
		count.interval = pmstat_print_interval;
	return pm_count_run(stat, &count, &course->child, err);
}

/* Returns the exit status of a command that only set the duration. We terminate it when
 * it is not needed any more, which is not a failure. */
static int status_of_clock(const struct pm_child *child)
{
	bool by_us = child->interrupts == 0 && WIFSIGNALED(child->status) &&
		     WTERMSIG(child->status) == SIGTERM;

	if (child->status_known && !by_us)
		return pm_exit_status(child->status);
	return 0;
}

/* Returns the exit status of a run. A run that --timeout terminated has not failed. */
static int status_of(const struct course *course, const struct pm_stat_run *run)
{
	bool in_time = !run->stopped || course->options->timeout_ns == 0 ||
		       course->child.interrupts > 0;

	if (course->options->attach)
		return status_of_clock(&course->child);

	if (!run->exited && !run->stopped) {
		fprintf(stderr, "pmstat: the exit status of the command is not known\n");
		return PM_STATUS_FAILED;
	}
	if (!run->exited || !in_time)
		return 0;
	if (run->signal > 0)
		return 128 + run->signal;
	return run->exit_code;
}

/* Makes a run and appends it to @stat. Returns 0 or a negative errno. */
static int run_variant_once(struct course *course, struct pm_stat *stat, uint32_t variant,
			    struct pm_error *err)
{
	size_t before = stat->runs.len;
	int ret = 0;

	if (is_padded(course->options))
		ret = pad_environment(course, err);
	if (ret == 0) {
		if (pmstat_needs_engine(course->options))
			ret = run_engine(course, stat, variant, err);
		else
			ret = run_whole(course, stat, variant, err);
	}
	if (ret < 0)
		return ret;
	for (size_t i = before; i < stat->runs.len; i++) {
		struct pm_stat_run *run = &stat->runs.data[i];
		int status = status_of(course, run);

		run->variant = variant;
		if (course->status == 0)
			course->status = status;
	}
	return 0;
}

/* ---- all runs ----------------------------------------------------------------------------- */

static bool course_goes_on(struct course *course)
{
	pm_child_signals(&course->child);
	return course->child.interrupts == 0 &&
	       (course->status == 0 || course->options->keep_going);
}

static void print_run_progress(const struct course *course, uint32_t variant)
{
	const struct pmstat_options *options = course->options;
	const struct pm_stat_run *run =
		&course->stat->runs.data[course->stat->runs.len - 1];
	const char *of = "";

	if (!options->verbose)
		return;
	if (options->ab)
		of = variant == 0 ? " of A" : " of B";
	if (run->signal > 0)
		pmstat_say(options, "run %zu%s: signal %d", course->stat->runs.len, of,
			   run->signal);
	else
		pmstat_say(options, "run %zu%s: status %d", course->stat->runs.len, of,
			   run->exited ? run->exit_code : 0);
}

static int warm_up(struct course *course, struct pm_error *err)
{
	const struct pmstat_options *options = course->options;
	int ret = 0;

	for (uint64_t i = 0; i < options->warmups && ret == 0; i++) {
		for (uint32_t j = 0; j <= options->ab && ret == 0; j++) {
			struct pm_stat scratch = { 0 };

			if (!course_goes_on(course))
				return 0;
			ret = pmstat_document_begin(&scratch, options, err);
			if (ret == 0)
				ret = run_variant_once(course, &scratch, j, err);
			pm_stat_release(&scratch);
		}
		course->stat->warmups += ret == 0;
	}
	return ret;
}

static int run_all(struct course *course, struct pm_error *err)
{
	const struct pmstat_options *options = course->options;
	int ret = warm_up(course, err);
	uint64_t begin = pm_now_ns();

	course->stolen_known =
		pm_stolen_ns(course->options->targets.cpus, &course->stolen_ns);

	for (uint64_t i = 0; i < options->repeat && ret == 0; i++) {
		if (i > 0 && options->time_ns > 0 &&
		    pm_now_ns() - begin >= options->time_ns)
			break;
		/* The order is A B, B A, A B, …, so that drift affects both alike. */
		for (uint32_t j = 0; j <= options->ab && ret == 0; j++) {
			uint32_t variant = 0;

			if (options->ab)
				variant = (uint32_t)((i + j) & 1);
			if (!course_goes_on(course))
				return 0;
			ret = run_variant_once(course, course->stat, variant, err);
			if (ret == 0)
				print_run_progress(course, variant);
		}
	}
	return ret;
}

/* Returns the name of the first clock that has values, and their sum. NULL: none. */
static const char *sum_of_clock(const struct pm_stat *stat, uint64_t *out)
{
	for (size_t event = 0; event < stat->events.len; event++) {
		const char *name = stat->events.data[event].name;
		bool known = false;

		if (strcmp(name, "task-clock") != 0 && strcmp(name, "cpu-clock") != 0)
			continue;
		*out = 0;
		for (size_t i = 0; i < stat->runs.len; i++) {
			const struct pm_stat_value *value =
				&stat->runs.data[i].values[event];

			if (!pm_stat_has_value(value))
				continue;
			*out += value->value;
			known = true;
		}
		if (known)
			return name;
	}
	return NULL;
}

static int note_stolen(struct course *course, struct pm_error *err)
{
	char *text = (char[512]){ "" };
	uint64_t now, clock_ns;
	const char *clock;

	if (!course->stolen_known || !pm_stolen_ns(course->options->targets.cpus, &now) ||
	    now < course->stolen_ns)
		return 0;
	clock = sum_of_clock(course->stat, &clock_ns);
	if (!clock ||
	    !pm_stolen_text(text, 512, clock, clock_ns, now - course->stolen_ns))
		return 0;
	return print_region_notes(course, &text, 1, err);
}

static int note_padding(struct course *course, struct pm_error *err)
{
	char value[128];

	if (!is_padded(course->options))
		return 0;
	if (getrandom(&course->seed, sizeof(course->seed), GRND_NONBLOCK) < 0)
		course->seed = pm_now_ns();
	course->random = course->seed;
	snprintf(value, sizeof(value),
		 "0 to %d bytes, random in each run, seed %#" PRIx64, PADDING_MAX - 1,
		 course->seed);
	if (pmstat_document_setting(course->stat, padding_name, value) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int print_failure(const struct pm_error *err, int status)
{
	pm_error_print(err, "pmstat", stderr);
	return status;
}

/* Reports that there is no result, even with --quiet, because nothing else is printed. */
static int without_runs(const struct course *course)
{
	struct pm_error err = { 0 };
	bool failed = course->status != 0 && course->child.interrupts == 0;

	if (failed)
		pm_error_set(&err, -ECANCELED,
			     "a run to warm up failed (exit status %d): no run was "
			     "counted",
			     course->status);
	else
		pm_error_set(&err, -EINTR, "no run was counted");
	return print_failure(&err, course->status ? course->status : PM_STATUS_FAILED);
}

static int course_finish(struct course *course, struct pm_error *err)
{
	int ret;

	if (course->stat->runs.len == 0)
		return without_runs(course);
	ret = pm_count_metrics(course->stat);
	if (ret == 0 && course->options->ab)
		ret = pm_compare_ab(course->stat);
	if (ret < 0)
		pm_error_set(err, ret, "out of memory");
	if (ret == 0)
		ret = note_stolen(course, err);
	course->print->interrupted = course->child.interrupts > 0;
	if (ret == 0)
		ret = pmstat_print_result(course->print, course->stat, err);
	if (ret < 0)
		return print_failure(err, PM_STATUS_FAILED);
	return course->status;
}

/* Lets SIGPIPE end pmstat if it does not wait for a command, as in `pmstat -a -I 1000 -o
 * - | head`: pmstat then ends with its reader, as any filter does. */
static void end_with_reader(const struct course *course)
{
	const struct pmstat_options *options = course->options;

	if (options->interval_ms > 0 && options->attach && !options->commands[0] &&
	    !course->print->sink.path &&
	    sigismember(&course->child.signals.defaults, SIGPIPE) == 1)
		signal(SIGPIPE, SIG_DFL);
}

static int count_and_finish(struct course *course)
{
	const struct pmstat_options *options = course->options;
	struct pm_error err = { 0 };
	int ret = check_commands(course, &err);

	if (ret == 0)
		ret = find_all(course, &err);
	if (ret == 0)
		ret = note_padding(course, &err);
	if (ret == 0)
		ret = pmstat_document_begin(course->stat, options, &err);
	if (ret == 0)
		ret = pmstat_print_open(course->print, options, &err);
	if (ret == 0)
		ret = pm_child_catch_signals(&course->child, false, &err);
	if (ret == 0)
		end_with_reader(course);
	if (ret == 0)
		ret = run_all(course, &err);
	if (ret == 0)
		return course_finish(course, &err);
	print_failure(&err, 0);
	if (course->child.launch_error < 0)
		course->status = pm_child_launch_status(course->child.launch_error);
	else
		course->status = PM_STATUS_FAILED;
	/* The runs that were already counted are still useful. */
	if (course->stat->runs.len > 0)
		return course_finish(course, &err);
	return course->status;
}

int pmstat_course_run(struct pmstat_options *options)
{
	struct pm_stat stat = { 0 };
	struct pmstat_print print = { 0 };
	struct course course = {
		.options = options, .stat = &stat, .print = &print, .child = PM_CHILD_INIT
	};
	int status;

	pm_targets_init(&course.targets);
	status = count_and_finish(&course);
	pmstat_print_release(&print);
	for (size_t i = 0; i < PMSTAT_VARIANTS; i++)
		pm_regions_release(&course.regions[i]);
	pm_targets_release(&course.targets);
	pm_child_release(&course.child);
	pm_stat_release(&stat);
	return status;
}

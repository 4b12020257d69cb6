/* SPDX-License-Identifier: MIT */
/*
 * Unwinds every sample of real programs twice, by pm_unwind() and by elfutils' libdwfl,
 * from the same registers and the same copied stack, and requires the same frames.
 *
 * oracle-dwfl [--event E] [--hz N] [--only NAME] [--show STOP] [--program PATH]...
 * oracle-dwfl [--event E] [--hz N] [--show STOP] --command -- CMD...
 *
 * --event selects the sampled event; the default is cpu-clock.
 * --show prints the first chains with that stop reason, equal or not.
 *
 * Prints TAP. Exit status 1 if a chain was wrong.
 */
#include "tests/oracle/compare.h"
#include "tests/oracle/record.h"
#include "tests/oracle/workloads.h"

#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum {
	HZ = 4000,
	/* Among fewer samples, a rare difference would hardly occur. */
	SAMPLES_MIN = 5000,
	/* Where perf gives few samples, the last program is run again. */
	ROUNDS_MAX = 8,
	PRINTED_MAX = 6, /* full chains for each run */
	PROGRAMS_MAX = 64,
	DOCTOR_FRAMES = 4, /* needed to check that differences are noticed */
};

struct oracle {
	FILE *tap;
	const char *event;
	uint64_t hz;
	const char *show; /* stop reason, or NULL */
	int points; /* TAP points */
	int failed;
	bool doctored;
	uint64_t total;
	struct pm_unwinder *unwinder;
};

/* One command. */
struct run {
	struct oracle *oracle;
	struct pm_procs *procs;
	struct spaces_modules modules;
	struct our_chain ours;
	struct their_chain theirs;
	uint64_t verdicts[VERDICT_COUNT];
	uint64_t stops[PM_UNW_STOP_COUNT];
	uint64_t frames;
	int shown;
};

/* The state of a process: its address space as of one epoch. */
struct process_state {
	uint64_t epoch;
	struct spaces_maps maps;
	struct dwfl_space *dwfl;
};

static void process_state_free(void *user)
{
	struct process_state *state = user;

	if (!state)
		return;
	dwfl_space_free(state->dwfl);
	pm_vec_release(&state->maps.maps);
	free(state);
}

static struct process_state *process_state(struct run *run, struct pm_process *process)
{
	struct process_state *state = process->user;

	if (!state) {
		state = process->user = calloc(1, sizeof(*state));
		if (!state)
			abort();
	} else if (state->epoch == process->space.epoch) {
		return state;
	}
	dwfl_space_free(state->dwfl);
	spaces_fill(&state->maps, &run->modules, run->procs, &process->space);
	state->dwfl = dwfl_space_new(&state->maps, &run->modules);
	state->epoch = process->space.epoch;
	return state;
}

/* ---- printing --------------------------------------------------------------------------- */

static void print_address(struct run *run, const struct process_state *state, uint64_t pc)
{
	for (size_t i = 0; i < state->maps.maps.len; i++) {
		const struct pm_unw_map *map = &state->maps.maps.data[i];
		const char *path;

		if (pc < map->start || pc >= map->end)
			continue;
		path = pm_procs_module(run->procs, map->tag)->identity.path;
		fprintf(run->oracle->tap, "%s+%#" PRIx64, path, pc - map->bias);
		return;
	}
	fprintf(run->oracle->tap, "%#" PRIx64 " (not mapped)", pc);
}

static void print_chains(struct run *run, const struct process_state *state,
			 const struct pm_record *record, const char *why)
{
	FILE *tap = run->oracle->tap;
	const struct our_chain *ours = &run->ours;
	const struct their_chain *theirs = &run->theirs;

	fprintf(tap, "# %s (tid %u, %zu stack bytes, we stop: %s%s)\n", why, record->tid,
		record->sample.stack_len, pm_unw_stop_name(ours->stop),
		theirs->failed ? ", libdwfl by an error" : "");
	for (size_t i = 0; i < ours->len || i < theirs->len; i++) {
		bool equal = i < ours->len && i < theirs->len &&
			     ours->frames[i].pc == theirs->frames[i].pc;

		fprintf(tap, "# %3zu ", i);
		if (i < ours->len) {
			fprintf(tap, "%s%-4s ", equal ? "both " : "ours ",
				pm_unw_how_name(ours->frames[i].how));
			print_address(run, state, ours->frames[i].pc);
		}
		if (i < theirs->len && !equal) {
			fputs(i < ours->len ? " | libdwfl " : "libdwfl ", tap);
			print_address(run, state, theirs->frames[i].pc);
		}
		fputc('\n', tap);
	}
}

static void point(struct oracle *oracle, bool ok, const char *text)
{
	oracle->failed += !ok;
	fprintf(oracle->tap, "%s %d - %s\n", ok ? "ok" : "not ok", ++oracle->points,
		text);
	fflush(oracle->tap);
}

/* ---- samples ---------------------------------------------------------------------------- */

static void read_sample(const struct pm_sample *sample, struct pm_unw_regs *regs,
			struct pm_unw_stack *stack)
{
	*regs = (struct pm_unw_regs){ .known = sample->regs.known };
#if defined(__aarch64__)
	regs->arch = PM_UNW_AARCH64;
#endif
	memcpy(regs->value, sample->regs.value, sizeof(regs->value));
	*stack = (struct pm_unw_stack){
		.start = pm_unw_regs_sp(regs),
		.data = sample->stack,
		.len = sample->stack_len,
	};
}

/* Damages a good chain in several ways: each must be noticed, or all other results are
 * invalid. */
static bool differences_are_seen(const struct run *run, struct process_state *state)
{
	static struct our_chain spoiled;
	const struct our_chain *good = &run->ours;
	const char *why;
	bool seen = true;

	for (int way = 0; way < 5; way++) {
		spoiled = *good;
		if (way == 0)
			spoiled.frames[good->len - 1].pc++;
		else if (way == 1)
			spoiled.len--;
		else if (way == 2)
			spoiled.frames[1].lookup++;
		else if (way == 3)
			spoiled.stop = PM_UNW_STOP_TRUNCATED;
		else
			spoiled.frames[spoiled.len++] = good->frames[0];
		seen = seen && compare_chains(state->dwfl, &state->maps, &spoiled,
					      &run->theirs, &why) == VERDICT_WRONG;
	}
	return seen;
}

/* Whether libdwfl agrees, or differs for another good reason, when it may read popped
 * registers. */
static bool agrees_when_popped(struct run *run, struct process_state *state,
			       const struct pm_unw_regs *regs,
			       const struct pm_unw_stack *stack)
{
	const char *why;
	bool agrees;

	if (dwfl_space_serve_popped(state->dwfl, regs) == 0)
		return false;
	run->theirs.len = dwfl_space_unwind(state->dwfl, regs, stack, run->theirs.frames,
					    COMPARE_FRAMES_MAX, &run->theirs.failed);
	agrees = compare_chains(state->dwfl, &state->maps, &run->ours, &run->theirs,
				&why) != VERDICT_WRONG;
	dwfl_space_serve_popped(state->dwfl, NULL);
	return agrees;
}

static bool is_loader(const struct run *run, const struct pm_unw_map *map)
{
	static const char name[] = "/ld-linux-aarch64.so.";
	const char *path =
		map ? pm_procs_module(run->procs, map->tag)->identity.path : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && strncmp(slash, name, strlen(name)) == 0;
}

/* Finds the resolver's frame up to which both chains are equal; false: there is none. */
static bool find_resolver(const struct run *run, struct process_state *state, size_t *ret)
{
	const struct our_chain *ours = &run->ours;
	const struct their_chain *theirs = &run->theirs;

	for (size_t i = 0; i < ours->len && i < theirs->len; i++) {
		if (ours->frames[i].pc != theirs->frames[i].pc)
			return false;
		if (!is_loader(run, ours->frames[i].map) ||
		    !dwfl_space_lacks_pair(state->dwfl, ours->frames[i].lookup))
			continue;
		*ret = i;
		return true;
	}
	return false;
}

/* Whether libdwfl agrees, or differs for another good reason, when it gets the 16 bytes
 * that the resolver's CFI omits. */
static bool agrees_behind_resolver(struct run *run, struct process_state *state,
				   const struct pm_unw_regs *regs,
				   const struct pm_unw_stack *stack)
{
	struct their_chain *theirs = &run->theirs;
	const char *why;
	size_t at;

	if (!find_resolver(run, state, &at))
		return false;
	theirs->len =
		dwfl_space_unwind_with_pair(state->dwfl, regs, stack, at, theirs->frames,
					    COMPARE_FRAMES_MAX, &theirs->failed);
	return compare_chains(state->dwfl, &state->maps, &run->ours, theirs, &why) !=
	       VERDICT_WRONG;
}

static void on_sample(void *arg, struct pm_process *process,
		      const struct pm_record *record)
{
	struct run *run = arg;
	struct oracle *oracle = run->oracle;
	struct process_state *state = process_state(run, process);
	struct pm_unw_space space = { state->maps.maps.data, state->maps.maps.len };
	struct pm_unw_regs regs;
	struct pm_unw_stack stack;
	enum verdict verdict;
	const char *why;

	read_sample(&record->sample, &regs, &stack);
	run->ours.len = pm_unwind(oracle->unwinder, &space, &regs, &stack,
				  run->ours.frames, &run->ours.stop);
	run->theirs.len =
		dwfl_space_unwind(state->dwfl, &regs, &stack, run->theirs.frames,
				  COMPARE_FRAMES_MAX, &run->theirs.failed);
	verdict =
		compare_chains(state->dwfl, &state->maps, &run->ours, &run->theirs, &why);
	if (verdict == VERDICT_WRONG && agrees_when_popped(run, state, &regs, &stack))
		verdict = VERDICT_POPPED;
	if (verdict == VERDICT_WRONG && agrees_behind_resolver(run, state, &regs, &stack))
		verdict = VERDICT_RESOLVER;
	run->stops[run->ours.stop]++;
	run->frames += run->ours.len;
	if (verdict == VERDICT_WRONG && run->verdicts[verdict] < PRINTED_MAX)
		print_chains(run, state, record, why);
	else if (oracle->show && run->shown < PRINTED_MAX &&
		 (strcmp(oracle->show, pm_unw_stop_name(run->ours.stop)) == 0 ||
		  strcmp(oracle->show, verdict_name(verdict)) == 0) &&
		 ++run->shown)
		print_chains(run, state, record, verdict_name(verdict));
	run->verdicts[verdict]++;
	if (!oracle->doctored && verdict == VERDICT_EQUAL &&
	    run->ours.len >= DOCTOR_FRAMES &&
	    dwfl_space_rule(state->dwfl, run->ours.frames[run->ours.len - 1].lookup) ==
		    DWFL_RULE_ROOT) {
		oracle->doctored = true;
		point(oracle, differences_are_seen(run, state), "differences are seen");
	}
}

/* ---- commands --------------------------------------------------------------------------- */

static void print_result(struct run *run, const char *name,
			 const struct record_totals *totals)
{
	FILE *tap = run->oracle->tap;
	char text[256];

	snprintf(text, sizeof(text),
		 "%" PRIu64 " samples of %s, %" PRIu64 " mismatches, %.1f%% rooted",
		 totals->samples, name, run->verdicts[VERDICT_WRONG],
		 100.0 * (double)run->stops[PM_UNW_STOP_ROOT] / (double)totals->samples);
	point(run->oracle, run->verdicts[VERDICT_WRONG] == 0, text);
	fprintf(tap,
		"# %s: %" PRIu64 " frames; %" PRIu64 " lost; exit %d; verdicts:", name,
		run->frames, totals->lost, totals->exit_status);
	for (int i = 0; i < VERDICT_COUNT; i++)
		if (run->verdicts[i])
			fprintf(tap, " %s %" PRIu64, verdict_name((enum verdict)i),
				run->verdicts[i]);
	fputs("; stops:", tap);
	for (int i = 0; i < PM_UNW_STOP_COUNT; i++)
		if (run->stops[i])
			fprintf(tap, " %s %" PRIu64,
				pm_unw_stop_name((enum pm_unw_stop)i), run->stops[i]);
	fputc('\n', tap);
	fflush(tap);
}

static int compare_command(struct oracle *oracle, const char *name, char *const argv[],
			   struct pm_error *err)
{
	struct record_totals totals = { 0 };
	struct run *run = calloc(1, sizeof(*run));
	int rc;

	if (!run)
		abort();
	run->oracle = oracle;
	run->procs = pm_procs_new(process_state_free);
	if (!run->procs)
		abort();
	rc = record_run(argv, oracle->event, oracle->hz, run->procs, on_sample, run,
			&totals, err);
	if (rc == 0 && totals.samples > 0)
		print_result(run, name, &totals);
	oracle->total += totals.samples;
	pm_procs_free(run->procs);
	spaces_modules_release(&run->modules);
	free(run);
	return rc;
}

/* A command is skipped only if it is not installed. */
static void compare_or_skip(struct oracle *oracle, const char *name, char *const argv[])
{
	struct pm_error err = { 0 };
	char text[1024];
	int rc = compare_command(oracle, name, argv, &err);

	if (rc == -ENOENT)
		fprintf(oracle->tap, "ok %d - %s # SKIP %s\n", ++oracle->points, name,
			err.text);
	else if (rc < 0) {
		snprintf(text, sizeof(text), "%s: %s", name, err.text);
		point(oracle, false, text);
	}
}

/* ---- all tests -------------------------------------------------------------------------- */

static void run_workloads(struct oracle *oracle, const char *only)
{
	for (const struct workload *workload = workloads; workload->name; workload++) {
		char *argv[WORKLOAD_ARGS_MAX] = { NULL };

		if (only && strcmp(only, workload->name) != 0)
			continue;
		for (size_t i = 0; workload->argv[i]; i++)
			argv[i] = strdup(workload->argv[i]);
		compare_or_skip(oracle, workload->name, argv);
		for (size_t i = 0; argv[i]; i++)
			free(argv[i]);
	}
}

static void run_programs(struct oracle *oracle, char *const *programs, const char *only)
{
	for (size_t i = 0; programs[i]; i++) {
		char milliseconds[] = "300";
		char *argv[] = { programs[i], milliseconds, NULL };
		const char *slash = strrchr(programs[i], '/');
		const char *name = slash ? slash + 1 : programs[i];

		if (!only || strcmp(only, name) == 0)
			compare_or_skip(oracle, name, argv);
	}
}

static void run_all(struct oracle *oracle, char *const *programs, const char *only)
{
	char text[128];

	run_workloads(oracle, only);
	run_programs(oracle, programs, only);
	if (only)
		return;
	for (int round = 0; oracle->total < SAMPLES_MIN && round < ROUNDS_MAX; round++)
		run_programs(oracle, programs, only);
	snprintf(text, sizeof(text), "%" PRIu64 " samples in all, at least %d wanted",
		 oracle->total, SAMPLES_MIN);
	point(oracle, oracle->total >= SAMPLES_MIN, text);
	if (!oracle->doctored)
		point(oracle, false, "no sample was good enough to spoil");
}

static void ignore_sample(void *arg, struct pm_process *process,
			  const struct pm_record *record)
{
}

static bool can_record(struct oracle *oracle)
{
	struct pm_error err = { 0 };
	struct record_totals totals = { 0 };
	struct pm_procs *procs = pm_procs_new(NULL);
	char program[] = "true";
	char *argv[] = { program, NULL };
	int rc = record_run(argv, oracle->event, oracle->hz, procs, ignore_sample, NULL,
			    &totals, &err);

	pm_procs_free(procs);
	if (rc < 0)
		fprintf(oracle->tap, "1..0 # SKIP perf events cannot be opened: %s\n",
			err.text);
	return rc == 0;
}

/* Commands write to standard output, which we need for TAP: gives them /dev/null
 * instead. */
static FILE *take_stdout(void)
{
	int own = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	FILE *tap = own >= 0 ? fdopen(own, "w") : NULL;

	if (!tap || null < 0 || dup2(null, STDOUT_FILENO) < 0)
		abort();
	close(null);
	return tap;
}

static void remove_directory(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

/* Runs the set of tests in a temporary directory. */
static int run_in_temporary(struct oracle *oracle, char *const *programs,
			    const char *only)
{
	const char *parent = getenv("TMPDIR");
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/oracle-dwfl-XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(path) || chdir(path) < 0 || workloads_prepare() < 0) {
		fprintf(oracle->tap, "Bail out! cannot write to %s\n", path);
		return -1;
	}
	run_all(oracle, programs, only);
	remove_directory(path);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "event", required_argument, NULL, 'e' },
		{ "hz", required_argument, NULL, 'h' },
		{ "only", required_argument, NULL, 'o' },
		{ "show", required_argument, NULL, 's' },
		{ "program", required_argument, NULL, 'p' },
		{ "command", no_argument, NULL, 'c' },
		{ NULL, 0, NULL, 0 },
	};
	struct oracle oracle = { .tap = take_stdout(), .event = "cpu-clock", .hz = HZ };
	char *programs[PROGRAMS_MAX + 1] = { NULL };
	size_t programs_len = 0;
	const char *only = NULL;
	bool command = false;
	int option;
	int rc = 0;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (option == 'h' && pm_parse_u64(optarg, &oracle.hz))
			continue;
		else if (option == 'e')
			oracle.event = optarg;
		else if (option == 'o')
			only = optarg;
		else if (option == 's')
			oracle.show = optarg;
		else if (option == 'p' && programs_len < PROGRAMS_MAX)
			programs[programs_len++] = realpath(optarg, NULL);
		else if (option == 'c')
			command = true;
		else
			return 2;
	}
	if (command != (optind < argc))
		return 2;
	oracle.unwinder = pm_unwinder_new();
	if (can_record(&oracle)) {
		if (command)
			compare_or_skip(&oracle, argv[optind], argv + optind);
		else
			rc = run_in_temporary(&oracle, programs, only);
		fprintf(oracle.tap, "1..%d\n", oracle.points);
	}
	pm_unwinder_free(oracle.unwinder);
	for (size_t i = 0; i < programs_len; i++)
		free(programs[i]);
	fclose(oracle.tap);
	return rc < 0 || oracle.failed > 0;
}

/* SPDX-License-Identifier: MIT */
#include "tests/bench/unwind-bench.h"
#include "tests/oracle/compare.h"

#include <inttypes.h>

enum {
	PRINTED_MAX = 6, /* chains in full */
};

struct check {
	struct bench_corpus *corpus;
	struct pm_unwinder *unwinder;
	struct our_chain ours;
	struct their_chain theirs;
	uint64_t verdicts[VERDICT_COUNT];
};

static void print_address(const struct check *check, const struct pm_unw_space *space,
			  uint64_t pc)
{
	const struct pm_unw_map *map = pm_unw_space_find(space, pc);

	if (map && map->tag != (uint32_t)PM_CORPUS_NO_MODULE)
		printf("%s+%#" PRIx64, check->corpus->modules.data[map->tag].path,
		       pc - map->bias);
	else
		printf("%#" PRIx64 " (%s)", pc, map ? "no file" : "not mapped");
}

static void print_chains(const struct check *check, const struct bench_sample *sample,
			 const char *why)
{
	struct pm_unw_space space = bench_space_of(check->corpus, sample);
	const struct our_chain *ours = &check->ours;
	const struct their_chain *theirs = &check->theirs;

	printf("  sample %td: %s (%zu stack bytes, we stop: %s%s)\n",
	       sample - check->corpus->samples.data, why, sample->stack.len,
	       pm_unw_stop_name(ours->stop),
	       theirs->failed ? ", libdwfl by an error" : "");
	for (size_t i = 0; i < ours->len || i < theirs->len; i++) {
		bool equal = i < ours->len && i < theirs->len &&
			     ours->frames[i].pc == theirs->frames[i].pc;

		printf("  %4zu ", i);
		if (i < ours->len) {
			printf("%s%-4s ", equal ? "both " : "ours ",
			       pm_unw_how_name(ours->frames[i].how));
			print_address(check, &space, ours->frames[i].pc);
		}
		if (i < theirs->len && !equal) {
			fputs(i < ours->len ? " | libdwfl " : "libdwfl ", stdout);
			print_address(check, &space, theirs->frames[i].pc);
		}
		putchar('\n');
	}
}

/* Whether libdwfl agrees once it may read what an epilogue has popped. */
static bool agrees_when_popped(struct check *check, struct dwfl_space *dwfl,
			       const struct spaces_maps *maps,
			       const struct bench_sample *sample)
{
	const char *why;
	bool agrees;

	if (dwfl_space_serve_popped(dwfl, &sample->regs) == 0)
		return false;
	check->theirs.len = dwfl_space_unwind(dwfl, &sample->regs, &sample->stack,
					      check->theirs.frames, COMPARE_FRAMES_MAX,
					      &check->theirs.failed);
	agrees = compare_chains(dwfl, maps, &check->ours, &check->theirs, &why) !=
		 VERDICT_WRONG;
	dwfl_space_serve_popped(dwfl, NULL);
	return agrees;
}

static void check_sample(struct check *check, struct dwfl_space *dwfl,
			 const struct bench_sample *sample)
{
	struct pm_unw_space space = bench_space_of(check->corpus, sample);
	const struct spaces_maps *maps = &check->corpus->spaces.data[sample->space].maps;
	enum verdict verdict;
	const char *why;

	check->ours.len =
		pm_unwind(check->unwinder, &space, &sample->regs, &sample->stack,
			  check->ours.frames, &check->ours.stop);
	check->theirs.len = dwfl_space_unwind(dwfl, &sample->regs, &sample->stack,
					      check->theirs.frames, COMPARE_FRAMES_MAX,
					      &check->theirs.failed);
	verdict = compare_chains(dwfl, maps, &check->ours, &check->theirs, &why);
	if (verdict == VERDICT_WRONG && agrees_when_popped(check, dwfl, maps, sample))
		verdict = VERDICT_POPPED;
	if (verdict == VERDICT_WRONG && check->verdicts[verdict] < PRINTED_MAX)
		print_chains(check, sample, why);
	check->verdicts[verdict]++;
}

bool bench_check(struct bench_corpus *corpus)
{
	struct check *check = calloc(1, sizeof(*check));
	uint64_t skipped = 0, wrong;

	if (!check || !(check->unwinder = pm_unwinder_new()))
		abort();
	check->corpus = corpus;
	bench_files_open(corpus);
	for (size_t i = 0; i < corpus->spaces.len; i++) {
		struct bench_space *at = &corpus->spaces.data[i];
		struct dwfl_space *dwfl;

		if (at->samples == 0)
			continue;
		dwfl = dwfl_space_new(&at->maps, &corpus->files);
		for (size_t j = 0; j < corpus->samples.len; j++) {
			if (corpus->samples.data[j].space != i)
				continue;
			if (corpus->samples.data[j].regs.arch == PM_UNW_X86_64)
				check_sample(check, dwfl, &corpus->samples.data[j]);
			else
				skipped++;
		}
		dwfl_space_free(dwfl);
	}
	printf("  against libdwfl, every sample:");
	for (int i = 0; i < VERDICT_COUNT; i++)
		if (check->verdicts[i] > 0 || i == VERDICT_WRONG)
			printf(" %s %" PRIu64, verdict_name((enum verdict)i),
			       check->verdicts[i]);
	if (skipped > 0)
		printf("; of other machines, not compared: %" PRIu64, skipped);
	putchar('\n');
	wrong = check->verdicts[VERDICT_WRONG];
	pm_unwinder_free(check->unwinder);
	free(check);
	return wrong == 0;
}

int bench_dwfl_print(struct bench_corpus *corpus, FILE *to)
{
	struct their_chain *theirs = calloc(1, sizeof(*theirs));
	struct dwfl_space *dwfl = NULL;
	size_t space = SIZE_MAX;

	if (!theirs)
		abort();
	bench_files_open(corpus);
	for (size_t i = 0; i < corpus->samples.len; i++) {
		const struct bench_sample *sample = &corpus->samples.data[i];

		if (sample->space != space) {
			dwfl_space_free(dwfl);
			space = sample->space;
			dwfl = dwfl_space_new(&corpus->spaces.data[space].maps,
					      &corpus->files);
		}
		theirs->len = 0;
		theirs->failed = true;
		if (sample->regs.arch == PM_UNW_X86_64)
			theirs->len = dwfl_space_unwind(
				dwfl, &sample->regs, &sample->stack, theirs->frames,
				COMPARE_FRAMES_MAX, &theirs->failed);
		fputs(theirs->failed ? "error" : "end", to);
		for (size_t j = 0; j < theirs->len; j++)
			fprintf(to, " %" PRIx64, theirs->frames[j].pc);
		fputc('\n', to);
	}
	dwfl_space_free(dwfl);
	free(theirs);
	return ferror(to) ? -EIO : 0;
}

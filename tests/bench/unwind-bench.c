/* SPDX-License-Identifier: MIT */
/*
 * Unwinds corpora of stacks from their own CFI bytes, and has elfutils unwind the same.
 * unwind-bench --help tells the rest.
 */
#include "pm/chain.h"
#include "tests/bench/unwind-bench.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

enum {
	PASSES = 5,
	PASSES_MAX = 1000,
	PEER_SAMPLES = 4000, /* in a pass, unless --every says otherwise */
	OPTION_PASSES = 256,
	OPTION_PRINT,
	OPTION_PRINT_DWFL,
	OPTION_EVERY,
	OPTION_BATCH,
	OPTION_MAX_MB,
	OPTION_CHECK,
	OPTION_NO_PEERS,
	OPTION_NO_BENCH,
};

static const char help[] =
	"usage: unwind-bench [options] CORPUS...\n"
	"\n"
	"Unwinds each corpus (pmrec --raw FILE; .zst, too) on one core and\n"
	"prints nanoseconds a frame: medians of the passes, CPU time.\n"
	"\n"
	"  first   begins without any rule; the copied stacks are in no cache\n"
	"  cold    all rules known; the copied stacks are in no cache\n"
	"  hot     a few samples again and again, everything in the caches\n"
	"\n"
	"libdwfl keeps its handles, libdw is dwarf_cfi_addrframe() and the registers for\n"
	"every frame; both are warmed up, and unwind the same samples in the same passes.\n"
	"\n"
	"      --passes N    how often (default: 5)\n"
	"      --batch N     unwind N samples side by side, 1 to 16 (default: 8, as pmrec\n"
	"                    does)\n"
	"      --every N     the others get one sample in N (default: so that a pass has\n"
	"                    some 4000)\n"
	"      --no-peers    without the others\n"
	"      --print FILE  a line per sample: why its chain ends, then the program\n"
	"                    counters in hex, leaf first\n"
	"      --print-libdwfl FILE  the same by libdwfl: `end` or `error`\n"
	"      --check       compare every chain with libdwfl's; exit status 1 when one is\n"
	"                    wrong\n"
	"      --no-bench    no measuring: for --print and --check alone\n"
	"      --max-mb N    stacks to keep in memory (default: 4096); samples beyond are\n"
	"                    left out and counted\n";

struct options {
	size_t passes, every, batch;
	uint64_t max_bytes;
	const char *print, *print_dwfl;
	bool check, peers, bench;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t len)
{
	qsort(values, len, sizeof(*values), by_value);
	return len % 2 ? values[len / 2] : (values[len / 2 - 1] + values[len / 2]) / 2;
}

static void print_corpus(const struct bench_corpus *corpus)
{
	printf("%s: %zu samples, %.1f MB of stacks, %zu modules, %zu address "
	       "spaces\n",
	       corpus->path, corpus->samples.len, (double)corpus->stack_bytes / 1e6,
	       corpus->modules.len, corpus->spaces.len);
	if (corpus->cut)
		printf("  this corpus was cut short: its writer did not finish\n");
	if (corpus->left_out > 0)
		printf("  left out for want of memory (--max-mb): %" PRIu64 " samples\n",
		       corpus->left_out);
	if (corpus->foreign > 0)
		printf("  left out, of unknown machines: %" PRIu64 " samples\n",
		       corpus->foreign);
}

static void print_rebuilt(const struct bench_corpus *corpus)
{
	size_t rebuilt = 0;

	for (size_t i = 0; i < corpus->modules.len; i++)
		rebuilt += corpus->modules.data[i].rebuilt;
	if (rebuilt > 0)
		printf("  files not on this machine as they were, made again from the "
		       "corpus for the others: %zu of %zu\n",
		       rebuilt, corpus->modules.len);
}

static void print_ours(const struct bench_corpus *corpus, const struct bench_ours *ours)
{
	double misses = (double)ours->stats.cache_misses;

	printf("  side by side: %zu samples\n", ours->batch);
	printf("  frames: %" PRIu64 ", %.1f a sample; rooted %.2f %%; ends:",
	       ours->frames, (double)ours->frames / (double)corpus->samples.len,
	       100.0 * (double)ours->stops[PM_UNW_STOP_ROOT] /
		       (double)corpus->samples.len);
	for (int i = 0; i < BENCH_STOPS; i++)
		if (ours->stops[i] > 0)
			printf(" %s %" PRIu64, pm_unw_stop_name((enum pm_unw_stop)i),
			       ours->stops[i]);
	printf("\n  first pass: hit rate %.3f %% of the frames (%.0f misses), %" PRIu64
	       " by the general form, tables %.2f MB\n",
	       100.0 - 100.0 * misses / (double)ours->frames, misses,
	       ours->stats.expressions, (double)ours->stats.table_bytes / 1e6);
}

static void print_row(const char *name, double ns, double frames_a_sample)
{
	printf("  %-14s %9.1f ns/frame %9.2f M frames/s %10.0f samples/s", name, ns,
	       ns > 0 ? 1e3 / ns : 0, ns > 0 ? 1e9 / ns / frames_a_sample : 0);
}

static void print_peers(const struct bench_peers *peers, const struct bench_ours *ours,
			double a_sample)
{
	struct bench_peer dwfl, dw;
	double start_ms;

	bench_peers_result(peers, &dwfl, &dw, &start_ms);
	if (dwfl.frames == 0) {
		printf("  the others know no samples of this machine\n");
		return;
	}
	print_row("libdwfl cold", dwfl.cold_ns, a_sample);
	printf("  %6.1f x cold\n", dwfl.cold_ns / ours->cold_ns);
	print_row("libdwfl hot", dwfl.hot_ns, a_sample);
	printf("  %6.1f x hot\n", dwfl.hot_ns / ours->hot_ns);
	print_row("libdw cold", dw.cold_ns, a_sample);
	printf("  %6.1f x cold\n", dw.cold_ns / ours->cold_ns);
	print_row("libdw hot", dw.hot_ns, a_sample);
	printf("  %6.1f x hot\n", dw.hot_ns / ours->hot_ns);
	printf("  timed: libdwfl %" PRIu64 " frames of %" PRIu64
	       " samples, libdw %" PRIu64
	       "; from malloc: libdwfl %.2f MB, libdw %.2f MB\n",
	       dwfl.frames, dwfl.samples, dw.frames, (double)dwfl.bytes / 1e6,
	       (double)dw.bytes / 1e6);
	printf("  cold start, first sample of a process with %zu modules: ours %.2f ms, "
	       "libdwfl %.2f ms\n",
	       ours->start_modules, ours->start_ms, start_ms);
}

static void bench(struct bench_corpus *corpus, const struct options *options)
{
	size_t every = options->every ? options->every
				      : 1 + (corpus->samples.len - 1) / PEER_SAMPLES;
	double first[PASSES_MAX], cold[PASSES_MAX], hot[PASSES_MAX], start[PASSES_MAX];
	struct bench_ours ours = { .batch = options->batch };
	struct bench_peers *peers = NULL;
	double a_sample;

	bench_files_open(corpus);
	if (options->peers)
		peers = bench_peers_new(corpus, every);
	for (size_t i = 0; i < options->passes; i++) {
		bench_ours_pass(corpus, &ours);
		first[i] = ours.first_ns;
		cold[i] = ours.cold_ns;
		hot[i] = ours.hot_ns;
		start[i] = ours.start_ms;
		if (peers)
			bench_peers_pass(peers);
	}
	ours.first_ns = median(first, options->passes);
	ours.cold_ns = median(cold, options->passes);
	ours.hot_ns = median(hot, options->passes);
	ours.start_ms = median(start, options->passes);
	a_sample = (double)ours.frames / (double)corpus->samples.len;
	print_rebuilt(corpus);
	print_ours(corpus, &ours);
	print_row("ours first", ours.first_ns, a_sample);
	putchar('\n');
	print_row("ours cold", ours.cold_ns, a_sample);
	putchar('\n');
	print_row("ours hot", ours.hot_ns, a_sample);
	putchar('\n');
	if (peers && every > 1)
		printf("  the others: one sample in %zu\n", every);
	if (peers)
		print_peers(peers, &ours, a_sample);
	else
		printf("  cold start, first sample of a process with %zu modules: %.2f "
		       "ms\n",
		       ours.start_modules, ours.start_ms);
	bench_peers_free(peers);
}

/* 0; 1: a chain is wrong; 2: it could not be done. */
static int run(const char *path, const struct options *options, FILE *print,
	       FILE *print_dwfl)
{
	struct pm_error err = { 0 };
	struct bench_corpus corpus;
	int ret = 0;

	if (bench_corpus_load(&corpus, path, options->max_bytes, &err) < 0) {
		pm_error_print(&err, "unwind-bench", stderr);
		return 2;
	}
	print_corpus(&corpus);
	if (corpus.samples.len == 0) {
		printf("  nothing to unwind\n");
	} else {
		if (options->bench)
			bench(&corpus, options);
		if (options->check && !bench_check(&corpus))
			ret = 1;
		if (print && bench_ours_print(&corpus, print) < 0)
			ret = 2;
		if (print_dwfl && bench_dwfl_print(&corpus, print_dwfl) < 0)
			ret = 2;
	}
	fflush(stdout);
	bench_corpus_release(&corpus);
	return ret;
}

static bool parse_size(const char *text, uint64_t max, uint64_t *ret)
{
	return pm_parse_u64(text, ret) && *ret > 0 && *ret <= max;
}

/* 0: go on; else the exit status plus 1. */
static int parse(struct options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "passes", required_argument, NULL, OPTION_PASSES },
		{ "print", required_argument, NULL, OPTION_PRINT },
		{ "print-libdwfl", required_argument, NULL, OPTION_PRINT_DWFL },
		{ "every", required_argument, NULL, OPTION_EVERY },
		{ "batch", required_argument, NULL, OPTION_BATCH },
		{ "max-mb", required_argument, NULL, OPTION_MAX_MB },
		{ "check", no_argument, NULL, OPTION_CHECK },
		{ "no-peers", no_argument, NULL, OPTION_NO_PEERS },
		{ "no-bench", no_argument, NULL, OPTION_NO_BENCH },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t number = 0;
	int option;

	while ((option = getopt_long(argc, argv, "h", names, NULL)) != -1) {
		if (option == OPTION_PASSES && parse_size(optarg, PASSES_MAX, &number))
			options->passes = number;
		else if (option == OPTION_EVERY && parse_size(optarg, INT32_MAX, &number))
			options->every = number;
		else if (option == OPTION_BATCH &&
			 parse_size(optarg, PM_UNW_BATCH_MAX, &number))
			options->batch = number;
		else if (option == OPTION_MAX_MB && parse_size(optarg, 1 << 20, &number))
			options->max_bytes = number << 20;
		else if (option == OPTION_PRINT)
			options->print = optarg;
		else if (option == OPTION_PRINT_DWFL)
			options->print_dwfl = optarg;
		else if (option == OPTION_CHECK)
			options->check = true;
		else if (option == OPTION_NO_PEERS)
			options->peers = false;
		else if (option == OPTION_NO_BENCH)
			options->bench = false;
		else {
			fputs(help, option == 'h' ? stdout : stderr);
			return option == 'h' ? 1 : 3;
		}
	}
	if (optind < argc)
		return 0;
	fputs(help, stderr);
	return 3;
}

/* Chains on standard output send the figures to standard error. */
static FILE *open_print(const char *path)
{
	FILE *file;

	if (strcmp(path, "-") == 0) {
		int own = dup(STDOUT_FILENO);

		file = own >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0
			       ? fdopen(own, "w")
			       : NULL;
	} else {
		file = fopen(path, "we");
	}
	if (!file)
		perror(path);
	return file;
}

static int close_print(FILE *file, const char *path)
{
	if (!file || fclose(file) == 0)
		return 0;
	perror(path);
	return 2;
}

static int worse(int a, int b)
{
	return a > b ? a : b;
}

int main(int argc, char **argv)
{
	struct options options = { .passes = PASSES,
				   .batch = PM_CHAIN_AHEAD_MAX,
				   .max_bytes = 4096ull << 20,
				   .peers = true,
				   .bench = true };
	FILE *print = NULL, *print_dwfl = NULL;
	int ret = parse(&options, argc, argv);

	if (ret > 0)
		return ret - 1;
	if (options.print && !(print = open_print(options.print)))
		return 2;
	if (options.print_dwfl && !(print_dwfl = open_print(options.print_dwfl)))
		return 2;
	for (int i = optind; i < argc; i++)
		ret = worse(ret, run(argv[i], &options, print, print_dwfl));
	ret = worse(ret, close_print(print, options.print));
	return worse(ret, close_print(print_dwfl, options.print_dwfl));
}

/* SPDX-License-Identifier: MIT */
/* The command line of pmdiff and its configuration: what they mean together, and what does not
 * go together. */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/pmdiff/options.h"

enum {
	WORDS_MAX = 40,
};

/* Words with single spaces between them. */
static int parse(struct pmdiff_options *options, const char *line, struct pm_error *err)
{
	static char words[512];
	static char *argv[WORDS_MAX];
	int argc = 0;

	snprintf(words, sizeof(words), "pmdiff %s", line);
	for (char *word = strtok(words, " "); word && argc < WORDS_MAX - 1;
	     word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	optind = 0; /* getopt(3): begin anew */
	*err = (struct pm_error){ 0 };
	return pmdiff_options_parse(options, argc, argv, err);
}

static void accept(struct pmdiff_options *options, const char *line)
{
	struct pm_error err;

	if (parse(options, line, &err) != 0)
		fail_msg("%s: %s", line, err.text);
}

static void expect_text(const char *line, const struct pm_error *err, const char *why)
{
	if (!strstr(err->text, why))
		fail_msg("%s: \"%s\" is not in \"%s\"", line, why, err->text);
}

static void refuse(const char *line, const char *why)
{
	struct pmdiff_options options;
	struct pm_error err;

	if (parse(&options, line, &err) >= 0)
		fail_msg("%s is taken", line);
	expect_text(line, &err, why);
	pmdiff_options_release(&options);
}

static void test_files(void **state)
{
	struct pmdiff_options options;

	accept(&options, "a.json b.json");
	assert_int_equal(options.action, PMDIFF_COMPARE);
	assert_false(options.ab);
	assert_string_equal(options.files[0].list.data[0], "a.json");
	assert_string_equal(options.files[1].list.data[0], "b.json");
	assert_int_equal(options.files[0].list.len, 1);
	pmdiff_options_release(&options);
	/* Options may follow files. */
	accept(&options, "a b ::: c --strict d --all e");
	assert_int_equal(options.files[0].list.len, 2);
	assert_int_equal(options.files[1].list.len, 3);
	assert_string_equal(options.files[1].list.data[2], "e");
	assert_true(options.strict && options.all && !options.force);
	pmdiff_options_release(&options);
	accept(&options, "--force -- -");
	assert_true(options.ab && options.force);
	assert_string_equal(options.files[0].list.data[0], "-");
	assert_string_equal(options.files[1].list.data[0], "-");
	pmdiff_options_release(&options);
	/* Files of these names. */
	accept(&options, "./run ./bisect");
	assert_int_equal(options.action, PMDIFF_COMPARE);
	pmdiff_options_release(&options);
	refuse("", "no files to compare");
	refuse("a b c", "3 files: ::: parts");
	refuse("a b :::", "no files on the new side");
	refuse("::: a", "no files on the base side");
	refuse("a ::: b ::: c", "one ::: only");
	refuse("- -", "read once");
}

static void test_outputs(void **state)
{
	struct pmdiff_options options;

	accept(&options, "a b");
	assert_true(options.outputs[PMDIFF_TEXT].wanted);
	for (size_t i = 1; i < PMDIFF_FORMS; i++)
		assert_false(options.outputs[i].wanted);
	pmdiff_options_release(&options);
	accept(&options, "a b --json=j --markdown=m --junit=u --sarif=s --html=h");
	assert_true(options.outputs[PMDIFF_TEXT].wanted);
	assert_string_equal(options.outputs[PMDIFF_JSON].path, "j");
	assert_string_equal(options.outputs[PMDIFF_HTML].path, "h");
	pmdiff_options_release(&options);
	accept(&options, "a b --json=j --markdown");
	assert_false(options.outputs[PMDIFF_TEXT].wanted);
	assert_true(options.outputs[PMDIFF_MARKDOWN].wanted);
	assert_null(options.outputs[PMDIFF_MARKDOWN].path);
	pmdiff_options_release(&options);
	accept(&options, "a b --junit=-");
	assert_false(options.outputs[PMDIFF_TEXT].wanted);
	assert_null(options.outputs[PMDIFF_JUNIT].path);
	pmdiff_options_release(&options);
	refuse("a b --json --sarif", "share standard output");
	refuse("a b --json=x --sarif=x", "the same file x");
	refuse("a b --json=", "expected the name of a file");
	refuse("a b --color sometimes", "--color is auto, always or never");
}

static void test_run(void **state)
{
	struct pmdiff_options options;
	struct pm_error err = { 0 };

	accept(&options,
	       "run --base main -r 7 -w 0 -e sim.Ir -e sim.D1mr --fn parse "
	       "--range a.c:1-2 --engine callgrind --timeout 2m --build make -- "
	       "./bench -r 3 --all");
	assert_int_equal(options.action, PMDIFF_RUN);
	assert_string_equal(options.measured.revs[0], "main");
	assert_null(options.measured.revs[1]);
	assert_int_equal(options.measured.runs, 7);
	assert_int_equal(options.measured.warmups, 0);
	assert_int_equal(options.measured.events.list.len, 2);
	assert_string_equal(options.measured.functions.list.data[0], "parse");
	assert_string_equal(options.measured.ranges.list.data[0], "a.c:1-2");
	assert_string_equal(options.measured.engine, "callgrind");
	assert_true(options.measured.timeout_ns == 120000000000);
	assert_string_equal(options.measured.build, "make");
	assert_string_equal(options.measured.command[0], "./bench");
	assert_string_equal(options.measured.command[3], "--all");
	assert_false(options.all);
	assert_int_equal(pmdiff_options_complete(&options, &err), 0);
	assert_string_equal(options.measured.revs[1], "HEAD");
	pmdiff_options_release(&options);
	accept(&options, "bisect --good v1 --bad v2 --row fn:parse:sim.Ir ./bench x");
	assert_int_equal(options.action, PMDIFF_BISECT);
	assert_string_equal(options.measured.revs[1], "v2");
	assert_string_equal(options.measured.row, "fn:parse:sim.Ir");
	assert_string_equal(options.measured.command[1], "x");
	assert_true(options.measured.warmups == UINT64_MAX);
	pmdiff_options_release(&options);
	refuse("run --base m -r 0 -- true", "-r 0: expected a number");
	refuse("run --base m -w x -- true", "-w x: expected a number");
	refuse("run --base m --engine perf -- true", "expected auto, count");
	refuse("run --base m --timeout 5x -- true", "expected a time");
	refuse("run --base= -- true", "--base: expected the name of a revision");
}

static void test_modes(void **state)
{
	struct pmdiff_options options;

	accept(&options, "--trend --history perf");
	assert_int_equal(options.action, PMDIFF_TREND);
	assert_string_equal(options.history, "perf");
	pmdiff_options_release(&options);
	accept(&options, "a b --history git-notes:refs/notes/x");
	assert_int_equal(options.action, PMDIFF_COMPARE);
	pmdiff_options_release(&options);
	refuse("--trend --history x a.json", "--trend reads a history");
	refuse("a b --base main", "--base does not go with files");
	refuse("a b -r 5", "--repeat does not go with files");
	refuse("run --good main -- true", "--good does not go with pmdiff run");
	refuse("bisect --good a --json -- true", "--json does not go with pmdiff bisect");
	refuse("--trend --history x --sarif", "--sarif does not go with --trend");
	refuse("--trend --history x --gate wall=1%", "--gate does not go with --trend");
	refuse("a b --markdwon", "did you mean --markdown?");
	refuse("a b -z", "unknown option -z");
	refuse("a b --gate", "--gate needs a value");
	refuse("a b --all=1", "--all takes no value");
	accept(&options, "run --help --nonsense");
	assert_int_equal(options.action, PMDIFF_HELP);
	pmdiff_options_release(&options);
	accept(&options, "--version");
	assert_int_equal(options.action, PMDIFF_TELL_VERSION);
	pmdiff_options_release(&options);
}

/* ---- pmdiff.json ------------------------------------------------------------------------- */

static char config_path[64];

static void write_config(const char *text)
{
	FILE *file = fopen(config_path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int complete(struct pmdiff_options *options, const char *line, const char *config,
		    struct pm_error *err)
{
	char with_config[256];

	write_config(config);
	snprintf(with_config, sizeof(with_config), "%s", line);
	accept(options, with_config);
	options->config_path = config_path;
	*err = (struct pm_error){ .offset = -1 };
	return pmdiff_options_complete(options, err);
}

static void refuse_config(const char *config, int64_t line, const char *why)
{
	struct pmdiff_options options;
	struct pm_error err;

	if (complete(&options, "a b", config, &err) >= 0)
		fail_msg("%s is taken", config);
	expect_text(config, &err, why);
	if (err.offset != line)
		fail_msg("%s: line %lld", config, (long long)err.offset);
	assert_string_equal(err.source, config_path);
	pmdiff_options_release(&options);
}

static const char whole[] =
	"{\n"
	"  \"gates\": {\"instructions:u\": \"0.5%\",\n"
	"             \"fn:parse:sim.Ir\": \"1%\"},\n"
	"  \"build\": \"make -j2\", \"command\": [\"./bench\", \"-q\"],\n"
	"  \"runs\": 30, \"warmups\": 0, \"events\": [\"sim.Ir\"],\n"
	"  \"functions\": [\"parse\", \"emit\"], \"ranges\": [],\n"
	"  \"engine\": \"callgrind\", \"history\": \"perf/history\"\n"
	"}\n";

static void test_config(void **state)
{
	struct pmdiff_options options;
	struct pm_error err;

	if (complete(&options, "run --base m", whole, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(options.gates.list.len, 2);
	assert_string_equal(options.gates.list.data[1].scope, "parse");
	assert_string_equal(options.gates.list.data[1].source, "pmdiff.json");
	assert_string_equal(options.measured.build, "make -j2");
	assert_string_equal(options.measured.command[1], "-q");
	assert_null(options.measured.command[2]);
	assert_int_equal(options.measured.runs, 30);
	assert_int_equal(options.measured.warmups, 0);
	assert_string_equal(options.measured.events.list.data[0], "sim.Ir");
	assert_int_equal(options.measured.functions.list.len, 2);
	assert_int_equal(options.measured.ranges.list.len, 0);
	assert_string_equal(options.measured.engine, "callgrind");
	/* Beside the file. */
	assert_int_equal(options.history[0], '/');
	assert_non_null(strstr(options.history, "/perf/history"));
	pmdiff_options_release(&options);
}

static void test_options_win(void **state)
{
	struct pmdiff_options options;
	struct pm_error err;

	if (complete(&options,
		     "run --base m --gate fn:parse:sim.Ir=3% -r 2 -w 1 --fn scan "
		     "--engine auto --build true --history git-notes -- ./other",
		     whole, &err) < 0)
		fail_msg("%s", err.text);
	/* The last one holds. */
	assert_int_equal(options.gates.list.len, 3);
	assert_string_equal(options.gates.list.data[2].source, "--gate");
	assert_int_equal(options.measured.runs, 2);
	assert_int_equal(options.measured.warmups, 1);
	assert_int_equal(options.measured.functions.list.len, 1);
	assert_string_equal(options.measured.functions.list.data[0], "scan");
	assert_string_equal(options.measured.engine, "auto");
	assert_string_equal(options.measured.build, "true");
	assert_string_equal(options.measured.command[0], "./other");
	assert_string_equal(options.history, "git-notes");
	pmdiff_options_release(&options);
	/* No file, no command. */
	assert_true(complete(&options, "run --base m", "{}", &err) < 0);
	expect_text("run", &err, "no command to measure");
	pmdiff_options_release(&options);
	assert_true(complete(&options, "run -- true", "{}", &err) < 0);
	expect_text("run", &err, "--base is missing");
	pmdiff_options_release(&options);
	assert_true(complete(&options, "bisect -- true", "{}", &err) < 0);
	expect_text("bisect", &err, "--good is missing");
	pmdiff_options_release(&options);
	assert_true(complete(&options, "--trend", "{}", &err) < 0);
	expect_text("trend", &err, "--trend needs a history");
	pmdiff_options_release(&options);
}

static void test_wrong_config(void **state)
{
	refuse_config("", 1, "cannot be read as JSON");
	refuse_config("[]", 1, "expected an object");
	refuse_config("{\n\"runs\": 5,\n\"bild\": \"make\"}", 3,
		      "did you mean \"build\"?");
	refuse_config("{\"runs\": 5,\n\n\"colour\": \"x\"}", 3, "there is no such key");
	refuse_config("{\"runs\": \"5\"}", 1, "\"runs\": expected a number of runs");
	refuse_config("{\"runs\": 0}", 1, "expected a number of runs, 1 to");
	refuse_config("{\"warmups\": -1}", 1, "expected a number of runs, 0 to");
	refuse_config("{\"runs\": 1, \"runs\": 2}", 1, "duplicate");
	refuse_config("{\"command\": \"./bench\"}", 1, "an array of words");
	refuse_config("{\"command\": []}", 1, "an array of words");
	refuse_config("{\"events\": [\"\"]}", 1, "an array of events");
	refuse_config("{\"gates\": [\"wall=1%\"]}", 1, "expected an object");
	/* A word that is also a value, and a key of that name elsewhere. */
	refuse_config("{\"build\": \"gates\",\n\"gates\":\n{\"sim.Ir\": 1}}", 3,
		      "\"sim.Ir\": expected how much it may change");
	refuse_config("{\"gates\":\n{\n\"sim.Ir\": \"much\"}}", 3, "much");
	refuse_config("{\"build\": 1,\n \"gates\": {\"build\": \"1%\"}}", 1, "\"build\"");
	refuse_config("{\"engine\": \"perf\"}", -1, "expected auto, count");
	refuse_config("{\"build\": \"a\\u0000b\"}", 1, "cannot be read as JSON");
}

static void test_wrong_cases(void **state)
{
	refuse_config("{\"cases\": []}", 1, "an array of objects");
	refuse_config("{\"cases\": [1]}", 1, "expected objects");
	refuse_config("{\"cases\": [{\"command\": [\"x\"]}]}", 1, "has no \"name\"");
	refuse_config("{\"cases\": [{\"name\": \"a\\nb\"}]}", 1, "control character");
	refuse_config("{\"cases\":\n[{\"name\": \"a\", \"command\": [\"x\"]},\n"
		      "{\"name\": \"a\"}]}",
		      3, "two cases are called \"a\"");
	refuse_config("{\"cases\":\n[{\"name\": \"a\"}]}", 2, "has no \"command\"");
	refuse_config("{\"cases\": [{\"name\": \"a\",\n\"build\": \"x\"}]}", 2,
		      "\"build\": there is no such key");
	/* The same key in another case before it. */
	refuse_config("{\"cases\": [{\"name\": \"a\",\n\"runs\": 2},\n"
		      "{\"name\": \"b\",\n\"runs\": 0}]}",
		      4, "expected a number of runs");
	refuse_config("{\"cases\": [{\"name\": \"a\", \"gates\": {\"wall\": \"1%\"}},\n"
		      "{\"name\": \"b\",\n\"gates\": {\n\"wall\": 1}}]}",
		      4, "\"wall\": expected how much it may change");
	refuse_config("{\"cases\": [\n{\"name\": \"a\", \"command\": [\"x\"],\n"
		      "\"gates\": {\"b//wall\": \"1%\"}}]}",
		      2, "names another case");
	refuse_config("{\"harness\": \"x\"}", 1, "\"google-benchmark\"");
	refuse_config("{\"measured\": true}", 1, "\"whole\" or \"marked\"");
	refuse_config("{\"profile\": 1}", 1, "true or false");
}

static void test_cases(void **state)
{
	struct pmdiff_options options;
	struct pm_error err;

	if (complete(
		    &options, "run --base m -r 2",
		    "{\"command\": [\"./all\"], \"engine\": \"count\", \"runs\": 9,"
		    "\"gates\": {\"wall\": \"5%\"},"
		    "\"cases\": [{\"name\": \"a[1]\", \"warmups\": 3,"
		    "\"gates\": {\"calls\": \"1%\"}},"
		    "{\"name\": \"b\", \"command\": [\"./b\", \"x\"],"
		    "\"engine\": \"callgrind\", \"timeout\": \"10s\", \"functions\": [\"f\"],"
		    "\"measured\": \"marked\", \"setup\": \"true\"}]}",
		    &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(options.cases.len, 2);
	assert_string_equal(options.cases.data[0].measured.command[0], "./all");
	assert_int_equal(options.cases.data[0].measured.runs, 2);
	assert_int_equal(options.cases.data[0].measured.warmups, 3);
	assert_string_equal(options.cases.data[0].measured.engine, "count");
	assert_string_equal(options.cases.data[1].measured.command[1], "x");
	assert_null(options.cases.data[1].measured.command[2]);
	assert_string_equal(options.cases.data[1].measured.engine, "callgrind");
	assert_int_equal(options.cases.data[1].measured.timeout_ns, 10000000000);
	assert_int_equal(options.cases.data[1].measured.part, PM_DIFF_PART_MARKED);
	assert_string_equal(options.cases.data[1].measured.setup, "true");
	assert_string_equal(options.cases.data[1].measured.functions.list.data[0], "f");
	/* The gate of the case has no pattern. */
	assert_int_equal(options.gates.list.len, 2);
	assert_null(options.gates.list.data[0].case_name);
	assert_string_equal(options.gates.list.data[1].case_name, "a[1]");
	assert_true(options.gates.list.data[1].case_exact);
	pmdiff_options_release(&options);
	assert_true(complete(&options, "run --base m --case x",
			     "{\"cases\": [{\"name\": \"a\", \"command\": [\"b\"]}]}",
			     &err) < 0);
	expect_text("--case", &err, "means none of 1 cases");
	pmdiff_options_release(&options);
	assert_true(complete(&options, "run --base m --case x -- true", "{}", &err) < 0);
	expect_text("--case", &err, "without cases");
	pmdiff_options_release(&options);
}

static void test_missing_config(void **state)
{
	struct pmdiff_options options;
	struct pm_error err = { 0 };

	accept(&options, "a b --config /nonexistent/pmdiff.json");
	assert_int_equal(pmdiff_options_complete(&options, &err), -ENOENT);
	assert_string_equal(err.source, "/nonexistent/pmdiff.json");
	pmdiff_options_release(&options);
	accept(&options, "a b --config /");
	assert_int_equal(pmdiff_options_complete(&options, &err), -EISDIR);
	pmdiff_options_release(&options);
}

/* Where nobody names one, it is the repository's, from wherever in it. */
static void test_found_config(void **state)
{
	char top[] = "/tmp/pmdiff-options-XXXXXX", path[64], *before = getcwd(NULL, 0);
	struct pmdiff_options options;
	struct pm_error err = { 0 };

	assert_non_null(before);
	assert_non_null(mkdtemp(top));
	assert_int_equal(chdir(top), 0);
	assert_int_equal(mkdir(".git", 0700), 0);
	assert_int_equal(mkdir("below", 0700), 0);
	accept(&options, "a b");
	assert_int_equal(pmdiff_options_complete(&options, &err), 0);
	assert_null(options.config.path);
	pmdiff_options_release(&options);
	strcpy(path, config_path);
	snprintf(config_path, sizeof(config_path), "%s/pmdiff.json", top);
	write_config("{\"gates\": {\"wall\": \"5%\"}}");
	assert_int_equal(chdir("below"), 0);
	accept(&options, "a b");
	assert_int_equal(pmdiff_options_complete(&options, &err), 0);
	assert_int_equal(options.gates.list.len, 1);
	pmdiff_options_release(&options);
	assert_int_equal(unlink(config_path), 0);
	strcpy(config_path, path);
	assert_int_equal(chdir(before), 0);
	snprintf(path, sizeof(path), "%s/below", top);
	assert_int_equal(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/.git", top);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(top), 0);
	free(before);
}

static int set_up(void **state)
{
	int fd;

	strcpy(config_path, "/tmp/pmdiff-config-XXXXXX");
	fd = mkstemp(config_path);
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	return unlink(config_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_outputs),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_options_win),
		cmocka_unit_test(test_wrong_config),
		cmocka_unit_test(test_wrong_cases),
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_missing_config),
		cmocka_unit_test(test_found_config),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

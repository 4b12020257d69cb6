/* SPDX-License-Identifier: MIT */
/* Histories as pmdiff writes and reads them: in a folder, and as notes of a new repository. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/pmdiff/git.h"
#include "src/pmdiff/history.h"
#include "tests/stat-documents.h"

enum {
	COMMITS = 6,
};

static char folder[] = "/tmp/pmdiff-history-XXXXXX";
static struct pm_str hashes; /* one a line, oldest first */

static void hash_of(size_t i, char ret[41])
{
	memcpy(ret, hashes.data + 41 * i, 40);
	ret[40] = '\0';
}

static int git_commit(void)
{
	return pmdiff_git(NULL, NULL, NULL, "-c", "user.name=T", "-c",
			  "user.email=t@example.org", "commit", "-q", "--allow-empty",
			  "-m", "A commit");
}

/* A repository with COMMITS commits is where we are, and nobody has told git a name. */
static int make_repository(void **state)
{
	if (!mkdtemp(folder) || chdir(folder) < 0)
		return -1;
	setenv("HOME", folder, 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	if (pmdiff_git(NULL, NULL, NULL, "init", "-q", ".") < 0)
		return -1;
	for (size_t i = 0; i < COMMITS; i++)
		if (git_commit() < 0)
			return -1;
	return pmdiff_git(NULL, &hashes, NULL, "rev-list", "--reverse", "HEAD") < 0 ||
			       hashes.len != (size_t)41 * COMMITS
		       ? -1
		       : 0;
}

static int remove_repository(void **state)
{
	char *command;
	int r = asprintf(&command, "rm -rf '%s'", folder) < 0 ? -1 : 0;

	if (r == 0) {
		r = chdir("/") < 0 || system(command) != 0 ? -1 : 0;
		free(command);
	}
	pm_str_release(&hashes);
	return r;
}

/* Two documents of one run each: a number of rounds, and one more. */
static void make(struct pm_stat stats[2], uint64_t rounds)
{
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t value = rounds + i;

		stat_begin(&stats[i], "count");
		stat_event(&stats[i], "rounds", "", PM_STAT_NOISY);
		stat_run(&stats[i], 0, &value);
		stat_scope(&stats[i], 0, "parse", 1, &value);
	}
}

static int write_one(const char *where, size_t i)
{
	struct pm_stat stats[2];
	struct pm_error err = { 0 };
	char hash[41];
	int r;

	hash_of(i, hash);
	make(stats, 10 * (i + 1));
	r = pmdiff_history_write(where, hash, stats, 2, &err);
	if (r < 0)
		fprintf(stderr, "%s\n", err.text);
	pm_stat_release(&stats[0]);
	pm_stat_release(&stats[1]);
	return r;
}

static void expect_all(const char *where)
{
	PM_CLEANUP(pmdiff_history_release) struct pmdiff_history history = { 0 };

	assert_int_equal(pmdiff_history_read(&history, where, NULL), 0);
	assert_int_equal(history.commits.len, COMMITS);
	assert_int_equal(history.warnings.len, 0);
	for (size_t i = 0; i < COMMITS; i++) {
		const struct pmdiff_history_commit *commit = &history.commits.data[i];
		const struct pm_stat *stat = &commit->suite.cases.data[0].stat;
		char hash[41];

		hash_of(i, hash);
		assert_string_equal(commit->commit, hash);
		assert_string_equal(commit->subject, "A commit");
		assert_int_equal(stat->runs.len, 2);
		assert_int_equal(stat->runs.data[1].values[0].value, 10 * (i + 1) + 1);
		assert_int_equal(stat->scopes.data[1].run, 1);
		assert_string_equal(stat->subjects.data[0].commit, hash);
		assert_true(stat->subjects.data[0].commit_time > 1700000000);
		assert_int_equal(stat->subjects.data[0].dirty, -1);
	}
}

static void test_folder(void **state)
{
	for (size_t i = COMMITS; i-- > 0;)
		assert_int_equal(write_one("h", i), 0);
	assert_int_equal(write_one("h", 0), 0); /* in its own place */
	expect_all("h");
}

/* All at once: git itself would lose some. */
static void test_notes_at_once(void **state)
{
	for (size_t i = 0; i < COMMITS; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(write_one(PMDIFF_HISTORY_NOTES, i) < 0);
	}
	for (size_t i = 0; i < COMMITS; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	expect_all(PMDIFF_HISTORY_NOTES);
	expect_all(PMDIFF_HISTORY_NOTES ":pmdiff");
}

static void test_refused(void **state)
{
	struct pmdiff_history history = { 0 };
	struct pm_stat stats[2];
	struct pm_error err = { 0 };
	char hash[41];

	make(stats, 1);
	hash_of(0, hash);
	assert_int_equal(pmdiff_history_write("h", "HEAD", stats, 2, &err), -EINVAL);
	assert_int_equal(pmdiff_history_write("h", "../../etc/passwd", stats, 2, &err),
			 -EINVAL);
	assert_int_equal(pmdiff_history_write("h", hash, stats, 0, &err), -EINVAL);
	assert_int_equal(pmdiff_history_write("no/where", hash, stats, 2, &err), -ENOENT);
	stats[0].engine[0] = 'x';
	assert_int_equal(pmdiff_history_write("h", hash, stats, 2, &err), -EINVAL);
	assert_int_equal(pmdiff_history_read(&history, "nowhere", &err), -ENOENT);
	assert_string_equal(err.source, "nowhere");
	assert_int_equal(pmdiff_history_read(&history, PMDIFF_HISTORY_NOTES ":", &err),
			 -EINVAL);
	pm_stat_release(&stats[0]);
	pm_stat_release(&stats[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folder),
		cmocka_unit_test(test_notes_at_once),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, make_repository, remove_repository);
}

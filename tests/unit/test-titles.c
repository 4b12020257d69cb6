/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/pmrec/record.h"
#include "src/pmrec/titles.h"

enum {
	CHANGES = 40,
	TRIES = 10000, /* of a millisecond */
};

static char *own_arguments;
static size_t own_arguments_len;

/* ---- what is a title ----------------------------------------------------------------------- */

#define TITLE(cmdline, comm, exe, ret) \
	pm_rec_title_of((cmdline), sizeof(cmdline) - 1, (comm), (exe), (ret))

static void one_text_that_is_no_call_is_a_title(void **state)
{
	char title[PM_REC_TITLE_MAX + 1];
	char file[] = "/usr/lib/x/postgres";

	assert_true(TITLE("postgres: walwriter \0\0\0", "postgres", file, title));
	assert_string_equal(title, "postgres: walwriter");
	assert_true(TITLE("nginx: worker process", "nginx", "/usr/sbin/nginx", title));
	assert_string_equal(title, "nginx: worker process");
	assert_true(TITLE("(sd-pam)\0", "other", NULL, title));
	/* The name of a thread holds 15 bytes; what is longer says more. */
	assert_true(TITLE("worker 3 of the pool", "worker 3 of the", "/bin/perl", title));

	assert_false(TITLE("", "kthreadd", NULL, title));
	assert_false(TITLE("\0\0", "a", NULL, title));
	assert_false(TITLE("postgres\0-D\0/data\0", "postgres", file, title));
	assert_false(TITLE("title: one\0 left\0", "title", NULL, title));
	assert_false(TITLE("/usr/lib/x/postgres\0", "renamed", file, title));
	assert_false(TITLE("./postgres\0", "renamed", file, title));
	assert_false(TITLE("-bash\0", "bash", "/bin/bash", title));
	assert_false(TITLE("/bin/sh\0", "sh", "/bin/dash", title));
	assert_false(TITLE("a-name-of-more-than-15\0", "a-name-of-more-", NULL, title));
	assert_false(TITLE("/opt/My Tool/run it\0", "x", "/opt/My Tool/run it", title));
	assert_false(TITLE("worker 3\0", "worker 3", "/bin/perl", title));
}

static void long_titles_are_cut_between_characters(void **state)
{
	char title[PM_REC_TITLE_MAX + 1], text[400];

	memset(text, 'x', sizeof(text));
	assert_true(pm_rec_title_of(text, sizeof(text), "c", NULL, title));
	assert_int_equal(strlen(title), PM_REC_TITLE_MAX);
	memcpy(text + PM_REC_TITLE_MAX - 2, "\xe2\x82\xac", 3);
	assert_true(pm_rec_title_of(text, sizeof(text), "c", NULL, title));
	assert_int_equal(strlen(title), PM_REC_TITLE_MAX - 2);
}

/* ---- what is recorded ---------------------------------------------------------------------- */

struct seen {
	size_t texts, ends;
	char last[PM_REC_TITLE_MAX + 1];
};

static int on_record(void *user, const struct pm_file_record *record)
{
	struct seen *seen = user;

	if (record->type != PM_FILE_TITLE)
		return 0;
	seen->texts += record->title.text != NULL;
	seen->ends += record->title.text == NULL;
	snprintf(seen->last, sizeof(seen->last), "%s",
		 record->title.text ? record->title.text : "");
	return 0;
}

/* A process that takes the title "title: N" for each byte it reads, and answers with a byte. */
static pid_t start_server(int *ask_fd, int *answer_fd)
{
	int ask[2], answer[2];
	pid_t pid;

	assert_int_equal(pipe(ask), 0);
	assert_int_equal(pipe(answer), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ask[1]);
		for (unsigned int i = 0; read(ask[0], &byte, 1) == 1; i++) {
			memset(own_arguments, 0, own_arguments_len);
			snprintf(own_arguments, own_arguments_len, "title: %u", i);
			if (write(answer[1], &byte, 1) != 1)
				break;
		}
		_exit(0);
	}
	close(ask[0]);
	close(answer[1]);
	*ask_fd = ask[1];
	*answer_fd = answer[0];
	return pid;
}

static void change_title(int ask_fd, int answer_fd)
{
	char byte = 0;

	assert_int_equal(write(ask_fd, &byte, 1), 1);
	assert_int_equal(read(answer_fd, &byte, 1), 1);
}

/* One sample of @pid; then until there is a line, if one is to come. */
static void sample(struct pm_rec_session *session, pid_t pid, const struct seen *seen,
		   size_t texts)
{
	/* Later than any wait from one read to the next. */
	uint64_t time = pm_now_ns() + 60000000000u;

	for (int i = 0; i < TRIES; i++) {
		assert_int_equal(
			pm_rec_titles_sampled(session->titles, (uint32_t)pid, time), 0);
		assert_int_equal(pm_rec_titles_collect(session), 0);
		if (seen->texts >= texts)
			return;
		usleep(1000);
	}
	fail_msg("no title has come");
}

static void titles_are_bounded_and_end_with_their_program(void **state)
{
	static const struct pm_rec_options options = { .quiet = true };
	static const struct pm_file_event event = { .name = "e",
						    .requested = "e",
						    .actual = "e",
						    .modifiers = "",
						    .unit = "events",
						    .rate = 1 };
	struct pm_file_header header = { .version = PM_FILE_VERSION,
					 .pmrec = "0",
					 .created = "2024-05-06T07:08:09Z",
					 .clock = "monotonic",
					 .events = &event,
					 .events_len = 1,
					 .options = { .call_graph = "none" } };
	struct pm_rec_session session = { .options = &options };
	struct seen seen = { 0 };
	int ask_fd, answer_fd, status;
	pid_t pid;

	if (own_arguments_len < sizeof("title: 99")) {
		print_message("skipped: no room for a title in the arguments\n");
		skip();
	}
	pid = start_server(&ask_fd, &answer_fd);
	session.procs = pm_procs_new(NULL);
	assert_non_null(session.procs);
	assert_int_equal(pm_file_writer_open(&session.writer, NULL, NULL), 0);
	pm_file_writer_tee(session.writer, on_record, &seen);
	assert_int_equal(pm_file_write_header(session.writer, &header), 0);
	session.titles = pm_rec_titles_new();
	assert_non_null(session.titles);
	for (size_t i = 0; i < CHANGES; i++) {
		change_title(ask_fd, answer_fd);
		sample(&session, pid, &seen,
		       i < PM_REC_TITLES_MAX ? i + 1 : PM_REC_TITLES_MAX);
	}
	assert_int_equal(seen.texts, PM_REC_TITLES_MAX);
	assert_string_equal(seen.last, "title: 15");
	/* The last one counts, if it can be read in time. */
	assert_int_equal(pm_rec_titles_finish(&session), 0);
	assert_in_range(seen.texts, PM_REC_TITLES_MAX, PM_REC_TITLES_MAX + 1);
	if (seen.texts > PM_REC_TITLES_MAX)
		assert_string_equal(seen.last, "title: 39");
	/* Another program has no title yet, another process may have as many again. */
	assert_int_equal(pm_rec_titles_reset(&session, (uint32_t)pid, pm_now_ns(), true),
			 0);
	assert_int_equal(seen.ends, 1);
	sample(&session, pid, &seen, seen.texts + 1);
	assert_string_equal(seen.last, "title: 39");
	/* Processes that are gone and those that cannot be are no reason to fail or to wait. */
	close(ask_fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(pm_rec_titles_sampled(session.titles, PM_FILE_NONE, 1), 0);
	assert_int_equal(pm_rec_titles_sampled(session.titles, 0, 1), 0);
	assert_int_equal(pm_rec_titles_finish(&session), 0);
	assert_int_equal(seen.ends, 1);
	pm_rec_titles_free(session.titles);
	pm_rec_titles_free(NULL);
	assert_int_equal(pm_file_writer_close(session.writer, NULL), 0);
	pm_chain_threads_release(&session.threads);
	pm_procs_free(session.procs);
	close(answer_fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_text_that_is_no_call_is_a_title),
		cmocka_unit_test(long_titles_are_cut_between_characters),
		cmocka_unit_test(titles_are_bounded_and_end_with_their_program),
	};

	own_arguments = argv[0];
	own_arguments_len =
		(size_t)(argv[argc - 1] - argv[0]) + strlen(argv[argc - 1]) + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

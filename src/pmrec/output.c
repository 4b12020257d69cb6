/* SPDX-License-Identifier: MIT */
#include "output.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "course.h"
#include "cpu-waits.h"
#include "engine.h"
#include "fields.h"
#include "follow.h"
#include "generation.h"
#include "header.h"
#include "hold.h"
#include "off-cpu.h"
#include "pm/chain-jit.h"
#include "progress.h"
#include "summary.h"
#include "symbols.h"
#include "titles.h"

/* Refuses an output file that must not be renamed, such as /dev/null: snapshots are. */
static int check_renamable(const struct pm_rec_options *options, struct pm_error *err)
{
	struct stat st;

	if (!options->overwrite || lstat(options->output, &st) < 0 ||
	    S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return 0;
	pm_error_set(err, -EINVAL,
		     "--overwrite: -o has to name a regular file, and this "
		     "is none");
	pm_error_where(err, options->output, -1);
	return -EINVAL;
}

/* Without --force, neither -o nor --raw replaces a file that is not a recording. */
static int check_replaceable(const struct pm_rec_options *options, struct pm_error *err)
{
	int ret = pm_file_check_replaceable(options->output, err);

	if (ret == 0 && options->raw)
		ret = pm_file_check_replaceable(options->raw, err);
	if (ret == -EMFILE)
		pm_error_fix(err, "ulimit -n 1024");
	else if (ret < 0 && ret != -ENOMEM)
		pm_error_fix(err,
			     "pmrec --force, which renames it to …old, or another -o");
	return ret;
}

/* pm_file_wants_end_fn. Checks for signals while the recorder waits and cannot do so. */
static bool wants_end(void *user)
{
	struct pm_rec_session *session = user;

	pm_child_signals(&session->child);
	return session->child.interrupts > 0;
}

int pm_rec_output_open(struct pm_rec_session *session, struct pm_error *err)
{
	int ret = check_renamable(session->options, err);

	if (ret == 0 && !session->options->force)
		ret = check_replaceable(session->options, err);
	if (ret == 0)
		ret = pm_file_writer_open(&session->writer, session->options->output,
					  err);
	if (ret < 0)
		return ret;
	/* If memory or the number of processes is limited, this thread writes. */
	ret = pm_file_writer_background(session->writer, wants_end, session);
	if (ret < 0 && session->options->verbose)
		fprintf(stderr,
			"pmrec: writes the file while it reads the buffers (%s)\n",
			strerror(-ret));
	session->replaced_fd = pm_file_open_replaced(session->options->output);
	if (session->options->raw) {
		ret = pm_chain_raw_open(&session->raw, session->options->raw,
					session->options->stack_bytes, session->procs,
					&session->modules, err);
		if (ret < 0)
			return ret;
		pm_chain_raw_background(session->raw, wants_end, session);
	}
	if (pm_rec_generation_chains(session) < 0 ||
	    pm_chain_modules_make_tables_aside(&session->modules) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	ret = pm_rec_header_write(session);
	/* Readers that follow the file learn at once which engine samples, and why. */
	if (ret == 0)
		pm_rec_engine_tell(session);
	/* If the file cannot be written, do not run the command. */
	if (ret == 0)
		ret = pm_file_writer_sync(session->writer);
	if (ret < 0) {
		/* The writer knows the cause. */
		ret = pm_file_writer_close(PM_TAKE_PTR(session->writer), err);
		if (ret < 0)
			return ret;
		return pm_error_set(err, -EIO, "the header is not valid");
	}
	session->fields = pm_rec_fields_new(session);
	if (session->perf)
		session->titles = pm_rec_titles_new();
	if (!session->fields || (session->perf && !session->titles))
		return pm_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* Whether the file still has a name. Does not ask the server of a network file system. */
static bool has_fd_name(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &st) == 0 &&
	       st.stx_nlink > 0;
}

void pm_rec_output_let_go(struct pm_rec_session *session, bool ends)
{
	if (session->closer > 0 && waitpid(session->closer, NULL, WNOHANG) != 0)
		session->closer = 0;
	if (session->replaced_fd < 0)
		return;
	if (!has_fd_name(session->replaced_fd))
		session->closer = pm_perf_close_behind(session->replaced_fd);
	else if (ends)
		close(session->replaced_fd);
	else
		return;
	session->replaced_fd = -1;
}

void pm_rec_output_remove(struct pm_rec_session *session)
{
	pm_file_writer_discard(PM_TAKE_PTR(session->writer));
	pm_chain_raw_close(PM_TAKE_PTR(session->raw), false, NULL);
}

/* Writes a note that names were left out, so that readers of the report do not look for
 * missing debug symbols. */
static void note_nameless(struct pm_rec_session *session, const char *why)
{
	char text[64];

	snprintf(text, sizeof(text), "names were left out (%s)", why);
	pm_file_write_note(session->writer, &(struct pm_file_note){ .text = text });
}

/* Returns the time limit for reading the names of generated code. It is shorter if the
 * user stopped the recording. */
static uint64_t jit_names_max_ns(const struct pm_rec_session *session)
{
	if (session->end == PM_REC_END_COMMAND && session->child.interrupts == 0)
		return PM_CHAIN_JIT_END_NS;
	return PM_CHAIN_JIT_STOP_NS;
}

int pm_rec_output_finish(struct pm_rec_session *session, struct pm_error *err)
{
	int ret = pm_rec_off_cpu_finish(session);

	if (ret == 0)
		ret = pm_rec_hold_release(session, UINT64_MAX);
	if (ret == 0)
		ret = pm_rec_titles_finish(session);
	pm_rec_summary_count_lost(session);
	session->tables.bytes = pm_file_writer_table_bytes(session->writer);
	if (ret == 0)
		ret = pm_rec_generation_finish(session);
	if (!session->options->symbols)
		note_nameless(session, "--no-symbols");
	else if (ret == 0 && session->child.interrupts < 2)
		ret = pm_chain_jit_finish(session->jit, jit_names_max_ns(session));
	if (ret == 0 && session->options->symbols && session->child.interrupts < 2)
		ret = pm_rec_symbols_write(session);
	if (session->options->symbols && session->child.interrupts > 1)
		note_nameless(session, "stopped twice");
	pm_rec_say_end(session);
	pm_rec_follow_warn(session);
	pm_rec_summary_warn(session);
	pm_rec_generation_warn(session);
	pm_rec_fields_tell(session->fields, session);
	pm_rec_off_cpu_tell_end(session);
	pm_rec_cpu_waits_warn(session);
	if (ret == 0)
		ret = pm_rec_summary_footer(session);
	if (ret == 0)
		ret = pm_file_writer_flush(session->writer);
	session->bytes = pm_file_writer_bytes(session->writer);
	if (ret == -ENOMEM)
		return pm_error_set(err, ret, "out of memory");
	return ret;
}

int pm_rec_output_close(struct pm_rec_session *session, int error, struct pm_error *err)
{
	struct pm_error file_err = { 0 }, raw_err = { 0 };
	int ret, raw_ret;

	if (session->writer) {
		/* The held samples have already been counted: write them even if the
		 * recording failed. */
		if (error < 0)
			pm_rec_hold_release(session, UINT64_MAX);
		pm_file_writer_settle(session->writer);
		free(session->place);
		session->place = strdup(pm_file_writer_place(session->writer));
		session->kept_old = pm_file_writer_kept_old(session->writer);
	}
	ret = pm_file_writer_close(PM_TAKE_PTR(session->writer), &file_err);
	raw_ret = pm_chain_raw_close(PM_TAKE_PTR(session->raw), error == 0, &raw_err);
	pm_rec_output_let_go(session, true);

	if (ret < 0 || raw_ret < 0) {
		*err = ret < 0 ? file_err : raw_err;
		if (ret < 0)
			return ret;
		return raw_ret;
	}
	if (error < 0 && err->code == 0)
		pm_error_set(err, error, "%s", strerror(-error));
	return error;
}

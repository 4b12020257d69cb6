/* SPDX-License-Identifier: MIT */
#include "follow.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>

#define NS_A_SECOND 1e9
#define BEGIN_NS    UINT64_C(5000000000) /* time for a file to get its first line */
enum {
	LOOK_MS = 200, /* interval of checks: a file does not report that it grows */
	RECORDS_A_TURN = 1 << 14, /* records between two checks of the clock */
	/* The largest pipe of an unprivileged user, unless the system has another
	 * limit. */
	PIPE_BYTES = 1 << 20,
};

/* Why following ended. GOES_ON: it has not. */
enum end {
	GOES_ON,
	COMPLETE, /* the footer was read, or a pipe was closed */
	STOPPED, /* by the user */
	REPLACED,
	SHORTER,
};

struct follow {
	const struct pm_report_options *options;
	struct pm_resymbolize *resymbolize;
	struct pm_file_reader *reader;
	struct pm_profile_stream *stream;
	int signals; /* signalfd(2) */
	sigset_t mask; /* the original mask */
	unsigned stops; /* number of requests to stop */
	bool is_file; /* a regular file: its current end is not final */
	bool screen; /* redraw the report in place */
	bool changed, drawn;
	bool footer;
	uint64_t draw_ns;
	struct stat file; /* the file's status when it was opened */
	off_t size; /* the file's size at the last check */
	/* Name of a recording that has no samples yet; NULL: it has its final name. */
	char *partial;
};

static uint64_t follow_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- signals ------------------------------------------------------------------------------- */

/* Blocks the signals that stop us and reads them from a descriptor, so that helper
 * processes do not receive them. */
static int follow_catch_signals(struct follow *follow, struct pm_error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &follow->mask);
	follow->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (follow->signals < 0)
		return pm_error_set(err, -errno, "signals: %s", strerror(errno));
	return 0;
}

static void follow_check_signals(struct follow *follow)
{
	struct signalfd_siginfo info;

	while (read(follow->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		follow->stops += info.ssi_signo == SIGTERM ? 2 : 1;
}

/* Restores the signals: they end the program from now on, because only the last report is
 * left to do. */
static void follow_restore_signals(struct follow *follow)
{
	follow_check_signals(follow);
	sigprocmask(SIG_SETMASK, &follow->mask, NULL);
}

/* Waits until there is more to read, a signal arrives, or it is time to draw. */
static void follow_wait_for_data(struct follow *follow)
{
	uint64_t now = follow_clock_ns();
	int ms = LOOK_MS;
	struct pollfd fds[] = {
		{ .fd = follow->signals, .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
	};

	/* A file is always readable; a pipe wakes us when it has data. */
	if (!follow->is_file)
		fds[1].fd = pm_file_reader_fd(follow->reader);
	if (follow->changed && follow->draw_ns > now &&
	    (follow->draw_ns - now) / 1000000 < LOOK_MS)
		ms = (int)((follow->draw_ns - now) / 1000000) + 1;
	poll(fds, PM_ARRAY_LEN(fds), ms);
	follow_check_signals(follow);
}

/* ---- the screen ---------------------------------------------------------------------------- */

/* Prints as many lines as fit on the screen. More lines would scroll the first ones off
 * the top. */
static void print_screen(const char *text)
{
	struct winsize size;
	unsigned rows = 0;
	const char *end = text;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1)
		rows = size.ws_row - 1u;
	for (unsigned i = 0; *end != '\0' && (rows == 0 || i < rows); i++) {
		end += strcspn(end, "\n");
		end += *end == '\n';
	}
	/* Start at the top left. Clear each line before it is written, and the rest of
	 * the screen at the end: after the last column of a line, the cursor is still on
	 * that line. A line that is too long, because the terminal became narrower, ends
	 * at the edge. */
	fputs("\033[H\033[?7l", stdout);
	for (const char *at = text; at < end;) {
		size_t len = strcspn(at, "\n");

		fputs("\033[K", stdout);
		fwrite(at, 1, len, stdout);
		fputc('\n', stdout);
		at += len + (at[len] == '\n');
	}
	fputs("\033[J\033[?7h", stdout);
}

static int follow_print(struct follow *follow, const char *text)
{
	if (follow->screen)
		print_screen(text);
	else
		printf("%s%s", follow->drawn ? "\n" : "", text);
	follow->drawn = true;
	if (fflush(stdout) != 0)
		return -errno;
	return 0;
}

static int follow_draw_report(struct follow *follow, struct pm_error *err)
{
	struct pm_report_options options = *follow->options;
	const struct pm_profile *profile;
	PM_AUTO_FREE char *text = NULL;
	struct pm_error why = { .offset = -1 };
	size_t len = 0;
	FILE *to;
	int ret = pm_profile_stream_look(follow->stream, PM_PROFILE_GROWS, &profile, err);

	if (ret < 0)
		return ret;
	to = open_memstream(&text, &len);
	if (!to)
		return pm_error_set(err, -ENOMEM, "out of memory");
	if (!options.width_set)
		options.report.width = pm_sink_width(STDOUT_FILENO);
	options.report.profile = profile;
	options.report.filter = &options.filter;
	if (options.event)
		options.report.event =
			pm_profile_find_event(profile, options.event, &why);
	/* The requested function or event may not have occurred yet: show the message,
	 * but do not fail. */
	if (why.code == 0)
		options.format->write(&options, to, &why);
	if (why.code != 0)
		pm_error_print(&why, "pmreport", to);
	if (fclose(to) != 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	ret = follow_print(follow, text);
	follow->changed = false;
	follow->draw_ns = follow_clock_ns() + (uint64_t)(options.interval * NS_A_SECOND);
	if (ret < 0)
		return pm_error_set(err, ret, "cannot write: %s", strerror(-ret));
	return 0;
}

/* ---- the recording ------------------------------------------------------------------------- */

static bool is_regular_file(const char *path)
{
	struct stat st;

	return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Opens the recording. Waits for a recorder that was started at the same time, which may
 * need a moment. */
static int follow_open_reader(struct follow *follow, struct pm_error *err)
{
	const char *path = follow->options->input;
	uint64_t end = follow_clock_ns() + BEGIN_NS;
	int ret;

	for (;;) {
		/* Until the first sample, the file of that name belongs to an earlier
		 * recording. */
		free(follow->partial);
		if (pm_file_partial_find(path, &follow->partial) !=
		    PM_FILE_PARTIAL_GROWING)
			free(PM_TAKE_PTR(follow->partial));
		ret = pm_file_reader_open(&follow->reader,
					  pm_text_or(follow->partial, path), err);
		if (ret == 0)
			break;
		if ((ret != -ENOENT &&
		     !(ret == -ENODATA && (follow->partial || is_regular_file(path)))) ||
		    follow_clock_ns() > end)
			return ret;
		poll(NULL, 0, LOOK_MS);
	}
	pm_file_reader_follow(follow->reader, true);
	if (fstat(pm_file_reader_fd(follow->reader), &follow->file) == 0)
		follow->is_file = S_ISREG(follow->file.st_mode);
	/* A large pipe keeps the recorder from waiting while we draw or look up names. */
	if (!follow->is_file)
		fcntl(pm_file_reader_fd(follow->reader), F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

static bool is_followed_file(const struct follow *follow, const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_ino == follow->file.st_ino &&
	       st.st_dev == follow->file.st_dev;
}

/* Checks a file whose end we have reached. */
static enum end follow_check_file(struct follow *follow)
{
	struct stat st;

	if (!follow->is_file)
		return GOES_ON;
	if (fstat(pm_file_reader_fd(follow->reader), &st) == 0) {
		if (st.st_size < follow->size)
			return SHORTER;
		if (st.st_size > follow->size) {
			follow->size = st.st_size;
			return GOES_ON;
		}
	}
	if (strcmp(follow->options->input, "-") == 0 ||
	    /* The order matters: the recorder may rename the file between the two
	     * checks. */
	    (follow->partial && is_followed_file(follow, follow->partial)) ||
	    is_followed_file(follow, follow->options->input))
		return GOES_ON;
	return REPLACED;
}

/* Reads the available records. Returns 1 if more may be available at once, 0 if not or at
 * the end, or a negative errno. */
static int follow_read_records(struct follow *follow, enum end *end, struct pm_error *err)
{
	struct pm_file_record record;
	int ret;

	for (unsigned i = 0; i < RECORDS_A_TURN; i++) {
		ret = pm_file_reader_next(follow->reader, &record, err);
		if (ret == -EAGAIN)
			return 0;
		if (ret <= 0) {
			*end = COMPLETE;
			return ret;
		}
		follow->changed = true;
		follow->footer = follow->footer || record.type == PM_FILE_FOOTER;
		ret = pm_profile_stream_add(follow->stream, &record, err);
		if (ret < 0)
			return ret;
		if (follow->footer) {
			*end = COMPLETE;
			return 0;
		}
	}
	return 1;
}

/* Whether the user wants us to stop. If the recording comes through a pipe, the same key
 * also stops its recorder, which then writes the footer: only a second request stops us
 * at once. */
static bool is_following_stopped(const struct follow *follow)
{
	return follow->stops > (follow->is_file ? 0 : 1);
}

static int follow_until_end(struct follow *follow, enum end *end, struct pm_error *err)
{
	while (*end == GOES_ON) {
		int more = follow_read_records(follow, end, err);
		int ret = 0;

		if (more < 0)
			return more;
		if (*end != GOES_ON)
			return 0;
		follow_check_signals(follow);
		if (is_following_stopped(follow))
			*end = STOPPED;
		else if (!more)
			*end = follow_check_file(follow);
		if (*end != GOES_ON)
			return 0;
		if (follow->changed && follow_clock_ns() >= follow->draw_ns)
			ret = follow_draw_report(follow, err);
		if (ret < 0)
			return ret;
		if (!more)
			follow_wait_for_data(follow);
	}
	return 0;
}

static void follow_report_end(const struct follow *follow, enum end end)
{
	struct pm_error text = { .offset = -1 };

	if (end == REPLACED)
		pm_error_set(&text, -ESTALE,
			     "another file stands there now, or none: this is the report "
			     "of the first one");
	else if (end == SHORTER)
		pm_error_set(
			&text, -ESTALE,
			"the file has become shorter: this is the report of what was "
			"in it before");
	else
		return;
	pm_error_where(&text, follow->options->input, -1);
	pm_error_print(&text, "pmreport", stderr);
}

static void follow_release(struct follow *follow)
{
	pm_file_reader_free(follow->reader);
	pm_profile_stream_free(follow->stream);
	pm_cleanup_close(&follow->signals);
	free(follow->partial);
}

int pm_follow(struct pm_profile_stream **out, const struct pm_profile **profile,
	      const struct pm_report_options *options, struct pm_resymbolize *resymbolize,
	      struct pm_error *err)
{
	PM_CLEANUP(follow_release)
	struct follow follow = {
		.options = options,
		.resymbolize = resymbolize,
		.screen = isatty(STDOUT_FILENO),
		.signals = -1,
	};
	enum end end = GOES_ON;
	int ret;

	/* Until there is a recording, Ctrl-C ends the program as usual. */
	ret = follow_open_reader(&follow, err);
	if (ret == 0)
		ret = follow_catch_signals(&follow, err);
	if (ret == 0)
		ret = pm_profile_stream_new(&follow.stream, &options->profile, err);
	if (ret == 0)
		ret = follow_until_end(&follow, &end, err);
	if (ret < 0)
		return ret;
	follow_restore_signals(&follow);
	pm_resymbolize_last(resymbolize);
	ret = pm_profile_stream_look(follow.stream,
				     follow.footer ? PM_PROFILE_WHOLE : PM_PROFILE_CUT,
				     profile, err);
	if (ret < 0)
		return ret;
	/* The last report replaces the previous one. */
	if (follow.screen && follow.drawn)
		fputs("\033[H\033[J", stdout);
	else if (follow.drawn)
		putchar('\n');
	fflush(stdout);
	follow_report_end(&follow, end);
	*out = PM_TAKE_PTR(follow.stream);
	return 0;
}

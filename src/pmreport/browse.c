/* SPDX-License-Identifier: MIT */
/* --tui: passes the options to the terminal browser, and handles its result. */
#include "browse.h"

#include "pm/tui.h"

#include <fcntl.h>
#include <string.h>

/* Opens the file that keys are read from: the terminal itself if the recording is on
 * standard input. */
static FILE *open_keyboard(const struct pm_report_options *options, struct pm_error *err)
{
	FILE *keys;
	int fd;

	if (strcmp(options->input, "-") != 0)
		return stdin;
	fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0)
		keys = fdopen(fd, "r");
	else
		keys = NULL;
	if (keys)
		return keys;
	pm_error_set(err, -errno,
		     "the recording is on the input, and there is no terminal "
		     "to take keys from");
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int set_not_a_terminal_error(struct pm_error *err, const char *what)
{
	pm_error_set(err, -ENOTTY, "%s is not a terminal: there is nothing to browse on",
		     what);
	pm_error_fix(err, "without --tui");
	return -ENOTTY;
}

int pm_browse_check(const struct pm_report_options *options, struct pm_error *err)
{
	if (!options->tui)
		return 0;
	if (strcmp(options->input, "-") != 0 && !isatty(STDIN_FILENO))
		return set_not_a_terminal_error(err, "the input");
	if (isatty(STDOUT_FILENO))
		return 0;
	return set_not_a_terminal_error(err, "the output");
}

int pm_browse(const struct pm_report *report, const struct pm_report_options *options,
	      struct pm_error *err)
{
	FILE *keys = open_keyboard(options, err);
	int ret;

	if (!keys)
		return -ENOTTY;
	ret = pm_tui_run(report, keys, stdout, err);
	if (keys != stdin)
		fclose(keys);
	return ret;
}

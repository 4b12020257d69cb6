/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <fcntl.h>
#include <string.h>

#include "log.h"
#include "process.h"
#include "say.h"

enum {
	BUILD_LINES = 200, /* last lines of the output that are printed if the build
	                    * fails */
};

static int start_build_shell(const struct pmdiff_meter *meter,
			     const struct pmdiff_tree *tree, const char *command,
			     pid_t *out)
{
	PM_AUTO_FREE char *scratch = NULL;
	PM_AUTO_CLOSE int log = open(
		meter->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	struct pmdiff_process process = { .dir = tree->path, .in = -1 };

	if (log < 0)
		return -errno;
	if (asprintf(&scratch, "TMPDIR=%s", meter->scratch) < 0) {
		scratch = NULL;
		return -ENOMEM;
	}
	process.argv = (const char *const[]){ "sh", "-c", command, NULL };
	process.env = (const char *const[]){ scratch, NULL };
	process.out = process.err = log;
	return pmdiff_process_start(&process, out);
}

/* Submodules are not checked out: if the build needs them, only the user can fix that. */
static void suggest_submodule_update(struct pm_error *err, const struct pmdiff_tree *tree)
{
	PM_AUTO_FREE char *modules = NULL;

	if (asprintf(&modules, "%s/.gitmodules", tree->path) < 0) {
		modules = NULL;
		return;
	}
	if (access(modules, F_OK) == 0)
		pm_error_fix(err,
			     "--build 'git submodule update --init --recursive && …', "
			     "if it needs submodules");
}

int pmdiff_meter_build(struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
		       struct pm_error *err)
{
	pid_t pid;
	int status;

	if (!meter->options->measured.build)
		return 0;
	pmdiff_progress_show(&meter->progress,
			     "pmdiff: building %s, " PMDIFF_SHORT_HASH " %s", tree->role,
			     tree->commit->hash, tree->commit->subject);
	status = start_build_shell(meter, tree, meter->options->measured.build, &pid);
	if (status == 0)
		status = pmdiff_process_wait(pid);
	pmdiff_progress_clear(&meter->progress);
	if (status == 0)
		return 0;
	if (status < 0)
		return pm_error_set(err, status, "cannot build: %s", strerror(-status));
	if (!meter->brief)
		pmdiff_log_show(meter->log, BUILD_LINES);
	if (tree->role)
		pm_error_set(err, PMDIFF_BAD_COMMIT,
			     "%s, " PMDIFF_SHORT_HASH
			     " (%.100s), does not build: `%.100s` "
			     "failed with status %d",
			     tree->role, tree->commit->hash, tree->commit->subject,
			     meter->options->measured.build, status);
	else
		pm_error_set(err, PMDIFF_BAD_COMMIT, "it does not build (status %d)",
			     status);
	suggest_submodule_update(err, tree);
	return PMDIFF_BAD_COMMIT;
}

int pmdiff_meter_set_up(struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
			struct pm_error *err)
{
	const char *command = meter->measured->setup;
	char whose[PM_ERROR_TEXT_MAX / 2] = "";
	pid_t pid;
	int status = 0;

	if (command)
		status = start_build_shell(meter, tree, command, &pid);
	if (command && status == 0)
		status = pmdiff_process_wait(pid);
	if (status == 0)
		return 0;
	pmdiff_progress_clear(&meter->progress);
	if (status < 0)
		return pm_error_set(err, status, "cannot set up: %s", strerror(-status));
	if (!meter->brief)
		pmdiff_log_show(meter->log, BUILD_LINES);
	if (tree->role)
		snprintf(whose, sizeof(whose),
			 "%s, " PMDIFF_SHORT_HASH " (%.100s): ", tree->role,
			 tree->commit->hash, tree->commit->subject);
	return pm_error_set(err, PMDIFF_BAD_COMMIT,
			    "%sthe set-up `%.100s` failed with status %d", whose, command,
			    status);
}

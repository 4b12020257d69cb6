/* SPDX-License-Identifier: MIT */
#include "go-targets.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pm/unwind.h"

static bool is_go_program(const char *path)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct pm_unw_module *module;
	struct pm_error err = { 0 };
	bool ret;

	if (fd < 0 || pm_unw_module_open(&module, fd, &err) < 0)
		return false;
	ret = pm_unw_module_has_go_callers(module);
	pm_unw_module_free(module);
	return ret;
}

/* Searches PATH in the same way as execvp(3). */
static bool is_go_command(const char *name)
{
	const char *rest = getenv("PATH");

	if (strchr(name, '/'))
		return is_go_program(name);
	for (rest = rest ? rest : "/bin:/usr/bin";; rest++) {
		size_t len = strcspn(rest, ":");
		PM_AUTO_FREE char *path = NULL;

		if (asprintf(&path, "%.*s%s%s", (int)len, rest, len > 0 ? "/" : "",
			     name) < 0) {
			path = NULL;
			return false;
		}
		if (access(path, X_OK) == 0)
			return is_go_program(path);
		rest += len;
		if (*rest == '\0')
			return false;
	}
}

void pm_rec_look_at_command(struct pm_rec_session *session)
{
	session->go_command = is_go_command(session->options->command[0]);
}

bool pm_rec_records_go(const struct pm_rec_session *session)
{
	const struct pm_targets *targets = &session->targets;

	if (targets->kind == PM_PERF_COMMAND)
		return session->options->command && session->go_command;
	for (size_t i = 0; targets->kind == PM_PERF_TASKS && i < targets->roots.len;
	     i++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/exe",
			 (int)targets->roots.data[i].pid);
		if (is_go_program(path))
			return true;
	}
	return false;
}

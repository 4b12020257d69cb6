/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <string.h>

int pmdiff_find_top(char **out, struct pm_error *err)
{
	PM_AUTO_FREE char *folder = getcwd(NULL, 0);

	if (!folder && errno == ENOMEM)
		return pm_error_no_memory(err);
	*out = NULL;
	/* Each iteration removes one component. A removed directory has no path. */
	while (folder && folder[0] == '/') {
		PM_AUTO_FREE char *git = NULL;
		char *end;

		if (asprintf(&git, "%s/.git", pm_text_if(folder[1] != '\0', folder)) <
		    0) {
			git = NULL;
			return pm_error_no_memory(err);
		}
		/* In a worktree, .git is a file. */
		if (access(git, F_OK) == 0) {
			*out = PM_TAKE_PTR(folder);
			return 0;
		}
		if (folder[1] == '\0')
			break;
		end = strrchr(folder, '/');
		end[end == folder] = '\0';
	}
	return 0;
}

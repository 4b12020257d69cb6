/* SPDX-License-Identifier: MIT */
/* This is a separate file, because term.h defines macros named `lines` and `columns`. */
#include "tui-internal.h"

#include <curses.h>
#include <term.h>

bool tui_knows_terminal(FILE *to)
{
	int why;

	if (setupterm(NULL, fileno(to), &why) == ERR)
		return false;
	del_curterm(cur_term);
	return true;
}

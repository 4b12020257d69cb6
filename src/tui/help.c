/* SPDX-License-Identifier: MIT */
/* The list of keys. docs/pmreport.1.scd contains the same list. */
#include "tui-internal.h"

static const char help[] =
	"What to show\n"
	"  1  functions            4  modules          7  lines\n"
	"  2  tree, top-down       5  threads          8  addresses\n"
	"  3  tree, bottom-up      6  processes\n"
	"  Enter  table of functions: who calls it; tree: open or close;\n"
	"         modules, threads, processes: the functions of the selected one\n"
	"  <      who calls the selected function\n"
	"  >      what it calls\n"
	"  a      its lines and instructions (s  source or code, H  hottest line)\n"
	"  i      about the recording, and all warnings\n"
	"  Esc    back, or undo the last filter        q  back, or end\n"
	"\n"
	"Moving\n"
	"  Up, Down, PgUp, PgDn, Space, Home, End\n"
	"  /      search: text or regular expression   n  next   N  previous\n"
	"\n"
	"Which samples\n"
	"  Tab    next event (Shift-Tab: previous)\n"
	"  t      of one thread or process, or of all again\n"
	"  d      taken in the module of the selected row, or in all again\n"
	"  k      taken in the kernel, or everywhere again\n"
	"\n"
	"Trees\n"
	"  +      open or close               Right, Left  open, close\n"
	"  e      open everything below       E  open the whole tree\n"
	"  c      close everything below      C  close the whole tree\n"
	"  V      name modules\n"
	"\n"
	"How\n"
	"  s      sort tables by self or by total\n"
	"  F      percent of all samples, or of those that pass the filters\n"
	"  L      leave out what is below so many percent\n"
	"  P      write this page to a file\n"
	"  h ?    this list                            Q  end at once\n";

int tui_help_lines(struct pm_tui *tui, struct page *page)
{
	pm_str_puts(&page->text, help);
	if (page->text.failed)
		return -ENOMEM;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Prints the table of options that TABLE names, for `generate`. */
#include "pm/options.h"

extern const struct pm_option_table TABLE;

int main(void)
{
	pm_options_print_table(&TABLE);
	return 0;
}

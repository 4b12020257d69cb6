/* SPDX-License-Identifier: MIT */
/* Prints warnings at the end of a recording, about generated code without names. */
#include "jit-internal.h"

#include <stdarg.h>
#include <string.h>

static const char *jit_file_remedy(const struct pm_error *why)
{
	switch (why->code) {
	case -ESTALE:
	case -ELOOP:
	case -EPERM:
		return "; remove it, and let the program write its own";
	case -EACCES:
		return "; record as the user who runs the program, or as root";
	case -ENOTSUP:
		if (strstr(why->text, "CLOCK_MONOTONIC"))
			return "; unset JITDUMP_USE_ARCH_TIMESTAMP for the program";
		return "";
	default:
		return "";
	}
}

static void __attribute__((format(printf, 2, 3)))
jit_warn(struct pm_chain_jit *jit, const char *format, ...)
{
	PM_AUTO_FREE char *text = NULL;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		text = NULL;
	else
		jit->from.warn(jit->from.user, text);
}

static void tell_unusable(struct pm_chain_jit *jit)
{
	char more[64] = "";

	if (jit->unusable_count == 0)
		return;
	if (jit->unusable_count > 1)
		snprintf(more, sizeof(more), " (and from %zu more files)",
			 jit->unusable_count - 1);
	jit_warn(jit, "names of generated code could not be read from %s: %s%s%s",
		 jit->unusable.source, jit->unusable.text,
		 jit_file_remedy(&jit->unusable), more);
}

/* Reports limits that were exceeded. */
static void tell_limits(struct pm_chain_jit *jit)
{
	if (jit->left_out > 0)
		jit_warn(
			jit,
			"%llu generated functions have no name here: more than %d at "
			"a time, %zu MiB of one process, %zu MiB of all, or %d names of one "
			"place, are not kept",
			(unsigned long long)jit->left_out, PM_JIT_FUNCTIONS_MAX,
			PM_JIT_TABLE_BYTES_MAX >> 20, PM_CHAIN_JIT_BYTES_MAX >> 20,
			PM_JIT_GENERATIONS_MAX);
	if (jit->misses_left > 0)
		jit_warn(
			jit,
			"%llu places in generated code have no name: of one process %d at "
			"most wait for theirs",
			(unsigned long long)jit->misses_left, PM_CHAIN_JIT_MISSES_MAX);
	if (jit->dumps_left > 0)
		jit_warn(
			jit,
			"%llu processes have more than %d jitdumps: names from the others "
			"are missing",
			(unsigned long long)jit->dumps_left, PM_CHAIN_JIT_DUMPS_MAX);
	if (jit->files_unread > 0)
		jit_warn(
			jit,
			"%llu perf maps and jitdumps were not read to their end, because that "
			"took too long",
			(unsigned long long)jit->files_unread);
	if (jit->forks_left > 0)
		jit_warn(
			jit,
			"%llu processes lack the names of code that was made before they "
			"were forked: these come through %d forks at most",
			(unsigned long long)jit->forks_left, PM_CHAIN_JIT_DEPTH_MAX);
	if (jit->reads_put_off > 0)
		jit_warn(
			jit,
			"names of generated code came late %llu times: to read them took more "
			"time than one process may ask for",
			(unsigned long long)jit->reads_put_off);
	if (jit->unwind_full)
		jit_warn(
			jit,
			"the jitdumps' unwind information was not used to the end: %zu MiB "
			"at most are kept",
			PM_CHAIN_JIT_UNWIND_BYTES_MAX >> 20);
}

void pm_chain_jit_tell(struct pm_chain_jit *jit)
{
	tell_unusable(jit);
	tell_limits(jit);
	if (jit->bad_lines > 0)
		jit_warn(
			jit,
			"%llu lines of perf maps are not in the form `START SIZE name` and "
			"were not used",
			(unsigned long long)jit->bad_lines);
	if (jit->rewritten > 0)
		jit_warn(
			jit,
			"%llu places in generated code have no name in perf maps that were "
			"written anew meanwhile",
			(unsigned long long)jit->rewritten);
	if (jit->ambiguous > 0)
		jit_warn(jit,
			 "%llu places in generated code have no name: the jitdump told "
			 "of them after other code had taken their place (node: "
			 "--perf-basic-prof tells at once)",
			 (unsigned long long)jit->ambiguous);
}

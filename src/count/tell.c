/* SPDX-License-Identifier: MIT */
#include "tell.h"

#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int pm_tell_warning(struct pm_stat *stat, const char *format, ...)
{
	PM_AUTO_FREE char *text = NULL;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0) {
		text = NULL;
		return -ENOMEM;
	}
	for (size_t i = 0; i < stat->warnings.len; i++)
		if (strcmp(stat->warnings.data[i], text) == 0)
			return 0;
	if (pm_vec_push(&stat->warnings, text) < 0)
		return -ENOMEM;
	PM_TAKE_PTR(text);
	return 0;
}

int pm_tell_lost(struct pm_stat *stat, const struct pm_hits *hits)
{
	uint64_t lost = pm_hits_lost(hits), records = pm_hits_lost_records(hits);

	if (lost > 0)
		return pm_tell_warning(
			stat,
			"%llu of the times that a place was passed were lost, because "
			"they came faster than they could be read: calls are \"at "
			"least\", and some values too small.",
			(unsigned long long)lost);
	if (records == 0)
		return 0;
	return pm_tell_warning(stat,
			       "%llu records of threads, such as that one left its CPU, "
			       "began or ended, were lost, because they came faster "
			       "than they could be read: some values may be too small.",
			       (unsigned long long)records);
}

int pm_tell_outlived(struct pm_stat *stat, size_t processes)
{
	if (processes == 0)
		return 0;
	return pm_tell_warning(stat,
			       "%zu process%s that the command had started "
			       "ran on after its end: what they did from "
			       "then on is not counted.",
			       processes, pm_plural(processes, "", "es"));
}

bool pm_tell_is_privileged(pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return geteuid() != 0 && stat(path, &st) == 0 &&
	       (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
		((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) &&
		 st.st_gid != getegid()));
}

int pm_tell_privileged(struct pm_stat *stat, uint64_t programs)
{
	if (programs == 0)
		return 0;
	return pm_tell_warning(stat,
			       "%llu set-user-ID or set-group-ID programs were run "
			       "without their privileges, as they are traced",
			       (unsigned long long)programs);
}

int pm_tell_scope(struct pm_stat_scope *scope, const struct pm_region *region)
{
	scope->kind = region->kind;
	scope->line = region->line;
	scope->line_end = region->line_end;
	if (region->places_total > 0)
		scope->places = region->places_total;
	else
		scope->places = 1;
	if (region->pieces.len > 0) {
		scope->low = region->pieces.data[0].low;
		scope->high = region->pieces.data[0].high;
	}
	if (pm_stat_text(&scope->name, region->name) < 0 ||
	    pm_stat_text(&scope->symbol, region->symbol) < 0 ||
	    pm_stat_text(&scope->module, region->module) < 0 ||
	    pm_stat_text(&scope->build_id, region->build_id) < 0)
		return -ENOMEM;
	return pm_stat_text(&scope->file, region->file);
}

void pm_tell_unknown(const struct pm_stat *stat, struct pm_stat_scope *scope)
{
	scope->calls_unknown = true;
	scope->calls_exact = false;
	scope->calls = scope->nested = scope->unfinished = scope->lost = 0;
	scope->max_depth = 0;
	for (size_t i = 0; i < stat->events.len; i++)
		if (scope->values[i].state == PM_STAT_OK)
			scope->values[i] =
				(struct pm_stat_value){ .state = PM_STAT_NOT_COUNTED };
}

int pm_tell_inlined(struct pm_stat *stat, struct pm_stat_scope *scope,
		    const struct pm_region *region)
{
	if (!region->inlined_away || scope->calls > 0 || scope->calls_unknown)
		return 0;
	pm_tell_unknown(stat, scope);
	return pm_tell_warning(
		stat,
		"%s was inlined, and nothing that could be looked at is left "
		"of it there: how often it was called is not known",
		scope->name);
}

struct pm_stat_value pm_tell_value(const struct pm_count *count)
{
	return (struct pm_stat_value){ .state = count->state,
				       .value = count->value,
				       .raw = count->raw,
				       .enabled_ns = count->enabled_ns,
				       .running_ns = count->running_ns };
}

void pm_tell_status(struct pm_stat_run *run, int status)
{
	run->exit_code = -1;
	run->signal = 0;
	if (WIFEXITED(status))
		run->exit_code = WEXITSTATUS(status);
	if (WIFSIGNALED(status))
		run->signal = WTERMSIG(status);
}

uint64_t pm_tell_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

void pm_tell_tools(const struct pm_stat *stat, const struct pm_engine_options *options,
		   const struct pm_child *child, uint64_t wall_ns,
		   struct pm_stat_value *values)
{
	const struct rusage *usage = &child->usage;
	bool ended = !options->targets && child->status_known;
	const struct {
		const char *name;
		bool known;
		uint64_t value;
	} tools[] = {
		{ "wall-time", true, wall_ns },
		{ "user-time", ended, pm_tell_ns(&usage->ru_utime) },
		{ "system-time", ended, pm_tell_ns(&usage->ru_stime) },
		{ "max-rss", ended, (uint64_t)usage->ru_maxrss * 1024 },
	};

	for (size_t i = 0; i < stat->events.len; i++)
		for (size_t j = 0; j < PM_ARRAY_LEN(tools); j++)
			if (tools[j].known &&
			    strcmp(stat->events.data[i].source, "tool") == 0 &&
			    strcmp(stat->events.data[i].name, tools[j].name) == 0)
				values[i] =
					(struct pm_stat_value){ .state = PM_STAT_OK,
								.value = tools[j].value,
								.raw = tools[j].value };
}

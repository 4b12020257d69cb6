/* SPDX-License-Identifier: MIT */
#include "list.h"

#include <fnmatch.h>
#include <string.h>

#include "list-internal.h"
#include "session.h"

const char *const pm_rec_list_kind_names[PM_REC_LIST_KINDS] = {
	[PM_REC_LIST_HARDWARE] = "hardware",     [PM_REC_LIST_SOFTWARE] = "software",
	[PM_REC_LIST_CACHE] = "cache",           [PM_REC_LIST_PMU] = "pmu",
	[PM_REC_LIST_TRACEPOINT] = "tracepoint", [PM_REC_LIST_PROBE] = "probe",
};

static void list_release(struct pm_rec_list *list)
{
	for (size_t i = 0; i < list->rows.len; i++) {
		free(list->rows.data[i].name);
		free(list->rows.data[i].aliases);
	}
	for (size_t i = 0; i < list->texts.len; i++)
		free(list->texts.data[i]);
	pm_vec_release(&list->rows);
	pm_vec_release(&list->texts);
	pm_pmus_release(&list->pmus);
}

/* Returns a copy of @text that the list owns; equal strings share it. Returns NULL for ""
 * and without memory. */
static const char *list_keep_text(struct pm_rec_list *list, const char *text)
{
	char *copy;

	if (!text[0])
		return NULL;
	for (size_t i = list->texts.len; i-- > 0;)
		if (strcmp(list->texts.data[i], text) == 0)
			return list->texts.data[i];
	copy = strdup(text);
	if (copy && pm_vec_push(&list->texts, copy) < 0) {
		free(copy);
		return NULL;
	}
	return copy;
}

static bool list_matches_name(const struct pm_rec_list *list, const char *name)
{
	return !list->glob || fnmatch(list->glob, name, FNM_CASEFOLD) == 0;
}

static int list_add_row(struct pm_rec_list *list, enum pm_rec_list_kind kind,
			const char *name, const char *aliases,
			enum pm_perf_available available, const struct pm_error *err)
{
	struct pm_rec_list_row row = { .kind = kind,
				       .name = strdup(name),
				       .aliases = aliases ? strdup(aliases) : NULL,
				       .available = available };

	if (available != PM_PERF_AVAILABLE) {
		row.reason = list_keep_text(list, err->text);
		row.fix = list_keep_text(list, err->fix);
	}
	if (row.name && (row.aliases || !aliases) && pm_vec_push(&list->rows, row) == 0)
		return 0;
	free(row.name);
	free(row.aliases);
	return -ENOMEM;
}

/* Parses @text, the name of one event. Returns false if that fails. */
static bool parse_one_event(const char *text, struct pm_event_specs *out)
{
	return pm_event_specs_parse(text, out, NULL) == 0 && out->list.len > 0;
}

static int list_add_event(struct pm_rec_list *list, enum pm_rec_list_kind kind,
			  const char *name, const char *aliases,
			  const struct pm_event_spec *spec)
{
	struct pm_error err = { 0 };
	enum pm_perf_available available = pm_perf_try(spec, &err);

	return list_add_row(list, kind, name, aliases, available, &err);
}

/* ---- the kernel's own names ------------------------------------------------------------- */

static enum pm_rec_list_kind list_kind_of_spec(const struct pm_event_spec *spec)
{
	if (spec->kind == PM_EVENT_SOFTWARE)
		return PM_REC_LIST_SOFTWARE;
	if (spec->kind == PM_EVENT_CACHE)
		return PM_REC_LIST_CACHE;
	return PM_REC_LIST_HARDWARE;
}

/* Appends the other names of the event called @canonical. Returns whether any of its
 * names matches the glob. */
static bool other_names(const struct pm_rec_list *list, const char *canonical,
			struct pm_str *out)
{
	const char *const *names = pm_event_names();
	bool wanted = list_matches_name(list, canonical);

	for (size_t i = 0; names[i]; i++) {
		struct pm_event_specs specs PM_CLEANUP(pm_event_specs_release) = { 0 };

		if (strcmp(names[i], canonical) == 0 ||
		    !parse_one_event(names[i], &specs) ||
		    strcmp(specs.list.data[0].name, canonical) != 0)
			continue;
		wanted = wanted || list_matches_name(list, names[i]);
		pm_str_printf(out, "%s%s", out->len ? " " : "", names[i]);
	}
	return wanted;
}

static int add_kernels(struct pm_rec_list *list, enum pm_rec_list_kind kind)
{
	const char *const *names = pm_event_names();
	int ret = 0;

	for (size_t i = 0; names[i] && ret == 0; i++) {
		struct pm_event_specs specs PM_CLEANUP(pm_event_specs_release) = { 0 };
		struct pm_str aliases PM_CLEANUP(pm_str_release) = { 0 };

		if (!parse_one_event(names[i], &specs) ||
		    list_kind_of_spec(&specs.list.data[0]) != kind ||
		    strcmp(specs.list.data[0].name, names[i]) != 0)
			continue;
		if (other_names(list, names[i], &aliases))
			ret = list_add_event(list, kind, names[i], aliases.data,
					     &specs.list.data[0]);
	}
	return ret;
}

/* ---- PMUs -------------------------------------------------------------------------------- */

/* Returns false for PMUs that only implement the kernel's other kinds of events. */
static bool is_counting_pmu(const struct pm_pmu_about *pmu)
{
	static const char *const others[] = { "software", "tracepoint", "breakpoint",
					      "uprobe", "kprobe" };

	for (size_t i = 0; i < PM_ARRAY_LEN(others); i++)
		if (strcmp(pmu->name, others[i]) == 0)
			return false;
	return true;
}

static int add_pmus(struct pm_rec_list *list)
{
	int ret = 0;

	for (size_t i = 0; i < list->pmus.list.len; i++) {
		const struct pm_pmu_about *pmu = &list->pmus.list.data[i];

		for (size_t j = 0;
		     is_counting_pmu(pmu) && j < pmu->events.list.len && ret == 0; j++) {
			struct pm_event_specs specs PM_CLEANUP(
				pm_event_specs_release) = { 0 };
			struct pm_error err = { 0 };
			char name[PM_EVENT_NAME_MAX];

			snprintf(name, sizeof(name), "%s/%s/", pmu->name,
				 pmu->events.list.data[j]);
			if (!list_matches_name(list, name) &&
			    !list_matches_name(list, pmu->events.list.data[j]))
				continue;
			if (pm_event_specs_parse(name, &specs, &err) < 0)
				ret = list_add_row(list, PM_REC_LIST_PMU, name, NULL,
						   PM_PERF_NOT_AVAILABLE, &err);
			else
				ret = list_add_event(list, PM_REC_LIST_PMU, name, NULL,
						     &specs.list.data[0]);
		}
	}
	return ret;
}

/* ---- tracepoints ------------------------------------------------------------------------- */

/* Appends the tracepoints. Only one of them is tried: a user who may record one may
 * record the others. Tracepoints of system calls may be open to more users. */
static int add_tracepoints(struct pm_rec_list *list)
{
	struct pm_tracepoint_names names PM_CLEANUP(pm_tracepoint_names_release) = { 0 };
	struct pm_event_specs specs PM_CLEANUP(pm_event_specs_release) = { 0 };
	enum pm_perf_available available = PM_PERF_NOT_AVAILABLE;
	struct pm_error err = { 0 };
	int ret = pm_tracepoint_names_read(&names, &err);

	if (ret == -ENOMEM)
		return ret;
	if (ret < 0) {
		list->no_tracepoints = list_keep_text(list, err.text);
		list->no_tracepoints_fix = list_keep_text(list, err.fix);
		return 0;
	}
	for (size_t i = 0; i < names.list.len && specs.list.len == 0; i++)
		pm_event_specs_parse(names.list.data[i], &specs, &err);
	if (specs.list.len > 0)
		available = pm_perf_try(&specs.list.data[0], &err);
	for (size_t i = 0; i < names.list.len && ret == 0; i++)
		if (list_matches_name(list, names.list.data[i]))
			ret = list_add_row(list, PM_REC_LIST_TRACEPOINT,
					   names.list.data[i], NULL, available, &err);
	return ret;
}

/* ---- probes ------------------------------------------------------------------------------ */

static const struct pm_pmu_about *find_pmu(const struct pm_rec_list *list,
					   const char *name)
{
	for (size_t i = 0; i < list->pmus.list.len; i++)
		if (strcmp(list->pmus.list.data[i].name, name) == 0)
			return &list->pmus.list.data[i];
	return NULL;
}

/* Tries to place a uprobe in our own file, on bytes that are not code, so that nothing is
 * changed. */
static enum pm_perf_available try_uprobe(const struct pm_pmu_about *pmu,
					 struct pm_error *err)
{
	const struct pm_event_spec spec = { .name = "uprobe",
					    .kind = PM_EVENT_UPROBE,
					    .type = pmu->type,
					    .path = "/proc/self/exe",
					    .user = true,
					    .kernel = true };

	return pm_perf_try(&spec, err);
}

static enum pm_perf_available try_kprobe(const struct pm_pmu_about *pmu,
					 struct pm_error *err)
{
	const struct pm_event_spec spec = { .name = "kprobe",
					    .kind = PM_EVENT_KPROBE,
					    .type = pmu->type,
					    .path = "do_exit",
					    .user = true,
					    .kernel = true,
					    .explicit_kernel = true };

	return pm_perf_try(&spec, err);
}

static enum pm_perf_available try_breakpoint(struct pm_error *err)
{
	static int watched;
	const struct pm_event_spec spec = {
		.name = "mem",
		.kind = PM_EVENT_BREAKPOINT,
		.type = 5, /* PERF_TYPE_BREAKPOINT */
		.bp_type = 2, /* HW_BREAKPOINT_W */
		.config1 = (uint64_t)(uintptr_t)&watched,
		.config2 = sizeof(watched),
		.user = true,
	};

	return pm_perf_try(&spec, err);
}

static int add_probes(struct pm_rec_list *list)
{
	static const struct {
		const char *form, *pmu;
		enum pm_perf_available (*try)(const struct pm_pmu_about *pmu,
					      struct pm_error *err);
	} probes[] = {
		{ "kprobe:SYMBOL[+OFFSET]", "kprobe", try_kprobe },
		{ "kretprobe:SYMBOL", "kprobe", try_kprobe },
		{ "uprobe:FILE:SYMBOL[+OFFSET]", "uprobe", try_uprobe },
		{ "uprobe:FILE:SOURCE.c:LINE", "uprobe", try_uprobe },
		{ "uretprobe:FILE:SYMBOL", "uprobe", try_uprobe },
		{ "usdt:FILE:PROVIDER:NAME", "uprobe", try_uprobe },
	};
	enum pm_perf_available available = PM_PERF_NOT_AVAILABLE;
	const char *tried = NULL;
	struct pm_error err = { 0 };
	int ret = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(probes) && ret == 0; i++) {
		const struct pm_pmu_about *pmu = find_pmu(list, probes[i].pmu);

		if (!list_matches_name(list, probes[i].form))
			continue;
		/* Try each PMU once: the kernel waits for all CPUs to remove a probe. */
		if (tried && strcmp(tried, probes[i].pmu) == 0)
			;
		else if (pmu)
			available = probes[i].try(pmu, &err);
		else {
			available = PM_PERF_NOT_AVAILABLE;
			pm_error_set(&err, -ENOENT, "this kernel has no %s PMU",
				     probes[i].pmu);
		}
		tried = probes[i].pmu;
		ret = list_add_row(list, PM_REC_LIST_PROBE, probes[i].form, NULL,
				   available, &err);
	}
	if (ret == 0 && list_matches_name(list, "mem:ADDRESS[/LENGTH][:rwx]"))
		ret = list_add_row(list, PM_REC_LIST_PROBE, "mem:ADDRESS[/LENGTH][:rwx]",
				   NULL, try_breakpoint(&err), &err);
	return ret;
}

/* ---- all ----------------------------------------------------------------------------------- */

static int list_collect(struct pm_rec_list *list)
{
	int ret = pm_pmus_read(&list->pmus);

	for (int i = 0; i < PM_REC_LIST_KINDS && ret == 0; i++) {
		enum pm_rec_list_kind kind = (enum pm_rec_list_kind)i;

		if (!list->wanted[kind])
			continue;
		switch (kind) {
		case PM_REC_LIST_HARDWARE:
		case PM_REC_LIST_SOFTWARE:
		case PM_REC_LIST_CACHE:
			ret = add_kernels(list, kind);
			break;
		case PM_REC_LIST_PMU:
			ret = add_pmus(list);
			break;
		case PM_REC_LIST_TRACEPOINT:
			ret = add_tracepoints(list);
			break;
		case PM_REC_LIST_PROBE:
			ret = add_probes(list);
			break;
		case PM_REC_LIST_KINDS:
			break;
		}
	}
	return ret;
}

static bool wants_color(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no && no[0]);
}

/* Reports that no event was listed. That is an error: the glob probably has a typo. */
static int explain_empty_list(const struct pm_rec_list *list, const char *kind)
{
	struct pm_error err = { 0 };

	if (list->no_tracepoints) {
		pm_error_set(&err, -ENOENT, "%s", list->no_tracepoints);
		if (list->no_tracepoints_fix)
			pm_error_fix(&err, "%s", list->no_tracepoints_fix);
	} else {
		pm_error_set(&err, -ENOENT, "no %s%sevent here matches \"%s\"",
			     pm_text_or_empty(kind), pm_text_if(kind, " "), list->glob);
	}
	pm_error_print(&err, "pmrec", stderr);
	return PM_STATUS_FAILED;
}

int pm_rec_list_run(const struct pm_rec_options *options)
{
	struct pm_rec_list list PM_CLEANUP(list_release) = { .glob = options->list_glob };
	struct pm_str out PM_CLEANUP(pm_str_release) = { 0 };
	int ret;

	for (size_t i = 0; i < PM_REC_LIST_KINDS; i++)
		list.wanted[i] =
			!options->list_kind ||
			strcmp(options->list_kind, pm_rec_list_kind_names[i]) == 0;
	list.sum_up_tracepoints = !options->list_kind && !options->list_glob;
	ret = list_collect(&list);
	if (ret == 0 && list.rows.len == 0 && list.glob && !options->json)
		return explain_empty_list(&list, options->list_kind);
	if (ret == 0 && options->json)
		pm_rec_list_print_json(&list, &out);
	else if (ret == 0)
		pm_rec_list_print_text(&list, wants_color(), &out);
	if (ret < 0 || out.failed) {
		fputs("pmrec: out of memory\n", stderr);
		return PM_STATUS_FAILED;
	}
	if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0) {
		fprintf(stderr, "pmrec: standard output: %s\n", strerror(errno));
		return PM_STATUS_FAILED;
	}
	return 0;
}

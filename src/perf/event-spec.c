/* SPDX-License-Identifier: MIT */
/* Lists of events, the units of events, and the substitutes for events that are not
 * supported. */
#include "event-parser.h"

#include <linux/perf_event.h>
#include <string.h>

const struct pm_event_sources pm_event_sources_here = {
	.devices = "/sys/bus/event_source/devices",
	.tracefs = true,
	.libpfm = true,
};

/* ---- lists of specs -------------------------------------------------------------------------- */

void pm_event_specs_release(struct pm_event_specs *specs)
{
	pm_vec_release(&specs->list);
	for (size_t i = 0; i < specs->texts.len; i++)
		free(specs->texts.data[i]);
	pm_vec_release(&specs->texts);
}

const char *pm_event_specs_keep(struct pm_event_specs *specs, const char *text,
				size_t len)
{
	char *copy = strndup(text, len);

	if (copy && pm_vec_push(&specs->texts, copy) < 0) {
		free(copy);
		return NULL;
	}
	return copy;
}

int pm_event_specs_replace(struct pm_event_specs *specs, size_t at,
			   const struct pm_event_spec *with, size_t len)
{
	size_t behind = specs->list.len - at - 1;
	struct pm_event_spec *list;

	if (pm_vec_reserve(&specs->list, specs->list.len + len) < 0)
		return -ENOMEM;
	list = specs->list.data;
	for (size_t i = 0; i < specs->list.len; i++) {
		/* Members of a group led by the replaced event follow the first new
		 * one. */
		if (list[i].leader > at)
			list[i].leader += (uint32_t)len - 1;
	}
	memmove(&list[at + len], &list[at + 1], behind * sizeof(*list));
	for (size_t i = 0; i < len; i++) {
		struct pm_event_spec fresh = with[i];
		bool grouped = with[i].leader != at;

		for (size_t j = 0; j < behind; j++)
			grouped |= list[at + len + j].leader == at;
		if (grouped)
			fresh.leader = with[i].leader;
		else
			fresh.leader = (uint32_t)(at + i);
		list[at + i] = fresh;
	}
	specs->list.len += len - 1;
	return 0;
}

int pm_event_no_memory(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "no memory for the list of events");
}

/* ---- one event ------------------------------------------------------------------------------- */

void pm_event_item_begin(const struct pm_event_item *item, struct pm_event_spec *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->requested, item->text, item->len);
}

int pm_event_item_add(const struct pm_event_item *item, const struct pm_event_spec *spec,
		      struct pm_error *err)
{
	if (pm_vec_push(&item->specs->list, *spec) < 0)
		return pm_event_no_memory(err);
	return 0;
}

int pm_event_unknown(const struct pm_event_sources *sources, const char *name,
		     struct pm_error *err)
{
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
	struct pm_pmu_names pmus PM_CLEANUP(pm_pmu_names_release) = { 0 };
	struct pm_near near = { .word = name };

	for (const char *const *known = pm_event_names(); *known; known++)
		pm_near_add(&near, *known);
	if (pm_pmu_names_read(sources, &pmus) < 0)
		return pm_event_no_memory(err);
	for (size_t i = 0; i < pmus.list.len; i++) {
		struct pm_pmu_names events PM_CLEANUP(pm_pmu_names_release) = { 0 };
		struct pm_pmu pmu PM_CLEANUP(pm_pmu_release) = { .folder = -1 };

		if (pm_pmu_open(&pmu, sources, pmus.list.data[i]) < 0 ||
		    pm_pmu_names_of(&pmu, "events", &events) < 0)
			continue;
		for (size_t j = 0; j < events.list.len; j++)
			pm_near_add(&near, events.list.data[j]);
	}
	if (strcmp(name, "dummy") == 0 || strcmp(name, "bpf-output") == 0)
		return pm_error_set(err, -EINVAL,
				    "unknown event \"%s\": the kernel's event of this "
				    "name never gives a sample",
				    name);
	pm_str_printf(&text, "unknown event \"%s\"", name);
	if (near.len > 0) {
		pm_str_puts(&text, "; near names: ");
		pm_near_print(&near, PM_NEAR_MAX, &text);
	}
	pm_error_set(err, -EINVAL, "%s", pm_str_text_or(&text, "unknown event"));
	if (near.len == 0)
		pm_error_fix(err, "pmrec --list");
	return -EINVAL;
}

/* ---- replacements, units ---------------------------------------------------------------------- */

bool pm_event_spec_fallback(const struct pm_event_spec *spec, int open_errno,
			    struct pm_event_spec *out)
{
	struct pm_event_spec substitute = *spec;

	/* Only the errors of kernels and hypervisors without a PMU: a refusal (EACCES) or
	 * a wrong attr (EINVAL) must not lead to another event. */
	if (open_errno != ENOENT && open_errno != ENXIO && open_errno != ENODEV &&
	    open_errno != EOPNOTSUPP)
		return false;
	if (spec->type != PERF_TYPE_HARDWARE || spec->config != PERF_COUNT_HW_CPU_CYCLES)
		return false;
	/* A clock can only measure the host. */
	if (spec->guest_only && !spec->host_only)
		return false;
	if (!pm_event_name_find("cpu-clock", strlen("cpu-clock"), &substitute))
		return false;
	substitute.precise = 0;
	substitute.precise_most = false;
	*out = substitute;
	return true;
}

/* Whether the event belongs to this PMU. If so, sets @unit and @scale. */
static bool has_pmu_unit_of_event(const struct pm_event_sources *sources,
				  const char *pmu_name, const struct pm_event_spec *spec,
				  const char *event, char unit[PM_EVENT_UNIT_MAX],
				  double *scale)
{
	struct pm_pmu pmu PM_CLEANUP(pm_pmu_release) = { .folder = -1 };

	if (pm_pmu_open(&pmu, sources, pmu_name) < 0 || pmu.type != spec->type)
		return false;
	(void)pm_pmu_unit(&pmu, event, unit, PM_EVENT_UNIT_MAX, scale);
	return true;
}

void pm_event_spec_unit_from(const struct pm_event_sources *sources,
			     const struct pm_event_spec *spec,
			     char unit[PM_EVENT_UNIT_MAX], double *scale)
{
	struct pm_pmu_names names PM_CLEANUP(pm_pmu_names_release) = { 0 };
	const char *slash = strchr(spec->name, '/');
	char event[PM_EVENT_NAME_MAX];

	unit[0] = '\0';
	*scale = 1;
	if (spec->kind != PM_EVENT_PMU || pm_pmu_names_read(sources, &names) < 0)
		return;
	/* PMU/NAME/, whose first term is the name, or just the name. */
	snprintf(event, sizeof(event), "%s", slash ? slash + 1 : spec->name);
	event[strcspn(event, "/,")] = '\0';
	for (size_t i = 0; i < names.list.len; i++)
		if (has_pmu_unit_of_event(sources, names.list.data[i], spec, event, unit,
					  scale))
			return;
}

void pm_event_spec_unit(const struct pm_event_spec *spec, char unit[PM_EVENT_UNIT_MAX],
			double *scale)
{
	pm_event_spec_unit_from(&pm_event_sources_here, spec, unit, scale);
}

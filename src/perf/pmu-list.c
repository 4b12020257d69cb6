/* SPDX-License-Identifier: MIT */
#include "event-parser.h"

#include <string.h>

static void pmu_words_release(struct pm_pmu_words *words)
{
	for (size_t i = 0; i < words->list.len; i++)
		free(words->list.data[i]);
	pm_vec_release(&words->list);
}

void pm_pmus_release(struct pm_pmus *pmus)
{
	for (size_t i = 0; i < pmus->list.len; i++) {
		struct pm_pmu_about *about = &pmus->list.data[i];

		free(about->name);
		free(about->cpus);
		pmu_words_release(&about->events);
		pmu_words_release(&about->terms);
	}
	pm_vec_release(&pmus->list);
}

/* Moves the names to @out. */
static int pmu_take_words(const struct pm_pmu *pmu, const char *folder,
			  struct pm_pmu_words *out)
{
	struct pm_pmu_names names = { 0 };
	int ret = pm_pmu_names_of(pmu, folder, &names);

	for (size_t i = 0; ret == 0 && i < names.list.len; i++) {
		ret = pm_vec_push(&out->list, names.list.data[i]);
		if (ret == 0)
			names.list.data[i] = NULL;
	}
	pm_pmu_names_release(&names);
	return ret;
}

static int pmus_take_pmu(const struct pm_pmu *pmu, struct pm_pmus *out)
{
	struct pm_pmu_about about = { .name = strdup(pmu->name), .type = pmu->type };
	struct pm_str cpus = { 0 };
	int ret = -ENOMEM;

	if (about.name)
		ret = pm_vec_push(&out->list, about);
	struct pm_pmu_about *in;

	if (ret < 0) {
		free(about.name);
		return ret;
	}
	in = &out->list.data[out->list.len - 1];
	pm_pmu_cpus(pmu, &cpus);
	if (cpus.failed) {
		pm_str_release(&cpus);
		return -ENOMEM;
	}
	in->cpus = cpus.data;
	ret = pmu_take_words(pmu, "events", &in->events);
	if (ret < 0)
		return ret;
	return pmu_take_words(pmu, "format", &in->terms);
}

int pm_pmus_read(struct pm_pmus *out)
{
	static const struct pm_event_sources sources = {
		.devices = "/sys/bus/event_source/devices"
	};
	struct pm_pmus pmus PM_CLEANUP(pm_pmus_release) = { 0 };
	struct pm_pmu_names names = { 0 };
	int ret = pm_pmu_names_read(&sources, &names);

	for (size_t i = 0; ret == 0 && i < names.list.len; i++) {
		struct pm_pmu pmu;

		if (pm_pmu_open(&pmu, &sources, names.list.data[i]) < 0)
			continue; /* it has no type, or it has just been removed */
		ret = pmus_take_pmu(&pmu, &pmus);
		pm_pmu_release(&pmu);
	}
	pm_pmu_names_release(&names);
	if (ret < 0)
		return ret;
	pm_pmus_release(out);
	*out = pmus;
	pmus = (struct pm_pmus){ 0 };
	return 0;
}

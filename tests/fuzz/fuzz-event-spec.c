/* SPDX-License-Identifier: MIT */
/* The input is the text of -e; the same text is also tried as a list of CPUs. */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "src/perf/perf-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- PMUs, so that terms mean something on every machine --------------------------------- */

static char folder[] = "/tmp/pm-fuzz-pmus-XXXXXX";

static const struct {
	const char *path, *text; /* no text: a folder */
} files[] = {
	{ "cpu", NULL },
	{ "cpu/type", "4" },
	{ "cpu/format", NULL },
	{ "cpu/format/event", "config:0-7,32-35" },
	{ "cpu/format/umask", "config:8-15" },
	{ "cpu/format/edge", "config:18" },
	{ "cpu/format/ldlat", "config1:0-15" },
	{ "cpu/format/mask", "config2:0-63" },
	{ "cpu/format/odd", "config3:0-7" },
	{ "cpu/events", NULL },
	{ "cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3" },
	{ "cpu/events/again", "again,edge" },
	{ "cpu/events/ask", "event=?" },
	{ "cpu_7", NULL },
	{ "cpu_7/type", "22" },
	{ "cpu_7/cpus", "0-3" },
	{ "uprobe", NULL },
	{ "uprobe/type", "8" },
	{ "kprobe", NULL },
	{ "kprobe/type", "7" },
};

static void put(const char *path, bool make)
{
	char whole[256];

	for (size_t i = 0; i < PM_ARRAY_LEN(files); i++) {
		size_t at = make ? i : PM_ARRAY_LEN(files) - 1 - i;
		FILE *file;

		snprintf(whole, sizeof(whole), "%s/%s", path, files[at].path);
		if (!make) {
			remove(whole);
		} else if (!files[at].text) {
			if (mkdir(whole, 0700) < 0)
				abort();
		} else {
			file = fopen(whole, "w");
			if (!file || fprintf(file, "%s\n", files[at].text) < 0)
				abort();
			fclose(file);
		}
	}
}

static void remove_pmus(void)
{
	put(folder, false);
	rmdir(folder);
}

static const struct pm_event_sources *pmus(void)
{
	static struct pm_event_sources sources;

	if (!sources.devices) {
		if (!mkdtemp(folder))
			abort();
		put(folder, true);
		atexit(remove_pmus);
		sources.devices = folder;
	}
	return &sources;
}

/* ---- what must hold ------------------------------------------------------------------------ */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Whatever was understood must be understood again by its canonical name. */
static void check_again(const struct pm_event_spec *spec)
{
	struct pm_event_specs again = { 0 };
	const struct pm_event_spec *other;
	struct pm_error err;

	if (pm_event_specs_parse_from(pmus(), spec->name, &again, &err) < 0) {
		fprintf(stderr, "\"%s\", of \"%s\": %s\n", spec->name, spec->requested,
			err.text);
		abort();
	}
	assert(again.list.len == 1);
	other = again.list.data;
	assert(other->kind == spec->kind && other->type == spec->type);
	assert(other->config == spec->config && other->config1 == spec->config1);
	assert(other->config2 == spec->config2 && other->bp_type == spec->bp_type);
	assert(same_text(other->place.file, spec->place.file));
	assert(same_text(other->place.symbol, spec->place.symbol));
	assert(same_text(other->place.source, spec->place.source));
	assert(other->place.line == spec->place.line);
	assert(other->place.offset == spec->place.offset);
	assert(strcmp(other->name, spec->name) == 0);
	pm_event_specs_release(&again);
}

static void check_spec(const struct pm_event_specs *specs, size_t index)
{
	const struct pm_event_spec *spec = &specs->list.data[index];

	assert(spec->user || spec->kernel || spec->hypervisor);
	assert(!spec->explicit_kernel || spec->kernel);
	assert(spec->leader <= index);
	assert(specs->list.data[spec->leader].leader == spec->leader);
	assert(spec->precise <= 3 && (!spec->rate_given || spec->rate > 0));
	assert(memchr(spec->requested, '\0', sizeof(spec->requested)));
	if (strlen(spec->modifiers) > 0)
		assert(strstr(spec->requested, spec->modifiers) != NULL);
	/* `name=` may be anything. */
	if (!strstr(spec->requested, "name"))
		check_again(spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pm_event_specs specs = { 0 };
	pm_cpu_list cpus = { 0 };
	struct pm_error err = { 0 };
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (pm_event_specs_parse_from(pmus(), text, &specs, &err) == 0) {
		assert(specs.list.len > 0);
		for (size_t i = 0; i < specs.list.len && i < 64; i++)
			check_spec(&specs, i);
	} else {
		assert(err.code < 0 && err.text[0] != '\0');
		assert(specs.list.len == 0);
	}
	if (pm_cpu_list_parse(text, &cpus) == 0) {
		for (size_t i = 1; i < cpus.len; i++)
			assert(cpus.data[i] > cpus.data[i - 1]);
	}
	pm_cpu_list_release(&cpus);
	pm_event_specs_release(&specs);
	free(text);
	return 0;
}

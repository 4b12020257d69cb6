/* SPDX-License-Identifier: MIT */
/*
 * Firefox Profiler's processed format, version 61: the newest one whose stacks and frames
 * have the layout below; the viewer converts older versions. Each of our threads becomes
 * one thread per event, with all samples, their times and weights. Times are weighted in
 * milliseconds, other events by their counts. Blocked time is also written as a marker
 * from its start to its end.
 */
#include "firefox.h"

#include <string.h>

enum {
	VERSION = 61,
	GECKO_VERSION = 24, /* required, but not used */
};

#define NS_PER_MS 1000000
#define NS_PER_US 1000

static void firefox_release(struct pm_firefox *it)
{
	pm_export_release(&it->export);
	pm_export_order_release(&it->order);
	free(it->files);
	pm_strings_release(&it->strings);
	pm_strings_release(&it->sources);
	free(it->functions);
	pm_vec_release(&it->function_list);
	free(it->libs);
	pm_vec_release(&it->libs_list);
	free(it->frames);
	pm_vec_release(&it->frame_list);
	free(it->stacks);
	pm_str_release(&it->out);
	pm_str_release(&it->text);
}

/* ---- meta -------------------------------------------------------------------------------- */

static void put_entry(struct pm_firefox *it, const char *label, const char *text)
{
	if (!text || text[0] == '\0')
		return;
	pm_str_puts(&it->out, ",\n{\"label\":");
	pm_str_json(&it->out, label);
	pm_str_puts(&it->out, ",\"format\":\"string\",\"value\":");
	pm_str_printable(&it->text, text, strlen(text));
	pm_put_export_json(&it->out, &it->text);
	pm_str_puts(&it->out, "}");
}

/* Writes the rows for the panel about the profile. */
static void put_extra(struct pm_firefox *it)
{
	const struct pm_profile_info *info = &it->profile->info;
	const struct pm_export *export = &it->export;

	pm_str_puts(&it->out, "\"extra\":[{\"label\":\"Recording\",\"entries\":["
			      "{\"label\":\"Written by\",\"format\":\"string\","
			      "\"value\":\"pmreport " PM_VERSION "\"}");
	put_entry(it, "Recorded by pmrec", info->pmrec);
	put_entry(it, "Host", info->hostname);
	put_entry(it, "Kernel", info->kernel);
	for (uint32_t i = export->first; i < export->end; i++)
		put_entry(it, "Event", pm_export_event(export, i));
	for (uint32_t i = 0; i < export->notes.starts.len; i++)
		put_entry(it, "Note", pm_strings_get(&export->notes, i));
	pm_str_puts(&it->out, "]}]");
}

/* Writes the time between two samples of the first event, in ms. The graph has a gap
 * where a thread has no sample for much longer. */
static void put_sampling_interval(struct pm_firefox *it)
{
	const struct pm_profile_event *event = NULL;
	uint64_t ns = NS_PER_MS;

	if (it->export.first < it->export.end)
		event = &it->profile->events.data[it->export.first];
	if (event && event->by_frequency && event->rate > 0)
		ns = 1000000000 / event->rate;
	else if (event && pm_event_in_ns(event))
		ns = event->rate;
	pm_put_decimal(&it->out, ns > 0 ? ns : 1, NS_PER_MS);
}

static void put_meta(struct pm_firefox *it)
{
	const struct pm_profile_info *info = &it->profile->info;
	struct pm_str *out = &it->out;

	pm_str_puts(out, "{\"meta\":{\"interval\":");
	put_sampling_interval(it);
	pm_str_printf(out, ",\"startTime\":%lld,\"processType\":0,\"product\":",
		      (long long)pm_export_created(it->profile) * 1000);
	pm_put_export_command(&it->text, it->profile);
	if (it->text.len == 0)
		pm_str_puts(&it->text, "pmrec");
	pm_put_export_json(out, &it->text);
	pm_str_printf(out,
		      ",\"stackwalk\":1,\"version\":%d,\"preprocessedProfileVersion\":%d,"
		      "\"importedFrom\":\"pmrec\",\"oscpu\":",
		      GECKO_VERSION, VERSION);
	pm_str_json(out, pm_text_or(info->kernel, "Linux"));
	pm_str_puts(out, ",\"platform\":\"Linux\"");
	if (info->arch) {
		pm_str_puts(out, ",\"abi\":");
		pm_str_json(out, info->arch);
	}
	if (info->cpu_model) {
		pm_str_puts(out, ",\"CPUName\":");
		pm_str_json(out, info->cpu_model);
	}
	if (info->cpus > 0)
		pm_str_printf(out, ",\"logicalCPUs\":%u", info->cpus);
	pm_str_puts(
		out,
		",\n\"categories\":["
		"{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"Kernel\",\"color\":\"orange\","
		"\"subcategories\":[\"Other\"]},"
		"{\"name\":\"JIT\",\"color\":\"green\",\"subcategories\":[\"Other\"]}],\n"
		"\"markerSchema\":[],\"symbolicated\":true,"
		"\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,"
		"\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
		"\"threadCPUDelta\":\"µs\"},\n");
	put_extra(it);
	pm_str_puts(out, "},\n");
}

/* ---- threads ----------------------------------------------------------------------------- */

typedef void (*put_sample_fn)(struct pm_firefox *it, uint32_t sample);

static void put_sample_column(struct pm_firefox *it, const struct pm_export_run *run,
			      const char *key, put_sample_fn put)
{
	pm_str_puts(&it->out, ",\n\"");
	pm_str_puts(&it->out, key);
	pm_str_puts(&it->out, "\":[");
	for (size_t i = 0; i < run->len; i++) {
		if (i > 0)
			pm_str_putc(&it->out, ',');
		put(it, it->order.order.data[run->first + i]);
		pm_flush_some(&it->out, it->to);
	}
	pm_str_putc(&it->out, ']');
}

static void put_sample_stack(struct pm_firefox *it, uint32_t sample)
{
	pm_str_u64(&it->out, it->stacks[pm_export_cell(&it->export, sample)->stack] - 1);
}

static void put_time(struct pm_firefox *it, uint32_t sample)
{
	pm_put_decimal(&it->out, it->profile->samples.data[sample].time_ns, NS_PER_MS);
}

static void put_weight_ms(struct pm_firefox *it, uint32_t sample)
{
	pm_put_decimal(&it->out, it->profile->samples.data[sample].period, NS_PER_MS);
}

static void put_sample_weight(struct pm_firefox *it, uint32_t sample)
{
	pm_str_u64(&it->out, it->profile->samples.data[sample].period);
}

static void put_cpu_delta(struct pm_firefox *it, uint32_t sample)
{
	pm_put_decimal(&it->out, it->profile->samples.data[sample].period, NS_PER_US);
}

static void put_wait_start(struct pm_firefox *it, uint32_t sample)
{
	const struct pm_profile_sample *at = &it->profile->samples.data[sample];

	pm_put_decimal(&it->out, PM_SUB_OR_0(at->time_ns, at->period), NS_PER_MS);
}

static void put_sample_null(struct pm_firefox *it, uint32_t sample)
{
	pm_str_puts(&it->out, "null");
}

/* Writes the index of "blocked", which is the first string. */
static void put_sample_zero(struct pm_firefox *it, uint32_t sample)
{
	pm_str_putc(&it->out, '0');
}

/* Writes the phase 1: a marker with a start and an end. */
static void put_marker_phase(struct pm_firefox *it, uint32_t sample)
{
	pm_str_putc(&it->out, '1');
}

static void put_sample_table(struct pm_firefox *it, const struct pm_export_run *run,
			     bool blocked)
{
	bool in_ns = pm_event_in_ns(&it->profile->events.data[run->event]);

	pm_str_puts(&it->out, ",\n\"samples\":{\"weightType\":");
	pm_str_puts(&it->out, in_ns ? "\"tracing-ms\"" : "\"samples\"");
	put_sample_column(it, run, "stack", put_sample_stack);
	put_sample_column(it, run, "time", put_time);
	put_sample_column(it, run, "weight", in_ns ? put_weight_ms : put_sample_weight);
	if (in_ns && !blocked)
		put_sample_column(it, run, "threadCPUDelta", put_cpu_delta);
	pm_str_puts(&it->out, ",\n\"length\":");
	pm_str_u64(&it->out, run->len);
	pm_str_puts(&it->out, "}");
}

static void put_markers(struct pm_firefox *it, const struct pm_export_run *run,
			bool blocked)
{
	struct pm_export_run none = { 0 };

	if (!blocked)
		run = &none;
	pm_str_puts(&it->out, ",\n\"markers\":{\"length\":");
	pm_str_u64(&it->out, run->len);
	put_sample_column(it, run, "data", put_sample_null);
	put_sample_column(it, run, "name", put_sample_zero);
	put_sample_column(it, run, "startTime", put_wait_start);
	put_sample_column(it, run, "endTime", put_time);
	put_sample_column(it, run, "phase", put_marker_phase);
	put_sample_column(it, run, "category", put_sample_zero);
	pm_str_puts(&it->out, "}");
}

static void put_thread_id(struct pm_str *str, uint32_t id, bool text)
{
	if (id == PM_FILE_NONE)
		pm_str_puts(str, "\"unknown\"");
	else if (text)
		pm_str_printf(str, "\"%u\"", id);
	else
		pm_str_u64(str, id);
}

static void put_firefox_thread(struct pm_firefox *it, const struct pm_export_run *run)
{
	const struct pm_profile *profile = it->profile;
	const struct pm_profile_thread *thread = &profile->threads.data[run->thread];
	const struct pm_profile_process *of = &profile->processes.data[thread->process];
	const char *process = pm_text_or(of->title, of->comm);
	const struct pm_profile_event *event = &profile->events.data[run->event];
	bool first = run->event == it->export.first;
	bool blocked = pm_profile_is_blocked_time(event);

	pm_put_export_comm(&it->text, thread);
	if (!first)
		pm_str_printf(&it->text, " (%s)",
			      pm_export_event(&it->export, run->event));
	pm_str_puts(&it->out, "{\"processType\":\"default\",\"processStartupTime\":0,"
			      "\"processShutdownTime\":null,\"registerTime\":0,"
			      "\"unregisterTime\":null,\"pausedRanges\":[],\"name\":");
	pm_put_export_json(&it->out, &it->text);
	pm_str_puts(&it->out, ",\"isMainThread\":");
	pm_str_puts(&it->out, first && thread->pid == thread->tid ? "true" : "false");
	pm_str_puts(&it->out, ",\"processName\":");
	pm_str_printable(&it->text, process, strlen(process));
	pm_put_export_json(&it->out, &it->text);
	pm_str_puts(&it->out, ",\"pid\":");
	put_thread_id(&it->out, thread->pid, true);
	pm_str_puts(&it->out, ",\"tid\":");
	put_thread_id(&it->out, thread->tid, false);
	put_sample_table(it, run, blocked);
	put_markers(it, run, blocked);
	pm_str_puts(&it->out, "}");
}

static int firefox_init(struct pm_firefox *it)
{
	const struct pm_profile *profile = it->profile;

	it->files = pm_export_files(profile);
	it->functions = calloc(profile->functions.len + 1, sizeof(*it->functions));
	it->libs = calloc(profile->modules.len + 1, sizeof(*it->libs));
	it->frames = calloc(profile->frames.len + 1, sizeof(*it->frames));
	it->stacks = calloc(profile->stacks.len + 1, sizeof(*it->stacks));
	if (!it->files || !it->functions || !it->libs || !it->frames || !it->stacks)
		return -ENOMEM;
	pm_str_puts(&it->text, "blocked");
	pm_firefox_string(it);
	if (it->failed || pm_export_order_init(&it->order, &it->export) < 0)
		return -ENOMEM;
	return pm_firefox_number(it);
}

int pm_output_firefox(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	PM_CLEANUP(firefox_release)
	struct pm_firefox it = { .profile = report->profile, .to = to };
	int ret = pm_export_init(&it.export, report, err);

	if (ret < 0)
		return ret;
	if (firefox_init(&it) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	put_meta(&it);
	pm_firefox_put_libs(&it);
	pm_str_puts(&it.out, ",\n");
	pm_firefox_put_shared(&it);
	pm_str_puts(&it.out, ",\n\"threads\":[");
	for (size_t i = 0; i < it.order.runs.len && !it.failed; i++) {
		if (i > 0)
			pm_str_puts(&it.out, ",");
		pm_str_puts(&it.out, "\n");
		put_firefox_thread(&it, &it.order.runs.data[i]);
	}
	pm_str_puts(&it.out, "]}\n");
	if (it.failed)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return pm_flush_all(&it.out, to, err);
}

/* SPDX-License-Identifier: MIT */
#include "engine.h"

#include <linux/perf_event.h>
#include <string.h>

#include "engine-ptrace.h"
#include "go-targets.h"
#include "off-cpu.h"
#include "progress.h"
#include "record.h"

static bool is_denied(int error)
{
	return error == -EACCES || error == -EPERM || error == -ENOSYS;
}

/* Explains a denial for a process of another user: lowering perf_event_paranoid would not
 * help. */
static int explain_foreign(const struct pm_rec_session *session, int code,
			   struct pm_error *err)
{
	pid_t pid = code == -EACCES ? pm_targets_foreign(&session->targets) : 0;

	if (pid == 0)
		return code;
	pm_error_set(err, code,
		     "process %d belongs to another user, and only root may record it",
		     (int)pid);
	pm_error_fix(err, "sudo");
	return code;
}

static int open_perf(struct pm_rec_session *session, struct pm_error *err)
{
	const struct pm_rec_options *options = session->options;
	struct pm_perf_options perf = {
		.specs = options->specs.list.data,
		.specs_len = options->specs.list.len,
		.by_frequency = options->by_frequency,
		.rate = options->rate,
		.call_graph = options->call_graph,
		.stack_bytes = options->stack_bytes,
		.returns = options->call_graph == PM_CALL_GRAPH_DWARF &&
			   pm_rec_records_go(session),
		.branches = options->branches,
		.ring_pages = options->ring_pages,
		.ring_pages_explicit = options->ring_pages > 0,
		.pid = session->child.launch.pid,
		.switches = options->off_cpu,
		.no_inherit = options->targets.no_inherit,
		.per_task = options->per_task,
		.overwrite = options->overwrite,
		/* Events that are attached are enabled after everything else: no sample
		 * is older than the recording. */
		.begin_disabled = options->attach || options->delay_ms > 0 ||
				  options->wait_for_control,
	};
	int ret;

	if (options->lbr) {
		/* Only the addresses of a call are needed. An event of a task keeps its
		 * record of calls while other tasks run; an event of a CPU starts anew
		 * each time (arch/x86/events/intel/lbr.c, intel_pmu_lbr_sched_task()). */
		perf.branches = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK |
				PERF_SAMPLE_BRANCH_NO_CYCLES |
				PERF_SAMPLE_BRANCH_NO_FLAGS;
		perf.per_task = true;
	}
	pm_targets_fill(&session->targets, &perf);
	ret = pm_perf_open(&session->perf, &perf, err);
	if (is_denied(ret) && pm_rec_off_cpu_without_stacks(options))
		ret = pm_perf_open(&session->perf, &perf, err);
	if (ret < 0)
		return explain_foreign(session, ret, err);
	pm_perf_events(session->perf, &session->counts.events_len);
	session->counts.events =
		calloc(session->counts.events_len, sizeof(*session->counts.events));
	if (!session->counts.events ||
	    pm_rec_off_cpu_open(session, pm_rec_record_sample) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* Fails unless all events measure CPU time: the ptrace engine can replace only those. */
static int check_cpu_time(const struct pm_event_specs *specs, struct pm_error *err)
{
	static const char *const names[] = { "cycles", "cpu-clock", "task-clock" };
	const struct pm_event_spec *spec = &specs->list.data[0];
	bool known = specs->list.len == 1 && !spec->explicit_kernel;

	for (size_t i = 0; known && i < PM_ARRAY_LEN(names); i++)
		if (strcmp(spec->name, names[i]) == 0)
			return 0;
	pm_error_set(err, -EINVAL,
		     "--engine ptrace samples the CPU time of user space, and one event "
		     "only");
	pm_error_where(err, specs->list.data[specs->list.len - 1].requested, -1);
	pm_error_fix(err, "without -e, or -e cpu-clock");
	return -EINVAL;
}

/* Whether a requested feature is missing from the ptrace engine. If that engine was
 * requested, too, options-check.c has refused the combination. */
static bool needs_perf(const struct pm_rec_options *options)
{
	return options->call_graph == PM_CALL_GRAPH_FP || options->attach ||
	       options->branches || options->targets.no_inherit || options->per_task ||
	       options->off_cpu || options->overwrite || options->control ||
	       options->delay_ms > 0 || options->wait_for_control ||
	       options->duration_ns > 0 || options->max_bytes > 0 ||
	       options->max_samples > 0 || !options->by_frequency;
}

/* Appends to the remedy in @err the engine that needs no permission. */
static void offer_ptrace(const struct pm_rec_options *options, struct pm_error *err)
{
	char fix[PM_ERROR_FIX_MAX];

	snprintf(fix, sizeof(fix), "%s", err->fix);
	pm_error_fix(err, "%s%spmrec --engine ptrace -- %s%s", fix,
		     pm_text_if(fix[0], ", or: "), options->command[0],
		     pm_text_if(options->command[1], " ..."));
}

int pm_rec_engine_open(struct pm_rec_session *session, struct pm_error *err)
{
	const struct pm_rec_options *options = session->options;
	int ret;

	if (options->engine != PM_REC_ENGINE_PTRACE) {
		ret = open_perf(session, err);
		if (!is_denied(ret) || needs_perf(options) ||
		    check_cpu_time(&options->specs, NULL) < 0)
			return ret;
		if (options->engine == PM_REC_ENGINE_PERF) {
			offer_ptrace(options, err);
			return ret;
		}
		session->perf_denied = *err;
		*err = (struct pm_error){ 0 };
	}
	ret = check_cpu_time(&options->specs, err);
	if (ret < 0)
		return ret;
	return pm_rec_ptrace_open(session, err);
}

void pm_rec_engine_print(const struct pm_rec_session *session)
{
	size_t len;
	const struct pm_perf_event *events;
	struct pm_file_event event;

	if (session->ptrace) {
		pm_rec_ptrace_event(session, &event);
		fprintf(stderr, "pmrec: CPU time by ptrace at %llu Hz\n",
			(unsigned long long)event.rate);
		return;
	}
	events = pm_perf_events(session->perf, &len);
	for (size_t i = 0; i < len; i++)
		fprintf(stderr, "pmrec: event %s: %s%s%s%s, %s %llu%s\n",
			events[i].requested.requested, events[i].actual.name,
			pm_text_if(events[i].actual.modifiers[0], ":"),
			events[i].actual.modifiers,
			pm_text_if(events[i].kernel_dropped, " without the kernel"),
			events[i].by_frequency ? "at" : "every",
			(unsigned long long)events[i].rate,
			events[i].by_frequency ? " Hz" : " events");
	fprintf(stderr, "pmrec: buffers of %zu pages on each CPU\n",
		pm_perf_ring_pages(session->perf));
}

void pm_rec_engine_tell(struct pm_rec_session *session)
{
	const struct pm_error *denied = &session->perf_denied;
	const struct pm_rec_options *options = session->options;
	char text[PM_ERROR_TEXT_MAX + 64];

	for (size_t i = 0; i < options->probes.notes.len; i++)
		pm_rec_warn(session, options->probes.notes.data[i]);
	if (session->perf) {
		const struct pm_perf_notes *notes = pm_perf_notes(session->perf);

		for (size_t i = 0; i < notes->texts.len; i++)
			pm_rec_warn(session, notes->texts.data[i]);
		pm_rec_off_cpu_tell(session);
		return;
	}
	if (denied->code != 0) {
		snprintf(text, sizeof(text), "%s; ptrace samples instead", denied->text);
		pm_rec_warn(session, text);
	}
	if (options->rate_given && options->rate > PM_REC_PTRACE_HZ_MAX) {
		snprintf(text, sizeof(text),
			 "-F is lowered to %d Hz, the most that --engine ptrace does",
			 PM_REC_PTRACE_HZ_MAX);
		pm_rec_warn(session, text);
	}
	pm_file_write_note(session->writer,
			   &(struct pm_file_note){ .text = pm_rec_ptrace_note });
}

/* SPDX-License-Identifier: MIT */
#include "header.h"

#include <string.h>
#include <time.h>

#include "engine-ptrace.h"
#include "fields.h"
#include "off-cpu.h"

#ifndef PMREC_VERSION
#error "the build passes PMREC_VERSION"
#endif

static void spec_text(const struct pm_event_spec *spec, char *out, size_t size)
{
	snprintf(out, size, "%s%s%s", spec->name, spec->modifiers[0] ? ":" : "",
		 spec->modifiers);
}

static bool counts_ns(const struct pm_event_spec *spec)
{
	return strcmp(spec->name, "cpu-clock") == 0 ||
	       strcmp(spec->name, "task-clock") == 0;
}

/* Gets the user that the command or the processes run as. Returns false if there are
 * several. A later change by set-user-ID is not considered. */
static bool find_user(const struct pm_rec_session *session, uid_t *out)
{
	PM_CLEANUP(pm_user_release) struct pm_user user = { 0 };

	if (session->options->attach)
		return pm_targets_user(&session->targets, out);
	*out = geteuid();
	if (!session->options->user)
		return true;
	if (pm_user_find(session->options->user, &user, NULL) < 0)
		return false;
	*out = user.uid;
	return true;
}

int pm_rec_header_write(struct pm_rec_session *session)
{
	static const char *const call_graphs[] = { [PM_CALL_GRAPH_NONE] = "none",
						   [PM_CALL_GRAPH_FP] = "fp",
						   [PM_CALL_GRAPH_DWARF] = "dwarf" };
	const struct pm_rec_options *options = session->options;
	size_t len = 0;
	const struct pm_perf_event *events =
		session->perf ? pm_perf_events(session->perf, &len) : NULL;
	PM_AUTO_FREE struct pm_file_event *lines = calloc(len + 1, sizeof(*lines));
	PM_AUTO_FREE char(*actual)[PM_EVENT_NAME_MAX + 32] =
		calloc(len + 1, sizeof(*actual));
	struct pm_file_header header = { .version = PM_FILE_VERSION,
					 .pmrec = PMREC_VERSION,
					 .clock = "monotonic" };
	struct pm_host host;
	time_t now = time(NULL);
	struct tm utc;
	char created[32];

	if (!lines || !actual)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		spec_text(&events[i].actual, actual[i], sizeof(actual[i]));
		lines[i] = (struct pm_file_event){
			.id = (uint32_t)i,
			.name = events[i].actual.name,
			.requested = events[i].requested.requested,
			.actual = actual[i],
			.modifiers = events[i].actual.modifiers,
			.unit = counts_ns(&events[i].actual) ? "ns" : "events",
			.by_frequency = events[i].by_frequency,
			.rate = events[i].rate,
			.filter = events[i].actual.filter,
			.leader = pm_rec_fields_leader(events, i),
		};
		pm_rec_off_cpu_event(session, &lines[i]);
	}
	pm_host_read(&host);
	strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	header.created = created;
	header.host.hostname = host.names.nodename;
	header.host.kernel = host.names.release;
	header.host.arch = host.names.machine;
	if (host.cpu_model[0])
		header.host.cpu_model = host.cpu_model;
	else
		header.host.cpu_model = NULL;
	header.host.virt = host.virt[0] ? host.virt : NULL;
	if (host.running.boot_id[0])
		header.host.boot_id = host.running.boot_id;
	else
		header.host.boot_id = NULL;
	header.host.cpus = host.cpus;
	header.command = (const char *const *)options->command;
	header.target = session->targets.text;
	header.uid_known = find_user(session, &header.uid);
	while (options->command && !options->attach &&
	       options->command[header.command_len])
		header.command_len++;
	if (session->ptrace)
		pm_rec_ptrace_event(session, &lines[0]);
	header.events = lines;
	header.events_len = session->ptrace ? 1 : len;
	if (options->lbr)
		header.options.call_graph = "lbr";
	else
		header.options.call_graph = call_graphs[options->call_graph];
	if (options->call_graph == PM_CALL_GRAPH_DWARF) {
		if (session->ptrace)
			header.options.stack_bytes = pm_rec_ptrace_stack_bytes(session);
		else
			header.options.stack_bytes = options->stack_bytes;
	}
	if (session->perf)
		header.options.ring_bytes = (uint64_t)pm_perf_ring_pages(session->perf) *
					    (uint64_t)sysconf(_SC_PAGESIZE);
	return pm_file_write_header(session->writer, &header);
}

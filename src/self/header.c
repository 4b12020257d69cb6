/* SPDX-License-Identifier: MIT */
/* Writes the header, the notes and the footer of the file. */
#include <string.h>
#include <time.h>

#include "clock.h"
#include "pm/run.h"
#include "recording-internal.h"

#ifndef PM_VERSION
#error "the build passes PM_VERSION"
#endif

enum {
	ARGS_MAX = 256,
	COMMAND_BYTES_MAX = 1 << 16,
};

struct command {
	char text[COMMAND_BYTES_MAX];
	const char *args[ARGS_MAX];
	size_t len;
};

/* Reads the command line with which the program was started, or with which the program
 * has overwritten it. */
static void read_command(struct command *out)
{
	PM_AUTO_FCLOSE FILE *file = fopen("/proc/self/cmdline", "re");
	size_t len = 0;

	if (file)
		len = fread(out->text, 1, sizeof(out->text) - 1, file);
	out->len = 0;
	out->text[len] = '\0';
	for (size_t i = 0; i < len && out->len < ARGS_MAX; i += strlen(out->text + i) + 1)
		out->args[out->len++] = out->text + i;
	if (out->len == 0)
		out->args[out->len++] = program_invocation_short_name;
}

void pm_self_note(struct pm_self_recording *recording, const char *text)
{
	pm_file_write_note(recording->writer, &(struct pm_file_note){ .text = text });
}

int pm_self_write_header(struct pm_self_recording *recording)
{
	const struct pm_self_engine *engine = recording->engine;
	PM_AUTO_FREE struct command *command = malloc(sizeof(*command));
	bool stacks = recording->settings->call_graph != PMSELF_CALL_GRAPH_NONE;
	struct pm_file_event event;
	struct pm_file_header header = { .version = PM_FILE_VERSION,
					 .pmrec = PM_VERSION,
					 .clock = "monotonic",
					 .events = &event,
					 .events_len = 1 };
	struct pm_host host;
	time_t now = time(NULL);
	struct tm utc;
	char created[32];

	if (!command)
		return -ENOMEM;
	read_command(command);
	engine->type->event(engine, &event);
	pm_host_read(&host);
	strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	header.created = created;
	header.host.hostname = host.names.nodename;
	header.host.kernel = host.names.release;
	header.host.arch = host.names.machine;
	if (host.cpu_model[0])
		header.host.cpu_model = host.cpu_model;
	if (host.virt[0])
		header.host.virt = host.virt;
	if (host.running.boot_id[0])
		header.host.boot_id = host.running.boot_id;
	header.host.cpus = host.cpus;
	header.uid_known = true;
	header.uid = geteuid();
	header.command = command->args;
	header.command_len = command->len;
	if (stacks)
		header.options.call_graph = "dwarf";
	else
		header.options.call_graph = "none";
	header.options.stack_bytes = engine->type->stack_bytes(engine);
	header.options.ring_bytes = engine->type->ring_bytes(engine);
	return pm_file_write_header(recording->writer, &header);
}

int pm_self_write_footer(struct pm_self_recording *recording, uint64_t end_ns)
{
	struct pm_file_count stops[PM_CHAIN_STOP_COUNT];
	struct pm_file_footer_event event = { .samples = recording->samples,
					      .period = recording->period };
	uint64_t cpu_ns = pm_self_cpu_ns();
	struct pm_file_footer footer = {
		.samples = recording->samples,
		.throttled = recording->throttled,
		.truncated = recording->truncated,
		.stitched = recording->stitched,
		.stops = stops,
		.duration_ns = end_ns - recording->begin_ns,
		/* The two clocks may have been read at a greater distance in time at the
		 * start than now. */
		.cpu_ns = PM_SUB_OR_0(cpu_ns, recording->begin_cpu_ns),
		.cpu_known = recording->settings->tid == 0,
		.events = &event,
		.events_len = 1,
	};

	event.lost_known =
		recording->engine->type->lost(recording->engine, &event.lost) == 0 &&
		event.lost <= INT64_MAX;
	/* If the kernel has a count, it is the true one, but it cannot be less than the
	 * records reported. */
	if (event.lost_known && event.lost > recording->lost)
		recording->lost = event.lost;
	footer.lost = recording->lost;
	for (uint32_t i = 0; i < PM_CHAIN_STOP_COUNT; i++)
		if (recording->stops[i] > 0)
			stops[footer.stops_len++] =
				(struct pm_file_count){ .name = pm_chain_stop_name(i),
							.count = recording->stops[i] };
	return pm_file_write_footer(recording->writer, &footer);
}

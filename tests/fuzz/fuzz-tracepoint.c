/* SPDX-License-Identifier: MIT */
/* Bytes are what a sample says, read by a description that has every kind of field, and by
 * those of probes. What is found is read to its end, so that a sanitizer sees where it lies. */
#include <string.h>

#include "src/perf/tracepoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char format[] =
	"name: fuzz\nID: 1\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc char[] file;\toffset:16;\tsize:4;\tsigned:0;\n"
	"\tfield:__rel_loc char[] near;\toffset:20;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc s16[] small;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:__rel_loc u64[] large;\toffset:28;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc cpumask_t mask;\toffset:32;\tsize:4;\tsigned:0;\n"
	"\tfield:__u8 mac[6];\toffset:36;\tsize:6;\tsigned:0;\n"
	"\tfield:s8 tiny;\toffset:42;\tsize:1;\tsigned:1;\n"
	"\tfield:short pair[2];\toffset:44;\tsize:4;\tsigned:1;\n"
	"\tfield:s64 huge;\toffset:48;\tsize:8;\tsigned:1;\n\n"
	"print fmt: \"\"\n";

static void decode(const struct pm_tracepoint *of, const uint8_t *data, size_t size,
		   struct pm_event_fields *fields)
{
	size_t letters = 0;

	if (pm_tracepoint_fields(of, data, size, fields) < 0)
		return;
	for (size_t i = 0; i < fields->list.len; i++)
		if (fields->list.data[i].kind == PM_EVENT_FIELD_TEXT)
			letters += strlen(fields->list.data[i].text);
	/* Hexadecimal has two letters a byte, numbers up to four; see TEXT_PER_BYTE. */
	if (letters > fields->texts.len || fields->texts.len > 4 * (size + 64) + 64)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pm_event_spec entry = { .kind = PM_EVENT_UPROBE };
	const struct pm_event_spec on_return = { .kind = PM_EVENT_KPROBE, .config = 1 };
	static struct pm_tracepoint *of[3];
	static struct pm_event_fields fields;

	if (!of[0] && (pm_tracepoint_parse(&of[0], "fuzz", 1, format, sizeof(format) - 1,
					   NULL) < 0 ||
		       pm_tracepoint_new(&of[1], &entry, NULL) < 0 ||
		       pm_tracepoint_new(&of[2], &on_return, NULL) < 0))
		abort();
	for (size_t i = 0; i < PM_ARRAY_LEN(of); i++)
		decode(of[i], data, size, &fields);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The reader over any bytes. Bytes that begin with neither a header nor like a magic (of
 * zstd, of perf.data) are read behind a good header, so that the fuzzer need not find one.
 * Then both parsers over each line.
 */
#include "tests/file-compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char header[] =
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0\","
	"\"created\":\"\",\"clock\":\"monotonic\",\"host\":{\"cpus\":1},\"command\":[],"
	"\"events\":[{\"id\":0,\"name\":\"c\",\"requested\":\"c\",\"actual\":\"c\","
	"\"modifiers\":\"\",\"unit\":\"ns\",\"freq\":1}],"
	"\"options\":{\"call_graph\":\"fp\",\"stack_bytes\":0,\"ring_bytes\":0}}\n"
	"{\"type\":\"module\",\"id\":0,\"path\":\"a\",\"kind\":\"file\"}\n"
	"{\"type\":\"frame\",\"id\":0,\"module\":0,\"address\":\"0x1\",\"how\":\"ip\"}\n"
	"{\"type\":\"stack\",\"id\":0,\"parent\":null,\"frames\":[0,0]}\n";

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

/* What the contract promises of every record, whatever the file says. */
static void check_record(const struct pm_file_record *record, uint32_t *frames,
			 uint32_t *stacks)
{
	if (record->type == PM_FILE_FRAME)
		CHECK(record->frame.id == (*frames)++ && record->frame.how);
	if (record->type == PM_FILE_STACK)
		CHECK(record->stack.id == (*stacks)++ && record->stack.frame < *frames &&
		      (record->stack.parent == PM_FILE_NONE ||
		       record->stack.parent < record->stack.id));
	if (record->type == PM_FILE_SAMPLE)
		CHECK(record->sample.stack == PM_FILE_NONE ||
		      record->sample.stack < *stacks);
	if (record->type == PM_FILE_SYMBOL)
		CHECK(record->symbol.frame < *frames &&
		      record->symbol.functions_len >= 1 && record->symbol.functions);
	if (record->type == PM_FILE_NOTE)
		CHECK(strlen(record->note.text) < PM_FILE_LINE_MAX);
}

static void read_all(const void *data, size_t size)
{
	struct pm_file_reader *reader;
	struct pm_file_record record;
	struct pm_error err = { 0 };
	uint32_t frames = 0, stacks = 0;
	int result = pm_file_reader_open_memory(&reader, data, size, &err);

	CHECK(result == 0 || (result == err.code && err.text[0]));
	if (result < 0)
		return;
	while ((result = pm_file_reader_next(reader, &record, &err)) > 0)
		check_record(&record, &frames, &stacks);
	CHECK(result == 0 || (result == err.code && err.text[0]));
	CHECK(pm_file_reader_next(reader, &record, NULL) == result);
	pm_file_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool whole = size > 0 && (data[0] == 0x28 || data[0] == 'P' ||
				  (size > 15 && memcmp(data, header, 15) == 0));
	size_t before = whole ? 0 : sizeof(header) - 1;
	PM_AUTO_FREE char *file = malloc(before + size + 1);

	CHECK(file);
	memcpy(file, header, before);
	if (size > 0)
		memcpy(file + before, data, size);
	read_all(file, before + size);
	for (size_t i = 0; i < size;) {
		const uint8_t *newline = memchr(data + i, '\n', size - i);
		size_t len = newline ? (size_t)(newline - data) - i : size - i;

		CHECK(parsers_agree((const char *)data + i, len, NULL));
		i += len + 1;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "pm/file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

/* ---- a folder of its own for each test ----------------------------------------------- */

struct folder {
	char path[64];
	char file[96];
};

static int folder_setup(void **state)
{
	struct folder *folder = calloc(1, sizeof(*folder));

	if (!folder)
		return -1;
	snprintf(folder->path, sizeof(folder->path), "/tmp/pm-file-XXXXXX");
	if (!mkdtemp(folder->path))
		return -1;
	snprintf(folder->file, sizeof(folder->file), "%s/s.json", folder->path);
	*state = folder;
	return 0;
}

static int folder_teardown(void **state)
{
	struct folder *folder = *state;
	static const char *const names[] = { "s.json",     "s.json.zst",
					     "s.json.old", "s.json.partial",
					     "other",      "link",
					     "fifo" };
	char path[128];

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder->path, names[i]);
		unlink(path);
	}
	rmdir(folder->path);
	free(folder);
	return 0;
}

static const char *in_folder(const struct folder *folder, const char *name, char *path)
{
	snprintf(path, 128, "%s/%s", folder->path, name);
	return path;
}

static char *slurp(const char *path)
{
	PM_AUTO_FCLOSE FILE *file = fopen(path, "rbe");
	char *text = calloc(1, 1 << 20);

	assert_non_null(file);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
	return text;
}

static void put(const char *path, const char *text)
{
	PM_AUTO_FCLOSE FILE *file = fopen(path, "wbe");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
}

/* ---- lines --------------------------------------------------------------------------- */

static void write_header(struct pm_file_writer *writer)
{
	static const char *const command[] = { "cc", "-c", "a\tb\".c" };
	const struct pm_file_event events[] = {
		{ 0, "cpu-clock", "cycles:u", "cpu-clock:u", "u", "ns", true, 1000, NULL,
		  0 },
		{ 1, "page-faults", "page-faults", "page-faults", "", "events", false, 1,
		  NULL, 1 },
	};
	const struct pm_file_header header = {
		.version = 1,
		.pmrec = "0.1.0",
		.created = "2024-05-06T07:08:09Z",
		.clock = "monotonic",
		.host = { .hostname = "h", .arch = "x86_64", .cpus = 2 },
		.command = command,
		.command_len = 3,
		.events = events,
		.events_len = 2,
		.options = { "dwarf", 65528, 1 << 20 },
	};

	assert_int_equal(pm_file_write_header(writer, &header), 0);
}

static const char header_line[] =
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0.1.0\","
	"\"created\":\"2024-05-06T07:08:09Z\",\"clock\":\"monotonic\","
	"\"host\":{\"hostname\":\"h\",\"kernel\":null,\"arch\":\"x86_64\",\"cpus\":2,"
	"\"cpu_model\":null,\"virt\":null},\"command\":[\"cc\",\"-c\","
	"\"a\\u0009b\\\".c\"],\"events\":[{\"id\":0,\"name\":\"cpu-clock\","
	"\"requested\":\"cycles:u\",\"actual\":\"cpu-clock:u\",\"modifiers\":\"u\","
	"\"unit\":\"ns\",\"freq\":1000},{\"id\":1,\"name\":\"page-faults\","
	"\"requested\":\"page-faults\",\"actual\":\"page-faults\",\"modifiers\":\"\","
	"\"unit\":\"events\",\"period\":1}],\"options\":{\"call_graph\":\"dwarf\","
	"\"stack_bytes\":65528,\"ring_bytes\":1048576}}\n";

/* No command, but what was recorded. */
static void target_instead_of_command(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *writer;
	const struct pm_file_header header = {
		.version = 1,
		.pmrec = "0.1.0",
		.created = "2024-05-06T07:08:09Z",
		.clock = "monotonic",
		.target = "-G a\"b",
		.options = { "none", 0, 0 },
	};
	char *text;

	assert_int_equal(pm_file_writer_open(&writer, folder->file, NULL), 0);
	assert_int_equal(pm_file_write_header(writer, &header), 0);
	assert_int_equal(pm_file_writer_close(writer, NULL), 0);
	text = slurp(folder->file);
	assert_non_null(
		strstr(text, "\"command\":[],\"target\":\"-G a\\\"b\",\"events\":[]"));
	free(text);
}

static struct pm_file_writer *open_with_header(const char *path)
{
	struct pm_file_writer *writer = NULL;

	assert_int_equal(pm_file_writer_open(&writer, path, NULL), 0);
	write_header(writer);
	return writer;
}

static void write_module(struct pm_file_writer *writer, uint32_t id)
{
	const struct pm_file_module module = { id, "/bin/\xff", NULL, "file" };

	assert_int_equal(pm_file_write_module(writer, &module), 0);
}

static uint32_t frame(struct pm_file_writer *writer, uint64_t address)
{
	uint32_t id = 12345;

	assert_int_equal(pm_file_intern_frame(writer, 0, address, "cfi", &id), 0);
	return id;
}

static uint32_t stack(struct pm_file_writer *writer, uint32_t parent, uint32_t of)
{
	uint32_t id = 12345;

	assert_int_equal(pm_file_intern_stack(writer, parent, of, &id), 0);
	return id;
}

static int sample(struct pm_file_writer *writer, uint64_t time, uint32_t of)
{
	const struct pm_file_sample record = {
		.time = time, .pid = 7, .tid = 8, .cpu = 1, .period = 1000, .stack = of
	};

	return pm_file_write_sample(writer, &record);
}

/* What the file holds after the header. Closes the writer. */
static char *body(struct pm_file_writer *writer, const char *path)
{
	struct pm_error err = { 0 };
	char *text;

	assert_int_equal(pm_file_writer_close(writer, &err), 0);
	text = slurp(path);
	assert_memory_equal(text, header_line, strlen(header_line));
	memmove(text, text + strlen(header_line), strlen(text) - strlen(header_line) + 1);
	return text;
}

static void every_type_has_its_form(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *writer = open_with_header(folder->file);
	const struct pm_file_thread thread = { 7, 8, "cc\n", 99 };
	const struct pm_file_thread gone = { PM_FILE_NONE, PM_FILE_NONE, "", 100 };
	const struct pm_file_sample unknown = { .time = INT64_MAX,
						.pid = PM_FILE_NONE,
						.tid = PM_FILE_NONE,
						.cpu = PM_FILE_NONE,
						.event = 1,
						.stack = PM_FILE_NONE,
						.stop = "no-memory" };
	const struct pm_file_function functions[] = { { "inner", "a.c", 12 },
						      { "outer<int>", NULL, 0 },
						      { .start = 0xabc0 },
						      { .name = "f", .start = 1 } };
	const struct pm_file_symbol symbol = { 0, functions, 4 };
	const struct pm_file_lost lost = { 5, 1, 17 };
	const struct pm_file_note note = { "cycles became cpu-clock" };
	const struct pm_file_title title = { 7, "cc: one\033", 101 };
	const struct pm_file_title no_title = { 7, NULL, 102 };
	const struct pm_file_count stops[] = { { "root", 1 }, { "no-memory", 1 } };
	struct pm_file_footer_event events[] = {
		{ 1, 1000, 17, true, true, 18003, 3 },
		{ .samples = 1 },
	};
	const struct pm_file_footer footer = {
		.samples = 2,
		.lost = 17,
		.throttled = 3,
		.truncated = 4,
		.stitched = 3,
		.stops = stops,
		.stops_len = 2,
		.duration_ns = 123,
		.cpu_ns = 45,
		.cpu_known = true,
		.signalled = true,
		.exit = 9,
		.events = events,
		.events_len = 2,
	};
	PM_AUTO_FREE char *text = NULL;
	uint32_t id;

	write_module(writer, 0);
	assert_int_equal(pm_file_write_thread(writer, &thread), 0);
	assert_int_equal(pm_file_write_thread(writer, &gone), 0);
	assert_int_equal(
		sample(writer, 1, stack(writer, PM_FILE_NONE, frame(writer, 16))), 0);
	assert_int_equal(
		pm_file_intern_frame(writer, PM_FILE_NONE, UINT64_MAX, "jit", &id), 0);
	assert_int_equal(pm_file_write_sample(writer, &unknown), 0);
	assert_int_equal(pm_file_write_lost(writer, &lost), 0);
	assert_int_equal(pm_file_write_symbol(writer, &symbol), 0);
	assert_int_equal(pm_file_write_note(writer, &note), 0);
	assert_int_equal(pm_file_write_title(writer, &title), 0);
	assert_int_equal(pm_file_write_title(writer, &no_title), 0);
	assert_int_equal(pm_file_write_footer(writer, &footer), 0);
	text = body(writer, folder->file);
	assert_string_equal(
		text,
		"{\"type\":\"module\",\"id\":0,\"path\":\"/bin/\xef\xbf\xbd\","
		"\"build_id\":null,\"kind\":\"file\"}\n"
		"{\"type\":\"thread\",\"pid\":7,\"tid\":8,\"comm\":\"cc\\u000a\","
		"\"time\":99}\n"
		"{\"type\":\"thread\",\"pid\":null,\"tid\":null,\"comm\":\"\","
		"\"time\":100}\n"
		"{\"type\":\"frame\",\"id\":0,\"module\":0,\"address\":\"0x10\","
		"\"how\":\"cfi\"}\n"
		"{\"type\":\"stack\",\"id\":0,\"parent\":null,\"frames\":[0]}\n"
		"{\"type\":\"sample\",\"time\":1,\"pid\":7,\"tid\":8,\"cpu\":1,"
		"\"event\":0,\"period\":1000,\"stack\":0}\n"
		"{\"type\":\"frame\",\"id\":1,\"module\":null,"
		"\"address\":\"0xffffffffffffffff\",\"how\":\"jit\"}\n"
		"{\"type\":\"sample\",\"time\":9223372036854775807,\"pid\":null,"
		"\"tid\":null,\"cpu\":null,\"event\":1,\"period\":0,\"stack\":null,"
		"\"stop\":\"no-memory\"}\n"
		"{\"type\":\"lost\",\"time\":5,\"cpu\":1,\"count\":17}\n"
		"{\"type\":\"symbol\",\"frame\":0,\"functions\":[{\"name\":\"inner\","
		"\"file\":\"a.c\",\"line\":12},{\"name\":\"outer<int>\"},"
		"{\"name\":null,\"start\":\"0xabc0\"},{\"name\":\"f\"}]}\n"
		"{\"type\":\"note\",\"text\":\"cycles became cpu-clock\"}\n"
		"{\"type\":\"title\",\"pid\":7,\"time\":101,\"text\":\"cc: one\\u001b\"}\n"
		"{\"type\":\"title\",\"pid\":7,\"time\":102,\"text\":null}\n"
		"{\"type\":\"footer\",\"samples\":2,\"lost\":17,\"throttled\":3,"
		"\"truncated\":4,\"stitched\":3,\"stops\":{\"root\":1,\"no-memory\":1},"
		"\"duration_ns\":123,\"cpu_ns\":45,\"exit\":{\"signal\":9},"
		"\"events\":[{\"id\":0,\"samples\":1,\"period\":1000,\"lost\":17,"
		"\"counted\":18003,\"others\":3},"
		"{\"id\":1,\"samples\":1,\"period\":0,\"lost\":null}]}\n");
}

static void equal_things_have_one_id(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *writer = open_with_header(folder->file);
	char how[] = "cfi"; /* equal text, other place */
	const struct pm_file_frame *frames;
	uint32_t id;
	size_t len;

	write_module(writer, 0);
	write_module(writer, 1);
	assert_int_equal(frame(writer, 1), 0);
	assert_int_equal(frame(writer, 2), 1);
	assert_int_equal(frame(writer, 1), 0);
	assert_int_equal(pm_file_intern_frame(writer, 0, 1, how, &id), 0);
	assert_int_equal(id, 0);
	assert_int_equal(pm_file_intern_frame(writer, 0, 1, "ip", &id), 0);
	assert_int_equal(id, 2);
	assert_int_equal(pm_file_intern_frame(writer, 1, 1, "cfi", &id), 0);
	assert_int_equal(id, 3);
	assert_int_equal(stack(writer, PM_FILE_NONE, 0), 0);
	assert_int_equal(stack(writer, 0, 0), 1);
	assert_int_equal(stack(writer, PM_FILE_NONE, 0), 0);
	assert_int_equal(stack(writer, 0, 0), 1);
	frames = pm_file_writer_frames(writer, &len);
	assert_int_equal(len, 4);
	assert_int_equal(frames[3].id, 3);
	assert_int_equal(frames[3].module, 1);
	assert_int_equal(frames[1].address, 2);
	pm_file_writer_close(writer, NULL);
}

/* Far more than the tables begin with: ids stay what they were while they grow. */
static void ids_survive_growth(void **state)
{
	enum {
		MANY = 50000
	};
	struct folder *folder = *state;
	struct pm_file_writer *writer = open_with_header(folder->file);

	write_module(writer, 0);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(frame(writer, i * 16), i);
		assert_int_equal(stack(writer, i / 2 ? i / 2 - 1 : PM_FILE_NONE, i), i);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(frame(writer, i * 16), i);
		assert_int_equal(stack(writer, i / 2 ? i / 2 - 1 : PM_FILE_NONE, i), i);
	}
	pm_file_writer_close(writer, NULL);
}

static void new_nodes_in_a_row_are_one_line(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *writer = open_with_header(folder->file);
	PM_AUTO_FREE char *text = NULL;
	uint32_t f[4], at;

	write_module(writer, 0);
	for (uint32_t i = 0; i < 3; i++)
		f[i] = frame(writer, i);
	at = stack(writer, PM_FILE_NONE, f[0]);
	at = stack(writer, at, f[1]);
	at = stack(writer, at, f[2]);
	f[3] = frame(writer, 3); /* a frame amid a run comes before its line */
	at = stack(writer, at, f[3]);
	assert_int_equal(sample(writer, 1, at), 0);
	/* A branch off the middle, then one off another place: two lines. */
	assert_int_equal(stack(writer, 1, f[1]), 4);
	assert_int_equal(stack(writer, 0, f[0]), 5);
	assert_int_equal(pm_file_writer_flush(writer), 0);
	assert_int_equal(stack(writer, 5, f[0]), 6); /* would go on, but was flushed */
	text = body(writer, folder->file);
	assert_string_equal(strstr(text, "{\"type\":\"frame\",\"id\":3"),
			    "{\"type\":\"frame\",\"id\":3,\"module\":0,"
			    "\"address\":\"0x3\",\"how\":\"cfi\"}\n"
			    "{\"type\":\"stack\",\"id\":0,\"parent\":null,"
			    "\"frames\":[0,1,2,3]}\n"
			    "{\"type\":\"sample\",\"time\":1,\"pid\":7,\"tid\":8,"
			    "\"cpu\":1,\"event\":0,\"period\":1000,\"stack\":3}\n"
			    "{\"type\":\"stack\",\"id\":4,\"parent\":1,"
			    "\"frames\":[1]}\n"
			    "{\"type\":\"stack\",\"id\":5,\"parent\":0,"
			    "\"frames\":[0]}\n"
			    "{\"type\":\"stack\",\"id\":6,\"parent\":5,"
			    "\"frames\":[0]}\n");
}

static void an_endless_stack_is_written_in_pieces(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *writer = open_with_header(folder->file);
	PM_AUTO_FREE char *text = NULL;
	uint32_t at = PM_FILE_NONE;

	write_module(writer, 0);
	frame(writer, 1);
	for (uint32_t i = 0; i < 5000; i++)
		at = stack(writer, at, 0);
	assert_int_equal(at, 4999);
	text = body(writer, folder->file);
	assert_non_null(strstr(text, "{\"type\":\"stack\",\"id\":0,\"parent\":null,"));
	assert_non_null(strstr(text, "{\"type\":\"stack\",\"id\":4096,\"parent\":4095,"));
}

/* What explains a clock that does not come to the CPU time, behind the events. */
static void the_evidence_of_a_clock_is_by_cpu(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *writer = NULL;
	const struct pm_file_clock_cpu cpus[] = { { .event = 0,
						    .cpu = 1,
						    .samples = 792,
						    .period = 530475264,
						    .longer = 7,
						    .late = 3,
						    .late_ns = 900000,
						    .reader_runs = 30,
						    .reader_ns = 12000000 },
						  { .cpu = 3 } };
	struct pm_file_footer footer = { .clock = cpus, .clock_len = 2 };
	const struct pm_file_clock_cpu wrong = { .late_ns = UINT64_MAX };
	struct pm_file_footer large = { .clock = &wrong, .clock_len = 1 };
	PM_AUTO_FREE char *text = NULL;

	footer.stolen_known = true;
	footer.stolen_ns = 20000000;
	footer.stolen_step_ns = 10000000;
	assert_int_equal(pm_file_writer_open(&writer, folder->file, NULL), 0);
	write_header(writer);
	assert_int_equal(pm_file_write_footer(writer, &large), -ERANGE);
	assert_int_equal(pm_file_write_footer(writer, &footer), 0);
	text = body(writer, folder->file);
	assert_string_equal(
		text,
		"{\"type\":\"footer\",\"samples\":0,\"lost\":0,\"throttled\":0,"
		"\"truncated\":0,\"stitched\":0,\"stops\":{},"
		"\"duration_ns\":0,\"cpu_ns\":null,\"exit\":null,\"events\":[],"
		"\"clock\":{\"stolen_ns\":20000000,\"stolen_step_ns\":10000000,\"cpus\":["
		"{\"event\":0,\"cpu\":1,\"samples\":792,\"period\":530475264,"
		"\"longer\":7,\"late\":3,\"late_ns\":900000,\"reader_runs\":30,"
		"\"reader_ns\":12000000},"
		"{\"event\":0,\"cpu\":3,\"samples\":0,\"period\":0,\"longer\":0,\"late\":0,"
		"\"late_ns\":0,\"reader_runs\":0,\"reader_ns\":0}]}}\n");
}

static void what_no_reader_takes_is_not_written(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *writer = NULL;
	const struct pm_file_footer footer = { .exited = true };
	const struct pm_file_header newer = { .version = 2 };
	const struct pm_file_module module = { 0, "a", NULL, "file" };
	const struct pm_file_note note = { NULL };
	const struct pm_file_title nobody = { .pid = PM_FILE_NONE, .text = "t" };
	const struct pm_file_title late = { .time = UINT64_MAX, .text = "t" };
	const struct pm_file_count twice[] = { { "root", 1 }, { "root", 2 } };
	const struct pm_file_footer twins = { .stops = twice, .stops_len = 2 };
	const struct pm_file_symbol symbol = { 0, NULL, 0 };
	const struct pm_file_lost lost = { .count = UINT64_MAX };
	PM_AUTO_FREE char *text = NULL;
	uint32_t id = 77;

	assert_int_equal(pm_file_writer_open(&writer, folder->file, NULL), 0);
	assert_int_equal(pm_file_write_module(writer, &module), -EINVAL);
	assert_int_equal(pm_file_write_header(writer, &newer), -EINVAL);
	write_header(writer);
	assert_int_equal(pm_file_intern_frame(writer, 0, 1, "ip", &id), -EINVAL);
	assert_int_equal(pm_file_intern_stack(writer, PM_FILE_NONE, 0, &id), -EINVAL);
	assert_int_equal(id, 77);
	write_module(writer, 0);
	assert_int_equal(pm_file_write_module(writer, &module), -EINVAL);
	assert_int_equal(pm_file_intern_frame(writer, 0, 1, NULL, &id), -EINVAL);
	frame(writer, 1);
	assert_int_equal(pm_file_intern_stack(writer, 0, 0, &id), -EINVAL);
	assert_int_equal(sample(writer, 1, 0), -EINVAL);
	assert_int_equal(sample(writer, (uint64_t)INT64_MAX + 1, PM_FILE_NONE), -ERANGE);
	assert_int_equal(pm_file_write_note(writer, &note), -EINVAL);
	assert_int_equal(pm_file_write_title(writer, &nobody), -EINVAL);
	assert_int_equal(pm_file_write_title(writer, &late), -ERANGE);
	assert_int_equal(pm_file_write_symbol(writer, &symbol), -EINVAL);
	assert_int_equal(pm_file_write_lost(writer, &lost), -ERANGE);
	assert_int_equal(pm_file_write_footer(writer, &twins), -EINVAL);
	assert_int_equal(pm_file_write_footer(writer, &footer), 0);
	assert_int_equal(pm_file_write_footer(writer, &footer), -EINVAL);
	assert_int_equal(sample(writer, 1, PM_FILE_NONE), -EINVAL);
	text = body(writer, folder->file);
	assert_string_equal(
		text, "{\"type\":\"module\",\"id\":0,\"path\":\"/bin/\xef\xbf\xbd\","
		      "\"build_id\":null,\"kind\":\"file\"}\n"
		      "{\"type\":\"frame\",\"id\":0,\"module\":0,\"address\":\"0x1\","
		      "\"how\":\"cfi\"}\n"
		      "{\"type\":\"footer\",\"samples\":0,\"lost\":0,\"throttled\":0,"
		      "\"truncated\":0,\"stitched\":0,\"stops\":{},"
		      "\"duration_ns\":0,\"cpu_ns\":null,"
		      "\"exit\":{\"code\":0},\"events\":[]}\n");
}

static void flush_hands_over_everything(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *writer = open_with_header(folder->file);
	PM_AUTO_FREE char *text = NULL;

	assert_int_equal(pm_file_writer_bytes(writer), 0);
	assert_int_equal(pm_file_writer_flush(writer), 0);
	text = slurp(pm_file_writer_place(writer));
	assert_string_equal(text, header_line);
	assert_int_equal(pm_file_writer_bytes(writer), strlen(header_line));
	pm_file_writer_close(writer, NULL);
}

/* ---- where it is written ------------------------------------------------------------- */

static struct pm_file_writer *open_with_sample(const char *path)
{
	struct pm_file_writer *writer = open_with_header(path);

	assert_int_equal(sample(writer, 1, PM_FILE_NONE), 0);
	return writer;
}

static void a_file_is_replaced_not_overwritten(void **state)
{
	struct folder *folder = *state;
	char other[128], old[128];
	PM_AUTO_FREE char *text = NULL, *kept = NULL;
	struct stat st;

	put(folder->file, "precious");
	assert_int_equal(chmod(folder->file, 0666), 0);
	assert_int_equal(link(folder->file, in_folder(folder, "other", other)), 0);
	pm_file_writer_close(open_with_sample(folder->file), NULL);
	text = slurp(other);
	assert_string_equal(text, "precious");
	kept = slurp(in_folder(folder, "s.json.old", old));
	assert_string_equal(kept, "precious");
	assert_int_equal(stat(folder->file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(st.st_size > (off_t)strlen(header_line));
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* The recording of before stays until the new one has a sample. */
static void a_sample_gives_the_file_its_name(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *writer, *second;
	PM_AUTO_FREE char *before = NULL, *name = NULL;
	char partial[128], old[128];

	in_folder(folder, "s.json.partial", partial);
	in_folder(folder, "s.json.old", old);
	put(folder->file, "before");
	writer = open_with_header(folder->file);
	assert_int_equal(pm_file_writer_flush(writer), 0);
	assert_string_equal(pm_file_writer_place(writer), partial);
	assert_int_equal(pm_file_partial_find(folder->file, &name),
			 PM_FILE_PARTIAL_GROWING);
	assert_string_equal(name, partial);
	before = slurp(folder->file);
	assert_string_equal(before, "before");
	assert_false(is_there(old));
	/* Two recordings of one name do not write into one file. */
	second = open_with_header(folder->file);
	assert_string_not_equal(pm_file_writer_place(second), partial);
	pm_file_writer_discard(second);
	assert_int_equal(sample(writer, 1, PM_FILE_NONE), 0);
	assert_string_equal(pm_file_writer_place(writer), folder->file);
	assert_false(is_there(partial));
	assert_true(is_there(old));
	assert_int_equal(pm_file_writer_close(writer, NULL), 0);
	assert_int_equal(pm_file_partial_find(folder->file, NULL), PM_FILE_PARTIAL_NONE);
}

static void a_growing_file_is_found_behind_a_published_one(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *first = open_with_header(folder->file);
	struct pm_file_writer *second = open_with_header(folder->file);
	PM_AUTO_FREE char *name = NULL;

	assert_int_equal(sample(first, 1, PM_FILE_NONE), 0);
	assert_int_equal(pm_file_partial_find(folder->file, &name),
			 PM_FILE_PARTIAL_GROWING);
	assert_string_equal(name, pm_file_writer_place(second));
	assert_int_equal(pm_file_writer_close(first, NULL), 0);
	pm_file_writer_discard(second);
}

enum {
	RECORDERS = 4,
	TURNS = 500,
};

/* Opens a recording of @path and gives it up, again and again. False: another recorder has had
 * the same name meanwhile, or has removed the file. */
static bool open_and_discard(const char *path)
{
	for (int i = 0; i < TURNS; i++) {
		struct pm_file_writer *writer;
		char mark[160];
		int fd;

		if (pm_file_writer_open(&writer, path, NULL) < 0)
			return false;
		snprintf(mark, sizeof(mark), "%s.mine", pm_file_writer_place(writer));
		fd = open(mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 || !is_there(pm_file_writer_place(writer)))
			return false;
		close(fd);
		unlink(mark);
		pm_file_writer_discard(writer);
	}
	return true;
}

static void each_of_many_recorders_has_its_own_file(void **state)
{
	struct folder *folder = *state;
	pid_t children[RECORDERS];
	bool failed = false;

	for (int i = 0; i < RECORDERS; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0)
			_exit(open_and_discard(folder->file) ? 0 : 1);
	}
	for (int i = 0; i < RECORDERS; i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		failed |= status != 0;
	}
	assert_false(failed);
}

static void a_file_without_samples_replaces_none(void **state)
{
	struct folder *folder = *state;
	PM_AUTO_FREE char *kept = NULL, *name = NULL, *text = NULL;
	char old[128];

	in_folder(folder, "s.json.old", old);
	put(folder->file, "before");
	assert_int_equal(pm_file_writer_close(open_with_header(folder->file), NULL), 0);
	kept = slurp(folder->file);
	assert_string_equal(kept, "before");
	assert_false(is_there(old));
	assert_int_equal(pm_file_partial_find(folder->file, &name), PM_FILE_PARTIAL_LEFT);
	text = slurp(name);
	assert_string_equal(text, header_line);
	/* The next one takes the place of what was left; where there is none, it has the name. */
	assert_int_equal(unlink(folder->file), 0);
	assert_int_equal(pm_file_writer_close(open_with_header(folder->file), NULL), 0);
	assert_true(is_there(folder->file));
	assert_false(is_there(name));
}

static void what_is_no_recording_is_not_replaceable(void **state)
{
	struct folder *folder = *state;
	struct pm_error err = { 0 };
	char old[128];

	in_folder(folder, "s.json.old", old);
	assert_int_equal(pm_file_check_replaceable(folder->file, &err), 0);
	put(folder->file, "");
	assert_int_equal(pm_file_check_replaceable(folder->file, &err), 0);
	put(folder->file, "precious");
	assert_int_equal(pm_file_check_replaceable(folder->file, &err), -EEXIST);
	assert_string_equal(err.source, folder->file);
	/* A file that cannot be read is not called anything. Root reads all. */
	assert_int_equal(chmod(folder->file, 0), 0);
	if (geteuid() != 0) {
		assert_int_equal(pm_file_check_replaceable(folder->file, &err), -EACCES);
		assert_non_null(strstr(err.text, "cannot be read"));
	}
	assert_int_equal(unlink(folder->file), 0);
	pm_file_writer_close(open_with_sample(folder->file), NULL);
	assert_int_equal(pm_file_check_replaceable(folder->file, &err), 0);
	put(old, "precious");
	assert_int_equal(pm_file_check_replaceable(folder->file, &err), -EEXIST);
	assert_string_equal(err.source, old);
	/* Nothing is moved there, so nothing is lost there. */
	assert_int_equal(unlink(folder->file), 0);
	assert_int_equal(pm_file_check_replaceable(folder->file, &err), 0);
}

static void a_link_is_never_followed(void **state)
{
	struct folder *folder = *state;
	char other[128];
	PM_AUTO_FREE char *text = NULL;
	struct stat st;

	put(in_folder(folder, "other", other), "precious");
	assert_int_equal(symlink(other, folder->file), 0);
	pm_file_writer_close(open_with_header(folder->file), NULL);
	text = slurp(other);
	assert_string_equal(text, "precious");
	assert_int_equal(lstat(folder->file, &st), 0);
	assert_true(S_ISREG(st.st_mode));

	assert_int_equal(unlink(other), 0);
	assert_int_equal(unlink(folder->file), 0);
	assert_int_equal(symlink(other, folder->file), 0); /* now it dangles */
	pm_file_writer_close(open_with_header(folder->file), NULL);
	assert_int_equal(access(other, F_OK), -1);
}

static void what_cannot_be_opened_is_explained(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *writer = NULL;
	struct pm_error err = { 0 };
	char path[128];

	assert_int_equal(pm_file_writer_open(&writer, folder->path, &err), -EISDIR);
	assert_string_equal(err.source, folder->path);
	in_folder(folder, "no such/deep/s.json", path);
	assert_int_equal(pm_file_writer_open(&writer, path, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no such/deep"));
	assert_non_null(strstr(err.fix, "mkdir -p -- '/tmp/pm-file-"));
	assert_non_null(strstr(err.fix, "/no such/deep'"));
	in_folder(folder, "missing/s.json", path);
	assert_int_equal(pm_file_writer_open(&writer, path, &err), -ENOENT);
	assert_null(strchr(err.fix, '\''));
	assert_int_equal(pm_file_writer_open(&writer, "", &err), -ENOENT);
	put(in_folder(folder, "other", path), "");
	in_folder(folder, "other/s.json", path);
	assert_int_equal(pm_file_writer_open(&writer, path, &err), -ENOTDIR);
	assert_null(writer);
}

static void a_fifo_is_written_to(void **state)
{
	struct folder *folder = *state;
	struct pm_file_writer *writer = NULL;
	struct pm_error err = { 0 };
	char fifo[128], link_path[128], text[2048] = "";
	struct stat st;
	int fd;

	assert_int_equal(mkfifo(in_folder(folder, "fifo", fifo), 0600), 0);
	assert_int_equal(symlink(fifo, in_folder(folder, "link", link_path)), 0);
	assert_int_equal(pm_file_writer_open(&writer, fifo, &err), -ENXIO);
	assert_non_null(strstr(err.text, "nobody reads"));
	fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	pm_file_writer_close(open_with_header(link_path), NULL);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, header_line);
	close(fd);
	assert_int_equal(lstat(fifo, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(lstat(link_path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

/* Runs with standard output being @fd. */
static struct pm_file_writer *open_on_stdout(int fd, const char *path)
{
	struct pm_file_writer *writer;
	int saved;

	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
	writer = open_with_header(path);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	return writer;
}

static void stdout_is_written_to_by_any_name(void **state)
{
	static const char *const names[] = { "-", "/dev/stdout", "/dev/fd/1",
					     "/proc/self/fd/1" };

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++) {
		char text[2048] = "";
		int ends[2];

		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		pm_file_writer_close(open_on_stdout(ends[1], names[i]), NULL);
		assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
		assert_string_equal(text, header_line);
		close(ends[0]);
		close(ends[1]);
	}
}

/* A pipe that somebody made non-blocking, full for a while: nothing gets lost. */
static void a_nonblocking_pipe_is_waited_for(void **state)
{
	enum {
		SAMPLES = 20000
	};
	struct pm_file_writer *writer;
	size_t got = 0;
	char buffer[4096];
	int ends[2], status;
	pid_t child;
	ssize_t n;

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(ends[0]);
		writer = open_on_stdout(ends[1], "-");
		for (uint32_t i = 0; i < SAMPLES; i++)
			if (sample(writer, i, PM_FILE_NONE) < 0)
				_exit(1);
		_exit(pm_file_writer_close(writer, NULL) == 0 ? 0 : 1);
	}
	close(ends[1]);
	fcntl(ends[0], F_SETFL, 0);
	while ((n = read(ends[0], buffer, sizeof(buffer))) > 0)
		for (ssize_t i = 0; i < n; i++)
			got += buffer[i] == '\n';
	close(ends[0]);
	assert_int_equal(got, 1 + SAMPLES);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* ---- failures ------------------------------------------------------------------------ */

/* Writes until it fails; the failure stays, whatever is called. */
static void fails_for_good(struct pm_file_writer *writer, int expected)
{
	struct pm_error err = { 0 };
	const struct pm_file_footer footer = { 0 };
	int result = 0;
	uint32_t id;

	for (uint32_t i = 0; i < 100000 && result == 0; i++)
		result = sample(writer, i, PM_FILE_NONE);
	assert_int_equal(result, expected);
	assert_int_equal(sample(writer, 0, PM_FILE_NONE), expected);
	assert_int_equal(pm_file_intern_frame(writer, PM_FILE_NONE, 1, "ip", &id),
			 expected);
	assert_int_equal(pm_file_write_footer(writer, &footer), expected);
	assert_int_equal(pm_file_writer_flush(writer), expected);
	assert_int_equal(pm_file_writer_close(writer, &err), expected);
	assert_int_equal(err.code, expected);
	assert_true(err.source[0] && err.text[0]);
}

static void a_full_disk_is_told(void **state)
{
	struct pm_file_writer *writer = open_with_header("/dev/full");
	struct pm_error err = { 0 };

	fails_for_good(writer, -ENOSPC);
	/* Little enough to stay in the buffer: close must tell, too. */
	writer = open_with_header("/dev/full");
	assert_int_equal(pm_file_writer_close(writer, &err), -ENOSPC);
	assert_string_equal(err.source, "/dev/full");
	assert_true(err.fix[0]);
}

static void a_reader_that_left_is_told(void **state)
{
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	struct pm_file_writer *writer;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	writer = open_on_stdout(ends[1], "-");
	close(ends[0]);
	close(ends[1]);
	fails_for_good(writer, -EPIPE);
	signal(SIGPIPE, before);
}

/* The limit lies within a write: what fits is kept, as whole lines but for the last. */
static void a_size_limit_is_told(void **state)
{
	enum {
		LIMIT = 300000
	};
	struct folder *folder = *state;
	void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
	struct rlimit old, limit;
	struct stat st;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = LIMIT;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	fails_for_good(open_with_header(folder->file), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, before);
	assert_int_equal(stat(folder->file, &st), 0);
	assert_int_equal(st.st_size, LIMIT);
}

static void close_takes_nothing(void **state)
{
	assert_int_equal(pm_file_writer_close(NULL, NULL), 0);
}

/* ---- who listens --------------------------------------------------------------------- */

struct told {
	enum pm_file_type types[16];
	size_t len;
	struct pm_file_stack stack;
	uint64_t period;
	int answer;
};

static int listen_in(void *user, const struct pm_file_record *record)
{
	struct told *told = user;

	assert_true(told->len < PM_ARRAY_LEN(told->types));
	told->types[told->len++] = record->type;
	if (record->type == PM_FILE_STACK)
		told->stack = record->stack;
	if (record->type == PM_FILE_SAMPLE)
		told->period = record->sample.period;
	return told->answer;
}

/* Each record once, in the order in which a reader needs them, with a file or without. */
static void tee_is_told_of_each_record(void **state)
{
	static const enum pm_file_type expected[] = {
		PM_FILE_HEADER, PM_FILE_MODULE, PM_FILE_FRAME,  PM_FILE_FRAME,
		PM_FILE_STACK,  PM_FILE_STACK,  PM_FILE_SAMPLE,
	};
	const struct folder *folder = *state;

	for (int i = 0; i < 2; i++) {
		struct told told = { 0 };
		struct pm_file_writer *writer;
		uint32_t frame, outer, stack;

		assert_int_equal(
			pm_file_writer_open(&writer, i == 0 ? folder->file : NULL, NULL),
			0);
		pm_file_writer_tee(writer, listen_in, &told);
		write_header(writer);
		assert_int_equal(
			pm_file_write_module(
				writer,
				&(struct pm_file_module){ 0, "/bin/x", NULL, "file" }),
			0);
		assert_int_equal(pm_file_intern_frame(writer, 0, 1, "ip", &frame), 0);
		assert_int_equal(pm_file_intern_frame(writer, 0, 2, "cfi", &outer), 0);
		assert_int_equal(
			pm_file_intern_stack(writer, PM_FILE_NONE, outer, &stack), 0);
		assert_int_equal(pm_file_intern_stack(writer, stack, frame, &stack), 0);
		assert_int_equal(pm_file_intern_stack(writer, 0, frame, &stack), 0);
		assert_int_equal(
			pm_file_write_sample(
				writer,
				&(struct pm_file_sample){ .period = 7, .stack = stack }),
			0);
		assert_int_equal(told.len, PM_ARRAY_LEN(expected));
		assert_memory_equal(told.types, expected, sizeof(expected));
		assert_true(told.stack.id == 1 && told.stack.parent == 0 &&
			    told.stack.frame == frame && told.period == 7);
		told.answer = -ENOMEM;
		assert_int_equal(
			pm_file_write_note(writer, &(struct pm_file_note){ "n" }),
			-ENOMEM);
		assert_int_equal(pm_file_writer_close(writer, NULL), 0);
	}
}

#define TEST(function) \
	cmocka_unit_test_setup_teardown(function, folder_setup, folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(target_instead_of_command),
		TEST(every_type_has_its_form),
		TEST(equal_things_have_one_id),
		TEST(ids_survive_growth),
		TEST(new_nodes_in_a_row_are_one_line),
		TEST(an_endless_stack_is_written_in_pieces),
		TEST(the_evidence_of_a_clock_is_by_cpu),
		TEST(what_no_reader_takes_is_not_written),
		TEST(flush_hands_over_everything),
		TEST(a_file_is_replaced_not_overwritten),
		TEST(a_sample_gives_the_file_its_name),
		TEST(a_growing_file_is_found_behind_a_published_one),
		TEST(each_of_many_recorders_has_its_own_file),
		TEST(a_file_without_samples_replaces_none),
		TEST(what_is_no_recording_is_not_replaceable),
		TEST(a_link_is_never_followed),
		TEST(what_cannot_be_opened_is_explained),
		TEST(a_fifo_is_written_to),
		TEST(stdout_is_written_to_by_any_name),
		TEST(a_nonblocking_pipe_is_waited_for),
		TEST(a_full_disk_is_told),
		TEST(a_reader_that_left_is_told),
		TEST(a_size_limit_is_told),
		TEST(close_takes_nothing),
		TEST(tee_is_told_of_each_record),
	};

	return cmocka_run_group_tests_name("file-writer", tests, NULL, NULL);
}

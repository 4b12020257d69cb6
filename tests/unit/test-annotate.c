/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "pm/annotate.h"
#include "pm/proc.h"

/* ---- a recording --------------------------------------------------------------------------- */

static const char header[] =
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0.1.0\","
	"\"created\":\"2024-05-06T07:08:09Z\",\"clock\":\"monotonic\","
	"\"host\":{\"hostname\":\"h\",\"kernel\":\"k\",\"arch\":\"x86_64\",\"cpus\":2,"
	"\"cpu_model\":null,\"virt\":null},\"command\":[\"prog\"],\"events\":["
	"{\"id\":0,\"name\":\"cycles\",\"requested\":\"cycles:u\",\"actual\":\"cycles:u\","
	"\"modifiers\":\"u\",\"unit\":\"events\",\"freq\":999}],"
	"\"options\":{\"call_graph\":\"dwarf\",\"stack_bytes\":8,\"ring_bytes\":8}}\n"
	"{\"type\":\"module\",\"id\":0,\"path\":\"/nonexistent/prog\",\"build_id\":"
	"\"aa\",\"kind\":\"file\"}\n"
	"{\"type\":\"module\",\"id\":1,\"path\":\"/nonexistent/lib.so\",\"build_id\":"
	"\"bb\",\"kind\":\"file\"}\n"
	"{\"type\":\"module\",\"id\":2,\"path\":\"[kernel.kallsyms]\",\"build_id\":null,"
	"\"kind\":\"kernel\"}\n";

static void put_frame(struct pm_str *file, unsigned id, unsigned module,
		      const char *functions)
{
	pm_str_printf(file,
		      "{\"type\":\"frame\",\"id\":%u,\"module\":%u,\"address\":\"0x%x\","
		      "\"how\":\"cfi\"}\n"
		      "{\"type\":\"symbol\",\"frame\":%u,\"functions\":[%s]}\n",
		      id, module, 0x1000 * (id + 1), id, functions);
}

static void put_stack(struct pm_str *file, unsigned id, int parent, unsigned frame)
{
	char text[16] = "null";

	if (parent >= 0)
		snprintf(text, sizeof(text), "%d", parent);
	pm_str_printf(file,
		      "{\"type\":\"stack\",\"id\":%u,\"parent\":%s,\"frames\":[%u]}\n",
		      id, text, frame);
}

static void put_samples(struct pm_str *file, unsigned count, unsigned stack)
{
	for (unsigned i = 0; i < count; i++)
		pm_str_printf(file,
			      "{\"type\":\"sample\",\"time\":5,\"pid\":1,\"tid\":1,"
			      "\"cpu\":0,\"event\":0,\"period\":1,\"stack\":%u}\n",
			      stack);
}

static struct pm_profile *load_file(struct pm_str *file)
{
	struct pm_file_reader *reader;
	struct pm_profile *profile = NULL;
	struct pm_error err = { 0 };

	if (pm_file_reader_open_memory(&reader, file->data, file->len, &err) < 0 ||
	    pm_profile_load(&profile, reader, NULL, &err) < 0)
		fail_msg("%s:%lld: %s", err.source, (long long)err.offset, err.text);
	pm_file_reader_free(reader);
	pm_str_release(file);
	return profile;
}

#define F(name, line) "{\"name\":\"" name "\",\"file\":\"/s/a.c\",\"line\":" #line "}"
#define H(name, line) "{\"name\":\"" name "\",\"file\":\"/s/a.h\",\"line\":" #line "}"

/*
 * main:9 calls f, which is taken at lines 3 (10 samples) and 4 (20), calls itself from line 4
 * (5 samples at line 3 below that), has swap inlined at line 5 (7, of which copy inlined into
 * swap 3), and a place without a line (2). f is also a function of lib.so (4).
 */
static struct pm_profile *load(void)
{
	struct pm_str file = { 0 };

	pm_str_puts(&file, header);
	put_frame(&file, 0, 0, F("main", 9));
	put_frame(&file, 1, 0, F("f", 3));
	put_frame(&file, 2, 0, F("f", 4));
	put_frame(&file, 3, 0, H("swap", 2) "," F("f", 5));
	put_frame(&file, 4, 0, H("copy", 8) "," H("swap", 2) "," F("f", 5));
	put_frame(&file, 5, 0, "{\"name\":\"f\"}");
	put_frame(&file, 6, 1, "{\"name\":\"f\",\"file\":\"/s/b.c\",\"line\":1}");
	put_frame(&file, 7, 2, "{\"name\":\"sys_f\"}");
	put_stack(&file, 0, -1, 0);
	for (unsigned i = 1; i <= 7; i++)
		put_stack(&file, i, 0, i);
	put_stack(&file, 8, 2, 1);
	put_samples(&file, 10, 1);
	put_samples(&file, 20, 2);
	put_samples(&file, 4, 3);
	put_samples(&file, 3, 4);
	put_samples(&file, 2, 5);
	put_samples(&file, 4, 6);
	put_samples(&file, 1, 7);
	put_samples(&file, 5, 8);
	return load_file(&file);
}

static struct pm_view *view_of(const struct pm_profile *profile)
{
	struct pm_view *view = NULL;

	assert_int_equal(pm_view_new(&view, profile, 0, NULL, NULL), 0);
	return view;
}

static uint32_t choose(const struct pm_view *view, const char *name)
{
	struct pm_annotate_choices choices = { 0 };
	struct pm_error err = { 0 };
	uint32_t function;

	if (pm_annotate_choose(&choices, view, name, &err) < 0)
		fail_msg("%s", err.text);
	function = choices.rows.data[0].function;
	pm_annotate_choices_release(&choices);
	return function;
}

/* ---- lines ------------------------------------------------------------------------------- */

static void expect_line(const struct pm_annotate_lines *lines, size_t index,
			uint32_t number, uint64_t self, uint64_t inlined, uint64_t total)
{
	const struct pm_annotate_line *line = &lines->lines.data[index];

	assert_true(index < lines->lines.len);
	assert_int_equal(line->line, number);
	assert_int_equal(line->self.samples, self);
	assert_int_equal(line->inlined.samples, inlined);
	assert_int_equal(line->total.samples, total);
}

static void sums_up_lines(void **state)
{
	struct pm_profile *profile = load();
	struct pm_view *view = view_of(profile);
	uint32_t functions[] = { choose(view, "main"), choose(view, "f") };
	struct pm_annotate_lines lines[2];

	assert_int_equal(pm_annotate_lines_init(lines, view, functions, 2), 0);
	/* main has nothing but what it calls. */
	assert_int_equal(lines[0].self.samples + lines[0].inlined.samples, 0);
	assert_int_equal(lines[0].total.samples, 49);
	assert_int_equal(lines[0].lines.len, 1);
	expect_line(&lines[0], 0, 9, 0, 0, 49);
	/* f of prog: a sample of a recursion counts once to the function. */
	assert_int_equal(lines[1].self.samples, 37);
	assert_int_equal(lines[1].inlined.samples, 7);
	assert_int_equal(lines[1].total.samples, 44);
	assert_int_equal(lines[1].unknown.samples, 2);
	assert_int_equal(lines[1].files.len, 1);
	assert_string_equal(lines[1].files.data[0].path, "/s/a.c");
	assert_int_equal(lines[1].files.data[0].self.samples, 42);
	assert_int_equal(lines[1].lines.len, 4);
	expect_line(&lines[1], 0, 3, 15, 0, 15);
	expect_line(&lines[1], 1, 4, 20, 0, 25);
	expect_line(&lines[1], 2, 5, 0, 7, 7);
	expect_line(&lines[1], 3, 0, 2, 0, 2);
	assert_int_equal(lines[1].lines.data[3].file, PM_PROFILE_NONE);
	for (int i = 0; i < 2; i++)
		pm_annotate_lines_release(&lines[i]);
	pm_view_free(view);
	pm_profile_free(profile);
}

static void tells_what_is_inlined(void **state)
{
	struct pm_profile *profile = load();
	struct pm_view *view = view_of(profile);
	uint32_t function = choose(view, "f");
	struct pm_annotate_lines lines;
	const struct pm_annotate_inlined *inlined;
	const struct pm_profile_place *place;

	assert_int_equal(pm_annotate_lines_init(&lines, view, &function, 1), 0);
	assert_int_equal(lines.lines.data[2].inlineds, 2);
	inlined = &lines.inlineds.data[lines.lines.data[2].first_inlined];
	place = &profile->places.data[inlined[0].place];
	assert_string_equal(profile->functions.data[place->function].name, "swap");
	assert_int_equal(place->line, 2);
	assert_int_equal(inlined[0].self.samples, 4);
	place = &profile->places.data[inlined[1].place];
	assert_string_equal(profile->functions.data[place->function].name, "copy");
	assert_int_equal(inlined[1].self.samples, 3);
	pm_annotate_lines_release(&lines);
	/* swap itself: what copy has of it is inlined there. */
	function = choose(view, "swap");
	assert_int_equal(pm_annotate_lines_init(&lines, view, &function, 1), 0);
	assert_int_equal(lines.lines.len, 1);
	expect_line(&lines, 0, 2, 4, 3, 7);
	pm_annotate_lines_release(&lines);
	pm_view_free(view);
	pm_profile_free(profile);
}

static void finds_regions(void **state)
{
	struct pm_annotate_line rows[] = {
		{ .file = 0, .line = 1, .self = { 1, 1 } },
		{ .file = 0, .line = 9, .self = { 50, 50 } },
		{ .file = 0, .line = 19, .self = { 40, 40 } },
		{ .file = 0, .line = 40, .self = { 9, 9 } },
		{ .file = 1, .line = 2, .self = { 9, 9 } },
		{ .file = 1, .line = UINT32_MAX - 1, .self = { 9, 9 } },
	};
	struct pm_annotate_file files[] = { { .lines = 4 }, { .first = 4, .lines = 2 } };
	struct pm_annotate_lines lines = {
		.self = { 118, 118 },
		.total = { 1000, 1000 },
		.lines = { rows, PM_ARRAY_LEN(rows), 0 },
		.files = { files, PM_ARRAY_LEN(files), 0 },
	};
	struct pm_annotate_regions r;

	/* 12 and 16: three lines between are filled. Line 1 is below the limit. */
	assert_int_equal(pm_annotate_regions_init(&r, &lines, 0, 2, 3), 0);
	assert_int_equal(r.regions.len, 2);
	assert_int_equal(r.regions.data[0].first, 6);
	assert_int_equal(r.regions.data[0].last, 22);
	assert_int_equal(r.regions.data[1].first, 37);
	assert_int_equal(r.regions.data[1].last, 43);
	pm_annotate_regions_release(&r);
	assert_int_equal(pm_annotate_regions_init(&r, &lines, 1, 2, 3), 0);
	assert_int_equal(r.regions.len, 2);
	assert_int_equal(r.regions.data[0].first, 1);
	assert_int_equal(r.regions.data[1].last, UINT32_MAX);
	pm_annotate_regions_release(&r);
}

static void chooses_functions(void **state)
{
	struct pm_profile *profile = load();
	struct pm_view *view = view_of(profile);
	struct pm_annotate_choices choices = { 0 };
	struct pm_error err = { 0 };

	/* The same name in two modules, heaviest first. */
	assert_int_equal(pm_annotate_choose(&choices, view, "f", &err), 0);
	assert_int_equal(choices.rows.len, 2);
	assert_int_equal(choices.rows.data[0].self.samples, 44);
	assert_int_equal(choices.rows.data[1].self.samples, 4);
	pm_annotate_choices_release(&choices);
	assert_int_equal(pm_annotate_choose(&choices, view, "ma|sw", &err), -ENOTUNIQ);
	assert_non_null(strstr(err.fix, "main"));
	assert_int_equal(choices.rows.len, 2);
	pm_annotate_choices_release(&choices);
	assert_int_equal(pm_annotate_choose(&choices, view, "nobody", &err), -ENOENT);
	pm_view_free(view);
	pm_profile_free(profile);
}

/* ---- sources ----------------------------------------------------------------------------- */

static char folder[] = "/tmp/test-annotate-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const void *bytes, size_t len)
{
	FILE *file = fopen(in_folder(name), "we");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static void expect_text(const struct pm_source *source, uint32_t line, const char *text)
{
	size_t len;
	bool cut;
	const char *bytes = pm_source_line(source, line, &len, &cut);

	assert_non_null(bytes);
	assert_int_equal(len, strlen(text));
	assert_memory_equal(bytes, text, len);
	assert_false(cut);
}

static void reads_sources(void **state)
{
	static const char text[] = "one\r\n\n\ttwo\nlast";
	struct pm_annotate_search search = { .recorded_at = 1000 };
	struct timeval old[2] = { { 1000, 0 }, { 1000, 0 } };
	struct pm_source source;
	size_t len;

	write_file("a.c", text, sizeof(text) - 1);
	assert_int_equal(pm_source_read(&source, in_folder("a.c"), &search, NULL), 0);
	assert_string_equal(source.path, in_folder("a.c"));
	assert_true(source.newer);
	assert_int_equal(source.starts.len, 4);
	expect_text(&source, 1, "one");
	expect_text(&source, 2, "");
	expect_text(&source, 3, "\ttwo");
	expect_text(&source, 4, "last");
	assert_null(pm_source_line(&source, 0, &len, NULL));
	assert_null(pm_source_line(&source, 5, &len, NULL));
	assert_null(pm_source_line(&source, UINT32_MAX, &len, NULL));
	pm_source_release(&source);
	assert_int_equal(utimes(in_folder("a.c"), old), 0);
	assert_int_equal(pm_source_read(&source, in_folder("a.c"), &search, NULL), 0);
	assert_false(source.newer);
	pm_source_release(&source);
	write_file("empty.c", "", 0);
	assert_int_equal(pm_source_read(&source, in_folder("empty.c"), NULL, NULL), 0);
	assert_null(pm_source_line(&source, 1, &len, NULL));
	pm_source_release(&source);
}

static void refuses_what_is_no_source(void **state)
{
	struct pm_source source;
	struct pm_error err = { 0 };
	int fd;

	assert_int_equal(pm_source_read(&source, in_folder("none.c"), NULL, &err),
			 -ENOENT);
	assert_string_equal(err.source, in_folder("none.c"));
	assert_int_equal(pm_source_read(&source, "relative.c", NULL, &err), -ENOENT);
	write_file("nul.c", "int\0main", 8);
	assert_int_equal(pm_source_read(&source, in_folder("nul.c"), NULL, &err),
			 -EBADMSG);
	/* Would wait for a writer for ever. */
	assert_int_equal(mkfifo(in_folder("fifo.c"), 0600), 0);
	assert_int_equal(pm_source_read(&source, in_folder("fifo.c"), NULL, &err),
			 -ENOTSUP);
	assert_int_equal(pm_source_read(&source, folder, NULL, &err), -ENOTSUP);
	assert_int_equal(pm_source_read(&source, "/dev/zero", NULL, &err), -ENOTSUP);
	fd = open(in_folder("huge.c"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	close(fd);
	assert_int_equal(pm_source_read(&source, in_folder("huge.c"), NULL, &err),
			 -EFBIG);
}

/* What root's report gets for user @uid: the code of pm_source_read(). */
static int read_as(uint32_t uid, const char *path, const char *root)
{
	const struct pm_annotate_search search = { .as_user = true,
						   .uid = uid,
						   .source_roots = &root,
						   .source_roots_len = root ? 1 : 0 };
	struct pm_source source;
	struct pm_error err = { .offset = -1 };
	int r = pm_source_read(&source, path, &search, &err);

	if (r == 0) {
		assert_string_equal(source.real_path, in_folder("secret.c"));
		pm_source_release(&source);
	} else {
		assert_non_null(strstr(err.fix, "--source-root "));
	}
	/* Its own rights are back. */
	assert_int_equal(access(path, R_OK), 0);
	assert_int_equal(setfsuid((uid_t)-1), 0);
	return r;
}

static void shows_what_a_user_may_read(void **state)
{
	enum {
		SOMEBODY = 4711
	};
	char path[300], link[300];

	if (geteuid() != 0) {
		print_message("only root can read as others\n");
		skip();
	}
	write_file("secret.c", "x\n", 2);
	snprintf(path, sizeof(path), "%s", in_folder("secret.c"));
	snprintf(link, sizeof(link), "%s", in_folder("link.c"));
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(read_as(SOMEBODY, path, NULL), -EPERM);
	assert_int_equal(read_as(SOMEBODY, link, NULL), -EPERM);
	assert_int_equal(read_as(SOMEBODY, path, "/etc"), -EPERM);
	assert_int_equal(read_as(SOMEBODY, path, folder), 0);
	assert_int_equal(read_as(SOMEBODY, link, folder), 0);
	assert_int_equal(read_as(SOMEBODY, path, "/"), 0);
	assert_int_equal(read_as(0, path, NULL), 0);
	assert_int_equal(chown(path, SOMEBODY, SOMEBODY), 0);
	assert_int_equal(read_as(SOMEBODY, path, NULL), 0);
	assert_int_equal(read_as(SOMEBODY + 1, path, NULL), -EPERM);
	/* Root's own program is no reason to show the file of somebody else. */
	assert_int_equal(read_as(0, path, NULL), -EPERM);
	assert_int_equal(read_as(0, path, folder), 0);
	/* Everybody could, but for its folder. */
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(read_as(SOMEBODY + 1, path, NULL), 0);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(read_as(SOMEBODY, path, NULL), -EPERM);
}

static void cuts_long_lines(void **state)
{
	size_t len = 3 * PM_SOURCE_LINE_BYTES_MAX;
	PM_AUTO_FREE char *text = malloc(len);
	struct pm_source source;
	const char *bytes;
	size_t got;
	bool cut;

	memset(text, 'x', len);
	write_file("long.c", text, len);
	assert_int_equal(pm_source_read(&source, in_folder("long.c"), NULL, NULL), 0);
	bytes = pm_source_line(&source, 1, &got, &cut);
	assert_non_null(bytes);
	assert_int_equal(got, PM_SOURCE_LINE_BYTES_MAX);
	assert_true(cut);
	pm_source_release(&source);
}

static void expect_found(const char *rule, const char *path, const char *name)
{
	const struct pm_annotate_search search = { .source_dirs = &rule,
						   .source_dirs_len = 1 };
	struct pm_source source;
	int r = pm_source_read(&source, path, &search, NULL);

	if (!name) {
		assert_int_equal(r, -ENOENT);
		return;
	}
	assert_int_equal(r, 0);
	assert_string_equal(source.path, in_folder(name));
	pm_source_release(&source);
}

static void finds_moved_sources(void **state)
{
	char rule[300];
	const struct pm_annotate_search symfs = { .symfs = folder };
	struct pm_source source;

	assert_int_equal(mkdir(in_folder("src"), 0700), 0);
	write_file("src/b.c", "b\n", 2);
	snprintf(rule, sizeof(rule), "/build/x=%s", folder);
	expect_found(rule, "/build/x/src/b.c", "src/b.c");
	/* Whole folders only. */
	expect_found(rule, "/build/xy/src/b.c", NULL);
	expect_found(rule, "/elsewhere/src/b.c", NULL);
	/* A folder: any end of the path. */
	expect_found(folder, "/build/x/src/b.c", "src/b.c");
	expect_found(folder, "/src/b.c", "src/b.c");
	expect_found(folder, "src/b.c", "src/b.c");
	expect_found(folder, "/src/c.c", NULL);
	expect_found(folder, "", NULL);
	assert_int_equal(pm_source_read(&source, "/src/b.c", &symfs, NULL), 0);
	assert_string_equal(source.path, in_folder("src/b.c"));
	pm_source_release(&source);
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "a.c",    "empty.c", "nul.c",   "fifo.c",
					     "huge.c", "long.c",  "src/b.c", "src",
					     "link.c", "secret.c" };

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++)
		remove(in_folder(names[i]));
	return rmdir(folder);
}

/* ---- code -------------------------------------------------------------------------------- */

static void takes_x86_apart(void **state)
{
	/* add $1,%eax; jne back to it; jmp over a call; ret; and no instruction. */
	static const uint8_t bytes[] = { 0x83, 0xc0, 0x01, 0x75, 0xfb, 0xeb, 0x05, 0xe8,
					 0x00, 0x01, 0x00, 0x00, 0xc3, 0x06, 0xff };
	static const struct {
		uint64_t address, target;
		enum pm_annotate_kind kind;
		const char *mnemonic;
	} expected[] = {
		{ 0x1000, 0, PM_INSN_PLAIN, "addl" },
		{ 0x1003, 0x1000, PM_INSN_BRANCH, "jne" },
		{ 0x1005, 0x100c, PM_INSN_JUMP, "jmp" },
		{ 0x1007, 0x110c, PM_INSN_CALL, "callq" },
		{ 0x100c, 0, PM_INSN_RETURN, "retq" },
		{ 0x100d, 0, PM_INSN_BAD, ".byte" },
		{ 0x100e, 0, PM_INSN_BAD, ".byte" },
	};
	const struct pm_annotate_machine machine = { EM_X86_64, true };
	struct pm_annotate_code code = { 0 };

	assert_int_equal(
		pm_annotate_disassemble(&code, &machine, bytes, sizeof(bytes), 0x1000),
		0);
	assert_int_equal(code.insns.len, PM_ARRAY_LEN(expected));
	for (size_t i = 0; i < PM_ARRAY_LEN(expected); i++) {
		const struct pm_annotate_insn *insn = &code.insns.data[i];

		assert_int_equal(insn->address, expected[i].address);
		assert_int_equal(insn->kind, expected[i].kind);
		assert_int_equal(insn->has_target, expected[i].target != 0);
		assert_int_equal(insn->target, expected[i].target);
		assert_string_equal(insn->mnemonic, expected[i].mnemonic);
	}
	assert_string_equal(code.insns.data[0].operands, "$1, %eax");
	pm_annotate_code_release(&code);
}

static void takes_aarch64_apart(void **state)
{
	/* add x0,x0,#1; b.ne .-4; b .+8; bl .+4096; tbz x1,#3,.-16; ret; half of one */
	static const uint32_t words[] = { 0x91000400, 0x54ffffe1, 0x14000002,
					  0x94000400, 0x361fff81, 0xd65f03c0 };
	static const struct {
		uint64_t target;
		enum pm_annotate_kind kind;
	} expected[] = {
		{ 0, PM_INSN_PLAIN },       { 0x1000, PM_INSN_BRANCH },
		{ 0x1010, PM_INSN_JUMP },   { 0x200c, PM_INSN_CALL },
		{ 0x1000, PM_INSN_BRANCH }, { 0, PM_INSN_RETURN },
	};
	const struct pm_annotate_machine machine = { EM_AARCH64, true };
	struct pm_annotate_code code = { 0 };
	uint8_t bytes[sizeof(words) + 2] = { 0 };

	memcpy(bytes, words, sizeof(words));
	assert_int_equal(
		pm_annotate_disassemble(&code, &machine, bytes, sizeof(bytes), 0x1000),
		0);
	assert_int_equal(code.insns.len, PM_ARRAY_LEN(expected) + 1);
	for (size_t i = 0; i < PM_ARRAY_LEN(expected); i++) {
		assert_int_equal(code.insns.data[i].address, 0x1000 + 4 * i);
		assert_int_equal(code.insns.data[i].kind, expected[i].kind);
		assert_int_equal(code.insns.data[i].target, expected[i].target);
	}
	assert_int_equal(code.insns.data[6].kind, PM_INSN_BAD);
	assert_int_equal(code.insns.data[6].size, 2);
	pm_annotate_code_release(&code);
}

static void knows_no_other_machine(void **state)
{
	const struct pm_annotate_machine machine = { EM_68K, false };
	struct pm_annotate_code code = { 0 };

	assert_int_equal(
		pm_annotate_disassemble(&code, &machine, (const uint8_t *)"", 1, 0),
		-ENOTSUP);
	pm_annotate_code_release(&code);
}

static void says_why_there_is_no_code(void **state)
{
	struct pm_profile *profile = load();
	struct pm_view *view = view_of(profile);
	struct pm_annotate_code code;
	struct pm_error err = { 0 };

	assert_int_equal(
		pm_annotate_code_init(&code, view, choose(view, "f"), NULL, &err),
		-ENOENT);
	assert_string_equal(err.source, "/nonexistent/prog");
	assert_int_equal(
		pm_annotate_code_init(&code, view, choose(view, "sys_f"), NULL, &err),
		-ENOTSUP);
	assert_non_null(strstr(err.text, "kernel"));
	pm_view_free(view);
	pm_profile_free(profile);
}

/* A recording of one function at every 64th address of [0, @end) of module 3, which is @module. */
static struct pm_profile *load_module(const char *module, unsigned end)
{
	struct pm_str file = { 0 };

	pm_str_puts(&file, header);
	pm_str_puts(&file, module);
	for (unsigned i = 0; i < end / 64; i++) {
		pm_str_printf(&file,
			      "{\"type\":\"frame\",\"id\":%u,\"module\":3,\"address\":"
			      "\"0x%x\",\"how\":\"cfi\"}\n"
			      "{\"type\":\"symbol\",\"frame\":%u,\"functions\":["
			      "{\"name\":\"f\"}]}\n",
			      i, 64 * i, i);
		put_stack(&file, i, -1, i);
		put_samples(&file, 1, i);
	}
	return load_file(&file);
}

static int annotate_module(struct pm_annotate_code *code, const char *module,
			   unsigned end, struct pm_error *err)
{
	struct pm_profile *profile = load_module(module, end);
	struct pm_view *view = view_of(profile);
	int r = pm_annotate_code_init(code, view, choose(view, "f"), NULL, err);

	pm_view_free(view);
	pm_profile_free(profile);
	return r;
}

static void refuses_code_made_while_running(void **state)
{
	static const char *const modules[] = {
		"{\"type\":\"module\",\"id\":3,\"path\":\"/tmp/perf-1.map\",\"build_id\":null,"
		"\"kind\":\"jit\"}\n",
		"{\"type\":\"module\",\"id\":3,\"path\":\"//anon\",\"build_id\":null,"
		"\"kind\":\"anon\"}\n",
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(modules); i++) {
		struct pm_annotate_code code;
		struct pm_error err = { 0 };

		assert_int_equal(annotate_module(&code, modules[i], 640, &err), -ENOTSUP);
		assert_non_null(strstr(err.text, "made while running"));
	}
}

/* How long the vDSO of this process is and its build-id in hex; 0: it has none. */
static unsigned find_vdso(char *hex, size_t size)
{
	PM_AUTO_FCLOSE FILE *maps = fopen("/proc/self/maps", "re");
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len = 0;
	unsigned long start, end;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		PM_AUTO_CLOSE int fd = -1;

		if (!strstr(line, "[vdso]") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		fd = memfd_create("vdso", MFD_CLOEXEC);
		if (write(fd, (const void *)start, end - start) !=
			    (ssize_t)(end - start) ||
		    pm_elf_build_id(fd, id, &len) < 0)
			return 0;
		for (size_t i = 0; i < len && 2 * i + 3 <= size; i++)
			snprintf(hex + 2 * i, 3, "%02x", id[i]);
		return (unsigned)(end - start);
	}
	return 0;
}

#define VDSO \
	"{\"type\":\"module\",\"id\":3,\"path\":\"[vdso]\",\"kind\":\"vdso\",\"build_id\":"

static void takes_the_vdso_of_this_process(void **state)
{
	char hex[2 * PM_MODULE_BUILD_ID_MAX + 1] = "", module[256];
	unsigned end = find_vdso(hex, sizeof(hex));
	struct pm_annotate_code code;
	struct pm_error err = { 0 };

	if (end == 0) {
		print_message("there is no vDSO with a build-id here\n");
		skip();
	}
	snprintf(module, sizeof(module), VDSO "\"%s\"}\n", hex);
	if (annotate_module(&code, module, end, &err) < 0)
		fail_msg("%s: %s", err.source, err.text);
	assert_string_equal(code.path, "[vdso]");
	assert_false(code.unverified);
	assert_true(code.parts.len > 0 && code.insns.len > 0);
	assert_true(code.shown.samples > 0);
	assert_int_equal(code.shown.samples + code.elsewhere.samples, end / 64);
	pm_annotate_code_release(&code);
	assert_int_equal(
		annotate_module(&code, VDSO "\"0123456789abcdef\"}\n", end, &err),
		-ESTALE);
	assert_string_equal(err.source, "[vdso]");
	assert_int_equal(annotate_module(&code, VDSO "null}\n", end, &err), -ESTALE);
	assert_non_null(strstr(err.text, "no build-id of the vDSO"));
}

static void knows_when_it_was_recorded(void **state)
{
	struct pm_profile profile = { .info.created = "2024-05-06T07:08:09Z" };

	assert_int_equal(pm_annotate_recorded_at(&profile), 1714979289);
	profile.info.created = "yesterday";
	assert_int_equal(pm_annotate_recorded_at(&profile), 0);
	profile.info.created = NULL;
	assert_int_equal(pm_annotate_recorded_at(&profile), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_up_lines),
		cmocka_unit_test(tells_what_is_inlined),
		cmocka_unit_test(finds_regions),
		cmocka_unit_test(chooses_functions),
		cmocka_unit_test(reads_sources),
		cmocka_unit_test(refuses_what_is_no_source),
		cmocka_unit_test(shows_what_a_user_may_read),
		cmocka_unit_test(cuts_long_lines),
		cmocka_unit_test(finds_moved_sources),
		cmocka_unit_test(takes_x86_apart),
		cmocka_unit_test(takes_aarch64_apart),
		cmocka_unit_test(knows_no_other_machine),
		cmocka_unit_test(says_why_there_is_no_code),
		cmocka_unit_test(refuses_code_made_while_running),
		cmocka_unit_test(takes_the_vdso_of_this_process),
		cmocka_unit_test(knows_when_it_was_recorded),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

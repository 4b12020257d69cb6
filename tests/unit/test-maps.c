/* SPDX-License-Identifier: MIT */
/* Lines of /proc/PID/maps, sorted mappings, the kinds and build-ids of mapped files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/proc.h"
#include "src/proc/proc-internal.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

/* ---- lines --------------------------------------------------------------------------- */

static int parse(const char *line, struct pm_maps_line *ret)
{
	/* An exact copy without NUL, so that a sanitizer sees one byte too many. */
	size_t len = strlen(line);
	PM_AUTO_FREE char *exact = malloc(len ? len : 1);
	int rc;

	assert_non_null(exact);
	memcpy(exact, line, len);
	rc = pm_maps_line_parse(exact, len, ret);
	if (rc == 0) {
		/* The path as a place in the test's own text, which lives on. */
		assert_true(ret->path_len == 0 || ret->path >= exact);
		if (ret->path_len > 0)
			ret->path = line + (ret->path - exact);
	}
	return rc;
}

static void line_of_a_file(void **state)
{
	struct pm_maps_line line;

	assert_int_equal(
		parse("555af5f00000-555af5f06000 r-xp 00002000 fe:1f 247498         "
		      "            /usr/bin/head",
		      &line),
		0);
	assert_int_equal(line.start, 0x555af5f00000);
	assert_int_equal(line.end, 0x555af5f06000);
	assert_int_equal(line.prot, PROT_READ | PROT_EXEC);
	assert_int_equal(line.pgoff, 0x2000);
	assert_int_equal(line.major, 0xfe);
	assert_int_equal(line.minor, 0x1f);
	assert_int_equal(line.inode, 247498);
	assert_int_equal(line.path_len, strlen("/usr/bin/head"));
	assert_memory_equal(line.path, "/usr/bin/head", line.path_len);
}

static void line_of_the_top_of_memory(void **state)
{
	struct pm_maps_line line;

	assert_int_equal(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 "
			       "                 [vsyscall]",
			       &line),
			 0);
	assert_int_equal(line.end, 0xffffffffff601000);
	assert_int_equal(line.prot, PROT_EXEC);
	assert_int_equal(line.path_len, strlen("[vsyscall]"));
}

static void line_without_a_name(void **state)
{
	struct pm_maps_line line;

	/* The kernel leaves one blank behind the inode; both forms are read. */
	assert_int_equal(parse("1000-2000 rwxs 00000000 00:00 0 ", &line), 0);
	assert_int_equal(line.path_len, 0);
	assert_string_equal(line.path, "");
	assert_int_equal(parse("1000-2000 rwxs 00000000 00:00 0", &line), 0);
	assert_int_equal(line.path_len, 0);
}

static void line_with_an_odd_name(void **state)
{
	static const char *const names[] = {
		"/tmp/a name with  blanks (deleted)",
		"/tmp/line\\012break",
		"/memfd:doublemapper (deleted)",
		"/SYSV00000000 (deleted)",
		"anon_inode:[perf_event]",
		"[anon: a name ]",
		"\xff\xfe/not/utf-8",
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++) {
		PM_AUTO_FREE char *text = NULL;
		struct pm_maps_line line;

		assert_true(asprintf(&text, "1000-2000 r-xp 00000000 00:01 7     %s",
				     names[i]) > 0);
		assert_int_equal(parse(text, &line), 0);
		assert_int_equal(line.path_len, strlen(names[i]));
		assert_memory_equal(line.path, names[i], line.path_len);
	}
}

static void lines_of_another_form_are_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"-",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 r-xp",
		"1000-2000 r-xp 0",
		"1000-2000 r-xp 0 00",
		"1000-2000 r-xp 0 00:",
		"1000-2000 r-xp 0 00:00",
		"1000-2000 r-xp 0 00:00 ",
		"1000-2000 r-xp 0 00:00 x",
		"1000-2000 r-xp 0 00:00 1/x",
		"1000-2000 r-x 0 00:00 1",
		"1000-2000 r-xq 0 00:00 1",
		"1000-2000 rwxpp 0 00:00 1",
		"1000-2000 xrwp 0 00:00 1",
		"0x1000-2000 r-xp 0 00:00 1",
		"1000-2000  r-xp 0 00:00 1",
		" 1000-2000 r-xp 0 00:00 1",
		"2000-1000 r-xp 0 00:00 1",
		"1000-1000 r-xp 0 00:00 1",
		"-1000-2000 r-xp 0 00:00 1",
		"1000-10000000000000000 r-xp 0 00:00 1",
		"1000-2000 r-xp 10000000000000000 00:00 1",
		"1000-2000 r-xp 0 100000000:00 1",
		"1000-2000 r-xp 0 00:100000000 1",
		"1000-2000 r-xp 0 00:00 18446744073709551616",
		"1000-2000 r-xp 0 00:00 ff /x",
		"1000-2000 r-xp 0 00:00 1 /x\n",
		"1000-2000 r-xp 0 00:00 1 /x\n1000-2000 r-xp 0 00:00 1 /y",
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(lines); i++) {
		struct pm_maps_line line = { .start = 77 };

		if (parse(lines[i], &line) != -EBADMSG)
			fail_msg("taken: \"%s\"", lines[i]);
		assert_int_equal(line.start, 77);
	}
	/* A NUL inside. */
	struct pm_maps_line line;
	static const char nul[] = "1000-2000 r-xp 0 00:00 1 /a\0b";

	assert_int_equal(pm_maps_line_parse(nul, sizeof(nul) - 1, &line), -EBADMSG);
}

static void every_cut_of_a_line_is_refused_or_right(void **state)
{
	static const char whole[] =
		"555af5f00000-555af5f06000 r-xp 00002000 fe:00 247498 /x";

	for (size_t len = 0; len < sizeof(whole) - 1; len++) {
		PM_AUTO_FREE char *exact = malloc(len ? len : 1);
		struct pm_maps_line line;

		assert_non_null(exact);
		memcpy(exact, whole, len);
		if (pm_maps_line_parse(exact, len, &line) == 0)
			assert_true(len >=
				    strlen("555af5f00000-555af5f06000 r-xp 00002000 "
					   "fe:00 2"));
	}
}

/* ---- kinds --------------------------------------------------------------------------- */

static void kinds_of_names(void **state)
{
	static const struct {
		const char *path;
		enum pm_module_kind kind;
		const char *counts;
	} cases[] = {
		{ "/usr/bin/true", PM_MODULE_FILE, "/usr/bin/true" },
		{ "/usr/bin/true (deleted)", PM_MODULE_FILE, "/usr/bin/true" },
		{ "/a (deleted) (deleted)", PM_MODULE_FILE, "/a (deleted)" },
		{ "/a(deleted)", PM_MODULE_FILE, "/a(deleted)" },
		{ "/memfd:jit (deleted)", PM_MODULE_FILE, "/memfd:jit" },
		{ "(unreachable)/x", PM_MODULE_FILE, "(unreachable)/x" },
		{ "//toolong", PM_MODULE_FILE, "//toolong" },
		{ "/SYSVabcdefgh", PM_MODULE_FILE, "/SYSVabcdefgh" },
		{ "/SYSV0000000000", PM_MODULE_FILE, "/SYSV0000000000" },
		{ "/dev/zeros", PM_MODULE_FILE, "/dev/zeros" },
		{ "/SYSV0000abcd (deleted)", PM_MODULE_ANON, "/SYSV0000abcd" },
		{ "/dev/zero", PM_MODULE_ANON, "/dev/zero" },
		{ "/dev/zero (deleted)", PM_MODULE_ANON, "/dev/zero" },
		{ "/anon_hugepage (deleted)", PM_MODULE_ANON, "/anon_hugepage" },
		{ "//anon", PM_MODULE_ANON, "//anon" },
		{ "", PM_MODULE_ANON, "" },
		{ " (deleted)", PM_MODULE_ANON, "" },
		{ "[heap]", PM_MODULE_ANON, "[heap]" },
		{ "[stack]", PM_MODULE_ANON, "[stack]" },
		{ "[stack:12]", PM_MODULE_ANON, "[stack:12]" },
		{ "[vsyscall]", PM_MODULE_ANON, "[vsyscall]" },
		{ "[anon:v8]", PM_MODULE_ANON, "[anon:v8]" },
		{ "[uprobes]", PM_MODULE_ANON, "[uprobes]" },
		{ "anon_inode:[perf_event]", PM_MODULE_ANON, "anon_inode:[perf_event]" },
		{ "[vdso]", PM_MODULE_VDSO, "[vdso]" },
		{ "[kernel]", PM_MODULE_KERNEL, "[kernel]" },
		{ "[kernel.kallsyms]_text", PM_MODULE_KERNEL, "[kernel.kallsyms]_text" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		size_t len = 999;

		if (pm_module_kind_of(cases[i].path, &len) != cases[i].kind)
			fail_msg("kind of \"%s\"", cases[i].path);
		assert_int_equal(len, strlen(cases[i].counts));
		assert_memory_equal(cases[i].path, cases[i].counts, len);
	}
}

/* ---- spaces -------------------------------------------------------------------------- */

/* A model that cannot be wrong: a module number for each unit of a small space. */
enum {
	UNITS = 64,
};
struct model {
	uint32_t module[UNITS]; /* 0: nothing */
	uint64_t pgoff[UNITS];
};

static void check_against(const struct pm_space *space, const struct model *model)
{
	for (size_t i = 0; i < space->maps.len; i++) {
		assert_true(space->maps.data[i].start < space->maps.data[i].end);
		if (i > 0)
			assert_true(space->maps.data[i - 1].end <=
				    space->maps.data[i].start);
	}
	for (uint64_t unit = 0; unit < UNITS; unit++) {
		const struct pm_mapping *found = pm_space_find(space, unit);

		if (model->module[unit] == 0) {
			assert_null(found);
			continue;
		}
		assert_non_null(found);
		assert_int_equal(found->module, model->module[unit]);
		assert_int_equal(unit - found->start + found->pgoff, model->pgoff[unit]);
	}
}

static void space_agrees_with_a_model(void **state)
{
	uint64_t random = 1;

	for (int round = 0; round < 200; round++) {
		struct pm_space space = { 0 };
		struct model model = { 0 };

		for (uint32_t step = 1; step <= 60; step++) {
			uint64_t start, end, pgoff;

			random = pm_hash_mix(random, step);
			start = random % UNITS;
			end = start + 1 + (random >> 8) % 12;
			if (end > UNITS)
				end = UNITS;
			pgoff = random >> 20 & 0xffff;
			struct pm_mapping mapping = { start, end, pgoff, step };
			bool cut = (random >> 40) % 4 == 0;

			assert_true(pm_space_replace(&space, start, end,
						     cut ? NULL : &mapping) >= 0);
			for (uint64_t unit = start; unit < end; unit++) {
				model.module[unit] = cut ? 0 : step;
				model.pgoff[unit] = pgoff + unit - start;
			}
			check_against(&space, &model);
		}
		pm_vec_release(&space.maps);
	}
}

static void space_tells_whether_it_changed(void **state)
{
	struct pm_space space = { 0 };
	struct pm_mapping mapping = { 10, 20, 0, 1 };

	assert_int_equal(pm_space_replace(&space, 0, 100, NULL), 0);
	assert_int_equal(pm_space_replace(&space, 10, 20, &mapping), 1);
	assert_int_equal(pm_space_replace(&space, 10, 20, &mapping), 0);
	assert_int_equal(pm_space_replace(&space, 0, 10, NULL), 0);
	assert_int_equal(pm_space_replace(&space, 20, 30, NULL), 0);
	assert_int_equal(pm_space_replace(&space, 19, 30, NULL), 1);
	assert_null(pm_space_find(&space, 19));
	assert_non_null(pm_space_find(&space, 18));
	pm_vec_release(&space.maps);
}

static void space_reaches_to_the_last_address(void **state)
{
	struct pm_space space = { 0 };
	struct pm_mapping mapping = { UINT64_MAX - 1, UINT64_MAX, 0, 1 };

	assert_null(pm_space_find(&space, 0));
	assert_int_equal(pm_space_replace(&space, mapping.start, mapping.end, &mapping),
			 1);
	assert_non_null(pm_space_find(&space, UINT64_MAX - 1));
	assert_null(pm_space_find(&space, UINT64_MAX));
	assert_null(pm_space_find(&space, UINT64_MAX - 2));
	pm_vec_release(&space.maps);
}

static void space_does_not_grow_without_end(void **state)
{
	struct pm_space space = { 0 };

	for (uint64_t i = 0; i < PM_SPACE_MAPS_MAX + 10; i++) {
		struct pm_mapping mapping = { i * 10, i * 10 + 5, 0, 1 };

		assert_int_equal(
			pm_space_replace(&space, mapping.start, mapping.end, &mapping),
			1);
		assert_non_null(pm_space_find(&space, i * 10));
	}
	assert_int_equal(space.maps.len, 10);
	pm_vec_release(&space.maps);
}

/* ---- build-ids ----------------------------------------------------------------------- */

/* The build-id in the notes that the loader has mapped: another way to the same truth. */
static int compare_build_id(struct dl_phdr_info *info, size_t size, void *compared)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		struct pm_reader notes;

		if (phdr->p_type != PT_NOTE || phdr->p_align == 8 || path[0] != '/')
			continue;
		pm_reader_init(&notes,
			       (const void *)(uintptr_t)(info->dlpi_addr + phdr->p_vaddr),
			       phdr->p_memsz);
		while (pm_reader_left(&notes) >= 12) {
			uint32_t namesz = pm_reader_u32(&notes);
			uint32_t descsz = pm_reader_u32(&notes);
			uint32_t type = pm_reader_u32(&notes);
			uint8_t id[PM_MODULE_BUILD_ID_MAX], len = 0;
			const void *desc;

			pm_reader_bytes(&notes, (namesz + 3) & ~3u);
			desc = pm_reader_bytes(&notes, (descsz + 3) & ~3u);
			assert_non_null(desc);
			if (type != NT_GNU_BUILD_ID)
				continue;
			PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

			assert_true(fd >= 0);
			assert_int_equal(pm_elf_build_id(fd, id, &len), 0);
			assert_int_equal(len, descsz);
			assert_memory_equal(id, desc, len);
			++*(int *)compared;
		}
	}
	return 0;
}

static void build_ids_of_loaded_files(void **state)
{
	int compared = 0;

	dl_iterate_phdr(compare_build_id, &compared);
	assert_true(compared > 0);
}

static int memfd_of(const void *bytes, size_t len)
{
	int fd = memfd_create("test-maps", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	return fd;
}

static int build_id_of(const void *bytes, size_t len, uint8_t id[PM_MODULE_BUILD_ID_MAX],
		       uint8_t *id_len)
{
	PM_AUTO_CLOSE int fd = memfd_of(bytes, len);

	return pm_elf_build_id(fd, id, id_len);
}

struct note {
	Elf64_Nhdr header;
	char name[4];
	uint8_t desc[8];
};
#define BUILD_ID_NOTE                             \
	{                                         \
		{ 4, 8, NT_GNU_BUILD_ID }, "GNU", \
		{                                 \
			1, 2, 3, 4, 5, 6, 7, 8    \
		}                                 \
	}

struct small64 {
	Elf64_Ehdr header;
	Elf64_Phdr phdr;
	Elf64_Shdr shdr;
	struct note first, second;
};

static struct small64 small64(void)
{
	return (struct small64){
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			    .e_phoff = offsetof(struct small64, phdr),
			    .e_phnum = 1,
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_shoff = offsetof(struct small64, shdr),
			    .e_shentsize = sizeof(Elf64_Shdr) },
		.phdr = { .p_type = PT_NOTE,
			  .p_offset = offsetof(struct small64, first),
			  .p_filesz = 2 * sizeof(struct note),
			  .p_align = 4 },
		.shdr = { .sh_type = SHT_NOTE,
			  .sh_offset = offsetof(struct small64, second),
			  .sh_size = sizeof(struct note),
			  .sh_addralign = 4 },
		.first = { { 4, 8, NT_GNU_PROPERTY_TYPE_0 }, "GNU", { 9 } },
		.second = BUILD_ID_NOTE,
	};
}

static void build_id_behind_another_note(void **state)
{
	struct small64 elf = small64();
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len;

	assert_int_equal(build_id_of(&elf, sizeof(elf), id, &len), 0);
	assert_int_equal(len, 8);
	assert_memory_equal(id, elf.second.desc, 8);
}

static void build_id_in_a_section_only(void **state)
{
	struct small64 elf = small64();
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len = 0;

	elf.header.e_phnum = 0;
	elf.header.e_shnum = 1;
	assert_int_equal(build_id_of(&elf, sizeof(elf), id, &len), 0);
	assert_int_equal(len, 8);
	assert_memory_equal(id, elf.second.desc, 8);
}

static void build_id_of_32_bits(void **state)
{
	struct {
		Elf32_Ehdr header;
		Elf32_Phdr phdr;
		struct note note;
	} elf = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB },
			    .e_phoff = sizeof(Elf32_Ehdr),
			    .e_phnum = 1,
			    .e_phentsize = sizeof(Elf32_Phdr) },
		.phdr = { .p_type = PT_NOTE,
			  .p_offset = sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
			  .p_filesz = sizeof(struct note),
			  .p_align = 4 },
		.note = BUILD_ID_NOTE,
	};
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len = 0;

	assert_int_equal(build_id_of(&elf, sizeof(elf), id, &len), 0);
	assert_int_equal(len, 8);
	assert_memory_equal(id, elf.note.desc, 8);
}

static void build_id_of_what_is_no_elf(void **state)
{
	struct small64 elf = small64();
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len = 99;

	assert_int_equal(build_id_of("", 0, id, &len), -ENOEXEC);
	assert_int_equal(build_id_of("#!/bin/sh\n", 10, id, &len), -ENOEXEC);
	assert_int_equal(build_id_of(&elf, 40, id, &len), -ENOEXEC);
	elf.header.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(build_id_of(&elf, sizeof(elf), id, &len), -ENOEXEC);
	elf.header.e_ident[EI_DATA] = ELFDATA2LSB;
	elf.header.e_ident[EI_CLASS] = 3;
	assert_int_equal(build_id_of(&elf, sizeof(elf), id, &len), -ENOEXEC);
	assert_int_equal(pm_elf_build_id(-1, id, &len), -EBADF);
	assert_int_equal(len, 99);
}

static void build_id_that_is_not_there(void **state)
{
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len = 99;
	struct small64 elf;

#define EXPECT_NONE(change)                                                           \
	do {                                                                          \
		elf = small64();                                                      \
		change;                                                               \
		assert_int_equal(build_id_of(&elf, sizeof(elf), id, &len), -ENODATA); \
		assert_int_equal(len, 99);                                            \
	} while (0)
	EXPECT_NONE(elf.second.header.n_type = 1);
	EXPECT_NONE(elf.second.name[0] = 'g');
	EXPECT_NONE(elf.second.header.n_descsz = 0);
	EXPECT_NONE(elf.second.header.n_descsz = 9);
	EXPECT_NONE(elf.second.header.n_descsz = UINT32_MAX);
	EXPECT_NONE(elf.first.header.n_namesz = UINT32_MAX);
	EXPECT_NONE(elf.first.header.n_descsz = UINT32_MAX);
	EXPECT_NONE(elf.phdr.p_offset = UINT64_MAX - 7);
	EXPECT_NONE(elf.phdr.p_offset = sizeof(elf));
	EXPECT_NONE(elf.phdr.p_filesz = sizeof(struct note));
	EXPECT_NONE(elf.header.e_phoff = UINT64_MAX);
	EXPECT_NONE(elf.header.e_phoff = INT64_MAX);
	EXPECT_NONE(elf.header.e_phentsize = 0);
	EXPECT_NONE((elf.header.e_phnum = 0, elf.header.e_shnum = UINT16_MAX,
		     elf.shdr.sh_type = SHT_PROGBITS));
#undef EXPECT_NONE
}

/* 65,535 segments, each claiming endless notes of the smallest size. */
static void notes_without_end_come_to_an_end(void **state)
{
	struct small64 elf = small64();
	PM_AUTO_CLOSE int fd = -1;
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len = 99;

	elf.header.e_phnum = UINT16_MAX;
	elf.header.e_phentsize = sizeof(Elf64_Phdr);
	elf.second.header.n_type = 1;
	elf.phdr.p_filesz = INT64_MAX / 2;
	fd = memfd_of(&elf, sizeof(elf));
	for (int i = 1; i < UINT16_MAX; i++)
		assert_int_equal(pwrite(fd, &elf.phdr, sizeof(elf.phdr),
					(off_t)(elf.header.e_phoff +
						(size_t)i * sizeof(elf.phdr))),
				 sizeof(elf.phdr));
	/* Behind it all: zeros, which are notes of 12 bytes. */
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	assert_int_equal(pm_elf_build_id(fd, id, &len), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_of_a_file),
		cmocka_unit_test(line_of_the_top_of_memory),
		cmocka_unit_test(line_without_a_name),
		cmocka_unit_test(line_with_an_odd_name),
		cmocka_unit_test(lines_of_another_form_are_refused),
		cmocka_unit_test(every_cut_of_a_line_is_refused_or_right),
		cmocka_unit_test(kinds_of_names),
		cmocka_unit_test(space_agrees_with_a_model),
		cmocka_unit_test(space_tells_whether_it_changed),
		cmocka_unit_test(space_reaches_to_the_last_address),
		cmocka_unit_test(space_does_not_grow_without_end),
		cmocka_unit_test(build_ids_of_loaded_files),
		cmocka_unit_test(build_id_behind_another_note),
		cmocka_unit_test(build_id_in_a_section_only),
		cmocka_unit_test(build_id_of_32_bits),
		cmocka_unit_test(build_id_of_what_is_no_elf),
		cmocka_unit_test(build_id_that_is_not_there),
		cmocka_unit_test(notes_without_end_come_to_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

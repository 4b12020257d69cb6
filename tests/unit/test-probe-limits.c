/* SPDX-License-Identifier: MIT */
/* Files that are made to want more memory, time or events than a probe is worth. */
#include "pm/counters.h"
#include "pm/probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "src/probe/probe-internal.h"

enum {
	FUNCTIONS = PM_PROBE_PLACES_MAX / 2 + 1, /* of each file */
	NAME_BYTES = 8, /* "f000000" */
	ORIGINS = 300000,
	ORIGIN_BYTES = 4000,
	ROOM_KB = 256 << 10,
};

/* ---- a library with many functions -------------------------------------------------------- */

struct library {
	Elf64_Ehdr header;
	Elf64_Phdr load;
	Elf64_Shdr sections[3]; /* none, .symtab, its strings */
	Elf64_Sym symbols[1 + FUNCTIONS];
	char names[NAME_BYTES * (1 + FUNCTIONS)];
	char code[4 * FUNCTIONS];
};

static void fill_header(Elf64_Ehdr *header)
{
	*header = (Elf64_Ehdr){ .e_type = ET_DYN,
				.e_machine = EM_X86_64,
				.e_version = EV_CURRENT,
				.e_ehsize = sizeof(Elf64_Ehdr),
				.e_phentsize = sizeof(Elf64_Phdr),
				.e_shentsize = sizeof(Elf64_Shdr) };
	memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	header->e_ident[EI_VERSION] = EV_CURRENT;
}

static void write_library(int fd, uint16_t machine, const void *code, size_t code_len)
{
	struct library *library = calloc(1, sizeof(*library));

	assert_non_null(library);
	fill_header(&library->header);
	library->header.e_machine = machine;
	memcpy(library->code, code, code_len);
	library->header.e_phnum = 1;
	library->header.e_phoff = offsetof(struct library, load);
	library->header.e_shnum = 3;
	library->header.e_shoff = offsetof(struct library, sections);
	library->load = (Elf64_Phdr){ .p_type = PT_LOAD,
				      .p_flags = PF_R | PF_X,
				      .p_filesz = sizeof(*library),
				      .p_memsz = sizeof(*library) };
	library->sections[1] =
		(Elf64_Shdr){ .sh_type = SHT_SYMTAB,
			      .sh_link = 2,
			      .sh_offset = offsetof(struct library, symbols),
			      .sh_size = sizeof(library->symbols) };
	library->sections[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					     .sh_offset = offsetof(struct library, names),
					     .sh_size = sizeof(library->names) };
	for (uint32_t i = 1; i <= FUNCTIONS; i++) {
		library->symbols[i] =
			(Elf64_Sym){ .st_name = i * NAME_BYTES,
				     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				     .st_shndx = 1,
				     .st_value =
					     offsetof(struct library, code) + 4 * (i - 1),
				     .st_size = 4 };
		snprintf(library->names + i * NAME_BYTES, NAME_BYTES, "f%06u",
			 i % 1000000);
	}
	assert_int_equal(write(fd, library, sizeof(*library)), sizeof(*library));
	free(library);
}

/* Mapped as code, so that it is one of this process. */
static void *map_library(const char *folder, char path[128])
{
	int fd PM_AUTO_CLOSE = -1;
	void *at;

	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(path, 128, "%s/libmany.so", folder);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	write_library(fd, EM_X86_64, "", 0);
	at = mmap(NULL, sizeof(struct library), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
		  0);
	return at == MAP_FAILED ? NULL : at;
}

static int resolve_all(struct pm_event_specs *specs, struct pm_error *err)
{
	struct pm_event_spec spec = {
		.kind = PM_EVENT_UPROBE,
		.place = { .wanted = true, .file = "libmany", .symbol = "f0*" }
	};
	struct pm_probes probes = { 0 };
	pid_t pid = getpid();
	struct pm_probe_context context = { .pids = &pid, .pids_len = 1 };
	int code;

	assert_int_equal(pm_vec_push(&specs->list, spec), 0);
	code = pm_probes_resolve(&probes, specs, &context, err);
	pm_probes_release(&probes);
	return code;
}

/* The limit is of a spec, however many files it means. */
static void test_places_of_all_files(void **state)
{
	char root[] = "/tmp/pmrec-limits-XXXXXX", folder[2][48], path[2][128];
	void *at[2];

	assert_non_null(mkdtemp(root));
	for (int i = 0; i < 2; i++) {
		struct pm_event_specs specs = { 0 };
		struct pm_error err = { 0 };
		int code;

		snprintf(folder[i], sizeof(folder[i]), "%s/%d", root, i);
		at[i] = map_library(folder[i], path[i]);
		if (!at[i])
			break;
		code = resolve_all(&specs, &err);
		if (code != (i == 0 ? 0 : -E2BIG))
			fail_msg("%d: %d, %s", i, code, err.text);
		assert_int_equal(specs.list.len, i == 0 ? FUNCTIONS : 1);
		pm_event_specs_release(&specs);
	}
	for (int i = 0; i < 2; i++) {
		unlink(path[i]);
		rmdir(folder[i]);
	}
	rmdir(root);
	if (!at[0] || !at[1]) {
		print_message("/tmp is mounted noexec\n");
		skip();
	}
	for (int i = 0; i < 2; i++)
		munmap(at[i], sizeof(struct library));
}

/* A range over all of them is one over too many, and nothing is appended then. */
static void test_functions_of_ranges(void **state)
{
	char path[] = "/tmp/pmrec-limits-XXXXXX";
	int fd PM_AUTO_CLOSE = mkstemp(path);
	struct pm_probe_binary binary = { .fd = fd, .path = path };
	struct pm_probe_piece piece = { 0, sizeof(struct library) };
	struct pm_probe_context context = { 0 };
	struct pm_probe_functions functions = { 0 };
	struct pm_error err = { 0 };

	assert_true(fd >= 0);
	write_library(fd, EM_X86_64, "", 0);
	assert_int_equal(pm_probe_find_within(&functions, &binary, &context, &piece, 1,
					      FUNCTIONS - 1, &err),
			 -E2BIG);
	assert_int_equal(functions.list.len, 0);
	assert_int_equal(pm_probe_find_within(&functions, &binary, &context, &piece, 1,
					      FUNCTIONS, &err),
			 0);
	assert_int_equal(functions.list.len, FUNCTIONS);
	for (size_t i = 1; i < FUNCTIONS; i++)
		assert_true(functions.list.data[i - 1].high <=
			    functions.list.data[i].low);
	pm_probe_functions_release(&functions);
	unlink(path);
}

/* ---- where the kernel takes no probe -------------------------------------------------------- */

/* What becomes of probes on the functions that @symbol means: how many there are, or an error,
 * and what is told. */
static int resolve_in(const char *file, const char *symbol, char told[512])
{
	struct pm_event_spec spec = {
		.kind = PM_EVENT_UPROBE,
		.place = { .wanted = true, .file = file, .symbol = symbol }
	};
	struct pm_probe_context context = { 0 };
	struct pm_event_specs specs = { 0 };
	struct pm_probes probes = { 0 };
	struct pm_error err = { 0 };
	int code;

	snprintf(spec.requested, sizeof(spec.requested), "%s", symbol);
	assert_int_equal(pm_vec_push(&specs.list, spec), 0);
	code = pm_probes_resolve(&probes, &specs, &context, &err);
	told[0] = '\0';
	if (code < 0 || probes.notes.len > 0)
		snprintf(told, 512, "%s", code < 0 ? err.text : probes.notes.data[0]);
	assert_true(probes.notes.len <= 1);
	code = code < 0 ? code : (int)specs.list.len;
	pm_probes_release(&probes);
	pm_event_specs_release(&specs);
	return code;
}

/* Whether the kernel says here what it takes of that processor's instructions. */
static bool asks_about(uint16_t machine)
{
	return pm_probe_is_ours(machine) && pm_hits_check(NULL) == 0;
}

static void test_refused_places(void **state)
{
	static const uint32_t arm[] = {
		0x1c000040, /* ldr s0, literal */
		0x9c000040, /* ldr q0, literal */
		0x58000040, /* ldr x0, literal */
		0xd50323bf, /* autiasp */
		0xd503233f, /* paciasp */
	};
	static const uint8_t x86[] = { 0xf0, 0x48, 0xff, 0x07, /* lock incq (%rdi) */
				       0x48, 0xff, 0x07, 0xc3 };
	char path[] = "/tmp/pmrec-places-XXXXXX", told[512];
	int fd PM_AUTO_CLOSE = mkstemp(path);

	assert_true(fd >= 0);
	write_library(fd, EM_AARCH64, arm, sizeof(arm));
	for (char name[] = "f000001"; name[6] <= '3'; name[6]++) {
		assert_int_equal(resolve_in(path, name, told), -EINVAL);
		assert_non_null(strstr(told, "load something else"));
	}
	/* The kernel cannot be asked about another processor than ours. */
	assert_int_equal(resolve_in(path, "f000004", told),
			 asks_about(EM_AARCH64) ? -EINVAL : 1);
	assert_true(!asks_about(EM_AARCH64) || strstr(told, "takes no probe"));
	assert_int_equal(resolve_in(path, "f000005", told), 1);
	assert_string_equal(told, "");
	assert_int_equal(resolve_in(path, "f00000[235]", told), 1);
	assert_non_null(strstr(told, "2 places were left out"));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	write_library(fd, EM_X86_64, x86, sizeof(x86));
	assert_int_equal(resolve_in(path, "f000001", told),
			 asks_about(EM_X86_64) ? -EINVAL : 1);
	assert_true(!asks_about(EM_X86_64) || strstr(told, "takes no probe"));
	assert_int_equal(resolve_in(path, "f000002", told), 1);
	assert_string_equal(told, "");
	assert_int_equal(resolve_in(path, "f00000[12]", told),
			 asks_about(EM_X86_64) ? 1 : 2);
	assert_true(!asks_about(EM_X86_64) || strstr(told, "1 of 2 places"));
	unlink(path);
}

/* ---- a search path of a gigabyte ------------------------------------------------------------ */

struct program {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Dyn dynamic[5];
	char strings[16 + 7 * ORIGINS + 1]; /* "", "libx.so", RUNPATH */
};

static int open_program(void)
{
	struct program *program = calloc(1, sizeof(*program));
	int fd = memfd_create("program", MFD_CLOEXEC);

	assert_non_null(program);
	assert_true(fd >= 0);
	fill_header(&program->header);
	program->header.e_phnum = 2;
	program->header.e_phoff = offsetof(struct program, segments);
	program->segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
					     .p_flags = PF_R,
					     .p_filesz = sizeof(*program) };
	program->segments[1] =
		(Elf64_Phdr){ .p_type = PT_DYNAMIC,
			      .p_offset = offsetof(struct program, dynamic),
			      .p_filesz = sizeof(program->dynamic) };
	program->dynamic[0] = (Elf64_Dyn){ DT_NEEDED, { 1 } };
	program->dynamic[1] = (Elf64_Dyn){ DT_RUNPATH, { 16 } };
	program->dynamic[2] =
		(Elf64_Dyn){ DT_STRTAB, { offsetof(struct program, strings) } };
	program->dynamic[3] = (Elf64_Dyn){ DT_STRSZ, { sizeof(program->strings) } };
	strcpy(program->strings + 1, "libx.so");
	for (size_t i = 0; i < ORIGINS; i++)
		memcpy(program->strings + 16 + 7 * i, "$ORIGIN", 7);
	assert_int_equal(write(fd, program, sizeof(*program)), sizeof(*program));
	free(program);
	return fd;
}

static int none(void *user, const char *name, const char *path)
{
	++*(size_t *)user;
	return 0;
}

static void test_origins(void **state)
{
	struct pm_probe_abi abi = { .machine = EM_X86_64, .is_64 = true };
	int fd PM_AUTO_CLOSE = open_program();
	char path[ORIGIN_BYTES + 4];
	struct rusage before, after;
	size_t found = 0;

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	strcpy(path + ORIGIN_BYTES, "/p");
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(pm_probe_needed_each(fd, path, &abi, none, &found), 0);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(found, 0);
	print_message("%ld KiB more\n", after.ru_maxrss - before.ru_maxrss);
	assert_true(after.ru_maxrss - before.ru_maxrss < ROOM_KB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places_of_all_files),
		cmocka_unit_test(test_functions_of_ranges),
		cmocka_unit_test(test_refused_places),
		cmocka_unit_test(test_origins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* ELF files with holes that cost their maker nothing, and should cost us nothing. */
#include "unwind/unwind-internal.h"

#include <elf.h>
#include <sys/mman.h>

#include "cfi-bytes.h"

enum {
	NAMES = 512, /* offsets in the file */
	FRAME = 4096,
	HOLE_BYTES = 1 << 30,
};

static const char names[] = "\0.debug_frame";

/* A header, sections 1 (names, of @names_len) and 2 (.debug_frame, of @frame_len), a size. */
static int make(Elf64_Half phnum, uint64_t names_len, const struct bytes *frame,
		uint64_t frame_len, uint64_t file_len)
{
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					   EV_CURRENT },
			      .e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_ehsize = sizeof(Elf64_Ehdr),
			      .e_phoff = FRAME,
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = phnum,
			      .e_shoff = sizeof(Elf64_Ehdr),
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shnum = 3,
			      .e_shstrndx = 1 };
	Elf64_Shdr sections[3] = {
		{ .sh_info = HOLE_BYTES / sizeof(Elf64_Phdr) }, /* of PN_XNUM */
		{ .sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = names_len },
		{ .sh_name = 1,
		  .sh_type = SHT_PROGBITS,
		  .sh_offset = FRAME,
		  .sh_size = frame_len },
	};
	int fd = memfd_create("hostile", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(pwrite(fd, sections, sizeof(sections), sizeof(header)),
			 sizeof(sections));
	assert_int_equal(pwrite(fd, names, sizeof(names), NAMES), sizeof(names));
	if (frame)
		assert_int_equal(pwrite(fd, frame->vec.data, frame->vec.len, FRAME),
				 frame->vec.len);
	if (file_len)
		assert_int_equal(ftruncate(fd, (off_t)file_len), 0);
	return fd;
}

static void assert_refused(int fd)
{
	struct pm_unw_module *module = NULL, *parts;

	assert_int_equal(pm_unw_module_open(&module, fd, NULL), -ENOEXEC);
	assert_int_equal(
		pm_unw_module_from_parts(&parts, &(struct pm_unw_parts){ 0 }, NULL), 0);
	assert_int_equal(pm_unw_module_add_debug(parts, fd, NULL), -ENOEXEC);
	pm_unw_module_free(parts);
}

/* libelf would read all of them into memory. */
static void test_endless_names(void **state)
{
	PM_AUTO_CLOSE int fd = make(0, HOLE_BYTES, NULL, 8, NAMES + HOLE_BYTES);

	(void)state;
	assert_refused(fd);
}

static void test_endless_program_headers(void **state)
{
	PM_AUTO_CLOSE int fd = make(PN_XNUM, sizeof(names), NULL, 8, FRAME + HOLE_BYTES);

	(void)state;
	assert_refused(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_endless_names),
		cmocka_unit_test(test_endless_program_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

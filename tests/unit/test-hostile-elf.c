/* SPDX-License-Identifier: MIT */
/* ELF files with holes that cost their maker nothing, and should cost us nothing. */
#include "unwind/unwind-parts.h"

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

/* DWARF 5 §6.4.1: length, id, version 3, no augmentation, factors, return address; CFA. */
static void put_cie(struct bytes *to)
{
	size_t begin = begin_entry(to, false);

	put_u32(to, UINT32_MAX);
	put(to, (uint8_t[]){ 3, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, 8 }, 8);
	end_entry(to, begin, false);
}

static void put_fde(struct bytes *to, uint64_t cie, uint64_t start)
{
	size_t begin = begin_entry(to, false);

	put_u32(to, cie);
	put_u64(to, start);
	put_u64(to, 1);
	end_entry(to, begin, false);
}

/*
 * What a look-up leaves in memory of a .debug_frame of @len bytes, of which @frame is the
 * beginning and the rest a hole up to @file_len.
 */
static size_t kept_after_look_up(const struct bytes *frame, uint64_t len,
				 uint64_t file_len, int rc)
{
	PM_AUTO_CLOSE int fd = make(0, sizeof(names), frame, len, file_len);
	struct pm_unw_module *module;
	struct pm_unw_fde fde;
	size_t kept;

	assert_int_equal(pm_unw_module_open(&module, fd, NULL), 0);
	assert_int_equal(
		pm_vec_push(&module->loads, (struct pm_unw_load){ .filesz = 1 << 20,
								  .executable = true }),
		0);
	assert_int_equal(pm_unw_fde_find(module, 0x1000, &fde), rc);
	kept = module->debug_frame.budget;
	pm_unw_module_free(module);
	return kept;
}

enum {
	PIECE_BYTES = 1 << 16, /* what is read at once */
	HUGE_BYTES = 200 << 20,
};

/* What could not be read counts neither once nor again and again. */
static void test_behind_the_end(void **state)
{
	struct bytes frame = { 0 };

	(void)state;
	put_cie(&frame);
	put_fde(&frame, 0, 0x1000);
	for (uint64_t i = 0; i < 1000; i++)
		put_fde(&frame, 0x1000000 + i % 16 * PIECE_BYTES, 0x1000);
	assert_int_equal(kept_after_look_up(&frame, HUGE_BYTES, FRAME + PIECE_BYTES, 0),
			 PIECE_BYTES);
	pm_vec_release(&frame.vec);
}

static void test_hole(void **state)
{
	struct bytes frame = { 0 };

	(void)state;
	put_cie(&frame);
	assert_int_equal(
		kept_after_look_up(&frame, HUGE_BYTES, FRAME + HUGE_BYTES, -ENOENT), 0);
	put_fde(&frame, 0, 0x1000);
	assert_int_equal(kept_after_look_up(&frame, HUGE_BYTES, FRAME + HUGE_BYTES, 0),
			 PIECE_BYTES);
	/* A CIE that is nearly all of it is not looked at … */
	put_fde(&frame, PIECE_BYTES, 0x2000);
	while (frame.vec.len < PIECE_BYTES)
		put_u32(&frame, 0x10000);
	put_u32(&frame, HUGE_BYTES - 2 * PIECE_BYTES);
	assert_true(kept_after_look_up(&frame, HUGE_BYTES, FRAME + HUGE_BYTES, 0) <=
		    4 * PIECE_BYTES);
	pm_vec_release(&frame.vec);
}

/* … and an FDE as large leaves room for what other modules need. */
static void test_huge_fde(void **state)
{
	struct bytes frame = { 0 };

	(void)state;
	put_cie(&frame);
	put_fde(&frame, 0, 0x1000);
	put_u32(&frame, HUGE_BYTES - PIECE_BYTES);
	assert_true(kept_after_look_up(&frame, HUGE_BYTES, FRAME + HUGE_BYTES, 0) <=
		    64 << 20);
	pm_vec_release(&frame.vec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_endless_names),
		cmocka_unit_test(test_endless_program_headers),
		cmocka_unit_test(test_behind_the_end),
		cmocka_unit_test(test_hole),
		cmocka_unit_test(test_huge_fde),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * CFI sections as few tools write them, and as a hostile one would: each is an ELF image made
 * here, so what has to be found in it is known.
 */
#include "unwind/unwind-parts.h"

#include <elf.h>
#include <gelf.h>

#include "cfi-bytes.h"

enum {
	HDR = 0x800, /* addresses; offsets in the file are the same */
	EH_FRAME = 0x1000,
	CODE = 0x5000,
};

/* Augmentation data or, for "eh", what stands behind the augmentation. Returns its offset. */
static size_t put_cie(struct bytes *to, const char *letters, const void *data, size_t len,
		      bool is_64)
{
	static const uint8_t program[] = { DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1 };
	size_t at = to->vec.len, begin = begin_entry(to, is_64);

	put_u32(to, 0);
	put_u8(to, 1);
	put(to, letters, strlen(letters) + 1);
	if (letters[0] == 'e')
		put(to, data, len);
	put(to, "\x01\x78\x10", 3); /* factors 1 and -8, return address in 16 */
	if (letters[0] == 'z') {
		put_u8(to, (uint8_t)len);
		put(to, data, len);
	}
	put(to, program, sizeof(program));
	end_entry(to, begin, is_64);
	return at;
}

/* CFA = rsp + 16. Returns its offset. */
static size_t put_fde(struct bytes *to, size_t cie, uint64_t start, uint64_t len,
		      bool is_64)
{
	size_t at = to->vec.len, begin = begin_entry(to, is_64);

	put_u32(to, begin - cie);
	put_u32(to, start - (EH_FRAME + to->vec.len));
	put_u32(to, len);
	put_u8(to, 0);
	put(to, (uint8_t[]){ DW_CFA_def_cfa_offset, 16 }, 2);
	end_entry(to, begin, is_64);
	return at;
}

/* An image of @loads that has @eh_frame and, with @hdr, PT_GNU_EH_FRAME. */
static struct pm_unw_module *make(const struct bytes *eh_frame, const struct bytes *hdr,
				  const Elf64_Phdr *loads, size_t loads_len)
{
	static const char names[] = "\0.eh_frame\0.names";
	size_t size = EH_FRAME + eh_frame->vec.len, names_at = size + 256;
	struct pm_unw_module *module;
	PM_AUTO_FREE uint8_t *image = calloc(1, names_at + 256);
	Elf64_Ehdr *ehdr = (void *)image;
	Elf64_Phdr *phdrs = (void *)(image + sizeof(*ehdr));
	Elf64_Shdr shdrs[3] = { 0 };

	assert_non_null(image);
	memcpy(ehdr->e_ident, ELFMAG, SELFMAG);
	ehdr->e_ident[EI_CLASS] = ELFCLASS64;
	ehdr->e_ident[EI_DATA] = ELFDATA2LSB;
	ehdr->e_ident[EI_VERSION] = ehdr->e_version = EV_CURRENT;
	ehdr->e_type = ET_DYN;
	ehdr->e_machine = EM_X86_64;
	ehdr->e_ehsize = sizeof(*ehdr);
	ehdr->e_phoff = sizeof(*ehdr);
	ehdr->e_phentsize = sizeof(*phdrs);
	ehdr->e_phnum = (Elf64_Half)(loads_len + (hdr ? 1 : 0));
	ehdr->e_shoff = (size + 7) & ~(size_t)7;
	ehdr->e_shentsize = sizeof(*shdrs);
	ehdr->e_shnum = PM_ARRAY_LEN(shdrs);
	ehdr->e_shstrndx = 2;
	for (size_t i = 0; i < loads_len; i++)
		phdrs[i] = loads[i];
	if (hdr) {
		phdrs[loads_len] = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME,
						 .p_offset = HDR,
						 .p_vaddr = HDR,
						 .p_filesz = hdr->vec.len };
		memcpy(image + HDR, hdr->vec.data, hdr->vec.len);
	}
	memcpy(image + EH_FRAME, eh_frame->vec.data, eh_frame->vec.len);
	shdrs[1] = (Elf64_Shdr){ .sh_name = 1,
				 .sh_type = SHT_PROGBITS,
				 .sh_addr = EH_FRAME,
				 .sh_offset = EH_FRAME,
				 .sh_size = eh_frame->vec.len };
	shdrs[2] = (Elf64_Shdr){ .sh_name = 11,
				 .sh_type = SHT_STRTAB,
				 .sh_offset = names_at,
				 .sh_size = sizeof(names) };
	memcpy(image + ehdr->e_shoff, shdrs, sizeof(shdrs));
	memcpy(image + names_at, names, sizeof(names));
	assert_int_equal(pm_unw_module_from_memory(&module, image, names_at + 256, NULL),
			 0);
	return module;
}

static const Elf64_Phdr one_load = {
	.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 0x10000, .p_memsz = 0x10000
};

static void assert_fde(struct pm_unw_module *module, uint64_t start, bool signal)
{
	struct pm_unw_fde fde;
	struct pm_unw_row row;

	assert_int_equal(pm_unw_fde_find(module, start + 8, &fde), 0);
	assert_int_equal(fde.start, start);
	assert_int_equal(fde.end, start + 0x100);
	assert_int_equal(fde.signal, signal);
	assert_int_equal(pm_unw_cfi_row(&fde, start + 8, &row), 0);
	assert_int_equal(row.cfa_offset, 16);
	assert_int_equal(row.regs[16].value, -8);
}

/* One CIE, one FDE. */
static void check_cie(const char *letters, const void *data, size_t len, bool is_64)
{
	struct bytes eh_frame = { 0 };
	struct pm_unw_module *module;
	size_t cie = put_cie(&eh_frame, letters, data, len, is_64);

	put_fde(&eh_frame, cie, CODE, 0x100, is_64);
	module = make(&eh_frame, NULL, &one_load, 1);
	assert_fde(module, CODE, strchr(letters, 'S'));
	pm_unw_module_free(module);
	pm_vec_release(&eh_frame.vec);
}

static void test_augmentations(void **state)
{
	/* Behind 4 + 4 + 1 + 5 + 3 + 1 bytes of a CIE and the encoding the personality is
	 * padded to a multiple of 8. */
	static const uint8_t aligned[] = {
		DW_EH_PE_aligned, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, PCREL, PCREL
	};
	static const uint8_t omitted[] = { DW_EH_PE_omit, DW_EH_PE_omit, PCREL };
	static const uint8_t indirect[] = {
		DW_EH_PE_indirect | PCREL, 1, 2, 3, 4, PCREL, PCREL
	};

	(void)state;
	check_cie("zR", (uint8_t[]){ PCREL }, 1, false);
	check_cie("zRS", (uint8_t[]){ PCREL }, 1, false);
	check_cie("zPLR", indirect, sizeof(indirect), false);
	check_cie("zPLR", omitted, sizeof(omitted), false);
	check_cie("zPLR", aligned, sizeof(aligned), false);
	/* The format of 64 bits, whose ids have 4 bytes here (LSB 10.6.1). */
	check_cie("zR", (uint8_t[]){ PCREL }, 1, true);
}

/* `ld -r` leaves the terminator of each crtend.o where it was. */
static void test_terminator_in_the_middle(void **state)
{
	struct bytes eh_frame = { 0 };
	struct pm_unw_module *module;

	(void)state;
	put_fde(&eh_frame, put_cie(&eh_frame, "zR", (uint8_t[]){ PCREL }, 1, false), CODE,
		0x100, false);
	put_u64(&eh_frame, 0);
	put_fde(&eh_frame, put_cie(&eh_frame, "zR", (uint8_t[]){ PCREL }, 1, false),
		CODE + 0x1000, 0x100, false);
	put_u32(&eh_frame, 0);
	module = make(&eh_frame, NULL, &one_load, 1);
	assert_fde(module, CODE, false);
	assert_fde(module, CODE + 0x1000, false);
	pm_unw_module_free(module);
	pm_vec_release(&eh_frame.vec);
}

/* A function of no bytes shares its address with the next one; either may come first. */
static void test_empty_fde_in_header(void **state)
{
	(void)state;
	for (int empty_last = 0; empty_last < 2; empty_last++) {
		struct bytes eh_frame = { 0 }, hdr = { 0 };
		struct pm_unw_module *module;
		size_t cie = put_cie(&eh_frame, "zR", (uint8_t[]){ PCREL }, 1, false);
		size_t full = put_fde(&eh_frame, cie, CODE, 0x100, false);
		size_t empty = put_fde(&eh_frame, cie, CODE, 0, false);

		put(&hdr,
		    (uint8_t[]){ 1, PCREL, DW_EH_PE_udata4,
				 DW_EH_PE_datarel | DW_EH_PE_sdata4 },
		    4);
		put_u32(&hdr, EH_FRAME - (HDR + 4));
		put_u32(&hdr, 2);
		put_u32(&hdr, CODE - HDR);
		put_u32(&hdr, EH_FRAME + (empty_last ? full : empty) - HDR);
		put_u32(&hdr, CODE - HDR);
		put_u32(&hdr, EH_FRAME + (empty_last ? empty : full) - HDR);
		module = make(&eh_frame, &hdr, &one_load, 1);
		assert_true(module->hdr_table > 0);
		assert_fde(module, CODE, false);
		pm_unw_module_free(module);
		pm_vec_release(&eh_frame.vec);
		pm_vec_release(&hdr.vec);
	}
}

/* BOLT's table names the first FDE of an address only; seen in Rust's libLLVM. */
static void test_empty_fde_alone_in_header(void **state)
{
	struct bytes eh_frame = { 0 }, hdr = { 0 };
	struct pm_unw_module *module;
	size_t cie = put_cie(&eh_frame, "zR", (uint8_t[]){ PCREL }, 1, false);
	size_t empty = put_fde(&eh_frame, cie, CODE, 0, false);

	(void)state;
	put_fde(&eh_frame, cie, CODE, 0x100, false);
	put(&hdr,
	    (uint8_t[]){ 1, PCREL, DW_EH_PE_udata4, DW_EH_PE_datarel | DW_EH_PE_sdata4 },
	    4);
	put_u32(&hdr, EH_FRAME - (HDR + 4));
	put_u32(&hdr, 1);
	put_u32(&hdr, CODE - HDR);
	put_u32(&hdr, EH_FRAME + empty - HDR);
	module = make(&eh_frame, &hdr, &one_load, 1);
	assert_fde(module, CODE, false);
	assert_true(module->hdr_table > 0);
	pm_unw_module_free(module);
	pm_vec_release(&eh_frame.vec);
	pm_vec_release(&hdr.vec);
}

/* The header @hdr of one row, for the FDE at offset @fde. */
static void put_hdr(struct bytes *hdr, uint64_t start, size_t fde)
{
	put(hdr,
	    (uint8_t[]){ 1, PCREL, DW_EH_PE_udata4, DW_EH_PE_datarel | DW_EH_PE_sdata4 },
	    4);
	put_u32(hdr, EH_FRAME - (HDR + 4));
	put_u32(hdr, 1);
	put_u32(hdr, start - HDR);
	put_u32(hdr, EH_FRAME + fde - HDR);
}

/* What caches remember of it may be wrong then. */
static void test_wrong_header_is_dropped(void **state)
{
	struct bytes eh_frame = { 0 }, hdr = { 0 };
	struct pm_unw_module *module;
	size_t cie = put_cie(&eh_frame, "zR", (uint8_t[]){ PCREL }, 1, false);
	uint32_t id;

	(void)state;
	put_hdr(&hdr, CODE - 8, put_fde(&eh_frame, cie, CODE, 0x100, false));
	module = make(&eh_frame, &hdr, &one_load, 1);
	id = module->id;
	assert_fde(module, CODE, false);
	assert_int_equal(module->hdr_table, 0);
	assert_int_not_equal(module->id, id);
	pm_unw_module_free(module);
	pm_vec_release(&eh_frame.vec);
	pm_vec_release(&hdr.vec);
}

/* Where no section tells its length, what lies behind .eh_frame is none of it. */
static void test_parts_end_at_terminator(void **state)
{
	(void)state;
	for (int in_hdr = 0; in_hdr < 2; in_hdr++) {
		struct bytes eh_frame = { 0 }, hdr = { 0 };
		struct pm_unw_parts parts;
		struct pm_unw_module *module;
		size_t cie = put_cie(&eh_frame, "zR", (uint8_t[]){ PCREL }, 1, false);
		size_t first = put_fde(&eh_frame, cie, CODE, 0x100, false), end, behind;

		end = eh_frame.vec.len;
		put_u64(&eh_frame, 0);
		behind = put_fde(&eh_frame, cie, CODE + 0x1000, 0x100, false);
		if (in_hdr) {
			put_hdr(&hdr, CODE + 0x1000, behind);
			end = eh_frame.vec.len;
		} else {
			put_hdr(&hdr, CODE, first);
		}
		put_fde(&eh_frame, cie, CODE + 0x2000, 0x100, false);
		module = make(&eh_frame, &hdr, &one_load, 1);
		assert_true(module->hdr_table > 0);
		module->eh_frame.open_ended = true;
		assert_int_equal(pm_unw_module_parts(module, &parts), 0);
		assert_int_equal(parts.eh_frame.len, end);
		free((void *)(uintptr_t)parts.loads);
		pm_unw_module_free(module);
		pm_vec_release(&eh_frame.vec);
		pm_vec_release(&hdr.vec);
	}
}

/* More letters than anybody has use for, to be read for each of many FDEs. */
static void test_long_augmentation(void **state)
{
	(void)state;
	for (int too_long = 0; too_long < 2; too_long++) {
		struct bytes eh_frame = { 0 };
		struct pm_unw_module *module;
		struct pm_unw_fde fde;
		size_t cie = put_cie(&eh_frame,
				     too_long ? "zRSSSSSSSSSSSSSSS" : "zRSSSSSSSSSSSSSS",
				     (uint8_t[]){ PCREL }, 1, false);

		put_fde(&eh_frame, cie, CODE, 0x100, false);
		module = make(&eh_frame, NULL, &one_load, 1);
		assert_int_equal(pm_unw_fde_find(module, CODE, &fde),
				 too_long ? -ENOENT : 0);
		pm_unw_module_free(module);
		pm_vec_release(&eh_frame.vec);
	}
}

/* libdw 0.188 reads one byte for each letter, far behind the end of the section. */
static void test_endless_augmentation(void **state)
{
	enum {
		LETTERS = 32 << 20
	};
	PM_AUTO_FREE char *letters = malloc(LETTERS + 1);
	struct bytes eh_frame = { 0 };
	struct pm_unw_module *module;
	struct pm_unw_fde fde;
	size_t cie;

	(void)state;
	assert_non_null(letters);
	memset(letters, 'L', LETTERS);
	letters[0] = 'z';
	letters[LETTERS] = '\0';
	cie = put_cie(&eh_frame, letters, (uint8_t[]){ PCREL }, 1, false);
	for (size_t i = 0; i < 1000; i++)
		put_fde(&eh_frame, cie, CODE + i, 1, false);
	module = make(&eh_frame, NULL, &one_load, 1);
	assert_int_equal(pm_unw_fde_find(module, CODE, &fde), -ENOENT);
	pm_unw_module_free(module);
	pm_vec_release(&eh_frame.vec);
}

/* Rows of expressions, each one of its own, for each address that is asked for. */
static void test_endless_rows(void **state)
{
	enum {
		FDES = 100000,
		TABLES_MAX = 32 << 20
	};
	struct pm_unwinder *unwinder = pm_unwinder_new();
	struct bytes eh_frame = { 0 };
	struct pm_unw_module *module;
	struct pm_unw_stats stats;
	size_t cie = put_cie(&eh_frame, "zR", (uint8_t[]){ PCREL }, 1, false);

	(void)state;
	assert_non_null(unwinder);
	for (size_t i = 0; i < FDES; i++) {
		size_t begin = begin_entry(&eh_frame, false);

		put_u32(&eh_frame, begin - cie);
		put_u32(&eh_frame, CODE + i - (EH_FRAME + eh_frame.vec.len));
		put_u32(&eh_frame, 1);
		put_u8(&eh_frame, 0);
		put(&eh_frame,
		    (uint8_t[]){ DW_CFA_def_cfa_expression, 2, DW_OP_breg7, 8 }, 4);
		end_entry(&eh_frame, begin, false);
	}
	module = make(&eh_frame, NULL, &one_load, 1);
	for (size_t i = 0; i < FDES; i++)
		assert_int_equal(pm_unw_rule_find(unwinder, module, CODE + i).found,
				 PM_UNW_FOUND_ROW);
	pm_unwinder_stats(unwinder, &stats);
	assert_true(stats.table_bytes < TABLES_MAX);
	pm_unw_module_free(module);
	pm_unwinder_free(unwinder);
	pm_vec_release(&eh_frame.vec);
}

/* Two segments of code meet in one page of the file, as lld lays them out. */
static void test_bias_of_shared_page(void **state)
{
	static const Elf64_Phdr loads[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x1000 },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = 0x1000,
		  .p_vaddr = 0x11000,
		  .p_filesz = 0x1800 },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = 0x2800,
		  .p_vaddr = 0x22800,
		  .p_filesz = 0x1000 },
	};
	struct bytes eh_frame = { 0 };
	struct pm_unw_module *module;
	uint64_t bias;

	(void)state;
	put_cie(&eh_frame, "zR", (uint8_t[]){ PCREL }, 1, false);
	module = make(&eh_frame, NULL, loads, PM_ARRAY_LEN(loads));
	assert_int_equal(pm_unw_module_bias(module, 0x40011000, 0x1000, &bias), 0);
	assert_int_equal(bias, 0x40000000);
	assert_int_equal(pm_unw_module_bias(module, 0x40022000, 0x2000, &bias), 0);
	assert_int_equal(bias, 0x40000000);
	assert_int_equal(pm_unw_module_bias(module, 0x40023000, 0x3000, &bias), 0);
	assert_int_equal(bias, 0x40000000);
	assert_int_equal(pm_unw_module_bias(module, 0, 0x4000, &bias), -ENOENT);
	pm_unw_module_free(module);
	pm_vec_release(&eh_frame.vec);
}

/* aarch64 with pages of 64 KiB: code begins in the middle of what is mapped for it. */
static void test_bias_with_large_pages(void **state)
{
	static const struct pm_unw_part_load loads[] = {
		{ 0, 0, 0x1f340, false },
		{ 0x2f340, 0x1f340, 0x8000, true },
	};
	struct pm_unw_parts parts = { .arch = PM_UNW_AARCH64,
				      .loads = loads,
				      .loads_len = PM_ARRAY_LEN(loads),
				      .page_bytes = 1 << 16 },
			    copy;
	struct pm_unw_module *module;
	uint64_t bias;

	(void)state;
	assert_int_equal(pm_unw_module_from_parts(&module, &parts, NULL), 0);
	assert_int_equal(pm_unw_module_bias(module, 0x40020000, 0x10000, &bias), 0);
	assert_int_equal(bias, 0x40000000);
	assert_int_equal(pm_unw_module_parts(module, &copy), 0);
	assert_int_equal(copy.page_bytes, 1 << 16);
	free((void *)(uintptr_t)copy.loads);
	pm_unw_module_free(module);
	/* With small ones that page is one of data alone. */
	parts.page_bytes = 0;
	assert_int_equal(pm_unw_module_from_parts(&module, &parts, NULL), 0);
	assert_int_equal(pm_unw_module_bias(module, 0x40020000, 0x10000, &bias), 0);
	assert_int_equal(bias, 0x40010000);
	pm_unw_module_free(module);
}

/* A program that generates code without end does not fill our memory. */
static void test_endless_code(void **state)
{
	enum {
		LEN = 40 << 20
	};
	PM_AUTO_FREE uint8_t *bytes = calloc(1, LEN);
	const struct pm_unw_part code = { CODE, bytes, LEN };
	const struct pm_unw_parts parts = { .code = &code, .code_len = 1 };
	struct pm_unw_module *module, *other;

	(void)state;
	assert_non_null(bytes);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pm_unw_module_from_parts(&module, &parts, NULL), 0);
		assert_int_equal(pm_unw_module_from_parts(&other, &parts, NULL), -ENOMEM);
		pm_unw_module_free(module);
	}
}

/* Without CFI a return address has to follow a call: every form of it, and nothing else. */
static void check_call(const uint8_t *code, size_t len, bool is_call)
{
	enum {
		STACK = 0x700000,
		RETURN = EH_FRAME + 0x20,
	};
	const uint64_t words[] = { 7, STACK + 32, RETURN, 0, 0, 0 };
	struct pm_unw_stack stack = { STACK, (const uint8_t *)words, sizeof(words) };
	struct pm_unw_regs regs = { .known = 1u << PM_UNW_X86_64_RIP |
					     1u << PM_UNW_X86_64_RBP |
					     1u << PM_UNW_X86_64_RSP };
	struct pm_unw_map map = { .end = 0x10000 };
	struct pm_unw_space space = { .maps = &map, .len = 1 };
	struct pm_unwinder *unwinder = pm_unwinder_new();
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	uint8_t section[0x80] = { 0 };
	struct bytes bytes = { 0 };
	enum pm_unw_stop stop;

	assert_non_null(unwinder);
	memcpy(section + (RETURN - EH_FRAME - len), code, len);
	put(&bytes, section, sizeof(section));
	map.module = make(&bytes, NULL, &one_load, 1);
	regs.value[PM_UNW_X86_64_RIP] = EH_FRAME + 0x40;
	regs.value[PM_UNW_X86_64_RBP] = STACK + 8;
	regs.value[PM_UNW_X86_64_RSP] = STACK;
	assert_int_equal(pm_unwind(unwinder, &space, &regs, &stack, frames, &stop),
			 is_call ? 2 : 1);
	/* Behind the call the frame pointer leads to two zeros. */
	assert_int_equal(stop, is_call ? PM_UNW_STOP_ROOT : PM_UNW_STOP_NO_CFI);
	pm_unw_module_free(map.module);
	pm_vec_release(&bytes.vec);
	pm_unwinder_free(unwinder);
}

#define CHECK_CALL(is_call, ...)                     \
	check_call((const uint8_t[]){ __VA_ARGS__ }, \
		   sizeof((const uint8_t[]){ __VA_ARGS__ }), (is_call))

static void test_calls(void **state)
{
	(void)state;
	CHECK_CALL(true, 0xe8, 1, 2, 3, 4);
	CHECK_CALL(true, 0xff, 0xd0); /* *%rax */
	CHECK_CALL(true, 0x41, 0xff, 0xd4); /* *%r12 */
	CHECK_CALL(true, 0xff, 0x10); /* *(%rax) */
	CHECK_CALL(true, 0xff, 0x50, 8); /* *8(%rax) */
	CHECK_CALL(true, 0xff, 0x14, 0x24); /* *(%rsp) */
	CHECK_CALL(true, 0xff, 0x54, 0x24, 8); /* *8(%rsp) */
	CHECK_CALL(true, 0xff, 0x15, 1, 2, 3, 4); /* *0x4030201(%rip) */
	CHECK_CALL(true, 0xff, 0x90, 1, 2, 3, 4); /* *0x4030201(%rax) */
	CHECK_CALL(true, 0xff, 0x94, 0x24, 1, 2, 3, 4); /* *0x4030201(%rsp) */
	CHECK_CALL(true, 0xff, 0x14, 0xc5, 1, 2, 3, 4); /* *0x4030201(,%rax,8) */
	CHECK_CALL(true, 0xff, 0x14, 0x25, 1, 2, 3, 4); /* *0x4030201 */
	CHECK_CALL(false, 0xff, 0x14, 0xc5); /* its beginning */
	CHECK_CALL(false, 0xff, 0xe0); /* jmp *%rax */
	CHECK_CALL(false, 0xff, 0x14); /* cut */
	CHECK_CALL(false, 0xe8, 1, 2, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_augmentations),
		cmocka_unit_test(test_terminator_in_the_middle),
		cmocka_unit_test(test_empty_fde_in_header),
		cmocka_unit_test(test_empty_fde_alone_in_header),
		cmocka_unit_test(test_wrong_header_is_dropped),
		cmocka_unit_test(test_parts_end_at_terminator),
		cmocka_unit_test(test_long_augmentation),
		cmocka_unit_test(test_endless_augmentation),
		cmocka_unit_test(test_endless_rows),
		cmocka_unit_test(test_bias_of_shared_page),
		cmocka_unit_test(test_bias_with_large_pages),
		cmocka_unit_test(test_endless_code),
		cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * A program of four functions with the function table of any version of Go, as Go's linker
 * writes it but without section headers:
 *
 *   main.outer                   [CODE, +0x40)  has 24 bytes of stack from +4 on
 *     main.inlined               [+0x10, +0x20) inlined, called at +8
 *   runtime.systemstack          [CODE + 0x40, +0x20) switches stacks at +3
 *   runtime.systemstack_switch   [CODE + 0x60, +0x10)
 *   runtime.goexit               [CODE + 0x70, +0x10)
 */
#pragma once

#include "pm/base.h"

#include <elf.h>
#include <string.h>

enum go_image_version {
	GO_IMAGE_1_15,
	GO_IMAGE_1_17,
	GO_IMAGE_1_19,
	GO_IMAGE_1_25,
	GO_IMAGE_1_26, /* the header does not say where the code begins */
	GO_IMAGE_VERSIONS,
};

struct go_image_options {
	enum go_image_version version;
	bool is_32; /* i386; else x86-64 */
	bool is_a64; /* aarch64: lengths count instructions */
	bool is_pie; /* what the loader fills in is zero, and in relocations */
};

enum {
	GO_IMAGE_CODE = 0x401000,
	GO_IMAGE_TABLE = 0x402000,
	GO_IMAGE_DATA = 0x404000,
	GO_IMAGE_END = 0x406000,
	GO_IMAGE_BASE = 0x400000,
	GO_IMAGE_BYTES = GO_IMAGE_END - GO_IMAGE_BASE,
	GO_IMAGE_FUNCTIONS = 4,
	GO_IMAGE_FUNCDATA = 0x403c00, /* go:func.* */
	GO_IMAGE_RELOCS = 0x405000,
	GO_IMAGE_DYNAMIC = 0x405800,
};

struct go_image {
	uint8_t bytes[GO_IMAGE_BYTES];
	struct go_image_options options;
	uint64_t at; /* svma where the next bytes go */
	size_t relocs;
};

static inline void go_image_put(struct go_image *image, const void *bytes, size_t len)
{
	memcpy(image->bytes + (image->at - GO_IMAGE_BASE), bytes, len);
	image->at += len;
}

static inline void go_image_u32(struct go_image *image, uint32_t value)
{
	go_image_put(image, &value, sizeof(value));
}

static inline void go_image_word(struct go_image *image, uint64_t value)
{
	go_image_put(image, &value, image->options.is_32 ? 4 : 8);
}

/* A pointer, which a position-independent program has as a relocation. */
static inline void go_image_pointer(struct go_image *image, uint64_t value)
{
	uint64_t at = image->at;

	if (!image->options.is_pie) {
		go_image_word(image, value);
		return;
	}
	image->at = GO_IMAGE_RELOCS + image->relocs++ * sizeof(Elf64_Rela);
	go_image_put(image,
		     &(Elf64_Rela){ .r_offset = at,
				    .r_info = image->options.is_a64 ? R_AARCH64_RELATIVE
								    : R_X86_64_RELATIVE,
				    .r_addend = (int64_t)value },
		     sizeof(Elf64_Rela));
	image->at = at;
	go_image_word(image, 0);
}

static inline void go_image_headers(struct go_image *image)
{
	const struct {
		uint64_t start, end;
		uint32_t flags;
	} loads[] = { { GO_IMAGE_CODE, GO_IMAGE_TABLE, PF_R | PF_X },
		      { GO_IMAGE_TABLE, GO_IMAGE_DATA, PF_R },
		      { GO_IMAGE_DATA, GO_IMAGE_END, PF_R | PF_W } };
	bool is_32 = image->options.is_32;
	Elf32_Ehdr small = { .e_type = ET_EXEC,
			     .e_machine = EM_386,
			     .e_version = EV_CURRENT,
			     .e_phoff = sizeof(small),
			     .e_ehsize = sizeof(small),
			     .e_phentsize = sizeof(Elf32_Phdr),
			     .e_phnum = 4 };
	Elf64_Ehdr large = { .e_type = ET_EXEC,
			     .e_machine = image->options.is_a64 ? EM_AARCH64 : EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_phoff = sizeof(large),
			     .e_ehsize = sizeof(large),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 4 };
	const unsigned char ident[EI_NIDENT] = {
		0x7f,        'E',       'L', 'F', is_32 ? ELFCLASS32 : ELFCLASS64,
		ELFDATA2LSB, EV_CURRENT
	};

	memcpy(small.e_ident, ident, sizeof(ident));
	memcpy(large.e_ident, ident, sizeof(ident));
	image->at = GO_IMAGE_BASE;
	if (is_32)
		go_image_put(image, &small, sizeof(small));
	else
		go_image_put(image, &large, sizeof(large));
	for (size_t i = 0; i <= PM_ARRAY_LEN(loads); i++) {
		bool is_load = i < PM_ARRAY_LEN(loads);
		Elf64_Phdr phdr = { .p_type = is_load ? PT_LOAD : PT_DYNAMIC,
				    .p_flags = is_load ? loads[i].flags : PF_R,
				    .p_vaddr =
					    is_load ? loads[i].start : GO_IMAGE_DYNAMIC,
				    .p_filesz = is_load ? loads[i].end - loads[i].start
							: 3 * sizeof(Elf64_Dyn) };
		Elf32_Phdr little;

		phdr.p_offset = phdr.p_vaddr - GO_IMAGE_BASE;
		phdr.p_memsz = phdr.p_filesz;
		little = (Elf32_Phdr){ .p_type = phdr.p_type,
				       .p_flags = phdr.p_flags,
				       .p_vaddr = (uint32_t)phdr.p_vaddr,
				       .p_offset = (uint32_t)phdr.p_offset,
				       .p_filesz = (uint32_t)phdr.p_filesz,
				       .p_memsz = (uint32_t)phdr.p_memsz };
		if (is_32)
			go_image_put(image, &little, sizeof(little));
		else
			go_image_put(image, &phdr, sizeof(phdr));
	}
}

/* Names, files and tables of values, by their offset in the part. */
enum {
	GO_NAME_OUTER = 1,
	GO_NAME_INLINED = GO_NAME_OUTER + sizeof("main.outer"),
	GO_NAME_SYSTEMSTACK = GO_NAME_INLINED + sizeof("main.inlined"),
	GO_NAME_SWITCH = GO_NAME_SYSTEMSTACK + sizeof("runtime.systemstack"),
	GO_NAME_GOEXIT = GO_NAME_SWITCH + sizeof("runtime.systemstack_switch"),
	GO_FILE_MAIN = 1,
	GO_FILE_LIBRARY = GO_FILE_MAIN + sizeof("/src/main.go"),
};
static const char go_image_names[] = "\0main.outer\0main.inlined\0runtime.systemstack\0"
				     "runtime.systemstack_switch\0runtime.goexit";
static const char go_image_files[] = "\0/src/main.go\0/src/library.go";

/* Pairs of a change of the value (2n up, 2n-1 down, from -1 on) and a length; 0 ends one. The
 * lengths are @Q times as many bytes. */
#define GO_IMAGE_VALUES(Q)                                                              \
	{                                                                               \
		0, /* 1: 0 everywhere */                                                \
			2, 0x40 / (Q),                                                  \
			0, /* 4: stack of outer: 0 for 4 bytes, then 24 */              \
			2, 4 / (Q), 48, 0x3c / (Q), 0, /* 9: its files: 0, 1, 0 */      \
			2, 0x10 / (Q), 2, 0x10 / (Q), 1, 0x20 / (Q),                    \
			0, /* 16: its lines: 10, 100, 12 */                             \
			22, 0x10 / (Q), 0xb4, 0x01, 0x10 / (Q), 0xaf, 0x01, 0x20 / (Q), \
			0, /* 25: its inlined calls: -1, 0, -1 */                       \
			0, 0x10 / (Q), 2, 0x10 / (Q), 1, 0x20 / (Q),                    \
			0, /* 32: line 7 everywhere */                                  \
			16, 0x40 / (Q), 0, /* 35: 1 everywhere; 39: files 1, 2, 1 */    \
			4, 0x40 / (Q), 0, 0, 4, 0x10 / (Q), 2, 0x10 / (Q), 1,           \
			0x20 / (Q), 0,                                                  \
	}
static const uint8_t go_image_values[] = GO_IMAGE_VALUES(1);
static const uint8_t go_image_values_a64[] = GO_IMAGE_VALUES(4);
enum {
	GO_VALUES_ZERO = 1,
	GO_VALUES_STACK = 4,
	GO_VALUES_FILES = 9,
	GO_VALUES_LINES = 16,
	GO_VALUES_INLINED = 25,
	GO_VALUES_LINE_7 = 32,
	GO_VALUES_ONE = 35,
	GO_VALUES_FILES_FROM_1 = 39,
};

static const struct {
	uint32_t offset, name, stack;
	uint8_t flags;
} go_image_functions[GO_IMAGE_FUNCTIONS] = {
	{ 0, GO_NAME_OUTER, GO_VALUES_STACK, 0 },
	{ 0x40, GO_NAME_SYSTEMSTACK, GO_VALUES_ZERO, 2 },
	{ 0x60, GO_NAME_SWITCH, GO_VALUES_ZERO, 0 },
	{ 0x70, GO_NAME_GOEXIT, GO_VALUES_ZERO, 1 },
};

struct go_image_parts {
	uint64_t names, units, files, values, functions;
};

/* The entry of function @index; the parts are where @parts says. */
static inline void go_image_function(struct go_image *image, size_t index,
				     const struct go_image_parts *parts)
{
	enum go_image_version version = image->options.version;
	bool is_old = version == GO_IMAGE_1_15, is_outer = index == 0;
	/* Before 1.16 all offsets count from the header. */
	uint32_t names = is_old ? (uint32_t)(parts->names - GO_IMAGE_TABLE) : 0;
	uint32_t values = is_old ? (uint32_t)(parts->values - GO_IMAGE_TABLE) : 0;

	if (version >= GO_IMAGE_1_19)
		go_image_u32(image, go_image_functions[index].offset);
	else
		go_image_word(image, GO_IMAGE_CODE + go_image_functions[index].offset);
	go_image_u32(image, names + go_image_functions[index].name);
	go_image_u32(image, 0); /* args */
	go_image_u32(image, 0); /* deferreturn */
	go_image_u32(image, values + go_image_functions[index].stack);
	if (is_old)
		go_image_u32(image, values + (is_outer ? GO_VALUES_FILES_FROM_1
						       : GO_VALUES_ONE));
	else
		go_image_u32(image, is_outer ? GO_VALUES_FILES : GO_VALUES_ZERO);
	go_image_u32(image, values + (is_outer ? GO_VALUES_LINES : GO_VALUES_LINE_7));
	go_image_u32(image, is_outer ? 3 : 0);
	if (!is_old)
		go_image_u32(image, 0); /* unit */
	if (version >= GO_IMAGE_1_25)
		go_image_u32(image, 1); /* first line */
	go_image_put(image,
		     (uint8_t[]){ 0, is_old ? 0 : go_image_functions[index].flags, 0,
				  is_outer ? 4 : 0 },
		     4);
	if (!is_outer)
		return;
	for (uint32_t i = 0; i < 3; i++)
		go_image_u32(image, i == 2 ? values + GO_VALUES_INLINED : 0);
	if (version < GO_IMAGE_1_19 && !image->options.is_32)
		image->at = (image->at + 7) & ~(uint64_t)7;
	for (uint32_t i = 0; i < 4; i++) {
		if (version >= GO_IMAGE_1_19)
			go_image_u32(image, i == 3 ? 0x20 : UINT32_MAX);
		else
			go_image_word(image, i == 3 ? GO_IMAGE_FUNCDATA + 0x20 : 0);
	}
}

static inline void go_image_table(struct go_image *image, struct go_image_parts *parts)
{
	static const uint32_t magics[GO_IMAGE_VERSIONS] = { 0xfffffffb, 0xfffffffa,
							    0xfffffff0, 0xfffffff1,
							    0xfffffff1 };
	enum go_image_version version = image->options.version;
	uint64_t word = image->options.is_32 ? 4 : 8, rows, record;
	bool is_old = version == GO_IMAGE_1_15;

	*parts = (struct go_image_parts){ GO_IMAGE_TABLE + 0x200, GO_IMAGE_TABLE + 0x300,
					  GO_IMAGE_TABLE + 0x400, GO_IMAGE_TABLE + 0x500,
					  GO_IMAGE_TABLE + 0x600 };
	image->at = parts->names;
	go_image_put(image, go_image_names, sizeof(go_image_names));
	image->at = parts->files;
	go_image_put(image, go_image_files, sizeof(go_image_files));
	image->at = parts->values;
	go_image_put(image, image->options.is_a64 ? go_image_values_a64 : go_image_values,
		     sizeof(go_image_values));
	image->at = parts->units;
	if (is_old) {
		/* Their number, then offsets from the header. */
		go_image_u32(image, 3);
		go_image_u32(image,
			     (uint32_t)(parts->files - GO_IMAGE_TABLE) + GO_FILE_MAIN);
		go_image_u32(image,
			     (uint32_t)(parts->files - GO_IMAGE_TABLE) + GO_FILE_LIBRARY);
	} else {
		go_image_u32(image, GO_FILE_MAIN);
		go_image_u32(image, GO_FILE_LIBRARY);
	}
	image->at = GO_IMAGE_TABLE;
	go_image_u32(image, magics[version]);
	go_image_put(image,
		     (uint8_t[]){ 0, 0, image->options.is_a64 ? 4 : 1, (uint8_t)word },
		     4);
	go_image_word(image, GO_IMAGE_FUNCTIONS);
	rows = image->at;
	if (!is_old) {
		const uint64_t offsets[] = { parts->names, parts->units, parts->files,
					     parts->values, parts->functions };

		go_image_word(image, 2); /* files */
		if (version == GO_IMAGE_1_26)
			go_image_word(image, 0);
		else if (version >= GO_IMAGE_1_19)
			go_image_pointer(image, GO_IMAGE_CODE);
		for (size_t i = 0; i < PM_ARRAY_LEN(offsets); i++)
			go_image_word(image, offsets[i] - GO_IMAGE_TABLE);
		rows = parts->functions;
	}
	record = rows + 0x80;
	for (size_t i = 0; i < GO_IMAGE_FUNCTIONS; i++) {
		uint64_t base = is_old ? (uint64_t)GO_IMAGE_TABLE : parts->functions;

		image->at = rows;
		if (version >= GO_IMAGE_1_19) {
			go_image_u32(image, go_image_functions[i].offset);
			go_image_u32(image, (uint32_t)(record - base));
		} else {
			go_image_word(image,
				      GO_IMAGE_CODE + go_image_functions[i].offset);
			go_image_word(image, record - base);
		}
		rows = image->at;
		image->at = record;
		go_image_function(image, i, parts);
		record = (image->at + 7) & ~(uint64_t)7;
	}
	image->at = rows;
	if (version >= GO_IMAGE_1_19)
		go_image_u32(image, 0x80);
	else
		go_image_word(image, GO_IMAGE_CODE + 0x80);
	if (is_old)
		go_image_u32(image, (uint32_t)(parts->units - GO_IMAGE_TABLE));
}

static inline void go_image_module_data(struct go_image *image,
					const struct go_image_parts *parts)
{
	bool is_new = image->options.version >= GO_IMAGE_1_25;

	for (size_t i = 0; i <= 40; i++) {
		uint64_t value = 0;

		if (i == 0)
			value = GO_IMAGE_TABLE;
		else if (i == 1)
			value = parts->names;
		else if (i == 22)
			value = GO_IMAGE_CODE;
		else if (i == (is_new ? 40 : 38))
			value = GO_IMAGE_FUNCDATA;
		image->at = GO_IMAGE_DATA + 0x40 + i * (image->options.is_32 ? 4 : 8);
		if (value)
			go_image_pointer(image, value);
	}
	image->at = GO_IMAGE_DYNAMIC;
	go_image_put(
		image,
		(Elf64_Dyn[]){ { DT_RELA, { GO_IMAGE_RELOCS } },
			       { DT_RELASZ, { image->relocs * sizeof(Elf64_Rela) } } },
		2 * sizeof(Elf64_Dyn));
}

static inline void go_image_make(struct go_image *image,
				 const struct go_image_options *options)
{
	struct go_image_parts parts;

	memset(image, 0, sizeof(*image));
	image->options = *options;
	go_image_headers(image);
	/* systemstack: mov %rbx,%rsp (mov %ebx,%esp with a nop), call *%rdi; mov sp, x3 */
	image->at = GO_IMAGE_CODE + 0x40;
	if (options->is_a64)
		go_image_u32(image, 0x9100007f);
	else if (options->is_32)
		go_image_put(image, "\x90\x89\xdc\xff\xd7", 5);
	else
		go_image_put(image, "\x48\x89\xdc\xff\xd7", 5);
	go_image_table(image, &parts);
	image->at = GO_IMAGE_FUNCDATA + 0x20;
	if (options->version >= GO_IMAGE_1_25) {
		go_image_u32(image, 0);
		go_image_u32(image, GO_NAME_INLINED);
		go_image_u32(image, 8);
		go_image_u32(image, 99);
	} else {
		go_image_u32(image, 0xffff);
		go_image_u32(image, 0);
		go_image_u32(image, 11);
		go_image_u32(image, GO_NAME_INLINED);
		go_image_u32(image, 8);
	}
	if (options->version >= GO_IMAGE_1_19)
		go_image_module_data(image, &parts);
}

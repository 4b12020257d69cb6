/* SPDX-License-Identifier: MIT */
/*
 * elfutils unwinds from files. Those that were recorded may be gone or newer by now; then a
 * file is made from what the corpus has, so that all unwinders read the same bytes.
 */
#include "tests/bench/unwind-bench.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum {
	SECTIONS = 5, /* none, .eh_frame_hdr, .eh_frame, .debug_frame, names */
};
#define FILE_BYTES_MAX (1ull << 36) /* it is sparse */

static const char names[] = "\0.eh_frame_hdr\0.eh_frame\0.debug_frame\0.shstrtab";

struct rebuilt {
	int fd;
	uint64_t end; /* of what stands where the original has it */
	Elf64_Shdr sections[SECTIONS];
	bool failed;
};

static void put(struct rebuilt *file, const void *data, size_t len, uint64_t at)
{
	const uint8_t *from = data;

	while (len > 0 && !file->failed) {
		ssize_t n = pwrite(file->fd, from, len, (off_t)at);

		file->failed = n <= 0 && errno != EINTR;
		if (n > 0) {
			from += n;
			at += (uint64_t)n;
			len -= (size_t)n;
		}
	}
}

/* Where @svma stands in the file, or at the end when it is not loaded. */
static uint64_t place(const struct bench_module *module, const struct rebuilt *file,
		      const struct pm_corpus_part *part)
{
	for (size_t i = 0; i < module->loads.len; i++) {
		const struct pm_corpus_load *load = &module->loads.data[i];
		uint64_t skip = part->svma - load->vaddr;

		if (skip < load->filesz && part->len <= load->filesz - skip)
			return load->offset + skip;
	}
	return (file->end + 63) & ~(uint64_t)63;
}

static void put_section(struct rebuilt *file, const struct bench_module *module,
			size_t index, size_t name, const struct pm_corpus_part *part,
			bool loaded)
{
	Elf64_Shdr *section = &file->sections[index];
	uint64_t at = place(module, file, part);

	*section = (Elf64_Shdr){ .sh_name = (Elf64_Word)name,
				 .sh_type = part->len > 0 ? SHT_PROGBITS : SHT_NULL,
				 .sh_flags = loaded ? SHF_ALLOC : 0,
				 .sh_addr = loaded ? part->svma : 0,
				 .sh_offset = at,
				 .sh_size = part->len,
				 .sh_addralign = 1 };
	if (part->len == 0)
		return;
	if (at >= FILE_BYTES_MAX) {
		file->failed = true;
		return;
	}
	put(file, part->data, part->len, at);
	if (at + part->len > file->end)
		file->end = at + part->len;
}

/* Returns how many there are, written at @at. */
static uint16_t put_phdrs(struct rebuilt *file, const struct bench_module *module,
			  uint64_t at)
{
	const struct pm_corpus_part *hdr = &module->eh_frame_hdr;
	Elf64_Phdr phdr;
	uint16_t count = 0;

	for (size_t i = 0; i < module->loads.len; i++) {
		const struct pm_corpus_load *load = &module->loads.data[i];

		phdr = (Elf64_Phdr){ .p_type = PT_LOAD,
				     .p_flags = (Elf64_Word)load->flags,
				     .p_offset = load->offset,
				     .p_vaddr = load->vaddr,
				     .p_paddr = load->vaddr,
				     .p_filesz = load->filesz,
				     .p_memsz = load->memsz,
				     .p_align = 4096 };
		put(file, &phdr, sizeof(phdr), at + count++ * sizeof(phdr));
	}
	if (hdr->len > 0) {
		phdr = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME,
				     .p_flags = PF_R,
				     .p_offset = file->sections[1].sh_offset,
				     .p_vaddr = hdr->svma,
				     .p_paddr = hdr->svma,
				     .p_filesz = hdr->len,
				     .p_memsz = hdr->len,
				     .p_align = 4 };
		put(file, &phdr, sizeof(phdr), at + count++ * sizeof(phdr));
	}
	return count;
}

/* The headers follow behind everything. */
static void put_headers(struct rebuilt *file, const struct bench_module *module)
{
	uint64_t at = (file->end + 63) & ~(uint64_t)63;
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					   ELFDATA2LSB, EV_CURRENT },
			      .e_type = module->flags & PM_CORPUS_EXEC ? ET_EXEC : ET_DYN,
			      .e_machine = (Elf64_Half)module->machine,
			      .e_version = EV_CURRENT,
			      .e_entry = module->entry,
			      .e_ehsize = sizeof(Elf64_Ehdr),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shnum = SECTIONS,
			      .e_shstrndx = SECTIONS - 1 };

	file->sections[SECTIONS - 1] = (Elf64_Shdr){ .sh_name = 38,
						     .sh_type = SHT_STRTAB,
						     .sh_offset = at,
						     .sh_size = sizeof(names) };
	put(file, names, sizeof(names), at);
	header.e_shoff = at + 64;
	put(file, file->sections, sizeof(file->sections), header.e_shoff);
	header.e_phoff = header.e_shoff + sizeof(file->sections);
	header.e_phnum = put_phdrs(file, module, header.e_phoff);
	put(file, &header, sizeof(header), 0);
}

int bench_file_rebuild(const struct bench_module *module)
{
	struct rebuilt file = { .end = sizeof(Elf64_Ehdr) };

	_Static_assert(sizeof(names) <= 64, "the names have 64 bytes");
	if (module->machine != PM_CORPUS_X86_64)
		return -1;
	for (size_t i = 0; i < module->loads.len; i++) {
		const struct pm_corpus_load *load = &module->loads.data[i];
		uint64_t end;

		if (__builtin_add_overflow(load->offset, load->filesz, &end) ||
		    end > FILE_BYTES_MAX)
			return -1;
		if (end > file.end)
			file.end = end;
	}
	file.fd = memfd_create("rebuilt", MFD_CLOEXEC);
	if (file.fd < 0)
		return -1;
	put_section(&file, module, 1, 1, &module->eh_frame_hdr, true);
	put_section(&file, module, 2, 15, &module->eh_frame, true);
	put_section(&file, module, 3, 25, &module->debug_frame, false);
	put_headers(&file, module);
	if (!file.failed)
		return file.fd;
	close(file.fd);
	return -1;
}

/* The very file, or -1. */
static int open_original(const struct bench_module *module)
{
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len;
	int fd;

	if (module->flags & PM_CORPUS_VDSO)
		fd = spaces_vdso_fd();
	else if (module->path[0] == '/')
		fd = open(module->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	else
		fd = -1;
	if (fd < 0)
		return -1;
	if (module->build_id_len > 0 && pm_elf_build_id(fd, id, &len) == 0 &&
	    len == module->build_id_len && memcmp(id, module->build_id, len) == 0)
		return fd;
	close(fd);
	return -1;
}

void bench_files_open(struct bench_corpus *corpus)
{
	if (corpus->files_open)
		return;
	corpus->files_open = true;
	for (size_t i = 0; i < corpus->modules.len; i++) {
		struct bench_module *module = &corpus->modules.data[i];
		struct spaces_module file = { .tried = true,
					      .fd = open_original(module) };

		if (file.fd < 0) {
			file.fd = bench_file_rebuild(module);
			module->rebuilt = true;
		}
		if (pm_vec_push(&corpus->files.list, file) < 0)
			abort();
	}
}

/* SPDX-License-Identifier: MIT */
#include "unwind-internal.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
	PIECE_BYTES = 1 << 16,
	REGION_BYTES_MAX = 1 << 28, /* of CFI; the largest seen is 60 MB */
	DEBUG_FRAME_BYTES_MAX = 1 << 28, /* after decompression */
	LOADS_MAX = 4096,
};

/* ---- regions ------------------------------------------------------------------------- */

static bool read_fully(int fd, void *to, size_t len, uint64_t offset)
{
	uint8_t *at = to;

	while (len > 0) {
		ssize_t n = pread(fd, at, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

static bool read_piece(struct pm_unw_region *region, size_t piece)
{
	size_t from = piece * PIECE_BYTES;
	size_t len = region->len - from < PIECE_BYTES ? region->len - from : PIECE_BYTES;

	if (!read_fully(region->fd, region->data + from, len, region->file_offset + from))
		return false;
	region->pieces[piece / 64] |= (uint64_t)1 << piece % 64;
	return true;
}

const uint8_t *pm_unw_region_need(struct pm_unw_region *region, size_t offset, size_t len)
{
	if (!region->data || offset > region->len || len > region->len - offset)
		return NULL;
	if (region->pieces && len > 0) {
		size_t last = (offset + len - 1) / PIECE_BYTES;

		for (size_t i = offset / PIECE_BYTES; i <= last; i++)
			if (!(region->pieces[i / 64] >> i % 64 & 1) &&
			    !read_piece(region, i))
				return NULL;
	}
	return region->data + offset;
}

/* A region over [offset, offset + len) of the module's file or image. */
static void region_open(struct pm_unw_module *module, struct pm_unw_region *region,
			uint64_t svma, uint64_t offset, uint64_t len)
{
	size_t pieces = (len + PIECE_BYTES - 1) / PIECE_BYTES;
	void *data;

	if (len == 0 || len > REGION_BYTES_MAX)
		return;
	*region = (struct pm_unw_region){ .svma = svma, .fd = module->fd };
	region->file_offset = offset;
	if (module->image) {
		if (offset > module->image_len || len > module->image_len - offset)
			return;
		region->data = module->image + offset;
		region->len = len;
		return;
	}
	region->pieces = calloc(pieces / 64 + 1, sizeof(*region->pieces));
	data = mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!region->pieces || data == MAP_FAILED) {
		free(region->pieces);
		region->pieces = NULL;
		if (data != MAP_FAILED)
			munmap(data, len);
		return;
	}
	region->data = data;
	region->mapped = true;
	region->len = len;
}

static void region_release(struct pm_unw_region *region)
{
	if (region->mapped)
		munmap(region->data, region->len);
	if (region->owned)
		free(region->data);
	free(region->pieces);
	*region = (struct pm_unw_region){ 0 };
}

/* ---- reading the ELF file ------------------------------------------------------------ */

static int read_loads(struct pm_unw_module *module, Elf *elf, GElf_Phdr *eh_hdr)
{
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0)
		return 0;
	for (size_t i = 0; i < count && i < LOADS_MAX; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr))
			break;
		if (phdr.p_type == PT_GNU_EH_FRAME)
			*eh_hdr = phdr;
		if (phdr.p_type != PT_LOAD)
			continue;
		if (pm_vec_push(&module->loads,
				(struct pm_unw_load){ .vaddr = phdr.p_vaddr,
						      .offset = phdr.p_offset,
						      .filesz = phdr.p_filesz,
						      .executable =
							      phdr.p_flags & PF_X }) != 0)
			return -ENOMEM;
	}
	return 0;
}

/* The segment whose bytes in the file hold @svma, or NULL. */
static struct pm_unw_load *load_of(struct pm_unw_module *module, uint64_t svma)
{
	for (size_t i = 0; i < module->loads.len; i++) {
		struct pm_unw_load *load = &module->loads.data[i];

		if (svma - load->vaddr < load->filesz)
			return load;
	}
	return NULL;
}

/*
 * PT_GNU_EH_FRAME (LSB 10.6.2). The header also tells where .eh_frame is, which serves files
 * without section headers. Anything but the one table form that linkers write is left to the
 * scan.
 */
static void use_header_table(struct pm_unw_module *module)
{
	enum {
		DATAREL_SDATA4 = 0x3b,
		OMIT = 0xff
	};
	struct pm_unw_region *hdr = &module->eh_frame_hdr;
	uint64_t eh_frame, count;
	struct pm_reader reader;
	const uint8_t *bytes;
	size_t head;

	head = hdr->len < 64 ? hdr->len : 64;
	bytes = pm_unw_region_need(hdr, 0, head);
	if (head < 4 || !bytes || bytes[0] != 1 || bytes[1] == OMIT)
		return;
	pm_reader_init(&reader, bytes, head);
	reader.pos = 4;
	eh_frame = pm_unw_read_encoded(&reader, bytes[1], hdr->svma);
	if (reader.failed)
		return;
	if (module->eh_frame.len == 0) {
		const struct pm_unw_load *load = load_of(module, eh_frame);
		uint64_t skip = load ? eh_frame - load->vaddr : 0;

		if (!load)
			return;
		region_open(module, &module->eh_frame, eh_frame, load->offset + skip,
			    load->filesz - skip);
		module->eh_frame.open_ended = true;
	}
	if (module->eh_frame.svma != eh_frame || bytes[2] == OMIT ||
	    bytes[3] != DATAREL_SDATA4)
		return;
	count = pm_unw_read_encoded(&reader, bytes[2], hdr->svma);
	if (reader.failed || count > (hdr->len - reader.pos) / 8)
		return;
	module->hdr_table = reader.pos;
	module->hdr_count = count;
}

/* .debug_frame is not loaded by anybody, may be compressed, and is copied. */
static void use_debug_frame(struct pm_unw_module *module, Elf_Scn *scn)
{
	struct pm_unw_region *region = &module->debug_frame;
	GElf_Shdr shdr;
	GElf_Chdr chdr;
	Elf_Data *data;

	if (!gelf_getshdr(scn, &shdr))
		return;
	if (shdr.sh_flags & SHF_COMPRESSED) {
		if (!gelf_getchdr(scn, &chdr) || chdr.ch_size > DEBUG_FRAME_BYTES_MAX ||
		    elf_compress(scn, 0, 0) < 0)
			return;
	}
	data = elf_rawdata(scn, NULL);
	if (!data || !data->d_buf || data->d_size == 0 ||
	    data->d_size > DEBUG_FRAME_BYTES_MAX)
		return;
	region->data = malloc(data->d_size);
	if (!region->data)
		return;
	memcpy(region->data, data->d_buf, data->d_size);
	region->len = data->d_size;
	region->owned = true;
}

static void read_sections(struct pm_unw_module *module, Elf *elf)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS ||
		    !(name = elf_strptr(elf, names, shdr.sh_name)))
			continue;
		if (strcmp(name, ".eh_frame") == 0 && module->eh_frame.len == 0)
			region_open(module, &module->eh_frame, shdr.sh_addr,
				    shdr.sh_offset, shdr.sh_size);
		else if (strcmp(name, ".debug_frame") == 0 &&
			 module->debug_frame.len == 0)
			use_debug_frame(module, scn);
	}
}

static int read_elf(struct pm_unw_module *module, Elf *elf, struct pm_error *err)
{
	GElf_Phdr eh_hdr = { .p_type = PT_NULL };
	GElf_Ehdr ehdr;
	int rc;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr))
		return pm_error_set(err, -ENOEXEC, "not an ELF file");
	if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_machine != EM_X86_64)
		return pm_error_set(err, -ENOEXEC, "not an x86-64 ELF file");
	module->entry = ehdr.e_entry;
	rc = read_loads(module, elf, &eh_hdr);
	if (rc < 0)
		return pm_error_set(err, rc, "out of memory");
	read_sections(module, elf);
	if (eh_hdr.p_type == PT_GNU_EH_FRAME) {
		region_open(module, &module->eh_frame_hdr, eh_hdr.p_vaddr,
			    eh_hdr.p_offset, eh_hdr.p_filesz);
		use_header_table(module);
	}
	return 0;
}

/* ---- public -------------------------------------------------------------------------- */

static struct pm_unw_module *module_new(void)
{
	static atomic_uint next_id = 1;
	struct pm_unw_module *module = calloc(1, sizeof(*module));

	if (module) {
		module->id = atomic_fetch_add(&next_id, 1);
		module->fd = -1;
	}
	return module;
}

static void cleanup_elf(Elf **elf)
{
	elf_end(*elf);
}

static void cleanup_module(struct pm_unw_module **module)
{
	pm_unw_module_free(*module);
}

int pm_unw_module_open(struct pm_unw_module **ret, int fd, struct pm_error *err)
{
	PM_CLEANUP(cleanup_module) struct pm_unw_module *module = module_new();
	PM_CLEANUP(cleanup_elf) Elf *elf = NULL;
	int rc;

	if (!module)
		return pm_error_set(err, -ENOMEM, "out of memory");
	module->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (module->fd < 0)
		return pm_error_set(err, -errno, "cannot keep the file open: %s",
				    strerror(errno));
	elf_version(EV_CURRENT);
	elf = elf_begin(module->fd, ELF_C_READ, NULL);
	if (!elf)
		return pm_error_set(err, -ENOEXEC, "not an ELF file");
	rc = read_elf(module, elf, err);
	if (rc == 0)
		*ret = PM_TAKE_PTR(module);
	return rc;
}

static int copy_part(struct pm_unw_region *region, const struct pm_unw_part *part)
{
	if (part->len == 0)
		return 0;
	region->data = malloc(part->len);
	if (!region->data)
		return -ENOMEM;
	memcpy(region->data, part->data, part->len);
	region->svma = part->svma;
	region->len = part->len;
	region->owned = true;
	return 0;
}

int pm_unw_module_from_parts(struct pm_unw_module **ret, const struct pm_unw_parts *parts,
			     struct pm_error *err)
{
	PM_CLEANUP(cleanup_module) struct pm_unw_module *module = module_new();

	if (!module || copy_part(&module->eh_frame_hdr, &parts->eh_frame_hdr) < 0 ||
	    copy_part(&module->eh_frame, &parts->eh_frame) < 0 ||
	    copy_part(&module->debug_frame, &parts->debug_frame) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	module->arch = parts->arch;
	module->entry = parts->entry;
	for (size_t i = 0; i < parts->loads_len; i++)
		if (pm_vec_push(&module->loads,
				(struct pm_unw_load){
					.vaddr = parts->loads[i].vaddr,
					.offset = parts->loads[i].offset,
					.filesz = parts->loads[i].filesz,
					.executable = parts->loads[i].executable }) != 0)
			return pm_error_set(err, -ENOMEM, "out of memory");
	if (module->eh_frame_hdr.len > 0)
		use_header_table(module);
	*ret = PM_TAKE_PTR(module);
	return 0;
}

int pm_unw_module_from_memory(struct pm_unw_module **ret, const void *image, size_t len,
			      struct pm_error *err)
{
	PM_CLEANUP(cleanup_module) struct pm_unw_module *module = module_new();
	PM_CLEANUP(cleanup_elf) Elf *elf = NULL;
	int rc;

	if (!module || !(module->image = malloc(len ? len : 1)))
		return pm_error_set(err, -ENOMEM, "out of memory");
	memcpy(module->image, image, len);
	module->image_len = len;
	elf_version(EV_CURRENT);
	elf = elf_memory((char *)module->image, len);
	if (!elf)
		return pm_error_set(err, -ENOEXEC, "not an ELF image");
	rc = read_elf(module, elf, err);
	if (rc == 0)
		*ret = PM_TAKE_PTR(module);
	return rc;
}

void pm_unw_module_free(struct pm_unw_module *module)
{
	if (!module)
		return;
	region_release(&module->eh_frame_hdr);
	region_release(&module->eh_frame);
	region_release(&module->debug_frame);
	for (size_t i = 0; i < module->loads.len; i++)
		region_release(&module->loads.data[i].region);
	pm_vec_release(&module->eh_scanned.places);
	pm_vec_release(&module->debug_scanned.places);
	pm_vec_release(&module->loads);
	pm_cleanup_close(&module->fd);
	free(module->image);
	free(module);
}

int pm_unw_module_bias(const struct pm_unw_module *module, uint64_t start, uint64_t pgoff,
		       uint64_t *ret)
{
	const struct pm_unw_load *found = NULL;

	/* Segments share pages where one ends and the next begins: what was mapped
	 * executable is the executable one, and a mapping begins with its own segment. */
	for (size_t i = 0; i < module->loads.len; i++) {
		const struct pm_unw_load *load = &module->loads.data[i];
		uint64_t first = load->offset & ~(uint64_t)4095;

		if (pgoff >= first &&
		    pgoff - first < load->offset - first + load->filesz &&
		    (!found || load->executable > found->executable ||
		     (load->executable == found->executable && first == pgoff)))
			found = load;
	}
	if (!found)
		return -ENOENT;
	*ret = start - pgoff + found->offset - found->vaddr;
	return 0;
}

bool pm_unw_module_read(struct pm_unw_module *module, uint64_t svma, void *ret,
			size_t len)
{
	struct pm_unw_load *load = load_of(module, svma);
	uint64_t skip = load ? svma - load->vaddr : 0, offset;
	const uint8_t *bytes;

	if (!load || load->filesz - skip < len)
		return false;
	offset = load->offset + skip;
	if (module->image) {
		if (offset > module->image_len || len > module->image_len - offset)
			return false;
		memcpy(ret, module->image + offset, len);
		return true;
	}
	if (!load->opened) {
		load->opened = true;
		region_open(module, &load->region, load->vaddr, load->offset,
			    load->filesz);
	}
	bytes = pm_unw_region_need(&load->region, skip, len);
	if (bytes) {
		memcpy(ret, bytes, len);
		return true;
	}
	/* Too large, or shorter than it says: then only what is asked for. */
	region_release(&load->region);
	return read_fully(module->fd, ret, len, offset);
}

bool pm_unw_module_is_entry(const struct pm_unw_module *module, uint64_t svma)
{
	enum {
		ENTRY_BYTES = 64 /* a _start is a few moves and one call */
	};

	return module->entry != 0 && svma - module->entry < ENTRY_BYTES;
}

int pm_unw_module_fd(const struct pm_unw_module *module)
{
	return module->fd;
}

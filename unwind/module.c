/* SPDX-License-Identifier: MIT */
#include "unwind-parts.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdatomic.h>
#include <string.h>

#include "pm/go.h"

enum {
	LOADS_MAX = 256, /* each mapping and piece of code searches them; 4 are usual */
	/* Executable files have fewer than a hundred; each costs one look-up of its
	 * name. */
	SECTIONS_MAX = 1 << 14,
	NAMES_BYTES_MAX = 1 << 22, /* of section names */
};

/* ---- reading the ELF file ------------------------------------------------------------ */

/* The fields of an ELF header that determine memory use, for both classes. */
struct head {
	bool is_32;
	uint64_t shoff;
	uint32_t phnum, shnum, names;
};

static bool read_elf_head(int fd, struct head *out)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr h32;
		Elf64_Ehdr h64;
	} header;

	if (!pm_unw_read_fully(fd, &header.h32, sizeof(header.h32), 0) ||
	    header.ident[EI_DATA] != ELFDATA2LSB)
		return false;
	if (header.ident[EI_CLASS] == ELFCLASS32) {
		*out = (struct head){ true, header.h32.e_shoff, header.h32.e_phnum,
				      header.h32.e_shnum, header.h32.e_shstrndx };
		return true;
	}
	if (!pm_unw_read_fully(fd, &header.h64, sizeof(header.h64), 0))
		return false;
	*out = (struct head){ false, header.h64.e_shoff, header.h64.e_phnum,
			      header.h64.e_shnum, header.h64.e_shstrndx };
	return true;
}

/* If the file does not have the header, libelf will not find it either, and @out is all
 * zeros. */
static void read_section_header_at(int fd, const struct head *head, uint64_t index,
				   Elf64_Shdr *out)
{
	Elf32_Shdr small;

	*out = (Elf64_Shdr){ 0 };
	if (!head->is_32) {
		if (!pm_unw_read_fully(fd, out, sizeof(*out),
				       head->shoff + index * sizeof(*out)))
			*out = (Elf64_Shdr){ 0 };
	} else if (pm_unw_read_fully(fd, &small, sizeof(small),
				     head->shoff + index * sizeof(small))) {
		out->sh_size = small.sh_size;
		out->sh_link = small.sh_link;
	}
}

/*
 * Limits the memory that libelf uses. libelf keeps 200 bytes for each section; if there
 * are 2^16 or more, their number is in a 64-bit field (gABI "e_shnum"). It also keeps all
 * section names, whose size the file states, too, and all program headers, up to 2^32
 * with PN_XNUM.
 */
bool pm_unw_elf_is_modest(int fd)
{
	Elf64_Shdr first, names;
	struct head head;

	if (!read_elf_head(fd, &head) || head.phnum == PN_XNUM)
		return false;
	if (head.shoff == 0)
		return true;
	read_section_header_at(fd, &head, 0, &first);
	if ((head.shnum > 0 ? head.shnum : first.sh_size) > SECTIONS_MAX)
		return false;
	read_section_header_at(
		fd, &head, head.names == SHN_XINDEX ? first.sh_link : head.names, &names);
	return names.sh_size <= NAMES_BYTES_MAX;
}

static int module_read_loads(struct pm_unw_module *module, Elf *elf, GElf_Phdr *eh_hdr)
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
		if (phdr.p_type == PT_DYNAMIC) {
			module->dynamic_offset = phdr.p_offset;
			module->dynamic_bytes = phdr.p_filesz;
		}
		if (phdr.p_type != PT_LOAD)
			continue;
		if (pm_vec_push(
			    &module->loads,
			    (struct pm_unw_load){ .vaddr = phdr.p_vaddr,
						  .offset = phdr.p_offset,
						  .filesz = phdr.p_filesz,
						  .executable = phdr.p_flags & PF_X,
						  .writable = phdr.p_flags & PF_W }) != 0)
			return -ENOMEM;
	}
	return 0;
}

/* Rounds down to the largest page size of Linux on these machines, because mappings start
 * at a page. */
static void module_find_svma_low(struct pm_unw_module *module)
{
	uint64_t low = module->loads.len > 0 ? UINT64_MAX : 0;

	for (size_t i = 0; i < module->loads.len; i++)
		if (module->loads.data[i].vaddr < low)
			low = module->loads.data[i].vaddr;
	module->svma_low = low & ~(uint64_t)0xffff;
}

/* Returns the segment whose bytes in the file contain @svma, or NULL. */
static struct pm_unw_load *find_load_of_svma(struct pm_unw_module *module, uint64_t svma)
{
	for (size_t i = 0; i < module->loads.len; i++) {
		struct pm_unw_load *load = &module->loads.data[i];

		if (svma - load->vaddr < load->filesz)
			return load;
	}
	return NULL;
}

/*
 * Reads PT_GNU_EH_FRAME (LSB 10.6.2). That header also gives the address of .eh_frame,
 * for files without section headers. Only the table format that linkers write is used;
 * files with another one are scanned.
 */
static void module_use_header_table(struct pm_unw_module *module)
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

	head = PM_MIN(hdr->len, 64);
	bytes = pm_unw_region_need(hdr, 0, head);
	if (head < 4 || !bytes || bytes[0] != 1 || bytes[1] == OMIT)
		return;
	pm_reader_init(&reader, bytes, head);
	reader.pos = 4;
	eh_frame = pm_unw_read_encoded(&pm_unw_arch_infos[module->arch], &reader,
				       bytes[1], hdr->svma);
	if (reader.failed)
		return;
	if (module->eh_frame.len == 0) {
		const struct pm_unw_load *load = find_load_of_svma(module, eh_frame);
		uint64_t skip = load ? eh_frame - load->vaddr : 0;

		if (!load)
			return;
		pm_unw_region_open(module, &module->eh_frame, eh_frame,
				   load->offset + skip, load->filesz - skip);
		module->eh_frame.open_ended = true;
	}
	if (module->eh_frame.svma != eh_frame || bytes[2] == OMIT ||
	    bytes[3] != DATAREL_SDATA4)
		return;
	count = pm_unw_read_encoded(&pm_unw_arch_infos[module->arch], &reader, bytes[2],
				    hdr->svma);
	if (reader.failed || count == 0 || count > (hdr->len - reader.pos) / 8)
		return;
	module->hdr_table = reader.pos;
	module->hdr_count = count;
}

bool pm_unw_is_debug_frame(const char *section)
{
	return strcmp(section, ".debug_frame") == 0 ||
	       strcmp(section, ".zdebug_frame") == 0;
}

/* Notes that there is a .debug_frame: it is not loaded, and may be compressed. */
static void module_note_debug_frame(struct pm_unw_module *module, const GElf_Shdr *shdr,
				    const char *name)
{
	if (shdr->sh_flags & SHF_COMPRESSED || name[1] == 'z') {
		module->debug_packed = true;
		module->debug_packed_bytes = shdr->sh_size;
	} else if (module->debug_frame.len == 0)
		pm_unw_region_open(module, &module->debug_frame, 0, shdr->sh_offset,
				   shdr->sh_size);
}

static void module_read_sections(struct pm_unw_module *module, Elf *elf)
{
	Elf_Scn *scn = NULL;
	size_t names;

	module->no_sections = !elf_nextscn(elf, NULL);
	if (elf_getshdrstrndx(elf, &names) != 0)
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS ||
		    !(name = elf_strptr(elf, names, shdr.sh_name)))
			continue;
		if (strcmp(name, ".eh_frame") == 0 && module->eh_frame.len == 0)
			pm_unw_region_open(module, &module->eh_frame, shdr.sh_addr,
					   shdr.sh_offset, shdr.sh_size);
		else if (pm_go_is_section(name))
			module->go_named = true;
		else if (pm_unw_is_debug_frame(name))
			module_note_debug_frame(module, &shdr, name);
	}
}

static int module_read_elf(struct pm_unw_module *module, Elf *elf, struct pm_error *err)
{
	GElf_Phdr eh_hdr = { .p_type = PT_NULL };
	GElf_Ehdr ehdr;
	unsigned int arch;
	int ret;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr))
		return pm_error_set(err, -ENOEXEC, "not an ELF file");
	for (arch = 0; arch < PM_UNW_ARCH_COUNT; arch++)
		if (ehdr.e_machine == pm_unw_arch_infos[arch].elf_machine &&
		    ehdr.e_ident[EI_CLASS] == pm_unw_arch_infos[arch].elf_class)
			break;
	if (arch == PM_UNW_ARCH_COUNT || ehdr.e_ident[EI_DATA] != ELFDATA2LSB)
		return pm_error_set(err, -ENOEXEC, "an ELF file of another machine");
	module->arch = (enum pm_unw_arch)arch;
	module->entry = ehdr.e_entry;
	ret = module_read_loads(module, elf, &eh_hdr);
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	module_find_svma_low(module);
	module_read_sections(module, elf);
	if (eh_hdr.p_type == PT_GNU_EH_FRAME) {
		pm_unw_region_open(module, &module->eh_frame_hdr, eh_hdr.p_vaddr,
				   eh_hdr.p_offset, eh_hdr.p_filesz);
		module_use_header_table(module);
	}
	return 0;
}

/* ---- public -------------------------------------------------------------------------- */

void pm_unw_module_renew(struct pm_unw_module *module)
{
	static atomic_uint next_id = 1;

	module->id = atomic_fetch_add(&next_id, 1);
}

static struct pm_unw_module *module_new(void)
{
	struct pm_unw_module *module = calloc(1, sizeof(*module));

	if (module) {
		pm_unw_module_renew(module);
		module->fd = -1;
		module->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
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

int pm_unw_module_open(struct pm_unw_module **out, int fd, struct pm_error *err)
{
	PM_CLEANUP(cleanup_module) struct pm_unw_module *module = module_new();
	PM_CLEANUP(cleanup_elf) Elf *elf = NULL;
	int ret;

	if (!module)
		return pm_error_no_memory(err);
	module->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (module->fd < 0)
		return pm_error_set(err, -errno, "cannot keep the file open: %s",
				    strerror(errno));
	if (!pm_unw_elf_is_modest(module->fd))
		return pm_error_set(err, -ENOEXEC, "not an ELF file");
	elf_version(EV_CURRENT);
	elf = elf_begin(module->fd, ELF_C_READ, NULL);
	if (!elf)
		return pm_error_set(err, -ENOEXEC, "not an ELF file");
	ret = module_read_elf(module, elf, err);
	if (ret == 0)
		*out = PM_TAKE_PTR(module);
	return ret;
}

static int copy_part_to_region(struct pm_unw_region *region,
			       const struct pm_unw_part *part)
{
	if (part->len == 0 ||
	    pm_unw_region_copy(region, part->svma, part->data, part->len))
		return 0;
	return -ENOMEM;
}

int pm_unw_module_from_parts(struct pm_unw_module **out, const struct pm_unw_parts *parts,
			     struct pm_error *err)
{
	PM_CLEANUP(cleanup_module) struct pm_unw_module *module = module_new();

	if (!module)
		return pm_error_no_memory(err);
	if (copy_part_to_region(&module->eh_frame_hdr, &parts->eh_frame_hdr) < 0 ||
	    copy_part_to_region(&module->eh_frame, &parts->eh_frame) < 0 ||
	    copy_part_to_region(&module->debug_frame, &parts->debug_frame) < 0)
		return pm_error_set(err, -ENOMEM,
				    "more unwind information than is kept in memory");
	if (pm_unw_code_add(module, parts->code, parts->code_len) < 0)
		return pm_error_set(err, -ENOMEM, "more code than is kept in memory");
	module->arch = parts->arch;
	module->entry = parts->entry;
	module->page_bytes = 4096;
	if (parts->page_bytes)
		module->page_bytes = parts->page_bytes;
	for (size_t i = 0; i < parts->loads_len; i++)
		if (pm_vec_push(&module->loads,
				(struct pm_unw_load){
					.vaddr = parts->loads[i].vaddr,
					.offset = parts->loads[i].offset,
					.filesz = parts->loads[i].filesz,
					.executable = parts->loads[i].executable }) != 0)
			return pm_error_no_memory(err);
	module_find_svma_low(module);
	if (module->eh_frame_hdr.len > 0)
		module_use_header_table(module);
	*out = PM_TAKE_PTR(module);
	return 0;
}

int pm_unw_module_from_memory(struct pm_unw_module **out, const void *image, size_t len,
			      struct pm_error *err)
{
	PM_CLEANUP(cleanup_module) struct pm_unw_module *module = module_new();
	PM_CLEANUP(cleanup_elf) Elf *elf = NULL;
	int ret;

	if (!module || !(module->image = malloc(len ? len : 1)))
		return pm_error_no_memory(err);
	memcpy(module->image, image, len);
	module->image_len = len;
	elf_version(EV_CURRENT);
	elf = elf_memory((char *)module->image, len);
	if (!elf)
		return pm_error_set(err, -ENOEXEC, "not an ELF image");
	ret = module_read_elf(module, elf, err);
	if (ret == 0)
		*out = PM_TAKE_PTR(module);
	return ret;
}

/* ---- the task that works on it --------------------------------------------------------- */

bool pm_unw_may_now(const struct pm_unw_module *module, uint64_t bytes)
{
	return !module->helper || module->fd < 0 ||
	       module->helper->may_now(module->helper->user,
				       (size_t)PM_MIN(bytes, SIZE_MAX));
}

void pm_unw_task_unref(struct pm_unw_task *task)
{
	if (!task || atomic_fetch_sub(&task->refs, 1) > 1)
		return;
	pm_unw_module_free(task->found);
	pm_cleanup_close(&task->fd);
	pm_cleanup_close(&task->debug_fd);
	free(task);
}

void pm_unw_task_cancel(struct pm_unw_task *task)
{
	atomic_store(&task->cancelled, true);
}

int pm_unw_do_later(struct pm_unw_module *module, unsigned int wanted, int debug_fd)
{
	PM_AUTO_CLOSE int owned_debug_fd = debug_fd;
	struct pm_unw_task *task;

	if (module->task)
		return -EINPROGRESS;
	task = calloc(1, sizeof(*task));
	if (!task)
		return -EINPROGRESS;
	atomic_init(&task->refs, 2);
	task->wanted = wanted;
	task->debug_fd = pm_take_fd(&owned_debug_fd);
	task->fd = fcntl(module->fd, F_DUPFD_CLOEXEC, 0);
	if (task->fd >= 0 && module->helper->take(module->helper->user, task)) {
		module->task = task;
		return -EINPROGRESS;
	}
	/* Without a thread, the task is dropped; the module does not ask for a debug file
	 * again. */
	atomic_store(&task->refs, 1);
	pm_unw_task_unref(task);
	return -EINPROGRESS;
}

static void fde_table_take(struct pm_unw_fde_table *table, struct pm_unw_fde_table *from)
{
	pm_unw_fde_table_release(table);
	*table = *from;
	*from = (struct pm_unw_fde_table){ 0 };
	/* If the task could not read the table, do not try again. */
	table->scanned = true;
}

/* Takes over the .debug_frame of @from if it has one. */
static void module_take_debug(struct pm_unw_module *module, struct pm_unw_module *from)
{
	if (from->debug_frame.len == 0 || module->debug_frame.len > 0)
		return;
	module->debug_frame = from->debug_frame;
	from->debug_frame = (struct pm_unw_region){ 0 };
	pm_unw_fde_table_release(&module->debug_scanned);
	module->debug_scanned = from->debug_scanned;
	from->debug_scanned = (struct pm_unw_fde_table){ 0 };
}

/* Takes over all tables that the task has read from the file. */
static void module_take_found(struct pm_unw_module *module, struct pm_unw_module *found,
			      unsigned int wanted)
{
	if ((wanted & PM_UNW_WANTED_EH_SEARCH) && found->eh_frame.len > 0 &&
	    module->eh_frame.len == 0) {
		module->eh_frame = found->eh_frame;
		module->eh_frame.fd = module->fd;
		found->eh_frame = (struct pm_unw_region){ 0 };
		fde_table_take(&module->eh_scanned, &found->eh_scanned);
	}
	if ((wanted & PM_UNW_WANTED_GO) && found->go && !module->go) {
		module->go = PM_TAKE_PTR(found->go);
		pm_unw_go_set_fd(module->go, module->fd);
	}
	if (wanted & PM_UNW_WANTED_EH_TABLE)
		fde_table_take(&module->eh_scanned, &found->eh_scanned);
	if (wanted & PM_UNW_WANTED_DEBUG_TABLE)
		fde_table_take(&module->debug_scanned, &found->debug_scanned);
	if (wanted & (PM_UNW_WANTED_UNPACKED | PM_UNW_WANTED_DEBUG_FILE))
		module_take_debug(module, found);
}

void pm_unw_task_settle(struct pm_unw_module *module)
{
	struct pm_unw_task *task = module->task;

	if (!task || !atomic_load(&task->done))
		return;
	module->task = NULL;
	if (task->wanted & PM_UNW_WANTED_GO)
		module->go_tried = true;
	if (task->wanted & PM_UNW_WANTED_UNPACKED)
		module->debug_packed = false;
	if (task->wanted & (PM_UNW_WANTED_EH_SEARCH | PM_UNW_WANTED_UNPACKED) ||
	    (module->no_sections && module->go_tried))
		module->gap_searched = true;
	if (task->found)
		module_take_found(module, task->found, task->wanted);
	/* If the task could not even open the file, do not try again. */
	module->eh_scanned.scanned |= task->wanted & PM_UNW_WANTED_EH_TABLE;
	module->debug_scanned.scanned |= task->wanted & PM_UNW_WANTED_DEBUG_TABLE;
	pm_unw_task_unref(task);
	pm_unw_module_renew(module);
}

void pm_unw_task_drop(struct pm_unw_module *module)
{
	if (!module->task)
		return;
	pm_unw_task_cancel(module->task);
	pm_unw_task_unref(PM_TAKE_PTR(module->task));
}

void pm_unw_module_set_helper(struct pm_unw_module *module,
			      const struct pm_unw_helper *helper)
{
	module->helper = helper;
}

struct pm_unw_module_tables pm_unw_module_tables(const struct pm_unw_module *module)
{
	return (struct pm_unw_module_tables){
		.pending = module->was_pending,
		.too_large =
			module->eh_scanned.too_large || module->debug_scanned.too_large,
	};
}

/* ---- an open module ------------------------------------------------------------------- */

void pm_unw_module_close(struct pm_unw_module *module)
{
	pm_unw_region_release(&module->eh_frame_hdr);
	pm_unw_region_release(&module->eh_frame);
	pm_unw_region_release(&module->debug_frame);
	for (size_t i = 0; i < module->loads.len; i++)
		pm_unw_region_release(&module->loads.data[i].region);
	pm_unw_fde_table_release(&module->eh_scanned);
	pm_unw_fde_table_release(&module->debug_scanned);
	pm_unw_task_drop(module);
	pm_unw_go_free(PM_TAKE_PTR(module->go));
	pm_cleanup_close(&module->fd);
	module->fd = -1;
	/* Do not search for missing tables while the file is closed. */
	module->gap_seen = module->gap_searched = module->go_tried = true;
	module->debug_packed = false;
	module->hdr_table = module->hdr_count = 0;
	pm_unw_module_renew(module);
}

int pm_unw_module_reopen(struct pm_unw_module *module, int fd, struct pm_error *err)
{
	PM_CLEANUP(cleanup_module) struct pm_unw_module *fresh = NULL;
	struct pm_unw_module closed = *module;
	int ret = pm_unw_module_open(&fresh, fd, err);

	if (ret < 0)
		return ret;
	*module = *fresh;
	module->helper = closed.helper;
	module->open_debug = closed.open_debug;
	module->open_debug_user = closed.open_debug_user;
	*fresh = closed;
	return 0;
}

void pm_unw_module_free(struct pm_unw_module *module)
{
	if (!module)
		return;
	pm_unw_module_close(module);
	pm_vec_release(&module->loads);
	pm_unw_code_release(module);
	free(module->image);
	free(module);
}

int pm_unw_module_bias(const struct pm_unw_module *module, uint64_t start, uint64_t pgoff,
		       uint64_t *out)
{
	const struct pm_unw_load *found = NULL;

	/* Adjacent segments share the page where one ends and the next starts. An
	 * executable segment is preferred, and otherwise the one that starts in that
	 * page. */
	for (size_t i = 0; i < module->loads.len; i++) {
		const struct pm_unw_load *load = &module->loads.data[i];
		uint64_t first = load->offset & -module->page_bytes;

		if (pgoff >= first &&
		    pgoff - first < load->offset - first + load->filesz &&
		    (!found || load->executable > found->executable ||
		     (load->executable == found->executable && first == pgoff)))
			found = load;
	}
	if (!found)
		return -ENOENT;
	*out = start - pgoff + found->offset - found->vaddr;
	return 0;
}

struct pm_unw_code_span pm_unw_module_code_span(const struct pm_unw_module *module)
{
	struct pm_unw_code_span ret = { .start = UINT64_MAX };

	for (size_t i = 0; i < module->loads.len; i++) {
		const struct pm_unw_load *load = &module->loads.data[i];
		uint64_t end;

		if (!load->executable ||
		    __builtin_add_overflow(load->vaddr, load->filesz, &end))
			continue;
		ret.start = PM_MIN(load->vaddr, ret.start);
		ret.end = PM_MAX(end, ret.end);
	}
	return ret;
}

bool pm_unw_module_read(struct pm_unw_module *module, uint64_t svma, void *out,
			size_t len)
{
	struct pm_unw_load *load = find_load_of_svma(module, svma);
	uint64_t skip = load ? svma - load->vaddr : 0, offset;
	const uint8_t *bytes;

	if (module->code.len > 0)
		return pm_unw_code_read(module, svma, out, len);
	if (!load || load->filesz - skip < len)
		return false;
	offset = load->offset + skip;
	if (module->image) {
		if (offset > module->image_len || len > module->image_len - offset)
			return false;
		memcpy(out, module->image + offset, len);
		return true;
	}
	if (!load->opened) {
		load->opened = true;
		pm_unw_region_open(module, &load->region, load->vaddr, load->offset,
				   load->filesz);
	}
	bytes = pm_unw_region_need(&load->region, skip, len);
	if (bytes) {
		memcpy(out, bytes, len);
		return true;
	}
	/* The segment is too large to cache, or the file is shorter than its header says:
	 * read only the requested bytes. */
	pm_unw_region_release(&load->region);
	return pm_unw_read_fully(module->fd, out, len, offset);
}

bool pm_unw_module_has_go_callers(const struct pm_unw_module *module)
{
	return module->go_named && module->arch == PM_UNW_X86_64;
}

int pm_unw_module_fd(const struct pm_unw_module *module)
{
	return module->fd;
}

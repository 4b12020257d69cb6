/* SPDX-License-Identifier: MIT */
/*
 * The second opinion: libunwind-ptrace reads the stopped thread itself, with its own CFI
 * reader. It shares neither code nor input with our unwinder. It reads tables byte by
 * byte, and fetches for each byte the word that contains it. Memory is therefore read in
 * blocks, which are cached for one chain.
 */
#include "pm/unwind.h"

#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include <libunwind-ptrace.h>

enum {
	MAPS_MAX = 1 << 16, /* lines of /proc/PID/maps that are read */
	SEGMENTS_MAX = 64,
	/* LSB 5, 10.6.2: the encodings that all linkers use. */
	HDR_VERSION = 1,
	PTR_PCREL_SDATA4 = 0x1b,
	COUNT_UDATA4 = 0x03,
	TABLE_DATAREL_SDATA4 = 0x3b,
	HDR_BYTES = 12,
	TABLE_ENTRY_BYTES = 8,
	BLOCKS = 32,
	BLOCK_BYTES = 256,
};

/* The unwind table of the file that is mapped around an address. */
struct table {
	uint64_t start, end; /* avma range of the file's code */
	uint64_t hdr; /* avma of .eh_frame_hdr */
	uint32_t count;
};

/* A block of the stopped thread's memory. */
struct block {
	uint64_t at;
	bool known;
	uint8_t bytes[BLOCK_BYTES];
};

/* The state of one chain; each part may be missing. */
struct ptrace_session {
	unw_addr_space_t space;
	void *upt;
	pid_t tid;
	struct table table; /* the table that was found last */
	struct block blocks[BLOCKS];
};

static void ptrace_session_release(struct ptrace_session *session)
{
	if (session->upt)
		_UPT_destroy(session->upt);
	if (session->space)
		unw_destroy_addr_space(session->space);
}

/* ---- tables ---------------------------------------------------------------------------- */

/* libunwind exports this function for callers that know where a table is. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip,
					      unw_dyn_info_t *di, unw_proc_info_t *pi,
					      int need_unwind_info, void *arg);

static bool read_bytes_of_task(pid_t tid, uint64_t address, void *out, size_t len)
{
	struct iovec local = { out, len }, remote = { (void *)(uintptr_t)address, len };

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

/* A mapping of a file, and the start of the mapping (possibly the same) that contains the
 * file's header. */
struct mapped {
	uint64_t start, offset, header;
};

static bool find_mapping_around(pid_t tid, uint64_t address, struct mapped *out)
{
	char path[64], line[512];
	PM_AUTO_FCLOSE FILE *maps = NULL;
	unsigned long long header = 0, of = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)tid);
	maps = fopen(path, "re");
	for (size_t i = 0; maps && i < MAPS_MAX && fgets(line, sizeof(line), maps); i++) {
		unsigned long long start, end, offset, inode;

		if (sscanf(line, "%llx-%llx %*s %llx %*s %llu", &start, &end, &offset,
			   &inode) != 4)
			continue; /* the continuation of a line with a long name */
		if (offset == 0) {
			header = start;
			of = inode;
		}
		if (address < start || address >= end)
			continue;
		*out = (struct mapped){ start, offset, header };
		return inode != 0 && inode == of;
	}
	return false;
}

/* Whether the segment is mapped around @address; if it is, sets @bias. */
static bool is_segment_around(const Elf64_Phdr *segment, const struct mapped *mapped,
			      uint64_t address, uint64_t *bias)
{
	uint64_t at = address - mapped->start + mapped->offset;

	if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
	    at < segment->p_offset || at - segment->p_offset >= segment->p_filesz)
		return false;
	*bias = address - (at - segment->p_offset + segment->p_vaddr);
	return true;
}

/* Reads program headers from the thread's memory. Returns their number, 0 if they cannot
 * be read. */
static size_t read_segments_of_task(pid_t tid, uint64_t header, Elf64_Phdr *out)
{
	Elf64_Ehdr elf;

	if (!read_bytes_of_task(tid, header, &elf, sizeof(elf)) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
	    elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_phentsize != sizeof(*out) ||
	    elf.e_phnum > SEGMENTS_MAX ||
	    !read_bytes_of_task(tid, header + elf.e_phoff, out,
				elf.e_phnum * sizeof(*out)))
		return 0;
	return elf.e_phnum;
}

static bool read_unwind_table(pid_t tid, uint64_t address, struct table *out)
{
	struct {
		uint8_t version, ptr, count, table;
		int32_t frames;
		uint32_t entries;
	} hdr;
	struct table found = { 0 };
	struct mapped mapped;
	Elf64_Phdr segments[SEGMENTS_MAX];
	uint64_t bias = 0;
	size_t len = 0;

	if (find_mapping_around(tid, address, &mapped))
		len = read_segments_of_task(tid, mapped.header, segments);
	for (size_t i = 0; i < len; i++) {
		if (is_segment_around(&segments[i], &mapped, address, &bias)) {
			found.start = bias + segments[i].p_vaddr;
			found.end = found.start + segments[i].p_memsz;
		}
		if (segments[i].p_type == PT_GNU_EH_FRAME)
			found.hdr = segments[i].p_vaddr;
	}
	if (found.start == found.end || found.hdr == 0)
		return false;
	found.hdr += bias;
	if (!read_bytes_of_task(tid, found.hdr, &hdr, sizeof(hdr)) ||
	    hdr.version != HDR_VERSION || hdr.ptr != PTR_PCREL_SDATA4 ||
	    hdr.count != COUNT_UDATA4 || hdr.table != TABLE_DATAREL_SDATA4)
		return false;
	found.count = hdr.entries;
	*out = found;
	return true;
}

/*
 * libunwind 1.6 assumes that a file's code starts at the start of a page. In files linked
 * by lld it does not; libunwind then finds no CFI, or that of another function. If the
 * file has a table, this function passes its address to libunwind.
 */
static int find_unwind_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *out,
				 int need, void *arg)
{
	struct ptrace_session *session = arg;
	struct table *table = &session->table;
	unw_dyn_info_t info = { .format = UNW_INFO_FORMAT_REMOTE_TABLE };

	if ((ip < table->start || ip >= table->end) &&
	    !read_unwind_table(session->tid, ip, table))
		return _UPT_find_proc_info(as, ip, out, need, session->upt);
	info.start_ip = table->start;
	info.end_ip = table->end;
	info.u.rti.segbase = table->hdr;
	info.u.rti.table_data = table->hdr + HDR_BYTES;
	info.u.rti.table_len =
		(uint64_t)table->count * TABLE_ENTRY_BYTES / sizeof(unw_word_t);
	return UNW_OBJ(dwarf_search_unwind_table)(as, ip, &info, out, need, arg);
}

/* ---- the rest, by libunwind itself --------------------------------------------------------- */

static void *upt_of_session(void *arg)
{
	return ((struct ptrace_session *)arg)->upt;
}

static void put_unwind_proc_info(unw_addr_space_t as, unw_proc_info_t *info, void *arg)
{
	_UPT_put_unwind_info(as, info, upt_of_session(arg));
}

static int get_dyn_info_list(unw_addr_space_t as, unw_word_t *out, void *arg)
{
	return _UPT_get_dyn_info_list_addr(as, out, upt_of_session(arg));
}

/* Reads a word without ptrace(2). Returns false if only ptrace(2) can read it, or if it
 * cannot be read at all. */
static bool session_read_word(struct ptrace_session *session, uint64_t at,
			      unw_word_t *out)
{
	uint64_t in = at % BLOCK_BYTES;
	struct block *block = &session->blocks[at / BLOCK_BYTES % BLOCKS];

	if (in > BLOCK_BYTES - sizeof(*out))
		return false;
	if (!block->known || block->at != at - in) {
		block->at -= in;
		block->known = read_bytes_of_task(session->tid, block->at, block->bytes,
						  sizeof(block->bytes));
	}
	if (block->known)
		memcpy(out, block->bytes + in, sizeof(*out));
	return block->known;
}

static int session_access_mem(unw_addr_space_t as, unw_word_t at, unw_word_t *value,
			      int write, void *arg)
{
	if (!write && session_read_word(arg, at, value))
		return 0;
	return _UPT_access_mem(as, at, value, write, upt_of_session(arg));
}

static int session_access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value,
			      int write, void *arg)
{
	return _UPT_access_reg(as, reg, value, write, upt_of_session(arg));
}

static int session_access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value,
				int write, void *arg)
{
	return _UPT_access_fpreg(as, reg, value, write, upt_of_session(arg));
}

static unw_accessors_t accessors = {
	.find_proc_info = find_unwind_proc_info,
	.put_unwind_info = put_unwind_proc_info,
	.get_dyn_info_list_addr = get_dyn_info_list,
	.access_mem = session_access_mem,
	.access_reg = session_access_reg,
	.access_fpreg = session_access_fpreg,
};

/* ---- one chain --------------------------------------------------------------------------- */

/* libunwind's error numbers say nothing about ptrace, so ask ptrace first. */
static int check_task_stopped(pid_t tid, struct pm_error *err)
{
	unsigned long message;

	/* Every architecture has this request. */
	if (ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message) == 0)
		return 0;
	return pm_error_set(err, -errno, "thread %d is not ptrace-stopped by this thread",
			    (int)tid);
}

static int set_libunwind_error(struct pm_error *err, int unw, pid_t tid, const char *what)
{
	int ret = unw == -UNW_ENOMEM ? -ENOMEM : -EIO;

	return pm_error_set(err, ret, "libunwind cannot %s thread %d: %s", what, (int)tid,
			    unw_strerror(unw));
}

static int ptrace_session_start(struct ptrace_session *session, unw_cursor_t *cursor,
				pid_t tid, struct pm_error *err)
{
	int unw;

	/* A new space has an empty cache, which matters if a module has moved. */
	session->space = unw_create_addr_space(&accessors, 0);
	session->upt = _UPT_create(tid);
	session->tid = tid;
	if (!session->space || !session->upt)
		return pm_error_no_memory(err);
	unw = unw_init_remote(cursor, session->space, session);
	if (unw < 0)
		return set_libunwind_error(err, unw, tid, "read the registers of");
	return 0;
}

ssize_t pm_unw_ptrace_chain(pid_t tid, uint64_t *pcs, size_t max, struct pm_error *err)
{
	PM_CLEANUP(ptrace_session_release) struct ptrace_session session = { 0 };
	unw_cursor_t cursor;
	unw_word_t last_pc = 0;
	unw_word_t last_sp = 0;
	size_t len = 0;
	int ret;

	ret = check_task_stopped(tid, err);
	if (ret < 0)
		return ret;
	ret = ptrace_session_start(&session, &cursor, tid, err);
	if (ret < 0)
		return ret;
	while (len < max) {
		unw_word_t pc;
		unw_word_t sp;
		int unw = unw_get_reg(&cursor, UNW_REG_IP, &pc);

		if (unw == 0)
			unw = unw_get_reg(&cursor, UNW_REG_SP, &sp);
		if (unw < 0)
			return set_libunwind_error(err, unw, tid, "step in");
		/* libunwind returns pc 0 at the end of a chain. If pc and sp have not
		 * changed, the CFI leads nowhere. */
		if (len > 0 && (pc == 0 || (pc == last_pc && sp == last_sp)))
			break;
		pcs[len++] = pc;
		last_pc = pc;
		last_sp = sp;
		/* A failing step ends a chain without a root; the frames found so far are
		 * valid. */
		if (unw_step(&cursor) <= 0)
			break;
	}
	return (ssize_t)len;
}

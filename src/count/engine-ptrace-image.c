/* SPDX-License-Identifier: MIT */
/*
 * The breakpoints and slots of an address space. Slots must be within reach of the code's
 * displacements: after the end of a segment, in the unused part of the last page, or in a
 * page that the process maps for us.
 */
#include "engine-ptrace.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>

enum {
	AUXV_MAX = 64,
	GAPS_MAX = 1 << 16, /* mappings that are searched for a gap */
};
#define LOWEST UINT64_C(0x100000)

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- memory of a stopped thread -------------------------------------------------------- */

/* Writes by words, as only ptrace(2) can write where the program may not. */
static int write_bytes(pid_t tid, uint64_t address, const uint8_t *bytes, size_t len)
{
	while (len > 0) {
		size_t skip = address % sizeof(long), part = sizeof(long) - skip;
		void *word_at = (void *)(uintptr_t)(address - skip);
		long word;

		if (part > len)
			part = len;
		errno = 0;
		word = ptrace(PTRACE_PEEKTEXT, tid, word_at, NULL);
		if (errno != 0)
			return -errno;
		memcpy((uint8_t *)&word + skip, bytes, part);
		if (ptrace(PTRACE_POKETEXT, tid, word_at, (void *)word) < 0)
			return -errno;
		address += part;
		bytes += part;
		len -= part;
	}
	return 0;
}

/* ---- creation and destruction -------------------------------------------------------- */

struct pm_ptr_image *pm_ptr_image_new(void)
{
	struct pm_ptr_image *image = calloc(1, sizeof(*image));

	if (image)
		image->refs = 1;
	return image;
}

void pm_ptr_image_unref(struct pm_ptr_image *image)
{
	if (!image || --image->refs > 0)
		return;
	pm_vec_release(&image->breaks);
	pm_vec_release(&image->rooms);
	free(image);
}

struct pm_ptr_image *pm_ptr_image_copy(const struct pm_ptr_image *image)
{
	struct pm_ptr_image *copy = pm_ptr_image_new();

	if (!copy)
		return NULL;
	copy->unplanted = image->unplanted;
	copy->may_map = image->may_map;
	if (pm_vec_reserve(&copy->breaks, image->breaks.len + 1) < 0 ||
	    pm_vec_reserve(&copy->rooms, image->rooms.len + 1) < 0) {
		pm_ptr_image_unref(copy);
		return NULL;
	}
	for (size_t i = 0; i < image->breaks.len; i++)
		copy->breaks.data[copy->breaks.len++] = image->breaks.data[i];
	for (size_t i = 0; i < image->rooms.len; i++)
		copy->rooms.data[copy->rooms.len++] = image->rooms.data[i];
	return copy;
}

/* ---- finding ------------------------------------------------------------------------- */

/* Counts the breaks below @address. */
static size_t count_breaks_below(const struct pm_ptr_image *image, uint64_t address)
{
	size_t low = 0, high = image->breaks.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (image->breaks.data[mid].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct pm_ptr_break *pm_ptr_image_find(const struct pm_ptr_image *image,
					     uint64_t address)
{
	size_t at = count_breaks_below(image, address);

	if (at < image->breaks.len && image->breaks.data[at].address == address)
		return &image->breaks.data[at];
	return NULL;
}

const struct pm_ptr_break *pm_ptr_image_in_slot(const struct pm_ptr_image *image,
						uint64_t ip)
{
	bool inside = false;

	for (size_t i = 0; !inside && i < image->rooms.len; i++)
		inside =
			ip >= image->rooms.data[i].start && ip < image->rooms.data[i].end;
	for (size_t i = 0; inside && i < image->breaks.len; i++)
		if (ip - image->breaks.data[i].slot < PM_PTR_SLOT_BYTES)
			return &image->breaks.data[i];
	return NULL;
}

/* ---- room for slots ------------------------------------------------------------------ */

static uint64_t address_distance(uint64_t a, uint64_t b)
{
	if (a > b)
		return a - b;
	return b - a;
}

static struct pm_ptr_room *find_room(struct pm_ptr_image *image, uint64_t address)
{
	for (size_t i = 0; i < image->rooms.len; i++) {
		struct pm_ptr_room *room = &image->rooms.data[i];

		if (address_distance(room->start, address) < pm_ptr_near_bytes &&
		    room->end - room->used >= PM_PTR_SLOT_BYTES)
			return room;
	}
	return NULL;
}

/* Adds the room after the end of the mapped segment. @old: the previous rooms. */
static int add_padding(struct pm_ptr_image *image, const struct pm_ptr_image *old,
		       const struct pm_ptr_file *file, const struct pm_mapping *map)
{
	for (size_t i = 0; i < file->ends.len; i++) {
		uint64_t end = file->ends.data[i], start;
		struct pm_ptr_room room = { .end = map->end };

		if (end <= map->pgoff || end - map->pgoff >= map->end - map->start)
			continue;
		start = map->start + (end - map->pgoff);
		/* The end of another segment, in the middle of this mapping. */
		if (map->end - start >= page_bytes())
			continue;
		room.start = room.used = (start + 15) & ~UINT64_C(15);
		for (size_t j = 0; j < old->rooms.len; j++)
			if (old->rooms.data[j].start == room.start &&
			    old->rooms.data[j].end == room.end)
				room.used = old->rooms.data[j].used;
		if (room.start < room.end)
			return pm_vec_push(&image->rooms, room);
		return 0;
	}
	return 0;
}

/* Returns the gap between the process's mappings that is nearest to @address; 0: none is
 * near enough. */
static uint64_t find_gap(pid_t pid, uint64_t address)
{
	PM_AUTO_FCLOSE FILE *maps = NULL;
	char path[64], line[512];
	uint64_t before = LOWEST, best = 0, page = page_bytes();

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	for (size_t i = 0; maps && i < GAPS_MAX && fgets(line, sizeof(line), maps); i++) {
		unsigned long long start, end;
		/* Both ends of the gap: before this mapping, and after the previous
		 * one. */
		uint64_t ends[2];

		if (sscanf(line, "%llx-%llx", &start, &end) != 2)
			continue; /* the rest of a long name */
		ends[0] = before;
		ends[1] = start - page;
		if (start >= before && start - before >= page && !strstr(line, "[stack]"))
			for (size_t j = 0; j < 2; j++)
				if (best == 0 || address_distance(ends[j], address) <
							 address_distance(best, address))
					best = ends[j];
		before = end;
	}
	if (best != 0 && address_distance(best, address) < pm_ptr_near_bytes)
		return best;
	return 0;
}

static struct pm_ptr_room *map_slot_room(struct pm_ptr_image *image, pid_t pid, pid_t tid,
					 uint64_t address)
{
	struct pm_ptr_room room = { .ours = true };
	uint64_t gap;

	if (!image->may_map)
		return NULL;
	gap = find_gap(pid, address);
	room.start = room.used = gap;
	room.end = gap + page_bytes();
	if (gap == 0 || pm_vec_reserve(&image->rooms, image->rooms.len + 1) < 0 ||
	    pm_ptr_map(tid, gap, page_bytes()) < 0)
		return NULL;
	image->rooms.data[image->rooms.len++] = room;
	return &image->rooms.data[image->rooms.len - 1];
}

/* ---- planting ------------------------------------------------------------------------ */

/* One pass over the mappings. */
struct look {
	struct pm_ptr_image *image, *next; /* before and after the pass */
	struct pm_ptr_sites *sites;
	pid_t pid, tid;
};

/* Returns the next free slot near @address; 0: none. */
static uint64_t next_slot(const struct look *look, uint64_t address,
			  struct pm_ptr_room **out)
{
	*out = find_room(look->next, address);
	if (!*out)
		*out = map_slot_room(look->next, look->pid, look->tid, address);
	if (*out)
		return (*out)->used;
	return 0;
}

/* Makes the code of the slot for the instruction, and stores the slot's address in @made,
 * if the instruction needs one. */
static int make_slot(const struct look *look, const struct pm_ptr_site *site,
		     struct pm_ptr_break *made, struct pm_ptr_code *code)
{
	struct pm_ptr_room *room;
	int ret;

	/* Check with the nearest possible slot whether the code can be made at all. */
	ret = pm_ptr_slot_make(site->bytes, site->len, made->address, made->after, code);
	if (ret < 0 || code->len == 0)
		return ret;
	made->slot = next_slot(look, made->address, &room);
	if (made->slot == 0)
		return -ENOSPC;
	ret = pm_ptr_slot_make(site->bytes, site->len, made->address, made->slot, code);
	if (ret == 0)
		room->used += PM_PTR_SLOT_BYTES;
	return ret;
}

static int plant_break(const struct look *look, uint32_t file, uint32_t index,
		       uint64_t address)
{
	const struct pm_ptr_site *site = &look->sites->files.data[file].sites.data[index];
	struct pm_ptr_break made = { .address = address,
				     .after = address + site->len,
				     .file = file,
				     .site = index };
	struct pm_ptr_code code;
	uint8_t found[PM_PTR_INSN_MAX];
	int ret;

	if (pm_trace_read(look->pid, address, found, site->len) != site->len &&
	    pm_trace_read(look->tid, address, found, site->len) != site->len)
		return -ESRCH;
	/* The memory differs from the file: patched at run time, or another tracer's
	 * breakpoint. */
	if (memcmp(found, site->bytes, site->len) != 0)
		return -ESTALE;
	if (pm_vec_reserve(&look->next->breaks, look->next->breaks.len + 1) < 0)
		return -ENOMEM;
	ret = make_slot(look, site, &made, &code);
	if (ret < 0)
		return ret;
	memcpy(made.original, site->bytes, sizeof(made.original));
	made.code_len = code.len;
	made.tail_at = code.tail_at;
	made.pushed_at = code.pushed_at;
	if (write_bytes(look->tid, made.slot, code.bytes, code.len) < 0 ||
	    write_bytes(look->tid, address, pm_ptr_trap, sizeof(pm_ptr_trap)) < 0)
		return -ESRCH;
	look->next->breaks.data[look->next->breaks.len++] = made;
	return 0;
}

static bool has_trap(pid_t tid, uint64_t address)
{
	uint8_t bytes[PM_PTR_TRAP_BYTES];

	return pm_trace_read(tid, address, bytes, sizeof(bytes)) == sizeof(bytes) &&
	       memcmp(bytes, pm_ptr_trap, sizeof(bytes)) == 0;
}

/* Whether the break was planted before and is still there: a library may have been
 * unmapped and mapped again. */
static bool keep_break(const struct look *look, uint32_t file, uint32_t index,
		       uint64_t address)
{
	const struct pm_ptr_break *old = pm_ptr_image_find(look->image, address);

	return old && old->file == file && old->site == index &&
	       has_trap(look->tid, address) &&
	       pm_vec_push(&look->next->breaks, *old) == 0;
}

static int plant_file(const struct look *look, uint32_t index,
		      const struct pm_mapping *map)
{
	const struct pm_ptr_file *file = &look->sites->files.data[index];
	int ret = add_padding(look->next, look->image, file, map);

	for (uint32_t i = 0; ret == 0 && i < file->sites.len; i++) {
		uint64_t offset = file->sites.data[i].offset, address;

		if (offset < map->pgoff || offset - map->pgoff >= map->end - map->start)
			continue;
		address = map->start + (offset - map->pgoff);
		if (keep_break(look, index, i, address))
			continue;
		ret = plant_break(look, index, i, address);
		if (ret == -ESTALE || ret == -ENOSPC || ret == -EOPNOTSUPP) {
			look->next->unplanted++;
			ret = 0;
		}
	}
	return ret;
}

static int compare_breaks(const void *a, const void *b)
{
	const struct pm_ptr_break *x = a, *y = b;

	if (x->address < y->address)
		return -1;
	return x->address > y->address;
}

/* Returns the value of an entry of the auxiliary vector; 0: there is none. */
static uint64_t read_auxv(pid_t pid, uint64_t type)
{
	PM_AUTO_CLOSE int fd = -1;
	Elf64_auxv_t entries[AUXV_MAX];
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		len = -1;
	else
		len = read(fd, entries, sizeof(entries));
	for (size_t i = 0; len > 0 && i < (size_t)len / sizeof(*entries); i++)
		if (entries[i].a_type == type)
			return entries[i].a_un.a_val;
	return 0;
}

bool pm_ptr_image_is_program(struct pm_ptr_sites *sites, const struct pm_procs *procs,
			     pid_t pid, const struct pm_space *space)
{
	const struct pm_mapping *own = pm_space_find(space, read_auxv(pid, AT_ENTRY));

	return own && sites->wanted == 1 &&
	       pm_ptr_sites_find(sites, procs, own->module) == 0;
}

/*
 * The dynamic linker has a function for debuggers, which it calls when libraries are
 * loaded or unloaded. It needs no breakpoint if all regions are in the program's own
 * file, which stays.
 */
static int add_linker(const struct look *look, struct pm_procs *procs,
		      const struct pm_space *space)
{
	uint64_t base = read_auxv(look->pid, AT_BASE);
	const struct pm_mapping *own =
		pm_space_find(space, read_auxv(look->pid, AT_ENTRY));
	int64_t file = -1;

	if (own)
		file = pm_ptr_sites_find(look->sites, procs, own->module);
	if (file == -ENOMEM)
		return -ENOMEM;
	if (base == 0 || (file == 0 && look->sites->wanted == 1))
		return 0;
	for (size_t i = 0; i < space->maps.len; i++)
		if (space->maps.data[i].start >= base) {
			int ret = pm_ptr_sites_add_linker(look->sites, procs,
							  space->maps.data[i].module);

			if (ret == -ENOMEM)
				return ret;
			return 0;
		}
	return 0;
}

static int plant_in_maps(const struct look *look, struct pm_procs *procs)
{
	const struct pm_process *process = pm_procs_get(procs, look->pid);
	const struct pm_space *space;
	int ret;

	if (!process)
		return -ENOMEM;
	space = &process->space;
	ret = add_linker(look, procs, space);

	for (size_t i = 0; ret == 0 && i < look->image->rooms.len; i++)
		if (look->image->rooms.data[i].ours)
			ret = pm_vec_push(&look->next->rooms, look->image->rooms.data[i]);
	for (size_t i = 0; ret == 0 && i < space->maps.len; i++) {
		const struct pm_mapping *map = &space->maps.data[i];
		int64_t file = pm_ptr_sites_find(look->sites, procs, map->module);

		if (file == -ENOMEM)
			ret = -ENOMEM;
		else if (file >= 0)
			ret = plant_file(look, (uint32_t)file, map);
	}
	return ret;
}

int pm_ptr_image_update(struct pm_ptr_image *image, struct pm_ptr_sites *sites,
			struct pm_procs *procs, pid_t pid, pid_t tid)
{
	struct pm_ptr_image next = { .may_map = image->may_map };
	struct look look = {
		.image = image, .next = &next, .sites = sites, .pid = pid, .tid = tid
	};
	int ret = pm_procs_read(procs, pid, NULL);

	if (ret < 0) {
		if (ret == -ENOMEM)
			return ret;
		return -ESRCH;
	}
	ret = plant_in_maps(&look, procs);
	/* Also after a failure halfway: the planted breaks must be known. */
	if (next.breaks.len > 0 || ret == 0) {
		pm_vec_release(&image->breaks);
		pm_vec_release(&image->rooms);
		memcpy(&image->breaks, &next.breaks, sizeof(next.breaks));
		memcpy(&image->rooms, &next.rooms, sizeof(next.rooms));
		if (image->breaks.len > 0)
			qsort(image->breaks.data, image->breaks.len,
			      sizeof(*image->breaks.data), compare_breaks);
	} else {
		pm_vec_release(&next.rooms);
	}
	image->unplanted = next.unplanted;
	return ret;
}

void pm_ptr_image_restore(struct pm_ptr_image *image, pid_t tid)
{
	for (size_t i = 0; i < image->breaks.len; i++) {
		const struct pm_ptr_break *planted = &image->breaks.data[i];

		/* Other bytes are not overwritten: the mapping may have been replaced. */
		if (has_trap(tid, planted->address))
			write_bytes(tid, planted->address, planted->original,
				    sizeof(planted->original));
	}
	image->restored = true;
}

/* Restores one file wherever there is a breakpoint and the bytes after it are as
 * expected. */
static void restore_file(const struct pm_ptr_file *file, const struct pm_mapping *map,
			 pid_t tid)
{
	for (size_t i = 0; i < file->sites.len; i++) {
		const struct pm_ptr_site *site = &file->sites.data[i];
		uint64_t address = map->start + (site->offset - map->pgoff);
		uint8_t found[PM_PTR_INSN_MAX];

		if (site->offset < map->pgoff ||
		    site->offset - map->pgoff >= map->end - map->start ||
		    pm_trace_read(tid, address, found, site->len) != site->len ||
		    site->len < sizeof(pm_ptr_trap) ||
		    memcmp(found, pm_ptr_trap, sizeof(pm_ptr_trap)) != 0 ||
		    memcmp(found + sizeof(pm_ptr_trap), site->bytes + sizeof(pm_ptr_trap),
			   site->len - sizeof(pm_ptr_trap)) != 0)
			continue;
		write_bytes(tid, address, site->bytes, sizeof(pm_ptr_trap));
	}
}

int pm_ptr_image_heal(struct pm_ptr_sites *sites, struct pm_procs *procs, pid_t pid)
{
	int ret = pm_procs_read(procs, pid, NULL);
	const struct pm_process *process = NULL;

	if (ret == 0)
		process = pm_procs_get(procs, pid);
	for (size_t i = 0; process && i < process->space.maps.len; i++) {
		const struct pm_mapping *map = &process->space.maps.data[i];
		int64_t file = pm_ptr_sites_find(sites, procs, map->module);

		if (file == -ENOMEM)
			return -ENOMEM;
		if (file >= 0)
			restore_file(&sites->files.data[file], map, pid);
	}
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

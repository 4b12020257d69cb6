/* SPDX-License-Identifier: MIT */
/*
 * Markers compiled in with sys/sdt.h (USDT): an ELF note for each place of a marker. The
 * note contains the address of the marker, the address of .stapsdt.base when the note was
 * written (to find code that prelink has moved), and a counter: the marker is active
 * while the counter is not zero, and the kernel increments it for us. Sources: sys/sdt.h
 * of SystemTap, "UserSpaceProbeImplementation" in its wiki, linux/trace_events.h for
 * ref_ctr_offset.
 */
#include "probe-internal.h"

#include <elf.h>
#include <fnmatch.h>
#include <string.h>

enum {
	NT_STAPSDT = 3,
	NOTES_BYTES_MAX = 64 << 20,
};

static uint64_t read_note_address(struct pm_reader *reader, bool is_64)
{
	if (is_64)
		return pm_reader_u64(reader);
	return pm_reader_u32(reader);
}

/* Parses the descriptor of one note. */
static bool read_note_marker(struct pm_reader *desc, bool is_64,
			     struct pm_probe_marker *out)
{
	struct pm_probe_marker marker;

	marker.address = read_note_address(desc, is_64);
	marker.base = read_note_address(desc, is_64);
	marker.semaphore = read_note_address(desc, is_64);
	marker.provider = pm_reader_cstr(desc);
	marker.name = pm_reader_cstr(desc);
	marker.arguments = pm_reader_cstr(desc);
	if (desc->failed || !marker.provider || !marker.name || !marker.arguments)
		return false;
	*out = marker;
	return true;
}

int pm_probe_markers_each(const char *bytes, size_t len, bool is_64,
			  pm_probe_marker_fn each, void *user)
{
	struct pm_reader reader;
	int ret = 0;

	pm_reader_init(&reader, bytes, len);
	/* gABI "Note Section": the lengths do not include the padding to 4 bytes. */
	while (ret == 0 && pm_reader_left(&reader) >= 12) {
		uint32_t name_len = pm_reader_u32(&reader);
		uint32_t desc_len = pm_reader_u32(&reader);
		uint32_t type = pm_reader_u32(&reader);
		const char *name = pm_reader_bytes(&reader, name_len);
		struct pm_probe_marker marker;
		struct pm_reader desc;
		const void *at;

		pm_reader_bytes(&reader, -name_len & 3u);
		at = pm_reader_bytes(&reader, desc_len);
		if (reader.failed)
			break;
		pm_reader_init(&desc, at, desc_len);
		if (type == NT_STAPSDT && name_len == 8 &&
		    memcmp(name, "stapsdt", 8) == 0 &&
		    read_note_marker(&desc, is_64, &marker))
			ret = each(user, &marker);
		/* The last one may lack padding. */
		if (pm_reader_left(&reader) >= (-desc_len & 3u))
			pm_reader_bytes(&reader, -desc_len & 3u);
	}
	return ret;
}

/* ---- markers of a file ------------------------------------------------------------------- */

struct scan {
	const struct pm_probe_search *search;
	struct pm_probe_places *places;
	const struct pm_probe_section *base; /* NULL: none */
	struct pm_near_names near;
	size_t seen, arguments, broken;
};

/* Whether `PROVIDER:NAME`, or `NAME` alone, matches the marker. */
static bool marker_matches_pattern(const char *pattern, const char *provider,
				   const char *name)
{
	const char *colon = strchr(pattern, ':');
	char wanted[256];

	if (!colon)
		return fnmatch(pattern, name, 0) == 0;
	if (colon - pattern >= (ptrdiff_t)sizeof(wanted))
		return false;
	memcpy(wanted, pattern, (size_t)(colon - pattern));
	wanted[colon - pattern] = '\0';
	return fnmatch(wanted, provider, 0) == 0 && fnmatch(colon + 1, name, 0) == 0;
}

/* Gets the file offset of a marker's counter. The counter must be in writable data: each
 * process has its own copy of that. */
static bool semaphore_file_offset(const struct pm_probe_elf *elf, uint64_t address,
				  uint64_t *out)
{
	const struct pm_probe_segment *segment = pm_probe_elf_segment(elf, address);

	if (!segment || !segment->writable)
		return false;
	/* It must fit into 32 bits of attr.config, see perf_event_open(2); 0 means
	 * none. */
	if (__builtin_add_overflow(address - segment->start, segment->offset, out))
		return false;
	return *out > 0 && *out <= UINT32_MAX && *out % sizeof(uint16_t) == 0;
}

static int consider_marker(void *user, const struct pm_probe_marker *marker)
{
	struct scan *scan = user;
	const struct pm_probe_elf *elf = scan->search->elf;
	struct pm_probe_place place = { .address = marker->address };
	uint64_t semaphore = marker->semaphore;
	struct pm_str name = { 0 };

	scan->seen++;
	if (!marker_matches_pattern(scan->search->spec->place.symbol, marker->provider,
				    marker->name)) {
		pm_str_printf(&name, "%s:%s", marker->provider, marker->name);
		if (!name.failed)
			pm_near_names_add(&scan->near, name.data);
		pm_str_release(&name);
		return 0;
	}
	if (scan->base && marker->base != 0) {
		place.address += scan->base->address - marker->base;
		if (semaphore > 0)
			semaphore += scan->base->address - marker->base;
	}
	if (!pm_probe_elf_code(elf, place.address, &place.offset) ||
	    (semaphore > 0 && !semaphore_file_offset(elf, semaphore, &place.semaphore))) {
		scan->broken++;
		return 0;
	}
	if (scan->places->list.len >= PM_PROBE_PLACES_MAX)
		return -E2BIG;
	scan->arguments += marker->arguments[0] != '\0';
	pm_str_printable(&name, marker->provider, strlen(marker->provider));
	pm_str_putc(&name, ':');
	pm_str_printable(&name, marker->name, strlen(marker->name));
	if (name.failed)
		pm_str_release(&name);
	place.name = name.data;
	return pm_probe_places_add(scan->places, place);
}

static int set_markers_error(const struct scan *scan, int code, struct pm_error *err)
{
	const char *symbol = scan->search->spec->place.symbol;

	if (code == -E2BIG)
		return pm_error_set(err, code, "\"%s\" means more than %d places", symbol,
				    PM_PROBE_PLACES_MAX);
	if (code < 0)
		return pm_error_set(err, code, "cannot read its markers: %s",
				    strerror(-code));
	if (scan->places->list.len > 0) {
		if (scan->arguments > 0)
			pm_str_printf(scan->search->note,
				      "%s: the arguments of markers are not decoded",
				      scan->search->spec->requested);
		return 0;
	}
	if (scan->broken > 0)
		return pm_error_set(err, -EINVAL,
				    "the note of marker %s leads to no code or to no "
				    "counter of this file",
				    symbol);
	if (scan->seen == 0)
		return pm_error_set(err, -ENODATA,
				    "it has no markers (USDT, .note.stapsdt)");
	pm_error_set(err, -ENOENT, "no marker \"%s\" among its %zu", symbol, scan->seen);
	pm_near_names_tell(&scan->near, err);
	return -ENOENT;
}

int pm_probe_find_markers(const struct pm_probe_search *search,
			  struct pm_probe_places *places, struct pm_error *err)
{
	const struct pm_probe_elf *elf = search->elf;
	const struct pm_probe_section *notes = pm_probe_elf_section(elf, ".note.stapsdt");
	struct scan scan = { .search = search,
			     .places = places,
			     .base = pm_probe_elf_section(elf, ".stapsdt.base"),
			     .near = { .wanted = search->spec->place.symbol } };
	PM_AUTO_FREE char *bytes = NULL;
	int ret = 0;

	if (notes && notes->type == SHT_NOTE) {
		ret = pm_probe_elf_read(elf, notes->offset, notes->size, NOTES_BYTES_MAX,
					&bytes);
		if (ret == 0)
			ret = pm_probe_markers_each(bytes, (size_t)notes->size,
						    elf->is_64, consider_marker, &scan);
	}
	return set_markers_error(&scan, ret, err);
}

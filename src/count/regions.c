/* SPDX-License-Identifier: MIT */
/*
 * From words to places in code: whom the words mean (pm/probe.h: files and functions;
 * regions-lines.c: lines and ranges; regions-inlined.c: what was inlined), what of the code
 * control comes in and goes out by (flow.c), and where in the file that is.
 */
#include "regions-internal.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "pm/proc.h"
#include "pm/symbol.h"

static void release_region(struct pm_region *region)
{
	free(region->name);
	free(region->symbol);
	free(region->module);
	free(region->build_id);
	free(region->file);
	pm_vec_release(&region->pieces);
}

void pm_regions_release(struct pm_regions *regions)
{
	for (size_t i = 0; i < regions->list.len; i++)
		release_region(&regions->list.data[i]);
	for (size_t i = 0; i < regions->files.len; i++)
		close(regions->files.data[i]);
	for (size_t i = 0; i < regions->notes.len; i++)
		free(regions->notes.data[i]);
	pm_vec_release(&regions->list);
	pm_vec_release(&regions->places);
	pm_vec_release(&regions->files);
	pm_vec_release(&regions->notes);
}

bool pm_place_leaves(const struct pm_place *place, uint64_t flags)
{
	enum {
		CARRY = 1,
		PARITY = 4,
		ZERO = 0x40,
		SIGN = 0x80,
		OVERFLOW = 0x800
	};
	uint8_t code = place->condition - 1;
	bool carry = flags & CARRY, zero = flags & ZERO;
	bool less = !(flags & SIGN) != !(flags & OVERFLOW), holds = false;

	if (place->condition == 0)
		return true;
	/* Intel SDM 1, B.1: each condition is followed by its opposite. */
	switch (code >> 1) {
	case 0:
		holds = flags & OVERFLOW;
		break;
	case 1:
		holds = carry;
		break;
	case 2:
		holds = zero;
		break;
	case 3:
		holds = carry || zero;
		break;
	case 4:
		holds = flags & SIGN;
		break;
	case 5:
		holds = flags & PARITY;
		break;
	case 6:
		holds = less;
		break;
	default:
		holds = less || zero;
		break;
	}
	return holds != (code & 1);
}

/* ---- what all kinds of words share -------------------------------------------------------- */

int pm_finder_no_memory(struct pm_finder *finder)
{
	return pm_error_set(finder->err, -ENOMEM, "no memory left for the functions");
}

int pm_finder_note(struct pm_finder *finder, const char *format, ...)
{
	char *text = NULL, *line = NULL;
	va_list list;
	int len, code = -ENOMEM;

	va_start(list, format);
	len = vasprintf(&text, format, list);
	va_end(list);
	if (len < 0)
		return pm_finder_no_memory(finder);
	if (asprintf(&line, "%s: %s", finder->spec->text, text) >= 0) {
		code = pm_vec_push(&finder->ret->notes, line);
		if (code < 0)
			free(line);
	}
	free(text);
	return code < 0 ? pm_finder_no_memory(finder) : 0;
}

static bool read_image(void *user, uint64_t address, void *ret, size_t len)
{
	return pm_probe_image_read(user, address, ret, len);
}

int pm_finder_file_open(struct pm_finder *finder, struct pm_finder_file *file,
			const struct pm_probe_binary *binary)
{
	int code;

	*file = (struct pm_finder_file){ .binary = binary };
	code = pm_probe_image_open(&file->image, binary->fd);
	if (code < 0) {
		pm_error_set(finder->err, code, "%s",
			     code == -ENOEXEC ? "this is no ELF file" : strerror(-code));
		pm_error_where(finder->err, binary->path, -1);
		return code;
	}
	file->source =
		(struct pm_flow_source){ .machine = pm_probe_image_machine(file->image),
					 .is_64 = pm_probe_image_is_64(file->image),
					 .read = read_image,
					 .user = file->image };
	return 0;
}

void pm_finder_file_close(struct pm_finder_file *file)
{
	pm_probe_image_close(file->image);
	file->image = NULL;
}

static bool is_same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* The fd that the regions have of this file, or negative. */
static int keep_fd(struct pm_regions *regions, int fd)
{
	int own;

	for (size_t i = 0; i < regions->files.len; i++)
		if (is_same_file(regions->files.data[i], fd))
			return regions->files.data[i];
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return -errno;
	if (pm_vec_push(&regions->files, own) < 0) {
		close(own);
		return -ENOMEM;
	}
	return own;
}

static char *build_id_of(int fd)
{
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len = 0;
	char *text;

	if (pm_elf_build_id(fd, id, &len) < 0 || len == 0)
		return NULL;
	text = malloc((size_t)len * 2 + 1);
	for (uint8_t i = 0; i < len && text; i++)
		snprintf(text + (size_t)i * 2, 3, "%02x", id[i]);
	return text;
}

struct pm_region *pm_finder_add(struct pm_finder *finder,
				const struct pm_finder_file *file,
				enum pm_stat_scope_kind kind, const char *name)
{
	struct pm_region region = { .kind = kind, .places_total = 1, .sum = -1 };

	if (finder->ret->list.len >= PM_REGIONS_MAX) {
		pm_error_set(finder->err, -E2BIG, "\"%s\" makes more than %d functions",
			     finder->spec->text, PM_REGIONS_MAX);
		pm_error_fix(finder->err, "a narrower glob");
		return NULL;
	}
	region.fd = keep_fd(finder->ret, file->binary->fd);
	if (region.fd < 0) {
		pm_error_set(finder->err, region.fd, "cannot keep a file: %s",
			     strerror(-region.fd));
		return NULL;
	}
	region.name = strdup(name);
	region.module = strdup(file->binary->path);
	region.build_id = build_id_of(region.fd);
	if (!region.name || !region.module ||
	    pm_vec_push(&finder->ret->list, region) < 0) {
		release_region(&region);
		pm_finder_no_memory(finder);
		return NULL;
	}
	return &finder->ret->list.data[finder->ret->list.len - 1];
}

static int tell_doubts(struct pm_finder *finder, const char *name,
		       const struct pm_flow_doubts *doubts)
{
	int code = 0;

	if (doubts->indirect > 0)
		code = pm_finder_note(
			finder,
			"%s has %zu jump%s through a pointer of which it is "
			"not certain whether they leave it; its calls may "
			"be taken to end too early or not at all",
			name, doubts->indirect, doubts->indirect == 1 ? "" : "s");
	if (doubts->conditions > 0 && code == 0)
		code = pm_finder_note(finder,
				      "%s is left by jumps on a counter, which are not "
				      "seen",
				      name);
	if (doubts->bad_bytes > 0 && code == 0)
		code = pm_finder_note(
			finder,
			"%zu bytes of %s are no known instructions; returns "
			"in them are not seen",
			doubts->bad_bytes, name);
	return code;
}

static bool is_placed(const pm_places *places, size_t len, const struct pm_place *place)
{
	for (size_t i = 0; i < len; i++)
		if (places->data[i].address == place->address &&
		    places->data[i].kind == place->kind)
			return true;
	return false;
}

int pm_finder_give(struct pm_finder *finder, const struct pm_finder_file *file,
		   pm_places *places, const struct pm_flow_doubts *doubts)
{
	struct pm_regions *regions = finder->ret;
	uint32_t number = (uint32_t)regions->list.len - 1;
	const char *name = regions->list.data[number].name;
	size_t lost = 0;

	if (regions->places.len + places->len > PM_REGION_PLACES_MAX) {
		pm_error_set(finder->err, -E2BIG,
			     "what is counted has more than %d places to look at",
			     PM_REGION_PLACES_MAX);
		pm_error_fix(finder->err, "fewer functions at once");
		return -E2BIG;
	}
	if (pm_vec_reserve(&regions->places, regions->places.len + places->len) < 0)
		return pm_finder_no_memory(finder);
	for (size_t i = 0; i < places->len; i++) {
		struct pm_place place = places->data[i];
		size_t len = sizeof(place.bytes);

		if (is_placed(places, i, &place))
			continue;
		place.region = number;
		/* Near the end of a segment there are fewer. */
		while (len > 0 &&
		       !pm_probe_image_read(file->image, place.address, place.bytes, len))
			len--;
		if (len < place.len || len == 0 ||
		    !pm_probe_image_code(file->image, place.address, &place.offset)) {
			lost++;
			continue;
		}
		regions->places.data[regions->places.len++] = place;
	}
	if (lost > 0)
		return pm_finder_note(finder, "%zu ends of %s have no code in the file",
				      lost, name);
	return tell_doubts(finder, name, doubts);
}

/* ---- functions ----------------------------------------------------------------------------- */

static bool has_function(const struct pm_finder *finder,
			 const struct pm_finder_file *file,
			 const struct pm_probe_function *function)
{
	for (size_t i = 0; i < finder->ret->list.len; i++) {
		const struct pm_region *region = &finder->ret->list.data[i];

		if (region->kind == PM_STAT_FUNCTION &&
		    region->pieces.data[0].low == function->low &&
		    is_same_file(region->fd, file->binary->fd))
			return true;
	}
	return false;
}

static int cannot_read(struct pm_finder *finder, int code, const char *name)
{
	switch (code) {
	case -EOPNOTSUPP:
		return pm_error_set(finder->err, code,
				    "functions of this processor's programs cannot be "
				    "counted yet");
	case -ENODATA:
		return pm_error_set(finder->err, code, "%s has no code in the file",
				    name);
	case -E2BIG:
		return pm_error_set(finder->err, code, "%s is too large to be read",
				    name);
	default:
		return pm_finder_no_memory(finder);
	}
}

/* The first piece is the one with the entry. */
static int take_pieces(struct pm_region *region, const struct pm_flow *flow)
{
	for (int entry = 1; entry >= 0; entry--)
		for (size_t i = 0; i < flow->pieces.len; i++) {
			const struct pm_probe_piece *piece = &flow->pieces.data[i];
			struct pm_region_piece own = { piece->low, piece->high };

			if ((piece->low == flow->entry) == entry &&
			    pm_vec_push(&region->pieces, own) < 0)
				return -ENOMEM;
		}
	return 0;
}

int pm_finder_add_function(struct pm_finder *finder, const struct pm_finder_file *file,
			   const struct pm_probe_function *function, bool own_name)
{
	struct pm_probe_piece whole = { function->low, function->high };
	struct pm_flow_doubts doubts = { 0 };
	struct pm_flow flow;
	struct pm_region *region;
	pm_places places = { 0 };
	int code;

	if (has_function(finder, file, function))
		return 0;
	code = pm_flow_open(&flow, &file->source, &whole, function->parts.data,
			    function->parts.len, own_name);
	if (code < 0)
		return cannot_read(finder, code, function->name);
	region = pm_finder_add(finder, file, PM_STAT_FUNCTION, function->name);
	if (!region) {
		pm_flow_close(&flow);
		return finder->err ? finder->err->code : -ENOMEM;
	}
	region->symbol = function->symbol ? strdup(function->symbol) : NULL;
	code = take_pieces(region, &flow);
	if (code == 0)
		code = pm_flow_function_places(&flow, &places, &doubts);
	code = code < 0 ? pm_finder_no_memory(finder)
			: pm_finder_give(finder, file, &places, &doubts);
	pm_vec_release(&places);
	pm_flow_close(&flow);
	return code;
}

static bool is_only_one(const struct pm_probe_functions *functions, size_t index)
{
	const char *symbol = functions->list.data[index].symbol;

	for (size_t i = 0; i < functions->list.len && symbol; i++)
		if (i != index && functions->list.data[i].symbol &&
		    strcmp(functions->list.data[i].symbol, symbol) == 0)
			return false;
	return true;
}

/* By name, in one file. */
static int find_in(struct pm_finder *finder, const struct pm_probe_binary *binary)
{
	struct pm_probe_functions functions = { 0 };
	struct pm_finder_file file = { 0 };
	int code = pm_probe_find_functions(&functions, binary, finder->context,
					   finder->name, finder->err);

	if (code == 0)
		code = pm_finder_file_open(finder, &file, binary);
	for (size_t i = 0; i < functions.list.len && code == 0; i++)
		code = pm_finder_add_function(finder, &file, &functions.list.data[i],
					      is_only_one(&functions, i));
	for (size_t i = 0; i < functions.notes.len && code == 0; i++)
		if (pm_vec_push(&finder->ret->notes, functions.notes.data[i]) < 0)
			code = pm_finder_no_memory(finder);
		else
			functions.notes.data[i] = NULL;
	pm_finder_file_close(&file);
	pm_probe_functions_release(&functions);
	return code;
}

/* In each of @binaries (@all), or in the first that has it. The first reason is kept. */
static int find_in_each(struct pm_finder *finder,
			const struct pm_probe_binaries *binaries, bool all)
{
	struct pm_error *err = finder->err, other;
	int first = -ENOENT;
	bool any = false;

	for (size_t i = 0; i < binaries->list.len && (all || !any); i++) {
		int code;

		finder->err = i == 0 ? err : &other;
		code = find_in(finder, &binaries->list.data[i]);
		any |= code == 0;
		if (i == 0)
			first = code;
		if (code < 0 && code != -ENOENT && code != -ENODATA && code != -ENOEXEC) {
			if (err && i > 0)
				*err = other;
			first = code;
			any = false;
			break;
		}
	}
	finder->err = err;
	return any ? 0 : first;
}

static int find_function(struct pm_finder *finder)
{
	struct pm_error *err = finder->err, other = { 0 };
	int code = find_in_each(finder, &finder->programs, true), second;

	if (code != -ENOENT && code != -ENODATA)
		return code;
	if (!finder->has_needed) {
		second = pm_probe_find_needed(&finder->needed, finder->context, &other);
		if (second < 0)
			return code;
		finder->has_needed = true;
	}
	finder->err = &other;
	second = find_in_each(finder, &finder->needed, false);
	finder->err = err;
	if (second == 0)
		return 0;
	/* What the program lacks is told, but what a library has and cannot be counted is
	 * what was meant. */
	if (second != -ENOENT && second != -ENODATA && second != -ENOEXEC) {
		if (err)
			*err = other;
		return second;
	}
	return code;
}

/* ---- all words -------------------------------------------------------------------------------- */

static int find_with_library(struct pm_finder *finder, const char *library)
{
	struct pm_probe_binaries binaries = { 0 };
	int code = pm_probe_find_binary(&binaries, finder->context, library, finder->err);

	if (code == 0)
		code = find_in_each(finder, &binaries, true);
	pm_probe_binaries_release(&binaries);
	return code;
}

static int find_one(struct pm_finder *finder)
{
	const char *at = strrchr(finder->spec->text, '@');

	finder->name = at ? strndup(finder->spec->text, (size_t)(at - finder->spec->text))
			  : strdup(finder->spec->text);
	if (!finder->name)
		return pm_finder_no_memory(finder);
	if (finder->name[0] == '\0' || (at && at[1] == '\0'))
		return pm_error_set(finder->err, -EINVAL,
				    "\"%s\" is no name of a function",
				    finder->spec->text);
	if (at)
		return find_with_library(finder, at + 1);
	if (finder->programs.list.len == 0) {
		int code = pm_probe_find_program(&finder->programs, finder->context,
						 finder->err);
		if (code < 0)
			return code;
	}
	return find_function(finder);
}

int pm_regions_find(struct pm_regions *regions, const struct pm_region_spec *specs,
		    size_t len, const struct pm_probe_context *context,
		    struct pm_error *err)
{
	struct pm_regions found = { 0 };
	struct pm_error own = { 0 };
	struct pm_finder finder = { .ret = &found,
				    .context = context,
				    .err = err ? err : &own };
	int code = 0;

	for (size_t i = 0; i < len && code == 0; i++) {
		finder.spec = &specs[i];
		code = find_one(&finder);
		free(PM_TAKE_PTR(finder.name));
	}
	pm_probe_binaries_release(&finder.programs);
	pm_probe_binaries_release(&finder.needed);
	if (code == 0) {
		pm_regions_release(regions);
		*regions = found;
	} else {
		pm_regions_release(&found);
	}
	return code;
}

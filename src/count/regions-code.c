/* SPDX-License-Identifier: MIT */
/* Makes regions with places from functions and pieces of code. */
#include "regions-internal.h"

#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "pm/proc.h"

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
	pm_vec_release(&regions->candidates);
	pm_vec_release(&regions->files);
	pm_vec_release(&regions->notes);
}

/* ---- common to all specifications --------------------------------------------------------- */

int pm_finder_no_memory(struct pm_finder *finder)
{
	return pm_error_set(finder->err, -ENOMEM, "no memory left for the functions");
}

int pm_finder_too_many(struct pm_finder *finder)
{
	pm_error_set(finder->err, -E2BIG,
		     "what is counted has more than %d places to look at",
		     PM_REGION_PLACES_MAX);
	pm_error_fix(finder->err, "fewer functions at once");
	return -E2BIG;
}

int pm_finder_note(struct pm_finder *finder, const char *format, ...)
{
	char *text = NULL, *line = NULL;
	va_list list;
	int len, ret = -ENOMEM;

	va_start(list, format);
	len = vasprintf(&text, format, list);
	va_end(list);
	if (len < 0)
		return pm_finder_no_memory(finder);
	if (asprintf(&line, "%s: %s", finder->spec->text, text) >= 0) {
		ret = pm_vec_push(&finder->ret->notes, line);
		if (ret < 0)
			free(line);
	}
	free(text);
	if (ret < 0)
		return pm_finder_no_memory(finder);
	return 0;
}

static bool read_image(void *user, uint64_t address, void *out, size_t len)
{
	return pm_probe_image_read(user, address, out, len);
}

static bool part_of_image(void *user, uint64_t address, struct pm_probe_piece *out)
{
	return pm_probe_image_frame(user, address, out);
}

static bool catches_in_image(void *user, uint64_t address)
{
	return pm_probe_image_catches(user, address);
}

int pm_finder_file_open(struct pm_finder *finder, struct pm_finder_file *file,
			const struct pm_probe_binary *binary)
{
	int ret;

	*file = (struct pm_finder_file){ .binary = binary };
	ret = pm_probe_image_open(&file->image, binary->fd);
	if (ret < 0) {
		pm_error_set(finder->err, ret, "%s", pm_error_elf_text(ret));
		pm_error_where(finder->err, binary->path, -1);
		return ret;
	}
	file->source =
		(struct pm_flow_source){ .machine = pm_probe_image_machine(file->image),
					 .is_64 = pm_probe_image_is_64(file->image),
					 .read = read_image,
					 .part = part_of_image,
					 .catches = catches_in_image,
					 .user = file->image,
					 .candidates = true };
	return 0;
}

void pm_finder_file_close(struct pm_finder_file *file)
{
	pm_probe_image_close(file->image);
	file->image = NULL;
}

static bool fds_are_same_inode(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Returns the regions' own descriptor of this file, or a negative error. */
static int regions_get_fd(struct pm_regions *regions, int fd)
{
	int own;

	for (size_t i = 0; i < regions->files.len; i++)
		if (fds_are_same_inode(regions->files.data[i], fd))
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
	region.fd = regions_get_fd(finder->ret, file->binary->fd);
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

static int note_flow_doubts(struct pm_finder *finder, const char *name,
			    const struct pm_flow_doubts *doubts)
{
	int ret = 0;

	if (doubts->indirect > 0)
		ret = pm_finder_note(finder,
				     "%s has %zu jump%s through a pointer of which it is "
				     "not certain whether they leave it; its calls may "
				     "be taken to end too early or not at all",
				     name, doubts->indirect,
				     pm_plural_s(doubts->indirect));
	if (doubts->conditions > 0 && ret == 0)
		ret = pm_finder_note(finder,
				     "%s is left by jumps on a counter, which are not "
				     "seen",
				     name);
	if (doubts->atomic > 0 && ret == 0)
		ret = pm_finder_note(
			finder,
			"%zu place%s of %s inside of atomic sequences, which "
			"would never end; nobody looks there",
			doubts->atomic, pm_plural(doubts->atomic, " is", "s are"), name);
	if (doubts->bad_bytes > 0 && ret == 0)
		ret = pm_finder_note(finder,
				     "%zu bytes of %s are no known instructions; returns "
				     "in them are not seen",
				     doubts->bad_bytes, name);
	return ret;
}

/* Whether the region @number already has this place. */
static bool is_placed(const struct pm_regions *regions, uint32_t number,
		      const struct pm_place *place)
{
	for (size_t i = regions->places.len; i > 0; i--) {
		const struct pm_place *other = &regions->places.data[i - 1];

		if (other->region != number)
			break;
		if (other->address == place->address && other->kind == place->kind)
			return true;
	}
	return false;
}

/* Fills in the file's bytes and offset at the place. Returns false if there is no
 * code. */
static bool read_place(const struct pm_finder_file *file, struct pm_place *place)
{
	size_t len = sizeof(place->bytes);

	/* There are fewer bytes near the end of a segment. */
	while (len > 0 &&
	       !pm_probe_image_read(file->image, place->address, place->bytes, len))
		len--;
	return len >= place->len && len > 0 &&
	       pm_probe_image_code(file->image, place->address, &place->offset);
}

/* Counts the places that are candidates for the same place as the first one. */
static size_t candidates_len(const struct pm_place *places, size_t len)
{
	size_t ret = 1;

	while (ret < len && places[ret].behind > 0)
		ret++;
	return ret;
}

/* Adds the candidates for one place. Returns 1, 0 if the first one has no code, or
 * -ENOMEM. */
static int add_candidates(struct pm_regions *regions, const struct pm_finder_file *file,
			  const struct pm_place *places, size_t len)
{
	uint32_t number = (uint32_t)regions->list.len - 1;
	struct pm_place first = places[0];

	if (!read_place(file, &first))
		return 0;
	first.region = number;
	if (pm_vec_reserve(&regions->candidates, regions->candidates.len + len) < 0 ||
	    pm_vec_push(&regions->places, first) < 0)
		return -ENOMEM;
	regions->candidates.data[regions->candidates.len++] = first;
	for (size_t i = 1; i < len; i++) {
		struct pm_place place = places[i];

		place.region = number;
		if (read_place(file, &place))
			regions->candidates.data[regions->candidates.len++] = place;
	}
	return 1;
}

void pm_regions_choose(struct pm_regions *regions)
{
	size_t len = regions->candidates.len;

	pm_vec_clear(&regions->places);
	for (size_t i = 0; i < len;) {
		const struct pm_place *candidates = &regions->candidates.data[i];
		size_t some = candidates_len(candidates, len - i);
		size_t at = pm_place_choose(candidates, some);

		/* Two edges of a range may end up at one instruction. There is enough
		 * room. */
		if (!is_placed(regions, candidates[at].region, &candidates[at]))
			regions->places.data[regions->places.len++] = candidates[at];
		i += some;
	}
}

int pm_finder_give(struct pm_finder *finder, const struct pm_finder_file *file,
		   pm_places *places, const struct pm_flow_doubts *doubts)
{
	struct pm_regions *regions = finder->ret;
	uint32_t number = (uint32_t)regions->list.len - 1;
	const char *name = regions->list.data[number].name;
	size_t lost = 0;

	for (size_t i = 0, some; i < places->len; i += some) {
		int given;

		some = candidates_len(&places->data[i], places->len - i);
		if (is_placed(regions, number, &places->data[i]))
			continue;
		if (regions->places.len >= PM_REGION_PLACES_MAX)
			return pm_finder_too_many(finder);
		given = add_candidates(regions, file, &places->data[i], some);
		if (given < 0)
			return pm_finder_no_memory(finder);
		lost += given == 0;
	}
	if (lost > 0)
		return pm_finder_note(finder, "%zu ends of %s have no code in the file",
				      lost, name);
	return note_flow_doubts(finder, name, doubts);
}

/* ---- the kernel ------------------------------------------------------------------------ */

static void fill_question(const struct pm_place *place, struct pm_probed_insn *out)
{
	size_t len = sizeof(out->bytes);

	if (place->len > 0)
		len = place->len;
	*out = (struct pm_probed_insn){ 0 };
	memcpy(out->bytes, place->bytes, PM_MIN(len, sizeof(out->bytes)));
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(((const struct pm_probed_insn *)a)->bytes,
		      ((const struct pm_probed_insn *)b)->bytes,
		      sizeof(((const struct pm_probed_insn *)a)->bytes));
}

/* Keeps each instruction once. Returns the number of those left. */
static size_t remove_repeated(struct pm_probed_insn *insns, size_t len)
{
	size_t kept = 0;

	qsort(insns, len, sizeof(*insns), by_bytes);
	for (size_t i = 0; i < len; i++)
		if (kept == 0 || by_bytes(&insns[kept - 1], &insns[i]) != 0)
			insns[kept++] = insns[i];
	return kept;
}

/* Whether @place is a first choice. The others only replace one that the kernel
 * refuses. */
static bool is_preferred(const struct pm_place *place)
{
	return place->behind == 0 || (place->slides && place->cheap);
}

/* Asks about the candidates that are preferred or, with @others, about those that replace
 * a refused one. */
static int ask_for(struct pm_regions *regions, bool others, struct pm_error *err)
{
	size_t len = 0;
	bool first_refused = false;
	PM_AUTO_FREE struct pm_probed_insn *insns =
		calloc(regions->candidates.len + 1, sizeof(*insns));
	int ret;

	if (!insns)
		return pm_error_set(err, -ENOMEM, "no memory left for the functions");
	for (size_t i = 0; i < regions->candidates.len; i++) {
		const struct pm_place *place = &regions->candidates.data[i];

		if (place->behind == 0)
			first_refused = place->refused;
		if (others ? first_refused && !is_preferred(place) : is_preferred(place))
			fill_question(place, &insns[len++]);
	}
	len = remove_repeated(insns, len);
	ret = pm_hits_ask(insns, len, err);
	for (size_t i = 0; i < regions->candidates.len && ret == 0; i++) {
		struct pm_place *place = &regions->candidates.data[i];
		struct pm_probed_insn key;
		const struct pm_probed_insn *found;

		fill_question(place, &key);
		found = bsearch(&key, insns, len, sizeof(*insns), by_bytes);
		place->refused |= found && found->refused;
	}
	return ret;
}

int pm_regions_ask_kernel(struct pm_regions *regions, struct pm_error *err)
{
	int ret = ask_for(regions, false, err);

	if (ret == 0)
		ret = ask_for(regions, true, err);
	if (ret < 0)
		return ret;
	regions->asked = true;
	pm_regions_choose(regions);
	return 0;
}

bool pm_regions_is_deaf(const struct pm_regions *regions, uint32_t region)
{
	bool any = false;

	for (size_t i = 0; i < regions->places.len; i++) {
		const struct pm_place *place = &regions->places.data[i];
		int32_t sum = regions->list.data[place->region].sum;

		if ((place->region != region && sum != (int32_t)region) ||
		    (place->kind != PM_PLACE_ENTRY && place->kind != PM_PLACE_IN))
			continue;
		if (!place->refused)
			return false;
		any = true;
	}
	return any;
}

static int refuse_unreadable_code(struct pm_finder *finder,
				  const struct pm_finder_file *file, int code,
				  const char *name)
{
	switch (code) {
	case -EOPNOTSUPP:
		if (!file->source.is_64)
			return pm_error_set(
				finder->err, code,
				"is a 32-bit program: functions are counted in "
				"64-bit programs only");
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

/* ---- pieces of functions --------------------------------------------------------------- */

static int compare_piece_starts(const void *a, const void *b)
{
	const struct pm_probe_piece *x = a, *y = b;

	return PM_COMPARE(x->low, y->low);
}

/* Merges pieces that touch. */
static void pieces_merge(pm_pieces *pieces)
{
	size_t to = 0;

	qsort(pieces->data, pieces->len, sizeof(*pieces->data), compare_piece_starts);
	for (size_t i = 0; i < pieces->len; i++) {
		struct pm_probe_piece piece = pieces->data[i];

		if (to > 0 && piece.low <= pieces->data[to - 1].high) {
			if (piece.high > pieces->data[to - 1].high)
				pieces->data[to - 1].high = piece.high;
		} else {
			pieces->data[to++] = piece;
		}
	}
	pieces->len = to;
}

/* Splits pieces where functions start: control enters at a function's first instruction,
 * even from the preceding function. */
static int pieces_split_at_functions(pm_pieces *pieces,
				     const struct pm_probe_functions *functions)
{
	for (size_t f = 0; f < functions->list.len; f++) {
		uint64_t low = functions->list.data[f].low;

		for (size_t i = 0; i < pieces->len; i++) {
			struct pm_probe_piece rest = { low, pieces->data[i].high };

			if (low <= pieces->data[i].low || low >= rest.high)
				continue;
			pieces->data[i].high = low;
			if (pm_vec_push(pieces, rest) < 0)
				return -ENOMEM;
			break;
		}
	}
	if (pieces->len > 0)
		qsort(pieces->data, pieces->len, sizeof(*pieces->data),
		      compare_piece_starts);
	return 0;
}

static int add_range_places(struct pm_finder *finder, const struct pm_finder_file *file,
			    const struct pm_probe_function *function,
			    const pm_pieces *pieces, pm_places *places,
			    struct pm_flow_doubts *doubts)
{
	struct pm_probe_piece whole = { function->low, function->high };
	struct pm_flow flow;
	int ret = pm_flow_open(&flow, &file->source, &whole, function->parts.data,
			       function->parts.len, false);

	if (ret < 0)
		return refuse_unreadable_code(finder, file, ret, function->name);
	for (size_t i = 0; i < pieces->len && finder->words == PM_FINDER_ADDRESSES; i++)
		if (pm_flow_holds(&flow, pieces->data[i].low) &&
		    pm_flow_find(&flow, pieces->data[i].low) == SIZE_MAX)
			ret = pm_error_set(finder->err, -EINVAL,
					   "no instruction begins at 0x%llx",
					   (unsigned long long)pieces->data[i].low);
	if (ret == 0 &&
	    pm_flow_range_places(&flow, pieces->data, pieces->len, places, doubts) < 0)
		ret = pm_finder_no_memory(finder);
	pm_flow_close(&flow);
	return ret;
}

static int region_set_pieces(struct pm_region *region, const pm_pieces *pieces)
{
	for (size_t i = 0; i < pieces->len; i++) {
		struct pm_region_piece piece = { pieces->data[i].low,
						 pieces->data[i].high };

		if (pm_vec_push(&region->pieces, piece) < 0)
			return -ENOMEM;
	}
	return 0;
}

int pm_finder_give_pieces(struct pm_finder *finder, const struct pm_finder_file *file,
			  pm_pieces *pieces)
{
	struct pm_region *region = &finder->ret->list.data[finder->ret->list.len - 1];
	struct pm_probe_functions functions = { 0 };
	struct pm_flow_doubts doubts = { 0 };
	pm_places places = { 0 };
	int ret;

	pieces_merge(pieces);
	ret = pm_probe_find_within(&functions, file->binary, finder->context,
				   pieces->data, pieces->len, PM_REGION_PLACES_MAX,
				   finder->err);
	if (ret == -E2BIG)
		pm_finder_too_many(finder);
	if (ret == 0 && (pieces_split_at_functions(pieces, &functions) < 0 ||
			 region_set_pieces(region, pieces) < 0))
		ret = pm_finder_no_memory(finder);
	for (size_t i = 0; i < functions.list.len && ret == 0; i++)
		ret = add_range_places(finder, file, &functions.list.data[i], pieces,
				       &places, &doubts);
	if (ret == 0 && places.len == 0)
		ret = pm_error_set(finder->err, -EINVAL,
				   "no known function has the code of %s",
				   finder->spec->text);
	if (ret == 0)
		ret = pm_finder_give(finder, file, &places, &doubts);
	pm_vec_release(&places);
	pm_probe_functions_release(&functions);
	return ret;
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
		    fds_are_same_inode(region->fd, file->binary->fd))
			return true;
	}
	return false;
}

/* The first piece is the one with the entry. */
static int region_set_flow_pieces(struct pm_region *region, const struct pm_flow *flow)
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
	int ret;

	if (has_function(finder, file, function))
		return 0;
	ret = pm_flow_open(&flow, &file->source, &whole, function->parts.data,
			   function->parts.len, own_name);
	if (ret < 0)
		return refuse_unreadable_code(finder, file, ret, function->name);
	region = pm_finder_add(finder, file, PM_STAT_FUNCTION, function->name);
	if (!region) {
		pm_flow_close(&flow);
		if (finder->err)
			return finder->err->code;
		return -ENOMEM;
	}
	if (function->symbol)
		region->symbol = strdup(function->symbol);
	else
		region->symbol = NULL;
	ret = region_set_flow_pieces(region, &flow);
	if (ret == 0)
		ret = pm_flow_function_places(&flow, &places, &doubts);
	if (ret < 0)
		ret = pm_finder_no_memory(finder);
	else
		ret = pm_finder_give(finder, file, &places, &doubts);
	pm_vec_release(&places);
	pm_flow_close(&flow);
	return ret;
}

/* SPDX-License-Identifier: MIT */
/* The instructions of a function, and the weights of the samples on them. */
#include "annotate-internal.h"

#include "pm/symbol.h"

#include <string.h>

/* An address of one file at which the function was sampled. */
struct spot {
	uint32_t module;
	uint64_t address;
	bool proper; /* true: not inlined into another function there */
	struct pm_weight self, sum;
};

/* A symbol that contains some of the spots. */
struct span {
	uint64_t start, end;
	bool proper, chosen;
	struct pm_weight self, sum;
};

struct job {
	const struct pm_view *view;
	uint32_t function;
	bool *has; /* by frame: one of its levels is the function */
	PM_VEC(struct spot) spots; /* by module, address; without duplicates */
	struct pm_weight self; /* of all spots */
	size_t first, end; /* the spots in the chosen file */
	/* spots before this index are done: counted in a span, or in none */
	size_t counted;
	PM_VEC(struct span) spans;
	struct pm_annotate_code *code;
	size_t bytes_left; /* bytes that may still be disassembled */
	uint32_t *insn_of_frame, *active; /* by frame; by instruction */
};

static void code_job_release(struct job *job)
{
	free(job->has);
	pm_vec_release(&job->spots);
	pm_vec_release(&job->spans);
	free(job->insn_of_frame);
	free(job->active);
}

/* ---- spots --------------------------------------------------------------------------------- */

static int find_function_frames(struct job *job)
{
	const struct pm_profile *profile = job->view->profile;

	job->has = calloc(profile->frames.len + 1, sizeof(*job->has));
	if (!job->has)
		return -ENOMEM;
	for (size_t i = 0; i < profile->frames.len; i++) {
		const struct pm_profile_frame *frame = &profile->frames.data[i];

		for (uint32_t k = 0; k < frame->levels; k++) {
			uint32_t place = profile->levels.data[frame->first_level + k];

			job->has[i] |=
				profile->places.data[place].function == job->function;
		}
	}
	return 0;
}

static int compare_spots(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	if (x->module != y->module)
		return PM_COMPARE(x->module, y->module);
	return PM_COMPARE(x->address, y->address);
}

static int find_spots(struct job *job)
{
	const struct pm_profile *profile = job->view->profile;
	size_t kept = 0;
	struct spot *spots;

	for (uint32_t i = 0; i < profile->stacks.len; i++) {
		uint32_t id = profile->stacks.data[i].frame, last;
		const struct pm_profile_frame *frame = &profile->frames.data[id];
		struct spot spot = { .module = frame->module,
				     .address = frame->address,
				     .self = job->view->self[i],
				     .sum = job->view->sum[i] };

		if (!job->has[id] || spot.sum.samples == 0)
			continue;
		last = profile->levels.data[frame->first_level + frame->levels - 1];
		spot.proper = profile->places.data[last].function == job->function;
		pm_weight_add(&job->self, &spot.self);
		if (pm_vec_push(&job->spots, spot) < 0)
			return -ENOMEM;
	}
	if (job->spots.len == 0)
		return -ENODATA;
	spots = job->spots.data;
	qsort(spots, job->spots.len, sizeof(*spots), compare_spots);
	for (size_t i = 1; i < job->spots.len; i++) {
		if (compare_spots(&spots[kept], &spots[i]) != 0) {
			spots[++kept] = spots[i];
			continue;
		}
		pm_weight_add(&spots[kept].self, &spots[i].self);
		pm_weight_add(&spots[kept].sum, &spots[i].sum);
		spots[kept].proper |= spots[i].proper;
	}
	job->spots.len = kept + 1;
	return 0;
}

static int compare_self_then_sum(const struct pm_weight *self_a,
				 const struct pm_weight *sum_a,
				 const struct pm_weight *self_b,
				 const struct pm_weight *sum_b)
{
	int order = pm_annotate_heavier(self_a, self_b);

	if (order != 0)
		return order;
	return pm_annotate_heavier(sum_a, sum_b);
}

/* Chooses the module with the most samples: several files may have had the same path over
 * time. */
static void choose_module(struct job *job)
{
	struct pm_weight best_self = { 0 }, best_sum = { 0 };
	const struct spot *spots = job->spots.data;

	for (size_t from = 0, to; from < job->spots.len; from = to) {
		struct pm_weight self = { 0 }, sum = { 0 };

		for (to = from;
		     to < job->spots.len && spots[to].module == spots[from].module;
		     to++) {
			pm_weight_add(&self, &spots[to].self);
			pm_weight_add(&sum, &spots[to].sum);
		}
		if (job->end == 0 ||
		    compare_self_then_sum(&self, &sum, &best_self, &best_sum) < 0) {
			job->first = from;
			job->end = to;
			best_self = self;
			best_sum = sum;
		}
	}
}

/* ---- symbols ------------------------------------------------------------------------------- */

/* Returns the first spot of the file at or after @address. */
static size_t first_spot_from(const struct job *job, uint64_t address)
{
	size_t low = job->first, high = job->end;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (job->spots.data[mid].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int note_symbol_span(void *user, const struct pm_symbol_code *code)
{
	struct job *job = user;
	struct span span = { .start = code->start, .end = code->end };

	/* Thousands of symbols may overlap: each spot counts only in the first. */
	if (job->counted < first_spot_from(job, span.start))
		job->counted = first_spot_from(job, span.start);
	for (;
	     job->counted < job->end && job->spots.data[job->counted].address < span.end;
	     job->counted++) {
		const struct spot *spot = &job->spots.data[job->counted];

		span.proper |= spot->proper;
		pm_weight_add(&span.self, &spot->self);
		pm_weight_add(&span.sum, &spot->sum);
	}
	return pm_vec_push(&job->spans, span);
}

static int compare_spans_by_weight(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	/* The function itself is more informative than places where it is inlined. */
	if (x->proper != y->proper)
		return PM_COMPARE(y->proper, x->proper);
	return compare_self_then_sum(&x->self, &x->sum, &y->self, &y->sum);
}

static void choose_spans(struct job *job)
{
	if (job->spans.len > 1)
		qsort(job->spans.data, job->spans.len, sizeof(*job->spans.data),
		      compare_spans_by_weight);
	for (size_t i = 0; i < job->spans.len && i < PM_ANNOTATE_PARTS_MAX; i++)
		job->spans.data[i].chosen = true;
}

static const struct span *find_span(const struct job *job,
				    const struct pm_symbol_code *code)
{
	for (size_t i = 0; i < job->spans.len && i < PM_ANNOTATE_PARTS_MAX; i++)
		if (job->spans.data[i].start == code->start &&
		    job->spans.data[i].end == code->end)
			return &job->spans.data[i];
	return NULL;
}

/* Disassembles the bytes of a chosen span, except those that an earlier span included. */
static int disassemble_symbol(void *user, const struct pm_symbol_code *from)
{
	struct job *job = user;
	struct pm_annotate_code *code = job->code;
	const struct span *span = find_span(job, from);
	const struct pm_annotate_machine machine = { from->machine, from->is_64 };
	struct pm_annotate_part part = { .start = from->start,
					 .end = from->end,
					 .first = (uint32_t)code->insns.len };
	size_t len = from->len;
	int ret;

	if (!span || (code->parts.len > 0 &&
		      from->start < code->parts.data[code->parts.len - 1].end))
		return 0;
	if (len > job->bytes_left)
		len = job->bytes_left;
	job->bytes_left -= len;
	part.bytes_left = from->end - from->start - len;
	part.is_container = !span->proper;
	ret = pm_annotate_disassemble(code, &machine, from->bytes, len, from->start);
	if (ret == 0 && from->name) {
		part.symbol = pm_annotate_texts_add(code->texts, from->name);
		ret = part.symbol ? 0 : -ENOMEM;
	}
	part.len = (uint32_t)code->insns.len - part.first;
	if (ret < 0)
		return ret;
	return pm_vec_push(&code->parts, part);
}

static int disassemble_and_place(struct job *job, const struct pm_annotate_binary *binary,
				 struct pm_error *err)
{
	const struct pm_symbol_options options = { .debug_dir = binary->debug_dir };
	size_t len = job->end - job->first;
	PM_AUTO_FREE uint64_t *addresses = calloc(len + 1, sizeof(*addresses));
	int ret;

	if (!addresses)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < len; i++)
		addresses[i] = job->spots.data[job->first + i].address;
	ret = pm_symbols_code(binary->fd, addresses, len, &options, note_symbol_span, job,
			      err);
	if (ret < 0)
		return ret;
	choose_spans(job);
	job->bytes_left = PM_ANNOTATE_CODE_BYTES_MAX;
	ret = pm_symbols_code(binary->fd, addresses, len, &options, disassemble_symbol,
			      job, err);
	if (ret == -ENOTSUP)
		return pm_error_set(err, ret,
				    "code of this kind of machine cannot be taken apart");
	if (ret == 0 && job->code->insns.len == 0)
		return pm_error_set(err, -ENOENT,
				    "neither a symbol table nor .eh_frame says where the "
				    "function begins and ends");
	return ret;
}

/* ---- weights ------------------------------------------------------------------------------- */

static uint32_t insn_at_stack(const struct job *job, uint32_t stack)
{
	return job->insn_of_frame[job->view->profile->stacks.data[stack].frame];
}

static void enter_insn(void *user, uint32_t stack)
{
	struct job *job = user;
	uint32_t id = insn_at_stack(job, stack);
	struct pm_annotate_insn *insn;

	if (id == PM_PROFILE_NONE)
		return;
	insn = &job->code->insns.data[id];
	pm_weight_add(&insn->self, &job->view->self[stack]);
	if (job->active[id]++ == 0)
		pm_weight_add(&insn->total, &job->view->sum[stack]);
}

static void leave_insn(void *user, uint32_t stack)
{
	struct job *job = user;
	uint32_t id = insn_at_stack(job, stack);

	if (id != PM_PROFILE_NONE)
		job->active[id]--;
}

static int weigh_insns(struct job *job)
{
	const struct pm_profile *profile = job->view->profile;
	struct pm_annotate_code *code = job->code;

	job->insn_of_frame = malloc((profile->frames.len + 1) * sizeof(uint32_t));
	job->active = calloc(code->insns.len + 1, sizeof(uint32_t));
	if (!job->insn_of_frame || !job->active)
		return -ENOMEM;
	for (size_t i = 0; i < profile->frames.len; i++) {
		const struct pm_profile_frame *frame = &profile->frames.data[i];

		if (job->has[i] && frame->module == code->module)
			job->insn_of_frame[i] =
				pm_annotate_find_insn(code, frame->address);
		else
			job->insn_of_frame[i] = PM_PROFILE_NONE;
	}
	pm_annotate_walk(job->view, enter_insn, leave_insn, job);
	for (size_t i = 0; i < code->parts.len; i++) {
		struct pm_annotate_part *part = &code->parts.data[i];

		for (uint32_t k = 0; k < part->len; k++)
			pm_weight_add(&part->self,
				      &code->insns.data[part->first + k].self);
		pm_weight_add(&code->shown, &part->self);
	}
	code->elsewhere.samples = job->self.samples - code->shown.samples;
	code->elsewhere.period = job->self.period - code->shown.period;
	return 0;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static int annotate_code(struct job *job, const struct pm_annotate_search *search,
			 struct pm_error *err)
{
	const struct pm_profile *profile = job->view->profile;
	PM_CLEANUP(pm_annotate_binary_release)
	struct pm_annotate_binary binary = { .fd = -1 };
	const char *name = profile->functions.data[job->function].name;
	struct pm_annotate_code *code = job->code;
	int ret = find_function_frames(job);

	if (ret == 0)
		ret = find_spots(job);
	if (ret < 0)
		return pm_error_set(err, ret, "%s",
				    ret == -ENODATA ? "no sample has it"
						    : "out of memory");
	choose_module(job);
	code->module = job->spots.data[job->first].module;
	if (code->module == PM_PROFILE_NONE)
		return pm_error_set(err, -ENOTSUP,
				    "its code was in no file when it was recorded");
	ret = pm_annotate_binary_open(&binary, &profile->modules.data[code->module],
				      search, err);
	if (ret < 0)
		return ret;
	code->unverified = binary.unverified;
	code->path = strdup(binary.path);
	ret = disassemble_and_place(job, &binary, err);
	if (ret < 0) {
		pm_error_where(err, binary.path, -1);
		return ret;
	}
	if (code->path)
		ret = pm_annotate_place_insns(code, &binary, name);
	else
		ret = -ENOMEM;
	if (ret == 0)
		ret = weigh_insns(job);
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	return 0;
}

int pm_annotate_code_init(struct pm_annotate_code *out, const struct pm_view *view,
			  uint32_t function, const struct pm_annotate_search *search,
			  struct pm_error *err)
{
	static const struct pm_annotate_search nothing;
	struct pm_annotate_code code = { 0 };
	PM_CLEANUP(code_job_release)
	struct job job = { .view = view, .function = function, .code = &code };
	int ret = annotate_code(&job, search ? search : &nothing, err);

	if (ret < 0) {
		pm_annotate_code_release(&code);
		return ret;
	}
	*out = code;
	return 0;
}

void pm_annotate_code_release(struct pm_annotate_code *code)
{
	free(code->path);
	pm_vec_release(&code->parts);
	pm_vec_release(&code->insns);
	pm_annotate_texts_free(code->texts);
	*code = (struct pm_annotate_code){ 0 };
}

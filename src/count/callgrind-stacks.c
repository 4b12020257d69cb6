/* SPDX-License-Identifier: MIT */
#include "callgrind-stacks.h"

#include <string.h>

#include "pm/file.h"
#include "pm/symbol.h"

enum {
	NAMES_MAX = PM_CALLGRIND_CALLERS + 1,
};

static const char how[] = "callgrind";

/* The cost of one line of a function with a certain chain of callers. */
struct cost {
	uint32_t function, file; /* in the table */
	uint32_t line;
	uint64_t instructions;
};

struct pm_callgrind_stacks {
	PM_VEC(struct cost) costs;
	struct pm_index index;
};

/* ---- sums ------------------------------------------------------------------------------- */

int pm_callgrind_stacks_new(struct pm_callgrind_stacks **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out)
		return 0;
	return -ENOMEM;
}

void pm_callgrind_stacks_free(struct pm_callgrind_stacks *stacks)
{
	if (!stacks)
		return;
	pm_vec_release(&stacks->costs);
	pm_index_release(&stacks->index);
	free(stacks);
}

static bool stack_cost_equal(const void *table, uint32_t id, const void *key)
{
	const struct cost *have =
		&((const struct pm_callgrind_stacks *)table)->costs.data[id];
	const struct cost *wanted = key;

	return have->function == wanted->function && have->file == wanted->file &&
	       have->line == wanted->line;
}

int pm_callgrind_stacks_add(struct pm_callgrind_stacks *stacks,
			    const struct pm_callgrind_row *row, uint64_t instructions)
{
	struct cost cost = { .function = row->who.function,
			     .file = row->who.file,
			     .line = row->line < UINT32_MAX ? (uint32_t)row->line : 0,
			     .instructions = instructions };
	uint64_t hash = pm_hash_mix(pm_hash_mix(cost.function, cost.file), cost.line);
	uint32_t id =
		pm_index_find(&stacks->index, hash, stack_cost_equal, stacks, &cost);

	if (id != PM_INDEX_NONE) {
		uint64_t *sum = &stacks->costs.data[id].instructions;

		if (__builtin_add_overflow(*sum, instructions, sum))
			*sum = UINT64_MAX;
		return 0;
	}
	if (pm_vec_push(&stacks->costs, cost) < 0)
		return -ENOMEM;
	return pm_index_add(&stacks->index, hash, (uint32_t)(stacks->costs.len - 1));
}

/* ---- frames ----------------------------------------------------------------------------- */

/* A function without its callers, at a line (0: none): one frame of the file. */
struct frame {
	const char *name; /* `len` bytes, borrowed from the table */
	size_t len;
	uint32_t object; /* PM_CALLGRIND_NONE: unknown */
	uint32_t file;
	uint32_t line;
	uint32_t id; /* in the file */
};

struct writing {
	const struct pm_callgrind_stacks *stacks;
	const struct pm_callgrind_table *table;
	struct pm_file_writer *writer;
	PM_VEC(struct frame) frames;
	struct pm_index frame_index;
	/* The object of each function: callgrind names it for functions that have a cost,
	 * but not for callers in a chain. */
	PM_VEC(struct frame) homes;
	struct pm_index home_index;
	uint64_t samples; /* stacks that were written */
	uint64_t cut; /* of these, the stacks that lost their outer callers */
	uint64_t total;
};

static bool same_function(const struct frame *a, const struct frame *b)
{
	return a->len == b->len && memcmp(a->name, b->name, a->len) == 0;
}

static bool home_equal(const void *table, uint32_t id, const void *key)
{
	return same_function(&((const struct writing *)table)->homes.data[id], key);
}

static bool stack_frame_equal(const void *table, uint32_t id, const void *key)
{
	const struct frame *have = &((const struct writing *)table)->frames.data[id];
	const struct frame *wanted = key;

	return same_function(have, wanted) && have->object == wanted->object &&
	       have->file == wanted->file && have->line == wanted->line;
}

/* Splits the chain at its quotes; numbers are levels of recursion. Returns the number of
 * names. */
static size_t split_chain(struct frame *names, const char *chain)
{
	size_t len = 0;

	for (const char *at = chain; len < NAMES_MAX;) {
		size_t part = strcspn(at, "'");

		if (part > 0 && strspn(at, "0123456789") < part)
			names[len++] = (struct frame){ .name = at,
						       .len = part,
						       .object = PM_CALLGRIND_NONE,
						       .file = PM_CALLGRIND_NONE };
		if (at[part] == '\0')
			break;
		at += part + 1;
	}
	return len;
}

static int note_homes(struct writing *to)
{
	for (size_t i = 0; i < to->stacks->costs.len; i++) {
		const struct cost *cost = &to->stacks->costs.data[i];
		const struct pm_callgrind_function *function;
		struct frame names[NAMES_MAX];
		uint64_t hash;

		if (cost->function == PM_CALLGRIND_NONE)
			continue;
		function = &to->table->functions.data[cost->function];
		if (split_chain(names, function->name) == 0)
			continue;
		names[0].object = function->object;
		hash = pm_hash_bytes(names[0].name, names[0].len);
		if (pm_index_find(&to->home_index, hash, home_equal, to, &names[0]) !=
		    PM_INDEX_NONE)
			continue;
		if (pm_vec_push(&to->homes, names[0]) < 0 ||
		    pm_index_add(&to->home_index, hash, (uint32_t)(to->homes.len - 1)) <
			    0)
			return -ENOMEM;
	}
	return 0;
}

static uint32_t home_of(const struct writing *to, const struct frame *function)
{
	uint64_t hash = pm_hash_bytes(function->name, function->len);
	uint32_t id = pm_index_find(&to->home_index, hash, home_equal, to, function);

	if (id == PM_INDEX_NONE)
		return PM_CALLGRIND_NONE;
	return to->homes.data[id].object;
}

/* Returns the id of the frame. Addresses are unknown: the frames get distinct numbers
 * instead. */
static int intern_stack_frame(struct writing *to, struct frame *frame)
{
	uint64_t hash = pm_hash_mix(pm_hash_bytes(frame->name, frame->len),
				    pm_hash_mix(frame->file, frame->line));
	uint32_t id, module;
	int ret;

	if (frame->object == PM_CALLGRIND_NONE)
		frame->object = home_of(to, frame);
	id = pm_index_find(&to->frame_index, hash, stack_frame_equal, to, frame);
	if (id != PM_INDEX_NONE) {
		*frame = to->frames.data[id];
		return 0;
	}
	if (frame->object == PM_CALLGRIND_NONE)
		module = PM_FILE_NONE;
	else
		module = frame->object;
	ret = pm_file_intern_frame(to->writer, module, to->frames.len + 1, how,
				   &frame->id);
	if (ret < 0)
		return ret;
	if (pm_vec_push(&to->frames, *frame) < 0 ||
	    pm_index_add(&to->frame_index, hash, (uint32_t)(to->frames.len - 1)) < 0)
		return -ENOMEM;
	return 0;
}

/* ---- lines of the file ------------------------------------------------------------------ */

static int write_modules(struct writing *to)
{
	int ret = 0;

	for (size_t i = 0; i < to->table->objects.len && ret == 0; i++) {
		struct pm_file_module module = { .id = (uint32_t)i,
						 .path = to->table->objects.data[i],
						 .kind = "file" };

		ret = pm_file_write_module(to->writer, &module);
	}
	return ret;
}

static int write_cost_sample(struct writing *to, const struct cost *cost)
{
	const char *chain = cost->function == PM_CALLGRIND_NONE
				    ? "???"
				    : to->table->functions.data[cost->function].name;
	struct frame names[NAMES_MAX];
	size_t len = split_chain(names, chain);
	struct pm_file_sample sample = { .pid = 1,
					 .tid = 1,
					 .cpu = PM_FILE_NONE,
					 .period = cost->instructions,
					 .stack = PM_FILE_NONE };
	int ret = 0;

	if (len > 0) {
		names[0].file = cost->file;
		names[0].line = cost->line;
		if (cost->function != PM_CALLGRIND_NONE)
			names[0].object =
				to->table->functions.data[cost->function].object;
	}
	for (size_t i = len; i-- > 0 && ret == 0;) {
		ret = intern_stack_frame(to, &names[i]);
		if (ret == 0)
			ret = pm_file_intern_stack(to->writer, sample.stack, names[i].id,
						   &sample.stack);
	}
	if (ret < 0)
		return ret;
	if (len == NAMES_MAX) {
		sample.stop = "limit";
		to->cut++;
	}
	to->samples++;
	if (__builtin_add_overflow(to->total, cost->instructions, &to->total))
		to->total = UINT64_MAX;
	return pm_file_write_sample(to->writer, &sample);
}

static bool is_known_name(const char *text)
{
	return text && strcmp(text, "???") != 0;
}

static int write_frame_symbol(struct writing *to, const struct frame *frame)
{
	PM_AUTO_FREE char *raw = strndup(frame->name, frame->len);
	PM_AUTO_FREE char *name = NULL;
	const char *file = NULL;
	struct pm_file_function function = { .line = frame->line };
	struct pm_file_symbol symbol = { .frame = frame->id,
					 .functions = &function,
					 .functions_len = 1 };

	if (!raw)
		return -ENOMEM;
	name = pm_demangle(raw);
	if (frame->file != PM_CALLGRIND_NONE)
		file = to->table->files.data[frame->file];
	/* A function without a symbol has its address as its name. */
	if (strncmp(raw, "0x", 2) != 0 && is_known_name(raw))
		function.name = pm_text_or(name, raw);
	if (is_known_name(file) && frame->line > 0)
		function.file = file;
	else
		function.line = 0;
	if (!function.name && !function.file)
		return 0;
	return pm_file_write_symbol(to->writer, &symbol);
}

static int write_header(struct writing *to, const struct pm_stat *stat,
			char *const *command)
{
	static const struct pm_file_event event = { .name = "sim.Ir",
						    .requested = "sim.Ir",
						    .actual = "sim.Ir",
						    .modifiers = "",
						    .unit = "events",
						    .rate = 1 };
	struct pm_file_header header = { .version = PM_FILE_VERSION,
					 .pmrec = stat->version,
					 .created = stat->created,
					 .clock = "monotonic",
					 .command = (const char *const *)command,
					 .events = &event,
					 .events_len = 1 };

	while (command[header.command_len])
		header.command_len++;
	header.host.hostname = stat->host.hostname;
	header.host.kernel = stat->host.kernel;
	header.host.arch = stat->host.arch;
	header.host.cpu_model = stat->host.cpu_model;
	header.host.virt = stat->host.virt;
	header.host.cpus = stat->host.cpus;
	header.options.call_graph = "callgrind";
	return pm_file_write_header(to->writer, &header);
}

static int write_notes(struct writing *to)
{
	char cut[128];
	int ret = pm_file_write_note(
		to->writer,
		&(const struct pm_file_note){
			"Counted by callgrind, not sampled: instructions of a "
			"simulated processor, exact for each stack and line." });

	if (ret < 0 || to->cut == 0)
		return ret;
	snprintf(cut, sizeof(cut),
		 "%llu stacks have more than %d callers: the outer ones are lost.",
		 (unsigned long long)to->cut, PM_CALLGRIND_CALLERS);
	return pm_file_write_note(to->writer, &(const struct pm_file_note){ cut });
}

static int write_footer(struct writing *to)
{
	struct pm_file_count stops[2] = { { "root", to->samples - to->cut },
					  { "limit", to->cut } };
	struct pm_file_footer footer = { .samples = to->samples,
					 .stops = stops,
					 .stops_len = to->cut > 0 ? 2 : 1,
					 .exited = true };
	struct pm_file_footer_event event = { .samples = to->samples,
					      .period = to->total,
					      .lost_known = true };

	footer.events = &event;
	footer.events_len = 1;
	return pm_file_write_footer(to->writer, &footer);
}

static int write_stacks_file(struct writing *to, const struct pm_stat *stat,
			     char *const *command)
{
	const char *slash = strrchr(command[0], '/');
	int ret = write_header(to, stat, command);

	if (ret == 0)
		ret = write_modules(to);
	if (ret == 0)
		ret = pm_file_write_thread(
			to->writer, &(const struct pm_file_thread){
					    1, 1, slash ? slash + 1 : command[0], 0 });
	for (size_t i = 0; i < to->stacks->costs.len && ret == 0; i++)
		if (to->stacks->costs.data[i].instructions > 0)
			ret = write_cost_sample(to, &to->stacks->costs.data[i]);
	for (size_t i = 0; i < to->frames.len && ret == 0; i++)
		ret = write_frame_symbol(to, &to->frames.data[i]);
	if (ret == 0)
		ret = write_notes(to);
	if (ret < 0)
		return ret;
	return write_footer(to);
}

int pm_callgrind_stacks_write(const struct pm_callgrind_stacks *stacks,
			      const struct pm_callgrind_table *table,
			      const struct pm_stat *stat, char *const *command,
			      const char *path, struct pm_error *err)
{
	struct writing to = { .stacks = stacks, .table = table };
	int ret = pm_file_writer_open(&to.writer, path, err);

	if (ret < 0)
		return ret;
	ret = note_homes(&to);
	if (ret == 0)
		ret = write_stacks_file(&to, stat, command);
	if (ret < 0) {
		pm_file_writer_discard(to.writer);
		pm_error_set(err, ret, "cannot be written: %s", strerror(-ret));
		pm_error_where(err, path, -1);
	} else {
		ret = pm_file_writer_close(to.writer, err);
	}
	pm_vec_release(&to.frames);
	pm_vec_release(&to.homes);
	pm_index_release(&to.frame_index);
	pm_index_release(&to.home_index);
	return ret;
}

/* SPDX-License-Identifier: MIT */
/*
 * Finds the id of a frame or a stack. There are some hundred look-ups for each sample,
 * while the rings fill: a look-up takes one multiplication and, usually, one or two cache
 * lines.
 */
#include "file-internal.h"

#include <string.h>

enum {
	STACK_SLOTS_MIN = 4096,
};

static bool frame_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_file_frame *row = (const struct pm_file_frame *)table + id;
	const struct pm_file_frame *frame = key;

	return row->address == frame->address && row->module == frame->module &&
	       (row->how == frame->how || strcmp(row->how, frame->how) == 0);
}

static int intern_add_frame(struct pm_file_writer *writer, struct pm_file_frame *frame,
			    uint64_t hash)
{
	int ret;

	if (!frame->how ||
	    (frame->module != PM_FILE_NONE && frame->module >= writer->modules))
		return -EINVAL;
	if (writer->frames.len >= PM_FILE_NONE - writer->first_frame)
		return -EOVERFLOW;
	frame->id = writer->first_frame + (uint32_t)writer->frames.len;
	if (pm_vec_push(&writer->frames, *frame) < 0)
		return -ENOMEM;
	if (pm_index_add(&writer->frame_index, hash, (uint32_t)writer->frames.len - 1) <
	    0) {
		writer->frames.len--;
		return -ENOMEM;
	}
	ret = pm_file_write_frame(writer, frame);
	return ret;
}

int pm_file_intern_frame(struct pm_file_writer *writer, uint32_t module, uint64_t address,
			 const char *how, uint32_t *out)
{
	struct pm_file_frame frame = { .module = module, .address = address, .how = how };
	uint64_t hash = pm_hash_mix(address, module);
	uint32_t id;
	int ret = pm_file_writer_ready(writer);

	if (ret < 0)
		return ret;
	id = pm_index_find(&writer->frame_index, hash, frame_equal, writer->frames.data,
			   &frame);
	if (id == PM_INDEX_NONE) {
		ret = intern_add_frame(writer, &frame, hash);
		if (ret < 0)
			return ret;
		*out = frame.id;
		return 0;
	}
	*out = writer->first_frame + id;
	return 0;
}

/* Returns the slot of @key, or the free slot where it belongs. The table is never
 * full. */
static struct pm_file_stack_slot *stack_slot_of_key(struct pm_file_stack_slot *slots,
						    size_t cap, uint64_t key)
{
	size_t i = pm_hash_mix(key, 0) & (cap - 1);

	while (slots[i].id_plus_1 != 0 && slots[i].key != key)
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static int grow_stacks(struct pm_file_writer *writer)
{
	size_t cap = writer->stack_cap ? writer->stack_cap * 2 : STACK_SLOTS_MIN;
	struct pm_file_stack_slot *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < writer->stack_cap; i++) {
		const struct pm_file_stack_slot *old = &writer->stack_slots[i];

		if (old->id_plus_1 != 0)
			*stack_slot_of_key(slots, cap, old->key) = *old;
	}
	free(writer->stack_slots);
	writer->stack_slots = slots;
	writer->stack_cap = cap;
	return 0;
}

static int add_stack(struct pm_file_writer *writer, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t id = writer->stacks;
	size_t row = id - writer->first_stack;
	struct pm_file_stack stack;
	int ret;

	if (frame >= pm_file_writer_frames_end(writer) ||
	    (parent != PM_FILE_NONE && parent >= id))
		return -EINVAL;
	if (id >= PM_FILE_NONE - 1) /* id + 1 marks a slot */
		return -EOVERFLOW;
	/* The table stays at most half full: it is small compared with what it saves. */
	if ((row * 2 >= writer->stack_cap && grow_stacks(writer) < 0) ||
	    pm_vec_reserve(&writer->stack_rows, row + 1) < 0)
		return -ENOMEM;
	if (writer->run.len > 0 &&
	    (parent != id - 1 || writer->run.len == PM_FILE_RUN_MAX)) {
		ret = pm_file_write_run(writer);
		if (ret < 0)
			return ret;
	}
	if (writer->run.len == 0) {
		writer->run.id = id;
		writer->run.parent = parent;
	}
	writer->run.frames[writer->run.len++] = frame;
	writer->stack_rows.data[row] = (struct pm_file_stack_row){ parent, frame };
	writer->stack_rows.len = row + 1;
	*stack_slot_of_key(writer->stack_slots, writer->stack_cap, key) =
		(struct pm_file_stack_slot){ .key = key, .id_plus_1 = id + 1 };
	writer->stacks++;
	stack = (struct pm_file_stack){ .id = id, .parent = parent, .frame = frame };
	return pm_file_tell(writer, PM_FILE_STACK, &stack, sizeof(stack));
}

int pm_file_intern_stack(struct pm_file_writer *writer, uint32_t parent, uint32_t frame,
			 uint32_t *out)
{
	int ret = pm_file_writer_ready(writer);
	uint32_t id_plus_1 = 0;

	if (ret < 0)
		return ret;
	if (writer->stack_cap > 0)
		id_plus_1 = stack_slot_of_key(writer->stack_slots, writer->stack_cap,
					      (uint64_t)parent << 32 | frame)
				    ->id_plus_1;
	if (id_plus_1 == 0) {
		ret = add_stack(writer, parent, frame);
		if (ret < 0)
			return ret;
		id_plus_1 = writer->stacks;
	}
	*out = id_plus_1 - 1;
	return 0;
}

bool pm_file_writer_has_stack(const struct pm_file_writer *writer, uint32_t id)
{
	return id >= writer->first_stack && id < writer->stacks;
}

uint32_t pm_file_writer_stack(const struct pm_file_writer *writer, uint32_t id,
			      uint32_t *parent)
{
	const struct pm_file_stack_row *row =
		&writer->stack_rows.data[id - writer->first_stack];

	*parent = row->parent;
	return row->frame;
}

const struct pm_file_frame *pm_file_writer_frames(const struct pm_file_writer *writer,
						  size_t *len)
{
	*len = writer->frames.len;
	return writer->frames.data;
}

/* ---- generations --------------------------------------------------------------------- */

uint32_t pm_file_writer_first_frame(const struct pm_file_writer *writer)
{
	return writer->first_frame;
}

bool pm_file_writer_stacks_full(const struct pm_file_writer *writer)
{
	return writer->stack_rows.len >= PM_FILE_STACKS_MAX - PM_FILE_GENERATION_MARGIN;
}

bool pm_file_writer_frames_full(const struct pm_file_writer *writer)
{
	return writer->frames.len >= PM_FILE_FRAMES_MAX - PM_FILE_GENERATION_MARGIN;
}

int pm_file_writer_new_stacks(struct pm_file_writer *writer)
{
	int ret = pm_file_writer_ready(writer);

	if (ret == 0)
		ret = pm_file_write_run(writer);
	if (ret < 0)
		return ret;
	free(writer->stack_slots);
	writer->stack_slots = NULL;
	writer->stack_cap = 0;
	pm_vec_release(&writer->stack_rows);
	writer->first_stack = writer->stacks;
	return 0;
}

int pm_file_writer_new_frames(struct pm_file_writer *writer)
{
	int ret = pm_file_writer_new_stacks(writer);

	if (ret < 0)
		return ret;
	writer->first_frame = pm_file_writer_frames_end(writer);
	pm_vec_release(&writer->frames);
	pm_index_release(&writer->frame_index);
	return 0;
}

size_t pm_file_writer_table_bytes(const struct pm_file_writer *writer)
{
	return writer->frames.cap * sizeof(*writer->frames.data) +
	       writer->frame_index.cap * sizeof(*writer->frame_index.slots) +
	       writer->stack_cap * sizeof(*writer->stack_slots) +
	       writer->stack_rows.cap * sizeof(*writer->stack_rows.data);
}

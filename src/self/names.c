/* SPDX-License-Identifier: MIT */
/*
 * Resolves the names of sampled functions, module by module, in this process. The modules
 * are the process's own code, which is as trusted as the process itself. Helper
 * processes, which pmrec uses, must not be forked in a multi-threaded program.
 */
#include <string.h>

#include "name-cache.h"
#include "recording-internal.h"

struct item {
	uint64_t address;
	uint32_t module, frame;
};

/* The items of one module, sorted by address; several may have the same address. */
struct batch {
	struct pm_file_writer *writer;
	const struct item *items;
	size_t len, next;
	const uint64_t *addresses;
	/* The file whose names are cached; NULL: do not cache. */
	const struct pm_self_file *file;
};

static int compare_name_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	if (a->module != b->module)
		return PM_COMPARE(a->module, b->module);
	return PM_COMPARE(a->address, b->address);
}

static int write_frame_names(const struct batch *batch, uint32_t frame,
			     const struct pm_file_function *functions, size_t len)
{
	return pm_file_write_symbol(batch->writer,
				    &(struct pm_file_symbol){ .frame = frame,
							      .functions = functions,
							      .functions_len = len });
}

static int write_chain(const struct batch *batch, uint32_t frame,
		       const struct pm_symbol_function *functions, size_t len)
{
	enum {
		CHAIN_MAX = 256 /* functions; compilers stay far below */
	};
	struct pm_file_function texts[CHAIN_MAX];

	/* Keep the end of the chain, which has the function that is not inlined. */
	if (len > CHAIN_MAX) {
		functions += len - CHAIN_MAX;
		len = CHAIN_MAX;
	}
	for (size_t i = 0; i < len; i++)
		texts[i] = (struct pm_file_function){ .name = functions[i].name,
						      .file = functions[i].file,
						      .line = functions[i].line,
						      .start = functions[i].start };
	if (len > 0)
		return write_frame_names(batch, frame, texts, len);
	return 0;
}

/* pm_symbol_emit_fn */
static int batch_add_symbol(void *user, size_t index,
			    const struct pm_symbol_function *functions, size_t len)
{
	struct batch *batch = user;
	int ret = 0;

	for (; ret == 0 && batch->next < batch->len &&
	       batch->items[batch->next].address == batch->addresses[index];
	     batch->next++)
		ret = write_chain(batch, batch->items[batch->next].frame, functions, len);
	if (ret == 0 && batch->file)
		pm_self_names_add(batch->file, batch->addresses[index], functions, len);
	return ret;
}

/* Writes the names that earlier profiles have found. Moves the items without such names
 * to the front, and sets @len to their number. */
static int write_cached_names(const struct batch *batch, struct item *items, size_t *len)
{
	size_t rest = 0;
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < *len; i++) {
		const struct pm_symbol_function *functions;
		size_t functions_len;

		if (pm_self_names_find(batch->file, items[i].address, &functions,
				       &functions_len))
			ret = write_chain(batch, items[i].frame, functions,
					  functions_len);
		else
			items[rest++] = items[i];
	}
	*len = rest;
	return ret;
}

/* Resolves from the ELF file @fd, or from @image if @fd is -1. */
static int batch_resolve(struct batch *batch, int fd, const struct pm_chain_vdso *image,
			 bool *limited)
{
	const struct pm_symbol_options options = {
		.inlines = true,
		.lines = true,
		.starts = true,
		.copy_files = true,
		.limited = limited,
	};
	PM_AUTO_FREE uint64_t *addresses =
		reallocarray(NULL, batch->len + 1, sizeof(*addresses));
	const struct item *items = batch->items;
	size_t distinct = 0;

	if (!addresses)
		return -ENOMEM;
	for (size_t i = 0; i < batch->len; i++)
		if (i == 0 || items[i].address != items[i - 1].address)
			addresses[distinct++] = items[i].address;
	batch->addresses = addresses;
	if (distinct == 0)
		return 0;
	if (fd < 0)
		return pm_symbols_resolve_memory(image->image, image->len, addresses,
						 distinct, &options, batch_add_symbol,
						 batch, NULL);
	return pm_symbols_resolve(fd, addresses, distinct, &options, batch_add_symbol,
				  batch, NULL);
}

static int resolve_file(struct pm_self_recording *recording, uint32_t id,
			struct item *items, size_t len, bool *limited)
{
	int fd = pm_chain_modules_open_file(&recording->modules, recording->procs, id);
	struct batch batch = { .writer = recording->writer, .items = items, .len = len };
	struct pm_self_file file;
	int ret = 0;

	if (fd < 0)
		return fd;
	if (pm_self_file_of(fd, &file) == 0) {
		batch.file = &file;
		ret = write_cached_names(&batch, items, &batch.len);
	}
	if (ret == 0)
		ret = batch_resolve(&batch, fd, NULL, limited);
	/* Names that were left out because of limits must be looked up again next
	 * time. */
	if (*limited)
		pm_self_names_clear();
	if (fd != recording->modules.list.data[id].fd)
		close(fd);
	return ret;
}

static int name_module_items(struct pm_self_recording *recording, struct item *items,
			     size_t len)
{
	uint32_t id = pm_chain_modules_of_file_id(&recording->modules, items[0].module);
	const struct pm_module *module;
	bool limited = false;
	char text[512];
	int ret = 0;

	if (id == PM_FILE_NONE)
		return 0; /* generated code, which already has names */
	module = pm_procs_module(recording->procs, id);
	if (module->identity.kind == PM_MODULE_VDSO) {
		struct batch batch = { .writer = recording->writer,
				       .items = items,
				       .len = len };
		const struct pm_chain_vdso *vdso =
			pm_chain_modules_vdso(&recording->modules, module);

		if (vdso->image)
			ret = batch_resolve(&batch, -1, vdso, &limited);
		else
			ret = -ENOENT;
	} else if (module->identity.kind == PM_MODULE_FILE) {
		ret = resolve_file(recording, id, items, len, &limited);
	}
	if (ret == 0 && !limited)
		return 0;
	if (ret == -ENOMEM)
		return ret;
	snprintf(text, sizeof(text), "names of %.400s were left out: %s",
		 module->identity.path,
		 ret < 0 ? strerror(-ret) : "its debug information is too much to read");
	pm_self_note(recording, text);
	return 0;
}

static int name_kernel_items(struct pm_self_recording *recording,
			     const struct item *items, size_t len)
{
	const struct batch batch = { .writer = recording->writer };
	struct pm_kallsyms *kallsyms;
	struct pm_error err = { 0 };
	char text[PM_ERROR_TEXT_MAX + 64];
	int ret = pm_kallsyms_load(&kallsyms, NULL, &err);

	if (ret < 0) {
		snprintf(text, sizeof(text), "no names for kernel functions: %s",
			 err.text);
		pm_self_note(recording, text);
		return 0;
	}
	for (size_t i = 0; i < len && ret == 0; i++) {
		const char *module;
		struct pm_file_function function = {
			.name = pm_kallsyms_find(kallsyms, items[i].address, &module)
		};

		if (function.name)
			ret = write_frame_names(&batch, items[i].frame, &function, 1);
	}
	pm_kallsyms_free(kallsyms);
	return ret;
}

int pm_self_write_names(struct pm_self_recording *recording)
{
	size_t frames_len, len = 0, end;
	const struct pm_file_frame *frames =
		pm_file_writer_frames(recording->writer, &frames_len);
	PM_AUTO_FREE struct item *items =
		reallocarray(NULL, frames_len + 1, sizeof(*items));
	int ret = 0;

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < frames_len; i++)
		if (frames[i].module != PM_FILE_NONE)
			items[len++] = (struct item){ .address = frames[i].address,
						      .module = frames[i].module,
						      .frame = frames[i].id };
	qsort(items, len, sizeof(*items), compare_name_items);
	for (size_t begin = 0; begin < len && ret == 0; begin = end) {
		for (end = begin + 1;
		     end < len && items[end].module == items[begin].module;)
			end++;
		if (items[begin].module == recording->modules.kernel_file_id)
			ret = name_kernel_items(recording, items + begin, end - begin);
		else
			ret = name_module_items(recording, items + begin, end - begin);
	}
	return ret;
}

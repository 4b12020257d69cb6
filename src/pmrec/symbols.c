/* SPDX-License-Identifier: MIT */
#include "symbols.h"

#include <string.h>

#include "child.h"
#include "pm/symbol.h"

enum {
	FUNCTIONS_MAX = 256, /* of one inline chain; compilers stay far below */
	SIGNALS_EVERY = 64, /* addresses between two looks at the signals */
};
#define PROGRESS_AFTER_NS 1000000000ull

/* A frame of the file in the order of work: by module, then address. */
struct item {
	uint64_t address;
	uint32_t module; /* id in the file */
	uint32_t frame;
};

struct work {
	struct pm_rec_session *session;
	const struct item *items; /* of the module at hand */
	size_t items_len, next; /* next: the first whose address was not yet emitted */
	size_t emitted;
	uint64_t begin_ns;
	bool progress_shown;
};

static int compare(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return 0;
}

static int write_symbol(struct work *work, uint32_t frame,
			const struct pm_symbol_function *functions, size_t len)
{
	struct pm_file_function texts[FUNCTIONS_MAX];

	if (len > FUNCTIONS_MAX)
		len = FUNCTIONS_MAX;
	for (size_t i = 0; i < len; i++)
		texts[i] = (struct pm_file_function){ .name = functions[i].name,
						      .file = functions[i].file,
						      .line = functions[i].line };
	return pm_file_write_symbol(work->session->writer,
				    &(struct pm_file_symbol){ .frame = frame,
							      .functions = texts,
							      .functions_len = len });
}

/* pm_symbol_emit_fn: one address may belong to several frames, found in different ways. */
static int emit(void *user, size_t index, const struct pm_symbol_function *functions,
		size_t len)
{
	struct work *work = user;
	uint64_t address = work->items[work->next].address;
	int ret = 0;

	if (++work->emitted % SIGNALS_EVERY == 0) {
		pm_rec_child_signals(&work->session->child);
		if (work->session->child.interrupts > 1)
			return -EINTR;
	}
	while (ret == 0 && work->next < work->items_len &&
	       work->items[work->next].address == address) {
		if (len > 0)
			ret = write_symbol(work, work->items[work->next].frame, functions,
					   len);
		work->next++;
	}
	return ret;
}

static int kernel_symbols(struct work *work)
{
	struct pm_kallsyms *kallsyms;
	struct pm_error err = { 0 };
	int ret = pm_kallsyms_load(&kallsyms, NULL, &err);

	if (ret < 0) {
		char text[PM_ERROR_TEXT_MAX + PM_ERROR_FIX_MAX + 64];

		snprintf(text, sizeof(text), "no names for kernel functions: %s%s%s",
			 err.text, err.fix[0] ? "; try: " : "", err.fix);
		pm_rec_warn(work->session, text);
		return 0;
	}
	for (size_t i = 0; i < work->items_len && ret == 0; i++) {
		struct pm_symbol_function function = { 0 };
		const char *module;

		function.name =
			pm_kallsyms_find(kallsyms, work->items[i].address, &module);
		if (function.name)
			ret = write_symbol(work, work->items[i].frame, &function, 1);
	}
	pm_kallsyms_free(kallsyms);
	return ret;
}

static int resolve(struct work *work, uint32_t id, const uint64_t *addresses, size_t len)
{
	struct pm_rec_modules *modules = &work->session->modules;
	const struct pm_procs *procs = work->session->procs;
	const struct pm_module *module = pm_procs_module(procs, id);
	const struct pm_module_identity *identity = &module->identity;
	const struct pm_rec_vdso *vdso = pm_rec_modules_vdso(modules, module);
	const struct pm_symbol_options options = { .inlines = true,
						   .lines = true,
						   .pid = module->seen_pid,
						   .path = identity->path };
	int fd, ret;

	if (identity->kind == PM_MODULE_VDSO && vdso->image)
		return pm_symbols_resolve_memory(vdso->image, vdso->len, addresses, len,
						 &options, emit, work, NULL);
	if (identity->kind != PM_MODULE_FILE)
		return 0;
	fd = pm_rec_modules_open_file(modules, procs, id);
	if (fd < 0)
		return 0;
	ret = pm_symbols_resolve(fd, addresses, len, &options, emit, work, NULL);
	if (fd != modules->list.data[id].fd)
		close(fd);
	return ret;
}

static void show_progress(struct work *work, size_t done, size_t all, const char *path)
{
	const char *base = strrchr(path, '/');

	if (work->session->options->quiet || !isatty(STDERR_FILENO) ||
	    pm_rec_now_ns() - work->begin_ns < PROGRESS_AFTER_NS)
		return;
	work->progress_shown = true;
	fprintf(stderr, "\r\033[Kpmrec: names: %zu of %zu frames", done, all);
	if (base) {
		struct pm_str name = { 0 };

		pm_str_printable(&name, base + 1, strlen(base + 1));
		if (!name.failed && name.data)
			fprintf(stderr, ", %.40s", name.data);
		pm_str_release(&name);
	}
}

static int module_symbols(struct work *work)
{
	struct pm_rec_modules *modules = &work->session->modules;
	uint32_t file_id = work->items[0].module;
	PM_AUTO_FREE uint64_t *addresses = NULL;
	size_t len = 0;
	int ret;

	if (file_id == modules->kernel_file_id)
		return kernel_symbols(work);
	addresses = reallocarray(NULL, work->items_len, sizeof(*addresses));
	if (!addresses)
		return -ENOMEM;
	for (size_t i = 0; i < work->items_len; i++)
		if (i == 0 || work->items[i].address != work->items[i - 1].address)
			addresses[len++] = work->items[i].address;
	ret = resolve(work, modules->by_file_id.data[file_id], addresses, len);
	/* A file that is no ELF, or too broken, leaves its frames without names. */
	return ret == -EINTR ? ret : 0;
}

/* Generated code has got its names already, when it was there. */
static bool is_generated(const struct pm_rec_modules *modules, uint32_t file_id)
{
	return modules->by_file_id.data[file_id] == PM_FILE_NONE &&
	       file_id != modules->kernel_file_id;
}

static size_t collect(struct pm_rec_session *session, struct item **ret)
{
	size_t len;
	const struct pm_file_frame *frames = pm_file_writer_frames(session->writer, &len);
	struct item *items = reallocarray(NULL, len ? len : 1, sizeof(*items));
	size_t n = 0;

	for (size_t i = 0; items && i < len; i++)
		if (frames[i].module != PM_FILE_NONE &&
		    !is_generated(&session->modules, frames[i].module))
			items[n++] = (struct item){ .address = frames[i].address,
						    .module = frames[i].module,
						    .frame = frames[i].id };
	if (items)
		qsort(items, n, sizeof(*items), compare);
	*ret = items;
	return n;
}

int pm_rec_symbols_write(struct pm_rec_session *session)
{
	struct work work = { .session = session, .begin_ns = pm_rec_now_ns() };
	PM_AUTO_FREE struct item *items = NULL;
	size_t len = collect(session, &items);
	int ret = 0;

	if (!items)
		return -ENOMEM;
	for (size_t begin = 0, end; begin < len && ret == 0; begin = end) {
		uint32_t file_id = items[begin].module;
		uint32_t id = session->modules.by_file_id.data[file_id];

		for (end = begin + 1; end < len && items[end].module == file_id;)
			end++;
		show_progress(
			&work, begin, len,
			id == PM_FILE_NONE
				? ""
				: pm_procs_module(session->procs, id)->identity.path);
		work.items = items + begin;
		work.items_len = end - begin;
		work.next = 0;
		ret = module_symbols(&work);
		pm_rec_child_signals(&session->child);
		if (session->child.interrupts > 1)
			ret = -EINTR;
	}
	if (work.progress_shown)
		fputs("\r\033[K", stderr);
	return ret == -EINTR ? 0 : ret;
}

/* SPDX-License-Identifier: MIT */
#include "symbols.h"

#include <string.h>

#include "early-names.h"
#include "kernel-names.h"
#include "pm/symbol-crew.h"
#include "progress.h"
#include "realtime.h"

#define HURRY_NS          1000000000ull
#define PROGRESS_AFTER_NS 1000000000ull
#define PROGRESS_EVERY_NS 200000000ull
enum {
	LEFT_OUT_TOLD_MAX = 3, /* modules to report by name; the others are counted */
};

/* A frame of the file, in processing order: by module, then by address. */
struct item {
	uint64_t address;
	uint32_t module; /* id in the file */
	uint32_t frame;
};

/* All frames of one module. */
struct batch {
	const struct item *items;
	size_t len, next; /* next: the first item whose address has not been processed */
	bool early; /* a helper has opened the module */
};

struct work {
	struct pm_rec_session *session;
	struct item *items;
	size_t items_len;
	uint64_t *addresses; /* addresses of all items, each once per module */
	PM_VEC(struct batch) batches; /* by job */
	PM_VEC(struct pm_symbol_job) jobs;
	PM_VEC(uint32_t) modules; /* by job: id of struct pm_procs */
	struct batch kernel;
	size_t done; /* items that have been processed, for the progress line */
	size_t left_out; /* modules that were not processed */
	uint64_t begin_ns, shown_ns;
	bool progress_shown;
};

static int compare_symbol_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	if (a->module != b->module)
		return PM_COMPARE(a->module, b->module);
	if (a->address != b->address)
		return PM_COMPARE(a->address, b->address);
	return 0;
}

static const struct pm_module *module_of_job(const struct work *work, size_t job)
{
	return pm_procs_module(work->session->procs, work->modules.data[job]);
}

/* Callbacks of struct pm_symbol_crew_calls. */
static void open_symbol_job(void *user, size_t job, struct pm_symbol_input *out)
{
	const struct work *work = user;

	pm_rec_early_names_open(work->session, work->modules.data[job], out);
}

/* Writes the names for an address to each frame that has it: unwinding may have found
 * equal addresses in different ways. */
static int on_symbol(void *user, size_t job, size_t index,
		     const struct pm_symbol_function *functions, size_t len)
{
	struct work *work = user;
	struct batch *batch = &work->batches.data[job];
	uint64_t address = work->jobs.data[job].addresses[index];
	struct pm_file_function texts[PM_SYMBOL_CHAIN_MAX];
	int ret = 0;

	for (size_t i = 0; i < len; i++)
		texts[i] = (struct pm_file_function){ .name = functions[i].name,
						      .file = functions[i].file,
						      .line = functions[i].line,
						      .start = functions[i].start };
	while (batch->next < batch->len && batch->items[batch->next].address < address)
		batch->next++;
	for (; ret == 0 && batch->next < batch->len &&
	       batch->items[batch->next].address == address;
	     batch->next++)
		if (len > 0)
			ret = pm_file_write_symbol(
				work->session->writer,
				&(struct pm_file_symbol){
					.frame = batch->items[batch->next].frame,
					.functions = texts,
					.functions_len = len });
	return ret;
}

static int on_done(void *user, size_t job, const char *what, const char *why)
{
	struct work *work = user;
	struct pm_str text = { 0 };

	work->done += work->batches.data[job].len;
	if (!why || ++work->left_out > LEFT_OUT_TOLD_MAX)
		return 0;
	pm_str_printf(&text, "%s of %s were left out: %s", what,
		      module_of_job(work, job)->identity.path, why);
	if (!text.failed)
		pm_rec_warn(work->session, text.data);
	pm_str_release(&text);
	return 0;
}

static void show_progress(struct work *work)
{
	uint64_t now = pm_now_ns();

	if (work->session->options->quiet || work->session->told ||
	    !isatty(STDERR_FILENO) || now - work->begin_ns < PROGRESS_AFTER_NS ||
	    now - work->shown_ns < PROGRESS_EVERY_NS)
		return;
	work->progress_shown = true;
	work->shown_ns = now;
	fprintf(stderr, "\r\033[Kpmrec: names: %zu of %zu frames", work->done,
		work->items_len);
}

static int on_tick(void *user)
{
	struct work *work = user;

	pm_child_signals(&work->session->child);
	show_progress(work);
	if (work->session->child.interrupts > 1)
		return -EINTR;
	return 0;
}

static int kernel_symbols(struct work *work)
{
	PM_AUTO_FREE uint64_t *addresses = NULL;
	const struct pm_kallsyms *kallsyms;
	struct pm_error err = { 0 };
	int ret;

	if (work->kernel.len == 0)
		return 0;
	addresses = calloc(work->kernel.len, sizeof(*addresses));
	if (!addresses)
		return -ENOMEM;
	for (size_t i = 0; i < work->kernel.len; i++)
		addresses[i] = work->kernel.items[i].address;
	ret = pm_rec_kernel_names_get(work->session, addresses, work->kernel.len,
				      &kallsyms, &err);
	if (ret < 0) {
		char text[PM_ERROR_TEXT_MAX + PM_ERROR_FIX_MAX + 64];

		snprintf(text, sizeof(text), "no names for kernel functions: %s%s%s",
			 err.text, err.fix[0] ? "; try: " : "", err.fix);
		pm_rec_warn(work->session, text);
		return 0;
	}
	for (size_t i = 0; i < work->kernel.len && ret == 0; i++) {
		const struct item *item = &work->kernel.items[i];
		struct pm_file_function function = { 0 };
		const char *module;

		function.name = pm_kallsyms_find(kallsyms, item->address, &module);
		if (function.name)
			ret = pm_file_write_symbol(
				work->session->writer,
				&(struct pm_file_symbol){ .frame = item->frame,
							  .functions = &function,
							  .functions_len = 1 });
	}
	work->done += work->kernel.len;
	return ret;
}

/* Whether the module is generated code, whose names are written while it exists. */
static bool is_generated_file(const struct pm_chain_modules *modules, uint32_t file_id)
{
	return pm_chain_modules_of_file_id(modules, file_id) == PM_FILE_NONE &&
	       file_id != modules->kernel_file_id;
}

static int collect_symbol_items(struct work *work)
{
	struct pm_rec_session *session = work->session;
	size_t len;
	const struct pm_file_frame *frames = pm_file_writer_frames(session->writer, &len);

	work->items = reallocarray(NULL, len + 1, sizeof(*work->items));
	work->addresses = reallocarray(NULL, len + 1, sizeof(*work->addresses));
	if (!work->items || !work->addresses)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		if (frames[i].module != PM_FILE_NONE &&
		    !is_generated_file(&session->modules, frames[i].module))
			work->items[work->items_len++] =
				(struct item){ .address = frames[i].address,
					       .module = frames[i].module,
					       .frame = frames[i].id };
	qsort(work->items, work->items_len, sizeof(*work->items), compare_symbol_items);
	return 0;
}

/* Whether names can be read from the module's file or image. Other modules are anonymous
 * memory. */
static bool is_readable(const struct pm_module *module)
{
	return module->identity.kind == PM_MODULE_FILE ||
	       module->identity.kind == PM_MODULE_VDSO;
}

static struct pm_symbol_early *early_of(const struct work *work,
					const struct batch *batch)
{
	return pm_rec_early_names_of(work->session,
				     pm_chain_modules_of_file_id(&work->session->modules,
								 batch->items[0].module));
}

static int add_job(struct work *work, const struct batch *batch, uint64_t *addresses)
{
	uint32_t module = pm_chain_modules_of_file_id(&work->session->modules,
						      batch->items[0].module);
	struct pm_symbol_job job = { .addresses = addresses,
				     .early = early_of(work, batch) };

	if (!is_readable(pm_procs_module(work->session->procs, module)))
		return 0;
	for (size_t i = 0; i < batch->len; i++)
		if (i == 0 || batch->items[i].address != batch->items[i - 1].address)
			addresses[job.addresses_len++] = batch->items[i].address;
	if (pm_vec_push(&work->batches, *batch) < 0 ||
	    pm_vec_push(&work->jobs, job) < 0 || pm_vec_push(&work->modules, module) < 0)
		return -ENOMEM;
	return 0;
}

/* Orders batches: first those that a helper has opened, because the helpers answer while
 * this process forks those for the others; then the largest. */
static int by_size(const void *left, const void *right)
{
	const struct batch *a = left, *b = right;

	if (a->early != b->early)
		return a->early ? -1 : 1;
	if (a->len != b->len)
		return PM_COMPARE(b->len, a->len);
	return PM_COMPARE(a->items, b->items);
}

/* Creates one job for each module, in the order of by_size(). */
static int plan_symbol_jobs(struct work *work)
{
	PM_VEC(struct batch) all = { 0 };
	uint64_t *addresses = work->addresses;
	int ret = 0;

	for (size_t begin = 0, end; begin < work->items_len && ret == 0; begin = end) {
		struct batch batch = { .items = work->items + begin };

		for (end = begin + 1;
		     end < work->items_len &&
		     work->items[end].module == work->items[begin].module;)
			end++;
		batch.len = end - begin;
		batch.early = early_of(work, &batch) != NULL;
		if (work->items[begin].module == work->session->modules.kernel_file_id)
			work->kernel = batch;
		else
			ret = pm_vec_push(&all, batch);
	}
	if (ret == 0 && all.len > 0)
		qsort(all.data, all.len, sizeof(*all.data), by_size);
	for (size_t i = 0; i < all.len && ret == 0; i++) {
		ret = add_job(work, &all.data[i], addresses);
		addresses += all.data[i].len;
	}
	pm_vec_release(&all);
	return ret;
}

static void report_symbol_jobs(struct work *work, const struct pm_symbol_crew_cost *cost)
{
	char text[96];

	if (work->progress_shown)
		fputs("\r\033[K", stderr);
	if (work->left_out > LEFT_OUT_TOLD_MAX) {
		snprintf(text, sizeof(text), "names of %zu more modules were left out",
			 work->left_out - LEFT_OUT_TOLD_MAX);
		pm_rec_warn(work->session, text);
	}
	if (work->session->options->verbose && !work->session->options->quiet &&
	    !work->session->told)
		fprintf(stderr,
			"pmrec: names by %u helper processes: %.3f s user, %.3f s "
			"system; peak memory of one %ld KB\n",
			cost->processes,
			(double)cost->user.tv_sec + (double)cost->user.tv_usec / 1e6,
			(double)cost->system.tv_sec + (double)cost->system.tv_usec / 1e6,
			cost->memory_kb);
}

int pm_rec_symbols_write(struct pm_rec_session *session)
{
	struct work work = { .session = session, .begin_ns = pm_now_ns() };
	struct pm_symbol_crew_calls calls = {
		.user = &work,
		.open = open_symbol_job,
		.symbol = on_symbol,
		.done = on_done,
		.tick = on_tick,
		.wake_fd = session->child.signal_fd,
		.process_name = "pmrec-names",
	};
	struct pm_symbol_crew_cost cost = { 0 };
	int ret = collect_symbol_items(&work);

	if (pm_rec_realtime_hurry_nice(session, &calls.hurry_nice))
		calls.hurry_ns = HURRY_NS;
	calls.hurry_realtime = pm_rec_realtime_hurries(session);

	/* The thread that reads kernel names continues while the helpers work. */
	pm_rec_kernel_names_hurry(session);
	if (ret == 0)
		ret = plan_symbol_jobs(&work);
	if (ret == 0)
		ret = pm_symbol_crew_run(work.jobs.data, work.jobs.len, &calls, &cost);
	if (ret == 0)
		ret = kernel_symbols(&work);
	report_symbol_jobs(&work, &cost);
	free(work.items);
	free(work.addresses);
	pm_vec_release(&work.batches);
	pm_vec_release(&work.jobs);
	pm_vec_release(&work.modules);
	if (ret == -EINTR)
		return 0;
	return ret;
}

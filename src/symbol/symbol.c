/* SPDX-License-Identifier: MIT */
/*
 * Resolves all addresses of one module. The symbol table and the debug information are
 * each read once for all addresses; the two answers for each address are then combined
 * and emitted in order.
 */
#include "pm/symbol.h"

#include <string.h>

#include "symbol-parts.h"

struct pm_symbols {
	struct pm_elf_image image;
	struct pm_elf_image debug; /* of the file or its debug file; NULL until it is
	                            * loaded */
	struct pm_dwarf *dwarf; /* of one of the two; NULL until it is loaded */
	struct pm_wanted wanted;
	struct pm_symbol_options options;
	struct pm_elf_symbol *symbols;
	struct pm_dwarf_answers answers;
	struct pm_texts texts;
	PM_VEC(struct pm_symbol_function) chain;
	bool damaged; /* a part of the file exists but cannot be read */
};

static void symbols_release(struct pm_symbols *job)
{
	pm_dwarf_free(job->dwarf);
	pm_elf_image_close(&job->debug);
	pm_elf_image_close(&job->image);
	free(job->symbols);
	free(job->answers.of);
	pm_vec_release(&job->answers.functions);
	pm_texts_release(&job->texts);
	pm_vec_release(&job->chain);
}

static const char *intern_symbol_name(struct pm_symbols *job,
				      const struct pm_elf_symbol *symbol)
{
	size_t len = strnlen(symbol->name, PM_SYMBOL_TEXT_MAX);
	/* An @ at the start of a name does not introduce a version. */
	const char *version = NULL;

	if (len > 0)
		version = memchr(symbol->name + 1, '@', len - 1);
	if (version)
		len = (size_t)(version - symbol->name);

	const char *name = pm_texts_add_name(&job->texts, symbol->name, len);
	struct pm_str plt = { 0 };

	if (!symbol->plt || !name)
		return name;
	pm_str_puts(&plt, name);
	pm_str_puts(&plt, "@plt");
	if (!plt.failed)
		name = pm_texts_add(&job->texts, plt.data, plt.len);
	pm_str_release(&plt);
	return name;
}

/* Builds the chain of address @index in job->chain. */
static int assemble_inline_chain(struct pm_symbols *job, size_t index)
{
	const struct pm_elf_symbol *symbol = &job->symbols[index];
	const struct pm_dwarf_answer *answer = &job->answers.of[index];
	uint64_t start = job->options.starts && !symbol->name ? symbol->start : 0;
	struct pm_symbol_function *outermost;

	pm_vec_clear(&job->chain);
	if (pm_vec_reserve(&job->chain, answer->len + 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < answer->len; i++)
		job->chain.data[job->chain.len++] =
			job->answers.functions.data[answer->first + i];
	if (answer->len == 0 && (symbol->name || answer->file || start > 0))
		job->chain.data[job->chain.len++] = (struct pm_symbol_function){
			.file = answer->file,
			.line = answer->line,
		};
	if (job->chain.len == 0)
		return 0;
	outermost = &job->chain.data[job->chain.len - 1];
	if (!symbol->name) {
		outermost->start = outermost->name ? 0 : start;
		return 0;
	}
	/*
	 * The linker's name has information that DWARF lacks: which of a function's names
	 * is the public one, and which copy it is (foo.constprop.0). It is not used for a
	 * part that was split off (foo.cold), because that does not start where its
	 * function does.
	 */
	if (answer->len == 0 || !outermost->name || symbol->start == answer->entry) {
		const char *name = intern_symbol_name(job, symbol);

		if (name)
			outermost->name = name;
	}
	return 0;
}

static int emit_inline_chains(struct pm_symbols *job, pm_symbol_emit_fn emit, void *user)
{
	for (size_t i = 0; i < job->wanted.len; i++) {
		const struct pm_symbol_function *functions;
		size_t len;
		int ret = assemble_inline_chain(job, i);

		if (ret < 0)
			return ret;
		functions = job->chain.data;
		len = job->chain.len;
		if (!job->options.inlines && len > 1) {
			functions += len - 1;
			len = 1;
		}
		ret = emit(user, i, len > 0 ? functions : NULL, len);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Opens all files and decompresses sections, which does not depend on the addresses. */
static int load_symbol_files(struct pm_symbols *job, int fd)
{
	const struct pm_elf_image *debug;
	int ret = pm_debug_file_open(&job->debug, &job->image, fd, &job->options);

	if (ret < 0) {
		job->debug = (struct pm_elf_image){ 0 };
		job->damaged = ret != -ENOENT;
	}
	debug = job->debug.elf ? &job->debug : NULL;
	job->damaged |=
		!pm_symtab_readable(&job->image) || (debug && !pm_symtab_readable(debug));
	if (pm_dwarf_present(&job->image) || !debug)
		debug = &job->image;
	return pm_dwarf_load(&job->image, debug, &job->options, &job->dwarf);
}

static int resolve_wanted_symbols(struct pm_symbols *job)
{
	const struct pm_elf_image *debug = job->debug.elf ? &job->debug : NULL;
	size_t len = job->wanted.len;
	int ret;

	job->symbols = calloc(len, sizeof(*job->symbols));
	job->answers.of = calloc(len, sizeof(*job->answers.of));
	if (!job->symbols || !job->answers.of)
		return -ENOMEM;
	ret = pm_symtab_resolve(&job->image, debug, &job->wanted, job->symbols);
	if (ret == 0)
		ret = pm_plt_resolve(&job->image, debug, &job->wanted, job->symbols);
	if (ret == 0)
		ret = pm_dwarf_resolve(job->dwarf, &job->wanted, &job->options,
				       &job->texts, &job->answers);
	if (ret == 0)
		ret = pm_go_resolve(&job->image, &job->wanted, job->symbols, &job->texts,
				    &job->answers);
	if (ret == 0 && job->options.starts)
		ret = pm_starts_resolve(&job->image, &job->wanted, job->symbols);
	return ret;
}

/* @code is the result of opening the files. */
static int answer_symbol_job(struct pm_symbols *job, int code, pm_symbol_emit_fn emit,
			     void *user, struct pm_error *err)
{
	if (code == 0 && job->wanted.len > 0)
		code = resolve_wanted_symbols(job);
	if (job->options.limited)
		*job->options.limited = job->answers.limited;
	if (job->options.damaged)
		*job->options.damaged = job->damaged;
	if (code < 0)
		return pm_error_set(err, code, "no memory left for its symbols");
	return emit_inline_chains(job, emit, user);
}

static int run_symbol_job(struct pm_symbols *job, int fd, pm_symbol_emit_fn emit,
			  void *user, struct pm_error *err)
{
	int ret = 0;

	if (job->wanted.len > 0)
		ret = load_symbol_files(job, fd);

	ret = answer_symbol_job(job, ret, emit, user, err);
	symbols_release(job);
	return ret;
}

static int set_not_elf_error(int code, struct pm_error *err)
{
	return pm_error_set(err, code, "%s", pm_error_elf_text(code));
}

int pm_symbols_resolve(int fd, const uint64_t *addresses, size_t len,
		       const struct pm_symbol_options *options, pm_symbol_emit_fn emit,
		       void *user, struct pm_error *err)
{
	struct pm_symbols job = { .wanted = { addresses, len }, .options = *options };
	int ret = pm_elf_image_open(&job.image, fd, options->copy_files);

	if (ret < 0)
		return set_not_elf_error(ret, err);
	return run_symbol_job(&job, fd, emit, user, err);
}

int pm_symbols_resolve_memory(const void *image, size_t image_len,
			      const uint64_t *addresses, size_t len,
			      const struct pm_symbol_options *options,
			      pm_symbol_emit_fn emit, void *user, struct pm_error *err)
{
	struct pm_symbols job = { .wanted = { addresses, len }, .options = *options };
	int ret = pm_elf_image_open_memory(&job.image, image, image_len);

	if (ret < 0)
		return set_not_elf_error(ret, err);
	return run_symbol_job(&job, -1, emit, user, err);
}

int pm_symbols_open(int fd, const struct pm_symbol_options *options,
		    struct pm_symbols **out, struct pm_error *err)
{
	struct pm_symbols *symbols = calloc(1, sizeof(*symbols));
	int ret;

	if (!symbols)
		return pm_error_set(err, -ENOMEM, "out of memory");
	symbols->options = *options;
	ret = pm_elf_image_open(&symbols->image, fd, options->copy_files);
	if (ret < 0) {
		free(symbols);
		return set_not_elf_error(ret, err);
	}
	ret = load_symbol_files(symbols, fd);
	if (ret < 0) {
		pm_symbols_free(symbols);
		return pm_error_set(err, ret, "no memory left for its symbols");
	}
	pm_dwarf_read_ahead(symbols->dwarf);
	*out = symbols;
	return 0;
}

int pm_symbols_answer(struct pm_symbols *symbols, const uint64_t *addresses, size_t len,
		      pm_symbol_emit_fn emit, void *user, struct pm_error *err)
{
	symbols->wanted = (struct pm_wanted){ addresses, len };
	return answer_symbol_job(symbols, 0, emit, user, err);
}

void pm_symbols_free(struct pm_symbols *symbols)
{
	if (symbols)
		symbols_release(symbols);
	free(symbols);
}

/* SPDX-License-Identifier: MIT */
/*
 * Guesses which function was meant by a name that does not exist. A name without
 * namespaces and classes stands for the full name if only one full name ends with it.
 */
#include "probe-internal.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>

#include "pm/proc.h"
#include "pm/symbol.h"

enum {
	DEMANGLED_MAX = 1 << 17, /* names per search; more would take seconds */
	/* In larger files, only units that contain the word are walked. */
	WALKED_BYTES_MAX = 32 << 20,
};

void pm_probe_meant_release(struct pm_probe_meant *meant)
{
	free(meant->last);
	meant->last = NULL;
}

/* ---- all names of a file -------------------------------------------------------------- */

/* If memory runs out, the name counts as ambiguous and is not used. */
static void meant_add_function(struct pm_probe_meant *meant, const char *name)
{
	bool is_last = pm_name_is_last_part(name, meant->near.wanted);

	pm_near_names_add(&meant->near, name);
	if (!is_last || meant->several || (meant->last && strcmp(meant->last, name) == 0))
		return;
	meant->several = meant->last != NULL;
	if (!meant->several)
		meant->last = strdup(name);
	meant->several |= meant->last == NULL;
}

/* Adds a linker's name as users write it, without parameters. */
static void meant_add_linkage(struct pm_probe_meant *meant, const char *name)
{
	PM_AUTO_FREE char *base = NULL;
	PM_AUTO_FREE char *pretty = NULL;
	enum pm_probe_copy copy;
	size_t len;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R')) {
		meant_add_function(meant, name);
		return;
	}
	/* Any name that is not demangled could also have been meant. */
	if (meant->demangled++ >= DEMANGLED_MAX) {
		meant->several = true;
		return;
	}
	len = pm_probe_base_len(name, &copy);
	if (copy == PM_PROBE_PART)
		return;
	base = strndup(name, len);
	if (base)
		pretty = pm_demangle(base);
	if (pretty)
		name = pretty;
	meant_add_function(meant, name);
}

const char *pm_probe_meant_only(const struct pm_probe_meant *meant)
{
	if (meant->several)
		return NULL;
	return meant->last;
}

void pm_probe_meant_symbols(struct pm_probe_meant *meant,
			    const struct pm_probe_tables *tables)
{
	for (size_t t = 0; t < tables->len; t++) {
		struct pm_probe_table table = tables->table[t];

		for (size_t i = 1; i < table.len; i++) {
			struct pm_probe_symbol row;

			if (pm_probe_table_row(&table, i, &row) && row.defined &&
			    (row.type == STT_FUNC || row.type == STT_GNU_IFUNC))
				meant_add_linkage(meant, row.name);
		}
	}
}

static bool meant_add_inlined(void *user, const char *linkage, const char *name)
{
	if (linkage)
		meant_add_linkage(user, linkage);
	else
		meant_add_function(user, name);
	return false; /* its places are not needed */
}

static int ignore_inlined_place(void *user, const struct pm_symbol_inlined *place)
{
	(void)user;
	(void)place;
	return 0;
}

static int meant_add_all_inlined(struct pm_probe_meant *meant,
				 const struct pm_probe_binary *binary,
				 const struct pm_probe_context *context)
{
	struct pm_symbol_options options = { .debug_dir = context->debug_dir,
					     .pid = binary->pid,
					     .path = binary->path };
	struct pm_probe_pattern pattern;
	struct stat stat;
	bool small = fstat(binary->fd, &stat) == 0 && stat.st_size <= WALKED_BYTES_MAX;
	int ret = pm_probe_pattern_init(&pattern, meant->near.wanted);

	if (ret == 0)
		ret = pm_symbols_find_inlined(
			binary->fd, &options, small ? NULL : pattern.needle,
			meant_add_inlined, ignore_inlined_place, meant, NULL);
	pm_probe_pattern_release(&pattern);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

static int meant_add_all_symbols(struct pm_probe_meant *meant,
				 const struct pm_probe_binary *binary,
				 const struct pm_probe_context *context)
{
	struct pm_debug_search search = { .dir = context->debug_dir,
					  .pid = binary->pid,
					  .path = binary->path };
	PM_AUTO_CLOSE int debug_fd = pm_debug_find(binary->fd, &search);
	struct pm_probe_tables tables = { 0 };
	struct pm_probe_elf elf, debug;
	bool has_debug = debug_fd >= 0 && pm_probe_elf_open(&debug, debug_fd) == 0;
	int ret = pm_probe_elf_open(&elf, binary->fd);

	if (ret == 0) {
		ret = pm_probe_tables_open(&tables, &elf, has_debug ? &debug : NULL);
		if (ret == 0)
			pm_probe_meant_symbols(meant, &tables);
		pm_probe_tables_close(&tables);
		pm_probe_elf_close(&elf);
	}
	if (has_debug)
		pm_probe_elf_close(&debug);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

int pm_probe_find_meant(char **out, const struct pm_probe_binaries *binaries,
			const struct pm_probe_context *context, const char *name,
			struct pm_error *err)
{
	PM_CLEANUP(pm_probe_meant_release)
	struct pm_probe_meant meant = { .near = { .wanted = name } };
	int ret = 0;

	for (size_t i = 0; i < binaries->list.len && ret == 0; i++) {
		ret = meant_add_all_symbols(&meant, &binaries->list.data[i], context);
		if (ret == 0)
			ret = meant_add_all_inlined(&meant, &binaries->list.data[i],
						    context);
	}
	if (ret < 0)
		return pm_error_set(err, ret, "no memory left for near names");
	if (!pm_probe_meant_only(&meant)) {
		pm_near_names_tell(&meant.near, err);
		return -ENOENT;
	}
	*out = PM_TAKE_PTR(meant.last);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Finds variables by name, for hardware breakpoints. These need an address in a process.
 * It is known in advance only if a program is linked to fixed addresses; otherwise it
 * depends on what a running process has mapped.
 */
#include "probe-internal.h"

#include <elf.h>
#include <linux/hw_breakpoint.h>
#include <string.h>

#include "pm/proc.h"

struct wanted {
	const char *symbol;
	bool code; /* functions match, too */
	struct pm_near_names near;
};

static bool is_wanted_variable(const struct wanted *wanted,
			       const struct pm_probe_symbol *symbol)
{
	if (!symbol->defined)
		return false;
	return symbol->type == STT_OBJECT || symbol->type == STT_NOTYPE ||
	       symbol->type == STT_COMMON || (wanted->code && symbol->type == STT_FUNC);
}

/* Returns 0, -ENOENT, or -EINVAL: several variables have that name, or each thread has
 * its own. */
static int find_variable_in_tables(const struct pm_probe_elf *elf,
				   const struct pm_probe_elf *debug,
				   struct wanted *wanted, uint64_t *out,
				   struct pm_error *err)
{
	struct pm_probe_tables tables;
	uint64_t address = 0;
	bool found = false, several = false, per_thread = false;
	int ret = pm_probe_tables_open(&tables, elf, debug);

	if (ret < 0)
		return pm_error_set(err, ret, "cannot read its symbols: %s",
				    strerror(-ret));
	for (size_t t = 0; t < tables.len; t++) {
		struct pm_probe_table table = tables.table[t];

		for (size_t i = 1; i < table.len; i++) {
			struct pm_probe_symbol symbol;

			if (!pm_probe_table_row(&table, i, &symbol))
				continue;
			if (strcmp(symbol.name, wanted->symbol) != 0) {
				if (is_wanted_variable(wanted, &symbol))
					pm_near_names_add(&wanted->near, symbol.name);
				continue;
			}
			per_thread |= symbol.type == STT_TLS;
			if (!is_wanted_variable(wanted, &symbol))
				continue;
			several |= found && address != symbol.address;
			found = true;
			address = symbol.address;
		}
	}
	pm_probe_tables_close(&tables);
	if (several)
		return pm_error_set(err, -EINVAL, "several variables are called %s",
				    wanted->symbol);
	if (!found && per_thread)
		return pm_error_set(err, -EINVAL, "each thread has a %s of its own",
				    wanted->symbol);
	if (found)
		*out = address;
	if (!found)
		return -ENOENT;
	return 0;
}

/* Searches @fd and its debug file. */
static int find_variable_in_file(int fd, const struct pm_debug_search *search,
				 struct wanted *wanted, struct pm_probe_elf *elf,
				 uint64_t *out, struct pm_error *err)
{
	PM_AUTO_CLOSE int debug_fd = -1;
	struct pm_probe_elf debug = { .fd = -1 };
	int ret = pm_probe_elf_open(elf, fd);
	bool has_debug;

	if (ret < 0) {
		if (ret == -ENOEXEC)
			return -ENOENT;
		return ret;
	}
	debug_fd = pm_debug_find(fd, search);
	has_debug = debug_fd >= 0 && pm_probe_elf_open(&debug, debug_fd) == 0;
	ret = find_variable_in_tables(elf, has_debug ? &debug : NULL, wanted, out, err);
	if (has_debug)
		pm_probe_elf_close(&debug);
	return ret;
}

static int set_no_variable_error(const struct wanted *wanted, struct pm_error *err)
{
	pm_error_set(err, -ENOENT, "no variable \"%s\"", wanted->symbol);
	pm_near_names_tell(&wanted->near, err);
	return -ENOENT;
}

static int find_variable_in_command(const struct pm_probe_context *context,
				    struct wanted *wanted, uint64_t *out,
				    struct pm_error *err)
{
	struct pm_debug_search search = { .dir = context->debug_dir };
	struct pm_probe_file program = { .fd = -1 };
	struct pm_probe_elf elf = { .fd = -1 };
	bool is_script;
	int ret = pm_probe_files_command(&program, context, &is_script, err);

	if (ret < 0)
		return ret;
	ret = find_variable_in_file(program.fd, &search, wanted, &elf, out, err);
	if (ret == -ENOENT) {
		set_no_variable_error(wanted, err);
		pm_error_where(err, program.path, -1);
		if (elf.type == ET_DYN || elf.has_interpreter)
			pm_error_fix(err, "for a library's variable: -p PID");
	} else if (ret == 0 && elf.type != ET_EXEC) {
		ret = pm_error_set(err, -EINVAL,
				   "%s is a position-independent executable: where "
				   "%s will be is known only when it runs",
				   program.label, wanted->symbol);
		pm_error_fix(err, "-p PID of the running program, or link it with "
				  "-no-pie");
	}
	pm_probe_elf_close(&elf);
	pm_probe_file_release(&program);
	return ret;
}

/* The difference between the addresses in memory and in the file, from one executable
 * mapping of it. */
static bool mapping_bias(const struct pm_probe_elf *elf, const struct pm_mapping *mapping,
			 uint64_t *out)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < elf->segments.len; i++) {
		const struct pm_probe_segment *segment = &elf->segments.data[i];
		uint64_t end = segment->offset + (segment->end - segment->start);

		if (!segment->executable || mapping->pgoff >= end ||
		    mapping->pgoff < segment->offset - segment->offset % page)
			continue;
		*out = mapping->start + segment->offset - mapping->pgoff - segment->start;
		return true;
	}
	return false;
}

static void free_data_procs(struct pm_procs **procs)
{
	pm_procs_free(*procs);
}

/* The program comes first in the list of mappings; its variables hide those of
 * libraries. */
static int find_variable_in_process(const struct pm_probe_context *context, pid_t pid,
				    struct wanted *wanted, uint64_t *out,
				    struct pm_error *err)
{
	struct pm_procs *procs PM_CLEANUP(free_data_procs) = pm_procs_new(NULL);
	const struct pm_process *process;
	int ret;

	if (!procs)
		return pm_error_set(err, -ENOMEM, "no memory left");
	ret = pm_procs_read(procs, pid, err);
	if (ret < 0)
		return ret;
	process = pm_procs_get(procs, pid);
	for (size_t i = 0; process && i < process->space.maps.len; i++) {
		const struct pm_mapping *mapping = &process->space.maps.data[i];
		const struct pm_module *module = pm_procs_module(procs, mapping->module);
		struct pm_debug_search search = { .dir = context->debug_dir,
						  .pid = pid,
						  .path = module->identity.path };
		struct pm_probe_elf elf = { .fd = -1 };
		PM_AUTO_CLOSE int fd = -1;
		uint64_t address, bias = 0;

		if (module->identity.kind != PM_MODULE_FILE ||
		    (fd = pm_module_open(module, NULL)) < 0)
			continue;
		ret = find_variable_in_file(fd, &search, wanted, &elf, &address, err);
		if (ret == 0 && !mapping_bias(&elf, mapping, &bias))
			ret = -ENOENT;
		pm_probe_elf_close(&elf);
		if (ret == 0)
			*out = address + bias;
		if (ret != -ENOENT)
			return ret;
	}
	return set_no_variable_error(wanted, err);
}

int pm_probe_find_data(const struct pm_probe_context *context,
		       const struct pm_event_spec *spec, uint64_t *address,
		       struct pm_error *err)
{
	struct wanted wanted = { .symbol = spec->place.symbol,
				 .code = spec->bp_type & HW_BREAKPOINT_X,
				 .near = { .wanted = spec->place.symbol } };
	uint64_t found = 0;
	int ret = 0;

	if (context->pids_len == 0 && !context->command) {
		pm_error_set(err, -EINVAL,
			     "an address belongs to a process: %s of which one?",
			     spec->place.symbol);
		pm_error_fix(err, "-p PID, or mem:ADDRESS");
		return -EINVAL;
	}
	if (context->pids_len == 0)
		ret = find_variable_in_command(context, &wanted, &found, err);
	for (size_t i = 0; i < context->pids_len && ret == 0; i++) {
		uint64_t its = 0;

		ret = find_variable_in_process(context, context->pids[i], &wanted, &its,
					       err);
		if (ret == 0 && i > 0 && its != found) {
			ret = pm_error_set(err, -EINVAL,
					   "%s is at different places in these "
					   "processes",
					   spec->place.symbol);
			pm_error_fix(err, "one process at a time");
		}
		found = its;
	}
	if (ret == 0 && __builtin_add_overflow(found, spec->place.offset, &found))
		return pm_error_set(err, -EINVAL, "%s+0x%llx is no address",
				    spec->place.symbol,
				    (unsigned long long)spec->place.offset);
	if (ret == 0)
		*address = found;
	return ret;
}

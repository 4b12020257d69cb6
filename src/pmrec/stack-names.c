/* SPDX-License-Identifier: MIT */
#include "stack-names.h"

#include <string.h>

#include "pm/symbol.h"

struct work {
	struct pm_rec_name *first; /* of the current module */
	bool failed; /* out of memory */
};

static int compare_stack_names(const void *left, const void *right)
{
	const struct pm_rec_name *a = left, *b = right;

	if (a->module != b->module)
		return PM_COMPARE(a->module, b->module);
	if (a->address != b->address)
		return PM_COMPARE(a->address, b->address);
	return 0;
}

int pm_rec_names_add(struct pm_rec_names *names, uint32_t module, uint64_t address)
{
	return pm_vec_push(&names->list,
			   (struct pm_rec_name){ .module = module, .address = address });
}

static bool copy_name_text(char **out, const char *text)
{
	if (text)
		*out = strdup(text);
	else
		*out = NULL;
	return !text || *out;
}

/* pm_symbol_emit_fn */
static int emit_stack_name(void *user, size_t index,
			   const struct pm_symbol_function *functions, size_t len)
{
	struct work *work = user;
	struct pm_rec_name *name = &work->first[index];

	if (len == 0)
		return 0;
	name->functions = calloc(len, sizeof(*name->functions));
	if (!name->functions)
		goto failed;
	name->functions_len = len;
	for (size_t i = 0; i < len; i++) {
		name->functions[i].line = functions[i].line;
		if (!copy_name_text(&name->functions[i].name, functions[i].name) ||
		    !copy_name_text(&name->functions[i].file, functions[i].file))
			goto failed;
	}
	return 0;
failed:
	work->failed = true;
	return -ENOMEM;
}

static int resolve_module_names(struct pm_rec_name *first, size_t len,
				struct pm_chain_modules *modules,
				const struct pm_procs *procs)
{
	static const struct pm_symbol_options options = { .inlines = true,
							  .lines = true };
	uint32_t id = first->module;
	const struct pm_module *module = pm_procs_module(procs, id);
	const struct pm_chain_vdso *vdso = pm_chain_modules_vdso(modules, module);
	enum pm_module_kind kind = module->identity.kind;
	PM_AUTO_FREE uint64_t *addresses = reallocarray(NULL, len, sizeof(*addresses));
	struct work work = { .first = first };
	int fd;

	if (!addresses)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		addresses[i] = first[i].address;
	if (kind == PM_MODULE_VDSO && vdso->image)
		pm_symbols_resolve_memory(vdso->image, vdso->len, addresses, len,
					  &options, emit_stack_name, &work, NULL);
	if (kind == PM_MODULE_FILE) {
		fd = pm_chain_modules_open_file(modules, procs, id);
		if (fd >= 0)
			pm_symbols_resolve(fd, addresses, len, &options, emit_stack_name,
					   &work, NULL);
		if (fd >= 0 && fd != modules->list.data[id].fd)
			close(fd);
	}
	if (work.failed)
		return -ENOMEM;
	return 0;
}

int pm_rec_names_resolve(struct pm_rec_names *names, struct pm_chain_modules *modules,
			 const struct pm_procs *procs)
{
	struct pm_rec_name *list = names->list.data;
	size_t len = 0;
	int ret = 0;

	if (names->list.len > 0)
		qsort(list, names->list.len, sizeof(*list), compare_stack_names);
	for (size_t i = 0; i < names->list.len; i++)
		if (i == 0 || compare_stack_names(&list[i], &list[len - 1]) != 0)
			list[len++] = list[i];
	names->list.len = len;
	for (size_t begin = 0, end; begin < len && ret == 0; begin = end) {
		for (end = begin + 1;
		     end < len && list[end].module == list[begin].module;)
			end++;
		ret = resolve_module_names(&list[begin], end - begin, modules, procs);
	}
	return ret;
}

const struct pm_rec_name *pm_rec_names_find(const struct pm_rec_names *names,
					    uint32_t module, uint64_t address)
{
	struct pm_rec_name key = { .module = module, .address = address };

	return bsearch(&key, names->list.data, names->list.len, sizeof(key),
		       compare_stack_names);
}

void pm_rec_names_release(struct pm_rec_names *names)
{
	for (size_t i = 0; i < names->list.len; i++) {
		struct pm_rec_name *name = &names->list.data[i];

		for (size_t n = 0; n < name->functions_len; n++) {
			free(name->functions[n].name);
			free(name->functions[n].file);
		}
		free(name->functions);
	}
	pm_vec_release(&names->list);
}

/* SPDX-License-Identifier: MIT */
#include "probes.h"

static int add_all(struct pm_task_list *all, const struct pm_task_list *tasks)
{
	int code = 0;

	for (size_t i = 0; i < tasks->list.len && code == 0; i++)
		code = pm_vec_push(&all->list, tasks->list.data[i]);
	return code;
}

int pm_rec_probes_resolve(struct pm_rec_options *options, struct pm_error *err)
{
	struct pm_task_list all = { 0 };
	struct pm_probe_context context = { 0 };
	int code = 0;

	/* /proc has the mappings of a thread under its number, too. */
	if (options->attach) {
		code = add_all(&all, &options->targets.pids);
		if (code == 0)
			code = add_all(&all, &options->targets.tids);
	} else if (options->command) {
		context.command = options->command[0];
	}
	context.pids = all.list.data;
	context.pids_len = all.list.len;
	if (code < 0)
		pm_error_set(err, code, "out of memory");
	else
		code = pm_probes_resolve(&options->probes, &options->specs, &context,
					 err);
	pm_vec_release(&all.list);
	return code;
}

/* SPDX-License-Identifier: MIT */
/* Resolves the places that a command line names. */
#include "pm/run.h"

int pm_places_context(struct pm_probe_context *out, struct pm_task_list *ids,
		      const struct pm_targets_request *request, char *const *command)
{
	const struct pm_task_list *const lists[] = { &request->pids, &request->tids };

	/* /proc has a thread's mappings under its tid, too. */
	for (size_t i = 0; i < PM_ARRAY_LEN(lists); i++)
		for (size_t j = 0; j < lists[i]->list.len; j++)
			if (pm_vec_push(&ids->list, lists[i]->list.data[j]) < 0)
				return -ENOMEM;
	*out = (struct pm_probe_context){ .pids = ids->list.data,
					  .pids_len = ids->list.len };
	if (command && !pm_targets_request_any(request))
		out->command = command[0];
	return 0;
}

int pm_places_resolve(struct pm_probes *probes, struct pm_event_specs *specs,
		      const struct pm_targets_request *request, char *const *command,
		      struct pm_error *err)
{
	struct pm_task_list ids = { 0 };
	struct pm_probe_context context;
	int ret = pm_places_context(&context, &ids, request, command);

	if (ret < 0)
		pm_error_set(err, ret, "out of memory");
	else
		ret = pm_probes_resolve(probes, specs, &context, err);
	pm_vec_release(&ids.list);
	return ret;
}

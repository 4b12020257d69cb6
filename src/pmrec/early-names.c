/* SPDX-License-Identifier: MIT */
#include "early-names.h"

#include <sys/resource.h>

#include "pm/symbol-crew.h"
#include "realtime.h"
#include "symbols.h"

enum {
	/* Each helper costs the thread that reads the rings a fork. A command's own code
	 * and its large libraries are usually among the first modules. One less than the
	 * helpers at the end: if all early ones wait for a file, one more reads the others. */
	EARLY_MAX = 7,
	/* Each helper also keeps two descriptors open. If there are fewer than this, the
	 * modules need them. */
	DESCRIPTORS_MIN = 256,
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MAY_FORK 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define MAY_FORK 0
#endif
#endif
#ifndef MAY_FORK
#define MAY_FORK 1
#endif

struct pm_rec_early_names {
	struct {
		uint32_t module;
		struct pm_symbol_early *early;
	} list[EARLY_MAX];
	size_t len;
	size_t looked_at; /* index into the modules of the file */
	uint32_t first_file_id; /* first file id of the generation; others reuse ids */
};

bool pm_rec_early_names_may_fork(void)
{
	return MAY_FORK;
}

static bool descriptors_are_scarce(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < DESCRIPTORS_MIN;
}

void pm_rec_early_names_open(const struct pm_rec_session *session, uint32_t id,
			     struct pm_symbol_input *out)
{
	const struct pm_chain_modules *modules = &session->modules;
	const struct pm_module *module = pm_procs_module(session->procs, id);

	if (module->identity.kind == PM_MODULE_VDSO) {
		const struct pm_chain_vdso *vdso = pm_chain_modules_vdso(modules, module);

		out->image = vdso->image;
		out->image_len = vdso->len;
		return;
	}
	out->fd = pm_chain_modules_open_file(modules, session->procs, id);
	out->pid = module->seen_pid;
	out->path = module->identity.path;
}

/* struct pm_symbol_crew_calls */
static void on_early_open(void *user, size_t id, struct pm_symbol_input *out)
{
	pm_rec_early_names_open(user, (uint32_t)id, out);
}

static void start_helper(struct pm_rec_session *session, uint32_t id)
{
	const struct pm_symbol_crew_calls calls = {
		.user = session,
		.open = on_early_open,
		.process_name = "pmrec-names",
	};
	struct pm_rec_early_names *names = session->early_names;
	struct pm_symbol_early *early;
	int nice;

	if (pm_symbol_early_start(&calls, id, pm_rec_realtime_hurry_nice(session, &nice),
				  &early) < 0)
		return;
	names->list[names->len].module = id;
	names->list[names->len++].early = early;
}

/* Ends all helpers. No new ones are started in their place. */
static void end_all(struct pm_rec_early_names *names)
{
	for (size_t i = 0; i < names->len; i++)
		pm_symbol_early_free(PM_TAKE_PTR(names->list[i].early));
}

static bool is_file(const struct pm_rec_session *session, uint32_t id)
{
	return id != PM_FILE_NONE &&
	       pm_procs_module(session->procs, id)->identity.kind == PM_MODULE_FILE;
}

void pm_rec_early_names_look(struct pm_rec_session *session)
{
	struct pm_rec_early_names *names = session->early_names;
	const struct pm_chain_modules *modules = &session->modules;

	if (!pm_rec_early_names_may_fork() || !session->options->symbols ||
	    session->end != PM_REC_END_NONE || modules->by_file_id.len == 0)
		return;
	if (!names && descriptors_are_scarce())
		return;
	if (!names)
		names = session->early_names = calloc(1, sizeof(*names));
	if (!names)
		return;
	if (names->first_file_id != modules->first_file_id ||
	    names->looked_at > modules->by_file_id.len) {
		names->first_file_id = modules->first_file_id;
		names->looked_at = 0;
		end_all(names);
	}
	while (names->len < EARLY_MAX && names->looked_at < modules->by_file_id.len) {
		uint32_t id = modules->by_file_id.data[names->looked_at++];

		if (!is_file(session, id))
			continue;
		start_helper(session, id);
		return;
	}
}

void pm_rec_early_names_reap(struct pm_rec_session *session)
{
	struct pm_rec_early_names *names = session->early_names;

	for (size_t i = 0; names && i < names->len; i++)
		if (names->list[i].early)
			pm_symbol_early_is_there(names->list[i].early);
}

struct pm_symbol_early *pm_rec_early_names_of(const struct pm_rec_session *session,
					      uint32_t id)
{
	const struct pm_rec_early_names *names = session->early_names;

	if (!names || names->first_file_id != session->modules.first_file_id)
		return NULL;
	for (size_t i = 0; i < names->len; i++)
		if (names->list[i].early && names->list[i].module == id &&
		    pm_symbol_early_is_there(names->list[i].early))
			return names->list[i].early;
	return NULL;
}

void pm_rec_early_names_free(struct pm_rec_early_names *names)
{
	if (names)
		end_all(names);
	free(names);
}

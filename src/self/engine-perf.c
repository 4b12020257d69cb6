/* SPDX-License-Identifier: MIT */
/* Sampling by the kernel: perf_event_open(2) on the program's own threads. Uses no
 * signals. */
#include <dirent.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/resource.h>

#include "engine.h"
#include "pm/proc.h"
#include "pm/run.h"

enum {
	/* Bytes that are copied of each stack. The outer part is known from earlier
	 * samples of the thread, or is read from the thread (pm/chain.h); a longer copy
	 * would slow the program down at each sample. */
	STACK_BYTES = 8192,
	SLEEP_MS = 1000, /* rings that fill slowly cause no wakeup */
};

struct engine {
	struct pm_self_engine engine;
	const struct pm_self_settings *settings;
	struct pm_event_specs specs;
	struct pm_perf *perf;
	PM_VEC(pid_t) tids; /* threads that existed when the events were opened */
	PM_VEC(pid_t) late; /* threads created since then; 0: has inherited events */
	char actual[PM_EVENT_NAME_MAX + 32];
	/* Limit of file descriptors before the events were opened, which needs many, and
	 * the limit that this set. */
	struct rlimit limit, raised;
};

static struct engine *perf_engine_of(const struct pm_self_engine *engine)
{
	return (struct engine *)(uintptr_t)engine;
}

/* Restores the program's limit, unless the program itself has changed it since. */
static void restore_limit(const struct engine *perf)
{
	struct rlimit now;

	if (perf->limit.rlim_cur != perf->raised.rlim_cur &&
	    getrlimit(RLIMIT_NOFILE, &now) == 0 &&
	    now.rlim_cur == perf->raised.rlim_cur &&
	    now.rlim_max == perf->raised.rlim_max)
		setrlimit(RLIMIT_NOFILE, &perf->limit);
}

static void perf_engine_free(struct pm_self_engine *engine)
{
	struct engine *perf = perf_engine_of(engine);

	pm_perf_free(perf->perf);
	restore_limit(perf);
	pm_event_specs_release(&perf->specs);
	pm_vec_release(&perf->tids);
	pm_vec_release(&perf->late);
	free(perf);
}

static bool perf_engine_has_tid(const struct engine *perf, pid_t tid)
{
	for (size_t i = 0; i < perf->tids.len; i++)
		if (perf->tids.data[i] == tid)
			return true;
	return false;
}

/* Lists all threads of the process except the library's own into `tids`; with @again,
 * lists those that are not in `tids` into `late`. */
static int perf_engine_read_tasks(struct engine *perf, bool again)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	uint64_t tid;
	int ret = 0;

	if (!dir)
		ret = -errno;
	while (ret == 0 && (entry = readdir(dir))) {
		if (!pm_parse_u64(entry->d_name, &tid) || tid > INT32_MAX ||
		    pm_self_is_own_thread((pid_t)tid))
			continue;
		if (!again)
			ret = pm_vec_push(&perf->tids, (pid_t)tid);
		else if (!perf_engine_has_tid(perf, (pid_t)tid))
			ret = pm_vec_push(&perf->late, (pid_t)tid);
	}
	if (dir)
		closedir(dir);
	return ret;
}

static int perf_engine_list_tasks(struct engine *perf, struct pm_error *err)
{
	int ret;

	if (perf->settings->tid)
		ret = pm_vec_push(&perf->tids, perf->settings->tid);
	else
		ret = perf_engine_read_tasks(perf, false);
	if (ret < 0)
		return pm_error_set(err, ret,
				    "the threads of this process cannot be "
				    "listed (/proc/self/task): %s",
				    strerror(-ret));
	return 0;
}

static int open_events(struct engine *perf, struct pm_error *err)
{
	const struct pm_self_settings *settings = perf->settings;
	struct pm_perf_options options = {
		.specs = perf->specs.list.data,
		.specs_len = perf->specs.list.len,
		.by_frequency = true,
		.rate = settings->rate_hz,
		.call_graph = settings->call_graph == PMSELF_CALL_GRAPH_NONE
				      ? PM_CALL_GRAPH_NONE
				      : PM_CALL_GRAPH_DWARF,
		.stack_bytes = STACK_BYTES,
		.target = PM_PERF_TASKS,
		.tids = perf->tids.data,
		.tids_len = perf->tids.len,
		.no_inherit = settings->tid != 0,
		.threads_only = true,
		.begin_disabled = true,
		/* Each ring is for one thread, because records of other processes must
		 * not get into our rings. */
		.per_task = true,
	};

	if (perf->specs.list.len != 1)
		return pm_error_set(err, -EINVAL,
				    "only one event can be sampled at a time");
	if (perf->specs.list.data[0].place.wanted)
		return pm_error_set(err, -EINVAL, "probes cannot be sampled from inside");
	return pm_perf_open(&perf->perf, &options, err);
}

/* Chooses the event. If the user has not requested one, a default that is missing is
 * replaced without a note. */
static int perf_engine_choose_event(struct engine *perf, struct pm_error *err)
{
	const char *event = perf->settings->event;
	int ret = pm_event_specs_parse(pm_text_or(event, "cycles"), &perf->specs, err);

	if (ret < 0 || event ||
	    pm_perf_try(&perf->specs.list.data[0], NULL) != PM_PERF_NOT_AVAILABLE)
		return ret;
	pm_event_specs_release(&perf->specs);
	perf->specs = (struct pm_event_specs){ 0 };
	return pm_event_specs_parse("cpu-clock", &perf->specs, err);
}

static int perf_engine_open(struct pm_self_engine **out,
			    const struct pm_self_settings *settings, pid_t helper,
			    struct pm_error *err)
{
	struct engine *perf = calloc(1, sizeof(*perf));
	int ret;

	if (!perf)
		return pm_error_set(err, -ENOMEM, "out of memory");
	perf->engine.type = &pm_self_engine_perf;
	perf->settings = settings;
	ret = perf_engine_choose_event(perf, err);
	if (ret == 0)
		ret = perf_engine_list_tasks(perf, err);
	getrlimit(RLIMIT_NOFILE, &perf->limit);
	if (ret == 0)
		ret = open_events(perf, err);
	getrlimit(RLIMIT_NOFILE, &perf->raised);
	if (ret < 0) {
		perf_engine_free(&perf->engine);
		return ret;
	}
	*out = &perf->engine;
	return 0;
}

static const struct pm_perf_event *perf_engine_first_event(const struct engine *perf)
{
	size_t len;

	return pm_perf_events(perf->perf, &len);
}

static void perf_engine_event(const struct pm_self_engine *engine,
			      struct pm_file_event *out)
{
	struct engine *perf = perf_engine_of(engine);
	const struct pm_perf_event *event = perf_engine_first_event(perf);
	const struct pm_event_spec *actual = &event->actual;
	bool clock = strcmp(actual->name, "cpu-clock") == 0 ||
		     strcmp(actual->name, "task-clock") == 0;

	snprintf(perf->actual, sizeof(perf->actual), "%s%s%s", actual->name,
		 actual->modifiers[0] ? ":" : "", actual->modifiers);
	*out = (struct pm_file_event){
		.name = actual->name,
		.requested = event->requested.requested,
		.actual = perf->actual,
		.modifiers = actual->modifiers,
		.unit = clock ? "ns" : "events",
		.by_frequency = event->by_frequency,
		.rate = event->rate,
		.filter = actual->filter,
	};
}

static uint32_t perf_engine_stack_bytes(const struct pm_self_engine *engine)
{
	if (perf_engine_of(engine)->settings->call_graph == PMSELF_CALL_GRAPH_NONE)
		return 0;
	return STACK_BYTES;
}

static uint64_t perf_engine_ring_bytes(const struct pm_self_engine *engine)
{
	return (uint64_t)pm_perf_ring_pages(perf_engine_of(engine)->perf) *
	       (uint64_t)sysconf(_SC_PAGESIZE);
}

static int perf_engine_begin(struct pm_self_engine *engine, struct pm_error *err)
{
	struct engine *perf = perf_engine_of(engine);
	int ret = pm_perf_enable(perf->perf);

	if (ret == 0 && perf->settings->tid == 0)
		ret = perf_engine_read_tasks(perf, true);
	if (ret < 0)
		return pm_error_set(err, ret, "sampling could not begin: %s",
				    strerror(-ret));
	return 0;
}

static const int *perf_engine_poll_fds(const struct pm_self_engine *engine, size_t *len)
{
	return pm_perf_poll_fds(perf_engine_of(engine)->perf, len);
}

/* A thread whose FORK was recorded has inherited the events. */
static void perf_engine_forget_late(struct engine *perf, pid_t tid)
{
	for (size_t i = 0; i < perf->late.len; i++)
		if (perf->late.data[i] == tid)
			perf->late.data[i] = 0;
}

static int perf_engine_drain(struct pm_self_engine *engine, bool final,
			     const struct pm_self_take *take, struct pm_error *err)
{
	struct engine *perf = perf_engine_of(engine);
	struct pm_record record;
	int next, ret = 0;

	/* With a single sampled thread, mappings made by other threads are not
	 * recorded. */
	if (perf->settings->tid)
		ret = take->mappings(take->user, true, NULL);
	if (ret > 0)
		ret = 0;

	pm_perf_begin(perf->perf, final);
	while ((next = pm_perf_next(perf->perf, &record, err)) != 0) {
		/* If a ring cannot be read, the others still have to be. */
		if (next == -EBADMSG)
			continue;
		if (next < 0)
			return next;
		if (record.type == PERF_RECORD_FORK)
			perf_engine_forget_late(perf, (pid_t)record.tid);
		if (ret == 0)
			ret = take->record(take->user, &record);
	}
	return ret;
}

static void perf_engine_end(struct pm_self_engine *engine)
{
	pm_perf_disable(perf_engine_of(engine)->perf);
}

static int perf_engine_lost(const struct pm_self_engine *engine, uint64_t *out)
{
	return pm_perf_lost(perf_engine_of(engine)->perf, 0, out);
}

static void perf_engine_report(const struct pm_self_engine *engine,
			       const struct pm_self_tell *tell)
{
	const struct engine *perf = perf_engine_of(engine);
	const struct pm_perf_notes *notes = pm_perf_notes(perf->perf);
	size_t missing = 0;
	char text[128];

	for (size_t i = 0; i < notes->texts.len; i++)
		tell->note(tell->user, notes->texts.data[i]);
	for (size_t i = 0; i < perf->late.len; i++)
		missing += perf->late.data[i] != 0;
	if (missing == 0)
		return;
	snprintf(text, sizeof(text),
		 "%zu threads that began while the profile was starting are not in it",
		 missing);
	tell->note(tell->user, text);
}

const struct pm_self_engine_type pm_self_engine_perf = {
	.name = "perf",
	.sleep_ms = SLEEP_MS,
	.tells_mappings = true,
	.open = perf_engine_open,
	.free = perf_engine_free,
	.event = perf_engine_event,
	.stack_bytes = perf_engine_stack_bytes,
	.ring_bytes = perf_engine_ring_bytes,
	.begin = perf_engine_begin,
	.poll_fds = perf_engine_poll_fds,
	.drain = perf_engine_drain,
	.end = perf_engine_end,
	.lost = perf_engine_lost,
	.tell = perf_engine_report,
};

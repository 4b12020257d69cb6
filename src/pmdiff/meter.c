/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "log.h"
#include "process.h"

enum {
	RUNS_COUNTED = 20, /* needed to compare noisy numbers */
	RUNS_SIMULATED = 2, /* the second run shows whether the numbers vary */
	SIMULATED_PREFIX_LEN = 4,
};

/* ---- finding pmstat ------------------------------------------------------------------ */

static int set_path_if_runnable(char **out, const char *dir, size_t len, const char *name)
{
	char *path;

	if (asprintf(&path, "%.*s/%s", (int)len, dir, name) < 0)
		return -ENOMEM;
	if (access(path, X_OK) == 0)
		*out = path;
	else
		free(path);
	return 0;
}

/* Searches next to pmdiff, where it is installed or where it was built; then in PATH. */
static int find_pmstat(char **out, struct pm_error *err)
{
	PM_AUTO_FREE char *us = realpath("/proc/self/exe", NULL);
	char *end = us ? strrchr(us, '/') : NULL;
	int ret = 0;

	if (end)
		ret = set_path_if_runnable(out, us, (size_t)(end - us), "pmstat");
	if (ret == 0 && end && !*out)
		ret = set_path_if_runnable(out, us, (size_t)(end - us),
					   "../pmstat/pmstat");
	if (ret == 0 && !*out && pm_child_is_runnable("pmstat")) {
		*out = strdup("pmstat");
		if (!*out)
			ret = -ENOMEM;
	}
	if (ret < 0)
		return pm_error_no_memory(err);
	if (!*out)
		return pm_error_set(err, -ENOENT,
				    "pmstat is neither beside pmdiff nor in PATH");
	return 0;
}

/* ---- choosing the engine ------------------------------------------------------------- */

static int run_counter_probe(const struct pmdiff_meter *meter, int log)
{
	const char *const argv[] = { meter->pmstat,   "--json", "-q",       "-o",
				     meter->document, "-e",     "cycles:u", "--",
				     "true",          NULL };
	struct pmdiff_process process = {
		.argv = argv, .in = -1, .out = log, .err = log
	};
	pid_t pid;
	int ret = pmdiff_process_start(&process, &pid);

	if (ret < 0)
		return ret;
	return pmdiff_process_wait(pid);
}

/* Whether the processor has counters that this process may use. */
static bool has_counters(const struct pmdiff_meter *meter)
{
	PM_AUTO_CLOSE int log =
		open(meter->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	PM_AUTO_CLOSE int document = -1;
	struct pm_stat stat;
	bool has;

	if (log < 0 || run_counter_probe(meter, log) != 0)
		return false;
	document = open(meter->document, O_RDONLY | O_CLOEXEC);
	if (document < 0 || pm_stat_read(&stat, document, meter->document, NULL) < 0)
		return false;
	has = stat.runs.len > 0 && stat.events.len > 0 &&
	      pm_stat_has_value(&stat.runs.data[0].values[0]);
	pm_stat_release(&stat);
	return has;
}

static bool is_event_simulated(const char *event)
{
	return strncmp(event, "sim.", SIMULATED_PREFIX_LEN) == 0;
}

/* The events that the user requested determine this; if there are none, the capabilities
 * of this machine. */
static bool wants_simulation(struct pmdiff_meter *meter)
{
	const struct pmdiff_texts *events = &meter->measured->events;

	for (size_t i = 0; i < events->list.len; i++)
		if (is_event_simulated(events->list.data[i]))
			return true;
	if (events->list.len > 0)
		return false;
	if (meter->counters < 0)
		meter->counters = has_counters(meter);
	return meter->counters == 0;
}

void pmdiff_meter_choose(struct pmdiff_meter *meter,
			 const struct pmdiff_measured *measured, const char *case_name)
{
	const char *wish = pm_text_or(measured->engine, "auto");

	meter->measured = measured;
	meter->case_name = case_name;
	meter->engine = NULL;
	meter->all_functions = false;
	free(PM_TAKE_PTR(meter->no_functions));
	if (strcmp(wish, "auto") == 0)
		meter->engine = wants_simulation(meter) ? "callgrind" : NULL;
	else if (strcmp(wish, "count") != 0)
		meter->engine = wish;
	meter->simulated = meter->engine && strcmp(meter->engine, "callgrind") == 0;
	if (measured->runs)
		meter->runs = measured->runs;
	else
		meter->runs = meter->simulated ? RUNS_SIMULATED : RUNS_COUNTED;
	if (measured->warmups != UINT64_MAX)
		meter->warmups = measured->warmups;
	else
		meter->warmups = !meter->simulated;
}

/* A simulation sees every instruction in any case. */
void pmdiff_meter_explain(struct pmdiff_meter *meter)
{
	meter->all_functions = meter->simulated && !meter->no_functions &&
			       pmdiff_names_no_functions(meter->measured);
}

/* ---- the meter ----------------------------------------------------------------------- */

void pmdiff_meter_release(struct pmdiff_meter *meter)
{
	free(meter->pmstat);
	free(meter->document);
	free(meter->log);
	free(meter->scratch);
	free(meter->no_functions);
	*meter = (struct pmdiff_meter){ 0 };
}

static int name_meter_files(struct pmdiff_meter *meter, struct pm_error *err)
{
	const char *dir = meter->folder->path;

	if (asprintf(&meter->document, "%s/pmstat.json", dir) < 0)
		meter->document = NULL;
	if (asprintf(&meter->log, "%s/log", dir) < 0)
		meter->log = NULL;
	if (asprintf(&meter->scratch, "%s/tmp", dir) < 0)
		meter->scratch = NULL;
	if (!meter->document || !meter->log || !meter->scratch)
		return pm_error_no_memory(err);
	if (mkdir(meter->scratch, 0700) < 0) {
		pm_error_set(err, -errno, "%s", strerror(errno));
		pm_error_where(err, meter->scratch, -1);
		return -errno;
	}
	return 0;
}

int pmdiff_meter_init(struct pmdiff_meter *out, const struct pmdiff_options *options,
		      const struct pmdiff_folder *folder, const char *top,
		      struct pm_error *err)
{
	struct pmdiff_meter meter = {
		.options = options, .folder = folder, .top = top, .counters = -1
	};
	int ret;

	pmdiff_progress_init(&meter.progress, options);
	ret = find_pmstat(&meter.pmstat, err);
	if (ret == 0)
		ret = name_meter_files(&meter, err);
	if (ret == 0 && getrandom(&meter.seed, sizeof(meter.seed), 0) < 0)
		ret = pm_error_set(err, -errno, "chance: %s", strerror(errno));
	if (ret < 0) {
		pmdiff_meter_release(&meter);
		return ret;
	}
	meter.seed &= UINT32_MAX; /* short enough to be read aloud */
	meter.random = meter.seed;
	pmdiff_meter_choose(&meter, &options->measured, NULL);
	*out = meter;
	return 0;
}

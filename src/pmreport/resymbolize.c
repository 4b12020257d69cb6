/* SPDX-License-Identifier: MIT */
#include "resymbolize-internal.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PROGRESS_AFTER_NS UINT64_C(1000000000)
#define PROGRESS_EVERY_NS UINT64_C(200000000)
enum {
	/* The limit for all files together, as a multiple of that for one file. */
	DEBUGINFOD_ALL_TIMES = 5,
	/* A live report spends at most 1/N of its time on names. */
	LIVE_SHARE = 5,
};

/* One call of the symbolizer. */
struct work {
	struct pm_resymbolize *resymbolize;
	const struct pm_profile_nameless *nameless;
	pm_profile_name_fn name;
	void *to;
	PM_VEC(struct pm_symbol_job) jobs;
	PM_VEC(size_t) rows; /* by job: row of nameless */
	PM_VEC(size_t) modules; /* by job: row of resymbolize->modules */
	size_t done, all; /* addresses, for the progress display */
	uint64_t begin_ns, shown_ns;
	struct pm_str texts; /* strings of one chain of functions, made printable */
};

static uint64_t resymbolize_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool pm_resymbolize_explicit(const struct pm_resymbolize *resymbolize)
{
	return resymbolize->symfs || resymbolize->debug_dir ||
	       resymbolize->options.debuginfod_seconds > 0;
}

/* ---- modules ------------------------------------------------------------------------------ */

/* Parses a build-id, and returns its length in bytes or 0. It must have an even number of
 * digits. Recorders truncate build-ids that are longer than PM_MODULE_BUILD_ID_MAX, so
 * these cannot be compared. */
static uint8_t parse_build_id_text(const char *text, uint8_t out[PM_MODULE_BUILD_ID_MAX])
{
	size_t len = text ? strlen(text) : 0;

	if (len == 0 || len % 2 != 0 || len / 2 > PM_MODULE_BUILD_ID_MAX ||
	    strspn(text, "0123456789abcdef") != len)
		return 0;
	for (size_t i = 0; i < len / 2; i++) {
		char byte[3] = { text[2 * i], text[2 * i + 1], '\0' };

		out[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return (uint8_t)(len / 2);
}

static bool equal_or_both_null(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static uint64_t hash_module_key(const struct pm_profile_module *module)
{
	uint64_t hash = pm_hash_bytes(module->path, strlen(module->path));

	if (!module->build_id)
		return hash;
	return pm_hash_mix(hash,
			   pm_hash_bytes(module->build_id, strlen(module->build_id)));
}

/* pm_index_equal_fn */
static bool module_key_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_resymbolize *resymbolize = table;
	const struct pm_resymbolize_module *have = &resymbolize->modules.data[id];
	const struct pm_profile_module *module = key;

	return equal_or_both_null(have->path, module->path) &&
	       equal_or_both_null(have->build_id, module->build_id);
}

const struct pm_resymbolize_module *pm_resymbolize_find(
	const struct pm_resymbolize *resymbolize, const struct pm_profile_module *module)
{
	uint32_t id = pm_index_find(&resymbolize->by_name, hash_module_key(module),
				    module_key_equal, resymbolize, module);

	if (id == PM_INDEX_NONE)
		return NULL;
	return &resymbolize->modules.data[id];
}

struct pm_resymbolize_module *pm_resymbolize_module(
	struct pm_resymbolize *resymbolize, const struct pm_profile_module *module)
{
	struct pm_resymbolize_module row = { 0 };
	uint64_t hash = hash_module_key(module);
	uint32_t id = pm_index_find(&resymbolize->by_name, hash, module_key_equal,
				    resymbolize, module);

	if (id != PM_INDEX_NONE)
		return &resymbolize->modules.data[id];
	row.path = strdup(module->path);
	if (module->build_id)
		row.build_id = strdup(module->build_id);
	else
		row.build_id = NULL;
	row.id_len = parse_build_id_text(module->build_id, row.id);
	if (!row.path || (module->build_id && !row.build_id) ||
	    pm_vec_push(&resymbolize->modules, row) < 0) {
		free(row.path);
		free(row.build_id);
		return NULL;
	}
	id = (uint32_t)resymbolize->modules.len - 1;
	if (pm_index_add(&resymbolize->by_name, hash, id) < 0)
		return NULL;
	return &resymbolize->modules.data[id];
}

/* ---- the calls of struct pm_symbol_crew_calls ------------------------------------------------ */

static struct pm_resymbolize_module *job_module(const struct work *work, size_t job)
{
	return &work->resymbolize->modules.data[work->modules.data[job]];
}

static void on_job_open(void *user, size_t job, struct pm_symbol_input *out)
{
	const struct work *work = user;

	pm_resymbolize_open(work->resymbolize, job_module(work, job), out);
}

/* Appends an untrusted string, made printable, and returns its offset. */
static size_t append_printable_text(struct pm_str *to, const char *text)
{
	size_t at = to->len;

	pm_str_printable(to, text, strlen(text));
	pm_str_append(to, "", 1);
	return at;
}

static int on_job_symbol(void *user, size_t job, size_t index,
			 const struct pm_symbol_function *functions, size_t len)
{
	struct work *work = user;
	struct pm_file_function texts[PM_SYMBOL_CHAIN_MAX];
	size_t names[PM_SYMBOL_CHAIN_MAX], files[PM_SYMBOL_CHAIN_MAX];
	bool known = false;

	pm_str_clear(&work->texts);
	for (size_t i = 0; i < len; i++) {
		if (functions[i].name)
			names[i] = append_printable_text(&work->texts, functions[i].name);
		if (functions[i].file)
			files[i] = append_printable_text(&work->texts, functions[i].file);
	}
	if (work->texts.failed)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		texts[i] = (struct pm_file_function){ .line = functions[i].line,
						      .start = functions[i].start };
		if (functions[i].name)
			texts[i].name = work->texts.data + names[i];
		if (functions[i].file)
			texts[i].file = work->texts.data + files[i];
		known = known || functions[i].name || functions[i].start > 0;
		if (functions[i].file)
			job_module(work, job)->lines = true;
	}
	if (known)
		return work->name(work->to, work->rows.data[job], index, texts, len);
	return 0;
}

static int on_job_done(void *user, size_t job, const char *what, const char *why)
{
	struct work *work = user;
	struct pm_resymbolize_module *module = job_module(work, job);

	work->done += work->jobs.data[job].addresses_len;
	if (why)
		snprintf(module->why, sizeof(module->why), "%s were left out: %s", what,
			 why);
	return 0;
}

/* Whether the symbolizer will be called again and may leave work for then. */
static bool is_resymbolize_live(const struct pm_resymbolize *resymbolize)
{
	return resymbolize->options.live && !resymbolize->last;
}

/* Whether a signal to stop is pending. While a report is live, these signals are blocked
 * and stay pending until the report checks them. */
static bool is_asked_to_end(void)
{
	sigset_t set;

	return sigpending(&set) == 0 &&
	       (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1);
}

static int on_crew_tick(void *user)
{
	struct work *work = user;
	uint64_t now = resymbolize_clock_ns();

	if (is_resymbolize_live(work->resymbolize) && is_asked_to_end())
		return -EINTR;
	if (work->resymbolize->options.quiet || is_resymbolize_live(work->resymbolize) ||
	    !isatty(STDERR_FILENO) || now - work->begin_ns < PROGRESS_AFTER_NS ||
	    now - work->shown_ns < PROGRESS_EVERY_NS)
		return 0;
	work->shown_ns = now;
	fprintf(stderr, "\r\033[Kpmreport: names: %zu of %zu addresses", work->done,
		work->all);
	return 0;
}

static int resymbolize_run_jobs(struct work *work)
{
	const struct pm_symbol_crew_calls calls = {
		.user = work,
		.open = on_job_open,
		.symbol = on_job_symbol,
		.done = on_job_done,
		.tick = on_crew_tick,
		.wake_fd = -1,
		.process_name = "pmreport-names",
	};
	struct pm_symbol_crew_cost cost = { 0 };
	int ret;

	work->done = work->all = 0;
	for (size_t i = 0; i < work->jobs.len; i++)
		work->all += work->jobs.data[i].addresses_len;
	fflush(NULL); /* helpers must not write our buffered output, too */
	ret = pm_symbol_crew_run(work->jobs.data, work->jobs.len, &calls, &cost);
	if (work->shown_ns > 0)
		fputs("\r\033[K", stderr);
	pm_vec_clear(&work->jobs);
	pm_vec_clear(&work->rows);
	pm_vec_clear(&work->modules);
	return ret;
}

/* ---- the kernel ----------------------------------------------------------------------------- */

/* Names the kernel's functions from kallsyms. Its names are only valid for the same boot.
 * Modules may have been loaded or unloaded since the recording, so their names are not
 * used. */
static int name_kernel_functions(struct work *work, const struct pm_profile_info *info,
				 size_t row, struct pm_resymbolize_module *module)
{
	struct pm_resymbolize *resymbolize = work->resymbolize;
	const struct pm_profile_nameless *nameless = &work->nameless[row];
	struct pm_kernel_identity running;
	struct pm_error err = { 0 };
	int ret = 0;

	pm_kernel_identity_read(&running, NULL, NULL);
	if (module->id_len == 0 || module->id_len != running.build_id_len ||
	    memcmp(module->id, running.build_id, module->id_len) != 0 || !info->boot_id ||
	    strcmp(info->boot_id, running.boot_id) != 0) {
		module->state = PM_RESYMBOLIZE_OTHER_KERNEL;
		return 0;
	}
	module->state = PM_RESYMBOLIZE_FOUND;
	if (!resymbolize->kallsyms_tried &&
	    pm_kallsyms_load(&resymbolize->kallsyms, NULL, &err) < 0)
		snprintf(module->why, sizeof(module->why), "%s", err.text);
	resymbolize->kallsyms_tried = true;
	for (size_t i = 0;
	     resymbolize->kallsyms && i < nameless->addresses_len && ret == 0; i++) {
		const char *of;
		struct pm_file_function function = {
			.name = pm_kallsyms_find(resymbolize->kallsyms,
						 nameless->addresses[i], &of)
		};

		if (function.name && of[0] == '\0')
			ret = work->name(work->to, row, i, &function, 1);
	}
	return ret;
}

/* ---- one call ------------------------------------------------------------------------------- */

static int resymbolize_add_job(struct work *work, size_t row, size_t module)
{
	const struct pm_profile_nameless *nameless = &work->nameless[row];
	struct pm_symbol_job job = { .addresses = nameless->addresses,
				     .addresses_len = nameless->addresses_len };

	if (pm_vec_push(&work->jobs, job) < 0 || pm_vec_push(&work->rows, row) < 0 ||
	    pm_vec_push(&work->modules, module) < 0)
		return -ENOMEM;
	return 0;
}

static bool is_file_module(const struct pm_profile_module *module)
{
	return strcmp(module->kind, "file") == 0;
}

/* Plans names from local files. */
static int plan_local(struct work *work, const struct pm_profile_info *info, size_t len)
{
	struct pm_resymbolize *resymbolize = work->resymbolize;
	int ret = 0;

	for (size_t i = 0; i < len && ret == 0; i++) {
		const struct pm_profile_nameless *nameless = &work->nameless[i];
		struct pm_resymbolize_module *module;
		struct pm_symbol_input input;

		if (nameless->named && !pm_resymbolize_explicit(resymbolize))
			continue;
		module = pm_resymbolize_module(resymbolize, nameless->module);
		if (!module)
			return -ENOMEM;
		if (nameless->module->kernel) {
			ret = name_kernel_functions(work, info, i, module);
		} else if (is_file_module(nameless->module)) {
			module->state = pm_resymbolize_open(resymbolize, module, &input);
			pm_cleanup_close(&input.fd);
			pm_cleanup_close(&input.debug);
			if (module->state == PM_RESYMBOLIZE_FOUND)
				ret = resymbolize_add_job(
					work, i,
					(size_t)(module - resymbolize->modules.data));
		}
	}
	return ret;
}

/* Fetches a file from a server. Returns true if it was found and is the right one. */
static bool fetch_module_file(struct pm_resymbolize *resymbolize,
			      struct pm_resymbolize_module *module, const char *name,
			      enum pm_debuginfod_kind kind, struct pm_error *err)
{
	struct pm_symbol_input input;
	char *path = pm_debuginfod_find(&resymbolize->debuginfod, module->build_id, kind,
					name, err);
	enum pm_resymbolize_state state;
	bool usable;

	if (!path)
		return false;
	module->fetched = path;
	module->fetched_executable = kind == PM_DEBUGINFOD_EXECUTABLE;
	state = pm_resymbolize_open(resymbolize, module, &input);
	/* Local files were read before, so the fetched file must add something. */
	if (module->fetched_executable)

		usable = input.fd >= 0;
	else
		usable = input.fd >= 0 &&
			 (input.debug >= 0 || module->state != PM_RESYMBOLIZE_FOUND);
	pm_cleanup_close(&input.fd);
	pm_cleanup_close(&input.debug);
	if (usable) {
		module->state = state;
		return true;
	}
	pm_error_set(err, -EBADMSG, "what a server sent is not that file");
	module->fetched = NULL;
	free(path);
	return false;
}

/* Plans names from servers for modules that have no names or no lines, heaviest first. */
static int plan_remote(struct work *work, size_t len)
{
	struct pm_resymbolize *resymbolize = work->resymbolize;
	int ret = 0;

	for (size_t i = 0; i < len && ret == 0; i++) {
		const struct pm_profile_nameless *nameless = &work->nameless[i];
		struct pm_resymbolize_module *module =
			pm_resymbolize_module(resymbolize, nameless->module);
		struct pm_error err = { 0 };
		bool found;

		if (!module)
			return -ENOMEM;
		if (!is_file_module(nameless->module) || module->id_len == 0 ||
		    module->lines || nameless->lines || module->asked)
			continue;
		module->asked = true;
		found = fetch_module_file(resymbolize, module, nameless->module->name,
					  PM_DEBUGINFOD_DEBUG_FILE, &err);
		if (!found && err.code == -ENOENT &&
		    module->state != PM_RESYMBOLIZE_FOUND)
			found = fetch_module_file(resymbolize, module,
						  nameless->module->name,
						  PM_DEBUGINFOD_EXECUTABLE, &err);
		if (found)
			ret = resymbolize_add_job(
				work, i, (size_t)(module - resymbolize->modules.data));
		else
			snprintf(module->why, sizeof(module->why), "debuginfod: %s",
				 err.text);
	}
	return ret;
}

static int resymbolize_nameless(void *context, const struct pm_profile_info *info,
				const struct pm_profile_nameless *nameless, size_t len,
				pm_profile_name_fn name, void *to)
{
	struct pm_resymbolize *resymbolize = context;
	struct work work = { .resymbolize = resymbolize,
			     .nameless = nameless,
			     .name = name,
			     .to = to,
			     .begin_ns = resymbolize_clock_ns() };
	int ret;

	if (is_resymbolize_live(resymbolize) && work.begin_ns < resymbolize->again_ns)
		return 1;
	ret = plan_local(&work, info, len);
	if (ret == 0)
		ret = resymbolize_run_jobs(&work);
	/* Servers are slow, and a live report must not stall. */
	if (ret == 0 && resymbolize->options.debuginfod_seconds > 0 &&
	    !is_resymbolize_live(resymbolize)) {
		ret = plan_remote(&work, len);
		if (ret == 0)
			ret = resymbolize_run_jobs(&work);
	}
	/* An interruption by the user is not an error; the last call looks up all
	 * names. */
	if (ret == -EINTR)
		ret = 1;
	pm_vec_release(&work.jobs);
	pm_vec_release(&work.rows);
	pm_vec_release(&work.modules);
	pm_str_release(&work.texts);
	if (resymbolize->options.live)
		resymbolize->again_ns =
			resymbolize_clock_ns() +
			LIVE_SHARE * (resymbolize_clock_ns() - work.begin_ns);
	return ret;
}

/* ---- the public functions ------------------------------------------------------------------- */

static int find_option_dir(const char *path, const char *option, char **out,
			   struct pm_error *err)
{
	struct stat st;
	char *whole;

	if (!path)
		return 0;
	whole = realpath(path, NULL);
	if (!whole || stat(whole, &st) < 0) {
		int ret = -errno;

		free(whole);
		return pm_error_set(err, ret, "%s '%s': %s", option, path,
				    strerror(-ret));
	}
	if (!S_ISDIR(st.st_mode)) {
		free(whole);
		return pm_error_set(err, -ENOTDIR, "%s '%s' is no folder", option, path);
	}
	/* The root becomes "", so that absolute paths can be appended. */
	if (strcmp(whole, "/") == 0)
		whole[0] = '\0';
	*out = whole;
	return 0;
}

int pm_resymbolize_new(struct pm_resymbolize **out,
		       const struct pm_resymbolize_options *options, struct pm_error *err)
{
	struct pm_resymbolize *resymbolize = calloc(1, sizeof(*resymbolize));
	int ret;

	if (!resymbolize)
		return pm_error_set(err, -ENOMEM, "out of memory");
	resymbolize->options = *options;
	ret = find_option_dir(options->symfs, "--symfs", &resymbolize->symfs, err);
	if (ret == 0)
		ret = find_option_dir(options->debug_dir, "--debug-dir",
				      &resymbolize->debug_dir, err);
	if (ret == 0 && resymbolize->symfs &&
	    asprintf(&resymbolize->symfs_debug, "%s/usr/lib/debug", resymbolize->symfs) <
		    0) {
		resymbolize->symfs_debug = NULL;
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	}
	if (ret == 0 && options->debuginfod_seconds > 0)
		ret = pm_debuginfod_check(err);
	if (ret < 0) {
		pm_resymbolize_free(resymbolize);
		return ret;
	}
	resymbolize->debuginfod = (struct pm_debuginfod){
		.file_seconds = options->debuginfod_seconds,
		.ms_left = options->debuginfod_seconds * UINT64_C(1000) *
			   DEBUGINFOD_ALL_TIMES,
		.progress = !options->quiet && !options->live && isatty(STDERR_FILENO),
	};
	resymbolize->symbolizer = (struct pm_profile_symbolizer){
		.context = resymbolize,
		.lines = pm_resymbolize_explicit(resymbolize),
		.symbolize = resymbolize_nameless,
	};
	*out = resymbolize;
	return 0;
}

void pm_resymbolize_free(struct pm_resymbolize *resymbolize)
{
	if (!resymbolize)
		return;
	for (size_t i = 0; i < resymbolize->modules.len; i++) {
		free(resymbolize->modules.data[i].path);
		free(resymbolize->modules.data[i].build_id);
		free(resymbolize->modules.data[i].fetched);
	}
	pm_vec_release(&resymbolize->modules);
	pm_index_release(&resymbolize->by_name);
	pm_kallsyms_free(resymbolize->kallsyms);
	free(resymbolize->symfs);
	free(resymbolize->symfs_debug);
	free(resymbolize->debug_dir);
	free(resymbolize);
}

const struct pm_profile_symbolizer *pm_resymbolize_symbolizer(
	const struct pm_resymbolize *resymbolize)
{
	if (resymbolize->options.off)
		return NULL;
	return &resymbolize->symbolizer;
}

void pm_resymbolize_last(struct pm_resymbolize *resymbolize)
{
	resymbolize->last = true;
	resymbolize->debuginfod.progress =
		!resymbolize->options.quiet && isatty(STDERR_FILENO);
}

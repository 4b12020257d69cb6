/* SPDX-License-Identifier: MIT */
/*
 * The public functions of the profile. Only one runs at a time; any thread may start and
 * stop it.
 */
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>

#include "core.h"
#include "marks.h"
#include "options.h"
#include "print.h"
#include "scope.h"

#define PUBLIC __attribute__((visibility("default")))

static struct {
	/* The process that started the profile, or 0. It is read without the lock, see
	 * profile_is_of_parent(). */
	_Atomic pid_t pid;
	/* Protects the members below; held while starting and stopping. */
	pthread_mutex_t lock;
	bool forks_watched;
	/* The last start failed and the error was printed; nothing has been stopped
	 * since. */
	bool refused;
	const struct pm_self_core *core;
	struct pm_self_helper *helper; /* NULL: no profile is running */
	struct pm_self_settings settings;
} profile = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * In a forked child no profile is running: the helper, its files and the kernel's buffers
 * are missing. The memory that belongs to them is not touched, because it may be in any
 * state.
 */
static void profile_in_child(void)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	profile.lock = fresh;
	profile.helper = NULL;
	profile.settings = (struct pm_self_settings){ 0 };
	profile.refused = false;
	profile.pid = 0;
}

/* Whether this is a child of _Fork(3) or clone(2), for which libc runs no fork
 * handlers. */
static bool profile_is_of_parent(void)
{
	return profile.pid != 0 && profile.pid != getpid();
}

/* Whether the error was printed before: a wrong variable is an error on each start, but
 * is reported once. Called under the lock. */
static bool error_was_printed(const struct pm_error *err)
{
	static char told[sizeof(err->text)];

	if (strcmp(told, err->text) == 0)
		return true;
	memcpy(told, err->text, sizeof(told));
	return false;
}

/* ---- start and stop, under the lock ------------------------------------------------------- */

static int start_profile(const struct pmself_options *options, struct pm_error *err)
{
	int ret;

	if (profile.helper)
		return pm_error_set(err, -EALREADY, "a profile is running already");
	ret = pm_self_settings_init(&profile.settings, options, err);
	/* An error with code 0 is not printed. */
	if (ret < 0 && error_was_printed(err))
		err->code = 0;
	if (ret == 0 && !profile.core && !(profile.core = pm_self_core_load(err)))
		ret = -ELIBACC;
	if (ret == 0 && !profile.forks_watched) {
		ret = -pthread_atfork(NULL, NULL, profile_in_child);
		profile.forks_watched = ret == 0;
		if (ret < 0)
			pm_error_set(err, ret, "out of memory");
	}
	if (ret == 0)
		ret = profile.core->start(&profile.helper, &profile.settings, err);
	profile.refused = ret < 0;
	if (ret == 0)
		profile.pid = getpid();
	else
		pm_self_settings_release(&profile.settings);
	return ret;
}

static int none_runs(struct pm_error *err)
{
	return pm_error_set(err, -ESRCH, "no profile is running");
}

static int stop_profile(struct pm_error *err)
{
	PM_AUTO_FREE char *table = NULL;
	int ret, scopes;

	if (!profile.helper) {
		/* The failed start has printed the reason; @err stays empty. */
		bool known = profile.refused;

		profile.refused = false;
		if (known)
			return -ESRCH;
		return none_runs(err);
	}
	ret = profile.core->stop(profile.helper, &table, err);
	profile.helper = NULL;
	if (table)
		pm_self_print(table);
	scopes = pm_self_scopes_show(profile.settings.table, ret < 0 ? NULL : err);
	pm_self_settings_release(&profile.settings);
	if (ret < 0)
		return ret;
	return scopes;
}

/* The actions of public functions under the lock. */
enum call {
	CALL_START,
	CALL_STOP,
	CALL_STOP_QUIETLY, /* without printing an error */
};

static int begin_or_end_locked(enum call call, const struct pmself_options *options,
			       struct pm_error *err)
{
	int ret;

	if (profile_is_of_parent()) {
		/* The child may share its memory with the parent (vfork(2)), so stopping
		 * does not change it. */
		if (call != CALL_START)
			return none_runs(err);
		profile_in_child();
	}
	pthread_mutex_lock(&profile.lock);
	if (call == CALL_START)
		ret = start_profile(options, err);
	else
		ret = stop_profile(err);
	pthread_mutex_unlock(&profile.lock);
	return ret;
}

/* Neither a thread cancellation nor the caller's errno may interfere. */
static int call_locked(enum call call, const struct pmself_options *options)
{
	struct pm_error err = { 0 };
	int saved = errno, cancel, ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ret = begin_or_end_locked(call, options, &err);
	if (ret < 0 && call != CALL_STOP_QUIETLY && err.code != 0)
		pm_self_print_error(&err);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return ret;
}

PUBLIC int pmself_start(const struct pmself_options *options)
{
	if (!pm_self_is_off() && pm_self_marks_are_wanted())
		return pm_self_mark(true);
	if (pm_self_is_off())
		return 0;
	return call_locked(CALL_START, options);
}

PUBLIC int pmself_stop(void)
{
	if (pm_self_mark_ends_at_once())
		return 0;
	if (!pm_self_is_off() && pm_self_marks_are_wanted())
		return pm_self_mark(false);
	if (pm_self_is_off())
		return 0;
	return call_locked(CALL_STOP, NULL);
}

PUBLIC int perf_start(void)
{
	return pmself_start(NULL);
}

PUBLIC int perf_stop(void)
{
	return pmself_stop();
}

/* ---- the whole program -------------------------------------------------------------------- */

__attribute__((constructor)) static void profile_on_load(void)
{
	struct pm_error err = { 0 };

	if (pm_self_check(&err) < 0)
		pm_self_print_error(&err);
	if (!pm_self_is_automatic() || pm_self_marks_are_wanted())
		return;
	pm_self_tell_children();
	pmself_start(NULL);
}

static void show_scopes(void)
{
	struct pm_self_settings settings;
	struct pm_error err = { 0 };
	bool told;
	int ret;

	if (!pm_self_scopes_used())
		return;
	ret = pm_self_settings_init(&settings, NULL, &err);
	pthread_mutex_lock(&profile.lock);
	told = ret < 0 && error_was_printed(&err);
	pthread_mutex_unlock(&profile.lock);
	if (ret == 0)
		ret = pm_self_scopes_show(settings.table, &err);
	if (ret < 0 && !told)
		pm_self_print_error(&err);
	pm_self_settings_release(&settings);
}

/* Prints the table of a profile that the program has not stopped, and of scopes that have
 * ended since the last table. */
__attribute__((destructor)) static void on_exit_of_program(void)
{
	if (pm_self_is_off())
		return;
	call_locked(CALL_STOP_QUIETLY, NULL);
	show_scopes();
}

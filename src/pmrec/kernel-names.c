/* SPDX-License-Identifier: MIT */
#include "kernel-names.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "early-names.h"
#include "pm/proc.h"
#include "realtime.h"

struct pm_rec_kernel_names {
	pthread_t thread;
	bool running;
	pid_t tid; /* set by the thread; 0: not yet */
	/* The thread's results. */
	struct pm_kallsyms *kallsyms;
	struct pm_error err;
	int result;
	uint64_t modules; /* fingerprint of the loaded modules before the read */
};

/* Reads the table. Prefers a copy that an earlier recording of this boot has saved, which
 * is usually as good. */
static void read_table(struct pm_rec_kernel_names *names)
{
	struct pm_kernel_identity kernel;
	struct pm_kallsyms_keep keep = { .boot_id = kernel.boot_id };

	pm_kernel_identity_read(&kernel, NULL, NULL);
	names->modules = keep.modules = pm_kernel_modules_fingerprint();
	names->result = pm_kallsyms_load_kept(&names->kallsyms, &keep, &names->err);
}

static void read_table_anew(struct pm_rec_kernel_names *names)
{
	names->modules = pm_kernel_modules_fingerprint();
	names->result = pm_kallsyms_load(&names->kallsyms, NULL, &names->err);
}

static void *read_kernel_names_in_thread(void *user)
{
	struct pm_rec_kernel_names *names = user;

	__atomic_store_n(&names->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	read_table(names);
	return NULL;
}

/* Starts the thread with all signals blocked: the first thread reads them from a
 * descriptor. SCHED_RESET_ON_FORK keeps the new thread from getting real-time priority
 * (realtime.c). */
static bool start_kernel_names_thread(struct pm_rec_kernel_names *names)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
		return false;
	ret = pthread_create(&names->thread, NULL, read_kernel_names_in_thread, names);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret == 0;
}

static void join_thread(struct pm_rec_kernel_names *names)
{
	if (names->running)
		pthread_join(names->thread, NULL);
	names->running = false;
}

void pm_rec_kernel_names_begin(struct pm_rec_session *session)
{
	struct pm_rec_kernel_names *names;

	if (session->kernel_names || !session->options->symbols ||
	    session->modules.kernel_file_id == PM_FILE_NONE)
		return;
	names = calloc(1, sizeof(*names));
	if (!names)
		return;
	names->running = start_kernel_names_thread(names);
	if (names->running)
		session->kernel_names = names;
	else
		free(names);
}

void pm_rec_kernel_names_hurry(struct pm_rec_session *session)
{
	struct pm_rec_kernel_names *names = session->kernel_names;
	pid_t tid = names ? __atomic_load_n(&names->tid, __ATOMIC_RELAXED) : 0;
	int nice;

	if (!names || !names->running)
		return;
	if (tid > 0 && pm_rec_realtime_hurry_nice(session, &nice))
		setpriority(PRIO_PROCESS, (id_t)tid, nice);
	if (!pm_rec_early_names_may_fork())
		join_thread(names);
}

static bool table_holds_for(const struct pm_rec_kernel_names *names,
			    const uint64_t *addresses, size_t addresses_len)
{
	for (size_t i = 0; i < addresses_len; i++)
		if (!pm_kallsyms_is_lasting(names->kallsyms, addresses[i]))
			return false;
	return pm_kernel_modules_fingerprint() == names->modules;
}

int pm_rec_kernel_names_get(struct pm_rec_session *session, const uint64_t *addresses,
			    size_t addresses_len, const struct pm_kallsyms **out,
			    struct pm_error *err)
{
	struct pm_rec_kernel_names *names = session->kernel_names;

	if (names) {
		join_thread(names);
	} else {
		names = session->kernel_names = calloc(1, sizeof(*names));
		if (!names)
			return pm_error_set(err, -ENOMEM, "out of memory");
	}
	if (!names->kallsyms && names->result == 0)
		read_table(names);
	if (names->kallsyms && !table_holds_for(names, addresses, addresses_len)) {
		pm_kallsyms_free(PM_TAKE_PTR(names->kallsyms));
		read_table_anew(names);
	}
	*out = names->kallsyms;
	if (names->result < 0)
		*err = names->err;
	return names->result;
}

void pm_rec_kernel_names_free(struct pm_rec_kernel_names *names)
{
	if (!names)
		return;
	join_thread(names);
	pm_kallsyms_free(names->kallsyms);
	free(names);
}

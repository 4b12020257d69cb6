/* SPDX-License-Identifier: MIT */
#include "guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"

static void *guard_main(void *user)
{
	struct pm_self_guard *guard = user;
	bool alone;

	pthread_setname_np(pthread_self(), "pmself-guard");
	pthread_mutex_lock(&guard->lock);
	guard->tid = gettid();
	pthread_cond_broadcast(&guard->changed);
	while (!guard->alone && !guard->dismissed)
		pthread_cond_wait(&guard->changed, &guard->lock);
	alone = guard->alone && !guard->dismissed;
	pthread_mutex_unlock(&guard->lock);
	if (!alone)
		return NULL;
	/* A pending signal is delivered here and ends the program, as it should. */
	pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
	exit(0);
}

int pm_self_guard_start(struct pm_self_guard *guard, const sigset_t *mask)
{
	int ret;

	*guard = (struct pm_self_guard){ .mask = *mask };
	pthread_mutex_init(&guard->lock, NULL);
	pthread_cond_init(&guard->changed, NULL);
	ret = pthread_create(&guard->thread, NULL, guard_main, guard);
	if (ret != 0) {
		pthread_cond_destroy(&guard->changed);
		pthread_mutex_destroy(&guard->lock);
		return -ret;
	}
	pthread_mutex_lock(&guard->lock);
	while (guard->tid == 0)
		pthread_cond_wait(&guard->changed, &guard->lock);
	pthread_mutex_unlock(&guard->lock);
	return 0;
}

static void guard_set_flag(struct pm_self_guard *guard, bool *what)
{
	pthread_mutex_lock(&guard->lock);
	*what = true;
	pthread_cond_broadcast(&guard->changed);
	pthread_mutex_unlock(&guard->lock);
}

void pm_self_guard_end_program(struct pm_self_guard *guard)
{
	guard_set_flag(guard, &guard->alone);
}

void pm_self_guard_stop(struct pm_self_guard *guard)
{
	if (pthread_equal(guard->thread, pthread_self())) {
		pthread_detach(guard->thread);
	} else {
		guard_set_flag(guard, &guard->dismissed);
		pthread_join(guard->thread, NULL);
	}
	pthread_cond_destroy(&guard->changed);
	pthread_mutex_destroy(&guard->lock);
}

/* ---- remaining threads -------------------------------------------------------------------- */

/* The thread ids of the helper and the guard. Only one profile runs at a time. */
static _Atomic pid_t own_threads[2];

void pm_self_set_own_thread(enum pm_self_own_thread which, pid_t tid)
{
	own_threads[which] = tid;
}

bool pm_self_is_own_thread(pid_t tid)
{
	return tid == own_threads[0] || tid == own_threads[1];
}

/* proc_pid_stat(5): the state follows the name, which may contain any characters. */
bool pm_self_first_thread_ended(void)
{
	char path[64], text[256];
	int fd PM_AUTO_CLOSE = -1;
	const char *state;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		len = -1;
	else
		len = read(fd, text, sizeof(text) - 1);
	if (len <= 0)
		return false;
	text[len] = '\0';
	state = strrchr(text, ')');
	return state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
}

bool pm_self_is_left_alone(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	bool others = !dir;

	while (dir && !others && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		others = tid > 0 && tid != getpid() && !pm_self_is_own_thread(tid);
	}
	if (dir)
		closedir(dir);
	return !others;
}

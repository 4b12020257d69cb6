/* SPDX-License-Identifier: MIT */
/* The parent's side of helpers that open a module before the request. */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "worker.h"

struct pm_symbol_early {
	struct pm_symbol_process process; /* pid 0: the request was sent, or the process
	                                   * is gone */
	int ask;
	bool yields;
};

int pm_symbol_early_start(const struct pm_symbol_crew_calls *calls, size_t key,
			  bool yields, struct pm_symbol_early **out)
{
	struct pm_symbol_early *early = calloc(1, sizeof(*early));
	int ret;

	if (!early)
		return -ENOMEM;
	early->yields = yields;
	ret = pm_symbol_worker_start_early(calls, key, yields, &early->process,
					   &early->ask);
	if (ret < 0) {
		free(early);
		return ret;
	}
	/* Undo a better nice value for now; the process that sends the request sets it
	 * again. */
	if (getpriority(PRIO_PROCESS, (id_t)early->process.pid) < 0)
		setpriority(PRIO_PROCESS, (id_t)early->process.pid, 0);
	*out = early;
	return 0;
}

static void early_forget_process(struct pm_symbol_early *early)
{
	close(early->process.fd);
	close(early->ask);
	early->process.pid = 0;
}

bool pm_symbol_early_is_there(struct pm_symbol_early *early)
{
	if (early->process.pid > 0 &&
	    waitpid(early->process.pid, NULL, WNOHANG) == early->process.pid)
		early_forget_process(early);
	return early->process.pid > 0;
}

/* Makes the process compete for the CPU: until now it has only used time that no other
 * process needed; from now on the caller waits for it. */
static void early_stop_yielding(const struct pm_symbol_early *early)
{
	const struct sched_param none = { 0 };

	if (early->yields)
		sched_setscheduler(early->process.pid, SCHED_OTHER, &none);
}

/* Kills the process without waiting until it has exited, which may take a while on a busy
 * machine, or on a file system that does not answer. If it exits after this process, its
 * new parent reaps it. */
static void early_kill_process(struct pm_symbol_early *early)
{
	early_stop_yielding(early);
	kill(early->process.pid, SIGKILL);
	(void)waitpid(early->process.pid, NULL, WNOHANG);
	early_forget_process(early);
}

/* Sends the number of addresses and the addresses in one write, which does not block. */
static bool early_send_addresses(const struct pm_symbol_early *early,
				 const struct pm_symbol_job *job)
{
	size_t bytes = (job->addresses_len + 1) * sizeof(uint64_t);
	PM_AUTO_FREE uint64_t *message = malloc(bytes);

	if (!message)
		return false;
	message[0] = job->addresses_len;
	memcpy(message + 1, job->addresses, bytes - sizeof(uint64_t));
	return write(early->ask, message, bytes) == (ssize_t)bytes;
}

int pm_symbol_early_ask(struct pm_symbol_early *early, const struct pm_symbol_job *job,
			struct pm_symbol_process *out)
{
	if (!pm_symbol_early_is_there(early))
		return -ESRCH;
	/* The order of these two steps matters: see worker_prepare_to_wait() in
	 * worker.c. */
	if (!early_send_addresses(early, job)) {
		early_kill_process(early);
		return -EAGAIN;
	}
	early_stop_yielding(early);
	*out = early->process;
	close(early->ask);
	early->process.pid = 0;
	return 0;
}

void pm_symbol_early_free(struct pm_symbol_early *early)
{
	if (early && early->process.pid > 0)
		early_kill_process(early);
	free(early);
}

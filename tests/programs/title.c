/* SPDX-License-Identifier: MIT */
/*
 * A server with titles in the way of nginx: a text in place of the arguments. All its
 * processes use CPU time until they are killed, for at most two minutes.
 *
 *   title   "title: one", after SIGUSR1 "title: two". Its children: "title: child alpha" and
 *           "title: child beta"; one without a title; and one with "title: shell", which after
 *           that signal executes this program anew, as:
 *   title plain   no title
 *   title flood PADDING   changes its title all the time. Each has control characters, and as many
 *           bytes as the arguments have room for.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	SECONDS_MAX = 120,
	TITLE_BYTES = 4000,
};

static char *area;
static size_t area_len;
static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
	(void)number;
	signalled = 1;
}

/* The rest is filled with NULs, as nginx does (src/os/unix/ngx_setproctitle.c). */
static void set_title(const char *title)
{
	size_t len = strlen(title);

	len = len < area_len ? len : area_len - 1;
	memset(area, 0, area_len);
	memcpy(area, title, len);
}

static void spend_until_signal(void)
{
	while (!signalled)
		;
}

/* @title NULL: no title. */
static pid_t start_child(const char *title, char *self)
{
	char plain[] = "plain";
	char *args[] = { self, plain, NULL };
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(SECONDS_MAX);
	if (title)
		set_title(title);
	spend_until_signal();
	execv(self, args);
	_exit(1);
}

static void flood(void)
{
	static char title[TITLE_BYTES];

	for (size_t at = 0;; at++) {
		snprintf(title, sizeof(title), "flood: %zu \033[2J\n%01000d", at, 0);
		set_title(title);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char *last = argv[argc - 1];
	char *self = realpath("/proc/self/exe", NULL);
	pid_t shell;

	area = argv[0];
	area_len = (size_t)(last - argv[0]) + strlen(last) + 1;
	alarm(SECONDS_MAX);
	if (strcmp(what, "plain") == 0)
		spend_until_signal();
	if (strcmp(what, "flood") == 0)
		flood();
	signal(SIGUSR1, on_signal);
	start_child("title: child alpha", self);
	start_child("title: child beta", self);
	start_child(NULL, self);
	shell = start_child("title: shell", self);
	set_title("title: one");
	spend_until_signal();
	set_title("title: two");
	kill(shell, SIGUSR1);
	for (;;)
		;
}

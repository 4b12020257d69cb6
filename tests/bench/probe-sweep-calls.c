/* SPDX-License-Identifier: MIT */
/*
 * Calls arbitrary functions of a library: `probe-sweep-calls LIBRARY ADDRESS...`,
 * addresses as in the file, in hexadecimal. It calls each once, with pointers to zeros as
 * arguments, in a child that may only compute (seccomp strict). The fate of the child
 * does not matter, because the first instruction of the function has run.
 */
#include <dlfcn.h>
#include <link.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ROOM = 1 << 20,
	CPU_US = 20000, /* that a child may use: it cannot wait for anything */
};

typedef void (*any_fn)(void *, void *, void *, void *, void *, void *);

static void call_in_child(uintptr_t address, char *room)
{
	const struct rlimit none = { 0, 0 };
	const struct itimerval limit = { .it_value.tv_usec = CPU_US };
	any_fn function;

	memcpy(&function, &address, sizeof(function));
	setrlimit(RLIMIT_CORE, &none);
	close_range(0, ~0u, 0);
	setitimer(ITIMER_VIRTUAL, &limit, NULL);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) < 0)
		_exit(1);
	function(room, room + 64, room + 128, room + 192, room + 256, room + 320);
	for (;;)
		raise(SIGKILL);
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	struct link_map *map = NULL;
	char *room;

	if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (room == MAP_FAILED)
		return 1;
	for (int i = 2; i < argc; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0)
			call_in_child(map->l_addr + strtoull(argv[i], NULL, 16),
				      room + ROOM / 2);
		waitpid(pid, NULL, 0);
	}
	return 0;
}

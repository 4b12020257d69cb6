/* SPDX-License-Identifier: MIT */
/*
 * deny-perf ERRNO COMMAND...: runs a command under a seccomp filter that refuses
 * perf_event_open with ERRNO, as container runtimes do. Source: seccomp(2). `deny-perf
 * each COMMAND...` refuses, with EINVAL, only events of other processes on one CPU. Among
 * these are counters at places that are passed on to new threads, which kernels before
 * Linux 6.12 refuse.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	PID = 1, /* numbers of arguments */
	CPU = 2,
};

#define LOW_WORD(argument) offsetof(struct seccomp_data, args[argument])

int main(int argc, char **argv)
{
	bool each = argc > 2 && strcmp(argv[1], "each") == 0;
	uint32_t code = each ? EINVAL : argc > 2 ? (uint32_t)atoi(argv[1]) : 0;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 6),
		BPF_JUMP(BPF_JMP | BPF_JA, each ? 0 : 4, 0, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW_WORD(PID)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, INT32_MAX, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW_WORD(CPU)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1u << 31, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 9, .filter = filter };

	if (code == 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		perror("deny-perf");
		return 99;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 99;
}

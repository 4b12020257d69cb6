/* SPDX-License-Identifier: MIT */
/* What the two sides of pm/proc-fetch.h say to each other. Both are the same program. */
#pragma once

#include "pm/proc-fetch.h"
#include "proc-internal.h"

#include <limits.h>

enum pm_fetch_kind {
	PM_FETCH_MODULE,
	PM_FETCH_DEBUG,
	PM_FETCH_PROCESS,
	PM_FETCH_MAPS_ONLY,
	PM_FETCH_MEMORY,
};

enum {
	PM_FETCH_PATH_BYTES = 2 * PATH_MAX, /* the kernel's records cut longer names */
	PM_FETCH_PIECE_BYTES = 60 * 1024, /* of an answer in one packet */
};

/* A packet; one descriptor may come with it. */
struct pm_fetch_request {
	enum pm_fetch_kind kind;
	pid_t pid;
	uint64_t address, len; /* _MEMORY */
	uint64_t copy_bytes_max, crc_bytes_left;
	struct pm_module module; /* its path is `path` */
	char path[PM_FETCH_PATH_BYTES]; /* only up to its NUL */
};

/* The head of each packet of an answer; the descriptor comes with the last one. */
struct pm_fetch_reply {
	int code;
	bool more; /* packets follow */
	bool copied, partial;
	uint64_t copied_bytes, crc_bytes_left;
	pid_t tid; /* _PROCESS: the thread whose mappings these are */
	struct pm_error err;
};

/* The first packet of a helper, with its pidfd where there is one. */
struct pm_fetch_hello {
	pid_t pid;
};

/* Of _PROCESS: an executable mapping, followed by `path_len` bytes and a NUL. */
struct pm_fetch_mapping {
	uint64_t start, end, pgoff;
	struct pm_module_identity identity;
	uint32_t path_len;
};
/* … and after a mapping with start == end: the threads. */
struct pm_fetch_task {
	pid_t tid;
	char comm[16];
};

/* @fd -1: none comes along. The bytes sent, or negative errno. */
int pm_fetch_send(int socket, const void *head, size_t head_len, const void *data,
		  size_t len, const int *fds, size_t fds_len);
/* As recvmsg(2): bytes, 0 at the end, or negative errno. @fds takes @fds_len; -1 where none came. */
ssize_t pm_fetch_receive(int socket, void *head, size_t head_len, void *data, size_t len,
			 int *fds, size_t fds_len, int flags);

/* The loop of the process that forks helpers. */
void pm_fetch_fork_helpers(int socket, pid_t parent);
/* The loop of a helper, whose socket is fds[0]. */
void pm_fetch_serve(const int *fds);
/* What the forking process is asked for. */
struct pm_fetch_start {
	void (*run)(const int *fds);
};

/* ---- remote-file.c ------------------------------------------------------------------- */

/* Whether reading the file, which was reached through @pid or 0, waits for nothing but a disk of
 * this machine. */
bool pm_file_is_local(struct pm_mounts *mounts, int fd, pid_t pid);
/* A copy in memory of the file: as a whole when it is small, else what the unwinder needs of an
 * ELF file. The fd, or -EFBIG, -ENOMEM, or why it cannot be read. */
int pm_file_copy(int fd, uint64_t bytes_max, bool *partial, uint64_t *copied_bytes);

/* SPDX-License-Identifier: MIT */
/*
 * Which threads the file already knows, and by which name.
 */
#pragma once

#include "pm/file.h"

struct pm_chain_thread {
	uint32_t pid, tid;
	char comm[16];
};

struct pm_chain_threads {
	PM_VEC(struct pm_chain_thread) list;
	struct pm_index index;
};

void pm_chain_threads_release(struct pm_chain_threads *threads);
bool pm_chain_threads_known(const struct pm_chain_threads *threads, uint32_t pid,
			    uint32_t tid);
/* Writes a `thread` line when the thread is new or has another name now. */
int pm_chain_threads_name(struct pm_chain_threads *threads, struct pm_file_writer *writer,
			  uint32_t pid, uint32_t tid, const char *comm, uint64_t time);

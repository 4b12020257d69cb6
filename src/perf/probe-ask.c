/* SPDX-License-Identifier: MIT */
/*
 * Finds out on which instructions the kernel puts probes. The kernel examines an
 * instruction when a probe is first put into a mapping. If the mapping already exists,
 * the registration of the probe fails with ENOTSUPP, which is 524 and no error of user
 * space. If the file is mapped later, mmap(2) succeeds and the kernel silently leaves the
 * probe out (uprobe_mmap() and prepare_uprobe() of kernel/events/uprobes.c, Linux 6.18).
 * The rules are those of the running kernel; no table of ours could follow them.
 *
 * Therefore copies of all instructions are written to a file of ours, each with a probe.
 * Then the file is mapped. Bytes that differ between memory and the file are breakpoints.
 * No code of this file ever runs.
 */
#include "hits-state.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* linux/memfd.h; the C library may be older than the kernel. */
#ifndef MFD_EXEC
#define MFD_EXEC 0x10
#endif

enum {
	SLOT_BYTES = sizeof(((struct pm_probed_insn *)NULL)->bytes),
	/* Adding a place takes time proportional to the places that the event already
	 * has. */
	EVENT_SLOTS_MAX = 1024,
};

struct asking {
	struct pm_probed_insn *insns;
	size_t len, bytes;
	int file;
	char path[64];
	struct pm_hits_probes probes;
	PM_VEC(int) events;
};

/* The kernel removes an event when no descriptor of it is open. */
static void asking_release(struct asking *asking)
{
	for (size_t i = 0; i < asking->events.len; i++)
		close(asking->events.data[i]);
	pm_vec_release(&asking->events);
	pm_hits_probes_release(&asking->probes);
	pm_cleanup_close(&asking->file);
}

/* Linux before 6.3 does not have the flag, and makes all such files executable. */
static int open_executable_memory(void)
{
	int fd = memfd_create("pmrec-probes", MFD_CLOEXEC | MFD_EXEC);

	if (fd < 0 && errno == EINVAL)
		return memfd_create("pmrec-probes", MFD_CLOEXEC);
	return fd;
}

static int asking_write_instructions(struct asking *asking)
{
	asking->file = open_executable_memory();
	if (asking->file < 0)
		return -errno;
	snprintf(asking->path, sizeof(asking->path), "/proc/self/fd/%d", asking->file);
	if (ftruncate(asking->file, (off_t)asking->bytes) < 0)
		return -errno;
	for (size_t i = 0; i < asking->len; i++)
		if (pwrite(asking->file, asking->insns[i].bytes, SLOT_BYTES,
			   (off_t)(i * SLOT_BYTES)) != SLOT_BYTES)
			return -EIO;
	return 0;
}

/* Opens the probes for this process alone, since no other process maps the file. */
static int asking_open_probes(struct asking *asking, size_t from, size_t len,
			      struct pm_error *err)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_TRACEPOINT,
					.sample_period = 1,
					.disabled = 1 };
	uint64_t offsets[EVENT_SLOTS_MAX], config;
	int fd, ret;

	for (size_t i = 0; i < len; i++)
		offsets[i] = (from + i) * SLOT_BYTES;
	ret = pm_hits_probes_add(&asking->probes, asking->path, offsets, len, &config,
				 err);
	if (ret < 0)
		return ret;
	attr.config = config;
	fd = pm_sys_perf_event_open(&attr, 0, -1, -1, 0);
	if (fd < 0)
		return -errno;
	if (pm_vec_push(&asking->events, fd) < 0) {
		close(fd);
		return -ENOMEM;
	}
	return 0;
}

static int asking_read_answers(struct asking *asking)
{
	const uint8_t *memory = mmap(NULL, asking->bytes, PROT_READ | PROT_EXEC,
				     MAP_PRIVATE, asking->file, 0);

	if (memory == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < asking->len; i++)
		asking->insns[i].refused =
			memcmp(memory + i * SLOT_BYTES, asking->insns[i].bytes,
			       SLOT_BYTES) == 0;
	munmap((void *)(uintptr_t)memory, asking->bytes);
	return 0;
}

int pm_hits_ask(struct pm_probed_insn *insns, size_t len, struct pm_error *err)
{
	struct asking asking PM_CLEANUP(asking_release) = {
		.insns = insns, .len = len, .bytes = len * SLOT_BYTES, .file = -1
	};
	struct pm_error why = { 0 };
	int ret;

	if (len == 0)
		return 0;
	pm_hits_probes_init(&asking.probes);
	ret = asking_write_instructions(&asking);
	for (size_t i = 0; i < len && ret == 0; i += EVENT_SLOTS_MAX)
		ret = asking_open_probes(&asking, i, PM_MIN(len - i, EVENT_SLOTS_MAX),
					 &why);
	if (ret == 0)
		ret = asking_read_answers(&asking);
	if (ret == 0)
		return 0;
	return pm_error_set(err, ret,
			    "the kernel could not be asked which instructions it "
			    "takes probes on: %s",
			    why.code != 0 ? why.text : strerror(-ret));
}

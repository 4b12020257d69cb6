/* SPDX-License-Identifier: MIT */
/*
 * Vendors' event names, from libpfm4 if it is installed. The library is not linked; the
 * few declarations follow its ABI (perfmon/pfmlib.h, perfmon/pfmlib_perf_event.h).
 */
#include "event-parser.h"

#include <dlfcn.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <string.h>

enum {
	PFM_SUCCESS = 0,
	PFM_PLM0 = 0x01,
	PFM_PLM3 = 0x08,
	PFM_OS_PERF_EVENT = 1,
};

struct pfm_encoding {
	struct perf_event_attr *attr;
	char **name;
	size_t size;
	int index, cpu, flags, padding;
};

typedef int initialize_fn(void);
typedef int encode_fn(const char *name, int levels, int os, void *encoding);

static encode_fn *encode;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The library stays loaded, since its tables are needed. */
static void load_libpfm(void)
{
	void *library = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
	initialize_fn *initialize;

	if (!library)
		return;
	initialize = (initialize_fn *)dlsym(library, "pfm_initialize");
	if (!initialize || initialize() != PFM_SUCCESS)
		return;
	encode = (encode_fn *)dlsym(library, "pfm_get_os_event_encoding");
}

bool pm_event_libpfm(const char *name, struct pm_event_spec *out)
{
	/* A library that knows a larger version of the struct may write beyond ours. */
	union {
		struct perf_event_attr attr;
		char room[4096];
	} room;
	struct pfm_encoding encoding = { .attr = &room.attr, .size = sizeof(encoding) };

	pthread_once(&once, load_libpfm);
	memset(&room, 0, sizeof(room));
	room.attr.size = sizeof(room.attr);
	if (!encode || encode(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &encoding) !=
			       PFM_SUCCESS)
		return false;
	/* libpfm4 also accepts the kernel's own names, in any case. Those have been
	 * looked up already. */
	if (room.attr.type < PERF_TYPE_MAX && room.attr.type != PERF_TYPE_RAW)
		return false;
	out->kind = PM_EVENT_PMU;
	out->type = room.attr.type;
	out->config = room.attr.config;
	out->config1 = room.attr.config1;
	out->config2 = room.attr.config2;
	snprintf(out->name, sizeof(out->name), "%s", name);
	return true;
}

/* SPDX-License-Identifier: MIT */
/* Files of others that probes are to be put into: symbols, markers, needed libraries; and the
 * loader's cache. Bytes that begin with an ELF header are a file. */
#include <elf.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>

#include "src/probe/probe-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int any_library(void *user, const char *name, const char *path)
{
	size_t *bytes = user;

	*bytes += strlen(name) + strlen(path);
	return 0;
}

static int any_marker(void *user, const struct pm_probe_marker *marker)
{
	size_t *bytes = user;

	*bytes += strlen(marker->provider) + strlen(marker->name) +
		  strlen(marker->arguments);
	return 0;
}

static void probe(const char *path, const char *symbol, bool usdt)
{
	struct pm_event_spec spec = {
		.kind = PM_EVENT_UPROBE,
		.place = { .wanted = true, .file = path, .symbol = symbol, .usdt = usdt }
	};
	const struct pm_probe_context context = { .debug_dir = "/nonexistent" };
	struct pm_event_specs specs = { 0 };
	struct pm_probes probes = { 0 };
	struct pm_error err = { 0 };

	if (pm_vec_push(&specs.list, spec) == 0)
		pm_probes_resolve(&probes, &specs, &context, &err);
	for (size_t i = 0; i < specs.list.len; i++)
		if (!specs.list.data[i].place.wanted && !specs.list.data[i].path)
			abort();
	pm_event_specs_release(&specs);
	pm_probes_release(&probes);
}

static void one_file(const uint8_t *data, size_t size)
{
	const struct pm_probe_abi abi = { .machine = EM_X86_64, .is_64 = true };
	PM_AUTO_CLOSE int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[32];
	size_t bytes = 0;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	probe(path, "*", false);
	probe(path, "ns::f(int)", false);
	probe(path, "mian", false);
	probe(path, "*:*", true);
	pm_probe_needed_each(fd, "/nonexistent/x", &abi, any_library, &bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pm_probe_abi abi = { .machine = EM_X86_64, .is_64 = true };
	PM_AUTO_FREE char *copy = malloc(size + 1);
	size_t bytes = 0;

	if (!copy || size == 0)
		return 0;
	/* Exactly so many bytes, for the sanitizer. */
	memcpy(copy, data, size);
	if (size >= EI_NIDENT && memcmp(data, ELFMAG, SELFMAG) == 0) {
		one_file(data, size);
	} else {
		pm_probe_cache_parse(copy, size, &abi, any_library, &bytes);
		pm_probe_markers_each(copy, size, true, any_marker, &bytes);
		pm_probe_markers_each(copy, size, false, any_marker, &bytes);
	}
	return 0;
}

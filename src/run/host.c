/* SPDX-License-Identifier: MIT */
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "pm/run.h"

static void read_cpu_model(char *out, size_t size)
{
	PM_AUTO_FCLOSE FILE *file = fopen("/proc/cpuinfo", "re");
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		const char *value = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !value)
			continue;
		value += 1 + strspn(value + 1, " \t");
		snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
		return;
	}
}

/*
 * Reads the hypervisor's signature, which is recorded because profiles of virtual
 * machines differ (no PMU, stolen time). It is in CPUID leaf 0x40000000 if bit 31 of ECX
 * of leaf 1 is set (Linux Documentation/virt/kvm/x86/cpuid.rst).
 */
static void read_virtualization(char *out, size_t size)
{
#if defined(__x86_64__)
	static const struct {
		const char *signature, *name;
	} known[] = {
		{ "KVMKVMKVM", "kvm" },       { "Microsoft Hv", "hyperv" },
		{ "VMwareVMware", "vmware" }, { "XenVMMXenVMM", "xen" },
		{ "TCGTCGTCGTCG", "qemu" },   { "bhyve bhyve ", "bhyve" },
	};
	unsigned int a, b, c, d;
	char signature[13] = { 0 };

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 31))
		return;
	__cpuid(0x40000000, a, b, c, d);
	memcpy(signature, &b, 4);
	memcpy(signature + 4, &c, 4);
	memcpy(signature + 8, &d, 4);
	for (size_t i = 0; i < PM_ARRAY_LEN(known); i++) {
		if (strcmp(signature, known[i].signature) == 0) {
			snprintf(out, size, "%s", known[i].name);
			return;
		}
	}
	snprintf(out, size, "vm");
#endif
}

void pm_host_read(struct pm_host *host)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*host = (struct pm_host){ .cpus = cpus > 0 ? (uint32_t)cpus : 0 };
	uname(&host->names);
	read_cpu_model(host->cpu_model, sizeof(host->cpu_model));
	read_virtualization(host->virt, sizeof(host->virt));
	pm_kernel_identity_read(&host->running, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * PMUs as the kernel describes them in sysfs. Source: Documentation/ABI/testing/
 * sysfs-bus-event_source-devices-{format,events}, Documentation/admin-guide/perf/.
 */
#include "event-parser.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
	TEXT_MAX = 4096, /* a sysfs file is a page at most */
	NAMES_MAX = 4096,
	WORD_BITS = 64,
};

/* ---- files ------------------------------------------------------------------------------- */

/* Whether the name is that of one folder or file, and not a path. */
static bool is_plain_file_name(const char *name)
{
	return name[0] != '\0' && name[0] != '.' && !strchr(name, '/');
}

/* Reads the first line of a small file. Returns 0 or -errno. */
static int read_pmu_text(int folder, const char *path, char out[TEXT_MAX])
{
	int fd PM_AUTO_CLOSE = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat about;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &about) < 0)
		return -errno;
	if (!S_ISREG(about.st_mode))
		return -EINVAL;
	n = read(fd, out, TEXT_MAX - 1);
	if (n < 0)
		return -errno;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

static int read_pmu_file_in(const struct pm_pmu *pmu, const char *folder,
			    const char *name, char out[TEXT_MAX])
{
	char path[2 * PM_EVENT_NAME_MAX];

	if (!is_plain_file_name(name) ||
	    snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return -ENOENT;
	return read_pmu_text(pmu->folder, path, out);
}

/* ---- lists of names ------------------------------------------------------------------------ */

void pm_pmu_names_release(struct pm_pmu_names *names)
{
	for (size_t i = 0; i < names->list.len; i++)
		free(names->list.data[i]);
	pm_vec_release(&names->list);
}

static int compare_pmu_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Besides an event's file, the folder contains files about its unit:
 * "energy-pkg.scale". */
static bool is_unit_file_of_event(const char *name)
{
	static const char *const suffixes[] = { ".scale", ".unit", ".per-pkg",
						".snapshot" };
	size_t len = strlen(name);

	for (size_t i = 0; i < PM_ARRAY_LEN(suffixes); i++) {
		size_t n = strlen(suffixes[i]);

		if (len > n && strcmp(name + len - n, suffixes[i]) == 0)
			return true;
	}
	return false;
}

static void close_pmu_folder(DIR **folder)
{
	if (*folder)
		closedir(*folder);
}

/* Takes over @fd. If it is negative, there are no names. */
static int list_pmu_folder(int fd, struct pm_pmu_names *out)
{
	struct pm_pmu_names names PM_CLEANUP(pm_pmu_names_release) = { 0 };
	DIR *folder PM_CLEANUP(close_pmu_folder) = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!folder && fd >= 0)
		close(fd);
	while (folder && names.list.len < NAMES_MAX && (entry = readdir(folder))) {
		char *name;

		if (!is_plain_file_name(entry->d_name) ||
		    is_unit_file_of_event(entry->d_name))
			continue;
		name = strdup(entry->d_name);
		if (!name || pm_vec_push(&names.list, name) < 0) {
			free(name);
			return -ENOMEM;
		}
	}
	if (names.list.len > 0)
		qsort(names.list.data, names.list.len, sizeof(*names.list.data),
		      compare_pmu_names);
	*out = names;
	names = (struct pm_pmu_names){ 0 };
	return 0;
}

int pm_pmu_names_read(const struct pm_event_sources *sources, struct pm_pmu_names *out)
{
	return list_pmu_folder(open(sources->devices, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			       out);
}

int pm_pmu_names_of(const struct pm_pmu *pmu, const char *folder,
		    struct pm_pmu_names *out)
{
	return list_pmu_folder(
		openat(pmu->folder, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), out);
}

/* ---- one PMU ----------------------------------------------------------------------------- */

int pm_pmu_open(struct pm_pmu *out, const struct pm_event_sources *sources,
		const char *name)
{
	int devices PM_AUTO_CLOSE = -1, folder PM_AUTO_CLOSE = -1;
	char text[TEXT_MAX];
	uint64_t type;

	if (!is_plain_file_name(name) || strlen(name) >= sizeof(out->name))
		return -ENOENT;
	devices = open(sources->devices, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (devices < 0)
		return -ENOENT;
	/* In sysfs these are symbolic links to directories. */
	folder = openat(devices, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 || read_pmu_text(folder, "type", text) < 0 ||
	    !pm_parse_u64(text, &type) || type > UINT32_MAX)
		return -ENOENT;
	snprintf(out->name, sizeof(out->name), "%s", name);
	out->type = (uint32_t)type;
	out->folder = pm_take_fd(&folder);
	return 0;
}

void pm_pmu_release(struct pm_pmu *pmu)
{
	pm_cleanup_close(&pmu->folder);
	pmu->folder = -1;
}

bool pm_pmu_is_core(const struct pm_pmu *pmu)
{
	/* Core PMUs of hybrid processors have a file "cpus"; other PMUs have
	 * "cpumask". */
	return strcmp(pmu->name, "cpu") == 0 ||
	       faccessat(pmu->folder, "cpus", F_OK, 0) == 0;
}

void pm_pmu_cpus(const struct pm_pmu *pmu, struct pm_str *out)
{
	char text[TEXT_MAX];

	if (read_pmu_text(pmu->folder, "cpus", text) == 0 ||
	    read_pmu_text(pmu->folder, "cpumask", text) == 0)
		pm_str_puts(out, text);
}

/* "0-7,32-35" or "21". */
static int parse_format_bits(const char *text, uint64_t *out)
{
	uint64_t mask = 0;

	for (;;) {
		unsigned long first, last;
		char *end;

		if (*text < '0' || *text > '9')
			return -EBADMSG;
		first = last = strtoul(text, &end, 10);
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoul(end + 1, &end, 10);
		if (first > last || last >= WORD_BITS)
			return -EBADMSG;
		mask |= (UINT64_MAX >> (WORD_BITS - 1 - (last - first))) << first;
		if (*end == '\0')
			break;
		if (*end != ',')
			return -EBADMSG;
		text = end + 1;
	}
	*out = mask;
	return 0;
}

int pm_pmu_format(const struct pm_pmu *pmu, const char *term, struct pm_pmu_format *out)
{
	static const char *const words[] = { "config:", "config1:", "config2:" };
	char text[TEXT_MAX];

	if (read_pmu_file_in(pmu, "format", term, text) < 0)
		return -ENOENT;
	for (unsigned int i = 0; i < PM_ARRAY_LEN(words); i++) {
		uint64_t mask;

		if (!pm_event_begins(text, strlen(text), words[i]))
			continue;
		if (parse_format_bits(text + strlen(words[i]), &mask) < 0)
			return -ENOTSUP;
		out->word = i;
		out->mask = mask;
		return 0;
	}
	return -ENOTSUP;
}

int pm_pmu_unit(const struct pm_pmu *pmu, const char *name, char *unit, size_t unit_size,
		double *scale)
{
	char path[PM_EVENT_NAME_MAX + sizeof(".scale")], text[TEXT_MAX];
	double factor = 1;

	snprintf(path, sizeof(path), "%s.scale", name);
	if (read_pmu_file_in(pmu, "events", path, text) == 0) {
		char *end;

		factor = strtod(text, &end);
		if (end == text || *end != '\0' || !(factor > 0 && factor < 1e300))
			return -EBADMSG;
	}
	snprintf(path, sizeof(path), "%s.unit", name);
	if (read_pmu_file_in(pmu, "events", path, text) < 0)
		text[0] = '\0';
	if (strlen(text) >= unit_size)
		return -EBADMSG;
	snprintf(unit, unit_size, "%s", text);
	*scale = factor;
	return 0;
}

int pm_pmu_alias(const struct pm_pmu *pmu, const char *name, struct pm_str *out)
{
	struct pm_pmu_names names PM_CLEANUP(pm_pmu_names_release) = { 0 };
	char text[TEXT_MAX];

	if (is_unit_file_of_event(name))
		return -ENOENT;
	if (read_pmu_file_in(pmu, "events", name, text) == 0) {
		pm_str_puts(out, text);
		return 0;
	}
	/* Like perf, ignores case. */
	if (pm_pmu_names_of(pmu, "events", &names) < 0)
		return -ENOENT;
	for (size_t i = 0; i < names.list.len; i++) {
		if (strcasecmp(names.list.data[i], name) != 0 ||
		    read_pmu_file_in(pmu, "events", names.list.data[i], text) < 0)
			continue;
		pm_str_puts(out, text);
		return 0;
	}
	return -ENOENT;
}

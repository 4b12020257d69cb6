/* SPDX-License-Identifier: MIT */
#include "document.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#ifndef PMSTAT_VERSION
#error "the build passes PMSTAT_VERSION"
#endif

static const char default_simulated[] = "sim.Ir";

/* Reads the first word of a file in /proc or /sys. Returns NULL if it is unknown. */
static const char *read_first_word(const char *path, char *out, size_t size)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = -1;

	if (fd >= 0)
		len = read(fd, out, size - 1);
	if (len <= 0)
		return NULL;
	out[len] = '\0';
	out[strcspn(out, " \n")] = '\0';
	return out;
}

static void read_paranoid(struct pm_stat_host *host)
{
	char word[32];
	const char *text = read_first_word("/proc/sys/kernel/perf_event_paranoid", word,
					   sizeof(word));
	bool negative = text && text[0] == '-';
	uint64_t value;

	host->paranoid = INT32_MIN;
	if (text && pm_parse_u64(text + negative, &value) && value <= INT32_MAX) {
		if (negative)
			host->paranoid = -(int32_t)value;
		else
			host->paranoid = (int32_t)value;
	}
}

/* Returns NULL for an empty string of struct pm_host, which means unknown. */
static const char *known_text(const char *text)
{
	if (text[0] == '\0')
		return NULL;
	return text;
}

static int fill_host(struct pm_stat_host *host)
{
	struct pm_host machine;
	char governor[64], smt[32];
	const char *text;

	pm_host_read(&machine);
	read_paranoid(host);
	host->cpus = machine.cpus;
	text = read_first_word("/sys/devices/system/cpu/smt/active", smt, sizeof(smt));
	host->smt = -1;
	if (text && strcmp(text, "1") == 0)
		host->smt = 1;
	else if (text && strcmp(text, "0") == 0)
		host->smt = 0;
	text = read_first_word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
			       governor, sizeof(governor));
	if (pm_stat_text(&host->hostname, machine.names.nodename) < 0 ||
	    pm_stat_text(&host->kernel, machine.names.release) < 0 ||
	    pm_stat_text(&host->arch, machine.names.machine) < 0 ||
	    pm_stat_text(&host->cpu_model, known_text(machine.cpu_model)) < 0 ||
	    pm_stat_text(&host->virt, known_text(machine.virt)) < 0 ||
	    pm_stat_text(&host->governor, text) < 0)
		return -ENOMEM;
	return 0;
}

/* Fills in the build-id of the command or, for a script, of its interpreter. */
static int fill_build_id(struct pm_stat_subject *subject, char **command)
{
	struct pm_probe_context context = { .command = command[0] };
	struct pm_probe_binaries binaries = { 0 };
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len = 0;
	struct pm_str hex = { 0 };
	int ret = 0;

	if (pm_probe_find_program(&binaries, &context, NULL) == 0 &&
	    binaries.list.len > 0 &&
	    pm_elf_build_id(binaries.list.data[0].fd, id, &len) == 0 && len > 0) {
		for (uint8_t i = 0; i < len; i++)
			pm_str_printf(&hex, "%02x", id[i]);
		if (hex.failed)
			ret = -ENOMEM;
		else
			ret = pm_stat_text(&subject->build_id, hex.data);
	}
	pm_str_release(&hex);
	pm_probe_binaries_release(&binaries);
	return ret;
}

static int fill_subject(struct pm_stat *stat, char **command)
{
	struct pm_stat_subject *subject;

	if (pm_vec_push(&stat->subjects, (struct pm_stat_subject){ 0 }) < 0)
		return -ENOMEM;
	subject = &stat->subjects.data[stat->subjects.len - 1];
	for (char **word = command; word && *word; word++) {
		char *copy = NULL;

		if (pm_stat_text(&copy, *word) < 0 ||
		    pm_vec_push(&subject->argv, copy) < 0) {
			free(copy);
			return -ENOMEM;
		}
	}
	if (command)
		return fill_build_id(subject, command);
	return 0;
}

static int fill_subjects(struct pm_stat *stat, const struct pmstat_options *options)
{
	int ret = fill_subject(stat, options->attach ? NULL : options->commands[0]);

	if (ret == 0 && options->ab)
		return fill_subject(stat, options->commands[1]);
	return ret;
}

static int fill_events(struct pm_stat *stat, const struct pmstat_options *options,
		       struct pm_error *err)
{
	bool simulated = options->engine == PM_COUNT_ENGINE_CALLGRIND;
	int ret = 0;

	for (size_t i = 0; i < options->simulated.len && ret == 0; i++)
		ret = pm_sim_event_describe(stat, options->simulated.data[i], false, err);
	if (ret == 0 && simulated && options->simulated.len == 0)
		ret = pm_sim_event_describe(stat, default_simulated, true, err);
	if (ret < 0)
		return ret;
	ret = pm_count_describe_events(stat, &options->specs, !options->event_given);
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	return 0;
}

int pmstat_document_begin(struct pm_stat *stat, const struct pmstat_options *options,
			  struct pm_error *err)
{
	time_t now = time(NULL);
	char created[32];
	struct tm utc;

	strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	if (pm_stat_text(&stat->version, PMSTAT_VERSION) < 0 ||
	    pm_stat_text(&stat->created, created) < 0 || fill_host(&stat->host) < 0 ||
	    fill_subjects(stat, options) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return fill_events(stat, options, err);
}

int pmstat_document_setting(struct pm_stat *stat, const char *name, const char *value)
{
	struct pm_stat_setting setting = { 0 };

	if (pm_stat_text(&setting.name, name) == 0 &&
	    pm_stat_text(&setting.value, value) == 0 &&
	    pm_vec_push(&stat->settings, setting) == 0)
		return 0;
	free(setting.name);
	free(setting.value);
	return -ENOMEM;
}

int pmstat_document_warn(struct pm_stat *stat, const char *text)
{
	char *copy = NULL;

	if (pm_stat_text(&copy, text) == 0 && pm_vec_push(&stat->warnings, copy) == 0)
		return 0;
	free(copy);
	return -ENOMEM;
}

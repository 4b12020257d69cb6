/* SPDX-License-Identifier: MIT */
/*
 * The command line of valgrind, and its messages. Everything that could make two equal
 * runs differ is fixed: cache sizes, options from other sources, the variant of memcpy()
 * that the C library selects.
 */
#include "callgrind-stacks.h"
#include "engine-callgrind.h"
#include "tell.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

enum {
	LOG_BYTES_MAX = 1 << 20,
	LOG_WARNINGS_MAX = 8,
};

/* The machine that is simulated. The sizes are common ones, not those of the host. */
static const char *const caches[][2] = {
	{ "I1", "32768,8,64" },
	{ "D1", "32768,8,64" },
	{ "LL", "8388608,16,64" },
};

/*
 * The C library selects variants of its functions (ifuncs) by the CPU's features. This
 * list disables the features that not every x86-64 CPU has, so that all machines run the
 * same variants. It has the names of glibc 2.33 and later, and those of older versions;
 * glibc ignores names that it does not know. The comma at the end keeps glibc (2.36) from
 * reading past the end of the string, where it would find random bytes and execute a
 * varying number of instructions.
 */
static const char tunables[] =
	"glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX2_Usable,-AVX_Fast_Unaligned_Load,"
	"-ERMS,-FSRM,-BMI2,-RTM,-SSE4_2,-SSE4_1,-SSSE3,"
	":glibc.cpu.x86_data_cache_size=32768:glibc.cpu.x86_shared_cache_size=1048576"
	":glibc.cpu.x86_non_temporal_threshold=786432";

/*
 * A forked process continues with the costs of its parent, and would report them again.
 * Therefore all costs are dumped when a thread returns from fork, in the child too, where
 * this first part belongs to its parent (struct pm_callgrind_copy). An exec discards the
 * costs counted before it. Therefore they are dumped just before it. The lists have the
 * names of the C libraries; valgrind accepts names that do not exist. If several options
 * are for names that start with the same letters, valgrind uses only the last one.
 */
static const char *const dump_after[] = {
	"fork", "__fork", "__libc_fork", "_Fork", "vfork", "__vfork", "__libc_vfork",
};
static const char *const dump_before[] = {
	"posix_spawn", "__posix_spawn", "posix_spawnp", "__spawni", "__spawnix",
	"execve",      "__execve",      "fexecve",      "execveat",
};

/* ---- the document ----------------------------------------------------------------------- */

int pm_callgrind_setting(struct pm_stat *stat, const char *name, const char *value)
{
	struct pm_stat_setting setting = { 0 };

	for (size_t i = 0; i < stat->settings.len; i++)
		if (strcmp(stat->settings.data[i].name, name) == 0)
			return 0;
	if (pm_stat_text(&setting.name, name) < 0 ||
	    pm_stat_text(&setting.value, value) < 0 ||
	    pm_vec_push(&stat->settings, setting) < 0) {
		free(setting.name);
		free(setting.value);
		return -ENOMEM;
	}
	return 0;
}

/* ---- the command line ------------------------------------------------------------------- */

void pm_callgrind_call_release(struct pm_callgrind_call *call)
{
	for (size_t i = 0; i < call->argv.len; i++)
		free(call->argv.data[i]);
	pm_vec_release(&call->argv);
	free(call->tunables);
}

static int PM_PRINTF(2, 3)
	add_command_word(struct pm_callgrind_call *call, const char *format, ...)
{
	va_list args;
	char *word = NULL;
	int len;

	va_start(args, format);
	len = vasprintf(&word, format, args);
	va_end(args);
	if (len < 0)
		return -ENOMEM;
	if (pm_vec_push(&call->argv, word) < 0) {
		free(word);
		return -ENOMEM;
	}
	return 0;
}

static bool stat_wants_simulation(const struct pm_stat *stat, const char *letters)
{
	for (size_t i = 0; i < stat->events.len; i++) {
		const struct pm_stat_event *event = &stat->events.data[i];

		if (strcmp(event->source, "simulated") == 0 &&
		    strchr(letters, event->name[strlen("sim.")]) &&
		    strcmp(event->name, "sim.Ir") != 0)
			return true;
	}
	return false;
}

static int add_simulation(struct pm_callgrind_call *call, struct pm_stat *stat)
{
	int ret = 0;

	/* Dr, D1mr, DLmw, I1mr, ILmr, L1hits, RAMhits, cycles; Bc, Bim. */
	if (stat_wants_simulation(stat, "DILRc")) {
		ret = add_command_word(call, "--cache-sim=yes");
		for (size_t i = 0; ret == 0 && i < PM_ARRAY_LEN(caches); i++) {
			ret = add_command_word(call, "--%s=%s", caches[i][0],
					       caches[i][1]);
			if (ret == 0)
				ret = pm_callgrind_setting(stat, caches[i][0],
							   caches[i][1]);
		}
	}
	if (ret == 0 && stat_wants_simulation(stat, "B"))
		ret = add_command_word(call, "--branch-sim=yes");
	return ret;
}

/* Makes callgrind report how deep the counted functions recurse. A name with pattern
 * characters would match other functions, too. */
static int add_regions(struct pm_callgrind_call *call, const struct pm_regions *regions)
{
	int ret = 0;

	if (!regions || regions->list.len == 0)
		return 0;
	ret = add_command_word(call, "--dump-instr=yes");
	if (ret == 0)
		ret = add_command_word(call, "--collect-jumps=yes");
	for (size_t i = 0; ret == 0 && i < regions->list.len; i++) {
		const struct pm_region *region = &regions->list.data[i];

		if (region->kind == PM_STAT_FUNCTION && region->symbol &&
		    !strpbrk(region->symbol, "*?"))
			ret = add_command_word(call, "--separate-recs%d=%s",
					       PM_CALLGRIND_LEVELS, region->symbol);
	}
	return ret;
}

/* The user's own tunables come last and take precedence. */
static int make_tunables(struct pm_callgrind_call *call, struct pm_stat *stat)
{
	const char *own = getenv("GLIBC_TUNABLES");

	if (asprintf(&call->tunables, "%s%s%s", tunables, own && *own ? ":" : "",
		     pm_text_or_empty(own)) < 0) {
		call->tunables = NULL;
		return -ENOMEM;
	}
	return pm_callgrind_setting(stat, "GLIBC_TUNABLES", call->tunables);
}

/* Records the options as one string, without file names, which differ from run to run. */
static int record_valgrind_options(const struct pm_callgrind_call *call,
				   struct pm_stat *stat)
{
	struct pm_str text = { 0 };
	int ret;

	for (size_t i = 1; i < call->argv.len; i++) {
		if (strstr(call->argv.data[i], "-file=") ||
		    strncmp(call->argv.data[i], "--dump-before=", 14) == 0 ||
		    strncmp(call->argv.data[i], "--dump-after=", 13) == 0)
			continue;
		pm_str_separate(&text, " ");
		pm_str_puts(&text, call->argv.data[i]);
	}
	if (text.failed)
		ret = -ENOMEM;
	else
		ret = pm_callgrind_setting(stat, "valgrind-options", text.data);
	pm_str_release(&text);
	return ret;
}

int pm_callgrind_call_make(struct pm_callgrind_call *call, struct pm_stat *stat,
			   const struct pm_engine_options *options, const char *dir)
{
	/* No compressed names: 3.19 uses a function's number plus the level as the number
	 * of a level, and numbers repeat if functions have many levels. The user's option
	 * files are meant for other purposes. Freeing the C library's memory happens only
	 * under valgrind, and costs instructions. */
	static const char *const fixed[] = {
		"valgrind",
		"--command-line-only=yes",
		"--tool=callgrind",
		"--separate-threads=yes",
		"--demangle=no",
		"--compress-strings=no",
		"--vgdb=no",
		"--run-libc-freeres=no",
		"--run-cxx-freeres=no",
	};
	int ret = make_tunables(call, stat);

	for (size_t i = 0; ret == 0 && i < PM_ARRAY_LEN(fixed); i++)
		ret = add_command_word(call, "%s", fixed[i]);
	if (ret == 0)
		ret = add_command_word(call, "--trace-children=%s",
				       options->no_inherit ? "no" : "yes");
	if (ret == 0)
		ret = add_command_word(call, "--callgrind-out-file=%s/out.%%p", dir);
	if (ret == 0)
		ret = add_command_word(call, "--log-file=%s/log.%%p", dir);
	if (ret == 0 && options->stacks)
		ret = add_command_word(call, "--separate-callers=%d",
				       PM_CALLGRIND_CALLERS);
	if (ret == 0 && options->marked && options->marked_from) {
		ret = add_command_word(call, "--zero-before=%s", options->marked_from);
		if (ret == 0)
			ret = add_command_word(call, "--dump-before=%s",
					       options->marked_to);
	} else if (ret == 0 && options->marked) {
		ret = add_command_word(call, "--instr-atstart=no");
	}
	if (ret == 0)
		ret = add_simulation(call, stat);
	if (ret == 0)
		ret = add_regions(call, options->regions);
	if (ret == 0)
		ret = record_valgrind_options(call, stat);
	for (size_t i = 0; ret == 0 && i < PM_ARRAY_LEN(dump_before); i++)
		ret = add_command_word(call, "--dump-before=%s", dump_before[i]);
	for (size_t i = 0; ret == 0 && i < PM_ARRAY_LEN(dump_after); i++)
		ret = add_command_word(call, "--dump-after=%s", dump_after[i]);
	if (ret == 0)
		ret = add_command_word(call, "--");
	for (size_t i = 0; ret == 0 && options->command[i]; i++)
		ret = add_command_word(call, "%s", options->command[i]);
	if (ret < 0)
		return ret;
	return pm_vec_push(&call->argv, NULL);
}

/* ---- valgrind's messages ----------------------------------------------------------------- */

/* Removes the number from `==123== text`; `vex: text` and `valgrind: text` have none. */
static const char *without_pid(const char *line)
{
	const char *at = line;

	if (strncmp(at, "==", 2) != 0 && strncmp(at, "--", 2) != 0)
		return line;
	at += 2;
	while (isdigit((unsigned char)*at))
		at++;
	if (at[0] && at[0] == at[1])
		return at + 2 + strspn(at + 2, " ");
	return line;
}

/* Whether the line is an error, and not part of the banner or the summary. */
static bool is_complaint(const char *text)
{
	static const char *const begins[] = {
		"vex ",  "valgrind:", "Valgrind:", "Unrecognised", "FATAL",
		"Fatal", "Error:",    "error:",    "Cannot",       "The 'impossible'",
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(begins); i++)
		if (strncmp(text, begins[i], strlen(begins[i])) == 0 &&
		    !strstr(text, "REX") && !strstr(text, "VEX=") &&
		    !strstr(text, "PFX."))
			return true;
	return false;
}

/* Notes the file if valgrind gave up on it, which happens if its reader of debug
 * information runs past the end of the file: 3.19 does not know all forms of DWARF 5 and
 * misreads the bytes after them. The name of the file is on a line of its own, in
 * quotes. */
static void note_unreadable(struct pm_callgrind_log *log, const char *text)
{
	static const char reader[] = "debuginfo reader: ", image[] = "Valgrind:   \"";
	const char *end;

	if (log->unreadable[0] == '\0' && strstr(text, reader))
		snprintf(log->unreadable, sizeof(log->unreadable), "?");
	if (strncmp(text, image, strlen(image)) == 0)
		end = strrchr(text, '"');
	else
		end = NULL;
	if (strcmp(log->unreadable, "?") == 0 && end && end - text > (int)strlen(image))
		snprintf(log->unreadable, sizeof(log->unreadable), "%.*s",
			 (int)(end - text) - (int)strlen(image), text + strlen(image));
}

static int read_log_lines(struct pm_callgrind_log *log, struct pm_stat *stat, char *bytes,
			  pid_t pid)
{
	bool ran = false, ended = false;
	char *rest = bytes, *line;

	while ((line = strsep(&rest, "\n"))) {
		const char *text = without_pid(line);
		struct pm_str plain = { 0 };
		int ret = 0;

		ran = ran || strncmp(text, "Callgrind, ", 11) == 0;
		ended = ended || strncmp(text, "Collected :", 11) == 0;
		if (!is_complaint(text))
			continue;
		note_unreadable(log, text);
		pm_str_printable(&plain, text, strlen(text));
		if (!plain.failed && log->words[0] == '\0')
			snprintf(log->words, sizeof(log->words), "%s", plain.data);
		if (!plain.failed && stat->warnings.len < LOG_WARNINGS_MAX)
			ret = pm_tell_warning(stat, "valgrind says: %s", plain.data);
		pm_str_release(&plain);
		if (ret < 0)
			return ret;
	}
	log->processes += ran;
	log->cut += ran && !ended;
	log->running += ran && !ended && pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
	return 0;
}

static int read_log(struct pm_callgrind_log *log, struct pm_stat *stat, int dir_fd,
		    const char *name)
{
	PM_AUTO_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	PM_AUTO_FREE char *bytes = malloc(LOG_BYTES_MAX + 1);
	size_t len = 0;

	if (!bytes)
		return -ENOMEM;
	while (fd >= 0 && len < LOG_BYTES_MAX) {
		ssize_t more = read(fd, bytes + len, LOG_BYTES_MAX - len);

		if (more <= 0)
			break;
		len += (size_t)more;
	}
	bytes[len] = '\0';
	return read_log_lines(log, stat, bytes, (pid_t)strtol(name + 4, NULL, 10));
}

int pm_callgrind_log_read(struct pm_callgrind_log *out, struct pm_stat *stat,
			  const char *dir, const char *only)
{
	DIR *entries = opendir(dir);
	const struct dirent *entry;
	int ret = 0;

	*out = (struct pm_callgrind_log){ 0 };
	while (entries && ret == 0 && (entry = readdir(entries)))
		if (strncmp(entry->d_name, "log.", 4) == 0 &&
		    (!only || strcmp(entry->d_name, only) == 0))
			ret = read_log(out, stat, dirfd(entries), entry->d_name);
	if (entries)
		closedir(entries);
	return ret;
}

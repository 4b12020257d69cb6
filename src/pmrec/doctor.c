/* SPDX-License-Identifier: MIT */
#include "doctor.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "pm/proc.h"
#include "session.h"

enum {
	WIDTH = 80,
	INDENT = 26, /* column of the text after "ok name" */
	NAME_WIDTH = 21,
	LINE_MAX_BYTES = 4096,
	STATUS_NOT_HERE = 1,
};

/* ---- checks beside perf_event_open
 * ---------------------------------------------------- */

static long read_sysctl_number(const char *path)
{
	PM_AUTO_FCLOSE FILE *file = fopen(path, "re");
	long value;

	if (file && fscanf(file, "%ld", &value) == 1)
		return value;
	return -1;
}

static void check_kallsyms(struct pm_perf_check *row)
{
	struct pm_kallsyms *kallsyms;

	*row = (struct pm_perf_check){ .name = "kernel names",
				       .use = "names of kernel functions" };
	row->works = pm_kallsyms_load(&kallsyms, NULL, &row->why) == 0;
	if (row->works)
		pm_kallsyms_free(kallsyms);
}

/* Stores the path of the C library that this process has mapped. Returns false if the
 * process is statically linked. */
static bool find_libc(char path[LINE_MAX_BYTES])
{
	PM_AUTO_FCLOSE FILE *maps = fopen("/proc/self/maps", "re");
	char line[LINE_MAX_BYTES];

	while (maps && fgets(line, sizeof(line), maps)) {
		char *slash = strchr(line, '/');
		const char *base = strrchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		if (!slash || (strncmp(base, "/libc.so", 8) != 0 &&
			       strncmp(base, "/libc-", 6) != 0 &&
			       strncmp(base, "/ld-musl", 8) != 0))
			continue;
		snprintf(path, LINE_MAX_BYTES, "%s", slash);
		return true;
	}
	return false;
}

static void check_debug_info(struct pm_perf_check *row)
{
	char path[LINE_MAX_BYTES];
	PM_AUTO_CLOSE int fd = -1;
	PM_AUTO_CLOSE int debug = -1;

	*row = (struct pm_perf_check){ .name = "libc's debug file",
				       .use = "lines and inner functions of libc" };
	if (find_libc(path))
		fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		debug = pm_debug_find(fd, &(struct pm_debug_search){ .path = path });
	row->works = debug >= 0;
	if (row->works)
		return;
	pm_error_set(&row->why, -ENOENT,
		     fd < 0 ? "the C library of this program cannot be read"
			    : "it is not installed below /usr/lib/debug");
	pm_error_fix(&row->why,
		     "sudo apt install libc6-dbg, or the like of other systems");
}

static void check_ptrace(struct pm_perf_check *own, struct pm_perf_check *others)
{
	long scope = read_sysctl_number("/proc/sys/kernel/yama/ptrace_scope");

	*own = (struct pm_perf_check){ .name = "ptrace",
				       .use = "--engine ptrace, where perf is denied",
				       .works = scope < 2 || geteuid() == 0 };
	*others = (struct pm_perf_check){ .name = "running processes",
					  .use = "--stacks of one's own processes",
					  .works = scope < 1 || geteuid() == 0 };
	if (scope >= 0)
		snprintf(own->found, sizeof(own->found), "kernel.yama.ptrace_scope=%ld",
			 scope);
	if (scope >= 3)
		own->works = others->works = false;
	if (!own->works)
		pm_error_set(&own->why, -EPERM, "kernel.yama.ptrace_scope=%ld forbids it",
			     scope);
	if (!others->works) {
		pm_error_set(&others->why, -EPERM,
			     "kernel.yama.ptrace_scope=%ld allows only what pmrec has "
			     "started",
			     scope);
		pm_error_fix(&others->why, "sudo sysctl kernel.yama.ptrace_scope=0");
	}
}

static int collect_checks(pm_perf_checks *checks)
{
	struct pm_perf_check rows[4];

	if (pm_perf_checks_run(checks) < 0)
		return -ENOMEM;
	check_kallsyms(&rows[0]);
	check_debug_info(&rows[1]);
	check_ptrace(&rows[2], &rows[3]);
	for (size_t i = 0; i < PM_ARRAY_LEN(rows); i++)
		if (pm_vec_push(checks, rows[i]) < 0)
			return -ENOMEM;
	return 0;
}

/* ---- text ----------------------------------------------------------------------------- */

/* Appends the words of @text, starting at @column and wrapped before WIDTH, and ends the
 * line. */
static void put_wrapped_words(struct pm_str *out, size_t column, const char *text)
{
	struct pm_str safe PM_CLEANUP(pm_str_release) = { 0 };
	bool first = true;

	pm_str_printable(&safe, text, strlen(text));
	for (const char *at = safe.data; at && *at;) {
		size_t len = strcspn(at, " ");

		if (!first && column + 1 + len > WIDTH) {
			pm_str_printf(out, "\n%*s", INDENT, "");
			column = INDENT;
			first = true;
		}
		if (!first) {
			pm_str_putc(out, ' ');
			column++;
		}
		pm_str_append(out, at, len);
		column += len;
		first = false;
		at += len + strspn(at + len, " ");
	}
	pm_str_putc(out, '\n');
}

static void put_check_row(struct pm_str *out, const struct pm_perf_check *row)
{
	struct pm_str line PM_CLEANUP(pm_str_release) = { 0 };

	pm_str_printf(out, "%-4s%-*s ", row->works ? "ok" : "no", NAME_WIDTH, row->name);
	pm_str_puts(&line, row->use);
	if (row->found[0])
		pm_str_printf(&line, " (%s)", row->found);
	put_wrapped_words(out, INDENT, pm_str_text(&line));
	if (row->works)
		return;
	pm_str_printf(out, "%*s", INDENT, "");
	put_wrapped_words(out, INDENT, row->why.text);
	if (row->why.fix[0]) {
		pm_str_clear(&line);
		pm_str_printf(&line, "try: %s", row->why.fix);
		pm_str_printf(out, "%*s", INDENT, "");
		put_wrapped_words(out, INDENT, pm_str_text(&line));
	}
}

static void put_checks_text(struct pm_str *out, const pm_perf_checks *checks, bool works,
			    bool ptrace)
{
	for (size_t i = 0; i < checks->len; i++)
		put_check_row(out, &checks->data[i]);
	if (works)
		pm_str_puts(out, "\npmrec COMMAND works here.\n");
	else if (ptrace)
		pm_str_puts(out, "\npmrec COMMAND does not work here, "
				 "pmrec --engine ptrace COMMAND does.\n");
	else
		pm_str_puts(out, "\npmrec does not work here.\n");
}

/* ---- JSON ----------------------------------------------------------------------------- */

static void put_key(struct pm_str *out, const char *key, const char *text)
{
	pm_str_printf(out, ",\"%s\":", key);
	pm_str_json(out, text && text[0] ? text : NULL);
}

static void put_json(struct pm_str *out, const pm_perf_checks *checks, bool works)
{
	pm_str_printf(out,
		      "{\"format\":\"pmrec-doctor\",\"version\":1,\"works\":%s,"
		      "\"checks\":[",
		      works ? "true" : "false");
	for (size_t i = 0; i < checks->len; i++) {
		const struct pm_perf_check *row = &checks->data[i];

		pm_str_printf(out, "%s\n{\"works\":%s,\"needed\":%s", i ? "," : "",
			      row->works ? "true" : "false",
			      row->needed ? "true" : "false");
		put_key(out, "name", row->name);
		put_key(out, "use", row->use);
		put_key(out, "found", row->found);
		put_key(out, "why", row->works ? NULL : row->why.text);
		put_key(out, "fix", row->works ? NULL : row->why.fix);
		pm_str_putc(out, '}');
	}
	pm_str_puts(out, "\n]}\n");
}

int pm_rec_doctor_run(const struct pm_rec_options *options)
{
	struct pm_str out PM_CLEANUP(pm_str_release) = { 0 };
	pm_perf_checks checks = { 0 };
	bool works = true, ptrace = false;

	if (collect_checks(&checks) < 0) {
		pm_vec_release(&checks);
		fputs("pmrec: out of memory\n", stderr);
		return PM_STATUS_FAILED;
	}
	for (size_t i = 0; i < checks.len; i++) {
		works &= checks.data[i].works || !checks.data[i].needed;
		ptrace |= checks.data[i].works &&
			  strcmp(checks.data[i].name, "ptrace") == 0;
	}
	if (options->json)
		put_json(&out, &checks, works);
	else
		put_checks_text(&out, &checks, works, ptrace);
	pm_vec_release(&checks);
	if (out.failed || fwrite(out.data, 1, out.len, stdout) != out.len ||
	    fflush(stdout) != 0) {
		fprintf(stderr, "pmrec: standard output: %s\n",
			out.failed ? "out of memory" : strerror(errno));
		return PM_STATUS_FAILED;
	}
	if (works)
		return 0;
	return STATUS_NOT_HERE;
}

/* SPDX-License-Identifier: MIT */
/*
 * Compares every row of every FDE of ELF files, as we decode it, with the output of
 * binutils' `readelf --debug-dump=frames-interp`: the rule of the CFA, of the return
 * address and of each register, at the first and the last address of the row.
 *
 * oracle-rows [--jobs N] [--brief] FILE...
 * oracle-rows [--jobs N] [--brief] --stdin      (names from standard input, one a line)
 *
 * Skips files that are not ELF files for this machine, or have no CFI; with --brief also
 * the lines of files without a difference. Prints TAP. Exit status 1 if something
 * differs.
 *
 * readelf prints "u" for both undefined and unspecified, and only "exp" for expressions.
 */
#include "unwind/unwind-parts.h"

#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	COLUMNS_MAX = 64,
	SHOWN_MAX = 10, /* differences for each file */
	JOBS_MAX = 64,
};

/* A table in readelf's format: a heading, and lines with as many words. */
struct line {
	char *text; /* owned; words end with NUL */
	const char *words[COLUMNS_MAX];
	size_t len;
};

struct cie {
	uint64_t offset;
	struct line heading, row;
};

struct totals {
	atomic_ulong files, fdes, rows, fdes_differ, rows_differ, next;
};

struct file {
	const char *path;
	struct pm_unw_module *module;
	const struct pm_unw_arch_info *arch;
	PM_VEC(struct cie) cies; /* of the current section */
	unsigned long fdes, rows, fdes_differ, rows_differ;
	/* The current FDE. */
	struct pm_unw_fde fde;
	bool in_fde, found;
	uint64_t start, end, cie;
	struct line heading, row; /* the last row, whose end is not known yet */
	size_t rows_here;
};

static struct totals *totals; /* shared by all jobs */

/* ---- words ------------------------------------------------------------------------------ */

static void line_release(struct line *line)
{
	free(line->text);
	*line = (struct line){ 0 };
}

static void line_split(struct line *line, const char *text)
{
	char *rest;

	line_release(line);
	line->text = strdup(text);
	if (!line->text)
		abort();
	for (char *word = strtok_r(line->text, " \t\n", &rest);
	     word && line->len < COLUMNS_MAX; word = strtok_r(NULL, " \t\n", &rest)) {
		/* A register as a rule: "r1 (rdx)". */
		if (word[0] == '(' && line->len > 0) {
			word[strcspn(word, ")")] = '\0';
			line->words[line->len - 1] = word + 1;
		} else {
			line->words[line->len++] = word;
		}
	}
}

/* Returns the DWARF number of a register by readelf's name; -1: none that we track. */
static int register_of(const struct pm_unw_arch_info *arch, const char *name, size_t len)
{
	static const char *const x86_64[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi",
					      "rbp", "rsp", "r8",  "r9",  "r10", "r11",
					      "r12", "r13", "r14", "r15", "rip" };
	static const char *const i386[] = { "eax", "ecx", "edx", "ebx", "esp",
					    "ebp", "esi", "edi", "eip" };
	char text[8];

	if (len == 0 || len >= sizeof(text))
		return -1;
	memcpy(text, name, len);
	text[len] = '\0';
	if (strcmp(text, "ra") == 0)
		return arch->ra;
	if (arch->elf_machine == EM_AARCH64) {
		if (strcmp(text, "sp") == 0)
			return arch->sp;
		return text[0] == 'x' && isdigit((unsigned char)text[1]) ? atoi(text + 1)
									 : -1;
	}
	for (size_t i = 0; i < PM_ARRAY_LEN(x86_64); i++)
		if (arch->elf_machine == EM_X86_64 && strcmp(text, x86_64[i]) == 0)
			return (int)i;
	for (size_t i = 0; i < PM_ARRAY_LEN(i386); i++)
		if (arch->elf_machine == EM_386 && strcmp(text, i386[i]) == 0)
			return (int)i;
	return -1;
}

/* ---- comparing -------------------------------------------------------------------------- */

static bool same_cfa(const struct file *file, const struct pm_unw_row *row,
		     const char *theirs)
{
	size_t len = strcspn(theirs, "+-");

	if (strcmp(theirs, "exp") == 0)
		return row->cfa_is_expr;
	return !row->cfa_is_expr &&
	       register_of(file->arch, theirs, len) == (int)row->cfa_reg &&
	       strtoll(theirs + len, NULL, 10) == row->cfa_offset;
}

static bool same_rule(const struct file *file, const struct pm_unw_reg_rule *rule,
		      const char *theirs)
{
	switch (rule->kind) {
	case PM_UNW_RULE_UNSPECIFIED:
	case PM_UNW_RULE_UNDEFINED:
		return strcmp(theirs, "u") == 0;
	case PM_UNW_RULE_SAME:
		return strcmp(theirs, "s") == 0;
	case PM_UNW_RULE_OFFSET:
		return theirs[0] == 'c' && strtoll(theirs + 1, NULL, 10) == rule->value;
	case PM_UNW_RULE_VAL_OFFSET:
		return theirs[0] == 'v' && strtoll(theirs + 1, NULL, 10) == rule->value;
	case PM_UNW_RULE_REGISTER:
		return register_of(file->arch, theirs, strlen(theirs)) == rule->value;
	case PM_UNW_RULE_EXPRESSION:
		return strcmp(theirs, "exp") == 0;
	case PM_UNW_RULE_VAL_EXPRESSION:
		return strcmp(theirs, "vexp") == 0;
	default:
		return false;
	}
}

static void show(const struct file *file, uint64_t svma, const char *what,
		 const char *theirs, const struct pm_unw_reg_rule *ours)
{
	if (file->rows_differ + file->fdes_differ >= SHOWN_MAX)
		return;
	printf("# %s: %#" PRIx64 ": %s: readelf %s", file->path, svma, what, theirs);
	if (ours)
		printf(", ours of kind %u, %" PRId64, ours->kind, ours->value);
	putchar('\n');
}

/* Compares one of our rows, at one address, with one of theirs. */
static bool compare_at(const struct file *file, const struct line *heading,
		       const struct line *theirs, uint64_t svma)
{
	struct pm_unw_row row;
	uint64_t seen = 0;

	if (pm_unw_cfi_row(&file->fde, svma, &row) != 0) {
		show(file, svma, "row", "has one, we have none", NULL);
		return false;
	}
	if (!same_cfa(file, &row, theirs->words[1])) {
		struct pm_unw_reg_rule cfa = { .kind = (uint32_t)row.cfa_reg,
					       .value = row.cfa_offset };

		show(file, svma, "CFA", theirs->words[1], &cfa);
		return false;
	}
	for (size_t i = 2; i < heading->len; i++) {
		int reg = register_of(file->arch, heading->words[i],
				      strlen(heading->words[i]));

		if (reg < 0 || reg >= file->arch->regs)
			continue;
		seen |= (uint64_t)1 << reg;
		if (!same_rule(file, &row.regs[reg], theirs->words[i])) {
			show(file, svma, heading->words[i], theirs->words[i],
			     &row.regs[reg]);
			return false;
		}
	}
	for (int reg = 0; reg < file->arch->regs; reg++)
		if (!(seen >> reg & 1) && row.regs[reg].kind != PM_UNW_RULE_UNSPECIFIED) {
			show(file, svma, "another register", "nothing", &row.regs[reg]);
			return false;
		}
	return true;
}

/* A row is valid from its location up to @end. */
static void compare_row(struct file *file, const struct line *heading,
			const struct line *theirs, uint64_t location, uint64_t end)
{
	if (end > file->end)
		end = file->end;
	/* Of several rows at one address, the last one counts; and advances may lead out
	 * of the function. */
	if (end <= location || !file->found)
		return;
	file->rows++;
	if (heading->len != theirs->len || heading->len < 2) {
		show(file, location, "line", "is not understood", NULL);
		file->rows_differ++;
	} else if (!compare_at(file, heading, theirs, location) ||
		   (end - 1 > location && !compare_at(file, heading, theirs, end - 1))) {
		file->rows_differ++;
	}
}

/* ---- parsing readelf's output ----------------------------------------------------------- */

static void end_fde(struct file *file)
{
	if (!file->in_fde)
		return;
	file->in_fde = false;
	if (file->row.len > 0) {
		compare_row(file, &file->heading, &file->row,
			    strtoull(file->row.words[0], NULL, 16), file->end);
	} else if (file->rows_here == 0) {
		/* There are only the rules of its CIE. */
		for (size_t i = file->cies.len; i-- > 0;)
			if (file->cies.data[i].offset == file->cie) {
				compare_row(file, &file->cies.data[i].heading,
					    &file->cies.data[i].row, file->start,
					    file->end);
				break;
			}
	}
	line_release(&file->row);
	line_release(&file->heading);
}

static void begin_fde(struct file *file, const char *cie, const char *range)
{
	char *rest;
	int rc;

	file->in_fde = true;
	file->rows_here = 0;
	file->cie = strtoull(cie + strlen("cie="), NULL, 16);
	file->start = strtoull(range + strlen("pc="), &rest, 16);
	file->end = strtoull(rest + strspn(rest, "."), NULL, 16);
	file->found = false;
	if (file->end <= file->start)
		return; /* describes nothing, for example code that the linker dropped */
	file->fdes++;
	rc = pm_unw_fde_find(file->module, file->start, &file->fde);
	if (rc == 0 && file->fde.start == file->start && file->fde.end == file->end) {
		file->found = true;
		return;
	}
	if (file->fdes_differ + file->rows_differ < SHOWN_MAX) {
		printf("# %s: %#" PRIx64 "-%#" PRIx64 ": ", file->path, file->start,
		       file->end);
		if (rc == 0)
			printf("we find %#" PRIx64 "-%#" PRIx64 "\n", file->fde.start,
			       file->fde.end);
		else
			printf("we find no FDE: %s\n", strerror(-rc));
	}
	file->fdes_differ++;
}

static void begin_cie(struct file *file, const char *offset)
{
	struct cie cie = { .offset = strtoull(offset, NULL, 16) };

	if (pm_vec_push(&file->cies, cie) != 0)
		abort();
}

static void table_line(struct file *file, const char *text)
{
	struct line line = { 0 };

	line_split(&line, text);
	if (!file->in_fde) {
		struct cie *cie =
			file->cies.len ? &file->cies.data[file->cies.len - 1] : NULL;
		struct line *to = !cie                    ? NULL
				  : cie->heading.len == 0 ? &cie->heading
							  : &cie->row;

		if (to) {
			line_release(to);
			*to = line;
			return;
		}
	} else if (strcmp(line.words[0], "LOC") == 0) {
		line_release(&file->heading);
		file->heading = line;
		return;
	} else {
		if (file->row.len > 0)
			compare_row(file, &file->heading, &file->row,
				    strtoull(file->row.words[0], NULL, 16),
				    strtoull(line.words[0], NULL, 16));
		file->rows_here++;
		line_release(&file->row);
		file->row = line;
		return;
	}
	line_release(&line);
}

static void forget_cies(struct file *file)
{
	for (size_t i = 0; i < file->cies.len; i++) {
		line_release(&file->cies.data[i].heading);
		line_release(&file->cies.data[i].row);
	}
	pm_vec_clear(&file->cies);
}

static bool open_again(struct file *file, int fd)
{
	pm_unw_module_free(file->module);
	file->module = NULL;
	if (pm_unw_module_open(&file->module, fd, NULL) != 0)
		return false;
	file->arch = &pm_unw_arch_infos[file->module->arch];
	return true;
}

/* Returns 1 if the section is to be compared. */
static int begin_section(struct file *file, int fd, const char *text)
{
	const char *from = strstr(text, "loaded from ");

	forget_cies(file);
	/* readelf also follows links to debug files: those are compared separately. */
	if (from &&
	    strncmp(from + strlen("loaded from "), file->path, strlen(file->path)) != 0)
		return 0;
	if (!open_again(file, fd))
		return 0;
	if (strstr(text, ".eh_frame"))
		return 1;
	if (!strstr(text, "debug_frame"))
		return 0;
	/* Without .eh_frame, every address is looked up in .debug_frame. */
	pm_unw_region_release(&file->module->eh_frame);
	file->module->hdr_table = 0;
	return 1;
}

static void read_text(struct file *file, int fd, FILE *from)
{
	PM_AUTO_FREE char *text = NULL;
	size_t cap = 0;
	int wanted = 0;

	while (getline(&text, &cap, from) > 0) {
		char offset[24], length[24], id[24], word[24], cie[32], range[64];

		if (strncmp(text, "Contents of the ", 16) == 0) {
			end_fde(file);
			wanted = begin_section(file, fd, text);
			continue;
		}
		if (!wanted || text[0] == '\n')
			continue;
		if (strstr(text, "ZERO terminator")) {
			end_fde(file);
			continue;
		}
		if (text[0] != ' ' && sscanf(text, "%23s %23s %23s %23s %31s %63s",
					     offset, length, id, word, cie, range) >= 4) {
			if (strcmp(word, "FDE") == 0) {
				end_fde(file);
				begin_fde(file, cie, range);
				continue;
			}
			if (strcmp(word, "CIE") == 0) {
				end_fde(file);
				begin_cie(file, offset);
				continue;
			}
		}
		if (strncmp(text, "   LOC ", 7) == 0 || isxdigit((unsigned char)text[0]))
			table_line(file, text);
	}
	end_fde(file);
}

/* ---- files ------------------------------------------------------------------------------ */

/* Returns readelf's output, or NULL. */
static FILE *start_readelf(const char *path, pid_t *pid)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return NULL;
	fflush(stdout);
	*pid = fork();
	if (*pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(ends[1], 1);
		dup2(null, 2);
		setenv("LC_ALL", "C", 1);
		execlp("readelf", "readelf", "--wide", "--debug-dump=frames-interp", path,
		       (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	if (*pid < 0) {
		close(ends[0]);
		return NULL;
	}
	return fdopen(ends[0], "r");
}

/* Whether the file is a program or library for a machine that we know. */
static bool is_wanted(int fd)
{
	struct pm_unw_module *module;
	struct stat st;
	Elf64_Half type;
	bool wanted;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    pread(fd, &type, sizeof(type), offsetof(Elf64_Ehdr, e_type)) !=
		    sizeof(type) ||
	    (type != ET_DYN && type != ET_EXEC) ||
	    pm_unw_module_open(&module, fd, NULL) != 0)
		return false;
	wanted = module->eh_frame.len > 0 || module->debug_frame.len > 0 ||
		 module->debug_packed;
	pm_unw_module_free(module);
	return wanted;
}

static void check_file(const char *path, bool brief)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct file file = { .path = path };
	int status = -1;
	FILE *from;
	pid_t pid;
	bool ok;

	if (fd < 0 || !is_wanted(fd))
		return;
	from = start_readelf(path, &pid);
	if (!from)
		abort();
	read_text(&file, fd, from);
	fclose(from);
	waitpid(pid, &status, 0);
	ok = file.fdes_differ == 0 && file.rows_differ == 0 && WIFEXITED(status) &&
	     WEXITSTATUS(status) != 127;
	atomic_fetch_add(&totals->fdes, file.fdes);
	atomic_fetch_add(&totals->rows, file.rows);
	atomic_fetch_add(&totals->fdes_differ, file.fdes_differ);
	atomic_fetch_add(&totals->rows_differ, file.rows_differ);
	atomic_fetch_add(&totals->files, 1);
	/* Without numbers, because several jobs print at once. */
	if (!ok || !brief)
		printf("%sok - %s: %lu FDEs (%lu differ), %lu rows (%lu differ)\n",
		       ok ? "" : "not ", path, file.fdes, file.fdes_differ, file.rows,
		       file.rows_differ);
	fflush(stdout);
	forget_cies(&file);
	pm_vec_release(&file.cies);
	pm_unw_module_free(file.module);
}

/* Takes files from the common list until it is empty. */
static int run_job(char *const *paths, size_t len, bool brief)
{
	/* Line by line, so that the output of several jobs does not mix. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (;;) {
		size_t i = atomic_fetch_add(&totals->next, 1);

		if (i >= len)
			return 0;
		check_file(paths[i], brief);
	}
}

static size_t read_names(char ***ret)
{
	PM_VEC(char *) names = { 0 };
	PM_AUTO_FREE char *text = NULL;
	size_t cap = 0;
	ssize_t len;

	while ((len = getline(&text, &cap, stdin)) > 0) {
		if (text[len - 1] == '\n')
			text[len - 1] = '\0';
		if (pm_vec_push(&names, strdup(text)) != 0)
			abort();
	}
	*ret = names.data;
	return names.len;
}

static int run_jobs(char *const *paths, size_t len, long jobs, bool brief)
{
	int failed = 0, status;

	for (long i = 0; i < jobs; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0)
			exit(run_job(paths, len, brief));
	}
	while (wait(&status) > 0)
		if (status != 0)
			failed++;
	printf("# %lu files, %lu FDEs (%lu differ), %lu rows (%lu differ)\n",
	       totals->files, totals->fdes, totals->fdes_differ, totals->rows,
	       totals->rows_differ);
	if (failed > 0)
		printf("Bail out! %d jobs crashed\n", failed);
	return failed > 0 || totals->fdes_differ > 0 || totals->rows_differ > 0 ||
	       totals->rows == 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "jobs", required_argument, NULL, 'j' },
						 { "brief", no_argument, NULL, 'b' },
						 { "stdin", no_argument, NULL, 's' },
						 { 0 } };
	bool brief = false, from_stdin = false;
	long jobs = sysconf(_SC_NPROCESSORS_ONLN);
	char **paths;
	size_t len;
	int option, failed;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'j')
			jobs = strtol(optarg, NULL, 10);
		else if (option == 'b')
			brief = true;
		else if (option == 's')
			from_stdin = true;
		else
			return 2;
	}
	if (system("readelf --version >/dev/null 2>&1") != 0) {
		puts("1..0 # SKIP readelf of binutils is not installed");
		return 0;
	}
	jobs = jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
	totals = mmap(NULL, sizeof(*totals), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (totals == MAP_FAILED)
		return 1;
	paths = argv + optind;
	len = (size_t)(argc - optind);
	if (from_stdin)
		len = read_names(&paths);
	setvbuf(stdout, NULL, _IOLBF, 0);
	failed = run_jobs(paths, len, jobs, brief);
	if (!brief)
		printf("1..%lu\n", totals->files);
	return failed;
}

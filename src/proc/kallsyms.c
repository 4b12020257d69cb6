/* SPDX-License-Identifier: MIT */
/*
 * Kernel symbols. Source of the line format: kernel/kallsyms.c, s_show(): ADDRESS TYPE
 * NAME[\t[MODULE]].
 */
#include "proc-internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define KALLSYMS_PATH "/proc/kallsyms"

enum {
	READ_BYTES = 1 << 20,
	FILE_BYTES_MAX = 256 << 20, /* 4 MB for a usual kernel */
	/* Nothing marks the end of the very last symbol. */
	LAST_SYMBOL_BYTES = 64 << 10,
};

#define HOLE PM_KALLSYMS_HOLE

/* The parser's state. It includes the last module's name, which the next symbol usually
 * shares. */
struct parser {
	struct pm_kallsyms *kallsyms;
	const char *module;
	size_t module_len;
	uint32_t module_offset;
	uint64_t symbols_seen, addresses_seen; /* addresses_seen: those that are not
	                                        * zero */
};

/* ---- one line ------------------------------------------------------------------------ */

struct line {
	uint64_t address;
	char type;
	const char *name, *module;
	size_t name_len, module_len;
};

static bool parse_line(const char *at, const char *end, struct line *out)
{
	const char *tab, *first = at;

	*out = (struct line){ .module = "" };
	for (; at < end; at++) {
		char c = *at;
		unsigned int digit;

		if (c >= '0' && c <= '9')
			digit = (unsigned int)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (unsigned int)(c - 'a') + 10;
		else
			break;
		out->address = out->address << 4 | digit;
	}
	if (at == first || at - first > 16 || end - at < 4 || at[0] != ' ' ||
	    at[2] != ' ')
		return false;
	out->type = at[1];
	out->name = at + 3;
	tab = memchr(out->name, '\t', (size_t)(end - out->name));
	out->name_len = (size_t)((tab ? tab : end) - out->name);
	if (tab && end - tab > 3 && tab[1] == '[' && end[-1] == ']') {
		out->module = tab + 2;
		out->module_len = (size_t)(end - 1 - out->module);
	}
	return out->name_len > 0 && !memchr(out->name, '\0', (size_t)(end - out->name));
}

static bool is_name(const struct line *line, const char *name)
{
	return line->name_len == strlen(name) &&
	       memcmp(line->name, name, line->name_len) == 0;
}

static bool is_text(const struct line *line)
{
	/* These two symbols follow the last function, and would otherwise cover
	 * everything after it. */
	return strchr("tTwW", line->type) && !is_name(line, "_etext") &&
	       !is_name(line, "_einittext");
}

/* Returns the offset of the name in the arena, or HOLE if the arena is full or memory is
 * out. */
static uint32_t put_name(struct pm_kallsyms *kallsyms, const char *name, size_t len)
{
	size_t offset = kallsyms->names.len;

	pm_str_append(&kallsyms->names, name, len);
	pm_str_putc(&kallsyms->names, '\0');
	if (kallsyms->names.failed || offset >= HOLE)
		return HOLE;
	return (uint32_t)offset;
}

static int kallsyms_add_line(struct parser *parser, const struct line *line)
{
	struct pm_kallsyms *kallsyms = parser->kallsyms;
	struct pm_kallsyms_symbol symbol = { .address = line->address, .name = HOLE };

	parser->symbols_seen++;
	if (line->address != 0)
		parser->addresses_seen++;
	/* Absolute symbols are numbers, not addresses. */
	if (line->address == 0 || line->type == 'A' || line->type == 'a')
		return 0;
	if (!is_text(line)) {
		size_t len = kallsyms->symbols.len;

		/* In a sorted file, one mark is enough for a run of data. */
		if (len > 0 && kallsyms->symbols.data[len - 1].name == HOLE &&
		    kallsyms->symbols.data[len - 1].address <= line->address)
			return 0;
		return pm_vec_push(&kallsyms->symbols, symbol);
	}
	if (line->module_len != parser->module_len ||
	    memcmp(line->module, parser->module, line->module_len) != 0) {
		parser->module_offset =
			put_name(kallsyms, line->module, line->module_len);
		parser->module = line->module;
		parser->module_len = line->module_len;
	}
	symbol.module = parser->module_offset;
	symbol.name = put_name(kallsyms, line->name, line->name_len);
	if (symbol.name == HOLE || symbol.module == HOLE)
		return -ENOMEM;
	return pm_vec_push(&kallsyms->symbols, symbol);
}

/* ---- the table ----------------------------------------------------------------------- */

static int compare_kallsyms_symbols(const void *left, const void *right)
{
	const struct pm_kallsyms_symbol *a = left, *b = right;

	if (a->address != b->address)
		return PM_COMPARE(a->address, b->address);
	/* Names in the order of the file, because offsets grow; holes come last. */
	if (a->name < b->name)
		return -1;
	return a->name > b->name;
}

static int leading_underscores(const char *name)
{
	return (int)strspn(name, "_");
}

/* If several names share an address, the one with the fewest leading underscores is best:
 * foo rather than __foo. */
static bool is_better(const struct pm_kallsyms *kallsyms,
		      const struct pm_kallsyms_symbol *a,
		      const struct pm_kallsyms_symbol *b)
{
	if (a->name == HOLE || b->name == HOLE)
		return a->name != HOLE;
	return leading_underscores(kallsyms->names.data + a->name) <
	       leading_underscores(kallsyms->names.data + b->name);
}

/* Sorts the symbols, and keeps one per address. */
static void kallsyms_sort_symbols(struct pm_kallsyms *kallsyms)
{
	struct pm_kallsyms_symbol *symbols = kallsyms->symbols.data;
	size_t len = kallsyms->symbols.len, kept = 0;
	bool sorted = true;

	for (size_t i = 1; i < len && sorted; i++)
		sorted = symbols[i - 1].address <= symbols[i].address;
	if (!sorted)
		qsort(symbols, len, sizeof(*symbols), compare_kallsyms_symbols);
	for (size_t i = 0; i < len; i++) {
		if (kept > 0 && symbols[kept - 1].address == symbols[i].address) {
			if (is_better(kallsyms, &symbols[i], &symbols[kept - 1]))
				symbols[kept - 1] = symbols[i];
		} else {
			symbols[kept++] = symbols[i];
		}
	}
	kallsyms->symbols.len = kept;
}

/* ---- reading ------------------------------------------------------------------------- */

static int read_kallsyms_file(const char *path, struct pm_str *text, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int ret;

	if (fd < 0 || fstat(fd, &st) < 0)
		return pm_error_set(err, -errno, "cannot be opened: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return pm_error_set(err, -EINVAL, "not a regular file");
	for (;;) {
		char *grown =
			pm_vec_grow(text->data, &text->cap, 1, text->len + READ_BYTES);
		ssize_t n;

		if (!grown)
			return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
		text->data = grown;
		n = read(fd, text->data + text->len, READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			ret = -errno;
			return pm_error_set(err, ret, "cannot be read: %s",
					    strerror(-ret));
		}
		if (n == 0)
			return 0;
		text->len += (size_t)n;
		if (text->len > FILE_BYTES_MAX)
			return pm_error_set(err, -EFBIG, "larger than %d MiB",
					    FILE_BYTES_MAX >> 20);
	}
}

static int64_t read_sysctl(const char *path)
{
	PM_AUTO_FCLOSE FILE *file = fopen(path, "rce");
	long long value;

	if (file && fscanf(file, "%lld", &value) == 1)
		return value;
	return INT64_MIN;
}

/* Explains addresses that are zero. kallsyms_show_value() of the kernel checks
 * kptr_restrict first; if that is 0, perf_event_paranoid. */
static int explain_zeros(struct pm_error *err)
{
	int64_t kptr = read_sysctl("/proc/sys/kernel/kptr_restrict");
	int64_t paranoid = read_sysctl("/proc/sys/kernel/perf_event_paranoid");
	const char *needs_paranoid = paranoid > 1 ? " kernel.perf_event_paranoid=1" : "";

	if (kptr == 0 && paranoid > 1) {
		pm_error_set(
			err, -EACCES,
			"the kernel hides its addresses: kernel.perf_event_paranoid is %lld",
			(long long)paranoid);
		pm_error_fix(err, "sudo sysctl%s", needs_paranoid);
		return -EACCES;
	}
	if (kptr == INT64_MIN)
		pm_error_set(
			err, -EACCES,
			"the kernel hides its addresses: kernel.kptr_restrict is unknown");
	else
		pm_error_set(
			err, -EACCES,
			"the kernel hides its addresses: kernel.kptr_restrict is %lld",
			(long long)kptr);
	pm_error_fix(err, "sudo sysctl kernel.kptr_restrict=0%s", needs_paranoid);
	return -EACCES;
}

static int parse_kallsyms_text(struct pm_kallsyms *kallsyms, const struct pm_str *text,
			       struct pm_error *err)
{
	struct parser parser = { .kallsyms = kallsyms, .module = "" };
	const char *at = text->data, *end = text->data + text->len;

	/* About half of a line is its name, and most lines are text symbols. */
	if (put_name(kallsyms, "", 0) == HOLE ||
	    pm_vec_reserve(&kallsyms->symbols, text->len / 40 + 1) < 0)
		return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct line line;

		if (!newline)
			newline = end;
		if (parse_line(at, newline, &line) &&
		    kallsyms_add_line(&parser, &line) < 0)
			return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
		at = newline + 1;
	}
	if (parser.symbols_seen == 0)
		return pm_error_set(err, -EBADMSG, "holds no kernel symbols");
	if (parser.addresses_seen == 0)
		return explain_zeros(err);
	return 0;
}

static void cleanup_kallsyms(struct pm_kallsyms **kallsyms)
{
	pm_kallsyms_free(*kallsyms);
}

int pm_kallsyms_load(struct pm_kallsyms **out, const char *path, struct pm_error *err)
{
	struct pm_kallsyms *kallsyms PM_CLEANUP(cleanup_kallsyms) =
		calloc(1, sizeof(*kallsyms));
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
	int ret;

	if (!path)
		path = KALLSYMS_PATH;
	if (!kallsyms)
		ret = pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	else
		ret = read_kallsyms_file(path, &text, err);
	if (ret == 0)
		ret = parse_kallsyms_text(kallsyms, &text, err);
	if (ret < 0) {
		pm_error_where(err, path, -1);
		return ret;
	}
	kallsyms_sort_symbols(kallsyms);
	*out = PM_TAKE_PTR(kallsyms);
	return 0;
}

void pm_kallsyms_free(struct pm_kallsyms *kallsyms)
{
	if (!kallsyms)
		return;
	pm_str_release(&kallsyms->names);
	pm_vec_release(&kallsyms->symbols);
	free(kallsyms);
}

/* Uses only the fields that identify a module and its place: "NAME SIZE REFERENCES USERS
 * STATE ADDRESS" (kernel/module/procfs.c, m_show()). References change all the time. */
uint64_t pm_kernel_modules_fingerprint(void)
{
	PM_AUTO_FCLOSE FILE *file = fopen("/proc/modules", "re");
	PM_AUTO_FREE char *line = NULL;
	size_t cap = 0;
	uint64_t print = 0;

	while (file && getline(&line, &cap, file) > 0) {
		char name[64], address[32];
		uint64_t bytes;

		if (sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %31s", name, &bytes,
			   address) != 3)
			continue;
		print = pm_hash_mix(print ^ pm_hash_bytes(name, strlen(name)), bytes);
		print = pm_hash_mix(print ^ pm_hash_bytes(address, strlen(address)), 1);
	}
	return print;
}

/* Returns the symbol that covers @address, or NULL if there is none. */
static const struct pm_kallsyms_symbol *find_symbol(const struct pm_kallsyms *kallsyms,
						    uint64_t address)
{
	const struct pm_kallsyms_symbol *symbols = kallsyms->symbols.data;
	size_t low = 0, high = kallsyms->symbols.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || symbols[low - 1].name == HOLE)
		return NULL;
	if (low == kallsyms->symbols.len &&
	    address - symbols[low - 1].address >= LAST_SYMBOL_BYTES)
		return NULL;
	return &symbols[low - 1];
}

const char *pm_kallsyms_find(const struct pm_kallsyms *kallsyms, uint64_t address,
			     const char **module)
{
	const struct pm_kallsyms_symbol *symbol = find_symbol(kallsyms, address);

	if (!symbol)
		return NULL;
	if (module)
		*module = kallsyms->names.data + symbol->module;
	return kallsyms->names.data + symbol->name;
}

/* Returns false for code that is created and freed while the kernel runs: BPF programs,
 * trampolines of ftrace and of kprobes. /proc/kallsyms lists it with module names that no
 * module has (kernel/kallsyms.c, get_ksymbol_bpf() and the functions near it). */
bool pm_kallsyms_is_permanent(const char *module)
{
	return strcmp(module, "bpf") != 0 && strncmp(module, "__builtin__", 11) != 0;
}

bool pm_kallsyms_is_lasting(const struct pm_kallsyms *kallsyms, uint64_t address)
{
	const struct pm_kallsyms_symbol *end =
		kallsyms->symbols.data + kallsyms->symbols.len;
	const struct pm_kallsyms_symbol *symbol = find_symbol(kallsyms, address);
	const char *module;

	if (!symbol)
		return false;
	module = kallsyms->names.data + symbol->module;
	if (module[0] == '\0')
		return true;
	/* Nothing marks the end of a module's last function. */
	return pm_kallsyms_is_permanent(module) && symbol + 1 < end &&
	       symbol[1].name != HOLE &&
	       strcmp(kallsyms->names.data + symbol[1].module, module) == 0;
}

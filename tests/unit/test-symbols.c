/* SPDX-License-Identifier: MIT */
/* Against libraries whose chains are known from their source: tests/unit/symbols/. */
#include "pm/symbol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "src/symbol/symbol-parts.h"
#include "tests/unit/symbols/truth.h"

enum {
	LEVELS_MAX = 16,
	TEXT_MAX = 256
};

/* ---- a file's truth ------------------------------------------------------------------- */

struct library {
	char *bytes;
	size_t len;
	uint64_t address[TRUTH_MAX]; /* svma of each mark; 0: none */
};

static char *path_of(const char *variable, const char *name)
{
	const char *dir = getenv(variable);
	char *path;

	assert_non_null(dir);
	assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
	return path;
}

static char *slurp(const char *path, size_t *len)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *bytes;

	if (fd < 0)
		return NULL;
	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	bytes[st.st_size] = '\0';
	*len = (size_t)st.st_size;
	return bytes;
}

static const Elf64_Shdr *section(const struct library *library, const char *name)
{
	const Elf64_Ehdr *ehdr = (const void *)library->bytes;
	const Elf64_Shdr *all = (const void *)(library->bytes + ehdr->e_shoff);
	const char *names = library->bytes + all[ehdr->e_shstrndx].sh_offset;

	for (size_t i = 0; i < ehdr->e_shnum; i++)
		if (strcmp(names + all[i].sh_name, name) == 0)
			return &all[i];
	return NULL;
}

static void read_truth(struct library *library, const char *name)
{
	PM_AUTO_FREE char *path = path_of("PM_TRUTH_BUILT", name);
	const Elf64_Shdr *marks;

	*library = (struct library){ 0 };
	library->bytes = slurp(path, &library->len);
	if (!library->bytes)
		skip(); /* no C++ compiler */
	marks = section(library, "pm_truth");
	assert_non_null(marks);
	for (uint64_t at = 0; at + 16 <= marks->sh_size; at += 16) {
		uint64_t pair[2];

		memcpy(pair, library->bytes + marks->sh_offset + at, sizeof(pair));
		assert_true(pair[1] < TRUTH_MAX);
		library->address[pair[1]] = marks->sh_addr + at + pair[0];
	}
}

/* The line of a source that bears the comment. */
static uint32_t line_of(const char *source, const char *tag)
{
	PM_AUTO_FREE char *path = path_of("PM_TRUTH_SOURCE", source);
	PM_AUTO_FREE char *comment = NULL;
	size_t len;
	PM_AUTO_FREE char *text = slurp(path, &len);
	const char *found;
	uint32_t line = 1;

	assert_non_null(text);
	assert_true(asprintf(&comment, "/* @%s */", tag) > 0);
	found = strstr(text, comment);
	assert_non_null(found);
	for (const char *at = text; at < found; at++)
		line += *at == '\n';
	return line;
}

/* ---- what was emitted ----------------------------------------------------------------- */

struct chain {
	size_t calls, len;
	struct {
		char name[TEXT_MAX], file[TEXT_MAX];
		uint32_t line;
		bool has_name, has_file;
	} of[LEVELS_MAX];
};

static int keep_chain(void *user, size_t index,
		      const struct pm_symbol_function *functions, size_t len)
{
	struct chain *chain = user;

	assert_int_equal(index, 0);
	assert_true(len <= LEVELS_MAX);
	chain->calls++;
	chain->len = len;
	for (size_t i = 0; i < len; i++) {
		chain->of[i].has_name = functions[i].name != NULL;
		chain->of[i].has_file = functions[i].file != NULL;
		chain->of[i].line = functions[i].line;
		snprintf(chain->of[i].name, TEXT_MAX, "%s",
			 functions[i].name ? functions[i].name : "");
		snprintf(chain->of[i].file, TEXT_MAX, "%s",
			 functions[i].file ? functions[i].file : "");
	}
	return 0;
}

static const struct pm_symbol_options everything = { .inlines = true,
						     .lines = true,
						     .debug_dir = "/nonexistent" };

static void resolve(const char *name, uint64_t address,
		    const struct pm_symbol_options *options, struct chain *chain)
{
	PM_AUTO_FREE char *path = path_of("PM_TRUTH_BUILT", name);
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct pm_error err = { 0 };

	assert_true(fd >= 0);
	memset(chain, 0, sizeof(*chain));
	assert_int_equal(
		pm_symbols_resolve(fd, &address, 1, options, keep_chain, chain, &err), 0);
	assert_int_equal(chain->calls, 1);
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* Pairs of name and tag, innermost first, ended by NULL. */
static void expect(const char *name, enum truth id, const char *source,
		   const char *const *pairs)
{
	struct library library;
	struct chain chain;
	size_t levels = 0;

	read_truth(&library, name);
	assert_int_not_equal(library.address[id], 0);
	resolve(name, library.address[id], &everything, &chain);
	for (; pairs[2 * levels]; levels++) {
		assert_true(levels < chain.len);
		assert_string_equal(chain.of[levels].name, pairs[2 * levels]);
		assert_int_equal(chain.of[levels].line,
				 line_of(source, pairs[2 * levels + 1]));
		assert_true(chain.of[levels].file[0] == '/');
		assert_null(strstr(chain.of[levels].file, "/../"));
		assert_true(ends_with(chain.of[levels].file, source));
	}
	assert_int_equal(chain.len, levels);
	free(library.bytes);
}

#define EXPECT(library, id, source, ...) \
	expect(library, id, source, (const char *const[]){ __VA_ARGS__, NULL })

static const char *const with_dwarf[] = {
	"libtruth-dwarf5.so", "libtruth-dwarf4.so", "libtruth-sections.so",
	"libtruth-gz.so",     "libtruth-linked.so",
};

/* ---- tests ---------------------------------------------------------------------------- */

static void inline_chains(void **state)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(with_dwarf); i++) {
		EXPECT(with_dwarf[i], TRUTH_CHAIN_FIRST, "truth.c", "deepest", "deepest",
		       "middle", "middle", "upper", "upper", "pm_truth_chain",
		       "chain-first");
		EXPECT(with_dwarf[i], TRUTH_CHAIN_SECOND, "truth.c", "deepest", "deepest",
		       "middle", "middle", "upper", "upper", "pm_truth_chain",
		       "chain-second");
	}
}

static void functions_without_inlining(void **state)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(with_dwarf); i++) {
		EXPECT(with_dwarf[i], TRUTH_PLAIN, "truth.c", "pm_truth_plain", "plain");
		EXPECT(with_dwarf[i], TRUTH_LOCAL, "truth.c", "____local_function",
		       "local");
	}
}

static void public_name_of_several(void **state)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(with_dwarf); i++)
		EXPECT(with_dwarf[i], TRUTH_ALIAS, "truth.c", "pm_truth_alias", "alias");
}

static void cold_part_belongs_to_its_function(void **state)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(with_dwarf); i++) {
		EXPECT(with_dwarf[i], TRUTH_HOT, "truth.c", "pm_truth_cold", "hot");
		EXPECT(with_dwarf[i], TRUTH_COLD, "truth.c", "pm_truth_cold", "cold");
		EXPECT(with_dwarf[i], TRUTH_COLD_INLINE, "truth.c", "deepest", "deepest",
		       "pm_truth_cold", "cold-inline");
	}
}

static void names_by_symbols_alone(void **state)
{
	struct library library;
	struct chain chain;

	read_truth(&library, "libtruth-plain.so");
	resolve("libtruth-plain.so", library.address[TRUTH_CHAIN_FIRST], &everything,
		&chain);
	assert_int_equal(chain.len, 1);
	assert_string_equal(chain.of[0].name, "pm_truth_chain");
	assert_false(chain.of[0].has_file);
	assert_int_equal(chain.of[0].line, 0);
	resolve("libtruth-plain.so", library.address[TRUTH_LOCAL], &everything, &chain);
	assert_string_equal(chain.of[0].name, "____local_function");
	resolve("libtruth-plain.so", library.address[TRUTH_ALIAS], &everything, &chain);
	assert_string_equal(chain.of[0].name, "pm_truth_alias");
	free(library.bytes);
}

/* Local functions are gone with .symtab: to name them after a neighbour would be a lie. */
static void stripped_knows_exported_functions_only(void **state)
{
	struct library library;
	struct chain chain;

	read_truth(&library, "libtruth-stripped.so");
	resolve("libtruth-stripped.so", library.address[TRUTH_PLAIN], &everything,
		&chain);
	assert_int_equal(chain.len, 1);
	assert_string_equal(chain.of[0].name, "pm_truth_plain");
	resolve("libtruth-stripped.so", library.address[TRUTH_LOCAL], &everything,
		&chain);
	assert_int_equal(chain.len, 0);
	free(library.bytes);
}

static void assembler_labels(void **state)
{
	struct library library;
	struct chain chain;

	read_truth(&library, "libtruth-dwarf5.so");
	resolve("libtruth-dwarf5.so", library.address[TRUTH_UNSIZED], &everything,
		&chain);
	assert_int_equal(chain.len, 1);
	assert_string_equal(chain.of[0].name, "pm_truth_unsized");
	/* Behind a function that has a size there is no function. */
	resolve("libtruth-dwarf5.so", library.address[TRUTH_NOBODY], &everything, &chain);
	assert_false(chain.len > 0 && chain.of[0].has_name);
	free(library.bytes);
}

static void options_are_heeded(void **state)
{
	const struct pm_symbol_options outermost = { .lines = true,
						     .debug_dir = "/none" };
	const struct pm_symbol_options names = { .inlines = true, .debug_dir = "/none" };
	struct library library;
	struct chain chain;

	read_truth(&library, "libtruth-dwarf5.so");
	resolve("libtruth-dwarf5.so", library.address[TRUTH_CHAIN_SECOND], &outermost,
		&chain);
	assert_int_equal(chain.len, 1);
	assert_string_equal(chain.of[0].name, "pm_truth_chain");
	assert_int_equal(chain.of[0].line, line_of("truth.c", "chain-second"));
	resolve("libtruth-dwarf5.so", library.address[TRUTH_CHAIN_SECOND], &names,
		&chain);
	assert_int_equal(chain.len, 4);
	for (size_t i = 0; i < chain.len; i++) {
		assert_false(chain.of[i].has_file);
		assert_int_equal(chain.of[i].line, 0);
	}
	free(library.bytes);
}

/* The build-id note's 20 bytes (ELF note header, "GNU\0", SHA-1). */
static void build_id_hex(const struct library *library, char *hex)
{
	const Elf64_Shdr *note = section(library, ".note.gnu.build-id");

	assert_non_null(note);
	assert_int_equal(note->sh_size, 36);
	for (size_t i = 0; i < 20; i++)
		snprintf(hex + 2 * i, 3, "%02x",
			 (unsigned char)library->bytes[note->sh_offset + 16 + i]);
}

static void copy_file(const char *from, const char *to)
{
	size_t len;
	PM_AUTO_FREE char *bytes = slurp(from, &len);
	PM_AUTO_FCLOSE FILE *file = fopen(to, "wbe");

	assert_non_null(bytes);
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
}

static void resolve_with_debug_file(const char *debug, struct chain *chain)
{
	char dir[] = "/tmp/pm-symbols-XXXXXX", hex[41], path[256];
	PM_AUTO_FREE char *from = path_of("PM_TRUTH_BUILT", debug);
	struct library library;
	struct pm_symbol_options options = everything;

	read_truth(&library, "libtruth-stripped.so");
	build_id_hex(&library, hex);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/.build-id", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/.build-id/%.2s", dir, hex);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", dir, hex, hex + 2);
	copy_file(from, path);
	options.debug_dir = dir;
	resolve("libtruth-stripped.so", library.address[TRUTH_CHAIN_FIRST], &options,
		chain);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(dir);
	free(library.bytes);
}

static void debug_file_by_build_id(void **state)
{
	struct chain chain;

	resolve_with_debug_file("libtruth.debug", &chain);
	assert_int_equal(chain.len, 4);
	assert_string_equal(chain.of[0].name, "deepest");
	assert_int_equal(chain.of[3].line, line_of("truth.c", "chain-first"));
}

static void debug_file_of_another_build_is_refused(void **state)
{
	struct chain chain;

	resolve_with_debug_file("libtruth-dwarf4.so", &chain);
	assert_int_equal(chain.len, 1);
	assert_string_equal(chain.of[0].name, "pm_truth_chain");
	assert_false(chain.of[0].has_file);
}

static void plt_entries(void **state)
{
	struct library library;
	const Elf64_Shdr *plt;
	bool any = false;

	read_truth(&library, "libtruth-dwarf5.so");
	plt = section(&library, ".plt.sec");
	if (!plt)
		plt = section(&library, ".plt");
	assert_non_null(plt);
	for (uint64_t at = 0; at < plt->sh_size; at += 16) {
		struct chain chain;

		/* In the middle of the entry, where samples fall. */
		resolve("libtruth-dwarf5.so", plt->sh_addr + at + 6, &everything, &chain);
		if (chain.len == 0)
			continue; /* the entry that all others go through */
		assert_int_equal(chain.len, 1);
		assert_true(ends_with(chain.of[0].name, "@plt"));
		any |= strcmp(chain.of[0].name, "pm_truth_plain@plt") == 0;
	}
	assert_true(any);
	free(library.bytes);
}

static void cpp_names(void **state)
{
	const char *cxx = getenv("PM_TRUTH_CXX");
	const char *lambda;

	assert_non_null(cxx);
	if (strcmp(cxx, "none") == 0) {
		print_message("no C++ compiler made a library to look at\n");
		skip();
	}
	lambda = strcmp(cxx, "clang") == 0 ? "pm_truth_cpp::$_0::operator()"
					   : "pm_truth_cpp::{lambda(int)#1}::operator()";
	EXPECT("libtruth-cpp.so", TRUTH_CPP_METHOD, "truth-cpp.cc",
	       "outer::Box<int>::run", "run");
	EXPECT("libtruth-cpp.so", TRUTH_CPP_INLINED, "truth-cpp.cc",
	       "outer::Box<int>::twice", "twice", "outer::Box<int>::run", "run-twice");
	EXPECT("libtruth-cpp.so", TRUTH_CPP_LAMBDA, "truth-cpp.cc", lambda, "lambda");
	EXPECT("libtruth-cpp.so", TRUTH_CPP_LOCAL_CLASS, "truth-cpp.cc",
	       "outer::(anonymous namespace)::Hidden::apply(int)::Local::step", "step");
}

/* The innermost function where @id is. */
static void name_at(const char *file, enum truth id, char name[static TEXT_MAX])
{
	struct library library;
	struct chain chain;

	read_truth(&library, file);
	assert_int_not_equal(library.address[id], 0);
	resolve(file, library.address[id], &everything, &chain);
	assert_true(chain.len > 1);
	memcpy(name, chain.of[0].name, TEXT_MAX);
	free(library.bytes);
}

static bool begins_with(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

/* Lambdas and classes without names, in one caller and in two, are inlined functions of their own
 * names. */
static void check_nameless(const char *file)
{
	static const enum truth ids[] = { TRUTH_CPP_TWIN,   TRUTH_CPP_OTHER_TWIN,
					  TRUTH_CPP_NESTED, TRUTH_CPP_UNNAMED,
					  TRUTH_CPP_AWAY,   TRUTH_CPP_LOCAL_INLINED };
	char names[PM_ARRAY_LEN(ids)][TEXT_MAX], begin[TEXT_MAX];
	const char *cxx = getenv("PM_TRUTH_CXX");

	for (size_t i = 0; i < PM_ARRAY_LEN(ids); i++) {
		name_at(file, ids[i], names[i]);
		for (size_t before = 0; before < i; before++)
			assert_string_not_equal(names[before], names[i]);
	}
	if (strcmp(cxx, "gcc") != 0)
		return; /* clang gives names to all of them */
	snprintf(begin, sizeof(begin), "pm_truth_nameless::{lambda truth-cpp.cc:%u:",
		 line_of("truth-cpp.cc", "twins"));
	assert_true(begins_with(names[0], begin) && begins_with(names[1], begin));
	assert_true(ends_with(names[0], "}::operator()"));
	assert_true(begins_with(names[2], "pm_truth_nameless::{lambda truth-cpp.cc:"));
	assert_non_null(strstr(names[2], "}::operator()::{lambda truth-cpp.cc:"));
	assert_true(begins_with(names[3],
				"outer::(anonymous namespace)::{unnamed truth-cpp.cc:"));
	assert_true(begins_with(names[4], "outer::away(int)::{lambda truth-cpp.cc:"));
	assert_string_equal(names[5], "outer::away(int)::Local::step");
}

static void nameless_classes(void **state)
{
	const char *cxx = getenv("PM_TRUTH_CXX");

	assert_non_null(cxx);
	if (strcmp(cxx, "none") == 0)
		skip();
	check_nameless("libtruth-cpp.so");
}

/* What an inlined copy refers to is in another unit then. */
static void nameless_classes_of_other_units(void **state)
{
	char *path = path_of("PM_TRUTH_BUILT", "libtruth-cpp-lto.so");
	bool there = access(path, R_OK) == 0;

	free(path); /* at once: skip() comes back to no cleanup */
	if (!there) {
		print_message("# there is no g++ with -flto\n");
		skip();
	}
	check_nameless("libtruth-cpp-lto.so");
}

struct batch {
	size_t next, known;
};

static int count(void *user, size_t index, const struct pm_symbol_function *functions,
		 size_t len)
{
	struct batch *batch = user;

	assert_int_equal(index, batch->next++);
	batch->known += len > 0 && functions[len - 1].name;
	return 0;
}

static int stop_at_third(void *user, size_t index,
			 const struct pm_symbol_function *functions, size_t len)
{
	++*(size_t *)user;
	return index == 2 ? -ECANCELED : 0;
}

static void emit_stops(void **state)
{
	PM_AUTO_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const uint64_t addresses[] = { 1, 2, 3, 4, 5 };
	size_t calls = 0;

	assert_int_equal(pm_symbols_resolve(fd, addresses, 5, &everything, stop_at_third,
					    &calls, NULL),
			 -ECANCELED);
	assert_int_equal(calls, 3);
}

static void odd_addresses(void **state)
{
	PM_AUTO_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const uint64_t addresses[] = { 0, 1, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX };
	struct batch batch = { 0 };

	assert_int_equal(
		pm_symbols_resolve(fd, addresses, 5, &everything, count, &batch, NULL),
		0);
	assert_int_equal(batch.next, 5);
	assert_int_equal(batch.known, 0);
	assert_int_equal(
		pm_symbols_resolve(fd, NULL, 0, &everything, count, &batch, NULL), 0);
	assert_int_equal(batch.next, 5);
}

static void no_elf(void **state)
{
	static const char script[] = "#!/bin/sh\nexit 0\n# not an ELF file\n";
	PM_AUTO_CLOSE int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const uint64_t address = 1;
	struct batch batch = { 0 };
	struct pm_error err = { 0 };

	assert_int_equal(
		pm_symbols_resolve(fd, &address, 1, &everything, count, &batch, &err),
		-ENOEXEC);
	assert_int_equal(err.code, -ENOEXEC);
	assert_int_equal(pm_symbols_resolve_memory(script, sizeof(script), &address, 1,
						   &everything, count, &batch, NULL),
			 -ENOEXEC);
	assert_int_equal(pm_symbols_resolve_memory("\177ELF", 4, &address, 1, &everything,
						   count, &batch, NULL),
			 -ENOEXEC);
	assert_int_equal(batch.next, 0);
}

/* Sizes that libelf believes, of tables that it goes through again and again. */
static void endless_tables(void **state)
{
	const uint64_t address = 1;
	struct batch batch = { 0 };
	struct {
		Elf64_Ehdr header;
		Elf64_Shdr sections[3];
		Elf64_Phdr segments[PN_XNUM];
	} *elf = calloc(1, sizeof(*elf));

	assert_non_null(elf);
	elf->header = (Elf64_Ehdr){
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(elf->header),
		.e_shoff = offsetof(__typeof__(*elf), sections),
		.e_shentsize = sizeof(elf->sections[0]),
		.e_shnum = 3,
		.e_shstrndx = 1,
		.e_phoff = offsetof(__typeof__(*elf), segments),
		.e_phentsize = sizeof(elf->segments[0]),
	};
	elf->sections[1].sh_type = SHT_STRTAB;
	elf->sections[1].sh_size = 1 << 20;
	assert_int_equal(pm_symbols_resolve_memory(elf, sizeof(*elf), &address, 1,
						   &everything, count, &batch, NULL),
			 0);
	batch = (struct batch){ 0 };
	elf->sections[1].sh_size = 1 << 30;
	assert_int_equal(pm_symbols_resolve_memory(elf, sizeof(*elf), &address, 1,
						   &everything, count, &batch, NULL),
			 -ENOEXEC);
	elf->sections[1].sh_size = 1;
	elf->header.e_phnum = PN_XNUM;
	elf->sections[0].sh_info = PN_XNUM;
	assert_int_equal(pm_symbols_resolve_memory(elf, sizeof(*elf), &address, 1,
						   &everything, count, &batch, NULL),
			 -ENOEXEC);
	assert_int_equal(batch.next, 0);
	free(elf);
}

/*
 * What it exports, and what is shown of it: on x86-64 there is a weak alias without underscores,
 * which is what programs call.
 */
#ifdef __aarch64__
#define VDSO_CLOCK       "__kernel_clock_gettime"
#define VDSO_CLOCK_SHOWN VDSO_CLOCK
#else
#define VDSO_CLOCK       "__vdso_clock_gettime"
#define VDSO_CLOCK_SHOWN "clock_gettime"
#endif

/* The kernel's own library, as it lies in this process. */
static void vdso(void **state)
{
	union {
		unsigned long value;
		const Elf64_Ehdr *ehdr;
		const char *bytes;
	} image = { getauxval(AT_SYSINFO_EHDR) };
	struct chain chain = { 0 };
	const Elf64_Shdr *sections;
	size_t len;

	if (!image.value)
		skip();
	len = image.ehdr->e_shoff + (size_t)image.ehdr->e_shnum * image.ehdr->e_shentsize;
	sections = (const void *)(image.bytes + image.ehdr->e_shoff);
	for (size_t i = 0; i < image.ehdr->e_shnum; i++) {
		if (sections[i].sh_type != SHT_DYNSYM)
			continue;
		const char *names = image.bytes + sections[sections[i].sh_link].sh_offset;
		const Elf64_Sym *symbols =
			(const void *)(image.bytes + sections[i].sh_offset);

		for (size_t n = 0; n < sections[i].sh_size / sizeof(*symbols); n++) {
			if (strcmp(names + symbols[n].st_name, VDSO_CLOCK) != 0)
				continue;
			uint64_t address = symbols[n].st_value + 1;

			assert_int_equal(pm_symbols_resolve_memory(
						 image.bytes, len, &address, 1,
						 &everything, keep_chain, &chain, NULL),
					 0);
		}
	}
	assert_int_equal(chain.calls, 1);
	assert_int_equal(chain.len, 1);
	assert_string_equal(chain.of[0].name, VDSO_CLOCK_SHOWN);
}

/* Every prefix of a library: nothing crashes, everything is emitted or refused. */
static void truncated_files(void **state)
{
	struct library library;
	uint64_t addresses[TRUTH_MAX];
	size_t len = 0;

	read_truth(&library, "libtruth-dwarf5.so");
	for (size_t i = 0; i < TRUTH_MAX; i++) {
		size_t at = len;

		if (!library.address[i])
			continue;
		while (at > 0 && addresses[at - 1] > library.address[i]) {
			addresses[at] = addresses[at - 1];
			at--;
		}
		addresses[at] = library.address[i];
		len++;
	}
	for (size_t cut = 0; cut < library.len; cut += 97) {
		struct batch batch = { 0 };
		int code = pm_symbols_resolve_memory(library.bytes, cut, addresses, len,
						     &everything, count, &batch, NULL);

		assert_true(code == 0 || code == -ENOEXEC);
		assert_int_equal(batch.next, code == 0 ? len : 0);
	}
	free(library.bytes);
}

/* As a build does that writes over a library in place. */
static void file_cut_short_while_it_is_read(void **state)
{
	char path[] = "/tmp/pm-symbols-XXXXXX";
	PM_AUTO_CLOSE int fd = mkstemp(path);
	struct pm_elf_image image = { 0 };
	struct library library;
	struct pm_elf_symbol symbol = { 0 };

	assert_true(fd >= 0);
	unlink(path);
	read_truth(&library, "libtruth-dwarf5.so");
	assert_int_equal(write(fd, library.bytes, library.len), library.len);
	assert_int_equal(pm_elf_image_open(&image, fd, false), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	const struct pm_wanted wanted = { &library.address[TRUTH_PLAIN], 1 };

	assert_int_equal(pm_symtab_resolve(&image, NULL, &wanted, &symbol), 0);
	assert_null(symbol.name);
	pm_elf_image_close(&image);
	free(library.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inline_chains),
		cmocka_unit_test(functions_without_inlining),
		cmocka_unit_test(public_name_of_several),
		cmocka_unit_test(cold_part_belongs_to_its_function),
		cmocka_unit_test(names_by_symbols_alone),
		cmocka_unit_test(stripped_knows_exported_functions_only),
		cmocka_unit_test(assembler_labels),
		cmocka_unit_test(options_are_heeded),
		cmocka_unit_test(debug_file_by_build_id),
		cmocka_unit_test(debug_file_of_another_build_is_refused),
		cmocka_unit_test(plt_entries),
		cmocka_unit_test(cpp_names),
		cmocka_unit_test(nameless_classes),
		cmocka_unit_test(nameless_classes_of_other_units),
		cmocka_unit_test(emit_stops),
		cmocka_unit_test(odd_addresses),
		cmocka_unit_test(no_elf),
		cmocka_unit_test(endless_tables),
		cmocka_unit_test(vdso),
		cmocka_unit_test(truncated_files),
		cmocka_unit_test(file_cut_short_while_it_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

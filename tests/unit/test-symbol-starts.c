/* SPDX-License-Identifier: MIT */
/* Where functions begin that a stripped library has no symbols for; the one that it was made of
 * (tests/unit/symbols/) still has them. */
#include "pm/symbol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum {
	BYTES_MAX = 4096, /* of code that is looked at */
	MADE_MAX = 160, /* bytes of .eh_frame */
};

static const struct pm_symbol_options starts = {
	.inlines = true, .lines = true, .starts = true, .debug_dir = "/nonexistent"
};

/* ---- files ------------------------------------------------------------------------------ */

struct library {
	uint8_t *bytes;
	size_t len;
};

static struct library slurp(const char *name)
{
	const char *dir = getenv("PM_TRUTH_BUILT");
	PM_AUTO_FREE char *path = NULL;
	struct library library = { 0 };
	struct stat st;

	assert_non_null(dir);
	assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	library.len = (size_t)st.st_size;
	library.bytes = malloc(library.len);
	assert_non_null(library.bytes);
	assert_int_equal(read(fd, library.bytes, library.len), library.len);
	return library;
}

static const Elf64_Shdr *section(const struct library *library, const char *name)
{
	const Elf64_Ehdr *ehdr = (const void *)library->bytes;
	const Elf64_Shdr *all = (const void *)(library->bytes + ehdr->e_shoff);
	const uint8_t *names = library->bytes + all[ehdr->e_shstrndx].sh_offset;

	for (size_t i = 0; i < ehdr->e_shnum; i++)
		if (strcmp((const char *)names + all[i].sh_name, name) == 0)
			return &all[i];
	fail_msg("no %s", name);
	return NULL;
}

/* ---- what is found -------------------------------------------------------------------------- */

/* From one address on, one for each byte. */
struct found {
	uint64_t base;
	size_t next, len;
	bool named[BYTES_MAX];
	uint64_t start[BYTES_MAX];
};

static int keep(void *user, size_t index, const struct pm_symbol_function *functions,
		size_t len)
{
	struct found *found = user;

	assert_int_equal(index, found->next++);
	found->named[index] = len > 0 && functions[len - 1].name;
	found->start[index] = len > 0 ? functions[len - 1].start : 0;
	/* An address has a chain if and only if something is known about it. */
	for (size_t i = 0; i < len; i++) {
		assert_true(functions[i].name || functions[i].file || functions[i].start);
		assert_true(i + 1 == len || functions[i].start == 0);
	}
	assert_true(found->start[index] <= found->base + index);
	return 0;
}

static void find(const struct library *library, const struct pm_symbol_options *options,
		 uint64_t base, size_t len, struct found *found)
{
	uint64_t addresses[BYTES_MAX];

	assert_true(len <= BYTES_MAX);
	memset(found, 0, sizeof(*found));
	found->base = base;
	found->len = len;
	for (size_t i = 0; i < len; i++)
		addresses[i] = base + i;
	assert_int_equal(pm_symbols_resolve_memory(library->bytes, library->len,
						   addresses, len, options, keep, found,
						   NULL),
			 0);
	assert_int_equal(found->next, len);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void same_as_symbols(void **state)
{
	struct library full = slurp("libtruth-dwarf5.so"),
		       bare = slurp("libtruth-stripped.so");
	const Elf64_Shdr *text = section(&full, ".text"),
			 *table = section(&full, ".symtab");
	const Elf64_Sym *symbols = (const void *)(full.bytes + table->sh_offset);
	const char *names =
		(const char *)full.bytes + section(&full, ".strtab")->sh_offset;
	static struct found named, found;
	size_t functions = 0;

	find(&full, &starts, text->sh_addr, text->sh_size, &named);
	find(&bare, &starts, text->sh_addr, text->sh_size, &found);
	for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++) {
		uint64_t at = symbols[i].st_value - text->sh_addr;
		bool counted = false;

		/* glibc's for aarch64, which has no entry in .eh_frame. */
		if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC ||
		    at >= text->sh_size ||
		    strcmp(names + symbols[i].st_name, "call_weak_fn") == 0)
			continue;
		for (uint64_t k = at; k < at + symbols[i].st_size; k++) {
			assert_true(named.named[k]);
			assert_int_equal(named.start[k], 0);
			assert_int_equal(found.start[k],
					 found.named[k] ? 0 : symbols[i].st_value);
			counted |= !found.named[k];
		}
		functions += counted;
	}
	/* ____local_function and its alias; of gcc's, the cold part of another one, too. */
	assert_true(functions >= 2);
	free(full.bytes);
	free(bare.bytes);
}

static void only_if_asked_for(void **state)
{
	struct library bare = slurp("libtruth-stripped.so");
	const Elf64_Shdr *text = section(&bare, ".text");
	struct pm_symbol_options options = starts;
	static struct found found;

	options.starts = false;
	find(&bare, &options, text->sh_addr, text->sh_size, &found);
	for (size_t i = 0; i < text->sh_size; i++)
		assert_int_equal(found.start[i], 0);
	free(bare.bytes);
}

/* Without what names them: .eh_frame has one function for all. */
static void entries_of_the_plt(void **state)
{
	enum {
		HEADER_BYTES = 32, /* or less */
		ENTRY_BYTES = 16,
	};
	struct library bare = slurp("libtruth-stripped.so");
	const Elf64_Shdr *plt = section(&bare, ".plt"),
			 *names = section(&bare, ".rela.plt");
	static struct found found;

	memset(bare.bytes + names->sh_offset, 0, names->sh_size);
	assert_true(plt->sh_size >= HEADER_BYTES + ENTRY_BYTES);
	find(&bare, &starts, plt->sh_addr, plt->sh_size, &found);
	for (size_t i = HEADER_BYTES; i < plt->sh_size; i++)
		assert_int_equal(found.start[i], plt->sh_addr + i - i % ENTRY_BYTES);
	free(bare.bytes);
}

/* ---- an .eh_frame made by hand ---------------------------------------------------------------- */

struct made {
	uint8_t bytes[MADE_MAX];
	size_t len, length_at, body; /* of the entry at hand */
	uint64_t svma;
};

static void put(struct made *made, const void *bytes, size_t len)
{
	assert_true(made->len + len <= MADE_MAX);
	memcpy(made->bytes + made->len, bytes, len);
	made->len += len;
}

static void put_number(struct made *made, uint64_t number, size_t bytes)
{
	put(made, &number, bytes); /* little-endian, as all that is built */
}

static void begin(struct made *made, bool is_64, size_t cie)
{
	put_number(made, is_64 ? UINT32_MAX : 0, 4);
	made->length_at = is_64 ? made->len : made->len - 4;
	if (is_64)
		put_number(made, 0, 8);
	made->body = made->len;
	put_number(made, cie == SIZE_MAX ? 0 : made->len - cie, 4);
}

static void end(struct made *made)
{
	uint64_t len = made->len - made->body;

	memcpy(made->bytes + made->length_at, &len, 4);
}

/* @augmentation and its data, with version, alignments and register. Returns where it is. */
static size_t put_cie(struct made *made, const char *letters, const void *data,
		      size_t len)
{
	static const uint8_t middle[] = { 1, 0x78, 16 };
	size_t at = made->len;

	begin(made, false, SIZE_MAX);
	put_number(made, 1, 1);
	put(made, letters, strlen(letters) + 1);
	put(made, middle, sizeof(middle));
	if (len > 0)
		put_number(made, len, 1);
	put(made, data, len);
	end(made);
	return at;
}

static uint64_t place(const struct made *made)
{
	return made->svma + made->len;
}

/* All forms that compilers and linkers make, and what lies between them. */
static void forms_of_entries(void **state)
{
	static const uint8_t all[] = { 0x9b, 1, 2, 3, 4, 0x1b, 0x1b }, wide[] = { 0x1c };
	struct library bare = slurp("libtruth-stripped.so");
	const Elf64_Shdr *frames = section(&bare, ".eh_frame"),
			 *text = section(&bare, ".text");
	struct made made = { .svma = frames->sh_addr };
	static struct found found;
	uint64_t base = 0;
	size_t cie;

	find(&bare, &starts, text->sh_addr, text->sh_size, &found);
	for (size_t i = 0; i < text->sh_size && base == 0; i++)
		/* ____local_function: what else has no name is shorter, or has no entry. */
		if (found.start[i] == text->sh_addr + i && i + 12 < text->sh_size &&
		    found.start[i + 12] == found.start[i])
			base = found.start[i];
	assert_int_not_equal(base, 0);
	cie = put_cie(&made, "", "", 0);
	begin(&made, false, cie);
	put_number(&made, base, 8);
	put_number(&made, 2, 8);
	end(&made);
	put_number(&made, 0, 4); /* as crtend.o has it, in the middle after ld -r */
	cie = put_cie(&made, "zPLR", all, sizeof(all));
	begin(&made, false, cie);
	put_number(&made, base + 3 - place(&made), 4);
	put_number(&made, 2, 4);
	end(&made);
	cie = put_cie(&made, "zSR", wide, sizeof(wide));
	begin(&made, true, cie);
	put_number(&made, base + 5 - place(&made), 8);
	put_number(&made, 3, 8);
	end(&made);
	assert_true(made.len <= frames->sh_size);
	memset(bare.bytes + frames->sh_offset, 0, frames->sh_size);
	memcpy(bare.bytes + frames->sh_offset, made.bytes, made.len);
	find(&bare, &starts, base, 10, &found);
	for (size_t i = 0; i < 10; i++) {
		uint64_t start = i < 2   ? base
				 : i < 3 ? 0
				 : i < 5 ? base + 3
				 : i < 8 ? base + 5
					 : 0;

		assert_false(found.named[i]);
		assert_int_equal(found.start[i], start);
	}
	free(bare.bytes);
}

/* Every byte broken in some ways: less is found, or something else, but keep() holds. */
static void broken_entries(void **state)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct library bare = slurp("libtruth-stripped.so");
	const Elf64_Shdr *frames = section(&bare, ".eh_frame"),
			 *text = section(&bare, ".text");
	uint8_t *bytes = bare.bytes + frames->sh_offset;
	static struct found found;

	for (size_t i = 0; i < frames->sh_size; i++) {
		uint8_t before = bytes[i];

		for (size_t k = 0; k < sizeof(values); k++) {
			bytes[i] = values[k];
			find(&bare, &starts, text->sh_addr, 64, &found);
		}
		bytes[i] = before;
	}
	free(bare.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_symbols),    cmocka_unit_test(only_if_asked_for),
		cmocka_unit_test(entries_of_the_plt), cmocka_unit_test(forms_of_entries),
		cmocka_unit_test(broken_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

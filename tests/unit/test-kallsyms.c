/* SPDX-License-Identifier: MIT */
/* Kernel symbols: from texts with known answers, and from this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int load_bytes(struct pm_kallsyms **ret, const char *text, size_t len,
		      struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = memfd_create("test-kallsyms", MFD_CLOEXEC);
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return pm_kallsyms_load(ret, path, err);
}

static struct pm_kallsyms *load(const char *text)
{
	struct pm_kallsyms *kallsyms = NULL;
	struct pm_error err;

	if (load_bytes(&kallsyms, text, strlen(text), &err) < 0)
		fail_msg("%s", err.text);
	return kallsyms;
}

static void expect(const struct pm_kallsyms *kallsyms, uint64_t address, const char *name,
		   const char *module)
{
	const char *found_module = "unset";
	const char *found = pm_kallsyms_find(kallsyms, address, &found_module);

	if (!name) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_string_equal(found, name);
	assert_string_equal(found_module, module);
	assert_ptr_equal(pm_kallsyms_find(kallsyms, address, NULL), found);
}

static void a_symbol_covers_up_to_the_next(void **state)
{
	struct pm_kallsyms *kallsyms = load("ffffffff81000000 T first\n"
					    "ffffffff81000010 t second\n"
					    "ffffffff81000030 W third\n"
					    "ffffffff81000040 w fourth\n");

	expect(kallsyms, 0, NULL, NULL);
	expect(kallsyms, 0xffffffff80ffffff, NULL, NULL);
	expect(kallsyms, 0xffffffff81000000, "first", "");
	expect(kallsyms, 0xffffffff8100000f, "first", "");
	expect(kallsyms, 0xffffffff81000010, "second", "");
	expect(kallsyms, 0xffffffff8100003f, "third", "");
	expect(kallsyms, 0xffffffff81000040, "fourth", "");
	expect(kallsyms, 0xffffffff81000fff, "fourth", "");
	/* No function is that long: what lies there is unknown. */
	expect(kallsyms, 0xffffffffffffffff, NULL, NULL);
	pm_kallsyms_free(kallsyms);
}

static void data_and_numbers_are_no_functions(void **state)
{
	struct pm_kallsyms *kallsyms = load("0000000000000000 A fixed_percpu_data\n"
					    "0000000000001000 A cpu_tss\n"
					    "ffffffff81000000 T function\n"
					    "ffffffff81000008 a number\n"
					    "ffffffff81000100 D data\n"
					    "ffffffff81000200 r more_data\n"
					    "ffffffff81000300 T later\n"
					    "ffffffff81000400 T _etext\n");

	expect(kallsyms, 0x1000, NULL, NULL);
	expect(kallsyms, 0xffffffff81000008, "function", "");
	expect(kallsyms, 0xffffffff810000ff, "function", "");
	expect(kallsyms, 0xffffffff81000100, NULL, NULL);
	expect(kallsyms, 0xffffffff81000200, NULL, NULL);
	expect(kallsyms, 0xffffffff81000300, "later", "");
	expect(kallsyms, 0xffffffff81000400, NULL, NULL);
	pm_kallsyms_free(kallsyms);
}

static void modules_are_named(void **state)
{
	struct pm_kallsyms *kallsyms = load("ffffffff81000000 T core\n"
					    "ffffffffc0000000 t init\t[ext4]\n"
					    "ffffffffc0000100 t next\t[ext4]\n"
					    "ffffffffc0000200 t init\t[xfs]\n"
					    "ffffffffc0000300 t bpf_prog_1\t[bpf]\n"
					    "ffffffffc0000400 T again\n"
					    "ffffffffc0000500 t odd\t[\n"
					    "ffffffffc0000600 t odder\t]\n");

	expect(kallsyms, 0xffffffff81000004, "core", "");
	expect(kallsyms, 0xffffffffc0000000, "init", "ext4");
	expect(kallsyms, 0xffffffffc0000100, "next", "ext4");
	expect(kallsyms, 0xffffffffc0000200, "init", "xfs");
	expect(kallsyms, 0xffffffffc0000300, "bpf_prog_1", "bpf");
	expect(kallsyms, 0xffffffffc0000400, "again", "");
	expect(kallsyms, 0xffffffffc0000500, "odd", "");
	expect(kallsyms, 0xffffffffc0000600, "odder", "");
	pm_kallsyms_free(kallsyms);
}

static void order_of_the_file_does_not_matter(void **state)
{
	struct pm_kallsyms *kallsyms = load("ffffffffc0000000 t module\t[m]\n"
					    "ffffffff81000200 T c\n"
					    "ffffffff81000180 D data\n"
					    "ffffffff81000000 T a\n"
					    "ffffffff81000100 T b\n");

	expect(kallsyms, 0xffffffff81000000, "a", "");
	expect(kallsyms, 0xffffffff81000100, "b", "");
	expect(kallsyms, 0xffffffff81000180, NULL, NULL);
	expect(kallsyms, 0xffffffff81000200, "c", "");
	expect(kallsyms, 0xffffffffc0000000, "module", "m");
	pm_kallsyms_free(kallsyms);
}

static void of_aliases_the_plainest_is_shown(void **state)
{
	struct pm_kallsyms *kallsyms = load("ffffffff81000000 T _stext\n"
					    "ffffffff81000000 T startup\n"
					    "ffffffff81000000 T __text\n"
					    "ffffffff81000000 T also\n"
					    "ffffffff81000010 T __x64_sys_read\n"
					    "ffffffff81000010 D __data\n"
					    "ffffffff81000020 D edata\n"
					    "ffffffff81000020 T next\n");

	expect(kallsyms, 0xffffffff81000000, "startup", "");
	expect(kallsyms, 0xffffffff81000010, "__x64_sys_read", "");
	expect(kallsyms, 0xffffffff81000020, "next", "");
	pm_kallsyms_free(kallsyms);
}

static void lines_of_another_form_are_passed_over(void **state)
{
	static const char text[] = "\n\n \nT\nffffffff81000000\nffffffff81000000 T\n"
				   "ffffffff81000000 T \nffffffff81000000  T x\n"
				   "fffffffff81000000 T too_long\n"
				   "0xffffffff81000000 T prefixed\n"
				   "ffffffff81000000 TT x\n"
				   "ffffffff81000000 T nu\0l\n"
				   "zz T x\n"
				   "10 T short_address\n"
				   "ffffffff81000000 T good";
	struct pm_kallsyms *kallsyms = NULL;

	assert_int_equal(load_bytes(&kallsyms, text, sizeof(text) - 1, NULL), 0);
	expect(kallsyms, 0xffffffff81000000, "good", "");
	expect(kallsyms, 0x10, "short_address", "");
	pm_kallsyms_free(kallsyms);
}

static void zeros_are_told_with_their_remedy(void **state)
{
	struct pm_kallsyms *kallsyms = NULL;
	struct pm_error err = { 0 };
	static const char text[] = "0000000000000000 T a\n0000000000000000 t b\t[m]\n";

	assert_int_equal(load_bytes(&kallsyms, text, sizeof(text) - 1, &err), -EACCES);
	assert_null(kallsyms);
	assert_non_null(strstr(err.text, "the kernel hides its addresses"));
	assert_non_null(strstr(err.fix, "sudo sysctl kernel."));
}

static void files_that_hold_none(void **state)
{
	struct pm_kallsyms *kallsyms = NULL;
	struct pm_error err = { 0 };
	char name[] = "/tmp/test-kallsyms-XXXXXX";

	assert_int_equal(load_bytes(&kallsyms, "", 0, &err), -EBADMSG);
	assert_int_equal(load_bytes(&kallsyms, "hello\n", 6, &err), -EBADMSG);
	assert_int_equal(pm_kallsyms_load(&kallsyms, "/no/such", &err), -ENOENT);
	assert_string_equal(err.source, "/no/such");
	assert_int_equal(pm_kallsyms_load(&kallsyms, "/tmp", &err), -EINVAL);
	/* A FIFO must not make us wait for a writer. */
	assert_non_null(mkdtemp(name));
	assert_int_equal(rmdir(name), 0);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(pm_kallsyms_load(&kallsyms, name, &err), -EINVAL);
	unlink(name);
	assert_null(kallsyms);
}

/* A line of the kernel's text. */
struct place {
	uint64_t address;
	size_t line;
	bool is_text;
	char *name;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

/* Reads all lines but those of absolute symbols, and sorts them by address. */
static struct place *read_places(FILE *file, size_t *len)
{
	struct place *places = NULL;
	PM_AUTO_FREE char *line = NULL;
	size_t cap = 0, places_cap = 0;

	*len = 0;
	for (size_t i = 0; getline(&line, &cap, file) > 0; i++) {
		struct place place = { .line = i };
		char type, name[1024];

		assert_int_equal(sscanf(line, "%" SCNx64 " %c %1023s", &place.address,
					&type, name),
				 3);
		if (place.address == 0 || strchr("aA", type))
			continue;
		place.is_text = strchr("tTwW", type) && strcmp(name, "_etext") != 0 &&
				strcmp(name, "_einittext") != 0;
		place.name = strdup(name);
		assert_non_null(place.name);
		if (*len == places_cap) {
			places_cap = 2 * places_cap + 1024;
			places = realloc(places, places_cap * sizeof(*places));
			assert_non_null(places);
		}
		places[(*len)++] = place;
	}
	assert_true(*len > 0);
	qsort(places, *len, sizeof(*places), compare_places);
	return places;
}

/*
 * Each text symbol of this kernel, at its own address and one before the next. Reads a copy:
 * the kernel's file may change at any moment, as it lists the BPF programs of all users.
 */
static void this_kernels_symbols_are_all_found(void **state)
{
	struct pm_kallsyms *kallsyms = NULL;
	struct pm_error err = { 0 };
	PM_AUTO_FCLOSE FILE *kernels = fopen("/proc/kallsyms", "re");
	PM_AUTO_FCLOSE FILE *file = tmpfile();
	PM_AUTO_FREE char *line = NULL;
	PM_AUTO_FREE struct place *places = NULL;
	size_t cap = 0, places_len, next, checked = 0;
	char path[64];
	ssize_t len;

	if (!kernels || pm_kallsyms_load(&kallsyms, NULL, &err) == -EACCES) {
		assert_true(geteuid() != 0 || strstr(err.text, "kptr_restrict is 2"));
		skip();
	}
	assert_non_null(kallsyms);
	pm_kallsyms_free(kallsyms);
	assert_non_null(file);
	while ((len = getline(&line, &cap, kernels)) > 0)
		assert_int_equal(fwrite(line, 1, (size_t)len, file), len);
	rewind(file);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
	assert_int_equal(pm_kallsyms_load(&kallsyms, path, &err), 0);
	places = read_places(file, &places_len);
	for (size_t i = 0; i < places_len; i = next) {
		const char *expected = NULL;

		/* If several symbols share the address, the first of those with the fewest
		 * underscores in front. */
		for (next = i;
		     next < places_len && places[next].address == places[i].address;
		     next++)
			if (places[next].is_text &&
			    (!expected ||
			     strspn(places[next].name, "_") < strspn(expected, "_")))
				expected = places[next].name;
		if (!expected)
			continue;
		assert_string_equal(pm_kallsyms_find(kallsyms, places[i].address, NULL),
				    expected);
		checked++;
		if (next < places_len)
			assert_string_equal(pm_kallsyms_find(kallsyms,
							     places[next].address - 1,
							     NULL),
					    expected);
	}
	assert_true(checked > 1000);
	for (size_t i = 0; i < places_len; i++)
		free(places[i].name);
	pm_kallsyms_free(kallsyms);
}

/* ---- kept tables ---------------------------------------------------------------------- */

/* A kernel's text with more than a page in front of @last, and where its table is kept. */
struct kept {
	char folder[64], path[80];
	FILE *text;
	struct pm_kallsyms_keep keep;
};

#define BOOT   "8ba989ac-0ed0-4bed-8bda-2830039de790"
#define LAST   0xffffffff82000000
#define MODULE 0xffffffffc0000000

/* The first page stays the same unless @first differs. */
static void write_text(struct kept *kept, const char *first, const char *last)
{
	kept->text = freopen(kept->path, "we", kept->text);
	assert_non_null(kept->text);
	for (unsigned int i = 0; i < 200; i++)
		fprintf(kept->text, "ffffffff81%06x T %s_%u\n", i * 16, first, i);
	fprintf(kept->text, "%lx T %s\n", LAST, last);
	fflush(kept->text);
}

static void begin_kept(struct kept *kept)
{
	*kept = (struct kept){ .folder = "/tmp/test-kallsyms-XXXXXX" };
	assert_non_null(mkdtemp(kept->folder));
	snprintf(kept->path, sizeof(kept->path), "%s.text", kept->folder);
	kept->text = fopen(kept->path, "we");
	kept->keep =
		(struct pm_kallsyms_keep){ .folder = kept->folder,
					   .path = kept->path,
					   .boot_id = BOOT,
					   .modules = pm_kernel_modules_fingerprint() };
	write_text(kept, "function", "one");
}

static void kept_path(const struct kept *kept, char ret[128])
{
	snprintf(ret, 128, "%s/kallsyms", kept->folder);
}

static void end_kept(struct kept *kept)
{
	char path[128];

	kept_path(kept, path);
	unlink(path);
	assert_int_equal(rmdir(kept->folder), 0);
	unlink(kept->path);
	fclose(kept->text);
}

static void expect_last(const struct kept *kept, const char *name)
{
	struct pm_kallsyms *kallsyms = NULL;
	struct pm_error err = { 0 };

	if (pm_kallsyms_load_kept(&kallsyms, &kept->keep, &err) < 0)
		fail_msg("%s", err.text);
	expect(kallsyms, LAST, name, "");
	expect(kallsyms, 0xffffffff81000010, "function_1", "");
	pm_kallsyms_free(kallsyms);
}

/* The text has another name since: who still sees the first one has read what was kept. */
static void a_table_is_read_once_in_a_boot(void **state)
{
	struct kept kept;
	struct stat st;
	char path[128];

	begin_kept(&kept);
	kept_path(&kept, path);
	expect_last(&kept, "one");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	write_text(&kept, "function", "two");
	expect_last(&kept, "one");
	end_kept(&kept);
}

static void another_kernel_has_another_table(void **state)
{
	struct pm_kallsyms *kallsyms = NULL;
	struct pm_error err = { 0 };
	struct kept kept;

	begin_kept(&kept);
	expect_last(&kept, "one");
	write_text(&kept, "function", "two");
	/* Modules have come since; then they are gone again. */
	kept.keep.modules++;
	expect_last(&kept, "two");
	kept.keep.modules--;
	expect_last(&kept, "one");
	kept.keep.boot_id = "";
	expect_last(&kept, "two");
	kept.keep.boot_id = "8ba989ac-0ed0-4bed-8bda-2830039de791";
	expect_last(&kept, "two");
	/* Which is kept in place of the first. */
	write_text(&kept, "function", "three");
	expect_last(&kept, "two");
	/* The kernel shows this process other addresses, or none. */
	write_text(&kept, "other", "four");
	assert_int_equal(pm_kallsyms_load_kept(&kallsyms, &kept.keep, &err), 0);
	expect(kallsyms, LAST, "four", "");
	pm_kallsyms_free(kallsyms);
	kept.text = freopen(kept.path, "we", kept.text);
	fputs("0000000000000000 T function_0\n", kept.text);
	fflush(kept.text);
	assert_int_equal(pm_kallsyms_load_kept(&kallsyms, &kept.keep, &err), -EACCES);
	end_kept(&kept);
}

/* Whatever is there in place of the table: the text is read. */
static void what_others_could_write_is_not_used(void **state)
{
	struct kept kept;
	char path[128], elsewhere[160];

	begin_kept(&kept);
	kept_path(&kept, path);
	snprintf(elsewhere, sizeof(elsewhere), "%s.elsewhere", kept.folder);
	expect_last(&kept, "one");
	write_text(&kept, "function", "two");
	assert_int_equal(chmod(path, 0620), 0);
	expect_last(&kept, "two");
	write_text(&kept, "function", "three");
	expect_last(&kept, "two"); /* kept anew meanwhile */
	assert_int_equal(chmod(kept.folder, 0777), 0);
	expect_last(&kept, "three");
	assert_int_equal(chmod(kept.folder, 0700), 0);
	expect_last(&kept, "two");
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, path), 0);
	expect_last(&kept, "three");
	unlink(elsewhere);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_last(&kept, "three");
	if (geteuid() == 0) {
		write_text(&kept, "function", "four");
		assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
		expect_last(&kept, "four");
		assert_int_equal(chown(kept.folder, 65534, (gid_t)-1), 0);
		write_text(&kept, "function", "five");
		expect_last(&kept, "five");
		assert_int_equal(chown(kept.folder, 0, (gid_t)-1), 0);
	}
	/* No folder to be had. */
	kept.keep.folder = "/proc/none/pmrec";
	expect_last(&kept, geteuid() == 0 ? "five" : "three");
	kept.keep.folder = kept.folder;
	end_kept(&kept);
}

static void patch(const char *path, size_t at, uint8_t change)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= change;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

/* Any changed byte, and any cut, is noticed. */
static void a_damaged_table_is_not_used(void **state)
{
	struct kept kept;
	char path[128], now[32];
	struct stat st;

	begin_kept(&kept);
	kept_path(&kept, path);
	expect_last(&kept, "one");
	assert_int_equal(stat(path, &st), 0);
	for (size_t at = 0; at < (size_t)st.st_size; at += 1 + at / 64) {
		snprintf(now, sizeof(now), "patched_%zu", at);
		write_text(&kept, "function", now);
		patch(path, at, (uint8_t)(1 + at % 255));
		expect_last(&kept, now);
	}
	for (off_t len = 0; len < st.st_size; len += 1 + len / 8) {
		snprintf(now, sizeof(now), "cut_%jd", (intmax_t)len);
		write_text(&kept, "function", now);
		assert_int_equal(truncate(path, len), 0);
		expect_last(&kept, now);
	}
	end_kept(&kept);
}

static void bpf_and_the_ends_of_modules_may_change(void **state)
{
	struct pm_kallsyms *kallsyms =
		load("ffffffff81000000 T core\n"
		     "ffffffff81000100 D data\n"
		     "ffffffffc0000000 t first\t[m]\n"
		     "ffffffffc0000100 t last\t[m]\n"
		     "ffffffffc0001000 t first\t[n]\n"
		     "ffffffffc0001100 t last\t[n]\n"
		     "ffffffffc0001200 d data\t[n]\n"
		     "ffffffffc0002000 t bpf_prog_1\t[bpf]\n"
		     "ffffffffc0002100 t bpf_prog_2\t[bpf]\n"
		     "ffffffffc0003000 t ftrace_trampoline\t[__builtin__ftrace]\n"
		     "ffffffffc0003100 t ftrace_trampoline\t[__builtin__ftrace]\n");

	assert_true(pm_kallsyms_is_lasting(kallsyms, 0xffffffff81000000));
	assert_true(pm_kallsyms_is_lasting(kallsyms, 0xffffffff810000ff));
	assert_false(pm_kallsyms_is_lasting(kallsyms, 0xffffffff81000100));
	assert_true(pm_kallsyms_is_lasting(kallsyms, MODULE + 0xff));
	assert_false(pm_kallsyms_is_lasting(kallsyms, MODULE + 0x100));
	assert_true(pm_kallsyms_is_lasting(kallsyms, MODULE + 0x1000));
	assert_false(pm_kallsyms_is_lasting(kallsyms, MODULE + 0x1100));
	for (uint64_t at = 0x2000; at < 0x4000; at += 0x100)
		assert_false(pm_kallsyms_is_lasting(kallsyms, MODULE + at));
	assert_false(pm_kallsyms_is_lasting(kallsyms, 0));
	pm_kallsyms_free(kallsyms);
}

/* ---- which kernel --------------------------------------------------------------------- */

static void identity_of(struct pm_kernel_identity *ret, const void *notes, size_t len,
			const char *boot)
{
	PM_AUTO_CLOSE int notes_fd = memfd_create("notes", MFD_CLOEXEC);
	PM_AUTO_CLOSE int boot_fd = memfd_create("boot", MFD_CLOEXEC);
	char notes_path[64], boot_path[64];

	assert_int_equal(write(notes_fd, notes, len), len);
	assert_int_equal(write(boot_fd, boot, strlen(boot)), strlen(boot));
	snprintf(notes_path, sizeof(notes_path), "/proc/self/fd/%d", notes_fd);
	snprintf(boot_path, sizeof(boot_path), "/proc/self/fd/%d", boot_fd);
	pm_kernel_identity_read(ret, notes_path, boot_path);
}

/* Each cut of the notes is an unknown identity, or the whole one. */
static void the_kernel_is_told_apart(void **state)
{
	/* Another owner's note of that type, one that is padded, then the build-id. */
	static const uint8_t notes[] = { 4, 0, 0,   0,   4,   0,   0,    0, 3,    0,
					 0, 0, 'X', 'e', 'n', 0,   9,    9, 9,    9, /**/
					 6, 0, 0,   0,   1,   0,   0,    0, 0,    0,
					 0, 0, 'L', 'i', 'n', 'u', 'x',  0, 0,    0,
					 7, 0, 0,   0, /**/
					 4, 0, 0,   0,   3,   0,   0,    0, 3,    0,
					 0, 0, 'G', 'N', 'U', 0,   0xab, 0, 0xcd, 0 };
	static const char boot[] = "8ba989ac-0ed0-4bed-8bda-2830039de790";
	static const uint8_t id[] = { 0xab, 0, 0xcd };
	struct pm_kernel_identity identity;

	identity_of(&identity, notes, sizeof(notes),
		    "8ba989ac-0ed0-4bed-8bda-2830039de790\n");
	assert_int_equal(identity.build_id_len, 3);
	assert_memory_equal(identity.build_id, id, 3);
	assert_string_equal(identity.boot_id, boot);
	for (size_t len = 0; len < sizeof(notes); len++) {
		identity_of(&identity, notes, len, "8ba989ac-0ed0-4bed-8bda-2830039de79");
		assert_int_equal(identity.build_id_len, 0);
		assert_string_equal(identity.boot_id, "");
	}
	pm_kernel_identity_read(&identity, "/nowhere", "/nowhere");
	assert_int_equal(identity.build_id_len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_symbol_covers_up_to_the_next),
		cmocka_unit_test(data_and_numbers_are_no_functions),
		cmocka_unit_test(modules_are_named),
		cmocka_unit_test(order_of_the_file_does_not_matter),
		cmocka_unit_test(of_aliases_the_plainest_is_shown),
		cmocka_unit_test(lines_of_another_form_are_passed_over),
		cmocka_unit_test(zeros_are_told_with_their_remedy),
		cmocka_unit_test(files_that_hold_none),
		cmocka_unit_test(this_kernels_symbols_are_all_found),
		cmocka_unit_test(a_table_is_read_once_in_a_boot),
		cmocka_unit_test(another_kernel_has_another_table),
		cmocka_unit_test(what_others_could_write_is_not_used),
		cmocka_unit_test(a_damaged_table_is_not_used),
		cmocka_unit_test(bpf_and_the_ends_of_modules_may_change),
		cmocka_unit_test(the_kernel_is_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

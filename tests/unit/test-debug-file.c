/* SPDX-License-Identifier: MIT */
/* Separate debug files: found where they may be, and only the ones that fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/proc/proc-internal.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char *folder; /* a new one for each test */

static int enter_folder(void **state)
{
	char name[] = "/tmp/test-debug-XXXXXX";

	(void)state;
	folder = mkdtemp(name) ? realpath(name, NULL) : NULL;
	return folder && chdir(folder) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
	PM_AUTO_FREE char *command = NULL;

	(void)state;
	if (chdir("/") < 0 || asprintf(&command, "rm -r %s", folder) < 0)
		return -1;
	free(folder);
	return system(command);
}

static const char id[4] = { 0x12, 0x34, 0x56, 0x78 };
#define BY_ID ".build-id/12/345678.debug"

/* The smallest ELF file with a build-id (unless NULL) and a link (unless NULL). */
static void put_elf(const char *path, const char *build_id, const char *link,
		    uint32_t crc)
{
	static const char names[] = "\0.note.gnu.build-id\0.gnu_debuglink";
	struct {
		Elf64_Ehdr header;
		Elf64_Shdr sections[4];
		char names[sizeof(names)];
		Elf64_Nhdr note;
		char owner[4];
		char desc[4];
		char link[16];
		uint32_t crc;
	} elf = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			    .e_shoff = sizeof(Elf64_Ehdr),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 4,
			    .e_shstrndx = 1 },
		.note = { 4, 4, NT_GNU_BUILD_ID },
		.owner = "GNU",
		.crc = crc,
	};
	PM_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	elf.sections[1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					.sh_offset = offsetof(__typeof__(elf), names),
					.sh_size = sizeof(names) };
	elf.sections[2] = (Elf64_Shdr){ .sh_name = 1,
					.sh_type = build_id ? SHT_NOTE : SHT_PROGBITS,
					.sh_offset = offsetof(__typeof__(elf), note),
					.sh_size = sizeof(Elf64_Nhdr) + 8 };
	elf.sections[3] = (Elf64_Shdr){ .sh_name = link ? 20 : 0,
					.sh_type = SHT_PROGBITS,
					.sh_offset = offsetof(__typeof__(elf), link),
					.sh_size = sizeof(elf.link) + sizeof(elf.crc) };
	memcpy(elf.names, names, sizeof(names));
	if (build_id)
		memcpy(elf.desc, build_id, sizeof(elf.desc));
	if (link)
		strncpy(elf.link, link, sizeof(elf.link) - 1);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &elf, sizeof(elf)), sizeof(elf));
}

static void put_text(const char *path, const char *text)
{
	PM_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

static char *in_folder(const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
	return path;
}

/* Whether the debug file of @path is found and is @expected (NULL: none is). */
static void assert_found(const char *path, const struct pm_debug_search *search,
			 const char *expected)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	PM_AUTO_CLOSE int found = -1;
	struct stat st, want;

	assert_true(fd >= 0);
	found = pm_debug_find(fd, search);
	if (!expected) {
		assert_int_equal(found, -ENOENT);
		return;
	}
	assert_true(found >= 0);
	assert_int_equal(fcntl(found, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fstat(found, &st), 0);
	assert_int_equal(stat(expected, &want), 0);
	assert_int_equal(st.st_ino, want.st_ino);
}

static void found_by_build_id(void **state)
{
	struct pm_debug_search search = { .dir = folder };

	(void)state;
	put_elf("program", id, NULL, 0);
	assert_found("program", &search, NULL);
	run("mkdir -p .build-id/12");
	put_elf(BY_ID, id, NULL, 1);
	assert_found("program", &search, BY_ID);
	/* As Fedora has them: a link to where it lies. */
	run("mv " BY_ID " real; ln -s ../../real " BY_ID);
	assert_found("program", &search, "real");
	put_elf(BY_ID, "1234", NULL, 1);
	assert_found("program", &search, NULL);
	put_text(BY_ID, "no ELF");
	assert_found("program", &search, NULL);
	/* Nobody will ever write to it. */
	run("rm " BY_ID "; mkfifo " BY_ID);
	assert_found("program", &search, NULL);
	/* The program itself has nothing to add. */
	run("rm " BY_ID "; ln -s ../../program " BY_ID);
	assert_found("program", &search, NULL);
}

/* The checksum of this text is a well-known check value of CRC-32. */
#define CHECKED     "123456789"
#define CHECKED_CRC 0xcbf43926

static void found_by_link(void **state)
{
	PM_AUTO_FREE char *dir = in_folder("dbg");
	PM_AUTO_FREE char *mirror = NULL;
	PM_AUTO_FREE char *command = NULL;
	struct pm_debug_search search = { .dir = dir };

	(void)state;
	put_elf("program", NULL, "it.dbg", CHECKED_CRC);
	assert_found("program", &search, NULL);
	assert_true(asprintf(&command, "mkdir .debug; mkdir -p dbg%s", folder) > 0);
	run(command);
	assert_true(asprintf(&mirror, "dbg%s/it.dbg", folder) > 0);
	put_text(mirror, CHECKED);
	assert_found("program", &search, mirror);
	put_text(".debug/it.dbg", CHECKED);
	assert_found("program", &search, ".debug/it.dbg");
	/* One that does not fit hides none behind it. */
	put_text("it.dbg", "123456780");
	assert_found("program", &search, ".debug/it.dbg");
	put_text("it.dbg", CHECKED);
	assert_found("program", &search, "it.dbg");
	/* With a build-id that decides, and the file has none. */
	put_elf("program", id, "it.dbg", CHECKED_CRC);
	assert_found("program", &search, NULL);
	put_elf("it.dbg", id, NULL, 0);
	assert_found("program", &search, "it.dbg");
}

static void links_lead_nowhere_else(void **state)
{
	struct pm_debug_search search = { .dir = folder };

	(void)state;
	run("mkdir sub");
	put_text("it.dbg", CHECKED);
	put_elf("sub/program", NULL, "../it.dbg", CHECKED_CRC);
	assert_found("sub/program", &search, NULL);
	put_elf("sub/program", NULL, "", CHECKED_CRC);
	assert_found("sub/program", &search, NULL);
	/* A name without an end. */
	put_elf("sub/program", NULL, "0123456789abcde", 0);
	PM_AUTO_CLOSE int fd = open("sub/program", O_RDWR | O_CLOEXEC);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, "fghij", 5, st.st_size - 5), 5);
	assert_found("sub/program", &search, NULL);
}

static void checksums_are_limited(void **state)
{
	uint64_t left = 2 * strlen(CHECKED) - 1;
	struct pm_debug_search search = { .dir = folder, .crc_bytes_left = &left };

	(void)state;
	put_elf("program", NULL, "it.dbg", CHECKED_CRC);
	put_text("it.dbg", CHECKED);
	assert_found("program", &search, "it.dbg");
	assert_int_equal(left, strlen(CHECKED) - 1);
	assert_found("program", &search, NULL);
	/* With holes a file costs its owner nothing: not even begun. */
	search.crc_bytes_left = NULL;
	assert_int_equal(truncate("it.dbg", (off_t)1 << 40), 0);
	assert_found("program", &search, NULL);
}

static void build_ids_of_any_length(void **state)
{
	uint8_t long_id[65] = { 0x12 };
	struct pm_debug_search search = { .dir = folder };

	(void)state;
	run("mkdir -p .build-id/12");
	put_elf(BY_ID, id, NULL, 0);
	assert_int_equal(pm_debug_find_by_id(long_id, sizeof(long_id), &search), -ENOENT);
	assert_int_equal(pm_debug_find_by_id(long_id, 64, &search), -ENOENT);
	assert_int_equal(pm_debug_find_by_id(long_id, 1, &search), -ENOENT);
	assert_int_equal(pm_debug_find_by_id(long_id, 0, &search), -ENOENT);
	PM_AUTO_CLOSE int fd = pm_debug_find_by_id(id, sizeof(id), &search);

	assert_true(fd >= 0);
}

/* A child with ./root as its root, which waits for SIGKILL. */
static pid_t child_in_root(void)
{
	int ends[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		/* Even when an assertion fails meanwhile. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chroot("root") == 0 && chdir("/") == 0 && write(ends[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	return child;
}

static void end_child(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void found_in_the_root_of_a_process(void **state)
{
	struct pm_debug_search search = { .dir = "/dbg", .path = "/bin/program" };

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root: chroot(2)\n");
		skip();
	}
	run("mkdir -p root/bin root/real/.build-id/12");
	put_elf("program", id, "it.dbg", 0);
	put_elf("root/real/" BY_ID, id, NULL, 0);
	/* An absolute link: it counts from the root of the process. */
	run("ln -s /real root/dbg");
	search.pid = child_in_root();
	assert_found("program", &search, "root/real/" BY_ID);
	run("rm -r root/dbg");
	put_elf("root/bin/it.dbg", id, NULL, 0);
	assert_found("program", &search, "root/bin/it.dbg");
	/* Nor does any link lead out of it. */
	run("mv root/bin/it.dbg outside; ln -s ../../../../../../$PWD/outside "
	    "root/bin/it.dbg");
	assert_found("program", &search, NULL);
	end_child(search.pid);
}

/* Others map the file, too, so a process with its own root has nothing to say about it. */
static void shared_file_takes_nothing_from_a_root(void **state)
{
	PM_AUTO_FREE char *path = NULL;
	struct pm_debug_search search = { .dir = "/dbg" };

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root: chroot(2)\n");
		skip();
	}
	assert_true(asprintf(&path, "%s/program", folder) > 0);
	search.path = path;
	run("mkdir -p root/dbg/.build-id/12 root/$PWD");
	put_elf("program", id, "it.dbg", 0);
	put_elf("root/dbg/" BY_ID, id, NULL, 0);
	run("ln program root/$PWD/; cp root/dbg/" BY_ID " root/$PWD/it.dbg");
	search.pid = child_in_root();
	assert_found("program", &search, NULL);
	end_child(search.pid);
}

static void older_kernels_follow_no_links(void **state)
{
	PM_AUTO_CLOSE int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	static const char *const no[] = { "a/link", "a/out/etc", "a/../a/file",
					  "..",     "a/file/x",  "a/none" };

	(void)state;
	run("mkdir a; echo text >a/file; ln -s file a/link; ln -s / a/out");
	PM_AUTO_CLOSE int fd = pm_open_handle_by_steps(root, "//a///file");

	assert_true(fd >= 0);
	PM_AUTO_CLOSE int text = pm_open_regular(fd);

	assert_true(text >= 0);
	for (size_t i = 0; i < PM_ARRAY_LEN(no); i++) {
		PM_AUTO_CLOSE int handle = pm_open_handle_by_steps(root, no[i]);
		PM_AUTO_CLOSE int found = handle < 0 ? -1 : pm_open_regular(handle);

		assert_true(found < 0);
	}
}

#define TEST(function) \
	cmocka_unit_test_setup_teardown(function, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(found_by_build_id),
		TEST(found_by_link),
		TEST(links_lead_nowhere_else),
		TEST(checksums_are_limited),
		TEST(build_ids_of_any_length),
		TEST(found_in_the_root_of_a_process),
		TEST(shared_file_takes_nothing_from_a_root),
		TEST(older_kernels_follow_no_links),
	};

	/* A FIFO must never hold us up. */
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Source: Documentation/ABI/stable/sysfs-kernel-notes, random(4), gABI "Note Section". */
#include "proc-internal.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>

#define NOTES_PATH "/sys/kernel/notes"
#define BOOT_PATH  "/proc/sys/kernel/random/boot_id"

enum {
	NOTES_BYTES_MAX = 1 << 16, /* usual kernels have some hundred bytes */
};

static size_t read_whole(const char *path, void *out, size_t size)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	size_t len = 0;

	while (fd >= 0 && len < size) {
		ssize_t n = read(fd, (char *)out + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	return len;
}

static size_t pad_note_len(uint32_t len)
{
	return ((size_t)len + 3) & ~(size_t)3;
}

static void read_build_id(const char *path, struct pm_kernel_identity *out)
{
	PM_AUTO_FREE uint8_t *bytes = malloc(NOTES_BYTES_MAX);
	struct pm_reader reader;

	if (!bytes)
		return;
	pm_reader_init(&reader, bytes, read_whole(path, bytes, NOTES_BYTES_MAX));
	while (pm_reader_left(&reader) > 0) {
		uint32_t name_len = pm_reader_u32(&reader);
		uint32_t len = pm_reader_u32(&reader);
		uint32_t type = pm_reader_u32(&reader);
		const char *name = pm_reader_bytes(&reader, pad_note_len(name_len));
		const void *id = pm_reader_bytes(&reader, pad_note_len(len));

		if (reader.failed)
			return;
		if (type != NT_GNU_BUILD_ID || name_len != 4 || len == 0 ||
		    memcmp(name, "GNU", 4) != 0)
			continue;
		if (len < PM_MODULE_BUILD_ID_MAX)
			out->build_id_len = (uint8_t)len;
		else
			out->build_id_len = PM_MODULE_BUILD_ID_MAX;
		memcpy(out->build_id, id, out->build_id_len);
		return;
	}
}

static void read_boot_id(const char *path, struct pm_kernel_identity *out)
{
	char text[sizeof(out->boot_id)];
	size_t len = read_whole(path, text, sizeof(text) - 1);

	text[len] = '\0';
	if (strspn(text, "0123456789abcdef-") == sizeof(text) - 1)
		memcpy(out->boot_id, text, sizeof(text));
}

void pm_kernel_identity_read(struct pm_kernel_identity *out, const char *notes_path,
			     const char *boot_path)
{
	*out = (struct pm_kernel_identity){ 0 };
	read_build_id(notes_path ? notes_path : NOTES_PATH, out);
	read_boot_id(boot_path ? boot_path : BOOT_PATH, out);
}

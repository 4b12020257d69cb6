/* SPDX-License-Identifier: MIT */
/*
 * Runs one fuzz target over every file of a corpus folder, without libFuzzer: a finding that
 * became a corpus file stays found. Prints TAP.
 */
#include "pm/base.h"

#include <dirent.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *folder, const char *name)
{
	PM_AUTO_FREE char *path = NULL;
	PM_AUTO_FCLOSE FILE *file = NULL;
	PM_AUTO_FREE uint8_t *data = NULL;
	size_t len = 0, cap = 0;

	if (asprintf(&path, "%s/%s", folder, name) < 0 || !(file = fopen(path, "rbe")))
		return -1;
	for (;;) {
		uint8_t *grown = pm_vec_grow(data, &cap, 1, len + 65536);
		size_t n;

		if (!grown)
			return -1;
		data = grown;
		n = fread(data + len, 1, 65536, file);
		if (n == 0)
			break;
		len += n;
	}
	/* An exact copy, so that a sanitizer sees one byte too many. */
	PM_AUTO_FREE uint8_t *exact = malloc(len ? len : 1);

	if (!exact || ferror(file))
		return -1;
	memcpy(exact, data, len);
	return LLVMFuzzerTestOneInput(exact, len);
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	struct dirent **entries;
	int count, failed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
		return 2;
	}
	count = scandir(argv[1], &entries, visible, alphasort);
	if (count <= 0) {
		printf("1..1\nnot ok 1 - %s holds no corpus\n", argv[1]);
		return 1;
	}
	printf("1..%d\n", count);
	for (int i = 0; i < count; i++) {
		bool ok = replay(argv[1], entries[i]->d_name) == 0;

		printf("%sok %d - %s\n", ok ? "" : "not ", i + 1, entries[i]->d_name);
		fflush(stdout);
		failed += !ok;
		free(entries[i]);
	}
	free(entries);
	return failed ? 1 : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The C library's string and memory functions, hand-written for each kind of processor,
 * over lengths that take all of their paths. GLIBC_TUNABLES=glibc.cpu.hwcaps=… selects
 * the kind.
 */
#include "unwind-burn.h"

#include <string.h>
#include <strings.h>
#include <wchar.h>

enum {
	BYTES = 1 << 16,
};

static volatile uint64_t sink;
static char *a, *b;

static NOINLINE void copies(size_t len, size_t at)
{
	memset(a, 'x', len);
	memcpy(b + at, a, len);
	memmove(b + at + 1, b + at, len);
	memmove(b, b + 1, len);
	sink += (uint64_t)b[len / 2];
	mempcpy(b, a + at, len);
}

static NOINLINE void compares(size_t len, size_t at)
{
	memset(a, 'y', len + at);
	memset(b, 'y', len + at);
	a[len + at] = b[len + at] = 0;
	if (len > 0)
		b[len - 1] = 'z';
	sink += (uint64_t)memcmp(a, b, len);
	sink += (uint64_t)strcmp(a + at, b + at);
	sink += (uint64_t)strncmp(a, b, len);
	sink += (uint64_t)strcasecmp(a, b);
	sink += (uint64_t)strncasecmp(a + at, b, len);
}

static NOINLINE void searches(size_t len, size_t at)
{
	memset(a, 'u', len + at);
	a[len + at] = 0;
	if (len > 1)
		a[len - 2] = 'v';
	sink += strlen(a + at) + strnlen(a, len);
	sink += (uint64_t)(memchr(a, 'v', len) != NULL) +
		(uint64_t)(memrchr(a, 'v', len) != NULL);
	sink += (uint64_t)(strchr(a, 'v') != NULL) + (uint64_t)(strrchr(a, 'u') != NULL);
	sink += (uint64_t)(strchrnul(a, 'w') != NULL) +
		(uint64_t)(rawmemchr(a, 0) != NULL);
	sink += (uint64_t)(strstr(a, "uv") != NULL) + strspn(a, "u") + strcspn(a, "v");
	sink += (uint64_t)(strpbrk(a, "vw") != NULL);
}

static NOINLINE void builds(size_t len, size_t at)
{
	memset(a, 't', len);
	a[len] = 0;
	strcpy(b + at, a);
	strcat(b + at, "more");
	strncpy(b, a, len + 1);
	sink += (uint64_t)(stpcpy(b, a) - b);
	strncat(b, a, len / 2);
}

static NOINLINE void wides(size_t len)
{
	wchar_t *x = (wchar_t *)(void *)a, *y = (wchar_t *)(void *)b;

	wmemset(x, L'x', len);
	x[len] = 0;
	wcscpy(y, x);
	sink += wcslen(x) + wcsnlen(x, len) + (uint64_t)wcscmp(x, y);
	sink += (uint64_t)(wmemchr(x, L'y', len) != NULL) + (uint64_t)wmemcmp(x, y, len);
	sink += (uint64_t)(wcschr(x, L'y') != NULL) +
		(uint64_t)(wcsrchr(x, L'x') != NULL);
}

int main(int argc, char **argv)
{
	static const size_t lens[] = { 0, 1, 3, 8, 15, 16, 33, 64, 130, 300 };
	clock_t end = burn_until(argc, argv);

	a = aligned_alloc(4096, BYTES);
	b = aligned_alloc(4096, BYTES);
	if (!a || !b)
		return 1;
	burn_skip();
	memset(a, 0, BYTES);
	memset(b, 0, BYTES);
	burn_skip();
	do {
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			copies(lens[i], i & 3);
			compares(lens[i], i & 1);
			searches(lens[i], i & 3);
			builds(lens[i], i & 3);
			wides(lens[i]);
		}
	} while (argc <= 2 && clock() < end);
	free(a);
	free(b);
	return sink == 0;
}

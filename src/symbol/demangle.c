/* SPDX-License-Identifier: MIT */
/*
 * Demangles names: Itanium C++ ABI §5.1, Rust's legacy scheme (an Itanium nested name
 * whose last part is a hash) and Rust's v0 scheme (RFC 2603). libiberty does the work;
 * this file limits its memory and time.
 */
#include "pm/symbol.h"

#include <ctype.h>
#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "symbol-parts.h"

enum {
	/*
	 * libiberty rejects C++ names longer than half of DEMANGLE_RECURSION_LIMIT to
	 * protect its stack, but real template libraries have longer names. Without that
	 * limit, a name of this length needs less than 768 KiB of stack, however it nests
	 * (measured).
	 */
	MANGLED_MAX = 4096,
	/* Substitutions can double the length: a hundred bytes can expand to
	 * gigabytes. */
	RESULT_MAX = 16384,
	RUST_HASH_DIGITS = 16,
};

struct sink {
	jmp_buf too_long;
	size_t len;
	char text[RESULT_MAX]; /* fixed size, because libiberty writes single bytes */
};

static void sink_append_text(const char *text, size_t len, void *opaque)
{
	struct sink *sink = opaque;

	/*
	 * There is no other way to stop libiberty. At this point it holds only stack
	 * memory, except a few hundred bytes for an overlong Rust name with Punycode.
	 */
	if (len > sizeof(sink->text) - sink->len)
		longjmp(sink->too_long, 1);
	memcpy(sink->text + sink->len, text, len);
	sink->len += len;
}

typedef int (*demangle_fn)(const char *mangled, int options,
			   demangle_callbackref callback, void *opaque);

/* Returns false if the name does not follow this scheme. A result that is too long ends
 * with an ellipsis. */
static bool demangle_into_string(demangle_fn demangle, const char *mangled, int options,
				 struct pm_str *out)
{
	struct sink *sink = malloc(sizeof(*sink)); /* survives longjmp() */
	bool fine;

	if (!sink)
		return false;
	sink->len = 0;
	if (setjmp(sink->too_long) == 0) {
		fine = demangle(mangled, options, sink_append_text, sink) != 0 &&
		       sink->len > 0;
		if (fine)
			pm_str_printable(out, sink->text, sink->len);
	} else {
		fine = true;
		pm_str_printable(out, sink->text, sink->len);
		pm_str_puts(out, "…");
	}
	free(sink);
	return fine;
}

/*
 * Returns the end of the hash of a legacy Rust name ("17h" + 16 hex digits + "E"), or
 * NULL if there is none. C++ names do not end like that.
 */
static const char *rust_legacy_end(const char *mangled)
{
	const char *at = mangled;

	if (strncmp(mangled, "_ZN", 3) != 0)
		return NULL;
	while ((at = strstr(at, "17h"))) {
		size_t digits = strspn(at + 3, "0123456789abcdef");
		const char *end = at + 3 + digits;

		if (digits == RUST_HASH_DIGITS && end[0] == 'E' &&
		    (end[1] == '\0' || end[1] == '.'))
			return end + 1;
		at += 3;
	}
	return NULL;
}

/* Appends the suffix that a compiler gave to a copy or a part: ".constprop.0", ".cold",
 * … */
static void append_clone_suffix(struct pm_str *str, const char *suffix)
{
	/* ".llvm.123…" distinguishes modules of one ThinLTO link and means nothing to a
	 * reader. */
	const char *llvm = strstr(suffix, ".llvm.");
	size_t keep = llvm ? (size_t)(llvm - suffix) : strlen(suffix);

	pm_str_printable(str, suffix, keep);
	if (!llvm)
		return;
	llvm += strlen(".llvm.");
	llvm += strspn(llvm, "0123456789");
	pm_str_printable(str, llvm, strlen(llvm));
}

static char *demangle_symbol(const char *mangled, int options)
{
	PM_AUTO_FREE char *body = NULL;
	struct pm_str str = { 0 };
	const char *suffix;
	bool fine;

	if (mangled[0] != '_' || (mangled[1] != 'Z' && mangled[1] != 'R') ||
	    strnlen(mangled, MANGLED_MAX + 1) > MANGLED_MAX)
		return NULL;
	suffix = rust_legacy_end(mangled);
	bool legacy = suffix != NULL;

	/* Only legacy Rust names contain dots of their own (".." stands for "::"). In all
	 * other schemes, the first dot starts a suffix of the compiler. */
	if (!suffix)
		suffix = mangled + strcspn(mangled, ".");
	body = strndup(mangled, (size_t)(suffix - mangled));
	if (!body)
		return NULL;
	/* Omitting DMGL_VERBOSE omits hashes; omitting DMGL_PARAMS omits parameters. */
	fine = (legacy || mangled[1] == 'R') &&
	       demangle_into_string(rust_demangle_callback, body, 0, &str);
	if (!fine && mangled[1] == 'Z')
		fine = demangle_into_string(cplus_demangle_v3_callback, body,
					    options | DMGL_NO_RECURSE_LIMIT, &str);
	if (fine)
		append_clone_suffix(&str, suffix);
	if (!fine || str.failed)
		pm_str_release(&str);
	return str.data;
}

char *pm_demangle(const char *mangled)
{
	return demangle_symbol(mangled, 0);
}

char *pm_demangle_full(const char *mangled)
{
	return demangle_symbol(mangled, DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP);
}

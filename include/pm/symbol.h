/* SPDX-License-Identifier: MIT */
/*
 * Addresses to functions, files, lines and inline chains, in batches: all addresses of a
 * module at once, so that symbol tables and debug information are walked once.
 */
#pragma once

#include "pm/base.h"

/* One level of the chain at an address. Texts are borrowed from the symboliser's call. */
struct pm_symbol_function {
	const char *name; /* demangled; NULL if unknown */
	const char *file; /* of the place in this function; NULL if unknown */
	uint32_t line; /* 1-based; 0 if unknown */
};

/*
 * The chain of addresses[index], innermost first; functions[0..len-2] are inlined into the
 * one behind them. len 0: nothing is known about that address. Return 0, or a negative errno
 * to stop.
 */
typedef int (*pm_symbol_emit_fn)(void *user, size_t index,
				 const struct pm_symbol_function *functions, size_t len);

struct pm_symbol_options {
	bool inlines; /* give inlined functions of their own; else only the outermost */
	bool lines; /* read line tables */
	const char *debug_dir; /* for separate debug files, NULL: /usr/lib/debug */
};

/*
 * Resolves @len svma of the ELF file behind @fd (borrowed), which are sorted, ascending and
 * distinct; calls @emit once for each, in order. Uses DWARF (in the file, or in a separate
 * debug file found by build-id), .symtab, .dynsym, in that order of preference for names.
 * PLT entries are named `name@plt`.
 * A broken file gives what can still be had: unresolved addresses are emitted with len 0.
 * -ENOEXEC when it is no ELF; or what @emit returned.
 */
int pm_symbols_resolve(int fd, const uint64_t *addresses, size_t len,
		       const struct pm_symbol_options *options, pm_symbol_emit_fn emit,
		       void *user, struct pm_error *err);
/* The same for an ELF image in memory (the vDSO). */
int pm_symbols_resolve_memory(const void *image, size_t image_len,
			      const uint64_t *addresses, size_t len,
			      const struct pm_symbol_options *options,
			      pm_symbol_emit_fn emit, void *user, struct pm_error *err);

/*
 * C++ (Itanium ABI) and Rust (legacy and v0) names as people write them; a text to free, or
 * NULL when @mangled is neither (then use it as it is). Time and memory are bounded for
 * hostile names.
 */
char *pm_demangle(const char *mangled);

/* SPDX-License-Identifier: MIT */
/*
 * Addresses to functions, files, lines and inline chains, in batches: all addresses of a
 * module at once, so that symbol tables and debug information are walked once.
 */
#pragma once

#include "pm/base.h"

/* One level of the chain at an address. Texts are borrowed from the symboliser's call. */
struct pm_symbol_function {
	const char *name; /* demangled, printable; NULL if unknown */
	const char *file; /* of the place in this function, printable; NULL if unknown */
	uint32_t line; /* 1-based; 0 if unknown, also with a file */
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
	/* A process in whose root those are looked for before ours, and the path of the file
	 * there. 0 and NULL: none. */
	pid_t pid;
	const char *path;
};

/*
 * Resolves @len svma of the ELF file behind @fd (borrowed), which are sorted, ascending and
 * distinct; calls @emit once for each, in order. Uses DWARF (in the file, or in a separate
 * debug file found by build-id or .gnu_debuglink), .symtab, .dynsym. The outermost function
 * has its ELF symbol's name where that starts at the function, as pm_demangle() writes it and
 * without its version; others have DWARF's, with classes and namespaces. Files are absolute
 * where the compiler left a way to tell, without `.` and `..`. PLT entries are `name@plt`.
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
 * NULL when @mangled is neither (then use it as it is). For a table, not for a compiler:
 * without parameters and return types (`ns::f<int>`, `operator()`, `main::{lambda(int)#1}`),
 * Rust without its hashes; what the compiler appended to a copy or part of a function stays
 * (`f<int>.constprop.0`, `.cold`), but not ThinLTO's `.llvm.123`. Printable. Time and memory
 * are bounded for hostile names: over 4096 bytes they are no names, and a result ends with
 * `…` after 16 KiB.
 */
char *pm_demangle(const char *mangled);

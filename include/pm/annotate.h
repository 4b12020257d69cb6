/* SPDX-License-Identifier: MIT */
/*
 * Annotates a function by line and by instruction: the source lines and the instructions
 * at which the samples of a view were taken. Lines come from the recording alone. Their
 * text needs the source file, and instructions need the binary. Both are searched for at
 * report time, are untrusted input, and may differ from the version that ran. A binary is
 * used only if it is known to be the recorded one; a source that is newer is marked as
 * such.
 *
 * Results are computed once and then only read. No function keeps state of its own;
 * threads may work on their own results.
 */
#pragma once

#include "pm/base.h"
#include "pm/profile.h"

/* Where files are searched for. All zero is valid. The strings are borrowed. */
struct pm_annotate_search {
	const char *symfs; /* a folder to look in first, as if it were /; NULL: none */
	const char *debug_dir; /* to look in first for separate debug files; NULL: none */
	/*
	 * Where sources are now, tried in this order before the path itself. "OLD=NEW"
	 * replaces OLD at the start of a path (whole folders) by NEW. "DIR" searches DIR
	 * for the path and then for shorter and shorter ends of it (src/a/b.c:
	 * DIR/src/a/b.c, DIR/a/b.c, DIR/b.c).
	 */
	const char *const *source_dirs;
	size_t source_dirs_len;
	/*
	 * A recording may name any file, and users pass reports on. With `as_user`, which
	 * is for root, a report contains only files that user @uid may read, and files in
	 * one of source_roots. If @uid is 0, files of other users are read only if
	 * everybody may read them.
	 */
	bool as_user;
	uint32_t uid;
	const char *const *source_roots;
	size_t source_roots_len;
	/* Start of the recording, in seconds of CLOCK_REALTIME; 0: unknown. See
	 * pm_annotate_recorded_at(). */
	int64_t recorded_at;
};

/* Returns info.created of @profile in seconds; 0: unknown. */
int64_t pm_annotate_recorded_at(const struct pm_profile *profile);
/* Sets the values that @profile provides: recorded_at, unless it is set, and, if we are
 * root, the user whose permissions limit which sources are read. */
void pm_annotate_search_of(struct pm_annotate_search *search,
			   const struct pm_profile *profile);

/* ---- source text --------------------------------------------------------------------- */

enum {
	PM_SOURCE_BYTES_MAX = 16 << 20, /* of a file; larger ones are refused */
	PM_SOURCE_LINES_MAX = 1 << 20,
	PM_SOURCE_LINE_BYTES_MAX = 4096, /* longer lines are cut */
};

/* A file split into lines. The text is untrusted and not made printable. */
struct pm_source {
	char *path; /* of the file that was read */
	char *real_path; /* the same without symbolic links */
	bool newer; /* it was modified after the recording started */
	char *text;
	size_t text_len;
	PM_VEC(uint32_t) starts; /* of each line in `text`; line 1 is starts.data[0] */
};

/*
 * Reads the source that the recording calls @path, which is absolute or found through
 * `source_dirs`. Returns 0; -ENOENT; -EACCES and other errors of open(2); -EPERM if we
 * may read it, but search->uid may not; -ENOTSUP if it is not a regular file; -EFBIG;
 * -EBADMSG if it is not text (it has NUL bytes); -ENOMEM. @err says which file and why.
 */
int pm_source_read(struct pm_source *out, const char *path,
		   const struct pm_annotate_search *search, struct pm_error *err);
void pm_source_release(struct pm_source *source);
/*
 * Returns the text of @line (1-based) without its newline, or NULL if the file has no
 * such line. Sets *len to its length, at most PM_SOURCE_LINE_BYTES_MAX bytes, and *cut
 * (@cut may be NULL) to whether the line is longer.
 */
const char *pm_source_line(const struct pm_source *source, uint32_t line, size_t *len,
			   bool *cut);

/* ---- lines --------------------------------------------------------------------------- */

/* The weights of one line of a function. */
struct pm_annotate_line {
	uint32_t file; /* index in pm_annotate_lines.files; PM_PROFILE_NONE: unknown */
	uint32_t line; /* 1-based; 0: unknown */
	struct pm_weight self; /* taken in the function itself at this line */
	struct pm_weight inlined; /* taken in functions inlined at this line */
	/* Samples with the line anywhere on the stack, each counted once: the line and
	 * its callees. The lines of a recursive function may add up to more than the
	 * whole function. */
	struct pm_weight total;
	uint32_t first_inlined, inlineds; /* range in pm_annotate_lines.inlineds */
};

/* Code of another function within a line. */
struct pm_annotate_inlined {
	uint32_t place; /* id in the profile: the innermost function, its file and line */
	struct pm_weight self;
};

struct pm_annotate_file {
	const char *path; /* as recorded; valid as long as the profile */
	uint32_t first, lines; /* its range in pm_annotate_lines.lines */
	struct pm_weight self; /* of its lines, including `inlined` */
	struct pm_weight total_max; /* the heaviest `total` of its lines */
};

/* The lines of one function of a view. */
struct pm_annotate_lines {
	uint32_t function; /* id in the profile */
	struct pm_weight self; /* taken in it, without functions inlined into it */
	struct pm_weight inlined; /* taken in functions inlined into it */
	struct pm_weight total; /* with it anywhere on the stack */
	/* The part of self and inlined whose file or line is unknown. The last element of
	 * `lines`, whose line is 0, has it, too. */
	struct pm_weight unknown;
	PM_VEC(struct pm_annotate_file) files; /* heaviest first, by self, then total */
	/* by file, then line; only lines that samples have */
	PM_VEC(struct pm_annotate_line) lines;
	PM_VEC(struct pm_annotate_inlined)
	inlineds; /* those of a line are consecutive, heaviest first */
};

/*
 * Fills out[0..len-1], one for each of the distinct @functions, in one pass over the
 * stacks: fifty functions cost little more than one. Returns 0, or -ENOMEM with nothing
 * to release.
 */
int pm_annotate_lines_init(struct pm_annotate_lines *out, const struct pm_view *view,
			   const uint32_t *functions, size_t len);
void pm_annotate_lines_release(struct pm_annotate_lines *lines);

/* Lines worth showing: [first, last], 1-based, ascending, without overlap. */
struct pm_annotate_region {
	uint32_t first, last;
};
struct pm_annotate_regions {
	PM_VEC(struct pm_annotate_region) regions;
};

/*
 * Finds the lines of @file (of lines->files) that have at least @limit percent of the
 * function's weight (of its self with inlined, or of its total), and @context lines
 * around each. Gaps that are too small to leave out are filled. Returns 0 or -ENOMEM.
 */
int pm_annotate_regions_init(struct pm_annotate_regions *out,
			     const struct pm_annotate_lines *lines, uint32_t file,
			     double limit, uint32_t context);
void pm_annotate_regions_release(struct pm_annotate_regions *regions);

/* ---- which function ------------------------------------------------------------------ */

/* A function that matches a name, and its weight in the view. */
struct pm_annotate_choice {
	uint32_t function;
	struct pm_weight self; /* including functions inlined into it */
	struct pm_weight total;
};
struct pm_annotate_choices {
	PM_VEC(struct pm_annotate_choice) rows; /* heaviest first, by self, then total */
};

/*
 * Finds the functions of this view that match @name (see pm_function_set). There are
 * several rows if several modules have the name. Returns -ENOENT and -EINVAL like
 * pm_function_set_init(), -ENOENT also if no sample of the view has the function. Returns
 * -ENOTUNIQ if functions with several names match: @err has the heaviest of them, and the
 * rows are filled nevertheless, for a program that asks the user.
 */
int pm_annotate_choose(struct pm_annotate_choices *out, const struct pm_view *view,
		       const char *name, struct pm_error *err);
void pm_annotate_choices_release(struct pm_annotate_choices *choices);

/* ---- instructions -------------------------------------------------------------------- */

enum {
	/* Bytes of one function that are disassembled; a larger function is cut there. */
	PM_ANNOTATE_CODE_BYTES_MAX = 1 << 19,
	PM_ANNOTATE_PARTS_MAX = 64,
};

enum pm_annotate_kind {
	PM_INSN_PLAIN,
	PM_INSN_JUMP, /* unconditional */
	PM_INSN_BRANCH, /* conditional jump */
	PM_INSN_CALL,
	PM_INSN_RETURN,
	PM_INSN_BAD, /* bytes that are not an instruction, one at a time */
};

struct pm_annotate_insn {
	uint64_t address; /* svma */
	uint8_t size;
	uint8_t bytes[16]; /* `size` of them */
	enum pm_annotate_kind kind;
	const char *mnemonic, *operands; /* ASCII; operands "" if none */
	/* The target of a jump or call, if the instruction contains it. */
	bool has_target;
	uint64_t target;
	uint32_t to; /* index of that instruction in the part; PM_PROFILE_NONE: none */
	const char *target_name; /* printable; another function at the target, or NULL */
	/* The source line in the requested function; NULL and 0: unknown. */
	const char *file;
	uint32_t line;
	/* The function that is inlined here and contains this instruction; NULL: none. */
	const char *inlined, *inlined_file;
	uint32_t inlined_line;
	/* Belongs to another function that the requested one is inlined into. */
	bool foreign;
	struct pm_weight self; /* samples taken here */
	struct pm_weight total; /* with samples taken in its callees, each counted once */
};

/* Contiguous code: a symbol. A compiler may have split a function (f, f.cold). */
struct pm_annotate_part {
	uint64_t start, end; /* svma, [start, end) */
	const char *symbol; /* printable; NULL: unknown */
	uint32_t first, len; /* in insns */
	/* Bytes that were not disassembled: see PM_ANNOTATE_CODE_BYTES_MAX. */
	uint64_t bytes_left;
	bool is_container; /* the requested function is inlined into this one */
	struct pm_weight self;
};

struct pm_annotate_code {
	uint32_t module; /* the module whose file was read: its index in the profile */
	char *path; /* of the file that was read; "[vdso]": this process's */
	bool unverified; /* the recording has no build-id; the file is older */
	/* Whether the file has debug information with lines. */
	bool has_lines;
	PM_VEC(struct pm_annotate_part) parts; /* by address */
	PM_VEC(struct pm_annotate_insn) insns; /* by address */
	/* The samples taken in the function (self and inlined): those on an instruction
	 * shown, and all others, whose code could not be shown: other files of that name,
	 * no symbol, or no instruction at that address. */
	struct pm_weight shown, elsewhere;
	struct pm_annotate_texts *texts; /* private */
};

/*
 * Disassembles the code of @function and adds the weights of @view. Returns -ENOENT: the
 * file is gone, or no symbol contains the samples; -ESTALE: another file is in its place;
 * -ENOTSUP: kernel code, code generated at run time, or code of another architecture;
 * -ENOEXEC, -EACCES and other errors of the file; -ENODATA: no sample with the function
 * has an address; -ENOMEM. @err explains it to the user.
 */
int pm_annotate_code_init(struct pm_annotate_code *out, const struct pm_view *view,
			  uint32_t function, const struct pm_annotate_search *search,
			  struct pm_error *err);
void pm_annotate_code_release(struct pm_annotate_code *code);

/* The architecture, with the numbers of ELF: EM_* of elf.h. */
struct pm_annotate_machine {
	uint16_t machine;
	bool is_64;
};
/*
 * Disassembles @len bytes as code that starts at @address: for pm_annotate_code_init()
 * and its tests. Appends to code->insns; every byte is in exactly one instruction.
 * Returns 0, -ENOTSUP (unknown architecture) or -ENOMEM.
 */
int pm_annotate_disassemble(struct pm_annotate_code *code,
			    const struct pm_annotate_machine *machine,
			    const uint8_t *bytes, size_t len, uint64_t address);

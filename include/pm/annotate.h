/* SPDX-License-Identifier: MIT */
/*
 * A function line by line and instruction by instruction: which lines of its source, and which
 * instructions of its code, the samples of a view are on. Lines come from the recording alone.
 * Their text needs the source file, instructions need the binary: both are looked for at
 * report time, are foreign input, and may be another version than what ran. A binary is used
 * only when it is known to be the recorded one; of a source that is newer that is told.
 *
 * Everything here is made once and then only read. No function keeps state of its own, so
 * that threads may work on results of their own.
 */
#pragma once

#include "pm/base.h"
#include "pm/profile.h"

/* Where files are looked for. All zero is legal. Texts are borrowed. */
struct pm_annotate_search {
	const char *symfs; /* a folder to look in first, as if it were /; NULL: none */
	const char *debug_dir; /* to look in first for separate debug files; NULL: none */
	/*
	 * Where sources are now, tried in this order before the path itself: "OLD=NEW" puts NEW
	 * in the place of a path's beginning OLD (whole folders); "DIR" looks in DIR for the
	 * path and then for ever shorter ends of it (src/a/b.c: DIR/src/a/b.c, DIR/a/b.c,
	 * DIR/b.c).
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
	/* When the recording began, seconds of CLOCK_REALTIME; 0: unknown. See
	 * pm_annotate_recorded_at(). */
	int64_t recorded_at;
};

/* info.created as a number of seconds, 0 where it is unknown. */
int64_t pm_annotate_recorded_at(const struct pm_profile *profile);
/* Fills in what @profile says: recorded_at, unless it is set, and the user with whose
 * rights root reads sources. */
void pm_annotate_search_of(struct pm_annotate_search *search,
			   const struct pm_profile *profile);

/* ---- source text --------------------------------------------------------------------- */

enum {
	PM_SOURCE_BYTES_MAX = 16 << 20, /* of a file; larger ones are refused */
	PM_SOURCE_LINES_MAX = 1 << 20,
	PM_SOURCE_LINE_BYTES_MAX = 4096, /* what is longer is cut there */
};

/* A file in lines. The text is foreign and not made printable. */
struct pm_source {
	char *path; /* of the file that was read */
	char *real_path; /* the same without symbolic links */
	bool newer; /* it was changed after the recording began */
	char *text;
	size_t text_len;
	PM_VEC(uint32_t) starts; /* of each line in `text`; line 1 is starts.data[0] */
};

/*
 * Reads the source that the recording calls @path, which is absolute or found through
 * `source_dirs`. 0; -ENOENT; -EACCES and other errors of open(2); -EPERM if we may
 * read it, but search->uid may not; -ENOTSUP if it is no regular file; -EFBIG;
 * -EBADMSG if it is no text (it has NUL bytes); -ENOMEM. @err says which file and why.
 */
int pm_source_read(struct pm_source *ret, const char *path,
		   const struct pm_annotate_search *search, struct pm_error *err);
void pm_source_release(struct pm_source *source);
/*
 * The bytes of @line (1-based) without its end, *len of them, at most
 * PM_SOURCE_LINE_BYTES_MAX; NULL where the file has no such line. *cut (may be NULL): there is
 * more of it.
 */
const char *pm_source_line(const struct pm_source *source, uint32_t line, size_t *len,
			   bool *cut);

/* ---- lines --------------------------------------------------------------------------- */

/* What of a function happens at one of its lines. */
struct pm_annotate_line {
	uint32_t file; /* in pm_annotate_lines.files; PM_PROFILE_NONE: unknown */
	uint32_t line; /* 1-based; 0: unknown */
	struct pm_weight self; /* taken in the function itself, at this line */
	struct pm_weight inlined; /* taken in functions that are inlined at this line */
	/* With the line anywhere on the stack, each sample once: with what it calls. Lines of
	 * a recursive function may add up to more than all of it. */
	struct pm_weight total;
	uint32_t first_inlined, inlineds; /* in pm_annotate_lines.inlineds */
};

/* Code of another function inside of a line. */
struct pm_annotate_inlined {
	uint32_t place; /* id in the profile: the innermost function, its file and line */
	struct pm_weight self;
};

struct pm_annotate_file {
	const char *path; /* as recorded; lives as long as the profile */
	uint32_t first, lines; /* in pm_annotate_lines.lines: those of this file */
	struct pm_weight self; /* of its lines, `inlined` included */
	struct pm_weight total_max; /* the heaviest `total` of its lines */
};

/* One function of a view. */
struct pm_annotate_lines {
	uint32_t function; /* id in the profile */
	struct pm_weight self; /* taken in it, not in functions inlined into it */
	struct pm_weight inlined; /* taken in functions inlined into it */
	struct pm_weight total; /* with it anywhere on the stack */
	/* Of self and inlined: where its file or line is not known. Those have a line, too,
	 * the last, with line 0. */
	struct pm_weight unknown;
	PM_VEC(struct pm_annotate_file) files; /* heaviest first, by self, then total */
	PM_VEC(struct pm_annotate_line) lines; /* by file, then line; only what occurs */
	PM_VEC(struct pm_annotate_inlined)
	inlineds; /* of a line in a row, heaviest first */
};

/*
 * Fills ret[0..len-1], one for each of the distinct @functions, in one pass over the stacks:
 * fifty cost little more than one. 0 or -ENOMEM, then nothing is to be released.
 */
int pm_annotate_lines_init(struct pm_annotate_lines *ret, const struct pm_view *view,
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
 * The lines of @file (of lines->files) of which at least @limit percent of the function is
 * (of its self with inlined, or of its total), and @context lines around each; gaps too small
 * to be worth leaving out are filled. 0 or -ENOMEM.
 */
int pm_annotate_regions_init(struct pm_annotate_regions *ret,
			     const struct pm_annotate_lines *lines, uint32_t file,
			     double limit, uint32_t context);
void pm_annotate_regions_release(struct pm_annotate_regions *regions);

/* ---- which function ------------------------------------------------------------------ */

/* A function that a name means, and how much of the view it is. */
struct pm_annotate_choice {
	uint32_t function;
	struct pm_weight self; /* with what is inlined into it */
	struct pm_weight total;
};
struct pm_annotate_choices {
	PM_VEC(struct pm_annotate_choice) rows; /* heaviest first, by self, then total */
};

/*
 * The functions that @name means (see pm_function_set), of this view. More than one row: the
 * name is in several modules. -ENOENT and -EINVAL as pm_function_set_init(), -ENOENT also when
 * no sample of the view has it; -ENOTUNIQ when it fits functions of several names, with the
 * heaviest ones in @err. Then the rows are nonetheless there: for a program that asks.
 */
int pm_annotate_choose(struct pm_annotate_choices *ret, const struct pm_view *view,
		       const char *name, struct pm_error *err);
void pm_annotate_choices_release(struct pm_annotate_choices *choices);

/* ---- instructions -------------------------------------------------------------------- */

enum {
	/* Of a function's code that is taken apart; larger ones end there. */
	PM_ANNOTATE_CODE_BYTES_MAX = 1 << 19,
	PM_ANNOTATE_PARTS_MAX = 64,
};

enum pm_annotate_kind {
	PM_INSN_PLAIN,
	PM_INSN_JUMP, /* always */
	PM_INSN_BRANCH, /* a jump under a condition */
	PM_INSN_CALL,
	PM_INSN_RETURN,
	PM_INSN_BAD, /* bytes that are no instruction, one at a time */
};

struct pm_annotate_insn {
	uint64_t address; /* svma */
	uint8_t size;
	uint8_t bytes[16]; /* `size` of them */
	enum pm_annotate_kind kind;
	const char *mnemonic, *operands; /* ASCII; operands "" if none */
	/* Where a jump or call leads when that stands in it. */
	bool has_target;
	uint64_t target;
	uint32_t to; /* the instruction there, of the same part; PM_PROFILE_NONE: none */
	const char
		*target_name; /* printable: what is there if another function; or NULL */
	/* Where it stands in the function that was asked for; NULL and 0: unknown. */
	const char *file;
	uint32_t line;
	/* It comes from a function that is inlined here, which is this; NULL: it does not. */
	const char *inlined, *inlined_file;
	uint32_t inlined_line;
	/* In code of another function into which the one asked for is inlined: not of it. */
	bool foreign;
	struct pm_weight self; /* samples taken here */
	struct pm_weight total; /* and those taken in what it calls, each once */
};

/* Code in a row: a symbol. A compiler may have split a function (f, f.cold). */
struct pm_annotate_part {
	uint64_t start, end; /* svma, [start, end) */
	const char *symbol; /* printable; NULL: unknown */
	uint32_t first, len; /* in insns */
	/* Of the code, what was not taken apart: see PM_ANNOTATE_CODE_BYTES_MAX. */
	uint64_t bytes_left;
	bool is_container; /* the function asked for is inlined into this one */
	struct pm_weight self;
};

struct pm_annotate_code {
	uint32_t module; /* in the profile: the row whose file this is */
	char *path; /* of the file that was read, "[vdso]" of this process's */
	bool unverified; /* the recording knows no build-id; the file is older than it */
	/* Lines come from debug information of this file, which may be missing. */
	bool has_lines;
	PM_VEC(struct pm_annotate_part) parts; /* by address */
	PM_VEC(struct pm_annotate_insn) insns; /* by address */
	/* Of the samples taken in the function (self and inlined): those on an instruction, and
	 * others, in code that could not be shown: other files of that name, no symbol, no
	 * instruction at that address. */
	struct pm_weight shown, elsewhere;
	struct pm_annotate_texts *texts; /* private */
};

/*
 * The code of @function with the weights of @view. No code is to be had: -ENOENT when the
 * file is gone, or no symbol holds the samples; -ESTALE when another file is there now;
 * -ENOTSUP for the kernel, code made while running and other machines' code; -ENOEXEC,
 * -EACCES and the like of the file; -ENODATA when no sample with it has an address. @err
 * says why in words for a person. -ENOMEM.
 */
int pm_annotate_code_init(struct pm_annotate_code *ret, const struct pm_view *view,
			  uint32_t function, const struct pm_annotate_search *search,
			  struct pm_error *err);
void pm_annotate_code_release(struct pm_annotate_code *code);

/* Bits and kind of machine, as ELF numbers them: EM_* of elf.h. */
struct pm_annotate_machine {
	uint16_t machine;
	bool is_64;
};
/*
 * Takes @len bytes apart as code that begins at @address: for pm_annotate_code_init() and
 * its tests. Appends to code->insns; every byte is in exactly one of them. -ENOTSUP for a
 * machine that is not known here, -ENOMEM.
 */
int pm_annotate_disassemble(struct pm_annotate_code *code,
			    const struct pm_annotate_machine *machine,
			    const uint8_t *bytes, size_t len, uint64_t address);

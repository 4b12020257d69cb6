/* SPDX-License-Identifier: MIT */
/*
 * Used by every room: errors, ownership, growable arrays, an index of dense ids, text
 * buffers, bounded reading of untrusted bytes. Depends on libc only.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define PM_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define PM_MUST_CHECK          __attribute__((warn_unused_result))
#define PM_ARRAY_LEN(array)    (sizeof(array) / sizeof((array)[0]))

/* These evaluate their arguments twice. PM_COMPARE() is -1, 0 or 1, as qsort(3)
 * expects. */
#define PM_MIN(a, b)     ((a) < (b) ? (a) : (b))
#define PM_MAX(a, b)     ((a) > (b) ? (a) : (b))
#define PM_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
/* a - b, 0 if b is larger. */
#define PM_SUB_OR_0(a, b) ((a) > (b) ? (a) - (b) : 0)

/* ---- errors -------------------------------------------------------------------------- */

enum {
	PM_ERROR_SOURCE_MAX = 256,
	PM_ERROR_TEXT_MAX = 512,
	PM_ERROR_FIX_MAX = 256,
};

/*
 * Why a call failed, in words for the user. Owned by the caller; the callee fills it only
 * when the call fails, and allocates nothing. Every `struct pm_error *` parameter of this
 * project may be NULL. Each text is a single line without a newline.
 */
struct pm_error {
	int code; /* negative errno; 0: no failure */
	char source
		[PM_ERROR_SOURCE_MAX]; /* the file, event or process concerned, "" if none */
	/* Position in `source`: line number (text) or byte offset; -1 if none. */
	int64_t offset;
	char text[PM_ERROR_TEXT_MAX]; /* what is wrong */
	/* The one command or option that fixes it, "" if none. */
	char fix[PM_ERROR_FIX_MAX];
};

/* Sets code and text, and clears the other members. Returns @code, for `return
 * pm_error_set(…)`. The arguments may point into @err itself. */
int pm_error_set(struct pm_error *err, int code, const char *format, ...) PM_PRINTF(3, 4);
/* Sets "out of memory". Returns -ENOMEM. */
int pm_error_no_memory(struct pm_error *err);
/* Sets the source and the offset in it (-1: none). */
void pm_error_where(struct pm_error *err, const char *source, int64_t offset);
/* Sets the fix. */
void pm_error_fix(struct pm_error *err, const char *format, ...) PM_PRINTF(2, 3);
/* Returns the reason why pm_file_open() could not open a file, or why it could not be
 * opened as an ELF file. @code is a negative errno. */
const char *pm_error_open_text(int code);
const char *pm_error_elf_text(int code);
/*
 * Prints `PROGRAM: SOURCE:OFFSET: TEXT` and, if there is a fix, a second line
 * `PROGRAM: try: FIX`. Control characters are escaped. For programs only: libraries
 * never print.
 */
void pm_error_print(const struct pm_error *err, const char *program, FILE *to);

/* ---- ownership ----------------------------------------------------------------------- */

/* Runs @function on the address of the variable when it goes out of scope. */
#define PM_CLEANUP(function) __attribute__((cleanup(function)))
#define PM_AUTO_FREE         PM_CLEANUP(pm_cleanup_free)
#define PM_AUTO_CLOSE        PM_CLEANUP(pm_cleanup_close)
#define PM_AUTO_FCLOSE       PM_CLEANUP(pm_cleanup_fclose)

static inline void pm_cleanup_free(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}

/* Closes and keeps errno, so that a cleanup never hides the reason for a failure. */
static inline void pm_cleanup_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

static inline void pm_cleanup_fclose(FILE **file)
{
	int saved = errno;

	if (*file)
		fclose(*file);
	errno = saved;
}

/* Moves an owned value out of the variable, which no longer owns it. */
#define PM_TAKE_PTR(variable)                             \
	({                                                \
		__typeof__(variable) taken_ = (variable); \
		(variable) = NULL;                        \
		taken_;                                   \
	})
static inline int pm_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* ---- growable arrays ----------------------------------------------------------------- */

/* Empty if zero-initialised. `data` moves when it grows: keep indices, not pointers. The
 * element type may be defined in place and contain commas. */
#define PM_VEC(...)                \
	struct {                   \
		__VA_ARGS__ *data; \
		size_t len;        \
		size_t cap;        \
	}

/*
 * Makes room for @want elements of @size bytes. Returns the (moved) array with *cap
 * updated. Returns NULL and changes nothing if out of memory or if the size overflows.
 */
void *pm_vec_grow(void *data, size_t *cap, size_t size, size_t want) PM_MUST_CHECK;

/* Returns 0 or -ENOMEM. */
#define pm_vec_reserve(vec, want)                                                       \
	({                                                                              \
		__typeof__(vec) vec_ = (vec);                                           \
		void *grown_ = pm_vec_grow(vec_->data, &vec_->cap, sizeof(*vec_->data), \
					   (want));                                     \
		if (grown_)                                                             \
			vec_->data = grown_;                                            \
		grown_ ? 0 : -ENOMEM;                                                   \
	})
/* Returns 0 or -ENOMEM. The value is evaluated at most once, after the space has been
 * reserved. */
#define pm_vec_push(vec, ...)                                        \
	({                                                           \
		__typeof__(vec) push_ = (vec);                       \
		int pushed_ = pm_vec_reserve(push_, push_->len + 1); \
		if (pushed_ == 0)                                    \
			push_->data[push_->len++] = (__VA_ARGS__);   \
		pushed_;                                             \
	})
#define pm_vec_clear(vec) ((void)((vec)->len = 0))
#define pm_vec_release(vec)                   \
	({                                    \
		__typeof__(vec) vec_ = (vec); \
		free(vec_->data);             \
		vec_->data = NULL;            \
		vec_->len = vec_->cap = 0;    \
	})

/* ---- index: from a key to a dense id ------------------------------------------------- */

/*
 * Open addressing over the ids of a table that the caller owns (a row never changes its
 * id). The index stores hashes and ids only; the caller compares keys. Empty if
 * zero-initialised.
 */
struct pm_index {
	struct pm_index_slot {
		uint32_t hash;
		uint32_t id_plus_1; /* 0: free */
	} * slots;
	size_t cap; /* 0 or a power of two */
	size_t len;
};

#define PM_INDEX_NONE UINT32_MAX

typedef bool (*pm_index_equal_fn)(const void *table, uint32_t id, const void *key);

/* Returns the id whose row equals @key, or PM_INDEX_NONE. */
uint32_t pm_index_find(const struct pm_index *index, uint64_t hash,
		       pm_index_equal_fn equal, const void *table, const void *key);
/* Adds @id, which must not be present. Returns 0, or -ENOMEM with nothing changed. */
int pm_index_add(struct pm_index *index, uint64_t hash, uint32_t id) PM_MUST_CHECK;
/* Removes @id, which must have been added with the same hash. Returns false if it is not
 * present. */
bool pm_index_remove(struct pm_index *index, uint64_t hash, uint32_t id);
void pm_index_release(struct pm_index *index);

/* A fast mixer and a fast byte hash, not resistant to adversarial keys. */
static inline uint64_t pm_hash_mix(uint64_t a, uint64_t b)
{
	__uint128_t product =
		(__uint128_t)(a ^ 0x9e3779b97f4a7c15ULL) * (b ^ 0xd1b54a32d192ed03ULL);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}
uint64_t pm_hash_bytes(const void *bytes, size_t len);

/* ---- text ---------------------------------------------------------------------------- */

/*
 * A growing string, NUL-terminated once something has been appended. An allocation
 * failure is sticky: append without checking, and check `failed` once at the end. Empty
 * if zero-initialised.
 */
struct pm_str {
	char *data;
	size_t len;
	size_t cap;
	bool failed;
};

/* Returns the string, or "" if it has no bytes yet. Valid until the next change. */
static inline const char *pm_str_text(const struct pm_str *str)
{
	return str->data ? str->data : "";
}

/* For strings that may be NULL. */
static inline const char *pm_text_or(const char *text, const char *otherwise)
{
	return text ? text : otherwise;
}

static inline const char *pm_text_or_empty(const char *text)
{
	return pm_text_or(text, "");
}

/* For parts of a string that may be left out, such as separators. */
static inline const char *pm_text_if(bool condition, const char *text)
{
	return condition ? text : "";
}

/* The ending of a noun after @count. */
static inline const char *pm_plural_s(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* The word that fits @count: "was" or "were". */
static inline const char *pm_plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

/* The part of @path after the last slash. */
const char *pm_path_name(const char *path);
/* Appends @separator, unless the string is empty. */
void pm_str_separate(struct pm_str *str, const char *separator);
void pm_str_append(struct pm_str *str, const char *bytes, size_t len);
void pm_str_puts(struct pm_str *str, const char *text);
void pm_str_putc(struct pm_str *str, char c);
void pm_str_u64(struct pm_str *str, uint64_t value);
void pm_str_hex(struct pm_str *str, uint64_t value); /* 0x1f */
void pm_str_printf(struct pm_str *str, const char *format, ...) PM_PRINTF(2, 3);
/*
 * Appends untrusted text made safe for a terminal. Control characters (C0, DEL, C1)
 * become \xNN. Bytes that are not UTF-8, and characters that change the text direction or
 * end lines, become U+FFFD.
 */
void pm_str_printable(struct pm_str *str, const char *bytes, size_t len);
/*
 * Appends untrusted text as a JSON string with quotes (RFC 8259 §7). Control characters
 * (as above) are escaped, bytes that are not UTF-8 become U+FFFD. NULL becomes `null`.
 */
void pm_str_json(struct pm_str *str, const char *text);
void pm_str_clear(struct pm_str *str);
void pm_str_release(struct pm_str *str);

/*
 * Length in bytes (1 to 4) of the well-formed UTF-8 character at @bytes (Unicode 15 table
 * 3-7: no surrogates, no overlong forms), or 0 if there is none. @len > 0.
 */
size_t pm_utf8_char(const char *bytes, size_t len);

/* Parses all of @text as an unsigned number, decimal or 0x…. Returns false if it is
 * anything else. */
bool pm_parse_u64(const char *text, uint64_t *out);

/* ---- texts in a given width ----------------------------------------------------------- */

/* Number of columns of a UTF-8 text, counting each code point as one. */
size_t pm_columns(const char *text);
/* The mark for text that was cut. */
const char *pm_ellipsis(bool ascii);
/* Appends @name, made printable and shortened to @width columns (0: unlimited). The
 * operator() of lambdas is dropped first, then arguments, template arguments, outer
 * scopes, and finally the middle. */
void pm_put_name(struct pm_str *str, const char *name, size_t width, bool ascii);
/* Appends @text made printable. Text that is too long loses its end or, with @keep_end,
 * its start. */
void pm_put_cut(struct pm_str *str, const char *text, size_t width, bool keep_end,
		bool ascii);

/* ---- similar names ------------------------------------------------------------------------ */

/*
 * Edit distance (Levenshtein, case-insensitive) of two short names, for "did you mean".
 * Names over 64 bytes have no distance (SIZE_MAX).
 */
size_t pm_name_distance(const char *a, const char *b);
/* Whether @wanted is @name without its namespaces and classes: `f` is the last part of
 * `ns::f` and of `ns::f<int>`. @name must have no parameters. */
bool pm_name_is_last_part(const char *name, const char *wanted);

/* The names most similar to a typed one, the most similar first. */
enum {
	PM_NEAR_NAMES_MAX = 4,
	PM_NEAR_NAMES_BYTES = 96,
};
struct pm_near_names {
	const char *wanted; /* borrowed */
	struct {
		size_t distance;
		char name[PM_NEAR_NAMES_BYTES];
	} list[PM_NEAR_NAMES_MAX];
	size_t len;
};
/* Names longer than PM_NEAR_NAMES_BYTES are ignored. */
void pm_near_names_add(struct pm_near_names *near, const char *name);
/* Appends `; near names: a, b` to the text of @err, or nothing if there are none. */
void pm_near_names_tell(const struct pm_near_names *near, struct pm_error *err);

/* ---- bounded reader ------------------------------------------------------------------ */

/*
 * A reader of untrusted bytes in host byte order that never leaves [data, data+len). A
 * read past the end sets `failed`, which is sticky, and returns 0: read a whole
 * structure, then check once.
 */
struct pm_reader {
	const uint8_t *data;
	size_t len;
	size_t pos;
	bool failed;
};

static inline void pm_reader_init(struct pm_reader *reader, const void *data, size_t len)
{
	*reader = (struct pm_reader){ .data = data, .len = len };
}
static inline size_t pm_reader_left(const struct pm_reader *reader)
{
	return reader->failed || reader->pos > reader->len ? 0
							   : reader->len - reader->pos;
}
/* Returns @size bytes in place, or NULL if fewer are left. If @size is 0, check `failed`
 * instead, because the result may be NULL in any case. */
const void *pm_reader_bytes(struct pm_reader *reader, size_t size);
uint8_t pm_reader_u8(struct pm_reader *reader);
uint16_t pm_reader_u16(struct pm_reader *reader);
uint32_t pm_reader_u32(struct pm_reader *reader);
uint64_t pm_reader_u64(struct pm_reader *reader);
/* LEB128 (DWARF 5 §7.6). A value of more than 64 bits fails; padding (up to 20 bytes)
 * does not. */
uint64_t pm_reader_uleb(struct pm_reader *reader);
int64_t pm_reader_sleb(struct pm_reader *reader);
/* Returns a NUL-terminated string in place, or NULL if there is no NUL before the end. */
const char *pm_reader_cstr(struct pm_reader *reader);

/* SPDX-License-Identifier: MIT */
/*
 * What every room stands on: errors, ownership, growable arrays, an index of dense ids,
 * text buffers, bounded reading of foreign bytes. Depends on libc only.
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

/* ---- errors -------------------------------------------------------------------------- */

enum {
	PM_ERROR_SOURCE_MAX = 256,
	PM_ERROR_TEXT_MAX = 512,
	PM_ERROR_FIX_MAX = 256,
};

/*
 * Why a call failed, in words for a person. Owned by the caller, filled by the callee only
 * when the call fails; nothing in it is allocated. Every `struct pm_error *` parameter of
 * this project may be NULL. Texts are one line without a newline.
 */
struct pm_error {
	int code; /* negative errno; 0 while nothing has failed */
	char source
		[PM_ERROR_SOURCE_MAX]; /* file, event or process it is about, "" if none */
	int64_t offset; /* in `source`: a line number (text) or byte offset; -1 if none */
	char text[PM_ERROR_TEXT_MAX]; /* what is wrong */
	char fix[PM_ERROR_FIX_MAX]; /* the one command or option that mends it, "" if none */
};

/* Sets code and text, empties the rest. Returns @code, so that `return pm_error_set(…)`.
 * The arguments may be texts of @err itself. */
int pm_error_set(struct pm_error *err, int code, const char *format, ...) PM_PRINTF(3, 4);
/* Adds where; @offset -1 for none. */
void pm_error_where(struct pm_error *err, const char *source, int64_t offset);
/* Adds the remedy. */
void pm_error_fix(struct pm_error *err, const char *format, ...) PM_PRINTF(2, 3);
/*
 * Prints `PROGRAM: SOURCE:OFFSET: TEXT` and, where there is one, a second line
 * `PROGRAM: try: FIX`. Control characters are escaped. For programs; libraries never print.
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

/* Closes and keeps errno, so that a cleanup never hides the reason of a failure. */
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

/* Hands an owned value over: the variable no longer owns it. */
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

/* Zero-initialised is empty. `data` moves when it grows: keep indices, not pointers. Of any
 * type, one that is defined here and has commas in it, too. */
#define PM_VEC(...)                \
	struct {                   \
		__VA_ARGS__ *data; \
		size_t len;        \
		size_t cap;        \
	}

/*
 * Room for @want elements of @size bytes. Returns the (moved) array, with *cap updated, or
 * NULL without any change when memory ends or the size overflows.
 */
void *pm_vec_grow(void *data, size_t *cap, size_t size, size_t want) PM_MUST_CHECK;

/* 0 or -ENOMEM. */
#define pm_vec_reserve(vec, want)                                                       \
	({                                                                              \
		__typeof__(vec) vec_ = (vec);                                           \
		void *grown_ = pm_vec_grow(vec_->data, &vec_->cap, sizeof(*vec_->data), \
					   (want));                                     \
		if (grown_)                                                             \
			vec_->data = grown_;                                            \
		grown_ ? 0 : -ENOMEM;                                                   \
	})
/* 0 or -ENOMEM. The value is evaluated once, after the room is there. */
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
 * Open addressing over ids of a table that the caller owns (rows never move their id). The
 * index keeps hashes and ids only; equality is asked of the caller. Zero-initialised is
 * empty.
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

/* The id whose row equals @key, or PM_INDEX_NONE. */
uint32_t pm_index_find(const struct pm_index *index, uint64_t hash,
		       pm_index_equal_fn equal, const void *table, const void *key);
/* Adds @id, known to be absent. 0 or -ENOMEM (then nothing has changed). */
int pm_index_add(struct pm_index *index, uint64_t hash, uint32_t id) PM_MUST_CHECK;
/* Takes @id out, which was added with this very hash. False when it is not there. */
bool pm_index_remove(struct pm_index *index, uint64_t hash, uint32_t id);
void pm_index_release(struct pm_index *index);

/* Not for adversarial keys across a trust boundary: a quick mixer and a quick byte hash. */
static inline uint64_t pm_hash_mix(uint64_t a, uint64_t b)
{
	__uint128_t product =
		(__uint128_t)(a ^ 0x9e3779b97f4a7c15ULL) * (b ^ 0xd1b54a32d192ed03ULL);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}
uint64_t pm_hash_bytes(const void *bytes, size_t len);

/* ---- text ---------------------------------------------------------------------------- */

/*
 * A growing text, always NUL-terminated once something was appended. Failure to allocate is
 * sticky: append without looking, ask `failed` once at the end. Zero-initialised is empty.
 */
struct pm_str {
	char *data;
	size_t len;
	size_t cap;
	bool failed;
};

void pm_str_append(struct pm_str *str, const char *bytes, size_t len);
void pm_str_puts(struct pm_str *str, const char *text);
void pm_str_putc(struct pm_str *str, char c);
void pm_str_u64(struct pm_str *str, uint64_t value);
void pm_str_hex(struct pm_str *str, uint64_t value); /* 0x1f */
void pm_str_printf(struct pm_str *str, const char *format, ...) PM_PRINTF(2, 3);
/*
 * Foreign text made safe for a terminal: control characters (C0, DEL, C1) become \xNN, bytes
 * that are not UTF-8, and letters that turn the direction of text or end lines, become U+FFFD.
 */
void pm_str_printable(struct pm_str *str, const char *bytes, size_t len);
/*
 * Foreign text as a JSON string with its quotes (RFC 8259 §7): control characters (as
 * above) escaped, bytes that are not UTF-8 become U+FFFD. NULL becomes `null`.
 */
void pm_str_json(struct pm_str *str, const char *text);
void pm_str_clear(struct pm_str *str);
void pm_str_release(struct pm_str *str);

/*
 * Length in bytes (1 to 4) of the well-formed UTF-8 character at @bytes (Unicode 15 table
 * 3-7: no surrogates, no overlong forms), or 0. @len > 0.
 */
size_t pm_utf8_char(const char *bytes, size_t len);

/* The whole of @text as an unsigned number, decimal or 0x…; false when it is anything else. */
bool pm_parse_u64(const char *text, uint64_t *ret);

/* ---- texts in a given width ----------------------------------------------------------- */

/* Columns that a text in UTF-8 takes, as far as code points tell. */
size_t pm_columns(const char *text);
/* What stands for what was left out. */
const char *pm_ellipsis(bool ascii);
/* @name made printable and cut to @width columns (0: whole): the operator() of lambdas goes
 * first, then arguments, then those of templates, then outer scopes, then the middle. */
void pm_put_name(struct pm_str *str, const char *name, size_t width, bool ascii);
/* @text made printable; too long, it loses its end or, if @keep_end, its beginning. */
void pm_put_cut(struct pm_str *str, const char *text, size_t width, bool keep_end,
		bool ascii);

/* ---- near names --------------------------------------------------------------------------- */

/*
 * Edit distance (Levenshtein, case-insensitive) of two short names; for "did you mean".
 * Names over 64 bytes count as far away (SIZE_MAX).
 */
size_t pm_name_distance(const char *a, const char *b);
/* Whether @wanted is all of @name but namespaces and classes, as `f` is of `ns::f` and of
 * `ns::f<int>`. @name has no parameters. */
bool pm_name_is_last_part(const char *name, const char *wanted);

/* Collects the names that come nearest to what was typed, the nearest first. */
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
/* Longer names than PM_NEAR_NAMES_BYTES are left out. */
void pm_near_names_add(struct pm_near_names *near, const char *name);
/* Puts `; near names: a, b` behind the text of @err; nothing when there are none. */
void pm_near_names_tell(const struct pm_near_names *near, struct pm_error *err);

/* ---- bounded reader ------------------------------------------------------------------ */

/*
 * Reads foreign bytes, host byte order, without ever leaving [data, data+len). A read past
 * the end sets `failed`, which sticks, and gives 0: read a whole structure, then ask once.
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
/* @size bytes in place, or NULL when fewer are left. Of 0 bytes only `failed` tells. */
const void *pm_reader_bytes(struct pm_reader *reader, size_t size);
uint8_t pm_reader_u8(struct pm_reader *reader);
uint16_t pm_reader_u16(struct pm_reader *reader);
uint32_t pm_reader_u32(struct pm_reader *reader);
uint64_t pm_reader_u64(struct pm_reader *reader);
/* LEB128 (DWARF 5 §7.6); a value of more than 64 bits fails, padding (20 bytes) does not. */
uint64_t pm_reader_uleb(struct pm_reader *reader);
int64_t pm_reader_sleb(struct pm_reader *reader);
/* A NUL-terminated text in place, or NULL when no NUL lies before the end. */
const char *pm_reader_cstr(struct pm_reader *reader);

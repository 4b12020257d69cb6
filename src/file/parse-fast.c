/* SPDX-License-Identifier: MIT */
/*
 * Parses the four types of line that make up nearly all of a file, in exactly the form
 * that our writer uses. Any other form, even if it is valid JSON, is left to
 * pm_file_parse_json().
 */
#include "file-internal.h"

#include <string.h>

struct cursor {
	char *at;
	char *end;
};

#define TAKE(cursor, literal) take_literal((cursor), (literal), sizeof(literal) - 1)

/* Always inline, so that lengths are constants: this saves a tenth of the time of a
 * line. */
static inline __attribute__((always_inline)) bool take_literal(struct cursor *cursor,
							       const char *literal,
							       size_t len)
{
	if ((size_t)(cursor->end - cursor->at) < len ||
	    memcmp(cursor->at, literal, len) != 0)
		return false;
	cursor->at += len;
	return true;
}

static inline bool take_u64(struct cursor *cursor, uint64_t max, uint64_t *out)
{
	enum {
		DIGITS_MAX = 19 /* 10^19 - 1 fits in 64 bits */
	};
	const char *first = cursor->at;
	uint64_t value = 0;
	char *at = cursor->at;

	while (at < cursor->end && (unsigned char)(*at - '0') < 10) {
		value = value * 10 + (uint64_t)(*at - '0');
		if (++at - first > DIGITS_MAX)
			return false;
	}
	/* JSON has no leading zeros (RFC 8259 §6). */
	if (at == first || (*first == '0' && at - first > 1) || value > max)
		return false;
	cursor->at = at;
	*out = value;
	return true;
}

static inline bool take_u32(struct cursor *cursor, uint32_t *out)
{
	uint64_t value;

	if (!take_u64(cursor, PM_FILE_NONE - 1, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}

static inline bool take_u32_or_null(struct cursor *cursor, uint32_t *out)
{
	if (TAKE(cursor, "null")) {
		*out = PM_FILE_NONE;
		return true;
	}
	return take_u32(cursor, out);
}

static inline bool take_hex(struct cursor *cursor, uint64_t *out)
{
	enum {
		DIGITS_MAX = 16
	};
	const char *first = cursor->at;
	uint64_t value = 0;
	char *at = cursor->at;

	for (; at < cursor->end; at++) {
		unsigned char digit = (unsigned char)(*at - '0');

		if (digit >= 10) {
			digit = (unsigned char)(*at - 'a');
			if (digit >= 6)
				break;
			digit = (unsigned char)(digit + 10);
		}
		value = value << 4 | digit;
	}
	if (at == first || at - first > DIGITS_MAX)
		return false;
	cursor->at = at;
	*out = value;
	return true;
}

/*
 * Whether each of eight bytes is printable ASCII, and neither a quote nor a backslash.
 * For bytes below 0x80, each sum carries at most into the highest bit of its byte: the
 * first sum for bytes from 0x20 on, the second for 0x7f, and the last two for bytes that
 * differ from the quote or the backslash, where the exclusive or is not 0.
 */
static inline bool plain_8(const char *at)
{
	const uint64_t ones = 0x0101010101010101u;
	uint64_t word, control, delete, quote, slash;

	memcpy(&word, at, sizeof(word));
	if (word & ones * 0x80)
		return false;
	control = ~(word + ones * (0x80 - 0x20));
	delete = word + ones;
	quote = ~((word ^ ones * '"') + ones * 0x7f);
	slash = ~((word ^ ones * '\\') + ones * 0x7f);
	return ((control | delete | quote | slash) & ones * 0x80) == 0;
}

/* Parses a string and its closing quote: printable ASCII without escapes. */
static inline bool take_plain_text(struct cursor *cursor, char **out, char **quote)
{
	char *at = cursor->at;

	while (cursor->end - at >= 8 && plain_8(at))
		at += 8;
	for (; at < cursor->end; at++) {
		unsigned char c = (unsigned char)*at;

		if (c == '"') {
			*out = cursor->at;
			*quote = at;
			cursor->at = at + 1;
			return true;
		}
		if (c < 0x20 || c >= 0x7f || c == '\\')
			return false;
	}
	return false;
}

static inline bool take_end(struct cursor *cursor)
{
	return TAKE(cursor, "}") && cursor->at == cursor->end;
}

/* Parses the value of a field. A string still ends with its closing quote, which becomes
 * a NUL later. */
static bool take_field_value(struct cursor *cursor, struct pm_file_field *out)
{
	char *text, *quote;
	bool minus;

	if (TAKE(cursor, "\"")) {
		out->kind = PM_FILE_FIELD_TEXT;
		if (!take_plain_text(cursor, &text, &quote))
			return false;
		out->text = text;
		return true;
	}
	minus = TAKE(cursor, "-");
	if (minus)
		out->kind = PM_FILE_FIELD_SIGNED;
	else
		out->kind = PM_FILE_FIELD_UNSIGNED;
	if (!take_u64(cursor, PM_FILE_INTEGER_MAX, &out->number) ||
	    (minus && out->number == 0))
		return false;
	if (minus)
		out->number = -out->number;
	return true;
}

static bool is_field_named_twice(const struct pm_file_parsed *parsed, const char *name,
				 size_t len)
{
	/* The comparison includes the closing quote, which no name contains. */
	for (size_t i = 0; i < parsed->fields.len; i++)
		if (strncmp(parsed->fields.data[i].name, name, len + 1) == 0)
			return true;
	return false;
}

/* Parses the rest of an object of fields. */
static bool take_sample_fields(struct pm_file_parsed *parsed, struct cursor *cursor)
{
	enum {
		FIELDS_MAX = 64 /* each is compared with all before it */
	};

	do {
		struct pm_file_field field;
		char *name, *quote;

		if (!TAKE(cursor, "\"") || !take_plain_text(cursor, &name, &quote) ||
		    !TAKE(cursor, ":") || !take_field_value(cursor, &field) ||
		    parsed->fields.len >= FIELDS_MAX ||
		    is_field_named_twice(parsed, name, (size_t)(quote - name)))
			return false;
		field.name = name;
		if (pm_vec_push(&parsed->fields, field) < 0)
			return false;
	} while (TAKE(cursor, ","));
	return TAKE(cursor, "}");
}

/* Replaces the closing quote of a string in the line by a NUL. */
static void end_text(const char *text)
{
	if (text)
		*strchr((char *)(uintptr_t)text, '"') = '\0';
}

/* Terminates the strings. The line is known to be valid here. */
static void end_fields(struct pm_file_parsed *parsed)
{
	for (size_t i = 0; i < parsed->fields.len; i++) {
		struct pm_file_field *field = &parsed->fields.data[i];

		end_text(field->name);
		if (field->kind == PM_FILE_FIELD_TEXT)
			end_text(field->text);
	}
}

static bool take_counts(struct pm_file_parsed *parsed, struct cursor *cursor)
{
	do {
		struct pm_file_event_count count;

		if (!take_u32(cursor, &count.event) || !TAKE(cursor, ",") ||
		    !take_u64(cursor, PM_FILE_INTEGER_MAX, &count.count) ||
		    parsed->counts.len >= PM_FILE_LINE_VALUES_MAX / 8 ||
		    pm_vec_push(&parsed->counts, count) < 0)
			return false;
	} while (TAKE(cursor, ","));
	return TAKE(cursor, "]");
}

static bool take_branches(struct pm_file_parsed *parsed, struct cursor *cursor)
{
	do {
		struct pm_file_branch branch;

		if (!take_u32(cursor, &branch.from) || !TAKE(cursor, ",") ||
		    !take_u32(cursor, &branch.to) || !TAKE(cursor, ",") ||
		    !take_u32(cursor, &branch.flags) || !TAKE(cursor, ",") ||
		    !take_u32_or_null(cursor, &branch.cycles) ||
		    parsed->branches.len >= PM_FILE_LINE_VALUES_MAX / 8 ||
		    pm_vec_push(&parsed->branches, branch) < 0)
			return false;
	} while (TAKE(cursor, ","));
	return TAKE(cursor, "]");
}

static bool parse_sample_fast(struct pm_file_parsed *parsed, struct cursor *cursor)
{
	struct pm_file_sample sample;
	char *stop = NULL, *quote = NULL;

	if (!take_u64(cursor, PM_FILE_INTEGER_MAX, &sample.time) ||
	    !TAKE(cursor, ",\"pid\":") || !take_u32_or_null(cursor, &sample.pid) ||
	    !TAKE(cursor, ",\"tid\":") || !take_u32_or_null(cursor, &sample.tid) ||
	    !TAKE(cursor, ",\"cpu\":") || !take_u32_or_null(cursor, &sample.cpu) ||
	    !TAKE(cursor, ",\"event\":") || !take_u32(cursor, &sample.event) ||
	    !TAKE(cursor, ",\"period\":") ||
	    !take_u64(cursor, PM_FILE_INTEGER_MAX, &sample.period) ||
	    !TAKE(cursor, ",\"stack\":") || !take_u32_or_null(cursor, &sample.stack))
		return false;
	if (TAKE(cursor, ",\"stop\":\"") && !take_plain_text(cursor, &stop, &quote))
		return false;
	pm_vec_clear(&parsed->fields);
	if (TAKE(cursor, ",\"fields\":{") && !take_sample_fields(parsed, cursor))
		return false;
	pm_vec_clear(&parsed->counts);
	if (TAKE(cursor, ",\"counts\":[") && !take_counts(parsed, cursor))
		return false;
	pm_vec_clear(&parsed->branches);
	if (TAKE(cursor, ",\"branches\":[") && !take_branches(parsed, cursor))
		return false;
	if (!take_end(cursor))
		return false;
	if (quote)
		*quote = '\0';
	end_fields(parsed);
	sample.stop = stop;
	sample.fields = parsed->fields.data;
	sample.fields_len = parsed->fields.len;
	sample.counts = parsed->counts.data;
	sample.counts_len = parsed->counts.len;
	sample.branches = parsed->branches.data;
	sample.branches_len = parsed->branches.len;
	parsed->record.type = PM_FILE_SAMPLE;
	parsed->record.sample = sample;
	return true;
}

static bool parse_stack_fast(struct pm_file_parsed *parsed, struct cursor *cursor)
{
	struct pm_file_stack stack;

	if (!take_u32(cursor, &stack.id) || !TAKE(cursor, ",\"parent\":") ||
	    !take_u32_or_null(cursor, &stack.parent) || !TAKE(cursor, ",\"frames\":["))
		return false;
	pm_vec_clear(&parsed->run);
	do {
		uint32_t frame;

		if (!take_u32(cursor, &frame) || pm_vec_push(&parsed->run, frame) < 0)
			return false;
	} while (TAKE(cursor, ","));
	if (!TAKE(cursor, "]") || !take_end(cursor) ||
	    parsed->run.len > PM_FILE_LINE_VALUES_MAX / 2)
		return false;
	stack.frame = parsed->run.data[0];
	parsed->record.type = PM_FILE_STACK;
	parsed->record.stack = stack;
	return true;
}

static bool parse_frame_fast(struct pm_file_parsed *parsed, struct cursor *cursor)
{
	struct pm_file_frame frame;
	char *how, *quote;

	if (!take_u32(cursor, &frame.id) || !TAKE(cursor, ",\"module\":") ||
	    !take_u32_or_null(cursor, &frame.module) ||
	    !TAKE(cursor, ",\"address\":\"0x") || !take_hex(cursor, &frame.address) ||
	    !TAKE(cursor, "\",\"how\":\"") || !take_plain_text(cursor, &how, &quote) ||
	    !take_end(cursor))
		return false;
	*quote = '\0';
	frame.how = how;
	parsed->record.type = PM_FILE_FRAME;
	parsed->record.frame = frame;
	return true;
}

/* Parses a function. Its strings still end with their closing quotes. */
static bool take_function(struct cursor *cursor, struct pm_file_function *out)
{
	struct pm_file_function function = { 0 };
	char *text, *quote;

	if (TAKE(cursor, "{\"name\":\"")) {
		if (!take_plain_text(cursor, &text, &quote))
			return false;
		function.name = text;
	} else if (!TAKE(cursor, "{\"name\":null")) {
		return false;
	}
	if (TAKE(cursor, ",\"file\":\"")) {
		if (!take_plain_text(cursor, &text, &quote))
			return false;
		function.file = text;
	}
	if (TAKE(cursor, ",\"line\":") && !take_u32(cursor, &function.line))
		return false;
	if (TAKE(cursor, ",\"start\":\"0x") &&
	    (!take_hex(cursor, &function.start) || !TAKE(cursor, "\"")))
		return false;
	*out = function;
	return TAKE(cursor, "}");
}

static bool parse_symbol_fast(struct pm_file_parsed *parsed, struct cursor *cursor)
{
	struct pm_file_symbol symbol;

	if (!take_u32(cursor, &symbol.frame) || !TAKE(cursor, ",\"functions\":["))
		return false;
	pm_vec_clear(&parsed->functions);
	do {
		struct pm_file_function function;

		if (!take_function(cursor, &function) ||
		    parsed->functions.len >= PM_FILE_FUNCTIONS_MAX ||
		    pm_vec_push(&parsed->functions, function) < 0)
			return false;
	} while (TAKE(cursor, ","));
	if (!TAKE(cursor, "]") || !take_end(cursor))
		return false;
	for (size_t i = 0; i < parsed->functions.len; i++) {
		end_text(parsed->functions.data[i].name);
		end_text(parsed->functions.data[i].file);
	}
	symbol.functions = parsed->functions.data;
	symbol.functions_len = parsed->functions.len;
	parsed->record.type = PM_FILE_SYMBOL;
	parsed->record.symbol = symbol;
	return true;
}

bool pm_file_parse_fast(struct pm_file_parsed *parsed, char *line, size_t len)
{
	struct cursor cursor = { .at = line, .end = line + len };

	if (!TAKE(&cursor, "{\"type\":\""))
		return false;
	if (TAKE(&cursor, "sample\",\"time\":"))
		return parse_sample_fast(parsed, &cursor);
	if (TAKE(&cursor, "stack\",\"id\":"))
		return parse_stack_fast(parsed, &cursor);
	if (TAKE(&cursor, "frame\",\"id\":"))
		return parse_frame_fast(parsed, &cursor);
	if (TAKE(&cursor, "symbol\",\"frame\":"))
		return parse_symbol_fast(parsed, &cursor);
	return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * A line is a name (`fn=`, `ob=`, …), the first half of a call or of a jump, a position
 * with costs, or `key: value`. A name is valid until the next one of its kind, a callee's
 * name for one call. Names may be abbreviated to numbers, positions to differences.
 */
#include "callgrind.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum name_kind {
	NAME_OBJECT,
	NAME_FILE,
	NAME_FUNCTION,
	NAME_KINDS
};

enum {
	POSITIONS_MAX = 2, /* an instruction and a line */
};

struct short_name {
	uint64_t number;
	enum name_kind kind;
	char *text;
};

struct pm_callgrind {
	struct pm_callgrind_table *table;
	FILE *file;
	char *line;
	size_t line_cap;
	int64_t line_number;
	char name[PM_ERROR_SOURCE_MAX];
	struct pm_callgrind_header header;
	bool has_instr, has_line;
	uint64_t instr_at, line_at; /* the position that differences are relative to */
	struct pm_callgrind_who who;
	/* The target of the next call, as far as it is known. */
	uint32_t callee_object, callee_file;
	char *callee_function;
	PM_VEC(struct short_name) shorts;
	struct pm_index short_index;
	uint64_t counts[PM_CALLGRIND_COLUMNS_MAX];
};

/* ---- lines ---------------------------------------------------------------------------- */

static int reject_line(const struct pm_callgrind *reader, struct pm_error *err,
		       const char *what)
{
	pm_error_set(err, -EBADMSG, "%s", what);
	pm_error_where(err, reader->name, reader->line_number);
	return -EBADMSG;
}

static int reader_no_memory(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
}

static void skip_blanks(const char **at)
{
	while (**at == ' ' || **at == '\t')
		(*at)++;
}

/* Returns the value of a digit; @base or more: it is no digit. */
static unsigned int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	c |= 0x20;
	if (c >= 'a' && c <= 'f')
		return (unsigned int)(c - 'a') + 10;
	return UINT_MAX;
}

/* Decimal or 0x…; the character that ends it is not consumed. */
static bool scan_number(const char **at, uint64_t *out)
{
	const char *text = *at;
	uint64_t value = 0, base = 10;
	unsigned int digit;
	bool any = false;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	while ((digit = digit_value(*text)) < base) {
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
		any = true;
		text++;
	}
	if (!any)
		return false;
	*at = text;
	*out = value;
	return true;
}

static bool short_equal(const void *table, uint32_t id, const void *key)
{
	const struct short_name *have =
		&((const struct pm_callgrind *)table)->shorts.data[id];
	const struct short_name *wanted = key;

	return have->number == wanted->number && have->kind == wanted->kind;
}

/*
 * The value of `fn=` and its like: `NAME`, `(7) NAME`, which makes 7 an abbreviation of
 * it, or `(7)`. @out is NULL if 7 was not defined.
 */
static int read_short_name(struct pm_callgrind *reader, enum name_kind kind,
			   const char *text, const char **out)
{
	struct short_name wanted = { .kind = kind };
	const char *at = text + 1;
	uint64_t hash;
	uint32_t id;

	*out = text;
	if (text[0] != '(' || !scan_number(&at, &wanted.number) || *at != ')')
		return 0;
	at++;
	skip_blanks(&at);
	hash = pm_hash_mix(wanted.number, kind);
	id = pm_index_find(&reader->short_index, hash, short_equal, reader, &wanted);
	if (*at == '\0') {
		if (id == PM_INDEX_NONE)
			*out = NULL;
		else
			*out = reader->shorts.data[id].text;
		return 0;
	}
	wanted.text = strdup(at);
	if (!wanted.text)
		return -ENOMEM;
	*out = wanted.text;
	if (id != PM_INDEX_NONE) {
		free(reader->shorts.data[id].text);
		reader->shorts.data[id].text = wanted.text;
		return 0;
	}
	if (pm_vec_push(&reader->shorts, wanted) < 0) {
		free(wanted.text);
		return -ENOMEM;
	}
	return pm_index_add(&reader->short_index, hash,
			    (uint32_t)(reader->shorts.len - 1));
}

static const struct name_line {
	const char *key;
	enum name_kind kind;
	enum {
		NAME_OWN,
		NAME_CALLEE,
		NAME_OTHER, /* of a jump's target; it may define an abbreviation */
	} of;
} name_lines[] = {
	{ "ob=", NAME_OBJECT, NAME_OWN },       { "fl=", NAME_FILE, NAME_OWN },
	{ "fi=", NAME_FILE, NAME_OWN },         { "fe=", NAME_FILE, NAME_OWN },
	{ "fn=", NAME_FUNCTION, NAME_OWN },     { "cob=", NAME_OBJECT, NAME_CALLEE },
	{ "cfl=", NAME_FILE, NAME_CALLEE },     { "cfi=", NAME_FILE, NAME_CALLEE },
	{ "cfn=", NAME_FUNCTION, NAME_CALLEE }, { "jfi=", NAME_FILE, NAME_OTHER },
	{ "jfn=", NAME_FUNCTION, NAME_OTHER },
};

static int set_own(struct pm_callgrind *reader, enum name_kind kind, const char *text)
{
	struct pm_callgrind_who *who = &reader->who;
	uint32_t id;

	if (kind == NAME_FUNCTION)
		id = pm_callgrind_function_id(reader->table, who->object, text,
					      &who->level);
	else if (kind == NAME_FILE)
		id = pm_callgrind_file_id(reader->table, text);
	else
		id = pm_callgrind_object_id(reader->table, text);
	if (id == PM_CALLGRIND_NONE)
		return -ENOMEM;
	if (kind == NAME_FUNCTION) {
		who->function = id;
	} else if (kind == NAME_FILE) {
		who->file = id;
	} else {
		/* The function of the new object is given by a following line. */
		who->object = id;
		who->function = PM_CALLGRIND_NONE;
	}
	return 0;
}

static int set_callee(struct pm_callgrind *reader, enum name_kind kind, const char *text)
{
	if (kind == NAME_FUNCTION) {
		free(reader->callee_function);
		reader->callee_function = strdup(text);
		if (!reader->callee_function)
			return -ENOMEM;
		return 0;
	}
	if (kind == NAME_FILE) {
		reader->callee_file = pm_callgrind_file_id(reader->table, text);
		if (reader->callee_file == PM_CALLGRIND_NONE)
			return -ENOMEM;
		return 0;
	}
	reader->callee_object = pm_callgrind_object_id(reader->table, text);
	if (reader->callee_object == PM_CALLGRIND_NONE)
		return -ENOMEM;
	return 0;
}

/* Returns 1 if the line was one of these, 0 if not. */
static int name_line(struct pm_callgrind *reader, const char *line, struct pm_error *err)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(name_lines); i++) {
		const struct name_line *it = &name_lines[i];
		size_t len = strlen(it->key);
		const char *text;
		int ret;

		if (strncmp(line, it->key, len) != 0)
			continue;
		ret = read_short_name(reader, it->kind, line + len, &text);
		if (ret == 0 && !text)
			return reject_line(
				reader, err,
				"a number in the place of a name that was not told");
		if (ret == 0 && it->of == NAME_OWN)
			ret = set_own(reader, it->kind, text);
		else if (ret == 0 && it->of == NAME_CALLEE)
			ret = set_callee(reader, it->kind, text);
		if (ret < 0)
			return reader_no_memory(err);
		return 1;
	}
	return 0;
}

/* ---- positions and costs --------------------------------------------------------------- */

/* Reads a number; `+N` or `-N`, relative to the previous one; or `*`, the previous
 * one. */
static bool read_position(const char **at, uint64_t last, uint64_t *out)
{
	char sign = **at;
	uint64_t value;

	skip_blanks(at);
	sign = **at;
	if (sign == '*') {
		(*at)++;
		*out = last;
		return true;
	}
	if (sign == '+' || sign == '-')
		(*at)++;
	if (!scan_number(at, &value))
		return false;
	if (sign == '+')
		return !__builtin_add_overflow(last, value, out);
	if (sign == '-')
		return !__builtin_sub_overflow(last, value, out);
	*out = value;
	return true;
}

/* Reads all positions that a line of this file has. The last one of a jump's target may
 * be missing. */
static bool read_positions(const struct pm_callgrind *reader, const char **at,
			   uint64_t *instr, uint64_t *line)
{
	if (reader->has_instr && !read_position(at, reader->instr_at, instr))
		return false;
	return !reader->has_line || read_position(at, reader->line_at, line);
}

static bool read_costs(const struct pm_callgrind *reader, const char **at,
		       uint64_t out[PM_CALLGRIND_COLUMNS_MAX])
{
	size_t len = 0;

	memset(out, 0, PM_CALLGRIND_COLUMNS_MAX * sizeof(*out));
	for (;;) {
		skip_blanks(at);
		if (**at == '\0')
			return true;
		if (len == reader->header.columns_len || !scan_number(at, &out[len++]))
			return false;
	}
}

/* A position with its costs: a row by itself, or the second half of one. */
static int cost_line(struct pm_callgrind *reader, const char *line,
		     struct pm_callgrind_row *row, struct pm_error *err)
{
	const char *at = line;
	uint64_t instr = 0, number = 0;

	if (!read_positions(reader, &at, &instr, &number))
		return reject_line(reader, err, "not a position");
	if (!read_costs(reader, &at, reader->counts))
		return reject_line(reader, err, "not the costs of a position");
	reader->instr_at = instr;
	reader->line_at = number;
	row->who = reader->who;
	row->address = instr;
	row->line = number;
	row->counts = reader->counts;
	return 1;
}

static int read_line(struct pm_callgrind *reader, struct pm_error *err)
{
	ssize_t len;

	/* callgrind writes no lines longer than PM_CALLGRIND_LINE_MAX. */
	errno = 0;
	len = getline(&reader->line, &reader->line_cap, reader->file);
	if (len < 0 && ferror(reader->file)) {
		pm_error_set(err, -EIO, "%s", strerror(errno ? errno : EIO));
		pm_error_where(err, reader->name, -1);
		return -EIO;
	}
	if (len < 0)
		return 0;
	reader->line_number++;
	if (len > PM_CALLGRIND_LINE_MAX)
		return reject_line(reader, err, "a line without end");
	while (len > 0 && strchr("\n\r \t", reader->line[len - 1]))
		len--;
	reader->line[len] = '\0';
	return 1;
}

/* The line after `calls=` and `jump=` has the position of the caller or the jump. */
static int second_half(struct pm_callgrind *reader, struct pm_callgrind_row *row,
		       struct pm_error *err)
{
	int ret = read_line(reader, err);

	if (ret < 0)
		return ret;
	if (ret == 0)
		return reject_line(reader, err, "ends in the middle of a call");
	return cost_line(reader, reader->line, row, err);
}

static int call_line(struct pm_callgrind *reader, const char *text,
		     struct pm_callgrind_row *row, struct pm_error *err)
{
	struct pm_callgrind_who callee = {
		.object = reader->callee_object,
		.file = reader->callee_file,
	};
	uint64_t line = 0;

	*row = (struct pm_callgrind_row){ .kind = PM_CALLGRIND_CALL };
	if (!reader->callee_function)
		return reject_line(reader, err, "a call of nobody");
	if (!scan_number(&text, &row->times) ||
	    !read_positions(reader, &text, &row->target, &line))
		return reject_line(reader, err, "not a call");
	/* A callee of the same object or file need not name it. */
	if (callee.object == PM_CALLGRIND_NONE)
		callee.object = reader->who.object;
	if (callee.file == PM_CALLGRIND_NONE)
		callee.file = reader->who.file;
	callee.function = pm_callgrind_function_id(
		reader->table, callee.object, reader->callee_function, &callee.level);
	if (callee.function == PM_CALLGRIND_NONE)
		return reader_no_memory(err);
	row->callee = callee;
	free(PM_TAKE_PTR(reader->callee_function));
	reader->callee_object = reader->callee_file = PM_CALLGRIND_NONE;
	return second_half(reader, row, err);
}

/* `jump=TIMES TARGET`, `jcnd=TAKEN/EXECUTED TARGET`. */
static int jump_line(struct pm_callgrind *reader, const char *text, bool conditional,
		     struct pm_callgrind_row *row, struct pm_error *err)
{
	uint64_t executed, line = 0;
	int ret;

	*row = (struct pm_callgrind_row){ .kind = PM_CALLGRIND_JUMP };
	if (!scan_number(&text, &row->times))
		return reject_line(reader, err, "not a jump");
	if (conditional &&
	    (*text++ != '/' || !scan_number(&text, &executed) || executed < row->times))
		return reject_line(reader, err, "not a conditional jump");
	if (!read_positions(reader, &text, &row->target, &line))
		return reject_line(reader, err, "not a jump");
	ret = second_half(reader, row, err);
	row->counts = NULL;
	return ret;
}

/* ---- key: value ------------------------------------------------------------------------- */

static int read_event_names(struct pm_callgrind *reader, const char *text,
			    struct pm_error *err)
{
	struct pm_callgrind_header *header = &reader->header;

	for (size_t i = 0; i < header->columns_len; i++)
		free(header->columns[i]);
	header->columns_len = 0;
	for (;;) {
		size_t len;

		skip_blanks(&text);
		len = strcspn(text, " \t");
		if (len == 0)
			return 0;
		if (header->columns_len == PM_CALLGRIND_COLUMNS_MAX)
			return reject_line(reader, err,
					   "more events than anything counts");
		header->columns[header->columns_len] = strndup(text, len);
		if (!header->columns[header->columns_len])
			return reader_no_memory(err);
		header->columns_len++;
		text += len;
	}
}

static int read_position_kinds(struct pm_callgrind *reader, const char *text,
			       struct pm_error *err)
{
	reader->has_instr = strncmp(text, "instr", 5) == 0;
	if (reader->has_instr)
		text += 5;
	skip_blanks(&text);
	reader->has_line = strcmp(text, "line") == 0;
	if (reader->has_line)
		text += 4;
	if (*text == '\0' && (reader->has_instr || reader->has_line))
		return 0;
	return reject_line(reader, err, "unknown positions");
}

static int scan_id(struct pm_callgrind *reader, const char *text, int32_t *out,
		   struct pm_error *err)
{
	uint64_t value;

	if (!scan_number(&text, &value) || *text || value > INT32_MAX)
		return reject_line(reader, err, "not a process or thread");
	*out = (int32_t)value;
	return 0;
}

/* Reads a number; ignores the rest of the line. */
static int read_count(struct pm_callgrind *reader, const char *text, uint64_t *out,
		      struct pm_error *err)
{
	if (!scan_number(&text, out))
		return reject_line(reader, err, "not a number");
	return 0;
}

/* `Timerange: Basic block 12 - 34`, `Trigger: --dump-after=fork`; other descriptions are
 * for human readers. */
static int read_description(struct pm_callgrind *reader, const char *text,
			    struct pm_error *err)
{
	static const char range[] = "Timerange: Basic block ";
	static const char trigger[] = "Trigger: --dump-";
	struct pm_callgrind_header *header = &reader->header;

	if (strncmp(text, range, strlen(range)) == 0) {
		const char *end = strstr(text, " - ");

		if (end)
			return read_count(reader, end + 3, &header->last_block, err);
		return 0;
	}
	if (strncmp(text, trigger, strlen(trigger)) != 0)
		return 0;
	text += strlen(trigger);
	if (strncmp(text, "before=", 7) == 0)
		snprintf(header->dumped_before, sizeof(header->dumped_before), "%s",
			 text + 7);
	if (strcmp(text, "after=_Fork") == 0 || strstr(text, "vfork"))
		header->trigger = PM_CALLGRIND_AFTER_FORK;
	else if (strncmp(text, "after=", 6) == 0)
		header->trigger = PM_CALLGRIND_AFTER_HANDLERS;
	else if (strstr(text, "spawn"))
		header->trigger = PM_CALLGRIND_BEFORE_SPAWN;
	return 0;
}

/* Returns false if the line has another key. */
static bool is_key(const char *line, const char *key, const char **value)
{
	size_t len = strlen(key);

	if (strncmp(line, key, len) != 0 || line[len] != ':')
		return false;
	*value = line + len + 1;
	skip_blanks(value);
	return true;
}

static int key_line(struct pm_callgrind *reader, const char *line, struct pm_error *err)
{
	struct pm_callgrind_header *header = &reader->header;
	size_t word =
		strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	const char *value;

	if (is_key(line, "events", &value))
		return read_event_names(reader, value, err);
	if (is_key(line, "positions", &value))
		return read_position_kinds(reader, value, err);
	if (is_key(line, "pid", &value))
		return scan_id(reader, value, &header->pid, err);
	if (is_key(line, "thread", &value))
		return scan_id(reader, value, &header->thread, err);
	if (is_key(line, "part", &value))
		return read_count(reader, value, &header->part, err);
	if (is_key(line, "desc", &value))
		return read_description(reader, value, err);
	if (is_key(line, "creator", &value)) {
		snprintf(header->creator, sizeof(header->creator), "%s", value);
		return 0;
	}
	if (is_key(line, "totals", &value)) {
		header->ended = true;
		if (!read_costs(reader, &value, header->totals))
			return reject_line(reader, err, "not the totals");
		return 0;
	}
	/* Lines that other tools add (`cmd:`, `rcalls=`) are ignored. */
	if (word > 0 && (line[word] == ':' || line[word] == '='))
		return 0;
	return reject_line(reader, err, "not a line of callgrind");
}

/* ---- public ----------------------------------------------------------------------------- */

int pm_callgrind_open(struct pm_callgrind **out, struct pm_callgrind_table *table, int fd,
		      const char *name, struct pm_error *err)
{
	struct pm_callgrind *reader = calloc(1, sizeof(*reader));

	if (!reader) {
		close(fd);
		return reader_no_memory(err);
	}
	reader->file = fdopen(fd, "r");
	if (!reader->file) {
		close(fd);
		free(reader);
		return reader_no_memory(err);
	}
	reader->table = table;
	snprintf(reader->name, sizeof(reader->name), "%s", name);
	/* The format's defaults. */
	reader->has_line = true;
	reader->callee_object = reader->callee_file = PM_CALLGRIND_NONE;
	reader->who = (struct pm_callgrind_who){ PM_CALLGRIND_NONE, PM_CALLGRIND_NONE,
						 PM_CALLGRIND_NONE, 1 };
	*out = reader;
	return 0;
}

void pm_callgrind_close(struct pm_callgrind *reader)
{
	if (!reader)
		return;
	fclose(reader->file);
	free(reader->line);
	free(reader->callee_function);
	for (size_t i = 0; i < reader->header.columns_len; i++)
		free(reader->header.columns[i]);
	for (size_t i = 0; i < reader->shorts.len; i++)
		free(reader->shorts.data[i].text);
	pm_vec_release(&reader->shorts);
	pm_index_release(&reader->short_index);
	free(reader);
}

const struct pm_callgrind_header *pm_callgrind_header(const struct pm_callgrind *reader)
{
	return &reader->header;
}

int pm_callgrind_next(struct pm_callgrind *reader, struct pm_callgrind_row *out,
		      struct pm_error *err)
{
	int ret;

	while ((ret = read_line(reader, err)) > 0) {
		const char *line = reader->line;

		if (line[0] == '\0' || line[0] == '#')
			continue;
		if (isdigit((unsigned char)line[0]) || strchr("+-*", line[0])) {
			*out = (struct pm_callgrind_row){ .kind = PM_CALLGRIND_SELF };
			return cost_line(reader, line, out, err);
		}
		if (strncmp(line, "calls=", 6) == 0)
			return call_line(reader, line + 6, out, err);
		if (strncmp(line, "jump=", 5) == 0)
			return jump_line(reader, line + 5, false, out, err);
		if (strncmp(line, "jcnd=", 5) == 0)
			return jump_line(reader, line + 5, true, out, err);
		ret = name_line(reader, line, err);
		if (ret == 0)
			ret = key_line(reader, line, err);
		if (ret < 0)
			return ret;
	}
	return ret;
}

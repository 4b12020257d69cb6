/* SPDX-License-Identifier: MIT */
/* Parses gates, and finds the rows that they match. */
#include "compare-internal.h"
#include "pm/suite.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

enum {
	NEAR_MAX = 3, /* maximum number of typos in a name that is suggested */
	TOLD_MAX = 8, /* maximum number of names in a message */
};

static const char scope_prefix[] = "fn:";

/* ---- one gate ----------------------------------------------------------------------- */

static bool skip_word(const char **at, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*at, word, len) != 0)
		return false;
	*at += len;
	return true;
}

/* Parses the suffix of a number, and finds its factor to the unit of an event: 1, ns or
 * bytes. */
static bool parse_suffix(const char **at, double *out)
{
	static const struct {
		const char *name;
		double factor;
	} suffixes[] = {
		{ "KiB", 1024 }, { "MiB", 1024 * 1024 }, { "GiB", 1024 * 1024 * 1024 },
		{ "ns", 1 },     { "us", 1e3 },          { "ms", 1e6 },
		{ "s", 1e9 },    { "k", 1e3 },           { "M", 1e6 },
		{ "G", 1e9 }
	};

	*out = 1;
	*at += strspn(*at, " ");
	for (size_t i = 0; i < PM_ARRAY_LEN(suffixes); i++)
		if (skip_word(at, suffixes[i].name)) {
			*out = suffixes[i].factor;
			break;
		}
	*at += strspn(*at, " ");
	return **at == ',' || **at == '\0';
}

/* Parses "<=1.2M". */
static bool parse_at_most(const char *at, struct pm_gate *gate, const char **ret_end)
{
	size_t digits;
	double number, factor;
	char *end;

	if (!skip_word(&at, "<="))
		return false;
	digits = strspn(at, "0123456789.");
	if (digits == 0)
		return false;
	number = strtod(at, &end);
	if (end != at + digits)
		return false;
	at = end;
	if (!parse_suffix(&at, &factor) || !isfinite(number * factor))
		return false;
	gate->at_most = number * factor;
	gate->limit = INFINITY;
	gate->both = false;
	*ret_end = at;
	return true;
}

/* Parses the part of a gate that follows "=". Returns false if this "=" belongs to a
 * name. */
static bool parse_limit(const char *at, struct pm_gate *gate, const char **ret_end)
{
	char *end;

	gate->at_most = NAN;
	gate->both = skip_word(&at, "±") || skip_word(&at, "+-");
	/* strtod(3) would also accept hexadecimal digits and "nan". */
	if (strspn(at, "0123456789.") == 0)
		return false;
	gate->limit = strtod(at, &end) / 100;
	if (end != at + strspn(at, "0123456789.") || *end != '%' ||
	    !isfinite(gate->limit))
		return false;
	end++;
	while (*end == ' ')
		end++;
	*ret_end = end;
	return *end == ',' || *end == '\0';
}

static bool is_word(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] != '_' && !(text[i] >= 'a' && text[i] <= 'z') &&
		    !(i > 0 && text[i] >= '0' && text[i] <= '9'))
			return false;
	return len > 0;
}

/* Returns the offset of the part that follows the last single colon before @end, or 0 if
 * there is no colon. */
static size_t piece_before(const char *text, size_t end)
{
	for (size_t i = end; i-- > 0;)
		if (text[i] == ':' && (i == 0 || text[i - 1] != ':') &&
		    (i + 1 >= end || text[i + 1] != ':'))
			return i + 1;
	return 0;
}

/* Returns the offset of EVENT in NAME:EVENT, or 0 if there is none. "instructions:u" and
 * "sched:sched_switch" are events with a colon. */
static size_t event_at(const char *text, size_t len)
{
	size_t last = piece_before(text, len), before;

	if (last < 2)
		return 0;
	before = piece_before(text, last - 1);
	if (before < 2)
		return last;
	if (pm_event_modifiers_len(text, len) == len - last)
		return before;
	if (is_word(text + before, last - 1 - before) && is_word(text + last, len - last))
		return before;
	return last;
}

static int copy_gate_text(char **out, const char *text, size_t len)
{
	*out = strndup(text, len);
	if (!*out)
		return -ENOMEM;
	return 0;
}

/* Moves @text past the name of the case, if there is one. */
static int gate_take_case(struct pm_gate *gate, const char **text, size_t *len)
{
	PM_AUTO_FREE char *whole = strndup(*text, *len);
	const char *row = whole ? pm_case_row(whole) : NULL;
	size_t before = row ? (size_t)(row - whole) : 0;

	if (!whole)
		return -ENOMEM;
	*text += before;
	*len -= before;
	if (before == 0)
		return 0;
	return copy_gate_text(&gate->case_name, whole,
			      before - strlen(PM_CASE_SEPARATOR));
}

static int fill_gate(struct pm_gate *gate, const char *text, size_t len,
		     const char *source, struct pm_error *err)
{
	size_t at = 0;

	if (gate_take_case(gate, &text, &len) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	if (len >= strlen(scope_prefix) && skip_word(&text, scope_prefix)) {
		len -= strlen(scope_prefix);
		at = event_at(text, len);
		if (at == 0 || at >= len)
			return pm_error_set(err, -EINVAL,
					    "the gate of function '%.*s' names no event",
					    (int)len, text);
		if (copy_gate_text(&gate->scope, text, at - 1) < 0)
			return pm_error_set(err, -ENOMEM, "out of memory");
	}
	if (len == at)
		return pm_error_set(err, -EINVAL, "a gate names no event");
	if (len == 4 && memcmp(text, "wall", 4) == 0 && at == 0)
		gate->event = strdup("wall-time");
	else if (copy_gate_text(&gate->event, text + at, len - at) < 0)
		gate->event = NULL;
	gate->source = strdup(source);
	if (gate->event && gate->source)
		return 0;
	return pm_error_set(err, -ENOMEM, "out of memory");
}

static void free_gate(struct pm_gate *gate)
{
	free(gate->case_name);
	free(gate->scope);
	free(gate->event);
	free(gate->source);
	*gate = (struct pm_gate){ 0 };
}

/* Returns the "=" or "<=" of the gate that starts at @text, or NULL if there is none. */
static const char *find_limit(const char *text, struct pm_gate *gate,
			      const char **ret_end)
{
	for (const char *at = strchr(text, '='); at; at = strchr(at + 1, '=')) {
		if (parse_limit(at + 1, gate, ret_end))
			return at;
		if (at > text && parse_at_most(at - 1, gate, ret_end))
			return at - 1;
	}
	return NULL;
}

int pm_gates_parse(struct pm_gates *gates, const char *text, const char *source,
		   struct pm_error *err)
{
	PM_CLEANUP(pm_gates_release) struct pm_gates more = { 0 };
	int ret = 0;

	do {
		struct pm_gate gate = { 0 };
		const char *end, *limit;

		text += strspn(text, " ");
		limit = find_limit(text, &gate, &end);
		if (!limit) {
			pm_error_set(err, -EINVAL, "'%s' is no gate", text);
			pm_error_fix(err,
				     "EVENT=N%%, fn:NAME:EVENT=N%% or EVENT<=NUMBER");
			return -EINVAL;
		}
		ret = fill_gate(&gate, text, (size_t)(limit - text), source, err);
		if (ret == 0 && pm_vec_push(&more.list, gate) < 0)
			ret = pm_error_set(err, -ENOMEM, "out of memory");
		if (ret < 0)
			free_gate(&gate);
		text = *end ? end + 1 : end;
	} while (ret == 0 && *text);
	if (ret == 0 && pm_vec_reserve(&gates->list, gates->list.len + more.list.len) < 0)
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < more.list.len; i++)
		gates->list.data[gates->list.len++] = more.list.data[i];
	more.list.len = 0;
	return 0;
}

void pm_gates_release(struct pm_gates *gates)
{
	for (size_t i = 0; i < gates->list.len; i++)
		free_gate(&gates->list.data[i]);
	pm_vec_release(&gates->list);
}

/* ---- matching rows ------------------------------------------------------------------ */

static bool fits_gate_pattern(const char *pattern, const char *text)
{
	/* The literal comparison is for C++ names, which may contain brackets and
	 * stars. */
	return text && (strcmp(pattern, text) == 0 || fnmatch(pattern, text, 0) == 0);
}

/* Whether @pattern is the first @len bytes of @name, or the end of these after a "::". */
static bool ends_so(const char *pattern, const char *name, size_t len)
{
	size_t own = strlen(pattern);

	return own <= len && memcmp(name + len - own, pattern, own) == 0 &&
	       (own == len ||
		(len - own >= 2 && memcmp(name + len - own - 2, "::", 2) == 0));
}

static bool fits_scope(const char *pattern, const char *scope, const char *symbol)
{
	size_t bare = pm_bare_name_len(scope);

	return fits_gate_pattern(pattern, scope) || fits_gate_pattern(pattern, symbol) ||
	       ends_so(pattern, scope, bare) || ends_so(pattern, scope, strlen(scope));
}

/* A pattern without modifiers matches any modifiers. */
static bool fits_event(const char *pattern, const struct pm_gate_target *target)
{
	const char *event = target->event;
	size_t len = strlen(event), modifiers = pm_event_modifiers_len(event, len);
	size_t bare = modifiers > 0 ? len - modifiers - 1 : len;
	PM_AUTO_FREE char *name = strndup(event, bare);

	if (fits_gate_pattern(pattern, event) ||
	    fits_gate_pattern(pattern, target->requested[0]) ||
	    fits_gate_pattern(pattern, target->requested[1]))
		return true;
	if (!name)
		return false;
	if (target->user_only && modifiers == 0) {
		size_t own = strlen(pattern);

		return own == bare + 2 && strncmp(pattern, name, bare) == 0 &&
		       strcmp(pattern + bare, ":u") == 0;
	}
	return fits_gate_pattern(pattern, name);
}

bool pm_gate_fits_case(const struct pm_gate *gate, const char *name, const char *group)
{
	if (!gate->case_name || !name)
		return !gate->case_name;
	if (strcmp(gate->case_name, name) == 0 ||
	    (group && strcmp(gate->case_name, group) == 0))
		return true;
	return !gate->case_exact && (fits_gate_pattern(gate->case_name, name) ||
				     fits_gate_pattern(gate->case_name, group));
}

bool pm_gate_fits(const struct pm_gate *gate, const struct pm_gate_target *target)
{
	if (!gate->scope != !target->scope)
		return false;
	return (!gate->scope || fits_scope(gate->scope, target->scope, target->symbol)) &&
	       fits_event(gate->event, target);
}

bool pm_gate_is_default(const struct pm_compare_row *row)
{
	return strcmp(row->gate_source, "default") == 0 ||
	       strcmp(row->gate_source, "history") == 0;
}

/* ---- gates without a row ------------------------------------------------------------ */

/* Returns a name that may have been meant: the row's scope if @gate's event matches @row,
 * the row's event if the scope matches, otherwise NULL. Sets *ret_typed to the part of
 * the gate that did not match. */
static const char *find_gate_candidate(const struct pm_gate *gate,
				       const struct pm_compare_row *row,
				       const char **ret_typed)
{
	struct pm_gate_target target = {
		row->scope, row->symbol, row->event, { NULL }, false
	};

	if (!gate->scope != !row->scope)
		return NULL;
	if (gate->scope && fits_event(gate->event, &target)) {
		*ret_typed = gate->scope;
		return row->scope;
	}
	if (gate->scope && !fits_scope(gate->scope, row->scope, row->symbol))
		return NULL;
	*ret_typed = gate->event;
	return row->event;
}

const char *pm_gate_near(const struct pm_gate *gate,
			 const struct pm_comparison *comparison)
{
	const char *near = NULL;
	size_t best = NEAR_MAX + 1;

	for (size_t i = 0; i < comparison->rows.len; i++) {
		const char *typed = NULL;
		const char *name =
			find_gate_candidate(gate, &comparison->rows.data[i], &typed);
		size_t distance = name ? pm_name_distance(typed, name) : best;

		/* The limit depends on the length, because nearly every name is similar
		 * to a short one. */
		if (distance < best && distance <= strlen(typed) / 3) {
			best = distance;
			near = name;
		}
	}
	return near;
}

/* Whether some machines or engines count the event and others do not: a gate for it may
 * be meant for another machine. */
static bool is_of_others(const char *event)
{
	static const char *const names[] = {
		"cycles",
		"cpu-cycles",
		"ref-cycles",
		"bus-cycles",
		"instructions",
		"branches",
		"branch-instructions",
		"branch-misses",
		"cache-references",
		"cache-misses",
		"stalled-cycles-frontend",
		"stalled-cycles-backend",
		"sim.Ir",
		"sim.Dr",
		"sim.Dw",
		"sim.I1mr",
		"sim.D1mr",
		"sim.D1mw",
		"sim.ILmr",
		"sim.DLmr",
		"sim.DLmw",
		"sim.Bc",
		"sim.Bcm",
		"sim.Bi",
		"sim.Bim",
		"sim.L1hits",
		"sim.LLhits",
		"sim.RAMhits",
		"sim.cycles",
	};
	size_t len = strlen(event), modifiers = pm_event_modifiers_len(event, len);
	size_t bare = modifiers > 0 ? len - modifiers - 1 : len;

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++)
		if (strlen(names[i]) == bare && memcmp(names[i], event, bare) == 0)
			return true;
	return false;
}

bool pm_gate_is_slip(const struct pm_gate *gate, const struct pm_comparison *comparison)
{
	bool scope_known = !gate->scope;

	for (size_t i = 0; i < comparison->rows.len && !scope_known; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		scope_known =
			row->scope && fits_scope(gate->scope, row->scope, row->symbol);
	}
	if (scope_known && is_of_others(gate->event))
		return false;
	return strcmp(gate->source, "--gate") == 0 || pm_gate_near(gate, comparison);
}

static void tell_names(const struct pm_gate *gate, const struct pm_comparison *comparison,
		       struct pm_error *err)
{
	struct pm_str names = { 0 };
	size_t told = 0;

	for (size_t i = 0; i < comparison->rows.len && told < TOLD_MAX; i++) {
		const char *typed, *name;

		name = find_gate_candidate(gate, &comparison->rows.data[i], &typed);
		if (!name || (names.data && strstr(names.data, name)))
			continue;
		pm_str_printf(&names, "%s%s", told++ > 0 ? ", " : "", name);
	}
	if (told > 0 && !names.failed)
		pm_error_fix(err, "one of: %s", names.data);
	pm_str_release(&names);
}

int pm_gate_no_case(const struct pm_gate *gate, const struct pm_comparison *comparison,
		    struct pm_error *err)
{
	const char *near = NULL;
	size_t best = NEAR_MAX + 1;

	pm_error_set(err, -ENOENT,
		     "the gate '%s" PM_CASE_SEPARATOR "%s' names no case that "
		     "was measured",
		     gate->case_name, gate->event);
	pm_error_where(err, gate->source, -1);
	for (size_t i = 0; i < comparison->cases.len; i++) {
		const char *name = comparison->cases.data[i].name;
		size_t distance = pm_name_distance(gate->case_name, name);

		if (distance < best) {
			best = distance;
			near = name;
		}
	}
	if (!near && comparison->cases.len > 0)
		near = comparison->cases.data[0].name;
	if (near)
		pm_error_fix(err, "%s", near);
	return -ENOENT;
}

int pm_gate_not_found(const struct pm_gate *gate, const struct pm_comparison *comparison,
		      struct pm_error *err)
{
	const char *near = pm_gate_near(gate, comparison);

	pm_error_set(err, -ENOENT,
		     "the gate '%s%s%s%s%s%s' means nothing that was measured",
		     pm_text_or_empty(gate->case_name),
		     pm_text_if(gate->case_name, PM_CASE_SEPARATOR),
		     pm_text_if(gate->scope, scope_prefix), pm_text_or_empty(gate->scope),
		     pm_text_if(gate->scope, ":"), gate->event);
	pm_error_where(err, gate->source, -1);
	if (near)
		pm_error_fix(err, "%s", near);
	else
		tell_names(gate, comparison, err);
	return -ENOENT;
}

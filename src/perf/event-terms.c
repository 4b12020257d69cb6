/* SPDX-License-Identifier: MIT */
/* The terms between the slashes of `pmu/term=value,.../`. */
#include "event-parser.h"

#include <string.h>
#include <strings.h>

/* ---- reading ----------------------------------------------------------------------------- */

/* Returns -1 if @c is not a digit. A letter must be in lower case. */
static int value_of_hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

bool pm_event_raw(const char *text, size_t len, uint64_t *out)
{
	uint64_t value = 0;

	if (len < 2 || len > 17 || text[0] != 'r')
		return false;
	for (size_t i = 1; i < len; i++) {
		int c = text[i] | 0x20;
		int digit = value_of_hex_digit(c);

		/* The bit 0x20 also turns control characters into digits: exclude
		 * these. */
		if (digit < 0 || (text[i] < 'A' && (text[i] < '0' || text[i] > '9')))
			return false;
		value = value << 4 | (uint64_t)digit;
	}
	*out = value;
	return true;
}

enum {
	ALIAS_DEPTH_MAX = 4, /* sysfs events that name other events */
};

/* @out: room for sizeof(term->name) bytes. */
static int copy_term_part(const char *text, size_t len, const char *requested, char *out,
			  struct pm_error *err)
{
	char part[PM_EVENT_NAME_MAX];

	while (len > 0 && *text == ' ') {
		text++;
		len--;
	}
	while (len > 0 && text[len - 1] == ' ')
		len--;
	pm_event_unquote(text, len, part);
	if (strlen(part) >= sizeof(((struct pm_event_term *)0)->name))
		return pm_error_set(err, -EINVAL, "a term of \"%s\" is too long",
				    requested);
	strcpy(out, part);
	return 0;
}

static int parse_event_term(const char *text, size_t len, const char *requested,
			    struct pm_event_term *out, struct pm_error *err)
{
	const char *equals = memchr(text, '=', len);
	size_t name_len = equals ? (size_t)(equals - text) : len;
	int ret;

	ret = copy_term_part(text, name_len, requested, out->name, err);
	if (ret == 0 && equals)
		ret = copy_term_part(equals + 1, len - name_len - 1, requested,
				     out->value, err);
	if (ret < 0)
		return ret;
	out->has_value = equals;
	if (out->name[0] == '\0' || (equals && out->value[0] == '\0'))
		return pm_error_set(err, -EINVAL,
				    "\"%s\": between the slashes there are TERM=VALUE, "
				    "separated by commas",
				    requested);
	return 0;
}

int pm_event_terms_parse(const char *text, size_t len, const char *requested,
			 struct pm_event_terms *out, struct pm_error *err)
{
	const char *end = text + len;

	out->len = 0;
	if (strspn(text, " ") >= len)
		return 0;
	for (const char *at = text;;) {
		const char *begin = at;
		int ret;

		while (at < end && *at != ',') {
			size_t span = pm_event_span(begin, at, end);

			at += PM_MAX(span, 1);
		}
		if (out->len == PM_EVENT_TERMS_MAX)
			return pm_error_set(err, -EINVAL, "\"%s\" has more than %d terms",
					    requested, PM_EVENT_TERMS_MAX);
		memset(&out->term[out->len], 0, sizeof(out->term[0]));
		ret = parse_event_term(begin, (size_t)(at - begin), requested,
				       &out->term[out->len], err);
		if (ret < 0)
			return ret;
		out->len++;
		if (at == end)
			return 0;
		at++;
	}
}

/* ---- terms of every event ----------------------------------------------------------------- */

static int set_bad_term_number_error(const struct pm_event_spec *spec,
				     const struct pm_event_term *term,
				     struct pm_error *err)
{
	return pm_error_set(err, -EINVAL, "\"%s\": %s wants a number, not \"%s\"",
			    spec->requested, term->name, term->value);
}

static int set_rate_by_term(struct pm_event_spec *spec, const struct pm_event_term *term,
			    bool by_frequency, struct pm_error *err)
{
	uint64_t rate;

	if (spec->rate_given)
		return pm_error_set(err, -EINVAL,
				    "\"%s\" has two rates; give freq or period, once",
				    spec->requested);
	if (by_frequency && strcmp(term->value, "max") == 0)
		rate = UINT64_MAX;
	else if (!pm_parse_u64(term->value, &rate))
		return set_bad_term_number_error(spec, term, err);
	if (rate == 0)
		return pm_error_set(err, -EINVAL, "\"%s\": a %s of 0 gives no samples",
				    spec->requested,
				    by_frequency ? "frequency" : "period");
	spec->rate_given = true;
	spec->by_frequency = by_frequency;
	spec->rate = rate;
	return 0;
}

static int set_config_word_by_term(struct pm_event_spec *spec,
				   const struct pm_event_term *term, uint64_t *word,
				   struct pm_error *err)
{
	if (pm_parse_u64(term->value, word))
		return 0;
	return set_bad_term_number_error(spec, term, err);
}

/* Returns 1 if it is not a common term. */
static int apply_common_term(struct pm_event_spec *spec, const struct pm_event_term *term,
			     struct pm_error *err)
{
	static const struct {
		const char *term, *option;
	} global[] = {
		{ "call-graph", "--call-graph" },  { "stack-size", "--stack-bytes" },
		{ "branch_type", "-j" },           { "inherit", "--no-inherit" },
		{ "no-inherit", "--no-inherit" },  { "overwrite", "--overwrite" },
		{ "no-overwrite", "--overwrite" },
	};

	if (term->has_value) {
		if (strcmp(term->name, "freq") == 0)
			return set_rate_by_term(spec, term, true, err);
		if (strcmp(term->name, "period") == 0)
			return set_rate_by_term(spec, term, false, err);
		if (strcmp(term->name, "config") == 0)
			return set_config_word_by_term(spec, term, &spec->config, err);
		if (strcmp(term->name, "config1") == 0)
			return set_config_word_by_term(spec, term, &spec->config1, err);
		if (strcmp(term->name, "config2") == 0)
			return set_config_word_by_term(spec, term, &spec->config2, err);
		if (strcmp(term->name, "name") == 0) {
			snprintf(spec->name, sizeof(spec->name), "%s", term->value);
			return 0;
		}
	}
	for (size_t i = 0; i < PM_ARRAY_LEN(global); i++) {
		if (strcmp(term->name, global[i].term) != 0)
			continue;
		pm_error_set(err, -EINVAL,
			     "\"%s\": %s is the same for all events of a recording",
			     spec->requested, term->name);
		pm_error_fix(err, "%s", global[i].option);
		return -EINVAL;
	}
	return 1;
}

int pm_event_terms_common(struct pm_event_terms *terms, struct pm_event_spec *spec,
			  struct pm_error *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < terms->len; i++) {
		int ret;

		for (size_t j = 0; j < i; j++) {
			if (strcmp(terms->term[i].name, terms->term[j].name) == 0)
				return pm_error_set(err, -EINVAL,
						    "\"%s\": term \"%s\" is there twice",
						    spec->requested, terms->term[i].name);
		}
		ret = apply_common_term(spec, &terms->term[i], err);
		if (ret < 0)
			return ret;
		/* The term stays in the list until all others have been compared with
		 * it. */
		terms->term[i].taken = ret == 0;
	}
	for (size_t i = 0; i < terms->len; i++) {
		if (!terms->term[i].taken)
			terms->term[kept++] = terms->term[i];
	}
	terms->len = kept;
	return 0;
}

/* ---- terms of a PMU ------------------------------------------------------------------------- */

struct resolving {
	const struct pm_pmu *pmu;
	struct pm_event_spec *spec;
	struct pm_error *err;
	int depth;
};

static int apply_event_terms(const struct resolving *how,
			     const struct pm_event_terms *terms);

/* Distributes the bits of @value, lowest first, over the bits of @mask. */
static uint64_t spread_over_mask(uint64_t value, uint64_t mask)
{
	uint64_t ret = 0;

	for (; mask; mask &= mask - 1, value >>= 1) {
		if (value & 1)
			ret |= mask & -mask;
	}
	return ret;
}

static int set_format_by_term(const struct resolving *how,
			      const struct pm_event_term *term,
			      const struct pm_pmu_format *format)
{
	uint64_t *words[] = { &how->spec->config, &how->spec->config1,
			      &how->spec->config2 };
	int bits = __builtin_popcountll(format->mask);
	uint64_t value = 1, most = bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX;

	if (term->has_value && strcmp(term->value, "?") == 0)
		return pm_error_set(how->err, -EINVAL,
				    "\"%s\" wants a value: add %s=VALUE",
				    how->spec->requested, term->name);
	if (term->has_value && !pm_parse_u64(term->value, &value))
		return set_bad_term_number_error(how->spec, term, how->err);
	if (!term->has_value && bits > 1)
		return pm_error_set(how->err, -EINVAL, "\"%s\": %s wants a value",
				    how->spec->requested, term->name);
	if (value > most)
		return pm_error_set(how->err, -EINVAL,
				    "\"%s\": %s=%s does not fit, 0x%llx is the most",
				    how->spec->requested, term->name,
				    term->has_value ? term->value : "1",
				    (unsigned long long)most);
	/* A typed term overrides the value that the event's name implies. */
	if (how->depth == 0)
		*words[format->word] &= ~format->mask;
	*words[format->word] |= spread_over_mask(value, format->mask);
	return 0;
}

static void list_near_pmu_names(const struct pm_pmu *pmu, const char *folder,
				const char *word, struct pm_str *out,
				struct pm_near *near)
{
	struct pm_pmu_names names PM_CLEANUP(pm_pmu_names_release) = { 0 };

	if (pm_pmu_names_of(pmu, folder, &names) < 0)
		return;
	for (size_t i = 0; i < names.list.len; i++) {
		pm_str_printf(out, "%s%s", pm_text_if(out->len > 0, ", "),
			      names.list.data[i]);
		pm_near_add(near, names.list.data[i]);
	}
}

static int set_unknown_term_error(const struct resolving *how, const char *name)
{
	struct pm_str terms PM_CLEANUP(pm_str_release) = { 0 };
	struct pm_str events PM_CLEANUP(pm_str_release) = { 0 };
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
	struct pm_near near = { .word = name };

	list_near_pmu_names(how->pmu, "format", name, &terms, &near);
	list_near_pmu_names(how->pmu, "events", name, &events, &near);
	pm_str_printf(&text, "PMU \"%s\" has no term \"%s\"", how->pmu->name, name);
	if (near.len > 0) {
		pm_str_puts(&text, "; near names: ");
		pm_near_print(&near, PM_NEAR_MAX, &text);
	}
	pm_str_printf(&text,
		      "; its terms: %s, config, config1, config2, name, period, freq",
		      terms.len ? terms.data : "none of its own");
	if (events.len > 0)
		pm_str_printf(&text, "; its events: %s", events.data);
	return pm_error_set(how->err, -EINVAL, "%s",
			    pm_str_text_or(&text, "unknown term"));
}

/* Returns -ENOENT if the PMU has no event of this name. */
static int apply_pmu_alias(const struct resolving *how, const char *name)
{
	struct resolving inner = *how;
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
	struct pm_event_terms *terms PM_AUTO_FREE = NULL;
	int ret = pm_pmu_alias(how->pmu, name, &text);

	if (ret < 0)
		return ret;
	terms = calloc(1, sizeof(*terms));
	if (!terms || text.failed)
		return pm_error_set(how->err, -ENOMEM, "no memory for an event");
	if (inner.depth++ >= ALIAS_DEPTH_MAX)
		return pm_error_set(how->err, -EINVAL,
				    "event \"%s\" of PMU \"%s\" stands for itself", name,
				    how->pmu->name);
	ret = pm_event_terms_parse(pm_str_text(&text), text.len, how->spec->requested,
				   terms, how->err);
	if (ret < 0)
		return ret;
	return apply_event_terms(&inner, terms);
}

/* Returns -ENOENT if neither the PMU nor the kernel has an event of this name. */
static int apply_event_name_term(const struct resolving *how,
				 const struct pm_event_term *term)
{
	struct pm_event_spec legacy = { 0 };
	uint64_t raw;
	int ret = apply_pmu_alias(how, term->name);

	if (ret != -ENOENT || how->depth > 0)
		return ret;
	if (term->name[0] == 'r' && pm_event_raw(term->name, strlen(term->name), &raw)) {
		how->spec->config |= raw;
		return 0;
	}
	if (!pm_pmu_is_core(how->pmu) ||
	    !pm_event_name_find(term->name, strlen(term->name), &legacy) ||
	    legacy.kind == PM_EVENT_SOFTWARE)
		return -ENOENT;
	/* The upper bits of the config select one of a hybrid processor's PMUs
	 * (PERF_PMU_CAP_EXTENDED_HW_TYPE). */
	how->spec->type = legacy.type;
	how->spec->config |= legacy.config;
	if (strcmp(how->pmu->name, "cpu") != 0)
		how->spec->config |= (uint64_t)how->pmu->type << 32;
	return 0;
}

/* Whether the term is the name of an event, which implies terms. */
static bool is_term_an_event_name(const struct resolving *how,
				  const struct pm_event_term *term)
{
	struct pm_pmu_format format;

	/* `event=NAME` means the same as NAME. */
	if (term->has_value && strcasecmp(term->name, "event") == 0) {
		struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };

		return pm_pmu_alias(how->pmu, term->value, &text) == 0;
	}
	return (!term->has_value || strcmp(term->value, "1") == 0) &&
	       pm_pmu_format(how->pmu, term->name, &format) == -ENOENT;
}

static int apply_event_term(const struct resolving *how, const struct pm_event_term *term)
{
	struct pm_pmu_format format;
	int ret = pm_pmu_format(how->pmu, term->name, &format);

	if (ret == 0)
		return set_format_by_term(how, term, &format);
	if (ret == -ENOTSUP)
		return pm_error_set(how->err, -EINVAL,
				    "\"%s\": where term \"%s\" of PMU \"%s\" belongs is "
				    "not understood",
				    how->spec->requested, term->name, how->pmu->name);
	return set_unknown_term_error(how, term->name);
}

static int apply_event_terms(const struct resolving *how,
			     const struct pm_event_terms *terms)
{
	int ret = 0;

	for (size_t i = 0; i < terms->len && ret == 0; i++) {
		const struct pm_event_term *term = &terms->term[i];

		if (!is_term_an_event_name(how, term))
			continue;
		if (term->has_value && strcasecmp(term->name, "event") == 0)
			ret = apply_pmu_alias(how, term->value);
		else
			ret = apply_event_name_term(how, term);
		if (ret == -ENOENT) {
			if (how->depth > 0)
				ret = apply_common_term(how->spec, term, how->err);
			else
				ret = 1;
		}
		if (ret == 1)
			ret = set_unknown_term_error(how, term->name);
	}
	for (size_t i = 0; i < terms->len && ret == 0; i++) {
		const struct pm_event_term *term = &terms->term[i];

		if (is_term_an_event_name(how, term))
			continue;
		if (how->depth > 0)
			ret = apply_common_term(how->spec, term, how->err);
		else
			ret = 1;
		if (ret == 1)
			ret = apply_event_term(how, term);
	}
	return ret;
}

int pm_event_terms_apply(const struct pm_event_terms *terms, const struct pm_pmu *pmu,
			 struct pm_event_spec *spec, struct pm_error *err)
{
	struct pm_event_spec fresh = *spec;
	struct resolving how = { .pmu = pmu, .spec = &fresh, .err = err };
	int ret;

	/* Like perf, combines typed config words with the terms. */
	fresh.config = fresh.config1 = fresh.config2 = 0;
	ret = apply_event_terms(&how, terms);
	if (ret < 0)
		return ret;
	fresh.config |= spec->config;
	fresh.config1 |= spec->config1;
	fresh.config2 |= spec->config2;
	*spec = fresh;
	return 0;
}

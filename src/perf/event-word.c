/* SPDX-License-Identifier: MIT */
/* Events given by a name or a number, and PMU events by name. */
#include "event-parser.h"

#include <fnmatch.h>
#include <linux/perf_event.h>
#include <string.h>

/* "TYPE:CONFIG" as numbers. */
static bool parse_event_numbers(const struct pm_event_parts *parts,
				struct pm_event_spec *out)
{
	char text[2][32];
	uint64_t type;

	for (size_t i = 0; i < 2; i++) {
		if (parts->part[i].len >= sizeof(text[i]))
			return false;
		memcpy(text[i], parts->part[i].at, parts->part[i].len);
		text[i][parts->part[i].len] = '\0';
	}
	if (!pm_parse_u64(text[0], &type) || type > UINT32_MAX ||
	    !pm_parse_u64(text[1], &out->config))
		return false;
	out->kind = PM_EVENT_RAW;
	out->type = (uint32_t)type;
	snprintf(out->name, sizeof(out->name), "%s:%s", text[0], text[1]);
	return true;
}

/* The kernel's generic names, and rNNN. */
static bool find_generic_event(const char *name, size_t len, struct pm_event_spec *out)
{
	if (pm_event_name_find(name, len, out))
		return true;
	if (!pm_event_raw(name, len, &out->config))
		return false;
	out->kind = PM_EVENT_RAW;
	out->type = PERF_TYPE_RAW;
	snprintf(out->name, sizeof(out->name), "%.*s", (int)len, name);
	return true;
}

/* ---- PMUs ------------------------------------------------------------------------------------- */

static bool is_pmu_uncountable(const struct pm_pmu *pmu)
{
	/* Their attrs contain addresses, which terms cannot express. */
	return pmu->type == PERF_TYPE_BREAKPOINT || strcmp(pmu->name, "uprobe") == 0 ||
	       strcmp(pmu->name, "kprobe") == 0;
}

/* Puts the remaining terms into the name, so that the name can be parsed again. */
static void name_pmu_event(const struct pm_event_terms *terms, const char *prefix,
			   const struct pm_event_spec *spec, char *out, size_t size)
{
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
	bool any = false;

	pm_str_printf(&text, "%s/", prefix);
	for (size_t i = 0; i < terms->len; i++) {
		const struct pm_event_term *term = &terms->term[i];
		bool quoted = strpbrk(term->value, ",/' ");

		pm_str_printf(&text, "%s%s", pm_text_if(any, ","), term->name);
		if (term->has_value)
			pm_str_printf(&text, quoted ? "=\"%s\"" : "=%s", term->value);
		any = true;
	}
	if (spec->config)
		pm_str_printf(&text, "%sconfig=0x%llx", pm_text_if(any, ","),
			      (unsigned long long)spec->config);
	any |= spec->config != 0;
	if (spec->config1)
		pm_str_printf(&text, "%sconfig1=0x%llx", pm_text_if(any, ","),
			      (unsigned long long)spec->config1);
	any |= spec->config1 != 0;
	if (spec->config2)
		pm_str_printf(&text, "%sconfig2=0x%llx", pm_text_if(any, ","),
			      (unsigned long long)spec->config2);
	pm_str_putc(&text, '/');
	if (!text.failed)
		snprintf(out, size, "%s", text.data);
}

/* The parts between and after the slashes. */
struct slashed {
	const struct pm_event_terms *terms; /* without the common ones */
	const struct pm_event_spec *like; /* values of the common terms */
	const char *modifiers;
	size_t modifiers_len;
};

static const char *usage_of_uncountable_pmu(const struct pm_pmu *pmu)
{
	if (pmu->type == PERF_TYPE_BREAKPOINT)
		return "mem:ADDRESS";
	if (pmu->name[0] == 'u')
		return "uprobe:FILE:SYMBOL";
	return "kprobe:SYMBOL";
}

/* Adds the event of an open PMU. */
static int add_event_of_pmu(const struct pm_event_item *item, const struct pm_pmu *pmu,
			    const struct slashed *what, struct pm_error *err)
{
	struct pm_str cpus PM_CLEANUP(pm_str_release) = { 0 };
	struct pm_event_spec spec = *what->like;
	int ret;

	if (is_pmu_uncountable(pmu))
		return pm_error_set(err, -EINVAL,
				    "\"%s\": PMU \"%s\" needs a place; write %s",
				    item->text, pmu->name, usage_of_uncountable_pmu(pmu));
	spec.kind = PM_EVENT_PMU;
	spec.type = pmu->type;
	if (!spec.name[0])
		name_pmu_event(what->terms, pmu->name, what->like, spec.name,
			       sizeof(spec.name));
	ret = pm_event_terms_apply(what->terms, pmu, &spec, err);
	if (ret == 0)
		ret = pm_event_modifiers_set(&spec, what->modifiers, what->modifiers_len,
					     item->group_modifiers, err);
	if (ret < 0)
		return ret;
	pm_pmu_cpus(pmu, &cpus);
	if (cpus.len > 0) {
		spec.cpus = pm_event_specs_keep(item->specs, cpus.data, cpus.len);
		if (!spec.cpus)
			return pm_error_set(err, -ENOMEM, "no memory for an event");
	}
	return pm_event_item_add(item, &spec, err);
}

static int set_unknown_pmu_error(const struct pm_pmu_names *pmus, const char *name,
				 struct pm_error *err)
{
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };

	pm_str_printf(&text,
		      "neither an event nor a PMU is called \"%s\"; PMUs here: ", name);
	for (size_t i = 0; i < pmus->list.len; i++)
		pm_str_printf(&text, "%s%s", pm_text_if(i > 0, ", "), pmus->list.data[i]);
	if (pmus->list.len == 0)
		pm_str_puts(&text, "none");
	return pm_error_set(err, -EINVAL, "%s", pm_str_text_or(&text, "unknown PMU"));
}

/* Whether @word is "uncore_imc" for PMUs "uncore_imc_0", "uncore_imc_1", ... */
static bool is_pmu_numbered_word(const char *word, const char *pmu)
{
	size_t len = strlen(word);

	return strncmp(word, pmu, len) == 0 && pmu[len] == '_' && pmu[len + 1] &&
	       strspn(pmu + len + 1, "0123456789") == strlen(pmu + len + 1);
}

/* Like perf: accepts globs, and names without the number or without "uncore_". */
static bool does_pmu_match_word(const char *word, const char *pmu)
{
	bool longer = strncmp(pmu, "uncore_", 7) == 0 && strncmp(word, "uncore_", 7) != 0;

	return fnmatch(word, pmu, 0) == 0 || is_pmu_numbered_word(word, pmu) ||
	       (longer &&
		(fnmatch(word, pmu + 7, 0) == 0 || is_pmu_numbered_word(word, pmu + 7)));
}

static int parse_pmu_event(const struct pm_event_item *item, const char *name,
			   const struct slashed *what, struct pm_error *err)
{
	struct pm_pmu_names pmus PM_CLEANUP(pm_pmu_names_release) = { 0 };
	size_t before = item->specs->list.len;
	bool exact = false;

	if (pm_pmu_names_read(item->sources, &pmus) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the PMUs");
	for (size_t i = 0; i < pmus.list.len; i++)
		exact |= strcmp(name, pmus.list.data[i]) == 0;
	for (size_t i = 0; i < pmus.list.len; i++) {
		struct pm_pmu pmu PM_CLEANUP(pm_pmu_release) = { .folder = -1 };
		int ret;

		if (exact ? strcmp(name, pmus.list.data[i]) != 0
			  : !does_pmu_match_word(name, pmus.list.data[i]))
			continue;
		if (pm_pmu_open(&pmu, item->sources, pmus.list.data[i]) < 0)
			continue;
		ret = add_event_of_pmu(item, &pmu, what, err);
		if (ret < 0)
			return ret;
	}
	if (item->specs->list.len > before)
		return 0;
	return set_unknown_pmu_error(&pmus, name, err);
}

int pm_event_alias_find(const struct pm_event_item *item, const char *name,
			const char *modifiers, struct pm_error *err)
{
	struct pm_pmu_names pmus PM_CLEANUP(pm_pmu_names_release) = { 0 };
	struct pm_event_terms *terms PM_AUTO_FREE = calloc(1, sizeof(*terms));
	struct pm_event_spec like;
	struct slashed what = { terms, &like, modifiers, strlen(modifiers) };
	int found = 0;

	if (!terms || pm_pmu_names_read(item->sources, &pmus) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the PMUs");
	if (strlen(name) >= sizeof(terms->term[0].name))
		return 0;
	strcpy(terms->term[0].name, name);
	terms->len = 1;
	pm_event_item_begin(item, &like);
	for (size_t i = 0; i < pmus.list.len; i++) {
		struct pm_pmu pmu PM_CLEANUP(pm_pmu_release) = { .folder = -1 };
		struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
		int ret;

		if (pm_pmu_open(&pmu, item->sources, pmus.list.data[i]) < 0 ||
		    pm_pmu_alias(&pmu, name, &text) < 0)
			continue;
		ret = add_event_of_pmu(item, &pmu, &what, err);
		if (ret < 0)
			return ret;
		found = 1;
	}
	return found;
}

/* ---- NAME/terms/modifiers ------------------------------------------------------------------ */

/* An event with a generic name of the kernel, and terms. */
static int add_generic_event_with_terms(const struct pm_event_item *item,
					const char *name, size_t len,
					const struct slashed *what, struct pm_error *err)
{
	struct pm_event_spec spec = *what->like, found = { 0 };
	int ret;

	if (!find_generic_event(name, len, &found))
		return -ENOENT;
	if (what->terms->len > 0)
		return pm_error_set(err, -EINVAL,
				    "\"%s\": an event by name has the terms freq, "
				    "period, name, config, config1 and config2, not "
				    "\"%s\"; others are a PMU's: cpu/%s/",
				    item->text, what->terms->term[0].name,
				    what->terms->term[0].name);
	spec.kind = found.kind;
	spec.type = found.type;
	if (!spec.name[0] && !spec.config && !spec.config1 && !spec.config2)
		memcpy(spec.name, found.name, sizeof(spec.name));
	else if (!spec.name[0])
		name_pmu_event(what->terms, found.name, what->like, spec.name,
			       sizeof(spec.name));
	if (!spec.config)
		spec.config = found.config;
	ret = pm_event_modifiers_set(&spec, what->modifiers, what->modifiers_len,
				     item->group_modifiers, err);
	if (ret < 0)
		return ret;
	return pm_event_item_add(item, &spec, err);
}

/* SYSTEM:NAME/period=100/ */
static int add_tracepoint_events(const struct pm_event_item *item, const char *name,
				 const struct slashed *what, struct pm_error *err)
{
	struct pm_event_spec like = *what->like;
	char system[PM_EVENT_NAME_MAX];
	const char *colon = strchr(name, ':');
	int ret;

	if (what->terms->len > 0)
		return pm_error_set(err, -EINVAL,
				    "\"%s\": a tracepoint has the terms freq and period, "
				    "not \"%s\"",
				    item->text, what->terms->term[0].name);
	like.kind = PM_EVENT_TRACEPOINT;
	like.type = PERF_TYPE_TRACEPOINT;
	ret = pm_event_modifiers_set(&like, what->modifiers, what->modifiers_len,
				     item->group_modifiers, err);
	if (ret < 0)
		return ret;
	if (!item->sources->tracefs)
		return pm_error_set(err, -EINVAL, "unknown event \"%s\"", name);
	snprintf(system, sizeof(system), "%.*s", (int)(colon - name), name);
	return pm_tracepoints_expand(system, colon + 1, &like, item->specs, err);
}

/* Finds the second slash of "NAME/terms/"; NULL if there is none. */
static const char *find_closing_slash(const char *at, const char *end)
{
	const char *begin = at;

	while (at < end && *at != '/') {
		size_t span = pm_event_span(begin, at, end);

		at += PM_MAX(span, 1);
	}
	if (at >= end)
		return NULL;
	return at;
}

int pm_event_parse_slashed(const struct pm_event_item *item, struct pm_error *err)
{
	struct pm_event_terms *terms PM_AUTO_FREE = calloc(1, sizeof(*terms));
	const char *end = item->text + item->len, *slash = strchr(item->text, '/');
	const char *close = find_closing_slash(slash + 1, end);
	char name[PM_EVENT_NAME_MAX];
	struct pm_event_spec like;
	struct slashed what = { .terms = terms, .like = &like };
	int ret;

	if (!terms)
		return pm_error_set(err, -ENOMEM, "no memory for an event");
	if (!close)
		return pm_error_set(err, -EINVAL, "\"%s\" has no second \"/\"",
				    item->text);
	what.modifiers = close + 1;
	/* `cpu/cycles/:u` means the same as `cpu/cycles/u`. */
	if (*what.modifiers == ':')
		what.modifiers++;
	what.modifiers_len = (size_t)(end - what.modifiers);
	pm_event_item_begin(item, &like);
	ret = pm_event_terms_parse(slash + 1, (size_t)(close - slash - 1), item->text,
				   terms, err);
	if (ret == 0)
		ret = pm_event_terms_common(terms, &like, err);
	if (ret < 0)
		return ret;
	snprintf(name, sizeof(name), "%.*s", (int)(slash - item->text), item->text);
	ret = add_generic_event_with_terms(item, name, strlen(name), &what, err);
	if (ret != -ENOENT)
		return ret;
	if (strchr(name, ':'))
		return add_tracepoint_events(item, name, &what, err);
	return parse_pmu_event(item, name, &what, err);
}

/* ---- NAME[:modifiers] ------------------------------------------------------------------------ */

/* SYSTEM:NAME[:modifiers], or a libpfm4 name with attributes (INST_RETIRED:ANY_P:u). */
static int parse_event_with_colons(const struct pm_event_item *item,
				   const struct pm_event_parts *parts,
				   struct pm_error *err)
{
	struct pm_event_terms none = { 0 };
	char name[PM_EVENT_NAME_MAX];
	struct pm_event_spec spec;
	struct slashed what = { .terms = &none, .like = &spec, .modifiers = "" };
	size_t last = parts->len - 1, name_len = item->len;
	int ret;

	if (parts->len > 2 && parts->len <= PM_ARRAY_LEN(parts->part) &&
	    pm_event_are_modifiers(parts->part[last].at, parts->part[last].len)) {
		what.modifiers = parts->part[last].at;
		what.modifiers_len = parts->part[last].len;
		name_len = (size_t)(what.modifiers - 1 - item->text);
	}
	snprintf(name, sizeof(name), "%.*s", (int)name_len, item->text);
	pm_event_item_begin(item, &spec);
	ret = add_tracepoint_events(item, name, &what, err);
	if (ret == 0 || !item->sources->libpfm || !pm_event_libpfm(name, &spec))
		return ret;
	ret = pm_event_modifiers_set(&spec, what.modifiers, what.modifiers_len,
				     item->group_modifiers, err);
	if (ret < 0)
		return ret;
	return pm_event_item_add(item, &spec, err);
}

static int parse_event_name(const struct pm_event_item *item, const char *name,
			    const char *modifiers, struct pm_error *err)
{
	struct pm_event_spec spec;
	int ret;

	pm_event_item_begin(item, &spec);
	if (!name[0])
		return pm_event_unknown(item->sources, name, err);
	if (!find_generic_event(name, strlen(name), &spec)) {
		ret = pm_event_alias_find(item, name, modifiers, err);
		if (ret < 0)
			return ret;
		if (ret > 0)
			return 0;
		if (!item->sources->libpfm || !pm_event_libpfm(name, &spec))
			return pm_event_unknown(item->sources, name, err);
	}
	ret = pm_event_modifiers_set(&spec, modifiers, strlen(modifiers),
				     item->group_modifiers, err);
	if (ret < 0)
		return ret;
	return pm_event_item_add(item, &spec, err);
}

int pm_event_parse_word(const struct pm_event_item *item, struct pm_error *err)
{
	struct pm_event_parts parts;
	struct pm_event_spec spec;
	char name[PM_EVENT_NAME_MAX];
	const char *modifiers;

	pm_event_split(item->text, item->len, &parts);
	snprintf(name, sizeof(name), "%.*s", (int)parts.part[0].len, item->text);
	if (parts.len == 1)
		return parse_event_name(item, name, "", err);
	modifiers = parts.part[1].at;
	pm_event_item_begin(item, &spec);
	if (parse_event_numbers(&parts, &spec)) {
		const char *own = parts.len > 2 ? parts.part[2].at : "";
		int ret = pm_event_modifiers_set(&spec, own, strlen(own),
						 item->group_modifiers, err);

		if (ret < 0)
			return ret;
		return pm_event_item_add(item, &spec, err);
	}
	/* If the first word is an event name, it is not a tracepoint's system, whatever
	 * follows: `cycles:x` has an invalid modifier. */
	if (find_generic_event(name, strlen(name), &spec) ||
	    (parts.len == 2 && pm_event_are_modifiers(modifiers, strlen(modifiers))))
		return parse_event_name(item, name, modifiers, err);
	return parse_event_with_colons(item, &parts, err);
}

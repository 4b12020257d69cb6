/* SPDX-License-Identifier: MIT */
/* Parses probes. Their places remain text, which pm/probe.h looks up in files. */
#include "event-parser.h"

#include <string.h>

/* What each prefix means. Source of `config`: the PMU's format/retprobe. */
static const struct prefix {
	const char *text;
	enum pm_event_kind kind;
	bool on_return, usdt;
	const char *usage;
} prefixes[] = {
	{ "uprobe:", PM_EVENT_UPROBE, false, false,
	  "uprobe:FILE:SYMBOL[+OFFSET] or uprobe:FILE:SOURCE:LINE" },
	{ "uretprobe:", PM_EVENT_UPROBE, true, false, "uretprobe:FILE:SYMBOL" },
	{ "usdt:", PM_EVENT_UPROBE, false, true, "usdt:FILE:PROVIDER:NAME" },
	{ "kprobe:", PM_EVENT_KPROBE, false, false, "kprobe:SYMBOL[+OFFSET]" },
	{ "kretprobe:", PM_EVENT_KPROBE, true, false, "kretprobe:SYMBOL" },
};

static const struct prefix *find_probe_prefix(const char *text, size_t len)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(prefixes); i++) {
		if (pm_event_begins(text, len, prefixes[i].text))
			return &prefixes[i];
	}
	return NULL;
}

bool pm_event_is_probe(const char *text, size_t len)
{
	return find_probe_prefix(text, len);
}

/* The probe being parsed. */
struct probe {
	const struct pm_event_item *item;
	const struct prefix *prefix;
	struct pm_event_parts parts; /* after the prefix */
	struct pm_event_spec spec;
};

static int set_misspelt_probe_error(const struct probe *probe, struct pm_error *err)
{
	return pm_error_set(err, -EINVAL, "\"%s\" is not of the form %s",
			    probe->item->text, probe->prefix->usage);
}

static const char *probe_keep_text(struct probe *probe, const char *text, size_t len)
{
	char plain[PM_EVENT_NAME_MAX];

	pm_event_unquote(text, len, plain);
	return pm_event_specs_keep(probe->item->specs, plain, strlen(plain));
}

/* Removes "+OFFSET" from the end of [text, *len). */
static void take_probe_offset(const char *text, size_t *len, uint64_t *out)
{
	const char *plus = memrchr(text, '+', *len);
	char number[32];
	size_t digits;

	if (!plus || plus == text)
		return;
	digits = (size_t)(text + *len - plus - 1);
	if (digits >= sizeof(number))
		return;
	memcpy(number, plus + 1, digits);
	number[digits] = '\0';
	if (pm_parse_u64(number, out))
		*len = (size_t)(plus - text);
}

static int probe_set_symbol(struct probe *probe, size_t part, struct pm_error *err)
{
	const char *text = probe->parts.part[part].at;
	size_t len = probe->parts.part[part].len;
	struct pm_event_place *place = &probe->spec.place;

	take_probe_offset(text, &len, &place->offset);
	if (place->offset && place->on_return)
		return pm_error_set(err, -EINVAL,
				    "\"%s\": a function returns as a whole, so there is "
				    "no +OFFSET here",
				    probe->item->text);
	place->symbol = probe_keep_text(probe, text, len);
	if (!place->symbol)
		return pm_error_set(err, -ENOMEM, "no memory for a probe");
	if (!place->symbol[0])
		return set_misspelt_probe_error(probe, err);
	return 0;
}

/* SOURCE:LINE; returns 1 if the text does not have that form. */
static int probe_set_line(struct probe *probe, struct pm_error *err)
{
	struct pm_event_place *place = &probe->spec.place;
	char number[16];
	uint64_t line;

	if (probe->parts.part[2].len >= sizeof(number))
		return 1;
	memcpy(number, probe->parts.part[2].at, probe->parts.part[2].len);
	number[probe->parts.part[2].len] = '\0';
	if (!pm_parse_u64(number, &line) || line == 0 || line > UINT32_MAX)
		return 1;
	if (place->on_return)
		return pm_error_set(err, -EINVAL,
				    "\"%s\": functions return, not lines; write %s",
				    probe->item->text, probe->prefix->usage);
	place->line = (uint32_t)line;
	place->source =
		probe_keep_text(probe, probe->parts.part[1].at, probe->parts.part[1].len);
	if (!place->source)
		return pm_error_set(err, -ENOMEM, "no memory for a probe");
	if (!place->source[0])
		return set_misspelt_probe_error(probe, err);
	return 0;
}

/* PROVIDER:NAME */
static int probe_set_usdt(struct probe *probe, struct pm_error *err)
{
	struct pm_str name PM_CLEANUP(pm_str_release) = { 0 };
	char plain[PM_EVENT_NAME_MAX];

	for (size_t i = 1; i < 3; i++) {
		pm_event_unquote(probe->parts.part[i].at, probe->parts.part[i].len,
				 plain);
		if (!plain[0])
			return set_misspelt_probe_error(probe, err);
		pm_str_printf(&name, "%s%s", pm_text_if(i > 1, ":"), plain);
	}
	if (name.failed)
		probe->spec.place.symbol = NULL;
	else
		probe->spec.place.symbol =
			pm_event_specs_keep(probe->item->specs, name.data, name.len);
	if (!probe->spec.place.symbol)
		return pm_error_set(err, -ENOMEM, "no memory for a probe");
	return 0;
}

static int probe_set_place(struct probe *probe, struct pm_error *err)
{
	struct pm_event_place *place = &probe->spec.place;
	size_t len = probe->parts.len;
	int ret;

	place->wanted = true;
	place->on_return = probe->prefix->on_return;
	place->usdt = probe->prefix->usdt;
	if (probe->prefix->kind == PM_EVENT_KPROBE) {
		if (len == 1)
			return probe_set_symbol(probe, 0, err);
		return set_misspelt_probe_error(probe, err);
	}
	if (len != (place->usdt ? 3 : 2) && (place->usdt || len != 3))
		return set_misspelt_probe_error(probe, err);
	place->file =
		probe_keep_text(probe, probe->parts.part[0].at, probe->parts.part[0].len);
	if (!place->file)
		return pm_error_set(err, -ENOMEM, "no memory for a probe");
	if (!place->file[0])
		return set_misspelt_probe_error(probe, err);
	if (place->usdt)
		return probe_set_usdt(probe, err);
	if (len == 2)
		return probe_set_symbol(probe, 1, err);
	ret = probe_set_line(probe, err);
	if (ret != 1)
		return ret;
	return set_misspelt_probe_error(probe, err);
}

/* The PMU creates probes without writing to tracefs, so nothing is left behind. */
static int probe_set_type(struct probe *probe, struct pm_error *err)
{
	const char *name = "kprobe", *config = "KPROBE";
	struct pm_pmu pmu PM_CLEANUP(pm_pmu_release) = { .folder = -1 };
	struct pm_pmu_format format;

	if (probe->prefix->kind == PM_EVENT_UPROBE) {
		name = "uprobe";
		config = "UPROBE";
	}
	if (pm_pmu_open(&pmu, probe->item->sources, name) < 0)
		return pm_error_set(err, -ENODEV,
				    "\"%s\": this kernel has no %s PMU (it was built "
				    "without CONFIG_%s_EVENTS, or is before Linux 4.17)",
				    probe->item->text, name, config);
	probe->spec.type = pmu.type;
	if (!probe->prefix->on_return)
		return 0;
	if (pm_pmu_format(&pmu, "retprobe", &format) < 0 || format.word != 0)
		format.mask = 1; /* the value in every kernel so far that has the file */
	probe->spec.config = format.mask & -format.mask;
	return 0;
}

int pm_event_parse_probe(const struct pm_event_item *item, struct pm_error *err)
{
	struct probe probe = { .item = item,
			       .prefix = find_probe_prefix(item->text, item->len) };
	size_t begin = strlen(probe.prefix->text), name_len = item->len, least, last;
	const char *modifiers = "";
	int ret;

	pm_event_item_begin(item, &probe.spec);
	probe.spec.kind = probe.prefix->kind;
	pm_event_split(item->text + begin, item->len - begin, &probe.parts);
	if (probe.prefix->kind == PM_EVENT_KPROBE)
		least = 1;
	else
		least = probe.prefix->usdt ? 3 : 2;
	last = probe.parts.len - 1;
	if (probe.parts.len > least &&
	    probe.parts.len <= PM_ARRAY_LEN(probe.parts.part) &&
	    pm_event_are_modifiers(probe.parts.part[last].at,
				   probe.parts.part[last].len)) {
		modifiers = probe.parts.part[last].at;
		name_len = (size_t)(modifiers - 1 - item->text);
		probe.parts.len--;
	}
	memcpy(probe.spec.name, item->text, name_len);
	ret = probe_set_place(&probe, err);
	if (ret == 0)
		ret = probe_set_type(&probe, err);
	if (ret == 0)
		ret = pm_event_modifiers_set(&probe.spec, modifiers, strlen(modifiers),
					     item->group_modifiers, err);
	if (ret < 0)
		return ret;
	return pm_event_item_add(item, &probe.spec, err);
}

/* SPDX-License-Identifier: MIT */
/* The parser of event specifications, shared by its files. */
#pragma once

#include "event-names.h"
#include "perf-internal.h"

enum {
	PM_PMU_NAME_MAX = 64,
	PM_EVENT_TERMS_MAX = 64, /* of one event; PMUs have about twenty */
};

/* ---- text: quotes and brackets (event-text.c) ---------------------------------------- */

/*
 * Returns the length of the unit at @text: a quoted string, a balanced (...), {...} or
 * <...>, or else a single character. Returns 0 if a quote is not closed. @begin is the
 * start of the word, needed to recognize that the `<` of `operator<` is not a bracket.
 */
size_t pm_event_span(const char *begin, const char *text, const char *end);
/* Whether [at, at+len) starts with @prefix. */
bool pm_event_begins(const char *at, size_t len, const char *prefix);
/* Removes the quotes. @out has room for PM_EVENT_NAME_MAX bytes. */
void pm_event_unquote(const char *text, size_t len, char *out);

/* Splits @text at single colons. `::`, and colons in quotes or brackets, belong to
 * names. */
struct pm_event_parts {
	struct {
		const char *at;
		size_t len;
	} part[4];
	size_t len; /* 5: more than fit */
};
void pm_event_split(const char *text, size_t len, struct pm_event_parts *out);

/* ---- modifiers (event-modifiers.c) --------------------------------------------------- */

bool pm_event_are_modifiers(const char *text, size_t len);
/* Sets the modifiers, the privilege levels and everything else the modifiers imply.
 * @group: the modifiers after a group's `}`. They are appended to `requested`, which
 * already contains the event's own. */
int pm_event_modifiers_set(struct pm_event_spec *spec, const char *own, size_t own_len,
			   const char *group, struct pm_error *err);

/* ---- PMUs in sysfs (event-pmu.c) ------------------------------------------------------ */

/* The sysfs directory of one PMU. Source:
 * Documentation/ABI/testing/sysfs-bus-event_source-devices-*. */
struct pm_pmu {
	char name[PM_PMU_NAME_MAX];
	uint32_t type;
	int folder; /* -1: not open */
};

struct pm_pmu_format {
	unsigned int word; /* 0: config, 1: config1, 2: config2 */
	uint64_t mask; /* the value's lowest bit goes into the lowest bit of the mask */
};

struct pm_pmu_names {
	PM_VEC(char *) list; /* sorted */
};
void pm_pmu_names_release(struct pm_pmu_names *names);

/* Read the names of all PMUs, or of the terms ("format") or events ("events") of one
 * PMU. Without such a folder, the list is empty. Return 0 or -ENOMEM. */
int pm_pmu_names_read(const struct pm_event_sources *sources, struct pm_pmu_names *out);
int pm_pmu_names_of(const struct pm_pmu *pmu, const char *folder,
		    struct pm_pmu_names *out);
/* Returns 0, or -ENOENT if there is no such PMU. */
int pm_pmu_open(struct pm_pmu *out, const struct pm_event_sources *sources,
		const char *name);
void pm_pmu_release(struct pm_pmu *pmu);
/* Whether the PMU counts the work of a core, so that the kernel's generic events belong
 * to it. */
bool pm_pmu_is_core(const struct pm_pmu *pmu);
/* Gets the format of @term. Returns -ENOENT if there is no such term, -ENOTSUP if it
 * belongs to a config word that is not supported. */
int pm_pmu_format(const struct pm_pmu *pmu, const char *term, struct pm_pmu_format *out);
/* Gets the unit of the event from sysfs: value * @scale is in @unit. Without a unit,
 * @unit is "" and @scale is 1. Returns -EBADMSG if the files are invalid. */
int pm_pmu_unit(const struct pm_pmu *pmu, const char *name, char *unit, size_t unit_size,
		double *scale);
/* Appends the definition of event @name, such as "event=0x3c,umask=0x1". Returns -ENOENT
 * if there is no such event. */
int pm_pmu_alias(const struct pm_pmu *pmu, const char *name, struct pm_str *out);
/* Appends a list such as "0-3" if the PMU works on some CPUs only. */
void pm_pmu_cpus(const struct pm_pmu *pmu, struct pm_str *out);

/* ---- terms (event-terms.c) ------------------------------------------------------------ */

struct pm_event_terms {
	struct pm_event_term {
		char name[PM_EVENT_NAME_MAX / 4], value[PM_EVENT_NAME_MAX / 4];
		bool has_value;
		bool taken; /* by pm_event_terms_common() */
	} term[PM_EVENT_TERMS_MAX];
	size_t len;
};

int pm_event_terms_parse(const char *text, size_t len, const char *requested,
			 struct pm_event_terms *out, struct pm_error *err);
/*
 * Removes the terms that every event may have (freq, period, name, config, config1,
 * config2) and sets them in @spec. The remaining terms are the PMU's.
 */
int pm_event_terms_common(struct pm_event_terms *terms, struct pm_event_spec *spec,
			  struct pm_error *err);
/* Resolves the remaining @terms with the PMU's formats and events. */
int pm_event_terms_apply(const struct pm_event_terms *terms, const struct pm_pmu *pmu,
			 struct pm_event_spec *spec, struct pm_error *err);

/* ---- near names (event-near.c) --------------------------------------------------------- */

enum {
	PM_NEAR_MAX = 3,
};

struct pm_near {
	const char *word;
	size_t len, score[PM_NEAR_MAX];
	char name[PM_NEAR_MAX][PM_PMU_NAME_MAX];
};

void pm_near_add(struct pm_near *near, const char *name);
/* Prints "a, b, c", the most similar first; nothing if no name is similar. */
void pm_near_print(const struct pm_near *near, size_t max, struct pm_str *out);

/* ---- one event --------------------------------------------------------------------------- */

/* The item of the list that is being parsed. */
struct pm_event_item {
	const struct pm_event_sources *sources;
	char text[PM_EVENT_NAME_MAX]; /* as typed, trimmed */
	size_t len;
	const char *group_modifiers; /* "" outside of groups */
	struct pm_event_specs *specs; /* the result is appended to it */
};

/* uprobe:, uretprobe:, usdt:, kprobe:, kretprobe: */
bool pm_event_is_probe(const char *text, size_t len);
int pm_event_parse_probe(const struct pm_event_item *item, struct pm_error *err);
/* mem: */
int pm_event_parse_breakpoint(const struct pm_event_item *item, struct pm_error *err);
/* NAME/terms/[modifiers], where NAME is a PMU or an event's name. */
int pm_event_parse_slashed(const struct pm_event_item *item, struct pm_error *err);
/* NAME[:modifiers], TYPE:CONFIG, rNNN, SYSTEM:TRACEPOINT, names of PMUs' events. */
int pm_event_parse_word(const struct pm_event_item *item, struct pm_error *err);

/* Parses "r1a8": gets the hexadecimal number after the r. */
bool pm_event_raw(const char *text, size_t len, uint64_t *out);
/* Appends the events called @name, one for each PMU that has it. Returns 0 if none has
 * it, else 1. */
int pm_event_alias_find(const struct pm_event_item *item, const char *name,
			const char *modifiers, struct pm_error *err);
/* Fills type and configs from libpfm4. Returns false if libpfm4 is not installed or does
 * not know the name. */
bool pm_event_libpfm(const char *name, struct pm_event_spec *out);

/* Where this machine lists its events. */
extern const struct pm_event_sources pm_event_sources_here;

/* Copies the item's text into `requested`; all else is zero. */
void pm_event_item_begin(const struct pm_event_item *item, struct pm_event_spec *out);
int pm_event_item_add(const struct pm_event_item *item, const struct pm_event_spec *spec,
		      struct pm_error *err);
int pm_event_no_memory(struct pm_error *err);
int pm_event_unknown(const struct pm_event_sources *sources, const char *name,
		     struct pm_error *err);

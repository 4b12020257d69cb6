/* SPDX-License-Identifier: MIT */
/* Command line words that all programs have in common. */
#include <stdarg.h>
#include <string.h>

#include "pm/run.h"

enum {
	TASKS_MAX = 100000, /* more than anyone types on purpose */
	NEAR_ENOUGH = 3, /* edits between a wrong name and a suggestion */
	NAME_BYTES = 64,
};

/* ---- errors ------------------------------------------------------------------------------- */

int pm_usage(struct pm_error *err, const char *program, const char *format, ...)
{
	char text[PM_ERROR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pm_error_set(err, -EINVAL, "%s", text);
	pm_error_fix(err, "%s --help", program);
	return -EINVAL;
}

static const char *find_nearest_option(const struct option *options, const char *name)
{
	const char *best = NULL;
	size_t best_distance = NEAR_ENOUGH + 1;

	for (const struct option *option = options; option->name; option++) {
		size_t distance = pm_name_distance(name, option->name);

		if (strncmp(option->name, name, strlen(name)) == 0)
			distance = 1; /* an abbreviation of several options */
		if (distance < best_distance) {
			best = option->name;
			best_distance = distance;
		}
	}
	return best;
}

int pm_usage_option(struct pm_error *err, const char *program,
		    const struct option *options, int result, const char *word)
{
	char name[NAME_BYTES];
	const char *near;

	if (result == ':')
		return pm_usage(err, program, "option %s needs a value", word);
	if (strncmp(word, "--", 2) != 0)
		return pm_usage(err, program, "unknown option -%c", optopt);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	for (const struct option *option = options; option->name; option++)
		if (strcmp(option->name, name) == 0)
			return pm_usage(err, program, "option --%s takes no value", name);
	near = find_nearest_option(options, name);
	if (near)
		return pm_usage(err, program, "unknown option --%s; did you mean --%s?",
				name, near);
	return pm_usage(err, program, "unknown option --%s", name);
}

/* ---- values ------------------------------------------------------------------------------- */

bool pm_parse_u64_part(const char **text, uint64_t *out)
{
	size_t len = strcspn(*text, ",");
	char part[24];

	if (len >= sizeof(part))
		return false;
	memcpy(part, *text, len);
	part[len] = '\0';
	*text += len;
	return pm_parse_u64(part, out);
}

/* Parses a number that may have a decimal point, without sign or exponent. Sets *rest to
 * the text after it. */
static bool parse_decimal_word(const char *text, double *out, const char **rest)
{
	size_t whole = strspn(text, "0123456789");
	size_t len = whole;
	double scale = 1, value = 0;

	if (text[len] == '.')
		len += 1 + strspn(text + len + 1, "0123456789");
	if (whole == 0 || len > 24)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (i == whole)
			continue;
		if (i > whole)
			scale /= 10;
		if (i > whole)
			value += scale * (text[i] - '0');
		else
			value = value * 10 + (text[i] - '0');
	}
	*out = value;
	*rest = text + len;
	return true;
}

int pm_parse_duration(uint64_t *ret_ns, const char *option, const char *text,
		      const char *program, struct pm_error *err)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "", 1e9 },   { "s", 1e9 },    { "ms", 1e6 },  { "us", 1e3 },
		      { "m", 60e9 }, { "min", 60e9 }, { "h", 3600e9 } };
	const char *unit;
	double value;

	if (parse_decimal_word(text, &value, &unit)) {
		for (size_t i = 0; i < PM_ARRAY_LEN(units); i++) {
			double ns = value * units[i].ns;

			if (strcmp(unit, units[i].name) != 0 || !(ns >= 1 && ns < 9e18))
				continue;
			*ret_ns = (uint64_t)(ns + 0.5);
			return 0;
		}
	}
	return pm_usage(err, program, "%s %s: expected a time, as 10s, 500ms or 2m",
			option, text);
}

int pm_parse_size(uint64_t *ret_bytes, const char *option, const char *text,
		  const char *program, struct pm_error *err)
{
	static const char units[] = "BKMGT";
	const char *unit;
	double value;

	if (parse_decimal_word(text, &value, &unit)) {
		const char *known = *unit ? strchr(units, *unit & ~0x20) : units;
		double bytes = known ? value * (double)(1ull << 10 * (known - units)) : 0;

		if (known && (*unit == '\0' || unit[1] == '\0') && bytes >= 1 &&
		    bytes < 9e18) {
			*ret_bytes = (uint64_t)bytes;
			return 0;
		}
	}
	return pm_usage(err, program, "%s %s: expected a number of bytes, as 100M",
			option, text);
}

int pm_parse_name(const char *option, const char *what, const char *text,
		  const char *program, struct pm_error *err)
{
	if (text[0] != '\0')
		return 0;
	return pm_usage(err, program, "%s: expected the name of %s", option, what);
}

int pm_parse_separator(const char **out, const char *text, const char *program,
		       struct pm_error *err)
{
	if (text[0] == '\0' || strpbrk(text, "\"\n"))
		return pm_usage(err, program, "'%s' cannot separate fields", text);
	*out = text;
	if (strcmp(text, "\\t") == 0)
		*out = "\t";
	return 0;
}

int pm_words_find(const char *words, const char *text)
{
	size_t len = strlen(text);
	int index = 0;

	for (const char *word = words;; index++) {
		size_t word_len = strcspn(word, " ");

		if (word_len == len && memcmp(word, text, len) == 0)
			return index;
		if (word[word_len] == '\0')
			return -1;
		word += word_len + 1;
	}
}

int pm_color_set(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	enum pm_color_wish *out = pm_option_member(to, use);
	int wish = pm_words_find(use->option->words, use->text);

	if (wish < 0)
		return pm_usage(err, use->program,
				"--color is auto, always or never, not '%s'", use->text);
	*out = (enum pm_color_wish)wish;
	return 0;
}

bool pm_color_is_wanted(enum pm_color_wish wish, int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (wish != PM_COLOR_AUTO)
		return wish == PM_COLOR_ALWAYS;
	return isatty(fd) && (!no_color || no_color[0] == '\0') && term &&
	       strcmp(term, "dumb") != 0;
}

/* ---- targets ------------------------------------------------------------------------------ */

int pm_task_list_set(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	struct pm_task_list *out = pm_option_member(to, use);
	const char *rest = use->text;
	uint64_t number;

	for (;; rest++) {
		if (!pm_parse_u64_part(&rest, &number) || number == 0 ||
		    number > INT32_MAX || out->list.len == TASKS_MAX)
			return pm_usage(
				err, use->program, "%s %s: expected the number of a %s",
				use->label, use->text,
				use->option->letter == 'p' ? "process" : "thread");
		if (pm_vec_push(&out->list, (pid_t)number) < 0)
			return pm_error_no_memory(err);
		if (*rest == '\0')
			return 0;
	}
}

int pm_targets_set_cpus(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	struct pm_targets_request *request = pm_option_member(to, use);
	const char *rest = use->text;
	bool valid = true;

	request->all_cpus = true;
	request->cpus = use->text;
	/* Only the kernel knows whether these CPUs exist. */
	while (valid) {
		size_t len = strspn(rest, "0123456789");

		valid = len > 0 && len < 6;
		rest += len;
		if (valid && *rest == '-') {
			len = strspn(++rest, "0123456789");
			valid = len > 0 && len < 6;
			rest += len;
		}
		if (*rest != ',')
			break;
		rest++;
	}
	if (valid && *rest == '\0')
		return 0;
	return pm_usage(err, use->program, "-C %s: expected numbers of CPUs, as 0,2-4",
			use->text);
}

int pm_targets_check(struct pm_targets_request *request, const char *program,
		     struct pm_error *err)
{
	unsigned int kinds = (request->pids.list.len > 0) + (request->tids.list.len > 0) +
			     (request->uid != NULL) +
			     (request->all_cpus || request->cgroup);

	/* perf silently ignores all but one. */
	if (kinds > 1)
		return pm_usage(err, program,
				"-p, -t, -u and -a exclude each other (-C and -G limit "
				"-a)");
	/* perf_event_open(2): a control group is counted on CPUs. */
	request->all_cpus = request->all_cpus || request->cgroup;
	if (request->no_inherit && request->all_cpus)
		return pm_usage(err, program, "-i: on all CPUs nothing is inherited");
	return 0;
}

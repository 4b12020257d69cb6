/* SPDX-License-Identifier: MIT */
/* mem:ADDRESS|SYMBOL[/LENGTH][:rwx][:modifiers]. Source: linux/hw_breakpoint.h. */
#include "event-parser.h"

#include <linux/hw_breakpoint.h>
#include <string.h>

enum {
	LENGTH_DEFAULT = 4, /* perf's default */
#if defined(__aarch64__)
	INSTRUCTION = 4,
	WATCHED = 8, /* bytes covered by one register */
#endif
};

#define USAGE "mem:ADDRESS|SYMBOL[/LENGTH][:r|w|rw|x]"

static bool parse_breakpoint_access(const char *text, size_t len, uint32_t *out)
{
	static const char letters[] = "rwx";
	static const uint32_t bits[] = { HW_BREAKPOINT_R, HW_BREAKPOINT_W,
					 HW_BREAKPOINT_X };
	uint32_t access = 0;

	for (size_t i = 0; i < len; i++) {
		const char *found = NULL;

		if (text[i])
			found = strchr(letters, text[i]);

		if (!found || (access & bits[found - letters]))
			return false;
		access |= bits[found - letters];
	}
	if (access == 0)
		return false;
	*out = access;
	return true;
}

/*
 * x86 compares aligned words (Intel SDM 3B, 18.2.5), and the kernel refuses others with a
 * bare EINVAL. aarch64 watches bytes of one double word (Arm ARM, DBGWCR<n>_EL1.BAS), and
 * instructions of four bytes. For other places, hw_breakpoint_arch_parse() of
 * arch/arm64/kernel/hw_breakpoint.c does not fail, but watches fewer bytes or another
 * instruction.
 */
int pm_event_check_address(const struct pm_event_spec *spec, struct pm_error *err)
{
	unsigned long long at = spec->config1, len = spec->config2;
	bool code = spec->bp_type == HW_BREAKPOINT_X;

#if defined(__x86_64__)
	/* The suggested length is the largest that fits: the lowest set bit of the
	 * address. */
	if (!code && at % len != 0)
		return pm_error_set(
			err, -EINVAL,
			"\"%s\": 0x%llx is no multiple of its %llu bytes; write "
			"mem:0x%llx/%llu",
			spec->requested, at, len, at, at & -at);
#elif defined(__aarch64__)
	if (code && at % INSTRUCTION != 0)
		return pm_error_set(err, -EINVAL,
				    "\"%s\": no instruction is at 0x%llx, which is no "
				    "multiple of 4",
				    spec->requested, at);
	if (!code && at % WATCHED + len > WATCHED)
		return pm_error_set(err, -EINVAL,
				    "\"%s\": the %llu bytes from 0x%llx on go over a "
				    "multiple of 8; watch fewer",
				    spec->requested, len, at);
#else
	(void)at, (void)len, (void)code;
#endif
	return 0;
}

/* Checks what arch_build_bp_info() of arch/x86/kernel/hw_breakpoint.c and the common code
 * refuse with a bare EINVAL. arm64 changes any length of an execution breakpoint to 4. */
static int check_breakpoint_access(const struct pm_event_spec *spec, struct pm_error *err)
{
	uint64_t len = spec->config2;

	if ((spec->bp_type & HW_BREAKPOINT_X) && (spec->bp_type & HW_BREAKPOINT_RW))
		return pm_error_set(err, -EINVAL,
				    "\"%s\": x (execution) goes with neither r nor w",
				    spec->requested);
	if (len != 1 && len != 2 && len != 4 && len != 8)
		return pm_error_set(err, -EINVAL,
				    "\"%s\": a breakpoint is on 1, 2, 4 or 8 bytes",
				    spec->requested);
#if defined(__x86_64__)
	if (spec->bp_type == HW_BREAKPOINT_R)
		return pm_error_set(err, -EINVAL,
				    "\"%s\": this processor cannot tell reading alone; "
				    "write :rw or :w",
				    spec->requested);
#endif
	if (spec->bp_type == HW_BREAKPOINT_X && len != sizeof(long))
		return pm_error_set(err, -EINVAL,
				    "\"%s\": a breakpoint on execution has no length, or "
				    "%zu",
				    spec->requested, sizeof(long));
	if (spec->place.wanted)
		return 0;
	return pm_event_check_address(spec, err);
}

/* Removes "/LENGTH" from the end. Returns false if LENGTH is not a number. */
static bool take_breakpoint_length(const char *text, size_t *len, uint64_t *out)
{
	const char *slash = memrchr(text, '/', *len);
	char number[32];
	size_t digits;

	if (!slash)
		return true;
	digits = (size_t)(text + *len - slash - 1);
	if (digits == 0 || digits >= sizeof(number))
		return false;
	memcpy(number, slash + 1, digits);
	number[digits] = '\0';
	*len = (size_t)(slash - text);
	return pm_parse_u64(number, out) && *out != 0;
}

/* Sets the address, or a place to be resolved. */
static int set_breakpoint_place(const struct pm_event_item *item, const char *text,
				size_t len, struct pm_event_spec *spec,
				struct pm_error *err)
{
	const char *plus = memrchr(text, '+', len);
	char plain[PM_EVENT_NAME_MAX];

	pm_event_unquote(text, len, plain);
	if (pm_parse_u64(plain, &spec->config1))
		return 0;
	if (plus && plus > text) {
		char number[PM_EVENT_NAME_MAX];

		pm_event_unquote(plus + 1, (size_t)(text + len - plus - 1), number);
		if (pm_parse_u64(number, &spec->place.offset))
			pm_event_unquote(text, (size_t)(plus - text), plain);
	}
	if (!plain[0] || (plain[0] >= '0' && plain[0] <= '9'))
		return pm_error_set(err, -EINVAL, "\"%s\" is not of the form " USAGE,
				    item->text);
	spec->place.wanted = true;
	spec->place.symbol = pm_event_specs_keep(item->specs, plain, strlen(plain));
	if (!spec->place.symbol)
		return pm_error_set(err, -ENOMEM, "no memory for it");
	return 0;
}

int pm_event_parse_breakpoint(const struct pm_event_item *item, struct pm_error *err)
{
	struct pm_event_parts parts;
	struct pm_event_spec spec;
	const char *place = item->text + strlen("mem:"), *modifiers = "";
	size_t begin = strlen("mem:"), len, last, name_len = item->len;
	int ret;

	pm_event_item_begin(item, &spec);
	spec.kind = PM_EVENT_BREAKPOINT;
	spec.type = PERF_TYPE_BREAKPOINT;
	spec.bp_type = HW_BREAKPOINT_RW;
	pm_event_split(place, item->len - begin, &parts);
	if (parts.len > 3)
		return pm_error_set(err, -EINVAL, "\"%s\" is not of the form " USAGE,
				    item->text);
	last = parts.len - 1;
	if (parts.len == 3 ||
	    (parts.len == 2 &&
	     !parse_breakpoint_access(parts.part[1].at, parts.part[1].len,
				      &spec.bp_type))) {
		modifiers = parts.part[last].at;
		name_len = (size_t)(modifiers - 1 - item->text);
	}
	if (parts.len == 3 &&
	    !parse_breakpoint_access(parts.part[1].at, parts.part[1].len, &spec.bp_type))
		return pm_error_set(err, -EINVAL,
				    "\"%.*s\" in \"%s\" is no access: r, w, rw or x",
				    (int)parts.part[1].len, parts.part[1].at, item->text);
	memcpy(spec.name, item->text, name_len);
	len = parts.part[0].len;
	if (!take_breakpoint_length(place, &len, &spec.config2))
		return pm_error_set(err, -EINVAL, "\"%s\" is not of the form " USAGE,
				    item->text);
	ret = set_breakpoint_place(item, place, len, &spec, err);
	if (ret < 0)
		return ret;
	if (spec.config2 == 0) {
		if (spec.bp_type == HW_BREAKPOINT_X)
			spec.config2 = sizeof(long);
		else
			spec.config2 = LENGTH_DEFAULT;
	}
	ret = check_breakpoint_access(&spec, err);
	if (ret == 0)
		ret = pm_event_modifiers_set(&spec, modifiers, strlen(modifiers),
					     item->group_modifiers, err);
	if (ret < 0)
		return ret;
	return pm_event_item_add(item, &spec, err);
}

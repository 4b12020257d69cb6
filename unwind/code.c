/* SPDX-License-Identifier: MIT */
/* Reads code by its address, and recognizes calls in it. */
#include "unwind-parts.h"

const struct pm_unw_map *pm_unw_space_find(const struct pm_unw_space *space,
					   uint64_t address)
{
	size_t low = 0, high = space->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->maps[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address >= space->maps[low - 1].end)
		return NULL;
	return &space->maps[low - 1];
}

bool pm_unw_map_read_code(const struct pm_unw_map *map, uint64_t address, void *out,
			  size_t len)
{
	return map && map->module &&
	       pm_unw_module_read(map->module, address - map->bias, out, len);
}

bool pm_unw_read_code(const struct pm_unw_space *space, uint64_t address, void *out,
		      size_t len)
{
	const struct pm_unw_map *map = pm_unw_space_find(space, address);

	if (map && !map->module)
		return space->read_code &&
		       space->read_code(space->read_code_user, address, out, len);
	return pm_unw_map_read_code(map, address, out, len);
}

bool pm_unw_x86_ends_with_call(const uint8_t code[PM_UNW_X86_CALL_BYTES_MAX], size_t have)
{
	enum {
		LONGEST = PM_UNW_X86_CALL_BYTES_MAX
	};

	if (have >= 5 && code[LONGEST - 5] == 0xe8)
		return true;
	for (size_t len = 2; len <= have; len++) {
		uint8_t modrm = code[LONGEST - len + 1];
		uint8_t mod = modrm >> 6, rm = modrm & 7;
		size_t want = 2;

		if (code[LONGEST - len] != 0xff || (modrm >> 3 & 7) != 2)
			continue;
		if (mod != 3 && rm == 4) {
			if (len == 2)
				continue; /* a SIB byte must follow */
			want++;
		}
		/* With mod 0, base 5 means that there is no base: a table at an absolute
		 * address. */
		if (mod == 1)
			want += 1;
		else if (mod == 2 || (mod == 0 && rm == 5) ||
			 (mod == 0 && rm == 4 && (code[LONGEST - len + 2] & 7) == 5))
			want += 4;
		if (len == want)
			return true;
	}
	return false;
}

static bool does_x86_call_precede(const struct pm_unw_map *map, uint64_t end)
{
	uint8_t code[PM_UNW_X86_CALL_BYTES_MAX];
	size_t have = sizeof(code);

	/* Near the start of a segment, fewer bytes may be readable than the longest call
	 * has. */
	while (!pm_unw_map_read_code(map, end - have, code + sizeof(code) - have, have))
		if (--have < 2)
			return false;
	return pm_unw_x86_ends_with_call(code, have);
}

bool pm_unw_a64_is_call(uint32_t code)
{
	return (code & 0xfc000000) == 0x94000000 || (code & 0xfffffc1f) == 0xd63f0000 ||
	       (code & 0xfffff81f) == 0xd63f081f || (code & 0xfffff800) == 0xd73f0800;
}

static bool does_a64_call_precede(const struct pm_unw_map *map, uint64_t address)
{
	uint32_t code;

	return address % 4 == 0 && pm_unw_map_read_code(map, address - 4, &code, 4) &&
	       pm_unw_a64_is_call(code);
}

bool pm_unw_call_precedes(enum pm_unw_arch arch, const struct pm_unw_map *map,
			  uint64_t address)
{
	/* Memory that belongs to no file cannot be read; assume a call. */
	if (!map || !map->module)
		return map;
	if (arch == PM_UNW_AARCH64)
		return does_a64_call_precede(map, address);
	return does_x86_call_precede(map, address);
}

bool pm_unw_ends_with_call(struct pm_unw_module *module, uint64_t svma)
{
	const struct pm_unw_map map = { .module = module };

	return pm_unw_call_precedes(module->arch, &map, svma + 1);
}

bool pm_unw_follows_call(const struct pm_unw_state *state, uint64_t address)
{
	return pm_unw_call_precedes(
		state->regs.arch, pm_unw_space_find(state->space, address - 1), address);
}

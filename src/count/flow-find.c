/* SPDX-License-Identifier: MIT */
/* Finds instructions by address. */
#include "flow.h"

size_t pm_flow_find(const struct pm_flow *flow, uint64_t address)
{
	size_t low = 0, high = flow->insns.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (flow->insns.data[mid].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < flow->insns.len && flow->insns.data[low].address == address)
		return low;
	return SIZE_MAX;
}

size_t pm_flow_find_target(const struct pm_flow *flow, uint64_t address)
{
	size_t at = pm_flow_find(flow, address);

	if (at == SIZE_MAX && address > 0)
		return pm_flow_find(flow, address - 1);
	return at;
}

bool pm_flow_holds(const struct pm_flow *flow, uint64_t address)
{
	for (size_t i = 0; i < flow->pieces.len; i++)
		if (address >= flow->pieces.data[i].low &&
		    address < flow->pieces.data[i].high)
			return true;
	return false;
}

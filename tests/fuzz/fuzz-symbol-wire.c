/* SPDX-License-Identifier: MIT */
/* Any bytes as what a helper process answers. What is read is written again and read back. */
#include <stdint.h>
#include <string.h>

#include "src/symbol/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check_again(const struct pm_symbol_wire_message *message)
{
	static struct pm_symbol_wire_message again;
	struct pm_str bytes = { 0 };
	size_t taken;

	if (message->kind == PM_SYMBOL_WIRE_SYMBOL)
		pm_symbol_wire_put_symbol(&bytes, message->index, message->functions,
					  message->functions_len);
	else
		pm_symbol_wire_put_done(&bytes, message->code);
	if (!bytes.failed &&
	    (pm_symbol_wire_next(bytes.data, bytes.len, &again, &taken) != 1 ||
	     taken != bytes.len || again.kind != message->kind))
		abort();
	if (!bytes.failed && message->kind == PM_SYMBOL_WIRE_SYMBOL) {
		if (again.functions_len != message->functions_len)
			abort();
		for (size_t i = 0; i < again.functions_len; i++)
			if (!same(again.functions[i].name, message->functions[i].name) ||
			    !same(again.functions[i].file, message->functions[i].file) ||
			    again.functions[i].line != message->functions[i].line ||
			    again.functions[i].start != message->functions[i].start)
				abort();
	}
	pm_str_release(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pm_symbol_wire_message message;
	size_t taken;

	while (pm_symbol_wire_next(data, size, &message, &taken) == 1) {
		if (taken == 0 || taken > size)
			abort();
		check_again(&message);
		data += taken;
		size -= taken;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Does nothing itself; its library's constructor takes half a second of CPU time. */
#include <stdint.h>

extern __attribute__((visibility("default"))) uint64_t constructor_sink;

int main(void)
{
	return constructor_sink == 0;
}

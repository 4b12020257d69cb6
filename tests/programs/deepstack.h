/* SPDX-License-Identifier: MIT */
#pragma once

/* @frames calls in one another, of frames of about 200, 1000 or 100000 bytes, and then
 * *@bottom. Of this program and of its shared library. */
void descend(int bytes, int frames, void (*const *bottom)(void));
__attribute__((visibility("default"))) void descend_in_library(
	int bytes, int frames, void (*const *bottom)(void));

/* Compiled for the library. */
#if defined(DEEPSTACK_LIBRARY)
#define DESCEND descend_in_library
#else
#define DESCEND descend
#endif

/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

uint64_t plt_first(uint64_t x);
uint64_t plt_second(uint64_t x);
uint64_t plt_third(uint64_t x);

/* SPDX-License-Identifier: MIT */
#pragma once

/* To stderr, as it is. */
void pm_self_print(const char *text);

/* SPDX-License-Identifier: MIT */
#pragma once

/* What MARK() notes. The assembler part of truth.c has the numbers 7 and 8 as text. */
enum truth {
	TRUTH_NONE,
	TRUTH_CHAIN_FIRST,
	TRUTH_CHAIN_SECOND,
	TRUTH_LOCAL,
	TRUTH_PLAIN,
	TRUTH_ALIAS,
	TRUTH_HOT,
	TRUTH_UNSIZED,
	TRUTH_NOBODY,
	TRUTH_COLD,
	TRUTH_COLD_INLINE,
	TRUTH_CPP_LAMBDA,
	TRUTH_CPP_METHOD,
	TRUTH_CPP_INLINED,
	TRUTH_CPP_LOCAL_CLASS,
	TRUTH_CPP_TWIN,
	TRUTH_CPP_OTHER_TWIN,
	TRUTH_CPP_NESTED,
	TRUTH_CPP_UNNAMED,
	TRUTH_CPP_AWAY,
	TRUTH_CPP_LOCAL_INLINED,
	TRUTH_MAX,
};

#ifndef __cplusplus
int pm_truth_chain(int x);
int pm_truth_plain(int x);
int __pm_truth_alias(int x);
int pm_truth_cold(int x);
void pm_truth_never(int x);
int pm_truth_calls(int x);
#endif

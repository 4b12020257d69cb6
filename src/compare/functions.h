/* SPDX-License-Identifier: MIT */
/* Functions of two recordings side by side. */
#pragma once

#include "pm/compare.h"
#include "pm/flame.h"

enum {
	PM_PROFILES = 2, /* base and new */
};

/* One function, including all its copies and parts. */
struct pm_function {
	const char *name; /* name of the function, or of the first one if several are
	                   * merged */
	size_t name_len;
	uint32_t module; /* index in pm_merged */
};

/* The weight of a function in the samples of one event on one side. */
struct pm_function_weight {
	struct pm_weight self, total;
	bool inlined; /* it was inlined everywhere */
	uint32_t place; /* the place in the profile that has most of the weight; or
	                 * PM_PROFILE_NONE */
};

struct pm_functions {
	struct pm_merged merged; /* base first */
	/* The functions of both sides. Some entries are unused: the lambdas of a function
	 * are merged if one side numbers them differently, because an added lambda
	 * increments the numbers of all lambdas after it. */
	PM_VEC(struct pm_function) list;
	PM_VEC(char *) names; /* owned names of merged lambdas */
	uint32_t *of[PM_PROFILES]; /* by function of each profile: index in `list` */
};

int pm_functions_init(struct pm_functions *out, const struct pm_profile *base,
		      const struct pm_profile *new, struct pm_error *err);
void pm_functions_release(struct pm_functions *functions);
/* Returns the weights by function of @view, which belongs to @side, or NULL if memory is
 * out. The caller has to free(3) the array. */
struct pm_function_weight *pm_functions_weigh(const struct pm_functions *functions,
					      const struct pm_view *view,
					      unsigned int side);

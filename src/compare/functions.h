/* SPDX-License-Identifier: MIT */
/* Functions of two recordings side by side. */
#pragma once

#include "pm/compare.h"
#include "pm/flame.h"

enum {
	PM_PROFILES = 2, /* base and new */
};

/* One function, with all of its copies and parts. */
struct pm_function {
	const char *name; /* its own or, if it has several functions, of the first one */
	size_t name_len;
	uint32_t module; /* of pm_merged */
};

/* The weight of a function in the samples of one event on one side. */
struct pm_function_weight {
	struct pm_weight self, total;
	bool inlined; /* everywhere */
	uint32_t place; /* in the profile: where most of it is; or PM_PROFILE_NONE */
};

struct pm_functions {
	struct pm_merged merged; /* base first */
	/* Some are unused: the lambdas of a function are merged if one side numbers them
	 * differently, because an added lambda increments the numbers of all lambdas
	 * after it. */
	PM_VEC(struct pm_function) list;
	PM_VEC(char *) names; /* owned names of merged lambdas */
	uint32_t *of[PM_PROFILES]; /* by function of each profile: index in list */
};

int pm_functions_init(struct pm_functions *out, const struct pm_profile *base,
		      const struct pm_profile *new, struct pm_error *err);
void pm_functions_release(struct pm_functions *functions);
/* Returns the weights by function of @view, which is of @side; release with free(3).
 * NULL: out of memory. */
struct pm_function_weight *pm_functions_weigh(const struct pm_functions *functions,
					      const struct pm_view *view,
					      unsigned int side);

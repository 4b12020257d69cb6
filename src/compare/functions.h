/* SPDX-License-Identifier: MIT */
/* Functions of two recordings side by side. */
#pragma once

#include "pm/compare.h"
#include "pm/flame.h"

enum {
	PM_PROFILES = 2, /* base and new */
};

/* One function, whatever its copies and parts are called. */
struct pm_function {
	const char *name; /* its own, or where several are in it the base name's owner */
	size_t name_len;
	uint32_t module; /* of pm_merged */
};

/* What samples of one event on one side say of a function. */
struct pm_function_weight {
	struct pm_weight self, total;
	bool inlined; /* everywhere */
	uint32_t place; /* of the profile, where most of it is; PM_PROFILE_NONE */
};

struct pm_functions {
	struct pm_merged merged; /* base first */
	/* Some are empty: lambdas of one function are one where one side has other numbers of
	 * them, for each that is added counts all behind it up. */
	PM_VEC(struct pm_function) list;
	PM_VEC(char *) names; /* of these */
	uint32_t *of[PM_PROFILES]; /* by function of each profile: index in list */
};

int pm_functions_init(struct pm_functions *ret, const struct pm_profile *base,
		      const struct pm_profile *new, struct pm_error *err);
void pm_functions_release(struct pm_functions *functions);
/* By function, of @view which is of @side; for free(3). NULL without memory. */
struct pm_function_weight *pm_functions_weigh(const struct pm_functions *functions,
					      const struct pm_view *view,
					      unsigned int side);

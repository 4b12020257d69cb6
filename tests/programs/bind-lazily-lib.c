/* SPDX-License-Identifier: MIT */
/* The library of bind-lazily.c: functions that do nothing, but must be found. */
#define EXPORT __attribute__((visibility("default")))

#define FIVE(what, n) what(n##0) what(n##1) what(n##2) what(n##3) what(n##4)
#define MANY(what, n)    \
	FIVE(what, n##0) \
	FIVE(what, n##1) FIVE(what, n##2) FIVE(what, n##3) FIVE(what, n##4)
#define ALL(what) MANY(what, 1) MANY(what, 2) MANY(what, 3) MANY(what, 4) MANY(what, 5)

#define DEFINE(n)                                             \
	void bound_##n(void);                                 \
	EXPORT __attribute__((noinline)) void bound_##n(void) \
	{                                                     \
		__asm__ volatile("");                         \
	}
#define CALL(n) bound_##n();

void calls_all(void);

ALL(DEFINE)

EXPORT void calls_all(void)
{
	ALL(CALL)
	__asm__ volatile("");
}

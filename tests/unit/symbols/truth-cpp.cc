/* SPDX-License-Identifier: MIT */
/* The same for C++: names that only their scopes or their mangling make complete. */
#include "truth.h"

#define NOINLINE __attribute__((noinline))
#define INLINE   inline __attribute__((always_inline))

volatile int sink;

#define MARK(id)                                                                   \
	__asm__ volatile("9:\tnop\n\t.pushsection pm_truth,\"a\"\n\t.balign 8\n\t" \
			 ".quad 9b - .\n\t.quad %c0\n\t.popsection"                \
			 :                                                         \
			 : "i"(id))

namespace outer
{
template <class T> struct Box {
	T value;

	INLINE T twice() const
	{
		MARK(TRUTH_CPP_INLINED); /* @twice */
		return value + value;
	}
	NOINLINE T run(T x)
	{
		sink = x;
		MARK(TRUTH_CPP_METHOD); /* @run */
		return x + twice(); /* @run-twice */
	}
};

namespace
{
struct Hidden {
	static NOINLINE int apply(int x)
	{
		struct Local {
			static NOINLINE int step(int y)
			{
				sink = y;
				MARK(TRUTH_CPP_LOCAL_CLASS); /* @step */
				return sink;
			}
		};
		return Local::step(x) + 1;
	}
};
} // namespace
} // namespace outer

extern "C" __attribute__((visibility("default"))) int pm_truth_cpp(int x)
{
	auto add = [&](int y) __attribute__((noinline))
	{
		sink = y;
		MARK(TRUTH_CPP_LAMBDA); /* @lambda */
		return x + y;
	};
	outer::Box<int> box{ x };

	return add(2) + box.run(x) + outer::Hidden::apply(x);
}

/* ---- without names; clang numbers the lambda above before these ---- */

namespace outer
{
namespace
{
struct {
	INLINE int operator()(int y) const
	{
		sink = y;
		MARK(TRUTH_CPP_UNNAMED); /* @unnamed */
		return sink;
	}
} unnamed;
} // namespace

NOINLINE int away(int x)
{
	struct Local {
		static INLINE int step(int y)
		{
			sink = y;
			MARK(TRUTH_CPP_LOCAL_INLINED);
			return sink;
		}
	};
	auto add = [&](int y) __attribute__((always_inline))
	{
		sink = y;
		MARK(TRUTH_CPP_AWAY); /* @away */
		return x + y;
	};

	return add(3) + unnamed(x) + Local::step(x);
}
} // namespace outer

/* Of two on one line, only the columns differ. */
#define TWIN(id)                                 \
	[&](int y) __attribute__((always_inline)) \
	{                                        \
		sink = y;                        \
		MARK(id);                        \
		return x + y;                    \
	}

extern "C" __attribute__((visibility("default"))) int pm_truth_nameless(int x)
{
	auto nest = [&](int y) __attribute__((always_inline))
	{
		auto inner = [&](int z) __attribute__((always_inline))
		{
			sink = z;
			MARK(TRUTH_CPP_NESTED);
			return x + z;
		};
		return inner(y);
	};
	/* clang-format off */
	auto one = TWIN(TRUTH_CPP_TWIN); auto two = TWIN(TRUTH_CPP_OTHER_TWIN); /* @twins */
	/* clang-format on */
	return one(x) + two(x) + nest(x) + outer::away(x);
}

/* SPDX-License-Identifier: MIT */
/* Blocked time by who waits: which function of a stack that is, and what it waits in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pm/profile.h"

static const char head[] =
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0.1.0\","
	"\"created\":\"2024-05-06T07:08:09Z\",\"clock\":\"monotonic\",\"host\":{\"cpus\":2},"
	"\"command\":[\"prog\"],\"events\":["
	"{\"id\":0,\"name\":\"cpu-clock\",\"requested\":\"cpu-clock\",\"actual\":"
	"\"cpu-clock\",\"modifiers\":\"\",\"unit\":\"ns\",\"freq\":100},"
	"{\"id\":1,\"name\":\"off-cpu\",\"requested\":\"--off-cpu\",\"actual\":\"off-cpu\","
	"\"modifiers\":\"\",\"unit\":\"ns\",\"period\":1}],"
	"\"options\":{\"call_graph\":\"dwarf\",\"stack_bytes\":8,\"ring_bytes\":8}}\n"
	"{\"type\":\"module\",\"id\":0,\"path\":\"/bin/prog\",\"kind\":\"file\"}\n"
	"{\"type\":\"module\",\"id\":1,\"path\":\"/lib/libc.so.6\",\"kind\":\"file\"}\n"
	"{\"type\":\"module\",\"id\":2,\"path\":\"[kernel.kallsyms]\",\"kind\":\"kernel\"}\n"
	"{\"type\":\"thread\",\"pid\":7,\"tid\":7,\"comm\":\"prog\",\"time\":1}\n";

/* A file with samples of stacks, made of words. */
struct made {
	struct pm_str lines;
	unsigned frames, stacks;
};

/* One frame: MODULE:NAME, and what is inlined into it before that, with commas between; `?` has
 * no name. */
static void put_frame(struct made *made, const char *word, size_t len)
{
	const char *names = word + 2, *end = word + len;
	const char *between = "";

	pm_str_printf(&made->lines,
		      "{\"type\":\"frame\",\"id\":%u,\"module\":%c,\"address\":\"0x%x\","
		      "\"how\":\"ip\"}\n",
		      made->frames, *word, 16 + made->frames);
	if (*names != '?') {
		pm_str_printf(&made->lines,
			      "{\"type\":\"symbol\",\"frame\":%u,\"functions\":[",
			      made->frames);
		for (const char *next; names < end; names = next + 1, between = ",") {
			next = memchr(names, ',', (size_t)(end - names));
			next = next ? next : end;
			pm_str_printf(&made->lines, "%s{\"name\":\"%.*s\"}", between,
				      (int)(next - names), names);
		}
		pm_str_puts(&made->lines, "]}\n");
	}
	made->frames++;
}

/* @words: the frames, root first, with blanks between. */
static void put_wait(struct made *made, const char *words, unsigned period)
{
	unsigned parent = UINT32_MAX;

	while (*words) {
		size_t len = strcspn(words, " ");

		put_frame(made, words, len);
		pm_str_printf(&made->lines,
			      "{\"type\":\"stack\",\"id\":%u,\"parent\":", made->stacks);
		if (parent == UINT32_MAX)
			pm_str_puts(&made->lines, "null");
		else
			pm_str_printf(&made->lines, "%u", parent);
		pm_str_printf(&made->lines, ",\"frames\":[%u]}\n", made->frames - 1);
		parent = made->stacks++;
		words += len + strspn(words + len, " ");
	}
	pm_str_puts(&made->lines,
		    "{\"type\":\"sample\",\"time\":900,\"pid\":7,\"tid\":7,\"cpu\":0,"
		    "\"event\":1,");
	pm_str_printf(&made->lines, "\"period\":%u,\"stack\":", period);
	if (parent == UINT32_MAX)
		pm_str_puts(&made->lines, "null,\"stop\":\"not_sampled\"}\n");
	else
		pm_str_printf(&made->lines, "%u}\n", parent);
}

static struct pm_profile *load(struct made *made,
			       const struct pm_profile_options *options)
{
	struct pm_file_reader *reader;
	struct pm_profile *profile = NULL;
	struct pm_error err = { 0 };

	assert_false(made->lines.failed);
	if (pm_file_reader_open_memory(&reader, made->lines.data, made->lines.len, &err) <
		    0 ||
	    pm_profile_load(&profile, reader, options, &err) < 0)
		fail_msg("%s", err.text);
	pm_file_reader_free(reader);
	pm_str_release(&made->lines);
	return profile;
}

static struct made begin(void)
{
	struct made made = { 0 };

	pm_str_puts(&made.lines, head);
	return made;
}

static struct pm_view *view_of(const struct pm_profile *profile)
{
	struct pm_view *view;

	assert_int_equal(pm_view_new(&view, profile, 1, NULL, NULL), 0);
	return view;
}

static const char *name_of(const struct pm_view *view, uint32_t function)
{
	return function == PM_PROFILE_NONE ? ""
					   : view->profile->functions.data[function].name;
}

#define KERNEL " 2:entry_SYSCALL_64_after_hwframe 2:do_syscall_64 "

static void test_who_waits(void **state)
{
	static const struct {
		const char *stack, *function, *call, *kernel;
	} cases[] = {
		{ "0:main 0:parse 1:read" KERNEL "2:ksys_read 2:vfs_read 2:schedule",
		  "parse", "read", "read" },
		/* The outermost of the library, whatever that calls. */
		{ "0:main 1:nanosleep 1:clock_nanosleep" KERNEL
		  "2:__x64_sys_clock_nanosleep 2:do_nanosleep 2:schedule",
		  "main", "nanosleep", "clock_nanosleep" },
		/* The C++ library's part that is in the program; inlined or not. */
		{ "0:main 0:std::thread::join 1:?" KERNEL "2:__x64_sys_futex 2:schedule",
		  "main", "std::thread::join", "futex" },
		{ "0:main 0:__gthread_mutex_lock,std::mutex::lock,ns::locked 1:?" KERNEL
		  "2:do_futex 2:futex_do_wait 2:schedule",
		  "ns::locked", "std::mutex::lock", "futex" },
		/* Two underscores of a compiler's. */
		{ "0:main 0:MAIN__ 0:__grid_MOD_load 1:read" KERNEL
		  "2:ksys_read 2:schedule",
		  "__grid_MOD_load", "read", "read" },
		{ "0:main 0:__pyx_pf_4spam_eggs 1:read" KERNEL "2:ksys_read 2:schedule",
		  "__pyx_pf_4spam_eggs", "read", "read" },
		/* A static program. */
		{ "0:_start 0:__libc_start_main 0:main 0:pthread_join "
		  "0:__futex_abstimed_wait_common" KERNEL "2:__x64_sys_futex 2:schedule",
		  "main", "pthread_join", "futex" },
		/* No library between, or nothing but. */
		{ "0:main" KERNEL "2:__x64_sys_pause 2:schedule", "main", "", "pause" },
		{ "1:clone3 1:start_thread 1:munmap" KERNEL
		  "2:__x64_sys_munmap 2:schedule",
		  "munmap", "", "munmap" },
		/* Without a name. */
		{ "0:? 1:poll" KERNEL "2:__arm64_sys_ppoll 2:do_sys_poll 2:schedule",
		  "[unknown]", "poll", "ppoll" },
		/* No system call. */
		{ "0:main 2:asm_exc_page_fault 2:exc_page_fault 2:folio_wait_bit "
		  "2:io_schedule 2:schedule",
		  "main", "", "page fault" },
		{ "0:main 2:irqentry_exit 2:do_signal_stop.isra.0 2:schedule", "main", "",
		  "do_signal_stop" },
		/* A thread of the kernel; the kernel hidden; none at all. */
		{ "2:ret_from_fork 2:kthread 2:worker_thread 2:schedule 2:__schedule",
		  "worker_thread", "", NULL },
		{ "0:main 1:read 2:?", "main", "read", NULL },
		{ "0:main 1:read", "main", "read", NULL },
		{ "2:schedule", "schedule", "", NULL },
		{ "", "[no stack]", "", NULL },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct made made = begin();
		struct pm_profile *profile;
		struct pm_view *view;
		struct pm_waits waits;
		uint32_t *waiters;
		uint32_t place;

		put_wait(&made, cases[i].stack, 5);
		profile = load(&made, NULL);
		view = view_of(profile);
		assert_int_equal(pm_waits_init(&waits, view, false), 0);
		assert_int_equal(waits.rows.len, 1);
		assert_string_equal(name_of(view, waits.rows.data[0].function),
				    cases[i].function);
		assert_string_equal(name_of(view, waits.rows.data[0].call),
				    cases[i].call);
		if (cases[i].kernel)
			assert_string_equal(waits.rows.data[0].kernel, cases[i].kernel);
		else
			assert_null(waits.rows.data[0].kernel);
		waiters = pm_view_waiters(view);
		assert_non_null(waiters);
		place = waiters[profile->cells.data[0].stack];
		assert_int_equal(profile->places.data[place].function,
				 waits.rows.data[0].function);
		free(waiters);
		pm_waits_release(&waits);
		pm_view_free(view);
		pm_profile_free(profile);
	}
}

/* Sums, numbers and the longest, however the samples were read. */
static void test_sums(void **state)
{
	static const char reads[] =
		"0:main 0:parse 1:read" KERNEL "2:ksys_read 2:schedule";
	static const char naps[] =
		"0:main 1:nanosleep" KERNEL "2:__x64_sys_clock_nanosleep 2:schedule";
	static const struct pm_profile_options options[] = {
		{ 0 },
		{ .keep_samples = true },
		{ .time_set = true, .time_percent = true, .time_to = 100 },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(options); i++) {
		struct made made = begin();
		struct pm_profile *profile;
		struct pm_view *view;
		struct pm_waits waits;

		put_wait(&made, reads, 10);
		put_wait(&made, naps, 45);
		put_wait(&made, reads, 30);
		put_wait(&made, reads, 20);
		profile = load(&made, &options[i]);
		view = view_of(profile);
		assert_int_equal(pm_waits_init(&waits, view, false), 0);
		assert_int_equal(waits.rows.len, 2);
		assert_string_equal(name_of(view, waits.rows.data[0].function), "parse");
		assert_int_equal(waits.rows.data[0].weight.period, 60);
		assert_int_equal(waits.rows.data[0].weight.samples, 3);
		assert_int_equal(waits.rows.data[0].longest, 30);
		assert_int_equal(waits.rows.data[1].weight.period, 45);
		assert_int_equal(waits.rows.data[1].longest, 45);
		pm_waits_release(&waits);
		pm_view_free(view);
		pm_profile_free(profile);
	}
}

/* Each frame is looked at once, however many stacks end below it. */
static void test_deep(void **state)
{
	enum {
		DEPTH = 20000
	};
	struct made made = begin();
	struct pm_profile *profile;
	struct pm_view *view;
	struct pm_waits waits;

	put_frame(&made, "1:f", 3);
	for (unsigned i = 0; i < DEPTH; i++) {
		pm_str_printf(&made.lines,
			      "{\"type\":\"stack\",\"id\":%u,\"parent\":", i);
		if (i == 0)
			pm_str_puts(&made.lines, "null");
		else
			pm_str_printf(&made.lines, "%u", i - 1);
		pm_str_printf(
			&made.lines,
			",\"frames\":[0]}\n{\"type\":\"sample\",\"time\":900,\"pid\":7,"
			"\"tid\":7,\"cpu\":0,\"event\":1,\"period\":1,\"stack\":%u}\n",
			i);
	}
	profile = load(&made, NULL);
	view = view_of(profile);
	assert_int_equal(pm_waits_init(&waits, view, false), 0);
	assert_int_equal(waits.rows.len, 1);
	assert_int_equal(waits.rows.data[0].weight.samples, DEPTH);
	pm_waits_release(&waits);
	pm_view_free(view);
	pm_profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_waits),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Events beyond the kernel's own names: PMUs of a folder like sysfs, groups, probes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>

#include "src/perf/event-parser.h"

static char folder[] = "/tmp/pm-test-pmus-XXXXXX";
static struct pm_event_sources sources = { .devices = folder };
static struct pm_event_specs specs;

static const struct {
	const char *path, *text; /* no text: a folder */
} files[] = {
	{ "cpu", NULL },
	{ "cpu/type", "4" },
	{ "cpu/format", NULL },
	{ "cpu/format/event", "config:0-7" },
	{ "cpu/format/umask", "config:8-15" },
	{ "cpu/format/edge", "config:18" },
	{ "cpu/format/ldlat", "config1:0-15" },
	{ "cpu/format/odd", "config3:0-7" },
	{ "cpu/format/wrong", "config:7-3" },
	{ "cpu/format/high", "config:63" },
	{ "cpu/format/beyond", "config:60-64" },
	{ "cpu/format/whole", "config2:0-63" },
	{ "cpu/events", NULL },
	{ "cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3" },
	{ "cpu/events/again", "again" },
	{ "cpu/events/ask", "event=?" },
	{ "cpu/events/rotten", "nothing=1" },
	{ "uncore_imc_0", NULL },
	{ "uncore_imc_0/type", "20" },
	{ "uncore_imc_0/cpumask", "0,4" },
	{ "uncore_imc_0/format", NULL },
	{ "uncore_imc_0/format/event", "config:0-7,32-35" },
	{ "uncore_imc_0/events", NULL },
	{ "uncore_imc_0/events/reads", "event=0x304" },
	{ "uncore_imc_0/events/reads.scale", "6.1e-5" },
	{ "uncore_imc_0/events/reads.unit", "MiB" },
	{ "uncore_imc_0/events/odd", "event=0x305" },
	{ "uncore_imc_0/events/odd.scale", "many" },
	{ "uncore_imc_1", NULL },
	{ "uncore_imc_1/type", "21" },
	{ "uncore_imc_1/format", NULL },
	{ "uncore_imc_1/format/event", "config:0-7,32-35" },
	{ "cpu_atom", NULL },
	{ "cpu_atom/type", "10" },
	{ "cpu_atom/cpus", "8-15" },
	{ "breakpoint", NULL },
	{ "breakpoint/type", "5" },
	{ "untyped", NULL },
	{ "uprobe", NULL },
	{ "uprobe/type", "8" },
	{ "uprobe/format", NULL },
	{ "uprobe/format/retprobe", "config:0" },
	{ "kprobe", NULL },
	{ "kprobe/type", "7" },
};

static int setup(void **state)
{
	char path[256];

	if (!mkdtemp(folder))
		return -1;
	for (size_t i = 0; i < PM_ARRAY_LEN(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i].path);
		if (!files[i].text) {
			if (mkdir(path, 0700) < 0)
				return -1;
			continue;
		}
		FILE *file = fopen(path, "w");

		if (!file || fprintf(file, "%s\n", files[i].text) < 0 ||
		    fclose(file) != 0)
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	char path[256];

	pm_event_specs_release(&specs);
	for (size_t i = PM_ARRAY_LEN(files); i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i].path);
		remove(path);
	}
	return rmdir(folder);
}

/* The events of @text; they live until the next call. */
static const struct pm_event_spec *parse(const char *text, size_t want)
{
	struct pm_error err = { 0 };

	pm_event_specs_release(&specs);
	if (pm_event_specs_parse_from(&sources, text, &specs, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	if (specs.list.len != want)
		fail_msg("%s: %zu events", text, specs.list.len);
	return specs.list.data;
}

static void refuse(const char *text, const char *because)
{
	struct pm_event_specs none = { 0 };
	struct pm_error err = { 0 };

	if (pm_event_specs_parse_from(&sources, text, &none, &err) == 0)
		fail_msg("\"%s\" is taken", text);
	if (!strstr(err.text, because))
		fail_msg("\"%s\": \"%s\" does not say \"%s\"", text, err.text, because);
	assert_int_equal(none.list.len, 0);
	pm_event_specs_release(&none);
}

static void test_terms(void **state)
{
	static const struct {
		const char *text, *name;
		uint64_t config, config1, config2;
	} cases[] = {
		{ "cpu/event=0x3c,umask=0x1/", "cpu/event=0x3c,umask=0x1/", 0x13c, 0, 0 },
		{ "cpu/ umask = 2 , event=60 /", "cpu/umask=2,event=60/", 0x23c, 0, 0 },
		{ "cpu/event=1,edge/", "cpu/event=1,edge/", 0x40001, 0, 0 },
		{ "cpu/event=1,edge=0/", "cpu/event=1,edge=0/", 1, 0, 0 },
		{ "cpu/high/", "cpu/high/", (uint64_t)1 << 63, 0, 0 },
		{ "cpu/whole=0xffffffffffffffff/", "cpu/whole=0xffffffffffffffff/", 0, 0,
		  UINT64_MAX },
		{ "cpu/mem-loads/", "cpu/mem-loads/", 0x1cd, 3, 0 },
		{ "cpu/MEM-LOADS/", "cpu/MEM-LOADS/", 0x1cd, 3, 0 },
		{ "cpu/event=mem-loads/", "cpu/event=mem-loads/", 0x1cd, 3, 0 },
		/* What is typed wins, wherever it stands. */
		{ "cpu/mem-loads,ldlat=30/", "cpu/mem-loads,ldlat=30/", 0x1cd, 30, 0 },
		{ "cpu/ldlat=30,mem-loads/", "cpu/ldlat=30,mem-loads/", 0x1cd, 30, 0 },
		{ "mem-loads", "cpu/mem-loads/", 0x1cd, 3, 0 },
		{ "cpu/config=0xf00,config1=7,config2=9,event=2/",
		  "cpu/event=2,config=0xf00,config1=0x7,config2=0x9/", 0xf02, 7, 9 },
		{ "cpu/r1a8/", "cpu/r1a8/", 0x1a8, 0, 0 },
		{ "cpu/'event'=\"0x3c\"/", "cpu/event=0x3c/", 0x3c, 0, 0 },
		{ "cpu//", "cpu//", 0, 0, 0 },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		const struct pm_event_spec *spec = parse(cases[i].text, 1);

		assert_int_equal(spec->kind, PM_EVENT_PMU);
		assert_int_equal(spec->type, 4);
		assert_string_equal(spec->requested, cases[i].text);
		assert_string_equal(spec->name, cases[i].name);
		assert_true(spec->config == cases[i].config);
		assert_true(spec->config1 == cases[i].config1);
		assert_true(spec->config2 == cases[i].config2);
		assert_null(spec->cpus);
	}
}

static void test_wrong_terms(void **state)
{
	refuse("cpu/evnt=1/",
	       "PMU \"cpu\" has no term \"evnt\"; near names: event; its terms: "
	       "beyond, edge, event, high, ldlat, odd, umask, whole, wrong, "
	       "config, config1, config2, name, period, freq; its events: again, "
	       "ask, mem-loads, rotten");
	refuse("cpu/event=0x100/", "event=0x100 does not fit, 0xff is the most");
	refuse("cpu/edge=2/", "edge=2 does not fit, 0x1 is the most");
	refuse("cpu/event/", "event wants a value");
	refuse("cpu/event=x/", "event wants a number, not \"x\"");
	refuse("cpu/event=-1/", "event wants a number");
	refuse("cpu/event=1,event=2/", "term \"event\" is there twice");
	refuse("cpu/event=/", "TERM=VALUE");
	refuse("cpu/event=1,/", "TERM=VALUE");
	refuse("cpu/odd=1/",
	       "where term \"odd\" of PMU \"cpu\" belongs is not understood");
	refuse("cpu/wrong=1/", "not understood");
	refuse("cpu/beyond=1/", "not understood");
	refuse("cpu/ask/", "add event=VALUE");
	refuse("cpu/again/", "stands for itself");
	refuse("cpu/rotten/", "no term \"nothing\"");
	refuse("cpu/event=1", "has no second \"/\"");
	refuse("cpu/../type=1/", "no term");
	refuse("../cpu/event=1/", "neither an event nor a PMU");
	refuse("untyped/event=1/",
	       "neither an event nor a PMU is called \"untyped\"; PMUs here: "
	       "breakpoint, cpu, cpu_atom, kprobe, ");
	refuse("cpu/call-graph=fp/", "the same for all events");
	refuse("cpu/reads.scale/", "no term");
	refuse("uprobe/retprobe/", "write uprobe:FILE:SYMBOL");
	refuse("breakpoint/config=1/", "write mem:ADDRESS");
}

static void test_pmus(void **state)
{
	const struct pm_event_spec *spec = parse("uncore_imc/event=0xfff/u", 2);

	/* Bits in ascending order: 8 and then 4 more at 32. */
	assert_true(spec[0].config == 0xf000000ff && spec[1].config == 0xf000000ff);
	assert_int_equal(spec[0].type, 20);
	assert_int_equal(spec[1].type, 21);
	assert_string_equal(spec[0].name, "uncore_imc_0/event=0xfff/");
	assert_string_equal(spec[1].requested, "uncore_imc/event=0xfff/u");
	assert_string_equal(spec[0].cpus, "0,4");
	assert_null(spec[1].cpus);
	assert_int_equal(spec[1].leader, 1);
	parse("uncore_*/event=1/", 2);
	parse("imc_?/event=1/", 2);
	parse("imc/event=1/", 2);
	spec = parse("reads:k", 1);
	assert_true(spec->type == 20 && spec->config == 0x300000004);
	assert_true(spec->kernel && !spec->user);
	/* A hybrid processor's: the kernel's names, with the PMU above them. */
	spec = parse("cpu_atom/LLC-loads/", 1);
	assert_int_equal(spec->type, PERF_TYPE_HW_CACHE);
	assert_true(spec->config == 0xa00000002);
	assert_string_equal(spec->cpus, "8-15");
	spec = parse("cpu_atom/cycles/", 1);
	assert_true(spec->type == PERF_TYPE_HARDWARE && spec->config == 0xa00000000);
	spec = parse("cpu/cycles/", 1);
	assert_true(spec->type == PERF_TYPE_HARDWARE && spec->config == 0);
	refuse("cpu_atom/cpu-clock/", "no term \"cpu-clock\"");
	refuse("mem-load", "near names: mem-loads");
}

static void assert_unit(const char *text, const char *unit, double scale)
{
	char found[PM_EVENT_UNIT_MAX];
	double factor;

	pm_event_spec_unit_from(&sources, parse(text, 1), found, &factor);
	assert_string_equal(found, unit);
	assert_true(factor == scale);
}

static void test_units(void **state)
{
	assert_unit("uncore_imc_0/reads/", "MiB", 6.1e-5);
	assert_unit("reads:k", "MiB", 6.1e-5);
	assert_unit("uncore_imc_0/event=1/", "", 1);
	assert_unit("uncore_imc_0/odd/", "", 1);
	assert_unit("cycles", "", 1);
}

static void test_rates(void **state)
{
	const struct pm_event_spec *spec =
		parse("cycles/freq=999/,cycles,cs/period=3/u,cpu/event=1,period=0x10/,"
		      "LLC-loads/freq=max/,r1/name=one/",
		      6);

	assert_true(spec[0].rate_given && spec[0].by_frequency && spec[0].rate == 999);
	assert_string_equal(spec[0].name, "cycles");
	assert_false(spec[1].rate_given);
	assert_true(spec[2].rate_given && !spec[2].by_frequency && spec[2].rate == 3);
	assert_true(spec[2].user && !spec[2].kernel);
	assert_true(spec[3].rate_given && spec[3].rate == 16 && spec[3].config == 1);
	assert_string_equal(spec[3].name, "cpu/event=1/");
	assert_true(spec[4].by_frequency && spec[4].rate == UINT64_MAX);
	assert_string_equal(spec[5].name, "one");
	refuse("cycles/freq=1,period=2/", "two rates");
	refuse("cycles/freq=0/", "a frequency of 0");
	refuse("cycles/period=0/", "a period of 0");
	refuse("cycles/period=x/", "period wants a number");
	refuse("cycles/umask=1/", "others are a PMU's: cpu/umask/");
}

static void test_raw(void **state)
{
	const struct pm_event_spec *spec = parse("r1A8:u,rffffffffffffffff,4:0x3c:k", 3);

	assert_true(spec[0].kind == PM_EVENT_RAW && spec[0].type == PERF_TYPE_RAW);
	assert_true(spec[0].config == 0x1a8 && !spec[0].kernel);
	assert_true(spec[1].config == UINT64_MAX);
	assert_true(spec[2].type == 4 && spec[2].config == 0x3c && !spec[2].user);
	refuse("r", "unknown event");
	refuse("r1g", "unknown event");
	refuse("r00000000000000001", "unknown event");
	refuse("4294967296:1", "unknown event");
}

static void test_all_modifiers(void **state)
{
	const struct pm_event_spec *spec = parse("cycles:ukhGHIpppSDe", 1);

	assert_true(spec->user && spec->kernel && spec->hypervisor);
	assert_true(spec->guest_only && spec->host_only && spec->no_idle);
	assert_true(spec->precise == 3 && !spec->precise_most);
	assert_true(spec->read_group && spec->pinned && spec->exclusive);
	spec = parse("cycles:P", 1);
	assert_true(spec->precise == 3 && spec->precise_most && spec->hypervisor);
	spec = parse("cycles:h", 1);
	assert_true(!spec->user && !spec->kernel && spec->hypervisor);
	spec = parse("cycles:u", 1);
	assert_false(spec->hypervisor);
	refuse("cycles:pppp", "4 times the modifier \"p\"");
	refuse("cycles:uW", "a weak group");
	refuse("cycles:b", "leave it out, the count is the same");
	refuse("cs:G", "software events know no guests");
}

static void test_groups(void **state)
{
	const struct pm_event_spec *spec =
		parse("cs, {cycles,instructions:p}:uS ,{LLC-loads} , faults", 5);
	static const uint32_t leaders[] = { 0, 1, 1, 3, 4 };

	for (size_t i = 0; i < 5; i++)
		assert_int_equal(spec[i].leader, leaders[i]);
	assert_string_equal(spec[1].requested, "cycles:uS");
	assert_string_equal(spec[2].requested, "instructions:puS");
	assert_true(spec[1].read_group && spec[2].precise == 1 && !spec[2].kernel);
	assert_false(spec[4].read_group);
	/* As behind the event: once is enough. */
	spec = parse("{cycles:u,cs/period=1/}:uD", 2);
	assert_string_equal(spec[0].requested, "cycles:uD");
	assert_string_equal(spec[1].requested, "cs/period=1/uD");
	assert_true(spec[1].pinned);
	/* Appending moves the leaders. */
	assert_int_equal(
		pm_event_specs_parse_from(&sources, "cs,{cs,faults}", &specs, NULL), 0);
	assert_int_equal(specs.list.data[2].leader, 2);
	assert_int_equal(specs.list.data[4].leader, 3);
	refuse("{cycles", "a group has no \"}\"");
	refuse("{}", "missing");
	refuse("{cycles,}", "missing");
	refuse("cycles}", "a comma is missing before \"}\"");
	refuse("{a,{b}}", "unknown event");
	refuse("{cycles}{cs}", "a comma is missing before \"{cs}\"");
	refuse("{cycles}:x", "unknown modifier \"x\"");
	refuse("{cycles}:uuuuuuuuuuuuuuuuuu", "too many modifiers");
}

static void test_replace(void **state)
{
	struct pm_event_spec with[3];

	/* 0 | 1 2 3 | 4: one that leads becomes three. */
	parse("cs,{uprobe:a:x*,cycles,faults},cs", 5);
	for (size_t i = 0; i < 3; i++)
		with[i] = specs.list.data[1];
	assert_int_equal(pm_event_specs_replace(&specs, 1, with, 3), 0);
	static const uint32_t led[] = { 0, 1, 1, 1, 1, 1, 6 };

	assert_int_equal(specs.list.len, 7);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(specs.list.data[i].leader, led[i]);
	assert_string_equal(specs.list.data[4].name, "cycles");
	/* One in no group becomes two in no group. */
	with[0] = with[1] = specs.list.data[0];
	assert_int_equal(pm_event_specs_replace(&specs, 0, with, 2), 0);
	static const uint32_t moved[] = { 0, 1, 2, 2, 2, 2, 2, 7 };

	for (size_t i = 0; i < 8; i++)
		assert_int_equal(specs.list.data[i].leader, moved[i]);
	/* A member becomes two members. */
	with[0] = with[1] = specs.list.data[5];
	assert_int_equal(pm_event_specs_replace(&specs, 5, with, 2), 0);
	static const uint32_t members[] = { 0, 1, 2, 2, 2, 2, 2, 2, 8 };

	for (size_t i = 0; i < 9; i++)
		assert_int_equal(specs.list.data[i].leader, members[i]);
}

static void test_probes(void **state)
{
	static const struct {
		const char *text, *file, *symbol, *source;
		uint64_t offset;
		uint32_t line;
		const char *modifiers;
	} cases[] = {
		{ "uprobe:libc:malloc", "libc", "malloc", NULL, 0, 0, "" },
		{ "uprobe:/a b/c:f+0x10:u", "/a b/c", "f", NULL, 0x10, 0, "u" },
		{ "uprobe:./p:src.c:12", "./p", NULL, "src.c", 0, 12, "" },
		{ "uprobe:./p:src.c:12:uk", "./p", NULL, "src.c", 0, 12, "uk" },
		{ "uprobe:./p:'ns::f(int, char)':u", "./p", "ns::f(int, char)", NULL, 0,
		  0, "u" },
		{ "uprobe:./p:ns::f(int, char)+4", "./p", "ns::f(int, char)", NULL, 4, 0,
		  "" },
		{ "uprobe:./p:std::map<int, char>::at", "./p", "std::map<int, char>::at",
		  NULL, 0, 0, "" },
		{ "uprobe:./p:main::{lambda(int, int)#1}::operator()", "./p",
		  "main::{lambda(int, int)#1}::operator()", NULL, 0, 0, "" },
		{ "uprobe:./p:operator<(A, B)", "./p", "operator<(A, B)", NULL, 0, 0,
		  "" },
		{ "uprobe:./p:operator+(A, B)", "./p", "operator+(A, B)", NULL, 0, 0,
		  "" },
		{ "uprobe:./p:\"a+1\"", "./p", "a+1", NULL, 0, 0, "" },
		{ "uprobe:'/x:y/p':mem*", "/x:y/p", "mem*", NULL, 0, 0, "" },
		{ "uretprobe:libc:free:u", "libc", "free", NULL, 0, 0, "u" },
		{ "usdt:libc:libc:setjmp", "libc", "libc:setjmp", NULL, 0, 0, "" },
		{ "usdt:libc:libc:memory_*:k", "libc", "libc:memory_*", NULL, 0, 0, "k" },
		{ "kprobe:do_exit+8", NULL, "do_exit", NULL, 8, 0, "" },
		{ "kretprobe:vfs_*:k", NULL, "vfs_*", NULL, 0, 0, "k" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		const struct pm_event_spec *spec = parse(cases[i].text, 1);
		const struct pm_event_place *place = &spec->place;
		bool kprobe = cases[i].text[0] == 'k';

		assert_true(place->wanted);
		assert_int_equal(spec->kind, kprobe ? PM_EVENT_KPROBE : PM_EVENT_UPROBE);
		assert_int_equal(spec->type, kprobe ? 7 : 8);
		assert_int_equal(spec->config, strstr(cases[i].text, "retprobe") != NULL);
		assert_int_equal(place->on_return, spec->config);
		assert_int_equal(place->usdt, cases[i].text[1] == 's');
		assert_string_equal(spec->modifiers, cases[i].modifiers);
		assert_string_equal(place->file ? place->file : "",
				    cases[i].file ? cases[i].file : "");
		assert_string_equal(place->symbol ? place->symbol : "",
				    cases[i].symbol ? cases[i].symbol : "");
		assert_string_equal(place->source ? place->source : "",
				    cases[i].source ? cases[i].source : "");
		assert_int_equal(place->offset, cases[i].offset);
		assert_int_equal(place->line, cases[i].line);
	}
	/* A comma in a name does not end it, one behind it does. */
	parse("uprobe:./p:ns::f(int, char),cycles,{uprobe:./p:g<a, b>(),cs}:u", 4);
}

static void test_wrong_probes(void **state)
{
	refuse("uprobe:libc",
	       "is not of the form uprobe:FILE:SYMBOL[+OFFSET] or uprobe:FILE:"
	       "SOURCE:LINE");
	refuse("uprobe:", "not of the form");
	refuse("uprobe::f", "not of the form");
	refuse("uprobe:p:", "not of the form");
	refuse("uprobe:p:a.c:x", "not of the form");
	refuse("uprobe:p:a.c:0", "not of the form");
	refuse("uprobe:p:a:1:u:k", "not of the form");
	refuse("uprobe:p:'f", "the quote is never closed");
	refuse("uretprobe:p:a.c:12", "functions return, not lines");
	refuse("uretprobe:p:f+4", "no +OFFSET here");
	refuse("usdt:p:a", "not of the form usdt:FILE:PROVIDER:NAME");
	refuse("usdt:p::x", "not of the form");
	refuse("kprobe:", "not of the form");
	refuse("kprobe:a:c", "not of the form");
	refuse("kprobe:a:uu", "twice");
	sources.devices = "/nonexistent";
	refuse("kprobe:f", "this kernel has no kprobe PMU (it was built without "
			   "CONFIG_KPROBE_EVENTS");
	refuse("uprobe:p:f", "this kernel has no uprobe PMU");
	refuse("cpu/event=1/", "PMUs here: none");
	sources.devices = folder;
}

static void test_breakpoints(void **state)
{
	static const struct {
		const char *text;
		uint64_t address, len;
		uint32_t type;
		const char *symbol, *modifiers, *name;
	} cases[] = {
		{ "mem:0x1000", 0x1000, 4, HW_BREAKPOINT_RW, NULL, "", "mem:0x1000" },
		{ "mem:4096:w", 4096, 4, HW_BREAKPOINT_W, NULL, "", "mem:4096:w" },
		{ "mem:0x1001/1:wr:u", 0x1001, 1, HW_BREAKPOINT_RW, NULL, "u",
		  "mem:0x1001/1:wr" },
		{ "mem:0x1000/8:u", 0x1000, 8, HW_BREAKPOINT_RW, NULL, "u",
		  "mem:0x1000/8" },
		{ "mem:0x1004:x", 0x1004, sizeof(long), HW_BREAKPOINT_X, NULL, "",
		  "mem:0x1004:x" },
		{ "mem:counter/8:w", 0, 8, HW_BREAKPOINT_W, "counter", "",
		  "mem:counter/8:w" },
		{ "mem:ns::counter:k", 0, 4, HW_BREAKPOINT_RW, "ns::counter", "k",
		  "mem:ns::counter" },
		{ "mem:'odd/name'/2", 0, 2, HW_BREAKPOINT_RW, "odd/name", "",
		  "mem:'odd/name'/2" },
	};
	const struct pm_event_spec *spec;

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		spec = parse(cases[i].text, 1);
		assert_true(spec->kind == PM_EVENT_BREAKPOINT && spec->type == 5);
		assert_true(spec->config1 == cases[i].address);
		assert_true(spec->config2 == cases[i].len);
		assert_int_equal(spec->bp_type, cases[i].type);
		assert_int_equal(spec->place.wanted, cases[i].symbol != NULL);
		assert_string_equal(spec->place.symbol ? spec->place.symbol : "",
				    cases[i].symbol ? cases[i].symbol : "");
		assert_string_equal(spec->modifiers, cases[i].modifiers);
		assert_string_equal(spec->name, cases[i].name);
	}
	spec = parse("mem:table+0x10/8:w", 1);
	assert_string_equal(spec->place.symbol, "table");
	assert_int_equal(spec->place.offset, 0x10);
	refuse("mem:", "not of the form");
	refuse("mem:12ab", "not of the form");
	refuse("mem:0x1000/3", "on 1, 2, 4 or 8 bytes");
	refuse("mem:0x1000/", "not of the form");
	refuse("mem:0x1000/0", "not of the form");
	refuse("mem:0x1000:rx", "goes with neither r nor w");
	refuse("mem:0x1000:z:u", "\"z\" in \"mem:0x1000:z:u\" is no access");
	refuse("mem:0x1000:rr", "unknown modifier \"r\"");
	refuse("mem:0x1000:r:u:k", "not of the form");
#if defined(__x86_64__)
	refuse("mem:0x1000:r", "cannot tell reading alone; write :rw or :w");
	refuse("mem:0x1002", "no multiple of its 4 bytes");
#elif defined(__aarch64__)
	refuse("mem:0x1002:x", "no instruction is at 0x1002");
	refuse("mem:0x1006", "the 4 bytes from 0x1006 on go over a multiple of 8");
	assert_int_equal(parse("mem:0x1003/4:r", 1)->config1, 0x1003);
#endif
	refuse("mem:0x1000/4:x", "on execution has no length, or 8");
}

/* The numbers are those of Intel's manual for Skylake, which the library is told to take. */
static void test_libpfm(void **state)
{
	static const struct {
		const char *text;
		uint64_t config;
	} cases[] = {
		{ "INST_RETIRED:ANY_P:u", 0xc0 },
		{ "inst_retired.any_p", 0xc0 },
		{ "MEM_LOAD_RETIRED:L3_MISS", 0x20d1 },
		{ "{UOPS_ISSUED:ANY:c=1:i=1}:k", 0x180010e },
	};
	struct pm_event_spec spec = { 0 };

	setenv("LIBPFM_FORCE_PMU", "skl", 1);
	if (!pm_event_libpfm("INST_RETIRED:ANY_P", &spec)) {
		print_message("# libpfm4 is not installed, or not for x86\n");
		skip();
	}
	sources.libpfm = true;
	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		const struct pm_event_spec *found = parse(cases[i].text, 1);

		assert_int_equal(found->kind, PM_EVENT_PMU);
		assert_int_equal(found->type, PERF_TYPE_RAW);
		assert_true(found->config == cases[i].config);
		assert_string_equal(found->requested + strlen(found->requested) -
					    strlen(found->modifiers),
				    found->modifiers);
	}
	refuse("INST_RETIRED:NONSENSE_P", "unknown event");
	refuse("Cycles", "near names: cycles");
	sources.libpfm = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_terms),         cmocka_unit_test(test_wrong_terms),
		cmocka_unit_test(test_pmus),          cmocka_unit_test(test_rates),
		cmocka_unit_test(test_units),         cmocka_unit_test(test_raw),
		cmocka_unit_test(test_all_modifiers), cmocka_unit_test(test_groups),
		cmocka_unit_test(test_replace),       cmocka_unit_test(test_probes),
		cmocka_unit_test(test_wrong_probes),  cmocka_unit_test(test_breakpoints),
		cmocka_unit_test(test_libpfm),
	};

	return cmocka_run_group_tests_name("event-kinds", tests, setup, teardown);
}

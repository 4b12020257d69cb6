/* SPDX-License-Identifier: MIT */
/* Names and fields of tracepoints, in a tracefs made of plain files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>

#include "src/perf/tracepoint.h"

/* ---- names ------------------------------------------------------------------------------ */

static char root[64];

static void put(const char *file, const char *text)
{
	char path[512];
	FILE *to;

	snprintf(path, sizeof(path), "%s/%s", root, file);
	to = fopen(path, "w");
	assert_non_null(to);
	fputs(text, to);
	assert_int_equal(fclose(to), 0);
}

static void put_event(const char *system, const char *name, const char *id)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/events/%s", root, system);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/events/%s/%s", root, system, name);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "events/%s/%s/id", system, name);
	put(path, id);
}

static int make_tracefs(void **state)
{
	char path[128];

	snprintf(root, sizeof(root), "/tmp/pm-tracefs-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/events", root);
	assert_int_equal(mkdir(path, 0755), 0);
	put_event("sched", "sched_switch", "372\n");
	put_event("sched", "sched_wakeup", "374\n");
	put_event("syscalls", "sys_enter_openat", "700\n");
	put_event("syscalls", "sys_enter_open", "701\n");
	put_event("syscalls", "sys_exit_open", "702\n");
	put_event("odd", "words", "seven\n");
	put_event("odd", "large", "4294967296\n");
	put_event("odd", "endless", "000000000000000000000000000000000000000000001\n");
	put("available_events", "syscalls:sys_exit_open\nsched:sched_wakeup\n"
				"syscalls:sys_enter_openat\nsched:sched_switch\n"
				"syscalls:sys_enter_open\nmodule:gone\n"
				"no_colon\n../../etc:passwd\nsched:\n:x\nsched:a/b\n");
	return 0;
}

static int remove_tracefs(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static const struct pm_event_spec like = {
	.requested = "sched:*:u",
	.modifiers = "u",
	.user = true,
	.kind = PM_EVENT_HARDWARE,
	.leader = 3,
	.config1 = 9,
};

static void expands(const char *system, const char *name, const char *expected)
{
	struct pm_event_specs specs = { 0 };
	struct pm_str got = { 0 };
	struct pm_error err = { 0 };

	if (pm_tracepoints_expand_in(root, system, name, &like, &specs, &err) < 0)
		fail_msg("%s:%s: %s", system, name, err.text);
	for (size_t i = 0; i < specs.list.len; i++) {
		const struct pm_event_spec *spec = &specs.list.data[i];

		pm_str_printf(&got, "%s%s=%d", i ? " " : "", spec->name,
			      (int)spec->config);
		assert_int_equal(spec->kind, PM_EVENT_TRACEPOINT);
		assert_int_equal(spec->type, PERF_TYPE_TRACEPOINT);
		assert_int_equal(spec->config1, 0);
		assert_int_equal(spec->leader, 3);
		assert_true(spec->user && !spec->kernel);
		assert_int_equal(strncmp(spec->requested, spec->name, strlen(spec->name)),
				 0);
		assert_string_equal(spec->requested + strlen(spec->name), ":u");
	}
	assert_string_equal(got.data, expected);
	pm_str_release(&got);
	pm_event_specs_release(&specs);
}

static void refused(const char *system, const char *name, int code, const char *text,
		    const char *fix)
{
	struct pm_event_specs specs = { 0 };
	struct pm_error err = { 0 };

	assert_int_equal(
		pm_tracepoints_expand_in(root, system, name, &like, &specs, &err), code);
	if (!strstr(err.text, text) || !strstr(err.fix, fix))
		fail_msg("%s:%s: \"%s\", \"%s\"", system, name, err.text, err.fix);
	assert_int_equal(specs.list.len, 0);
	assert_int_equal(
		pm_tracepoints_expand_in(root, system, name, &like, &specs, NULL), code);
	pm_event_specs_release(&specs);
}

static void test_names(void **state)
{
	struct pm_tracepoint_names names = { 0 };

	expands("sched", "sched_switch", "sched:sched_switch=372");
	expands("sched", "*", "sched:sched_switch=372 sched:sched_wakeup=374");
	expands("sysc*", "sys_enter_op*",
		"syscalls:sys_enter_open=701 syscalls:sys_enter_openat=700");
	expands("syscalls", "sys_e[xz]it_ope?", "syscalls:sys_exit_open=702");
	/* What left while we looked is left out. */
	expands("[ms]*", "[gs]*[ehn]",
		"sched:sched_switch=372 syscalls:sys_enter_open=701 "
		"syscalls:sys_exit_open=702");
	assert_int_equal(pm_tracepoint_names_read_in(root, &names, NULL), 0);
	assert_int_equal(names.list.len, 6);
	assert_string_equal(names.list.data[0], "module:gone");
	assert_string_equal(names.list.data[5], "syscalls:sys_exit_open");
	pm_tracepoint_names_release(&names);
}

static void test_unknown_names(void **state)
{
	char longer[PM_TRACEPOINT_NAME_MAX + 1];

	refused("sched", "sched_swich", -EINVAL,
		"unknown tracepoint \"sched:sched_swich\"; near names: sched:sched_switch",
		"pmrec --list tracepoint 'sched:*'");
	refused("shed", "sched_switch", -EINVAL, "near names: sched:sched_switch",
		"pmrec --list tracepoint");
	refused("sched", "wakeup", -EINVAL, "near names: sched:sched_wakeup",
		"'sched:*'");
	refused("syscalls", "openat", -EINVAL, "near names: syscalls:sys_enter_openat",
		"'syscalls:*'");
	refused("xyzzy", "plugh", -EINVAL, "unknown tracepoint \"xyzzy:plugh\"",
		"pmrec --list tracepoint");
	refused("sched", "xyzzy*", -EINVAL, "no tracepoint matches \"sched:xyzzy*\"",
		"'sched:*'");
	refused("module", "gone*", -EINVAL, "no tracepoint matches", "");
	refused("..", "sched_switch", -EINVAL, "unknown tracepoint", "");
	refused("sched", "..", -EINVAL, "unknown tracepoint", "");
	refused("sched", "../sched/sched_switch", -EINVAL, "unknown tracepoint", "");
	refused("", "sched_switch", -EINVAL, "unknown tracepoint", "");
	refused("odd", "words", -EBADMSG, "id of odd:words is no number", "");
	refused("odd", "large", -EBADMSG, "id of odd:large is no number", "");
	refused("odd", "endless", -EFBIG, "more than 32 bytes", "");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	refused("sched", longer, -EINVAL, "name of 128 bytes or more", "");
	refused(longer, "x", -EINVAL, "name of 128 bytes or more", "");
}

static void test_too_many(void **state)
{
	struct pm_str text = { 0 };
	char name[32];

	for (int i = 0; i < 257; i++) {
		snprintf(name, sizeof(name), "e%d", i);
		pm_str_printf(&text, "many:%s\n", name);
		put_event("many", name, "5\n");
	}
	put("available_events", text.data);
	refused("many", "*", -EINVAL, "matches 257 tracepoints, more than 256", "");
	pm_str_release(&text);
}

/* ---- fields ----------------------------------------------------------------------------- */

#define COMMON                                                                         \
	"format:\n"                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char every_kind[] =
	"name: every_kind\nID: 65538\n" COMMON
	"\tfield:char comm[4];\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
	"\tfield:unsigned char tiny;\toffset:16;\tsize:1;\tsigned:0;\n"
	"\tfield:s8 minus;\toffset:17;\tsize:1;\tsigned:1;\n"
	"\tfield:short small;\toffset:18;\tsize:2;\tsigned:1;\n"
	"\tfield:__data_loc char[] file;\toffset:20;\tsize:4;\tsigned:0;\n"
	"\tfield:const char * pointer;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 huge;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\tfield:__rel_loc char[] near;\toffset:40;\tsize:4;\tsigned:0;\n"
	"\tfield:__u8 mac[3];\toffset:44;\tsize:3;\tsigned:0;\n"
	"\tfield:unsigned short pair[2];\toffset:48;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc s32[] list;\toffset:52;\tsize:4;\tsigned:1;\n"
	"\tfield:struct timespec64 when;\toffset:56;\tsize:12;\tsigned:0;\n"
	"\tfield:__data_loc cpumask_t mask;\toffset:68;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned long args[];\toffset:72;\tsize:0;\tsigned:0;\n"
	"\nprint fmt: \"%s\", REC->comm\n";

static struct pm_tracepoint *tracepoint(const char *format, uint32_t id)
{
	struct pm_tracepoint *ret = NULL;
	struct pm_error err = { 0 };

	if (pm_tracepoint_parse(&ret, "test", id, format, strlen(format), &err) < 0)
		fail_msg("%s", err.text);
	return ret;
}

enum {
	RAW_BYTES = 104
};

static void u32(uint8_t *raw, size_t at, uint32_t value)
{
	memcpy(raw + at, &value, sizeof(value));
}

static void fill_raw(uint8_t raw[RAW_BYTES])
{
	int32_t list[] = { -7, 8 };
	uint64_t pointer = 0xffff888012345678, huge = UINT64_MAX;
	uint16_t small = (uint16_t)-300, pair[] = { 1, 65535 };

	memset(raw, 0xee, RAW_BYTES);
	u32(raw, 0, 2); /* 65538 & 0xffff, then flags */
	memcpy(raw + 8, "bash", 4); /* no NUL */
	u32(raw, 12, (uint32_t)-5);
	raw[16] = 200;
	raw[17] = 0xff;
	memcpy(raw + 18, &small, 2);
	u32(raw, 20, 72 | 8u << 16);
	memcpy(raw + 72, "/bin/sh", 8);
	memcpy(raw + 24, &pointer, 8);
	memcpy(raw + 32, &huge, 8);
	u32(raw, 40, (80 - 44) | 4u << 16);
	memcpy(raw + 80, "abc", 4);
	memcpy(raw + 44, "\x0a\xff\x00", 3);
	memcpy(raw + 48, pair, 4);
	u32(raw, 52, 84 | 8u << 16);
	memcpy(raw + 84, list, 8);
	memcpy(raw + 56, "\1\2\3\4\5\6\7\10\11\12\13\14", 12);
	u32(raw, 68, 92 | 2u << 16);
	memcpy(raw + 92, "\3\0", 2);
}

static void field_text(const struct pm_event_field *field, struct pm_str *out)
{
	pm_str_printf(out, "%s=", field->name);
	if (field->kind == PM_EVENT_FIELD_TEXT)
		pm_str_printf(out, "\"%s\" ", field->text);
	else if (field->kind == PM_EVENT_FIELD_SIGNED)
		pm_str_printf(out, "%lld ", (long long)field->negative_too);
	else
		pm_str_printf(out, "%llu ", (unsigned long long)field->number);
}

static void test_every_kind(void **state)
{
	struct pm_tracepoint *of = tracepoint(every_kind, 65538);
	struct pm_event_fields fields = { 0 };
	struct pm_str got = { 0 };
	uint8_t raw[RAW_BYTES];

	fill_raw(raw);
	for (int twice = 0; twice < 2; twice++) {
		pm_str_clear(&got);
		assert_int_equal(pm_tracepoint_fields(of, raw, sizeof(raw), &fields), 0);
		for (size_t i = 0; i < fields.list.len; i++)
			field_text(&fields.list.data[i], &got);
		assert_string_equal(
			got.data, "comm=\"bash\" pid=-5 tiny=200 minus=-1 small=-300 "
				  "file=\"/bin/sh\" pointer=18446612682375452280 "
				  "huge=18446744073709551615 near=\"abc\" mac=\"0aff00\" "
				  "pair=\"1,65535\" list=\"-7,8\" "
				  "when=\"0102030405060708090a0b0c\" mask=\"0300\" ");
	}
	pm_str_release(&got);
	pm_event_fields_release(&fields);
	pm_tracepoint_free(of);
}

static void test_hostile_bytes(void **state)
{
	struct pm_tracepoint *of = tracepoint(every_kind, 65538);
	struct pm_event_fields fields = { 0 };
	uint8_t raw[RAW_BYTES], *cut;

	/* Each length on its own allocation, so that a sanitizer sees the first byte too far. */
	for (size_t len = 0; len < 94; len++) {
		fill_raw(raw);
		cut = malloc(len + 1);
		memcpy(cut + 1, raw, len);
		assert_int_equal(pm_tracepoint_fields(of, cut + 1, len, &fields),
				 -EBADMSG);
		assert_int_equal(fields.list.len, 0);
		free(cut);
	}
	assert_int_equal(pm_tracepoint_fields(of, raw, 94, &fields), 0);
	u32(raw, 0, 3); /* another event */
	assert_int_equal(pm_tracepoint_fields(of, raw, sizeof(raw), &fields), -EBADMSG);
	fill_raw(raw);
	u32(raw, 20, 72 | 33u << 16); /* beyond the end */
	assert_int_equal(pm_tracepoint_fields(of, raw, sizeof(raw), &fields), -EBADMSG);
	u32(raw, 20, 0xffff | 1u << 16);
	assert_int_equal(pm_tracepoint_fields(of, raw, sizeof(raw), &fields), -EBADMSG);
	u32(raw, 20, RAW_BYTES); /* nothing, at the very end */
	assert_int_equal(pm_tracepoint_fields(of, raw, sizeof(raw), &fields), 0);
	assert_string_equal(fields.list.data[5].text, "");
	/* All of them are the whole record. */
	u32(raw, 20, 0 | (uint32_t)RAW_BYTES << 16);
	u32(raw, 52, 0 | (uint32_t)RAW_BYTES << 16);
	assert_int_equal(pm_tracepoint_fields(of, raw, sizeof(raw), &fields), -EBADMSG);
	pm_event_fields_release(&fields);
	pm_tracepoint_free(of);
}

static void test_bad_formats(void **state)
{
	static const char *const bad[] = {
		"",
		"name: x\n",
		"name: x\nID: 5\n",
		"name: x\nID: 5\nformat:\n",
		"name: x\nID: 5\n" COMMON "\tfield:int y;\toffset:8;\n",
		"name: x\nID: 5\n" COMMON
		"\tfield:int y;\toffset:99999;\tsize:4;\tsigned:1;\n",
		"name: x\nID: 5\n" COMMON
		"\tfield:int y;\toffset:8;\tsize:99999;\tsigned:1;\n",
		"name: x\nID: 5\n" COMMON
		"\tfield:char a[60000];\toffset:8;\tsize:60000;\tsigned:1;\n"
		"\tfield:char b[60000];\toffset:8;\tsize:60000;\tsigned:1;\n",
	};
	struct pm_tracepoint *of = NULL;
	struct pm_error err;

	for (size_t i = 0; i < PM_ARRAY_LEN(bad); i++) {
		err = (struct pm_error){ 0 };
		if (pm_tracepoint_parse(&of, "test", 5, bad[i], strlen(bad[i]), &err) !=
		    -EBADMSG)
			fail_msg("number %zu: %s", i, err.text);
		assert_string_equal(err.text, "its description cannot be read");
		assert_null(of);
	}
}

static void test_probes(void **state)
{
	struct pm_event_spec spec = { .kind = PM_EVENT_UPROBE, .name = "uprobe:x:y" };
	uint8_t raw[24] = { 9, 9, 0, 0, 1, 0, 0, 0, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0x78 };
	struct pm_event_fields fields = { 0 };
	struct pm_tracepoint *of;

	assert_int_equal(pm_tracepoint_new(&of, &spec, NULL), 0);
	assert_int_equal(pm_tracepoint_fields(of, raw, 16, &fields), 0);
	assert_int_equal(fields.list.len, 1);
	assert_string_equal(fields.list.data[0].name, "ip");
	assert_int_equal(fields.list.data[0].number, 0x1234);
	assert_int_equal(pm_tracepoint_fields(of, raw, 15, &fields), -EBADMSG);
	pm_tracepoint_free(of);
	spec.config = 1;
	assert_int_equal(pm_tracepoint_new(&of, &spec, NULL), 0);
	assert_int_equal(pm_tracepoint_fields(of, raw, 24, &fields), 0);
	assert_int_equal(fields.list.len, 2);
	assert_string_equal(fields.list.data[0].name, "func");
	assert_string_equal(fields.list.data[1].name, "ret_ip");
	assert_int_equal(fields.list.data[1].number, 0x78);
	pm_tracepoint_free(of);
	spec.kind = PM_EVENT_SOFTWARE;
	assert_int_equal(pm_tracepoint_new(&of, &spec, NULL), -EINVAL);
	pm_event_fields_release(&fields);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, make_tracefs, remove_tracefs),
		cmocka_unit_test_setup_teardown(test_unknown_names, make_tracefs,
						remove_tracefs),
		cmocka_unit_test_setup_teardown(test_too_many, make_tracefs,
						remove_tracefs),
		cmocka_unit_test(test_every_kind),
		cmocka_unit_test(test_hostile_bytes),
		cmocka_unit_test(test_bad_formats),
		cmocka_unit_test(test_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

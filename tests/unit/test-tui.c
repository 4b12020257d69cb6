/* SPDX-License-Identifier: MIT */
/* The browser without a terminal: keys in, frames of text out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pm/tui.h"

enum {
	ROWS = 24,
	COLUMNS = 80,
	WIDE_MAX = 200,
};

static const char header[] =
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0.1.0\","
	"\"created\":\"2024-05-06T07:08:09Z\",\"clock\":\"monotonic\","
	"\"host\":{\"hostname\":\"h\",\"kernel\":\"k\",\"arch\":\"x86_64\",\"cpus\":2,"
	"\"cpu_model\":null,\"virt\":null},\"command\":[\"prog\"],\"events\":["
	"{\"id\":0,\"name\":\"cycles\",\"requested\":\"cycles\",\"actual\":\"cycles\","
	"\"modifiers\":\"\",\"unit\":\"events\",\"freq\":999}],"
	"\"options\":{\"call_graph\":\"dwarf\",\"stack_bytes\":8,\"ring_bytes\":8}}\n"
	"{\"type\":\"module\",\"id\":0,\"path\":\"/bin/prog\",\"build_id\":null,"
	"\"kind\":\"file\"}\n"
	"{\"type\":\"thread\",\"pid\":1,\"tid\":1,\"comm\":\"prog\",\"time\":0}\n";

static void put_frame(struct pm_str *file, unsigned id)
{
	pm_str_printf(
		file,
		"{\"type\":\"frame\",\"id\":%u,\"module\":0,\"address\":\"0x%x\","
		"\"how\":\"cfi\"}\n"
		"{\"type\":\"symbol\",\"frame\":%u,\"functions\":[{\"name\":\"f%u\","
		"\"file\":\"p.c\",\"line\":%u}]}\n",
		id, 0x1000 + id, id, id, id + 1);
}

static void put_stack(struct pm_str *file, unsigned id, int parent, unsigned frame,
		      unsigned samples)
{
	char text[16] = "null";

	if (parent >= 0)
		snprintf(text, sizeof(text), "%d", parent);
	pm_str_printf(file,
		      "{\"type\":\"stack\",\"id\":%u,\"parent\":%s,\"frames\":[%u]}\n",
		      id, text, frame);
	for (unsigned i = 0; i < samples; i++)
		pm_str_printf(file,
			      "{\"type\":\"sample\",\"event\":0,\"time\":%u,\"pid\":1,"
			      "\"tid\":1,\"cpu\":0,\"period\":1,\"stack\":%u,"
			      "\"stop\":\"root\"}\n",
			      1000 + id, id);
}

static struct pm_profile *load(struct pm_str *file)
{
	struct pm_file_reader *reader;
	struct pm_profile *profile = NULL;
	struct pm_error err = { 0 };

	assert_false(file->failed);
	if (pm_file_reader_open_memory(&reader, file->data, file->len, &err) < 0 ||
	    pm_profile_load(&profile, reader, NULL, &err) < 0)
		fail_msg("%s:%lld: %s", err.source, (long long)err.offset, err.text);
	pm_file_reader_free(reader);
	pm_str_release(file);
	return profile;
}

/* f0 calls f1, that calls f2, … to a depth; each has a sample of its own. */
static struct pm_profile *chain(unsigned depth)
{
	struct pm_str file = { 0 };

	pm_str_puts(&file, header);
	for (unsigned i = 0; i < depth; i++) {
		put_frame(&file, i);
		put_stack(&file, i, (int)i - 1, i, 1);
	}
	return load(&file);
}

/* f0 calls each of the others, which call their neighbour. */
static struct pm_profile *broad(unsigned functions)
{
	struct pm_str file = { 0 };

	pm_str_puts(&file, header);
	for (unsigned i = 0; i < functions; i++)
		put_frame(&file, i);
	put_stack(&file, 0, -1, 0, 0);
	for (unsigned i = 1; i < functions; i++) {
		put_stack(&file, 2 * i - 1, 0, i, 1);
		put_stack(&file, 2 * i, (int)(2 * i - 1), i % (functions - 1) + 1, 1);
	}
	return load(&file);
}

static struct pm_tui *browser(const struct pm_profile *profile, enum pm_report_show show)
{
	struct pm_report report = {
		.profile = profile,
		.event = PM_PROFILE_NONE,
		.show = show,
		.limit = PM_LIMIT_DEFAULT,
		.ascii = true,
	};
	struct pm_error err = { 0 };
	struct pm_tui *tui;

	if (pm_tui_new(&tui, &report, &err) < 0)
		fail_msg("%s", err.text);
	pm_tui_resize(tui, ROWS, COLUMNS);
	return tui;
}

/* The frame as lines. Every cell lies on the screen and says something. */
static const char *screen(struct pm_tui *tui)
{
	static char text[(WIDE_MAX + 1) * WIDE_MAX + 1];
	const struct pm_tui_frame *frame;
	size_t stride;

	assert_int_equal(pm_tui_draw(tui, &frame), 0);
	stride = frame->columns + 1;
	assert_true(frame->columns <= WIDE_MAX && frame->rows <= WIDE_MAX);
	memset(text, ' ', stride * frame->rows);
	text[stride * frame->rows] = '\0';
	for (unsigned row = 0; row < frame->rows; row++)
		text[row * stride + frame->columns] = '\n';
	for (size_t i = 0; i < frame->cells.len; i++) {
		const struct pm_tui_cell *cell = &frame->cells.data[i];
		const char *words = frame->text.data + cell->text;
		size_t len = strlen(words);

		assert_true(cell->row < frame->rows);
		assert_true(cell->column + cell->width <= frame->columns);
		assert_true(len > 0);
		memcpy(text + cell->row * stride + cell->column, words,
		       len < cell->width ? len : cell->width);
	}
	return text;
}

static void shows(struct pm_tui *tui, const char *words)
{
	const char *text = screen(tui);

	if (!strstr(text, words))
		fail_msg("'%s' is not in\n%s", words, text);
}

static void press(struct pm_tui *tui, const char *keys)
{
	for (; *keys; keys++)
		assert_int_equal(pm_tui_press(tui, (unsigned char)*keys), 1);
}

/* ---- tests --------------------------------------------------------------------------- */

static void a_deep_stack_opens_and_closes(void **state)
{
	enum {
		DEPTH = 3000,
	};
	struct pm_profile *profile = chain(DEPTH);
	struct pm_tui *tui = browser(profile, PM_SHOW_TREE);

	/* One that calls one that calls one: a single key opens all. */
	shows(tui, "1/3000");
	assert_int_equal(pm_tui_press(tui, PM_TUI_END), 1);
	shows(tui, "3000/3000");
	shows(tui, "2999"); /* its depth, where there is no room to indent */
	press(tui, "C");
	shows(tui, " 1/1");
	press(tui, "/f2500\n");
	shows(tui, "2501/2501");
	press(tui, "3");
	shows(tui, " 1/3000");
	pm_tui_free(tui);
	pm_profile_free(profile);
}

static void one_key_opens_only_so_much(void **state)
{
	struct pm_profile *profile = broad(12000);
	struct pm_tui *tui = browser(profile, PM_SHOW_TREE);

	shows(tui, "1/12000"); /* f0 and those it calls */
	press(tui, "E");
	shows(tui, "not all of it");
	press(tui, "C");
	shows(tui, " 1/1");
	press(tui, "+");
	shows(tui, "1/12000");
	/* Half of the second level is what one key opened at most. */
	pm_tui_free(tui);
	pm_profile_free(profile);
}

static void the_selection_survives_what_changes(void **state)
{
	struct pm_profile *profile = chain(30);
	struct pm_tui *tui = browser(profile, PM_SHOW_TABLE);

	press(tui, "/f17\n");
	shows(tui, "18/30");
	/* By total the order is that of the chain, too; F changes nothing but numbers. */
	press(tui, "s");
	shows(tui, "18/30");
	press(tui, "F");
	shows(tui, "18/30");
	press(tui, "h");
	shows(tui, "Moving");
	press(tui, "q");
	shows(tui, "18/30");
	/* Above the limit are those that have ten or more of 30 samples below them. */
	press(tui, "L");
	assert_int_equal(pm_tui_press(tui, PM_TUI_BACKSPACE), 1);
	press(tui, "33\n");
	shows(tui, "/21, 9 below 33%");
	shows(tui, "18/21");
	pm_tui_free(tui);
	pm_profile_free(profile);
}

static void any_size_can_be_drawn(void **state)
{
	static const char keys[] = "123456781h";
	struct pm_profile *profile = chain(40);
	struct pm_tui *tui = browser(profile, PM_SHOW_TABLE);

	for (const char *key = keys; *key; key++) {
		assert_int_equal(pm_tui_press(tui, (unsigned char)*key), 1);
		for (unsigned columns = 1; columns <= 130; columns += 3) {
			for (unsigned rows = 1; rows <= 60; rows += 7) {
				pm_tui_resize(tui, rows, columns);
				screen(tui);
			}
		}
	}
	pm_tui_resize(tui, PM_TUI_ROWS_MIN, PM_TUI_COLUMNS_MIN);
	shows(tui, "keys");
	pm_tui_resize(tui, PM_TUI_ROWS_MIN - 1, PM_TUI_COLUMNS_MIN);
	shows(tui, "is too small");
	pm_tui_free(tui);
	pm_profile_free(profile);
}

/* A cat on the keyboard, always the same one: no key leads to what cannot be drawn. */
static void any_keys_can_be_pressed(void **state)
{
	static const uint32_t special[] = {
		PM_TUI_UP,        PM_TUI_DOWN, PM_TUI_LEFT, PM_TUI_RIGHT,  PM_TUI_PAGE_UP,
		PM_TUI_PAGE_DOWN, PM_TUI_HOME, PM_TUI_END,  PM_TUI_ESCAPE, PM_TUI_ENTER,
		PM_TUI_BACK_TAB,  PM_TUI_F1,   PM_TUI_TAB,  0x20ac,        0x10ffff,
	};
	struct pm_profile *profile = broad(60);
	struct pm_tui *tui = browser(profile, PM_SHOW_TABLE);
	uint64_t random = 5;
	unsigned ends = 0;

	for (unsigned i = 0; i < 20000; i++) {
		uint32_t key;
		int r;

		random = random * 6364136223846793005u + 1442695040888963407u;
		key = (uint32_t)(random >> 40);
		key = key % 3 == 0 ? special[key / 3 % PM_ARRAY_LEN(special)]
				   : 0x20 + key / 3 % 0x5f;
		/* It would write files. */
		if (key == 'P')
			continue;
		r = pm_tui_press(tui, key);
		assert_true(r >= 0);
		ends += r == 0;
		if (i % 16 == 0)
			screen(tui);
		if (r == 0) {
			pm_tui_free(tui);
			tui = browser(profile, i % 2 ? PM_SHOW_BOTTOM_UP : PM_SHOW_TREE);
		}
	}
	assert_true(ends > 10);
	pm_tui_free(tui);
	pm_profile_free(profile);
}

static void what_cannot_be_shown_is_told(void **state)
{
	struct pm_profile *profile = chain(3);
	struct pm_filter filter = { .comm = "nobody" };
	struct pm_report report = {
		.profile = profile,
		.filter = &filter,
		.event = PM_PROFILE_NONE,
		.limit = PM_LIMIT_DEFAULT,
	};
	struct pm_error err = { 0 };
	struct pm_tui *tui = NULL;

	assert_int_equal(pm_tui_new(&tui, &report, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nobody"));
	report.filter = NULL;
	report.show = PM_SHOW_CALLERS;
	report.function = "nothing_like_that";
	assert_int_equal(pm_tui_new(&tui, &report, &err), -ENOENT);
	assert_null(tui);
	tui = browser(profile, PM_SHOW_TABLE);
	press(tui, "k");
	shows(tui, "no sample of this recording is in the kernel");
	shows(tui, " 3 samples");
	pm_tui_free(tui);
	pm_profile_free(profile);
}

/* Some lines cannot become the first one of the screen; from them it goes on all the same. */
static void a_text_is_searched_all_around(void **state)
{
	struct pm_profile *profile = chain(3);
	struct pm_tui *tui = browser(profile, PM_SHOW_TABLE);

	press(tui, "h/PgUp\n");
	shows(tui, "Up, Down, PgUp");
	press(tui, "/this list\n");
	shows(tui, "this list");
	assert_null(strstr(screen(tui), "What to show"));
	press(tui, "/list|What to\n");
	shows(tui, "from the beginning again");
	shows(tui, "What to show");
	press(tui, "n");
	shows(tui, "this list");
	press(tui, "N");
	shows(tui, "What to show");
	pm_tui_free(tui);
	pm_profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deep_stack_opens_and_closes),
		cmocka_unit_test(one_key_opens_only_so_much),
		cmocka_unit_test(the_selection_survives_what_changes),
		cmocka_unit_test(any_size_can_be_drawn),
		cmocka_unit_test(any_keys_can_be_pressed),
		cmocka_unit_test(what_cannot_be_shown_is_told),
		cmocka_unit_test(a_text_is_searched_all_around),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * A flame graph as one SVG file. Widths are percentages, so the graph fits any window.
 * Each box is an svg element, which clips its name at its edge. The script is optional.
 */
#include "html-internal.h"
#include "page.h"

#include <math.h>
#include <string.h>

enum {
	ROW = 16, /* pixels */
	HEAD = 76, /* height of title, event, legend and controls */
	FOOT = 28,
	WIDTH = 1200, /* assumed width, to find boxes that are too narrow */
	SHADES = 6, /* shades of each kind, of more, and of less */
	LETTERS = 8, /* letters of a name per percent of the width */
	NAME_BYTES = 1024, /* limit of a name, which may be in very many boxes */
	/* Limit of all boxes together. Browsers are already slow with a fifth of that. If
	 * it is exceeded, the boxes farthest from the first row are left out. */
	BOXES_BYTES_MAX = 64 << 20,
};
#define LEAST_PIXELS  0.1
#define NAMED_PERCENT 0.5 /* a narrower box has no room for letters */
#define EQUAL_POINTS  0.005 /* a smaller difference would be shown as +0.00 */
#define EQUAL_PART    0.02 /* of both shares together; also the page's limit (ui.js) */

struct svg {
	const struct pm_report *report;
	struct pm_merged merged;
	struct pm_flame flame;
	uint32_t event;
	const struct pm_view *view;
	double whole, base_whole; /* period */
	double most_points; /* the largest difference */
	struct pm_str *out;
	FILE *to;
	uint32_t rows; /* rows that are drawn */
	size_t too_deep; /* boxes of the rows that are not drawn */
};

static const struct {
	const char *name, *label;
	unsigned hue, hue_step, saturation, lightness;
} kinds[] = {
	[PM_FLAME_USER] = { "user", "program", 12, 7, 92, 70 },
	[PM_FLAME_KERNEL] = { "kernel", "kernel", 262, 6, 70, 80 },
	[PM_FLAME_GENERATED] = { "generated", "generated code", 130, 6, 45, 68 },
	[PM_FLAME_UNKNOWN] = { "unknown", "without a name", 40, 0, 4, 72 },
	{ "inlined", "inlined", 58, 4, 75, 72 },
};

enum {
	KIND_INLINED = PM_FLAME_UNKNOWN + 1,
};

static double percent_of_whole(double part, double whole)
{
	if (whole > 0)
		return 100 * part / whole;
	return 0;
}

static double node_points(const struct svg *svg, const struct pm_flame_node *node)
{
	return percent_of_whole((double)node->total.period, svg->whole) -
	       percent_of_whole((double)node->base_total.period, svg->base_whole);
}

/* Whether the difference is larger than is usual between two recordings of the same
 * program. */
static bool node_differs(const struct svg *svg, const struct pm_flame_node *node)
{
	double both = percent_of_whole((double)node->total.period, svg->whole) +
		      percent_of_whole((double)node->base_total.period, svg->base_whole);

	return fabs(node_points(svg, node)) >= fmax(EQUAL_POINTS, EQUAL_PART * both);
}

/* ---- the frame ---------------------------------------------------------------------------- */

static void svg_put_style(struct svg *svg)
{
	pm_str_puts(svg->out,
		    "<style>\n"
		    "text { font: 12px sans-serif; fill: #1c1a17; white-space: pre }\n"
		    "#frames text { pointer-events: none }\n"
		    "#frames svg { cursor: pointer }\n"
		    "#frames rect { stroke: #fff; stroke-width: .5 }\n"
		    "#frames svg:hover > rect { stroke: #000; stroke-width: 2 }\n"
		    ".above { opacity: .55 }\n"
		    ".searching #frames svg:not(.hit) > rect { fill: #e6e4df }\n"
		    ".searching #frames svg.hit > rect { fill: #c2185b }\n"
		    ".searching #frames svg.hit > text { fill: #fff }\n"
		    "#reset { cursor: pointer; text-decoration: underline }\n"
		    "input[aria-invalid=true] { outline: 2px solid #b3261e }\n");
	if (!svg->report->base) {
		for (size_t i = 0; i < PM_ARRAY_LEN(kinds); i++)
			for (unsigned shade = 0; shade < SHADES; shade++)
				pm_str_printf(svg->out,
					      ".%s%u { fill: hsl(%u,%u%%,%u%%) }\n",
					      kinds[i].name, shade,
					      kinds[i].hue + shade * kinds[i].hue_step,
					      kinds[i].saturation,
					      kinds[i].lightness + shade % 3 * 3);
	} else {
		/* Nearly everybody can distinguish blue and orange; everybody can read
		 * the sign. */
		for (unsigned shade = 0; shade < SHADES; shade++) {
			pm_str_printf(svg->out, ".more%u { fill: hsl(28,95%%,%u%%) }\n",
				      shade, 90 - shade * 6);
			pm_str_printf(svg->out, ".less%u { fill: hsl(211,85%%,%u%%) }\n",
				      shade, 92 - shade * 5);
		}
		pm_str_puts(svg->out, ".same { fill: #eceae6 }\n");
	}
	pm_str_puts(svg->out, "</style>\n");
}

static void put_swatch(struct svg *svg, unsigned *x, const char *class, const char *label)
{
	pm_str_printf(svg->out,
		      "<rect x=\"%u\" y=\"44\" width=\"12\" height=\"12\" class=\"%s\"/>"
		      "<text x=\"%u\" y=\"54\">%s</text>\n",
		      *x, class, *x + 16, label);
	*x += 36 + (unsigned)pm_columns(label) * 7;
}

static void put_legend(struct svg *svg)
{
	unsigned x = 8;

	pm_str_puts(svg->out, "<g id=\"legend\">\n");
	if (svg->report->base) {
		put_swatch(svg, &x, "less4", "− less than the base");
		put_swatch(svg, &x, "same", "as much");
		put_swatch(svg, &x, "more4", "+ more");
	}
	for (size_t i = 0; !svg->report->base && i < PM_ARRAY_LEN(kinds); i++) {
		char class[32];

		snprintf(class, sizeof(class), "%s2", kinds[i].name);
		put_swatch(svg, &x, class, kinds[i].label);
	}
	pm_str_puts(svg->out, "</g>\n");
}

static void put_begin(struct svg *svg)
{
	uint32_t height = HEAD + svg->rows * ROW + FOOT;
	struct pm_str title = { 0 };

	pm_put_title(&title, svg->report->profile);
	svg->out->failed |= title.failed;
	pm_str_printf(svg->out,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" "
		      "width=\"100%%\" height=\"%u\">\n<title>",
		      height);
	pm_put_markup(svg->out, pm_str_text(&title));
	pm_str_puts(svg->out, "</title>\n");
	svg_put_style(svg);
	pm_str_puts(svg->out, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
	pm_str_release(&title);
}

/* Written after the boxes, so that it stays above them when a browser scrolls. */
static void svg_put_head(struct svg *svg, bool inverted)
{
	const struct pm_profile *profile = svg->report->profile;
	struct pm_str title = { 0 }, event = { 0 };

	pm_put_title(&title, profile);
	pm_put_event(&event, profile, svg->event);
	svg->out->failed |= title.failed || event.failed;
	pm_str_printf(svg->out,
		      "<g id=\"head\">\n"
		      "<rect width=\"100%%\" height=\"%d\" fill=\"#fff\"/>\n"
		      "<text x=\"8\" y=\"18\" style=\"font-weight:bold\">",
		      HEAD);
	pm_put_markup(svg->out, pm_str_text(&title));
	pm_str_puts(svg->out, "</text>\n<text x=\"8\" y=\"35\">");
	pm_put_markup(svg->out, pm_str_text(&event));
	pm_str_puts(svg->out, ", ");
	pm_put_count(svg->out, svg->view->total.samples);
	pm_str_puts(svg->out, " samples");
	if (svg->report->base)
		pm_str_puts(svg->out, ", compared with a base as if both had as many");
	if (inverted)
		pm_str_puts(svg->out, "; callers below what they call");
	pm_str_puts(svg->out, "</text>\n");
	put_legend(svg);
	pm_str_puts(svg->out,
		    "<g id=\"controls\" style=\"display:none\">"
		    "<foreignObject x=\"100%\" y=\"4\" width=\"230\" height=\"26\" "
		    "transform=\"translate(-238)\">"
		    "<input xmlns=\"http://www.w3.org/1999/xhtml\" id=\"search\" "
		    "type=\"search\" placeholder=\"Search: a regular expression (/)\" "
		    "aria-label=\"Search\" style=\"width:100%;box-sizing:border-box\"/>"
		    "</foreignObject>"
		    "<text id=\"matched\" x=\"100%\" dx=\"-8\" y=\"46\" "
		    "text-anchor=\"end\"></text>"
		    "<text id=\"reset\" x=\"100%\" dx=\"-8\" y=\"64\" "
		    "text-anchor=\"end\">Reset zoom (Esc)</text></g>\n"
		    "<text id=\"details\" x=\"8\" y=\"71\"></text>\n</g>\n");
	pm_str_release(&title);
	pm_str_release(&event);
}

static void put_too_deep(struct pm_str *str, const struct svg *svg)
{
	pm_str_puts(str, "Too large for a picture: of ");
	pm_put_count(str, svg->flame.deepest + 1);
	pm_str_puts(str, " rows the last ");
	pm_put_count(str, svg->flame.deepest + 1 - svg->rows);
	pm_str_puts(str, ", with ");
	pm_put_count(str, svg->too_deep);
	pm_str_puts(str, " boxes, are left out. ");
}

static void put_foot(struct svg *svg)
{
	const struct pm_page_file *script = NULL;

	for (size_t i = 0; i < pm_page_files_len; i++)
		if (strcmp(pm_page_files[i].name, "flamegraph.svg.js") == 0)
			script = &pm_page_files[i];
	pm_str_printf(svg->out, "<text x=\"8\" y=\"%u\" id=\"left-out\">",
		      HEAD + svg->rows * ROW + FOOT - 10);
	if (svg->flame.left_out > 0) {
		pm_put_count(svg->out, svg->flame.left_out);
		if (svg->report->base)
			pm_str_puts(
				svg->out,
				" boxes narrower than 0.1 px, or only in the base, are "
				"left out. ");
		else
			pm_str_puts(svg->out,
				    " boxes narrower than 0.1 px are left out. ");
	}
	if (svg->flame.cut)
		pm_str_puts(svg->out, "The graph is too large: outer callers are left "
				      "out. ");
	if (svg->too_deep > 0)
		put_too_deep(svg->out, svg);
	pm_str_puts(svg->out, "</text>\n");
	if (script) {
		pm_str_puts(svg->out, "<script><![CDATA[\n");
		pm_str_append(svg->out, (const char *)script->bytes, script->len);
		pm_str_puts(svg->out, "]]></script>\n");
	}
	pm_str_puts(svg->out, "</svg>\n");
}

/* ---- boxes -------------------------------------------------------------------------------- */

static void append_short(struct pm_str *str, const char *text)
{
	size_t len = strnlen(text, NAME_BYTES);
	bool cut = text[len] != '\0';

	/* Do not cut within a character. */
	while (cut && len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	pm_str_append(str, text, len);
	if (cut)
		pm_str_puts(str, "…");
}

static void put_class(struct svg *svg, const struct pm_flame_node *node)
{
	const struct pm_merged_function *function;
	unsigned kind, shade;

	if (svg->report->base) {
		double more = node_points(svg, node);
		double part = 0;

		if (svg->most_points > 0)
			part = fabs(more) / svg->most_points;
		if (!node_differs(svg, node))
			pm_str_puts(svg->out, "same");
		else
			pm_str_printf(svg->out, "%s%u", more > 0 ? "more" : "less",
				      (unsigned)(part * (SHADES - 1)));
		return;
	}
	if (node->function == PM_PROFILE_NONE) {
		pm_str_puts(svg->out, "unknown1");
		return;
	}
	function = &svg->merged.functions.data[node->function];
	if (function->kind == PM_FLAME_USER && node->inlined)
		kind = KIND_INLINED;
	else
		kind = function->kind;
	shade = pm_hash_bytes(function->name, strnlen(function->name, NAME_BYTES)) %
		SHADES;
	pm_str_printf(svg->out, "%s%u", kinds[kind].name, shade);
}

static void svg_put_weight(struct svg *svg, const struct pm_weight *weight)
{
	const struct pm_profile_event *event =
		&svg->report->profile->events.data[svg->event];

	pm_str_printf(svg->out, "%.2f%%, ",
		      percent_of_whole((double)weight->period, svg->whole));
	pm_put_count(svg->out, weight->samples);
	pm_str_puts(svg->out, pm_plural(weight->samples, " sample, ", " samples, "));
	if (event->unit && strcmp(event->unit, "ns") == 0) {
		pm_put_duration(svg->out, weight->period);
		return;
	}
	pm_put_count(svg->out, weight->period);
	pm_str_putc(svg->out, ' ');
	pm_put_markup(svg->out, pm_text_or_empty(event->unit));
}

/* Writes the tooltip: the name, the module, the amount, and its change. */
static void put_title(struct svg *svg, const struct pm_flame_node *node, const char *name)
{
	pm_str_puts(svg->out, "<title>");
	pm_put_markup(svg->out, name);
	if (node->function != PM_PROFILE_NONE) {
		const struct pm_merged_function *function =
			&svg->merged.functions.data[node->function];

		if (node->inlined)
			pm_str_puts(svg->out, " (inlined)");
		if (function->module != PM_PROFILE_NONE) {
			PM_CLEANUP(pm_str_release) struct pm_str module = { 0 };

			append_short(&module,
				     svg->merged.modules.data[function->module].name);
			pm_str_puts(svg->out, "\n"
					      "in ");
			pm_put_markup(svg->out, pm_str_text(&module));
		}
	}
	pm_str_puts(svg->out, "\n");
	svg_put_weight(svg, &node->total);
	if (node->self.samples > 0)
		pm_str_printf(svg->out, "\nself %.2f%%",
			      percent_of_whole((double)node->self.period, svg->whole));
	if (svg->report->base) {
		double more = node_points(svg, node);
		const char *sign = "−";

		if (fabs(more) < EQUAL_POINTS)
			sign = "±";
		else if (more > 0)
			sign = "+";
		pm_str_printf(svg->out, "\nbase %.2f%%: %s%.2f points",
			      percent_of_whole((double)node->base_total.period,
					       svg->base_whole),
			      sign, fabs(more));
	}
	pm_str_puts(svg->out, "</title>");
}

/* Writes as many letters of the name as can be visible without zoom. */
static void svg_put_name(struct svg *svg, const struct pm_flame_node *node,
			 const char *name, double width)
{
	PM_CLEANUP(pm_str_release) struct pm_str cut = { 0 };

	if (width < NAMED_PERCENT)
		return;
	pm_put_cut(&cut, name, (size_t)(width * LETTERS), false, false);
	svg->out->failed |= cut.failed;
	pm_str_puts(svg->out, "<text x=\"3\" y=\"12\">");
	if (svg->report->base && node_differs(svg, node))
		pm_str_puts(svg->out, node_points(svg, node) > 0 ? "+ " : "− ");
	pm_put_markup(svg->out, pm_str_text(&cut));
	pm_str_puts(svg->out, "</text>");
}

static void put_box(struct svg *svg, const struct pm_flame_node *node, double start,
		    bool inverted)
{
	PM_CLEANUP(pm_str_release) struct pm_str name = { 0 };
	double width = percent_of_whole((double)node->total.period, svg->whole);
	uint32_t row = inverted ? node->depth : svg->rows - 1 - node->depth;

	if (node->function == PM_PROFILE_NONE) {
		pm_str_puts(&name, "all");
	} else {
		const struct pm_merged_function *function =
			&svg->merged.functions.data[node->function];

		append_short(&name, function->name);
		if (function->unknown && function->module != PM_PROFILE_NONE) {
			pm_str_puts(&name, " in ");
			append_short(&name,
				     svg->merged.modules.data[function->module].name);
		}
	}
	svg->out->failed |= name.failed;
	if (name.failed)
		return;
	pm_str_printf(svg->out,
		      "<svg x=\"%.4f%%\" y=\"%u\" width=\"%.4f%%\" height=\"%d\" "
		      "data-depth=\"%u\">",
		      percent_of_whole(start, svg->whole), HEAD + row * ROW, width,
		      ROW - 1, node->depth);
	put_title(svg, node, name.data);
	pm_str_puts(svg->out, "<rect width=\"100%\" height=\"100%\" class=\"");
	put_class(svg, node);
	pm_str_puts(svg->out, "\"/>");
	svg_put_name(svg, node, name.data, width);
	pm_str_puts(svg->out, "</svg>\n");
}

/* Chooses how many rows are drawn. All boxes are written once in order to measure the
 * rows. */
static int svg_choose_rows(struct svg *svg, bool inverted)
{
	const struct pm_flame *flame = &svg->flame;
	PM_CLEANUP(pm_str_release) struct pm_str box = { 0 };
	PM_AUTO_FREE size_t *boxes = calloc(flame->deepest + 1, sizeof(*boxes));
	PM_AUTO_FREE uint64_t *bytes = calloc(flame->deepest + 1, sizeof(*bytes));
	struct svg measured = *svg;
	uint64_t sum = 0;

	if (!boxes || !bytes)
		return -ENOMEM;
	measured.out = &box;
	for (size_t i = 0; i < flame->nodes.len; i++) {
		const struct pm_flame_node *node = &flame->nodes.data[i];

		put_box(&measured, node, 0, inverted);
		if (box.failed)
			return -ENOMEM;
		bytes[node->depth] += box.len;
		boxes[node->depth]++;
		pm_str_clear(&box);
	}
	for (svg->rows = 0; svg->rows <= flame->deepest; svg->rows++) {
		sum += bytes[svg->rows];
		if (svg->rows > 0 && sum > BOXES_BYTES_MAX)
			break;
	}
	for (uint32_t i = svg->rows; i <= flame->deepest; i++)
		svg->too_deep += boxes[i];
	return 0;
}

/* Writes the boxes in preorder: a node starts where the previous child of its parent
 * ended. */
static int put_boxes(struct svg *svg, bool inverted)
{
	const struct pm_flame *flame = &svg->flame;
	PM_AUTO_FREE double *edges = calloc(flame->nodes.len + 1, sizeof(*edges));

	if (!edges)
		return -ENOMEM;
	pm_str_printf(svg->out, "<g id=\"frames\"%s>\n",
		      inverted ? " data-inverted=\"\"" : "");
	for (size_t i = 0; i < flame->nodes.len; i++) {
		const struct pm_flame_node *node = &flame->nodes.data[i];
		double start = 0;

		if (i != 0)
			start = edges[node->parent];
		if (node->depth < svg->rows) {
			put_box(svg, node, start, inverted);
			pm_flush_some(svg->out, svg->to);
		}
		if (i > 0)
			edges[node->parent] = start + (double)node->total.period;
		edges[i] = start;
	}
	pm_str_puts(svg->out, "</g>\n");
	return 0;
}

/* ---- the whole document ------------------------------------------------------------------- */

static int svg_draw(struct svg *svg, const struct pm_view *view,
		    const struct pm_view *base, struct pm_error *err)
{
	bool inverted = svg->report->show == PM_SHOW_BOTTOM_UP;
	struct pm_flame_options options = {
		.inverted = inverted,
		.least = 100 * LEAST_PIXELS / WIDTH,
	};
	int ret = pm_merged_init(&svg->merged, svg->report->profile, svg->report->base,
				 err);

	if (ret == 0)
		ret = pm_flame_init(&svg->flame, &svg->merged, view, base, &options);
	if (ret < 0)
		return ret;
	svg->view = view;
	svg->rows = svg->flame.deepest + 1;
	svg->whole = (double)view->total.period;
	if (base)
		svg->base_whole = (double)base->total.period;
	else
		svg->base_whole = 0;
	for (size_t i = 0; base && i < svg->flame.nodes.len; i++) {
		double more = fabs(node_points(svg, &svg->flame.nodes.data[i]));

		svg->most_points = PM_MAX(more, svg->most_points);
	}
	ret = svg_choose_rows(svg, inverted);
	if (ret < 0)
		return ret;
	put_begin(svg);
	ret = put_boxes(svg, inverted);
	svg_put_head(svg, inverted);
	put_foot(svg);
	if (svg->too_deep > 0 && svg->report->left_out)
		put_too_deep(svg->report->left_out, svg);
	return ret;
}

static int base_section(struct pm_section *out, const struct svg *svg,
			struct pm_report *report, struct pm_error *err)
{
	uint32_t event = pm_base_event(svg->report, svg->event);
	int ret;

	*report = *svg->report;
	report->profile = svg->report->base;
	report->base = NULL;
	if (event == PM_PROFILE_NONE)
		return pm_error_set(err, -ENOENT, "the base has no event %s",
				    svg->report->profile->events.data[svg->event].actual);
	ret = pm_section_init(out, report, event, err);
	if (ret < 0)
		pm_error_where(err, "the base", -1);
	return ret;
}

int pm_output_flamegraph(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	PM_CLEANUP(pm_section_release) struct pm_section section = { 0 }, base = { 0 };
	struct pm_str out = { 0 };
	struct svg svg = { .report = report, .out = &out, .to = to };
	struct pm_report base_report;
	uint32_t end;
	int ret;

	pm_report_events(report, &svg.event, &end);
	if (svg.event == end)
		return pm_error_set(err, -ENOENT, "the recording has no event");
	ret = pm_section_init(&section, report, svg.event, err);
	if (ret == 0 && report->base)
		ret = base_section(&base, &svg, &base_report, err);
	if (ret < 0)
		return ret;
	ret = svg_draw(&svg, section.view, base.view, err);
	pm_merged_release(&svg.merged);
	pm_flame_release(&svg.flame);
	if (ret < 0) {
		pm_str_release(&out);
		if (ret == -ENOMEM)
			return pm_error_set(err, ret, "out of memory");
		return ret;
	}
	return pm_flush_all(&out, to, err);
}

/* SPDX-License-Identifier: MIT */
/* The flame graph's tab: breadcrumbs, the graph, details of a box; and parts that all
 * graphs share. */
(function (pm) {
	"use strict";

	const ui = pm.ui;
	let flame, crumbs, details, empty, cut;

	/* ---- shared by all graphs ----------------------------------------------------------- */

	function lines(graph, node) {
		const total = graph.total[0];
		const out = [
			["total", `${ui.percent(graph.total[node], total)}`],
			["self", `${ui.percent(graph.self[node], total)}`],
			["samples", ui.count(graph.samples[node])],
		];
		if (graph.baseTotal && total > 0) {
			const by = graph.total[node] - graph.baseTotal[node];
			const sign = by < 0 ? "−" : "+";
			out.push([
				"change",
				ui.data.base && ui.data.base.absolute
					? `${sign}${ui.count(Math.abs(by))} (${ui.points(by / total)} % of all)`
					: ui.points(by / total) + " points",
			]);
		}
		return out;
	}

	ui.describe = function (graph, node) {
		const fn = graph.fn[node];
		const kind = node === 0 || fn < 0 ? "" : ui.KIND_NAMES[ui.kindOf(fn, graph.inlined[node])];
		return {
			name: fn < 0 ? "all" : ui.name(fn),
			where: [ui.moduleName(fn), kind].filter(Boolean).join(" · "),
			numbers: lines(graph, node),
		};
	};

	function fill(box, graph, node) {
		const d = ui.describe(graph, node);
		box.replaceChildren(
			ui.el("b", { class: "name", text: d.name }),
			ui.el("span", { class: "where", text: d.where }),
			...d.numbers.map(([label, value]) =>
				ui.el("span", { class: "number" }, ui.el("b", { text: value }), " " + label)
			)
		);
	}

	ui.tooltip = function (graph, node, x, y) {
		const box = ui.$("tooltip");
		box.hidden = !graph;
		if (!graph) return;
		fill(box, graph, node);
		const width = box.offsetWidth;
		const height = box.offsetHeight;
		box.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 6)) + "px";
		box.style.top = (y + 20 + height > innerHeight ? y - height - 12 : y + 20) + "px";
	};

	/* The legend of colours: kinds, or the steps of a difference. */
	ui.legend = function () {
		const box = ui.el("div", { class: "legend", "aria-label": "Colours" });
		const item = (color, text) => {
			const swatch = ui.el("i");
			swatch.style.background = color;
			box.append(ui.el("span", {}, swatch, text));
		};
		if (ui.data.base)
			for (const [step, text] of [
				[-4, "− much less"],
				[-2, "− less than before"],
				[0, "as before"],
				[2, "+ more than before"],
				[4, "+ much more, or new"],
			])
				item(ui.colorOfStep(step), text);
		else
			for (const kind of [0, 4, 1, 2, 3])
				item(ui.colorOfKind(kind), ui.KIND_NAMES[kind]);
		if (ui.hits && ui.state.search) item(ui.palette().hit, "match");
		return box;
	};

	ui.hide = function (fn) {
		ui.set({ hidden: new Set([...ui.state.hidden, fn]) });
		ui.toast("Hidden: " + ui.name(fn));
	};

	/* The actions for a node of any graph; zoom is left out if there is none. */
	ui.nodeItems = function (graph, node, inverted, zoom) {
		const fn = graph.fn[node];
		const items = [];
		if (zoom) items.push(["Zoom into this", () => zoom(node)]);
		if (fn >= 0) {
			items.push(["Callers and callees", () => ui.focus(fn)]);
			if (ui.sourceOf(fn) >= 0)
				items.push([
					"Source",
					() => ui.set({ tab: "source", source: ui.sourceOf(fn) }),
				]);
			items.push(["Hide this function", () => ui.hide(fn)]);
			items.push(["Copy name", () => ui.copy(ui.name(fn), "Name")]);
			items.push([
				"Copy stack",
				() => ui.copy(ui.stackText(graph, node, inverted), "Stack"),
			]);
		}
		return items;
	};

	ui.focus = (fn) => ui.set({ tab: "sandwich", focus: fn });
	ui.sourceOf = (fn) => ui.data.sources.findIndex((s) => s.function === fn);

	/* For graphs that are too large to be complete (graph.cut): nothing is left out
	 * silently. */
	ui.cutNote = () =>
		ui.el("p", {
			class: "cut",
			role: "status",
			hidden: true,
			text: "Not all callers are shown: those of functions with the smallest shares are left out.",
		});

	/* The reason for an empty graph; empty if there is something to show. */
	ui.whyEmpty = function (graph) {
		if (graph.total[0] > 0) return "";
		if (!ui.data.cells.count) return "No sample was recorded. The tab Run has what is known of it.";
		if (ui.selection().samples > 0) return "All samples are hidden: functions were taken out.";
		return "There is no sample here: not of this event, in these threads, in this range of time.";
	};

	/* ---- the tab ------------------------------------------------------------------------ */

	const up = () => ui.state.invert === ui.state.top;
	const zoomTo = (node) => ui.set({ zoom: ui.pathOf(flame.graph, node) });

	function build(section) {
		crumbs = ui.el("nav", { class: "crumbs", "aria-label": "Path to the zoomed function" });
		details = ui.el("div", { class: "details", "aria-live": "polite" });
		flame = new ui.Flame("Flame graph", {
			up,
			zoom: zoomTo,
			select: showDetails,
			hide: ui.hide,
			menu: (node, x, y) =>
				ui.menu(x, y, ui.nodeItems(flame.graph, node, ui.state.invert, zoomTo)),
		});
		empty = ui.el("p", { class: "empty grow" });
		cut = ui.cutNote();
		section.append(
			crumbs,
			empty,
			flame.host,
			ui.el("p", {
				id: "flame-hint",
				class: "offscreen",
				text: "Arrow keys move, Enter zooms, Escape zooms out. The tab Tree has the same data as a tree.",
			}),
			cut,
			ui.el("footer", { class: "foot" }, details, ui.el("div", { id: "flame-legend" }))
		);
		ui.flame = flame;
	}

	function showCrumbs(graph, zoomed) {
		const nodes = [];
		for (let n = zoomed; n >= 0; n = graph.parent[n]) nodes.push(n);
		nodes.reverse();
		/* Deep paths: the first two and the last six are enough to find the way back. */
		const cut = nodes.length > 9 ? nodes.length - 6 : 2;
		crumbs.replaceChildren();
		nodes.forEach((node, i) => {
			if (i >= 2 && i < cut) {
				if (i === 2) crumbs.append(ui.el("span", { text: `… ${cut - 2} …` }));
				return;
			}
			const last = i === nodes.length - 1;
			crumbs.append(
				ui.el("button", {
					type: "button",
					class: "crumb",
					text: node === 0 ? "all" : pm.shorten(ui.name(graph.fn[node]), 33),
					title: ui.name(graph.fn[node]),
					"aria-current": last ? "true" : null,
					onclick: () => {
						zoomTo(node);
						flame.select(node);
					},
				})
			);
		});
		crumbs.scrollLeft = crumbs.scrollWidth;
	}

	function showDetails(node) {
		if (!flame.graph) return;
		fill(details, flame.graph, node >= 0 ? node : flame.zoomed);
	}

	function update() {
		const graph = ui.graph();
		const zoomed = ui.nodeAt(graph, ui.state.zoom);
		flame.set(graph, zoomed, ui.hits(graph));
		empty.hidden = graph.total[0] > 0;
		flame.host.hidden = !empty.hidden;
		empty.textContent = ui.whyEmpty(graph);
		showCrumbs(graph, zoomed);
		showDetails(flame.selected);
		ui.$("flame-legend").replaceChildren(ui.legend());
		cut.hidden = !graph.cut;
	}

	/* Goes to the next (1) or previous (-1) match of the search. */
	function match(direction) {
		const graph = flame.graph;
		const hits = ui.hits(graph);
		if (!hits) return;
		const from = flame.selected >= 0 ? flame.selected : flame.zoomed;
		for (let k = 1; k <= graph.count; k++) {
			const n = (((from + direction * k) % graph.count) + graph.count) % graph.count;
			if (!hits.hit[n] || !(graph.total[n] > 0)) continue;
			const end = ui.ends(graph)[flame.zoomed];
			const small = graph.total[n] / graph.total[flame.zoomed] < 0.004;
			if (n < flame.zoomed || n >= end || small)
				ui.set({ zoom: ui.pathOf(graph, small ? graph.parent[n] : 0) }, true);
			flame.select(n);
			return;
		}
	}

	ui.views.flame = {
		build,
		update,
		match,
		legend: true,
		focus: () => flame.host.focus({ preventScroll: true }),
	};
})(pm);

/* SPDX-License-Identifier: MIT */
/* The run: what was recorded, the quality of the data, and related details. */
(function (pm) {
	"use strict";

	const ui = pm.ui;
	const MANY = 200;
	const SIGNS = { good: "✓", warn: "!", bad: "✗" };
	const WORDS = { good: "good", warn: "caution", bad: "problem" };
	const RANK = { good: 0, warn: 1, bad: 2 };

	/* Unknown levels, written by other versions, count as warnings. */
	const level = (q) => (q.level in RANK ? q.level : "warn");

	function worst(list) {
		return list.reduce((w, q) => (RANK[level(q)] > RANK[w] ? level(q) : w), "good");
	}

	ui.badge = function () {
		const list = [...ui.data.quality, ...(ui.data.base ? ui.data.base.quality : [])];
		const n = list.filter((q) => level(q) !== "good").length;
		const badge = ui.$("quality");
		const w = worst(list);
		badge.hidden = false;
		badge.classList.add(w);
		badge.textContent = n
			? `${SIGNS[w]} ${n} ${n === 1 ? "note" : "notes"} on data quality`
			: `${SIGNS.good} data quality`;
		badge.title = list.map((q) => q.text).join("\n") || "Nothing was lost, cut off or unknown";
		badge.addEventListener("click", () => ui.set({ tab: "run" }));
	};

	function quality(list) {
		if (!list.length)
			return ui.el("p", { class: "q good", text: "✓ Nothing was lost, cut off or substituted." });
		return ui.el(
			"ul",
			{ class: "quality" },
			...list.map((q) =>
				ui.el(
					"li",
					{ class: "q " + level(q) },
					ui.el("b", { "aria-hidden": "true", text: SIGNS[level(q)] + " " }),
					ui.el("span", { class: "offscreen", text: WORDS[level(q)] + ": " }),
					q.text
				)
			)
		);
	}

	function facts(summary) {
		return ui.el(
			"dl",
			{},
			...summary.flatMap(([label, value]) => [
				ui.el("dt", { text: label }),
				ui.el("dd", { text: value }),
			])
		);
	}

	function grid(caption, heads, rows) {
		const shown = rows.slice(0, MANY);
		return ui.el(
			"section",
			{ class: "card wide" },
			ui.el("h2", { text: caption }),
			ui.el(
				"div",
				{ class: "scroll-x" },
				ui.el(
					"table",
					{ class: "plain" },
					ui.el(
						"thead",
						{},
						ui.el("tr", {}, ...heads.map((h) => ui.el("th", { scope: "col", text: h })))
					),
					ui.el(
						"tbody",
						{},
						...shown.map((r) =>
							ui.el("tr", {}, ...r.map((v) => ui.el("td", { text: v === null ? "unknown" : String(v) })))
						)
					)
				)
			),
			rows.length > MANY
				? ui.el("p", { class: "muted", text: `… ${ui.count(rows.length - MANY)} more` })
				: null
		);
	}

	function card(title, ...children) {
		return ui.el("section", { class: "card" }, ui.el("h2", { text: title }), ...children);
	}

	let host;

	function build(section) {
		const d = ui.data;
		const samples = new Map();
		const c = d.cells;
		for (let i = 0; i < c.count; i++)
			samples.set(c.thread[i], (samples.get(c.thread[i]) || 0) + c.samples[i]);
		const threads = d.threads
			.map((t, i) => [t.comm || "?", t.pid ?? "?", t.tid ?? "?", samples.get(i) || 0])
			.sort((a, b) => b[3] - a[3])
			.map((r) => [r[0], r[1], r[2], ui.count(r[3])]);
		host = ui.el("div", { class: "scroll cards", tabindex: "0", role: "region", "aria-label": "Run" });
		host.append(
			card("Data quality", quality(d.quality)),
			card("Run", facts(d.summary))
		);
		if (d.base)
			host.append(
				card("Compared with: " + d.base.title, facts(d.base.summary)),
				card("Data quality of the compared run", quality(d.base.quality))
			);
		host.append(
			grid(
				"Events",
				["Event", "Requested", "Samples", "Sum", "Unit", "Lost"],
				d.events.map((e) => [
					e.name,
					e.requested ?? e.name,
					ui.count(e.samples),
					ui.count(e.period),
					e.unit || "",
					e.lost === null || e.lost === undefined ? null : ui.count(e.lost),
				])
			),
			grid("Threads", ["Name", "Process", "Thread", "Samples"], threads),
			grid(
				"Modules",
				["Module", "Path", "Build id", "Kind"],
				d.modules.map((m) => [m.name, m.path, m.build_id, m.kind])
			)
		);
		section.append(host);
	}

	ui.views.run = { build, update() {}, focus: () => host.focus({ preventScroll: true }) };
})(pm);

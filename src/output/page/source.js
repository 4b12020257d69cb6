/* SPDX-License-Identifier: MIT */
/* Source lines of hot functions, with their samples. */
(function (pm) {
	"use strict";

	const ui = pm.ui;
	let list, code, title, note;

	/* Sums of one event by line: line → [self samples, self, total samples, total] */
	function weights(source) {
		const sums = new Map();
		for (const w of source.weights)
			if (w[0] === ui.state.event) sums.set(w[1], w.slice(2));
		return sums;
	}

	function build(section) {
		title = ui.el("h2");
		note = ui.el("p", { class: "muted" });
		code = ui.el("table", { class: "code" });
		list = ui.el("nav", { class: "sources", "aria-label": "Functions with source" });
		if (!ui.data.sources.length) {
			section.append(
				ui.el("p", {
					class: "empty",
					text: "No source is in this page: none of the hot functions' files could be read, or may be passed on, when it was made.",
				})
			);
			return;
		}
		section.append(
			ui.el(
				"div",
				{ class: "split" },
				list,
				ui.el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Source" }, title, note, code)
			)
		);
	}

	function showList(current) {
		const t = ui.table();
		const all = ui.selection().total;
		const room = list.clientWidth - 90;
		const share = new Map();
		t.fn.forEach((fn, i) => share.set(fn, t.self[i]));
		list.replaceChildren(
			...ui.data.sources
				.map((s, i) => [s, i, share.get(s.function) || 0])
				.sort((a, b) => b[2] - a[2])
				.map(([s, i, self]) =>
					ui.el(
						"button",
						{
							type: "button",
							"aria-current": i === current ? "true" : null,
							"aria-label": `${ui.name(s.function)}, ${ui.percent(self, all)} self`,
							"data-keep": "source-" + i,
							title: ui.name(s.function),
							onclick: () => ui.set({ source: i }),
						},
						ui.el("span", { class: "name", text: ui.short(s.function, room) }),
						ui.el("span", { class: "number", text: ui.percent(self, all) })
					)
				)
		);
	}

	function heat(td, share) {
		if (!(share > 0)) return td;
		const bar = ui.el("i", { class: "bar" });
		bar.style.width = Math.min(100, 100 * share) + "%";
		td.append(bar);
		return td;
	}

	function update() {
		const sources = ui.data.sources;
		if (!sources.length) return;
		let current = ui.state.source;
		if (current === null) {
			const t = ui.table();
			let best = -1;
			sources.forEach((s, i) => {
				const place = t.fn.indexOf(s.function);
				if (place >= 0 && t.self[place] > best) {
					best = t.self[place];
					current = i;
				}
			});
			if (current === null) current = 0;
		}
		const source = sources[current];
		const sums = weights(source);
		const all = ui.data.events[ui.state.event]?.period || 0;
		showList(current);
		title.textContent = ui.name(source.function);
		note.replaceChildren(
			`${source.file}:${source.first}`,
			source.note ? ui.el("b", { class: "warn", text: " " + source.note }) : "",
			ui.state.threads || ui.state.from !== null
				? ui.el("b", { text: " Shares are of the whole run: threads and ranges do not filter lines." })
				: ""
		);
		let hottest = null;
		let most = 0;
		const rows = source.lines.map((text, i) => {
			const number = source.first + i;
			const w = sums.get(number);
			const tr = ui.el(
				"tr",
				{ class: w ? "sampled" : null },
				heat(ui.el("td", { class: "number", text: w && w[1] ? ui.percent(w[1], all) : "" }), w ? w[1] / all : 0),
				ui.el("td", { class: "number", text: w && w[3] ? ui.percent(w[3], all) : "" }),
				ui.el("td", { class: "number muted", text: String(number) }),
				ui.el("td", { class: "text", text })
			);
			if (w && w[1] > most) {
				most = w[1];
				hottest = tr;
			}
			return tr;
		});
		hottest?.classList.add("hottest");
		code.replaceChildren(
			ui.el(
				"thead",
				{},
				ui.el(
					"tr",
					{},
					ui.el("th", { scope: "col", text: "Self" }),
					ui.el("th", { scope: "col", text: "Total" }),
					ui.el("th", { scope: "col", text: "Line" }),
					ui.el("th", { scope: "col", text: "Source" })
				)
			),
			ui.el("tbody", {}, ...rows)
		);
		hottest?.scrollIntoView({ block: "center" });
	}

	ui.views.source = { build, update, focus: () => list.querySelector("[aria-current]")?.focus() };
})(pm);

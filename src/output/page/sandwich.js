/* SPDX-License-Identifier: MIT */
/* Callers and callees of one function, as two graphs that meet in it. */
(function (pm) {
	"use strict";

	const ui = pm.ui;
	const SHOWN = 30;
	let input, options, callers, callees, note, empty, pair, cut;
	let choice = -1;

	function half(label, up, inverted) {
		const state = { zoom: 0 };
		const zoom = (node) => {
			state.zoom = node;
			flame.set(flame.graph, node, ui.hits(flame.graph));
		};
		const flame = new ui.Flame(label, {
			up: () => up,
			zoom,
			select: (node) => node >= 0 && show(flame.graph, node),
			hide: ui.hide,
			skip: 1,
			menu: (node, x, y) => ui.menu(x, y, ui.nodeItems(flame.graph, node, inverted, zoom)),
		});
		return flame;
	}

	function show(graph, node) {
		const d = ui.describe(graph, node);
		note.textContent = [d.name, d.where, ...d.numbers.map(([k, v]) => v + " " + k)]
			.filter(Boolean)
			.join("   ");
	}

	/* ---- the choice of a function ------------------------------------------------------- */

	function candidates() {
		const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
		const t = ui.table();
		const order = ui.tableOrder();
		const found = [];
		for (const i of order) {
			const name = ui.name(t.fn[i]).toLowerCase();
			if (words.every((w) => name.includes(w))) found.push(i);
			if (found.length === SHOWN) break;
		}
		return found;
	}

	ui.tableOrder = function () {
		const t = ui.table();
		if (!t.pmOrder)
			t.pmOrder = Uint32Array.from(t.fn.keys()).sort((a, b) => t.total[b] - t.total[a]);
		return t.pmOrder;
	};

	function list() {
		const t = ui.table();
		const all = ui.selection().total;
		const found = candidates();
		const room = input.clientWidth - 90;
		choice = -1;
		options.replaceChildren(
			...found.map((i, k) =>
				ui.el(
					"li",
					{
						role: "option",
						id: "choice-" + k,
						"aria-selected": "false",
						onpointerdown: (e) => {
							e.preventDefault();
							pick(t.fn[i]);
						},
					},
					ui.el("span", { class: "name", text: ui.short(t.fn[i], room), title: ui.name(t.fn[i]) }),
					ui.el("span", { class: "muted", text: ui.percent(t.total[i], all) })
				)
			)
		);
		options.hidden = found.length === 0;
		input.setAttribute("aria-expanded", String(!options.hidden));
		options.fns = found.map((i) => t.fn[i]);
	}

	function pick(fn) {
		close();
		ui.set({ focus: fn });
		callees.host.focus({ preventScroll: true });
	}

	function close() {
		options.hidden = true;
		input.setAttribute("aria-expanded", "false");
		input.removeAttribute("aria-activedescendant");
	}

	function key(e) {
		if (e.key === "Escape") close();
		else if (e.key === "Enter" && options.fns?.length) pick(options.fns[Math.max(0, choice)]);
		else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
			if (options.hidden) list();
			const n = options.children.length;
			if (!n) return;
			if (e.key === "ArrowDown") choice = (choice + 1) % n;
			else choice = choice > 0 ? choice - 1 : n - 1;
			[...options.children].forEach((li, i) =>
				li.setAttribute("aria-selected", String(i === choice))
			);
			options.children[choice].scrollIntoView({ block: "nearest" });
			input.setAttribute("aria-activedescendant", "choice-" + choice);
		} else return;
		e.preventDefault();
		e.stopPropagation();
	}

	function build(section) {
		input = ui.el("input", {
			type: "text",
			id: "focus",
			role: "combobox",
			"aria-expanded": "false",
			"aria-controls": "focus-list",
			"aria-autocomplete": "list",
			"aria-label": "Function to look at",
			placeholder: "Function …",
			spellcheck: "false",
			autocomplete: "off",
			oninput: list,
			onfocus: () => {
				input.select();
				list();
			},
			onblur: close,
			onkeydown: key,
		});
		options = ui.el("ul", { id: "focus-list", role: "listbox", "aria-label": "Functions", hidden: true });
		note = ui.el("div", { class: "details", "aria-live": "polite" });
		cut = ui.cutNote();
		callers = half("Callers", true, true);
		callees = half("Callees", false, false);
		empty = ui.el("p", { class: "empty", text: "No function is chosen, or none has samples here." });
		pair = ui.el(
			"div",
			{ class: "pair" },
			ui.el("h2", { text: "Callers ↑" }),
			callers.host,
			ui.el("h2", { text: "Callees ↓" }),
			callees.host
		);
		section.append(
			ui.el("div", { class: "row viewbar" }, ui.el("div", { class: "combo" }, input, options), ui.el("span", { id: "focus-share", class: "muted" })),
			empty,
			pair,
			cut,
			ui.el("footer", { class: "foot" }, note)
		);
		ui.sandwichFlames = { callers, callees };
	}

	function update() {
		const t = ui.table();
		if (ui.state.focus === null && t.fn.length) {
			/* Start with the function of the largest self weight. */
			let best = 0;
			for (let i = 1; i < t.fn.length; i++) if (t.self[i] > t.self[best]) best = i;
			ui.state.focus = t.fn[best];
		}
		const fn = ui.state.focus;
		const place = fn === null ? -1 : t.fn.indexOf(fn);
		pair.hidden = place < 0;
		cut.hidden = true;
		empty.hidden = place >= 0;
		if (document.activeElement !== input) input.value = fn === null ? "" : ui.name(fn);
		if (place < 0) {
			ui.$("focus-share").textContent = "";
			note.textContent = "";
			return;
		}
		const all = ui.selection().total;
		ui.$("focus-share").textContent =
			`${ui.percent(t.total[place], all)} total, ${ui.percent(t.self[place], all)} self` +
			` · ${ui.moduleName(fn) || "unknown module"}. Shares below are of its total.`;
		const { callers: a, callees: b } = ui.sandwich(fn);
		/* The upper half is as high as its levels need, up to half of the
		 * space. */
		const rows = (g) => Math.min(24, g.levels.length - 1) * ui.FLAME_ROW + 2;
		callers.host.style.flexBasis = rows(a) + "px";
		callees.host.style.flexBasis = rows(b) + "px";
		callers.set(a, callers.graph === a ? callers.zoomed : 0, ui.hits(a));
		callees.set(b, callees.graph === b ? callees.zoomed : 0, ui.hits(b));
		note.textContent = "";
		cut.hidden = !a.cut;
	}

	ui.views.sandwich = { build, update, focus: () => callees.host.focus({ preventScroll: true }) };
})(pm);

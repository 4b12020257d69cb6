/* SPDX-License-Identifier: MIT */
/* The table of functions: sortable, filterable; only the visible rows exist in the
 * document. */
(function (pm) {
	"use strict";

	const ui = pm.ui;
	const ROW = 24;
	const EXTRA = 12;
	const COLUMNS = [
		["self", "Self", "Share of samples taken in the function itself"],
		["dself", "Δ self", "Change of the self share, in percentage points"],
		["total", "Total", "Share of samples with the function anywhere in the stack"],
		["dtotal", "Δ total", "Change of the total share, in percentage points"],
		["name", "Function", ""],
		["module", "Module", ""],
	];

	let host, table, body, above, below, head, note, filterBox;
	let rows = null; /* the shown rows: indices into the joined table, in order */
	let joined = null; /* columns of both runs by function */
	let current = 0;
	let first = -1;
	let last = -1;

	const columns = () => COLUMNS.filter((c) => ui.data.base || !c[0].startsWith("d"));

	/* Both runs side by side: a function may be in only one of them. */
	function join() {
		const now = ui.table();
		const base = ui.baseTable();
		if (joined && joined.now === now && joined.base === base) return joined;
		const all = ui.selection().total;
		const baseAll = !base ? 0 : ui.data.base.absolute ? all : ui.baseSelection().total;
		const index = new Map();
		const fn = Array.from(now.fn);
		fn.forEach((f, i) => index.set(f, i));
		if (base)
			for (const f of base.fn)
				if (!index.has(f)) {
					index.set(f, fn.length);
					fn.push(f);
				}
		const j = { now, base, fn, self: [], total: [], samples: [], dself: [], dtotal: [] };
		const share = (value, sum) => (sum > 0 ? value / sum : 0);
		for (let i = 0; i < fn.length; i++) {
			const here = i < now.fn.length;
			j.self.push(here ? share(now.self[i], all) : 0);
			j.total.push(here ? share(now.total[i], all) : 0);
			j.samples.push(here ? now.selfSamples[i] : 0);
			j.dself.push(base ? j.self[i] : 0);
			j.dtotal.push(base ? j.total[i] : 0);
		}
		if (base)
			base.fn.forEach((f, i) => {
				const k = index.get(f);
				j.dself[k] -= share(base.self[i], baseAll);
				j.dtotal[k] -= share(base.total[i], baseAll);
			});
		return (joined = j);
	}

	function order(j) {
		const key = ui.state.sort.slice(1);
		const sign = ui.state.sort[0] === "-" ? -1 : 1;
		const names = ui.data.functions.name;
		const byName = (a, b) => (names[j.fn[a]] < names[j.fn[b]] ? -1 : names[j.fn[a]] > names[j.fn[b]] ? 1 : 0);
		if (key === "name") return (a, b) => sign * byName(a, b);
		if (key === "module")
			return (a, b) => {
				const x = ui.moduleName(j.fn[a]);
				const y = ui.moduleName(j.fn[b]);
				return x < y ? -sign : x > y ? sign : byName(a, b);
			};
		const v = j[key];
		/* Differences of both signs matter: descending means the largest absolute
		 * value first. */
		if (key[0] === "d" && sign < 0)
			return (a, b) => Math.abs(v[b]) - Math.abs(v[a]) || byName(a, b);
		return (a, b) => sign * (v[a] - v[b]) || j.total[b] - j.total[a] || byName(a, b);
	}

	function choose(j) {
		const words = ui.state.filter.toLowerCase().split(/\s+/).filter(Boolean);
		const found = ui.search();
		rows = [];
		for (let i = 0; i < j.fn.length; i++) {
			if (found && found.match && !found.match[j.fn[i]]) continue;
			if (words.length) {
				const text = (ui.name(j.fn[i]) + " " + ui.moduleName(j.fn[i])).toLowerCase();
				if (!words.every((w) => text.includes(w))) continue;
			}
			rows.push(i);
		}
		rows.sort(order(j));
	}

	function sortBy(key) {
		const now = ui.state.sort;
		const text = key === "name" || key === "module";
		const same = now.slice(1) === key;
		const sign = same ? (now[0] === "-" ? "+" : "-") : text ? "+" : "-";
		ui.set({ sort: sign + key }, true);
	}

	function header() {
		head.replaceChildren(
			...columns().map(([key, label, title]) => {
				const on = ui.state.sort.slice(1) === key;
				const down = ui.state.sort[0] === "-";
				return ui.el(
					"th",
					{
						scope: "col",
						class: "c-" + key,
						"aria-sort": on ? (down ? "descending" : "ascending") : "none",
					},
					ui.el("button", {
						type: "button",
						title,
						text: label + (on ? (down ? " ↓" : " ↑") : ""),
						onclick: () => {
							sortBy(key);
							head.querySelector(`.c-${key} button`).focus();
						},
					})
				);
			})
		);
	}

	function build(section) {
		filterBox = ui.el("input", {
			type: "search",
			id: "table-filter",
			placeholder: "Filter by name or module",
			"aria-label": "Filter functions by name or module",
			spellcheck: "false",
			autocomplete: "off",
			oninput: () => ui.set({ filter: filterBox.value }, true),
		});
		note = ui.el("span", { class: "muted", role: "status" });
		head = ui.el("tr");
		above = ui.el("tbody", { "aria-hidden": "true" }, ui.el("tr", {}, ui.el("td", { colspan: String(columns().length) })));
		body = ui.el("tbody");
		below = above.cloneNode(true);
		/* The current row is identified by its id: it can be created again
		 * without losing the focus. */
		table = ui.el("table", { class: "functions", role: "grid", tabindex: "0", "aria-label": "Functions" }, ui.el("thead", {}, head), above, body, below);
		table.classList.toggle("diff", !!ui.data.base);
		host = ui.el("div", { class: "table-host" }, table);
		host.addEventListener("scroll", () => requestAnimationFrame(window_), { passive: true });
		table.addEventListener("keydown", key);
		new ResizeObserver(() => {
			first = -1;
			window_();
		}).observe(host);
		section.append(ui.el("div", { class: "row viewbar" }, filterBox, note), host);
		ui.functionTable = { rows: () => rows.map((i) => joined.fn[i]) };
	}

	function cell(row, key, text, share) {
		const td = ui.el("td", { class: "c-" + key, text });
		if (share > 0) {
			const bar = ui.el("i", { class: "bar" });
			bar.style.width = `calc(${Math.min(1, share)} * (100% - 24px))`;
			td.append(bar);
		}
		row.append(td);
		return td;
	}

	function delta(row, key, value) {
		const td = cell(row, key, ui.points(value), 0);
		td.classList.add(value > 0.00005 ? "more" : value < -0.00005 ? "less" : "same");
	}

	function row(place, room) {
		const j = joined;
		const i = rows[place];
		const fn = j.fn[i];
		const tr = ui.el("tr", {
			id: "row-" + place,
			"aria-rowindex": String(place + 2),
			"aria-selected": place === current ? "true" : "false",
			title: ui.count(j.samples[i]) + " samples in it",
			onclick: () => go(place),
			ondblclick: () => ui.focus(fn),
			oncontextmenu: (e) => {
				e.preventDefault();
				go(place);
				menu(fn, e.clientX, e.clientY);
			},
		});
		cell(tr, "self", ui.percent(j.self[i], 1), j.self[i]);
		if (j.base) delta(tr, "dself", j.dself[i]);
		cell(tr, "total", ui.percent(j.total[i], 1), j.total[i]);
		if (j.base) delta(tr, "dtotal", j.dtotal[i]);
		const name = cell(tr, "name", "", 0);
		const dot = ui.el("i", { class: "dot", title: ui.KIND_NAMES[ui.kindOf(fn, false)] });
		dot.style.background = ui.colorOfKind(ui.kindOf(fn, false));
		name.append(dot, ui.el("span", { text: ui.short(fn, room), title: ui.name(fn) }));
		cell(tr, "module", ui.moduleName(fn), 0).title = ui.moduleName(fn);
		return tr;
	}

	function menu(fn, x, y) {
		const items = [
			["Callers and callees", () => ui.focus(fn)],
			["Find in the flame graph", () => find(fn)],
		];
		if (ui.sourceOf(fn) >= 0)
			items.push(["Source", () => ui.set({ tab: "source", source: ui.sourceOf(fn) })]);
		items.push(["Hide in graphs", () => ui.hide(fn)]);
		items.push(["Copy name", () => ui.copy(ui.name(fn), "Name")]);
		ui.menu(x, y, items);
	}

	function find(fn) {
		const text = ui.name(fn).replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
		ui.set({ tab: "flame", search: "^" + text + "$", matchCase: true, zoom: [] });
	}

	/* Keeps only the visible rows in the document. */
	function window_() {
		if (!rows || !host.clientHeight) return;
		const from = Math.max(0, Math.floor(host.scrollTop / ROW) - EXTRA);
		const to = Math.min(rows.length, from + Math.ceil(host.clientHeight / ROW) + 2 * EXTRA);
		if (from === first && to === last) return;
		render(from, to);
	}

	function render(from, to) {
		first = from;
		last = to;
		above.firstChild.firstChild.style.height = from * ROW + "px";
		below.firstChild.firstChild.style.height = (rows.length - to) * ROW + "px";
		above.hidden = from === 0;
		below.hidden = to === rows.length;
		const fresh = [];
		const room = head.querySelector(".c-name").clientWidth - 44;
		for (let i = from; i < to; i++) fresh.push(row(i, room));
		body.replaceChildren(...fresh);
		if (current >= from && current < to) table.setAttribute("aria-activedescendant", "row-" + current);
		else table.removeAttribute("aria-activedescendant");
	}

	function go(place) {
		current = Math.max(0, Math.min(rows.length - 1, place));
		const top = current * ROW;
		if (top < host.scrollTop) host.scrollTop = top;
		else if (top + 2.5 * ROW > host.scrollTop + host.clientHeight)
			host.scrollTop = top + 2.5 * ROW - host.clientHeight;
		first = -1;
		window_();
	}

	function key(e) {
		if (e.target !== table || e.ctrlKey || e.metaKey || e.altKey || !rows.length) return;
		const page = Math.max(1, Math.floor(host.clientHeight / ROW) - 2);
		const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
		const fn = joined.fn[rows[current]];
		if (steps[e.key]) go(current + steps[e.key]);
		else if (e.key === "Enter") ui.focus(fn);
		else if (e.key === "ContextMenu" || (e.key === "F10" && e.shiftKey)) {
			const box = host.getBoundingClientRect();
			menu(fn, box.left + 60, box.top + current * ROW - host.scrollTop + 2 * ROW);
		} else return;
		e.preventDefault();
	}

	function update(what) {
		const j = join();
		choose(j);
		if (filterBox.value !== ui.state.filter) filterBox.value = ui.state.filter;
		if (!what || !what.every((w) => w === "theme" || w === "tab")) {
			current = 0;
			host.scrollTop = 0;
		}
		header();
		table.setAttribute("aria-rowcount", String(rows.length + 1));
		note.textContent =
			rows.length === j.fn.length
				? `${ui.count(rows.length)} functions`
				: `${ui.count(rows.length)} of ${ui.count(j.fn.length)} functions`;
		first = -1;
		window_();
	}

	/* A printed table cannot scroll: it has only its first rows. */
	function print() {
		if (rows) render(0, Math.min(rows.length, 100));
	}

	ui.views.table = { build, update, print, focus: () => table.focus({ preventScroll: true }) };
})(pm);

/* SPDX-License-Identifier: MIT */
/* Assembles the page: header, tabs, search, threads, keys, menu, theme; starts it. */
(function (pm) {
	"use strict";

	const ui = pm.ui;
	const $ = ui.$;
	const built = new Set();
	let opener = null; /* the element that had the focus before the menu opened */

	/* ---- threads ------------------------------------------------------------------------ */

	ui.threadName = function (t) {
		const { comm, tid, pid } = ui.data.threads[t];
		return `${comm || "?"} (${tid ?? "unknown"}${pid !== null && pid !== tid ? ` of ${pid}` : ""})`;
	};

	function threadWeights() {
		const c = ui.data.cells;
		const sums = new Float64Array(ui.data.threads.length);
		for (let i = 0; i < c.count; i++)
			if (c.event[i] === ui.state.event) sums[c.thread[i]] += c.period[i];
		return sums;
	}

	function buildThreads() {
		const panel = $("threads").querySelector(".panel");
		const sums = threadWeights();
		const all = sums.reduce((a, b) => a + b, 0);
		const order = [...sums.keys()].sort((a, b) => sums[b] - sums[a]);
		const needle = ui.el("input", { type: "search", "aria-label": "Find a thread", placeholder: "Find a thread" });
		const boxes = ui.el("div", { class: "boxes" });
		const chosen = () => ui.state.threads;
		const fill = () => {
			const text = needle.value.toLowerCase();
			const shown = order.filter((t) => ui.threadName(t).toLowerCase().includes(text));
			boxes.replaceChildren(
				...shown.slice(0, 300).map((t) => {
					const box = ui.el("input", { type: "checkbox", "data-keep": "box-" + t });
					box.checked = !chosen() || chosen().has(t);
					box.addEventListener("change", () => {
						const set = new Set(chosen() || order);
						if (box.checked) set.add(t);
						else set.delete(t);
						ui.set({ threads: set.size === order.length ? null : set });
					});
					return ui.el(
						"label",
						{},
						box,
						ui.el("span", { class: "name", text: ui.threadName(t) }),
						ui.el("span", { class: "muted number", text: ui.percent(sums[t], all) })
					);
				}),
				shown.length > 300
					? ui.el("p", { class: "muted", text: `… ${shown.length - 300} more: narrow the search` })
					: ""
			);
		};
		needle.addEventListener("input", fill);
		panel.replaceChildren(
			ui.el(
				"div",
				{ class: "row" },
				needle,
				ui.el("button", { type: "button", text: "All", onclick: () => ui.set({ threads: null }) }),
				ui.el("button", { type: "button", text: "None", onclick: () => ui.set({ threads: new Set() }) })
			),
			boxes
		);
		buildThreads.fill = fill;
		fill();
	}

	/* ---- header ------------------------------------------------------------------------- */

	function buildTabs() {
		ui.tabs.forEach(([name, label], i) => {
			$("tabs").append(
				ui.el(
					"button",
					{
						type: "button",
						role: "tab",
						id: "tab-" + name,
						"aria-controls": "view-" + name,
						title: `${label} (${i + 1})`,
						text: label,
						onclick: () => ui.set({ tab: name }),
					}
				)
			);
		});
		$("tabs").addEventListener("keydown", (e) => {
			const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
			if (!step) return;
			e.preventDefault();
			e.stopPropagation();
			turn(step);
			$("tab-" + ui.state.tab).focus();
		});
	}

	function turn(step) {
		const n = ui.tabs.length;
		const i = ui.tabs.findIndex((t) => t[0] === ui.state.tab);
		ui.set({ tab: ui.tabs[(i + step + n) % n][0] });
	}

	function buildHeader() {
		const d = ui.data;
		$("title").textContent = d.base ? `${d.title} against ${d.base.title}` : d.title;
		$("title").title = $("title").textContent;
		d.events.forEach((e, i) => {
			$("event").append(
				ui.el("option", { value: String(i), text: `${e.name} (${ui.count(e.samples)})` })
			);
		});
		$("event-label").hidden = d.events.length < 2;
		$("event").addEventListener("change", () => ui.set({ event: Number($("event").value) }));
		$("threads").hidden = d.threads.length < 2;
		$("threads").addEventListener("toggle", () => $("threads").open && buildThreads());
		for (const id of ["invert", "top", "collapse"])
			$(id).addEventListener("change", () =>
				ui.set(id === "invert" ? { invert: $(id).checked, zoom: [] } : { [id]: $(id).checked })
			);
		$("export").addEventListener("click", () =>
			ui.save("stacks.folded", pm.folded(ui.data, ui.selection(), ui.state.hidden))
		);
		$("reset").addEventListener("click", ui.reset);
		$("help").addEventListener("click", help);
		$("theme").addEventListener("click", () => {
			const order = ["auto", "light", "dark"];
			setTheme(order[(order.indexOf(theme) + 1) % 3]);
		});
		/* Only one panel is open; a click elsewhere closes it. */
		document.addEventListener("pointerdown", (e) => {
			for (const drop of document.querySelectorAll("details.drop[open]"))
				if (!drop.contains(e.target)) drop.open = false;
			if (!$("menu").contains(e.target)) closeMenu();
		});
	}

	function buildSearch() {
		const box = $("search");
		let timer = 0;
		const apply = () => {
			clearTimeout(timer);
			if (box.value !== ui.state.search) ui.set({ search: box.value }, true);
		};
		box.addEventListener("input", () => {
			clearTimeout(timer);
			timer = setTimeout(apply, 60);
		});
		box.addEventListener("keydown", (e) => {
			if (e.key === "Enter") {
				apply();
				match(e.shiftKey ? -1 : 1);
			} else if (e.key === "Escape") {
				box.value = "";
				apply();
				box.blur();
				ui.views[ui.state.tab].focus();
			} else return;
			e.preventDefault();
			e.stopPropagation();
		});
		$("case").addEventListener("click", () => ui.set({ matchCase: !ui.state.matchCase }, true));
		$("next").addEventListener("click", () => match(1));
		$("previous").addEventListener("click", () => match(-1));
	}

	function match(direction) {
		const view = ui.views[ui.state.tab];
		if (view.match) return view.match(direction);
		if (ui.state.search === "") return;
		ui.set({ tab: "flame" });
		ui.views.flame.match(direction);
	}

	function showMatched() {
		const found = ui.search();
		const out = $("matched");
		const bad = !!(found && found.error);
		$("search").setAttribute("aria-invalid", String(bad));
		out.classList.toggle("bad", bad);
		$("next").disabled = $("previous").disabled = !found || bad;
		if (!found) out.textContent = "";
		else if (bad) out.textContent = found.error;
		else {
			const hits = ui.hits(ui.graph());
			out.textContent = found.functions
				? `${hits.percent.toFixed(2)}% matched`
				: "no match";
			out.title = `${ui.count(found.functions)} functions`;
		}
	}

	function chip(text, remove, label) {
		return ui.el(
			"button",
			{ type: "button", class: "chip", "aria-label": label, title: label, onclick: remove },
			ui.el("span", { text }),
			ui.el("span", { "aria-hidden": "true", text: "×" })
		);
	}

	/* The filters of the data, always visible and removable. */
	function showChips() {
		const s = ui.state;
		const list = [];
		if (s.from !== null)
			list.push(
				chip(
					`${ui.seconds(s.from)} – ${ui.seconds(s.to)}`,
					() => ui.set({ from: null, to: null }),
					"Clear the range of time"
				)
			);
		if (s.threads)
			list.push(
				chip(
					s.threads.size === 1
						? ui.threadName([...s.threads][0])
						: `${s.threads.size} of ${ui.data.threads.length} threads`,
					() => ui.set({ threads: null }),
					"Show all threads"
				)
			);
		for (const fn of s.hidden)
			list.push(
				chip(
					"hidden: " + pm.shorten(ui.name(fn), 34),
					() => ui.set({ hidden: new Set([...s.hidden].filter((x) => x !== fn)) }),
					"Show again: " + ui.name(fn)
				)
			);
		const whole = ui.data.events[s.event];
		if (list.length) {
			/* Hidden functions are hidden only in graphs. */
			const left = s.hidden.size ? ui.graph().samples[0] : ui.selection().samples;
			list.push(
				ui.el("span", {
					class: "muted",
					text: `${ui.count(left)} of ${ui.count(whole ? whole.samples : 0)} samples`,
				})
			);
		}
		$("chips").hidden = list.length === 0;
		$("chips").replaceChildren(...list);
	}

	/* ---- menu --------------------------------------------------------------------------- */

	ui.menu = function (x, y, items) {
		const menu = $("menu");
		if (menu.hidden) opener = document.activeElement;
		ui.tooltip(null);
		menu.replaceChildren(
			...items.map(([text, run]) =>
				ui.el("button", {
					type: "button",
					role: "menuitem",
					tabindex: "-1",
					text,
					onclick: () => {
						closeMenu();
						run();
					},
				})
			)
		);
		menu.hidden = false;
		menu.style.left = Math.max(4, Math.min(x, innerWidth - menu.offsetWidth - 6)) + "px";
		menu.style.top = Math.max(4, Math.min(y, innerHeight - menu.offsetHeight - 6)) + "px";
		menu.firstChild?.focus();
	};

	function closeMenu() {
		if ($("menu").hidden) return;
		$("menu").hidden = true;
		opener?.focus({ preventScroll: true });
	}

	function menuKey(e) {
		const items = [...$("menu").children];
		const at = items.indexOf(document.activeElement);
		if (e.key === "ArrowDown") items[(at + 1) % items.length].focus();
		else if (e.key === "ArrowUp") items[(at - 1 + items.length) % items.length].focus();
		else if (e.key === "Home") items[0].focus();
		else if (e.key === "End") items[items.length - 1].focus();
		else if (e.key === "Escape" || e.key === "Tab") closeMenu();
		else return;
		e.preventDefault();
		e.stopPropagation();
	}

	/* ---- keys --------------------------------------------------------------------------- */

	const KEYS = [
		["1 – 7, T, Shift+T", "switch tabs"],
		["/ or Ctrl+F", "search; Enter and Shift+Enter: next and previous match"],
		["N, Shift+N", "next and previous match, outside of the search box"],
		["← → ↑ ↓", "move in the graph, table or tree"],
		["Enter", "zoom in; in the table: callers and callees"],
		["Escape", "zoom out one level; close what is open"],
		["0", "reset zoom, filters and search"],
		["I", "invert: who called the functions that cost most"],
		["X, Delete, Alt+click", "hide a function, and what has it in its stack"],
		["Shift+F10, right click", "menu of a box, row or line"],
		["*", "in the tree: open the heaviest path"],
		["D", "theme: automatic, light, dark"],
		["?", "this help"],
	];

	function help() {
		const box = $("keys");
		box.replaceChildren(
			ui.el("h2", { id: "keys-title", text: "Keys and gestures" }),
			ui.el(
				"dl",
				{},
				...KEYS.flatMap(([keys, text]) => [
					ui.el("dt", { text: keys }),
					ui.el("dd", { text }),
				])
			),
			ui.el("p", {
				class: "muted",
				text: "Drag over the strip of time to look at a part of the run, or type its begin and end in the tab Timeline. The address keeps what you see: copy it to come back.",
			}),
			ui.el("button", { type: "button", text: "Close", onclick: () => box.close() })
		);
		box.showModal();
	}

	const typing = (e) =>
		e.target.matches?.("input:not([type=checkbox]), select, textarea") || $("keys").open;

	/* Returns whether one was open. */
	function closeDrop() {
		const drop = document.querySelector("details.drop[open]");
		if (!drop) return false;
		drop.open = false;
		drop.firstElementChild.focus();
		return true;
	}

	function key(e) {
		if (!$("menu").hidden) return menuKey(e);
		if (e.key === "Escape" && closeDrop()) return e.preventDefault();
		if ((e.ctrlKey || e.metaKey) && e.key === "f" && !$("keys").open) {
			/* The browser's own search does not find text in a canvas;
			 * pressing the key twice opens it. */
			if (document.activeElement === $("search")) return;
			e.preventDefault();
			return $("search").select();
		}
		if (typing(e) || e.ctrlKey || e.metaKey || e.altKey) return;
		const tab = ui.tabs[Number(e.key) - 1];
		if (e.key === "/") $("search").select();
		else if (tab && /^[1-9]$/.test(e.key)) {
			ui.set({ tab: tab[0] });
			ui.views[tab[0]].focus();
		} else if (e.key === "0") ui.reset();
		else if (e.key === "i" || e.key === "I") ui.set({ invert: !ui.state.invert, zoom: [] });
		else if (e.key === "t") turn(1);
		else if (e.key === "T") turn(-1);
		else if (e.key === "d" || e.key === "D") $("theme").click();
		else if (e.key === "?") help();
		else if (e.key === "n" || e.key === "N") match(e.key === "n" ? 1 : -1);
		else return;
		e.preventDefault();
	}

	/* ---- theme -------------------------------------------------------------------------- */

	const darkQuery = matchMedia("(prefers-color-scheme: dark)");
	let theme = "auto";

	function applyTheme(forced) {
		const dark = forced ? forced === "dark" : theme === "dark" || (theme === "auto" && darkQuery.matches);
		document.documentElement.dataset.theme = dark ? "dark" : "light";
		$("theme").textContent = { auto: "Auto", light: "Light", dark: "Dark" }[theme];
		$("theme").setAttribute("aria-label", "Theme: " + $("theme").textContent);
		if (built.size) ui.update(["theme"]);
	}

	function setTheme(name) {
		theme = name;
		try {
			localStorage.setItem("pmrec-theme", name);
		} catch {
			/* Without storage, the theme is not remembered. */
		}
		applyTheme();
	}

	function startTheme() {
		try {
			theme = localStorage.getItem("pmrec-theme") || "auto";
		} catch {
			theme = "auto";
		}
		if (!["auto", "light", "dark"].includes(theme)) theme = "auto";
		applyTheme();
		darkQuery.addEventListener("change", () => applyTheme());
		addEventListener("beforeprint", () => {
			applyTheme("light");
			ui.views[ui.state.tab].print?.();
		});
		addEventListener("afterprint", () => applyTheme());
	}

	/* ---- updates ------------------------------------------------------------------------ */

	function showControls() {
		const s = ui.state;
		$("event").value = String(s.event);
		$("invert").checked = s.invert;
		$("top").checked = s.top;
		$("collapse").checked = s.collapse;
		$("case").setAttribute("aria-pressed", String(s.matchCase));
		if ($("search").value !== s.search) $("search").value = s.search;
		$("threads").querySelector("summary").textContent = s.threads
			? `Threads ${s.threads.size}/${ui.data.threads.length}`
			: `Threads ${ui.data.threads.length}`;
		if ($("threads").open) buildThreads.fill();
	}

	function showTab() {
		for (const [name] of ui.tabs) {
			const on = name === ui.state.tab;
			$("view-" + name).hidden = !on;
			$("tab-" + name).setAttribute("aria-selected", String(on));
			$("tab-" + name).tabIndex = on ? 0 : -1;
		}
	}

	/*
	 * The focused element may have been created again, or removed together with its
	 * subject: for keyboard users the focus moves to its replacement, or else to the
	 * view.
	 */
	function keepFocus(before) {
		if (before === document.body || before.getClientRects().length) return;
		const { keep } = before.dataset;
		const like = keep && document.querySelector(`[data-keep="${keep}"]`);
		if (like) like.focus({ preventScroll: true });
		else ui.views[ui.state.tab].focus();
	}

	ui.update = function (what) {
		const tab = ui.state.tab;
		const before = document.activeElement || document.body;
		showTab();
		showControls();
		if (!built.has(tab)) {
			built.add(tab);
			ui.views[tab].build($("view-" + tab));
		}
		ui.views[tab].update(what);
		showChips();
		showMatched();
		ui.updateStrip(what.includes("event") || what.includes("theme"));
		keepFocus(before);
	};

	/* ---- start -------------------------------------------------------------------------- */

	function start() {
		const node = $("pm-data");
		ui.data = pm.printable(pm.decode(JSON.parse(node.textContent)));
		/* The text has been decoded: this releases its memory. */
		node.remove();
		$("app").hidden = false;
		startTheme();
		buildTabs();
		buildHeader();
		buildSearch();
		ui.badge();
		$("strip").hidden = !ui.data.samples || !(ui.data.duration_ns > 0);
		addEventListener("popstate", ui.readHash);
		addEventListener("hashchange", ui.readHash);
		document.addEventListener("keydown", key);
		ui.readHash();
		/* Work that the first picture does not need comes after it. */
		requestAnimationFrame(() =>
			requestAnimationFrame(() => {
				performance.mark("pm-first-paint");
				ui.buildStrip();
				ui.updateStrip(true);
			})
		);
	}

	try {
		start();
	} catch (e) {
		const box = ui.el("p", { class: "failed", text: "This page cannot be shown: " + e.message });
		document.body.prepend(box);
		throw e;
	}
})(pm);

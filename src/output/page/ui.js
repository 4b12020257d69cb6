/* SPDX-License-Identifier: MIT */
/*
 * Parts that all views share: the state and its URL hash, derived data, colours, small
 * DOM helpers. Names from the recording are used only as textContent or canvas text.
 */
(function (pm) {
	"use strict";

	const ui = (pm.ui = {});
	const ROWS_OF_TABS = [
		["flame", "Flame graph"],
		["table", "Functions"],
		["sandwich", "Callers"],
		["timeline", "Timeline"],
		["tree", "Tree"],
		["source", "Source"],
		["run", "Run"],
	];

	ui.tabs = ROWS_OF_TABS;
	ui.KINDS = ["user", "kernel", "generated", "unknown", "inlined"];
	ui.KIND_NAMES = ["user", "kernel", "generated code", "unknown", "inlined"];
	ui.views = {}; /* name → {show(), update(what), key(event)} */
	ui.data = null;

	/* ---- DOM ---------------------------------------------------------------------------- */

	ui.$ = (id) => document.getElementById(id);

	/* Creates an element; properties are set as attributes, on… as listeners, text as text. */
	ui.el = function (tag, properties, ...children) {
		const e = document.createElement(tag);
		for (const [key, value] of Object.entries(properties || {})) {
			if (value === null || value === undefined || value === false) continue;
			if (key === "text") e.textContent = value;
			else if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
			else e.setAttribute(key, value === true ? "" : value);
		}
		e.append(...children.filter((c) => c !== null && c !== undefined));
		return e;
	};

	let toastTimer = 0;
	ui.toast = function (text) {
		const box = ui.$("toast");
		box.textContent = text;
		box.classList.add("shown");
		clearTimeout(toastTimer);
		toastTimer = setTimeout(() => box.classList.remove("shown"), 2500);
	};

	/* The clipboard needs a secure context, which a page from file:// may not
	 * have. */
	ui.copy = async function (text, what) {
		try {
			await navigator.clipboard.writeText(text);
		} catch {
			const box = ui.el("textarea", { readonly: true, class: "offscreen" });
			box.value = text;
			document.body.append(box);
			box.select();
			const done = document.execCommand("copy");
			box.remove();
			if (!done) return ui.toast("The browser does not allow copying");
		}
		ui.toast(what + " copied");
	};

	ui.save = function (name, text) {
		const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
		const a = ui.el("a", { href: url, download: name });
		document.body.append(a);
		a.click();
		a.remove();
		setTimeout(() => URL.revokeObjectURL(url), 10000);
	};

	/* ---- numbers ------------------------------------------------------------------------ */

	ui.percent = function (part, all) {
		if (!(all > 0)) return "–";
		const p = (100 * part) / all;
		if (p === 0) return "0%";
		if (p > 0 && p < 0.01) return "<0.01%";
		return p.toFixed(p < 9.995 ? 2 : 1) + "%";
	};

	/* A difference in percentage points; the sign is always shown, so that colour is
	 * not needed. */
	ui.points = function (delta) {
		const p = 100 * delta;
		if (Math.abs(p) < 0.005) return "±0";
		return (p > 0 ? "+" : "−") + Math.abs(p).toFixed(Math.abs(p) < 9.995 ? 2 : 1);
	};

	ui.count = (n) => Math.round(n).toLocaleString("en-US");

	ui.seconds = function (ms) {
		if (ms === 0) return "0 s";
		if (ms >= 100000) return (ms / 1000).toFixed(0) + " s";
		if (ms >= 1000) return (ms / 1000).toFixed(2) + " s";
		return ms.toFixed(ms < 10 ? 2 : 1) + " ms";
	};

	/* ---- state -------------------------------------------------------------------------- */

	const initial = () => ({
		tab: "flame",
		event: 0,
		threads: null,
		from: null,
		to: null,
		invert: false,
		top: false,
		collapse: false,
		hidden: new Set(),
		zoom: [],
		search: "",
		matchCase: false,
		focus: null,
		filter: "",
		sort: "-self",
		source: null,
	});

	ui.state = initial();

	const list = (s) => s.split(".").filter((x) => /^\d+$/.test(x)).map(Number);

	function format(s) {
		const p = new URLSearchParams();
		const put = (key, value, standard) => {
			if (value !== standard && value !== "" && value !== null) p.set(key, value);
		};
		put("tab", s.tab, "flame");
		put("event", String(s.event), "0");
		put("threads", s.threads ? [...s.threads].join(".") || "none" : null);
		put("range", s.from === null ? null : s.from.toFixed(3) + "-" + s.to.toFixed(3));
		put("invert", s.invert ? "1" : "");
		put("top", s.top ? "1" : "");
		put("collapse", s.collapse ? "1" : "");
		put("hidden", [...s.hidden].join("."));
		put("zoom", s.zoom.join("."));
		put("q", s.search);
		put("case", s.matchCase ? "1" : "");
		put("focus", s.focus === null ? null : String(s.focus));
		put("filter", s.filter);
		put("sort", s.sort, "-self");
		put("source", s.source === null ? null : String(s.source));
		return p.toString();
	}

	/* A hash may name things that do not exist: it can come from the page of another
	 * file. */
	function parse(text) {
		const p = new URLSearchParams(text);
		const s = initial();
		const functions = ui.data.functions.count;
		const fn = (n) => Number.isInteger(n) && n >= 0 && n < functions;
		const range = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(p.get("range") || "");
		const number = (key) => (/^\d+$/.test(p.get(key) || "") ? Number(p.get(key)) : null);

		if (ROWS_OF_TABS.some((row) => row[0] === p.get("tab"))) s.tab = p.get("tab");
		if (number("event") < ui.data.events.length) s.event = number("event") || 0;
		if (p.get("threads"))
			s.threads = new Set(
				list(p.get("threads")).filter((t) => t < ui.data.threads.length)
			);
		const to = range ? Math.min(Number(range[2]), ui.data.duration_ns / 1e6) : 0;
		if (range && Number(range[1]) < to && ui.data.samples) {
			s.from = Number(range[1]);
			s.to = to;
		}
		s.invert = p.get("invert") === "1";
		s.top = p.get("top") === "1";
		s.collapse = p.get("collapse") === "1";
		s.hidden = new Set(list(p.get("hidden") || "").filter(fn));
		s.zoom = list(p.get("zoom") || "").filter(fn);
		s.search = p.get("q") || "";
		s.matchCase = p.get("case") === "1";
		if (fn(number("focus"))) s.focus = number("focus");
		s.filter = p.get("filter") || "";
		if (/^[+-](self|total|name|module|dself|dtotal)$/.test(p.get("sort") || ""))
			s.sort = p.get("sort");
		if (number("source") < ui.data.sources.length) s.source = number("source");
		return s;
	}

	/*
	 * Changes the state and redraws. With `replace` (typing, dragging, selecting),
	 * the change is no separate step for the browser's back button.
	 */
	ui.set = function (changes, replace) {
		Object.assign(ui.state, changes);
		const hash = "#" + format(ui.state);
		if (hash !== (location.hash || "#"))
			try {
				history[replace ? "replaceState" : "pushState"](null, "", hash);
			} catch {
				/* Some file viewers forbid history; the page works
				 * without it. */
			}
		ui.update(Object.keys(changes));
	};

	ui.readHash = function () {
		ui.state = parse(location.hash.slice(1));
		ui.update(Object.keys(ui.state));
	};

	/* Keeps the kind of view: the event, and whether the graph is inverted. */
	ui.reset = function () {
		const { threads, from, to, hidden, zoom, search, filter } = initial();
		if (ui.flame) ui.flame.selected = -1;
		ui.set({ threads, from, to, hidden, zoom, search, filter });
	};

	/* ---- derived data, cached for the state from which it was made ---------------------- */

	const memory = new Map();
	function remember(name, key, make) {
		const old = memory.get(name);
		if (old && old.key === key) return old.value;
		const value = make();
		memory.set(name, { key, value });
		return value;
	}

	const selectionKey = (s) =>
		[s.event, s.threads ? [...s.threads].join() : "*", s.from, s.to].join("|");
	const graphKey = (s) => [selectionKey(s), s.collapse, [...s.hidden].join()].join("|");

	ui.filter = () => {
		const { event, threads, from, to } = ui.state;
		return { event, threads, from, to, base: false };
	};

	ui.selection = () =>
		remember("selection", selectionKey(ui.state), () => pm.select(ui.data, ui.filter()));

	/* The base run has no times in common with this one: it always counts as a
	 * whole. */
	ui.baseSelection = () =>
		!ui.data.base
			? null
			: remember("base", selectionKey(ui.state), () =>
					pm.select(
						ui.data,
						Object.assign(ui.filter(), { base: true, from: null, to: null })
					)
			  );

	const graphOptions = (inverted) => ({
		inverted,
		collapse: ui.state.collapse,
		root: null,
		hidden: ui.state.hidden,
		base: ui.baseSelection(),
	});

	ui.graph = function (inverted) {
		const turned = inverted === undefined ? ui.state.invert : inverted;
		return remember("graph" + turned, graphKey(ui.state), () =>
			pm.flame(ui.data, ui.selection(), graphOptions(turned))
		);
	};

	ui.table = () =>
		remember("table", selectionKey(ui.state), () => pm.table(ui.data, ui.selection()));
	ui.baseTable = () =>
		!ui.data.base
			? null
			: remember("basetable", selectionKey(ui.state), () =>
					pm.table(ui.data, ui.baseSelection())
			  );

	ui.sandwich = (fn) =>
		remember("sandwich", graphKey(ui.state) + "|" + fn, () =>
			pm.sandwich(ui.data, ui.selection(), fn, graphOptions(false))
		);

	/* ---- search ------------------------------------------------------------------------- */

	/* Returns null (no search), {error} or {match: Uint8Array per function,
	 * functions}. */
	ui.search = () =>
		remember("search", ui.state.search + "|" + ui.state.matchCase, () => {
			if (ui.state.search === "") return null;
			let regex;
			try {
				regex = new RegExp(ui.state.search, ui.state.matchCase ? "u" : "iu");
			} catch (e1) {
				try {
					/* Names such as operator[] or {lambda} are not
					 * valid /u patterns. */
					regex = new RegExp(ui.state.search, ui.state.matchCase ? "" : "i");
				} catch (e) {
					return { error: String(e.message).replace(/^.*\/[a-z]*: /, "") };
				}
			}
			const names = ui.data.functions.name;
			const match = new Uint8Array(names.length);
			let functions = 0;
			for (let i = 0; i < names.length; i++)
				if (regex.test(names[i])) {
					match[i] = 1;
					functions++;
				}
			return { match, functions };
		});

	/* Returns null, or {hit, percent} for one graph. */
	ui.hits = function (graph) {
		const found = ui.search();
		if (!found || !found.match) return null;
		if (graph.pmHits && graph.pmHits.found === found) return graph.pmHits.value;
		const value = pm.search(ui.data, graph, (fn) => found.match[fn] === 1);
		graph.pmHits = { found, value };
		return value;
	};

	/* ---- names and stacks --------------------------------------------------------------- */

	ui.name = (fn) => (fn < 0 ? "all" : ui.data.functions.name[fn]);
	let charWidth = 0;
	/* The name, shortened to @pixels of the fixed font. */
	ui.short = function (fn, pixels) {
		if (!charWidth) {
			const context = ui.el("canvas").getContext("2d");
			context.font = "12px " + getComputedStyle(document.documentElement).getPropertyValue("--mono");
			charWidth = context.measureText("0".repeat(100)).width / 100;
		}
		return pm.shorten(ui.name(fn), Math.max(8, Math.floor(pixels / charWidth)));
	};
	ui.moduleName = function (fn) {
		const module = fn < 0 ? -1 : ui.data.functions.module[fn];
		return module < 0 ? "" : ui.data.modules[module].name;
	};
	ui.kindOf = (fn, inlined) => (inlined ? 4 : fn < 0 ? 3 : ui.data.functions.kind[fn]);

	/* The functions from the root to a node, without the root node of everything. */
	ui.pathOf = function (graph, node) {
		const path = [];
		for (let n = node; n > 0; n = graph.parent[n]) path.push(graph.fn[n]);
		return path.reverse();
	};

	/* One past the last node below each node (the graph is in preorder). */
	ui.ends = function (graph) {
		if (graph.pmEnds) return graph.pmEnds;
		const end = new Int32Array(graph.count);
		for (let i = graph.count - 1; i >= 0; i--) {
			if (end[i] < i + 1) end[i] = i + 1;
			const p = graph.parent[i];
			if (i > 0 && end[p] < end[i]) end[p] = end[i];
		}
		return (graph.pmEnds = end);
	};

	ui.childOf = function (graph, node, fn) {
		const end = ui.ends(graph);
		for (let c = node + 1; c < end[node]; c = end[c]) if (graph.fn[c] === fn) return c;
		return -1;
	};

	/* The node at the end of a path of functions, as far as the path exists. */
	ui.nodeAt = function (graph, path) {
		let node = 0;
		for (const fn of path) {
			const child = ui.childOf(graph, node, fn);
			if (child < 0) break;
			node = child;
		}
		return node;
	};

	ui.stackText = (graph, node, inverted) => {
		const names = ui.pathOf(graph, node).map(ui.name);
		return (inverted ? names.reverse() : names).join("\n");
	};

	/* ---- colours ------------------------------------------------------------------------ */

	const SHADES = 8;

	/* FNV-1a: the same name has the same shade in every page. */
	function hash(text) {
		let h = 0x811c9dc5;
		for (let i = 0; i < text.length; i++)
			h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
		h ^= h >>> 15;
		return (Math.imul(h, 0x2c1b3c6d) >>> 0) % SHADES;
	}

	/* Returns 0xaabbggrr, the byte order of ImageData on little-endian machines. */
	function rgb32(hue, saturation, lightness) {
		const l = lightness / 100;
		const a = (saturation / 100) * Math.min(l, 1 - l);
		const channel = (n) => {
			const k = (n + hue / 30) % 12;
			return Math.round(255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
		};
		return ((255 << 24) | (channel(4) << 16) | (channel(8) << 8) | channel(0)) >>> 0;
	}
	const css = (c) => `rgb(${c & 255} ${(c >>> 8) & 255} ${(c >>> 16) & 255})`;

	function palette(dark) {
		/* hue from, to; saturation; lightness: in the order of ui.KINDS */
		const kinds = dark
			? [[14, 42, 42, 33], [208, 220, 36, 37], [142, 166, 30, 30], [0, 0, 0, 34], [300, 324, 22, 38]]
			: [[24, 47, 84, 77], [206, 218, 58, 82], [130, 156, 38, 78], [0, 0, 0, 85], [302, 326, 40, 87]];
		const colors = [];
		for (const [a, b, s, l] of kinds)
			for (let i = 0; i < SHADES; i++) {
				const light = l + (dark ? 4 : 5) * (((i * 5) % SHADES) / (SHADES - 1) - 0.5);
				colors.push(rgb32(a + ((b - a) * i) / (SHADES - 1), s, light));
			}
		/* Differences: -4 … +4, from blue to orange; the middle has neither
		 * colour. */
		for (let i = -4; i <= 4; i++) {
			const t = Math.abs(i) / 4;
			const hue = i < 0 ? 212 : 28;
			colors.push(dark ? rgb32(hue, 70 * t, 28 + 6 * t) : rgb32(hue, 92 * t, 90 - 24 * t));
		}
		const p = {
			colors32: Uint32Array.from(colors),
			back32: dark ? rgb32(220, 6, 9.6) : rgb32(0, 0, 100),
			dim32: dark ? rgb32(240, 4, 17) : rgb32(40, 12, 90),
			hit32: dark ? rgb32(262, 62, 44) : rgb32(264, 88, 84),
			text: dark ? "#f4f2ee" : "#1c1a17",
			dimText: dark ? "#a3a19c" : "#66625b",
			line: dark ? "#ffffff" : "#000000",
			accent: dark ? "#8ab4ff" : "#1a56c4",
		};
		p.colors = colors.map(css);
		p.hit = css(p.hit32);
		p.dim = css(p.dim32);
		return p;
	}

	const palettes = { light: palette(false), dark: palette(true) };
	ui.isDark = () => document.documentElement.dataset.theme === "dark";
	ui.palette = (name) => palettes[name || (ui.isDark() ? "dark" : "light")];

	let shades = null;
	ui.colorOfFunction = function (fn, inlined) {
		if (!shades) {
			shades = new Uint8Array(ui.data.functions.count).fill(255);
		}
		if (fn < 0) return 3 * SHADES;
		if (shades[fn] === 255) shades[fn] = hash(ui.data.functions.name[fn]);
		return ui.kindOf(fn, inlined) * SHADES + shades[fn];
	};

	const DIFF = 5 * SHADES;
	/* Both numbers are relative to the same total. */
	ui.diffStep = function (now, before) {
		const sum = now + before;
		const d = sum > 0 ? (now - before) / sum : 0;
		if (Math.abs(d) < 0.02) return 0;
		return Math.sign(d) * (Math.abs(d) < 0.08 ? 1 : Math.abs(d) < 0.2 ? 2 : Math.abs(d) < 0.5 ? 3 : 4);
	};
	ui.colorOfNode = (graph, n) =>
		graph.baseTotal
			? DIFF + 4 + ui.diffStep(graph.total[n], graph.baseTotal[n])
			: ui.colorOfFunction(graph.fn[n], graph.inlined[n]);
	ui.colorOfStep = (step) => ui.palette().colors[DIFF + 4 + step];
	ui.colorOfKind = (kind) => ui.palette().colors[kind * SHADES + 3];

	ui.calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
})(typeof pm === "undefined" ? (globalThis.pm = {}) : pm);

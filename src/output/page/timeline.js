/* SPDX-License-Identifier: MIT */
/*
 * Time: a thin strip of activity in the header, and the tab with the heat map and a row
 * for each thread. Dragging over any of them selects a range, which filters all other
 * views.
 */
(function (pm) {
	"use strict";

	const ui = pm.ui;
	const BINS = 400;
	/* Of the heat map, at most: 20 ms each if a column is one second. */
	const ROWS = 50;
	const FEWEST = 5;
	const THREADS = 100;
	let section_, scroll, heat, heatNote, rows, from, to, more, strip;
	let shown = THREADS;
	let built = false;

	const duration = () => ui.data.duration_ns / 1e6;

	/* The weights of all threads, regardless of the selection: the rest stays
	 * visible. */
	function bins() {
		const f = { event: ui.state.event, threads: null, from: null, to: null, base: false };
		const key = ui.state.event;
		if (!bins.kept || bins.key !== key) {
			bins.key = key;
			bins.kept = pm.bins(ui.data, f, BINS);
		}
		return bins.kept;
	}

	/* ---- a canvas over the whole time, where a range can be dragged ---------------------- */

	class Strip {
		constructor(height, label, draw) {
			this.draw = draw;
			this.height = height;
			this.canvas = ui.el("canvas", { role: "img", "aria-label": label });
			this.brush = ui.el("i", { class: "brush", hidden: true });
			this.host = ui.el("div", { class: "strip" }, this.canvas, this.brush);
			this.host.style.height = height + "px";
			this.host.addEventListener("pointerdown", (e) => this.drag(e));
			this.host.addEventListener("pointermove", (e) => this.tell(e));
			new ResizeObserver(() => this.paint()).observe(this.host);
		}

		timeAt(e) {
			const box = this.canvas.getBoundingClientRect();
			const x = Math.max(0, Math.min(1, (e.clientX - box.left) / box.width));
			return x * duration();
		}

		tell(e) {
			this.host.title = ui.seconds(this.timeAt(e));
		}

		drag(e) {
			if (e.button !== 0) return;
			const begin = this.timeAt(e);
			const x = e.clientX;
			let moved = false;
			this.host.setPointerCapture(e.pointerId);
			const move = (m) => {
				if (!moved && Math.abs(m.clientX - x) < 3) return;
				moved = true;
				const now = this.timeAt(m);
				preview(Math.min(begin, now), Math.max(begin, now));
			};
			const end = (m) => {
				this.host.removeEventListener("pointermove", move);
				this.host.removeEventListener("pointerup", end);
				this.host.removeEventListener("pointercancel", end);
				const now = this.timeAt(m);
				if (moved && m.type === "pointerup")
					setRange(Math.min(begin, now), Math.max(begin, now));
				else if (!moved) setRange(null, null);
				else mark();
			};
			this.host.addEventListener("pointermove", move);
			this.host.addEventListener("pointerup", end);
			this.host.addEventListener("pointercancel", end);
		}

		paint() {
			const width = this.host.clientWidth;
			if (!width) return;
			const ratio = window.devicePixelRatio || 1;
			this.canvas.width = Math.round(width * ratio);
			this.canvas.height = Math.round(this.height * ratio);
			const c = this.canvas.getContext("2d");
			c.setTransform(ratio, 0, 0, ratio, 0, 0);
			this.draw(c, width, this.height);
		}

		mark(a, b) {
			this.brush.hidden = a === null;
			if (a === null) return;
			this.brush.style.left = (100 * a) / duration() + "%";
			this.brush.style.width = (100 * (b - a)) / duration() + "%";
		}
	}

	let all = [];
	const marks = (a, b) => [strip, ...all].forEach((s) => s && s.mark(a, b));
	const preview = (a, b) => marks(a, b);
	const mark = () => marks(ui.state.from, ui.state.to);

	function setRange(a, b) {
		if (a !== null && !(b > a)) a = b = null;
		if (a === ui.state.from && b === ui.state.to) return mark();
		ui.set({
			from: a === null ? null : Number(a.toFixed(3)),
			to: a === null ? null : Number(b.toFixed(3)),
		});
	}
	ui.setRange = setRange;

	function bars(c, width, height, values, max) {
		c.clearRect(0, 0, width, height);
		c.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--activity");
		const w = width / values.length;
		c.beginPath();
		for (let i = 0; i < values.length; i++) {
			if (!values[i]) continue;
			const h = Math.max(1, (values[i] / max) * (height - 2));
			c.rect(i * w, height - h, Math.max(1, w - (w > 3 ? 0.5 : 0)), h);
		}
		c.fill();
	}

	/* ---- the heat map: a column each second, the time within it upwards ------------------ */

	function drawHeat(c, width, height) {
		const h = heat.map;
		c.clearRect(0, 0, width, height);
		if (!h || !h.columns) return;
		const w = width / heat.exact;
		const step = height / h.rows;
		const dark = ui.isDark();
		for (let i = 0; i < h.columns; i++)
			for (let r = 0; r < h.rows; r++) {
				const v = h.values[i * h.rows + r];
				if (!v) continue;
				const t = Math.sqrt(v / h.max);
				c.fillStyle = dark
					? `hsl(${45 - 25 * (1 - t)} 75% ${14 + 50 * t}%)`
					: `hsl(${42 - 24 * t} ${70 + 15 * t}% ${92 - 48 * t}%)`;
				c.fillRect(i * w, height - (r + 1) * step, w - (w > 3 ? 0.5 : 0), step - (step > 3 ? 0.5 : 0));
			}
	}

	/* Unlike a strip, the map has two directions: a drag goes from cell to cell. */
	function heatTime(e) {
		const box = heat.canvas.getBoundingClientRect();
		const h = heat.map;
		const x = Math.max(0, Math.min(0.999999, (e.clientX - box.left) / box.width));
		const y = Math.max(0, Math.min(0.999999, (box.bottom - e.clientY) / box.height));
		const column = Math.floor(x * heat.exact);
		const cell = h.columnMs / h.rows;
		const begin = column * h.columnMs + Math.floor(y * h.rows) * cell;
		return { begin, end: begin + cell };
	}

	function heatDrag(e) {
		if (e.button !== 0) return;
		e.stopImmediatePropagation();
		const first = heatTime(e);
		let range = [first.begin, first.end];
		heat.host.setPointerCapture(e.pointerId);
		const move = (m) => {
			const now = heatTime(m);
			range = [Math.min(first.begin, now.begin), Math.max(first.end, now.end)];
			heatNote.textContent = `${ui.seconds(range[0])} to ${ui.seconds(range[1])}`;
			marks(range[0], Math.min(range[1], duration()));
		};
		const end = () => {
			heat.host.removeEventListener("pointermove", move);
			heat.host.removeEventListener("pointerup", end);
			heat.host.removeEventListener("pointercancel", end);
			setRange(range[0], Math.min(range[1], duration()));
		};
		heat.host.addEventListener("pointermove", move);
		heat.host.addEventListener("pointerup", end);
		heat.host.addEventListener("pointercancel", end);
	}

	/* ---- the tab ------------------------------------------------------------------------- */

	function number(id, label) {
		return ui.el("input", {
			id,
			type: "number",
			min: "0",
			step: "any",
			"aria-label": label,
			placeholder: label,
			onchange: () => {
				const a = from.value === "" ? 0 : Number(from.value) * 1000;
				const b = to.value === "" ? duration() : Number(to.value) * 1000;
				if (from.value === "" && to.value === "") setRange(null, null);
				else if (Math.max(0, a) < Math.min(b, duration())) setRange(Math.max(0, a), Math.min(b, duration()));
				else ui.toast(`No such range: the run took ${ui.seconds(duration())}`);
			},
		});
	}

	function build(section) {
		section_ = section;
		if (!ui.data.samples || !(duration() > 0)) {
			section.append(
				ui.el("p", {
					class: "empty",
					text: "This page has no times of samples, so there is no timeline.",
				})
			);
			return;
		}
		built = true;
		from = number("range-from", "From, seconds");
		to = number("range-to", "To, seconds");
		heatNote = ui.el("span", { class: "muted", role: "status" });
		heat = new Strip(150, "Heat map of samples: a column for each second", drawHeat);
		heat.host.addEventListener("pointerdown", heatDrag, true);
		heat.host.classList.add("heat");
		rows = ui.el("div", { class: "threads" });
		more = ui.el("button", {
			type: "button",
			"data-keep": "more-threads",
			onclick: () => {
				shown += THREADS;
				update();
			},
		});
		scroll = ui.el(
			"div",
			{ class: "scroll", tabindex: "0", role: "region", "aria-label": "Timeline" },
			ui.el("h2", { id: "heat-title" }),
			heat.host,
			ui.el("div", { class: "axis" }),
			ui.el("h2", { text: "Activity of each thread" }),
			rows,
			more
		);
		section.append(
			ui.el(
				"div",
				{ class: "row viewbar" },
				ui.el("span", { text: "Range" }),
				from,
				"–",
				to,
				ui.el("button", { type: "button", text: "Clear", onclick: () => setRange(null, null) }),
				heatNote
			),
			scroll
		);
	}

	function axis() {
		const box = section_.querySelector(".axis");
		const n = 5;
		box.replaceChildren(
			...Array.from({ length: n + 1 }, (_, i) =>
				ui.el("span", { text: ui.seconds((duration() * i) / n) })
			)
		);
	}

	function threadRows() {
		const b = bins();
		const sums = [...b.perThread].map(([t, v]) => [t, v.reduce((x, y) => x + y, 0)]);
		sums.sort((x, y) => y[1] - x[1]);
		const all_ = sums.reduce((s, x) => s + x[1], 0);
		more.hidden = sums.length <= shown;
		more.textContent = `Show ${ui.count(Math.min(THREADS, sums.length - shown))} more of ${ui.count(sums.length)} threads`;
		all = [heat];
		rows.replaceChildren(
			...sums.slice(0, shown).map(([t, sum]) => {
				const s = new Strip(26, "Activity of " + ui.threadName(t), (c, w, h) =>
					bars(c, w, h, b.perThread.get(t), b.max)
				);
				all.push(s);
				const on = !ui.state.threads || ui.state.threads.has(t);
				return ui.el(
					"div",
					{ class: on ? "thread" : "thread off" },
					ui.el("button", {
						type: "button",
						class: "quiet name",
						title: "Show only this thread",
						"data-keep": "thread-" + t,
						text: ui.threadName(t),
						onclick: () => {
							const only = ui.state.threads?.size === 1 && ui.state.threads.has(t);
							ui.set({ threads: only ? null : new Set([t]) });
						},
					}),
					ui.el("span", { class: "number", text: ui.percent(sum, all_) }),
					s.host
				);
			})
		);
	}

	function update() {
		if (!built) return;
		const s = ui.state;
		const filter = { event: s.event, threads: s.threads, from: null, to: null, base: false };
		/* As many rows as possible while most cells still have a sample. */
		const columns = Math.max(1, pm.heat(ui.data, filter, 1).columns);
		const each = (ui.data.events[s.event]?.samples || 0) / columns;
		heat.map = pm.heat(ui.data, filter, Math.max(FEWEST, Math.min(ROWS, Math.round(each))));
		/* The last column is usually not complete: the axis ends with the
		 * recording. */
		heat.exact = Math.max(duration() / heat.map.columnMs, 1e-9);
		ui.$("heat-title").textContent =
			`Samples by time: a column is ${ui.seconds(heat.map.columnMs)}, ` +
			`read upwards in steps of ${ui.seconds(heat.map.columnMs / heat.map.rows)}`;
		heat.paint();
		axis();
		threadRows();
		from.value = s.from === null ? "" : String(s.from / 1000);
		to.value = s.to === null ? "" : String(s.to / 1000);
		heatNote.textContent =
			s.from === null
				? "Drag over the map or a thread to select a range; click to clear it"
				: `${ui.count(ui.selection().samples)} samples in ${ui.seconds(s.to - s.from)}`;
		mark();
	}

	/* ---- the strip in the header --------------------------------------------------------- */

	ui.buildStrip = function () {
		if (!ui.data.samples || !(duration() > 0)) return;
		strip = new Strip(26, "Activity over time; drag to select a range", (c, w, h) => {
			const b = bins();
			bars(c, w, h, b.all, b.all.reduce((x, y) => Math.max(x, y), 0));
		});
		ui.$("strip").append(
			strip.host,
			ui.el("span", { class: "muted", text: ui.seconds(duration()) })
		);
	};
	ui.updateStrip = function (repaint) {
		if (!strip) return;
		if (repaint) strip.paint();
		mark();
	};

	ui.views.timeline = { build, update, focus: () => scroll?.focus({ preventScroll: true }) };
})(pm);

/* SPDX-License-Identifier: MIT */
/*
 * Draws one flame graph into a canvas of the visible size. The host scrolls over a spacer
 * of the full height. Each paint finds only the visible boxes, by binary search in each
 * level, and merges boxes that end within one pixel: the cost depends on the pixels, not
 * on the nodes.
 */
(function (pm) {
	"use strict";

	const ui = pm.ui;
	const ROW = 18;
	const ZOOM_MS = 180;
	const FONT = '12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
	const PAD = 4;

	/* The first index of a level's nodes whose end is to the right of x. */
	function firstAfter(graph, level, x, from) {
		let low = from;
		let high = level.length;
		/* It is usually near: gallop first. */
		for (let step = 1; low + step < high; step *= 2) {
			const n = level[low + step];
			if (graph.start[n] + graph.total[n] > x) {
				high = low + step + 1;
				break;
			}
		}
		while (low < high) {
			const mid = (low + high) >> 1;
			const n = level[mid];
			if (graph.start[n] + graph.total[n] > x) high = mid;
			else low = mid + 1;
		}
		return low;
	}

	/* Blends two colours of four bytes each. */
	function blend(a, b, t) {
		let out = 0;
		for (let shift = 0; shift < 32; shift += 8) {
			const x = (a >>> shift) & 255;
			out |= Math.round(x + (((b >>> shift) & 255) - x) * t) << shift;
		}
		return out >>> 0;
	}

	class Flame {
		/* events: zoom(node), select(node), menu(node, x, y), hide(fn), up() → bool */
		constructor(label, events) {
			this.events = events;
			this.graph = null;
			this.zoomed = 0;
			this.selected = -1;
			this.hover = -1;
			this.hits = null;
			this.from = 0;
			this.to = 1;
			this.frame = 0;
			this.animation = null;
			this.width = 0;
			this.height = 0;
			this.paints = 0;
			this.still = false; /* while the page is printed */
			/* levels that are not drawn: the one of everything, if it would
			 * repeat another */
			this.skip = events.skip || 0;

			this.canvas = ui.el("canvas", { "aria-hidden": "true" });
			this.context = this.canvas.getContext("2d", { alpha: false });
			this.context.font = FONT;
			this.charWidth = this.context.measureText("0".repeat(100)).width / 100;
			this.spacer = ui.el("div", { class: "spacer-y" });
			this.host = ui.el(
				"div",
				{
					class: "flame-host",
					tabindex: "0",
					role: "application",
					"aria-label": label,
					"aria-roledescription": "flame graph",
					"aria-describedby": "flame-hint",
				},
				this.canvas,
				this.spacer
			);
			this.listen();
		}

		listen() {
			const host = this.host;
			new ResizeObserver(() => this.resize()).observe(host);
			host.addEventListener("scroll", () => this.repaint(), { passive: true });
			host.addEventListener("pointermove", (e) => {
				if (e.pointerType !== "touch") this.pointAt(e);
			});
			host.addEventListener("pointerleave", () => this.setHover(-1));
			host.addEventListener("click", (e) => this.click(e));
			host.addEventListener("contextmenu", (e) => {
				const keyboard = e.button !== 2 && e.clientX === 0 && e.clientY === 0;
				const node = keyboard ? this.selected : this.nodeAtPoint(e);
				if (node < 0) return;
				e.preventDefault();
				this.select(node);
				const place = this.placeOf(node);
				if (keyboard) this.events.menu(node, place.x + 8, place.y + ROW);
				else this.events.menu(node, e.clientX, e.clientY);
			});
			host.addEventListener("keydown", (e) => this.key(e));
			this.listenToPrinting();
			host.addEventListener("focus", () => this.repaint());
			host.addEventListener("blur", () => this.repaint());
		}

		/* A print shows the visible part, as wide as the paper, without scrolling
		 * or waiting for a frame. */
		listenToPrinting() {
			let top = 0;
			addEventListener("beforeprint", () => {
				top = this.host.scrollTop;
				this.paint();
				this.still = true;
			});
			addEventListener("afterprint", () => {
				this.still = false;
				this.host.scrollTop = top;
				this.resize();
			});
		}

		up() {
			return this.events.up();
		}

		/* Shows a graph, zoomed to the node @zoomed, with the matches @hits. A
		 * new graph clears the selection. */
		set(graph, zoomed, hits) {
			const same = graph === this.graph;
			if (!same) {
				this.graph = graph;
				this.selected = -1;
				this.hover = -1;
				this.zoomed = zoomed;
				this.jump();
			} else if (zoomed !== this.zoomed) {
				this.zoomed = zoomed;
				this.animate();
			}
			this.hits = hits;
			this.layout();
			if (!same) this.home();
			this.repaint();
		}

		view() {
			const g = this.graph;
			const a = g.start[this.zoomed];
			return [a, a + Math.max(g.total[this.zoomed], 1e-9)];
		}

		jump() {
			this.animation = null;
			[this.from, this.to] = this.view();
		}

		animate() {
			this.reveal(this.zoomed);
			if (ui.calm() || !this.width) return this.jump();
			const [from, to] = this.view();
			this.animation = { begin: 0, from: this.from, to: this.to, toFrom: from, toTo: to };
		}

		step(now) {
			const a = this.animation;
			if (!a) return;
			if (!a.begin) a.begin = now;
			const t = Math.min(1, (now - a.begin) / ZOOM_MS);
			const eased = 1 - (1 - t) ** 3;
			this.from = a.from + (a.toFrom - a.from) * eased;
			this.to = a.to + (a.toTo - a.to) * eased;
			if (t === 1) this.jump();
			else this.repaint();
		}

		/* The root node of the drawn part. */
		first() {
			return this.skip && this.graph.count > 1 ? 1 : 0;
		}

		/* ---- geometry ------------------------------------------------------------------- */

		resize() {
			const width = this.host.clientWidth;
			const height = this.host.clientHeight;
			if (!width || !height || this.still) return;
			const fresh = this.width === 0;
			/* The part at the lower edge stays there. */
			const below = this.up() ? this.total - this.height - this.host.scrollTop : 0;
			const ratio = window.devicePixelRatio || 1;
			this.width = width;
			this.height = height;
			this.ratio = ratio;
			this.canvas.width = Math.round(width * ratio);
			this.canvas.height = Math.round(height * ratio);
			this.image = new ImageData(this.canvas.width, this.canvas.height);
			this.pixels = new Uint32Array(this.image.data.buffer);
			this.row = new Uint32Array(this.canvas.width);
			this.canvas.style.width = width + "px";
			this.canvas.style.height = height + "px";
			this.layout();
			if (fresh) this.home();
			else if (this.up()) this.host.scrollTop = this.total - this.height - below;
			/* A canvas is blank after a change of its size: paint at once
			 * instead of in the next frame. */
			if (this.graph) this.paint();
		}

		layout() {
			if (!this.graph) return;
			this.total = Math.max((this.graph.levels.length - this.skip) * ROW + 1, this.height);
			this.spacer.style.height = Math.max(0, this.total - this.height) + "px";
		}

		home() {
			if (!this.graph || !this.height) return;
			this.host.scrollTop = this.up() ? this.total : 0;
			if (this.zoomed > 0) this.reveal(this.zoomed);
		}

		y(depth) {
			const row = depth - this.skip;
			const y = this.up() ? this.total - (row + 1) * ROW : row * ROW;
			return y - this.host.scrollTop;
		}

		reveal(node) {
			const y = this.y(this.graph.depth[node]);
			if (y >= 0 && y + ROW <= this.height) return;
			const margin = Math.min(this.height / 3, 3 * ROW);
			this.host.scrollTop += this.up() ? y + ROW + margin - this.height : y - margin;
		}

		placeOf(node) {
			const box = this.canvas.getBoundingClientRect();
			const scale = this.width / (this.to - this.from);
			const x = Math.max(0, (this.graph.start[node] - this.from) * scale);
			return { x: box.left + x, y: box.top + this.y(this.graph.depth[node]) };
		}

		nodeAtPoint(e) {
			const g = this.graph;
			if (!g || !this.width) return -1;
			const box = this.canvas.getBoundingClientRect();
			const y = e.clientY - box.top + this.host.scrollTop;
			const depth = Math.floor((this.up() ? this.total - y : y) / ROW) + this.skip;
			const level = g.levels[depth];
			if (!level) return -1;
			const x = this.from + ((e.clientX - box.left) / this.width) * (this.to - this.from);
			const i = firstAfter(g, level, x, 0);
			return i < level.length && g.start[level[i]] <= x ? level[i] : -1;
		}

		/* ---- pointer and keys ----------------------------------------------------------- */

		pointAt(e) {
			this.setHover(this.nodeAtPoint(e));
			ui.tooltip(this.hover < 0 ? null : this.graph, this.hover, e.clientX, e.clientY);
		}

		setHover(node) {
			if (node < 0) ui.tooltip(null);
			if (node === this.hover) return;
			this.hover = node;
			this.host.style.cursor = node < 0 ? "" : "pointer";
			this.repaint();
		}

		click(e) {
			const node = this.nodeAtPoint(e);
			if (node < 0) return;
			if (e.altKey || e.ctrlKey || e.metaKey) {
				if (node > 0) this.events.hide(this.graph.fn[node]);
				return;
			}
			this.select(node);
			this.events.zoom(node);
		}

		select(node) {
			this.selected = node;
			if (node >= 0) this.reveal(node);
			this.events.select(node);
			this.repaint();
		}

		/* The neighbour of a node: its parent, heaviest child or sibling; -1:
		 * none. */
		neighbour(node, direction) {
			const g = this.graph;
			const end = ui.ends(g);
			if (direction === "parent")
				return g.depth[node] > this.skip ? g.parent[node] : -1;
			if (direction === "child") {
				/* Children are sorted by weight, so the first is the heaviest. */
				for (let c = node + 1; c < end[node]; c = end[c]) if (g.total[c] > 0) return c;
				return -1;
			}
			const level = g.levels[g.depth[node]];
			const step = direction === "next" ? 1 : -1;
			const [from, to] = this.view();
			let i = firstAfter(g, level, g.start[node], 0);
			while (i < level.length && level[i] !== node) i++;
			/* Nodes that are only in the base run have no box. */
			do i += step;
			while (i >= 0 && i < level.length && !(g.total[level[i]] > 0));
			const n = level[i] ?? -1;
			return n >= 0 && g.start[n] < to && g.start[n] + g.total[n] > from ? n : -1;
		}

		key(e) {
			if (!this.graph || e.ctrlKey || e.metaKey || e.altKey) return;
			const node = this.selected >= 0 ? this.selected : Math.max(this.zoomed, this.first());
			const moves = {
				ArrowUp: this.up() ? "child" : "parent",
				ArrowDown: this.up() ? "parent" : "child",
				ArrowLeft: "previous",
				ArrowRight: "next",
			};
			if (moves[e.key]) {
				const to = this.selected < 0 ? node : this.neighbour(node, moves[e.key]);
				if (to >= 0) this.select(to);
			} else if (e.key === "Enter" || e.key === " ") {
				this.events.zoom(node);
			} else if (e.key === "Escape") {
				if (this.zoomed <= this.first()) return;
				const to = this.graph.parent[this.zoomed];
				this.select(to);
				this.events.zoom(to);
			} else if (e.key === "Delete" || e.key === "x" || e.key === "X") {
				if (node > 0) this.events.hide(this.graph.fn[node]);
			} else if (e.key === "ContextMenu" || (e.key === "F10" && e.shiftKey)) {
				const place = this.placeOf(node);
				this.events.menu(node, place.x + 8, place.y + ROW);
			} else return;
			e.preventDefault();
			e.stopPropagation();
		}

		/* ---- painting ------------------------------------------------------------------- */

		repaint() {
			if (this.frame) return;
			this.frame = requestAnimationFrame((now) => {
				this.frame = 0;
				this.step(now);
				this.paint();
			});
		}

		/*
		 * Boxes are written into pixels, one row for each level, which are put
		 * into the canvas at once: then their number does not matter, and all
		 * edges are sharp.
		 */
		paint() {
			if (!this.graph || !this.width || this.still) return;
			const c = this.context;
			const p = ui.palette();
			const labels = [];
			const first = Math.max(this.skip, this.depthAt(this.up() ? this.height : 0));
			const last = this.depthAt(this.up() ? 0 : this.height);
			this.pixels.fill(p.back32);
			for (let d = first; d <= last && d < this.graph.levels.length; d++) {
				this.row.fill(p.back32);
				this.collect(d, p, labels);
				this.copyRow(this.y(d));
			}
			c.putImageData(this.image, 0, 0);
			c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
			this.write(c, p, labels);
			this.outline(c, p);
			this.paints++;
		}

		copyRow(y) {
			const gap = Math.max(1, Math.floor(this.ratio));
			const from = Math.max(0, Math.round(y * this.ratio));
			const to = Math.min(this.canvas.height, Math.round((y + ROW) * this.ratio) - gap);
			const width = this.canvas.width;
			for (let at = from; at < to; at++) this.pixels.set(this.row, at * width);
		}

		depthAt(y) {
			const from = y + this.host.scrollTop;
			return Math.floor((this.up() ? this.total - from : from) / ROW) + this.skip;
		}

		/* Writes the boxes of one level into a row of pixels, and collects the
		 * places of their names. */
		collect(depth, p, labels) {
			const g = this.graph;
			const level = g.levels[depth];
			const width = this.canvas.width;
			const scale = width / (this.to - this.from);
			const y = this.y(depth);
			const gap = Math.max(1, Math.floor(this.ratio));
			/* A name needs at least three letters and the margins. */
			const room = (3 * this.charWidth + 2 * PAD) * this.ratio;
			let i = firstAfter(g, level, this.from, 0);
			while (i < level.length) {
				const n = level[i];
				const start = (g.start[n] - this.from) * scale;
				if (start >= width) break;
				/* only in the base run */
				if (!(g.total[n] > 0)) {
					i++;
					continue;
				}
				const end = start + g.total[n] * scale;
				if (end - start < 1) {
					i = this.merge(level, i, Math.max(0, Math.floor(start)), scale, p);
					continue;
				}
				const left = Math.max(0, Math.round(start));
				const right = Math.min(width, Math.round(end));
				const color = this.color(n);
				this.row.fill(this.rgb(p, color), left, right - left > 3 * gap ? right - gap : right);
				if (right - left >= room)
					labels.push(n, left / this.ratio, y, (right - left) / this.ratio, color === -2 ? 1 : 0);
				i++;
			}
		}

		/* Draws one pixel for all boxes that end within it, as strong as they
		 * fill it; returns the next node. */
		merge(level, i, x, scale, p) {
			const g = this.graph;
			const next = Math.max(i + 1, firstAfter(g, level, this.from + (x + 1) / scale, i));
			let color = this.color(level[i]);
			if (this.hits && color !== -1)
				for (let k = i + 1; k < next; k++)
					if (this.hits.hit[level[k]]) {
						color = -1;
						break;
					}
			const last = level[next - 1];
			const weight = g.start[last] + g.total[last] - g.start[level[i]];
			const full = Math.min(1, Math.max(0.3, weight * scale));
			this.row[x] = full === 1 ? this.rgb(p, color) : blend(p.back32, this.rgb(p, color), full);
			return next;
		}

		rgb(p, color) {
			return color === -1 ? p.hit32 : color === -2 ? p.dim32 : p.colors32[color];
		}

		color(n) {
			if (this.hits) return this.hits.hit[n] ? -1 : -2;
			return ui.colorOfNode(this.graph, n);
		}

		label(n) {
			const g = this.graph;
			const module = ui.kindOf(g.fn[n], false) === 3 ? ui.moduleName(g.fn[n]) : "";
			/* A function without a name is at least identified by its
			 * file. */
			const name = ui.name(g.fn[n]) + (module ? " in " + module : "");
			if (!g.baseTotal || n === 0) return name;
			const step = ui.diffStep(g.total[n], g.baseTotal[n]);
			return (step > 0 ? "+ " : step < 0 ? "− " : "") + name;
		}

		write(c, p, labels) {
			c.font = FONT;
			c.textBaseline = "middle";
			for (let pass = 0; pass < 2; pass++) {
				c.fillStyle = pass ? p.dimText : p.text;
				for (let i = 0; i < labels.length; i += 5)
					if (labels[i + 4] === pass) this.writeOne(c, labels, i);
			}
		}

		/* The sign of a difference stays at the front. */
		shorten(text, fits) {
			const sign = /^[+−] /.test(text) ? 2 : 0;
			return text.slice(0, sign) + pm.shorten(text.slice(sign), Math.max(1, fits - sign));
		}

		writeOne(c, labels, i) {
			const text = this.label(labels[i]);
			const room = labels[i + 3] - 2 * PAD;
			let fits = Math.floor(room / this.charWidth);
			let cut = this.shorten(text, fits);
			/* Wide characters take up to two places. */
			if (!/^[\x20-\x7e−…]*$/.test(cut))
				while (fits >= 3 && c.measureText(cut).width > room) cut = this.shorten(text, --fits);
			if (fits < 3) return;
			/* If there is little room, the sign of a difference is more
			 * useful than the sign and one letter. */
			if (fits < 5 && text.length > fits && /^[+−] /.test(text))
				return c.fillText(text[0], labels[i + 1] + PAD, labels[i + 2] + ROW / 2 - 0.5);
			c.fillText(cut, labels[i + 1] + PAD, labels[i + 2] + ROW / 2 - 0.5);
		}

		outline(c, p) {
			const g = this.graph;
			const scale = this.width / (this.to - this.from);
			const frame = (node, color, width) => {
				const x = Math.max(0, (g.start[node] - this.from) * scale);
				const right = Math.min(
					this.width,
					(g.start[node] + g.total[node] - this.from) * scale
				);
				if (right <= 0 || x >= this.width) return;
				c.strokeStyle = color;
				c.lineWidth = width;
				const inset = width / 2;
				c.strokeRect(
					x + inset,
					this.y(g.depth[node]) + inset,
					Math.max(1, right - x - 1 - width),
					ROW - 1 - width
				);
			};
			if (this.hover >= 0) frame(this.hover, p.line, 1);
			if (this.selected >= 0)
				frame(this.selected, document.activeElement === this.host ? p.accent : p.line, 2);
		}
	}

	ui.Flame = Flame;
	ui.FLAME_ROW = ROW;
})(pm);

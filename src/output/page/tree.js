/* SPDX-License-Identifier: MIT */
/*
 * The call tree as a tree of the document (role=tree), for screen readers. Children are
 * created when their parent is opened, a hundred at a time. All are siblings in the
 * document, with their level as an attribute: browsers cannot lay out a recursion of
 * 4,000 levels as nested elements.
 */
(function (pm) {
	"use strict";

	const ui = pm.ui;
	const BATCH = 100;
	const LONGEST = 300; /* letters of a name */
	const HOT = 0.5; /* open a single child as long as it has this share of its parent */
	let host, empty, cut, graph, hits;

	function children(node) {
		const end = ui.ends(graph);
		const list = [];
		for (let c = node + 1; c < end[node]; c = end[c])
			if (graph.total[c] > 0) list.push(c);
		return list;
	}

	/* The heaviest child comes first: if it is only in the base run, all are. */
	const hasChildren = (node) => ui.ends(graph)[node] > node + 1 && graph.total[node + 1] > 0;

	const nameOf = (node) => (node === 0 ? "all" : pm.shorten(ui.name(graph.fn[node]), LONGEST));

	function label(node) {
		const total = graph.total[0];
		const fn = graph.fn[node];
		const share = graph.total[node] / total;
		const bar = ui.el("i", { class: "bar" });
		bar.style.width = 100 * share + "%";
		const cells = [
			ui.el("span", { class: "number" }, ui.percent(graph.total[node], total), bar),
			ui.el("span", { class: "number", text: ui.percent(graph.self[node], total) }),
		];
		if (graph.baseTotal) {
			const d = (graph.total[node] - graph.baseTotal[node]) / total;
			cells.push(
				ui.el("span", {
					class: "number " + (d > 0.00005 ? "more" : d < -0.00005 ? "less" : "same"),
					text: ui.points(d),
				})
			);
		}
		const dot = ui.el("i", { class: "dot" });
		dot.style.background = ui.colorOfKind(ui.kindOf(fn, graph.inlined[node]));
		const name = ui.el(
			"span",
			{ class: "name" },
			ui.el("i", { class: "twist" }),
			dot,
			ui.el("span", {
				class: hits && hits.hit[node] ? "hit" : null,
				text: nameOf(node),
				title: ui.name(fn).length > LONGEST ? ui.name(fn) : null,
			}),
			graph.inlined[node] ? ui.el("span", { class: "muted", text: "\u00a0(inlined)" }) : null,
			ui.el("span", { class: "muted module", text: ui.moduleName(fn) })
		);
		name.style.setProperty("--depth", Math.min(graph.depth[node], 60));
		return ui.el("div", { class: "line" }, ...cells, name);
	}

	function row(depth, properties) {
		const level = String(depth + 1);
		return ui.el("li", { role: "treeitem", tabindex: "-1", "aria-level": level, ...properties });
	}

	function item(node, place, size, up) {
		const li = row(graph.depth[node], {
			"aria-setsize": String(size),
			"aria-posinset": String(place + 1),
			"aria-expanded": hasChildren(node) ? "false" : null,
		});
		const d = ui.describe(graph, node);
		li.setAttribute(
			"aria-label",
			[nameOf(node), d.where, ...d.numbers.map(([k, v]) => `${v} ${k}`)].filter(Boolean).join(", ")
		);
		li.node = node;
		li.up = up;
		li.append(label(node));
		return li;
	}

	/* The row that represents the children that have not been created yet. */
	function restOf(up, list, to) {
		const depth = graph.depth[list[0]];
		const name = ui.el("span", { class: "name", text: `${ui.count(list.length - to)} more …` });
		name.style.setProperty("--depth", Math.min(depth, 60) + 1);
		const rest = row(depth, { class: "rest" });
		rest.append(ui.el("div", { class: "line" }, name));
		rest.up = up;
		rest.more = () => {
			const last = rest.previousElementSibling;
			append(rest, up, list, to);
			rest.remove();
			focus(last.nextElementSibling);
		};
		return rest;
	}

	/* Inserts up to a hundred children of the row @up after the row @at. */
	function append(at, up, list, from) {
		const to = Math.min(list.length, from + BATCH);
		const fresh = list.slice(from, to).map((node, i) => item(node, from + i, list.length, up));
		if (to < list.length) fresh.push(restOf(up, list, to));
		at.after(...fresh);
	}

	function open(li) {
		if (li.getAttribute("aria-expanded") !== "false") return;
		li.setAttribute("aria-expanded", "true");
		append(li, li, children(li.node), 0);
	}

	/* The first row after @li that is not below it. */
	function behind(li) {
		const depth = graph.depth[li.node];
		let at = li.nextElementSibling;
		while (at && Number(at.getAttribute("aria-level")) > depth + 1) at = at.nextElementSibling;
		return at;
	}

	function close(li) {
		if (li.getAttribute("aria-expanded") !== "true") return;
		li.setAttribute("aria-expanded", "false");
		const end = behind(li);
		while (li.nextElementSibling !== end) li.nextElementSibling.remove();
	}

	const firstChild = (li) =>
		li.getAttribute("aria-expanded") === "true" ? li.nextElementSibling : null;

	/* Opens the heaviest path, as long as one child dominates. */
	function openHot(li) {
		for (let depth = 0; li && depth < 400; depth++) {
			open(li);
			const next = firstChild(li);
			if (!next || next.more || graph.total[next.node] < HOT * graph.total[li.node]) return;
			li = next;
		}
	}

	function focus(li, quiet) {
		if (!li) return;
		host.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
		li.setAttribute("tabindex", "0");
		if (quiet) return;
		li.focus({ preventScroll: true });
		li.firstChild.scrollIntoView({ block: "nearest" });
	}

	function key(e) {
		const li = e.target.closest("li");
		if (!li || e.ctrlKey || e.metaKey || e.altKey) return;
		const expanded = li.getAttribute("aria-expanded");
		if (e.key === "ArrowDown") focus(li.nextElementSibling);
		else if (e.key === "ArrowUp") focus(li.previousElementSibling);
		else if (e.key === "ArrowRight")
			if (expanded === "false") open(li);
			else focus(firstChild(li));
		else if (e.key === "ArrowLeft")
			if (expanded === "true") close(li);
			else focus(li.up);
		else if (e.key === "Home") focus(host.firstChild);
		else if (e.key === "End") focus(host.lastElementChild);
		else if (e.key === "*") openHot(li);
		else if (e.key === "Enter" || e.key === " ")
			if (li.more) li.more();
			else if (expanded === "true") close(li);
			else open(li);
		else if ((e.key === "ContextMenu" || (e.key === "F10" && e.shiftKey)) && !li.more) {
			const box = li.firstChild.getBoundingClientRect();
			menu(li, box.left + 120, box.bottom);
		} else return;
		e.preventDefault();
		e.stopPropagation();
	}

	function menu(li, x, y) {
		ui.menu(x, y, ui.nodeItems(graph, li.node, ui.state.invert, (node) =>
			ui.set({ tab: "flame", zoom: ui.pathOf(graph, node) })
		));
	}

	function build(section) {
		host = ui.el("ul", { role: "tree", class: "tree", "aria-label": "Call tree" });
		empty = ui.el("p", { class: "empty" });
		cut = ui.cutNote();
		host.addEventListener("keydown", key);
		host.addEventListener("click", (e) => {
			const li = e.target.closest("li");
			if (!li) return;
			if (li.more) return li.more();
			focus(li);
			if (li.getAttribute("aria-expanded") === "true") close(li);
			else open(li);
		});
		host.addEventListener("contextmenu", (e) => {
			const li = e.target.closest("li");
			if (!li || li.more || (e.clientX === 0 && e.clientY === 0)) return;
			e.preventDefault();
			focus(li);
			menu(li, e.clientX, e.clientY);
		});
		section.append(
			ui.el(
				"div",
				{ class: "line tree-head", "aria-hidden": "true" },
				ui.el("span", { class: "number", text: "Total" }),
				ui.el("span", { class: "number", text: "Self" }),
				ui.data.base ? ui.el("span", { class: "number", text: "Δ total" }) : null,
				ui.el("span", { class: "name", text: "Function" })
			),
			ui.el("div", { class: "scroll" }, empty, host),
			cut
		);
		if (ui.data.base) section.classList.add("diff");
	}

	function update() {
		const now = ui.graph();
		const found = ui.hits(now);
		if (now === graph && found === hits && host.dataset.theme === document.documentElement.dataset.theme)
			return;
		host.dataset.theme = document.documentElement.dataset.theme;
		graph = now;
		hits = found;
		empty.textContent = ui.whyEmpty(graph);
		empty.hidden = graph.total[0] > 0;
		cut.hidden = !graph.cut;
		host.hidden = !empty.hidden;
		const root = item(0, 0, 1, null);
		host.replaceChildren(root);
		openHot(root);
		focus(root, true);
	}

	/* Opens the path to the next match and goes there. */
	function match(direction) {
		if (!hits) return;
		const li = host.querySelector('[tabindex="0"]');
		const from = li && li.node !== undefined ? li.node : 0;
		for (let k = 1; k <= graph.count; k++) {
			const n = (((from + direction * k) % graph.count) + graph.count) % graph.count;
			if (hits.hit[n] && graph.total[n] > 0) return reveal(n);
		}
	}

	function reveal(node) {
		const path = [];
		for (let n = node; n >= 0; n = graph.parent[n]) path.push(n);
		let li = host.firstChild;
		for (const n of path.reverse().slice(1)) {
			open(li);
			let child = firstChild(li);
			while (child && child.node !== n) {
				const last = child.previousElementSibling;
				if (child.more) child.more();
				child = child.isConnected ? behind(child) : last.nextElementSibling;
			}
			if (!child) return;
			li = child;
		}
		focus(li);
	}

	ui.views.tree = { build, update, match, focus: () => host.querySelector('[tabindex="0"]')?.focus() };
})(pm);

/* SPDX-License-Identifier: MIT */
/*
 * Graphs of the page's data: flame graphs, sandwiches, and searches in them. Adds to
 * data.js, and node can run it, too. Nodes come after their parents; nothing recurses.
 */
(function (pm) {
	'use strict';

	const { sumUp, outermost, nameRanks } = pm;

	/*
	 * In an inverted graph, each stack has a separate chain for each of its ends. If
	 * that may need more than NODES_FEW nodes, the callers of nodes below
	 * LEAST_PERCENT, which is a tenth of a pixel, are left out; beyond the maximum,
	 * all outer callers are left out (graph.cut reports both).
	 */
	const NODES_FEW = 500000, LEAST_PERCENT = 0.005;
	const NODES_MAX = 2000000, STEPS_MAX = 40000000;

	/* ---- flame graphs ---------------------------------------------------------------------- */

	/* Nodes in the order of their creation; node 0 represents everything. */
	class Nodes {
		constructor(room, withBase) {
			this.count = 0;
			this.withBase = withBase;
			this.allocate(room);
		}
		allocate(room) {
			const grow = (Type, old) => {
				const array = new Type(room);

				if (old)
					array.set(old);
				return array;
			};

			this.room = room;
			this.fn = grow(Int32Array, this.fn);
			this.parent = grow(Int32Array, this.parent);
			this.inlined = grow(Uint8Array, this.inlined);
			/* Until the graph is finished, only of the stacks that end in the
			 * node. */
			this.self = grow(Float64Array, this.self);
			this.samples = grow(Float64Array, this.samples);
			this.baseSelf = this.withBase ? grow(Float64Array, this.baseSelf) : null;
			/* If inverted: the total. */
			this.through = grow(Float64Array, this.through);
		}
		add(parent, fn) {
			const id = this.count++;

			if (id === this.room)
				this.allocate(this.room * 2);
			this.fn[id] = fn;
			this.parent[id] = parent;
			this.inlined[id] = fn >= 0 ? 1 : 0;
			return id;
		}
	}

	/* Maps (node, function) to the child: open addressing, grows. */
	class Children {
		constructor(nodes, room) {
			let size = 1024;

			while (size < 2 * room)
				size *= 2;
			this.nodes = nodes;
			this.resize(size);
		}
		resize(size) {
			this.mask = size - 1;
			this.slots = new Int32Array(size);
			for (let id = 1; id < this.nodes.count; id++)
				this.slots[this.slot(this.nodes.parent[id], this.nodes.fn[id])] = id;
		}
		slot(parent, fn) {
			const nodes = this.nodes;
			let at = Math.imul(parent, 0x9e3779b1) ^ Math.imul(fn + 1, 0x85ebca6b);

			at ^= at >>> 15;
			for (at &= this.mask; this.slots[at] !== 0; at = (at + 1) & this.mask) {
				const id = this.slots[at];

				if (nodes.parent[id] === parent && nodes.fn[id] === fn)
					break;
			}
			return at;
		}
		get(parent, fn) {
			let at = this.slot(parent, fn);

			if (this.slots[at] !== 0)
				return this.slots[at];
			if (this.nodes.count * 2 > this.mask) {
				this.resize((this.mask + 1) * 2);
				at = this.slot(parent, fn);
			}
			return this.slots[at] = this.nodes.add(parent, fn);
		}
	}

	/* By path: whether it contains one of the functions, so that its samples are left
	 * out. */
	function hiddenPaths(data, hidden) {
		if (!hidden || hidden.size === 0)
			return null;
		const { count, parent, fn } = data.paths, skip = new Uint8Array(count);
		const functions = new Uint8Array(data.functions.count);

		for (const id of hidden)
			functions[id] = 1;
		for (let i = 0; i < count; i++)
			skip[i] = functions[fn[i]] || (parent[i] >= 0 && skip[parent[i]]);
		return skip;
	}

	/* The input of a graph: weights by path, without hidden functions. */
	function weights(data, sel, options) {
		const skip = hiddenPaths(data, options.hidden);
		const base = options.base || null;
		const work = {
			data, skip, base,
			collapse: !!options.collapse,
			root: typeof options.root === 'number' && options.root >= 0 ? options.root : -1,
			self: sel.self,
			samples: sel.count,
			/* The base file is scaled to the same total, unless both did the same
			 * work. */
			scale: !base || base.total <= 0 ? 0 :
				data.base && data.base.absolute ? 1 : sel.total / base.total,
		};

		work.sum = sumUp(data.paths, sel.self, skip);
		work.sumSamples = sumUp(data.paths, sel.count, skip);
		work.sumBase = base ? sumUp(data.paths, base.self, skip) : null;
		return work;
	}

	function topDown(work) {
		const { count, parent, fn, inlined } = work.data.paths;
		const nodes = new Nodes(count + 1, !!work.base);
		const children = new Children(nodes, count + 1);
		const nodeOf = new Int32Array(count);

		nodes.add(-1, -1);
		for (let i = 0; i < count; i++) {
			let above = parent[i] < 0 ? (work.root < 0 ? 0 : -1) : nodeOf[parent[i]];

			nodeOf[i] = -1;
			if ((work.skip && work.skip[i]) ||
			    (work.sumSamples[i] === 0 && !(work.base && work.sumBase[i] > 0)))
				continue;
			if (above < 0) {
				if (fn[i] !== work.root)
					continue;
				above = 0;
			}
			const id = work.collapse && nodes.fn[above] === fn[i] ? above
				: children.get(above, fn[i]);

			nodeOf[i] = id;
			nodes.inlined[id] &= inlined[i];
			nodes.self[id] += work.self[i];
			nodes.samples[id] += work.samples[i];
			if (work.base)
				nodes.baseSelf[id] += work.base.self[i] * work.scale;
		}
		nodes.cut = false;
		return nodes;
	}

	/*
	 * Stacks that are followed outwards. Those in the same node are adjacent; each
	 * has at most one successor, so that two sets of arrays are enough for all
	 * levels.
	 */
	function makeCursors(room, withBase) {
		return {
			count: 0,
			path: new Int32Array(room),
			node: new Int32Array(room),
			weight: new Float64Array(room),
			samples: new Float64Array(room),
			base: withBase ? new Float64Array(room) : null,
		};
	}

	function firstCursors(work) {
		const { count, fn } = work.data.paths;
		const outer = work.root < 0 ? null : outermost(work.data);
		const cursors = makeCursors(count, !!work.base);

		for (let i = 0; i < count; i++) {
			if (outer ? !outer[i] || fn[i] !== work.root : work.skip && work.skip[i])
				continue;
			const samples = outer ? work.sumSamples[i] : work.samples[i];
			const base = !work.base ? 0 : outer ? work.sumBase[i] : work.base.self[i];

			if (samples === 0 && base === 0)
				continue;
			const at = cursors.count++;

			cursors.path[at] = i;
			cursors.weight[at] = outer ? work.sum[i] : work.self[i];
			cursors.samples[at] = samples;
			if (work.base)
				cursors.base[at] = base * work.scale;
		}
		return cursors;
	}

	/* Adds the weight of a cursor that ends in @node. */
	function settle(nodes, node, cursors, i) {
		nodes.self[node] += cursors.weight[i];
		nodes.samples[node] += cursors.samples[i];
		if (cursors.base)
			nodes.baseSelf[node] += cursors.base[i];
	}

	/*
	 * Copies the cursors whose node is set to @to, in the order of their nodes, from
	 * @first on. Cursors of nodes with less weight than @least end there.
	 */
	function regroup(from, to, nodes, first, least) {
		const ends = new Uint32Array(nodes.count - first + 1);

		to.count = 0;
		for (let i = 0; i < from.count; i++) {
			if (from.node[i] < first)
				continue;
			if (nodes.through[from.node[i]] < least) {
				settle(nodes, from.node[i], from, i);
				from.node[i] = -1;
				nodes.cut = true;
			} else {
				ends[from.node[i] - first + 1]++;
				to.count++;
			}
		}
		for (let i = 1; i < ends.length; i++)
			ends[i] += ends[i - 1];
		for (let i = 0; i < from.count; i++) {
			if (from.node[i] < first)
				continue;
			const at = ends[from.node[i] - first]++;

			to.path[at] = from.path[i];
			to.node[at] = from.node[i];
			to.weight[at] = from.weight[i];
			to.samples[at] = from.samples[i];
			if (to.base)
				to.base[at] = from.base[i];
		}
	}

	/* The weight below which the callers of a node are left out. */
	function leastWeight(work, cursors) {
		const depth = work.data.paths.depth;
		let nodes = 0, weight = 0;

		for (let i = 0; i < cursors.count; i++) {
			nodes += depth[cursors.path[i]] + 1;
			weight += cursors.weight[i];
		}
		return nodes > NODES_FEW ? weight * LEAST_PERCENT / 100 : 0;
	}

	function inverted(work) {
		const { parent, fn, inlined } = work.data.paths;
		const nodes = new Nodes(1024, !!work.base);
		const childOf = new Int32Array(work.data.functions.count);
		const madeFor = new Int32Array(work.data.functions.count).fill(-1);
		let cursors = firstCursors(work), steps = 0;
		const least = leastWeight(work, cursors);
		let spare = makeCursors(cursors.count, !!work.base);

		nodes.add(-1, -1);
		nodes.cut = false;
		for (let level = 0; cursors.count > 0; level++) {
			const first = nodes.count;

			steps += cursors.count;
			if (nodes.count > NODES_MAX || steps > STEPS_MAX) {
				for (let i = 0; i < cursors.count; i++)
					settle(nodes, cursors.node[i], cursors, i);
				nodes.cut = true;
				break;
			}
			for (let i = 0; i < cursors.count; i++) {
				const node = cursors.node[i];
				let at = cursors.path[i];

				if (level > 0) {
					at = parent[at];
					for (; work.collapse && at >= 0 && fn[at] === nodes.fn[node]; steps++)
						at = parent[at];
				}
				if (at < 0) {
					settle(nodes, node, cursors, i);
					cursors.node[i] = -1;
					continue;
				}
				if (madeFor[fn[at]] !== node) {
					madeFor[fn[at]] = node;
					childOf[fn[at]] = nodes.add(node, fn[at]);
				}
				const child = childOf[fn[at]];

				nodes.inlined[child] &= inlined[at];
				nodes.through[child] += cursors.weight[i];
				cursors.path[i] = at;
				cursors.node[i] = child;
			}
			regroup(cursors, spare, nodes, first, least);
			[cursors, spare] = [spare, cursors];
		}
		return nodes;
	}

	/* The children of a node are order[first[node]] up to order[first[node + 1]], in
	 * this order. */
	function sortChildren(data, nodes, total) {
		const count = nodes.count, ranks = nameRanks(data);
		const first = new Uint32Array(count + 1), order = new Uint32Array(count);
		const fill = new Uint32Array(count);

		for (let i = 1; i < count; i++)
			first[nodes.parent[i] + 1]++;
		for (let i = 0; i < count; i++) {
			first[i + 1] += first[i];
			fill[i] = first[i];
		}
		for (let i = 1; i < count; i++)
			order[fill[nodes.parent[i]]++] = i;
		for (let i = 0; i < count; i++)
			if (first[i + 1] - first[i] > 1)
				order.subarray(first[i], first[i + 1]).sort((a, b) =>
					total[b] - total[a] || ranks[nodes.fn[a]] - ranks[nodes.fn[b]]);
		return { first, order };
	}

	function totals(nodes, self) {
		const total = self.slice(0, nodes.count);

		for (let i = nodes.count - 1; i > 0; i--)
			total[nodes.parent[i]] += total[i];
		return total;
	}

	function makeLevels(graph, deepest) {
		const fill = new Uint32Array(deepest + 1), levels = [];

		for (let i = 0; i < graph.count; i++)
			fill[graph.depth[i]]++;
		for (let i = 0; i <= deepest; i++) {
			levels.push(new Uint32Array(fill[i]));
			fill[i] = 0;
		}
		for (let i = 0; i < graph.count; i++)
			levels[graph.depth[i]][fill[graph.depth[i]]++] = i;
		return levels;
	}

	/* Nodes in preorder, heaviest children first, side by side from their parent's
	 * start. */
	function finish(data, nodes) {
		const count = nodes.count, withBase = nodes.withBase;
		const total = totals(nodes, nodes.self), samples = totals(nodes, nodes.samples);
		const baseTotal = withBase ? totals(nodes, nodes.baseSelf) : null;
		const { first, order } = sortChildren(data, nodes, total);
		const graph = {
			count,
			cut: nodes.cut,
			fn: new Int32Array(count),
			parent: new Int32Array(count),
			depth: new Uint32Array(count),
			start: new Float64Array(count),
			total: new Float64Array(count),
			self: new Float64Array(count),
			samples: new Float64Array(count),
			inlined: new Uint8Array(count),
			kind: new Uint8Array(count),
			baseTotal: withBase ? new Float64Array(count) : null,
			baseSelf: withBase ? new Float64Array(count) : null,
		};
		const next = first.slice(0, count), renamed = new Uint32Array(count);
		/* The start of the next child, by old id. */
		const edge = new Float64Array(count);
		let made = 0, deepest = 0;

		const put = (old, parent, start) => {
			const id = made++;

			renamed[old] = id;
			graph.fn[id] = nodes.fn[old];
			graph.parent[id] = parent;
			graph.depth[id] = parent < 0 ? 0 : graph.depth[parent] + 1;
			graph.start[id] = edge[old] = start;
			graph.total[id] = total[old];
			graph.self[id] = nodes.self[old];
			graph.samples[id] = samples[old];
			graph.inlined[id] = nodes.inlined[old];
			graph.kind[id] = nodes.fn[old] < 0 ? 0 : data.functions.kind[nodes.fn[old]];
			if (withBase) {
				graph.baseTotal[id] = baseTotal[old];
				graph.baseSelf[id] = nodes.baseSelf[old];
			}
			if (graph.depth[id] > deepest)
				deepest = graph.depth[id];
		};
		put(0, -1, 0);
		for (let at = 0; at >= 0;) {
			if (next[at] === first[at + 1]) {
				at = nodes.parent[at];
				continue;
			}
			const child = order[next[at]++];

			put(child, renamed[at], edge[at]);
			edge[at] += total[child];
			at = child;
		}
		graph.levels = makeLevels(graph, deepest);
		return graph;
	}

	/*
	 * @options: inverted; collapse: collapses direct recursion; root: only what the
	 * outermost calls of this function call, or, inverted, their callers; hidden:
	 * functions whose samples are left out, anywhere on the stack; base: a selection
	 * to compare with.
	 */
	function flame(data, sel, options) {
		const work = weights(data, sel, options || {});

		return finish(data, options && options.inverted ? inverted(work) : topDown(work));
	}

	function sandwich(data, sel, fn, options) {
		const with_ = (more) => Object.assign({}, options, { root: fn }, more);

		return {
			callers: flame(data, sel, with_({ inverted: true })),
			callees: flame(data, sel, with_({ inverted: false })),
		};
	}

	/* ---- search ---------------------------------------------------------------------------- */

	/*
	 * Finds the nodes of the functions for which @test holds. The weight is that of
	 * the outermost hits: it includes all nodes below them.
	 */
	function search(data, graph, test) {
		const asked = new Uint8Array(data.functions.count); /* 1: no, 2: yes */
		const hit = new Uint8Array(graph.count), under = new Uint8Array(graph.count);
		let weight = 0, count = 0;

		for (let i = 1; i < graph.count; i++) {
			const fn = graph.fn[i], parent = graph.parent[i];

			if (asked[fn] === 0)
				asked[fn] = test(fn) ? 2 : 1;
			under[i] = under[parent] | hit[parent];
			if (asked[fn] === 1)
				continue;
			hit[i] = 1;
			count++;
			if (!under[i])
				weight += graph.total[i];
		}
		const all = graph.count > 0 ? graph.total[0] : 0;

		return { hit, count, weight, percent: all > 0 ? 100 * weight / all : 0 };
	}

	Object.assign(pm, { flame, sandwich, search });
})(typeof require === 'function' ? require('./data.js') : pm);

/* SPDX-License-Identifier: MIT */
/*
 * The page's data: decoding, selecting, flame graphs, tables. Knows nothing of the document, so
 * that node can run it. Paths, and nodes of graphs, come after their parents; nothing recurses,
 * for a stack may have 100,000 frames.
 */
const pm = (function () {
	'use strict';

	/*
	 * Inverted, each stack has a chain of its own for each of its ends. Where that may come to
	 * more than NODES_FEW nodes, callers of what is below LEAST_PERCENT are left out, which is
	 * a tenth of a pixel; and beyond the maximum all outer callers (graph.cut tells of both).
	 */
	const NODES_FEW = 500000, LEAST_PERCENT = 0.005;
	const NODES_MAX = 2000000, STEPS_MAX = 40000000;
	const HEAT_COLUMNS_MAX = 400, HEAT_COLUMNS_FEW = 40;

	/* ---- decoding -------------------------------------------------------------------------- */

	const digits = new Uint8Array(128);
	for (let i = 0; i < 64; i++)
		digits['ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
			.charCodeAt(i)] = i;

	function bytesOf(text) {
		let length = text.length;

		if (length % 4 !== 0)
			throw new Error('the data of this page is damaged');
		while (length > 0 && text.charCodeAt(length - 1) === 61)
			length--;
		const bytes = new Uint8Array(Math.floor(length * 3 / 4));
		for (let i = 0, at = 0; i < length; i += 4) {
			const word = digits[text.charCodeAt(i) & 127] << 18 |
				digits[text.charCodeAt(i + 1) & 127] << 12 |
				(i + 2 < length ? digits[text.charCodeAt(i + 2) & 127] << 6 : 0) |
				(i + 3 < length ? digits[text.charCodeAt(i + 3) & 127] : 0);

			bytes[at++] = word >> 16;
			bytes[at++] = word >> 8 & 255;
			bytes[at++] = word & 255;
		}
		return bytes;
	}

	/* Unsigned LEB128. Beyond 2^53 the nearest number that there is. */
	class Varints {
		constructor(text) {
			this.bytes = bytesOf(text);
			this.at = 0;
		}
		next() {
			const bytes = this.bytes;
			let byte = bytes[this.at++], value = byte & 127, scale = 128;

			while (byte > 127) {
				byte = bytes[this.at++];
				value += (byte & 127) * scale;
				scale *= 128;
			}
			return value;
		}
		/* A byte past the end is undefined and ends any number: one look at the end will do. */
		end() {
			if (this.at !== this.bytes.length)
				throw new Error('the data of this page is damaged');
		}
	}

	function decodeFunctions(json) {
		const count = json.names.length;
		const module = new Int32Array(count), kind = new Uint8Array(count);
		const modules = new Varints(json.module), kinds = new Varints(json.kind);

		for (let i = 0; i < count; i++) {
			module[i] = modules.next() - 1;
			kind[i] = kinds.next();
		}
		modules.end();
		kinds.end();
		return { count, name: json.names, module, kind };
	}

	function decodePaths(json) {
		const count = json.count, input = new Varints(json.data);
		const paths = {
			count,
			parent: new Int32Array(count),
			fn: new Uint32Array(count),
			inlined: new Uint8Array(count),
			depth: new Uint32Array(count),
		};

		for (let i = 0; i < count; i++) {
			const back = input.next(), parent = back === 0 ? -1 : i - back;

			paths.parent[i] = parent;
			paths.fn[i] = input.next();
			paths.inlined[i] = input.next() & 1;
			paths.depth[i] = parent < 0 ? 0 : paths.depth[parent] + 1;
		}
		input.end();
		return paths;
	}

	function decodeCells(json) {
		const count = json.count, input = new Varints(json.data);
		const cells = {
			count,
			event: new Uint32Array(count),
			thread: new Uint32Array(count),
			path: new Uint32Array(count),
			stop: new Uint32Array(count),
			samples: new Float64Array(count),
			period: new Float64Array(count),
		};

		for (let i = 0; i < count; i++) {
			cells.event[i] = input.next();
			cells.thread[i] = input.next();
			cells.path[i] = input.next();
			cells.stop[i] = input.next();
			cells.samples[i] = input.next();
			cells.period[i] = input.next();
		}
		input.end();
		return cells;
	}

	function decodeSamples(json, cells) {
		const count = json.count, input = new Varints(json.data);
		const periods = json.periods === null ? null : new Varints(json.periods);
		const samples = {
			count,
			time: new Float64Array(count),
			cell: new Uint32Array(count),
			period: new Float64Array(count),
		};

		for (let i = 0, units = 0; i < count; i++) {
			units += input.next();
			const cell = input.next();

			samples.time[i] = units * json.unit_ns / 1e6;
			samples.cell[i] = cell;
			samples.period[i] = periods ? periods.next()
				: cells.period[cell] / cells.samples[cell];
		}
		input.end();
		if (periods)
			periods.end();
		return samples;
	}

	function decode(json) {
		if (json.format !== 'pmrec-page' || json.version !== 1)
			throw new Error('this is not the data of a pmrec page');
		const cells = decodeCells(json.cells);

		return {
			title: json.title,
			summary: json.summary,
			quality: json.quality,
			events: json.events,
			threads: json.threads,
			modules: json.modules,
			stops: json.stops,
			sources: json.sources,
			duration_ns: json.duration_ns,
			functions: decodeFunctions(json.functions),
			paths: decodePaths(json.paths),
			cells,
			base: json.base,
			baseCells: json.base ? decodeCells(json.base.cells) : null,
			samples: json.samples ? decodeSamples(json.samples, cells) : null,
			cache: {},
		};
	}

	/* ---- selections ------------------------------------------------------------------------ */

	/* One byte for each thread, or null for all of them. */
	function threadMask(data, threads) {
		if (!threads)
			return null;
		const mask = new Uint8Array(data.threads.length);

		for (const id of threads)
			mask[id] = 1;
		return mask;
	}

	/* The first sample at or after @ms; with @after, behind it. */
	function sampleAt(samples, ms, after) {
		let low = 0, high = samples.count;

		while (low < high) {
			const middle = (low + high) >>> 1, time = samples.time[middle];

			if (time < ms || (after && time === ms))
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}

	function inRange(filter) {
		return (filter.from !== null && filter.from !== undefined) ||
			(filter.to !== null && filter.to !== undefined);
	}

	/* Calls visit(cell, sample) for the samples of @filter, by time. */
	function eachSample(data, filter, visit) {
		const samples = data.samples, cells = data.cells;
		const mask = threadMask(data, filter.threads);
		const from = typeof filter.from === 'number' ? sampleAt(samples, filter.from, false) : 0;
		const to = typeof filter.to === 'number' ? sampleAt(samples, filter.to, true)
			: samples.count;

		for (let i = from; i < to; i++) {
			const cell = samples.cell[i];

			if (cells.event[cell] === filter.event && (!mask || mask[cells.thread[cell]]))
				visit(cell, i);
		}
	}

	/*
	 * The weights of what passes @filter, by path: periods and numbers of samples of those that
	 * end there. The range includes both ends; the file compared with has no times and is
	 * taken whole.
	 */
	function select(data, filter) {
		const cells = filter.base ? data.baseCells : data.cells;
		const self = new Float64Array(data.paths.count);
		const count = new Float64Array(data.paths.count);
		let total = 0, samples = 0;

		if (cells && !filter.base && data.samples && inRange(filter)) {
			eachSample(data, filter, (cell, i) => {
				const path = cells.path[cell], period = data.samples.period[i];

				self[path] += period;
				count[path]++;
				total += period;
				samples++;
			});
		} else if (cells) {
			const mask = threadMask(data, filter.threads);

			for (let i = 0; i < cells.count; i++) {
				if (cells.event[i] !== filter.event || (mask && !mask[cells.thread[i]]))
					continue;
				self[cells.path[i]] += cells.period[i];
				count[cells.path[i]] += cells.samples[i];
				total += cells.period[i];
				samples += cells.samples[i];
			}
		}
		return { self, count, total, samples };
	}

	/* @self of each path and what is below it; @skip marks paths that do not count. */
	function sumUp(paths, self, skip) {
		const sum = Float64Array.from(self);

		for (let i = paths.count - 1; i >= 0; i--) {
			if (skip && skip[i])
				sum[i] = 0;
			else if (paths.parent[i] >= 0)
				sum[paths.parent[i]] += sum[i];
		}
		return sum;
	}

	/* By path: whether it is the outermost call of its function on the stack. */
	function outermost(data) {
		if (data.cache.outermost)
			return data.cache.outermost;
		const { count, parent, fn } = data.paths;
		const first = new Int32Array(count).fill(-1), next = new Int32Array(count).fill(-1);
		const result = new Uint8Array(count), calls = new Uint32Array(data.functions.count);
		let roots = -1;

		for (let i = count - 1; i >= 0; i--) {
			if (parent[i] < 0) {
				next[i] = roots;
				roots = i;
			} else {
				next[i] = first[parent[i]];
				first[parent[i]] = i;
			}
		}
		for (let at = roots; at >= 0;) {
			if (calls[fn[at]]++ === 0)
				result[at] = 1;
			if (first[at] >= 0) {
				at = first[at];
				continue;
			}
			calls[fn[at]]--;
			while (next[at] < 0 && parent[at] >= 0) {
				at = parent[at];
				calls[fn[at]]--;
			}
			at = next[at];
		}
		data.cache.outermost = result;
		return result;
	}

	/* By function: its place among all names in order. */
	function nameRanks(data) {
		if (data.cache.ranks)
			return data.cache.ranks;
		const { count, name, module } = data.functions;
		const order = new Uint32Array(count), ranks = new Uint32Array(count);

		for (let i = 0; i < count; i++)
			order[i] = i;
		order.sort((a, b) => name[a] < name[b] ? -1 : name[a] > name[b] ? 1
			: module[a] - module[b] || a - b);
		for (let i = 0; i < count; i++)
			ranks[order[i]] = i;
		data.cache.ranks = ranks;
		return ranks;
	}

	/* ---- flame graphs ---------------------------------------------------------------------- */

	/* Nodes in order of their making; node 0 stands for everything. */
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
			/* until they are finished, of those that end in the node */
			this.self = grow(Float64Array, this.self);
			this.samples = grow(Float64Array, this.samples);
			this.baseSelf = this.withBase ? grow(Float64Array, this.baseSelf) : null;
			this.through = grow(Float64Array, this.through); /* inverted: the total */
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

	/* From (node, function) to the child: open addressing, grows. */
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

	/* By path: whether it has one of the functions, which leaves its samples out. */
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

	/* Everything a graph is made from: weights by path, without what is hidden. */
	function weights(data, sel, options) {
		const skip = hiddenPaths(data, options.hidden);
		const base = options.base || null;
		const work = {
			data, skip, base,
			collapse: !!options.collapse,
			root: typeof options.root === 'number' && options.root >= 0 ? options.root : -1,
			self: sel.self,
			samples: sel.count,
			/* The compared file counts as if it had as much in all. */
			scale: base && base.total > 0 ? sel.total / base.total : 0,
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
	 * Stacks to be followed outwards. Those in the same node lie side by side; each has at most
	 * one successor, so two sets of arrays do for all levels.
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

	/* What ends in @node. */
	function settle(nodes, node, cursors, i) {
		nodes.self[node] += cursors.weight[i];
		nodes.samples[node] += cursors.samples[i];
		if (cursors.base)
			nodes.baseSelf[node] += cursors.base[i];
	}

	/*
	 * Copies the cursors whose node is set to @to, in order of their nodes from @first on.
	 * Those of nodes below @least end there.
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

	/* Below which weight a node keeps its callers to itself. */
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

	/* Children of a node are order[first[node]] up to order[first[node + 1]], as they stand. */
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

	/* Nodes in preorder, heaviest children first, side by side from where their parent starts. */
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
		const edge = new Float64Array(count); /* where the next child starts, by old id */
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
	 * @options: inverted; collapse direct recursion; root: only what the outermost calls of this
	 * function call, or inverted, who calls them; hidden: functions whose samples are left out,
	 * wherever on the stack they are; base: a selection to compare with.
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

	/* ---- tables ---------------------------------------------------------------------------- */

	/* Functions, most self first; a sample counts once to a total, whatever the recursion. */
	function table(data, sel) {
		const { count, fn } = data.paths, functions = data.functions.count;
		const outer = outermost(data), ranks = nameRanks(data);
		const sum = sumUp(data.paths, sel.self, null);
		const sumSamples = sumUp(data.paths, sel.count, null);
		const self = new Float64Array(functions), total = new Float64Array(functions);
		const selfSamples = new Float64Array(functions);
		const totalSamples = new Float64Array(functions);

		for (let i = 0; i < count; i++) {
			self[fn[i]] += sel.self[i];
			selfSamples[fn[i]] += sel.count[i];
			if (outer[i]) {
				total[fn[i]] += sum[i];
				totalSamples[fn[i]] += sumSamples[i];
			}
		}
		const rows = [];

		for (let i = 0; i < functions; i++)
			if (totalSamples[i] > 0)
				rows.push(i);
		rows.sort((a, b) => self[b] - self[a] || total[b] - total[a] || ranks[a] - ranks[b]);
		const pick = (array) => Float64Array.from(rows, (id) => array[id]);

		return {
			fn: Uint32Array.from(rows),
			self: pick(self),
			total: pick(total),
			selfSamples: pick(selfSamples),
			totalSamples: pick(totalSamples),
		};
	}

	/*
	 * Nodes of the functions for which @test holds. The weight is that of the outermost of
	 * them: what is below a hit is in it already.
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

	/* ---- time ------------------------------------------------------------------------------ */

	/* The weight in each of @n equal parts of the recording; of all of it, whatever the range. */
	function bins(data, filter, n) {
		const perThread = new Map(), all = new Float64Array(n);
		const ms = data.duration_ns / 1e6;
		let max = 0;

		if (data.samples && ms > 0) {
			eachSample(data, { event: filter.event, threads: filter.threads }, (cell, i) => {
				const thread = data.cells.thread[cell], period = data.samples.period[i];
				const at = Math.min(n - 1, Math.floor(data.samples.time[i] / ms * n));
				let mine = perThread.get(thread);

				if (!mine)
					perThread.set(thread, mine = new Float64Array(n));
				mine[at] += period;
				all[at] += period;
			});
			for (const mine of perThread.values())
				for (let i = 0; i < n; i++)
					max = Math.max(max, mine[i]);
		}
		return { perThread, all, max };
	}

	/* A second where that gives a reasonable number of columns, else a round time. */
	function columnLength(ms) {
		if (ms >= HEAT_COLUMNS_FEW * 1000 && ms <= HEAT_COLUMNS_MAX * 1000)
			return 1000;
		const least = ms < HEAT_COLUMNS_FEW * 1000 ? ms / (2.5 * HEAT_COLUMNS_FEW)
			: ms / HEAT_COLUMNS_MAX;
		const power = Math.pow(10, Math.floor(Math.log10(least)));

		for (const step of [1, 2, 5])
			if (step * power >= least)
				return step * power;
		return 10 * power;
	}

	/* values[column * rows + row]; rows go from the column's begin to its end. */
	function heat(data, filter, rows) {
		const ms = data.duration_ns / 1e6;

		if (!data.samples || !(ms > 0))
			return { columns: 0, rows, values: new Float64Array(0), max: 0, columnMs: 0 };
		const columnMs = columnLength(ms), columns = Math.max(1, Math.ceil(ms / columnMs));
		const values = new Float64Array(columns * rows);
		let max = 0;

		eachSample(data, { event: filter.event, threads: filter.threads }, (cell, i) => {
			const place = Math.floor(data.samples.time[i] / columnMs * rows);
			const at = Math.min(columns * rows - 1, place);

			values[at] += data.samples.period[i];
			max = Math.max(max, values[at]);
		});
		return { columns, rows, values, max, columnMs };
	}

	/* ---- export ---------------------------------------------------------------------------- */

	/* Folded stacks: the format has no escaping, what would break a line is replaced. */
	function folded(data, sel) {
		const { count, parent, fn, inlined } = data.paths, suffixes = ['', '_[k]', '_[j]', ''];
		const names = data.functions.name.map((name, id) => name
			.replace(/;/g, ':').replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ') +
			suffixes[data.functions.kind[id]]);
		const lines = [];

		for (let i = 0; i < count; i++) {
			if (sel.count[i] === 0)
				continue;
			const frames = [];

			for (let at = i; at >= 0; at = parent[at])
				frames.push(names[fn[at]] +
					(inlined[at] && data.functions.kind[fn[at]] === 0 ? '_[i]' : ''));
			lines.push(frames.reverse().join(';') + ' ' + sel.count[i] + '\n');
		}
		return lines.sort().join('');
	}

	return { decode, select, flame, table, sandwich, search, bins, heat, folded };
})();

if (typeof module !== 'undefined' && module.exports)
	module.exports = pm;

/* SPDX-License-Identifier: MIT */
/*
 * The page's data: decoding, selections, tables, time. Does not use the document, so that
 * node can run it. Paths come after their parents; nothing recurses, because a stack may
 * have 100,000 frames.
 */
const pm = (function () {
	'use strict';

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

	/* Unsigned LEB128. Values above 2^53 become the nearest representable number. */
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
		/* A byte past the end is undefined and ends any number: one check at the
		 * end is enough. */
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

	/* The first sample at or after @ms; with @after, strictly after it. */
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

	/*
	 * Calls visit(cell, period, begin, end) for the samples of @filter, in order of
	 * time, with the period and the time that a sample represents. A sample is a
	 * moment, except a sample of blocked time: that is the interval that ends at its
	 * time, and only its overlap with the range counts.
	 */
	function eachSample(data, filter, visit) {
		const samples = data.samples, cells = data.cells;
		const mask = threadMask(data, filter.threads);
		const event = data.events[filter.event], blocked = event ? event.blocked : false;
		const low = typeof filter.from === 'number' ? filter.from : -Infinity;
		const high = typeof filter.to === 'number' ? filter.to : Infinity;
		const from = sampleAt(samples, low, false);
		/* An interval that ends after the range may have started in it. */
		const to = blocked ? samples.count : sampleAt(samples, high, true);

		for (let i = from; i < to; i++) {
			const cell = samples.cell[i], time = samples.time[i], period = samples.period[i];

			if (cells.event[cell] !== filter.event || (mask && !mask[cells.thread[cell]]))
				continue;
			if (!blocked) {
				visit(cell, period, time, time);
				continue;
			}
			const start = Math.max(time - period / 1e6, 0);
			const begin = Math.max(start, low), end = Math.min(time, high);

			/* An unclipped sample keeps its period, which is more precise
			 * than its times. */
			if (begin === start && end === time)
				visit(cell, period, begin, end);
			else if (begin < end)
				visit(cell, Math.min(period, Math.round((end - begin) * 1e6)), begin, end);
		}
	}

	/*
	 * Calls add(part, share of the period) for each of @n equal parts of @ms that
	 * overlaps the time from @begin to @end.
	 */
	function eachPart(begin, end, period, ms, n, add) {
		const partOf = (time) => Math.min(n - 1, Math.max(0, Math.floor(time / ms * n)));
		const first = partOf(begin), last = partOf(end);

		for (let part = first; part <= last; part++) {
			const inside = Math.min(end, (part + 1) * ms / n) - Math.max(begin, part * ms / n);

			add(part, first === last ? period
				: period * Math.max(0, inside) / (end - begin));
		}
	}

	/*
	 * The weights of the samples that pass @filter, by path: periods and numbers of
	 * the samples that end there. The range includes both ends; the base file has no
	 * times and always counts as a whole.
	 */
	function select(data, filter) {
		const cells = filter.base ? data.baseCells : data.cells;
		const self = new Float64Array(data.paths.count);
		const count = new Float64Array(data.paths.count);
		let total = 0, samples = 0;

		if (cells && !filter.base && data.samples && inRange(filter)) {
			eachSample(data, filter, (cell, period) => {
				const path = cells.path[cell];

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

	/* Sums @self of each path and the paths below it; @skip marks paths that do not
	 * count. */
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

	/* By function: its rank among all names in order. */
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

	/* ---- tables ---------------------------------------------------------------------------- */

	/* Functions, sorted by decreasing self weight; a sample counts once for a total,
	 * even with recursion. */
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

	/* ---- time ------------------------------------------------------------------------------ */

	/* The weight in each of @n equal parts of the whole recording, regardless of the
	 * range. */
	function bins(data, filter, n) {
		const perThread = new Map(), all = new Float64Array(n);
		const ms = data.duration_ns / 1e6;
		let max = 0;

		if (data.samples && ms > 0) {
			const wanted = { event: filter.event, threads: filter.threads };

			eachSample(data, wanted, (cell, period, begin, end) => {
				const thread = data.cells.thread[cell];
				let mine = perThread.get(thread);

				if (!mine)
					perThread.set(thread, mine = new Float64Array(n));
				eachPart(begin, end, period, ms, n, (part, share) => {
					mine[part] += share;
					all[part] += share;
				});
			});
			for (const mine of perThread.values())
				for (let i = 0; i < n; i++)
					max = Math.max(max, mine[i]);
		}
		return { perThread, all, max };
	}

	/* One second if that gives a reasonable number of columns, else a round time. */
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

	/* values[column * rows + row]; rows go from the column's start to its end. */
	function heat(data, filter, rows) {
		const ms = data.duration_ns / 1e6;

		if (!data.samples || !(ms > 0))
			return { columns: 0, rows, values: new Float64Array(0), max: 0, columnMs: 0 };
		const columnMs = columnLength(ms), columns = Math.max(1, Math.ceil(ms / columnMs));
		const values = new Float64Array(columns * rows);
		let max = 0;

		const wanted = { event: filter.event, threads: filter.threads };

		eachSample(data, wanted, (cell, period, begin, end) => {
			eachPart(begin, end, period, columns * columnMs, columns * rows, (part, share) => {
				values[part] += share;
				max = Math.max(max, values[part]);
			});
		});
		return { columns, rows, values, max, columnMs };
	}

	/* ---- export ---------------------------------------------------------------------------- */

	/*
	 * Folded stacks, except those with a function of the set @hidden. The format has
	 * no escaping: characters that would break a line are replaced.
	 */
	function folded(data, sel, hidden) {
		const { count, parent, fn, inlined } = data.paths, suffixes = ['', '_[k]', '_[j]', ''];
		const names = data.functions.name.map((name, id) => name
			.replace(/;/g, ':').replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ') +
			suffixes[data.functions.kind[id]]);
		const lines = [];

		for (let i = 0; i < count; i++) {
			if (sel.count[i] === 0)
				continue;
			const frames = [];
			let left_out = false;

			for (let at = i; at >= 0; at = parent[at]) {
				left_out ||= !!hidden && hidden.has(fn[at]);
				frames.push(names[fn[at]] +
					(inlined[at] && data.functions.kind[fn[at]] === 0 ? '_[i]' : ''));
			}
			if (!left_out)
				lines.push(frames.reverse().join(';') + ' ' + sel.count[i] + '\n');
		}
		return lines.sort().join('');
	}

	return { decode, select, sumUp, outermost, nameRanks, table, bins, heat, folded };
})();

if (typeof module !== 'undefined' && module.exports)
	module.exports = pm;

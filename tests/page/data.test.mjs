// SPDX-License-Identifier: MIT
// The page's data against what pmreport says of the same recording:
// data.test.mjs PMREPORT FOLDER-OF-THE-PAGE RECORDING [BASE]
// Prints a line of TAP for each comparison, in which nothing is rounded.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [pmreport, folder, recording, base] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const pm = require(folder + '/data.js');

require(folder + '/graph.js'); // adds to it

const run = (...args) => execFileSync(pmreport, args, { maxBuffer: 1 << 30, encoding: 'utf8' });
const ask = (...args) => JSON.parse(run('--json', ...args, recording));
const page = (...args) => {
	const html = run('--html', '-', ...args, recording);
	const data = /<script type="application\/json" id="pm-data">([^<]*)<\/script>/.exec(html);

	assert.ok(data, 'the page has its data');
	return pm.decode(JSON.parse(data[1]));
};

let number = 0, failed = 0;
function test(name, body) {
	try {
		body();
		console.log(`ok ${++number} ${name}`);
	} catch (error) {
		failed++;
		console.log(`not ok ${++number} ${name}\n# ` + String(error.stack).replace(/\n/g, '\n# '));
	}
}

const data = page();
const whole = { event: 0, threads: null, from: null, to: null };
const reports = ask().events;
const ofEvent = (event, args) => ask('--event', reports[event].name, ...args).events[0];

// A function as pmreport and as the page call it. Several may look the same: they are summed.
const moduleOf = (fn) => data.functions.module[fn] < 0 ? null
	: data.modules[data.functions.module[fn]].name;
const nameOf = (row) => row.function ?? (row.start ? `[${row.start}]` : '[unknown]');
const keyOf = (name, module) => `${name} ${module}`;
const pageKey = (fn) => keyOf(data.functions.name[fn], moduleOf(fn));
const add = (sums, key, ...values) => {
	const have = sums.get(key) ?? values.map(() => 0);

	sums.set(key, have.map((sum, i) => sum + values[i]));
};
const sorted = (sums) => [...sums].sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0);

function sameTables(report, selection) {
	const theirs = new Map(), ours = new Map(), table = pm.table(data, selection);

	for (const row of report.rows)
		add(theirs, keyOf(nameOf(row), row.module), row.self.samples, row.self.period,
			row.total.samples, row.total.period);
	for (let i = 0; i < table.fn.length; i++)
		add(ours, pageKey(table.fn[i]), table.selfSamples[i], table.self[i],
			table.totalSamples[i], table.total[i]);
	assert.ok(theirs.size > 0 || report.total.samples === 0);
	assert.deepEqual(sorted(ours), sorted(theirs));
	assert.equal(selection.samples, report.total.samples);
	assert.equal(selection.total, report.total.period);
}

// From the path of each node to its weight.
function sameGraphs(report, graph) {
	const theirs = new Map(), ours = new Map(), paths = [], mine = [''];

	for (const node of report.nodes) {
		const above = node.parent === null ? '' : paths[node.parent];

		paths.push(`${above}/${keyOf(nameOf(node), node.module)}`);
		add(theirs, paths[node.id], node.total.samples, node.total.period);
	}
	for (let i = 1; i < graph.count; i++) {
		mine.push(`${mine[graph.parent[i]]}/${pageKey(graph.fn[i])}`);
		add(ours, mine[i], graph.samples[i], graph.total[i]);
	}
	assert.ok(theirs.size > 0);
	assert.deepEqual(sorted(ours), sorted(theirs));
}

// What each graph promises: order, places, sums.
function isSound(graph) {
	const sums = new Float64Array(graph.count);
	let edge = null;

	for (let i = 1; i < graph.count; i++) {
		const parent = graph.parent[i];

		assert.ok(parent < i && graph.depth[i] === graph.depth[parent] + 1);
		assert.equal(graph.start[i], graph.start[parent] + sums[parent]);
		sums[parent] += graph.total[i];
		if (graph.parent[i - 1] === parent)
			assert.ok(graph.total[i] <= graph.total[i - 1]);
	}
	for (let i = 0; i < graph.count; i++)
		assert.equal(graph.total[i], graph.self[i] + sums[i]);
	graph.levels.forEach((level, depth) => {
		edge = -1;
		for (const id of level) {
			assert.equal(graph.depth[id], depth);
			assert.ok(graph.start[id] >= edge);
			edge = graph.start[id] + graph.total[id];
		}
	});
	assert.equal(graph.levels.reduce((sum, level) => sum + level.length, 0), graph.count);
	assert.equal(graph.cut, false);
}

test('the recording has what is to be compared', () => {
	assert.ok(data.events.length >= 2 && data.threads.length >= 3);
	assert.ok(data.paths.inlined.some((i) => i === 1), 'inlined functions');
	assert.ok(data.functions.name.includes('recurse'), 'recursion');
	assert.ok(data.samples.count > 200);
});

data.events.forEach((event, id) => {
	const filter = { ...whole, event: id }, selection = pm.select(data, filter);

	test(`event ${id}: the table`, () => {
		assert.equal(event.samples, reports[id].total.samples);
		sameTables(reports[id], selection);
	});
	test(`event ${id}: from the root`, () => {
		const graph = pm.flame(data, selection, {});

		isSound(graph);
		sameGraphs(ofEvent(id, ['--tree']), graph);
	});
	test(`event ${id}: from the samples`, () => {
		const graph = pm.flame(data, selection, { inverted: true });

		isSound(graph);
		sameGraphs(ofEvent(id, ['--bottom-up']), graph);
	});
	test(`event ${id}: each sample once`, () => {
		const all = pm.select(data, { ...filter, from: 0 });

		assert.equal(all.samples, selection.samples);
		assert.equal(all.total, selection.total);
		assert.deepEqual(all.self, selection.self);
	});
	test(`event ${id}: recursion collapsed`, () => {
		for (const inverted of [false, true]) {
			const graph = pm.flame(data, selection, { inverted, collapse: true });

			isSound(graph);
			assert.equal(graph.total[0], selection.total);
			for (let i = 1; i < graph.count; i++)
				assert.notEqual(graph.fn[i], graph.fn[graph.parent[i]]);
		}
	});
});

test('callers and callees', () => {
	const selection = pm.select(data, whole), names = data.functions.name;
	let asked = 0;

	for (const fn of pm.table(data, selection).fn) {
		if (!/^[a-z_]\w*$/.test(names[fn]) || names.indexOf(names[fn]) !== names.lastIndexOf(names[fn]))
			continue;
		const { callers, callees } = pm.sandwich(data, selection, fn, {});

		isSound(callers);
		isSound(callees);
		sameGraphs(ofEvent(0, ['--callers', names[fn]]), callers);
		sameGraphs(ofEvent(0, ['--callees', names[fn]]), callees);
		if (++asked === 6)
			break;
	}
	assert.ok(asked > 2);
	const recurse = names.indexOf('recurse');

	sameGraphs(ofEvent(0, ['--callers', 'recurse']),
		pm.sandwich(data, selection, recurse, {}).callers);
	sameGraphs(ofEvent(0, ['--callees', 'recurse']),
		pm.sandwich(data, selection, recurse, {}).callees);
});

test('parts of the time', () => {
	const { time, count } = data.samples, gaps = [];

	// pmreport knows nanoseconds, the page microseconds: ask where nothing is between.
	for (let i = 1; i < count; i++)
		if (time[i] - time[i - 1] > 0.01)
			gaps.push((time[i] + time[i - 1]) / 2);
	assert.ok(gaps.length > 10);
	for (const [a, b] of [[0.1, 0.4], [0.3, 0.35], [0.5, 0.95]]) {
		const from = gaps[Math.floor(gaps.length * a)], to = gaps[Math.floor(gaps.length * b)];
		const part = `${(from / 1000).toFixed(6)}-${(to / 1000).toFixed(6)}`;

		sameTables(ofEvent(0, ['--time', part]), pm.select(data, { ...whole, from, to }));
	}
	assert.ok(time[count - 1] * 1e6 <= data.duration_ns);
});

test('threads', () => {
	// Samples of threads that just ended have none: no option asks for those.
	for (const tid of new Set(data.threads.map((thread) => thread.tid).filter((tid) => tid !== null))) {
		const ids = [...data.threads.keys()].filter((id) => data.threads[id].tid === tid);
		const threads = new Set(ids);

		sameTables(ofEvent(0, ['--tid', String(tid)]), pm.select(data, { ...whole, threads }));
	}
});

test('options of pmreport choose what is on the page', () => {
	const other = page('--comm', 'worker', '--event', reports[0].name);
	const wanted = ofEvent(0, ['--comm', 'worker']);

	assert.equal(other.events.length, 1);
	assert.equal(other.events[0].samples, wanted.total.samples);
	assert.equal(pm.select(other, whole).total, wanted.total.period);
	assert.ok(other.threads.every((thread) => thread.comm === 'worker'));
	assert.equal(other.samples.count, wanted.total.samples);
});

test('hidden functions', () => {
	const selection = pm.select(data, whole), fn = data.functions.name.indexOf('recurse');
	const table = pm.table(data, selection), row = table.fn.indexOf(fn);

	for (const inverted of [false, true]) {
		const graph = pm.flame(data, selection, { inverted, hidden: new Set([fn]) });

		isSound(graph);
		assert.equal(graph.total[0], selection.total - table.total[row]);
		assert.ok(!graph.fn.includes(fn));
	}
});

test('search counts nothing twice', () => {
	const selection = pm.select(data, whole), table = pm.table(data, selection);

	for (const inverted of [false, true]) {
		const graph = pm.flame(data, selection, { inverted });

		for (let i = 0; i < table.fn.length; i++) {
			const found = pm.search(data, graph, (fn) => fn === table.fn[i]);

			assert.equal(found.weight, table.total[i]);
		}
		assert.equal(pm.search(data, graph, () => true).weight, selection.total);
	}
});

test('sources of hot functions', () => {
	const table = pm.table(data, pm.select(data, whole));
	const source = data.sources.find(({ function: fn }) => data.functions.name[fn].startsWith('recurse'));
	const at = table.fn.indexOf(source.function);
	const own = source.weights.filter(([event]) => event === 0);
	const add = (place) => own.reduce((sum, weight) => sum + weight[place], 0);

	assert.ok(source.file.endsWith('data-work.cc'));
	assert.equal(source.note, null);
	// Every line as it stands in the file.
	assert.ok(source.lines.some((line) => line.includes('recurse(n - 1)')));
	assert.deepEqual(source.lines, readFileSync(source.file, 'utf8').split('\n')
		.slice(source.first - 1, source.first - 1 + source.lines.length));
	assert.ok(add(2) > 0 && add(2) <= table.selfSamples[at] && add(3) <= table.self[at]);
	for (const [, line, , self, , total] of source.weights) {
		assert.ok(line >= source.first && line < source.first + source.lines.length);
		assert.ok(self <= total);
	}
	// What it calls itself for is on one of the lines where it does.
	const calls = own.filter(([, line]) => /recurse\(n - 1\)/.test(source.lines[line - source.first]));

	assert.ok(calls.some((weight) => weight[5] > weight[3]));
});

test('bins, heat map and folded stacks have it all', () => {
	const selection = pm.select(data, whole), sum = (array) => array.reduce((a, b) => a + b, 0);
	const bins = pm.bins(data, whole, 100), heat = pm.heat(data, whole, 50);

	assert.equal(sum(bins.all), selection.total);
	assert.equal([...bins.perThread.values()].reduce((a, b) => a + sum(b), 0), selection.total);
	assert.equal(sum(heat.values), selection.total);
	assert.equal(heat.values.length, heat.columns * heat.rows);
	assert.equal(Math.max(...heat.values), heat.max);
	assert.equal(sum(pm.folded(data, selection).trim().split('\n')
		.map((line) => +/ (\d+)$/.exec(line)[1])), selection.samples);
});

if (base) {
	const both = page('--diff', base);
	const report = JSON.parse(run('--json', '--event', reports[0].name, base)).events[0];
	const own = pm.select(both, whole), other = pm.select(both, { ...whole, base: true });
	const name = (fn) => both.functions.name[fn];
	const find = (table, fn) => table.fn.findIndex((id) => name(id) === fn);

	test('a comparison has both recordings, as they are', () => {
		assert.equal(own.total, reports[0].total.period);
		assert.equal(other.total, report.total.period);
		assert.equal(other.samples, report.total.samples);
		assert.equal(both.base.events[0].samples, report.total.samples);
		for (const fn of ['recurse', 'ask', 'touch']) {
			const rows = (table) => table.rows.filter((row) => row.function?.split('(')[0] === fn);
			const table = pm.table(both, other), row = find(table, rows(report)[0].function);

			assert.equal(rows(report).length, 1);
			assert.equal(table.total[row], rows(report)[0].total.period);
		}
	});
	test('functions of both are one, though the program is called otherwise', () => {
		assert.equal(both.functions.name.filter((n) => n.split('(')[0] === 'recurse').length, 1);
		assert.equal(both.threads.filter((thread) => thread.comm === 'worker').length, 2);
		assert.equal(both.threads.filter((thread) => thread.comm === 'leader').length, 1);
	});
	test('a compared graph is scaled to one total', () => {
		for (const inverted of [false, true]) {
			const graph = pm.flame(both, own, { inverted, base: other });
			const off = Math.abs(graph.baseTotal[0] - own.total);

			assert.ok(off <= own.total * 1e-9);
			for (let i = 1; i < graph.count; i++)
				assert.ok(graph.total[i] > 0 || graph.baseTotal[i] > 0);
		}
	});
}

console.log(`1..${number}`);
process.exit(failed > 0 ? 1 : 0);

// SPDX-License-Identifier: MIT
// Drives Chromium through all checks of the page: two of them at once, for each mostly waits.
// node drive.mjs PLAYWRIGHT CHROMIUM FOLDER: pages are FOLDER/*.html; each check's outcome goes
// to FOLDER/results/NAME ("ok", or why not), what it measured to FOLDER/results/NAME.notes.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { edges } from './edges.mjs';
import { ok, same, text, until, boxOf, state, rows, weakTexts, frames } from './check.mjs';

const [playwright, executablePath, folder] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(path.resolve(playwright));
const results = path.join(folder, 'results');
const report = JSON.parse(fs.readFileSync(path.join(folder, 'truth.report.json'), 'utf8'));
const counted = report.events[0].rows;
const url = (name, hash) => pathToFileURL(path.join(folder, name + '.html')).href + (hash ? '#' + hash : '');
const TABS = ['flame', 'table', 'sandwich', 'timeline', 'tree', 'source', 'run'];

/* → opens a page whose errors and requests are kept; `options` are those of a context. */
const openIn = (browser) => async (name, hash, options) => {
	const context = await browser.newContext({ viewport: { width: 1100, height: 700 }, ...options });
	const page = await context.newPage();
	page.setDefaultTimeout(60000);
	page.complaints = [];
	page.requests = [];
	page.on('console', (m) => page.complaints.push(`${m.type()}: ${m.text()}`));
	page.on('pageerror', (e) => page.complaints.push(e.stack));
	page.on('request', (r) => page.requests.push(r.url().split('#')[0]));
	await page.goto(url(name, hash));
	if (options?.javaScriptEnabled !== false)
		await until(page, 'first picture', () => performance.getEntriesByName('pm-first-paint').length);
	return page;
};

const launch = () =>
	chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
const first = await launch();
const open = openIn(first);

async function visitAll(page) {
	for (const tab of TABS) {
		await page.click('#tab-' + tab);
		ok(await page.isVisible('#view-' + tab), tab + ' is not shown');
	}
}

const share = (name, key) => {
	const row = counted.find((r) => r.function === name);
	ok(row, `the report has no ${name}`);
	return row[key].percent;
};

const checks = {
	async open() {
		const page = await open('truth');
		await visitAll(page);
		same(page.complaints, [], 'complaints');
		same(page.requests, [url('truth')], 'requests');
		ok((await text(page, '#title')).includes('./prog'), 'the command is the title');
		ok(/data quality/.test(await text(page, '#quality')), 'the badge');
		ok((await text(page, '#view-run')).includes('cpu-clock is sampled instead'), 'notes of the run');
		const narrow = await open('truth', '', { viewport: { width: 360, height: 640 } });
		for (const tab of TABS) {
			await narrow.click('#tab-' + tab);
			const wide = await narrow.evaluate(() => document.documentElement.scrollWidth);
			ok(wide <= 360, `${tab} is ${wide} px wide in 360`);
		}
		await narrow.context().close();
		return page;
	},

	async zoom() {
		const page = await open('truth');
		const at = await boxOf(page, 'sixty(int)');
		await page.mouse.click(at.x, at.y);
		await until(page, 'zoomed', () => document.querySelector('.crumbs').textContent.includes('sixty'));
		ok((await page.evaluate(() => location.hash)).includes('zoom='), 'the address has the zoom');
		await until(page, 'the box fills the width', () => {
			const { flame } = pm.ui;
			return Math.abs(flame.to - flame.from - flame.graph.total[flame.zoomed]) < 1e-6;
		});
		same(await text(page, '.details .name'), 'sixty(int)', 'details');
		ok((await text(page, '.details')).includes('50.0% total'), 'share: ' + (await text(page, '.details')));
		await page.goBack();
		await until(page, 'back is out again', () => pm.ui.flame.zoomed === 0);
		await page.goForward();
		await until(page, 'and forward in', () => pm.ui.flame.zoomed > 0);
		await page.click('.crumb >> nth=0');
		await until(page, 'out by the path', () => pm.ui.flame.zoomed === 0);
		const again = await boxOf(page, 'sixty(int)');
		await page.mouse.click(again.x, again.y, { button: 'right' });
		await page.click('#menu button:has-text("Hide")');
		await until(page, 'hidden', () => document.querySelector('#chips').textContent.includes('hidden: sixty'));
		same(await page.evaluate(() => pm.ui.graph().samples[0]), 40, 'samples without the hidden');
		return page;
	},

	async search() {
		const page = await open('truth');
		const matched = async (typed) => {
			await page.fill('#search', typed);
			await until(page, 'searched', ([t]) => pm.ui.state.search === t, typed);
			return text(page, '#matched');
		};
		for (const name of ['sixty(int)', 'main', 'fib', 'hot_inline'])
			same(
				await matched('^' + name.replace(/[()]/g, '\\$&') + '$'),
				share(name, 'total').toFixed(2) + '% matched',
				name
			);
		/* fib is below fib: what is under a match is not counted again. */
		same(await matched('fib|main'), (share('main', 'total')).toFixed(2) + '% matched', 'nested');
		same(await matched('nothing like this'), 'no match', 'no match');
		same(await matched('SIXTY'), '60.00% matched', 'any case');
		await page.click('#case');
		same(await text(page, '#matched'), 'no match', 'exact case');
		await page.click('#case');
		await page.fill('#search', 'si(xty');
		await until(page, 'error', () => document.querySelector('#search').ariaInvalid === 'true');
		ok(/group/i.test(await text(page, '#matched')), 'what is wrong: ' + (await text(page, '#matched')));
		await matched('sixty|fib');
		await page.focus('#search');
		const visited = [];
		for (const key of ['Enter', 'Enter', 'Shift+Enter']) {
			await page.keyboard.press(key);
			visited.push(await page.evaluate(() => pm.ui.flame.selected));
		}
		ok(visited[0] > 0 && visited[1] > visited[0], 'next is further: ' + visited);
		same(visited[2], visited[0], 'previous comes back');
		return page;
	},

	async invert() {
		const page = await open('truth');
		await page.keyboard.press('i');
		await until(page, 'inverted', () => pm.ui.state.invert && pm.ui.flame.graph === pm.ui.graph(true));
		const first = await page.evaluate(() => {
			const g = pm.ui.flame.graph;
			return [...g.levels[1]].map((n) => [pm.ui.name(g.fn[n]), g.samples[n]]).slice(0, 2);
		});
		same(first, [['sixty(int)', 60], ['ns::thirty', 20]], 'what costs most itself comes first');
		const callers = await page.evaluate(() => {
			const g = pm.ui.flame.graph;
			return [...g.levels[2]].filter((n) => g.parent[n] === 1).map((n) => [pm.ui.name(g.fn[n]), g.samples[n]]);
		});
		same(callers, [['main', 50], ['worker', 10]], 'its callers');
		await page.keyboard.press('i');
		await until(page, 'upright again', () => !pm.ui.state.invert);
		await page.goto(url('truth', 'tab=sandwich&focus=' + (await page.evaluate(() => pm.ui.data.functions.name.indexOf('ns::thirty')))));
		await until(page, 'callers', () => pm.ui.sandwichFlames?.callers.graph);
		ok((await text(page, '#focus-share')).startsWith('20.0% total, 20.0% self'), await text(page, '#focus-share'));
		return page;
	},

	async range() {
		const page = await open('truth', 'tab=timeline');
		/* The rows by thread are there, heaviest first. */
		same(await page.locator('.thread .name').allTextContents(), ['prog (10)', 'work er (11 of 10)'], 'threads');
		const box = await page.locator('.thread .strip').first().boundingBox();
		await page.mouse.move(box.x + 1, box.y + 10);
		await page.mouse.down();
		await page.mouse.move(box.x + box.width * 0.2, box.y + 10, { steps: 4 });
		await page.mouse.up();
		const [from, to] = [await state(page, 'from'), await state(page, 'to')];
		ok(from !== null && to > from && to < 45, `dragged: ${from} to ${to}`);
		const expected = await page.evaluate(([a, b]) => {
			const s = pm.ui.data.samples;
			let n = 0;
			for (let i = 0; i < s.count; i++)
				n += s.time[i] >= a && s.time[i] <= b && pm.ui.data.cells.event[s.cell[i]] === 0;
			return n;
		}, [from, to]);
		ok(expected > 5 && expected < 50, 'some of the samples: ' + expected);
		same(await text(page, '#chips .muted'), `${expected} of 100 samples`, 'told');
		await page.click('#tab-table');
		/* All of these were taken in sixty(), which the whole run has at 60 %. */
		same(await rows(page), [
			{ name: 'sixty(int)', self: '100.0%', total: '100.0%' },
			{ name: 'main', self: '0%', total: '100.0%' },
		], 'rows of the range');
		await page.click('#tab-flame');
		same(await page.evaluate(() => pm.ui.flame.graph.samples[0]), expected, 'the flame graph');
		await page.click('#chips .chip');
		await page.click('#tab-table');
		same((await rows(page))[0], { name: 'sixty(int)', self: '60.0%', total: '60.0%' }, 'all again');
		await page.evaluate(() => pm.ui.set({ threads: new Set([1]) }));
		ok((await rows(page)).some((r) => r.name === 'worker'), 'one thread');
		ok(!(await rows(page)).some((r) => r.name === 'main'), 'the other is left out');
		return page;
	},

	async sort() {
		const page = await open('truth', 'tab=table');
		const names = async () => (await rows(page)).map((r) => r.name);
		const byTotal = (list) => list.map((r) => parseFloat(r.total));
		same(await text(page, 'th[aria-sort=descending]'), 'Self ↓', 'by self first');
		same((await rows(page)).length, counted.length, 'rows');
		same(counted.filter((r) => !r.function).length, 1, 'rows without a name');
		for (const row of await rows(page)) {
			/* What has no symbol has no name in the report. */
			if (!counted.some((r) => r.function === row.name)) continue;
			same(parseFloat(row.self), share(row.name, 'self'), 'self of ' + row.name);
			same(parseFloat(row.total), share(row.name, 'total'), 'total of ' + row.name);
		}
		await page.click('th.c-total button');
		const totals = byTotal(await rows(page));
		same(totals, [...totals].sort((a, b) => b - a), 'by total');
		await page.click('th.c-name button');
		same(await names(), [...(await names())].sort(), 'by name');
		same(await page.getAttribute('th.c-name', 'aria-sort'), 'ascending', 'aria-sort');
		await page.click('th.c-name button');
		same(await names(), [...(await names())].sort().reverse(), 'reversed');
		await page.fill('#table-filter', 'sixty');
		await until(page, 'filtered', () => document.querySelectorAll('.functions tr[aria-rowindex]').length === 1);
		return page;
	},

	async keyboard() {
		const page = await open('truth');
		const press = async (...keys) => {
			for (const key of keys) await page.keyboard.press(key);
		};
		const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.className);
		await press('/');
		same(await focused(), 'search', '/');
		await page.keyboard.type('ns::');
		await press('Enter');
		same(await text(page, '#matched'), '20.00% matched', 'searched');
		await press('Escape');
		same([await state(page, 'search'), await focused()], ['', 'flame-host'], 'Escape leaves the search');
		await press('0', '1', 'ArrowUp', 'ArrowUp');
		same(await text(page, '.details .name'), 'main', 'up is deeper');
		await press('ArrowUp', 'ArrowRight');
		const second = await text(page, '.details .name');
		await press('ArrowLeft', 'Enter');
		ok((await text(page, '.crumb[aria-current]')) !== second, 'siblings');
		same(await text(page, '.crumb[aria-current]'), 'sixty(int)', 'Enter zooms');
		await press('Escape');
		same(await text(page, '.crumb[aria-current]'), 'main', 'Escape goes up');
		await press('Shift+F10');
		same(await page.evaluate(() => document.activeElement.getAttribute('role')), 'menuitem', 'menu');
		await press('ArrowDown', 'Escape');
		same(await focused(), 'flame-host', 'the menu gives the focus back');
		await press('2', 'ArrowDown', 'Enter');
		same([await state(page, 'tab'), await page.inputValue('#focus')], ['sandwich', 'ns::thirty'], 'callers of the second row');
		await press('5');
		same(await page.evaluate(() => document.activeElement.getAttribute('role')), 'treeitem', 'the tree');
		await press('ArrowRight', 'ArrowLeft');
		const item = () => page.evaluate(() => [
			document.activeElement.querySelector('.line .name').textContent.slice(0, 4),
			document.activeElement.ariaLevel,
			document.activeElement.ariaExpanded,
		]);
		same(await item(), ['main', '2', 'false'], 'main is closed');
		await press('ArrowRight', 'ArrowDown');
		same((await item())[1], '3', 'opened and entered');
		await press('?');
		ok(await page.isVisible('#keys'), 'help');
		await press('Escape');
		ok(!(await page.isVisible('#keys')), 'help is closed');
		await press('t');
		same(await state(page, 'tab'), 'source', 't');
		await press('T', 'T');
		same(await state(page, 'tab'), 'timeline', 'T');
		same(page.complaints, [], 'complaints');
		return page;
	},

	async contrast() {
		let looked = 0;
		for (const colorScheme of ['light', 'dark']) {
			const page = await open('diff', '', { colorScheme });
			const bright = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
			same(bright === 'rgb(255, 255, 255)', colorScheme === 'light', 'background ' + bright);
			await page.evaluate(() => pm.ui.set({ from: 1, to: 40, search: 'fib' }));
			for (const tab of TABS) {
				await page.click('#tab-' + tab);
				const found = await weakTexts(page);
				same(found.weak, [], `${tab}, ${colorScheme}`);
				looked += found.looked;
			}
			await page.keyboard.press('d');
			await page.keyboard.press('d');
			same(await page.evaluate(() => document.documentElement.dataset.theme), 'dark', 'chosen');
			// The browser writes down what a page stores after the page has gone on.
			let kept;
			for (let i = 0; i < 100 && kept !== 'dark'; i++) {
				await page.waitForTimeout(500);
				await page.reload();
				kept = await page.evaluate(() => document.documentElement.dataset.theme);
			}
			same(kept, 'dark', 'kept');
			await page.context().close();
		}
		ok(looked > 500, 'texts looked at: ' + looked);
		return null;
	},

	async hash() {
		const page = await open('truth');
		await page.keyboard.press('i');
		await page.fill('#search', 'thirty');
		await until(page, 'searched', () => pm.ui.state.search === 'thirty');
		await page.evaluate(() => pm.ui.set({ event: 1, threads: new Set([0]), from: 2, to: 150, collapse: true }));
		await page.click('#tab-tree');
		const before = await page.evaluate(() => [location.hash, document.querySelector('.tree').textContent]);
		await page.reload();
		await until(page, 'first picture', () => performance.getEntriesByName('pm-first-paint').length);
		same(await page.evaluate(() => [location.hash, document.querySelector('.tree').textContent]), before, 'the same after a reload');
		ok(/tab=tree/.test(before[0]) && /range=2\.000-150\.000/.test(before[0]), before[0]);
		same(await page.inputValue('#search'), 'thirty', 'the search box');
		ok(await page.isChecked('#invert'), 'inverted');
		await page.goBack();
		await until(page, 'back', () => pm.ui.state.tab === 'flame');
		/* What another page's address names and this one lacks is left out. */
		await page.goto(url('truth', 'tab=nonsense&event=99&threads=500.x&zoom=999999.1&hidden=77777&focus=1e9&source=9&range=9-1&sort=-evil'));
		await page.reload();
		await until(page, 'first picture', () => performance.getEntriesByName('pm-first-paint').length);
		same([await state(page, 'tab'), await state(page, 'event'), await state(page, 'hidden'), await state(page, 'focus')], ['flame', 0, [], null], 'nonsense');
		same(page.complaints, [], 'complaints');
		return page;
	},

	async hostile() {
		const page = await open('hostile');
		await visitAll(page);
		await page.click('#tab-flame');
		await page.evaluate(() => {
			const { flame } = pm.ui;
			for (let n = 0; n < flame.graph.count; n++) {
				flame.select(n);
				pm.ui.tooltip(flame.graph, n, 50, 50);
				pm.ui.set({ zoom: pm.ui.pathOf(flame.graph, n) }, true);
			}
			for (let fn = 0; fn < pm.ui.data.functions.count; fn++) pm.ui.set({ tab: 'sandwich', focus: fn, hidden: new Set([fn]) }, true);
			pm.ui.set({ tab: 'table', hidden: new Set() });
		});
		const names = (await rows(page)).map((r) => r.name);
		ok(names.some((n) => n.includes('<img src=x onerror=')), 'shown as text: ' + names.join(' | '));
		ok(names.some((n) => n.includes('</script><script>')), 'the end of a script');
		same(await page.evaluate(() => window.__pwned), undefined, 'a script of a name ran');
		same(await page.evaluate(() => document.querySelectorAll('img, svg, iframe, object').length), 0, 'elements made of names');
		same(page.complaints, [], 'complaints');
		same(page.requests, [url('hostile')], 'requests');
		await page.context().close();
		const plain = await open('hostile', '', { javaScriptEnabled: false });
		same(await plain.locator('img, svg, iframe').count(), 0, 'elements made of names without scripts');
		return plain;
	},

	async diff() {
		const page = await open('diff');
		ok((await text(page, '#title')).includes(' against '), 'both titles');
		ok(/more/.test(await text(page, '.legend')) && /less/.test(await text(page, '.legend')), 'legend');
		const labels = await page.evaluate(() => {
			const { flame } = pm.ui;
			const out = {};
			for (let n = 1; n < flame.graph.count; n++) out[pm.ui.name(flame.graph.fn[n])] ??= flame.label(n);
			return out;
		});
		/* The base lacks half of sixty()'s samples, so that it has grown and the others shrunk. */
		same([labels['sixty(int)'], labels['ns::thirty']], ['+ sixty(int)', '− ns::thirty'], 'signs');
		await page.click('#tab-table');
		const delta = (name) => page.locator(`.functions tr:has(.c-name:has-text("${name}")) .c-dself`).textContent();
		/* 60 of 100 against 30 of 70, 20 of 100 against 20 of 70 */
		same([await delta('sixty(int)'), await delta('ns::thirty')], ['+17.1', '−8.57'], 'points');
		await page.click('th.c-dself button');
		same((await rows(page))[0].name, 'sixty(int)', 'the largest change first');
		same(page.complaints, [], 'complaints');
		return page;
	},

	async many(note) {
		const page = await open('many');
		const first = await page.evaluate(() => performance.getEntriesByName('pm-first-paint')[0].startTime);
		const nodes = await page.evaluate(() => pm.ui.graph().count);
		ok(nodes >= 150000, 'nodes: ' + nodes);
		const scroll = await frames(page, 60, `(i) => { pm.ui.flame.host.scrollTop = (i * 37) % 600; }`);
		const zoom = await frames(page, 90, `(i) => {
			const g = pm.ui.graph();
			if (i % 15 === 0)
				pm.ui.set({ zoom: pm.ui.pathOf(g, g.levels[6 + (i / 15) * 3][i % 7] || 0) }, true);
		}`);
		const took = (code) => page.evaluate(`(() => { const t = performance.now(); ${code}; return performance.now() - t; })()`);
		const search = await took(`pm.ui.set({ search: 'merge', zoom: [] }, true)`);
		const table = await took(`pm.ui.set({ search: '', tab: 'table' }, true); document.body.offsetHeight`);
		/* The inverted graph would have millions of nodes: what is left out is told. */
		const told = async (changes) => {
			await page.evaluate((c) => pm.ui.set(c), { search: '', ...changes });
			return [await page.isVisible(`#view-${changes.tab} .cut`), await page.evaluate(() => pm.ui.graph().cut)];
		};
		same(await told({ tab: 'flame' }), [false, false], 'whole');
		same(await told({ tab: 'flame', invert: true }), [true, true], 'cut');
		same(await told({ tab: 'tree' }), [true, true], 'the tree of it');
		const ms = (n) => n.toFixed(0) + ' ms';
		note(`${nodes} nodes: first picture ${ms(first)}; frames (median, 95 %, most) scrolling ${scroll.map(ms).join(', ')}, zooming ${zoom.map(ms).join(', ')}; search ${ms(search)}, table ${ms(table)}`);
		/* Ten times what a quiet machine needs: only work that grows with a square fails here. */
		ok(first < 10000, 'first picture after ' + ms(first));
		ok(scroll[0] < 160 && zoom[0] < 160, `frames of ${ms(scroll[0])} and ${ms(zoom[0])}`);
		same(page.complaints, [], 'complaints');
		return page;
	},

	async noscript() {
		const page = await open('truth', '', { javaScriptEnabled: false });
		ok(!(await page.isVisible('#app')), 'what needs scripts is not shown');
		ok(await page.isVisible('table'), 'a table is');
		const all = await page.locator('table').first().innerText();
		for (const name of ['sixty(int)', 'ns::thirty', 'hot_inline', 'sys_read'])
			ok(all.includes(name), name + ' is missing in ' + all);
		same(page.complaints.filter((c) => !/script/i.test(c)), [], 'complaints');
		return page;
	},
};

async function run(browser, list) {
	for (const [name, check] of Object.entries(list)) {
		const notes = [];
		let outcome = 'ok';
		try {
			const page = await check((line) => notes.push(line));
			await page?.context().close();
		} catch (e) {
			outcome = e.stack;
			for (const c of browser.contexts()) await c.close();
		}
		fs.writeFileSync(path.join(results, name), outcome + '\n');
		fs.writeFileSync(path.join(results, name + '.notes'), notes.map((n) => n + '\n').join(''));
	}
	await browser.close();
}

fs.mkdirSync(results, { recursive: true });
const second = await launch();
await Promise.all([run(first, checks), run(second, edges(openIn(second)))]);

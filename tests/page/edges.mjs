// SPDX-License-Identifier: MIT
// Checks of the page at its edges: no samples, thousands of threads and levels, names that are
// long or turn the text around, paper, and what somebody without a mouse is left with.
import fs from 'node:fs';
import { ok, same, text, until, state } from './check.mjs';

const focused = (page) =>
	page.evaluate(() => {
		const e = document.activeElement;
		return e.dataset.keep || e.id || e.className || e.tagName;
	});

/* The row of the tree that has the focus: its name, level, place among how many, and whether open. */
const row = (page) =>
	page.evaluate(() => {
		const li = document.activeElement;
		const name = li.querySelector('.name').textContent;
		return [li.role, name, li.ariaLevel, `${li.ariaPosInSet}/${li.ariaSetSize}`, li.ariaExpanded];
	});

async function press(page, ...keys) {
	for (const key of keys) await page.keyboard.press(key);
}

const look = (page, ...tabs) => page.evaluate((l) => l.forEach((tab) => pm.ui.set({ tab })), tabs);

/* `open` as in drive.mjs. */
export const edges = (open) => ({
	async tree() {
		const page = await open('truth', 'tab=tree');
		const names = () => page.locator('.tree .name').allTextContents();
		const tabStops = () => page.locator('.tree [tabindex="0"]').count();
		same(await page.getAttribute('.tree', 'role'), 'tree', 'role');
		/* sixty() has more than half of main(), so it is open from the first. */
		same((await names()).slice(0, 3), ['all', 'mainprog', 'sixty(int)prog'], 'the heaviest path');
		await press(page, '5');
		same(await row(page), ['treeitem', 'all', '1', '1/1', 'true'], 'all');
		await press(page, 'ArrowDown');
		same(await row(page), ['treeitem', 'mainprog', '2', '1/4', 'true'], 'down');
		const opened = await names();
		await press(page, 'ArrowLeft');
		same((await row(page))[4], 'false', 'left closes');
		same((await names()).length, opened.length - 4, 'what was below is gone');
		await press(page, 'ArrowRight');
		same([await names(), (await row(page))[4]], [opened, 'true'], 'right opens');
		await press(page, 'ArrowRight', 'ArrowDown');
		same(await row(page), ['treeitem', 'ns::thirtyprog', '3', '2/4', null], 'into, and on');
		await press(page, 'ArrowUp');
		same((await row(page))[1], 'sixty(int)prog', 'up');
		await press(page, 'ArrowDown', 'ArrowLeft');
		same((await row(page))[1], 'mainprog', 'left of what is not open: its parent');
		await press(page, 'End');
		same((await row(page))[2], '2', 'the last');
		await press(page, 'Home');
		same((await row(page))[1], 'all', 'the first');
		await press(page, 'Enter');
		same([(await names()).length, await tabStops()], [1, 1], 'Enter closes');
		await press(page, '*');
		same(await names(), opened, '* opens the heaviest path');
		await press(page, 'ArrowDown', 'Shift+F10', 'Enter');
		same([await state(page, 'tab'), await focused(page)], ['flame', 'flame-host'], 'zoomed by the menu');
		ok((await text(page, '.crumb[aria-current]')) === 'main', 'into main');
		await press(page, '5');
		await page.fill('#search', 'hot_inline');
		await press(page, 'Enter');
		same((await row(page))[1], 'hot_inline\u00a0(inlined)prog', 'a match is gone to');
		same(await tabStops(), 1, 'one stop for the tabulator');
		ok(await page.evaluate(() => document.activeElement.ariaLabel.startsWith('hot_inline, prog · inlined, 10.0% total')), 'label');
		same(page.complaints, [], 'complaints');
		return page;
	},

	/* What had the focus is made anew or gone: it must not fall to the top of the page. */
	async focus() {
		const page = await open('edges', 'tab=source');
		const after = async (selector, ...keys) => {
			await page.locator(selector).first().focus();
			await press(page, ...keys);
			return focused(page);
		};
		same(await after('[data-keep=source-1]', 'Enter'), 'source-1', 'a source');
		await press(page, '4', '7', '4');
		same(await state(page, 'tab'), 'timeline', 'no box takes the digits');
		same(await after('[data-keep=thread-1]', 'Enter'), 'thread-1', 'a thread');
		same(await state(page, 'threads'), [1], 'is the only one');
		same(await after('.chip', 'Enter'), 'scroll', 'a chip leaves the view');
		await page.locator('#threads summary').click();
		same(await after('#threads [data-keep=box-0]', 'Space'), 'box-0', 'a box');
		await page.locator('#threads input[type=search]').focus();
		await press(page, 'Escape');
		same([await page.locator('#threads[open]').count(), await focused(page)], [0, 'SUMMARY'], 'Escape closes the list');
		await press(page, '0', '2', 'ArrowDown');
		same(await focused(page), 'functions', 'the table');
		const told = () => page.evaluate(() => {
			const row = document.getElementById(document.activeElement.getAttribute('aria-activedescendant'));
			return [row.ariaSelected, row.ariaRowIndex];
		});
		same(await told(), ['true', '3'], 'the row is told');
		await press(page, 'Enter');
		same(await focused(page), 'flame-host', 'callers of a row');
		await press(page, '7');
		same(await focused(page), 'scroll cards', 'the run');
		await press(page, '1', 'ArrowUp', 'ArrowUp', 'Shift+F10', 'End');
		same(await page.evaluate(() => document.activeElement.textContent), 'Copy stack', 'End of the menu');
		same(page.complaints, [], 'complaints');
		return page;
	},

	async selecting() {
		const page = await open('truth', 'tab=timeline');
		await page.fill('#range-from', '0.02');
		await press(page, 'Tab');
		await page.keyboard.type('0.06');
		await press(page, 'Enter');
		same([await state(page, 'from'), await state(page, 'to')], [20, 60], 'typed');
		await page.selectOption('#event', '0');
		await page.evaluate(() => pm.ui.set({ threads: new Set([0]), search: 'sixty', tab: 'flame' }));
		const [all, hit] = await page.evaluate(() => [pm.ui.graph().samples[0], pm.ui.hits(pm.ui.graph()).weight]);
		const expected = await page.evaluate(() => {
			const { samples, cells } = pm.ui.data;
			let n = 0;
			for (let i = 0; i < samples.count; i++)
				n += samples.time[i] >= 20 && samples.time[i] <= 60 &&
					cells.event[samples.cell[i]] === 0 && cells.thread[samples.cell[i]] === 0;
			return n;
		});
		ok(expected > 10 && expected < 60, 'some samples: ' + expected);
		same([all, hit > 0], [expected, true], 'range, thread, event and search together');
		await page.evaluate(() => pm.ui.set({ tab: 'timeline' }));
		await page.fill('#range-from', '50');
		await press(page, 'Enter');
		ok((await text(page, '#toast')).includes('No such range'), 'told: ' + (await text(page, '#toast')));
		same(await state(page, 'from'), 20, 'and left as it was');
		await page.evaluate(() => pm.ui.set({ event: 1, invert: true, focus: 2 }));
		await page.click('#reset');
		same(
			[await state(page, 'event'), await state(page, 'invert'), await state(page, 'from'), await state(page, 'threads'), await state(page, 'search')],
			[1, true, null, null, ''],
			'reset: what is looked at stays'
		);
		const go = async (hash) => {
			await page.evaluate((h) => void (location.hash = h), hash);
			await until(page, 'read', ([h]) => pm.ui.state.filter === h.slice(-1), hash);
			return [await state(page, 'from'), await state(page, 'to')];
		};
		same(await go('range=0.000-' + '9'.repeat(400) + '&filter=a'), [0, 200], 'no longer than the run');
		same(await go('range=900-999&threads=' + '9'.repeat(50) + '&zoom=' + '1.'.repeat(5000) + '&q=%00%ff&hidden=..&filter=b'), [null, null], 'garbage');
		same(page.complaints, [], 'complaints');
		return page;
	},

	async copies() {
		const page = await open('truth', '', { permissions: ['clipboard-read', 'clipboard-write'] });
		const copied = async (node, inverted) => {
			await page.evaluate(([name, turned]) => {
				const { ui } = pm;
				const g = ui.graph(turned);
				let n = g.count - 1;
				while (ui.name(g.fn[n]) !== name || !ui.stackText(g, n).includes('hot_inline')) n--;
				return ui.nodeItems(g, n, turned).find((item) => item[0] === 'Copy stack')[1]();
			}, [node, inverted]);
			return page.evaluate(() => navigator.clipboard.readText());
		};
		same(await copied('hot_inline', false), 'main\nten\nhot_inline', 'outermost first');
		same(await copied('main', true), 'main\nten\nhot_inline', 'whichever way it is drawn');
		const folded = async () => {
			await page.click('#options summary');
			const [file] = await Promise.all([page.waitForEvent('download'), page.click('#export')]);
			await page.click('#options summary');
			return fs.readFileSync(await file.path(), 'utf8');
		};
		const whole = await folded();
		ok(whole.includes('\nmain;sixty(int) 50\n') && whole.includes('main;ten;hot_inline_[i] 10\n'), whole);
		await page.evaluate(() => pm.ui.hide(pm.ui.data.functions.name.indexOf('sixty(int)')));
		same(await folded(), whole.split('\n').filter((l) => !l.includes('sixty')).join('\n'), 'without what is hidden');
		same(await text(page, '#chips .muted'), '40 of 100 samples', 'and that is told');
		return page;
	},

	async few() {
		for (const name of ['empty', 'lost']) {
			const page = await open(name);
			await look(page, 'timeline', 'source', 'run', 'flame');
			ok((await text(page, '#view-flame .empty')).includes('No sample was recorded'), name + ': why');
			await look(page, 'tree');
			ok((await text(page, '#view-tree .empty')).includes('No sample was recorded'), name + ': why no tree');
			await look(page, 'sandwich');
			ok(await page.isVisible('#view-sandwich .empty'), name + ': no callers');
			await look(page, 'table');
			same(await text(page, '#view-table [role=status]'), '0 functions', name);
			ok(await page.locator('#quality.bad').count(), name + ': the badge');
			await look(page, 'run');
			if (name === 'lost') ok((await text(page, '.quality')).includes('5000 samples were lost (100.0%)'), 'lost: told');
			await page.evaluate(() => pm.ui.set({ search: 'x', invert: true, tab: 'flame' }));
			await press(page, 'ArrowUp', 'Enter', 'Escape', 'n', 'x');
			same(page.complaints, [], name);
			await page.context().close();
		}
		const one = await open('one');
		await look(one, 'table', 'sandwich', 'timeline', 'tree', 'flame');
		same(await one.evaluate(() => [...pm.ui.graph().total].map((t) => pm.ui.percent(t, pm.ui.graph().total[0]))), ['100.0%', '100.0%', '100.0%'], 'one sample');
		same(one.complaints, [], 'one');
		return one;
	},

	/* 10,000 threads, 100 events. */
	async crowd() {
		const page = await open('crowd', 'tab=timeline');
		const rows = () => page.locator('.threads .thread').count();
		same(await rows(), 100, 'the heaviest');
		await page.click('[data-keep=more-threads]');
		same(await rows(), 200, 'a hundred more, not all');
		same(await page.locator('#event option').count(), 100, 'events');
		await page.selectOption('#event', '99');
		same(await page.evaluate(() => pm.ui.selection().samples), 100, 'of one event');
		await page.selectOption('#event', '0');
		await page.click('#threads summary');
		await page.fill('#threads input[type=search]', 't9999 ');
		await page.locator('#threads .boxes input').first().uncheck();
		same(await page.evaluate(() => pm.ui.selection().samples), 10099, 'all but one');
		await page.evaluate(() => pm.ui.readHash());
		same(await page.evaluate(() => pm.ui.state.threads.size), 9999, 'kept in the address');
		await look(page, 'run', 'table', 'flame');
		same(page.complaints, [], 'complaints');
		return page;
	},

	/* 4,096 levels; names that are long, or turn what stands behind them around. */
	async deep() {
		const page = await open('edges', 'tab=tree');
		ok(await page.evaluate(() => pm.ui.graph().levels.length) > 4000, 'deep');
		await page.fill('#search', 'deepest');
		await press(page, 'Enter');
		await until(page, 'the deepest', () => Number(document.activeElement.ariaLevel) > 4000);
		await press(page, 'Home', 'ArrowLeft');
		same(await page.locator('.tree li').count(), 1, 'closed');
		const shown = await page.evaluate(() => pm.ui.data.functions.name.find((n) => n.includes('evil')));
		same(shown, '\ufffdevil\ufffd\\x07\\x1b[31m', 'nothing turns around');
		await page.click('#tab-source');
		const list = await page.locator('.sources .name').allTextContents();
		ok(list.includes('…::_M_find_before_node'), 'by what it is called: ' + list);
		ok((await page.locator('.sources button').evaluateAll((l) => l.map((b) => b.title))).some((t) => t.startsWith('std::_Hashtable<std::__cxx11')), 'the whole name as title');
		same(await page.evaluate(() => [
			pm.shorten('f(int)', 6),
			pm.shorten('ns::f(int, char)', 10),
			pm.shorten('std::vector<std::pair<int, char>, A>::push_back(int const&)', 30),
			pm.shorten('a::b::c::deepest_of_all', 20),
			pm.shorten('a::operator()<int>(long, long, long)', 20),
			pm.shorten('a::operator-><int, int, int>', 20),
			pm.shorten('(anonymous namespace)::work(int)', 28),
			pm.shorten('<core::hash::Sip<S> as core::hash::Hasher>::write', 24),
			pm.shorten('std::a_name_that_is_long', 8),
			pm.shorten('x'.repeat(100000), 5),
			pm.shorten('<'.repeat(100000), 5),
		]), [
			'f(int)',
			'ns::f(…)',
			'std::vector<…>::push_back(…)',
			'…::c::deepest_of_all',
			'a::operator()<…>(…)',
			'a::operator-><…>',
			'…::work(…)',
			'<…Sip<…>>::write',
			'a_name_…',
			'xxxx…',
			'<…',
		], 'short names');
		await page.click('#tab-flame');
		await page.evaluate(() => {
			const g = pm.ui.graph();
			for (let n = 0; n < g.count; n++) if (pm.ui.name(g.fn[n]).length > 50000) return pm.ui.tooltip(g, n, 300, 300);
		});
		const box = await page.locator('#tooltip').boundingBox();
		ok(box.height < 250, `a tooltip of ${box.height} px`);
		same(page.complaints, [], 'complaints');
		return page;
	},

	async paper() {
		const page = await open('edges', '', { colorScheme: 'dark' });
		await page.evaluate(() => {
			pm.ui.flame.host.scrollTop -= 500;
			addEventListener('beforeprint', () => {
				const { canvas, context } = pm.ui.flame;
				window.printed = [document.documentElement.dataset.theme, ...context.getImageData(canvas.width - 2, 2, 1, 1).data];
			});
		});
		const view = () => page.evaluate(() => [pm.ui.flame.host.scrollTop, pm.ui.flame.width, document.documentElement.dataset.theme]);
		const before = await view();
		const pages = async () => (await page.pdf({ format: 'A4' })).toString('latin1').match(/\/Type\s*\/Page\b/g).length;
		same(await pages(), 1, 'sheets of a graph of 4,000 levels');
		same(await page.evaluate(() => window.printed), ['light', 255, 255, 255, 255], 'dark on white');
		await until(page, 'dark again', () => document.documentElement.dataset.theme === 'dark');
		same(await view(), before, 'as before');
		await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
		await page.emulateMedia({ media: 'print' });
		await page.setViewportSize({ width: 700, height: 1000 });
		const wide = await page.locator('#view-flame canvas').boundingBox();
		ok(wide.width <= 700 && wide.height > 100, `${wide.width} × ${wide.height} on 700 px of paper`);
		for (const hidden of ['#tabs', '#search', '#strip', '#theme']) ok(!(await page.isVisible(hidden)), hidden + ' is on paper');
		ok(await page.isVisible('#title'), 'the title is');
		return page;
	},

	async calm() {
		const page = await open('truth', '', { reducedMotion: 'reduce' });
		await press(page, '1', 'ArrowUp', 'ArrowUp', 'ArrowUp', 'Enter');
		same(await page.evaluate(() => [pm.ui.flame.zoomed > 0, pm.ui.flame.animation]), [true, null], 'no motion');
		const policy = await page.getAttribute('meta[http-equiv]', 'content');
		ok(!policy.includes('unsafe'), policy);
		/* The policy holds: neither a style nor a script of anybody else gets in. */
		await page.evaluate(() => {
			document.head.append(Object.assign(document.createElement('style'), { textContent: 'body { outline: 9px solid }' }));
			document.body.insertAdjacentHTML('beforeend', '<p style="outline: 9px solid" id="styled">x</p>');
		});
		same(await page.evaluate(() => ['body', '#styled'].map((s) => getComputedStyle(document.querySelector(s)).outlineStyle)), ['none', 'none'], 'foreign style');
		ok(page.complaints.some((c) => /Content Security Policy/.test(c)), 'the browser says so');
		return page;
	},
});

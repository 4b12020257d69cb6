// SPDX-License-Identifier: MIT
// What the checks of the page share: expectations, places of boxes, contrast.

export function ok(condition, text) {
	if (!condition) throw new Error(text);
}

export function same(found, expected, what) {
	const a = JSON.stringify(found);
	const b = JSON.stringify(expected);
	ok(a === b, `${what}: ${a}, not ${b}`);
}

export const text = (page, selector) =>
	page.locator(selector).first().evaluate((e) => e.textContent.trim());

/* Waits until what the page shows is so; says what it was if it never is. */
export async function until(page, what, test, ...args) {
	try {
		await page.waitForFunction(test, args, { timeout: 60000 });
	} catch {
		throw new Error(`never: ${what}`);
	}
}

/* The middle of the box of the first node with this name, when nothing moves any more. */
export async function boxOf(page, name) {
	await until(page, 'the graph rests', () => !pm.ui.flame.animation && !pm.ui.flame.frame);
	return page.evaluate((wanted) => {
		const { flame } = pm.ui;
		const g = flame.graph;
		for (let n = 1; n < g.count; n++) {
			if (pm.ui.name(g.fn[n]) !== wanted) continue;
			const scale = flame.width / (flame.to - flame.from);
			const place = flame.placeOf(n);
			return { x: place.x + Math.min(20, (g.total[n] * scale) / 2), y: place.y + 9 };
		}
		throw new Error('no box of ' + wanted);
	}, name);
}

export const state = (page, key) =>
	page.evaluate((k) => {
		const value = pm.ui.state[k];
		return value instanceof Set ? [...value] : value;
	}, key);

/* The rows of the table of functions that are in the document: name → [self, total]. */
export const rows = (page) =>
	page.evaluate(() =>
		[...document.querySelectorAll('.functions tbody tr[aria-rowindex]')].map((tr) => ({
			name: tr.querySelector('.c-name').textContent,
			self: tr.querySelector('.c-self').textContent,
			total: tr.querySelector('.c-total').textContent,
		}))
	);

/*
 * Every text that can be seen with its contrast (WCAG 2, 1.4.3), and the colours of boxes with
 * those of their names. → those below 4.5
 */
export const weakTexts = (page) =>
	page.evaluate(() => {
		const c = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
		const rgba = (color) => {
			c.clearRect(0, 0, 1, 1);
			c.fillStyle = color;
			c.fillRect(0, 0, 1, 1);
			return [...c.getImageData(0, 0, 1, 1).data];
		};
		const over = (top, under) => {
			const a = top[3] / 255;
			return [0, 1, 2].map((i) => top[i] * a + under[i] * (1 - a)).concat(255);
		};
		const luminance = (color) => {
			const [r, g, b] = color.map((v) => {
				const s = v / 255;
				return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
			});
			return 0.2126 * r + 0.7152 * g + 0.0722 * b;
		};
		const contrast = (a, b) => {
			const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
			return (x + 0.05) / (y + 0.05);
		};
		const behind = (element) => {
			const layers = [];
			for (let e = element; e; e = e.parentElement) {
				const color = rgba(getComputedStyle(e).backgroundColor);
				layers.push(color);
				if (color[3] === 255) break;
			}
			return layers.reduceRight((under, top) => over(top, under), [255, 255, 255, 255]);
		};
		const weak = [];
		let looked = 0;
		const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (walk.nextNode()) {
			const e = walk.currentNode.parentElement;
			if (!walk.currentNode.data.trim() || !e.checkVisibility({ checkVisibilityCSS: true }))
				continue;
			if (e.closest('script, style, noscript, option') || !e.getClientRects().length) continue;
			const back = behind(e);
			const ratio = contrast(over(rgba(getComputedStyle(e).color), back), back);
			looked++;
			if (ratio < 4.5)
				weak.push(`${walk.currentNode.data.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
		}
		const p = pm.ui.palette();
		const pairs = [...p.colors, p.hit].map((color) => [color, p.text]);
		pairs.push([p.dim, p.dimText]);
		for (const [back, front] of pairs) {
			looked++;
			const ratio = contrast(rgba(back), rgba(front));
			if (ratio < 4.5) weak.push(`box ${back}: ${ratio.toFixed(2)}`);
		}
		return { weak, looked };
	});

/*
 * Milliseconds between frames while `step(i)` runs in each: [median, 95 %, most]. The source goes
 * as text, for the page's policy forbids it to evaluate any.
 */
export const frames = (page, count, step) =>
	page.evaluate(`(async () => {
		const step = ${step};
		const list = [];
		let last = await new Promise(requestAnimationFrame);
		for (let i = 0; i < ${count}; i++) {
			step(i);
			const now = await new Promise(requestAnimationFrame);
			list.push(now - last);
			last = now;
		}
		list.sort((a, b) => a - b);
		return [list[${count} >> 1], list[Math.floor(${count} * 0.95)], list[${count} - 1]];
	})()`);

/* SPDX-License-Identifier: MIT */
/* Interaction for --flamegraph in a browser: zoom, search and details. The picture is
 * complete without it. */
(function () {
	"use strict";
	const root = document.documentElement, near = 0.0002; /* positions have 4 decimals */
	const byId = (id) => document.getElementById(id);
	/* In a comparison, with the sign in front. */
	const nameOf = (words) => {
		const sign = /^base [^]*: ([+−])[0-9.]+ points$/m.exec(words);

		return (sign ? sign[1] + " " : "") + words.split("\n")[0];
	};
	const frames = Array.from(byId("frames").children, (box) => ({
		box,
		rect: box.querySelector("rect"),
		text: box.querySelector("text"),
		words: box.querySelector("title").textContent,
		name: nameOf(box.querySelector("title").textContent),
		x: parseFloat(box.getAttribute("x")),
		width: parseFloat(box.getAttribute("width")),
		depth: +box.getAttribute("data-depth"),
	}));
	const details = byId("details"), matched = byId("matched"), input = byId("search");
	let zoomed = frames[0];

	/* Shows names if there is room for some letters. */
	function label(frame, share) {
		const room = share / 100 * root.clientWidth > 24;

		if (room && !frame.text) {
			frame.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
			frame.text.setAttribute("x", "3");
			frame.text.setAttribute("y", "12");
			frame.box.append(frame.text);
		}
		if (frame.text)
			frame.text.textContent = room ? frame.name.slice(0, share * 8) : "";
	}

	function zoom(to) {
		zoomed = to;
		for (const frame of frames) {
			const above = frame.depth < to.depth;
			const around = frame.x <= to.x + near &&
				frame.x + frame.width >= to.x + to.width - near;
			const inside = frame.x >= to.x - near &&
				frame.x + frame.width <= to.x + to.width + near;
			const shown = above ? around : inside;

			frame.box.style.display = shown ? "" : "none";
			if (!shown)
				continue;
			const share = above ? 100 : frame.width / to.width * 100;

			frame.box.setAttribute("x", above ? "0%" : (frame.x - to.x) / to.width * 100 + "%");
			frame.box.setAttribute("width", share + "%");
			frame.box.classList.toggle("above", above);
			label(frame, share);
		}
		byId("reset").style.display = to === frames[0] ? "none" : "";
		say(to);
	}

	function say(frame) {
		details.textContent = frame.words.replace(/\n/g, "   ");
	}

	/* The outermost hits include everything below them: that counts once. */
	function search() {
		let test = null, share = 0, inside = -1;

		input.setAttribute("aria-invalid", "false");
		try {
			test = input.value ? new RegExp(input.value, /[A-Z]/.test(input.value) ? "" : "i") : null;
		} catch (error) {
			input.setAttribute("aria-invalid", "true");
			matched.textContent = "not a regular expression";
			return;
		}
		for (const frame of frames) {
			const hit = test !== null && frame.depth > 0 && test.test(frame.name);

			frame.box.classList.toggle("hit", hit);
			if (inside >= 0 && frame.depth <= inside)
				inside = -1;
			if (hit && inside < 0) {
				share += frame.width;
				inside = frame.depth;
			}
		}
		root.classList.toggle("searching", test !== null);
		matched.textContent = test ? "matched " + share.toFixed(1) + "%" : "";
	}

	for (const frame of frames) {
		frame.box.setAttribute("tabindex", "-1");
		frame.box.addEventListener("click", () => zoom(frame));
		frame.box.addEventListener("mouseenter", () => say(frame));
		frame.box.addEventListener("mouseleave", () => say(zoomed));
	}
	byId("controls").style.display = "";
	byId("reset").addEventListener("click", () => zoom(frames[0]));
	input.addEventListener("input", search);
	addEventListener("resize", () => zoom(zoomed));
	addEventListener("scroll", () =>
		byId("head").setAttribute("transform", "translate(0," + Math.max(0, scrollY) + ")"));
	addEventListener("keydown", (event) => {
		if (event.key === "/" && event.target !== input) {
			input.focus();
			event.preventDefault();
		} else if (event.key === "Escape") {
			if (input.value) {
				input.value = "";
				search();
			} else {
				zoom(frames[0]);
			}
		}
	});
	zoom(frames[0]);
	/* Start at the root. */
	if (!byId("frames").hasAttribute("data-inverted"))
		scrollTo(0, root.getBoundingClientRect().height);
})();

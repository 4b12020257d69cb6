/* SPDX-License-Identifier: MIT */
/*
 * Foreign names as people can read them: nothing in them acts on what stands around, and the
 * long ones keep what tells them apart. Knows nothing of the document.
 */
(function (pm) {
	"use strict";

	/* ---- printable ---------------------------------------------------------------------- */

	/* Control characters but the tab, and what turns the direction of the text behind it. */
	const UNPRINTABLE =
		/[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

	const visible = (c) =>
		c > "\xff" ? "\ufffd" : "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0");

	/* All texts within @value, in place; → @value. Numbers and their arrays are left alone. */
	pm.printable = function (value) {
		if (typeof value === "string") return value.replace(UNPRINTABLE, visible);
		if (value !== null && typeof value === "object" && !ArrayBuffer.isView(value))
			for (const key of Object.keys(value)) value[key] = pm.printable(value[key]);
		return value;
	};

	/* ---- short -------------------------------------------------------------------------- */

	/* operator<, operator->, operator() … are no brackets; nor is what has no name. */
	const WHOLE =
		/(?:\boperator(?:<=>|->\*|<<=|>>=|<<|>>|<=|>=|->|\(\)|[<>-])?|\(anonymous namespace\)|->)/y;

	/* Empties the outermost pairs of brackets: f(int, char) becomes f(…). */
	function fold(text, open, close) {
		let out = "";
		let depth = 0;
		let start = 0;
		for (let i = 0; i < text.length; i++) {
			WHOLE.lastIndex = i;
			const whole = WHOLE.exec(text);
			if (whole) {
				if (depth === 0) out += whole[0];
				i += whole[0].length - 1;
			} else if (text[i] === open) {
				if (depth++ === 0) {
					out += open;
					start = i + 1;
				}
			} else if (text[i] === close && depth > 0) {
				if (--depth === 0) out += (i > start ? "…" : "") + close;
			} else if (depth === 0) out += text[i];
		}
		return depth > 0 ? out + "…" : out;
	}

	/* Where the bracket at the beginning is closed, and where " as " stands in it, or -1. */
	function qualified(text) {
		let depth = 0;
		let as = -1;
		for (let i = 0; i < text.length; i++) {
			if (text[i] === "<") depth++;
			else if (text[i] === ">" && text[i - 1] !== "-" && --depth === 0)
				return { end: i, as: as < 0 ? i : as };
			else if (depth === 1 && as < 0 && text.startsWith(" as ", i)) as = i;
		}
		return null;
	}

	/* Of Rust's <a::b::Type<T> as Trait>::f the type says most: <…Type<…>>::f. */
	function foldTemplates(text) {
		const parts = text[0] === "<" ? qualified(text) : null;
		if (!parts) return fold(text, "<", ">");
		const type = fold(text.slice(1, parts.as), "<", ">");
		const last = type.slice(type.lastIndexOf(":") + 1);
		return `<${last === type ? "" : "…"}${last}>${fold(text.slice(parts.end + 1), "<", ">")}`;
	}

	/*
	 * Of a::b::c the longest end from a :: on that has at most @fits characters, with a mark;
	 * or if c alone has more, its beginning.
	 */
	function withoutScope(text, fits) {
		let depth = 0;
		let last = 0;
		for (let i = 0; i < text.length; i++) {
			if ("<(".includes(text[i])) depth++;
			else if (">)".includes(text[i]) && depth > 0) depth--;
			else if (depth === 0 && text.startsWith("::", i)) {
				if (i > 0 && text.length - i < fits) return "…" + text.slice(i);
				last = i + 2;
			}
		}
		return text.length - last <= fits ? text.slice(last) : text.slice(last, last + fits - 1) + "…";
	}

	const kept = new Map(); /* name → [without arguments, nor those of templates] */

	/*
	 * @name with at most @fits characters. First go the arguments, then those of templates, then
	 * the scope: what a function is called by stands at the end.
	 */
	pm.shorten = function (name, fits) {
		if (name.length <= fits) return name;
		let steps = kept.get(name);
		if (!steps) {
			const bare = fold(name, "(", ")");
			steps = [bare, foldTemplates(bare)];
			kept.set(name, steps);
		}
		return steps.find((step) => step.length <= fits) ?? withoutScope(steps[1], fits);
	};
})(pm);

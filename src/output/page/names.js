/* SPDX-License-Identifier: MIT */
/*
 * Makes foreign names readable: they cannot affect the text around them, and long names
 * keep the part that distinguishes them. Does not use the document.
 */
(function (pm) {
	"use strict";

	/* ---- printable ---------------------------------------------------------------------- */

	/* Control characters except tab, and characters that change the direction of the
	 * text after them. */
	const UNPRINTABLE =
		/[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

	const visible = (c) =>
		c > "\xff" ? "\ufffd" : "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0");

	/* Replaces them in all texts within @value, in place; returns @value. Numbers and
	 * arrays of numbers stay as they are. */
	pm.printable = function (value) {
		if (typeof value === "string") return value.replace(UNPRINTABLE, visible);
		if (value !== null && typeof value === "object" && !ArrayBuffer.isView(value))
			for (const key of Object.keys(value)) value[key] = pm.printable(value[key]);
		return value;
	};

	/* ---- short -------------------------------------------------------------------------- */

	/* The characters of operator<, operator->, operator() … are not brackets; nor are
	 * those of anonymous namespaces. */
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

	/* Finds where the bracket at the start is closed, and where " as " is in it (if
	 * nowhere, the same place); null if it is not closed. */
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

	/* In Rust's <a::b::Type<T> as Trait>::f the type is the most useful part:
	 * <…Type<…>>::f. */
	function foldTemplates(text) {
		const parts = text[0] === "<" ? qualified(text) : null;
		if (!parts) return fold(text, "<", ">");
		const type = fold(text.slice(1, parts.as), "<", ">");
		const last = type.slice(type.lastIndexOf(":") + 1);
		return `<${last === type ? "" : "…"}${last}>${fold(text.slice(parts.end + 1), "<", ">")}`;
	}

	/*
	 * Of a::b::c, returns the longest part from a :: to the end that has at most
	 * @fits characters, with a mark; if c alone has more, its beginning.
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

	/* Name → [without arguments, also without template arguments]. */
	const kept = new Map();

	/*
	 * Shortens @name to at most @fits characters. First the arguments are removed,
	 * then those of templates, then the scope, because the function's own name is at
	 * the end.
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

// SPDX-License-Identifier: Apache-2.0

// What programs publish is any text. It is shown as text, and what cannot be seen in it,
// or turns what stands beside it around, is shown as an escape.
const unseen = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}|\p{M}{3,}/gu;

function escapeOf(text: string): string {
	let out = "";
	for (const c of text) {
		const code = c.codePointAt(0)!;
		out += c === "\n" ? "\\n" : c === "\t" ? "\\t" : code > 0xffff ? "\\u{" + code.toString(16) + "}" : "\\u" + code.toString(16).padStart(4, "0");
	}
	return out;
}

// visible returns the text with escapes for what cannot be seen.
export function visible(text: string): string {
	return text.replace(unseen, escapeOf);
}

// cut shortens a text to a number of characters, with an ellipsis.
export function cut(text: string, length: number): string {
	return text.length <= length ? text : text.slice(0, length - 1) + "…";
}

export const shown = 72; // characters of a value in lists

export function short(text: string, length = shown): string {
	// First cut, then escape: an escape is not torn, and a long text costs little.
	return text.length <= length ? visible(text) : visible(text.slice(0, length - 1)) + "…";
}

// baseName is the last part of a path.
export function baseName(path: string): string {
	return path.slice(path.lastIndexOf("/", path.length - 2) + 1);
}

export function duration(ns: number): string {
	for (const [unit, size] of [["h", 3.6e12], ["min", 6e10], ["s", 1e9], ["ms", 1e6], ["µs", 1e3]] as const) {
		if (ns >= size) {
			const n = ns / size;
			return (n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2)) + " " + unit;
		}
	}
	return ns === 0 ? "0" : ns.toFixed(0) + " ns";
}

export function percent(part: number, whole: number): string {
	return whole > 0 ? ((100 * part) / whole).toFixed(1) + " %" : "–";
}

export function count(n: number): string {
	return n.toLocaleString("en").replaceAll(",", " ");
}

export function bytes(n: number): string {
	return n >= 1 << 20 ? (n / (1 << 20)).toFixed(n >= 10 << 20 ? 0 : 1) + " MiB" : (n / 1024).toFixed(0) + " KiB";
}

const two = (n: number) => String(n).padStart(2, "0");

export function clock(ms: number, stepMs = 1000): string {
	const d = new Date(ms);
	const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
	return stepMs < 1000 ? time + "." + String(d.getMilliseconds()).padStart(3, "0") : time;
}

function day(ms: number): string {
	const d = new Date(ms);
	return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

// span tells a range of time to the second, with the days.
export function span(fromMs: number, toMs: number): string {
	const [from, to] = [day(fromMs), day(toMs)];
	const step = toMs - fromMs < 10_000 ? 1 : 1000;
	return `${from} ${clock(fromMs, step)} – ${from === to ? "" : to + " "}${clock(toMs, step)} (${duration((toMs - fromMs) * 1e6)})`;
}

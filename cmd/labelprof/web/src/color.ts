// SPDX-License-Identifier: Apache-2.0

import type { Frame, SeriesValue, Sides } from "./api";

const dark = matchMedia("(prefers-color-scheme: dark)");

export function onTheme(changed: () => void): void {
	dark.addEventListener("change", changed);
}

function hash(text: string): number {
	let h = 2166136261;
	for (let i = 0; i < text.length; i++) {
		h = Math.imul(h ^ text.charCodeAt(i), 16777619);
	}
	return h >>> 0;
}

function fill(hue: number, saturation: number, shade = 0): string {
	const lightness = dark.matches ? 30 + shade * 5 : 80 - shade * 6;
	return `hsl(${hue} ${dark.matches ? saturation * 0.62 : saturation}% ${lightness}%)`;
}

const typeHues: Record<string, number> = { kernel: 14, native: 38, go: 190, cpython: 212, v8js: 140, jvm: 280 };

// ofFrame is the colour of a frame by what the page is set to.
export function ofFrame(by: string, frame: Frame): string {
	const [name, module, type] = frame;
	const shade = (hash(name) % 100) / 100;
	switch (by) {
		case "function":
			return fill(hash(name) % 360, 58, (hash(module) % 100) / 100);
		case "module":
			return module === "" ? fill(0, 0) : fill(hash(module) % 360, 55, shade);
		default:
			return type === "" ? fill(0, 0, shade) : fill(typeHues[type] ?? hash(type) % 360, 60, shade);
	}
}

// ofType is the colour that frames of a type have, if the page is set to that.
export function ofType(type: string): string {
	return type === "" ? fill(0, 0) : fill(typeHues[type] ?? hash(type) % 360, 60, 0.5);
}

// ofDifference goes from blue, only in A, over grey to orange, only in B.
export function ofDifference(shares: Sides): string {
	const all = shares[0] + shares[1];
	const d = all > 0 ? (shares[1] - shares[0]) / all : 0;
	return fill(d < 0 ? 214 : 22, 78 * Math.min(1, Math.abs(d) * 1.15), Math.abs(d));
}

const palette = 8; // colours of the time strip; the CSS has them for both themes

// Palette gives the values of a label colours that stay, though others come to have more time.
export class Palette {
	private key = "";
	private colors = new Map<string, number>();

	// of returns the class for a value; what is no value is grey.
	of(key: string, value: SeriesValue): string {
		if (value.none || value.others) {
			return "series-other";
		}
		if (key !== this.key) {
			this.key = key;
			this.colors.clear();
		}
		let n = this.colors.get(value.text);
		if (n === undefined) {
			n = this.colors.size % palette;
			this.colors.set(value.text, n);
		}
		return "series-" + n;
	}
}

// SPDX-License-Identifier: Apache-2.0

import type { Answer } from "./api";
import { ofDifference, ofType } from "./color";
import { byId, el, reconcile, setText } from "./dom";
import { short } from "./text";

interface Meaning {
	key: string;
	text: string;
	color: string;
}

const listed = 8; // types, those of most time

// drawKey says what the colours of the flame graph mean, where they mean more than another name.
export function drawKey(answer: Answer, by: string, comparing: boolean): void {
	let meanings: Meaning[] = [];
	if (comparing) {
		const sides: [string, [number, number]][] = [["larger part of A", [1, 0]], ["of both alike", [1, 1]], ["larger part of B", [0, 1]]];
		meanings = sides.map(([text, side]) => ({ key: "side " + text, text, color: ofDifference(side) }));
	} else if (by === "type") {
		meanings = answer.types.values.slice(0, listed).map((v) => ({ key: "type " + v.text, text: v.text === "" ? "unknown" : short(v.text, 16), color: ofType(v.text) }));
	}
	const host = byId("key");
	host.hidden = meanings.length === 0;
	reconcile(host, meanings, (m) => m.key, () => el("li", {}, el("span", { class: "swatch", "aria-hidden": "true" }), el("bdi")), (item, m) => {
		item.querySelector<HTMLElement>(".swatch")!.style.background = m.color;
		setText(item.lastElementChild!, m.text);
	});
}

// SPDX-License-Identifier: Apache-2.0

import { sum, type Answer } from "./api";
import { button, byId, el, valueText, wholeButton } from "./dom";
import { shares, type FlameData } from "./flame";
import type { State } from "./state";
import { baseName, duration, percent, short } from "./text";

// Details is the line about one frame: the one under the pointer or with the focus, or
// else the one that the graph is zoomed to.
export class Details {
	private answer: Answer | null = null;
	private over: FlameData | null = null;

	constructor(private state: State) {}

	show(data: FlameData | null): void {
		this.over = data;
		this.draw();
	}

	update(answer: Answer): void {
		this.answer = answer;
		this.draw();
	}

	private draw(): void {
		const host = byId("details");
		const { answer } = this;
		if (!answer) {
			return;
		}
		const { tree } = answer;
		const zoomed = tree.zoom > 0 ? { frame: tree.frames[tree.frame[tree.zoom]], self: tree.self[tree.zoom], total: tree.total[tree.zoom] } : null;
		const d = this.over ?? zoomed ?? { frame: null, self: answer.tree.self[0] ?? [0, 0], total: answer.ns };
		const parts: (Node | string)[] = [];
		if (!d.frame) {
			parts.push(el("b", {}, "all"));
		} else if (d.frame[3]) {
			const value = { text: d.frame[0], none: d.frame[3] === "none", others: d.frame[3] === "others" };
			parts.push(el("b", {}, el("bdi", {}, short(this.state.get("group"), 60)), " = ", valueText(value)), wholeButton(d.frame[0]) ?? "");
		} else if (d.frame[0] !== "") {
			parts.push(el("b", {}, el("bdi", {}, short(d.frame[0], 160))), wholeButton(d.frame[0], 160) ?? "");
		} else {
			parts.push(el("i", {}, "no name"));
		}
		if (d.frame && d.frame[1] !== "") {
			parts.push(el("span", {}, el("bdi", { title: short(d.frame[1], 300) }, short(baseName(d.frame[1]), 48))));
		}
		if (d.frame && d.frame[2] !== "") {
			parts.push(el("span", {}, short(d.frame[2], 16)));
		}
		if (this.state.comparing() !== "") {
			const s = shares(answer, d.total);
			parts.push(el("span", { class: "side-a" }, "A " + percent(s[0], 1)), el("span", { class: "side-b" }, "B " + percent(s[1], 1)), el("span", {}, `${s[1] >= s[0] ? "+" : "−"}${Math.abs(100 * (s[1] - s[0])).toFixed(1)} points`));
		} else {
			parts.push(el("span", {}, `${percent(sum(d.total), sum(answer.ns))}, ${duration(sum(d.total))}`), el("span", {}, `self ${duration(sum(d.self))}`));
		}
		if (!this.over && zoomed) {
			const [fn, module, , group] = zoomed.frame;
			if (group === "value" || group === "none") {
				const key = this.state.get("group");
				parts.push(button("Only this", () => this.state.toggle(group === "none" ? "n." + key : "l." + key, fn)));
			} else if (fn !== "" && !group) {
				parts.push(button("Only this function", () => this.state.toggle("fn", fn)));
			}
			if (module !== "") {
				parts.push(button("Only this module", () => this.state.toggle("module", module)));
			}
		}
		host.replaceChildren(...parts);
	}
}

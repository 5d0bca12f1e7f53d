// SPDX-License-Identifier: Apache-2.0

import type { Answer } from "./api";
import { byId, el, setText } from "./dom";
import type { State } from "./state";
import { duration, short } from "./text";

// An option of a list; none stands for the absence of a label.
interface Choice {
	value: string;
	text: string;
}

// choices fills a list, unless it is open: it would be closed by that.
export function choices(list: HTMLSelectElement, options: Choice[], chosen: string): void {
	const key = JSON.stringify(options);
	if (list.dataset.options !== key && document.activeElement !== list) {
		list.dataset.options = key;
		list.replaceChildren(...options.map((o) => el("option", { value: o.value }, o.text)));
	}
	if (list.value !== chosen) {
		list.value = chosen;
	}
}

// Compare chooses a label key and two of its values.
export class Compare {
	private key = el("select", { id: "compare-key" });
	private a = el("select", { id: "compare-a" });
	private b = el("select", { id: "compare-b" });
	private sideA = el("label", { class: "side-a" }, "A ", this.a);
	private sideB = el("label", { class: "side-b" }, "B ", this.b);
	private swap = el("button", { type: "button" }, "Swap");
	private sums = el("span", { class: "hint" });
	private answer: Answer | null = null;

	constructor(private state: State) {
		byId("compare").append(el("label", {}, "Compare ", this.key), this.sideA, this.sideB, this.swap, this.sums);
		this.key.addEventListener("change", () => this.chooseKey());
		this.a.addEventListener("change", () => this.chooseSide("a", this.a.value));
		this.b.addEventListener("change", () => this.chooseSide("b", this.b.value));
		this.swap.addEventListener("click", () => {
			const side = (name: string) => (state.has(name) ? state.get(name) : null);
			state.change({ a: side("b"), b: side("a") });
		});
	}

	draw(answer: Answer): void {
		this.answer = answer;
		const { state } = this;
		const key = state.get("cmp");
		const on = state.has("cmp");
		const keys = answer.facets.filter((f) => f.key === key || f.values.length > 1 || f.values.some((v) => v.ns < f.ns)).map((f) => f.key);
		if (on && !keys.includes(key)) {
			keys.push(key);
		}
		choices(this.key, [{ value: "", text: "nothing" }, ...keys.map((k) => ({ value: "=" + k, text: short(k, 40) }))], on ? "=" + key : "");
		for (const e of [this.sideA, this.sideB, this.swap, this.sums]) {
			e.hidden = !on;
		}
		if (!on) {
			return;
		}
		for (const [list, name] of [[this.a, "a"], [this.b, "b"]] as const) {
			const chosen = state.has(name) ? "=" + state.get(name) : "";
			const values = this.values(key);
			if (state.has(name) && !values.includes(state.get(name))) {
				values.push(state.get(name));
			}
			choices(list, [{ value: "", text: "(none)" }, ...values.map((v) => ({ value: "=" + v, text: v === "" ? "(empty)" : short(v, 40) }))], chosen);
		}
		setText(this.sums, `${duration(answer.ns[0])} to ${duration(answer.ns[1])}; widths and colours compare shares`);
	}

	private values(key: string): string[] {
		return this.answer?.facets.find((f) => f.key === key)?.values.map((v) => v.text) ?? [];
	}

	private chooseKey(): void {
		if (this.key.value === "") {
			this.state.change({ cmp: null, a: null, b: null, zoom: null });
			return;
		}
		const key = this.key.value.slice(1);
		const [a, b] = this.values(key);
		this.state.change({ cmp: key, a: a ?? null, b: b ?? null, zoom: null });
	}

	private chooseSide(name: string, value: string): void {
		this.state.change({ [name]: value === "" ? null : value.slice(1) });
	}
}

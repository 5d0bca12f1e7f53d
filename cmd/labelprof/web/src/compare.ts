// SPDX-License-Identifier: Apache-2.0

import type { Answer } from "./api";
import { button, byId, el, setText } from "./dom";
import type { State } from "./state";
import { clock, duration, short } from "./text";

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

const times = "times"; // of the list: no key, which begins with =

// Compare chooses a label key and two of its values, or two ranges of time, which are set on the
// strip of time.
export class Compare {
	private key = el("select", { id: "compare-key" });
	private a = el("select", { id: "compare-a" });
	private b = el("select", { id: "compare-b" });
	private sideA = el("label", { class: "side-a" }, "A ", this.a);
	private sideB = el("label", { class: "side-b" }, "B ", this.b);
	private swap = el("button", { type: "button" }, "Swap");
	private sums = el("span", { class: "hint" });
	private answer: Answer | null = null;
	private drag = el("span", { class: "drag", role: "group", "aria-label": "What dragging over the time sets" });

	constructor(private state: State, side: () => "a" | "b", choose: (side: "a" | "b") => void) {
		byId("compare").append(el("label", {}, "Compare ", this.key), this.sideA, this.sideB, this.drag, this.swap, this.sums);
		for (const name of ["a", "b"] as const) {
			const b = button("", () => choose(name), { class: "side-" + name, "data-side": name });
			this.drag.append(b);
		}
		this.chosen = side;
		this.key.addEventListener("change", () => this.chooseKey());
		this.a.addEventListener("change", () => this.chooseSide("a", this.a.value));
		this.b.addEventListener("change", () => this.chooseSide("b", this.b.value));
		this.swap.addEventListener("click", () => {
			const side = (name: string) => (state.has(name) ? state.get(name) : null);
			if (state.comparing() === "times") {
				state.change({ afrom: side("bfrom"), ato: side("bto"), bfrom: side("afrom"), bto: side("ato") });
			} else {
				state.change({ a: side("b"), b: side("a") });
			}
		});
	}

	private chosen: () => "a" | "b";

	draw(answer: Answer): void {
		this.answer = answer;
		const { state } = this;
		const byTime = state.comparing() === "times";
		const key = state.get("cmp");
		const on = state.comparing() === "label";
		const keys = answer.facets.filter((f) => f.key === key || f.values.length > 1 || f.values.some((v) => v.ns < f.ns)).map((f) => f.key);
		if (on && !keys.includes(key)) {
			keys.push(key);
		}
		choices(this.key, [{ value: "", text: "nothing" }, { value: times, text: "two times" }, ...keys.map((k) => ({ value: "=" + k, text: short(k, 40) }))], byTime ? times : on ? "=" + key : "");
		this.sideA.hidden = this.sideB.hidden = !on;
		this.drag.hidden = !byTime;
		this.swap.hidden = this.sums.hidden = !on && !byTime;
		setText(this.sums, `A ${duration(answer.ns[0])}, B ${duration(answer.ns[1])}; widths and colours compare parts of these`);
		for (const b of this.drag.querySelectorAll("button")) {
			const name = b.dataset.side as "a" | "b";
			b.setAttribute("aria-pressed", String(this.chosen() === name));
			setText(b, byTime ? `${name.toUpperCase()} ${clock(Number(state.get(name + "from")))} – ${clock(Number(state.get(name + "to")))}` : "");
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
	}

	private values(key: string): string[] {
		return this.answer?.facets.find((f) => f.key === key)?.values.map((v) => v.text) ?? [];
	}

	private chooseKey(): void {
		const none = { cmp: null, a: null, b: null, afrom: null, ato: null, bfrom: null, bto: null, zoom: null };
		if (this.key.value === "") {
			this.state.change(none);
			return;
		}
		if (this.key.value === times) {
			// The halves of what is shown, to begin with.
			const answer = this.answer!;
			const [from, to] = this.state.has("to") ? [Number(this.state.get("from")), Number(this.state.get("to"))] : [answer.fromMs, answer.toMs + 1];
			const half = String(Math.round((from + to) / 2));
			this.state.change({ ...none, from: null, to: null, afrom: String(from), ato: half, bfrom: half, bto: String(to) });
			return;
		}
		const key = this.key.value.slice(1);
		const [a, b] = this.values(key);
		this.state.change({ ...none, cmp: key, a: a ?? null, b: b ?? null });
	}

	private chooseSide(name: string, value: string): void {
		this.state.change({ [name]: value === "" ? null : value.slice(1) });
	}
}

// SPDX-License-Identifier: Apache-2.0

import { button, byId, el, reconcile, valueText } from "./dom";
import type { State } from "./state";
import { short } from "./text";

const names: Record<string, string> = { fn: "function", module: "module", frame: "frame type" };

// drawChips lists the filters; a click takes one away.
export function drawChips(state: State): void {
	const filters = state.filters();
	byId("chips-row").hidden = filters.length === 0;
	const items = filters.map((f) => ({ ...f, clear: false }));
	if (filters.length > 1) {
		items.push({ name: "", value: "", clear: true });
	}
	reconcile(byId("chips"), items, (f) => (f.clear ? "clear" : f.name + "=" + f.value), (f) => {
		if (f.clear) {
			return el("li", {}, button("Clear all", () => state.clearFilters(), { class: "plain" }));
		}
		const key = names[f.name] ?? f.name.slice(2);
		const chip = el("button", { type: "button", class: "chip" }, el("bdi", {}, short(key, 40)), f.name.startsWith("n.") ? "" : " = ", f.name.startsWith("n.") ? el("i", {}, " none") : valueText({ text: f.value }), el("span", { class: "x", "aria-hidden": "true" }, "×"));
		chip.setAttribute("aria-label", `Remove the filter ${short(key, 40)} = ${short(f.value, 40)}`);
		chip.addEventListener("click", () => state.toggle(f.name, f.value));
		return el("li", {}, chip);
	}, () => {});
}

// SPDX-License-Identifier: Apache-2.0

import type { Answer, Facet } from "./api";
import { byId, el, reconcile, setText, valueText, wholeButton } from "./dom";
import type { State } from "./state";
import { baseName, count, percent, short } from "./text";

// A Slice is a list of values to choose from: of a label key, or a property of frames.
interface Slice {
	id: string;
	group: string;
	title: string;
	facet: Facet;
	param: string; // of the URL
	open: boolean;
	base: boolean; // paths: show the last part
}

const groups = ["Labels", "Trace", "Process", "Thread", "Code", "Other"];

function groupOf(key: string): string {
	if (key === "trace_id" || key === "span_id" || key === "trace_sampled") {
		return "Trace";
	}
	if (key.startsWith("process.") || key.startsWith("service.") || key.startsWith("container.")) {
		return "Process";
	}
	if (key.startsWith("thread.") || key === "cpu.logical_number") {
		return "Thread";
	}
	return /^(custom_labels|host|k8s|telemetry|os)\./.test(key) ? "Other" : "Labels";
}

const openAtFirst = new Set(["process.executable.name", "service.name"]);

const alwaysShown = 8; // keys of a group
const leastShare = 0.01; // of the time, that other keys are to cover
const openLabels = 4; // of these, as many show their values at first

// rare says which keys are folded: many programs that label by request, flag or user make more
// keys than anybody reads.
function isRare(slice: Slice, place: number): boolean {
	return place >= alwaysShown && slice.facet.covered < leastShare * slice.facet.ns;
}

// isTelling says whether the values are worth a look at first: those of an id are not.
function isTelling(facet: Facet): boolean {
	return facet.values.length > 0 && facet.values[0].ns >= leastShare * facet.ns;
}

// drawSlices lists what samples can be chosen by, each value with its share of the time.
export function drawSlices(answer: Answer, state: State): void {
	const finding = state.get("find") !== "";
	let labels = 0;
	const all: Slice[] = answer.facets.map((facet) => {
		const group = groupOf(facet.key);
		const param = "l." + facet.key;
		return { id: param, group, title: facet.key, facet, param, open: (group === "Labels" && isTelling(facet) && labels++ < openLabels) || openAtFirst.has(facet.key) || state.has(param) || finding, base: false };
	});
	all.push({ id: "frame", group: "Code", title: "frame type", facet: answer.types, param: "frame", open: true, base: false });
	all.push({ id: "module", group: "Code", title: "module", facet: answer.modules, param: "module", open: state.has("module"), base: true });
	all.sort((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group));
	const shownGroups = groups.filter((g) => all.some((s) => s.group === g && s.facet.values.length > 0));
	reconcile(byId("slices"), shownGroups, (g) => g, (g) => newGroup(g), (e, g) => {
		const mine = all.filter((s) => s.group === g && s.facet.values.length > 0);
		const rare = finding ? [] : mine.filter((s, i) => isRare(s, i) && !state.has(s.param));
		const list = (to: Element, slices: Slice[]) => reconcile(to, slices, (s) => s.id, (s) => newSlice(s), (d, s) => updateSlice(d, s, state));
		list(e.querySelector(".keys")!, mine.filter((s) => !rare.includes(s)));
		const fold = e.querySelector<HTMLDetailsElement>(".rare")!;
		const unlisted = g === "Labels" ? answer.moreKeys : 0;
		fold.hidden = rare.length + unlisted === 0;
		setText(fold.querySelector("summary")!, `${count(rare.length + unlisted)} more ${rare.length + unlisted === 1 ? "key" : "keys"}${rare.length > 0 ? " of less than 1 % of the time" : ""}`);
		list(fold.querySelector(".keys-rare")!, rare);
		setText(fold.querySelector(".unlisted")!, unlisted > 0 ? `${count(unlisted)} of them are not listed: find them above.` : "");
	});
}

function newGroup(name: string): HTMLElement {
	const fold = el("details", { class: "rare" }, el("summary"), el("div", { class: "keys-rare" }), el("p", { class: "hint unlisted" }));
	return el("section", { "aria-label": name }, el("h2", {}, name), el("div", { class: "keys" }), fold);
}

function newSlice(s: Slice): HTMLDetailsElement {
	const made = el("details", {}, el("summary", {}, el("bdi", { title: short(s.title, 2000) }, short(s.title, 40)), " ", el("span", { class: "count" })), el("ul"), el("p", { class: "hint" }));
	made.open = s.open;
	return made;
}

function updateSlice(made: HTMLDetailsElement, s: Slice, state: State): void {
	const distinct = s.facet.values.length + s.facet.more;
	const part = s.facet.covered > 0 && s.facet.covered < s.facet.ns ? " · " + percent(s.facet.covered, s.facet.ns) : "";
	setText(made.querySelector(".count")!, count(distinct) + (s.facet.more > 0 ? "+" : "") + part);
	if (state.has(s.param)) {
		made.open = true;
	}
	reconcile(made.querySelector("ul")!, s.facet.values, (v) => v.text, (v) => newValue(v.text, s, state), (item, v) => {
		const chosen = state.filtered(s.param, v.text);
		item.querySelector("button")!.setAttribute("aria-pressed", String(chosen));
		item.querySelector<HTMLElement>(".bar")!.style.width = (s.facet.ns > 0 ? (100 * v.ns) / s.facet.ns : 0) + "%";
		setText(item.querySelector(".share")!, percent(v.ns, s.facet.ns));
	});
	setText(made.querySelector("p")!, s.facet.more > 0 ? "More values: find them above." : "");
}

function newValue(text: string, s: Slice, state: State): HTMLLIElement {
	const label = s.base && text !== "" ? el("bdi", { title: short(text, 300) }, short(baseName(text))) : valueText({ text });
	const choose = el("button", { type: "button", class: "value" }, el("span", { class: "bar", "aria-hidden": "true" }), el("span", { class: "text" }, label), el("span", { class: "share" }));
	choose.addEventListener("click", () => state.toggle(s.param, text));
	const item = el("li", {}, choose);
	const rest = wholeButton(text, s.base ? 40 : undefined);
	if (rest) {
		item.append(rest);
	}
	return item;
}

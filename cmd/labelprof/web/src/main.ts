// SPDX-License-Identifier: Apache-2.0

import "./page.css";
import { ask, sum, type Answer } from "./api";
import { drawChips } from "./chips";
import { onTheme } from "./color";
import { choices, Compare } from "./compare";
import { Details } from "./details";
import { button, byId, setText } from "./dom";
import { Flame } from "./flame";
import { Functions } from "./functions";
import { drawKey } from "./key";
import { drawSlices } from "./slices";
import { State } from "./state";
import { Strip } from "./strip";
import { bytes, count, duration, percent, short } from "./text";

const pollMs = 1000;
const pollPart = 10; // of the time, at most, the server works for one page that only watches
const busyMs = 250; // until a question is said to take long
const narrow = matchMedia("(max-width: 900px)");
const typeMs = 200; // after the last key

const state = new State(() => {
	if (answer && state.query() === asked) {
		draw(); // the same answer, shown in another way
	}
	void refresh();
});
const strip = new Strip(state);
const compare = new Compare(state, () => strip.chosen(), (side) => {
	strip.choose(side);
	draw();
});
const functions = new Functions(state);
const details = new Details(state);
const flame = new Flame(byId("flame"), {
	zoom: (id) => state.change({ zoom: id === "" ? null : id }),
	show: (data) => details.show(data),
});

const views = [["flame", "Flame graph"], ["functions", "Functions"]] as const;
const colors = [["type", "frame type"], ["module", "module"], ["function", "function"]] as const;

let answer: Answer | null = null;
let asked = ""; // the query of the answer
let flying: AbortController | null = null;
let timer = 0;

// refresh asks for what the URL says and shows it; without a change it waits for news.
async function refresh(): Promise<void> {
	clearTimeout(timer);
	flying?.abort();
	const mine = (flying = new AbortController());
	const query = state.query();
	const have = answer && query === asked ? answer.version : "";
	drawControls();
	const slow = setTimeout(() => busy(mine, true), busyMs);
	try {
		const got = await ask(query, have, mine.signal);
		if (got.unchanged) {
			[answer!.source, answer!.live] = [got.source, got.live];
			drawStatus();
		} else {
			answer = got;
			asked = query;
			draw();
		}
		problem("");
		document.documentElement.dataset.version = answer!.version; // for tests
		document.documentElement.dataset.query = query;
	} catch (e) {
		if (mine.signal.aborted) {
			clearTimeout(slow);
			return;
		}
		if (!answer) {
			setText(byId("status"), "");
		}
		problem(e instanceof TypeError ? "labelprof does not answer; what is shown is what it said last." : String((e as Error).message));
	}
	clearTimeout(slow);
	busy(mine, false);
	if (!answer || answer.live) {
		timer = setTimeout(() => (document.hidden ? void wait() : void refresh()), Math.max(pollMs, pollPart * (answer?.tookMs ?? 0)));
	}
}

// busy shows that a question is worked on, and that the first answer is not there yet.
function busy(asking: AbortController, on: boolean): void {
	if (asking === flying) {
		document.documentElement.classList.toggle("busy", on);
		document.documentElement.classList.toggle("first", on && !answer);
		byId("columns").setAttribute("aria-busy", String(on));
	}
}

// wait goes on when somebody looks again.
function wait(): void {
	addEventListener("visibilitychange", () => void refresh(), { once: true });
}

function problem(text: string): void {
	byId("problem").hidden = text === "";
	setText(byId("problem"), short(text, 300));
}

function draw(): void {
	if (!answer) {
		return;
	}
	document.documentElement.classList.remove("bare");
	drawStatus();
	const memory = [`${bytes(answer.bytes)} of ${bytes(answer.maxBytes)} in use`, `${count(answer.received)} samples received`];
	if (answer.evicted > 0) {
		memory.push(`${count(answer.evicted)} old ones left to make room`);
	}
	if (answer.cut > 0) {
		memory.push(`${count(answer.cut)} with too many frames or labels cut`);
	}
	memory.push(...(answer.notes ?? []).map((n) => short(n, 200)));
	setText(byId("memory"), memory.join(" · "));
	byId("kind").hidden = !answer.offCpu;
	setText(byId("found"), state.get("q") === "" ? "" : percent(sum(answer.found), sum(answer.ns)) + " of the time");
	drawControls();
	strip.draw(answer);
	drawSlices(answer, state);
	compare.draw(answer);
	drawView();
}

function drawStatus(): void {
	if (!answer) {
		return;
	}
	const selected = sum(answer.ns);
	const off = state.get("kind") === "off_cpu";
	setText(byId("status"), answer.received === 0 ? `waiting for ${short(answer.source, 200)}` : `${duration(selected)} ${off ? "off the CPU" : "of CPU"} in ${count(sum(answer.hits))} samples · ${answer.live ? "live: " : ""}${short(answer.source, 120)}`);
}

function drawView(): void {
	if (!answer) {
		return;
	}
	const hidden = answer.tree.hidden;
	setText(byId("hint"), selectedNothing() ? whyNothing(answer) : `Arrow keys move, Enter zooms, Escape zooms out, / searches.${hidden > 0 ? ` ${count(hidden)} frames and what they call are too small to draw; zoom shows them.` : ""}`);
	if (view() === "flame") {
		drawKey(answer, state.get("color") || "type", state.comparing() !== "");
		flame.draw(answer, state.get("color") || "type", state.get("q"));
		details.update(answer);
	} else {
		byId("key").hidden = true;
		functions.draw(answer);
	}
}

function selectedNothing(): boolean {
	return answer !== null && sum(answer.ns) === 0;
}

function whyNothing(answer: Answer): string {
	if (answer.offCpu && state.get("kind") === "") {
		return "No CPU time here, but there is time off the CPU: choose Off CPU above, take a filter away, or choose another time.";
	}
	if (answer.received > 0) {
		return "No samples here: take a filter away, or choose another time.";
	}
	return answer.source.startsWith("OTLP") ? "Nothing has come yet: a collector with examples/quickstart.yaml sends what it samples." : "No samples yet.";
}

function view(): string {
	return state.get("view") === "functions" ? "functions" : "flame";
}

// drawControls shows the state in what changes it.
function drawControls(): void {
	for (const [id] of views) {
		const on = id === view();
		const tab = byId("tab-" + id);
		tab.setAttribute("aria-selected", String(on));
		tab.tabIndex = on ? 0 : -1;
		byId("panel-" + id).hidden = !on;
	}
	for (const b of byId("kind").querySelectorAll("button")) {
		b.setAttribute("aria-pressed", String(b.dataset.kind === state.get("kind")));
	}
	const keys = (answer?.facets ?? []).map((f) => f.key);
	const by = state.get("by") || (answer?.by ?? "");
	if (!keys.includes(by)) {
		keys.unshift(by);
	}
	choices(byId("by"), keys.map((k) => ({ value: k, text: short(k, 40) })), by);
	const group = state.get("group");
	const groups = [...new Set([...by === "" ? [] : [by], ...(answer?.facets ?? []).map((f) => f.key), ...(group === "" ? [] : [group])])];
	choices(byId("group"), [{ value: "", text: "nothing" }, ...groups.map((k) => ({ value: "=" + k, text: short(k, 40) }))], group === "" ? "" : "=" + group);
	byId("group-label").hidden = view() !== "flame";
	choices(byId("color"), colors.map(([value, text]) => ({ value, text })), state.get("color") || "type");
	byId("color-label").hidden = view() !== "flame" || state.comparing() !== "";
	byId("unzoom").hidden = view() !== "flame" || !state.has("zoom");
	for (const [id, name] of [["search", "q"], ["find", "find"]] as const) {
		const field = byId<HTMLInputElement>(id);
		if (document.activeElement !== field) {
			field.value = state.get(name);
		}
	}
	byId<HTMLAnchorElement>("download").href = "api/profile?" + state.query();
	drawChips(state);
}

// typed changes the state when somebody has stopped typing.
function typed(field: HTMLInputElement, name: string): void {
	let later = 0;
	field.addEventListener("input", () => {
		clearTimeout(later);
		later = setTimeout(() => state.change({ [name]: field.value === "" ? null : field.value }, "replace"), typeMs);
	});
}

// copyLink copies an address that says all of it, also what the server would choose.
async function copyLink(): Promise<void> {
	if (answer && !state.has("by") && answer.by !== "") {
		state.change({ by: answer.by }, "replace");
	}
	let said = "Copied";
	try {
		await navigator.clipboard.writeText(location.href);
	} catch {
		said = "It is in the address bar"; // a browser that does not allow it
	}
	setText(byId("copy"), said);
	setTimeout(() => setText(byId("copy"), "Copy link"), 2000);
}

function start(): void {
	for (const [id, title] of views) {
		const tab = button(title, () => state.change({ view: id === "flame" ? null : id }), { role: "tab", id: "tab-" + id, "aria-controls": "panel-" + id });
		tab.addEventListener("keydown", (e) => {
			if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
				const other = byId(id === "flame" ? "tab-functions" : "tab-flame");
				other.click();
				other.focus();
			}
		});
		byId("tabs").append(tab);
	}
	for (const [kind, title] of [["", "On CPU"], ["off_cpu", "Off CPU"]] as const) {
		byId("kind").append(button(title, () => state.change({ kind: kind === "" ? null : kind, zoom: null }), { "data-kind": kind }));
	}
	byId("by").addEventListener("change", () => state.change({ by: byId<HTMLSelectElement>("by").value }));
	byId("color").addEventListener("change", () => {
		state.change({ color: byId<HTMLSelectElement>("color").value });
	});
	byId("group").addEventListener("change", () => {
		const chosen = byId<HTMLSelectElement>("group").value;
		state.change({ group: chosen === "" ? null : chosen.slice(1), zoom: null });
	});
	byId("copy").addEventListener("click", () => void copyLink());
	const slices = byId<HTMLDetailsElement>("slices-box");
	slices.open = !narrow.matches;
	narrow.addEventListener("change", () => (slices.open = !narrow.matches));
	byId("unzoom").addEventListener("click", () => state.change({ zoom: null }));
	typed(byId("search"), "q");
	typed(byId("find"), "find");
	addEventListener("keydown", (e) => {
		const typing = e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement;
		if (e.key === "/" && !typing) {
			e.preventDefault();
			byId("search").focus();
		} else if (e.key === "Escape" && !typing && state.has("zoom") && !byId<HTMLDialogElement>("whole").open) {
			state.change({ zoom: null });
		}
	});
	onTheme(() => drawView());
	let width = 0;
	new ResizeObserver(([entry]) => {
		if (entry.contentRect.width !== width) {
			width = entry.contentRect.width;
			flame.redraw();
		}
	}).observe(byId("flame"));
	void refresh();
}

start();

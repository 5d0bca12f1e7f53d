// SPDX-License-Identifier: Apache-2.0

import { sum, type Answer, type FunctionSum } from "./api";
import { byId, el, reconcile, setText, wholeButton } from "./dom";
import { frameName, shares } from "./flame";
import type { State } from "./state";
import { baseName, duration, percent, short } from "./text";

interface Column {
	id: string;
	title: string;
	by(f: FunctionSum, answer: Answer): number | string;
	text(f: FunctionSum, answer: Answer): string;
}

const name: Column = { id: "name", title: "Function", by: (f) => frameName(f.frame).toLowerCase(), text: (f) => frameName(f.frame) };
const module: Column = { id: "module", title: "Module", by: (f) => baseName(f.frame[1]).toLowerCase(), text: (f) => short(baseName(f.frame[1]), 40) };
const type: Column = { id: "type", title: "Type", by: (f) => f.frame[2], text: (f) => short(f.frame[2], 16) };

function difference(f: FunctionSum, of: "self" | "total", answer: Answer): number {
	const s = shares(answer, f[of]);
	return s[1] - s[0];
}

function points(part: number): string {
	return (part >= 0 ? "+" : "−") + Math.abs(100 * part).toFixed(1);
}

const single: Column[] = [
	name, module, type,
	{ id: "self", title: "Self", by: (f) => -sum(f.self), text: (f) => duration(sum(f.self)) },
	{ id: "selfshare", title: "Self %", by: (f) => -sum(f.self), text: (f, a) => percent(sum(f.self), sum(a.ns)) },
	{ id: "total", title: "Total", by: (f) => -sum(f.total), text: (f) => duration(sum(f.total)) },
	{ id: "totalshare", title: "Total %", by: (f) => -sum(f.total), text: (f, a) => percent(sum(f.total), sum(a.ns)) },
];

const both: Column[] = [
	name, module,
	{ id: "self", title: "Self A", by: (f) => -f.self[0], text: (f, a) => percent(f.self[0], a.ns[0]) },
	{ id: "selfb", title: "Self B", by: (f) => -f.self[1], text: (f, a) => percent(f.self[1], a.ns[1]) },
	{ id: "selfdiff", title: "Self B − A", by: (f, a) => -Math.abs(difference(f, "self", a)), text: (f, a) => points(difference(f, "self", a)) },
	{ id: "total", title: "Total A", by: (f) => -f.total[0], text: (f, a) => percent(f.total[0], a.ns[0]) },
	{ id: "totalb", title: "Total B", by: (f) => -f.total[1], text: (f, a) => percent(f.total[1], a.ns[1]) },
	{ id: "totaldiff", title: "Total B − A", by: (f, a) => -Math.abs(difference(f, "total", a)), text: (f, a) => points(difference(f, "total", a)) },
];

// Functions is the table: what the flame graph shows, as text.
export class Functions {
	private head = el("tr");
	private body = el("tbody");
	private table = el("table", {}, el("caption", {}, "Functions: self is time in the function itself, total with what it calls"), el("thead", {}, this.head), this.body);
	private note = el("p", { class: "hint" });

	constructor(private state: State) {
		byId("functions").append(this.table, this.note);
	}

	draw(answer: Answer): void {
		const columns = this.state.comparing() !== "" ? both : single;
		this.table.classList.toggle("both", columns === both);
		const sort = columns.find((c) => c.id === this.state.get("sort")) ?? columns.find((c) => c.id === (columns === both ? "selfdiff" : "self"))!;
		reconcile(this.head, columns, (c) => (columns === both ? "2" : "1") + c.id, (c) => this.header(c), (th, c) => th.setAttribute("aria-sort", c === sort ? (c.id === "name" || c.id === "module" || c.id === "type" ? "ascending" : "descending") : "none"));
		const rows = answer.functions.map((f) => ({ f, by: sort.by(f, answer) }));
		rows.sort((x, y) => (x.by < y.by ? -1 : x.by > y.by ? 1 : sum(y.f.total) - sum(x.f.total)));
		reconcile(this.body, rows, ({ f }) => columns.length + JSON.stringify(f.frame), ({ f }) => this.row(f, columns), (tr, { f }) => {
			columns.slice(columns === both ? 2 : 3).forEach((c, i) => setText(tr.children[i + (columns === both ? 2 : 3)], c.text(f, answer)));
		});
		setText(this.note, answer.moreFunctions > 0 ? `${answer.moreFunctions} more functions; search finds them.` : answer.functions.length === 0 ? "No function." : "");
	}

	private header(c: Column): HTMLTableCellElement {
		const b = el("button", { type: "button" }, c.title);
		b.addEventListener("click", () => this.state.change({ sort: c.id }));
		return el("th", { scope: "col", class: "column-" + c.id }, b);
	}

	private row(f: FunctionSum, columns: Column[]): HTMLTableRowElement {
		const tr = el("tr");
		for (const c of columns) {
			const td = el(c === name ? "th" : "td", c === name ? { scope: "row" } : { class: (c === module || c === type ? "" : "number ") + "column-" + c.id });
			if (c === name && f.frame[0] !== "") {
				const b = el("button", { type: "button", class: "plain", title: short(f.frame[0], 300) + ": only stacks with this function" }, el("bdi", {}, short(f.frame[0], 90)));
				b.addEventListener("click", () => this.state.toggle("fn", f.frame[0]));
				td.append(b, wholeButton(f.frame[0], 90) ?? "");
			} else if (c === name) {
				td.append(el("i", {}, short(frameName(f.frame), 90)));
			} else if (c === module || c === type) {
				td.append(el("bdi", { title: short(f.frame[c === module ? 1 : 2], 300) }, c.text(f, null as unknown as Answer)));
			}
			tr.append(td);
		}
		return tr;
	}
}

// SPDX-License-Identifier: Apache-2.0

import { select } from "d3-selection";
import flamegraph from "d3-flame-graph";
import { sum, type Answer, type Frame, type Sides } from "./api";
import { ofDifference, ofFrame } from "./color";
import { Keys } from "./flamekeys";
import { baseName, cut, duration, percent, visible } from "./text";

// FlameData is a frame as d3-flame-graph takes it.
export interface FlameData {
	id: string;
	name: string;
	label: string; // what stands in the graph, where room is short
	value: number;
	frame: Frame | null; // null: the root
	self: Sides;
	total: Sides;
	children: FlameData[];
	hide: boolean;
	fade: boolean;
}

interface FlameNode {
	data: FlameData;
	x0: number;
	x1: number;
	depth: number;
	parent: FlameNode | null;
	children?: FlameNode[];
	highlight?: boolean;
}

export interface FlameEvents {
	zoom(id: string): void;
	show(data: FlameData | null): void;
}

const cell = 20; // height of a frame in px

// frameName is what a frame is called: code of a module without names by the module.
export function frameName(frame: Frame): string {
	if (frame[3]) {
		return frame[3] === "none" ? "(none)" : frame[3] === "others" ? "(others)" : frame[0] === "" ? "(empty)" : frame[0];
	}
	return frame[0] !== "" ? frame[0] : "[" + (frame[1] === "" ? "unknown" : baseName(frame[1])) + "]";
}

// goLabel leaves the path of the package out, which all functions of a program share: of
// cmd/compile/internal/ssa.applyRewrite it is ssa.applyRewrite.
function goLabel(name: string): string {
	const [plain] = name.split("[", 1); // type arguments have paths, too
	return name.startsWith("type:") ? name : name.slice(plain.lastIndexOf("/") + 1);
}

// Flame draws the tree of an answer; callers stand above.
export class Flame {
	private chart;
	private answer: Answer | null = null;
	private by = "type";
	private term = "";
	private drawn = false;
	private updating = false;
	private keys: Keys;

	constructor(private host: HTMLElement, events: FlameEvents) {
		// The library's tooltip would write HTML or a title; ours is the line of details.
		const tooltip = Object.assign(() => undefined, {
			show: (_: Event, d: FlameNode) => events.show(d.data),
			hide: () => events.show(null),
			destroy: () => {},
		});
		this.chart = flamegraph()
			.cellHeight(cell)
			.inverted(true)
			.sort(true)
			.transitionDuration(0)
			.minFrameSize(1)
			.resetHeightOnZoom(true)
			.tooltip(tooltip)
			.getName((d: FlameNode) => d.data.label)
			.setLabelHandler((d: FlameNode) => d.data.name)
			.setSearchMatch(() => false)
			.setColorMapper((d: FlameNode) => this.color(d.data))
			.onClick((d: FlameNode) => {
				if (!this.updating) {
					events.zoom(d.data.frame ? d.data.id : "");
				}
			});
		this.keys = new Keys(host, events);
	}

	// draw shows an answer. Colours are by function, module or type, or by the difference.
	draw(answer: Answer, by: string, term: string): void {
		this.answer = answer;
		this.by = by;
		this.term = term.toLowerCase();
		this.redraw();
	}

	redraw(): void {
		if (!this.answer || this.host.clientWidth === 0) {
			return; // its tab is not shown
		}
		this.updating = true;
		this.chart.width(this.host.clientWidth);
		const data = toData(this.answer);
		if (this.drawn) {
			this.chart.update(data);
		} else {
			select(this.host).datum(data).call(this.chart);
			this.drawn = true;
		}
		this.updating = false;
		this.describe();
	}

	private color(data: FlameData): string {
		if (!data.frame) {
			return "var(--frame-root)";
		}
		if (data.frame[3] && !this.comparing()) {
			return "var(--frame-group)";
		}
		return this.comparing() ? ofDifference(shares(this.answer!, data.total)) : ofFrame(this.by, data.frame);
	}

	private comparing(): boolean {
		const q = new URLSearchParams(location.search);
		return this.answer!.ns[1] > 0 || q.has("cmp") || q.has("ato");
	}

	// describe makes the frames known to keyboards and screen readers. It also puts them where
	// the library's transitions will, so that nothing old is seen meanwhile.
	private describe(): void {
		const answer = this.answer!;
		const svg = this.host.querySelector("svg");
		svg?.setAttribute("role", "presentation");
		const focus = this.keys.focused();
		let first: SVGGElement | null = null;
		select(this.host).selectAll<SVGGElement, FlameNode>("g").each((d, i, all) => {
			const g = all[i];
			g.setAttribute("transform", `translate(${d.x0 * this.host.clientWidth},${d.depth * cell})`);
			g.querySelector("rect")!.setAttribute("width", g.getAttribute("width") ?? "0");
			g.querySelector("div")!.textContent = d.data.label;
			g.setAttribute("name", d.data.name);
			g.dataset.id = d.data.id;
			g.setAttribute("role", "treeitem");
			g.setAttribute("aria-level", String(d.depth + 1));
			g.setAttribute("aria-label", d.data.name + ", " + summary(answer, d.data));
			g.setAttribute("tabindex", "-1");
			g.classList.toggle("match", this.term !== "" && d.data.frame !== null && !d.data.frame[3] && d.data.frame[0].toLowerCase().includes(this.term));
			g.classList.toggle("group", !!d.data.frame?.[3]);
			g.classList.toggle("dim", this.term !== "" && !g.classList.contains("match"));
			if (d.data.id === focus || !first) {
				first = g;
			}
		});
		(first as SVGGElement | null)?.setAttribute("tabindex", "0");
	}
}

// shares are the parts of a time of each side, or of all.
export function shares(answer: Answer, ns: Sides): Sides {
	return [answer.ns[0] > 0 ? ns[0] / answer.ns[0] : 0, answer.ns[1] > 0 ? ns[1] / answer.ns[1] : 0];
}

// summary tells the time of a frame in words.
export function summary(answer: Answer, data: { self: Sides; total: Sides }): string {
	if (answer.ns[1] > 0) {
		return `A ${percent(data.total[0], answer.ns[0])}, B ${percent(data.total[1], answer.ns[1])}`;
	}
	return `${percent(sum(data.total), sum(answer.ns))} (${duration(sum(data.total))}), self ${percent(sum(data.self), sum(answer.ns))}`;
}

function width(answer: Answer, total: Sides): number {
	if (answer.ns[0] === 0 || answer.ns[1] === 0) {
		return sum(total);
	}
	const s = shares(answer, total);
	return (s[0] + s[1]) * 1e6;
}

// toData makes the tree that the library draws, zoomed as the server was asked to.
function toData(answer: Answer): FlameData {
	const { tree } = answer;
	const nodes: FlameData[] = tree.id.map((id, i) => {
		const frame = i === 0 ? null : tree.frames[tree.frame[i]];
		const name = frame ? visible(cut(frameName(frame), 300)) : "all";
		return {
			id,
			name,
			label: frame && !frame[3] && frame[2] === "go" ? goLabel(name) : name,
			value: width(answer, tree.total[i]),
			frame,
			self: tree.self[i],
			total: tree.total[i],
			children: [],
			hide: false,
			fade: false,
		};
	});
	for (let i = 1; i < nodes.length; i++) {
		nodes[tree.parent[i]].children.push(nodes[i]);
	}
	for (let at = tree.zoom; at > 0; at = tree.parent[at]) {
		const parent = nodes[tree.parent[at]];
		parent.fade = true;
		for (const sibling of parent.children) {
			sibling.hide ||= sibling !== nodes[at];
		}
	}
	return nodes[0];
}

// SPDX-License-Identifier: Apache-2.0

import type { Answer, SeriesValue } from "./api";
import { Palette } from "./color";
import { byId, el, reconcile, setText, svg, valueText } from "./dom";
import type { State } from "./state";
import { clock, span } from "./text";

const height = 64; // px of the bars

// Strip shows time over time by label and selects a range of it, by pointer or keys.
export class Strip {
	private answer: Answer | null = null;
	private host = byId("strip");
	private bars = svg("g");
	private selection = svg("rect", { class: "selection", y: 0, height, visibility: "hidden" });
	private other = svg("rect", { class: "selection", y: 0, height, visibility: "hidden" }); // side of a comparison
	private picture = svg("svg", { height, width: "100%", "aria-hidden": "true" });
	private from = this.handle("Start of the range");
	private to = this.handle("End of the range");
	private axis = el("div", { class: "axis", "aria-hidden": "true" });
	private palette = new Palette();
	private dragFrom: number | null = null;
	private side: "a" | "b" = "b";

	constructor(private state: State) {
		this.picture.append(this.bars, this.other, this.selection);
		this.host.append(this.picture, this.from, this.to, this.axis);
		this.picture.addEventListener("pointerdown", (e) => {
			this.picture.setPointerCapture(e.pointerId);
			this.dragFrom = this.bucketAt(e);
		});
		this.picture.addEventListener("pointermove", (e) => {
			if (this.dragFrom !== null) {
				const at = this.bucketAt(e);
				this.mark(Math.min(at, this.dragFrom), Math.max(at, this.dragFrom) + 1);
			}
		});
		this.picture.addEventListener("pointerup", (e) => {
			if (this.dragFrom !== null) {
				const at = this.bucketAt(e);
				const [a, b] = [Math.min(at, this.dragFrom), Math.max(at, this.dragFrom) + 1];
				this.dragFrom = null;
				this.select(a, b);
			}
		});
		byId("all-time").addEventListener("click", () => state.change({ from: null, to: null }));
	}

	// chosen is the side whose range the handles and the pointer change, of a comparison of times.
	chosen(): "a" | "b" {
		return this.side;
	}

	choose(side: "a" | "b"): void {
		this.side = side;
		if (this.answer) {
			this.drawRange(this.answer);
		}
	}

	// prefix is that of the range in the URL which is changed now.
	private prefix(): string {
		return this.state.comparing() === "times" ? this.side : "";
	}

	draw(answer: Answer): void {
		this.answer = answer;
		const { series } = answer;
		const sums = new Array<number>(series.buckets).fill(0);
		const rects: SVGRectElement[] = [];
		for (const value of series.values) {
			value.ns.forEach((ns, i) => (sums[i] += ns));
		}
		const top = Math.max(1, ...sums);
		const below = new Array<number>(series.buckets).fill(0);
		this.picture.setAttribute("viewBox", `0 0 ${Math.max(1, series.buckets)} ${height}`);
		this.picture.setAttribute("preserveAspectRatio", "none");
		series.values.forEach((value) => {
			const color = this.palette.of(answer.by, value);
			value.ns.forEach((ns, i) => {
				if (ns > 0) {
					const h = (ns / top) * (height - 2);
					below[i] += h;
					rects.push(svg("rect", { x: i + 0.06, width: 0.88, y: height - below[i], height: h, class: color }));
				}
			});
		});
		this.bars.replaceChildren(...rects);
		this.drawAxis(answer);
		this.drawRange(answer);
		this.drawLegend(answer);
	}

	private drawAxis(answer: Answer): void {
		const { fromMs, stepMs, buckets } = answer.series;
		const at = buckets > 1 ? [0, 0.25, 0.5, 0.75, 1] : [];
		reconcile(this.axis, at, String, () => el("span"), (e, part) => {
			e.style.left = part * 100 + "%";
			setText(e, clock(fromMs + part * buckets * stepMs, buckets * stepMs < 10_000 ? 1 : 1000));
		});
	}

	private drawRange(answer: Answer): void {
		const { buckets } = answer.series;
		const prefix = this.prefix();
		const chosen = this.state.has(prefix + "to");
		const [a, b] = chosen ? this.buckets(prefix) : [0, buckets];
		if (this.dragFrom === null) {
			this.mark(a, b, chosen);
		}
		this.other.setAttribute("visibility", prefix === "" ? "hidden" : "visible");
		this.selection.setAttribute("class", "selection" + (prefix === "" ? "" : " selection-" + prefix));
		if (prefix !== "") {
			const other = prefix === "a" ? "b" : "a";
			const [from, to] = this.buckets(other);
			this.other.setAttribute("x", String(from));
			this.other.setAttribute("width", String(to - from));
			this.other.setAttribute("class", "selection selection-" + other);
		}
		byId("all-time").hidden = !chosen || prefix !== "";
		const from = chosen ? Number(this.state.get(prefix + "from")) : answer.fromMs;
		const to = chosen ? Number(this.state.get(prefix + "to")) : answer.toMs;
		setText(byId("range"), buckets > 0 ? (prefix === "" ? "" : prefix.toUpperCase() + " ") + span(from, to) : "");
		this.host.classList.toggle("single", buckets <= 1);
	}

	// buckets are the ends of a range of the URL.
	private buckets(prefix: string): [number, number] {
		const { fromMs, stepMs, buckets } = this.answer!.series;
		const at = (name: string) => (Number(this.state.get(prefix + name)) - fromMs) / stepMs;
		const a = Math.min(buckets, Math.max(0, at("from")));
		return [a, Math.min(buckets, Math.max(a, at("to")))];
	}

	private mark(a: number, b: number, visible = true): void {
		const n = Math.max(1, this.answer?.series.buckets ?? 1);
		this.selection.setAttribute("x", String(a));
		this.selection.setAttribute("width", String(b - a));
		this.selection.setAttribute("visibility", visible ? "visible" : "hidden");
		for (const [handle, at] of [[this.from, a], [this.to, b]] as const) {
			handle.style.left = (at / n) * 100 + "%";
			handle.setAttribute("aria-valuemin", "0");
			handle.setAttribute("aria-valuemax", String(n));
			handle.setAttribute("aria-valuenow", String(Math.round(at)));
			const s = this.answer?.series;
			handle.setAttribute("aria-valuetext", s ? clock(s.fromMs + at * s.stepMs, s.stepMs) : "");
		}
	}

	private select(a: number, b: number): void {
		const s = this.answer!.series;
		const prefix = this.prefix();
		this.state.change({ [prefix + "from"]: String(s.fromMs + Math.round(a) * s.stepMs), [prefix + "to"]: String(s.fromMs + Math.round(b) * s.stepMs) });
	}

	private bucketAt(e: PointerEvent): number {
		const box = this.picture.getBoundingClientRect();
		const n = this.answer?.series.buckets ?? 1;
		return Math.min(n - 1, Math.max(0, Math.floor(((e.clientX - box.left) / box.width) * n)));
	}

	// handle is an end of the range; arrow keys move it.
	private handle(name: string): HTMLElement {
		const made = el("div", { class: "handle", role: "slider", tabindex: "0", "aria-label": name, "aria-orientation": "horizontal" });
		made.addEventListener("keydown", (e) => {
			const n = this.answer?.series.buckets ?? 0;
			const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -n, End: n };
			const step = steps[e.key];
			if (step === undefined || n === 0) {
				return;
			}
			e.preventDefault();
			let a = Number(this.from.getAttribute("aria-valuenow"));
			let b = Number(this.to.getAttribute("aria-valuenow"));
			if (made === this.from) {
				a = Math.min(b - 1, Math.max(0, a + step));
			} else {
				b = Math.max(a + 1, Math.min(n, b + step));
			}
			this.select(a, b);
		});
		return made;
	}

	private drawLegend(answer: Answer): void {
		const key = answer.by;
		reconcile(
			byId("legend"),
			answer.series.values,
			(value) => `${key}|${value.none ? "n" : value.others ? "o" : "v" + value.text}`,
			(value) => {
				const item = el("li");
				const swatch = el("span", { class: "swatch " + this.palette.of(key, value) });
				if (value.others) {
					item.append(el("span", {}, swatch, valueText(value)));
				} else {
					const b = el("button", { type: "button" }, swatch, valueText(value));
					b.addEventListener("click", () => this.toggle(value));
					item.append(b);
				}
				return item;
			},
			(item, value) => {
				const name = value.none ? "n." + key : "l." + key;
				item.querySelector("button")?.setAttribute("aria-pressed", String(this.state.filtered(name, value.none ? "" : value.text)));
			},
		);
	}

	private toggle(value: SeriesValue): void {
		const key = this.answer!.by;
		this.state.toggle(value.none ? "n." + key : "l." + key, value.none ? "" : value.text);
	}
}

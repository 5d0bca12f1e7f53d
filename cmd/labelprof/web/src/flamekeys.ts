// SPDX-License-Identifier: Apache-2.0

import { select } from "d3-selection";
import type { FlameData, FlameEvents } from "./flame";

interface Item {
	data: FlameData;
	x0: number;
	x1: number;
	depth: number;
}

// Keys moves the focus among frames: one of them is in the order of tabs, arrows go on
// from there as in a tree whose levels are rows.
export class Keys {
	private id = "";

	constructor(private host: HTMLElement, events: FlameEvents) {
		host.addEventListener("keydown", (event) => {
			const at = this.of(event.target);
			if (!at || event.ctrlKey || event.altKey || event.metaKey) {
				return;
			}
			const item = select<SVGGElement, Item>(at).datum();
			if (event.key === "Enter" || event.key === " ") {
				events.zoom(item.data.frame ? item.data.id : "");
			} else if (event.key.startsWith("Arrow") || event.key === "Home") {
				this.move(at, item, event.key);
			} else {
				return;
			}
			event.preventDefault();
		});
		host.addEventListener("focusin", (event) => {
			const at = this.of(event.target);
			if (at) {
				this.id = at.dataset.id ?? "";
				events.show(select<SVGGElement, Item>(at).datum().data);
			}
		});
		host.addEventListener("focusout", () => events.show(null));
	}

	// focused is the id of the frame that had the focus last.
	focused(): string {
		return this.id;
	}

	private of(target: EventTarget | null): SVGGElement | null {
		return target instanceof Element ? target.closest<SVGGElement>("g.frame") : null;
	}

	private move(from: SVGGElement, item: Item, key: string): void {
		const all = select(this.host).selectAll<SVGGElement, Item>("g").nodes();
		const at = all.map((g) => ({ g, item: select<SVGGElement, Item>(g).datum() }));
		const row = (depth: number) => at.filter((c) => c.item.depth === depth).sort((a, b) => a.item.x0 - b.item.x0);
		let to: SVGGElement | undefined;
		if (key === "Home") {
			to = row(0)[0]?.g;
		} else if (key === "ArrowUp") {
			to = row(item.depth - 1).find((c) => c.item.x0 <= item.x0 && c.item.x1 >= item.x1)?.g;
		} else if (key === "ArrowDown") {
			const below = row(item.depth + 1).filter((c) => c.item.x0 >= item.x0 && c.item.x1 <= item.x1);
			to = below.sort((a, b) => b.item.x1 - b.item.x0 - (a.item.x1 - a.item.x0))[0]?.g;
		} else {
			const beside = row(item.depth);
			to = beside[beside.findIndex((c) => c.g === from) + (key === "ArrowRight" ? 1 : -1)]?.g;
		}
		if (to) {
			from.setAttribute("tabindex", "-1");
			to.setAttribute("tabindex", "0");
			to.focus();
		}
	}
}

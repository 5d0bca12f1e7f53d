// SPDX-License-Identifier: Apache-2.0

import { short, shown, visible } from "./text";

// Everything on the page is made here, with text nodes: no text ever becomes markup.

type Child = Node | string;

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
	const found = document.getElementById(id);
	if (!found) {
		throw new Error(`no element ${id}`);
	}
	return found as T;
}

export function el<K extends keyof HTMLElementTagNameMap>(name: K, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
	const made = document.createElement(name);
	for (const [key, value] of Object.entries(attributes)) {
		made.setAttribute(key, value);
	}
	made.append(...children);
	return made;
}

export function svg<K extends keyof SVGElementTagNameMap>(name: K, attributes: Record<string, string | number> = {}): SVGElementTagNameMap[K] {
	const made = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [key, value] of Object.entries(attributes)) {
		made.setAttribute(key, String(value));
	}
	return made;
}

export function button(text: string, onClick: () => void, attributes: Record<string, string> = {}): HTMLButtonElement {
	const made = el("button", { type: "button", ...attributes }, text);
	made.addEventListener("click", onClick);
	return made;
}

// setText writes only what changes, so that a selection and a screen reader are left alone.
export function setText(to: Element, text: string): void {
	if (to.textContent !== text) {
		to.textContent = text;
	}
}

// reconcile makes the children of an element those of a list, and keeps the elements of
// items that stay: focus and clicks survive an update. Of items with one key only the first keeps
// its element.
export function reconcile<T, E extends Element>(parent: Element, items: T[], keyOf: (item: T) => string, create: (item: T) => E, update: (element: E, item: T) => void): void {
	const wanted = new Set(items.map(keyOf));
	const old = new Map<string, E>();
	for (const child of Array.from(parent.children)) {
		const key = (child as HTMLElement).dataset.key ?? "";
		if (wanted.has(key) && !old.has(key)) {
			old.set(key, child as unknown as E);
		} else {
			child.remove();
		}
	}
	let before: Element | null = parent.firstElementChild;
	for (const item of items) {
		const key = keyOf(item);
		let element = old.get(key);
		if (element) {
			old.delete(key);
		} else {
			element = create(item);
			(element as unknown as HTMLElement).dataset.key = key;
		}
		update(element, item);
		// An element that is moved loses the focus: the ones before it are moved instead.
		while (before && before !== element && element.contains(document.activeElement)) {
			const next: Element | null = before.nextElementSibling;
			parent.append(before);
			before = next;
		}
		if (element === before) {
			before = before.nextElementSibling;
		} else {
			parent.insertBefore(element, before);
		}
	}
}

// whole shows all of a text that a list has cut.
export function whole(text: string): void {
	const dialog = byId<HTMLDialogElement>("whole");
	setText(dialog.querySelector("pre")!, visible(text));
	dialog.showModal();
}

// wholeButton is there if the text is cut in lists.
export function wholeButton(text: string, length = shown): HTMLButtonElement | null {
	if (text.length <= length) {
		return null;
	}
	return button("…", () => whole(text), { class: "whole", "aria-label": "Show the whole text of " + short(text, 24), title: "show the whole text" });
}

// valueText is how the value of a label stands in lists; what is no text is set apart.
export function valueText(value: { text: string; none?: boolean; others?: boolean }): HTMLElement {
	if (value.none || value.others || value.text === "") {
		return el("i", {}, value.none ? "none" : value.others ? "others" : "empty");
	}
	return el("bdi", {}, short(value.text));
}

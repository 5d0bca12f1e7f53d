// SPDX-License-Identifier: Apache-2.0

// The state of the page is its URL: it can be kept, passed on, and gone back to. What
// selects samples has the names of the server's parameters (params.go).

const pageOnly = ["view", "color", "sort"];

export class State {
	private params = new URLSearchParams(location.search);

	constructor(private changed: () => void) {
		addEventListener("popstate", () => {
			this.params = new URLSearchParams(location.search);
			this.changed();
		});
	}

	get(name: string): string {
		return this.params.get(name) ?? "";
	}

	has(name: string): boolean {
		return this.params.has(name);
	}

	// query is what the server is asked.
	query(): string {
		const q = new URLSearchParams(this.params);
		for (const name of pageOnly) {
			q.delete(name);
		}
		return q.toString();
	}

	// change is a step that the browser can go back from; replace is not, as for typing.
	change(set: Record<string, string | null>, how: "push" | "replace" = "push"): void {
		for (const [name, value] of Object.entries(set)) {
			if (value === null) {
				this.params.delete(name);
			} else {
				this.params.set(name, value);
			}
		}
		this.store(how);
	}

	// filters are those of label keys and of frames, as pairs.
	filters(): { name: string; value: string }[] {
		return Array.from(this.params, ([name, value]) => ({ name, value })).filter(
			({ name }) => name.startsWith("l.") || name.startsWith("n.") || name === "fn" || name === "module" || name === "frame",
		);
	}

	filtered(name: string, value: string): boolean {
		return this.params.has(name, value);
	}

	// toggle adds or takes away a filter.
	toggle(name: string, value: string): void {
		if (this.filtered(name, value)) {
			const rest = this.params.getAll(name).filter((v) => v !== value);
			this.params.delete(name);
			rest.forEach((v) => this.params.append(name, v));
		} else {
			this.params.append(name, value);
		}
		this.params.delete("zoom");
		this.store("push");
	}

	// comparing says which kind of difference is shown, if any.
	comparing(): "" | "label" | "times" {
		return this.has("ato") ? "times" : this.has("cmp") ? "label" : "";
	}

	clearFilters(): void {
		for (const { name } of this.filters()) {
			this.params.delete(name);
		}
		this.store("push");
	}

	private store(how: "push" | "replace"): void {
		const text = this.params.toString();
		const url = location.pathname + (text === "" ? "" : "?" + text);
		if (how === "push") {
			history.pushState(null, "", url);
		} else {
			history.replaceState(null, "", url);
		}
		this.changed();
	}
}

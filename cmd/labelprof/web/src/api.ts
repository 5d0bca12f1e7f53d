// SPDX-License-Identifier: Apache-2.0

// What the server answers: answer.go has its twin. Times are in nanoseconds unless a name
// says Ms. A pair is both sides of a comparison, or everything and 0.
export type Sides = [number, number];
// A frame of the first level of a grouped tree says what of the label it is; its name is the value.
export type Frame = [name: string, module: string, type: string, group?: "value" | "none" | "others"];

export interface Facet {
	key: string;
	ns: number;
	covered: number; // of samples with the key
	values: { text: string; ns: number }[];
	more: number;
}

export interface SeriesValue {
	text: string;
	none?: boolean;
	others?: boolean;
	ns: number[];
}

export interface FunctionSum {
	frame: Frame;
	self: Sides;
	total: Sides;
}

export interface Tree {
	frames: Frame[];
	id: string[];
	parent: number[];
	frame: number[];
	self: Sides[];
	total: Sides[];
	zoom: number;
	hidden: number;
}

export interface Answer {
	unchanged?: boolean;
	version: string;
	source: string;
	live: boolean;
	by: string;
	notes: string[] | null;
	bytes: number;
	maxBytes: number;
	received: number;
	evicted: number;
	cut: number;
	fromMs: number;
	toMs: number;
	offCpu: boolean;
	hits: Sides;
	ns: Sides;
	found: Sides;
	series: { fromMs: number; stepMs: number; buckets: number; values: SeriesValue[] };
	facets: Facet[];
	moreKeys: number;
	modules: Facet;
	types: Facet;
	tree: Tree;
	functions: FunctionSum[];
	moreFunctions: number;
	tookMs: number;
}

// ask returns the answer to a query; have is the version that the page shows.
export async function ask(query: string, have: string, signal: AbortSignal): Promise<Answer> {
	const suffix = have === "" ? "" : (query === "" ? "" : "&") + "have=" + have;
	const response = await fetch("api/view?" + query + suffix, { signal });
	if (!response.ok) {
		throw new Error((await response.text()).trim());
	}
	return (await response.json()) as Answer;
}

export function sum(s: Sides): number {
	return s[0] + s[1];
}

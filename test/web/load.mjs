// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { Watched } from "./browser.mjs";

// load: how long a person waits with many samples.
export async function load(browser, given) {
	const times = [];
	const measure = async (what, step) => {
		const begin = performance.now();
		const result = await step();
		times.push(`${what} ${(performance.now() - begin).toFixed(0)} ms`);
		return result;
	};
	const w = await measure("page", async () => {
		const w = await Watched.open(browser, given.loadUrl);
		await w.frames();
		return w;
	});
	const samples = await w.samples();
	assert.ok(samples >= given.loadSamples, `${samples} samples`);
	await measure("slice", () => w.choose("tenant", "tenant-1"));
	await measure("difference", () => w.goto("?cmp=tenant&a=tenant-0&b=tenant-1").then(() => w.frames()));
	await w.shot("load");
	await measure("zoom", async () => {
		await w.page.locator("#flame g.frame").nth(6).click();
		await w.settled();
	});
	console.log(`load with ${samples} samples: ${times.join(", ")}`);
	await w.close();
}

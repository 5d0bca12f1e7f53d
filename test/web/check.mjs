// SPDX-License-Identifier: Apache-2.0

// What TestWeb asks of the page, as a person would use it:
//
//	node check.mjs '{"url": ..., "loadUrl": ..., "pid": ..., "truth": {TENANT: SHARE}, "emptyUrl": ..., "pprof": FILE}'
//
// The first page is live, the second one has many samples, the third one none.
import assert from "node:assert/strict";
import { accessibility } from "./accessibility.mjs";
import { launch, Watched } from "./browser.mjs";
import { hostile } from "./hostile.mjs";
import { load } from "./load.mjs";
import { link, states, times } from "./states.mjs";
import { updates } from "./updates.mjs";

const given = JSON.parse(process.argv[2]);

// live: what the collector sends appears by itself.
async function live(w) {
	const before = await w.samples();
	await w.page.waitForFunction((n) => Number(/in ([\d ]+) samples/.exec(document.querySelector("#status").textContent)?.[1].replaceAll(" ", "")) > n, before);
	console.log(`live: ${before} samples at first, then ${await w.samples()}`);
}

// shares: each tenant of a program has the share that the program measured itself.
async function shares(w) {
	// A host can have more processes than the list; others of this name are not ours.
	await w.page.fill("#find", given.pid);
	await w.page.waitForFunction(() => location.search.includes("find="));
	await w.settled();
	await w.choose("process.pid", given.pid);
	await w.page.fill("#find", "");
	await w.page.waitForFunction(() => !location.search.includes("find="));
	await w.settled();
	assert.equal(w.params().get("l.process.pid"), given.pid);
	const samples = await w.samples();
	const got = await w.shares("tenant");
	const labelled = Object.values(got).reduce((a, b) => a + b); // its main thread has no label
	assert.ok(labelled > 75 && labelled < 100.3, `${labelled} %`); // nor have samples from before its labels were found
	assert.ok(samples > 1000, `${samples} samples`);
	for (const [tenant, part] of Object.entries(given.truth)) {
		const share = (100 * got[tenant]) / labelled;
		const noise = 100 * 4 * Math.sqrt((part * (1 - part)) / samples) + 1;
		console.log(`${tenant.padEnd(10)} page ${share.toFixed(1).padStart(5)} %  truth ${(100 * part).toFixed(1).padStart(5)} %  (noise ${noise.toFixed(1)}, ${samples} samples)`);
		assert.ok(Math.abs(share - 100 * part) <= noise, tenant);
	}
}

// slicing: the graph has a tenant's functions only, and going back brings the others back.
async function slicing(w) {
	const all = await w.frames();
	assert.ok(all.acme_serve && all.globex_serve, Object.keys(all).join());
	await w.choose("tenant", "acme");
	let frames = await w.frames();
	assert.ok(frames.acme_serve && !frames.globex_serve, Object.keys(frames).join());
	const share = await w.shares("tenant");
	assert.ok(share.globex > 0, "the others can still be chosen");
	await w.shot("slice");
	await w.page.getByRole("tab", { name: "Functions" }).click();
	const names = await w.page.$$eval("#functions tbody th", (all) => all.map((th) => th.textContent));
	assert.ok(names.includes("acme_serve") && !names.includes("globex_serve"), names.join());
	await w.page.goBack();
	await w.page.goBack();
	await w.settled();
	frames = await w.frames();
	assert.ok(frames.acme_serve && frames.globex_serve);
	assert.equal(w.params().get("l.tenant"), null);
	// A function narrows down, too.
	await w.page.getByRole("tab", { name: "Functions" }).click();
	await w.page.getByRole("button", { name: "globex_serve", exact: true }).click();
	await w.settled();
	assert.deepEqual(Object.entries(await w.shares("tenant")).filter(([, s]) => s > 1).map(([t]) => t), ["globex"]);
	await w.shot("functions");
	await w.page.getByRole("button", { name: "Remove the filter function = globex_serve" }).click();
	await w.page.getByRole("tab", { name: "Flame graph" }).click();
	await w.settled();
}

// difference: what only one side has is of its colour, what both have is grey.
async function difference(w) {
	await w.page.locator("#compare-key").selectOption({ label: "tenant" });
	await w.settled();
	await w.page.locator("#compare-a").selectOption({ label: "acme" });
	await w.page.locator("#compare-b").selectOption({ label: "globex" });
	await w.settled();
	const frames = await w.frames();
	const hsl = (name) => frames[name].match(/[\d.]+/g).map(Number);
	assert.ok(hsl("acme_serve")[0] === 214 && hsl("acme_serve")[1] > 40, frames.acme_serve);
	assert.ok(hsl("globex_serve")[0] === 22 && hsl("globex_serve")[1] > 40, frames.globex_serve);
	await (await w.frame("acme_serve")).hover();
	const details = await w.page.locator("#details").textContent();
	assert.match(details, /A (9\d|100)\.\d %.*B 0\.\d %/);
	await w.shot("difference-light");
	await w.page.emulateMedia({ colorScheme: "dark" });
	await w.shot("difference-dark");
	await w.page.emulateMedia({ colorScheme: "light" });
	await w.page.getByRole("button", { name: "Swap" }).click();
	await w.settled();
	assert.ok((await w.frames()).acme_serve.startsWith("hsl(22 "), "sides are swapped");
	await w.page.locator("#compare-key").selectOption({ label: "nothing" });
	await w.settled();
}

// zoom and search, by pointer and by keys; the state is in the URL.
async function zoom(w) {
	const { page } = w;
	await (await w.frame("acme_serve")).click();
	await w.settled();
	assert.ok(w.params().has("zoom"));
	assert.ok(!(await w.frames()).globex_serve);
	const again = await Watched.open(given.browser, page.url());
	assert.ok(!(await again.frames()).globex_serve, "the URL alone says it");
	await again.close();
	await page.keyboard.press("Escape");
	await w.settled();
	assert.ok(!w.params().has("zoom"));

	await page.locator("#flame g[tabindex='0']").focus();
	await page.keyboard.press("Home");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	// The page may be drawn anew between two keys, with the details a little later.
	await page.waitForFunction(() => {
		const focused = document.activeElement?.getAttribute("name");
		return focused && focused !== "all" && document.querySelector("#details").textContent.startsWith(focused.slice(0, 20));
	});
	await page.keyboard.press("Enter");
	await w.settled();
	assert.ok(w.params().has("zoom"));
	await page.keyboard.press("Escape");
	await w.settled();

	await page.keyboard.press("/");
	await page.keyboard.type("GLOBEX_serve");
	await page.waitForFunction(() => /^[1-9]/.test(document.querySelector("#found").textContent));
	await w.settled();
	assert.equal(w.params().get("q"), "GLOBEX_serve");
	assert.deepEqual(await page.$$eval("#flame g.match", (all) => [...new Set(all.map((g) => g.getAttribute("name")))]), ["globex_serve"]);
	await w.shot("search");
	await page.fill("#search", "");
	await page.waitForFunction(() => !location.search.includes("q="));
	await w.settled();
}

// time: a range by pointer, the second half of the bars, another end by keys, and all again.
async function time(w) {
	const { page } = w;
	const all = await w.samples();
	const box = await page.locator("#strip svg").boundingBox();
	const bars = await page.$$eval("#strip svg g rect", (all) => all.map((r) => r.getBoundingClientRect()).map((r) => ({ left: r.left, right: r.right })));
	bars.sort((a, b) => a.left - b.left);
	const later = bars.filter((b) => b.left > bars[0].right);
	assert.ok(later.length > 0, "bars at more than one time");
	const begin = later[Math.floor(later.length / 2)].left + 1;
	const end = Math.max(...bars.map((b) => b.right)) - 1;
	await page.mouse.move(begin, box.y + 30);
	await page.mouse.down();
	await page.mouse.move((begin + end) / 2, box.y + 30);
	await page.mouse.move(end, box.y + 30);
	await page.mouse.up();
	await w.settled();
	const some = await w.samples();
	assert.ok(some > 0 && some < all, `${some} of ${all} samples`);
	const start = Number(w.params().get("from"));
	await page.getByRole("slider", { name: "Start of the range" }).focus();
	await page.keyboard.press("ArrowLeft");
	await w.settled();
	assert.ok(Number(w.params().get("from")) < start);
	await w.shot("range");
	await page.getByRole("button", { name: "All time" }).click();
	await w.settled();
	assert.ok((await w.samples()) >= all);
	await page.locator("#by").selectOption({ label: "route" });
	await w.settled();
	assert.ok((await page.locator("#legend").textContent()).includes("/checkout"));
	await page.locator("#by").selectOption({ label: "tenant" });
	await w.settled();
}

// download: pprof gets what is on the screen.
async function download(w) {
	await w.choose("tenant", "initech");
	const [file] = await Promise.all([w.page.waitForEvent("download"), w.page.getByRole("link", { name: "Download pprof" }).click()]);
	await file.saveAs(given.pprof);
}

const browser = (given.browser = await launch());
try {
	const w = await Watched.open(browser, given.url);
	await live(w);
	await w.shot("all-light");
	await w.page.emulateMedia({ colorScheme: "dark" });
	await w.shot("all-dark");
	await w.page.emulateMedia({ colorScheme: "light" });
	for (const step of [shares, slicing, difference, times, zoom, time, link, hostile, accessibility, download]) {
		const begin = Date.now();
		await step(w, given);
		assert.deepEqual(w.problems, [], step.name);
		console.log(`${step.name}: ${Date.now() - begin} ms`);
	}
	await w.close();
	await updates(browser, given);
	await states(browser, given);
	await load(browser, given);
} finally {
	await browser.close();
}

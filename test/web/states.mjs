// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { Watched } from "./browser.mjs";

const widths = [1400, 800, 500];

// states goes through the page's states at the widths of a desk, a tablet and a telephone; none is
// wider than its window, and on each the graph begins on the first two screens. Full forms take
// a picture of each, in both themes.
export async function states(browser, given) {
	const w = await Watched.open(browser, given.url);
	const { fromMs, toMs } = await w.page.evaluate(() => fetch("api/view").then((r) => r.json()));
	const step = Math.max(1, Math.floor((toMs - fromMs) / 10));
	const times = `afrom=${fromMs}&ato=${fromMs + 4 * step}&bfrom=${fromMs + 6 * step}&bto=${toMs + 1}`;
	const [a, b] = Object.keys(given.truth).sort();
	const all = {
		all: "", label: `l.tenant=${a}`, grouped: "group=tenant", nothing: "l.tenant=no+such+tenant",
		values: `cmp=tenant&a=${a}&b=${b}`, times: `group=tenant&${times}`, functions: "view=functions", "two-functions": `view=functions&cmp=tenant&a=${a}&b=${b}`,
	};
	let pictures = 0;
	const shoot = async (w, name) => {
		for (const width of widths) {
			await w.page.setViewportSize({ width, height: 900 });
			await w.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
			const { wide, top } = await w.page.evaluate(() => ({ wide: document.documentElement.scrollWidth, top: document.querySelector("#flame").getBoundingClientRect().top + scrollY }));
			assert.ok(wide <= width, `${name} is ${wide} px wide at ${width}`);
			assert.ok(top < 800, `${name}: the graph begins at ${top} px at ${width}`);
			if (name.endsWith("functions")) {
				await wholeTable(w, `${name} at ${width}`);
			}
			for (const scheme of given.pictures ? ["light", "dark"] : []) {
				await w.page.emulateMedia({ colorScheme: scheme });
				await w.shot(`state-${name}-${width}-${scheme}`);
				pictures++;
			}
		}
	};
	for (const [name, query] of Object.entries(all)) {
		await w.goto("?" + query);
		if (name === "grouped") {
			const groups = await w.page.$$eval("#flame g.group", (all) => all.map((g) => g.getAttribute("name")));
			assert.ok(groups.includes(a) && groups.includes(b), groups.join());
		}
		await meanings(w, name);
		await shoot(w, name);
	}
	await w.close();
	await shoot(await unanswered(browser, given, false), "loading");
	await shoot(await unanswered(browser, given, true), "error");
	if (given.emptyUrl) {
		const empty = await Watched.open(browser, given.emptyUrl);
		assert.match(await empty.page.locator("#status").textContent(), /^waiting for /);
		assert.match(await empty.page.locator("#hint").textContent(), /^Nothing has come yet/);
		await shoot(empty, "empty");
		await empty.close();
	}
	if (given.offUrl) {
		await offCPUOnly(browser, given.offUrl);
	}
	console.log(`states: ${pictures} pictures`);
}

// offCPUOnly: a page that has only time off the CPU says where that is.
async function offCPUOnly(browser, url) {
	const off = await Watched.open(browser, url);
	assert.match(await off.page.locator("#hint").textContent(), /choose Off CPU above/);
	await off.page.locator("#kind button", { hasText: "Off CPU" }).click();
	await off.settled();
	assert.doesNotMatch(await off.page.locator("#hint").textContent(), /choose/);
	assert.ok("wait" in (await off.frames()));
	await off.close();
}

// wholeTable: all columns are seen, and names have room.
async function wholeTable(w, where) {
	const { inner, outer, name } = await w.page.evaluate(() => {
		const host = document.querySelector("#functions");
		return { inner: host.scrollWidth, outer: host.clientWidth, name: host.querySelector("thead th").clientWidth };
	});
	assert.ok(inner <= outer, `${where}: the table has ${inner} px of ${outer}`);
	assert.ok(name >= 140, `${where}: names have ${name} px`);
}

// meanings: what the colours are is said, and functions of Go stand without the path of their
// package.
async function meanings(w, name) {
	if (name.endsWith("functions")) {
		return;
	}
	const key = await w.page.$$eval("#key li", (all) => all.map((li) => li.textContent));
	if (name === "values" || name === "times") {
		assert.deepEqual(key, ["larger part of A", "of both alike", "larger part of B"]);
	} else if (name !== "nothing") {
		const types = Object.keys(await w.shares("frame type")).slice(0, 8);
		assert.deepEqual(key.map((text) => text.slice(0, 15)), types.map((text) => (text === "empty" ? "unknown" : text.slice(0, 15))));
	}
	const labels = await w.page.$$eval("#flame g.frame:not(.group)", (all) => all.map((g) => [g.getAttribute("name"), g.querySelector("div").textContent]));
	const long = labels.filter(([whole]) => /^[a-z][\w.%-]*(\/[\w.%-]+)+\.[\w(]/.test(whole));
	assert.ok(name !== "all" || long.length > 0, "no function of a Go program");
	for (const [whole, label] of long) {
		assert.ok(whole.endsWith(label) && !label.split("[", 1)[0].includes("/"), `${whole} stands as ${label}`);
	}
}

// unanswered is the page with a server that does not answer, or answers with an error.
async function unanswered(browser, given, fails) {
	const context = await browser.newContext();
	const page = await context.newPage();
	await page.route("**/api/view*", (route) => (fails ? route.fulfill({ status: 400, body: "read the query: no such kind" }) : undefined));
	await page.goto(given.url);
	await page.waitForSelector(fails ? "#problem:not([hidden])" : "html.busy.first");
	assert.ok(!(await page.locator("#compare select").first().isVisible()), "nothing to choose from yet");
	const w = new Watched();
	[w.page, w.context] = [page, context];
	return w;
}

// link: the address alone brings everything back, in another browser.
export async function link(w, given) {
	const { page } = w;
	await w.goto("");
	await page.locator("#group").selectOption({ label: "tenant" });
	await w.settled();
	await w.choose("process.pid", given.pid);
	await (await w.frame("acme")).click();
	await w.settled();
	await page.getByRole("button", { name: "Copy link" }).click();
	await page.locator("#color").selectOption({ label: "function" });
	await w.settled();
	for (const [name, value] of Object.entries({ group: "tenant", by: "tenant", color: "function", "l.process.pid": given.pid })) {
		assert.equal(w.params().get(name), value);
	}
	assert.ok(w.params().has("zoom"));
	const again = await Watched.open(given.browser, page.url());
	const look = (w) => w.page.evaluate(() => ["by", "group", "color"].map((id) => document.getElementById(id).value).concat(document.querySelector("#chips").textContent));
	assert.deepEqual(await look(again), await look(w));
	const names = Object.keys(await again.frames());
	assert.ok(names.includes("acme_serve") && !names.includes("globex_serve"), names.join());
	await again.close();
	await w.goto("?l.process.pid=" + given.pid);
}

// times: the difference of two ranges of time, each set by dragging.
export async function times(w) {
	const { page } = w;
	await page.locator("#compare-key").selectOption({ label: "two times" });
	await w.settled();
	const before = w.params().get("afrom");
	assert.ok(Number(w.params().get("ato")) <= Number(w.params().get("bfrom")), "halves, to begin with");
	const box = await page.locator("#strip svg").boundingBox();
	for (const [side, from, to] of [["a", 0.1, 0.4], ["b", 0.6, 0.9]]) {
		await page.locator(`.drag button[data-side=${side}]`).click();
		await page.mouse.move(box.x + from * box.width, box.y + 20);
		await page.mouse.down();
		await page.mouse.move(box.x + to * box.width, box.y + 20);
		await page.mouse.up();
		await w.settled();
	}
	const at = (name) => Number(w.params().get(name));
	assert.ok(at("afrom") < at("ato") && at("ato") < at("bfrom") && at("bfrom") < at("bto"), page.url());
	assert.notEqual(w.params().get("afrom"), before);
	assert.match(await page.locator("#range").textContent(), /^B \d{4}-\d\d-\d\d \d\d:\d\d:\d\d/);
	await (await w.frame("all")).hover();
	assert.match(await page.locator("#details").textContent(), /A .*B .*points/);
	const a = await page.evaluate(() => fetch("api/view" + location.search).then((r) => r.json()));
	await page.getByRole("button", { name: "Swap" }).click();
	await w.settled();
	const b = await page.evaluate(() => fetch("api/view" + location.search).then((r) => r.json()));
	assert.deepEqual(b.ns, [a.ns[1], a.ns[0]]);
	await page.locator("#compare-key").selectOption({ label: "nothing" });
	await w.settled();
	assert.ok(!w.params().has("ato"));
}

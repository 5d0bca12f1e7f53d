// SPDX-License-Identifier: Apache-2.0

// Chromium with a page that is watched: whatever it runs, asks for or complains of.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

export const timeout = 180_000;

export async function launch() {
	return chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
	});
}

// Watched is a page of labelprof.
export class Watched {
	problems = [];

	static async open(browser, url, options = {}) {
		const w = new Watched();
		w.origin = new URL(url).origin;
		w.context = await browser.newContext({ viewport: { width: 1360, height: 860 }, acceptDownloads: true, ...options });
		w.page = await w.context.newPage();
		w.page.setDefaultTimeout(timeout);
		w.page.on("console", (m) => m.type() === "error" && w.problems.push("console: " + m.text()));
		w.page.on("pageerror", (e) => w.problems.push("error: " + e.message));
		w.page.on("dialog", (d) => (w.problems.push("dialog: " + d.message()), d.dismiss()));
		w.page.on("request", (r) => new URL(r.url()).origin !== w.origin && w.problems.push("asks elsewhere: " + r.url()));
		await w.page.goto(url);
		await w.settled();
		return w;
	}

	// settled waits until the page shows the answer to what its URL asks.
	async settled() {
		await this.page.waitForFunction(() => {
			const q = new URLSearchParams(location.search);
			["view", "color", "sort"].forEach((name) => q.delete(name));
			return document.documentElement.dataset.query === q.toString();
		});
	}

	async goto(query) {
		await this.page.goto(this.origin + "/" + query);
		await this.settled();
	}

	params() {
		return new URL(this.page.url()).searchParams;
	}

	// frames are the fills of the flame graph by name, of several with one name that of the widest.
	async frames() {
		await this.page.waitForSelector("#flame g.frame");
		return this.page.$$eval("#flame g.frame", (all) => {
			all.sort((a, b) => a.getAttribute("width") - b.getAttribute("width"));
			return Object.fromEntries(all.map((g) => [g.getAttribute("name"), g.querySelector("rect").getAttribute("fill")]));
		});
	}

	// frame is the widest one with a name.
	async frame(name) {
		const id = await this.page.$$eval("#flame g.frame", (all, name) => all.filter((g) => g.getAttribute("name") === name).sort((a, b) => b.getAttribute("width") - a.getAttribute("width"))[0]?.dataset.id, name);
		return this.page.locator(`#flame g[data-id="${id}"]`);
	}

	// choose opens a slice and clicks one of its values.
	async choose(key, value) {
		await this.open(key);
		await this.slice(key).locator("button.value", { has: this.page.getByText(value, { exact: true }) }).click();
		await this.settled();
	}

	async open(key) {
		if (!(await this.slice(key).evaluate((d) => d.open))) {
			await this.slice(key).locator("summary").click();
		}
	}

	slice(key) {
		return this.page.locator("#slices details", { has: this.page.locator("summary bdi", { hasText: new RegExp("^" + key.replaceAll(".", "\\.") + "$") }) });
	}

	// shares are the percentages of a slice by value.
	async shares(key) {
		return this.slice(key).locator("li").evaluateAll((all) => Object.fromEntries(all.map((li) => [li.querySelector(".text").textContent, parseFloat(li.querySelector(".share").textContent)])));
	}

	async samples() {
		return Number(/in ([\d ]+) samples/.exec(await this.page.locator("#status").textContent())?.[1].replaceAll(" ", "") ?? 0);
	}

	async shot(name) {
		mkdirSync("../web", { recursive: true });
		await this.page.evaluate(() => scrollTo(0, 0));
		await this.page.screenshot({ path: `../web/${name}.png` });
	}

	async close() {
		assert.deepEqual(this.problems, []);
		await this.context.close();
	}
}

// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { Watched } from "./browser.mjs";

// updates: what is listed is what the last answer has, whatever is shown alike, and an update
// that puts others before it leaves the focus where it is.
export async function updates(browser, given) {
	const w = await Watched.open(browser, given.url);
	const { page } = w;
	const answer = await page.evaluate(() => fetch("api/view").then((r) => r.json()));
	const long = "a type of frames that is cut ";
	const orders = [["", "unknown", long + "1", long + "2"], ["unknown", long + "2", "", long + "1"], ["last", "", "unknown"]];
	let version = 0;
	let order = orders[0];
	await page.route("**/api/view*", (route) => {
		const values = order.map((text, i) => ({ text, ns: order.length - i }));
		return route.fulfill({ json: { ...answer, version: "made up " + ++version, live: true, tookMs: 0, types: { ...answer.types, values } } });
	});
	await w.goto("");
	const update = async (to, times) => {
		order = to;
		const from = version;
		await page.waitForFunction((n) => Number(document.documentElement.dataset.version?.split(" ").at(-1)) >= n, from + times);
		assert.deepEqual(await texts(page, "#key li"), to.map(typeText));
		assert.equal(await w.slice("frame type").locator("li").count(), to.length);
	};
	const focused = () => page.evaluate(() => document.activeElement.textContent);
	const value = (text) => w.slice("frame type").locator("button.value", { has: page.getByText(text, { exact: true }) });
	await update(orders[0], 3);
	for (const text of ["unknown", "empty"]) {
		await value(text).focus();
		for (const to of [...orders.slice(1), orders[0]]) {
			await update(to, 2);
			assert.ok((await focused()).startsWith(text), `${text} had the focus before ${to.join()}`);
		}
	}
	await w.close();
}

const typeText = (text) => (text === "" ? "unknown" : text.length <= 16 ? text : text.slice(0, 15) + "…");

const texts = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));

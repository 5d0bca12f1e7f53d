// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// accessibility: names, roles and contrast in both themes, and the order of the focus.
export async function accessibility(w, given) {
	const { page } = w;
	let checks = 0;
	// A theme has colours of its own, and nothing else.
	const all = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
	for (const [scheme, runOnly] of [["light", all], ["dark", { type: "rule", values: ["color-contrast"] }]]) {
		await page.emulateMedia({ colorScheme: scheme });
		for (const view of ["color=module", "view=functions", "cmp=tenant&a=acme&b=globex", "group=tenant", "afrom=0&ato=1&bfrom=1&bto=9999999999999"]) {
			const query = "?l.process.pid=" + given.pid + "&" + view;
			await w.goto(query);
			await page.evaluate(source);
			const result = await page.evaluate((runOnly) => window.axe.run(document, { runOnly }), runOnly);
			checks += result.passes.length;
			const problems = result.violations.map((v) => `${scheme} ${query} ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " " + n.any.map((a) => a.message).join("; ")).join(" | ")}`);
			assert.deepEqual(problems, []);
		}
	}
	await page.emulateMedia({ colorScheme: "light" });
	await w.goto("?l.process.pid=" + given.pid);
	await page.evaluate(() => document.activeElement?.blur());
	const order = [];
	for (let i = 0; i < 200; i++) {
		await page.keyboard.press("Tab");
		const at = await page.evaluate(() => {
			const e = document.activeElement;
			return e === document.body ? "" : e.closest("[id]")?.id;
		});
		if (at === "") {
			break;
		}
		if (order.at(-1) !== at) {
			order.push(at);
		}
	}
	const places = ["copy", "download", "by", "legend", "strip", "find", "slices", "compare-key", "tab-flame", "search", "group", "color", "flame"];
	assert.deepEqual(order.filter((id) => places.includes(id)), places, order.join());
	console.log(`accessibility: ${checks} checks of WCAG 2.2 AA, those of colours in both themes`);
}

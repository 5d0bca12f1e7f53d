// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";

// hostile: labels, functions and files that are markup, scripts, endless or invisible
// are text, and run nothing. The test publishes them (web_test.go).
export async function hostile(w, given) {
	const { page } = w;
	for (const view of ["flame", "functions"]) {
		await w.goto("?view=" + view + "&by=hostile_label&l.hostile_label=" + encodeURIComponent(given.hostile.markup));
		const text = await page.locator("body").innerText();
		assert.ok(text.includes(given.hostile.markup), "the label is there as text");
		await nothingRan(w);
	}
	await w.goto("?by=hostile_label&find=hostile_label");
	const values = Object.keys(await w.shares("hostile_label"));
	assert.ok(values.includes("bell\\u0007 null\\u0000 turn\\u202e line\\nend"), values.join("\n"));
	await page.waitForSelector("#legend li");
	await w.slice("hostile_label").locator("button.whole").first().click();
	const dialog = page.getByRole("dialog");
	assert.equal((await dialog.locator("pre").textContent()).length, given.hostile.longBytes, "all that there is of a long value");
	await w.shot("hostile-long");
	await page.keyboard.press("Escape");
	await dialog.waitFor({ state: "hidden" });
	await nothingRan(w);

	// Functions and files come from the sender as they are.
	await w.goto("?n.tenant&l.process.executable.name=" + encodeURIComponent(given.hostile.process));
	const frames = Object.keys(await w.frames());
	assert.ok(frames.includes(given.hostile.markup), frames.join("\n"));
	assert.ok(frames.some((name) => name.includes("\\u202e")), frames.join("\n"));
	await page.locator("#flame g.frame").last().hover();
	await page.locator("#flame g.frame").last().click();
	await w.settled();
	await w.open("module");
	await w.shot("hostile-frames");
	await page.getByRole("tab", { name: "Functions" }).click();
	await w.settled();
	await nothingRan(w);
	await w.goto("?l.process.pid=" + given.pid);
}

async function nothingRan(w) {
	const found = await w.page.evaluate(() => ({
		ran: window.ran === true,
		made: document.querySelectorAll("#columns img, #columns iframe, #columns b.mine, header img, section img, script:not([src])").length,
		scripts: document.scripts.length,
	}));
	assert.deepEqual(found, { ran: false, made: 0, scripts: 1 });
}

// SPDX-License-Identifier: Apache-2.0

// The picture of README.md (scripts/web-picture.sh):
//
//	node picture.mjs URL SAMPLES FILE
import assert from "node:assert/strict";
import { launch, Watched } from "./browser.mjs";

const [url, samples, file] = process.argv.slice(2);
const browser = await launch();
try {
	const w = await Watched.open(browser, url, { viewport: { width: 1280, height: 720 } });
	while ((await w.samples()) < Number(samples)) {
		await w.page.waitForTimeout(1000);
	}
	await w.goto("?by=tenant&group=tenant&color=function");
	await w.open("tenant");
	await w.settled();
	assert.ok((await w.frames()).acme_serve, "functions of the tenants");
	await w.page.evaluate(() => scrollTo(0, 0));
	await w.page.screenshot({ path: file });
	await w.close();
} finally {
	await browser.close();
}

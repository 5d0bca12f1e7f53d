// SPDX-License-Identifier: Apache-2.0

// Builds the page into dist: one script, one style sheet, and the licences of what is
// bundled. The output depends on the sources and on package-lock.json only.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "esbuild";

mkdirSync("dist", { recursive: true });
const { metafile } = await build({
	entryPoints: { page: "src/main.ts" },
	bundle: true,
	outdir: "dist",
	format: "esm",
	target: ["es2022"],
	minify: true,
	keepNames: true, // d3-flame-graph looks at the name of a class
	charset: "utf8",
	legalComments: "none", // all of them are in LICENSES.txt
	metafile: true,
	logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) {
	copyFileSync(join("src", name), join("dist", name));
}

// The packages that code in the bundle comes from.
const packages = new Map();
for (const input of Object.keys(metafile.outputs["dist/page.js"].inputs)) {
	const found = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
	if (found) {
		packages.set(found[1].replace(/^.*node_modules\//, ""), found[1]);
	}
}
const texts = ["The page of labelprof contains these packages.\n"];
for (const name of [...packages.keys()].sort()) {
	const dir = packages.get(name);
	const { version, license } = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
	const file = readdirSync(dir).find((f) => /^licen[cs]e/i.test(f));
	if (!file) {
		throw new Error(`${dirname(dir)}/${name} has no licence file`);
	}
	texts.push(`${"=".repeat(72)}\n${name} ${version} (${license})\n\n${readFileSync(join(dir, file), "utf8").trim()}\n`);
}
writeFileSync("dist/LICENSES.txt", texts.join("\n"));

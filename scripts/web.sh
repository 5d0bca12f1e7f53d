#!/usr/bin/env bash
# Builds the page of labelprof (cmd/labelprof/web) into its dist, which is committed:
# from the npm registry, in the versions of the lock file, in build/web-npm.
set -euo pipefail
cd "$(dirname "$0")/.."

from=cmd/labelprof/web
to=build/web-npm

mkdir -p "$to"
if ! cmp -s "$from/package-lock.json" "$to/package-lock.json" || [[ ! -e $to/installed ]]; then
	rm -f "$to/installed"
	cp "$from"/package.json "$from"/package-lock.json "$to"/
	npm ci --prefix "$to" --ignore-scripts --no-audit --no-fund --loglevel=error
	touch "$to/installed"
fi
rm -rf "$to/src" "$to/dist"
cp -r "$from"/{src,tsconfig.json,build.mjs} "$to"/
(cd "$to" && node_modules/.bin/tsc --noEmit -p . && node build.mjs)

rm -rf "$from/dist"
cp -r "$to/dist" "$from/dist"

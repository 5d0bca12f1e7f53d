#!/usr/bin/env bash
# Installs what drives the page of labelprof in Chromium (test/web) in build/web-browser:
# from the npm registry, in the versions of the lock file.
set -euo pipefail
cd "$(dirname "$0")/.."

from=test/web
to=build/web-browser

mkdir -p "$to"
cp "$from"/*.mjs "$to"/
if cmp -s "$from/package-lock.json" "$to/package-lock.json" && [[ -e $to/installed ]]; then
	exit 0
fi
rm -f "$to/installed"
cp "$from"/package.json "$from"/package-lock.json "$to"/
npm ci --prefix "$to" --ignore-scripts --no-audit --no-fund --loglevel=error
touch "$to/installed"

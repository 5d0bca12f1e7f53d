#!/usr/bin/env bash
# Installs the Node.js writers of test/realwriters, and the Node.js that runs them,
# in build/realwriters/node: from the npm registry, in the versions of the lock file.
set -euo pipefail
cd "$(dirname "$0")/.."

from=test/realwriters/node
to=build/realwriters/node

mkdir -p "$to"
cp "$from"/*.js "$to"/
if cmp -s "$from/package-lock.json" "$to/package-lock.json" && [[ -e $to/installed ]]; then
	exit 0
fi
rm -f "$to/installed"
cp "$from"/package.json "$from"/package-lock.json "$to"/
# npm itself may run on an older Node.js than the packages ask for.
npm ci --prefix "$to" --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error
touch "$to/installed"

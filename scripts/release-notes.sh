#!/usr/bin/env bash
# Prints what CHANGELOG.md says of a version; fails if it says nothing.
#
#   scripts/release-notes.sh VERSION
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: scripts/release-notes.sh VERSION}
notes=$(VERSION=$version awk '/^## /{ on = index($0, "## [" ENVIRON["VERSION"] "]") == 1; next } on' CHANGELOG.md)
if [[ ! $notes =~ [^[:space:]] ]]; then
	echo "release-notes: CHANGELOG.md has no section [$version]" >&2
	exit 1
fi
printf '%s\n' "$notes"

#!/usr/bin/env bash
# Runs one test that measures something, as root: scripts/figure.sh PACKAGE TEST
# `go test` is content when it finds no test of that name, or when one skips; here
# both are failures.
set -euo pipefail
cd "$(dirname "$0")/.."

package=$1
name=$2

as_root=()
if ((EUID != 0)); then
	# sudo may set a PATH of its own, without go in it
	as_root=(-exec "sudo --preserve-env env 'PATH=$PATH'")
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

CUSTOM_LABELS_MUST_RUN=1 ${GO:-go} test -count=1 -v -timeout 30m "${as_root[@]}" \
	-run "^$name\$" "$package" 2>&1 | tee "$log"

if ! grep -q "^--- PASS: $name " "$log" || grep -q '^ *--- SKIP' "$log"; then
	echo "figure: $name did not run in full" >&2
	exit 1
fi

#!/usr/bin/env bash
# Runs one test that measures something, as root: scripts/figure.sh PACKAGE TEST
# `go test` is content when it finds no test of that name, or when one skips; here
# both are failures, unless the test has found out by trying that this machine cannot.
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

# skipped prints the tests that were, but for those that the test binary says this machine cannot run.
skipped() {
	sed -nE 's/^ *--- SKIP: ([^ ]+) .*/\1/p' "$log" |
		grep -vxF -f <(sed -nE 's/^not on this machine: .*: ([^ ]+)$/\1/p' "$log")
}

if skipped >&2 || ! grep -qE "^--- (PASS|SKIP): $name " "$log"; then
	echo "figure: $name did not run in full" >&2
	exit 1
fi

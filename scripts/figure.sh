#!/usr/bin/env bash
# Runs tests that measure something, as root: scripts/figure.sh PACKAGE TEST...
# They are built once and run in one process. The figure of each is repeated at the end.
# `go test` is content when it finds no test of a name, or when one skips; here both are
# failures, unless the test has found out by trying that this machine cannot.
set -euo pipefail
cd "$(dirname "$0")/.."

package=$1
shift
binary=build/tests/$(basename "$package").test
log=$(mktemp)
trap 'rm -f "$log"' EXIT

as_root=()
if ((EUID != 0)); then
	# sudo may set a PATH of its own, without go in it
	as_root=(sudo --preserve-env env "PATH=$PATH")
fi

${GO:-go} test -c -o "$binary" "$package"
status=0
pattern=$(IFS='|' && echo "$*")
(cd "$package" && CUSTOM_LABELS_MUST_RUN=1 "${as_root[@]}" "$OLDPWD/$binary" \
	-test.v -test.count=1 -test.timeout "${TIMEOUT:-90m}" -test.run "^($pattern)\$") 2>&1 | tee "$log" || status=$?

echo
# The last thing that each test has said by itself.
awk '
	/^=== RUN +[^\/]+$/ { test = $3; said = "" }
	/^(===|---|    |label assertions:|PASS|FAIL|ok )/ { if ($1 == "---" && said != "") { print $3 ": " said; said = "" } next }
	NF { said = $0 }
' "$log"
for test in "$@"; do
	if ! grep -qE "^--- (PASS|SKIP): $test " "$log"; then
		status=1
		if ! grep -qE "^--- FAIL: $test " "$log"; then
			echo "figure: $test did not run to its end"
		fi
	fi
done
# What failed, with its figures, once more: it may stand far above. Without what a collector
# says while all is well.
awk '
	/"level":"info"/ { next }
	/^=== RUN +[^\/]+$/ { n = 0 }
	{ line[n++] = $0 }
	/^--- FAIL: / { for (i = n > 40 ? n - 40 : 0; i < n; i++) print line[i]; n = 0 }
' "$log"

# skipped prints the tests that were, but for those that the test binary says this machine
# cannot run.
skipped() {
	sed -nE 's/^ *--- SKIP: ([^ ]+) .*/figure: skipped: \1/p' "$log" |
		grep -vxF -f <(sed -nE 's/^not on this machine: .*: ([^ ]+)$/figure: skipped: \1/p' "$log")
}
if skipped; then
	status=1
fi
exit "$status"

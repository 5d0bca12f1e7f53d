#!/usr/bin/env bash
# Runs fuzz targets of the module and prints how often each was executed:
#   scripts/fuzz.sh short [AMOUNT]      every target under Go's coverage-guided engine
#   scripts/fuzz.sh long [EXECUTIONS]   those of internal/testutil/fuzz in its plain loop,
#                                       from what the engine has found so far
# AMOUNT is a number of executions (3000x) or a duration, in which a busy machine may do
# nothing at all.
# FUZZ_TARGETS, a pattern, selects targets by name.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:-short}
amount=${2:-}
go=${GO:-go}
log=$(mktemp)
table=$(mktemp)
trap 'rm -f "$log" "$table"' EXIT

# targets prints PACKAGE:NAME of each target, of those whose file has a pattern.
targets() {
	git ls-files --cached --others --exclude-standard '*_test.go' |
		xargs grep -lE "$1" | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' |
		sed -E 's|^(.*)/[^/]*:func |./\1:|' | sort -u | grep -E ":.*${FUZZ_TARGETS:-}"
}

# run shows the output of a command, keeps it, and names the target when it fails.
run() {
	if "$@" 2>&1 | tee "$log" >&2; then
		return
	fi
	# Before Go 1.27 the engine may fail by its own deadline (golang/go#75804).
	if grep -q '^ *context deadline exceeded$' "$log" && ! grep -qE 'Failing input|panic:|_test\.go:' "$log"; then
		return
	fi
	echo "fuzz: $package $target failed" >&2
	exit 1
}

short() {
	run "$go" test -run '^$' -fuzz "^$target\$" -fuzztime "${amount:-3000x}" -fuzzminimizetime 100x "$package"
	# On a busy machine the time may pass with what the corpus has already.
	sed -nE -e 's/.*execs: ([0-9]+) .*new interesting: ([0-9]+) \(total: ([0-9]+)\).*/\1 \2 \3/p' \
		-e 's/.*baseline coverage: ([1-9][0-9]*)\/([0-9]+) completed$/\1 0 \2/p' "$log" | tail -1
}

long() {
	local import
	import=$("$go" list "$package")
	CUSTOM_LABELS_FUZZ_EXECUTIONS=${amount:-100000000} \
		CUSTOM_LABELS_FUZZ_CORPUS=${CUSTOM_LABELS_FUZZ_CORPUS:-$("$go" env GOCACHE)/fuzz/$import} \
		run "$go" test -run "^$target\$" -v -timeout 0 "$package"
	sed -nE 's/.*loop ([0-9]+) executions in .*, ([0-9]+)\/sec, corpus ([0-9]+)/\1 \2 \3/p' "$log" | tail -1
}

case $mode in
short) pattern='^func Fuzz' columns='executions new_interesting corpus' ;;
long) pattern='fuzz\.Run\(' columns='executions per_second corpus' ;;
*)
	echo "usage: scripts/fuzz.sh short [AMOUNT] | long [EXECUTIONS]" >&2
	exit 2
	;;
esac

echo "package target $columns" >"$table"
list=$(targets "$pattern") || {
	echo "fuzz: no targets found" >&2
	exit 1
}
while IFS=: read -r package target; do
	echo "fuzz $package $target" >&2
	figures=$("$mode")
	if ! [[ $figures =~ ^[0-9]+\ [0-9]+\ [0-9]+$ ]]; then
		echo "fuzz: $package $target: no count of executions" >&2
		exit 1
	fi
	echo "$package $target $figures" >>"$table"
done <<<"$list"

awk '{ printf "%-34s %-20s %14s %16s %8s\n", $1, $2, $3, $4, $5; n += $3 }
	END { printf "fuzz: %d targets passed, %d executions\n", NR - 1, n }' "$table"

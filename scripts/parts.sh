#!/usr/bin/env bash
# Runs make targets one after the other, each to its end: scripts/parts.sh TARGET...
# Ends with a table of them, what this machine could not run, and, of those that failed,
# the last lines they said: that is where each has its figures. Their logs stay in
# build/parts.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

logs=build/parts
rm -rf "$logs"
mkdir -p "$logs"
export CUSTOM_LABELS_MISSING=$PWD/$logs/missing # test binaries add to it
failed=()
table=()
start=$SECONDS

for part in "$@"; do
	log=$logs/$part.log
	began=$SECONDS
	echo "== $part"
	if "${MAKE:-make}" --no-print-directory "$part" </dev/null 2>&1 | tee "$log"; then
		result=passed
	else
		result=FAILED
		failed+=("$part")
	fi
	table+=("$(printf '%-24s %6d s  %s' "$part" $((SECONDS - began)) "$result")")
done

echo
printf '%s\n' "${table[@]}"
printf '%-24s %6d s\n' "in all" $((SECONDS - start))
echo
[[ ! -e $CUSTOM_LABELS_MISSING ]] || sort -u "$CUSTOM_LABELS_MISSING"
for part in "${failed[@]}"; do
	printf '\n== %s failed; all it said is in %s\n' "$part" "$logs/$part.log"
	tail -n 60 "$logs/$part.log"
done
printf '\n%d passed, %d failed\n' $(($# - ${#failed[@]})) ${#failed[@]}
((${#failed[@]} == 0))

#!/usr/bin/env bash
# Runs make targets one after the other, each to its end: scripts/parts.sh ROW[+ROW]...
# A row is targets with a comma between them. Rows with a + between them run at the same time; one
# that begins with ~ uses what the others leave idle, until the first row has ended.
# Ends with a table of them, what this machine could not run, what was measured more than once,
# and, of those that failed, what their failed tests have said.
# Their logs stay in build/parts.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

logs=build/parts
rm -rf "$logs"
mkdir -p "$logs"
export CUSTOM_LABELS_MISSING=$PWD/$logs/missing # test binaries add to it
parts=()
start=$SECONDS

# run makes a target and puts its line of the table beside its log: how long it took, and how
# much time of CPUs. It is a shell of its own, which does not count what ends beside it.
run() (
	local began=$SECONDS result=passed TIMEFORMAT='%U %S'
	{
		time "${MAKE:-make}" --no-print-directory "$1" </dev/null 2>&1 | tee "$logs/$1.log"
	} 2>"$logs/$1.cpu" || result=FAILED
	printf '%-24s %6d s %6.0f s of CPU  %s\n' "$1" $((SECONDS - began)) \
		"$(awk '{ print $1 + $2 }' "$logs/$1.cpu")" $result >"$logs/$1.result"
)

# failures prints what each failed test of a log has said, 30 lines of each at most, without
# what a collector says while all is well, and what a log without one has said last.
failures() {
	awk '
		{ sub(/\r$/, "") }
		/"level":"info"/ { next }
		/^=== / { test = $3; failed = 0; next }
		/^ *--- / {
			failed = $2 == "FAIL:"
			if (failed) {
				n = lines[$3]
				for (i = n > 30 ? n - 30 : 0; i < n; i++) print said[$3, i]
				print
				any = 1
			}
			test = ""
			next
		}
		/^(FAIL|PASS|ok) *$|^(FAIL|ok)\t/ { test = ""; failed = 0 }
		failed { print; next }
		test != "" { said[test, lines[test]++] = $0 }
		{ last[NR % 60] = $0 }
		END { if (!any) for (i = NR > 60 ? NR - 59 : 1; i <= NR; i++) if (last[i % 60] != "") print last[i % 60] }
	' "$1"
}

# hurry gives processes, all threads of them and of their children, the ordinary priority, where
# that is allowed.
hurry() {
	local pid
	for pid in "$@"; do
		[[ -d /proc/$pid/task ]] || continue
		# shellcheck disable=SC2046 # numbers
		renice -n 0 -p $(ls "/proc/$pid/task" 2>/dev/null) >/dev/null 2>&1 || true
		# shellcheck disable=SC2046
		hurry $(cat "/proc/$pid/task/"*/children 2>/dev/null)
	done
}

for group in "$@"; do
	IFS=+ read -ra rows <<<"$group"
	for row in "${rows[@]:1}"; do
		(
			[[ $row != '~'* ]] || renice -n 19 -p $BASHPID >/dev/null
			tr , '\n' <<<"${row#\~}" | while read -r part; do run "$part"; done
		) >/dev/null &
	done
	for part in ${rows[0]//,/ }; do
		echo "== $part"
		run "$part"
	done
	# shellcheck disable=SC2046
	hurry $(jobs -p) # nothing is measured any more that they could disturb
	wait
	for row in "${rows[@]:1}"; do
		tr , '\n' <<<"${row#\~}" | while read -r part; do
			printf '== %s, at the same time\n' "$part"
			cat "$logs/$part.log"
		done
	done
	# shellcheck disable=SC2206 # names
	parts+=(${group//[,+~]/ })
done

echo
for part in "${parts[@]}"; do
	cat "$logs/$part.result"
done
printf '%-24s %6d s\n' "in all" $((SECONDS - start))
echo
[[ ! -e $CUSTOM_LABELS_MISSING ]] || sort -u "$CUSTOM_LABELS_MISSING"
grep -h '^measured again: ' "$logs"/*.log || true
failed=0
for part in "${parts[@]}"; do
	! grep -q 'passed$' "$logs/$part.result" || continue
	failed=$((failed + 1))
	printf '\n== %s failed; all it said is in %s\n' "$part" "$logs/$part.log"
	failures "$logs/$part.log"
done
printf '\n%d passed, %d failed\n' $((${#parts[@]} - failed)) $failed
((failed == 0))

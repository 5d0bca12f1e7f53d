#!/usr/bin/env bash
# Unit tests, as root: scripts/unit.sh [-exec COMMAND] PACKAGE...
# The quick form leaves the race detector out where no file starts a goroutine or imports
# sync: there is nothing for it to find, and parsers take five times as long with it. Nor has
# internal/bpf it there, whose tests load the programs a hundred times; what runs it beside
# others, the receiver's tests, have it.
set -euo pipefail
cd "$(dirname "$0")/.."

flags=(-short -timeout 60m)
if [[ $1 == -exec ]]; then
	flags+=("$1" "$2")
	shift 2
fi

concurrent=()
alone=()
while read -r package dir; do
	if [[ ${CUSTOM_LABELS_FULL:-} == 1 ]] || { [[ $package != */internal/bpf ]] && grep -qE '^\s*go (func|[a-z])|"sync["/]|"errgroup' "$dir"/*.go; }; then
		concurrent+=("$package")
	else
		alone+=("$package")
	fi
done < <(${GO:-go} list -f '{{.ImportPath}} {{.Dir}}' "$@")

# Both at the same time: tests wait for much, and what a few long ones leave idle at the end
# of one is used by the other.
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ((${#alone[@]} > 0)); then
	${GO:-go} test -p 1 "${flags[@]}" "${alone[@]}" >"$log" 2>&1 &
fi
${GO:-go} test -race "${flags[@]}" "${concurrent[@]}" || status=1
((${#alone[@]} == 0)) || wait $! || status=1
cat "$log"
exit "$status"

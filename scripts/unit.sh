#!/usr/bin/env bash
# Unit tests, as root: scripts/unit.sh [-exec COMMAND] PACKAGE...
# The quick form leaves the race detector out where no file starts a goroutine or imports
# sync: there is nothing for it to find, and parsers take five times as long with it. Of the
# packages below, only the named tests have it, those that run something beside something
# else; internal/bpf, whose tests load the programs a hundred times, is run beside other
# things by the receiver's tests, which have it.
set -euo pipefail
cd "$(dirname "$0")/.."

flags=(-short -timeout 60m -vet=off) # vet is one of the linters
if [[ $1 == -exec ]]; then
	flags+=("$1" "$2")
	shift 2
fi
go=${GO:-go}
module=github.com/customlabels/otelcol-customlabels
declare -A few=(
	[$module/cmd/labelprof/internal/serve]='^Test(Serve|HostileRequests|Silent|Patience)'
	[$module/cmd/labelprof/internal/otlp]='^TestWorkIsBounded'
	[$module/cmd/labelprof/internal/inspect]=''
	[$module/cmd/labelprof/internal/input]=''
	[$module/cmd/labelprof/internal/sink]=''
	[$module/internal/symbol]='^Test(Cache|PerfMaps|Reading|Kernel|GoFrames(Stuck|Concurrent)|OutsideOfHeap)'
	[$module/internal/bpf]=''
	[$module/internal/procfs]='^Test(Blocked|OpenMapped|PathsOfOtherKinds|MappedDevice|MountNamespace|ChrootEscape|Overlay|PathBeyondPathMax|EndlessProcFiles)'
	[$module/internal/testutil]=''
	[$module/test/mutants]=''
)

concurrent=()
alone=()
some=()
while read -r package dir; do
	if [[ ${CUSTOM_LABELS_FULL:-} == 1 ]]; then
		concurrent+=("$package")
	elif [[ -v few[$package] ]]; then
		alone+=("$package")
		[[ -z ${few[$package]} ]] || some+=("$package")
	elif grep -qE '^\s*go (func|[a-z])|"sync["/]|"errgroup' "$dir"/*.go; then
		concurrent+=("$package")
	else
		alone+=("$package")
	fi
done < <("$go" list -f '{{.ImportPath}} {{.Dir}}' "$@")

# Both kinds at the same time: tests wait for much, and what the longest leave idle at the end
# of one kind is used by the other.
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ((${#alone[@]} > 0)); then
	"$go" test "${flags[@]}" "${alone[@]}" >"$log" 2>&1 &
fi
"$go" test -race "${flags[@]}" "${concurrent[@]}" || status=1
for package in "${some[@]}"; do
	"$go" test -race -run "${few[$package]}" "${flags[@]}" "$package" || status=1
done
((${#alone[@]} == 0)) || wait $! || status=1
cat "$log"
exit "$status"

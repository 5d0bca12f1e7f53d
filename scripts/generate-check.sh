#!/usr/bin/env bash
# Regenerates everything in place and fails when that changes what is committed.
#
#   scripts/generate-check.sh            all of it
#   scripts/generate-check.sh changed    only if inputs or results are not those of the last
#                                        `make generate` or `make web`
#   scripts/generate-check.sh sum        print what tells the two apart
#
# BPF objects are reproducible only with the very compiler that made them, whose
# version stands in tools/clang-version. With another clang 19 the objects are
# compiled, to see that they do, and put back; everything else is compared.
set -euo pipefail
cd "$(dirname "$0")/.."

inputs=(
	'internal/bpf/src' 'internal/bpf/generate.go' 'cmd/labelprof/web'
	'internal/labels/anomaly.go' 'internal/pipeline/reasons.go' 'internal/pipeline/snapshotlabels.go' 'internal/pipeline/snapshotmetrics.go' 'internal/profile/options.go'
	'tools/clang-version' 'tools/go.mod' 'tools/go.sum'
	':(glob)receiver/**/metadata.yaml' ':(glob)receiver/**/configtable/*.go' 'scripts/generate-check.sh' 'scripts/web.sh'
)
generated=(
	':(glob)internal/bpf/*_bpfe[lb].go'
	':(glob)internal/**/*_string.go'
	':(glob)receiver/**/generated_*.go'
	':(glob)receiver/**/documentation.md'
	':(glob)receiver/**/README.md'
	':(glob)receiver/**/config.schema.json'
	'cmd/labelprof/web/dist'
)
objects=(':(glob)internal/bpf/*_bpfe[lb].o')
stamp=tools/generated.sum

sum() {
	git ls-files -z --cached --others --exclude-standard -- "${inputs[@]}" "${generated[@]}" "${objects[@]}" |
		LC_ALL=C sort -zu | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
}

case ${1:-} in
sum)
	sum
	exit
	;;
changed)
	if [[ $(sum) == "$(cat "$stamp")" ]]; then
		echo "generate-check: inputs and generated files are those of the last generation"
		exit
	fi
	;;
esac

want=$(<tools/clang-version)
have=$(clang-19 --version | sed -n 's/.*clang version \([0-9.]*\).*/\1/p')

make --no-print-directory generate web
generated+=("$stamp")

if [[ $have == "$want" ]]; then
	generated+=("${objects[@]}")
else
	echo "generate-check: clang $have is not the $want that made the committed objects: not comparing them" >&2
	if [[ -n $(git ls-files -- "${objects[@]}") ]]; then
		git checkout -q -- "${objects[@]}"
	fi
	sum >"$stamp"
fi

failed=0
if ! git diff --exit-code --stat -- "${generated[@]}"; then
	failed=1
fi
untracked=$(git ls-files --others --exclude-standard -- "${generated[@]}")
if [[ -n $untracked ]]; then
	echo "generated, but not committed:"
	echo "$untracked"
	failed=1
fi
if ((failed)); then
	echo "generate-check: run 'make generate web' and commit the result" >&2
fi
exit "$failed"

#!/usr/bin/env bash
# Regenerates everything in place and fails when that changes what is committed.
#
# BPF objects are reproducible only with the very compiler that made them, whose
# version stands in tools/clang-version. With another clang 19 the objects are
# compiled, to see that they do, and put back; everything else is compared.
set -euo pipefail
cd "$(dirname "$0")/.."

generated=(
	':(glob)internal/bpf/*_bpfe[lb].go'
	':(glob)receiver/**/generated_*.go'
	':(glob)receiver/**/documentation.md'
	':(glob)receiver/**/README.md'
)
objects=(':(glob)internal/bpf/*_bpfe[lb].o')

want=$(<tools/clang-version)
have=$(clang-19 --version | sed -n 's/.*clang version \([0-9.]*\).*/\1/p')

make --no-print-directory generate

if [[ $have == "$want" ]]; then
	generated+=("${objects[@]}")
else
	echo "generate-check: clang $have is not the $want that made the committed objects: not comparing them" >&2
	if [[ -n $(git ls-files -- "${objects[@]}") ]]; then
		git checkout -q -- "${objects[@]}"
	fi
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
	echo "generate-check: run 'make generate' and commit the result" >&2
fi
exit "$failed"

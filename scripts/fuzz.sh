#!/usr/bin/env bash
# Runs every fuzz target of the module for a while: scripts/fuzz.sh [DURATION]
set -euo pipefail
cd "$(dirname "$0")/.."

duration=${1:-10s}
count=0
while IFS=: read -r file target; do
	package=./$(dirname "$file")
	echo "fuzz $package $target for $duration"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "$package"
	count=$((count + 1))
done < <(git ls-files --cached --others --exclude-standard '*_test.go' |
	xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' | sed 's/:func /:/' | sort -u)

if ((count == 0)); then
	echo "fuzz: no targets found" >&2
	exit 1
fi
echo "fuzz: $count targets passed"

#!/usr/bin/env bash
# Fetches the packages of corpus.txt, of which it keeps the ELF files, and prints
# the directory that holds them, one directory a package:
#   fetch.sh DIRECTORY/{amd64,arm64}/SUITE/PACKAGE
# A package that is there is not fetched again; to renew all, remove the directory.
# The cache is ${XDG_CACHE_HOME:-~/.cache}/unwindrows, about 5 GB.
set -euo pipefail
cd "$(dirname "$0")"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/unwindrows
mkdir -p "$cache"
work=$(mktemp -d "$cache/work.XXXXXX") # in the cache, so that moves within it are atomic
trap 'rm -rf "$work"' EXIT

# keep DIR: removes what is not ELF, and debugging information without code.
keep() {
	find "$1" -type l -delete
	find "$1" -type f -print0 | while IFS= read -r -d '' file; do
		[[ $(head -c 4 "$file" | tr -d '\0') == $'\x7fELF' ]] || rm -f "$file"
	done
	find "$1" -depth -type d -empty -delete
	mkdir -p "$1"
}

# debian ARCH SUITE PACKAGE DIR; false if that architecture does not have it
debian() {
	../vm/fetch.sh deb "$1" "$2" "$3" "$4"
}

# npm PACKAGE DIR
npm() {
	(cd "$work" && command npm pack --silent "$1" >tarball) &&
		mkdir -p "$2" && tar -xzf "$work/$(cat "$work/tarball")" -C "$2"
}

# fetch ARCH SUITE PACKAGE
fetch() {
	local dir=$cache/$1/$2/${3//\//_}
	[[ -d $dir ]] && return
	rm -rf "$work/root"
	echo "fetch $3 ($2, $1)" >&2
	if [[ $2 == npm ]]; then
		npm "$3" "$work/root" || return
	else
		debian "$1" "$2" "$3" "$work/root" || return
	fi
	keep "$work/root"
	mkdir -p "$(dirname "$dir")"
	mv -T "$work/root" "$dir"
}

missing=0
while read -r suite amd64 arm64; do
	[[ -z $suite || $suite == '#'* ]] && continue
	fetch amd64 "$suite" "$amd64" </dev/null || missing=$((missing + 1))
	fetch arm64 "$suite" "${arm64:-$amd64}" </dev/null || missing=$((missing + 1))
done <corpus.txt
((missing == 0)) || echo "fetch.sh: $missing packages are not to be had" >&2
echo "$cache"

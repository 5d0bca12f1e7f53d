#!/usr/bin/env bash
# Unpacks CPython 3.14, which this system's packages lack, with the libraries that it needs, from
# a newer Debian, for tests of Python frames:
#   scripts/pythons.sh DIR    makes DIR/python3.14, which runs it; some 30 MB
# As root: what it makes runs in a directory of its own (chroot), with /proc, /tmp and this
# repository of the host.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(realpath -m "${1:?usage: $0 DIR}")
version=3.14
[[ $(uname -m) == x86_64 ]] || exit 0
[[ -e $dir/python$version ]] && exit 0
root=$dir/$version
rm -rf "$root"
mkdir -p "$root"
test/vm/fetch.sh deb amd64 forky \
	"python$version-minimal libpython$version-minimal libpython$version-stdlib libc6 libexpat1 zlib1g libffi8" "$root"
mkdir -p "$root/proc" "$root/tmp" "$root$PWD"
for link in lib lib64; do
	[[ -e $root/$link ]] || ln -s "usr/$link" "$root/$link"
done
cat >"$dir/python$version.new" <<-EOF
	#!/bin/sh
	exec unshare --mount sh -c 'mount --bind /proc "\$0/proc" && mount --bind /tmp "\$0/tmp" &&
		{ case "$PWD" in /tmp/*) ;; *) mount --bind "$PWD" "\$0$PWD" ;; esac; } &&
		exec chroot "\$0" /usr/bin/python$version "\$@"' "$root" "\$@"
EOF
chmod +x "$dir/python$version.new"
mv "$dir/python$version.new" "$dir/python$version"

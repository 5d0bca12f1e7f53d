#!/usr/bin/env bash
# Unpacks the JVMs that this system's packages lack, with the libraries that they need, from a
# newer Debian, for tests of Java frames:
#   scripts/jvms.sh DIR    makes DIR/java21 and DIR/java25, which run them; some 400 MB
# As root: what it makes runs in a directory of its own (chroot), with /proc and /tmp of the host.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(realpath -m "${1:?usage: $0 DIR}")
[[ $(uname -m) == x86_64 ]] || exit 0
for version in 21 25; do
	root=$dir/$version
	[[ -e $dir/java$version ]] && continue
	rm -rf "$root"
	mkdir -p "$root"
	test/vm/fetch.sh deb amd64 trixie "openjdk-$version-jre-headless libc6 libgcc-s1 libstdc++6 zlib1g" "$root"
	mkdir -p "$root/proc" "$root/tmp"
	for link in lib lib64; do
		[[ -e $root/$link ]] || ln -s "usr/$link" "$root/$link"
	done
	cat >"$dir/java$version.new" <<-EOF
		#!/bin/sh
		exec unshare --mount sh -c 'mount --bind /proc "\$0/proc" && mount --bind /tmp "\$0/tmp" &&
			exec chroot "\$0" /usr/lib/jvm/java-$version-openjdk-amd64/bin/java "\$@"' "$root" "\$@"
	EOF
	chmod +x "$dir/java$version.new"
	mv "$dir/java$version.new" "$dir/java$version"
done

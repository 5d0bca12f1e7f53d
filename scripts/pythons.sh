#!/usr/bin/env bash
# Makes CPythons that this system's packages lack, from a newer Debian, for tests of Python frames:
#   scripts/pythons.sh DIR    makes DIR/python3.14 and DIR/python3.13t, which run them
# 3.14 is unpacked, with the libraries that it needs, some 30 MB; it needs root, since it runs in a
# directory of its own (chroot), with /proc, /tmp and this repository of the host. 3.13t is
# free-threaded, of which there are no packages: it is built from the sources, 23 MB, in some two
# minutes of CPU time.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(realpath -m "${1:?usage: $0 DIR}")
[[ $(uname -m) == x86_64 ]] || exit 0

# unpack VERSION
unpack() {
	local version=$1 root=$dir/$1 link
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
}

# build_free_threaded VERSION: it runs where it is built.
build_free_threaded() {
	local version=$1 root=$dir/$1t
	rm -rf "$root"
	test/vm/fetch.sh source amd64 trixie "python$version" "$root"
	if ! (
		cd "$root" &&
			./configure --disable-gil --with-ensurepip=no --disable-test-modules \
				--without-static-libpython OPT='-DNDEBUG -O2' &&
			make -j"$(nproc)"
	) >"$dir/python${version}t.log" 2>&1; then
		tail -n 20 "$dir/python${version}t.log" >&2
		return 1
	fi
	cat >"$dir/python${version}t.new" <<-EOF
		#!/bin/sh
		exec "$root/python" "\$@"
	EOF
}

# have NAME COMMAND...: makes DIR/NAME, if it is not there, by what leaves it as DIR/NAME.new.
have() {
	local name=$1
	shift
	[[ ! -e $dir/$name ]] || return 0
	"$@"
	chmod +x "$dir/$name.new"
	mv "$dir/$name.new" "$dir/$name"
}

have python3.14 unpack 3.14
have python3.13t build_free_threaded 3.13

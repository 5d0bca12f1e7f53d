#!/usr/bin/env bash
# Makes CPythons that this system's packages lack, from a newer Debian, for tests of Python frames:
#   scripts/pythons.sh DIR    makes DIR/python3.14, DIR/python3.13t and DIR/python3.13m, which run them
# 3.14 is unpacked, with the libraries that it needs, some 30 MB; it needs root, since it runs in a
# directory of its own (chroot), with /proc, /tmp and this repository of the host. Of the others
# there are no packages: each is built from the sources, 23 MB, in some two minutes of CPU time.
# 3.13t is free-threaded. 3.13m has musl, and is in a libpython3 of its own, as in Alpine Linux.
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

# build VERSION NAME OPTION...: configured by the options and the environment. It runs where it is built.
build() {
	local version=$1 name=$2 root=$dir/$2
	shift 2
	rm -rf "$root"
	test/vm/fetch.sh source amd64 trixie "python$version" "$root"
	if ! (
		cd "$root" &&
			./configure --with-ensurepip=no --disable-test-modules \
				--without-static-libpython OPT='-DNDEBUG -O2' "$@" &&
			make -j"$(nproc)"
	) >"$dir/python$name.log" 2>&1; then
		tail -n 20 "$dir/python$name.log" >&2
		return 1
	fi
	cat >"$dir/python$name.new" <<-EOF
		#!/bin/sh
		LD_LIBRARY_PATH="$root" exec "$root/python" "\$@"
	EOF
}

# build_musl VERSION NAME: without the libraries of this machine, which are glibc's.
build_musl() {
	local cc=$dir/musl-cc
	# What configure asks musl-gcc, gcc answers with the name of its own C library.
	cat >"$cc" <<-'EOF'
		#!/bin/sh
		[ "$1" = --print-multiarch ] || exec musl-gcc "$@"
	EOF
	chmod +x "$cc"
	CC=$cc PKG_CONFIG_LIBDIR=/dev/null build "$1" "$2" --enable-shared
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
have python3.13t build 3.13 3.13t --disable-gil
have python3.13m build_musl 3.13 3.13m

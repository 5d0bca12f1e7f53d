#!/usr/bin/env bash
# Unpacks a newer JVM than that of scripts/arm-runtimes.sh for an aarch64 guest, from a newer Debian,
# with the libraries that it needs:
#   scripts/arm-jvm.sh VERSION DIR    fills DIR, some 190 MB, which the guest has as its /
# In the guest /guest/javaVERSION runs it in a directory of its own (chroot), with the guest's /proc
# and /guest/chains.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: $0 VERSION DIR}
dir=$(realpath -m "${2:?usage: $0 VERSION DIR}")
command=guest/java$version # is written last
[[ -e $dir/$command && $dir/$command -nt scripts/arm-jvm.sh ]] && exit 0

part=$dir.part
root=$part/guest/jvm$version
rm -rf "$dir" "$part"
mkdir -p "$root"
trap 'rm -rf "$part"' EXIT

test/vm/fetch.sh deb arm64 trixie "openjdk-$version-jre-headless libc6 libgcc-s1 libstdc++6 zlib1g" "$root"
home=usr/lib/jvm/java-$version-openjdk-arm64
mv "$root/$home/lib/jvm.cfg-default" "$root/$home/lib/jvm.cfg" # what installing it would do
rm -rf "${root:?}"/usr/{bin,sbin,share} "$root"/usr/lib/aarch64-linux-gnu/gconv "$root/$home"/{docs,legal,man}
rm -f "$root/$home"/lib/server/classes_*.jsa
find "$root" -xtype l ! -lname '/etc/*' -delete # to documentation, and to what a distribution sets up
ln -sf usr/lib "$root/lib"
mkdir -p "$root"/{proc,tmp,guest/chains}

mkdir -p "$part/bin"
ln -s busybox "$part/bin/chroot"
ln -s busybox "$part/bin/mount"
cat >"$part/$command" <<-EOF
	#!/bin/sh
	exec unshare -m sh -c 'mount -o bind /proc "\$0/proc" && mount -o bind /guest/chains "\$0/guest/chains" &&
		exec chroot "\$0" /$home/bin/java "\$@"' /guest/jvm$version "\$@"
EOF
chmod +x "$part/$command"
mv "$part" "$dir"

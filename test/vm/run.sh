#!/usr/bin/env bash
# Boots a Debian kernel in qemu, runs programs in it, and exits with their code:
#
#   run.sh ARCH SERIES [vmrun flags] -- [KEY=VALUE]... BINARY [ARG]... [--next ...]...
#
# for instance run.sh arm64 6.1 -- ./x-arm64.test -test.v. ARCH and SERIES are those of
# fetch.sh, the flags and exit codes those of vmrun (see README.md).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if (($# < 3)); then
	sed -n '4s/^# *//p' "$0" >&2
	exit 125
fi
arch=$1 series=$2
shift 2
bin=$here/../../build/vm/bin

# As go test's -exec the environment may name the guest's architecture. Several runs may
# be at it at once.
build() {
	local work
	work=$(mktemp -d "$bin/XXXXXX")
	(cd "$here" && env -u GOOS -u GOFLAGS GOARCH="$2" CGO_ENABLED=0 \
		"${GO:-go}" build -trimpath -ldflags='-s -w' -o "$work/$3" "./$1")
	mv -f "$work/$3" "$bin/$3"
	rmdir "$work"
}

kernel=$("$here/fetch.sh" kernel "$arch" "$series") || exit 125
mkdir -p "$bin"
build vmrun "$(env -u GOARCH "${GO:-go}" env GOHOSTARCH)" vmrun || exit 125
build guestinit "$arch" "init-$arch" || exit 125

case $series in
*16k) set -- -cpu cortex-a76 "$@" ;; # vmrun's default, the a72, has no such pages
esac
exec "$bin/vmrun" -arch "$arch" -kernel "$kernel" -init "$bin/init-$arch" "$@"

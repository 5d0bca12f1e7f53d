#!/usr/bin/env bash
# Runs the TLS matrix for aarch64 in a virtual machine: scripts/tls-matrix-vm.sh [SERIES [vmrun flags]]
# The corpus must have been built (make tls-corpus).
set -euo pipefail
cd "$(dirname "$0")/.."

series=${1:-6.12}
shift || true
binary=build/vm/arm64/tlsmatrix.test
log=$(mktemp)
trap 'rm -f "$log"' EXIT

${MAKE:-make} -s -C test/vm ARCH=arm64 libraries
CGO_ENABLED=0 GOOS=linux GOARCH=arm64 ${GO:-go} test -c -ldflags='-s -w' -o "$binary" ./test/tlsmatrix
corpus=()
for target in {glibc,musl}-{gcc,clang}; do
	corpus+=(-add "build/tls/aarch64-$target:/guest/tls/aarch64-$target")
done
test/vm/run.sh arm64 "$series" -m 2048 -timeout 9m -add build/vm/arm64/root/lib:/lib "${corpus[@]}" "$@" -- \
	CUSTOM_LABELS_MUST_RUN=1 CUSTOM_LABELS_TLS_CORPUS=/guest/tls \
	"$binary" -test.v -test.run '^TestMatrix$' | tee "$log"

# A test binary is content when it finds no test of that name.
if ! grep -q '^--- PASS: TestMatrix ' "$log"; then
	echo "tls-matrix-vm: the matrix did not run in full" >&2
	exit 1
fi

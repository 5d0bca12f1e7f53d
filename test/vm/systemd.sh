#!/usr/bin/env bash
# Boots a Debian system with systemd and runs a test of test/e2e in it, both of which
# `make -C test/vm ARCH=ARCH systemd` has made, with the collector of `make collector`, for the
# other architecture compiled from the same sources:
#
#   systemd.sh ARCH TEST
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

arch=$1
built=build/vm/$arch
collector=build/otelcol/otelcol-customlabels
if [[ $arch != $("${GO:-go}" env GOARCH) ]]; then
	collector=$built/otelcol-customlabels
	(cd build/otelcol && GOFLAGS="$("${GO:-go}" env GOFLAGS) -mod=mod -buildvcs=false" GOARCH=$arch CGO_ENABLED=0 \
		"${GO:-go}" build -trimpath -ldflags='-s -w' -o "../../$collector" .)
fi
exec test/vm/run.sh "$arch" 6.12 -v -m 3072 -timeout "${TIMEOUT:-30m}" \
	-add "$built/systemd:/" -add "$built/root/guest/writers-glibc:/guest/writers" \
	-add "$collector:/usr/local/bin/otelcol-customlabels" \
	-add deploy/systemd/otelcol-customlabels.service:/etc/systemd/system/otelcol-customlabels.service \
	-- CUSTOM_LABELS_WRITERS=/guest/writers PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	"$built/e2e.test" -test.v -test.timeout 30m -test.run "^$2\$"

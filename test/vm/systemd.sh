#!/usr/bin/env bash
# Boots a Debian system with systemd and runs a test of test/e2e in it, both of which
# `make -C test/vm systemd` has made, with the collector of `make collector`:
#
#   systemd.sh TEST
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

arch=$("${GO:-go}" env GOARCH)
built=build/vm/$arch
exec test/vm/run.sh "$arch" 6.12 -v -m 3072 -timeout "${TIMEOUT:-30m}" \
	-add "$built/systemd:/" -add "$built/root/guest/writers-glibc:/guest/writers" \
	-add build/otelcol/otelcol-customlabels:/usr/local/bin/otelcol-customlabels \
	-add deploy/systemd/otelcol-customlabels.service:/etc/systemd/system/otelcol-customlabels.service \
	-- CUSTOM_LABELS_WRITERS=/guest/writers PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	"$built/e2e.test" -test.v -test.timeout 30m -test.run "^$1\$"

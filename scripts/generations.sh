#!/usr/bin/env bash
# The packages that make profiles, built and tested with other versions of their data model
# than that of go.mod, which is the newest: the one that the collectors are built with, and the
# last one that leaves attributes in place over gRPC. What was tested before is cached.
set -euo pipefail
cd "$(dirname "$0")/.."

module=go.opentelemetry.io/collector/pdata/pprofile
replaced=$(sed -nE "s,^  - $module => $module (v[0-9.]+)\$,\1,p" builder-config.yaml)
folder=build/generations
mkdir -p "$folder"
for version in ${replaced:?builder-config.yaml replaces no $module} v0.162.0; do
	modfile=$folder/$version.mod
	cp go.mod "$modfile"
	cp go.sum "${modfile%.mod}.sum"
	${GO:-go} mod edit -replace "$module=$module@$version" "$modfile"
	echo "with $module $version"
	${GO:-go} test -mod=mod -modfile="$modfile" ./internal/profile ./receiver/...
done

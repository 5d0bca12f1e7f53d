#!/usr/bin/env bash
# Makes what a release consists of, in build/release/VERSION: for each architecture the static
# programs in archives, with their bills of materials, and the packages; and checksums of all.
# The same commit and the same version give the same bytes.
#
#   scripts/release.sh VERSION
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-}
if [[ ! $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]]; then
	echo "usage: make release VERSION=1.2.3, a semantic version without v; not '$version'" >&2
	exit 2
fi
# Times of files are that of the commit. Without git, say SOURCE_DATE_EPOCH.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC CGO_ENABLED=0 GOTOOLCHAIN=local
umask 022

out=$PWD/build/release/$version
work=$PWD/build/release/work
rm -rf "$out" "$work"
mkdir -p "$out" "$work"

# archive NAME: the folder $work/NAME as $out/NAME.tar.gz
archive() {
	tar --create --directory "$work" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" \
		--owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w "$1" | gzip -9n >"$out/$1.tar.gz"
}

sed "s|^  version: .*|  version: $version|; s|^  output_path: .*|  output_path: ./build/release/work/otelcol|" builder-config.yaml >"$work/builder-config.yaml"
GOFLAGS="-mod=mod -buildvcs=false" bin/builder --skip-compilation --config "$work/builder-config.yaml"

for arch in amd64 arm64; do
	export GOOS=linux GOARCH=$arch
	stage=$work/$arch
	mkdir -p "$stage"
	flags=(-trimpath -buildvcs=false)
	(cd "$work/otelcol" && GOFLAGS=-mod=mod go build "${flags[@]}" -ldflags='-s -w' -o "$stage/otelcol-customlabels" .)
	go build "${flags[@]}" -ldflags="-s -w -X main.version=$version" -o "$stage/labelprof" ./cmd/labelprof
	sed 's|/usr/local/bin|/usr/bin|' deploy/systemd/otelcol-customlabels.service >"$stage/otelcol-customlabels.service"

	name=otelcol-customlabels-$version-linux-$arch
	mkdir -p "$work/$name/systemd"
	cp -r examples LICENSE README.md CHANGELOG.md "$stage/otelcol-customlabels" "$work/$name/"
	cp deploy/systemd/otelcol-customlabels.service "$work/$name/systemd/"
	archive "$name"
	name=labelprof-$version-linux-$arch
	mkdir -p "$work/$name"
	cp LICENSE "$stage/labelprof" "$work/$name/"
	archive "$name"

	unset GOOS GOARCH
	for program in otelcol-customlabels labelprof; do
		bin/release "$version" "$stage/$program" >"$out/$program-$version-linux-$arch.cdx.json"
	done
	sed "s|\${ARCH}|$arch|; s|\${VERSION}|$version|; s|\${STAGE}|$stage|" deploy/packages/nfpm.yaml >"$work/nfpm.yaml"
	for kind in deb rpm; do
		bin/nfpm package --config "$work/nfpm.yaml" --packager "$kind" --target "$out/"
	done
done
rm -rf "$work"
cd "$out"
sha256sum -- * >SHA256SUMS
cat SHA256SUMS

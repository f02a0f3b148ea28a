#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The tree that is installed for DKMS is complete: both modules come out of it, say
# who they are, and are of the version that dkms.conf names.
#
# Usage: tests/kernel/dkms_builds.sh BUILD SERIES
# Where dkms is not installed, the line that it would run is run. Exit code 77
# where there are no headers.

build=$(realpath "$1")
series=$2
lab_dir=${RDMABOX_LAB_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/rdmabox-lab}
headers=$lab_dir/kernel-$series/headers/build

if [ ! -e "$headers/Makefile" ]; then
	echo "skipped: no headers of kernel $series in $lab_dir; lab/prepare gets them"
	exit 77
fi
headers=$(realpath "$headers")
kernel=$(<"$lab_dir/kernel-$series/release")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/rdmabox-dkms.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT

die()
{
	echo "$*"
	exit 1
}

DESTDIR=$scratch/installed meson install -C "$build" --no-rebuild --quiet --tags kernel ||
	die "cannot install the sources"
conf=$(find "$scratch/installed" -name dkms.conf)
[ -n "$conf" ] || die "there is no dkms.conf"
source_tree=$(dirname "$(dirname "$conf")")
tree=$scratch/dkms
mkdir "$tree"

# What dkms.conf may use, and what it sets.
arch=$(uname -m)
dkms_tree=$tree
export kernel_source_dir=$headers
export KCFLAGS=-g0 # debugging information takes time, and is not looked at
# shellcheck source=/dev/null
. "$conf"
[ "$(basename "$(dirname "$conf")")" = "$PACKAGE_NAME-$PACKAGE_VERSION" ] ||
	die "dkms looks for $PACKAGE_NAME-$PACKAGE_VERSION"

for each in "$kernel" 6.1.0 6.4.12-1 6.11-rc1 6.13.0; do
	[[ $each =~ $BUILD_EXCLUSIVE_KERNEL ]] || die "dkms would not build for $each"
done
for each in 5.15.0 6.5.1 6.10.2 6.14.0-1 7.0.0; do # see block/compat.h
	! [[ $each =~ $BUILD_EXCLUSIVE_KERNEL ]] || die "dkms would try to build for $each"
done

if PATH=$PATH:/usr/sbin command -v dkms >/dev/null; then
	PATH=$PATH:/usr/sbin dkms build "$PACKAGE_NAME/$PACKAGE_VERSION" -k "$kernel" \
		--arch "$arch" --dkmstree "$tree" --sourcetree "$source_tree" \
		--kernelsourcedir "$headers" ||
		{ cat "$tree/$PACKAGE_NAME/$PACKAGE_VERSION/build/make.log"; die "dkms build failed"; }
	modules=$tree/$PACKAGE_NAME/$PACKAGE_VERSION/$kernel/$arch/module
else
	mkdir -p "$dkms_tree/$PACKAGE_NAME/$PACKAGE_VERSION"
	modules=$dkms_tree/$PACKAGE_NAME/$PACKAGE_VERSION/build
	cp -r "$(dirname "$conf")" "$modules"
	eval "${MAKE[0]}" || die "the modules do not build"
fi

# field NAME FILE
field()
{
	PATH=$PATH:/usr/sbin modinfo -F "$1" "$2"
}

for name in "${BUILT_MODULE_NAME[@]}"; do
	file=$(find "$modules" -maxdepth 1 -name "$name.ko*")
	[ -n "$file" ] || die "$name was not built"
	[ "$(field version "$file")" = "$PACKAGE_VERSION" ] ||
		die "$name is of version $(field version "$file"), not $PACKAGE_VERSION"
	[ "$(field license "$file")" = "Dual BSD/GPL" ] || die "$name has no license"
	for wanted in description author; do
		[ -n "$(field "$wanted" "$file")" ] || die "$name has no $wanted"
	done
	# A parameter without a description has nothing behind the colon.
	! field parm "$file" | grep -E '^[a-z_]+: *\([a-z]+\)?$' || die "$name: say what it is"
done

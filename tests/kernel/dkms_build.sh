#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Builds the kernel modules as DKMS does: from the tree that is installed for it, by the line
# of its dkms.conf. So that tree is complete. dkms.conf takes the kernels that it should, and
# both modules say who they are, and are of the version that it names.
#
# Usage: tests/kernel/dkms_build.sh BUILD SERIES LINK [VARIABLE=VALUE...]
# LINK becomes a link to the folder of the modules. There kernel/build can go on, with the
# same VARIABLEs of the kernel's make: what is compiled here is not compiled again.

build=$(realpath "$1")
series=$2
link=$3
shift 3
lab_dir=${RDMABOX_LAB_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/rdmabox-lab}
headers=$(realpath "$lab_dir/kernel-$series/headers/build")
kernel=$(<"$lab_dir/kernel-$series/release")
installed=$(mktemp -d "${TMPDIR:-/tmp}/rdmabox-dkms.XXXXXX") || exit 1
trap 'rm -rf "$installed"' EXIT

die()
{
	echo "$*"
	exit 1
}

DESTDIR=$installed meson install -C "$build" --no-rebuild --quiet --tags kernel ||
	die "cannot install the sources"
conf=$(find "$installed" -name dkms.conf)
[ -n "$conf" ] || die "there is no dkms.conf"

# What dkms.conf may use, and what it sets.
dkms_tree=$build/dkms-$series
export kernel_source_dir=$headers
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

# The sources have the dates of those in the checkout. What is there no more is removed; what is
# not for DKMS is set aside, for kernel/build to go on with.
modules=$dkms_tree/$PACKAGE_NAME/$PACKAGE_VERSION/build
aside=$dkms_tree/aside
rm -rf "$aside" # of a run that was ended
mkdir -p "$modules/kernel" "$aside"
find "$modules" ! -type d ! -name '*.mod.c' ! -name '*.mod' ! -name '*.o' ! -name '*.cmd' -delete
for folder in example test; do
	[ ! -d "$modules/kernel/$folder" ] || mv "$modules/kernel/$folder" "$aside"
done
cp -rp "$(dirname "$conf")/." "$modules" || exit 1
eval "${MAKE[0]} $(printf '%q ' "$@")" || die "the modules do not build"
[ ! -e "$modules/kernel/example" ] || die "the examples are installed"

# field NAME FILE
field()
{
	PATH=$PATH:/usr/sbin modinfo -F "$1" "$2"
}

for name in "${BUILT_MODULE_NAME[@]}"; do
	file=$modules/$name.ko
	[ -e "$file" ] || die "$name was not built"
	[ "$(field version "$file")" = "$PACKAGE_VERSION" ] ||
		die "$name is of version $(field version "$file"), not $PACKAGE_VERSION"
	[ "$(field license "$file")" = "Dual BSD/GPL" ] || die "$name has no license"
	for wanted in description author; do
		[ -n "$(field "$wanted" "$file")" ] || die "$name has no $wanted"
	done
	# A parameter without a description has nothing behind the colon.
	! field parm "$file" | grep -E '^[a-z_]+: *\([a-z]+\)?$' || die "$name: say what it is"
done
find "$aside" -mindepth 1 -maxdepth 1 -exec mv -t "$modules/kernel" {} +
ln -sfnr "$modules" "$link"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The kernel modules build without a warning of the compiler (W=1), against the headers
# of one kernel of the lab: 6.1, 6.12 or debug. Against those of 6.12 sparse has none of
# what is under kernel/ either, where it is installed. For 6.1 those that users get are built
# as DKMS does.
#
# Usage: tests/kernel/modules_build.sh BUILD SERIES
# The modules are left in BUILD/modules-SERIES, and below it what a second run needs to build
# only what has changed. Exit code 77 where there are no headers.

top=$(dirname "$(readlink -f "$0")")/../..
build=$1
series=$2
lab_dir=${RDMABOX_LAB_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/rdmabox-lab}
headers=$lab_dir/kernel-$series/headers/build
dir=$build/modules-$series
tree=$dir/tree

if [ ! -e "$headers/Makefile" ]; then
	echo "skipped: no headers of kernel $series in $lab_dir; lab/prepare gets them"
	exit 77
fi
# Without debugging information, which is nine tenths of a module: the scripts of the lab
# load them often.
flags=-g0
# With KASAN and lockdep a frame is about twice as large, and so is a stack: 32 KiB. What warns of
# too large frames is the build for the other kernels, whose limit is half of this one.
[ "$series" != debug ] || flags+=" -Wframe-larger-than=4096"
options=(KCFLAGS="$flags")
[ "$series" != 6.12 ] || ! command -v sparse >/dev/null || options+=(C=1 CHECK="$(readlink -f "$top")/tests/kernel/sparse")
mkdir -p "$dir"
{
	if [ "$series" = 6.1 ]; then
		"$top/tests/kernel/dkms_build.sh" "$build" "$series" "$tree" "${options[@]}" \
			W=1 CONFIG_DEBUG_INFO_BTF_MODULES= || exit
	fi
	"$top/kernel/build" "$headers" "$tree" "${options[@]}" modules
} 2>&1 | tee "$dir/log"
[ "${PIPESTATUS[0]}" = 0 ] || exit 1
# What sparse calls an error does not end the build.
if grep -E '(warning|WARNING|error):' "$dir/log"; then
	# So that the next run says it again.
	find "$tree/" -name '*.o' -delete
	exit 1
fi
cp -p "$tree"/*.ko "$dir"

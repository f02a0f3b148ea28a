#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox sim --nic: the library and the server on modelled NICs lose nothing, and
# the same seed does the same. A NIC file that is wrong is named with its line.
#
# Usage: nic_carries_the_library.sh RDMABOX GENERATIONS-FOLDER

rdmabox=$1
generations=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/rdmabox-nic.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

fault()
{
	echo "$*"
	failed=1
}

for nic in connectx3 connectx5; do
	for scenario in volume partition reclaim; do
		run=("$rdmabox" sim --seed 3 --scenario "$scenario" --nic "$generations/$nic.conf")
		"${run[@]}" >"$work/once" || fault "${run[*]}: failed"
		"${run[@]}" >"$work/twice"
		cmp -s "$work/once" "$work/twice" || fault "${run[*]}: not the same twice"
		grep -q '^result ok' "$work/once" || fault "${run[*]}: $(tail -n 2 "$work/once")"
	done
done
"$rdmabox" sim --seed 3 --nic "$generations/connectx3.conf" | grep hash >"$work/three"
"$rdmabox" sim --seed 3 --nic "$generations/connectx5.conf" | grep hash >"$work/five"
! cmp -s "$work/three" "$work/five" || fault "the NIC makes no difference"
"$rdmabox" sim --seed 3 --nic connectx3 | grep hash >"$work/named"
cmp -s "$work/three" "$work/named" || fault "connectx3 is not what its file says"

sed 's/^units = .*/units = 0/' "$generations/connectx3.conf" >"$work/bad.conf"
line=$(grep -n '^units' "$work/bad.conf" | cut -d: -f1)
"$rdmabox" sim --nic "$work/bad.conf" 2>"$work/error"
[ $? = 2 ] || fault "a bad NIC file: exit code 2 is wanted"
grep -q "bad.conf:$line: units: 0 is not from 1 to 64" "$work/error" ||
	fault "a bad NIC file: $(cat "$work/error")"
exit $failed

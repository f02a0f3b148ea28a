# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts share that have functions fail (kernel/test/faults.c). After kernel.sh.
# Not executable, so that lab/guest/run-tests leaves it alone.

faults=/sys/kernel/debug/rdmabox_faults

load_faults()
{
	load_module rdmabox_faults
	[ -e "$faults" ] || fault "no $faults"
}

# inject ACTION FUNCTION BY [VALUE [COUNT [SKIP]]], or: inject clear
inject()
{
	echo "$*" >"$faults" || fault "cannot inject: $*"
}

# injected FUNCTION [calls] - how many of its calls were hit, or were looked at
injected()
{
	awk -v name="$1" -v column="$([ $# = 1 ] && echo 2 || echo 3)" \
		'$1 == name { print $column; exit }' "$faults"
}

# is_injected FUNCTION COUNT
is_injected()
{
	[ "$(injected "$1")" -ge "$2" ]
}

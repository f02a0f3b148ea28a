#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `rdmabox page`: a device is attached and is swap, is listed, refuses to go while
# it is in use and says by whom, and goes.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

page="$rdmabox page"

# refused PATTERN STATUS COMMAND... - of page: one line, and nothing is left
refused()
{
	local pattern=$1 wanted=$2

	shift 2
	run page "$@"
	[ "$status" = "$wanted" ] || { show; fault "page $*: exit code $status, not $wanted"; }
	[ "$(wc -l <"$scratch/err")" = 1 ] || { show; fault "page $*: not one line"; }
	grep -qE -- "$pattern" "$scratch/err" || { show; fault "page $*: does not say $pattern"; }
}

refused 'modprobe rdmabox_block' 2 list
load_module rdmabox
load_module rdmabox_block

echo "a secret that is long enough to be one" >"$scratch/secret"
echo "another one that is long enough to be one" >"$scratch/other"
chmod 600 "$scratch/secret" "$scratch/other"
start_verbs_server --memory 16M --secret-file "$scratch/secret"

refused 'no answer|does not answer' 2 attach --servers 10.9.0.1:9 --size 8M --insecure
refused 'give a --secret-file' 2 attach --servers "$address" --size 8M
refused 'refuses the secret' 2 attach --servers "$address" --size 8M --insecure
refused 'refuses the secret' 2 attach --servers "$address" --size 8M --secret-file "$scratch/other"
refused 'do not lend that much' 2 attach --servers "$address" --size 1G --secret-file "$scratch/secret"
refused 'dmesg' 2 attach --servers "$address" --size 8M --replicas 2 --secret-file "$scratch/secret"
refused 'dmesg' 2 attach --servers here --size 8M --secret-file "$scratch/secret"
[ -z "$($page list)" ] || fault "a failure leaves a volume: $($page list)"
pass "what cannot be attached is refused in a line, and leaves nothing"

device=$($page attach --servers "$address" --size 8M --secret-file "$scratch/secret" --swap) ||
	fault "cannot attach"
grep -q "^$device " /proc/swaps || fault "$device is no swap"
[ "$($page list)" = "page ${device#/dev/} 8388608 1 8 8" ] || fault "the list says $($page list)"
$page status --json >"$scratch/out"
[ "$(key slabs_whole)" = 8 ] && [ "$(key work_requests)" -gt 0 ] || { show; fault "the status is wrong"; }
refused 'there is a volume page already' 2 attach --servers "$address" --size 8M --insecure
refused "$device is in use: swap.*--swap" 1 detach
exec 9<"$device"
refused "in use: process $$ " 1 detach --swap
exec 9<&-
$page detach --swap || fault "cannot detach"
[ ! -e "$device" ] || fault "$device is still there"
[ -z "$($page list)" ] || fault "the volume is still there"
refused 'there is no volume page' 2 detach
refused 'there is no volume other' 2 status --name other
pass "a device is attached, used, listed, and goes when nobody uses it"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Servers whose memory goes bad behind the device's back: what is read is what was
# written, or an I/O error. And requests whose memory is not cut into blocks.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

# spoil PID OFFSET... - a bit in each of these blocks of what is kept
spoil()
{
	"$build/tests/spoil" "$1" "$scratch/kept" "${@:2}" || fault "nothing was spoilt"
}

# expect_errors COUNT - of checksums, since it was attached
expect_errors()
{
	[ "$(number checksum_errors)" = "$1" ] ||
		fault "$(number checksum_errors) pages did not match, not $1"
}

load_block_modules
start_verbs_server --memory 8M --insecure
one=$address
first=$pid
start_verbs_server --memory 8M --insecure
two=$address
second=$pid

# Both blocks are read from the same server, whichever that is.
attach "$one,$two" 4 replicas=2
keep 1
spoil "$first" 0
spoil "$second" 524288
is_kept || fault "what is read is not what was written"
expect_errors 1
[ "$(number failovers)" = 1 ] || fault "$(number failovers) reads went to the other server"
detach
pass "of two copies the good one is read"

attach "$one" 4
keep 1
spoil "$first" 8192
! is_kept 2>/dev/null || fault "a bit has changed, and nobody says so"
! dd if="$device" of="$scratch/bad" bs=4k skip=2 count=1 iflag=direct status=none 2>/dev/null ||
	fault "junk is read"
[ ! -s "$scratch/bad" ] || fault "junk comes with an error"
[ "$(number checksum_errors)" -gt 1 ] || fault "checksum_errors says $(number checksum_errors)"
dd if="$scratch/kept" of="$device" bs=4k skip=2 seek=2 count=1 oflag=direct status=none
is_kept || fault "what is written again is not read"
pass "of one copy nothing is read, until it is written again"

# fio's buffers begin 512 bytes into a page, and there are more than can be copied at
# a time.
start_load unaligned --rw=randrw --bsrange=4k-128k --blockalign=4k --size=2M --iomem_align=512
end_load unaligned
[ "$status" = 0 ] || { cat "$scratch/fio.unaligned" >&2; fault "fio fails"; }
detach
pass "a block may be cut in memory"

attach "$one" 4 checksums=0
keep 1
spoil "$first" 8192
! is_kept 2>/dev/null || fault "nothing was spoilt"
expect_errors 0
detach
pass "without checksums nobody knows"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A volume whose servers keep checksums is a device: they are what the next device, or a program,
# compares with. What one server has spoilt is read from the other one and written anew, also while
# nobody has it open; and the checksums are written to where the device finds them, after that has
# gone and come back.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"
# shellcheck source=../../lab/guest/wire
. /host/lab/guest/wire

put_back()
{
	rdma link add rxe2 type rxe netdev veth2 || fault "the device cannot be added"
}

network=10.9.1
lay_wire 2 "$network"
# A program that has a device open keeps it, and librdmacm opens all that it finds.
rdma link delete rxe2
load_block_modules
for _ in 1 2; do
	device_address=$network.2 start_verbs_server --device rxe3 --memory 12M --insecure
	servers=${servers:+$servers,}$address
done
reach=(--pool "$servers" --insecure)
put_back

# spoil PID OFFSET... - a bit in each of these blocks of what is kept
spoil()
{
	"$build/tests/spoil" "$1" "$scratch/kept" "${@:2}" || fault "nothing was spoilt"
}

attach_named()
{
	expect_success page attach "${patience[@]}" --name test --volume db "${reach[@]}"
	device=$(<"$scratch/out")
}

# page_is_read OFFSET
page_is_read()
{
	dd if="$device" of=/dev/null bs=4k skip=$(($1 >> 12)) count=1 iflag=direct status=none \
		2>/dev/null
}

expect_success volume create db --size 6M --replicas 2 --checksums --fabric verbs --device rxe2 \
	"${reach[@]}"
attach_named
[ "$(<"$volume/checksums")" = 1 ] || fault "it does not say that it has checksums"
keep 2

# ---- the device goes and comes back ------------------------------------------------------------
start_load back --rw=randrw --bsrange=4k-64k --blockalign=4k --iodepth=8 --offset=3M --size=3M \
	--time_based --runtime=$((120 * slowness))
for _ in 1 2; do
	eventually reaches completions $(($(number completions) + 100)) || fault "no I/O ends"
	rdma link delete rxe2 || fault "the device cannot be deleted"
	put_back
done
eventually reaches completions $(($(number completions) + 100)) || fault "no I/O ends any more"
stop_load back
is_kept || fault "something else is read than was written"
[ "$(number checksum_errors)" = 0 ] || fault "$(number checksum_errors) pages did not match"
pass "checksums are written where the device has gone and come back"

# ---- one of two is bad ---------------------------------------------------------------------------
spoil "${server_pids[0]}" 0 65536
spoil "${server_pids[1]}" 524288
for _ in 1 2 3; do # each replica is read some time
	is_kept || fault "what is read is not what was written"
done
[ "$(number checksum_repairs)" -gt 0 ] || fault "nothing was repaired"
expect_success page detach --name test
pass "what one server has spoilt is read from the other one, and written anew"

# ---- the next one ----------------------------------------------------------------------------
spoil "${server_pids[1]}" 131072
attach_named
is_kept || fault "the next device reads something else"
spoil "${server_pids[0]}" 1048576
spoil "${server_pids[1]}" 1048576
! page_is_read 1048576 || fault "what no server has is read"
page_is_read $((1048576 + 4096)) || fault "more cannot be read than was spoilt"
dd if="$scratch/kept" of="$device" bs=4k skip=256 seek=256 count=1 oflag=direct status=none
is_kept || fault "what is written again is not read"
expect_success page detach --name test
expect_success volume export db "$scratch/copy" --fabric verbs --device rxe2 "${reach[@]}"
head -c 2M "$scratch/copy" | cmp - "$scratch/kept" || fault "a program reads something else"
pass "the next device, and a program, compare with what the servers have"

# ---- whose client has died ---------------------------------------------------------------------
mkfifo "$scratch/fifo"
"$rdmabox" volume import db "$scratch/fifo" --fabric verbs --device rxe2 "${reach[@]}" \
	>"$scratch/import" 2>&1 &
program=$!
server_pids+=("$program")
exec 8>"$scratch/fifo"
head -c 1M /dev/urandom >&8
kill -KILL "$program"
wait "$program" 2>/dev/null
exec 8>&-
expect_success page attach "${patience[@]}" --name test --volume db "${reach[@]}" --take-over
device=$(<"$scratch/out")
dd if="$device" of="$scratch/first" bs=128k iflag=direct status=none || fault "it cannot be read"
dd if="$device" bs=128k iflag=direct status=none | cmp - "$scratch/first" ||
	fault "its replicas are not equal"
dd if="$device" bs=128k skip=8 count=8 iflag=direct status=none |
	cmp - <(tail -c 1M "$scratch/kept") || fault "what was not written is something else"
[ "$(number checksum_errors)" = 0 ] || fault "$(number checksum_errors) pages did not match"
expect_success page detach --name test
pass "after a program that had it was killed, all of it is read"

kill -KILL "${server_pids[@]}" 2>/dev/null
wait 2>/dev/null
remove_wire 2
rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

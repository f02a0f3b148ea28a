#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A block device in remote memory: contents, a file system, swap, and servers that
# are killed under load.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"
tracing=/sys/kernel/tracing

load_block_modules
start_verbs_server --memory 40M --insecure
one=$address
first=$pid
start_verbs_server --memory 40M --insecure
two=$address
second=$pid
start_verbs_server --memory 40M --insecure
three=$address
third=$pid
start_verbs_server --memory 40M --insecure
four=$address
fourth=$pid

# ---- contents, and who may detach ------------------------------------------------
attach "$one,$two,$three,$four" 16 replicas=2
start_load mixed --rw=randrw --bsrange=4k-128k --blockalign=4k --size=8M
eventually reaches completions 50 || fault "the load does not begin"
kill -KILL "$first"
end_load mixed
[ "$status" = 0 ] || { cat "$scratch/fio.mixed" >&2; fault "fio notices that a server dies"; }
[ "$(number servers_up)" = 3 ] || fault "$(number servers_up) servers are up"
[ "$(number merged_requests)" -gt 0 ] || fault "nothing was merged"
exec 9<"$device"
! { echo 0 >"$volume/attached"; } 2>/dev/null || fault "detached while it is in use"
! rmdir "$volume" 2>/dev/null || fault "removed while it is attached"
exec 9<&-
pass "what is written is read, though a server dies, and a device in use stays"

# ---- a server dies under a file system -------------------------------------------
eventually is_whole || fault "what was lost is not made anew"
make_file_system
rebuilt_before=$(number rebuilt_bytes)
echo 1 >"$tracing/events/rdmabox/rdmabox_peer_state/enable"
echo 1 >"$tracing/events/rdmabox/rdmabox_slab_task/enable"
kill -KILL "$second"
add_files kernel
files_are_kept
eventually is_whole || fault "what was lost is not made anew"
[ "$(number servers_up)" = 2 ] || fault "$(number servers_up) servers are up"
[ "$(number rebuilt_bytes)" -gt "$rebuilt_before" ] || fault "nothing was rebuilt"
for wanted in "rdmabox_peer_state: server=$two phase=down" \
	"rdmabox_slab_task: slab=[0-9]* task=borrow" "rdmabox_slab_task: slab=[0-9]* task=copy"; do
	grep -q "$wanted" "$tracing/trace" || fault "the trace does not say $wanted"
done
echo 0 >"$tracing/events/rdmabox/enable"
pass "a file system does not notice that a server dies, and all copies are back"
detach

# ---- swap, and a server dies ---------------------------------------------------------
attach "$three,$four" 40 replicas=2 on_demand=0
start_program 36 12 2
! { echo 0 >"$volume/attached"; } 2>/dev/null || fault "detached while it is swap"
kill -KILL "$fourth"
wait "$program" || { cat "$scratch/program" >&2; fault "the program reads what it did not write"; }
[ "$(number servers_up)" = 1 ] || fault "$(number servers_up) servers are up"
pages=$(($(swapped in) - swapped_before))
[ "$pages" -gt $((36 * 256)) ] || fault "only $pages pages were swapped in"
swapoff "$device" || fault "swapoff"
pass "a program of 36 MiB in 12 MiB of memory finds its pages ($pages swapped in), though a server dies"
detach

# ---- the only server dies ------------------------------------------------------------
attach "$three" 16
start_load doomed --rw=randrw --bs=4k --size=12M --time_based --runtime=60
eventually reaches completions 200
kill -KILL "$third"
end_load doomed
[ "$status" != 0 ] || fault "a dead server serves"
[ "$(number slabs_lost)" = $(($(number slabs) - $(number slabs_blank))) ] ||
	fault "lost slabs are not lost"
detach
pass "without a replica I/Os end with errors, and the device goes"

start_verbs_server --memory 40M --insecure
attach "$address" 40 on_demand=0
start_program 36 12 1000
kill -KILL "$pid"
wait "$program"
status=$?
[ "$status" = 135 ] || { cat "$scratch/program" >&2; fault "the program ends with $status, not by SIGBUS"; }
swapoff "$device" || fault "swapoff"
detach
pass "a program whose swap is gone is ended, and reads no junk before"

start_verbs_server --memory 40M --insecure
attach "$address" 32
make_file_system
kill -KILL "$pid"
! { add_files kernel && sync -f "$scratch/mount"; } 2>/dev/null ||
	fault "files are kept nowhere"
umount "$scratch/mount" || fault "a file system whose device is gone stays mounted"
detach
pass "a file system whose device is gone says so, and goes"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"
pass "the modules leave"

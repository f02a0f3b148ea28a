#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A block device in remote memory: contents, a file system, swap, and servers that
# are killed under load.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

volume=/sys/kernel/config/rdmabox/test
tracing=/sys/kernel/tracing

# attach SERVERS MIB REPLICAS - makes $device; fails as the kernel does
attach()
{
	mkdir -p "$volume"
	echo "$1" >"$volume/servers"
	echo $(($2 << 20)) >"$volume/size"
	echo "$3" >"$volume/replicas"
	echo 1 >"$volume/insecure"
	echo 1 >"$volume/attached" || return
	device=/dev/$(cat "$volume/device")
	[ -b "$device" ] || fault "there is no $device"
}

detach()
{
	echo 0 >"$volume/attached" || fault "cannot detach"
	rmdir "$volume" || fault "cannot remove $volume"
}

# start_load NAME OPTION... - fio in the background; sets load
start_load()
{
	local name=$1

	shift
	timeout "$limit_s" fio --name="$name" --filename="$device" --direct=1 \
		--ioengine=libaio --iodepth=16 --verify=crc32c --verify_state_save=0 \
		--output="$scratch/fio.$name" "$@" &
	load=$!
	server_pids+=("$load")
}

# number NAME - of the volume
number()
{
	cat "$volume/$1"
}

load_module rdmabox
load_module rdmabox_block
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config ||
	fault "no configfs"

start_verbs_server --memory 24M --insecure
one=$address
victim=$pid
start_verbs_server --memory 24M --insecure
two=$address
second=$pid
start_verbs_server --memory 24M --insecure
three=$address

# ---- contents, and who may detach ------------------------------------------------
attach "$one,$two,$three" 16 2
start_load mixed --rw=randrw --bsrange=4k-128k --blockalign=4k --size=8M
wait "$load" || { cat "$scratch/fio.mixed" >&2; fault "fio finds something else than it wrote"; }
[ "$(number merged_requests)" -gt 0 ] || fault "nothing was merged"
exec 9<"$device"
! { echo 0 >"$volume/attached"; } 2>/dev/null || fault "detached while it is in use"
! rmdir "$volume" 2>/dev/null || fault "removed while it is attached"
exec 9<&-
pass "what is written is read, and a device in use stays"

# ---- a server dies under a file system -------------------------------------------
mkfs.ext4 -q "$device" && mkdir "$scratch/mount" && mount "$device" "$scratch/mount" ||
	fault "no ext4 on $device"
cp -r /host/core /host/wire "$scratch/mount"
(cd /host && find core wire -type f -exec sha256sum {} +) >"$scratch/hashes"
sync
echo 1 >"$tracing/events/rdmabox/rdmabox_peer_state/enable"
echo 1 >"$tracing/events/rdmabox/rdmabox_slab_task/enable"
kill -KILL "$victim"
cp -r /host/kernel "$scratch/mount"
(cd /host && find kernel -type f -exec sha256sum {} +) >>"$scratch/hashes"
umount "$scratch/mount"
mount "$device" "$scratch/mount" || fault "the file system is gone"
(cd "$scratch/mount" && sha256sum --quiet -c "$scratch/hashes") || fault "files have changed"
umount "$scratch/mount"
for ((attempt = 0; attempt < 300; attempt++)); do
	[ "$(number slabs_whole)" != "$(number slabs)" ] || break
	sleep 0.1
done
[ "$(number slabs_whole)" = "$(number slabs)" ] || fault "what was lost is not made anew"
[ "$(number servers_up)" = 2 ] || fault "$(number servers_up) servers are up"
[ "$(number rebuilt_bytes)" -gt 0 ] || fault "nothing was rebuilt"
for wanted in "rdmabox_peer_state: server=$one phase=down" \
	"rdmabox_slab_task: slab=[0-9]* task=borrow" "rdmabox_slab_task: slab=[0-9]* task=copy"; do
	grep -q "$wanted" "$tracing/trace" || fault "the trace does not say $wanted"
done
echo 0 >"$tracing/events/rdmabox/enable"
pass "a file system does not notice that a server dies, and all copies are back"
detach

# ---- swap --------------------------------------------------------------------------
attach "$two,$three" 24 2
mkswap "$device" >/dev/null && swapon -p 10 "$device" || fault "no swap on $device"
! { echo 0 >"$volume/attached"; } 2>/dev/null || fault "detached while it is swap"
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/hog
echo $((16 << 20)) >/sys/fs/cgroup/hog/memory.max
timeout "$limit_s" bash -c '
	echo $$ >/sys/fs/cgroup/hog/cgroup.procs
	exec python3 -c "
pages = 5120
memory = bytearray(pages * 4096)
for turn in range(2):
	for i in range(pages):
		at = i * 4096
		assert turn == 0 or memory[at:at + 4] == (i + turn - 1).to_bytes(4, \"little\"), i
		memory[at:at + 4] = (i + turn).to_bytes(4, \"little\")
"' || fault "a program that is swapped out reads what it did not write"
swapped=$(awk '$1 == "pswpin" { print $2 }' /proc/vmstat)
[ "$swapped" -gt 1000 ] || fault "only $swapped pages were swapped in"
swapoff "$device" || fault "swapoff"
rmdir /sys/fs/cgroup/hog
pass "a program of 20 MiB in 16 MiB of memory finds its pages ($swapped swapped in)"
detach

# ---- the only server dies ------------------------------------------------------------
attach "$two" 16 1
start_load doomed --rw=randrw --bs=4k --size=12M --time_based --runtime=60
for ((attempt = 0; attempt < 300; attempt++)); do
	[ "$(number completions)" -lt 200 ] || break
	sleep 0.1
done
kill -KILL "$second"
wait "$load"
status=$?
[ "$status" != 124 ] || fault "an I/O to a dead server never ends"
[ "$status" != 0 ] || fault "a dead server serves"
! grep -q 'verify: bad' "$scratch/fio.doomed" || fault "junk in place of errors"
[ "$(number slabs_lost)" = "$(number slabs)" ] || fault "lost slabs are not lost"
detach
pass "without a replica I/Os end with errors, and the device goes"

! attach 10.9.0.1:9 16 1 2>/dev/null || fault "attached to nobody"
rmdir "$volume"
rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"
pass "the modules leave"

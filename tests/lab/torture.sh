#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# torture.sh [SECONDS [SEED]] - a file system on a block device of a named volume, while servers are
# killed at random and started again, and other devices take the volume from the one before, as if
# its machine had died. Each file that was forced to the disk is there after each next mount, and
# no file has other contents than were written. Not among the tests of the lab, as it is meant to
# run for long:
#
#	lab/vm --kernel 6.12 --build build/gcc --timeout 1100 -- bash /host/tests/lab/torture.sh 600

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

seconds=${1:-60}
seed=${2:-$RANDOM}
RANDOM=$seed
echo "seed $seed"
files=24
restarts=0 takeovers=0 writes=0

load_block_modules
addresses=()
pids=()

# start NUMBER - an empty server, at the address that it had
start()
{
	start_verbs_server --listen "${addresses[$1]:-$device_address:0}" --memory 24M --insecure
	addresses[$1]=$address
	pids[$1]=$pid
}

for number in 0 1 2 3; do
	start "$number"
done
reach=(--pool "$(IFS=,; echo "${addresses[*]}")" --insecure)
mkdir "$scratch/wanted"

# attach_named OPTION... - volume db, as the next device
attach_named()
{
	name=disk$takeovers
	expect_success page attach "${patience[@]}" --name "$name" --volume db "${reach[@]}" "$@"
	device=$(<"$scratch/out")
	volume=$volumes/$name
	mount=$scratch/mount.$name
	mkdir -p "$mount" && mount "$device" "$mount" || fault "the file system is gone"
}

# Whoever dies in the middle of write_file leaves the former file or the new one.
write_file()
{
	local file=$((RANDOM % files))

	head -c $((1 + RANDOM * 8)) /dev/urandom >"$scratch/wanted/$file.next"
	cp "$scratch/wanted/$file.next" "$mount/$file.next" && sync "$mount/$file.next" &&
		mv "$mount/$file.next" "$mount/$file" && sync -f "$mount" || fault "file $file cannot be written"
	mv "$scratch/wanted/$file.next" "$scratch/wanted/$file"
	writes=$((writes + 1))
}

files_are_there()
{
	local wanted

	for wanted in "$scratch"/wanted/*; do
		cmp "$wanted" "$mount/${wanted##*/}" || fault "file ${wanted##*/} has changed"
	done
}

# is STATE NUMBER - a server, as the device sees it
is()
{
	grep -q "^${addresses[$2]} $1 " "/sys/block/${device##*/}/rdmabox/servers"
}

# One server of two that have a slab may die: so the next one when all is whole.
restart_server()
{
	local number=$((RANDOM % 4))

	kill -KILL "${pids[number]}"
	wait "${pids[number]}" 2>/dev/null
	for ((i = RANDOM % 4; i > 0; i--)); do
		write_file
	done
	eventually is away "$number" || fault "a server that was killed is not missed"
	start "$number" # it has lost all: for the volume it is a new one
	expect_success page add-server --name "$name" "${addresses[number]}"
	for ((i = RANDOM % 4; i > 0; i--)); do
		write_file
	done
	eventually is up "$number" && eventually is_whole ||
		fault "it never becomes whole: $(cat /sys/block/*/rdmabox/servers)"
	restarts=$((restarts + 1))
}

# The one before has it open and mounted, and writes, and finds out by itself. So the file system is as
# after a crash, and its journal is replayed.
take_over()
{
	local former=$device former_name=$name former_mount=$mount writer

	while echo line >>"$former_mount/log" && sync "$former_mount/log"; do :; done 2>/dev/null &
	writer=$!
	sleep 1
	takeovers=$((takeovers + 1))
	attach_named --take-over
	! dd if=/dev/zero of="$former" bs=4k count=1 oflag=direct status=none 2>/dev/null ||
		fault "who was shut out still writes"
	files_are_there
	wait "$writer" || true
	umount -l "$former_mount"
	eventually "$rdmabox" page detach --name "$former_name" || fault "$former_name cannot be detached"
}

expect_success volume create db --size 16M --replicas 2 --fabric verbs "${reach[@]}"
expect_success page attach "${patience[@]}" --name first --volume db "${reach[@]}"
device=$(<"$scratch/out")
volume=$volumes/first
mkfs.ext4 -q "$device" || fault "no ext4 on $device"
expect_success page detach --name first
attach_named
end=$((SECONDS + seconds))
while ((SECONDS < end)); do
	write_file
	case $((RANDOM % 6)) in
	0 | 1) restart_server ;;
	2) take_over ;;
	*) files_are_there ;;
	esac
done
umount "$mount" || fault "it cannot be unmounted"
fsck.ext4 -fn "$device" >"$scratch/fsck" 2>&1 || { cat "$scratch/fsck"; fault "the file system has faults"; }
mount "$device" "$mount" || fault "the file system is gone"
files_are_there
umount "$mount"
expect_success page detach --name "$name"
pass "$writes files written, $restarts servers killed, $takeovers devices followed by another"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# An ext4 file system on a volume: made, mounted, filled with a tree of files, unmounted,
# checked, and mounted again from a second nbdfuse, where all files are as they were. No
# module of the kernel takes part but FUSE: nbdfuse makes a file of the volume, and fuse2fs
# mounts it.

. "$(dirname "$0")/nbdkit.sh"
need nbdfuse fuse2fs mkfs.ext4 e2fsck debugfs

[ -w /dev/fuse ] || { echo "SKIP: no FUSE here"; exit 77; }
[ "$(id -u)" = 0 ] || command -v fusermount3 >/dev/null ||
	{ echo "SKIP: neither root nor fusermount3"; exit 77; }

device=$scratch/device
tree=$scratch/tree
mkdir "$device" "$tree"

release()
{
	if [ "$(id -u)" = 0 ]; then umount "$1"; else fusermount3 -u "$1"; fi
}

# Before the end that the other tests have.
leave()
{
	local status=$?

	! mountpoint -q "$tree" || release "$tree"
	! mountpoint -q "$device" || release "$device"
	(exit "$status")
	finish
}
trap leave EXIT

# attach - the volume as $device/nbd
attach()
{
	local attempt

	nbdfuse "$device" --unix "$socket" >"$scratch/nbdfuse.log" 2>&1 &
	nbdfuse_pid=$!
	for ((attempt = 0; attempt < 200; attempt++)); do
		[ ! -e "$device/nbd" ] || return 0
		kill -0 "$nbdfuse_pid" 2>/dev/null || break
		sleep 0.05
	done
	cat "$scratch/nbdfuse.log"
	grep -qiE 'permitted|permission' "$scratch/nbdfuse.log" &&
		{ echo "SKIP: FUSE cannot be mounted here"; exit 77; }
	fault "nbdfuse does not get ready"
}

detach()
{
	release "$device"
	wait "$nbdfuse_pid"
}

# mount_tree - the file system at $tree
mount_tree()
{
	good fuse2fs "$device/nbd" "$tree" -o fakeroot,rw
	mountpoint -q "$tree" || fault "the file system is not mounted"
}

# In the end fuse2fs writes what it still has.
unmount_tree()
{
	local attempt

	release "$tree"
	for ((attempt = 0; attempt < 200; attempt++)); do
		pgrep -f "fuse2fs $device/nbd" >/dev/null || return 0
		sleep 0.05
	done
	fault "fuse2fs does not end"
}

start_server --memory 96M --slab 4M
one=$address
start_server --memory 96M --slab 4M
start_nbdkit "$one,$address" size=64M replicas=2 on-demand=true

attach
good mkfs.ext4 -q -F "$device/nbd"
mount_tree
mkdir "$tree/folder"
for file in {1..40}; do
	head -c $((file * 7919)) /dev/urandom >"$tree/folder/$file"
done
head -c 8M /dev/urandom >"$tree/large"
rm "$tree/folder/7"
(cd "$tree" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$scratch/sums"
[ "$(wc -l <"$scratch/sums")" = 40 ] || fault "not all files were written"
unmount_tree
good e2fsck -fn "$device/nbd"
detach

attach
good e2fsck -fn "$device/nbd"
good debugfs -R 'dump /folder/40 '"$scratch/40" "$device/nbd"
mount_tree
(cd "$tree" && sha256sum --quiet -c "$scratch/sums") || fault "files are not as they were"
cmp "$scratch/40" "$tree/folder/40" || fault "debugfs finds another file"
unmount_tree
detach
stop_nbdkit
[ "$status" = 0 ] || { cat "$nbdkit_log"; fault "nbdkit: exit code $status"; }

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# nbdkit's plugin under the NBD client of the kernel: an ext4 file system on /dev/nbd0,
# whose blocks are in the memory of two servers over real verbs. It is filled, checked,
# discarded from, and mounted again by another nbdkit, where all files are as they were;
# then one of the servers is killed, and they still are.

. "$(dirname "$(readlink -f "$0")")/verbs.sh"

plugin=$build/nbdkit/nbdkit-rdmabox-plugin.so
socket=$scratch/nbd
tree=$scratch/tree
mkdir "$tree"
modprobe nbd || fault "no NBD in this kernel"

echo "a secret that is long enough to be one" >"$scratch/secret"
chmod 600 "$scratch/secret"
start_verbs_server --memory 40M --secret-file "$scratch/secret"
one=$address one_pid=$pid
start_verbs_server --memory 40M --secret-file "$scratch/secret"
two=$address

# attach [SIZE] - a volume of nbdkit as /dev/nbd0
attach()
{
	local attempt

	rm -f "$socket"
	nbdkit --foreground --unix "$socket" "$plugin" servers="$one,$two" size=32M replicas=2 on-demand=true \
		fabric=verbs secret-file="$scratch/secret" >"$scratch/nbdkit" 2>&1 &
	nbdkit_pid=$!
	server_pids+=("$nbdkit_pid")
	for ((attempt = 0; attempt < 600; attempt++)); do
		[ ! -S "$socket" ] || break
		kill -0 "$nbdkit_pid" 2>/dev/null || break
		sleep 0.05
	done
	nbd-client -unix "$socket" /dev/nbd0 -b 4096 >"$scratch/client" 2>&1 ||
		{ cat "$scratch/nbdkit" "$scratch/client"; fault "nbd-client ended with $?"; }
}

detach()
{
	nbd-client -d /dev/nbd0 >/dev/null || fault "the device cannot be given up"
	wait_for_none
}

# The kernel lets go of the device a little later.
wait_for_none()
{
	local attempt

	for ((attempt = 0; attempt < 600; attempt++)); do
		nbd-client -c /dev/nbd0 >/dev/null || return 0
		sleep 0.05
	done
	fault "the device stays"
}

# The cache of the kernel would answer in place of the volume.
verify()
{
	umount "$tree" || fault "cannot unmount"
	echo 3 >/proc/sys/vm/drop_caches
	e2fsck -fn /dev/nbd0 >"$scratch/fsck" 2>&1 || { cat "$scratch/fsck"; fault "e2fsck: $?"; }
	mount /dev/nbd0 "$tree" || fault "cannot mount"
	(cd "$tree" && sha256sum --quiet -c "$scratch/sums") || fault "files are not as they were"
}

attach
mkfs.ext4 -q /dev/nbd0 || fault "mkfs.ext4 ended with $?"
mount -o discard /dev/nbd0 "$tree" || fault "cannot mount"
for file in {1..20}; do
	head -c $((file * 7919)) /dev/urandom >"$tree/$file"
done
head -c 6M /dev/urandom >"$tree/large"
sync
rm "$tree/large" "$tree/7" # what they had is discarded
head -c 3M /dev/urandom >"$tree/other"
sync
(cd "$tree" && sha256sum [0-9o]*) >"$scratch/sums"
[ "$(wc -l <"$scratch/sums")" = 20 ] || fault "not all files were written"
fstrim "$tree" || fault "fstrim ended with $?"
verify
pass "a file system on NBD on verbs holds what was written"

kill -KILL "$one_pid"
wait "$one_pid"
verify
head -c 2M /dev/urandom >"$tree/late"
(cd "$tree" && sha256sum late) >>"$scratch/sums"
verify
pass "and does so without one of its two servers"

umount "$tree" || fault "cannot unmount"
detach
kill -TERM "$nbdkit_pid"
wait "$nbdkit_pid"
expect_success stat --server "$two" --fabric verbs --secret-file "$scratch/secret" --json
[ "$(key lent_bytes)" = 0 ] || fault "$(key lent_bytes) bytes stay lent"
pass "nbdkit gives everything back"

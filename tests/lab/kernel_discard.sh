#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Slabs on demand: a device takes memory of its servers as it is written to, gives it
# back as it is discarded, and reads as zeros in between; by itself, under a file
# system and as swap, and while a server dies.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

# lends COUNT - slabs, as one server says; the other one has as many
lends()
{
	run stat --server "$one" --fabric verbs --insecure --json
	[ "$(key slabs_lent)" = "$1" ]
}

# blank COUNT - slabs are, as the volume says
blank()
{
	[ "$(number slabs_blank)" = "$1" ]
}

# reads_zeros FROM_MIB MIB - into memory that holds something else
reads_zeros()
{
	MALLOC_PERTURB_=85 dd if="$device" iflag=direct,skip_bytes skip=$(($1 << 20)) bs="$2M" \
		count=1 status=none | cmp -n $(($2 << 20)) - /dev/zero
}

load_block_modules
start_verbs_server --memory 8M --insecure
one=$address
first=$pid
start_verbs_server --memory 8M --insecure
two=$address
second=$pid

# ---- by itself -------------------------------------------------------------------
attach "$one,$two" 8 replicas=2
reads_zeros 0 8 || fault "what was never written is not zeros"
blank 8 || fault "memory is lent before it is written to"
keep 3
[ "$(number slabs_whole)" = 3 ] && blank 5 && lends 3 ||
	fault "$(number slabs_whole) slabs are whole after writes to 3"
is_kept || fault "something else is read than was written"
reads_zeros 3 1 || fault "beside what was written are no zeros"
blkdiscard -o $((512 << 10)) -l $((1 << 20)) "$device" || fault "no discard"
is_kept || fault "parts of slabs were discarded"
blkdiscard -o $((1 << 20)) -l $((1 << 20)) "$device" || fault "no discard"
reads_zeros 1 1 || fault "a discarded slab is not zeros"
blank 6 || fault "$(number slabs_blank) slabs are blank"
blkdiscard "$device" || fault "no discard"
reads_zeros 0 8 || fault "a discarded device is not zeros"
eventually lends 0 || fault "a discarded device has memory"
pass "memory is lent with the first write, and goes back with a discard"

# ---- more than there is ------------------------------------------------------------
volume=$volumes/other
attach "$one,$two" 8 replicas=2
other=$device
volume=$volumes/test
device=/dev/$(<"$volume/device")
keep 8
! dd if=/dev/zero of="$other" bs=4k count=1 oflag=direct status=none 2>"$scratch/err" ||
	fault "memory that nobody has is written to"
grep -q 'No space left' "$scratch/err" || { cat "$scratch/err"; fault "it is another error"; }
blkdiscard -l $((1 << 20)) "$device" || fault "no discard"
is_written()
{
	dd if=/dev/zero of="$other" bs=4k count=1 oflag=direct status=none 2>/dev/null
}
eventually is_written || fault "what one gives back the other one does not get"
volume=$volumes/other
detach
volume=$volumes/test
pass "a write that no server has memory for fails, until another volume gives some back"

# ---- discarded while it is used -----------------------------------------------------
start_load beside --rw=randrw --bsrange=4k-64k --blockalign=4k --size=3M
for ((round = 0; round < 4; round++)); do
	dd if=/dev/zero of="$device" bs=64k seek=64 count=64 oflag=direct status=none &
	writer=$!
	blkdiscard -o $((4 << 20)) -l $((4 << 20)) "$device" || fault "no discard"
	wait "$writer" || fault "a write fails while it is discarded"
done
end_load beside
[ "$status" = 0 ] || { cat "$scratch/fio.beside" >&2; fault "fio fails beside discards"; }
blkdiscard "$device" || fault "no discard"
eventually lends 0 || fault "a discard under load loses memory"
pass "discards under load harm nothing beside them, and nothing stays lent"

# ---- a file system ---------------------------------------------------------------
keep 3
mkfs.ext4 -q -E discard "$device" 2>/dev/null && mkdir -p "$scratch/mount" &&
	mount "$device" "$scratch/mount" || fault "no ext4 on $device"
cp "$scratch/kept" "$scratch/mount/large"
head -c 100000 "$scratch/kept" >"$scratch/mount/small"
sync -f "$scratch/mount"
before=$(number slabs_blank)
rm "$scratch/mount/large"
sync -f "$scratch/mount"
fstrim "$scratch/mount" || fault "fstrim"
reaches slabs_blank $((before + 1)) ||
	fault "$before slabs were blank, $(number slabs_blank) are when 3 MiB are removed"
umount "$scratch/mount"
mount "$device" "$scratch/mount" && cmp -n 100000 "$scratch/kept" "$scratch/mount/small" ||
	fault "a file has changed"
umount "$scratch/mount"
pass "a file system gives back what is removed: $(($(number slabs_blank) - before)) slabs of 3 MiB"
detach

# ---- swap --------------------------------------------------------------------------
# Room for all of the program: what was swapped in keeps its place there, too.
start_verbs_server --memory 24M --insecure
attach "$address" 24
mkswap "$device" >/dev/null 2>&1 && swapon --discard "$device" || fault "no swap on $device"
blank 23 || fault "swapon --discard leaves $(number slabs_blank) blank"
in_memory program high 12 "$build/tests/fill_and_check" 22 1 >"$scratch/program" &
program=$!
server_pids+=("$program")
eventually grep -q filled "$scratch/program" || fault "the program does not get on"
[ "$(number slabs_blank)" -lt 16 ] || fault "what is swapped out is not lent"
wait "$program" || fault "the program fails"
swapoff "$device" || fault "swapoff"
# While it is in use the kernel discards what it sees fit; this is all of it.
swapon --discard=once "$device" || fault "no swap on $device again"
blank 23 || fault "swapon --discard leaves $(number slabs_blank) blank of what was used"
swapoff "$device" || fault "swapoff again"
detach
pass "swap gives back what its program has left, when it is asked to"

# ---- servers die -------------------------------------------------------------------
start_verbs_server --memory 8M --insecure
attach "$one,$two,$address" 8 replicas=2
keep 2
kill -KILL "$first"
dd if=/dev/zero of="$device" bs=4k seek=1K count=1 oflag=direct status=none ||
	fault "one server is gone, and nothing is lent"
is_kept || fault "something else is read than was written"
reads_zeros 2 6 || fault "what was never written is not zeros"
eventually is_whole || fault "what was lost is not made anew"
blank 5 || fault "$(number slabs_blank) slabs are blank"
kill -KILL "$second" "$pid"
! dd if=/dev/zero of="$device" bs=4k seek=512 count=1 oflag=direct status=none 2>"$scratch/err" ||
	fault "memory that nobody has is written to"
grep -q 'Input/output error' "$scratch/err" || { cat "$scratch/err"; fault "it is another error"; }
reads_zeros 2 1 || fault "a failed write is found"
blkdiscard --force "$device" || fault "no discard" # without a look at it
blank 8 && reads_zeros 0 8 || fault "a discarded device is not zeros"
detach
pass "servers die: slabs without memory are zeros still, and are lent by who is left"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

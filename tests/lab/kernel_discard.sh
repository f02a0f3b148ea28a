#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Slabs on demand: a device takes memory of its servers as it is written to, gives it
# back as it is discarded, and reads as zeros in between; by itself, under a file
# system and as swap, and while a server dies.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

# lent SERVER - slabs, as the server says
lent()
{
	"$rdmabox" stat --server "$1" --fabric verbs --insecure --json >"$scratch/out" && key slabs_lent
}

# lend COUNT - each of the two servers
lend()
{
	[ "$(lent "$one") $(lent "$two")" = "$1 $1" ]
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
start_verbs_server --memory 16M --insecure
one=$address
first=$pid
start_verbs_server --memory 16M --insecure
two=$address
second=$pid

# ---- by itself -------------------------------------------------------------------
attach "$one,$two" 16 replicas=2
blank 16 && lend 0 || fault "memory is lent before it is written to"
reads_zeros 0 16 || fault "what was never written is not zeros"
blank 16 || fault "reads take memory"
keep 3
[ "$(number slabs_whole)" = 3 ] && blank 13 && lend 3 ||
	fault "$(number slabs_whole) slabs are whole after writes to 3"
is_kept || fault "something else is read than was written"
reads_zeros 3 1 || fault "beside what was written are no zeros"
blkdiscard -o $((512 << 10)) -l $((1 << 20)) "$device" || fault "no discard"
is_kept || fault "parts of slabs were discarded"
blkdiscard -o $((1 << 20)) -l $((1 << 20)) "$device" || fault "no discard"
reads_zeros 1 1 || fault "a discarded slab is not zeros"
blank 14 || fault "$(number slabs_blank) slabs are blank"
blkdiscard "$device" || fault "no discard"
reads_zeros 0 16 || fault "a discarded device is not zeros"
eventually lend 0 || fault "a discarded device has memory"
pass "memory is lent with the first write, and goes back with a discard"

# ---- more than there is ------------------------------------------------------------
volume=$volumes/other
mkdir "$volume"
attach "$one,$two" 16 replicas=2
other=$device
volume=$volumes/test
device=/dev/$(<"$volume/device")
keep 16
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
start_load beside --rw=randrw --bsrange=4k-64k --blockalign=4k --size=8M
for ((round = 0; round < 5; round++)); do
	dd if=/dev/urandom of="$device" bs=64k seek=128 count=128 oflag=direct status=none &
	writer=$!
	blkdiscard -o $((8 << 20)) -l $((8 << 20)) "$device" || fault "no discard"
	wait "$writer" || fault "a write fails while it is discarded"
done
end_load beside
[ "$status" = 0 ] || { cat "$scratch/fio.beside" >&2; fault "fio fails beside discards"; }
blkdiscard "$device" || fault "no discard"
eventually lend 0 || fault "a discard under load loses memory"
pass "discards under load harm nothing beside them, and nothing stays lent"

# ---- a file system ---------------------------------------------------------------
keep 8
mkfs.ext4 -q -E discard "$device" && mkdir -p "$scratch/mount" && mount "$device" "$scratch/mount" ||
	fault "no ext4 on $device"
cp -r /host/core "$scratch/mount"
head -c $((6 << 20)) /dev/urandom >"$scratch/mount/large"
sync -f "$scratch/mount"
before=$(number slabs_blank)
rm "$scratch/mount/large"
sync -f "$scratch/mount"
fstrim "$scratch/mount" || fault "fstrim"
[ "$(number slabs_blank)" -ge $((before + 4)) ] ||
	fault "$before slabs were blank, $(number slabs_blank) are when 6 MiB are removed"
umount "$scratch/mount"
mount "$device" "$scratch/mount" && diff -r /host/core "$scratch/mount/core" || fault "files have changed"
umount "$scratch/mount"
pass "a file system gives back what is removed: $(($(number slabs_blank) - before)) slabs of 6 MiB"

# ---- swap --------------------------------------------------------------------------
mkswap "$device" >/dev/null 2>&1 && swapon --discard "$device" || fault "no swap on $device"
blank 15 || fault "swapon --discard leaves $(number slabs_blank) blank"
in_memory program 12 "$build/tests/fill_and_check" 22 1 >"$scratch/program" ||
	{ cat "$scratch/program"; fault "the program reads what it did not write"; }
eventually blank 15 || fault "when the program is gone $(number slabs_blank) slabs are blank"
swapoff "$device" || fault "swapoff"
detach
pass "swap takes memory as it is swapped to, and gives it back"

# ---- a server dies -----------------------------------------------------------------
start_verbs_server --memory 16M --insecure
attach "$one,$two,$address" 16 replicas=2
keep 4
start_load death --rw=randrw --bsrange=4k-64k --blockalign=4k --offset=4M --size=8M
kill -KILL "$first"
end_load death
[ "$status" = 0 ] || { cat "$scratch/fio.death" >&2; fault "fio fails when a server dies"; }
is_kept || fault "something else is read than was written"
reads_zeros 12 4 || fault "what was never written is not zeros"
eventually is_whole || fault "what was lost is not made anew"
[ "$(number slabs_blank)" -ge 4 ] || fault "only $(number slabs_blank) slabs are blank"
blkdiscard "$device" || fault "no discard"
reads_zeros 0 16 || fault "a discarded device is not zeros"
[ "$(number slabs_blank)" = 16 ] || fault "$(number slabs_blank) of 16 slabs are blank"
kill -KILL "$second" "$pid"
! dd if=/dev/zero of="$device" bs=4k count=1 oflag=direct status=none 2>"$scratch/err" ||
	fault "memory that nobody has is written to"
grep -q 'Input/output error' "$scratch/err" || { cat "$scratch/err"; fault "it is another error"; }
detach
pass "a server dies, and slabs with memory and without stay what they are; the last one, too"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

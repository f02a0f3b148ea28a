#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A disk behind a block device in remote memory: what was acknowledged is read back
# when the only server is killed under load, and written on; a disk that fails is no
# backup, and never junk.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

# backed DISK MIB [OPTION=VALUE]... - attaches, over a server of its own
backed()
{
	start_verbs_server --memory 40M --insecure
	attach "$address" "$2" backup="$1" peer_timeout_ms=3000 "${@:3}"
}

# refused PATTERN DISK SIZE
refused()
{
	run page attach --pool "$address" --insecure --backup "$2" --size "$3"
	[ "$status" = 2 ] && grep -q -- "$1" "$scratch/err" ||
		{ show; fault "--backup $2 is not refused with: $1"; }
}

# bytes BYTE MIB - so many of them
bytes()
{
	head -c "$(($2 << 20))" /dev/zero | tr '\0' "$1"
}

# disk NAME DELAY_NS - /dev/NAME, 16 MiB of junk, which takes its time
disk()
{
	local disk=/sys/kernel/config/nullb/$1

	mkdir "$disk" || fault "no null_blk"
	echo 16 >"$disk/size"
	echo 4096 >"$disk/blocksize"
	echo 1 >"$disk/memory_backed"
	echo 2 >"$disk/irqmode"
	echo "$2" >"$disk/completion_nsec"
	echo 1 >"$disk/power" && [ -b "/dev/$1" ] || fault "no disk /dev/$1"
	bytes '\252' 16 | dd of="/dev/$1" bs=1M iflag=fullblock oflag=direct status=none ||
		fault "cannot fill /dev/$1"
}

# kill_server COUNT - when the disk was sent so many writes
kill_server()
{
	eventually reaches backup_writes "$1" || fault "the disk is not written to"
	kill -KILL "$pid"
}

is_lost()
{
	[ "$(number slabs_lost)" = "$(number slabs)" ] && reaches backup_reads 1
}

load_block_modules
modprobe brd rd_nr=1 rd_size=32768 && modprobe null_blk nr_devices=0 && modprobe dm-mod ||
	fault "no disks"
disk nullb0 1000000
disk nullb1 10000

# ---- contents --------------------------------------------------------------------
backed /dev/nullb0 12 backup_buffer=$((256 << 10))
refused 'no such --backup' /dev/nothing 1M
refused 'no block device' /dev/null 1M
refused 'in use' /dev/nullb0 1M
refused 'smaller than --size' /dev/nullb1 17M
start_load kept --rw=randwrite --bsrange=4k-128k --blockalign=4k --size=8M --loops=2
kill_server 50
end_load kept
[ "$status" = 0 ] || { cat "$scratch/fio.kept" >&2; fault "I/Os fail with the server"; }
is_lost || fault "the server was not missed"
reaches backup_waits 1 || fault "no write had to wait for room"
[ "$(number backup_errors)" = 0 ] || fault "the disk has failed"
[ "$(number backup_lag_bytes)" = 0 ] || fault "the disk is behind, and nobody writes"
cmp -n $((4 << 20)) -i $((8 << 20)):0 "$device" /dev/zero || fault "new blocks are not zeros"
detach
pass "the only server dies: what was acknowledged is read back, and new blocks are zeros"

# ---- swap ------------------------------------------------------------------------
backed /dev/ram0 32
start_program 24 8 2
kill -KILL "$pid"
wait "$program" || { cat "$scratch/program" >&2; fault "a program loses its pages with the server"; }
is_lost || fault "the server was not missed"
swapoff "$device" || fault "swapoff"
detach
pass "a program that is swapped out does not notice that the only server dies"

# ---- a file system ---------------------------------------------------------------
backed /dev/ram0 16
make_file_system
kill_server 20
add_files kernel
files_are_kept
is_lost || fault "the server was not missed"
detach
pass "a file system does not notice that the only server dies"

# ---- memory again ----------------------------------------------------------------
# is_all SKIP_MIB BYTE MIB - the device holds so many of them from there on
is_all()
{
	cmp <(dd if="$device" bs=64k skip=$(($1 << 4)) count=$(($3 << 4)) iflag=direct status=none) \
		<(bytes "$2" "$3")
}

none_is_lost()
{
	[ "$(number slabs_lost)" = 0 ] && [ "$(number slabs_holed)" = 0 ]
}

start_verbs_server --memory 40M --insecure
one=$address
dies=$pid
start_verbs_server --memory 40M --insecure
attach "$one,$address" 12 backup=/dev/ram0 peer_timeout_ms=3000
bytes x 12 | dd of="$device" bs=64k iflag=fullblock oflag=direct status=none || fault "cannot write"
kill -KILL "$dies"
eventually reaches slabs_lost 1 || fault "the server was not missed"
is_all 0 x 12 || fault "what was lost is not read from the disk"
reaches backup_reads 1 || fault "nothing was read from the disk"
bytes y 6 | dd of="$device" bs=64k iflag=fullblock oflag=direct status=none ||
	fault "what was lost cannot be written"
is_all 0 y 6 || fault "what was written again is something else"
is_all 6 x 6 || fault "what was not written again is something else"
bytes z 12 | dd of="$device" bs=64k iflag=fullblock oflag=direct status=none ||
	fault "what was lost cannot be written"
eventually none_is_lost || fault "$(number slabs_lost) slabs are lost, $(number slabs_holed) in part"
before=$(number backup_reads)
is_all 0 z 12 || fault "what was written again is something else"
[ "$(number backup_reads)" = "$before" ] || fault "what is in memory again is read from the disk"
detach
pass "what one of two servers had is read from the disk, and written to the other's memory"

# ---- a disk that fails -----------------------------------------------------------
# first_mib KIND - what is at the beginning of /dev/dm-0: "error", or /dev/nullb1
first_mib()
{
	dmsetup reload --noudevsync frail --table "0 2048 $1
2048 30720 linear /dev/nullb1 2048" && dmsetup suspend --noudevsync frail &&
		dmsetup resume --noudevsync frail || fault "no device mapper"
}

dmsetup create --noudevsync frail --table "0 32768 linear /dev/nullb1 0" && [ -b /dev/dm-0 ] ||
	fault "no device mapper"
backed /dev/dm-0 8
first_mib error
dmesg -C
bytes x 8 | dd of="$device" bs=64k iflag=fullblock oflag=direct status=none ||
	fault "a failing disk fails writes that a server has taken"
cmp "$device" <(bytes x 8) || fault "a failing disk fails reads"
eventually reaches backup_errors 2 || fault "the disk does not fail"
[ "$(dmesg | grep -c 'the backup on dm-0 cannot write')" = 1 ] ||
	{ dmesg; fault "not said once"; }
kill -KILL "$pid"
# Of a run of 128 KiB that is bad in part all is lost.
cmp -i $((2 << 20)):0 "$device" <(bytes x 6) || fault "what the disk has taken is not read back"
! dd if="$device" of="$scratch/junk" bs=4k count=1 iflag=direct status=none 2>/dev/null ||
	fault "junk in place of an error"
! dd if=/dev/zero of="$device" bs=64k count=1 oflag=direct status=none 2>/dev/null ||
	fault "a write that nobody has succeeds"
is_lost || fault "the server was not missed"
first_mib "linear /dev/nullb1 0"
dd if=/dev/zero of="$device" bs=64k count=1 oflag=direct status=none ||
	fault "the disk is well again, and takes no write"
cmp -n $((64 << 10)) "$device" /dev/zero || fault "what was written then is not read back"
detach
pass "what a failing disk has not taken is an error once the server is gone, never junk"

dmsetup remove --noudevsync frail || fault "the backup is still in use"
rmdir /sys/kernel/config/nullb/nullb0 /sys/kernel/config/nullb/nullb1 &&
	rmmod brd null_blk || fault "a disk is still in use"
rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

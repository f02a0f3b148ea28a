# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts kernel_*.sh share: the vocabulary of verbs.sh, with the modules
# that tests/kernel/modules_build.sh has left. Not executable, so that
# lab/guest/run-tests leaves it alone.

# shellcheck source=verbs.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/verbs.sh"

slowness=1
case $(uname -r) in
*-debug)
	modules=$build/modules-debug
	slowness=5
	;;
6.1.*) modules=$build/modules-6.1 ;;
6.12.*) modules=$build/modules-6.12 ;;
*) fault "no modules for kernel $(uname -r)" ;;
esac

# Against hangs only.
limit_s=$((limit_s * slowness))
load_limit_s=$((175 * slowness))
attempts=$((600 * slowness))

# For `page attach`. On a slow machine a server has as much more time before it counts as lost, or a
# busy one would.
patience=()
[ "$slowness" = 1 ] || patience=(--peer-timeout $((5000 * slowness)))

# load_module NAME PARAMETER... - and what it needs of the kernel
load_module()
{
	local name=$1 needed

	shift
	needed=$(modinfo -F depends "$modules/$name.ko" | tr ',' '\n' | grep -v '^rdmabox')
	# shellcheck disable=SC2086 # words
	modprobe -a $needed hmac sha256 || fault "modprobe $needed"
	insmod "$modules/$name.ko" "$@" || { dmesg | tail -n 20; fault "insmod $name.ko $*"; }
}

# ---- Block devices -------------------------------------------------------------------

# The volume that the functions below are about.
volumes=/sys/kernel/config/rdmabox
volume=$volumes/test

load_block_modules()
{
	load_module rdmabox
	load_module rdmabox_block
	mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config ||
		fault "no configfs"
}

# attach SERVERS MIB [OPTION=VALUE]... - makes $device. Its servers have more time, too.
attach()
{
	local option

	mkdir -p "$volume"
	echo "$1" >"$volume/servers"
	echo $(($2 << 20)) >"$volume/size"
	echo 1 >"$volume/insecure"
	[ "$slowness" = 1 ] || echo $((5000 * slowness)) >"$volume/peer_timeout_ms"
	for option in "${@:3}"; do
		echo "${option#*=}" >"$volume/${option%%=*}"
	done
	echo 1 >"$volume/attached" || { dmesg | tail; fault "cannot attach $*"; }
	device=/dev/$(<"$volume/device")
	[ -b "$device" ] || fault "there is no $device"
}

detach()
{
	echo 0 >"$volume/attached" || fault "cannot detach"
	rmdir "$volume" || fault "cannot remove $volume"
}

# number NAME - of the volume
number()
{
	echo "$(<"$volume/$1")"
}

# keep MIB - at the beginning of the device, for is_kept
keep()
{
	head -c $(($1 << 20)) /dev/urandom >"$scratch/kept"
	dd if="$scratch/kept" of="$device" bs=128k oflag=direct status=none ||
		fault "cannot write to $device"
}

# What was kept is there, on the device itself.
is_kept()
{
	dd if="$device" bs=128k iflag=direct count=$(($(stat -c %s "$scratch/kept") >> 17)) \
		status=none | cmp - "$scratch/kept"
}

# start_load NAME OPTION... - fio in the background, which verifies; sets load
start_load()
{
	local name=$1

	shift
	timeout "$load_limit_s" fio --name="$name" --filename="$device" --direct=1 \
		--ioengine=libaio --iodepth=16 --verify=crc32c --verify_state_save=0 \
		--output="$scratch/fio.$name" "$@" 2>"$scratch/fio.$name.err" &
	load=$!
	server_pids+=("$load")
}

# end_load NAME - waits for it; sets status. It ends, and has read no junk.
end_load()
{
	wait "$load"
	status=$?
	[ "$status" != 124 ] || fault "$1: an I/O never ends"
	! grep -q 'verify: bad' "$scratch/fio.$1" "$scratch/fio.$1.err" || fault "$1: junk"
}

# stop_load NAME - and not one I/O of it has failed
stop_load()
{
	kill -INT "$load"
	end_load "$1"
	grep -q 'err= 0' "$scratch/fio.$1" ||
		{ cat "$scratch/fio.$1" "$scratch/fio.$1.err" >&2; fault "$1: I/Os fail"; }
}

# eventually COMMAND... - until it succeeds, but not for ever
eventually()
{
	local attempt

	for ((attempt = 0; attempt < attempts; attempt++)); do
		! "$@" || return 0
		sleep 0.1
	done
	return 1
}

# logged PATTERN - by the kernel
logged()
{
	dmesg | grep -q "$1"
}

# reaches NAME COUNT - a number of the volume
reaches()
{
	[ "$(number "$1")" -ge "$2" ]
}

# All slabs that have memory have all copies.
is_whole()
{
	[ $(($(number slabs_whole) + $(number slabs_blank))) = "$(number slabs)" ]
}

# swapped WHAT - pages, in or out, since the machine was started
swapped()
{
	awk -v name="pswp$1" '$1 == name { print $2 }' /proc/vmstat
}

# It is at its second turn, or ends.
has_turned()
{
	grep -q 'turn 1' "$scratch/program" || ! kill -0 "$program" 2>/dev/null
}

# start_program MIB LIMIT TURNS - with the device as its swap; sets program
start_program()
{
	mkswap "$device" >/dev/null && swapon -p 10 "$device" || fault "no swap on $device"
	swapped_before=$(swapped in)
	: >"$scratch/program"
	in_memory program high "$2" "$build/tests/fill_and_check" "$1" "$3" >"$scratch/program" &
	program=$!
	server_pids+=("$program")
	eventually has_turned || fault "the program does not get on"
	kill -0 "$program" 2>/dev/null || { dmesg | tail -n 5 >&2; fault "the program is gone"; }
}

# ---- A file system ---------------------------------------------------------------------

# make_file_system - on the device, mounted, with a tree of files
make_file_system()
{
	mkfs.ext4 -q "$device" && mkdir -p "$scratch/mount" && mount "$device" "$scratch/mount" ||
		fault "no ext4 on $device"
	: >"$scratch/hashes"
	add_files core wire
	sync -f "$scratch/mount"
}

# add_files FOLDER... - of the checkout
add_files()
{
	(cd /host && cp -r "$@" "$scratch/mount" && find "$@" -type f -exec sha256sum {} +) \
		>>"$scratch/hashes"
}

# It was written to the device, and comes back from there; and is unmounted then.
files_are_kept()
{
	umount "$scratch/mount"
	mount "$device" "$scratch/mount" || fault "the file system is gone"
	(cd "$scratch/mount" && sha256sum --quiet -c "$scratch/hashes") || fault "files have changed"
	umount "$scratch/mount"
}

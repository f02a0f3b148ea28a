#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# On a volume that borrows on demand a trim gives whole slabs back, which read as zeros
# from then on, and leaves parts of slabs as they are.

. "$(dirname "$0")/fio.sh"

start_server --memory 64M --slab 1M
same=(--servers="$address" --on_demand=1 --size=16M --thread=1 --ioengine="external:$engine")
fill=(--name=fill "${same[@]}" --rw=write --bs=64k --iodepth=8 --verify=pattern
	--verify_pattern=0x5a5a5a5a --do_verify=0)

# then_trims BLOCK - and reads what is there; sets status
then_trims()
{
	fio_run "${fill[@]}" --name=trim "${same[@]}" --stonewall --rw=trim --bs="$1" \
		--name=look "${same[@]}" --stonewall --rw=read --bs=64k --verify=pattern \
		--verify_pattern="$2" --verify_fatal=1
}

then_trims 1M 0x00000000
[ "$status" = 0 ] || { show; fault "whole slabs do not read as zeros"; }
then_trims 64k 0x5a5a5a5a
[ "$status" = 0 ] || { show; fault "parts of slabs are not as they were"; }
then_trims 64k 0x00000000
[ "$status" != 0 ] || { show; fault "nobody looks at what is read"; }
run stat --server "$address"
grep -qE 'slabs_mapped +[1-9]' "$scratch/out" || { show; fault "nothing was borrowed"; }
grep -qE 'lent_bytes +0 ' "$scratch/out" || { show; fault "memory is still lent"; }

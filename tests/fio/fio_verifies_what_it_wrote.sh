#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What fio writes through the engine it reads back: in sequence and at random, one request
# at a time and many, in batches, of many sizes, by processes and by threads that share a
# volume. And what nobody has written is found out, so that all this means something.

. "$(dirname "$0")/fio.sh"

start_server --memory 160M --slab 4M
one=$address
start_server --memory 160M --slab 4M
two=$address
job=(--name=job --servers="$one,$two" --verify=crc32c --verify_fatal=1)
batch=(--iodepth=32 --iodepth_batch=16 --iodepth_batch_complete_min=1
	--iodepth_batch_complete_max=32)

for pattern in write randwrite rw randrw; do
	for depth in 1 32; do
		expect_good "${job[@]}" --size=8M --bs=4k --rw="$pattern" --iodepth="$depth"
	done
done
expect_good "${job[@]}" --size=16M --bs=4k --rw=randrw "${batch[@]}" --fsync=50 --end_fsync=1
expect_good "${job[@]}" --size=16M --bsrange=512-300k --bs_unaligned=0 --rw=randwrite \
	--iodepth=8 --replicas=2
expect_good "${job[@]}" --size=16M --bs=1M --rw=write --iodepth=4 --mode=single \
	--window=256k --fabric=soft:tcp --buffers=direct --device=registered
expect_good "${job[@]}" --size=8M --bs=4k --rw=randrw --iodepth=16 --checksums=1 \
	--polling=event --pollers=2 --urgent_reads=1 --fragment_bytes=64k --mem=mmap

# Processes, each with a volume of its own; threads in one volume.
expect_good "${job[@]}" --size=8M --bs=4k --rw=randrw --iodepth=8 --numjobs=4
expect_good "${job[@]}" --size=4M --offset_increment=4M --bs=4k --rw=randrw --numjobs=4 \
	--thread=1 "${batch[@]}" --create_serialize=0 --volume=16M

# Jobs one after the other: threads find what the one before wrote, processes do not.
jobs=(--servers="$one,$two" --size=8M --bs=4k --verify=crc32c --iodepth=16)
expect_good "${jobs[@]}" --thread=1 --name=first --rw=randwrite --do_verify=0 \
	--name=second --stonewall --rw=read --ioengine="external:$engine" "${jobs[@]}" --thread=1
grep -qE '^second: .*err= 0' "$scratch/out" || { show; fault "no second job"; }
expect_bad 'verify: bad magic header 0' "${jobs[@]}" --name=alone --rw=read

run stat --server "$one"
[ "$status" = 0 ] || fault "the server is gone"
grep -qE 'lent_bytes +0 ' "$scratch/out" || { show; fault "memory is still lent"; }

# count NAME - a counter that the engine told
count()
{
	sed -nE "s/^rdmabox: counters:.* $1=([0-9]+).*/\1/p" "$scratch/err"
}

# counted DIVISOR ARGUMENT... - all requests came, in less work requests by that factor
counted()
{
	local divisor=$1

	shift
	fio_run --name=job --servers="$one,$two" --counters=1 --size=8M --bs=4k --rw=write "$@"
	[ "$status" = 0 ] || { show; fault "fio $*: exit code $status"; }
	[ "$(count requests)" = 2048 ] || { show; fault "fio $*: not 2048 requests"; }
	[ $(($(count work_requests) * divisor)) -le 2048 ] ||
		{ show; fault "fio $*: more work requests than 1 of $divisor"; }
}

# Of threads that share a volume any may ask for its counters.
job=(--servers="$one,$two" --size=8M --bs=4k --rw=write --thread=1)
fio_run --name=first "${job[@]}" --name=second "${job[@]}" --counters=1 \
	--ioengine="external:$engine"
[ "$(count requests)" = 4096 ] || { show; fault "the counters of two threads are not told once"; }

# A sync waits for all that was submitted: no two writes are in flight at once. (With
# more than two units fio leaves out syncs in the beginning, until something completes.)
tcp=(--fabric=soft:tcp --iodepth=2)
counted 1 "${tcp[@]}" --fsync=1
[ "$(count inflight_bytes_max)" = 4096 ] || { show; fault "a sync does not wait"; }
counted 1 "${tcp[@]}"
[ "$(count inflight_bytes_max)" -gt 4096 ] || { show; fault "never two writes at once"; }

# A batch of fio is merged, and one by one nothing is.
counted 16 --iodepth=32 --iodepth_batch=32 --iodepth_batch_complete_min=32
grep -qE '^ +submit +:.* 32=100\.0%' "$scratch/out" || { show; fault "fio was not told of batches"; }
grep -qE '^ +slat \(.* max= *[1-9]' "$scratch/out" ||
	{ show; fault "no latency of submission"; }
counted 1 --iodepth=1
[ "$(count merged_requests)" = 0 ] || { show; fault "one at a time: something is merged"; }

# Buffers are registered once, before the job, on a device that wants that; or copied.
registered=(--fabric=soft:tcp --device=registered --iodepth=8)
counted 1 "${registered[@]}"
[ "$(count staged_bytes)" = 0 ] || { show; fault "registered buffers are copied"; }
counted 1 "${registered[@]}" --buffers=staging
[ "$(count staged_bytes)" = 8388608 ] || { show; fault "buffers are not copied"; }

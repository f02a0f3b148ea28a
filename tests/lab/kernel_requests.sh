#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Where the requests of a block device end, what is counted of them, how many there may
# be, and that reads do not wait for the places of writes.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"
tracing=/sys/kernel/tracing

load_block_modules
start_verbs_server --memory 40M --insecure
attach "$address" 16
statistics=/sys/block/${device#/dev/}/rdmabox

# ---- where they end ------------------------------------------------------------------
echo 1 >"$tracing/events/block/block_rq_complete/enable"
for affinity in 1 2; do
	echo "$affinity" >"/sys/block/${device#/dev/}/queue/rq_affinity"
	: >"$tracing/trace"
	start_load "affinity$affinity" --rw=randrw --bsrange=4k-128k --blockalign=4k --size=4M \
		--numjobs=1 --cpus_allowed=$((affinity % $(nproc)))
	end_load "affinity$affinity"
	[ "$status" = 0 ] || { cat "$scratch/fio.affinity$affinity" >&2; fault "the load fails"; }
	number=$((16#$(stat -c %t "$device"))),$((16#$(stat -c %T "$device")))
	grep "block_rq_complete: $number [RW]" "$tracing/trace" >"$scratch/ends"
	[ -s "$scratch/ends" ] || fault "no request ended"
	# Behind the processor, the third letter: s for a softirq, h for an interrupt.
	in_task=$(grep -vE '\] ..[shHzZ]..? ' "$scratch/ends" | head -n 3)
	[ -z "$in_task" ] || fault "requests end in a task: $in_task"
done
echo 0 >"$tracing/events/block/block_rq_complete/enable"
pass "$(wc -l <"$scratch/ends") requests end, none of them where it could sleep"

# ---- their latency -------------------------------------------------------------------
detach
attach "$address" 16
statistics=/sys/block/${device#/dev/}/rdmabox
echo 0 >"/sys/block/${device#/dev/}/queue/iostats"
keep 2
is_kept || fault "other bytes"
# Counted from the start of the machine they would be as long as it runs.
half_ns=$(awk '{ printf "%.0f", $1 * 5e8 }' /proc/uptime)
for name in read_latency_p50_ns write_latency_p50_ns; do
	[ "$(<"$statistics/$name")" -gt 0 ] || fault "$name is 0 without iostats"
	[ "$(<"$statistics/$name")" -lt "$half_ns" ] ||
		fault "$name is $(<"$statistics/$name") without iostats"
done
pass "latencies are counted whether the block layer counts or not"
detach

# ---- how many there may be -------------------------------------------------------------
for depth in 1 1024; do
	attach "$address" 16 queue_depth=$depth
	most=$(<"/sys/block/${device#/dev/}/queue/nr_requests")
	[ "$most" = "$depth" ] || fault "$most requests fit into a queue of $depth"
	start_load "depth$depth" --rw=randrw --bsrange=4k-128k --blockalign=4k --size=4M \
		--iodepth=1024 --iodepth_batch=1024
	end_load "depth$depth"
	[ "$status" = 0 ] || { cat "$scratch/fio.depth$depth" >&2; fault "the load fails"; }
	detach
done
for depth in 0 1025; do
	mkdir "$volume"
	echo "$address" >"$volume/servers"
	echo $((16 << 20)) >"$volume/size"
	echo 1 >"$volume/insecure"
	echo $depth >"$volume/queue_depth"
	! { echo 1 >"$volume/attached"; } 2>/dev/null || fault "a queue of $depth requests"
	rmdir "$volume"
done
pass "the queue is as deep as it is wanted, from 1 to 1024"

# ---- reads beside writes that are stuck ----------------------------------------------------
writes_stuck()
{
	local writes

	read -r _ writes <"/sys/block/${device#/dev/}/inflight"
	[ "$writes" -ge 8 ]
}

# A first write waits for memory, which a server that is stopped does not lend; what it
# has lent its device serves without it.
attach "$address" 16 on_demand=1 queue_depth=8 peer_timeout_ms=60000
keep 1
kill -STOP "$pid"
start_load flood --rw=randwrite --bs=4k --offset=4M --size=256k --iodepth=64 \
	--iodepth_batch=64 --do_verify=0
eventually writes_stuck || fault "no writes get stuck"
{ is_kept && : >"$scratch/read"; } &
server_pids+=("$!")
sleep 5
writes_stuck || fault "the writes went on: $(<"/sys/block/${device#/dev/}/inflight")"
[ -e "$scratch/read" ] || fault "reads wait for writes that are stuck"
kill -CONT "$pid"
end_load flood
[ "$status" = 0 ] || { cat "$scratch/fio.flood" >&2; fault "the writes fail"; }
detach
pass "reads do not wait for 64 writes that are stuck"
rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

# ---- after an assertion has failed -----------------------------------------------------
load_module rdmabox broken=1
load_module rdmabox_block
attach "$address" 16
for what in "if=$device of=/dev/null iflag=direct" "if=/dev/zero of=$device oflag=direct"; do
	# shellcheck disable=SC2086 # words
	! dd $what bs=4k count=1 2>/dev/null || fault "an I/O succeeds, though nothing is promised"
done
detach
rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"
pass "after an assertion has failed each I/O is an error, and the device can be detached"

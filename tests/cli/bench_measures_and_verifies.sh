#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox bench: every mode and pattern with every byte compared, and all keys of
# its JSON.

. "$(dirname "$0")/rdmabox.sh"

promised="fabric mode polling load op pattern block_bytes depth threads runtime_s
requests iops mb_per_s lat_us.p50 lat_us.p99 lat_us.p999 lat_us.max work_requests
doorbells merged_requests completions polls empty_polls arms wakeups
context_switches poller_cpu_percent window_waits
inflight_bytes_max failovers errors verify_errors cpu_percent"

start_server --memory 64M --slab 4M
one=$address
start_server --memory 64M --slab 4M
two=$address
printf '0 4 0 1\n# a comment\n\n100 1 0 2\n9999999 8 0 3\n' >"$scratch/trace"

# bench_for SECONDS OPTION... - expects no errors
bench_for()
{
	expect_success bench --pool "$one,$two" --volume 16M --runtime "$1" \
		--warmup 0 --verify --json - "${@:2}"
	[ "$(key errors)" = 0 ] && [ "$(key verify_errors)" = 0 ] || fault "errors with $*"
}

# bench OPTION... - the same, and expects requests; a machine that had no time for
# one gets more of it
bench()
{
	bench_for 0.2 "$@"
	[ "$(key requests)" -gt 0 ] || bench_for 5 "$@"
	[ "$(key requests)" -gt 0 ] || fault "no requests with $*"
}

for fabric in soft soft:tcp; do
	for mode in single doorbell merge hybrid; do
		bench --fabric "$fabric" --mode "$mode" --op mix:50 --pattern zipf
		[ "$(key fabric)" = "$fabric" ] || fault "fabric is $(key fabric)"
		[ "$(key mode)" = "$mode" ] || fault "mode is $(key mode)"
		[ "$mode" = single ] && [ "$(key merged_requests)" != 0 ] &&
			fault "mode single merges"
	done
done
for name in $promised; do
	key "$name" >/dev/null || fault "no key $name"
done

bench --op write --pattern seq --mode hybrid --fabric soft:tcp
[ "$(key merged_requests)" -gt 0 ] || fault "adjacent requests are not merged"
[ "$(key work_requests)" -lt "$(key requests)" ] || fault "more work requests than requests"
bench --op read --pattern rand --replicas 2 --threads 3 --depth 8
bench --op mix:75 --pattern "trace:$scratch/trace"
bench --op mix:50 --pattern zipf --replicas 2 --checksums
bench --op mix:50 --pattern rand --block 64 --volume 1M
bench --op mix:50 --pattern seq --block 1M --depth 4
bench --op write --pattern rand --depth 1 --threads 1
bench --op mix:50 --pattern rand --window 64K --fragment 8K --block 32K
[ "$(key inflight_bytes_max)" -le 65536 ] || fault "more in flight than the window"
for polling in busy event event-batch:4 hybrid adaptive adaptive:120:8 shared:2; do
	bench --op mix:50 --pattern rand --polling "$polling"
	[ "$(key polling)" = "$polling" ] || fault "polling is $(key polling)"
done
bench --op mix:50 --pattern rand --pollers peer --poll-cpu 10
bench --op mix:50 --pattern rand --pollers queue_pair --qps 2

# The shapes of load: a burst is whole, and an open load keeps its rate.
for load in burst:1:0 burst:32:0 burst:7:100us burst:100:2ms open:2000; do
	bench --op mix:50 --pattern rand --load "$load" --threads 2
	[ "$(key load)" = "$load" ] || fault "load is $(key load)"
done
[ "$(key requests)" -lt 4000 ] || fault "far more requests than the rate"
bench --op write --pattern rand --load burst:16:1ms --mode single
[ "$(($(key requests) % 16))" = 0 ] || fault "a burst was cut"
# Reads and writes of a mix apart, and only there.
bench --op mix:50 --pattern rand --depth 64 --window 16K --fragment 16K
[ "$(key urgent_reads)" = False ] || fault "urgent without being asked"
read_us=$(key read_lat_us.p50) || fault "a mix has no latency of reads"
key write_lat_us.p50 >/dev/null || fault "a mix has no latency of writes"
[ "${read_us%.*}" -gt 0 ] || fault "reads of a mix take no time"
bench --op mix:50 --pattern rand --load open:2000
[ "$(printf %.0f "$(key read_lat_us.max)")" -le "$(printf %.0f "$(key lat_us.max)")" ] ||
	fault "a read was later than the latest request"
bench --op write --pattern rand
key read_lat_us 2>/dev/null && fault "there are reads among the writes"
bench --op mix:90 --pattern rand --depth 64 --window 16K --fragment 16K --urgent-reads
[ "$(key urgent_reads)" = True ] || fault "the report does not say that reads are urgent"

# Without a slot for each of them, they wait and are late.
bench --op mix:50 --pattern rand --load open:10000000 --depth 1
[ "$(printf %.0f "$(key lat_us.p50)")" -ge 10000 ] || fault "who waits for a slot is not late"
for window in aimd delay auto; do
	bench --op mix:50 --pattern rand --window "$window" --fragment 4K --depth 64
	[ "$(key window)" = "$window" ] || fault "the report does not name the window"
	[ "$(key window_bytes)" -ge 4096 ] || fault "the window is not told"
	[ "$(key window_clamps)" = 0 ] || fault "a policy of ours had to be clamped"
done
bench --op mix:50 --pattern rand --overload 8:200 --window auto
[[ $(key using) == *"overload beyond 8 work requests"* ]] || fault "overload is not named"
bench --op mix:50 --pattern rand --buffers staging
[ "$(key staged_bytes)" -gt 0 ] || fault "nothing is copied"
bench --op mix:50 --pattern rand --buffers direct
[ "$(key staged_bytes)" = 0 ] || fault "something is copied"

# begin_bench OPTION... - sets bench_pid, of one that has made progress
begin_bench()
{
	rm -f "$scratch"/{early,progress}
	"$rdmabox" bench --pool "$one" --volume 16M --runtime "$limit_s" --progress \
		--json "$scratch/early" "$@" >"$scratch/table" 2>"$scratch/progress" &
	bench_pid=$!
	server_pids+=("$bench_pid")
	for ((attempt = 0; attempt < 10 * limit_s; attempt++)); do
		[ ! -s "$scratch/progress" ] || break
		sleep 0.1
	done
}

# Ended early by either signal, it tells what was measured and gives back what was lent.
for signal in INT TERM; do
	begin_bench
	kill -"$signal" "$bench_pid"
	wait "$bench_pid" || fault "SIG$signal: exit code $?"
	grep -q 'requests/s' "$scratch/table" && [ -s "$scratch/early" ] || fault "SIG$signal: no table"
	expect_success stat --server "$one" --json
	[ "$(key lent_bytes)" = 0 ] || fault "SIG$signal: a volume stays lent"
done

# The second signal ends it, whichever it is, though nothing completes any more; those that come
# within a second are one with the first.
start_server --memory 64M --slab 4M
one=$address
begin_bench --fabric soft:tcp --peer-timeout $((1000 * limit_s))
kill -STOP "$pid"
kill -INT "$bench_pid"
while kill -TERM "$bench_pid" 2>/dev/null; do
	sleep 0.1
done
wait "$bench_pid"
status=$?
[ "$status" = 143 ] || fault "INT, then TERM: exit code $status"
kill -CONT "$pid"

# JSON to a file, and the table beside it.
expect_success bench --pool "$one" --volume 16M --runtime 0.2 --json "$scratch/json"
grep -q 'requests/s' "$scratch/out" || fault "no table"
cp "$scratch/json" "$scratch/out"
[ "$(key volume_bytes)" = 16777216 ] || fault "no JSON in the file"

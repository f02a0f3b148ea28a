#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Memory servers and rdmabox bench over real verbs: every mode, pattern and kind
# of buffer, with every byte compared, and the counters tell that requests were
# merged and chained where the mode says so.

. "$(dirname "$(readlink -f "$0")")/verbs.sh"

echo "a secret that is long enough to be one" >"$scratch/secret"
chmod 600 "$scratch/secret"
start_verbs_server --memory 16M --secret-file "$scratch/secret"
one=$address
start_verbs_server --memory 16M --secret-file "$scratch/secret"
two=$address

# bench NAME OPTION...
bench()
{
	local name=$1

	shift
	expect_success bench --pool "$one,$two" --fabric verbs \
		--secret-file "$scratch/secret" --volume 2M --runtime 0.3 \
		--warmup 0 --verify --json - "$@"
	expect_sound "$name"
}

# is_less NAME NAME
is_less()
{
	[ "$(key "$1")" -lt "$(key "$2")" ]
}

bench "mode single" --mode single --op mix:50 --pattern rand
[ "$(key merged_requests)" = 0 ] || fault "mode single merges"
[ "$(key doorbells)" = "$(key work_requests)" ] || fault "mode single chains"
bench "mode doorbell" --mode doorbell --op write --pattern rand
[ "$(key merged_requests)" = 0 ] || fault "mode doorbell merges"
is_less doorbells work_requests || fault "mode doorbell does not chain"
bench "mode merge" --mode merge --op write --pattern seq
[ "$(key merged_requests)" -gt 0 ] || fault "mode merge does not merge"
is_less work_requests requests || fault "mode merge: as many work requests as requests"
bench "mode hybrid" --mode hybrid --op mix:50 --pattern seq
[ "$(key merged_requests)" -gt 0 ] || fault "mode hybrid does not merge"
is_less work_requests requests || fault "mode hybrid: as many work requests as requests"
is_less doorbells work_requests || fault "mode hybrid does not chain"
pass "each mode merges and chains what it should, and nothing is lost"

bench "four queue pairs" --qps 4 --threads 2 --depth 16 --op mix:50 --pattern rand
bench "two replicas" --replicas 2 --op mix:50 --pattern zipf --checksums --polling event
bench "copied buffers" --buffers staging --op mix:50 --pattern seq
[ "$(key staged_bytes)" -gt 0 ] || fault "nothing is copied"
bench "a region" --op read --pattern seq
[ "$(key staged_bytes)" = 0 ] || fault "something is copied"
bench "small blocks" --block 64 --volume 256K --op mix:50 --pattern rand
bench "large blocks" --block 512K --depth 4 --op mix:50 --pattern seq
pass "queue pairs, threads, replicas, polling, buffers, and sizes of blocks"

# Each request is four windows long: it waits even if the device is faster than the
# thread that submits.
bench "a window" --window 64K --fragment 8K --block 256K --depth 8 --op mix:50 --pattern rand
[ "$(key inflight_bytes_max)" -le 65536 ] || fault "more in flight than the window"
[ "$(key window_waits)" -gt 0 ] || fault "nobody waits for the window"
pass "no more is in flight than the window"

expect_success stat --server "$one" --fabric verbs --secret-file "$scratch/secret" --json
[ "$(key lent_bytes)" = 0 ] || fault "$(key lent_bytes) bytes stay lent"
kill -TERM "$pid"
wait "$pid" || fault "the server ends with $? after SIGTERM"
pass "servers get everything back and end when told"

# A server in a control group lends no more than the group may have.
in_memory lends max 150 "$rdmabox" serve --listen "$device_address:0" --fabric verbs --slab 1M \
	--memory 1G --insecure >"$scratch/out" 2>"$scratch/err"
[ "$?" = 2 ] || { show; fault "a server in a group of 150 MiB lends 1 GiB"; }
grep -q 'cannot lend 1024 MiB: .*/lends has 150 MiB in all' "$scratch/err" ||
	{ show; fault "it does not say why"; }
pass "a server lends no more than its control group may have"

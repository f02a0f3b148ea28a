#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A pool of a real etcd: servers announce themselves, pool status and a volume find them, one
# that is killed vanishes with its lease and is found again when it is started anew, and
# etcd itself is killed and started again while a volume is used. No request fails.

. "$(dirname "$0")/rdmabox.sh"
. "$(dirname "$0")/etcd.sh"

pool=etcd://$endpoint/test

# has STATE COUNT - pool status has so many members in that state
has()
{
	run pool status "$pool" --json
	[ "$status" != 2 ] && [ "$(grep -c "\"state\": \"$1\"" "$scratch/out")" = "$2" ]
}

# etcd_do WHAT KEY [VALUE] - put or deleterange, by its JSON gateway
etcd_do()
{
	python3 - "http://$endpoint/v3/kv/$1" "$2" "${3-}" <<-'END'
		import base64, json, sys, urllib.request
		url, key, value = sys.argv[1:]
		said = {"key": base64.b64encode(key.encode()).decode()}
		if value:
		    said["value"] = base64.b64encode(value.encode()).decode()
		urllib.request.urlopen(url, json.dumps(said).encode(), timeout=10).read()
	END
}

start_etcd http
until_true answers
# Nobody is in the pool yet: who waits for servers goes on waiting.
run pool status "$pool"
[ "$status" = 1 ] || { show; fault "a pool without servers: exit code $status"; }
grep -q 'pool status: the pool has no servers; is its name right?$' "$scratch/err" ||
	{ show; fault "it is not said that there are no servers"; }
broken=/rdmabox/test/servers/0123456789abcdef
etcd_do put "$broken" 'nonsense'
run pool status "$pool"
[ "$status" = 1 ] || { show; fault "an entry cannot be read, and the exit code is $status"; }
etcd_do deleterange "$broken"
until_true answers

expect_refusal 'every address of this machine; add --address' serve --listen 0.0.0.0:0 --insecure \
	--memory 64M --slab 4M --announce "$pool"
expect_refusal 'label .a b=c. is not accepted' serve --listen 127.0.0.1:0 --memory 64M --slab 4M --announce "$pool" \
	--label 'a b=c'
expect_refusal 'is for a pool; add --announce' serve --listen 127.0.0.1:0 --memory 64M \
	--address 127.0.0.1:7471
expect_refusal 'announces itself in etcd://' serve --listen 127.0.0.1:0 --memory 64M --slab 4M \
	--announce "file:$scratch/pool"

start_server --memory 64M --slab 4M --announce "$pool" --label rack=7 --label zone=b
one=$address
start_server --memory 64M --slab 4M --announce "$pool" --label rack=8
two=$address
victim=$pid
until_true has up 2
expect_success pool status --pool "$pool"
grep -qE "^$one +up +rack=7,zone=b +64 MiB +64 MiB +0 " "$scratch/out" || { show; fault "no line of $one"; }
grep -qx '2 of 2 servers up, 0 bytes of 128 MiB lent' "$scratch/out" || { show; fault "no sum"; }

# ---- A volume finds them, and lives through deaths of a server and of etcd --------------------

timeout "$limit_s" "$rdmabox" bench --pool "$pool" --volume 16M --replicas 2 --op mix:50 \
	--runtime 40 --warmup 0 --load open:2000 --verify --progress --json "$scratch/json" \
	>"$scratch/bench" 2>"$scratch/bench.err" &
bench=$!
server_pids+=("$bench")
until_true grep -q measure "$scratch/bench.err"
kill -KILL "$victim"
until_true grep -q "server down: $two" "$scratch/bench.err"
until_true has up 1
until_true has away 0 # its lease has run out, and its key is gone
[ "$(grep -c '"state"' "$scratch/out")" = 1 ] || { show; fault "a dead server stays"; }

kill -KILL "$etcd_pid"
"$rdmabox" serve --listen "$two" --memory 64M --slab 4M --announce "$pool" --label rack=8 \
	>"$scratch/again" 2>"$scratch/again.err" &
pid=$!
server_pids+=("$pid")
until_true grep -q "^ready $two " "$scratch/again" # a server starts without etcd
until_true grep -q 'not announced: etcd at .*; it is tried again' "$scratch/again.err"
start_etcd http
until_true has up 2 # both are there again
until_true grep -q "server added: $two" "$scratch/bench.err"
until_true grep -q 'rebuild done' "$scratch/bench.err"
wait "$bench"
status=$?
cp "$scratch/json" "$scratch/out" || { cat "$scratch/bench.err" >&2; fault "no result: exit code $status"; }
[ "$status" = 0 ] || { cat "$scratch/bench.err" >&2; fault "bench: exit code $status"; }
[ "$(key errors)" = 0 ] || fault "$(key errors) requests failed"
[ "$(key verify_errors)" = 0 ] || fault "wrong data"

# ---- A clean end is told at once: no key is left while a lease would still run ----------------

kill -TERM "$pid"
wait "$pid"
until_true has up 1
[ "$(grep -c '"state"' "$scratch/out")" = 1 ] || { show; fault "a server that has ended stays"; }

# A server stops in time while etcd hangs.
kill -STOP "$etcd_pid"
kill -TERM "${server_pids[1]}"
wait "${server_pids[1]}"
status=$?
kill -CONT "$etcd_pid"
[ "$status" = 0 ] || fault "exit code $status while etcd hangs"

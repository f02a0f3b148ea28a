#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox pool status of lists and files: states, the same server under two addresses, labels,
# named volumes, exit codes, JSON; and a volume of a file, which leaves out a member that is away,
# takes one that comes later, and is refused if too few are there.

. "$(dirname "$0")/rdmabox.sh"

host=127.0.0.1 # which has another name

start_server --memory 64M --slab 4M
one=$address
start_server --memory 32M --slab 4M
two=$address

expect_refusal 'no pool; add --pool' pool status
expect_refusal 'unknown command .stats.; did you mean .status.' pool stats
expect_refusal 'no command; give status' pool
expect_refusal 'exclude each other' pool status "$one" --insecure --secret-file /dev/null
expect_refusal 'has a line host:port for each server: .*: No such file' pool status "file:$scratch/pool"
: >"$scratch/pool"
expect_refusal 'no line has a server: write host:port, one in a line' pool status "file:$scratch/pool"
expect_refusal 'zoo.* is no pool: give host:port,host:port..., file:PATH or etcd://' pool status zoo://x
expect_refusal 'etcd at 127.0.0.1:1: .*; is an etcd running there' pool status etcd://127.0.0.1:1/x
expect_refusal 'NAME is wanted' pool status etcd://127.0.0.1:2379
expect_refusal 'is named twice' pool status "$one,$one"
for address in foo:bar foo :7471 "$one:1"; do
	expect_refusal "'$address' is not an address: write host:port" pool status "$two,$address"
done
printf '%s\nnonsense\n' "$one" >"$scratch/pool"
expect_refusal "$scratch/pool:2: \"nonsense\" is no address" pool status "file:$scratch/pool"

expect_success pool status "$one,$two"
grep -qE "^$one +up +- +64 MiB +64 MiB +0 bytes +[0-9]+ +[0-9a-f]{16}$" "$scratch/out" ||
	{ show; fault "no line of $one"; }
grep -qx '2 of 2 servers up, 0 bytes of 96 MiB lent' "$scratch/out" || { show; fault "no sum"; }

expect_success pool status "$one"
grep -qx '1 of 1 server up, 0 bytes of 64 MiB lent' "$scratch/out" || { show; fault "no sum of one"; }

# Two addresses of one server: localhost is another name of it.
expect_success pool status "$one,localhost:${one##*:},$two"
grep -q "^localhost:${one##*:} is the same server as $one, and is counted once$" "$scratch/out" ||
	{ show; fault "one server under two addresses is not told"; }
grep -q '^2 of 2 servers up' "$scratch/out" || { show; fault "one server is counted twice"; }

printf '%s rack=7\n127.0.0.1:1 rack=8 zone=b\n' "$one" >"$scratch/pool"
run pool status --pool "file:$scratch/pool" --json
[ "$status" = 1 ] || { show; fault "a server is away, and the exit code is $status"; }
[ "$(key servers)/$(key servers_up)/$(key servers_away)" = 2/1/1 ] || { show; fault "wrong sums"; }
python3 - "$scratch/out" <<'END' || { show; fault "wrong JSON"; }
import json, sys
pool = json.load(open(sys.argv[1]))
up, away = pool["members"]
assert pool["trouble"] is None and up["state"] == "up" and len(up["incarnation"]) == 16
assert up["labels"] == {"rack": "7"} and up["free_bytes"] == 64 << 20
assert away["state"] == "away" and away["labels"] == {"rack": "8", "zone": "b"}
assert away["memory_bytes"] is None and away["incarnation"] is None and away["error"]
END

# ---- Where the servers are, and what is on them -------------------------------------------------

start_server --memory 32M --slab 4M --label rack=8 --label zone=b
three=$address
victim=$pid
printf '%s rack=7\n%s row=1\n%s rack=9 row=1\n' "$one" "$two" "$three" >"$scratch/pool"
expect_success volume create kept --pool "$one,$three" --size 8M
expect_success pool status "file:$scratch/pool"
for line in "$one +up +rack=7 " "$two +up +row=1 " "$three +up +rack=8,zone=b,row=1 " \
	"$three does not say rack=9, as the pool does: what it says counts$" \
	'rack 7: 1 server up, 64 MiB free$' 'rack 8: 1 server up, 32 MiB free$' \
	'kept +8 MiB +1 of 1 +2 of 2 +yes +no '; do
	grep -qE "^$line" "$scratch/out" || { show; fault "no line \"$line\""; }
done
expect_success pool status "file:$scratch/pool" --spread row --json
python3 - "$scratch/out" <<'END' || { show; fault "wrong JSON"; }
import json, sys
pool = json.load(open(sys.argv[1]))
assert pool["spread"] == "row"
assert [member["domain"] for member in pool["members"]] == [None, "1", "1"]
assert pool["domains"] == [{"name": "1", "servers_up": 2, "free_bytes": 64 << 20}]
[kept] = pool["volumes"]
assert kept["name"] == "kept" and kept["servers"] == kept["servers_there"] == 2
END
expect_refusal '--spread a=b: give the name of a label' pool status "$one" --spread a=b
kill -KILL "$victim"
run pool status "file:$scratch/pool"
[ "$status" = 1 ] || { show; fault "a server is away, and the exit code is $status"; }
grep -qE "^kept +8 MiB +1 of 1 +1 of 2 +no +no " "$scratch/out" || { show; fault "kept has all its servers"; }
grep -q '^kept lacks the copies of 1 of its servers' "$scratch/out" || { show; fault "what is missing is not told"; }
run pool status "$one,$two" # all of them are up
[ "$status" = 1 ] || { show; fault "a volume lacks a server, and the exit code is $status"; }
expect_success volume remove kept --pool "$one" --force
printf '%s rack=7\n127.0.0.1:1 rack=8 zone=b\n' "$one" >"$scratch/pool"

# ---- A volume of a file -----------------------------------------------------------------------

run bench --pool "file:$scratch/pool" --volume 16M --replicas 2 --runtime 0.1
[ "$status" = 2 ] || { show; fault "two replicas on one server: exit code $status"; }
grep -q '1 of 2 servers of the pool can be used, and 2 replicas need as many: .*127.0.0.1:1' "$scratch/err" ||
	{ show; fault "it does not say who is missing"; }

timeout "$limit_s" "$rdmabox" bench --pool "file:$scratch/pool" --volume 16M --op mix:50 \
	--runtime 6 --warmup 0 --verify --progress >"$scratch/bench" 2>"$scratch/bench.err" &
bench=$!
server_pids+=("$bench")
for ((attempt = 0; attempt < 600; attempt++)); do
	grep -qs measure "$scratch/bench.err" && break
	sleep 0.05
done
echo "$two" >>"$scratch/pool"
wait "$bench"
status=$?
[ "$status" = 0 ] || { cat "$scratch/bench.err" >&2; fault "bench: exit code $status"; }
grep -q 'server left out: 127.0.0.1:1, .*cannot connect' "$scratch/bench.err" ||
	{ cat "$scratch/bench.err" >&2; fault "who is left out is not told"; }
grep -q "server added: $two" "$scratch/bench.err" ||
	{ cat "$scratch/bench.err" >&2; fault "a server that comes later does not join"; }

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox serve: the ready line, its numbers by stat and over HTTP, and its end.

. "$(dirname "$0")/rdmabox.sh"

start_server --memory 64M --slab 4M --metrics 127.0.0.1:0 --drain-timeout 1
ready=$(head -n 1 "$scratch/server.0")
[[ $ready =~ ^ready\ $host:[1-9][0-9]*\  ]] || fault "ready line: $ready"
metrics=${ready##*metrics at }

expect_success stat --server "$address"
grep -qE '^ +memory_bytes +67108864 ' "$scratch/out" || { show; fault "stat: no memory"; }

# fetch PATH - sets $scratch/out to the answer's body, status to its code
fetch()
{
	status=$(python3 -c '
import sys, urllib.request, urllib.error
try:
    answer = urllib.request.urlopen("http://" + sys.argv[1], timeout=30)
except urllib.error.HTTPError as error:
    answer = error
sys.stdout.buffer.write(answer.read())
print(answer.getcode(), file=sys.stderr)' "$metrics$1" 2>&1 >"$scratch/out")
}

fetch /metrics
[ "$status" = 200 ] || fault "/metrics answers $status"
grep -qx 'rdmabox_server_memory_bytes 67108864' "$scratch/out" || fault "no memory_bytes"
grep -qx '# TYPE rdmabox_server_memory_bytes gauge' "$scratch/out" || fault "not a gauge"
grep -qx '# TYPE rdmabox_server_sessions_total counter' "$scratch/out" || fault "not a counter"
grep -qE '^# HELP rdmabox_server_sessions_total .+' "$scratch/out" || fault "no help"
grep -qx 'rdmabox_server_lent_bytes 0' "$scratch/out" || fault "something is lent"
fetch /nothing
[ "$status" = 404 ] || fault "/nothing answers $status"

run bench --pool "$address" --volume 16M --runtime 0.2 --warmup 0
[ "$status" = 0 ] || { show; fault "bench: exit code $status"; }
fetch /metrics
grep -qE '^rdmabox_server_slabs_mapped_total [1-9]' "$scratch/out" || fault "nothing was lent"
grep -qx 'rdmabox_server_lent_bytes 0' "$scratch/out" || fault "something stays lent"

kill -TERM "$pid"
wait "$pid"
status=$?
[ "$status" = 0 ] || fault "exit code $status after SIGTERM"

# A client that stays: the server waits for it, and a second signal ends that.
start_server --memory 64M --slab 4M --drain-timeout 3600
"$rdmabox" bench --pool "$address" --volume 16M --runtime 60 --progress >"$scratch/bench" 2>&1 &
client=$!
server_pids+=("$client")
for ((attempt = 0; attempt < 600; attempt++)); do
	[ -s "$scratch/bench" ] && break # it is measuring
	sleep 0.05
done
expect_success stat --server "$address" --json
[ "$(key slabs_lent)" = 4 ] || fault "the client does not have its slabs"
kill -TERM "$pid"
for ((attempt = 0; attempt < 600; attempt++)); do
	grep -q draining "$scratch"/server.*.err && break
	sleep 0.05
done
sleep 0.2
kill -0 "$pid" || fault "the server did not wait for its client"
kill -INT "$pid"
wait "$pid"
status=$?
[ "$status" = 1 ] || fault "exit code $status after a second signal that cut a client off"
grep -q 'second signal: 4 slabs are still lent and cut off' "$scratch"/server.1.err ||
	{ cat "$scratch"/server.1.err; fault "it does not say what is cut off"; }
wait "$client"
status=$?
[ "$status" = 1 ] || fault "bench without its server: exit code $status, not 1"
grep -qE "requests failed.*the first: .*server down: $address, " "$scratch/bench" ||
	{ cat "$scratch/bench" >&2; fault "bench does not say which server ended"; }
! grep -q 'No route to host' "$scratch/bench" || fault "a server that ended is a matter of routes"

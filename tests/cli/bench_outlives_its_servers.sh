#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server is killed in mid-run. With a second replica nothing is lost and
# nothing fails; without one the run ends with errors, and it does end.

. "$(dirname "$0")/rdmabox.sh"

# kill_under OPTION... - kills one of two servers under a running bench; sets
# status
kill_under()
{
	local one two victim attempt

	start_server --memory 64M --slab 4M
	one=$address
	victim=$pid
	start_server --memory 64M --slab 4M
	two=$address
	rm -f "$scratch"/{err,json}
	timeout "$limit_s" "$rdmabox" bench --servers "$one,$two" --volume 32M \
		--op mix:50 --pattern rand --runtime 4 --warmup 0 --verify --progress \
		--json "$scratch/json" "$@" >"$scratch/out" 2>"$scratch/err" &
	server_pids+=("$!")
	for ((attempt = 0; attempt < 600; attempt++)); do
		grep -qs measure "$scratch/err" && break
		sleep 0.05
	done
	kill -KILL "$victim"
	wait "${server_pids[-1]}"
	status=$?
	[ "$status" != 124 ] || fault "bench $*: hangs"
	cp "$scratch/json" "$scratch/out" || { show; fault "bench $*: no result"; }
}

kill_under --replicas 2
[ "$status" = 0 ] || { show; fault "with two replicas: exit code $status"; }
[ "$(key errors)" = 0 ] || fault "with two replicas: $(key errors) errors"
[ "$(key verify_errors)" = 0 ] || fault "with two replicas: wrong data"
grep -q 'server down' "$scratch/err" || fault "nobody tells of the server"

kill_under --replicas 2 --fabric soft:tcp --checksums
[ "$status" = 0 ] || { show; fault "with two replicas over TCP: exit code $status"; }

kill_under --replicas 1
[ "$status" = 1 ] || { show; fault "without replica: exit code $status"; }
[ "$(key errors)" -gt 0 ] || fault "without replica: no errors"
[ "$(key verify_errors)" = 0 ] || fault "without replica: junk in place of errors"

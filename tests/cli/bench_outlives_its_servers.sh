#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server is killed in mid-run, or stands still. With a second replica nothing is lost
# and nothing fails; without one the run ends with errors, and it does end. Who only stands
# still is given up no sooner than --peer-timeout says.

. "$(dirname "$0")/rdmabox.sh"

die()
{
	kill -KILL "$1"
}

# Longer than twice the timeout that is the default.
stand_still()
{
	kill -STOP "$1"
	sleep 12
	kill -CONT "$1"
}

# under HARM OPTION... - harms one of two servers under a running bench; sets status
under()
{
	local one two victim attempt harm=$1

	shift
	start_server --memory 64M --slab 4M
	one=$address
	victim=$pid
	start_server --memory 64M --slab 4M
	two=$address
	rm -f "$scratch"/{err,json}
	timeout "$limit_s" "$rdmabox" bench --pool "$one,$two" --volume 32M \
		--op mix:50 --pattern rand --runtime 4 --warmup 0 --verify --progress \
		--json "$scratch/json" "$@" >"$scratch/out" 2>"$scratch/err" &
	server_pids+=("$!")
	for ((attempt = 0; attempt < 600; attempt++)); do
		grep -qs measure "$scratch/err" && break
		sleep 0.05
	done
	"$harm" "$victim"
	wait "${server_pids[-1]}"
	status=$?
	[ "$status" != 124 ] || fault "bench $*: hangs"
	cp "$scratch/json" "$scratch/out" || { show; fault "bench $*: no result"; }
}

under die --replicas 2
[ "$status" = 0 ] || { show; fault "with two replicas: exit code $status"; }
[ "$(key errors)" = 0 ] || fault "with two replicas: $(key errors) errors"
[ "$(key verify_errors)" = 0 ] || fault "with two replicas: wrong data"
grep -q 'server down' "$scratch/err" || fault "nobody tells of the server"

under die --replicas 2 --fabric soft:tcp --checksums
[ "$status" = 0 ] || { show; fault "with two replicas over TCP: exit code $status"; }

under die --replicas 1
[ "$status" = 1 ] || { show; fault "without replica: exit code $status"; }
[ "$(key errors)" -gt 0 ] || fault "without replica: no errors"
[ "$(key verify_errors)" = 0 ] || fault "without replica: junk in place of errors"

under stand_still --replicas 2 --peer-timeout 600000
[ "$status" = 0 ] || { show; fault "with patience: exit code $status"; }
[ "$(key errors)" = 0 ] || fault "with patience: $(key errors) errors"
! grep 'server down' "$scratch/err" || fault "it was given up in 12 s of 600"

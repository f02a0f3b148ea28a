#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server that is stopped for a while and goes on, as on a host that swaps. Its
# device still serves reads and writes, but nobody answers the heartbeats: the
# client gives the connection up and resumes the session. What was on its way is
# sent again or ends with an error; nothing hangs, and no byte is wrong.
#
# Not tested by taking the network interface down under load: on a Soft-RoCE device
# no program, stock ones included, can connect after that until it is made anew.

. "$(dirname "$(readlink -f "$0")")/verbs.sh"

# stop_under SECONDS - stops the server under a running bench; sets status
stop_under()
{
	local tenths bench

	rm -f "$scratch"/{err,json}
	timeout "$limit_s" "$rdmabox" bench --pool "$address" --fabric verbs \
		--insecure --volume 2M --op mix:50 --pattern rand --runtime 7 \
		--warmup 0 --verify --progress --json "$scratch/json" \
		>"$scratch/out" 2>"$scratch/err" &
	bench=$!
	server_pids+=("$bench")
	for ((tenths = 0; tenths < 600; tenths++)); do
		grep -qs measure "$scratch/err" && break
		sleep 0.1
	done
	kill -STOP "$pid"
	sleep "$1"
	kill -CONT "$pid"
	wait "$bench"
	status=$?
	[ "$status" != 124 ] || { show; fault "stopped for $1 s: bench hangs"; }
	cp "$scratch/json" "$scratch/out" || { show; fault "stopped for $1 s: no result"; }
	[ "$(key verify_errors)" = 0 ] || fault "stopped for $1 s: wrong blocks"
}

start_verbs_server --memory 16M --insecure

# The stop is longer than the silence that a client takes for a failure, half the
# peer timeout of 5 s, and ends before the client gives up. A machine that is very
# slow may miss that moment, with errors: then once more.
is_back=
for attempt in 1 2 3; do
	stop_under 3
	if [ "$status" = 0 ]; then
		grep -q ' is back$' "$scratch/server.0.err" && is_back=1
		break
	fi
	[ "$(key errors)" -gt 0 ] || { show; fault "exit code $status without errors"; }
done
[ -n "$is_back" ] || { show; cat "$scratch/server.0.err"; fault "no session was resumed"; }
pass "stopped for 3 s: the session is resumed, and no request fails (attempt $attempt)"

# Beyond the peer timeout of 5 s, and half of its lease, since it alone has what it
# has, the server counts as dead.
start_verbs_server --memory 16M --lease 8000 --insecure
stop_under 10
[ "$status" = 1 ] || { show; fault "stopped for 10 s: exit code $status"; }
[ "$(key errors)" -gt 0 ] || fault "stopped for 10 s: no errors"
pass "stopped for 10 s: ends with errors, and with no junk"

# Whatever became of those clients, the server serves the next one.
expect_success bench --pool "$address" --fabric verbs --insecure --volume 2M \
	--runtime 0.3 --warmup 0 --verify --json -
expect_sound "afterwards"
pass "the server serves the next client"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# examples/ping and examples/one-sided: two programs find each other without a server,
# and say so if they do not.

. "$(dirname "$0")/rdmabox.sh"

# listen EXAMPLE - in the background; sets address and pid
listen()
{
	: >"$scratch/listener" # nothing of the one before
	"$build/examples/$1" --listen "${RBX_TEST_LISTEN:-127.0.0.1:0}" >"$scratch/listener" 2>"$scratch/listener.err" &
	pid=$!
	server_pids+=("$pid")
	address=
	for ((attempt = 0; attempt < 600 && ${#address} == 0; attempt++)); do
		address=$(awk '/^listening on/ { print $3; exit }' "$scratch/listener")
		sleep 0.05
	done
	[ -n "$address" ] || { cat "$scratch/listener.err" >&2; fault "$1 does not listen"; }
}

# run_example EXAMPLE ARGUMENT... - sets status
run_example()
{
	timeout "$limit_s" "$build/examples/$1" "${@:2}" >"$scratch/out" 2>"$scratch/err"
	status=$?
}

listen ping
run_example ping "$address"
[ "$status" = 0 ] || { show; fault "ping: exit code $status"; }
grep -q '^1000 pings to .* there and back$' "$scratch/out" || { show; fault "no thousand pings"; }
wait "$pid" || { cat "$scratch/listener.err" >&2; fault "who is pinged ends with $?"; }

listen one-sided
run_example one-sided "$address"
[ "$status" = 0 ] || { show; fault "one-sided: exit code $status"; }
wait "$pid" || { cat "$scratch/listener.err" >&2; fault "who lends ends with $?"; }
grep -q '^6 bytes came, and the number 42: hello$' "$scratch/listener" ||
	{ cat "$scratch/listener" >&2; fault "something else came"; }
grep -q 'still it says: hello$' "$scratch/listener" || fault "the memory was written to afterwards"

run_example ping "$address"
[ "$status" = 1 ] || { show; fault "nobody listens: exit code $status, not 1"; }
[ "$(wc -l <"$scratch/err")" = 1 ] || { show; fault "not in one line"; }
run_example ping
[ "$status" = 2 ] || { show; fault "without an address: exit code $status, not 2"; }

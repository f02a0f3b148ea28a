#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# examples/messages: two programs talk through the session that a server and its
# client have anyway; where nobody listens, or nobody is, that is said.

. "$(dirname "$0")/rdmabox.sh"

# messages ARGUMENT... - sets status, and leaves $scratch/out and err
messages()
{
	timeout "$limit_s" "$build/examples/messages" "$@" >"$scratch/out" 2>"$scratch/err"
	status=$?
}

"$build/examples/messages" serve 127.0.0.1:0 >"$scratch/server" 2>"$scratch/server.err" &
pid=$!
server_pids+=("$pid")
address=
for ((attempt = 0; attempt < 600 && ${#address} == 0; attempt++)); do
	address=$(awk '/^ready/ { print $2; exit }' "$scratch/server")
	sleep 0.05
done
[ -n "$address" ] || { cat "$scratch/server.err" >&2; fault "the server does not get ready"; }

messages play "$address" 1000
[ "$status" = 0 ] || { show; fault "exit code $status"; }
grep -q '^1000 there and back' "$scratch/out" || { show; fault "not a thousand times"; }
expect_success stat --server "$address" --json
[ "$(key messages_received)" = 1000 ] || fault "heard $(key messages_received) of 1000"
[ "$(key messages_sent)" = 1000 ] || fault "said $(key messages_sent) of 1000"
kill -TERM "$pid"
wait "$pid" || fault "the server ends with $? after SIGTERM"

messages play "$address" 1
[ "$status" = 2 ] || { show; fault "without server: exit code $status, not 2"; }

# It lends memory and has no message handler.
start_server --memory 64M --slab 4M
messages play "$address" 1
[ "$status" = 1 ] || { show; fault "nobody listens: exit code $status, not 1"; }
grep -q 'Operation not supported' "$scratch/err" || { show; fault "does not say why"; }

messages play "$address"
[ "$status" = 2 ] || { show; fault "without a number: exit code $status, not 2"; }

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# nbdkit is told to end while requests are in flight: it ends, the client hears of it, and
# the servers have their memory back. In the background it does the same, and opens its
# volume only there.

. "$(dirname "$0")/nbdkit.sh"
needs_fio_nbd
need nbdcopy

start_server --memory 128M --slab 4M

start_nbdkit "$address" size=64M
fio_nbd --size=64M --bs=16k --rw=randrw --iodepth=16 --time_based --runtime=60 \
	--verify_backlog=64 &
load=$!
server_pids+=("$load")
sleep 1
kill -0 "$load" || { show; fault "the load is over already"; }
stop_nbdkit
[ "$status" = 0 ] || { cat "$nbdkit_log"; fault "nbdkit: exit code $status"; }
# The client has lost its connection; what it does about that is its own affair.
kill -TERM "$load" 2>/dev/null
wait "$load"
! grep -q 'verify: bad' "$scratch/out" "$scratch/err" || { show; fault "junk was read"; }
[ "$(lent "$address")" = 0 ] || fault "$(lent "$address") bytes still lent"

# In the background: nbdkit is there when the command returns.
socket=$scratch/background
uri="nbd+unix:///?socket=$socket"
nbdkit_log=$scratch/background.log
"${preload[@]}" nbdkit --unix "$socket" --pidfile "$socket.pid" "$plugin" "$address" size=64M \
	>"$nbdkit_log" 2>&1 </dev/null || { cat "$nbdkit_log"; fault "exit code $?"; }
until [ -s "$socket.pid" ]; do sleep 0.05; done # it may be there before its number is
nbdkit_pid=$(cat "$socket.pid")
server_pids+=("$nbdkit_pid")
head -c 64M /dev/urandom >"$scratch/image"
good nbdcopy "$scratch/image" "$uri"
good nbdcopy "$uri" "$scratch/back"
cmp "$scratch/image" "$scratch/back" || fault "in the background: something else comes back"
kill -TERM "$nbdkit_pid"
for ((attempt = 0; attempt < 600; attempt++)); do
	kill -0 "$nbdkit_pid" 2>/dev/null || break
	sleep 0.05
done
[ "$attempt" != 600 ] || fault "in the background: nbdkit does not end"
[ "$(lent "$address")" = 0 ] || fault "in the background: bytes still lent"

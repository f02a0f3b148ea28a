#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A named volume: what was copied to it through an nbdkit that was killed, another one and the
# command read; it has its own length, and what cannot be done is refused with cause and fix.

. "$(dirname "$0")/nbdkit.sh"
need nbdcopy nbdinfo

start_server --memory 64M --slab 4M
one=$address
start_server --memory 64M --slab 4M
servers=$one,$address
expect_success volume create disk --size 32M --pool "$servers"
head -c 32M /dev/urandom >"$scratch/image"

start_nbdkit "$servers" name=disk
good nbdinfo "$uri"
for wanted in 'export-size: 33554432' 'can_multi_conn: true' 'can_trim: false'; do
	grep -q "$wanted" "$scratch/out" || { show; fault "nbdinfo does not say $wanted"; }
done
good nbdcopy --connections=4 "$scratch/image" "$uri"

# refused PATTERN PARAMETER... - in the foreground, before anything is served
refused()
{
	timeout "$limit_s" "${preload[@]}" nbdkit --unix "$scratch/none.socket" \
		--pidfile "$scratch/none.pid" "$plugin" "${@:2}" >"$scratch/out" 2>"$scratch/err" \
		</dev/null
	status=$?
	[ ! -s "$scratch/none.pid" ] || server_pids+=("$(cat "$scratch/none.pid")")
	[ "$status" = 1 ] || { show; fault "nbdkit ${*:2}: exit code $status, not 1"; }
	grep -qE -- "nbdkit: .*($1)" "$scratch/err" ||
		{ show; fault "nbdkit ${*:2}: does not say $1"; }
	rm -f "$scratch/none.socket"
}

refused "volume disk is open by .*, process $nbdkit_pid; close it there, or give take-over=true" \
	"$servers" name=disk
kill -KILL "$nbdkit_pid"
wait "$nbdkit_pid"

# The next one takes it, and finds all of it; the command finds the same.
start_nbdkit "$servers" name=disk take-over=true
good nbdcopy "$uri" "$scratch/back"
cmp "$scratch/image" "$scratch/back" || fault "the next nbdkit reads something else"
tac --separator=a "$scratch/image" >"$scratch/other"
truncate -s 32M "$scratch/other"
good nbdcopy "$scratch/other" "$uri"
stop_nbdkit
[ "$status" = 0 ] || fault "nbdkit: exit code $status"
expect_success volume export disk "$scratch/copy" --pool "$servers"
cmp "$scratch/other" "$scratch/copy" || fault "the command reads something else"
expect_success volume grow disk --size 40M --pool "$servers"
start_nbdkit "$servers" name=disk
good nbdinfo --size "$uri"
[ "$(cat "$scratch/out")" = 41943040 ] || { show; fault "it did not grow"; }
stop_nbdkit

refused 'there is no volume none on these servers' "$servers" name=none
refused 'cannot have the name' "$servers" 'name=a b'
refused 'name and size exclude each other' "$servers" name=disk size=32M
for parameter in replicas=2 checksums=true on-demand=true; do
	refused 'name goes with neither replicas nor checksums nor on-demand' "$servers" \
		name=disk "$parameter"
done
refused 'take-over=true needs name=' "$servers" size=32M take-over=true
refused 'Give size=, or name=' "$servers"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server of a named volume with replicas dies while no program has the volume open, or together
# with the program: the next one opens it without that server, with all that was acknowledged, and
# the server is out from then on. But not if data may be lost with it, nor if it was only forgotten.

. "$(dirname "$0")/rdmabox.sh"

# The former writer is waited for, two leases: so the lease is short.
lease_ms=1000
servers=
addresses=()
for _ in 1 2 3 4; do
	start_server --memory 64M --slab 4M --lease $lease_ms
	servers+=${servers:+,}$address
	addresses+=("$address")
done
cd "$scratch" || exit 1

# others INDEX... - the addresses but for these
others()
{
	local i list=
	for i in "${!addresses[@]}"; do
		[[ " $* " == *" $i "* ]] || list+=${list:+,}${addresses[i]}
	done
	echo "$list"
}

# expect_contents FILE OPTION... - of volume db, by two programs
expect_contents()
{
	expect_success volume export db copy --pool "$servers" "${@:2}"
	cmp "$1" copy || fault "other contents"
	expect_success volume export db copy --pool "$servers"
	cmp "$1" copy || fault "other contents for the second program"
}

head -c 16M /dev/urandom >data
expect_success volume create db --size 16M --replicas 2 --pool "$servers"
expect_success volume import db data --pool "$servers"

# ---- it was forgotten -------------------------------------------------------------------------

expect_refusal 'name all of them' volume export db copy --pool "$(others 3)"

# ---- it dies while nobody has the volume open -----------------------------------------------------

kill -KILL "${server_pids[3]}"
expect_refusal 'name all of them' volume export db copy --pool "$(others 3)"
expect_contents data
[ "$(shown servers_out "$(others 3)")" = 1 ] || fault "the dead server is not out"
# It does not stand for another one that was forgotten.
expect_refusal 'name all of them|lacks 1 of its servers' volume export db copy --pool "$(others 2)"

# ---- it dies together with the program -------------------------------------------------------------

"$rdmabox" bench --pool "$(others 3)" --volume-name db --op write --runtime 60 >bench.out 2>&1 &
writer=$!
until [ "$(shown is_open "$(others 3)")" = True ]; do
	kill -0 $writer || { cat bench.out; fault "the bench has ended"; }
done
until [ "$(shown copies "$(others 3)")" = 2 ]; do
	kill -0 $writer || { cat bench.out; fault "the bench has ended"; }
done
expect_success pool status "$(others 3)"
grep -qE '^db +16 MiB +2 of 2 ' out || { show; fault "pool status does not tell the copies"; }
kill -KILL $writer "${server_pids[2]}"
wait $writer
start_ns=$(date +%s%N)
expect_success volume export db first --take-over --pool "$servers"
waited_ms=$((($(date +%s%N) - start_ns) / 1000000))
[ $waited_ms -ge $((lease_ms * 2)) ] ||
	fault "the former writer may have gone on reading: waited $waited_ms ms"
grep -q '^rdmabox volume: opening: 0 slabs, servers are missing' err ||
	{ show; fault "does not tell what it waits for"; }
expect_contents first

# ---- data may be lost, or another program may have it -----------------------------------------------

kill -KILL "${server_pids[1]}"
run volume export db copy --pool "$servers"
[ "$status" = 1 ] || [ "$status" = 2 ] || { show; fault "opened without servers that it needs"; }
grep -q take-over err && { show; fault "nobody has it open, and --take-over is told of"; }
grep -qE 'lacks 1 of its servers|too few of its servers' err ||
	{ show; fault "does not say what it needs"; }

# ---- it dies together with the program, and is there again as an empty one ---------------------------

# again INDEX - kills a server, and starts an empty one at its address
again()
{
	kill -KILL "${server_pids[$1]}" 2>/dev/null
	wait "${server_pids[$1]}" 2>/dev/null
	start_server --listen "${addresses[$1]}" --memory 64M --slab 4M --lease 2500
	server_pids[$1]=$pid
}

# The former one at the address of each was not out when the program died, and those that are out stay
# in the record. Who comes next knows by the pool that nobody is forgotten.
for i in "${!addresses[@]}"; do
	again "$i"
	echo "${addresses[i]}" >>pool
done
servers=file:pool
expect_success volume create db --size 16M --replicas 2 --pool $servers
expect_success volume import db data --pool $servers
for i in 3 2; do
	"$rdmabox" bench --pool $servers --volume-name db --op read --runtime 60 >bench.out 2>&1 &
	writer=$!
	until [ "$(shown is_open $servers)" = True ] && [ "$(shown copies $servers)" = 2 ] &&
		[ "$(grep -c '"state": "in"' out)" = 4 ]; do
		kill -0 $writer || { cat bench.out; fault "the bench has ended"; }
	done
	kill -KILL $writer
	again "$i"
	wait $writer
	expect_success volume export db copy --pool $servers --take-over
	cmp data copy || fault "other contents, with an empty server $i"
done

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A named volume with replicas survives its servers: one that falls silent while a program writes
# is out, and nothing of what it missed is ever read from it, also if it comes back; one that dies
# is not needed any more.

. "$(dirname "$0")/rdmabox.sh"

# So many slabs that each server has some of each half.
servers=
addresses=()
for _ in 1 2 3; do
	start_server --memory 64M --slab 1M --lease 2000
	servers+=${servers:+,}$address
	addresses+=("$address")
done
others=${addresses[1]},${addresses[2]}
cd "$scratch" || exit 1

volume()
{
	expect_success volume "$@" --pool "$servers"
}

# import_over FILE COMMAND... - the file is written, and the command is run half way
import_over()
{
	local file=$1 half writer

	half=$(($(stat -c %s "$file") / 2))
	mkfifo pipe
	timeout "$limit_s" "$rdmabox" volume import db - --pool "$servers" --take-over \
		<pipe >import.out 2>import.err &
	writer=$!
	exec 5>pipe
	rm pipe
	head -c $half "$file" >&5
	"${@:2}"
	tail -c +$((half + 1)) "$file" >&5
	exec 5>&-
	wait "$writer" || { cat import.err >&2; fault "the import failed"; }
}

# ---- made ------------------------------------------------------------------------------------

for count in 0 4 x; do
	expect_refusal '--replicas' volume create db --size 16M --replicas $count --pool "$servers"
done
expect_refusal '2 replicas need as many servers, but 1 is given' \
	volume create db --size 16M --replicas 2 --pool "${addresses[0]}"
volume create db --size 16M --replicas 2
[ "$(shown replicas "$servers")" = 2 ] || fault "it has no replicas"
for i in 1 2 3; do
	head -c 16M /dev/urandom >data$i
done
volume import db data1
volume export db copy
cmp data1 copy || fault "other contents"

# ---- a server falls silent, and comes back --------------------------------------------------------

import_over data2 kill -STOP "${server_pids[0]}"
[ "$(shown servers_out "$others")" = 1 ] || fault "the silent server is not out"
expect_success volume export db copy --pool "$others"
cmp data2 copy || fault "other contents without the silent server"
kill -CONT "${server_pids[0]}"
volume export db copy
cmp data2 copy || fault "what the silent server has missed was read from it"
[ "$(shown servers_out "$servers")" = 0 ] || fault "the server that is back is still out"

# ---- a server dies, and the writer after it ----------------------------------------------------

# Before, a slab may have one copy, as the server has just returned: then none of the three can be
# done without, and the next open says so.
end_when_whole()
{
	until [ "$(shown is_whole "$servers")" = True ]; do
		sleep 0.1
	done
	kill -KILL "${server_pids[0]}"
}

import_over data3 end_when_whole
volume export db copy
cmp data3 copy || fault "other contents without the dead server"
[ "$(shown servers_there "$others")" = 2 ] && [ "$(shown servers_out "$others")" = 1 ] ||
	fault "the dead server is not out"
"$rdmabox" bench --pool "$others" --volume-name db --op write --runtime 60 >bench.out 2>&1 &
writer=$!
until [ "$(shown is_open "$others")" = True ]; do
	kill -0 $writer || { cat bench.out; fault "the bench has ended"; }
done
kill -KILL $writer
wait $writer
expect_success volume export db copy --take-over --pool "$others"
expect_success volume export db again --pool "$others"
cmp copy again || fault "a second program reads something else"

# ---- the last servers -------------------------------------------------------------------------

kill -KILL "${server_pids[1]}"
run volume export db copy --pool "$others"
[ "$status" = 1 ] || [ "$status" = 2 ] || { show; fault "opened without a server that it needs"; }
grep -qE 'lacks 1 of its servers|too few of its servers' err || { show; fault "does not say what it needs"; }
expect_refusal 'too few are left to remove it; --force' volume remove db --pool "${addresses[2]}"
expect_success volume remove db --force --pool "${addresses[2]}"
expect_success volume list --json --pool "${addresses[2]}"
[ "$(key volumes)" = '[]' ] || { show; fault "the volume is still there"; }

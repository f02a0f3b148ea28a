#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `is_whole` of rdmabox volume show is what an operator waits for before the next server is
# restarted: it is never said of a volume whose program has yet to find out about the last one.

. "$(dirname "$0")/rdmabox.sh"

memory=$(mktemp -d /dev/shm/rdmabox-cli.XXXXXX) || exit 1
leftovers+=("$memory")
cd "$scratch" || exit 1

# start INDEX ADDRESS
start()
{
	start_server --listen "$2" --memory 32M --slab 4M --memory-file "$memory/$1"
	addresses[$1]=$address
	pids[$1]=$pid
}

# end INDEX - without warning
end()
{
	kill -KILL "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null
}

# whole SERVERS - is it whole, how many servers are there, how many are out, and the copies
whole()
{
	expect_success volume show db --json --pool "$1"
	echo "$(key is_whole) $(key servers_there) $(key servers_out) $(key copies)"
}

# expect_shown TEXT SERVERS WHEN
expect_shown()
{
	local text
	text=$(whole "$2") || exit 1
	[ "$text" = "$1" ] || { show; fault "$3: $text, not $1"; }
}

# bench_runs - for a moment
bench_runs()
{
	kill -0 "$writer" || { cat bench.out; fault "the bench has ended"; }
	sleep 0.1
}

# become TEXT SERVERS - while the bench runs, which ends by itself. That it is whole may be true
# before a server is in use again, as the others have made all copies.
become()
{
	until [ "$(whole "$2")" = "$1" ]; do
		bench_runs
	done
}

addresses=()
pids=()
for i in 0 1 2; do
	start $i $host:0
done
all=${addresses[0]},${addresses[1]},${addresses[2]}
others=${addresses[1]},${addresses[2]}
expect_success volume create db --size 16M --replicas 2 --pool "$all"
head -c 16M /dev/urandom >data
expect_success volume import db data --pool "$all"
expect_shown 'True 3 0 2' "$all" "nobody has it open"
expect_shown 'False 2 0 2' "$others" "a server is not asked"

"$rdmabox" bench --pool "$all" --volume-name db --op write --runtime 60 --progress >bench.out 2>&1 &
writer=$!
until grep -q requests/s bench.out; do
	bench_runs
done
become 'True 3 0 2' "$all"

# The record is that of before the restart, as its writer does nothing.
kill -STOP $writer
end 0
expect_shown 'False 2 0 2' "$others" "a server was killed"
start 0 "${addresses[0]}"
expect_shown 'False 3 0 2' "$all" "a server was restarted"
kill -CONT $writer
become 'True 3 0 2' "$all"

# One is out and stays so, and all is at the others.
end 0
become 'True 2 1 2' "$others"
end 1
become 'False 1 2 1' "${addresses[2]}"
kill -KILL $writer

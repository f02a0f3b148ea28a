#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox volume remove: a volume that was removed never comes back, whatever its servers were doing
# meanwhile, and its name and memory are free.

. "$(dirname "$0")/rdmabox.sh"

cd "$scratch" || exit 1
memory=$(mktemp -d /dev/shm/rdmabox-cli.XXXXXX) || exit 1
leftovers+=("$memory")
options=(--memory 16M --slab 1M --lease 5000)
start_server "${options[@]}"
one=$address
start_server "${options[@]}"
two=$address
start_server "${options[@]}" --memory-file "$memory/three"
three=$address
three_pid=$pid
all=$one,$two,$three

# volume SERVERS COMMAND... - must succeed
volume()
{
	expect_success volume "${@:2}" --pool "$1"
}

# three_dies, three_returns
three_dies()
{
	kill -KILL "$three_pid"
	wait "$three_pid" 2>/dev/null
}

three_returns()
{
	local former=$three

	start_server "${options[@]}" --memory-file "$memory/three" --listen "$three"
	[ "$address" = "$former" ] || fault "it has another address"
	three_pid=$pid
}

# made - a volume at all servers, with data
made()
{
	volume "$all" create db --size 4M --replicas 2 --reserve
	volume "$all" list
	[ "$(wc -l <out)" = 2 ] && grep -q '^db .* 3/3 ' out || { show; fault "not one volume on 3 servers"; }
}

# nothing_is_left - at any server
nothing_is_left()
{
	local each attempt

	for each in "$one" "$two" "$three"; do
		for ((attempt = 0; attempt < 20 * limit_s; attempt++)); do
			expect_success stat "$each" --json
			[ "$(key lent_bytes)" != 0 ] || continue 2
			sleep 0.05 # it is emptied
		done
		fault "server $each has not got its memory back"
	done
	volume "$all" list
	[ ! -s out ] || { show; fault "there is a volume"; }
}

# ---- A server was away --------------------------------------------------------------------

made
three_dies
volume "$one,$two" remove db
three_returns
volume "$three" list # it alone has not heard of it
grep -q '^db ' out || { show; fault "a server has forgotten a volume by itself"; }
volume "$all" list
[ ! -s out ] || { show; fault "the server that was away still has the volume"; }
nothing_is_left

# It is named before the others.
made
three_dies
volume "$one,$two" remove db
three_returns
volume "$three,$one,$two" list
[ ! -s out ] || { show; fault "the server that was away still has the volume"; }
nothing_is_left

# It does not know of a server that the volume got later, and that is named first.
start_server "${options[@]}"
later=$address
volume "$all" create db --size 4M --replicas 2
three_dies
volume "$all" export db /dev/null # three is out
volume "$one,$two" add-server db "$later"
volume "$one,$two,$later" remove db
three_returns
volume "$later,$three,$one" list
[ ! -s out ] || { show; fault "the server that was away still has the volume"; }
nothing_is_left

# Its name is that of another volume meanwhile.
made
three_dies
volume "$one,$two" remove db
volume "$one,$two" create db --size 1M
three_returns
volume "$all" export db /dev/null
expect_success volume show db --json --pool "$all"
[ "$(key servers)" = 2 ] || { show; fault "it is not the new volume"; }
volume "$all" remove db
nothing_is_left

# Its name is wanted.
made
three_dies
volume "$one,$two" remove db
three_returns
made
volume "$all" remove db
nothing_is_left

# ---- Too few servers ----------------------------------------------------------------------

made
expect_refusal '2 of them are away, .* too few are left to remove it; --force removes it all the same' \
	volume remove db --pool "$one"
volume "$all" export db /dev/null
volume "$one" remove db --force
for command in 'export db none' 'grow db --size 8M' 'rename db other' "remove-server db $one" 'scrub db'; do
	# shellcheck disable=SC2086 # words
	expect_refusal 'there is no volume db on these servers' volume $command --pool "$all"
done
nothing_is_left

# One server has removed it, and the others went on under later epochs before anybody heard of that.
head -c 4M /dev/urandom >data
volume "$all" create db --size 4M --replicas 2
volume "$all" import db data
volume "$one" remove db --force
volume "$two,$three" grow db --size 5M
volume "$two,$three" grow db --size 6M
volume "$all" export db back
cmp -n 4194304 data back || fault "the volume has other data"
volume "$all" remove db
nothing_is_left

# A server that is out has no say in it, though it is removed there in a later epoch.
volume "$all" create db --size 4M --replicas 2
"$rdmabox" bench --pool "$all" --volume-name db --op write --runtime 60 >bench.out 2>&1 &
writer=$!
until expect_success volume show db --json --pool "$all" && [ "$(key is_open)" = True ]; do
	kill -0 $writer || { cat bench.out; fault "the bench has ended"; }
done
three_dies
until expect_success volume show db --json --pool "$one,$two" && [ "$(key servers_out)" = 1 ]; do
	kill -0 $writer || { cat bench.out; fault "the bench has ended before the server was out"; }
done
kill -INT $writer
wait $writer
three_returns
volume "$three" remove db --force
volume "$all" import db data
volume "$all" export db back
cmp data back || fault "the volume has other data"
volume "$all" remove db
nothing_is_left

# What one server knows, it knows also when it is started again; and it is enough.
made
volume "$three" remove db --force
three_dies
three_returns
expect_success stat "$three" --json
[ "$(key lent_bytes)" = 0 ] || fault "what was removed is in the memory file"
volume "$all" list
nothing_is_left

# Of a volume that was removed too little is left to finish that, and another one has its name: it
# is found, and is not what --force removes.
start_server "${options[@]}"
four=$address
four_pid=$pid
start_server "${options[@]}"
five=$address
five_pid=$pid
volume "$all,$four,$five" create db --size 4M --replicas 2
three_dies
volume "$one,$two,$four,$five" remove db
kill -KILL "$four_pid" "$five_pid"
wait "$four_pid" "$five_pid" 2>/dev/null
volume "$one" create db --size 1M
three_returns
volume "$one,$three" export db data
[ "$(stat -c %s data)" = 1048576 ] || fault "it is not the new volume"
volume "$one,$three" remove db --force
volume "$one,$three" list
[ "$(wc -l <out)" = 2 ] && grep -q '^db .* 1/1 ' out || { show; fault "the new volume was removed"; }
volume "$one,$three" remove db
nothing_is_left

# ---- Killed -------------------------------------------------------------------------------

expect_refusal 'there is no volume db' volume remove db --pool "$all"
made
"$rdmabox" bench --pool "$all" --volume-name db --op write --runtime 60 >bench.out 2>&1 &
writer=$!
until expect_success volume show db --json --pool "$all" && [ "$(key is_open)" = True ]; do
	kill -0 $writer || { cat bench.out; fault "the bench has ended"; }
done
expect_refusal 'is open by .*; --force removes it all the same' volume remove db --pool "$all"
kill -KILL $writer
wait $writer 2>/dev/null
expect_refusal 'is open by .*; --force removes it all the same' volume remove db --pool "$all"
volume "$all" remove db --force
nothing_is_left

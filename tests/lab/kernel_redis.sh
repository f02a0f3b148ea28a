#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Redis with a half and a quarter of its memory, the rest in the memory of servers,
# under its own benchmark. A server dies in the middle: with a second replica, or a
# disk behind the device, Redis does not notice, and each key is what it was set to;
# with neither it is ended, and the machine goes on.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

keys=4000
peer_timeout_ms=8000
group=/sys/fs/cgroup/redis
redis_cli=(redis-cli -s "$scratch/redis")

# What the benchmark does; a write is of the byte behind the value of start_redis().
reads=(GET key:__rand_int__)
writes=(SETRANGE key:__rand_int__ 1000 x)

# Its program would be a part of what is limited, and come from the host again and
# again, if it were not in the page cache before, for all. Huge pages would make
# memory that nobody uses a part of what it has.
program=$(command -v redis-server)
ldd "$program" | grep -o '/[^ ]*' | xargs cat "$program" >/dev/null
echo never >/sys/kernel/mm/transparent_hugepage/enabled
mkdir "$group"
echo +memory >/sys/fs/cgroup/cgroup.subtree_control

# start_redis - with its keys, each with a value of its own; sets redis
start_redis()
{
	echo max >"$group/memory.max"
	# shellcheck disable=SC2016 # expanded there
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		redis-server --port 0 --unixsocket "$scratch/redis" --dir "$scratch" \
		--save "" --appendonly no --crash-log-enabled no >"$scratch/redis.out" &
	redis=$!
	server_pids+=("$redis")
	eventually is_answering || { cat "$scratch/redis.out" >&2; fault "no Redis"; }
	eval_keys 'redis.call("SET", key, value .. "-")' >/dev/null
	used_bytes=$(<"$group/memory.current")
}

is_answering()
{
	[ "$("${redis_cli[@]}" ping 2>/dev/null)" = PONG ]
}

# eval_keys LUA - for each key and its value; prints what it counts
eval_keys()
{
	"${redis_cli[@]}" eval '
		local count = 0
		for i = 1, ARGV[1] do
			local key = string.format("key:%012d", i - 1)
			local value = string.rep(redis.sha1hex(i), 25)
			'"$1"'
		end
		return count' 0 $keys
}

# leave PERCENT - of what it used. By asking for memory back until it is there: a limit
# far below what is used at the time is enforced by killing.
leave()
{
	local limit_bytes=$((used_bytes * $1 / 100)) attempt now

	for ((attempt = 0; attempt < 100; attempt++)); do
		now=$(<"$group/memory.current")
		[ "$now" -gt "$limit_bytes" ] || break
		echo $((now - limit_bytes)) 2>/dev/null >"$group/memory.reclaim"
	done
	echo $limit_bytes >"$group/memory.max"
}

# start_benchmark REQUESTS COMMAND... - of keys at random; sets load
start_benchmark()
{
	swapped_before=$(swapped in)
	timeout "$limit_s" redis-benchmark -s "$scratch/redis" -c 8 -n "$1" -r $keys --csv \
		"${@:2}" >"$scratch/benchmark" 2>&1 &
	load=$!
	server_pids+=("$load")
}

has_swapped_in()
{
	[ $(($(swapped in) - swapped_before)) -gt 50 ]
}

# kill_in_the_middle PID - of the benchmark, when memory came back from there
kill_in_the_middle()
{
	# Looked at often: where paging is quick a tenth of a second is much of a benchmark.
	while ! has_swapped_in; do
		kill -0 "$load" || fault "the benchmark was over before"
		sleep 0.01
	done
	kill -KILL "$1"
}

# end_benchmark - all was answered, and nothing waited for longer than a dead server may take
end_benchmark()
{
	wait "$load" || { cat "$scratch/benchmark"; fault "redis-benchmark fails"; }
	slowest_ms=$(awk -F '"' 'END { print int($16) }' "$scratch/benchmark")
	[ "$slowest_ms" -lt "$peer_timeout_ms" ] || { cat "$scratch/benchmark"; fault "$slowest_ms ms"; }
}

# is_sound WHEN - each key has its value, and behind it what the benchmark may have put
is_sound()
{
	local wrong

	wrong=$(eval_keys '
		local found = redis.call("GET", key)
		if found ~= value .. "-" and found ~= value .. "x" then
			count = count + 1
		end')
	[ "$wrong" = 0 ] || fault "$1: $wrong keys are wrong"
	grep -qx 'oom_kill 0' "$group/memory.events" || fault "$1: something was killed"
}

# swap_on SERVERS [OPTION=VALUE]...
swap_on()
{
	attach "$1" 32 on_demand=0 peer_timeout_ms=$peer_timeout_ms "${@:2}"
	mkswap "$device" >/dev/null && swapon -p 10 "$device" || fault "no swap on $device"
}

swap_off()
{
	wait "$redis"
	swapoff "$device" || fault "swapoff"
	detach
}

load_block_modules
modprobe brd rd_nr=1 rd_size=32768 || fault "no disk"
start_verbs_server --memory 32M --insecure
one=$address
start_verbs_server --memory 32M --insecure
two=$address
second=$pid

# ---- two replicas --------------------------------------------------------------------
swap_on "$one,$two" replicas=2
start_redis
leave 50
start_benchmark 300 "${reads[@]}"
end_benchmark
leave 25
start_benchmark 1000 "${writes[@]}"
kill_in_the_middle "$second"
end_benchmark
[ "$(number servers_up)" = 1 ] || fault "$(number servers_up) servers are up"
is_sound "a quarter of its memory"
"${redis_cli[@]}" shutdown nosave
swap_off
pass "with a quarter of its memory Redis loses no key, though a server dies ($slowest_ms ms at most)"

# ---- a disk behind -------------------------------------------------------------------
start_verbs_server --memory 32M --insecure
swap_on "$address" backup=/dev/ram0
start_redis
leave 25
start_benchmark 1000 "${writes[@]}"
kill_in_the_middle "$pid"
end_benchmark
[ "$(number servers_up)" = 0 ] && reaches backup_reads 1 || fault "the server was not missed"
is_sound "a disk"
"${redis_cli[@]}" shutdown nosave
swap_off
pass "with a disk behind the device, too, when the only server dies ($slowest_ms ms at most)"

# ---- neither -------------------------------------------------------------------------
start_verbs_server --memory 32M --insecure
swap_on "$address"
start_redis
leave 25
start_benchmark 1000 "${writes[@]}"
kill_in_the_middle "$pid"
wait "$redis"
status=$?
[ "$status" = 135 ] || fault "Redis ends with $status, not by SIGBUS"
swap_off
pass "with neither Redis is ended, and the device goes"

rmdir "$group" || fault "something is left in $group"
rmmod brd rdmabox_block rdmabox || fault "the modules cannot be unloaded"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Servers ask for their memory back while a block device is in use: one whose machine
# runs short, and one that is told to stop. The slabs move to others, and the load
# finds what it wrote. And this machine's kernel keeps nothing of a volume that has gone.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

# available KIB - what the first server takes for its machine's memory: its own /proc/meminfo.
available()
{
	printf 'MemTotal: %d kB\nMemAvailable: %d kB\n' $((2048 << 10)) "$1" \
		>"$scratch/meminfo"
}

# start_short_server - one that reads $scratch/meminfo
start_short_server()
{
	cat >"$scratch/short" <<-EOT
	#!/bin/bash
	exec unshare --mount bash -c 'mount --bind "\$0" /proc/meminfo && exec "\$@"' \\
		"$scratch/meminfo" "$rdmabox" "\$@"
	EOT
	chmod +x "$scratch/short"
	rdmabox=$scratch/short start_verbs_server "${lends[@]}"
}

# KiB of kernel memory that only who took it gives back. What is free is returned first: to
# shrink a cache ends the quarantine in which KASAN keeps what was freed from it.
kernel_memory()
{
	local cache

	for cache in /sys/kernel/slab/*/shrink; do
		echo 1 >"$cache"
	done
	awk '/^(SUnreclaim|VmallocUsed|Percpu):/ { sum += $2 } END { print sum }' /proc/meminfo
}

# come_and_go TIMES
come_and_go()
{
	local i

	for ((i = 0; i < $1; i++)); do
		attach "$two" 8 checksums=1
		dd if=/dev/zero of="$device" bs=64k count=8 oflag=direct status=none
		detach
	done
}

# kept_less_than KIB - since kernel memory was so much as $before says
kept_less_than()
{
	kept=$(($(kernel_memory) - before))
	[ "$kept" -lt "$1" ]
}

slab_bytes=$((128 << 10))
lends=(--memory 16M --slab "$slab_bytes" --insecure)

load_block_modules
available $((1 << 20))
start_short_server
one=$address
short=$pid
short_log=$scratch/server.$((${#server_pids[@]} - 1)).err
start_verbs_server "${lends[@]}"
two=$address
start_verbs_server "${lends[@]}" --drain-timeout $((60 * slowness))
leaving=$pid
leaving_log=$scratch/server.$((${#server_pids[@]} - 1)).err

# A slow machine has less to do beside.
attach "$one,$two,$address" 16
keep 8
start_load moving --rw=randrw --bsrange=4k-64k --blockalign=4k --offset=8M --size=8M \
	--iodepth=$((16 / slowness)) --time_based --runtime=$((170 * slowness))
eventually reaches completions $((500 / slowness)) || fault "the load does not begin"
[ "$(number rebuilt_bytes)" = 0 ] || fault "slabs have moved before anybody asked"

# Half of the reserve is 16 MiB: one slab is too many, and after it the next one. Not several
# at once: what has not moved after ten seconds is taken, and each is the only copy.
available $(((16 << 10) - 1))
eventually reaches rebuilt_bytes $((1 << 20)) || fault "no slab was moved"
available $((1 << 20))
grep -q 'short of memory: asked for' "$short_log" || fault "nobody asked"
kill -0 "$short" || fault "the server is gone"
pass "a machine runs short: $(($(number rebuilt_bytes) / slab_bytes)) slabs have moved"

kill -TERM "$leaving"
eventually grep -q 'draining: nothing more is lent' "$leaving_log" || fault "no drain"
wait "$leaving" || fault "the server ends with $?"
! grep 'still lent' "$leaving_log" || fault "slabs were not given back"
pass "a server is told to stop, and ends when all slabs have moved"

[ "$(number slabs_lost)" = 0 ] || fault "$(number slabs_lost) slabs are lost"
eventually is_whole || fault "slabs are without a copy"
stop_load moving
is_kept || fault "what was moved is something else"
detach
pass "all that was written is there"

# What is kept is kept each time, so that what others take meanwhile does not count. Of each
# device that has queues of two types, blk-mq keeps one queue's kobject: 4 KiB.
bound=$((20 * 4 + 160))
come_and_go 5
for attempt in 1 2 3; do
	before=$(kernel_memory)
	come_and_go 20
	! eventually kept_less_than "$bound" || break
done
[ "$kept" -lt "$bound" ] || fault "20 volumes have gone, and $kept KiB are kept, three times"
pass "volumes come and go, and leave nothing of ours ($kept KiB of 20, attempt $attempt)"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

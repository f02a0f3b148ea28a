#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Whoever attaches or detaches is killed in the middle, while it waits for a thread or for
# a server; and threads are made so slowly that others come meanwhile. What was begun ends
# one way or the other, nothing is left over, and no other device waits for it.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"
# shellcheck source=cable.sh
. "$(dirname "$(readlink -f "$0")")/cable.sh"
# shellcheck source=faults.sh
. "$(dirname "$(readlink -f "$0")")/faults.sh"

load_block_modules
load_faults
lay_cable
device_address=$network.2 start_verbs_server --device rxe3 --memory 32M --insecure
far=$address
start_verbs_server --memory 32M --insecure
near=$address

# prepare NAME SERVERS - all but the attaching
prepare()
{
	volume=$volumes/$1
	mkdir "$volume"
	echo "$2" >"$volume/servers"
	echo $((4 << 20)) >"$volume/size"
	echo 1 >"$volume/insecure"
	echo 20000 >"$volume/peer_timeout_ms"
}

# write_attached 0|1 - in the background, by a task of its own; sets task
write_attached()
{
	bash -c 'echo "$1" >"$2/attached"' bash "$1" "$volume" \
		2>"$scratch/written" &
	task=$!
}

is_free()
{
	{ echo 0 >"$volume/attached"; } 2>/dev/null
}

# However far it came.
is_gone()
{
	eventually is_free || fault "$1: it cannot be detached"
	rmdir "$volume" || fault "$1: its directory stays"
}

# kill_it WHEN - the task of write_attached, and nothing stays
kill_it()
{
	kill -KILL "$task"
	wait "$task" 2>/dev/null
	inject clear
	is_gone "$1"
	[ ! -e /sys/block/rdmabox0 ] || fault "$1: its device stays"
}

# Who has the device is one who uses it: nobody is left.
takes_all()
{
	attach "$1" 32 on_demand=0
	keep 1
	is_kept || fault "something else is read than was written"
	detach
}

# ---- who attaches is killed ----------------------------------------------------------------
# Of the threads that an attach has made the first, the second, ...
for skip in 0 1 2 3 4; do
	prepare killed "$near"
	inject delay kthread_create_on_node '[rdmabox]' 1500 1 $skip
	write_attached 1
	eventually is_injected kthread_create_on_node 1 ||
		fault "no thread $skip is made: $(<"$faults")"
	kill_it "killed while thread $skip is made"
done
volume=$volumes/test
takes_all "$near"
pass "whoever attaches is killed while one of its threads is made, and nothing stays"

# ---- who detaches is killed ----------------------------------------------------------------
for function in rbx_volume_servers_leave rbx_session_close rbx_ib_conn_drain; do
	prepare killed "$near"
	echo 1 >"$volume/attached" || fault "cannot attach"
	inject delay "$function" '[rdmabox]' 1500 1
	write_attached 0
	eventually is_injected "$function" 1 || fault "$function is not asked: $(<"$faults")"
	kill_it "killed in $function"
done
volume=$volumes/test
takes_all "$near"
pass "whoever detaches is killed, and the device goes all the same"

# ---- threads are made slowly ---------------------------------------------------------------
# The first on a device makes the pollers of that. On another one it goes on meanwhile.
prepare other "$near"
echo 1 >"$volume/attached" || fault "cannot attach"
prepare slow "$far"
slow=$volume
inject delay kthread_create_on_node '[rdmabox]' 8000 1
write_attached 1
eventually is_injected kthread_create_on_node 1 || fault "no poller is made: $(<"$faults")"
prepare third "$near"
echo 1 >"$volume/attached" || fault "cannot attach beside one that is slow"
[ "$(<"$slow/attached")" = 0 ] || fault "an attach waits for the threads of another device"
echo 0 >"$volume/attached" || fault "cannot detach beside one that is slow"
rmdir "$volume"
[ "$(<"$slow/attached")" = 0 ] || fault "a detach waits for the threads of another device"
wait "$task" || { cat "$scratch/written"; fault "an attach whose threads come slowly fails"; }
inject clear
volume=$slow
is_gone "slow"
volume=$volumes/other
is_gone "other"
pass "a device whose threads are made slowly keeps nobody else waiting"

kill -KILL "${server_pids[@]}" 2>/dev/null
wait 2>/dev/null
remove_wire 2
rmmod rdmabox_faults rdmabox_block rdmabox || fault "the modules cannot be unloaded"

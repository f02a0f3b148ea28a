#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# One server of a volume is reached through rxe0, another one through rxe2. Either device goes under
# load: only the server behind it is down, and nothing is lost. Servers behind the other device are
# added, and members of a named volume come back there.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"
# shellcheck source=../../lab/guest/wire
. /host/lab/guest/wire

network=10.9.1
timeout_ms=$((3000 * slowness))

take_away()
{
	timeout 60 rdma link delete rxe2 || fault "the device cannot be deleted"
}

put_back()
{
	rdma link add rxe2 type rxe netdev veth2 || fault "the device cannot be added"
}

# start_here OPTION..., start_there OPTION... - a server behind rxe0, or behind rxe2. A program
# that has a device open keeps it, and librdmacm opens all that it finds; so rxe2 is away meanwhile.
start_here()
{
	device_address=10.9.0.1 start_verbs_server --device rxe0 --insecure "$@"
}

start_there()
{
	device_address=$network.2 start_verbs_server --device rxe3 --insecure "$@"
}

# server_is ADDRESS STATE
server_is()
{
	grep -q "^$1 $2 " "/sys/block/${device##*/}/rdmabox/servers"
}

load()
{
	start_load "$1" --rw=randrw --bsrange=4k-64k --blockalign=4k --iodepth=8 --offset=4M \
		--size=4M --time_based --runtime=$((120 * slowness))
	goes_on
}

goes_on()
{
	eventually reaches completions $(($(number completions) + 100)) || fault "no I/O ends"
}

# goes_and_comes SERVER - rxe2, behind which it is, under load
goes_and_comes()
{
	load away
	take_away
	eventually server_is "$1" away || fault "the server is not given up: $(cat /sys/block/*/rdmabox/servers)"
	goes_on
	is_kept || fault "what was written before is something else"
	put_back
	eventually server_is "$1" up || { dmesg | tail -n 20; fault "the server does not come back"; }
	eventually is_whole || fault "replicas are missing"
	goes_on
	take_away # and comes back in time
	put_back
	goes_on
	eventually server_is "$1" up || fault "the server is $(cat /sys/block/*/rdmabox/servers)"
	stop_load away
	is_kept || fault "what was written before is something else"
	[ "$(number slabs_lost)$(number slabs_holed)" = 00 ] || fault "slabs are lost"
	[ "$(number checksum_errors)" = 0 ] || fault "$(number checksum_errors) pages did not match"
}

# end_server ADDRESS
end_server()
{
	kill -KILL "${pids[$1]}"
	{ wait "${pids[$1]}"; } 2>/dev/null
}

declare -A pids
lay_wire 2 "$network"
load_block_modules
take_away
start_here --memory 12M
near=$address pids[$address]=$pid
start_here --memory 12M
near_too=$address pids[$address]=$pid
start_there --memory 12M
far=$address pids[$address]=$pid
for memory in 0 1; do
	start_there --memory 8M --memory-file "/dev/shm/memory$memory"
	members[memory]=$address pids[$address]=$pid
done
put_back

# ---- two from the beginning ------------------------------------------------------------------
# The device that goes is the first one of the volume: what was mapped for it alone goes with it.
attach "$far,$near" 8 replicas=2 peer_timeout_ms=$timeout_ms
keep 4
goes_and_comes "$far"
detach
pass "a device goes, and only the server behind it"

# ---- one more --------------------------------------------------------------------------------
attach "$near,$near_too" 8 replicas=2 peer_timeout_ms=$timeout_ms
keep 4
load more
expect_success page add-server --name test "$far"
goes_on
end_server "$near_too"
eventually server_is "$near_too" away || fault "a server that was killed is not missed"
eventually is_whole || fault "replicas are missing: $(cat /sys/block/*/rdmabox/servers)"
goes_on
end_server "$near"
eventually server_is "$near" away || fault "a server that was killed is not missed"
stop_load more
is_kept || fault "what was written before is something else"
[ "$(number slabs_lost)" = 0 ] || fault "slabs are lost"
detach
pass "a server behind another device is added under load, and is the last one that is left"

# ---- a member of a named volume --------------------------------------------------------------
attach_named()
{
	expect_success page attach --name test --volume db --pool "${members[0]},${members[1]}" \
		--insecure
	device=$(<"$scratch/out")
}

expect_success volume create db --size 6M --replicas 2 --checksums --fabric verbs --device rxe2 \
	--pool "${members[0]},${members[1]}" --insecure
attach_named
keep 3
end_server "${members[1]}"
eventually server_is "${members[1]}" away || fault "a server that was killed is not missed"
start_here --memory 8M --memory-file /dev/shm/memory1
members[1]=$address pids[$address]=$pid
expect_success page add-server --name test "${members[1]}"
eventually server_is "${members[1]}" up || fault "it is no member"
eventually is_whole || fault "replicas are missing: $(cat /sys/block/*/rdmabox/servers)"
is_kept || fault "what was written before is something else"
keep 3
expect_success page detach --name test
attach_named
is_kept || fault "what was written before is something else"
end_server "${members[0]}"
is_kept || fault "it is lost with one server of two"
[ "$(number checksum_errors)" = 0 ] || fault "$(number checksum_errors) pages did not match"
expect_success page detach --name test
pass "a member of a named volume comes back behind another device"

kill -KILL "${server_pids[@]}" 2>/dev/null
wait 2>/dev/null
remove_wire 2
rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The RDMA device goes under the load of two block devices, as when its driver is reset,
# and comes back as another one: they wait, and go on. When it stays away one without
# any other way ends its I/Os with errors. To take it away never takes long.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"
# shellcheck source=../../lab/guest/wire
. /host/lab/guest/wire

network=10.9.1
device_goes_ms=$((8000 * slowness)) # with all that is emulated here

# take_away - the device of the clients; it does not wait for them
take_away()
{
	local begin_ms=$(($(date +%s%N) / 1000000)) took_ms

	timeout 60 rdma link delete rxe2 || fault "the device cannot be deleted"
	took_ms=$(($(date +%s%N) / 1000000 - begin_ms))
	[ "$took_ms" -lt "$device_goes_ms" ] || fault "to delete the device took $took_ms ms"
}

put_back()
{
	rdma link add rxe2 type rxe netdev veth2 || fault "the device cannot be added"
}

lay_wire 2 "$network"
load_block_modules
# A program that has a device open keeps it, and librdmacm opens all that it finds.
take_away
for name in one two; do
	device_address=$network.2 start_verbs_server --device rxe3 --memory 64M --insecure
	servers=${servers:+$servers,}$address
done
put_back

# ---- it comes back -------------------------------------------------------------------
attach "$servers" 12 replicas=2 peer_timeout_ms=40000
keep 4
start_load back --rw=randrw --bsrange=4k-128k --blockalign=4k --iodepth=8 --offset=4M --size=8M \
	--time_based --runtime=$((120 * slowness))
for ((round = 0; round < 3; round++)); do
	eventually reaches completions $(($(number completions) + 100)) || fault "no I/O ends"
	take_away
	sleep $round
	put_back
done
eventually reaches completions $(($(number completions) + 100)) || { dmesg | tail -n 20; fault "no I/O ends any more"; }
[ "$(number slabs_lost)" = 0 ] || { dmesg; fault "slabs are lost"; }
stop_load back
is_kept || fault "what was written before is something else"
pass "a device goes and comes back three times under load: a pause, and no I/O fails"

# ---- nothing is under way ------------------------------------------------------------
take_away
put_back
is_kept || fault "what was written before is something else"
detach
pass "and while nothing is under way"

# ---- more queue pairs than one completion queue has room for -------------------------
# 96, in queues for 64 each, which the next device has as well.
for name in first second third; do
	volume=$volumes/$name
	attach "$servers" 4 replicas=2 queue_pairs=16 peer_timeout_ms=40000
	keep 1
done
take_away
put_back
is_kept || fault "what was written before is something else"
for name in first second third; do
	volume=$volumes/$name
	device=/dev/$(<"$volume/device")
	keep 1
	is_kept || fault "something else is read than was written"
	detach
done
volume=$volumes/test
pass "96 queue pairs, and the device goes and comes back"

# pollers - threads that poll a device
pollers()
{
	pgrep -c '^rdmabox/rxe2/'
}

# ---- it stays away -------------------------------------------------------------------
attach "$servers" 12 replicas=2 peer_timeout_ms=4000
start_load away --rw=randrw --bs=4k --size=4M --time_based --runtime=$((100 * slowness))
eventually reaches completions $(($(number completions) + 100)) || fault "no I/O ends"
take_away
end_load away
[ "$status" != 0 ] || fault "I/Os succeed without a device"
# One device has one window and one set of pollers, whoever comes first when it is back.
put_back
before=$(pollers) || fault "no thread polls a device"
volume=$volumes/second
attach "$servers" 4
[ "$(pollers)" = "$before" ] || fault "$(pollers) threads poll a device, not $before"
keep 1
is_kept || fault "something else is read than was written"
detach
volume=$volumes/test
detach
attach "$servers" 12
keep 1
is_kept || fault "something else is read than was written"
take_away
detach
put_back
pass "it stays away: errors, and the next attach is served by the next device"

# ---- a queue pair of somebody else's ---------------------------------------------------
# A module that has one is told that the device goes, which waits until it has closed it.
load_module rdmabox_talk "server=$address" throws=0 keep=1
dmesg | grep -q 'a page by plain verbs, status 0' || { dmesg; fault "no plain verbs"; }
take_away
dmesg | grep -q 'rdmabox_talk: the queue pair is closed' || { dmesg; fault "it was not told"; }
put_back
rmmod rdmabox_talk || fault "rdmabox_talk.ko cannot be unloaded"
pass "a module that keeps a queue pair is told, and the device goes"

kill -KILL "${server_pids[@]}"
wait 2>/dev/null
remove_wire 2
rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

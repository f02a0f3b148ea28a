#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A cable is pulled and put back under the load of two block devices: a wire joins two
# RDMA devices, with servers at both ends and clients at the near one. One volume has
# nothing but the server at the far end; of the other each slab has a second copy on
# this side. Within the peer timeout there is a pause, and nothing else. Beyond it the
# first ends its I/Os with errors and goes; the second goes on, with all copies made anew.
# A third has all of its copies behind the cable: its I/Os wait, as long as the servers keep
# them for it.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"
# shellcheck source=cable.sh
. "$(dirname "$(readlink -f "$0")")/cable.sh"

declare -A devices loads

# of NAME - which of the two volumes the functions of kernel.sh are about
of()
{
	volume=$volumes/$1
	device=${devices[$1]:-}
	load=${loads[$1]:-}
}

# goes_on NAME - I/Os end that had not yet when this was called
goes_on()
{
	local more

	of "$1"
	more=$(($(number completions) + 300))
	eventually reaches completions "$more" || fault "$1: no I/O ends"
}

lay_cable
load_block_modules
device_address=$network.2 start_verbs_server --device rxe3 --memory 64M --insecure
far=$address # has the most room, so each volume is there, too
device_address=$network.1
start_verbs_server --device rxe2 --memory 24M --insecure
near=$address
start_verbs_server --device rxe2 --memory 24M --insecure
near_too=$address

# load_on NAME - starts one on a volume, in the half that is not kept
load_on()
{
	devices[$1]=$device
	start_load "$1" --rw=randrw --bs=4k --iodepth=4 --offset=4M --size=4M \
		--time_based --runtime=$((170 * slowness))
	loads[$1]=$load
	goes_on "$1"
}

# ---- for a moment --------------------------------------------------------------------
of alone
for ((round = 0; round < 5; round++)); do
	ip neigh flush all
	attach "$far" 8 peer_timeout_ms=20000
	[ "$round" = 4 ] || detach
done
pass "a server behind a wire is found, though its neighbour is not known yet"

# For longer than the quarter of the timeout that is left to resume in any case, and
# far below the three quarters after which the server is given up.
keep 4
load_on alone
dmesg -C
cable 100
sleep 6
cable 0
goes_on alone
[ "$(number slabs_lost)" = 0 ] || { dmesg; fault "the server is given up"; }
dmesg | grep -q "$far: resumed" || { dmesg; fault "no session was resumed"; }
stop_load alone
is_kept || fault "what was written before is something else"
detach
pass "a cable is pulled for a third of the peer timeout: a pause, and no I/O fails"

# ---- for long, with all copies behind it -------------------------------------------------
device_address=$network.2 start_verbs_server --device rxe3 --memory 24M --insecure
of all
attach "$far,$address" 8 replicas=2 peer_timeout_ms=4000
keep 4
load_on all
cable 100
sleep 15
cable 0
goes_on all
[ "$(number slabs_lost)" = 0 ] || { dmesg | tail -n 30; fault "both copies are given up"; }
stop_load all
is_kept || fault "what was written before is something else"
detach
pass "it stays pulled for nearly four times the peer timeout, with all copies behind it: no I/O fails"

# ---- for long ------------------------------------------------------------------------
of alone
attach "$far" 8 peer_timeout_ms=4000
load_on alone
of twice
attach "$far,$near,$near_too" 8 replicas=2 peer_timeout_ms=4000
keep 4
load_on twice
cable 100
of alone
end_load alone
[ "$status" != 0 ] || fault "I/Os succeed without a cable"
detach
of twice
eventually is_whole || fault "slabs are without a copy"
[ "$(number rebuilt_bytes)" -gt 0 ] || fault "nothing was rebuilt"
cable 0
goes_on twice
stop_load twice
is_kept || fault "what was written before is something else"
detach
pass "it stays pulled: errors without a replica; with one nobody notices, and all copies are back"

of alone
attach "$far" 8
keep 4
is_kept || fault "something else is read than was written"
detach
pass "the server at its end is one again when it is back"

# What holds a device keeps it.
kill -KILL "${server_pids[@]}"
wait 2>/dev/null
remove_wire 2
rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

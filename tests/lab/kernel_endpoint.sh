#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connections of modules: to each other, and to programs, which use the library. What
# comes is what was sent; what ends says so.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

# shellcheck source=../../lab/guest/wire
. /host/lab/guest/wire

port=7480
network=10.9.1
ends_s=30 # what a broken connection may take here: a dead peer is noticed in 4

address_in()
{
	awk '/^listening on/ { print $3; exit }' "$1"
}

# await_listener FILE - a program says there that it listens
await_listener()
{
	local attempt

	for ((attempt = 0; attempt < 600; attempt++)); do
		! grep -q '^listening on' "$1" || return 0
		sleep 0.05
	done
	cat "$1" >&2
	fault "$1: nobody listens"
}

# kernel_pings PATTERN PARAMETER... - rdmabox_ping.ko says so when it is loaded
kernel_pings()
{
	local pattern=$1

	shift
	dmesg -C
	load_module rdmabox_ping "$@"
	dmesg | grep -q "$pattern" || { dmesg; fault "rdmabox_ping $*: no word of $pattern"; }
}

program_pings()
{
	timeout "$limit_s" "$build/examples/ping" "$device_address:$port" >"$scratch/out" 2>"$scratch/err" ||
		{ show; dmesg; fault "a program pings the module"; }
	grep -q '^1000 pings to .* there and back$' "$scratch/out" || { show; fault "no thousand pings"; }
}

# ask_for_ever PARAMETER... - a module asks, in the background
ask_for_ever()
{
	dmesg -C
	insmod "$modules/rdmabox_ping.ko" pings=100000000 "$@" 2>/dev/null &
	asking=$!
	sleep 1.5 # some of them come back
	kill -0 "$asking" 2>/dev/null || { dmesg; fault "rdmabox_ping $*: it has ended"; }
}

# asking_ends WHY - in time, and with an error
asking_ends()
{
	local begin_s=$SECONDS

	! wait "$asking" || fault "$1: no error"
	[ $((SECONDS - begin_s)) -le "$ends_s" ] || fault "$1: it took $((SECONDS - begin_s)) s"
	logged 'rdmabox_ping: [1-9][0-9]* pings to .* status -' || { dmesg; fault "$1: not said"; }
}

load_module rdmabox

# ---- all that the API promises, from one module to itself -----------------------------
dmesg -C
load_module rdmabox_endpoint_test "address=$device_address:7490"
tested=$(dmesg | grep -c 'rdmabox_endpoint_test: .*: passed (0)$')
[ "$tested" -ge 45 ] || { dmesg; fault "$tested tests passed"; }
rmmod rdmabox_endpoint_test
pass "$tested tests of the API"

# ---- ping ----------------------------------------------------------------------------
kernel_pings '200 pings to .* status 0' "listen=$device_address:$port" "connect=$device_address:$port" pings=200
pass "a module pings itself"

program_pings
pass "a program pings a module"

# It is unloaded while a program is connected, and that hears of it.
"$build/examples/ping" "$device_address:$port" >"$scratch/out" 2>"$scratch/err" &
pinging=$!
sleep 0.2
rmmod rdmabox_ping || fault "rdmabox_ping.ko cannot be unloaded"
wait "$pinging"
pass "a module is unloaded while a program is connected"

"$build/examples/ping" --listen "$device_address:0" >"$scratch/listener" 2>&1 &
listener=$!
server_pids+=("$listener")
await_listener "$scratch/listener"
kernel_pings '1000 pings to .* status 0' "connect=$(address_in "$scratch/listener")" pings=1000
rmmod rdmabox_ping
wait "$listener" || { cat "$scratch/listener"; fault "the program that was pinged ends with $?"; }
pass "a module pings a program"

kernel_pings '200 pings to .* status 0' "listen=$device_address:$port" "connect=$device_address:$port" pings=200 paced=1
program_pings
rmmod rdmabox_ping
pass "the same through a channel"

# ---- memory that others reach -------------------------------------------------------
"$build/examples/one-sided" --listen "$device_address:0" >"$scratch/listener" 2>&1 &
listener=$!
server_pids+=("$listener")
await_listener "$scratch/listener"
dmesg -C
load_module rdmabox_one_sided "connect=$(address_in "$scratch/listener")"
dmesg | grep -q 'written; and denied when the export had ended' || { dmesg; fault "one-sided"; }
rmmod rdmabox_one_sided
wait "$listener" || { cat "$scratch/listener"; fault "the program that lends ends with $?"; }
grep -q '^6 bytes came, and the number 42: hello$' "$scratch/listener" &&
	grep -q 'still it says: hello$' "$scratch/listener" ||
	{ cat "$scratch/listener"; fault "something else was written"; }
pass "a module borrows memory of a program, for as long as that lends it"

dmesg -C
load_module rdmabox_one_sided "listen=$device_address:$port" &
loading=$!
eventually logged 'rdmabox_one_sided: listening on' || fault "the module does not listen"
timeout "$limit_s" "$build/examples/one-sided" "$device_address:$port" >"$scratch/out" 2>"$scratch/err" ||
	{ show; dmesg; fault "a program borrows of a module"; }
wait "$loading" || { dmesg; fault "the module that lends"; }
logged '6 bytes came, and the number 42: hello' && logged 'still it says: hello' ||
	{ dmesg; fault "something else was written"; }
rmmod rdmabox_one_sided
pass "a program borrows memory of a module, for as long as that lends it"

# ---- peers that misbehave, or die ----------------------------------------------------
kernel_pings listening "listen=$device_address:$port"
for ((round = 0; round < 3; round++)); do
	"$build/examples/ping" "$device_address:$port" >"$scratch/out" 2>&1 &
	pinging=$!
	sleep "0.$round"
	kill -KILL "$pinging"
	wait "$pinging" 2>/dev/null
done
# It writes to memory that nobody has exported.
! timeout "$limit_s" "$build/examples/one-sided" "$device_address:$port" >"$scratch/out" 2>&1 ||
	fault "a module lends memory that it has not exported"
program_pings
rmmod rdmabox_ping || fault "rdmabox_ping.ko cannot be unloaded"
pass "peers are killed, or reach for memory, and the next one is answered"

"$build/examples/ping" --listen "$device_address:0" >"$scratch/listener" 2>&1 &
listener=$!
await_listener "$scratch/listener"
ask_for_ever "connect=$(address_in "$scratch/listener")"
kill -KILL "$listener"
wait "$listener" 2>/dev/null
asking_ends "the program that it asks was killed"
pass "the program that a module asks is killed, and the module hears of it"

# ---- the device goes, and the wire is cut ----------------------------------------------
lay_wire 2 "$network"
for paced in 0 1; do
	ask_for_ever "listen=$network.2:$port" device=rxe3 "connect=$network.2:$port" "paced=$paced"
	timeout 60 rdma link delete rxe2 || fault "the device of who asks cannot be deleted"
	asking_ends "its device has gone"
	rdma link add rxe2 type rxe netdev veth2 || fault "the device cannot be added"
	pass "the device of who asks goes: an error, and nobody keeps it (paced=$paced)"
done

kernel_pings 'status 0' "listen=$network.2:$port" device=rxe3 "connect=$network.2:$port" pings=10
timeout 60 rdma link delete rxe3 || fault "the device of who answers cannot be deleted"
rmmod rdmabox_ping || fault "rdmabox_ping.ko cannot be unloaded"
rdma link add rxe3 type rxe netdev veth3 || fault "the device cannot be added"
kernel_pings 'status 0' "listen=$network.2:$port" device=rxe3 "connect=$network.2:$port" pings=10
rmmod rdmabox_ping
pass "the device of who answers goes, and the next one serves"
modprobe sch_netem || fault "no netem"
for paced in 0 1; do
	ask_for_ever "listen=$network.2:$port" device=rxe3 "connect=$network.2:$port" "paced=$paced"
	tc qdisc add dev veth2 root netem loss 100% || fault "no netem"
	asking_ends "the wire was cut"
	pass "the wire is cut in the middle of it: an error, in time (paced=$paced)"
	remove_wire 2
	lay_wire 2 "$network"
done
remove_wire 2

rmmod rdmabox || fault "rdmabox.ko cannot be unloaded"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Many devices and programs at once on few servers, on a machine that has more to do: all
# of them are let in, a server that dies takes no other with it, and what servers say all
# at once finds receives though nobody handles it yet.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"
# shellcheck source=faults.sh
. "$(dirname "$(readlink -f "$0")")/faults.sh"

# Each has a handshake of five seconds with each server, whatever the machine.
devices_count=$((slowness > 1 ? 8 : 20))
loaded_count=4

# crowd COMMAND... - for each volume, which the functions of kernel.sh are about
crowd()
{
	local number

	for number in $(seq "$1"); do
		volume=$volumes/crowd$number
		"${@:2}"
	done
}

load_block_modules
load_faults
for name in one two three; do
	start_verbs_server --memory 80M --insecure
	living=${servers:-}
	servers=${servers:+$servers,}$address
done
dies=$pid
dies_at=$address

# ---- all at once -------------------------------------------------------------------------
# prepare - all but the attaching
prepare()
{
	mkdir "$volume"
	echo "$servers" >"$volume/servers"
	echo $((4 << 20)) >"$volume/size"
	echo 2 >"$volume/replicas"
	echo 1 >"$volume/insecure"
	echo $((20000 * slowness)) >"$volume/peer_timeout_ms"
}

begin_attach()
{
	{ echo 1 >"$volume/attached"; } 2>"$scratch/attach.${volume##*/}" &
	attaching+=("$!")
}

attaching=()
crowd "$devices_count" prepare
crowd "$devices_count" begin_attach
for one in "${attaching[@]}"; do
	wait "$one" || { dmesg | tail -n 20; fault "one of $devices_count attaches at once fails"; }
done
pass "$devices_count devices are attached at once, to three servers each"

take_leave()
{
	[ "${volume##*crowd}" -le "$loaded_count" ] || detach
}
crowd "$devices_count" take_leave

# ---- one of three dies -----------------------------------------------------------------
declare -A loads
begin_load()
{
	device=/dev/$(<"$volume/device")
	start_load "${volume##*/}" --rw=randrw --bs=4k --iodepth=4 --size=4M \
		--time_based --runtime=$((170 * slowness))
	loads[$volume]=$load
	eventually reaches completions 200 || fault "${volume##*/}: no I/O ends"
}

goes_on()
{
	eventually reaches completions $(($(number completions) + 200)) ||
		fault "${volume##*/}: no I/O ends any more"
}

is_sound()
{
	load=${loads[$volume]}
	stop_load "${volume##*/}"
	eventually is_whole || fault "${volume##*/}: slabs are without a copy"
	[ "$(number slabs_lost)" = 0 ] || { dmesg | tail -n 40; fault "${volume##*/}: slabs are lost"; }
}

# begin_program - which has its pages on the same servers
begin_program()
{
	"$rdmabox" bench --fabric verbs --pool "$servers" --volume 8M --replicas 2 --insecure \
		--op mix:50 --pattern rand --block 4K --depth 8 --threads 1 --mode hybrid \
		--window auto --verify --runtime 30 --peer-timeout $((5000 * slowness)) \
		>"$scratch/program.$1" 2>&1 &
	programs+=("$!")
	server_pids+=("$!")
}

# programs_connected COUNT - so many queue pairs of programs, servers among them, are there
programs_connected()
{
	[ "$(rdma resource show qp | grep 'type RC state RTS' | grep -vc 'comm \[')" -ge "$1" ]
}

# What else the machine has to do.
for _ in 1 2; do
	while :; do :; done &
	server_pids+=("$!")
	hogs+=("$!")
done
crowd "$loaded_count" begin_load
programs=()
begin_program 1
begin_program 2
# To each of three servers one to talk and one for pages; of a program both ends count.
eventually programs_connected $((3 * 2 * (loaded_count + 2 * 2))) ||
	{ cat "$scratch"/program.*; rdma resource show qp; fault "the programs do not begin"; }
dmesg -C
kill -KILL "$dies"
crowd "$loaded_count" goes_on
for one in "${programs[@]}"; do
	wait "$one" || { cat "$scratch"/program.*; dmesg | tail -n 40; fault "a program fails"; }
done
kill "${hogs[@]}"
crowd "$loaded_count" is_sound
! dmesg | grep 'is given up' | grep -v -F "$dies_at " || fault "a server that lives is given up"
logged "$dies_at is given up" || { dmesg | tail -n 40; fault "the one that died is not"; }
pass "$loaded_count devices and two programs, and one of three servers dies: nothing is lost"

# ---- all that it may say ------------------------------------------------------------------
# A server that leaves wants 24 slabs back, more than there are receives. Nobody hears it
# for longer than it tries again (core/retry.h), so that all it says has to find one.
start_verbs_server --memory 80M --insecure --drain-timeout 60
leaving=$pid
leaving_log=$scratch/server.$((${#server_pids[@]} - 1)).err
volume=$volumes/flood
attach "$living,$address" 24 on_demand=0 peer_timeout_ms=60000
keep 20
dmesg -C
inject delay rdmabox:receive_done '*' 2500 1
kill -TERM "$leaving"
wait "$leaving" || fault "the server ends with $?"
! grep 'still lent' "$leaving_log" || fault "slabs were not given back"
[ "$(injected rdmabox:receive_done)" = 1 ] || fault "nothing was said: $(<"$faults")"
inject clear
! logged "$address: resumed" || { dmesg; fault "a message found no receive"; }
is_kept || fault "something else is read than was written"
detach
pass "a server says all at once, and nobody listens for a while: no connection breaks"

crowd "$loaded_count" detach
rmmod rdmabox_faults rdmabox_block rdmabox || fault "the modules cannot be unloaded"

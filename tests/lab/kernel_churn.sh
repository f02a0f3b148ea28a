#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Devices come and go beside one that is hammered, and whoever attaches, detaches or
# uses one is killed at the worst moment. The modules stay as long as they are in use,
# and leave when they are not.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

rounds=20
kills=8

# stay MODULE... - each refuses to be unloaded
stay()
{
	local module

	for module in "$@"; do
		! rmmod "$module" 2>/dev/null || fault "$module was unloaded in use"
	done
}

load_block_modules
start_verbs_server --memory 32M --insecure
servers=$address
start_verbs_server --memory 32M --insecure
servers+=,$address

attach "$servers" 16 replicas=2
hammered=$device
keep 8
start_load hammer --thread --rw=randrw --bs=4k --iodepth=4 --offset=8M --size=8M \
	--time_based --runtime=$((170 * slowness))
eventually reaches completions 100 || fault "the load does not begin"
stay rdmabox_block rdmabox

# ---- others come and go ------------------------------------------------------------
volume=$volumes/guest
for ((round = 0; round < rounds; round++)); do
	attach "$servers" 4 replicas=$((round % 2 + 1)) queue_pairs=$((round % 3 + 1))
	[ "$device" != "$hammered" ] || fault "two devices are one"
	# In the shell alone, which is quick. The last to close a device empties its cache.
	printf -v text '%4000s' "round $round, $RANDOM"
	printf '%s' "$text" >"$device"
	read -r -N 4000 found <"$device"
	[ "$found" = "$text" ] || fault "round $round: something else is read than was written"
	[ $((round % 5)) != 0 ] || stay rdmabox_block rdmabox
	detach
done
pass "$rounds devices come and go beside one that is hammered"

# ---- who attaches is killed ------------------------------------------------------------
# However far it came: what is there can be detached, and then nothing is.
for ((round = 0; round < kills; round++)); do
	"$rdmabox" page attach --name guest --pool "$servers" --size 4M --insecure \
		--qps 4 >"$scratch/out" 2>&1 &
	victim=$!
	sleep "0.0$((round * 12 % 100))"
	kill -KILL "$victim" 2>/dev/null
	wait "$victim"
	! [ -e "$volume" ] || run page detach --name guest
	[ ! -e "$volume" ] || { show; fault "round $round: what a killed attach has left stays"; }
done
[ "$(ls "$volumes")" = test ] || fault "there are volumes $(ls "$volumes")"
pass "whoever attaches is killed $kills times, and leaves nothing that stays"

# Stopped servers keep an attach waiting in the kernel. It is not to be disturbed.
mkdir "$volume"
echo "$servers" >"$volume/servers"
echo $((4 << 20)) >"$volume/size"
echo 1 >"$volume/insecure"
echo 60000 >"$volume/peer_timeout_ms" # longer than what follows takes
kill -STOP "${server_pids[0]}"
echo 1 >"$volume/attached" &
attaching=$!
sleep 0.3
! rmdir "$volume" 2>/dev/null || fault "a volume is removed while it is attached"
[ "$(timeout 10 cat "$volume/attached")" = 0 ] || fault "who looks at it waits with it"
timeout 10 cat "$volume/slabs" >/dev/null 2>&1
[ $? = 1 ] || fault "who wants its numbers waits with it, or gets some"
! echo 2 2>/dev/null >"$volume/replicas" || fault "its options change while it is attached"
! echo 1 2>/dev/null >"$volume/attached" || fault "it is attached twice"
kill -CONT "${server_pids[0]}"
wait "$attaching" || fault "an attach was disturbed by rmdir"
detach
pass "a volume is not removed or changed while it is attached, and nobody waits with it"

# ---- who uses one is killed ------------------------------------------------------------
volume=$volumes/test
device=$hammered
is_kept || fault "what was there before is something else"
kill -KILL -- "-$load" # fio too, which is in the group of timeout, and its thread
end_load hammer
is_free()
{
	echo 0 2>/dev/null >"$volume/attached"
}
eventually is_free || fault "a device whose user was killed stays in use"
rmdir "$volume"
rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"
pass "the user of a device is killed, the device goes, and the modules do"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server stands still for a while under the load of a block device. As long as it
# comes back before it is given up the session is resumed and no I/O fails; what
# was posted is sent again. A cable that is pulled looks the same, from further away.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

load_module rdmabox
load_module rdmabox_block
start_verbs_server --memory 16M --insecure
device=$("$rdmabox" page attach --pool "$address" --size 16M --qps 4 --insecure) ||
	fault "cannot attach"

# disturb NAME COMMAND... - runs COMMAND under load that outlasts it, also on a machine
# that is slow; sets status
disturb()
{
	local name=$1 load before

	shift
	dmesg -C
	before=$(cat /sys/kernel/config/rdmabox/page/completions)
	timeout "$limit_s" fio --name="$name" --filename="$device" --direct=1 \
		--ioengine=libaio --iodepth=16 --rw=randrw --bs=4k --size=8M \
		--time_based --runtime=12 --verify=crc32c --verify_state_save=0 \
		--output="$scratch/fio" >"$scratch/out" 2>"$scratch/err" &
	load=$!
	server_pids+=("$load")
	for ((tenths = 0; tenths < 300; tenths++)); do
		[ "$(cat /sys/kernel/config/rdmabox/page/completions)" -lt $((before + 100)) ] || break
		sleep 0.1
	done
	"$@"
	wait "$load"
	status=$?
	[ "$status" != 124 ] || fault "$name: an I/O never ends"
	! grep -q 'verify: bad' "$scratch/fio" "$scratch/err" || fault "$name: junk"
}

stop_server()
{
	kill -STOP "$pid"
	sleep "$1"
	kill -CONT "$pid"
}

# A machine that is very slow may miss the moment, with errors: then once more.
for attempt in 1 2 3; do
	disturb stopped stop_server 3
	[ "$status" != 0 ] || break
	"$rdmabox" page detach || fault "cannot detach"
	"$rdmabox" page attach --pool "$address" --size 16M --qps 4 --insecure >/dev/null ||
		fault "cannot attach again"
done
[ "$status" = 0 ] || { dmesg; fault "I/Os fail though the server came back"; }
dmesg | grep 'rdmabox: .*: resumed' || { dmesg; fault "no session was resumed"; }
pass "stopped for 3 s: the session is resumed, and no I/O fails (attempt $attempt)"

# What it alone has is not given up before half of its lease is over.
"$rdmabox" page detach || fault "cannot detach"
start_verbs_server --memory 16M --lease 6000 --insecure
"$rdmabox" page attach --pool "$address" --size 16M --peer-timeout 2000 --insecure \
	>/dev/null || fault "cannot attach once more"
disturb "stopped for long" stop_server 7
[ "$status" != 0 ] || fault "a server that was silent for 7 s is believed"
dmesg | grep -q 'is given up' || { dmesg; fault "it is not given up"; }
"$rdmabox" page detach || fault "cannot detach"
pass "stopped for longer than half of its lease: I/Os end with errors, and none with junk"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Allocations fail in the modules and in what they call, while volumes come and go. It
# needs a kernel that injects faults: `lab/vm --kernel debug`. What is read is right or
# an error, nothing hangs, all that was borrowed goes back; and the lab fails the script
# if the kernel reports anything.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

debug=/sys/kernel/debug
[ -d "$debug/failslab" ] || fault "this kernel injects no faults"

rounds=24
everywhere=0xffffffffffffffff # in whatever function
most_hits=1000000 # as many as are allowed, of which the kernel counts down

# set_fault KIND OPTION=VALUE...
set_fault()
{
	local option

	for option in "${@:2}"; do
		echo "${option#*=}" >"$debug/$1/${option%%=*}" || fault "no $option of $1"
	done
}

# start_faults COUNT OPTION=VALUE... - of allocations, small and large, one in COUNT
# hundreds
start_faults()
{
	local kind

	set_fault fail_page_alloc min-order=0
	for kind in failslab fail_page_alloc; do
		set_fault "$kind" "${@:2}" verbose=0 interval="$1" times=$most_hits \
			ignore-gfp-wait=N
		set_fault "$kind" probability=1
	done
}

# stop_faults - sets hits, how many allocations have failed
stop_faults()
{
	local kind

	hits=0
	for kind in failslab fail_page_alloc; do
		set_fault "$kind" probability=0
		hits=$((hits + most_hits - $(<"$debug/$kind/times")))
		set_fault "$kind" require-start=0 require-end="$everywhere"
	done
}

# place MODULE - where its functions are, but for the last one: sets begin and end
place()
{
	read -r begin end < <(awk -v module="[$1]" '$4 == module && $2 ~ /[tT]/ { print $1 }' \
		/proc/kallsyms | sort | sed -n '1p; $p' | xargs)
}

# try_to_attach SERVERS MIB [OPTION=VALUE]... - as attach does, and says if it cannot
try_to_attach()
{
	local option

	mkdir "$volume" 2>/dev/null || return
	for option in "servers=$1" "size=$(($2 << 20))" insecure=1 "${@:3}" attached=1; do
		echo "${option#*=}" 2>/dev/null >"$volume/${option%%=*}" || return
	done
	device=/dev/$(<"$volume/device")
}

# try_to_detach - again and again, as an allocation of it may fail
try_to_detach()
{
	[ -e "$volume" ] || return 0
	{ echo 0 >"$volume/attached"; } 2>/dev/null
	rmdir "$volume" 2>/dev/null
}

load_block_modules
servers=
for _ in one two three; do
	start_verbs_server --memory 24M --insecure
	servers+=${servers:+,}$address
done

# ---- what the modules allocate ---------------------------------------------------------
# Whoever is in one of their functions, and whatever that calls.
attached=0
all_hits=0
for ((round = 0; round < rounds; round++)); do
	place "$([ $((round % 4)) = 0 ] && echo rdmabox_block || echo rdmabox)"
	start_faults $((round % 8 + 1)) require-start="0x$begin" require-end="0x$end"
	if try_to_attach "$servers" 8 replicas=2; then
		attached=$((attached + 1))
		dd if=/dev/urandom of="$scratch/some" bs=64k count=4 status=none
		if dd if="$scratch/some" of="$device" bs=64k oflag=direct status=none 2>/dev/null &&
			dd if="$device" of="$scratch/again" bs=64k count=4 iflag=direct \
				status=none 2>/dev/null; then
			cmp "$scratch/some" "$scratch/again" || fault "round $round: junk"
		fi
	fi
	eventually try_to_detach || fault "round $round: the volume stays"
	stop_faults
	all_hits=$((all_hits + hits))
done
[ "$all_hits" -ge $((rounds / 4)) ] || fault "only $all_hits allocations have failed"
[ "$attached" -gt 0 ] && [ "$attached" -lt "$rounds" ] ||
	fault "of $rounds attaches $attached succeed"
pass "$all_hits allocations fail: $attached of $rounds attaches succeed, and none leaves junk"

# All that was borrowed has gone back, or this would not fit.
attach "$servers" 32 replicas=2 on_demand=0
detach
pass "then all memory of the servers can be borrowed"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

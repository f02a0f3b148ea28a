#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server is killed while fio writes. With a second replica all that was written is read
# back and nothing fails; without one fio fails, and it ends.

. "$(dirname "$0")/fio.sh"

# lent ADDRESS - bytes that a server has lent
lent()
{
	"$rdmabox" stat --server "$1" | awk '$1 == "lent_bytes" { print $2 }'
}

# under_death REPLICAS - kills one of two servers once the load is on; sets status
under_death()
{
	local one two victim attempt

	start_server --memory 64M --slab 4M
	one=$address
	victim=$pid
	start_server --memory 64M --slab 4M
	two=$address
	rm -f "$scratch"/{out,err}
	# Paced, so that the death comes in the middle.
	(cd "$scratch" && exec timeout "$limit_s" "${preload[@]}" fio --ioengine="external:$engine" --name=job \
		--servers="$one,$two" --replicas="$1" --size=16M --bs=4k --rw=randrw \
		--iodepth=32 --rate_iops=1000,1000 --verify=crc32c --verify_fatal=1 \
		>out 2>err) &
	server_pids+=("$!")
	for ((attempt = 0; attempt < 200; attempt++)); do
		[ "$(lent "$one")" = 0 ] || break
		sleep 0.05
	done
	[ "$attempt" != 200 ] || { show; fault "the load does not begin"; }
	sleep 0.5
	kill -0 "${server_pids[-1]}" || { show; fault "the load is over before the server dies"; }
	kill -KILL "$victim"
	wait "${server_pids[-1]}"
	status=$?
	[ "$status" != 124 ] || { show; fault "hangs"; }
}

under_death 2
[ "$status" = 0 ] || { show; fault "with two replicas: exit code $status"; }
grep -qE 'err= 0' "$scratch/out" || { show; fault "with two replicas: errors"; }
grep -q 'server down' "$scratch/err" || { show; fault "nobody tells of the server"; }
grep -qE 'issued rwts: total=4096,[1-9]' "$scratch/out" ||
	{ show; fault "with two replicas: not all was read"; }

under_death 1
# fio ends at the first error, perhaps before it is told of the server.
[ "$status" != 0 ] || { show; fault "without a replica: no error"; }
! grep -q 'verify: bad' "$scratch/out" "$scratch/err" ||
	{ show; fault "without a replica: junk in place of errors"; }

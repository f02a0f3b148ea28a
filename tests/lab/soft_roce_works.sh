#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Soft-RoCE itself, before anything of ours runs on it: the device is there, its
# port is up, and stock programs move data over it, by the verbs and by the
# connection manager. If this fails, the lab is broken and not RDMAbox.

address=10.9.0.1
port=18515
start_limit_tenths=300
failed=0

report()
{
	if [ "$1" -eq 0 ]; then
		echo "PASS $2"
	else
		echo "FAIL $2"
		failed=1
	fi
}

# wait_until COMMAND...: a server is asked for, not waited for
wait_until()
{
	local tenths

	for ((tenths = 0; tenths < start_limit_tenths; tenths++)); do
		"$@" && return
		sleep 0.1
	done
	return 1
}

# shellcheck disable=SC2317 # called through wait_until
is_listening()
{
	ss -Hltn "sport = :$1" | grep -q .
}

ibv_devinfo -d rxe0 | grep -q 'state:.*PORT_ACTIVE'
report $? "rxe0 has an active port"
[ $failed -eq 0 ] || exit 1

# -c: both sides compare what arrived with what was sent
ibv_rc_pingpong -d rxe0 -g 1 -p $port -c -n 100 > /tmp/pingpong 2>&1 &
wait_until is_listening $port &&
	ibv_rc_pingpong -d rxe0 -g 1 -p $port -c -n 100 $address > /dev/null && wait $!
report $? "ibv_rc_pingpong sends and receives validated data"

ib_read_bw -F -d rxe0 -x 1 -s 65536 -n 50 -p $port > /dev/null 2>&1 &
wait_until is_listening $port &&
	ib_read_bw -F -d rxe0 -x 1 -s 65536 -n 50 -p $port $address > /dev/null && wait $!
report $? "ib_read_bw reads remote memory"

# A listening connection manager shows in no table: the client tries again.
rping -s -a $address -C 10 -S 8192 > /dev/null 2>&1 &
wait_until rping -c -a $address -C 10 -S 8192 -V > /dev/null 2>&1 && wait $!
report $? "rping connects and validates what it reads and writes"

exit $failed

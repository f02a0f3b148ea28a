#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The tests of tests/fabric on Soft-RoCE. With one device all that runs on any
# fabric and what only a device shows; with two (lab/vm --net pair) the ones that
# need a wire, which they cut at the end.

build=${BUILD:-/build}/tests
failed=0

run()
{
	if "$build/$1"; then
		echo "PASS $1"
	else
		echo "FAIL $1"
		failed=1
	fi
}

export RBX_TEST_FABRIC=verbs RBX_TEST_ADDRESS=10.9.0.1:0
if rdma link show rxe1/1 > /dev/null 2>&1; then
	export RBX_TEST_DEVICES="rxe0 10.9.0.1 rxe1 10.9.0.2"
	export RBX_TEST_CUT="tc qdisc add dev veth0 root netem loss 100% &&
		tc qdisc add dev veth1 root netem loss 100%"
	run fabric_verbs_two_devices_test
else
	for name in atomics connect domain failure invalidate operations order transfer wait verbs_device verbs_ends; do
		run "fabric_${name}_test"
	done
	run fabric_events_test
	run fabric_shared_receives_test
	# The last of it takes the device away, and the scripts after this one need it.
	export RBX_TEST_LINK=veth0 RBX_TEST_RDMA_LINK=rxe0
	run fabric_verbs_events_test
	rdma link show rxe0/1 >/dev/null 2>&1 ||
		rdma link add rxe0 type rxe netdev veth0 || failed=1
fi
exit $failed

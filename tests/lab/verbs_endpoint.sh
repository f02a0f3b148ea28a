#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Endpoints over an RDMA device: what they do, how they end, and the two examples.

. "$(dirname "$(readlink -f "$0")")/verbs.sh"

export RBX_TEST_FABRIC=verbs RBX_TEST_ADDRESS=$device_address:0
for name in connect early operations end events shared window options paced paced_end paced_window; do
	"$build/tests/lib_endpoint_${name}_test" || fault "lib_endpoint_${name}_test"
	pass "endpoints: $name"
done
RBX_TEST_LISTEN=$device_address:0 /host/tests/cli/endpoints_ping_and_lend.sh "$build" ||
	fault "the examples"
pass "two programs ping, and one lends the other its memory"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A module that uses a peer by hand: loans that have a twin are not handed out, and a
# link of plain verbs that cannot be opened, for whatever step of it fails, leaves
# nothing behind.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"
# shellcheck source=cable.sh
. "$(dirname "$(readlink -f "$0")")/cable.sh"
# shellcheck source=faults.sh
. "$(dirname "$(readlink -f "$0")")/faults.sh"

load_module rdmabox
load_faults

# ---- twins -----------------------------------------------------------------------------
start_verbs_server --memory 4M --insecure
dmesg -C
load_module rdmabox_twin_test "server=$address"
tested=$(dmesg | grep -c 'rdmabox_twin_test: .*: passed (0)$')
[ "$tested" = 4 ] || { dmesg; fault "$tested tests passed"; }
rmmod rdmabox_twin_test
pass "$tested tests of loans that have a twin"

# ---- links -----------------------------------------------------------------------------
# open_link - sets status, as the kernel has it
open_link()
{
	dmesg -C
	{ echo 1 >/sys/module/rdmabox_link_test/parameters/open; } 2>/dev/null
	status=$(dmesg | sed -n 's/.*rdmabox_link_test: a link, status //p')
}

# What the RDMA stack knows of, in all; and who uses a device.
used()
{
	rdma resource show | tr ' ' '\n' | grep -A 1 -E '^(qp|cq|pd|cm_id|mr)$' | tr '\n' ' '
}

is_used_as_before()
{
	[ "$(used)" = "$used_before" ]
}

lay_cable
# A program that has a device open keeps it, and librdmacm opens all that it finds.
rdma link delete rxe2 || fault "the device cannot be deleted"
device_address=$network.2 start_verbs_server --device rxe3 --memory 4M --insecure
rdma link add rxe2 type rxe netdev veth2 || fault "the device cannot be added"
load_module rdmabox_link_test "server=$address"
open_link
[ "$status" = 0 ] || { dmesg; fault "no link: $status"; }
used_before=$(used)
while read -r function by value; do
	inject fail "$function" "$by" "$value" 1
	open_link
	[ "$(injected "$function")" = 1 ] || fault "$function is not asked: $(<"$faults")"
	inject clear
	[ -n "$status" ] && [ "$status" != 0 ] || fault "$function fails, and there is a link"
	eventually is_used_as_before || fault "$function fails: $(used) are used, not $used_before"
	open_link
	[ "$status" = 0 ] || { dmesg; fault "no link after $function failed: $status"; }
done <<-EOF
	rbx_context_hold rbx_verbs_link_open -19
	rbx_session_attach_begin [rdmabox] -107
	__rdma_create_kernel_id [rdmabox] -12
	rdma_resolve_addr [rdmabox] -19
	rdma_resolve_route [rdmabox] -12
	rdma_create_qp [rdmabox] -12
	rdma_connect [rdmabox] -12
	rbx_context_watch rbx_verbs_link_open -19
EOF
# The peer goes on, and whoever has the device lets it go.
timeout 60 rdma link delete rxe2 || fault "the device is kept by a link that was never opened"
rmmod rdmabox_link_test || fault "rdmabox_link_test.ko cannot be unloaded"
pass "whichever step of opening a link fails, nothing is left of it"

kill -KILL "${server_pids[@]}" 2>/dev/null
wait 2>/dev/null
rdma link add rxe2 type rxe netdev veth2 || fault "the device cannot be added"
remove_wire 2
rmmod rdmabox_faults rdmabox || fault "the modules cannot be unloaded"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server that is reached through an iWARP device is refused: reads over it want rights
# that are not granted. Only the debug kernel has such a device, siw.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

load_block_modules
modprobe siw || fault "this kernel has no iWARP device"
ip link add veth8 type veth peer name veth9
ip addr add 10.9.8.1/24 dev veth8
ip link set veth8 up
ip link set veth9 up
rdma link add siw0 type siw netdev veth8 || fault "cannot make an iWARP device"
# Nobody is there, but the way to it is known.
ip neigh add 10.9.8.2 lladdr 02:00:00:00:00:02 dev veth8

expect_refusal 'iWARP device' page attach --pool 10.9.8.2:7471 --size 8M --insecure
[ -z "$(ls "$volumes")" ] || fault "a volume is left"
pass "a server behind an iWARP device"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"

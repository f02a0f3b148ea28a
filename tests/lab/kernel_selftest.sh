#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox.ko is loaded, finds the core to work in this kernel, and is unloaded.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

load_module rdmabox selftest=1
dmesg | grep 'rdmabox: selftest' || fault "the self-test says nothing"
pass "the core works in this kernel"

rmmod rdmabox || fault "rdmabox.ko cannot be unloaded"
[ ! -e /sys/module/rdmabox ] || fault "rdmabox.ko is still there"
pass "the module leaves"

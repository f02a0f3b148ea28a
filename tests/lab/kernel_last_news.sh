#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A device is detached while its upkeep is about to tell that its state has changed: nothing is left
# that would look at the volume later, in memory that is freed.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"
# shellcheck source=faults.sh
. "$(dirname "$(readlink -f "$0")")/faults.sh"

load_block_modules
load_faults
start_verbs_server --memory 8M --insecure
one=$address
start_verbs_server --memory 8M --insecure
attach "$one,$address" 4 replicas=2 peer_timeout_ms=$((1000 * slowness))
keep 1
inject delay queue_delayed_work_on rdmabox/volume $((3000 * slowness)) 1
kill -KILL "$pid"
eventually is_injected queue_delayed_work_on 1 || fault "nothing was told: $(<"$faults")"
detach
inject clear
sleep 2 # a look is made after one
pass "a device is detached while a change of its state is about to be told"

kill -KILL "${server_pids[@]}" 2>/dev/null
wait 2>/dev/null
rmmod rdmabox_faults rdmabox_block rdmabox || fault "the modules cannot be unloaded"

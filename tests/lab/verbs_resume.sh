#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The network goes away for a second under load and comes back. What was on its
# way is sent again or ends with an error; nothing hangs, and no byte is wrong.

. "$(dirname "$(readlink -f "$0")")/verbs.sh"

interface=$(ip -o -4 addr show to "$device_address" | awk '{ print $2; exit }')
[ -n "$interface" ] || fault "no interface has the address $device_address"

start_verbs_server --memory 8M --insecure
timeout "$limit_s" "$rdmabox" bench --servers "$address" --fabric verbs --insecure \
	--volume 4M --op mix:50 --pattern rand --runtime 12 --warmup 0 --verify \
	--progress --json "$scratch/json" >"$scratch/out" 2>"$scratch/err" &
bench=$!
server_pids+=("$bench")
for ((attempt = 0; attempt < 600; attempt++)); do
	grep -qs measure "$scratch/err" && break
	sleep 0.1
done
ip link set "$interface" down
sleep 1
ip link set "$interface" up
wait "$bench"
status=$?
[ "$status" != 124 ] || { show; fault "bench hangs"; }
cp "$scratch/json" "$scratch/out" || { show; fault "bench has no result"; }
[ "$(key verify_errors)" = 0 ] || fault "$(key verify_errors) wrong blocks"
[ "$status" = 0 ] || [ "$(key errors)" -gt 0 ] || fault "exit code $status and no errors"
pass "a second without network: exit code $status, $(key errors) errors, $(key retries) retries, no wrong byte"

# Whatever became of that client, the server serves the next one.
expect_success bench --servers "$address" --fabric verbs --insecure --volume 4M \
	--runtime 0.3 --warmup 0 --verify --json -
expect_sound "afterwards"
pass "the server serves the next client"

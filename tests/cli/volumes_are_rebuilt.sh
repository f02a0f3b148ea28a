#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server of a volume is lost while no program has it open. A command makes the replicas anew that
# were there, and ends when all are; then another server may be lost, and nothing with it. If no
# server has memory for them it says so.

. "$(dirname "$0")/rdmabox.sh"

cd "$scratch" || exit 1

# is_whole - as the servers say
is_whole()
{
	expect_success volume show db --json --pool "$servers"
	key is_whole
}

addresses=()
for _ in 0 1 2 3; do
	start_server --memory 16M --slab 1M
	addresses+=("$address")
done
servers=$(IFS=,; echo "${addresses[*]}")
head -c 12M /dev/urandom >data
expect_success volume create db --size 12M --replicas 2 --pool "$servers"
expect_success volume import db data --pool "$servers"
expect_success volume rebuild db --pool "$servers"
grep -q 'is whole; 0 bytes were copied' out || { show; fault "something was copied"; }

lost=0
for _ in 0 1; do
	kill -KILL "${server_pids[lost]}"
	[ "$(is_whole)" = False ] || { show; fault "it is whole without one of its servers"; }
	expect_success volume rebuild db --pool "$servers"
	[ "$(is_whole)" = True ] || { show; fault "it is not whole"; }
	lost=$((lost + 1))
done
expect_success volume export db copy --pool "$servers"
cmp data copy || fault "other contents after two servers were lost one after another"

# Two servers have less room than that.
addresses=()
for _ in 0 1 2; do
	start_server --memory 8M --slab 1M
	addresses+=("$address")
done
servers=$(IFS=,; echo "${addresses[*]}")
expect_success volume create full --size 10M --replicas 2 --pool "$servers"
head -c 10M data | expect_success volume import full - --pool "$servers"
kill -KILL "${server_pids[-1]}"
run volume rebuild full --pool "$servers"
[ "$status" = 1 ] || { show; fault "exit code $status without a server for the replicas"; }
grep -q 'not whole: no server has memory for its replicas' err || { show; fault "does not say why"; }
expect_refusal 'there is no volume' volume rebuild none --pool "$servers"

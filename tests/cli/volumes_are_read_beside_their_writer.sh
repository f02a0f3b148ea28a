#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox volume export --read-only and rdmabox bench --read-only: a volume is read while another
# program has it open, which goes on; and also when a server of it is dead.

. "$(dirname "$0")/rdmabox.sh"

servers=
for _ in 1 2 3; do
	start_server --memory 64M --slab 4M
	servers+=${servers:+,}$address
done
cd "$scratch" || exit 1

expect_success volume create db --size 16M --replicas 2 --pool "$servers"
head -c 16M /dev/urandom >data
expect_success volume import db data --pool "$servers"

# Nothing is written by it.
timeout "$limit_s" "$rdmabox" bench --pool "$servers" --volume-name db --op read --runtime 60 \
	>bench.out 2>bench.err &
bench=$!
until "$rdmabox" volume list --pool "$servers" | grep -q process; do
	kill -0 "$bench" || { cat bench.err >&2; fault "the program that has it open has ended"; }
	sleep 0.05
done
expect_refusal 'volume db is open by' volume export db copy --pool "$servers"
expect_success volume export db copy --read-only --pool "$servers"
cmp data copy || fault "the copy differs"
expect_success bench --pool "$servers" --volume-name db --op read --read-only --runtime 0.2
kill -0 "$bench" || fault "the program that has it open has ended"
kill -KILL "${server_pids[0]}"
expect_success volume export db again --read-only --pool "$servers"
cmp data again || fault "the copy differs when a server is dead"
kill -INT "$bench"
wait "$bench"
expect_success volume export db last --read-only --pool "$servers"
cmp data last || fault "the copy differs when nobody has it open"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A volume on more real servers than a word has bits: all are used, and one that is killed
# is not missed.

. "$(dirname "$(readlink -f "$0")")/rdmabox.sh"

count=80
for ((i = 0; i < count; i++)); do
	start_server --memory 2M --slab 64K
	servers=${servers:+$servers,}$address
done
(sleep 2; kill -KILL "$pid") &
expect_success bench --pool "$servers" --replicas 2 --volume 32M --block 4K --depth 8 \
	--threads 2 --window auto --runtime 4 --verify --json -
[ "$(key errors)" = 0 ] || fault "$(key errors) errors"
[ "$(key verify_errors)" = 0 ] || fault "$(key verify_errors) wrong blocks"
for server in ${servers//,/ }; do
	[ "$server" != "$address" ] || continue # it was killed
	expect_success stat --server "$server" --json
	[ "$(key slabs_mapped)" -gt 0 ] || fault "$server has lent nothing"
done

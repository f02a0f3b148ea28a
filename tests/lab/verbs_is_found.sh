#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Where there is an RDMA device, doctor finds it well and the fabric "auto" takes
# it, on both ends, and says why.

. "$(dirname "$(readlink -f "$0")")/verbs.sh"

# expect_ok NAME... - all of these findings in the JSON in $scratch/out
expect_ok()
{
	python3 -c '
import json, sys
found = {check["name"]: check for check in json.load(open(sys.argv[1]))["checks"]}
for name in sys.argv[2:]:
    if name not in found or found[name]["status"] != "ok":
        sys.exit(name + ": " + str(found.get(name)))' "$scratch/out" "$@" ||
		fault "doctor does not find all well"
}

run doctor
grep -qE '^ok +rxe0 ' "$scratch/out" || { show; fault "doctor does not find rxe0"; }
expect_success doctor --json
expect_ok rxe0 rxe0:1 'rxe0:1 GIDs' 'verbs fabric' memlock 'kernel modules'
pass "doctor finds rxe0, and all that it needs"

start_server --listen "$device_address:0" --memory 4M --slab 1M --insecure
grep -q '^ready .*rxe0' "$scratch/server.0" || fault "served by: $(cat "$scratch/server.0")"
expect_success bench --pool "$address" --insecure --volume 1M --runtime 0.3 \
	--warmup 0 --verify --json -
expect_sound "auto"
grep -q '"using": "verbs: there is an RDMA device; rxe0 ' "$scratch/out" ||
	fault "bench does not say why: $(grep using "$scratch/out")"
pass "auto takes the RDMA device, and says why"

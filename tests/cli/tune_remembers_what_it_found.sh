#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox tune prints the curve, and writes what follows from it to a file that
# the next command goes by; what is wrong with a file or a path is said.

. "$(dirname "$0")/rdmabox.sh"

export XDG_CONFIG_HOME=$scratch/config # not made yet
tuned=$XDG_CONFIG_HOME/rdmabox/tune.json
device=(--fabric soft:tcp --device registered)
tune=(tune "${device[@]}" --rounds 3 --runtime 0.05)

# The curve, without a server and without a file.
expect_success "${tune[@]}" --out none --json -
[ ! -e "$tuned" ] || fault "--out none writes a file"
[ "$(key fabric) $(key device)" = 'soft tcp:registered' ] || fault "another device"
[ "$(key queue_pairs) $(key queue_pairs_curve)" = 'None []' ] || fault "queue pairs from nowhere"
python3 - "$scratch/out" <<'END' || fault "the curve is none"
import json, sys
curve = json.load(open(sys.argv[1]))["curve"]
assert [point["bytes"] for point in curve] == [4096 << i for i in range(13)]
for point in curve:
    for name in ("copy_ns", "register_ns", "deregister_ns"):
        assert point[name] >= 0 and point[name[:-3] + "_spread_ns"] >= 0
END

# With a server, the default file, which the next run goes by.
start_server --memory 64M --slab 8M
expect_success "${tune[@]}" --server "$address" --json "$scratch/json" --progress
grep -q 'break-even' "$scratch/out" || fault "no break-even in the table"
grep -qx "wrote $tuned, which later runs read" "$scratch/out" || fault "it does not say where it wrote"
[ -s "$tuned" ] || fault "it wrote something else"
grep -q 'queue pairs, turn 5 of 5' "$scratch/err" || fault "no progress"
cp "$scratch/json" "$scratch/out"
best=$(key queue_pairs)
bench=(bench --pool "$address" "${device[@]}" --volume 8M --runtime 0.1 --warmup 0 --json -)
expect_success "${bench[@]}"
[ "$(key queue_pairs)" = "$best" ] || fault "$(key queue_pairs) queue pairs, not $best"
sed -i 's/"queue_pairs": [0-9]*/"queue_pairs": 5/' "$tuned"
expect_success "${bench[@]}"
[ "$(key queue_pairs)" = 5 ] || fault "the file is not read"
expect_success "${bench[@]}" --qps 3
[ "$(key queue_pairs)" = 3 ] || fault "--qps does not go before the file"

# Again without a server: the number of queue pairs stays.
expect_success "${tune[@]}"
grep -q '"queue_pairs": 5' "$tuned" || fault "the number of queue pairs is lost"

# Files that are something else.
echo "dear diary" >"$tuned"
run "${tune[@]}"
[ "$status" = 1 ] || fault "exit code $status for a file that is something else"
grep -q "$tuned is not overwritten" "$scratch/err" || { show; fault "it does not say why"; }
grep -q 'dear diary' "$tuned" || fault "it is overwritten"
expect_success "${bench[@]}"
[ "$(key queue_pairs)" = 1 ] || fault "garbage is believed"
# A path that cannot be written is refused before anything is measured.
expect_refusal "--out $scratch/none/tune.*nothing was run" "${tune[@]}" --out "$scratch/none/tune"
expect_refusal "--json $scratch/none/json.*nothing was run" "${tune[@]}" --json "$scratch/none/json"
XDG_CONFIG_HOME=$scratch/out expect_refusal "cannot write the tuning file $scratch/out/rdmabox" "${tune[@]}"
expect_success "${tune[@]}" --out "$scratch/elsewhere" --json -
grep -qx "wrote $scratch/elsewhere" "$scratch/err" || fault "beside JSON it does not say where"
[ -s "$scratch/elsewhere" ] || fault "it wrote something else"
expect_refusal . "${tune[@]}" --server "$scratch"

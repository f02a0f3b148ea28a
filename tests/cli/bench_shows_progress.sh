#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox bench on a terminal shows one line that is written over; elsewhere lines, if
# it is told to, and else none. The report ends with the bars of the latencies, and JSON
# has what they are drawn from.

. "$(dirname "$0")/rdmabox.sh"

start_server --memory 64M --slab 4M
bench=(bench --pool "$address" --volume 16M --warmup 0)

python3 - "$rdmabox" "${bench[@]}" --runtime 1 <<'END' || fault "no live line on a terminal"
import os, pty, re, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    said += piece
assert os.waitpid(pid, 0)[1] == 0, said
live = [line for line in said.split(b"\r\x1b[K") if line.startswith(b"measure")]
assert live, said
for line in live:
    assert re.fullmatch(rb"measure +\d+ %  \d+ requests/s  [\d.]+ MB/s  p50 [\d.]+ us  \d+ s left",
                        line.split(b"\r")[0]), line
assert all(len(line.split(b"\r")[0]) < 80 for line in live), live
END

expect_success "${bench[@]}" --runtime 2.5 --progress
grep -qE '^measure +[0-9]+ %  [1-9][0-9]* requests/s  [0-9.]+ MB/s  p50 [0-9.]+ us  [0-9]+ s left$' \
	"$scratch/err" || { show; fault "--progress shows none"; }
bars=$(sed -n '/latency of a sample/,$p' "$scratch/out" | grep -cE '^  < +[0-9.]+ us +[0-9.]+ %  #*$')
[ "$bars" -ge 1 ] && [ "$bars" -le 12 ] || { show; fault "$bars lines of bars"; }
[ "$(tail -n "$bars" "$scratch/out" | grep -c '^  <')" = "$bars" ] || fault "the bars are not the end"

expect_success "${bench[@]}" --runtime 0.3 --json - --load open:2000
[ ! -s "$scratch/err" ] || { show; fault "progress without a terminal"; }
python3 - "$scratch/out" <<'END' || fault "the sample of an open load is not all requests"
import json, sys
result = json.load(open(sys.argv[1]))
assert sum(bucket["requests"] for bucket in result["lat_sample"]) == result["requests"] > 0
ends = [bucket["below_us"] for bucket in result["lat_sample"]]
assert ends == sorted(ends)
END

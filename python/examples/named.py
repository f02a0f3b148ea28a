# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Counts in a volume with a name how often this program was run."""

import sys

import rdmabox

if len(sys.argv) != 2:
    sys.exit("usage: named.py SERVER:PORT[,SERVER:PORT...]")
servers = sys.argv[1]
with rdmabox.Context() as context:
    if not any(volume.name == "runs" for volume in context.volumes(servers)):
        context.create_volume(servers, "runs", "8M", keep_s=3600)
    with context.volume(servers, name="runs") as volume:
        count = int.from_bytes(volume.read(0, 8), "little") + 1
        volume.write(count.to_bytes(8, "little"), 0)
        print("opened", count, "times")

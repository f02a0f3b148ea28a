# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 9: polling policies and the number of peers."""

import runner
from paper import NATIVE, canvas
from paper.source import median

TITLE = "Figure 9: polling many peers"
CLAIM = ("Busy polling is best with few peers and falls with many, as its threads take the CPU; "
         "a shared queue loses parallelism; adaptive polling stays ahead with many peers.")
FABRICS = (NATIVE,)
PEERS = (1, 2, 4, 8, 16)
PEERS_QUICK = (1, 4, 16)
VOLUME_BYTES = 16 << 20
# As in the paper: a queue and its poller for each peer, but shared:M has M for all.
POLICIES = {"event": "peer", "busy": "peer", "event-batch:16": "peer", "hybrid": "peer",
            "adaptive": "peer", "shared:1": None, "shared:2": None}
PANELS = {"throughput": ("requests/s", runner.iops),
          "CPU": ("CPU %", lambda result: result["cpu_percent"])}


def run(source, policy, peers):
    pollers = POLICIES[policy]
    flags = {"pollers": pollers} if pollers else {}
    return runner.rdmabox(
        source.machine, servers=peers, op="mix:75", pattern="zipf", mode="single",
        buffers="staging", polling=policy, volume=VOLUME_BYTES, depth=4 * peers,
        runtime=source.options.runtime_s,
        serve={"slab": VOLUME_BYTES // 16}, **flags)


def measure(source, on):
    source.require("pollers", "--pollers peer")
    data = {name: {} for name in PANELS}
    for peers in PEERS_QUICK if source.options.quick else PEERS:
        results = source.collect({policy: lambda policy=policy, peers=peers:
                                  run(source, policy, peers) for policy in POLICIES})
        for name, (_, figure) in PANELS.items():
            data[name][peers] = median(results, figure)
    return data


def draw(figure, data):
    for axes, (name, (unit, _)) in zip(canvas.panels(figure, len(PANELS)), PANELS.items()):
        canvas.lines(axes, data[name], name, "peers", unit)


def judge(data):
    most, row = list(data["throughput"].items())[-1]
    ratios = {policy: row["adaptive"] / row[policy] for policy in ("busy", "event", "shared:1")}
    return min(ratios.values()) > 0.97, (
        f"With {most} peers adaptive has " + ", ".join(
            f"{ratio:.2f} times the throughput of {policy}"
            for policy, ratio in ratios.items()) + ".")

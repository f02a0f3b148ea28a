# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 9: polling policies and the number of peers."""

import runner
from paper import NATIVE, SIM, Verdict, canvas
from paper.source import median

TITLE = "Figure 9: polling many peers"
CLAIM = ("Busy polling is best with few peers and falls with many, as its threads take the CPU; "
         "a shared queue loses parallelism; adaptive polling stays ahead with many peers.")
FABRICS = (NATIVE, SIM)
PEERS = (1, 2, 4, 8, 16)
PEERS_QUICK = (1, 4, 16)
VOLUME_BYTES = 16 << 20
# As in the paper: a queue and its poller for each peer; only shared:M has M for all.
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


def simulate(source):
    data = {}
    for name, title in (("throughput", "Requests/s"), ("CPU", "CPU %")):
        rows = source.simulated("fig9", title)
        data[name] = {int(peers): {policy: row[peers] for policy, row in rows.items()}
                      for peers in rows["busy"]}
    return data


def measure(source, on):
    if on == SIM:
        return simulate(source)
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
    rates = data["throughput"]
    peers = list(rates)
    few, most = peers[0], peers[-1]
    ratios = {policy: rates[most]["adaptive"] / rates[most][policy]
              for policy in rates[most] if policy != "adaptive"}
    shared = [rates[n]["shared:1"] for n in peers]
    busy = max(row["busy"] for row in rates.values()) / rates[most]["busy"]
    return [
        Verdict("busy polling is best with few peers and falls with many",
                rates[few]["busy"] > 0.97 * max(rates[few].values()) and busy > 1.1,
                f"With {most} peers its best is {busy:.1f} times what it has then."),
        Verdict("one shared queue stops scaling",
                max(shared) < 0.97 * max(max(row.values()) for row in rates.values()),
                f"It has {max(shared):,.0f} requests/s at best, the best policy "
                f"{max(max(row.values()) for row in rates.values()):,.0f}."),
        Verdict("adaptive stays ahead with many peers", min(ratios.values()) > 0.97,
                f"With {most} peers it has " + ", ".join(
                    f"{ratio:.2f} times {policy}" for policy, ratio in ratios.items()) + "."),
    ]

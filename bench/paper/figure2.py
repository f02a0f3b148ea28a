# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 2: polling policies on three loads."""

import runner
from paper import NATIVE, canvas
from paper.source import median

TITLE = "Figure 2: polling on three kinds of load"
CLAIM = ("Event-batch and naive hybrid polling fit some loads only; adaptive polling has the best "
         "throughput of the three on small, medium and large ones, with fewer interrupts and "
         "context switches.")
FABRICS = (NATIVE,)
POLICIES = ("event-batch:16", "hybrid", "adaptive")
# Small is a request at a time. Large is the smallest burst at which busy polling has
# its best throughput, and medium lies halfway; small gaps lie between bursts.
LOADS = {"small": "burst:1:0us", "medium": "burst:16:20us", "large": "burst:32:20us"}


def per_1000(counter):
    return lambda result: 1000 * result[counter] / result["requests"]


PANELS = {"throughput": ("requests/s", runner.iops),
          "CPU": ("CPU %", lambda result: result["cpu_percent"]),
          "interrupts": ("wakeups in 1000 requests", per_1000("wakeups")),
          "context switches": ("in 1000 requests", per_1000("context_switches"))}


def measure(source, on):
    source.require("burst", "--load burst")
    data = {name: {} for name in PANELS}
    for load, text in LOADS.items():
        results = source.collect({
            policy: lambda policy=policy, text=text: runner.rdmabox(
                source.machine, op="write", pattern="rand", mode="single", polling=policy,
                load=text, runtime=source.options.runtime_s)
            for policy in POLICIES})
        for name, (_, figure) in PANELS.items():
            data[name][load] = median(results, figure)
    return data


def draw(figure, data):
    for axes, (name, (unit, _)) in zip(canvas.panels(figure, len(PANELS)), PANELS.items()):
        canvas.bars(axes, data[name], name, unit)


def judge(data):
    ratios = {load: row["adaptive"] / max(row.values()) for load, row in
              data["throughput"].items()}
    fewer = all(row["adaptive"] <= min(row.values()) * 1.03 for row in
                data["interrupts"].values())
    return min(ratios.values()) > 0.97 and fewer, "; ".join(
        f"{load}: adaptive has {ratio:.2f} times the best throughput"
        for load, ratio in ratios.items()) + (
        "; it has the fewest interrupts everywhere." if fewer else
        "; it has not the fewest interrupts everywhere.")

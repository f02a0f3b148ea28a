# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 2: polling policies on three loads."""

import runner
from paper import NATIVE, SIM, Verdict, canvas
from paper.source import median

TITLE = "Figure 2: polling on three kinds of load"
CLAIM = ("Event-batch and naive hybrid polling fit some loads only; adaptive polling has the best "
         "throughput of the three on small, medium and large ones, with fewer interrupts and "
         "context switches.")
FABRICS = (NATIVE, SIM)
POLICIES = ("event-batch:16", "hybrid", "adaptive")
# Small is one request at a time. Large is the smallest burst at which busy polling has
# its best throughput, and medium is halfway; there are small gaps between bursts.
LOADS = {"small": "burst:1:0us", "medium": "burst:16:20us", "large": "burst:32:20us"}


def per_1000(counter):
    return lambda result: 1000 * result[counter] / result["requests"]


# The measured values, and their names in the simulator.
PANELS = {"throughput": ("requests/s", runner.iops),
          "CPU": ("CPU %", lambda result: result["cpu_percent"]),
          "interrupts": ("wakeups in 1000 requests", per_1000("wakeups")),
          "context switches": ("in 1000 requests", per_1000("context_switches"))}
COLUMNS = {"throughput": "requests/s", "CPU": "CPU %", "interrupts": "interrupts of 1000",
           "context switches": "context switches of 1000"}


def simulate(source):
    loads = {load: source.simulated("fig2", load.capitalize() + ",") for load in LOADS}
    return {name: {load: {policy: rows[policy][column] for policy in POLICIES}
                   for load, rows in loads.items()} for name, column in COLUMNS.items()}


def measure(source, on):
    if on == SIM:
        return simulate(source)
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


def fewest(data, name):
    """The loads on which adaptive has the fewest; and a sentence of it."""
    loads = [load for load, row in data[name].items()
             if row["adaptive"] <= min(row.values()) * 1.03]
    return Verdict(f"fewest {name}", len(loads) == len(data[name]),
                   f"On {', '.join(loads) or 'no load'}.")


def judge(data):
    ratios = {load: row["adaptive"] / max(row.values()) for load, row in
              data["throughput"].items()}
    return [
        Verdict("adaptive has the best throughput on all loads", min(ratios.values()) > 0.97,
                "Of the best of the three it has " + ", ".join(
                    f"{ratio:.2f} on {load}" for load, ratio in ratios.items()) + "."),
        fewest(data, "interrupts"), fewest(data, "context switches"),
    ]

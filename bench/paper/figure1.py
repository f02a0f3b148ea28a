# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 1: a device under more and more threads, without a window."""

from paper import LAB, NATIVE, SIM, Verdict, canvas
from paper.source import by_unit, first_peak

TITLE = "Figure 1: more threads, without admission control"
CLAIM = ("With more threads that write, requests per second rise to a peak at 4 threads and then "
         "fall, while requests in flight and their completion time go on growing.")
FABRICS = (NATIVE, LAB, SIM)

PANELS = {"requests/s": "requests/s", "in flight": "requests in flight",
          "us": "completion time, us"}


def measure(source, on):
    if on == SIM:
        rows = source.simulated("fig1", "One queue pair")
        columns = {"requests/s": "requests/s", "in flight": "in flight", "us": "completion us"}
        return {unit: {int(threads): {"off": row[column]} for threads, row in rows.items()}
                for unit, column in columns.items()}
    cases = source.question("threads", on)
    return {unit: by_unit(cases, "p50 us" if unit == "us" else unit, "threads")
            for unit in PANELS}


def draw(figure, data):
    for axes, (unit, text) in zip(canvas.panels(figure, len(PANELS)), PANELS.items()):
        canvas.lines(axes, data[unit], text, "threads", unit)


def judge(data):
    rates = {threads: row["off"] for threads, row in data["requests/s"].items()}
    peak = first_peak(rates)
    last = list(rates)[-1]
    fall = 1 - rates[last] / rates[peak]
    growth = {unit: data[unit][last]["off"] / data[unit][peak]["off"]
              for unit in ("in flight", "us")}
    return [
        Verdict("a peak, then a fall", fall > 0.03,
                f"The peak is at {peak} thread(s); with {last} there are {100 * fall:.0f} % "
                "fewer requests per second."),
        Verdict("in flight and time go on growing", min(growth.values()) > 1.03,
                f"From the peak to {last} threads {growth['in flight']:.1f} times as many are in "
                f"flight, and one takes {growth['us']:.1f} times as long."),
    ]

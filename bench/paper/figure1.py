# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 1: a device under more and more threads, without a window."""

from paper import LAB, NATIVE, canvas
from paper.source import by_unit

TITLE = "Figure 1: more threads, without admission control"
CLAIM = ("With more threads that write, requests per second rise to a peak and then fall, "
         "while requests in flight and their completion time go on growing.")
FABRICS = (NATIVE, LAB)

PANELS = {"requests/s": "requests/s", "in flight": "requests in flight, most",
          "p50 us": "completion time, p50 us"}


def measure(source, on):
    cases = source.question("threads", on)
    return {unit: by_unit(cases, unit, "threads") for unit in PANELS}


def draw(figure, data):
    for axes, (unit, text) in zip(canvas.panels(figure, len(PANELS)), PANELS.items()):
        canvas.lines(axes, data[unit], text, "threads", unit)


def judge(data):
    rates = {threads: row["off"] for threads, row in data["requests/s"].items()}
    times = [row["off"] for row in data["p50 us"].values()]
    peak = max(rates, key=rates.get)
    last = list(rates)[-1]
    fall = 1 - rates[last] / rates[peak]
    return fall > 0.03 and times[-1] > times[0], (
        f"The peak is at {peak} thread(s); with {last} there are {100 * fall:.0f} % fewer "
        f"requests per second, and one takes {times[-1] / times[0]:.0f} times as long as "
        "with one thread.")

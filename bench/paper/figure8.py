# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 8: the load of figure 1 with a window, on a device that collapses."""

from paper import NATIVE, canvas
from paper.source import by_unit

TITLE = "Figure 8: with and without admission control"
CLAIM = ("A window on the bytes in flight keeps them stable and raises the peak of requests per "
         "second by 29.9 %.")
FABRICS = (NATIVE,)
# Work requests that are free, and ns for each one more: the soft device itself has no
# knee, so one is modelled, and the page says so.
OVERLOAD = "4:3000"
PANELS = {"requests/s": "requests/s", "in flight": "requests in flight, most"}


def measure(source, on):
    source.require("auto", "--window auto")
    source.require("overload", "--overload")
    cases = source.question("threads", on, "--window", "off", "--window", "auto",
                            "--overload", OVERLOAD)
    return {unit: by_unit(cases, unit, "threads") for unit in PANELS}


def draw(figure, data):
    for axes, (unit, text) in zip(canvas.panels(figure, len(PANELS)), PANELS.items()):
        canvas.lines(axes, data[unit], text, "threads", unit)


def judge(data):
    peaks = {window: max(row[window] for row in data["requests/s"].values())
             for window in ("off", "auto")}
    last = list(data["requests/s"].values())[-1]
    gain = 100 * (peaks["auto"] / peaks["off"] - 1)
    return gain > 0, (
        f"The peak with --window auto is {gain:+.0f} % of that without, and with most threads "
        f"there are {last['auto'] / last['off']:.2f} times the requests per second, on a soft "
        f"device that was told to collapse (--overload {OVERLOAD}, a model of a NIC's knee).")

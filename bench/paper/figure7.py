# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 7: the slowest requests of the ways of batching."""

from paper import LAB, NATIVE, canvas
from paper.source import by_unit

TITLE = "Figure 7: 99th percentile of the ways of batching"
CLAIM = ("Merging and chaining do not make the slowest requests slower: the 99th percentile of "
         "hybrid is below that of single.")
FABRICS = (NATIVE, LAB)
UNIT = "p99 us"


def measure(source, on):
    return by_unit(source.question("batching", on), UNIT)


def draw(figure, data):
    (axes,) = canvas.panels(figure, 1)
    figure.set_size_inches(9, canvas.PANEL_HEIGHT)
    canvas.bars(axes, data, "99th percentile", UNIT)


def judge(data):
    ratios = {workload: row["hybrid dynMR"] / row["single dynMR"]
              for workload, row in data.items()}
    return max(ratios.values()) <= 1.03, "; ".join(
        f"{workload}: hybrid has {ratio:.2f} times the p99 of single"
        for workload, ratio in ratios.items()) + "."

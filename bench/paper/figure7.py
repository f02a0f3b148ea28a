# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 7: the slowest requests of the ways of batching."""

from functools import partial

from paper import Verdict, batching

TITLE = "Figure 7: 99th percentile of the ways of batching"
CLAIM = ("Merging and chaining do not make the slowest requests slower: the 99th percentile of "
         "hybrid is below that of single.")
FABRICS = batching.FABRICS
UNIT = "p99 us"

measure = partial(batching.measure, unit=UNIT)
draw = partial(batching.draw_bars, title="99th percentile", unit=UNIT)


def judge(data):
    ratios = {workload: row["hybrid dynMR"] / row["single dynMR"]
              for workload, row in data.items()}
    return [Verdict("hybrid is not slower than single", max(ratios.values()) <= 1.03, "; ".join(
        f"{workload}: hybrid has {ratio:.2f} times the p99 of single"
        for workload, ratio in ratios.items()) + ".")]

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 6: throughput of the ways of batching."""

from functools import partial

from paper import Verdict, batching
from paper.batching import best_of

TITLE = "Figure 6: ways of batching"
CLAIM = ("Merging beats single work requests (by 11 to 24 %) and doorbell batching; merging and "
         "chaining together, hybrid, are best on both the read-heavy ETC and the write-heavy SYS "
         "(16 to 48 % over single, 8 to 22 % over doorbell).")
FABRICS = batching.FABRICS
UNIT = "requests/s"
# Each with its better kind of buffer; less than this is equal.
EQUAL_PERCENT = 3

measure = partial(batching.measure, unit=UNIT)
draw = partial(batching.draw_bars, title="ways of batching", unit=UNIT)


def over(data, mode, others):
    """A verdict: a way of batching is no worse than others, on any workload."""
    gains = {(workload, other): 100 * (best_of(row, mode) / best_of(row, other) - 1)
             for workload, row in data.items() for other in others}
    texts = [f"{gain:+.0f} % over {other} on {workload}"
             for (workload, other), gain in gains.items()]
    return Verdict(f"{mode} beats {' and '.join(others)}", min(gains.values()) > -EQUAL_PERCENT,
                   f"{', '.join(texts)} (within {EQUAL_PERCENT} % is equal).")


def judge(data):
    return [over(data, "merge", ("single", "doorbell")),
            over(data, "hybrid", ("single", "merge", "doorbell"))]

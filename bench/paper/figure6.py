# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 6: throughput of the ways of batching."""

from functools import partial

from paper import batching

TITLE = "Figure 6: ways of batching"
CLAIM = ("Merging beats single work requests (by 11 to 24 %) and doorbell batching; merging and "
         "chaining together, hybrid, are best on both the read-heavy ETC and the write-heavy SYS "
         "(16 to 48 % over single, 8 to 22 % over doorbell).")
FABRICS = batching.FABRICS
UNIT = "requests/s"

measure = partial(batching.measure, unit=UNIT)
draw = partial(batching.draw_bars, title="ways of batching", unit=UNIT)


def best_of(row, mode):
    return max(rate for name, rate in row.items() if name.split()[0] == mode)


def judge(data):
    held, texts = True, []
    for workload, row in data.items():
        hybrid = best_of(row, "hybrid")
        over = {mode: 100 * (hybrid / best_of(row, mode) - 1)
                for mode in ("single", "merge", "doorbell")}
        merging = best_of(row, "merge") / max(best_of(row, "single"), best_of(row, "doorbell"))
        held = held and min(over.values()) > -3 and merging > 0.97
        texts.append(f"{workload}: hybrid {over['single']:+.0f} % over single, "
                     f"{over['merge']:+.0f} % over merging, "
                     f"{over['doorbell']:+.0f} % over doorbell")
    return held, "; ".join(texts) + " (each with its better kind of buffer; within 3 % is equal)."

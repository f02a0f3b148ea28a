# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The data of figures 6 and 7 and table I: the runs of bench/batching, one unit each."""

from paper import LAB, NATIVE, SIM, canvas
from paper.source import by_unit

FABRICS = (NATIVE, LAB, SIM)
WIDTH = 9  # inches: eight bars to a group

# What the simulator calls a unit, and how many times as large that is here.
COLUMNS = {"requests/s": ("requests/s", 1), "work requests": ("work requests of 1000", 1000),
           "p99 us": ("p99 us", 1)}


def measure(source, on, unit):
    """{workload: {"MODE BUFFERS": median}} of one unit."""
    if on == SIM:
        column, scale = COLUMNS[unit]
        return {workload: {name: row[column] * scale for name, row in
                           source.simulated("fig6", workload).items()}
                for workload in ("ETC", "SYS")}
    return by_unit(source.question("batching", on), unit)


def best_of(row, mode):
    """The figure of a way of batching, with its better kind of buffer."""
    return max(value for name, value in row.items() if name.split()[0] == mode)


def draw_bars(figure, data, title, unit):
    (axes,) = canvas.panels(figure, 1)
    figure.set_size_inches(WIDTH, canvas.PANEL_HEIGHT)
    canvas.bars(axes, data, title, unit)

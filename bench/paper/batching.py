# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What figures 6 and 7 and table I share: the runs of bench/batching, a unit each."""

from paper import LAB, NATIVE, canvas
from paper.source import by_unit

FABRICS = (NATIVE, LAB)
WIDTH = 9  # inches: eight bars to a group


def measure(source, on, unit):
    """{workload: {"MODE BUFFERS": median}} of one unit."""
    return by_unit(source.question("batching", on), unit)


def draw_bars(figure, data, title, unit):
    (axes,) = canvas.panels(figure, 1)
    figure.set_size_inches(WIDTH, canvas.PANEL_HEIGHT)
    canvas.bars(axes, data, title, unit)

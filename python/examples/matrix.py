# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A numpy array in remote memory, of which only a part is here."""

import sys

import numpy

import rdmabox

rows = numpy.full((100, 1000), 0.1)
if len(sys.argv) != 2:
    sys.exit("usage: matrix.py SERVER:PORT[,SERVER:PORT...]")
with rdmabox.Context() as context, context.volume(sys.argv[1], "8M") as volume:
    volume.write(rows, 0)  # from the array's memory, without a copy
    row = numpy.empty(1000)
    total = 0.0
    with context.region(row) as region:  # registered once: the cheapest way with a NIC
        for n in range(len(rows)):
            volume.read_into(region, n * row.nbytes)
            total += float(row @ row)
print("sum of squares:", total)

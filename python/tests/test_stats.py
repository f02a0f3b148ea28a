# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Statistics."""

import dataclasses
import os
import re
from pathlib import Path

import rdmabox


def test_stats_count_what_was_done(volume: rdmabox.Volume) -> None:
    context = volume.context
    context.reset_stats()
    assert context.stats().requests == 0
    for i in range(10):
        volume.write(bytes(100), i * 4096)
    volume.read(0, 50)
    stats = context.stats()
    assert stats.requests == 11 and stats.bytes == 1050 and stats.errors == 0
    assert 0 < stats.latency_p50_ns <= stats.latency_p99_ns <= stats.latency_max_ns
    as_dict = stats.as_dict()
    assert as_dict["requests"] == 11 and as_dict == dataclasses.asdict(stats)


def test_stats_have_all_names_of_the_headers() -> None:
    include = Path(os.environ["RDMABOX_SOURCE"], "include", "rdmabox")
    for name, kind in (("stats.h", rdmabox.Stats), ("server_stats.h", rdmabox.ServerStats)):
        names = re.findall(r'X\((\w+), "', (include / name).read_text())
        assert len(names) > 10
        fields = [field.name for field in dataclasses.fields(kind)]
        assert [each for each in fields if not each.startswith("latency")] == names

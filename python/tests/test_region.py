# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Regions: memory that is registered once, and its parts."""

from typing import Iterator

import pytest

import rdmabox
from conftest import MIB, pattern


@pytest.fixture
def registering(server: rdmabox.Server) -> Iterator[rdmabox.Volume]:
    """A volume on a device that wants memory registered, as most NICs do."""
    with rdmabox.Context(fabric="soft", device="registered", tune_file="none") as context:
        with context.volume(server.address, 8 * MIB) as volume:
            yield volume


def test_region_is_a_buffer_everywhere(registering: rdmabox.Volume) -> None:
    volume = registering
    memory = bytearray(pattern(MIB))
    with volume.context.region(memory) as region:
        assert len(region) == MIB and region.buffer is memory
        volume.write(region, 0)
        assert volume.read(0, MIB) == memory
        volume.write(region[4096:8192], 2 * MIB)
        assert volume.read(2 * MIB, 4096) == memory[4096:8192]
        volume.write(b"new", 3 * MIB)
        volume.read_into_async(region[10:13], 3 * MIB).result()
        assert memory[9:14] == pattern(MIB)[9:10] + b"new" + pattern(MIB)[13:14]
        volume.run([("write", region[:100], 100), ("read", region[-4096:], 2 * MIB)])
        assert memory[-4096:] == pattern(MIB)[4096:8192]


def test_requests_of_a_region_register_nothing(registering: rdmabox.Volume) -> None:
    memory = bytearray(256 << 10)
    with registering.context.region(memory) as region:
        before = registering.context.stats()
        for _ in range(10):
            registering.write(region, 0)
        after = registering.context.stats()
    assert after.requests - before.requests == 10
    assert after.registrations == before.registrations
    assert after.staged_bytes == before.staged_bytes


def test_memory_of_a_region_cannot_be_resized(volume: rdmabox.Volume) -> None:
    memory = bytearray(4096)
    region = volume.context.region(memory)
    with pytest.raises(BufferError):
        memory.extend(b"more")
    region.close()
    memory.extend(b"more")
    assert len(memory) == 4100


def test_region_with_requests_is_not_closed(volume: rdmabox.Volume) -> None:
    region = volume.context.region(bytearray(4096))
    borrowed = region._lend(True)
    with pytest.raises(BufferError, match="1 requests use"):
        region.close()
    borrowed.release()
    volume.write(region, 0)
    region.close()
    region.close()


def test_closed_region_is_refused(volume: rdmabox.Volume) -> None:
    region = volume.context.region(bytearray(4096))
    part = region[:100]
    region.close()
    for buffer in (region, part):
        with pytest.raises(ValueError, match="region is closed"):
            volume.write(buffer, 0)
    assert not region._borrowers


def test_region_is_given_back_by_each_request(volume: rdmabox.Volume) -> None:
    with volume.context.region(bytearray(b"first, second")) as region:
        volume.writev([region[:5], region[5:]], 100)
        assert not region._borrowers
        assert volume.read(100, 13) == b"first, second"
        volume.readv([region[8:], region[:8]], 100)
        assert not region._borrowers
        assert region.buffer == b", secondfirst"
        with pytest.raises(ValueError, match="cannot change its size"):
            volume[0:3] = region[:5]
        assert not region._borrowers


def test_region_of_read_only_memory_is_not_read_into(volume: rdmabox.Volume) -> None:
    content = pattern(4096)
    with volume.context.region(content) as region:
        volume.write(region, 0)
        assert volume.read(0, 4096) == content
        with pytest.raises(BufferError, match="read-only"):
            volume.read_into(region, 0)


def test_parts_are_contiguous(volume: rdmabox.Volume) -> None:
    with volume.context.region(bytearray(100)) as region:
        assert len(region[10:20]) == 10 and len(region[90:]) == 10 and len(region[20:10]) == 0
        with pytest.raises(ValueError, match="step"):
            region[::2]


def test_region_of_nothing_is_refused(volume: rdmabox.Volume) -> None:
    with pytest.raises(rdmabox.Error):
        volume.context.region(b"")
    with pytest.raises(TypeError):
        volume.context.region("text")

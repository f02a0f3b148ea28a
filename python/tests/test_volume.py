# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Volumes: reads and writes that are waited for, slices, status, and bad input."""

import errno

import pytest

import rdmabox
from conftest import MIB, pattern
from rdmabox import _context


def test_write_is_read_back(volume: rdmabox.Volume) -> None:
    content = pattern(100_000)
    volume.write(content, 12_345)
    assert volume.read(12_345, len(content)) == content
    back = bytearray(len(content))
    volume.read_into(back, 12_345)
    assert back == content


def test_never_written_reads_as_zeros(volume: rdmabox.Volume) -> None:
    assert volume.read(5 * MIB, 4096) == bytes(4096)


def test_all_of_a_volume_at_once(volume: rdmabox.Volume) -> None:
    content = pattern(len(volume))
    volume.write(content, 0)
    assert volume.read(0, len(volume)) == content


def test_request_of_nothing_does_nothing(volume: rdmabox.Volume) -> None:
    volume.write(b"", 0)
    volume.read_into(bytearray(), 0)
    assert volume.read(0, 0) == b""


def test_fenced_requests_carry_the_same(volume: rdmabox.Volume) -> None:
    volume.write(b"fenced", 10, fence=True)
    assert volume.read(10, 6, fence=True) == b"fenced"


def test_vectors_are_one_after_another(volume: rdmabox.Volume) -> None:
    volume.writev([b"abc", b"", bytearray(b"defgh")], 1000)
    assert volume.read(1000, 8) == b"abcdefgh"
    first, second = bytearray(5), bytearray(3)
    volume.readv([first, second], 1000)
    assert (first, second) == (b"abcde", b"fgh")


def test_vectors_that_are_none_are_refused(volume: rdmabox.Volume) -> None:
    with pytest.raises(rdmabox.Error) as caught:
        volume.writev([], 0)
    assert caught.value.errno == errno.EINVAL
    with pytest.raises(rdmabox.Error):
        volume.writev([b"x"] * 257, 0)
    with pytest.raises(BufferError):
        volume.readv([bytearray(1), b"read-only"], 0)


def test_slices_read_and_write(volume: rdmabox.Volume) -> None:
    content = pattern(3000)
    volume[100:3100] = content
    assert volume[100:3100] == content
    assert volume[:100] == volume.read(0, 100)
    assert volume[200] == content[100]
    volume[200] = 7
    assert volume[200:201] == b"\x07"
    volume[-5:] = b"tail!"
    assert volume[len(volume) - 5:] == b"tail!"
    assert volume[-1] == ord("!")
    assert volume[len(volume):] == b""


def test_slices_that_make_no_sense_are_refused(volume: rdmabox.Volume) -> None:
    volume[0:10] = b"0123456789"
    with pytest.raises(ValueError, match="3 bytes for a part of 4"):
        volume[0:4] = b"abc"
    with pytest.raises(ValueError, match="step"):
        volume[0:10:2]
    with pytest.raises(IndexError):
        volume[len(volume)]
    with pytest.raises(IndexError):
        volume[-len(volume) - 1] = 1
    with pytest.raises(ValueError):
        volume[0] = 256
    with pytest.raises(TypeError):
        iter(volume)
    assert volume[0:10] == b"0123456789"


def test_size_is_as_asked_for(context: rdmabox.Context, server: rdmabox.Server) -> None:
    with context.volume([server.address], "3M") as volume:
        assert len(volume) == 3 * MIB
        assert volume.context is context


def test_ranges_beyond_the_volume_are_refused(volume: rdmabox.Volume) -> None:
    for offset, length in [(len(volume), 1), (len(volume) - 1, 2), (1 << 62, 4096)]:
        with pytest.raises(rdmabox.Error, match="beyond the volume") as caught:
            volume.read(offset, length)
        assert caught.value.errno == errno.EINVAL
        with pytest.raises(rdmabox.Error, match="beyond the volume"):
            volume.write(bytes(length), offset)
    with pytest.raises(ValueError):
        volume.read(0, -1)
    with pytest.raises(OverflowError):
        volume.read(-1, 1)


def test_checksums_want_whole_pages(context: rdmabox.Context, server: rdmabox.Server) -> None:
    with context.volume(server.address, MIB, checksums=True) as volume:
        page = pattern(4096)
        volume.write(page, 4096)
        assert volume.read(4096, 4096) == page
        with pytest.raises(rdmabox.Error, match="whole pages"):
            volume.read(0, 100)


def test_on_demand_borrows_with_the_first_write(context: rdmabox.Context,
                                                server: rdmabox.Server) -> None:
    with context.volume(server.address, 4 * MIB, on_demand=True) as volume:
        assert volume.status().slabs_blank == 4
        volume.write(b"here", MIB)
        assert volume.status().slabs_blank == 3
        assert volume.read(MIB, 4) == b"here"
        volume.discard(MIB, MIB)
        assert volume.read(MIB, 4) == bytes(4)


def test_status_counts_slabs_and_servers(volume: rdmabox.Volume) -> None:
    status = volume.status()
    assert (status.slabs, status.slabs_whole, status.slabs_lost) == (8, 8, 0)
    assert (status.servers, status.servers_up) == (1, 1)


def test_added_server_is_of_the_volume(context: rdmabox.Context, volume: rdmabox.Volume) -> None:
    with rdmabox.Server(memory="8M", slab="1M", on_log=lambda line: None) as another:
        volume.add_server(another.address)
        assert volume.status().servers == 2
        with pytest.raises(rdmabox.Error):
            volume.add_server("no address")
        volume.close()


def test_volumes_that_cannot_be_are_refused(context: rdmabox.Context,
                                            server: rdmabox.Server) -> None:
    with pytest.raises(rdmabox.Error) as caught:
        context.volume(server.address, "1T")
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(rdmabox.Error):
        context.volume(server.address, MIB, replicas=2)
    with pytest.raises(rdmabox.Error):
        context.volume("127.0.0.1:1", MIB)
    with pytest.raises(rdmabox.Error):
        context.volume(server.address, 100)
    with pytest.raises(rdmabox.Error):
        context.volume(server.address, "a lot")
    with pytest.raises(TypeError):
        context.volume(server.address, MIB, replica=1)  # type: ignore[call-arg]


def test_description_of_any_length_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    with rdmabox.Context(tune_file="none") as context:
        whole = context.describe()
        length = sum(len(name) + len(value) + 2 for name, value in whole.items())
        for room in range(length - 2, length + 3):
            monkeypatch.setattr(_context, "DESCRIPTION_BYTES", room)
            assert context.describe() == whole


def test_options_are_told_by_the_context() -> None:
    with rdmabox.Context(mode="doorbell", window="1M", insecure=True, tune_file="none") as context:
        described = context.describe()
        assert described["mode"] == "doorbell"
        assert described["insecure"] == "1"
        assert rdmabox.parse_size(described["window"]) == MIB
        context.set_polling("event")
        assert context.describe()["polling"].startswith("event")
        with pytest.raises(rdmabox.Error):
            context.set_polling("sometimes")


def test_options_that_are_none_are_refused() -> None:
    with pytest.raises(rdmabox.Error, match="mode") as caught:
        rdmabox.Context(mode="fast")
    assert caught.value.errno == errno.EINVAL
    with pytest.raises(rdmabox.Error):
        rdmabox.Context(no_such_option=1)
    with pytest.raises(ValueError, match="pollers"):
        rdmabox.Context(pollers=0)


def test_sizes_are_parsed() -> None:
    assert rdmabox.parse_size("64K") == 65536
    assert rdmabox.parse_size("2MiB") == 2 * MIB
    with pytest.raises(rdmabox.Error):
        rdmabox.parse_size("many")

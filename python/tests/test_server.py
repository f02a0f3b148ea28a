# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers of this process."""

import errno
import threading
import time
from typing import Callable, List

import pytest

import rdmabox
from conftest import MIB


def test_server_lends_and_is_told_of_it() -> None:
    with rdmabox.Server(memory="8M", slab="1M", on_log=lambda line: None) as server:
        assert server.address.startswith("127.0.0.1:") and not server.address.endswith(":0")
        assert "soft" in server.describe()
        with rdmabox.Context(tune_file="none") as context:
            with context.volume(server.address, 4 * MIB) as volume:
                volume.write(b"lent", 0)
                stats = server.stats()
                assert (stats.lent_bytes, stats.slabs_lent, stats.slab_bytes) == (4 * MIB, 4, MIB)
                asked = context.query_server(server.address)
                assert asked.lent_bytes == 4 * MIB and asked.memory_bytes == 8 * MIB
                assert volume.read(0, 4) == b"lent"
        server.drain(10_000)
        assert server.stats().slabs_lent == 0


def test_log_is_told_line_by_line() -> None:
    lines: List[str] = []
    threads = set()

    def on_log(line: str) -> None:
        time.sleep(0.1)  # so that it is behind when the server stops
        lines.append(line)
        threads.add(threading.current_thread().name)

    server = rdmabox.Server(memory="8M", slab="1M", on_log=on_log)
    with rdmabox.Context(tune_file="none") as context:
        context.volume(server.address, MIB).close()
    server.stop()
    # All of it has been told when it has stopped.
    assert any("admitted" in line for line in lines), lines
    assert any("has left" in line for line in lines), lines
    assert threads == {"rdmabox-log"}


def test_drain_ends_with_what_is_still_lent() -> None:
    with rdmabox.Server(memory="8M", slab="1M", on_log=lambda line: None) as server:
        with rdmabox.Context(tune_file="none") as context:
            with context.volume(server.address, MIB):
                with pytest.raises(rdmabox.Error) as caught:
                    server.drain(100)
                assert caught.value.errno == errno.ETIMEDOUT


def test_stop_twice_and_use_after_it() -> None:
    server = rdmabox.Server(memory="8M", slab="1M", on_log=lambda line: None)
    address = server.address
    server.stop()
    server.close()
    assert server.closed
    calls: List[Callable[[], object]] = [
        server.stats, server.describe, lambda: server.address, lambda: server.drain(1)]
    for call in calls:
        with pytest.raises(ValueError, match="server is closed"):
            call()
    with rdmabox.Context(tune_file="none") as context:
        with pytest.raises(rdmabox.Error) as caught:
            context.query_server(address)
        assert "is a server running there?" in str(caught.value)


def test_servers_that_cannot_be_are_refused() -> None:
    with rdmabox.Server(memory="8M", slab="1M", on_log=lambda line: None) as server:
        with pytest.raises(rdmabox.Error) as caught:
            rdmabox.Server(listen=server.address, memory="8M", slab="1M")
        assert caught.value.errno == errno.EADDRINUSE
    with pytest.raises(rdmabox.Error) as caught:
        rdmabox.Server(listen="0.0.0.0:0", memory="8M", slab="1M")
    assert caught.value.errno == errno.EPERM
    with pytest.raises(rdmabox.Error, match="slab"):
        rdmabox.Server(memory="8M", slab="3M")
    with pytest.raises(TypeError, match="no option 'colour'"):
        rdmabox.Server(colour="red")
    with pytest.raises(ValueError, match="listen is longer than 127 bytes"):
        rdmabox.Server(listen="x" * 128)
    threads = threading.enumerate()
    with pytest.raises(rdmabox.Error):
        rdmabox.Server(listen="nowhere", on_log=lambda line: None)
    assert set(threading.enumerate()) <= set(threads)


def test_quota_is_kept() -> None:
    with rdmabox.Server(memory="8M", slab="1M", quota="2M", on_log=lambda line: None) as server:
        with rdmabox.Context(tune_file="none") as context:
            with pytest.raises(rdmabox.Error) as caught:
                context.volume(server.address, 4 * MIB)
            assert caught.value.errno == errno.EDQUOT
            context.volume(server.address, 2 * MIB).close()


def test_notices_are_bounded_and_counted() -> None:
    """A callback that does not return: the queue is full some time, and that is told."""
    from rdmabox import _native, _notices

    go_on = threading.Event()
    begun = threading.Event()
    told: List[int] = []

    def take(notice: object) -> None:
        begun.set()
        go_on.wait()
        told.append(notice.dropped_count)  # type: ignore[attr-defined]

    notices = _notices.Notices("full", take)
    put = _native.lib.rbxpy_server_log
    put(b"first", notices.native)
    begun.wait()
    for _ in range(1500):
        put(b"line", notices.native)
    go_on.set()
    while len(told) < 1025:
        pass
    go_on.clear()
    for _ in range(1000):  # there is room once more
        put(b"last", notices.native)
    go_on.set()
    notices.stop()
    assert len(told) == 2025 and told[:1025] == [0] * 1025
    assert told[1025] == 1500 - 1024 and told[1026:] == [0] * 999

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers that die under a volume with one replica and with two."""

import asyncio
import errno
import threading
import time
from typing import List, Tuple

import pytest

import rdmabox
from conftest import MIB, PEER_TIMEOUT_MS, ServerProcess, pattern

Servers = Tuple[ServerProcess, ServerProcess]


def test_one_replica_is_lost_with_its_server() -> None:
    process = ServerProcess()
    events: List[rdmabox.Event] = []
    with rdmabox.Context(fabric="soft", peer_timeout_ms=PEER_TIMEOUT_MS,
                         tune_file="none") as context:
        with context.volume(process.address, 4 * MIB, on_event=events.append) as volume:
            volume.write(b"gone", 0)
            process.kill()
            with pytest.raises(rdmabox.Error, match="lost all its replicas") as caught:
                for _ in range(10000):  # its memory may be mapped until it is missed
                    assert volume.read(0, 4) == b"gone"
                    time.sleep(0.001)
            assert caught.value.errno == errno.EIO
            future = volume.read_async(MIB, 10)
            error = future.exception(20)
            assert isinstance(error, rdmabox.Error) and error.errno == errno.EIO
            assert "read of 10 bytes at 1048576 failed" in str(error)
            memory = bytearray(10)

            async def main() -> None:
                results = await asyncio.gather(
                    *(volume.aread_into(memory, i * 4096) for i in range(100)),
                    return_exceptions=True)
                assert {result.errno for result in results
                        if isinstance(result, rdmabox.Error)} == {errno.EIO}
                assert all(isinstance(result, rdmabox.Error) for result in results)

            asyncio.run(main())
            memory.append(1)
            assert volume.status().slabs_lost == 4
    kinds = [event.kind for event in events]
    assert rdmabox.EventKind.SERVER_DOWN in kinds and rdmabox.EventKind.DATA_LOST in kinds


def test_two_replicas_survive_and_are_made_anew(two_servers: Servers) -> None:
    first, second = two_servers
    third = ServerProcess()
    rebuilt = threading.Event()
    down: List[str] = []

    def on_event(event: rdmabox.Event) -> None:
        # On a thread of Python: it may wait, here for the connection.
        if event.kind == rdmabox.EventKind.SERVER_DOWN:
            down.append(event.server)
            volume.add_server(third.address)
        elif event.kind == rdmabox.EventKind.REBUILD_DONE:
            rebuilt.set()
        raise RuntimeError("what a callback raises goes no further")

    content = bytearray(pattern(4 * MIB))
    quiet, threading.excepthook = threading.excepthook, lambda args: None
    try:
        with rdmabox.Context(fabric="soft", peer_timeout_ms=PEER_TIMEOUT_MS,
                             tune_file="none") as context:
            with context.volume([first.address, second.address], 4 * MIB, replicas=2,
                                on_event=on_event) as volume:
                volume.write(content, 0)
                futures = [volume.write_async(pattern(4096, i), i * 4096) for i in range(200)]
                first.kill()
                for i, each in enumerate(futures):
                    each.result(20)
                    content[i * 4096:(i + 1) * 4096] = pattern(4096, i)
                assert volume.read(0, 4 * MIB) == content
                assert rebuilt.wait(20)
                assert down == [first.address]
                # Now the other one: what is there is what was made anew.
                second.kill()
                assert volume.read(0, 4 * MIB) == content
                volume.write(b"still", 100)
                assert volume.read(100, 5) == b"still"
    finally:
        threading.excepthook = quiet
    third.kill()


def test_volume_may_be_closed_by_its_event() -> None:
    process = ServerProcess()
    closed = threading.Event()

    def on_event(event: rdmabox.Event) -> None:
        if not closed.is_set():
            volume.close()
            closed.set()

    with rdmabox.Context(fabric="soft", peer_timeout_ms=PEER_TIMEOUT_MS,
                         tune_file="none") as context:
        volume = context.volume(process.address, MIB, on_event=on_event)
        process.kill()
        assert closed.wait(20) and volume.closed

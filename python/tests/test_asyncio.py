# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Coroutines: many requests, several loops, and loops that end too early."""

import asyncio
import errno
import gc
import os
import threading
import weakref
from typing import List, Tuple

import numpy
import pytest

import rdmabox
from conftest import MIB, PEER_TIMEOUT_MS, ServerProcess, pattern
from rdmabox import _operations

PAGE = 4096


def test_a_thousand_requests(volume: rdmabox.Volume) -> None:
    async def main() -> None:
        await asyncio.gather(*(volume.awrite(pattern(PAGE, i), i * PAGE) for i in range(1000)))
        pages = await asyncio.gather(*(volume.aread(i * PAGE, PAGE) for i in range(1000)))
        for i, page in enumerate(pages):
            assert page == pattern(PAGE, i)

    volume.context.reset_stats()
    asyncio.run(main())
    stats = volume.context.stats()
    # A turn of the loop is a batch.
    assert stats.requests == 2000 and stats.merged_requests >= 1000


def test_requests_one_after_another(volume: rdmabox.Volume) -> None:
    async def main() -> None:
        for i in range(100):
            await volume.awrite(bytes([i]) * 100, i)
            assert await volume.aread(i, 100) == bytes([i]) * 100

    asyncio.run(main())


def test_buffers_are_filled(volume: rdmabox.Volume) -> None:
    async def main() -> None:
        matrix = numpy.arange(10_000, dtype=numpy.float64)
        back = numpy.zeros_like(matrix)
        await volume.awrite(matrix, 0)
        await volume.aread_into(back, 0)
        numpy.testing.assert_array_equal(back, matrix)
        assert await volume.aread(0, 0) == b""
        await volume.awrite(b"", 0)
        with volume.context.region(bytearray(b"region")) as region:
            await volume.awrite(region, 0, fence=True)
        assert await volume.aread(0, 6, urgent=True, merge=False) == b"region"

    asyncio.run(main())


def test_errors_are_raised_in_the_coroutine(volume: rdmabox.Volume) -> None:
    async def main() -> None:
        good = volume.awrite(b"good", 0)
        with pytest.raises(rdmabox.Error, match="beyond") as caught:
            await volume.aread(len(volume), 1)
        assert caught.value.errno == errno.EINVAL
        await good
        assert await volume.aread(0, 4) == b"good"
        with pytest.raises(BufferError):
            await volume.aread_into(b"read-only", 0)
        volume.close()
        with pytest.raises(ValueError, match="volume is closed"):
            await volume.aread(0, 1)

    asyncio.run(main())


def test_without_a_loop_it_is_an_error(volume: rdmabox.Volume) -> None:
    memory = bytearray(10)
    with pytest.raises(RuntimeError, match="no running event loop"):
        volume.aread_into(memory, 0)
    memory.append(1)


def test_loops_of_many_threads_take_nothing_of_each_other(volume: rdmabox.Volume) -> None:
    failures: List[BaseException] = []

    async def client(at: int) -> None:
        base = at * 200 * PAGE
        for turn in range(5):
            await asyncio.gather(*(volume.awrite(bytes([at, turn, i]) * 1000, base + i * PAGE)
                                   for i in range(200)))
            future = volume.read_async(base, PAGE)
            pages = await asyncio.gather(*(volume.aread(base + i * PAGE, 3000)
                                           for i in range(200)))
            assert pages == [bytes([at, turn, i]) * 1000 for i in range(200)]
            assert (await asyncio.wrap_future(future))[:3] == bytes([at, turn, 0])

    def run(at: int) -> None:
        try:
            asyncio.run(client(at))
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_more_than_may_be_outstanding(server: rdmabox.Server) -> None:
    async def main(volume: rdmabox.Volume) -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticker = asyncio.ensure_future(tick())
        content = pattern(8 * MIB, 3)
        await asyncio.gather(*(volume.awrite(memoryview(content)[i:i + MIB], i)
                               for i in range(0, 8 * MIB, MIB)))
        assert await volume.aread(0, 8 * MIB) == content
        pages = await asyncio.gather(*(volume.aread(i, PAGE) for i in range(0, 8 * MIB, PAGE)))
        assert b"".join(pages) == content
        assert ticks > 10  # the loop went on meanwhile
        ticker.cancel()

    with rdmabox.Context(requests_max=64, fragment_bytes=4096, tune_file="none",
                         peer_timeout_ms=PEER_TIMEOUT_MS) as context:
        with context.volume(server.address, 8 * MIB) as volume:
            asyncio.run(main(volume))


def test_plug_in_a_coroutine_holds_nobody_up(volume: rdmabox.Volume) -> None:
    async def main() -> None:
        with volume.context.plug():
            await volume.awrite(b"plugged", 0)
            assert await volume.aread(0, 7) == b"plugged"

    asyncio.run(asyncio.wait_for(main(), 10))


def test_cancelled_request_keeps_its_buffer(
        frozen: Tuple[rdmabox.Volume, ServerProcess]) -> None:
    volume, process = frozen
    memory = bytearray(pattern(MIB))

    async def main() -> None:
        request = asyncio.ensure_future(volume.aread_into(memory, 0))
        await asyncio.sleep(0.1)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        with pytest.raises(BufferError):
            memory.clear()
        process.thaw()
        while True:
            await asyncio.sleep(0.01)
            try:
                memory.append(1)
                break
            except BufferError:
                pass

    asyncio.run(asyncio.wait_for(main(), 20))
    assert memory[:6] == b"before"


def test_request_cancelled_at_once_is_not_sent(volume: rdmabox.Volume) -> None:
    async def main() -> None:
        request = asyncio.ensure_future(volume.awrite(b"never", 0))
        request.cancel()
        await asyncio.sleep(0.05)

    volume.context.reset_stats()
    asyncio.run(main())
    assert volume.read(0, 5) == bytes(5)
    assert volume.context.stats().requests == 1 and not _operations.outstanding


def test_loop_that_ends_before_its_requests(
        frozen: Tuple[rdmabox.Volume, ServerProcess]) -> None:
    volume, process = frozen
    memory = bytearray(pattern(MIB, 4))

    async def leave() -> None:
        volume.awrite(memory, MIB)
        await asyncio.sleep(0.05)

    async def stay() -> bytes:
        return await volume.aread(MIB, MIB)

    asyncio.run(leave())
    gc.collect()
    with pytest.raises(BufferError):
        memory.clear()
    process.thaw()
    volume.fence()
    # The next loop takes what the other has left.
    assert asyncio.run(stay()) == memory
    memory.clear()


def test_loops_are_not_kept(volume: rdmabox.Volume) -> None:
    async def main() -> "weakref.ref[asyncio.AbstractEventLoop]":
        await volume.awrite(b"x", 0)
        return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(main())
    gc.collect()
    assert loop() is None


def test_close_in_a_coroutine(server: rdmabox.Server) -> None:
    async def main() -> None:
        context = rdmabox.Context(tune_file="none")
        async with context.volume(server.address, MIB) as volume:
            requests = [asyncio.ensure_future(volume.awrite(b"x" * PAGE, i * PAGE))
                        for i in range(100)]
            await asyncio.sleep(0)
        late = context.volume(server.address, MIB)
        unsent = asyncio.ensure_future(late.awrite(b"x", 0))
        context.close()
        await asyncio.gather(*requests)
        with pytest.raises(ValueError, match="volume is closed"):
            await unsent

    asyncio.run(asyncio.wait_for(main(), 20))


def test_close_by_another_thread(server: rdmabox.Server) -> None:
    async def main() -> None:
        context = rdmabox.Context(tune_file="none")
        volume = context.volume(server.address, MIB)
        requests = [asyncio.ensure_future(volume.awrite(b"x" * PAGE, i * PAGE))
                    for i in range(100)]
        await asyncio.sleep(0)
        await asyncio.get_running_loop().run_in_executor(None, context.close)
        await asyncio.gather(*requests)

    asyncio.run(asyncio.wait_for(main(), 20))


def test_closed_contexts_leave_nothing_in_the_loop(server: rdmabox.Server) -> None:
    async def use() -> None:
        with rdmabox.Context(tune_file="none") as context:
            with context.volume(server.address, MIB) as volume:
                await volume.awrite(b"x", 0)

    def descriptors() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    async def main() -> None:
        await use()
        before = descriptors()
        for _ in range(10):
            await use()
        # A descriptor of the server may be on its way out.
        assert descriptors() < before + 5

    asyncio.run(main())

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Lifetimes: buffers and objects that a program drops, resizes or closes too early."""

import array
import gc
import mmap
import signal
import threading
import time
import warnings
import weakref
from typing import Any, Callable, Iterator, List, Set, Tuple

import numpy
import pytest

import rdmabox
from conftest import MIB, ServerProcess, pattern
from rdmabox import _operations
from rdmabox._handles import Handle

Frozen = Tuple[rdmabox.Volume, ServerProcess]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_buffer_cannot_be_resized_while_outstanding(frozen: Frozen) -> None:
    volume, process = frozen
    memory = bytearray(pattern(MIB))
    numbers = array.array("q", range(1000))
    mapping = mmap.mmap(-1, 4096)
    view = memoryview(bytearray(100))
    futures = [volume.read_into_async(memory, 0), volume.write_async(numbers, MIB),
               volume.write_async(mapping, 2 * MIB), volume.write_async(view, 3 * MIB)]
    for resize in (lambda: memory.append(1), lambda: memory.clear(), lambda: numbers.append(1),
                   mapping.close, view.release):
        with pytest.raises(BufferError):
            resize()
    matrix = numpy.zeros(100)
    futures.append(volume.write_async(matrix, 4 * MIB))
    with pytest.raises(ValueError):
        matrix.resize(10_000)
    assert not any(each.done() for each in futures)
    process.thaw()
    for each in futures:
        each.result(20)
    assert memory[:6] == b"before" and memory[6:] == bytes(MIB - 6)
    # Free as soon as the program can know that they are.
    memory.append(1)
    numbers.append(1)
    mapping.close()
    view.release()
    assert volume.read(MIB, 8000) == numbers.tobytes()[:8000]


def test_dropped_buffer_lives_until_the_end(frozen: Frozen) -> None:
    volume, process = frozen

    class Memory(bytearray):
        """A bytearray that can be watched."""

    memory = Memory(pattern(MIB, 7))
    watched = weakref.ref(memory)
    future = volume.write_async(memory, 0)
    del memory
    gc.collect()
    assert watched() is not None
    # Whatever would be there if it had been freed.
    junk = [bytearray(MIB) for _ in range(20)]
    process.thaw()
    future.result(20)
    wait_until(lambda: watched() is None)
    assert volume.read(0, MIB) == pattern(MIB, 7)
    assert junk[0] == bytes(MIB)


def test_dropped_future_and_volume_live_until_the_end(server: rdmabox.Server) -> None:
    process = ServerProcess()
    context = rdmabox.Context(fabric="soft:tcp", tune_file="none")
    volume = context.volume(process.address, MIB)
    process.freeze()
    memory = bytearray(pattern(MIB, 8))
    volume.write_async(memory, 0)
    handle = volume._handle
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del volume
        gc.collect()
        with pytest.raises(BufferError):
            memory.clear()
        assert handle.is_open
        process.thaw()
        # The last request has ended, and with it the volume.
        wait_until(lambda: not handle.is_open)
    memory.clear()
    context.close()
    process.kill()


def test_dropped_things_are_closed_with_a_warning(server: rdmabox.Server) -> None:
    context = rdmabox.Context(tune_file="none")
    lent = server.stats().slabs_lent
    volume = context.volume(server.address, 4 * MIB)
    region = context.region(bytearray(4096))
    assert server.stats().slabs_lent == lent + 4
    with pytest.warns(ResourceWarning, match="unclosed volume of 4194304 bytes"):
        del volume
        gc.collect()
    with pytest.warns(ResourceWarning, match="unclosed region of 4096 bytes"):
        del region
        gc.collect()
    wait_until(lambda: server.stats().slabs_lent == lent)
    handle = context._handle
    with pytest.warns(ResourceWarning, match="unclosed context"):
        del context
        gc.collect()
    wait_until(lambda: not handle.is_open)


def test_volume_keeps_its_context(server: rdmabox.Server) -> None:
    volume = rdmabox.Context(tune_file="none").volume(server.address, MIB)
    gc.collect()
    volume.write(b"alive", 0)
    assert volume.read(0, 5) == b"alive"
    volume.context.close()


def test_close_waits_for_what_is_outstanding(frozen: Frozen) -> None:
    volume, process = frozen
    back = bytearray(6)
    futures = [volume.write_async(bytes([i]) * 4096, 4096 * (i + 1)) for i in range(100)]
    futures.append(volume.read_into_async(back, 0))
    closed = threading.Event()

    def close() -> None:
        volume.close()
        closed.set()

    thread = threading.Thread(target=close)
    thread.start()
    assert not closed.wait(0.3)
    with pytest.raises(ValueError, match="volume is closed"):
        volume.read(0, 1)
    process.thaw()
    assert closed.wait(20)
    thread.join()
    for each in futures:
        assert each.result(20) is None
    assert back == b"before"


def test_close_of_the_context_closes_all(server: rdmabox.Server) -> None:
    context = rdmabox.Context(tune_file="none")
    volumes = [context.volume(server.address, MIB) for _ in range(3)]
    region = context.region(bytearray(4096))
    futures = [volume.write_async(region, 0) for volume in volumes]
    context.close()
    assert context.closed and all(volume.closed for volume in volumes)
    for each in futures:
        assert each.result(0) is None
    region.buffer.append(1)


def test_close_of_the_context_keeps_regions_until_their_requests_end(frozen: Frozen) -> None:
    volume, process = frozen

    class RegionsFirst(Set[Handle]):
        """The children in the order that is wrong."""

        def __iter__(self) -> Iterator[Handle]:
            return iter(sorted(super().__iter__(), key=lambda each: each._kind != "region"))

    volume.context._handle._children = RegionsFirst(volume.context._handle._children)
    memory = [bytearray(pattern(4096, i)) for i in range(2)]
    regions = [volume.context.region(each) for each in memory]
    futures = [volume.write_async(region, i * 4096) for i, region in enumerate(regions)]
    thread = threading.Thread(target=volume.context.close)
    thread.start()
    wait_until(lambda: volume._handle._state != 0)
    time.sleep(0.1)
    assert all(region._handle.is_open for region in regions)
    for each in memory:
        with pytest.raises(BufferError):
            each.append(1)
    process.thaw()
    thread.join(20)
    assert [each.result(0) for each in futures] == [None] * 2
    assert not any(region._handle.is_open for region in regions)
    with rdmabox.Context(fabric="soft:tcp", tune_file="none") as context:
        assert context.query_server(process.address).slabs_lent == 0
    for each in memory:
        each.append(1)


def test_close_twice_and_from_many_threads(server: rdmabox.Server) -> None:
    context = rdmabox.Context(tune_file="none")
    volume = context.volume(server.address, MIB)
    things: List[Any] = [volume, context]
    for each in things:
        threads = [threading.Thread(target=each.close) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert each.closed
        each.close()


def calls_of(volume: rdmabox.Volume, context: rdmabox.Context) -> Any:
    buffer = bytearray(10)
    return [
        lambda: volume.read(0, 1), lambda: volume.read_into(buffer, 0),
        lambda: volume.write(b"x", 0), lambda: volume.read(0, 1, fence=True),
        lambda: volume.readv([buffer], 0), lambda: volume.writev([b"x"], 0),
        lambda: volume[0:1], lambda: volume.__setitem__(0, 1),
        lambda: volume.read_async(0, 1), lambda: volume.read_into_async(buffer, 0),
        lambda: volume.write_async(b"x", 0), lambda: volume.submit([("write", b"x", 0)]),
        lambda: volume.run([("read", buffer, 0)]), lambda: volume.fence(),
        lambda: volume.status(), lambda: volume.add_server("127.0.0.1:1"),
        lambda: volume.discard(0, 4096), lambda: volume.read_async(0, 0),
    ], [
        lambda: context.volume("127.0.0.1:1", MIB), lambda: context.region(buffer),
        lambda: context.describe(), lambda: context.stats(), lambda: context.reset_stats(),
        lambda: context.set_polling("busy"), lambda: context.query_server("127.0.0.1:1"),
        lambda: context.plug().__enter__(),
    ], buffer


def test_use_after_close_is_an_error(server: rdmabox.Server) -> None:
    context = rdmabox.Context(tune_file="none")
    volume = context.volume(server.address, MIB)
    of_volume, of_context, buffer = calls_of(volume, context)
    volume.close()
    for call in of_volume:
        with pytest.raises(ValueError, match="volume is closed"):
            call()
    assert len(volume) == MIB
    context.close()
    for call in of_context:
        with pytest.raises(ValueError, match="context is closed"):
            call()
    buffer.append(1)
    assert not _operations.outstanding


def test_close_while_others_use_it(server: rdmabox.Server) -> None:
    for turn in range(10):
        with rdmabox.Context(tune_file="none") as context:
            volume = context.volume(server.address, MIB)
            ended = []

            def use(at: int) -> None:
                try:
                    while True:
                        volume.write(bytes([at]) * 4096, at * 4096)
                        assert volume.read(at * 4096, 4096) == bytes([at]) * 4096
                        volume.write_async(bytes([at]) * 100, at * 4096).result(20)
                except ValueError as error:
                    ended.append(str(error))

            threads = [threading.Thread(target=use, args=(at,)) for at in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(0.01)
            volume.close()
            for thread in threads:
                thread.join(20)
            assert ended == ["the volume is closed"] * 4


@pytest.mark.parametrize("of_context", [False, True])
def test_close_in_a_signal_handler_does_not_wait_for_its_own_thread(
        frozen: Frozen, of_context: bool) -> None:
    volume, process = frozen

    def handler(*_: object) -> None:
        (volume.context if of_context else volume).close()
        process.thaw()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with volume._handle:  # as each call does
            signal.raise_signal(signal.SIGALRM)
            assert not volume.closed
    finally:
        signal.signal(signal.SIGALRM, before)
    wait_until(lambda: volume.closed and volume.context.closed == of_context)
    with pytest.raises(ValueError, match="closed"):
        volume.read(0, 1)


def test_callback_that_closes_what_another_thread_closes_does_not_wait(
        server: rdmabox.Server) -> None:
    context = rdmabox.Context(tune_file="none")
    volume = context.volume(server.address, MIB)
    begun, done = threading.Event(), threading.Event()

    def callback(_: object) -> None:
        begun.set()
        wait_until(lambda: context._handle._state != 0)
        wait_until(lambda: volume.closed)
        context.close()
        done.set()

    with context.plug():
        future = volume.write_async(b"x", 0)
        future.add_done_callback(callback)
    assert begun.wait(10)
    thread = threading.Thread(target=context.close, daemon=True)
    thread.start()
    assert done.wait(10)
    thread.join(10)
    assert not thread.is_alive() and context.closed and volume.closed


def test_handle_is_not_destroyed_while_it_is_used() -> None:
    destroyed = threading.Event()
    handle = Handle("thing", 17, lambda pointer: destroyed.set())
    with handle as pointer:
        assert pointer == 17
        thread = threading.Thread(target=handle.close)
        thread.start()
        assert not destroyed.wait(0.2)
        with pytest.raises(ValueError, match="thing is closed"):
            handle.__enter__()
    thread.join()
    assert destroyed.is_set() and not handle.is_open

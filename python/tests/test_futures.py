# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Futures and batches: many requests at once, from threads."""

import concurrent.futures
import errno
import threading
import time
from typing import Any, List, Sequence, Tuple

import pytest

import rdmabox
from conftest import MIB, PEER_TIMEOUT_MS, ServerProcess, pattern
from rdmabox import _buffers, _operations, _plugs
from rdmabox._native import ffi, lib
from rdmabox._operations import flags_of, outstanding

PAGE = 4096


def test_futures_have_results(volume: rdmabox.Volume) -> None:
    writes = [volume.write_async(pattern(PAGE, i), i * PAGE) for i in range(500)]
    assert [each.result() for each in writes] == [None] * 500
    reads = [volume.read_async(i * PAGE, PAGE) for i in range(500)]
    concurrent.futures.wait(reads)
    for i, each in enumerate(reads):
        assert each.done() and each.result() == pattern(PAGE, i)


def test_future_of_nothing_is_done(volume: rdmabox.Volume) -> None:
    assert volume.read_async(0, 0).result(0) == b""
    assert volume.write_async(b"", 0).result(0) is None


def test_futures_are_as_in_the_standard_library(volume: rdmabox.Volume) -> None:
    future = volume.write_async(b"x", 0)
    assert isinstance(future, concurrent.futures.Future)
    assert not future.cancel()
    told: "concurrent.futures.Future[threading.Thread]" = concurrent.futures.Future()
    future.add_done_callback(lambda each: told.set_result(threading.current_thread()))
    assert told.result(10).name in ("rdmabox-futures", threading.main_thread().name)
    assert future.exception() is None


def test_callback_that_raises_stops_nothing(volume: rdmabox.Volume,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    told: List[type] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: told.append(args.exc_type))

    def leave(_: object) -> None:
        raise SystemExit

    with volume.context.plug():  # so that none is done before it has its callback
        for _ in range(20):
            volume.write_async(bytes(MIB), 0).add_done_callback(leave)
    assert volume.read_async(0, 5).result(10) == bytes(5)
    volume.close()
    for _ in range(1000):  # callbacks are called by a thread of their own
        if len(told) == 20:
            break
        time.sleep(0.01)
    assert told == [SystemExit] * 20


def test_callback_may_wait(volume: rdmabox.Volume) -> None:
    volume.write(b"second", 100)
    read: "concurrent.futures.Future[bytes]" = concurrent.futures.Future()
    first = volume.read_async(0, MIB)
    first.add_done_callback(lambda _: read.set_result(volume.read(100, 6)))
    assert read.result(10) == b"second"


def test_error_is_that_of_the_request(volume: rdmabox.Volume) -> None:
    futures = volume.submit([("write", b"good", 0), ("write", b"bad", len(volume)),
                             ("write", b"also good", 100)])
    assert futures[0].result() is None and futures[2].result() is None
    error = futures[1].exception()
    assert isinstance(error, rdmabox.Error) and error.errno == errno.EINVAL
    assert "beyond the volume" in str(error)
    assert volume.read(0, 4) == b"good" and volume.read(100, 9) == b"also good"
    with pytest.raises(rdmabox.Error, match="beyond"):
        volume.read_async(len(volume), 1).result()


def test_batch_of_neighbours_is_merged(volume: rdmabox.Volume) -> None:
    content = pattern(64 * PAGE)
    volume.context.reset_stats()
    volume.run([("write", memoryview(content)[i * PAGE:(i + 1) * PAGE], i * PAGE)
                for i in range(64)])
    stats = volume.context.stats()
    assert stats.requests == 64 and stats.merged_requests >= 32
    assert stats.work_requests < 32 and stats.doorbells < 32
    back = [bytearray(PAGE) for _ in range(64)]
    volume.run([("read", back[i], i * PAGE) for i in range(64)])
    assert b"".join(back) == content


def test_batch_that_must_not_merge_does_not(volume: rdmabox.Volume) -> None:
    volume.context.reset_stats()
    volume.run([("write", bytes(PAGE), i * PAGE) for i in range(64)], merge=False)
    stats = volume.context.stats()
    assert stats.merged_requests == 0 and stats.work_requests >= 64


def test_batch_longer_than_a_submit(volume: rdmabox.Volume) -> None:
    content = pattern(5000 * 64)
    volume.run([("write", memoryview(content)[i * 64:(i + 1) * 64], i * 128) for i in range(5000)])
    assert volume.read(4999 * 128, 64) == content[-64:]
    assert volume.read(1234 * 128, 128) == content[1234 * 64:1235 * 64] + bytes(64)


def test_batches_of_what_is_no_request_are_refused(volume: rdmabox.Volume) -> None:
    buffer = bytearray(10)
    for requests in ([("write", buffer, 0), ("erase", buffer, 0)],
                     [("write", buffer, 0), ("read", b"read-only", 0)],
                     [("write", buffer, 0), ("write", 17, 0)]):
        with pytest.raises((ValueError, BufferError, TypeError)):
            volume.submit(requests)  # type: ignore[arg-type]
        with pytest.raises((ValueError, BufferError, TypeError)):
            volume.run(requests)  # type: ignore[arg-type]
    buffer.append(1)  # and nothing is borrowed any more
    assert volume.submit([]) == [] and volume.read(0, 10) == bytes(10)


@pytest.mark.parametrize("bad", [-1, 1 << 64, "text"])
def test_batches_with_an_offset_that_is_none_leave_nothing(volume: rdmabox.Volume,
                                                           bad: Any) -> None:
    buffers = [bytearray(b"x" * PAGE) for _ in range(3)]
    with volume.context.region(bytearray(2 * PAGE)) as region:
        for call in (volume.run, volume.submit):
            for at in range(3):
                requests = [("write", buffers[i], bad if i == at else i * PAGE) for i in range(3)]
                with pytest.raises((OverflowError, TypeError)):
                    call(requests)
            with pytest.raises((OverflowError, TypeError)):
                call([("read", region[:PAGE], bad), ("read", region[PAGE:], 0)])
        assert not region._borrowers
    assert not outstanding
    for each in buffers:
        each.append(1)
    assert volume.read(0, 3 * PAGE) == bytes(3 * PAGE)


def test_plug_that_is_interrupted_leaves_nothing(server: rdmabox.Server, volume: rdmabox.Volume,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    first = volume
    buffer = bytearray(b"never")

    def interrupted(volume: rdmabox.Volume, operations: Sequence[_operations.Operation]) -> None:
        assert volume is first
        for each in operations:
            each.withdraw(KeyboardInterrupt())
        raise KeyboardInterrupt

    with volume.context.volume(server.address, MIB) as second:
        with monkeypatch.context() as patch:
            patch.setattr(_plugs, "submit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                with volume.context.plug():
                    futures = [each.write_async(buffer, 0) for each in (first, second, first)]
        for each in futures:
            assert isinstance(each.exception(5), KeyboardInterrupt)
        assert not outstanding and not volume.context._sinks.held
        buffer.append(1)
        assert second.read(0, 5) == bytes(5)


def test_close_ends_though_an_operation_is_withdrawn_late(server: rdmabox.Server) -> None:
    with rdmabox.Context(tune_file="none") as context:
        volume = context.volume(server.address, MIB)
        # As of a thread that was held up between asking for it and submitting it.
        future, operation = volume._promise(True, 0, _buffers.borrow(b"late", False), 0)
        assert operation is not None
        thread = threading.Thread(target=context.close, daemon=True)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive() and not future.done()
        operation.withdraw(ValueError("the volume is closed"))
        thread.join(10)
        ended = not thread.is_alive()
        lib.rbxpy_queue_wake(operation.sink.queue)  # so that a failure does not hang, too
    assert ended
    with pytest.raises(ValueError, match="volume is closed"):
        future.result(0)


class NoMemory:
    """A module's `ffi` that has no memory for arrays of operations."""

    def __getattr__(self, name: str) -> Any:
        return getattr(ffi, name)

    def new(self, kind: str, *arguments: Any) -> Any:
        if kind == "struct rbxpy_operation *[]":
            raise MemoryError
        return ffi.new(kind, *arguments)


def test_no_memory_to_submit_is_the_error_of_the_operations(
        volume: rdmabox.Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = bytearray(b"never")
    with monkeypatch.context() as patch:
        patch.setattr(_operations, "ffi", NoMemory())
        for call in (lambda: volume.write_async(buffer, 0),
                     lambda: volume.submit([("write", buffer, 0)] * 3)):
            with pytest.raises(MemoryError):
                call()
            left = list(outstanding.values())
            for each in left:
                each.withdraw(MemoryError())
            assert not left
    buffer.append(1)
    assert volume.read_async(0, 5).result(10) == bytes(5)


def test_no_memory_for_a_result_is_the_error_of_its_future(
        volume: rdmabox.Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(_: object) -> bytes:
        raise MemoryError("no memory for the bytes")

    volume.write(b"there", 0)
    with monkeypatch.context() as patch:
        patch.setattr(_operations, "content", no_memory)
        assert isinstance(volume.read_async(0, 5).exception(10), MemoryError)
    assert volume.read_async(0, 5).result(10) == b"there"


@pytest.mark.parametrize("replicas", [1, 2])
def test_more_than_may_be_outstanding_waits_for_room(server: rdmabox.Server,
                                                     replicas: int) -> None:
    with rdmabox.Context(requests_max=64, fragment_bytes=4096, tune_file="none",
                         peer_timeout_ms=PEER_TIMEOUT_MS) as context, \
            rdmabox.Server(memory="16M", slab="1M", on_log=lambda line: None) as another:
        with context.volume([server.address, another.address], 8 * MIB,
                            replicas=replicas) as volume:
            content = pattern(8 * MIB)
            futures = [volume.write_async(memoryview(content)[i:i + MIB], i)
                       for i in range(0, 8 * MIB, MIB)]
            for each in futures:
                each.result()
            assert volume.read_async(0, 8 * MIB).result() == content
            pages = [bytearray(PAGE) for _ in range(1000)]
            volume.run([("read", page, i * PAGE) for i, page in enumerate(pages)])
            assert b"".join(pages) == content[:1000 * PAGE]


def test_fence_waits_for_what_was_submitted(volume: rdmabox.Volume) -> None:
    for turn in range(20):
        volume.submit([("write", bytes([turn]) * PAGE, i * PAGE) for i in range(200)])
        volume.fence()
        assert volume.read(0, 200 * PAGE) == bytes([turn]) * (200 * PAGE)


def test_fence_ends_with_the_last_of_the_earlier_requests(
        frozen: Tuple[rdmabox.Volume, ServerProcess]) -> None:
    volume, process = frozen
    future = volume.write_async(b"frozen", 0)
    thread = threading.Thread(target=volume.fence, daemon=True)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive() and not future.done()
    process.thaw()
    thread.join(10)
    assert not thread.is_alive()
    assert future.result(10) is None and volume.read(0, 6) == b"frozen"


def test_fenced_write_comes_after(volume: rdmabox.Volume) -> None:
    for turn in range(50):
        volume.submit([("write", b"\xff" * PAGE, 0)])
        volume.write(bytes([turn]) * PAGE, 0, fence=True)
        assert volume.read(0, PAGE) == bytes([turn]) * PAGE


def test_flags_are_those_of_the_library() -> None:
    assert flags_of(False, True, False) == 0
    assert flags_of(True, True, False) == lib.RBX_FENCE
    assert flags_of(True, False, True) == lib.RBX_FENCE | lib.RBX_NO_MERGE | lib.RBX_URGENT


def test_plug_makes_one_batch(volume: rdmabox.Volume) -> None:
    context = volume.context
    context.reset_stats()
    content = pattern(64 * PAGE, 5)
    with context.plug(), context.plug():
        futures = [volume.write_async(memoryview(content)[i:i + PAGE], i)
                   for i in range(0, 64 * PAGE, PAGE)]
        assert not any(each.done() for each in futures)
    for each in futures:
        each.result()
    stats = context.stats()
    assert stats.requests == 64 and stats.merged_requests >= 32
    assert volume.read(0, 64 * PAGE) == content


def test_whoever_waits_in_a_plug_is_served(volume: rdmabox.Volume) -> None:
    with volume.context.plug():
        future = volume.write_async(b"plugged", 0)
        assert future.result(10) is None
        assert volume.read_async(0, 7).exception(10) is None
        volume.write_async(b"fence", 0)
        volume.fence()
        assert volume.read(0, 7) == b"fenceed"


def test_plug_is_pulled_by_close(server: rdmabox.Server) -> None:
    context = rdmabox.Context(tune_file="none")
    volume = context.volume(server.address, MIB)
    with context.plug():
        future = volume.write_async(b"x", 0)
        assert not future.done()
        context.close()
        assert future.result(0) is None
    with pytest.raises(ValueError, match="closed"):
        context.plug().__enter__()


def test_plug_of_another_thread_keeps_nobody_from_closing(server: rdmabox.Server) -> None:
    leave = threading.Event()
    futures = []
    with rdmabox.Context(tune_file="none") as context:
        volume = context.volume(server.address, MIB)

        def stay() -> None:
            with context.plug():
                futures.append(volume.write_async(b"x", 0))
                leave.wait()

        thread = threading.Thread(target=stay)
        thread.start()
        while not futures:
            pass
    leave.set()
    thread.join()
    with pytest.raises(ValueError, match="context is closed"):
        futures[0].result(0)

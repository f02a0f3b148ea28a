# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Event loops: requests of coroutines.

Each loop has its own sink in each context, whose descriptor it watches. The requests that
the coroutines of a loop make in one pass of the loop are submitted at its end, as one batch.
So asyncio.gather() merges and chains.

If the volume is full, the rest waits here, since a loop must not block. It is tried again at
each completion. The volume may be full of other requests, so it is also tried again after
a moment.
"""

import asyncio
import threading
import weakref
from collections import deque
from typing import Any, Deque, List

from ._operations import Operation, Sink, submit, wait_all

BATCH_MAX = 4096
RETRY_S = 0.001


def deliver(operation: Operation, result: Any) -> None:
    """Ends an operation that a coroutine awaits, or has awaited."""
    future = operation.target
    if future.done() or future.get_loop().is_closed():
        return
    if operation.error is not None:
        future.set_exception(operation.error)
    else:
        future.set_result(result)


class LoopSink(Sink):
    """The operations of one loop in one context. Its methods run on the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        # The loop refers to this object. With a reference back neither would ever be
        # freed.
        self._loop = weakref.ref(loop)
        self._waiting: Deque[Operation] = deque()
        self._flush_is_due = False
        loop.add_reader(self.fileno(), self._readable)

    def add(self, operation: Operation) -> None:
        """Submits it at the end of this pass of the loop."""
        self._waiting.append(operation)
        if not self._flush_is_due:
            self._flush_is_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        while self._waiting:
            batch = self._next_batch()
            if not batch:
                continue
            try:
                taken = submit(batch[0].volume, batch, wait=False)
            except (ValueError, OSError):
                continue  # the volume is closed; each of them knows
            self._waiting.extendleft(reversed(batch[taken:]))
            if taken < len(batch):
                self._retry()
                break

    def _next_batch(self) -> List[Operation]:
        """Operations of one volume, except those that no coroutine awaits any more."""
        batch: List[Operation] = []
        while self._waiting and len(batch) < BATCH_MAX:
            if batch and self._waiting[0].volume is not batch[0].volume:
                break
            operation = self._waiting.popleft()
            if operation.target.cancelled():
                operation.withdraw(asyncio.CancelledError())
            else:
                batch.append(operation)
        return batch

    def _retry(self) -> None:
        loop = self._loop()
        if loop is not None and not self._flush_is_due and not loop.is_closed():
            self._flush_is_due = True
            loop.call_later(RETRY_S, self._flush)

    def _readable(self) -> None:
        self.take()
        if self._waiting:
            self._flush()

    # ---- The end -----------------------------------------------------------

    @property
    def is_orphan(self) -> bool:
        """Whether its loop is gone, so that any thread may take what ends."""
        loop = self._loop()
        return loop is None or loop.is_closed()

    def sweep(self) -> None:
        """Takes what has ended since the loop was closed."""
        for operation in self._waiting:
            operation.withdraw(asyncio.CancelledError())
        self._waiting.clear()
        self.take()

    def end(self) -> None:
        """Called by the close of the context, on any thread: its volumes are closed."""
        loop = self._loop()
        if loop is None or loop.is_closed() or not loop.is_running() or _is_running_here(loop):
            self._end_here()
            return
        try:
            loop.call_soon_threadsafe(self._end_here)
        except RuntimeError:  # closed meanwhile
            self._end_here()

    def _end_here(self) -> None:
        self._flush()  # which fails what waits, as the volume is closed
        wait_all(self)
        loop = self._loop()
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self.fileno())


def _is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class LoopSinks:
    """The sinks of a context."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopSink]" = (
            weakref.WeakKeyDictionary())
        self._all: "weakref.WeakSet[LoopSink]" = weakref.WeakSet()

    def here(self) -> LoopSink:
        """The sink of the loop that runs on this thread."""
        loop = asyncio.get_running_loop()
        sink = self._of.get(loop)
        if sink is None:
            sink = LoopSink(loop)
            with self._lock:
                for other in list(self._all):
                    if other.is_orphan:
                        other.sweep()
                self._of[loop] = sink
                self._all.add(sink)
        return sink

    def end(self) -> None:
        with self._lock:
            sinks = list(self._all)
            self._of.clear()
        for sink in sinks:
            sink.end()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Futures for threads: what read_async() and similar calls return."""

import concurrent.futures
import errno
import threading
from typing import Any, Optional, TypeVar

from . import _plugs, _process
from ._errors import Error
from ._operations import Operation, Sink, outstanding
from ._pump import Pump, call

T = TypeVar("T")


class Future(concurrent.futures.Future[T]):
    """A concurrent.futures.Future. What is submitted cannot be cancelled any more.

    Callbacks run on one thread of the context. They may submit and call what waits for
    its own request, such as Volume.read(), but not wait for another future.
    """

    def __init__(self) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()

    def result(self, timeout: Optional[float] = None) -> T:
        """Waits for the end; a plug of this thread lets all leave before."""
        _plugs.flush()
        return super().result(timeout)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """As result(), and returns what it would raise."""
        _plugs.flush()
        return super().exception(timeout)

    def _abandon(self) -> None:
        """In the child: it ends here, for its operation is the parent's.

        Threads that waited are not here any more, nor is whoever may hold its lock.
        """
        self._condition = threading.Condition()
        self._waiters = []  # type: ignore[var-annotated]
        self._done_callbacks = []  # type: ignore[var-annotated]
        if not self.done():
            self.set_exception(Error(errno.EINVAL, "it was submitted before fork(), and only the "
                                     "parent sees its end"))


def deliver(operation: Operation, result: Any) -> None:
    """Ends a Future with its operation. Exceptions of its callbacks go no further."""
    if operation.target.done():
        return
    if operation.error is not None:
        call(operation.target.set_exception, operation.error)
    else:
        call(operation.target.set_result, result)


class FutureSink(Sink):
    """The sink of a context's futures, with a thread that delivers."""

    def __init__(self) -> None:
        super().__init__()
        self._pump = Pump("rdmabox-futures", self.queue, self.take, lambda: not self.ids)

    def stop(self) -> None:
        self._pump.stop()


def _child() -> None:
    for operation in list(outstanding.values()):
        target: Any = operation.target
        if isinstance(target, Future):
            target._abandon()
    outstanding.clear()


_process.in_child(_child)

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that take from a queue of the native part and call Python.

These threads belong to Python, so what they call may do anything: raise, wait,
or close what the thread belongs to.
"""

import sys
import threading
from typing import Any, Callable

from ._native import lib


_here = threading.local()


def is_current() -> bool:
    """Whether this is a thread that calls callbacks; it must not wait for a close()."""
    return getattr(_here, "is_pump", False)


class Pump:
    """A thread that calls `take` whenever the queue has something."""

    def __init__(self, name: str, queue: Any, take: Callable[[], object],
                 is_idle: Callable[[], bool]) -> None:
        self._queue = queue
        self._take = take
        self._is_idle = is_idle  # nothing will come any more, once it was told to stop
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        _here.is_pump = True
        while True:
            self._take()
            if self._stopping and self._is_idle():
                # What was put before the stop has been taken by now.
                self._take()
                return
            lib.rbxpy_queue_wait(self._queue, -1)

    def stop(self) -> None:
        """Lets it take the rest, and waits for its end unless it is this thread."""
        self._stopping = True
        lib.rbxpy_queue_wake(self._queue)
        if threading.current_thread() is not self._thread:
            self._thread.join()


def call(function: Callable[..., object], *arguments: object) -> None:
    """Calls a function of the program; its exceptions are printed, and go no further."""
    try:
        function(*arguments)
    except BaseException:
        kind, value, traceback = sys.exc_info()
        threading.excepthook(threading.ExceptHookArgs(
            (kind, value, traceback, threading.current_thread())))

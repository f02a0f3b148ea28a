# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Notices: events of a volume and lines of a server's log, as calls of Python."""

import errno
from typing import Any, Callable

from . import _pump
from ._errors import Error, owned
from ._native import ffi, lib


class Notices:
    """Calls `function` with each notice, on a thread of its own."""

    def __init__(self, name: str, function: Callable[[Any], object]) -> None:
        self._function = function
        queue = lib.rbxpy_queue_new()
        if not queue:
            raise Error(errno.EMFILE, "cannot make a queue for events")
        self._queue = ffi.gc(queue, lib.rbxpy_queue_free)
        # What the callbacks of the library get; it outlives them, see stop().
        self.native = owned(lib.rbxpy_notices_new(self._queue), lib.rbxpy_notices_free, "events")
        self._pump = _pump.Pump(name, self._queue, self._take, lambda: True)

    def _take(self) -> None:
        while True:
            notice = lib.rbxpy_notices_take(self.native)
            if not notice:
                return
            try:
                _pump.call(self._function, notice)
            finally:
                lib.rbxpy_notice_free(notice)

    def stop(self) -> None:
        """The volume or server is closed: the program still gets the rest."""
        self._pump.stop()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A handle of the library: used by many threads, closed once.

The library forbids to use a handle while it is closed. So each call counts as a use,
close() refuses new ones and waits for those that are under way, and what was opened
with a handle is closed before it: volumes first, whose requests may use a region.
"""

import errno
import threading
import warnings
from typing import Any, Callable, Optional, Set

from . import _process
from ._errors import Error
from ._native import ffi

_OPEN, _CLOSING, _CLOSED = range(3)


class Handle:
    """`with handle as pointer:` is a use."""

    def __init__(self, kind: str, pointer: Any, destroy: Callable[[Any], None],
                 parent: "Optional[Handle]" = None) -> None:
        self._kind = kind
        self._pointer = pointer
        self._destroy = destroy
        self._parent = parent
        self._children: Set[Handle] = set()
        self._changed = threading.Condition(threading.Lock())
        self._state = _OPEN
        self._uses = 0
        self._generation = _process.generation
        if parent is None:
            _process.add_root(self, kind == "server")
        else:
            parent._children.add(self)

    @property
    def is_open(self) -> bool:
        return self._state != _CLOSED

    @property
    def is_ours(self) -> bool:
        """Whether it was opened by this process, and not by its parent."""
        return self._generation == _process.generation

    def __enter__(self) -> Any:
        if not self.is_ours:
            raise Error(errno.EINVAL, "the %s was opened before fork(), and only the parent can "
                        "use it; open another one in the child" % self._kind)
        with self._changed:
            if self._state != _OPEN:
                raise ValueError("the %s is closed" % self._kind)
            self._uses += 1
        return self._pointer

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._uses -= 1
            if not self._uses:
                self._changed.notify_all()

    def close(self) -> None:
        """Closes it, or waits for the thread that does. A child leaves it alone."""
        if not self.is_ours or not self._begin():
            return
        try:
            for child in sorted(self._children, key=lambda each: each._kind == "region"):
                child.close()
            self._destroy(self._pointer)
        except Error:
            self._become(_OPEN)
            raise
        except BaseException:
            # Whether the library has closed it is not known: never use it again.
            self._become(_CLOSED)
            raise
        self._become(_CLOSED)
        if self._parent is None:
            _process.remove_root(self)
        else:
            self._parent._children.discard(self)

    def _begin(self) -> bool:
        with self._changed:
            while self._state == _CLOSING:
                self._changed.wait()
            if self._state == _CLOSED:
                return False
            self._state = _CLOSING
            try:
                while self._uses:
                    self._changed.wait()
            except BaseException:
                self._state = _OPEN
                self._changed.notify_all()
                raise
        return True

    def _become(self, state: int) -> None:
        with self._changed:
            self._state = state
            if state == _CLOSED:
                self._pointer = ffi.NULL
            self._changed.notify_all()

    def dropped(self, what: str) -> None:
        """For the destructor of an object whose handle this is."""
        if self.is_open and self.is_ours and not _process.exiting:
            warnings.warn("unclosed " + what, ResourceWarning, stacklevel=3)
            _process.drop(self)

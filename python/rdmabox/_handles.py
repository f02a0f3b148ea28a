# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A handle of the library, which many threads use and which is closed once.

The library does not allow a handle to be used while it is closed. So each call counts as
a use. close() refuses new uses and waits for those that are going on. What was opened with
a handle is closed before it: volumes first, as their requests may use a region.

A close() that would have to wait for its own thread does not wait. There are three cases:
- The thread is inside of a use: in a signal handler, or in a callback of a future that ends
  in submit(). The janitor closes the handle when the use is over.
- The thread is already closing the handle. The close() that was interrupted goes on.
- The thread calls callbacks, and another thread closes the handle. That one may wait for
  the callback.
If a child is left open for one of these reasons, the janitor closes its parent.

So a signal handler may interrupt this code at any step. The lock can be taken again by the
thread that has it, and a thread is among the users before it takes the lock.
"""

import errno
import threading
import warnings
from typing import Any, Callable, Dict, Optional, Set

from . import _process, _pump
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
        self._changed = threading.Condition(threading.RLock())
        self._state = _OPEN
        self._users: Dict[int, int] = {}  # uses of each thread, which alone changes its own
        self._closers: Set[int] = set()  # threads inside of close()
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

    def require_ours(self) -> None:
        if not self.is_ours:
            raise Error(errno.EINVAL, "the %s was opened before fork(), and only the parent can "
                        "use it; open another one in the child" % self._kind)

    def __enter__(self) -> Any:
        self.require_ours()
        thread = threading.get_ident()
        self._users[thread] = self._users.get(thread, 0) + 1
        try:
            with self._changed:
                if self._state != _OPEN:
                    raise ValueError("the %s is closed" % self._kind)
                return self._pointer
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        thread = threading.get_ident()
        with self._changed:
            left = self._users[thread] - 1
            if left:
                self._users[thread] = left
            else:
                del self._users[thread]
                self._changed.notify_all()

    def close(self) -> None:
        """Closes it, or waits for the thread that does. A child leaves it alone."""
        thread = threading.get_ident()
        if not self.is_ours or thread in self._closers:
            return
        if thread in self._users:
            _process.drop(self)
            return
        self._closers.add(thread)
        try:
            self._close()
        finally:
            self._closers.discard(thread)

    def _close(self) -> None:
        if not self._begin():
            return
        try:
            for child in sorted(self._children, key=lambda each: each._kind == "region"):
                child.close()
                if child.is_open:
                    self._become(_OPEN)
                    _process.drop(self)
                    return
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
                if _pump.is_current():
                    return False
                self._changed.wait()
            if self._state == _CLOSED:
                return False
            self._state = _CLOSING
            try:
                while self._users:
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
        """Called by the destructor of the object with this handle."""
        if self.is_open and self.is_ours and not _process.exiting:
            warnings.warn("unclosed " + what, ResourceWarning, stacklevel=3)
            _process.drop(self)

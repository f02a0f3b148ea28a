# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Regions: memory of a Python object, registered once."""

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Union

from ._buffers import Borrowed, Buffer, view_of
from ._docs import wraps
from ._errors import check
from ._handles import Handle
from ._native import ffi, lib

if TYPE_CHECKING:
    from ._context import Context


def _release(view: Any, pointer: Any) -> None:
    lib.rbx_region_release(pointer)
    ffi.release(view)


class Region:
    """Registered memory. Made by Context.region(); close() or `with` ends it.

    A Region stands for a buffer in every request; `region[a:b]` is a part of it. The
    object that was registered cannot be resized until the region is closed.
    """

    def __init__(self, context: "Context", buffer: Buffer) -> None:
        self._context = context
        self._lock = threading.RLock()  # a signal handler may close it
        self._borrowers = 0
        self._buffer = buffer
        try:
            self._view = view_of(buffer, True)
            self._writable = True
        except BufferError:
            self._view = view_of(buffer, False)
            self._writable = False
        self._length = len(self._view)
        with context._handle as ctx:
            region = ffi.new("struct rbx_region **")
            check(lib.rbx_region_register(ctx, self._view, len(self._view), region))
            self._native_pointer = region[0]
            self._handle = Handle("region", region[0], partial(_release, self._view),
                                  context._handle)

    @wraps("rbx_region_release")
    def close(self) -> None:
        """Ends the registration and gives the buffer back.

        Raises BufferError while requests use the region.
        """
        if not self._handle.is_ours:
            return
        with self._lock:
            if self._borrowers and self._handle.is_open:
                raise BufferError("%d requests use the region" % self._borrowers)
            # Under the lock, so that no request comes in between.
            self._handle.close()

    @property
    def buffer(self) -> Buffer:
        """The object that was registered."""
        return self._buffer

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> "RegionPart":
        start, stop, step = part.indices(self._length)
        if step != 1:
            raise ValueError("a part of a region is contiguous: the step must be 1")
        return RegionPart(self, start, max(start, stop) - start)

    def _lend(self, writable: bool) -> Borrowed:
        return self._lend_part(0, self._length, writable)

    def _lend_part(self, start: int, length: int, writable: bool) -> Borrowed:
        if writable and not self._writable:
            raise BufferError("the region is of memory that is read-only")
        self._handle.require_ours()  # before the lock: in a child it may be held for ever
        with self._lock:
            self._borrowers += 1  # first, so that a close() from here on is refused
            try:
                with self._handle:
                    pass
            except BaseException:
                self._borrowers -= 1
                raise
        return Borrowed(None, self._view + start, length, self)

    def _give_back(self) -> None:
        with self._lock:
            self._borrowers -= 1

    def __enter__(self) -> "Region":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            handle.dropped("region of %d bytes" % self._length)


class RegionPart:
    """`region[a:b]`, for requests."""

    def __init__(self, region: Region, start: int, length: int) -> None:
        self.region = region
        self.start = start
        self._length = length

    def __len__(self) -> int:
        return self._length

    def _lend(self, writable: bool) -> Borrowed:
        return self.region._lend_part(self.start, self._length, writable)


AnyRegion = Union[Region, RegionPart]

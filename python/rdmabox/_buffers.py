# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Memory of Python objects, borrowed without a copy.

While memory is borrowed, its object lives and refuses to be resized or closed. This is
the contract of the buffer protocol: bytearray, array, mmap and memoryview raise
BufferError.
"""

import sys
from typing import Any, Optional

from ._native import ffi

# Any object with the buffer protocol, a torch tensor of the CPU, a Region or a part of one.
Buffer = Any

# Memory that a read fills as a whole.
_allocate = ffi.new_allocator(should_clear_after_alloc=False)


class Borrowed:
    """A range of memory; release() gives it back."""

    __slots__ = ("pointer", "length", "region", "_view")

    def __init__(self, view: Any, pointer: Any, length: int, region: Optional[Any] = None) -> None:
        self._view = view
        self.pointer = pointer
        self.length = length
        self.region = region  # a Region, which counts its borrowers

    @property
    def native_region(self) -> Any:
        return ffi.NULL if self.region is None else self.region._native_pointer

    def release(self) -> None:
        if self.region is not None:
            self.region._give_back()
        elif self._view is not None:
            ffi.release(self._view)
        self.region = self._view = None


def _tensor_memory(tensor: Any) -> Any:
    """A torch tensor as bytes; while torch's array exists, the tensor cannot be resized."""
    torch = sys.modules["torch"]
    if tensor.device.type != "cpu":
        raise BufferError("the tensor is on %s, and only memory of the CPU can be borrowed"
                          % tensor.device)
    if not tensor.is_contiguous():
        raise BufferError("the tensor is not contiguous")
    return tensor.detach().reshape(-1).view(torch.uint8).numpy()


def view_of(buffer: Buffer, writable: bool) -> Any:
    """The memory of an object as a char[], which holds the object."""
    if type(buffer).__module__.partition(".")[0] == "torch":
        buffer = _tensor_memory(buffer)
    try:
        return ffi.from_buffer("char[]", buffer, require_writable=writable)
    except ValueError as error:  # of numpy, if it is not contiguous or read-only
        raise BufferError(str(error)) from None


def borrow(buffer: Buffer, writable: bool) -> Borrowed:
    """Borrows the memory of an object, or of a Region."""
    lend = getattr(type(buffer), "_lend", None)
    if lend is not None:
        borrowed: Borrowed = lend(buffer, writable)
        return borrowed
    view = view_of(buffer, writable)
    return Borrowed(view, view, len(view))


def fresh(length: int) -> Borrowed:
    """New memory, with undefined contents.

    It goes with the last reference and not by release(), so that what was read can be
    taken from it after the end of a request.
    """
    return Borrowed(None, _allocate("char[]", length), length)


def content(borrowed: Borrowed) -> bytes:
    return bytes(ffi.buffer(borrowed.pointer, borrowed.length))

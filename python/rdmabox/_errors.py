# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How a call of the library fails."""

import os
from typing import Any

from ._docs import wraps
from ._native import ffi, lib


class Error(OSError):
    """A call of the library failed.

    `errno` says how, `strerror` what failed, why, and how to mend it.
    """


def text(cdata: object) -> str:
    """A C text as a str."""
    return bytes(ffi.string(cdata)).decode("utf-8", "replace")


def native_text(value: str, what: str) -> bytes:
    """A str for C. A NUL in it is refused, as it would end the text."""
    encoded = value.encode()
    if b"\0" in encoded:
        raise ValueError("%s has a NUL in it: %r" % (what, value))
    return encoded


def owned(pointer: Any, free: Any, what: str) -> Any:
    """What a constructor of the native part returned; freed with the last reference."""
    if not pointer:
        raise MemoryError("no memory for " + what)
    return ffi.gc(pointer, free)


@wraps("rbx_last_error")
def last_error(result: int) -> Error:
    """The exception for a call of this thread that has just returned -errno."""
    return Error(-result, text(lib.rbx_last_error()) or os.strerror(-result))


def check(result: int) -> int:
    """Raises if the result of a call is -errno."""
    if result < 0:
        raise last_error(result)
    return result

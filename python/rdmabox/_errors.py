# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How a call of the library fails."""

import os

from ._docs import wraps
from ._native import ffi, lib


class Error(OSError):
    """A call of the library failed.

    `errno` says how, `strerror` what failed, why, and how to mend it.
    """


def text(cdata: object) -> str:
    """A C text as a str."""
    return bytes(ffi.string(cdata)).decode("utf-8", "replace")


@wraps("rbx_last_error")
def last_error(result: int) -> Error:
    """The exception for a call of this thread that has just returned -errno."""
    return Error(-result, text(lib.rbx_last_error()) or os.strerror(-result))


def check(result: int) -> int:
    """Raises if the result of a call is -errno."""
    if result < 0:
        raise last_error(result)
    return result

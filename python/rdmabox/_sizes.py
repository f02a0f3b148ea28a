# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sizes as numbers or as text."""

from typing import Union

from ._docs import wraps
from ._errors import check, native_text
from ._native import ffi, lib

Size = Union[int, str]


@wraps("rbx_size_parse")
def parse_size(text: str) -> int:
    """The bytes of a size in text, such as "64K"."""
    size = ffi.new("uint64_t *")
    check(lib.rbx_size_parse(native_text(text, "a size"), size))
    return int(size[0])


def size_bytes(size: Size) -> int:
    return parse_size(size) if isinstance(size, str) else size

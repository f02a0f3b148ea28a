# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Adds the text of the library's headers to docstrings."""

import inspect
from typing import Any, Callable, Dict, TypeVar

from ._headers import DOCS

Function = TypeVar("Function", bound=Callable[..., Any])

# Maps each call of the library to the function that wraps it. A test compares it with the
# sources.
WRAPPED: Dict[str, Callable[..., Any]] = {}


def wraps(*calls: str) -> Callable[[Function], Function]:
    """Appends the header's text of the calls that a function makes."""

    def decorate(function: Function) -> Function:
        parts = [inspect.cleandoc(function.__doc__ or "")]
        for call in calls:
            WRAPPED[call] = function
            parts.append("From the C library:\n\n" + DOCS.get(call, ""))
        function.__doc__ = "\n\n".join(parts)
        return function

    return decorate

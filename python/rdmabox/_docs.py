# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Docstrings that go on with what the library's headers say of a call."""

import inspect
from typing import Any, Callable, Dict, TypeVar

from ._headers import DOCS

Function = TypeVar("Function", bound=Callable[..., Any])

# Which function wraps a call of the library; a test compares it with the sources.
WRAPPED: Dict[str, Callable[..., Any]] = {}


def wraps(*calls: str) -> Callable[[Function], Function]:
    """Appends the text of the calls that a function makes."""

    def decorate(function: Function) -> Function:
        parts = [inspect.cleandoc(function.__doc__ or "")]
        for call in calls:
            WRAPPED[call] = function
            parts.append("From the C library:\n\n" + DOCS.get(call, ""))
        function.__doc__ = "\n\n".join(parts)
        return function

    return decorate

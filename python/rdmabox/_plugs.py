# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Plugs: operations that a thread submits are held back, and leave as one batch.

The C library has plugs as well (rbx_plug()). They are not used here: only the thread that
holds something back there can send it. So a thread that stays in its block would keep the
context from being closed, and the program from ending.
"""

import itertools
import threading
from typing import TYPE_CHECKING, Dict, List, Sequence

from ._operations import Operation, submit

if TYPE_CHECKING:
    from ._context import Context
    from ._volume import Volume


class Held:
    """The operations that a thread holds back in one context."""

    def __init__(self) -> None:
        self.depth = 0
        self._lock = threading.Lock()
        self._operations: List[Operation] = []

    def add(self, operations: Sequence[Operation]) -> None:
        with self._lock:
            self._operations += operations

    def _take(self) -> List[Operation]:
        with self._lock:
            operations, self._operations = self._operations, []
        return operations

    def send(self) -> None:
        groups = [(volume, list(operations)) for volume, operations in
                  itertools.groupby(self._take(), lambda each: each.volume)]
        for at, (volume, operations) in enumerate(groups):
            try:
                submit(volume, operations)
            except ValueError:
                pass  # the volume is closed; each of them knows
            except BaseException as error:
                # submit() has withdrawn its own. The others are known only here.
                for _, later in groups[at + 1:]:
                    for operation in later:
                        operation.withdraw(error)
                raise

    def withdraw(self) -> None:
        """Called when the context is closed, perhaps by another thread."""
        for operation in self._take():
            operation.withdraw(ValueError("the context is closed"))


class _Thread(threading.local):
    def __init__(self) -> None:
        self.held: "Dict[Context, Held]" = {}


_thread = _Thread()


class Plug:
    """`with context.plug():` holds back the futures that this thread asks for in it.

    Whoever waits for one of them with result(), and every call that waits, lets all
    leave before. Other ways of waiting, such as concurrent.futures.wait(), belong
    behind the block.
    """

    def __init__(self, context: "Context") -> None:
        self._context = context

    def __enter__(self) -> "Plug":
        with self._context._handle:
            held = _thread.held.get(self._context)
            if held is None:
                held = _thread.held[self._context] = Held()
                self._context._sinks.held.add(held)
            held.depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        held = _thread.held.get(self._context)
        if held is None:
            raise RuntimeError("the plug is of another thread")
        held.depth -= 1
        if held.depth:
            return
        del _thread.held[self._context]
        if self._context._handle.is_ours:
            try:
                held.send()
            finally:
                self._context._sinks.held.discard(held)


def submit_later(volume: "Volume", operations: Sequence[Operation]) -> None:
    """Submits, or holds back if this thread is plugged."""
    held = _thread.held.get(volume.context) if _thread.held else None
    if held is not None:
        held.add(operations)
    elif operations:
        submit(volume, operations)


def flush() -> None:
    """Lets leave what this thread holds back; it stays plugged."""
    for context, held in list(_thread.held.items()):
        if context._handle.is_ours:
            held.send()

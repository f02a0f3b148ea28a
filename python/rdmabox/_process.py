# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The process: its exit, its forks, and objects that are dropped without close().

Exit: everything is closed before the interpreter ends, so no memory is freed while a device
may write to it.

Fork: what was opened before belongs to the parent. A child has another generation number
than the handles that were opened before, and every call compares the two.

Dropped objects: a destructor may run anywhere, even in a thread that holds one of our locks.
It must not wait for servers there, so a thread of its own closes them.
"""

import atexit
import os
import queue
import threading
import warnings
from typing import Callable, List, Protocol, Set


class Closable(Protocol):
    def close(self) -> None: ...


generation = 0
exiting = False

# What is open and has no parent: contexts, and servers.
_clients: List[Closable] = []
_servers: List[Closable] = []
_in_child: List[Callable[[], None]] = []

_dropped: "queue.SimpleQueue[Closable]" = queue.SimpleQueue()
_janitor_generations: Set[int] = set()
_janitor_lock = threading.Lock()


def add_root(root: Closable, is_server: bool) -> None:
    (_servers if is_server else _clients).append(root)


def remove_root(root: Closable) -> None:
    for roots in (_servers, _clients):
        if root in roots:
            roots.remove(root)


def in_child(action: Callable[[], None]) -> None:
    """Calls `action` in each child after a fork."""
    _in_child.append(action)


def drop(handle: Closable) -> None:
    """Makes the janitor close an object without references. Never waits."""
    _dropped.put(handle)


def start_janitor() -> None:
    """Starts the thread that closes what was dropped, once in a process."""
    with _janitor_lock:
        if generation in _janitor_generations:
            return
        _janitor_generations.add(generation)
    threading.Thread(target=_sweep, name="rdmabox-janitor", daemon=True).start()


def _sweep() -> None:
    while True:
        handle = _dropped.get()
        try:
            handle.close()
        except Exception as error:
            warnings.warn("cannot close what was dropped: %s" % error, ResourceWarning)
        del handle


def _exit() -> None:
    global exiting
    exiting = True
    # A server in this process is stopped after its clients.
    for root in _clients + _servers:
        try:
            root.close()
        except Exception as error:
            warnings.warn("cannot close at exit: %s" % error, ResourceWarning)


def _child() -> None:
    global generation, _dropped, _janitor_lock
    generation += 1
    _clients.clear()
    _servers.clear()
    _dropped = queue.SimpleQueue()
    _janitor_lock = threading.Lock()
    for action in _in_child:
        action()


atexit.register(_exit)
os.register_at_fork(after_in_child=_child)

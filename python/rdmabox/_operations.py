# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Operations: reads and writes that are outstanding, and the memory that they borrow.

An operation is in `outstanding` from before it is submitted until its end was taken from its
sink. This table keeps the operation, its buffer, its volume and its sink alive, whatever the
program drops meanwhile. So nothing is freed or resized while a device may still access it.
"""

import errno
import itertools
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ._buffers import Borrowed, content
from ._docs import wraps
from ._errors import Error, last_error
from ._native import ffi, lib

if TYPE_CHECKING:
    from ._volume import Volume

_ids = itertools.count(1)
outstanding: "Dict[int, Operation]" = {}


class Sink:
    """Where operations go when they have ended, until one thread takes them.

    There is one for each event loop, one for the futures of a context, and one for
    each call that waits, so that nobody takes what belongs to another.
    """

    def __init__(self) -> None:
        queue = lib.rbxpy_queue_new()
        if not queue:
            raise Error(ffi.errno, "cannot make a queue: " + os.strerror(ffi.errno))
        # Freed with the last operation that refers to this sink.
        self.queue = ffi.gc(queue, lib.rbxpy_queue_free)
        self.ids: Set[int] = set()  # of outstanding operations
        self._ended = ffi.new("struct rbxpy_ended *")

    def fileno(self) -> int:
        return int(lib.rbxpy_queue_fd(self.queue))

    def wait(self) -> None:
        lib.rbxpy_queue_wait(self.queue, -1)

    def take(self) -> int:
        """Finishes all that has ended. One thread at a time. Returns how many.

        An exception of a signal may come at any step; the next take() goes on there.
        """
        ended, total = self._ended, 0
        while ended.next < ended.count or lib.rbxpy_operations_take(self.queue, ended):
            operation = outstanding.get(ended.ids[ended.next])
            if operation is not None:
                operation.finish(ended.statuses[ended.next])
            ended.next += 1
            total += 1
        return total


class Operation:
    """A read or write of any length."""

    __slots__ = ("id", "volume", "sink", "write", "offset", "borrowed", "native", "deliver",
                 "error", "target", "wants_bytes")

    def __init__(self, volume: "Volume", sink: Sink, write: bool, offset: int, borrowed: Borrowed,
                 flags: int, deliver: "Callable[[Operation, Any], None]", target: Any = None,
                 wants_bytes: bool = False) -> None:
        self.id = next(_ids)
        self.volume = volume
        self.sink = sink
        self.write = write
        self.offset = offset
        self.borrowed = borrowed
        self.deliver = deliver  # called at the end with the result, on the thread that takes
        self.target = target  # a future
        self.wants_bytes = wants_bytes  # the result is what was read
        self.error: Optional[BaseException] = None
        wanted = ffi.new("struct rbxpy_wanted *", {
            "id": self.id, "write": write, "flags": flags, "buf": borrowed.pointer,
            "length_bytes": borrowed.length, "offset": offset,
            "region": borrowed.native_region,
        })
        self.native = lib.rbxpy_operation_new(sink.queue, volume._fence, wanted, volume._limits)
        if not self.native:
            borrowed.release()
            raise MemoryError("no memory for an operation of %d bytes" % borrowed.length)
        outstanding[self.id] = self
        sink.ids.add(self.id)

    def finish(self, status: int, error: Optional[BaseException] = None) -> None:
        """Ends it. The library has no part of it any more."""
        if status:
            error = Error(-status, "%s of %d bytes at %d failed: %s" % (
                "write" if self.write else "read", self.borrowed.length, self.offset,
                os.strerror(-status)))
        result = None
        if self.wants_bytes and error is None:
            try:
                result = content(self.borrowed)
            except MemoryError as no_memory:  # the thread that takes has to go on
                error = no_memory
        self.error = error
        # Before the program is told, so that the buffer is free then.
        self.borrowed.release()
        self.deliver(self, result)
        outstanding.pop(self.id, None)
        self.sink.ids.discard(self.id)

    def withdraw(self, error: BaseException) -> None:
        """Sends no more of it. If a part was sent, it ends when that part does."""
        if not lib.rbxpy_operation_cancel(self.native, -errno.ECANCELED):
            self.refuse(error)

    def refuse(self, error: BaseException) -> None:
        """Finishes it. Nothing of it was sent."""
        lib.rbxpy_operation_free(self.native)
        self.finish(0, error)
        # It never comes to the queue, but the thread that takes from there may wait for
        # its end.
        lib.rbxpy_queue_wake(self.sink.queue)


def flags_of(fence: bool, merge: bool, urgent: bool) -> int:
    flags: int = lib.RBX_FENCE if fence else 0
    if not merge:
        flags |= lib.RBX_NO_MERGE
    if urgent:
        flags |= lib.RBX_URGENT
    return flags


@wraps("rbx_wait_room")
def submit(volume: "Volume", operations: Sequence[Operation], wait: bool = True) -> int:
    """Hands over operations of a volume, in as few batches as possible.

    Those that are refused finish with the error. If the volume is full, it waits for
    room, or stops there. Returns how many need not be handed over again.
    """
    taken = None
    try:
        taken = ffi.new("unsigned int *")
        array = ffi.new("struct rbxpy_operation *[]", [each.native for each in operations])
        with volume._handle as pointer:
            while True:
                err = lib.rbxpy_operations_submit(pointer, array, len(operations),
                                                  volume._limits, taken)
                if not err:
                    return len(operations)
                if err == -errno.EAGAIN:
                    if not wait:
                        return int(taken[0])
                    lib.rbx_wait_room(volume._context_pointer, -1)
                else:
                    error = last_error(err)
                    refused = operations[taken[0]]
                    taken[0] += 1
                    refused.refuse(error)
    except BaseException as error:
        for operation in operations[0 if taken is None else taken[0]:]:
            operation.withdraw(error)
        raise


def _ignore(_: Operation, __: object) -> None:
    pass


def run(volume: "Volume", wanted: Sequence[Tuple[bool, int, Borrowed]], flags: int) -> None:
    """Submits operations and waits for them. Raises the error of the first that failed.

    Nothing is outstanding afterwards, so the caller can release the memory.
    """
    sink = Sink()
    operations: List[Operation] = []
    try:
        for write, offset, borrowed in wanted:
            operations.append(Operation(volume, sink, write, offset, borrowed, flags, _ignore))
        submit(volume, operations)
    except BaseException as error:
        # Operations that were made before one that could not be made: nobody will submit
        # them.
        for each in list(sink.ids):
            outstanding[each].withdraw(error)
        raise
    finally:
        wait_all(sink)
    for operation in operations:
        if operation.error is not None:
            raise operation.error


def wait_all(sink: Sink) -> None:
    """Waits until nothing is outstanding in a sink."""
    try:
        while sink.ids:
            if not sink.take():
                sink.wait()
    except BaseException:
        # An exception of a signal handler. The rest ends by itself, but it has to be
        # taken.
        wait_all(sink)
        raise

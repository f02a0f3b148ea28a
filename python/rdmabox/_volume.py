# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Volumes: a range of remote memory that survives the loss of servers."""

import asyncio
import enum
import threading
from functools import partial
from typing import (
    Any, Awaitable, Callable, List, NamedTuple, Optional, Sequence, Tuple, Union, overload,
)

from . import _futures, _loops, _plugs
from ._buffers import Borrowed, Buffer, borrow, fresh
from ._context import Context
from ._docs import wraps
from ._errors import check, native_text, owned, text
from ._futures import Future
from ._handles import Handle
from ._named import Servers, native_servers
from ._native import ffi, lib
from ._notices import Notices
from ._operations import Operation, flags_of, run
from ._sizes import Size, size_bytes


class EventKind(enum.IntEnum):
    """What has happened to a volume."""

    SERVER_DOWN = 0
    """A server is dead."""
    REBUILD_STARTED = 1
    """The copies that it held are made anew."""
    REBUILD_DONE = 2
    """All slabs have all their replicas again."""
    REBUILD_STUCK = 3
    """No server can take the lost copies."""
    DATA_LOST = 4
    """The last copy of a slab is gone."""
    SERVER_ADDED = 5
    """A server of the pool has joined, or one that was lost is there again."""
    SERVER_LEFT_OUT = 6
    """A server of the pool could not join; it is tried again."""
    OPENING = 7
    """The open of a named volume takes long; the volume cannot be used yet."""
    MISSED = 8
    """So many events (``slab_count``) were not told."""
    STOPPED = 9
    """A named volume is read and written no more; the reason says who has it, or why."""
    GOES_ON = 10
    """The same volume: enough of its servers are there again."""
    POOL_TROUBLE = 11
    """The pool is away or broken, or is as it should be again: its servers of before stay in force."""


class Event(NamedTuple):
    """An event of a volume."""

    kind: EventKind
    server: str
    """Its address, or ""."""
    slab_count: int
    """How many slabs it is about."""
    reason: str
    dropped_count: int
    """Events that were lost before this one, since the callback was too slow."""


class VolumeStatus(NamedTuple):
    """How many slabs and servers are as they should be."""

    slabs: int
    slabs_whole: int
    slabs_rebuilding: int
    slabs_lost: int
    servers: int
    servers_up: int
    rebuilt_bytes: int
    slabs_blank: int
    slabs_last: int
    slabs_holed: int
    replicas: int
    slabs_together: int
    scrub_passes: int
    scrub_bad_pages: int


Request = Tuple[str, Buffer, int]
"""("read" or "write", buffer, offset)"""


def _close(notices: Optional[Notices], pointer: Any) -> None:
    check(lib.rbx_volume_close(pointer))
    if notices is not None:
        notices.stop()


def _tell(on_event: Callable[[Event], object], notice: Any) -> None:
    on_event(Event(EventKind(notice.kind), text(notice.server), notice.slab_count,
                   text(notice.text), notice.dropped_count))


class Volume:
    """Remote memory, in slabs on several servers. Made by Context.volume().

    Any object with the buffer protocol is a buffer: what is written is taken from it,
    what is read goes into it, without a copy. It must not change in length until the
    request has ended, and tries to do so raise BufferError.

    Offsets and lengths are bytes. If checksums are on, they are multiples of 4096.
    """

    @wraps("rbx_volume_options_defaults", "rbx_volume_open")
    def __init__(self, context: Context, servers: Servers, size: Size = 0, *,
                 name: Optional[str] = None, take_over: bool = False, replicas: int = 1,
                 checksums: bool = False, on_demand: bool = False, spread: str = "rack",
                 read_only: bool = False, scrub_rate: int = 0,
                 on_event: Optional[Callable[[Event], object]] = None) -> None:
        """Borrows memory of servers: "host:port,host:port", or a list of them.

        With a `name` it opens the named volume of that name, which is as long as it was
        made: no size is given then. `take_over` takes it from the program that has it open.
        With `read_only` it is read beside that program, two seconds behind it at most.
        With `scrub_rate` a thread of the volume looks for damage at all servers, so many bytes
        in a second, 1 MiB at least, and writes anew what is damaged. It needs checksums.
        The replicas of a slab are on servers whose label `spread` differs, as long as
        there is a choice.
        `on_event` is called with each Event, on a thread of Python that belongs to
        the volume, so it may wait and call add_server().
        """
        self._context = context
        self._fence_lock = threading.Lock()
        # Freed with the last operation that refers to this volume.
        self._fence = owned(lib.rbxpy_fence_new(), lib.rbxpy_fence_free, "a fence")
        options = ffi.new("struct rbx_volume_options *")
        lib.rbx_volume_options_defaults(options)
        options.replicas = replicas
        options.checksums = checksums
        options.on_demand = on_demand
        label = native_text(spread, "the name of a label")
        if len(label) >= len(options.spread):
            raise ValueError("spread %r: at most %d bytes" % (spread, len(options.spread) - 1))
        options.spread = label
        options.take_over = take_over
        options.read_only = read_only
        options.scrub_rate = scrub_rate
        native_name = ffi.NULL
        if name is not None:
            native_name = ffi.new("char[]", native_text(name, "the name of a volume"))
        options.name = native_name
        addresses = native_servers(servers)
        with context._handle as ctx:
            notices = None
            if on_event is not None:
                notices = Notices("rdmabox-events", partial(_tell, on_event))
                options.event = ffi.addressof(lib, "rbxpy_volume_event")
                options.user = notices.native
            pointer = ffi.new("struct rbx_volume **")
            try:
                check(lib.rbx_volume_open(ctx, pointer, addresses, size_bytes(size),
                                          options))
            except BaseException:
                if notices is not None:
                    notices.stop()
                raise
            self._handle = Handle("volume", pointer[0], partial(_close, notices), context._handle)
            self._context_pointer = ctx
        self._limits = context._limits
        self._size = int(lib.rbx_volume_size(pointer[0]))

    # ---- The volume as a whole ----------------------------------------------

    @wraps("rbx_volume_close")
    def close(self) -> None:
        """Waits for what is outstanding and gives all memory back, unless it has a name.

        Closed already: nothing is done. Futures get their results as ever.
        """
        _plugs.flush()
        self._handle.close()

    @property
    def closed(self) -> bool:
        return not self._handle.is_open

    @property
    def context(self) -> Context:
        """The context that it was opened with."""
        return self._context

    @wraps("rbx_volume_size")
    def __len__(self) -> int:
        """The size in bytes."""
        return self._size

    @wraps("rbx_volume_status")
    def status(self) -> VolumeStatus:
        """How its slabs and servers are."""
        status = ffi.new("struct rbx_volume_status *")
        with self._handle as pointer:
            lib.rbx_volume_status(pointer, status)
        return VolumeStatus(*(getattr(status, name) for name in VolumeStatus._fields))

    @wraps("rbx_volume_add_server")
    def add_server(self, server: str) -> None:
        """Lets the volume use one more server."""
        with self._handle as pointer:
            check(lib.rbx_volume_add_server(pointer, native_text(server, "an address")))

    @wraps("rbx_volume_discard")
    def discard(self, offset: int, length: int) -> None:
        """Gives back what nobody will read again."""
        with self._handle as pointer:
            check(lib.rbx_volume_discard(pointer, offset, length))

    def fence(self) -> None:
        """Waits until all that was submitted to this volume before has ended.

        What coroutines have asked for in this turn of their loop is not submitted yet:
        use `fence=True` there, which orders a request after the earlier ones.
        """
        _plugs.flush()
        with self._handle, self._fence_lock:
            lib.rbxpy_fence_wait(self._fence)

    # ---- One request, waited for --------------------------------------------

    def read(self, offset: int, length: int, *, fence: bool = False) -> bytes:
        """Reads into new bytes. read_into() saves the copy."""
        if length < 0:
            raise ValueError("a length is not negative")
        if not length:
            return b""
        memory = fresh(length)
        self._transfer(False, offset, memory, fence)
        return bytes(ffi.buffer(memory.pointer, length))

    @wraps("rbx_read")
    def read_into(self, buffer: Buffer, offset: int, *, fence: bool = False) -> None:
        """Fills a buffer that can be written to."""
        self._transfer(False, offset, borrow(buffer, True), fence)

    @wraps("rbx_write")
    def write(self, buffer: Buffer, offset: int, *, fence: bool = False) -> None:
        """Writes all of a buffer."""
        self._transfer(True, offset, borrow(buffer, False), fence)

    def _transfer(self, write: bool, offset: int, memory: Borrowed, fence: bool) -> None:
        try:
            if not memory.length:
                return
            _plugs.flush()
            if fence or memory.region is not None:
                run(self, [(write, offset, memory)], flags_of(fence, True, True))
                return
            with self._handle as pointer:
                call = lib.rbx_write if write else lib.rbx_read
                check(call(pointer, memory.pointer, memory.length, offset))
        finally:
            memory.release()

    @wraps("rbx_readv")
    def readv(self, buffers: Sequence[Buffer], offset: int) -> None:
        """Fills several buffers, one after another, with one request."""
        self._vector(lib.rbx_readv, buffers, True, offset)

    @wraps("rbx_writev")
    def writev(self, buffers: Sequence[Buffer], offset: int) -> None:
        """Writes several buffers, one after another, with one request."""
        self._vector(lib.rbx_writev, buffers, False, offset)

    def _vector(self, call: Callable[..., int], buffers: Sequence[Buffer], writable: bool,
                offset: int) -> None:
        borrowed: List[Borrowed] = []
        try:
            for buffer in buffers:
                borrowed.append(borrow(buffer, writable))
            vector = ffi.new("struct iovec[]", len(borrowed))
            for i, memory in enumerate(borrowed):
                vector[i].iov_base = memory.pointer
                vector[i].iov_len = memory.length
            _plugs.flush()
            with self._handle as pointer:
                check(call(pointer, vector, len(borrowed), offset))
        finally:
            for memory in borrowed:
                memory.release()

    # ---- As a sequence of bytes ----------------------------------------------

    __iter__ = None  # not byte by byte over the network

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> bytes: ...

    def __getitem__(self, at: Union[int, slice]) -> Union[int, bytes]:
        """volume[a:b] reads bytes, volume[a] one as an int."""
        start, length = self._range(at)
        content = self.read(start, length)
        return content if isinstance(at, slice) else content[0]

    def __setitem__(self, at: Union[int, slice], content: Any) -> None:
        """volume[a:b] = buffer of b - a bytes, or volume[a] = int."""
        start, length = self._range(at)
        buffer = content if isinstance(at, slice) else bytes((content,))
        memory = borrow(buffer, False)
        if memory.length != length:
            given = memory.length
            memory.release()
            raise ValueError("%d bytes for a part of %d: a volume cannot change its size"
                             % (given, length))
        self._transfer(True, start, memory, False)

    def _range(self, at: Union[int, slice]) -> Tuple[int, int]:
        if isinstance(at, slice):
            start, stop, step = at.indices(self._size)
            if step != 1:
                raise ValueError("the step must be 1")
            return start, max(stop - start, 0)
        start = at + self._size if at < 0 else at
        if not 0 <= start < self._size:
            raise IndexError("byte %d of a volume of %d" % (at, self._size))
        return start, 1

    # ---- Many requests: futures ----------------------------------------------

    def read_async(self, offset: int, length: int, *, fence: bool = False, merge: bool = True,
                   urgent: bool = False) -> "Future[bytes]":
        """Starts to read; the future's result is the bytes."""
        return self._future(False, offset, fresh(length), flags_of(fence, merge, urgent), True)

    def read_into_async(self, buffer: Buffer, offset: int, *, fence: bool = False,
                        merge: bool = True, urgent: bool = False) -> "Future[None]":
        """Starts to fill a buffer, which is borrowed until the future is done."""
        return self._future(False, offset, borrow(buffer, True), flags_of(fence, merge, urgent))

    def write_async(self, buffer: Buffer, offset: int, *, fence: bool = False, merge: bool = True,
                    urgent: bool = False) -> "Future[None]":
        """Starts to write a buffer, which is borrowed until the future is done."""
        return self._future(True, offset, borrow(buffer, False), flags_of(fence, merge, urgent))

    def _future(self, write: bool, offset: int, memory: Borrowed, flags: int,
                wants_bytes: bool = False) -> "Future[Any]":
        future, operation = self._promise(write, offset, memory, flags, wants_bytes)
        if operation is not None:
            _plugs.submit_later(self, [operation])
        return future

    def _promise(self, write: bool, offset: int, memory: Borrowed, flags: int,
                 wants_bytes: bool = False) -> "Tuple[Future[Any], Optional[Operation]]":
        """A future, and the operation that fulfils it unless it is empty."""
        future: "Future[Any]" = Future()
        try:
            with self._handle:
                sink = self._context._sinks.futures()
                if memory.length:
                    return future, Operation(self, sink, write, offset, memory, flags,
                                             _futures.deliver, future, wants_bytes)
        except BaseException:
            memory.release()
            raise
        memory.release()
        future.set_result(b"" if wants_bytes else None)
        return future, None

    @wraps("rbx_submit")
    def submit(self, requests: Sequence[Request], *, fence: bool = False, merge: bool = True,
               urgent: bool = False) -> "List[Future[None]]":
        """Submits many requests at once, ("read" or "write", buffer, offset) each.

        Neighbours among them are merged, the rest leaves as a chain. It waits while
        the volume has no room, and not for completions. Returns a future for each.
        """
        flags = flags_of(fence, merge, urgent)
        futures: List[Future[None]] = []
        operations: List[Operation] = []
        wanted = _borrow_all(requests)
        try:
            for write, offset, memory in wanted:
                future, operation = self._promise(write, offset, memory, flags)
                futures.append(future)
                if operation is not None:
                    operations.append(operation)
        except BaseException as error:
            for operation in operations:
                operation.withdraw(error)
            _release_all(wanted)  # also of those for which there is no operation yet
            raise
        _plugs.submit_later(self, operations)
        return futures

    def run(self, requests: Sequence[Request], *, fence: bool = False, merge: bool = True,
            urgent: bool = False) -> None:
        """As submit(), and waits for all. Raises the error of the first that failed."""
        _plugs.flush()
        borrowed = _borrow_all(requests)
        try:
            wanted = [each for each in borrowed if each[2].length]
            if wanted:
                run(self, wanted, flags_of(fence, merge, urgent))
        finally:
            _release_all(borrowed)

    # ---- Many requests: coroutines -------------------------------------------

    def aread(self, offset: int, length: int, *, fence: bool = False, merge: bool = True,
              urgent: bool = False) -> Awaitable[bytes]:
        """`await volume.aread(...)` reads bytes."""
        return self._await(False, offset, fresh(length), flags_of(fence, merge, urgent), True)

    def aread_into(self, buffer: Buffer, offset: int, *, fence: bool = False, merge: bool = True,
                   urgent: bool = False) -> Awaitable[None]:
        """`await volume.aread_into(...)` fills a buffer.

        If the coroutine is cancelled, the buffer stays borrowed until the request ends.
        """
        return self._await(False, offset, borrow(buffer, True), flags_of(fence, merge, urgent))

    def awrite(self, buffer: Buffer, offset: int, *, fence: bool = False, merge: bool = True,
               urgent: bool = False) -> Awaitable[None]:
        """`await volume.awrite(...)` writes a buffer. If it is cancelled, it may be written."""
        return self._await(True, offset, borrow(buffer, False), flags_of(fence, merge, urgent))

    def _await(self, write: bool, offset: int, memory: Borrowed, flags: int,
               wants_bytes: bool = False) -> "asyncio.Future[Any]":
        try:
            with self._handle:
                sink = self._context._sinks.loops.here()
                future = asyncio.get_running_loop().create_future()
                if memory.length:
                    sink.add(Operation(self, sink, write, offset, memory, flags, _loops.deliver,
                                       future, wants_bytes))
                    return future
        except BaseException:
            memory.release()
            raise
        memory.release()
        future.set_result(b"" if wants_bytes else None)
        return future

    async def aclose(self) -> None:
        """close(), on another thread meanwhile."""
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __enter__(self) -> "Volume":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "Volume":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            handle.dropped("volume of %d bytes" % getattr(self, "_size", 0))


def _borrow_all(requests: Sequence[Request]) -> List[Tuple[bool, int, Borrowed]]:
    """All or none."""
    borrowed: List[Tuple[bool, int, Borrowed]] = []
    try:
        for op, buffer, offset in requests:
            if op not in ("read", "write"):
                raise ValueError('a request is a "read" or a "write", not %r' % (op,))
            borrowed.append((op == "write", offset, borrow(buffer, op == "read")))
    except BaseException:
        _release_all(borrowed)
        raise
    return borrowed


def _release_all(borrowed: Sequence[Tuple[bool, int, Borrowed]]) -> None:
    """Once is enough, but more is no fault."""
    for _, _, memory in borrowed:
        memory.release()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Contexts: a device and the way it is used."""

import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Set, Union

from . import _named, _plugs, _process
from ._buffers import Buffer
from ._docs import wraps
from ._errors import check, native_text, text
from ._futures import FutureSink
from ._handles import Handle
from ._headers import ServerStats, Stats
from ._loops import LoopSinks
from ._named import Servers, VolumeInfo
from ._native import ffi, lib
from ._plugs import Held, Plug
from ._region import Region
from ._sizes import Size

if TYPE_CHECKING:
    from ._volume import Event, Volume

Option = Union[str, int, bool]

DESCRIPTION_BYTES = 8192

# A fragment never covers more than a slab, and a slab has at least this.
SLAB_BYTES_MIN = 64 << 10


class _Sinks:
    """The sinks of a context. It has no reference to the Context."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._futures: Optional[FutureSink] = None
        self.loops = LoopSinks()
        self.held: Set[Held] = set()

    def futures(self) -> FutureSink:
        with self._lock:
            if self._futures is None:
                self._futures = FutureSink()
            return self._futures

    def close(self, pointer: Any) -> None:
        """Called when the volumes are closed, so all operations have ended."""
        for held in list(self.held):
            held.withdraw()
        self.loops.end()
        if self._futures is not None:
            self._futures.stop()
        check(lib.rbx_close(pointer))


def _option_text(value: Option) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


class Context:
    """A device, its configuration and its numbers.

    Options are those of struct rbx_options in context.h, by name: Context(mode="hybrid",
    window="1M", peer_timeout_ms=2000). close() or `with` closes it, and all that was
    opened with it; so does the end of the program.
    """

    @wraps("rbx_options_defaults", "rbx_options_set", "rbx_open")
    def __init__(self, **options: Option) -> None:
        """Opens a device. Option `pollers` must not be 0: completions need a thread."""
        if _process.exiting:
            raise ValueError("the interpreter is about to end")
        if str(options.get("pollers", 1)) == "0":
            raise ValueError("pollers=0 is not possible: without a poller, no future would end")
        native = ffi.new("struct rbx_options *")
        lib.rbx_options_defaults(native)
        for name, value in options.items():
            setting = "%s=%s" % (name, _option_text(value))
            check(lib.rbx_options_set(native, native_text(setting, "option " + name)))
        pointer = ffi.new("struct rbx_context **")
        check(lib.rbx_open(pointer, native))
        _process.start_janitor()
        self._sinks = _Sinks()
        self._handle = Handle("context", pointer[0], self._sinks.close)
        self._limits = self._read_limits()

    def _read_limits(self) -> Any:
        described = self.describe()
        return ffi.new("struct rbxpy_limits *", {
            "fragment_bytes": min(int(described["fragment_bytes"]), SLAB_BYTES_MIN),
            "fragments_max": int(described["requests_max"]),
        })

    @wraps("rbx_close")
    def close(self) -> None:
        """Closes the context, and before it all volumes and regions of it.

        Waits for what is outstanding. Closed already: nothing is done. In a signal handler
        or a callback, if to wait would be for ever, another thread closes it later.
        """
        _plugs.flush()
        self._handle.close()

    def volume(self, servers: Servers, size: Size = 0, *, name: Optional[str] = None,
               take_over: bool = False, replicas: int = 1, checksums: bool = False,
               on_demand: bool = False, spread: str = "rack", read_only: bool = False,
               scrub_rate: int = 0,
               on_event: "Optional[Callable[[Event], object]]" = None) -> "Volume":
        """Opens a Volume; see there."""
        from ._volume import Volume

        volume: Volume = Volume(self, servers, size, name=name, take_over=take_over,
                                replicas=replicas, checksums=checksums, on_demand=on_demand,
                                spread=spread, read_only=read_only, scrub_rate=scrub_rate,
                                on_event=on_event)
        return volume

    def create_volume(self, servers: Servers, name: str, size: Size, *, replicas: int = 1,
                      keep_s: Optional[int] = None, reserve: bool = False,
                      checksums: bool = False, overcommit: bool = False) -> None:
        """Makes a named volume, which volume(servers, name=...) opens.

        Its servers keep it for `keep_s` seconds when no program has it open, or for ever.
        With `reserve` it has the memory of all of it at once, and no write lacks any.
        With `checksums`, and two replicas or more, damaged pages are found and repaired.
        With `overcommit` it may be larger than all memory that the servers have.
        """
        with self._handle as pointer:
            _named.create(pointer, servers, name, size, replicas, keep_s, reserve,
                          checksums, overcommit)

    def volumes(self, servers: Servers) -> List[VolumeInfo]:
        """The named volumes of these servers, in the order of their names.

        Servers that do not answer are left out, unless none does.
        """
        with self._handle as pointer:
            return _named.find(pointer, servers)

    def grow_volume(self, servers: Servers, name: str, size: Size, *,
                    overcommit: bool = False) -> None:
        """Makes a named volume larger that no program has open.

        More than half of its servers must be there. With `overcommit` it may become larger than
        all memory that they have.
        """
        with self._handle as pointer:
            _named.grow(pointer, servers, name, size, overcommit)

    def rename_volume(self, servers: Servers, name: str, new_name: str) -> None:
        """Gives a named volume another name; no program may have it open."""
        with self._handle as pointer:
            _named.rename(pointer, servers, name, new_name)

    def remove_volume(self, servers: Servers, name: str, *, force: bool = False) -> None:
        """Removes a named volume, and gives its memory back.

        With `force` also if a program has it open, which is shut out then.
        """
        with self._handle as pointer:
            _named.remove(pointer, servers, name, force)

    @wraps("rbx_region_register")
    def region(self, buffer: Buffer) -> Region:
        """Registers the memory of an object with the buffer protocol."""
        return Region(self, buffer)

    def plug(self) -> Plug:
        """`with context.plug():` what this thread submits in it leaves as one batch."""
        return Plug(self)

    @wraps("rbx_describe")
    def describe(self) -> Dict[str, str]:
        """The configuration in use, and which device was chosen and why."""
        with self._handle as pointer:
            buffer = ffi.new("char[]", DESCRIPTION_BYTES)
            length = check(lib.rbx_describe(pointer, buffer, DESCRIPTION_BYTES))
            if length >= DESCRIPTION_BYTES:
                buffer = ffi.new("char[]", length + 1)
                check(lib.rbx_describe(pointer, buffer, length + 1))
        return dict(line.split("=", 1) for line in text(buffer).splitlines() if "=" in line)

    @wraps("rbx_polling_set")
    def set_polling(self, polling: str) -> None:
        """Changes the polling policy."""
        with self._handle as pointer:
            check(lib.rbx_polling_set(pointer, native_text(polling, "a polling policy")))

    @wraps("rbx_stats_get")
    def stats(self) -> Stats:
        """What the context has counted."""
        numbers = ffi.new("struct rbx_stats *")
        with self._handle as pointer:
            lib.rbx_stats_get(pointer, numbers)
        return Stats(**{name: getattr(numbers, name) for name in Stats.__dataclass_fields__})

    @wraps("rbx_stats_reset")
    def reset_stats(self) -> None:
        """Starts counting from zero."""
        with self._handle as pointer:
            lib.rbx_stats_reset(pointer)

    @wraps("rbx_server_query")
    def query_server(self, address: str) -> ServerStats:
        """Asks a server for its numbers."""
        numbers = ffi.new("struct rbx_server_stats *")
        with self._handle as pointer:
            check(lib.rbx_server_query(pointer, native_text(address, "an address"), numbers))
        return server_stats(numbers)

    @property
    def closed(self) -> bool:
        return not self._handle.is_open

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            handle.dropped("context")


def server_stats(numbers: Any) -> ServerStats:
    return ServerStats(**{name: getattr(numbers, name)
                          for name in ServerStats.__dataclass_fields__})

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers: this process lends its memory."""

from functools import partial
from typing import Any, Callable, Optional, Union

from . import _process
from ._context import server_stats
from ._docs import wraps
from ._errors import check, native_text, text
from ._handles import Handle
from ._headers import ServerStats
from ._native import ffi, lib
from ._notices import Notices
from ._sizes import Size, size_bytes

_SIZES = {"memory": "memory_bytes", "slab": "slab_bytes", "quota": "quota_bytes"}
_TEXTS = ("listen", "fabric", "device", "secret_file", "secrets_file")
_NUMBERS = ("gid_index", "lease_ms", "insecure", "overcommit", "clients_max", "small_pages",
            "integrity", "volumes_max")


def _set_option(options: Any, name: str, value: Union[str, int, bool]) -> None:
    if name in _SIZES:
        setattr(options, _SIZES[name], size_bytes(value))
    elif name in _TEXTS:
        encoded = native_text(str(value), name)
        room = ffi.sizeof(ffi.typeof(getattr(options, name)))
        if len(encoded) >= room:
            raise ValueError("%s is longer than %d bytes" % (name, room - 1))
        setattr(options, name, encoded)
    elif name in _NUMBERS:
        setattr(options, name, int(value))
    else:
        raise TypeError("no option %r: there are %s" % (
            name, ", ".join((*_SIZES, *_TEXTS, *_NUMBERS))))


def _stop(notices: Optional[Notices], pointer: Any) -> None:
    check(lib.rbx_server_stop(pointer))
    if notices is not None:
        notices.stop()


class Server:
    """A memory server in this process, as `rdmabox serve` is one.

    Options are those of struct rbx_server_options in server.h, by name, but for
    `memory`, `slab` and `quota`, which are sizes: Server(listen="127.0.0.1:0",
    memory="64M"). stop() or `with` stops it; so does the end of the program.
    """

    @wraps("rbx_server_options_defaults", "rbx_server_start")
    def __init__(self, *, listen: str = "127.0.0.1:0", memory: Size = "64M",
                 on_log: Optional[Callable[[str], object]] = None,
                 **options: Union[str, int, bool]) -> None:
        """Starts to serve. `on_log` gets each line of the log, else stderr does."""
        if _process.exiting:
            raise ValueError("the interpreter is about to end")
        native = ffi.new("struct rbx_server_options *")
        lib.rbx_server_options_defaults(native)
        for name, value in {"listen": listen, "memory": memory, **options}.items():
            _set_option(native, name, value)
        notices = None
        if on_log is not None:
            notices = Notices("rdmabox-log", partial(_tell, on_log))
            native.log = ffi.addressof(lib, "rbxpy_server_log")
            native.user = notices.native
        pointer = ffi.new("struct rbx_server **")
        try:
            check(lib.rbx_server_start(pointer, native))
        except BaseException:
            if notices is not None:
                notices.stop()
            raise
        _process.start_janitor()
        self._handle = Handle("server", pointer[0], partial(_stop, notices))

    @property
    @wraps("rbx_server_address")
    def address(self) -> str:
        """Where it listens: "host:port", with the port that was taken."""
        with self._handle as pointer:
            return text(lib.rbx_server_address(pointer))

    @wraps("rbx_server_describe")
    def describe(self) -> str:
        """Which device it serves with, and why."""
        with self._handle as pointer:
            return text(lib.rbx_server_describe(pointer))

    @wraps("rbx_server_drain")
    def drain(self, timeout_ms: int) -> None:
        """Lends nothing more, and waits until nothing is lent."""
        with self._handle as pointer:
            check(lib.rbx_server_drain(pointer, timeout_ms))

    @wraps("rbx_server_stats_get")
    def stats(self) -> ServerStats:
        """What the server has counted."""
        numbers = ffi.new("struct rbx_server_stats *")
        with self._handle as pointer:
            lib.rbx_server_stats_get(pointer, numbers)
        return server_stats(numbers)

    @wraps("rbx_server_stop")
    def stop(self) -> None:
        """Ends all access and frees the memory. Stopped already: nothing is done."""
        self._handle.close()

    close = stop

    @property
    def closed(self) -> bool:
        return not self._handle.is_open

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            handle.dropped("server")


def _tell(on_log: Callable[[str], object], notice: Any) -> None:
    on_log(text(notice.text))

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Named volumes, which stay on their servers when their program ends. Context has the calls."""

from typing import Any, List, NamedTuple, Optional, Sequence, Union

from ._docs import wraps
from ._errors import check, native_text, text
from ._native import ffi, lib
from ._sizes import Size, size_bytes

Servers = Union[str, Sequence[str]]
"""Servers or a pool as a text, "host:port,host:port"; or a list of servers."""

FOR_EVER = (1 << 64) - 1


class VolumeInfo(NamedTuple):
    """What servers know of a named volume."""

    name: str
    volume_bytes: int
    """Its length."""
    slab_bytes: int
    """The unit in which it takes memory."""
    keep_s: Optional[int]
    """Seconds that it stays when no program has it open; None: for ever."""
    is_open: bool
    writer: str
    """The program that opened it last."""
    owner: str
    """The credential that it was made with; "": the one without a name."""
    volume_id: int
    """No other volume ever has it."""
    replicas: int
    copies: int
    """Complete replicas that each slab has at least which was ever written."""
    servers: int
    servers_there: int
    """Of them, that were asked and have it."""
    servers_out: int
    """That were lost, and are not needed to open it."""
    reserved_bytes: int
    """Memory that is kept for it, with all replicas; 0: it takes memory as it is written."""
    checksums: bool
    """Its servers keep a checksum of each page of 4096 bytes."""
    is_whole: bool
    """What was written has all its replicas, at servers that are there and in use."""
    too_few: bool
    """So few of its servers have answered that it cannot be opened."""


def native_servers(servers: Servers) -> bytes:
    return native_text(servers if isinstance(servers, str) else ",".join(servers),
                       "a list of servers")


def _native_name(name: str) -> bytes:
    return native_text(name, "the name of a volume")


def _info(native: Any) -> VolumeInfo:
    values = {field: getattr(native, field) for field in VolumeInfo._fields}
    for field in ("name", "writer", "owner"):
        values[field] = text(values[field])
    values["is_open"] = bool(native.is_open)
    values["checksums"] = bool(native.checksums)
    values["is_whole"] = bool(native.is_whole)
    values["too_few"] = bool(native.too_few)
    values["keep_s"] = None if native.keep_s == FOR_EVER else native.keep_s
    return VolumeInfo(**values)


@wraps("rbx_volume_create_options_defaults", "rbx_volume_create")
def create(ctx: Any, servers: Servers, name: str, size: Size, replicas: int,
           keep_s: Optional[int], reserve: bool, checksums: bool, overcommit: bool) -> None:
    """Makes one."""
    options = ffi.new("struct rbx_volume_create_options *")
    lib.rbx_volume_create_options_defaults(options)
    options.replicas = replicas
    options.reserve = reserve
    options.checksums = checksums
    options.overcommit = overcommit
    if keep_s is not None:
        options.keep_s = keep_s
    check(lib.rbx_volume_create(ctx, native_servers(servers), _native_name(name),
                                size_bytes(size), options))


@wraps("rbx_volume_list")
def find(ctx: Any, servers: Servers) -> List[VolumeInfo]:
    """All that there are."""
    room, addresses = 64, native_servers(servers)
    while True:
        infos = ffi.new("struct rbx_volume_info[]", room)
        count = check(lib.rbx_volume_list(ctx, addresses, infos, room))
        if count <= room:
            return [_info(infos[i]) for i in range(count)]
        room = count


@wraps("rbx_volume_grow", "rbx_volume_grow_beyond")
def grow(ctx: Any, servers: Servers, name: str, size: Size, overcommit: bool) -> None:
    """Makes one larger."""
    call = lib.rbx_volume_grow_beyond if overcommit else lib.rbx_volume_grow
    check(call(ctx, native_servers(servers), _native_name(name), size_bytes(size)))


@wraps("rbx_volume_rename")
def rename(ctx: Any, servers: Servers, name: str, new_name: str) -> None:
    """Gives one another name."""
    check(lib.rbx_volume_rename(ctx, native_servers(servers), _native_name(name),
                                _native_name(new_name)))


@wraps("rbx_volume_remove")
def remove(ctx: Any, servers: Servers, name: str, force: bool) -> None:
    """Removes one."""
    check(lib.rbx_volume_remove(ctx, native_servers(servers), _native_name(name), force))

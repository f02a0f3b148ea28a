# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What goes to the native part and comes back: texts, and memory that is not there."""

from types import ModuleType
from typing import Any, Callable, List

import pytest

import rdmabox
from conftest import MIB
from rdmabox import _buffers, _notices, _volume
from rdmabox._native import ffi, lib


class Without:
    """A module's `lib` in which one constructor has no memory."""

    def __init__(self, constructor: str) -> None:
        self._constructor = constructor

    def __getattr__(self, name: str) -> Any:
        return (lambda *_: ffi.NULL) if name == self._constructor else getattr(lib, name)


@pytest.mark.parametrize("module, constructor", [(_notices, "rbxpy_notices_new"),
                                                 (_volume, "rbxpy_fence_new")])
def test_no_memory_for_a_volume_is_a_memory_error(
        context: rdmabox.Context, server: rdmabox.Server, module: ModuleType, constructor: str,
        monkeypatch: pytest.MonkeyPatch) -> None:
    lent = server.stats().slabs_lent
    with monkeypatch.context() as patch:
        patch.setattr(module, "lib", Without(constructor))
        with pytest.raises(MemoryError, match="no memory for"):
            context.volume(server.address, MIB, on_event=print)
    assert server.stats().slabs_lent == lent
    with context.volume(server.address, MIB, on_event=print) as volume:
        volume.write(b"there", 0)
        assert volume[0:5] == b"there"


def test_text_with_a_nul_is_refused(volume: rdmabox.Volume, server: rdmabox.Server) -> None:
    context = volume.context
    address = server.address + "\0,127.0.0.1:1"
    calls: List[Callable[[], object]] = [
        lambda: context.volume(address, MIB), lambda: context.volume([address], MIB),
        lambda: context.volume(server.address, "1M\0G"), lambda: context.query_server(address),
        lambda: context.set_polling("busy\0"), lambda: volume.add_server(address),
        lambda: rdmabox.Context(tune_file="none\0"),
        lambda: rdmabox.Server(secret_file="/dev/null\0", on_log=print),
        lambda: rdmabox.Server(memory="8M\0"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="has a NUL in it"):
            call()


def test_memory_of_a_read_is_there_after_its_release(monkeypatch: pytest.MonkeyPatch) -> None:
    released: List[object] = []

    class Releases:
        def __getattr__(self, name: str) -> Any:
            return released.append if name == "release" else getattr(ffi, name)

    monkeypatch.setattr(_buffers, "ffi", Releases())
    memory = _buffers.fresh(5)
    ffi.memmove(memory.pointer, b"there", 5)
    memory.release()
    assert not released and _buffers.content(memory) == b"there"
    other = _buffers.borrow(bytearray(5), True)
    other.release()
    assert len(released) == 1

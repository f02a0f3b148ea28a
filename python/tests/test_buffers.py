# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Buffers: each kind of object is written from and read into, without a copy."""

import array
import ctypes
import mmap
import sys
from types import SimpleNamespace
from typing import Any, Callable, Dict

import numpy
import pytest

import rdmabox
from conftest import pattern

LENGTH = 8192


def a_mmap() -> mmap.mmap:
    return mmap.mmap(-1, LENGTH)


KINDS = {
    "bytearray": lambda: bytearray(LENGTH),
    "memoryview": lambda: memoryview(bytearray(LENGTH)),
    "part of a memoryview": lambda: memoryview(bytearray(3 * LENGTH))[LENGTH:2 * LENGTH],
    "memoryview of two dimensions": lambda: memoryview(bytearray(LENGTH)).cast("i", (64, 32)),
    "array": lambda: array.array("q", bytes(LENGTH)),
    "mmap": a_mmap,
    "ctypes": lambda: (ctypes.c_double * (LENGTH // 8))(),
    "numpy": lambda: numpy.zeros(LENGTH // 8),
    "numpy of three dimensions": lambda: numpy.zeros((4, 16, LENGTH // 256), numpy.float32),
    "numpy records": lambda: numpy.zeros(LENGTH // 8, [("a", "<i4"), ("b", "<f4")]),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())
def test_buffer_takes_what_is_read(volume: rdmabox.Volume, make: Callable[[], Any]) -> None:
    content = pattern(LENGTH)
    volume.write(content, 4096)
    buffer = make()
    volume.read_into(buffer, 4096)
    assert bytes(buffer) == content
    again = make()
    volume.read_into_async(again, 4096).result()
    assert bytes(again) == content


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())
def test_buffer_gives_what_is_written(volume: rdmabox.Volume, make: Callable[[], Any]) -> None:
    content = pattern(LENGTH, 2)
    buffer = make()
    memoryview(buffer).cast("B")[:] = content
    volume.write(buffer, 64)
    assert volume.read(64, LENGTH) == content
    volume.write_async(buffer, 100_000).result()
    assert volume.read(100_000, LENGTH) == content


def test_bytes_are_written_and_not_read_into(volume: rdmabox.Volume) -> None:
    content = pattern(LENGTH, 3)
    volume.write(content, 0)
    frozen = numpy.zeros(LENGTH, numpy.uint8)
    frozen.flags.writeable = False
    for buffer in (content, memoryview(content), frozen):
        with pytest.raises(BufferError):
            volume.read_into(buffer, 0)
        with pytest.raises(BufferError):
            volume.read_into_async(buffer, 0)
    assert volume.read(0, LENGTH) == content == pattern(LENGTH, 3)


def test_memory_with_gaps_is_refused(volume: rdmabox.Volume) -> None:
    for buffer in (numpy.zeros((64, 64))[:, ::2], memoryview(bytearray(100))[::2],
                   numpy.zeros((8, 8)).T[1:]):
        with pytest.raises(BufferError):
            volume.write(buffer, 0)
        with pytest.raises(BufferError):
            volume.read_into(buffer, 0)


def test_what_is_no_buffer_is_refused(volume: rdmabox.Volume) -> None:
    for buffer in ("text", 17, None, [1, 2], object()):
        with pytest.raises(TypeError):
            volume.write(buffer, 0)
        with pytest.raises(TypeError):
            volume.read_into(buffer, 0)
        with pytest.raises(TypeError):
            volume.write_async(buffer, 0)


def test_numpy_array_is_the_same_after_a_round_trip(volume: rdmabox.Volume) -> None:
    matrix = numpy.random.default_rng(1).normal(size=(300, 400))
    volume.write(matrix, 0)
    back = numpy.empty_like(matrix)
    volume.read_into(back, 0)
    numpy.testing.assert_array_equal(back, matrix)


def test_torch_tensor_is_the_same_after_a_round_trip(volume: rdmabox.Volume) -> None:
    torch = pytest.importorskip("torch")
    for tensor in (torch.rand(30, 40), torch.rand(100).to(torch.bfloat16), torch.tensor(3.5)):
        volume.write(tensor, 0)
        back = torch.zeros_like(tensor)
        volume.read_into(back, 0)
        assert torch.equal(back, tensor)
    with pytest.raises(BufferError):
        volume.write(torch.rand(30, 40).t(), 0)


class StandIn:
    """Of a torch tensor: what the package asks of one, over an array of numpy."""

    def __init__(self, array: "numpy.ndarray[Any, Any]", device: str = "cpu") -> None:
        self._array = array
        self.device = SimpleNamespace(type=device)

    def is_contiguous(self) -> bool:
        return bool(self._array.flags.c_contiguous)

    def detach(self) -> "StandIn":
        return self

    def reshape(self, shape: int) -> "StandIn":
        return StandIn(self._array.reshape(shape))

    def view(self, kind: Any) -> "StandIn":
        return StandIn(self._array.view(kind))

    def numpy(self) -> "numpy.ndarray[Any, Any]":
        return self._array


def test_stand_in_of_a_tensor_is_borrowed(volume: rdmabox.Volume,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    modules: Dict[str, Any] = sys.modules
    monkeypatch.setitem(modules, "torch", SimpleNamespace(uint8=numpy.uint8))
    monkeypatch.setattr(StandIn, "__module__", "torch")
    matrix = numpy.arange(1000.0).reshape(10, 100)
    volume.write(StandIn(matrix), 0)
    back = numpy.zeros((10, 100))
    volume.read_into(StandIn(back), 0)
    numpy.testing.assert_array_equal(back, matrix)
    for bad in (StandIn(matrix.T), StandIn(matrix, "cuda")):
        with pytest.raises(BufferError):
            volume.write(bad, 0)

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Named volumes: what a program wrote that was killed, another one reads; and mistakes."""

import errno
import signal
import subprocess
import sys
import time
from typing import Iterator, Tuple

import pytest

import rdmabox
from conftest import MIB, ServerProcess, pattern

WRITER = """
import random, sys, time
import rdmabox
context = rdmabox.Context(tune_file="none")
volume = context.volume(sys.argv[1], name="scratch")
volume.write(random.Random(7).randbytes(3 << 20), 12_345)
print("written", flush=True)
time.sleep(600)
"""


@pytest.fixture
def writer(server: rdmabox.Server, context: rdmabox.Context) -> "Iterator[subprocess.Popen[str]]":
    """A program that has written to a named volume, and has it open still."""
    context.create_volume(server.address, "scratch", "8M")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, server.address],
                              stdout=subprocess.PIPE, universal_newlines=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "written\n"
    yield writer
    if writer.returncode is None:
        writer.kill()
        writer.wait()
    writer.stdout.close()
    context.remove_volume(server.address, "scratch", force=True)


def test_killed_writers_data_is_read_by_another(context: rdmabox.Context, server: rdmabox.Server,
                                                writer: "subprocess.Popen[str]") -> None:
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    with context.volume(server.address, name="scratch", take_over=True) as volume:
        assert len(volume) == 8 * MIB
        assert volume.read(12_345, 3 * MIB) == pattern(3 * MIB, seed=7)
        assert volume.read(0, 12_345) == bytes(12_345)
    with context.volume(server.address, name="scratch") as volume:
        assert volume.read(12_345, 3 * MIB) == pattern(3 * MIB, seed=7)


def test_open_by_another_names_that_one(context: rdmabox.Context, server: rdmabox.Server,
                                        writer: "subprocess.Popen[str]") -> None:
    holder = "is open by .*, process %d" % writer.pid
    with pytest.raises(rdmabox.Error, match=holder) as caught:
        context.volume(server.address, name="scratch")
    assert caught.value.errno == errno.EBUSY
    with pytest.raises(rdmabox.Error, match=holder):
        context.remove_volume(server.address, "scratch")
    with pytest.raises(rdmabox.Error, match=holder):
        context.grow_volume(server.address, "scratch", "16M")
    info, = context.volumes(server.address)
    assert info.is_open and "process %d" % writer.pid in info.writer


def test_volume_is_read_beside_its_writer(context: rdmabox.Context, server: rdmabox.Server,
                                          writer: "subprocess.Popen[str]") -> None:
    with context.volume(server.address, name="scratch", read_only=True) as volume:
        assert len(volume) == 8 * MIB
        assert volume.read(12_345, 3 * MIB) == pattern(3 * MIB, seed=7)
        with pytest.raises(rdmabox.Error, match="read only") as caught:
            volume.write(b"x" * 4096, 0)
        assert caught.value.errno == errno.EROFS
    info, = context.volumes(server.address)
    assert info.is_open and "process %d" % writer.pid in info.writer


def test_volumes_are_made_told_and_removed(context: rdmabox.Context,
                                           server: rdmabox.Server) -> None:
    assert context.volumes(server.address) == []
    context.create_volume([server.address], "one", 3 * MIB, keep_s=3600)
    context.create_volume(server.address, "another", "8M")
    another, one = context.volumes(server.address)
    assert (one.name, one.volume_bytes, one.keep_s) == ("one", 3 * MIB, 3600)
    assert (another.name, another.volume_bytes, another.keep_s) == ("another", 8 * MIB, None)
    assert (one.slab_bytes, one.replicas, one.copies) == (MIB, 1, 1)
    assert (one.servers, one.servers_there, one.servers_out) == (1, 1, 0)
    assert one.is_whole
    assert not one.is_open and one.owner == "" and one.volume_id != another.volume_id
    context.grow_volume(server.address, "one", "16M")
    context.rename_volume(server.address, "one", "two")
    another, two = context.volumes(server.address)
    assert (two.name, two.volume_bytes, two.volume_id) == ("two", 16 * MIB, one.volume_id)
    context.remove_volume(server.address, "two")
    context.remove_volume(server.address, "another")
    assert context.volumes(server.address) == []


def test_reserved_volume_has_its_memory(context: rdmabox.Context, server: rdmabox.Server) -> None:
    lent = server.stats().slabs_lent
    with pytest.raises(rdmabox.Error, match="not enough memory free") as caught:
        context.create_volume(server.address, "held", "1G", reserve=True)
    assert caught.value.errno == errno.ENOSPC
    context.create_volume(server.address, "held", "8M", reserve=True)
    assert server.stats().slabs_lent == lent + 8
    info, = context.volumes(server.address)
    assert info.reserved_bytes == 8 * MIB
    assert not info.checksums
    context.remove_volume(server.address, "held")


def test_more_volumes_than_were_expected_are_all_told(context: rdmabox.Context,
                                                      server: rdmabox.Server) -> None:
    names = ["v%02d" % n for n in range(70)]
    for name in names:
        context.create_volume(server.address, name, MIB)
    assert [each.name for each in context.volumes(server.address)] == names
    for name in names:
        context.remove_volume(server.address, name)


def test_server_that_dies_loses_nothing(two_servers: Tuple[ServerProcess, ServerProcess]) -> None:
    one, two = two_servers
    servers = [one.address, two.address]
    with rdmabox.Context(tune_file="none", peer_timeout_ms=2000) as context:
        context.create_volume(servers, "safe", "4M", replicas=2)
        with context.volume(servers, name="safe") as volume:
            one.kill()
            volume.write(pattern(4 * MIB), 0)
            assert volume.read(0, 4 * MIB) == pattern(4 * MIB)


def test_volume_is_scrubbed_in_the_background(
        two_servers: Tuple[ServerProcess, ServerProcess]) -> None:
    servers = [server.address for server in two_servers]
    with rdmabox.Context(tune_file="none") as context:
        context.create_volume(servers, "checked", "8M", replicas=2, checksums=True)
        with context.volume(servers, name="checked", scrub_rate=1 << 30) as volume:
            volume.write(bytes(range(256)) * 16, 0)
            before = volume.status().scrub_passes
            while volume.status().scrub_passes < before + 2:
                time.sleep(0.01)
            assert volume.status().scrub_bad_pages == 0
        with pytest.raises(OSError, match="scrub_rate=5: .*at least 1048576 bytes"):
            context.volume(servers, name="checked", scrub_rate=5)
        context.remove_volume(servers, "checked")


def test_mistakes_are_refused(context: rdmabox.Context, server: rdmabox.Server) -> None:
    def refused(code: int, match: str, call: object, *given: object, **options: object) -> None:
        with pytest.raises(rdmabox.Error, match=match) as caught:
            call(server.address, *given, **options)  # type: ignore[operator]
        assert caught.value.errno == code

    context.create_volume(server.address, "there", MIB)
    refused(errno.ENOENT, "volume none", context.volume, name="none")
    refused(errno.ENOENT, "volume none", context.remove_volume, "none")
    refused(errno.EINVAL, "opened as it was made", context.volume, "8M", name="there")
    refused(errno.EINVAL, "opened as it was made", context.volume, name="there", replicas=2)
    refused(errno.EEXIST, "there", context.create_volume, "there", MIB)
    refused(errno.EINVAL, "name", context.create_volume, "no spaces", MIB)
    refused(errno.EINVAL, "multiple", context.create_volume, "other", 100)
    refused(errno.EINVAL, "2 replicas", context.create_volume, "other", MIB, replicas=2)
    refused(errno.EINVAL, "cannot become smaller", context.grow_volume, "there", 4096)
    refused(errno.EINVAL, "must be a multiple", context.volume)
    with pytest.raises(ValueError, match="NUL"):
        context.volume(server.address, name="a\0b")
    with pytest.raises(OverflowError):
        context.create_volume(server.address, "other", MIB, keep_s=-1)
    context.remove_volume(server.address, "there")

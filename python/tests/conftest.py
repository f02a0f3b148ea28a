# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests share: servers on loopback, a context, a volume, and programs."""

import faulthandler
import os
import random
import re
import signal
import subprocess
import sys
from typing import Iterator, List, Tuple

import pytest

import rdmabox

MIB = 1 << 20
TEST_SECONDS = int(os.environ.get("RDMABOX_TEST_SECONDS", 200))

# Nothing waits longer for a server that is dead.
PEER_TIMEOUT_MS = 2000


@pytest.fixture(autouse=True)
def no_test_hangs() -> Iterator[None]:
    """A test that hangs ends with the stacks of all threads."""
    faulthandler.dump_traceback_later(TEST_SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def server() -> Iterator[rdmabox.Server]:
    with rdmabox.Server(memory="128M", slab="1M", on_log=lambda line: None) as server:
        yield server


@pytest.fixture(params=["auto", "soft:tcp"])
def context(request: pytest.FixtureRequest) -> Iterator[rdmabox.Context]:
    """Over a mapping, as between programs of one host, and over TCP."""
    with rdmabox.Context(fabric=request.param, tune_file="none",
                         peer_timeout_ms=PEER_TIMEOUT_MS) as context:
        yield context


@pytest.fixture
def volume(context: rdmabox.Context, server: rdmabox.Server) -> Iterator[rdmabox.Volume]:
    with context.volume(server.address, 8 * MIB) as volume:
        yield volume


def pattern(length: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(length)


class ServerProcess:
    """`rdmabox serve`, which can be killed."""

    def __init__(self, memory: str = "64M") -> None:
        self._process = subprocess.Popen(
            [os.environ["RDMABOX_PROGRAM"], "serve", "--fabric", "soft", "--listen", "127.0.0.1:0",
             "--memory", memory, "--slab", "1M"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        assert self._process.stdout is not None
        lines: List[str] = []
        for line in self._process.stdout:
            lines.append(line)
            found = re.search(r"127\.0\.0\.1:[1-9]\d*", line)
            if found:
                self.address = found.group()
                return
        raise AssertionError("no server: " + "".join(lines))

    def freeze(self) -> None:
        """Requests over TCP stay outstanding until thaw()."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)  # until all of its threads have stopped

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def frozen() -> Iterator[Tuple[rdmabox.Volume, ServerProcess]]:
    """A volume whose requests stay outstanding until thaw() of its server."""
    process = ServerProcess()
    with rdmabox.Context(fabric="soft:tcp", tune_file="none", window="off") as context:
        with context.volume(process.address, 8 * MIB) as volume:
            volume.write(b"before", 0)
            process.freeze()
            yield volume, process
            process.thaw()
    process.kill()


@pytest.fixture
def two_servers() -> Iterator[Tuple[ServerProcess, ServerProcess]]:
    servers = ServerProcess(), ServerProcess()
    yield servers
    for server in servers:
        server.kill()


def run_program(text: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs a program of Python that must end by itself."""
    # From 3.12 on a fork of a program with threads is a DeprecationWarning.
    return subprocess.run([sys.executable, "-X", "faulthandler", "-W",
                           "ignore::DeprecationWarning", "-c", text, *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=TEST_SECONDS)

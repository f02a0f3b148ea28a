# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that end with something open: they end by themselves, and in order."""

from typing import Iterator

import pytest

import rdmabox
from conftest import ServerProcess, run_program

OPEN = """
import asyncio, os, sys, threading, time
import rdmabox
context = rdmabox.Context(fabric="soft:tcp", tune_file="none", peer_timeout_ms=1000)
volume = context.volume(sys.argv[1], 8 << 20)
memory = bytearray(b"at exit " * 1000)
"""

WAYS = {
    "nothing more": "",
    "requests outstanding": "[volume.write_async(memory, i * 8000) for i in range(900)]",
    "dropped with requests outstanding":
        "volume.write_async(memory, 0); del volume, context, memory",
    "a daemon thread that goes on": """
def forever():
    while True:
        volume.write(memory, 0)
for _ in range(4):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
""",
    "a thread that goes on for a while": """
def later():
    time.sleep(0.3)
    volume.write(memory, 0)
    print("written")
threading.Thread(target=later).start()
""",
    "a loop that was left": """
async def main():
    volume.awrite(memory, 0)
    await asyncio.sleep(0)
asyncio.run(main())
""",
    "a loop that runs in a daemon thread": """
async def main():
    while True:
        await asyncio.gather(*(volume.awrite(memory, i * 8000) for i in range(100)))
threading.Thread(target=asyncio.run, args=(main(),), daemon=True).start()
time.sleep(0.2)
""",
    "a server of its own": """
server = rdmabox.Server(memory="8M", slab="1M", on_log=lambda line: None)
another = context.volume(server.address, 1 << 20, on_event=print)
another.write(memory, 0)
""",
    "a region and a plug": """
region = context.region(memory)
plug = context.plug().__enter__()
volume.write_async(region, 0)
""",
    "a plug of a daemon thread": """
def stay():
    with context.plug():
        volume.write_async(memory, 0)
        time.sleep(1000)
threading.Thread(target=stay, daemon=True).start()
time.sleep(0.1)
""",
    "a reference in a cycle": "cycle = [volume, context]; cycle.append(cycle); del volume, context",
}


@pytest.fixture(scope="module")
def process() -> Iterator[ServerProcess]:
    process = ServerProcess()
    yield process
    process.kill()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_program_ends(process: ServerProcess, way: str) -> None:
    done = run_program(OPEN + way, process.address)
    lines = [line for line in done.stderr.splitlines() if "ValueError" not in line]
    assert done.returncode == 0, done.stderr
    assert "Fatal" not in done.stderr and "Segmentation" not in done.stderr, lines
    # No event either: a server of the program ends after its clients.
    assert done.stdout == ("written\n" if "later" in way else "")
    with rdmabox.Context(tune_file="none") as context:
        assert context.query_server(process.address).slabs_lent == 0


def test_exception_ends_the_program(process: ServerProcess) -> None:
    done = run_program(OPEN + "volume.write_async(memory, 0); raise SystemExit(3)",
                       process.address)
    assert done.returncode == 3 and done.stderr == ""


def test_program_ends_though_its_server_is_dead() -> None:
    process = ServerProcess()
    done = run_program(OPEN + """
import signal
volume.write(memory, 0)
os.kill(int(sys.argv[2]), signal.SIGKILL)
futures = [volume.write_async(memory, i * 8000) for i in range(100)]
""", process.address, str(process._process.pid))
    assert done.returncode == 0 and done.stderr == ""
    process.kill()


def test_nothing_is_opened_at_exit(process: ServerProcess) -> None:
    done = run_program("""
import atexit, sys
def late():
    import rdmabox
    for make in (rdmabox.Context, rdmabox.Server):
        try:
            make()
        except ValueError as error:
            print(error)
atexit.register(late)
import rdmabox
""")
    assert done.stdout == "the interpreter is about to end\n" * 2, done.stderr

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Forks: what was opened before is the parent's, and a child hears that at once."""

from typing import Iterator

import pytest

from conftest import ServerProcess, run_program

FORK = """
import asyncio, concurrent.futures, errno, gc, os, sys, threading, time
import rdmabox
context = rdmabox.Context(fabric="soft:tcp", tune_file="none")
volume = context.volume(sys.argv[1], 8 << 20)
region = context.region(bytearray(4096))
server = rdmabox.Server(memory="8M", slab="1M", on_log=lambda line: None)
volume.write(b"parent", 0)

def refused(call):
    try:
        call()
    except rdmabox.Error as error:
        assert error.errno == errno.EINVAL and "fork()" in str(error), error
    else:
        raise AssertionError("not refused")

def child(run):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            run()
            code = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status

def go_on():
    assert volume.read(0, 6) == b"parent"
    assert volume.write_async(b"on", 100).result(20) is None
"""


@pytest.fixture(scope="module")
def process() -> Iterator[ServerProcess]:
    process = ServerProcess()
    yield process
    process.kill()


def run(process: ServerProcess, text: str) -> None:
    done = run_program(FORK + text, process.address, str(process._process.pid))
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_each_call_in_the_child_is_refused(process: ServerProcess) -> None:
    run(process, """
def calls():
    buffer = bytearray(10)
    for call in (
        lambda: volume.read(0, 1), lambda: volume.read_into(buffer, 0),
        lambda: volume.write(b"x", 0), lambda: volume.write(b"x", 0, fence=True),
        lambda: volume.write(region, 0), lambda: volume.readv([buffer], 0),
        lambda: volume.read_async(0, 1), lambda: volume.submit([("write", b"x", 0)]),
        lambda: volume.run([("write", b"x", 0)]), lambda: volume.fence(), volume.status,
        lambda: volume.add_server("127.0.0.1:1"), lambda: volume.discard(0, 4096),
        lambda: asyncio.run(awaited()), context.describe, context.stats, context.reset_stats,
        lambda: context.volume(sys.argv[1], 4096), lambda: context.region(buffer),
        lambda: context.query_server(sys.argv[1]), context.plug().__enter__,
        server.stats, server.describe, lambda: server.address, lambda: server.drain(1),
    ):
        refused(call)
    buffer.append(1)
async def awaited():
    await volume.aread(0, 1)
child(calls)
go_on()
""")


def test_close_in_the_child_leaves_the_parent_alone(process: ServerProcess) -> None:
    run(process, """
def close():
    volume.close(); region.close(); context.close(); server.stop()
    volume.close()
child(close)
def drop():
    global volume, context, region, server
    del volume, context, region, server
    gc.collect()
child(drop)
def leave():
    with context, volume, region, server:
        pass
child(leave)
go_on()
server.stats()
""")


def test_futures_end_in_the_child(process: ServerProcess) -> None:
    run(process, """
import signal
def wait():
    for each in futures:
        refused(lambda: each.result(5))
    done, pending = concurrent.futures.wait(futures, 5)
    assert len(done) == len(futures) and not pending
    assert told == []
    memory.append(1)
memory, told = bytearray(b"forked" * 20_000)[:100_000], []
os.kill(int(sys.argv[2]), signal.SIGSTOP)
tasks = "/proc/%s/task/" % sys.argv[2]
while any(open(tasks + each + "/stat").read().split()[2] != "T" for each in os.listdir(tasks)):
    time.sleep(0.01)
futures = [volume.write_async(memory, (1 << 20) + i * 100_000) for i in range(50)]
for each in futures:
    each.add_done_callback(told.append)
threading.Timer(1, os.kill, (int(sys.argv[2]), signal.SIGCONT)).start()
child(wait)
for each in futures:
    assert each.result(20) is None
assert len(told) == 50
assert volume.read(1 << 20, 5_000_000) == bytes(memory) * 50
go_on()
""")


def test_child_opens_its_own(process: ServerProcess) -> None:
    run(process, """
def own():
    with rdmabox.Context(tune_file="none") as mine:
        with mine.volume(sys.argv[1], 1 << 20) as other:
            other.write(b"child", 0)
            assert other.read_async(0, 5).result(20) == b"child"
            async def main():
                await other.awrite(b"loop", 5)
                return await other.aread(0, 9)
            assert asyncio.run(main()) == b"childloop"
    dropped = rdmabox.Context(tune_file="none")
    handle = dropped._handle
    import warnings
    warnings.simplefilter("ignore")
    del dropped
    while handle.is_open:
        time.sleep(0.01)
child(own)
go_on()
""")


def test_child_ends_as_a_program_does(process: ServerProcess) -> None:
    run(process, """
future = volume.write_async(bytes(1 << 20), 1 << 20)
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    sys.exit(7)  # with atexit, and all destructors
_, status = os.waitpid(pid, 0)
assert os.WEXITSTATUS(status) == 7, status
future.result(20)
assert volume.read(0, 6) == b"parent"
""")


def test_forks_of_a_busy_program(process: ServerProcess) -> None:
    run(process, """
stop = threading.Event()
def work(at):
    while not stop.is_set():
        for each in [volume.write_async(bytes(4096), (at * 100 + i + 1) * 4096) for i in range(50)]:
            each.result(20)
threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
for thread in threads:
    thread.start()
def look():
    refused(lambda: volume.read(0, 1))
    refused(lambda: volume.write(region, 0))
    region.close()
    context.close()
for _ in range(20):
    child(look)
    go_on()
stop.set()
for thread in threads:
    thread.join()
""")

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Eight threads on one volume, and the interpreter's lock."""

import random
import threading
import time
from typing import List

import rdmabox
from conftest import MIB, ServerProcess, pattern

THREADS = 8
PART = 512 << 10


def test_eight_threads_do_all_kinds_of_requests(volume: rdmabox.Volume) -> None:
    failures: List[BaseException] = []

    def work(at: int) -> None:
        # What is written is remembered, and what is read compared.
        dice, base, shadow = random.Random(at), at * PART, bytearray(PART)
        for turn in range(150):
            start = dice.randrange(PART - 20_000)
            content = dice.randbytes(dice.randrange(1, 20_000))
            end = start + len(content)
            kind = turn % 5
            if kind == 0:
                volume.write(content, base + start)
            elif kind == 1:
                volume.write_async(content, base + start).result()
            elif kind == 2:
                volume[base + start:base + end] = content
            elif kind == 3:
                half = len(content) // 2
                volume.run([("write", content[:half], base + start),
                            ("write", content[half:], base + start + half)])
            else:
                volume.writev([content[:5], content[5:]], base + start)
            shadow[start:end] = content
            assert volume.read(base + start, len(content)) == content
        assert volume.read_async(base, PART).result() == shadow

    def run(at: int) -> None:
        try:
            work(at)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(at,)) for at in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_others_run_while_a_call_waits() -> None:
    process = ServerProcess()
    with rdmabox.Context(fabric="soft:tcp", tune_file="none") as context:
        with context.volume(process.address, 8 * MIB) as volume:
            process.freeze()
            content = pattern(MIB)
            buffers = [bytearray(100) for _ in range(2)]

            def write_and_fence() -> None:
                volume.write_async(content, 2 * MIB)
                volume.fence()

            threads = [threading.Thread(target=call) for call in (
                lambda: volume.write(content, 0),
                lambda: volume.run([("write", content, MIB)]),
                lambda: volume.readv(buffers, 4 * MIB),
                lambda: volume.read(4 * MIB, 10),
                write_and_fence,
            )]
            for thread in threads:
                thread.start()
            # A call that kept the lock would keep this thread until it ended.
            for _ in range(20):
                time.sleep(0.01)
            assert all(thread.is_alive() for thread in threads)
            process.thaw()
            for thread in threads:
                thread.join()
            assert volume.read(0, 3 * MIB) == content * 3
    process.kill()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A thousand requests of coroutines: those of one pass of the loop leave as a batch."""

import asyncio
import sys

import rdmabox

PAGE = 4096


async def pages(volume: rdmabox.Volume) -> None:
    numbers = range(1000)
    await asyncio.gather(*(volume.awrite(bytes([n % 256]) * PAGE, n * PAGE) for n in numbers))
    back = await asyncio.gather(*(volume.aread(n * PAGE, PAGE) for n in numbers))
    assert back == [bytes([n % 256]) * PAGE for n in numbers]


if len(sys.argv) != 2:
    sys.exit("usage: coroutines.py SERVER:PORT[,SERVER:PORT...]")
with rdmabox.Context() as context, context.volume(sys.argv[1], "8M") as volume:
    asyncio.run(pages(volume))
    print("1000 pages written and read,", context.stats().merged_requests, "requests merged")

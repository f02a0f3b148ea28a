# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two servers in this process. One ends; with two replicas nothing is lost."""

import threading

import rdmabox

told = threading.Event()


def on_event(event: rdmabox.Event) -> None:
    if event.kind == rdmabox.EventKind.SERVER_DOWN:
        print("the server", event.server, "is dead")
        told.set()


def quiet(line: str) -> None:
    pass


first = rdmabox.Server(memory="8M", slab="1M", on_log=quiet)
second = rdmabox.Server(memory="8M", slab="1M", on_log=quiet)
with rdmabox.Context(peer_timeout_ms=2000) as context:
    with context.volume([first.address, second.address], "4M", replicas=2,
                        on_event=on_event) as volume:
        volume[:] = b"RDMAbox!" * (len(volume) // 8)
        first.stop()
        assert volume[:] == b"RDMAbox!" * (len(volume) // 8)
        told.wait(10)
        print("all of it is there")
second.stop()

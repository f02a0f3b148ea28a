# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes to remote memory and reads it back: start here."""

import sys

import rdmabox

if len(sys.argv) != 2:
    sys.exit("usage: hello.py SERVER:PORT[,SERVER:PORT...]")
with rdmabox.Context() as context:
    with context.volume(sys.argv[1], "1M") as volume:
        volume.write(b"hello, remote memory", 4096)
        print(volume.read(4096, 20).decode())

        volume[0:5] = b"HELLO"  # a volume is a sequence of bytes, too
        assert volume[0:5] == b"HELLO"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server whose stderr is full, or read by nobody any more, lends and stops as
# any other.

. "$(dirname "$0")/rdmabox.sh"

# A process that has the pipe open, so that it keeps what is in it.
python3 - "$rdmabox" <<'END' || fault "the server needs a reader"
import os, signal, subprocess, sys

def serve(stderr):
    server = subprocess.Popen(
        [sys.argv[1], "serve", "--listen", "127.0.0.1:0", "--memory", "16M", "--slab", "1M"],
        stdout=subprocess.PIPE, stderr=stderr, text=True)
    return server, server.stdout.readline().split()[1]

def use_and_stop(server, address):
    try:
        for _ in range(2):
            subprocess.run(
                [sys.argv[1], "bench", "--pool", address, "--volume", "1M",
                 "--runtime", "0.1", "--warmup", "0"],
                check=True, stdout=subprocess.DEVNULL, timeout=60)
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0, server.returncode
    finally:
        server.kill()

reader, writer = os.pipe()
server, address = serve(writer)
os.set_blocking(writer, False)
try:
    while True:
        os.write(writer, bytes(4096))
except BlockingIOError:
    os.set_blocking(writer, True)
use_and_stop(server, address)

reader, writer = os.pipe()
server, address = serve(writer)
os.close(reader)
os.close(writer)
use_and_stop(server, address)
END

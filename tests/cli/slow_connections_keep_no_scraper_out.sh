#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connections that begin a request for metrics, and send a byte of it now and then
# without end, keep nobody out: neither from their own address nor from another one.

. "$(dirname "$0")/rdmabox.sh"

start_server --memory 16M --slab 1M --metrics 127.0.0.1:0
metrics=$(sed -n 's/^ready.*metrics at //p' "$scratch/server.0")
python3 - "$metrics" <<'END' || fault "slow connections keep a scraper out"
import socket, sys, threading

host, port = sys.argv[1].rsplit(":", 1)
stop = threading.Event()

def reach(source):
    return socket.create_connection((host, int(port)), 60, (source, 0))

# Many times more than there are places.
slow = []
for _ in range(300):
    slow.append(reach("127.0.0.1"))
    slow[-1].sendall(b"GET /met")

def send_slowly():
    while not stop.wait(0.5):
        for connection in slow:
            try:
                connection.sendall(b"r")
            except OSError:
                pass

sender = threading.Thread(target=send_slowly)
sender.start()
try:
    for source in ("127.0.0.1", "127.0.0.2") * 3:
        scraper = reach(source)
        scraper.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        page = b""
        while part := scraper.recv(65536):
            page += part
        assert b"rdmabox_server_uptime_seconds" in page, page
        scraper.close()
finally:
    stop.set()
    sender.join()
END

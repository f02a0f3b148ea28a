#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server that may open no file more is not kept busy by the connections that wait at its
# ports, and answers them once it may. It also ends as it should without one.

. "$(dirname "$0")/rdmabox.sh"

# A sanitizer cannot look for leaks in a process that may open nothing.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

start_server --memory 16M --slab 1M --fabric soft:tcp --metrics 127.0.0.1:0
metrics=$(sed -n 's/^ready.*metrics at //p' "$scratch/server.0")
python3 - "$pid" "$metrics" "$address" <<'END' || fault "it is busy, or does not answer"
import os, resource, socket, sys, time

pid, addresses = int(sys.argv[1]), sys.argv[2:]

def reach(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), 60)

def used_s():
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1])) # stdin, stdout, stderr
waiting = [reach(address) for address in addresses]
waiting[0].sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
time.sleep(0.5)
used, begin = used_s(), time.monotonic()
time.sleep(2)
used, passed = used_s() - used, time.monotonic() - begin
waiting[0].setblocking(False)
try:
    assert not waiting[0].recv(1), "there was a descriptor"
except BlockingIOError:
    pass
assert used < 0.1 * passed, "busy for %.2f of %.2f s" % (used, passed)

resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
waiting[0].settimeout(60)
page = b""
while part := waiting[0].recv(65536):
    page += part
assert b"rdmabox_server_uptime_seconds" in page, page
END
expect_success stat --server "$address"

python3 -c '
import resource, sys
limit = resource.prlimit(int(sys.argv[1]), resource.RLIMIT_NOFILE)
resource.prlimit(int(sys.argv[1]), resource.RLIMIT_NOFILE, (3, limit[1]))' "$pid"
kill -TERM "$pid"
wait "$pid"
status=$?
[ "$status" = 0 ] || { cat "$scratch/server.0.err" >&2; fault "exit code $status after SIGTERM"; }

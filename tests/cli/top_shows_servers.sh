#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox top: as text and JSON it says what its servers say, with rates of a load that runs;
# on a terminal it shows a server that dies and comes back, obeys keys and sizes, and leaves
# the terminal as it was, however it ends.

. "$(dirname "$0")/rdmabox.sh"

start_server --memory 64M --slab 4M --fabric soft:tcp
one=$address
start_server --memory 32M --slab 4M --fabric soft:tcp
two=$address two_pid=$pid
"$rdmabox" bench --pool "$one" --fabric soft:tcp --volume 16M --op mix:80 --load open:2000 \
	--runtime 3600 >/dev/null 2>&1 &
server_pids+=($!)
for ((attempt = 0; attempt < 600; attempt++)); do
	run stat --server "$one" --json
	[ "$status" = 0 ] && [ "$(key slabs_lent)" = 4 ] && break
	sleep 0.05
done

# Text, and the two orders.
expect_success top --servers "$one,$two" --once --interval 1
grep -qE "^SERVER +STATE +LENT +OF +CLIENTS" "$scratch/out" || { show; fault "no titles"; }
grep -qE "^$one +up +16\.0 MiB +64\.0 MiB +2 +[0-9.]+ MB +[0-9.]+ MB +[0-9.]+k? " "$scratch/out" ||
	{ show; fault "not what the first server is"; }
grep -qE "^$two +up +0 B +32\.0 MiB +1 +0 B +0 B +0 " "$scratch/out" ||
	{ show; fault "not what the second server is"; }
expect_success top --servers "$one,$two" --once --interval 0.2 --sort lent
[ "$(sed -n 2p "$scratch/out" | cut -d' ' -f1)" = "$one" ] || { show; fault "not sorted by what is lent"; }
expect_success top --servers "$one,$two" --once --interval 0.2 --sort lent --reverse
[ "$(sed -n 2p "$scratch/out" | cut -d' ' -f1)" = "$two" ] || { show; fault "not the other way round"; }

# JSON: an object a line, and rates that are those of the load: 2000 requests of 4 KiB a
# second, four of five read; a work request may carry several. Asking is one client.
run stat --server "$two" --json
sessions=$(key sessions)
timeout "$limit_s" "$rdmabox" top --servers "$one,$two" --json --interval 0.5 >"$scratch/json" &
top=$!
for ((attempt = 0; attempt < 600; attempt++)); do
	[ "$(wc -l <"$scratch/json")" -ge 4 ] && break
	sleep 0.05
done
kill -TERM "$top"
wait "$top"
status=$?
[ "$status" = 0 ] || fault "top --json: exit code $status after SIGTERM"
python3 - "$scratch/json" "$one" "$two" <<'END' || fault "JSON is not as it should be"
import json, sys
looks = [json.loads(line) for line in open(sys.argv[1])]
assert len(looks) >= 4
for look in looks:
    servers = {server["address"]: server for server in look["servers"]}
    assert set(servers) == set(sys.argv[2:4]), servers
    one, two = (servers[address] for address in sys.argv[2:4])
    assert one["state"] == two["state"] == "up", servers
    assert one["lent_bytes"] == 16 << 20 and one["memory_bytes"] == 64 << 20, one
    assert one["clients"] == 2 and two["clients"] == 1, servers
    assert two["read_bytes_per_s"] == 0 and two["work_requests_per_s"] == 0, two
    assert 0 < one["answer_ns"] < 60e9 and 0 <= one["uptime_s"] < 600, one
    assert look["volumes"] == []
def mean(name):
    return sum(server[name] for look in looks for server in look["servers"]
               if server["address"] == sys.argv[2]) / len(looks)

assert mean("read_bytes_per_s") > 2 * mean("written_bytes_per_s") > 0
both = mean("read_bytes_per_s") + mean("written_bytes_per_s")
# A busy machine may fall behind, never ahead for long.
assert 0.2 * 2000 * 4096 < both < 3 * 2000 * 4096, both
assert 0 < mean("work_requests_per_s") < 3 * 2000
END
run stat --server "$two" --json
[ "$(key sessions)" = $((sessions + 2)) ] || fault "each question was another client" # of top, and this

# A server that is down is one, and says why.
run top --servers "$one,127.0.0.1:1" --once --interval 0.2
[ "$status" = 1 ] || { show; fault "a server that is down: exit code $status, not 1"; }
grep -qE '^127\.0\.0\.1:1 +down +- ' "$scratch/out" || { show; fault "not said to be down"; }
grep -qE '^  .*127\.0\.0\.1:1' "$scratch/out" || { show; fault "not said why"; }

expect_refusal 'add --servers' top
expect_refusal 'no address of a server' top --servers nowhere
printf -v many '127.0.0.1:%d,' {1..65}
expect_refusal 'more than 64 servers; give fewer' top --servers "${many%,}"
expect_refusal 'too short' top --servers "$one" --interval 0
expect_refusal 'give one of name\|' top --servers "$one" --sort colour

# Without ncurses there is no screen to be looked at. grep reads to the end: else ldd may
# fail for want of a reader, and the screen is left out.
if ! ldd "$rdmabox" | grep ncurses >/dev/null; then
	echo "built without ncurses: the screen was left out" >&2
	exit 0
fi
kill -0 "$two_pid" || fault "the second server has gone"
PYTHONPATH=$here python3 - "$rdmabox" "$one" "$two" "$two_pid" <<'END' || fault "the screen is not as it should be"
import os, signal, subprocess, sys, time
from terminal import Terminal

signal.signal(signal.SIGHUP, signal.SIG_DFL) # ignored if this runs under nohup
rdmabox, one, two, two_pid = sys.argv[1:4] + [int(sys.argv[4])]
command = [rdmabox, "top", "--servers", one + "," + two, "--interval", "0.2"]

def begin(**size):
    return Terminal(command, **size)

def row(screen, address):
    return next((line for line in screen if line.startswith(address)), "")

def is_restored(terminal):
    return terminal.modes() == terminal.modes_before

screen = begin()
screen.wait("both up", lambda lines: "2 of 2 servers up, 16.0 MiB of 96.0 MiB lent" in lines[0])
assert not is_restored(screen), "no screen mode"
screen.wait("rates", lambda lines: " MB " in row(lines, one) or " kB " in row(lines, one))
lines = screen.screen()
assert lines[2].startswith("SERVER") and lines[2].split()[:4] == ["SERVER", "STATE", "LENT", "OF"]
assert row(lines, one).split()[1:6] == ["up", "16.0", "MiB", "64.0", "MiB"], lines
assert "sort: name" in lines[-1] and "every 0.2 s" in lines[-1], lines[-1]

# Order.
names = sorted([one, two])
assert [line.split()[0] for line in lines[3:5]] == names, lines
screen.type("r")
screen.wait("the other order", lambda lines: [line.split()[0] for line in lines[3:5]] == names[::-1]
            and "reversed" in lines[-1])
screen.type("rs")
screen.wait("by what is lent", lambda lines: "sort: lent" in lines[-1] and
            lines[3].startswith(one) and lines[4].startswith(two))

# Size.
screen.resize(8, 60)
screen.wait("a smaller screen", lambda lines: "q quit" in lines[7] and lines[3].startswith(one)
            and lines[2].split() == ["SERVER", "STATE", "LENT", "OF", "CLIENTS"])
screen.resize(8, 80)
screen.wait("that of most terminals", lambda lines: lines[2].endswith(" WR/s"))
screen.resize(30, 100)
screen.wait("a larger one", lambda lines: "q quit" in lines[29] and lines[3].startswith(one))

# One that is stopped is silent for a while, and then down; it goes on where it was.
os.kill(two_pid, signal.SIGSTOP)
screen.wait("silent", lambda lines: row(lines, two).split()[1:2] == ["silent"])
assert row(screen.screen(), one).split()[1] == "up"
os.kill(two_pid, signal.SIGCONT)
screen.wait("up once more", lambda lines: row(lines, two).split()[1:2] == ["up"])

# Death, and another life.
os.kill(two_pid, signal.SIGKILL)
screen.wait("down", lambda lines: row(lines, two).split()[1:2] == ["down"] and
            "1 of 2 servers up" in lines[0])
assert row(screen.screen(), one).split()[1] == "up"
again = subprocess.Popen([rdmabox, "serve", "--listen", two, "--memory", "48M", "--slab", "4M",
                          "--fabric", "soft:tcp"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
try:
    screen.wait("up again", lambda lines: row(lines, two).split()[1:6] ==
                ["up", "0", "B", "48.0", "MiB"] and "2 of 2" in lines[0])
    screen.type("q")
    assert screen.end() == 0
    assert is_restored(screen), "q leaves the terminal as it is"

    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        screen = begin()
        screen.wait("up", lambda lines: "2 of 2 servers up" in lines[0])
        os.kill(screen.pid, number)
        assert screen.end() == 0, number
        assert is_restored(screen), number

    # Ignored, as by nohup; its terminal goes, and nothing is left to show it on.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    screen = begin()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    screen.wait("up", lambda lines: "2 of 2 servers up" in lines[0])
    os.kill(screen.pid, signal.SIGHUP)
    screen.type("r")
    screen.wait("it goes on", lambda lines: "reversed" in lines[-1])
    screen.type("r")
    screen.wait("and on", lambda lines: "reversed" not in lines[-1])
    assert screen.end_without_terminal() == 0
finally:
    again.kill()
    again.wait()
END

# A reader that has stopped does not keep it from its end.
python3 - "$rdmabox" "$one" <<'END' || fault "top does not end before a full pipe"
import array, fcntl, os, signal, subprocess, sys, termios, time

def waiting():
    count = array.array("i", [0])
    fcntl.ioctl(reader, termios.FIONREAD, count)
    return count[0]

reader, writer = os.pipe()
fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
top = subprocess.Popen([sys.argv[1], "top", "--servers", sys.argv[2], "--json",
                        "--interval", "0.1"], stdout=writer)
before = -1
while not waiting() or before != waiting():
    before = waiting()
    time.sleep(1)
top.send_signal(signal.SIGTERM)
assert top.wait(60) == 0, top.returncode
END

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What rdmabox serve --metrics answers: which paths and methods, with which headers; that
# the page loads nothing from elsewhere; that counters count; that it binds where it was
# told and nowhere else; and that promtool, if there is one, finds no fault.

. "$(dirname "$0")/rdmabox.sh"

start_server --memory 64M --slab 4M --quota 32M --fabric soft:tcp --metrics 127.0.0.1:0
metrics=$(sed -n 's/^ready.*metrics at //p' "$scratch/server.0")

run bench --pool "$address" --fabric soft:tcp --volume 48M --runtime 0.1 --warmup 0
[ "$status" != 0 ] || fault "a client got more than its quota"
run bench --pool "$address" --fabric soft:tcp --volume 16M --op mix:50 --runtime 0.3 --warmup 0
[ "$status" = 0 ] || { show; fault "bench: exit code $status"; }

python3 - "$metrics" "$scratch/metrics" <<'END' || fault "not as it should be"
import http.client, json, re, sys

def ask(method, path, **headers):
    connection = http.client.HTTPConnection(sys.argv[1], timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer, answer.read()

types = {"/": "text/html; charset=utf-8", "/status.json": "application/json",
         "/metrics": "text/plain; version=0.0.4; charset=utf-8"}
for path, expected in types.items():
    answer, body = ask("GET", path)
    assert answer.status == 200 and body, path
    assert answer.getheader("Content-Type") == expected, (path, answer.getheaders())
    assert answer.getheader("X-Content-Type-Options") == "nosniff", path
    assert answer.getheader("Cache-Control") == "no-store", path
    assert "default-src 'none'" in answer.getheader("Content-Security-Policy"), path
    assert answer.getheader("Access-Control-Allow-Origin") is None, path
    head, nothing = ask("HEAD", path)
    assert head.status == 200 and nothing == b"", path
    assert head.getheader("Content-Type") == expected, path
    # The numbers may have grown by a digit meanwhile.
    assert abs(int(head.getheader("Content-Length")) - len(body)) < 20, path
    for method in "POST", "PUT", "DELETE", "OPTIONS":
        answer, _ = ask(method, path)
        assert answer.status == 405 and answer.getheader("Allow") == "GET, HEAD", (method, path)
for path in "/metrics/", "/..", "/etc/passwd", "/status.html":
    assert ask("GET", path)[0].status == 404, path

# A name could be pointed here by its owner, whose page would then read ours.
for host, status in (("localhost:1", 200), ("10.0.0.1:9471", 200), ("[::1]:9471", 200),
                     ("attacker.example", 421), ("127.0.0.1.attacker.example:80", 421),
                     ("a" * 64, 421), ("a" * 300, 421), ("", 421)):
    assert ask("GET", "/status.json", Host=host)[0].status == status, host

answer, page = ask("GET", "/")
policy = answer.getheader("Content-Security-Policy")
for part in ("script-src 'sha256-", "style-src 'sha256-", "connect-src 'self'",
             "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"):
    assert part in policy, policy
assert "unsafe" not in policy and "http" not in policy, policy
page = page.decode()
# Names of XML namespaces are no addresses that anything is loaded from.
links = [link for link in re.findall(r"""(?:https?:)?//[^\s'"<>)]+""", page)
         if not link.startswith("http://www.w3.org/2000/svg") and "." in link]
assert not links, links
for loads in "@import", "url(", "<iframe", "<link rel=\"stylesheet", " src=":
    assert loads not in page, loads
for unsafe in "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(":
    assert unsafe not in page, unsafe

text = ask("GET", "/metrics")[1].decode()
open(sys.argv[2], "w").write(text)
value = {name: float(number) for name, number in
         re.findall(r"^(rdmabox_\S+) (\S+)$", text, re.M)}
of = lambda name: value["rdmabox_server_" + name]
assert re.search(r'^rdmabox_build_info\{version="[0-9.]+"\} 1$', text, re.M), text
assert of("memory_bytes") == 64 << 20 and of("lent_bytes") == 0 and of("draining") == 0
assert 0 <= of("uptime_seconds") < 300
assert of('refused_total{reason="quota"}') > 0
assert of('refused_total{reason="wrong_secret"}') == 0
assert of("reads_total") > 0 and of("writes_total") > 0
# 4 KiB for each request, and a work request may be made of several.
assert of("read_bytes_total") >= 4096 * of("reads_total")
assert of("written_bytes_total") >= 4096 * of("writes_total")
buckets = [number for name, number in value.items() if "answer_seconds_bucket" in name]
assert buckets == sorted(buckets) and buckets[-1] == of("answer_seconds_count") > 0, buckets
assert 0 < of("answer_seconds_sum") < 300

# None took longer than the last bound, or it would show as the longest.
if json.loads(ask("GET", "/status.json")[1])["answers"]["max_ns"] <= 10**9:
    assert buckets[-2] == buckets[-1], buckets

status = json.loads(ask("GET", "/status.json")[1])
assert status["memory_bytes"] == 64 << 20 and status["clients_list"] == []
assert status["traffic"]["reads"] == of("reads_total")
assert {refusal["reason"]: refusal["count"] for refusal in status["refusals"]}["QUOTA"] == \
    of('refused_total{reason="quota"}')
END

# However often it is asked, it looks at the server twice a second.
python3 - "$metrics" <<'END' || fault "each request looks at the server"
import http.client, json, sys, time

connection = http.client.HTTPConnection(sys.argv[1], timeout=30)
looks = []
end = time.monotonic() + 1.2
while time.monotonic() < end or len(set(looks)) < 3:
    connection.request("GET", "/status.json")
    looks.append(json.loads(connection.getresponse().read())["at_ms"])
looks_once = sorted(set(looks))
assert looks == sorted(looks) and len(looks) > len(looks_once), looks_once
# at_ms is taken a little after the time that counts.
assert all(after - before > 400 for before, after in zip(looks_once, looks_once[1:])), looks_once
END

# Nobody listens for it on another address of this machine.
python3 - "$metrics" <<'END' || fault "it listens elsewhere, too"
import socket, sys
port = int(sys.argv[1].rsplit(":", 1)[1])
assert socket.socket().connect_ex(("127.0.0.1", port)) == 0
assert socket.socket().connect_ex(("127.0.0.2", port)) != 0
END
for bad in :9100 9100 '*:9100' ''; do
	run serve --listen 127.0.0.1:0 --memory 16M --slab 1M --metrics "$bad"
	[ "$status" = 2 ] || fault "--metrics '$bad': exit code $status, not 2"
done

# It says when it drains, while it has a client.
"$rdmabox" bench --pool "$address" --fabric soft:tcp --volume 16M --runtime 60 >/dev/null 2>&1 &
client=$!
server_pids+=("$client")
python3 - "$metrics" "$pid" <<'END' || fault "a drain is not told"
import http.client, json, os, signal, sys, time

def status():
    connection = http.client.HTTPConnection(sys.argv[1], timeout=30)
    connection.request("GET", "/status.json")
    return json.load(connection.getresponse())

def wait(what, right):
    for _ in range(600):
        if right(status()):
            return
        time.sleep(0.05)
    raise SystemExit("never: " + what)

wait("a client with slabs", lambda now: [client["slabs"] for client in now["clients_list"]] == [4])
[client] = status()["clients_list"]
assert client["address"].startswith("127.0.0.1:") and client["connected"], client
assert 0 <= client["age_ms"] < 300000, client
os.kill(int(sys.argv[2]), signal.SIGTERM)
wait("draining", lambda now: now["draining"])
END

# Everywhere only if told so, and not without a word.
start_server --memory 16M --slab 1M --metrics 0.0.0.0:0
grep -q 'at every address' "$scratch/server.2.err" || fault "it is everywhere without a word"

command -v promtool >/dev/null || { echo "no promtool: its part was left out" >&2; exit 0; }
promtool check metrics <"$scratch/metrics" >"$scratch/promtool" 2>&1 ||
	{ cat "$scratch/promtool" >&2; fault "promtool complains"; }
[ ! -s "$scratch/promtool" ] || { cat "$scratch/promtool" >&2; fault "promtool minds something"; }

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The status page of a live server in a browser: what it shows is what the metrics say.

With a load running it is looked at in light, in dark, and on a phone; it escapes what comes
from clients; it says when the server drains, when it is gone, and when it is back; and it
asks nobody but its server. Skipped (exit code 77) if there is no Chromium.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

import browser

VIEWS = {"light": (1180, 860, "light"), "dark": (1180, 860, "dark"), "phone": (390, 844, "light")}

# What the page shows, and the metric that it must equal.
SHOWN = {
    "memory": "rdmabox_server_memory_bytes",
    "lent": "rdmabox_server_lent_bytes",
    "slab": "rdmabox_server_slab_bytes",
    "slabs_lent": "rdmabox_server_slabs_lent",
    "slabs_mapped": "rdmabox_server_slabs_mapped_total",
    "slabs_unmapped": "rdmabox_server_slabs_unmapped_total",
    "slabs_revoked": "rdmabox_server_slabs_revoked_total",
    "leases_expired": "rdmabox_server_leases_expired_total",
    "clients": "rdmabox_server_clients",
    "sessions": "rdmabox_server_sessions_total",
    "messages_received": "rdmabox_server_messages_received_total",
    "messages_sent": "rdmabox_server_messages_sent_total",
}
# These move all the time: the page's value lies between a look before and a look after.
MOVING = {
    "uptime": "rdmabox_server_uptime_seconds",
    "heartbeats": "rdmabox_server_heartbeats_total",
    "answers": "rdmabox_server_answer_seconds_count",
}


class Server:
    def __init__(self, rdmabox, listen="127.0.0.1:0", metrics="127.0.0.1:0"):
        self.process = subprocess.Popen(
            [rdmabox, "serve", "--listen", listen, "--memory", "2G", "--slab", "16M",
             "--quota", "1536M", "--fabric", "soft:tcp", "--metrics", metrics,
             "--drain-timeout", "600"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        ready = self.process.stdout.readline()
        self.address = ready.split()[1]
        self.metrics = ready.split(" metrics at ")[1].strip()

    def read_metrics(self):
        with urllib.request.urlopen("http://%s/metrics" % self.metrics, timeout=30) as answer:
            text = answer.read().decode()
        return {name: float(value) for name, value in
                re.findall(r"^([a-z_]+(?:\{[^}]*\})?) (\S+)$", text, re.M)}

    def end(self):
        self.process.kill()
        self.process.wait()


class Load:
    def __init__(self, rdmabox, server, volume, *options):
        self.process = subprocess.Popen(
            [rdmabox, "bench", "--pool", server.address, "--fabric", "soft:tcp",
             "--volume", volume, "--runtime", "3600", *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        self.process.kill()
        self.process.wait()


def expect(what, right):
    if not right:
        sys.exit("FAULT: " + what)


def value(page, name):
    return page.run("Number(document.getElementById('%s').dataset.value)" % name)


def text(page, name):
    return page.run("document.getElementById('%s').textContent" % name)


def check_numbers(page, server):
    """Of a page that is up to date: the server's state holds still meanwhile."""
    before = server.read_metrics()
    page.wait("Number(document.getElementById('answers').dataset.value) >= %d" %
              before[MOVING["answers"]])
    shown = {name: value(page, name) for name in list(SHOWN) + list(MOVING)}
    after = server.read_metrics()
    for name, metric in SHOWN.items():
        expect("%s shows %s, %s is %s" % (name, shown[name], metric, after[metric]),
               shown[name] == after[metric])
    for name, metric in MOVING.items():
        expect("%s shows %s, %s was %s and is %s" %
               (name, shown[name], metric, before[metric], after[metric]),
               before[metric] <= shown[name] + 2.5 and shown[name] <= after[metric])
    expect("no memory is lent", shown["lent"] > 0)
    expect("the bar does not show what is lent",
           abs(page.run("document.getElementById('fill').getBoundingClientRect().width /"
                        "document.getElementById('meter').getBoundingClientRect().width")
               - shown["lent"] / shown["memory"]) < 0.02)
    refused = sum(value for name, value in after.items()
                  if name.startswith("rdmabox_server_refused_total{"))
    expect("refusals", refused == value(page, "refused") and refused > 0)
    expect("the reason of a refusal", page.run(
        "Number(document.querySelector('[data-reason=quota]').dataset.value)") ==
        after['rdmabox_server_refused_total{reason="quota"}'])


def check_clients(page):
    rows = page.run("[...document.querySelectorAll('#rows tr')].map((row) =>"
                    "[...row.cells].map((cell) => cell.textContent))")
    expect("clients: %s" % rows, len(rows) == value(page, "clients"))
    for address, slabs, memory, _, state in rows:
        expect("a client's address %s" % address, re.match(r"127\.0\.0\.1:\d+$", address))
        expect("a client's slabs", int(slabs) > 0 and memory.endswith("MiB") or memory.endswith("GiB"))
        expect("a client's state", state == "here")
    expect("slabs of clients", sum(int(row[1]) for row in rows) == value(page, "slabs_lent"))


def check_rates(page):
    page.wait("charts.read && charts.read.points.length > 4")
    for name in ("read_rate", "write_rate", "operations_rate", "answer_time"):
        expect("%s is not moving" % name, value(page, name) > 0)
    seen = page.run("charts.operations.stroke.getAttribute('d').split('L').length")
    expect("a chart of %d points" % seen, seen > 4)


def check_views(page, server, pictures):
    backs = {}
    for name, view in VIEWS.items():
        page.look(*view)
        page.wait("innerWidth == %d" % view[0])
        check_numbers(page, server)
        backs[name] = page.run("getComputedStyle(document.body).backgroundColor")
        wide = page.run("document.documentElement.scrollWidth")
        expect("%s: %d wide" % (name, wide), wide <= view[0])
        if pictures:
            time.sleep(1)
            page.picture(os.path.join(pictures, "status-%s.png" % name))
    expect("dark is not dark: %s" % backs,
           backs["light"] == backs["phone"] and backs["dark"] != backs["light"] and
           sum(map(int, re.findall(r"\d+", backs["dark"])[:3])) < 150)


def check_escape(page):
    """A client that could choose its name could not choose what the page is."""
    name = '<img id=evil src=x onerror="evil = 1"><script>evil = 1</script>'
    page.run("showClients({clients_list: [{address: %r, slabs: 1, age_ms: 1, connected: true}],"
             "clients_known: 1, slabs: {bytes: 1}})" % name)
    expect("markup of a client", not page.run("document.getElementById('evil')"))
    expect("a client's name", page.run("document.querySelector('#rows td').textContent") == name)
    # And if it did get in, the policy would stop it.
    page.run("document.body.insertAdjacentHTML('beforeend',"
             "'<img src=x onerror=\"window.evil = 1\">')")
    time.sleep(0.5)
    expect("the policy lets scripts run", page.run("window.evil === undefined"))
    page.complaints.clear()


def check_unseen(page):
    page.run("before = null; showRates({traffic: null, answers: {count: 0, sum_ns: 0},"
             "at_ms: 1, uptime_s: 1})")
    expect("traffic that nobody sees", page.run("!!document.getElementById('unseen')") and
           not page.run("document.getElementById('read_rate')"))


def check_end(page, server, loads, rdmabox):
    server.process.send_signal(signal.SIGTERM)
    page.wait("document.getElementById('state').textContent == 'draining'")
    for load in loads:
        load.end()
    server.end()
    page.wait("document.getElementById('state').textContent == 'connection lost'")
    expect("the loss is not told", page.run(
        "document.getElementById('lost').getBoundingClientRect().height > 20 &&"
        "document.getElementById('lost').textContent.startsWith('Connection lost.')"))
    page.complaints.clear()  # of a server that is away
    again = Server(rdmabox, metrics=server.metrics)
    try:
        page.wait("document.getElementById('state').textContent == 'serving'")
        expect("a loss that is over is told", page.run("document.getElementById('lost').hidden"))
        expect("of the former server", value(page, "sessions") == 0)
        page.complaints.clear()
    finally:
        again.end()


def draw_curves(rdmabox, server, page):
    """Clients that come and go for a minute: a picture of even lines tells little."""
    for rate, seconds in (7000, 6), (3000, 9), (12000, 5), (5000, 4):
        time.sleep(7)
        subprocess.run([rdmabox, "bench", "--pool", server.address, "--fabric", "soft:tcp",
                        "--volume", "128M", "--op", "mix:80", "--load", "open:%d" % rate,
                        "--runtime", str(seconds), "--warmup", "0"],
                       stdout=subprocess.DEVNULL, check=True)
    time.sleep(7)
    page.wait("before.clients_known == 2 && before.slabs.lent == 48")


def check(rdmabox, pictures):
    server = Server(rdmabox)
    loads = [Load(rdmabox, server, "512M", "--op", "mix:70", "--load", "open:9000"),
             Load(rdmabox, server, "256M", "--op", "mix:50", "--load", "open:3000",
                  "--block", "16K")]
    refused = subprocess.run([rdmabox, "bench", "--pool", server.address, "--fabric",
                              "soft:tcp", "--volume", "1536M", "--runtime", "1"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    expect("a client above its quota", refused.returncode)
    try:
        with browser.Browser(browser.find()) as page:
            page.look(*VIEWS["light"])
            page.open("http://%s/" % server.metrics)
            page.wait("document.readyState == 'complete' && before && before.clients == 2 &&"
                      "before.clients_known == 2 && before.slabs.lent == 48", 60)
            if pictures:
                draw_curves(rdmabox, server, page)
            check_rates(page)
            check_clients(page)
            check_views(page, server, pictures)
            expect("the page complains: %s" % page.complaints, not page.complaints)
            check_escape(page)
            check_unseen(page)
            page.open("http://%s/" % server.metrics)
            page.wait("document.readyState == 'complete' && before")
            check_end(page, server, loads, rdmabox)
            others = {address for address in page.requested
                      if not address.startswith(("http://%s/" % server.metrics, "data:"))}
            expect("it asks others: %s" % others, not others)
    finally:
        for load in loads:
            load.end()
        server.end()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", help="directory of a build")
    arguments.add_argument("--pictures", metavar="FOLDER", help="where to keep pictures of the page")
    given = arguments.parse_args()
    if not browser.find():
        print("SKIP: no chromium; scripts/bootstrap pages installs it")
        sys.exit(77)
    check(os.path.join(given.build, "cli", "rdmabox"), given.pictures)


main()

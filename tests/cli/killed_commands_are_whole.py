#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Kills each command that changes a volume at each message that it sends: the change has happened or
has not, and the same command can be given again. A relay stands before each server, counts what the
command sends, and has it killed instead of forwarding one message.

Usage: killed_commands_are_whole.py RDMABOX EVERY ADDRESS ADDRESS ADDRESS ADDRESS
EVERY: 1 to kill at each message, N at each N-th one. Of those that make and remove a volume each one
counts."""

import json
import random
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time

RDMABOX, EVERY, SERVERS = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
THREE = ",".join(SERVERS[:3])
TWO = ",".join(SERVERS[:2])
GONE = TWO + ",127.0.0.1:1,127.0.0.1:2"  # as if the others were gone
ALL = ",".join(SERVERS)
LIMIT_S = 100
STEPS_MAX = 400
MIB = 1 << 20


def address(text):
    """Of "host:port"."""
    host, port = text.rsplit(":", 1)
    return host, int(port)


class Relay:
    """Between a command and the servers."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.names = {}
        self.left = 0  # so many messages are forwarded
        self.sent = 0
        self.victim = None
        self.pairs = 0  # of connections
        self.is_begun = threading.Lock()
        for server in SERVERS:
            listener = socket.create_server(("127.0.0.1", 0))
            self.names[server] = f"127.0.0.1:{listener.getsockname()[1]}"
            self.selector.register(listener, selectors.EVENT_READ, ("accept", server))
        threading.Thread(target=self.forward, daemon=True).start()

    def forward(self):
        """For ever."""
        while True:
            for key, _ in self.selector.select():
                kind, other = key.data
                if kind == "accept":
                    client = key.fileobj.accept()[0]
                    server = socket.create_connection(address(other))
                    self.pairs += 1
                    self.selector.register(client, selectors.EVENT_READ, ("client", server))
                    self.selector.register(server, selectors.EVENT_READ, ("server", client))
                else:
                    self.carry(key.fileobj, kind, other)

    def carry(self, from_socket, kind, other):
        """What one side has sent."""
        if from_socket.fileno() < 0:  # it has ended with the other side
            return
        try:
            data = from_socket.recv(1 << 16)
        except OSError:
            data = b""
        if data and kind == "client":
            self.sent += 1
            self.left -= 1
            if self.left < 0:
                with self.is_begun:
                    self.victim.kill()
                data = b""
        try:
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        for one in (from_socket, other):
            self.selector.unregister(one)
            one.close()
        self.pairs -= 1

    def run(self, messages, words):
        """A command that may send so many messages. Whether it has come to its end."""
        for server, name in self.names.items():
            words = [word.replace(server, name) for word in words]
        self.sent, self.left = 0, messages
        with self.is_begun:
            self.victim = subprocess.Popen([RDMABOX, "volume", *words], stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, text=True)
        out = self.victim.communicate(timeout=LIMIT_S)[0]
        while self.pairs:  # the servers are to hear of its end
            time.sleep(0.001)
        if self.victim.returncode == -signal.SIGKILL:
            return False
        assert self.victim.returncode == 0, (words, out)
        return True


def volume(*words, servers=THREE, codes=(0,)):
    """A command that is not killed; its exit code and output."""
    done = subprocess.run([RDMABOX, "volume", *words, "--pool", servers], capture_output=True,
                          text=True, timeout=LIMIT_S, check=False)
    assert done.returncode in codes, (words, servers, done.returncode, done.stdout, done.stderr)
    return done.returncode, done.stdout + done.stderr


def listed(servers=ALL):
    """The volumes that there are, which all of their servers have."""
    found = json.loads(volume("list", "--json", servers=servers)[1])["volumes"]
    for one in found:
        assert one["servers_there"] == one["servers"], found
    return {one["name"]: one for one in found}


class Steps:
    """Kills a command at each of its messages."""

    def __init__(self, every):
        self.every = every
        self.relay = Relay()
        self.relay.run(STEPS_MAX, ["list", "--pool", THREE])
        self.hello = self.relay.sent // 3 - 1  # messages of each server that only connect to it

    def count(self, prepare, words, check):
        """How many messages it sends."""
        prepare()
        assert self.relay.run(STEPS_MAX, words), words
        count = self.relay.sent
        check(words)
        return count

    def each(self, prepare, words, servers, check, connections=3, every=None, window=None):
        """prepare() makes what there is before. check() is called after the kill, and gives the
        command again. window: only at messages that are so far from the end, but at each of them."""
        every = every or self.every
        words = [*words, "--pool", servers]
        messages = connections * self.hello + random.randrange(every)
        end = STEPS_MAX
        if window and every > 1:
            total = self.count(prepare, words, check)
            messages, end, every = total - window[0], total - window[1], 1
        count = 0
        while messages < end:
            prepare()
            if self.relay.run(messages, words):
                break
            try:
                check(words)
            except AssertionError:
                print(f"{words}, killed after {messages} messages", file=sys.stderr)
                raise
            messages += every
            count += 1
        for name in listed():
            volume("remove", name, servers=ALL)
        print(f"{' '.join(words[:-2])}: killed at {count} messages", flush=True)


def create_again(words):
    """One or none; then one."""
    before = listed()
    assert len(before) <= 1, before
    code, text = volume(*words[:-2], codes=(0, 2))
    assert code == (2 if before else 0), (before, text)
    assert list(listed()) == ["one"]
    volume("remove", "one")
    assert not listed()


def remove_again(words):
    """It is gone or there; then gone, and the name is free."""
    before = listed()
    code, text = volume(*words[:-2], codes=(0, 2))
    assert code == (0 if before else 2), (before, text)
    assert not listed()


def grow_again(words):
    """The former size or the new one; then the new one."""
    size = listed()["one"]["volume_bytes"]
    assert size in (2 * MIB, 4 * MIB), size
    volume(*words[:-2])
    assert listed()["one"]["volume_bytes"] == 4 * MIB
    volume("remove", "one")


def rename_again(words):
    """One name or the other; then the new one."""
    names = list(listed())
    assert names in (["one"], ["two"]), names
    code, text = volume(*words[:-2], codes=(0, 2))
    assert code == 0 or names == ["two"], (names, text)
    assert list(listed()) == ["two"]
    volume("rename", "two", "one")


def add_again(words):
    """The servers of before, or 4; then 4."""
    volume("export", "one", "/dev/null", servers=ALL)
    for _ in range(STEPS_MAX):
        code, text = volume(*words[:-2], codes=(0, 2))
        if "is being given to volume" not in text:
            break
    assert code == 0 or "one of the servers" in text, text
    assert listed()["one"]["servers"] == 4
    volume("remove", "one", servers=ALL)


def remove_server_again(words):
    """4 servers or 3; then 3."""
    code, text = volume(*words[:-2], servers=ALL, codes=(0, 2))
    assert code == 0 or "is none of" in text, text
    assert listed()["one"]["servers"] == 3
    volume("add-server", "one", SERVERS[3])


def give_up_again(words):
    """4 servers or the 2 that are left; then these."""
    one = listed()["one"]
    assert (one["servers"], one["is_lost"]) in ((4, False), (2, True)), one
    volume(*words[:-2], servers=GONE)
    one = listed()["one"]
    assert (one["servers"], one["is_lost"]) == (2, True), one
    volume("remove", "one", servers=ALL)


def clear_again(words):
    """A part is lost or cleared; then cleared."""
    volume(*words[:-2], servers=TWO)
    assert not listed()["one"]["is_lost"]
    volume("export", "one", "/dev/null", servers=ALL)
    volume("remove", "one", servers=ALL)


def gone():
    """The incarnations of the two servers that are given up."""
    create("--replicas", "2", servers=ALL)()
    lines = volume("give-up", "one", servers=GONE)[1].splitlines()
    return ",".join(line.split()[1] for line in lines if line.startswith("  gone "))


def give_up():
    """Makes the volume, and gives two of its servers up."""
    volume("give-up", "one", "--gone", gone(), "--force", servers=GONE)


def create(*options, servers=THREE):
    """Makes the volume if there is none."""
    def do():
        if not listed():
            volume("create", "one", "--size", "2M", *options, servers=servers)
    return do


def main():
    """All of them."""
    steps = Steps(EVERY)
    new = ["create", "one", "--size", "2M"]
    steps.each(lambda: None, new, THREE, create_again, every=1)
    steps.each(lambda: None, [*new, "--reserve"], THREE, create_again)
    steps.each(create("--reserve"), ["remove", "one"], THREE, remove_again, every=1)
    steps.each(create(), ["grow", "one", "--size", "4M"], THREE, grow_again)
    steps.each(create("--reserve"), ["grow", "one", "--size", "4M"], THREE, grow_again)
    steps.each(create(), ["rename", "one", "two"], THREE, rename_again)
    # Without a server, which learns of it later.
    steps.each(create(), ["grow", "one", "--size", "4M"], TWO, grow_again, 2)
    steps.each(create(), ["rename", "one", "two"], TWO, rename_again, 2)
    steps.each(create("--replicas", "2"), ["add-server", "one", SERVERS[3]], THREE, add_again, 4)
    # Two at once: what the first one has heard names the second one.
    steps.each(create("--replicas", "2", servers=TWO), ["add-server", "one", ",".join(SERVERS[2:])], TWO,
               add_again, 4, window=(50, 30))
    steps.each(create("--replicas", "2", servers=ALL), ["remove-server", "one", SERVERS[3]], ALL,
               remove_server_again, 4)
    steps.each(create("--replicas", "2", servers=ALL), ["give-up", "one", "--gone", gone(), "--force"],
               GONE, give_up_again, 2)
    steps.each(give_up, ["clear-lost", "one", "--yes"], TWO, clear_again, 2)
    for server in SERVERS:
        done = subprocess.run([RDMABOX, "stat", server, "--json"], capture_output=True, check=True)
        assert json.loads(done.stdout)["lent_bytes"] == 0, (server, "memory is not given back")


if __name__ == "__main__":
    main()

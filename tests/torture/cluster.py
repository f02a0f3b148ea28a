# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The servers of a proof, and the etcd that they announce themselves to, as processes that are
killed and started again at the same address."""

import json
import os
import random
import signal
import socket
import subprocess
import time

from network import ADDRESS

READY_S = 60
LABELS = 3  # racks


class Fault(Exception):
    """The proof has failed."""


def free_ports(count):
    """Of loopback, that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(what, condition, timeout_s=READY_S):
    """Until it is true; a fault if that takes too long."""
    until = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > until:
            raise Fault(f"waited for {timeout_s} s: {what}")
        time.sleep(0.05)


def kill(process):
    """Kills it at once, and waits for its end."""
    process.send_signal(signal.SIGKILL)
    process.wait()


class Server:
    """One server, at one address for ever."""

    def __init__(self, cluster, index, port):
        self.cluster = cluster
        self.index = index
        self.address = f"{cluster.host}:{port}"
        self.log = os.path.join(cluster.folder, f"server.{index}")
        self.process = None

    def start(self):
        """Begins to start it."""
        cluster = self.cluster
        command = [*cluster.prefix, cluster.rdmabox, "serve", "--listen", self.address,
                   "--memory", f"{cluster.options.server_mib}M", "--slab", "1M",
                   "--lease", str(cluster.options.lease), "--drain-timeout", "0",
                   "--label", f"rack={self.index % LABELS}"]
        if cluster.options.memory_files:
            command += ["--memory-file", os.path.join(cluster.memory, f"memory.{self.index}")]
        if cluster.prefix:
            command.append("--insecure")
        if cluster.etcd:
            command += ["--announce", cluster.pool]
        with open(self.log, "ab") as log:
            self.offset = log.tell()
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def is_up(self):
        """Whether it is ready."""
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                raise Fault(f"server {self.index} has ended by itself:\n{log.read()[-2000:]}")
        with open(self.log, "rb") as log:
            log.seek(self.offset)
            return b"ready " in log.read()

    def lent_bytes(self):
        """How much it lends."""
        text = self.cluster.run("stat", "--server", self.address)
        return int(next(line.split()[1] for line in text.splitlines()
                        if line.strip().startswith("lent_bytes")))


class Etcd:
    """A pool of its own."""

    def __init__(self, folder):
        self.client, self.peer = free_ports(2)
        self.folder = folder
        self.process = None

    def start(self):
        """Begins to start it, with what it had."""
        url, peer = (f"http://127.0.0.1:{port}" for port in (self.client, self.peer))
        with open(os.path.join(self.folder, "etcd.log"), "ab") as log:
            self.process = subprocess.Popen(
                ["etcd", "--name", "one", "--data-dir", os.path.join(self.folder, "etcd"),
                 "--listen-client-urls", url, "--advertise-client-urls", url,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"one={peer}"], stdout=log, stderr=log)


class Cluster:
    """All servers, and how clients name them."""

    def __init__(self, options, folder, memory, network=None):
        self.options = options
        self.host = ADDRESS if network else "127.0.0.1"
        self.prefix = network.at_hub() if network else []
        self.folder = folder
        self.memory = memory
        self.rdmabox = os.path.join(options.build, "cli", "rdmabox")
        self.servers = [Server(self, index, port)
                        for index, port in enumerate(free_ports(options.servers))]
        addresses = [server.address for server in self.servers]
        self.addresses = ",".join(addresses)
        self.etcd = None
        if options.pool == "list":
            self.pool = ",".join(addresses)
        elif options.pool == "file":
            path = os.path.join(folder, "servers")
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(addresses) + "\n")
            self.pool = "file:" + path
        else:
            self.etcd = Etcd(folder)
            self.pool = f"etcd://127.0.0.1:{self.etcd.client}/torture"

    def run(self, *arguments):
        """A command; its output."""
        command = [*self.prefix, self.rdmabox, *arguments, *(["--insecure"] * bool(self.prefix))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise Fault(f"rdmabox {' '.join(arguments)}: {done.returncode}: {done.stderr}")
        return done.stdout

    def start(self):
        """All, and the volume."""
        if self.etcd:
            self.etcd.start()
        for server in self.servers:
            server.start()
        wait_for("servers are ready", lambda: all(server.is_up() for server in self.servers))
        if self.etcd:
            wait_for("all have announced themselves", self.is_announced)
        self.run("volume", "create", "db", "--size", f"{self.options.volume_mib}M",
                 "--replicas", str(self.options.replicas), "--pool", self.pool)

    def show(self):
        """What the servers know of the volume."""
        return json.loads(self.run("volume", "show", "db", "--json", "--pool", self.addresses))

    def is_whole(self):
        """All servers are of the volume, and each slab has all its copies."""
        shown = self.show()
        return shown["copies"] == self.options.replicas and \
            sum(one["state"] == "in" for one in shown["members"]) == len(self.servers)

    def is_announced(self):
        """Whether the pool has all servers."""
        done = subprocess.run([self.rdmabox, "pool", "status", self.pool], capture_output=True,
                              text=True, timeout=60)
        size = len(self.servers)
        return f"{size} of {size} servers up" in done.stdout

    def stop(self):
        """Kills all."""
        for one in [*self.servers, self.etcd]:
            if one and one.process and one.process.poll() is None:
                kill(one.process)

    def choose(self, rng: random.Random, count):
        """Some servers."""
        return rng.sample(self.servers, count)

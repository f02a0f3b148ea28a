# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Machines of a proof as network namespaces: one for all servers, and two for clients, each with a
cable of its own that can be cut. Needs root."""

import os
import subprocess

ADDRESS = "10.77.0.1"  # of the servers


def ip(*arguments):
    """A command of iproute2."""
    subprocess.run(["ip", *arguments], check=True)


class Network:
    """It is there from start() to stop(), and nothing of the machine's own network takes part."""

    def __init__(self):
        self.hub = f"rbx-{os.getpid()}"
        self.clients = [f"{self.hub}-{i}" for i in range(2)]
        self.made = []

    def start(self):
        """Makes all of it."""
        for name in [self.hub, *self.clients]:
            ip("netns", "add", name)
            self.made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self.hub, "address", "add", ADDRESS + "/32", "dev", "lo")
        for i, name in enumerate(self.clients):
            net = f"10.77.{i + 1}"
            ip("link", "add", f"c{i}", "netns", self.hub, "type", "veth", "peer", "name", "eth0",
               "netns", name)
            ip("-n", self.hub, "address", "add", f"{net}.1/24", "dev", f"c{i}")
            ip("-n", self.hub, "link", "set", f"c{i}", "up")
            ip("-n", name, "address", "add", f"{net}.2/24", "dev", "eth0")
            self.mend(i)

    def stop(self):
        """Removes it."""
        for name in self.made:
            ip("netns", "delete", name)

    def at_hub(self):
        """What stands before a command that runs beside the servers."""
        return ["ip", "netns", "exec", self.hub]

    def at_client(self, i):
        """The same, for one that runs at a client's machine."""
        return ["ip", "netns", "exec", self.clients[i]]

    def cut(self, i):
        """Nothing gets through any more."""
        ip("-n", self.clients[i], "link", "set", "eth0", "down")

    def mend(self, i):
        """It does again."""
        ip("-n", self.clients[i], "link", "set", "eth0", "up")
        ip("-n", self.clients[i], "route", "replace", "default", "via", f"10.77.{i + 1}.1")

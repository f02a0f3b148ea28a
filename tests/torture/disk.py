# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program of a proof that has the volume as a disk with an ext4 file system: nbdkit with the plugin,
nbdfuse, a loop device. What it writes and has forced to the disk it notes in a journal of its own."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

from cluster import Fault, kill, wait_for

FILES = 48
BYTES_MAX = 60000
CHECK_S = 300
SETTLED_S = 3  # by then a client has seen that a server was restarted


def contents(seed, name, number):
    """Of a file that was written for the so many-th time."""
    rng = random.Random(f"{seed}.{name}.{number}")
    return rng.randbytes(rng.randrange(BYTES_MAX))


def write(folder, journal_path, seed):
    """Files are written, forced to the disk and noted, until that fails or this is killed."""
    rng = random.Random(f"{seed}.{os.getpid()}")
    state = read_journal(journal_path)
    with open(journal_path, "a", encoding="utf-8") as journal:
        while True:
            name = rng.randrange(FILES)
            number = max(state.get(name, [0])) + 1
            journal.write(f"begin {name} {number}\n")
            journal.flush()
            path = os.path.join(folder, str(name))
            with open(path + ".new", "wb") as file:
                file.write(contents(seed, name, number))
                file.flush()
                os.fsync(file.fileno())
            os.rename(path + ".new", path)
            directory = os.open(folder, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)
            journal.write(f"done {name} {number}\n")
            journal.flush()
            state[name] = [number]


def read_journal(path):
    """What each file may hold: the last write that is done, and those that were begun later."""
    state = {}
    if not os.path.exists(path):
        return state
    with open(path, encoding="utf-8") as journal:
        for line in journal:
            what, name, number = line.split()
            if what == "done":
                state[int(name)] = [int(number)]
            else:
                state.setdefault(int(name), [0]).append(int(number))
    return state


class Disk:
    """It is like a Witness: it has the volume, or tries to."""

    def __init__(self, torture, number):
        self.torture = torture
        self.folder = os.path.join(torture.folder, f"disk.{number}")
        self.journal = os.path.join(torture.folder, "journal")
        self.seed = torture.options.seed
        self.tree = os.path.join(self.folder, "tree")
        self.fuse = os.path.join(self.folder, "fuse")
        self.processes = []
        self.loop = None
        for path in (self.tree, self.fuse):
            os.makedirs(path)

    def start(self, *command):
        """A process that ends with this one."""
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        return self.processes[-1]

    def run(self, *command, codes=(0,)):
        """A command that must succeed."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_S)
        if done.returncode not in codes:
            raise Fault(f"{' '.join(command)}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def attach(self, is_new):
        """The file system is there, its journal played back, and each file is what it may be."""
        build, cluster = self.torture.options.build, self.torture.cluster
        socket = os.path.join(self.folder, "socket")
        nbdkit = self.start("nbdkit", "--foreground", "--unix", socket, "--threads", "4",
                            os.path.join(build, "nbdkit", "nbdkit-rdmabox-plugin.so"),
                            cluster.pool, "name=db", "take-over=true")
        wait_for("nbdkit serves", lambda: os.path.exists(socket) or
                 nbdkit.poll() is not None, CHECK_S)
        if nbdkit.poll() is not None:
            return False
        nbdfuse = self.start("nbdfuse", self.fuse, "--unix", socket)
        file = os.path.join(self.fuse, "nbd")
        wait_for("nbdfuse serves", lambda: os.path.exists(file) or
                 nbdfuse.poll() is not None, CHECK_S)
        if nbdfuse.poll() is not None:
            kill(nbdkit)
            os.remove(socket)
            return False
        if is_new:
            self.run("mkfs.ext4", "-q", "-F", file)
        self.loop = self.run("losetup", "-f", "--show", file)
        self.run("mount", "-o", "errors=remount-ro", self.loop, self.tree)
        self.check()
        return True

    def attach_at_last(self, is_new):
        """The same. A server may die while the volume is opened: then it is opened again."""
        until = time.monotonic() + CHECK_S
        while not self.attach(is_new):
            if time.monotonic() > until:
                raise Fault(f"nbdkit has ended; see {self.folder}/log")
            self.torture.log("nbdkit has ended at once")
            self.processes.clear()
            time.sleep(0.5)

    def check(self):
        """Of each file."""
        lost = 0
        for name, numbers in read_journal(self.journal).items():
            path = os.path.join(self.tree, str(name))
            data = None
            if os.path.exists(path):
                with open(path, "rb") as file:
                    data = file.read()
            if data is None and 0 in numbers:
                continue
            if not any(data == contents(self.seed, name, number) for number in numbers):
                size = "none" if data is None else len(data)
                digest = hashlib.sha256(data or b"").hexdigest()
                raise Fault(f"file {name} is not as write {numbers} has left it: {size} {digest}")
            lost += 1
        self.torture.log(f"{lost} files are as they were written")

    def work(self):
        """Writes in a process of its own."""
        return self.start(sys.executable, __file__, self.tree, self.journal, str(self.seed))

    def detach(self, nbdkit_signal):
        """In this way nbdkit ends first, or the file system is unmounted first."""
        nbdkit, nbdfuse = self.processes[0], self.processes[1] if len(self.processes) > 1 else None
        if nbdkit_signal == signal.SIGKILL and nbdkit.poll() is None:
            kill(nbdkit)
        for process in self.processes[2:]:
            if process.poll() is None:
                kill(process)
        subprocess.run(["umount", self.tree], capture_output=True, check=False, timeout=CHECK_S)
        if os.path.ismount(self.tree):
            raise Fault(f"{self.tree} cannot be unmounted")
        if self.loop:
            subprocess.run(["losetup", "-d", self.loop], check=False, timeout=CHECK_S)
            self.loop = None
        if nbdkit.poll() is None:
            if nbdfuse:
                self.run("e2fsck", "-fn", os.path.join(self.fuse, "nbd"))
            nbdkit.send_signal(nbdkit_signal)
        subprocess.run(["umount", "-l", self.fuse], capture_output=True, check=False,
                       timeout=CHECK_S)
        for process in self.processes[:2]:
            until = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            if process.poll() is None:
                kill(process)


def carry(torture, must_kill_servers):
    """For so long: the disk is written to, its client dies, and servers do."""
    number, until = 0, time.monotonic() + torture.options.seconds
    stop = threading.Event()
    killer = threading.Thread(target=kill_servers, args=(torture, stop)) if must_kill_servers else None
    if killer:
        killer.start()
    try:
        while time.monotonic() < until:
            number += 1
            disk = Disk(torture, number)
            try:
                disk.attach_at_last(number == 1)
                worker = disk.work()
                time.sleep(torture.rng.uniform(0.2, 6))
                if worker.poll() is not None:
                    raise Fault(f"a write to the file system has failed; see {disk.folder}/log")
            finally:
                torture.kills["client"] += 1
                disk.detach(torture.rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
    finally:
        stop.set()
        if killer:
            killer.join()
    disk = Disk(torture, number + 1)
    try:
        disk.attach_at_last(False)
    finally:
        disk.detach(signal.SIGTERM)
    torture.done = sum(max(numbers) for numbers in read_journal(disk.journal).values())


def kill_servers(torture, stop):
    """One at a time, of those that have memory files, so that all data stays in reach."""
    rng = random.Random(torture.options.seed + 1)
    while not stop.wait(rng.uniform(1, 4)):
        server = rng.choice(torture.cluster.servers)
        torture.log(f"kill server {server.index}")
        torture.kills["server"] += 1
        kill(server.process)
        stop.wait(rng.uniform(0, 2))
        server.start()
        wait_for("a server is ready", server.is_up)
        stop.wait(SETTLED_S)
        wait_for("the volume is whole again", lambda: stop.is_set() or is_whole(torture), CHECK_S)


def is_whole(torture):
    """As far as can be seen from here."""
    try:
        return torture.cluster.is_whole()
    except Fault:
        return False


if __name__ == "__main__":
    try:
        write(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    except OSError as failure:
        sys.exit(f"write: {failure}")

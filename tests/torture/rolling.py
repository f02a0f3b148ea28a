# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers that are restarted one after another, as for an upgrade, while fio writes to the volume and
verifies what it reads back: not one of its requests may fail."""

import itertools
import json
import os
import signal
import subprocess
import time

from cluster import Fault, wait_for

HEAL_S = 120
SETTLED_S = 3  # by then fio has seen that a server was restarted
END_S = 300


class Fio:
    """It has the volume from start() to end()."""

    def __init__(self, torture):
        self.torture = torture
        self.out = os.path.join(torture.folder, "fio.json")
        self.err = os.path.join(torture.folder, "fio.err")
        self.process = None

    def start(self):
        """What was written is verified a little later, and so on."""
        options, cluster = self.torture.options, self.torture.cluster
        engine = os.path.join(os.path.abspath(options.build), "fio", "rdmabox.so")
        command = ["fio", f"--ioengine=external:{engine}", f"--servers={cluster.pool}",
                   "--volume_name=db", "--name=rolling", "--rw=randwrite", "--bs=4k",
                   "--iodepth=16", "--verify=crc32c", "--verify_backlog=512", "--verify_fatal=1",
                   "--time_based", f"--runtime={options.seconds}", f"--randseed={options.seed}",
                   "--output-format=json", f"--output={self.out}"]
        with open(self.err, "wb") as err:
            self.process = subprocess.Popen(command, stdout=err, stderr=err,
                                            cwd=self.torture.folder)

    def told(self):
        """Its messages."""
        with open(self.err, encoding="utf-8") as err:
            return err.read()

    def look(self):
        """A fault if it has ended before its time."""
        if self.process.poll() is not None:
            raise Fault(f"fio has ended with {self.process.returncode}: {self.told()[-2000:]}")

    def end(self):
        """It verifies the rest. Returns how many requests it has made."""
        self.process.wait(timeout=END_S)
        if self.process.returncode:
            raise Fault(f"fio ends with {self.process.returncode}: {self.told()[-2000:]}")
        with open(self.out, encoding="utf-8") as out:
            text = out.read()
        job = json.loads(text[text.index("\n{\n") if text[0] != "{" else 0:])["jobs"][0]
        if job["error"]:
            raise Fault(f"fio says error {job['error']}")
        return job["read"]["total_ios"] + job["write"]["total_ios"]


def restart(torture, fio, server):
    """One server, stopped in order; until the volume has it again, with all copies."""
    torture.log(f"restart server {server.index}")
    torture.kills["server"] += 1
    server.process.send_signal(signal.SIGTERM)
    server.process.wait()
    time.sleep(torture.rng.uniform(0, 2))
    server.start()
    wait_for(f"server {server.index} is ready", server.is_up)
    time.sleep(SETTLED_S)
    wait_for(f"the volume is whole again after the restart of server {server.index}",
             lambda: fio.look() or torture.cluster.is_whole(), HEAL_S)


def carry(torture):
    """For so long."""
    fio = Fio(torture)
    fio.start()
    try:
        wait_for("fio has the volume", lambda: fio.look() or torture.cluster.show()["is_open"])
        until = time.monotonic() + torture.options.seconds - HEAL_S / 4
        for server in itertools.cycle(torture.cluster.servers):
            if time.monotonic() > until:
                break
            restart(torture, fio, server)
        torture.done = fio.end()
    finally:
        if fio.process.poll() is None:
            fio.process.kill()
            fio.process.wait()
    torture.cluster.run("volume", "remove", "db", "--pool", torture.cluster.pool)

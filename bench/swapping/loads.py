# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The loads of bench/paging: fio on a device, or swap on it for a program.

A program gets less memory than it uses (a cgroup's memory.max), so the kernel keeps
the rest on the device. Nothing else of this machine is swapped: it has memory enough.
"""

import contextlib
import csv
import io
import json
import os
import pathlib
import random
import socket
import subprocess
import time

import runner
from swapping.devices import await_that, put, run

CGROUPS = pathlib.Path("/sys/fs/cgroup")
REDIS_PORT = 6379
REDIS_CLIENTS = 8
REDIS_VALUE_BYTES = 1024
REDIS_PIPELINE = 200
SHRINK_ROUNDS = 50
SCHEDSTAT_RUN = 7  # the word of a processor's line that has what tasks have run


def read_programs(programs):
    """The clock jumps while files of the host are read: reads them into memory before."""
    for program in programs:
        listed = run("ldd", program).split()
        for path in [program] + [word for word in listed if word.startswith("/")]:
            pathlib.Path(path).read_bytes()


# ---- straight on the device ------------------------------------------------------


# The leanest options of fio, for all alike, because its own time dilutes each ratio. It
# keeps no clock and no map of what it has read; its buffers and the file are registered
# with the kernel.
LEAN = ("--ioengine=io_uring", "--fixedbufs=1", "--registerfiles=1", "--nonvectored=1",
        "--gtod_reduce=1", "--norandommap")


def fio(device, rw, block, depth, batch, runtime_s):
    """Requests that go past the page cache, submitted one by one or together; {"iops": ...}."""
    job = json.loads(run(
        "fio", "--name=paging", f"--filename={device}", "--direct=1", *LEAN, f"--rw={rw}",
        f"--bs={block}", f"--iodepth={depth}", f"--iodepth_batch_submit={batch}",
        "--iodepth_batch_complete_min=1", f"--iodepth_batch_complete_max={batch}",
        f"--runtime={runtime_s * 1000:.0f}ms", "--time_based", "--output-format=json"))["jobs"][0]
    if job["error"]:
        raise runner.Failed(f"fio {rw} on {device}: error {job['error']}")
    return {"iops": job["read"]["iops"] + job["write"]["iops"]}


# ---- as swap -----------------------------------------------------------------------


@contextlib.contextmanager
def swap_on(device):
    run("mkswap", device)
    run("swapon", device)
    try:
        yield
    finally:
        run("swapoff", device)


@contextlib.contextmanager
def cgroup(name):
    """A cgroup for one program; what is in it has ended when the block does."""
    put(CGROUPS / "cgroup.subtree_control", "+memory")
    group = CGROUPS / name
    group.mkdir()
    try:
        yield group
    finally:
        await_that(lambda: not (group / "cgroup.procs").read_text(), "end of the program")
        group.rmdir()


def enter(group):
    """For a child, before it becomes the program: puts it into the group."""
    return lambda: put(group / "cgroup.procs", str(os.getpid()))


def limited(device, command, limit_bytes):
    """Runs a program with so much memory, and swap on a device; its JSON."""
    with swap_on(device), cgroup("program") as group:
        put(group / "memory.max", str(limit_bytes))
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              preexec_fn=enter(group))
    if done.returncode:
        raise runner.Failed(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


# ---- Redis -------------------------------------------------------------------------


def redis_fill(keys):
    """The keys that redis-benchmark uses, set to values that do not compress."""
    value = random.Random(7).randbytes(REDIS_VALUE_BYTES)
    names = [b"key:%012d" % key for key in range(keys)]
    with socket.create_connection(("127.0.0.1", REDIS_PORT)) as connection:
        answers = connection.makefile("rb")
        for first in range(0, keys, REDIS_PIPELINE):
            some = names[first:first + REDIS_PIPELINE]
            connection.sendall(b"".join(
                b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" %
                (len(name), name, len(value), value) for name in some))
            if any(answers.readline() != b"+OK\r\n" for _ in some):
                raise runner.Failed("redis-server does not take a key")


def redis_answers():
    try:
        socket.create_connection(("127.0.0.1", REDIS_PORT)).close()
        return True
    except OSError:
        return False


def redis_benchmark(keys, requests):
    """Requests/s of reads and writes, as many of each, and the worse p99 of the two."""
    printed = run(
        "redis-benchmark", "-p", str(REDIS_PORT), "-t", "set,get", "-r", str(keys),
        "-n", str(requests), "-c", str(REDIS_CLIENTS), "-d", str(REDIS_VALUE_BYTES), "--csv")
    rows = list(csv.DictReader(io.StringIO(printed)))
    return {"ops": len(rows) / sum(1 / float(row["rps"]) for row in rows),
            "p99_ms": max(float(row["p99_latency_ms"]) for row in rows)}


def shrink(group, limit_bytes):
    """Swaps out what is above a limit, then sets it.

    The limit alone is not enough: the kernel looks for memory faster than a device takes
    pages, gives up, and kills the program.
    """
    def above_bytes():
        return int((group / "memory.current").read_text()) - limit_bytes

    for _ in range(SHRINK_ROUNDS):
        if above_bytes() > 0:
            with contextlib.suppress(BlockingIOError):  # less than asked for
                put(group / "memory.reclaim", str(above_bytes()))
    if above_bytes() > 0:
        raise runner.Failed(f"{group.name}: {above_bytes()} bytes above its limit stay")
    put(group / "memory.max", str(limit_bytes))


def kills_of(group):
    """How many processes of a group the kernel has killed for lack of memory."""
    return int(dict(line.split() for line in
                    (group / "memory.events").read_text().splitlines())["oom_kill"])


def redis(device, percent, keys, requests):
    """Redis with a share of its working set in memory, asked for keys at random."""
    with swap_on(device), cgroup("redis") as group:
        server = subprocess.Popen(
            ["redis-server", "--port", str(REDIS_PORT), "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL, preexec_fn=enter(group))
        try:
            await_that(redis_answers, "redis-server")
            redis_fill(keys)
            used_bytes = int((group / "memory.current").read_text())
            shrink(group, used_bytes * percent // 100)
            found = redis_benchmark(keys, requests)
            if kills_of(group):
                raise runner.Failed(f"redis-server has been killed: {percent} % is too little")
            return found
        finally:
            server.kill()
            server.wait()


# ---- nothing -----------------------------------------------------------------------


def cpu_ns():
    """The run time of tasks, all and those of the module, as the scheduler counts it."""
    processors = [line.split() for line in pathlib.Path("/proc/schedstat").read_text().splitlines()
                  if line.startswith("cpu")]
    threads = [pathlib.Path("/proc") / pid for pid in os.listdir("/proc") if pid.isdigit()]
    return {"all": sum(int(words[SCHEDSTAT_RUN]) for words in processors),
            "threads": sum(int((thread / "schedstat").read_text().split()[0])
                           for thread in threads
                           if (thread / "comm").read_text().startswith("rdmabox/"))}


def idle_cpu_percent(seconds):
    """CPU time of tasks while the device is idle, to the nanosecond.

    Kernel workers, whose time cannot be attributed, are only in "all", and so is all
    other work of this machine. Neither includes the time that interrupts and timers
    take from the idle task.
    """
    before = cpu_ns()
    time.sleep(seconds)
    return {name: (ns - before[name]) / seconds / 1e7 for name, ns in cpu_ns().items()}

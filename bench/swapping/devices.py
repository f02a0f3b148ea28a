# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The contestants of bench/paging: block devices, each a context that gives its path.

All have their memory on this machine, behind the same RDMA device or its address:

    hybrid, single  rdmabox_block, in two modes, of one memory server; without
                    checksums, as none of the others has them
    nvme-rdma       a RAM disk behind nvmet, by RDMA
    nvme-tcp        the same by TCP
    nbd             a file in memory behind nbd-server, by TCP
    zram            memory of this machine, compressed
    brd             memory of this machine, as it is: the local limit

Unwritten parts of a RAM disk or a file have no memory yet. They get it before the
measurement, as a memory server does; otherwise the first writes would pay for it.
"""

import contextlib
import os
import pathlib
import subprocess
import time

import runner

DEVICE_BYTES = 64 << 20
HOST_NQN = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-000000000001"
HOST_ID = HOST_NQN[-36:]
NVME_PORTS = {"rdma": 4420, "tcp": 4421}
BRD_DISKS = {"rdma": "/dev/ram0", "tcp": "/dev/ram1", "brd": "/dev/ram2"}
NBD_PORT = 10809
WAIT_S = 10


def run(*command):
    """Runs a program to its end and returns what it printed; Failed where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip().splitlines() or ["no reason given"]
        raise runner.Failed(f"{' '.join(command)}: exit code {done.returncode}: {why[-1]}")
    return done.stdout


def put(path, text):
    """Writes a file of the kernel's."""
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def await_that(condition, what):
    """Waits until a condition holds, which takes the kernel a moment."""
    end = time.monotonic() + WAIT_S
    while not (found := condition()):
        if time.monotonic() > end:
            raise runner.Failed(f"there is no {what} after {WAIT_S} s")
        time.sleep(0.05)
    return found


def load_modules(machine):
    """Loads our modules, and those of the kernel that they and the peers need."""
    modules = pathlib.Path(machine.build) / ("modules-" + ".".join(os.uname().release.split(".")[:2]))
    if not modules.is_dir():
        raise runner.Failed(f"{modules} is missing")
    run("modprobe", "-a", "rdma_cm", "ib_core", "hmac", "sha256", "nvmet-rdma", "nvmet-tcp",
        "nvme-rdma", "nvme-tcp")
    # Modules that one of ours needs are loaded with it.
    for name in ("rdmabox", "rdmabox_block"):
        needed = run("modinfo", "-F", "depends", str(modules / f"{name}.ko")).strip().split(",")
        others = [module for module in needed if module and module != "rdmabox"]
        if others:
            run("modprobe", "-a", *others)
        run("insmod", str(modules / f"{name}.ko"))
    run("modprobe", "brd", f"rd_nr={len(BRD_DISKS)}", f"rd_size={DEVICE_BYTES >> 10}")
    for disk in BRD_DISKS.values():
        run("dd", "if=/dev/zero", f"of={disk}", "bs=128K", f"count={DEVICE_BYTES >> 17}",
            "oflag=direct")
    run("modprobe", "nbd", "nbds_max=1")
    run("modprobe", "zram", "num_devices=1")


@contextlib.contextmanager
def rdmabox_server(machine, volumes):
    """Lends memory for so many devices; gives its address."""
    with machine.server(
            [machine.program("cli", "rdmabox"), "serve", "--listen", f"{machine.address}:0",
             "--fabric", "verbs", "--memory", str(volumes * DEVICE_BYTES), "--slab", "16M",
             "--drain-timeout", "0", "--insecure"]) as address:
        yield address


@contextlib.contextmanager
def rdmabox(machine, mode, address, checksums="on"):
    # All of its memory exists: reads of unwritten parts would not use any memory.
    page = [machine.program("cli", "rdmabox"), "page"]
    name = f"{mode}-{checksums}"
    device = run(*page, "attach", "--name", name, "--mode", mode, "--pool", address,
                 "--checksums", checksums, "--size", str(DEVICE_BYTES), "--reserve",
                 "--insecure").strip()
    try:
        yield device
    finally:
        run(*page, "detach", "--name", name)


def nvmet_export(transport, address, disk):
    """A RAM disk as a namespace of the kernel's target."""
    target = pathlib.Path("/sys/kernel/config/nvmet")
    subsystem = target / "subsystems" / transport
    namespace = subsystem / "namespaces" / "1"
    namespace.mkdir(parents=True)
    put(subsystem / "attr_allow_any_host", "1")
    put(namespace / "device_path", disk)
    put(namespace / "enable", "1")
    port = target / "ports" / str(NVME_PORTS[transport])
    port.mkdir()
    for name, text in {"trtype": transport, "adrfam": "ipv4", "traddr": address,
                       "trsvcid": str(NVME_PORTS[transport])}.items():
        put(port / f"addr_{name}", text)
    (port / "subsystems" / transport).symlink_to(subsystem)


@contextlib.contextmanager
def nvme(machine, transport):
    nvmet_export(transport, machine.address, BRD_DISKS[transport])
    fabrics = os.open("/dev/nvme-fabrics", os.O_RDWR)
    os.write(fabrics, (f"transport={transport},traddr={machine.address},nqn={transport},"
                       f"trsvcid={NVME_PORTS[transport]},hostnqn={HOST_NQN},"
                       f"hostid={HOST_ID}").encode())
    instance = os.read(fabrics, 100).decode().split(",")[0].split("=")[1]
    os.close(fabrics)
    controller = pathlib.Path("/sys/class/nvme") / f"nvme{instance}"
    subsystems = pathlib.Path("/sys/class/nvme-subsystem")

    def disk_of():
        return [found.name for link in subsystems.glob(f"*/{controller.name}")
                for found in link.parent.glob("nvme*n*")]
    try:
        name = await_that(disk_of, f"disk of {controller.name}")[0]
        yield await_that(lambda: os.path.exists(f"/dev/{name}") and f"/dev/{name}", name)
    finally:
        put(controller / "delete_controller", "1")


@contextlib.contextmanager
def nbd(machine):
    image, config = "/tmp/nbd.img", "/tmp/nbd.conf"
    with open(image, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, DEVICE_BYTES)
    put(config, f"[generic]\nlistenaddr = {machine.address}\nport = {NBD_PORT}\n"
                f"[memory]\nexportname = {image}\n")
    server = subprocess.Popen(["nbd-server", "-d", "-C", config], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        await_that(lambda: subprocess.run(
            ["nbd-client", "-b", "4096", "-N", "memory", machine.address, str(NBD_PORT),
             "/dev/nbd0"], capture_output=True, check=False).returncode == 0, "/dev/nbd0")
        yield "/dev/nbd0"
        run("nbd-client", "-d", "/dev/nbd0")
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def zram(_machine):
    put("/sys/block/zram0/disksize", str(DEVICE_BYTES))
    yield "/dev/zram0"
    put("/sys/block/zram0/reset", "1")


@contextlib.contextmanager
def all_of(machine):
    """All of them, at once: {name: path}. Idle ones cost next to nothing."""
    with contextlib.ExitStack() as attached:
        address = attached.enter_context(rdmabox_server(machine, 2))
        yield {name: attached.enter_context(device) for name, device in {
            "hybrid": rdmabox(machine, "hybrid", address, checksums="off"),
            "single": rdmabox(machine, "single", address, checksums="off"),
            "nvme-rdma": nvme(machine, "rdma"),
            "nvme-tcp": nvme(machine, "tcp"),
            "nbd": nbd(machine),
            "zram": zram(machine),
            "brd": contextlib.nullcontext(BRD_DISKS["brd"]),
        }.items()}

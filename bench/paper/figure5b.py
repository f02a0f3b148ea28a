# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 5b: copying into registered memory against registering, in user space."""

import subprocess

from paper import NATIVE, NotAvailable, Verdict, canvas
from runner import Failed

TITLE = "Figure 5b: copying against registering, user space"
CLAIM = ("In user space copying into memory that is registered already is cheaper up to a "
         "threshold, and registering the buffer itself above it.")
FABRICS = (NATIVE,)


def measure(source, on):
    program = source.machine.program("cli", "rdmabox")
    help_text = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    if "tune" not in help_text.stdout + help_text.stderr:
        raise NotAvailable("rdmabox tune is not available in this build")
    try:
        return source.machine.client([program, "tune", "--fabric", "soft", "--device",
                                      "registered", "--out", "none", "--json", "-"])
    except Failed as reason:
        raise NotAvailable(str(reason)) from reason


def draw(figure, data):
    (axes,) = canvas.panels(figure, 1)
    figure.set_size_inches(6, canvas.PANEL_HEIGHT)
    canvas.lines(axes, {point["bytes"] >> 10: {
        "copy": point["copy_ns"] / 1e3,
        "register and deregister": (point["register_ns"] + point["deregister_ns"]) / 1e3}
        for point in data["curve"]}, "copy or register", "KiB", "us")
    axes.set_yscale("log")
    axes.autoscale(axis="y")
    axes.tick_params(axis="x", labelrotation=60)


def judge(data):
    found = data["break_even_bytes"]
    text = "Copying was cheaper at every length." if found is None else (
        f"The threshold is {found:,} bytes on the device \"{data['device']}\" of "
        f"{data['fabric']}. Registering pins nothing there, so a NIC's lies higher.")
    return [Verdict("there is a threshold", found is not None, text)]

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What bench/paging measures, and with what; all of it runs in the lab's machine.

    devices.py  the contestants: block devices, each with its other end on this machine
    loads.py    what is done to them: fio, swap, Redis, programs that learn
"""

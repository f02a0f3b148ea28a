# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The contestants and loads of bench/paging; all of it runs in the lab's machine.

    devices.py  the contestants: block devices, each with its other end on this machine
    loads.py    their loads: fio, swap, Redis, programs that learn
"""

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Volumes of 1 TiB are opened in the time that docs/performance.md promises.

The time is that of the simulator, and the same on every machine. The scenario fails if it takes
longer. What it tells is what FIGURES.md says, but for what a change elsewhere may move: 10 %, or
the last digit.

Usage: opening_is_in_time.py RDMABOX FIGURES.md
"""

import json
import re
import subprocess
import sys

DRIFT = 0.10


def tables_of_page(page):
    """The rows of each table of the part: name, then values as text."""
    with open(page, encoding="utf-8") as file:
        part = file.read().partition("## rdmabox sim --scenario opening\n")[2]
    tables = []
    for table in re.findall(r"(?:^\|.*\n)+", part, re.M):
        rows = [[cell.strip() for cell in line.strip("|").split("|")]
                for line in table.splitlines()]
        tables.append([dict(zip(rows[0], row)) for row in rows[2:]])
    return tables


def is_near(told, written):
    last_digit = 10 ** -len(written.partition(".")[2])
    return abs(told - float(written)) <= max(last_digit * 1.01, DRIFT * float(written))


def run(rdmabox, *options):
    return subprocess.run([rdmabox, "sim", "--scenario", "opening", *options],
                          capture_output=True, text=True, check=False)


def main():
    rdmabox, page = sys.argv[1:]
    failed = False
    done = run(rdmabox, "--json", "-")
    if done.returncode:
        print(done.stdout, done.stderr)
        return 1
    told = json.loads(done.stdout)["tables"]
    written = tables_of_page(page)
    if [len(table["rows"]) for table in told] != [len(table) for table in written]:
        print(f"{page}: its tables are others: run make_figures")
        return 1
    for mine, theirs in zip(told, written):
        for (name, values), row in zip(mine["rows"].items(), theirs):
            for column, value in values.items():
                if value is None or is_near(value, row[column]):
                    continue
                print(f"{mine['title']}, {name}: {column} is {value},"
                      f" and {row[column]} in {page}: run make_figures")
                failed = True
    refused = run(rdmabox, "--nic", "connectx3")
    if refused.returncode != 2 or "--nic is not for it" not in refused.stderr:
        print(f"with --nic: exit code {refused.returncode}, {refused.stderr}")
        failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Type hints: mypy finds no fault in the package, and sees the types of its users."""

import os
import subprocess
from pathlib import Path
from shutil import which
from typing import Tuple

import pytest

BUILD = Path(os.environ["RDMABOX_BUILD"], "python")

USER = """
import asyncio
import rdmabox
context = rdmabox.Context(mode="hybrid", pollers=1, insecure=True)
volume = context.volume("127.0.0.1:1", "1G", replicas=2, on_event=lambda event: event.kind)
reveal_type(volume.read(0, 1))
reveal_type(volume[0:1])
reveal_type(volume[0])
reveal_type(volume.read_async(0, 1).result())
reveal_type(context.stats().requests)
async def main() -> None:
    reveal_type(await volume.aread(0, 1))
volume.reed(0, 1)
volume.read("0", 1)
context.volume("127.0.0.1:1", 1, replica=2)
"""

REVEALED = ["bytes", "bytes", "int", "bytes", "int", "bytes"]


def mypy(tmp_path: Path, *arguments: str) -> Tuple[int, str]:
    program = which("mypy")
    if program is None:
        pytest.skip("mypy is not installed")
    done = subprocess.run([program, "--strict", "--cache-dir", str(tmp_path), *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, cwd=str(tmp_path),
                          env=dict(os.environ, MYPYPATH=str(BUILD)))
    return done.returncode, done.stdout


def test_package_is_clean(tmp_path: Path) -> None:
    """With the oldest Python; the next test looks at the package with this one."""
    code, output = mypy(tmp_path, "--python-version", "3.9", "-p", "rdmabox")
    assert code == 0, output


def test_users_see_the_types(tmp_path: Path) -> None:
    program = tmp_path / "user.py"
    program.write_text(USER)
    code, output = mypy(tmp_path, str(program))
    revealed = [line.split('"builtins.')[1].rstrip('"') for line in output.splitlines()
                if "Revealed type" in line]
    assert revealed == REVEALED, output
    errors = [line for line in output.splitlines() if ": error:" in line]
    assert code == 1 and len(errors) == 3, output
    assert "reed" in errors[0] and "incompatible type" in errors[1] and "replica" in errors[2]

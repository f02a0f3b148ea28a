# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The examples, as they are in the folder and in the README."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rdmabox
from conftest import TEST_SECONDS

PYTHON = Path(os.environ["RDMABOX_SOURCE"], "python")
EXAMPLES = PYTHON / "examples"

EXPECTED = {
    "hello.py": "hello, remote memory\n",
    "coroutines.py": "1000 pages written and read, \\d+ requests merged\n",
    "matrix.py": "sum of squares: (1000\\.0|999\\.9)\\d*\n",
    "named.py": "opened 1 times\n",
    "failover.py": "the server .* is dead\nall of it is there\n",
}


def run(program: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", str(program), *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=TEST_SECONDS)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def test_all_examples_are_known() -> None:
    assert {file.name for file in EXAMPLES.glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_example_says_what_it_should(server: rdmabox.Server, name: str) -> None:
    arguments = [] if name == "failover.py" else [server.address]
    output = run(EXAMPLES / name, *arguments)
    assert re.fullmatch(EXPECTED[name], output), output


def test_examples_of_the_readme_are_these() -> None:
    readme = (PYTHON / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(blocks) == 3
    for block, name in zip(blocks, ("hello.py", "coroutines.py", "matrix.py")):
        text = (EXAMPLES / name).read_text()
        assert text[text.index("import"):] == block


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - {"failover.py"}))
def test_example_without_a_server_tells_how_to_use_it(name: str) -> None:
    done = subprocess.run([sys.executable, str(EXAMPLES / name)], stderr=subprocess.PIPE,
                          universal_newlines=True)
    assert done.returncode == 1 and done.stderr == f"usage: {name} SERVER:PORT[,SERVER:PORT...]\n"

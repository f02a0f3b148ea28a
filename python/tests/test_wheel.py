# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The wheel and the source archive: made by one command, and what comes out works."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import rdmabox

SOURCE = Path(os.environ["RDMABOX_SOURCE"])
PYTHON = SOURCE / "python"

PROGRAM = """
import sys
import rdmabox
assert rdmabox.__file__.startswith(sys.argv[2]), rdmabox.__file__
with rdmabox.Context(tune_file="none") as context:
    with context.volume(sys.argv[1], 1 << 20) as volume:
        volume.write(b"from a wheel", 0)
        print(volume.read_async(0, 12).result().decode())
        print(rdmabox.Volume.__init__.__doc__.count("rbx_volume_open()"))
"""


def run(*command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, env=dict(os.environ, **environment))


def test_wheel_works(server: rdmabox.Server, tmp_path: Path) -> None:
    before = sorted(str(file) for file in PYTHON.rglob("*") if "__pycache__" not in str(file))
    done = run(str(PYTHON / "build-wheel"), "--build-dir", os.environ["RDMABOX_BUILD"], "--sdist",
               str(tmp_path), PYTHON=sys.executable, no_proxy="", https_proxy="http://127.0.0.1:1")
    assert done.returncode == 0, done.stderr
    wheel, = tmp_path.glob("*.whl")
    assert done.stdout == "%s\n" % wheel
    assert wheel.name.startswith("rdmabox-%s-cp39-abi3-linux" % rdmabox.__version__)
    after = sorted(str(file) for file in PYTHON.rglob("*") if "__pycache__" not in str(file))
    assert after == before

    place = tmp_path / "place"
    done = run(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
               "--target", str(place), str(wheel))
    assert done.returncode == 0, done.stderr
    used = run(sys.executable, "-c", PROGRAM, server.address, str(place), PYTHONPATH=str(place))
    assert used.returncode == 0, used.stderr
    assert used.stdout == "from a wheel\n1\n"
    check_archive(tmp_path)
    check_archive_builds(tmp_path)


def check_archive(tmp_path: Path) -> None:
    archive, = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    packed = [*PYTHON.glob("rdmabox/*.py*"), *PYTHON.glob("native/*"), *PYTHON.glob("*.py"),
              PYTHON / "pyproject.toml", PYTHON / "README.md", PYTHON / "rdmabox" / "py.typed"]
    wanted = {str(file.relative_to(PYTHON)) for file in packed}
    wanted |= {"man/make_pages", "man/pages/header.py"}
    assert len(wanted) > 25 and wanted <= names, wanted - names


def check_archive_builds(tmp_path: Path) -> None:
    """Far from the tree, with the headers where pkg-config says that they are."""
    archive, = tmp_path.glob("*.tar.gz")
    include = tmp_path / "installed"
    (include / "rdmabox").mkdir(parents=True)
    for file in (SOURCE / "include" / "rdmabox").glob("*.h"):
        (include / "rdmabox" / file.name).write_text(file.read_text())
    done = run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps",
               "--no-build-isolation", "--wheel-dir", str(tmp_path / "again"), str(archive),
               RDMABOX_INCLUDE=str(include),
               PKG_CONFIG_PATH=os.environ["RDMABOX_BUILD"] + "/meson-uninstalled")
    assert done.returncode == 0, done.stderr
    first, again = tmp_path.glob("*.whl"), (tmp_path / "again").glob("*.whl")
    assert headers_of(next(again)) == headers_of(next(first))


def headers_of(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as files:
        return files.read("rdmabox/_headers.py")


def test_wheel_without_a_library_is_told_how(tmp_path: Path) -> None:
    if run("pkg-config", "--exists", "rdmabox").returncode == 0:
        pytest.skip("librdmabox is installed here")
    done = run(str(PYTHON / "build-wheel"), str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == "build-wheel: no librdmabox: install it, or take --build-dir DIR\n"
    done = run(str(PYTHON / "build-wheel"), "--build-dir", str(tmp_path))
    assert done.returncode == 2 and "is no build directory" in done.stderr

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Docstrings: everything public has one, and a call of the library its header's text."""

import importlib
import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any, Iterator, Tuple

import pytest

import rdmabox
from rdmabox import _docs
from rdmabox._headers import DOCS

SOURCE = Path(os.environ["RDMABOX_SOURCE"])
PACKAGE = SOURCE / "python" / "rdmabox"

sys.path.insert(0, str(SOURCE / "python"))
headers = importlib.import_module("headers")


def calls_made() -> Iterator[str]:
    for file in PACKAGE.glob("*.py"):
        yield from re.findall(r"\blib\.(rbx_\w+)", file.read_text())
    for file in (SOURCE / "python" / "native").glob("*.c"):
        code = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.DOTALL)
        yield from re.findall(r"\b(rbx_\w+)\(", code)


def test_each_call_made_is_wrapped_and_has_a_text() -> None:
    calls = set(calls_made())
    assert len(calls) >= 30
    assert calls == set(_docs.WRAPPED)
    for call, function in _docs.WRAPPED.items():
        assert len(DOCS.get(call, "")) > 30, call
        assert DOCS[call] in (function.__doc__ or ""), call
        assert not (function.__doc__ or "").startswith("From the C library"), call


def test_texts_are_those_of_the_headers() -> None:
    text = DOCS["rbx_volume_open"]
    assert text.startswith("rbx_volume_open() - borrows memory and makes a volume of it.\n")
    assert '@servers: "host:port,host:port", at least as many as replicas' in text
    assert "*" not in text.replace("*/", "")
    assert DOCS["rbx_read"].partition("()")[2] == DOCS["rbx_write"].partition("()")[2]
    assert text in (rdmabox.Volume.__init__.__doc__ or "")


def test_call_without_a_comment_has_no_text(tmp_path: Path) -> None:
    (tmp_path / "rdmabox").mkdir()
    (tmp_path / "rdmabox" / "x.h").write_text("""
/* Not a doc comment: rbx_secret() - no. */
int rbx_secret(int a);

/**
 * rbx_one(), rbx_two() - two calls.
 * @a: what
 *\tgoes on
 *
 * Prose of
 * two lines.
 *
 * Returns 0, or:
 *\t-EINVAL: a is 0
 * Context: any thread.
 */
int rbx_one(int a);
int rbx_two(int a);
""")
    text = ("() - two calls.\n@a: what goes on\n\nProse of two lines.\n\n"
            "Returns 0, or:\n    -EINVAL: a is 0\nContext: any thread.")
    assert headers.call_texts(str(tmp_path)) == {"rbx_one": "rbx_one" + text,
                                                 "rbx_two": "rbx_two" + text}


def public_things() -> Iterator[Tuple[str, Any]]:
    for name in rdmabox.__all__:
        thing = getattr(rdmabox, name)
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    yield name + "." + member, value
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield name, thing


@pytest.mark.parametrize("name,thing", list(public_things()), ids=lambda each: str(each)[:40])
def test_public_thing_has_a_docstring(name: str, thing: Any) -> None:
    if name.startswith(("Future.", "EventKind.", "Event.", "VolumeStatus.")):
        return  # as in the standard library
    if name.endswith((".closed",)):
        return
    assert inspect.getdoc(thing), name


def test_kinds_of_events_are_those_of_the_library() -> None:
    header = (SOURCE / "include" / "rdmabox" / "volume.h").read_text()
    names = re.findall(r"^\tRBX_EVENT_(\w+),", header, re.MULTILINE)
    assert names == [kind.name for kind in rdmabox.EventKind]
    assert [int(kind) for kind in rdmabox.EventKind] == list(range(len(names)))


def test_version_is_that_of_the_library() -> None:
    header = (SOURCE / "include" / "rdmabox" / "rdmabox.h").read_text()
    assert '#define RBX_VERSION "%s"' % rdmabox.__version__ in header

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tree.py - what the tests share: the modules under test, and headers of their own."""

import os
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "man"))

from pages import checks, form, header, mdoc, page, sources  # noqa: E402, F401

GOOD = """/**
 * rbx_thing_open() - opens a thing.
 * @thing: receives it
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL
 *	-ENOMEM: memory ran out
 * Context: any thread; blocks.
 * Lifetime: until rbx_thing_close().
 */
int rbx_thing_open(struct rbx_context *ctx, struct rbx_thing **thing);
"""


def written(text, suffix):
    """The path of a new file with this text; the caller removes it."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False, encoding="utf-8") as file:
        file.write(text)
    return file.name


def read(text):
    """A header of this text."""
    path = written(text, ".h")
    try:
        return header.read(path, "rdmabox/thing.h")
    finally:
        os.unlink(path)


def faults(text):
    """What checks say of a header, without file and line."""
    return [fault.split(": ", 1)[1] for fault in checks.header_faults(read(text))]

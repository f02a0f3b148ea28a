# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds the parts that are made from the library's headers.

It uses the librdmabox that pkg-config finds.
"""

import os
import shutil
import sys
from typing import List

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import headers  # noqa: E402  (beside this file, which need not be on the path)

INCLUDE = headers.include_directory()


class BuildPy(build_py):  # type: ignore[misc]
    """Puts rdmabox/_headers.py beside the other modules."""

    def run(self) -> None:
        super().run()
        directory = os.path.join(self.build_lib, "rdmabox")
        os.makedirs(directory, exist_ok=True)
        headers.write_page(INCLUDE, os.path.join(directory, "_headers.py"))


class Sdist(sdist):  # type: ignore[misc]
    """Puts what reads the headers, man/make_pages, beside headers.py."""

    def make_release_tree(self, base_dir: str, files: List[str]) -> None:
        super().make_release_tree(base_dir, files)
        for name in headers.parser_files():
            target = os.path.join(base_dir, "man", name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(os.path.join(headers.parser_directory(), name), target)


setup(
    version=headers.version(INCLUDE),
    cmdclass={"build_py": BuildPy, "sdist": Sdist},
    cffi_modules=["build_ffi.py:for_setuptools"],
)

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Takes from include/rdmabox/*.h what the package says after it.

The doc comment of each call, the version, and the names of the statistics stand in
the headers alone; man/make_pages reads them. At build time this makes
`rdmabox/_headers.py` of what it finds:

    python3 headers.py INCLUDE_DIRECTORY OUTPUT

INCLUDE_DIRECTORY is the one that holds `rdmabox/`.
"""

import functools
import json
import os
import shlex
import subprocess
import sys
from typing import Any, Dict, List, NamedTuple, Tuple


class Field(NamedTuple):
    name: str
    text: str


def include_directory() -> str:
    """The headers of this tree, or those that are installed."""
    named = os.environ.get("RDMABOX_INCLUDE")
    if named:
        return named
    here = os.path.dirname(os.path.abspath(__file__))
    tree = os.path.join(os.path.dirname(here), "include")
    if os.path.exists(os.path.join(tree, "rdmabox", "rdmabox.h")):
        return tree
    for directory in installed_directories():
        if os.path.exists(os.path.join(directory, "rdmabox", "rdmabox.h")):
            return directory
    raise SystemExit("librdmabox is not found: set PKG_CONFIG_PATH to the folder of rdmabox.pc")


def installed_directories() -> List[str]:
    """Where pkg-config says that the headers are."""
    directories = ["/usr/include"]
    for option in ("--variable=includedir", "--cflags-only-I"):
        try:
            text = subprocess.run(["pkg-config", option, "rdmabox"], check=True,
                                  stdout=subprocess.PIPE, universal_newlines=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return []
        directories += [word[2:] if word.startswith("-I") else word for word in shlex.split(text)]
    return directories


def parser_directory() -> str:
    """man/ of this tree; in a source archive a copy of it is beside this file."""
    here = os.path.dirname(os.path.abspath(__file__))
    for directory in (os.path.join(here, "man"), os.path.join(os.path.dirname(here), "man")):
        if os.path.exists(os.path.join(directory, "make_pages")):
            return directory
    raise SystemExit("man/make_pages is not found: build in the tree, or from a source archive")


def parser_files() -> List[str]:
    """What reads the headers, as a source archive has to hold it; relative to its directory."""
    pages = os.listdir(os.path.join(parser_directory(), "pages"))
    return ["make_pages"] + sorted(os.path.join("pages", name) for name in pages
                                   if name.endswith(".py"))


@functools.lru_cache(maxsize=None)
def read(include: str) -> Dict[str, Any]:
    """What the headers say, of man/make_pages --json."""
    found: Dict[str, Any] = json.loads(subprocess.run(
        [sys.executable, os.path.join(parser_directory(), "make_pages"), "--json",
         "--include", include],
        check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout)
    return found


def call_text(call: Dict[str, Any]) -> str:
    """What the comment of a call says, as it stands in a docstring."""
    parts = ["%s() - %s" % (call["name"], call["brief"])]
    parts += ["@%s: %s" % (each["name"], each["text"]) for each in call["params"]]
    if call["text"]:
        parts += ["", call["text"], ""]
    if call["returns"]:
        parts.append("Returns %s%s" % (call["returns"], ", or:" if call["errors"] else "."))
    parts += ["    %s: %s" % (each["code"], each["text"]) for each in call["errors"]]
    parts += ["%s: %s" % (name.capitalize(), call[name])
              for name in ("context", "lifetime", "paper") if call[name]]
    return "\n".join(parts)


def call_texts(include: str) -> Dict[str, str]:
    return {call["name"]: call_text(call) for call in read(include)["functions"]}


def list_fields(include: str, macro: str) -> List[Field]:
    """The entries of a list such as RBX_STATS(X)."""
    return [Field(**row) for row in read(include)["tables"][macro]]


def latency_fields(include: str) -> List[Field]:
    return [Field(field["name"], field["text"])
            for field in read(include)["structs"]["struct rbx_stats"]
            if field["name"].startswith("latency_")]


def stats(include: str) -> Tuple[List[Field], List[Field]]:
    """The fields of struct rbx_stats and of struct rbx_server_stats."""
    return (latency_fields(include) + list_fields(include, "RBX_STATS"),
            list_fields(include, "RBX_SERVER_STATS"))


def version(include: str) -> str:
    text: str = read(include)["strings"]["RBX_VERSION"]
    return text


def class_text(name: str, title: str, fields: List[Field]) -> str:
    lines = ["@dataclass(frozen=True)", "class %s(_Numbers):" % name,
             '    """%s"""' % title, ""]
    for field in fields:
        lines += ["    %s: int" % field.name, '    """%s"""' % field.text]
    return "\n".join(lines) + "\n"


PAGE = '''# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Made by headers.py of include/rdmabox/*.h: a change belongs there."""

from dataclasses import asdict, dataclass
from typing import Dict


class _Numbers:
    def as_dict(self) -> Dict[str, int]:
        """The numbers by their names."""
        return asdict(self)


'''


def page(include: str) -> str:
    """The text of rdmabox/_headers.py."""
    client, server = stats(include)
    docs = "".join("    %r: %r,\n" % item for item in sorted(call_texts(include).items()))
    return (PAGE + class_text("Stats", "What a context has counted.", client) + "\n\n"
            + class_text("ServerStats", "What a memory server has counted.", server)
            + "\n\nVERSION = %r\n" % version(include)
            + "\n# The doc comment of each call of the library.\n"
            + "DOCS: Dict[str, str] = {\n%s}\n" % docs)


def write_page(include: str, output: str) -> None:
    with open(output, "w", encoding="utf-8") as file:
        file.write(page(include))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    write_page(sys.argv[1], sys.argv[2])

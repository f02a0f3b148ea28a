# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Takes from include/rdmabox/*.h what the package says after it.

The doc comment of each call, the version, and the names of the statistics stand in
the headers alone. At build time this makes `rdmabox/_headers.py` of them:

    python3 headers.py INCLUDE_DIRECTORY OUTPUT

INCLUDE_DIRECTORY is the one that holds `rdmabox/`.
"""

import os
import re
import shlex
import subprocess
import sys
from typing import Dict, List, NamedTuple, Tuple

COMMENT = re.compile(r"/\*\*\s(.*?)\*/", re.DOTALL)
CALL = re.compile(r"\b(rbx_\w+)\(\)")


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


def read(include: str, name: str) -> str:
    with open(os.path.join(include, "rdmabox", name), encoding="utf-8") as file:
        return file.read()


def comment_text(comment: str) -> str:
    """The text of a comment without its stars and outer blank lines."""
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.splitlines()]
    return "\n".join(lines).strip().replace("\t", "    ")


def call_texts(header: str) -> Dict[str, str]:
    """The doc comment of each call. A comment may be of several: "rbx_a(), rbx_b() - ..."."""
    texts = {}
    for match in COMMENT.finditer(header):
        text = comment_text(match.group(1))
        title, dash, _ = text.partition(" - ")
        if dash:
            for call in CALL.findall(title):
                texts[call] = text
    return texts


def list_fields(header: str, macro: str) -> List[Field]:
    """The entries of a list such as RBX_STATS(X)."""
    body = re.search(r"#define %s\(X\)((?:.*\\\n)*.*\n)" % macro, header)
    if not body:
        raise SystemExit("no list %s in the headers" % macro)
    return [Field(*entry) for entry in re.findall(r'X\((\w+),\s*"([^"]*)"\)', body.group(1))]


def latency_fields(header: str) -> List[Field]:
    names = re.findall(r"uint64_t (latency_\w+_ns);", header)
    return [Field(name, "latency of requests, %s, nanoseconds" % name.split("_")[1])
            for name in names]


def stats(include: str) -> Tuple[List[Field], List[Field]]:
    """The fields of struct rbx_stats and of struct rbx_server_stats."""
    client, server = read(include, "rdmabox.h"), read(include, "server.h")
    return (latency_fields(client) + list_fields(client, "RBX_STATS"),
            list_fields(server, "RBX_SERVER_STATS"))


def version(include: str) -> str:
    found = re.search(r'#define RBX_VERSION "([^"]+)"', read(include, "rdmabox.h"))
    if not found:
        raise SystemExit("no RBX_VERSION in rdmabox.h")
    return found.group(1)


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
    texts: Dict[str, str] = {}
    for name in ("rdmabox.h", "server.h"):
        texts.update(call_texts(read(include, name)))
    client, server = stats(include)
    docs = "".join("    %r: %r,\n" % item for item in sorted(texts.items()))
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

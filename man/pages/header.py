# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""header.py - a public header read into its functions, structs, enums and tables.

No C parser: a public header holds declarations in kernel style and nothing else. What
stands in comments and preprocessor lines is blanked, letter for letter, so that a place
in what is left is the place in the file.
"""

import re
from dataclasses import dataclass, field

from . import form

COMMENT = re.compile(r"/\*.*?\*/", re.S)
DOC = re.compile(r"/\*\*[^*].*?\*/", re.S)
CPLUSPLUS = re.compile(r"^#ifdef __cplusplus\n.*?^#endif\n", re.S | re.M)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*\n", re.M)
PROTOTYPE = re.compile(r"^((?:static inline\s+)?(?:const )?(?:struct )?\w+(?: \w+)?)\s*"
                       r"(\**)\s*(rbx_\w+)\(", re.M)
BODY = re.compile(r"^(struct|enum) (rbx_\w+) \{\n(.*?)^\};", re.S | re.M)
TABLE = re.compile(r"^#define (RBX_\w+)\(X\)((?:[^\n]*\\\n)*[^\n]*\n)", re.M)
STRING = re.compile(r"^#define (RBX_\w+) \"([^\"\n]*)\"$", re.M)
ROW = re.compile(r"X\((\w+), \"([^\"]*)\"\)")
DEFAULT = re.compile(r"\bDefault: (.+?)\.(?=\s|$)")


@dataclass
class Function:
    """A declaration, and its comment if it has one."""

    name: str
    header: str
    line: int
    returns: str  # its C type
    params: list  # (declaration, name), without void
    is_inline: bool = False
    comment: form.Comment = None

    @property
    def prototype(self):
        between = "" if self.returns.endswith("*") else " "
        params = ", ".join(declaration for declaration, _ in self.params) or "void"
        return f"{self.returns}{between}{self.name}({params})"


@dataclass
class Field:
    """A field of a struct, or a value of an enum."""

    name: str
    line: int
    declaration: str
    blocks: list
    default: str = ""


@dataclass
class Header:
    name: str  # as it is included: rdmabox/rdmabox.h
    path: str
    functions: list = field(default_factory=list)
    structs: dict = field(default_factory=dict)  # "struct rbx_x", "enum rbx_y": fields
    tables: dict = field(default_factory=dict)  # RBX_STATS: [(name, text)]
    strings: dict = field(default_factory=dict)  # RBX_VERSION: its text
    faults: list = field(default_factory=list)  # form.Fault


def _blank(text, pattern):
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def _line_of(text, at):
    return text.count("\n", 0, at) + 1


def _close(text, at):
    """The place of the bracket that closes the one at this place."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("a bracket is never closed")


def split_params(text):
    """"int a, void (*f)(int b, int c)" as (declaration, name) each."""
    parts, depth, start = [], 0, 0
    text = re.sub(r"\s+", " ", text).strip()
    for at, letter in enumerate(text + ","):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [(part, name_of(part)) for part in parts if part not in ("void", "")]


def name_of(declaration):
    """The name that a declaration declares."""
    pointer = re.search(r"\(\*(\w+)\)", declaration)
    if pointer:
        return pointer.group(1)
    return re.findall(r"\w+", re.sub(r"\[.*?\]", "", declaration))[-1]


def _functions(header, code):
    found = []
    for match in PROTOTYPE.finditer(code):
        closing = _close(code, match.end() - 1)
        words = re.sub(r"\s+", " ", match.group(1))
        stars = match.group(2)
        found.append((match.start(), Function(
            name=match.group(3), header=header.name,
            line=_line_of(code, match.start()),
            returns=words.replace("static inline ", "") + (" " + stars if stars else ""),
            params=split_params(code[match.end():closing]),
            is_inline=words.startswith("static inline"))))
    return found


def _attach(header, text, found):
    """Each comment goes to the declarations behind it that it names."""
    for match in DOC.finditer(text):
        line = _line_of(text, match.start())
        try:
            comment = form.parse(match.group(), line)
        except form.Fault as fault:
            header.faults.append(fault)
            continue
        behind = [function for at, function in found if at > match.end()]
        here = [function.name for function in behind[:len(comment.names)]]
        between = text[match.end():next(at for at, _ in found if at > match.end())] \
            if behind else "nothing"
        if here != comment.names or between.strip():
            header.faults.append(form.Fault(line, "the comment of "
                                 f"{', '.join(comment.names)} does not stand above it"))
            continue
        for function in behind[:len(comment.names)]:
            function.comment = comment


def _finish(name, line, declaration, comments):
    """A field with the comments around it, as one text."""
    lines = []
    for comment in comments:
        lines += form.lines_of(comment)
    blocks = form.blocks_of(lines)
    default = ""
    for at, block in enumerate(blocks):
        found = DEFAULT.search(block[1]) if block[0] == "text" else None
        if found:
            default = found.group(1)
            rest = (block[1][:found.start()] + block[1][found.end():]).strip()
            blocks[at] = ("text", re.sub(r"\s+", " ", rest))
    blocks = [block for block in blocks if block[1]]
    return Field(name, line, re.sub(r"\s+", " ", declaration), blocks, default)


def _fields(body, first_line, kind):
    """The comment of a field stands above it, or begins in its line."""
    end = r"[;]" if kind == "struct" else r"[,]"
    pattern = re.compile(r"(?P<above>(?:[ \t]*/\*.*?\*/[ \t]*\n)*)"
                         r"[ \t]*(?P<code>[^;,/#\s][^;/]*?)" + end +
                         r"(?P<behind>[ \t]*/\*.*?\*/)?[ \t]*\n", re.S)
    fields = []
    body = PREPROCESSOR.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), body)
    for match in pattern.finditer(body):
        comments = COMMENT.findall(match.group("above") + (match.group("behind") or ""))
        code = match.group("code").strip()
        names = [name_of(code)] if kind == "struct" else [code.split()[0]]
        line = first_line + body.count("\n", 0, match.start("code"))
        if kind == "struct" and "(" not in code:
            first, *others = [part.strip() for part in code.split(",")]
            names = [name_of(first)] + [name_of(other) for other in others]
        fields += [_finish(name, line, code, comments) for name in names]
    return fields


def _bodies(header, text):
    for match in BODY.finditer(text):
        kind, name, body = match.groups()
        header.structs[f"{kind} {name}"] = _fields(body, _line_of(text, match.start(3)), kind)


def read(path, name):
    """The Header in a file that programs include by that name."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    header = Header(name=name, path=path, strings=dict(STRING.findall(text)))
    for match in TABLE.finditer(text):
        header.tables[match.group(1)] = ROW.findall(match.group(2))
    _bodies(header, text)
    code = _blank(_blank(_blank(text, COMMENT), CPLUSPLUS), PREPROCESSOR)
    found = _functions(header, code)
    _attach(header, text, found)
    header.functions = [function for _, function in found]
    return header

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""form.py - the form of the comment above a public function, read into its parts.

    /**
     * rbx_thing_open() - opens a thing.
     * @thing: receives it.
     *
     * Prose, in paragraphs. A line that begins with a tab is an item of a list:
     *	word	what it means
     *
     * Returns 0, or:
     *	-EINVAL: an argument is NULL
     *	-E...: as rbx_other()
     * Context: any thread; blocks.
     * Lifetime: until rbx_thing_close().
     * Paper: section IV-A.
     */

The parts come in this order; Returns and the errors belong together. Prose is kept as
a list of blocks: ("text", words) or ("list", [(term, words)]). What is not of this form
is a Fault, which names the line.
"""

import re
from dataclasses import dataclass, field

BRIEF = re.compile(r"((?:rbx_\w+\(\)(?:, )?)+) - (.+)")
PARAM = re.compile(r"@(\w+): (.+)")
SECTION = re.compile(r"(Context|Lifetime|Paper): (.+)")
CODES = re.compile(r"((?:-E[A-Z0-9]+)(?:, -E[A-Z0-9]+)*): (.+)")
AS = re.compile(r"-E\.\.\.: as (rbx_\w+)\(\)$")
ITEM = re.compile(r"(\S(?:.*?\S)?)(?:\t+| {2,})(\S.*)")


class Fault(Exception):
    """What is wrong, and in which line of the file."""

    def __init__(self, line, what):
        super().__init__(what)
        self.line = line
        self.what = what


@dataclass
class Comment:
    """A comment in its parts; line is where it begins."""

    line: int
    names: list
    brief: str
    params: list = field(default_factory=list)  # (name, words)
    blocks: list = field(default_factory=list)
    returns: str = ""
    errors: list = field(default_factory=list)  # (code, words)
    errors_as: list = field(default_factory=list)  # names of other functions
    context: str = ""
    lifetime: str = ""
    paper: str = ""


def lines_of(comment):
    """The lines of a C comment without its marks."""
    inner = re.sub(r"^/\*+|\*+/$", "", comment).split("\n")
    lines = [re.sub(r"^\s*\* ?", "", line) if at else line.strip()
             for at, line in enumerate(inner)]
    return [line.rstrip() for line in lines]


def blocks_of(lines, indent=1):
    """Prose: paragraphs and lists. An item begins with a tab for each indent, and goes
    on where more of them stand."""
    blocks = []
    open_text = False
    for line in lines:
        if not line:
            open_text = False
        elif line.startswith("\t" * (indent + 1)) and blocks and blocks[-1][0] == "list":
            term, words = blocks[-1][1][-1]
            blocks[-1][1][-1] = (term, words + " " + line.strip())
        elif line.startswith("\t" * indent):
            item = ITEM.fullmatch(line.strip())
            if not blocks or blocks[-1][0] != "list":
                blocks.append(("list", []))
            term, words = item.groups() if item else (line.strip(), "")
            blocks[-1][1].append((term, words))
            open_text = False
        elif open_text:
            blocks[-1] = ("text", blocks[-1][1] + " " + line.strip())
        else:
            blocks.append(("text", line.strip()))
            open_text = True
    return blocks


class _Reader:
    """Goes through the lines of one comment, part by part."""

    def __init__(self, comment, first_line):
        self.lines = lines_of(comment)
        self.first_line = first_line
        self.at = 0
        self.skip_empty()

    def skip_empty(self):
        while self.at < len(self.lines) and not self.lines[self.at]:
            self.at += 1

    def peek(self):
        return self.lines[self.at] if self.at < len(self.lines) else None

    def take(self):
        line = self.lines[self.at]
        self.at += 1
        return line

    def fault(self, what):
        return Fault(self.first_line + self.at, what)

    def take_more(self, words):
        """The rest of a part: lines that begin with a tab."""
        while self.peek() and self.peek().startswith("\t"):
            words += " " + self.take().strip()
        return words


def _take_brief(reader):
    match = BRIEF.fullmatch(reader.take()) if reader.peek() else None
    if not match or not match.group(2).endswith("."):
        raise reader.fault("the first line is \"rbx_name() - what it does.\"")
    return [name[:-2] for name in match.group(1).split(", ")], match.group(2)


def _take_params(reader, comment):
    while reader.peek() and reader.peek().startswith("@"):
        match = PARAM.fullmatch(reader.take())
        if not match:
            raise reader.fault("a parameter is \"@name: what it is\"")
        comment.params.append((match.group(1), reader.take_more(match.group(2))))


def _is_part(line):
    return line.startswith("Returns ") or SECTION.match(line)


def _take_prose(reader, comment):
    prose = []
    while reader.peek() is not None and not _is_part(reader.peek()):
        prose.append(reader.take())
    comment.blocks = blocks_of(prose)


def _take_errors(reader, comment):
    while reader.peek() and reader.peek().startswith("\t"):
        line = reader.take().strip()
        other, codes = AS.match(line), CODES.fullmatch(line)
        if other:
            comment.errors_as.append(other.group(1))
            continue
        if not codes:
            raise reader.fault("an error is \"-ECODE: when\", or \"-E...: as rbx_name()\"")
        words = codes.group(2)
        while reader.peek() and reader.peek().startswith("\t\t"):
            words += " " + reader.take().strip()
        for code in codes.group(1).split(", "):
            comment.errors.append((code, words))


def _take_returns(reader, comment):
    if not (reader.peek() or "").startswith("Returns "):
        return
    words = reader.take()[len("Returns "):]
    while reader.peek() and not reader.peek().startswith("\t") and not _is_part(reader.peek()):
        words += " " + reader.take()
    if words.endswith(", or:"):
        comment.returns = words[:-len(", or:")]
        _take_errors(reader, comment)
        if not comment.errors and not comment.errors_as:
            raise reader.fault("a list of errors follows \"Returns ..., or:\"")
    elif words.endswith("."):
        comment.returns = words[:-1]
    else:
        raise reader.fault("Returns ends with a full stop, or with \", or:\" and errors")


def _take_sections(reader, comment):
    for name in ("Context", "Lifetime", "Paper"):
        reader.skip_empty()
        match = SECTION.fullmatch(reader.peek() or "")
        if not match or match.group(1) != name:
            continue
        reader.take()
        words = match.group(2)
        while reader.peek() and not _is_part(reader.peek()):
            words += " " + reader.take().strip()
        setattr(comment, name.lower(), words)


def parse(text, first_line=1):
    """The Comment of a C comment that begins in that line."""
    reader = _Reader(text, first_line)
    names, brief = _take_brief(reader)
    comment = Comment(line=first_line, names=names, brief=brief)
    _take_params(reader, comment)
    _take_prose(reader, comment)
    _take_returns(reader, comment)
    _take_sections(reader, comment)
    reader.skip_empty()
    if reader.peek() is not None:
        raise reader.fault("this comes after Returns, Context, Lifetime and Paper, "
                           f"which are the last, in this order: {reader.peek()!r}")
    return comment

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""mdoc.py - prose of a header in mdoc(7), the language of the manual pages.

Words that have a meaning get their macro: rbx_open() and rdmabox-tune(1) become links,
@name an argument, RBX_READ and NULL constants, -EINVAL an error, "struct rbx_x" a type,
`word` a word of a program. Each sentence begins a line.
"""

import re

OPENING = "([\""
QUOTE = r"\(dq"
CLOSING = re.compile(r"^[.,;:?!)\]]$")
WORD = re.compile(r"""
    (?P<call>rbx_\w+\(\)) |
    (?P<page>(?!rbx_)\w[\w.-]*\([1-8]\)) |
    (?P<function>[a-z_]\w*\(\)) |
    (?P<argument>@\w+) |
    (?P<error>-E[A-Z0-9]+\b) |
    (?P<type>(?:struct|enum)\ rbx_\w+) |
    (?P<constant>\b(?:RBX_[A-Z0-9_]+|NULL|UINT64_MAX)\b) |
    (?P<literal>`[^`]+`)
""", re.X)
SENTENCE = re.compile(r"(?<=[a-z0-9)`>\"A-Z][.?])\s+(?=[A-Z0-9@`\"-]|rbx_)")


def escape(text):
    """Text that groff takes for nothing but text."""
    text = text.replace("\\", "\\e").replace("-1", "\\-1")
    return re.sub(r"^(['.])", r"\\&\1", text)


def quote(text):
    """An argument of a macro."""
    text = escape(text)
    if " " in text or not text:
        text = '"' + text.replace('"', '""') + '"'
    return r"\&" + text if CLOSING.match(text) else text


def macro(kind, word, page_calls):
    """The macro of a word."""
    if kind == "call":
        name = word[:-2]
        return f"Fn {name}" if name in page_calls else f"Xr {name} 3"
    if kind == "page":
        return "Xr {} {}".format(*word[:-1].split("("))
    if kind == "function":
        return f"Fn {word[:-2]}"
    if kind == "argument":
        return f"Fa {word[1:]}"
    if kind == "error":
        return f"Fl Ns Er {word[1:]}"
    if kind == "literal":
        return f"Li {quote(word[1:-1])}"
    return {"type": "Vt", "constant": "Dv"}[kind] + f" {quote(word)}"


def _split_opening(before):
    """What stands before a word, and the brackets that open right at it."""
    plain = before.rstrip(OPENING)
    return plain, before[len(plain):]


def _marked(match, opening, behind, suffix, page_calls):
    """The line of one word with the marks around it."""
    marks = [QUOTE if mark == '"' else mark for mark in opening]
    line = "." + "".join(f"Pf {mark} " for mark in marks)
    line += macro(match.lastgroup, match.group(), page_calls)
    line += "".join(f" {mark}" for mark in behind)
    return line + (f" Ns {quote(suffix)}" if suffix else "")


def _sentence(text, page_calls):
    lines, at = [], 0
    for match in WORD.finditer(text):
        if match.start() < at:
            continue
        plain, opening = _split_opening(text[at:match.start()])
        if plain.strip():
            lines.append(escape(plain.strip()))
        behind = re.match(r"[.,;:?!)\]]*", text[match.end():]).group()
        at = match.end() + len(behind)
        suffix = re.match(r"\S*", text[at:]).group()
        at += len(suffix)
        lines.append(_marked(match, opening, behind, suffix, page_calls))
    if text[at:].strip():
        lines.append(escape(text[at:].strip()))
    return lines


def text_lines(text, page_calls):
    """A paragraph."""
    lines = []
    for sentence in SENTENCE.split(text.strip()):
        lines += _sentence(sentence, page_calls)
    return lines


def block_lines(blocks, page_calls):
    """Paragraphs and lists; nothing before the first."""
    lines = []
    for kind, content in blocks:
        if kind == "text":
            if lines:
                lines.append(".Pp")
            lines += text_lines(content, page_calls)
            continue
        lines.append(".Bl -tag -width Ds -compact")
        for term, words in content:
            lines.append(f".It Li {quote(term)}")
            lines += text_lines(words, page_calls) if words else []
        lines.append(".El")
    return lines


def synopsis(function):
    """The declaration of a function."""
    lines = [f".Ft {quote(function.returns)}"]
    if not function.params:
        return lines + [f".Fn {function.name} void"]
    lines.append(f".Fo {function.name}")
    lines += [f".Fa {quote(declaration)}" for declaration, _ in function.params]
    return lines + [".Fc"]

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""checks.py - what a comment has to say, beyond its form (form.py).

Each check yields a line "file:line: what is wrong".
"""

import errno
import re


def _at(header, line, what):
    return f"{header.path}:{line}: {what}"


def _comment_faults(function):
    """What is wrong with the comment of a function, given its declaration."""
    comment = function.comment
    known = [name for _, name in function.params]
    for name, _ in comment.params:
        if name not in known:
            yield f"@{name}: {function.name}() has no such parameter"
    for code, _ in comment.errors:
        if not hasattr(errno, code[1:]):
            yield f"{code} is no error"
    if not comment.context:
        yield f"{function.name}: which threads may call it, and does it block? Context:"
    elif not re.search(r"\bblocks?\b", comment.context):
        yield f"{function.name}: Context does not say whether it blocks"
    yield from _returns_faults(function)


def _returns_faults(function):
    comment = function.comment
    has_errors = comment.errors or comment.errors_as
    if function.returns == "void":
        if comment.returns:
            yield f"{function.name} returns nothing"
    elif not comment.returns:
        yield f"{function.name}: what does it return? Returns ..."
    elif function.returns == "int" and not has_errors and "never fails" not in comment.returns:
        yield f"{function.name}: no error is listed, and Returns does not say \"never fails\""
    elif has_errors and "never fails" in comment.returns:
        yield f"{function.name}: errors are listed, and Returns says \"never fails\""


def header_faults(header):
    """All that is wrong in a header."""
    for fault in header.faults:
        yield _at(header, fault.line, fault.what)
    for function in header.functions:
        if function.comment is None:
            yield _at(header, function.line, f"{function.name} has no comment of the form")
            continue
        for what in _comment_faults(function):
            yield _at(header, function.comment.line, what)
    for name, fields in header.structs.items():
        for each in fields:
            if not each.blocks:
                yield _at(header, each.line, f"{name}: what is {each.name}?")
            if name.endswith("_options") and not each.default and each.name != "size_bytes":
                yield _at(header, each.line,
                          f"{name}: {each.name} has no \"Default: ...\"")


def page_faults(api, pages):
    """pages: (path, names). Each function is on one page."""
    where = {}
    for path, names in pages:
        for name in names:
            where.setdefault(name, []).append(path)
    for header in api.headers:
        for function in header.functions:
            count = len(where.get(function.name, []))
            if count != 1:
                yield _at(header, function.line, f"{function.name} is on {count} pages, not one")
